"""The distribution of an average of independent beta variables."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._arguments.keys import HostKey, KeyLike, as_key
from jaxmetrics._arguments.single import ArrayLike, as_float, check_level
from jaxmetrics._numerics.roots import root
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import Array, Arrays, custom_jvp, is_known, lax, xp
from jaxmetrics._text.printing import Members, Printed, is_known_number, members_of
from jaxmetrics._text.wording import interval
from jaxmetrics.betas import _convolutions, _splines, distributions
from jaxmetrics.betas._splines import Spline
from jaxmetrics.betas.parameters import are_beta_parameters, smallest_parameter

__all__ = ["BetaAverage", "beta_avg_cdf", "beta_avg_inv_cdf", "beta_avg_pdf"]


@on_host_if_small
def _distribution(parameters: ArrayLike) -> tuple[Array, Arrays, Spline | None]:
    """Check the parameters, and compute the attributes of a `BetaAverage`."""
    p = as_float(parameters, "parameters")
    if p.ndim < 2 or p.shape[-1] != 2 or p.shape[-2] == 0:
        raise ValueError(
            "parameters must have shape (..., k, 2), with one row (alpha, beta) for each"
            f" class, got {p.shape}. If you have a confusion matrix, call"
            " jaxmetrics.betas.get_beta_parameters."
        )
    k, least = p.shape[-2], smallest_parameter(p.shape[-2])
    if is_known(p) and bool((p < least * (1 - 1e-6)).any()):
        raise ValueError(
            f"The parameters of the beta distributions must be at least {least} for {k}"
            f" classes, got {float(p.min()):g}. Use a larger prior, such as 0.5 (Jeffreys'"
            " prior)."
        )
    masked, origin, flat, distribution = _prepare(p)
    if distribution is None:
        return masked, origin, None
    spline = _convolutions.final_distribution(*distribution, flat)
    return masked, origin, trees.map(lambda v: v.reshape((*p.shape[:-2], *v.shape[1:])), spline)


@compiled
def _prepare(
    parameters: Array,
) -> tuple[Array, Arrays, Array, tuple[Spline, Array] | None]:
    """Compute the attributes of a `BetaAverage`, before rough sums are refined.

    Returns:
        The parameters (NaN if one is impossible), the average of the means in two parts, the
        parameters as `(B, k, 2)` with the widest class first, and for k > 1 the sum by Fourier
        inversion.
    """
    valid = are_beta_parameters(parameters, parameters.shape[-2]).all((-2, -1))
    safe = xp.where(valid[..., None, None], parameters, 100)
    if safe.dtype == np.complex128:  # complex steps of `intervals.derivatives`
        safe = safe.real
    # The average of the means in two parts: if it is near 1, a single float is not precise enough,
    # because the posterior may be narrower than the last digit of the float.
    fixed = lax.stop_gradient(safe)
    mean, rest = xp.moveaxis(fixed / fixed.sum(-1, keepdims=True), -1, 0)
    error = xp.where(mean > 0.5, (1 - mean) - rest, 0)
    # A float32, because what the host computes may be stored in JAX arrays of float32.
    high = mean.mean(-1).astype(np.float32).astype(mean.dtype)
    low = (mean - high[..., None] + error).mean(-1)
    flat = safe.reshape((math.prod(valid.shape), *safe.shape[-2:]))
    alone = flat.shape[-2] == 1
    flat = flat if alone else _convolutions.widest_first(flat)
    distribution = None if alone else _convolutions.first_distribution(flat)
    masked = xp.where(valid[..., None, None], parameters, xp.nan)
    return masked, (xp.where(valid, high, xp.nan), low), flat, distribution


class _Summary(Printed, namedtuple("_Summary", "mean low high standard_deviation")):
    """The values that are printed if a `BetaAverage` is printed."""

    __slots__ = ()

    def _cells(self, spec: str) -> dict[str, str]:
        return {"mean [low, high]": interval(self.mean, self.low, self.high, spec)}


class _BetaAverage(NamedTuple):
    parameters: Array
    origin: Arrays  # average of the means in two parts
    spline: Spline | None  # of the sum minus the sum of the means; None for k = 1


class BetaAverage(Printed, _BetaAverage):
    """Distribution of the average of independent beta variables, `(A_1 + ... + A_k) / k`.

    Here A_i ~ Beta(alpha_i, beta_i). The constructor stores the distribution as a spline, which the
    methods evaluate. The leading axes of the parameters are batch axes, with the shape `shape`. The
    arguments of methods broadcast against it. A `BetaAverage` is a pytree and works with jit, vmap
    and grad.

    Args:
        parameters: array of shape `(..., k, 2)` with a row (alpha_i, beta_i) > 0 per class.

    Attributes:
        parameters: the parameters as floats.
        origin, spline: the sum of the means, and the spline around this sum, for internal use.

    Raises:
        ValueError: if parameters have another shape, or if a parameter is too small for accurate
            results: below 0.05 if k = 1, below 0.2 if k = 2, below 1/2 if k > 2. Under jit, such
            parameters give NaN instead. Parameters that are NaN or infinite always give NaN.

    For parameters up to 1e9, the error of the cdf is usually 1e-9 and at most 1e-6. In float32 it
    is usually 1e-6 and at most 1e-4. The rounding of x to float32 adds an error, which is 0.003 for
    1e9 examples. Tail probabilities below 1e-15 (float32: 1e-7) are not accurate.

    `print` shows the mean and the equal-tailed 95 % interval.

    >>> average = BetaAverage([[91, 11], [96, 6]])
    >>> average
    0.917 [0.875, 0.950]
    >>> average.mean, average.interval(0.95)
    (np.float64(0.91667), (np.float64(0.8755), np.float64(0.9503)))
    """

    __slots__ = ()
    _plural = "averages of betas"

    def __new__(cls, parameters: ArrayLike, *computed: Any) -> BetaAverage:  # noqa: D102  # the class says it
        if computed:  # JAX unflattens a pytree
            return super().__new__(cls, parameters, *computed)
        return super().__new__(cls, *_distribution(parameters))

    def _plain(self) -> str:
        if getattr(self.parameters, "ndim", 0) < 2:  # a pytree of something else
            return super()._plain()
        return f"BetaAverage(k={self.parameters.shape[-2]}, shape={self.shape})"

    def _members(self) -> Members | None:
        if not all(map(is_known_number, trees.leaves(self))) or np.ndim(self.parameters) < 2:
            return None
        # Computed by NumPy, so that printing does not compile.
        return members_of(trees.map(np.asarray, self)._summary())

    def _summary(self) -> _Summary:
        return _Summary(self.mean, *self.interval(), xp.sqrt(self.variance))

    def to_dict(self) -> dict[str, Any]:
        """Return the mean, the equal-tailed 95 % interval and the standard deviation."""
        return self._summary().to_dict()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the batch axes of the parameters."""
        return self.parameters.shape[:-2]

    @property
    @on_host_if_small
    @compiled
    def mean(self) -> Array:
        """Mean, `sum_i alpha_i / (alpha_i + beta_i) / k`."""
        return (self.parameters[..., 0] / self.parameters.sum(-1)).mean(-1)

    @property
    @on_host_if_small
    @compiled
    def variance(self) -> Array:
        """Variance,
        `sum_i alpha_i beta_i / ((alpha_i + beta_i)^2 (alpha_i + beta_i + 1)) / k^2`.
        """
        variances = distributions.variance_of(self.parameters[..., 0], self.parameters[..., 1])
        return variances.sum(-1) / self.parameters.shape[-2] ** 2

    @on_host_if_small
    def pdf(self, x: ArrayLike) -> Array:
        """Return the probability density at x; it is 0 outside of [0, 1]."""
        return _pdf(self, self._query(x, "x"))

    @on_host_if_small
    def cdf(self, x: ArrayLike) -> Array:
        """Return the cumulative distribution function `P(A <= x)`."""
        return _cdf(self, self._query(x, "x"))

    @on_host_if_small
    def sf(self, x: ArrayLike) -> Array:
        """Return the survival function `P(A > x) = 1 - cdf(x)`."""
        return 1 - self.cdf(x)

    @on_host_if_small
    def ppf(self, q: ArrayLike) -> Array:
        """Return the quantile x with `P(A <= x) = q`; NaN if q is not in [0, 1].

        The quantile is not accurate if q < 1e-8 or q > 1 - 1e-8.
        """
        return _quantile(self, self._query(q, "q"))

    def _query(self, x: ArrayLike, name: str) -> Array:
        array = as_float(x, name)
        try:
            np.broadcast_shapes(array.shape, self.shape)
        except ValueError:
            raise ValueError(
                f"{name} has shape {array.shape}, which does not broadcast against the batch axes"
                f" {self.shape} of this BetaAverage. To use several values for each batch entry,"
                f" pass {name}[:, None]."
            ) from None
        return array

    @property
    @on_host_if_small
    def mode(self) -> Array:
        """Mode, the point with the highest density.

        If the density is constant, the result is the centre of [0, 1].
        """
        return _mode_of_one(self.parameters) if self.spline is None else _mode(self)

    @on_host_if_small
    def interval(
        self, level: float = 0.95, kind: Literal["equal_tailed", "hdi"] = "equal_tailed"
    ) -> tuple[Array, Array]:
        """Return the ends of a credible interval: the average is inside with probability `level`.

        If `kind` is "equal_tailed", the average is below the interval with probability
        `(1 - level) / 2`, and above it with the same probability. If `kind` is "hdi", the result is
        the shortest interval with probability `level` (highest density interval).

        Raises:
            ValueError: if `level` is not in (0, 1) or `kind` is unknown.
        """
        level = check_level(level)
        if kind == "equal_tailed":
            return _equal_tailed(self, (1 - level) / 2)
        if kind != "hdi":
            raise ValueError(f'kind must be "equal_tailed" or "hdi", got {kind!r}.')
        return _shortest(self, level)

    def sample(
        self, key: KeyLike, shape: tuple[int, ...] = (), *, method: Literal["ppf", "betas"] = "ppf"
    ) -> Array:
        """Draw independent samples, an array of shape `(*shape, *batch)`.

        Args:
            key: a JAX key or an int seed. If parameters are NumPy arrays, it may be a NumPy
                Generator.
            shape: shape of the samples for each batch entry.
            method: `"ppf"` evaluates quantiles at random probabilities. `"betas"` averages k random
                beta variables.
        """
        if not (isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)):
            raise ValueError(f"shape must be a tuple of ints, such as (1000,), got {shape!r}.")
        source = as_key(key, self.parameters)
        if method == "betas":
            a, b = self.parameters[..., 0], self.parameters[..., 1]
            if isinstance(source, HostKey):
                return source.generator().beta(a, b, (*shape, *a.shape)).mean(-1)
            return jax.random.beta(source, a, b, (*shape, *a.shape)).mean(-1)
        if method != "ppf":
            raise ValueError(f'method must be "ppf" or "betas", got {method!r}.')
        shape, dtype = (*shape, *self.shape), self.parameters.dtype
        uniforms: Array
        if isinstance(source, HostKey):
            uniforms = source.generator().random(shape)
        else:
            uniforms = jax.random.uniform(source, shape, dtype, float(np.finfo(dtype).tiny))
        return _quantile(self, self._query(uniforms, "q"))


