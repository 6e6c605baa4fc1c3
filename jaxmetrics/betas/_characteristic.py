"""Characteristic functions of sums of beta variables, and intervals (windows) that contain their
mass.

All positions of a sum are relative to the mean of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from jaxmetrics._numerics.arithmetic import matmul
from jaxmetrics._places.namespaces import Array, Arrays, lax, xp
from jaxmetrics.betas import distributions
from jaxmetrics.betas.distributions import Beta

__all__: list[str] = []

# First classes of groups. All classes of a group use the number of nodes of the first.
_GROUPS = 0, 1, 4, 16
_FINE = 8  # frequencies are written as 8 p + q


class Settings(NamedTuple):
    frequencies: int  # N
    nodes: tuple[int, int]  # (base, extra): base + extra / sqrt(j) nodes for phi of class j
    steps: int  # steps per panel of the spline
    unresolved: float  # |phi(w_N)| above which windows are refined
    levels: int  # number of levels of refined windows
    sharpness: float  # sharpness of the cut between two levels
    negligible: float  # mass below which no smaller window is needed
    more_frequencies: int  # of refined windows: (k + 1) times this for k classes
    least_start: int = 1  # least index at which a group after the first may start

    @property
    def nodes_of_parts(self) -> int:
        return 2 * self.frequencies

    @property
    def on_accelerators(self) -> Settings:
        """Return settings with fewer and larger groups, for which a GPU needs fewer kernels and
        half the compile time.
        """
        return self._replace(least_start=16)

    def starts(self, groups: Sequence[int]) -> list[int]:
        """Return the indices at which groups of classes start."""
        return [start for start in groups if start == 0 or start >= self.least_start]

    def of_parts(self, k: int) -> Settings:
        """Return the settings for refined windows and k classes."""
        return self._replace(frequencies=self.more_frequencies * (min(k, 7) + 1))


def settings_for(dtype: np.dtype) -> Settings:
    if dtype == np.float64:
        return Settings(128, (60, 300), 240, 1e-8, 20, 4.6, 1e-13, 48)
    return Settings(32, (28, 108), 60, 1e-5, 12, 3.2, 1e-7, 24)


def window(classes: Beta, among: Array | bool = True) -> Arrays:
    """Return how far the mass of a sum extends below and above its mean, both of shape `(...)`."""
    a, b = (lax.stop_gradient(v) for v in (classes.a, classes.b))
    variance = xp.where(among, distributions.variance_of(a, b), 0).sum(-1)
    ratio = distributions.skewness(a, b)
    below, above = (
        distributions.reach(variance, xp.where(among, r, 0).max(-1)) for r in (-ratio, ratio)
    )
    low, high = (xp.where(among, v, 0).sum(-1) for v in (classes.low, classes.high))
    return xp.maximum(-below, low), xp.minimum(above, high)


def characteristic(classes: Beta, low: Array, step: Array, settings: Settings) -> Array:
    """Compute the characteristic function `E exp(i n step (S - mean - low))` of a sum S for n < N.

    The result has shape `(..., N)`. Classes must be sorted by width, widest first. The width of
    class j is at most 1 / sqrt(j) times the width of the sum. Therefore the phases of narrow
    classes vary less, and fewer nodes are needed for these classes.
    """
    k, base, extra = classes.mean.shape[-1], *settings.nodes

    def factors(start: int, stop: int) -> Array:
        m = math.ceil(base + extra / math.sqrt(start + 1))
        z, mass = distributions.nodes(Beta(*(v[..., start:stop] for v in classes)), m)
        # Without this barrier, GPUs compile and compute the densities once per sum.
        z, mass = lax.optimization_barrier((z, mass))
        mass = mass / mass.sum(-1, keepdims=True)
        # The mean of z is 0 up to a rounding error, which would accumulate over a thousand classes.
        z = lax.stop_gradient(z - (mass * z).sum(-1, keepdims=True))
        phase = (z - (low / k)[..., None, None]) * step[..., None, None]
        return harmonics(phase, mass, settings.frequencies)

    product = by_groups(factors, k, settings.starts(_GROUPS))
    # Multiplication in pairs takes log2(k) steps.
    while (k := product.shape[-2]) > 1:
        half = k // 2
        pairs = product[..., :half, :] * product[..., half : 2 * half, :]
        product = xp.concatenate([pairs, product[..., 2 * half :, :]], -2)
    return product[..., 0, :]


def by_groups(
    factors: Callable[[int, int], Array], k: int, starts: Sequence[int], axis: int = -2
) -> Array:
    """Compute `factors(start, stop)` for each group of classes, and join them along the axis of
    classes.
    """
    groups = pairwise([start for start in starts if start < k] + [k])
    joined: Array = xp.concatenate([factors(*group) for group in groups], axis)
    return joined


def _rotations(phase: Array, number: int) -> Arrays:
    """Return cos and sin of q times the phase for q < 8, and for the multiples of 8 below `number`.

    If n = 8 p + q, then `exp(i n x) = exp(8 i p x) exp(i q x)`, so that sums over n are products of
    two small matrices. The matrices are real, because real products are faster than complex ones.
    """

    def of_q_and_p(multiples: Callable[[Array, int], Array], phase: Array) -> Arrays:
        return multiples(phase, _FINE), multiples(_FINE * phase, -(-number // _FINE))

    return lax.platform_dependent(
        phase, cpu=partial(of_q_and_p, _by_powers), default=partial(of_q_and_p, _by_angles)
    )


def _by_powers(phase: Array, number: int) -> Array:
    """Return cos and sin of multiples of phases `(..., M)`, stacked to shape `(..., 2 number, M)`.

    On a CPU, computing powers by doubling is faster than computing cosines.
    """
    base = lax.complex(xp.cos(phase), xp.sin(phase))[..., None, :]
    powers = xp.ones_like(base)
    while powers.shape[-2] < number:
        powers, base = xp.concatenate([powers, powers * base], -2), base * base
    powers = powers[..., :number, :]
    return xp.concatenate([powers.real, powers.imag], -2)


def _by_angles(phase: Array, number: int) -> Array:
    """Return the same values as `_by_powers`, but pass over the memory only once and not once per
    power.
    """
    angles = np.arange(number, dtype=phase.dtype)[:, None] * phase[..., None, :]
    return xp.concatenate([xp.cos(angles), xp.sin(angles)], -2)


def spectra(phi: Array) -> Arrays:
    """Return the Fourier coefficients of a cdf (without its linear part) and of a density.

    `phi` is the characteristic function at the N frequencies `2 pi n / window`, of shape
    `(..., N)`.
    """
    n = np.arange(phi.shape[-1])
    density = xp.conj(phi) * xp.where(n > 0, 2, 0).astype(phi.dtype)
    return density * (-1j / (2 * np.pi * np.maximum(n, 1))).astype(phi.dtype), density


def harmonics(phase: Array, mass: Array, number: int) -> Array:
    """Return `sum_m mass_m exp(i n phase_m)` for all n < number."""
    return lax.platform_dependent(
        phase,
        mass,
        tpu=partial(_harmonics, number=number),
        default=partial(_harmonics_by_products, number=number),
    )


def _harmonics_by_products(phase: Array, mass: Array, number: int) -> Array:
    of_q, of_p = _rotations(phase, number)
    products = matmul(of_p, xp.swapaxes(of_q * mass[..., None, :], -1, -2))
    rows = number // _FINE
    re = products[..., :rows, :_FINE] - products[..., rows:, _FINE:]
    im = products[..., :rows, _FINE:] + products[..., rows:, :_FINE]
    return lax.complex(re, im).reshape((*products.shape[:-2], number))


def _harmonics(phase: Array, mass: Array, number: int) -> Array:
    """Compute each harmonic by itself, in one kernel; a TPU multiplies small matrices slowly."""
    # Without the barrier, cos and sin of phases that several masses share would be written.
    phase, mass = lax.optimization_barrier(tuple(xp.broadcast_arrays(phase, mass)))
    cos, sin = _cos_and_sin(phase, number)
    weights = mass[..., None, :]
    return lax.complex((cos * weights).sum(-1), (sin * weights).sum(-1))


def _cos_and_sin(phase: Array, number: int) -> Arrays:
    """Return cos and sin of multiples of phases `(..., M)`, of shape `(..., number, M)`.

    They are computed from Taylor series of half the angle. JAX's cos needs 180 instructions on a
    TPU, because it is exact for angles of any size.
    """
    turns = np.arange(number, dtype=phase.dtype)[:, None] * (phase / (2 * np.pi))[..., None, :]
    half = np.pi * (turns - xp.round(turns))
    terms = 7 if phase.dtype == np.float32 else 12

    def taylor(first: int) -> Array:
        value = xp.zeros_like(half)
        for j in reversed(range(first, first + 2 * terms, 2)):
            value = 1 / math.factorial(j) - half**2 * value
        return value

    cos, sin = taylor(0), half * taylor(1)
    return 1 - 2 * sin**2, 2 * sin * cos


def series(coefficients: Arrays, phase: Array) -> list[Array]:
    """Return the real part of `sum_n c_n exp(i n phase)` for two arrays c of shape `(..., N)`."""
    return lax.platform_dependent(coefficients, phase, tpu=_series, default=_series_by_products)


def _series_by_products(coefficients: Arrays, phase: Array) -> list[Array]:
    of_q, of_p = _rotations(phase, coefficients[0].shape[-1])
    values = []
    for c in coefficients:
        of_groups = c.reshape((*c.shape[:-1], -1, _FINE))
        re, im = of_groups.real, of_groups.imag
        to_re, to_im = xp.concatenate([re, -im], -1), xp.concatenate([-im, -re], -1)
        values.append((matmul(xp.concatenate([to_re, to_im], -2), of_q) * of_p).sum(-2))
    return values


def _series(coefficients: Arrays, phase: Array) -> list[Array]:
    cos, sin = _cos_and_sin(phase, coefficients[0].shape[-1])
    return [(c.real[..., None] * cos - c.imag[..., None] * sin).sum(-2) for c in coefficients]
