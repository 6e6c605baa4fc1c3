"""Joint coverage: disparities of groups, all classes, all times, whole curves.

Of data sets drawn from a known population, published are the share in which everything that an
interval says is true, the shares in which some of it lies above and below the truth, and the mean
width. An interval that is missing, as that of a class that did not occur, contains all.

`python -m bench.joint_coverage` runs everything; `--parts` some, whose figures replace those in
bench/results/joint_coverage.json; `--quick` a tenth of the data sets, and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from bench import coverage, harness
from bench.coverage import LEVEL, Figures
from jaxmetrics.estimates import Metric

DATA_SETS = 1000
STREAMS = 500  # up to LAST examples
FIRST, LAST, BATCH = 20, 20_000, 100

Measured = Iterator[tuple[str, dict[str, Figures]]]  # of designs, by method


def figures_of(low: Any, high: Any, truth: Any) -> Figures:
    """Figures of intervals `(N, V)` of N data sets, each of which holds if all V do."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    room = 1e-9  # of rounding
    above, below = low > truth + room, high < truth - room
    known = ~np.isnan(high - low)
    width = (high - low)[known]
    return Figures(
        covers=1 - (above | below).any(-1).mean(),
        above=above.any(-1).mean(),
        below=below.any(-1).mean(),
        width=width.mean(),
        undefined=1 - known.mean(),
        zero_width=(width <= room).mean(),
        data_sets=len(low),
    )


# Disparities: the largest value of a metric among groups less the smallest.

DISPARITIES = {"accuracy": jm.accuracy, "recall": jm.binary(jm.recall)}
OF_GROUPS: dict[str, jm.IntervalMethod] = {"likelihood": jm.Likelihood(), "delta": jm.Delta()}


def groups(size: int, gaps: Sequence[float]) -> Measured:
    """Measure with groups of equal size, of which the last is recognised less often."""
    for number, n, gap in product((2, 5), (100, 1000), gaps):
        recall = np.full(number, 0.85)
        recall[-1] -= gap
        cells = np.array([[0.5 * r, 0.5 * (1 - r)] for r in recall])[:, None]
        cells = np.concatenate([cells, cells[..., ::-1]], 1)
        rng = np.random.default_rng([number, n, int(10 * gap)])
        drawn = [rng.multinomial(n, x.ravel(), size).reshape(-1, 2, 2) for x in cells]
        counts = jnp.asarray(np.stack(drawn, 1))
        for name, metric in DISPARITIES.items():
            yield (
                f"{number} groups of {n}, {name} differs by {gap:g}",
                {
                    label: _of(jm.compare_groups(metric, counts, method=method), gap)
                    for label, method in OF_GROUPS.items()
                },
            )


def _of(estimate: jm.Estimate, truth: Any) -> Figures:
    low, high = (np.asarray(x).reshape(len(x), -1) for x in (estimate.low, estimate.high))
    return figures_of(low, high, truth)


# Classes: all values of a metric that has one for each.

PER_CLASS: dict[str, Metric] = {"recall": jm.recall, "f1": jm.f1}
TOGETHER: dict[str, Callable[..., Any]] = {
    "likelihood": partial(jm.interval, simultaneous=True),
    "delta, logit": partial(jm.interval, method=jm.Delta("logit"), simultaneous=True),
    "likelihood, each alone": jm.interval,
}


def classes(size: int) -> Measured:
    for n, k, shares in product((100, 500), (3, 10), ("balanced", "Zipf")):
        design = coverage.Design(n, k, shares, 0.8)
        counts = jnp.asarray(coverage.draw(design, size))
        for name, metric in PER_CLASS.items():
            truth = metric(design.cells)
            yield (
                f"{n} {k} {shares}, {name}",
                {x: _of(by(metric, counts, level=LEVEL), truth) for x, by in TOGETHER.items()},
            )


# Times: intervals of a stream that are looked at after every batch.

