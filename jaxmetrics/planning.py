"""Power analysis: sample sizes, detectable differences and power of a test set."""

from __future__ import annotations

import math
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np

from jaxmetrics._arguments.keys import Key, KeyLike, key_first, place
from jaxmetrics._arguments.single import ArrayLike, as_number, check_level, check_size
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import on_host_if_small
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, special, xp
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.estimates import Metric, normal_quantile
from jaxmetrics.intervals import Delta, Likelihood
from jaxmetrics.intervals.checks import check_num_samples, nan_unless
from jaxmetrics.intervals.estimation import Confidence, answer, of_samples, question_of
from jaxmetrics.intervals.functionals import Functional
from jaxmetrics.intervals.quantiles import deviation
from jaxmetrics.metrics.differences import difference as difference_of

__all__ = ["detectable_difference", "power", "required_examples", "simulated_error"]

_NARROWEST = 1e-150  # smallest half-width, because the square of smaller numbers is 0


@on_host_if_small
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
    """Estimate how many test examples are needed for a confidence interval or for a comparison.

    For a confidence interval of half-width h, the sample size is `n = N (z s / h)^2`. Here s is the
    standard error of the metric on the N examples of a pilot study, and z is the two-sided normal
    quantile of the level (1.96 for 95 %). To detect a difference d between two classifiers, the
    sample size is `n = N ((z + z_power) s / d)^2`, where z_power is the normal quantile of `power`
    (0.84 for 80 %). Round n up.

    If the pilot study has only k mistakes, or only k examples of a class, n may be wrong by a
    factor of about `1 ± 2 / sqrt(k)`. To verify n, call `simulated_error`: z times its result
    should be close to h.

    Args:
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
        counts: confusion matrix `(..., K, K)` of a pilot study. If `difference` is given, it is a
            paired confusion matrix `(..., K, K, K)` from `paired_confusion_matrix`.
        half_width: half-width h of the interval, in the units of the metric.
        difference: difference d to detect, in the units of the metric, instead of `half_width`.
        power: the probability that the interval excludes 0 if the true difference is d.
        level: the confidence level.
        cluster_axis: the axis of clusters (groups of correlated examples): -3 for shape
            `(..., C, K, K)`, -4 for shape `(..., C, K, K, K)`. If given, n and N are numbers of
            clusters, and n is slightly greater because of Student's quantile.

    Returns:
        n of shape `(...)`, or a dict or tuple of such arrays. n is NaN if the standard error is 0
        or undefined, for example if there are no mistakes, or if the classifiers never disagree.

    Raises:
        ValueError: for the same reasons as in `interval`, such as fractional counts, if not exactly
            one of `half_width` and `difference` is given, if this value is not above 0, or if
            `power` is not in `((1 - level) / 2, 1)`.

    >>> import jaxmetrics as jm
    >>> required_examples(jm.accuracy, [[45, 5], [5, 45]], half_width=0.02)  # 1.96^2 .9 .1 / .02^2
    np.float64(864.33)
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> required_examples(jm.accuracy, paired, difference=0.028).round(1)
    np.float64(1000.1)
    """
    if (half_width is None) == (difference is None):
        raise ValueError(
            "Exactly one of half_width and difference must be given, got"
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
    """Return the normal quantile of a power, which must exceed the power for a difference of 0."""
    by_chance = (1 - check_level(level)) / 2
    if not by_chance < as_number(power, "power") < 1:
        raise ValueError(
            f"power must be less than 1 and greater than {by_chance:g}, which is the power if"
            f" there is no difference, got {power!r}."
        )
    return NormalDist().inv_cdf(power)


@on_host_if_small
def detectable_difference(
    metric: Metric,
    paired: ArrayLike,
    num_examples: int,
    *,
    power: float = 0.8,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate the smallest difference of two classifiers that a test set of a given size detects.

    The formula is `d = (z + z_power) s sqrt(N / n)`. If the true difference is d, the confidence
    interval of the difference excludes 0 with probability `power`. Here s is the standard error of
    the difference on the N examples of a pilot study by the delta method. The two-sided normal
    quantile of the level is z (1.96 for 95 %), and z_power is the normal quantile of the power
    (0.84 for 80 %).

    Args:
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
        paired: counts `(..., K, K, K)` of a pilot study, from `paired_confusion_matrix`. Only their
            proportions matter, but they must be numbers of examples.
        num_examples: number of examples n of the planned test set.
        power: the probability that the interval excludes 0 if the true difference is d.
        level: the confidence level.
        cluster_axis: the axis of clusters (groups of correlated examples): -4 for shape
            `(..., C, K, K, K)`. If given, n and N are numbers of clusters, and z is the quantile of
            Student's t distribution with n - 1 degrees of freedom.

    Returns:
        d of shape `(...)`, or a dict or tuple of such arrays. d is NaN if the standard error is 0
        or undefined, for example if the classifiers never disagree.

    Raises:
        ValueError: if `power` is not in ((1 - level) / 2, 1), if counts are fractional without
            `cluster_axis`, if there are no examples or only one cluster, or if `compare` does not
            accept `metric` or `paired`.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> detectable_difference(jm.accuracy, paired, 1000).round(3)
    np.float64(0.028)
    """
    reach = power_quantile(power, level) + _reach(num_examples, level, cluster_axis)
    errors = _errors_of_one(difference_of(metric), paired, cluster_axis, "paired")
    return trees.map(lambda s: reach * s / math.sqrt(num_examples), errors)


@on_host_if_small
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

    Power is the probability that the confidence interval of the difference excludes 0 and has the
    same sign as the true difference d. The formula is `Φ(d / (s sqrt(N / n)) - z)`. Here s is the
    standard error of the difference on the N examples of a pilot study. Φ is the normal
    distribution function, and z is the two-sided normal quantile of the level (1.96 for 95 %).

    Args:
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
        paired: counts `(..., K, K, K)` of a pilot study, from `paired_confusion_matrix`. Only their
            proportions matter, but they must be numbers of examples.
        num_examples: number of examples n of the planned test set.
        difference: true difference d, in the units of the metric; its sign does not matter. Choose
            a difference that would matter to you. Do not pass the observed difference of the pilot
            study: its power depends only on the p-value, and tells you nothing new (Hoenig and
            Heisey, 2001, The American Statistician 55).
        level: the confidence level.
        cluster_axis: the axis of clusters (groups of correlated examples): -4 for shape
            `(..., C, K, K, K)`. If given, n and N are numbers of clusters.

    Returns:
        Power of shape `(...)`, or a dict or tuple of such arrays. Power is NaN if the standard
        error is 0 or undefined, for example if the classifiers never disagree.

    Raises:
        ValueError: if `difference` is 0, if counts are fractional without `cluster_axis`, if there
            are no examples or only one cluster, or if `compare` does not accept `metric` or
            `paired`.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> power(jm.accuracy, paired, 1000, difference=0.028).round(2)
    np.float64(0.8)
    >>> power(jm.accuracy, paired, 300, difference=0.028).round(2)
    np.float64(0.34)
    """
    d = abs(as_number(difference, "difference"))
    if d == 0:
        raise ValueError(
            "difference must not be 0, because no number of examples can show a difference of 0."
        )
    reach = _reach(num_examples, level, cluster_axis)
    errors = _errors_of_one(difference_of(metric), paired, cluster_axis, "paired")
    return trees.map(lambda s: special.ndtr(d * math.sqrt(num_examples) / s - reach), errors)


@key_first
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

    Use this function to verify a sample size from `required_examples`. Its formula assumes a
    standard error proportional to `1 / sqrt(n)`, which is not accurate for classes with few
    examples.

    Args:
        key: a JAX key, an int seed, or a NumPy Generator (only if counts are NumPy arrays).
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
            For paired counts, pass `difference(metric)`.
        counts: confusion matrix `(..., K, K)` or paired confusion matrix `(..., K, K, K)` of a
            pilot study. Its cells are drawn with probabilities proportional to the counts.
        num_examples: number of examples n of each simulated test set.
        cluster_axis: the axis of clusters (groups of correlated examples): -3 for shape
            `(..., C, K, K)`, -4 for shape `(..., C, K, K, K)`. If given, whole clusters are drawn,
            and `num_examples` is the number of clusters.
        num_samples: number of simulated test sets. With 2000 test sets, the standard error of the
            result is 1.6 % of the result.

    Returns:
        Standard deviations of shape `(...)`, or a dict or tuple of such arrays. Test sets for which
        the metric is undefined are skipped.

    Raises:
        ValueError: if a count is negative, if `counts` does not have the shape `(..., K, K)` or
            `(..., K, K, K)`, if there are no examples, or if `num_samples` is below 2.

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
    """Return the standard errors for one example or cluster; NaN if the metric does not vary."""
    check = partial(Likelihood().check, name=name)
    question = question_of(metric, counts, check, cluster_axis=cluster_axis)
    return answer(question, Delta(), Confidence(0.5), summary=_error_of_one)


def _error_of_one(found: Any, samples: None, metric: Functional, reach: Confidence) -> Array:
    number = metric.of_units.sample.counts.sum()
    error = found.standard_error
    return xp.where(error > 0, error * xp.sqrt(number), xp.nan)


def _reach(num_examples: int, level: float, cluster_axis: int | None) -> float:
    """Return the half-width of an interval, divided by the standard error."""
    as_number(num_examples, "num_examples", above=0)
    z = normal_quantile(level)
    if cluster_axis is None:
        return z
    if num_examples < 2:
        raise ValueError(
            "If cluster_axis is given, num_examples is the number of clusters. It must be at least"
            " 2, because a confidence interval cannot be computed from a single cluster."
        )
    return float(student_quantile(z, np.float64(num_examples - 1)))
