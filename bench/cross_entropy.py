"""Cross-entropy of logits, forward and with its gradient, beside optax and torch."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch

import jaxmetrics as jm
from bench.harness import Contender, measure, milliseconds, publish

SHAPES = ((8192, 10), (8192, 1000), (4096, 32000))


def compare(n: int, k: int) -> dict[str, dict[str, float]]:
    """Mean loss of k classes."""
    rng = np.random.default_rng(0)
    z, y = 3 * rng.normal(size=(n, k)).astype(np.float32), rng.integers(0, k, n).astype(np.int32)
    logits, labels = jnp.asarray(z), jnp.asarray(y)
    tensor, targets = torch.from_numpy(z).requires_grad_(), torch.from_numpy(y).long()
    losses = {"jaxmetrics": jm.cross_entropy, "optax": optax.softmax_cross_entropy_with_integer_labels}
    forward: dict[str, Contender] = {}
    both: dict[str, Contender] = {}
    for name, loss in losses.items():
        mean = jax.jit(lambda z, loss=loss: loss(z, labels).mean())
        forward[name], both[name] = partial(mean, logits), partial(jax.jit(jax.value_and_grad(mean)), logits)

    def with_gradient() -> Any:
        tensor.grad = None
        torch.nn.functional.cross_entropy(tensor, targets).backward()

    forward["torch"] = lambda: torch.nn.functional.cross_entropy(tensor.detach(), targets)
    both["torch"] = with_gradient
    assert abs(forward["jaxmetrics"]() - forward["optax"]()) < 1e-5
    repetitions = 90 if n * k < 1e8 else 9
    return {part: measure(c, slow=10, repetitions=repetitions) for part, c in (("forward", forward), ("with gradient", both))}


def main() -> None:
    results = {f"{n} x {k}, {part}": result for n, k in SHAPES for part, result in compare(n, k).items()}
    publish(
        "cross_entropy",
        results,
        ["mean cross-entropy", *results],
        [[name, *(milliseconds(result[name]) for result in results.values())] for name in ("jaxmetrics", "optax", "torch")],
        "float32 logits, labels as class ids.",
    )


if __name__ == "__main__":
    main()
