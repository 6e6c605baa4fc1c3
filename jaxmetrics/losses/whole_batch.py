"""Compute losses of a batch as a whole, which are no means over examples: `(..., n)` to `(...)`.

`labels`, `sample_weight` and `where` are `(..., n)`; a negative label leaves its example out, and
so does `where=False`. Labels that are no integers raise TypeError, shapes that do not go together
ValueError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from jaxmetrics._applied import applied
from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._examples import Examples, refuse_distributions
from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_class_ids,
    as_mask,
    as_number,
    as_rows,
    as_weights,
    check_binary,
    check_examples,
    check_option,
    check_samples,
    shapes_of,
    valid_ids,
)
from jaxmetrics.counts import soft_confusion_matrix
from jaxmetrics.losses.per_example import as_real
from jaxmetrics.scoring.rows import is_probability

__all__ = ["metric_loss", "pairwise_auc_loss", "soft_calibration_error"]

Metric = Callable[[Array], Array]


def metric_loss(metric: Metric) -> Callable[..., Array]:
    """Turn any smooth metric of counts into a loss, `1 - metric(soft counts)`.

    In soft counts each example is predicted as each class to the share of its probability. Batches
    must be large enough to hold the classes that the metric asks about: the mean over batches is
    not the loss of all.

    Args:
        metric: a function of counts `(..., K, K)`, such as `macro(f1)`, `balanced_accuracy`,
            `matthews_corrcoef`, `macro(jaccard)`, or yours.

    Returns:
        A function of `logits` `(..., n, K)` and `labels`, with `sample_weight` and `where`, that
        returns the loss. Within jit a label beyond K leaves its example out, too.

    >>> import jax, jax.numpy as jnp, jaxmetrics as jm
    >>> loss = metric_loss(jm.macro(jm.f1))
    >>> logits = [[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]]
    >>> loss(logits, [0, 1, 1]).round(4)
    np.float64(0.3388)
    >>> jax.grad(loss)(jnp.array(logits), jnp.array([0, 1, 1])).shape
    (3, 2)
    """
    expected = "metric, a function of counts, such as jaxmetrics.macro(jaxmetrics.f1)"
    return applied(_metric_loss, metric, expected)


def _metric_loss(
    metric: Metric,
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    z = as_real(as_rows(logits, "logits"), "logits")
    if z.ndim < 2 or z.shape[-1] == 0:
        raise ValueError(f"logits must have shape (..., n, K), got {z.shape}.")
    examples = _examples(
        z, "logits without K", labels, sample_weight, where, num_classes=z.shape[-1]
    )
    ids, _, weight, mask, _ = examples
    refuse_distributions(z, "logits", mask)
    probs = _softmax(examples)
    return 1 - metric(soft_confusion_matrix(ids, probs, sample_weight=weight, where=mask))


@compiled
def _softmax(examples: Examples) -> Array:
    """Compute softmax for the examples that count; it is uniform for others.

    Where the greatest logit is infinite, those equal to it share the probability, with gradient 0.
    """
    z = examples.values
    examples = examples._replace(ids=valid_ids(examples.ids, size=z.shape[-1]))
    counts = examples.amounts != 0
    z = xp.where(counts[..., None], z, 0)
    greatest = z.max(-1, keepdims=True)
    z_of_infinite = xp.where(z == greatest, 0, xp.where(xp.isnan(greatest), xp.nan, -xp.inf))
    return special.softmax(xp.where(xp.isfinite(greatest), z, z_of_infinite), axis=-1)


def pairwise_auc_loss(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    surrogate: Literal["logistic", "hinge", "squared_hinge"] = "logistic",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Average a convex bound on the disorder of pairs: 1 - AUC made differentiable.

    With d = z_i - z_j of each positive i and negative j, the surrogate "logistic" is
    `ln(1 + e^-d)`, "hinge" `max(0, 1 - d)`, "squared_hinge" its square; an infinite logit counts as
    one of 2e15 (in float64 1e123). Time and memory grow with n^2. Gao and Zhou (2015), IJCAI.

    Args:
        logits: real scores, `(..., n)`.
        labels: 0 or 1 (or bool).
        sample_weight: the weight of a pair is the product of its two.

    Returns:
        `(...)`, >= 0; 0 without both classes.

    >>> pairwise_auc_loss([2.0, 0.0, 1.0], [1, 0, 0]).round(4)  # (ln(1 + e^-2) + ln(1 + e^-1)) / 2
    np.float64(0.2201)
    """
    check_option(surrogate, "surrogate", tuple(_SURROGATES))
    z = as_real(logits, "logits")
    examples = _examples(z, "logits", labels, sample_weight, where)
    check_binary(as_array(labels, "labels"), "labels", examples.mask)
    return _pairwise_auc_loss(examples, surrogate=surrogate)


