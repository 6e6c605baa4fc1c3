"""Subgroup fairness: intervals of the difference of a metric between groups of examples."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from jaxmetrics._arguments.single import ArrayLike, as_counts, check_axis, check_flag, check_level
from jaxmetrics._numerics.arithmetic import append_axes, divide
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics.estimates import Estimate, Metric, with_level
from jaxmetrics.intervals.methods import IntervalMethod, Likelihood, check_method, interval

__all__ = ["compare_groups"]


@on_host_if_small
def compare_groups(
    metric: Metric,
    counts: ArrayLike,
    *,
    method: IntervalMethod = Likelihood(),  # noqa: B008 (frozen)
    ratio: bool = False,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Estimate:
    """Compute a confidence interval of a metric's largest difference (or ratio) between groups.

    Ordinary intervals of the largest difference miss the true value too often, because the largest
    observed difference is biased upwards. This function combines the intervals of all G groups by
    MOVER, the method of variance estimates recovery, instead. Each group has the value v and the
    interval [l, u] at the level `1 - (1 - level) / (G (G - 1) / 2)` (Bonferroni correction). For
    groups i and j, the interval of `d = v_i - v_j` begins at
    `d - sqrt((v_i - l_i)^2 + (u_j - v_j)^2)` and ends at `d + sqrt((u_i - v_i)^2 + (v_j - l_j)^2)`.
    The result extends from the largest lower end to the largest upper end of all pairs. Sources:
    Zou and Donner (2008), Statistics in Medicine 27; Donner and Zou (2012), Statistical Methods in
    Medical Research 21, for ratios.

    Args:
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
            A ratio is NaN if one of its values is negative.
        counts: `(..., G, K, K)` for G >= 2 groups, from `confusion_matrix(..., groups=...)`.
        method: the interval method for the interval of each group.
        ratio: if True, estimate the ratio of the smallest to the largest group value (see
            `group_ratio`) instead of the largest difference.
        level: the confidence level.
        cluster_axis: the axis of clusters (groups of correlated examples): -4 for shape
            `(..., C, G, K, K)`. If clusters have examples of several groups, the interval may be
            too wide.

    Returns:
        `Estimate`, or a dict or tuple of them, like the result of `metric`. The standard error is
        NaN. A group is skipped if it has no examples or no interval. The result is NaN if fewer
        than two groups remain.

    Raises:
        ValueError: if `counts` is not of shape `(..., G, K, K)` with G >= 2, if `level` lies
            outside of (0, 1), or if `method` does not accept the counts.

    >>> import jaxmetrics as jm
    >>> groups = [[[80, 20], [10, 90]], [[40, 10], [25, 75]]]
    >>> compare_groups(jm.binary(jm.recall), groups)
    0.150 [0.043, 0.255]
    >>> compare_groups(jm.binary(jm.recall), groups, ratio=True)
    0.833 [0.723, 0.949]
    """
    check_method(method)
    check_flag(ratio, "ratio")
    tables, cluster_axis = _groups_last(as_counts(counts), cluster_axis)
    within = tuple(range(-2 if cluster_axis is None else -3, 0))
    has_examples = tables.sum(within) > 0
    wide = pairwise_level(level, has_examples.shape[-1])
    estimates = interval(metric, tables, method=method, level=wide, cluster_axis=cluster_axis)

    def of_groups(groups: Estimate) -> Estimate:
        counted = append_axes(has_examples, groups.value.ndim - has_examples.ndim)
        known = counted & ~xp.isnan(groups.low)
        groups = replace(groups, value=xp.where(known, groups.value, xp.nan))
        first = trees.map(lambda x: xp.moveaxis(x, has_examples.ndim - 1, 0), groups)
        return greatest_difference(first, ratio=bool(ratio))

    found = trees.map(of_groups, estimates, is_leaf=lambda x: isinstance(x, Estimate))
    return with_level(found, level, "mover")


def _groups_last(tables: Array, cluster_axis: int | None) -> tuple[Array, int | None]:
    """Move the axis of clusters behind the axis of groups: `(..., G, C, K, K)`."""
    axis = None if cluster_axis is None else check_axis(cluster_axis, "cluster_axis")
    if axis is not None and axis >= 0:
        axis -= tables.ndim
    is_valid = axis is None or -tables.ndim <= axis <= -4
    if tables.ndim < 3 or tables.shape[-3] < 2 or not is_valid:
        raise ValueError(
            "counts must have shape (..., G, K, K) with at least two groups or, if there are"
            " clusters, shape (..., C, G, K, K) together with cluster_axis=-4. counts has the"
            f" shape {tables.shape} and cluster_axis is {cluster_axis}."
        )
    return (tables, None) if axis is None else (xp.moveaxis(tables, axis, -3), -3)


def pairwise_level(level: float, num_groups: int) -> float:
    """Return the level of one pair at which the intervals of all pairs of groups hold jointly."""
    return 1 - (1 - check_level(level)) / math.comb(num_groups, 2)


@compiled
def greatest_difference(groups: Estimate, *, ratio: bool = False) -> Estimate:
    """Return the largest difference between groups or, if `ratio` is True, the smallest ratio.

    `groups` are estimates `(G, ...)` at `pairwise_level`. The result is NaN if fewer than two
    groups have a value. A ratio is also NaN if a value is negative.
    """
    v, low, high = groups.value, groups.low, groups.high
    if ratio:
        v = xp.where((v < 0).any(0), xp.nan, v)
    known = ~xp.isnan(v)
    least, largest = xp.where(known, v, xp.inf).min(0), xp.where(known, v, -xp.inf).max(0)
    same = append_axes(np.eye(len(v), dtype=bool), v.ndim - 1)
    is_pair = known[:, None] & known & ~same
    if ratio:
        below, above = v**2 - (v - low) ** 2, v**2 - (high - v) ** 2
        product = v[:, None] * v
        root = xp.sqrt(xp.maximum(product**2 - below[:, None] * above, 0))
        lower = xp.where(is_pair, divide(below[:, None], product + root), 1)
        # The upper end of i / j is one over the lower end of j / i.
        low, high = lower.min((0, 1)), 1 / lower.max((0, 1))
        value = divide(least, largest, xp.nan)
    else:
        lower = v[:, None] - v - xp.hypot((v - low)[:, None], high - v)
        lower = xp.where(is_pair, lower, 0)
        # The upper end of i - j is minus the lower end of j - i.
        low, high = lower.max((0, 1)), -lower.min((0, 1))
        value = largest - least
    enough = known.sum(0) > 1
    value, low, high = (xp.where(enough, x, xp.nan) for x in (value, low, high))
    return Estimate(value, low, high, xp.full_like(value, xp.nan), groups.num_undefined.sum(0))
