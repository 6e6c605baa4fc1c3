"""The programs of `accelerators` on the GPU of this machine, and torch on the same arrays.

The arguments are random. The profiler sees each kernel of one run; a call is timed from the host
until its result is there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F
from torcheval.metrics.functional import binary_auroc
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_confusion_matrix

import jaxmetrics as jm
from bench import accelerators, harness
from bench.accelerators import Accelerator, Compiled, Program


def of_perfect(counts: Any) -> Any:
    """The posterior that takes longest: densities of classes without mistakes are infinite at 1."""
    perfect = (1 + counts) * jnp.eye(counts.shape[-1], dtype=counts.dtype)
    return jm.balanced_accuracy_posterior(perfect, prior=0.5).interval()


PROGRAMS = accelerators.PROGRAMS | {
    "posterior interval of 1e4 perfect matrices": Program(
        of_perfect, (accelerators.shape(10**4, 10, 10),)
    ),
    # Of so many examples a class has one hard end, not two, and the sum one corner.
    "posterior interval of 1e4 perfect matrices, 1,000 examples a class": Program(
        of_perfect, (accelerators.shape(10**4, 10, 10),), limit=1000
    ),
}


def counted(num_classes: int, y_true: Any, y_pred: Any) -> Any:
    return multiclass_confusion_matrix(y_pred, y_true, num_classes, validate_args=False)


def accuracy(y_true: Any, scores: Any, top_k: int = 1) -> Any:
    options = {"top_k": top_k, "average": "micro", "validate_args": False}
    return multiclass_accuracy(scores, y_true, num_classes=scores.shape[1], **options)


def loss(logits: Any, labels: Any) -> Any:
    logits.requires_grad_().grad = None
    value = F.cross_entropy(logits, labels.long())
    value.backward()
    return value, logits.grad


def linear_loss(hidden: Any, kernel: Any, labels: Any) -> Any:
    for x in (hidden, kernel):
        x.requires_grad_().grad = None
    value = F.cross_entropy(hidden @ kernel, labels.long())
    value.backward()
    return value, (hidden.grad, kernel.grad)


# Functions of torch, torchmetrics and torcheval that do what a program does. The calibration error
# of 1e8 scores has none: that of torchmetrics is 0.2520, where 0.2489 is right.
PEERS: dict[str, Callable[..., Any]] = {
    "confusion matrix, 1e8 labels, K = 10": partial(counted, 10),
    "confusion matrix, 1e8 labels, K = 1000": partial(counted, 1000),
    "ROC AUC, 1e7 scores": lambda y_true, y_score: binary_auroc(y_score, y_true),
    "cross-entropy and gradient, 4096 x 32000": loss,
    "linear cross-entropy and gradients, 32768 x 2560 x 128256, bfloat16": linear_loss,
    "update of a state, 8192 x 1000": lambda logits, y_true: accuracy(y_true, logits),
    "top-5 accuracy, 8192 x 1e5": partial(accuracy, top_k=5),
}


class Run(NamedTuple):
    """The kernels of a run, and the milliseconds that they take together."""

    kernels: int
    milliseconds: float


def drawn(program: Program) -> list[jax.Array]:
    """Draw random arguments: integers below the limit of the program, and numbers in [0, 1)."""
    keys = jax.random.split(jax.random.key(0), len(program.arguments))
    return [
        jax.random.uniform(key, x.shape, x.dtype)
        if jnp.issubdtype(x.dtype, jnp.floating)
        else jax.random.randint(key, x.shape, 0, program.limit).astype(x.dtype)
        for key, x in zip(keys, program.arguments, strict=True)
    ]


def profiled(run: Callable[[], Any]) -> Run:
    """Return what the GPU's streams did in a run."""
    jax.block_until_ready(run())
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            jax.block_until_ready(run())
        path = next(Path(folder).rglob("*.xplane.pb"))
        planes = [
            x for x in jax.profiler.ProfileData.from_file(str(path)).planes if "GPU" in x.name
        ]
        streams = [x for plane in planes for x in plane.lines if x.name.startswith("Stream")]
        times = [event.duration_ns for stream in streams for event in stream.events]
    return Run(len(times), sum(times) / 1e6)


def in_torch(peer: Callable[..., Any], arguments: list[jax.Array]) -> harness.Contender:
    """Return a function that calls a peer on the same memory, and waits for it."""
    tensors = [torch.from_dlpack(x) for x in arguments]

    def run() -> Any:
        result = peer(*tensors)
        torch.cuda.synchronize()
        return result

    return run


def check(results: dict[str, Any]) -> None:
    """Raise if a table, an area or a loss differs from the peer's; counts must be equal."""
    ours, theirs = results["jaxmetrics"], results.get("torch")
    if isinstance(theirs, tuple):
        ours, theirs = ours[0], theirs[0]
    if theirs is None or not isinstance(ours, jax.Array):
        return
    if jnp.issubdtype(ours.dtype, jnp.integer):
        np.testing.assert_array_equal(ours, theirs.cpu().numpy())
    else:
        # With bfloat16, torch rounds logits near 640 to multiples of 4, and its loss is 1 % larger.
        rtol = 2e-2 if theirs.dtype == torch.bfloat16 else 1e-2
        expected = theirs.detach().float().cpu().numpy()
        np.testing.assert_allclose(np.asarray(ours, np.float32), expected, rtol=rtol)


def measured(name: str, device: Accelerator) -> dict[str, Any]:
    """Compile, profile and time a program."""
    program = PROGRAMS[name]
    compiled, executable = accelerators.compiled_on(jax.devices()[0], program, device)
    arguments = drawn(program)
    run = partial(executable, *arguments)
    kernels = profiled(run)
    contenders: dict[str, harness.Contender] = {"jaxmetrics": run}
    if name in PEERS:
        contenders["torch"] = in_torch(PEERS[name], arguments)
    times = harness.measure(contenders, check=check, repetitions=20, seconds=0.5)
    return {"compiled": compiled._asdict(), "run": kernels._asdict(), "times": times}


HEADINGS = (
    *("program", "compile, s", "kernels, compiled", "kernels, run", "roofline, ms"),
    *("kernels, ms", "call, ms", "torch, ms"),
)


def row(name: str, found: dict[str, Any]) -> list[str]:
    run, times = Run(**found["run"]), found["times"]
    _, seconds, _, kernels, *_, roofline = accelerators.row(name, Compiled(**found["compiled"]))
    took = harness.three_digits(run.milliseconds)
    calls = (harness.cell(times.get(who, "")) for who in ("jaxmetrics", "torch"))
    return [name, seconds, kernels, str(run.kernels), roofline, took, *calls]


NOTE = "The columns are explained above the table."


def main() -> None:
    known = accelerators.ACCELERATORS["gpu"]
    kind = jax.devices()[0].device_kind
    bandwidth = known.bandwidth if kind == known.name else harness.bandwidth()
    device = Accelerator(kind, bandwidth, known.launch)
    found = {}
    for name in PROGRAMS:
        found[name] = measured(name, device)
        print(" | ".join(row(name, found[name])), flush=True)
    rows = [row(name, found[name]) for name in PROGRAMS]
    units = (
        "Times are medians in milliseconds, with the lower and the upper quartile in parentheses."
    )
    harness.publish("gpu", found, HEADINGS, rows, NOTE, units, timed_on="gpu")


if __name__ == "__main__":
    main()
