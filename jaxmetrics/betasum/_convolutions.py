"""The law of a sum of betas: the k-fold convolution by FFT, on a fixed number of points placed for each matrix.

The error, as measured against `shared` quadratures and by doubling every size (x64; float32 in brackets):

1. One class. In the angle theta (see `_betas`) Gauss-Legendre nodes give the characteristic function phi_i(w) of each class to
   1e-14 (1e-6) at every frequency of the grid, for 0 to 1e9 examples. The j-th widest class is at most 1/sqrt(j) as wide as the
   sum, so it needs that much fewer nodes for its phase.
2. The window. The sum is sub-gamma (Skorski 2023): `P(S - mean > t) <= exp(-t^2 / (2 (v + c t / 3)))`, v the variance,
   c the largest third-moment ratio, so it is laid where this is above e^-36 (e^-17), within [0, k]; aliasing < 5e-16 (9e-8).
3. The cut. prod phi_i, inverted by FFT, lacks the frequencies above the N-th: an error of about |phi(w_N)| / 7 or less. Soft
   sums decay like Gaussians and N = 32 (24) is enough; a perfect class (density jump, decay 1/w) or Jeffreys' prior (1/sqrt w)
   may need the second grid, N = 192 (96), used where |phi(w_N)| > 1e-9 (1e-6), or the third, N = 768 (x64, 4 to 11 classes).
4. What even that does not resolve, |phi(w_N)| > 1e-8 (2e-5), has few classes or one class far wider than the rest. There the
   two widest classes are added by quadrature between the corners of the density, in the order of their width, to the
   convolution of the others. For k = 2 and 3 no convolution is left; 1e-7 (4e-6) is the worst seen.
5. Between grid points stands a quintic: 1e-9 (1e-7) at worst, for the longest tails.

Brodersen, Ong, Stephan and Buhmann (2010), The balanced accuracy and its posterior distribution, ICPR. Carrillo, Brodersen and
Castellanos (2014), Probabilistic performance evaluation for multiclass classification using the posterior balanced accuracy,
ROBOT 2013. Skorski (2023), Bernstein-type bounds for beta distribution, Modern Stochastics 10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics import _betas
from jaxmetrics._betas import Bell
from jaxmetrics.betasum import _laws
from jaxmetrics.betasum._laws import Law

__all__: list[str] = []


class _Settings(NamedTuple):
    """What is spent on each matrix; the module's docstring says why it is enough."""

    frequencies: tuple[int, ...]  # of the first, second and third grid
    unresolved: tuple[float, float]  # values of |phi(w_N)| above which the first and the second are not enough
    nodes: int  # per class, and more per frequency for wide classes
    nodes_per_frequency: float
    steps: int  # per panel of the table
    nodes_of_sum: int  # of the quadrature that adds a class, per panel of the others


def _settings(dtype: np.dtype) -> _Settings:
    if dtype == np.float64:
        return _Settings((32, 192, 768), (1e-9, 1e-8), 30, 1.7, 192, 48)
    return _Settings((24, 96), (1e-6, 2e-5), 16, 1.6, 64, 24)


class _Built(NamedTuple):
    """The law of a sum of classes, relative to the sum of their modes, and what it takes to add one more."""

    law: Law
    tail: jax.Array  # |phi| at the highest frequencies
    corner: jax.Array  # the power that smooths the ends of the density; 0 where they are soft


def _sorted_bells(parameters: jax.Array) -> tuple[jax.Array, jax.Array, Bell]:
    """alpha, beta and the bells of each class `(..., k)`, widest first."""
    a, b = parameters[..., 0], parameters[..., 1]
    order = jnp.argsort(-lax.stop_gradient(variance_of(a, b)), axis=-1)
    a, b = jnp.take_along_axis(a, order, -1), jnp.take_along_axis(b, order, -1)
    return a, b, _betas.bell(a, b)


def variance_of(a: jax.Array, b: jax.Array) -> jax.Array:
    n = a + b
    return (a / n) * (b / n) / (n + 1)


def _class(bells: Bell, index: int | slice) -> Bell:
    return Bell(*(v[..., index] for v in bells))


