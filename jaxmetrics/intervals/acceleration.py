"""The acceleration of BCa: how much an example can change a metric.

Efron (1987), Better bootstrap confidence intervals, Journal of the American Statistical
Association 82.
"""

from __future__ import annotations

import enum
import math
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxmetrics._arithmetic import append_axes, divide, safe_sqrt
from jaxmetrics._namespaces import Array, is_known, xp
from jaxmetrics.estimates import Metric
from jaxmetrics.intervals.derivatives import jacobian, map_cells
from jaxmetrics.intervals.replicates import map_tables

__all__: list[str] = []

# Leaving one of more examples out changes a metric by little more than the rounding of float32.
_FEW_EXAMPLES = 10_000


class Influence(enum.Enum):
    """How the influence of an example on a metric is found.

    The jackknife leaves it out. Of many examples that is lost in rounding, but the derivative, to
    which it tends, is not.
    """

    JACKKNIFE = enum.auto()
    DERIVATIVE = enum.auto()
    BY_SIZE = enum.auto()  # both, and the choice is made where the counts are known


def influence_for(counts: Array) -> Influence:
    """Choose for counts `(..., K, W)`, which jit may hide."""
    if not is_known(counts):
        return Influence.BY_SIZE
    few = np.asarray(counts).sum((-2, -1)) < _FEW_EXAMPLES
    if few.all():
        return Influence.JACKKNIFE
    return Influence.BY_SIZE if few.any() else Influence.DERIVATIVE


def accelerations(
    function: Metric, counts: Array, numbers: int, stratified: bool, influence: Influence
) -> Any:
    """Return the acceleration of each value of a function of cells `(K, W)`.

    `numbers` is how many the function computes from one table, which bounds the memory.
    """
    k, width = counts.shape[-2:]
    if k * width * numbers > 2**26:  # leaving each out would take longer than the replicates
        influence = Influence.DERIVATIVE
    if influence is not Influence.JACKKNIFE:
        slope = partial(_of_one_table, partial(jacobian, function, numbers=numbers))
        values = slopes = map_tables(slope, counts, numbers)
    if influence is not Influence.DERIVATIVE:
        jackknife = partial(_of_one_table, partial(_jackknife, function, numbers))
        values = jackknifed = map_tables(jackknife, counts, numbers * k * width)
    if influence is Influence.BY_SIZE:
        few = counts.sum((-2, -1)) < _FEW_EXAMPLES
        values = jax.tree.map(
            lambda j, d: xp.where(append_axes(few, j.ndim - few.ndim), j, d), jackknifed, slopes
        )

    return _accelerations_of_leaves(values, counts, stratified)


def _accelerations_of_leaves(influences: Any, counts: Array, stratified: bool) -> Any:
    """Apply `acceleration_of` to all leaves in one array, so that it is compiled once."""
    k, width = counts.shape[-2:]
    leaves, structure = jax.tree.flatten(influences)
    sizes = [math.prod(u.shape[counts.ndim - 2 : -2]) for u in leaves]
    flat = [
        u.reshape((*counts.shape[:-2], size, k, width))
        for u, size in zip(leaves, sizes, strict=True)
    ]
    together = acceleration_of(xp.concatenate(flat, -3), counts[..., None, :, :], stratified)
    pieces = zip(xp.split(together, np.cumsum(sizes)[:-1], -1), leaves, strict=True)
    return jax.tree.unflatten(structure, [piece.reshape(u.shape[:-2]) for piece, u in pieces])


def _jackknife(function: Metric, numbers: int, table: Array) -> Any:
    """Return the negative of the metric without one example of each cell.

    It differs from the influence by a constant, which does not matter.
    """
    without = map_cells(lambda one: function(xp.maximum(table - one, 0)), table, numbers)
    return jax.tree.map(xp.negative, without)


def _of_one_table(function: Metric, table: Array) -> Any:
    """Return `function` of one table, and refuse a batch, which the host would try."""
    if table.ndim != 2:
        raise ValueError(f"one table at a time, got {table.shape}.")
    return function(table)


def acceleration_of(influence: Array, counts: Array, stratified: bool = False) -> Array:
    """Return `sum U^3 / (6 (sum U^2)^1.5)`.

    U is the influence `(..., K, W)` of an example in each cell, less its mean over all examples or,
    if stratified, over those of the row.
    """
    axes = (-1,) if stratified else (-2, -1)
    known = xp.where(xp.isfinite(influence) & (counts > 0), influence, 0)
    mean = divide((counts * known).sum(axes, keepdims=True), counts.sum(axes, keepdims=True))
    u = xp.where((counts > 0) & ~is_same(known, mean), known - mean, 0)
    u = divide(u, xp.abs(u).max((-2, -1), keepdims=True))
    return divide((counts * u**3).sum((-2, -1)), 6 * safe_sqrt((counts * u**2).sum((-2, -1))) ** 3)


def is_same(samples: Array, value: Array) -> Array:
    """Return where both are equal up to the rounding of two programs that compute the same."""
    return xp.abs(samples - value) <= 8 * xp.finfo(value.dtype).eps * xp.abs(value)
