"""Power analysis: sample sizes, detectable differences and power."""

from __future__ import annotations

import math
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._jax import trees
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics._validation import ArrayLike, as_number, check_level, check_size
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.estimates import Metric, normal_quantile
from jaxmetrics.intervals import Delta
from jaxmetrics.intervals.checks import check_num_samples, nan_unless
from jaxmetrics.intervals.estimation import Confidence, answer, of_samples, question_of
from jaxmetrics.intervals.functionals import Functional
from jaxmetrics.intervals.quantiles import deviation
from jaxmetrics.metrics.differences import difference as difference_of

__all__ = ["detectable_difference", "power", "required_examples", "simulated_error"]

_NARROWEST = 1e-150  # smallest half-width, whose square is not 0


def required_examples(
    metric: Metric,
    counts: ArrayLike,
    *,
    half_width: float | None = None,
    difference: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate the sample size for an interval of a given half-width, or to show a difference.

    With s the delta-method standard error for the N examples of a pilot study, whose variance falls
    as 1 / n: `n = N (z s / h)^2`, or `n = N ((z + z_power) s / d)^2` for an interval that excludes
    0 with the given power if the true difference is d. Round it up. To verify n, use
    `simulated_error`: z times the error is h, to within some percent unless classes are rare.

    n does not include the error of the pilot study: with k mistakes in it, or k examples of a class
    that matters, n is known to about a factor of `1 ± 2 / sqrt(k)`.

    Args:
        metric: a function of one `(K, K)` matrix that returns an array or a pytree of arrays.
        counts: `(..., K, K)`, of a pilot study, or expected; only their proportions matter. For a
            difference, pairs `(..., K, K, K)` from `paired_confusion_matrix`.
        half_width: h, in the units of the metric.
        difference: d, in the units of the metric, instead of a half-width.
        power: the probability of showing the difference.
        level: the confidence level.
        cluster_axis: the axis of `(..., C, K, K)` with one table per cluster, -3, or -4 for pairs.
            n and N are then numbers of clusters, and n is greater by
            `(z^3 + z) / (2 z + 2 z_power)` for Student's quantile, where z_power is 0 for a
            half-width.

    Returns:
        n, `(...)`, or a pytree of them; NaN if the error is 0 or undefined, such as without any
        mistake or disagreement.

    Raises:
        ValueError: neither or both of half_width and difference, one that is not above 0, a power
            not in ((1 - level) / 2, 1), and arguments for which `interval` raises.

    >>> import jaxmetrics as jm
    >>> required_examples(jm.accuracy, [[45, 5], [5, 45]], half_width=0.02)  # 1.96^2 .9 .1 / .02^2
    np.float64(864.33)
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> required_examples(jm.accuracy, paired, difference=0.028).round(1)
    np.float64(1000.1)
    """
    if (half_width is None) == (difference is None):
        raise ValueError(
            "give one of half_width and difference, got"
            f" half_width={half_width!r} and difference={difference!r}."
        )
    z, more_z = normal_quantile(level), 0.0
    if difference is None:
        assert half_width is not None
        effect = as_number(half_width, "half_width", above=_NARROWEST)
        errors = _errors_of_one(metric, counts, cluster_axis)
    else:
        effect = as_number(difference, "difference", above=_NARROWEST)
        more_z = power_quantile(power, level)
        errors = _errors_of_one(difference_of(metric), counts, cluster_axis)
    more = 0 if cluster_axis is None else (z**3 + z) / (z + more_z) / 2
    return trees.map(lambda s: ((z + more_z) / effect * s) ** 2 + more, errors)


def power_quantile(power: float, level: float) -> float:
    """Return the standard normal quantile of a power, which must exceed the power by chance."""
    by_chance = (1 - check_level(level)) / 2
    if not by_chance < as_number(power, "power") < 1:
        raise ValueError(
            f"power must be between {by_chance:g} (the power for a difference of 0) and 1, got"
            f" {power!r}."
        )
    return NormalDist().inv_cdf(power)


def detectable_difference(
    metric: Metric,
    paired: ArrayLike,
    num_examples: int,
    *,
    power: float = 0.8,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate the minimum detectable difference between two classifiers for a given test-set size.

    `d = (z + z_power) s sqrt(N / n)`, with s the delta-method standard error of the difference for
    the N pairs of a pilot study: if this is the true difference, its interval excludes 0 with the
    given power.

    Args:
        metric: a function of one `(K, K)` matrix that returns an array or a pytree of arrays.
        paired: `(..., K, K, K)`, from `paired_confusion_matrix`, of a pilot study; only the
            proportions matter, above all how often the two classifiers disagree.
        num_examples: number of examples n.
        power: the probability of showing the difference.
        level: the confidence level.
        cluster_axis: the axis of `(..., C, K, K, K)` with one table of pairs per cluster, -4. n and
            N are then numbers of clusters, and z is the quantile of Student's t with n - 1 degrees
            of freedom.

    Returns:
        d, `(...)`, or a pytree; NaN if the error is 0 or undefined, such as without any
        disagreement.

    Raises:
        ValueError: a power not in ((1 - level) / 2, 1), no examples, a single cluster, and
            arguments for which `compare` raises.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> detectable_difference(jm.accuracy, paired, 1000).round(3)
    np.float64(0.028)
    """
    reach = power_quantile(power, level) + _reach(num_examples, level, cluster_axis)
    errors = _errors_of_one(difference_of(metric), paired, cluster_axis, "paired")
    return trees.map(lambda s: reach * s / math.sqrt(num_examples), errors)


def power(
    metric: Metric,
    paired: ArrayLike,
    num_examples: int,
    *,
    difference: float,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate the statistical power of comparing two classifiers on a test set of a given size.

    `Φ(d / (s sqrt(N / n)) - z)`, the probability that the interval excludes 0 and has the sign of
    the true difference d; the inverse of `detectable_difference`.

    Args:
        metric: a function of one `(K, K)` matrix that returns an array or a pytree of arrays.
        paired: `(..., K, K, K)`, from `paired_confusion_matrix`, of a pilot study.
        num_examples: number of examples n.
        difference: d, in the units of the metric, of either sign. Choose one that would matter: the
            power at the difference observed in the pilot study says no more than its p-value.
            Hoenig and Heisey (2001), The American Statistician 55.
        level: the confidence level.
        cluster_axis: the axis of `(..., C, K, K, K)` with one table of pairs per cluster, -4. n is
            then the number of clusters.

    Returns:
        The power, `(...)`, or a pytree; NaN if the error is 0 or undefined, such as without any
        disagreement.

    Raises:
        ValueError: a difference of 0, and arguments for which `detectable_difference` raises.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> power(jm.accuracy, paired, 1000, difference=0.028).round(2)
    np.float64(0.8)
    >>> power(jm.accuracy, paired, 300, difference=0.028).round(2)
    np.float64(0.34)
    """
    d = abs(as_number(difference, "difference"))
    if d == 0:
        raise ValueError("difference must not be 0: no number of examples can show it.")
    reach = _reach(num_examples, level, cluster_axis)
    errors = _errors_of_one(difference_of(metric), paired, cluster_axis, "paired")
    return trees.map(lambda s: special.ndtr(d * math.sqrt(num_examples) / s - reach), errors)


def simulated_error(
    key: KeyLike,
    metric: Metric,
    counts: ArrayLike,
    num_examples: int,
    *,
    cluster_axis: int | None = None,
    num_samples: int = 2000,
) -> Any:
    """Simulate test sets of a given size, and return the standard deviation of a metric.

    It verifies a plan, which is based on derivatives: with few examples of a class a metric is not
    nearly linear, and its standard error is not `s sqrt(N / n)`.

    Args:
        key: a JAX key, an int seed or, for NumPy counts, a NumPy Generator.
        metric: a function of one `(K, K)` matrix that returns an array or a pytree of arrays;
            `difference(metric)` reads pairs.
        counts: `(..., K, K)`, of a pilot study; the test sets are drawn from its proportions.
        num_examples: number of examples n, or with clusters the number of clusters, which are drawn
            as a whole.
        cluster_axis: the axis with one table per cluster, -3, or -4 for pairs.
        num_samples: number of test sets S. With 2000 the result has a standard error of 1.6 %.

    Returns:
        Standard deviations `(...)`, or a pytree; test sets for which the metric is undefined do not
        count.

    Raises:
        ValueError: counts of another shape or negative, no examples, num_samples < 2.

    >>> import jaxmetrics as jm
    >>> pilot = [[45, 5], [5, 45]]
    >>> (1.96 * simulated_error(0, jm.accuracy, pilot, 864)).round(3)  # planned for 0.02
    np.float64(0.02)
    """
    check_size(num_examples, "num_examples")
    size = check_num_samples(num_samples)
    question = question_of(metric, counts, Delta().check, cluster_axis=cluster_axis)
    placed_key, tables = place(key, question.tables)
    function = partial(_simulated_error, n=num_examples, size=size)
    return of_samples(function, question._replace(tables=tables), placed_key, numbers=size)


def _simulated_error(metric: Functional, key: Key, n: int, size: int) -> Array:
    units = metric.of_units
    counts = units.sample.counts
    total = counts.sum()
    expected = n * divide(counts, total, xp.nan)
    return nan_unless(total > 0, deviation(units.sample.drawn(units, key, size, expected=expected)))


def _errors_of_one(
    metric: Metric, counts: ArrayLike, cluster_axis: int | None, name: str = "counts"
) -> Any:
    """Return the standard errors for a single example or cluster; NaN if nothing varies."""
    check = partial(Delta().check, name=name)
    question = question_of(metric, counts, check, cluster_axis=cluster_axis)
    return answer(question, Delta(), Confidence(0.5), summary=_error_of_one)


def _error_of_one(found: Any, samples: None, metric: Functional, reach: Confidence) -> Array:
    number = metric.of_units.sample.counts.sum()
    error = found.standard_error
    return xp.where(error > 0, error * xp.sqrt(number), xp.nan)


def _reach(num_examples: int, level: float, cluster_axis: int | None) -> float:
    """Return the half-width of an interval in standard errors."""
    as_number(num_examples, "num_examples", above=0)
    z = normal_quantile(level)
    if cluster_axis is None:
        return z
    if num_examples < 2:
        raise ValueError("num_examples must be 2 or more: a single cluster has no interval.")
    return float(student_quantile(z, np.float64(num_examples - 1)))
