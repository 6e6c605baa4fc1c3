"""Studies of means of scores: bounded values, clusters, groups, pairs, losses, bootstraps."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import numpy as np
from scipy import special

import jaxmetrics as jm
from bench import populations
from bench.populations import Rng, clusters_of, normal, systems, uniform
from bench.studies.study import BOUNDS, Outcomes, Study, on_device, padded, stacked


def means(rng: Rng, size: int, kind: str, n: int, mean: float) -> Outcomes:
    table = populations.values(kind, mean)
    x = populations.drawn(table, normal(rng, (size, n)))
    yield "`mean_interval(bounds=)`", "", (jm.mean_interval(x, bounds=BOUNDS), table.mean())
    yield "`mean_interval`: Student's t", "", (jm.mean_interval(x), table.mean())


def clustered_means(
    rng: Rng, size: int, kind: str, mean: float, clusters: tuple[int, int, float], within: float
) -> Outcomes:
    numbers, table = clusters_of(*clusters), populations.values(kind, mean)
    x = populations.drawn(table, normal(rng, (size, len(numbers)), numbers, within))
    truth = table.mean()
    if kind != "normal":
        found = jm.mean_interval(x, bounds=BOUNDS, clusters=numbers)
        yield "`mean_interval(bounds=, clusters=)`", "", (found, truth)
    if kind == "0/1":
        sizes = np.bincount(numbers)
        right = np.add.reduceat(x, np.append(0, sizes.cumsum()[:-1]), -1)
        found = jm.proportion_interval(right, np.broadcast_to(sizes, right.shape), cluster_axis=-1)
        yield "`proportion_interval(cluster_axis=)`", "", (found, truth)
        # A table per cluster with a single class: wrong, right.
        cells = np.stack([0 * right, 0 * right, sizes - right, right], -1)
        tables = padded(cells.reshape(*right.shape, 2, 2), 160)
        found = jm.interval(jm.accuracy, tables, cluster_axis=-3)
        yield "`interval(accuracy, cluster_axis=)`", "", (found, truth)
    label = "normal values" if kind == "normal" else "values in [0, 1]"
    found = jm.mean_interval(x, clusters=numbers)
    yield f"`mean_interval(clusters=)`: Student's t, {label}", "", (found, truth)
    yield "for comparison: `mean_interval` without `clusters=`", "", (jm.mean_interval(x), truth)


def means_of_groups(
    rng: Rng, size: int, kind: str, sizes: tuple[int, ...], mean: float, each: int, within: float
) -> Outcomes:
    """Groups of so many units, which are items or clusters of `each` items."""
    groups = np.repeat(np.arange(len(sizes)), np.array(sizes) * each)
    clusters = np.arange(len(groups)) // each
    tables = [populations.values(kind, mean - 0.05 * (g % 3)) for g in range(len(sizes))]
    latent = normal(rng, (size, len(groups)), clusters, within)
    parts = [populations.drawn(table, latent[:, groups == g]) for g, table in enumerate(tables)]
    truth = np.mean([table.mean() for table in tables])
    units = clusters if each > 1 else None
    is_bounded = kind not in ("normal", "exponential")
    for bounds in (None, BOUNDS) if is_bounded else (None,):
        reports = [
            jm.score_report(x, bounds=bounds, groups=groups, clusters=units)
            for x in np.concatenate(parts, axis=1)
        ]
        found = stacked([x["mean_of_groups"] for x in reports])
        how = ", bounds=)`" if bounds else ")`, values in [0, 1]" if is_bounded else f")`, {kind}"
        yield f"`score_report(groups={how}", "", (found, truth)


def cross_validations(
    rng: Rng, size: int, n: int, folds: int, repetitions: int, distance: float, dimension: int
) -> Outcomes:
    """Nearest-centroid classifiers of all features, and of the first two, of two normal classes."""
    y, centres = np.arange(n) % 2, distance * np.array([-0.5, 0.5])
    x = rng.standard_normal((size, n, dimension))
    x[..., 0] += centres[y]
    dimensions = dimension, 2
    shown, expected = [], []
    for _ in range(repetitions):
        folds_of = rng.permuted(np.tile(np.arange(n) % folds, (size, 1)), axis=1)
        for fold in range(folds):
            tested = folds_of == fold
            trained = [(~tested & (y == c)).astype(float) for c in (0, 1)]
            a, b = ((w[:, None] @ x)[:, 0] / np.maximum(w.sum(1), 1)[:, None] for w in trained)
            for d in dimensions:
                weight, middle = (b - a)[:, :d], ((a + b) / 2)[:, :d]
                offset = (middle * weight).sum(1)[:, None]
                margin = (x[..., :d] @ weight[..., None])[..., 0] - offset
                shown.append((((margin > 0) == y) & tested).sum(1) / tested.sum(1))
                at = (centres * weight[:, :1] - offset) / np.linalg.norm(weight, axis=1)[:, None]
                expected.append((special.ndtr(-at[:, 0]) + special.ndtr(at[:, 1])) / 2)
    of_all, of_two = np.stack(shown[::2], -1), np.stack(shown[1::2], -1)
    truth = np.mean(expected[::2])
    for what, scores, true in (
        ("accuracy", of_all, truth),
        ("difference", of_all - of_two, truth - np.mean(expected[1::2])),
    ):
        sizes = {"num_train": n * (folds - 1) // folds, "num_test": n // folds}
        found = jm.cross_validation_interval(scores, **sizes)
        yield "`cross_validation_interval`", what, (found, true)
        found = jm.mean_interval(scores)
        yield "for comparison: `mean_interval` of the folds", what, (found, true)


def repeated_items(rng: Rng, size: int, questions: int, same: float) -> Outcomes:
    """Two equal systems, whose answers to each question are scored by two filters, which agree on
    the share `same` of the answers.
    """
    latent = systems(rng, 2, (size, questions), 0.3)
    first = uniform(latent) < 0.5
    second = np.where(rng.random(first.shape) < same, first, rng.random(first.shape) < 0.5)
    a, b = np.concatenate([first, second], -1).astype(float).swapaxes(0, 1)
    of_questions = np.tile(np.arange(questions), 2)
    for line, clusters in (
        ("`compare_scores(clusters=)` of questions that are written twice", of_questions),
        ("for comparison: `compare_scores` of the rows", None),
    ):
        gap = jm.compare_scores(a, b, bounds=BOUNDS, clusters=clusters).difference
        yield line, "", np.asarray((gap.low > 0) | (gap.high < 0))


def paired_scores(
    rng: Rng,
    size: int,
    kind: str,
    n: int | tuple[int, int, float],
    means: tuple[float, float],
    between: float,
    within: float = 0.0,
) -> Outcomes:
    """Two systems on n items, or on items of clusters."""
    clusters = clusters_of(*n) if isinstance(n, tuple) else None
    shape = size, n if isinstance(n, int) else len(clusters_of(*n))
    latent = systems(rng, 2, shape, between, clusters, within)
    tables = [populations.values(kind, mean) for mean in means]
    scores = [populations.drawn(x, latent[:, i]) for i, x in enumerate(tables)]
    truth = tables[0].mean() - tables[1].mean()
    found = jm.compare_scores(*scores, bounds=BOUNDS, clusters=clusters).difference
    by = "" if clusters is None else ", clusters="
    yield f"`compare_scores(bounds={by})`", "", (found, truth)
    found = jm.compare_scores(*scores, clusters=clusters).difference
    by = "" if clusters is None else "(clusters=)"
    yield f"`compare_scores{by}`: Student's t", "", (found, truth)


def unpaired_scores(
    rng: Rng, size: int, kind: str, sizes: tuple[int, int], means: tuple[float, float]
) -> Outcomes:
    """Two systems on different items."""
    tables = [populations.values(kind, mean) for mean in means]
    pairs = zip(tables, sizes, strict=True)
    scores = [populations.drawn(x, normal(rng, (size, n))) for x, n in pairs]
    truth = tables[0].mean() - tables[1].mean()
    if kind != "normal":
        found = jm.compare_scores(*scores, bounds=BOUNDS, paired=False).difference
        yield "`compare_scores(bounds=, paired=False)`", "", (found, truth)
    found = jm.compare_scores(*scores, paired=False).difference
    yield "`compare_scores(paired=False)`: Student's t", "", (found, truth)


def losses(rng: Rng, size: int, n: int, name: str) -> Outcomes:
    """Losses of classifiers that are sure of their answers."""
    draw = TRUE_CLASSES[name]
    prob, many = draw(rng, (size, n)), draw(rng, 4_000_000)
    brier, loss, all_losses = (1 - prob) ** 2, -np.log(prob), -np.log(many)
    score, entropy = ((1 - many) ** 2).mean(), all_losses.mean()
    effective = n * entropy**2 / (all_losses**2).mean()
    found = jm.mean_interval(brier, bounds=BOUNDS)
    yield "`mean_interval(bounds=)` of Brier scores", "", (found, score)
    label = f"effective number {'from' if effective >= 30 else 'below'} 30"
    found = jm.mean_interval(loss, transform="log")
    yield f'`mean_interval(transform="log")`, {label}', "", (found, entropy)


def _calibrated(rng: Rng, shape: Any, a: float) -> np.ndarray:
    prob = np.clip(rng.beta(a, a, shape), 1e-15, 1 - 1e-15)
    return np.where(rng.random(shape) < prob, prob, 1 - prob)


# The probability of the true class.
TRUE_CLASSES: dict[str, Callable[[Rng, Any], np.ndarray]] = {
    "calibrated, beta(.05, .05)": lambda rng, s: _calibrated(rng, s, 0.05),
    "calibrated, uniform": lambda rng, s: _calibrated(rng, s, 1.0),
    "logits 5 + 2.5 N": lambda rng, s: special.expit(rng.normal(5, 2.5, s)),
    "wrong in .4 %, sure": lambda rng, s: np.where(rng.random(s) < 0.004, 0.02, 0.98),
    "wrong in 5 %": lambda rng, s: np.where(rng.random(s) < 0.05, 0.1, rng.beta(9, 1, s)),
}


def attempts(rng: Rng, size: int, n: int, r: int, k: int, a: float, b: float) -> Outcomes:
    """The probability of success has a beta distribution over items."""
    chance = rng.beta(a, b, (size, n))
    right = rng.random((size, n, r)) < chance[..., None]
    failure = np.exp(special.betaln(a, b + k) - special.betaln(a, b))
    found = jm.mean_interval(jm.pass_at_k(right, k), bounds=BOUNDS)
    yield "`mean_interval(bounds=)` of `pass_at_k`", "", (found, 1 - failure)


def crossed(
    rng: Rng,
    size: int,
    kind: str,
    mean: float,
    seeds: int,
    items: int,
    of_seeds: float,
    of_items: float,
) -> Outcomes:
    """Two systems, of which the second has two seeds more; the shares of the variance of a normal
    variable that are due to the seed and to the item.
    """
    item = normal(rng, (size, 1, items))
    scores, truths = [], []
    for s, lower in ((seeds, 0.0), (seeds + 2, 0.05)):
        latent = of_seeds**0.5 * normal(rng, (size, s, 1)) + of_items**0.5 * item
        latent = latent + (1 - of_seeds - of_items) ** 0.5 * normal(rng, (size, s, items))
        table = populations.values(kind, mean - lower)
        scores.append(populations.drawn(table, latent))
        truths.append(table.mean())
    a, b = scores
    bounds = BOUNDS if kind in ("0/1", "grades", "beta") else None
    how, label = (", bounds=", "") if bounds else ("", ": Student's t, unbounded values")
    difference = truths[0] - truths[1]
    found = jm.crossed_interval(a, bounds=bounds).mean
    yield f"`crossed_interval(a{how})`{label}", "", (found, truths[0])
    found = jm.crossed_interval(a, b, bounds=bounds).mean
    yield f"`crossed_interval(a, b{how})`{label}", "", (found, difference)
    found = jm.crossed_interval(a - b[:, 2:]).mean
    yield "`crossed_interval(a - b)`: Student's t", "", (found, difference)
    if bounds:
        found = jm.crossed_interval(a).mean
        yield "`crossed_interval(a)`: Student's t, values in [0, 1]", "", (found, truths[0])
    found = jm.mean_interval(a.mean(-2), bounds=bounds)
    yield "for comparison: `mean_interval` of the item means", "", (found, truths[0])


def crossed_metrics(
    rng: Rng,
    size: int,
    seeds: int,
    items: int,
    shares: tuple[float, ...],
    signal: float,
    of_seeds: float,
    of_items: float,
) -> Outcomes:
    """Macro F1 of systems whose logits have an effect of the seed and an effect of the item."""
    metric, k = jm.macro(jm.f1), len(shares)

    def sample(size: int, seeds: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        y = (rng.random((size, 1, n, 1)) > np.cumsum(shares)[:-1]).sum(-1)
        logits = signal * np.eye(k)[y] + of_seeds * normal(rng, (size, seeds, 1, k))
        logits = logits + of_items**0.5 * normal(rng, (size, 1, n, k))
        logits = logits + (1 - of_items) ** 0.5 * normal(rng, (size, seeds, n, k))
        y, predicted = np.broadcast_arrays(y, logits.argmax(-1))
        return y, predicted, jm.confusion_matrix(y, predicted, num_classes=k)

    truth = np.mean([metric(sample(50, 1, 5000)[2]) for _ in range(40)])
    y, predicted, counts = sample(size, seeds, items)
    f1, slopes = jax.vmap(jax.vmap(jax.value_and_grad(metric)))(on_device(counts.astype(float)))
    slopes = np.asarray(slopes).reshape(size, seeds, -1)
    scores = np.asarray(f1)[..., None] + items * np.take_along_axis(slopes, y * k + predicted, -1)
    found = jm.crossed_interval(scores).mean
    yield "`crossed_interval` of macro F1, from its slopes", "", (found, truth)
    found = jm.mean_interval(np.asarray(f1))
    yield "for comparison: `mean_interval` of macro F1 of each seed", "", (found, truth)
    found = jm.mean_interval(scores.mean(-2))
    yield "for comparison: `mean_interval` of slopes of macro F1 of the items", "", (found, truth)


def bootstraps(rng: Rng, size: int, clusters: tuple[int, int, float], within: float) -> Outcomes:
    numbers, table = clusters_of(*clusters), populations.values("exponential")
    rows = populations.drawn(table, normal(rng, (size, len(numbers)), numbers, within))
    found = [
        jm.bootstrap_examples(i, _mean, x, clusters=numbers, num_samples=1000)
        for i, x in enumerate(rows)
    ]
    how = f"{clusters[0]} clusters" if clusters[0] < 40 else "40 or more clusters"
    yield f"`bootstrap_examples(clusters=)`: BCa, {how}", "", (stacked(found), table.mean())


def stratified_bootstraps(rng: Rng, size: int, sizes: tuple[int, ...]) -> Outcomes:
    strata, scale = np.repeat(np.arange(len(sizes)), sizes), 1 + 2 * np.arange(len(sizes))
    table = populations.values("exponential")
    rows = scale[strata] * populations.drawn(table, normal(rng, (size, len(strata))))
    truth = scale[strata].mean() * table.mean()
    found = [
        jm.bootstrap_examples(i, _mean, x, strata=strata, num_samples=1000)
        for i, x in enumerate(rows)
    ]
    how = "10 or more" if min(sizes) >= 10 else str(min(sizes))
    yield f"`bootstrap_examples(strata=)`: BCa, {how} per stratum", "", (stacked(found), truth)


def _mean(x: np.ndarray) -> np.ndarray:
    return x.mean(-1)


STUDIES: dict[str, Study] = {
    "means": Study(
        "10 to 2500 values, which are 0 and 1, three grades or beta-distributed, with means of .5"
        " to .999",
        [
            ("0/1", 12, 0.5),
            ("0/1", 30, 0.9),
            ("0/1", 80, 0.97),
            ("0/1", 400, 0.995),
            ("0/1", 2500, 0.999),
            ("grades", 10, 0.7),
            ("grades", 30, 0.95),
            ("grades", 150, 0.985),
            ("grades", 800, 0.6),
            ("beta", 10, 0.5),
            ("beta", 25, 0.92),
            ("beta", 120, 0.98),
            ("beta", 1000, 0.75),
        ],
        means,
    ),
    "clustered means": Study(
        "20 to 150 clusters of up to 10:1 with intraclass correlations of 0 to .7; values of 0 and"
        " 1, three grades or beta-distributed with means of .6 to .93, or normal values",
        [
            ("0/1", 0.6, (20, 8, 5), 0.3),
            ("0/1", 0.85, (35, 10, 10), 0.2),
            ("0/1", 0.9, (60, 5, 1), 0.6),
            ("0/1", 0.93, (150, 4, 5), 0.1),
            ("grades", 0.8, (25, 12, 10), 0.4),
            ("grades", 0.9, (80, 6, 1), 0.0),
            ("beta", 0.7, (20, 5, 1), 0.5),
            ("beta", 0.9, (40, 15, 5), 0.3),
            ("normal", 0.0, (20, 6, 10), 0.7),
            ("normal", 0.0, (45, 10, 10), 0.3),
            ("normal", 0.0, (100, 4, 5), 0.0),
        ],
        clustered_means,
    ),
    "concentrated means": Study(
        "a few clusters have most of the mistakes: means of .95 to .99, intraclass correlations of"
        " .35 to .7, 40 to 150 clusters",
        [
            ("0/1", 0.95, (40, 20, 1), 0.5),
            ("0/1", 0.97, (60, 15, 5), 0.5),
            ("0/1", 0.98, (50, 20, 1), 0.7),
            ("0/1", 0.99, (150, 12, 1), 0.35),
            ("grades", 0.97, (60, 15, 1), 0.5),
        ],
        clustered_means,
    ),
    "means of groups": Study(
        "3 to 5 groups of 3 to 250 items, or of 20 to 60 clusters; bounded, normal and exponential"
        " values",
        [
            ("0/1", (12, 30, 100), 0.9, 1, 0.0),
            ("0/1", (5, 40, 40, 250), 0.97, 1, 0.0),
            ("beta", (3, 8, 20, 60, 200), 0.8, 1, 0.0),
            ("grades", (20, 25, 30), 0.75, 4, 0.4),
            ("0/1", (20, 60, 30, 25), 0.93, 3, 0.3),
            ("normal", (4, 9, 40), 0.0, 1, 0.0),
            ("normal", (3, 3, 150, 60), 0.0, 1, 0.0),
            ("exponential", (4, 9, 40), 1.0, 1, 0.0),
            ("exponential", (25, 60, 15), 1.0, 1, 0.0),
        ],
        means_of_groups,
        200,
    ),
    "cross-validation": Study(
        "accuracies of nearest-centroid classifiers, and differences of two; 40 to 240 examples, 4"
        " to 10 folds, 1 to 10 repetitions",
        [
            (40, 4, 10, 1.5, 10),
            (50, 5, 1, 2.0, 8),
            (100, 10, 1, 1.0, 20),
            (120, 5, 3, 2.5, 5),
            (240, 10, 2, 1.5, 10),
        ],
        cross_validations,
    ),
    "paired scores": Study(
        "10 to 1000 items with scores of 0 and 1, three grades or beta-distributed scores, means of"
        " .55 to .995 and latent correlations of 0 to .95",
        [
            ("0/1", 12, (0.7, 0.6), 0.3),
            ("0/1", 40, (0.9, 0.9), 0.5),
            ("0/1", 100, (0.97, 0.93), 0.9),
            ("0/1", 300, (0.99, 0.99), 0.6),
            ("0/1", 1000, (0.995, 0.99), 0.95),
            ("grades", 15, (0.8, 0.6), 0.0),
            ("grades", 60, (0.9, 0.9), 0.8),
            ("grades", 400, (0.7, 0.75), 0.4),
            ("beta", 10, (0.8, 0.7), 0.5),
            ("beta", 50, (0.95, 0.95), 0.9),
            ("beta", 500, (0.6, 0.55), 0.2),
        ],
        paired_scores,
    ),
    "clustered scores": Study(
        "two systems on 20 to 40 clusters of up to 10:1, intraclass correlations of .15 to .6",
        [
            ("0/1", (20, 6, 1), (0.8, 0.8), 0.4, 0.3),
            ("0/1", (30, 12, 5), (0.9, 0.85), 0.7, 0.5),
            ("0/1", (40, 25, 1), (0.97, 0.97), 0.5, 0.15),
            ("grades", (25, 10, 10), (0.7, 0.6), 0.3, 0.4),
            ("grades", (40, 5, 1), (0.9, 0.9), 0.8, 0.6),
            ("beta", (20, 15, 5), (0.8, 0.75), 0.5, 0.3),
        ],
        paired_scores,
    ),
    "unpaired scores": Study(
        "two systems on different items, 5 to 400; scores of 0 and 1, three grades or"
        " beta-distributed scores, means of .55 to .99, or normal scores",
        [
            ("0/1", (12, 30), (0.7, 0.6)),
            ("0/1", (150, 25), (0.97, 0.9)),
            ("0/1", (60, 400), (0.99, 0.98)),
            ("grades", (15, 15), (0.8, 0.8)),
            ("grades", (100, 40), (0.95, 0.7)),
            ("beta", (10, 60), (0.8, 0.9)),
            ("beta", (200, 120), (0.55, 0.6)),
            ("normal", (5, 8), (0.0, 0.0)),
            ("normal", (40, 6), (0.0, 1.0)),
        ],
        unpaired_scores,
    ),
    "repeated items": Study(
        "two equal systems on 30 to 300 questions, each scored by two filters that agree on 60 to"
        " 95 % of the answers",
        [*product((30, 100, 300), (0.6, 0.95))],
        repeated_items,
    ),
    "losses": Study(
        "losses of 10 to 500 examples, of calibrated or overconfident probabilities",
        [*product((10, 40, 500), TRUE_CLASSES)],
        losses,
        1000,
    ),
    "attempts": Study(
        "30 to 300 items with 4 to 16 attempts each, k of 2 to 4, and beta-distributed chances",
        [(30, 4, 2, 0.5, 0.5), (100, 8, 2, 0.3, 1.0), (60, 16, 4, 1.0, 3.0), (300, 4, 2, 2, 0.3)],
        attempts,
    ),
    "seeds and items": Study(
        "3 to 20 seeds and 20 to 1000 items; scores of 0 and 1, grades, beta-distributed, normal,"
        " exponential or Student-distributed scores (3 degrees of freedom); 0 to 30 % of the"
        " variance between seeds, and 0 to 90 % between items",
        [
            ("0/1", 0.6, 3, 1000, 0.02, 0.6),
            ("0/1", 0.8, 4, 150, 0.0, 0.5),
            ("0/1", 0.85, 3, 25, 0.3, 0.2),
            ("0/1", 0.9, 6, 400, 0.1, 0.7),
            ("0/1", 0.97, 5, 200, 0.05, 0.4),
            ("0/1", 0.7, 20, 50, 0.0, 0.9),
            ("grades", 0.75, 3, 80, 0.0, 0.0),
            ("grades", 0.9, 12, 600, 0.15, 0.3),
            ("beta", 0.8, 4, 20, 0.05, 0.6),
            ("beta", 0.95, 8, 250, 0.2, 0.0),
            ("normal", 0.0, 3, 40, 0.0, 0.9),
            ("normal", 0.0, 3, 500, 0.1, 0.3),
            ("normal", 0.0, 12, 30, 0.02, 0.1),
            ("exponential", 1.0, 5, 100, 0.0, 0.7),
            ("exponential", 1.0, 4, 700, 0.1, 0.2),
            ("Student", 0.0, 3, 20, 0.0, 0.8),
            ("Student", 0.0, 6, 300, 0.25, 0.4),
            ("Student", 0.0, 20, 1000, 0.01, 0.05),
        ],
        crossed,
        1000,
    ),
    "macro F1 of seeds": Study(
        "macro F1 of 3 or 4 classes, 3 to 12 seeds and 150 to 800 items; the rarest class has 6 to"
        " 33 % of the items; effects of seeds on logits have standard deviations of 0 to .4",
        [
            (3, 150, (0.4, 0.3, 0.3), 1.5, 0.1, 0.4),
            (3, 800, (0.6, 0.3, 0.1), 2.5, 0.3, 0.7),
            (4, 400, (0.25, 0.25, 0.25, 0.25), 2.0, 0.0, 0.5),
            (5, 250, (0.5, 0.3, 0.14, 0.06), 2.5, 0.2, 0.8),
            (5, 600, (0.34, 0.33, 0.33), 3.5, 0.4, 0.3),
            (8, 300, (0.7, 0.2, 0.1), 3.0, 0.1, 0.6),
            (12, 200, (0.5, 0.25, 0.25), 1.0, 0.4, 0.2),
            (12, 700, (0.4, 0.3, 0.2, 0.1), 2.0, 0.15, 0.9),
        ],
        crossed_metrics,
        400,
    ),
    "bootstraps": Study(
        "means of exponential values in 20 to 100 clusters of up to 10:1",
        [((20, 3, 1), 0.3), ((20, 6, 10), 0.5), ((50, 4, 5), 0.2), ((100, 5, 1), 0.6)],
        bootstraps,
        1000,
    ),
    "stratified bootstraps": Study(
        "means of exponential values in 2 to 4 strata of 2 to 150 examples",
        [((10, 20, 10),), ((40, 60),), ((150, 20, 15, 30),), ((5, 5, 5),), ((2, 2),)],
        stratified_bootstraps,
        1000,
    ),
}
