"""Exact coverage of intervals of proportions, computed from the binomial distribution.

The coverage is piecewise smooth in the true proportion p, with jumps at the ends of the intervals.
Between jumps it is a binomial probability of an interval of counts, whose minimum over a piece is
at one of its ends, as it first rises and then falls. So the infimum is found among the limits from
the left and the right at all ends. Nothing is drawn. Of differences of two accuracies on the same
examples, the minimum is over a grid of both probabilities that only one classifier is right.

`python -m bench proportions`; `--quick` for few numbers of examples, and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import special

import jaxmetrics as jm
from bench import harness


def _proportion(method: Any, k: np.ndarray, n: int, level: float) -> Any:
    return jm.proportion_interval(k, n, level=level, method=method)


METHODS: dict[str, Callable[[np.ndarray, int, float], Any]] = {
    **{
        f"`proportion_interval`, {method}": partial(_proportion, method)
        for method in ("wilson", "agresti_coull", "jeffreys", "clopper_pearson")
    },
    "`interval(accuracy)`": lambda k, n, level: jm.interval(
        jm.accuracy, np.stack([0 * k, 0 * k, n - k, k], -1).reshape(-1, 2, 2), level=level
    ),
}
SIZES = (10, 50, 200, 1000)
LEVELS = (0.95, 0.999)
PAIRS = (20, 50)


def exact(low: np.ndarray, high: np.ndarray, fewest: float = 0.0) -> dict[str, float]:
    """Infimum of the coverage of intervals of k = 0, ..., n, and the p where it is attained, over
    all p for which at least `fewest` mistakes and right examples are expected; and the greatest
    probability that an interval lies on one side of p.
    """
    n = len(low) - 1
    ends = np.unique(np.concatenate([low, high, [fewest / n, 1 - fewest / n]]))
    ends = ends[(ends >= fewest / n) & (ends <= 1 - fewest / n) & (ends > 0) & (ends < 1)]
    result = {"covers": 1.0, "p": np.nan, "side": 0.0}
    for step in (-1e-10, 1e-10):  # limits from both sides
        p = np.clip(ends + step, max(fewest / n, 1e-12), min(1 - fewest / n, 1 - 1e-12))
        # The intervals that contain p are those of consecutive k, as ends increase with k.
        first, last = np.searchsorted(high, p), np.searchsorted(low, p, "right") - 1
        below = np.where(first > 0, special.bdtr(np.maximum(first - 1, 0), n, p), 0)
        above = np.where(last < n, special.bdtrc(np.maximum(last, 0), n, p), 0)
        covers = 1 - below - above
        i = covers.argmin()
        if covers[i] < result["covers"]:
            result |= {"covers": float(covers[i]), "p": float(p[i])}
        result["side"] = max(result["side"], float(np.max(np.maximum(below, above))))
    return result


def exact_pairs(n: int, steps: int = 40) -> dict[str, float]:
    """Minimum over a grid of the probabilities q_a and q_b that only A, only B is right."""
    b, c = (x.ravel() for x in np.mgrid[: n + 1, : n + 1])
    b, c = b[b + c <= n], c[b + c <= n]
    rest = n - b - c
    # Truth 1; both wrong or both right does not matter.
    tables = np.stack([0 * b] * 4 + [rest, c, b, 0 * b], -1).reshape(-1, 2, 2, 2)
    found = jm.paired_difference_interval(tables)
    ways = special.gammaln(n + 1) - sum(special.gammaln(x + 1) for x in (b, c, rest))
    result = {"covers": 1.0, "q": np.nan, "difference": np.nan}
    grid = np.linspace(0, 1, steps + 1)[1:] ** 2 / 2
    for q_a in grid:
        for q_b in grid[grid <= q_a]:
            log = ways + special.xlogy(b, q_a) + special.xlogy(c, q_b)
            pmf = np.exp(log + special.xlogy(rest, max(1 - q_a - q_b, 0)))
            is_covered = (found.low <= q_a - q_b + 1e-9) & (found.high >= q_a - q_b - 1e-9)
            covers = float(pmf @ is_covered)
            if covers < result["covers"]:
                result = {"covers": covers, "q": float(q_a + q_b), "difference": float(q_a - q_b)}
    return result


def rows_of(results: dict[str, Any]) -> list[list[str]]:
    rows = []
    for key, found in results.items():
        method, n, level = key.split("; ")
        cells = [
            f"{100 * x['covers']:.2f} ({int(n) * min(x['p'], 1 - x['p']):.4g})"
            if "p" in x
            else f"{100 * x['covers']:.2f} ({int(n) * x['q']:.3g}, {x['difference']:.3f})"
            for x in found
        ]
        side = f"{100 * found[0]['side']:.2f}" if "side" in found[0] else ""
        rows.append([method, level, n, *cells, *[""] * (2 - len(cells)), side])
    return rows


HEADINGS = ["interval", "level, %", "n", "lowest coverage", "from 1 mistake", "one side"]
NOTE = (
    "The column `lowest coverage` shows the lowest coverage over all true proportions (for"
    " `paired_difference_interval`, over a grid of two proportions). In parentheses is the expected"
    " number of mistakes (or of correct predictions, if there are fewer) for which the coverage is"
    " lowest; for `paired_difference_interval`, the expected number of examples for which only one"
    " classifier is correct, and the true difference. The column `from 1 mistake` shows the lowest"
    " coverage if at least one mistake and at least one correct prediction are expected. The column"
    " `one side` shows the greatest probability that the interval lies above the true value, or"
    " that it lies below it. All values are exact."
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench proportions")
    parser.add_argument("--quick", action="store_true", help="few n, nothing is written")
    quick = parser.parse_args(arguments).quick
    results: dict[str, Any] = {}
    for level in LEVELS:
        for method, ends in METHODS.items():
            for n in SIZES[: 2 if quick else None]:
                found = ends(np.arange(n + 1), n, level)
                low, high = np.asarray(found.low), np.asarray(found.high)
                both = [exact(low, high), exact(low, high, fewest=1.0)]
                results[f"{method}; {n}; {100 * level:g}"] = [
                    {name: round(x, 9) for name, x in of.items()} for of in both
                ]
    for n in PAIRS[: 1 if quick else None]:
        results[f"`paired_difference_interval`; {n}; 95"] = [
            {name: round(x, 9) for name, x in exact_pairs(n).items()}
        ]
    if quick:
        print(harness.table(HEADINGS, rows_of(results)))
    else:
        units = "Coverages are in percent."
        rows = rows_of(results)
        harness.publish("proportions", results, HEADINGS, rows, NOTE, units, timed_on=None)


if __name__ == "__main__":
    main(sys.argv[1:])
