"""The average of independent betas: built once, queried often."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics import _betas
from jaxmetrics._arrays import ArrayLike, are_beta_parameters, as_float, check_level, promoting
from jaxmetrics.betasum import _laws
from jaxmetrics.betasum._convolutions import law_of_sum, variance_of
from jaxmetrics.betasum._laws import Law

__all__ = ["BetaAverage", "beta_avg_cdf", "beta_avg_inv_cdf", "beta_avg_pdf"]


@promoting
def _average(parameters: jax.Array) -> tuple[jax.Array, Law | None, tuple[jax.Array, jax.Array]]:
    """What a `BetaAverage` holds."""
    valid = are_beta_parameters(parameters).all((-2, -1), keepdims=True)
    safe = jnp.where(valid, parameters, 1)
    law = None if parameters.shape[-2] == 1 else law_of_sum(safe)
    high, low = _average_of_modes(lax.stop_gradient(safe))
    valid = valid[..., 0, 0]
    return jnp.where(valid[..., None, None], parameters, jnp.nan), law, (jnp.where(valid, high, jnp.nan), low)


@jax.tree_util.register_pytree_node_class
class BetaAverage:
    """The distribution of `(A_1 + ... + A_k) / k`, the A_i independent, A_i ~ Beta(alpha_i, beta_i); the beta itself for k = 1.

    The convolution is done once, here; each method then reads a table. Arrays of posteriors have batch axes: all methods
    broadcast their argument against `shape` as NumPy does. A frozen pytree: it passes through jit, vmap and grad. Derivatives
    by x, q and the parameters are those of the distribution.

    Args:
        parameters: `(..., k, 2)`, a row (alpha_i, beta_i) > 0 per class.

    Raises:
        ValueError: parameters of another shape. Values that are NaN, infinite or below 0.05 make all results NaN.

    The cdf is within 1e-6 of the truth for parameters from 1/2 to 1e9 (usually 1e-9); with 32 bits within 1e-4 (usually 1e-6)
    and what the last digit of x makes, `pdf(x) ulp(x)`: 0.003 for 1e9 examples (the analysis is in `_convolutions`). For
    k > 3 the error grows where several classes have parameters below 1/2, since their densities have poles: 0.004 (0.015 with
    32 bits) for 4 classes without examples under the prior 0.1.

    >>> average = BetaAverage(jnp.array([[91., 11.], [96., 6.]]))
    >>> average.mean, average.interval(0.95)
    (Array(0.91667, dtype=float32), (Array(0.8755, dtype=float32), Array(0.9503, dtype=float32)))
    """

    parameters: jax.Array
    _law: Law | None  # of the sum, relative to the sum of the modes; None for k = 1
    _origin: tuple[jax.Array, jax.Array]  # the average of the modes, in two parts

    def __init__(self, parameters: ArrayLike) -> None:  # noqa: D107
        p = as_float(parameters, "parameters")
        if p.ndim < 2 or p.shape[-1] != 2 or p.shape[-2] == 0:
            raise ValueError(
                f"parameters must have shape (..., k, 2), a row (alpha, beta) per class, got {p.shape}."
                " jaxmetrics.get_beta_parameters makes them from a confusion matrix."
            )
        self._set(*_average(p))

    def _set(self, parameters: jax.Array, law: Law | None, origin: tuple[jax.Array, jax.Array]) -> None:
        for name, value in (("parameters", parameters), ("_law", law), ("_origin", origin)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:  # noqa: D105
        raise AttributeError(f"BetaAverage is frozen; {name} cannot be set.")

    def __repr__(self) -> str:  # noqa: D105
        return f"BetaAverage(k={self.parameters.shape[-2]}, shape={self.shape})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:  # noqa: D102
        return (self.parameters, self._law, self._origin), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: tuple[Any, ...]) -> BetaAverage:  # noqa: D102
        average = object.__new__(cls)
        average._set(*leaves)
        return average

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch axes."""
        return self.parameters.shape[:-2]

    @property
    @promoting
    def mean(self) -> jax.Array:
        """`sum_i alpha_i / (alpha_i + beta_i) / k`."""
        return (self.parameters[..., 0] / self.parameters.sum(-1)).mean(-1)

    @property
    @promoting
    def variance(self) -> jax.Array:
        """`sum_i alpha_i beta_i / ((alpha_i + beta_i)^2 (alpha_i + beta_i + 1)) / k^2`."""
        k = self.parameters.shape[-2]
        return variance_of(self.parameters[..., 0], self.parameters[..., 1]).sum(-1) / k**2

    def pdf(self, x: ArrayLike) -> jax.Array:
        """The density at x; 0 outside of [0, 1]."""
        return _pdf(self, self._query(x, "x"))

    def cdf(self, x: ArrayLike) -> jax.Array:
        """`P(A <= x)`; 0 below and 1 above [0, 1]."""
        return _cdf(self, self._query(x, "x"))

    @promoting
    def sf(self, x: ArrayLike) -> jax.Array:
        """`P(A > x) = 1 - cdf(x)`, the probability of being better than x; its error is as small as that of the cdf."""
        return 1 - self.cdf(x)

    def ppf(self, q: ArrayLike) -> jax.Array:
        """The quantile: x with `P(A <= x) = q`; NaN for q outside of [0, 1]. Of q nearer to 0 or 1 than 1e-8 a rough one."""
        return _ppf(self, self._query(q, "q"))

    def _query(self, x: ArrayLike, name: str) -> jax.Array:
        array = as_float(x, name)
        try:
            np.broadcast_shapes(array.shape, self.shape)
        except ValueError:
            raise ValueError(
                f"{name} of shape {array.shape} does not broadcast against the batch {self.shape} of this BetaAverage;"
                f" {name}[:, None] asks for several values of each."
            ) from None
        return array

    @property
    def mode(self) -> jax.Array:
        """Where the density is highest (the highest point found, should there be several; the centre if it is flat)."""
        return _mode_of_one(self.parameters[..., 0, :]) if self._law is None else _mode(self)

    @promoting
    def interval(
        self, level: float = 0.95, kind: Literal["equal_tailed", "hdi"] = "equal_tailed"
    ) -> tuple[jax.Array, jax.Array]:
        """The ends of an interval that contains A with probability `level`.

        `"equal_tailed"` leaves `(1 - level) / 2` on each side; `"hdi"`, the highest-density interval, is the shortest.

        Raises:
            ValueError: a level outside of (0, 1), an unknown kind.
        """
        check_level(level)
        if kind == "equal_tailed":
            tails = jnp.asarray([(1 - level) / 2, (1 + level) / 2], self.parameters.dtype)
            low, high = self.ppf(tails.reshape(2, *(1,) * len(self.shape)))
            return low, high
        if kind != "hdi":
            raise ValueError(f'kind must be "equal_tailed" or "hdi", got {kind!r}.')
        return _shortest(self, level)

    @promoting
    def sample(self, key: jax.Array, shape: tuple[int, ...] = (), *, method: Literal["ppf", "betas"] = "ppf") -> jax.Array:
        """`(*shape, *batch)` independent draws: `"ppf"` reads quantiles of the table, `"betas"` draws and averages k betas."""
        if not (isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)):
            raise ValueError(f"shape must be a tuple of sizes, such as (1000,), got {shape!r}.")
        if method == "betas":
            a, b = self.parameters[..., 0], self.parameters[..., 1]
            return jax.random.beta(key, a, b, (*shape, *a.shape)).mean(-1)
        if method != "ppf":
            raise ValueError(f'method must be "ppf" or "betas", got {method!r}.')
        tiny = jnp.finfo(self.parameters.dtype).tiny
        return self.ppf(jax.random.uniform(key, (*shape, *self.shape), self.parameters.dtype, tiny))


