"""A distribution on an interval, tabulated on a fixed number of points: cdf, density and quantiles by Hermite interpolation.

The interval is cut into three panels, each with n steps that are equal in a coordinate eta in [0, 1]; the table holds the cdf
and its first two derivatives with respect to the number of the step. Between knots stands the quintic that agrees with them.

On a graded panel of length L, eta and the position z are tied by the odds of both,

    lambda = log((1 + z / w0) / (1 - z / (L + w1))) / log((1 + L / w0) (1 + L / w1)),
    lambda / (1 - lambda) = (eta / (1 - eta))^r.

With r = 2 a root at either end (the cdf of a class under Jeffreys' prior) is as smooth in eta as a polynomial; small w0, w1
draw the knots towards an end, geometrically down to the distance w. Other panels are linear: eta = z / L.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arrays import matmul

__all__: list[str] = []

PANELS = 3


class Law(NamedTuple):
    """Leading axes are batch. Positions are relative to an origin of the caller's choice."""

    edges: jax.Array  # (..., 4), of the panels
    softness: jax.Array  # (..., 3, 2): w0, w1
    power: jax.Array  # (..., 3): r
    graded: jax.Array  # (...,), bool
    cdf: jax.Array  # (..., 3 (n + 1))
    slope: jax.Array
    curvature: jax.Array


class Panels(NamedTuple):
    """Where the knots stand: the first three fields of a law."""

    edges: jax.Array
    softness: jax.Array
    power: jax.Array


def graded_law(panels: Panels, cdf: jax.Array, slope: jax.Array) -> Law:
    """A law from the cdf and its derivative by eta at the knots of graded panels, `(..., 3, n + 1)`."""
    n = slope.shape[-1] - 1
    curvature = matmul(slope, jnp.asarray(_differentiation(n).T, slope.dtype)) / n
    return _law(*panels, jnp.ones(panels.edges.shape[:-1], bool), cdf, slope / n, curvature)


def linear_law(low: jax.Array, high: jax.Array, cdf: jax.Array, slope: jax.Array, curvature: jax.Array) -> Law:
    """A law from its cdf and the derivatives by (z - low) / (high - low), `(..., 3n + 1)` values at equal steps."""
    steps = cdf.shape[-1] - 1
    n = steps // PANELS
    of_panels = np.arange(PANELS)[:, None] * n + np.arange(n + 1)
    edges = low[..., None] + (high - low)[..., None] * jnp.linspace(0, 1, PANELS + 1, dtype=low.dtype)
    ones = jnp.ones((*low.shape, PANELS, 2), low.dtype)
    values = (v[..., of_panels] for v in (cdf, slope / steps, curvature / steps**2))
    return _law(edges, ones, ones[..., 0], jnp.zeros(low.shape, bool), *values)


def _law(edges: jax.Array, softness: jax.Array, power: jax.Array, graded: jax.Array, *samples: jax.Array) -> Law:
    """Cdfs that fall and slopes below 0, both rounding, are mended."""
    cdf, slope, curvature = (v.reshape(*v.shape[:-2], -1) for v in samples)
    return Law(edges, softness, power, graded, _rising(jnp.clip(cdf, 0, 1)), jnp.maximum(slope, 0), curvature)


@jax.custom_jvp
def _rising(values: jax.Array) -> jax.Array:
    return lax.cummax(values, axis=values.ndim - 1)


