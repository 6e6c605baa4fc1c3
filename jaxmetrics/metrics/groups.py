"""Subgroup fairness: ratios and differences of a metric between groups."""

from __future__ import annotations

import math
from typing import Any

from jaxmetrics._applied import applied, of_extremes, reading
from jaxmetrics._arguments.single import ArrayLike
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.namespaces import Array, Arrays, xp
from jaxmetrics.metrics.averages import A_METRIC, Metric, of_counts
from jaxmetrics.metrics.rates import recall, selection_rate

__all__ = ["demographic_parity_ratio", "equal_opportunity_ratio", "group_difference", "group_ratio"]


def group_ratio(metric: Metric) -> Metric:
    """Compute the ratio of the smallest to the largest value of a metric among groups.

    The formula is `min_g m_g / max_g m_g`, where m_g is the metric of group g. For rates the ratio
    is in [0, 1]. Groups without examples are skipped, and so are groups whose metric is NaN.

    For a confidence interval use `compare_groups(metric, counts, ratio=True)`. `interval` does not
    accept this ratio.

    Args:
        metric: a function of counts `(..., K, K)` that returns one number per matrix, such as
            `accuracy` and `binary(recall)`, or one number per class, such as `recall`.

    Returns:
        A function of counts by group `(..., G, K, K)` from
        `confusion_matrix(..., groups=..., num_groups=G)`. It returns one ratio, or one ratio per
        class, and passes keyword arguments to the metric. The ratio is NaN if all groups are
        skipped or if all values are 0.

    Raises:
        ValueError: raised by the returned function if `counts` has no axis of groups, or if
            `metric` does not return one number per matrix or per class.

    >>> from jaxmetrics import accuracy, precision
    >>> groups = [[[8, 2], [1, 9]], [[4, 1], [6, 9]]]
    >>> group_ratio(precision)(groups), group_ratio(accuracy)(groups)
    (array([0.45      , 0.90909091]), np.float64(0.765))
    """
    return applied(_group_ratio, metric, A_METRIC)


def group_difference(metric: Metric) -> Metric:
    """Compute the difference between the largest and the smallest value of a metric among groups.

    The formula is `max_g m_g - min_g m_g`, where m_g is the metric of group g. Groups without
    examples are skipped, and so are groups whose metric is NaN. For a confidence interval use
    `compare_groups(metric, counts)`.

    Args:
        metric: a function of counts `(..., K, K)` that returns one number per matrix, or one number
            per class.

    Returns:
        A function of counts by group `(..., G, K, K)` that returns one difference, or one
        difference per class.

    >>> from jaxmetrics import binary, recall
    >>> group_difference(binary(recall))([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
    np.float64(0.3)
    """
    return applied(_group_difference, metric, A_METRIC)


def demographic_parity_ratio(counts: ArrayLike) -> Array:
    """Compute the demographic parity ratio: smallest / largest selection rate among groups.

    The selection rate of a class is the fraction of the examples of a group that are predicted as
    this class. `counts` `(..., G, K, K)` is the result of
    `confusion_matrix(..., groups=..., num_groups=G)`. Returns one ratio in [0, 1] per class, of
    shape `(..., K)`. The four-fifths rule demands a ratio of at least 0.8. Source: Feldman et al.
    (2015), Certifying and removing disparate impact, KDD.

    >>> demographic_parity_ratio([[[8, 2], [2, 8]], [[3, 2], [1, 14]]])  # class 0: 4/20 of 10/20
    array([0.4  , 0.625])
    """
    return group_ratio(selection_rate)(counts)


def equal_opportunity_ratio(counts: ArrayLike) -> Array:
    """Compute the equal opportunity ratio: smallest / largest recall among groups.

    `counts` `(..., G, K, K)` is the result of `confusion_matrix(..., groups=..., num_groups=G)`.
    Returns one ratio in [0, 1] per class, of shape `(..., K)`. A group without examples of a class
    is ignored for this class, while fairlearn sets its recall to 0. If only one group has examples
    of a class, the ratio of this class is 1. Source: Hardt, Price and Srebro (2016), Equality of
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


def _group_range(metric: Metric, counts: Array, **options: Any) -> Arrays:
    if counts.ndim < 3 or counts.shape[-3] == 0:
        raise ValueError(
            f"counts must have shape (..., G, K, K) with at least one group, got {counts.shape}."
            " Pass groups= and num_groups= to confusion_matrix to make such counts."
        )
    values = xp.asarray(metric(counts, **options))
    if values.shape not in (counts.shape[:-2], counts.shape[:-1]):
        raise ValueError(
            "metric must return one number for each confusion matrix, or one number for each"
            f" class. For counts of shape {counts.shape}, metric should return an array of shape"
            f" {counts.shape[:-2]} or {counts.shape[:-1]}, but it returned {values.shape}."
        )
    total = counts.sum((-2, -1))
    axis = -1
    if values.ndim > total.ndim:
        total, axis = total[..., None], -2
    # An undefined value is skipped, but NaN in the counts makes the result NaN.
    usable = (total != 0) & ~(xp.isnan(values) & ~xp.isnan(total))
    low = xp.where(usable, values, math.inf).min(axis)
    high = xp.where(usable, values, -math.inf).max(axis)
    any_usable = usable.any(axis)
    return xp.where(any_usable, low, xp.nan), xp.where(any_usable, high, xp.nan)
