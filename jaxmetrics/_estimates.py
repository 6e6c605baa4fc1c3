"""Estimates: what a value and its replicates, or its derivatives, say of its uncertainty; checks of counts to draw from.

Replicates are pytrees of `(S, ...)`, made by `_replicates`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from jaxmetrics import _replicates
from jaxmetrics._arrays import check_level, check_size, divide, float_dtype, safe_sqrt

__all__: list[str] = []

Metric: TypeAlias = Callable[[jax.Array], Any]


def as_floats(metric: Metric) -> Metric:
    """The metric with results in the computing dtype; one function for one metric, so that jit knows it again."""
    if not callable(metric):
        raise TypeError(
            f"metric must be a function of counts, got {type(metric).__name__}; for several at once, one that returns a dict:"
            ' lambda counts: {"accuracy": jaxmetrics.accuracy(counts), ...}.'
        )
    return _as_floats(metric)


@lru_cache(maxsize=256)
def _as_floats(metric: Metric) -> Metric:
    def call(counts: jax.Array) -> Any:
        values = jax.tree.map(lambda x: jnp.asarray(x, float_dtype()), metric(counts))
        if not jax.tree.leaves(values):
            raise ValueError(f"metric must return an array or a pytree of arrays, got {values!r}.")
        return values

    return call


class Estimate(NamedTuple):
    """A value, the ends of its interval and its standard error: arrays of one shape.

    `num_undefined` counts the replicates in which the metric was NaN or infinite. They are left out of the other figures, so
    that the interval holds for test sets in which the metric is defined; 0 where nothing was drawn.
    """

    value: jax.Array
    low: jax.Array
    high: jax.Array
    standard_error: jax.Array
    num_undefined: jax.Array


def normal_quantile(level: float) -> float:
    """z such that a standard normal lies in [-z, z] with probability `level`."""
    return -NormalDist().inv_cdf((1 - check_level(level)) / 2)


def wilson_interval(s: jax.Array, n: jax.Array, z: float) -> tuple[jax.Array, jax.Array]:
    """Of the probability behind s successes out of n trials, `0 <= s <= n`; [0, 1] without trials."""
    p = divide(s, n, jnp.nan)
    low, high = _wilson_roots(s, n, z)
    high = jnp.where(2 * s <= n, high, 1 - _wilson_roots(n - s, n, z)[0])  # exactly 1 at s = n
    return jnp.where(low > p, p, low), jnp.where(high < p, p, high)  # at a tiny level rounding may cross


def _wilson_roots(s: jax.Array, n: jax.Array, z: float) -> tuple[jax.Array, jax.Array]:
    """The roots of Wilson's quadratic; the smaller by their product, (s/n)^2 n / (n + z^2), so exactly 0 at s = 0."""
    numerator = 2 * s + z**2 + z * jnp.sqrt(z**2 + 4 * s * divide(n - s, n))
    return 2 * s * divide(s, n) / numerator, numerator / (2 * (n + z**2))


def check_num_samples(num_samples: int) -> int:
    if check_size(num_samples, "num_samples") < 2:
        raise ValueError("num_samples must be at least 2.")
    return num_samples


def frequencies(counts: jax.Array, name: str = "counts") -> jax.Array:
    """Counts or sums of weights, in matrices (or cubes, if they are `paired`): if jit hides a negative one, all are NaN."""
    axes = (-3, -2, -1) if name == "paired" else (-2, -1)
    _refuse(name, counts, counts >= 0, "a count >= 0")
    return jnp.where((counts >= 0).all(axes, keepdims=True), counts, jnp.nan)


def numbers_of_examples(counts: jax.Array, name: str = "counts") -> jax.Array:
    """The same of whole numbers."""
    axes = (-3, -2, -1) if name == "paired" else (-2, -1)
    valid = (counts >= 0) & (counts == jnp.round(counts))
    _refuse(name, counts, valid, "a number of examples, since sums of weights do not say how many there are")
    few = counts.sum(axes, keepdims=True) < 2.0**31
    if not isinstance(counts, jax.core.Tracer) and not bool((few | ~jnp.isfinite(counts)).all()):
        raise ValueError(f"{name} holds 2^31 examples or more for one estimate: derivatives and posteriors have no such limit.")
    return jnp.where(valid.all(axes, keepdims=True) & few, counts, jnp.nan)


