"""What compiled programs would do on an NVIDIA H200 and on a TPU v5e: compiled, not run.

XLA compiles for a device that is described and not there; its scheduled program tells how many
kernels are launched, how many iterations of loops follow each other, and what kernels read and
write. Published are, for each program:

- the seconds that the compiler took, and its CPU seconds, of all cores together;
- kernels, with those in loops times their iterations, and the iterations themselves; where the
  program chooses between branches, the least and the most;
- traffic, what kernels and copies read and write, as a multiple of arguments and results; of an
  array of which a kernel takes slices those only, and nothing of a TPU's vector memory;
- memory for intermediate results;
- the roofline, a lower bound: traffic at the memory's bandwidth or kernels at their time of
  launch, whichever takes longer. Arithmetic, sorting and colliding atomics are not in it.

TPU programs often do not say how often a loop runs: it then counts once.

`python -m bench accelerators` (extra `accelerators`) compiles everything, each program in a process
of its own, which is stopped after 15 minutes; `python -m bench.accelerators gpu` for one device,
with `--only NAME ...` the programs whose names contain one of these. Their figures replace those in
bench/results/accelerators.json, or are only printed, with `--json`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies

import jaxmetrics as jm
from bench import harness

# Where there is no device nothing is tuned by trial, and Triton's products of matrices need that.
WORLD = {
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5e-4",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}

H200 = """
platform_name: "CUDA"
device_description_str: "NVIDIA H200"
dnn_version_info { major: 9 minor: 7 }
runtime_version { major: 12 minor: 8 }
gpu_device_info {
  cuda_compute_capability { major: 9 }
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  registers_per_block_limit: 65536
  registers_per_core_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  l2_cache_size: 52428800
  memory_bandwidth: 4800000000000
  device_memory_size: 149000000000
}
"""


class Accelerator(NamedTuple):
    """A device as data sheets describe it."""

    name: str
    bandwidth: float  # bytes per second
    launch: float  # seconds that a kernel takes at least


ACCELERATORS = {
    "gpu": Accelerator("NVIDIA H200", 4.8e12, 2.5e-6),
    "tpu": Accelerator("TPU v5e", 819e9, 1e-6),
}


def described_device(platform: str) -> Any:
    """A device to compile for, which need not exist."""
    if platform == "tpu":
        return topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices[0]
    from jax._src import xla_bridge

    known = xla_bridge.canonicalize_platform

    def canonical(name: str) -> str:  # JAX issue 23971: it knows no CUDA where there is no card
        try:
            return known(name)
        except RuntimeError:
            return "cuda"

    xla_bridge.canonicalize_platform = canonical  # type: ignore[assignment]  # of the same signature
    try:
        return topologies.get_topology_desc(
            platform="cuda", topology_name="h200", topology="1x1x1", target_config=H200
        ).devices[0]
    finally:
        xla_bridge.canonicalize_platform = known


# Reading a scheduled program.


class Instruction(NamedTuple):
    """A line of a computation: `%name = shape opcode(rest`."""

    name: str
    shape: str
    opcode: str
    rest: str

    def called(self, attribute: str) -> list[str]:
        """Names of the computations that an attribute lists."""
        found = re.search(rf"{attribute}=\{{?((?:%?[\w.\-]+(?:, )?)+)", self.rest)
        return re.findall(r"[\w.\-]+", found[1]) if found else []

    @property
    def operands(self) -> list[str]:
        """Names of its operands."""
        return re.findall(r"%([\w.\-]+)", self.rest.split("), ")[0])


class Work(NamedTuple):
    """What a computation does."""

    kernels: float = 0
    nbytes: float = 0
    iterations: float = 0

    def __add__(self, other: Any) -> Work:
        return Work(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, n: int) -> Work:
        return Work(*(n * x for x in self))


BITS = {"pred": 8, "c64": 64, "c128": 128}  # of others the digits of their name: s4, bf16, f32
FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast"),
    *("after-all", "copy-start", "slice-start", "partition-id"),
}
DMA = {"copy-done", "slice-done"}  # copies beside the kernels of a TPU, into its vector memory


def bytes_of(shape: str) -> float:
    """Bytes of a shape as programs write it, `(f32[8,2]{1,0}, s32[])` for example.

    Memory of a space of its own, such as `S(1)`, the vector memory of a TPU, is not counted.
    """
    total = 0.0
    in_memory = re.sub(r"\w+\[[\d,]*\]\{[^{}]*S\(\d+\)\}", "", shape)
    for kind, sizes in re.findall(r"\b([a-z]+\d*)\w*\[([\d,]*)\]", in_memory):
        bits = BITS.get(kind) or int(re.sub(r"\D", "", kind) or 0)
        total += bits / 8 * np.prod([int(x) for x in sizes.split(",") if x], dtype=float)
    return total


def computations_of(text: str) -> dict[str, list[Instruction]]:
    """Split a program into its computations; the one that is run is called ENTRY."""
    computations: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in text.splitlines():
        if head := re.match(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{", line):
            current = computations["ENTRY" if head[1] else head[2]] = []
        elif found := re.match(r"\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)", line):
            current.append(Instruction(*found.groups()))
    return computations


def work_of(text: str) -> tuple[Work, Work]:
    """The least and the most that a scheduled program does, by the branches that it takes."""
    computations = computations_of(text)
    known: dict[str, tuple[Work, Work]] = {}

    def of(name: str) -> tuple[Work, Work]:
        if name not in known:
            pairs = list(_of_instructions(computations, name, of))
            known[name] = (
                sum((least for least, _ in pairs), Work()),
                sum((most for _, most in pairs), Work()),
            )
        return known[name]

    return of("ENTRY")


def _of_instructions(
    computations: dict[str, list[Instruction]],
    name: str,
    of: Callable[[str], tuple[Work, Work]],
) -> Iterator[tuple[Work, Work]]:
    instructions = computations.get(name, [])
    shapes = {x.name: bytes_of(x.shape) for x in instructions}
    for x in instructions:
        if x.opcode in FREE:
            continue
        if x.opcode == "while":
            trips = re.search(r'known_trip_count":\{"n":"(\d+)"', x.rest)
            n = int(trips[1]) if trips else 1
            once = of(x.called("body")[0])
            least, most = (part.times(n) + Work(iterations=n) for part in once)
            yield least, most
        elif x.opcode == "conditional":
            names = x.called("branch_computations") or [
                *x.called("true_computation"),
                *x.called("false_computation"),
            ]
            branches = [of(name) for name in names]
            yield min(least for least, _ in branches), max(most for _, most in branches)
        elif x.opcode == "call":
            yield of(x.called("to_apply")[0])
        elif x.opcode in DMA:
            own = Work(0, bytes_of(re.sub(r"S\(\d+\)", "", x.shape)))
            yield own, own
        else:
            own = Work(1, _bytes_moved(x, shapes, computations))
            yield own, own


def _bytes_moved(
    kernel: Instruction, shapes: dict[str, float], computations: dict[str, list[Instruction]]
) -> float:
    """Bytes that a kernel reads and writes: of an array of which it reads or writes slices only
    those.
    """
    body = [x for name in kernel.called("calls")[:1] for x in computations.get(name, [])]
    inner = {x.name: bytes_of(x.shape) for x in body}

    def read(name: str) -> float:
        total = 0.0
        for user in (x for x in body if name in x.operands):
            if user.opcode == "bitcast":
                total += read(user.name)
            elif user.opcode == "dynamic-slice":
                total += inner[user.name]
            elif user.opcode != "dynamic-update-slice" or user.operands[0] != name:
                return inner[name]
        return min(total, inner[name])

    def written(x: Instruction, sizes: dict[str, float]) -> float:
        if x.opcode == "dynamic-update-slice":
            return sizes[x.operands[1]]
        if x.opcode in ("bitcast", "tuple"):
            return sum(written(y, sizes) for y in body if y.name in x.operands)
        return sizes[x.name]

    if body:
        parameters = [x.name for x in body if x.opcode == "parameter"]
        return written(body[-1], inner) + sum(map(read, parameters))
    moved = written(kernel, shapes)
    if kernel.opcode in ("dynamic-slice", "dynamic-update-slice"):
        return 2 * moved
    return moved + sum(shapes.get(name, 0.0) for name in kernel.operands)


# The programs.

LABELS = 10**8


def shape(*sizes: int, dtype: Any = jnp.int32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(sizes, dtype)


def scores(*sizes: int) -> jax.ShapeDtypeStruct:
    return shape(*sizes, dtype=jnp.float32)


macro_f1 = jm.macro(jm.f1)
evaluator = jm.evaluator(jm.count_metrics({"accuracy": jm.accuracy}, num_classes=1000))
seed, half = shape(2, dtype=jnp.uint32), jnp.bfloat16


def counted(y_true: Any, y_pred: Any, sample_weight: Any = None, num_classes: int = 10) -> Any:
    return jm.confusion_matrix(y_true, y_pred, num_classes=num_classes, sample_weight=sample_weight)


def bootstrapped(seed: Any, counts: Any) -> Any:
    method = jm.Bootstrap(jax.random.wrap_key_data(seed), kind="percentile", num_samples=10**6)
    return jm.interval(macro_f1, counts, method=method)


def ranked(seed: Any, y_true: Any, y_preds: Any) -> Any:
    key = jax.random.wrap_key_data(seed)
    return jm.leaderboard(jm.accuracy, y_true, y_preds, num_classes=10, key=key)


class Program(NamedTuple):
    """A function and the shapes of its arguments, whose integers are below a limit."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    limit: int = 10


