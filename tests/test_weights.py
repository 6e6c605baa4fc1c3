"""Intervals of examples with weights, such as those of a survey: each example is a unit."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm
from tests.oracles import fields_of

rng = np.random.default_rng(0)
N = 200
TRUE = rng.integers(0, 3, N)
PRED = np.where(rng.random(N) < 0.8, TRUE, rng.integers(0, 3, N))
OTHER = np.where(rng.random(N) < 0.7, TRUE, rng.integers(0, 3, N))
WEIGHTS = rng.choice([0.5, 1, 4.2], N)
METHODS = [jm.Likelihood(), jm.Delta(), jm.Bootstrap(0), jm.Posterior(0)]
METRICS = {"f1": jm.macro(jm.f1), "kappa": jm.cohen_kappa, "recall": lambda x: jm.recall(x)[..., 1]}


def tables(weights: np.ndarray = WEIGHTS) -> Any:
    """The sums of weights and of their squares."""
    return tuple(jm.confusion_matrix(TRUE, PRED, sample_weight=w) for w in (weights, weights**2))


def several(counts: Any) -> dict[str, Any]:
    return {name: metric(counts) for name, metric in METRICS.items()}


def close(a: Any, b: Any, rtol: float = 1e-9) -> None:
    for x, y in zip(fields_of(a)[:4], fields_of(b)[:4], strict=True):
        assert_allclose(x, y, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("method", METHODS, ids=lambda x: x.name)
def test_intervals_do_not_depend_on_the_scale_of_weights(method: Any) -> None:
    counts, squares = tables()
    expected = jm.interval(several, counts, squares=squares, method=method)
    for scale in (1e-3, 250):
        scaled = jm.interval(several, scale * counts, squares=scale**2 * squares, method=method)
        jax.tree.map(close, scaled, expected, is_leaf=lambda x: isinstance(x, jm.Estimate))
    assert expected["f1"].effective_number == pytest.approx((counts**2 / squares).sum())


@pytest.mark.parametrize("method", METHODS, ids=lambda x: x.name)
def test_equal_weights_of_a_cell_leave_the_intervals_of_counts(method: Any) -> None:
    """Weights of all examples, and of each true class: then the metric weighs the classes."""
    counts = jm.confusion_matrix(TRUE, PRED)
    expected = jm.interval(jm.accuracy, counts, method=method)
    close(jm.interval(jm.accuracy, 2.5 * counts, squares=2.5**2 * counts, method=method), expected)
    share = np.array([[0.5], [4.0], [2.5]])
    found = jm.interval(jm.accuracy, share * counts, squares=share**2 * counts, method=method)
    of_classes = jm.interval(lambda x: jm.accuracy(share * x), counts, method=method)
    close(found, of_classes)


def test_errors_are_the_linearized_ones() -> None:
    """Sum of the squares of the influences of examples, which the jackknife approaches."""
    counts, squares = tables()
    for metric in METRICS.values():
        left_out = []
        for i in range(N):
            kept = np.arange(N) != i
            one = jm.confusion_matrix(TRUE[kept], PRED[kept], sample_weight=WEIGHTS[kept])
            left_out.append(metric(one) - metric(counts))
        found = jm.interval(metric, counts, squares=squares, method=jm.Delta()).standard_error
        assert_allclose(found, np.sqrt(np.square(left_out).sum()), rtol=0.03)


def test_weights_on_the_device_and_in_batches() -> None:
    counts, squares = tables()
    batch = np.stack([counts, counts[::-1, ::-1]]), np.stack([squares, squares[::-1, ::-1]])
    expected = jm.interval(jm.macro(jm.f1), *batch[:1], squares=batch[1])
    compiled = jax.jit(lambda x, y: jm.interval(jm.macro(jm.f1), x, squares=y))
    close(compiled(*batch), expected, rtol=2e-4)
    small = jm.interval(jm.macro(jm.f1), jnp.asarray(counts), squares=jnp.asarray(squares))
    assert isinstance(small.low, jax.Array)
    assert_allclose(small.low, expected.low[0], rtol=1e-5)


def test_comparisons_take_weights() -> None:
    pairs = [
        jm.paired_confusion_matrix(TRUE, PRED, OTHER, sample_weight=w)
        for w in (WEIGHTS, WEIGHTS**2)
    ]
    found = jm.compare(jm.macro(jm.f1), pairs[0], squares=pairs[1])
    close(found.a, jm.interval(jm.macro(jm.f1), tables()[0], squares=tables()[1]), rtol=5e-3)
    right = (PRED == TRUE) * 1.0 - (OTHER == TRUE)
    by_means = jm.mean_interval(right, sample_weight=WEIGHTS)
    difference = jm.compare(jm.accuracy, pairs[0], squares=pairs[1], method=jm.Delta()).difference
    assert_allclose(difference.value, by_means.value)
    assert_allclose(difference.standard_error, by_means.standard_error, rtol=0.02)


@pytest.mark.parametrize("method", METHODS, ids=lambda x: x.name)
@pytest.mark.parametrize("call", [jm.interval, jm.compare, jm.compare_unpaired])
def test_sums_of_weights_alone_are_refused(call: Any, method: Any) -> None:
    """The same sums times 2 are numbers of examples."""
    pairs = jm.paired_confusion_matrix(TRUE, PRED, OTHER) / 2
    matrix = jm.confusion_matrix(TRUE, PRED) / 2
    sums = {jm.compare: (pairs,), jm.interval: (matrix,), jm.compare_unpaired: (matrix, matrix)}
    call(jm.accuracy, *(2 * x for x in sums[call]), method=method)
    with pytest.raises(ValueError, match=r"\.5, expected a number of .*compare with squares"):
        call(jm.accuracy, *sums[call], method=method)


def test_squares_belong_to_counts() -> None:
    counts, squares = tables()
    for wrong, message in (
        (squares[:2], r"squares must have the shape \(3, 3\) of counts, got \(2, 3\)"),
        (np.eye(3) * squares, r"squares\[0, 1\] is 0, but an example with a weight adds to both"),
        (-squares, r"squares\[0, 0\] is -.*, expected a count >= 0"),
    ):
        with pytest.raises(ValueError, match=message):
            jm.interval(jm.accuracy, counts, squares=wrong)
    with pytest.raises(ValueError, match="squares and cluster_axis cannot be used together"):
        jm.interval(jm.accuracy, counts[None], squares=squares[None], cluster_axis=-3)


@pytest.mark.parametrize("options", [{}, {"bounds": (0, 1)}, {"transform": "logit"}])
def test_means_of_weighted_values(options: Any) -> None:
    x = np.random.default_rng(1).beta(4, 1, N)
    found = jm.mean_interval(x, sample_weight=WEIGHTS, **options)
    for scale in (1e-3, 250):
        close(jm.mean_interval(x, sample_weight=scale * WEIGHTS, **options), found)
    assert found.num_examples == N
    by_jackknife = jm.mean_interval(x, sample_weight=WEIGHTS, clusters=np.arange(N), **options)
    assert_allclose(fields_of(found)[:4], fields_of(by_jackknife)[:4], rtol=0.02)
    ones = jm.mean_interval(x, sample_weight=np.ones(N), **options)
    assert_allclose(fields_of(ones)[:4], fields_of(jm.mean_interval(x, **options))[:4], rtol=0.01)
    copies = np.random.default_rng(2).integers(0, 4, N)
    as_copies = jm.mean_interval(x, sample_weight=copies, frequency=True, **options)
    close(as_copies, jm.mean_interval(np.repeat(x, copies), **options))
    assert jm.mean_interval(x, sample_weight=copies, **options).low < as_copies.low
    hidden = jax.jit(lambda x, w: jm.mean_interval(x, sample_weight=w, **options))(x, WEIGHTS)
    close(hidden, found, rtol=1e-4)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_of_weighted_examples(strategy: Any) -> None:
    prob = np.random.default_rng(1).random(N)
    y = np.random.default_rng(2).random(N) < prob**1.5
    options: Any = {"strategy": strategy, "num_bins": 5}
    found = jm.calibration_interval(y, prob, sample_weight=WEIGHTS, **options)
    scaled = jm.calibration_interval(y, prob, sample_weight=250 * WEIGHTS, **options)
    close(scaled, found, rtol=2e-3)  # quantiles of weights are rounded
    plain = jm.calibration_interval(y, prob, **options)
    close(jm.calibration_interval(y, prob, sample_weight=np.full(N, 3.0), **options), plain)
    by_example = partial(jm.calibration_interval, y, prob, clusters=np.arange(N), **options)
    clustered = [by_example(sample_weight=scale * WEIGHTS) for scale in (1e-3, 1)]
    close(clustered[0], clustered[1], rtol=2e-3)
    assert_allclose(fields_of(clustered[0])[:3], fields_of(found)[:3], atol=0.04)
    copies = np.random.default_rng(3).integers(0, 4, N)
    if strategy == "uniform":
        repeated = jm.calibration_interval(np.repeat(y, copies), np.repeat(prob, copies), **options)
        options |= {"sample_weight": copies, "frequency": True}
        close(jm.calibration_interval(y, prob, **options), repeated)


def test_reports_of_weighted_examples() -> None:
    prob = 0.6 * np.eye(3)[PRED] + 0.4 * np.random.default_rng(3).dirichlet(np.ones(3), N)
    options: Any = {"y_prob": prob}
    report: Any = jm.report(TRUE, PRED, sample_weight=WEIGHTS, **options)
    counts, squares = tables()
    number = counts.sum() ** 2 / squares.sum()
    assert report.to_text().startswith(
        f"200 examples, weights sum to {WEIGHTS.sum():.6g}, effective number {number:.4g}, 3 cl"
    )
    assert report.to_dict()["num_examples"] == N
    assert report.to_dict()["effective_number"] == pytest.approx(number)
    for name, metric in (("accuracy", jm.accuracy), ("macro_f1", jm.macro(jm.f1))):
        # Accuracy is a proportion of two cells, right and wrong.
        close(report[name].estimate, jm.interval(metric, counts, squares=squares), rtol=2e-3)
    recalls = jm.interval(jm.recall, counts, squares=squares)
    found = np.array([x.numbers for x in report["recall"].values()]).T
    assert_allclose(found, fields_of(recalls)[:3], rtol=2e-3)
    scaled: Any = jm.report(TRUE, PRED, sample_weight=250 * WEIGHTS, **options)
    for name, x in report.overall.items():
        assert_allclose(x.numbers, scaled[name].numbers, rtol=1e-6)
    ones: Any = jm.report(TRUE, PRED, sample_weight=np.ones(N), **options)
    plain: Any = jm.report(TRUE, PRED, **options)
    for name, x in ones.overall.items():
        if name != "expected_accuracy":  # its interval without weights is that of a proportion
            assert_allclose(x.numbers[:3], plain[name].numbers[:3], atol=5e-3)
    groups = np.arange(N) % 2
    by_group: Any = jm.report(TRUE, PRED, sample_weight=WEIGHTS, groups=groups)
    alone = jm.report(TRUE[groups == 0], PRED[groups == 0], sample_weight=WEIGHTS[groups == 0])
    close(by_group.groups["0"]["accuracy"].estimate, alone["accuracy"].estimate)


def test_weights_in_tables_keep_their_squares() -> None:
    frame = pl.DataFrame({"y_true": TRUE, "y_pred": PRED, "w": WEIGHTS, "g": np.arange(N) % 2})
    counted: Any = jm.confusion_matrix_of(frame, sample_weight="w")
    assert_allclose(counted.counts, tables()[0])
    assert_allclose(counted.squares, tables()[1])
    by_group: Any = jm.confusion_matrix_of(frame, sample_weight="w", groups="g")
    assert_allclose(by_group.squares.sum(0), tables()[1])
    assert jm.confusion_matrix_of(frame).squares is None


@pytest.mark.slow
@pytest.mark.parametrize("design", ["independent", "of classes", "of mistakes"])
def test_coverage_of_weighted_intervals(design: str) -> None:
    draw = np.random.default_rng(5)
    accuracy, share = np.array([0.9, 0.8, 0.6]), [0.5, 0.3, 0.2]

    def examples(n: int) -> tuple[np.ndarray, ...]:
        true = draw.choice(3, n, p=share)
        right = draw.random(n) < accuracy[true]
        weights = {
            "independent": draw.choice([0.5, 1, 4.2], n),
            "of classes": np.array([0.5, 3, 40])[true],
            "of mistakes": np.where(right, draw.choice([1, 2.0], n), draw.choice([1, 8.0], n)),
        }[design]
        return true, np.where(right, true, (true + draw.integers(1, 3, n)) % 3), weights

    def counted(n: int) -> Any:
        true, pred, w = examples(n)
        options: Any = {"num_classes": 3}
        return tuple(jm.confusion_matrix(true, pred, sample_weight=x, **options) for x in (w, w**2))

    truth = several(counted(2_000_000)[0])
    sets = [counted(250) for _ in range(200)]
    counts, squares = map(np.stack, zip(*sets, strict=True))
    found = jm.interval(several, counts, squares=squares)
    for name, x in found.items():
        covered = np.mean((x.low <= truth[name]) & (truth[name] <= x.high))
        assert 0.91 <= covered <= 0.99, (name, covered)
