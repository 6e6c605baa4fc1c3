"""Tilt counts towards a slope: the weights of a given likelihood that move a value most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._numerics.arithmetic import argmax, deviance, divide
from jaxmetrics._places.namespaces import Array, is_jax, lax, xp

__all__: list[str] = []

# Part of an example that is added to the cell that moves the metric most. For an error rate without
# errors, the upper limit is then 3.0 / n, the same as for the mid-p value.
ADDED = 1 / 3
ADDED_OF_CLUSTER = 3 / 4  # part of a cluster that is added: the cluster that moves the metric most
_NEWTON_STEPS = 10


def farthest_cluster(moves: Array, sizes: Array) -> Array:
    """Return the index of the cluster with the largest move, `(..., C)`.

    Of clusters that move a value equally, the smallest is returned. If all predictions are right,
    for example, no cluster moves the accuracy, and rounding would choose one.
    """
    least = 100 * xp.finfo(moves.dtype).eps * sizes
    return argmax(xp.where(sizes > 0, moves - least, -xp.inf))


def tilted(counts: Array, slopes: Array, radius: float) -> Array:
    """Return the weights with the largest `sum slopes * weights` for a given log-likelihood ratio.

    Each of the rows `(..., R, U)` keeps its total. The weights are `counts / (nu + t u)`, where u
    is the highest slope minus the slope, nu depends on the row, and t is the same for all rows.
    With `s = t / nu` and d equal to u minus its mean, the weights are `counts / ((1 + y) Z)` with
    `y = s d / (1 + s mean)`. Both `log t` and the logarithm of the ratio are concave functions of
    `log s`, so that Newton's method on these scales needs no bracket.
    """
    if not is_jax(counts):
        used = counts.any((*range(counts.ndim - 1),))
        if not used.any():
            return counts
        if not used.all():  # NumPy computes only the columns that are used
            weights = np.zeros(counts.shape)
            weights[..., used] = tilted(counts[..., used], slopes[..., used], radius)
            return weights
    rows = _TiltedRows.of(counts, slopes)
    variance = _sum_of_all(counts * rows.d**2)
    possible = variance > 0
    start = xp.log(2 * radius / xp.where(possible, variance, 1)) / 2
    first = xp.broadcast_to(start, rows.totals.shape)
    tolerance = max(1e-9, 8 * float(xp.finfo(counts.dtype).eps))

    def is_unfinished(state: tuple[Array, Array, Array, Array]) -> Array:
        _, _, change, number = state
        return (change > tolerance) & (number < _NEWTON_STEPS)

    def step(state: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
        log_s, _, _, number = state
        following, weights = rows.newton_step(log_s, radius)
        return following, weights, xp.abs(following - log_s).max(), number + 1

    zero = xp.zeros_like(first).max()
    state = first, counts, zero + xp.inf, xp.zeros((), xp.int32)
    return xp.where(possible, lax.while_loop(is_unfinished, step, state)[1], counts)


class _TiltedRows(NamedTuple):
    """The rows of `tilted`: totals and shares of the counts, and the mean and d of u."""

    totals: Array
    shares: Array
    mean: Array
    d: Array

    @classmethod
    def of(cls, counts: Array, slopes: Array) -> _TiltedRows:
        totals = counts.sum(-1, keepdims=True)
        shares = divide(counts, totals)
        highest = xp.where(counts > 0, slopes, -xp.inf).max(-1, keepdims=True)
        u = xp.where(counts > 0, highest - slopes, 0)
        u = divide(u, u.max((-2, -1), keepdims=True))
        mean = (shares * u).sum(-1, keepdims=True)
        return cls(totals, shares, mean, xp.where(counts > 0, u - mean, 0))

    def newton_step(self, log_s: Array, radius: float) -> tuple[Array, Array]:
        """Return the next `log s`, and the weights for the current `log s`."""
        totals, shares, mean, d = self
        s = xp.exp(log_s)
        scale = 1 + s * mean
        y = s / scale * d
        weights = shares / (1 + y)
        squares = weights * y * y
        excess, further = xp.stack([squares, squares / (1 + y)]).sum(-1, keepdims=True)  # Z - 1
        tilted_counts = totals * weights / (1 + excess)
        ratio = _sum_of_all(tilted_counts * deviance(excess + (1 + excess) * y))
        # Derivatives of log Z, of the ratio and of log t with respect to log s. As the sum of
        # shares d is 0, the sum of y weights is -excess, which has no cancellation.
        of_z = (excess + further) / (scale * (1 + excess))
        of_ratio = totals * (of_z - excess / scale)
        of_t = 1 / scale + of_z
        log_t = log_s + xp.log1p(excess) - xp.log(scale)
        missing = ratio * xp.log(radius / xp.maximum(ratio, 1e-30))
        weight = of_ratio / of_t
        goal = divide(missing + _sum_of_all(weight * log_t), _sum_of_all(weight))
        return log_s + xp.clip((goal - log_t) / of_t, -3, 3), tilted_counts


def _sum_of_all(x: Array) -> Array:
    return x.sum((-2, -1), keepdims=True)
