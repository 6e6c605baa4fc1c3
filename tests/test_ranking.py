"""Curves and areas against scikit-learn, definitions in loops, and certified bounds, in float64 on
the host; the device by comparison with the host.
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special, stats
from sklearn import metrics as sk

import jaxmetrics as jm
from jaxmetrics.ranking import (
    auc,
    average_precision,
    average_precision_interval,
    best_threshold,
    coverage_error,
    dcg,
    delong_interval,
    det_curve,
    equal_error_rate,
    exact_match,
    hamming_loss,
    ks_statistic,
    label_ranking_average_precision,
    label_ranking_loss,
    metric_at_thresholds,
    ndcg,
    per_class,
    per_label,
    precision_recall_curve,
    ranks,
    roc_auc,
    roc_auc_one_vs_one,
    roc_curve,
    score_histogram,
    top_k_accuracy,
    top_k_precision,
    top_k_recall,
)
from jaxmetrics.ranking.ranks import order
from tests import oracles
from tests.estimates import assert_close, parts

KEY = jax.random.key(0)


close = partial(assert_allclose, rtol=1e-12, atol=1e-12)


def binary_problems() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray | None]]:
    """Truth, scores (float32, so that both sides see the same ties), weights."""
    rng = default_rng(4)
    y = np.where(np.arange(60) < 2, [0, 1] * 30, rng.integers(0, 2, 60))
    score = (rng.normal(size=60) + y).astype(np.float32)
    weight = rng.random(60) + 0.1
    some_absent = np.where(np.arange(60) < 2, 1.0, rng.integers(0, 3, 60))
    return {
        "no ties": (y, score, None),
        "ties": (y, np.round(score, 0), None),
        "weights": (y, score, weight),
        "ties and weights": (y, np.round(score, 0), weight),
        "weights of 0": (y, np.round(score, 1), some_absent),
        "constant scores": (y, np.zeros_like(score), weight),
        "huge scores": (y, np.float32(1e30) * np.round(score, 0), None),
        "separated": (y, y.astype(np.float32), None),
        "two examples": (y[:2], score[:2], None),
    }


PROBLEMS = binary_problems()


@pytest.mark.parametrize("name", PROBLEMS)
def test_areas_equal_scikit_learns(name: str) -> None:
    y, score, weight = PROBLEMS[name]
    options: dict[str, Any] = {"sample_weight": weight}
    area, expected = (partial(f, y, score, **options) for f in (roc_auc, sk.roc_auc_score))
    close(area(), expected())
    for limit in (0.08, 0.5, 1.0):
        close(area(max_fpr=limit), expected(max_fpr=limit))
    expected = sk.average_precision_score(y, score, **options)
    close(average_precision(y, score, **options), expected)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("limit", [0.07, 0.5, 1.0])
def test_partial_areas_are_integrals_of_scikit_learns_curve(name: str, limit: float) -> None:
    y, score, weight = PROBLEMS[name]
    fpr, tpr, _ = sk.roc_curve(y, score, sample_weight=weight)

    def area(x: np.ndarray, height: np.ndarray) -> float:
        """Integrate up to the limit, with the point of the curve there."""
        kept = x <= limit
        ends = np.append(x[kept], limit), np.append(height[kept], np.interp(limit, x, height))
        return float(np.trapezoid(ends[1], ends[0]))

    call = partial(roc_auc, y, score, sample_weight=weight)
    close(call(max_fpr=limit, standardized=False), area(fpr, tpr))
    along = area((1 - tpr)[::-1], (1 - fpr)[::-1])
    close(call(min_tpr=1 - limit, standardized=False), along)
    chance = limit**2 / 2
    close(call(min_tpr=1 - limit), (1 + (along - chance) / (limit - chance)) / 2)


@pytest.mark.parametrize("name", PROBLEMS)
def test_curves_equal_scikit_learns(name: str) -> None:
    """But for repeated points."""
    y, score, weight = PROBLEMS[name]
    options: dict[str, Any] = {"sample_weight": weight}
    curve, precision_recall, det = (
        np.stack(of(y, score, **options)) for of in (roc_curve, precision_recall_curve, det_curve)
    )
    first = np.unique(-curve[2], return_index=True)[1]
    close(curve[:, first], np.stack(sk.roc_curve(y, score, drop_intermediate=False, **options)))
    assert curve.shape == (3, len(y) + 1)
    close(auc(*curve[:2]), roc_auc(y, score, **options))
    *both, thresholds = sk.precision_recall_curve(y, score, **options)
    close(precision_recall[:2, first], np.stack(both)[:, ::-1])
    close(precision_recall[2, first][1:], thresholds[::-1])
    close(det, [curve[0], 1 - curve[1], curve[2]])


def multiclass_problem(k: int = 4, n: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = default_rng(5)
    y = np.where(np.arange(n) < k, np.arange(n) % k, rng.integers(0, k, n))
    prob = np.round(rng.random((n, k)) + (np.arange(k) == y[:, None]), 1).astype(
        np.float32
    ) + np.float32(0.5)
    return y, prob / prob.sum(-1, keepdims=True), rng.random(n) + 0.1


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
def test_one_against_the_rest_equals_scikit_learns(average: Any) -> None:
    y, prob, weight = multiclass_problem()
    ours = per_class(roc_auc, average=average)
    for options in ({}, {"sample_weight": weight}):
        expected = sk.roc_auc_score(y, prob, multi_class="ovr", average=average, **options)
        close(ours(y, prob, **options), expected)
    labels = np.stack([y > 1, y % 2 == 0, y == 0], -1).astype(int)
    of_labels = per_label(average_precision, average=average)
    expected = sk.average_precision_score(
        labels, prob[:, :3], average=average, sample_weight=weight
    )
    close(of_labels(labels, prob[:, :3], sample_weight=weight), expected)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_one_against_one_equals_scikit_learns(average: Any) -> None:
    y, prob, _ = multiclass_problem()
    expected = sk.roc_auc_score(y, prob, multi_class="ovo", average=average)
    close(roc_auc_one_vs_one(y, prob, average=average), expected)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("measure", [roc_auc, average_precision])
def test_the_order_of_the_classes_changes_no_digit(average: Any, measure: Any) -> None:
    draw = default_rng(0)
    y, score = draw.integers(0, 7, 300), draw.normal(size=(300, 7)).round(1)
    call = per_class(measure, average=average)
    orders = (draw.permutation(7) for _ in range(20))
    assert len({float(call(np.argsort(order)[y], score[:, order])) for order in orders}) == 1


def test_per_class_of_one_example_and_of_ignored_ones() -> None:
    """The column of one example is none of examples; a class that all have is not taken for a truth
    of -1 and 1.
    """
    bins = per_class(jm.calibration_bins)([1], [[0.25, 0.5, 0.25]])
    assert bins.shape == (3, 15, 3)
    close(bins.sum((0, 1)), [3, 1, 1])
    assert per_class(roc_auc, average="micro")([1], [[0.25, 0.75]]) == 1
    assert np.isnan(roc_auc_one_vs_one([1], [[0.25, 0.75]]))
    assert per_label(average_precision)([[1], [-7], [1]], [[0.1], [0.2], [0.3]]) == [1.0]
    assert hamming_loss([[1], [0]], [[1], [1]]) == 0.5


def test_absent_classes_are_left_out_of_averages() -> None:
    y, prob, _ = multiclass_problem()
    y = np.where(y == 3, -1, y)
    areas = per_class(roc_auc)(y, prob)
    assert np.isnan(areas[3])
    close(per_class(roc_auc, average="macro")(y, prob), areas[:3].mean())
    pairs = [
        roc_auc(np.where((y == i) | (y == j), y == i, -1), prob[:, i])
        for i, j in itertools.permutations(range(3), 2)
    ]
    close(roc_auc_one_vs_one(y, prob), np.mean(pairs))
    assert np.isnan(roc_auc_one_vs_one(np.zeros(5, int), prob[:5]))


NUMBERS: dict[str, Callable[..., jax.Array]] = {
    "roc_auc": roc_auc,
    "average_precision": average_precision,
    "equal_error_rate": equal_error_rate,
    "ks_statistic": ks_statistic,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_of_a_single_class_nothing_is_known(name: str) -> None:
    assert np.isnan(NUMBERS[name]([0, 0, 0], [0.1, 0.2, 0.3]))
    if name != "average_precision":
        assert np.isnan(NUMBERS[name]([1, 1], [0.2, 0.3]))


def test_curves_of_nothing_have_one_point() -> None:
    assert roc_curve([], []).thresholds.tolist() == [np.inf]
    assert np.isnan(roc_curve([0, 0], [0.1, 0.2]).tpr).all()
    assert np.isnan(roc_curve(jnp.array([0, 1]), jnp.array([0.1, np.nan])).fpr).all()


def test_scores_keep_the_precision_in_which_they_came() -> None:
    """Two doubles that float32 cannot tell apart, and two integers."""
    y, traced = np.array([0, 1]), jax.jit(roc_auc)
    doubles, integers = np.array([0.9, 0.9 + 1e-12]), np.array([2**24, 2**24 + 1])
    assert roc_auc(y, doubles) == roc_auc(jnp.asarray(y), doubles) == 1
    assert roc_auc(y, integers) == traced(y, jnp.asarray(integers)) == 1
    for few in (np.array([-128, 127], np.int8), np.array([False, True])):
        assert roc_auc(y, few) == traced(y, jnp.asarray(few)) == 1
    for zeros in (np.array([0.0, -0.0], np.float32), np.array([0.0, -0.0]), jnp.array([0.0, -0.0])):
        assert roc_auc(y, zeros) == traced(y, zeros) == 0.5
    half = jnp.array([0.1, 0.3, 0.2, 0.2, np.inf, -np.inf], jnp.bfloat16)
    y = np.array([0, 1, 0, 1, 1, 0])
    assert_allclose([roc_auc(y, half), traced(y, half)], 17 / 18, rtol=1e-6)


def test_thresholds_are_the_scores_and_nothing_warns() -> None:
    """On the host also of the largest doubles; on the device they are rounded down, so that the
    example stays above.
    """
    y, score = np.array([0, 1, 0, 1]), np.array([-1e300, 0.1, 1e-320, 1e300])
    with np.errstate(all="raise"):
        for curve in (roc_curve, precision_recall_curve, det_curve):
            assert_array_equal(curve(y, score).thresholds, [np.inf, 1e300, 0.1, 1e-320, -1e300])
        for number in NUMBERS.values():
            assert np.isfinite(number(y, score))
        on_device = np.asarray(roc_curve(jnp.asarray(y), score).thresholds, float)
        delong_interval(y, score)
    assert (on_device[[1, 2, 4]] <= score[[3, 1, 0]]).all()
    assert on_device[1] == np.finfo(np.float32).max


def test_gradients_are_those_of_the_weights() -> None:
    y, score, _ = PROBLEMS["ties"]
    weight, step = np.linspace(0.5, 1.5, 60), 1e-6 * default_rng(1).normal(size=60)

    def area(weight: Any, score: Any) -> Any:
        return roc_auc(y, score, sample_weight=weight)

    gradient = jax.jit(jax.grad(area, argnums=(0, 1)))
    by_weight, by_score = gradient(np.float32(weight), jnp.asarray(score))
    assert not np.any(by_score)
    difference = (area(weight + step, score) - area(weight - step, score)) / 2
    assert_allclose(by_weight @ step, difference, rtol=1e-4)


@pytest.mark.parametrize("name", ["roc_auc", "average_precision"])
def test_large_samples_do_not_drift(name: str) -> None:
    """300,000 examples with weights, on the device in float32, against float64."""
    rng = default_rng(0)
    y = rng.integers(0, 2, 300_000)
    score = (rng.normal(size=300_000) + y).astype(np.float32)
    weight, ours = rng.random(300_000), getattr(jm, name)
    expected = getattr(sk, f"{name}_score")(y, score, sample_weight=weight)
    close(ours(y, score, sample_weight=weight), expected)
    assert_allclose(ours(jnp.asarray(y), score, sample_weight=weight), expected, rtol=1e-6)


def test_metric_at_thresholds_is_the_metric_of_each_threshold() -> None:
    y, score, _ = PROBLEMS["ties"]

    def both(counts: Any) -> dict[str, Any]:
        return {"accuracy": jm.accuracy(counts), "recalls": jm.recall(counts)}

    values, thresholds = metric_at_thresholds(both, y, score)
    counts = jm.confusion_matrix_at_thresholds(y, score, thresholds)
    for name, expected in both(counts).items():
        close(values[name], expected)
    place = values["accuracy"].argmax()
    best = best_threshold(jm.accuracy, y, score)
    assert best == (values["accuracy"][place], thresholds[place])
    predicted = (score >= best.threshold).astype(int)
    assert jm.accuracy(jm.confusion_matrix(y, predicted, num_classes=2)) == best.value
    recall = best_threshold(jm.recall, y, score)  # of class 1
    assert recall == best_threshold(jm.binary(jm.recall), y, score) == (1, score[y == 1].min())


@pytest.mark.parametrize(
    "metric",
    [
        lambda c: c[1, 1] / max(c[1].sum(), 1),  # of a batch it would take other cells
        lambda c: float(c[1, 1]) / max(float(c[1].sum()), 1),
        lambda c: c[..., 1, 1] / np.maximum(c[..., 1, :].sum(-1), 1),
        lambda c: jnp.asarray(c)[1, 1] / jnp.maximum(jnp.asarray(c)[1].sum(), 1),
    ],
    ids=["of one matrix", "of numbers", "of batches", "by JAX"],
)
def test_metrics_of_users_at_thresholds(metric: Any) -> None:
    y, score, _ = PROBLEMS["ties"]
    for labels, scores in ((y, score), (np.stack([y, 1 - y]), score)):
        expected = roc_curve(labels, scores).tpr
        values, _ = metric_at_thresholds(metric, labels, scores)
        assert_allclose(values, expected, rtol=1e-6)


def test_best_threshold_is_one_of_a_counted_score() -> None:
    """Neither masked scores nor those without weight, whatever they are, become thresholds."""
    y, score = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.6, 0.9, 0.7, 0.65])
    counted = np.array([True, True, True, False, False])
    left_out: list[dict[str, Any]] = [{"where": counted}, {"sample_weight": counted.astype(float)}]
    for options in left_out:
        assert best_threshold(jm.accuracy, y, score, **options) == (1, 0.6)
        thresholds = np.unique(roc_curve(y, score, **options).thresholds)
        assert_array_equal(thresholds, [0.2, 0.6, 0.9, np.inf])


def test_operating_points_from_their_definitions() -> None:
    y, score, weight = PROBLEMS["ties and weights"]
    fpr, _, thresholds = (np.asarray(x) for x in roc_curve(y, score, sample_weight=weight))
    precision, recall, _ = (
        np.asarray(x) for x in precision_recall_curve(y, score, sample_weight=weight)
    )
    precision[0] = 0  # 0/0, by its default
    rates = {jm.precision: precision, jm.recall: recall, jm.specificity: 1 - fpr}
    for least in (0.0, 0.3, 0.62, 0.9, 1.0):
        for metric, constraint in itertools.permutations(rates, 2):
            point = best_threshold(
                metric, y, score, subject_to=(constraint, least), sample_weight=weight
            )
            maximised, allowed = rates[metric], rates[constraint] >= least - 1e-12
            if not allowed.any():
                assert np.isnan(point).all()
                continue
            close(point.value, maximised[allowed].max())
            best = allowed & (maximised > maximised[allowed].max() - 1e-12)
            assert point.threshold == thresholds[best].max()


def test_a_least_value_for_each_batch_entry() -> None:
    """On the host, on the device and traced."""
    y, score, _ = PROBLEMS["ties"]
    least = np.array([0.3, 0.62, 2.0])

    def call(y: Any, score: Any, least: Any) -> Any:
        return best_threshold(jm.recall, y, score, subject_to=(jm.precision, least))

    found = call(y, np.stack([score] * 3), least)
    close(found, np.transpose([call(y, score, x) for x in least]))
    assert np.isnan(found.value[2])
    traced = jax.jit(jax.vmap(call, (None, None, 0)))(*map(jnp.asarray, (y, score, least)))
    assert_allclose(traced, found, rtol=1e-6)
    precise = partial(jm.precision, zero_division=1.0)
    assert best_threshold(jm.recall, y, -score, subject_to=(precise, 0.99)) == (0, np.inf)


def selected(
    y: np.ndarray, score: np.ndarray, weight: np.ndarray, least: float
) -> tuple[float, ...] | None:
    """The greatest recall at a precision, the precision there, the threshold below the best ones,
    and the highest of these: from the definition in loops.
    """
    thresholds = [np.inf, *sorted(set(score[weight > 0]), reverse=True), -np.inf]
    rates = []
    for t in thresholds[:-1]:
        pred = score >= t
        tp = weight[pred & (y == 1)].sum()
        rates.append((tp / weight[y == 1].sum(), tp / weight[pred].sum() if tp else 0.0))
    allowed = [recall for recall, precise in rates if precise >= least]
    if not allowed:
        return None
    best = [i for i, x in enumerate(rates) if x[1] >= least and x[0] == max(allowed)]
    return *rates[best[0]], thresholds[best[-1] + 1], thresholds[best[0]]


@pytest.mark.parametrize(
    "clusters", [None, default_rng(6).permutation(60) // 3], ids=["examples", "clusters"]
)
def test_intervals_of_a_chosen_threshold_from_their_definition(clusters: Any) -> None:
    y, score, _ = PROBLEMS["ties"]
    score, least = score.astype(float), 0.6
    found = best_threshold(
        jm.recall,
        y,
        score,
        subject_to=(jm.precision, least),
        level=0.9,
        key=default_rng(5),
        clusters=clusters,
    )
    words = tuple(default_rng(5).integers(2**32, size=4).tolist())
    units = np.arange(60) if clusters is None else clusters
    size = units.max() + 1
    drawn = default_rng(words).poisson(np.ones((1, size)), (1000, 1, size))[:, 0].astype(float)
    replicates = drawn[:, units]
    chosen = [selected(y, score, w, least) for w in replicates]
    assert sum(x is None for x in chosen) > 0 or clusters is not None
    known = np.array([x or (0, 0, -np.inf, np.inf) for x in chosen])
    at = lambda t: jm.confusion_matrix_at_thresholds(y, score, t)
    optimism = np.stack(
        [
            known[:, 0] - jm.recall(at(known[:, 3]))[:, 1],
            known[:, 1] - jm.precision(at(known[:, 3]))[:, 1],
        ]
    ).mean(-1)  # recall and precision are 0 at an infinite threshold
    value, precise, _, threshold = selected(y, score, np.ones(60), least) or (np.nan,) * 4
    close([found.value.value, found.constraint.value], [value, precise])
    counts: Any = at([threshold])[0]
    options: dict[str, Any] = {}
    if clusters is not None:
        mine = [clusters == c for c in range(size)]
        is_above = (score >= threshold).astype(int)
        counts = np.stack([jm.confusion_matrix(y[x], is_above[x], num_classes=2) for x in mine])
        options = {"cluster_axis": 0}
    for estimate, metric, o in (
        (found.value, jm.recall, optimism[0]),
        (found.constraint, jm.precision, optimism[1]),
    ):
        usual = jm.interval(metric, counts, level=0.9, **options)
        assert_allclose(estimate.high, usual.high[1], rtol=1e-9)
        assert_allclose(estimate.low, usual.low[1] - max(o, 0), rtol=1e-9)
    assert found.threshold.value == threshold
    ends = (
        np.quantile(known[:, 2], 0.05, method="lower"),
        np.quantile(known[:, 3], 0.95, method="higher"),
    )
    assert_array_equal([found.threshold.low, found.threshold.high], ends)


def test_clusters_of_a_batch_of_chosen_thresholds() -> None:
    """Each entry may have ids of its own. Five copies of an example tell no more than one."""
    y, score, _ = PROBLEMS["ties"]
    rows, ids = np.stack([score, score[::-1]]), np.arange(60) // 3
    found = best_threshold(jm.f1, y, rows, level=0.9, clusters=np.stack([ids, ids % 20]))
    for i, clusters in enumerate((ids.astype(str), ids % 20)):
        alone = best_threshold(jm.f1, y, rows[i], level=0.9, clusters=clusters)
        close([parts(x.select(i)) for x in found], [parts(x) for x in alone])
    y, score = np.repeat(y, 5), np.repeat(score, 5)
    independent = best_threshold(jm.f1, y, score, level=0.9).value
    clustered = best_threshold(jm.f1, y, score, level=0.9, clusters=np.arange(300) // 5).value
    assert 2 < (clustered.high - clustered.low) / (independent.high - independent.low) < 2.8
    with pytest.raises(ValueError, match="clusters changes only intervals: pass level"):
        best_threshold(jm.f1, y, score, clusters=y)


def test_intervals_of_chosen_thresholds_in_extreme_cases() -> None:
    y = np.repeat([0, 1], 50)
    perfect = best_threshold(jm.f1, y, y, level=0.95)
    assert 0.9 < perfect.value.low < perfect.value.value == 1
    assert (perfect.threshold.low, perfect.threshold.high) == (0, 1)  # all between are best
    value, threshold = best_threshold(jm.f1, np.stack([y, y]), np.stack([y, 0 * y]), level=0.95)
    close(value.low[0], perfect.value.low)  # the same draws
    assert threshold.low[1] == -np.inf
    point = best_threshold(jm.recall, y, y, subject_to=(jm.precision, 2.0), level=0.95)
    assert np.isnan([parts(x) for x in point]).sum() == 12 - 2  # standard errors of counts
    with pytest.raises(ValueError, match="level and sample_weight cannot be used together"):
        best_threshold(jm.f1, y, y, sample_weight=y + 1, level=0.95)


@pytest.mark.slow
def test_intervals_of_chosen_thresholds_in_jax() -> None:
    y, score, _ = PROBLEMS["no ties"]
    arrays, metric = (jnp.asarray(y), jnp.asarray(score)), jm.f1
    call = partial(best_threshold, metric, level=0.95)
    compiled = jax.jit(call)(*arrays, key=KEY)
    assert_close(compiled, call(*arrays, key=KEY), rtol=1e-5)
    on_host = call(y, score)
    for name in ("value", "threshold"):  # other draws
        a, b = getattr(compiled, name), getattr(on_host, name)
        assert_allclose(a.value, b.value, rtol=1e-6)
        assert_allclose([a.low, a.high], [b.low, b.high], atol=0.3)


RATES = {
    "recall": lambda tp, fp, fn, tn: (tp, fn),
    "specificity": lambda tp, fp, fn, tn: (tn, fp),
    "precision": lambda tp, fp, fn, tn: (tp, fp),
    "negative_predictive_value": lambda tp, fp, fn, tn: (tn, fn),
}


def safe_by_walking(name: str, y: np.ndarray, score: np.ndarray, least: float) -> tuple[Any, ...]:
    """Threshold, value and lower limit, from the definition in loops."""
    upwards = name in ("recall", "negative_predictive_value")
    thresholds = sorted({*score, np.inf}, reverse=not upwards)
    walk = []
    for t in thresholds:
        pred = score >= t
        cells = ((y == a) & (pred == b) for a, b in ((1, 1), (0, 1), (1, 0), (0, 0)))
        walk.append(RATES[name](*(int(x.sum()) for x in cells)))
    fewest = np.log(0.05) / np.log(least)
    starts = [0] if sum(walk[0]) else []
    for i in range(1, len(walk)):
        crossed = [fewest * 2**j for j in range(1, 9)]
        if any(sum(walk[i - 1]) < c <= sum(walk[i]) for c in crossed):
            starts.append(i)
    part, best = 0.05 / max(len(starts), 1), -1
    for i in starts:
        while i < len(walk) and stats.binom.sf(walk[i][0] - 1, sum(walk[i]), least) <= part:
            best, i = max(best, i), i + 1
    if best < 0:
        return (np.nan,) * 3
    s, f = walk[best]
    return thresholds[best], s / (s + f), stats.beta.ppf(part, s, f + 1)


@pytest.mark.filterwarnings("ignore:no threshold keeps")
@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("digits", [0, 1, 9])
def test_safe_thresholds_from_their_definition(name: str, digits: int) -> None:
    rng = default_rng(digits)
    y = np.arange(260) % 5 % 2
    score = np.round(rng.normal(size=(4, 260)) + [[2], [1], [0], [-3]] * y, digits)
    for least in (0.3, 0.7, 0.95):
        found = jm.safe_threshold(getattr(jm, name), y, score, least=least)
        expected = [safe_by_walking(name, y, x, least) for x in score]
        value = found.value
        close(np.transpose([found.threshold, value.value, value.low]), expected)
        assert_array_equal(value.high, np.where(np.isnan(value.low), np.nan, 1))


@pytest.mark.parametrize(
    ("metric", "size", "message"),
    [
        (jm.recall, 28, "recall >= 0.9 with 95 % .* There are 28 examples of class 1, .* 29 are"),
        (jm.specificity, 28, "specificity .* There are 28 examples of class 0, but at least 29"),
        (jm.binary(jm.precision), 56, "There are 56 examples, but at least 57 are needed"),
    ],
)
def test_safe_thresholds_need_so_many_examples(metric: Any, size: int, message: str) -> None:
    """Predictions are perfect."""
    y = np.full(size, int(metric is not jm.specificity))
    with pytest.warns(UserWarning, match=message):
        assert np.isnan(jm.safe_threshold(metric, y, 1.0 * y, least=0.9).threshold)
    y = np.append(y, y[:1])
    assert not np.isnan(jm.safe_threshold(metric, y, 1.0 * y, least=0.9).threshold)
    if metric.__name__.startswith("binary"):
        with pytest.warns(UserWarning, match="NaN. There are too many mistakes at each threshold."):
            jm.safe_threshold(metric, np.arange(100) % 2, np.zeros(100), least=0.9)


@pytest.mark.filterwarnings("ignore:no threshold keeps")
@pytest.mark.parametrize("kind", ["normal", "coarse", "label noise"])
def test_safe_thresholds_keep_their_promise(kind: str) -> None:
    """In at least 95 % of 1000 sets, up to three standard errors."""
    rng = default_rng(7)

    def draw(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        y = (rng.random(shape) < 0.4).astype(int)
        score = rng.normal(size=shape) + 2 * y
        if kind == "coarse":
            score = np.round(score)
        if kind == "label noise":
            score = score + 5 * (rng.random(shape) < 0.03)
        return y, score

    y, score = draw((1000, 300))
    population = draw((200_000,))
    for name in RATES:
        metric = jm.binary(getattr(jm, name))
        found = jm.safe_threshold(metric, y, score, least=0.75)
        counts = jm.confusion_matrix_at_thresholds(*population, np.nan_to_num(found.threshold))
        kept = metric(counts) >= 0.75
        assert np.mean(kept | np.isnan(found.threshold)) > 0.95 - 3 * np.sqrt(0.0475 / 1000)


def test_equal_error_rate_and_ks() -> None:
    y, score, _ = PROBLEMS["no ties"]
    wide = score.astype(float)  # SciPy 1.18 has a statistic in the scores' float32
    expected = stats.ks_2samp(wide[y == 1], wide[y == 0]).statistic
    close([ks_statistic(y, score), ks_statistic(y, -score)], expected)
    curve = det_curve(y, score)
    at = np.arange(100_001) * (len(y) / 100_000)  # along the curve
    fpr, fnr = (np.interp(at, np.arange(len(y) + 1), x) for x in (curve.fpr, curve.fnr))
    assert_allclose(equal_error_rate(y, score), fpr[abs(fpr - fnr).argmin()], atol=1e-4)
    for truth, scores, rate in (
        ([0, 0, 1], [0.1, 0.2, 0.3], 0),
        ([1, 1, 0], [0.1, 0.2, 0.3], 1),
        ([0, 1], [0.5, 0.5], 0.5),
    ):
        assert equal_error_rate(truth, scores) == rate


def test_delong_interval() -> None:
    """The variance by pairs, from its definition; on the logit scale; one to be solved for."""
    y, score, _ = PROBLEMS["ties"]
    in_order = np.sign(score[y == 1][:, None] - score[y == 0]).astype(float) / 2 + 0.5
    v, w = in_order.mean(1), in_order.mean(0)
    error = np.sqrt(v.var(ddof=1) / len(v) + w.var(ddof=1) / len(w))
    z = stats.norm.ppf([0.025, 0.975])
    estimate = delong_interval(y, score, method="normal")
    close(parts(estimate), [v.mean(), *(v.mean() + z * error), error])
    near_one = delong_interval([0, 0, 0, 1, 1, 1], [1, 2, 3.5, 3, 4, 5], method="normal")
    assert near_one.high == 1  # 8 of 9 pairs are in order
    logit = delong_interval(y, score, method="logit")
    a = v.mean()
    close([logit.low, logit.high], special.expit(special.logit(a) + z * error / (a * (1 - a))))
    one_over_n = sum(
        (len(x) * x.var(ddof=1) + 0.25) / (len(x) * a * (1 - a) + 0.5) / len(x) for x in (v, w)
    )
    by_score = delong_interval(y, score, level=0.9)
    for end in (by_score.low, by_score.high):
        close(abs(a - end) / np.sqrt(end * (1 - end) * one_over_n), stats.norm.ppf(0.95))
    close(by_score.standard_error, error)
    assert np.isnan(delong_interval([0, 1], [0.1, 0.2], method="logit").low)
    assert np.isnan(delong_interval([1, 1], [0.1, 0.2]).low)
    assert 0 < delong_interval([0, 1], [0.1, 0.2]).low < 0.5
    batch = delong_interval(y, np.stack([score, -score]))
    close(batch.value, [a, 1 - a])
    close(batch.low[0], 1 - batch.high[1])


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("scores", ["probabilities", "ties"])
def test_the_interval_of_an_average_of_areas(average: Any, scores: str) -> None:
    """From the definition in loops; beside scikit-learn and the jackknife."""
    rng = default_rng(3)
    y = rng.choice(3, 90, p=[0.6, 0.3, 0.1])
    prob = special.softmax(1.2 * np.eye(3)[y] + rng.normal(size=(90, 3)), -1)
    prob = np.round(prob, 1) if scores == "ties" else prob
    estimate = delong_interval(y, prob, average=average)
    m, n, moves, areas = np.bincount(y), 90, np.zeros((90, 3)), np.zeros(3)
    for k in range(3):
        wins = np.sign(prob[y == k, k][:, None] - prob[y != k, k]) / 2 + 0.5
        areas[k] = wins.mean()
        for side, axis in ((y == k, 1), (y != k, 0)):
            number = side.sum()
            moves[side, k] = (wins.mean(axis) - areas[k]) / np.sqrt(number * (number - 1))
    w = m / n if average == "weighted" else np.ones(3) / 3
    area, u = w @ areas, moves @ w
    u = u + (average == "weighted") * (areas[y] - area) / np.sqrt(n * (n - 1))
    close([estimate.value, estimate.standard_error], [area, np.sqrt((u**2).sum())])
    one_over_n = 0
    for c in range(3):
        most = sum(w[k] / (m[k] if k == c else n - m[k]) for k in range(3))
        smoothed = (u[y == c] ** 2).sum() + most**2 / 6
        one_over_n += smoothed / (area * (1 - area) + 1 / (3 * m[c]))
    for end in (estimate.low, estimate.high):
        close(abs(area - end) / np.sqrt(end * (1 - end) * one_over_n), stats.norm.ppf(0.975))
    if scores == "probabilities":  # scikit-learn refuses others
        close(area, sk.roc_auc_score(y, prob, multi_class="ovr", average=average))
    function = per_class(roc_auc, average=average)
    held_out = [function(np.delete(y, i), np.delete(prob, i, 0)) for i in range(n)]
    jackknife = np.sqrt((n - 1) * np.var(held_out))
    assert_allclose(estimate.standard_error, jackknife, rtol=0.05)
    order = rng.permutation(n)
    assert_close(delong_interval(y[order], prob[order], average=average), estimate)
    alone = delong_interval(y, prob, average=average, clusters=np.arange(n))
    close(alone.standard_error, estimate.standard_error)


def test_averages_of_areas_in_extreme_cases() -> None:
    y = np.arange(60) % 3
    perfect = np.eye(3)[y]
    best = delong_interval(y, perfect, average="macro")
    assert best.value == 1 == best.high
    assert 0.8 < best.low < 0.95
    worst = delong_interval(y, 1 - perfect, average="weighted")
    close([worst.low, worst.high], [1 - best.high, 1 - best.low])
    with_absent = np.concatenate([perfect, np.zeros((60, 1))], 1)
    assert_close(delong_interval(y, with_absent, average="macro"), best)
    assert np.isnan(parts(delong_interval(0 * y, perfect, average="macro"))).all()
    binary, prob = y[y < 2], default_rng(0).random(40)
    both = np.stack([1 - prob, prob], -1)
    for options in ({}, {"method": "logit"}, {"clusters": np.arange(40) // 2}):
        for average in ("macro", "weighted"):
            averaged = delong_interval(binary, both, average=average, **options)
            assert_close(averaged, delong_interval(binary, prob, **options))


def influences_by_differences(y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first and the second derivative of the average precision by each example's weight."""
    steps = 2e-3 * np.eye(len(y))
    values = lambda weights: np.array([oracles.average_precision(y, score, w) for w in weights])

    def derivatives(times: float) -> np.ndarray:
        ahead, behind = values(1 + times * steps), values(1 - times * steps)
        step, at = times * 2e-3, values(np.ones((1, len(y))))
        return np.array([(ahead - behind) / 2, (ahead + behind - 2 * at) / step]) / step

    first, second = (4 * derivatives(0.5) - derivatives(1)) / 3  # by Richardson
    return first, second


