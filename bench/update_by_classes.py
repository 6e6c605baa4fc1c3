"""The time of an evaluator's update should depend on the batch, not on the number of classes."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from bench.harness import LIMIT, Contender, Results, limit, measure, publish_times

BATCH = 128
STEPS = 20
CLASSES = (10, 100, 1000, 3000)


def donated(update: Callable[..., Any], state: Any, *batch: jax.Array) -> Contender:
    """Updates one after the other, each of which may overwrite the state before."""
    jitted, states = jax.jit(update, donate_argnums=0), [state]

    def run() -> Any:
        state = states.pop()
        for _ in range(STEPS):
            state = jitted(state, *batch)
        states.append(state)
        # The state itself is donated by the next run.
        return jax.tree.map(lambda x: x[(0,) * x.ndim], state)

    return run


def updates(k: int) -> Results:
    rng = np.random.default_rng(0)
    batch = [jnp.asarray(rng.integers(0, k, BATCH), jnp.int32) for _ in range(2)]
    metrics = {"accuracy": jm.accuracy}
    kinds: dict[str, dict[str, Any]] = {
        "jaxmetrics": {},
        "one_vs_rest=True": {"one_vs_rest": True},
        "weighted=True": {"weighted": True},
    }
    evaluators = {
        name: jm.evaluator(jm.count_metrics(metrics, num_classes=k, **options))
        for name, options in kinds.items()
    }

    def of(evaluator: jm.streaming.Evaluator) -> Contender:
        def update(state: Any, y: jax.Array, p: jax.Array) -> Any:
            return evaluator.update(state, y_true=y, y_pred=p)

        return donated(update, evaluator.init(), *batch)

    def by_hand(counts: jax.Array, y: jax.Array, p: jax.Array) -> jax.Array:
        return counts.at[y, p].add(1)

    contenders = {name: of(x) for name, x in evaluators.items()}
    contenders["by hand"] = donated(by_hand, jnp.zeros((k, k), jnp.int32), *batch)
    results = measure(contenders, factors=dict.fromkeys(contenders, 1 / STEPS))
    return results | {LIMIT: limit(nbytes=2 * 4 * BATCH)}


def main() -> None:
    sweep = {k: updates(k) for k in CLASSES}
    publish_times(
        "update_by_classes",
        "an update of 128 examples",
        {"classes": sweep},
        {f"{k:,} classes": sweep[k] for k in CLASSES},
        f"An update adds {BATCH} examples to the state, which is donated. The row `by hand` is one"
        " scatter into an int32 matrix, without checks. With `one_vs_rest=True` the state has three"
        " numbers for each class. With `weighted=True` the time grows with the matrix. The row"
        " `limit` is the time for reading the labels once.",
        per_second=1e6,
    )


if __name__ == "__main__":
    main()
