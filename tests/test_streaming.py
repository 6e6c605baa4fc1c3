"""Streaming states: ten batches give what one gives, counts never round, and no shape ever
changes.
"""

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from scipy import optimize, special

import jaxmetrics as jm
from jaxmetrics.streaming import standard_statistics
from jaxmetrics.streaming.files import _KINDS
from jaxmetrics.streaming.standard_statistics import ConfusionMatrix, Moments, _poisson_of_units
from jaxmetrics.streaming.states import merge_checked
from jaxmetrics.streaming.statistics import _words
from jaxmetrics.streaming.totals import add, as_numpy, as_total, sum_over_devices
from tests.estimates import ends, parts

K, N = 4, 96
COUNTS, LOSS = ConfusionMatrix(K), Moments("loss")


def everything(*, weighted: bool = False) -> jm.streaming.Evaluator:
    count_metrics = partial(jm.count_metrics, num_classes=K, weighted=weighted)
    return jm.evaluator(
        count_metrics({"accuracy": jm.accuracy, "recall": jm.recall}),
        count_metrics({"macro_f1": jm.macro(jm.f1)}, method=jm.Delta()),
        count_metrics({"f1": jm.label_macro(jm.f1)}, one_vs_rest=True),
        jm.mean_of("loss", level=0.9),
        jm.calibration_metrics(num_classes=K),
        jm.ranking_metrics(
            {"auc": jm.roc_auc},
            scale="probability",
            num_bins=256,
            num_classes=K,
            weighted=weighted,
        ),
        jm.paired_metrics({"paired_accuracy": jm.accuracy}, num_classes=K, weighted=weighted),
        jm.poisson_bootstrap(jm.mean_of("other"), num_samples=16),
        jm.mean_of("cost", level=0.9, groups="dataset", num_groups=3, weights="size"),
    )


def small(k: int = K, *, weighted: bool = False) -> jm.streaming.Evaluator:
    counts = jm.count_metrics({"accuracy": jm.accuracy}, num_classes=k, weighted=weighted)
    return jm.evaluator(counts, jm.mean_of("loss"))


EVALUATOR, WEIGHTED = everything(), everything(weighted=True)
SMALL = small()


