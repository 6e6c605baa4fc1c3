"""What holds for every public function: the invariants, run over the tables of cases.py."""

import functools
import pickle
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import jaxmetrics as jm
from jaxmetrics.metrics.averages import Average
from tests import cases
from tests.cases import COUNTERS, METRICS, OTHERS, SCORERS, Counter, K, N, matrices_of

SMOOTH = [name for name, metric in METRICS.items() if metric.smooth]


def test_every_public_name_is_in_a_table() -> None:
    tables = {name.split()[0] for name in (*METRICS, *SCORERS)} | set(COUNTERS) | set(OTHERS)
    public = {name for name in vars(jm) if not name.startswith("_") and callable(getattr(jm, name))}
    assert public == tables


def close(actual: Any, expected: Any, x64: bool = False) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-12 if x64 else 1e-6, atol=1e-13 if x64 else 1e-6)


def batch_of(name: str) -> jax.Array:
    counts = list(matrices_of(METRICS[name]).values())
    return jnp.asarray(np.stack([*counts, counts[0].swapaxes(-1, -2)]), jnp.float32)


@pytest.mark.parametrize("name", METRICS)
def test_metric_under_batch_vmap_jit_and_dtypes(name: str, x64: bool) -> None:
    call, batch = METRICS[name].call, batch_of(name)
    one_by_one = np.stack([call(counts) for counts in batch])
    expected_dtype = np.float64 if x64 else np.float32
    pairs = batch.reshape(2, -1, *batch.shape[1:])
    for result in (call(batch), jax.vmap(call)(batch), jax.jit(call)(batch), call(pairs).reshape(one_by_one.shape)):
        assert result.dtype == expected_dtype
        close(result, one_by_one, x64)
    assert call(batch[0].astype(jnp.bfloat16)).dtype == expected_dtype
    close(call(np.asarray(batch[0]).astype(np.int64)), one_by_one[0], x64)
    close(call(batch[0].astype(jnp.int32)), one_by_one[0], x64)
    close(call(np.asarray(batch[0]).tolist()), one_by_one[0], x64)


@pytest.mark.parametrize("name", SMOOTH)
def test_metric_gradients_are_finite(name: str) -> None:
    call = METRICS[name].call
    gradient = jax.vmap(jax.grad(lambda c: jnp.nansum(call(c))))(batch_of(name))
    assert np.isfinite(gradient).all(), gradient


@pytest.mark.parametrize("name", SMOOTH)
def test_metric_gradients_equal_finite_differences(name: str) -> None:
    metric = METRICS[name]
    jax.config.update("jax_enable_x64", True)
    try:
        counts = np.asarray(matrices_of(metric)["ordinary"], float) + 0.5
        jax.test_util.check_grads(metric.call, (counts,), order=1, modes=["rev"], rtol=1e-5, atol=1e-7)
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if isinstance(metric.call, Average)])
def test_averages_pickle(name: str) -> None:
    assert pickle.loads(pickle.dumps(METRICS[name].call)) == METRICS[name].call


def shape_of(name: str) -> tuple[int, ...]:
    return next(iter(matrices_of(METRICS[name]).values())).shape


@pytest.mark.parametrize("name", METRICS)
@given(data=st.data())
def test_metric_symmetries(name: str, data: st.DataObject) -> None:
    """Scaling, reordering the classes and adding a class that does not occur change nothing, where promised."""
    metric, shape = METRICS[name], shape_of(name)
    counts = data.draw(hnp.arrays(np.int32, shape, elements=st.one_of(st.just(0), st.integers(0, 30))))
    assume(counts.any())  # means of no class: there is nothing to be symmetric about
    value = np.asarray(_jitted(metric.call)(counts))
    if metric.scale_free:
        close(_jitted(metric.call)(counts * 7), value)
    if metric.any_class_order:
        order = data.draw(st.permutations(range(shape[-1])))
        reordered = _jitted(metric.call)(counts[..., order, :][..., order])
        close(reordered, value if metric.output == "number" else value[..., order])
    if metric.ignores_absent_classes:
        padding = [(0, 0)] * (counts.ndim - 2) + [(0, 1), (0, 1)]
        padded = np.asarray(_jitted(metric.call)(np.pad(counts, padding)))
        close(padded if metric.output == "number" else padded[..., :-1], value)


