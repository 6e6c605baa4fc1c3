"""How the distribution of a sum of betas is found; `_splines` holds it.

1. The product of the characteristic functions phi_i of the classes, inverted on a window outside of
   which lies no mass. It lacks the frequencies above the N-th, which are nothing where phi has
   decayed by then; that is measured. Soft classes decay like Gaussians, a perfect one (its density
   jumps) as 1/w, one under Jeffreys' prior as w^-1/2; so what is left has few classes, or one that
   is far wider than the rest.
2. There the classes are added one by one, by quadrature, from narrow to wide:
   `P(A + R <= z) = integral f_A(t) F_R(z - t) dt`, on panels that end where an end of A meets one
   of R, since hardly anywhere else the result is not smooth. Of more than twelve classes the
   narrowest are convolved as before. There phi need not have decayed: it is cut off smoothly, by
   exp(-36 (n/N)^8), on a window with margins, which changes R in features that the wider classes
   smooth out.

The error of the cdf (x64; float32 in brackets), against quadrature, convolution on fine grids and
finer steps: of the first method 1e-12 (1e-6; 2e-5 for 1000 classes) and a tenth of the |phi| that
was found; of the second usually 1e-9 (1e-6), at most 1e-6 (2e-5), where poles of Jeffreys' prior
meet at several scales. With thirteen or more such classes, each of them half as wide as the last,
and poles on both sides, 1e-3 has been seen.

Brodersen, Ong, Stephan and Buhmann (2010), The balanced accuracy and its posterior distribution,
ICPR. Carrillo, Brodersen and Castellanos (2014), Probabilistic performance evaluation for
multiclass classification using the posterior balanced accuracy, ROBOT 2013. Tadmor and Tanner
(2005), IMA J. Numer. Anal. 25, on such filters.
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
from jaxmetrics.betas._splines import Spline
from jaxmetrics.betas.distributions import Beta, Interval, expanded

__all__: list[str] = []


class _Settings(NamedTuple):
    frequencies: int  # N
    nodes: tuple[int, int]  # of a class, for phi: so many and, for the j-th widest, more / sqrt(j)
    steps: int  # per panel of the spline
    nodes_of_sum: int  # of the quadrature that adds a class, per panel of the others
    unresolved: float  # |phi(w_N)| above which classes are added by quadrature


def _settings(dtype: np.dtype) -> _Settings:
    if dtype == np.float64:
        return _Settings(128, (60, 300), 320, 72, 1e-8)
    return _Settings(32, (28, 108), 96, 40, 1e-5)


_NODES_AT_ONCE = 2**17  # enough for all cores, few enough for their caches
_BY_QUADRATURE = 12  # classes at most
_MARGIN = 0.1  # of the window, on either side
_FILTER = 8


class SumDistribution(NamedTuple):
    """The spline of a sum relative to its mean, and |phi| at the highest frequencies."""

    spline: Spline
    tail: Array


def widest_first(parameters: Array) -> Array:
    """The classes `(..., k, 2)` in the order of their variances."""
    variance = distributions.variance_of(*xp.moveaxis(lax.stop_gradient(parameters), -1, 0))
    return xp.take_along_axis(parameters, xp.argsort(-variance, axis=-1)[..., None], -2)


def _classes(parameters: Array) -> Beta:
    return distributions.beta(parameters[..., 0], parameters[..., 1])


def _some(classes: Beta, index: slice) -> Beta:
    return Beta(*(v[..., index] for v in classes))


def _characteristic(
    classes: Beta, low: Array, step: Array, settings: _Settings, starts: tuple[int, ...]
) -> Array:
    """`E exp(i n step (S - mean + low))` for n < N, `(..., N)`, of classes widest first.

    The j-th widest class is at most 1 / sqrt(j) as wide as the sum, so it needs that much fewer
    nodes for its phase: those between two of the `starts` have the number of the first of them.
    """
    k, base, more = classes.mean.shape[-1], *settings.nodes
    factors = []
    for start, stop in pairwise((*starts, k)):
        if start < k:
            m = math.ceil(base + more / math.sqrt(start + 1))
            z, mass = distributions.nodes(_some(classes, slice(start, min(stop, k))), m)
            mass = mass / mass.sum(-1, keepdims=True)
            # Rounding, which adds up over a thousand classes.
            z = lax.stop_gradient(z - (mass * z).sum(-1, keepdims=True))
            phase = (z + (low / k)[..., None, None]) * step[..., None, None]
            factors.append(_harmonics(phase, mass, settings.frequencies))
    product = xp.concatenate(factors, -2)
    while (k := product.shape[-2]) > 1:
        half = k // 2
        pairs = product[..., :half, :] * product[..., half : 2 * half, :]
        product = xp.concatenate([pairs, product[..., 2 * half :, :]], -2)
    return product[..., 0, :]


def _harmonics(phase: Array, mass: Array, number: int) -> Array:
    """`sum_m mass_m exp(i n phase_m)` for n < number: with n = 8 p + q the products of two small
    tables, in real numbers, whose products of matrices are faster than those of complex ones.
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
def _waves(
    frequencies: int, steps: int, filtered: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Panels of the window as fractions of it, whether their ends are hard, the knots y, and cos
    and sin of `2 pi n y`.
    """
    margin = _MARGIN / (1 + 2 * _MARGIN)
    cuts = (
        np.array([0, margin, 1 - margin, 1]) if filtered else np.linspace(0, 1, _splines.PANELS + 1)
    )
    hard = np.array([[False, True], [True, True], [True, False]]) & filtered
    y = _splines.knots(hard, steps, np.dtype(float)).y
    at = (cuts[:-1, None] + np.diff(cuts)[:, None] * y).ravel()
    angles = 2 * np.pi * np.arange(1, frequencies)[:, None] * at
    return cuts, hard, at, np.concatenate([np.cos(angles), np.sin(angles)])


def _moments(classes: Beta) -> tuple[Array, Array]:
    """Variances, and ratios of third to second moments downwards and upwards, which bound how far
    a sum reaches.
    """
    a, b = (lax.stop_gradient(v) for v in (classes.a, classes.b))
    ratio = distributions.skewness(a, b)
    return distributions.variance_of(a, b), xp.stack([-ratio, ratio], -1)


def _by_fourier(classes: Beta, settings: _Settings, *, filtered: bool = False) -> SumDistribution:
    """The sum on the window that it reaches, from its frequencies; with margins and without the
    highest frequencies where `filtered`.
    """
    variances, skewnesses = _moments(classes)
    reach = distributions.reach(variances.sum(-1)[..., None], skewnesses.max(-2))
    low = xp.minimum(reach[..., 0], classes.mean.sum(-1))
    high = xp.minimum(reach[..., 1], classes.rest.sum(-1))
    margin = _MARGIN * (low + high) if filtered else 0 * low
    begin, width = -low - margin, low + high + 2 * margin
    starts = (0,) if filtered else (0, 1, 4, 16)  # the shorter program where it hardly ever runs
    phi = _characteristic(classes, -begin, 2 * np.pi / width, settings, starts)
    cdf, density = _inverted(phi, settings, filtered)

    cuts, hard, *_ = _waves(settings.frequencies, settings.steps, filtered)
    edges = begin[..., None] + width[..., None] * cuts.astype(low.dtype)
    if filtered:  # to the last digit, since they may be ends of the support
        edges = xp.stack([begin, -low, high, high + margin], -1)
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


def _inverted(phi: Array, settings: _Settings, filtered: bool) -> tuple[Array, Array]:
    """The cdf and the density, in units of the window, at the knots, from the characteristic
    function at the multiples of 2 pi / window.
    """
    n = np.arange(1, settings.frequencies)
    *_, at, waves = _waves(settings.frequencies, settings.steps, filtered)
    kept = np.exp(-36 * (n / settings.frequencies) ** _FILTER) if filtered else np.ones(len(n))
    spectrum = xp.conj(phi[..., 1:]) * (2 * kept).astype(phi.real.dtype)
    integral = spectrum * (-1j / (2 * np.pi * n)).astype(phi.dtype)
    both = xp.stack([spectrum, integral], -2)
    parts = xp.concatenate([both.real, -both.imag], -1)
    density, ripple = xp.moveaxis(matmul(parts, waves.astype(parts.dtype)), -2, 0)
    return at.astype(parts.dtype) + (ripple - ripple[..., :1]), 1 + density


class _Ends(NamedTuple):
    """What is known of the ends of a sum."""

    hard: Array  # (..., 2), whether its density jumps or has a pole there, on its own scale
    # Where all classes are at their only hard end, from the low end of the sum; -1 if one has none
    # or two.
    kink: Array
    variance: Array
    skewness: Array  # (..., 2), downwards and upwards, the largest of a class


class _Sum(NamedTuple):
    """Of the classes that have been added, R."""

    spline: Spline
    ends: _Ends


def _of_one(one: Beta, total: Array, settings: _Settings) -> _Sum:
    """One class: a single panel, between two that are empty."""
    hard = xp.stack([one.hard_low, one.hard_high], -1)
    of_panels = xp.stack([hard, hard, hard], -2)
    places = _quadrature.of_ends(
        _quadrature.knots, settings.steps, one.hard_low, one.hard_high, one.mean.dtype
    )
    width = (one.high - one.low)[..., None]
    y, rest, wide = width * places.y, width * places.rest, expanded(one)
    end = xp.where(y < rest, wide.low + y, wide.high - rest)
    below = Interval(wide.low, end, y, wide.x_low, wide.rest_high + rest)
    t = _quadrature.between_hard_ends(_quadrature.HARD, settings.nodes_of_sum, y.dtype)
    cdf = distributions.masses(expanded(wide), expanded(below), t)[1].sum(-1) / total[..., None]
    log_x, log_rest = (
        xp.log(xp.maximum(v, xp.finfo(y.dtype).tiny) / unit)
        for v, unit in ((wide.x_low + y, wide.mean), (wide.rest_high + rest, wide.rest))
    )
    log_density = distributions.log_density(wide, end, log_x, log_rest) - log_x - log_rest
    slope = xp.exp(log_density) * (
        width * places.slope / (wide.mean * wide.rest * total[..., None])
    )
    edges = xp.stack([one.low, one.low, one.high, one.high], -1)
    cdf, slope = (
        xp.stack([0 * cdf, cdf, 1 + 0 * cdf], -2),
        xp.stack([0 * slope, slope, 0 * slope], -2),
    )
    spline = _splines.spline(edges, of_panels, cdf, slope)
    return _Sum(spline, _Ends(hard, _kink(one, 0 * one.low), *_moments(one)))


def _bends(one: Beta) -> tuple[Array, Array]:
    """Whether the density bends at 0 and at 1; a high power of the distance does not."""
    a, b = lax.stop_gradient(one.a), lax.stop_gradient(one.b)
    return one.hard_low & (a < 3), one.hard_high & (b < 3)


def _kink(one: Beta, of_others: Array) -> Array:
    """Where the sum has a kink, since each class is at its only end that bends."""
    at_low, at_high = _bends(one)
    has_one = (at_low != at_high) & (of_others >= 0)
    return xp.where(has_one, of_others + xp.where(at_high, one.high - one.low, 0), -1)


class _Layout(NamedTuple):
    """How the support of A + R is cut into three panels."""

    # (..., 4), where panels begin and end, from the low end of A + R.
    edges: Array
    hard: Array  # (..., 3, 2), the ends of each panel
    sum: _Ends


def _layout(one: Beta, others: _Sum) -> _Layout:
    """The panels of A + R for one class A.

    The outer ones are as long as the narrower of A and R; at their ends, an end of the narrower
    meets one of the wider. But where hard ends of several classes on either side meet within R,
    the kink that this leaves is an edge.
    """
    r, ends = others.spline.edges, others.ends
    width, width_of_others = one.high - one.low, r[..., -1] - r[..., 0]
    last = width + width_of_others
    margin = 1e-4 * width_of_others
    kink = _kink(one, ends.kink)
    is_inside = (kink >= 0) & (ends.kink > margin) & (ends.kink < width_of_others - margin)
    kink_low, kink_high = (is_inside & bends for bends in _bends(one))
    first = xp.where(kink_low, kink, xp.minimum(width, width_of_others))
    second = xp.where(kink_high, kink, xp.maximum(width, width_of_others))

    # An outer end is hard if those of A and R are; an inner one, where an end of the narrower meets
    # one of the wider, if that of the wider is, as the narrower is smooth on its scale.
    hard_of_one = xp.stack([one.hard_low, one.hard_high], -1)
    one_is_wide = (width >= width_of_others)[..., None]
    wide = xp.where(one_is_wide, hard_of_one, ends.hard)
    narrow = xp.where(one_is_wide, ends.hard, hard_of_one)
    at_low_of_wide = np.array([[True, True], [True, False], [False, False]])
    is_inner = np.array([[False], [True], [False]])
    of_wide = xp.where(at_low_of_wide, wide[..., :1, None], wide[..., 1:, None])
    hard = of_wide & (is_inner | narrow[..., None, :])
    beside_first = np.array([[False, True], [True, False], [False, False]])
    beside_second = np.array([[False, False], [False, True], [True, False]])
    hard = hard | (kink_low[..., None, None] & beside_first)
    hard = hard | (kink_high[..., None, None] & beside_second)

    # Nothing lies beyond the reach of the sum, which grows more slowly than the sum of reaches:
    # without this cut, many narrow classes would become a peak in a wide and empty window.
    variance, skewness = _moments(one)
    variance, skewness = ends.variance + variance, xp.maximum(ends.skewness, skewness)
    reach = distributions.reach(variance[..., None], skewness)
    window = xp.stack([-one.low - r[..., 0], one.high + r[..., -1]], -1)
    cut = xp.maximum(window - reach, 0)
    is_cut = cut > 0
    outermost = np.array([[True, False], [False, False], [False, True]])
    hard = hard & ~(outermost & is_cut[..., None, :])
    edges = xp.stack([0 * first, first, second, last], -1)
    edges = xp.clip(edges, cut[..., :1], last[..., None] - cut[..., 1:])
    kink = xp.where(kink >= cut[..., 0], kink - cut[..., 0], -1)
    return _Layout(edges, hard, _Ends(wide & ~is_cut, kink, variance, skewness))


def _add(one: Beta, total: Array, others: _Sum, settings: _Settings) -> _Sum:
    """A + R for one class A, `total` the integral of its density in the units of `masses`."""
    r, batch = others.spline.edges, one.mean.shape
    layout = _layout(one, others)
    places = _splines.knots(layout.hard, settings.steps, r.dtype)
    last = one.high - one.low + r[..., -1] - r[..., 0]
    lengths = xp.diff(layout.edges)[..., None]
    from_low = layout.edges[..., :-1, None] + lengths * places.y
    from_high = (last[..., None] - layout.edges[..., 1:])[..., None] + lengths * places.rest

    function = partial(_cdf_and_pdf_of_sum, expanded(one), total, others.spline, settings)
    points = [xp.moveaxis(v.reshape((*batch, -1)), -1, 0)[..., None] for v in (from_low, from_high)]
    in_cache = len(points[0]) if is_jax(total) else max(1, 2**14 // (4 * settings.nodes_of_sum))
    cdf, pdf = (
        xp.moveaxis(v, 0, -1).reshape(places.y.shape)
        for v in map_chunks(function, in_cache, *points)
    )
    edges = (one.low + r[..., 0])[..., None] + layout.edges
    spline = _splines.spline(edges, layout.hard, cdf, pdf * places.slope * lengths)
    return _Sum(spline, layout.sum)


def _cdf_and_pdf_of_sum(
    one: Beta, total: Array, others: Spline, settings: _Settings, from_low: Array, from_high: Array
) -> tuple[Array, Array]:
    """P(A + R <= z) = integral f_A(t) F_R(z - t) dt, and the same with f_R, at points z that have
    these distances from the ends of the support, `(Z, ..., 1)`.

    The integral is cut where z - t is an edge of R's panels: into a part in which F_R is 1, and one
    for each panel, from the last on.
    """
    r, room = others.edges, one.high - one.low

    def distances_where_r_is_at(edges: Array) -> tuple[Array, Array]:
        """t - low end of A, and high end of A - t."""
        return from_low - (edges - r[..., :1]), from_high - (r[..., -1:] - edges)

    is_first = np.arange(_splines.PANELS + 1) == 0
    begin_low, begin_high = distances_where_r_is_at(r[..., np.array([3, 3, 2, 1])])
    end_low, end_high = distances_where_r_is_at(r[..., np.array([3, 2, 1, 0])])
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
    t = _quadrature.between_hard_ends(_quadrature.HARD, settings.nodes_of_sum, room.dtype)
    mass = distributions.masses(expanded(one), expanded(interval), t)[1] / total[..., None, None]

    # z - t, by its distances from the ends of the panel of R in which it lies, if there is one.
    in_panel = interval.length[..., 1:, None]
    above, below = (
        xp.where(in_panel > 0, xp.maximum(outside, 0)[..., 1:, None] + in_panel * y, 1)
        for outside, y in ((start_low - begin_low, t.y), (end_low - stop_low, t.rest))
    )
    panel = np.arange(_splines.PANELS - 1, -1, -1)[:, None] + (0 * above).astype(xp.int32)
    batch = total.shape
    queries = (
        xp.moveaxis(v, 0, -3).reshape((*batch, v.size // math.prod(batch)))
        for v in (panel, below, above)
    )
    shape = np.array(above.shape)[[*range(1, above.ndim - 2), 0, -2, -1]]
    cdf, pdf = (
        (mass[..., 1:, :] * xp.moveaxis(v.reshape(shape), -3, 0)).sum((-2, -1))
        for v in _splines.cdf_and_pdf(others, *queries)
    )
    return mass[..., 0, :].sum(-1) + cdf, pdf


def _by_quadrature(parameters: Array) -> Spline:
    settings, k = _settings(parameters.dtype), parameters.shape[-2]
    classes, count = _classes(parameters), min(k, _BY_QUADRATURE)
    totals = distributions.nodes(classes, 2 * settings.nodes_of_sum)[1].sum(-1)
    if k > count:
        narrow = _some(classes, slice(count, None))
        rest = _by_fourier(narrow, settings, filtered=True).spline
        variances, skewnesses = _moments(narrow)
        soft, no_kink = xp.zeros_like(rest.hard[..., 0, :]), 0 * totals[..., 0] - 1
        start = _Sum(rest, _Ends(soft, no_kink, variances.sum(-1), skewnesses.max(-2)))
    else:
        count -= 1
        start = _of_one(Beta(*(v[..., -1] for v in classes)), totals[..., -1], settings)
    narrow_to_wide = jax.tree.map(
        lambda v: xp.moveaxis(v[..., :count][..., ::-1], -1, 0), (classes, totals)
    )

    def add(others: _Sum, class_and_total: tuple[Beta, Array]) -> tuple[_Sum, None]:
        one, total = class_and_total
        return _add(one, total, others, settings), None

    return lax.scan(add, start, narrow_to_wide)[0].spline


def first_distribution(parameters: Array) -> SumDistribution:
    """By Fourier transforms, from parameters `(B, k, 2)`, widest first; a part of them at a time,
    to bound the memory.
    """
    settings = _settings(parameters.dtype)
    accelerator = is_jax(parameters) and jax.default_backend() != "cpu"
    at_once = _NODES_AT_ONCE * (128 if accelerator else 1)
    chunk = max(1, at_once // (sum(settings.nodes) * parameters.shape[-2]))

    def of_chunk(parameters: Array) -> SumDistribution:
        found = _by_fourier(_classes(parameters), settings)
        return found._replace(spline=_splines.mended(found.spline))

    return map_chunks(of_chunk, chunk, parameters)


def final_distribution(found: SumDistribution, parameters: Array) -> Spline:
    """Outside of a trace the quadrature is neither compiled nor run unless a matrix needs it."""
    needed = found.tail > _settings(found.spline.cdf.dtype).unresolved
    return (
        found.spline
        if is_known(needed) and not needed.any()
        else _with_quadrature(found.spline, parameters, needed)
    )


@compiled
def _with_quadrature(spline: Spline, parameters: Array, needed: Array) -> Spline:
    """No work for groups of matrices of which none needs it."""

    def of_group(spline: Spline, parameters: Array, needed: Array) -> Spline:
        def better() -> Spline:
            if len(needed) == 1:
                return _splines.mended(_by_quadrature(parameters))
            new = _splines.mended(_by_quadrature(xp.where(needed[:, None, None], parameters, 100)))
            return jax.tree.map(
                lambda a, b: xp.where(needed.reshape((-1, *(1,) * (a.ndim - 1))), a, b), new, spline
            )

        return lax.cond(needed.any(), better, lambda: spline)

    if len(needed) == 1:
        return of_group(spline, parameters, needed)
    order = xp.argsort(~needed)
    count = len(needed) if is_jax(needed) else int(needed.sum())
    rows = jax.tree.map(lambda v: v[order[:count]], (spline, parameters, needed))
    new = map_chunks(of_group, min(8, count) if is_jax(needed) else 1, *rows)
    back = xp.argsort(order)
    return jax.tree.map(
        lambda new, old: xp.concatenate([new, old[order[count:]]])[back], new, spline
    )