OVER_TIME: dict[str, Metric] = {
    "accuracy": jm.accuracy,
    "macro_f1": jm.macro(jm.f1),
    "kappa": jm.cohen_kappa,
}
ANYTIME: dict[str, tuple[Callable[..., Any], int]] = {
    "likelihood": (partial(jm.interval, anytime=True), FIRST),
    "delta": (partial(jm.interval, method=jm.Delta(), anytime=True), 500),
    "delta, one look": (partial(jm.interval, method=jm.Delta()), 500),
}


def times(size: int) -> Measured:
    looks = np.unique(np.geomspace(FIRST, LAST, 40).astype(int))
    for k, shares, recall in product((2, 3), ("balanced", "Zipf"), (0.8, 0.95)):
        design = coverage.Design(LAST, k, shares, recall)
        cells = design.cells
        rng = np.random.default_rng([k, len(shares), int(100 * recall)])
        new = rng.multinomial(np.diff(looks, prepend=0), cells.ravel(), (size, len(looks)))
        counts = jnp.asarray(new.cumsum(1).reshape(*new.shape[:2], k, k))
        for name, metric in OVER_TIME.items():
            found = {
                label: _of(
                    method(metric, counts[:, looks >= first], level=LEVEL), float(metric(cells))
                )
                for label, (method, first) in ANYTIME.items()
            }
            yield f"{k} {shares} {recall}, {name}", found


