"""Estimates: what a value and its replicates, or its derivatives, say of its uncertainty; checks of counts to draw from.

Replicates are pytrees of `(S, ...)`, made by `_replicates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from jaxmetrics import _replicates
from jaxmetrics._arrays import check_level, check_size, divide, refuse_where, safe_sqrt
from jaxmetrics._backends import Array, float_dtype, is_jax, is_known, lax, on_device, special, xp
from jaxmetrics._derivatives import jacobian, of_cells
from jaxmetrics._keys import Key
from jaxmetrics._replicates import of_each

__all__: list[str] = []

Metric: TypeAlias = Callable[[Array], Any]


def as_floats(metric: Metric) -> Metric:
    """The metric with results in the computing dtype."""
    if not callable(metric):
        raise TypeError(
            f"metric must be a function of counts, got {type(metric).__name__}; for several at once, one that returns a dict:"
            ' lambda counts: {"accuracy": jaxmetrics.accuracy(counts), ...}.'
        )

    def call(counts: Array) -> Any:
        values = jax.tree.map(_as_float, metric(counts))
        if not jax.tree.leaves(values):
            raise ValueError(f"metric must return an array or a pytree of arrays, got {values!r}.")
        return values

    return call


def _as_float(x: Any) -> Array:
    if is_jax(x):
        return x.astype(float_dtype(x))
    array = np.asarray(x)
    return array if array.dtype == np.complex128 else array.astype(float)  # complex: derivatives


def where_answered(metric: Metric, tables: Array, example: np.ndarray | None = None) -> Array:
    """Tables of the host, moved to the device if that is where the metric answers: of the first of them, or of the example."""
    if on_device(tables):
        return tables
    if example is None:
        example = tables.reshape((-1, *tables.shape[-2:]))[0] if tables.size else np.ones(tables.shape[-2:])
    try:
        moves = on_device(metric(example))
    except AttributeError:  # such as .at, which arrays of JAX have alone
        moves = True
    return jax.numpy.asarray(tables, float_dtype()) if moves else tables


class Estimate(NamedTuple):
    """A value, the ends of its interval and its standard error: arrays of one shape.

    `num_undefined` counts the replicates in which the metric was NaN or infinite. They are left out of the other figures, so
    that the interval holds for test sets in which the metric is defined; 0 where nothing was drawn.
    """

    value: Array
    low: Array
    high: Array
    standard_error: Array
    num_undefined: Array


def normal_quantile(level: float) -> float:
    """z such that a standard normal lies in [-z, z] with probability `level`."""
    return -NormalDist().inv_cdf((1 - check_level(level)) / 2)


def wilson_interval(s: Array, n: Array, z: float) -> tuple[Array, Array]:
    """Of the probability behind s successes out of n trials, `0 <= s <= n`; [0, 1] without trials."""
    p = divide(s, n, xp.nan)
    low, high = _wilson_roots(s, n, z)
    high = xp.where(2 * s <= n, high, 1 - _wilson_roots(n - s, n, z)[0])  # exactly 1 at s = n
    return xp.where(low > p, p, low), xp.where(high < p, p, high)  # at a tiny level rounding may cross


def _wilson_roots(s: Array, n: Array, z: float) -> tuple[Array, Array]:
    """The roots of Wilson's quadratic; the smaller by their product, (s/n)^2 n / (n + z^2), so exactly 0 at s = 0."""
    numerator = 2 * s + z**2 + z * xp.sqrt(z**2 + 4 * s * divide(n - s, n))
    return 2 * s * divide(s, n) / numerator, numerator / (2 * (n + z**2))


def check_num_samples(num_samples: int) -> int:
    if check_size(num_samples, "num_samples") < 2:
        raise ValueError("num_samples must be at least 2.")
    return num_samples


def frequencies(counts: Array, name: str = "counts") -> Array:
    """Counts or sums of weights, in matrices (or cubes, if they are `paired`): if jit hides a negative one, all are NaN."""
    axes = (-3, -2, -1) if name == "paired" else (-2, -1)
    seen = _seen(counts)
    if seen is not None:
        refuse_where(~(seen >= 0), seen, name, "expected a count >= 0.")
        return counts
    return xp.where((counts >= 0).all(axes, keepdims=True), counts, xp.nan)


