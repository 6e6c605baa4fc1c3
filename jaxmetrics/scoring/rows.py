"""Rows of probabilities or logits, and their weighted mean, in which what is left out has no
say.
"""

from __future__ import annotations

from jaxmetrics._arithmetic import divide
from jaxmetrics._examples import Examples
from jaxmetrics._namespaces import Array, xp

__all__: list[str] = []


def is_probability(x: Array) -> Array:
    """In [0, 1], but for the rounding of a mean of probabilities."""
    rounding = 8 * xp.finfo(x.dtype).eps
    return (x >= -rounding) & (x <= 1 + rounding)


def is_valid_logits(logits: Array) -> Array:
    """Rows that softmax turns into probabilities: -inf rules a class out, but not all of them."""
    return xp.isfinite(logits.max(-1))  # NaN is greater than any


def at_class(rows: Array, ids: Array) -> Array:
    """The number of each row `(..., n, K)` at its class; at any where that is -1."""
    index = xp.broadcast_to(xp.maximum(ids, 0), rows.shape[:-1])
    return xp.take_along_axis(rows, index[..., None], -1)[..., 0]


def weights_of(examples: Examples) -> Array:
    """The weight of each example, 0 where it is left out, in the dtype of the values; where nothing
    was given, 1.
    """
    return examples.amounts.astype(examples.values.dtype)


def weighted_mean(values: Array, weights: Array) -> Array:
    """Over the last axis; a value that is not finite counts only if it has a weight. XLA and NumPy
    add in a tree: no drift.
    """
    values = xp.where((weights != 0) | xp.isfinite(values), values, 0)
    return divide((weights * values).sum(-1), weights.sum(-1), xp.nan)