@pytest.mark.parametrize("name", ["no ties", "ties"])
@pytest.mark.parametrize("clusters", [None, np.arange(60) * 7 % 23])
def test_the_interval_of_an_average_precision_from_its_definition(
    clusters: np.ndarray | None, name: str
) -> None:
    y, score, _ = PROBLEMS[name]
    u, curvature = influences_by_differences(y, score)
    m, value = np.array([60 - y.sum(), y.sum()]), oracles.average_precision(y, score, np.ones(60))
    squares = (u * (m / (m - 1))[y]) ** 2
    variance, share, freedom = squares.sum(), 1.0, m[1] - 1.0
    if clusters is not None:
        members = [clusters == c for c in range(23)]
        moves = np.array([u[c].sum() / (1 - y[c].sum() / m[1]) for c in members])
        parts = np.array([squares[y == k].mean() + 0.25 / m[k] ** 3 for k in (0, 1)])
        sizes = np.array([parts[y[c]].sum() for c in members])
        share = min(variance / (22 * moves.var()), 1)
        variance, freedom = 22 * moves.var(), sizes.sum() ** 2 / (sizes**2).sum() - 1
    a = value - curvature.sum() / 2 / share
    n = (m[1] * a * (1 - a) + 0.5) / (m[1] ** 2 * squares.sum() + 0.25) * m[1] * share
    t = stats.t.ppf(0.95, freedom)
    estimate = average_precision_interval(y, score, level=0.9, clusters=clusters)
    close(estimate.value, value)
    assert_allclose(estimate.standard_error, np.sqrt(variance), rtol=1e-8)
    first = np.append(y, 0), np.append(score, np.inf)
    loss = value - oracles.average_precision(*first, np.ones(61))
    low = value - np.sqrt((value - estimate.low) ** 2 - (stats.norm.ppf(0.95) * loss) ** 2)
    for end in (low, estimate.high):
        assert_allclose(abs(a - end) / np.sqrt(end * (1 - end) / n), t, rtol=1e-4)


