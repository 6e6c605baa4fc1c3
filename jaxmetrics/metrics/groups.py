"""Subgroup fairness: compare a metric over the axis G of counts by group, `(..., G, K, K)`."""

from __future__ import annotations

import math
from typing import Any

from jaxmetrics._applied import applied, of_extremes, reading
from jaxmetrics._arithmetic import divide
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike
from jaxmetrics.metrics.averages import A_METRIC, Metric, of_counts
from jaxmetrics.metrics.rates import recall, selection_rate

__all__ = ["demographic_parity_ratio", "equal_opportunity_ratio", "group_difference", "group_ratio"]


def group_ratio(metric: Metric) -> Metric:
    """Compute the ratio of the smallest to the largest value of a metric among groups.

    `min_g m_g / max_g m_g`, in [0, 1] for rates.

    Args:
        metric: a function of counts `(..., K, K)` that returns one number per matrix `(...)`, such
            as `accuracy` and `binary(recall)`, or one per class `(..., K)`.

    Returns:
        A function of counts `(..., G, K, K)`, made by
        `confusion_matrix(..., groups=..., num_groups=G)`, that returns `(...)` or `(..., K)`; its
        keyword arguments go to the metric. Groups without examples, and groups for which the metric
        is NaN, are skipped; NaN if no value is left or all are 0. For its interval use
        `compare_groups(metric, counts, ratio=True)`: chance alone pulls the ratio below 1, so the
        other methods refuse it.

    Raises:
        ValueError: when called, counts without an axis of groups, or a `metric` that returns
            another shape.

    >>> from jaxmetrics import accuracy, precision
    >>> groups = [[[8, 2], [1, 9]], [[4, 1], [6, 9]]]
    >>> group_ratio(precision)(groups), group_ratio(accuracy)(groups)
    (array([0.45      , 0.90909091]), np.float64(0.765))
    """
    return applied(_group_ratio, metric, A_METRIC)


def group_difference(metric: Metric) -> Metric:
    """Compute the difference between the largest and the smallest value of a metric among groups.

    `max_g m_g - min_g m_g`. `metric` is a function of counts `(..., K, K)` that returns `(...)` or
    `(..., K)`; the result is a function of counts by group, `(..., G, K, K)`. Groups without
    examples, and groups for which the metric is NaN, are skipped. For its interval use
    `compare_groups(metric, counts)`.

    >>> from jaxmetrics import binary, recall
    >>> group_difference(binary(recall))([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
    np.float64(0.3)
    """
    return applied(_group_difference, metric, A_METRIC)


def demographic_parity_ratio(counts: ArrayLike) -> Array:
    """Compute the demographic parity ratio: smallest / largest selection rate of groups, per class.

    It equals `group_ratio(selection_rate)`. `counts` by group, `(..., G, K, K)`, are made by
    `confusion_matrix(..., groups=..., num_groups=G)`; the result `(..., K)` is in [0, 1]. Source:
    Feldman et al. (2015), Certifying and removing disparate impact, KDD (the four-fifths rule asks
    for 0.8).

    >>> demographic_parity_ratio([[[8, 2], [2, 8]], [[3, 2], [1, 14]]])  # class 0: 4/20 of 10/20
    array([0.4  , 0.625])
    """
    return group_ratio(selection_rate)(counts)


def equal_opportunity_ratio(counts: ArrayLike) -> Array:
    """Compute the equal opportunity ratio: smallest / largest recall among groups, per class.

    `counts` by group are `(..., G, K, K)`, the result `(..., K)` is in [0, 1]. A group without
    examples of the class has no recall and is left out, so that the ratio is 1 if a single group is
    left (fairlearn takes the recall of such a group as 0, which makes the ratio 0). Source: Hardt,
    Price and Srebro (2016), Equality of opportunity in supervised learning, NeurIPS.

    >>> equal_opportunity_ratio([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
    array([1.        , 0.667])
    >>> equal_opportunity_ratio([[[8, 2], [0, 0]], [[4, 1], [6, 9]]])  # class 1 of one group
    array([1., 1.])
    """
    return group_ratio(recall)(counts, zero_division=xp.nan)


@reading()
@of_extremes
@of_counts
def _group_ratio(metric: Metric, counts: Array, **options: Any) -> Array:
    low, high = _group_range(metric, counts, **options)
    return divide(low, high, xp.nan)


@reading()
@of_extremes
@of_counts
def _group_difference(metric: Metric, counts: Array, **options: Any) -> Array:
    low, high = _group_range(metric, counts, **options)
    return high - low


def _group_range(metric: Metric, counts: Array, **options: Any) -> tuple[Array, Array]:
    if counts.ndim < 3 or counts.shape[-3] == 0:
        raise ValueError(
            f"group metrics need counts of shape (..., G, K, K), G >= 1, got {counts.shape}."
        )
    values = xp.asarray(metric(counts, **options))
    if values.shape not in (counts.shape[:-2], counts.shape[:-1]):
        raise ValueError(
            "group metrics take a metric with one number per matrix or per class: for counts of"
            f" shape {counts.shape} it should return {counts.shape[:-2]} or {counts.shape[:-1]},"
            f" but returned {values.shape}."
        )
    total = counts.sum((-2, -1))
    axis = -1
    if values.ndim > total.ndim:
        total, axis = total[..., None], -2
    # NaN counts, unlike undefined values, are not skipped.
    usable = (total != 0) & ~(xp.isnan(values) & ~xp.isnan(total))
    low = xp.where(usable, values, math.inf).min(axis)
    high = xp.where(usable, values, -math.inf).max(axis)
    any_usable = usable.any(axis)
    return xp.where(any_usable, low, xp.nan), xp.where(any_usable, high, xp.nan)
