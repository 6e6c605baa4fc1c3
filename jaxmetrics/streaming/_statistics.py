"""What is added up: functions from a batch to a table of fixed shape, the sums of which over
batches say all that is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._namespaces import float_dtype
from jaxmetrics.counts import confusion_matrix, paired_confusion_matrix
from jaxmetrics.intervals.samplers import hashed
from jaxmetrics.ranking.histograms import score_histogram
from jaxmetrics.scoring.calibration import calibration_bins
from jaxmetrics.streaming._batches import PREDICTIONS, Batch

__all__: list[str] = []


class Statistic(Protocol):
    """Hashable; equal ones are added up once. `str` of it is its name in a state."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of a batch that it may read."""

    @property
    def counts(self) -> bool:
        """Whether tables without weights hold integers."""

    @property
    def one_each(self) -> bool:
        """Whether these sum up to the number of examples."""

    def is_usable(self, batch: Batch) -> jax.Array | None:
        """Which examples it can count, `(n,)`; None for all."""

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        """Of the examples to `keep` `(n,)`; weights `(..., n)` make tables `(..., *shape)`."""


@dataclass(frozen=True)
class ConfusionMatrix:
    num_classes: int
    num_groups: int | None = None
    counts = True
    one_each = True

    def __str__(self) -> str:
        return _named("confusion_matrix", num_classes=self.num_classes, num_groups=self.num_groups)

    @property
    def shape(self) -> tuple[int, ...]:
        return (
            *(() if self.num_groups is None else (self.num_groups,)),
            self.num_classes,
            self.num_classes,
        )

    @property
    def fields(self) -> tuple[str, ...]:
        return "y_true", *PREDICTIONS, *(() if self.num_groups is None else ("groups",))

    def is_usable(self, batch: Batch) -> jax.Array:
        labels = [batch.labels("y_true", self.num_classes), batch.predictions(self.num_classes)]
        labels += [] if self.num_groups is None else [batch.labels("groups", self.num_groups)]
        return _all_valid(*labels)

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        groups = None if self.num_groups is None else batch.labels("groups", self.num_groups)
        return confusion_matrix(
            batch.labels("y_true", self.num_classes),
            batch.predictions(self.num_classes),
            num_classes=self.num_classes,
            sample_weight=weight,
            where=keep,
            groups=groups,
            num_groups=self.num_groups,
        )


@dataclass(frozen=True)
class PairedConfusionMatrix:
    num_classes: int
    counts = True
    one_each = True

    def __str__(self) -> str:
        return _named("paired_confusion_matrix", num_classes=self.num_classes)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.num_classes,) * 3

    @property
    def fields(self) -> tuple[str, ...]:
        return "y_true", *(name + suffix for suffix in ("_a", "_b") for name in PREDICTIONS)

    def _labels(self, batch: Batch) -> list[jax.Array]:
        k = self.num_classes
        return [batch.labels("y_true", k), batch.predictions(k, "_a"), batch.predictions(k, "_b")]

    def is_usable(self, batch: Batch) -> jax.Array:
        return _all_valid(*self._labels(batch))

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        labels = self._labels(batch)
        return paired_confusion_matrix(
            *labels, num_classes=self.num_classes, sample_weight=weight, where=keep
        )


@dataclass(frozen=True)
class Moments:
    """The weight, and the weighted sums of values and of their squares."""

    name: str
    counts = False
    one_each = False
    shape = (3,)

    def __str__(self) -> str:
        return f"moments({self.name})"

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.name,)

    def is_usable(self, batch: Batch) -> None:
        batch.numbers(self.name)

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        values = jnp.where(keep, batch.numbers(self.name), 0)
        powers = jnp.stack([jnp.ones_like(values), values, values**2])
        weight = jnp.where(keep, jnp.ones_like(values) if weight is None else weight, 0)
        if weight.ndim == 1:
            return (weight * powers).sum(-1)
        return jnp.matmul(weight, powers.T, precision=jax.lax.Precision.HIGHEST)