def examples(n: int = N, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    y_true = rng.integers(-1, K + 1, n).astype(np.int32)
    return {
        "y_true": y_true,
        "logits": (rng.normal(size=(n, K)) + 2 * np.eye(K)[np.clip(y_true, 0, K - 1)]).astype(
            np.float32
        ),
        "loss": rng.normal(3, 1, n).astype(np.float32),
        "other": rng.normal(size=n).astype(np.float32),
        "y_pred_a": rng.integers(0, K, n).astype(np.int32),
        "y_pred_b": rng.integers(0, K, n).astype(np.int32),
        "unit": np.arange(n, dtype=np.int32) // 2,
        "cost": rng.normal(1, 1, n).astype(np.float32),
        "dataset": rng.integers(0, 3, n).astype(np.int32),
        "size": rng.integers(1, 9, n).astype(np.float32),
    }


ALL = examples()
FEW = {name: ALL[name] for name in ("y_true", "logits", "loss")}


def part(batch: dict[str, np.ndarray], chosen: Any) -> dict[str, np.ndarray]:
    return {name: x[chosen] for name, x in batch.items()}


def evaluated(evaluator: jm.streaming.Evaluator, *batches: dict[str, Any]) -> Any:
    return reduce(lambda state, batch: evaluator.update(state, **batch), batches, evaluator.init())


def assert_same(a: Any, b: Any, rtol: float = 2e-6, atol: float = 2e-6) -> None:
    jax.tree.map(partial(np.testing.assert_allclose, rtol=rtol, atol=atol), a, b)


def total_of(state: jm.streaming.EvaluatorState, statistic: jm.streaming.Statistic) -> jax.Array:
    return state.totals[state.statistics.index(statistic)]


def with_total(
    state: jm.streaming.EvaluatorState, statistic: jm.streaming.Statistic, total: jax.Array
) -> Any:
    i = state.statistics.index(statistic)
    return replace(state, totals=(*state.totals[:i], total, *state.totals[i + 1 :]))


def full(count: Any, value: int) -> jax.Array:
    """A count with every cell at a value."""
    low, high = count
    return jnp.stack([jnp.full_like(low, value & 0x7FFFFFFF), jnp.full_like(high, value >> 31)])


def cells(state: jm.streaming.EvaluatorState, statistic: Any = COUNTS) -> Any:
    """The exact counts of a state."""
    return as_numpy(total_of(state, statistic))


def test_every_statistic_is_evaluated_here_and_known_in_files() -> None:
    statistics = {x for x in vars(standard_statistics).values() if is_dataclass(x)}
    assert {type(x) for x in EVALUATOR.init().statistics} == statistics, "see everything()"
    assert set(_KINDS.values()) == statistics


def test_one_update_is_what_the_functions_say() -> None:
    results = EVALUATOR.compute(evaluated(EVALUATOR, ALL))
    valid = (ALL["y_true"] >= 0) & (ALL["y_true"] < K)
    kept = part(ALL, valid)
    counts = jm.confusion_matrix(kept["y_true"], kept["logits"].argmax(-1), num_classes=K)
    np.testing.assert_allclose(results["accuracy"], jm.accuracy(counts), rtol=1e-6)
    np.testing.assert_allclose(results["recall"], jm.recall(counts), rtol=1e-6)
    np.testing.assert_allclose(results["f1"], jm.macro(jm.f1)(counts), rtol=1e-6)
    assert_same(results["macro_f1"], jm.interval(jm.macro(jm.f1), counts, method=jm.Delta()))
    loss = kept["loss"].astype(float)
    np.testing.assert_allclose(results["loss"].value, loss.mean(), rtol=1e-6)
    error = loss.std(ddof=1) / np.sqrt(len(loss))
    np.testing.assert_allclose(results["loss"].standard_error, error, rtol=1e-5)
    np.testing.assert_allclose(
        results["loss"].high - results["loss"].low, 2 * 1.6448536 * error, rtol=1e-4
    )
    prob = special.softmax(kept["logits"].astype(float), -1)
    np.testing.assert_allclose(
        results["calibration_error"],
        jm.top_label(jm.calibration_error)(kept["y_true"], prob),
        rtol=1e-5,
    )
    for k in range(K):
        exact = jm.roc_auc((kept["y_true"] == k).astype(int), prob[:, k])
        assert results["auc"].low[k] <= exact <= results["auc"].high[k]
    a, b = ((kept["y_true"] == kept[name]).mean() for name in ("y_pred_a", "y_pred_b"))
    assert_same(results["paired_accuracy"], jm.streaming.PairedValues(a, b, a - b))
    assert (int(results["num_examples"]), int(results["num_ignored"])) == (
        valid.sum(),
        (~valid).sum(),
    )
    names = "accuracy recall macro_f1 f1 loss calibration_error auc paired_accuracy other"
    names += " cost macro_cost cost_by_dataset num_examples num_ignored num_invalid"
    assert [*results] == names.split()


PADDED = 48
UPDATE = jax.jit(lambda evaluator, state, batch: evaluator.update(state, **batch), static_argnums=0)


def padded(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """To a fixed length, with NaN and labels that would count."""
    missing = PADDED - len(batch["y_true"])
    rows = {
        name: np.full((missing, *x.shape[1:]), np.nan if x.dtype.kind == "f" else 0, x.dtype)
        for name, x in batch.items()
    }
    there = np.arange(PADDED) < PADDED - missing
    return {name: np.concatenate([x, rows[name]]) for name, x in batch.items()} | {"where": there}


@pytest.mark.parametrize("weighted", [False, True])
def test_any_split_in_any_order(weighted: bool) -> None:
    batch = (
        ALL | {"sample_weight": np.resize(np.array([1, 0, 2, 0.5], np.float32), N)}
        if weighted
        else ALL
    )
    evaluator = WEIGHTED if weighted else EVALUATOR
    update, whole = partial(UPDATE, evaluator), evaluated(evaluator, batch)

    @given(st.data())
    def check(data: st.DataObject) -> None:
        cuts = sorted(data.draw(st.lists(st.integers(1, PADDED - 1), max_size=4)))
        pieces = [
            part(batch, slice(a, b)) for a, b in zip([0, *cuts], [*cuts, PADDED], strict=True)
        ]
        pieces = data.draw(st.permutations([*pieces, part(batch, slice(PADDED, N))]))
        alone = data.draw(st.integers(0, len(pieces)))
        states = [update(evaluator.init(), padded(piece)) for piece in pieces[:alone]]
        in_turn = reduce(update, map(padded, pieces[alone:]), evaluator.init())
        merged = reduce(evaluator.merge, [*states, in_turn])
        assert_same(merged.examples, whole.examples, rtol=0, atol=0)
        assert_same(list(merged.tables().values()), list(whole.tables().values()), 1e-6, 1e-5)

    check()


def test_structure_never_changes(x64: bool) -> None:
    def layout(state: Any) -> Any:
        return jax.tree.map(lambda x: (x.shape, x.dtype, x.weak_type), state)

    for evaluator in (EVALUATOR, WEIGHTED):
        start = evaluator.init()
        once = evaluator.update(start, **ALL)
        weights = {} if evaluator is EVALUATOR else {"sample_weight": np.ones(N, np.float32)}
        twice = evaluator.update(once, **ALL, **weights, where=np.ones(N, bool))
        for state in (once, twice, evaluator.merge(twice, start)):
            assert layout(state) == layout(start)
        assert total_of(once, LOSS).dtype == (np.float64 if x64 else np.float32)


def test_in_a_scan_under_vmap_and_donated() -> None:
    batches = jax.tree.map(lambda x: jnp.asarray(x).reshape(6, 16, *x.shape[1:]), ALL)
    step = lambda state, batch: (EVALUATOR.update(state, **batch), None)
    scanned, _ = jax.jit(lambda: jax.lax.scan(step, EVALUATOR.init(), batches))()
    whole = EVALUATOR.compute(evaluated(EVALUATOR, ALL))
    assert_same(EVALUATOR.compute(scanned), whole, rtol=1e-5, atol=1e-5)

    history = jax.vmap(lambda batch: SMALL.update(SMALL.init(), **batch))(
        {name: batches[name] for name in FEW}
    )
    results = jax.vmap(SMALL.compute)(history)
    assert results["accuracy"].shape == (6,)
    first = SMALL.compute(evaluated(SMALL, part(FEW, slice(16))))
    assert_same(jax.tree.map(lambda x: x[0], results), first)

    update = jax.jit(lambda state, batch: SMALL.update(state, **batch), donate_argnums=0)
    state = update(update(SMALL.init(), FEW), FEW)
    assert (
        SMALL.compute(state)["num_examples"]
        == 2 * SMALL.compute(evaluated(SMALL, FEW))["num_examples"]
    )


def test_padding_masks_and_weights() -> None:
    whole = SMALL.compute(evaluated(SMALL, FEW))
    tokens = {name: x.reshape(8, 12, *x.shape[1:]) for name, x in FEW.items()}
    assert_same(SMALL.compute(evaluated(SMALL, tokens)), whole)
    twice = FEW | {"sample_weight": np.full(N, 2, np.float32)}
    again = {name: np.concatenate([x, x]) for name, x in FEW.items()}
    evaluator = small(weighted=True)
    results = [evaluator.compute(evaluated(evaluator, batch)) for batch in (twice, again)]
    assert_same(results[0]["accuracy"], results[1]["accuracy"])
    assert_same(results[0]["loss"], results[1]["loss"])
    mixed = evaluator.compute(evaluated(evaluator, FEW, twice))
    assert_same(mixed["accuracy"], whole["accuracy"])
    half = FEW | {"sample_weight": np.full(N, 0.5, np.float32)}
    # Fractions are weights, not yes or no.
    assert_same(evaluator.compute(evaluated(evaluator, half)), whole)
    assert np.isnan(SMALL.compute(SMALL.init())["loss"])


def test_negative_weights_give_nan() -> None:
    """In JAX arrays, even if all weights are negative, so that the signs would cancel."""
    state = WEIGHTED.update(WEIGHTED.init(), **ALL, sample_weight=-jnp.ones(N))
    results = jm.to_python(WEIGHTED.compute(state))
    for name in ("accuracy", "loss", "cost", "calibration_error", "paired_accuracy/a", "other"):
        assert np.isnan(results[name]), name


def by_rows(batch: dict[str, Any], k: int) -> dict[str, float]:
    """The rule, one row after the other: ignored by truth or mask, else invalid by prediction."""
    counts, losses = np.zeros((k, k), int), []
    numbers = dict.fromkeys(["num_examples", "num_ignored", "num_invalid"], 0.0)
    for i, true in enumerate(batch["y_true"]):
        if "where" in batch and not batch["where"][i]:
            continue
        if not 0 <= true < k:
            numbers["num_ignored"] += 1
            continue
        losses.append(batch["loss"][i])
        if "logits" in batch:
            row = batch["logits"][i]
            pred = -1 if np.isnan(row).any() else int(row.argmax())
        else:
            pred = batch["y_pred"][i]
        if 0 <= pred < k:
            counts[true, pred] += 1
            numbers["num_examples"] += 1
        else:
            numbers["num_invalid"] += 1
    accuracy = counts.trace() / counts.sum() if counts.any() else 0.0
    return {"accuracy": accuracy, "loss": float(np.mean(losses)), **numbers}


@pytest.mark.parametrize("k", [K, 200], ids=["counted at once", "in place"])
def test_rows_are_ignored_by_truth_and_invalid_by_prediction(k: int) -> None:
    """A row without a prediction is in no count, but in the mean of the loss."""
    rng, evaluator = np.random.default_rng(0), small(k)
    loss = rng.random(N).astype(np.float32)
    y_true, y_pred = rng.integers(-2, k + 2, (2, N)) % (k + 3) - 2
    logits = rng.normal(size=(N, k)).astype(np.float32)
    logits[rng.random(N) < 0.1, -1] = np.nan
    for batch in (
        {"y_true": y_true, "y_pred": y_pred, "loss": loss},
        {"y_true": y_true, "y_pred": y_pred, "loss": loss, "where": rng.random(N) < 0.7},
        {"y_true": y_true, "logits": logits, "loss": loss},
        {"y_true": np.arange(2), "y_pred": np.array([-1, k]), "loss": loss[:2]},
    ):
        results = jm.to_python(evaluator.compute(evaluated(evaluator, batch)))
        assert results == pytest.approx(by_rows(batch, k))


def test_every_accumulator_of_classes_leaves_invalid_rows_out() -> None:
    """As if the rows were not there; means contain them."""
    rng = np.random.default_rng(1)
    batch = ALL | {"y_pred_b": np.where(rng.random(N) < 0.2, rng.choice([-1, K], N), 0)}
    batch["logits"] = np.where(rng.random((N, K)) < 0.05, np.float32(np.nan), ALL["logits"])
    is_counted = (ALL["y_true"] >= 0) & (ALL["y_true"] < K)
    is_valid = ~np.isnan(batch["logits"]).any(1) & (batch["y_pred_b"] == 0)
    results = EVALUATOR.compute(evaluated(EVALUATOR, batch))
    rest = EVALUATOR.compute(evaluated(EVALUATOR, part(batch, is_valid)))
    for name in ("accuracy", "recall", "f1", "calibration_error", "auc", "paired_accuracy"):
        assert_same(results[name], rest[name])
    assert int(results["num_invalid"]) == (is_counted & ~is_valid).sum() > 0
    for name in ("loss", "other", "cost"):
        mean = ALL[name] * (ALL["size"] if name == "cost" else 1)
        expected = mean[is_counted].sum() / (
            ALL["size"][is_counted].sum() if name == "cost" else is_counted.sum()
        )
        np.testing.assert_allclose(results[name].value, expected, rtol=1e-5)


def test_ties_and_wide_labels() -> None:
    ties = {
        "y_true": np.zeros(3, np.int32),
        "logits": np.ones((3, K), np.float32),
        "loss": np.ones(3),
    }
    # The first of the greatest, as argmax.
    assert SMALL.compute(evaluated(SMALL, ties))["accuracy"] == 1
    wide = {"y_true": np.array([2**32, 1]), "y_pred": np.array([0, 1]), "loss": np.ones(2)}
    assert SMALL.compute(evaluated(SMALL, wide))["num_ignored"] == 1


def sum_of_three(evaluator: Any, state: Any) -> Any:
    sums = jax.vmap(lambda _: evaluator.psum(state, "i"), axis_name="i", axis_size=3)(None)
    return jax.tree.map(lambda x: x[2], sums)


@pytest.mark.parametrize("k", [K, 200], ids=["counted at once", "in place"])
@pytest.mark.parametrize("start", [2**24, 2**30, 2**31, 2**32, 2**53, 2**40 - 1, 2**62])
def test_counts_are_exact_wherever_they_stand(start: int, k: int) -> None:
    SMALL, COUNTS = small(k), ConfusionMatrix(k)
    batch = {
        "y_true": np.zeros(5, np.int32),
        "y_pred": np.array([0, 0, 0, 1, 1]),
        "loss": np.zeros(5, np.float32),
    }
    state = SMALL.init()
    state = with_total(state, COUNTS, full(total_of(state, COUNTS), start - 3))
    state = replace(state, examples=full(state.examples, start - 3))
    state = SMALL.update(state, **batch)
    assert cells(state, COUNTS)[0, :4].tolist() == [start, start - 1, start - 3, start - 3]
    assert as_numpy(state.examples).tolist() == [start + 2, start - 3, start - 3]
    right = SMALL.compute(state)["accuracy"]
    exact = (k * (start - 3) + 3) / (k * k * (start - 3) + 5)
    np.testing.assert_allclose(right, exact, rtol=1e-6)
    if start < 2**62:
        both = SMALL.merge(state, SMALL.merge(state, SMALL.init()))
        assert cells(both, COUNTS)[0, :3].tolist() == [2 * start, 2 * start - 2, 2 * start - 6]
        summed = cells(sum_of_three(SMALL, state), COUNTS)
        assert summed[0, :2].tolist() == [3 * start, 3 * start - 3]


def test_lower_words_are_carried_before_they_are_full() -> None:
    """At the most that a cell can hold since it was carried, with all examples in one cell; and
    not before, because it takes time for the matrix.
    """
    evaluator, counts = small(200), ConfusionMatrix(200)
    batch = {"y_true": np.zeros(5, int), "y_pred": np.zeros(5, int), "loss": np.zeros(5)}
    most = 2**31 - 1 + 2**30
    for number, is_carried in ((2**30 - 6, False), (2**30 - 5, True), (2**31 - 1, True)):
        state = evaluator.init()
        total = total_of(state, counts).at[0, 0, 0].set(np.uint32(most))
        state = with_total(state, counts, total)
        state = replace(state, examples=full(state.examples, number))
        state = evaluator.update(state, **batch)
        assert int(cells(state, counts)[0, 0]) == most + 5
        assert (int(total_of(state, counts)[1, 0, 0]) == 1) == is_carried
        whole = evaluator.merge(state, state)
        assert int(cells(whole, counts)[0, 0]) == 2 * (most + 5)
        assert int(cells(sum_of_three(evaluator, state), counts)[0, 0]) == 3 * (most + 5)


def operations(jaxpr: Any, size: int) -> set[str]:
    """The operations that make more numbers, except in loops, which carry words, and scatters."""
    found = set()
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        inner = [x.jaxpr for x in equation.params.values() if hasattr(x, "jaxpr")]
        is_whole = name in ("while", "scatter-add") or not inner
        for body in inner if not is_whole else []:
            found |= operations(body, size)
        sizes = [math.prod(x.aval.shape) for x in equation.outvars]
        if is_whole and max(sizes) > size:
            found.add(name)
    return found


def test_an_update_costs_the_batch() -> None:
    """It does nothing with the whole matrix except for the loop that carries; the state is donated,
    so that the scatter is in place.
    """
    evaluator = jm.evaluator(jm.count_metrics({"accuracy": jm.accuracy}, num_classes=1000))
    y = jax.ShapeDtypeStruct((128,), jnp.int32)
    update = lambda state, y: evaluator.update(state, y_true=y, y_pred=y)
    state = jax.eval_shape(evaluator.init)
    jaxpr = jax.make_jaxpr(update)(state, y).jaxpr
    assert operations(jaxpr, 1000**2) == {"reshape", "scatter-add", "while"}
    program: Any = jax.jit(update, donate_argnums=0).lower(state, y).compile()
    assert program.memory_analysis().alias_size_in_bytes >= 8 * 1000**2
    assert program.memory_analysis().temp_size_in_bytes < 2**16


def test_weights_are_declared() -> None:
    """The state has its final form at first; without weights, they would not fit in."""
    batch = part(FEW, slice(4)) | {"sample_weight": np.ones(4)}
    for counted in (EVALUATOR, SMALL):
        with pytest.raises(
            ValueError, match=r"sample_weight needs .* count_metrics\(..., weighted="
        ):
            counted.update(counted.init(), **batch)
    leaves = jax.tree.leaves(small(weighted=True).init())
    assert [x.dtype for x in leaves] == [np.uint32, np.float32, np.float32, np.float32]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [K, 6000], ids=["counted at once", "in place"])
def test_rates_of_classes_without_a_matrix(k: int, weighted: bool) -> None:
    """As of the matrix; classes that do not occur are skipped by NaN for 0/0."""
    rates: dict[str, Any] = {
        "macro": partial(jm.label_macro(jm.f1), zero_division=np.nan),
        "recall": jm.label_macro(jm.recall),
        "specificity": jm.label_macro(jm.specificity),
    }
    metrics = jm.count_metrics(rates, num_classes=k, one_vs_rest=True, weighted=weighted)
    evaluator = jm.evaluator(metrics)
    rng = np.random.default_rng(0)
    batch = {"y_true": rng.integers(-1, 9, 300) * (k // 9), "y_pred": rng.integers(0, 9, 300)}
    batch["y_pred"] = np.where(rng.random(300) < 0.6, batch["y_true"], batch["y_pred"] * (k // 9))
    if weighted:
        batch["sample_weight"] = rng.random(300).astype(np.float32)
    halves = part(batch, slice(0, 100)), part(batch, slice(100, 300))
    results = evaluator.compute(evaluated(evaluator, *halves))
    is_valid = (batch["y_true"] >= 0) & (batch["y_pred"] >= 0)
    valid: dict[str, Any] = part(batch, is_valid)
    counts = jm.confusion_matrix(**valid, num_classes=k)
    occurs = (counts.sum(0) + counts.sum(1)) > 0
    np.testing.assert_allclose(results["macro"], jm.macro(jm.f1)(counts), rtol=1e-5)
    np.testing.assert_allclose(results["recall"], jm.recall(counts).mean(), rtol=1e-5)
    found = jm.specificity(counts[np.ix_(occurs, occurs)]).sum() + (~occurs).sum()
    np.testing.assert_allclose(results["specificity"], found / k, rtol=1e-5)


def test_weighted_sums_do_not_drift() -> None:
    evaluator = jm.evaluator(jm.mean_of("loss"))
    step = jax.jit(lambda s: evaluator.update(s, loss=jnp.ones(1), sample_weight=jnp.full(1, 0.1)))
    state = evaluator.init()
    total = as_total(jnp.array([2.0**24, 0.0, 0.0]))
    state = with_total(state, LOSS, total)
    state = jax.lax.fori_loop(0, 10_000, lambda _, s: step(s), state)
    exact = 2**24 + 10_000 * Fraction(float(np.float32(0.1)))
    rounding = 2.0**-48 * 2**24  # of one addition
    found = Fraction(as_numpy(total_of(state, LOSS))[0].item())
    assert abs(found - exact) < 10_000 * rounding / 4
    assert np.isinf(
        evaluator.compute(evaluator.update(evaluator.init(), loss=np.array([np.inf, 1.0])))["loss"]
    )


@given(
    # The device takes numbers below 1e-38 for 0.
    st.lists(st.floats(-1e9, 1e9, width=32, allow_subnormal=False), min_size=3, max_size=3),
    st.lists(st.floats(-64, 64, width=32, allow_subnormal=False), min_size=3, max_size=3),
)
def test_sums_commute_and_associate(values: list[float], errors: list[float]) -> None:
    a, b, c = (
        add(as_total(jnp.float32(x)), as_total(jnp.float32(y)))
        for x, y in zip(values, errors, strict=True)
    )
    np.testing.assert_array_equal(add(a, b), add(b, a))
    exact = sum(Fraction(x) + Fraction(y) for x, y in zip(values, errors, strict=True))
    largest = sum(map(abs, values)) + sum(map(abs, errors))
    for value, error in (add(add(a, b), c), add(a, add(b, c))):
        assert abs(Fraction(float(value)) + Fraction(float(error)) - exact) <= 2.0**-44 * largest


def test_sums_over_devices_are_rounded_once() -> None:
    rng = np.random.default_rng(0)
    value = (rng.normal(size=(64, 5)) * 10.0 ** np.arange(-3, 7, 2)).astype(np.float32)
    error = (value * rng.uniform(-(2.0**-25), 2.0**-25, value.shape)).astype(np.float32)
    value[:, 4] = np.inf
    summed = jax.vmap(lambda v, e: sum_over_devices(jnp.stack([v, e]), "i"), axis_name="i")(
        value, error * np.isfinite(value)
    )
    exact = (value[:, :4].astype(float) + error[:, :4]).sum(0)
    got = as_numpy(summed[0])
    assert np.abs(got[:4] - exact).max() <= 2.0**-44 * np.abs(value[:, :4]).sum(0).max()
    np.testing.assert_allclose(got[:4], exact, rtol=1e-9)
    assert got[4] == np.inf
    backwards = jax.vmap(lambda v, e: sum_over_devices(jnp.stack([v, e]), "i"), axis_name="i")(
        value[::-1], (error * np.isfinite(value))[::-1]
    )
    np.testing.assert_array_equal(backwards[0][0], summed[0][0])


@pytest.mark.parametrize("axis_type", [AxisType.Auto, AxisType.Explicit])
def test_sharded_batches_without_a_collective(axis_type: AxisType) -> None:
    mesh = jax.make_mesh((8,), ("data",), axis_types=(axis_type,), devices=jax.devices("cpu"))
    batch = {name: jax.device_put(x, NamedSharding(mesh, P("data"))) for name, x in ALL.items()}
    state = jax.jit(lambda batch: EVALUATOR.update(EVALUATOR.init(), **batch))(batch)
    assert_same(
        EVALUATOR.compute(state), EVALUATOR.compute(evaluated(EVALUATOR, ALL)), rtol=1e-5, atol=1e-5
    )


def test_states_of_devices_add_up_by_psum() -> None:
    mesh = Mesh(np.array(jax.devices("cpu")), ("data",))

    def on_each(batch: Any) -> Any:
        return EVALUATOR.psum(EVALUATOR.update(EVALUATOR.init(), **batch), "data")

    state = jax.jit(jax.shard_map(on_each, mesh=mesh, in_specs=P("data"), out_specs=P()))(ALL)
    whole = evaluated(EVALUATOR, ALL)
    assert_same(EVALUATOR.compute(state), EVALUATOR.compute(whole), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(cells(state), cells(whole))


def test_counts_in_place_under_transformations() -> None:
    """In shard_map from an unvarying state, in scans, under vmap over states, on an Explicit mesh,
    with a carry in one of the states.
    """
    evaluator, counts = small(200), ConfusionMatrix(200)
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(-1, 200, (2, 64)) * (rng.random(64) < 0.5)
    batch = {"y_true": y_true, "y_pred": y_pred, "loss": np.ones(64, np.float32)}
    expected = cells(evaluated(evaluator, batch), counts)
    devices = jax.devices("cpu")
    mesh = Mesh(np.array(devices), ("data",))
    update = lambda state, batch: (evaluator.update(state, **batch), None)

    def on_each(batch: Any) -> Any:
        state = evaluator.update(evaluator.init(), **batch)
        return evaluator.psum(state, "data")

    on_devices = jax.jit(jax.shard_map(on_each, mesh=mesh, in_specs=P("data"), out_specs=P()))
    states = [on_devices(batch)]
    parts = jax.tree.map(lambda x: jnp.asarray(x).reshape(8, 8), batch)
    states.append(jax.lax.scan(update, evaluator.init(), parts)[0])
    explicit = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Explicit,), devices=devices)
    sharded = jax.device_put(batch, NamedSharding(explicit, P("data")))
    states.append(jax.jit(lambda batch: update(evaluator.init(), batch)[0])(sharded))
    for state in states:
        np.testing.assert_array_equal(cells(state, counts), expected)

    start = jax.tree.map(lambda x: jnp.stack([x] * 8), evaluator.init())
    full_word = start.totals[0].at[3, 0, 0, 0].set(np.uint32(2**32 - 9))
    examples = start.examples.at[3, 0, 0].set(np.uint32(2**31 - 2))
    start = replace(start, totals=(full_word, *start.totals[1:]), examples=examples)
    stacked = jax.vmap(lambda s, b: update(s, b)[0])(start, parts)
    found = [cells(jax.tree.map(lambda x, i=i: x[i], stacked), counts) for i in range(8)]
    found[3][0, 0] -= np.uint64(2**32 - 9)
    np.testing.assert_array_equal(sum(found), expected)


def test_inside_a_differentiated_training_step() -> None:
    def loss(logits: jax.Array) -> Any:
        losses = jm.cross_entropy(logits, jnp.asarray(FEW["y_true"]))
        state = SMALL.update(SMALL.init(), y_true=FEW["y_true"], logits=logits, loss=losses)
        return losses.sum(), (state, SMALL.compute(state)["accuracy"])

    (_, (state, _)), gradient = jax.value_and_grad(loss, has_aux=True)(jnp.asarray(FEW["logits"]))
    ids = np.where(FEW["y_true"] < K, FEW["y_true"], -1)
    expected = evaluated(SMALL, FEW | {"loss": jm.cross_entropy(FEW["logits"], ids)})
    assert_same(state, expected)
    assert np.isfinite(gradient).all()


def test_numbers_and_dtypes_as_people_give_them() -> None:
    evaluator = jm.evaluator(jm.mean_of("x"))
    large = np.array([3_000_000_000, 1_000_000_000])
    assert evaluator.compute(evaluated(evaluator, {"x": large}))["x"] == 2e9
    weighted = evaluated(evaluator, {"x": [1, 2], "sample_weight": large})
    np.testing.assert_allclose(evaluator.compute(weighted)["x"], 1.25, rtol=1e-6)
    for dtype in (jnp.bfloat16, jnp.float8_e4m3fn, jnp.float8_e5m2):
        batch = {"y_true": np.arange(K), "logits": jnp.eye(K).astype(dtype), "loss": jnp.ones(K)}
        assert SMALL.compute(evaluated(SMALL, batch))["accuracy"] == 1
    with pytest.raises(ValueError, match="two results are named 'a/low'"):
        jm.to_python({"a": {"low": 1}, "a/low": 2})


def test_a_scan_inside_of_shard_map() -> None:
    if not hasattr(jax.lax, "pcast"):
        pytest.skip("JAX 0.7 lacks jax.lax.pcast")
    mesh = Mesh(np.array(jax.devices("cpu")), ("data",))
    evaluator = jm.evaluator(jm.mean_of("x"))

    def on_each(x: jax.Array) -> Any:
        start = jax.lax.pcast(evaluator.init(), "data", to="varying")
        return evaluator.psum(
            jax.lax.scan(lambda s, x: (evaluator.update(s, x=x), None), start, x)[0], "data"
        )

    x = np.arange(64.0, dtype=np.float32).reshape(4, 16)
    state = jax.jit(jax.shard_map(on_each, mesh=mesh, in_specs=P(None, "data"), out_specs=P()))(x)
    assert evaluator.compute(state)["x"] == 31.5


def test_groups_and_areas_of_one_event() -> None:
    evaluator = jm.evaluator(
        jm.count_metrics({"gap": jm.group_difference(jm.accuracy)}, num_classes=2, num_groups=2),
        jm.ranking_metrics(
            {"auc": lambda histogram: jm.roc_auc(histogram).value},
            scale="float",
            num_bins=64,
            method=jm.Bootstrap(jax.random.key(0), "percentile", 100),
        ),
        jm.calibration_metrics({"bins": lambda bins: bins}, num_bins=4),
    )
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 200), rng.normal(size=200).astype(np.float32)
    batch = {
        "y_true": y,
        "y_pred": (score > 0).astype(int),
        "y_score": score + y,
        "groups": rng.integers(0, 2, 200),
    }
    batch |= {"y_prob": rng.random(200).astype(np.float32)}
    results = evaluator.compute(evaluated(evaluator, batch))
    by_group = jm.confusion_matrix(
        y, batch["y_pred"], num_classes=2, groups=batch["groups"], num_groups=2
    )
    assert_same(results["gap"], jm.group_difference(jm.accuracy)(by_group))
    histogram = jm.score_histogram(y, batch["y_score"], scale="float", num_bins=64)
    assert_same(results["auc"].value, jm.roc_auc(histogram).value)
    assert results["auc"].low < results["auc"].value
    assert_same(results["bins"], jm.calibration_bins(y, batch["y_prob"], num_bins=4))


@pytest.mark.parametrize(("num_classes", "weighted"), [(None, False), (3, True)])
def test_areas_within_groups(num_classes: int | None, weighted: bool) -> None:
    """As of the examples of each group alone; -1 and 2 are no groups."""
    rng = np.random.default_rng(2)
    groups, y = rng.integers(-1, 3, 200), rng.integers(0, num_classes or 2, 200)
    batch = {"y_true": y, "groups": groups}
    if num_classes is None:
        batch["y_score"] = (rng.normal(size=200) + y).astype(np.float32)
    else:
        batch["logits"] = rng.normal(size=(200, 3)).astype(np.float32)
    if weighted:
        batch["sample_weight"] = rng.integers(0, 3, 200).astype(np.float32)
    metrics = partial(
        jm.ranking_metrics,
        {"auc": lambda h: jm.roc_auc(h).value},
        scale="probability" if num_classes else "logit",
        num_bins=64,
        num_classes=num_classes,
        weighted=weighted,
    )
    grouped, alone = jm.evaluator(metrics(num_groups=2)), jm.evaluator(metrics())
    halves = (part(batch, slice(0, 90)), part(batch, slice(90, 200)))
    results = grouped.compute(evaluated(grouped, *halves))
    assert results["auc"].shape == ((2,) if num_classes is None else (3, 2))
    for g in range(2):
        rows = part(batch, groups == g)
        del rows["groups"]
        expected = alone.compute(evaluated(alone, rows))["auc"]
        np.testing.assert_allclose(results["auc"][..., g], expected, rtol=1e-5)
    drawn = jm.evaluator(jm.poisson_bootstrap(metrics(num_groups=2), num_samples=50))
    estimate = drawn.compute(evaluated(drawn, batch | {"unit": np.arange(200)}))["auc"]
    np.testing.assert_allclose(estimate.value, results["auc"], rtol=1e-5)
    assert (estimate.low < estimate.high).all()


def ratio(y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """The ratio of two sums, and its standard error (Cochran 1977, equation 6.13)."""
    n, m = len(y), y.sum() / w.sum()
    variance_of_residuals = ((y - m * w) ** 2).sum() / (n - 1)
    return m, np.sqrt(n * variance_of_residuals) / w.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_groups(weighted: bool) -> None:
    """Against NumPy, in two batches; group 3 has no examples, -1 and 9 are no groups."""
    rng = np.random.default_rng(3)
    x, size = rng.normal(2, 1, 120).astype(np.float32), rng.integers(0, 50, 120).astype(np.float32)
    dataset = rng.choice([0, 1, 2, 4, -1, 9], 120, p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05])
    x[size == 0] = np.nan if weighted else 2
    options: dict[str, Any] = {"groups": "dataset", "num_groups": 5}
    batch = {"loss": x, "dataset": dataset}
    if weighted:
        options["weights"], batch["size"] = "size", size
    valid = (dataset >= 0) & (dataset < 5)
    counts = valid & (size > 0) if weighted else valid
    w = np.where(counts, size if weighted else 1, 0).astype(float)
    y = np.where(counts, x * w, 0).astype(float)
    expected = [ratio(y[counts], w[counts])]
    expected += [ratio(*(v[counts & (dataset == g)] for v in (y, w))) for g in (0, 1, 2, 4)]
    values, errors = np.transpose(expected)

    halves = [part(batch, slice(0, 50)), part(batch, slice(50, 120))]
    evaluator, plain, counting = (
        jm.evaluator(jm.mean_of("loss", level=level, frequency=frequency, **options))
        for level, frequency in ((0.9, False), (None, False), (0.9, True))
    )
    results = evaluator.compute(evaluated(evaluator, *halves))
    assert [*results][:3] == ["loss", "macro_loss", "loss_by_dataset"]
    assert int(results["num_ignored"]) == (~valid).sum()
    there = [0, 1, 2, 4]
    by_dataset = parts(results["loss_by_dataset"])
    assert np.isnan(by_dataset[:, 3]).all()
    found = np.column_stack(
        [parts(results["loss"]), by_dataset[:, there], parts(results["macro_loss"])]
    )
    values = np.append(values, values[1:].mean())
    errors = np.append(errors, np.sqrt((errors[1:] ** 2).sum()) / 4)
    reach = 1.6448536 * errors
    np.testing.assert_allclose(found, [values, values - reach, values + reach, errors], rtol=1e-4)

    assert_same(
        plain.compute(evaluated(plain, *halves)),
        {name: getattr(x, "value", x) for name, x in results.items()},
    )
    heavy = batch | {"sample_weight": np.full(120, 2, np.float32)}
    for one, copies in ((evaluator, [batch]), (counting, [batch, batch])):
        of_copies, of_weights = (one.compute(evaluated(one, *x)) for x in (copies, [heavy]))
        for name in ("loss", "macro_loss", "loss_by_dataset"):
            assert_same(of_weights[name], of_copies[name], rtol=1e-5)


def test_what_is_wrong_in_one_group_stays_there() -> None:
    options: dict[str, Any] = {"groups": "dataset", "num_groups": 3, "weights": "size"}
    evaluator = jm.evaluator(jm.mean_of("loss", **options))
    batch: dict[str, Any] = {"loss": [1.0, np.nan, 3.0], "dataset": [0, 1, 2], "size": np.ones(3)}
    results = jm.to_python(evaluator.compute(evaluated(evaluator, batch)))
    np.testing.assert_array_equal(results["loss_by_dataset"], [1, np.nan, 3])
    assert np.isnan([results["loss"], results["macro_loss"]]).all()  # a divergence is not hidden
    for wrong in (-1.0, np.nan):
        batch = {"loss": [1.0, 2.0, 3.0], "dataset": [0, 1, 2], "size": [1.0, wrong, 1.0]}
        with pytest.raises(ValueError, match=r"size\[1\] is .*, (expected a finite|not a number)"):
            evaluator.update(evaluator.init(), **batch)
        masked = evaluated(evaluator, batch | {"where": np.array([True, False, True])})
        np.testing.assert_array_equal(evaluator.compute(masked)["loss"], 2)
        arrays = jax.tree.map(jnp.asarray, {name: np.array(x) for name, x in batch.items()})
        hidden = jax.jit(lambda batch: evaluator.update(evaluator.init(), **batch))(arrays)
        found = evaluator.compute(hidden)["loss_by_dataset"]
        np.testing.assert_array_equal(found, [1, np.nan, 3])


def test_tokens_of_a_language_model_in_one_scan() -> None:
    """Labels `(batches, B, T)`: means against loops over the tokens that are not padding, other
    results against a single batch.
    """
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(5, 4, 6, 7)), rng.integers(-1, 7, (5, 4, 6))
    evaluator = jm.evaluator(
        jm.count_metrics({"accuracy": jm.accuracy}, num_classes=7),
        jm.mean_of("loss", "top3"),
        jm.mean_of("again", "top3_again", level=0.9),
        jm.ranking_metrics({"auc": jm.roc_auc}, scale="probability", num_classes=7, num_bins=64),
        jm.calibration_metrics(num_classes=7),
    )

    def step(state: Any, batch: Any) -> Any:
        z, y = batch
        loss = jm.cross_entropy(z, y)
        top3 = jm.top_k_accuracy(y[..., None], z[..., None, :], k=3)
        fields = {"loss": loss, "top3": top3, "again": loss, "top3_again": top3}
        return evaluator.update(state, y_true=y, logits=z, **fields), None

    @jax.jit
    def run(*batches: Any) -> Any:
        return evaluator.compute(jax.lax.scan(step, evaluator.init(), batches)[0])

    got = jax.device_get(run(jnp.asarray(logits, jnp.float32), jnp.asarray(labels)))
    losses, hits = [], []
    for z, y in zip(logits.reshape(-1, 7), labels.ravel(), strict=True):
        if y >= 0:
            losses.append(np.log(np.exp(z).sum()) - z[y])
            hits.append(float((z > z[y]).sum() < 3))
    for name, values in {"loss": losses, "top3": hits}.items():
        np.testing.assert_allclose(got[name], np.mean(values), rtol=1e-6)
    for name, values in {"again": losses, "top3_again": hits}.items():
        np.testing.assert_allclose(got[name].value, np.mean(values), rtol=1e-6)
        error = np.std(values, ddof=1) / len(values) ** 0.5
        np.testing.assert_allclose(got[name].standard_error, error, rtol=1e-5)
    assert got["num_examples"] == len(losses)
    assert got["num_ignored"] == (labels < 0).sum()
    flat = evaluator.update(
        evaluator.init(),
        y_true=labels.ravel(),
        logits=logits.reshape(-1, 7).astype(np.float32),
        **dict.fromkeys(("loss", "top3", "again", "top3_again"), np.zeros(labels.size)),
    )
    at_once = evaluator.compute(flat)
    for name in ("accuracy", "auc", "calibration_error"):
        found, expected = (jax.tree.leaves(results[name]) for results in (got, at_once))
        np.testing.assert_allclose(found, expected, rtol=1e-5, err_msg=name)


def test_poisson_bootstrap_of_means_of_groups() -> None:
    """Standard errors of 400 replicates are within 5 of their own of what theory says."""
    rng = np.random.default_rng(1)
    n = 2000
    batch = {
        "loss": rng.exponential(size=n).astype(np.float32),
        "dataset": rng.integers(0, 2, n),
        "size": rng.exponential(size=n).astype(np.float32),
        "unit": np.arange(n),
    }
    mean_of = partial(jm.mean_of, groups="dataset", num_groups=2, weights="size")
    drawn = jm.evaluator(jm.poisson_bootstrap(mean_of("loss"), num_samples=400))
    exact = jm.evaluator(mean_of("loss", level=0.95))
    del (without := dict(batch))["unit"]
    a, b = drawn.compute(evaluated(drawn, batch)), exact.compute(evaluated(exact, without))
    for name in ("loss", "macro_loss", "loss_by_dataset"):
        np.testing.assert_allclose(a[name].value, b[name].value, rtol=1e-5)
        errors = a[name].standard_error, b[name].standard_error
        np.testing.assert_allclose(*errors, rtol=5 / np.sqrt(800))


def test_poisson_weights_are_poisson() -> None:
    """Means of 64 x 4096 draws; the tolerances are 4 standard errors."""
    times = np.asarray(_poisson_of_units(jnp.arange(4096, dtype=jnp.uint32), 64, 0))
    size = times.size
    assert abs(times.mean() - 1) < 4 / np.sqrt(size)
    assert abs(times.var() - 1) < 4 * np.sqrt(3 / size)
    assert abs((times == 0).mean() - np.exp(-1)) < 4 * np.sqrt(0.2325 / size)
    correlations = np.corrcoef(times) - np.eye(64)
    assert np.abs(correlations).max() < 5 / np.sqrt(4096)
    assert np.abs(np.corrcoef(times.T[:64]) - np.eye(64)).max() < 5 / np.sqrt(64)
    assert (_poisson_of_units(jnp.arange(64, dtype=jnp.uint32), 64, 1) != times[:, :64]).any()


def test_units_are_the_same_in_any_container(x64: bool) -> None:
    ids = [0, 1, 5, 2**31 - 1]
    expected = _words(np.array([*ids, -5, -1]))
    for dtype in (np.int32, np.int64):
        np.testing.assert_array_equal(_words(np.array([*ids, -5, -1], dtype)), expected)
    np.testing.assert_array_equal(_words(jnp.asarray([*ids, -5, -1])), expected)
    np.testing.assert_array_equal(_words(np.array([-5, -1, 5], np.int8)), expected[[4, 5, 2]])
    documents, visits = np.arange(300)[:, None], np.arange(300)
    composite = (documents << 32 | visits).reshape(-1)
    # Of random words, 1 pair would be equal.
    assert len(np.unique(_words(composite))) > len(composite) - 10
    if x64:
        np.testing.assert_array_equal(_words(jnp.asarray(composite)), _words(composite))
    assert len(np.unique(_words(np.arange(-1000, 1000)))) == 2000


def test_poisson_bootstrap_of_means_areas_and_clusters() -> None:
    """Standard errors of 400 replicates are within 4 of their own, 1 / sqrt(800), of what theory
    says.
    """
    rng = np.random.default_rng(0)
    n = 1000
    x, y = rng.normal(size=n).astype(np.float32), rng.integers(0, 2, n)
    score = (rng.normal(size=n) + y).astype(np.float32)
    bootstrap = partial(jm.poisson_bootstrap, num_samples=400)
    area = jm.ranking_metrics({"auc": lambda h: jm.roc_auc(h).value}, scale="logit", num_bins=512)
    evaluator = jm.evaluator(bootstrap(jm.mean_of("x")), bootstrap(area))
    batch: dict[str, np.ndarray] = {"x": x, "y_true": y, "y_score": score, "unit": np.arange(n)}
    results = evaluator.compute(
        evaluated(evaluator, *(part(batch, slice(i, i + 250)) for i in range(0, n, 250)))
    )
    tolerance = 4 / np.sqrt(800)
    np.testing.assert_allclose(results["x"].standard_error, x.std() / np.sqrt(n), rtol=tolerance)
    np.testing.assert_allclose(results["x"].value, x.mean(), atol=1e-6)
    assert results["x"].low < results["x"].value < results["x"].high
    np.testing.assert_allclose(
        results["auc"].standard_error, jm.delong_interval(y, score).standard_error, rtol=tolerance
    )
    twins = {"x": np.repeat(x, 2), "unit": np.repeat(np.arange(n) * 2**33, 2)}
    alone = jm.evaluator(bootstrap(jm.mean_of("x")))
    error = alone.compute(evaluated(alone, twins))["x"].standard_error
    # Not smaller by sqrt(2).
    np.testing.assert_allclose(error, x.std() / np.sqrt(n), rtol=tolerance)


def by_loop(values: np.ndarray, level: float) -> tuple[float, float]:
    """Waudby-Smith and Ramdas (2024), theorem 2, one value after the other in float64."""
    log = np.log(2 / (1 - level))
    total, squares, bets, weighted, penalty = 0.5, 0.25, 0.0, 0.0, 0.0
    for t, x in enumerate(values.astype(float), 1):
        before, variance = total / t, squares / t
        bet = min(np.sqrt(2 * log / (variance * t * np.log1p(t))), 0.5)
        total += x
        squares += (x - total / (t + 1)) ** 2
        bets += bet
        weighted += bet * x
        penalty += 4 * (x - before) ** 2 * (-np.log1p(-bet) - bet) / 4
    centre, reach = weighted / bets, (log + penalty) / bets
    return max(centre - reach, 0), min(centre + reach, 1)


def seen(sequence: jm.streaming.ConfidenceSequence, *batches: Any, size: int) -> jm.Estimate:
    """After batches, each padded to one size: it is compiled once."""
    state = sequence.init()
    for batch in batches:
        values = np.concatenate(
            [np.asarray(batch, np.float32), np.full(size - len(batch), np.nan, np.float32)]
        )
        state = sequence.update(
            state, values, where=(np.arange(size) < len(batch)) & ~np.isnan(values)
        )
    return sequence.compute(state)


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_confidence_sequence_is_that_of_the_loop(level: float) -> None:
    x = np.random.default_rng(0).beta(2, 1, 300).astype(np.float32)
    batches = [np.insert(batch, [1, 2, len(batch)], np.nan) for batch in np.split(x, [7, 100, 230])]
    estimate = seen(jm.confidence_sequence(level), *batches, size=136)
    np.testing.assert_allclose((estimate.low, estimate.high), by_loop(x, level), rtol=1e-5)
    np.testing.assert_allclose(estimate.value, x.mean(), rtol=1e-6)
    np.testing.assert_allclose(estimate.standard_error, x.std(ddof=1) / np.sqrt(300), rtol=1e-5)


def test_confidence_sequence_of_differences_and_at_its_ends() -> None:
    sequence = jm.confidence_sequence(low=-1, high=1)
    estimate = sequence.compute(sequence.init())
    assert (float(estimate.low), float(estimate.high)) == (-1, 1)
    x = np.random.default_rng(0).integers(-1, 2, 500)
    batches = np.split(x, 20)
    scaled = seen(jm.confidence_sequence(), *((batch + 1) / 2 for batch in batches), size=25)
    np.testing.assert_allclose(seen(sequence, *batches, size=25).low, 2 * scaled.low - 1, rtol=1e-5)
    assert np.isnan(seen(sequence, [0.5, 1.5], size=25).low)
    decimal = jm.confidence_sequence(low=2.0, high=2.16)
    assert seen(decimal, [2.0, 2.16, 2.08], size=25).low == 2  # 2.16 is no more than 2.16
    state = sequence.update(sequence.init(), np.full(25, 1.5), where=np.arange(25) < 0)
    assert sequence.compute(state).high == 1


def test_confidence_sequence_of_lists_integers_and_no_mask() -> None:
    sequence = jm.confidence_sequence()
    states = [
        sequence.update(sequence.init(), values)
        for values in ([1, 0, 1], np.array([True, False, True]), [1.0, 0.0, 1.0])
    ]
    assert_same(states[0], states[1], rtol=0, atol=0)
    assert_same(states[0], states[2], rtol=0, atol=0)
    results = jax.tree.leaves((states[0], sequence.compute(states[0])))
    assert all(isinstance(x, jax.Array) for x in results)


@pytest.mark.parametrize(("ones", "n"), [(0, 1), (0, 900), (37, 50), (499.5, 900), (8e6, 1e7)])
def test_mixtures_are_the_roots_of_their_definition(ones: float, n: float) -> None:
    sequence = jm.confidence_sequence(0.9, low=-1, high=3, method="mixture")
    state = sequence.init()
    if n < 1000:
        values = np.append(np.ones(int(ones)), np.zeros(int(n - ones) + 1))[: int(n)]
        values[int(ones) :][: ones % 1 > 0] = ones % 1
        state = sequence.update(state, 4 * values - 1)
    else:
        million = np.repeat([3, -1], [800_000, 200_000])
        for _ in range(10):
            state = sequence.update(state, million)
    log_mixture = special.betaln(ones + 0.5, n - ones + 0.5) - np.log(np.pi)

    def excess(m: float) -> float:
        of_mean = special.xlogy(ones, m) + special.xlogy(n - ones, 1 - m)
        return float(log_mixture - of_mean - np.log(10))

    low = optimize.brentq(excess, 1e-9, ones / n) if ones else 0.0
    high = optimize.brentq(excess, ones / n, 1 - 1e-9)
    estimate = sequence.compute(state)
    np.testing.assert_allclose((estimate.low, estimate.high), (4 * low - 1, 4 * high - 1), 2e-6)
    np.testing.assert_array_equal(ends(sequence.compute(sequence.init())), (-1, 3))


def test_the_lower_end_of_a_mixture_near_zero() -> None:
    """The probability of no error keeps its digits although it is almost 1."""
    n, ones = 5_000_000, 2
    sequence = jm.confidence_sequence(method="mixture")
    values = np.zeros(n, np.float32)
    values[:ones] = 1

    def excess(m: float) -> float:
        of_mixture = special.betaln(ones + 0.5, n - ones + 0.5) - np.log(np.pi)
        return float(of_mixture - ones * np.log(m) - special.xlog1py(n - ones, -m) - np.log(20))

    low = optimize.brentq(excess, 1e-15, ones / n, xtol=1e-18)
    found = sequence.compute(sequence.update(sequence.init(), values))
    assert found.low == pytest.approx(low, rel=1e-4)


def test_nothing_moves_to_the_host() -> None:
    batch = jax.tree.map(jnp.asarray, FEW | {"where": np.ones(N, bool)})
    sequence = jm.confidence_sequence()
    own = jm.count_metrics({"half": lambda counts: jm.accuracy(counts) / 2}, num_classes=K)
    evaluator = jm.evaluator(own, *SMALL.accumulators)

    def run() -> Any:
        state = evaluator.merge(evaluator.update(evaluator.init(), **batch), evaluator.init())
        return evaluator.compute(state), sequence.compute(sequence.update(sequence.init(), right))

    right = batch["y_true"] == 1
    run()  # compiled
    with jax.transfer_guard("disallow"):
        results, _ = run()
    assert all(isinstance(x, float) for x in jm.to_python(results).values())


def test_bounds_of_an_area_are_not_logged_as_its_confidence_limits() -> None:
    area = jm.roc_auc(jm.score_histogram([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], edges=[0.38]))
    logged = jm.to_python({"roc_auc": area, "nested": [area]})
    assert [logged.pop(f"nested/0{x}") for x in ("", "/bin_low", "/bin_high")] == [*area]
    assert logged == {
        "roc_auc": area.value,
        "roc_auc/bin_low": area.low,
        "roc_auc/bin_high": area.high,
    }
    assert area.low < area.value < area.high


def test_to_python() -> None:
    assert jm.to_python({"a": [{"method": "delta"}], "b": None}) == {
        "a/0/method": "delta",
        "b": None,
    }
    assert jm.to_python({"a": {"b": jnp.arange(2)}, "c": (jnp.float32(1), 2)}) == {
        "a/b": [0.0, 1.0],
        "c/0": 1.0,
        "c/1": 2.0,
    }


def test_states_are_pickled_and_saved(tmp_path: Path) -> None:
    state = evaluated(EVALUATOR, ALL)
    copies = [pickle.loads(pickle.dumps(jax.device_get(state)))]
    jm.save_state(tmp_path / "state.npz", state)
    copies.append(jm.load_state(tmp_path / "state.npz"))
    for copy in copies:
        jax.tree.map(np.testing.assert_array_equal, copy, state)
        for again in (EVALUATOR.update(copy, **ALL), EVALUATOR.merge(copy, copy)):
            number = EVALUATOR.compute(again)["num_examples"]
            assert number == 2 * EVALUATOR.compute(state)["num_examples"]
    assert pickle.loads(pickle.dumps(SMALL)) == SMALL


def test_a_failing_save_leaves_the_old_file(tmp_path: Path) -> None:
    jm.save_state(tmp_path / "state.npz", STATE)
    with pytest.raises(TypeError, match="state has no known values, because JAX traces it"):
        jax.eval_shape(lambda state: jm.save_state(tmp_path / "state.npz", state), STATE)
    jm.load_state(tmp_path / "state.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


def test_files_that_hold_no_state(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for content in (b"", b"hello", b"PK\x03\x04broken"):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match=r"x\.npz: this file does not contain the state of an evaluator"
        ):
            jm.load_state(path)
    np.savez(path, a=np.ones(2))
    with pytest.raises(ValueError, match="does not contain the state of an evaluator"):
        jm.load_state(path)
    with path.open("wb") as file:
        np.save(file, np.ones(2))
    with pytest.raises(ValueError, match="does not contain the state of an evaluator"):
        jm.load_state(path)
    jm.save_state(path, evaluated(SMALL, FEW))
    with np.load(path) as npz:
        np.savez(path, **{k: x for k, x in npz.items() if k != "0/total"})
    with pytest.raises(ValueError, match="does not contain the state of an evaluator"):
        jm.load_state(path)
    for version, advice in ((1, "Evaluate again"), (4, "Install a newer version")):
        other: dict[str, Any] = {"version": np.asarray(version)}
        np.savez(path, **other)
        message = f"state of version {version}, but .* reads versions 2 and 3. {advice}"
        with pytest.raises(ValueError, match=message):
            jm.load_state(path)
    with pytest.raises(FileNotFoundError):
        jm.load_state(tmp_path / "none.npz")


@dataclass(frozen=True)
class ErrorsByClass:
    """A statistic of a user: of each class, how many examples, and the sum of a field."""

    name: str
    num_classes: int
    is_integer = False

    @property
    def shape(self) -> tuple[int, ...]:
        return 2, self.num_classes

    @property
    def fields(self) -> dict[str, jm.streaming.Kind]:
        return {"kind": jm.streaming.Kind.LABELS, self.name: jm.streaming.Kind.NUMBERS}

    def is_usable(self, batch: jm.streaming.Batch) -> jax.Array:
        return batch.labels("kind", self.num_classes) >= 0

    def table(
        self, batch: jm.streaming.Batch, weight: jax.Array | None, keep: jax.Array
    ) -> jax.Array:
        values = jnp.where(keep, batch.numbers(self.name), 0)
        weight = jnp.where(keep, jnp.ones_like(values) if weight is None else weight, 0)
        kinds = jax.nn.one_hot(batch.labels("kind", self.num_classes), self.num_classes)
        return jnp.matmul(jnp.stack([weight, weight * values], -2), kinds, precision="float32")


@dataclass(frozen=True)
class CountOfKinds:
    """A statistic of a user that counts exactly."""

    num_classes: int
    is_integer = True
    fields: ClassVar = {"kind": jm.streaming.Kind.LABELS}

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.num_classes,)

    def is_usable(self, batch: jm.streaming.Batch) -> None:
        return None

    def table(
        self, batch: jm.streaming.Batch, weight: jax.Array | None, keep: jax.Array
    ) -> jax.Array:
        kinds = batch.labels("kind", self.num_classes)
        ids = jnp.arange(self.num_classes, dtype=jnp.int32)
        return ((kinds == ids[:, None]) & keep).sum(-1, dtype=jnp.int32)


def own_evaluator() -> jm.streaming.Evaluator:
    errors = jm.streaming.Accumulator(
        (ErrorsByClass("loss", 3),), (("by_kind", lambda x: x[1] / x[0]),)
    )
    shares = jm.streaming.Accumulator((CountOfKinds(3),), (("shares", lambda x: x / x.sum()),))
    return jm.evaluator(shares, jm.poisson_bootstrap(errors, num_samples=16), jm.mean_of("loss"))


def test_statistics_of_a_user(tmp_path: Path) -> None:
    """In jit and scan, masked, merged, bootstrapped, saved and loaded; beside those of this
    package, which leave out the same examples.
    """
    evaluator = own_evaluator()
    rng = np.random.default_rng(0)
    kind = rng.integers(-1, 3, (6, 16)).astype(np.int32)
    batches = {
        "kind": jnp.asarray(kind),
        "loss": jnp.asarray(rng.normal(3, 1, (6, 16)), jnp.float32),
        "unit": jnp.arange(96, dtype=jnp.int32).reshape(6, 16),
    }
    step = lambda state, batch: (evaluator.update(state, **batch), None)
    first, last = (jax.tree.map(lambda x, s=s: x[s], batches) for s in (slice(4), slice(4, 6)))
    scanned, _ = jax.jit(lambda x: jax.lax.scan(step, evaluator.init(), x))(first)
    jm.save_state(tmp_path / "a.npz", scanned)
    loaded = jm.load_state(tmp_path / "a.npz", own_evaluator())
    other, _ = jax.lax.scan(step, evaluator.init(), last)
    results = evaluator.compute(evaluator.merge(loaded, other))

    loss, valid = np.asarray(batches["loss"]), kind >= 0
    means = [loss[kind == k].mean() for k in range(3)]
    np.testing.assert_allclose(results["by_kind"].value, means, rtol=1e-6)
    assert (results["by_kind"].low < results["by_kind"].high).all()
    np.testing.assert_allclose(results["loss"], loss[valid].mean(), rtol=1e-6)
    np.testing.assert_allclose(results["shares"], np.bincount(kind[valid]) / valid.sum(), rtol=1e-6)
    numbers = jm.to_python(results)
    assert (numbers["num_examples"], numbers["num_ignored"]) == (valid.sum(), (~valid).sum())
    assert total_of(scanned, CountOfKinds(3)).dtype == np.uint32


def test_a_file_knows_statistics_of_a_user_by_their_description(tmp_path: Path) -> None:
    """What does not have the evaluator can still add up, and save again."""
    evaluator = own_evaluator()
    batch = {"kind": np.arange(3), "loss": np.ones(3), "unit": np.arange(3)}
    state = evaluator.update(evaluator.init(), **batch)
    jm.save_state(tmp_path / "a.npz", state)
    unknown = jm.load_state(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"load_state\(path, evaluator\) reads statistics of your"):
        evaluator.compute(unknown)
    jm.save_state(tmp_path / "b.npz", merge_checked(unknown, jm.load_state(tmp_path / "a.npz")))
    both = jm.load_state(tmp_path / "b.npz", evaluator)
    assert evaluator.compute(both)["num_examples"] == 6
    assert both.statistics == state.statistics

    local = jm.streaming.Accumulator((partial_statistic(),), ())
    with pytest.raises(
        TypeError, match="A state can only be saved if each of its statistics is a dataclass"
    ):
        jm.save_state(tmp_path / "c.npz", jm.evaluator(local).init())
    wrong = replace(state, statistics=(CountOfKinds(3.5j),))  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"because the field num_classes of CountOfKinds\(.*\) has the type complex"
    ):
        jm.save_state(tmp_path / "c.npz", wrong)


def partial_statistic() -> Any:
    """One that is no dataclass, and whose table has not the shape that it says."""

    class Wrong:
        shape, fields, is_integer = (2,), {"loss": jm.streaming.Kind.NUMBERS}, False

        def is_usable(self, batch: jm.streaming.Batch) -> None:
            return None

        def table(self, batch: jm.streaming.Batch, weight: Any, keep: jax.Array) -> jax.Array:
            return jnp.zeros(3)

    return Wrong()


def test_a_table_has_the_shape_of_its_statistic() -> None:
    evaluator = jm.evaluator(jm.streaming.Accumulator((partial_statistic(),), ()))
    with pytest.raises(
        ValueError,
        match=r"must return a table of numbers of the shape \(2,\), which is the attribute shape of"
        r" this statistic, got a table of float32 of shape \(3,\)",
    ):
        evaluator.update(evaluator.init(), loss=np.ones(4))


def test_fields_are_of_the_kind_that_statistics_declare() -> None:
    """Whatever their names: numbers beyond int32 are no labels because they are called so."""
    evaluator = jm.evaluator(jm.mean_of("y_true_length"), jm.mean_of("logits_norm"))
    batch = {"y_true_length": np.array([2**40, 0]), "logits_norm": np.array([1.0, 3.0])}
    results = jm.to_python(evaluator.compute(evaluated(evaluator, batch)))
    assert (results["y_true_length"], results["logits_norm"]) == (2.0**39, 2.0)


def test_the_order_of_accumulators_does_not_matter_to_states() -> None:
    counts, loss = SMALL.accumulators
    state = evaluated(jm.evaluator(loss, counts), FEW)
    assert_same(SMALL.compute(state), SMALL.compute(evaluated(SMALL, FEW)), rtol=0, atol=0)


def test_merged_counts_never_wrap() -> None:
    with jax.default_device(jax.devices("cpu")[0]):  # others are not asked for their counts
        state = SMALL.init()
        half = replace(state, examples=jnp.full((2, 3), 2**31, jnp.uint32))
        merge_checked(half, state)
        with pytest.raises(ValueError, match=r"counts of 2\^63 or more"):
            merge_checked(half, half)


STATE = SMALL.init()
CALIBRATION = jm.evaluator(jm.calibration_metrics())
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: SMALL.update(STATE, y_true=FEW["y_true"], loss=FEW["loss"]),
        "must have the field y_pred, or the field logits or y_prob instead, but its fields are",
    ),
    (
        lambda: SMALL.update(STATE, **part(FEW, slice(3)), los=np.ones(3)),
        r"No accumulator uses 'los'\. The possible fields are [\w, ]+\.$",
    ),
    *(
        (
            lambda x=x: CALIBRATION.update(CALIBRATION.init(), y_true=FEW["y_true"], **x),
            "Scores of several classes need an accumulator with num_classes",
        )
        for x in ({"y_prob": np.ones((N, 4))}, {"logits": FEW["logits"]})
    ),
    (
        lambda: SMALL.update(STATE, **FEW | {"y_true": np.ones((N, 4), int)}),
        r"logits .* one-hot, pass their \.argmax\(-1\)\. .*\(multilabel\), .* num_groups=L, and as",
    ),
    (
        lambda: jax.jit(lambda state: jm.to_python(SMALL.compute(state)))(STATE),
        r"\w+ has no known values, because JAX traces it",
    ),
    (
        lambda: SMALL.update(STATE, **FEW | {"loss": np.float32(1)}),
        r"loss must have one number for each example, so its shape must be \(96,\),"
        r" like the shape of y_true",
    ),
    (
        lambda: SMALL.update(STATE, **FEW | {"logits": FEW["logits"][:, 1:]}),
        r"logits .* num_classes is 4, got an array of shape \(96, 3\)",
    ),
    (lambda: SMALL.update(STATE, **FEW | {"y_true": FEW["loss"]}), "y_true must hold class ids"),
    (
        lambda: SMALL.update(STATE, **FEW, where=np.ones(N, int)),
        "where must be an array of dtype bool, .* got dtype int64",
    ),
    (
        lambda: SMALL.update(STATE, **FEW, where=np.ones((N, 1), bool)),
        "where must have one number for each example",
    ),
    (
        lambda: WEIGHTED.update(WEIGHTED.init(), **ALL, sample_weight=np.ones(3)),
        "sample_weight must have one number for each example",
    ),
    (
        lambda: WEIGHTED.update(
            WEIGHTED.init(), **ALL, where=np.ones(N, bool), sample_weight=np.array([np.nan, 1, 1])
        ),
        "sample_weight must have one number for each example",
    ),
    (
        lambda: SMALL.update(STATE, **FEW | {"y_true": ["cat"] * N}),
        r"y_true must hold class ids of an integer or bool dtype, .*\[labels.index",
    ),
    (lambda: SMALL.update(STATE), "must have a field with one number for each example"),
    (
        lambda: SMALL.update(STATE, y_true=1, y_pred=1, loss=1.0),
        r"y_true must have shape \(..., n\), with one number for each example",
    ),
    (lambda: SMALL.update(EVALUATOR.init(), **FEW), "a state of another evaluator: it has"),
    (lambda: EVALUATOR.merge(EVALUATOR.init(), STATE), "a state of another evaluator: it lacks"),
    (lambda: SMALL.compute(jax.tree.map(lambda x: x[None], STATE)), "for a stack of states"),
    (
        lambda: jm.save_state("x.npz", jax.tree.map(lambda x: x[None], STATE)),
        "state is a stack of states",
    ),
    (lambda: SMALL.compute(3), "state must be an EvaluatorState"),  # type: ignore[arg-type]
    (lambda: jm.evaluator(), "at least one accumulator"),
    (
        lambda: jm.evaluator(jm.mean_of("x"), jm.mean_of("x", level=0.9)),
        "two results are named 'x'",
    ),
    (lambda: jm.evaluator(jm.mean_of("num_examples")), "two results are named 'num_examples'"),
    (lambda: jm.evaluator(jm.accuracy), "accumulators must be of type Accumulator"),  # type: ignore[arg-type]
    (lambda: jm.count_metrics([jm.accuracy], num_classes=3), "metrics must be a dict"),  # type: ignore[arg-type]
    (
        lambda: jm.count_metrics({"ece": jm.calibration_error}, num_classes=3),
        r"metrics\['ece'\] is a metric of scores, not of counts. Use calibration_metrics.",
    ),
    (
        lambda: jm.count_metrics({"accuracy": 3}, num_classes=3),  # type: ignore[dict-item]
        r"metrics\['accuracy'\] must be a function",
    ),
    (lambda: jm.mean_of(), "mean_of: names is empty"),
    (lambda: jm.mean_of("x", "where"), "mean_of: .* must not be 'where'"),
    (lambda: jm.mean_of(3), "mean_of: .* must be the name of a field"),  # type: ignore[arg-type]
    (lambda: jm.mean_of("x", groups=3, num_groups=3), "mean_of: .* must be the name of a field"),  # type: ignore[arg-type]
    (lambda: jm.mean_of("x", groups="kind"), "groups .* and num_groups .* must be passed together"),
    (lambda: jm.mean_of("x", num_groups=3), "groups .* and num_groups .* must be passed together"),
    (lambda: jm.mean_of("x", groups="kind", num_groups=0), "num_groups must be"),
    (lambda: jm.mean_of("x", weights="sample_weight"), "weights must not be"),
    (
        lambda: jm.count_metrics({}, num_classes=3, num_groups=2, one_vs_rest=True),
        "one_vs_rest=True cannot be combined with num_groups or method",
    ),
    (lambda: jm.count_metrics({}, num_classes=3, weighted=1), "weighted must be True or False"),  # type: ignore[arg-type]
    (lambda: jm.ranking_metrics(scale="log"), "scale must be"),  # type: ignore[arg-type]
    (lambda: jm.ranking_metrics(scale="logit", num_classes=3), 'needs scale="probability"'),
    (lambda: jm.ranking_metrics(scale="logit", num_bins=100), "num_bins must be a power of two"),
    (lambda: SMALL.update(STATE, **FEW, foo=None), "No accumulator uses 'foo'"),
    (lambda: jm.save_state("x.npz", {}), "state must be an EvaluatorState, got a dict"),  # type: ignore[arg-type]
    (
        lambda: jm.streaming.Accumulator((jm.accuracy,), ()),  # type: ignore[arg-type]
        "statistics must have the attributes and methods of jaxmetrics.streaming.Stati",
    ),
    (lambda: jm.mean_of("where"), "mean_of: .* must not be 'where'"),
    (lambda: jm.count_metrics({}, num_classes=3, method="delta"), "must be an interval method"),  # type: ignore[arg-type]
    (
        lambda: jm.poisson_bootstrap(jm.poisson_bootstrap(jm.mean_of("x"))),
        "accumulator must not have intervals already",
    ),
    (
        lambda: jm.poisson_bootstrap(jm.mean_of("x", level=0.9)),
        "accumulator must not have intervals already",
    ),
    (lambda: jm.poisson_bootstrap(SMALL), "accumulator must be an Accumulator, such as"),  # type: ignore[arg-type]
    (
        lambda: jm.poisson_bootstrap(jm.mean_of("x"), seed=0.5),  # type: ignore[arg-type]
        "seed must be a Python int that is at least 0",
    ),
    (
        lambda: jm.poisson_bootstrap(jm.mean_of("x"), seed=2**32),
        "seed must be a Python int that is at least 0",
    ),
    (lambda: jm.confidence_sequence(low=1, high=0), "low must be less than high"),
    (lambda: jm.confidence_sequence(1.5), "level must be"),
    (
        lambda: jm.confidence_sequence().update(STATE, [1.0]),  # type: ignore[arg-type]
        "state must be a ConfidenceState",
    ),
    (lambda: jm.confidence_sequence(method="x"), "method must be"),  # type: ignore[arg-type]
    (
        lambda: jm.confidence_sequence().update(jm.confidence_sequence().init(), 1.0),
        r"values and where must have the same shape \(n,\)",
    ),
]


@pytest.mark.parametrize(
    ("call", "message"), MISTAKES, ids=[message[:40] for _, message in MISTAKES]
)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_mistakes_are_named_at_trace_time() -> None:
    with pytest.raises(ValueError, match="No accumulator uses 'los'"):
        jax.eval_shape(lambda s: SMALL.update(s, los=jnp.ones(3)), STATE)
    with pytest.raises(ValueError, match="another evaluator"):
        jax.eval_shape(lambda s: SMALL.update(s, **FEW), EVALUATOR.init())


def test_rows_that_are_no_probabilities_are_invalid() -> None:
    evaluator = jm.evaluator(jm.calibration_metrics(num_classes=3))
    y_prob = np.array([[0.5, 0.25, 0.25], [1.0, 0.5, 0.5], [0.25, 0.5, 0.25], [0.1, 0.1, 0.2]])
    result = evaluator.compute(
        evaluator.update(evaluator.init(), y_true=np.array([0, 1, 2, 2]), y_prob=y_prob)
    )
    assert (result["num_examples"], result["num_invalid"]) == (2, 2)
