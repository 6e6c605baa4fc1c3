"""Side-by-side timing: every contender in one process, repetitions interleaved, medians with their spread.

A bench script lists contenders (name -> function without arguments that returns when its work is done) per setting, calls
`measure`, and hands the rows to `publish`, which writes `bench/results/NAME.json` and the table in the README.
"""

import json
import platform
import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

ROOT = Path(__file__).parent.parent

Contender = Callable[[], Any]


def measure(contenders: Mapping[str, Contender], *, repetitions: int = 9, slow: float = 0.3) -> dict[str, dict[str, float]]:
    """Median, quartiles and first call (warm-up and compilation) of each contender, in seconds.

    The contenders take turns in changing order, so that a busy moment of the machine, and threads that one leaves spinning,
    hit all; one slower than `slow` runs three times.
    """
    first, times = {}, {name: [] for name in contenders}
    for name, run in contenders.items():
        first[name] = _seconds(run)
        _seconds(run)
    once = {name: _seconds(run) for name, run in contenders.items()}
    orders = random.Random(0)
    for i in range(repetitions):
        for name in orders.sample(list(contenders), len(contenders)):
            if once[name] < slow or i < 3:
                times[name].append(_seconds(contenders[name]))
    quartiles = {name: np.percentile(t, [25, 50, 75]) for name, t in times.items()}
    return {
        name: {"median": q[1], "lower_quartile": q[0], "upper_quartile": q[2], "first_call": first[name]}
        for name, q in quartiles.items()
    }


def _seconds(run: Contender) -> float:
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def milliseconds(result: Mapping[str, float]) -> str:
    """Median and quartiles, as a cell of a table."""
    low, median, high = (_three_digits(1e3 * result[key]) for key in ("lower_quartile", "median", "upper_quartile"))
    return f"{median} ({low}-{high})"


def _three_digits(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def publish(
    name: str,
    results: Mapping[str, Any],
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    note: str,
    unit: str = "Milliseconds, median (quartiles)",
) -> None:
    """Print the table; write it into the README and all figures into bench/results/NAME.json."""
    device = jax.devices()[0]
    machine = f"{device.device_kind if device.platform != 'cpu' else platform.machine() + ' CPU'}, jax {jax.__version__}"
    lines = ["| " + " | ".join(cells) + " |" for cells in (headings, ["---"] * len(headings), *rows)]
    table = "\n".join([*lines, "", f"{note} {unit}; {machine}. `python -m bench.{name}`"])
    print(table)
    path = ROOT / "bench" / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n", encoding="utf-8")
    readme = ROOT / "README.md"
    text, found = re.subn(
        rf"(?s)(<!-- bench:{name} -->\n).*?(<!-- /bench -->)",
        lambda match: f"{match[1]}\n{table}\n{match[2]}",
        readme.read_text(encoding="utf-8"),
    )
    if found:
        readme.write_text(text, encoding="utf-8")