def _refuse(name: str, counts: jax.Array, valid: jax.Array, expected: str) -> None:
    if not isinstance(valid, jax.core.Tracer) and not bool(valid.all()):
        index = tuple(np.argwhere(~np.asarray(valid))[0].tolist())
        value = jax.lax.stop_gradient(counts)[index]  # known also where derivatives are taken
        raise ValueError(f"{name}{list(index)} is {float(value):g}, expected {expected}.")


def is_possible(counts: jax.Array) -> jax.Array:
    return (counts >= 0).all((-2, -1))


def nan_unless(possible: jax.Array, estimates: Any) -> Any:
    """NaN, but for the numbers of undefined replicates, for matrices of a batch that have no interval."""

    def mask(x: jax.Array) -> jax.Array:
        return x if x.dtype == jnp.int32 else jnp.where(_expand(possible, x.ndim - possible.ndim), x, jnp.nan)

    return jax.tree.map(mask, estimates)


def check_finite(estimates: Any, size: int) -> Any:
    leaves = jax.tree.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate))
    undefined = [leaf.num_undefined for leaf in leaves if isinstance(leaf, Estimate)]
    known = not any(isinstance(n, jax.core.Tracer) for n in undefined)
    if known and undefined and all(n.size and bool((n == size).all()) for n in undefined):
        raise ValueError(f"metric is NaN or infinite in all of {size} replicates: it has no interval.")
    return estimates


def value_and_error(metric: Metric, counts: jax.Array, *, stratified: bool) -> tuple[Any, Any]:
    """A metric of one matrix and its standard error, two pytrees alike."""
    slopes = jax.jacrev(metric)(counts)

    def error(slope: jax.Array) -> jax.Array:
        axes = (-1,) if stratified else (-2, -1)
        total = counts.sum(axes, keepdims=True)
        centred = slope - divide((counts * slope).sum(axes, keepdims=True), total)
        # No square root of a count, which has no slope at 0, and relative to the largest slope, so that no square overflows.
        largest = jax.lax.stop_gradient(jnp.abs(centred).max((-2, -1), keepdims=True))
        relative = divide(centred, largest)
        return largest[..., 0, 0] * safe_sqrt((counts * relative * relative).sum((-2, -1)))

    return metric(counts), jax.tree.map(error, slopes)


def normal_estimate(value: jax.Array, error: jax.Array, z: float, transform: str | None = None) -> Estimate:
    low, high = _normal_interval(value, z * error, transform)
    return Estimate(value, low, high, error, jnp.zeros(value.shape, jnp.int32))


def _normal_interval(value: jax.Array, reach: jax.Array, transform: str | None) -> tuple[jax.Array, jax.Array]:
    if transform is None:
        return value - reach, value + reach
    if transform == "logit":
        inside, slope = (value > 0) & (value < 1), value * (1 - value)
        centre = jax.scipy.special.logit(jnp.where(inside, value, 0.5))
    else:
        inside, slope = jnp.abs(value) < 1, 1 - value**2
        centre = jnp.arctanh(jnp.where(inside, value, 0.5))
    reach = reach / jnp.where(inside, slope, 1)
    ends = jnp.stack([centre - reach, centre + reach])
    low, high = jax.nn.sigmoid(ends) if transform == "logit" else jnp.tanh(ends)
    at_an_end = ~inside & ~jnp.isnan(reach)
    return jnp.where(at_an_end, value, low), jnp.where(at_an_end, value, high)


def bootstrap_of(
    key: jax.Array,
    function: Metric,
    taken: jax.Array,
    *,
    numbers: int,
    size: int,
    level: float,
    method: str,
    stratified: bool,
    examples: str,
) -> tuple[Any, Any]:
    """The estimates of a function of cells `(K, W)`, and its replicates `(S, ...)`; `examples` from `how_many`."""
    draw = _replicates.stratified_multinomial if stratified else _replicates.multinomial
    if method == "studentized":
        with_error = partial(value_and_error, function, stratified=stratified)
        values, errors = of_each(with_error, taken, numbers)
        samples, sample_errors = _replicates.evaluate(draw, with_error, key, taken, size=size, numbers=numbers)
        studentized = partial(_studentized, tails=_tails(level))
        return jax.tree.map(studentized, values, errors, samples, sample_errors), samples
    values = of_each(function, taken, numbers)
    samples = _replicates.evaluate(draw, function, key, taken, size=size, numbers=numbers)
    acceleration = _acceleration(function, taken, numbers, stratified, examples) if method == "bca" else None
    return estimates_of(values, samples, acceleration, level=level, method=method), samples


