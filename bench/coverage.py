"""Coverage of intervals: how often they contain the truth, over a grid of designs.

A design is a number of examples, a number of classes, how unequal these are, and how often each is
recognised. Its cell probabilities P are known, so the truth is the metric of P. Of 2000 test sets
drawn from it, each contender says an interval; published are the share that contains the truth, the
shares that lie above and below it, and the mean width.

The truth is the population's, over all K classes. The metrics of a sample average over the classes
that occur in it: where the rarest class is expected less than `SPARSE` times, they estimate
something else, and no interval around the estimate can be held to the truth. Such cells are kept
apart in the tables.

The designs are a chessboard: neighbours, which differ in one step of one factor, are in different
halves. Methods are chosen on the half "choose", what is published is of the half "report".

`python -m bench.coverage` runs everything; `--quick` a few designs, to try; `--methods` some of the
contenders, whose figures replace those in bench/results/coverage.json and leave the others as they
are; `--grids` one of the grids "single" (one classifier) and "paired" (differences of two);
`--classes` some numbers of classes; `--beyond` prints what is in no grid: a minimum, a ratio
without bound, small priors, exact ties.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import special

import jaxmetrics as jm
from bench import harness
from jaxmetrics.estimates import Metric

LEVEL = 0.95
DATA_SETS = 2000
GOOD = 0.9, 0.995
SPARSE = 5  # expected examples of the rarest class
BLOCK = 2**22  # cells of tables that are held at once

FRACTIONS: dict[str, Metric] = {
    "accuracy": jm.accuracy,
    "balanced_accuracy": jm.balanced_accuracy,
    "macro_f1": jm.macro(jm.f1),
    "weighted_f1": jm.weighted(jm.f1),
}
COEFFICIENTS: dict[str, Metric] = {
    "matthews_corrcoef": jm.matthews_corrcoef,
    "cohen_kappa": jm.cohen_kappa,
}
METRICS = FRACTIONS | COEFFICIENTS

SIZES = (20, 50, 100, 500, 5000)
CLASSES = (2, 3, 10, 50)
SHARES = ("balanced", "Zipf", "99:1")
RECALLS: tuple[float | str, ...] = (0.5, 0.8, 0.95, 0.99, "chance")
# Of two classifiers: the share of examples that both answer from one draw, and whether B is worse.
CORRELATIONS = (0.0, 0.5, 0.9)
EFFECTS = ("null", "worse")

Estimates = Mapping[str, jm.Estimate]


def all_of(named: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], dict[str, Any]]:
    """Return a metric that gives those of a dict by their names."""
    return lambda counts: {name: metric(counts) for name, metric in named.items()}


fractions, coefficients = all_of(FRACTIONS), all_of(COEFFICIENTS)
metrics = all_of(FRACTIONS | COEFFICIENTS)


# Designs


class Design(NamedTuple):
    """One classifier: what its test sets are drawn from."""

    n: int
    num_classes: int
    shares: str
    recall: float | str

    @property
    def half(self) -> str:
        return _half(
            SIZES.index(self.n),
            CLASSES.index(self.num_classes),
            SHARES.index(self.shares),
            RECALLS.index(self.recall),
        )

    @property
    def cells(self) -> np.ndarray:
        prior = class_shares(self.shares, self.num_classes)
        return prior[:, None] * predictions(prior, self.recall)

    @property
    def truth(self) -> dict[str, float]:
        return {name: float(value) for name, value in metrics(self.cells).items()}

    @property
    def rarest(self) -> float:
        return self.n * float(class_shares(self.shares, self.num_classes).min())


class PairedDesign(NamedTuple):
    """Two classifiers of the same examples."""

    n: int
    num_classes: int
    shares: str
    recall: float | str
    correlation: float
    effect: str

    @property
    def half(self) -> str:
        return _half(
            SIZES.index(self.n),
            CLASSES.index(self.num_classes),
            SHARES.index(self.shares),
            RECALLS.index(self.recall),
            CORRELATIONS.index(self.correlation),
            EFFECTS.index(self.effect),
        )

    @property
    def cells(self) -> np.ndarray:
        """Probabilities `(K, K, K)` of truth, prediction of A and prediction of B.

        With probability `correlation` both answer from one draw, as far as their predictions have
        the same probabilities (maximal coupling), otherwise each from its own.
        """
        prior = class_shares(self.shares, self.num_classes)
        a = predictions(prior, self.recall)
        worse = 1 - 1.5 * (1 - float(self.recall))
        b = a if self.effect == "null" else predictions(prior, worse, reverse=True)
        common = np.minimum(a, b)
        only = 1 - common.sum(-1)[:, None, None]
        apart = (a - common)[:, :, None] * (b - common)[:, None, :] / np.where(only > 0, only, 1)
        together = common[:, :, None] * np.eye(self.num_classes) + apart
        independent = a[:, :, None] * b[:, None, :]
        rho = self.correlation
        return prior[:, None, None] * (rho * together + (1 - rho) * independent)

    @property
    def truth(self) -> dict[str, float]:
        of_a, of_b = metrics(self.cells.sum(2)), metrics(self.cells.sum(1))
        return {name: float(of_a[name] - of_b[name]) for name in METRICS}

    @property
    def rarest(self) -> float:
        return self.n * float(class_shares(self.shares, self.num_classes).min())


def _half(*places: int) -> str:
    return ("choose", "report")[sum(places) % 2]


def class_shares(shares: str, k: int) -> np.ndarray:
    """Shares of classes in truth; with 99:1 they fall geometrically, the commonest is 99 times the
    rarest.
    """
    ranks = np.arange(k)
    weights = {
        "balanced": np.ones(k),
        "Zipf": 1 / (1 + ranks),
        "99:1": 99.0 ** (-ranks / (k - 1)),
    }[shares]
    return weights / weights.sum()


def predictions(prior: np.ndarray, recall: float | str, *, reverse: bool = False) -> np.ndarray:
    """Probabilities of predictions given truth, `(K, K)`.

    With three classes or more the recalls are spread around `recall`, from 1.3 to 0.7 of its
    errors, and not in the order of the shares. Errors fall on the other classes as 1, 1/2, 1/3,
    ..., by how far they come after the true one (before, if reversed). By chance: predictions do
    not depend on truth, and have its shares.
    """
    k = len(prior)
    if recall == "chance":
        return np.tile(prior, (k, 1))
    classes = np.arange(k)
    spread = np.linspace(1.3, 0.7, k)[7 * classes % k] if k > 2 else np.ones(k)
    wrong = (1 - float(recall)) * spread
    distance = (classes - classes[:, None]) * (-1 if reverse else 1) % k
    errors = np.divide(1, distance, where=distance > 0, out=np.zeros((k, k)))
    errors *= (wrong / errors.sum(-1))[:, None]
    return errors + np.diag(1 - wrong)


def single_designs() -> list[Design]:
    return [Design(*x) for x in product(SIZES, CLASSES, SHARES, RECALLS)]


def paired_designs() -> list[PairedDesign]:
    factors = SIZES, CLASSES[:3], SHARES, RECALLS[:3], CORRELATIONS, EFFECTS
    return [PairedDesign(*x) for x in product(*factors)]


# Contenders


class Contender(NamedTuple):
    """A method: a function of counts `(N, K, K)`, or `(N, K, K, K)`, and a level.

    It returns `Estimate`s with batch axis N by the names of the metrics that it is for.
    `data_sets` is how many it is given at most, by the number of classes; others are left out.
    """

    function: Callable[[np.ndarray, float], Estimates]
    data_sets: Mapping[int, int] = dict.fromkeys(CLASSES, DATA_SETS)


# Drawn for every data set, and so slow; on an accelerator all are drawn.
_ON_CPU = jax.default_backend() == "cpu"
FEWER = {2: 500, 3: 500, 10: 200} if _ON_CPU else dict.fromkeys(CLASSES, DATA_SETS)
SEARCHED = dict.fromkeys(CLASSES, DATA_SETS) | ({50: 200} if _ON_CPU else {})


METHODS: dict[str, jm.IntervalMethod] = {
    "likelihood": jm.Likelihood(),
    "delta": jm.Delta(),
    "BCa": jm.Bootstrap(0),
    "percentile": jm.Bootstrap(0, "percentile"),
    "posterior": jm.Posterior(0),
}


def by(method: jm.IntervalMethod, metric: Metric = metrics) -> Callable[..., Estimates]:
    """Return the contender that a method is, on the device."""

    def contender(counts: np.ndarray, level: float) -> Any:
        return jm.interval(metric, jax.numpy.asarray(counts), method=method, level=level)

    return contender


def by_delta_transformed(counts: np.ndarray, level: float) -> Estimates:
    """On the logit scale, Matthews and kappa on that of atanh."""
    of_fractions = by(jm.Delta("logit"), fractions)(counts, level)
    of_coefficients = by(jm.Delta("atanh"), coefficients)(counts, level)
    return {**of_fractions, **of_coefficients}


def by_wilson(counts: np.ndarray, level: float) -> Estimates:
    right = counts.trace(axis1=-2, axis2=-1)
    return {"accuracy": jm.proportion_interval(right, counts.sum((-2, -1)), level=level)}


def by_mover(counts: np.ndarray, level: float) -> Estimates:
    """The average of recalls p_i of k classes, with Jeffreys' limits l_i and u_i of each:
    `b - sqrt(sum (p_i - l_i)^2) / k` to `b + sqrt(sum (u_i - p_i)^2) / k`. Zou and Donner (2008),
    Statistics in Medicine 27. Brown, Cai and DasGupta's ends: 0 where none, 1 where all are right.
    """
    right = np.diagonal(counts, axis1=-2, axis2=-1)
    total = counts.sum(-1)
    occurs = total > 0
    k = occurs.sum(-1)
    p = right / np.where(occurs, total, 1)
    tail = (1 - level) / 2
    low = special.betaincinv(right + 0.5, total - right + 0.5, tail)
    high = special.betainccinv(right + 0.5, total - right + 0.5, tail)
    down = np.where(occurs & (right > 0), p - low, p)
    up = np.where(occurs & (right < total), high - p, 0)
    value = p.sum(-1) / k
    ends = value - np.hypot.reduce(down, -1) / k, value + np.hypot.reduce(up, -1) / k
    return {"balanced_accuracy": _estimate(value, *ends)}


def _estimate(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> jm.Estimate:
    nothing = np.zeros(len(value))
    return jm.Estimate(value, low, high, nothing, nothing)


def by_tango(paired: np.ndarray, level: float) -> Estimates:
    return {"accuracy": jm.paired_difference_interval(paired, level=level)}


SINGLE: dict[str, Contender] = {
    "likelihood": Contender(by(METHODS["likelihood"]), SEARCHED),
    "delta": Contender(by(METHODS["delta"])),
    "delta, transformed": Contender(by_delta_transformed),
    "Wilson": Contender(by_wilson),
    "MOVER": Contender(by_mover),
    **{name: Contender(by(METHODS[name]), FEWER) for name in ("BCa", "percentile", "posterior")},
}
_differences = jm.difference(metrics)
_FEWEST = FEWER | {10: 50} if _ON_CPU else FEWER
PAIRED: dict[str, Contender] = {
    "likelihood": Contender(
        by(METHODS["likelihood"], _differences), _FEWEST if _ON_CPU else SEARCHED
    ),
    "Tango": Contender(by_tango),
    "delta": Contender(by(METHODS["delta"], _differences)),
    **{name: Contender(by(METHODS[name], _differences), _FEWEST) for name in ("BCa", "posterior")},
}
GRIDS: dict[str, tuple[Callable[[], Sequence[Any]], dict[str, Contender]]] = {
    "single": (single_designs, SINGLE),
    "paired": (paired_designs, PAIRED),
}


# Measuring


class Figures(NamedTuple):
    """Of one contender, one metric and one design; shares are of the data sets with an interval."""

    covers: float
    above: float  # the interval lies above the truth
    below: float
    width: float
    undefined: float  # share of data sets without an interval
    zero_width: float
    data_sets: int


def draw(design: Any, size: int = DATA_SETS) -> np.ndarray:
    """Test sets of a design: the first are the same however many are drawn."""
    cells = design.cells
    rng = np.random.default_rng(list(map(ord, repr(tuple(design)))))
    return rng.multinomial(design.n, cells.ravel(), size=size).reshape(size, *cells.shape)


def figures_of(estimate: jm.Estimate, truth: float) -> Figures:
    low, high = np.asarray(estimate.low, float), np.asarray(estimate.high, float)
    known = ~(np.isnan(low) | np.isnan(high))
    low, high = low[known], high[known]
    if not low.size or np.isnan(truth):
        return Figures(np.nan, np.nan, np.nan, np.nan, 1.0, 0.0, known.size)
    room = 1e-9  # of rounding
    above, below = low > truth + room, high < truth - room
    return Figures(
        covers=1 - above.mean() - below.mean(),
        above=above.mean(),
        below=below.mean(),
        width=(high - low).mean(),
        undefined=1 - known.mean(),
        zero_width=(high - low <= room).mean(),
        data_sets=known.size,
    )


def measure(
    design: Any, contenders: Mapping[str, Contender], data_sets: int = DATA_SETS
) -> dict[str, dict[str, Figures]]:
    """Figures by metric and contender."""
    k, truth = design.num_classes, design.truth
    counts = draw(design)
    results: dict[str, dict[str, Figures]] = {name: {} for name in METRICS}
    for name, contender in contenders.items():
        size = min(contender.data_sets.get(k, 0), data_sets)
        if not size:
            continue
        # Blocks of equal size, so that each program is compiled once.
        block = next(b for b in range(max(1, BLOCK // counts[0].size), 0, -1) if size % b == 0)
        parts = [
            jax.tree.map(np.asarray, contender.function(counts[i : i + block], LEVEL))
            for i in range(0, size, block)
        ]
        whole = jax.tree.map(lambda *x: np.concatenate(x), *parts)
        for metric, estimate in whole.items():
            results[metric][name] = figures_of(estimate, truth[metric])
    return results


def key_of(design: Any) -> str:
    return " ".join(map(str, design))


def run(
    grid: str,
    methods: Sequence[str],
    classes: Sequence[int],
    quick: bool,
    known: Mapping[str, Any],
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Figures by design, metric and contender; of contenders and designs that are not asked for,
    those known.
    """
    designs, contenders = GRIDS[grid]
    asked = {name: x for name, x in contenders.items() if not methods or name in methods}
    results = dict(known)
    all_designs = [
        d
        for d in designs()
        if d.num_classes in classes and (not quick or (d.n == 50 and d.recall == 0.8))
    ]
    start = time.perf_counter()
    # By classes: what is compiled serves one number of them after the other.
    for i, design in enumerate(sorted(all_designs, key=lambda d: d.num_classes)):
        found = measure(design, asked, 100 if quick else DATA_SETS)
        before = known.get(key_of(design), {})
        results[key_of(design)] = {
            metric: before.get(metric, {})
            | {name: [rounded(x) for x in figures] for name, figures in by_name.items()}
            for metric, by_name in found.items()
        }
        if i % 20 == 19:
            seconds = time.perf_counter() - start
            print(f"{grid}: {i + 1} of {len(all_designs)}, {seconds:.0f} s", file=sys.stderr)
    return {key: results[key] for d in designs() if (key := key_of(d)) in results}


