"""Confidence sequences: intervals of a mean that are valid even if you look after every batch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_float,
    as_mask,
    as_number,
    check_level,
    check_option,
    largest_eps,
    require,
)
from jaxmetrics._numerics.arithmetic import deviance, divide, stirling
from jaxmetrics._numerics.roots import root
from jaxmetrics._places.compilation import promoting
from jaxmetrics._places.namespaces import float_dtype
from jaxmetrics.estimates import Estimate, computed_estimate, with_level
from jaxmetrics.intervals.means import tolerated
from jaxmetrics.streaming.totals import add, as_floats, as_total, no_total

__all__ = ["ConfidenceSequence", "ConfidenceState", "confidence_sequence"]

_LARGEST_BET = 0.5


class ConfidenceState(NamedTuple):
    """State of a confidence sequence: sums over all values x so far, scaled to [0, 1].

    Every sum is an array of shape `(2,)`, a float and its rounding error. λ and ψ are defined in
    `confidence_sequence`.

    Attributes:
        number: number of values.
        total: sum of x.
        powers: sum of x^2.
        squares: sum of (x - mean so far)^2.
        bets: sum of λ.
        weighted: sum of λ x.
        penalty: sum of 4 (x - mean before)^2 ψ(λ).
    """

    number: jax.Array
    total: jax.Array
    powers: jax.Array
    squares: jax.Array
    bets: jax.Array
    weighted: jax.Array
    penalty: jax.Array


def confidence_sequence(
    level: float = 0.95,
    *,
    low: float = 0.0,
    high: float = 1.0,
    method: Literal["bernstein", "mixture"] = "bernstein",
) -> ConfidenceSequence:
    """Make a confidence sequence: an interval of a mean after each batch, all valid simultaneously.

    Use a confidence sequence to stop an evaluation early, for example as soon as the interval is
    narrower than 0.02. Ordinary 95 % intervals are not valid for this. The probability that at
    least one of them misses the mean is far greater than 5 %. To stop as soon as one checkpoint is
    better than another, pass the difference of their scores for each example. If scores are in
    [0, 1], set `low=-1`.

    Examples must be in random order, so that all values have the same expected value. Results of
    several hosts cannot be merged. In the formulas n is the number of values so far, and
    `α = 1 - level`.

    - `"bernstein"`: `sum λ x / sum λ ± (ln(2 / α) + sum 4 (x_t - m_t-1)^2 ψ(λ_t)) / sum λ`. Here
      x_t is value number t, m_t and s_t^2 estimate the mean and variance from the first t values,
      `λ_t = min(sqrt(2 ln(2 / α) / (s_t-1^2 t ln(1 + t))), 1/2)`, and
      `ψ(λ) = (-ln(1 - λ) - λ) / 4`. Source: Waudby-Smith and Ramdas (2024), Journal of the Royal
      Statistical Society B 86, theorem 2.
    - `"mixture"`: all means m with `n KL(mean, m) <= ln(1 / α) + r`. Here KL is the
      Kullback-Leibler divergence of Bernoulli distributions. r is the log-likelihood of the mean so
      far, minus the log-likelihood of a mixture of Bernoulli distributions with Jeffreys' prior.
      Source: Robbins (1970), Annals of Mathematical Statistics 41. For at least 2000 values 0 and
      1 with a mean between 0.1 and 0.9, this method is narrower than "bernstein".

    Args:
        level: the probability that the intervals after all batches contain the true mean.
        low, high: Python numbers, the least and the greatest possible value. If a value is not
            between these two numbers, up to rounding, the bounds are NaN.
        method: `"bernstein"` or `"mixture"`.

    Returns:
        `ConfidenceSequence` with the methods `init`, `update` and `compute`.

    >>> sequence = confidence_sequence()
    >>> state = sequence.init()
    >>> for i in range(10):
    ...     correct = jax.random.bernoulli(jax.random.key(i), 0.9, (500,))
    ...     state = sequence.update(state, correct)
    >>> print(f"{sequence.compute(state):.2f}")
    0.91 [0.89, 0.93]
    """
    least, greatest = as_number(low, "low"), as_number(high, "high")
    if least >= greatest:
        raise ValueError(f"low must be less than high, got low={low!r} and high={high!r}.")
    check_option(method, "method", ("bernstein", "mixture"))
    return ConfidenceSequence(check_level(level), least, greatest, method)


@dataclass(frozen=True)
class ConfidenceSequence:
    """Pure functions of a `ConfidenceState` that bound a mean, made by `confidence_sequence`.

    Attributes:
        level, low, high, method: the arguments of `confidence_sequence`.
    """

    level: float
    low: float
    high: float
    method: str = "bernstein"

    def init(self) -> ConfidenceState:
        """Return the initial state, without any values."""
        return _init()

    def update(
        self, state: ConfidenceState, values: ArrayLike, *, where: ArrayLike | None = None
    ) -> ConfidenceState:
        """Return the state after adding values `(n,)` in their order. Values where the mask `where`
        is False are ignored.
        """
        check_order(values=values, where=where)
        _check_state(state)
        array = as_array(values, "values")
        x = as_float(array, "values")
        mask = as_mask(where)
        if x.ndim != 1 or (mask is not None and mask.shape != x.shape):
            shapes = f"{x.shape}" if mask is None else f"{x.shape} and {mask.shape}"
            raise ValueError(f"values and where must have the same shape (n,), got {shapes}.")
        return _update(state, x, mask, sequence=self, eps=largest_eps(array))

    def compute(self, state: ConfidenceState) -> Estimate:
        """Return the mean so far, its bounds, and its standard error.

        If there are no values, the bounds are `low` and `high`.
        """
        _check_state(state)
        return _compute(state, sequence=self)


def _check_state(state: ConfidenceState) -> None:
    is_state = isinstance(state, ConfidenceState)
    require(is_state, "state", "be a ConfidenceState, as init returns it", state, TypeError)


@jax.jit
def _init() -> ConfidenceState:
    sums = (no_total((), is_integer=False) for _ in range(6))
    return ConfidenceState(no_total((), is_integer=True), *sums)


@promoting
@partial(jax.jit, static_argnames=("sequence", "eps"))
def _update(
    state: ConfidenceState,
    values: jax.Array,
    where: jax.Array | None,
    *,
    sequence: ConfidenceSequence,
    eps: float,
) -> ConfidenceState:
    keep = jnp.ones(values.shape, bool) if where is None else where
    x = jnp.where(keep, _scaled(values, sequence, eps), 0)
    t = as_floats(state.number) + jnp.cumsum(keep)
    mean, mean_before = _running((as_floats(state.total) + 0.5, x), t, keep)
    squares = jnp.where(keep, (x - mean) ** 2, 0)
    _, variance_before = _running((as_floats(state.squares) + 0.25, squares), t, keep)
    log_term = math.log(2 / (1 - sequence.level))
    t = jnp.maximum(t, 1)
    bet = jnp.sqrt(2 * log_term / (variance_before * t * jnp.log1p(t)))
    bet = jnp.where(keep, jnp.minimum(bet, _LARGEST_BET), 0)
    penalty = (x - mean_before) ** 2 * (-jnp.log1p(-bet) - bet)
    sums = (x, x**2, squares, bet, bet * x, jnp.where(keep, penalty, 0))
    added = (add(old, as_total(new.sum())) for old, new in zip(state[1:], sums, strict=True))
    return ConfidenceState(add(state.number, as_total(keep.sum(dtype=jnp.int32))), *added)


def _scaled(values: jax.Array, sequence: ConfidenceSequence, eps: float) -> jax.Array:
    """Scale values to [0, 1]; values that are beyond `low` or `high` by more than rounding become
    NaN.
    """
    low, high = (jnp.asarray(end, values.dtype) for end in (sequence.low, sequence.high))
    x = jnp.clip((values - low) / (high - low), 0, 1)
    least, greatest = tolerated((sequence.low, sequence.high), eps)
    return jnp.where((values >= least) & (values <= greatest), x, jnp.nan)


def _running(
    start_and_values: tuple[jax.Array, jax.Array], t: jax.Array, keep: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the means after and before each value, from sums that include one prior value."""
    start, values = start_and_values
    sums = start + jnp.cumsum(values)
    return sums / (t + 1), (sums - values) / jnp.where(keep, t, t + 1)