def numbers_of_examples(counts: Array, name: str = "counts") -> Array:
    """The same of whole numbers."""
    axes = (-3, -2, -1) if name == "paired" else (-2, -1)
    seen = _seen(counts)
    if seen is None:
        valid = (counts >= 0) & (counts == xp.round(counts))
        few = counts.sum(axes, keepdims=True) < _TOO_MANY
        return xp.where(valid.all(axes, keepdims=True) & few, counts, xp.nan)
    valid = (seen >= 0) & (seen == np.round(seen))
    refuse_where(~valid, seen, name, "expected a number of examples, since sums of weights do not say how many there are.")
    if (seen.sum(axes) >= _TOO_MANY).any():
        raise ValueError(f"{name} holds 2^31 examples or more for one estimate: derivatives and posteriors have no such limit.")
    return counts


_TOO_MANY = 2.0**31


def _seen(x: Array) -> np.ndarray | None:
    """The values of an array, also where derivatives are taken, but not where jit or vmap hides them."""
    try:
        return np.asarray(x if is_known(x) else lax.stop_gradient(x))
    except jax.errors.TracerArrayConversionError:
        return None


def is_possible(counts: Array) -> Array:
    return (counts >= 0).all((-2, -1))


def nan_unless(possible: Array, estimates: Any) -> Any:
    """NaN, but for the numbers of undefined replicates, for matrices of a batch that have no interval."""

    def mask(x: Array) -> Array:
        return x if x.dtype == xp.int32 else xp.where(_expand(possible, x.ndim - possible.ndim), x, xp.nan)

    return jax.tree.map(mask, estimates)


def check_finite(estimates: Any, size: int) -> Any:
    leaves = jax.tree.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate))
    undefined = [leaf.num_undefined for leaf in leaves if isinstance(leaf, Estimate)]
    known = all(map(is_known, undefined))
    if known and undefined and all(n.size and bool((n == size).all()) for n in undefined):
        raise ValueError(f"metric is NaN or infinite in all of {size} replicates: it has no interval.")
    return estimates


def value_and_error(metric: Metric, counts: Array, *, stratified: bool, numbers: int = 0) -> tuple[Any, Any]:
    """A metric of one table `(K, W)`, which makes so many numbers on its way, and its standard error, two pytrees alike."""
    if counts.ndim != 2:
        raise ValueError(f"one table at a time, got {counts.shape}.")

    def error(slope: Array) -> Array:
        axes = (-1,) if stratified else (-2, -1)
        total = counts.sum(axes, keepdims=True)
        centred = slope - divide((counts * slope).sum(axes, keepdims=True), total)
        # No square root of a count, which has no slope at 0, and relative to the largest slope, so that no square overflows.
        largest = lax.stop_gradient(xp.abs(centred).max((-2, -1), keepdims=True))
        relative = divide(centred, largest)
        return largest[..., 0, 0] * safe_sqrt((counts * relative * relative).sum((-2, -1)))

    return metric(counts), jax.tree.map(error, jacobian(metric, counts, numbers))


def normal_estimate(value: Array, error: Array, z: float, transform: str | None = None) -> Estimate:
    low, high = _normal_interval(value, z * error, transform)
    return Estimate(value, low, high, error, xp.zeros(np.shape(value), xp.int32))


def _normal_interval(value: Array, reach: Array, transform: str | None) -> tuple[Array, Array]:
    if transform is None:
        return value - reach, value + reach
    if transform == "logit":
        inside, slope = (value > 0) & (value < 1), value * (1 - value)
        centre = special.logit(xp.where(inside, value, 0.5))
    else:
        inside, slope = xp.abs(value) < 1, 1 - value**2
        centre = xp.arctanh(xp.where(inside, value, 0.5))
    reach = reach / xp.where(inside, slope, 1)
    ends = xp.stack([centre - reach, centre + reach])
    low, high = special.expit(ends) if transform == "logit" else xp.tanh(ends)
    at_an_end = ~inside & ~xp.isnan(reach)
    return xp.where(at_an_end, value, low), xp.where(at_an_end, value, high)


