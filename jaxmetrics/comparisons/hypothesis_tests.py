"""Significance tests and intervals of the difference of two classifiers on the same examples."""

from __future__ import annotations

from collections import namedtuple
from functools import partial
from typing import Any, Literal

import numpy as np

from jaxmetrics._arguments.keys import Key, KeyLike, key_first, place
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_counts,
    as_float,
    check_option,
    check_tables,
    non_negative,
)
from jaxmetrics._numerics.arithmetic import argmax, deviance, divide, rounding, safe_sqrt, stirling
from jaxmetrics._numerics.roots import root
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, dispatched, lax, special, xp
from jaxmetrics._sums.cell_sums import diagonal
from jaxmetrics._text.printing import Printed
from jaxmetrics.betas.distributions import betainc
from jaxmetrics.clusters import as_clusters, number_of_clusters
from jaxmetrics.estimates import Estimate, Metric, computed_estimate, normal_quantile, with_level
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.checks import (
    MOST_EXAMPLES,
    check_counts,
    check_num_samples,
    check_whole,
    nan_unless,
)
from jaxmetrics.intervals.estimation import of_samples, question_of
from jaxmetrics.intervals.functionals import Functional
from jaxmetrics.metrics.differences import difference

__all__ = [
    "HypothesisTest",
    "mcnemar",
    "no_information_test",
    "paired_difference_interval",
    "permutation_test",
]


class HypothesisTest(Printed, namedtuple("_HypothesisTest", "statistic p_value")):
    """Result of a hypothesis test.

    Attributes:
        statistic: `(...)`, the test statistic, as defined by the test function.
        p_value: `(...)`, the p-value in [0, 1], two-sided except for `no_information_test`. By
            default, `mcnemar` computes the mid-p value.

    >>> mcnemar([[23, 15], [19, 31]])
    statistic 15.000, p-value 0.500
    """

    __slots__ = ()
    _plural = "tests"


@on_host_if_small
@compiled
def mcnemar(
    paired: ArrayLike,
    *,
    method: Literal["exact", "mid-p", "corrected", "asymptotic"] | None = None,
    cluster_axis: int | None = None,
) -> HypothesisTest:
    """Perform McNemar's test: are classifiers A and B correct equally often?

    Let b be the number of examples for which only A is correct, and c the number of examples for
    which only B is correct. Under the null hypothesis, b has the same distribution as
    `X ~ Binomial(b + c, 1/2)`. The methods are:

    - `"exact"`: the p-value is `min(1, 2 P(X <= min(b, c)))`. The statistic is min(b, c).
    - `"mid-p"`: like `"exact"`, but `P(X = min(b, c))` is multiplied by 1/2. This method is less
      conservative than `"exact"` (Fagerland, Lydersen and Laake, 2013, BMC Medical Research
      Methodology 13).
    - `"asymptotic"`: the statistic `(b - c)^2 / (b + c)` is compared with the chi-square
      distribution with one degree of freedom (McNemar, 1947, Psychometrika 12).
    - `"corrected"`: like `"asymptotic"`, but the statistic is `(|b - c| - 1)^2 / (b + c)` (Edwards'
      continuity correction).

    If there are C clusters of correlated examples, the statistic is
    `((C - 1) / C) (sum_k d_k)^2 / sum_k d_k^2`, where d_k is b - c in cluster k. It has the same
    chi-square distribution. Sources: Obuchowski (1998), Statistics in Medicine 17; Yang, Sun and
    Hardin (2010), Biometrical Journal 52.

    Args:
        paired: counts `(..., K, K, K)` from `paired_confusion_matrix`, or one `(2, 2)` table
            `[[both correct, only A], [only B, both wrong]]`.
        method: `"mid-p"` by default. If there are clusters, only `"asymptotic"` is available.
        cluster_axis: the axis of clusters (groups of correlated examples): -4 for shape
            `(..., C, K, K, K)`.

    Returns:
        `HypothesisTest` of shape `(...)`. If b + c = 0, the p-value is 1.

    Raises:
        ValueError: if the shape of `paired` is neither `(..., K, K, K)` nor `(2, 2)`, if counts are
            negative or fractional (under jit, the result is NaN instead), if the method is unknown,
            or if there are clusters and the method is not `"asymptotic"`.

    >>> test = mcnemar([[23, 15], [19, 31]], method="asymptotic")
    >>> test.statistic.round(5), test.p_value.round(5)
    (np.float64(0.47059), np.float64(0.49272))
    """
    if method is not None:
        check_option(method, "method", ("exact", "mid-p", "corrected", "asymptotic"))
    if cluster_axis is not None:
        if method not in (None, "asymptotic"):
            raise ValueError(
                f"method must be 'asymptotic' if cluster_axis is given, got {method!r}. Leave out"
                " method, because 'asymptotic' is then the default."
            )
        cubes = as_counts(paired, "paired", ndim=3)
        clusters = as_clusters(cubes, cluster_axis, table_ndim=3)
        only_a, only_b, valid = discordant(clusters)
        gaps, number = only_a - only_b, number_of_clusters(clusters, table_ndim=3)
        valid = valid.all(-1) & (number > 1)
        statistic = divide(gaps.sum(-1) ** 2, (gaps**2).sum(-1)) * divide(number - 1.0, number)
    else:
        only_a, only_b, valid = discordant(_as_numbers(paired))
        total, gap = only_a + only_b, xp.abs(only_a - only_b)
        if method not in ("asymptotic", "corrected"):
            fewer = xp.minimum(only_a, only_b)
            mid_p, exactly = _fair_coin(fewer, total)
            p_value = mid_p + (exactly if method == "exact" else 0)
            return _test_if(valid, fewer, xp.where(gap == 0, 1, xp.clip(p_value, 0, 1)))
        excess = xp.maximum(gap - 1, 0) if method == "corrected" else gap
        statistic = divide(excess**2, total)
    return _test_if(valid, statistic, special.erfc(xp.sqrt(statistic / 2)))


