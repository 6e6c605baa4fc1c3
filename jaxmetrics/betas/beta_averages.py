"""The average of independent betas: constructed once, evaluated often."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._jax import jax, trees
from jaxmetrics._keys import HostKey, KeyLike, as_key
from jaxmetrics._namespaces import Array, custom_jvp, is_known, lax, xp
from jaxmetrics._printing import Members, Printed, is_known_number, members_of
from jaxmetrics._roots import root
from jaxmetrics._validation import ArrayLike, as_float, check_level
from jaxmetrics._wording import interval
from jaxmetrics.betas import _convolutions, _splines, distributions
from jaxmetrics.betas._splines import Spline
from jaxmetrics.betas.parameters import are_beta_parameters, smallest_parameter

__all__ = ["BetaAverage", "beta_avg_cdf", "beta_avg_inv_cdf", "beta_avg_pdf"]


@compiled
def _prepare(
    parameters: Array,
) -> tuple[Array, tuple[Array, Array], Array, tuple[Spline, Array] | None]:
    """Compute everything in a `BetaAverage` except sums that need smaller windows.

    Returns:
        The parameters, NaN where one is impossible; the average of the means, in two parts; the
        parameters as `(B, k, 2)`, widest class first; for k > 1 the sum by Fourier inversion.
    """
    valid = are_beta_parameters(parameters, parameters.shape[-2]).all((-2, -1))
    safe = xp.where(valid[..., None, None], parameters, 100)
    if safe.dtype == np.complex128:  # from complex steps, see `intervals.derivatives`
        safe = safe.real
    high, low = _average_of_means(lax.stop_gradient(safe))
    flat = safe.reshape((math.prod(valid.shape), *safe.shape[-2:]))
    alone = flat.shape[-2] == 1
    flat = flat if alone else _convolutions.widest_first(flat)
    found = None if alone else _convolutions.first_distribution(flat)
    masked = xp.where(valid[..., None, None], parameters, xp.nan)
    return masked, (xp.where(valid, high, xp.nan), low), flat, found


def _average_of_means(parameters: Array) -> tuple[Array, Array]:
    """Return the average in two parts, `high + low`.

    Near 1, one float has too few digits for a posterior that is narrower than its last digit.
    """
    mean, rest = xp.moveaxis(parameters / parameters.sum(-1, keepdims=True), -1, 0)
    error = xp.where(mean > 0.5, (1 - mean) - rest, 0)
    high = mean.mean(-1)
    return high, (mean - high[..., None] + error).mean(-1)


class _Moments(NamedTuple):
    mean: Array
    low: Array
    high: Array
    standard_deviation: Array


class _Summary(Printed, _Moments):
    """The values with which a `BetaAverage` is printed."""

    __slots__ = ()

    def _cells(self, spec: str) -> dict[str, str]:
        return {"mean [low, high]": interval(self.mean, self.low, self.high, spec)}


class _BetaAverage(NamedTuple):
    parameters: Array
    origin: tuple[Array, Array]  # the average of the means, in two parts
    spline: Spline | None  # of the sum, relative to the sum of the means; None for k = 1


class BetaAverage(Printed, _BetaAverage):
    """Distribution of the average of independent betas, `(A_1 + ... + A_k) / k`.

    A_i ~ Beta(alpha_i, beta_i). The convolution is computed once, by the constructor; each method
    then evaluates a spline. For k = 1 it is the beta distribution itself. Leading axes of the
    parameters are batch axes: methods broadcast their argument against `shape` as NumPy does. The
    object is a frozen pytree, for jit, vmap and grad; derivatives with respect to x, q and the
    parameters are those of the distribution.

    Args:
        parameters: `(..., k, 2)`, a row (alpha_i, beta_i) > 0 per class.

    Attributes:
        parameters: the parameters as floats.
        origin, spline: the sum of the means and the distribution around it, for the methods.

    Raises:
        ValueError: parameters of another shape, or below the least verified ones: 0.05 for k = 1,
            0.2 for k = 2, 1/2 for more. If jit hides such parameters, and for NaN or infinite ones,
            all results are NaN.

    The error of the cdf is at most 1e-6 for parameters from 1/2 to 1e9 (usually 1e-9), for k = 2
    also from 0.2; in float32 it is at most 1e-4 (usually 1e-6) plus the effect of the last digit of
    x, `pdf(x) ulp(x)`: 0.003 for 1e9 examples. Tails below 1e-7 are noise in float32, tails below
    1e-15 in float64.

    It prints its mean and equal-tailed 95 % interval; `to_dict` and `to_frame` add the standard
    deviation.

    >>> average = BetaAverage([[91, 11], [96, 6]])
    >>> average
    0.917 [0.875, 0.950]
    >>> average.mean, average.interval(0.95)
    (np.float64(0.91667), (np.float64(0.8755), np.float64(0.9503)))
    """

    __slots__ = ()
    _plural = "averages of betas"

    def __new__(cls, parameters: ArrayLike, *computed: Any) -> BetaAverage:  # noqa: D102  # the class says it
        if computed:  # a pytree that is put together
            return super().__new__(cls, parameters, *computed)
        p = as_float(parameters, "parameters")
        if p.ndim < 2 or p.shape[-1] != 2 or p.shape[-2] == 0:
            raise ValueError(
                "parameters must have shape (..., k, 2), a row (alpha, beta) per class,"
                f" got {p.shape}. jaxmetrics.betas.get_beta_parameters makes them from a confusion"
                " matrix."
            )
        k, least = p.shape[-2], smallest_parameter(p.shape[-2])
        if is_known(p) and bool((p < least * (1 - 1e-6)).any()):
            raise ValueError(
                f"parameters must be at least {least} for {k} classes, got {float(p.min()):g}: use"
                " a larger prior, such as Jeffreys' prior, 0.5."
            )
        masked, origin, flat, found = _prepare(p)
        spline = None
        if found is not None:
            flat_spline = _convolutions.final_distribution(*found, flat)
            spline = trees.map(lambda v: v.reshape((*p.shape[:-2], *v.shape[1:])), flat_spline)
        return super().__new__(cls, masked, origin, spline)

    def _plain(self) -> str:
        if getattr(self.parameters, "ndim", 0) < 2:  # a pytree of something else
            return super()._plain()
        return f"BetaAverage(k={self.parameters.shape[-2]}, shape={self.shape})"

    def _members(self) -> Members | None:
        if not all(map(is_known_number, trees.leaves(self))) or np.ndim(self.parameters) < 2:
            return None
        # On the host, so that printing does not compile.
        return members_of(trees.map(np.asarray, self)._summary())

    def _summary(self) -> _Summary:
        return _Summary(self.mean, *self.interval(), xp.sqrt(self.variance))

    def to_dict(self) -> dict[str, Any]:
        """Return the mean, the equal-tailed 95 % interval and the standard deviation."""
        return self._summary().to_dict()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the batch axes."""
        return self.parameters.shape[:-2]

    @property
    @compiled
    def mean(self) -> Array:
        """`sum_i alpha_i / (alpha_i + beta_i) / k`."""
        return (self.parameters[..., 0] / self.parameters.sum(-1)).mean(-1)

    @property
    @compiled
    def variance(self) -> Array:
        """`sum_i alpha_i beta_i / ((alpha_i + beta_i)^2 (alpha_i + beta_i + 1)) / k^2`."""
        variances = distributions.variance_of(self.parameters[..., 0], self.parameters[..., 1])
        return variances.sum(-1) / self.parameters.shape[-2] ** 2

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at x; 0 outside of [0, 1]."""
        return _pdf(self, self._query(x, "x"))

    def cdf(self, x: ArrayLike) -> Array:
        """Return the cumulative distribution `P(A <= x)`; 0 below and 1 above [0, 1]."""
        return _cdf(self, self._query(x, "x"))

    def sf(self, x: ArrayLike) -> Array:
        """Return the survival function `P(A > x) = 1 - cdf(x)`.

        It is the probability of being better than x. Its absolute error is the same as the error of
        the cdf.
        """
        return 1 - self.cdf(x)

    def ppf(self, q: ArrayLike) -> Array:
        """Return the quantile, x with `P(A <= x) = q`; NaN for q outside of [0, 1].

        It is inaccurate for q closer to 0 or 1 than 1e-8.
        """
        return _quantile(self, self._query(q, "q"))

    def _query(self, x: ArrayLike, name: str) -> Array:
        array = as_float(x, name)
        try:
            np.broadcast_shapes(array.shape, self.shape)
        except ValueError:
            raise ValueError(
                f"{name} of shape {array.shape} does not broadcast against the batch {self.shape}"
                f" of this BetaAverage; use {name}[:, None] for several values of each."
            ) from None
        return array

    @property
    def mode(self) -> Array:
        """Mode, the point of highest density.

        If there are several modes it is the highest one found; for a flat density it is the centre.
        """
        return _mode_of_one(self.parameters) if self.spline is None else _mode(self)

    def interval(
        self, level: float = 0.95, kind: Literal["equal_tailed", "hdi"] = "equal_tailed"
    ) -> tuple[Array, Array]:
        """Return the ends of a credible interval, which contains A with probability `level`.

        `"equal_tailed"` leaves `(1 - level) / 2` on each side; `"hdi"`, the highest-density
        interval, is the shortest.

        Raises:
            ValueError: a level outside of (0, 1), an unknown kind.
        """
        check_level(level)
        if kind == "equal_tailed":
            return _equal_tailed(self, (1 - level) / 2)
        if kind != "hdi":
            raise ValueError(f'kind must be "equal_tailed" or "hdi", got {kind!r}.')
        return _shortest(self, level)

    def sample(
        self, key: KeyLike, shape: tuple[int, ...] = (), *, method: Literal["ppf", "betas"] = "ppf"
    ) -> Array:
        """Draw `(*shape, *batch)` independent values.

        Args:
            key: a JAX key, an int seed or, for NumPy parameters, a NumPy Generator.
            shape: the shape of the draws of one average.
            method: `"ppf"` evaluates quantiles of the spline, `"betas"` draws and averages k betas.
        """
        if not (isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)):
            raise ValueError(f"shape must be a tuple of sizes, such as (1000,), got {shape!r}.")
        source = as_key(key, self.parameters)
        if method == "betas":
            a, b = self.parameters[..., 0], self.parameters[..., 1]
            if isinstance(source, HostKey):
                return source.generator().beta(a, b, (*shape, *a.shape)).mean(-1)
            return jax.random.beta(source, a, b, (*shape, *a.shape)).mean(-1)
        if method != "ppf":
            raise ValueError(f'method must be "ppf" or "betas", got {method!r}.')
        return self.ppf(_uniforms(source, (*shape, *self.shape), self.parameters.dtype))


def _uniforms(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    if isinstance(key, HostKey):
        return key.generator().random(shape)
    return jax.random.uniform(key, shape, dtype, float(np.finfo(dtype).tiny))


def _per_query(average: BetaAverage, x: Array, function: Callable[[Spline, Array], Array]) -> Array:
    """Return `function(spline, x)`, with x broadcast against the batch.

    The functions of splines take queries on the last axis, so they are moved there and back.
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


