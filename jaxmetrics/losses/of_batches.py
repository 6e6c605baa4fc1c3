"""Losses of a batch as a whole: one number for examples `(n, ...)`, since they are no means over examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arrays import (
    ArrayLike,
    as_class_ids,
    as_float,
    as_mask,
    check_examples,
    check_option,
    check_size,
    divide,
    promoting,
    safe_sqrt,
    valid_ids,
)
from jaxmetrics.counts import soft_confusion_matrix
from jaxmetrics.scoring._examples import is_probability

__all__ = ["metric_loss", "pairwise_auc_loss", "soft_calibration_error"]

Metric = Callable[[jax.Array], jax.Array]


@dataclass(frozen=True)
class _MetricLoss:
    """Equal to, and hashed as, another of the same metric, so that jit finds its compiled code again."""

    metric: Metric

    def __post_init__(self) -> None:
        if not callable(self.metric):
            raise TypeError(f"metric_loss takes a function of counts, such as jaxmetrics.macro(f1), got {self.metric!r}.")

    def __call__(
        self,
        logits: ArrayLike,
        labels: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> jax.Array:
        z = as_float(logits, "logits")
        if z.ndim < 2 or z.shape[-1] == 0:
            raise ValueError(f"logits must have shape (..., n, K), got {z.shape}.")
        ids = valid_ids(as_class_ids(labels, "labels", z.shape[-1]), z.shape[-1])
        weight, mask = _weight_and_mask("logits without K", z.shape[:-1], ids, sample_weight, where)
        mask = mask & (ids >= 0) & (weight != 0)
        return 1 - self.metric(soft_confusion_matrix(ids, _softmax(z, mask), sample_weight=weight, where=mask))

    @property
    def __name__(self) -> str:
        return f"metric_loss({getattr(self.metric, '__name__', repr(self.metric))})"

    def __repr__(self) -> str:
        return self.__name__


def metric_loss(metric: Metric) -> Callable[..., jax.Array]:
    """Any smooth metric of counts as a loss: `1 - metric(soft counts)`, where each example is predicted as each class to the
    share of its probability.

    Batches must be large enough to hold the classes that the metric asks about: the mean over batches is not the loss of all.

    Args:
        metric: a function of counts `(..., K, K)`, such as `macro(f1)`, `balanced_accuracy`, `matthews_corrcoef`,
            `macro(jaccard)`, or yours.

    Returns:
        A function of `logits` `(..., n, K)` and `labels` `(..., n)`, with `sample_weight` and `where` `(..., n)`, that returns
        the loss `(...)`. A label outside of [0, K) leaves its example out.

    Raises:
        TypeError: a metric that is no function; as `soft_confusion_matrix`.

    >>> import jaxmetrics as jm
    >>> loss = metric_loss(jm.macro(jm.f1))
    >>> logits = jnp.array([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    >>> loss(logits, [0, 1, 1]).round(4)
    Array(0.3388, dtype=float32)
    >>> jax.grad(loss)(logits, [0, 1, 1]).shape
    (3, 2)
    """
    return _MetricLoss(metric)


@promoting
@jax.jit
def _softmax(z: jax.Array, counts: jax.Array) -> jax.Array:
    """Where the greatest logit is infinite, those equal to it share the probability, with gradient 0."""
    z = jnp.where(counts[..., None], z, 0)
    greatest = z.max(-1, keepdims=True)
    shared = jnp.where(z == greatest, 0, jnp.where(jnp.isnan(greatest), jnp.nan, -jnp.inf))
    return jax.nn.softmax(jnp.where(jnp.isfinite(greatest), z, shared), axis=-1)


def pairwise_auc_loss(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    surrogate: Literal["logistic", "hinge", "squared_hinge"] = "logistic",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> jax.Array:
    """Mean over pairs of a positive i and a negative j of a convex bound on their disorder: 1 - AUC made differentiable.

    With d = z_i - z_j, "logistic" is `ln(1 + e^-d)`, "hinge" `max(0, 1 - d)`, "squared_hinge" its square; an infinite logit
    counts as one of 2e15. Time and memory grow with n^2. Gao and Zhou (2015), IJCAI.

    Args:
        logits: real scores, `(..., n)`.
        labels: 0 or 1 (or bool), `(..., n)`; any other drops the example.
        sample_weight, where: `(..., n)`; the weight of a pair is the product of its two.

    Returns:
        `(...)`, >= 0; 0 without both classes.

    Raises:
        TypeError: labels that are no integers. ValueError: shapes that do not go together, another surrogate.

    >>> pairwise_auc_loss([2.0, 0.0, 1.0], [1, 0, 0]).round(4)  # (ln(1 + e^-2) + ln(1 + e^-1)) / 2
    Array(0.2201, dtype=float32)
    """
    check_option(surrogate, "surrogate", tuple(_SURROGATES))
    z = as_float(logits, "logits")
    ids = jnp.asarray(as_class_ids(labels, "labels", 2))
    weight, mask = _weight_and_mask("logits", z.shape, ids, sample_weight, where)
    return _pairwise_auc_loss(z, ids, weight, mask, surrogate=surrogate)


_SURROGATES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "logistic": lambda d: jax.nn.softplus(-d),
    "hinge": lambda d: jax.nn.relu(1 - d),
    "squared_hinge": lambda d: jax.nn.relu(1 - d) ** 2,
}


@promoting
@partial(jax.jit, static_argnames="surrogate")
def _pairwise_auc_loss(z: jax.Array, ids: jax.Array, weight: jax.Array, mask: jax.Array, *, surrogate: str) -> jax.Array:
    largest = jnp.finfo(z.dtype).max ** 0.4  # its square, and a sum of such, is finite
    z = jnp.clip(z, -largest, largest)
    positive, negative = (_shares(jnp.where(mask & (ids == label), weight, 0)) for label in (1, 0))
    pairs = positive[..., :, None] * negative[..., None, :]
    behind = jnp.where(pairs != 0, z[..., :, None] - z[..., None, :], 0)
    return (pairs * _SURROGATES[surrogate](behind)).sum((-2, -1))


def _shares(weight: jax.Array) -> jax.Array:
    """Weights of any size, with sum 1; 0 if all are."""
    relative = divide(weight, jnp.abs(weight).max(-1, keepdims=True))
    return divide(relative, relative.sum(-1, keepdims=True))


def soft_calibration_error(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    num_bins: int = 15,
    temperature: float = 0.01,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> jax.Array:
    """Root mean square calibration error with soft bins: each probability belongs to all bins, to the shares of
    `softmax(-(p - c)^2 / temperature)` over their centres c, so that it has a gradient everywhere.

    `sqrt(sum_b w_b (mean p_b - mean y_b)^2)`, w_b the share of bin b. Karandikar et al. (2021), NeurIPS, section 4. As the
    temperature falls it becomes `calibration_error(..., norm="l2")`. Added to a proper loss it favours calibration; alone it
    would be content with a constant.

    Args:
        probs: the probability of class 1, or that of the predicted class, `(..., n)`.
        labels: 0 or 1 (or bool), `(..., n)`: whether it came true; any other drops the example.
        num_bins: B, of equal width in [0, 1].
        temperature: a Python number > 0, in units of squared probability.
        sample_weight, where: `(..., n)`.

    Returns:
        `(...)`, in [0, 1]; 0 without examples, NaN if one has a probability outside of [0, 1]. Its gradient is 0 where it is 0.

    Raises:
        TypeError: labels that are no integers. ValueError: shapes that do not go together, a temperature that is not positive.

    >>> soft_calibration_error([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0]).round(2)
    Array(0.29, dtype=float32)
    """
    if not (isinstance(temperature, int | float | np.number) and 1e-30 < temperature < np.inf):
        raise ValueError(f"temperature must be a Python number > 1e-30, got {temperature!r}.")
    p = as_float(probs, "probs")
    ids = jnp.asarray(as_class_ids(labels, "labels", 2))
    bins = check_size(num_bins, "num_bins")
    weight, mask = _weight_and_mask("probs", p.shape, ids, sample_weight, where)
    return _soft_calibration_error(p, ids, weight, mask, float(temperature), num_bins=bins)


@promoting
@partial(jax.jit, static_argnames="num_bins")
def _soft_calibration_error(
    p: jax.Array, ids: jax.Array, weight: jax.Array, mask: jax.Array, temperature: float, *, num_bins: int
) -> jax.Array:
    weight = jnp.where(mask & ((ids == 0) | (ids == 1)), weight, 0)
    p = jnp.where(weight != 0, jnp.where(is_probability(p), p, jnp.nan), 0)
    centres = (jnp.arange(num_bins, dtype=p.dtype) + 0.5) / num_bins
    member = weight[..., None] * jax.nn.softmax(-((p[..., None] - centres) ** 2) / temperature, axis=-1)
    size, gap = member.sum(-2), (member * (p - ids)[..., None]).sum(-2)
    return safe_sqrt(divide((divide(gap, size) ** 2 * size).sum(-1), size.sum(-1)))


def _weight_and_mask(
    name: str, shape: tuple[int, ...], ids: jax.Array, sample_weight: ArrayLike | None, where: ArrayLike | None
) -> tuple[jax.Array, jax.Array]:
    """For examples `(..., n)`, whose shapes must go together."""
    weight = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = None if where is None else as_mask(where)
    shapes = {name: shape, "labels": ids.shape}
    shapes |= {} if weight is None else {"sample_weight": weight.shape}
    shapes |= {} if mask is None else {"where": mask.shape}
    check_examples(shapes)
    shape = np.broadcast_shapes(*shapes.values())
    return jnp.broadcast_to(1.0 if weight is None else weight, shape), jnp.broadcast_to(True if mask is None else mask, shape)