@dataclass(frozen=True)
class ScoreHistogram:
    """Of the scores of one event, or of the probability of each of K classes against the others,
    `(K, 2, B)`.
    """

    scale: Literal["probability", "logit", "float"]
    num_bins: int
    num_classes: int | None
    counts = True
    one_each = False  # with K classes

    def __str__(self) -> str:
        return _named(
            "score_histogram",
            scale=self.scale,
            num_bins=self.num_bins,
            num_classes=self.num_classes,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return *(() if self.num_classes is None else (self.num_classes,)), 2, self.num_bins

    @property
    def fields(self) -> tuple[str, ...]:
        return "y_true", *(("y_score",) if self.num_classes is None else ("y_prob", "logits"))

    def _truth_and_scores(self, batch: Batch) -> tuple[jax.Array, jax.Array]:
        if self.num_classes is None:
            return batch.labels("y_true", 2), batch.numbers("y_score")
        return batch.labels("y_true", self.num_classes), batch.probabilities(self.num_classes).T

    def is_usable(self, batch: Batch) -> jax.Array:
        truth, scores = self._truth_and_scores(batch)
        missing = jnp.isnan(scores)
        return _all_valid(truth) & ~(missing if self.num_classes is None else missing.any(0))

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        truth, scores = self._truth_and_scores(batch)
        if self.num_classes is not None:
            truth = (truth == jnp.arange(self.num_classes, dtype=jnp.int32)[:, None]).astype(
                jnp.int32
            )
            weight = weight if weight is None or weight.ndim == 1 else weight[:, None]
        return score_histogram(
            truth,
            scores,
            scale=self.scale,
            num_bins=self.num_bins,
            sample_weight=weight,
            where=keep,
        )


@dataclass(frozen=True)
class CalibrationBins:
    """Of the probability of one event, or of the predicted one of K classes."""

    num_bins: int
    num_classes: int | None
    counts = False
    one_each = False

    def __str__(self) -> str:
        return _named("calibration_bins", num_bins=self.num_bins, num_classes=self.num_classes)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.num_bins, 3

    @property
    def fields(self) -> tuple[str, ...]:
        return "y_true", "y_prob", *(() if self.num_classes is None else ("logits",))

    def _truth_and_probability(self, batch: Batch) -> tuple[jax.Array, jax.Array]:
        if self.num_classes is None:
            return batch.labels("y_true", 2), batch.numbers("y_prob")
        truth, rows = (
            batch.labels("y_true", self.num_classes),
            batch.probabilities(self.num_classes),
        )
        hit = (truth == rows.argmax(-1)).astype(jnp.int32)
        return jnp.where(truth < 0, -1, hit), rows.max(-1)

    def is_usable(self, batch: Batch) -> jax.Array:
        truth, probability = self._truth_and_probability(batch)
        return _all_valid(truth) & ~jnp.isnan(probability)

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        truth, probability = self._truth_and_probability(batch)
        return calibration_bins(
            truth, probability, num_bins=self.num_bins, sample_weight=weight, where=keep
        )


@dataclass(frozen=True)
class Replicates:
    """Tables of a Poisson bootstrap: in each of S replicates a unit counts Poisson(1) times, the
    same wherever it occurs.
    """

    of: Any
    num_samples: int
    seed: int
    counts = False
    one_each = False

    def __str__(self) -> str:
        return f"poisson_bootstrap({self.of}, num_samples={self.num_samples}, seed={self.seed})"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.num_samples, *self.of.shape

    @property
    def fields(self) -> tuple[str, ...]:
        return *self.of.fields, "unit"

    def is_usable(self, batch: Batch) -> jax.Array | None:
        return self.of.is_usable(batch)

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        times = _poisson_of_units(batch.units(), self.num_samples, self.seed)
        return self.of.table(batch, times if weight is None else times * weight, keep)


def _named(kind: str, **options: int | str | None) -> str:
    """`kind(option=value, ...)`, without the options that are None."""
    given = (f"{name}={value}" for name, value in options.items() if value is not None)
    return f"{kind}({', '.join(given)})"


def _all_valid(*labels: jax.Array) -> jax.Array:
    valid = labels[0] >= 0
    for ids in labels[1:]:
        valid = valid & (ids >= 0)
    return valid


def _poisson_of_units(units: jax.Array, num_samples: int, seed: int) -> jax.Array:
    """Poisson(1) counts `(S, n)`, functions of unit, replicate and seed: of a hash, by
    inversion.
    """
    words = hashed(units ^ hashed(jnp.asarray(seed, jnp.uint32)))
    replicates = jnp.arange(num_samples, dtype=jnp.uint32) * np.uint32(0x85EBCA6B)
    words = hashed(words[None] + replicates[:, None])
    cdf = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    times = jnp.zeros(words.shape, float_dtype())
    for p in cdf[cdf < 1 - 2.0**-33]:
        times += (words >= np.uint32(p * 2**32)).astype(times.dtype)
    return times
