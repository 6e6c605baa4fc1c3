"""What the first call under `jax.jit` waits for: CPU seconds of tracing and of compiling, and how
many instructions the program has, before and after XLA has optimized it.

Each program is compiled in new processes, for one table of ten classes and macro F1; of the CPU
seconds, those of all cores together, the median is shown. `python -m bench.compilation likelihood`
prints one process.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

import jaxmetrics as jm
from bench.harness import Figures, in_new_process, publish, three_digits

PROCESSES = 3
SYSTEMS, EXAMPLES, K = 30, 1000, 10

macro_f1 = jm.macro(jm.f1)


def shape(*sizes: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, jnp.int32)


seed = jax.ShapeDtypeStruct((2,), jnp.uint32)


def bootstrapped(seed: Any, counts: Any) -> Any:
    return jm.interval(macro_f1, counts, method=jm.Bootstrap(jax.random.wrap_key_data(seed)))


def ranked(seed: Any, y_true: Any, y_preds: Any) -> Any:
    key = jax.random.wrap_key_data(seed)
    return jm.leaderboard(macro_f1, y_true, y_preds, num_classes=K, key=key)


PROGRAMS: dict[str, tuple[Callable[..., Any], *tuple[Any, ...]]] = {
    "value": (macro_f1, shape(K, K)),
    "delta": (lambda counts: jm.interval(macro_f1, counts, method=jm.Delta()), shape(K, K)),
    "likelihood": (lambda counts: jm.interval(macro_f1, counts), shape(K, K)),
    "compare": (lambda paired: jm.compare(macro_f1, paired), shape(K, K, K)),
    "leaderboard": (ranked, seed, shape(EXAMPLES), shape(SYSTEMS, EXAMPLES)),
    "posterior": (
        lambda counts: jm.balanced_accuracy_posterior(counts).interval(),
        shape(K, K),
    ),
    "bootstrap": (bootstrapped, seed, shape(K, K)),
}
GOALS = {"likelihood": 3, "compare": 4, "leaderboard": 5, "posterior": 5}  # CPU seconds


def instructions(text: str) -> int:
    return sum(" = " in line for line in text.splitlines())


def compiled(name: str) -> Figures:
    """CPU seconds of a process that has compiled nothing before, and instructions."""
    function, *arguments = PROGRAMS[name]
    start = time.process_time()
    lowered = jax.jit(function).lower(*arguments)
    traced = time.process_time()
    unoptimized = lowered.as_text("hlo")
    begin = time.process_time()
    program = lowered.compile()
    end = time.process_time()
    return {
        "tracing": traced - start,
        "compiling": end - begin,
        "instructions": instructions(unoptimized),
        "optimized": instructions(program.as_text() or ""),
    }


def median(name: str) -> Figures:
    settings = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
    processes = [in_new_process("compilation", name, **settings) for _ in range(PROCESSES)]
    return {key: statistics.median(figures[key] for figures in processes) for key in processes[0]}


def row(name: str, figures: Figures) -> list[str]:
    seconds = [three_digits(figures[key]) for key in ("tracing", "compiling")]
    sizes = [f"{figures[key]:,.0f}" for key in ("instructions", "optimized")]
    return [name, *seconds, str(GOALS.get(name, "")), *sizes]


def main(names: Sequence[str] = ()) -> None:
    if names:
        print(json.dumps(compiled(*names)))
        return
    results = {name: median(name) for name in PROGRAMS}
    publish(
        "compilation",
        results,
        ["program", "tracing", "compiling", "goal", "instructions", "optimized"],
        [row(name, figures) for name, figures in results.items()],
        f"The metric is macro F1 of {K} classes. The leaderboard ranks {SYSTEMS} classifiers. The"
        " columns `instructions` and `optimized` count the instructions of the program before and"
        " after XLA has optimized it.",
        f"Times are CPU seconds, medians of {PROCESSES} processes.",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
