"""Statistics that accumulators sum: counts, moments, histograms and bootstrap replicates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arguments.single import is_integer
from jaxmetrics._numerics.samplers import hashed
from jaxmetrics._places.namespaces import float_dtype
from jaxmetrics._sums.counting import count
from jaxmetrics._sums.scatter import cell_numbers
from jaxmetrics._sums.weighted_sums import sum_by_cell
from jaxmetrics.counts import confusion_matrix, paired_confusion_matrix
from jaxmetrics.ranking.histograms import score_histogram
from jaxmetrics.scoring.bins import calibration_bins
from jaxmetrics.streaming.statistics import (
    PROBABILITY_FIELDS,
    Batch,
    Fields,
    Kind,
    Statistic,
    prediction_fields,
)

__all__: list[str] = []

_TRUE = {"y_true": Kind.LABELS}
# Number of cells of a table that is counted and added at once, which is as fast as to find the
# cells of single examples, and faster on accelerators.
_SMALL_TABLE = 2**14


def _group_fields(num_groups: int | None) -> dict[str, Kind]:
    return {} if num_groups is None else {"groups": Kind.LABELS}


def _group_columns(batch: Batch, num_groups: int | None) -> list[jax.Array]:
    return [] if num_groups is None else [batch.labels("groups", num_groups)]


class _OfColumns:
    """Base class of statistics that count columns, which are arrays whose last axis has one entry
    per example: the truth, then predictions, then groups.

    An example is ignored if its truth or group is below 0. Its prediction is invalid if an integer
    is below 0 or a float is NaN.
    """

    num_groups: int | None = None
    weighted: bool = False

    @property
    def is_integer(self) -> bool:
        return not self.weighted

    def columns(self, batch: Batch) -> list[jax.Array]:
        raise NotImplementedError

    def sums(self, *columns: jax.Array, **options: Any) -> jax.Array:
        raise NotImplementedError

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        return self.sums(*self.columns(batch), sample_weight=weight, where=keep)

    def is_usable(self, batch: Batch) -> jax.Array:
        columns = self.columns(batch)
        return _are_valid(columns[:1] if self.num_groups is None else [columns[0], columns[-1]])

    def has_valid_prediction(self, batch: Batch) -> jax.Array:
        """Return a mask `(n,)`, which is not used for ignored examples."""
        columns = self.columns(batch)
        return _are_valid(columns[1:] if self.num_groups is None else columns[1:-1])


def _are_valid(columns: Sequence[jax.Array]) -> jax.Array:
    rows = map(jnp.atleast_2d, columns)
    valid = [(x >= 0 if is_integer(x) else ~jnp.isnan(x)).all(0) for x in rows]
    return reduce(jnp.logical_and, valid)


class _OfLabels(_OfColumns):
    """Base class of statistics that add 1 to the cell of each example, or its weight if `weighted`.

    If they count, an update can cost the batch instead of the table: see `cells`.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    def cells(self, batch: Batch, keep: jax.Array) -> jax.Array:
        """Return numbers of cells of the flattened table; examples that do not count are past its
        end. No cell occurs twice for the same example.
        """
        true, *others = self.columns(batch)
        ids = (true, *others) if self.num_groups is None else (others[-1], true, *others[:-1])
        return cell_numbers(ids, self.shape, keep)


@dataclass(frozen=True)
class ConfusionMatrix(_OfLabels):
    """Confusion matrix `(K, K)`, or confusion matrices by group `(G, K, K)`."""

    num_classes: int
    num_groups: int | None = None
    weighted: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        groups = () if self.num_groups is None else (self.num_groups,)
        return *groups, self.num_classes, self.num_classes

    @property
    def fields(self) -> Fields:
        return _TRUE | prediction_fields() | _group_fields(self.num_groups)

    def columns(self, batch: Batch) -> list[jax.Array]:
        labels = [batch.labels("y_true", self.num_classes), batch.predictions(self.num_classes)]
        return labels + _group_columns(batch, self.num_groups)

    def sums(self, *labels: jax.Array, **options: Any) -> jax.Array:
        y_true, y_pred, *groups = labels
        if groups:
            options |= {"groups": groups[0], "num_groups": self.num_groups}
        return confusion_matrix(y_true, y_pred, num_classes=self.num_classes, **options)