def test_average_precision_intervals_at_the_edges() -> None:
    separated = average_precision_interval([0] * 50 + [1] * 10, np.arange(60))
    assert separated.value == separated.high == 1
    # Wilson's interval for 20 successes, and one negative ranked first, which costs 0.2.
    t = stats.t.ppf(0.975, 9)
    unseen = stats.norm.ppf(0.975) * (1 / np.arange(2, 12)).mean()
    assert_allclose(1 - separated.low, np.hypot(t**2 / (20 + t**2), unseen))
    assert separated.standard_error == 0
    worst = average_precision_interval([1] * 10 + [0] * 50, np.arange(60))
    assert 0 <= worst.low < worst.value < worst.high < 0.5
    only_positives = average_precision_interval(np.ones(10, int), np.arange(10))
    assert only_positives.low < only_positives.value == only_positives.high == 1
    score = np.array([0.1, 0.2, 0.3])
    one = average_precision_interval([0, 1, 0], score)
    assert one.value == 0.5
    assert np.isnan(parts(one)[1:]).all()
    assert np.isnan(parts(average_precision_interval([0, 0, 0], score))).all()
    missing = jnp.array([0.1, jnp.nan, 0.3])
    assert np.isnan(average_precision_interval(jnp.array([0, 1, 1]), missing).value)
    ids = np.arange(50) // 2
    in_one = parts(average_precision_interval(ids == 3, np.arange(50), clusters=ids))
    assert_array_equal(np.isnan(in_one), [False, True, True, True])