def _test_if(valid: Array, statistic: Array, p_value: Array) -> HypothesisTest:
    """Return the test, or NaN where counts are invalid."""
    return HypothesisTest(*(xp.where(valid, x, xp.nan) for x in (statistic, p_value)))


@on_host_if_small
@compiled
def no_information_test(counts: ArrayLike) -> HypothesisTest:
    """Test whether accuracy exceeds the no-information rate, the share of the most common class.

    Accuracy and the shares of the classes are estimated from the same examples. So the classifier
    is compared with a classifier that always predicts class j, for each class j, by a one-sided
    sign test (McNemar's test). Let b be the number of correct predictions in other classes, and c
    the number of wrong predictions in class j. Accuracy minus the share of class j is
    `(b - c) / n`. The mid-p value is

        P(X > b) + P(X = b) / 2,    X ~ Binomial(b + c, 1/2).

    The returned p-value is the mid-p value for the class with the least `(b - c) / sqrt(b + c)`.
    Accuracy must exceed the share of each class, so the p-value needs no correction for the choice
    of the class (intersection-union test: Berger, 1982, Technometrics 24). If two classes are
    almost equally common, the test is conservative.

    In contrast, the R package caret (Kuhn, 2008, Journal of Statistical Software 28) tests accuracy
    by a binomial test, as if the observed share of the most common class were known, and rejects
    too often if it is not. If the shares are known, for example because the test set is balanced by
    design, compare the interval of accuracy with the known share.

    Args:
        counts: confusion matrix `(..., K, K)` of independent examples.

    Returns:
        `HypothesisTest` of shape `(...)`, whose `statistic` is the accuracy. If all predictions are
        the same class, the p-value is at least 1/2. The result is NaN if there are no examples.
        Under jit, negative and fractional counts give NaN, too.

    Raises:
        TypeError, ValueError: if counts are not numbers, if they are negative or fractional, or if
            their shape is not `(..., K, K)`.

    >>> test = no_information_test([[48, 12], [6, 34]])  # b = 34, c = 12
    >>> test.statistic, test.p_value.round(5)
    (np.float64(0.82), np.float64(0.00054))
    """
    c = check_whole(as_counts(counts))
    right, support = diagonal(c), c.sum(-1)
    hits, n = right.sum(-1), support.sum(-1)
    gap = hits[..., None] - support
    number = gap + 2 * (support - right)  # b - c, and b + c
    z = gap / xp.sqrt(xp.where(number > 0, number, 1))
    least = xp.arange(c.shape[-1]) == argmax(-z)[..., None]
    gap, number = (xp.where(least, x, 0).sum(-1) for x in (gap, number))
    # The mid-p value is the mean of I(b, c + 1) and I(b + 1, c), which is I(b + 1, c + 1) at 1/2.
    p_value = betainc((number + gap) / 2 + 1, (number - gap) / 2 + 1, 0.5)
    valid = (c >= 0).all((-2, -1)) & (n > 0)
    return _test_if(valid, divide(hits, n), p_value)