PROGRAMS = {
    "confusion matrix, 1e8 labels, K = 10": Program(counted, (shape(LABELS), shape(LABELS))),
    "confusion matrix, 1e8 labels, K = 1000": Program(
        lambda y_true, y_pred: counted(y_true, y_pred, num_classes=1000),
        (shape(LABELS), shape(LABELS)),
        limit=1000,
    ),
    "weighted confusion matrix, 1e8, K = 10": Program(
        counted, (shape(LABELS), shape(LABELS), scores(LABELS))
    ),
    "macro F1 of 1e6 matrices": Program(macro_f1, (shape(10**6, 10, 10),)),
    "posterior interval of 1e4 matrices": Program(
        lambda counts: jm.balanced_accuracy_posterior(counts).interval(), (shape(10**4, 10, 10),)
    ),
    "bootstrap, 1e6 replicates": Program(bootstrapped, (seed, shape(10, 10))),
    "likelihood interval of 1e4 matrices": Program(
        lambda counts: jm.interval(macro_f1, counts), (shape(10**4, 10, 10),)
    ),
    "ROC AUC, 1e7 scores": Program(jm.roc_auc, (shape(10**7), scores(10**7)), limit=2),
    "calibration error, 1e8": Program(
        jm.calibration_error, (shape(LABELS), scores(LABELS)), limit=2
    ),
    "cross-entropy and gradient, 4096 x 32000": Program(
        jax.value_and_grad(lambda z, y: jm.cross_entropy(z, y).mean()),
        (scores(4096, 32000), shape(4096)),
        limit=32000,
    ),
    "linear cross-entropy and gradients, 32768 x 2560 x 128256, bfloat16": Program(
        jax.value_and_grad(lambda h, w, y: jm.linear_cross_entropy(h, w, y).mean(), (0, 1)),
        (shape(32768, 2560, dtype=half), shape(2560, 128256, dtype=half), shape(32768)),
        limit=128256,
    ),
    "update of a state, 8192 x 1000": Program(
        lambda z, y: evaluator.update(evaluator.init(), y_true=y, logits=z),
        (scores(8192, 1000), shape(8192)),
        limit=1000,
    ),
    "leaderboard, 200 x 1e5": Program(ranked, (seed, shape(10**5), shape(200, 10**5))),
    "top-5 accuracy, 8192 x 1e5": Program(
        lambda y, z: jm.top_k_accuracy(y, z, k=5),
        (shape(8192), scores(8192, 10**5)),
        limit=10**5,
    ),
}


