"""From which size on the device is faster than the host, with and without its compilation."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from bench.harness import Results, Sweep, measure, publish, three_digits

K = 10
HOST, DEVICE = "jaxmetrics, host", "jaxmetrics, device"
FIRST = f"{DEVICE}, first call"


class Job(NamedTuple):
    """What is called on data of a size; `data` are NumPy's, and the device is given copies."""

    unit: str
    sizes: Sequence[int]
    data: Callable[[int], tuple[np.ndarray, ...]]
    call: Callable[..., Any]


def matrices(n: int) -> tuple[np.ndarray, ...]:
    some = np.random.default_rng(0).multinomial(100, np.full(K, 1 / K), (1000, K))
    return (np.resize(some + 40 * np.eye(K), (n, K, K)),)


def labels(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return rng.integers(0, K, n, np.int32), rng.integers(0, K, n, np.int32)


def probabilities(n: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    prob = rng.random(n, np.float32)
    return (rng.random(n) < prob).astype(np.int32), prob


JOBS = {
    "macro F1": Job("matrices", [10**e for e in range(7)], matrices, jm.macro(jm.f1)),
    "likelihood interval of macro F1": Job(
        "matrices",
        [1, 10, 100, 1000],
        matrices,
        lambda counts: jm.interval(jm.macro(jm.f1), counts),
    ),
    "posterior balanced accuracy, interval": Job(
        "matrices",
        [1, 10, 100, 1000],
        matrices,
        lambda counts: jm.balanced_accuracy_posterior(counts).interval(),
    ),
    "bootstrap of macro F1": Job(
        "replicates",
        [10**3, 10**4, 10**5],
        lambda n: (matrices(1)[0][0], np.zeros(n)),  # of which the number alone matters
        lambda counts, x: jm.interval(
            jm.macro(jm.f1), counts, method=jm.Bootstrap(0, num_samples=len(x))
        ),
    ),
    "confusion matrix": Job(
        "examples",
        [10**e for e in range(3, 9)],
        labels,
        lambda y_true, y_pred: jm.confusion_matrix(y_true, y_pred, num_classes=K),
    ),
    "calibration error": Job(
        "examples", [10**e for e in range(3, 8)], probabilities, jm.calibration_error
    ),
}


def sweep(job: Job) -> Sweep:
    return {n: both(job, n) for n in job.sizes}


def both(job: Job, n: int) -> Results:
    data = job.data(n)
    copies = jax.block_until_ready([jnp.asarray(x) for x in data])
    jax.clear_caches()  # a program of another size holds parts of this one
    contenders = {HOST: lambda: job.call(*data), DEVICE: lambda: job.call(*copies)}
    results = measure(contenders, repetitions=10, seconds=0.5)
    return results | {FIRST: {"median": results[DEVICE]["first_call"]}}


def crossing(found: Sweep, ours: str) -> str:
    """The size from which on `ours` is faster than the host, between sizes by their logarithms."""
    sizes = sorted(found)
    behind = [math.log(found[n][ours]["median"] / found[n][HOST]["median"]) for n in sizes]
    slower = [i for i, x in enumerate(behind) if x > 0]
    if not slower:
        return "any"
    i = slower[-1]
    if i == len(sizes) - 1:
        return f"more than {sizes[-1]:,}"
    part = behind[i] / (behind[i] - behind[i + 1])
    size = math.exp(math.log(sizes[i]) * (1 - part) + math.log(sizes[i + 1]) * part)
    return f"{float(f'{size:.1g}'):,.0f}"


def main() -> None:
    sweeps = {name: sweep(job) for name, job in JOBS.items()}
    headings = ["the device is faster from", "compiled", "with its compilation", "times faster"]
    rows = []
    for name, found in sweeps.items():
        last = found[max(found)]
        faster = three_digits(last[HOST]["median"] / last[DEVICE]["median"])
        ends = (crossing(found, ours) for ours in (DEVICE, FIRST))
        rows.append([f"{name}, {JOBS[name].unit}", *ends, f"{faster} at {max(found):,}"])
    pictures = {f"{JOBS[name].unit}, {name}": found for name, found in sweeps.items()}
    publish(
        "crossing",
        sweeps,
        headings,
        rows,
        f"There are {K} classes, and each confusion matrix contains the counts of"
        f" {100 * K + 40 * K:,} examples. NumPy computes in float64, and JAX computes in float32."
        " The column `compiled` shows the size from which JAX is faster if its program is already"
        " compiled. In the column `with its compilation`, the time of JAX includes the compilation."
        " `any` means that JAX is faster for all measured sizes. `more than` means that JAX is"
        " still slower at the largest measured size. The column `times faster` compares JAX"
        " without its compilation with NumPy, at the largest measured size. The sizes in the table"
        " are interpolated between the measured sizes, and are rounded to one digit.",
        "The last word in the name of a row says what the sizes count: matrices, replicates or"
        " examples.",
        pictures,
    )


if __name__ == "__main__":
    main()
