"""Intervals: an estimate with its lower and upper end.

`level` is the probability with which the interval is meant to contain the true value, 0.95 unless said otherwise.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._arrays import ArrayLike, as_float, check_level, divide, safe_sqrt

__all__ = ["Estimate", "proportion_interval"]


class Estimate(NamedTuple):
    """A value, the ends of its interval and its standard error: arrays of one shape."""

    value: jax.Array
    low: jax.Array
    high: jax.Array
    standard_error: jax.Array


def proportion_interval(
    successes: ArrayLike,
    trials: ArrayLike,
    *,
    level: float = 0.95,
    method: Literal["wilson", "agresti_coull"] = "wilson",
) -> Estimate:
    """Interval for the probability behind `successes` out of `trials`.

    With p = successes / trials, n = trials and z the normal quantile of `level`:

    - `"wilson"`: all probabilities that a score test does not reject,
      `(p + z^2/2n ± z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n)`. Wilson (1927), JASA 22.
    - `"agresti_coull"`: Wilson's midpoint c ± `z sqrt(c (1 - c) / (n + z^2))`, cut to [0, 1]. It contains Wilson's interval.
      Agresti and Coull (1998), The American Statistician 52.

    Args:
        successes, trials: counts of any shapes that broadcast; sums of weights are read as frequencies. Successes that
            exceed the trials by rounding (8 ulp) count as equal.

    Returns:
        `Estimate`, fractions in [0, 1], `standard_error = sqrt(p (1 - p) / n)`. Without trials the value is NaN and the
        interval [0, 1]; `successes` outside `[0, trials]` give NaN.

    Raises:
        ValueError: `level` outside (0, 1) or an unknown method.

    >>> estimate = proportion_interval(18, 20)
    >>> estimate.low, estimate.high
    (Array(0.698966, dtype=float32), Array(0.972134, dtype=float32))
    """
    if method not in ("wilson", "agresti_coull"):
        raise ValueError(f'method must be "wilson" or "agresti_coull", got {method!r}.')
    z = normal_quantile(level)
    s, n = jnp.broadcast_arrays(as_float(successes, "successes"), as_float(trials, "trials"))
    s = jnp.where((s > n) & (s <= n * (1 + 8 * jnp.finfo(n.dtype).eps)), n, s)  # sums of weights, rounded apart
    possible = (s >= 0) & (s <= n)
    s, n = jnp.where(possible, s, jnp.nan), jnp.where(possible, n, jnp.nan)
    p = divide(s, n, jnp.nan)
    if method == "wilson":
        low, high = _wilson_roots(s, n, z)
        high = jnp.where(2 * s <= n, high, 1 - _wilson_roots(n - s, n, z)[0])  # exactly 1 at s = n
    else:
        centre = (s + z**2 / 2) / (n + z**2)
        half_width = z * jnp.sqrt(centre * ((n - s + z**2 / 2) / (n + z**2)) / (n + z**2))
        low, high = jnp.maximum(centre - half_width, 0), jnp.minimum(centre + half_width, 1)
    low, high = jnp.where(low > p, p, low), jnp.where(high < p, p, high)  # at a tiny level rounding may cross
    return Estimate(p, low, high, safe_sqrt(divide(p * divide(n - s, n, jnp.nan), n, jnp.nan)))


def normal_quantile(level: float) -> float:
    """z such that a standard normal lies in [-z, z] with probability `level`."""
    return -NormalDist().inv_cdf((1 - check_level(level)) / 2)


def _wilson_roots(s: jax.Array, n: jax.Array, z: float) -> tuple[jax.Array, jax.Array]:
    """The roots of Wilson's quadratic; the smaller by their product, (s/n)^2 n / (n + z^2), so exactly 0 at s = 0."""
    numerator = 2 * s + z**2 + z * jnp.sqrt(z**2 + 4 * s * divide(n - s, n))
    return 2 * s * divide(s, n) / numerator, numerator / (2 * (n + z**2))
