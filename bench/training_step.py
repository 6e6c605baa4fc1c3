"""Accuracy, macro precision, recall and F1 and the matrix at every training step, beside other
libraries and code by hand.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import metrax
import numpy as np
import optax
import torch
import torcheval.metrics
import torchmetrics
from clu import metrics as clu_metrics

import jaxmetrics as jm
from bench.harness import (
    LIMIT,
    Contender,
    Results,
    bandwidth_in_words,
    limit,
    measure,
    publish_times,
    rate_in_words,
)

K = 10
STEPS = 100
BATCHES = (100, 1000, 10_000)
IMAGES = (10, 100, 1000)  # in a batch of the training step
METRICS = {
    "accuracy": jm.accuracy,
    "precision": jm.macro(jm.precision),
    "recall": jm.macro(jm.recall),
    "f1": jm.macro(jm.f1),
    "counts": lambda counts: counts,
}
EVALUATOR = jm.evaluator(jm.count_metrics(METRICS, num_classes=K))


def by_hand(counts: jax.Array, logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Argmax and scatter, without a check: labels out of range go astray, and a cell ends at
    2^31.
    """
    return counts.at[labels, logits.argmax(-1)].add(1)


def ours(state: Any, logits: jax.Array, labels: jax.Array) -> Any:
    return EVALUATOR.update(state, y_true=labels, logits=logits)


def chain(update: Callable[..., Any], start: Any, *batch: jax.Array) -> Contender:
    """Updates one after the other, as in a loop, which waits for the last one only."""

    def run() -> Any:
        state = start
        for _ in range(STEPS):
            state = update(state, *batch)
        return state

    return run


def updates(logits: np.ndarray, labels: np.ndarray) -> dict[str, Contender]:
    """A hundred updates of each library, with what it can of the five."""
    z, y = jnp.asarray(logits), jnp.asarray(labels)
    tensor, targets = torch.from_numpy(logits), torch.from_numpy(labels).long()

    counts, state = jnp.zeros((K, K), jnp.int32), EVALUATOR.init()
    update_by_hand, update = jax.jit(by_hand), jax.jit(ours)

    options: dict[str, Any] = {"num_classes": K, "average": "macro"}
    torchmetrics_ = torchmetrics.MetricCollection(
        {
            "accuracy": torchmetrics.classification.MulticlassAccuracy(K, average="micro"),
            "precision": torchmetrics.classification.MulticlassPrecision(**options),
            "recall": torchmetrics.classification.MulticlassRecall(**options),
            "f1": torchmetrics.classification.MulticlassF1Score(**options),
            "matrix": torchmetrics.classification.MulticlassConfusionMatrix(K),
        }
    )
    torcheval_ = [
        torcheval.metrics.MulticlassAccuracy(),
        torcheval.metrics.MulticlassPrecision(**options),
        torcheval.metrics.MulticlassRecall(**options),
        torcheval.metrics.MulticlassF1Score(**options),
        torcheval.metrics.MulticlassConfusionMatrix(K),
    ]

    def update_torchmetrics() -> None:
        for _ in range(STEPS):
            torchmetrics_.update(tensor, targets)

    def update_torcheval() -> None:
        for _ in range(STEPS):
            for metric in torcheval_:
                metric.update(tensor, targets)

    clu_state = clu_metrics.Accuracy.from_model_output(logits=z, labels=y)
    clu_update = jax.jit(
        lambda s, z, y: s.merge(clu_metrics.Accuracy.from_model_output(logits=z, labels=y))
    )
    metrax_types = (metrax.Accuracy, metrax.Precision, metrax.Recall)

    def metrax_of(z: jax.Array, y: jax.Array) -> list[Any]:
        predictions = z.argmax(-1)
        classes = jnp.arange(K)
        by_class = jax.vmap(
            lambda c: [t.from_model_output(predictions == c, y == c) for t in metrax_types[1:]]
        )(classes)
        return [metrax.Accuracy.from_model_output(predictions, y), *by_class]

    metrax_state = jax.jit(metrax_of)(z, y)
    metrax_update = jax.jit(
        lambda s, z, y: [
            a.merge(b) if i == 0 else jax.vmap(lambda a, b: a.merge(b))(a, b)
            for i, (a, b) in enumerate(zip(s, metrax_of(z, y), strict=True))
        ]
    )
    nnx_accuracy = nnx.metrics.Accuracy()
    nnx_update = nnx.jit(lambda metric, z, y: metric.update(logits=z, labels=y))

    def update_nnx() -> Any:
        for _ in range(STEPS):
            nnx_update(nnx_accuracy, z, y)
        return nnx_accuracy.total[...]

    return {
        "jaxmetrics": chain(update, state, z, y),
        "by hand": chain(update_by_hand, counts, z, y),
        "torchmetrics": update_torchmetrics,
        "torcheval": update_torcheval,
        "metrax (no F1, no matrix)": chain(metrax_update, metrax_state, z, y),
        "clu (accuracy alone)": chain(clu_update, clu_state, z, y),
        "flax nnx (accuracy alone)": update_nnx,
    }