def estimates_of(values: Any, samples: Any, acceleration: Any = None, *, level: float, method: str) -> Any:
    """From pytrees of values `(...)` and replicates `(S, ...)`; "bca" needs its acceleration.

    All numbers are sorted in one array: XLA takes half a second to compile what follows, once or for each leaf.
    """
    leaves, structure = jax.tree.flatten(values)

    def flat(tree: Any, *lead: int) -> jax.Array:
        return jnp.concatenate([x.astype(float_dtype()).reshape(*lead, -1) for x in jax.tree.leaves(tree)], -1)

    value, drawn = flat(values), flat(samples, jax.tree.leaves(samples)[0].shape[0])
    if method == "bca":
        estimates = _bca(value, drawn, flat(acceleration), tails=_tails(level))
    else:
        estimates = _percentile(value, drawn, tails=_tails(level), basic=method == "basic")
    ends = np.cumsum([leaf.size for leaf in leaves])
    pieces = [
        jax.tree.map(lambda x: x[end - leaf.size : end].reshape(leaf.shape), estimates)  # noqa: B023
        for leaf, end in zip(leaves, ends, strict=True)
    ]
    return jax.tree.unflatten(structure, pieces)


def _percentile(value: jax.Array, samples: jax.Array, *, tails: jax.Array, basic: bool) -> Estimate:
    low, high = _Ordered(samples).quantiles(_levels(tails, value))
    low, high = (2 * value - high, 2 * value - low) if basic else (low, high)
    return _estimate(value, low, high, samples)


def _studentized(
    value: jax.Array, error: jax.Array, samples: jax.Array, sample_errors: jax.Array, *, tails: jax.Array
) -> Estimate:
    known = sample_errors > 0
    t = jnp.where(known, (samples - value) / jnp.where(known, sample_errors, 1), jnp.nan)
    t = jnp.where(_is_same(samples, value), 0, t)
    t_low, t_high = _Ordered(t).quantiles(_levels(tails, value))
    return _estimate(value, value - error * t_high, value - error * t_low, jnp.where(jnp.isnan(t), jnp.nan, samples))


def _bca(value: jax.Array, samples: jax.Array, acceleration: jax.Array, *, tails: jax.Array) -> Estimate:
    ordered = _Ordered(samples)
    same = _is_same(samples, value)
    below = ((samples < value) & ~same & jnp.isfinite(samples)).sum(0) + same.sum(0) / 2
    count = jnp.maximum(ordered.count, 1)
    one_sided = (below == 0) | (below == count)  # says nothing of the bias: percentiles
    bias = jnp.where(one_sided, 0, ndtri(jnp.clip(below / count, 0.5 / count, 1 - 0.5 / count)))
    acceleration = jnp.where(one_sided, 0, acceleration)
    z = bias + ndtri(_levels(tails, value))
    low, high = ordered.quantiles(ndtr(bias + z / (1 - acceleration * z)))
    return _estimate(value, low, high, samples)


_FEW = 10_000  # examples; leaving out one of more changes a metric by little more than the rounding of float32


def how_many(counts: jax.Array) -> str:
    """ "few" examples in each matrix, so that the jackknife sees a single one in float32, or "many"; "either" if not known."""
    if isinstance(counts, jax.core.Tracer):
        return "either"
    few = counts.sum((-2, -1)) < _FEW
    return "few" if bool(few.all()) else "either" if bool(few.any()) else "many"


def _acceleration(function: Metric, taken: jax.Array, numbers: int, stratified: bool, examples: str) -> Any:
    """The acceleration of BCa, by the influence of each example on the metric.

    That is the metric of all less the metric without one, the jackknife. Where the examples are many, or the cells so many that
    this would take longer than the replicates, it is the derivative, to which the jackknife tends.
    """
    k, width = taken.shape[-2:]

    def left_out(matrix: jax.Array) -> Any:
        ones = jnp.eye(k * width, dtype=matrix.dtype).reshape(-1, k, width)
        values = jax.vmap(lambda one: function(jnp.maximum(matrix - one, 0)))(ones)
        return jax.tree.map(lambda v: -jnp.moveaxis(v, 0, -1).reshape(*v.shape[1:], k, width), values)

    if k * width * numbers > 2**26:
        examples = "many"
    if examples != "few":
        influence = slopes = of_each(jax.jacrev(function), taken, numbers)
    if examples != "many":
        influence = jackknifed = of_each(left_out, taken, numbers * k * width)
    if examples == "either":
        few = taken.sum((-2, -1)) < _FEW
        influence = jax.tree.map(lambda j, d: jnp.where(_expand(few, j.ndim - few.ndim), j, d), jackknifed, slopes)

    def acceleration(u: jax.Array) -> jax.Array:
        return acceleration_of(u, taken.reshape(*taken.shape[:-2], *(1,) * (u.ndim - taken.ndim), k, width), stratified)

    return jax.tree.map(acceleration, influence)


