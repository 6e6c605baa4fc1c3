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
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jaxmetrics._arithmetic import matmul
from jaxmetrics._chunks import map_chunks
from jaxmetrics._compilation import compiled
from jaxmetrics._jax import jax, trees
from jaxmetrics._namespaces import Array, is_jax, is_known, lax, xp
from jaxmetrics.betas import _splines, distributions
from jaxmetrics.betas._additions import (
    Ends,
    Settings,
    Sum,
    add_class,
    moments,
    select,
    settings_for,
    sum_of_one,
    sum_of_two,
)
from jaxmetrics.betas._splines import Spline
from jaxmetrics.betas.distributions import Beta

__all__: list[str] = []


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


def _characteristic(
    classes: Beta, low: Array, step: Array, settings: Settings, starts: tuple[int, ...]
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
            z, mass = distributions.nodes(select(classes, slice(start, min(stop, k))), m)
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


def _sum_by_fourier(
    classes: Beta, settings: Settings, *, filtered: bool = False
) -> SumDistribution:
    """Compute the sum of the classes by Fourier inversion on the window that it reaches.

    Where `filtered`, the window has margins and the highest frequencies are damped.
    """
    variances, skewnesses = moments(classes)
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


def _invert(phi: Array, settings: Settings, filtered: bool) -> tuple[Array, Array]:
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


def _filtered_sum(classes: Beta, settings: Settings) -> Sum:
    """Return the sum of the narrowest classes by Fourier inversion, for wider ones to be added."""
    spline = _sum_by_fourier(classes, settings, filtered=True).spline
    variances, skewnesses = moments(classes)
    variance = variances.sum(-1)
    soft, no_kink = xp.zeros_like(spline.hard[..., 0, :]), 0 * variance - 1
    return Sum(spline, Ends(soft, no_kink, variance, skewnesses.max(-2)))


def _sum_by_quadrature(parameters: Array) -> Spline:
    """Add the classes, given widest first, from the narrowest to the widest."""
    settings, k = settings_for(parameters.dtype), parameters.shape[-2]
    classes, count = _classes(parameters), min(k, _MOST_BY_QUADRATURE)
    if k == 2 and not is_jax(parameters):  # on the device it would be more to compile
        return sum_of_two(classes, settings)
    totals = distributions.nodes(classes, 2 * settings.nodes_of_sum)[1].sum(-1)
    if k > count:
        start = _filtered_sum(select(classes, slice(count, None)), settings)
    else:
        count -= 1
        start = sum_of_one(select(classes, -1), totals[..., -1], settings)
    narrow_to_wide = trees.map(
        lambda v: xp.moveaxis(v[..., :count][..., ::-1], -1, 0), (classes, totals)
    )

    def add(others: Sum, class_and_total: tuple[Beta, Array]) -> tuple[Sum, None]:
        one, total = class_and_total
        return add_class(one, total, others, settings), None

    return lax.scan(add, start, narrow_to_wide)[0].spline


def first_distribution(parameters: Array) -> SumDistribution:
    """Compute the sums by Fourier inversion, from parameters `(B, k, 2)`, widest class first.

    They are computed in chunks, to bound the memory.
    """
    settings = settings_for(parameters.dtype)
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
    needed = found.tail > settings_for(found.spline.cdf.dtype).unresolved
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
            return trees.map(
                lambda a, b: xp.where(needed.reshape((-1, *(1,) * (a.ndim - 1))), a, b), new, spline
            )

        return lax.cond(needed.any(), quadrature, lambda: spline)

    if len(needed) == 1:
        return replace_in_group(spline, parameters, needed)
    # The needed ones first, so that they fill groups; back to their places at the end.
    order = xp.argsort(~needed)
    count = len(needed) if is_jax(needed) else int(needed.sum())
    rows = trees.map(lambda v: v[order[:count]], (spline, parameters, needed))
    new = map_chunks(replace_in_group, min(8, count) if is_jax(needed) else 1, *rows)
    back = xp.argsort(order)
    return trees.map(lambda new, old: xp.concatenate([new, old[order[count:]]])[back], new, spline)
