"""From replicates to estimates: percentiles, BCa and studentized intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._namespaces import Array, float_dtype, special, xp
from jaxmetrics.estimates import Estimate

__all__: list[str] = []


class Replicates(NamedTuple):
    """Hold what an interval is computed from."""

    value: Array  # (V,), of the counts themselves
    samples: Array  # (S, V)
    acceleration: Array | None = None  # (V,), where the method needs it


def estimate_of(given: Replicates, level: float, kind: str) -> Estimate:
    """Make the estimate of one kind of bootstrap, of V values."""
    low, high = KINDS[kind](given, _tails(level))
    return _estimate(given.value, low, high, given.samples)


def estimates_of(
    values: Any, samples: Any, acceleration: Any = None, *, level: float, kind: str
) -> Any:
    """Make estimates from pytrees of values `(...)` and replicates `(S, ...)`.

    `"bca"` needs the accelerations too. All leaves are put into one array, so that XLA, which takes
    half a second to compile what follows, does so once and not for each leaf.
    """
    leaves, structure = jax.tree.flatten(values)

    def flat(tree: Any, *lead: int) -> Array:
        return xp.concatenate(
            [x.astype(float_dtype(x)).reshape((*lead, -1)) for x in jax.tree.leaves(tree)], -1
        )

    value, drawn = flat(values), flat(samples, jax.tree.leaves(samples)[0].shape[0])
    given = Replicates(value, drawn, None if acceleration is None else flat(acceleration))
    estimates = estimate_of(given, level, kind)
    ends = np.cumsum([leaf.size for leaf in leaves])
    pieces = [
        jax.tree.map(lambda x: x[end - leaf.size : end].reshape(leaf.shape), estimates)  # noqa: B023  # called at once
        for leaf, end in zip(leaves, ends, strict=True)
    ]
    return jax.tree.unflatten(structure, pieces)


def acceleration_of(influence: Array, counts: Array) -> Array:
    """Return the acceleration of BCa, `sum U^3 / (6 (sum U^2)^1.5)`, from the influence of an
    example of each kind, `(..., R, U)`, less its mean over those of its stratum.

    Efron (1987), Better bootstrap confidence intervals, Journal of the American Statistical
    Association 82.
    """
    known = xp.where(xp.isfinite(influence) & (counts > 0), influence, 0)
    mean = divide((counts * known).sum(-1, keepdims=True), counts.sum(-1, keepdims=True))
    u = xp.where((counts > 0) & ~_is_same(known, mean), known - mean, 0)
    u = divide(u, xp.abs(u).max((-2, -1), keepdims=True))
    return divide((counts * u**3).sum((-2, -1)), 6 * safe_sqrt((counts * u**2).sum((-2, -1))) ** 3)


def _is_same(samples: Array, value: Array) -> Array:
    """Return where both are equal up to the rounding of two programs that compute the same."""
    return xp.abs(samples - value) <= 8 * xp.finfo(value.dtype).eps * xp.abs(value)


def _percentile(given: Replicates, tails: Array) -> tuple[Array, Array]:
    """Return the quantiles of the replicates."""
    low, high = _Ordered(given.samples).quantiles(_levels(tails, given.value))
    return low, high


def _basic(given: Replicates, tails: Array) -> tuple[Array, Array]:
    """Return the percentiles reflected at the value: replicates err as the value does."""
    low, high = _percentile(given, tails)
    return 2 * given.value - high, 2 * given.value - low


def _bca(given: Replicates, tails: Array) -> tuple[Array, Array]:
    """Return quantiles at levels moved by the bias z0 and by the acceleration."""
    value, samples, acceleration = given
    ordered = _Ordered(samples)
    same = _is_same(samples, value)
    below = ((samples < value) & ~same & xp.isfinite(samples)).sum(0) + same.sum(0) / 2
    count = xp.maximum(ordered.count, 1)
    # Where all replicates are on one side they say nothing of the bias, so take percentiles.
    one_sided = (below == 0) | (below == count)
    share = xp.clip(below / count, 0.5 / count, 1 - 0.5 / count)
    z0 = xp.where(one_sided, 0, special.ndtri(share))
    assert acceleration is not None
    acceleration = xp.where(one_sided, 0, acceleration)
    z = z0 + _levels(special.ndtri(tails), value)
    low, high = ordered.quantiles(special.ndtr(z0 + z / (1 - acceleration * z)))
    return low, high


# The ends of the interval, from the replicates and the two tails.
KINDS: dict[str, Callable[[Replicates, Array], tuple[Array, Array]]] = {
    "bca": _bca,
    "percentile": _percentile,
    "basic": _basic,
}


def studentized_estimate(
    value: Array, error: Array, samples: Array, sample_errors: Array, level: float
) -> Estimate:
    """Make the estimate from the quantiles of `(θ* - θ) / s*`."""
    known = sample_errors > 0
    t = xp.where(known, (samples - value) / xp.where(known, sample_errors, 1), xp.nan)
    t = xp.where(_is_same(samples, value), 0, t)
    t_low, t_high = _Ordered(t).quantiles(_levels(_tails(level), value))
    defined = xp.where(xp.isnan(t), xp.nan, samples)
    return _estimate(value, value - error * t_high, value - error * t_low, defined)


def posterior_estimate(samples: Array, level: float) -> Estimate:
    """Return the mean and equal-tailed interval of draws `(S, V)`."""
    return estimate_of(Replicates(mean_of_finite(samples), samples), level, "percentile")


def _tails(level: float) -> Array:
    return np.array([(1 - level) / 2, (1 + level) / 2])


def _levels(tails: Array, value: Array) -> Array:
    levels = tails.reshape((2, *(1,) * value.ndim)).astype(value.dtype)
    return xp.broadcast_to(levels, (2, *value.shape))


class _Ordered:
    """Hold samples `(S, ...)` in order, those that are not finite left out."""

    def __init__(self, samples: Array) -> None:
        finite = xp.isfinite(samples)
        self.count = finite.sum(0)
        self.values = xp.sort(xp.where(finite, samples, xp.inf), axis=0)

    def quantiles(self, q: Array) -> Array:
        """Return the quantiles at levels `(2, ...)`, linear between samples; NaN without any."""
        place = xp.clip(q, 0, 1) * xp.maximum(self.count - 1, 0)
        before = xp.floor(place).astype(xp.int32)
        after = xp.minimum(before + 1, xp.maximum(self.count - 1, 0))
        # One gather for both.
        ends = xp.take_along_axis(self.values, xp.concatenate([before, after]), axis=0)
        low, high = xp.split(ends, 2)
        between = low + (high - low) * (place - before)
        return xp.where((self.count > 0) & ~xp.isnan(q), between, xp.nan)


def _estimate(value: Array, low: Array, high: Array, samples: Array) -> Estimate:
    finite = xp.isfinite(samples)
    count = finite.sum(0)
    mean = mean_of_finite(samples)
    squares = xp.where(finite, (samples - mean) ** 2, 0).sum(0)
    error = xp.where(count > 1, xp.sqrt(squares / xp.maximum(count - 1, 1)), xp.nan)
    return Estimate(value, low, high, error, (len(samples) - count).astype(xp.int32))


def mean_of_finite(samples: Array) -> Array:
    """Return the mean of the finite samples; NaN where there is none."""
    finite = xp.isfinite(samples)
    return divide(xp.where(finite, samples, 0).sum(0), finite.sum(0).astype(samples.dtype), xp.nan)
