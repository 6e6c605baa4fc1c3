"""Draw replicates of a table, and evaluate functions of them in bounded memory.

Each replicate has its own key, and all tables use the same random bits, so that results depend
neither on the other tables of the batch nor on the chunk size. For NumPy arrays, the NumPy
Generator is reset to the same state for each table of a batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._arguments.keys import HostKey, Key
from jaxmetrics._numerics import samplers
from jaxmetrics._places.chunks import LANES, map_chunks
from jaxmetrics._places.compilation import spend
from jaxmetrics._places.jax_imports import jax, jnp, trees
from jaxmetrics._places.namespaces import Array, is_jax, xp

__all__: list[str] = []

Function: TypeAlias = Callable[[Array], Any]


class Sampler(NamedTuple):
    """Two functions that draw N replicates `(N, K, W)` of a table `(K, W)`, by JAX and by NumPy.

    Attributes:
        on_device: a function of JAX keys `(N,)` and a table.
        on_host: a function of a Generator, the number N and a table.
    """

    on_device: Callable[[jax.Array, jax.Array], jax.Array]
    on_host: Callable[[np.random.Generator, int, np.ndarray], np.ndarray]


def _multinomial(keys: jax.Array, table: jax.Array) -> jax.Array:
    """Draw as many examples from a table as the table has, with replacement."""
    rows, words = table.sum(-1), samplers.random_words(keys, table.shape)
    # The last cell of each row, and the last row, get the remaining examples.
    drawn_rows = samplers.multinomial(words[:, :-1, -1], _as_int(rows.sum()), rows)
    return samplers.multinomial(words[..., :-1], drawn_rows, table)


def _stratified_multinomial(keys: jax.Array, table: jax.Array) -> jax.Array:
    k, width = table.shape
    words = samplers.random_words(keys, (k, width - 1))
    return samplers.multinomial(words, _as_int(table.sum(-1)), table)


def _halved(keys: jax.Array, cells: jax.Array) -> jax.Array:
    """Draw rows one after another. Otherwise, XLA draws them again for each use of the result."""
    words = jnp.moveaxis(samplers.random_words(keys, cells.shape), 1, 0)
    one = jnp.ones(())
    rows = jax.lax.map(
        lambda row: samplers.binomial(row[0], row[1][None], one, one), (words, _as_int(cells))
    )
    return jnp.moveaxis(rows, 0, 1)


def _dirichlet(keys: jax.Array, concentration: jax.Array) -> jax.Array:
    words = samplers.random_words(keys, (concentration.size,))
    flat = samplers.dirichlet(words, concentration.ravel())
    return flat.reshape((-1, *concentration.shape))


def _as_int(x: jax.Array) -> jax.Array:
    return jnp.round(x).astype(jnp.int32)


def _multinomial_on_host(rng: np.random.Generator, size: int, table: np.ndarray) -> np.ndarray:
    """Draw as many examples from a table as the table has, with replacement.

    Only cells that contain examples are drawn. If there are few examples, they are drawn one by
    one, because a random integer is faster than a binomial variable.
    """
    flat = table.ravel()
    cells = np.flatnonzero(flat)
    drawn = np.zeros((size, flat.size))
    total = round(flat.sum()) if np.isfinite(flat).all() else 0
    if total == 0:
        return drawn.reshape((size, *table.shape)) * flat.sum()
    if total < 4 * len(cells) and (flat == np.round(flat)).all():
        of_examples = np.repeat(np.arange(len(cells)), flat[cells].astype(np.int64))
        picked = of_examples[rng.integers(total, size=(size, total), dtype=np.int32)]
        picked += np.arange(size)[:, None] * len(cells)
        drawn[:, cells] = np.bincount(picked.ravel(), minlength=size * len(cells)).reshape(size, -1)
    else:
        drawn[:, cells] = rng.multinomial(total, flat[cells] / flat.sum(), size)
    return drawn.reshape((size, *table.shape))


def _dirichlet_on_host(
    rng: np.random.Generator, size: int, concentration: np.ndarray
) -> np.ndarray:
    """Draw probabilities that sum to 1 over the table; NaN if the table is not finite.

    For a < 1, a gamma variable is drawn as the logarithm of Gamma(a + 1) U^(1/a), because gamma
    variables with small a underflow.
    """
    if not np.isfinite(concentration).all():
        return np.full((size, *concentration.shape), np.nan)
    small = concentration < 1
    gamma = rng.standard_gamma(
        np.where(small, concentration + 1, concentration), (size, *concentration.shape)
    )
    if small.any():
        u = 1 - rng.random(gamma.shape)
        exponent = np.where(small, np.maximum(concentration, 1e-300), 1)
        log_factor = np.where(small, np.log(u) / exponent, 0)
        gamma = gamma * np.exp(log_factor - log_factor.max((-2, -1), keepdims=True))
    return gamma / gamma.sum((-2, -1), keepdims=True)


def _by_rows(sample: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a sampler that draws each row separately."""

    def call(rng: np.random.Generator, size: int, table: np.ndarray) -> np.ndarray:
        return np.stack([sample(rng, size, row[None])[:, 0] for row in table], 1)

    return call


