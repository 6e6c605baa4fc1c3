"""Student's t distribution with ν degrees of freedom, from `ν / (ν + t^2) ~ Beta(ν/2, 1/2)`."""

from __future__ import annotations

from jaxmetrics._numerics.arithmetic import safe_sqrt
from jaxmetrics._places.namespaces import Array, special, xp
from jaxmetrics.betas.distributions import betainc, betainccinv, betaincinv

__all__: list[str] = []


def student_quantile(z: Array | float, freedom: Array) -> Array:
    """Return Student's quantile for the same probability as the normal quantile z >= 0.

    Degrees of freedom need not be integers. If there are 0 degrees of freedom, the quantile is NaN.

    >>> student_quantile(1.959964, 19).round(3)
    np.float64(2.093)
    """
    z, nu = xp.broadcast_arrays(xp.asarray(z, dtype=float), xp.asarray(freedom, dtype=float))
    valid = nu > 0
    half = xp.where(valid, nu, 1) / 2
    one_half, tails = xp.full_like(half, 0.5), special.erfc(z / 2**0.5)
    odds = betainccinv(one_half, half, tails) / betaincinv(half, one_half, tails)
    return xp.where(valid, xp.sqrt(2 * half * odds), xp.nan)


def student_tails(t: Array, freedom: Array) -> Array:
    """Return the probability that a Student variable is below -t or above t.

    If t is small and ν is large, we compute 1 minus the complementary probability, because
    `ν / (ν + t^2)` is not precise. In JAX arrays of float32, probabilities below 1e-7 are 0.

    >>> student_tails(12.7062, 1).round(6)
    np.float64(0.05)
    """
    t, nu = xp.broadcast_arrays(xp.asarray(t, dtype=float), xp.asarray(freedom, dtype=float))
    valid = (nu > 0) & ~xp.isnan(t)
    nu, square = xp.where(valid, nu, 1), xp.where(valid, t, 0) ** 2
    far = square / (nu + square)
    inner = special.erfc(safe_sqrt(square / 2)) * (nu + square) > 2
    x = xp.where(inner, far, xp.where(square == xp.inf, 0, nu / (nu + square)))
    half, one_half = nu / 2, xp.full_like(nu, 0.5)
    a, b = xp.where(inner, one_half, half), xp.where(inner, half, one_half)
    below = betainc(a, b, x)
    return xp.where(valid, xp.where(inner, 1 - below, below), xp.nan)
