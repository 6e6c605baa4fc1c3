"""Paired comparisons against published figures, definitions written out slowly, and
single-classifier intervals.
"""

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, stats

import jaxmetrics as jm
from jaxmetrics.ranking.precision_intervals import linearized
from jaxmetrics.ranking.ranks import rank
from tests.estimates import assert_close, ends, parts

KEY = 0
macro_f1 = jm.macro(jm.f1)


def methods(num_samples: int) -> list[jm.IntervalMethod]:
    """One that searches, one that differentiates, and two that draw."""
    draw = jm.Bootstrap(KEY, num_samples=num_samples), jm.Posterior(KEY, num_samples=num_samples)
    return [jm.Likelihood(), jm.Delta(), *draw]


def predictions(
    n: int = 400, k: int = 3, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    a = np.where(rng.random(n) < 0.8, truth, rng.integers(0, k, n))
    return truth, a, np.where(rng.random(n) < 0.9, a, rng.integers(0, k, n))


PAIRED = np.asarray(jm.paired_confusion_matrix(*predictions(), num_classes=3))


def test_the_same_predictions_do_not_differ() -> None:
    truth, a, _ = predictions()
    same = jm.paired_confusion_matrix(truth, a, a, num_classes=3)
    for method in (jm.Bootstrap(KEY), jm.Delta()):
        for metric in (macro_f1, jm.matthews_corrcoef):
            result = jm.compare(metric, same, method=method)
            assert_array_equal(parts(result.difference), np.zeros(4))
            assert result.probability_better == 0.5
            assert result.probability_equivalent == 1
    assert jm.permutation_test(KEY, macro_f1, same).p_value == 1
    assert jm.mcnemar(same).p_value == 1


def test_region_of_practical_equivalence() -> None:
    for method in methods(2000):
        # Between 12 and 13 of 400.
        result = jm.compare(jm.accuracy, PAIRED, method=method, rope=0.03125)
        law = stats.norm(result.difference.value, result.difference.standard_error)
        assert_allclose(
            result.probability_equivalent, law.cdf(0.03125) - law.cdf(-0.03125), atol=0.05
        )
    assert jm.compare(jm.accuracy, PAIRED, rope=1.0).probability_equivalent == 1
    # Multiples of 0.1.
    ten = jm.paired_confusion_matrix([0] * 10, [0] * 9 + [1], [0] * 8 + [1] * 2, num_classes=2)
    on_edge, beyond = (
        jm.compare(jm.accuracy, ten, rope=rope, method=jm.Bootstrap(KEY)).probability_equivalent
        for rope in (0.1, 0.100001)
    )
    assert on_edge == beyond > 0.5


# Statistics and p-values from R via statsmodels.
@pytest.mark.parametrize(
    ("method", "statistic", "p_value"),
    [
        (
            "asymptotic",
            0.470588235294118,
            stats.chi2.sf(8 / 17, 1),
        ),
        ("corrected", 9 / 34, 0.606905427217951),
        ("exact", 15, 0.60759136127308),
        ("mid-p", 15, 0.60759136127308 - stats.binom.pmf(15, 34, 0.5)),
    ],
)
def test_mcnemar_equals_published_figures(method: Any, statistic: float, p_value: float) -> None:
    test = jm.mcnemar([[23, 15], [19, 31]], method=method)
    assert_allclose(test, [statistic, p_value], rtol=1e-7)


@pytest.mark.parametrize(
    ("b", "c"), [(0, 1), (3, 9), (19, 15), (300, 200), (0, 900), (3_000_000, 3_005_000)]
)
def test_exact_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    test = jm.mcnemar([[5, b], [c, 7]], method="exact")
    assert_allclose(test.p_value, stats.binomtest(b, b + c).pvalue, rtol=2e-14, atol=0)
    less = stats.binom.pmf(min(b, c), b + c, 0.5)
    mid_p = jm.mcnemar([[5, b], [c, 7]], method="mid-p").p_value
    assert_allclose(mid_p, test.p_value - less, rtol=1e-11, atol=0)


def test_mcnemar_of_paired_counts() -> None:
    truth, a, b = predictions()
    only_a, only_b = ((a == truth) & (b != truth)).sum(), ((a != truth) & (b == truth)).sum()
    for method in ("exact", "mid-p", "corrected", "asymptotic"):
        test = jm.mcnemar(PAIRED, method=method)
        assert_allclose(test, jm.mcnemar([[0, only_a], [only_b, 0]], method=method), rtol=1e-6)
    with np.errstate(all="raise"):
        jm.mcnemar(0 * PAIRED)
    assert np.isnan(jm.mcnemar(jnp.asarray(-PAIRED)).p_value)
    with pytest.raises(ValueError, match="expected a count >= 0"):
        jm.mcnemar(-PAIRED)


@pytest.mark.parametrize(
    ("table", "options", "low", "high"),
    [
        # Fagerland, Lydersen and Laake (2014), Statistics in Medicine 33; the R packages PropCIs
        # (0.3-0, scoreci.mp(25, 28, 618, 0.9)) and statpsych (ci.prop.ps(0.05, 0, 26, 4, 10)).
        ([[1, 1], [7, 12]], {}, -0.517, -0.026),
        ([[0, 28], [25, 565]], {"level": 0.9}, -0.0148, 0.0247),
        ([[0, 26], [4, 10]], {"method": "bonett_price"}, 0.3126438, 0.7349752),
    ],
)
def test_paired_differences_equal_published_figures(
    table: Any, options: Any, low: float, high: float
) -> None:
    estimate = jm.paired_difference_interval(table, **options)
    digits = len(str(low).split(".")[1])
    assert_array_equal(np.round(ends(estimate), digits), [low, high])


@pytest.mark.parametrize("counts", [(6, 1, 30), (0, 5, 40), (0, 0, 10), (30_000, 20_000, 10**9)])
def test_tangos_ends_are_just_not_rejected(counts: tuple[int, int, int]) -> None:
    """The score test, with the likeliest probability given a difference found by search."""
    only_a, only_b, n = counts
    estimate = jm.paired_difference_interval([[n - only_a - only_b, only_a], [only_b, 0]])
    mirrored = jm.paired_difference_interval([[n - only_a - only_b, only_b], [only_a, 0]])
    assert_allclose(ends(mirrored), -ends(estimate)[::-1], rtol=1e-12)
    for delta in ends(estimate):

        def slope(q: float, delta: float = delta) -> float:  # of the logarithm of the likelihood
            both = 2 * (n - only_a - only_b) / (1 - 2 * q - delta)
            return only_a / (q + delta) + only_b / q - both

        low, high = max(0, -delta) + 1e-12, (1 - delta) / 2 - 1e-12
        q = optimize.brentq(slope, low, high, xtol=1e-16) if slope(low) > 0 else low
        z = (only_a - only_b - n * delta) / np.sqrt(n * (2 * q + delta * (1 - delta)))
        assert_allclose(abs(z), 1.959964, rtol=2e-4)


@pytest.mark.parametrize("method", ["tango", "bonett_price"])
def test_paired_differences_at_the_edges(method: Any) -> None:
    empty = jm.paired_difference_interval(np.zeros((2, 2, 2)), method=method)
    assert_array_equal(parts(empty)[:3], [np.nan, -1, 1])
    hidden = jm.paired_difference_interval(jnp.array([[1, -1], [0, 2]]), method=method)
    assert np.isnan(hidden.low)
    with pytest.raises(ValueError, match=r"paired\[0, 1\] is -1, expected a count >= 0"):
        jm.paired_difference_interval([[1, -1], [0, 2]], method=method)
    with pytest.raises(ValueError, match="'tango' or 'bonett_price'"):
        jm.paired_difference_interval([[1, 0], [0, 2]], method="wald")  # type: ignore[arg-type]


def test_permutation_test_of_the_accuracy_is_the_exact_mcnemar() -> None:
    truth, a, b = predictions(60)
    paired = jm.paired_confusion_matrix(truth, a, b, num_classes=3)
    test = jm.permutation_test(KEY, jm.accuracy, paired, num_samples=40_000)
    exact = float(jm.mcnemar(paired, method="exact").p_value)
    assert_allclose(
        test.p_value, exact, atol=5 * np.sqrt(exact * (1 - exact) / 40_000) + 1 / 40_000
    )


def test_permutation_test_of_small_and_of_undefined_numbers() -> None:
    truth, a, b = predictions(60)
    paired = jm.paired_confusion_matrix(truth, a, b, num_classes=3)
    plain = jm.permutation_test(KEY, jm.accuracy, paired, num_samples=500)
    scaled = jm.permutation_test(KEY, lambda c: jm.accuracy(c) * 1e-7, paired, num_samples=500)
    assert scaled.p_value == plain.p_value
    few = np.array([[[2, 2], [0, 0]], [[0, 0], [2, 0]]])  # truth, A, B
    test = jm.permutation_test(
        KEY, lambda c: c[..., 1, 1] / c[..., 1].sum(-1), few, num_samples=40_000
    )
    # 2 of 16 swaps leave one without positives.
    assert_allclose(test.p_value, 2 / 14, atol=0.01)


def slow_areas(
    truth: np.ndarray, scores: list[np.ndarray], ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Areas and their covariance matrix, by leaving out clusters, to first order, in loops; of
    clusters of one example DeLong's.
    """
    positives, negatives = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
    areas, moves = [], []
    for score in scores:
        order = np.sign(score[positives][:, None] - score[negatives]) / 2 + 0.5
        areas.append(order.mean())
        move = np.zeros(ids.max() + 1)
        for placements, members in ((order.mean(1), positives), (order.mean(0), negatives)):
            number = len(set(ids[members]))
            for c in set(ids[members]):
                of_cluster = placements[ids[members] == c] - order.mean()
                rest = len(members) - len(of_cluster)
                move[c] += np.sqrt((number - 1) / number) * of_cluster.sum() / rest
        moves.append(move)
    return np.array(areas), np.array(moves) @ np.array(moves).T


def scores() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 300)
    first = np.round(truth + rng.normal(size=300), 1)  # with ties
    return truth, first, np.round(0.5 * truth + 0.5 * first + rng.normal(size=300), 1)


@pytest.mark.parametrize("clusters", [None, np.repeat(np.arange(100), np.arange(100) % 5 + 1)])
def test_delong_from_its_definition(clusters: np.ndarray | None) -> None:
    """With ties, labels to be left out, and clusters of one class only."""
    truth, first, second = scores()
    ids = np.arange(300) if clusters is None else clusters
    areas, covariance = slow_areas(truth, [first, second], ids)
    result = jm.delong(truth, first, second, clusters=clusters)
    assert_allclose([result.a.value, result.b.value], areas, rtol=1e-12)
    errors = np.sqrt(np.diag(covariance))
    assert_allclose([result.a.standard_error, result.b.standard_error], errors, rtol=1e-10)
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert_allclose(result.difference.standard_error, error, rtol=1e-10)
    p_value = 2 * stats.norm.sf(abs(areas[0] - areas[1]) / error)  # about: of Student's t
    assert_allclose(result.p_value, p_value, rtol=0.1)
    for estimate, score in ((result.a, first), (result.b, second)):
        assert_close(estimate, jm.delong_interval(truth, score, clusters=clusters))
    # Zou and Donner's equation 7.
    gaps = abs(np.array([ends(x) - x.value for x in (result.a, result.b)]))
    cross = 2 * covariance[0, 1] / errors.prod()
    for end, (of_a, of_b) in zip(
        ends(result.difference), [gaps[[0, 1], [0, 1]], gaps[[0, 1], [1, 0]]], strict=True
    ):
        reach = np.sqrt(of_a**2 + of_b**2 - cross * of_a * of_b)
        assert_allclose(abs(end - result.difference.value), reach, rtol=5e-3)
    ignored = [np.append(truth, -1), np.append(first, 4), np.append(second, 5)]
    more = None if clusters is None else np.append(ids, 7)
    assert_close(jm.delong(*ignored, clusters=more), result, 1e-10)
    with pytest.raises(ValueError, match=r"y_true\[300\] is 7"):
        jm.delong(np.append(truth, 7), *ignored[1:])
    with pytest.raises(ValueError, match=r"y_score_b\[0\] is nan"):
        jm.delong(truth, first, np.where(np.arange(300) == 0, np.nan, second))


def test_unpaired_delong_is_welchs_test_of_two_areas() -> None:
    truth, first, second = scores()
    halves = (truth[:120], first[:120]), (truth[120:], second[120:])
    (area_a, var_a), (area_b, var_b) = (
        slow_areas(y, [score], np.arange(len(y))) for y, score in halves
    )
    gap, variance = area_a[0] - area_b[0], var_a[0, 0] + var_b[0, 0]
    result = jm.delong_unpaired(*halves[0], *halves[1])
    assert_allclose(result.difference.value, gap, rtol=1e-12)
    assert_allclose(result.difference.standard_error, np.sqrt(variance), rtol=1e-10)
    assert_allclose(result.statistic, gap / np.sqrt(variance), rtol=1e-10)
    p_value = 2 * stats.t.sf(abs(gap) / np.sqrt(variance), 250)  # about: of the normal nearly
    assert_allclose(result.p_value, p_value, rtol=2e-2)
    for estimate, half in zip((result.a, result.b), halves, strict=True):
        assert_close(estimate, jm.delong_interval(*half))


@pytest.mark.parametrize(
    "counts",
    [
        [[48, 12], [6, 34]],
        [[237, 72], [0, 91]],
        [[0, 2], [9, 0]],
        [[7, 3], [0, 0]],
        [[9, 0, 4], [2, 9, 0], [1, 1, 11]],
    ],
)
def test_no_information_test_is_a_sign_test(counts: list[list[int]]) -> None:
    """The largest of the one-sided mid-p values of McNemar's tests against each constant class."""
    c = np.array(counts)
    right, expected = c.diagonal(), 0.0
    for j in range(len(c)):
        b, number = right.sum() - right[j], right.sum() + c[j].sum() - 2 * right[j]
        ways = [math.comb(number, i) for i in range(number + 1)]
        expected = max(expected, (sum(ways[b + 1 :]) + ways[b] / 2) / sum(ways))
    assert_allclose(jm.no_information_test(c).p_value, expected, rtol=1e-9)
    assert_allclose(jm.no_information_test(c).statistic, right.sum() / c.sum())
    swapped = c[::-1, ::-1]
    assert jm.no_information_test(swapped).p_value == jm.no_information_test(c).p_value
    for impossible in (0 * c, jnp.array([[9, -1], [0, 1]])):
        assert np.isnan(jm.no_information_test(impossible)).all()


@pytest.mark.parametrize(("m", "n"), [(3, 9), (10, 500), (40, 60)])
def test_delong_by_welchs_degrees_of_freedom(m: int, n: int) -> None:
    """Its variance is that of two means, so that the statistic is SciPy's of Welch. In Welch's
    formula for the degrees of freedom, 1/4 is added to the squares of each class.
    """
    rng = np.random.default_rng(m)
    truth, a, b = np.arange(m + n) < m, rng.normal(size=m + n), rng.normal(size=m + n)
    order = [np.sign(x[truth][:, None] - x[~truth]) / 2 for x in (a, b)]
    v, w = (order[0] - order[1]).mean(1), (order[0] - order[1]).mean(0)
    expected = stats.ttest_ind(v, w - 2 * w.mean(), equal_var=False)
    result = jm.delong(truth, a, b)
    assert_allclose(result.statistic, expected.statistic / 2, rtol=1e-10)
    of_v, of_w = (x.var() / len(x) + 1 / 4 / len(x) ** 2 for x in (v, w))
    freedom = (of_v + of_w) ** 2 / (of_v**2 / (m - 1) + of_w**2 / (n - 1))
    p_value = 2 * stats.t.sf(abs(expected.statistic) / 2, freedom)
    assert_allclose(result.p_value, p_value, rtol=1e-10)
    if m >= 10:  # where the variances are well known, the addition makes no difference
        p_value = 2 * stats.t.sf(abs(expected.statistic) / 2, expected.df)
        assert_allclose(result.p_value, p_value, atol=3e-4)


@pytest.mark.parametrize("clusters", [None, np.arange(300) % 41])
def test_average_precisions_compared_from_their_influences(clusters: np.ndarray | None) -> None:
    truth, first, second = scores()
    linear = [linearized(rank(truth, x)) for x in (first, second)]
    alone = [jm.average_precision_interval(truth, x, clusters=clusters) for x in (first, second)]
    result = jm.compare_average_precision(truth, first, second, rope=0.02, clusters=clusters)
    assert_close([result.a, result.b], alone, 1e-10)
    m = np.bincount(truth)
    u = linear[0].influence - linear[1].influence
    error = np.sqrt((u**2 * ((m / (m - 1)) ** 2)[truth]).sum())
    if clusters is not None:
        share = np.bincount(clusters, truth) / m[1]
        error = np.sqrt(40 * (np.bincount(clusters, u) / (1 - share)).var())
    gap = result.difference
    assert_allclose(gap.value, alone[0].value - alone[1].value, rtol=1e-12)
    assert_allclose(gap.standard_error, error, rtol=1e-10)
    independent = np.sqrt((u**2 * ((m / (m - 1)) ** 2)[truth]).sum())
    freedom, unseen = m[1] - 1, 1 / 16 / m[1] ** 2
    if clusters is not None:  # Kish's number of clusters, which are weighted by their variances
        squares = (u * (m / (m - 1))[truth]) ** 2
        parts = np.array([squares[truth == k].mean() + 0.25 / m[k] ** 3 for k in (0, 1)])
        weights = np.bincount(clusters, parts[truth])
        freedom = min(m[1], weights.sum() ** 2 / (weights**2).sum()) - 1
        unseen /= min((independent / error) ** 2, 1)
    t, of_both = stats.t.ppf(0.975, freedom), np.array([x.standard_error for x in alone])
    covariance = ((of_both**2).sum() - error**2) / 2
    apart = 1 - np.clip(covariance / np.sqrt((of_both**2 + unseen).prod()), 0, 1)
    losses = np.array([x.loss for x in linear])
    lost = np.minimum(stats.norm.ppf(0.975) * losses * np.sqrt(apart), 1.5 * t * error)
    below, above = np.sqrt(t**2 * (error**2 + apart * unseen) + lost**2)
    assert_allclose([gap.low, gap.high], [gap.value - below, gap.value + above])
    assert gap.value > 0.02  # so that the probabilities come from the lower half
    scale = below / stats.norm.ppf(0.975)
    better = stats.norm.cdf(gap.value / scale)
    assert_allclose(result.probability_better, better, rtol=1e-9)
    inside = stats.norm.cdf(0.02, gap.value, scale) - stats.norm.cdf(-0.02, gap.value, scale)
    assert_allclose(result.probability_equivalent, inside, rtol=1e-9)


def test_average_precisions_compared_at_the_edges() -> None:
    truth, first, second = scores()
    same = jm.compare_average_precision(truth, first, 2 * first)
    assert same.difference.value == same.difference.standard_error == 0
    width = same.difference.high - same.difference.low
    assert 0 < width < (same.a.high - same.a.low) / 3  # either may err on other examples
    forth, back = (
        jm.compare_average_precision(truth, *x).difference
        for x in ((first, second), (second, first))
    )
    assert_allclose([forth.low, forth.high], [-back.high, -back.low], rtol=1e-10)
    perfect = jm.compare_average_precision(truth, truth, 2 * truth).difference
    assert perfect.low < 0 < perfect.high
    opposite = jm.compare_average_precision(truth, truth, -truth).difference
    assert 0 < opposite.low < opposite.value <= opposite.high <= 1
    reverse = jm.compare_average_precision([0] * 60 + [1] * 4, -np.arange(64), np.arange(64))
    assert -1 == reverse.difference.low < reverse.difference.value < reverse.difference.high
    assert np.isnan(jm.compare_average_precision([0, 1, 0], [1, 2, 3], [3, 2, 1]).difference.low)
    with pytest.raises(ValueError, match="y_score_b"):
        jm.compare_average_precision(truth, first, second[1:])
    with pytest.raises(ValueError, match="rope must not be negative, because"):
        jm.compare_average_precision(truth, first, second, rope=-1)


@pytest.mark.parametrize(("shift", "rho"), [(2.8, 0.0), (4.4, 0.0), (4.4, 0.9), (5.0, 0.9)])
def test_the_difference_of_average_precisions_has_power(shift: float, rho: float) -> None:
    """With 30 positives of 1500, average precisions of .60, .95 and .98: the width is at most 2.5
    times the ideal width, 3.92 standard deviations of the estimate. It was up to 7 times.
    """
    rng = np.random.default_rng(30)
    truth = (rng.random((200, 1500)) < 0.02).astype(int)
    common = np.sqrt(rho) * rng.normal(size=truth.shape) + shift * truth
    a, b = (common + np.sqrt(1 - rho) * rng.normal(size=truth.shape) for _ in range(2))
    gap = jm.compare_average_precision(truth, a, b).difference
    assert ((gap.low <= 0) & (gap.high >= 0)).mean() > 0.92
    assert (gap.high - gap.low).mean() < 2.5 * 3.92 * gap.value.std()


def test_delong_on_the_device() -> None:
    """As on the host; labels that are neither are left out, and a NaN that counts makes NaN."""
    truth, first, second = scores()
    ignored = np.append(truth, [-1, 7]), np.append(first, [np.nan, 3]), np.append(second, [5, 6])
    expected = jm.delong(truth, first, second)
    assert_close(jm.delong(*map(jnp.asarray, ignored)), expected, 1e-4)
    ignored[2][0] = np.nan
    result = jm.delong(*map(jnp.asarray, ignored))
    assert np.isnan([result.b.value, result.p_value]).all()
    assert_allclose(result.a.value, expected.a.value, rtol=1e-4)


def test_delong_at_the_edges() -> None:
    truth, score = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.9, 0.4, 0.3, 0.8])
    for put in (np.asarray, jnp.asarray):

        def delong(*arrays: np.ndarray, put: Any = put) -> Any:
            return jm.delong(*map(put, arrays))

        same = delong(truth, score, score)
        assert same.difference.value == same.difference.standard_error == same.statistic == 0
        assert same.p_value == 1
        opposite = delong(truth, truth * 1.0, 1.0 - truth)  # no error to divide by
        found = [opposite.difference.value, opposite.statistic, opposite.p_value]
        assert_array_equal(found, [1, np.inf, 0])
        perfect = delong(truth, truth * 1.0, 2.0 * truth)  # yet either may err on other examples
        assert -1 < perfect.difference.low < -0.2
        assert 0.2 < perfect.difference.high < 1
        saturated = 1 - 1e-12 * np.array([5.0, 1, 2, 4, 3])  # alike in float32
        if put is np.asarray:
            assert delong(truth, saturated, -np.array([5.0, 1, 2, 4, 3])).difference.value == 0
        assert np.isnan(delong(np.ones(5, int), score, score).a.value)
    with pytest.raises(TypeError, match="Truth comes first"):
        jm.delong(score, truth, score)


