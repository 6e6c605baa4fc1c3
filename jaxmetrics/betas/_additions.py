"""Add independent betas one by one, by quadrature, where Fourier inversion fails.

With R the sum of the narrower classes, `P(A + R <= z)` is integrated over the density of A. See
`_convolutions` for where it is taken, and how exact it is.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxmetrics._chunks import map_chunks
from jaxmetrics._jax import trees
from jaxmetrics._namespaces import Array, is_jax, lax, xp
from jaxmetrics.betas import _quadrature, _splines, distributions
from jaxmetrics.betas._quadrature import Grid
from jaxmetrics.betas._splines import Spline
from jaxmetrics.betas.distributions import Beta, Interval, expanded

__all__: list[str] = []


class Settings(NamedTuple):
    frequencies: int  # N
    nodes: tuple[int, int]  # (base, more): phi of the j-th widest class takes base + more / sqrt(j)
    steps: int  # per panel of the spline
    nodes_of_sum: int  # of the quadrature that adds a class, per panel of the others
    unresolved: float  # |phi(w_N)| above which classes are added by quadrature


def settings_for(dtype: np.dtype) -> Settings:
    if dtype == np.float64:
        return Settings(128, (60, 300), 320, 72, 1e-8)
    return Settings(32, (28, 108), 96, 40, 1e-5)


def select(classes: Beta, index: slice | int) -> Beta:
    return Beta(*(v[..., index] for v in classes))


def moments(classes: Beta) -> tuple[Array, Array]:
    """Return the variances, and the ratios of third to second moments downwards and upwards.

    Both bound how far a sum reaches (`distributions.reach`).
    """
    a, b = (lax.stop_gradient(v) for v in (classes.a, classes.b))
    ratio = distributions.skewness(a, b)
    return distributions.variance_of(a, b), xp.stack([-ratio, ratio], -1)


class Ends(NamedTuple):
    """Describe the two ends of the support of a sum."""

    hard: Array  # (..., 2), whether its density jumps or has a pole there, on its own scale
    # Where all classes are at their only end that bends, measured from the low end of the sum; -1
    # if a class has no such end or two.
    kink: Array
    variance: Array
    skewness: Array  # (..., 2), downwards and upwards, the largest of any class


class Sum(NamedTuple):
    """Hold R, the sum of the classes that have been added so far."""

    spline: Spline
    ends: Ends


def _ends_of_one(one: Beta) -> Ends:
    hard = xp.stack([one.hard_low, one.hard_high], -1)
    return Ends(hard, _kink(one, 0 * one.low), *moments(one))


def sum_of_one(one: Beta, total: Array, settings: Settings) -> Sum:
    """Return the sum of one class alone: a single panel, between two of length 0."""
    ends = _ends_of_one(one)
    cdf, slope = _cdf_and_slope_at_knots(one, total, settings)
    spline = _splines.spline(
        _edges_of_one(one),
        xp.stack([ends.hard, ends.hard, ends.hard], -2),
        xp.stack([0 * cdf, cdf, 1 + 0 * cdf], -2),
        xp.stack([0 * slope, slope, 0 * slope], -2),
    )
    return Sum(spline, ends)


def _edges_of_one(one: Beta) -> Array:
    return xp.stack([one.low, one.low, one.high, one.high], -1)


def _cdf_and_slope_at_knots(one: Beta, total: Array, settings: Settings) -> tuple[Array, Array]:
    """Return the cdf of one class, and its derivative by the number of the knot, `(..., n + 1)`."""
    knots = _quadrature.grid_for_ends(
        _quadrature.knots, settings.steps, one.hard_low, one.hard_high, one.mean.dtype
    )
    width = (one.high - one.low)[..., None]
    y, rest, wide = width * knots.y, width * knots.rest, expanded(one)
    end = xp.where(y < rest, wide.low + y, wide.high - rest)
    below = Interval(wide.low, end, y, wide.x_low, wide.rest_high + rest)
    t = _quadrature.between_hard_ends(_quadrature.HARD, settings.nodes_of_sum, y.dtype)
    cdf = distributions.masses(expanded(wide), expanded(below), t)[1].sum(-1) / total[..., None]

    scale = width * knots.slope / total[..., None]
    return cdf, _density_at(wide, y, rest) * scale


def _density_at(one: Beta, y: Array, rest: Array) -> Array:
    """Return the density at the distances `y` and `rest` from the ends of the window.

    It is in the units of `distributions.masses`.
    """
    z = xp.where(y < rest, one.low + y, one.high - rest)
    log_x = xp.log(distributions.positive(one.x_low + y) / one.mean)
    log_rest = xp.log(distributions.positive(one.rest_high + rest) / one.rest)
    log_density = distributions.log_density(one, z, log_x, log_rest) - log_x - log_rest
    return xp.exp(log_density) / (one.mean * one.rest)


def _bends(one: Beta) -> tuple[Array, Array]:
    """Return whether the density bends at 0 and at 1; a high power of the distance does not."""
    a, b = lax.stop_gradient(one.a), lax.stop_gradient(one.b)
    return one.hard_low & (a < 3), one.hard_high & (b < 3)


def _kink(one: Beta, kink_of_others: Array) -> Array:
    """Return where the sum has a kink, since each class is at its only end that bends."""
    at_low, at_high = _bends(one)
    has_one = (at_low != at_high) & (kink_of_others >= 0)
    return xp.where(has_one, kink_of_others + xp.where(at_high, one.high - one.low, 0), -1)


class _Layout(NamedTuple):
    """Cut the support of A + R into three panels."""

    edges: Array  # (..., 4), where panels begin and end, measured from the low end of A + R
    hard: Array  # (..., 3, 2), the ends of each panel
    sum: Ends


# Which of the ends of the three panels, `(3, 2)`: those of the whole support, those where an end of
# the narrower meets the low end of the wider, and those beside the first and the second inner edge.
_OUTERMOST = np.array([[True, False], [False, False], [False, True]])
_AT_LOW_OF_WIDE = np.array([[True, True], [True, False], [False, False]])
_BESIDE_FIRST = np.array([[False, True], [True, False], [False, False]])
_BESIDE_SECOND = np.array([[False, False], [False, True], [True, False]])
_MIDDLE_PANEL = np.array([[False], [True], [False]])


def _layout(one: Beta, r: Array, ends: Ends) -> _Layout:
    """Lay out the panels of A + R for one class A, from the edges r of R's panels and its ends.

    The outer panels are as long as the narrower of A and R: at their inner edges, an end of the
    narrower meets one of the wider. But where ends of several classes meet within R, the kink that
    this leaves is an edge instead.
    """
    # Kept in one function, since most steps need nearly all of the intermediates before them.
    width, width_of_others = one.high - one.low, r[..., -1] - r[..., 0]
    last = width + width_of_others
    margin = 1e-4 * width_of_others
    kink = _kink(one, ends.kink)
    is_inside = (kink >= 0) & (ends.kink > margin) & (ends.kink < width_of_others - margin)
    kink_low, kink_high = (is_inside & bends for bends in _bends(one))
    first = xp.where(kink_low, kink, xp.minimum(width, width_of_others))
    second = xp.where(kink_high, kink, xp.maximum(width, width_of_others))

    hard_of_one = xp.stack([one.hard_low, one.hard_high], -1)
    one_is_wide = (width >= width_of_others)[..., None]
    wide = xp.where(one_is_wide, hard_of_one, ends.hard)
    narrow = xp.where(one_is_wide, ends.hard, hard_of_one)
    hard = _hard_ends_of_panels(wide, narrow)
    hard = hard | (kink_low[..., None, None] & _BESIDE_FIRST)
    hard = hard | (kink_high[..., None, None] & _BESIDE_SECOND)

    # Nothing lies beyond the reach of the sum, which grows more slowly than the sum of reaches:
    # without this cut, many narrow classes would become a peak in a wide and empty window.
    variance, skewness = moments(one)
    variance, skewness = ends.variance + variance, xp.maximum(ends.skewness, skewness)
    reach = distributions.reach(variance[..., None], skewness)
    window = xp.stack([-one.low - r[..., 0], one.high + r[..., -1]], -1)
    cut = xp.maximum(window - reach, 0)
    is_cut = cut > 0
    hard = hard & ~(_OUTERMOST & is_cut[..., None, :])
    edges = xp.stack([0 * first, first, second, last], -1)
    edges = xp.clip(edges, cut[..., :1], last[..., None] - cut[..., 1:])
    kink = xp.where(kink >= cut[..., 0], kink - cut[..., 0], -1)
    return _Layout(edges, hard, Ends(wide & ~is_cut, kink, variance, skewness))


def _hard_ends_of_panels(wide: Array, narrow: Array) -> Array:
    """Return which ends of the panels are hard, `(..., 3, 2)`, from those of the two summands.

    An end of the whole support is hard if those of both summands are. At an inner edge an end of
    the narrower meets one of the wider: it is hard if that of the wider is, since the narrower is
    smooth on its own scale.
    """
    end_of_wide = xp.where(_AT_LOW_OF_WIDE, wide[..., :1, None], wide[..., 1:, None])
    return end_of_wide & (_MIDDLE_PANEL | narrow[..., None, :])


def _from_ends(one: Beta, r: Array, layout: _Layout, knots: Grid) -> tuple[Array, Array]:
    """Return the distances of the knots from the ends of the support of A + R."""
    last = one.high - one.low + r[..., -1] - r[..., 0]
    lengths = xp.diff(layout.edges)[..., None]
    above_last = (last[..., None] - layout.edges[..., 1:])[..., None]
    return layout.edges[..., :-1, None] + lengths * knots.y, above_last + lengths * knots.rest


def add_class(one: Beta, total: Array, others: Sum, settings: Settings) -> Sum:
    """Return A + R for one class A, `total` its mass in the units of `distributions.masses`."""
    r, batch = others.spline.edges, one.mean.shape
    layout = _layout(one, r, others.ends)
    knots = _splines.knots(layout.hard, settings.steps, r.dtype)
    lengths = xp.diff(layout.edges)[..., None]
    from_low, from_high = _from_ends(one, r, layout, knots)

    function = partial(_cdf_and_pdf_of_sum, expanded(one), total, others.spline, settings)
    points = [xp.moveaxis(v.reshape((*batch, -1)), -1, 0)[..., None] for v in (from_low, from_high)]
    # On the host as many points at once as their nodes fit into the cache.
    at_once = len(points[0]) if is_jax(total) else max(1, 2**14 // (4 * settings.nodes_of_sum))
    cdf, pdf = (
        xp.moveaxis(v, 0, -1).reshape(knots.y.shape) for v in map_chunks(function, at_once, *points)
    )
    edges = (one.low + r[..., 0])[..., None] + layout.edges
    spline = _splines.spline(edges, layout.hard, cdf, pdf * knots.slope * lengths)
    return Sum(spline, layout.sum)


def _cdf_and_pdf_of_sum(
    one: Beta, total: Array, others: Spline, settings: Settings, from_low: Array, from_high: Array
) -> tuple[Array, Array]:
    """Return `P(A + R <= z) = integral f_A(t) F_R(z - t) dt`, and the same with f_R.

    The points z have the distances `from_low` and `from_high`, `(Z, ..., 1)`, from the ends of the
    support.
    """
    parts = _integration_intervals(one, others.edges, from_low, from_high)
    used = _nonempty(parts[0].length)
    interval, outside_low, outside_high = trees.map(lambda v: v[..., used], parts)
    t = _quadrature.between_hard_ends(_quadrature.HARD, settings.nodes_of_sum, from_low.dtype)
    mass = distributions.masses(expanded(one), expanded(interval), t)[1] / total[..., None, None]

    # z - t is given by its distances from the ends of the panel of R in which it lies, if any.
    first = 1 if used.start == 0 else 0
    in_panel = interval.length[..., first:, None]

    def distance(outside: Array, y: Array) -> Array:
        beyond = xp.maximum(outside, 0)[..., first:, None]
        return xp.where(in_panel > 0, beyond + in_panel * y, 1)

    above, below = distance(outside_low, t.y), distance(outside_high, t.rest)
    panels = np.arange(_splines.PANELS, -1, -1)[used][first:]
    cdf_in_panels, pdf_in_panels = _at_nodes_of_panels(others, panels, below, above, total.shape)
    cdf, pdf = ((mass[..., first:, :] * v).sum((-2, -1)) for v in (cdf_in_panels, pdf_in_panels))
    return mass[..., :first, :].sum((-2, -1)) + cdf, pdf


def _nonempty(length: Array) -> slice:
    """Return the range of intervals, on the last axis, outside of which all are empty.

    On the device it is not known, and holds all intervals.
    """
    if is_jax(length):
        return slice(0, None)
    numbers = np.flatnonzero((length > 0).any(tuple(range(length.ndim - 1))))
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if len(numbers) else slice(0, 1)


def _integration_intervals(
    one: Beta, edges: Array, from_low: Array, from_high: Array
) -> tuple[Interval, Array, Array]:
    """Cut the integral over t where z - t is an edge of R's panels, on a last axis `(4,)`.

    The first interval is that in which F_R is 1; one for each panel follows, from the last on.

    Returns:
        The intervals of t, and by how much the panel extends beyond A at either end of them.
    """
    room = one.high - one.low

    def offsets_of_t(edge: Array) -> tuple[Array, Array]:
        """Return t - low end of A, and high end of A - t, where z - t is at this edge of R."""
        return from_low - (edge - edges[..., :1]), from_high - (edges[..., -1:] - edge)

    is_first = np.arange(_splines.PANELS + 1) == 0
    begin_low, begin_high = offsets_of_t(edges[..., np.array([3, 3, 2, 1])])
    end_low, end_high = offsets_of_t(edges[..., np.array([3, 2, 1, 0])])
    start_low = xp.where(is_first, 0, xp.clip(begin_low, 0, room))
    start_high = xp.where(is_first, room, xp.clip(begin_high, 0, room))
    stop_low, stop_high = xp.clip(end_low, 0, room), xp.clip(end_high, 0, room)
    # Each end is known by its smaller distance, which has more digits.
    length = xp.where(stop_low < start_high, stop_low - start_low, start_high - stop_high)
    interval = Interval(
        xp.where(start_low < start_high, one.low + start_low, one.high - start_high),
        xp.where(stop_low < stop_high, one.low + stop_low, one.high - stop_high),
        xp.maximum(length, 0),
        one.x_low + start_low,
        one.rest_high + stop_high,
    )
    return interval, start_low - begin_low, end_low - stop_low


def _at_nodes_of_panels(
    others: Spline, panels: np.ndarray, below: Array, above: Array, batch: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the cdf and pdf of R at distances `(Z, ..., P, nodes)` from the ends of P panels."""
    panel = panels[:, None] + (0 * above).astype(xp.int32)
    # The spline takes its queries on one last axis.
    queries = (
        xp.moveaxis(v, 0, -3).reshape((*batch, v.size // math.prod(batch)))
        for v in (panel, below, above)
    )
    shape = np.array(above.shape)[[*range(1, above.ndim - 2), 0, -2, -1]]
    cdf, pdf = _splines.cdf_and_pdf(others, *queries)
    return xp.moveaxis(cdf.reshape(shape), -3, 0), xp.moveaxis(pdf.reshape(shape), -3, 0)


def sum_of_two(classes: Beta, settings: Settings) -> Spline:
    """Return the sum of two classes from their densities; its cdf integrates over the knots."""
    one, other = select(classes, 0), select(classes, 1)
    chosen = partial(xp.where, one.high - one.low < other.high - other.low)
    narrow, wide = trees.map(chosen, one, other), trees.map(chosen, other, one)
    r = _edges_of_one(narrow)
    layout = _layout(wide, r, _ends_of_one(narrow))
    knots = _splines.knots(layout.hard, settings.steps, r.dtype)
    distances = [*_from_ends(wide, r, layout, knots), *_past_inner_edges(wide, r, layout, knots)]
    density = xp.stack(
        [
            _density_of_two(wide, narrow, settings, *(v[..., i, :] for v in distances))
            for i in range(_splines.PANELS)
        ],
        -2,
    )
    slope = density * knots.slope * xp.diff(layout.edges)[..., None]
    rises = _splines.integrate(slope)
    of_panels = rises[..., -1:]
    up_to_panels = xp.cumsum(of_panels, -2)
    total = up_to_panels[..., -1:, :]
    cdf = (up_to_panels - of_panels + rises) / total
    edges = (wide.low + narrow.low)[..., None] + layout.edges
    return _splines.spline(edges, layout.hard, cdf, slope / total)


def _past_inner_edges(wide: Beta, r: Array, layout: _Layout, knots: Grid) -> tuple[Array, Array]:
    """Return by how much the knots lie above the first inner edge, and below the second.

    There poles of both classes may meet. A difference of distances from the ends has lost how far
    a knot is from that, by which the density grows without bound.
    """
    edges, lengths = layout.edges, xp.diff(layout.edges)[..., None]
    first, second = (r[..., -1] - r[..., 0])[..., None], (wide.high - wide.low)[..., None]
    above = (edges[..., :-1] - first)[..., None] + lengths * knots.y
    short = (edges[..., 1:] - first)[..., None] - lengths * knots.rest
    below = (second - edges[..., 1:])[..., None] + lengths * knots.rest
    over = (second - edges[..., :-1])[..., None] - lengths * knots.y
    panel = np.arange(_splines.PANELS)[:, None]
    return xp.where(panel == 0, short, above), xp.where(panel == 2, over, below)


def _density_of_two(
    wide: Beta,
    narrow: Beta,
    settings: Settings,
    from_low: Array,
    from_high: Array,
    past_first: Array,
    past_second: Array,
) -> Array:
    """Return `integral f_R(r) f_A(z - r) dr`, but for a factor, for R narrower than A.

    The points z of one panel have the distances `from_low` and `from_high`, `(..., Z)`, from the
    ends of the support, and those from its inner edges that `_past_inner_edges` returns.
    """
    narrow, wide = expanded(narrow), expanded(wide)
    room = narrow.high - narrow.low
    length = xp.minimum(room, xp.minimum(from_low, from_high))
    beyond_low, beyond_high = xp.maximum(-past_second, 0), xp.maximum(-past_first, 0)
    interval = Interval(
        xp.where(beyond_low > 0, narrow.high - from_high, narrow.low),
        xp.where(beyond_high > 0, narrow.low + from_low, narrow.high),
        length,
        narrow.x_low + beyond_low,
        narrow.rest_high + beyond_high,
    )
    t = _quadrature.between_hard_ends(_quadrature.HARD, settings.nodes_of_sum, room.dtype)
    mass = distributions.masses(expanded(narrow), expanded(interval), t)[1]
    y = xp.maximum(past_first, 0)[..., None] + length[..., None] * t.rest
    rest = xp.maximum(past_second, 0)[..., None] + length[..., None] * t.y
    return (mass * _density_at(expanded(wide), y, rest)).sum(-1)
