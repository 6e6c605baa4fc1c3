"""Draw random counts and probabilities in JAX, each from one word of 32 random bits.

A draw depends only on its parameters and its word, not on other elements of the array. Therefore it
is the same alone or in a batch, and the matrices of a batch can share words.

- **Binomial and Poisson counts** are quantiles of their distributions at a uniform variable of 24
  bits. For means below 14, the probabilities are added up from 0. For larger means, the quantile is
  the expansion of Cornish and Fisher (1937), Revue de l'Institut International de Statistique 5, to
  the fourth order in 1 / sd, for the cumulants of the counts plus a continuity correction. Over
  all 2^24 values of the uniform variable, the mean differs by less than 1e-5 standard deviations,
  the variance by less than 1e-4 (for means above 1e-3, because 2^-24 is the smallest probability)
  and the distribution function by less than 1e-5, apart from the rounding of large means: in
  float32, the mean has an error of about `6e-8 sqrt(mean)` standard deviations.
- **Gamma variables** are drawn by the method of Marsaglia and Tsang (2000), ACM Trans. Math. Softw.
  26, and for a < 1 as Gamma(a + 1) U^(1/a). After a rejection, a hash of the word is used for the
  next trial.
- **Multinomial counts** are drawn cell by cell, each from a binomial of the remaining draws.
"""

from __future__ import annotations

import math

import numpy as np

from jaxmetrics._arguments.single import INT32_MAX
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.jax_imports import jax, jnp, lax
from jaxmetrics._places.namespaces import Array, Arrays, float_dtype

__all__: list[str] = []


def random_words(keys: Array, shape: tuple[int, ...]) -> Array:
    """Draw words of 32 random bits of a shape for each of the keys `(N,)`."""

    def draw(keys: Array, shape: tuple[int, ...]) -> Array:
        return jax.vmap(lambda key: jax.random.bits(key, shape, jnp.uint32))(keys)

    # The words are the same. A CPU draws a flat array faster, and TPUs compile a reshape slowly.
    # Without the barrier, a TPU compiles and computes keys three times, once for each use.
    return lax.platform_dependent(
        keys,
        cpu=lambda keys: draw(keys, (math.prod(shape),)).reshape((-1, *shape)),
        default=lambda keys: draw(lax.optimization_barrier(keys), shape),
    )


def indices(words: Array, n: int | Array) -> Array:
    """Draw int32 integers that are uniform in [0, n), for one n below 2^31 or one n per word.

    An integer is the upper half of the 64-bit product of a word and n.
    """
    low, high = words & 0xFFFF, words >> 16
    n_low, n_high = (jnp.asarray(x, jnp.uint32) for x in (n & 0xFFFF, n >> 16))
    middle = high * n_low + (low * n_low >> 16)
    upper = high * n_high + (middle >> 16) + ((middle & 0xFFFF) + low * n_high >> 16)
    return upper.astype(jnp.int32)


def multinomial(words: Array, n: Array, weights: Array) -> Array:
    """Draw how often each of M cells occurs in n draws, `(..., M)`, int32.

    The words are `(..., M - 1)`, n is `(...)` and the weights are `(..., M)`. Each cell is drawn
    from a binomial of the remaining draws. The weights need not sum to 1; if all are 0, the last
    cell gets all draws.
    """
    shape = np.broadcast_shapes(words.shape[:-1], n.shape, weights.shape[:-1])
    weights = weights.reshape((1,) * (1 + len(shape) - weights.ndim) + weights.shape)

    def take(left: Array, cell: Arrays) -> Arrays:
        left = left - binomial(cell[0], left, *cell[1:])
        return left, left  # XLA would draw twice for two different results

    # The replicates are on the last axis, so that inner loops are long.
    rest = lax.cumsum(weights, weights.ndim - 1, reverse=True)
    cells = (words.T, weights[..., :-1].T, rest[..., 1:].T)
    n = jnp.broadcast_to(n, shape).T
    scanned: Arrays = lax.scan(take, n, cells)
    last, left = scanned
    before = jnp.concatenate([n[None], left])[:-1]
    return jnp.concatenate([before - left, last[None]]).T


def binomial(words: Array, n: Array, success: Array, failure: Array) -> Array:
    """Draw the int32 number of successes in n trials with the odds `success : failure`."""
    p = divide(jnp.minimum(success, failure), success + failure)
    size = n.astype(p.dtype)
    k = jnp.minimum(_quantile(words, size * p, p), n)
    return jnp.where(success > failure, n - k, k)


def poisson(words: Array, mean: Array) -> Array:
    """Draw int32 Poisson counts for means below 2^31; a count above 2^31 - 1 becomes 2^31 - 1."""
    return _quantile(words, mean, jnp.zeros_like(mean))


