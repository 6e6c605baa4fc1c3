"""Two areas under the ROC curve on the same examples."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr

from jaxmetrics._arrays import ArrayLike, as_float, as_host_or_jax, check_examples, check_real, divide, float_dtype, promoting
from jaxmetrics._estimates import Estimate, normal_estimate, normal_quantile

__all__ = ["DeLong", "delong"]


class DeLong(NamedTuple):
    """Two areas under the ROC curve on the same examples, their difference A - B, and the test that it is 0."""

    a: Estimate
    b: Estimate
    difference: Estimate
    statistic: jax.Array
    p_value: jax.Array


def delong(y_true: ArrayLike, y_score_a: ArrayLike, y_score_b: ArrayLike, *, level: float = 0.95) -> DeLong:
    """DeLong's comparison of two areas under the ROC curve.

    An area is the share of pairs of a positive and a negative example whose scores are in order, ties counting half. With
    V_i the share of negatives below positive i, and W_j of positives above negative j, the variance of an area is
    `var(V) / n1 + var(W) / n0`; that of the difference A - B likewise from the differences of the shares.
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44; the shares by ranks, in O(n log n): Sun and Xu (2014), IEEE Signal
    Processing Letters 21.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; examples of any other label are left out.
        y_score_a, y_score_b: real numbers, `(..., n)`.

    Returns:
        `DeLong`; `statistic` is the difference over its error, `p_value` two-sided and normal. NaN without two positives and
        two negatives, and where a score that counts is NaN. An error of 0 makes p 1 without a difference, else 0.

    Raises:
        ValueError: unequal lengths, a level outside of (0, 1).

    >>> result = delong([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9], [0.2, 0.6, 0.1, 0.7, 0.5])
    >>> result.a.value.round(4), result.b.value.round(4)
    (Array(0.8333, dtype=float32), Array(0.5, dtype=float32))
    """
    z = normal_quantile(level)
    scores = [_as_scores(y_score_a, "y_score_a"), _as_scores(y_score_b, "y_score_b")]
    truth = jnp.asarray(y_true)
    if not (jnp.issubdtype(truth.dtype, jnp.integer) or truth.dtype == bool):
        raise TypeError(f"y_true must hold 0 and 1 of an integer or bool dtype, got {truth.dtype}. Truth comes first.")
    check_examples({"y_true": truth.shape, "y_score_a": scores[0].shape, "y_score_b": scores[1].shape})
    return _delong(*jnp.broadcast_arrays(truth, *scores), z)


def _as_scores(scores: ArrayLike, name: str) -> jax.Array:
    """As floats in the same order; NumPy arrays, which may hold more digits than float32, are replaced by their ranks."""
    array = as_host_or_jax(scores)
    if isinstance(array, np.ndarray) and array.dtype.itemsize > 4 and float_dtype() == np.float32:
        check_real(array, name)
        ranks = np.unique(array, return_inverse=True)[1].reshape(array.shape)
        array = np.where(np.isnan(array), np.nan, ranks)
    return as_float(array, name)


@promoting
@jax.jit
def _delong(truth: jax.Array, first: jax.Array, second: jax.Array, z: float) -> DeLong:
    positive, negative = truth == 1, truth == 0
    of_first, of_second = (_shares_in_order(score, positive, negative) for score in (first, second))
    a, b, difference = (
        _mean_with_interval(shares, positive, negative, z) for shares in (of_first, of_second, of_first - of_second)
    )
    error = difference.standard_error
    certain = jnp.where(difference.value == 0, 0, jnp.inf * jnp.sign(difference.value))
    statistic = jnp.where(error == 0, certain, difference.value / jnp.where(error == 0, 1, error))
    return DeLong(a, b, difference, statistic, 2 * ndtr(-jnp.abs(statistic)))


def _mean_with_interval(shares: jax.Array, positive: jax.Array, negative: jax.Array, z: float) -> Estimate:
    """The mean share of positives, which is that of negatives; its variance is the sum of what the two groups contribute."""
    (mean, of_positives), (_, of_negatives) = (_mean_and_variance(shares, group) for group in (positive, negative))
    return normal_estimate(mean, jnp.sqrt(of_positives + of_negatives), z)


def _mean_and_variance(values: jax.Array, group: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Of a group among values `(..., n)`: their mean, and the variance of that mean."""
    number = group.sum(-1).astype(values.dtype)
    mean = divide(jnp.where(group, values, 0).sum(-1), number, jnp.nan)
    squares = jnp.where(group, values - mean[..., None], 0) ** 2
    return mean, divide(squares.sum(-1), number * (number - 1), jnp.nan)


def _shares_in_order(score: jax.Array, positive: jax.Array, negative: jax.Array) -> jax.Array:
    """For each positive the share of negatives below it, for each negative that of positives above it; ties count half."""
    order = jnp.argsort(score, -1)
    s, pos, neg = (jnp.take_along_axis(v, order, -1) for v in (score, positive, negative))
    first = jnp.concatenate([jnp.ones_like(pos[..., :1]), s[..., 1:] != s[..., :-1]], -1)  # of a run of equal scores
    last = jnp.concatenate([first[..., 1:], jnp.ones_like(pos[..., :1])], -1)
    axis = s.ndim - 1

    def up_to_run(flags: jax.Array) -> tuple[jax.Array, jax.Array]:
        """How many flags stand before, and up to the end of, the run of each."""
        passed = jnp.cumsum(flags, -1, dtype=jnp.int32)
        before = jax.lax.cummax(jnp.where(first, passed - flags, 0), axis)
        through = jax.lax.cummin(jnp.where(last, passed, jnp.iinfo(jnp.int32).max), axis, reverse=True)
        return before, through

    neg_before, neg_through = up_to_run(neg)
    pos_before, pos_through = up_to_run(pos)
    num_pos, num_neg = pos.sum(-1, keepdims=True), neg.sum(-1, keepdims=True)
    twice = jnp.where(pos, neg_before + neg_through, 2 * num_pos - pos_before - pos_through).astype(score.dtype)
    share = divide(twice / 2, jnp.where(pos, num_neg, num_pos).astype(score.dtype), jnp.nan)
    share = jnp.where((jnp.isnan(s) & (pos | neg)).any(-1, keepdims=True), jnp.nan, share)
    return jnp.take_along_axis(share, jnp.argsort(order, -1), -1)
