"""Studies of what reports, gates, tests and leaderboards state."""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special, stats

import jaxmetrics as jm
from bench.populations import Rng, clusters_of, systems, uniform
from bench.studies.study import Outcomes, Study, stacked
from jaxmetrics.reports.overall_values import Evidence, accuracy_gain


def headlines(rng: Rng, size: int, n: int, prior: tuple[float, ...]) -> Outcomes:
    """Each class is recognised as often as the commonest class has examples."""
    k, top = len(prior), prior[0]
    predictions = np.full((k, k), (1 - top) / (k - 1))
    np.fill_diagonal(predictions, top)
    cells = np.array(prior)[:, None] * predictions
    counts = rng.multinomial(n, cells.ravel(), size).reshape(size, k, k)
    yield "`no_information_test`", "", jm.no_information_test(counts).p_value <= 0.05
    # The first sentence of a report says so if the interval of the gain does not contain 0.
    gains = [accuracy_gain(Evidence(x, 0.95)) for x in counts]
    for word, said in (
        ("above", [x.low > 0 for x in gains]),
        ("below", [x.high < 0 for x in gains]),
    ):
        line = f'`report`: accuracy "is {word}" that of the most frequent class'
        yield line, "", np.array(said)


def gates(rng: Rng, size: int, number: int, n: int, recall: float) -> Outcomes:
    """Recalls of classes of n examples are at the bounds of their gates.

    Holm's procedure fails a gate only if the smallest p-value fails at its first step. So the
    probability that some gate fails follows from the greatest number of right examples of one class
    that fails while all other classes are at their expectation.
    """
    expected = round(n * recall)

    def fails(right: int) -> bool:
        names = [f"c{i}" for i in range(number)]
        options = [x for name in names for x in ("--gate", f"recall[{name}] >= {recall}")]
        return report_fails([right] + (number - 1) * [expected], n, names, options)

    at_most = last(fails, -1, expected)
    alone = stats.binom.cdf(at_most, n, recall)
    yield "`report --gate`: a true gate fails", "", 1 - (1 - alone) ** number


def report_fails(right: list[int], n: int, names: list[str], options: list[str]) -> bool:
    """Whether the command line says that a gate failed, of classes of n examples each."""
    from jaxmetrics.cli import app

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "predictions.csv")
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["y_true", "y_pred"])
            for i, name in enumerate(names):
                wrong = names[(i + 1) % len(names)]
                rows.writerows([name, name if j < right[i] else wrong] for j in range(n))
        with contextlib.redirect_stdout(io.StringIO()):
            return app(["report", str(path), *options]) == 1


def last(holds: Callable[[int], bool], first: int, end: int) -> int:
    """The last number from `first` to `end` for which a condition holds, which holds up to there.

    It holds for `first`, and not for `end`, without being asked.
    """
    while end - first > 1:
        middle = (first + end) // 2
        first, end = (middle, end) if holds(middle) else (first, middle)
    return first


def group_reports(
    rng: Rng, size: int, large: int, small: int, number: int, accuracy: float
) -> Outcomes:
    """One large group and several small ones, all of one accuracy.

    A small group with k mistakes is shown to differ from a large one with up to so many mistakes,
    which is found by bisection; the probability is the sum over the mistakes of the large group.
    """
    groups = np.repeat(np.arange(number + 1), [large] + [small] * number)
    y = np.arange(len(groups)) % 2
    fewest, most = stats.binom.ppf([1e-4, 1 - 1e-4], large, 1 - accuracy).astype(int)

    def differs(mistakes: int, of_large: int) -> bool:
        is_wrong = (np.arange(len(y)) < of_large) | (
            (np.arange(len(y)) - large) % len(y) < mistakes
        )
        found = jm.report(y, np.where(is_wrong, 1 - y, y), groups=groups)
        return bool(found.disparities["accuracy", ""].low > 0)

    shown, k = 0.0, 0
    before = fewest - 1  # up to so many mistakes of the large group, k - 1 are shown to differ
    while before < most and k < small:
        k += 1
        up_to = last(partial(differs, k), before, most + 1)
        of_large = np.diff(stats.binom.cdf([before, up_to], large, 1 - accuracy))[0]
        shown += of_large * (1 - stats.binom.cdf(k - 1, small, 1 - accuracy) ** number)
        before = up_to
    yield "`report(groups=)`: accuracies of groups are shown to differ", "", shown