_jitted = functools.cache(jax.jit)


def example_axis_first(counter: Counter) -> list[np.ndarray]:
    return [np.moveaxis(x, axis, 0) for x, axis in zip(counter.examples, counter.axis, strict=True)]


def restored(counter: Counter, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [np.moveaxis(x, 0, axis) for x, axis in zip(arrays, counter.axis, strict=True)]


def take(counter: Counter, rows: np.ndarray) -> list[np.ndarray]:
    return restored(counter, [x[rows] for x in example_axis_first(counter)])


@pytest.mark.parametrize("name", COUNTERS)
def test_counts_under_batch_vmap_and_jit(name: str, x64: bool) -> None:
    counter = COUNTERS[name]
    batch = [np.stack([x, np.roll(x, 5, axis)]) for x, axis in zip(counter.examples, counter.axis, strict=True)]
    one_by_one = np.stack([counter.call(*(x[i] for x in batch)) for i in range(2)])
    for result in (counter.call(*batch), jax.vmap(counter.call)(*map(jnp.asarray, batch)), jax.jit(counter.call)(*batch)):
        assert result.dtype == (jnp.int32 if name != "soft_confusion_matrix" else jnp.float64 if x64 else jnp.float32)
        close(result, one_by_one, x64)
    first_alone = [batch[0][0], *batch[1:]]  # (n,) against (2, n)
    expected = np.stack([counter.call(batch[0][0], *(x[i] for x in batch[1:])) for i in range(2)])
    close(counter.call(*first_alone), expected, x64)


@pytest.mark.parametrize("name", COUNTERS)
@given(data=st.data())
def test_counts_add_up(name: str, data: st.DataObject) -> None:
    """Order and split of the examples do not matter, masked and weightless rows are absent, weight 2 is the row twice."""
    counter = COUNTERS[name]
    call = _jitted(counter.call)
    weighted = _jitted_with(counter.call, "sample_weight")
    masked = _jitted_with(counter.call, "where")
    everything = np.asarray(call(*counter.examples))

    order = np.array(data.draw(st.permutations(range(N))))
    close(call(*take(counter, order)), everything)

    halves = order[: N // 2], order[N // 2 :]
    parts = [np.asarray(call(*take(counter, rows))) for rows in halves]
    close(parts[0] + parts[1], everything)

    in_first = np.zeros(N, bool)
    in_first[halves[0]] = True
    close(masked(in_first, *counter.examples), parts[0])
    close(weighted(in_first.astype(np.float32), *counter.examples), parts[0])
    close(weighted(in_first.astype(np.float32) + 1, *counter.examples), everything + parts[0])
    close(weighted(np.full(N, 0.5, np.float32), *counter.examples), everything / 2)


@functools.cache
def _jitted_with(call: Callable[..., Any], option: str) -> Callable[..., Any]:
    return jax.jit(lambda value, *arrays: call(*arrays, **{option: value}))


@pytest.mark.parametrize("name", COUNTERS)
def test_masked_values_do_not_matter(name: str) -> None:
    counter = COUNTERS[name]
    keep = np.arange(N) % 3 != 0
    poisoned = []
    for x in example_axis_first(counter):
        y = x.copy()
        y[~keep] = np.nan if x.dtype.kind == "f" else 1
        poisoned.append(y)
    close(counter.call(*restored(counter, poisoned), where=keep), counter.call(*take(counter, np.flatnonzero(keep))))
    weights = np.where(keep, 1.0, np.nan).astype(np.float32)
    close(
        counter.call(*restored(counter, poisoned), where=keep, sample_weight=weights),
        counter.call(*take(counter, np.flatnonzero(keep))),
    )
    close(
        counter.call(*restored(counter, poisoned), sample_weight=keep.astype(np.float32)),
        counter.call(*counter.examples, where=keep),
    )


@pytest.mark.parametrize("name", COUNTERS)
def test_counts_by_group(name: str) -> None:
    counter = COUNTERS[name]
    groups = np.arange(N, dtype=np.int8) % 4 - 1  # -1 belongs to no group
    by_group = np.asarray(counter.call(*counter.examples, groups=groups, num_groups=3))
    each = [np.asarray(counter.call(*take(counter, np.flatnonzero(groups == g)))) for g in range(3)]
    batched = ("multilabel_confusion_matrix", "confusion_matrix_at_thresholds")  # labels and thresholds are batch
    close(by_group, np.stack(each, 1 if name in batched else 0))


@pytest.mark.parametrize("name", COUNTERS)
def test_gradient_with_respect_to_weights(name: str) -> None:
    """The gradient of a cell with respect to a weight is what the example adds to that cell."""
    counter = COUNTERS[name]

    def first_moment(weights: jax.Array) -> jax.Array:
        counts = counter.call(*counter.examples, sample_weight=weights)
        return (counts * jnp.arange(counts.size, dtype=jnp.float32).reshape(counts.shape)).sum()

    weights = jnp.where(jnp.arange(N) % 5 == 0, 0.0, 1.0)
    each = [first_moment(jnp.zeros(N).at[i].set(1.0)) for i in range(N)]
    np.testing.assert_allclose(jax.grad(first_moment)(weights), np.array(each), rtol=1e-4)


def all_close(actual: Any, expected: Any, rtol: float = 1e-5) -> None:
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_under_batch_vmap_and_jit(name: str) -> None:
    scorer = SCORERS[name]
    batch = [np.stack([x, np.roll(x, 5, axis)]) for x, axis in zip(scorer.examples, scorer.axis, strict=True)]
    batch[1] = np.stack([batch[1][0], batch[1][0]])  # truth and scores must not move together
    one_by_one = jax.tree.map(lambda *x: jnp.stack(x), *(scorer.call(*(x[i] for x in batch)) for i in range(2)))
    assert all(x.dtype in (jnp.float32, jnp.int32) for x in jax.tree.leaves(one_by_one))
    all_close(scorer.call(*batch), one_by_one)
    all_close(scorer.call(batch[0], batch[1][0]), one_by_one)  # (2, n) against (n,)
    all_close(jax.jit(jax.vmap(scorer.call))(*map(jnp.asarray, batch)), one_by_one)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_of_examples_that_are_absent_or_twice(name: str) -> None:
    """Order does not matter, masked and weightless rows are absent, whatever they hold, weight 2 is the row twice."""
    scorer = SCORERS[name]
    everything = scorer.call(*scorer.examples)
    all_close(scorer.call(*take(scorer, np.random.default_rng(0).permutation(N))), everything)
    keep = np.arange(N) % 3 != 0
    absent = scorer.call(*take(scorer, np.flatnonzero(keep)))
    poisoned = [np.where(keep.reshape(-1, *(1,) * (x.ndim - 1)), x, np.nan if x.dtype.kind == "f" else 1).astype(x.dtype)
                for x in example_axis_first(scorer)]  # fmt: skip
    all_close(scorer.call(*restored(scorer, poisoned), where=keep), absent)
    all_close(scorer.call(*restored(scorer, poisoned), sample_weight=keep.astype(np.float32)), absent)
    weights = np.where(keep, 1, np.nan).astype(np.float32)
    all_close(scorer.call(*restored(scorer, poisoned), sample_weight=weights, where=keep), absent)
    twice = scorer.call(*take(scorer, np.repeat(np.arange(N), keep + 1)))
    all_close(scorer.call(*scorer.examples, sample_weight=keep + 1), twice)


@pytest.mark.parametrize("name", SCORERS)
def test_scorers_of_nothing_and_of_nan(name: str) -> None:
    scorer = SCORERS[name]
    if name in ("score_histogram", "calibration_bins"):  # sums: of nothing 0
        assert not np.any(scorer.call(*(x[:0] for x in scorer.examples)))
        return
    for nothing in (scorer.call(*scorer.examples, where=np.zeros(N, bool)), scorer.call(*(x[:0] for x in scorer.examples))):
        first = np.asarray(jax.tree.leaves(nothing)[0])
        assert np.isnan(first).all() or (name in THRESHOLDS and (first <= 1).all()), nothing
    if scorer.examples[1].dtype.kind == "f":
        nan = scorer.call(scorer.examples[0], np.full_like(scorer.examples[1], np.nan))
        assert np.isnan(jax.tree.leaves(nan)[0]).all(), nan


THRESHOLDS = ("best_threshold", "recall_at_precision", "precision_at_recall")  # +inf is one also without examples


def test_soft_counts_of_certain_predictions_are_counts() -> None:
    counter = COUNTERS["confusion_matrix"]
    one_hot = jax.nn.one_hot(counter.examples[1], K)  # -1 becomes a row of zeros
    close(jm.soft_confusion_matrix(counter.examples[0], one_hot), counter.call(*counter.examples))


def test_a_smooth_metric_of_soft_counts_is_a_loss() -> None:
    y_true, y_prob = cases.COUNTERS["soft_confusion_matrix"].examples
    gradient = jax.grad(lambda p: jm.macro(jm.f1)(jm.soft_confusion_matrix(y_true, p)))(jnp.asarray(y_prob))
    assert np.isfinite(gradient).all()
    assert (np.asarray(gradient)[y_true < 0] == 0).all()
    assert np.abs(gradient).max() > 0


def test_gradients_of_an_almost_absent_class_are_finite() -> None:
    """A soft count of 1e-22 has a square that is 0 in float32."""

    def loss(logits: jax.Array) -> jax.Array:
        counts = jm.soft_confusion_matrix([0, 1], jax.nn.softmax(logits))
        return sum(jm.macro(rate)(counts) for rate in (jm.f1, jm.precision, jm.jaccard)) + jm.matthews_corrcoef(counts)

    for logit in (-20.0, -40.0, -45.0, -50.0, -60.0, -90.0):
        assert np.isfinite(jax.grad(loss)(jnp.array([[0.0, 0.0, logit]] * 2))).all(), logit


def test_masked_nan_reaches_no_gradient() -> None:
    probs = jnp.array([[0.5, 0.5], [jnp.nan, jnp.nan]])
    weights = jnp.array([1.0, jnp.nan])

    def total(probs: jax.Array, weights: jax.Array, y_true: list[int], where: list[bool]) -> jax.Array:
        return jm.soft_confusion_matrix(y_true, probs, sample_weight=weights, where=where).sum()

    for y_true, where in (([0, 1], [True, False]), ([0, -1], [True, True])):
        by_probs, by_weights = jax.grad(total, argnums=(0, 1))(probs, weights, y_true, where)
        np.testing.assert_array_equal(by_probs, [[1, 1], [0, 0]])
        np.testing.assert_array_equal(by_weights, [1, 0])


def test_counts_in_a_scan() -> None:
    y_true, y_pred = (jnp.asarray(x).reshape(6, 8) for x in COUNTERS["confusion_matrix"].examples)

    def step(total: jax.Array, batch: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
        return total + jm.confusion_matrix(*batch, num_classes=K), None

    total, _ = jax.lax.scan(step, jnp.zeros((K, K), jnp.int32), (y_true, y_pred))
    close(total, jm.confusion_matrix(y_true.ravel(), y_pred.ravel(), num_classes=K))
