"""Bayesian posterior distributions of recall, precision, accuracy and balanced accuracy.

A rate with s successes in n trials and the prior Beta(alpha, beta) has the posterior
`Beta(alpha + s, beta + n - s)`. The argument `prior` is a pair (alpha, beta), or one number if
alpha = beta: 1 is the flat prior, 0.5 is Jeffreys' prior. For a rate per class, it may also be an
array with a row (alpha, beta) for each class.

Counts are numbers of examples. Fractions, such as shares of rows or sums of weights, raise
ValueError, and give NaN under jit.
"""

from __future__ import annotations

from typing import Literal

from jaxmetrics._arguments.keys import Key, KeyLike, key_first, place
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_counts,
    as_float,
    check_cells,
    check_option,
    check_samples,
)
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, is_known, xp
from jaxmetrics._sums.cell_sums import diagonal, off_diagonal
from jaxmetrics.betas import BetaAverage, get_beta_parameters
from jaxmetrics.betas.parameters import as_prior, parameters_of
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.checks import check_whole
from jaxmetrics.intervals.samples import cell_prior

__all__ = [
    "accuracy_posterior",
    "balanced_accuracy_expected",
    "balanced_accuracy_posterior",
    "posterior_counts",
    "precision_posterior",
    "recall_posterior",
]


@on_host_if_small
def balanced_accuracy_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of balanced accuracy.

    Balanced accuracy is the mean of K independent recalls
    `A_i ~ Beta(alpha + C_ii, beta + m_i - C_ii)`, where class i has m_i examples and Beta(alpha,
    beta) is the prior. If a class has no examples, its recall has the prior distribution. The
    function `balanced_accuracy` skips such a class. Sources: Brodersen et al. (2010), ICPR;
    Carrillo, Brodersen and Castellanos (2014), ROBOT 2013.

    The flat prior, 1, acts like two more examples of each class, one correct and one wrong. It
    raises low recalls of rare classes. If a classifier always predicts the same class, the
    posterior probability that balanced accuracy exceeds 1 / K, `sf(1 / K)`, may therefore be close
    to 1. The flat prior also lowers recalls near 1. If there are many such classes, the credible
    interval often misses the true value. Jeffreys' prior, `prior=0.5`, has a smaller effect in both
    cases.

    Args:
        counts: confusion matrix of shape `(..., K, K)`; rows are true classes.
        prior: a number (alpha = beta), a pair `(alpha, beta)`, or an array of K pairs.

    Returns:
        `BetaAverage` of shape `(...)`, with methods such as `.mean`, `.cdf(x)`, `.ppf(q)` and
        `.interval(level)`. Its results are NaN for a confusion matrix with NaN, and for a JAX array
        with a negative count.

    Raises:
        ValueError: if `counts` are not square, or if a number in `prior` is below 1/2, or below 0.2
            for two classes.

    >>> posterior = balanced_accuracy_posterior([[90, 10], [5, 95]])
    >>> posterior.mean, posterior.interval(0.95)
    (np.float64(0.91667), (np.float64(0.8755), np.float64(0.9503)))
    """
    c = check_whole(as_counts(counts))
    k = c.shape[-1]
    return BetaAverage(parameters_of(c, as_prior(prior, k, averaged=k)))


@on_host_if_small
def balanced_accuracy_expected(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> Array:
    """Compute the posterior mean of balanced accuracy, without computing the whole posterior.

    The formula is `sum_i (alpha + C_ii) / (alpha + beta + m_i) / K`, where class i has m_i
    examples. The result has shape `(...)` for confusion matrices `counts` of shape `(..., K, K)`.
    The `prior` of each recall is a number (alpha = beta), a pair `(alpha, beta)` or an array of K
    pairs. Alpha and beta must be at least 0.05.

    >>> balanced_accuracy_expected([[90, 10], [5, 95]])
    np.float64(0.91667)
    """
    return _mean_of_means(get_beta_parameters(check_whole(as_counts(counts)), prior=prior))


@compiled
def _mean_of_means(parameters: Array) -> Array:
    return (parameters[..., 0] / parameters.sum(-1)).mean(-1)


@on_host_if_small
def recall_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of the recall of each class, a beta distribution.

    Returns a `BetaAverage` of shape `(..., K)` for confusion matrices `counts` of shape
    `(..., K, K)`. The `prior` of each recall is a number (alpha = beta), a pair `(alpha, beta)` or
    an array of K pairs. Alpha and beta must be at least 0.05.

    >>> recall_posterior([[90, 10], [5, 95]]).mean.tolist()
    [0.8922, 0.9412]
    """
    return BetaAverage(
        get_beta_parameters(check_whole(as_counts(counts)), prior=prior)[..., None, :]
    )