def _as_numbers(paired: ArrayLike) -> Array:
    """Return numbers of examples, `(..., K, K, K)` or `(2, 2)`; other numbers raise an error."""
    table = as_float(paired, "paired")
    if table.shape != (2, 2):
        check_tables(table, "paired", ndim=3)
    return check_whole(non_negative(table, "paired"), "paired", table_ndim=min(table.ndim, 3))


def discordant(paired: Array) -> tuple[Array, Array, Array]:
    """Return how often only A or only B is correct, and whether all counts are >= 0.

    A negative count raises an error, except under jit.
    """
    cube = non_negative(paired, "paired")
    if cube.shape == (2, 2):
        return cube[0, 1], cube[1, 0], (cube >= 0).all()
    check_tables(cube, "paired", ndim=3)
    right = xp.eye(cube.shape[-1], dtype=bool)
    a, b, axes = right[:, :, None], right[:, None, :], (-3, -2, -1)
    only_a, only_b = (xp.where(mask, cube, 0).sum(axes) for mask in (a & ~b, b & ~a))
    return only_a, only_b, (cube >= 0).all(axes)


def _fair_coin_of_host(heads: Array, tosses: Array) -> tuple[Array, Array]:
    """Return `2 P(X < heads) + P(X = heads)` and `P(X = heads)` for X heads of a fair coin.

    `heads` must be at most `tosses / 2`. The distribution function is an incomplete beta integral.
    """
    up_to = betainc(tosses - heads, heads + 1, 0.5)
    below = xp.where(heads > 0, betainc(tosses - heads + 1, xp.maximum(heads, 1), 0.5), 0)
    return below + up_to, up_to - below


def _fair_coin_of_device(heads: Array, tosses: Array) -> tuple[Array, Array]:
    """Return the same two values as `_fair_coin_of_host`, for JAX arrays.

    The relative error is 1e-5 in float32 and 1e-8 in float64, also for small probabilities. For
    more than a million tosses, the first value is computed from the normal distribution, which is
    equally accurate for z < 5.
    """
    relative = divide(heads - tosses / 2, tosses / 2)
    unlikeliness = tosses / 2 * (deviance(relative) + deviance(-relative))
    ratio = stirling(tosses - heads) / stirling(tosses)
    spread = stirling(heads) * ratio
    probability = xp.exp(-unlikeliness) / xp.sqrt(2 * np.pi * spread)
    few = tosses <= 2.0**20
    of_few = 2 * probability * _half_and_below(xp.where(few, heads, 0), tosses)
    normal = special.ndtr(divide(2 * heads - tosses, xp.sqrt(tosses)))
    return xp.where(few, of_few, 2 * normal), probability