@dataclass(frozen=True)
class ClassCounts(_OfLabels):
    """True positives, predictions and true labels of each class, `(K, 3)`."""

    num_classes: int
    weighted: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.num_classes, 3

    @property
    def fields(self) -> Fields:
        return _TRUE | prediction_fields()

    def columns(self, batch: Batch) -> list[jax.Array]:
        return [batch.labels("y_true", self.num_classes), batch.predictions(self.num_classes)]

    def cells(self, batch: Batch, keep: jax.Array) -> jax.Array:
        true, pred = self.columns(batch)
        parts = (true, keep & (true == pred)), (pred, keep), (true, keep)
        end = 3 * self.num_classes
        return jnp.concatenate([jnp.where(x, 3 * ids + i, end) for i, (ids, x) in enumerate(parts)])

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        weights = None if weight is None else jnp.concatenate([weight] * 3, -1)
        axis = "cells", self.cells(batch, keep), 3 * self.num_classes
        table = count([axis], weights, None, refuse_columns=False)
        return table.reshape((*table.shape[:-1], *self.shape))


@dataclass(frozen=True)
class PairedConfusionMatrix(_OfLabels):
    """Paired confusion matrix `(K, K, K)` of two classifiers."""

    num_classes: int
    weighted: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.num_classes,) * 3

    @property
    def fields(self) -> Fields:
        return _TRUE | prediction_fields("_a") | prediction_fields("_b")

    def columns(self, batch: Batch) -> list[jax.Array]:
        k = self.num_classes
        return [batch.labels("y_true", k), batch.predictions(k, "_a"), batch.predictions(k, "_b")]

    def sums(self, *labels: jax.Array, **options: Any) -> jax.Array:
        return paired_confusion_matrix(*labels, num_classes=self.num_classes, **options)


@dataclass(frozen=True)
class Moments:
    """Sums of 1, x and x^2 over values x, `(3,)`. If there are weights w, the sums are of 1, wx,
    (wx)^2, w, w^2 x and w^2, `(6,)`. If there are groups, there is one row per group, `(G, 3)` or
    `(G, 6)`.
    """

    name: str
    groups: str | None = None
    num_groups: int | None = None
    weights: str | None = None
    is_integer = False

    @property
    def shape(self) -> tuple[int, ...]:
        groups = () if self.num_groups is None else (self.num_groups,)
        return *groups, 3 if self.weights is None else 6

    @property
    def fields(self) -> Fields:
        groups = {} if self.groups is None else {self.groups: Kind.LABELS}
        weights = {} if self.weights is None else {self.weights: Kind.WEIGHTS}
        return {self.name: Kind.NUMBERS} | weights | groups

    def is_usable(self, batch: Batch) -> jax.Array | None:
        batch.numbers(self.name)
        return None if self.groups is None else self._group(batch) >= 0

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        w = None if self.weights is None else batch.weights(self.weights)
        keep = keep if w is None else keep & (w != 0)
        x = jnp.where(keep, batch.numbers(self.name), 0)
        one = jnp.ones_like(x)
        if w is None:
            terms = [one, x, x**2]
        else:
            w = jnp.where(keep, w, 0)
            terms = [one, w * x, (w * x) ** 2, w, w**2 * x, w**2]
        times = jnp.where(keep, one if weight is None else weight, 0)
        return self._sums(batch, jnp.stack(terms), times)

    def _sums(self, batch: Batch, terms: jax.Array, times: jax.Array) -> jax.Array:
        if self.num_groups is None:
            if times.ndim == 1:
                return (times * terms).sum(-1)
            return jnp.matmul(times, terms.T, precision="highest")
        ids, size = self._group(batch), self.num_groups
        cells = jnp.where(ids < 0, size, ids)

        # In a product with a one-hot matrix, NaN in one group would make all groups NaN.
        def by_group(times: jax.Array) -> jax.Array:
            return sum_by_cell(cells, (times * terms).T, size, batch.size)

        return by_group(times) if times.ndim == 1 else jax.vmap(by_group)(times)

    def _group(self, batch: Batch) -> jax.Array:
        assert self.groups is not None
        assert self.num_groups is not None
        return batch.labels(self.groups, self.num_groups)


@dataclass(frozen=True)
class ScoreHistogram(_OfColumns):
    """Histogram of scores `(2, B)`, or of the probability of each of K classes against all others,
    `(K, 2, B)`. If there are groups, the shape is `(G, 2, B)` or `(K, G, 2, B)`.
    """

    scale: Literal["probability", "logit", "float"]
    num_bins: int
    num_classes: int | None = None
    num_groups: int | None = None
    weighted: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        sizes = (self.num_classes, self.num_groups)
        return *(size for size in sizes if size is not None), 2, self.num_bins

    @property
    def fields(self) -> Fields:
        one_event = {"y_score": Kind.NUMBERS}
        scores = one_event if self.num_classes is None else PROBABILITY_FIELDS
        return _TRUE | scores | _group_fields(self.num_groups)

    def columns(self, batch: Batch) -> list[jax.Array]:
        groups = _group_columns(batch, self.num_groups)
        if self.num_classes is None:
            return [batch.labels("y_true", 2), batch.numbers("y_score"), *groups]
        truth = batch.labels("y_true", self.num_classes)
        return [truth, batch.probabilities(self.num_classes).T, *groups]

    def sums(self, *columns: jax.Array, **options: Any) -> jax.Array:
        truth, scores, *groups = columns
        if groups:
            options |= {"groups": groups[0], "num_groups": self.num_groups}
        if self.num_classes is not None:
            classes = jnp.arange(self.num_classes, dtype=jnp.int32)[:, None]
            truth = (truth == classes).astype(jnp.int32)
            if options["sample_weight"] is not None and options["sample_weight"].ndim > 1:
                options["sample_weight"] = options["sample_weight"][:, None]
        return score_histogram(truth, scores, scale=self.scale, num_bins=self.num_bins, **options)


