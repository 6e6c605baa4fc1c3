"""Eight devices give what one gives, with no collective written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import jaxmetrics as jm
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
