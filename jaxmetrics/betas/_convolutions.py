"""Compute the distribution of a sum of independent betas, as a spline (`_splines`).

1. By Fourier inversion. The product of the characteristic functions phi_i of the classes is
   inverted on a window that contains the mass. Frequencies above the N-th are missing; they are
   negligible if phi has decayed by then, which is measured. Where the density of a class vanishes
   smoothly at both ends, phi_i decays like a Gaussian; where it jumps (a class without errors) as
   1/w; where it has a pole (under Jeffreys' prior) as w^-1/2. So this method is insufficient only
   for sums with few classes, or with one class that is far wider than the rest.
2. On ever smaller windows, for those sums (`_multilevel`).

The error of the cdf in x64 (in float32), measured against quadrature, convolution on fine grids and
finer steps:

- of the first method 1e-12 (3e-6; 7e-6 for 1000 classes) plus a tenth of the |phi| at the highest
  frequencies;
- of the second usually 1e-9 (1e-6); in the worst of eighteen designs 5e-8 (3e-6), four classes of
  Jeffreys' prior without data.

Brodersen, Ong, Stephan and Buhmann (2010), The balanced accuracy and its posterior distribution,
ICPR. Carrillo, Brodersen and Castellanos (2014), Probabilistic performance evaluation for
multiclass classification using the posterior balanced accuracy, ROBOT 2013.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from jaxmetrics._arithmetic import append_axes, matmul
from jaxmetrics._chunks import map_chunks
from jaxmetrics._compilation import compiled
from jaxmetrics._jax import trees
from jaxmetrics._namespaces import Array, is_jax, is_known, lax, xp
from jaxmetrics.betas import _splines, distributions
from jaxmetrics.betas._characteristic import (
    Settings,
    characteristic,
    settings_for,
    spectra,
    window,
)
from jaxmetrics.betas._multilevel import refined_sum
from jaxmetrics.betas._splines import Spline
from jaxmetrics.betas.distributions import Beta

__all__: list[str] = []


_NUMBERS_AT_ONCE = (
    2**17
)  # sums per chunk: enough for all cores of a CPU, few enough for their caches
# Factor on accelerators: 128 MB in float32. With more, refining a single sum, for which a whole
# group is computed, would take longer than launching the kernels.
_TIMES_ON_ACCELERATORS = 256
_SOFT = np.zeros((_splines.PANELS, 2), bool)


def widest_first(parameters: Array) -> Array:
    """Sort classes `(..., k, 2)` by variance, largest first."""
    variance = distributions.variance_of(*xp.moveaxis(lax.stop_gradient(parameters), -1, 0))
    return xp.take_along_axis(parameters, xp.argsort(-variance, axis=-1)[..., None], -2)


def _classes(parameters: Array) -> Beta:
    return distributions.beta(parameters[..., 0], parameters[..., 1])


@lru_cache
def _fourier_basis(frequencies: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots y, as fractions of the window, and rows of cos and sin of `2 pi n y`."""
    y = _splines.knots(_SOFT, steps, np.dtype(float)).y
    at = ((np.arange(_splines.PANELS)[:, None] + y) / _splines.PANELS).ravel()
    angles = 2 * np.pi * np.arange(1, frequencies)[:, None] * at
    return at, np.concatenate([np.cos(angles), np.sin(angles)])


