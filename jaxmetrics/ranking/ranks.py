"""Sort examples by score, and count at every threshold, for all curves and areas.

On a CPU, XLA's sort takes several times as long as NumPy's. So scores with known values are sorted
by NumPy before the compiled part; scores under jit, or on other devices, are sorted by XLA. (A
callback from within jit would be as fast, but deadlocks if the process has a single thread.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from jaxmetrics._applied import weighted_by
from jaxmetrics._compilation import compiled
from jaxmetrics._examples import SCORES, Examples, binary_examples
from jaxmetrics._jax import jax
from jaxmetrics._namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics._validation import INT32_MAX, ArrayLike, is_integer
from jaxmetrics.intervals.samples import sums_by_entry

__all__: list[str] = []

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])


class Ranked(NamedTuple):
    """Examples `(..., n)` by decreasing score."""

    position: Array  # original positions
    score: Array  # in the original order
    positive: Array  # 1 (int8) or the weight of examples of class 1; 0 for others
    negative: Array  # the same of class 0
    last: Array  # bool: the last of its ties, the next score is lower
    undefined: Array  # (...), bool: a score that counts is NaN, or a weight is negative or NaN

    @property
    def totals(self) -> tuple[Array, Array]:
        """The number, or weight, of all positives and of all negatives, floats `(...)`."""
        dtype = float_dtype(self.positive)
        return self.positive.sum(-1).astype(dtype), self.negative.sum(-1).astype(dtype)

    def weighted(self, weights: Array) -> Ranked:
        """Multiply the weights of the examples by weights `(..., n)`, in the original order."""
        amounts = take(weights, self.position)
        positive = amounts * self.positive
        negative = amounts * self.negative
        undefined = self.undefined
        if on_device(amounts, self.score):  # a NaN score may have weight 0 now
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
    """Check the arguments of a binary problem, and sort them."""
    given = y_true, y_score, sample_weight, where
    return rank_examples(binary_examples(*given, SCORES, name=name, truth_name=truth_name))


class MeasureOfScores(Protocol[R_co]):
    """A metric of the ranking of examples, or of the labels of each example."""

    def __call__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> R_co: ...


def sorted_once(of_ranked: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a ranking metric so that it can be computed for many weights of the same examples.

    The examples are sorted once. On the host, neighbouring negatives without a positive in between
    are merged into one entry, because their order does not affect areas.

    Args:
        of_ranked: the metric of sorted examples, with its options.
    """

    def of_weights(y_true: Array, y_score: Array, **options: Any) -> Callable[[Array], Any]:
        ranked = rank(y_true, y_score)
        weighted = ranked.weighted if on_device(ranked) else _weighted_entries(ranked)
        return lambda weights: of_ranked(weighted(weights), **options)

    return weighted_by(of_weights)


def _weighted_entries(ranked: Ranked) -> Callable[[np.ndarray], Ranked]:
    """Return the function from weights `(..., n)` to the weights of entries, `(..., T)`.

    An entry contains the examples with one score, or negatives with several scores.
    """
    of_score = np.cumsum(first_of_ties(ranked.last)) - 1
    holds_positives = np.bincount(of_score, ranked.positive) > 0
    begins = holds_positives | np.concatenate([[True], holds_positives[:-1]])
    entry, size = (np.cumsum(begins) - 1)[of_score], int(begins.sum())
    of_both = (np.where(x > 0, entry, size) for x in (ranked.positive, ranked.negative))
    positives, negatives = (sums_by_entry(restore(x, ranked.position), size) for x in of_both)
    distinct = ranked._replace(
        position=np.arange(size), score=-np.arange(size), last=np.ones(size, bool)
    )
    return lambda weights: distinct._replace(
        positive=positives(weights), negative=negatives(weights)
    )


