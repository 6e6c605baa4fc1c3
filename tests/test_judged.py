"""Few examples with truth and many that were judged: against PPI++ of means, loops, simulation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm

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
    """The limits are those of `ppi_mean_ci` of ppi_py 0.2.3, with the λ that it finds."""
    found = jm.prediction_powered(jm.accuracy, LABELLED, judged, level=level, method="delta")
    np.testing.assert_allclose([found.low, found.high], [low, high], rtol=1e-12)
    on_device = jm.prediction_powered(
        jm.accuracy, jnp.asarray(LABELLED), judged, level=level, method="delta"
    )
    np.testing.assert_allclose([on_device.low, on_device.high], [low, high], rtol=1e-6)


def test_a_difference_of_accuracies_is_the_mean_of_ppi() -> None:
    labelled = np.array(
        [[[[6, 7], [0, 7]], [[4, 4], [5, 2]]], [[[8, 0], [2, 3]], [[5, 3], [1, 0]]]]
    )
    judged = np.array([[[20, 23], [30, 89]], [[33, 65], [72, 36]]])
    found = jm.prediction_powered(jm.accuracy, labelled, judged, method="delta", paired=True)
    expected = [-0.0536864530, 0.2642127632]
    np.testing.assert_allclose([found.low, found.high], expected, atol=1e-8)
    by_likelihood = jm.prediction_powered(jm.accuracy, labelled, judged, paired=True)
    np.testing.assert_allclose([by_likelihood.low, by_likelihood.high], expected, atol=0.02)


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
    covariance = ((t - t.mean()) * (j - j.mean())).mean()
    share = covariance / ((1 + n / m) * np.concatenate([j, o]).var(ddof=1))
    table = by_truth + share * (elsewhere - by_judge)
    t, j, o = terms(table)
    return metric(table), np.sqrt((t - share * j).var() / n + (share * o).var() / m)


@pytest.mark.parametrize("metric", [jm.macro(jm.f1), jm.matthews_corrcoef, jm.cohen_kappa])
def test_values_and_errors_of_other_metrics(metric: Any) -> None:
    found = jm.prediction_powered(metric, LABELLED, JUDGED, method="delta")
    value, error = slow_error(metric, LABELLED, JUDGED)
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.standard_error == pytest.approx(error, rel=1e-6)
    by_likelihood = jm.prediction_powered(metric, LABELLED, JUDGED)
    assert by_likelihood.value == pytest.approx(value, rel=1e-9)
    assert by_likelihood.standard_error == pytest.approx(error, rel=1e-6)


def test_each_value_has_its_own_share_of_the_judge() -> None:
    def both(counts: Any) -> Any:
        return {"f1": jm.f1(counts), "accuracy": jm.accuracy(counts)}

    together = jm.prediction_powered(both, LABELLED, JUDGED)
    alone = jm.prediction_powered(jm.accuracy, LABELLED, JUDGED)
    of_class = jm.prediction_powered(lambda c: jm.f1(c)[..., 1], LABELLED, JUDGED)
    np.testing.assert_allclose(together["accuracy"].high, alone.high, rtol=1e-9)
    np.testing.assert_allclose(together["f1"].high[1], of_class.high, rtol=1e-9)


@pytest.mark.parametrize("method", ["likelihood", "delta"])
def test_without_judged_examples_truth_is_all(method: Any) -> None:
    nothing = np.zeros((3, 3), int)
    found = jm.prediction_powered(jm.macro(jm.f1), LABELLED, nothing, method=method)
    alone = jm.likelihood_interval if method == "likelihood" else jm.delta_method
    expected = alone(jm.macro(jm.f1), LABELLED.sum(1))
    # By likelihood the half example is one of n here, since each sample keeps its size.
    room = 1e-3 if method == "likelihood" else 1e-6
    np.testing.assert_allclose(found[:4], expected[:4], rtol=room)


def test_the_cost_does_not_depend_on_the_number_of_judged_examples() -> None:
    """And a perfect judge of very many leaves no error."""
    perfect = LABELLED.sum(1)[:, None] * np.eye(3, dtype=int)[:, :, None]
    judged = LABELLED.sum(1) * 10**9
    found = jm.prediction_powered(jm.matthews_corrcoef, perfect, judged, method="delta")
    assert found.standard_error < 1e-4
    assert found.value == pytest.approx(float(jm.matthews_corrcoef(judged)), rel=1e-9)


def drawn(
    kappa: float, n: int, times: int, size: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cells and samples of a judge who errs independently of the classifier."""
    prior = np.array([0.5, 0.3, 0.2])
    predictions = np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    judge = kappa * np.eye(3) + (1 - kappa) * prior
    cells = prior[:, None, None] * judge[:, :, None] * predictions[:, None]
    rng = np.random.default_rng(seed)
    labelled = rng.multinomial(n, cells.ravel(), size).reshape(size, 3, 3, 3)
    judged = rng.multinomial(n * times, cells.sum(0).ravel(), size).reshape(size, 3, 3)
    return cells, labelled, judged


