"""Loss and gradients of a linear layer over a large vocabulary, in blocks and with all logits at hand (optax)."""

import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import optax

import jaxmetrics as jm
from bench.harness import measure, milliseconds, publish

Shape = tuple[int, int, int]  # examples, width, words
TIMED: Shape = (1024, 512, 32768)
COMPILED: Shape = (8192, 1024, 131072)  # too long to run on a CPU, but XLA says what memory it would take
RUN: Shape = (8192, 64, 131072)  # as many logits, fewer products: for the memory of the process


def all_at_once(hidden: jax.Array, kernel: jax.Array, labels: jax.Array) -> jax.Array:
    logits = (hidden @ kernel).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def in_blocks(hidden: jax.Array, kernel: jax.Array, labels: jax.Array) -> jax.Array:
    return jm.linear_cross_entropy(hidden, kernel, labels).mean()


LOSSES: dict[str, Callable[..., jax.Array]] = {"jaxmetrics": in_blocks, "matmul and optax": all_at_once}


def compiled(loss: Callable[..., jax.Array], shape: Shape, dtype: Any) -> Any:
    n, d, v = shape
    arguments = jax.ShapeDtypeStruct((n, d), dtype), jax.ShapeDtypeStruct((d, v), dtype), jax.ShapeDtypeStruct((n,), jnp.int32)
    return jax.jit(jax.value_and_grad(loss, (0, 1))).lower(*arguments).compile()


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
    before = _status("VmRSS")
    jax.block_until_ready(run(*arguments))
    return (_status("VmHWM") - before) / 1e6


def _status(entry: str) -> int:
    """Bytes, as Linux says; a process inherits the `ru_maxrss` of the one that started it."""
    return 1024 * int(re.search(rf"{entry}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def large_vocabulary(dtype: Any) -> dict[str, dict[str, float]]:
    """Seconds of value and gradients at TIMED, and megabytes at COMPILED."""
    contenders = {name: partial(compiled(loss, TIMED, dtype), *data(TIMED, dtype)) for name, loss in LOSSES.items()}
    (ours, of_ours), (theirs, of_theirs) = (run() for run in contenders.values())
    assert abs(ours - theirs) < 1e-5 * theirs
    for a, b in zip(of_ours, of_theirs, strict=True):
        assert jnp.abs(a.astype(jnp.float32) - b.astype(jnp.float32)).max() < 16 * jnp.finfo(dtype).eps * jnp.abs(b).max()
    results = measure(contenders, slow=10)
    return {
        name: result
        | {"megabytes": temporary_megabytes(LOSSES[name], dtype), "process_megabytes": process_megabytes(name, dtype)}
        for name, result in results.items()
    }


def main() -> None:
    results = {dtype.__name__: large_vocabulary(dtype) for dtype in (jnp.float32, jnp.bfloat16)}
    rows = [
        [
            name,
            *(
                cell
                for r in results.values()
                for cell in (milliseconds(r[name]), f"{r[name]['megabytes']:.0f}, {r[name]['process_megabytes']:.0f} MB")
            ),
        ]
        for name in LOSSES
    ]
    timed, held, run = (" x ".join(f"{x:,}" for x in shape) for shape in (TIMED, COMPILED, RUN))
    publish(
        "linear_cross_entropy",
        results,
        ["loss and gradients", *(f"{dtype}, {what}" for dtype in results for what in ("time", "memory"))],
        rows,
        f"Times at {timed} (examples x width x words). Memory: what XLA plans for intermediate results at {held}, and the most"
        f" that a fresh process held beyond what it held before one run at {run}.",
    )


if __name__ == "__main__":
    main()
