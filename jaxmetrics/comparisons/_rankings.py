"""Rank values that are known up to correlated noise: what is likely, and what is shown.

Only differences matter. They are resolved along the eigenvectors of the noise's covariance, less
what is common to all values.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import divide, matmul, safe_sqrt
from jaxmetrics._chunks import map_chunks
from jaxmetrics._keys import HostKey, Key
from jaxmetrics._namespaces import Array, is_jax, lax, special, xp

__all__: list[str] = []

_SCALES = 48  # of how far true values differ, in the mixture over which draws are taken
_PAIRS_AT_ONCE = 2**16


class Noise(NamedTuple):
    """The noise of M values.

    Attributes:
        covariance: `(M, M)`.
        directions: `(M, M - 1)`, the eigenvectors of that of differences, orthogonal to ones.
        variances: `(M - 1,)`, along the directions.
        shrunken: `(M - 1,)`, drawn towards their mean, as by far as that comes nearer the truth.
    """

    covariance: Array
    directions: Array
    variances: Array
    shrunken: Array


def noise_of(second: Array, fourth: Array, n: Array) -> Noise:
    """Estimate the noise of means of n examples.

    The eigenvalues of a covariance that was estimated from few examples are too far apart. They are
    shrunken by Ledoit and Wolf (2004), Journal of Multivariate Analysis 88, lemma 3.

    Args:
        second: `(M, M)`, the mean over the examples of the products u_i u_j of their contributions,
            whose means are 0.
        fourth: the mean of `(sum_i (u_i - mean u)^2)^2`.
        n: number of examples.
    """
    m = len(second)
    centred = second - second.mean(0) - second.mean(1)[:, None] + second.mean()
    total = xp.trace(centred)
    linalg = jax.numpy.linalg if is_jax(centred) else np.linalg
    # The vector (1, ..., 1), with an eigenvalue above all others, comes last and is left out.
    variances, directions = linalg.eigh(centred + (1 + total) / m)
    variances, directions = xp.maximum(variances[:-1], 0), directions[:, :-1]
    mean = total / max(m - 1, 1)
    squares = (variances**2).sum()
    distance = ((variances - mean) ** 2).sum()
    share = xp.clip(divide((fourth - squares) / n, distance, 1.0), 0, 1)
    shrunken = share * mean + (1 - share) * variances
    return Noise(second / n, directions, variances / n, shrunken / n)


def differences_of(noise: Noise) -> Array:
    """Return the variances of the noise of all differences, `(M, M)`, 0 if they are rounding."""
    diagonal = xp.diagonal(noise.covariance)
    sums = diagonal[:, None] + diagonal
    variances = sums - 2 * noise.covariance
    return xp.where(variances <= 64 * xp.finfo(sums.dtype).eps * sums, 0, variances)


def normal(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    if isinstance(key, HostKey):
        return key.generator().standard_normal(shape)
    return jax.random.normal(key, shape, dtype)


def plausible_values(key: Key, values: Array, noise: Noise, size: int) -> Array:
    """Draw S times what the true values may be, up to what they have in common, `(S, M)`.

    Along each direction they are taken for normal, with a multiple of a variance that is the same
    for all, that of the noise there (who err alike are alike), or half of each, all as likely. The
    root of the multiple has a half-Cauchy prior of scale 1 / sqrt 2: Gelman (2006), Bayesian
    Analysis 1.
    """
    observed = values @ noise.directions
    quantiles = (np.arange(_SCALES) + 0.5) / _SCALES
    multiples = (np.tan(np.pi / 2 * quantiles) ** 2 / 2).astype(values.dtype)
    mean = noise.shrunken.sum() / max(len(values) - 1, 1)
    shared = np.array([0, 0.5, 1], values.dtype)[:, None]
    kinds = shared * mean + (1 - shared) * noise.shrunken
    prior = (multiples[:, None, None] * kinds).reshape((3 * _SCALES, len(observed)))

    total = xp.maximum(prior + noise.shrunken, xp.finfo(values.dtype).tiny)
    log_likelihoods = -(xp.log(total) + observed**2 / total).sum(-1) / 2
    below = xp.cumsum(special.softmax(log_likelihoods))
    # Each is drawn as often as it is likely, to the nearest draw.
    drawn = (below < ((np.arange(size) + 0.5) / size).astype(values.dtype)[:, None]).sum(-1)
    drawn = xp.minimum(drawn, len(prior) - 1)
    kept = divide(prior, prior + noise.shrunken, 1.0)[drawn]
    spread = xp.sqrt(noise.shrunken * kept)
    draws = observed * kept + spread * normal(key, (size, len(observed)), values.dtype)
    return matmul(draws, noise.directions.T)


def rank_shares(draws: Array, group: Array) -> Array:
    """Return the share of draws `(S, M)` in which each value has each rank, `(M, M)`.

    Values of the same group are equal in all draws, and share their ranks evenly.
    """
    ranks = xp.argsort(xp.argsort(-draws, -1), -1)
    places = np.arange(draws.shape[-1])
    shares = lax.map(lambda rank: (rank[:, None] == places).mean(0, dtype=draws.dtype), ranks.T)
    alike = (group[:, None] == group).astype(draws.dtype)
    return matmul(alike, shares) / alike.sum(-1, keepdims=True)


def shown_above(
    key: Key,
    gaps: Array,
    squares: Array,
    noise: Noise,
    unseen: Array,
    *,
    size: int,
    level: float,
) -> Array:
    """Return which value i is shown to be above which j, `(M, M)`; all rightly, with `level`.

    The hypothesis that it is not is rejected where `(v_i - v_j) / s_ij` exceeds the quantile of the
    greatest such ratio of noise alone, of all pairs, then of those that are not yet rejected, until
    no more are: Romano and Wolf (2005), Econometrica 73.

    Args:
        gaps: `v_i - v_j`.
        squares: `s_ij^2`, with the n examples' differences d `sum d^2 / n^2`, not about their mean:
            where d is as likely as -d, the ratio then has no more extreme values than a normal one,
            however few the examples.
        unseen: `(M,)`, the variance of each value by one more example, which adds to all these.
    """
    more = unseen[:, None] + unseen
    ratios = divide(gaps, safe_sqrt(squares + more))
    precisions = divide(1.0, safe_sqrt(differences_of(noise) + more))
    m, rank = noise.directions.shape
    normals = normal(key, (size, rank + m), gaps.dtype)
    draws = matmul(normals[:, :rank] * xp.sqrt(noise.variances), noise.directions.T)
    draws = draws + normals[:, rank:] * xp.sqrt(unseen)
    at_once = max(1, _PAIRS_AT_ONCE // gaps.size)

    def quantile_of_greatest(weights: Array) -> Array:
        def greatest(draws: Array) -> Array:
            return ((draws[:, :, None] - draws[:, None, :]) * weights).max((-2, -1))

        ordered = xp.sort(map_chunks(greatest, at_once, draws))
        return ordered[min(math.ceil(level * size), size) - 1]

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        shown, _ = state
        limit = quantile_of_greatest(xp.where(shown, 0, precisions))
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
