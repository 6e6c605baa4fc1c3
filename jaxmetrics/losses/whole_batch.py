"""Losses that are defined for a whole batch and are not means of losses of examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from jaxmetrics._applied import applied
from jaxmetrics._arguments.example_arguments import (
    Examples,
    as_numbers,
    as_training_logits,
    binary_examples,
    class_examples,
)
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_number,
    check_option,
    check_samples,
)
from jaxmetrics._numerics.arithmetic import divide, safe_sqrt
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, special, xp
from jaxmetrics.counts import soft_confusion_matrix
from jaxmetrics.losses._softmax import refuse_torch_gradient
from jaxmetrics.scoring.rows import is_probability, weights_of

__all__ = ["metric_loss", "pairwise_auc_loss", "soft_calibration_error"]

Metric = Callable[[Array], Array]


def metric_loss(metric: Metric) -> Callable[..., Array]:
    """Turn a differentiable metric of a confusion matrix into a loss, `1 - metric(soft counts)`.

    In the soft counts, each example adds its predicted probabilities to the row of its true class,
    as in `soft_confusion_matrix`. Use large batches: the mean of the losses of small batches
    differs from the loss of all the data.

    Alone, this loss may lower the metric on held-out data. Add it to the mean of `cross_entropy`.
    `bench/metric_loss.py` trains with imbalanced classes. Compared with cross-entropy, macro F1
    changed by -0.013 ± 0.013 if this loss was used alone, by -0.002 ± 0.006 if it was used after
    cross-entropy, and by +0.006 ± 0.006 if it was added (95 % intervals).

    Args:
        metric: a differentiable function of counts `(..., K, K)`, such as `macro(f1)`,
            `balanced_accuracy` or `matthews_corrcoef`.

    Returns:
        A function of `logits` `(..., n, K)`, before the softmax, and `labels` `(..., n)`, with
        optional arguments `sample_weight` and `where`, both `(..., n)`. It returns one loss per
        batch, of shape `(...)`. Examples with a negative label are ignored. Labels of K or more
        raise ValueError in a NumPy array, and are ignored in a JAX array.

    Raises:
        TypeError: if `metric` is not a function. The returned function raises the same errors as
            `soft_confusion_matrix`.

    >>> import jax, jax.numpy as jnp, jaxmetrics as jm
    >>> loss = metric_loss(jm.macro(jm.f1))
    >>> logits = [[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]]
    >>> loss(logits, [0, 1, 1]).round(4)
    np.float64(0.3388)
    >>> jax.grad(loss)(jnp.array(logits), jnp.array([0, 1, 1])).shape
    (3, 2)
    """
    return applied(
        _metric_loss,
        metric,
        "metric, a function of counts, such as jaxmetrics.macro(jaxmetrics.f1)",
    )


def _metric_loss(
    metric: Metric,
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    refuse_torch_gradient(logits, "logits")
    examples = class_examples(
        labels,
        logits,
        sample_weight,
        where,
        as_training_logits,
        name="logits",
        truth_name="labels",
    )
    options = {"sample_weight": examples.weights, "where": examples.mask}
    return 1 - metric(soft_confusion_matrix(examples.ids, _softmax(examples), **options))


@compiled
def _softmax(examples: Examples) -> Array:
    """Compute softmax, and equal probabilities for ignored examples.

    If the greatest logit is infinite, all logits equal to it have the same probability, and the
    gradient is 0.
    """
    z = xp.where(examples.amounts[..., None] != 0, examples.values, 0)
    greatest = z.max(-1, keepdims=True)
    z_of_infinite = xp.where(z == greatest, 0, -xp.inf)
    return special.softmax(xp.where(xp.isinf(greatest), z_of_infinite, z), axis=-1)


def pairwise_auc_loss(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    surrogate: Literal["logistic", "hinge", "squared_hinge"] = "logistic",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the pairwise AUC loss, a convex loss to minimise in place of 1 - ROC AUC.

    The loss is the mean over all pairs of a positive example i and a negative example j. With the
    difference of their logits `d = z_i - z_j`, the loss of a pair is:

    - `"logistic"`: `ln(1 + e^-d)`,
    - `"hinge"`: `max(0, 1 - d)`,
    - `"squared_hinge"`: `max(0, 1 - d)^2`.

    Logits are clipped to `±max^0.4`, where max is the greatest float (±2.6e15 in float32, ±2.0e123
    in float64), so that infinite logits give a finite loss. Time and memory are proportional to
    n^2. Source: Gao and Zhou (2015), IJCAI.

    Args:
        logits: real scores z of shape `(..., n)`.
        labels: 0 or 1 (or bool), of shape `(..., n)`. Examples with a negative label are ignored.
        surrogate: `"logistic"`, `"hinge"` or `"squared_hinge"`.
        sample_weight: weights of the examples, of shape `(..., n)`. The weight of a pair is the
            product of the weights of its two examples.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        Losses >= 0, of shape `(...)`. If one of the two classes has no examples, the loss is 0.

    Raises:
        TypeError: if labels are not integers.
        ValueError: if shapes do not match or `surrogate` is unknown.

    >>> pairwise_auc_loss([2.0, 0.0, 1.0], [1, 0, 0]).round(4)  # (ln(1 + e^-2) + ln(1 + e^-1)) / 2
    np.float64(0.2201)
    """
    check_option(surrogate, "surrogate", tuple(_SURROGATES))
    refuse_torch_gradient(logits, "logits")
    examples = binary_examples(
        labels, logits, sample_weight, where, as_numbers, name="logits", truth_name="labels"
    )
    return _pairwise_auc_loss(examples, surrogate=surrogate)


