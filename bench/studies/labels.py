"""Studies of metrics of confusion matrices: pairs, groups, clusters, streams, posteriors, plans."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import jax
import numpy as np

import jaxmetrics as jm
from bench import coverage, joint_coverage, judged, populations
from bench.populations import Rng, clusters_of, normal, systems, uniform
from bench.studies.study import BOUNDS, Outcomes, Study, estimate, on_device, padded, stacked

METRICS = {"accuracy": jm.accuracy, "macro F1": jm.macro(jm.f1)}
metrics = coverage.all_of(METRICS)
disparities = coverage.all_of(joint_coverage.DISPARITIES)


def tables_of_recalls(sizes: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Tables `(N, K, K)` of classes of `sizes`; wrong examples are predicted as the next class."""
    same = np.eye(right.shape[-1], dtype=int)
    return right[..., None] * same + (sizes - right)[..., None] * np.roll(same, 1, 1)


def lowest_recalls(rng: Rng, size: int, recalls: tuple[float, ...]) -> Outcomes:
    right = rng.binomial(50, recalls, (size, len(recalls)))
    counts = on_device(tables_of_recalls(np.full(right.shape, 50), right))
    found = jm.interval(_lowest_recall, counts)
    tied = sum(x == min(recalls) for x in recalls)
    which = "one class is the lowest" if tied == 1 else f"{tied} equal classes"
    yield f"`interval` of the lowest recall, {which}", "", (found, min(recalls))


def few_examples(rng: Rng, size: int, k: int, n: int, recall: float, larger: int = 0) -> Outcomes:
    """Recalls vary between the classes; the intervals of both methods are for these classes. The
    last classes may have 50 examples.
    """
    p = rng.beta(4 * recall, 4 * (1 - recall), k)
    totals = np.where(np.arange(k) < k - larger, n, 50)
    right = rng.binomial(totals, p, (size, k))
    counts = tables_of_recalls(np.full(right.shape, totals), right)
    name = f"{n} example{'s' * (n > 1)} per class" if n < 5 else "5 or more examples per class"
    if larger:
        name = f"{n} example in {k - larger} of {k} classes"
    # A function that says no more of its metric gives no warning.
    found = jm.interval(lambda table: jm.balanced_accuracy(table), counts)
    yield f"`interval` of balanced accuracy, {name}", "", (found, p.mean())
    found = jm.mean_interval(right / totals, bounds=BOUNDS)
    yield f"`mean_interval` of the recalls, {name}", "", (found, p.mean())


def _lowest_recall(counts: Any) -> Any:
    return jm.recall(counts).min(-1)


def grades(rng: Rng, size: int, n: int, spread: float) -> Outcomes:
    """A judge's grade is near the grade by people, with normal weights of the distance."""
    steps = np.arange(5)
    cells = np.exp(-(((steps[:, None] - steps) / spread) ** 2) / 2)
    cells *= np.array([0.1, 0.15, 0.25, 0.3, 0.2])[:, None] / cells.sum(1, keepdims=True)
    counts = on_device(rng.multinomial(n, cells.ravel(), size).reshape(size, 5, 5))
    for method in (jm.Delta("atanh"), jm.Likelihood()):
        found = jm.interval(_quadratic_kappa, counts, method=method)
        yield f"`interval` of quadratic kappa, {method.name}", "", (found, _quadratic_kappa(cells))


def _quadratic_kappa(counts: Any) -> Any:
    return jm.cohen_kappa(counts, weights="quadratic")


# Three classes: their shares, and the accuracy of each.
SHARES, RIGHT = np.array([0.5, 0.3, 0.2]), np.array([0.9, 0.8, 0.6])
WEIGHTED = METRICS | {"recall of one class": lambda counts: jm.recall(counts)[..., 1]}