class Compiled(NamedTuple):
    """Figures of a compiled program, those of work for the least and the most."""

    seconds: float
    cpu_seconds: float
    kernels: tuple[float, float]
    iterations: tuple[float, float]
    traffic: tuple[float, float]
    megabytes: float
    roofline_ms: tuple[float, float]


def compiled(program: Program, platform: str) -> Compiled:
    """Compile a program for an accelerator that need not exist."""
    return compiled_on(described_device(platform), program, ACCELERATORS[platform])[0]


def compiled_on(device: Any, program: Program, described: Accelerator) -> tuple[Compiled, Any]:
    """Compile a program for a device; return its figures, and what runs where the device exists."""
    placed = jax.sharding.SingleDeviceSharding(device)
    arguments = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=placed) for x in program.arguments]
    lowered = jax.jit(program.function).lower(*arguments)
    start, cpu_start = time.perf_counter(), time.process_time()
    executable: Any = lowered.compile()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    memory = executable.memory_analysis()
    limit = memory.argument_size_in_bytes + memory.output_size_in_bytes
    least, most = work_of(executable.as_text())

    def of_both(figure: Callable[[Work], float]) -> tuple[float, float]:
        return figure(least), figure(most)

    def roofline_ms(work: Work) -> float:
        return 1e3 * max(work.nbytes / described.bandwidth, work.kernels * described.launch)

    figures = Compiled(
        seconds,
        cpu_seconds,
        of_both(lambda work: work.kernels),
        of_both(lambda work: work.iterations),
        of_both(lambda work: work.nbytes / limit),
        memory.temp_size_in_bytes / 1e6,
        of_both(roofline_ms),
    )
    return figures, executable