def acceleration_of(influence: jax.Array, counts: jax.Array, stratified: bool = False) -> jax.Array:
    """`sum U^3 / (6 (sum U^2)^1.5)`, U the influence `(..., K, W)` of the examples in each cell, less its mean."""
    axes = (-1,) if stratified else (-2, -1)
    known = jnp.where(jnp.isfinite(influence) & (counts > 0), influence, 0)
    mean = divide((counts * known).sum(axes, keepdims=True), counts.sum(axes, keepdims=True))
    u = jnp.where((counts > 0) & ~_is_same(known, mean), known - mean, 0)
    u = divide(u, jnp.abs(u).max((-2, -1), keepdims=True))
    return divide((counts * u**3).sum((-2, -1)), 6 * safe_sqrt((counts * u**2).sum((-2, -1))) ** 3)


def posterior_estimates(samples: Any, level: float) -> Any:
    """Mean and equal-tailed interval of draws `(S, ...)`."""
    return estimates_of(jax.tree.map(mean_of_finite, samples), samples, level=level, method="percentile")


def _tails(level: float) -> jax.Array:
    return jnp.array([(1 - level) / 2, (1 + level) / 2])


def _levels(tails: jax.Array, value: jax.Array) -> jax.Array:
    return jnp.broadcast_to(tails.reshape(2, *(1,) * value.ndim), (2, *value.shape))


def _is_same(samples: jax.Array, value: jax.Array) -> jax.Array:
    """Equal up to the rounding of two programs that compute the same."""
    return jnp.abs(samples - value) <= 8 * jnp.finfo(value.dtype).eps * jnp.abs(value)


class _Ordered:
    """Samples `(S, ...)` sorted, those that are not finite left out."""

    def __init__(self, samples: jax.Array) -> None:
        finite = jnp.isfinite(samples)
        self.count = finite.sum(0)
        self.values = jnp.sort(jnp.where(finite, samples, jnp.inf), axis=0)

    def quantiles(self, q: jax.Array) -> jax.Array:
        """At levels `(2, ...)`, linear between the samples; NaN if there are none."""
        place = jnp.clip(q, 0, 1) * jnp.maximum(self.count - 1, 0)
        before = jnp.floor(place).astype(jnp.int32)
        low, high = (
            jnp.take_along_axis(self.values, i, axis=0)
            for i in (before, jnp.minimum(before + 1, jnp.maximum(self.count - 1, 0)))
        )
        between = low + (high - low) * (place - before)
        return jnp.where((self.count > 0) & ~jnp.isnan(q), between, jnp.nan)


def _estimate(value: jax.Array, low: jax.Array, high: jax.Array, samples: jax.Array) -> Estimate:
    finite = jnp.isfinite(samples)
    count = finite.sum(0)
    mean = mean_of_finite(samples)
    squares = jnp.where(finite, (samples - mean) ** 2, 0).sum(0)
    error = jnp.where(count > 1, jnp.sqrt(squares / jnp.maximum(count - 1, 1)), jnp.nan)
    return Estimate(value, low, high, error, (len(samples) - count).astype(jnp.int32))


def mean_of_finite(samples: jax.Array) -> jax.Array:
    """NaN where there is none."""
    finite = jnp.isfinite(samples)
    return divide(jnp.where(finite, samples, 0).sum(0), finite.sum(0).astype(samples.dtype), jnp.nan)


def of_each(function: Callable[[jax.Array], Any], matrices: jax.Array, numbers: int) -> Any:
    """`function` of each matrix `(K, W)` of a batch, which makes so many numbers on its way."""
    *batch, k, width = matrices.shape
    values = _replicates.each(function, matrices.reshape(-1, k, width), numbers)
    return jax.tree.map(lambda v: v.reshape(*batch, *v.shape[1:]), values)


def _expand(x: jax.Array, axes: int) -> jax.Array:
    return x.reshape(*x.shape, *(1,) * axes)