def of_scores(measure: Callable[[Ranked], R]) -> MeasureOfScores[R]:
    """Decorate a metric of sorted examples to accept unsorted examples."""
    of_ranked = compiled(measure)

    @wraps(measure)
    def call(
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> R:
        return of_ranked(rank(y_true, y_score, sample_weight, where))

    del call.__wrapped__  # whose signature help would show
    return call


def rank_examples(examples: Examples) -> Ranked:
    """Sort examples with ids 0 and 1, and one score each."""
    position, last = order(examples.values)
    if on_device(examples):
        position = position if is_jax(position) else position.astype(np.int32)
        examples = examples._replace(values=_rounded_down(examples.values))
    return _ranked(examples, position, last)


def _rounded_down(score: Array) -> Array:
    """Round NumPy numbers down to the dtype of the device.

    So `score >= t` holds for the example whose rounded score is the threshold t.
    """
    if is_jax(score) or score.dtype.kind not in "iuf" or score.dtype.itemsize <= 2:
        return score
    with np.errstate(all="ignore"):
        rounded = score.astype(float_dtype())
        rounded_up = rounded > score
        rounded[rounded_up] = np.nextafter(rounded[rounded_up], rounded.dtype.type(-np.inf))
    return rounded


def order(score: Array) -> tuple[Array, Array]:
    """Sort by decreasing score, with NaN last.

    Returns the positions `(..., n)` of the sorted examples, and which is the last of its ties.
    NumPy arrays are compared in their own precision, so that rounding to float32 makes no ties.
    """
    if is_jax(score) and not (is_known(score) and _on_one_cpu(score)):
        return _order_by_xla(score)
    return _order_by_numpy(np.asarray(score))


def _on_one_cpu(x: Array) -> bool:
    return len(x.devices()) == 1 and all(device.platform == "cpu" for device in x.devices())


@compiled
def _order_by_xla(score: Array) -> tuple[Array, Array]:
    falling = ~(score if is_integer(score) else _rising_bits(score))
    position = lax.broadcasted_iota(xp.int32, score.shape, score.ndim - 1)
    falling, position = jax.lax.platform_dependent(
        falling, position, cpu=_sorted_as_one, default=_sorted_in_pairs
    )
    next_is_lower = falling[..., 1:] != falling[..., :-1]
    return position, xp.concatenate([next_is_lower, xp.ones_like(falling[..., :1], bool)], -1)


def _sorted_in_pairs(key: Array, position: Array) -> tuple[Array, Array]:
    key, position = jax.lax.sort((key, position), dimension=-1, num_keys=1)
    return key, position


def _sorted_as_one(key: Array, position: Array) -> tuple[Array, Array]:
    """Sort 64-bit integers, which hold the key in their upper half and the position in the lower.

    On a CPU, XLA sorts a single operand in a quarter of the time. JAX 0.7 confuses the halves under
    vmap.
    """
    if key.dtype != xp.int32 or not hasattr(jax, "enable_x64"):
        return _sorted_in_pairs(key, position)
    with jax.enable_x64(True):
        packed = jax.lax.bitcast_convert_type(xp.stack([position, key], -1), xp.int64)
        packed = jax.lax.sort(packed, dimension=-1, is_stable=False)
        halves = jax.lax.bitcast_convert_type(packed, xp.int32)
    return halves[..., 1], halves[..., 0]


def _rising_bits(score: Array) -> Array:
    """Return integers in the order of the scores, with NaN lowest.

    XLA compares floats below 1e-38 as 0, but compares their bits exactly.
    """
    if score.dtype.itemsize < 4:
        score = score.astype(xp.float32)
    integers = xp.int32 if score.dtype.itemsize == 4 else xp.int64
    lowest = xp.iinfo(integers).min
    bits = lax.bitcast_convert_type(score, integers)
    bits = xp.where(bits == lowest, 0, bits)  # -0.0 equals 0.0
    # The bits of positive floats increase with the float. The bits of negative floats decrease: all
    # bits except the sign are inverted.
    rising = xp.where(bits < 0, bits ^ xp.iinfo(integers).max, bits)
    return xp.where(xp.isnan(score), lowest, rising)


def _order_by_numpy(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not (score.dtype.kind in "iuf" and score.dtype.itemsize >= 4):
        score = score.astype(np.float32)  # holds bool, small integers, float16 and bfloat16
    if score.dtype.kind == "f":
        score = score + 0.0  # replaces -0.0, whose bits differ from 0.0
        if np.isnan(score.max(initial=-np.inf)):
            score[np.isnan(score)] = -np.inf
    if score.dtype == np.float32:
        position, falling = _sorted_by_bits(score)
    else:
        position = np.argsort(score, -1)[..., ::-1]
        falling = np.take_along_axis(score, position, -1)
    last = np.ones(score.shape, bool)
    np.not_equal(falling[..., 1:], falling[..., :-1], out=last[..., :-1])
    return position, last


def _sorted_by_bits(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sort float32 by decreasing score; return positions, and integers in the order of the scores.

    One sort of 64-bit integers, which hold the score in their upper half and the position in the
    lower one, takes half the time of an argsort.
    """
    packed = np.empty(score.shape, np.int64)
    low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
    halves = packed.view(np.int32)
    lower, upper = halves[..., low::2], halves[..., high::2]
    bits = score.view(np.int32)
    upper[...] = ~(bits ^ ((bits >> 31) & 0x7FFFFFFF))  # as `_rising_bits`
    lower[...] = np.arange(score.shape[-1])
    packed.sort(-1)
    return packed & 0xFFFFFFFF, upper


@compiled
def _ranked(examples: Examples, position: Array, last: Array) -> Ranked:
    score, amount = examples.values, examples.amounts
    undefined = xp.zeros(score.shape, bool) if is_integer(score) else xp.isnan(score)
    undefined = (undefined & (amount != 0)).any(-1)
    if examples.weights is not None:
        undefined |= ~(amount >= 0).all(-1)
    # One gather for both classes: positives are above 0, negatives below.
    signed = take(xp.where(examples.ids == 1, amount, -amount), position)
    positive, negative = xp.maximum(signed, 0), xp.maximum(-signed, 0)
    return Ranked(position, score, positive, negative, last, undefined)


def take(x: Array, position: Array) -> Array:
    """Put values `(..., n)` in the order of the sorted examples."""
    if position.ndim == 1 and is_jax(x):
        return x.at[..., position].get(mode="promise_in_bounds")
    if position.ndim == 1:
        return xp.take(x, position, -1)
    shape = xp.broadcast_shapes(x.shape, position.shape)
    x, position = xp.broadcast_to(x, shape), xp.broadcast_to(position, shape)
    return xp.take_along_axis(x, position, -1, mode="promise_in_bounds")


def restore(x: Array, position: Array) -> Array:
    """Put sorted values `(..., n)` back into the original order of the examples."""
    position = xp.broadcast_to(position, x.shape)
    return xp.put_along_axis(xp.zeros_like(x), position, x, -1, inplace=False)


def points(ranked: Ranked) -> tuple[Array, Array, Array]:
    """Count at all thresholds, from +inf (nothing predicted positive) down to the lowest score.

    Ties, and examples that do not count, repeat a point.

    Returns:
        True positives, false positives and thresholds, floats `(..., n + 1)`; NaN if a score that
        counts is NaN.
    """
    counts = ranked.positive + ranked.negative > 0
    axis = counts.ndim - 1
    score = ranked.score.astype(float_dtype(ranked.score))
    threshold = xp.where(counts, take(score, ranked.position), xp.inf)
    threshold = lax.cummin(threshold, axis)  # the last score that counts, at each position
    # Ties share the threshold at the last of them.
    threshold = lax.cummax(xp.where(ranked.last, threshold, -xp.inf), axis, reverse=True)
    columns = *cumulative_positives(ranked), _preceded_by(xp.inf, threshold)
    undefined = ranked.undefined[..., None]
    tp, fp, threshold = (xp.where(undefined, xp.nan, x.astype(float_dtype(x))) for x in columns)
    return tp, fp, threshold


def cumulative_positives(ranked: Ranked) -> tuple[Array, Array]:
    """Count true and false positives at all thresholds, `(..., n + 1)` each."""
    tp, fp = (cumulative_sum(x, ranked.last) for x in (ranked.positive, ranked.negative))
    return _preceded_by(0, tp), _preceded_by(0, fp)


def cumulative_sum(amount: Array, last: Array) -> Array:
    """Add up each sorted example, its ties, and the examples before it."""
    return _at_last(_running_sum(amount), last)


def sum_above(amount: Array, last: Array) -> Array:
    """Add up the examples with a higher score than each, with ties counting half; floats.

    For ones this is the midrank minus 1/2, as in the Mann-Whitney statistic.
    """
    running = _running_sum(amount)
    before_ties = _at_first(running - amount, last).astype(float_dtype(amount, last))
    return (before_ties + _at_last(running, last)) / 2


def _running_sum(amount: Array) -> Array:
    """Return the cumulative sum; int8 is summed in int32, because int8 would wrap."""
    small = amount.dtype.itemsize < 4 and amount.shape[-1] <= INT32_MAX
    return xp.cumsum(amount, -1, dtype=xp.int32 if small else None)


# On the device, the positions of ties are found first and sums are taken there, because a running
# maximum of equal sums would split the gradient. On the host, without gradients, the running
# maximum of the sums is faster than a lookup.


def _at_last(rising: Array, last: Array) -> Array:
    """Return increasing sums at the last tie of each example."""
    backwards = partial(lax.cummin, reverse=True)
    return _at(last, rising, backwards, beyond=-1)


def _at_first(rising: Array, last: Array) -> Array:
    """Return increasing sums at the first tie of each example."""
    return _at(first_of_ties(last), rising, lax.cummax, beyond=0)


def first_of_ties(last: Array) -> Array:
    """Return which examples are the first of their ties, given which are the last."""
    return xp.concatenate([xp.ones_like(last[..., :1]), last[..., :-1]], -1)


def _at(ends: Array, rising: Array, nearest: Callable[..., Array], *, beyond: int) -> Array:
    """Return increasing sums at the nearest end of ties in one direction; `beyond` is the value
    past the last end.
    """
    if not on_device(rising, ends):
        if ends.all():  # no ties
            return rising
        return nearest(xp.where(ends, rising, rising[..., [beyond]]), -1)
    axis = ends.ndim - 1
    place = lax.broadcasted_iota(xp.int32, ends.shape, axis)
    return take(rising, nearest(xp.where(ends, place, place[..., beyond:][..., :1]), axis))


def _preceded_by(start: float, x: Array) -> Array:
    return xp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)], constant_values=start)