def _average_of_modes(parameters: jax.Array) -> tuple[jax.Array, jax.Array]:
    """In two parts: near 1 the first has too few digits for a posterior narrower than its last one."""
    shape = jnp.maximum(2 * parameters - 1, 0)
    shape = jnp.where(shape.sum(-1, keepdims=True) > 0, shape, 1)
    mode, rest = jnp.moveaxis(shape / shape.sum(-1, keepdims=True), -1, 0)
    error = jnp.where(mode > 0.5, (1 - mode) - rest, 0)
    high = mode.mean(-1)
    return high, (mode - high[..., None] + error).mean(-1)


def _per_query(average: BetaAverage, x: jax.Array, function: Callable[[Law, jax.Array], jax.Array]) -> jax.Array:
    """`function(law, x)` with x broadcast against the batch: queries go onto the last axis and back."""
    axes = len(average.shape)
    shape = jnp.broadcast_shapes(x.shape, average.shape)
    batch = shape[len(shape) - axes :]
    law = jax.tree.map(lambda v: jnp.broadcast_to(v, (*batch, *v.shape[axes:])), average._law)
    queries = jnp.moveaxis(jnp.broadcast_to(x, shape).reshape(math.prod(shape[: len(shape) - axes]), *batch), 0, -1)
    return jnp.moveaxis(function(law, queries), -1, 0).reshape(shape)


