"""Coverage and width of intervals from few examples with truth and many that were only judged.

A judge answers with the truth with probability kappa, and else whatever the classes' shares say, so
that kappa is its agreement with the truth beyond chance; its errors do not depend on those of the
classifiers. Of 2000 pairs of samples (500 if n is 20), n examples with truth and N without,
published are the share of intervals that contain the metric of the population, and their mean width
relative to that from the n examples alone.

`python -m bench.judged` runs everything; `--sizes` some n, whose figures replace those in
bench/results/judged.json; `--quick` with 100 samples, and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm
from bench import coverage, harness
from bench.coverage import Estimates

CLASSES = {2: "balanced", 3: "Zipf"}
RECALLS = (0.65, 0.85)
KAPPAS = (0.0, 0.4, 0.8, 0.95)
SAMPLES = {20: 500, 50: 2000, 200: 2000, 2000: 2000}  # by n; searches are longest if n is small
TIMES = (1, 10, 100)  # as many judged examples

FRACTIONS = {name: coverage.FRACTIONS[name] for name in ("accuracy", "macro_f1")}
COEFFICIENTS = {"matthews_corrcoef": jm.matthews_corrcoef}
NAMES = (*FRACTIONS, *COEFFICIENTS)

metrics = coverage.all_of(FRACTIONS | COEFFICIENTS)
difference = jm.difference(metrics)


class Design(NamedTuple):
    """Two classifiers of K classes, A better than B, and a judge."""

    num_classes: int
    recall: float
    kappa: float
    n: int
    times: int

    @property
    def cells(self) -> np.ndarray:
        """Probabilities `(K, K, K, K)` of truth, judge's label and predictions of A and B."""
        k, shares = self.num_classes, CLASSES[self.num_classes]
        pairs = coverage.PairedDesign(self.n, k, shares, self.recall, 0.5, "worse").cells
        chance = np.tile(coverage.class_shares(shares, k), (k, 1))
        judge = self.kappa * np.eye(k) + (1 - self.kappa) * chance
        return judge[:, :, None, None] * pairs[:, None]


def designs() -> list[Design]:
    return [Design(*x) for x in product(CLASSES, RECALLS, KAPPAS, SAMPLES, TIMES)]


def samples(design: Design, size: int) -> tuple[jax.Array, jax.Array]:
    """Draw counts of examples with truth, `(N, K, K, K, K)`, and without, `(N, K, K, K)`."""
    rng, cells = np.random.default_rng(0), design.cells
    of_judge = cells.sum(0)
    labelled = rng.multinomial(design.n, cells.ravel(), size).reshape(size, *cells.shape)
    judged = rng.multinomial(design.n * design.times, of_judge.ravel(), size)
    return jnp.asarray(labelled), jnp.asarray(judged.reshape(size, *of_judge.shape))


def estimates(labelled: jax.Array, judged: jax.Array) -> Estimates:
    """Estimate metrics of A and of A - B from both samples."""
    alone: Any = jm.prediction_powered(metrics, labelled.sum(-1), judged.sum(-1))
    pairs: Any = jm.prediction_powered(difference, labelled, judged)
    return alone | _differences(pairs)


def estimates_from_truth(labelled: jax.Array) -> Estimates:
    """Estimate the same without a judge."""
    pairs = labelled.sum(2)
    alone: Any = jm.interval(metrics, pairs.sum(-1))
    differences: Any = jm.interval(difference, pairs)
    return alone | _differences(differences)


def _differences(found: Estimates) -> Estimates:
    return {f"difference of {name}": estimate for name, estimate in found.items()}


def measure(design: Design, size: int) -> dict[str, list[float]]:
    """Coverage, shares above and below the truth, width, share undefined and relative width."""
    pairs = design.cells.sum(1)
    of_a, of_b = metrics(pairs.sum(2)), metrics(pairs.sum(1))
    truth = of_a | {f"difference of {name}": of_a[name] - of_b[name] for name in NAMES}
    labelled, judged = samples(design, size)
    without, results = estimates_from_truth(labelled), {}
    for name, estimate in estimates(labelled, judged).items():
        found, alone = (
            coverage.figures_of(x, float(truth[name])) for x in (estimate, without[name])
        )
        shown = *found[:5], found.width / alone.width
        results[name] = [round(float(x), 4) for x in shown]
    return results


def rows_of(results: Mapping[str, Any]) -> list[list[str]]:
    """Ranges of coverage by N / n, and of relative width where N is 10 n or more."""
    rows = []
    for n, kappa in product(sorted({x.n for x in designs() if _key(x) in results}), KAPPAS):
        found = {
            times: [
                figures
                for k, recall in product(CLASSES, RECALLS)
                for figures in results[_key(Design(k, recall, kappa, n, times))].values()
            ]
            for times in TIMES
        }
        covers = [_range([100 * x[0] for x in found[times]]) for times in TIMES]
        widths = [x[5] for times in TIMES if times >= 10 for x in found[times]]
        rows.append([str(n), f"{kappa:g}", *covers, _range(widths, 2)])
    return rows


def _range(x: Sequence[float], digits: int = 1) -> str:
    return f"{min(x):.{digits}f}-{max(x):.{digits}f}"


def _key(design: Design) -> str:
    return " ".join(map(str, design))


HEADINGS = ["n", "kappa", *(f"N = {x} n" for x in TIMES), "width"]
NOTE = (
    "The simulated metrics are accuracy, macro F1, Matthews' coefficient, and the differences of"
    " these metrics between two classifiers. There are 2 classes of equal size or 3 classes of"
    " unequal size, and the recalls are .65 or .85. The columns `N = 1 n` to `N = 100 n` show the"
    " lowest and the highest coverage of all these metrics and designs. For the column `width`,"
    " the mean width of the intervals is divided by the mean width of intervals that use only the"
    " n true labels. The column shows the smallest and the largest such ratio of the designs in"
    " which N, the number of examples that only the judge labelled, is at least 10 n. For each"
    " design, 2000 pairs of samples were drawn, or 500 if n is 20. Each pair consists of n examples"
    " with true labels and N examples that only the judge labelled."
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.judged")
    parser.add_argument("--quick", action="store_true", help="100 samples, nothing is written")
    parser.add_argument("--sizes", nargs="+", type=int, default=SAMPLES, choices=SAMPLES)
    options = parser.parse_args(arguments)
    quick = options.quick
    results = {} if quick else harness.known("judged")
    with jax.enable_x64(True):
        for design in designs():
            if design.n in options.sizes:
                results[_key(design)] = measure(design, 100 if quick else SAMPLES[design.n])
                print(_key(design), file=sys.stderr)
    results = {key: results[key] for key in map(_key, designs()) if key in results}
    if quick:
        print(f"{harness.table(HEADINGS, rows_of(results))}\n\n{NOTE}")
    else:
        rows, units = rows_of(results), "Coverages are in percent."
        harness.publish("judged", results, HEADINGS, rows, NOTE, units, timed_on=None)


if __name__ == "__main__":
    main(sys.argv[1:])