def bootstrap_of(
    key: Key,
    function: Metric,
    taken: Array,
    *,
    numbers: int,
    size: int,
    level: float,
    method: str,
    stratified: bool,
    examples: str,
) -> tuple[Any, Any]:
    """The estimates of a function of cells `(K, W)`, and its replicates `(S, ...)`; `examples` from `how_many`."""
    sampler = _replicates.stratified_multinomial if stratified else _replicates.multinomial
    if method == "studentized":
        with_error = partial(value_and_error, function, stratified=stratified)
        values, errors = of_each(with_error, taken, numbers)
        samples, sample_errors = _replicates.evaluate(sampler, with_error, key, taken, size=size, numbers=numbers)
        studentized = partial(_studentized, tails=_tails(level))
        return jax.tree.map(studentized, values, errors, samples, sample_errors), samples
    values = of_each(function, taken, numbers)
    samples = _replicates.evaluate(sampler, function, key, taken, size=size, numbers=numbers)
    acceleration = _acceleration(function, taken, numbers, stratified, examples) if method == "bca" else None
    return estimates_of(values, samples, acceleration, level=level, method=method), samples


def estimates_of(values: Any, samples: Any, acceleration: Any = None, *, level: float, method: str) -> Any:
    """From pytrees of values `(...)` and replicates `(S, ...)`; "bca" needs its acceleration.

    All numbers are sorted in one array: XLA takes half a second to compile what follows, once or for each leaf.
    """
    leaves, structure = jax.tree.flatten(values)

    def flat(tree: Any, *lead: int) -> Array:
        return xp.concatenate([x.astype(float_dtype(x)).reshape((*lead, -1)) for x in jax.tree.leaves(tree)], -1)

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


def _percentile(value: Array, samples: Array, *, tails: Array, basic: bool) -> Estimate:
    low, high = _Ordered(samples).quantiles(_levels(tails, value))
    low, high = (2 * value - high, 2 * value - low) if basic else (low, high)
    return _estimate(value, low, high, samples)


def _studentized(value: Array, error: Array, samples: Array, sample_errors: Array, *, tails: Array) -> Estimate:
    known = sample_errors > 0
    t = xp.where(known, (samples - value) / xp.where(known, sample_errors, 1), xp.nan)
    t = xp.where(_is_same(samples, value), 0, t)
    t_low, t_high = _Ordered(t).quantiles(_levels(tails, value))
    return _estimate(value, value - error * t_high, value - error * t_low, xp.where(xp.isnan(t), xp.nan, samples))


def _bca(value: Array, samples: Array, acceleration: Array, *, tails: Array) -> Estimate:
    ordered = _Ordered(samples)
    same = _is_same(samples, value)
    below = ((samples < value) & ~same & xp.isfinite(samples)).sum(0) + same.sum(0) / 2
    count = xp.maximum(ordered.count, 1)
    one_sided = (below == 0) | (below == count)  # says nothing of the bias: percentiles
    bias = xp.where(one_sided, 0, special.ndtri(xp.clip(below / count, 0.5 / count, 1 - 0.5 / count)))
    acceleration = xp.where(one_sided, 0, acceleration)
    z = bias + _levels(special.ndtri(tails), value)
    low, high = ordered.quantiles(special.ndtr(bias + z / (1 - acceleration * z)))
    return _estimate(value, low, high, samples)


_FEW = 10_000  # examples; leaving out one of more changes a metric by little more than the rounding of float32


def how_many(counts: Array) -> str:
    """ "few" examples in each matrix, so that the jackknife sees a single one in float32, or "many"; "either" if not known."""
    if not is_known(counts):
        return "either"
    few = np.asarray(counts).sum((-2, -1)) < _FEW
    return "few" if bool(few.all()) else "either" if bool(few.any()) else "many"


