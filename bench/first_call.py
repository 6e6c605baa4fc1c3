"""What a person waits for who asks once: import, first and second call, beside four peers.

Each of thirty typical calls runs in fresh processes, with data on the host and on the device.
`python -m bench.first_call roc_auc report` prints the calls whose names hold one of these words,
and publishes nothing.
"""

import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bench.calls import CALLS, DEVICE, HOST, MODULES, OURS, REPLICATES
from bench.harness import ROOT, publish, table, three_digits

PROCESSES = 3  # of a call and side
MOST_MORE = 0.15  # seconds, on the device, if a person reads the result and nothing is drawn
NOTE = (
    "Each cell shows the time of the first call and, after the comma, the time of the second call."
    f" The time of the first call is the median of {PROCESSES} processes, with the fastest and the"
    " slowest process in parentheses. A library is imported only once. The data are 1000 examples"
    " of 10 classes. The times of metrics, such as `accuracy`, include the time for counting the"
    " labels. Posteriors, bootstrap intervals (BCa) and intervals of the delta method (`Delta`)"
    " are computed from a given confusion matrix."
    f" Bootstraps and sampled posteriors draw {REPLICATES} replicates, and permutation tests draw"
    " 10,000 permutations. In the column `SciPy`, the bootstrap resamples the examples and calls"
    " scikit-learn to compute F1. In the row `report`, scikit-learn computes no intervals."
    " prob_conf_mat compares two classifiers as if they had been tested on different examples."
    " All libraries are imported before a call is timed. Only SciPy's special functions are"
    " imported in the first call that needs them."
)


Process = dict[str, float]  # what bench.calls prints
Sides = dict[str, list[Process]]


def fresh(name: str, side: str) -> Process | str:
    """What a process of its own measures, or the last line that it wrote before it died."""
    # No program is found compiled on the disk, and a GPU's memory is left to whoever has it.
    settings = {
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        "JAX_TRACEBACK_FILTERING": "off",  # or the last line is about frames left out
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    process = subprocess.run(
        [sys.executable, "-m", "bench.calls", name, side],
        cwd=ROOT,
        env=os.environ | settings,
        capture_output=True,
        text=True,
    )
    if process.returncode:
        return [f"exit status {process.returncode}", *process.stderr.strip().splitlines()][-1]
    return json.loads(process.stdout.splitlines()[-1])


def measure(names: Sequence[str]) -> tuple[dict[str, Sides], dict[str, str]]:
    """The processes of each call, one at a time, and why a call failed.

    The calls take turns, so that a busy moment of the machine does not hit all processes of one.
    First each library is imported once, so that its files are byte code, and in memory.
    """
    jobs = [(name, side) for name in names for side in (*OURS, *CALLS[name].peers)]
    for module in {MODULES[side] for _, side in jobs}:
        subprocess.run([sys.executable, "-c", f"import {module}"], cwd=ROOT, check=True)
    calls: dict[str, Sides] = {name: {side: [] for side in MODULES} for name in names}
    failures = dict[str, str]()
    for _ in range(PROCESSES):
        for name, side in jobs:
            label = f"{name}, {side}"
            if label in failures:
                continue
            process = fresh(name, side)
            if isinstance(process, str):
                failures[label] = process
            else:
                calls[name][side].append(process)
    return calls, failures


def spread(processes: Sequence[Process], key: str) -> str:
    """Median (fastest-slowest), in milliseconds."""
    seconds = [process[key] for process in processes]
    if not seconds:
        return ""
    low, middle, high = (three_digits(1e3 * of(seconds)) for of in (min, statistics.median, max))
    return f"{middle} ({low}-{high})"


def cell(processes: Sequence[Process]) -> str:
    """First call, second call."""
    second = spread(processes, "second").partition(" ")[0]
    return f"{spread(processes, 'first')}, {second}" if processes else ""


def verdict(name: str, sides: Sides) -> str:
    """Whether the first call on the host, in the median, stays below its bar."""
    bar = CALLS[name].bar
    if bar is None:
        return ""
    firsts = [process["first"] for process in sides[HOST]]
    passed = bool(firsts) and statistics.median(firsts) <= bar
    return f"{1e3 * bar:g}: {'pass' if passed else '**fail**'}"


def rows(calls: dict[str, Sides]) -> list[list[str]]:
    of_sides = {side: [p for sides in calls.values() for p in sides[side]] for side in MODULES}
    imports = ["import", "", *(spread(processes, "import") for processes in of_sides.values())]
    named = ([name, verdict(name, s), *map(cell, s.values())] for name, s in calls.items())
    return [imports, *named]


def compiling(calls: dict[str, Sides], side: str, which: str) -> str:
    """The calls for which XLA compiled programs, and how many."""
    key = f"programs, {which}"
    programs = {name: max((p[key] for p in s[side]), default=0) for name, s in calls.items()}
    return ", ".join(f"{name} ({n})" for name, n in programs.items() if n) or "none"


def seconds_more(sides: Sides) -> float:
    """By how much the first call takes longer on the device than on the host, in the median."""
    first = {side: [process["first"] for process in sides[side]] or [math.nan] for side in OURS}
    return round(statistics.median(first[DEVICE]) - statistics.median(first[HOST]), 2)


def figures(name: str, sides: Sides) -> dict[str, Any]:
    """For the file: every process."""
    return {"verdict": verdict(name, sides)} | {side: each for side, each in sides.items() if each}


def main(words: Sequence[str] = ()) -> None:
    names = [name for name in CALLS if not words or any(word in name for word in words)]
    calls, failures = measure(names)
    headings = ["call", "bar on the host", *MODULES]
    if words:
        print(table(headings, rows(calls)))
    else:
        results = {name: figures(name, sides) for name, sides in calls.items()}
        publish("first_call", results, headings, rows(calls), NOTE, "Times are in milliseconds.")
    verdicts = [verdict(name, sides) for name, sides in calls.items()]
    print(f"\nbars: {sum('pass' in v for v in verdicts)} of {sum(map(bool, verdicts))} pass")
    print(f"programs compiled on the host: {compiling(calls, HOST, 'first')}")
    slower = {name: times for name, s in calls.items() if (times := seconds_more(s)) > MOST_MORE}
    print(f"first calls on the device more than {MOST_MORE} s slower than on the host: {slower}")
    for side in OURS:
        print(f"programs compiled at the second call, {side}: {compiling(calls, side, 'second')}")
    for label, why in failures.items():
        print(f"failed: {label}: {why}")


if __name__ == "__main__":
    main(sys.argv[1:])
