"""Examples in order of their scores, and the counts at every threshold: what all curves and areas are made of.

On a CPU, XLA's sort takes twenty times as long as NumPy's. So scores whose values are known are sorted by NumPy before the
rest is compiled; what jit hides, or lies on other devices, is sorted by XLA. (A callback from within jit would be as fast, but
waits for ever for its argument where the process has a single thread.)
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arrays import (
    ArrayLike,
    as_class_ids,
    as_float,
    as_host_or_jax,
    as_mask,
    check_examples,
    check_real,
    float_dtype,
    is_integer,
    promoting,
)

__all__: list[str] = []


class Ranked(NamedTuple):
    """Examples `(..., n)` by falling score.

    `position` is where each stood; `positive` and `negative` hold 1 (int32) or the weight of examples of that class, 0 of
    others; `last` is true where the next score is lower; `undefined` `(...)` where a score that counts is NaN, or a weight is
    negative or NaN.
    """

    position: jax.Array
    score: jax.Array
    positive: jax.Array
    negative: jax.Array
    last: jax.Array
    undefined: jax.Array


class Points(NamedTuple):
    """Counts at all thresholds `(..., n + 1)`, from +inf (nothing is positive) down to the lowest score.

    Examples that tie, and those that do not count, repeat a point.
    """

    tp: jax.Array
    fp: jax.Array
    threshold: jax.Array


def rank(
    y_true: ArrayLike,
    y_score: ArrayLike,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    name: str = "y_score",
) -> Ranked:
    """Check the arguments of a binary problem, and sort them."""
    truth = jnp.asarray(as_class_ids(y_true, "y_true", 2))
    score = as_host_or_jax(y_score)
    check_real(score, name)
    weight = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = None if where is None else as_mask(where)
    if score.ndim == truth.ndim + 1 and truth.shape[-1:] == score.shape[-2:-1] != score.shape[-1:]:
        raise ValueError(
            f"{name} must have shape (..., n), one score per example, got {score.shape} for y_true {truth.shape}."
            f" Take {name}[..., 1] of two classes, per_class(function) of several, per_label(function) of labels."
        )
    arguments = {"y_true": truth, name: score, "sample_weight": weight, "where": mask}
    check_examples({argument: x.shape for argument, x in arguments.items() if x is not None})
    return _ranked(truth, as_float(score, name), weight, mask, *order(score))


def round_down(y_score: ArrayLike) -> jax.Array | np.ndarray:
    """NumPy arrays in the computing dtype, never above what they were: `score >= t` then holds for t from among them."""
    score = as_host_or_jax(y_score)
    if not isinstance(score, np.ndarray) or score.dtype.kind not in "iuf" or score.dtype.itemsize <= 2:
        return score
    rounded = score.astype(float_dtype())
    return np.where(rounded > score, np.nextafter(rounded, rounded.dtype.type(-np.inf)), rounded)


def order(score: jax.Array | np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Positions `(..., n)` by falling score, NaN behind, and which of the sorted ones is the last of its ties.

    NumPy arrays are compared in their own precision, so that rounding to float32 makes no ties.
    """
    if isinstance(score, jax.Array) and (isinstance(score, jax.core.Tracer) or not _on_one_cpu(score)):
        return _order_by_xla(score if is_integer(score) else score.astype(float_dtype()))
    return tuple(map(jnp.asarray, _order_by_numpy(np.asarray(score))))  # type: ignore[return-value]


def _on_one_cpu(x: jax.Array) -> bool:
    return len(x.devices()) == 1 and all(device.platform == "cpu" for device in x.devices())


@promoting
@jax.jit
def _order_by_xla(score: jax.Array) -> tuple[jax.Array, jax.Array]:
    falling = ~score if is_integer(score) else jnp.where(jnp.isnan(score), jnp.inf, -score)
    position = lax.broadcasted_iota(jnp.int32, score.shape, score.ndim - 1)
    falling, position = lax.sort((falling, position), dimension=-1, num_keys=1)
    return position, jnp.concatenate([falling[..., 1:] != falling[..., :-1], jnp.ones_like(falling[..., :1], bool)], -1)


