"""Few examples with truth and many that were judged: against PPI++ of means, loops, simulation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import jaxmetrics as jm
from tests.estimates import ends, parts

# Truth, judge's label, prediction; judge's label, prediction.
LABELLED = np.array(
    [
        [[20, 3, 1], [2, 4, 0], [1, 0, 3]],
        [[3, 2, 0], [4, 17, 2], [0, 1, 2]],
        [[1, 0, 2], [0, 2, 3], [2, 3, 22]],
    ]
)
JUDGED = np.array([[251, 44, 39], [62, 233, 31], [30, 57, 269]])


@pytest.mark.parametrize(
    ("judged", "level", "low", "high"),
    [
        (JUDGED, 0.95, 0.6159826950874051, 0.7847965821601607),
        (JUDGED * 100, 0.95, 0.6165647793747479, 0.7842913328993605),
        (JUDGED // 20, 0.95, 0.6173386158448859, 0.7929959296096596),
        (JUDGED, 0.8, 0.6451989047709543, 0.7555803724766115),
    ],
)
def test_accuracy_is_the_mean_of_ppi(
    judged: np.ndarray, level: float, low: float, high: float
) -> None:
    """The limits are those of `ppi_mean_ci` of ppi_py 0.2.3, the value and z standard errors, up to
    its λ, whose variance is from all examples; `slow_error` has our λ.
    """
    z = stats.norm.ppf((1 + level) / 2)
    value, error = slow_error(jm.accuracy, LABELLED, judged)
    for put, rtol in ((np.asarray, 1e-9), (jnp.asarray, 1e-6)):
        found = jm.prediction_powered(jm.accuracy, put(LABELLED), put(judged), level=level)
        assert_allclose(found.value, value, rtol=rtol)
        assert_allclose(found.standard_error, error, rtol=1e-6)
        reach = z * found.standard_error
        limits = [found.value - reach, found.value + reach]
        assert_allclose(limits, [low, high], rtol=3e-4)
        assert_allclose([found.low, found.high], [low, high], atol=0.02)


def test_a_difference_of_accuracies_is_the_mean_of_ppi() -> None:
    labelled = np.array(
        [[[[6, 7], [0, 7]], [[4, 4], [5, 2]]], [[[8, 0], [2, 3]], [[5, 3], [1, 0]]]]
    )
    judged = np.array([[[20, 23], [30, 89]], [[33, 65], [72, 36]]])
    found = jm.prediction_powered(jm.difference(jm.accuracy), labelled, judged)
    low, high = -0.0536864530, 0.2642127632
    assert_allclose(found.value, (low + high) / 2, atol=1e-8)
    assert_allclose(found.standard_error, (high - low) / 2 / 1.959964, atol=1e-8)
    assert_allclose([found.low, found.high], [low, high], atol=0.02)


def slow_error(
    metric: Callable[[np.ndarray], float], labelled: np.ndarray, judged: np.ndarray
) -> tuple[float, float]:
    """The value and its standard error by loops over examples and difference quotients."""
    k = len(judged)
    examples = [i for i in np.ndindex(labelled.shape) for _ in range(labelled[i])]
    others = [i for i in np.ndindex(judged.shape) for _ in range(judged[i])]
    n, m = len(examples), len(others)

    def shares(cells: list[tuple[int, int]]) -> np.ndarray:
        table = np.zeros((k, k))
        for cell in cells:
            table[cell] += 1 / len(cells)
        return table

    by_truth = shares([(y, p) for y, _, p in examples])
    by_judge = shares([(j, p) for _, j, p in examples])
    elsewhere = shares(others)

    def slope(table: np.ndarray, cell: tuple[int, int]) -> float:
        step = np.zeros((k, k))
        step[cell] = 1e-6
        return float((metric(table + step) - metric(table - step)) / 2e-6)

    def terms(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        slopes = {cell: slope(table, cell) for cell in np.ndindex((k, k))}
        of_truth = np.array([slopes[y, p] for y, _, p in examples])
        of_judge = np.array([slopes[j, p] for _, j, p in examples])
        return of_truth, of_judge, np.array([slopes[cell] for cell in others])

    all_judged = shares([(j, p) for _, j, p in examples] + others)
    t, j, o = terms(0.9 * by_truth + 0.1 * all_judged)
    added = 0.1 * np.concatenate([j, o]).var()
    covariance = ((t - t.mean()) * (j - j.mean())).sum() + 5 / 8 * added
    share = covariance / ((1 + n / m) * (n * j.var() + added))
    table = by_truth + share * (elsewhere - by_judge)
    t, j, o = terms(table)
    return metric(table), np.sqrt((t - share * j).var() / n + (share * o).var() / m)


@pytest.mark.parametrize("metric", [jm.macro(jm.f1), jm.matthews_corrcoef, jm.cohen_kappa])
def test_values_and_errors_of_other_metrics(metric: Any) -> None:
    found = jm.prediction_powered(metric, LABELLED, JUDGED)
    value, error = slow_error(metric, LABELLED, JUDGED)
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.standard_error == pytest.approx(error, rel=1e-6)


def test_each_value_has_its_own_share_of_the_judge() -> None:
    def both(counts: Any) -> Any:
        return {"f1": jm.f1(counts), "accuracy": jm.accuracy(counts)}

    together = jm.prediction_powered(both, LABELLED, JUDGED)
    alone = jm.prediction_powered(jm.accuracy, LABELLED, JUDGED)
    of_class = jm.prediction_powered(lambda c: jm.f1(c)[..., 1], LABELLED, JUDGED)
    assert_allclose(together["accuracy"].high, alone.high, rtol=1e-9)
    assert_allclose(together["f1"].high[1], of_class.high, rtol=1e-9)


def test_without_judged_examples_truth_is_all() -> None:
    found = jm.prediction_powered(jm.macro(jm.f1), LABELLED, np.zeros((3, 3), int))
    expected = jm.interval(jm.macro(jm.f1), LABELLED.sum(1))
    # The third of an example is one of n here, since each sample keeps its size.
    assert_allclose(ends(found), ends(expected), rtol=1e-3)
    assert_allclose(found.value, expected.value, rtol=1e-6)
    assert_allclose(found.standard_error, expected.standard_error, rtol=1e-6)


def test_the_cost_does_not_depend_on_the_number_of_judged_examples() -> None:
    """And a perfect judge of very many leaves no error."""
    perfect = LABELLED.sum(1)[:, None] * np.eye(3, dtype=int)[:, :, None]
    judged = LABELLED.sum(1) * 10**9
    found = jm.prediction_powered(jm.matthews_corrcoef, perfect, judged)
    assert found.standard_error < 1e-4
    assert found.value == pytest.approx(float(jm.matthews_corrcoef(judged)), rel=1e-9)


@pytest.mark.parametrize(("kappa", "n"), [(0.95, 50), (1, 200)])
def test_few_mistakes_do_not_bias_the_judge(kappa: float, n: int) -> None:
    """1000 samples of a classifier with accuracy .95. The standard error of the mean is at most
    .0006; with the variance of PPI++, the bias was .008 for n = 50 and .002 for n = 200.
    """
    predictions = 0.95 * np.eye(2) + 0.05 * (1 - np.eye(2))
    judge = kappa * np.eye(2) + (1 - kappa) / 2
    cells = judge[:, :, None] * predictions[:, None] / 2
    rng = np.random.default_rng(0)
    labelled = rng.multinomial(n, cells.ravel(), 1000).reshape(1000, 2, 2, 2)
    judged = rng.multinomial(1000 * n, cells.sum(0).ravel(), 1000).reshape(1000, 2, 2)
    found = jm.prediction_powered(jm.accuracy, jnp.asarray(labelled), jnp.asarray(judged))
    assert abs(found.value.mean() - 0.95) < (0.003 if n == 50 else 0.001)
    assert np.mean((found.low <= 0.95) & (found.high >= 0.95)) > 0.93


def test_twenty_truths_stay_in_the_range_of_the_metric() -> None:
    """More errors of the judge may be rectified than there were: such shares count as 0. Macro F1
    had ends of -600 and 1.4, Matthews' coefficient of 1.3.
    """
    rng = np.random.default_rng(3)
    right = 0.85 * np.eye(3) + 0.05
    judge = 0.8 * np.eye(3) + 0.2 / 3
    cells = np.array([0.55, 0.27, 0.18])[:, None, None] * judge[:, :, None] * right[:, None]
    metrics = {"macro_f1": jm.macro(jm.f1), "matthews": jm.matthews_corrcoef}
    for _ in range(20):
        labelled = rng.multinomial(20, cells.ravel()).reshape(3, 3, 3)
        judged = rng.multinomial(400, cells.sum(0).ravel()).reshape(3, 3)
        found = jm.prediction_powered(
            lambda c: {k: m(c) for k, m in metrics.items()}, labelled, judged
        )
        for name, lowest in {"macro_f1": 0, "matthews": -1}.items():
            estimate = found[name]
            assert lowest <= estimate.low <= estimate.value <= estimate.high <= 1


def test_clusters_of_one_example() -> None:
    """They are examples, but for the correction by C / (C - 1), Student's quantile, and three
    quarters of a cluster that are added, too.
    """
    n = LABELLED.sum()
    places = np.repeat(np.arange(27), LABELLED.ravel())
    each = (places[:, None] == np.arange(27)).astype(int).reshape(n, 3, 3, 3)
    by_ten = np.stack([JUDGED // 10] * 10)
    judged = by_ten.sum(0)
    one = np.repeat(np.arange(9), judged.ravel())
    others = (one[:, None] == np.arange(9)).astype(int).reshape(-1, 3, 3)
    found = jm.prediction_powered(jm.f1, each, others, cluster_axis=-4)
    plain = jm.prediction_powered(jm.f1, LABELLED, judged)
    assert_allclose(found.value, plain.value, rtol=1e-9)
    has_class = np.stack([np.indices((3, 3, 3)) == k for k in range(3)]).any(1)
    c = (has_class * LABELLED).sum((1, 2, 3))  # only these examples move the F1 of a class
    assert_allclose(found.standard_error, plain.standard_error * np.sqrt(c / (c - 1)), rtol=1 / n)
    widths = (found.high - found.low) / (plain.high - plain.low)
    assert ((widths > 1) & (widths < 1.2)).all()
    twice = jm.prediction_powered(jm.f1, np.stack([each, each]), others[None], cluster_axis=1)
    assert_allclose(twice.high, np.stack([found.high, found.high]), rtol=1e-9)


def test_under_jit_negative_counts_give_nan() -> None:
    call = jax.jit(lambda a, b: jm.prediction_powered(jm.f1, a, b).high)
    assert np.isfinite(call(jnp.asarray(LABELLED), jnp.asarray(JUDGED))).all()
    assert np.isnan(call(jnp.asarray(-LABELLED), jnp.asarray(JUDGED))).all()


def test_without_truth_nothing_is_known() -> None:
    found = jm.prediction_powered(jm.accuracy, 0 * LABELLED, JUDGED)
    assert np.isnan(parts(found)).all()


@pytest.mark.parametrize(
    ("metric", "labelled", "judged", "options", "message"),
    [
        (
            jm.f1,
            JUDGED,
            JUDGED,
            {},
            r"of shape \(3, 3\) and judged of shape \(3, 3\). To make labelled, use jaxmetrics",
        ),
        (
            jm.f1,
            LABELLED,
            JUDGED[:2, :2],
            {},
            r"shape \(..., K, K, K\), with the axes truth, judge, pred",
        ),
        (
            jm.difference(jm.f1),
            LABELLED,
            JUDGED,
            {},
            r"difference\(metric\), with the axes truth, judge, A, B, and",
        ),
        (jm.f1, -LABELLED, JUDGED, {}, r"labelled\[0, 0, 0\] is -20"),
        (jm.f1, LABELLED, JUDGED / 7, {}, "judged.*expected a number of examples"),
        (jm.f1, LABELLED, JUDGED, {"level": 95}, "level must be a Python number"),
        (
            jm.f1,
            LABELLED,
            JUDGED,
            {"cluster_axis": -3},
            "so cluster_axis must be -4 or another axis",
        ),
    ],
)
def test_what_is_refused(
    metric: Any, labelled: Any, judged: Any, options: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        jm.prediction_powered(metric, labelled, judged, **options)


def test_labelled_examples_that_are_no_random_sample_give_a_warning() -> None:
    """A balanced set of 200 examples, of which the judge passes half, not two of three."""
    judged = np.array([[0, 317], [0, 683]])
    balanced = np.array([[[0, 89], [0, 11]], [[0, 10], [0, 90]]])
    for put in (np.asarray, jnp.asarray):
        with pytest.warns(UserWarning, match=r"assigns class 1 to 50.5% of them, but to 68.3%"):
            jm.prediction_powered(jm.accuracy, put(balanced), put(judged))
    at_random = np.array([[[0, 54], [0, 7]], [[0, 14], [0, 125]]])
    found = jm.prediction_powered(jm.accuracy, at_random, judged)
    assert found.low < 0.7 < found.high
    counts = np.stack([at_random.sum((0, 2)), judged.sum(1)])
    assert stats.chi2_contingency(counts, False, lambda_="log-likelihood").pvalue > 1e-3
    jm.prediction_powered(jm.accuracy, at_random, np.zeros((2, 2)))
