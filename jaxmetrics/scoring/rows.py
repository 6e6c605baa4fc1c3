"""Helpers for rows of probabilities or logits, and weighted means."""

from __future__ import annotations

from jaxmetrics._arguments.example_arguments import Examples
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.namespaces import Array, xp

__all__: list[str] = []


def is_probability(x: Array) -> Array:
    """Return a mask of the values in [0, 1], with a tolerance for rounding errors."""
    rounding = 8 * xp.finfo(x.dtype).eps
    return (x >= -rounding) & (x <= 1 + rounding)


def is_valid_logits(logits: Array) -> Array:
    """Return a mask of the rows with a softmax: logits may be -inf for some classes, but not for
    all.
    """
    return xp.isfinite(logits.max(-1))  # the maximum is NaN if a logit is NaN


def at_class(rows: Array, ids: Array) -> Array:
    """Return the value of each row `(..., n, K)` at its class; any value if the class is -1."""
    index = xp.broadcast_to(xp.maximum(ids, 0), rows.shape[:-1])
    return xp.take_along_axis(rows, index[..., None], -1)[..., 0]


def weights_of(examples: Examples) -> Array:
    """Return the weight of each example in the dtype of the values.

    Without `sample_weight` all weights are 1. The weights of ignored examples are 0.
    """
    return examples.amounts.astype(examples.values.dtype)


def weighted_mean(values: Array, weights: Array) -> Array:
    """Return the weighted mean over the last axis; values of weight 0 are ignored, even if NaN.

    The sum is accurate even in float32, because NumPy and JAX do not add one number after the
    other: they add pairs of numbers, then pairs of these sums and so on.
    """
    values = xp.where((weights != 0) | xp.isfinite(values), values, 0)
    return divide((weights * values).sum(-1), weights.sum(-1), xp.nan)