def _hinge(d: Array) -> Array:
    """Compute `max(0, 1 - d)`, with slope 0 at d = 1."""
    return xp.where(d >= 1, 0, 1 - d)


_SURROGATES: dict[str, Callable[[Array], Array]] = {
    "logistic": lambda d: xp.logaddexp(-d, 0.0),
    "hinge": _hinge,
    "squared_hinge": lambda d: _hinge(d) ** 2,
}


@compiled
def _pairwise_auc_loss(examples: Examples, *, surrogate: str) -> Array:
    largest = float(xp.finfo(examples.values.dtype).max) ** 0.4  # its square is finite, and a sum
    z = xp.clip(examples.values, -largest, largest)
    positive, negative = (
        _normalized(_weights(examples, examples.ids == label)) for label in (1, 0)
    )
    pair_weights = positive[..., :, None] * negative[..., None, :]
    d = xp.where(pair_weights != 0, z[..., :, None] - z[..., None, :], 0)
    return (pair_weights * _SURROGATES[surrogate](d)).sum((-2, -1))


def _normalized(weight: Array) -> Array:
    """Divide weights of any size by their sum; all 0 stay 0."""
    relative = divide(weight, xp.abs(weight).max(-1, keepdims=True))
    return divide(relative, relative.sum(-1, keepdims=True))


def soft_calibration_error(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    num_bins: int = 15,
    temperature: float = 0.01,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the root mean square calibration error with soft bins, which has gradients.

    `sqrt(sum_b w_b (mean p_b - mean y_b)^2)`, w_b the share of bin b. Each probability belongs to
    all bins, to the shares of `softmax(-(p - c)^2 / temperature)` over their centres c. Karandikar
    et al. (2021), NeurIPS, section 4. As the temperature falls it becomes
    `calibration_error(..., norm="l2")`. Added to a proper loss it favours calibration; alone it is
    0 for a constant, the frequency.

    Args:
        probs: the probability of class 1, or that of the predicted class, `(..., n)`.
        labels: 0 or 1 (or bool): whether it came true.
        num_bins: B, of equal width in [0, 1].
        temperature: a Python number > 0, in units of squared probability.

    Returns:
        `(...)`, in [0, 1]; 0 without examples, NaN if one has a probability outside of [0, 1]. Its
        gradient is 0 where it is 0.

    >>> soft_calibration_error([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0]).round(2)
    np.float64(0.29)
    """
    heat = as_number(temperature, "temperature", above=1e-30)
    p = as_real(probs, "probs")
    bins = check_samples(num_bins, "num_bins")
    examples = _examples(p, "probs", labels, sample_weight, where)
    return _soft_calibration_error(examples, heat, num_bins=bins)


@compiled
def _soft_calibration_error(examples: Examples, temperature: float, *, num_bins: int) -> Array:
    ids, p, *_ = examples
    weight = _weights(examples, (ids == 0) | (ids == 1))
    p = xp.where(weight != 0, xp.where(is_probability(p), p, xp.nan), 0)
    centres = (np.arange(num_bins, dtype=p.dtype) + 0.5) / num_bins
    membership = special.softmax(-((p[..., None] - centres) ** 2) / temperature, axis=-1)
    membership = weight[..., None] * membership
    size, sum_of_gaps = membership.sum(-2), (membership * (p - ids)[..., None]).sum(-2)
    return safe_sqrt(divide((divide(sum_of_gaps, size) ** 2 * size).sum(-1), size.sum(-1)))


def _weights(examples: Examples, keep: Array) -> Array:
    """Broadcast the weights of examples `(..., n)`, 0 where not to keep."""
    _, values, weight, mask, _ = examples
    shape = np.broadcast_shapes(*(x.shape for x in (values, keep, weight, mask) if x is not None))
    keep = xp.broadcast_to(keep if mask is None else keep & mask, shape)
    return xp.where(keep, 1 if weight is None else weight, xp.zeros_like(values, shape=shape))


def _examples(
    values: Array,
    name: str,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    *,
    num_classes: int | None = None,
) -> Examples:
    """Check examples with the values named: one for each, or for each of its K classes."""
    shape, size = (values.shape, 2) if num_classes is None else (values.shape[:-1], num_classes)
    mask = as_mask(where)
    given = as_array(labels, "labels")
    weight = None if sample_weight is None else as_real(sample_weight, "sample_weight")
    check_examples({name: shape} | shapes_of(labels=given, sample_weight=weight, where=mask))
    ids = as_class_ids(given, "labels", size, mask)
    return Examples(ids, values, None if weight is None else as_weights(weight, mask), mask)
