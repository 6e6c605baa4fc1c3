"""Comparisons of groups: functions of per-class rates over the axis G of counts `(..., G, K, K)`."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxmetrics._arrays import ArrayLike, divide
from jaxmetrics.metrics.averages import Average, Metric, per_class
from jaxmetrics.metrics.rates import recall, selection_rate

__all__ = [
    "demographic_parity_ratio",
    "equal_opportunity_ratio",
    "group_difference",
    "group_ratio",
]


def group_ratio(rate: Metric) -> Metric:
    """Smallest over largest value of a rate among the groups, in [0, 1], as a function of counts `(..., G, K, K)`.

    Returns `(..., K)`, one ratio per class; `binary(group_ratio(recall))` picks the positive one. Groups whose rate is NaN
    are skipped, and so are groups without examples; NaN if no rate is left or all are 0. Keyword arguments go to the rate.

    >>> from jaxmetrics import precision
    >>> group_ratio(precision)([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
    Array([0.45, 0.909], dtype=float32)
    """
    return Average(_group_ratio, rate)


def group_difference(rate: Metric) -> Metric:
    """Largest minus smallest value of a rate among the groups, as a function of counts. Otherwise as `group_ratio`.

    >>> group_difference(recall)([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
    Array([0. , 0.3], dtype=float32)
    """
    return Average(_group_difference, rate)


def demographic_parity_ratio(counts: ArrayLike) -> jax.Array:
    """Smallest over largest selection rate among the groups, per class: `group_ratio(selection_rate)`.

    From counts `(..., G, K, K)`, as `confusion_matrix(..., groups=..., num_groups=G)` gives them, to `(..., K)`, in [0, 1].
    Source: Feldman et al. (2015), Certifying and removing disparate impact, KDD (the four-fifths rule asks for 0.8).

    >>> demographic_parity_ratio([[[8, 2], [2, 8]], [[3, 2], [1, 14]]])  # class 0: 4/20 of 10/20
    Array([0.4  , 0.625], dtype=float32)
    """
    return group_ratio(selection_rate)(counts)


def equal_opportunity_ratio(counts: ArrayLike) -> jax.Array:
    """Smallest over largest recall among the groups where the class occurs in truth, per class; as `group_ratio`.

    Source: Hardt, Price and Srebro (2016), Equality of opportunity in supervised learning, NeurIPS.

    >>> equal_opportunity_ratio([[[8, 2], [1, 9]], [[4, 1], [6, 9]]])
    Array([1.        , 0.667], dtype=float32)
    """
    return group_ratio(recall)(counts, zero_division=jnp.nan)


def _group_ratio(rate: Metric, counts: jax.Array, **options: Any) -> jax.Array:
    low, high = _group_range(rate, counts, **options)
    return divide(low, high, jnp.nan)


def _group_difference(rate: Metric, counts: jax.Array, **options: Any) -> jax.Array:
    low, high = _group_range(rate, counts, **options)
    return high - low


def _group_range(rate: Metric, counts: jax.Array, **options: Any) -> tuple[jax.Array, jax.Array]:
    if counts.ndim < 3:
        raise ValueError(f"group metrics need counts of shape (..., G, K, K), got {counts.shape}.")
    rates = per_class(rate, counts, **options)
    usable = (counts != 0).any((-2, -1))[..., None] & ~jnp.isnan(rates)
    low = jnp.where(usable, rates, math.inf).min(-2)
    high = jnp.where(usable, rates, -math.inf).max(-2)
    any_usable = usable.any(-2)
    return jnp.where(any_usable, low, jnp.nan), jnp.where(any_usable, high, jnp.nan)
