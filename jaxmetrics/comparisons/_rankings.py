"""Rank M values that are known up to correlated noise.

`shown_above` and `optimism` assume nothing of the true values, `shrunken` that they are normal. All
read the same draws of the noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jaxmetrics._arithmetic import divide, matmul, safe_sqrt
from jaxmetrics._chunks import map_chunks
from jaxmetrics._jax import jax
from jaxmetrics._keys import HostKey, Key
from jaxmetrics._namespaces import Array, is_jax, lax, special, xp

__all__: list[str] = []

UNSEEN = 2  # examples that are added to those that were seen
_SHARES = 128  # at which the prior of a shrinkage is taken
_PAIRS_AT_ONCE = 2**16
# As many on accelerators, where the greatest ratio is found in the kernel that computes them all.
_TIMES_ON_ACCELERATORS = 2**11


class Errors(NamedTuple):
    """Errors of M values to which units contribute.

    Attributes:
        covariance: `(M, M)`.
        squares: `(M, M)`, `sum d^2` of what the units contribute to the differences of two values.
            Where d is as likely as -d, `sum d` over the root then has no more extreme values than a
            normal number, however few the units.
        unseen: `(M,)`, the variance by units that were not seen.
    """

    covariance: Array
    squares: Array
    unseen: Array


def normal(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    if isinstance(key, HostKey):
        return key.generator().standard_normal(shape)
    return jax.random.normal(key, shape, dtype)


def draws_of(key: Key, covariance: Array, size: int) -> Array:
    """Draw normal noise with a covariance `(M, M)`, which may be singular, `(S, M)`."""
    linalg = jax.numpy.linalg if is_jax(covariance) else np.linalg
    variances, directions = linalg.eigh(covariance)
    draws = normal(key, (size, len(covariance)), covariance.dtype)
    return matmul(draws * xp.sqrt(xp.maximum(variances, 0)), directions.T)


def variances_of_differences(covariance: Array) -> Array:
    """Return the variances of all differences, `(M, M)`, 0 where they are rounding."""
    diagonal = xp.diagonal(covariance)
    sums = diagonal[:, None] + diagonal
    variances = sums - 2 * covariance
    return xp.where(variances <= 64 * xp.finfo(sums.dtype).eps * sums, 0, variances)


def shrunken(values: Array, covariance: Array, noise: Array) -> Array:
    """Draw what true values may be by empirical Bayes, up to what all have in common, `(S, M)`.

    With noise of covariance C, true values of covariance `tau^2 C` and `B = tau^2 / (1 + tau^2)`,
    the posterior is normal, with mean `B v` and covariance `B C`: classifiers that err alike are
    taken to be alike. The likelihood of B is that of the sum of squares of the values about their
    mean, `sum C / (1 - B)` times a chi-square with Satterthwaite's degrees of freedom; no inverse
    of a covariance is needed, which few examples do not tell. Its prior is that of a half-Cauchy
    tau, the arcsine distribution: Gelman (2006), Bayesian Analysis 1. An undefined value is -inf.
    """
    finite = values > -xp.inf
    centred = covariance - covariance.mean(0) - covariance.mean(1)[:, None] + covariance.mean()
    total = xp.trace(centred)
    freedom = divide(total**2, (centred**2).sum())
    mean = divide(xp.where(finite, values, 0).sum(), finite.sum())
    deviations = xp.where(finite, values - mean, 0)
    squares = freedom * divide((deviations**2).sum(), total)
    shares = np.sin(np.pi / 2 * (np.arange(_SHARES) + 0.5) / _SHARES) ** 2
    shares = shares.astype(values.dtype)
    log_likelihood = (freedom * np.log(1 - shares) - (1 - shares) * squares) / 2
    # Each is drawn as often as it is likely, to the nearest draw.
    size = len(noise)
    evenly = ((np.arange(size) + 0.5) / size).astype(values.dtype)
    drawn = xp.searchsorted(xp.cumsum(special.softmax(log_likelihood, axis=-1)), evenly)
    share = xp.take(shares, xp.minimum(drawn, _SHARES - 1))[:, None]
    return xp.where(finite, share * deviations + xp.sqrt(share) * noise, -xp.inf)


def optimism(values: Array, noise: Array, winner: Array) -> Array:
    """Return by how much the best of M values looks better than it is.

    Data fission, Leiner, Duan, Wasserman and Ramdas (2025), JASA 120: values with noise added and
    with it taken off are independent, as by two halves of the examples: one chooses, the other
    judges. A value that cannot be chosen is -inf.
    """
    chosen = xp.argmax(values + noise, -1)
    judged = values[chosen] - xp.take_along_axis(noise, chosen[:, None], -1)[:, 0]
    # The noise of the winner, whose mean is 0, leaves less to chance.
    return xp.maximum((values[winner] - noise[:, winner] - judged).mean(), 0)


def shares_of_firsts(values: Array, covariance: Array, noise: Array) -> Array:
    """Return the share of shrunken draws in which each is first, `(M,)`.

    Ties share, and so do values that are equal without any noise in their difference.
    """
    draws = shrunken(values, covariance, noise)
    # XLA may compute a draw twice and round it otherwise: it can be below itself, the greatest.
    greatest = xp.argmax(draws, -1)[:, None] == xp.arange(draws.shape[-1])
    first = ~xp.isnan(draws) & (greatest | (draws >= draws.max(-1, keepdims=True)))
    shares = divide(first, first.sum(-1, keepdims=True)).mean(0)
    alike = (variances_of_differences(covariance) == 0) & (values[:, None] == values)
    return divide(matmul(alike.astype(shares.dtype), shares), alike.sum(-1))


def shown_above(key: Key, values: Array, errors: Errors, noise: Array, level: float) -> Array:
    """Return which value i is shown to be above which j, `(M, M)`; all rightly, with `level`.

    Step-down test of Romano and Wolf (2005), Econometrica 73: the hypothesis that it is not is
    rejected where `(v_i - v_j) / s_ij` exceeds the quantile of the greatest such ratio of noise
    alone, of all pairs, then of those that are not yet rejected, until no more are.
    """
    gaps, more = values[:, None] - values, errors.unseen[:, None] + errors.unseen
    ratios = divide(gaps, safe_sqrt(errors.squares + more), gaps)  # inf over an undefined one
    precisions = divide(1.0, safe_sqrt(variances_of_differences(errors.covariance) + more))
    noise = noise + xp.sqrt(errors.unseen) * normal(key, noise.shape, noise.dtype)
    at_once = max(1, _PAIRS_AT_ONCE // gaps.size)
    order = min(math.ceil(level * len(noise)), len(noise)) - 1

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        shown, _ = state
        weights = xp.where(shown, 0, precisions)

        def greatest(draws: Array) -> Array:
            return ((draws[:, :, None] - draws[:, None, :]) * weights).max((-2, -1))

        limit = xp.sort(map_chunks(greatest, at_once, noise, times=_TIMES_ON_ACCELERATORS))[order]
        more = (ratios > limit) & ~shown
        return shown | more, more.any()

    none = ratios > xp.inf
    return lax.while_loop(lambda state: state[1], step, (none, ~none.any()))[0]


def layers(above: Array) -> Array:
    """Return the tier of each value, `(M,)`: 1 + the length of the longest chain above it."""

    def deepen(state: tuple[Array, Array]) -> tuple[Array, Array]:
        tiers, _ = state
        below = 1 + xp.where(above, tiers[:, None], 0).max(0)
        return below, (below != tiers).any()

    first = xp.ones_like(above[0], xp.int32)
    return lax.while_loop(lambda state: state[1], deepen, (first, above.any()))[0]