def _sum_by_fourier(settings: Settings, parameters: Array) -> tuple[Spline, Array]:
    """Compute sums by Fourier inversion; also return which are rough."""
    classes = _classes(parameters)
    low, high = window(classes)
    phi = characteristic(classes, low, 2 * np.pi / (high - low), settings)
    cdf, density = _invert(phi, settings)
    share = np.linspace(0, 1, _splines.PANELS + 1).astype(low.dtype)
    panels = (*low.shape, _splines.PANELS, settings.steps + 1)
    slope = _splines.knots(_SOFT, settings.steps, np.dtype(float)).slope / _splines.PANELS
    spline = _splines.spline(
        low[..., None] + (high - low)[..., None] * share,
        xp.broadcast_to(_SOFT, (*low.shape, *_SOFT.shape)),
        cdf.reshape(panels),
        density.reshape(panels) * slope.astype(low.dtype),
    )
    tail = xp.abs(lax.stop_gradient(phi[..., -(settings.frequencies // 8) :])).max(-1)
    return _splines.monotone(spline), tail > settings.unresolved


def _invert(phi: Array, settings: Settings) -> tuple[Array, Array]:
    """Return the cdf and the density at the knots, in units of the window.

    `phi` is the characteristic function at the multiples of 2 pi / window.
    """
    y, basis = _fourier_basis(settings.frequencies, settings.steps)
    both = xp.stack(spectra(phi))[..., 1:]
    parts = xp.concatenate([both.real, -both.imag], -1)
    # One product for all sums, because NumPy would otherwise read the basis once per sum.
    products = matmul(parts.reshape((-1, len(basis))), basis.astype(parts.dtype))
    ripple, density = products.reshape((*parts.shape[:-1], len(y)))
    return y.astype(parts.dtype) + (ripple - ripple[..., :1]), 1 + density


def first_distribution(parameters: Array) -> tuple[Spline, Array]:
    """Compute the sums by Fourier inversion, from parameters `(B, k, 2)`, widest class first.

    Computed in chunks, to bound the memory. Returns splines relative to the mean, and which sums
    are rough, because their characteristic function has not decayed.
    """
    settings = settings_for(parameters.dtype)
    chunk = max(1, _NUMBERS_AT_ONCE // (sum(settings.nodes) * parameters.shape[-2]))
    return map_chunks(
        partial(_sum_by_fourier, settings),
        chunk,
        parameters,
        times=_TIMES_ON_ACCELERATORS,
        on_accelerators=partial(_sum_by_fourier, settings.on_accelerators),
    )


def final_distribution(spline: Spline, is_rough: Array, parameters: Array) -> Spline:
    """Refine the rough sums.

    Outside of a trace, the refinement is only compiled and run if a sum needs it.
    """
    if is_known(is_rough) and not is_rough.any():
        return spline
    return _with_refined(spline, parameters, is_rough)


def _refined_group(settings: Settings, spline: Spline, parameters: Array, needed: Array) -> Spline:
    """Refine the sums of a group that need it, without any work if there are none.

    The other rows of the result have no meaning.
    """

    def refined() -> Spline:
        safe = xp.where(needed[:, None, None], parameters, 100)
        return _splines.monotone(refined_sum(_classes(safe), settings))

    unused = trees.map(lambda v: v[: len(needed)], spline)
    return lax.cond(needed.any(), refined, lambda: unused)


@compiled
def _with_refined(spline: Spline, parameters: Array, needed: Array) -> Spline:
    """Replace the needed sums in groups."""
    settings, k = settings_for(parameters.dtype), parameters.shape[-2]

    def replace_in_groups() -> Spline:
        # Sums that need refinement come first, so that they fill groups; the order is restored at
        # the end.
        order = xp.argsort(~needed)
        count = len(needed) if is_jax(needed) else int(needed.sum())
        numbers = 32 * settings.of_parts(k).nodes_of_parts * (k + 4)
        refined = map_chunks(
            partial(_refined_group, settings, spline),
            max(1, _NUMBERS_AT_ONCE // numbers) if is_jax(needed) else 1,
            *(v[order[:count]] for v in (parameters, needed)),
            times=_TIMES_ON_ACCELERATORS,
            on_accelerators=partial(_refined_group, settings.on_accelerators, spline),
        )
        place = xp.minimum(xp.argsort(order), count - 1)
        return trees.map(
            lambda new, old: xp.where(append_axes(needed, old.ndim - 1), new[place], old),
            refined,
            spline,
        )

    return lax.cond(needed.any(), replace_in_groups, lambda: spline)
