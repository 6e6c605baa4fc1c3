"""Draw random counts and probabilities in JAX, each from one word of 32 random bits.

A draw depends only on its parameters and its word, not on other elements of the array. Therefore it
is the same alone or in a batch, and the matrices of a batch can share words. After a rejection, a
hash of the word is used for the next trial.

- **Binomial and Poisson counts with means below 10** are drawn by inversion. The distribution
  function is summed up from 0 by the recurrence of the probabilities.
- **Binomial and Poisson counts with larger means** are drawn by transformed rejection (Hörmann
  1993, J. Stat. Comput. Simul. 46): `k = floor((2a / (1/2 - |u|) + b) u + mean + 1/2)` for u
  uniform in (-1/2, 1/2) is accepted in 74 to 88 % of the trials. The probability of k is computed
  from deviances (Loader 2000), which do not cancel, up to n = 2^31. Hörmann's hat for the binomial
  distribution also covers its limit, the Poisson distribution: the highest ratio of probability to
  hat, over means from 10 to 1e6, is 0.993.
- **Gamma variables** are drawn by the method of Marsaglia and Tsang (2000), ACM Trans. Math. Softw.
  26, and for a < 1 as Gamma(a + 1) U^(1/a).
- **Multinomial counts** are drawn cell by cell, each from a binomial of the remaining draws.

Means are accurate to float32: at n = 1e9 the error is about a thousandth of the standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.jax_imports import jax, jnp, lax
from jaxmetrics._places.namespaces import Array, Arrays, float_dtype, xp

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
    rest = lax.cumsum(weights, weights.ndim - 1, reverse=True)

    def take(left: Array, cell: Arrays) -> Arrays:
        taken = binomial(cell[0], left, *cell[1:])
        return left - taken, taken

    shape = np.broadcast_shapes(words.shape[:-1], n.shape, weights.shape[:-1])
    cells = (words, weights[..., :-1], rest[..., 1:])
    by_cell = tuple(jnp.moveaxis(x, -1, 0) for x in cells)
    left: tuple[Array, Array] = lax.scan(take, jnp.broadcast_to(n, shape), by_cell)
    return jnp.moveaxis(jnp.concatenate([left[1], left[0][None]]), 0, -1)


def binomial(words: Array, n: Array, success: Array, failure: Array) -> Array:
    """Draw the int32 number of successes in n trials with the odds `success : failure`."""
    words, n, success, failure = jnp.broadcast_arrays(words, n, success, failure)
    p = divide(jnp.minimum(success, failure), success + failure)
    size = n.astype(p.dtype)
    large = size * p >= 10

    odds = p / (1 - p)
    few = _invert(words, ~large, jnp.exp(size * jnp.log1p(-p)), size * odds, odds)
    many = _accepted(_try_binomial, words, large, jnp.where(large, n, 40), jnp.where(large, p, 0.5))
    k = jnp.where(large, many, few)
    return jnp.where(success > failure, n - k, k)


def heads(words: Array, n: Array) -> Array:
    """Draw the int32 number of heads of n fair coins; up to 32 coins are the bits of the word."""
    words, n = jnp.broadcast_arrays(words, n)
    few = n <= 32
    tossed = jnp.where(
        n > 0, np.uint32(0xFFFFFFFF) >> (32 - jnp.clip(n, 1, 32)).astype(jnp.uint32), 0
    )
    half = jnp.full(n.shape, 0.5, float_dtype())
    many = _accepted(_try_binomial, words, ~few, jnp.where(few, 40, n), half)
    return jnp.where(few, lax.population_count(words & tossed).astype(jnp.int32), many)


def poisson(words: Array, mean: Array) -> Array:
    """Draw int32 Poisson counts for means up to 2^30."""
    words, mean = jnp.broadcast_arrays(words, mean)
    large = mean >= 10

    few = _invert(words, ~large, jnp.exp(-mean), mean, jnp.zeros_like(mean))
    return jnp.where(large, _accepted(_try_poisson, words, large, jnp.where(large, mean, 20)), few)


def dirichlet(words: Array, concentration: Array) -> Array:
    """Draw probabilities that sum to 1 over the last axis.

    They are NaN if one concentration is negative, infinite or NaN.
    """
    words, concentration = jnp.broadcast_arrays(words, concentration)
    valid = (concentration >= 0) & (concentration < jnp.inf)
    a = jnp.where(valid, concentration, 1)
    gamma = _accepted(_try_gamma, words, valid, jnp.where(a < 1, a + 1, a))
    u = (hashed(words ^ np.uint32(0x5851F42D)).astype(gamma.dtype) + 0.5) * 2.0**-32
    # Below a = 0.01, the factor itself underflows.
    log_factor = jnp.where(a < 1, jnp.log(u) / jnp.minimum(a, 1), 0)
    scaled = gamma * jnp.exp(log_factor - log_factor.max(-1, keepdims=True))
    return jnp.where(valid.all(-1, keepdims=True), scaled / scaled.sum(-1, keepdims=True), jnp.nan)


def _invert(words: Array, active: Array, probability: Array, ratio: Array, slope: Array) -> Array:
    """Draw counts with means below 10 by inversion; counts of inactive lanes are 0.

    They have P(0) = `probability` and P(j + 1) = P(j) (ratio - j slope) / (j + 1).
    """
    u, _ = _two_uniforms(words)
    # The count, its probability, and the distribution function, which is 2 after it has passed u.
    state = jnp.zeros(words.shape, jnp.int32), probability, jnp.where(active, probability, 2)

    def step(state: Arrays, number: Array) -> Arrays:
        k, probability, reached = state
        probability = probability * jnp.maximum(ratio - number * slope, 0) * (1 / (number + 1))
        # Exclude counts that could only be reached by the rounding of u.
        beyond = (reached <= u) & (probability > 2.0**-32)
        return k + beyond, probability, jnp.where(beyond, reached + probability, 2)

    def three_steps(first: Array, state: Arrays) -> Arrays:
        for i in range(3):
            state = step(state, first + i)
        return state

    def twelve_steps(_: Array, state: Arrays) -> Arrays:
        # In a lane that is not finished, k is the number of steps; as a scalar it would need
        # separate kernels.
        return lax.fori_loop(
            0, 12, lambda _, state: step(state, state[0].astype(u.dtype)), state, unroll=True
        )

    def sum_up(number: int, steps: Callable[..., Arrays], state: Arrays) -> Array:
        """Repeat a number of steps while any lane needs them."""
        start = jnp.zeros((), u.dtype), state
        _, (k, _, _) = lax.while_loop(
            # P(k > 36) < 2^-31
            lambda loop: (loop[0] < 36) & (loop[1][2] <= u).any(),
            lambda loop: (loop[0] + number, steps(*loop)),
            start,
        )
        return k

    on_cpu = partial(sum_up, 3, three_steps)
    if words.size < _MANY_LANES:
        return on_cpu(state)
    return lax.platform_dependent(state, cpu=on_cpu, default=partial(sum_up, 12, twelve_steps))


# If there are at least this many lanes, a loop for each platform is worthwhile, and so is gathering
# the rejected lanes. For fewer lanes, compiling takes longer than this saves.
_MANY_LANES = 2**16

Trial: TypeAlias = Callable[..., Any]


class _Lanes(NamedTuple):
    """Lanes, each of which has a word, a value (-1 until accepted) and parameters."""

    words: Array
    values: Array
    parameters: Arrays

    def again(self, trial: Trial, times: int = 1) -> _Lanes:
        def once(_: int, lanes: _Lanes) -> _Lanes:
            proposed = trial(lanes.words, *lanes.parameters)
            values = jnp.where(lanes.values < 0, proposed, lanes.values)
            return _Lanes(hashed(lanes.words), values, lanes.parameters)

        return lax.fori_loop(0, times, once, self, unroll=True)

    def accepted(self, trial: Trial, times: int = 1) -> Array:
        """Try until all lanes are accepted, with several trials between checks."""
        return lax.while_loop(
            lambda lanes: (lanes.values < 0).any(), lambda lanes: lanes.again(trial, times), self
        ).values


def _accepted(trial: Trial, words: Array, active: Array, *parameters: Array) -> Array:
    """Return, for each lane, the first nonnegative `trial(words, *parameters)`; 0 for inactive
    lanes.

    XLA runs all lanes together, so repeating until the last lane is accepted takes about eight
    trials of all lanes. Among many lanes, those rejected twice (at most 7 %) are gathered into a
    small array and repeated there: on a GPU, a bootstrap of 1e6 tables takes 18 instead of 26 ms.
    A TPU, which scatters one element after another, repeats all lanes.
    """
    dtype = jax.eval_shape(trial, words, *parameters).dtype
    values = jnp.where(active, -1, 0).astype(dtype)
    lanes = _Lanes(*jax.tree.map(jnp.ravel, (words, values, parameters)))
    if lanes.words.size < _MANY_LANES:
        accepted = lanes.accepted(trial)
    else:
        accepted = lax.platform_dependent(
            lanes,
            tpu=lambda lanes: lanes.accepted(trial, 2),
            default=partial(_gathered_and_accepted, trial),
        )
    return accepted.reshape(words.shape)


def _gathered_and_accepted(trial: Trial, lanes: _Lanes) -> Array:
    lanes = lanes.again(trial, 2)
    size = lanes.words.size
    few = size // 12 + 64

    def mend(values: Array) -> Array:
        # The positions of the first rejected lanes; if there are fewer, others are past the end.
        rejected = values < 0
        rank = jnp.cumsum(rejected.astype(jnp.int32)) - 1
        places = (
            jnp.full(few, size, jnp.int32)
            .at[jnp.where(rejected, rank, few)]
            .set(lax.iota(jnp.int32, size), mode="drop")
        )
        some = jax.tree.map(lambda x: x.at[places].get(mode="clip"), lanes)
        mended = some._replace(values=jnp.full(few, -1, values.dtype)).accepted(trial, 2)
        return values.at[places].set(mended, mode="drop")

    return lax.while_loop(lambda values: (values < 0).any(), mend, lanes.values)


def _try_binomial(words: Array, n: Array, p: Array) -> Array:
    """Propose a binomial count for p <= 1/2 and a mean of at least 10; -1 if it is rejected."""
    size = n.astype(p.dtype)
    mean = size * p
    k, distance, acceptance = _propose(words, mean, jnp.sqrt(mean * (1 - p)), p)
    possible = (k >= 0) & (k <= n)
    k = jnp.where(possible, k, 0)
    successes, failures = k.astype(p.dtype), (n - k).astype(p.dtype)
    unlikeliness = mean * deviance(distance / mean) + (size - mean) * deviance(
        -distance / (size - mean)
    )
    spread = stirling(successes) * (stirling(failures) / stirling(size))
    return jnp.where(possible & (acceptance**2 * spread <= jnp.exp(-2 * unlikeliness)), k, -1)


def _try_poisson(words: Array, mean: Array) -> Array:
    """Propose a Poisson count for a mean of at least 10; -1 if it is rejected."""
    k, distance, acceptance = _propose(words, mean, jnp.sqrt(mean), jnp.zeros_like(mean))
    spread = stirling(jnp.maximum(k, 0).astype(mean.dtype))
    likely = acceptance**2 * spread <= jnp.exp(-2 * mean * deviance(distance / mean))
    return jnp.where(likely & (k >= 0), k, -1)


def _propose(words: Array, mean: Array, sd: Array, p: Array) -> Arrays:
    """Return a count k, k - mean, and the threshold for sqrt(2 pi) P(k) at which k is accepted.

    The constants are from Hörmann's hat function.
    """
    u, v = _two_uniforms(words)
    u = u - 0.5
    b = 1.15 + 2.53 * sd
    a = -0.0873 + 0.0248 * b + 0.01 * p
    room = 0.5 - jnp.abs(u) + 2.0**-30
    whole = jnp.floor(mean)
    steps = jnp.floor((2 * a / room + b) * u + (mean - whole) + 0.5)
    k = whole.astype(jnp.int32) + steps.astype(jnp.int32)
    return k, steps - (mean - whole), v * (2.83 + 5.1 / b) / (a / room**2 + b)


def _try_gamma(words: Array, shape: Array) -> Array:
    """Propose a gamma variable for shapes of at least 1; -1 if it is rejected."""
    u, v = _two_uniforms(words)
    x = np.sqrt(2) * lax.erf_inv(2 * u - 1 + 2.0**-24)
    d = shape - 1 / 3
    t = x * lax.rsqrt(9 * d)
    cube = (1 + t) ** 3
    safe = jnp.where(t > -1, t, 0)
    likely = jnp.log(v) <= x**2 / 2 - d * (3 * safe * (1 + safe) + safe**3 - 3 * jnp.log1p(safe))
    return jnp.where((t > -1) & likely, d * cube, -1)


def _two_uniforms(words: Array) -> Arrays:
    """Return u in [0, 1), the upper 24 bits, and v in (0, 1), the lower 8 bits and a hash."""
    dtype = float_dtype()
    u = (words >> 8).astype(dtype) * 2.0**-24
    v = ((words << 24 | hashed(words) >> 8) >> 8).astype(dtype) * 2.0**-24 + 2.0**-25
    return u, v


def hashed(words: jax.Array) -> jax.Array:
    """Hash words of 32 bits, one to one, by multiplications and shifts.

    The constants are from the search of Wellons and TheIronBorn.
    """
    x = words + np.uint32(0x9E3779B9)
    x = (x ^ (x >> 16)) * np.uint32(0x21F0AAAD)
    x = (x ^ (x >> 15)) * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)


def deviance(t: Array) -> Array:
    """Return `(1 + t) log(1 + t) - t` for t >= -1, by its series if the terms would cancel."""
    near = xp.abs(t) < 0.1
    s, far = xp.where(near, t, 0), xp.where(near | (t <= -1), 1, t)
    series = s**2 * (
        1 / 2 - s * (1 / 6 - s * (1 / 12 - s * (1 / 20 - s * (1 / 30 - s * (1 / 42 - s / 56)))))
    )
    return xp.where(near, series, xp.where(t <= -1, 1, (1 + far) * xp.log1p(far) - far))


def stirling(k: Array) -> Array:
    """Return `(k! e^k / k^k)^2 / 2 pi` = k + 1/6 + 1/72k + ... for k = 0, 1, 2, ...

    The terms after k + 1/6 are a rational fit; the error is below 1e-8.
    """
    top = -3.084672120917846e-06 + k * (0.0049901738797081515 + k / 72)
    bottom = 0.00041064771477838984 + k * (0.3184705467530385 + k * (0.7025048427109624 + k))
    return k + 1 / 6 + top / bottom