def scans(logits: np.ndarray, labels: np.ndarray) -> dict[str, Contender]:
    """A hundred updates in one `lax.scan`."""
    batches = (
        jnp.asarray(np.stack([np.roll(logits, i, 0) for i in range(STEPS)])),
        jnp.asarray(np.stack([np.roll(labels, i) for i in range(STEPS)])),
    )

    def scan(update: Callable[..., Any], start: Any) -> Contender:
        run = jax.jit(
            lambda start, batches: jax.lax.scan(lambda s, b: (update(s, *b), None), start, batches)[
                0
            ]
        )
        return partial(run, start, batches)

    argmax = scan(lambda s, z, y: s + z.argmax(-1).sum(dtype=jnp.int32), jnp.zeros((), jnp.int32))
    zeros = jnp.zeros((K, K), jnp.int32)
    return {
        "jaxmetrics": scan(ours, EVALUATOR.init()),
        "by hand": scan(by_hand, zeros),
        "argmax alone": argmax,
    }


def per_step(contenders: dict[str, Contender], n: int) -> Results:
    """Of a hundred updates; the limit is to read logits and labels once."""
    results = measure(contenders, factors=dict.fromkeys(contenders, 1 / STEPS), repetitions=100)
    return results | {LIMIT: limit(nbytes=4 * n * (K + 1))}


class Network(nn.Module):
    """Two convolutions and a layer on top."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for features in (16, 32):
            x = nn.max_pool(nn.relu(nn.Conv(features, (3, 3))(x)), (2, 2), strides=(2, 2))
        return nn.Dense(K)(x.reshape(len(x), -1))


def training_steps(n: int) -> Results:
    """A step of Adam on n images of 28 x 28, without and with the update of a state."""
    network, optimizer = Network(), optax.adam(1e-3)
    rng = np.random.default_rng(0)
    images, labels = (
        jnp.asarray(rng.normal(size=(n, 28, 28, 1)).astype(np.float32)),
        jnp.asarray(rng.integers(0, K, n)),
    )
    weights = network.init(jax.random.key(0), images)
    start = weights, optimizer.init(weights)

    def loss(weights: Any, images: jax.Array, labels: jax.Array) -> tuple[jax.Array, jax.Array]:
        logits: Any = network.apply(weights, images)
        return jm.cross_entropy(logits, labels).mean(), logits

    def step(start: Any, state: Any) -> Any:
        weights, moments = start
        (_, logits), gradient = jax.value_and_grad(loss, has_aux=True)(weights, images, labels)
        change, moments = optimizer.update(gradient, moments)
        return (optax.apply_updates(weights, change), moments), None if state is None else ours(
            state, logits, labels
        )

    run = jax.jit(step)
    state = EVALUATOR.init()
    results = measure(
        {"jaxmetrics": lambda: run(start, state), "no metrics": lambda: run(start, None)}, seconds=3
    )
    # Products of the two convolutions and the layer, twice as many operations; the gradient takes
    # as many in the weights, and again in what a layer is given, but for the images.
    first, rest = 28**2 * 9 * 16, 14**2 * 9 * 16 * 32 + 7**2 * 32 * K
    return results | {LIMIT: limit(flops=2 * n * (2 * first + 3 * rest))}


def main() -> None:
    loops, in_scans = {}, {}
    for n in BATCHES:
        rng = np.random.default_rng(0)
        logits, labels = (
            rng.normal(size=(n, K)).astype(np.float32),
            rng.integers(0, K, n).astype(np.int32),
        )
        loops[n], in_scans[n] = (
            per_step(updates(logits, labels), n),
            per_step(scans(logits, labels), n),
        )
    training = {n: training_steps(n) for n in IMAGES}
    size = sum(x.nbytes for x in jax.tree.leaves(EVALUATOR.init()))
    publish_times(
        "training_step",
        "at each step",
        {
            f"examples, an update of {STEPS} in a loop": loops,
            f"examples, an update of {STEPS} in a scan": in_scans,
            "images, a training step": training,
        },
        {f"loop, {n:,}": loops[n] for n in BATCHES}
        | {"scan, 1,000": in_scans[1000], "training step, 100 images": training[100]},
        "The number in each column heading is the number of examples in one batch, and each"
        f" example has {K} logits. Unless the name of a row says otherwise, an update adds one"
        " batch to the counts for accuracy, macro precision, macro recall, macro F1 and the"
        f" confusion matrix. The columns `loop` and `scan` show the mean time of one update in a"
        f" run of {STEPS} updates. The state of jaxmetrics always has {size} bytes. The row"
        f" `limit` is the time for reading the logits and labels once, at {bandwidth_in_words()}."
        " A loop may be faster than this limit, because all updates use the same batch, which"
        " stays in the cache of the processor. In the column `training step`, the limit is the"
        f" time for the matrix products of one step, at {rate_in_words()}.",
        per_second=1e6,
    )


if __name__ == "__main__":
    main()