def weighted_examples(rng: Rng, size: int, n: int, kind: str) -> Outcomes:
    """The truth is the metric of the expected weight of each cell."""
    true = rng.choice(3, (size, n), p=SHARES)
    is_right = rng.random((size, n)) < RIGHT[true]
    pred = np.where(is_right, true, (true + rng.integers(1, 3, (size, n))) % 3)
    cells = SHARES[:, None] * np.where(np.eye(3), RIGHT[:, None], (1 - RIGHT[:, None]) / 2)
    if kind == "survey":
        weights, mean = rng.choice([0.5, 1, 4.2], true.shape), np.ones((3, 3))
    elif kind == "of classes":
        of_class = np.array([0.5, 3, 40])
        weights, mean = of_class[true], of_class[:, None]
    elif kind == "lognormal":
        weights, mean = rng.lognormal(size=true.shape), np.ones((3, 3))
    else:  # mistakes weigh up to 8, and three times as much on average
        weights = np.where(is_right, rng.choice([1, 2], true.shape), rng.choice([1, 8], true.shape))
        mean = np.where(np.eye(3), 1.5, 4.5)
    counted = partial(jm.confusion_matrix, true, pred, num_classes=3)
    tables = [np.asarray(counted(sample_weight=w)) for w in (weights, weights**2)]
    sums, squares = map(on_device, tables)
    found = jm.interval(coverage.all_of(WEIGHTED), sums, squares=squares)
    for name, metric in WEIGHTED.items():
        line = "`interval(squares=)`" + ", mistakes weigh more" * (kind == "of mistakes")
        yield line, name, (found[name], float(metric(cells * mean)))