@pytest.mark.parametrize("x64", [False, True])
def test_a_conventional_value_is_not_compared(x64: bool) -> None:
    """Without predictions of a class, its precision is 0 by convention, which shows nothing."""
    truth, b, _ = predictions(60, 2)
    paired = np.asarray(jm.paired_confusion_matrix(truth, np.zeros_like(b), b, num_classes=2))
    apart = [jm.confusion_matrix(truth, x, num_classes=2) for x in (np.zeros_like(b), b)]

    def precision(counts: Any) -> Any:
        return jm.precision(counts)[..., 1]

    with jax.enable_x64(x64):
        for asarray in (np.asarray, jnp.asarray):
            for result in (
                jm.compare(precision, asarray(paired)),
                jm.compare_unpaired(precision, asarray(apart[0]), asarray(apart[1])),
            ):
                assert np.isnan(result.a.low)
                assert result.b.low > 0.5
                assert result.difference.value < -0.5
                assert np.isnan([result.difference.low, result.difference.high]).all()
                assert np.isnan([result.probability_better, result.probability_equivalent]).all()


def test_predictions_are_compared_as_their_paired_counts_are() -> None:
    truth, a, b = predictions(2000, 40)
    paired = jm.paired_confusion_matrix(truth, a, b, num_classes=40)
    for method in (jm.Bootstrap(KEY, num_samples=200), jm.Delta()):
        from_counts = jm.compare(macro_f1, paired, method=method)
        from_labels = jm.compare_predictions(macro_f1, truth, a, b, num_classes=40, method=method)
        assert_close(from_counts, from_labels, 1e-4, 1e-5)
        ignored = [
            np.append(x, label)
            for x, label in ((truth, [-1, -1, 3]), (a, [0, -100, 40]), (b, [0, 0, 3]))
        ]
        masked = jm.compare_predictions(
            macro_f1, *ignored, num_classes=40, where=np.arange(2003) < 2002, method=method
        )
        jax.tree.map(assert_array_equal, masked, from_labels)
        with pytest.raises(ValueError, match=r"y_pred_a\[2002\] is 40"):
            jm.compare_predictions(macro_f1, *ignored, num_classes=40, method=method)
        ignored[2][2002] = ignored[1][2002] = -1
        with pytest.raises(ValueError, match=r"y_pred_a\[2002\] is -1, but .* labels=\[-1, ...\]"):
            jm.compare_predictions(macro_f1, *ignored, num_classes=40, method=method)


