"""Bayesian posteriors of recalls, of balanced accuracy, and of cell probabilities, from counts.

A rate with s successes in n trials and the prior Beta(alpha, beta) has the posterior Beta(alpha +
s, beta + n - s). `prior` is alpha = beta (1 = flat, 0.5 = Jeffreys), a pair (alpha, beta), or, for
one rate per class, a row (alpha, beta) per class.
"""

from __future__ import annotations

from typing import Literal

from jaxmetrics._arithmetic import divide
from jaxmetrics._cell_sums import diagonal, off_diagonal
from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike, as_counts, check_cells, check_samples
from jaxmetrics.betas import BetaAverage, get_beta_parameters
from jaxmetrics.betas.parameters import as_prior, parameters_of
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.samples import cell_prior

__all__ = [
    "accuracy_posterior",
    "balanced_accuracy_expected",
    "balanced_accuracy_posterior",
    "posterior_counts",
    "precision_posterior",
    "recall_posterior",
]


def balanced_accuracy_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of balanced accuracy, the mean of K independent betas.

    The recalls are `A_i ~ Beta(alpha + C_ii, beta + m_i - C_ii)`. All classes count (classes
    without examples with their prior); `balanced_accuracy` averages only over the classes that
    occur. Brodersen et al. (2010), ICPR; Carrillo, Brodersen and Castellanos (2014), ROBOT 2013.

    A prior of 1 is worth two examples of each class. So the posterior of a constant classifier is
    not exactly at chance: the recall of a rare class may be above 0, and `sf(1 / K)` may be 0.9.
    Its credible interval is not a confidence interval: for many classes with recalls near 1 it
    misses the true value. With Jeffreys' prior, 0.5, its coverage is better.

    Args:
        counts: `(..., K, K)`, row = true class.
        prior: a number, `(alpha, beta)`, or `(K, 2)`.

    Returns:
        `BetaAverage` of shape `(...)` with `.mean`, `.cdf(x)`, `.ppf(q)`, `.interval(level)` and so
        on. All NaN for a matrix with a negative or NaN count.

    Raises:
        ValueError: counts that are not square; a prior below 1/2, or below 0.2 for two classes, for
            which the convolution is not exact where poles of the classes' densities meet.

    >>> posterior = balanced_accuracy_posterior([[90, 10], [5, 95]])
    >>> posterior.mean, posterior.interval(0.95)
    (np.float64(0.91667), (np.float64(0.8755), np.float64(0.9503)))
    """
    c = as_counts(counts)
    k = c.shape[-1]
    return BetaAverage(parameters_of(c, as_prior(prior, k, averaged=k)))


def balanced_accuracy_expected(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> Array:
    """Compute the posterior mean of balanced accuracy, without any convolution.

    It is `sum_i (alpha + C_ii) / (alpha + beta + m_i) / K`, `(...)`, for `counts` `(..., K, K)`.
    `prior` is a number, `(alpha, beta)`, or `(K, 2)`, at least 0.05.

    >>> balanced_accuracy_expected([[90, 10], [5, 95]])
    np.float64(0.91667)
    """
    return _mean_of_means(get_beta_parameters(counts, prior=prior))


@compiled
def _mean_of_means(parameters: Array) -> Array:
    return (parameters[..., 0] / parameters.sum(-1)).mean(-1)


def recall_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of each class's recall, `(..., K)` independent betas.

    They have the methods of `BetaAverage`. `counts` are `(..., K, K)`; `prior` is a number,
    `(alpha, beta)`, or `(K, 2)`, at least 0.05.

    >>> recall_posterior([[90, 10], [5, 95]]).mean.tolist()
    [0.8922, 0.9412]
    """
    return BetaAverage(get_beta_parameters(counts, prior=prior)[..., None, :])


def precision_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of each class's precision, `(..., K)` betas.

    The rate is C_ii successes among the examples predicted as i. `counts` are `(..., K, K)`;
    `prior` is a number, `(alpha, beta)`, or `(K, 2)`, at least 0.05.

    >>> precision_posterior([[90, 10], [5, 95]]).mean.tolist()
    [0.9381, 0.8972]
    """
    return recall_posterior(xp.swapaxes(as_counts(counts), -1, -2), prior=prior)


def accuracy_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of accuracy, Beta(alpha + correct, beta + wrong), `(...)`.

    `counts` are `(..., K, K)`; `prior` is a number or (alpha, beta), at least 0.05.

    >>> accuracy_posterior([[90, 10], [5, 95]]).interval(0.95)
    (np.float64(0.8799), np.float64(0.9538))
    """
    return BetaAverage(_right_and_wrong(as_counts(counts), as_prior(prior, 1)))


@compiled
def _right_and_wrong(counts: Array, prior: Array) -> Array:
    c = xp.where((counts >= 0).all((-2, -1), keepdims=True), counts, xp.nan)
    right = diagonal(c).sum(-1)
    wrong = off_diagonal(c).sum((-2, -1)) + 0 * right
    return xp.stack([right, wrong], -1)[..., None, :] + prior


def posterior_counts(
    key: KeyLike,
    counts: ArrayLike,
    num_samples: int,
    *,
    prior: ArrayLike = 1.0,
    prevalence: ArrayLike | Literal["inferred", "fixed"] = "inferred",
) -> Array:
    """Draw confusion matrices of cell probabilities from their posterior, Dirichlet(a_ij + C_ij).

    Use them as counts: `jax.vmap(metric)` of them, or `metric` itself, draws from the posterior of
    the metric. The matrices of a batch share their random numbers, so that each gets the same draws
    as it would alone.

    Args:
        key: a JAX key, an int seed or, for NumPy counts, a NumPy Generator.
        counts: `(..., K, K)`.
        num_samples: number of draws S.
        prior: `a_ii = alpha` for the correct cell of a row and `a_ij = beta / (K - 1)` for each
            wrong one, which makes the recall of each class Beta(alpha + C_ii, beta + m_i - C_ii)
            for any K. `(1, K - 1)` is flat on all cells, and makes wrong cells that were never
            observed too probable.
        prevalence: `"inferred"`: one Dirichlet distribution of all cells. Otherwise one per row,
            times the share of the class: as in the counts (`"fixed"`), or known shares `(K,)`.

    Returns:
        Matrices `(S, ..., K, K)`; each sums to 1. NaN for a matrix with a NaN count, or with a
        negative count that jit hides.

    Raises:
        ValueError: counts that are not square, a prior of another shape or below 0.05, a prevalence
            that does not sum to 1.

    >>> draws = posterior_counts(0, [[90, 10], [5, 95]], 1000)
    >>> draws.shape
    (1000, 2, 2)
    """
    c = as_counts(counts)
    k, size = c.shape[-1], check_samples(num_samples, "num_samples")
    check_cells((size, *c.shape), "num_samples and counts")
    given = as_prior(prior, k), replicates.as_prevalence(prevalence, k)
    return _posterior_draws(*place(key, c, *given), size=size)


@compiled
def _posterior_draws(
    key: Key, counts: Array, prior: Array, prevalence: Array | None, *, size: int
) -> Array:
    if prevalence is None:
        return replicates.of_tables(
            replicates.dirichlet, key, counts, size, prior=cell_prior(prior)
        )
    known: Array = prevalence

    def shares(table: Array) -> Array:
        observed = divide(table.sum(-1), table.sum())
        return xp.where(xp.isnan(known), observed, known)[:, None]

    rows = replicates.dirichlet_rows
    return replicates.of_tables(rows, key, counts, size, prior=cell_prior(prior), scale=shares)
