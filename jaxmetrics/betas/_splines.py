"""Quintic splines of the cdf of a distribution on an interval.

The interval is divided into five panels. In each panel the knots are equally spaced in v, where y =
1 / (1 + exp(-sinh v)) is the position as a fraction of the panel, as in `_quadrature`. Therefore
knots are nearly equally spaced near a soft end, and very close together near a hard end, where
jumps and poles are smooth functions of v. The spline stores the cdf and its first two derivatives
(by the index of the knot) at all knots. Between two knots the spline is the polynomial of degree 5
that has these values and derivatives.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jaxmetrics._numerics.arithmetic import matmul, pick
from jaxmetrics._numerics.roots import root
from jaxmetrics._places.namespaces import Array, Arrays, lax, xp
from jaxmetrics.betas._quadrature import HARD, SOFT, Grid, grid_for_ends

__all__: list[str] = []

PANELS = 5
_LEAST = math.exp(-HARD.reach)


class Spline(NamedTuple):
    """A cdf as a spline. Leading axes are batch axes, and positions are relative to an origin that
    the caller chooses.
    """

    edges: Array  # (..., 6), edges of the panels
    hard: Array  # (..., 5, 2), bool: whether the ends of each panel are hard
    cdf: Array  # (..., 5 (n + 1))
    slope: Array  # first derivative by the index of the knot
    curvature: Array  # second derivative


def knots(hard: Array, n: int, dtype: np.dtype) -> Grid:
    """Return the n + 1 knots of each panel as fractions of its length, of shape
    `(..., 5, n + 1)`.
    """
    return lax.optimization_barrier(
        grid_for_ends(n, hard[..., 0], hard[..., 1], dtype, at_middles=False)
    )


def spline(edges: Array, hard: Array, cdf: Array, slope: Array) -> Spline:
    """Make a spline from the cdf and its derivative by the index of the knot, `(..., 5, n + 1)`.

    Rounding errors are removed: decreases of the cdf, values outside [0, 1] and negative slopes.
    """
    # The derivative of the polynomial through the seven nearest slopes.
    matrix, size = _differentiation_matrix().astype(slope.dtype), slope.shape[-1]
    first = matmul(slope[..., :7], matrix[:3].T)
    middle = sum(matrix[3, i] * slope[..., i : i + size - 6] for i in (0, 1, 2, 4, 5, 6))
    last = matmul(slope[..., -7:], matrix[4:].T)
    curvature, cdf = xp.concatenate([first, middle, last], -1), xp.clip(cdf, 0, 1)
    # First within panels: for a TPU, one cumulative maximum of all knots is a far larger program.
    risen = lax.cummax(cdf, axis=cdf.ndim - 1)
    ends = lax.cummax(risen[..., -1:], axis=cdf.ndim - 2)
    before = xp.concatenate([xp.zeros_like(ends[..., :1, :]), ends[..., :-1, :]], -2)
    # The correction has no effect on derivatives with respect to the parameters.
    cdf = cdf + lax.stop_gradient(xp.maximum(risen, before) - cdf)
    shape = *cdf.shape[:-2], cdf.shape[-2] * cdf.shape[-1]
    flat = (v.reshape(shape) for v in (cdf, xp.maximum(slope, 0), curvature))
    return Spline(edges, hard, *flat)


@lru_cache
def _differentiation_matrix() -> np.ndarray:
    """Return weights for the derivative of the polynomial through seven points, at each of these
    points.

    The weights w at point i solve `sum_j w_j (j - i)^p = [p = 1]` for all powers p.
    """
    places = np.arange(7.0)
    return np.stack(
        [np.linalg.solve(np.vander(places - i, increasing=True).T, np.eye(7)[1]) for i in range(7)]
    )


def _panel(spline: Spline, panel: Array) -> Arrays:
    """Return the ends of the panel of each query, -v at its low end, v at its high end, and the
    length of (0, 1) beyond each.
    """
    ends = pick(spline.edges[..., :-1], panel), pick(spline.edges[..., 1:], panel)
    hard = [pick(spline.hard[..., end], panel) for end in (0, 1)]
    first, last = (xp.where(h, HARD.v, SOFT.v).astype(spline.cdf.dtype) for h in hard)
    cut_low, cut_high = (xp.where(h, 0, SOFT.cut).astype(spline.cdf.dtype) for h in hard)
    return *ends, first, last, cut_low, cut_high


class _Piece(NamedTuple):
    """Positions of queries `(..., Q)` between two knots."""

    polynomial: Arrays
    reached: Array  # cdf at the next knot
    t: Array  # t, the fraction of the step between two knots
    rate: Array  # dt / dz
    acceleration: Array  # d^2 t / dz^2


def _locate(spline: Spline, z: Array) -> tuple[Array, _Piece]:
    """Return whether z is inside of the interval, and the piece that contains z (the middle piece
    if z is outside).
    """
    low, high = spline.edges[..., :1], spline.edges[..., -1:]
    inside = (z >= low) & (z <= high)
    z = xp.where(inside, z, (low + high) / 2)
    panel = (z[..., None] > spline.edges[..., None, 1:-1]).sum(-1)
    return inside, _piece(spline, panel, z)


def _piece(spline: Spline, panel: Array, z: Array) -> _Piece:
    n = spline.cdf.shape[-1] // PANELS - 1
    start, stop, first, last, cut_low, cut_high = _panel(spline, panel)
    below, above = z - start, stop - z
    length = below + above
    scale = (1 - cut_low - cut_high) / xp.where(length > 0, length, 1)
    least = xp.where(length > 0, _LEAST, 0.5).astype(length.dtype)
    lower = xp.maximum(cut_low + scale * below, least)
    upper = xp.maximum(cut_high + scale * above, least)
    logit = xp.log(lower / upper)
    root = xp.sqrt(1 + logit**2)
    v = xp.sign(logit) * xp.log(xp.abs(logit) + root)  # arcsinh
    steps_by_v = n / (first + last)
    steps = (v + first) * steps_by_v
    knot = xp.clip(xp.floor(lax.stop_gradient(steps)), 0, n - 1)
    by_position = scale / (lower * upper)
    rate = by_position * steps_by_v / root
    acceleration = rate * by_position * (lower - upper - logit / root**2)
    polynomial, reached = _polynomial(spline, panel * (n + 1) + knot.astype(xp.int32))
    return _Piece(polynomial, reached, steps - knot, rate, acceleration)


def _polynomial(spline: Spline, knot: Array) -> tuple[Arrays, Array]:
    """Return the coefficients of the polynomial between `knot` and the next knot, and the cdf
    there.
    """
    f0, f1, d0, d1, c0, c1 = (
        pick(values, knot + i)
        for values in (spline.cdf, spline.slope, spline.curvature)
        for i in (0, 1)
    )
    rise = f1 - f0
    # If the cdf hardly increases, its increase is computed from the slopes, which are accurate even
    # if the cdf is rounded to 1.
    rise = xp.where(rise > 1024 * xp.finfo(rise.dtype).eps, rise, (d0 + d1) / 2 + (c0 - c1) / 12)
    coefficients = (
        f0,
        d0,
        c0 / 2,
        10 * rise - 6 * d0 - 4 * d1 - 1.5 * c0 + 0.5 * c1,
        -15 * rise + 8 * d0 + 7 * d1 + 1.5 * c0 - c1,
        6 * rise - 3 * d0 - 3 * d1 - 0.5 * c0 + 0.5 * c1,
    )
    return coefficients, f1


def _horner(coefficients: Arrays, t: Array) -> Array:
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * t + c
    return value


def _derivative(coefficients: Arrays) -> Arrays:
    return tuple(i * c for i, c in enumerate(coefficients))[1:]


def cdf(spline: Spline, z: Array) -> Array:
    """Return P(Z <= z) for z of shape `(..., Q)`, where `...` are the batch axes of the spline."""
    inside, piece = _locate(spline, z)
    value = xp.clip(_horner(piece.polynomial, piece.t), piece.polynomial[0], piece.reached)
    return xp.where(inside, value, xp.where(z < spline.edges[..., :1], 0, 1))


def pdf(spline: Spline, z: Array) -> Array:
    """Return the derivative of `cdf` with respect to z."""
    inside, piece = _locate(spline, z)
    density = _horner(_derivative(piece.polynomial), piece.t) * piece.rate
    return xp.where(inside, xp.maximum(density, 0), 0)


def slope_of_pdf(spline: Spline, z: Array) -> Array:
    """Return the derivative of `pdf` with respect to z."""
    inside, (polynomial, _, t, rate, acceleration) = _locate(spline, z)
    first = _derivative(polynomial)
    value = _horner(_derivative(first), t) * rate**2 + _horner(first, t) * acceleration
    return xp.where(inside, value, 0)


def quantile(spline: Spline, q: Array) -> Array:
    """Return the quantile z with P(Z <= z) = q for q of shape `(..., Q)`.

    The knot before z is found by bisection, and the position between two knots by Newton's method
    within a bracket.
    """
    n = spline.cdf.shape[-1] // PANELS - 1
    # The last knot with a cdf of at most q, or the first knot. An accelerator compares each q with
    # the cdf at all knots, in one kernel.
    knot = lax.platform_dependent(spline.cdf, q, cpu=_by_bisection, default=_by_counting)
    polynomial, reached = _polynomial(spline, knot)
    slope = _derivative(polynomial)

    def excess(t: Array) -> Arrays:
        return _horner(polynomial, t) - q, _horner(slope, t)

    rise = reached - polynomial[0]
    start = xp.clip((q - polynomial[0]) / xp.where(rise > 0, rise, 1), 0, 1)
    t = root(excess, xp.zeros_like(q), xp.ones_like(q), start, atol=float(xp.finfo(q.dtype).eps))
    panel = knot // (n + 1)
    return _position(spline, panel, (knot - panel * (n + 1) + t) / n)


def _by_bisection(cdf: Array, q: Array) -> Array:
    size = cdf.shape[-1]

    def halve(_: int, ends: Arrays) -> Arrays:
        low, high = ends
        middle = (low + high) // 2
        passed = xp.take_along_axis(cdf, middle, -1) <= q
        return xp.where(passed, middle, low), xp.where(passed, high, middle)

    first = (0 * q).astype(xp.int32)
    return lax.fori_loop(0, (size - 2).bit_length(), halve, (first, first + (size - 1)))[0]


def _by_counting(cdf: Array, q: Array) -> Array:
    passed = (cdf[..., None, :] <= q[..., None]).sum(-1).astype(xp.int32)
    return xp.clip(passed - 1, 0, cdf.shape[-1] - 2)


def _position(spline: Spline, panel: Array, share: Array) -> Array:
    """Return z at a fraction of the steps of a panel, the inverse of `_piece`."""
    start, stop, first, last, cut_low, cut_high = _panel(spline, panel)
    between = 1 - cut_low - cut_high
    logit = xp.sinh((first + last) * share - first)
    y = (1 / (1 + xp.exp(-logit)) - cut_low) / between
    rest = (1 / (1 + xp.exp(logit)) - cut_high) / between
    length = stop - start
    return xp.where(y < rest, start + length * y, stop - length * rest)
