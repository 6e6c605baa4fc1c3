"""A distribution on an interval as a monotone quintic spline of its cdf, on a fixed grid of knots.

The interval is cut into three panels. In each the knots are equally spaced in v, where the fraction
of the way is 1 / (1 + exp(-sinh v)), as for the nodes of `_quadrature`: nearly evenly where an end
is soft, crowded towards one that is hard, so that jumps and poles at the ends of the panels are
smooth in v. It holds the cdf at the knots and its first two derivatives by the number of the
step; between knots stands the quintic that agrees with them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jaxmetrics._arithmetic import matmul
from jaxmetrics._namespaces import Array, custom_jvp, lax, xp
from jaxmetrics._roots import root
from jaxmetrics.betas import _quadrature
from jaxmetrics.betas._quadrature import HARD, SOFT, Grid

__all__: list[str] = []

PANELS = 3
_LEAST = math.exp(-HARD.reach)


class Spline(NamedTuple):
    """Leading axes are batch. Positions are relative to an origin of the caller's choice."""

    edges: Array  # (..., 4), of the panels
    hard: Array  # (..., 3, 2), bool: the ends of each panel
    cdf: Array  # (..., 3 (n + 1))
    slope: Array
    curvature: Array


def knots(hard: Array, n: int, dtype: np.dtype) -> Grid:
    """The n + 1 knots of each panel, `(..., 3, n + 1)`, as fractions of its length."""
    return _quadrature.of_ends(_quadrature.knots, n, hard[..., 0], hard[..., 1], dtype)


def spline(edges: Array, hard: Array, cdf: Array, slope: Array) -> Spline:
    """From the cdf and its derivative by the number of the step at the knots, `(..., 3, n + 1)`."""
    curvature = _differentiated(slope)
    return Spline(
        edges,
        hard,
        *(v.reshape((*v.shape[:-2], v.shape[-2] * v.shape[-1])) for v in (cdf, slope, curvature)),
    )


def _differentiated(values: Array) -> Array:
    """The derivative by the number of the step, of the polynomial through the seven nearest
    values.
    """
    matrix, size = _differentiation().astype(values.dtype), values.shape[-1]
    middle = sum(matrix[3, i] * values[..., i : i + size - 6] for i in (0, 1, 2, 4, 5, 6))
    first, last = (
        matmul(part, rows.T)
        for part, rows in ((values[..., :7], matrix[:3]), (values[..., -7:], matrix[4:]))
    )
    return xp.concatenate([first, middle, last], -1)


@lru_cache
def _differentiation() -> np.ndarray:
    """Rows that differentiate at each of seven equidistant points, by the polynomial through
    all.
    """
    places = np.arange(7.0)
    return np.stack(
        [np.linalg.solve(np.vander(places - i, increasing=True).T, np.eye(7)[1]) for i in range(7)]
    )


def mended(spline: Spline) -> Spline:
    """A cdf that falls and a slope below 0 are rounding."""
    return spline._replace(
        cdf=_rising(xp.clip(spline.cdf, 0, 1)), slope=xp.maximum(spline.slope, 0)
    )


@custom_jvp
def _rising(values: Array) -> Array:
    return lax.cummax(values, axis=values.ndim - 1)


