"""The parameters of betas: priors, and counts as posteriors of recalls."""

from __future__ import annotations

from jaxmetrics._cell_sums import off_diagonal
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_known, xp
from jaxmetrics._validation import ArrayLike, as_counts, as_float

__all__ = ["get_beta_parameters"]


# Below it nearly all mass is in the poles of the density, which no spline resolves.
SMALLEST_BETA_PARAMETER = 0.05


def are_beta_parameters(parameters: Array) -> Array:
    return (parameters >= SMALLEST_BETA_PARAMETER * (1 - 1e-6)) & (parameters < xp.inf)


def as_prior(prior: ArrayLike, k: int) -> Array:
    """Return `prior` as a row (alpha, beta) per class, `(k, 2)`.

    Impossible values raise, or become NaN where jit hides them.
    """
    p = as_float(prior, "prior")
    if p.shape not in ((), (2,), (k, 2)):
        raise ValueError(
            f"prior must be a number, (alpha, beta) or an array (K, 2) = ({k}, 2), got shape"
            f" {p.shape}."
        )
    if is_known(p) and not bool(are_beta_parameters(p).all()):
        raise ValueError(
            f"prior must be finite and at least {SMALLEST_BETA_PARAMETER}, got {prior!r}. 1 is"
            " flat, 0.5 is Jeffreys' prior."
        )
    return xp.broadcast_to(xp.where(are_beta_parameters(p), p, xp.nan), (k, 2))


def get_beta_parameters(counts: ArrayLike, *, prior: ArrayLike = 1.0) -> Array:
    """Return the parameters of the posterior of each class's accuracy A_i.

    `A_i ~ Beta(alpha + C_ii, beta + m_i - C_ii)`, m_i the number of examples of class i.

    Args:
        counts: `(..., K, K)`, row = true class.
        prior: alpha = beta, a number (1 = flat, 0.5 = Jeffreys); or `(2,)`: alpha, beta; or
            `(K, 2)`: a row per class.

    Returns:
        `(..., K, 2)`; NaN for a class with a negative or NaN count, or with a prior below 0.05 that
        jit hides.

    Raises:
        ValueError: counts that are not square, a prior of another shape, or one that is known to be
            below 0.05.

    >>> get_beta_parameters([[90, 10], [5, 95]])
    array([[91., 11.],
           [96.,  6.]])
    """
    c = as_counts(counts)
    return _parameters(c, as_prior(prior, c.shape[-1]))


@compiled
def _parameters(counts: Array, prior: Array) -> Array:
    c = xp.where(counts >= 0, counts, xp.nan)
    right = xp.diagonal(c, axis1=-2, axis2=-1)
    wrong = off_diagonal(c).sum(-1) + 0 * right
    return xp.stack([right, wrong], -1) + prior
