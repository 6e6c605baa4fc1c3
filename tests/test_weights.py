"""Intervals of examples with weights, such as those of a survey: each example is a unit."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.streaming.states import _without_squares
from tests.command_line import Run, answer
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
        # Only without weights, expected accuracy is a proportion, and areas have intervals.
        assert_allclose(x.value, plain[name].value, atol=5e-3)
        if name not in ("expected_accuracy", "macro_roc_auc"):
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


X = np.random.default_rng(4).exponential(size=N)
PROB = np.clip(TRUE * 0.2 + np.random.default_rng(5).random(N) * 0.5, 0, 1)
BATCH = {"y_true": TRUE, "y_pred": PRED, "y_pred_a": PRED, "y_pred_b": OTHER, "loss": X}


def auc(histogram: Any) -> Any:
    return jm.roc_auc(histogram).value


def streamed(*, weighted: bool = True, method: Any = jm.Delta()) -> jm.streaming.Evaluator:  # noqa: B008  # it is frozen
    options: Any = {"method": method, "weighted": weighted}
    return jm.evaluator(
        jm.count_metrics(METRICS, num_classes=3, **options),
        jm.paired_metrics({"paired": jm.accuracy}, num_classes=3, **options),
        jm.mean_of("loss", level=0.95),
        jm.mean_of("size", level=0.95, weights="size_weight"),
    )


def state_of(evaluator: jm.streaming.Evaluator, weights: Any, parts: int = 4) -> Any:
    batch = BATCH | {"size": X**2, "size_weight": 1 + X}
    batch |= {} if weights is None else {"sample_weight": weights}
    state = evaluator.init()
    for rows in np.split(np.arange(N), parts):
        state = evaluator.update(state, **{name: x[rows] for name, x in batch.items()})
    return state


def test_streams_have_the_intervals_of_functions(x64: bool) -> None:
    method, evaluator = jm.Delta(), streamed()
    found: Any = evaluator.compute(state_of(evaluator, WEIGHTS))
    rtol = 1e-6 if x64 else 1e-3
    counts, squares = tables()
    for name, metric in METRICS.items():
        close(found[name], jm.interval(metric, counts, squares=squares, method=method), rtol)
    pairs, of_squares = (
        jm.paired_confusion_matrix(TRUE, PRED, OTHER, sample_weight=w)
        for w in (WEIGHTS, WEIGHTS**2)
    )
    compared = jm.compare(jm.accuracy, pairs, squares=of_squares, method=method)
    close(found["paired"].difference, compared.difference, rtol)
    assert_allclose(found["f1"].effective_number, (counts**2 / squares).sum(), rtol=rtol)
    scaled: Any = evaluator.compute(state_of(evaluator, 250 * WEIGHTS))
    equal: Any = evaluator.compute(state_of(evaluator, np.full(N, 2.5)))
    plain = streamed(weighted=False)
    unweighted: Any = plain.compute(state_of(plain, None))
    for name in (*METRICS, "loss", "size"):
        close(scaled[name], found[name], rtol)
        close(equal[name], unweighted[name], rtol)
    with pytest.raises(ValueError, match="sample_weight needs sums of weights"):
        state_of(plain, WEIGHTS)


def test_histograms_of_scores_have_intervals_with_weights() -> None:
    """Of one event, and of three classes against the rest."""
    options: Any = {"scale": "probability", "num_bins": 64, "method": jm.Delta(), "weighted": True}
    evaluator = jm.evaluator(jm.ranking_metrics({"auc": auc}, **options))
    event = (TRUE > 0).astype(int)
    batch: Any = {"y_true": event, "y_score": PROB, "sample_weight": WEIGHTS}
    found = evaluator.compute(evaluator.update(evaluator.init(), **batch))["auc"]
    sums, squares = (
        jm.score_histogram(event, PROB, scale="probability", num_bins=64, sample_weight=w)
        for w in (WEIGHTS, WEIGHTS**2)
    )
    close(found, jm.interval(auc, sums, squares=squares, method=jm.Delta()), 1e-4)
    rows = np.random.default_rng(0).dirichlet(np.ones(3), N)
    each = jm.evaluator(jm.ranking_metrics({"auc": auc}, num_classes=3, **options))
    batch = {"y_true": TRUE, "y_prob": rows, "sample_weight": WEIGHTS}
    areas = each.compute(each.update(each.init(), **batch))["auc"]
    for k in range(3):
        one = batch | {"y_true": np.where(k == TRUE, 1, 0), "y_score": rows[:, k]}
        del one["y_prob"]
        alone = evaluator.compute(evaluator.update(evaluator.init(), **one))["auc"]
        close(jax.tree.map(lambda x, k=k: x[k], areas), alone, 1e-4)


def test_states_with_weights_are_states() -> None:
    """Donated, in a scan, merged, and added by psum over eight devices."""
    evaluator = streamed()
    arrays = BATCH | {"size": X**2, "size_weight": 1 + X, "sample_weight": WEIGHTS}
    batch = {name: jnp.asarray(x) for name, x in arrays.items()}
    update = jax.jit(lambda state, x: evaluator.update(state, **x), donate_argnums=0)
    states = [update(evaluator.init(), batch)]
    parts = {name: x.reshape((8, -1)) for name, x in batch.items()}
    step = lambda state, x: (evaluator.update(state, **x), None)
    states.append(jax.lax.scan(step, evaluator.init(), parts)[0])
    halves = ({name: x[s] for name, x in batch.items()} for s in (slice(60), slice(60, N)))
    states.append(evaluator.merge(*(evaluator.update(evaluator.init(), **x) for x in halves)))
    mesh = Mesh(np.array(jax.devices("cpu")), ("i",))

    def on_each(batch: Any) -> Any:
        return evaluator.psum(evaluator.update(evaluator.init(), **batch), "i")

    shards = jax.shard_map(on_each, mesh=mesh, in_specs=P("i"), out_specs=P())
    states.append(jax.jit(shards)(batch))
    expected = jax.tree.map(np.asarray, evaluator.compute(state_of(evaluator, WEIGHTS)))
    for state in states:
        found = jax.tree.map(np.asarray, evaluator.compute(state))
        jax.tree.map(partial(assert_allclose, rtol=1e-4), found, expected)


def by_definition(x: np.ndarray, s: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """The ratio of two sums and its linearized error, one example after the other."""
    mean = sum(a * b * c for a, b, c in zip(s, w, x, strict=True)) / (s @ w)
    n = s.sum() ** 2 / (s**2).sum()
    residuals = sum((a * b * (c - mean)) ** 2 for a, b, c in zip(s, w, x, strict=True))
    return mean, np.sqrt(n / (n - 1) * residuals) / (s @ w)


def test_means_in_streams(x64: bool) -> None:
    evaluator = streamed()
    found: Any = evaluator.compute(state_of(evaluator, WEIGHTS))
    for name, x, w in (("loss", X, np.ones(N)), ("size", X**2, 1 + X)):
        value, error = by_definition(x, WEIGHTS, w)
        reach = 1.959964 * error
        expected = value, value - reach, value + reach, error
        assert_allclose(fields_of(found[name])[:4], expected, rtol=1e-6 if x64 else 1e-3)
        number = WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum()
        assert_allclose(found[name].effective_number, number, rtol=1e-5)
    of_examples = jm.mean_interval(X, sample_weight=WEIGHTS)
    assert_allclose(found["loss"].value, of_examples.value, rtol=1e-5)
    assert_allclose(found["loss"].standard_error, of_examples.standard_error, rtol=0.02)


@pytest.mark.parametrize("of_old_version", [False, True])
def test_reports_of_states_with_weights(of_old_version: bool, tmp_path: Path) -> None:
    """As of the examples. Earlier versions stored no squares; then there are values only."""
    rows = 0.6 * np.eye(3)[PRED] + 0.4 * np.random.default_rng(3).dirichlet(np.ones(3), N)
    evaluator = jm.evaluator(
        jm.count_metrics(METRICS, num_classes=3, weighted=True),
        jm.mean_of("loss", level=0.95),
        jm.ranking_metrics(scale="probability", num_classes=3, weighted=True),
    )
    batch: Any = {"y_true": TRUE, "y_prob": rows, "loss": X}
    for weights in (WEIGHTS, 8 * WEIGHTS // 3, np.ones(N)):
        state = evaluator.update(evaluator.init(), **batch, sample_weight=weights)
        if of_old_version:
            state = _without_squares(state)
        jm.save_state(tmp_path / "x.npz", state)
        state = jm.load_state(tmp_path / "x.npz")
        report: Any = jm.Report.from_state(state)
        has_weights = (weights != 1).any()
        expected: Any = jm.report(
            TRUE, rows.argmax(1), sample_weight=weights if has_weights else None
        )
        assert report.num_examples == N
        assert_allclose(evaluator.compute(state)["f1"], expected["macro_f1"].value, rtol=1e-5)
        is_known = not (of_old_version and has_weights)
        for name in ("accuracy", "macro_f1", "matthews_corrcoef", "cohen_kappa", "accuracy_gain"):
            numbers = np.array(expected[name].numbers, float)
            numbers[1:] = numbers[1:] if is_known else np.nan
            assert_allclose(np.array(report[name].numbers, float), numbers, rtol=1e-4, atol=1e-6)
        assert report["loss"].has_interval == report["recall"]["0"].has_interval == is_known
        assert report["roc_auc"]["0"].has_interval == (not has_weights)
        assert ("weights sum to" in report.to_text()) == has_weights
        assert ("effective number" in report.to_text()) == (has_weights and not of_old_version)


def test_states_without_squares_of_weights(tmp_path: Path) -> None:
    """As earlier versions saved them: they are updated and merged; intervals are refused."""
    evaluator, values = streamed(), streamed(method=None)
    state = state_of(evaluator, WEIGHTS)
    jm.save_state(tmp_path / "old.npz", _without_squares(state))
    old = jm.load_state(tmp_path / "old.npz", evaluator)
    expected: Any = values.compute(state_of(values, WEIGHTS))
    for again in (old, evaluator.merge(old, state), evaluator.merge(state, old)):
        found: Any = values.compute(again)
        assert_allclose(found["f1"], expected["f1"], rtol=1e-5)
        assert_allclose(found["loss"].value, expected["loss"].value, rtol=1e-5)
        with pytest.raises(
            ValueError, match=r"without the sums of their squares, because an ear.*"
        ):
            evaluator.compute(again)
    batch = {name: x[:5] for name, x in BATCH.items()}
    batch |= {"size": X[:5], "size_weight": X[:5]}
    assert values.compute(evaluator.update(old, **batch))["num_examples"] == N + 5


def test_merged_states_with_weights(run: Run, tmp_path: Path) -> None:
    """On the command line, which computes in double precision."""
    evaluator = jm.evaluator(jm.count_metrics({}, num_classes=3, weighted=True))
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    for path, rows in zip(paths, (slice(60), slice(60, N)), strict=True):
        batch = {"y_true": TRUE[rows], "y_pred": PRED[rows], "sample_weight": WEIGHTS[rows]}
        jm.save_state(path, evaluator.update(evaluator.init(), **batch))
    found = answer(run, "merge", *paths, "--output", tmp_path / "c.npz")
    report = jm.report(TRUE, PRED, sample_weight=WEIGHTS)
    expected = report.to_dict()
    for name in ("num_examples", "sum_of_weights", "effective_number"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5)
    for name in ("accuracy", "macro_f1", "accuracy_gain"):
        ends = [found["overall"][name][end] for end in ("value", "low", "high")]
        assert_allclose(ends, report[name].numbers, rtol=1e-4)
    assert run("merge", tmp_path / "c.npz")[1].startswith(report.to_text().split("\n")[0])


def test_weights_whose_squares_underflow_have_no_interval() -> None:
    """In float32, where 1e-50 is 0: no number instead of a width of 0."""
    evaluator = streamed()
    found: Any = evaluator.compute(state_of(evaluator, 1e-25 * WEIGHTS))
    for name in (*METRICS, "loss", "size"):
        assert np.isnan([found[name].low, found[name].high, found[name].standard_error]).all()
    assert_allclose(found["loss"].value, WEIGHTS @ X / WEIGHTS.sum(), rtol=1e-5)


def test_poisson_bootstrap_of_weighted_counts_keeps_squares() -> None:
    """Standard errors of 400 replicates are within 5 of their own of the linearized error."""
    options: Any = {"num_classes": 3, "weighted": True}
    counts = partial(jm.count_metrics, {"accuracy": jm.accuracy}, **options)
    drawn = jm.evaluator(jm.poisson_bootstrap(counts(), num_samples=400))
    exact = jm.evaluator(counts(method=jm.Delta()))
    batch: Any = {"y_true": TRUE, "y_pred": PRED, "sample_weight": WEIGHTS}
    state = drawn.update(drawn.init(), **batch, unit=np.arange(N))
    a: Any = drawn.compute(state)["accuracy"]
    b: Any = exact.compute(exact.update(exact.init(), **batch))["accuracy"]
    assert_allclose(a.value, b.value, rtol=1e-5)
    assert_allclose(a.standard_error, b.standard_error, rtol=5 / np.sqrt(800))
    with pytest.warns(UserWarning, match="a report treats all examples as independent"):
        report = jm.Report.from_state(state)
    assert_allclose(report["accuracy"].numbers[0], a.value, rtol=1e-5)
    assert report["accuracy"].has_interval
    with pytest.raises(ValueError, match="accumulator must not have intervals already"):
        jm.poisson_bootstrap(counts(method=jm.Delta()))


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("options", [{}, {"clusters": np.arange(60) // 2}, {"invalid": "c"}])
def test_a_page_of_weights_has_no_posterior(scale: float, options: dict[str, Any]) -> None:
    y, p = ["a", "b"] * 30, ["a", "b", "b", "a", "c" if "invalid" in options else "b"] * 12
    weights = scale * np.where(np.arange(60) % 3, 1, 2)
    page = jm.report(y, p, sample_weight=weights, **options).to_html()
    assert "violin" not in page
    assert "Forest plot of recall" in page
    assert "violin" in jm.report(y, p, **options).to_html()