@_rising.defjvp
def _rising_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The gradient of what is mended is that of the values."""
    return _rising(*primals), tangents[0]


def _pick(values: Array, panel: Array) -> Array:
    """Of values `(..., 3)` that of the panel of each query `(..., Q)`."""
    return xp.where(
        panel == 0, values[..., 0:1], xp.where(panel == 1, values[..., 1:2], values[..., 2:3])
    )


class _Panel(NamedTuple):
    """Of the panel of each query `(..., Q)`: the v of its ends, the parts of (0, 1) beyond them,
    and what lies between.
    """

    first: Array
    last: Array
    cut_low: Array
    cut_high: Array
    between: Array


def _panel(spline: Spline, panel: Array) -> _Panel:
    hard_low, hard_high = (_pick(spline.hard[..., i], panel) for i in (0, 1))
    first, last = (
        xp.where(hard, HARD.v, SOFT.v).astype(spline.cdf.dtype) for hard in (hard_low, hard_high)
    )
    low, high = (
        xp.where(hard, 0, SOFT.cut).astype(spline.cdf.dtype) for hard in (hard_low, hard_high)
    )
    return _Panel(first, last, low, high, 1 - low - high)


class _Piece(NamedTuple):
    """Where queries lie, `(..., Q)`: the fraction t of the step after a knot, and its first two
    derivatives by position.
    """

    polynomial: tuple[Array, ...]
    reached: Array  # the cdf at the next knot
    t: Array
    rate: Array
    acceleration: Array


def _piece(spline: Spline, panel: Array, below: Array, above: Array) -> _Piece:
    """`below` and `above` are the distances from the ends of the panel."""
    n = spline.cdf.shape[-1] // PANELS - 1
    first, last, cut_low, cut_high, between = _panel(spline, panel)
    length = below + above
    scale = between / xp.where(length > 0, length, 1)
    least = xp.where(length > 0, _LEAST, 0.5).astype(length.dtype)
    lower, upper = (
        xp.maximum(cut_low + scale * below, least),
        xp.maximum(cut_high + scale * above, least),
    )
    logit = xp.log(lower / upper)
    root = xp.sqrt(1 + logit**2)
    v = xp.sign(logit) * xp.log(xp.abs(logit) + root)  # arcsinh
    steps_by_v = n / (first + last)
    steps = (v + first) * steps_by_v
    knot = xp.clip(xp.floor(lax.stop_gradient(steps)), 0, n - 1)
    by_position = scale / (lower * upper)
    rate = by_position * steps_by_v / root
    acceleration = rate * by_position * (lower - upper - logit / root**2)
    polynomial, reached = _polynomial(spline, panel * (n + 1) + knot.astype(xp.int32))
    return _Piece(polynomial, reached, steps - knot, rate, acceleration)


def _polynomial(spline: Spline, knot: Array) -> tuple[tuple[Array, ...], Array]:
    """The coefficients of the quintic between `knot` and the next, and the cdf there."""
    f0, f1, d0, d1, c0, c1 = (
        xp.take_along_axis(values, knot + i, axis=-1, mode="clip")
        for values in (spline.cdf, spline.slope, spline.curvature)
        for i in (0, 1)
    )
    rise = f1 - f0
    # Where hardly any mass lies, that of the slopes: they are precise at an end where the cdf is a
    # rounded 1.
    rise = xp.where(rise > 1024 * xp.finfo(rise.dtype).eps, rise, (d0 + d1) / 2 + (c0 - c1) / 12)
    coefficients = (
        f0,
        d0,
        c0 / 2,
        10 * rise - 6 * d0 - 4 * d1 - 1.5 * c0 + 0.5 * c1,
        -15 * rise + 8 * d0 + 7 * d1 + 1.5 * c0 - c1,
        6 * rise - 3 * d0 - 3 * d1 - 0.5 * c0 + 0.5 * c1,
    )
    return coefficients, f1


def _horner(coefficients: tuple[Array, ...], t: Array) -> Array:
    value = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * t + c
    return value


def _derivative(coefficients: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(i * c for i, c in enumerate(coefficients))[1:]


def cdf_and_pdf(spline: Spline, panel: Array, below: Array, above: Array) -> tuple[Array, Array]:
    """P(Z <= z) and its derivative by z, at these distances from the ends of a panel."""
    polynomial, _, t, rate, _ = _piece(spline, panel, below, above)
    return _horner(polynomial, t), _horner(_derivative(polynomial), t) * rate


def _at(spline: Spline, z: Array) -> tuple[Array, _Piece]:
    """Whether z lies inside, and its piece; that of the middle where not."""
    low, high = spline.edges[..., :1], spline.edges[..., -1:]
    inside = (z >= low) & (z <= high)
    z = xp.where(inside, z, (low + high) / 2)
    panel = (z > spline.edges[..., 1:2]).astype(xp.int32) + (z > spline.edges[..., 2:3]).astype(
        xp.int32
    )
    start, stop = (_pick(edges, panel) for edges in (spline.edges[..., :-1], spline.edges[..., 1:]))
    return inside, _piece(spline, panel, z - start, stop - z)


def cdf(spline: Spline, z: Array) -> Array:
    """P(Z <= z) for z of shape `(..., Q)`, with the spline's batch axes first."""
    inside, piece = _at(spline, z)
    value = xp.clip(_horner(piece.polynomial, piece.t), piece.polynomial[0], piece.reached)
    return xp.where(inside, value, xp.where(z < spline.edges[..., :1], 0, 1))


def pdf(spline: Spline, z: Array) -> Array:
    """The derivative of `cdf` by z."""
    inside, piece = _at(spline, z)
    return xp.where(
        inside, xp.maximum(_horner(_derivative(piece.polynomial), piece.t) * piece.rate, 0), 0
    )


def slope_of_pdf(spline: Spline, z: Array) -> Array:
    """The derivative of `pdf` by z."""
    inside, (polynomial, _, t, rate, acceleration) = _at(spline, z)
    first = _derivative(polynomial)
    value = _horner(_derivative(first), t) * rate**2 + _horner(first, t) * acceleration
    return xp.where(inside, value, 0)


def quantile(spline: Spline, q: Array) -> Array:
    """z with P(Z <= z) = q, q of shape `(..., Q)`: the step by bisection, then Newton within
    brackets.
    """
    size = spline.cdf.shape[-1]
    n = size // PANELS - 1

    def halve(_: int, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) // 2
        passed = xp.take_along_axis(spline.cdf, middle, -1) <= q
        return xp.where(passed, middle, low), xp.where(passed, high, middle)

    first = (0 * q).astype(xp.int32)
    knot, _ = lax.fori_loop(0, (size - 2).bit_length(), halve, (first, first + (size - 1)))
    polynomial, reached = _polynomial(spline, knot)
    slope = _derivative(polynomial)

    def excess(t: Array) -> tuple[Array, Array]:
        return _horner(polynomial, t) - q, _horner(slope, t)

    rise = reached - polynomial[0]
    start = xp.clip((q - polynomial[0]) / xp.where(rise > 0, rise, 1), 0, 1)
    t = root(excess, xp.zeros_like(q), xp.ones_like(q), start, atol=float(xp.finfo(q.dtype).eps))
    panel = knot // (n + 1)
    first_v, last_v, cut_low, cut_high, between = _panel(spline, panel)
    logit = xp.sinh((first_v + last_v) * ((knot - panel * (n + 1) + t) / n) - first_v)
    y, rest = (
        (1 / (1 + xp.exp(-logit)) - cut_low) / between,
        (1 / (1 + xp.exp(logit)) - cut_high) / between,
    )
    start, stop = (_pick(edges, panel) for edges in (spline.edges[..., :-1], spline.edges[..., 1:]))
    length = stop - start
    return xp.where(y < rest, start + length * y, stop - length * rest)
