"""Side-by-side timing: every contender in one process, repetitions interleaved, medians with their
spread.

A bench script lists contenders (name -> function without arguments that returns when its work is
done) per size, calls `measure`, adds the `limit` that memory or arithmetic set, and hands the
sweeps over sizes to `publish_times`. That writes `bench/results/NAME.json` with all figures, draws
`NAME.svg`, and writes the telling columns into the guide, where a page has a mark for them. On a
device other than a CPU the files are called `NAME.PLATFORM.json` and `.svg`, and pages stay as they
are.
"""

import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench import pictures

ROOT = Path(__file__).parent.parent
LIMIT = "limit"

Contender = Callable[[], Any]
# Median, lower_quartile, upper_quartile and first_call in seconds; of a limit the median alone.
Figures = dict[str, Any]
Results = dict[str, Figures]  # contender -> its figures
Sweep = dict[int, Results]  # size -> results


def measure(
    contenders: Mapping[str, Contender],
    *,
    check: Callable[[dict[str, Any]], None] | None = None,
    factors: Mapping[str, float] | None = None,
    repetitions: int = 30,
    seconds: float = 1.0,
) -> Results:
    """Median, quartiles and first call (warm-up and compilation) of each contender, in seconds.

    The contenders take turns in changing order, so that a busy moment of the machine, and threads
    that one leaves spinning, hit all. Each runs as often as fits into `seconds`, at least 3 times
    and at most `repetitions`.

    Args:
        contenders: functions without arguments.
        check: is given what each returned at its first call, and raises if they do not agree.
        factors: for contenders that do a part of the job, or many jobs at once: what their times,
            but not their first call, are multiplied by.
        repetitions: at most.
        seconds: per contender.
    """
    first, values = {}, {}
    for name, run in contenders.items():
        start = time.perf_counter()
        values[name] = jax.block_until_ready(run())
        first[name] = time.perf_counter() - start
    if check:
        check(values)
    del values
    times = {name: [_seconds(run)] for name, run in contenders.items()}
    wanted = {name: min(max(3, int(seconds / t[0])), repetitions) for name, t in times.items()}
    orders = random.Random(0)
    for _ in range(max(wanted.values()) - 1):
        for name in orders.sample(list(contenders), len(contenders)):
            if len(times[name]) < wanted[name]:
                times[name].append(_seconds(contenders[name]))
    results = {}
    for name, t in times.items():
        low, median, high = np.percentile(t, [25, 50, 75]) * (factors or {}).get(name, 1.0)
        results[name] = {
            "median": median,
            "lower_quartile": low,
            "upper_quartile": high,
            "first_call": first[name],
        }
    return results


def _seconds(run: Contender) -> float:
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def limit(*, nbytes: float = 0, flops: float = 0, dtype: str = "float32") -> Figures:
    """What no program can beat: passing on so many bytes once, or so many operations, whichever
    takes longer.
    """
    return {
        "median": max(nbytes and nbytes / bandwidth(), flops and flops / arithmetic_rate(dtype))
    }


@cache
def bandwidth() -> float:
    """Bytes per second of memory: the best of twenty passes over an array much larger than the
    caches.
    """
    # 1 GiB, summed in rows: XLA gives each core some of them.
    rows = jnp.ones((1024, 2**18), jnp.float32)
    return rows.nbytes / _best(jax.jit(lambda x: x.sum(1)), rows)


@cache
def arithmetic_rate(dtype: str = "float32") -> float:
    """Floating-point operations per second: the best of twenty products of large matrices, summed
    in float32.
    """
    # So long that the call itself does not count, and no longer.
    side = 2048 if jax.default_backend() == "cpu" else 8192
    matrix = jnp.ones((side, side), dtype)
    return (
        2
        * side**3
        / _best(jax.jit(lambda x: jnp.matmul(x, x, preferred_element_type=jnp.float32)), matrix)
    )


def _best(run: Callable[[jax.Array], jax.Array], argument: jax.Array) -> float:
    return min(_seconds(lambda: run(argument)) for _ in range(21))  # the first of them compiles


def bandwidth_in_words() -> str:
    return f"{three_digits(bandwidth() / 1e9)} GB/s"


def rate_in_words(dtype: str = "float32") -> str:
    return f"{three_digits(arithmetic_rate(dtype) / 1e9)} GFLOP/s in {dtype}"


def cell(figures: Figures | str, per_second: float = 1e3) -> str:
    """Median and quartiles, in milliseconds unless said otherwise, as a cell of a table; a limit
    has no quartiles.
    """
    if isinstance(figures, str):
        return figures
    low, median, high = (
        three_digits(per_second * figures[key if key in figures else "median"])
        for key in ("lower_quartile", "median", "upper_quartile")
    )
    return f"{median} ({low}-{high})" if "lower_quartile" in figures else median


def three_digits(x: float) -> str:
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def publish_times(
    name: str,
    job: str,
    sweeps: Mapping[str, Sweep],
    columns: Mapping[str, Mapping[str, Figures | str]],
    note: str,
    *,
    per_second: float = 1e3,
) -> None:
    """Publish sweeps over sizes: all in the JSON and the picture, in the guide those that are
    `columns`, {heading: results}.

    Args:
        name: of the script.
        job: what is timed, the heading of the contenders' column.
        sweeps: {what grows: {size: results}}, a panel of the picture each. Results hold the entry
            `LIMIT`.
        columns: figures of results, or text.
        note: what the reader must know, the limit included.
        per_second: the unit of the table, 1e3 for milliseconds or 1e6 for microseconds.
    """
    names = [
        name
        for name in dict.fromkeys(name for column in columns.values() for name in column)
        if name != LIMIT
    ]
    rows = [
        [name, *(cell(column.get(name, ""), per_second) for column in columns.values())]
        for name in [*names, LIMIT]
    ]
    rows.append(
        ["first call of jaxmetrics, s", *(_first_call(column) for column in columns.values())]
    )
    unit = {1e3: "milliseconds", 1e6: "microseconds"}[per_second]
    units = f"Times are medians in {unit}, with the lower and the upper quartile in parentheses."
    publish(name, sweeps, [job, *columns], rows, note, units, sweeps)


