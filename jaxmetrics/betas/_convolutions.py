"""Distributions of sums of independent beta variables, computed as a spline (`_splines`).

1. Fourier inversion is tried first. The characteristic function phi of the sum is the product of
   the characteristic functions phi_i of the classes, and is inverted on an interval (window) that
   contains the mass. Only N frequencies are used, which is sufficient if phi is nearly 0 at the
   highest frequency. We check whether phi is nearly 0 there. If the density of a class is 0 at both
   ends, phi_i decays like a Gaussian. If the density jumps (a class without errors), phi_i decays
   as 1/w, and if it has a pole (Jeffreys' prior), as w^-1/2. Therefore the first method is only
   insufficient if there are few classes, or if one class is far wider than all others.
2. We call such sums rough. To compute a rough sum, inversion is repeated on smaller and smaller
   windows (`_multilevel`).

The error of the cdf was measured by quadrature, by convolution on fine grids and with finer steps.
The errors in float64 are given first, those in float32 in parentheses:

- the error of the first method is 1e-12 (3e-6; 7e-6 for 1000 classes) plus a tenth of |phi| at the
  highest frequencies;
- the error of the second method is usually 1e-9 (1e-6); in the worst of eighteen designs, four
  classes with Jeffreys' prior and no data, the error is 5e-8 (3e-6).

Sources: Brodersen, Ong, Stephan and Buhmann (2010), The balanced accuracy and its posterior
distribution, ICPR. Carrillo, Brodersen and Castellanos (2014), Probabilistic performance evaluation
for multiclass classification using the posterior balanced accuracy, ROBOT 2013.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from jaxmetrics._numerics.arithmetic import append_axes, matmul, pick
from jaxmetrics._places.chunks import map_chunks
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, Arrays, is_jax, is_known, lax, xp
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


# Number of sums per chunk: enough for all CPU cores, few enough for their caches.
_NUMBERS_AT_ONCE = 2**17
# Chunks on accelerators are greater by this factor: 128 MB in float32. Even greater chunks would be
# slower if a single sum is rough, because a whole group is computed for it.
_TIMES_ON_ACCELERATORS = 256
_SOFT = np.zeros((_splines.PANELS, 2), bool)


def widest_first(parameters: Array) -> Array:
    """Sort the parameters `(..., k, 2)` of classes by variance, greatest first."""
    variance = distributions.variance_of(*xp.moveaxis(lax.stop_gradient(parameters), -1, 0))
    order = xp.argsort(-variance, axis=-1)[..., None, :]
    return xp.swapaxes(pick(xp.swapaxes(parameters, -1, -2), order), -1, -2)


def _classes(parameters: Array) -> Beta:
    return distributions.beta(parameters[..., 0], parameters[..., 1])


@lru_cache
def _fourier_basis(frequencies: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots y as fractions of the window, and rows of cos and sin of `2 pi n y`."""
    y = _splines.knots(_SOFT, steps, np.dtype(float)).y
    at = ((np.arange(_splines.PANELS)[:, None] + y) / _splines.PANELS).ravel()
    angles = 2 * np.pi * np.arange(1, frequencies)[:, None] * at
    return at, np.concatenate([np.cos(angles), np.sin(angles)])


def _sum_by_fourier(settings: Settings, parameters: Array) -> tuple[Spline, Array]:
    """Compute sums by Fourier inversion, and return them with a mask of the rough sums."""
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
    return spline, tail > settings.unresolved


def _invert(phi: Array, settings: Settings) -> Arrays:
    """Return the cdf and the density at the knots, if the width of the window is 1.

    `phi` is the characteristic function at the multiples of 2 pi / window.
    """
    y, basis = _fourier_basis(settings.frequencies, settings.steps)
    both = xp.stack(spectra(phi), -2)[..., 1:]
    parts = xp.concatenate([both.real, -both.imag], -1)
    # One matrix product for all sums, so that NumPy reads the basis only once.
    products = matmul(parts.reshape((-1, len(basis))), basis.astype(parts.dtype))
    ripple, density = xp.moveaxis(products.reshape((*parts.shape[:-1], len(y))), -2, 0)
    return y.astype(parts.dtype) + (ripple - ripple[..., :1]), 1 + density


def first_distribution(parameters: Array) -> tuple[Spline, Array]:
    """Compute sums by Fourier inversion from parameters `(B, k, 2)`, widest class first.

    Sums are computed in chunks to limit memory. Returns splines relative to the mean, and a mask of
    the rough sums, whose characteristic function is not 0 at the highest frequencies.
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
    """Compute the rough sums again on smaller windows.

    Outside of jit, this computation is only compiled and run if a sum is rough.
    """
    if is_known(is_rough) and not is_rough.any():
        return spline
    return _with_refined(spline, parameters, is_rough)


def _refined_group(settings: Settings, spline: Spline, parameters: Array, needed: Array) -> Spline:
    """Refine the rough sums of a group, without any work if there are none.

    The rows of the result that belong to all other sums are arbitrary.
    """

    def refined() -> Spline:
        safe = xp.where(needed[:, None, None], parameters, 100)
        return refined_sum(_classes(safe), settings)

    unused = trees.map(lambda v: v[: len(needed)], spline)
    return lax.cond(needed.any(), refined, lambda: unused)


@compiled
def _with_refined(spline: Spline, parameters: Array, needed: Array) -> Spline:
    """Replace rough sums by refined sums, group by group."""
    settings, k = settings_for(parameters.dtype), parameters.shape[-2]

    def replace_in_groups() -> Spline:
        # Rough sums are sorted to the front, so that they fill groups. The order is restored at the
        # end.
        number = xp.arange(len(needed))
        behind = xp.where(needed, number, number + len(needed))
        order = lax.sort(behind, is_stable=False) % len(needed)
        count = len(needed) if is_jax(needed) else int(needed.sum())
        numbers = 32 * settings.of_parts(k).nodes_of_parts * (k + 4)
        refined = map_chunks(
            partial(_refined_group, settings, spline),
            max(1, _NUMBERS_AT_ONCE // numbers) if is_jax(needed) else 1,
            *(v[order[:count]] for v in (parameters, needed)),
            times=_TIMES_ON_ACCELERATORS,
            on_accelerators=partial(_refined_group, settings.on_accelerators, spline),
            are_neighbours=True,
        )
        place = xp.cumsum(needed) - 1
        return trees.map(
            lambda new, old: xp.where(append_axes(needed, old.ndim - 1), new[place], old),
            refined,
            spline,
        )

    return lax.cond(needed.any(), replace_in_groups, lambda: spline)
