"""Sorted examples and counts at all thresholds, from which all curves and areas are computed.

On a CPU, XLA's sort takes several times as long as NumPy's sort. Therefore scores on a CPU are
sorted by NumPy before the compiled part; scores under jit or on other devices are sorted by XLA.
(We do not call NumPy from within jit, because such a callback deadlocks if the process has a single
thread.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from jaxmetrics._applied import weighted_by
from jaxmetrics._arguments.example_arguments import Examples, as_scores, binary_examples
from jaxmetrics._arguments.single import INT32_MAX, ArrayLike, is_integer
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import (
    Array,
    Arrays,
    float_dtype,
    is_jax,
    lax,
    on_device,
    on_one_cpu,
    xp,
)
from jaxmetrics.intervals.samples import sums_by_entry

__all__: list[str] = []

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])


class Ranked(NamedTuple):
    """Examples of a binary problem, sorted by decreasing score; arrays have shape `(..., n)`."""

    position: Array  # position of each sorted example in the original order
    score: Array  # scores in the original order
    positive: Array  # 1 (int8) or the weight if the class is 1; otherwise 0
    negative: Array  # 1 (int8) or the weight if the class is 0; otherwise 0
    last: Array  # bool: whether the next score is lower
    undefined: Array  # bool, (...): a score or a weight is NaN

    @property
    def totals(self) -> Arrays:
        """The number (or total weight) of positives and of negatives, floats of shape `(...)`."""
        dtype = float_dtype(self.positive)
        return self.positive.sum(-1).astype(dtype), self.negative.sum(-1).astype(dtype)

    def weighted(self, weights: Array) -> Ranked:
        """Multiply the weight of each example by `weights`, given in the original order."""
        amounts = take(weights, self.position)
        positive = amounts * self.positive
        negative = amounts * self.negative
        undefined = self.undefined
        if on_device(amounts, self.score):  # an example with a NaN score may have weight 0 now
            lacking = xp.isnan(take(self.score, self.position)) & (positive + negative != 0)
            undefined = undefined & lacking.any(-1)
        return self._replace(positive=positive, negative=negative, undefined=undefined)


def rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    name: str = "y_score",
    truth_name: str = "y_true",
) -> Ranked:
    """Check the arguments of a binary ranking metric, and sort the examples."""
    examples = binary_examples(
        y_true, y_score, sample_weight, where, as_scores, name=name, truth_name=truth_name
    )
    return rank_examples(examples)


class MeasureOfScores(Protocol[R_co]):
    """Type of a metric of the ranking of examples, or of the ranking of labels."""

    def __call__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> R_co: ...


def sorted_once(of_ranked: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a ranking metric to compute it for many weights of the same examples with one sort.

    For NumPy arrays, adjacent negatives without a positive in between are merged into one entry,
    because their order does not affect areas.

    Args:
        of_ranked: the metric as a function of sorted examples (`Ranked`) and options.
    """

    def of_weights(y_true: Array, y_score: Array, **options: Any) -> Callable[[Array], Any]:
        ranked = rank(y_true, y_score)
        weighted = ranked.weighted if on_device(ranked) else _weighted_entries(ranked)
        return lambda weights: of_ranked(weighted(weights), **options)

    return weighted_by(of_weights)


def _weighted_entries(ranked: Ranked) -> Callable[[np.ndarray], Ranked]:
    """Return a function of weights `(..., n)` that returns the merged entries with their total
    weights.

    An entry contains all examples with the same score, or adjacent negatives with several scores.
    """
    of_score = np.cumsum(first_of_ties(ranked.last)) - 1
    holds_positives = np.bincount(of_score, ranked.positive) > 0
    begins = holds_positives | np.concatenate([[True], holds_positives[:-1]])
    entry, size = (np.cumsum(begins) - 1)[of_score], int(begins.sum())
    entries = (np.where(x > 0, entry, size) for x in (ranked.positive, ranked.negative))
    positives, negatives = (sums_by_entry(restore(x, ranked.position), size) for x in entries)
    distinct = ranked._replace(
        position=np.arange(size), score=-np.arange(size), last=np.ones(size, bool)
    )
    return lambda weights: distinct._replace(
        positive=positives(weights), negative=negatives(weights)
    )