def rounded(x: float) -> float | None:
    return None if np.isnan(x) else round(float(x), 4)


# Tables


def rows_of(grid: str, results: Mapping[str, Any]) -> list[list[str]]:
    """Coverage in percent, the lowest and the highest of the designs, by metric, contender and n;
    and of those with n of 50 or more the share outside of `GOOD`, the median width relative to that
    of the first contender, and the mean share of data sets without an interval.
    """
    contenders, rows = list(GRIDS[grid][1]), []
    for metric, name in product(METRICS, contenders):
        found = _found(grid, results, metric, name)
        large = {d: x for d, x in found.items() if d.n >= 50 and not is_sparse(d)}
        if not large:
            continue
        ranges = []
        for n in SIZES:
            covers = [100 * x.covers for d, x in found.items() if d.n == n and not is_sparse(d)]
            ranges.append(f"{min(covers):.0f}-{max(covers):.0f}" if covers else "")
        first = _found(grid, results, metric, contenders[0])
        widths = [x.width / first[d].width for d, x in large.items() if d in first]
        rows.append(
            [
                named(grid, metric),
                name,
                *ranges,
                f"{np.mean([not is_good(x) for x in large.values()]):.0%}",
                f"{np.median(widths):.2f}" if widths else "",
                f"{np.mean([x.undefined for x in large.values()]):.1%}",
            ]
        )
    return rows