HEADINGS = (
    *("program", "compile, s", "compile, CPU s", "kernels", "iterations"),
    *("traffic / limit", "temporary MB", "roofline, ms"),
)


LIMIT = 900.0  # seconds after which a compiler is stopped


def row(name: str, figures: Compiled | None) -> list[str]:
    """A row of the table; a range where branches differ. Without figures it was stopped."""
    if figures is None:
        return [name, f"stopped after {LIMIT:.0f}"] + [""] * (len(HEADINGS) - 2)

    def cell(x: Any) -> str:
        values = x if isinstance(x, Sequence) else [x]
        return " to ".join(dict.fromkeys(harness.three_digits(value) for value in values))

    return [name, *map(cell, figures)]


def chosen(parts: Sequence[str]) -> list[str]:
    """Names of the programs whose names contain one of the parts; of all, if there are none."""
    return [name for name in PROGRAMS if not parts or any(part in name for part in parts)]


NOTE = "The programs were compiled but not run."


def main(
    platforms: Sequence[str] = tuple(ACCELERATORS),
    parts: Sequence[str] = (),
) -> None:
    """Compile programs for each accelerator, and publish."""
    results = harness.known("accelerators")
    for platform in platforms:
        found = results.setdefault(ACCELERATORS[platform].name, {})
        for name in chosen(parts):
            command = [sys.executable, "-m", "bench.accelerators", platform, "--json"]
            command += ["--only", name]
            try:
                run = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=LIMIT)
                found[name] = json.loads(run.stdout.splitlines()[-1])[name]
            except subprocess.TimeoutExpired:
                found[name] = None
    rows = [
        row(f"{device}: {name}", found[name] and Compiled(**found[name]))
        for device, found in results.items()
        for name in PROGRAMS
        if name in found
    ]
    units = "The columns are explained above the table."
    harness.publish("accelerators", results, HEADINGS, rows, NOTE, units, timed_on=None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.accelerators")
    parser.add_argument("platforms", nargs="*", help=" or ".join(ACCELERATORS))
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--json", action="store_true", help="print figures, publish nothing")
    options = parser.parse_args()
    if unknown := {*options.platforms} - {*ACCELERATORS}:
        parser.error(f"no platform is called {', '.join(unknown)}")
    if not options.json:
        main(options.platforms or [*ACCELERATORS], options.only)
    elif os.environ.get("XLA_FLAGS") != WORLD["XLA_FLAGS"]:
        again = [sys.executable, "-m", "bench.accelerators", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, **WORLD})
    else:
        figures = {}
        for name in chosen(options.only):
            figures[name] = compiled(PROGRAMS[name], options.platforms[0])._asdict()
            print(" | ".join(row(name, Compiled(**figures[name]))), file=sys.stderr, flush=True)
        print(json.dumps(figures))