def test_a_thousand_classes_are_compared() -> None:
    truth, a, b = predictions(5000, 1000)
    result = jm.compare_predictions(jm.accuracy, truth, a, b, num_classes=1000)
    difference = (a == truth).astype(float) - (b == truth)
    assert_allclose(result.difference.value, difference.mean(), rtol=1e-4)
    assert_allclose(result.difference.standard_error, difference.std() / np.sqrt(5000), rtol=0.3)


def test_matrices_of_many_classes_are_compared_as_each_would_be_alone() -> None:
    batch = np.stack(
        [
            jm.paired_confusion_matrix(*predictions(n, 20, seed=n), num_classes=20)
            for n in (300, 900)
        ]
    )
    together = jm.compare(jm.accuracy, batch)
    for i in range(2):
        alone = jm.compare(jm.accuracy, batch[i])
        jax.tree.map(lambda x, y, i=i: assert_array_equal(x[i], y), together, alone)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: jm.compare(macro_f1, PAIRED[0]),
            r"paired must have shape \(\.\.\., K, K, K\)",
        ),
        (lambda: jm.compare(macro_f1, PAIRED / 4), "expected a number of examples"),
        (
            lambda: jm.compare(macro_f1, PAIRED, method=jm.Delta("logit")),
            r"differences need no scale: use Delta\(\)",
        ),
        (lambda: jm.mcnemar(PAIRED, method="x"), "'exact', 'mid-p', 'corrected' or 'asymptotic'"),  # type: ignore[arg-type]
        (lambda: jm.mcnemar(np.ones((3, 3))), "paired must have shape"),
        (lambda: jm.permutation_test(KEY, macro_f1, PAIRED + 0.5), "expected a number of examples"),
        (lambda: jm.compare(macro_f1, PAIRED, rope=-0.1), "rope must not be negative, because"),
        (
            lambda: jm.compare(macro_f1, PAIRED, rope=[0.1, 0.2]),
            r"rope must be one number, got shape \(2,\)",
        ),
        (lambda: jm.compare(lambda c: None, PAIRED), "metric must return an array"),
        (
            lambda: jm.compare_predictions(macro_f1, [0, 1], [0, 1], [0], num_classes=2),
            "same number of examples",
        ),
        (
            lambda: jm.compare_predictions(macro_f1, [[0]], [[0]], [[0]], num_classes=2),
            r"shape \(n,\)",
        ),
        (lambda: jm.compare_unpaired(macro_f1, np.eye(2), np.eye(3)), "must have the same shape"),
        (
            lambda: jm.leaderboard(jm.recall, [0, 1], [[0, 1]]),
            r"one number .* returned an array of shape \(2,\)",
        ),
        (
            lambda: jm.leaderboard(lambda c: (jm.accuracy(c), 1), [0, 1], [[0, 1]]),
            "one number .* returned several values",
        ),
        (
            lambda: jm.leaderboard(jm.accuracy, [0, 1], [0, 1]),
            r"y_preds must have shape \(M, n\)",
        ),
        (
            lambda: jm.leaderboard(jm.accuracy, [0, 1], [[0, 1, 1]]),
            "same number of examples",
        ),
    ],
)
def test_mistakes_raise(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_complex_metric_is_an_error() -> None:
    with pytest.raises(TypeError, match="metric must return real numbers, got complex128"):
        jm.permutation_test(KEY, lambda counts: 1j * jm.accuracy(counts), PAIRED)


def test_predictions_of_clusters_are_compared_as_their_pairs() -> None:
    truth, a, b = predictions(400)
    numbers = np.arange(400) // 10
    names = np.array([f"patient {i % 7}-{i}" for i in numbers])
    kept = np.arange(400) < 350
    options: Any = {"num_classes": 3, "where": kept}
    cubes = jm.paired_confusion_matrix(truth, a, b, groups=numbers, **options)
    for method in methods(200)[:3]:
        found = jm.compare_predictions(
            macro_f1, truth, a, b, method=method, clusters=names, **options
        )
        expected = jm.compare(macro_f1, cubes, method=method, cluster_axis=0)
        assert_close(found.difference, expected.difference, 1e-9)
    labels = np.arange(600) % 100
    with pytest.raises(
        ValueError, match=r"600 clusters.* 6e\+08 cells together, but at most 1.34e\+08"
    ):
        jm.compare_predictions(
            jm.accuracy, labels, labels, labels, num_classes=100, clusters=np.arange(600)
        )
    with pytest.raises(ValueError, match=r"Posterior needs confusion matrices, .* and no clusters"):
        jm.compare_predictions(
            macro_f1, truth, a, b, num_classes=3, clusters=names, method=jm.Posterior(0)
        )


def test_mcnemar_of_clusters_from_its_definition() -> None:
    """Obuchowski's variance of the difference of two proportions under the hypothesis that they are
    equal, with the covariance of both; and clusters of one example are McNemar's.
    """
    truth, a, b = predictions(300)
    sizes = np.arange(1, 25)
    numbers = np.repeat(np.arange(24), sizes)
    cubes = jm.paired_confusion_matrix(truth, a, b, num_classes=3, groups=numbers)
    right = np.stack([a == truth, b == truth])
    x = np.array([[r[numbers == i].sum() for i in range(24)] for r in right])
    shares, pooled = x.sum(1) / 300, x.sum() / 600
    residuals = x - sizes * pooled
    covariance = 24 / 23 * residuals @ residuals.T / 300**2
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    expected = (shares[0] - shares[1]) ** 2 / variance
    test = jm.mcnemar(cubes, cluster_axis=-4)
    assert_allclose(test.statistic, expected, rtol=1e-9)
    assert_allclose(test.p_value, stats.chi2(1).sf(expected), rtol=1e-9)
    empty = np.concatenate([cubes, np.zeros((3, 3, 3, 3), int)])
    assert_close(jm.mcnemar(empty[None], cluster_axis=1).p_value, [test.p_value])
    singles = jm.paired_confusion_matrix(truth, a, b, num_classes=3, groups=np.arange(300))
    alone = jm.mcnemar(singles.sum(0), method="asymptotic").statistic
    assert_allclose(jm.mcnemar(singles, cluster_axis=0).statistic, alone * 299 / 300)
    with pytest.raises(ValueError, match="asymptotic"):
        jm.mcnemar(cubes, cluster_axis=0, method="exact")


@pytest.mark.quick
def test_strings_are_labels_of_comparisons() -> None:
    true, a, b = (np.random.default_rng(i).integers(0, 3, 60) for i in range(3))
    names = np.array(["ant", "bee", "cat"])
    by_name = jm.compare_predictions(jm.accuracy, names[true], list(names[a]), names[b])
    by_id = jm.compare_predictions(jm.accuracy, true, a, b)
    jax.tree.map(assert_array_equal, by_name, by_id)


def test_permutations_swap_clusters_as_a_whole() -> None:
    """As by all swaps of ten clusters."""
    rng = np.random.default_rng(6)
    cubes = rng.multinomial(8, rng.dirichlet(np.ones(8) / 2, 10)).reshape(10, 2, 2, 2)
    swaps = np.array(list(itertools.product([True, False], repeat=10)))
    drawn = np.where(swaps[..., None, None, None], cubes, cubes.swapaxes(-1, -2)).sum(1)
    differences = macro_f1(drawn.sum(-1)) - macro_f1(drawn.sum(-2))
    observed = macro_f1(cubes.sum((0, 3))) - macro_f1(cubes.sum((0, 2)))
    expected = np.mean(np.abs(differences) >= abs(observed) - 1e-12)
    for array in (cubes, jnp.asarray(cubes)):
        with pytest.warns(UserWarning, match="10 clusters"):
            test = jm.permutation_test(0, macro_f1, array, cluster_axis=-4, num_samples=20_000)
        assert_allclose(test.statistic, observed, rtol=1e-5)
        assert_allclose(test.p_value, expected, atol=5 * np.sqrt(0.25 / 20_000))
