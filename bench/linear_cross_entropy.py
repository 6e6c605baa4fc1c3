"""Loss and gradients of a linear layer over a large vocabulary: in blocks, with all logits at hand
(optax), and with logits `(batch, time, words)`.
"""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

import jaxmetrics as jm
from bench.harness import LIMIT, Results, limit, measure, publish_times, rate_in_words, status

Shape = tuple[int, int, int]  # examples, width, words
EXAMPLES, WIDTH, WORDS = 512, 512, (1000, 10_000, 100_000)  # timed
# Too long to run on a CPU, but XLA says what memory it would take.
COMPILED: Shape = (
    8192,
    1024,
    131072,
)
RUN: Shape = (8192, 16, 131072)  # as many logits, fewer products: for the memory of the process


def all_at_once(hidden: jax.Array, kernel: jax.Array, labels: jax.Array) -> jax.Array:
    logits = (hidden @ kernel).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def in_blocks(hidden: jax.Array, kernel: jax.Array, labels: jax.Array) -> jax.Array:
    return jm.linear_cross_entropy(hidden, kernel, labels).mean()


def mean(hidden: jax.Array, kernel: jax.Array, labels: jax.Array) -> jax.Array:
    return jm.mean_linear_cross_entropy(hidden, kernel, labels)


LOSSES: dict[str, Callable[..., jax.Array]] = {
    "jaxmetrics": in_blocks,
    "jaxmetrics, mean": mean,
    "matmul and optax": all_at_once,
}


def of_tokens(loss: Callable[..., jax.Array], *, flat: bool) -> Callable[..., jax.Array]:
    """Mean loss of tokens `(8, n / 8)`, which are flattened before the product if `flat`."""

    def mean(hidden: jax.Array, kernel: jax.Array, labels: jax.Array) -> jax.Array:
        h, y = hidden.reshape(8, -1, hidden.shape[-1]), labels.reshape(8, -1)
        if flat:
            h, y = h.reshape(-1, h.shape[-1]), y.reshape(-1)
        return loss((h @ kernel).astype(jnp.float32), y).mean()

    return mean


PER_TOKEN = {
    "jaxmetrics": jm.cross_entropy,
    "matmul and optax": optax.softmax_cross_entropy_with_integer_labels,
}
OF_TOKENS = {
    f"{name}, {'flattened' if flat else 'as they are'}": of_tokens(loss, flat=flat)
    for name, loss in PER_TOKEN.items()
    for flat in (True, False)
}


def with_gradients(loss: Callable[..., jax.Array]) -> Any:
    return jax.jit(jax.value_and_grad(loss, (0, 1)))


def compiled(loss: Callable[..., jax.Array], shape: Shape, dtype: Any) -> Any:
    n, d, v = shape
    arguments = (
        jax.ShapeDtypeStruct((n, d), dtype),
        jax.ShapeDtypeStruct((d, v), dtype),
        jax.ShapeDtypeStruct((n,), jnp.int32),
    )
    return with_gradients(loss).lower(*arguments).compile()


def temporary_megabytes(loss: Callable[..., jax.Array], dtype: Any) -> float:
    """Beyond arguments, loss and gradients."""
    return compiled(loss, COMPILED, dtype).memory_analysis().temp_size_in_bytes / 1e6


def data(shape: Shape, dtype: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    n, d, v = shape
    hidden = jax.random.normal(jax.random.key(0), (n, d), dtype)
    kernel = (jax.random.normal(jax.random.key(1), (d, v)) / d**0.5).astype(dtype)
    return hidden, kernel, jax.random.randint(jax.random.key(2), (n,), 0, v)


def process_megabytes(name: str, dtype: Any) -> float:
    """The most that a fresh process held, beyond what it held before one run at RUN."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as fresh:
        return fresh.submit(_growth, name, dtype).result()


def _growth(name: str, dtype: Any) -> float:
    arguments, run = jax.block_until_ready(data(RUN, dtype)), compiled(LOSSES[name], RUN, dtype)
    before = status("VmRSS")
    jax.block_until_ready(run(*arguments))
    return (status("VmHWM") - before) / 1e6


def memory(name: str, dtype: Any) -> str:
    """What XLA plans at COMPILED, and on a CPU, where the process holds the arrays, what it held at
    RUN.
    """
    words = f"{temporary_megabytes(LOSSES[name], dtype):.0f} MB"
    return words + (
        f", {process_megabytes(name, dtype):.0f} MB" if jax.default_backend() == "cpu" else ""
    )


def large_vocabulary(
    words: int, dtype: Any, losses: dict[str, Callable[..., jax.Array]] = LOSSES
) -> Results:
    """Value and gradients."""
    arguments = data((EXAMPLES, WIDTH, words), dtype)

    def check(values: dict[str, Any]) -> None:
        *of_ours, (theirs, of_theirs) = values.values()
        for value, gradients in of_ours:
            assert abs(value - theirs) < 1e-5 * theirs
            for a, b in zip(gradients, of_theirs, strict=True):
                assert (
                    jnp.abs(a.astype(jnp.float32) - b.astype(jnp.float32)).max()
                    < 16 * jnp.finfo(dtype).eps * jnp.abs(b).max()
                )

    results = measure(
        {name: partial(with_gradients(loss), *arguments) for name, loss in losses.items()},
        check=check,
    )
    flops = 3 * 2 * EXAMPLES * WIDTH * words  # the logits and two products for their gradient
    return results | {
        LIMIT: limit(
            nbytes=sum(x.nbytes for x in arguments), flops=flops, dtype=jnp.dtype(dtype).name
        )
    }


def main() -> None:
    dtypes = (jnp.float32, jnp.bfloat16)
    sweeps = {
        f"words, {dtype.__name__}": {v: large_vocabulary(v, dtype) for v in WORDS}
        for dtype in dtypes
    }
    tokens = large_vocabulary(WORDS[1], jnp.float32, OF_TOKENS)
    held: Any = {
        f"{dtype.__name__}, memory": {name: memory(name, dtype) for name in LOSSES}
        for dtype in dtypes
    }
    planned, run = (" x ".join(f"{x:,}" for x in shape) for shape in (COMPILED, RUN))
    rates = ", ".join(rate_in_words(dtype.__name__) for dtype in dtypes)
    publish_times(
        "linear_cross_entropy",
        "loss and gradients",
        sweeps,
        {f"{v:,} {what}": sweep[v] for what, sweep in sweeps.items() for v in WORDS[1:]}
        | held
        | {f"logits (batch, time, {WORDS[1]:,})": tokens},
        f"The times are for {EXAMPLES} examples, and the hidden vector of each example has {WIDTH}"
        " numbers (the width). Each cell in the two columns of memory contains two values. The"
        " first value is the memory that the compiler XLA reserves for intermediate results, for"
        f" {planned} (examples x width x words). The second value is the growth of the memory of a"
        f" new process during one run, for {run}. The row `limit` is the time for three matrix"
        f" products (one for the logits and two for the gradients), at {rates}. In the last column,"
        " the examples are tokens of shape (8, 64), and all logits are at hand. They are flattened"
        " before the product, or the logits have three axes.",
    )


if __name__ == "__main__":
    main()