def _half_and_below(heads: Array, tosses: Array) -> Array:
    """Return `1/2 + P(X < heads) / P(X = heads)`, from the ratios of neighbouring probabilities."""

    def add(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, term, total = state
        term = term * xp.maximum(heads - i, 0) / (tosses - heads + 1 + i)
        return i + 1, term, total + term

    one = xp.ones_like(heads)
    first = xp.zeros((), heads.dtype), one, one / 2
    return lax.while_loop(lambda state: (state[1] > 1e-9 * state[2]).any(), add, first)[2]


_fair_coin = dispatched(_fair_coin_of_host, lambda: _fair_coin_of_device)


@key_first
def permutation_test(
    key: KeyLike,
    metric: Metric,
    paired: ArrayLike,
    *,
    num_samples: int = 10_000,
    cluster_axis: int | None = None,
) -> Any:
    """Perform a paired permutation test: do classifiers A and B differ in a metric?

    In each permutation, the predictions of A and B for each example are swapped with probability
    1/2. The p-value is `(1 + #{|d*| >= |d|}) / (1 + S)`. Here d is the observed difference, d* are
    the differences after permutation, and S is the number of permutations for which the metric is
    defined. Source: Edgington and Onghena (2007), Randomization Tests.

    Args:
        key: a JAX key, an int seed, or a NumPy Generator (only if counts are NumPy arrays).
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
        paired: numbers of examples `(..., K, K, K)` from `paired_confusion_matrix`.
        num_samples: the number of random permutations.
        cluster_axis: the axis of clusters (groups of correlated examples): -4 for shape
            `(..., C, K, K, K)`. All predictions for a cluster are swapped together.

    Returns:
        `HypothesisTest`, or a dict or tuple of them, like the result of `metric`. The `statistic`
        is the difference A - B. The p-value is at least `1 / (1 + S)`.

    Raises:
        ValueError: if `paired` is not of shape `(..., K, K, K)`, if counts are negative or
            fractional, or if `num_samples` is below 2.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a, y_pred_b = [0, 0, 1, 1] * 10, [0, 0, 1, 1] * 10, [0, 1, 1, 0] * 10
    >>> paired = jm.paired_confusion_matrix(y_true, y_pred_a, y_pred_b)
    >>> permutation_test(0, jm.accuracy, paired).p_value < 0.001
    np.True_
    """
    size = check_num_samples(num_samples)

    def check(counts: Array, *, table_ndim: int, is_clustered: bool) -> Array:
        return check_counts(counts, "paired", table_ndim=table_ndim, most=MOST_EXAMPLES)

    question = question_of(difference(metric), paired, check, cluster_axis=cluster_axis)
    placed_key, tables = place(key, question.tables)
    question = question._replace(tables=tables)
    return of_samples(partial(_permuted, size=size), question, placed_key, numbers=size)


def _permuted(gap: Functional, key: Key, size: int) -> HypothesisTest:
    sample = gap.sample
    tables = sample.tables(sample.counts)
    k, (of_a, of_b) = tables.shape[-1], gap.row(tables)

    def after_swaps(drawn: Array) -> Array:
        kept = sample.of_units(drawn)
        others = (sample.counts - kept).reshape((*kept.shape[:-2], k, k, k))
        return gap(kept + xp.swapaxes(others, -2, -1).reshape(kept.shape))

    if sample.clusters is None:
        samples = _swapped_examples(key, gap, size, k)
    else:
        samples = sample.units.drawn(after_swaps, key, size, sampler=replicates.halved)
    as_far = xp.abs(samples) >= xp.abs(gap.values) - 2 * rounding(of_a, of_b)
    p_value = (1 + as_far.sum(0)) / (1 + xp.isfinite(samples).sum(0))
    test = HypothesisTest(gap.values, xp.where(xp.isfinite(gap.values), p_value, xp.nan))
    return nan_unless(sample.is_valid & (sample.units.counts.sum() > 1), test)


def _swapped_examples(key: Key, gap: Functional, size: int, k: int) -> Array:
    """Return the differences after A and B are swapped at random in each example."""
    # For each truth, pairs of different predictions a < b, their reverse, and equal predictions.
    cube, (a, b) = gap.sample.counts.reshape((k, k, k)), np.triu_indices(k, 1)
    both, equal = cube[:, a, b] + cube[:, b, a], xp.diagonal(cube, axis1=1, axis2=2)
    order = np.argsort(np.concatenate([a * k + b, b * k + a, np.arange(k) * (k + 1)]))

    def after_swaps(kept: Array) -> Array:
        alike = xp.broadcast_to(equal, (*kept.shape[:-1], k))
        pairs = xp.take(xp.concatenate([kept, both - kept, alike], -1), order, -1)
        return gap(pairs.reshape((*kept.shape[:-2], *gap.sample.counts.shape)))

    return gap.sample.drawn(after_swaps, key, size, sampler=replicates.halved, expected=both)


@on_host_if_small
def paired_difference_interval(
    paired: ArrayLike,
    *,
    level: float = 0.95,
    method: Literal["tango", "bonett_price"] = "tango",
) -> Estimate:
    """Compute a confidence interval of the difference of two accuracies on the same examples.

    Of n examples, b are predicted correctly only by classifier A, and c only by classifier B. The
    difference of the accuracies, A - B, is `(b - c) / n`. The methods are:

    - `"tango"`: score interval (Tango, 1998, Statistics in Medicine 17). It contains all
      differences δ with `(b - c - nδ)^2 <= z^2 n (2q + δ (1 - δ))`. Here z is the two-sided normal
      quantile of the level, and q is the maximum likelihood estimate of P(only B is correct) given
      δ.
    - `"bonett_price"`: `p - q ± z sqrt((p + q - (p - q)^2) / (n + 2))`, clipped to [-1, 1], where
      `p = (b + 1) / (n + 2)` and `q = (c + 1) / (n + 2)` (Bonett and Price, 2012, Journal of
      Educational and Behavioral Statistics 37).

    Args:
        paired: counts `(..., K, K, K)` from `paired_confusion_matrix`, or one `(2, 2)` table
            `[[both correct, only A], [only B, both wrong]]`.
        level: the confidence level.
        method: `"tango"` or `"bonett_price"`.

    Returns:
        `Estimate` of shape `(...)`, with ends in [-1, 1]. The `standard_error` is
        `sqrt(b + c - (b - c)^2 / n) / n`. If there are no examples, the value is NaN, and the
        interval is [-1, 1].

    Raises:
        ValueError: if the shape of `paired` is neither `(..., K, K, K)` nor `(2, 2)`, if counts are
            negative or fractional (under jit, the result is NaN instead), if `level` lies outside
            of (0, 1), or if the method is unknown.

    >>> paired_difference_interval([[1, 1], [7, 12]])
    -0.286 [-0.517, -0.026]
    """
    check_option(method, "method", ("tango", "bonett_price"))
    found = _paired_difference_interval(paired, normal_quantile(level), method=method)
    return with_level(found, level, method)


@compiled
def _paired_difference_interval(paired: ArrayLike, z: float, *, method: str) -> Estimate:
    table = _as_numbers(paired)
    only_a, only_b, valid = discordant(table)
    n = table.sum() if table.shape == (2, 2) else table.sum((-3, -2, -1))
    p, q = (xp.where(valid, divide(x, n), xp.nan) for x in (only_a, only_b))
    if method == "tango":
        low, high = p - q - _tango_reach(q, p, n, z), p - q + _tango_reach(p, q, n, z)
    else:
        more_p, more_q = ((n * x + 1) / (n + 2) for x in (p, q))
        gap = more_p - more_q
        reach = z * xp.sqrt((more_p + more_q - gap**2) / (n + 2))
        low, high = xp.maximum(gap - reach, -1), xp.minimum(gap + reach, 1)
    low, high = (xp.where((n == 0) & valid, end, x) for end, x in ((-1, low), (1, high)))
    error = safe_sqrt(divide(p + q - (p - q) ** 2, n, xp.nan))
    return computed_estimate(xp.where(n == 0, xp.nan, p - q), low, high, error, num_examples=n)


def _tango_reach(p: Array, q: Array, n: Array, z: float) -> Array:
    """Return the distance from p - q to the largest difference that the test does not reject."""

    def excess(distance: Array) -> tuple[Array, Array]:
        delta = xp.minimum(p - q + distance, 1)
        b = (2 - p + q) * delta - p - q
        root = xp.sqrt(xp.maximum(b**2 + 8 * q * delta * (1 - delta), 0))
        # This form of the solution avoids a subtraction.
        product = divide(2 * q * delta * (1 - delta), b + root)
        likeliest = xp.where(b > 0, product, (root - b) / 4)
        variance = xp.maximum(2 * likeliest + delta * (1 - delta), 0)
        error = xp.sqrt(divide(variance, n))
        # Twice the likeliest q grows by `(root' - b') / 2`.
        growth = divide(b * (2 - p + q) + 4 * q * (1 - 2 * delta), root) - (2 - p + q)
        slope = 1 - z * divide(growth / 2 + 1 - 2 * delta, 2 * n * error)
        return distance - z * error, slope

    most = 1 - p + q
    eps = float(xp.finfo(p.dtype).eps)
    # The rounding of p - q limits the accuracy.
    return root(excess, xp.zeros_like(p), most, most / 2, atol=2 * eps * (p + q), rtol=4 * eps)
