"""Tests of the hypothesis that two classifiers are alike: McNemar's and permutation tests."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array, lax, special, xp
from jaxmetrics._validation import ArrayLike, as_counts, as_float, check_option
from jaxmetrics.betas import distributions
from jaxmetrics.comparisons._cells import Layout, as_cells, as_cube, cells_of_clusters, ulp
from jaxmetrics.estimates import Metric
from jaxmetrics.intervals import replicates, samplers
from jaxmetrics.intervals.replicates import map_batch, map_tables
from jaxmetrics.intervals.tables import (
    as_floats,
    check_num_samples,
    is_possible,
    nan_unless,
    numbers_of_examples,
    where_answered,
)
from jaxmetrics.intervals.units import as_clusters, clusters_as_cells, number_of_clusters

__all__ = ["HypothesisTest", "mcnemar", "no_information_test", "permutation_test"]


class HypothesisTest(NamedTuple):
    """Hold the result of a test.

    Attributes:
        statistic: as the test defines it, `(...)`.
        p_value: in [0, 1], two-sided unless the test says otherwise, `(...)`.
    """

    statistic: Array
    p_value: Array


@compiled
def mcnemar(
    paired: ArrayLike,
    *,
    method: Literal["exact", "mid-p", "corrected", "asymptotic"] | None = None,
    cluster_axis: int | None = None,
) -> HypothesisTest:
    """Test by McNemar's test whether A and B are right equally often.

    With b examples for which only A is right and c for which only B is, under the hypothesis b is
    binomial with b + c trials and probability 1/2:

    - `"exact"`: `2 P(X <= min(b, c))`, at most 1; the statistic is min(b, c).
    - `"mid-p"`: the same with half of `P(X = min(b, c))` in place of all; less conservative, the
      one to prefer. Fagerland, Lydersen and Laake (2013), BMC Medical Research Methodology 13.
    - `"asymptotic"`: `(b - c)^2 / (b + c)` against chi-square with one degree of freedom; McNemar
      (1947), Psychometrika 12.
    - `"corrected"`: `(|b - c| - 1)^2 / (b + c)`, Edwards' continuity correction.

    Of clusters, whose examples depend on one another, the statistic is
    `(C - 1) / C (sum_k d_k)^2 / sum_k d_k^2` with `d_k = b_k - c_k` of cluster k, against
    chi-square with one degree of freedom: Obuchowski (1998), Statistics in Medicine 17, as in Yang,
    Sun and Hardin (2010), Biometrical Journal 52. Simulated with 20 to 100 clusters, sizes up to
    10:1 and latent correlations of 0 to 0.7, that of 5 % has a size of 3 to 6 %, where `"mid-p"`
    without clusters has up to 49 %.

    Args:
        paired: `(..., K, K, K)`, or one `(2, 2)` table
            `[[both right, only A], [only B, both wrong]]`. On the device, in float32, counts of
            2^24 and more are rounded.
        method: `"mid-p"` if not given; `"asymptotic"` for clusters, which have no other.
        cluster_axis: the axis of `(..., C, K, K, K)` with pairs of clusters, -4.

    Returns:
        `HypothesisTest` of shape `(...)`; p = 1 where b + c = 0, NaN for negative counts.

    Raises:
        ValueError: another shape, an unknown method, another one than `"asymptotic"` of clusters.

    >>> test = mcnemar([[23, 15], [19, 31]], method="asymptotic")
    >>> test.statistic.round(5), test.p_value.round(5)
    (np.float64(0.47059), np.float64(0.49272))
    """
    if cluster_axis is not None:
        if method not in (None, "asymptotic"):
            raise ValueError(f"clusters have an asymptotic test only: got method={method!r}.")
        return _clustered(as_clusters(as_cube(paired), cluster_axis, table_ndim=3))
    method = method or "mid-p"
    check_option(method, "method", ("exact", "mid-p", "corrected", "asymptotic"))
    only_a, only_b, valid = discordant(as_float(paired, "paired"))
    total, fewer = only_a + only_b, xp.minimum(only_a, only_b)
    gap = xp.abs(only_a - only_b)
    if method in ("asymptotic", "corrected"):
        excess = xp.maximum(gap - 1, 0) if method == "corrected" else gap
        statistic = divide(excess**2, total)
        p_value = special.erfc(xp.sqrt(statistic / 2))
    else:
        statistic = fewer
        below, exactly = _fair_coin(fewer, total)
        p_value = 2 * below + (exactly if method == "exact" else 0)
        p_value = xp.where(gap == 0, 1, xp.clip(p_value, 0, 1))
    return HypothesisTest(
        xp.where(valid, statistic, xp.nan),
        xp.where(valid, xp.where(total == 0, 1, p_value), xp.nan),
    )


@compiled
def no_information_test(counts: ArrayLike) -> HypothesisTest:
    """Test whether the accuracy is above that of always answering the commonest class.

    With s right answers among n examples, of which a share q is of the commonest class, it is the
    exact binomial test of one side: `P(X >= s)` for X ~ Binomial(n, q), as R's caret has it. It
    takes q as known, not as counted.

    Args:
        counts: `(..., K, K)`, of independent examples.

    Returns:
        `HypothesisTest` of shape `(...)`, `statistic` is the accuracy; NaN without examples and for
        negative counts.

    Raises:
        TypeError, ValueError: counts that are not numeric or not of shape `(..., K, K)`.

    >>> test = no_information_test([[48, 12], [6, 34]])
    >>> test.statistic, test.p_value < 1e-5
    (np.float64(0.82), np.True_)
    """
    c = as_counts(counts)
    support, right = c.sum(-1), xp.diagonal(c, axis1=-2, axis2=-1).sum(-1)
    n = support.sum(-1)
    q, wrong = divide(support.max(-1), n, xp.nan), n - right
    # P(X >= s) is the distribution function of Beta(s, n - s + 1) at q.
    tail = distributions.cdf(q, xp.where(right > 0, right, 1), wrong + 1)
    p_value = xp.where((q == 1) | (right == 0), 1, tail)
    valid = (c >= 0).all((-2, -1)) & (n > 0)
    return HypothesisTest(
        xp.where(valid, divide(right, n), xp.nan), xp.where(valid, p_value, xp.nan)
    )


def _clustered(cubes: Array) -> HypothesisTest:
    only_a, only_b, valid = discordant(cubes)
    gaps, number = only_a - only_b, number_of_clusters(cubes, table_ndim=3)
    statistic = divide(gaps.sum(-1) ** 2, (gaps**2).sum(-1)) * divide(number - 1.0, number)
    valid = valid.all(-1) & (number > 1)
    return HypothesisTest(
        xp.where(valid, statistic, xp.nan),
        xp.where(valid, special.erfc(xp.sqrt(statistic / 2)), xp.nan),
    )


def discordant(paired: Array) -> tuple[Array, Array, Array]:
    """Return for how many examples only A and only B is right, and whether all counts are >= 0."""
    if paired.shape == (2, 2):
        return paired[0, 1], paired[1, 0], (paired >= 0).all()
    cube = as_cube(paired)
    right = xp.eye(cube.shape[-1], dtype=bool)
    a_right, b_right = right[:, :, None], right[:, None, :]
    only_a = xp.where(a_right & ~b_right, cube, 0).sum((-3, -2, -1))
    only_b = xp.where(~a_right & b_right, cube, 0).sum((-3, -2, -1))
    return only_a, only_b, (cube >= 0).all((-3, -2, -1))


def _fair_coin(heads: Array, tosses: Array) -> tuple[Array, Array]:
    """Return `P(X < heads) + P(X = heads) / 2` and `P(X = heads)` for X heads of a fair coin.

    For heads <= tosses / 2, with a relative error of 1e-5 in float32. The probabilities below come
    from their ratios; beyond a million tosses the first is that of the normal distribution, which
    is as exact for z < 5.
    """
    distance = heads - tosses / 2
    relative = divide(distance, tosses / 2)
    unlikeliness = tosses / 2 * (samplers.deviance(relative) + samplers.deviance(-relative))
    ratio = samplers.stirling(tosses - heads) / samplers.stirling(tosses)
    spread = samplers.stirling(heads) * ratio
    probability = xp.exp(-unlikeliness) / xp.sqrt(2 * np.pi * spread)
    few = tosses <= 2.0**20

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        _, term, total = state
        return (term > 1e-9 * total).any()

    def add(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        i, term, total = state
        term = term * xp.maximum(heads - i, 0) / (tosses - heads + 1 + i)
        return i + 1, term, total + term

    start = (
        xp.zeros((), heads.dtype),
        xp.where(few, 1, 0).astype(heads.dtype),
        xp.ones_like(heads) / 2,
    )
    halved = lax.while_loop(unfinished, add, start)[2]
    normal = special.ndtr(divide(2 * distance, xp.sqrt(tosses)))
    return xp.where(few, probability * halved, normal), probability


def permutation_test(
    key: KeyLike,
    metric: Metric,
    paired: ArrayLike,
    *,
    num_samples: int = 10_000,
    cluster_axis: int | None = None,
) -> Any:
    """Test whether A and B differ in a metric, by swapping them at random in each example.

    Of the examples of class i with the predictions a and b, in either order, a binomial number with
    probability 1/2 keeps A -> a, B -> b. The p-value is `(1 + #{|d*| >= |d|}) / (1 + S)`, which is
    never 0; S the swaps after which the metric is defined. Edgington and Onghena (2007),
    Randomization Tests.

    Args:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        metric: a function of one `(K, K)` matrix that returns an array or a pytree of arrays.
        paired: `(..., K, K, K)` numbers of examples.
        num_samples: how often to swap.
        cluster_axis: the axis of `(..., C, K, K, K)` with pairs of clusters, -4. Each cluster is
            then swapped as a whole.

    Returns:
        `HypothesisTest`, or a pytree of them; `statistic` is the difference A - B.

    Raises:
        ValueError: a `paired` of another shape, negative or fractional counts, num_samples < 2.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a, y_pred_b = [0, 0, 1, 1] * 10, [0, 0, 1, 1] * 10, [0, 1, 1, 0] * 10
    >>> paired = jm.paired_confusion_matrix(y_true, y_pred_a, y_pred_b)
    >>> permutation_test(0, jm.accuracy, paired).p_value < 0.001
    np.True_
    """
    size, floats = check_num_samples(num_samples), as_floats(metric)
    cells = as_cells(paired, numbers_of_examples)
    cells = where_answered(floats, cells, np.ones((cells.shape[-2],) * 2))
    if cluster_axis is None:
        return _permute(*place(key, cells), metric=floats, size=size)
    clusters = cells_of_clusters(cells, cluster_axis)
    return _permute_clusters(*place(key, clusters), metric=floats, size=size)


@compiled
def _permute(key: Key, cells: Array, *, metric: Metric, size: int) -> Any:
    k = cells.shape[-2]

    evaluate = Layout(k).evaluator(metric, None)
    values = map_tables(evaluate, cells, k**3)
    samples = replicates.evaluate(
        replicates.swapped, lambda cells: evaluate(cells)[2], key, cells, size=size, numbers=k**3
    )
    return nan_unless(is_possible(cells), _against_swapped(values, samples))


@compiled
def _permute_clusters(key: Key, clusters: Array, *, metric: Metric, size: int) -> Any:
    k = clusters.shape[-2]
    evaluate = Layout(k).evaluator(metric, None)

    def of_one(clusters: Array) -> Any:
        cells, sums = clusters_as_cells(clusters)
        total = clusters.sum(0)

        def difference(drawn: Array) -> Any:
            kept = sums(drawn)
            others = (total - kept).reshape((*kept.shape[:-2], k, k, k))
            return evaluate(kept + xp.swapaxes(others, -2, -1).reshape(kept.shape))[2]

        samples = replicates.evaluate(
            replicates.halved, difference, key, cells, size=size, numbers=cells.size + k**3
        )
        return nan_unless(cells.sum() > 1, _against_swapped(evaluate(total), samples))

    return map_batch(of_one, clusters, table_ndim=3)


def _against_swapped(values: tuple[Any, Any, Any], samples: Any) -> Any:
    """Compare the difference of A and B with those after swaps, `(S, ...)`."""

    def test(a: Array, b: Array, d: Array, samples: Array) -> HypothesisTest:
        as_far = xp.abs(samples) >= xp.abs(d) - 2 * ulp(a, b)
        p_value = (1 + as_far.sum(0)) / (1 + xp.isfinite(samples).sum(0))
        return HypothesisTest(d, xp.where(xp.isfinite(d), p_value, xp.nan))

    return jax.tree.map(test, *values, samples)