AREAS: dict[str, Callable[..., Any]] = {
    "average_precision": average_precision,
    "roc_auc": roc_auc,
    "along specificity": partial(roc_auc, max_fpr=0.3),
    "along sensitivity": partial(roc_auc, min_tpr=0.4, standardized=False),
}


def bootstrapped(name: str, put: Callable[..., Any], **options: Any) -> None:
    """Hold an area against a function that sorts each time, with the same draws: ties, labels to be
    left out.
    """
    rng = default_rng(0)
    y = rng.integers(-1, 2, 150)
    score = np.round(rng.normal(size=150) + 1.5 * y, 1).astype(np.float32)

    def sorting(y: Any, score: Any, sample_weight: Any) -> Any:
        return AREAS[name](y, score, sample_weight=sample_weight)

    arrays, options = (put(y), put(score)), {"num_samples": 60, **options}
    slow = jm.bootstrap_examples(KEY, sorting, *arrays, resample="weights", **options)
    for resample in ("indices", "weights") if put is np.asarray else ("indices",):
        fast = jm.bootstrap_examples(KEY, AREAS[name], *arrays, resample=resample, **options)
        rtol = 1e-10 if put is np.asarray else 2e-5
        assert_close(fast, slow, rtol, 0)


UNEQUAL = np.arange(150) ** 2 % 37 + 40 * (np.arange(150) < 40)  # 30 clusters