def shortfalls(grid: str, results: Mapping[str, Any]) -> list[str]:
    """Lines that list the designs with n of 50 or more where the first contender, for each metric,
    covers too seldom; those where it covers too often, and the sparse ones, by number.
    """
    name, lines = next(iter(GRIDS[grid][1])), []
    for metric in METRICS:
        found = _found(grid, results, metric, name)
        bad = {d: x for d, x in found.items() if d.n >= 50 and not is_good(x)}
        written = [
            f"{100 * x.covers:.1f} % in the design `{key_of(d)}`"
            for d, x in bad.items()
            if not is_sparse(d) and x.covers < GOOD[0]
        ]
        for kind, sparse in (("non-sparse", False), ("sparse", True)):
            covers = [100 * x.covers for d, x in bad.items() if is_sparse(d) == sparse]
            if not sparse:
                covers = [x for x in covers if x > 100 * GOOD[1]]
            if covers:
                ends = dict.fromkeys(f"{x:.0f}" for x in (min(covers), max(covers)))
                number = f"{len(covers)} {kind} {'design' if len(covers) == 1 else 'designs'}"
                written.append(f"{' to '.join(ends)} % in {number}")
        shown = f"the likelihood interval has a coverage of {', and '.join(written)}"
        lines.append(f"- {named(grid, metric)}: {shown if written else 'there is no such design'}")
    return lines


