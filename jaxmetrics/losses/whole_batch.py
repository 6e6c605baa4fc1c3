"""Losses of a whole batch, which are not means over examples: `(..., n)` to `(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from jaxmetrics._applied import applied
from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._examples import (
    NUMBERS,
    Examples,
    binary_examples,
    class_examples,
    refuse_distributions,
)
from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_number,
    check_option,
    check_samples,
)
from jaxmetrics.counts import soft_confusion_matrix
from jaxmetrics.scoring.rows import is_probability, weights_of

__all__ = ["metric_loss", "pairwise_auc_loss", "soft_calibration_error"]

Metric = Callable[[Array], Array]


def metric_loss(metric: Metric) -> Callable[..., Array]:
    """Turn any smooth metric of a confusion matrix into a loss, `1 - metric(soft counts)`.

    The soft confusion matrix counts each example as each class with the probability of the class.
    Batches must be large enough to contain the classes that the metric depends on: the mean loss
    over batches is not the loss of the whole.

    Args:
        metric: a function of counts `(..., K, K)`, such as `macro(f1)`, `balanced_accuracy`,
            `matthews_corrcoef`, `macro(jaccard)`, or your own.

    Returns:
        A function of `logits` `(..., n, K)` and `labels` `(..., n)`, with `sample_weight` and
        `where` `(..., n)`, that returns the loss `(...)`. A negative label drops its example; so
        does a label beyond K under jit.

    Raises:
        TypeError: `metric` is not a function; when called, the errors of `soft_confusion_matrix`.

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
    given = labels, logits, sample_weight, where, NUMBERS
    examples = class_examples(*given, name="logits", truth_name="labels")
    refuse_distributions(examples.values, "logits", examples.mask)
    options = {"sample_weight": examples.weights, "where": examples.mask}
    return 1 - metric(soft_confusion_matrix(examples.ids, _softmax(examples), **options))


@compiled
def _softmax(examples: Examples) -> Array:
    """Compute softmax for the examples that count; uniform for others.

    Where the greatest logit is infinite, those equal to it share the probability, with gradient 0.
    """
    z = xp.where(examples.amounts[..., None] != 0, examples.values, 0)
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
    """Compute the pairwise AUC loss, a differentiable convex bound on 1 - AUC.

    With d = z_i - z_j for each positive i and negative j, the surrogate "logistic" is
    `ln(1 + e^-d)`, "hinge" `max(0, 1 - d)`, "squared_hinge" its square; an infinite logit counts as
    2e15 (in float64 1e123). Time and memory grow with n^2. Gao and Zhou (2015), IJCAI.

    Args:
        logits: real scores z, `(..., n)`.
        labels: 0 or 1 (or bool), `(..., n)`; a negative label drops its example.
        surrogate: `"logistic"`, `"hinge"` or `"squared_hinge"`.
        sample_weight, where: `(..., n)`; the weight of a pair is the product of its two weights.

    Returns:
        Losses `(...)`, >= 0; 0 without both classes.

    Raises:
        TypeError: labels that are not integers.
        ValueError: shapes that do not go together, an unknown surrogate.

    >>> pairwise_auc_loss([2.0, 0.0, 1.0], [1, 0, 0]).round(4)  # (ln(1 + e^-2) + ln(1 + e^-1)) / 2
    np.float64(0.2201)
    """
    check_option(surrogate, "surrogate", tuple(_SURROGATES))
    given = labels, logits, sample_weight, where, NUMBERS
    examples = binary_examples(*given, name="logits", truth_name="labels")
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
    z, ids, amounts = examples.values, examples.ids, examples.amounts
    largest = float(xp.finfo(z.dtype).max) ** 0.4  # its square, and a sum of squares, is finite
    z = xp.clip(z, -largest, largest)
    positive, negative = (
        _normalized(xp.where(ids == label, amounts, xp.zeros_like(z))) for label in (1, 0)
    )
    pair_weights = positive[..., :, None] * negative[..., None, :]
    d = xp.where(pair_weights != 0, z[..., :, None] - z[..., None, :], 0)
    return (pair_weights * _SURROGATES[surrogate](d)).sum((-2, -1))


def _normalized(weight: Array) -> Array:
    """Divide weights by their sum; if all are 0, they stay 0."""
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
    """Compute a differentiable root mean square calibration error, with soft bins.

    `sqrt(sum_b w_b (mean p_b - mean y_b)^2)`, w_b the share of bin b. Each probability belongs to
    all bins, with shares `softmax(-(p - c)^2 / temperature)` over their centres c. Karandikar et
    al. (2021), NeurIPS, section 4. As the temperature decreases it becomes
    `calibration_error(..., norm="l2")`. Add it to a proper loss to favour calibration; alone, a
    constant probability equal to the frequency makes it 0.

    Args:
        probs: the probability of class 1, or of the predicted class, `(..., n)`.
        labels: 0 or 1 (or bool), `(..., n)`: whether the event occurred; a negative label drops its
            example.
        num_bins: number of bins B, of equal width in [0, 1].
        temperature: a Python number > 0, in units of squared probability.
        sample_weight, where: weight of each example, and False to leave it out, `(..., n)`.

    Returns:
        Errors `(...)`, in [0, 1]; 0 without examples, NaN for a probability outside of [0, 1]. At 0
        its gradient is 0.

    Raises:
        TypeError: labels that are not integers.
        ValueError: shapes that do not go together, a temperature that is not positive.

    >>> soft_calibration_error([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0]).round(2)
    np.float64(0.29)
    """
    heat = as_number(temperature, "temperature", above=1e-30)
    bins = check_samples(num_bins, "num_bins")
    given = labels, probs, sample_weight, where, NUMBERS
    examples = binary_examples(*given, name="probs", truth_name="labels")
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