# As many examples as the table has are drawn with replacement, or as many as each row has.
multinomial = Sampler(_multinomial, _multinomial_on_host)
stratified_multinomial = Sampler(_stratified_multinomial, _by_rows(_multinomial_on_host))
# Each cell has a Poisson distribution. This is the same as drawing each example Poisson(1) times.
poisson = Sampler(
    lambda keys, table: samplers.poisson(samplers.random_words(keys, table.shape), table),
    lambda rng, size, table: rng.poisson(table, (size, *table.shape)).astype(float),
)
# Probabilities that sum to 1 over the table, or in each row.
dirichlet = Sampler(_dirichlet, _dirichlet_on_host)
dirichlet_rows = Sampler(
    lambda keys, table: samplers.dirichlet(samplers.random_words(keys, table.shape), table),
    _by_rows(_dirichlet_on_host),
)
# An integer in [0, size) for each of the sizes `(m,)`. NumPy takes three times as long for several
# bounds as for a single one.
places = Sampler(
    lambda keys, sizes: samplers.indices(samplers.random_words(keys, sizes.shape), sizes),
    lambda rng, size, sizes: rng.integers(
        sizes[0] if (sizes == sizes[0]).all() else sizes, size=(size, len(sizes))
    ),
)
# Each example is kept with probability 1/2.
halved = Sampler(
    _halved,
    lambda rng, size, cells: rng.binomial(cells.astype(np.int64), 0.5, (size, *cells.shape)).astype(
        float
    ),
)


def evaluate(
    sampler: Sampler,
    function: Function,
    key: Key,
    table: Array,
    *,
    size: int,
    numbers: int,
) -> Any:
    """Evaluate a function of replicates `(N, K, W)` of a table, in chunks that bound the memory.

    For JAX arrays, the function must also accept a single replicate, because `vmap` is used.
    """
    at_once = max(1, LANES // max(numbers, table.size))
    if isinstance(key, HostKey):
        rng = key.generator()
        sizes = [min(at_once, size - begin) for begin in range(0, size, at_once)]
        blocks = [function(sampler.on_host(rng, number, table)) for number in sizes]
        return trees.map(lambda *x: np.concatenate(x), *blocks)

    def of_keys(keys: jax.Array) -> Any:
        drawn = sampler.on_device(keys, table).astype(table.dtype)
        return jax.vmap(function)(drawn)

    return map_chunks(of_keys, at_once, jax.random.split(key, size))


def map_tables(function: Function, tables: Array, numbers: int = 1, *, table_ndim: int = 2) -> Any:
    """Evaluate a function of each table of a batch, `(..., *table)`.

    If the tables are JAX arrays, as many tables are evaluated at once as fit into memory.
    """
    batch, shape = tables.shape[:-table_ndim], tables.shape[tables.ndim - table_ndim :]
    if not batch:
        return function(tables)
    flat = tables.reshape((-1, *shape))
    if is_jax(tables):
        values = map_chunks(jax.vmap(function), max(1, LANES // numbers), flat)
    else:
        spend(max(len(flat) - 1, 0))
        # If the batch is empty, the shapes of the results are computed from a table of ones.
        each = [function(table) for table in (flat if len(flat) else np.ones((1, *shape)))]
        values = trees.map(lambda *x: np.stack(x)[: len(flat)], *each)
    return trees.map(lambda v: v.reshape((*batch, *v.shape[1:])), values)


def of_tables(
    sampler: Sampler,
    key: Key,
    tables: Array,
    size: int,
    *,
    prior: Array | float = 0.0,
    scale: Callable[[Array], Array] | None = None,
) -> Array:
    """Draw replicates `(S, ..., K, W)` of the tables of a batch.

    The prior is added to each table, and the replicates are multiplied by `scale(table)`. They are
    NaN if the table contains a negative number.
    """

    def of_table(table: Array) -> Array:
        factor = 1 if scale is None else scale(table)
        draws = evaluate(
            sampler, lambda drawn: drawn * factor, key, table + prior, size=size, numbers=table.size
        )
        return xp.where((table >= 0).all(), draws, xp.nan)

    draws = map_tables(of_table, tables, size * math.prod(tables.shape[-2:]))
    return xp.moveaxis(draws, tables.ndim - 2, 0)