@dataclass(frozen=True)
class CalibrationBins(_OfColumns):
    """Sums per bin `(B, 3)` for the probability of class 1 or, if K is given, of the predicted
    class.
    """

    num_bins: int
    num_classes: int | None = None
    is_integer = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.num_bins, 3

    @property
    def fields(self) -> Fields:
        one_event = {"y_prob": Kind.NUMBERS}
        return _TRUE | (one_event if self.num_classes is None else PROBABILITY_FIELDS)

    def columns(self, batch: Batch) -> list[jax.Array]:
        if self.num_classes is None:
            return [batch.labels("y_true", 2), batch.numbers("y_prob")]
        truth = batch.labels("y_true", self.num_classes)
        prob = batch.probabilities(self.num_classes)
        is_right = (truth == prob.argmax(-1)).astype(jnp.int32)
        return [jnp.where(truth < 0, -1, is_right), prob.max(-1)]

    def sums(self, *columns: jax.Array, **options: Any) -> jax.Array:
        return calibration_bins(*columns, num_bins=self.num_bins, **options)


class _OfStatistic:
    """Base class of statistics that are another statistic with other weights."""

    statistic: Statistic
    is_integer = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.statistic.shape

    @property
    def fields(self) -> Fields:
        return self.statistic.fields

    def is_usable(self, batch: Batch) -> jax.Array | None:
        return self.statistic.is_usable(batch)


@dataclass(frozen=True)
class SquaredWeights(_OfStatistic):
    """Another statistic with the squares of the weights, which intervals need."""

    statistic: Statistic

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        return self.statistic.table(batch, None if weight is None else weight**2, keep)


@dataclass(frozen=True)
class PoissonReplicates(_OfStatistic):
    """S replicates of another statistic for the Poisson bootstrap. In each replicate all examples
    of a unit have the same Poisson(1) weight.
    """

    statistic: Statistic
    num_samples: int
    seed: int

    @property
    def shape(self) -> tuple[int, ...]:
        return self.num_samples, *self.statistic.shape

    @property
    def fields(self) -> Fields:
        return {**self.statistic.fields, "unit": Kind.UNITS}

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        times = _poisson_of_units(batch.units("unit"), self.num_samples, self.seed)
        return self.statistic.table(batch, times if weight is None else times * weight, keep)


def valid_predictions(statistic: Any, batch: Batch) -> jax.Array | None:
    """Return a mask `(n,)` of the valid predictions, or None if a statistic is not of classes."""
    of = innermost(statistic)
    return of.has_valid_prediction(batch) if isinstance(of, _OfColumns) else None


def innermost(statistic: Any) -> Any:
    """Return the statistic whose weights are changed by replicates or squares."""
    while isinstance(statistic, _OfStatistic):
        statistic = statistic.statistic
    return statistic


def counts_cells(statistic: Any, num_examples: int) -> TypeGuard[_OfLabels]:
    """Return whether the cells of a batch are fewer than those of the table, which then is not
    made.
    """
    is_large = math.prod(statistic.shape) > max(num_examples, _SMALL_TABLE)
    return isinstance(statistic, _OfLabels) and statistic.is_integer and is_large


def _poisson_of_units(units: jax.Array, num_samples: int, seed: int) -> jax.Array:
    """Return Poisson(1) weights `(S, n)` by inversion of a hash of unit, replicate and seed."""
    words = hashed(units ^ hashed(jnp.asarray(seed, jnp.uint32)))
    replicates = jnp.arange(num_samples, dtype=jnp.uint32) * np.uint32(0x85EBCA6B)
    words = hashed(words[None] + replicates[:, None])
    cdf = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(12)])
    times = jnp.zeros(words.shape, float_dtype())
    for p in cdf[cdf < 1 - 2.0**-33]:
        times += (words >= np.uint32(p * 2**32)).astype(times.dtype)
    return times
