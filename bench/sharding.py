"""What one of eight devices computes of a batch that is sharded over all of them: the operations of
its program as a share of those of a single device, and the arrays that devices gather.

Operations are counted by XLA in programs for eight devices of a CPU, the body of a loop once. The
figures are the same on every machine.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxmetrics as jm
from bench.harness import Figures, in_new_process, publish

DEVICES, MATRICES, K = 8, 1024, 3
EXAMPLES, TOKENS, WORDS = 64, 128, 50
SETTINGS = {
    "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}",
    "JAX_PLATFORMS": "cpu",
}

macro_f1 = jm.macro(jm.f1)
COUNTS = ((MATRICES, K, K),)
LOGITS = (EXAMPLES, TOKENS, WORDS), (EXAMPLES, TOKENS)


def interval_by(method: Any) -> Callable[..., Any]:
    return lambda counts: jm.interval(macro_f1, counts, method=method)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "macro F1": (macro_f1, COUNTS),
    "Matthews": (jm.matthews_corrcoef, COUNTS),
    "interval, `Delta`": (interval_by(jm.Delta()), COUNTS),
    "interval, `Likelihood`": (interval_by(jm.Likelihood()), COUNTS),
    "interval, `Bootstrap`": (interval_by(jm.Bootstrap(0, num_samples=200)), COUNTS),
    "posterior balanced accuracy": (
        lambda counts: jm.balanced_accuracy_posterior(counts).interval(),
        COUNTS,
    ),
    "bootstrap samples": (lambda counts: jm.bootstrap_counts(0, counts, num_samples=50), COUNTS),
    "cross-entropy": (jm.cross_entropy, LOGITS),
}


def compiled(name: str) -> Figures:
    function, shapes = PROGRAMS[name]
    dtypes = [jnp.int32 if len(shape) < 3 else jnp.float32 for shape in shapes]
    program = jax.jit(function)
    specs = map(jax.ShapeDtypeStruct, shapes, dtypes)
    one: Any = program.lower(*specs).compile()
    figures = {}
    for kind in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(kind,))
        rows = NamedSharding(mesh, PartitionSpec("data"))
        with jax.set_mesh(mesh):
            sharded = (
                jax.ShapeDtypeStruct(shape, dtype, sharding=rows)
                for shape, dtype in zip(shapes, dtypes, strict=True)
            )
            part: Any = program.lower(*sharded).compile()
        share = part.cost_analysis()["flops"] / one.cost_analysis()["flops"]
        figures[f"{kind.name} share"] = share
        figures[f"{kind.name} gathers"] = len(re.findall(r" all-gather(-start)?\(", part.as_text()))
    return figures


def main(names: Sequence[str] = ()) -> None:
    if names:
        print(json.dumps(compiled(*names)))
        return
    results = {name: in_new_process("sharding", name, **SETTINGS) for name in PROGRAMS}
    publish(
        "sharding",
        results,
        ["program", "`Auto` axes", "gathers", "`Explicit` axes", "gathers"],
        [
            [
                name,
                *(
                    text
                    for kind in ("Auto", "Explicit")
                    for text in (f"{x[f'{kind} share']:.3f}", f"{x[f'{kind} gathers']:.0f}")
                ),
            ]
            for name, x in results.items()
        ],
        f"{MATRICES:,} matrices of {K} classes, or logits of {EXAMPLES} x {TOKENS} tokens and"
        f" {WORDS} words, on {DEVICES} devices; 1/{DEVICES} is {1 / DEVICES:.3f}. The posterior"
        " gathers only rough distributions, which are computed a second time in a branch that is"
        " skipped if there are none.",
        "Columns of axes are shares of the operations of one device.",
        timed_on=None,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