def _per_query(average: BetaAverage, x: Array, function: Callable[[Spline, Array], Array]) -> Array:
    """Return `function(spline, x)`, where x broadcasts against the batch axes.

    Functions of splines need the queries x on the last axis. Therefore the axes of x are moved
    there, and the axes of the result are moved back.
    """
    axes = len(average.shape)
    shape = np.broadcast_shapes(x.shape, average.shape)
    batch = shape[len(shape) - axes :]
    spline: Any = average.spline
    if batch != average.shape:
        spline = trees.map(lambda v: xp.broadcast_to(v, (*batch, *v.shape[axes:])), spline)
    queries = xp.broadcast_to(x, shape).reshape((math.prod(shape[: len(shape) - axes]), *batch))
    return xp.moveaxis(function(spline, xp.moveaxis(queries, 0, -1)), -1, 0).reshape(shape)


def _offset_from_mean(average: BetaAverage, x: Array) -> Array:
    high, low = average.origin
    return ((x - high) - low) * average.parameters.shape[-2]


def _single_beta(average: BetaAverage, x: Array) -> Arrays:
    """Return broadcast x, a and b for the functions of a single beta distribution."""
    x, a, b = xp.broadcast_arrays(x, average.parameters[..., 0, 0], average.parameters[..., 0, 1])
    return x, a, b


