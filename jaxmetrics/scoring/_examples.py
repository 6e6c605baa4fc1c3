"""Examples at the door: checked, in one dtype; and their weighted mean, in which what is left out has no say."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arrays import (
    ArrayLike,
    as_class_ids,
    as_float,
    as_mask,
    check_examples,
    divide,
    valid_ids,
)

__all__: list[str] = []


class Examples(NamedTuple):
    """Class ids `(..., n)`, -1 where dropped; probabilities or logits `(..., n)` or `(..., n, K)`; weights, mask `(..., n)`."""

    ids: jax.Array
    values: jax.Array
    weights: jax.Array | None
    mask: jax.Array | None


def of_classes(
    y_true: ArrayLike, rows: ArrayLike, name: str, sample_weight: ArrayLike | None, where: ArrayLike | None
) -> Examples:
    """Examples with a number for each of K classes."""
    values = as_float(rows, name)
    ids = as_class_ids(y_true, "y_true", values.shape[-1] if values.ndim else 1)
    one_number_each = values.ndim <= ids.ndim and (values.ndim < 2 or values.shape[-2] != ids.shape[-1])
    if values.ndim < 2 or values.shape[-1] < 2 or one_number_each or values.shape == ids.shape:
        hint = (
            "jnp.stack([jnp.zeros_like(z), z], -1) makes such an array of the logit z of class 1"
            if name == "logits"
            else "two_class makes such an array of the probability of class 1"
        )
        raise ValueError(
            f"{name} must have shape (..., n, K), a number for each of K >= 2 classes of the n examples of y_true, got"
            f" {values.shape} for y_true {ids.shape}; {hint}."
        )
    examples = _checked(ids, values.shape[-1], {name: values.shape[:-1]}, values, sample_weight, where)
    batch = np.broadcast_shapes(ids.shape, values.shape[:-1])
    return examples._replace(values=jnp.broadcast_to(values, (*batch, values.shape[-1])))


def of_event(y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None, where: ArrayLike | None) -> Examples:
    """Examples with the probability of class 1."""
    values = as_float(y_prob, "y_prob")
    ids = as_class_ids(y_true, "y_true", 2)
    if values.ndim == ids.ndim + 1 and ids.shape[-1:] == values.shape[-2:-1] != values.shape[-1:]:
        raise ValueError(
            f"y_prob must have shape (..., n), the probability of class 1, got {values.shape} for y_true {ids.shape}."
            " Take y_prob[..., 1] of two classes, top_label(function) of several."
        )
    return _checked(ids, 2, {"y_prob": values.shape}, values, sample_weight, where)


def _checked(
    ids: jax.Array | np.ndarray,
    size: int,
    shapes: dict[str, tuple[int, ...]],
    values: jax.Array,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
) -> Examples:
    weights = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = None if where is None else as_mask(where)
    shapes = {"y_true": ids.shape, **shapes}
    shapes |= {"sample_weight": weights.shape} if weights is not None else {}
    shapes |= {"where": mask.shape} if mask is not None else {}
    check_examples(shapes)
    return Examples(valid_ids(ids, size), values, weights, mask)


def is_probability(x: jax.Array) -> jax.Array:
    """In [0, 1], but for the rounding of a mean of probabilities."""
    rounding = 8 * jnp.finfo(x.dtype).eps
    return (x >= -rounding) & (x <= 1 + rounding)


def is_forecast(logits: jax.Array) -> jax.Array:
    """Rows that softmax turns into probabilities: -inf rules a class out, but not all of them."""
    return jnp.isfinite(logits.max(-1))  # NaN is greater than any


def at_class(rows: jax.Array, ids: jax.Array) -> jax.Array:
    """The number of each row `(..., n, K)` at its class; at any where that is -1."""
    index = jnp.broadcast_to(jnp.maximum(ids, 0), rows.shape[:-1])
    return jnp.take_along_axis(rows, index[..., None], -1)[..., 0]


def weights_of(examples: Examples) -> jax.Array:
    """The weight of each example, 0 where it is left out; where nothing was given, 1."""
    keep = examples.ids >= 0
    if examples.mask is not None:
        keep = keep & examples.mask
    return jnp.where(keep, jnp.ones((), examples.values.dtype) if examples.weights is None else examples.weights, 0)


def weighted_mean(values: jax.Array, weights: jax.Array) -> jax.Array:
    """Over the last axis; a value that is not finite counts only if it has a weight. XLA adds in a tree: no drift."""
    values = jnp.where((weights != 0) | jnp.isfinite(values), values, 0)
    return divide((weights * values).sum(-1), weights.sum(-1), jnp.nan)
