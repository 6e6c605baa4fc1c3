"""The examples in notebooks/training_loops, each run as a newcomer would; states that go to disk
and come back.
"""

import importlib
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import jaxmetrics as jm

FOLDER = Path(__file__).parents[1] / "notebooks" / "training_loops"
TEST_SIZE = 899  # of the 1797 digits; no multiple of a batch


@pytest.fixture
def as_a_script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The examples find `digits` beside them; what they import need not follow the strict rules for
    ranks and dtypes.
    """
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # before importorskip imports Keras
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))  # where it writes its settings
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def need(*libraries: str) -> None:
    for library in libraries:
        pytest.importorskip(library, reason=f"{library} is in the extra 'loops'")


def check(results: dict[str, float]) -> None:
    assert all(type(x) is float for x in results.values())
    assert results["num_examples"] == TEST_SIZE
    assert results["num_ignored"] == 0
    assert results["accuracy"] > 0.8
    assert results["accuracy"] * TEST_SIZE == pytest.approx(
        round(results["accuracy"] * TEST_SIZE), abs=1e-3
    )
    assert 0 < results["loss"] < 1
    for name in ("accuracy", "macro_f1"):
        assert results[f"{name}/low"] < results[name] < results[f"{name}/high"]


@pytest.mark.usefixtures("as_a_script")
def test_batches_hold_every_example_once() -> None:
    digits = importlib.import_module("digits")
    _, test = digits.load(0)
    stack = digits.in_batches(test, 128)
    assert stack.images.shape == (8, 128, 64)
    assert stack.where.sum() == len(test.labels) == TEST_SIZE
    np.testing.assert_array_equal(stack.images[stack.where], test.images)
    np.testing.assert_array_equal(stack.labels[stack.where], test.labels)


@pytest.mark.usefixtures("as_a_script")
def test_optax_loop() -> None:
    need("optax")
    results = importlib.import_module("optax_loop").train(num_epochs=3)
    check(results)
    assert results["lead/low"] <= results["lead"] <= results["lead/high"]
    assert results["lead/low"] > 0
    assert results["last_is_better"] == 1


@pytest.mark.usefixtures("as_a_script")
def test_flax_nnx_loop() -> None:
    need("optax", "flax")
    check(importlib.import_module("flax_nnx_loop").train(num_epochs=2))


@pytest.mark.usefixtures("as_a_script")
def test_equinox_loop() -> None:
    need("optax", "equinox")
    check(importlib.import_module("equinox_loop").train(num_epochs=2))


@pytest.mark.usefixtures("as_a_script")
def test_keras_loop() -> None:
    need("keras")
    check(importlib.import_module("keras_loop").train(num_epochs=2))


EVALUATOR = jm.evaluator(
    jm.count_metrics({"accuracy": jm.accuracy}, num_classes=10),
    jm.mean_of("loss"),
    jm.poisson_bootstrap(jm.mean_of("error"), num_samples=5),
)


def updated(state: Any, seed: int) -> Any:
    y_true, y_pred, unit = jax.random.randint(jax.random.key(seed), (3, 20), 0, 10)
    loss = jax.random.uniform(jax.random.key(seed), (20,))
    return EVALUATOR.update(
        state, y_true=y_true, y_pred=y_pred, unit=unit, loss=loss, error=loss**2
    )


def check_the_same(state: Any, other: Any) -> None:
    """Now, and after a batch more, before which `update` compares structure, shapes and dtypes."""
    for a, b in ((state, other), (updated(state, 1), updated(other, 1))):
        jax.tree.map(np.testing.assert_array_equal, a, b)


def test_a_state_goes_through_orbax(tmp_path: Path) -> None:
    need("orbax.checkpoint")
    checkpoints = importlib.import_module("orbax.checkpoint")
    state = updated(EVALUATOR.init(), 0)
    with checkpoints.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", state)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(tmp_path / "state", EVALUATOR.init())
    check_the_same(restored, state)


def test_a_state_goes_through_pickle() -> None:
    state = updated(EVALUATOR.init(), 0)
    check_the_same(pickle.loads(pickle.dumps(state)), state)