def streams(rng: Rng, size: int, accuracy: float, share: float) -> Outcomes:
    """20,000 examples of two classes, intervals at 40 times; the confidence sequences at 200."""
    last = joint_coverage.LAST
    looks = np.unique(np.geomspace(joint_coverage.FIRST, last, 40).astype(int))
    cells = coverage.predictions(np.array([share, 1 - share]), accuracy)
    cells = cells * np.array([share, 1 - share])[:, None]
    new = rng.multinomial(np.diff(looks, prepend=0), cells.ravel(), (size, len(looks)))
    counts = on_device(new.cumsum(1).reshape(size, len(looks), 2, 2))
    for line, is_anytime in (
        ("`interval(anytime=True)`", True),
        ("for comparison: `interval` at all times", False),
    ):
        found = jm.interval(metrics, counts, anytime=is_anytime)
        for name, metric in METRICS.items():
            yield line, name, (found[name], float(metric(cells)))
    right = rng.random((size, last // 100, 100)) < accuracy
    so_far = right.mean(-1).cumsum(1) / np.arange(1, last // 100 + 1)
    for method in ("mixture", "bernstein"):
        found = estimate(so_far, *joint_coverage.over_time(method, jax.numpy.asarray(right)))
        yield f'`confidence_sequence(method="{method}")`', "", (found, accuracy)


def drifts(rng: Rng, size: int, first: float, final: float) -> Outcomes:
    """The accuracy falls; the sequence is held to the mean of the true accuracies so far."""
    true = np.linspace(first, final, 20_000)
    right = (rng.random((size, len(true))) < true).reshape(size, -1, 100)
    so_far = (true.cumsum() / np.arange(1, len(true) + 1))[99::100]
    for method in ("mixture", "bernstein"):
        ends = joint_coverage.over_time(method, jax.numpy.asarray(right))
        found = estimate(np.full(ends[0].shape, np.nan), *ends)
        yield f'`confidence_sequence(method="{method}")`, drift', "", (found, so_far)


def paired_accuracies(rng: Rng, size: int, n: int, a: float, b: float, between: float) -> Outcomes:
    right = uniform(systems(rng, 2, (size, n), between)) < np.array([[a], [b]])
    counts = paired_tables(right, np.zeros(n, int))[:, 0]
    yield "`paired_difference_interval`", "", (jm.paired_difference_interval(counts), a - b)
    if a == b:
        yield "`mcnemar`: mid-p", "", jm.mcnemar(counts).p_value <= 0.05


def paired_tables(right: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Tables `(N, C, 2, 2, 2)` of clusters from booleans `(N, 2, n)`; the truth is always 1."""
    number = int(clusters.max()) + 1
    kind = 4 + 2 * right[:, 0] + right[:, 1] + 8 * clusters
    counts = np.stack([np.bincount(x, minlength=8 * number) for x in kind])
    return counts.reshape(len(right), number, 2, 2, 2)


def clustered_pairs(
    rng: Rng, size: int, clusters: tuple[int, int, float], within: float, accuracy: float
) -> Outcomes:
    """Two classifiers of equal accuracy, with the latent correlation .4."""
    numbers = clusters_of(*clusters)
    right = uniform(systems(rng, 2, (size, len(numbers)), 0.4, numbers, within)) < accuracy
    counts = paired_tables(right, numbers)
    yield "`mcnemar(cluster_axis=)`", "", jm.mcnemar(counts, cluster_axis=-4).p_value <= 0.05
    alone = jm.mcnemar(counts.sum(1)).p_value <= 0.05
    yield "for comparison: `mcnemar` without `cluster_axis=`", "", alone
    found = jm.compare(jm.accuracy, padded(counts, 100), cluster_axis=-4).difference
    yield "`compare(accuracy, cluster_axis=)`", "", (found, 0.0)


def groups(rng: Rng, size: int, sizes: tuple[int, ...], gap: float, recall: float) -> Outcomes:
    """Two equal classes; the last group is recognised less often."""
    recalls = np.append(np.full(len(sizes) - 1, recall), recall - gap)
    cells = np.array([[0.5 * r, 0.5 * (1 - r), 0.5 * (1 - r), 0.5 * r] for r in recalls])
    counts = [rng.multinomial(n, x, size) for n, x in zip(sizes, cells, strict=True)]
    # Groups without examples are skipped.
    tables = padded(np.stack(counts, 1).reshape(size, len(sizes), 2, 2), 8)
    groups: Any = jm.compare_groups(disparities, tables)
    for name, found in groups.items():
        yield "`compare_groups`", name, (found, gap)
        if gap == 0:
            yield "`compare_groups`: shown to differ", name, np.asarray(found.low) > 0


def unpaired(rng: Rng, size: int, k: int, n_a: int, a: float, n_b: int, b: float) -> Outcomes:
    designs = coverage.Design(n_a, k, "Zipf", a), coverage.Design(n_b, k, "Zipf", b)
    counts = [
        on_device(rng.multinomial(x.n, x.cells.ravel(), size).reshape(size, k, k)) for x in designs
    ]
    of_a, of_b = (metrics(x.cells) for x in designs)
    compared: Any = jm.compare_unpaired(metrics, *counts)
    for name, found in compared.items():
        yield "`compare_unpaired`", name, (found.difference, float(of_a[name] - of_b[name]))


def clustered_labels(
    rng: Rng, size: int, clusters: tuple[int, int, float], within: float, k: int, recall: float
) -> Outcomes:
    numbers, prior = clusters_of(*clusters), coverage.class_shares("Zipf", k)
    predictions = coverage.predictions(prior, recall)
    cells = prior[:, None] * predictions
    latent = (normal(rng, (size, len(numbers)), numbers, within) for _ in range(2))
    y, pred = populations.labels(prior, predictions, *latent)
    counts = jm.confusion_matrix(y, pred, num_classes=k, groups=numbers, num_groups=clusters[0])
    found = jm.interval(metrics, padded(counts, 160), cluster_axis=-3)
    for name, metric in METRICS.items():
        yield f"`interval({name}, cluster_axis=)`", "", (found[name], float(metric(cells)))
    right, sizes = counts.trace(axis1=-2, axis2=-1), counts.sum((-2, -1))
    proportion = jm.proportion_interval(right, sizes, cluster_axis=-1)
    yield "`proportion_interval(cluster_axis=)`", "", (proportion, float(jm.accuracy(cells)))


def random_clusters(rng: Rng, size: int, kind: str, number: int, harder: float) -> Outcomes:
    """Sizes are drawn, too, and larger clusters are harder (or not)."""

    def draw(*shape: int) -> np.ndarray:
        sizes = populations.random_sizes(rng, shape, kind)
        return populations.tables_of_clusters(rng, sizes, harder)

    population, counts = draw(10**6).sum(0), padded(draw(size, number), 160)
    found = jm.interval(metrics, counts, cluster_axis=-3)
    for name, metric in METRICS.items():
        line = f"`interval({name}, cluster_axis=)`, sizes {kind}"
        yield line, "", (found[name], float(metric(population)))


def multilabel(rng: Rng, size: int, n: int, number: int, share: float, recall: float) -> Outcomes:
    """All labels of an example are equal, and so are their predictions."""
    prior = np.array([1 - share, share])
    cells = prior[:, None] * coverage.predictions(prior, recall)
    kinds = (rng.random((size, n))[..., None] > cells.ravel().cumsum()[:-1]).sum(-1)
    tables = np.eye(4, dtype=int)[kinds].reshape(size, n, 1, 2, 2).repeat(number, 2)
    found = jm.interval(jm.label_macro(jm.f1), padded(tables, 200), cluster_axis=-4)
    truth = float(jm.binary(jm.f1)(cells))
    yield "`interval(label_macro(f1), cluster_axis=-4)`", "", (found, truth)


def judges(
    rng: Rng, size: int, n: int, times: int, recall: float, kappa: float, is_difference: bool
) -> Outcomes:
    """Designs of `bench.judged`, and judges without errors."""
    design = judged.Design(2, recall, kappa, n, times)
    pairs = design.cells.sum(1)
    labelled = rng.multinomial(n, design.cells.ravel(), size).reshape(size, 2, 2, 2, 2)
    others = rng.multinomial(n * times, design.cells.sum(0).ravel(), size).reshape(size, 2, 2, 2)
    of_a, of_b = metrics(pairs.sum(2)), metrics(pairs.sum(1))
    if is_difference:
        arguments = jm.difference(metrics), labelled, others
    else:
        arguments = metrics, labelled.sum(-1), others.sum(-1)
    found = jm.prediction_powered(arguments[0], *map(on_device, arguments[1:]))
    for name in METRICS:
        truth = float(of_a[name] - of_b[name] if is_difference else of_a[name])
        yield "`prediction_powered`", name, (found[name], truth)
        value = np.asarray(found[name].value) - truth
        bias = {name: value.mean()}
        yield "bias of `prediction_powered`", name, bias


def posteriors(rng: Rng, size: int, n: int, k: int, recall: float, is_fixed: bool) -> Outcomes:
    """Classes of n examples, or n examples of equally frequent classes."""
    sizes = np.full((size, k), n) if is_fixed else rng.multinomial(n, np.full(k, 1 / k), size)
    counts = tables_of_recalls(sizes, rng.binomial(sizes, recall))
    ends = {
        name: jm.balanced_accuracy_posterior(counts, prior=prior).interval(0.95)
        for name, prior in {"flat prior": 1.0, "Jeffreys' prior": 0.5}.items()
    }
    few = jm.interval(jm.balanced_accuracy, counts[: max(size // 10, 20)], method=jm.Posterior(0))
    ends["`Posterior`, flat prior"] = few.low, few.high
    shown = {x: np.mean((low <= recall) & (recall <= high)) for x, (low, high) in ends.items()}
    yield "coverage of `balanced_accuracy_posterior` and of `Posterior`", "", shown


def plans(rng: Rng, size: int, name: str, prior: tuple[float, ...], recall: float) -> Outcomes:
    """Pilot studies of 200 examples, for a half-width of 0.02."""
    metric = jm.accuracy if name == "accuracy" else jm.balanced_accuracy
    cells = np.array(prior)[:, None] * coverage.predictions(np.array(prior), recall)
    counts = rng.multinomial(200, cells.ravel(), size).reshape(size, 2, 2)
    needed = jm.required_examples(metric, counts, half_width=0.02)
    low, high = np.nanquantile(needed, (0.025, 0.975))
    exact = jm.required_examples(metric, np.round(cells * 1e6), half_width=0.02)
    shown = {"needed": exact, "2.5 % say less than": low, "2.5 % say more than": high}
    yield f"`required_examples`: {name}", "", shown


def raters(
    rng: Rng, size: int, scale: Any, n: int, r: int, shares: tuple[float, ...], wrong: float
) -> Outcomes:
    """A quarter of the ratings are missing, and the first rater makes twice as many mistakes. On
    the ordinal and the interval scale, a mistake is a neighbouring category.
    """
    k, mistakes = len(shares), wrong * np.append(2, np.ones(r - 1))

    def drawn(n: int) -> np.ndarray:
        true = rng.choice(k, (n, 1), p=shares)
        other = rng.choice(k, (n, r), p=shares)
        if scale != "nominal":
            other = np.clip(true + rng.choice([-1, 1], (n, r)), 0, k - 1)
        ratings = np.where(rng.random((n, r)) < mistakes, other, true)
        return np.where(rng.random((n, r)) < 0.25, np.nan, ratings)

    true, *found = (jm.rater_agreement(drawn(x), scale=scale) for x in [20_000, *np.full(size, n)])
    for name in ("alpha", "kappa"):
        estimates = [getattr(x, name) for x in found]
        yield f"`rater_agreement`: {name}", "", (stacked(estimates), float(getattr(true, name)))
    ends = ([getattr(x.raters, end)[0] for x in found] for end in ("value", "low", "high"))
    others = true.raters.value[0]
    yield "`rater_agreement`: a rater and the others", "", (estimate(*map(np.array, ends)), others)


STUDIES: dict[str, Study] = {
    "raters": Study(
        "20 to 200 items, 3 to 8 raters, 2 to 6 categories, a quarter of the ratings missing, alpha"
        " of .2 to .98",
        [
            ("nominal", 20, 3, (0.5, 0.3, 0.2), 0.1),
            ("nominal", 40, 8, (0.8, 0.2), 0.2),
            ("nominal", 120, 4, (0.25, 0.25, 0.25, 0.25), 0.4),
            ("ordinal", 25, 5, (0.1, 0.2, 0.4, 0.3), 0.3),
            ("ordinal", 60, 3, (0.4, 0.3, 0.2, 0.1), 0.05),
            ("interval", 30, 4, (0.3, 0.3, 0.2, 0.1, 0.05, 0.05), 0.4),
            ("interval", 200, 6, (0.6, 0.3, 0.1), 0.02),
        ],
        raters,
        200,
        is_slow=True,
    ),
    "grades": Study(
        "100 to 1000 items that people and a judge give one of five grades, quadratic kappa of .25,"
        " .66 or .90",
        [*product((100, 300, 1000), (2.5, 1.2, 0.6))],
        grades,
        1000,
    ),
    "lowest recalls": Study(
        "2, 3 or 10 classes of 50 examples, with recalls of .95, or one of them clearly lower",
        [
            ((0.95,) * 2,),
            ((0.95,) * 3,),
            ((0.95,) * 10,),
            ((0.8, 0.97),),
            ((0.7, 0.9, 0.95),),
            ((0.6, *(0.95,) * 9),),
        ],
        lowest_recalls,
    ),
    "few examples": Study(
        "6 to 30 classes of 1 to 10 examples, or some of 50, with recalls of .7 to .95 on average",
        [
            *((k, 1, recall) for k, recall in ((6, 0.7), (12, 0.9), (30, 0.8))),
            *((k, 2, recall) for k, recall in ((6, 0.8), (12, 0.7), (30, 0.9))),
            *((k, 3, recall) for k, recall in ((6, 0.9), (12, 0.8), (30, 0.7))),
            *((k, n, 0.8) for k, n in ((6, 5), (12, 5), (30, 5), (12, 10), (30, 10))),
            (10, 5, 0.95),
            *((k, 1, 0.8, k - few) for k, few in ((10, 2), (10, 3), (20, 4), (20, 10))),
        ],
        few_examples,
        150,
    ),
    "weighted examples": Study(
        "40 to 300 examples of three classes with accuracies of .9, .8 and .6; weights of .5, 1 or"
        " 4.2, of the classes, or lognormal; or mistakes weigh three times as much on average",
        [*product((40, 100, 300), ("survey", "of classes", "lognormal", "of mistakes"))],
        weighted_examples,
        500,
    ),
    "streams": Study(
        "streams of 20,000 examples of two classes with accuracies of .6 to .99; the coverage is"
        " that of all intervals of a stream, and the width that of the last interval",
        [(0.6, 0.5), (0.85, 0.3), (0.95, 0.2), (0.99, 0.5)],
        streams,
        500,
    ),
    "drift": Study(
        "streams of 20,000 examples, whose accuracy falls from .9 to .6",
        [(0.9, 0.6)],
        drifts,
        500,
    ),
    "paired accuracies": Study(
        "20 to 4000 examples, two classifiers with accuracies of .5 to .999, equal or different,"
        " with latent correlations of 0 to .99",
        [
            (20, 0.7, 0.5, 0.3),
            (35, 0.8, 0.8, 0.6),
            (60, 0.95, 0.9, 0.9),
            (100, 0.5, 0.5, 0.0),
            (150, 0.98, 0.98, 0.5),
            (400, 0.9, 0.9, 0.8),
            (1000, 0.999, 0.995, 0.5),
            (2000, 0.97, 0.97, 0.99),
            (4000, 0.6, 0.55, 0.7),
        ],
        paired_accuracies,
    ),
    "clustered pairs": Study(
        "two equal classifiers on 20 to 100 clusters of up to 10:1, intraclass correlations of 0 to"
        " .7",
        [
            ((20, 10, 1), 0.0, 0.8),
            ((20, 15, 10), 0.5, 0.7),
            ((35, 8, 5), 0.7, 0.9),
            ((60, 20, 10), 0.3, 0.85),
            ((100, 5, 5), 0.6, 0.6),
        ],
        clustered_pairs,
    ),
    "groups": Study(
        "2 to 8 groups of 15 to 5000 examples, accuracies of .75 to .98, equal or one lower",
        [
            ((50, 50), 0.0, 0.9),
            ((30, 300), 0.15, 0.85),
            ((100, 60, 200), 0.0, 0.75),
            ((500,) * 4, 0.05, 0.95),
            ((20,) * 8, 0.0, 0.8),
            ((2000, 1000, 100, 60, 60), 0.2, 0.9),
            ((5000, *(15,) * 7), 0.0, 0.98),
        ],
        groups,
    ),
    "unpaired": Study(
        "50 to 500 examples of 2 or 4 classes with recalls of .65 to .97",
        [
            (2, 50, 0.9, 120, 0.8),
            (2, 80, 0.97, 80, 0.97),
            (2, 400, 0.65, 150, 0.7),
            (4, 60, 0.8, 60, 0.8),
            (4, 500, 0.95, 300, 0.9),
        ],
        unpaired,
    ),
    "clustered labels": Study(
        "20 to 150 clusters of up to 10:1, intraclass correlations of 0 to .7, 2 or 3 classes of"
        " unequal frequencies, recalls of .6 to .98",
        [
            ((20, 10, 1), 0.0, 2, 0.8),
            ((20, 15, 10), 0.4, 2, 0.9),
            ((40, 5, 5), 0.7, 2, 0.7),
            ((100, 4, 10), 0.2, 2, 0.95),
            ((150, 20, 1), 0.3, 2, 0.98),
            ((25, 30, 5), 0.2, 3, 0.6),
            ((60, 8, 10), 0.5, 3, 0.9),
            ((100, 12, 1), 0.1, 3, 0.8),
        ],
        clustered_labels,
    ),
    "concentrated labels": Study(
        "a few clusters have most of the mistakes: 50 or 100 clusters, recalls of .98, intraclass"
        " correlations of .5 to .7",
        [
            ((50, 20, 1), 0.5, 2, 0.98),
            ((50, 20, 1), 0.7, 2, 0.98),
            ((100, 12, 1), 0.6, 2, 0.985),
        ],
        clustered_labels,
    ),
    "clusters of random sizes": Study(
        "30 or 100 clusters, with sizes that are uniform or have heavy tails; larger clusters are"
        " harder, or not",
        [*product(("up to 10:1", "with heavy tails"), (30, 100), (0.0, 0.4))],
        random_clusters,
    ),
    "multilabel": Study(
        "60 to 200 examples with five labels, all equal",
        [(60, 5, 0.5, 0.8), (120, 5, 0.3, 0.9), (200, 5, 0.2, 0.7)],
        multilabel,
    ),
    "judges": Study(
        "50 to 400 examples with true labels, 10 or 1000 times as many that a judge labelled,"
        " recalls of .8 to .95, kappa of .4 to 1, also for differences of two classifiers; number,"
        " times, recall, kappa, and whether it is a difference",
        [
            (50, 1000, 0.95, 1.0, False),
            (50, 10, 0.9, 0.9, False),
            (120, 10, 0.8, 0.6, False),
            (400, 10, 0.9, 0.4, False),
            (100, 1000, 0.95, 1.0, True),
            (100, 10, 0.85, 0.7, True),
        ],
        judges,
    ),
    "posteriors": Study(
        "n, number of classes, recall, and whether n is the number per class",
        [
            (250, 2, 0.998, True),
            (50, 10, 0.99, True),
            (100, 10, 0.99, False),
            (500, 10, 0.99, False),
        ],
        posteriors,
    ),
    "plans": Study(
        "pilot studies of 200 examples, for a half-width of ±.02; metric, class shares and recall",
        [
            ("accuracy", (0.5, 0.5), 0.8),
            ("accuracy", (0.5, 0.5), 0.97),
            ("balanced accuracy", (0.9, 0.1), 0.9),
        ],
        plans,
    ),
}