def _single_beta(average: BetaAverage, x: Array) -> tuple[Array, Array, Array]:
    """Return x, a and b, broadcast, for the functions of a single beta distribution."""
    x, a, b = xp.broadcast_arrays(x, average.parameters[..., 0, 0], average.parameters[..., 0, 1])
    return x, a, b


def _nan_for_nan(value: Array, average: BetaAverage, x: Array) -> Array:
    return xp.where(xp.isnan(x) | xp.isnan(average.origin[0]), xp.nan, value)


# Derivatives with respect to x are derivatives of the spline's polynomials; derivatives with
# respect to the parameters flow through its values.


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
) -> tuple[Array, Array]:
    return jax.jvp(lambda average: function(average, x), (average,), (tangent,))


@_cdf.defjvp
@compiled
def _cdf_jvp(
    primals: tuple[BetaAverage, Array], tangents: tuple[BetaAverage, Array]
) -> tuple[Array, Array]:
    value, tangent = _jvp_by_parameters(_cdf.fun, *primals, tangents[0])
    density = xp.minimum(_pdf(*primals), xp.finfo(value.dtype).max)  # finite at a pole
    return value, tangent + density * tangents[1]


@_pdf.defjvp
@compiled
def _pdf_jvp(
    primals: tuple[BetaAverage, Array], tangents: tuple[BetaAverage, Array]
) -> tuple[Array, Array]:
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
) -> tuple[Array, Array]:
    """Differentiate F(x) = q: dx = (dq - dF) / f(x)."""
    average, q = primals
    x = _quantile(average, q)
    _, by_parameters = _jvp_by_parameters(_cdf, average, x, tangents[0])
    return x, (tangents[1] - by_parameters) / _pdf(average, x)


