"""Temperature scaling: calibrate logits by dividing them by one number."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from jaxmetrics._arguments.example_arguments import (
    Examples,
    are_distributions,
    as_logits,
    class_examples,
)
from jaxmetrics._arguments.single import ArrayLike
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._numerics.roots import root
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, Arrays, custom_jvp, lax, special, xp
from jaxmetrics.scoring.rows import is_valid_logits, weights_of

__all__ = ["fit_temperature"]


def fit_temperature(
    y_true: ArrayLike,
    logits: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Fit the temperature T > 0 that minimises the log loss of `softmax(logits / T)`.

    Temperature scaling calibrates the probabilities of a trained classifier. T > 1 means that the
    logits were overconfident. Fit T on held-out examples, and evaluate it on other examples:
    intervals of losses and calibration errors treat T as known, so they lie too low on the examples
    on which T was fitted. T is differentiable with respect to the logits. Source: Guo et al.
    (2017), On calibration of modern neural networks, ICML, section 4.2.

    Args:
        y_true: class ids of shape `(..., n)`. Examples with a negative id are ignored.
        logits: logits of shape `(..., n, K)`. -inf means that the class is impossible.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        T of shape `(...)`. T is inf if no T gives a smaller loss than equal probabilities for all
        classes. T is 0 if in every example the true class has the greatest logit. T is NaN if in
        every example all logits are equal, or if the logit of a true class is -inf.

    >>> fit_temperature([0, 0, 0, 1], [[2.0, 0.0]] * 4)  # 2 / ln 3: class 0 then has p = 3/4
    np.float64(1.8204784)
    """
    return _temperature(
        class_examples(y_true, logits, sample_weight, where, as_logits, name="logits")
    )


class _Standardized(NamedTuple):
    """Standardised logits `u = (z - max z) / scale`, where the scale is the greatest margin.

    With these, the search for `beta = scale / T` does not depend on the scale of the logits, nor on
    a great negative number that masks a class, such as -1e30.
    """

    u: Array  # (..., n, K), at most 0, and 0 for ignored examples
    possible: Array  # (..., n, K), where z > -inf
    margin: Array  # (..., n), greatest u minus u of the true class
    weights: Array  # (..., n)
    scale: Array  # (...)


@compiled
def _temperature(examples: Examples) -> Array:
    weights, valid = weights_of(examples), is_valid_logits(examples.values)
    truth = examples.ids[..., None] == xp.arange(examples.values.shape[-1])
    truth_is_ruled_out = (truth & ~(examples.values > -xp.inf)).any(-1)
    is_invalid = ~valid | truth_is_ruled_out | xp.isnan(weights)
    some_are_invalid = ((weights != 0) & is_invalid).any(-1)
    logits = _standardized(examples, truth, weights, (weights != 0) & valid)
    beta = _best_beta(logits)
    temperature = xp.where(beta > 0, logits.scale / xp.where(beta > 0, beta, 1), xp.inf)
    # Special values if the slope has no root beta > 0; see the docstring of `fit_temperature`.
    equal_is_best = _slopes(logits, xp.zeros_like(logits.scale))[0] >= 0
    temperature = xp.where(equal_is_best, xp.inf, temperature)
    all_are_correct = (weights * logits.margin).sum(-1) == 0
    temperature = xp.where(all_are_correct, 0, temperature)
    undefined = (weights.sum(-1) == 0) | (logits.u == 0).all((-2, -1)) | some_are_invalid
    undefined |= (are_distributions(examples.values) | (weights == 0)).all(-1)
    return xp.where(undefined, xp.nan, temperature)


@custom_jvp
def _best_beta(logits: _Standardized) -> Array:
    """Find the root of the slope."""
    zero = xp.zeros_like(logits.scale)
    rounding = 8 * float(xp.finfo(zero.dtype).eps)
    return root(partial(_slopes, logits), zero, zero + xp.inf, zero, rtol=rounding)


@_best_beta.defjvp
def _best_beta_jvp(primals: tuple[_Standardized], tangents: tuple[_Standardized]) -> Arrays:
    """Differentiate the root by the implicit function theorem."""
    beta = _best_beta(*primals)
    _, by_logits = jax.jvp(lambda logits: _slopes(logits, beta)[0], primals, tangents)
    return beta, by_logits * divide(-xp.ones_like(beta), _slopes(*primals, beta)[1])


def _standardized(examples: Examples, truth: Array, weights: Array, counts: Array) -> _Standardized:
    z = xp.where(counts[..., None], examples.values, 0)
    possible = z > -xp.inf
    z = xp.where(possible, z, z.max(-1, keepdims=True))
    greatest = lax.stop_gradient(xp.where(possible, z, -xp.inf).max(-1, keepdims=True))
    centred = z - greatest
    margin = -xp.where(truth, centred, 0).sum(-1)
    scale = lax.stop_gradient(margin.max(-1, initial=0))
    divisor = xp.where(scale == 0, 1, scale)
    least = -(float(xp.finfo(centred.dtype).max) ** 0.45)  # the variance of u must not overflow
    u = xp.maximum(centred / divisor[..., None, None], least)
    return _Standardized(u, possible, margin / divisor[..., None], weights, scale)


def _slopes(logits: _Standardized, beta: Array) -> Arrays:
    """Return the first and second derivative of the mean log loss of `softmax(beta u)` by beta."""
    u, possible, margin, weights, _ = logits
    p = special.softmax(xp.where(possible, beta[..., None, None] * u, -xp.inf), axis=-1)
    mean = (p * u).sum(-1)
    variance = (p * (u - mean[..., None]) ** 2).sum(-1)
    total = weights.sum(-1)
    return (weights * (mean + margin)).sum(-1) / total, (weights * variance).sum(-1) / total