@on_host_if_small
def precision_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of the precision of each class, a beta distribution.

    Returns a `BetaAverage` of shape `(..., K)` for confusion matrices `counts` of shape
    `(..., K, K)`. The `prior` of each precision is a number (alpha = beta), a pair `(alpha, beta)`
    or an array of K pairs. Alpha and beta must be at least 0.05.

    >>> precision_posterior([[90, 10], [5, 95]]).mean.tolist()
    [0.9381, 0.8972]
    """
    return recall_posterior(xp.swapaxes(as_counts(counts), -1, -2), prior=prior)


@on_host_if_small
def accuracy_posterior(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> BetaAverage:
    """Compute the posterior distribution of accuracy, Beta(alpha + correct, beta + wrong).

    Returns a `BetaAverage` of shape `(...)` for confusion matrices `counts` of shape `(..., K, K)`.
    The `prior` is a number (alpha = beta) or a pair `(alpha, beta)`. Alpha and beta must be at
    least 0.05.

    >>> accuracy_posterior([[90, 10], [5, 95]]).interval(0.95)
    (np.float64(0.8799), np.float64(0.9538))
    """
    return BetaAverage(_right_and_wrong(check_whole(as_counts(counts)), as_prior(prior, 1)))


@compiled
def _right_and_wrong(counts: Array, prior: Array) -> Array:
    c = xp.where((counts >= 0).all((-2, -1), keepdims=True), counts, xp.nan)
    right = diagonal(c).sum(-1)
    wrong = off_diagonal(c).sum((-2, -1)) + 0 * right
    return xp.stack([right, wrong], -1)[..., None, :] + prior


@key_first
def posterior_counts(
    key: KeyLike,
    counts: ArrayLike,
    num_samples: int,
    *,
    prior: ArrayLike = 1.0,
    prevalence: ArrayLike | Literal["inferred", "fixed"] = "inferred",
) -> Array:
    """Draw matrices of cell probabilities from their Dirichlet posterior, given a confusion matrix.

    The posterior is Dirichlet(a_ij + C_ij), where C_ij are the counts and a_ij are the parameters
    of the prior. To draw from the posterior of any metric, call the metric with the returned
    matrices. If the metric accepts only a single matrix `(K, K)`, use `jax.vmap(metric)`. Matrices
    of a batch may use the same random numbers: for their differences or means, pass one key each.

    Args:
        key: a JAX key, an int seed, or a NumPy Generator (only if counts are NumPy arrays).
        counts: confusion matrix of shape `(..., K, K)`.
        num_samples: number of draws S.
        prior: a number (alpha = beta) or a pair `(alpha, beta)`. The parameters are `a_ii = alpha`
            on the diagonal, and `a_ij = beta / (K - 1)` off the diagonal. The pair `(1, K - 1)`
            makes all a_ij equal to 1, but makes mistakes that were never observed too probable.
        prevalence: the shares of the true classes in each draw. `"inferred"` draws them, because
            all cells together have one Dirichlet distribution. `"fixed"` takes them from `counts`.
            An array `(K,)` of known shares must sum to 1. With fixed or known shares, each row has
            its own Dirichlet distribution.

    Returns:
        Matrices of shape `(S, ..., K, K)`, each of which sums to 1. They are NaN for a confusion
        matrix with NaN, and for a JAX array with a negative count.

    Raises:
        ValueError: if `counts` are not square, if `prior` has another shape or a number below 0.05,
            or if `prevalence` does not sum to 1.

    >>> draws = posterior_counts(0, [[90, 10], [5, 95]], 1000)
    >>> draws.shape
    (1000, 2, 2)
    """
    c = check_whole(as_counts(counts))
    k, size = c.shape[-1], check_samples(num_samples, "num_samples")
    check_cells((size, *c.shape), "num_samples and counts")
    parameters, shares = as_prior(prior, k), None
    if isinstance(prevalence, str):
        check_option(prevalence, "prevalence", ("inferred", "fixed"))
    else:
        shares = as_float(prevalence, "prevalence")
        if shares.shape != (k,):
            raise ValueError(
                f'prevalence must be "inferred", "fixed" or an array of shape (K,) = ({k},), got'
                f" an array of shape {shares.shape}."
            )
        if is_known(shares) and not ((shares >= 0).all() and abs(shares.sum() - 1) < 1e-3):
            raise ValueError(
                "prevalence must contain the shares of the classes, which must not be negative and"
                f" must sum to 1, got {prevalence!r}."
            )
    is_inferred = shares is None and prevalence == "inferred"
    arrays = place(key, c, parameters, shares)
    return _posterior_draws(*arrays, size=size, is_inferred=is_inferred)


@compiled
def _posterior_draws(
    key: Key, counts: Array, prior: Array, shares: Array | None, *, size: int, is_inferred: bool
) -> Array:
    def shares_of(table: Array) -> Array:
        known = divide(table.sum(-1), table.sum()) if shares is None else shares
        return known[:, None]

    sampler = replicates.dirichlet if is_inferred else replicates.dirichlet_rows
    scale = None if is_inferred else shares_of
    return replicates.of_tables(sampler, key, counts, size, prior=cell_prior(prior), scale=scale)
