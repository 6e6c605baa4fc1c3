"""Parameters of beta distributions: priors, and posteriors of recalls from counts."""

from __future__ import annotations

from jaxmetrics._arguments.single import ArrayLike, as_counts, as_float
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, is_known, xp
from jaxmetrics._sums.cell_sums import diagonal, off_diagonal

__all__ = ["get_beta_parameters"]


def smallest_parameter(k: int) -> float:
    """Return the smallest parameter for which averages of k beta variables were verified.

    If parameters are smaller, too much mass is in the poles of the densities, and results are not
    accurate. For example, if k = 6, the error of the cdf was 0.001 if parameters were 0.4, and the
    error was 0.9 if parameters were 0.25; if k = 2, the error was 0.0003 if parameters were 0.1.
    """
    return {1: 0.05, 2: 0.2}.get(k, 0.5)


def are_beta_parameters(parameters: Array, k: int) -> Array:
    """Return a mask of the parameters that are allowed for an average of k beta variables."""
    return (parameters >= smallest_parameter(k) * (1 - 1e-6)) & (parameters < xp.inf)


def as_prior(prior: ArrayLike, k: int, *, averaged: int = 1) -> Array:
    """Return `prior` as one row (alpha, beta) per class, `(k, 2)`.

    Invalid values raise ValueError, or become NaN under jit.
    """
    p = as_float(prior, "prior")
    if p.shape not in ((), (2,), (k, 2)):
        raise ValueError(
            f"prior must be a number, a pair (alpha, beta) or an array of shape (K, 2) = ({k}, 2),"
            f" got an array of shape {p.shape}."
        )
    possible = are_beta_parameters(p, averaged)
    if is_known(p) and not bool(possible.all()):
        least = smallest_parameter(averaged)
        average = f" to average {averaged} classes" if averaged > 1 else ""
        raise ValueError(
            f"prior must be finite and at least {least}{average}, got {prior!r}. prior=1 is the"
            " flat (uniform) prior, and prior=0.5 is Jeffreys' prior."
        )
    return xp.broadcast_to(xp.where(possible, p, xp.nan), (k, 2))


def get_beta_parameters(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> Array:
    """Return the parameters of the beta posterior of the recall of each class.

    The posterior of the recall of class i is `Beta(alpha + C_ii, beta + m_i - C_ii)`, where m_i is
    the number of examples of class i. Pass the result to `BetaAverage`.

    Args:
        counts: confusion matrix of shape `(..., K, K)`, whose rows are true classes.
        prior: one number if alpha = beta (1 is the flat prior, 0.5 is Jeffreys' prior), a pair
            (alpha, beta), or an array of shape `(K, 2)` with a row (alpha, beta) per class.

    Returns:
        Parameters of shape `(..., K, 2)`. The parameters of a class are NaN if one of its counts is
        NaN, or negative in a JAX array. Under jit, they are NaN if its prior is below 0.05.

    Raises:
        ValueError: if a matrix is not square, if a count in a NumPy array is negative, or if
            `prior` has another shape or is below 0.05.

    >>> get_beta_parameters([[90, 10], [5, 95]])
    array([[91., 11.],
           [96.,  6.]])
    """
    c = as_counts(counts)
    return parameters_of(c, as_prior(prior, c.shape[-1]))


@compiled
def parameters_of(counts: Array, prior: Array) -> Array:
    """Return the parameters of the posteriors of recalls for a prior of shape `(K, 2)`."""
    c = xp.where(counts >= 0, counts, xp.nan)
    right = diagonal(c)
    wrong = off_diagonal(c).sum(-1) + 0 * right
    return xp.stack([right, wrong], -1) + prior