@compiled
def _equal_tailed(average: BetaAverage, tail: Array) -> tuple[Array, Array]:
    """Return the quantiles with probability `tail` on either side.

    For a single beta the upper end is found from its own tail, since 1 - tail has fewer digits; the
    spline of a sum has no more digits than that.
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
    """Return where a function becomes positive, by bisection."""
    # To 2^-36 of the bracket: below, the rounding of densities decides.
    fraction = 2.0 ** -min(xp.finfo(low.dtype).nmant, 36)

    def at(t: Array) -> tuple[Array, Array]:
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
    """Find the mode: the best of some quantiles, then a root of the slope between its
    neighbours.
    """
    levels = np.linspace(0, 1, 65).clip(1e-5, 1 - 1e-5).astype(average.parameters.dtype)
    x = _quantile(average, levels.reshape((-1, *(1,) * len(average.shape))))
    best = xp.argmax(_pdf(average, x), axis=0, keepdims=True)
    low, high = (xp.take_along_axis(x, xp.clip(best + i, 0, 64), 0)[0] for i in (-1, 1))
    return _sign_change(lambda x: -_slope_at(average, x), low, high)


@_mode.defjvp
@compiled
def _mode_jvp(primals: tuple[BetaAverage], tangents: tuple[BetaAverage]) -> tuple[Array, Array]:
    def minus_slope(x: Array, average: BetaAverage) -> Array:
        return -_slope_at(average, x)

    x = _mode(*primals)
    room = 1e-2 * xp.sqrt(primals[0].variance)
    return x, _tangent_of_root(minus_slope, x, primals, tangents, room)


@compiled
def _shortest(average: BetaAverage, level: Array) -> tuple[Array, Array]:
    """Find the ends with F(high) - F(low) = level and the same density.

    If there are none, one end is an end of the support.
    """
    level = xp.asarray(level, average.parameters.dtype)
    low, high = _ends(_mass_below(average, level), average, level)
    return low, high


def _ends(below: Array, average: BetaAverage, level: Array) -> Array:
    """Return the quantiles with this mass below, and `level` between them."""
    return _quantile(average, xp.stack([below, xp.minimum(below + level, 1)]))


def _excess(below: Array, average: BetaAverage, level: Array) -> Array:
    """Return how much higher the density is at the lower end."""
    at_low, at_high = _pdf(average, _ends(below, average, level))
    return at_low - at_high


@custom_jvp
@compiled
def _mass_below(average: BetaAverage, level: Array) -> Array:
    """Return the mass below the shortest interval."""
    zeros = 0 * average.origin[0]

    def sign_of_excess(below: Array) -> Array:
        return xp.where(_excess(below, average, level) < 0, -1, 1) * xp.ones_like(below)

    return _sign_change(sign_of_excess, zeros, zeros + (1 - level))


@_mass_below.defjvp
@compiled
def _mass_below_jvp(
    primals: tuple[BetaAverage, Array], tangents: tuple[BetaAverage, Array]
) -> tuple[Array, Array]:
    below = _mass_below(*primals)
    room = 1e-2 * (1 - primals[1])
    return below, _tangent_of_root(_excess, below, primals, tangents, room)


def _tangent_of_root(
    rising: Callable[..., Array], x: Array, primals: Any, tangents: Any, room: Array
) -> Array:
    """Differentiate `rising(x, *primals) = 0` with respect to the primals: dx = -dr / r'(x).

    It is 0 if x is not a root but an end of the support or a kink, so that Newton's step to the
    root would be longer than `room`.
    """
    value, change = jax.jvp(lambda *p: rising(x, *p), primals, tangents)
    _, slope = jax.jvp(lambda x: rising(x, *primals), (x,), (xp.ones_like(x),))
    is_root = (slope > 0) & (xp.abs(value) < room * slope)
    return xp.where(is_root, -change / xp.where(is_root, slope, 1), 0)


def beta_avg_pdf(x: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the density of the average of independent betas: `BetaAverage(parameters).pdf(x)`.

    Args:
        x: real numbers, which broadcast against the batch axes of the parameters.
        parameters: `(..., k, 2)`, a row (alpha_i, beta_i) > 0 per class.

    Returns:
        The density of `(A_1 + ... + A_k) / k` at x, of the common shape. Errors and NaN are the
        same as for `BetaAverage`.

    >>> beta_avg_pdf([0.25, 0.375], [[1, 1], [1, 1]]).round(3).tolist()
    [1.0, 1.5]
    """
    return BetaAverage(parameters).pdf(x)


def beta_avg_cdf(x: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the cdf of the average of independent betas: `BetaAverage(parameters).cdf(x)`.

    It is `P((A_1 + ... + A_k) / k <= x)`. `parameters` are `(..., k, 2)`, a row (alpha_i, beta_i) >
    0 per class; x broadcasts against their batch axes.

    >>> beta_avg_cdf([0.25, 0.5], [[1, 1], [1, 1]]).round(4).tolist()
    [0.125, 0.5]
    """
    return BetaAverage(parameters).cdf(x)


def beta_avg_inv_cdf(q: ArrayLike, parameters: ArrayLike) -> Array:
    """Return the quantile of the average of independent betas: `BetaAverage(parameters).ppf(q)`.

    `parameters` are `(..., k, 2)`, a row (alpha_i, beta_i) > 0 per class; q broadcasts against
    their batch axes. For many calls construct one `BetaAverage`.

    >>> beta_avg_inv_cdf([0.125, 0.5], [[1, 1], [1, 1]]).round(4).tolist()
    [0.25, 0.5]
    """
    return BetaAverage(parameters).ppf(q)