def _acceleration(function: Metric, taken: Array, numbers: int, stratified: bool, examples: str) -> Any:
    """The acceleration of BCa, by the influence of each example on the metric.

    That is the metric of all less the metric without one, the jackknife. Where the examples are many, or the cells so many that
    this would take longer than the replicates, it is the derivative, to which the jackknife tends.
    """
    k, width = taken.shape[-2:]

    def jackknife(table: Array) -> Any:
        without = of_cells(lambda one: function(xp.maximum(table - one, 0)), table, numbers)
        return jax.tree.map(xp.negative, without)

    if k * width * numbers > 2**26:
        examples = "many"
    if examples != "few":
        influence = slopes = of_each(partial(_one_table, partial(jacobian, function, numbers=numbers)), taken, numbers)
    if examples != "many":
        influence = jackknifed = of_each(partial(_one_table, jackknife), taken, numbers * k * width)
    if examples == "either":
        few = taken.sum((-2, -1)) < _FEW
        influence = jax.tree.map(lambda j, d: xp.where(_expand(few, j.ndim - few.ndim), j, d), jackknifed, slopes)

    leaves, structure = jax.tree.flatten(influence)  # in one array, so that it is compiled once
    sizes = [math.prod(u.shape[taken.ndim - 2 : -2]) for u in leaves]
    flat = [u.reshape((*taken.shape[:-2], size, k, width)) for u, size in zip(leaves, sizes, strict=True)]
    accelerations = acceleration_of(xp.concatenate(flat, -3), taken[..., None, :, :], stratified)
    pieces = zip(xp.split(accelerations, np.cumsum(sizes)[:-1], -1), leaves, strict=True)
    return jax.tree.unflatten(structure, [piece.reshape(u.shape[:-2]) for piece, u in pieces])


def _one_table(function: Callable[[Array], Any], table: Array) -> Any:
    if table.ndim != 2:
        raise ValueError(f"one table at a time, got {table.shape}.")
    return function(table)


def acceleration_of(influence: Array, counts: Array, stratified: bool = False) -> Array:
    """`sum U^3 / (6 (sum U^2)^1.5)`, U the influence `(..., K, W)` of the examples in each cell, less its mean."""
    axes = (-1,) if stratified else (-2, -1)
    known = xp.where(xp.isfinite(influence) & (counts > 0), influence, 0)
    mean = divide((counts * known).sum(axes, keepdims=True), counts.sum(axes, keepdims=True))
    u = xp.where((counts > 0) & ~_is_same(known, mean), known - mean, 0)
    u = divide(u, xp.abs(u).max((-2, -1), keepdims=True))
    return divide((counts * u**3).sum((-2, -1)), 6 * safe_sqrt((counts * u**2).sum((-2, -1))) ** 3)


def posterior_estimates(samples: Any, level: float) -> Any:
    """Mean and equal-tailed interval of draws `(S, ...)`."""
    return estimates_of(jax.tree.map(mean_of_finite, samples), samples, level=level, method="percentile")


def _tails(level: float) -> Array:
    return np.array([(1 - level) / 2, (1 + level) / 2])


def _levels(tails: Array, value: Array) -> Array:
    return xp.broadcast_to(tails.reshape((2, *(1,) * value.ndim)).astype(value.dtype), (2, *value.shape))


def _is_same(samples: Array, value: Array) -> Array:
    """Equal up to the rounding of two programs that compute the same."""
    return xp.abs(samples - value) <= 8 * xp.finfo(value.dtype).eps * xp.abs(value)


class _Ordered:
    """Samples `(S, ...)` sorted, those that are not finite left out."""

    def __init__(self, samples: Array) -> None:
        finite = xp.isfinite(samples)
        self.count = finite.sum(0)
        self.values = xp.sort(xp.where(finite, samples, xp.inf), axis=0)

    def quantiles(self, q: Array) -> Array:
        """At levels `(2, ...)`, linear between the samples; NaN if there are none."""
        place = xp.clip(q, 0, 1) * xp.maximum(self.count - 1, 0)
        before = xp.floor(place).astype(xp.int32)
        after = xp.minimum(before + 1, xp.maximum(self.count - 1, 0))
        low, high = xp.split(xp.take_along_axis(self.values, xp.concatenate([before, after]), axis=0), 2)
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
    """NaN where there is none."""
    finite = xp.isfinite(samples)
    return divide(xp.where(finite, samples, 0).sum(0), finite.sum(0).astype(samples.dtype), xp.nan)


def _expand(x: Array, axes: int) -> Array:
    return x.reshape((*x.shape, *(1,) * axes))