def sequences(size: int) -> Measured:
    for accuracy in (0.5, 0.8, 0.95, 0.99):
        key = jax.random.key(int(100 * accuracy))
        right = jax.random.bernoulli(key, accuracy, (size, LAST // BATCH, BATCH))
        found = {}
        for method in ("mixture", "bernstein"):
            low, high = over_time(method, right)
            found[method] = figures_of(low, high, accuracy)
        yield f"accuracy {accuracy}", found


def over_time(method: str, streams: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Ends `(N, T)` of a confidence sequence after each of T batches of streams `(N, T, batch)`."""
    low, high = _scan(method)(streams)
    return low, high


@cache
def _scan(method: Any) -> Any:
    sequence = jm.confidence_sequence(LEVEL, method=method)

    def look(state: Any, batch: jax.Array) -> Any:
        state = sequence.update(state, batch)
        estimate = sequence.compute(state)
        return state, (estimate.low, estimate.high)

    return jax.jit(jax.vmap(lambda stream: jax.lax.scan(look, sequence.init(), stream)[1]))


# Curves: the band of isotonic calibration, which contains the frequency everywhere.

CURVES: dict[str, tuple[Callable[[np.random.Generator, Any], Any], Callable[[Any], Any]]] = {
    "calibrated, uniform": (lambda rng, s: rng.random(s), lambda p: p),
    "calibrated, beta(.5, .8)": (lambda rng, s: rng.beta(0.5, 0.8, s), lambda p: p),
    "calibrated, two decimals": (lambda rng, s: rng.random(s).round(2), lambda p: p),
    "calibrated, one decimal": (lambda rng, s: rng.random(s).round(1), lambda p: p),
    "calibrated, near 0 and 1": (lambda rng, s: rng.beta(0.05, 0.05, s), lambda p: p),
    "calibrated, rare": (lambda rng, s: rng.beta(0.3, 30, s), lambda p: p),
    "overconfident": (lambda rng, s: rng.beta(0.5, 0.8, s), lambda p: 0.2 + 0.6 * p),
    "underconfident": (lambda rng, s: rng.random(s), lambda p: p**2 / (p**2 + (1 - p) ** 2)),
    "squared": (lambda rng, s: rng.random(s), lambda p: p**2),
    "root": (lambda rng, s: rng.random(s), lambda p: p**0.5),
    "step": (lambda rng, s: rng.random(s), lambda p: 0.2 + 0.6 * (p > 0.5)),
    "steep step": (lambda rng, s: rng.random(s), lambda p: 0.01 + 0.98 * (p > 0.37)),
    "stairs": (lambda rng, s: rng.random(s), lambda p: np.floor(8 * p) / 8 + 1 / 16),
    "flat, .5": (lambda rng, s: rng.random(s), lambda p: 0.5 + 0 * p),
    "flat, .01": (lambda rng, s: rng.random(s), lambda p: 0.01 + 0 * p),
}
CURVE_SETS = {100: 0.2, 1000: 0.2, 10_000: 0.05, 100_000: 0.01}  # share of the data sets


def curves(size: int) -> Measured:
    for n, (name, (draw, frequency)) in product(CURVE_SETS, CURVES.items()):
        rng = np.random.default_rng([n, *map(ord, name)])
        prob = np.sort(draw(rng, (max(int(CURVE_SETS[n] * size), 1), n)), -1)
        true = frequency(prob)
        curve = jm.calibration_curve(
            rng.random(prob.shape) < true, prob, strategy="isotonic", level=LEVEL
        )
        yield f"{n} {name}", {f"n = {n}": figures_of(curve.low, curve.high, true)}


PARTS: dict[str, tuple[Callable[[int], Measured], int]] = {
    "disparity of groups": (partial(groups, gaps=(0.1, 0.3)), DATA_SETS),
    "disparity of equal groups": (partial(groups, gaps=(0.0,)), DATA_SETS),
    "all classes": (classes, DATA_SETS // 2),
    "all times": (times, STREAMS),
    "confidence_sequence": (sequences, 2 * STREAMS),
    "isotonic band": (curves, DATA_SETS),
}


def rows_of(results: Mapping[str, Any]) -> list[list[str]]:
    """Coverage in percent, the lowest and the highest of the designs, by part and method."""
    rows = []
    for part, designs in results.items():
        for name in dict.fromkeys(name for found in designs.values() for name in found):
            found = [Figures(*x[name]) for x in designs.values() if name in x]
            covers = [100 * x.covers for x in found]
            worst = [max(100 * getattr(x, side) for x in found) for side in ("above", "below")]
            rows.append(
                [
                    part,
                    name,
                    str(len(found)),
                    f"{min(covers):.1f}-{max(covers):.1f}",
                    *(f"{x:.1f}" for x in worst),
                    f"{np.mean([x.width for x in found]):.3f}",
                ]
            )
    return rows


HEADINGS = ["jointly covered values", "interval", "designs", "coverage", "above", "below", "width"]
NOTE = (
    'In the rows "disparity of groups" and "disparity of equal groups", the disparity is the'
    " largest minus the smallest accuracy (or recall) of 2 or 5 groups. Each group has 100 or 1000"
    " examples. Either the true accuracy (or recall) of one group is .1 or .3 lower than that of"
    ' all other groups, or it is the same in all groups. In the rows "all classes", one interval is'
    " computed for each class, for its recall or its F1. There are 3 or 10 classes and 100 or 500"
    ' examples. In the rows "all times", 20,000 examples arrive one after another, and intervals of'
    " accuracy, macro F1 and kappa were computed 40 times meanwhile. The first of these intervals"
    ' was computed after 20 examples (for "delta", after 500 examples). In the rows'
    ' "confidence_sequence", an interval of the accuracy was computed after every 100 examples.'
    ' The true accuracies were .5 to .99. In the rows "isotonic band", the band must contain a'
    f" whole calibration curve. The {len(CURVES)} simulated curves include curves with ties, with"
    " steps and with rare events."
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.joint_coverage")
    parser.add_argument("--quick", action="store_true", help="few data sets, nothing is written")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args(arguments)
    quick = options.quick
    results = {} if quick else harness.known("joint_coverage")
    with jax.enable_x64(True):
        for part in options.parts:
            measure, size = PARTS[part]
            results[part] = {
                design: {name: [coverage.rounded(x) for x in of] for name, of in found.items()}
                for design, found in measure(size // 10 if quick else size)
            }
            print(part, file=sys.stderr)
    results = {part: results[part] for part in PARTS if part in results}
    rows = rows_of(results)
    if quick:
        print(f"{harness.table(HEADINGS, rows)}\n\n{NOTE}")
    else:
        units = "The columns `coverage`, `above` and `below` are in percent."
        harness.publish("joint_coverage", results, HEADINGS, rows, NOTE, units, timed_on=None)


if __name__ == "__main__":
    main(sys.argv[1:])