def named(grid: str, metric: str) -> str:
    """Return the name of a metric of one classifier, or of its difference between two."""
    return metric if grid == "single" else f"difference of {metric}"


def is_sparse(design: Any) -> bool:
    return bool(design.rarest < SPARSE * (1 - 1e-9))  # 1 % of 500 is 5, up to rounding


def is_good(figures: Figures) -> bool:
    return GOOD[0] <= figures.covers <= GOOD[1]


def _found(grid: str, results: Mapping[str, Any], metric: str, name: str) -> dict[Any, Figures]:
    """Figures of a contender in the half that is published, of the designs that it has some of."""
    designs = {d: results.get(key_of(d), {}) for d in GRIDS[grid][0]() if d.half == "report"}
    values = {d: x.get(metric, {}).get(name) for d, x in designs.items()}
    return {d: Figures(*x) for d, x in values.items() if x and x[0] is not None}


MORE_METRICS: dict[str, Metric] = {
    "worst recall": lambda c: jm.recall(c).min(-1),
    "positive likelihood ratio": lambda c: jm.positive_likelihood_ratio(c)[..., 1],
}


def minimum_and_ratio(data_sets: int) -> list[str]:
    """Lines on the worst recall and the positive likelihood ratio of two classes, by likelihood."""
    designs = (200, (0.95, 0.05), (0.97, 0.9)), (100, (0.5, 0.5), (0.99, 0.99))
    lines = []
    for n, prior, recalls in designs:
        cells = np.array([[p * r, p * (1 - r)] for p, r in zip(prior, recalls, strict=True)])
        cells[1] = cells[1, ::-1]
        counts = np.random.default_rng(n).multinomial(n, cells.ravel(), data_sets)
        for name, metric in MORE_METRICS.items():
            found = jm.interval(metric, counts.reshape(-1, 2, 2), level=LEVEL)
            x = figures_of(found, float(metric(cells)))
            design = f"n = {n}, classes {prior}, recalls {recalls}"
            lines.append(f"- {name}, {design}: {x.covers:.1%}, none {x.undefined:.1%}")
    return lines


