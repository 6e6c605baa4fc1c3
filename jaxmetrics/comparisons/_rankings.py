"""Ranking of M values that were measured with correlated noise.

`shown_above` and `optimism` assume nothing about the true values; `shrunken` assumes that the true
values are normal. All three functions use the same draws of the noise.
"""

from __future__ import annotations

import math

import numpy as np

from jaxmetrics._arguments.keys import HostKey, Key
from jaxmetrics._numerics.arithmetic import divide, matmul, pick, safe_sqrt
from jaxmetrics._places.chunks import map_chunks
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, is_jax, lax, special, xp
from jaxmetrics._sums.cell_sums import diagonal

__all__: list[str] = []

UNSEEN = 2  # number of hypothetical examples that are added
_SHARES = 128  # points at which the prior of the shrinkage is evaluated
_PAIRS_AT_ONCE = 2**16
# Factor for accelerators, where one kernel computes all ratios and finds the greatest.
_TIMES_ON_ACCELERATORS = 2**11


def normal(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Draw standard normal numbers."""
    if isinstance(key, HostKey):
        return key.generator().standard_normal(shape)
    return jax.random.normal(key, shape, dtype)


def draws_of(key: Key, covariance: Array, size: int) -> Array:
    """Draw normal noise `(S, M)` with a covariance `(M, M)`, which may be singular."""
    linalg = jax.numpy.linalg if is_jax(covariance) else np.linalg
    variances, directions = linalg.eigh(covariance)
    draws = normal(key, (size, len(covariance)), covariance.dtype)
    return matmul(draws * xp.sqrt(xp.maximum(variances, 0)), directions.T)


def variances_of_differences(covariance: Array) -> Array:
    """Return the variances of all differences, `(M, M)`; mere rounding errors become 0."""
    own = diagonal(covariance)
    sums = own[:, None] + own
    variances = sums - 2 * covariance
    return xp.where(variances <= 64 * xp.finfo(sums.dtype).eps * sums, 0, variances)


def shrunken(values: Array, covariance: Array, noise: Array) -> Array:
    """Draw the true values from their empirical Bayes posterior, up to a common constant, `(S, M)`.

    The noise has the covariance C, and the true values are assumed to have the covariance
    `tau^2 C`. With `B = tau^2 / (1 + tau^2)`, the posterior is normal, with mean `B v` and
    covariance `B C`, so that classifiers with similar errors are shrunk towards each other.

    The likelihood of B is the likelihood of the sum of squares of the values about their mean,
    which is distributed as `sum C / (1 - B)` times a chi-square with Satterthwaite's degrees of
    freedom. This needs no inverse of the covariance; the inverse is inaccurate if there are few
    examples. The prior of B is the arcsine distribution, which corresponds to a half-Cauchy prior
    of tau: Gelman (2006), Bayesian Analysis 1. An undefined value is passed as -inf.
    """
    finite = values > -xp.inf
    centred = covariance - covariance.mean(0) - covariance.mean(1)[:, None] + covariance.mean()
    total = xp.trace(centred)
    freedom = divide(total**2, (centred**2).sum())
    mean = xp.where(finite, values, 0).sum() / xp.maximum(finite.sum(), 1)
    deviations = xp.where(finite, values - mean, 0)
    squares = freedom * divide((deviations**2).sum(), total)
    shares = np.sin(np.pi / 2 * (np.arange(_SHARES) + 0.5) / _SHARES) ** 2
    shares = shares.astype(values.dtype)
    log_likelihood = (freedom * np.log(1 - shares) - (1 - shares) * squares) / 2
    # Each share gets a number of draws in proportion to its probability, rounded to an integer.
    size = len(noise)
    evenly = ((np.arange(size) + 0.5) / size).astype(values.dtype)
    cumulative = xp.cumsum(special.softmax(log_likelihood, axis=-1))
    drawn = (cumulative < evenly[:, None]).sum(-1)  # one kernel, unlike `searchsorted`
    share = pick(shares, xp.minimum(drawn, _SHARES - 1))[:, None]
    return xp.where(finite, share * deviations + xp.sqrt(share) * noise, -xp.inf)


def optimism(values: Array, noise: Array, winner: Array) -> Array:
    """Return the optimism: by how much the best of M values is biased upwards by its selection.

    In data fission (Leiner, Duan, Wasserman and Ramdas, 2025, JASA 120), values plus noise and
    values minus the same noise are independent, like values from two halves of the examples. Values
    plus noise select the best, and values minus noise evaluate it. A value of -inf is never
    selected.
    """
    chosen = xp.argmax(values + noise, -1)
    both = xp.stack(xp.broadcast_arrays(winner, chosen), -1)
    # Subtracting the winner's noise, which has mean 0, reduces the variance.
    of_winner, of_chosen = pick(values - noise, both).T
    return xp.maximum((of_winner - of_chosen).mean(), 0)


def shares_of_firsts(values: Array, covariance: Array, noise: Array) -> Array:
    """Return the share of draws in which each value is the largest, `(M,)`.

    Values that are tied in a draw share this draw. So do equal values whose difference has no
    variance.
    """
    draws = shrunken(values, covariance, noise)
    # XLA may compute a draw twice with different rounding, so the greatest can be below itself.
    greatest = xp.argmax(draws, -1)[:, None] == xp.arange(draws.shape[-1])
    first = ~xp.isnan(draws) & (greatest | (draws >= draws.max(-1, keepdims=True)))
    shares = divide(first, first.sum(-1, keepdims=True)).mean(0)
    alike = (variances_of_differences(covariance) == 0) & (values[:, None] == values)
    return divide(matmul(alike.astype(shares.dtype), shares), alike.sum(-1))


def shown_above(
    key: Key,
    values: Array,
    covariance: Array,
    squares: Array,
    unseen: Array,
    noise: Array,
    level: float,
) -> Array:
    """Return whether value i is significantly greater than value j, `(M, M)`, jointly at `level`.

    This is the step-down max-t test of Romano and Wolf (2005), Econometrica 73. The hypothesis
    `v_i <= v_j` is rejected if `(v_i - v_j) / s_ij` exceeds the quantile of the maximum of these
    ratios under noise alone. The maximum is first taken over all pairs, and then over the pairs
    that are not yet rejected, until no further hypothesis is rejected.

    Args:
        covariance: `(M, M)`, the covariance of the values, which are sums over units.
        squares: `(M, M)`, for each pair of values the sum of d^2 over units, where d is the
            contribution of a unit to the difference of the two values. If d and -d are equally
            probable, `T = sum d / sqrt(sum d^2)` is sub-Gaussian: P(T >= t) is at most
            `exp(-t^2 / 2)` (Hoeffding, 1963, JASA 58), and at most 3.18 P(Z >= t) for a normal
            variable Z (Bentkus and Dzindzalieta, 2015, Bernoulli 21; Pinelis, 1994, Annals of
            Statistics 22). For example, P(T >= 2) is .0625 for four equal terms, and P(Z >= 2) is
            .023. With the two unseen units below, a two-sided test of equal terms at level 5 % has
            a size of at most 6.4 %, and without them 12.5 % (computed for 1 to 400 terms).
        unseen: `(M,)`, the variance from kinds of units that did not occur.
        noise: draws with this covariance, `(S, M)`.
    """
    gaps, unseen_of_both = values[:, None] - values, unseen[:, None] + unseen
    ratios = divide(gaps, safe_sqrt(squares + unseen_of_both), gaps)  # inf above an undefined value
    precisions = divide(1.0, safe_sqrt(variances_of_differences(covariance) + unseen_of_both))
    noise = noise + xp.sqrt(unseen) * normal(key, noise.shape, noise.dtype)
    at_once = max(1, _PAIRS_AT_ONCE // gaps.size)
    order = min(math.ceil(level * len(noise)), len(noise)) - 1

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        shown, _ = state
        weights = xp.where(shown, 0, precisions)

        def greatest(draws: Array) -> Array:
            return ((draws[:, :, None] - draws[:, None, :]) * weights).max((-2, -1))

        limit = xp.sort(map_chunks(greatest, at_once, noise, times=_TIMES_ON_ACCELERATORS))[order]
        rejected = (ratios > limit) & ~shown
        return shown | rejected, rejected.any()

    none = ratios > xp.inf
    return lax.while_loop(lambda state: state[1], step, (none, ~none.any()))[0]


def layers(above: Array) -> Array:
    """Return the tier of each value, `(M,)`: 1 + the longest chain of better values."""

    def deepen(state: tuple[Array, Array]) -> tuple[Array, Array]:
        tiers, _ = state
        below = 1 + xp.where(above, tiers[:, None], 0).max(0)
        return below, (below != tiers).any()

    first = xp.ones_like(above[0], xp.int32)
    return lax.while_loop(lambda state: state[1], deepen, (first, above.any()))[0]