def _offset_from_modes(average: BetaAverage, x: jax.Array) -> jax.Array:
    high, low = average._origin
    return ((x - high) - low) * average.parameters.shape[-2]


def _single(average: BetaAverage, x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, a, b = jnp.broadcast_arrays(x, average.parameters[..., 0, 0], average.parameters[..., 0, 1])
    return x, a, b


@promoting
@jax.jit
def _pdf(average: BetaAverage, x: jax.Array) -> jax.Array:
    if average._law is None:
        return _nan_for_nan(_betas.pdf(*_single(average, x)), average, x)
    return _nan_for_nan(
        _per_query(average, _offset_from_modes(average, x), _laws.pdf) * average.parameters.shape[-2], average, x
    )


@promoting
@jax.jit
def _cdf(average: BetaAverage, x: jax.Array) -> jax.Array:
    if average._law is None:
        return _nan_for_nan(_betas.cdf(*_single(average, x)), average, x)
    return _nan_for_nan(_per_query(average, _offset_from_modes(average, x), _laws.cdf), average, x)


def _nan_for_nan(value: jax.Array, average: BetaAverage, x: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(x) | jnp.isnan(average._origin[0]), jnp.nan, value)


@jax.custom_jvp
def _ppf(average: BetaAverage, q: jax.Array) -> jax.Array:
    return _quantile(average, q)


@_ppf.defjvp
@promoting
def _ppf_jvp(primals: tuple[BetaAverage, jax.Array], tangents: tuple[BetaAverage, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """From F(x) = q: dx = (dq - dF) / f(x)."""
    average, q = primals
    x = _ppf(average, q)
    _, by_parameters = jax.jvp(lambda average: _cdf(average, x), (average,), (tangents[0],))
    return x, (tangents[1] - by_parameters) / _pdf(average, x)


@promoting
@jax.jit
def _quantile(average: BetaAverage, q: jax.Array) -> jax.Array:
    possible = (q >= 0) & (q <= 1)
    safe = jnp.where(possible, q, 0.5)
    if average._law is None:
        x = _betas.ppf(*_single(average, safe))
    else:
        high, low = average._origin
        z = _per_query(average, safe, _laws.quantile) / average.parameters.shape[-2]
        x = jnp.clip(high + (low + z), 0, 1)
        x = jnp.where(safe == 0, 0, jnp.where(safe == 1, 1, x))
    return jnp.where(possible & ~jnp.isnan(average._origin[0]), x, jnp.nan)


def _slope_of_pdf(average: BetaAverage, x: jax.Array) -> jax.Array:
    return jax.jvp(lambda x: _pdf(average, x), (x,), (jnp.ones_like(x),))[1]


def _halve(function: Callable[[jax.Array], jax.Array], low: jax.Array, high: jax.Array) -> jax.Array:
    """Where a function changes from true to false, by bisection."""
    steps = jnp.finfo(low.dtype).nmant

    def step(_: int, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = (low + high) / 2
        right = function(middle)
        return jnp.where(right, middle, low), jnp.where(right, high, middle)

    low, high = lax.fori_loop(0, steps, step, (low, high))
    return (low + high) / 2


@promoting
@jax.jit
def _mode_of_one(parameters: jax.Array) -> jax.Array:
    a, b = parameters[..., 0], parameters[..., 1]
    inside = (a > 1) & (b > 1)
    at_end = jnp.where(a > b, 1, jnp.where(a < b, 0, 0.5))
    return jnp.where(inside, (a - 1) / jnp.where(inside, a + b - 2, 1), at_end + 0 * (a + b))


@promoting
@jax.jit
def _mode(average: BetaAverage) -> jax.Array:
    """The best of some quantiles, then the root of the slope between its neighbours; derivatives by the implicit function."""
    frozen = lax.stop_gradient(average)
    levels = jnp.linspace(0, 1, 65, dtype=average.parameters.dtype).clip(1e-5, 1 - 1e-5)  # beyond stand straight lines
    levels = levels.reshape(-1, *(1,) * len(average.shape))
    x = _ppf(frozen, levels)
    best = jnp.argmax(_pdf(frozen, x), axis=0, keepdims=True)
    low, high = (jnp.take_along_axis(x, jnp.clip(best + i, 0, 64), 0)[0] for i in (-1, 1))
    mode = _halve(lambda x: _slope_of_pdf(frozen, x) > 0, low, high)
    slope = _slope_of_pdf(average, mode)
    curvature = jax.jvp(lambda x: _slope_of_pdf(frozen, x), (mode,), (jnp.ones_like(mode),))[1]
    inside = (curvature < 0) & (jnp.abs(slope) < 1e-2 * jnp.abs(curvature) * (high - low))
    return mode - jnp.where(inside, (slope - lax.stop_gradient(slope)) / jnp.where(inside, curvature, 1), 0)


@promoting
@partial(jax.jit, static_argnames="level")
def _shortest(average: BetaAverage, level: float) -> tuple[jax.Array, jax.Array]:
    """The density is the same at both ends, F(high) - F(low) = level; derivatives by the implicit function."""
    frozen = lax.stop_gradient(average)
    zeros = jnp.zeros(average.shape, average.parameters.dtype)
    right = _halve(lambda p: _pdf(frozen, _ppf(frozen, p)) < _pdf(frozen, _ppf(frozen, p + level)), zeros, zeros + (1 - level))
    low, high = _ppf(frozen, right), _ppf(frozen, jnp.minimum(right + level, 1))
    at_low, at_high = (_pdf(frozen, x) for x in (low, high))
    slope_low, slope_high = (_slope_of_pdf(frozen, x) for x in (low, high))
    determinant = at_high * slope_low - at_low * slope_high
    alike = jnp.abs(at_high - at_low) < 1e-2 * jnp.maximum(at_high, at_low)
    inside, at_bottom = alike & (determinant > 0), right < (1 - level) / 2  # else one end is that of the support
    mass = _cdf(average, high) - _cdf(average, low)
    difference = _pdf(average, jnp.where(inside, high, average.mean)) - _pdf(average, jnp.where(inside, low, average.mean))
    mass, difference = (v - lax.stop_gradient(v) for v in (mass, difference))
    free = mass / jnp.where(at_bottom, at_high, at_low)
    at_low, at_high, slope_low, slope_high, determinant = (
        jnp.where(inside, v, 1) for v in (at_low, at_high, slope_low, slope_high, determinant)
    )
    d_low = jnp.where(inside, (mass * slope_high - difference * at_high) / determinant, jnp.where(at_bottom, 0, -free))
    d_high = jnp.where(inside, (mass * slope_low - difference * at_low) / determinant, jnp.where(at_bottom, free, 0))
    return low - d_low, high - d_high


def beta_avg_pdf(x: ArrayLike, parameters: ArrayLike) -> jax.Array:
    """The density of `(A_1 + ... + A_k) / k` at x: `BetaAverage(parameters).pdf(x)`.

    >>> beta_avg_pdf(jnp.array([0.25, 0.375]), jnp.ones((2, 2))).round(3).tolist()
    [1.0, 1.5]
    """
    return BetaAverage(parameters).pdf(x)


def beta_avg_cdf(x: ArrayLike, parameters: ArrayLike) -> jax.Array:
    """`P((A_1 + ... + A_k) / k <= x)`: `BetaAverage(parameters).cdf(x)`.

    >>> beta_avg_cdf(jnp.array([0.25, 0.5]), jnp.ones((2, 2))).round(4).tolist()
    [0.125, 0.5]
    """
    return BetaAverage(parameters).cdf(x)


def beta_avg_inv_cdf(q: ArrayLike, parameters: ArrayLike) -> jax.Array:
    """The quantile of `(A_1 + ... + A_k) / k`: `BetaAverage(parameters).ppf(q)`. For many q build the average once.

    >>> beta_avg_inv_cdf(jnp.array([0.125, 0.5]), jnp.ones((2, 2))).round(4).tolist()
    [0.25, 0.5]
    """
    return BetaAverage(parameters).ppf(q)
