"""Rows of probabilities or logits, and weighted means that ignore masked values."""

from __future__ import annotations

from jaxmetrics._arithmetic import divide
from jaxmetrics._examples import Examples
from jaxmetrics._namespaces import Array, xp

__all__: list[str] = []


def is_probability(x: Array) -> Array:
    """Tell which values lie in [0, 1], up to the rounding of a mean of probabilities."""
    rounding = 8 * xp.finfo(x.dtype).eps
    return (x >= -rounding) & (x <= 1 + rounding)


def is_valid_logits(logits: Array) -> Array:
    """Tell which rows have a softmax: -inf is allowed for some classes, not for all."""
    return xp.isfinite(logits.max(-1))  # NaN counts as greatest


def at_class(rows: Array, ids: Array) -> Array:
    """Return the number of each row `(..., n, K)` at its class; any number if the class is -1."""
    index = xp.broadcast_to(xp.maximum(ids, 0), rows.shape[:-1])
    return xp.take_along_axis(rows, index[..., None], -1)[..., 0]


def weights_of(examples: Examples) -> Array:
    """Return the weight of each example in the dtype of the values.

    1 without weights, 0 for examples that are left out.
    """
    return examples.amounts.astype(examples.values.dtype)


def weighted_mean(values: Array, weights: Array) -> Array:
    """Average over the last axis; values with weight 0 are ignored, even if they are not finite.

    XLA and NumPy sum pairwise, so float32 does not drift.
    """
    values = xp.where((weights != 0) | xp.isfinite(values), values, 0)
    return divide((weights * values).sum(-1), weights.sum(-1), xp.nan)
