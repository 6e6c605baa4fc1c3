"""Fourier inversion of a sum on ever smaller windows, where its characteristic function decays
slowly.

The density of a class may jump or have a pole at an end of its support, which is 0 or 1. Where all
classes are at such ends, or at their means if they have none, the sum has a corner; elsewhere it is
as smooth as its smoothest class. With chi a smooth function that falls from 1 at the end to 0 at a
distance R, each class is a part `chi f` near its end and a rest that is smooth on the scale R. In
the product of their characteristic functions, only the term of parts alone is not smooth on that
scale:

    phi_1 phi_2 ... = (phi_1 phi_2 ... - part_1 part_2 ...) + part_1 part_2 ...

The bracket is inverted with few frequencies. What follows is a small mass at the corner, and is
inverted in the same way on a window that is a quarter as wide, and so on. A class that is far
narrower than R is a part as a whole, until windows are as narrow. So every scale is resolved, each
by windows of its own size.

Where m classes have two such ends, there are m + 1 corners, at distances of 1.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jaxmetrics._namespaces import Array, is_jax, lax, special, xp
from jaxmetrics.betas import _quadrature, _splines, distributions
from jaxmetrics.betas._characteristic import Settings, harmonics, select, series, window
from jaxmetrics.betas._splines import PANELS, Spline
from jaxmetrics.betas.distributions import Beta, Interval, expanded

__all__: list[str] = []

_INNER_EDGES = PANELS - 1
_RATIO = 4  # of the radii of two levels
_GROUPS = 0, 4, 16  # where classes start that take all, half and a quarter of the nodes


class _Summands(NamedTuple):
    """Hold the classes, `(..., k)`, and where their parts lie, `(..., k, 2)`.

    The first part of a class is at its hard end, or its mean if it has none; the second at its
    second hard end, if it has two.
    """

    classes: Beta
    total: Array  # of the masses of each class
    at_low: Array
    at_high: Array
    exists: Array

    @property
    def anchor(self) -> Array:
        """Where the first part of each class lies, relative to its mean."""
        low, high = self.classes.low, self.classes.high
        return xp.where(self.at_low[..., 0], low, xp.where(self.at_high[..., 0], high, 0))

    def select(self, index: slice) -> _Summands:
        """Return some of the classes."""
        parts = (v[..., index, :] for v in (self.at_low, self.at_high, self.exists))
        return _Summands(select(self.classes, index), self.total[..., index], *parts)


def _direction(classes: Beta) -> Array:
    """Return 1 if corners follow the first upwards, -1 if downwards, `(...)`.

    Classes with two hard ends are first where they have more mass: of many corners, the last are
    not refined.
    """
    excess = lax.stop_gradient(classes.b - classes.a)
    upwards = xp.where(classes.hard_low & classes.hard_high, excess, 0).sum(-1) >= 0
    return xp.where(upwards, 1, -1).astype(excess.dtype)


def _number_of_corners(classes: Beta) -> int:
    """Return how many corners are refined; on the host no more than there are."""
    most = min(classes.mean.shape[-1] + 1, _INNER_EDGES)
    if is_jax(classes.mean):
        return most
    return min(most, int((classes.hard_low & classes.hard_high).sum(-1).max()) + 1)


def _summands(classes: Beta, direction: Array, ends: int, settings: Settings) -> _Summands:
    low, high = classes.hard_low, classes.hard_high
    total = distributions.nodes(classes, 2 * settings.nodes_of_parts)[1].sum(-1)
    first_low = low & ((direction > 0)[..., None] | ~high)
    at_low, at_high, exists = (
        xp.stack(v, -1)[..., :ends]
        for v in (
            (first_low, low & ~first_low),
            (high & ~first_low, high & first_low),
            (xp.ones_like(low), low & high),
        )
    )
    return _Summands(classes, total, at_low, at_high, exists)


def _near_corners(
    summands: _Summands, radii: Array, step: Array, corners: int, settings: Settings
) -> Array:
    """Return the product of the parts at each corner, for two radii: `(2, ..., C, N)`.

    They are characteristic functions of offsets from the corner, at the multiples of `step`.
    """
    factors, (k, ends) = [], summands.exists.shape[-2:]
    is_first = (np.arange(ends) == 0)[:, None, None]  # the only part of the whole class
    r, step = radii[..., None, None, :, None], step[..., None, None, None, None]
    for i, (start, stop) in enumerate(pairwise((*_GROUPS, k))):
        if start < k:
            some = summands.select(slice(start, min(stop, k)))
            offset, mass = _parts(some, radii[..., 0], settings.nodes_of_parts // 2**i)
            offset = offset[..., None, :]
            kept = special.erfc(settings.sharpness * (2 * xp.abs(offset) / r - 1)) / 2
            mass = mass[..., None, :] * xp.where(r < xp.inf, kept, is_first)
            factors.append(harmonics(offset * step, mass, settings.frequencies))
    return _product(xp.moveaxis(xp.concatenate(factors, -4), -2, 0), corners)


def _parts(summands: _Summands, radius: Array, m: int) -> tuple[Array, Array]:
    """Return nodes of the classes within the radius from their anchors, and their masses.

    They are offsets from the anchors, `(..., k, 2, m)`.
    """
    one, at_low, at_high = expanded(summands.classes), summands.at_low, summands.at_high
    below, above, length = _room(summands, radius)
    hard = one.hard_low & (below == 0), one.hard_high & (above == 0)
    places = _quadrature.grid_for_ends(_quadrature.middles, m, *hard, length.dtype)
    start, stop = one.low + below, one.high - above
    interval = Interval(start, stop, length, one.x_low + below, one.rest_high + above)
    z, mass = distributions.masses(expanded(one), expanded(interval), places)
    mass = xp.where(summands.exists[..., None], mass / summands.total[..., None, None], 0)
    from_end = xp.where(at_low[..., None], places.y, -places.rest) * length[..., None]
    return xp.where((at_low | at_high)[..., None], from_end, z), mass


def _room(summands: _Summands, radius: Array) -> tuple[Array, Array, Array]:
    """Return how much of the window of each class is below and above a part, and its length."""
    one, at_low, at_high = expanded(summands.classes), summands.at_low, summands.at_high
    radius, extent = radius[..., None, None], one.high - one.low
    length = xp.minimum(radius, extent)
    below = xp.where(at_high, extent - length, xp.maximum(-radius - one.low, 0))
    above = xp.where(at_low, extent - length, xp.maximum(one.high - radius, 0))
    below, above = xp.where(at_low, 0, below), xp.where(at_high, 0, above)
    return below, above, xp.where(at_low | at_high, length, extent - below - above)


def _product(phi: Array, corners: int) -> Array:
    """Multiply the classes, `(..., k, ends, N)`: at corner j so many are at their second end."""

    def times(product: Array, of_class: Array) -> tuple[Array, None]:
        more = product * of_class[..., :1, :]
        if corners > 1:
            moved = xp.concatenate([0 * product[..., :1, :], product[..., :-1, :]], -2)
            more = more + moved * of_class[..., 1:, :]
        return more, None

    start = (np.arange(corners) == 0)[:, None] + 0 * phi[..., 0, :1, :]
    return lax.scan(times, start, xp.moveaxis(phi, -3, 0))[0]


def _window_of_parts(summands: _Summands, radius: Array) -> tuple[Array, Array]:
    """Return where the sum of the parts begins, relative to their corner, and the window's width.

    Each part has at most half of it, else it would need more nodes.
    """
    classes, anchor, r = summands.classes, summands.anchor, radius[..., None]
    low, high = classes.low - anchor, classes.high - anchor
    has_two = classes.hard_low & classes.hard_high
    is_cut = (r < xp.inf) & (has_two | (high - low > r))
    cut = xp.where(is_cut, r, 0)
    begin = xp.where(is_cut, xp.where(has_two, -cut, xp.maximum(low, -cut)), -anchor).sum(-1)
    end = xp.where(is_cut, xp.where(has_two, cut, xp.minimum(high, cut)), -anchor).sum(-1)
    below, above = window(classes, ~is_cut)
    widest = xp.minimum(high - low, r).max(-1)
    begin = begin + below
    return begin, xp.maximum(end + above - begin, 2 * widest)


def _inverted(phi: Array, begin: Array, width: Array, places: Array) -> tuple[Array, Array]:
    """Return cdf and density at places `(..., C, Z)` of measures with characteristic functions phi.

    Their windows begin at `begin`, `(..., C)`, and have the same width, `(...)`.
    """
    width, begin = width[..., None, None], begin[..., None]
    inside = xp.clip(places, begin, begin + width)
    n = np.arange(phi.shape[-1])
    spectrum = xp.conj(phi) * xp.where(n > 0, 2, 0).astype(phi.dtype)
    integral = spectrum * (-1j / (2 * np.pi * np.maximum(n, 1))).astype(phi.dtype)
    phase = xp.concatenate([begin, inside], -1) * (2 * np.pi / width)
    ripple, density = series((integral, spectrum), phase)
    total = phi[..., :1].real
    cdf = total * (inside - begin) / width + ripple[..., 1:] - ripple[..., :1]
    return cdf, xp.where(inside == places, total + density[..., 1:], 0) / width


class _Layout(NamedTuple):
    """Cut the window of the sum into panels that end at its corners."""

    edges: Array  # (..., PANELS + 1), relative to the mean
    hard: Array  # (..., PANELS, 2)
    corners: Array  # (..., C)


def _layout(summands: _Summands, direction: Array, corners: int) -> _Layout:
    low, high = (v[..., None] for v in window(summands.classes))
    j = np.arange(_INNER_EDGES)
    steps = direction[..., None] * j.astype(low.dtype)
    all_corners = summands.anchor.sum(-1)[..., None] + steps
    has_two = summands.classes.hard_low & summands.classes.hard_high
    is_corner = j <= has_two.sum(-1)[..., None]
    # Edges that no corner needs share out the window.
    share = ((j + 1) / PANELS).astype(low.dtype)
    inner = xp.where(is_corner, xp.clip(all_corners, low, high), low + (high - low) * share)
    order = xp.argsort(inner, axis=-1)
    inner, is_hard = (xp.take_along_axis(v, order, -1) for v in (inner, is_corner))
    soft = xp.zeros_like(is_hard[..., :1])
    hard = xp.stack([xp.concatenate([soft, is_hard], -1), xp.concatenate([is_hard, soft], -1)], -1)
    return _Layout(xp.concatenate([low, inner, high], -1), hard, all_corners[..., :corners])


def _knots_from_corners(layout: _Layout, knots: _quadrature.Grid) -> Array:
    """Return the offsets of all knots from each corner, `(..., C, Z)`.

    Near a corner they have the digits of the distance from the end of the panel.
    """
    lengths = xp.diff(layout.edges)[..., None]
    ends = (layout.edges[..., None, :] - layout.corners[..., None])[..., None]
    from_start = ends[..., :-1, :] + (lengths * knots.y)[..., None, :, :]
    from_stop = ends[..., 1:, :] - (lengths * knots.rest)[..., None, :, :]
    places = xp.where((knots.y < knots.rest)[..., None, :, :], from_start, from_stop)
    return places.reshape((*layout.corners.shape, -1))


def refined_sum(classes: Beta, settings: Settings) -> Spline:
    """Compute the sum of classes, given widest first."""
    settings = settings.of_parts(classes.mean.shape[-1])
    direction, corners = _direction(classes), _number_of_corners(classes)
    summands = _summands(classes, direction, min(corners, 2), settings)
    layout = _layout(summands, direction, corners)
    knots = _splines.knots(layout.hard, settings.steps, layout.edges.dtype)
    places = _knots_from_corners(layout, knots)
    sums = _over_levels(summands, direction, places, settings)
    cdf, density = (v.sum(-2).reshape(knots.y.shape) for v in sums)
    slope = density * knots.slope * xp.diff(layout.edges)[..., None]
    return _splines.spline(layout.edges, layout.hard, cdf, slope)


class _LevelSums(NamedTuple):
    """Hold what the levels so far add up to, and the mass that is left at the corners."""

    cdf: Array
    density: Array
    mass_left: Array


def _over_levels(
    summands: _Summands, direction: Array, places: Array, settings: Settings
) -> tuple[Array, Array]:
    """Return cdf and density at offsets from the corners, `(..., C, Z)`, to be added over these."""
    dtype = places.dtype
    _, width = _window_of_parts(summands, xp.full_like(direction, xp.inf))
    greatest = xp.minimum(width / _RATIO, 1)[..., None]
    from_first = direction[..., None] * np.arange(places.shape[-2]).astype(dtype)

    def add(sums: _LevelSums, factors: Array) -> tuple[_LevelSums, None]:
        # The whole sum has one window for all corners.
        shift = xp.where(factors[0] < xp.inf, 0, from_first)
        level = partial(_level, summands, factors * greatest, shift, places, settings)
        is_left = sums.mass_left > settings.negligible
        return lax.cond(is_left, lambda: level(sums), lambda: sums), None

    factors = np.array([xp.inf, *float(_RATIO) ** -np.arange(settings.levels), 1e-30])
    pairs = np.stack([factors[:-1], factors[1:]], -1).astype(dtype)
    zeros = xp.zeros_like(places)
    sums = lax.scan(add, _LevelSums(zeros, zeros, xp.ones((), dtype)), pairs)[0]
    return sums.cdf, sums.density


def _level(
    summands: _Summands,
    radii: Array,
    shift: Array,
    places: Array,
    settings: Settings,
    sums: _LevelSums,
) -> _LevelSums:
    """Add what lies within the first radius from the corners but not within the second."""
    begin, width = _window_of_parts(summands, radii[..., 0])
    here, left = _near_corners(summands, radii, 2 * np.pi / width, places.shape[-2], settings)
    cdf, density = _inverted(here - left, begin[..., None] - shift, width, places)
    mass_left = xp.abs(left[..., 0]).max()
    return _LevelSums(sums.cdf + cdf, sums.density + density, mass_left)