def of_scores(measure: Callable[[Any], R], read: Callable[..., Any] = rank) -> MeasureOfScores[R]:
    """Decorate a metric of sorted examples so that it accepts `y_true` and `y_score`."""
    of_ranked = compiled(measure)

    @wraps(measure)
    def call(
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> R:
        return of_ranked(read(y_true, y_score, sample_weight, where))

    del call.__wrapped__  # help() would show the signature of `measure`
    return call


def rank_examples(examples: Examples) -> Ranked:
    """Sort examples with class ids 0 and 1 by their score."""
    score = examples.values
    position, last = order(score)
    if not on_device(examples):
        return _ranked(examples, position, last)
    position = position if is_jax(position) else position.astype(np.int32)
    if not is_jax(score) and score.dtype.kind in "iuf" and score.dtype.itemsize > 2:
        # NumPy scores are rounded down to the dtype in which JAX computes. Then `score >= t` is
        # true for the example whose rounded score is the threshold t.
        with np.errstate(all="ignore"):
            rounded = score.astype(float_dtype())
            below = np.nextafter(rounded, rounded.dtype.type(-np.inf))
            examples = examples._replace(values=np.where(rounded > score, below, rounded))
    return _ranked(examples, position, last)


def order(score: Array) -> Arrays:
    """Sort scores in decreasing order, with NaN last.

    Returns the original positions of the sorted examples, and a mask of the examples that are the
    last of their ties, both of shape `(..., n)`. NumPy arrays are compared in their own precision,
    because rounding to float32 would make ties.
    """
    if is_jax(score) and not on_one_cpu(score):
        return _order_by_xla(score)
    return _order_by_numpy(np.asarray(score))


@compiled
def _order_by_xla(score: Array) -> Arrays:
    rising = score
    if not is_integer(score):  # XLA treats floats below 1e-38 as 0 when it compares them
        score = score.astype(xp.float32) if score.dtype.itemsize < 4 else score
        integers = xp.int32 if score.dtype.itemsize == 4 else xp.int64
        lowest = xp.iinfo(integers).min
        bits = lax.bitcast_convert_type(score, integers)
        bits = xp.where(bits == lowest, 0, bits)  # -0.0 equals 0.0
        # The bits of positive floats increase with the float, the bits of negative floats decrease.
        # So all bits of negative floats except the sign are inverted. NaN is lowest.
        rising = xp.where(bits < 0, bits ^ xp.iinfo(integers).max, bits)
        rising = xp.where(xp.isnan(score), lowest, rising)
    falling = ~rising
    position = lax.broadcasted_iota(xp.int32, score.shape, score.ndim - 1)
    falling, position = jax.lax.platform_dependent(
        falling, position, cpu=_sorted_as_one, default=_sorted_in_pairs
    )
    next_is_lower = falling[..., 1:] != falling[..., :-1]
    return position, xp.concatenate([next_is_lower, xp.ones_like(falling[..., :1], bool)], -1)


def _sorted_in_pairs(key: Array, position: Array) -> Arrays:
    key, position = jax.lax.sort((key, position), dimension=-1, num_keys=1)
    return key, position


def _sorted_as_one(key: Array, position: Array) -> Arrays:
    """Sort 64-bit integers, whose upper half is the key and whose lower half is the position.

    On a CPU, XLA sorts a single array in a quarter of the time of two. (JAX 0.7 confuses the halves
    under vmap.)
    """
    if key.dtype != xp.int32 or not hasattr(jax, "enable_x64"):
        return _sorted_in_pairs(key, position)
    with jax.enable_x64(True):
        packed = jax.lax.bitcast_convert_type(xp.stack([position, key], -1), xp.int64)
        packed = jax.lax.sort(packed, dimension=-1, is_stable=False)
        halves = jax.lax.bitcast_convert_type(packed, xp.int32)
    return halves[..., 1], halves[..., 0]


def _order_by_numpy(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not (score.dtype.kind in "iuf" and score.dtype.itemsize >= 4):
        score = score.astype(np.float32)  # exact for bool, small integers, float16 and bfloat16
    if score.dtype.kind == "f":
        score = score + 0.0  # replaces -0.0, whose bits differ from the bits of 0.0
        if np.isnan(score.max(initial=-np.inf)):
            score[np.isnan(score)] = -np.inf
    if score.dtype == np.float32:
        # We sort 64-bit integers, whose upper half is the score and whose lower half is the
        # position, because this takes half the time of an argsort.
        packed = np.empty(score.shape, np.int64)
        low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
        halves, bits = packed.view(np.int32), score.view(np.int32)
        falling = halves[..., high::2]
        falling[...] = ~(bits ^ ((bits >> 31) & 0x7FFFFFFF))  # as in `_order_by_xla`
        halves[..., low::2] = np.arange(score.shape[-1])
        packed.sort(-1)
        position = packed & 0xFFFFFFFF
    else:
        position = np.argsort(score, -1)[..., ::-1]
        falling = np.take_along_axis(score, position, -1)
    last = np.ones(score.shape, bool)
    np.not_equal(falling[..., 1:], falling[..., :-1], out=last[..., :-1])
    return position, last


@compiled
def _ranked(examples: Examples, position: Array, last: Array) -> Ranked:
    score, amount = examples.values, examples.amounts
    undefined = xp.zeros(score.shape, bool) if is_integer(score) else xp.isnan(score)
    undefined = (undefined & (amount != 0)).any(-1)
    if examples.weights is not None:
        undefined |= xp.isnan(amount).any(-1)
    # Weights of negatives get a minus sign, so that one gather is enough for both classes.
    signed = take(xp.where(examples.ids == 1, amount, -amount), position)
    positive, negative = xp.maximum(signed, 0), xp.maximum(-signed, 0)
    return Ranked(position, score, positive, negative, last, undefined)


def take(x: Array, position: Array) -> Array:
    """Return values `(..., n)` in the order of the sorted examples."""
    if position.ndim == 1 and is_jax(x):
        return x.at[..., position].get(mode="promise_in_bounds")
    if position.ndim == 1:
        return xp.take(x, position, -1)
    shape = xp.broadcast_shapes(x.shape, position.shape)
    x, position = xp.broadcast_to(x, shape), xp.broadcast_to(position, shape)
    return xp.take_along_axis(x, position, -1, mode="promise_in_bounds")


def restore(x: Array, position: Array) -> Array:
    """Return sorted values `(..., n)` in the original order of the examples."""
    position = xp.broadcast_to(position, x.shape)
    return xp.put_along_axis(xp.zeros_like(x), position, x, -1, inplace=False)


def points(ranked: Ranked) -> Arrays:
    """Count true and false positives at all thresholds, from +inf down to the lowest score.

    Ties and ignored examples repeat a point.

    Returns:
        True positives, false positives and thresholds, floats of shape `(..., n + 1)`. All values
        are NaN if the score of an example that is not ignored is NaN.
    """
    counts = ranked.positive + ranked.negative > 0
    axis = counts.ndim - 1
    score = ranked.score.astype(float_dtype(ranked.score))
    threshold = xp.where(counts, take(score, ranked.position), xp.inf)
    threshold = lax.cummin(threshold, axis)  # at each position the last score that is not ignored
    # All ties have the threshold of the last of them.
    threshold = lax.cummax(xp.where(ranked.last, threshold, -xp.inf), axis, reverse=True)
    columns = *cumulative_positives(ranked), _preceded_by(xp.inf, threshold)
    undefined = ranked.undefined[..., None]
    tp, fp, threshold = (xp.where(undefined, xp.nan, x.astype(float_dtype(x))) for x in columns)
    return tp, fp, threshold


def cumulative_positives(ranked: Ranked) -> Arrays:
    """Count true and false positives at all thresholds; both arrays have shape `(..., n + 1)`."""
    tp, fp = (cumulative_sum(x, ranked.last) for x in (ranked.positive, ranked.negative))
    return _preceded_by(0, tp), _preceded_by(0, fp)


def cumulative_sum(amount: Array, last: Array) -> Array:
    """Return for each sorted example the sum over itself, its ties and all examples before it."""
    return _at_ends(_running_sum(amount), last)


def sum_above(amount: Array, last: Array) -> Array:
    """Return for each sorted example the sum over all higher scores; ties count half.

    If all weights are 1, the sum is the midrank minus 1/2, as in the Mann–Whitney statistic.
    """
    running = _running_sum(amount)
    before_ties = _at_ends(running - amount, last, first=True).astype(float_dtype(amount, last))
    return (before_ties + _at_ends(running, last)) / 2


def _running_sum(amount: Array) -> Array:
    """Return the cumulative sum; int8 is summed in int32, because int8 would overflow."""
    small = amount.dtype.itemsize < 4 and amount.shape[-1] <= INT32_MAX
    return xp.cumsum(amount, -1, dtype=xp.int32 if small else None)


def first_of_ties(last: Array) -> Array:
    """Convert a mask of the last examples of all ties to a mask of the first examples."""
    return xp.concatenate([xp.ones_like(last[..., :1]), last[..., :-1]], -1)


def _at_ends(rising: Array, last: Array, *, first: bool = False) -> Array:
    """Return for each example the value of the increasing `rising` at the last of its ties, or at
    the first.

    In JAX, the positions of ties are found first and sums are looked up there, because a running
    maximum of equal sums would split the gradient. In NumPy, which needs no gradients, the running
    maximum of the sums is faster than a lookup.
    """
    ends, beyond = (first_of_ties(last), 0) if first else (last, -1)
    nearest = lax.cummax if first else partial(lax.cummin, reverse=True)
    if not on_device(rising, ends):
        if ends.all():  # no ties
            return rising
        return nearest(xp.where(ends, rising, rising[..., [beyond]]), -1)
    axis = ends.ndim - 1
    place = lax.broadcasted_iota(xp.int32, ends.shape, axis)
    return take(rising, nearest(xp.where(ends, place, place[..., beyond:][..., :1]), axis))


def _preceded_by(start: float, x: Array) -> Array:
    return xp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)], constant_values=start)
