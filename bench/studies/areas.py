"""Studies of the area under the ROC curve and of average precision, of one and two classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

import jaxmetrics as jm
from bench import populations
from bench.populations import Rng, Scores, clusters_of, normal, systems
from bench.studies.study import Outcomes, Study, estimate

_AT = np.array([0.05, 0.2, 0.5, 0.8])  # false positive rates and recalls

FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[Scores], float]]] = {
    "delong_interval": (jm.delong_interval, lambda x: x.area),
    "average_precision_interval": (jm.average_precision_interval, lambda x: x.average_precision),
}


def areas(rng: Rng, size: int, kind: str, positives: int, negatives: int, area: float) -> Outcomes:
    population = populations.scores(0.5, area, kind)
    y = np.tile(np.repeat([1, 0], [positives, negatives]), (size, 1))
    score = population.draw(y, normal(rng, y.shape))
    for method in ("score", "logit"):
        found = jm.delong_interval(y, score, method=method)
        how = "" if method == "score" else f'(method="{method}")'
        yield f"`delong_interval{how}`", "", (found, population.area)


def bands(rng: Rng, size: int, kind: str, positives: int, negatives: int, area: float) -> Outcomes:
    """Read from pictures; precision is that of a population with the share of the data set."""
    population = populations.scores(positives / (positives + negatives), area, kind)
    y = np.tile(np.repeat([1, 0], [positives, negatives]), (size, 1))
    score = population.draw(y, normal(rng, y.shape))
    truth = np.repeat([1, 0], populations.ATOMS)
    fpr, tpr, _ = jm.roc_curve(truth, np.append(population.positives, population.negatives))
    false = negatives * np.interp(_AT, tpr, fpr)
    axes = Figure().add_subplot()
    for draw, expected in (
        (jm.plots.roc, np.interp(_AT, fpr, tpr)),
        (jm.plots.precision_recall, positives * _AT / (positives * _AT + false)),
    ):
        drawn = np.array([_band_of(draw, axes, *x) for x in zip(y, score, strict=True)])
        for i, at in enumerate(_AT):
            found = estimate(*drawn[..., i].T)
            yield f"`plots.{draw.__name__}(band=True)`", f"at {at}", (found, expected[i])


def _band_of(draw: Callable[..., Any], axes: Any, y: np.ndarray, score: np.ndarray) -> np.ndarray:
    """The curve and the ends of its band, `(3, 4)`."""
    axes.clear()
    draw(y, score, band=True, ax=axes)
    x, ends = axes.collections[0].get_paths()[0].vertices.T
    at = [ends[np.isclose(x, place)] for place in _AT]
    curve = np.interp(_AT, *axes.lines[0].get_data())
    return np.array([curve, [part.min() for part in at], [part.max() for part in at]])


def precisions(rng: Rng, size: int, kind: str, n: int, share: float, area: float) -> Outcomes:
    population = populations.scores(share, area, kind)
    y = population.labels(normal(rng, (size, n)))
    found = jm.average_precision_interval(y, population.draw(y, normal(rng, y.shape)))
    expected = n * share
    number = "10 or more" if expected >= 10 else "5 to 10" if expected >= 5 else "2 to 5"
    line = f"`average_precision_interval`, {number} positives"
    yield line, "", (found, population.average_precision)


def clustered_areas(
    rng: Rng, size: int, clusters: tuple[int, int, float], within: float, share: float, area: float
) -> Outcomes:
    numbers, population = clusters_of(*clusters), populations.scores(share, area)
    shape = size, len(numbers)
    y = population.labels(normal(rng, shape, numbers, within))
    score = population.draw(y, normal(rng, shape, numbers, within))
    for name, (function, truth) in FUNCTIONS.items():
        yield f"`{name}(clusters=)`", "", (function(y, score, clusters=numbers), truth(population))


def two_areas(
    rng: Rng, size: int, positives: int, negatives: int, a: float, b: float, between: float
) -> Outcomes:
    y = np.tile(np.repeat([1, 0], [positives, negatives]), (size, 1))
    both = [populations.scores(0.5, area) for area in (a, b)]
    latent = systems(rng, 2, y.shape, between)
    found = jm.delong(y, *(x.draw(y, latent[:, i]) for i, x in enumerate(both)))
    line = f"`delong`, {positives if positives < 5 else '5 or more'} positives"
    yield f"{line}: difference", "", (found.difference, both[0].area - both[1].area)
    if a == b:
        yield line, "", found.p_value <= 0.05


def two_areas_of_clusters(
    rng: Rng,
    size: int,
    clusters: tuple[int, int, float],
    within: float,
    share: float,
    a: float,
    b: float,
    between: float,
) -> Outcomes:
    numbers, both = clusters_of(*clusters), [populations.scores(share, area) for area in (a, b)]
    shape = size, len(numbers)
    y = both[0].labels(normal(rng, shape, numbers, within))
    latent = systems(rng, 2, shape, between, numbers, within)
    scores = [x.draw(y, latent[:, i]) for i, x in enumerate(both)]
    found = jm.delong(y, *scores, clusters=numbers)
    truth = both[0].area - both[1].area
    yield "`delong(clusters=)`: difference", "", (found.difference, truth)
    if a == b:
        yield "`delong(clusters=)`", "", found.p_value <= 0.05
        alone = jm.delong(y, *scores).p_value <= 0.05
        yield "for comparison: `delong` without `clusters=`", "", alone
    precision = jm.compare_average_precision(y, *scores, clusters=numbers).difference
    truth = both[0].average_precision - both[1].average_precision
    yield "`compare_average_precision(clusters=)`", "", (precision, truth)


def two_precisions(
    rng: Rng, size: int, n: int, share: float, a: float, b: float, between: float
) -> Outcomes:
    both = [populations.scores(share, area) for area in (a, b)]
    y = both[0].labels(normal(rng, (size, n)))
    latent = systems(rng, 2, y.shape, between)
    scores = [x.draw(y, latent[:, i]) for i, x in enumerate(both)]
    found = jm.compare_average_precision(y, *scores).difference
    line = f"{'at most' if n * share <= 30 else 'more than'} 30 positives"
    truth = both[0].average_precision - both[1].average_precision
    yield f"`compare_average_precision`, {line}", "", (found, truth)


def abstention(rng: Rng, size: int, n: int, slope: float, middle: float, c: float) -> Outcomes:
    """Predictions are right with a probability that is logistic in a uniform confidence."""

    def drawn(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        confidence = rng.random(shape)
        return rng.random(shape) < 1 / (1 + np.exp(slope * (middle - confidence))), confidence

    is_right, confidence = drawn(4_000_000)
    true = is_right[confidence >= 1 - c].mean()
    is_right, confidence = drawn(size, n)
    found: Any = jm.risk_coverage(np.ones((size, n), int), is_right, confidence, coverage=c)
    found = found.accuracy
    yield "`risk_coverage(coverage=)`", "", (found, true)
    plain = jm.proportion_interval(found.value * found.num_examples, found.num_examples)
    yield "for comparison: `proportion_interval` of the answered examples", "", (plain, true)


def averaged_areas(
    rng: Rng, size: int, shares: tuple[float, ...], gaps: Any, noise: float
) -> Outcomes:
    """The score of a class is normal, higher by its gap if the example belongs to it."""
    k = len(shares)
    y = rng.choice(k, (size, 200), p=shares)
    common = noise * rng.normal(size=(size, 200, 1))
    score = np.asarray(gaps) * np.eye(k)[y] + common + rng.normal(size=(size, 200, k))
    area = stats.norm.cdf(np.asarray(gaps) / np.sqrt(2 * (1 + noise**2)))
    averages: dict[Any, float] = {"macro": area.mean(), "weighted": area @ shares}
    for average, true in averages.items():
        found = jm.delong_interval(y, score, average=average)
        yield f'`delong_interval(average="{average}")`', "", (found, true)


def chosen_thresholds(rng: Rng, size: int, n: int, share: float, gap: float) -> Outcomes:
    """Scores are normal; the values of the population are those at the chosen thresholds."""
    y = (rng.random((size, n)) < share).astype(int)
    score = rng.normal(size=y.shape) + gap * y
    for name, metric in (("f1", jm.binary(jm.f1)), ("balanced_accuracy", jm.balanced_accuracy)):
        line = f"`best_threshold({name}, level=)`"
        yield from _best_threshold(line, metric, rng, y, score, share, gap)
    for rate in (jm.recall, jm.precision):
        value, threshold = jm.safe_threshold(rate, y, score, least=0.7)
        kept = rate(_counts_at(np.nan_to_num(threshold), share, gap))[:, 1]
        kept = np.where(np.isnan(threshold), 0.7, kept)
        promise = estimate(np.nan_to_num(value.value, nan=0.7), 0 * kept + 0.7, 0 * kept + 1)
        yield f"`safe_threshold({rate.__name__}, least=0.7)`", "", (promise, kept)


def chosen_thresholds_of_clusters(
    rng: Rng, size: int, clusters: tuple[int, int, float], within: float, share: float, gap: float
) -> Outcomes:
    numbers = clusters_of(*clusters)
    shape = size, len(numbers)
    y = (normal(rng, shape, numbers, within) < stats.norm.ppf(share)).astype(int)
    score = normal(rng, shape, numbers, within) + gap * y
    line, options = "`best_threshold(f1, level=, clusters=)`", {"clusters": numbers}
    yield from _best_threshold(line, jm.binary(jm.f1), rng, y, score, share, gap, **options)


def _best_threshold(
    line: str, metric: Any, rng: Rng, y: Any, score: Any, share: float, gap: float, **options: Any
) -> Outcomes:
    key, grid = int(rng.integers(2**31)), np.linspace(-4, 6, 10_001)
    found = jm.best_threshold(metric, y, score, level=0.95, key=key, **options)
    yield line, "", (found.value, metric(_counts_at(found.threshold.value, share, gap)))
    best = grid[np.argmax(metric(_counts_at(grid, share, gap)))]
    yield f"{line}: threshold", "", (found.threshold, best)


def _counts_at(t: Any, share: float, gap: float) -> np.ndarray:
    """Confusion matrices of the population with normal scores at thresholds t."""
    tp, fp = share * stats.norm.sf(t - gap), (1 - share) * stats.norm.sf(t)
    return np.moveaxis(np.array([[1 - share - fp, fp], [share - tp, tp]]), (0, 1), (-2, -1))


STUDIES: dict[str, Study] = {
    "abstention": Study(
        "50 to 2000 examples with a uniform confidence, coverages of .3 to .95, accuracies there of"
        " .6 to .99",
        [
            (50, 5.0, 0.2, 0.9),
            (50, 12.0, 0.6, 0.4),
            (120, 0.0, -0.5, 0.8),
            (120, 25.0, 0.5, 0.5),
            (300, 8.0, 0.1, 0.95),
            (300, 25.0, 0.4, 0.7),
            (1000, 6.0, 0.3, 0.3),
            (2000, 15.0, 0.5, 0.6),
        ],
        abstention,
    ),
    "areas": Study(
        "10 to 500 examples of each class, areas of .6 to .99; scores are normal, exponential or"
        " rounded, or some positives have scores like negatives or below all of them",
        [
            ("normal", 10, 10, 0.6),
            ("normal", 12, 200, 0.95),
            ("normal", 40, 60, 0.99),
            ("normal", 500, 500, 0.8),
            ("exponential", 15, 30, 0.9),
            ("exponential", 100, 25, 0.7),
            ("exponential", 300, 300, 0.985),
            ("coarse", 10, 50, 0.85),
            ("coarse", 80, 80, 0.97),
            ("positives like negatives 1 in 5", 30, 100, 0.98),
            ("positives below all 1 in 20", 40, 40, 0.97),
            ("positives below all 1 in 50", 60, 400, 0.99),
        ],
        areas,
    ),
    "averaged areas": Study(
        "200 examples of 3 to 6 equally or unequally frequent classes, areas of .6 to .99,"
        " independent or correlated scores",
        [
            ((0.34, 0.33, 0.33), (1.0, 1.6, 2.2), 0.0),
            ((0.7, 0.2, 0.1), (2.5, 1.5, 0.5), 0.7),
            ((0.85, 0.09, 0.06), (3.3, 3.0, 3.2), 0.0),
            ((0.3, 0.25, 0.2, 0.15, 0.1), (0.4, 0.8, 1.2, 1.6, 2.0), 1.0),
            ((0.5, 0.2, 0.1, 0.1, 0.05, 0.05), (1.5,) * 6, 0.3),
        ],
        averaged_areas,
    ),
    "bands": Study(
        "15 to 500 examples of each class, areas of .6 to .97; scores are normal, exponential or"
        " rounded, or a fifth of the positives have scores like negatives; at the false positive"
        " rates or recalls .05, .2, .5 and .8",
        [
            ("normal", 15, 60, 0.75),
            ("normal", 60, 15, 0.9),
            ("normal", 30, 300, 0.97),
            ("normal", 500, 500, 0.85),
            ("exponential", 20, 20, 0.8),
            ("exponential", 150, 50, 0.6),
            ("coarse", 100, 40, 0.9),
            ("coarse", 300, 300, 0.8),
            ("positives like negatives 1 in 5", 60, 120, 0.95),
        ],
        bands,
        300,
    ),
    "chosen thresholds": Study(
        "60 to 300 examples with 15 to 60 % positives, areas of .71 to .96; scores are normal",
        [
            (60, 0.45, 1.7),
            (120, 0.25, 1.2),
            (150, 0.6, 0.8),
            (200, 0.15, 2.0),
            (300, 0.35, 2.5),
        ],
        chosen_thresholds,
        300,
    ),
    "chosen thresholds of clusters": Study(
        "60 to 300 clusters of up to 10:1, of 3 to 8 examples on average, with 20 to 40 %"
        " positives, intraclass correlations of .2 to .9, areas of .76 to .92; scores are normal",
        [
            ((60, 3, 1), 0.2, 0.4, 1.5),
            ((60, 8, 1), 0.7, 0.3, 1.0),
            ((100, 5, 10), 0.6, 0.25, 1.5),
            ((200, 3, 5), 0.4, 0.2, 2.0),
            ((300, 4, 1), 0.9, 0.35, 1.2),
        ],
        chosen_thresholds_of_clusters,
        200,
    ),
    "precisions": Study(
        "60 to 3000 examples with 1 to 50 % positives, areas of .7 to .99; scores are normal or"
        " rounded, or a fifth of the positives have scores like negatives",
        [
            ("normal", 60, 0.5, 0.7),
            ("normal", 150, 0.2, 0.95),
            ("normal", 400, 0.05, 0.85),
            ("normal", 1500, 0.02, 0.99),
            ("normal", 3000, 0.1, 0.9),
            ("coarse", 300, 0.1, 0.8),
            ("coarse", 1000, 0.03, 0.97),
            ("positives like negatives 1 in 5", 500, 0.1, 0.98),
            ("normal", 80, 0.09, 0.9),
            ("normal", 600, 0.0125, 0.97),
            ("normal", 60, 0.06, 0.8),
            ("normal", 300, 0.012, 0.99),
        ],
        precisions,
    ),
    "label noise": Study(
        "one in 250 to 4000 negatives is ranked above all positives; 24 to 300 positives",
        [
            ("negatives above all 1 in 250", 1000, 0.04, 0.99),
            ("negatives above all 1 in 500", 500, 0.1, 0.97),
            ("negatives above all 1 in 1000", 1200, 0.02, 0.98),
            ("negatives above all 1 in 4000", 3000, 0.1, 0.995),
        ],
        precisions,
    ),
    "clustered areas": Study(
        "20 to 100 clusters of up to 10:1, intraclass correlations of 0 to .6, areas of .7 to .97",
        [
            ((20, 12, 1), 0.2, 0.3, 0.8),
            ((20, 20, 5), 0.4, 0.2, 0.9),
            ((30, 15, 10), 0.6, 0.3, 0.7),
            ((50, 8, 5), 0.0, 0.15, 0.97),
            ((100, 10, 10), 0.3, 0.1, 0.85),
        ],
        clustered_areas,
    ),
    "two areas": Study(
        "two classifiers, 2 to 100 positives and 60 to 500 negatives, equal or different areas of"
        " .7 to .995",
        [
            (2, 300, 0.8, 0.8, 0.4),
            (3, 300, 0.85, 0.85, 0.5),
            (5, 300, 0.9, 0.8, 0.5),
            (8, 500, 0.7, 0.7, 0.3),
            (10, 400, 0.95, 0.95, 0.7),
            (30, 60, 0.85, 0.85, 0.6),
            (100, 100, 0.98, 0.96, 0.8),
            (60, 440, 0.995, 0.995, 0.5),
        ],
        two_areas,
    ),
    "two areas of clusters": Study(
        "two classifiers, 20 to 100 clusters of up to 10:1, intraclass correlations of .2 to .7",
        [
            ((20, 12, 1), 0.3, 0.3, 0.8, 0.8, 0.4),
            ((20, 20, 10), 0.5, 0.3, 0.9, 0.9, 0.5),
            ((40, 10, 5), 0.7, 0.2, 0.85, 0.85, 0.6),
            ((100, 8, 10), 0.2, 0.4, 0.75, 0.7, 0.3),
            ((40, 12, 5), 0.5, 0.2, 0.95, 0.95, 0.5),
        ],
        two_areas_of_clusters,
    ),
    "two precisions": Study(
        "two classifiers, 100 to 1500 examples with 2 to 40 % positives, areas of .65 to .997",
        [
            (100, 0.1, 0.997, 0.99, 0.5),
            (200, 0.1, 0.8, 0.8, 0.3),
            (1500, 0.02, 0.9, 0.9, 0.6),
            (1000, 0.03, 0.95, 0.85, 0.5),
            (120, 0.4, 0.75, 0.65, 0.0),
            (400, 0.2, 0.9, 0.9, 0.8),
            (1500, 0.1, 0.97, 0.95, 0.7),
            (1000, 0.3, 0.85, 0.85, 0.5),
        ],
        two_precisions,
    ),
}