def _hinge(d: Array) -> Array:
    """Compute `max(0, 1 - d)`, whose slope at d = 1 is 0."""
    return xp.where(d >= 1, 0, 1 - d)


_SURROGATES: dict[str, Callable[[Array], Array]] = {
    "logistic": lambda d: xp.logaddexp(-d, 0.0),
    "hinge": _hinge,
    "squared_hinge": lambda d: _hinge(d) ** 2,
}


@compiled
def _pairwise_auc_loss(examples: Examples, *, surrogate: str) -> Array:
    z, ids, amounts = examples.values, examples.ids, examples.amounts
    # Its square, and sums of its square, are finite.
    largest = float(xp.finfo(z.dtype).max) ** 0.4
    z = xp.clip(z, -largest, largest)

    def shares(label: int) -> Array:
        weights = xp.where(ids == label, amounts, xp.zeros_like(z))
        relative = divide(weights, xp.abs(weights).max(-1, keepdims=True, initial=0))
        return divide(relative, relative.sum(-1, keepdims=True))

    positive, negative = shares(1), shares(0)
    pair_weights = positive[..., :, None] * negative[..., None, :]
    d = xp.where(pair_weights != 0, z[..., :, None] - z[..., None, :], 0)
    return (pair_weights * _SURROGATES[surrogate](d)).sum((-2, -1))


def soft_calibration_error(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    num_bins: int = 15,
    temperature: float = 0.01,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute a differentiable root mean square calibration error with soft bins.

    The error is `sqrt(sum_b w_b (mean p_b - mean y_b)^2)`. Here w_b is the fraction of examples in
    bin b, and the means are the means of `probs` and `labels` in bin b. The bins are soft: an
    example with probability p belongs to each bin with weight `softmax(-(p - c)^2 / temperature)`,
    where c are the centres of the bins. Source: Karandikar et al. (2021), NeurIPS, section 4.

    If the temperature is small, the error is close to `calibration_error(..., norm="l2")`. Add the
    error to a loss such as cross-entropy. Alone it is not a useful loss: always predicting the
    frequency of class 1 has error 0.

    Args:
        probs: probabilities of class 1, or of the predicted class, of shape `(..., n)`.
        labels: 0 or 1 (or bool), of shape `(..., n)`. With probabilities of the predicted class, 1
            means that the prediction is correct. Examples with a negative label are ignored.
        num_bins: number of bins of equal width in [0, 1].
        temperature: a Python number > 0. If it is small, an example belongs almost only to the
            nearest bin.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        Errors in [0, 1], of shape `(...)`. The error is 0 if there are no examples, and NaN if a
        probability is not in [0, 1].

    Raises:
        TypeError: if labels are not integers.
        ValueError: if shapes do not match or `temperature` is not positive.

    >>> soft_calibration_error([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0]).round(2)
    np.float64(0.29)
    """
    heat = as_number(temperature, "temperature", above=1e-30)
    bins = check_samples(num_bins, "num_bins")
    refuse_torch_gradient(probs, "probs")
    examples = binary_examples(
        labels, probs, sample_weight, where, as_numbers, name="probs", truth_name="labels"
    )
    return _soft_calibration_error(examples, heat, num_bins=bins)


@compiled
def _soft_calibration_error(examples: Examples, temperature: float, *, num_bins: int) -> Array:
    p, ids, weight = examples.values, examples.ids, weights_of(examples)
    p = xp.where(weight != 0, xp.where(is_probability(p), p, xp.nan), 0)
    centres = (np.arange(num_bins, dtype=p.dtype) + 0.5) / num_bins
    membership = special.softmax(-((p[..., None] - centres) ** 2) / temperature, axis=-1)
    membership = weight[..., None] * membership
    size, sum_of_gaps = membership.sum(-2), (membership * (p - ids)[..., None]).sum(-2)
    return safe_sqrt(divide((divide(sum_of_gaps, size) ** 2 * size).sum(-1), size.sum(-1)))
