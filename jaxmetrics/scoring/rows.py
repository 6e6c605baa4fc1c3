"""Work on rows of probabilities or logits, and take means in which what is left out has no say."""

from __future__ import annotations

from jaxmetrics._arithmetic import divide
from jaxmetrics._examples import Examples
from jaxmetrics._namespaces import Array, xp

__all__: list[str] = []


def is_probability(x: Array) -> Array:
    """Tell what lies in [0, 1], but for the rounding of a mean of probabilities."""
    rounding = 8 * xp.finfo(x.dtype).eps
    return (x >= -rounding) & (x <= 1 + rounding)


def is_valid_logits(logits: Array) -> Array:
    """Tell which rows softmax turns into probabilities: -inf rules a class out, not all of them."""
    return xp.isfinite(logits.max(-1))  # NaN is greater than any


def at_class(rows: Array, ids: Array) -> Array:
    """Take the number of each row `(..., n, K)` at its class; at any where that is -1."""
    index = xp.broadcast_to(xp.maximum(ids, 0), rows.shape[:-1])
    return xp.take_along_axis(rows, index[..., None], -1)[..., 0]


def weights_of(examples: Examples) -> Array:
    """Return the weight of each example in the dtype of the values.

    1 where none was given, 0 where the example is left out.
    """
    return examples.amounts.astype(examples.values.dtype)


def weighted_mean(values: Array, weights: Array) -> Array:
    """Average over the last axis; a value that is not finite counts only if it has a weight.

    XLA and NumPy add in a tree, so that float32 does not drift.
    """
    values = xp.where((weights != 0) | xp.isfinite(values), values, 0)
    return divide((weights * values).sum(-1), weights.sum(-1), xp.nan)