def _expand(bells: Bell, axes: int = 1) -> Bell:
    return Bell(*(v[(..., *(None,) * axes)] for v in bells))


def _window(a: jax.Array, b: jax.Array, bells: Bell) -> tuple[jax.Array, jax.Array]:
    """The ends of the sum relative to the sum of the modes, by Skorski's bound."""
    tau = _betas.drop(a.dtype)
    n = a + b
    variance = variance_of(a, b).sum(-1)
    ratio = 2 * (b - a) / (n * (n + 2))
    left, right = bells.p > 0, bells.q > 0
    inner = (b - a) / (2 * n * jnp.where(left & right, n - 1, 1))  # mean - mode, without their difference
    outer = jnp.where(left, -b / n, jnp.where(right, a / n, (a - b) / (2 * n)))
    mean = jnp.where(left & right, inner, outer).sum(-1)

    def reach(ratio: jax.Array) -> jax.Array:
        c = jnp.maximum(ratio.max(-1), 0) * tau / 3
        return c + jnp.sqrt(c**2 + 2 * variance * tau)

    low = jnp.maximum(mean - reach(-ratio), -(bells.sin**2).sum(-1))
    return low, jnp.minimum(mean + reach(ratio), (bells.cos**2).sum(-1))


def _characteristic(bells: Bell, step: jax.Array, frequencies: int, settings: _Settings) -> jax.Array:
    """`E exp(i n step (S - sum of modes))` for n < frequencies, `(..., N)`: one product of two small tables per class."""
    inner = 8 if frequencies > 24 else 4
    factors = []
    for ranks in _groups_of_ranks(bells.p.shape[-1]):
        group = _class(bells, ranks)
        m = math.ceil(settings.nodes + settings.nodes_per_frequency * frequencies / math.sqrt(ranks.start + 1))
        d, weights = _betas.nodes(group, -group.left, group.right, m, (group.left_power, group.right_power))
        weights = weights / weights.sum(-1, keepdims=True)
        phase = lax.stop_gradient(_betas.offset(_expand(group), d)) * step[..., None, None]
        powers = _powers(lax.complex(jnp.cos(phase), jnp.sin(phase)), inner + 1)
        fine = jnp.stack([weights * z for z in powers[:-1]], -2)
        coarse = jnp.stack(_powers(powers[-1], frequencies // inner), -2)
        factor = jnp.einsum("...jm,...nm->...jn", coarse, fine, precision=lax.Precision.HIGHEST)
        factors.append(factor.reshape(*factor.shape[:-2], frequencies))
    product = jnp.concatenate(factors, -2)
    while (k := product.shape[-2]) > 1:
        half = k // 2
        product = jnp.concatenate([product[..., :half, :] * product[..., half : 2 * half, :], product[..., 2 * half :, :]], -2)
    return product[..., 0, :]


def _groups_of_ranks(k: int) -> list[slice]:
    groups, start, size = [], 0, 1
    while start < k:
        groups.append(slice(start, min(start + size, k)))
        start, size = start + size, 5 * size
    return groups


def _powers(z: jax.Array, count: int) -> list[jax.Array]:
    """1, z, z^2, ..., each from two about half as high."""
    powers = [jnp.ones_like(z), z]
    while len(powers) < count:
        powers.append(powers[len(powers) // 2] * powers[len(powers) - len(powers) // 2])
    return powers


def _by_fourier(a: jax.Array, b: jax.Array, bells: Bell, frequencies: int, settings: _Settings) -> _Built:
    low, high = lax.stop_gradient(_window(a, b, bells))
    width = high - low
    phi = _characteristic(bells, 2 * jnp.pi / width, frequencies, settings)
    n = jnp.arange(frequencies, dtype=a.dtype)
    spectrum = jnp.conj(phi) * jnp.exp(2j * jnp.pi * n * (low / width)[..., None]).astype(phi.dtype)
    rate = jnp.asarray(2j * jnp.pi * n, phi.dtype)
    steps = _laws.PANELS * settings.steps
    finer = -(-2 * frequencies // steps)

    def series(spectrum: jax.Array) -> jax.Array:
        values = jnp.fft.irfft(spectrum, n=steps * finer, axis=-1)[..., ::finer] * (steps * finer)
        return jnp.concatenate([values, values[..., :1]], -1)

    ripple = series(jnp.where(n == 0, 0, spectrum / jnp.where(n == 0, 1, rate)))
    cdf = jnp.linspace(0, 1, steps + 1, dtype=a.dtype) + ripple - ripple[..., :1]
    law = _laws.linear_law(low, high, cdf, series(spectrum), series(spectrum * rate))
    tail = jnp.abs(lax.stop_gradient(phi[..., -(frequencies // 8) :])).max(-1)
    return _Built(law, tail, jnp.zeros_like(tail))


def _of_one(bell: Bell, settings: _Settings) -> _Built:
    """One class: masses between neighbouring knots by Gauss-Legendre."""
    low, high = (lax.stop_gradient(_betas.offset(bell, d)) for d in (-bell.left, bell.right))
    hard_left, hard_right = _betas.hard_ends(bell)
    edges = low[..., None] + (high - low)[..., None] * jnp.linspace(0, 1, _laws.PANELS + 1, dtype=low.dtype)
    edges = edges.at[..., -1].set(high)
    left_power, right_power = jnp.minimum(4 * bell.left_power, 10), jnp.minimum(4 * bell.right_power, 10)
    power = jnp.stack([jnp.where(hard_left, left_power, 1), jnp.ones_like(low), jnp.where(hard_right, right_power, 1)], -1)
    panels = _laws.Panels(edges, jnp.broadcast_to(1e3 * (high - low)[..., None, None], (*low.shape, _laws.PANELS, 2)), power)
    below, above, stretch = _laws.knots(panels, settings.steps)
    wide = _expand(bell, 2)
    x0, one_minus_x1 = _betas.ends(bell)
    x = (bell.sin[..., None] ** 2 + edges[..., :-1]).at[..., 0].set(x0)[..., None] + below
    one_minus_x = (bell.cos[..., None] ** 2 - edges[..., 1:]).at[..., -1].set(one_minus_x1)[..., None] + above
    d = _betas.angle_of(wide, _laws.positions(panels, below, above), x, one_minus_x)
    d = d.at[..., 0, 0].set(-bell.left).at[..., -1, -1].set(bell.right)
    interval = np.arange(_laws.PANELS * settings.steps).reshape(_laws.PANELS, -1)
    powers = jnp.where(interval == 0, wide.left_power, 1), jnp.where(interval == interval.max(), wide.right_power, 1)
    mass = _betas.nodes(wide, d[..., :-1], d[..., 1:], 6, powers)[1].sum(-1)
    total = mass.sum((-2, -1), keepdims=True)
    reached = jnp.cumsum((mass / total).reshape(*low.shape, -1), -1).reshape(mass.shape)
    start = jnp.concatenate([jnp.zeros_like(reached[..., :1, -1:]), reached[..., :-1, -1:]], -2)
    density = jnp.exp(_betas.log_density(wide, d, wide.below + d, wide.above - d)) / total
    slope = density * stretch / jnp.maximum(2 * jnp.sqrt(jnp.maximum(x * one_minus_x, 0)), jnp.finfo(x.dtype).tiny)
    law = _laws.graded_law(panels, jnp.concatenate([start, reached], -1), slope)
    corner = jnp.where(hard_left | hard_right, 2 * jnp.maximum(bell.left_power, bell.right_power), 0)
    return _Built(law, jnp.zeros_like(low), corner)


def _add_class(bell: Bell, rest: _Built, settings: _Settings, *, whole: bool) -> _Built:
    """A + R, A one class: `P(A + R <= z) = P(A <= z - r1) + integral of f_A(t) F_R(z - t) dt`, R in [r0, r1].

    The panels end where an end of A meets an end of R, so that within each the integrals are smooth; between them, where A
    ends hard, the knots are drawn to within the width of R. `whole`: R is smooth throughout, not only within its panels.
    """
    one = _of_one(bell, settings).law
    a0, a1 = one.edges[..., 0], one.edges[..., -1]
    r0, r1 = rest.law.edges[..., 0], rest.law.edges[..., -1]
    edges = jnp.stack([a0 + r0, jnp.minimum(a1 + r0, a0 + r1), jnp.maximum(a1 + r0, a0 + r1), a1 + r1], -1)
    narrow = jnp.minimum(a1 - a0, r1 - r0)[..., None] / 2
    hard = jnp.stack(_betas.hard_ends(bell), -1)
    even = 1e3 * (edges[..., 3:] - edges[..., :1]) * jnp.ones_like(hard, narrow.dtype)
    corner = jnp.where(hard.any(-1), jnp.maximum(rest.corner, 2 * jnp.maximum(bell.left_power, bell.right_power)), 0)
    corner = jnp.where(rest.corner > 0, corner, 0)
    power = jnp.maximum(jnp.minimum(corner, 10), 1)[..., None]
    outer = jnp.where(hard, (a1 - a0)[..., None] / 5, even)
    softness = jnp.stack(
        [even.at[..., 0].set(outer[..., 0]), jnp.where(hard, narrow, even), even.at[..., 1].set(outer[..., 1])], -2
    )
    panels = _laws.Panels(edges, softness, jnp.broadcast_to(power, softness.shape[:-1]))
    below, above, stretch = _laws.knots(panels, settings.steps)
    z = _laws.positions(panels, below, above).reshape(*a0.shape, -1)

    # Nodes along R. The distances to the ends of A are sums of what is positive, so that its poles there lose no digits.
    cuts = rest.law.edges[..., None, :: _laws.PANELS if whole else 1]
    from_top, from_bottom = (z - a1[..., None])[..., None], (z - a0[..., None])[..., None]
    start, stop = (jnp.clip(end, cuts[..., :-1], cuts[..., 1:]) for end in (from_top, from_bottom))
    spacing = jnp.where(hard.any(-1), jnp.maximum(power[..., 0], 2), 1)[..., None, None]
    h, remaining, weights = (v * jnp.ones_like(start)[..., None] for v in _betas.spaced_nodes(settings.nodes_of_sum, spacing))
    length = jnp.maximum(stop - start, 0)[..., None]
    to_top = jnp.maximum(start - from_top, 0)[..., None] + length * h
    to_bottom = jnp.maximum(from_bottom - stop, 0)[..., None] + length * remaining
    bell_, low, high = _expand(bell, 3), a0[..., None, None, None], a1[..., None, None, None]
    x, one_minus_x = (
        v[..., None, None, None] + to_end for v, to_end in zip(_betas.ends(bell), (to_bottom, to_top), strict=True)
    )
    density = _betas.density(bell_, jnp.where(to_bottom < to_top, low + to_bottom, high - to_top), x, one_minus_x)
    everything = _betas.whole(bell, 2 * settings.nodes_of_sum)
    weights = weights * lax.stop_gradient(length) * density / everything[..., None, None, None]
    y = lax.stop_gradient(start[..., None] + length * h).reshape(*a0.shape, -1)

    def averaged(values: jax.Array) -> jax.Array:
        return (weights * values.reshape(weights.shape)).sum((-2, -1))

    cdf = _laws.cdf(one, z - r1[..., None]) + averaged(_laws.cdf(rest.law, y))
    slope = averaged(_laws.pdf(rest.law, y)).reshape(stretch.shape) * stretch
    return _Built(_laws.graded_law(panels, cdf.reshape(stretch.shape), slope), rest.tail, corner)


def _by_quadrature(a: jax.Array, b: jax.Array, bells: Bell, settings: _Settings) -> _Built:
    """The two widest classes added to the others, which are convolved on a grid of their own."""
    k = a.shape[-1]
    if k == 2:
        return _add_class(_class(bells, 0), _of_one(_class(bells, 1), settings), settings, whole=True)
    others = slice(2, k)
    built = (
        _of_one(_class(bells, 2), settings)
        if k == 3
        else _by_fourier(a[..., others], b[..., others], _class(bells, others), settings.frequencies[1], settings)
    )
    widest = Bell(*(jnp.stack([v[..., 1], v[..., 0]]) for v in bells))
    return lax.scan(lambda rest, bell: (_add_class(bell, rest, settings, whole=False), None), built, widest)[0]


@partial(jax.jit, static_argnames="chunk")
def _first(parameters: jax.Array, *, chunk: int) -> _Built:
    """The first grid, for `chunk` matrices at a time."""
    settings = _settings(parameters.dtype)
    chunks = parameters.reshape(-1, chunk, *parameters.shape[1:])
    built = lax.map(lambda p: _by_fourier(*_sorted_bells(p), settings.frequencies[0], settings), chunks)
    return jax.tree.map(lambda v: v.reshape(-1, *v.shape[2:]), built)


_GROUP = 8


@partial(jax.jit, static_argnames="method")
def _improve(built: _Built, parameters: jax.Array, needed: jax.Array, *, method: Callable[..., _Built]) -> _Built:
    """`method` for the matrices that need it, where it resolves more; no work for groups of which none does."""
    order = jnp.argsort(~needed)

    def one_group(arguments: tuple[_Built, jax.Array, jax.Array]) -> _Built:
        built, parameters, needed = arguments

        def better() -> _Built:
            new = method(*_sorted_bells(jnp.where(needed[:, None, None], parameters, 1)), _settings(parameters.dtype))
            taken = needed & (new.tail < built.tail)
            return jax.tree.map(lambda a, b: jnp.where(taken.reshape(-1, *(1,) * (a.ndim - 1)), a, b), new, built)

        return lax.cond(needed.any(), better, lambda: built)

    group = min(_GROUP, len(order))
    groups = jax.tree.map(lambda v: v[order].reshape(-1, group, *v.shape[1:]), (built, parameters, needed))
    back = jnp.argsort(order)
    return jax.tree.map(lambda v: v.reshape(-1, *v.shape[2:])[back], lax.map(one_group, groups))


def _second(a: jax.Array, b: jax.Array, bells: Bell, settings: _Settings) -> _Built:
    return _by_fourier(a, b, bells, settings.frequencies[1], settings)


def _third(a: jax.Array, b: jax.Array, bells: Bell, settings: _Settings) -> _Built:
    return _by_fourier(a, b, bells, settings.frequencies[2], settings)


def _methods(settings: _Settings, k: int) -> list[tuple[Callable[..., _Built], float]]:
    """What follows on the first grid, and the tail above which it does."""
    methods = [(_second, settings.unresolved[0])]
    if len(settings.frequencies) > 2 and 3 < k < 12:  # more classes of one width decay fast enough for the second grid
        methods.append((_third, settings.unresolved[1]))
    return [*methods, (_by_quadrature, settings.unresolved[1])]


def law_of_sum(parameters: jax.Array) -> Law:
    """The law of the sum of k betas relative to the sum of their modes; chunk by chunk, to bound the memory.

    Outside of a trace the slower methods are neither compiled nor run unless a matrix needs them.
    """
    batch, k = parameters.shape[:-2], parameters.shape[-2]
    size = math.prod(batch)
    flat = parameters.reshape(size, k, 2)
    chunk = max(_GROUP, (1024 if jax.default_backend() == "cpu" else 2**17) // k // _GROUP * _GROUP)
    chunk = max(1, size) if size <= _GROUP else min(chunk, -(-size // _GROUP) * _GROUP)
    padding = max(chunk, size) - size if size <= chunk else -size % chunk
    flat = jnp.concatenate([flat, jnp.ones((padding, k, 2), flat.dtype)])
    built = _first(flat, chunk=chunk)
    for method, limit in _methods(_settings(flat.dtype), k):
        needed = (built.tail > limit) & (jnp.arange(len(flat)) < size)
        if not isinstance(needed, jax.core.Tracer) and not needed.any():
            break
        built = _improve(built, flat, needed, method=method)
    return jax.tree.map(lambda v: v[:size].reshape(*batch, *v.shape[1:]), built.law)
