"""Compare groups: functions of metrics over the axis G of counts `(..., G, K, K)`."""

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
    """Divide the smallest value of a metric among groups by the largest.

    `min_g m_g / max_g m_g`, in [0, 1] for rates: a function of counts `(..., G, K, K)`, which
    `confusion_matrix(..., groups=..., num_groups=G)` gives.

    Args:
        metric: a function of counts `(..., K, K)` that returns one number per matrix `(...)`, as
            `accuracy` and `binary(recall)` do, or one per class `(..., K)`.

    Returns:
        A function of counts `(..., G, K, K)` that returns `(...)`, or `(..., K)`; its keyword
        arguments go to the metric. Groups without examples, and groups where the metric is NaN, are
        skipped; NaN if no value is left or all are 0. `compare_groups(metric, counts, ratio=True)`
        has its interval; chance alone takes the ratio away from 1, so that other methods refuse it.

    Raises:
        ValueError: when called, if counts have no axis of groups or `metric` returns something
            else.

    >>> from jaxmetrics import accuracy, precision
    >>> groups = [[[8, 2], [1, 9]], [[4, 1], [6, 9]]]
    >>> group_ratio(precision)(groups), group_ratio(accuracy)(groups)
    (array([0.45      , 0.90909091]), np.float64(0.765))
    """
    return applied(_group_ratio, metric, A_METRIC)


def group_difference(metric: Metric) -> Metric:
    """Subtract the smallest value of a metric among groups from the largest.

    `max_g m_g - min_g m_g`; `compare_groups(metric, counts)` has its interval. Otherwise as
    `group_ratio`.

    >>> from jaxmetrics import binary, recall
    >>> group_difference(binary(recall))([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
    np.float64(0.3)
    """
    return applied(_group_difference, metric, A_METRIC)


def demographic_parity_ratio(counts: ArrayLike) -> Array:
    """Divide the smallest selection rate among groups by the largest, per class.

    It is `group_ratio(selection_rate)`: from counts `(..., G, K, K)`, as
    `confusion_matrix(..., groups=..., num_groups=G)` gives them, to `(..., K)`, in [0, 1]. Source:
    Feldman et al. (2015), Certifying and removing disparate impact, KDD (the four-fifths rule asks
    for 0.8).

    >>> demographic_parity_ratio([[[8, 2], [2, 8]], [[3, 2], [1, 14]]])  # class 0: 4/20 of 10/20
    array([0.4  , 0.625])
    """
    return group_ratio(selection_rate)(counts)


def equal_opportunity_ratio(counts: ArrayLike) -> Array:
    """Divide the smallest recall among groups by the largest, per class.

    It is over the groups where the class occurs in truth: a group without it has no recall and is
    left out, so that the ratio may be 1 of one group alone (fairlearn takes its recall for 0, and
    the ratio is 0). Otherwise as `group_ratio`. Source: Hardt, Price and Srebro (2016), Equality of
    opportunity in supervised learning, NeurIPS.

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
