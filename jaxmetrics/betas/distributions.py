"""The beta distribution: density, cdf, quantiles, and integration nodes for sums of beta variables.

If arguments are NumPy arrays, the cdf and the quantiles are computed by SciPy. JAX has neither
quantiles nor derivatives with respect to a and b. Therefore, if arguments are JAX arrays, these are
computed by double exponential quadrature: integrals over an interval are trapezoidal sums in v,
where the point v is at the fraction y = 1 / (1 + exp(-sinh v)) of the interval. The nodes are very
dense at both ends, so that x^(a-1), which has a pole under Jeffreys' prior, needs no more nodes
than a smooth function. If there are about ninety nodes, all results are accurate up to rounding
errors, whether the posterior is computed from 0 or from 1e9 examples. Source: Takahasi and Mori
(1974), Publ. RIMS 9.

The formulas avoid cancellation, so that results are accurate in float32, too. A point is stored as
its offset z from the mean together with its distances x and 1 - x from both ends. The logarithm of
x^a (1-x)^b, relative to its greatest value at the mean a / (a + b), is computed as
`a psi(z / mean) + b psi(-z / (1 - mean))` with psi(y) = log(1 + y) - y, without first-order terms.
For derivatives with respect to a and b, the nodes are constants and only their weights are
differentiated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._arguments.single import ArrayLike, as_float
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, Arrays, custom_jvp, lax, scipys, xp
from jaxmetrics.betas._quadrature import POLE, Grid, grid, grid_for_ends

__all__ = ["beta_cdf", "beta_pdf", "beta_ppf"]


class Beta(NamedTuple):
    """Beta(a, b) and an interval (window) that contains its mass; all arrays have the shape of
    a.
    """

    a: Array
    b: Array
    mean: Array
    rest: Array  # 1 - mean
    low: Array  # ends of the window relative to the mean
    high: Array
    x_low: Array  # x at the lower end of the window
    rest_high: Array  # 1 - x at the upper end of the window
    hard_low: Array  # whether the window ends at x = 0
    hard_high: Array

    @property
    def has_two_hard_ends(self) -> Array:
        return self.hard_low & self.hard_high


def negligible(dtype: np.dtype) -> float:
    """Return -log of the mass outside of windows: e^-36 = 2e-16 in float64, e^-17 = 4e-8 in
    float32.
    """
    return 36.0 if dtype == np.float64 else 17.0


def variance_of(a: Array, b: Array) -> Array:
    """Return the variance of Beta(a, b)."""
    n = a + b
    return (a / n) * (b / n) / (n + 1)


def reach(variance: Array, ratio: Array) -> Array:
    """Return the distance above the mean that a sum of beta variables exceeds with negligible
    probability.

    The distance t is computed from `P(S - mean > t) <= exp(-t^2 / (2 (v + c t / 3)))`, where v is
    the variance of the sum and c the greatest `skewness` of its terms: Skorski (2023), Modern
    Stochastics 10.
    """
    tau = negligible(variance.dtype)
    c = xp.maximum(ratio, 0) * (tau / 3)
    return c + xp.sqrt(c**2 + 2 * tau * variance)


def skewness(a: Array, b: Array) -> Array:
    """Return the ratio of the third to the second central moment of Beta(a, b).

    If the distance is below the mean, the negative ratio is needed.
    """
    n = a + b
    return 2 * (b - a) / (n * (n + 2))


def beta(a: Array, b: Array) -> Beta:
    """Return Beta(a, b) with its window, which is treated as a constant in derivatives."""
    a0, b0 = (lax.stop_gradient(v) for v in (a, b))
    mean, rest = a0 / (a0 + b0), b0 / (a0 + b0)
    variance, ratio = variance_of(a0, b0), skewness(a0, b0)
    below, above = reach(variance, -ratio), reach(variance, ratio)
    low, high = -xp.minimum(below, mean), xp.minimum(above, rest)
    return Beta(
        a,
        b,
        mean,
        rest,
        low,
        high,
        xp.maximum(mean - below, 0),
        xp.maximum(rest - above, 0),
        below >= mean,
        above >= rest,
    )


class Interval(NamedTuple):
    """A part of the support. Length and distances are stored, because differences of the ends would
    cancel.
    """

    start: Array  # start relative to the mean
    stop: Array
    length: Array
    x_start: Array  # x at the start
    rest_stop: Array  # 1 - x at the stop


def masses(beta: Beta, interval: Interval, places: Grid) -> Arrays:
    """Return the offsets of the nodes from the mean, and their weights times the density.

    Both arrays have a new last axis. The density is not normalised: it is divided by the value of
    `x^a (1-x)^b` at the mean.
    """
    beta = Beta(*(v[..., None] for v in beta))
    start, stop, length, x_start, rest_stop = (v[..., None] for v in interval)
    z = xp.where(places.y < places.rest, start + length * places.y, stop - length * places.rest)
    log_x, share = _beyond(x_start, length, places.y, places.log_y, beta.mean)
    log_rest, other_share = _beyond(rest_stop, length, places.rest, places.log_rest, beta.rest)
    weight = places.weight * (share * other_share) / xp.where(length > 0, length, xp.inf)
    return z, xp.exp(log_density(beta, z, log_x, log_rest)) * weight


def _beyond(distance: Array, length: Array, y: Array, log_y: Array, unit: Array) -> Arrays:
    """Return `log((distance + length y) / unit)` and `length y / (distance + length y)`.

    If the distance is 0, the product `length y` may underflow, but these two values do not.
    """
    at_end = distance <= 0
    reached = xp.where(at_end, unit, distance + length * y)
    log_length = xp.log(positive(length / unit))
    log_reached = xp.where(at_end, log_length + log_y, xp.log(reached / unit))
    return log_reached, xp.where(at_end, 1, length * y / reached)


def log_density(beta: Beta, z: Array, log_x: Array, log_rest: Array) -> Array:
    """Return `log(x^a (1-x)^b)` relative to its value at the mean.

    `log_x` is log(x / mean), and `log_rest` is log((1 - x) / (1 - mean)).
    """
    up, down = z / beta.mean, -z / beta.rest
    by_a, by_b = beta.a - lax.stop_gradient(beta.a), beta.b - lax.stop_gradient(beta.b)
    first_order = by_a * up + by_b * down  # is 0, but its derivatives are not
    return beta.a * log1p_minus(up, log_x) + beta.b * log1p_minus(down, log_rest) + first_order


def log1p_minus(y: Array, log1p_y: Array) -> Array:
    """Return `log(1 + y) - y`. If y is small, a series is used.

    The series is -y w + 2 w^3 (1/3 + w^2/5 + w^4/7 + ...) with w = y / (2 + y).
    """
    near = xp.abs(y) < 0.1
    w = xp.where(near, y / (2 + y), 0)
    w2 = w * w
    series = w * (2 * w2 * (1 / 3 + w2 * (1 / 5 + w2 * (1 / 7 + w2 * (1 / 9 + w2 / 11)))) - y)
    return xp.where(near, series, log1p_y - y)


def whole_window(beta: Beta) -> Interval:
    """Return the part of the support that contains the mass."""
    return Interval(beta.low, beta.high, beta.high - beta.low, beta.x_low, beta.rest_high)


def nodes(beta: Beta, m: int) -> Arrays:
    """Return m integration nodes in the window and their masses, on a new last axis, as in
    `masses`.
    """
    dtype = beta.mean.dtype
    places = grid_for_ends(m, beta.hard_low, beta.hard_high, dtype, at_middles=True)
    return masses(beta, whole_window(beta), places)


def _nodes_of_one(dtype: np.dtype) -> Grid:
    """Return integration nodes for a density that may have a pole at either end of an interval."""
    m = 160 if dtype == np.float64 else 80
    return Grid(*(v.astype(dtype) for v in grid(POLE, POLE, m, at_middles=True)))


def _offset(beta: Beta, x: Array, rest: Array) -> Array:
    """Return x - mean. If the mean is near 1, the difference is computed from 1 - x, which is more
    precise than x.
    """
    return xp.where(beta.mean > beta.rest, beta.rest - rest, x - beta.mean)


def _below(beta: Beta, z: Array, x: Array, rest: Array) -> Interval:
    length = xp.where(beta.hard_low, x, z - beta.low)
    return Interval(beta.low, z, length, beta.x_low, rest)


def pdf(x: Array, a: Array, b: Array) -> Array:
    """Return the density of Beta(a, b) at x."""
    one = beta(a, b)
    inside = (x > 0) & (x < 1)
    y = xp.where(inside, x, 0.5)
    log_x, log_rest = xp.log(y / one.mean), xp.log((1 - y) / one.rest)
    unnormalized = xp.exp(log_density(one, _offset(one, y, 1 - y), log_x, log_rest))
    total = masses(one, whole_window(one), _nodes_of_one(a.dtype))[1].sum(-1)
    value = unnormalized / (y * (1 - y) * total)
    beyond = xp.where(xp.isnan(x), x, 0)
    at_ends = xp.where(x == 0, _limit(a, b), xp.where(x == 1, _limit(b, a), beyond))
    return xp.where(inside, value, at_ends)


def _limit(a: Array, b: Array) -> Array:
    """Return the density of Beta(a, b) at x = 0. For the density at x = 1 exchange a and b."""
    return xp.where(a < 1, xp.inf, xp.where(a > 1, 0, b))


def slope_of_pdf(x: Array, a: Array, b: Array) -> Array:
    """Return the derivative of the density with respect to x."""
    inside = (x > 0) & (x < 1)
    y = xp.where(inside, x, 0.5)
    return xp.where(inside, pdf(y, a, b) * ((a - 1) / y - (b - 1) / (1 - y)), 0)


def in_support(x: Array) -> Array:
    """Clip x to [0, 1]; the derivative is 1 at both ends."""
    return xp.where(x < 0, 0, xp.where(x > 1, 1, x))


@scipys
def betainc(a: Array, b: Array, x: Array) -> Array:
    """Return P(X <= x) for 0 <= x <= 1."""
    return _cdf(x, a, b)


@scipys
def betaincinv(a: Array, b: Array, q: Array) -> Array:
    """Return the quantile x with P(X <= x) = q."""
    return _quantiles(q, a, b)[0]


@scipys
def betainccinv(a: Array, b: Array, q: Array) -> Array:
    """Return x with P(X > x) = q, accurate even if q is so small that 1 - q is rounded."""
    return _quantiles(q, b, a)[1]


@custom_jvp
def _cdf(x: Array, a: Array, b: Array) -> Array:
    """Return P(X <= x), computed from the mass on the side of x that does not contain the mean.

    If the density has a single pole, the mass on the side of the pole is used instead.
    """
    upper = _is_by_upper_tail(a, b, _offset(beta(a, b), x, 1 - x) > 0)
    one, (near, far) = beta(*mirrored(upper, a, b)), mirrored(upper, x, 1 - x)
    # The offset and both distances are clipped at the ends of the window, beyond which there is no
    # mass.
    near_one = one.mean > one.rest  # then 1 - x is more precise than x
    near = xp.clip(near, one.x_low, xp.where(near_one, 1 - one.rest_high, one.mean + one.high))
    far = xp.clip(far, one.rest_high, xp.where(near_one, one.rest - one.low, 1 - one.x_low))
    z = xp.clip(_offset(one, near, far), one.low, one.high)
    # One call for the tail and for the whole window, so that the quadrature is compiled once.
    parts = zip(_below(one, z, near, far), whole_window(one), strict=True)
    both = Interval(*(xp.stack(xp.broadcast_arrays(*part)) for part in parts))
    mass, total = masses(one, both, _nodes_of_one(a.dtype))[1].sum(-1)
    tail = mass / total
    value = xp.clip(xp.where(upper, 1 - tail, tail), 0, 1)
    return xp.where(x <= 0, 0, xp.where(x >= 1, 1, value))


def mirrored(upper: Array, low: Array, high: Array) -> Arrays:
    """Exchange the values for both ends of the support if the upper tail is needed."""
    return xp.where(upper, high, low), xp.where(upper, low, high)


def _is_by_upper_tail(a: Array, b: Array, upper: Array) -> Array:
    """Return `upper`. If there is a single pole, return instead whether this pole is at x = 1.

    An integral that begins very close to a pole would need more nodes.
    """
    pole_low, pole_high = a < 0.5, b < 0.5
    return xp.where(pole_low == pole_high, upper, pole_high)


@_cdf.defjvp
@compiled
def _cdf_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    x, a, b = primals
    value, by_parameters = jax.jvp(lambda a, b: _cdf.fun(x, a, b), (a, b), tangents[1:])
    density = xp.minimum(pdf(x, a, b), xp.finfo(x.dtype).max)  # finite at a pole
    return value, by_parameters + density * tangents[0]


@custom_jvp
def _quantiles(q: Array, a: Array, b: Array) -> Arrays:
    """Return the quantile x with P(X <= x) = q, and 1 - x, computed from the smaller tail."""
    upper = _is_by_upper_tail(a, b, q > 0.5)
    tail = xp.where(upper, 1 - q, q)
    x, rest = mirrored(upper, *_lower_quantile(tail, *mirrored(upper, a, b)))
    at_end = (q == 0) | (q == 1)
    return xp.where(at_end, q, x), xp.where(at_end, 1 - q, rest)


def _lower_quantile(q: Array, a: Array, b: Array) -> Arrays:
    """Return the quantile x with P(X <= x) = q, and 1 - x, computed from the mass below x.

    Newton's method is used for log F as a function of log(x / (1 - x)). This function is concave,
    so that the method converges from either side.
    """
    one, places = beta(a, b), _nodes_of_one(a.dtype)
    wanted, *start = _nearest_node(q, one, places)

    def refine(_: int, point: Arrays) -> Arrays:
        z, x, rest = point
        mass = masses(one, _below(one, z, x, rest), places)[1].sum(-1)
        by_logit = xp.exp(log_density(one, z, xp.log(x / one.mean), xp.log(rest / one.rest)))
        excess = xp.log(positive(wanted) / positive(mass))
        growth = xp.expm1(xp.clip(excess * mass / positive(by_logit), -64, 64))
        scale = 1 + x * growth
        moved = x * rest * (growth / scale)
        return z + moved, positive(x * ((1 + growth) / scale)), positive(rest / scale)

    z, x, rest = lax.fori_loop(0, 7, refine, tuple(start))
    # Near the mean, the offset from the mean is more precise.
    x = xp.where(xp.abs(z) < one.mean / 2, one.mean + z, x)
    return x, xp.where(xp.abs(z) < one.rest / 2, one.rest - z, rest)


def positive(x: Array) -> Array:
    """Replace numbers that are not positive by the smallest positive number, for the logarithm."""
    return xp.maximum(x, xp.finfo(x.dtype).tiny)


def _nearest_node(q: Array, one: Beta, places: Grid) -> Arrays:
    """Return the mass below the quantile, and z, x and 1 - x of the first node above it."""
    window = whole_window(one)
    offsets, mass = masses(one, window, places)
    reached = xp.cumsum(mass, -1)
    wanted = q * reached[..., -1]
    node = xp.minimum((reached < wanted[..., None]).sum(-1, keepdims=True), len(places.y) - 1)
    z = xp.take_along_axis(offsets, node, -1)[..., 0]
    x = one.x_low + window.length * xp.take(places.y, node[..., 0])
    rest = one.rest_high + window.length * xp.take(places.rest, node[..., 0])
    return wanted, z, positive(x), positive(rest)


@_quantiles.defjvp
@compiled
def _quantiles_jvp(primals: Arrays, tangents: Arrays) -> tuple[Arrays, Arrays]:
    """Compute the derivative from F(x; a, b) = q: dx = (dq - dF) / f(x)."""
    q, a, b = primals
    x, rest = _quantiles(q, a, b)
    _, by_parameters = jax.jvp(lambda a, b: _cdf(x, a, b), (a, b), tangents[1:])
    dx = (tangents[0] - by_parameters) / pdf(x, a, b)
    return (x, rest), (dx, -dx)


def _beta_arguments(x: ArrayLike, a: ArrayLike, b: ArrayLike, name: str) -> Arrays:
    """Return broadcast x, a and b, with 1 in place of invalid parameters, and a mask of the valid
    ones.
    """
    x, a, b = xp.broadcast_arrays(as_float(x, name), as_float(a, "a"), as_float(b, "b"))
    valid = (a > 0) & (b > 0) & (a < xp.inf) & (b < xp.inf)
    return x, xp.where(valid, a, 1), xp.where(valid, b, 1), valid


@on_host_if_small
@compiled
def beta_pdf(x: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """Return the density of the beta distribution, `x^(a-1) (1-x)^(b-1) / B(a, b)`.

    Args:
        x: real numbers.
        a, b: parameters of the distribution. x, a and b broadcast.

    Returns:
        The density at x. It is 0 if x is not in [0, 1], and NaN if a or b is not positive and
        finite.

    Raises:
        TypeError, ValueError: if arguments are not real numbers or do not broadcast.

    >>> beta_pdf(0.5, 2, 2)
    np.float64(1.5)
    """
    z, a, b, valid = _beta_arguments(x, a, b, "x")
    return xp.where(valid, pdf(z, a, b), xp.nan)


@on_host_if_small
@compiled
def beta_cdf(x: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """Return the cdf of the beta distribution, `P(X <= x)`, the regularised incomplete beta
    function.

    x, a and b broadcast. Derivatives with respect to all of them can be computed. The result is NaN
    if a or b is not positive and finite. NumPy arrays are passed to SciPy. For JAX arrays with a
    and b between 0.1 and 1e9, the greatest error found was 2e-10. In float32 the error is 1e-6. The
    rounding of x to float32 adds an error, which is 0.003 for 1e9 examples. For JAX arrays, tail
    probabilities below 1e-15 (float32: 1e-7) are not accurate.

    >>> beta_cdf([0.25, 0.5], 2, 2).tolist()
    [0.15625, 0.5]

    >>> import jax
    >>> float(jax.grad(beta_cdf, argnums=1)(0.5, 2.0, 2.0))
    -0.22157
    """
    z, a, b, valid = _beta_arguments(x, a, b, "x")
    return xp.where(valid & ~xp.isnan(z), betainc(a, b, in_support(z)), xp.nan)


@on_host_if_small
@compiled
def beta_ppf(q: ArrayLike, a: ArrayLike, b: ArrayLike) -> Array:
    """Return the quantile function of the beta distribution, the inverse of `beta_cdf`.

    q, a and b broadcast. Derivatives with respect to all of them can be computed. The result is NaN
    if q is not in [0, 1], or if a or b is not positive and finite. NumPy arrays are passed to
    SciPy. For JAX arrays, quantiles are not accurate if q is within 1e-16 (float32: 1e-7) of 0 or
    1. In float32 the error is at most 2e-6 if q is between .025 and .975, and .006 if q = 1e-6.

    >>> beta_ppf([0.025, 0.975], 91, 11).tolist()
    [0.8254, 0.9444]
    """
    z, a, b, valid = _beta_arguments(q, a, b, "q")
    possible = (z >= 0) & (z <= 1)
    return xp.where(valid & possible, betaincinv(a, b, xp.where(possible, z, 0.5)), xp.nan)
