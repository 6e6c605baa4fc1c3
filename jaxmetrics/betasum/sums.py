"""From counts to the parameters of betas, and their sum on a grid."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._arrays import ArrayLike, as_counts, as_float, as_prior, check_size, promoting
from jaxmetrics.betasum.averages import BetaAverage

__all__ = ["Convolution", "beta_sum_cdf", "beta_sum_pdf", "convolve_betas", "get_beta_parameters"]


@promoting
def get_beta_parameters(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> jax.Array:
    """The parameters of each class's accuracy A_i ~ Beta(alpha + C_ii, beta + m_i - C_ii), m_i the examples of class i.

    Args:
        counts: `(..., K, K)`, row = true class.
        prior: alpha = beta, a number (1 = flat, 0.5 = Jeffreys); or `(2,)`: alpha, beta; or `(K, 2)`: a row per class.

    Returns:
        `(..., K, 2)`; NaN for a class with a negative or NaN count, or with a prior below 0.05 that jit hides.

    Raises:
        ValueError: counts that are not square, a prior of another shape, or one that is known to be below 0.05.

    >>> get_beta_parameters(jnp.array([[90, 10], [5, 95]]))
    Array([[91., 11.],
           [96.,  6.]], dtype=float32)
    """
    c = as_counts(counts)
    c = jnp.where(c >= 0, c, jnp.nan)
    right = jnp.diagonal(c, axis1=-2, axis2=-1)
    wrong = jnp.where(jnp.eye(c.shape[-1], dtype=bool), 0, c).sum(-1) + 0 * right
    return jnp.stack([right, wrong], -1) + as_prior(prior, c.shape[-1])


class Convolution(NamedTuple):
    """The sum of k betas on equally spaced points x over the part of [0, k] where it lies: arrays `(..., num_points)`."""

    x: jax.Array
    pdf: jax.Array
    cdf: jax.Array


@promoting
def convolve_betas(parameters: ArrayLike, *, num_points: int | None = None) -> Convolution:
    """The density and cdf of `A_1 + ... + A_k`, A_i ~ Beta(alpha_i, beta_i), on `num_points` (1025) points.

    The points lie where all but 2e-16 (1e-7 with 32 bits) of the mass on either side is, at 1e9 examples as at 10.

    Args:
        parameters: `(..., k, 2)`, a row (alpha_i, beta_i) > 0 per class; as for `BetaAverage`.

    >>> x, pdf, cdf = convolve_betas(jnp.array([[1., 1.], [1., 1.]]), num_points=5)
    >>> (x[1:4] * 100).round(), (pdf[1:4] * 100).round()
    (Array([ 50., 100., 150.], dtype=float32), Array([ 50., 100.,  50.], dtype=float32))
    """
    n = check_size(1025 if num_points is None else num_points, "num_points")
    average = BetaAverage(parameters)
    tail = jnp.finfo(average.parameters.dtype).eps
    tails = jnp.asarray([tail, 1 - tail], average.parameters.dtype)
    low, high = average.ppf(tails.reshape(2, *(1,) * len(average.shape)))
    x = jnp.linspace(low, high, n)
    k = average.parameters.shape[-2]
    return Convolution(*(jnp.moveaxis(v, 0, -1) for v in (k * x, average.pdf(x) / k, average.cdf(x))))


@promoting
def beta_sum_pdf(x: ArrayLike, parameters: ArrayLike) -> jax.Array:
    """The density of `A_1 + ... + A_k` at x: `BetaAverage(parameters).pdf(x / k) / k`.

    >>> beta_sum_pdf(jnp.array([0.5, 0.75]), jnp.ones((2, 2))).round(3).tolist()
    [0.5, 0.75]
    """
    average = BetaAverage(parameters)
    k = average.parameters.shape[-2]
    return average.pdf(as_float(x, "x") / k) / k


@promoting
def beta_sum_cdf(x: ArrayLike, parameters: ArrayLike) -> jax.Array:
    """`P(A_1 + ... + A_k <= x)`: `BetaAverage(parameters).cdf(x / k)`.

    >>> beta_sum_cdf(jnp.array([0.5, 1.0]), jnp.ones((2, 2))).round(4).tolist()
    [0.125, 0.5]
    """
    average = BetaAverage(parameters)
    return average.cdf(as_float(x, "x") / average.parameters.shape[-2])