@_rising.defjvp
def _rising_jvp(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """What is mended is rounding; its gradient is that of the values."""
    return _rising(*primals), tangents[0]


@lru_cache
def _differentiation(n: int) -> np.ndarray:
    """The matrix that differentiates values at 0, 1, .. n, by the polynomial through the seven nearest."""
    matrix = np.zeros((n + 1, n + 1))
    for i in range(n + 1):
        first = min(max(i - 3, 0), n - 6)
        places = np.arange(first, first + 7.0) - i
        matrix[i, first : first + 7] = np.linalg.solve(np.vander(places, increasing=True).T, np.eye(7)[1])
    return matrix


def knots(panels: Panels, n: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The knots of graded panels, `(..., 3, n + 1)`: distances from the panel's left and right end, and dz/d eta.

    The outermost knots stand a hair inside, so that a density that is infinite at the end has a finite value per step.
    """
    edges, softness, power = panels.edges, panels.softness, panels.power[..., None]
    length = jnp.diff(edges)[..., None]
    w0, w1 = softness[..., :1], softness[..., 1:]
    hair = jnp.maximum(jnp.finfo(edges.dtype).eps, jnp.finfo(edges.dtype).tiny ** (0.5 / power))
    eta = jnp.clip(jnp.linspace(0, 1, n + 1, dtype=edges.dtype), hair, 1 - hair)
    rest = jnp.clip(jnp.linspace(1, 0, n + 1, dtype=edges.dtype), hair, 1 - hair)
    left, stretch = _with_slope(lambda eta: _ungrade(eta, 1 - eta, length, w0, w1, power), eta)
    right, stretch_right = _with_slope(lambda rest: _ungrade(rest, 1 - rest, length, w1, w0, power), rest)
    return left, right, jnp.where(eta < 0.5, stretch, stretch_right)


def _with_slope(function: Callable[[jax.Array], jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.jvp(function, (x,), (jnp.ones_like(x),))


def positions(panels: Panels, left: jax.Array, right: jax.Array) -> jax.Array:
    """Positions from the distances that `knots` gives."""
    return jnp.where(left < right, panels.edges[..., :-1, None] + left, panels.edges[..., 1:, None] - right)


def _ungrade(eta: jax.Array, rest: jax.Array, length: jax.Array, w0: jax.Array, w1: jax.Array, power: jax.Array) -> jax.Array:
    odds = (eta / rest) ** power
    v = (jnp.log1p(length / w0) + jnp.log1p(length / w1)) * jnp.where(odds < 1, odds / (1 + odds), 1 / (1 + 1 / odds))
    return jnp.expm1(v) / (1 / w0 + jnp.exp(v) / (length + w1))


def _grade(z: jax.Array, rest: jax.Array, length: jax.Array, w0: jax.Array, w1: jax.Array, power: jax.Array) -> jax.Array:
    """eta of the position z from the left end and rest = L - z from the right end."""
    left = jnp.log1p(z / w0) - jnp.log1p(-z / (length + w1))
    right = jnp.log1p(rest / w1) - jnp.log1p(-rest / (length + w0))
    ratio = jnp.exp(jnp.log(left / right) / power)
    return jnp.where(ratio < 1, ratio / (1 + ratio), 1 / (1 + 1 / ratio))


def _coordinate(law: Law, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The panel of each z and the (fractional) number of steps from its left end; z is `(..., Q)`."""
    n = law.cdf.shape[-1] // PANELS - 1
    panel = (z > law.edges[..., 1:2]).astype(jnp.int32) + (z > law.edges[..., 2:3]).astype(jnp.int32)
    start, stop, w0, w1, power = _of_panel(law, panel)
    length = stop - start
    margin = length * jnp.finfo(z.dtype).eps + jnp.finfo(z.dtype).tiny
    below, above = (_moved_into(distance, margin, length) for distance in (z - start, stop - z))
    graded = _grade(below, above, length, w0, w1, power)
    linear = _moved_into(z - start, jnp.zeros_like(length), length) / jnp.where(length > 0, length, 1)
    return panel, n * jnp.where(law.graded[..., None], graded, linear)


def _moved_into(x: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """`clip` with a derivative of 1 at the ends too, where a density has its one-sided limit."""
    return x + lax.stop_gradient(jnp.clip(x, low, high) - x)


def _of_panel(law: Law, panel: jax.Array) -> tuple[jax.Array, ...]:
    """Start, stop, w0, w1 and r of the panel of each query."""

    def pick(values: jax.Array) -> jax.Array:
        return jnp.where(panel == 0, values[..., 0:1], jnp.where(panel == 1, values[..., 1:2], values[..., 2:3]))

    columns = (law.edges[..., :-1], law.edges[..., 1:], law.softness[..., 0], law.softness[..., 1], law.power)
    return tuple(pick(values) for values in columns)


def _polynomial(law: Law, knot: jax.Array) -> tuple[jax.Array, ...]:
    """The coefficients of the quintic between `knot` and the next; a straight line where hardly any mass lies."""
    f0, f1, d0, d1, c0, c1 = (
        jnp.take_along_axis(values, knot + i, axis=-1, mode="clip")
        for values in (law.cdf, law.slope, law.curvature)
        for i in (0, 1)
    )
    rise = f1 - f0
    curved = rise > 64 * jnp.finfo(rise.dtype).eps * jnp.maximum(jnp.minimum(f0, 1 - f0), 1e-3)
    coefficients = (
        d0,
        c0 / 2,
        10 * rise - 6 * d0 - 4 * d1 - 1.5 * c0 + 0.5 * c1,
        -15 * rise + 8 * d0 + 7 * d1 + 1.5 * c0 - c1,
        6 * rise - 3 * d0 - 3 * d1 - 0.5 * c0 + 0.5 * c1,
    )
    return f0, *(jnp.where(curved, c, rise if i == 0 else 0) for i, c in enumerate(coefficients))


def _knot_and_fraction(law: Law, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    n = law.cdf.shape[-1] // PANELS - 1
    panel, steps = _coordinate(law, z)
    whole = jnp.clip(jnp.floor(lax.stop_gradient(steps)), 0, n - 1)
    return panel * (n + 1) + whole.astype(jnp.int32), steps - whole


def cdf(law: Law, z: jax.Array) -> jax.Array:
    """P(Z <= z) for z of shape `(..., Q)`, with the law's batch axes first."""
    low, high = law.edges[..., :1], law.edges[..., -1:]
    inside = (z > low) & (z < high)
    knot, t = _knot_and_fraction(law, jnp.where(inside, z, (low + high) / 2))  # outside the coordinate has no derivative
    value = jnp.clip(_horner(_polynomial(law, knot), t), 0, 1)
    return jnp.where(inside, value, jnp.where(z <= low, 0, 1))


def pdf(law: Law, z: jax.Array) -> jax.Array:
    """The derivative of `cdf` with respect to z."""
    low, high = law.edges[..., :1], law.edges[..., -1:]
    inside = (z >= low) & (z <= high)
    z = jnp.where(inside, z, (low + high) / 2)
    (knot, t), (_, rate) = jax.jvp(lambda z: _knot_and_fraction(law, z), (z,), (jnp.ones_like(z),))
    return jnp.where(inside, jnp.maximum(_horner(_derivative(_polynomial(law, knot)), t) * rate, 0), 0)


def _horner(coefficients: tuple[jax.Array, ...], t: jax.Array) -> jax.Array:
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * t + c
    return value


def _derivative(coefficients: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    return tuple(i * c for i, c in enumerate(coefficients))[1:]


def quantile(law: Law, q: jax.Array) -> jax.Array:
    """z with P(Z <= z) = q, q of shape `(..., Q)`: the interval by bisection of the table, then Newton within brackets."""
    size = law.cdf.shape[-1]
    n = size // PANELS - 1
    table, wanted = (v.reshape(math.prod(v.shape[:-1]), v.shape[-1]) for v in (law.cdf, q))
    knot = jax.vmap(lambda row, q: jnp.searchsorted(row, q, side="right"))(table, wanted).reshape(q.shape) - 1
    knot = jnp.clip(knot, 0, size - 2).astype(jnp.int32)
    polynomial = _polynomial(law, knot)
    slope = _derivative(polynomial)

    def refine(_: int, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        low, high, t = state
        excess = _horner(polynomial, t) - q
        low, high = jnp.where(excess <= 0, t, low), jnp.where(excess >= 0, t, high)
        rate = _horner(slope, t)
        newton = t - excess / jnp.where(rate > 0, rate, 1)
        return low, high, jnp.where((newton >= low) & (newton <= high) & (rate > 0), newton, (low + high) / 2)

    rise = jnp.take_along_axis(law.cdf, knot + 1, axis=-1) - polynomial[0]
    start = jnp.clip((q - polynomial[0]) / jnp.where(rise > 0, rise, 1), 0, 1)
    *_, t = lax.fori_loop(0, 12, refine, (jnp.zeros_like(q), jnp.ones_like(q), start))
    panel = knot // (n + 1)
    eta = (knot - panel * (n + 1) + t) / n
    start, stop, w0, w1, power = _of_panel(law, panel)
    hair = jnp.finfo(q.dtype).eps
    inside = jnp.clip(eta, hair, 1 - hair)
    length = stop - start
    graded = jnp.minimum(_ungrade(inside, 1 - inside, length, w0, w1, power), length)
    graded = jnp.where(eta <= hair, 0, jnp.where(eta >= 1 - hair, length, graded))
    return start + jnp.where(law.graded[..., None], graded, eta * length)
