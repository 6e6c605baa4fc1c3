"""Parameters of beta distributions: priors, and the posteriors of recalls from counts."""

from __future__ import annotations

from jaxmetrics._cell_sums import diagonal, off_diagonal
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_known, xp
from jaxmetrics._validation import ArrayLike, as_counts, as_float

__all__ = ["get_beta_parameters"]


def smallest_parameter(k: int) -> float:
    """Return the smallest parameter for which averages of k betas were verified.

    Below it, too much mass is in the poles of the densities: where poles of several classes meet,
    the cdf was wrong by 0.001 at 0.4 and by 0.9 at 0.25 (k = 6), by 0.0003 at 0.1 (k = 2).
    """
    return {1: 0.05, 2: 0.2}.get(k, 0.5)


def are_beta_parameters(parameters: Array, k: int) -> Array:
    """Tell which parameters are allowed for an average of k betas."""
    return (parameters >= smallest_parameter(k) * (1 - 1e-6)) & (parameters < xp.inf)


def as_prior(prior: ArrayLike, k: int, *, averaged: int = 1) -> Array:
    """Return `prior` as one row (alpha, beta) per class, `(k, 2)`.

    Impossible values raise, or become NaN where jit hides them.
    """
    p = as_float(prior, "prior")
    if p.shape not in ((), (2,), (k, 2)):
        raise ValueError(
            f"prior must be a number, (alpha, beta) or an array (K, 2) = ({k}, 2), got shape"
            f" {p.shape}."
        )
    possible = are_beta_parameters(p, averaged)
    if is_known(p) and not bool(possible.all()):
        least = smallest_parameter(averaged)
        average = f" to average {averaged} classes" if averaged > 1 else ""
        raise ValueError(
            f"prior must be finite and at least {least}{average}, got {prior!r}. 1 is flat, 0.5 is"
            " Jeffreys' prior."
        )
    return xp.broadcast_to(xp.where(possible, p, xp.nan), (k, 2))


def get_beta_parameters(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> Array:
    """Return the parameters of the beta posterior of each class's recall A_i.

    `A_i ~ Beta(alpha + C_ii, beta + m_i - C_ii)`, where m_i is the number of examples of class i.

    Args:
        counts: `(..., K, K)`, row = true class.
        prior: alpha = beta, a number (1 = flat, 0.5 = Jeffreys); or `(2,)`: alpha, beta; or
            `(K, 2)`: a row per class.

    Returns:
        Parameters `(..., K, 2)`; NaN for a class with a NaN count, or with a negative count or a
        prior below 0.05 that jit hides.

    Raises:
        ValueError: counts that are not square or negative, a prior of another shape or below 0.05.

    >>> get_beta_parameters([[90, 10], [5, 95]])
    array([[91., 11.],
           [96.,  6.]])
    """
    c = as_counts(counts)
    return parameters_of(c, as_prior(prior, c.shape[-1]))


@compiled
def parameters_of(counts: Array, prior: Array) -> Array:
    """Return the parameters of the posteriors of recalls under a prior `(K, 2)`."""
    c = xp.where(counts >= 0, counts, xp.nan)
    right = diagonal(c)
    wrong = off_diagonal(c).sum(-1) + 0 * right
    return xp.stack([right, wrong], -1) + prior
