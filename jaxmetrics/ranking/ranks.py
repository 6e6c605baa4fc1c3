"""Examples in order of their scores, and the counts at every threshold: what all curves and areas
are made of.

On a CPU, XLA's sort takes twenty times as long as NumPy's. So scores whose values are known are
sorted by NumPy before the rest is compiled; what jit hides, or lies on other devices, is sorted by
XLA. (A callback from within jit would be as fast, but waits for ever for its argument where the
process has a single thread.)
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._examples import SCORES, Examples, binary_examples
from jaxmetrics._namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics._validation import INT32_MAX, ArrayLike, is_integer

__all__: list[str] = []


class Ranked(NamedTuple):
    """Examples `(..., n)` by falling score.

    `position` is where each stood; `positive` and `negative` hold 1 (int8) or the weight of
    examples of that class, 0 of others; `last` is true where the next score is lower; `undefined`
    `(...)` where a score that counts is NaN, or a weight is negative or NaN. `score` holds the
    scores as they came.
    """

    position: Array
    score: Array
    positive: Array
    negative: Array
    last: Array
    undefined: Array


class Points(NamedTuple):
    """Counts at all thresholds `(..., n + 1)`, from +inf (nothing is positive) down to the lowest
    score.

    Examples that tie, and those that do not count, repeat a point.
    """

    tp: Array
    fp: Array
    threshold: Array


def rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    name: str = "y_score",
) -> Ranked:
    """Check the arguments of a binary problem, and sort them."""
    return rank_examples(binary_examples(y_true, y_score, sample_weight, where, SCORES, name=name))


def rank_examples(examples: Examples) -> Ranked:
    """Sort examples with ids 0 and 1, and one score each."""
    position, last = order(examples.values)
    if on_device(examples):
        position = position if is_jax(position) else position.astype(np.int32)
        examples = examples._replace(values=_rounded_down(examples.values))
    return _ranked(examples, position, last)


def _rounded_down(score: Array) -> Array:
    """NumPy's numbers in the dtype of the device, never above what they were: `score >= t` holds
    for t from among them.
    """
    if is_jax(score) or score.dtype.kind not in "iuf" or score.dtype.itemsize <= 2:
        return score
    with np.errstate(all="ignore"):
        rounded = score.astype(float_dtype())
        above = rounded > score
        rounded[above] = np.nextafter(rounded[above], rounded.dtype.type(-np.inf))
    return rounded


def order(score: Array) -> tuple[Array, Array]:
    """Positions `(..., n)` by falling score, NaN behind, and which of the sorted ones is the last
    of its ties.

    NumPy arrays are compared in their own precision, so that rounding to float32 makes no ties.
    """
    if is_jax(score) and not (is_known(score) and _on_one_cpu(score)):
        return _order_by_xla(score if is_integer(score) else score.astype(float_dtype()))
    return _order_by_numpy(np.asarray(score))


def _on_one_cpu(x: Array) -> bool:
    return len(x.devices()) == 1 and all(device.platform == "cpu" for device in x.devices())


@compiled
def _order_by_xla(score: Array) -> tuple[Array, Array]:
    falling = ~score if is_integer(score) else xp.where(xp.isnan(score), xp.inf, -score)
    position = lax.broadcasted_iota(xp.int32, score.shape, score.ndim - 1)
    falling, position = lax.sort((falling, position), dimension=-1, num_keys=1)
    return position, xp.concatenate(
        [falling[..., 1:] != falling[..., :-1], xp.ones_like(falling[..., :1], bool)], -1
    )


def _order_by_numpy(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not (score.dtype.kind in "iuf" and score.dtype.itemsize >= 4):
        score = score.astype(np.float32)  # holds bool, small integers, float16 and bfloat16
    if score.dtype.kind == "f":
        score = score + 0.0  # no -0.0, whose bits differ from those of 0.0
        if np.isnan(score.max(initial=-np.inf)):
            score[np.isnan(score)] = -np.inf
    if score.dtype == np.float32:
        # One sort of 64-bit integers, the score above and the position below, takes half the time
        # of an argsort.
        packed = np.empty(score.shape, np.int64)
        below, falling = (
            packed.view(np.int32)[..., i::2]
            for i in ((0, 1) if sys.byteorder == "little" else (1, 0))
        )
        bits = score.view(np.int32)
        falling[...] = ~(bits ^ ((bits >> 31) & 0x7FFFFFFF))
        below[...] = np.arange(score.shape[-1])
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
        undefined |= ~(amount >= 0).all(-1)
    by_class = take(xp.where(examples.ids == 1, amount, -amount), position)
    return Ranked(
        position, score, xp.maximum(by_class, 0), xp.maximum(-by_class, 0), last, undefined
    )


def take(x: Array, position: Array) -> Array:
    if position.ndim == 1:
        return (
            x.at[..., position].get(mode="promise_in_bounds")
            if is_jax(x)
            else xp.take(x, position, -1)
        )
    shape = xp.broadcast_shapes(x.shape, position.shape)
    x, position = xp.broadcast_to(x, shape), xp.broadcast_to(position, shape)
    return xp.take_along_axis(x, position, -1, mode="promise_in_bounds")


def restore(x: Array, position: Array) -> Array:
    """Sorted values `(..., n)` in the order in which the examples came."""
    return xp.put_along_axis(
        xp.zeros_like(x), xp.broadcast_to(position, x.shape), x, -1, inplace=False
    )


def points(ranked: Ranked) -> Points:
    counts = ranked.positive + ranked.negative > 0
    axis = counts.ndim - 1
    score = ranked.score.astype(float_dtype(ranked.score))
    threshold = xp.where(counts, take(score, ranked.position), xp.inf)
    threshold = lax.cummin(threshold, axis)  # the last score that counts
    # As at the end of its ties.
    threshold = lax.cummax(xp.where(ranked.last, threshold, -xp.inf), axis, reverse=True)
    return Points(*hits(ranked), _after(xp.inf, threshold))


def hits(ranked: Ranked) -> tuple[Array, Array]:
    """True and false positives at all thresholds, `(..., n + 1)`."""
    return _after(0, through_ties(ranked.positive, ranked.last)), _after(
        0, through_ties(ranked.negative, ranked.last)
    )


def through_ties(amount: Array, last: Array) -> Array:
    """Of sorted examples, the sum of those before each, of itself and of those that tie with it."""
    return _at_last(_running_sum(amount), last)


def above(amount: Array, last: Array) -> Array:
    """Of sorted examples, the sum of those whose score is higher than that of each, ties counting
    half; a float.
    """
    passed = _running_sum(amount)
    before = _at_first(passed - amount, last).astype(float_dtype(amount, last))
    return (before + _at_last(passed, last)) / 2


def _running_sum(amount: Array) -> Array:
    """Counts with the digits that so many need."""
    small = amount.dtype.itemsize < 4 and amount.shape[-1] <= INT32_MAX
    return xp.cumsum(amount, -1, dtype=xp.int32 if small else None)


# On the device the positions of ties are found first, and sums taken there: among equal sums, a
# running maximum would share out the gradient. On the host the running maximum saves the time of
# looking up.


def _at_last(sums: Array, last: Array) -> Array:
    """Rising sums, at the last of the examples that tie with each."""
    if not on_device(sums, last):
        return lax.cummin(xp.where(last, sums, sums[..., -1:]), -1, reverse=True)
    place = lax.broadcasted_iota(xp.int32, last.shape, last.ndim - 1)
    return take(
        sums, lax.cummin(xp.where(last, place, last.shape[-1] - 1), last.ndim - 1, reverse=True)
    )


def _at_first(sums: Array, last: Array) -> Array:
    """The same, at the first of them."""
    first = xp.concatenate([xp.ones_like(last[..., :1]), last[..., :-1]], -1)
    if not on_device(sums, last):
        return lax.cummax(xp.where(first, sums, 0), -1)
    place = lax.broadcasted_iota(xp.int32, last.shape, last.ndim - 1)
    return take(sums, lax.cummax(xp.where(first, place, 0), last.ndim - 1))


def _after(start: float, x: Array) -> Array:
    return xp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)], constant_values=start)