def dirichlet(words: Array, concentration: Array) -> Array:
    """Draw probabilities that sum to 1 over the last axis.

    They are NaN if one concentration is negative, infinite or NaN.
    """
    words, concentration = jnp.broadcast_arrays(words, concentration)
    valid = (concentration >= 0) & (concentration < jnp.inf)
    a = jnp.where(valid, concentration, 1)
    draws = gamma(words, jnp.where(a < 1, a + 1, a))
    u = (hashed(words ^ np.uint32(0x5851F42D)).astype(draws.dtype) + 0.5) * 2.0**-32
    # Below a = 0.01, the factor itself underflows.
    log_factor = jnp.where(a < 1, jnp.log(u) / jnp.minimum(a, 1), 0)
    scaled = draws * jnp.exp(log_factor - log_factor.max(-1, keepdims=True))
    return jnp.where(valid.all(-1, keepdims=True), scaled / scaled.sum(-1, keepdims=True), jnp.nan)


# Below this mean, probabilities are added up to 39, which is exceeded with probability < 2^-26.
# If it were 7, variances would differ by 1e-4; if it were 28, 62 probabilities would be added up.
_LEAST_EXPANDED, _LAST_ADDED = 14, 39


def _quantile(words: Array, mean: Array, p: Array) -> Array:
    """Return quantiles of binomial distributions, or of Poisson distributions if p = 0.

    All lanes compute both formulas, since these instructions form one kernel.
    """
    u, odds = _uniform(words), p / (1 - p)
    probability = jnp.ones_like(mean)
    cdf = [probability]
    for k in range(_LAST_ADDED):
        probability = probability * (mean * (1 + odds) - k * odds) * (1 / (k + 1))
        cdf.append(cdf[-1] + probability)
    few = sum((x <= u * cdf[-1]).astype(jnp.int32) for x in cdf)

    z, skew, variance = _normal(u), 1 - 2 * p, p * (1 - p)
    z2, sd = z**2, jnp.sqrt(jnp.maximum(mean, _LEAST_EXPANDED) * (1 - p))
    terms = (
        (z2 - 1) * skew / 6,
        z * (14 * variance - 2 - (1 + 2 * variance) * z2) / 72,
        ((3 * z2 + 7) * z2 - 16) * skew * (2 + variance) / 1620,
        z
        * (
            9 * ((4 * variance + 52) * variance - 23) * z2**2
            + 4 * ((256 * variance + 403) * variance - 137) * z2
            - 4 * ((433 * variance + 1354) * variance - 671)
        )
        / 155520,
    )
    whole = jnp.floor(mean)
    rest = mean - whole + 0.5 + sd * z + sum(x / sd**i for i, x in enumerate(terms))
    count, steps = whole.astype(jnp.int32), jnp.floor(rest).astype(jnp.int32)
    many = jnp.maximum(count + jnp.minimum(steps, INT32_MAX - count), 0)
    return jnp.where(mean < _LEAST_EXPANDED, few, many)


def gamma(words: Array, shape: Array) -> Array:
    """Draw gamma variables for shapes of at least 1."""
    d = shape.ravel() - 1 / 3  # flat, so that the inner loop is long

    def again(state: Arrays) -> Arrays:
        """Propose values of the rejected lanes, which are negative, twice between checks."""
        words, values = state
        for _ in range(2):
            # A hash that shares no bits with the next trial's word follows the lower 8 bits.
            v = _uniform(words << 24 | hashed(words ^ np.uint32(0x2545F491)) >> 8) + 2.0**-25
            x = _normal(_uniform(words))
            t = x * lax.rsqrt(9 * d)
            safe = jnp.where(t > -1, t, 0)
            log_ratio = x**2 / 2 - d * (3 * safe * (1 + safe) + safe**3 - 3 * jnp.log1p(safe))
            proposed = jnp.where((t > -1) & (jnp.log(v) <= log_ratio), d * (1 + t) ** 3, -1)
            values = jnp.where(values < 0, proposed, values)
            words = hashed(words)
        return words, values

    start = words.ravel(), jnp.full_like(d, -1)
    _, values = lax.while_loop(lambda state: (state[1] < 0).any(), again, start)
    return values.reshape(words.shape)


def _uniform(words: Array) -> Array:
    """Return the upper 24 bits as a number in [0, 1)."""
    return (words >> 8).astype(float_dtype()) * 2.0**-24


def _normal(u: Array) -> Array:
    """Return normal quantiles in the middle of intervals of length 2^-24."""
    return np.sqrt(2) * lax.erf_inv(2 * u - 1 + 2.0**-24)


def hashed(words: jax.Array) -> jax.Array:
    """Hash words of 32 bits, one to one, by multiplications and shifts.

    The constants are from the search of Wellons and TheIronBorn.
    """
    x = words + np.uint32(0x9E3779B9)
    x = (x ^ (x >> 16)) * np.uint32(0x21F0AAAD)
    x = (x ^ (x >> 15)) * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)