def _nan_for_nan(value: Array, average: BetaAverage, x: Array) -> Array:
    return xp.where(xp.isnan(x) | xp.isnan(average.origin[0]), xp.nan, value)


# Derivatives with respect to x are derivatives of the spline's polynomials. Derivatives with
# respect to the parameters are computed from the values of the spline.


@custom_jvp
@compiled
def _cdf(average: BetaAverage, x: Array) -> Array:
    if average.spline is None:
        x_inside, a, b = _single_beta(average, distributions.in_support(x))
        value = distributions.betainc(a, b, x_inside)
    else:
        value = _per_query(average, _offset_from_mean(average, x), _splines.cdf)
        value = xp.where(x <= 0, 0, xp.where(x >= 1, 1, value))
    return _nan_for_nan(value, average, x)


@custom_jvp
@compiled
def _pdf(average: BetaAverage, x: Array) -> Array:
    if average.spline is None:
        value = distributions.pdf(*_single_beta(average, x))
    else:
        k = average.parameters.shape[-2]
        value = _per_query(average, _offset_from_mean(average, x), _splines.pdf) * k
    return _nan_for_nan(value, average, x)


def _slope_at(average: BetaAverage, x: Array) -> Array:
    """Return the derivative of the density with respect to x."""
    if average.spline is None:
        return distributions.slope_of_pdf(*_single_beta(average, x))
    k = average.parameters.shape[-2]
    return _per_query(average, _offset_from_mean(average, x), _splines.slope_of_pdf) * k**2