def _order_by_numpy(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not (score.dtype.kind in "iuf" and score.dtype.itemsize >= 4):
        score = score.astype(np.float32)  # holds bool, small integers, float16 and bfloat16
    if score.dtype.kind == "f":
        score = score + 0.0  # no -0.0, whose bits differ from those of 0.0
        score[np.isnan(score)] = -np.inf
    if score.dtype == np.float32:
        # One sort of 64-bit integers, the score above and the position below, takes half the time of an argsort.
        bits = score.view(np.int32)
        falling = bits >> 31
        falling &= 0x7FFFFFFF
        falling ^= bits
        packed = (~falling).astype(np.int64)
        packed <<= 32
        packed |= np.arange(score.shape[-1])
        packed.sort(-1)
        position = packed.astype(np.int32)  # the lower half
        packed >>= 32
        falling = packed
    else:
        position = np.argsort(score, -1, kind="stable")[..., ::-1].astype(np.int32)
        falling = np.take_along_axis(score, position, -1)
    last = np.ones(score.shape, bool)
    np.not_equal(falling[..., 1:], falling[..., :-1], out=last[..., :-1])
    return position, last


@promoting
@jax.jit
def _ranked(
    truth: jax.Array, score: jax.Array, weight: jax.Array | None, mask: jax.Array | None, position: jax.Array, last: jax.Array
) -> Ranked:
    counted = (truth == 0) | (truth == 1)
    counted = counted if mask is None else counted & mask
    counted = counted if weight is None else counted & (weight != 0)
    amount = counted.astype(jnp.int32) if weight is None else jnp.where(counted, weight, 0)
    undefined = (jnp.isnan(score) & counted).any(-1)
    if weight is not None:
        undefined |= ~(amount >= 0).all(-1)
    by_class = take(jnp.where(truth == 1, amount, -amount), position)
    positive, negative = jnp.maximum(by_class, 0), jnp.maximum(-by_class, 0)
    return Ranked(position, take(score, position), positive, negative, last, undefined)


def take(x: jax.Array, position: jax.Array) -> jax.Array:
    if position.ndim == 1:
        return x.at[..., position].get(mode="promise_in_bounds")
    shape = jnp.broadcast_shapes(x.shape, position.shape)
    x, position = jnp.broadcast_to(x, shape), jnp.broadcast_to(position, shape)
    return jnp.take_along_axis(x, position, -1, mode="promise_in_bounds")


def restore(x: jax.Array, position: jax.Array) -> jax.Array:
    """Sorted values `(..., n)` in the order in which the examples came."""
    return jnp.put_along_axis(jnp.zeros_like(x), jnp.broadcast_to(position, x.shape), x, -1, inplace=False)


def points(ranked: Ranked) -> Points:
    counts = ranked.positive + ranked.negative > 0
    axis = counts.ndim - 1
    threshold = lax.cummin(jnp.where(counts, ranked.score, jnp.inf), axis)  # the last score that counts
    threshold = lax.cummax(jnp.where(ranked.last, threshold, -jnp.inf), axis, reverse=True)  # as at the end of its ties
    tp, fp = (through_ties(x, ranked.last) for x in (ranked.positive, ranked.negative))
    return Points(*(_after(start, x) for start, x in ((0, tp), (0, fp), (jnp.inf, threshold))))


def through_ties(amount: jax.Array, last: jax.Array) -> jax.Array:
    """Of sorted examples, the sum of those before each, of itself and of those that tie with it."""
    return take(jnp.cumsum(amount, -1), _last_of_ties(last))


def above(amount: jax.Array, last: jax.Array) -> jax.Array:
    """Of sorted examples, the sum of those whose score is higher than that of each, ties counting half; a float."""
    passed = jnp.cumsum(amount, -1)
    before = take(passed - amount, _first_of_ties(last))
    return (before.astype(float_dtype()) + take(passed, _last_of_ties(last)).astype(float_dtype())) / 2


# The positions of ties are found first, and sums taken there: among equal sums, a running maximum would share out the gradient.


def _last_of_ties(last: jax.Array) -> jax.Array:
    place = lax.broadcasted_iota(jnp.int32, last.shape, last.ndim - 1)
    return lax.cummin(jnp.where(last, place, last.shape[-1] - 1), last.ndim - 1, reverse=True)


def _first_of_ties(last: jax.Array) -> jax.Array:
    place = lax.broadcasted_iota(jnp.int32, last.shape, last.ndim - 1)
    first = jnp.concatenate([jnp.ones_like(last[..., :1]), last[..., :-1]], -1)
    return lax.cummax(jnp.where(first, place, 0), last.ndim - 1)


def _after(start: float, x: jax.Array) -> jax.Array:
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(1, 0)], constant_values=start)
