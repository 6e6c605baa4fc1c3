"""Coverage, width and size of what is in no grid of `coverage` and `joint_coverage`.

Of the studies of `bench.studies`, three tables are published: of intervals the coverage and the
width, of tests and other statements how often they reject what is true, and numbers that each
design has for itself. The width is divided by 3.92 standard deviations of the estimate over the
data sets, which an interval of an unbiased normal estimate with known variance would have (the
oracle's width), so that intervals that are too wide are seen as well as those that are too narrow.

`python -m bench simulations` runs everything, on all cores; `--rows` some of the studies, whose
figures replace those in bench/results/simulations.json and leave the others as they are (without a
name it only writes the tables again); `--quick` a tenth of the data sets, and writes nothing;
`--sets` so many data sets per design at most.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import jax
import numpy as np

from bench import coverage, harness
from bench.studies import STUDIES, Outcome

Z = 1.959964
Stored = Mapping[str, Mapping[str, list[float] | dict[str, float]]]  # line -> design -> figures


class Intervals(NamedTuple):
    """Of one design; shares are of the data sets with an interval."""

    covers: float
    above: float  # the interval lies above the truth
    below: float
    ratio: float  # of the width to that of the oracle
    undefined: float  # share of data sets without an interval
    data_sets: int


class Tests(NamedTuple):
    """Of one design: how often what is true is rejected. There are 0 data sets if it is exact."""

    rejects: float
    data_sets: int


def figures_of(outcome: Outcome) -> Intervals | Tests | dict[str, float]:
    """Figures of intervals `(N,)`, or `(N, V)` that must all cover, of tests, or of numbers."""
    if isinstance(outcome, dict):
        return {name: float(x) for name, x in outcome.items()}
    if not isinstance(outcome, tuple):
        return Tests(float(np.mean(outcome)), np.size(outcome) if np.ndim(outcome) else 0)
    estimate, truth = outcome
    value, low, high = (
        np.asarray(x, float).reshape(len(x), -1)
        for x in (estimate.value, estimate.low, estimate.high)
    )
    known = ~np.isnan(high - low).any(-1)
    if not known.any():
        return Intervals(np.nan, np.nan, np.nan, np.nan, 1.0, len(known))
    truth = np.reshape(truth, (-1, 1)) if np.ndim(truth) and len(truth) == len(low) else truth
    truth = np.broadcast_to(truth, low.shape)[known]
    value, low, high = value[known], low[known], high[known]
    room = 1e-9  # of rounding
    above, below = (low > truth + room).any(-1), (high < truth - room).any(-1)
    error = np.std(value[:, -1] - truth[:, -1])
    return Intervals(
        covers=1 - (above | below).mean(),
        above=above.mean(),
        below=below.mean(),
        ratio=(high - low)[:, -1].mean() / (2 * Z * error) if error > 0 else np.nan,
        undefined=1 - known.mean(),
        data_sets=known.size,
    )


def simulate(name: str, data_sets: int) -> Stored:
    """Figures of a study, by the line of a table and by design."""
    study = STUDIES[name]
    found: dict[str, dict[str, Any]] = {}
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of few and of unequal clusters
        for design in study.designs:
            key = " ".join(map(str, design))
            rng = np.random.default_rng(list(map(ord, name + key)))
            for line, addition, outcome in study.simulate(rng, data_sets, *design):
                figures = figures_of(outcome)
                rounded = (
                    {x: coverage.rounded(v) for x, v in figures.items()}
                    if isinstance(figures, dict)
                    else [coverage.rounded(x) for x in figures]
                )
                found.setdefault(line, {})[f"{key} {addition}".strip()] = rounded
    return found


def _timed(name: str, data_sets: int) -> tuple[Stored, float]:
    start = time.perf_counter()
    return simulate(name, data_sets), time.perf_counter() - start


def _hurry() -> None:
    """Compile with few optimizations, where few data sets are simulated."""
    jax.config.update("jax_disable_most_optimizations", True)


def run(
    names: Sequence[str], size_of: Callable[[str], int], quick: bool = False
) -> dict[str, Stored]:
    """Simulate studies, each in one of as many processes as there are cores."""
    sizes = [size_of(name) for name in names]
    results = {}
    processes = max(min(os.cpu_count() or 1, len(names)), 1)
    # JAX has threads, which do not survive a fork.
    context, hurry = get_context("spawn"), _hurry if quick else None
    with ProcessPoolExecutor(processes, mp_context=context, initializer=hurry) as pool:
        for name, size, (found, seconds) in zip(
            names, sizes, pool.map(_timed, names, sizes), strict=True
        ):
            results[name] = found
            print(f"{name}: {seconds:.0f} s for {size} data sets", file=sys.stderr, flush=True)
    return results


# Tables


def lines_of(
    results: Mapping[str, Stored], kind: type[Intervals] | type[Tests]
) -> Iterator[tuple[str, str, list[Any]]]:
    """The lines of a table: its name, the simulated data, and the figures of each design."""
    for name, found in results.items():
        for line, designs in found.items():
            figures = list(designs.values())
            if isinstance(figures[0], dict) or len(figures[0]) != len(kind._fields):
                continue
            known = np.array(figures, float).tolist()  # None is NaN
            yield line, STUDIES[name].data, [kind(*x) for x in known]


def interval_rows(results: Mapping[str, Stored]) -> list[list[str]]:
    rows = []
    for line, data, figures in lines_of(results, Intervals):
        covers = [100 * x.covers for x in figures]
        side = 100 * np.nanmax([max(x.above, x.below) for x in figures])
        ratios = [x.ratio for x in figures if not np.isnan(x.ratio)]
        widths = f"{np.median(ratios):.2f}, {max(ratios):.2f}" if ratios else ""
        rows.append(
            [
                line,
                data,
                f"{len(figures)} x {figures[0].data_sets:.0f}",
                f"{np.nanmin(covers):.1f}-{np.nanmax(covers):.1f}",
                ", ".join(f"{x:.1f}" for x in np.nanquantile(covers, (0.05, 0.5, 0.95))),
                f"{side:.1f}",
                widths,
                f"{100 * max(x.undefined for x in figures):.1f}",
            ]
        )
    return rows


def test_rows(results: Mapping[str, Stored]) -> list[list[str]]:
    rows = []
    for line, data, figures in lines_of(results, Tests):
        rejects = [100 * x.rejects for x in figures]
        number = figures[0].data_sets
        rows.append(
            [
                line,
                data,
                f"{len(figures)} x {number:.0f}" if number else f"{len(figures)}, exact",
                *(f"{x:.1f}" for x in (min(rejects), np.median(rejects), max(rejects))),
            ]
        )
    return rows


def number_rows(results: Mapping[str, Stored]) -> list[list[str]]:
    rows = []
    for name, found in results.items():
        for line, designs in found.items():
            for key, shown in designs.items():
                if isinstance(shown, dict):
                    texts = "; ".join(f"{x} {_written(v)}" for x, v in shown.items())
                    rows.append([line, f"{STUDIES[name].data}: `{key}`", texts])
    return rows


def _written(x: float | None) -> str:
    return "undefined" if x is None else f"{x:,.0f}" if x >= 100 else f"{x:.3f}"


Rows = Callable[[Mapping[str, Stored]], list[list[str]]]
TABLES: dict[str, tuple[str, Rows]] = {
    "simulations, intervals": (
        "interval; simulated data; designs x sets; coverage; 5, 50, 95 %; one side; width; none",
        interval_rows,
    ),
    "simulations, tests": (
        "test or statement; simulated data; designs x sets; lowest; median; highest",
        test_rows,
    ),
    "simulations, numbers": ("figure; simulated data; result", number_rows),
}


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench simulations")
    parser.add_argument("--quick", action="store_true", help="few data sets, nothing is written")
    parser.add_argument("--rows", nargs="*", default=None, metavar="STUDY")
    parser.add_argument("--sets", type=int, metavar="N", help="data sets per design, at most")
    options = parser.parse_args(arguments)
    names = options.rows
    if names is None:
        names = [name for name, x in STUDIES.items() if not (options.quick and x.is_slow)]
    if unknown := set(names) - set(STUDIES):
        parser.error(f"no study is named {', '.join(unknown)}; there are {', '.join(STUDIES)}.")

    def size_of(name: str) -> int:
        size = STUDIES[name].size
        if options.quick:
            size = max(size // 10, min(size, 10))
        return min(size, options.sets or size)

    results = {} if options.quick else harness.known("simulations")
    results |= run(names, size_of, options.quick)
    results = {name: results[name] for name in STUDIES if name in results}
    tables = {mark: (text.split("; "), rows(results)) for mark, (text, rows) in TABLES.items()}
    if options.quick:
        print("\n\n".join(harness.table(*x) for x in tables.values()))
    else:
        harness.publish_tables("simulations", results, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
