"""Fourier inversion on smaller and smaller windows, for sums whose density is not smooth.

The density of a class may jump or have a pole at an end of its support, 0 or 1. We call such an end
hard. The sum has a corner at the point where all classes are at their hard ends (classes without a
hard end are at their means). Elsewhere the density of the sum is as smooth as the density of its
smoothest class. Let chi be a smooth function that decreases from 1 at a hard end to 0 at the
distance R. Each density f is split into a part `chi f` near its hard end, and a rest that is smooth
on the scale R. In the product of their characteristic functions, only the product of all parts is
not smooth on this scale:

    phi_1 phi_2 ... = (phi_1 phi_2 ... - part_1 part_2 ...) + part_1 part_2 ...

The bracket is inverted with few frequencies. The product of all parts belongs to a small mass at
the corner. This product is split and inverted in the same way on a window that is a quarter as
wide, and so on. If a class is far narrower than R, its part is the whole class, until windows are
as narrow as the class.

If m classes have two hard ends, the sum has m + 1 corners, at distances of 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._numerics.arithmetic import pick
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, Arrays, is_jax, lax, special, xp
from jaxmetrics.betas import _splines, distributions
from jaxmetrics.betas._characteristic import (
    Settings,
    by_groups,
    harmonics,
    series,
    spectra,
    window,
)
from jaxmetrics.betas._quadrature import Grid, grid_for_ends
from jaxmetrics.betas._splines import PANELS, Spline
from jaxmetrics.betas.distributions import Beta, Interval, mirrored

__all__: list[str] = []

_INNER_EDGES = PANELS - 1
_RATIO = 4  # ratio of the radii of two levels
_GROUPS = {0: 1, 4: 2, 16: 4}  # first classes that use all, 1/2 and 1/4 of the nodes


class _Parts(NamedTuple):
    """Parts of classes, mirrored so that the hard end is the lower end, of shape `(..., k, ends)`.

    The first part of a class is at its hard end, or at its mean if it has no hard end. If a class
    has two hard ends, the second part is at the second end.
    """

    one: Beta
    sign: Array  # -1 if mirrored
    exists: Array
    total: Array  # total mass

    @property
    def anchor(self) -> Array:
        """Position of the first part of each class relative to the mean, of shape `(..., k)`."""
        return (self.sign * xp.where(self.one.hard_low, self.one.low, 0))[..., 0]


def _parts_of(classes: Beta, direction: Array, ends: int, settings: Settings) -> _Parts:
    both = classes.has_two_hard_ends
    first_is_high = classes.hard_high & ((direction < 0)[..., None] | ~classes.hard_low)
    is_high = xp.stack([first_is_high, ~first_is_high], -1)[..., :ends]
    one = distributions.beta(*mirrored(is_high, classes.a[..., None], classes.b[..., None]))
    total = distributions.nodes(classes, 2 * settings.nodes_of_parts)[1].sum(-1)[..., None]
    exists = xp.stack([xp.ones_like(both), both], -1)[..., :ends]
    return _Parts(one, xp.where(is_high, -1, 1).astype(total.dtype), exists, total)


def _near_corners(
    parts: _Parts, radii: Array, step: Array, corners: int, settings: Settings
) -> Array:
    """Return the product of the parts at each of C corners for two radii, of shape
    `(2, ..., C, N)`.

    The products are characteristic functions of offsets from the corner, at multiples of `step`. At
    corner j, j classes are at their second hard end.
    """
    k, ends = parts.sign.shape[-2:]
    is_first = (np.arange(ends) == 0)[:, None, None]  # a whole class has a single part
    r, step = radii[..., None, None, :, None], step[..., None, None, None, None]

    def factors(start: int, stop: int) -> Array:
        some: _Parts = trees.map(lambda v: v[..., start:stop, :], parts)
        m = settings.nodes_of_parts // _GROUPS[start]
        offset, mass = _near_anchors(some, radii[..., 0], m)
        offset = offset[..., None, :]
        kept = special.erfc(settings.sharpness * (2 * xp.abs(offset) / r - 1)) / 2
        mass = mass[..., None, :] * xp.where(r < xp.inf, kept, is_first)
        return xp.moveaxis(harmonics(offset * step, mass, settings.frequencies), -2, 0)

    return _product(by_groups(factors, k, settings.starts(list(_GROUPS)), -3), corners)


def _near_anchors(parts: _Parts, radius: Array, m: int) -> Arrays:
    """Return integration nodes of the classes within a radius of their anchors, and their masses.

    Nodes are offsets from the anchors, of shape `(..., k, ends, m)`.
    """
    one, radius = parts.one, radius[..., None, None]
    extent = one.high - one.low
    below = xp.where(one.hard_low, 0, xp.maximum(-radius - one.low, 0))
    above = xp.maximum(xp.where(one.hard_low, extent, one.high) - radius, 0)
    length = xp.where(one.hard_low, xp.minimum(radius, extent), extent - below - above)
    hard = one.hard_low, one.hard_high & (above == 0)
    places = grid_for_ends(m, *hard, length.dtype, at_middles=True)
    start, stop = one.low + below, one.high - above
    interval = Interval(start, stop, length, one.x_low + below, one.rest_high + above)
    z, mass = distributions.masses(one, interval, places)
    mass = xp.where(parts.exists[..., None], mass / parts.total[..., None], 0)
    offset = xp.where(one.hard_low[..., None], places.y * length[..., None], z)
    return parts.sign[..., None] * offset, mass


def _product(phi: Array, corners: int) -> Array:
    """Multiply the factors `(..., k, ends, N)` of all classes; at corner j, j classes are at their
    second end.
    """

    def times(products: Arrays, factors: Array) -> tuple[Arrays, None]:
        updated = [product * factors[..., 0, :] for product in products]
        for j in range(1, corners):
            updated[j] = updated[j] + products[j - 1] * factors[..., 1, :]
        return tuple(updated), None

    zero = 0 * phi[..., 0, 0, :]
    start = (zero + 1, *[zero] * (corners - 1))
    by_class = xp.moveaxis(phi, -3, 0)
    products, _ = lax.scan(times, start, by_class, unroll=min(len(by_class), 16))
    # Without this barrier, GPUs compile and compute the products once for each use.
    return lax.optimization_barrier(xp.stack(products, -2))


def _window_of_parts(classes: Beta, anchor: Array, radius: Array) -> Arrays:
    """Return the start of the window for the sum of the parts, relative to the corner, and its
    width.

    The window is at least twice as wide as each part, because parts would otherwise need more
    nodes.
    """
    r, has_two = radius[..., None], classes.has_two_hard_ends
    low, high = classes.low - anchor, classes.high - anchor
    is_cut = (r < xp.inf) & (has_two | (high - low > r))
    cut = xp.where(is_cut, r, 0)
    begin = xp.where(is_cut, xp.where(has_two, -cut, xp.maximum(low, -cut)), -anchor).sum(-1)
    end = xp.where(is_cut, xp.where(has_two, cut, xp.minimum(high, cut)), -anchor).sum(-1)
    below, above = window(classes, ~is_cut)
    widest = xp.minimum(high - low, r).max(-1)
    begin = begin + below
    return begin, xp.maximum(end + above - begin, 2 * widest)


def _inverted(phi: Array, begin: Array, width: Array, places: Array) -> Arrays:
    """Return the cdf and density at places `(..., C, Z)` of measures with characteristic function
    phi.

    The windows begin at `begin` of shape `(..., C)`, and all have the same width.
    """
    width, begin = width[..., None, None], begin[..., None]
    inside = xp.clip(places, begin, begin + width)
    phase = xp.concatenate([begin, inside], -1) * (2 * np.pi / width)
    ripple, density = series(spectra(phi), phase)
    total = phi[..., :1].real
    cdf = total * (inside - begin) / width + ripple[..., 1:] - ripple[..., :1]
    return cdf, xp.where(inside == places, total + density[..., 1:], 0) / width


def _layout(classes: Beta, anchor: Array, direction: Array, corners: int) -> Arrays:
    """Divide the window of the sum into panels that end at its corners.

    Returns the edges `(..., PANELS + 1)`, a mask of the hard ends of panels `(..., PANELS, 2)`, and
    the corners `(..., C)`. All positions are relative to the mean.
    """
    low, high = (v[..., None] for v in window(classes))
    j = np.arange(_INNER_EDGES)
    steps = direction[..., None] * j.astype(low.dtype)
    all_corners = anchor.sum(-1)[..., None] + steps
    is_corner = j <= classes.has_two_hard_ends.sum(-1)[..., None]
    # Edges that are not at a corner divide the window equally.
    share = ((j + 1) / PANELS).astype(low.dtype)
    inner = xp.where(is_corner, xp.clip(all_corners, low, high), low + (high - low) * share)
    order = xp.argsort(inner, axis=-1)
    inner, is_hard = (pick(v, order) for v in (inner, is_corner))
    soft = xp.zeros_like(is_hard[..., :1])
    hard = xp.stack([xp.concatenate([soft, is_hard], -1), xp.concatenate([is_hard, soft], -1)], -1)
    return xp.concatenate([low, inner, high], -1), hard, all_corners[..., :corners]


def _from_corners(corners: Array, edges: Array, knots: Grid) -> Array:
    """Return the offsets of all knots from each corner, of shape `(..., C, Z)`.

    Near a corner, offsets are computed from the distance to the end of the panel, to avoid
    cancellation.
    """
    lengths = xp.diff(edges)[..., None]
    ends = (edges[..., None, :] - corners[..., None])[..., None]
    from_start = ends[..., :-1, :] + (lengths * knots.y)[..., None, :, :]
    from_stop = ends[..., 1:, :] - (lengths * knots.rest)[..., None, :, :]
    places = xp.where((knots.y < knots.rest)[..., None, :, :], from_start, from_stop)
    return places.reshape((*corners.shape, -1))


def refined_sum(classes: Beta, settings: Settings) -> Spline:
    """Compute the distribution of a sum of classes, which are sorted with the widest first."""
    k = classes.mean.shape[-1]
    settings = settings.of_parts(k)
    # The first corner is at the end with more mass, because the last corners are not refined if
    # there are too many. The direction is 1 if all other corners are above it, and -1 if below.
    excess = lax.stop_gradient(classes.b - classes.a)
    upwards = xp.where(classes.has_two_hard_ends, excess, 0).sum(-1) >= 0
    direction = xp.where(upwards, 1, -1).astype(excess.dtype)
    number = min(k + 1, _INNER_EDGES)
    if not is_jax(direction):  # only corners that exist
        number = min(number, int(classes.has_two_hard_ends.sum(-1).max()) + 1)
    parts = _parts_of(classes, direction, min(number, 2), settings)
    edges, hard, corners = _layout(classes, parts.anchor, direction, number)
    knots = _splines.knots(hard, settings.steps, edges.dtype)
    places = _from_corners(corners, edges, knots)
    sums = _over_levels(classes, parts, direction, places, settings)
    cdf, density = (v.sum(-2).reshape(knots.y.shape) for v in sums)
    slope = density * knots.slope * xp.diff(edges)[..., None]
    return _splines.spline(edges, hard, cdf, slope)


def _over_levels(
    classes: Beta, parts: _Parts, direction: Array, places: Array, settings: Settings
) -> Arrays:
    """Return the cdf and density at offsets `(..., C, Z)` from the corners; add them over the
    corners.
    """
    dtype, corners = places.dtype, places.shape[-2]
    _, width = _window_of_parts(classes, parts.anchor, xp.full_like(direction, xp.inf))
    greatest = xp.minimum(width / _RATIO, 1)[..., None]
    from_first = direction[..., None] * np.arange(corners).astype(dtype)

    def add(sums: Arrays, factors: Array) -> tuple[Arrays, None]:
        """Add the mass that is within the first radius of the corners but not within the second."""

        def added() -> Arrays:
            radii = factors * greatest
            begin, width = _window_of_parts(classes, parts.anchor, radii[..., 0])
            # At the first level there is one window for all corners.
            begin = begin[..., None] - xp.where(factors[0] < xp.inf, 0, from_first)
            here, left = _near_corners(parts, radii, 2 * np.pi / width, corners, settings)
            cdf, density = _inverted(here - left, begin, width, places)
            return sums[0] + cdf, sums[1] + density, xp.abs(left[..., 0]).max()

        return lax.cond(sums[2] > settings.negligible, added, lambda: sums), None

    zeros = xp.zeros_like(places)
    pairs = _pairs_of_radii(settings.levels).astype(dtype)
    cdf, density, _ = lax.scan(add, (zeros, zeros, xp.ones((), dtype)), pairs)[0]
    return cdf, density


def _pairs_of_radii(levels: int) -> np.ndarray:
    """Return the outer and the inner radius of each level, relative to the greatest radius."""
    radii = np.array([np.inf, *float(_RATIO) ** -np.arange(levels), 1e-30])
    return np.stack([radii[:-1], radii[1:]], -1)
