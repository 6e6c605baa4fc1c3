"""Bootstrap estimates from replicates: percentile, basic, BCa and studentized intervals."""

from __future__ import annotations

import numpy as np

from jaxmetrics._arguments.single import INT32_MAX
from jaxmetrics._numerics.arithmetic import append_axes, divide, safe_sqrt
from jaxmetrics._places.namespaces import Array, lax, special, xp
from jaxmetrics.estimates import Estimate

__all__: list[str] = []


KINDS = ("bca", "percentile", "basic")


def estimate_of(
    value: Array, samples: Array, level: float, kind: str, acceleration: Array | float = 0.0
) -> Estimate:
    """Return the estimate of values `(V,)` from replicates `(S, V)` by one kind of bootstrap."""
    levels = _tails(level, value)
    if kind == "bca":  # the levels are corrected for the bias z0 and for the acceleration
        finite, same = xp.isfinite(samples), _is_same(samples, value)
        below = ((samples < value) & ~same & finite).sum(0) + same.sum(0) / 2
        count = xp.maximum(finite.sum(0), 1)
        # If all replicates lie on one side of the value, the bias is unknown.
        one_sided = (below == 0) | (below == count)
        share = xp.clip(below / count, 0.5 / count, 1 - 0.5 / count)
        z0 = xp.where(one_sided, 0, special.ndtri(share))
        acceleration = xp.where(one_sided, 0, acceleration)
        z = z0 + special.ndtri(levels)
        levels = special.ndtr(z0 + z / (1 - acceleration * z))
    low, high = _quantiles(samples, levels)
    if kind == "basic":  # the quantiles are reflected at the value
        low, high = 2 * value - high, 2 * value - low
    return _estimate(value, low, high, samples)


def acceleration_of(influence: Array, counts: Array) -> Array:
    """Return the acceleration of BCa, `sum u^3 / (6 (sum u^2)^1.5)`.

    In this formula, u is the influence of an example, centred within its stratum. `influence`,
    `(..., R, U)`, has one entry for each kind of example, and the sums run over all examples.
    """
    known = xp.where(xp.isfinite(influence) & (counts > 0), influence, 0)
    mean = divide((counts * known).sum(-1, keepdims=True), counts.sum(-1, keepdims=True))
    u = xp.where((counts > 0) & ~_is_same(known, mean), known - mean, 0)
    u = divide(u, xp.abs(u).max((-2, -1), keepdims=True))
    return divide((counts * u**3).sum((-2, -1)), 6 * safe_sqrt((counts * u**2).sum((-2, -1))) ** 3)


def _is_same(samples: Array, value: Array) -> Array:
    """Return where samples are equal to the value, up to rounding."""
    return xp.abs(samples - value) <= 8 * xp.finfo(value.dtype).eps * xp.abs(value)


def studentized_estimate(
    value: Array, error: Array, samples: Array, sample_errors: Array, level: float
) -> Estimate:
    """Return the estimate from the quantiles of `(θ* - θ) / s*` (studentized bootstrap)."""
    known = sample_errors > 0
    t = xp.where(known, (samples - value) / xp.where(known, sample_errors, 1), xp.nan)
    t = xp.where(_is_same(samples, value), 0, t)
    t_low, t_high = _quantiles(t, _tails(level, value))
    defined = xp.where(xp.isnan(t), xp.nan, samples)
    return _estimate(value, value - error * t_high, value - error * t_low, defined)


def posterior_estimate(samples: Array, level: float) -> Estimate:
    """Return the posterior mean and the equal-tailed interval of draws `(S, V)`."""
    return estimate_of(mean_of_finite(samples), samples, level, "percentile")


def _tails(level: float, value: Array) -> Array:
    tails = np.array([(1 - level) / 2, (1 + level) / 2], value.dtype)
    return xp.broadcast_to(append_axes(tails, value.ndim), (2, *value.shape))


def _quantiles(samples: Array, levels: Array) -> Array:
    """Return quantiles of the finite samples `(S, ...)` at levels `(2, ...)`, linearly
    interpolated.
    """
    finite = xp.isfinite(samples)
    count = finite.sum(0)
    last = xp.maximum(count - 1, 0)
    place = xp.clip(levels, 0, 1) * last
    before = xp.floor(place).astype(xp.int32)
    after = xp.minimum(before + 1, last)
    # Both levels need only one gather.
    ranks = xp.concatenate([before, after])
    low, high = xp.split(_order_statistics(xp.where(finite, samples, xp.inf), ranks), 2)
    between = low + (high - low) * (place - before)
    return xp.where((count > 0) & ~xp.isnan(levels), between, xp.nan)


def _order_statistics(numbers: Array, ranks: Array) -> Array:
    """Return the numbers `(S, ...)` that have the ranks `(R, ...)` if they are sorted.

    A TPU, for which a sort of many numbers takes ten seconds to compile, counts float32 numbers.
    """
    if numbers.dtype != np.float32:
        return _by_sorting(numbers, ranks)
    return lax.platform_dependent(numbers, ranks, tpu=_by_counting, default=_by_sorting)


def _by_sorting(numbers: Array, ranks: Array) -> Array:
    # A stable sort of numbers would also sort their positions.
    ordered = lax.sort(numbers, dimension=0, is_stable=False)
    return xp.take_along_axis(ordered, ranks, axis=0)


def _by_counting(numbers: Array, ranks: Array) -> Array:
    """Find the bits of each order statistic, the highest bit first.

    A bit is 1 if at most as many numbers as the rank are smaller than the number with this bit.
    """

    def reordered(bits: Array) -> Array:
        """Convert bits of floats to integers in the same order, or such integers to bits."""
        return bits ^ (bits >> 31 & INT32_MAX)

    integers = reordered(lax.bitcast_convert_type(numbers, xp.int32))

    def add_bit(bits: Array, bit: Array) -> tuple[Array, None]:
        tried = bits + bit  # the first bit is negative and overflows, which makes -2^31 to 0
        smaller = (integers < tried[:, None]).sum(1)
        return xp.where(smaller <= ranks, tried, bits), None

    least = 0 * ranks.astype(xp.int32) + xp.iinfo(xp.int32).min
    bits = np.left_shift(1, np.arange(31, -1, -1), dtype=np.int32)
    return lax.bitcast_convert_type(reordered(lax.scan(add_bit, least, bits)[0]), numbers.dtype)


def _estimate(value: Array, low: Array, high: Array, samples: Array) -> Estimate:
    undefined = (~xp.isfinite(samples)).sum(0).astype(xp.int32)
    return Estimate(value, low, high, deviation(samples), undefined)


def deviation(samples: Array) -> Array:
    """Return the standard deviation of the finite samples; NaN if there are fewer than two."""
    finite = xp.isfinite(samples)
    count = finite.sum(0)
    squares = xp.where(finite, (samples - mean_of_finite(samples)) ** 2, 0).sum(0)
    return xp.where(count > 1, xp.sqrt(squares / xp.maximum(count - 1, 1)), xp.nan)


def mean_of_finite(samples: Array) -> Array:
    """Return the mean of the finite samples; NaN if there are none."""
    finite = xp.isfinite(samples)
    return divide(xp.where(finite, samples, 0).sum(0), finite.sum(0).astype(samples.dtype), xp.nan)