def _jvp_by_parameters(
    function: Callable[[BetaAverage, Array], Array],
    average: BetaAverage,
    x: Array,
    tangent: BetaAverage,
) -> Arrays:
    return jax.jvp(lambda average: function(average, x), (average,), (tangent,))


@_cdf.defjvp
@compiled
def _cdf_jvp(primals: tuple[BetaAverage, Array], tangents: tuple[BetaAverage, Array]) -> Arrays:
    value, tangent = _jvp_by_parameters(_cdf.fun, *primals, tangents[0])
    density = xp.minimum(_pdf(*primals), xp.finfo(value.dtype).max)  # finite even at a pole
    return value, tangent + density * tangents[1]


@_pdf.defjvp
@compiled
def _pdf_jvp(primals: tuple[BetaAverage, Array], tangents: tuple[BetaAverage, Array]) -> Arrays:
    value, tangent = _jvp_by_parameters(_pdf.fun, *primals, tangents[0])
    return value, tangent + _slope_at(*primals) * tangents[1]


@custom_jvp
@compiled
def _quantile(average: BetaAverage, q: Array) -> Array:
    possible = (q >= 0) & (q <= 1)
    safe = xp.where(possible, q, 0.5)
    if average.spline is None:
        safe, a, b = _single_beta(average, safe)
        x = distributions.betaincinv(a, b, safe)
    else:
        high, low = average.origin
        z = _per_query(average, safe, _splines.quantile) / average.parameters.shape[-2]
        x = xp.clip(high + (low + z), 0, 1)
        x = xp.where((safe == 0) | (safe == 1), safe, x)
    return xp.where(possible & ~xp.isnan(average.origin[0]), x, xp.nan)


