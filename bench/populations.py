"""Populations whose truth is known, and samples of them: values, labels, scores, clusters.

Everything is drawn from standard normal variables, which are correlated within clusters (with an
intraclass correlation) and between systems ("latent correlation"). A value is the quantile of its
normal variable in a table of `ATOMS` equally probable values; the truth is that of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import special

import jaxmetrics as jm

ATOMS = 20_000
_midpoints = (np.arange(ATOMS) + 0.5) / ATOMS

Rng = np.random.Generator


# Clusters


def clusters_of(number: int, size: int, ratio: float = 1) -> np.ndarray:
    """Numbers `(n,)` of clusters of the mean size; the largest is `ratio` times the smallest."""
    weights = np.linspace(1, ratio, number)
    sizes = np.maximum(np.round(size * weights / weights.mean()), 1).astype(int)
    return np.repeat(np.arange(number), sizes)


def normal(
    rng: Rng, shape: tuple[int, ...], clusters: np.ndarray | None = None, within: float = 0.0
) -> np.ndarray:
    """Standard normal variables `(..., n)` with the intraclass correlation `within`."""
    own = rng.standard_normal(shape)
    if clusters is None or not within:
        return own
    common = rng.standard_normal((*shape[:-1], clusters[-1] + 1))[..., clusters]
    return np.sqrt(within) * common + np.sqrt(1 - within) * own


def systems(
    rng: Rng,
    number: int,
    shape: tuple[int, int],
    between: float,
    clusters: np.ndarray | None = None,
    within: float = 0.0,
) -> np.ndarray:
    """Standard normal variables `(size, number, n)` of systems with the correlation `between`."""
    size, n = shape
    common = normal(rng, (size, 1, n), clusters, within)
    own = normal(rng, (size, number, n), clusters, within)
    return np.sqrt(between) * common + np.sqrt(1 - between) * own


def uniform(latent: np.ndarray) -> np.ndarray:
    return special.ndtr(latent)


# Values


@lru_cache
def values(kind: str, mean: float = 1.0) -> np.ndarray:
    """Equally probable values of a distribution, in increasing order."""
    tables: dict[str, Callable[[], np.ndarray]] = {
        "0/1": lambda: 1.0 * (_midpoints > 1 - mean),
        "grades": lambda: ((_midpoints > (1 - mean) ** 2) + 1.0 * (_midpoints > 1 - mean**2)) / 2,
        "beta": lambda: special.betaincinv(4 * mean, 4 * (1 - mean), _midpoints),
        "normal": lambda: mean + special.ndtri(_midpoints),
        "Student": lambda: mean + special.stdtrit(3, _midpoints),
        "exponential": lambda: -mean * np.log1p(-_midpoints),
    }
    return tables[kind]()


def drawn(table: np.ndarray, latent: np.ndarray) -> np.ndarray:
    return table[place(latent)]


def place(latent: np.ndarray) -> np.ndarray:
    return np.minimum((uniform(latent) * ATOMS).astype(np.int32), ATOMS - 1)


# Labels


def labels(
    prior: Sequence[float] | np.ndarray,
    predictions: np.ndarray,
    of_truth: np.ndarray,
    of_prediction: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions of K classes from normal variables `(..., n)`.

    `predictions` are probabilities `(K, K)` given the truth. A prediction is wrong where its normal
    variable is large, whatever the class.
    """
    k = len(predictions)
    y = (uniform(of_truth)[..., None] > np.cumsum(prior)[:-1]).sum(-1)
    order = (np.arange(k)[:, None] + np.arange(k)) % k  # the true class first
    ends = np.take_along_axis(predictions, order, 1).cumsum(1)[:, :-1]
    index = (uniform(of_prediction)[..., None] > ends[y]).sum(-1)
    return y, order[y, index]


# Scores


class Scores(NamedTuple):
    """Labels and scores; `negatives` and `positives` are tables of equally probable scores."""

    share: float  # of positives
    negatives: np.ndarray
    positives: np.ndarray

    def draw(self, y: np.ndarray, latent: np.ndarray) -> np.ndarray:
        at = place(latent)
        return np.where(y, self.positives[at], self.negatives[at])

    def labels(self, latent: np.ndarray) -> np.ndarray:
        return (uniform(latent) < self.share).astype(int)

    @property
    def area(self) -> float:
        return float(self._of_population(jm.roc_auc))

    @property
    def average_precision(self) -> float:
        return float(self._of_population(jm.average_precision))

    def _of_population(self, function: Callable[..., Any]) -> Any:
        y = np.repeat([0, 1], ATOMS)
        weight = np.where(y, self.share, 1 - self.share)
        return function(y, np.concatenate([self.negatives, self.positives]), sample_weight=weight)


@lru_cache
def scores(share: float, area: float, kind: str = "normal") -> Scores:
    """Normal scores with this area, exponential ones, or normal ones that are rounded or spoiled.

    In `"positives like negatives 1 in 5"` every fifth positive is spoiled.
    """
    below, every = special.ndtri(_midpoints), np.arange(ATOMS)
    above = below + np.sqrt(2) * special.ndtri(area)
    what, *number = kind.split(" 1 in ")
    spoiled = every % int(number[0]) == 0 if number else every < 0
    if what == "exponential":
        below = -np.log1p(-_midpoints)
        above = below * area / (1 - area)
    elif what == "coarse":
        below, above = np.round(below), np.round(above)
    elif what == "positives like negatives":
        above = np.where(spoiled, below, above)
    elif what == "positives below all":
        above = np.where(spoiled, below - 1e3, above)
    elif what == "negatives above all":
        below = np.where(spoiled, below + 1e3, below)
    return Scores(share, below, above)


# Tables of clusters whose sizes are drawn with them, and which are harder the larger they are


def random_sizes(rng: Rng, shape: tuple[int, ...], kind: str) -> np.ndarray:
    if kind == "up to 10:1":
        return 2 * rng.integers(1, 11, shape)
    return np.minimum(2 * (1 + rng.pareto(1.5, shape)), 1000).astype(int)


def tables_of_clusters(rng: Rng, sizes: np.ndarray, harder: float) -> np.ndarray:
    """Tables `(..., 2, 2)` of clusters of sizes `(...)`, a third of class 1."""
    logit = 2 - harder * np.log(sizes / 3) + 0.7 * rng.normal(size=sizes.shape)
    of_one = rng.binomial(sizes, 1 / 3)
    right = rng.binomial([sizes - of_one, of_one], special.expit(logit))
    wrong = [sizes - of_one, of_one] - right
    return np.stack([right[0], wrong[0], wrong[1], right[1]], -1).reshape(*sizes.shape, 2, 2)