def _first_call(column: Mapping[str, Figures | str]) -> str:
    """Of the first contender that is ours, with its compilation."""
    ours = next((x for name, x in column.items() if "jaxmetrics" in name), "")
    return "" if isinstance(ours, str) else f"{ours['first_call']:.2f}"


def publish(
    name: str,
    results: Mapping[str, Any],
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    note: str,
    units: str,
    sweeps: Mapping[str, Sweep] | None = None,
    *,
    timed_on: str | None = "cpu",
) -> None:
    """Print the table; write all figures into bench/results/, with a picture of the sweeps, and the
    table into the guide, if they were timed on the platform of which the guide speaks. What is not
    timed, None, is the same on every device, and has one file.
    """
    device = jax.devices()[0]
    cpu = f"{platform.machine()} CPU"
    is_for_guide = timed_on in (None, device.platform)
    machine = f"jax {jax.__version__}"
    if timed_on is not None:
        gpu = device.device_kind
        if timed_on == "cpu":
            gpu += f", NumPy, scikit-learn and torch on its {cpu}"
        machine = f"{cpu if device.platform == 'cpu' else gpu}, {machine}"
    where = f"on an {machine.replace(', jax', ' with jax')}" if timed_on else f"with {machine}"
    source = f"The command `python -m bench.{name}` gave these results, {where}."
    text = f"{table(headings, rows)}\n\n{note} {units} {source}"
    print(text)
    path = store(f"{name}{'' if is_for_guide else '.' + device.platform}", machine, results)
    if sweeps:
        picture = path.with_suffix(".svg")
        pictures.save(pictures.draw(sweeps), picture)
        text += f"\n\n![{_in_words(headings[0], sweeps)}](../bench/results/{picture.name})"
    if is_for_guide:
        insert(name, text)


def publish_tables(
    name: str,
    results: Mapping[str, Any],
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[str]]]],
) -> None:
    """Print tables of what is the same on every device, by the names of their marks in the guide;
    write their figures into bench/results/ and the tables into the guide.
    """
    machine = f"jax {jax.__version__}"
    store(name, machine, results)
    for mark, (headings, rows) in tables.items():
        source = f"The command `python -m bench {name}` gave these results, with {machine}."
        text = f"{table(headings, rows)}\n\n{source}"
        print(f"{text}\n")
        insert(mark, text)


def in_new_process(script: str, name: str, **settings: str) -> Figures:
    """What `python -m bench.script name` prints as JSON, in a process that has compiled nothing."""
    command = [sys.executable, "-m", f"bench.{script}", name]
    process = subprocess.run(
        command, cwd=ROOT, env=os.environ | settings, check=True, stdout=subprocess.PIPE
    )
    figures: Figures = json.loads(process.stdout)
    return figures


def status(entry: str) -> int:
    """Bytes, as Linux says; a process inherits the `ru_maxrss` of the one that started it."""
    [kilobytes] = re.findall(rf"{entry}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)


def known(name: str) -> dict[str, Any]:
    """Results that `store` wrote; a dict without entries if there is no such file."""
    path = ROOT / "bench" / "results" / f"{name}.json"
    results: dict[str, Any] = {}
    return json.loads(path.read_text("utf-8"))["results"] if path.exists() else results


def store(name: str, machine: str, results: Mapping[str, Any]) -> Path:
    """Write all figures into bench/results/, and return the path of the file."""
    path = ROOT / "bench" / "results" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    figures = json.dumps({"machine": machine, "results": results}, indent=1)
    # A list of numbers is one line.
    figures = re.sub(r"\[[^][{}\"]*\]", lambda numbers: " ".join(numbers[0].split()), figures)
    path.write_text(figures + "\n", encoding="utf-8")
    return path


def insert(name: str, text: str) -> None:
    """Write a text between the marks of that name in the README and the pages of the guide."""
    for path in (*ROOT.glob("README.md"), *ROOT.glob("notebooks/*.md")):
        page, found = re.subn(
            rf"(?s)(<!-- bench:{name} -->\n).*?(<!-- /bench -->)",
            lambda match: f"{match[1]}\n{text}\n{match[2]}",
            path.read_text(encoding="utf-8"),
        )
        if found:
            path.write_text(page, encoding="utf-8")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = (headings, ["---"] * len(headings), *rows)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _in_words(job: str, sweeps: Mapping[str, Sweep]) -> str:
    """What the picture shows, for those who cannot see it: the first panel's largest size at which
    there are peers.
    """
    what, sweep = next(iter(sweeps.items()))
    size = max(sweep, key=lambda size: (len(sweep[size]), size))
    medians = "; ".join(
        f"{cell({'median': figures['median']})} ms for `{name}`"
        for name, figures in sweep[size].items()
    )
    plots = "Each plot shows how the time depends on the size of the problem, on logarithmic axes."
    return f'{job}. {plots} At the size "{size:,} {what}", the median time is {medians}.'
