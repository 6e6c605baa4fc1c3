"""Eight devices give what one gives, with no collective written by hand."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import jaxmetrics as jm
from jaxmetrics._places import chunks, compilation
from jaxmetrics.betas import _convolutions
from tests.cases import COUNTERS, LOSSES, SCORERS, N


@pytest.fixture
def mesh() -> Mesh:
    return Mesh(np.array(jax.devices("cpu")), ("data",))


@pytest.fixture
def explicit() -> Mesh:
    """As `jax.make_mesh` makes it by default in recent versions of JAX."""
    return jax.make_mesh(
        (8,), ("data",), axis_types=(AxisType.Explicit,), devices=jax.devices("cpu")
    )


def spread(x: np.ndarray, axis: int, mesh: Mesh) -> jax.Array:
    spec: list[str | None] = [None] * x.ndim
    spec[axis] = "data"
    return jax.device_put(x, NamedSharding(mesh, PartitionSpec(*spec)))


@pytest.mark.parametrize("name", COUNTERS)
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_sharded_examples(name: str, jit: bool, mesh: Mesh) -> None:
    assert mesh.size == 8
    row = COUNTERS[name]
    sharded = [spread(x, axis, mesh) for x, axis in zip(row.ordinary, row.examples, strict=True)]
    call = jax.jit(row.call) if jit else row.call
    weights = np.linspace(0, 2, N, dtype=np.float32)
    np.testing.assert_allclose(call(*sharded), row.call(*row.ordinary), rtol=1e-6)
    weighted = call(*sharded, sample_weight=spread(weights, 0, mesh))
    np.testing.assert_allclose(weighted, row.call(*row.ordinary, sample_weight=weights), rtol=1e-5)


@pytest.mark.parametrize("name", COUNTERS | SCORERS)
def test_sharded_examples_on_explicit_axes(name: str, explicit: Mesh) -> None:
    row = (COUNTERS | SCORERS)[name]
    sharded = [
        spread(x, axis, explicit) for x, axis in zip(row.ordinary, row.examples, strict=True)
    ]
    results = jax.tree.leaves(jax.jit(row.call)(*sharded)), jax.tree.leaves(row.call(*row.ordinary))
    for result, expected in zip(*results, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_normalized_tables_stay_on_their_devices(explicit: Mesh) -> None:
    tables = spread(np.arange(72.0).reshape(8, 3, 3) + 1, 0, explicit)
    assert jm.normalize(tables).sharding == tables.sharding


@pytest.mark.parametrize("name", [name for name, row in LOSSES.items() if row.examples])
def test_eager_losses_on_explicit_axes(name: str, explicit: Mesh) -> None:
    row = LOSSES[name]
    sharded = [
        spread(x, axis, explicit) for x, axis in zip(row.ordinary, row.examples, strict=True)
    ]
    where = np.arange(N) % 3 > 0
    result = row.call(*sharded, where=spread(where, 0, explicit))
    expected = row.call(*row.ordinary, where=where)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=max(row.float32, 1e-6))


@pytest.mark.skipif(
    not hasattr(jax, "set_mesh"),
    reason="gradients on explicit axes need jax.set_mesh, which JAX 0.7 lacks",
)
def test_gradients_of_losses_on_explicit_axes(explicit: Mesh) -> None:
    rng = np.random.default_rng(0)
    logits, labels = (
        rng.normal(size=(16, 3)).astype(np.float32),
        rng.integers(-1, 3, 16).astype(np.int32),
    )
    losses = [
        lambda z, y: jm.cross_entropy(
            z, y, label_smoothing=0.1, class_weights=[1.0, 2.0, 3.0]
        ).sum(),
        lambda z, y: jm.metric_loss(jm.macro(jm.f1))(z, y),
        lambda z, y: jm.linear_cross_entropy(
            z, np.linspace(0, 1, 15, dtype=np.float32).reshape(3, 5), y
        ).sum(),
    ]
    for loss in losses:
        expected = jax.grad(loss)(jnp.asarray(logits), labels)
        with jax.set_mesh(explicit):
            gradient = jax.jit(jax.grad(loss))(
                spread(logits, 0, explicit), spread(labels, 0, explicit)
            )
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)
        assert gradient.sharding.spec == PartitionSpec("data", None)


def test_sharded_batch_of_matrices(mesh: Mesh) -> None:
    counts = np.random.default_rng(0).integers(0, 50, (16, 4, 4))
    sharded = jax.jit(jm.macro(jm.f1))(spread(counts.astype(np.int32), 0, mesh))
    np.testing.assert_allclose(sharded, jm.macro(jm.f1)(counts), rtol=1e-6)
    assert len(sharded.sharding.device_set) == 8


@pytest.mark.parametrize("name", ["matrices", "intervals", "samples", "losses"])
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_batches_stay_sharded_along_explicit_axes(name: str, jit: bool, explicit: Mesh) -> None:
    counts = np.random.default_rng(0).integers(0, 50, (16, 4, 4)).astype(np.float32)
    logits = np.random.default_rng(1).normal(size=(16, 3, 5)).astype(np.float32)
    labels = np.arange(48).reshape(16, 3) % 5
    cases: dict[str, tuple[Callable[..., Any], list[np.ndarray], int]] = {
        "matrices": (jm.macro(jm.f1), [counts], 0),
        "intervals": (lambda x: jm.interval(jm.accuracy, x, method=jm.Delta()).low, [counts], 0),
        "samples": (lambda x: jm.bootstrap_counts(0, x, num_samples=6), [counts], 1),
        "losses": (jm.cross_entropy, [logits, labels], 0),
    }
    call, arrays, axis = cases[name]
    sharded = [spread(x, 0, explicit) for x in arrays]
    result = (jax.jit(call) if jit else call)(*sharded)
    expected = call(*map(jnp.asarray, arrays))
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    assert result.sharding.spec[axis] == "data"
    assert "all-gather" not in str(jax.jit(call).lower(*sharded).compile().as_text())


def _matrix_power(x: jax.Array) -> jax.Array:
    return jnp.linalg.matrix_power(x, 9).sum((-1, -2))


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda x: chunks.map_chunks(_matrix_power, 16, x), (128, 12, 12)),
        (compilation.promoting(_convolutions.first_distribution), (128, 3, 2)),
    ],
    ids=["chunks", "posteriors"],
)
def test_each_device_computes_its_part_of_a_chunk(
    call: Any, shape: tuple[int, ...], mesh: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_convolutions, "_NUMBERS_AT_ONCE", 2**13)

    def flops(rows: jax.Array) -> float:
        program: Any = jax.jit(call).lower(rows).compile()
        assert "while" in program.as_text()
        assert "all-gather" not in program.as_text()
        return float(program.cost_analysis()["flops"])

    rows = np.random.default_rng(0).uniform(5, 90, shape).astype(np.float32)
    assert flops(spread(rows, 0, mesh)) < 1.2 / 8 * flops(jnp.asarray(rows))


@pytest.mark.parametrize("size", [1, 16, 17, 31, 32, 48])
@pytest.mark.parametrize("are_neighbours", [False, True])
def test_rows_keep_their_places(size: int, are_neighbours: bool) -> None:
    rows = jnp.arange(3 * size).reshape(size, 3)
    keys = jax.random.split(jax.random.key(0), size)
    result = chunks.map_chunks(
        lambda x, key: {"sum": x.sum(-1), "key": key}, 16, rows, keys, are_neighbours=are_neighbours
    )
    np.testing.assert_array_equal(result["sum"], np.asarray(rows).sum(-1))
    assert (result["key"] == keys).all()


@pytest.mark.skipif(not hasattr(jax, "set_mesh"), reason="JAX 0.7 lacks jax.set_mesh")
def test_axes_of_classes_are_no_axes_of_examples(explicit: Mesh) -> None:
    """As many classes, groups and bins as examples in a batch."""
    evaluator = jm.evaluator(
        jm.count_metrics({"accuracy": jm.accuracy}, num_classes=8),
        jm.mean_of("loss", groups="group", num_groups=8),
        jm.calibration_metrics(num_bins=8, num_classes=8),
    )
    y = spread(np.arange(16).reshape(2, 8) % 8, 1, explicit)
    loss = spread(np.ones((2, 8), np.float32), 1, explicit)
    prob = spread(np.full((2, 8, 8), 1 / 8, np.float32), 1, explicit)

    def step(state: Any, batch: Any) -> tuple[Any, None]:
        y, loss, prob = batch
        new = evaluator.update(state, y_true=y, y_pred=y, loss=loss, group=y, y_prob=prob)
        return new, None

    with jax.set_mesh(explicit):
        state, _ = jax.lax.scan(step, evaluator.init(), (y, loss, prob))
        assert evaluator.compute(state)["accuracy"] == 1
        counts: Any = jm.confusion_matrix(y[0], y[0], num_classes=8)
        batches: Any = jm.confusion_matrix(y.T, y.T, num_classes=8)
    assert counts.sharding.spec == PartitionSpec(None, None)
    assert batches.sharding.spec == PartitionSpec("data", None, None)