def leaderboards(
    rng: Rng,
    size: int,
    n: int | tuple[int, int, float],
    accuracies: tuple[float, ...],
    between: float,
    within: float = 0.0,
) -> Outcomes:
    """Classifiers of these accuracies, on n examples or on clusters."""
    true = np.tile(accuracies, (size, 1))
    clusters = None if isinstance(n, int) else clusters_of(*n)
    found, alone = boards(rng, true, n, between, within)
    by = "" if clusters is None else "(clusters=)"
    yield f"`leaderboard{by}`: some tier or rank is wrong", "", is_wrong(found, true)
    if alone is not None:
        yield "for comparison: `leaderboard` without `clusters=`", "", is_wrong(alone, true)
    winner = np.arange(size), found.winner
    yield f"`leaderboard{by}`: `winner_estimate`", "", (found.winner_estimate, true[winner])
    is_best = true == true.max(1, keepdims=True)
    best = is_best / is_best.sum(1, keepdims=True)
    shown = {"of the winner": found.probability_best[winner].mean(), "true": best[winner].mean()}
    yield f"`leaderboard{by}`: `probability_best`", "", shown


def random_leaderboards(
    rng: Rng,
    size: int,
    n: int | tuple[int, int, float],
    mean: float,
    deviation: float,
    between: float,
    within: float = 0.0,
) -> Outcomes:
    """Five classifiers; the logits of their accuracies are drawn anew for each data set."""
    true = special.expit(rng.normal(mean, deviation, (size, 5)))
    found, _ = boards(rng, true, n, between, within)
    said, best = found.probability_best, true == true.max(1, keepdims=True)
    bins = np.minimum((10 * said).astype(int), 9)
    shown = {
        f"said {said[bins == b].mean():.2f}, true": best[bins == b].mean()
        for b in (0, 2, 5, 9)
        if (bins == b).any()
    }
    by = "" if isinstance(n, int) else "(clusters=)"
    yield f"`leaderboard{by}`: `probability_best`, in bins", "", shown


LONGEST = 600  # examples of a board; others are left out


def boards(
    rng: Rng, true: np.ndarray, n: Any, between: float, within: float
) -> tuple[Any, Any | None]:
    """Boards of N data sets, from true accuracies `(N, M)`; of clusters also as if independent."""
    clusters = None if isinstance(n, int) else clusters_of(*n)
    shape = len(true), n if clusters is None else len(clusters)
    right = uniform(systems(rng, true.shape[1], shape, between, clusters, within)) < true[..., None]
    right = np.pad(right, [(0, 0), (0, 0), (0, LONGEST - shape[1])])
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), len(true))

    def found(of_clusters: tuple[int, int, float] | None) -> Any:
        arguments = jnp.asarray(right, int), keys, jnp.arange(LONGEST) < shape[1]
        return jax.tree.map(np.asarray, board_of(of_clusters)(*arguments))

    return (found(None), None) if clusters is None else (found(n), found(None))


@cache
def board_of(clusters: tuple[int, int, float] | None) -> Any:
    """A program of boards, whose labels are all 1."""
    ids = None
    if clusters is not None:
        numbers = clusters_of(*clusters)
        ids = np.pad(numbers, (0, LONGEST - len(numbers)))

    def board(where: jax.Array, right: jax.Array, key: jax.Array) -> Any:
        return jm.leaderboard(
            jm.accuracy,
            jnp.ones(right.shape[-1], int),
            right,
            num_classes=2,
            key=key,
            where=where,
            clusters=ids,
            num_samples=500,
        )

    def boards(right: jax.Array, keys: jax.Array, where: jax.Array) -> Any:
        return jax.lax.map(lambda x: board(where, *x), (right, keys), batch_size=20)

    return jax.jit(boards)


def is_wrong(board: Any, true: np.ndarray) -> np.ndarray:
    """Whether a rank is beyond its interval, or nobody in the tier above is truly better."""
    is_better = true[:, None] > true[..., None]  # (N, M, M): the second than the first
    best_rank, worst_rank = 1 + is_better.sum(2), true.shape[1] - is_better.sum(1)
    is_beyond = (board.rank_low > best_rank) | (board.rank_high < worst_rank)
    is_above = board.tiers[:, None] == board.tiers[..., None] - 1
    is_below_nobody = (board.tiers > 1) & ~(is_above & is_better).any(2)
    return (is_beyond | is_below_nobody).any(1)


