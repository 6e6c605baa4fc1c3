"""Compute the distribution of a sum of independent betas, as a spline (`_splines`).

1. By Fourier inversion. The product of the characteristic functions phi_i of the classes is
   inverted on a window outside of which there is no mass. Frequencies above the N-th are missing;
   they are negligible if phi has decayed by then, which is measured. Where the density of a class
   vanishes smoothly at both ends, phi_i decays like a Gaussian; where it jumps (a class without
   errors) as 1/w; where it has a pole (under Jeffreys' prior) as w^-1/2. So the sums for which this
   method does not suffice have few classes, or one that is far wider than the rest.
2. By quadrature, for those sums. The classes are added one by one, from narrow to wide, by
   `P(A + R <= z) = integral f_A(t) F_R(z - t) dt`, on panels that end where an end of A meets one
   of R: nearly everywhere else the result is smooth. Of more than twelve classes, the narrowest are
   added by Fourier inversion. There phi need not have decayed: it is multiplied by the filter
   exp(-36 (n/N)^8), on a window with margins. This changes only fine features of R, which the wider
   classes smooth out. On the host, two classes are added from their densities alone, whose
   convolution is then integrated, which takes a sixth of the time.

The error of the cdf in x64 (in float32), measured against quadrature, convolution on fine grids and
finer steps:

- of the first method 1e-12 (3e-6; 7e-6 for 1000 classes) plus a tenth of the |phi| at the highest
  frequencies;
- of the second usually 1e-9 (1e-6), and at most 1e-6 (2e-5), where poles of Jeffreys' prior meet at
  several scales; of two classes on the host within 2e-8. With thirteen or more such classes, each
  half as wide as the one before, and poles at both ends, 1e-3 has been seen.

Brodersen, Ong, Stephan and Buhmann (2010), The balanced accuracy and its posterior distribution,
ICPR. Carrillo, Brodersen and Castellanos (2014), Probabilistic performance evaluation for
multiclass classification using the posterior balanced accuracy, ROBOT 2013. On such filters: Tadmor
and Tanner (2005), IMA J. Numer. Anal. 25.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import matmul
from jaxmetrics._chunks import map_chunks
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_jax, is_known, lax, xp
from jaxmetrics.betas import _quadrature, _splines, distributions
from jaxmetrics.betas._quadrature import Grid
from jaxmetrics.betas._splines import Spline
from jaxmetrics.betas.distributions import Beta, Interval, expanded

__all__: list[str] = []


class _Settings(NamedTuple):
    frequencies: int  # N
    nodes: tuple[int, int]  # (base, more): phi of the j-th widest class takes base + more / sqrt(j)
    steps: int  # per panel of the spline
    nodes_of_sum: int  # of the quadrature that adds a class, per panel of the others
    unresolved: float  # |phi(w_N)| above which classes are added by quadrature


def _settings(dtype: np.dtype) -> _Settings:
    if dtype == np.float64:
        return _Settings(128, (60, 300), 320, 72, 1e-8)
    return _Settings(32, (28, 108), 96, 40, 1e-5)


_NODES_AT_ONCE = 2**17  # enough for all cores, few enough for their caches
_MOST_BY_QUADRATURE = 12  # classes
_MARGIN = 0.1  # share of the reached interval that a filtered window adds on either side
_FILTER_ORDER = 8


class SumDistribution(NamedTuple):
    """Hold the spline of a sum, relative to its mean."""

    spline: Spline
    tail: Array  # the largest |phi| at the highest frequencies


def widest_first(parameters: Array) -> Array:
    """Sort the classes `(..., k, 2)` by variance, largest first."""
    variance = distributions.variance_of(*xp.moveaxis(lax.stop_gradient(parameters), -1, 0))
    return xp.take_along_axis(parameters, xp.argsort(-variance, axis=-1)[..., None], -2)


def _classes(parameters: Array) -> Beta:
    return distributions.beta(parameters[..., 0], parameters[..., 1])


def _select(classes: Beta, index: slice | int) -> Beta:
    return Beta(*(v[..., index] for v in classes))


def _characteristic(
    classes: Beta, low: Array, step: Array, settings: _Settings, starts: tuple[int, ...]
) -> Array:
    """Return `E exp(i n step (S - mean + low))` for n < N, `(..., N)`, of classes widest first.

    The j-th widest class is at most 1 / sqrt(j) as wide as the sum, so that its phase varies that
    much less and needs fewer nodes. The classes between two of the `starts` all take the number of
    nodes of the first of them.
    """
    k, base, more = classes.mean.shape[-1], *settings.nodes
    factors = []
    for start, stop in pairwise((*starts, k)):
        if start < k:
            m = math.ceil(base + more / math.sqrt(start + 1))
            z, mass = distributions.nodes(_select(classes, slice(start, min(stop, k))), m)
            mass = mass / mass.sum(-1, keepdims=True)
            # The mean of z is 0 but for rounding, which would add up over a thousand classes.
            z = lax.stop_gradient(z - (mass * z).sum(-1, keepdims=True))
            phase = (z + (low / k)[..., None, None]) * step[..., None, None]
            factors.append(_harmonics(phase, mass, settings.frequencies))
    product = xp.concatenate(factors, -2)
    # Multiply in pairs, which takes log2(k) steps.
    while (k := product.shape[-2]) > 1:
        half = k // 2
        pairs = product[..., :half, :] * product[..., half : 2 * half, :]
        product = xp.concatenate([pairs, product[..., 2 * half :, :]], -2)
    return product[..., 0, :]


def _harmonics(phase: Array, mass: Array, number: int) -> Array:
    """Return `sum_m mass_m exp(i n phase_m)` for n < number.

    With n = 8 p + q, `exp(i n x) = exp(8 i p x) exp(i q x)`: the sum is the product of two small
    matrices. They are kept real, since products of real matrices are faster than complex ones.
    """
    fine, coarse = np.arange(8), np.arange(0, number, 8)
    angle = np.concatenate([fine, coarse])[:, None].astype(phase.dtype) * phase[..., None, :]
    cos, sin = xp.cos(angle), xp.sin(angle)
    of_q = xp.concatenate([cos[..., :8, :], sin[..., :8, :]], -2) * mass[..., None, :]
    of_p = xp.concatenate([cos[..., 8:, :], sin[..., 8:, :]], -2)
    products = matmul(of_p, xp.swapaxes(of_q, -1, -2))
    rows = len(coarse)
    re = products[..., :rows, :8] - products[..., rows:, 8:]
    im = products[..., :rows, 8:] + products[..., rows:, :8]
    return lax.complex(re, im).reshape((*phase.shape[:-1], number))


@lru_cache
def _fourier_basis(
    frequencies: int, steps: int, filtered: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tabulate `2 pi n y` at the knots y of the window.

    Returns:
        The ends of the panels as fractions of the window, whether they are hard, the knots y, and
        the rows of cos and sin of `2 pi n y` for 0 < n < N.
    """
    if filtered:
        margin = _MARGIN / (1 + 2 * _MARGIN)
        cuts = np.array([0, margin, 1 - margin, 1])
    else:
        cuts = np.linspace(0, 1, _splines.PANELS + 1)
    hard = np.array([[False, True], [True, True], [True, False]]) & filtered
    y = _splines.knots(hard, steps, np.dtype(float)).y
    at = (cuts[:-1, None] + np.diff(cuts)[:, None] * y).ravel()
    angles = 2 * np.pi * np.arange(1, frequencies)[:, None] * at
    return cuts, hard, at, np.concatenate([np.cos(angles), np.sin(angles)])