def small_priors(data_sets: int) -> list[str]:
    """Lines on posterior balanced accuracy of two near-perfect classes of 250."""
    rng, recall, n = np.random.default_rng(0), 0.998, 250
    right = rng.binomial(n, recall, (data_sets, 2))
    counts = np.stack([np.diag([a, b]) + np.diag([n - b, n - a])[::-1] for a, b in right])
    lines = []
    for prior in (1.0, 0.5, 0.25):
        low, high = jm.balanced_accuracy_posterior(counts, prior=prior).interval(LEVEL)
        covered = np.mean((low <= recall) & (recall <= high))
        lines.append(f"- posterior balanced accuracy, prior {prior}: {covered:.1%}")
    return lines


def exact_ties(data_sets: int) -> list[str]:
    """Lines on what leaderboards say of their winner where the best are equally good."""
    lines = []
    for m, tied in ((2, 2), (5, 5), (10, 5)):
        rng, said, share = np.random.default_rng(m), [], []
        accuracies = np.where(np.arange(m) < tied, 0.8, 0.7)
        for i in range(data_sets):
            right = rng.random((m, 200)) < accuracies[:, None]
            board = jm.leaderboard(
                jm.accuracy, np.ones(200, int), right.astype(int), key=i, num_samples=500
            )
            said.append(float(board.probability_best[board.winner]))
            share.append((board.winner < tied) / tied)
        said_and_was = f"said {np.mean(said):.2f}, was {np.mean(share):.2f}"
        lines.append(f"- P(best) of the winner, {tied} of {m} tied: {said_and_was}")
    return lines