@_quantile.defjvp
@compiled
def _quantile_jvp(
    primals: tuple[BetaAverage, Array], tangents: tuple[BetaAverage, Array]
) -> Arrays:
    """Compute the derivative from F(x) = q: dx = (dq - dF) / f(x)."""
    average, q = primals
    x = _quantile(average, q)
    _, by_parameters = _jvp_by_parameters(_cdf, average, x, tangents[0])
    return x, (tangents[1] - by_parameters) / _pdf(average, x)


@compiled
def _equal_tailed(average: BetaAverage, tail: Array) -> Arrays:
    """Return two quantiles: the probabilities below the first and above the second are `tail`.

    If k = 1, the upper end is computed from the probability above it, because 1 - tail is less
    precise. If k > 1, the spline is not more precise than 1 - tail.
    """
    tail = xp.asarray(tail, average.parameters.dtype)
    if average.spline is None:
        tail, a, b = _single_beta(average, tail)
        low, high = distributions.betaincinv(a, b, tail), distributions.betainccinv(a, b, tail)
        return _nan_for_nan(low, average, tail), _nan_for_nan(high, average, tail)
    tails = xp.stack([tail, 1 - tail]).reshape((2, *(1,) * len(average.shape)))
    low, high = _quantile(average, tails)
    return low, high


