"""Counts -> beliefs: posteriors of class accuracies and of their average, and of the cell probabilities themselves.

A rate of s successes in n trials under the prior Beta(alpha, beta) has the posterior Beta(alpha + s, beta + n - s). `prior` is
alpha = beta (1 = flat, 0.5 = Jeffreys), a pair (alpha, beta), or, where each class has a rate, a row (alpha, beta) for each.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from jaxmetrics import _betas, _replicates
from jaxmetrics._arrays import ArrayLike, as_counts, as_float, as_prior, check_size
from jaxmetrics._backends import Array, compiled, xp
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics.betasum import BetaAverage, get_beta_parameters

__all__ = [
    "accuracy_posterior",
    "balanced_accuracy_expected",
    "balanced_accuracy_posterior",
    "beta_cdf",
    "beta_pdf",
    "beta_ppf",
    "posterior_counts",
    "precision_posterior",
    "recall_posterior",
]


def balanced_accuracy_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """The posterior of balanced accuracy, the average of the accuracies A_i ~ Beta(alpha + C_ii, beta + m_i - C_ii).

    All classes count, those without examples with their prior: this is where it differs from `balanced_accuracy`, which runs
    over the classes that occur. Brodersen et al. (2010), ICPR; Carrillo, Brodersen and Castellanos (2014), ROBOT 2013.

    The classes are independent under it, and a prior of 1 is worth two examples of each. So a classifier that always gives the
    same answer is not held to be exactly at chance: a rare class leaves room for a recall above 0, and `sf(1 / K)` may be 0.9.

    Args:
        counts: `(..., K, K)`, row = true class.
        prior: a number, `(alpha, beta)`, or `(K, 2)`.

    Returns:
        `BetaAverage` with `.mean`, `.cdf(x)`, `.ppf(q)`, `.interval(level)` and so on, of shape `(...)`. NaN throughout for a
        matrix with a negative or NaN count.

    Raises:
        ValueError: counts that are not square, a prior below 0.05.

    >>> posterior = balanced_accuracy_posterior([[90, 10], [5, 95]])
    >>> posterior.mean, posterior.interval(0.95)
    (np.float64(0.91667), (np.float64(0.8755), np.float64(0.9503)))
    """
    return BetaAverage(get_beta_parameters(counts, prior=prior))


def balanced_accuracy_expected(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> Array:
    """The posterior mean of balanced accuracy, `sum_i (alpha + C_ii) / (alpha + beta + m_i) / K`; no convolution is needed.

    >>> balanced_accuracy_expected([[90, 10], [5, 95]])
    np.float64(0.91667)
    """
    return _mean_of_means(get_beta_parameters(counts, prior=prior))


@compiled
def _mean_of_means(parameters: Array) -> Array:
    return (parameters[..., 0] / parameters.sum(-1)).mean(-1)


def recall_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """The posteriors of each class's recall, `(..., K)` independent betas with the methods of `BetaAverage`.

    >>> recall_posterior([[90, 10], [5, 95]]).mean.tolist()
    [0.8922, 0.9412]
    """
    return BetaAverage(get_beta_parameters(counts, prior=prior)[..., None, :])


def precision_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """The posteriors of each class's precision: C_ii of the examples predicted as i, `(..., K)` betas.

    >>> precision_posterior([[90, 10], [5, 95]]).mean.tolist()
    [0.9381, 0.8972]
    """
    return recall_posterior(xp.swapaxes(as_counts(counts), -1, -2), prior=prior)


def accuracy_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """The posterior of the accuracy, Beta(alpha + right, beta + wrong), of shape `(...)`; `prior` is one for all classes.

    >>> accuracy_posterior([[90, 10], [5, 95]]).interval(0.95)
    (np.float64(0.8799), np.float64(0.9538))
    """
    return BetaAverage(_right_and_wrong(as_counts(counts), as_prior(prior, 1)))


@compiled
def _right_and_wrong(counts: Array, prior: Array) -> Array:
    c = xp.where((counts >= 0).all((-2, -1), keepdims=True), counts, xp.nan)
    right = xp.diagonal(c, axis1=-2, axis2=-1).sum(-1)
    wrong = xp.where(np.eye(c.shape[-1], dtype=bool), 0, c).sum((-2, -1)) + 0 * right
    return xp.stack([right, wrong], -1)[..., None, :] + prior


def posterior_counts(
    key: KeyLike,
    counts: ArrayLike,
    num_samples: int,
    *,
    prior: ArrayLike = 1.0,
    prevalence: ArrayLike | Literal["inferred", "fixed"] = "inferred",
) -> Array:
    """Draws of the cell probabilities from their posterior, Dirichlet(a_ij + C_ij).

    They are used as counts: `jax.vmap(metric)` of them, or `metric` itself, draws from the posterior of the metric. The
    matrices of a batch share their random numbers, so that each draws the same as alone.

    Args:
        key: a JAX key, an int seed or, for counts on the host, a NumPy Generator.
        counts: `(..., K, K)`.
        num_samples: S.
        prior: `a_ii = alpha` for the right cell of a row and `a_ij = beta / (K - 1)` for each wrong one, which makes the recall
            of each class Beta(alpha + C_ii, beta + m_i - C_ii), whatever K is. `(1, K - 1)` is flat on all cells, which makes
            wrong cells that nobody saw too probable.
        prevalence: `"inferred"`: one Dirichlet on all cells. Else one on each row, times the share of the class: that of the
            counts (`"fixed"`), or `(K,)`, known from elsewhere.

    Returns:
        `(S, ..., K, K)`, each matrix sums to 1; NaN for a matrix with a negative or NaN count.

    Raises:
        ValueError: counts that are not square, a prior of another shape or below 0.05, a prevalence that does not sum to 1.

    >>> draws = posterior_counts(0, [[90, 10], [5, 95]], 1000)
    >>> draws.shape
    (1000, 2, 2)
    """
    c = as_counts(counts)
    k, size = c.shape[-1], check_size(num_samples, "num_samples")
    given = as_prior(prior, k), _replicates.as_prevalence(prevalence, k)
    return _posterior_draws(*place(key, c, *given), size=size)


@compiled
def _posterior_draws(key: Key, counts: Array, prior: Array, prevalence: Array | None, *, size: int) -> Array:
    c = xp.where((counts >= 0).all((-2, -1), keepdims=True), counts, xp.nan)
    sampler = _replicates.posterior(prior, prevalence)
    return _replicates.evaluate(sampler, lambda cells: cells, key, c, size=size, numbers=c.shape[-1] ** 2)


def _beta_arguments(x: ArrayLike, a: ArrayLike, b: ArrayLike, name: str) -> tuple[Array, ...]:
    """The three, broadcast, and where the parameters are possible; elsewhere they are 1."""
    x, a, b = xp.broadcast_arrays(as_float(x, name), as_float(a, "a"), as_float(b, "b"))
    valid = (a > 0) & (b > 0) & (a < xp.inf) & (b < xp.inf)
    return x, xp.where(valid, a, 1), xp.where(valid, b, 1), valid


@compiled
def beta_pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """The density of Beta(a, b), `x^(a-1) (1-x)^(b-1) / B(a, b)`; 0 outside of [0, 1], NaN for parameters not above 0.

    >>> beta_pdf(0.5, 2, 2)
    np.float64(1.5)
    """
    z, a, b, valid = _beta_arguments(x, a, b, "x")
    return xp.where(valid, _betas.pdf(z, a, b), xp.nan)


@compiled
def beta_cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """`P(X <= x)` for X ~ Beta(a, b), the regularised incomplete beta function, with gradients by x, a and b.

    Exact to 1e-12 for a, b from 0.1 to 1e9; with 32 bits to 1e-6 and what the last digit of x makes, `pdf(x) ulp(x)`: 0.003
    for 1e9 examples. By quadrature, see `_betas`.

    >>> beta_cdf([0.25, 0.5], 2, 2).tolist()
    [0.15625, 0.5]

    >>> import jax
    >>> float(jax.grad(beta_cdf, argnums=1)(0.5, 2.0, 2.0))
    -0.22157
    """
    z, a, b, valid = _beta_arguments(x, a, b, "x")
    return xp.where(valid & ~xp.isnan(z), _betas.cdf(z, a, b), xp.nan)


@compiled
def beta_ppf(q: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """The quantile of Beta(a, b), the inverse of `beta_cdf` in x, with gradients by q, a and b.

    Quantiles of q nearer to 0 or 1 than 1e-16 (1e-7 with 32 bits) are those of the end of the window that is looked at.
    NaN for q outside of [0, 1].

    >>> beta_ppf([0.025, 0.975], 91, 11).tolist()
    [0.8254, 0.9444]
    """
    z, a, b, valid = _beta_arguments(q, a, b, "q")
    possible = (z >= 0) & (z <= 1)
    return xp.where(valid & possible, _betas.ppf(xp.where(possible, z, 0.5), a, b), xp.nan)