HEADINGS = ["metric", "interval", *(f"n = {n}" for n in SIZES), "outside", "width", "none"]
LIST = (
    "The following list is for designs with 50 or more examples. It shows in how many of these"
    " designs the coverage of the likelihood interval is below 90 % or above 99.5 %:"
)
NOTE = (
    "If a design is not sparse but has a coverage above 99.5 %, the two classifiers that are"
    " compared give nearly the same predictions, or only about five examples of a class are"
    " expected. In a sparse design, some test sets contain no example of some class. The average"
    " over the classes of such a test set leaves out this class, but the true value of the average"
    " includes it. For each design, 2000 test sets were drawn. Only 200 to 500 test sets were"
    " drawn for designs with 50 classes and for likelihood intervals of differences. Test sets are"
    " drawn from known probabilities of the cells of the confusion matrix, and the true value is"
    " the metric of these probabilities."
)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.coverage")
    parser.add_argument("--quick", action="store_true", help="few designs, nothing is written")
    parser.add_argument("--methods", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--beyond", action="store_true", help="only what no grid has, printed")
    parser.add_argument("--grids", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    parser.add_argument("--classes", nargs="+", type=int, default=CLASSES, choices=CLASSES)
    options = parser.parse_args(arguments)
    if options.beyond:
        for lines_of in (minimum_and_ratio, small_priors, exact_ties):
            print("\n".join(lines_of(50 if options.quick else DATA_SETS)), flush=True)
        return
    known = harness.known("coverage")
    results = dict(known)
    with jax.enable_x64(True):
        for grid in options.grids:
            before = {} if options.quick else known.get(grid, {})
            results[grid] = run(grid, options.methods, options.classes, options.quick, before)
    rows = [row for grid, found in results.items() for row in rows_of(grid, found)]
    lines = [line for grid, found in results.items() for line in shortfalls(grid, found)]
    note = "\n".join([LIST, "", *lines, "", NOTE])
    if options.quick:
        print(f"{harness.table(HEADINGS, rows)}\n\n{note}")
    else:
        harness.publish(
            "coverage", results, HEADINGS, rows, note, "Coverages are in percent.", timed_on=None
        )


if __name__ == "__main__":
    main(sys.argv[1:])
