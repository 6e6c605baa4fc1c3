"""What the constants of the interval formulas do: coverage and width at half, once and twice.

Each constant is patched in all modules that imported it, in a fresh process, because programs that
were compiled before keep its old value; then the studies of the functions that it affects are run
as in `bench.simulations`. To add a constant, add a line to `CONSTANTS`.

`python -m bench constants` runs everything; `--rows` some of the constants, whose figures replace
those in bench/results/constants.json; `--quick` a tenth of the data sets, and writes nothing.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import jaxmetrics
from bench import harness, simulations
from bench.studies import STUDIES

SETS = 1000
SCALES = {"half": 0.5, "once": 1.0, "twice": 2.0}


class Constant(NamedTuple):
    """A number of the package, where its module defines it.

    Attributes:
        module: the name of the module.
        name: the name in the module.
        reason: the source of the value, or why it is needed, in the words of the guide.
        lines: by study, the beginnings of the lines of its tables that are shown.
    """

    module: str
    name: str
    reason: str
    lines: Mapping[str, tuple[str, ...]]


CONSTANTS: list[Constant] = [
    Constant(
        "jaxmetrics.intervals.tilting",
        "ADDED",
        "part of an example at the bound: without mistakes, the upper limit of an error rate is"
        " then 3.0 / n, that of the mid-p value",
        {"unpaired": ("`compare_unpaired`",), "means": ("`mean_interval(bounds=)`",)},
    ),
    Constant(
        "jaxmetrics.intervals.tilting",
        "ADDED_OF_CLUSTER",
        "part of the cluster that moves the metric most, for clusters that did not occur",
        {
            "clustered labels": ("`interval(",),
            "concentrated labels": ("`interval(",),
            "clustered scores": ("`compare_scores(bounds=",),
        },
    ),
    Constant(
        "jaxmetrics.intervals.judged",
        "_JUDGED",
        "share of the judge's labels in the table at which λ is computed; it only affects the"
        " width",
        {"judges": ("`prediction_powered`",)},
    ),
    Constant(
        "jaxmetrics.comparisons._rankings",
        "UNSEEN",
        "hypothetical examples for which only one classifier is correct (Agresti and Min 2005 add"
        " two)",
        {"leaderboards": ("`leaderboard`: some", "`leaderboard`: `winner")},
    ),
    Constant(
        "jaxmetrics.clusters",
        "COIN_TOSS",
        "variance of a coin toss, the largest of a proportion, added to sums of squares that may be"
        " 0 by chance (as Agresti and Coull 1998 add trials)",
        {
            "areas": ("`delong_interval`",),
            "precisions": ("`average_precision_interval`",),
            "two areas": ("`delong`, 5",),
        },
    ),
    Constant(
        "jaxmetrics.ranking.areas",
        "ADDED_BINOMIAL",
        "added to the binomial variance: if all placement values are 1, an example counts as two"
        " trials",
        {
            "areas": ("`delong_interval`",),
            "precisions": ("`average_precision_interval`",),
            "two areas": ("`delong`, 5",),
        },
    ),
    Constant(
        "jaxmetrics.comparisons.two_areas",
        "UNSEEN",
        "variance of the mistakes of one classifier that did not occur, for one positive",
        {"two precisions": ("`compare_average_precision",)},
    ),
    Constant(
        "jaxmetrics.comparisons.two_areas",
        "MOST_LOST",
        "most standard errors that are allowed for one more negative that is ranked first",
        {"two precisions": ("`compare_average_precision",)},
    ),
    Constant(
        "jaxmetrics.intervals.means",
        "FEW",
        "items that differ, up to which the largest possible difference is added (rule of three:"
        " Hanley and Lippman-Hand 1983)",
        {"paired scores": ("`compare_scores(bounds=",)},
    ),
    Constant(
        "jaxmetrics.intervals.means",
        "DECAY",
        "power with which the weight of the largest possible difference decreases",
        {"paired scores": ("`compare_scores(bounds=",)},
    ),
]


def key_of(constant: Constant) -> str:
    return f"{constant.module.removeprefix('jaxmetrics.')}.{constant.name}"


def patch(constant: Constant, scale: float) -> float:
    """Multiply a constant in all modules of the package, and return its former value."""
    for found in pkgutil.walk_packages(jaxmetrics.__path__, "jaxmetrics."):
        if not found.name.startswith(("jaxmetrics.cli", "jaxmetrics.plots", "jaxmetrics.__main__")):
            importlib.import_module(found.name)
    value: float = getattr(sys.modules[constant.module], constant.name)
    for name, module in list(sys.modules.items()):
        if name.startswith("jaxmetrics") and getattr(module, constant.name, None) is value:
            setattr(module, constant.name, scale * value)
    return value


def measure(index: int, scale: float, data_sets: int) -> tuple[float, dict[str, list[Any]]]:
    """The value of a constant, and at this multiple the figures by line of a study."""
    constant = CONSTANTS[index]
    value, found = patch(constant, scale), {}
    for study, shown in constant.lines.items():
        size = min(STUDIES[study].size, data_sets)
        for line, designs in simulations.simulate(study, size).items():
            if line.startswith(shown):
                found[f"{line}: {study}"] = list(designs.values())
    return value, found


def run(indices: Sequence[int], data_sets: int) -> dict[str, Any]:
    tasks = [(i, scale) for i in indices for scale in SCALES.values()]
    # A process for each, so that nothing is compiled or imported with another value.
    context, processes = get_context("spawn"), min(os.cpu_count() or 1, len(tasks))
    with ProcessPoolExecutor(processes, mp_context=context, max_tasks_per_child=1) as pool:
        found = list(pool.map(measure, *zip(*tasks, strict=True), [data_sets] * len(tasks)))
    results: dict[str, Any] = {}
    for (i, scale), (value, figures) in zip(tasks, found, strict=True):
        entry = results.setdefault(key_of(CONSTANTS[i]), {"value": value, "lines": {}})
        name = next(name for name, x in SCALES.items() if x == scale)
        for line, designs in figures.items():
            entry["lines"].setdefault(line, {})[name] = designs
    return results


def rows_of(results: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for constant in CONSTANTS:
        if key_of(constant) not in results:
            continue
        found = results[key_of(constant)]
        for i, (line, by_scale) in enumerate(found["lines"].items()):
            first = [f"`{key_of(constant)}` = {found['value']:.3g}", constant.reason]
            rows.append([*(first if i == 0 else ("", "")), line, *map(_cell, by_scale.values())])
    return rows


def _cell(designs: Sequence[Sequence[float | None]]) -> str:
    """Lowest and median coverage and median width, or the highest rate of a test."""
    if len(designs[0]) == len(simulations.Tests._fields):
        return f"{100 * max(x[0] or 0.0 for x in designs):.1f}"
    figures = np.array([[np.nan if x is None else x for x in of] for of in designs], float)
    covers, ratio = 100 * figures[:, 0], np.nanmedian(figures[:, 3])
    return f"{np.nanmin(covers):.1f}, {np.nanmedian(covers):.1f}; {ratio:.2f}"


HEADINGS = ["constant", "reason or source", "function and study", *SCALES]


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench constants")
    parser.add_argument("--quick", action="store_true", help="few data sets, nothing is written")
    names = [key_of(x) for x in CONSTANTS]
    parser.add_argument("--rows", nargs="+", default=names, choices=names)
    parser.add_argument("--sets", type=int, default=SETS, metavar="N", help="data sets per design")
    options = parser.parse_args(arguments)
    results = {} if options.quick else harness.known("constants")
    data_sets = options.sets // 10 if options.quick else options.sets
    results |= run([names.index(name) for name in options.rows], data_sets)
    results = {name: results[name] for name in names if name in results}
    if options.quick:
        print(harness.table(HEADINGS, rows_of(results)))
    else:
        harness.publish_tables("constants", results, {"constants": (HEADINGS, rows_of(results))})


if __name__ == "__main__":
    main(sys.argv[1:])
