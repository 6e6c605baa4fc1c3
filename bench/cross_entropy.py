"""Cross-entropy of logits, forward and with its gradient, beside optax and torch."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

import jaxmetrics as jm
from bench.harness import (
    LIMIT,
    Contender,
    Results,
    bandwidth_in_words,
    limit,
    measure,
    publish_times,
)

N = 4096
CLASSES = (10, 100, 1000, 10_000, 32_000)


def compare(k: int) -> tuple[Results, Results]:
    """Mean loss of k classes, forward and with its gradient."""
    rng = np.random.default_rng(0)
    z, y = 3 * rng.standard_normal((N, k), np.float32), rng.integers(0, k, N).astype(np.int32)
    logits, labels = jnp.asarray(z), jnp.asarray(y)
    tensor, targets = torch.from_numpy(z).requires_grad_(), torch.from_numpy(y).long()
    losses = {
        "jaxmetrics": jm.cross_entropy,
        "optax": optax.softmax_cross_entropy_with_integer_labels,
    }
    forward: dict[str, Contender] = {}
    both: dict[str, Contender] = {}
    for name, loss in losses.items():
        mean = jax.jit(lambda z, loss=loss: loss(z, labels).mean())
        forward[name], both[name] = (
            partial(mean, logits),
            partial(jax.jit(jax.value_and_grad(mean)), logits),
        )

    def with_gradient() -> Any:
        tensor.grad = None
        value = torch.nn.functional.cross_entropy(tensor, targets)
        value.backward()
        return value.detach(), tensor.grad

    forward["torch"] = lambda: torch.nn.functional.cross_entropy(tensor.detach(), targets)
    both["torch"] = with_gradient

    def check(values: dict[str, Any]) -> None:
        for part in zip(*(jax.tree.leaves(value) for value in values.values()), strict=True):
            ours, *theirs = map(np.asarray, part)
            for x in theirs:
                np.testing.assert_allclose(ours, x, rtol=1e-5, atol=1e-5 * abs(x).max())

    nbytes = logits.nbytes + labels.nbytes
    return (
        measure(forward, check=check) | {LIMIT: limit(nbytes=nbytes)},
        measure(both, check=check) | {LIMIT: limit(nbytes=nbytes + logits.nbytes)},
    )


def main() -> None:
    forward, both = {}, {}
    for k in CLASSES:
        forward[k], both[k] = compare(k)
    publish_times(
        "cross_entropy",
        f"mean cross-entropy of {N} examples",
        {"classes, forward": forward, "classes, with gradient": both},
        {
            f"{k} classes, {part}": results[k]
            for k in (10, 1000, 32_000)
            for part, results in (("forward", forward), ("with gradient", both))
        },
        "Logits are float32 arrays, and labels are class ids. The row `limit` is the time for"
        f" reading the logits once, at {bandwidth_in_words()}. In the columns `with gradient`, the"
        " limit includes writing the gradient once.",
    )


if __name__ == "__main__":
    main()
