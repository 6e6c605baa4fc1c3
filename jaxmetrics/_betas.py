"""The beta distribution in the angle theta, x = sin^2 theta: what one class contributes, and its cdf and quantiles.

In theta, Beta(a, b) has the density `2 sin^p theta cos^q theta / B(a, b)` with p = 2a - 1, q = 2b - 1: smooth for integer and
half-integer a, b, so without the poles that x^(a-1) has for Jeffreys' prior, and for p, q >= 0 bell-shaped around
theta* = atan sqrt(p / q), `(a + b - 1) d^2` or more (in logarithms) below its top at theta* + d. So Gauss-Legendre nodes on a
window of that width resolve it for 0 examples as for 1e9. Where a or b is below 1/2, the nodes are spaced as a power of the
distance from that end, which removes the pole.

Nothing is lost to cancellation, in float32 either: positions are offsets from sin^2 theta*, and the logarithms of the density
are those of 1 + (small quantity) with the first-order terms taken out, since they cancel by the choice of theta*.
Gradients with respect to a and b flow through the weights alone: nodes and windows are constants.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arrays import promoting

__all__: list[str] = []


class Bell(NamedTuple):
    """Beta(a, b) in theta. All arrays have the shape of a."""

    p: jax.Array
    q: jax.Array
    sin: jax.Array  # of theta*
    cos: jax.Array
    below: jax.Array  # theta*, the room between the mode and the end x = 0
    above: jax.Array  # pi/2 - theta*
    left: jax.Array  # reaches of the window: theta* - left .. theta* + right
    right: jax.Array
    left_power: jax.Array  # nodes near x = 0 are spaced as this power of their number
    right_power: jax.Array


def drop(dtype: np.dtype) -> float:
    """How far (in logarithms) below its top a density is cut off: e^-36 = 2e-16 is nothing in float64, e^-17 in float32."""
    return 36.0 if dtype == np.float64 else 17.0


def bell(a: jax.Array, b: jax.Array) -> Bell:
    p, q = 2 * a - 1, 2 * b - 1
    p0, q0 = lax.stop_gradient((jnp.maximum(p, 0), jnp.maximum(q, 0)))
    flat = (p0 == 0) & (q0 == 0)
    p1, q1 = jnp.where(flat, 1, p0), jnp.where(flat, 1, q0)
    below, above = jnp.atan2(jnp.sqrt(p1), jnp.sqrt(q1)), jnp.atan2(jnp.sqrt(q1), jnp.sqrt(p1))
    sin, cos = jnp.sqrt(p1 / (p1 + q1)), jnp.sqrt(q1 / (p1 + q1))
    bound = jnp.sqrt(2 * drop(a.dtype) / jnp.maximum(p0 + q0, 1e-3))
    shape = Bell(p0, q0, sin, cos, below, above, bound, bound, _power(a), _power(b))
    mirrored = Bell(q0, p0, cos, sin, above, below, bound, bound, shape.right_power, shape.left_power)
    right, left = _reach(Bell(*(jnp.stack(sides) for sides in zip(shape, mirrored, strict=True))))
    return shape._replace(p=p, q=q, left=left, right=right)


def _power(a: jax.Array) -> jax.Array:
    """r with theta = s^r such that theta^(2a) is a polynomial in s, or flat enough at its end."""
    a = lax.stop_gradient(a)
    return jnp.where((a > 3) | ((a >= 0.5) & (2 * a == jnp.round(2 * a))), 1, jnp.ceil(jnp.maximum(4 * a, 1)) / (2 * a))


def _reach(shape: Bell) -> jax.Array:
    """The right reach: Newton steps from outside towards the place where the (concave) log-density has dropped enough.

    They start at the bound for every bell or where `sin^p cos^q <= cos^q` has dropped, whichever is nearer to the mode.
    """
    enough = drop(shape.right.dtype)
    top = shape.p * jnp.log(jnp.where(shape.p > 0, shape.sin, 1)) + shape.q * jnp.log(jnp.where(shape.q > 0, shape.cos, 1))
    from_end = jnp.where(shape.q > 0, jnp.exp((top - enough) / jnp.where(shape.q > 0, shape.q, 1)), 0)

    def step(_: int, reach: jax.Array) -> jax.Array:
        theta = shape.below + reach
        height = log_density(shape, reach, theta, shape.above - reach)
        slope = shape.q * jnp.tan(theta) - shape.p / jnp.tan(theta)
        excess = jnp.maximum(-height - enough, 0)
        return jnp.where(slope > 0, jnp.maximum(reach - excess / jnp.where(slope > 0, slope, 1), reach / 2), reach)

    return lax.fori_loop(0, 3, step, jnp.maximum(jnp.minimum(shape.right, shape.above - from_end), 0))


def hard_ends(shape: Bell) -> tuple[jax.Array, jax.Array]:
    """Whether the window ends at x = 0 and at x = 1, or so near to them that the density is a power of the distance."""
    near = 0.1 * (shape.left + shape.right)
    return shape.below - shape.left < near, shape.above - shape.right < near


def ends(shape: Bell) -> tuple[jax.Array, jax.Array]:
    """x at the left end of the window and 1 - x at its right end, to full relative precision."""
    return jnp.sin(shape.below - shape.left) ** 2, jnp.sin(shape.above - shape.right) ** 2


def log_density(shape: Bell, d: jax.Array, theta: jax.Array, colatitude: jax.Array) -> jax.Array:
    """`p log(sin theta / sin theta*) + q log(cos theta / cos theta*)` at theta = theta* + d, colatitude = pi/2 - theta.

    The quotients are 1 + u and 1 + v with u = cot theta* sin d - 2 sin^2(d/2), v = -tan theta* sin d - 2 sin^2(d/2), and
    p cot theta* = q tan theta*, so that of `p u + q v` only the second-order part is left.
    """
    p, q, sin, cos = shape.p, shape.q, shape.sin, shape.cos
    sine, versine = _sine_and_versine(d)
    inside_p, inside_q = lax.stop_gradient(p) > 0, lax.stop_gradient(q) > 0
    both = inside_p & inside_q
    cot = jnp.where(both, cos / jnp.where(sin > 0, sin, 1), 0)
    tan = jnp.where(both, sin / jnp.where(cos > 0, cos, 1), 0)
    u, v = cot * sine - versine, -tan * sine - versine
    first_order = (p - lax.stop_gradient(p)) * cot - (q - lax.stop_gradient(q)) * tan  # 0, but its gradient is not
    return (
        _log_power(p, u, theta, jnp.where(inside_p, sin, 1), inside_p)
        + _log_power(q, v, colatitude, jnp.where(inside_q, cos, 1), inside_q)
        + first_order * sine
        - (p + q) * versine
    )


def _log_power(p: jax.Array, u: jax.Array, angle: jax.Array, top: jax.Array, inside: jax.Array) -> jax.Array:
    """`p (log(sin(angle) / top) - u)`, where sin(angle) / top = 1 + u if the mode is inside."""
    near = inside & (jnp.abs(u) < 0.1)
    small = jnp.where(near, u, 0)
    w = small / (2 + small)  # log(1 + u) - u = -u w + 2 w^3 (1/3 + w^2/5 + w^4/7 + ...)
    w2 = w * w
    series = -small * w + 2 * w * w2 * (1 / 3 + w2 * (1 / 5 + w2 * (1 / 7 + w2 * (1 / 9 + w2 * (1 / 11)))))
    tiny = jnp.finfo(u.dtype).tiny
    return p * jnp.where(near, series, jnp.log(jnp.maximum(jnp.sin(jnp.where(near, 1, angle)), tiny) / top) - u)


def _sine_and_versine(d: jax.Array) -> tuple[jax.Array, jax.Array]:
    half = jnp.sin(d / 2)
    return 2 * half * jnp.sqrt((1 - half) * (1 + half)), 2 * half * half


def offset(shape: Bell, d: jax.Array) -> jax.Array:
    """`sin^2(theta* + d) - sin^2(theta*) = sin(2 theta* + d) sin d`."""
    sine, versine = _sine_and_versine(d)
    return sine * (2 * shape.sin * shape.cos * (1 - versine) + (shape.cos - shape.sin) * (shape.cos + shape.sin) * sine)


def angle_of(shape: Bell, x_minus_mode: jax.Array, x: jax.Array, one_minus_x: jax.Array) -> jax.Array:
    """The inverse of `offset`; x and 1 - x are asked for, because where they are small they are known better than x - mode."""
    d = jnp.atan2(x_minus_mode, shape.sin * shape.cos + jnp.sqrt(jnp.maximum(x, 0) * jnp.maximum(one_minus_x, 0)))
    return jnp.clip(d, -shape.below, shape.above)


def gauss_legendre(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(m)
    return (nodes + 1) / 2, weights / 2


def nodes(
    shape: Bell, start: jax.Array, stop: jax.Array, m: int, powers: tuple[jax.Array | float, jax.Array | float]
) -> tuple[jax.Array, jax.Array]:
    """m nodes between theta* + start and theta* + stop, on a new last axis: d and the weight times the density.

    Near the two ends the nodes are spaced as powers of their number; powers of 1 space them evenly.
    """
    s, weights = (jnp.asarray(v, start.dtype) for v in gauss_legendre(m))
    start, stop = start[..., None], stop[..., None]
    h, rest, slope = _spaced(s, *(jnp.asarray(power, start.dtype)[..., None] for power in powers))
    shape = Bell(*(v[..., None] for v in shape))
    length = stop - start
    d = start + length * h
    theta = (shape.below + start) + length * h
    colatitude = (shape.above - stop) + length * rest
    return d, jnp.exp(log_density(shape, d, theta, colatitude)) * length * slope * weights


def density(shape: Bell, x_minus_mode: jax.Array, x: jax.Array, one_minus_x: jax.Array) -> jax.Array:
    """By x, not theta, up to the factor 2 B(a, b) / (sin^p theta* cos^q theta*), with the three distances known apart."""
    tiny = jnp.finfo(x.dtype).tiny
    x, one_minus_x = lax.stop_gradient((jnp.maximum(x, tiny), jnp.maximum(one_minus_x, tiny)))
    root, other = jnp.sqrt(x), jnp.sqrt(one_minus_x)
    d = lax.stop_gradient(angle_of(shape, x_minus_mode, x, one_minus_x))
    return jnp.exp(log_density(shape, d, jnp.atan2(root, other), jnp.atan2(other, root))) / (2 * root * other)


def spaced_nodes(m: int, power: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """h, 1 - h and weights on [0, 1], `(..., m)`, spaced near both ends as this power `(...,)` of their number."""
    s, weights = (jnp.asarray(v, power.dtype) for v in gauss_legendre(m))
    h, rest, slope = _spaced(s, power[..., None], power[..., None])
    return h, rest, slope * weights


def _spaced(s: jax.Array, r: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """h = s^r / (s^r + (1-s)^t), 1 - h and dh/ds."""
    a, b = s**r, (1 - s) ** t
    return a / (a + b), b / (a + b), (r / s + t / (1 - s)) * a * b / (a + b) ** 2


def _nodes_of(dtype: np.dtype) -> int:
    return 64 if dtype == np.float64 else 32


def _place(shape: Bell, x: jax.Array) -> jax.Array:
    """theta - theta* of a position x in [0, 1]; 1 - x has digits that x has not where the mode is near 1."""
    x_minus_mode = jnp.where(shape.sin > shape.cos, shape.cos**2 - (1 - x), x - shape.sin**2)
    return angle_of(shape, x_minus_mode, x, 1 - x)


def whole(shape: Bell, m: int) -> jax.Array:
    """The integral of the density over the window, from m nodes."""
    return nodes(shape, -shape.left, shape.right, m, _smoothing_powers(shape))[1].sum(-1)


def _smoothing_powers(shape: Bell) -> tuple[jax.Array, jax.Array]:
    """At least 2, for the gradients, in which log(theta) stands."""
    return jnp.maximum(shape.left_power, 2), jnp.maximum(shape.right_power, 2)


def pdf(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    shape = bell(a, b)
    inside = (x > 0) & (x < 1)
    y = jnp.where(inside, x, 0.5)
    d = _place(shape, y)
    theta, colatitude = jnp.arcsin(jnp.sqrt(y)), jnp.arcsin(jnp.sqrt(1 - y))
    value = jnp.exp(log_density(shape, d, theta, colatitude)) / (
        2 * jnp.sqrt(y * (1 - y)) * whole(shape, 2 * _nodes_of(a.dtype))
    )
    at_end = jnp.where(x == 0, _limit(a, b), jnp.where(x == 1, _limit(b, a), jnp.where(jnp.isnan(x), x, 0)))
    return jnp.where(inside, value, at_end)


def _limit(a: jax.Array, b: jax.Array) -> jax.Array:
    """The density at the end where x^(a-1) stands; it is b for a = 1."""
    return jnp.where(a < 1, jnp.inf, jnp.where(a > 1, 0, b))


@jax.custom_jvp
def cdf(x: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    shape = bell(a, b)
    d = jnp.clip(_place(shape, jnp.clip(x, 0, 1)), -shape.left, shape.right)
    m = _nodes_of(a.dtype)
    left_power, right_power = _smoothing_powers(shape)
    below = nodes(shape, -shape.left, d, m, (left_power, 1.0))[1].sum(-1)
    above = nodes(shape, d, shape.right, m, (1.0, right_power))[1].sum(-1)
    poles = a < 0.5, b < 0.5
    from_left = jnp.where(poles[0] == poles[1], below < above, poles[0])  # away from a pole that lies just outside
    total = jnp.where(poles[0] | poles[1], whole(shape, 2 * m), below + above)
    value = jnp.clip(jnp.where(from_left, below / total, 1 - above / total), 0, 1)
    return jnp.where(x <= 0, 0, jnp.where(x >= 1, 1, value))


@cdf.defjvp
@promoting
def _cdf_jvp(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    x, a, b = primals
    value, by_parameters = jax.jvp(lambda a, b: cdf.fun(lax.stop_gradient(x), a, b), (a, b), tangents[1:])
    return value, by_parameters + jnp.minimum(pdf(x, a, b), jnp.finfo(x.dtype).max) * tangents[0]


@jax.custom_jvp
def ppf(q: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """By the masses of 16 panels of the window, then Newton within brackets in the panel that holds the quantile."""
    shape = bell(a, b)
    panels, m = 16, _nodes_of(a.dtype) // 4
    edges = jnp.linspace(0, 1, panels + 1, dtype=a.dtype)
    length = (shape.left + shape.right)[..., None]
    starts = length * edges[:-1] - shape.left[..., None]
    step = length / panels
    wide = Bell(*(v[..., None] for v in shape))
    first, last = np.arange(panels) == 0, np.arange(panels) == panels - 1
    powers = jnp.where(first, wide.left_power, 1), jnp.where(last, wide.right_power, 1)
    masses = nodes(wide, starts, starts + step, m, powers)[1].sum(-1)
    passed = jnp.cumsum(masses, -1)
    target = q[..., None] * passed[..., -1:]
    index = jnp.minimum((passed < target).sum(-1, keepdims=True), panels - 1)
    start, left_power, right_power, mass, reached = (
        jnp.take_along_axis(jnp.broadcast_to(v, masses.shape), index, -1)[..., 0] for v in (starts, *powers, masses, passed)
    )
    step, target = step[..., 0], target[..., 0] - (reached - mass)
    s, weights = (jnp.asarray(v, a.dtype) for v in gauss_legendre(m))

    def density_at(fraction: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Of the place `fraction` of the way through the panel, and that place."""
        h, rest, slope = _spaced(fraction, left_power[..., None], right_power[..., None])
        d = start[..., None] + step[..., None] * h
        theta = (wide.below + start[..., None]) + step[..., None] * h
        colatitude = (wide.above - start[..., None] - step[..., None]) + step[..., None] * rest
        return jnp.exp(log_density(wide, d, theta, colatitude)) * step[..., None] * slope, d

    def refine(_: int, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        """A Newton step for log(mass) as a function of log(t): in the tails the mass is nearly a power of t."""
        low, high, t = state
        mass = t * (weights * density_at(t[..., None] * s)[0]).sum(-1)
        low, high = jnp.where(mass <= target, t, low), jnp.where(mass >= target, t, high)
        newton = t * jnp.exp(jnp.log(target / mass) * mass / (t * density_at(t[..., None])[0][..., 0]))
        return low, high, jnp.where((newton > low) & (newton < high), newton, (low + high) / 2)

    hair = jnp.finfo(a.dtype).eps
    target = jnp.maximum(target, jnp.finfo(a.dtype).tiny)
    t = jnp.clip(target / jnp.where(mass > 0, mass, 1), hair, 1 - hair)
    *_, t = lax.fori_loop(0, 30, refine, (jnp.zeros_like(t), jnp.ones_like(t), t))
    d = density_at(jnp.clip(t, hair, 1 - hair)[..., None])[1][..., 0]
    moved = offset(shape, d)
    x = jnp.where(shape.sin > shape.cos, 1 - (shape.cos**2 - moved), shape.sin**2 + moved)
    return jnp.where(q == 0, 0, jnp.where(q == 1, 1, jnp.clip(x, 0, 1)))


@ppf.defjvp
@promoting
def _ppf_jvp(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]) -> tuple[jax.Array, jax.Array]:
    """From F(x; a, b) = q: dx = (dq - dF) / f(x)."""
    q, a, b = primals
    x = ppf(q, a, b)
    _, by_parameters = jax.jvp(lambda a, b: cdf(x, a, b), (a, b), tangents[1:])
    return x, (tangents[0] - by_parameters) / pdf(x, a, b)