def reports(rng: Rng, size: int, k: int, n: int, a: float) -> Outcomes:
    """Every number with an interval in reports of calibrated probabilities of k classes."""

    def values(n: int) -> dict[str, Any]:
        prob = rng.dirichlet(a * np.arange(1, k + 1), n)
        y = np.minimum((rng.random((n, 1)) > prob.cumsum(1)).sum(1), k - 1)
        report = jm.report(y, prob.argmax(1), y_prob=prob)
        first_class = {f"{name}, first class": x[0] for name, x in report.per_class.items()}
        return {**report.overall, **first_class}

    truth, found = values(1_000_000), [values(n) for _ in range(size)]
    for name, of_truth in truth.items():
        estimates = stacked([x[name] for x in found])
        if not np.isnan(estimates.low).all():
            yield (
                "`report(y_prob=)`: every value with an interval",
                name,
                (estimates, of_truth.value),
            )


STUDIES: dict[str, Study] = {
    "headlines": Study(
        "100 to 1000 examples of 2 or 3 classes; the accuracy is the share of the commonest class,"
        " .4 to .9",
        [
            (100, (0.7, 0.3)),
            (100, (0.8, 0.1, 0.1)),
            (250, (0.9, 0.1)),
            (400, (0.5, 0.5)),
            (400, (0.4, 0.3, 0.3)),
            (1000, (0.75, 0.25)),
        ],
        headlines,
    ),
    "gates": Study(
        "all recalls are at the bounds of their gates: 2 to 12 classes of 30 to 200 examples,"
        " bounds of .5 to .98",
        [(10, 50, 0.9), (12, 120, 0.98), (5, 200, 0.8), (2, 30, 0.5)],
        gates,
        1,
    ),
    "reports of groups": Study(
        "a group of 5000 examples and 9 groups of 15, all with an accuracy of .98",
        [(5000, 15, 9, 0.98)],
        group_reports,
        1,
        is_slow=True,
    ),
    "leaderboards": Study(
        "2 or 5 classifiers, equal or not, 20 to 600 examples, latent correlations of .2 to .7;"
        " number of examples, accuracies, latent correlation",
        [
            (200, (0.8, 0.8), 0.3),
            (200, (0.8,) * 5, 0.3),
            (150, (0.9, 0.9, 0.85, 0.8, 0.7), 0.5),
            (600, (0.95, 0.6, 0.6, 0.6, 0.6), 0.2),
            (60, (0.6, 0.6, 0.6, 0.59, 0.55), 0.7),
            (20, (0.97, 0.97, 0.95, 0.9, 0.9), 0.4),
            (60, (0.995, 0.99, 0.98, 0.98, 0.97), 0.4),
        ],
        leaderboards,
        1000,
    ),
    "leaderboards of clusters": Study(
        "5 classifiers, 20 to 100 clusters of up to 5:1, intraclass correlations of .2 to .6;"
        " number, mean size and ratio of sizes, accuracies, latent and intraclass correlation",
        [
            ((20, 10, 1), (0.8,) * 5, 0.3, 0.3),
            ((40, 8, 5), (0.9, 0.9, 0.88, 0.8, 0.75), 0.5, 0.6),
            ((100, 5, 5), (0.7, 0.7, 0.7, 0.65, 0.6), 0.2, 0.2),
        ],
        leaderboards,
        1000,
    ),
    "random leaderboards": Study(
        "5 classifiers whose logits of accuracies are normally distributed; number of examples (or"
        " of clusters, mean size and ratio), mean and deviation, latent and intraclass correlation",
        [(200, 1.4, 0.2, 0.3), (500, 2.2, 0.4, 0.6), ((50, 6, 1), 1.4, 0.3, 0.4, 0.4)],
        random_leaderboards,
        1000,
    ),
    "reports": Study(
        "calibrated probabilities of 2 or 3 classes, 60 or 500 examples",
        [(2, 60, 0.6), (2, 500, 0.1), (3, 60, 0.1), (3, 500, 0.6)],
        reports,
        150,
    ),
}