@pytest.mark.parametrize("name", AREAS)
def test_the_bootstrap_of_an_area_sorts_once(name: str) -> None:
    bootstrapped(name, np.asarray)
    bootstrapped(name, np.asarray, kind="percentile", strata=np.arange(150) % 3)
    bootstrapped(name, np.asarray, clusters=UNEQUAL)


@pytest.mark.parametrize("name", ["average_precision", "along specificity"])
def test_the_bootstrap_of_an_area_sorts_once_on_the_device(name: str) -> None:
    bootstrapped(name, jnp.asarray, kind="percentile", clusters=UNEQUAL)


def test_an_area_is_sorted_once_for_all_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(score: Any) -> Any:
        calls.append(1)
        return order(score)

    monkeypatch.setattr(ranks, "order", counted)
    y, score, _ = PROBLEMS["ties"]
    few = jm.bootstrap_examples(0, average_precision, y, score, num_samples=200)
    number = len(calls)
    jm.bootstrap_examples(0, average_precision, y, score, num_samples=400)
    assert len(calls) == 2 * number <= 6
    with_weights = partial(average_precision, sample_weight=np.ones(60))  # not resampled
    alike = jm.bootstrap_examples(
        0, lambda y, s: with_weights(y, s), y, score, num_samples=200, kind="percentile"
    )
    assert_allclose(few.standard_error, alike.standard_error, rtol=1e-10)
    scores_of_jax = jnp.where(jnp.arange(60) == 0, jnp.nan, score)
    undefined = jm.bootstrap_examples(
        KEY, average_precision, jnp.asarray(y), scores_of_jax, num_samples=200
    )
    assert 90 < undefined.num_undefined < 160  # those that draw the example without a score