def _sign_change(rising: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Find the point where a function becomes positive by bisection."""
    # The bracket is divided by 2^36; beyond that, rounding errors of densities dominate.
    fraction = 2.0 ** -min(xp.finfo(low.dtype).nmant, 36)

    def at(t: Array) -> Arrays:
        return rising(low + t * (high - low)), 0 * t

    t = root(at, 0 * low, 0 * low + 1, 0 * low + 0.5, atol=fraction)
    return low + t * (high - low)


@compiled
def _mode_of_one(parameters: Array) -> Array:
    a, b = parameters[..., 0, 0], parameters[..., 0, 1]
    inside = (a > 1) & (b > 1)
    at_end = xp.where(a > b, 1, xp.where(a < b, 0, 0.5))
    return xp.where(inside, (a - 1) / xp.where(inside, a + b - 2, 1), at_end + 0 * (a + b))


@custom_jvp
@compiled
def _mode(average: BetaAverage) -> Array:
    """Find the mode: the quantile with the highest density, then a root of the slope near it."""
    levels = np.linspace(0, 1, 65).clip(1e-5, 1 - 1e-5).astype(average.parameters.dtype)
    x = _quantile(average, levels.reshape((-1, *(1,) * len(average.shape))))
    best = xp.argmax(_pdf(average, x), axis=0, keepdims=True)
    low, high = (xp.take_along_axis(x, xp.clip(best + i, 0, 64), 0)[0] for i in (-1, 1))
    return _sign_change(lambda x: -_slope_at(average, x), low, high)


@_mode.defjvp
@compiled
def _mode_jvp(primals: tuple[BetaAverage], tangents: tuple[BetaAverage]) -> Arrays:
    def minus_slope(x: Array, average: BetaAverage) -> Array:
        return -_slope_at(average, x)

    x = _mode(*primals)
    room = 1e-2 * xp.sqrt(primals[0].variance)
    return x, _tangent_of_root(minus_slope, x, primals, tangents, room)


@compiled
def _shortest(average: BetaAverage, level: Array) -> Arrays:
    """Find the ends of the interval with F(high) - F(low) = level and the same density at both
    ends.

    If there is no such interval, one end is an end of the support.
    """
    level = xp.asarray(level, average.parameters.dtype)
    low, high = _ends(_mass_below(average, level), average, level)
    return low, high


def _ends(below: Array, average: BetaAverage, level: Array) -> Array:
    """Return two quantiles: the given mass is below the first, and the mass `level` is between the
    two.
    """
    return _quantile(average, xp.stack([below, xp.minimum(below + level, 1)]))


def _excess(below: Array, average: BetaAverage, level: Array) -> Array:
    """Return the density at the lower end minus the density at the upper end."""
    at_low, at_high = _pdf(average, _ends(below, average, level))
    return at_low - at_high


@custom_jvp
@compiled
def _mass_below(average: BetaAverage, level: Array) -> Array:
    """Return the probability mass below the shortest interval."""
    zeros = 0 * average.origin[0]

    def sign_of_excess(below: Array) -> Array:
        return xp.where(_excess(below, average, level) < 0, -1, 1) * xp.ones_like(below)

    return _sign_change(sign_of_excess, zeros, zeros + (1 - level))


@_mass_below.defjvp
@compiled
def _mass_below_jvp(
    primals: tuple[BetaAverage, Array], tangents: tuple[BetaAverage, Array]
) -> Arrays:
    below = _mass_below(*primals)
    room = 1e-2 * (1 - primals[1])
    return below, _tangent_of_root(_excess, below, primals, tangents, room)


def _tangent_of_root(
    rising: Callable[..., Array], x: Array, primals: Any, tangents: Any, room: Array
) -> Array:
    """Compute the derivative of the root x of `rising(x, *primals) = 0`: dx = -dr / r'(x).

    The derivative is 0 if x is not a root but an end of the support or a kink, which is the case if
    a Newton step from x would be longer than `room`.
    """
    value, change = jax.jvp(lambda *p: rising(x, *p), primals, tangents)
    _, slope = jax.jvp(lambda x: rising(x, *primals), (x,), (xp.ones_like(x),))
    is_root = (slope > 0) & (xp.abs(value) < room * slope)
    return xp.where(is_root, -change / xp.where(is_root, slope, 1), 0)


@on_host_if_small
def beta_avg_pdf(x: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the density of an average of beta variables, `BetaAverage(parameters).pdf(x)`.

    Args:
        x: real numbers, which broadcast against the batch axes of the parameters.
        parameters: array of shape `(..., k, 2)` with a row (alpha_i, beta_i) > 0 per class.

    Returns:
        The density of `(A_1 + ... + A_k) / k` at x, where A_i ~ Beta(alpha_i, beta_i) are
        independent.

    >>> beta_avg_pdf([0.25, 0.375], [[1, 1], [1, 1]]).round(3).tolist()
    [1.0, 1.5]
    """
    return BetaAverage(parameters).pdf(x)


@on_host_if_small
def beta_avg_cdf(x: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the cdf of an average of beta variables, `BetaAverage(parameters).cdf(x)`.

    Args:
        x: real numbers, which broadcast against the batch axes of the parameters.
        parameters: array of shape `(..., k, 2)` with a row (alpha_i, beta_i) > 0 per class.

    Returns:
        `P((A_1 + ... + A_k) / k <= x)`, where A_i ~ Beta(alpha_i, beta_i) are independent.

    >>> beta_avg_cdf([0.25, 0.5], [[1, 1], [1, 1]]).round(4).tolist()
    [0.125, 0.5]
    """
    return BetaAverage(parameters).cdf(x)


@on_host_if_small
def beta_avg_inv_cdf(q: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the quantile of an average of beta variables, `BetaAverage(parameters).ppf(q)`.

    Args:
        q: probabilities, which broadcast against the batch axes of the parameters.
        parameters: array of shape `(..., k, 2)` with a row (alpha_i, beta_i) > 0 per class.

    Returns:
        The quantile, NaN if q is not in [0, 1].

    >>> beta_avg_inv_cdf([0.125, 0.5], [[1, 1], [1, 1]]).round(4).tolist()
    [0.25, 0.5]
    """
    return BetaAverage(parameters).ppf(q)