@pytest.mark.parametrize(
    ("kappa", "method", "narrowest", "widest"),
    [
        (0, "likelihood", 0.98, 1.02),
        (0, "delta", 0.98, 1.0),
        (0.8, "likelihood", 0.6, 0.75),
        (0.8, "delta", 0.6, 0.75),
    ],
)
def test_coverage_and_width(kappa: float, method: Any, narrowest: float, widest: float) -> None:
    metric, size = jm.macro(jm.f1), 1000
    cells, labelled, judged = drawn(kappa, 200, 10, size)
    truth = float(metric(cells.sum(1)))
    found = jm.prediction_powered(metric, jnp.asarray(labelled), jnp.asarray(judged), method=method)
    covers = np.mean((found.low <= truth) & (truth <= found.high))
    assert 0.95 - 4 * 0.0069 < covers < 0.98  # of four standard errors
    alone = jm.likelihood_interval if method == "likelihood" else jm.delta_method
    without = alone(metric, jnp.asarray(labelled.sum(2)))
    ratio = np.mean(found.high - found.low) / np.mean(without.high - without.low)
    assert narrowest < ratio < widest


def test_truth_of_a_selection_misleads() -> None:
    """What the docstring warns of: errors of both were looked for."""
    cells, labelled, judged = drawn(0.8, 400, 10, 300)
    both_right = np.eye(3)[:, :, None] * np.eye(3)[:, None]
    selected = labelled * (1 - 0.8 * both_right)
    found = jm.prediction_powered(
        jm.accuracy, jnp.asarray(selected), jnp.asarray(judged), method="delta"
    )
    assert np.mean(found.high >= float(jm.accuracy(cells.sum(1)))) < 0.5


def test_clusters_of_one_example() -> None:
    """They are examples, but for the correction by C / (C - 1) and Student's quantile."""
    n = LABELLED.sum()
    places = np.repeat(np.arange(27), LABELLED.ravel())
    each = (places[:, None] == np.arange(27)).astype(int).reshape(n, 3, 3, 3)
    by_ten = np.stack([JUDGED // 10] * 10)
    judged = by_ten.sum(0)
    one = np.repeat(np.arange(9), judged.ravel())
    others = (one[:, None] == np.arange(9)).astype(int).reshape(-1, 3, 3)
    found = jm.prediction_powered(jm.f1, each, others, method="delta", cluster_axis=-4)
    plain = jm.prediction_powered(jm.f1, LABELLED, judged, method="delta")
    np.testing.assert_allclose(found.value, plain.value, rtol=1e-9)
    np.testing.assert_allclose(found.standard_error, plain.standard_error, rtol=1 / n)
    twice = jm.prediction_powered(
        jm.f1, np.stack([each, each]), others[None], method="delta", cluster_axis=1
    )
    np.testing.assert_allclose(twice.high, np.stack([found.high, found.high]), rtol=1e-9)


def test_coverage_of_clusters() -> None:
    """Forty clusters of ten, half of whose examples are copies of one another."""
    cells, _, _ = drawn(0.8, 1, 1, 1)
    rng = np.random.default_rng(1)

    def clusters(p: np.ndarray, number: int) -> np.ndarray:
        size = 300
        one = rng.multinomial(1, p.ravel(), (size, number))
        return (5 * one + rng.multinomial(5, p.ravel(), (size, number))).reshape(
            (size, number, *p.shape)
        )

    labelled, judged = clusters(cells, 40), clusters(cells.sum(0), 200)
    truth = float(jm.accuracy(cells.sum(1)))
    options: dict[str, Any] = {"method": "delta", "cluster_axis": -4}
    found = jm.prediction_powered(
        jm.accuracy, jnp.asarray(labelled), jnp.asarray(judged), **options
    )
    covers = np.mean((found.low <= truth) & (truth <= found.high))
    assert 0.95 - 4 * 0.0126 < covers <= 0.99
    ignored = jm.prediction_powered(
        jm.accuracy, jnp.asarray(labelled.sum(1)), jnp.asarray(judged.sum(1)), method="delta"
    )
    assert np.mean((ignored.low <= truth) & (truth <= ignored.high)) < 0.85


def test_under_jit_negative_counts_give_nan() -> None:
    call = jax.jit(lambda a, b: jm.prediction_powered(jm.f1, a, b, method="delta").high)
    assert np.isfinite(call(jnp.asarray(LABELLED), jnp.asarray(JUDGED))).all()
    assert np.isnan(call(jnp.asarray(-LABELLED), jnp.asarray(JUDGED))).all()


def test_without_truth_nothing_is_known() -> None:
    for method in ("likelihood", "delta"):
        found = jm.prediction_powered(jm.accuracy, 0 * LABELLED, JUDGED, method=method)
        assert np.isnan(found[:4]).all()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((JUDGED, JUDGED), {}, r"got \(3, 3\) and \(3, 3\). jaxmetrics.paired_confusion"),
        ((LABELLED, JUDGED[:2, :2]), {}, r"labelled must have shape \(..., K, K, K\) \(truth, jud"),
        ((LABELLED, JUDGED), {"paired": True}, r"\(truth, judge, A, B\)"),
        ((-LABELLED, JUDGED), {}, r"labelled\[0, 0, 0\] is -20"),
        ((LABELLED, JUDGED / 7), {}, "judged.*expected a number of examples"),
        ((LABELLED, JUDGED), {"method": "bca"}, "method must be 'likelihood' or 'delta'"),
        ((LABELLED, JUDGED), {"transform": "logit"}, 'for method="delta"'),
        ((LABELLED, JUDGED), {"cluster_axis": -4}, 'for method="delta"'),
        (
            (LABELLED, JUDGED),
            {"method": "delta", "transform": "logit", "paired": True},
            "differences have no scale",
        ),
    ],
)
def test_what_is_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jm.prediction_powered(jm.accuracy, *arguments, **options)