def _moments(classes: Beta) -> tuple[Array, Array]:
    """Return the variances, and the ratios of third to second moments downwards and upwards.

    Both bound how far a sum reaches (`distributions.reach`).
    """
    a, b = (lax.stop_gradient(v) for v in (classes.a, classes.b))
    ratio = distributions.skewness(a, b)
    return distributions.variance_of(a, b), xp.stack([-ratio, ratio], -1)


def _sum_by_fourier(
    classes: Beta, settings: _Settings, *, filtered: bool = False
) -> SumDistribution:
    """Compute the sum of the classes by Fourier inversion on the window that it reaches.

    Where `filtered`, the window has margins and the highest frequencies are damped.
    """
    variances, skewnesses = _moments(classes)
    reach = distributions.reach(variances.sum(-1)[..., None], skewnesses.max(-2))
    low = xp.minimum(reach[..., 0], classes.mean.sum(-1))
    high = xp.minimum(reach[..., 1], classes.rest.sum(-1))
    margin = _MARGIN * (low + high) if filtered else 0 * low
    begin, width = -low - margin, low + high + 2 * margin
    starts = (0,) if filtered else (0, 1, 4, 16)  # a short program where it rarely runs
    phi = _characteristic(classes, -begin, 2 * np.pi / width, settings, starts)
    cdf, density = _invert(phi, settings, filtered)

    cuts, hard, *_ = _fourier_basis(settings.frequencies, settings.steps, filtered)
    if filtered:  # exactly -low and high, since these may be ends of the support
        edges = xp.stack([begin, -low, high, high + margin], -1)
    else:
        edges = begin[..., None] + width[..., None] * cuts.astype(low.dtype)
    panels = (*low.shape, _splines.PANELS, settings.steps + 1)
    slope = _splines.knots(hard, settings.steps, np.dtype(float)).slope * np.diff(cuts)[:, None]
    spline = _splines.spline(
        edges,
        xp.broadcast_to(hard, (*low.shape, *hard.shape)),
        cdf.reshape(panels),
        density.reshape(panels) * slope.astype(low.dtype),
    )
    tail = xp.abs(lax.stop_gradient(phi[..., -(settings.frequencies // 8) :])).max(-1)
    return SumDistribution(spline, tail)


def _invert(phi: Array, settings: _Settings, filtered: bool) -> tuple[Array, Array]:
    """Return the cdf and the density at the knots, in units of the window.

    `phi` is the characteristic function at the multiples of 2 pi / window.
    """
    n = np.arange(1, settings.frequencies)
    *_, y, basis = _fourier_basis(settings.frequencies, settings.steps, filtered)
    if filtered:
        kept = np.exp(-36 * (n / settings.frequencies) ** _FILTER_ORDER)
    else:
        kept = np.ones(len(n))
    spectrum = xp.conj(phi[..., 1:]) * (2 * kept).astype(phi.real.dtype)
    integral = spectrum * (-1j / (2 * np.pi * n)).astype(phi.dtype)
    both = xp.stack([spectrum, integral], -2)
    parts = xp.concatenate([both.real, -both.imag], -1)
    density, ripple = xp.moveaxis(matmul(parts, basis.astype(parts.dtype)), -2, 0)
    return y.astype(parts.dtype) + (ripple - ripple[..., :1]), 1 + density


class _Ends(NamedTuple):
    """Describe the two ends of the support of a sum."""

    hard: Array  # (..., 2), whether its density jumps or has a pole there, on its own scale
    # Where all classes are at their only end that bends, measured from the low end of the sum; -1
    # if a class has no such end or two.
    kink: Array
    variance: Array
    skewness: Array  # (..., 2), downwards and upwards, the largest of any class


class _Sum(NamedTuple):
    """Hold R, the sum of the classes that have been added so far."""

    spline: Spline
    ends: _Ends


def _ends_of_one(one: Beta) -> _Ends:
    hard = xp.stack([one.hard_low, one.hard_high], -1)
    return _Ends(hard, _kink(one, 0 * one.low), *_moments(one))


def _sum_of_one(one: Beta, total: Array, settings: _Settings) -> _Sum:
    """Return the sum of one class alone: a single panel, between two of length 0."""
    ends = _ends_of_one(one)
    cdf, slope = _cdf_and_slope_at_knots(one, total, settings)
    spline = _splines.spline(
        xp.stack([one.low, one.low, one.high, one.high], -1),
        xp.stack([ends.hard, ends.hard, ends.hard], -2),
        xp.stack([0 * cdf, cdf, 1 + 0 * cdf], -2),
        xp.stack([0 * slope, slope, 0 * slope], -2),
    )
    return _Sum(spline, ends)


def _cdf_and_slope_at_knots(one: Beta, total: Array, settings: _Settings) -> tuple[Array, Array]:
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
    tiny = xp.finfo(y.dtype).tiny
    z = xp.where(y < rest, one.low + y, one.high - rest)
    log_x = xp.log(xp.maximum(one.x_low + y, tiny) / one.mean)
    log_rest = xp.log(xp.maximum(one.rest_high + rest, tiny) / one.rest)
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
    sum: _Ends


# Which of the ends of the three panels, `(3, 2)`: those of the whole support, those where an end of
# the narrower meets the low end of the wider, and those beside the first and the second inner edge.
_OUTERMOST = np.array([[True, False], [False, False], [False, True]])
_AT_LOW_OF_WIDE = np.array([[True, True], [True, False], [False, False]])
_BESIDE_FIRST = np.array([[False, True], [True, False], [False, False]])
_BESIDE_SECOND = np.array([[False, False], [False, True], [True, False]])
_MIDDLE_PANEL = np.array([[False], [True], [False]])


def _layout(one: Beta, r: Array, ends: _Ends) -> _Layout:
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
    variance, skewness = _moments(one)
    variance, skewness = ends.variance + variance, xp.maximum(ends.skewness, skewness)
    reach = distributions.reach(variance[..., None], skewness)
    window = xp.stack([-one.low - r[..., 0], one.high + r[..., -1]], -1)
    cut = xp.maximum(window - reach, 0)
    is_cut = cut > 0
    hard = hard & ~(_OUTERMOST & is_cut[..., None, :])
    edges = xp.stack([0 * first, first, second, last], -1)
    edges = xp.clip(edges, cut[..., :1], last[..., None] - cut[..., 1:])
    kink = xp.where(kink >= cut[..., 0], kink - cut[..., 0], -1)
    return _Layout(edges, hard, _Ends(wide & ~is_cut, kink, variance, skewness))


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


def _add(one: Beta, total: Array, others: _Sum, settings: _Settings) -> _Sum:
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
    return _Sum(spline, layout.sum)


def _cdf_and_pdf_of_sum(
    one: Beta, total: Array, others: Spline, settings: _Settings, from_low: Array, from_high: Array
) -> tuple[Array, Array]:
    """Return `P(A + R <= z) = integral f_A(t) F_R(z - t) dt`, and the same with f_R.

    The points z have the distances `from_low` and `from_high`, `(Z, ..., 1)`, from the ends of the
    support.
    """
    interval, outside_low, outside_high = _integration_intervals(
        one, others.edges, from_low, from_high
    )
    # On the host without the intervals that are empty for all of these points.
    used = slice(0, None) if is_jax(interval.length) else _nonempty(interval.length)
    interval, outside_low, outside_high = jax.tree.map(
        lambda v: v[..., used], (interval, outside_low, outside_high)
    )
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
    cdf = (mass[..., first:, :] * cdf_in_panels).sum((-2, -1))
    pdf = (mass[..., first:, :] * pdf_in_panels).sum((-2, -1))
    return mass[..., :first, :].sum((-2, -1)) + cdf, pdf


def _nonempty(length: np.ndarray) -> slice:
    """Return the range of intervals, on the last axis, outside of which all are empty."""
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


def _sum_of_two(classes: Beta, settings: _Settings) -> Spline:
    """Return the sum of two classes from their densities; its cdf integrates over the knots."""
    one, other = (_select(classes, i) for i in (0, 1))
    is_narrow = one.high - one.low < other.high - other.low
    narrow = Beta(*(xp.where(is_narrow, a, b) for a, b in zip(one, other, strict=True)))
    wide = Beta(*(xp.where(is_narrow, b, a) for a, b in zip(one, other, strict=True)))
    r = xp.stack([narrow.low, narrow.low, narrow.high, narrow.high], -1)
    layout = _layout(wide, r, _ends_of_one(narrow))
    knots = _splines.knots(layout.hard, settings.steps, r.dtype)
    from_low, from_high = _from_ends(wide, r, layout, knots)

    density = xp.stack(
        [
            _density_of_two(wide, narrow, settings, from_low[..., i, :], from_high[..., i, :])
            for i in range(_splines.PANELS)
        ],
        -2,
    )
    slope = density * knots.slope * xp.diff(layout.edges)[..., None]
    rises = _splines.integrate(slope)
    ends_of_panels = xp.cumsum(rises[..., -1], -1)[..., None]
    total = ends_of_panels[..., -1:, :]
    cdf = (ends_of_panels - rises[..., -1:] + rises) / total
    edges = (wide.low + narrow.low)[..., None] + layout.edges
    return _splines.spline(edges, layout.hard, cdf, slope / total)


def _density_of_two(
    wide: Beta, narrow: Beta, settings: _Settings, from_low: Array, from_high: Array
) -> Array:
    """Return `integral f_R(r) f_A(z - r) dr`, but for a factor, for R narrower than A.

    The points z of one panel have the distances `from_low` and `from_high`, `(..., Z)`, from the
    ends of the support.
    """
    narrow, wide = expanded(narrow), expanded(wide)
    room = narrow.high - narrow.low
    length = xp.minimum(room, xp.minimum(from_low, from_high))
    beyond_low, beyond_high = xp.maximum(room - from_high, 0), xp.maximum(room - from_low, 0)
    interval = Interval(
        xp.where(beyond_low > 0, narrow.high - from_high, narrow.low),
        xp.where(beyond_high > 0, narrow.low + from_low, narrow.high),
        length,
        narrow.x_low + beyond_low,
        narrow.rest_high + beyond_high,
    )
    t = _quadrature.between_hard_ends(_quadrature.HARD, settings.nodes_of_sum, room.dtype)
    mass = distributions.masses(expanded(narrow), expanded(interval), t)[1]
    y = xp.maximum(from_low - room, 0)[..., None] + length[..., None] * t.rest
    rest = xp.maximum(from_high - room, 0)[..., None] + length[..., None] * t.y
    return (mass * _density_at(expanded(wide), y, rest)).sum(-1)


def _sum_by_quadrature(parameters: Array) -> Spline:
    """Add the classes, given widest first, from the narrowest to the widest."""
    settings, k = _settings(parameters.dtype), parameters.shape[-2]
    classes, count = _classes(parameters), min(k, _MOST_BY_QUADRATURE)
    if k == 2 and not is_jax(parameters):  # on the device it would be more to compile
        return _sum_of_two(classes, settings)
    totals = distributions.nodes(classes, 2 * settings.nodes_of_sum)[1].sum(-1)
    if k > count:
        narrow = _select(classes, slice(count, None))
        rest = _sum_by_fourier(narrow, settings, filtered=True).spline
        variances, skewnesses = _moments(narrow)
        soft, no_kink = xp.zeros_like(rest.hard[..., 0, :]), 0 * totals[..., 0] - 1
        start = _Sum(rest, _Ends(soft, no_kink, variances.sum(-1), skewnesses.max(-2)))
    else:
        count -= 1
        start = _sum_of_one(_select(classes, -1), totals[..., -1], settings)
    narrow_to_wide = jax.tree.map(
        lambda v: xp.moveaxis(v[..., :count][..., ::-1], -1, 0), (classes, totals)
    )

    def add(others: _Sum, class_and_total: tuple[Beta, Array]) -> tuple[_Sum, None]:
        one, total = class_and_total
        return _add(one, total, others, settings), None

    return lax.scan(add, start, narrow_to_wide)[0].spline


def first_distribution(parameters: Array) -> SumDistribution:
    """Compute the sums by Fourier inversion, from parameters `(B, k, 2)`, widest class first.

    They are computed in chunks, to bound the memory.
    """
    settings = _settings(parameters.dtype)
    accelerator = is_jax(parameters) and jax.default_backend() != "cpu"
    at_once = _NODES_AT_ONCE * (128 if accelerator else 1)
    chunk = max(1, at_once // (sum(settings.nodes) * parameters.shape[-2]))

    def of_chunk(parameters: Array) -> SumDistribution:
        found = _sum_by_fourier(_classes(parameters), settings)
        return found._replace(spline=_splines.monotone(found.spline))

    return map_chunks(of_chunk, chunk, parameters)


def final_distribution(found: SumDistribution, parameters: Array) -> Spline:
    """Replace by quadrature the sums whose characteristic function has not decayed.

    Outside of a trace the quadrature is neither compiled nor run unless a sum needs it.
    """
    needed = found.tail > _settings(found.spline.cdf.dtype).unresolved
    if is_known(needed) and not needed.any():
        return found.spline
    return _with_quadrature(found.spline, parameters, needed)


@compiled
def _with_quadrature(spline: Spline, parameters: Array, needed: Array) -> Spline:
    """Replace the needed sums in groups, with no work for a group of which none is needed."""

    def replace_in_group(spline: Spline, parameters: Array, needed: Array) -> Spline:
        def quadrature() -> Spline:
            if len(needed) == 1:
                return _splines.monotone(_sum_by_quadrature(parameters))
            safe = xp.where(needed[:, None, None], parameters, 100)
            new = _splines.monotone(_sum_by_quadrature(safe))
            return jax.tree.map(
                lambda a, b: xp.where(needed.reshape((-1, *(1,) * (a.ndim - 1))), a, b), new, spline
            )

        return lax.cond(needed.any(), quadrature, lambda: spline)

    if len(needed) == 1:
        return replace_in_group(spline, parameters, needed)
    # The needed ones first, so that they fill groups; back to their places at the end.
    order = xp.argsort(~needed)
    count = len(needed) if is_jax(needed) else int(needed.sum())
    rows = jax.tree.map(lambda v: v[order[:count]], (spline, parameters, needed))
    new = map_chunks(replace_in_group, min(8, count) if is_jax(needed) else 1, *rows)
    back = xp.argsort(order)
    return jax.tree.map(
        lambda new, old: xp.concatenate([new, old[order[count:]]])[back], new, spline
    )