def of_sets(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda y, score, **options: call(y > 0, score > 0.5, **options)


MULTILABEL: dict[str, tuple[Callable[..., jax.Array], Callable[..., float]]] = {
    "label_ranking_average_precision": (
        label_ranking_average_precision,
        sk.label_ranking_average_precision_score,
    ),
    "label_ranking_loss": (label_ranking_loss, sk.label_ranking_loss),
    "coverage_error": (coverage_error, sk.coverage_error),
    "ndcg": (ndcg, sk.ndcg_score),
    "dcg": (dcg, sk.dcg_score),
    "ndcg of three ranks": (partial(ndcg, k=3), partial(sk.ndcg_score, k=3)),
    "ndcg of all ranks": (partial(ndcg, k=60), sk.ndcg_score),
    "dcg of three ranks": (partial(dcg, k=3), partial(sk.dcg_score, k=3)),
    "hamming_loss": (of_sets(hamming_loss), of_sets(sk.hamming_loss)),
    "exact_match": (of_sets(exact_match), of_sets(sk.accuracy_score)),
}


@pytest.mark.parametrize("name", MULTILABEL)
def test_multilabel_equals_scikit_learns(name: str) -> None:
    ours, theirs = MULTILABEL[name]
    rng = default_rng(7)
    y = rng.integers(0, 2, (40, 5))
    y[:2] = [[0], [1]]  # none and all
    if "dcg" in name:  # of relevances
        y *= rng.integers(1, 4, y.shape)
    for score in (
        rng.normal(size=(40, 5)).astype(np.float32) + y,
        np.round(rng.normal(size=(40, 5)) + y),
        np.zeros((40, 5)),
    ):
        for options in ({}, {"sample_weight": rng.random(40) + 0.1}):
            close(ours(y, score, **options), theirs(y, score, **options))
    close(ours(y[:1], score[:1]), theirs(y[:1], score[:1]))


@pytest.mark.parametrize("spacing", [1, 2])  # 2: pairs of ties
def test_dcg_of_one_relevant_label_far_down_a_long_ranking_on_the_device(spacing: int) -> None:
    place = jnp.arange(100_000)[None]
    gain = dcg(jnp.where(place == 50_000, 1.0, 0.0), -(place // spacing))
    ranks = np.arange(50_001, 50_001 + spacing)
    assert_allclose(gain, np.mean(1 / np.log2(ranks + 1)), rtol=1e-6)


@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray], ids=["host", "device"])
@pytest.mark.parametrize("step", [0, 1])
def test_ranking_loss_of_more_pairs_than_int32_holds(convert: Any, step: int) -> None:
    is_true = np.arange(100_000) < 50_000
    rising = step * np.arange(100_000, dtype=np.float32)
    loss = label_ranking_loss(convert(is_true[None]), convert(rising[None]))
    assert_allclose(loss, 1, rtol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_top_k_labels_are_averaged_over_the_orders_of_ties(k: int) -> None:
    rng = default_rng(9)
    y, score, w = rng.integers(-1, 2, (12, 5)), np.round(rng.normal(size=(12, 5))), rng.random(12)
    y[0] = 0
    hits = []
    for truth, values in zip(y, score, strict=True):
        orders = [
            order
            for order in itertools.permutations(np.flatnonzero(truth >= 0))
            if (np.diff(values[list(order)]) <= 0).all()
        ]
        hits.append(np.mean([truth[list(order[:k])].sum() for order in orders]))
    close(top_k_precision(y, score, k=k, sample_weight=w), np.average(hits, weights=w) / k)
    recalls = np.array(hits) / np.maximum((y == 1).sum(1), 1)
    close(top_k_recall(y, score, k=k, sample_weight=w), np.average(recalls, weights=w))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_k_accuracy(k: int) -> None:
    rng = default_rng(9)
    y, score = rng.integers(0, 4, 50), np.round(rng.normal(size=(50, 4)))
    expected = sk.top_k_accuracy_score(y, score, k=k, labels=range(4))
    close(top_k_accuracy(y, score, k=k), expected)
    orders = rng.permuted(np.tile(np.arange(4), (4000, 1)), axis=1)
    first = [order[np.argsort(-score[:, order], -1, kind="stable")][:, :k] for order in orders]
    hits = (np.array(first) == y[:, None]).any(-1).mean(-1)
    error = np.std(hits) / np.sqrt(len(hits))
    expected = top_k_accuracy(y, score, k=k, ties="expected")
    assert_allclose(expected, np.mean(hits), atol=5 * error + 1e-6)


@pytest.mark.parametrize("score", [np.array([[2**53 + 1, 2**53]]), jnp.array([[2**24 + 1, 2**24]])])
def test_top_k_accuracy_of_integers_that_no_float_tells_apart(score: Any) -> None:
    assert top_k_accuracy(np.array([0]), score, k=1) == 1


def rare_and_saturated(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Logits: a rate of 0.2 % with scores of 1e-4, and scores of which most round to 1 in four
    digits.
    """
    rng = default_rng(10)
    n = 50_000
    y = (rng.random(n) < (0.01 if name == "rare" else 0.6)).astype(np.int32)
    logit = rng.normal(-8, 1.5, n) + 2.3 * y if name == "rare" else rng.normal(8, 4, n) + 6 * y
    return y, logit.astype(np.float32)


@pytest.mark.parametrize("name", ["rare", "saturated"])
@pytest.mark.parametrize("scale", ["probability", "logit", "float", "edges"])
def test_bounds_contain_the_exact_area(name: str, scale: Any) -> None:
    y, score = rare_and_saturated(name)
    how = {"scale": scale}
    if scale == "probability":
        score = special.expit(score.astype(float)).astype(np.float32)
    if scale == "edges":
        how = {"edges": np.unique(np.quantile(score, np.linspace(0, 1, 4097)[1:-1]))}
    first, second, histogram = (
        score_histogram(y[part], score[part], **how)
        for part in (slice(20_000), slice(20_000, None), slice(None))
    )
    assert_array_equal(first + second, histogram)
    assert histogram.sum() == len(y)
    area = roc_auc(histogram)
    for bounds, exact in (
        (area, sk.roc_auc_score(y, score)),
        (average_precision(histogram), sk.average_precision_score(y, score)),
    ):
        assert bounds.low <= exact <= bounds.high
        assert bounds.low <= bounds.value <= bounds.high
    assert scale == "float" or area.high - area.low < 0.005


def test_bounds_of_average_precision_are_sharp() -> None:
    """Against all orders of the examples within each bin."""
    histogram = np.array([[1, 2, 0, 1], [0, 2, 1, 2]])
    worst, best = oracles.best_and_worst_average_precision(histogram)
    bounds = average_precision(histogram)
    assert_allclose(bounds.high, best, rtol=1e-5)
    assert worst - 0.1 < bounds.low <= worst


@pytest.mark.parametrize(
    ("histogram", "best"),
    [
        ([[0, 2**24 + 2, 1], [0, 4, 0]], 4 / 5),
        ([[0, 2**30, 65], [0, 10, 0]], 10 / 75),
        ([[0, 1e5, 0.007], [0, 0.02, 0]], 0.02 / 0.027),
    ],
)
def test_bounds_beside_a_full_bin(histogram: Any, best: float) -> None:
    """The positives of the full bin may all come first in it: a few negatives above it must not be
    lost.
    """
    close(average_precision(histogram).high, best)
    of_device = average_precision(jnp.asarray(histogram, jnp.float32)).high
    assert_allclose(of_device, best, atol=3e-6)  # slack 2e-6


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_weights_of_any_size(scale: float) -> None:
    y, prob, weight = multiclass_problem()
    weighted = partial(roc_auc_one_vs_one, average="weighted")
    for call in (roc_auc_one_vs_one, weighted, per_class(roc_auc)):
        expected = call(y, prob, sample_weight=weight)
        close(call(y, prob, sample_weight=scale * weight), expected)
        if call is not roc_auc_one_vs_one:
            in_float32 = (scale * weight).astype(np.float32)
            of_device = call(jnp.asarray(y), prob, sample_weight=in_float32)
            assert_allclose(of_device, expected, rtol=2e-6)


def test_gradients_of_weights_that_are_absorbed() -> None:
    """Beside 1e8, a weight of 1 does not change a sum in float32; its gradient is its own all the
    same.
    """
    area = partial(average_precision, np.array([0, 1, 0, 1, 0, 1]), np.arange(6, 0, -1))
    weight = jnp.array([1e8, 1e8, 1, 1, 1, 1])
    gradient = jax.grad(lambda w: area(sample_weight=w))(weight)
    assert_allclose(gradient, [-2.5e-9, 2.5e-9, 0, 0, 0, 0], rtol=1e-3, atol=1e-15)


@pytest.mark.parametrize("scale", ["probability", "logit", "float"])
def test_bins_rise_with_the_score(scale: Any) -> None:
    tiny, real = np.logspace(-9, -0.3, 3000), np.logspace(-40, 38, 500)
    scores = (
        np.concatenate([np.logspace(-45, 0, 3000), 1 - tiny, [0, 1, 0.5]])
        if scale == "probability"
        else np.concatenate([-real, [0], real])
    )
    scores = np.unique(scores.astype(np.float32))
    histograms = score_histogram([1], scores[None, :, None], scale=scale, num_bins=256)
    bins = histograms[0, :, 1].argmax(-1)
    assert (np.diff(bins) >= 0).all()
    assert bins[0] <= 3
    assert bins[-1] >= 254  # the leading bits of +inf have one of their own
    missing = jnp.array([np.nan, 0.5, 0.5])
    assert score_histogram(jnp.array([0, 1, 1]), missing, scale=scale).sum() == 2


def test_histogram_weights() -> None:
    y, score, weight = PROBLEMS["ties and weights"]
    histogram = score_histogram(y, score, scale="logit", sample_weight=weight)
    exact = sk.roc_auc_score(y, score, sample_weight=weight)
    assert roc_auc(histogram).low <= exact <= roc_auc(histogram).high
    close(roc_auc(histogram).value, exact)  # scores that tie share a bin
    assert np.isnan(roc_auc(np.zeros((2, 64))).value)


HUGE = np.iinfo(np.int64).max


Y, S = [0, 1], [0.1, 0.2]


def subject_to(constraint: Any) -> Any:
    return best_threshold(jm.recall, Y, S, subject_to=constraint)


def best_of(metric: Any, **options: Any) -> Callable[[], Any]:
    return lambda: best_threshold(metric, Y, S, **options)


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: roc_auc([0.0, 1.0], [0.1, 0.2]), "y_true must hold class ids"),
    (lambda: roc_auc(Y, ["a", "b"]), "y_score must hold real numbers"),
    (lambda: roc_auc(Y, S, max_fpr=0), r"max_fpr must lie in \(0, 1\]"),
    (lambda: roc_auc(Y, S, min_tpr=1), r"min_tpr must lie in \[0, 1\)"),
    (
        lambda: roc_auc(Y, S, min_tpr=0.5, max_fpr=0.5),
        "max_fpr and min_tpr cannot be used together",
    ),
    (
        lambda: per_class(roc_auc)(Y, S),
        r"y_score must have shape \(..., n, K\)",
    ),
    (lambda: per_class(roc_auc, average="mean"), "average must be"),  # type: ignore[arg-type]
    (
        lambda: per_class(roc_curve, average="macro")([0, 1], [[0.1, 0.9], [0.2, 0.8]]),
        "returns one number",
    ),
    (lambda: per_label(roc_auc)([Y], [[0.1, 0.2, 0.3]]), r"\(..., n, L\)"),
    (lambda: per_class(0.5), "per_class takes measure, a function"),  # type: ignore[arg-type]
    (lambda: auc([0.0], [1.0]), "at least 2"),
    (
        lambda: score_histogram(Y, S),
        'The bins are not defined. Pass scale="probability"',
    ),
    (
        lambda: score_histogram(Y, S, scale="probability", num_bins=100),
        "power of two",
    ),
    (lambda: score_histogram(Y, S, edges=[0.5, 0.1]), "edges must be increasing"),
    (
        lambda: score_histogram(*map(jnp.array, (Y, S)), edges=jnp.array([1, 0])),
        "edges must be increasing",
    ),
    (
        lambda: roc_auc([1, 2]),
        r"y_true \(a histogram if y_score is not given\) must have shape \(..., 2, B\)",
    ),
    (lambda: top_k_accuracy([0], [[0.1, 0.2]], k=0), "k must be at least 1"),
    (lambda: top_k_accuracy([0], [0.1, 0.2], k=1), r"\(..., n, K\)"),
    (lambda: subject_to((jm.precision, [0.5])), r"subject_to\[1\] must be a number, or an array"),
    (lambda: subject_to((jm.precision, np.nan)), r"subject_to\[1\] is nan, expected the least"),
    (
        lambda: subject_to((0.5, jm.precision)),
        r"subject_to\[0\] must be a metric, a function of counts",
    ),
    (lambda: subject_to((lambda c: c, 0)), r"subject_to\[0\] must return one number"),
    (best_of(lambda c: c), "metric must return one number for each confusion matrix"),
    (
        best_of(lambda c: c, subject_to=(jm.accuracy, 0)),
        "metric must return one number for each confusion matrix",
    ),
    (best_of(lambda c: {}), "metric must return an array or a pytree"),
    (lambda: metric_at_thresholds(lambda c: "text", Y, S), "metric must return"),
    (lambda: metric_at_thresholds(lambda c: 1j * jm.accuracy(c), Y, S), "metric must return"),
    (
        lambda: delong_interval(Y, S, method="wald"),  # type: ignore[arg-type]
        "'score', 'logit' or 'normal'",
    ),
    (lambda: jm.safe_threshold(jm.f1, Y, S, least=0.9), r"quotient s / \(s \+ f\) of two cells"),
    (lambda: jm.safe_threshold(jm.accuracy, Y, S, least=0.9), "metric must be a rate"),
    (lambda: jm.safe_threshold(jm.recall, Y, S, least=1), "least must be a number between 0 and 1"),
    (lambda: jm.safe_threshold(None, Y, S, least=0.9), "metric must be a rate"),  # type: ignore[arg-type]
    (lambda: delong_interval(Y, S, average="micro"), "'macro' or 'weighted'"),  # type: ignore[arg-type]
    (lambda: delong_interval(Y, S, average="macro"), "y_score must have shape"),
    (
        lambda: subject_to(jm.precision),
        r"subject_to must be a pair of a metric and the least value",
    ),
]
# What only values show: checked on the host.
IMPOSSIBLE: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: roc_auc([0, 1, 2], [0.1, 0.2, 0.3]),
        r"y_true\[2\] is 2, but class ids must lie in \[0, 2\).* y_true == 1",
    ),
    (lambda: roc_auc([0, HUGE], [0.1, 0.2]), rf"y_true\[1\] is {HUGE}"),
    (
        lambda: roc_auc([[0], [1]], [[0.1], [0.2]]),
        r"y_true has shape \(2, 1\), which is a column.* y_true.ravel\(\)",
    ),
    (
        lambda: roc_auc(Y, [[0.1], [0.2]]),
        r"y_score must have shape \(..., n\).* If .* length 1, use y_score\[..., 0\]",
    ),
    (
        lambda: roc_auc(Y, [[0.1, 0.5, 0.4], [0.2, 0.5, 0.3]]),
        r"If .* length 2, use y_score\[..., 1\]\. .* per_class",
    ),
    (
        lambda: average_precision(Y, [[0.1, 0.2], [0.3, np.nan]]),
        r"y_score\[1, 1\] is nan, not a number; use where=",
    ),
    (lambda: jm.delong([0, 1, 1], [0.1, 0.2, 0.3], [0.1, np.nan, 0.3]), r"y_score_b\[1\] is nan"),
    (
        lambda: per_class(roc_auc)([0, 1, 2], [[0.1, 0.9]] * 3),
        r"y_true\[2\] is 2, but class ids must lie in \[0, 2\)",
    ),
    (
        lambda: per_class(roc_auc)([[0], [1]], [[0.1, 0.9], [0.3, 0.1]]),
        r"y_true has shape \(2, 1\), which is a column",
    ),
    (
        lambda: per_label(roc_auc)([[0, 1], [1, 2]], [[0.1, 0.9], [0.3, 0.1]]),
        r"y_true\[1, 1\] is 2",
    ),
    (lambda: roc_auc_one_vs_one([0, 1], [[0.1], [0.2]]), "K >= 2 classes"),
    (lambda: hamming_loss([[0, 1]], [[1, 5]]), r"y_pred\[0, 1\] is 5"),
    (
        lambda: hamming_loss(2**70, jnp.ones((3, 4), int)),
        r"got dtype object: y_true is 118\d+\.",
    ),
    (
        lambda: ndcg([[0, -1]], [[0.1, 0.2]]),
        r"y_true\[0, 1\] is -1, but relevance must be a number >= 0",
    ),
    (
        lambda: top_k_accuracy([4], [[0.1, 0.2, 0.3]], k=1),
        r"y_true\[0\] is 4, .* start from 1, subtract 1",
    ),
]


@pytest.mark.parametrize(("call", "message"), MISTAKES + IMPOSSIBLE)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, jnp.bfloat16])
def test_numbers_below_the_normal_ones_are_no_ties(dtype: Any, x64: bool) -> None:
    """XLA compares them as if they were 0; what is sorted are bits. -0.0 equals 0.0."""
    if dtype == np.float64 and not x64:
        return
    tiny = np.finfo(np.float64).tiny if dtype == np.float64 else 1e-38
    steps = np.array([-np.inf, -3, -2, -1, -0.0, 0.0, 1, 2, 3, np.inf])
    score = (steps * tiny / 100).astype(dtype)
    truth = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1, 1])
    expected = sk.roc_auc_score(truth, np.clip(steps, -9, 9))
    on_device = jnp.asarray(score)
    for call in (roc_auc, jax.jit(roc_auc)):
        assert_allclose(call(jnp.asarray(truth), on_device), expected, rtol=1e-6)
    assert_allclose(roc_auc(truth, score), expected)