@promoting
@partial(jax.jit, static_argnames="sequence")
def _compute(state: ConfidenceState, *, sequence: ConfidenceSequence) -> Estimate:
    n, total, powers, _, bets, weighted, penalty = (as_floats(sums) for sums in state)
    value = divide(total, n, jnp.nan)
    if sequence.method == "mixture":
        ends = _mixture(total, n, sequence.level)
    else:
        centre = divide(weighted, bets, 0.5)
        reach = divide(math.log(2 / (1 - sequence.level)) + penalty, bets, jnp.inf)
        ends = centre - reach, centre + reach
    width = sequence.high - sequence.low
    low, high = (jnp.where(jnp.isnan(total), jnp.nan, jnp.clip(end, 0, 1)) for end in ends)
    variance = divide(jnp.maximum(powers - total * value, 0), n - 1, jnp.nan)
    error = width * jnp.sqrt(divide(variance, n, jnp.nan))
    value, low, high = (sequence.low + width * end for end in (value, low, high))
    found = computed_estimate(value.astype(float_dtype()), low, high, error, num_examples=n)
    return with_level(found, sequence.level, sequence.method, "anytime-valid")


def _mixture(total: jax.Array, n: jax.Array, level: float) -> tuple[jax.Array, jax.Array]:
    """Return the lowest and the highest mean that is not rejected by the mixture, for a sum of n
    values.

    The bounds are valid for any values in [0, 1], because the likelihood ratio is convex in the
    values, so that the expected value of the ratio is greatest if all values are 0 or 1.
    """
    ones, zeros = total, jnp.maximum(n - total, 0)
    # If we use Γ(k + 1/2) = (2k)! sqrt(π) / (4^k k!), the powers of e and k cancel.
    ratio = stirling(ones) * stirling(zeros) / (stirling(2 * ones) * stirling(2 * zeros))
    limit = jnp.log(2 * math.pi * stirling(n) * ratio) / 2 - math.log(1 - level)
    mean, rest = divide(ones, n, 0.5), divide(zeros, n, 0.5)  # 1 - mean has few digits near 0

    def reach(mean: jax.Array, rest: jax.Array) -> jax.Array:
        """Return the distance from the observed mean to the highest mean that is not rejected."""

        def excess(distance: jax.Array) -> tuple[jax.Array, jax.Array]:
            m, q = mean + distance, jnp.maximum(rest - distance, 0)
            kl = m * deviance(divide(-distance, m)) + q * deviance(divide(distance, q))
            return n * kl - limit, divide(n * distance, m * q)

        zero = jnp.zeros_like(mean)
        return jnp.where(n > 0, root(excess, zero, rest, rest / 2, rtol=1e-6), rest)

    return mean - reach(rest, mean), mean + reach(mean, rest)
