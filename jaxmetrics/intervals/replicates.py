"""Draw replicates of tables of counts, and evaluate functions of them in bounded memory.

Replicates are drawn from the tables or from their posterior. On the device, tables of many classes
are drawn without the columns of each row that are empty (`columns`), so that 1000 classes with
50,000 examples are some fifty columns of 1000 rows, not a million cells. Each replicate has a key
of its own, from which it draws the same words for every table: neither the batch nor the size of
the chunks changes a number. On the host NumPy's Generator draws, started anew for each table of a
batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._chunks import map_chunks
from jaxmetrics._keys import HostKey, Key
from jaxmetrics._namespaces import Array, is_jax, is_known, lax, on_device, xp
from jaxmetrics._validation import ArrayLike, as_float, check_option
from jaxmetrics.intervals import samplers

__all__: list[str] = []

LANES = 2**22  # numbers per array that a chunk may hold: 16 MB in float32

Function: TypeAlias = Callable[[Array], Any]


class Sampler(NamedTuple):
    """Draw replicates of tables, on the device and on the host.

    Attributes:
        on_device: from keys `(R,)` and tables `(B, K, W)` to `(R, B, K, W)`.
        on_host: from a Generator, a number R and one table `(K, W)` to `(R, K, W)`.
    """

    on_device: Callable[[jax.Array, jax.Array], jax.Array]
    on_host: Callable[[np.random.Generator, int, np.ndarray], np.ndarray]


def by_used_columns(
    function: Callable[[Array, Array | None], Any], counts: Array, *, axis: int = 0
) -> Any:
    """Evaluate `function(counts, columns)` of counts `(..., K, K)`.

    Matrices of many classes are taken one by one, with the columns of each, so that each draws the
    same as alone; the batch axes of the results are put at `axis`. Under a trace, where no cell is
    known to be empty, columns are None, as for few classes and on the host.
    """
    *batch, k, m = counts.shape
    if not is_jax(counts) or not is_known(counts) or k * m <= 4096 or counts.size == 0:
        return function(counts, None)
    results = [function(matrix, used_columns(matrix)) for matrix in counts.reshape(-1, k, m)]
    return jax.tree.map(
        lambda *x: jnp.stack(x, axis).reshape((*x[0].shape[:axis], *batch, *x[0].shape[axis:])),
        *results,
    )


def used_columns(matrix: Array) -> Array | None:
    """Return the columns of each row of `(K, M)` that are not empty, `(K, W)`, W a power of two.

    Shorter rows are filled with M. None stands for all columns.
    """
    used = np.asarray(matrix != 0)
    m = used.shape[-1]
    width = 2 ** math.ceil(math.log2(max(int(used.sum(-1).max()), 1)))
    if width >= m:
        return None
    return jnp.asarray(np.sort(np.where(used, np.arange(m), m), -1)[:, :width], jnp.int32)


def packed(counts: Array, columns: Array | None) -> Array:
    """Gather the columns, `(K, W)` of `(K, M)`; all of `(..., K, M)` where columns is None."""
    if columns is None:
        return counts
    m = counts.shape[-1]
    return jnp.where(columns < m, jnp.take_along_axis(counts, jnp.minimum(columns, m - 1), -1), 0)


def unpacked(values: Array, columns: Array | None, width: int) -> Array:
    """Scatter packed columns back, `(..., K, W)` to `(..., K, width)`."""
    if columns is None:
        return values
    k = values.shape[-2]
    empty = jnp.zeros((*values.shape[:-1], width), values.dtype)
    return empty.at[..., np.arange(k)[:, None], columns].add(values, mode="drop")


# On the device: from keys `(R,)` and tables `(B, K, W)`.


def _multinomial(keys: Array, matrices: Array) -> Array:
    """Draw as many examples as the matrix has from it, with replacement."""
    rows = matrices.sum(-1)
    words = samplers.random_words(keys, rows.shape[-1] * matrices.shape[-1] - 1)[:, None]
    words_of_rows, words_of_cells = jnp.split(words, [rows.shape[-1] - 1], -1)
    drawn_rows = samplers.multinomial(words_of_rows, _as_int(rows.sum(-1)), rows)
    return _split_rows(words_of_cells, drawn_rows, matrices)


def _stratified_multinomial(keys: Array, matrices: Array) -> Array:
    """Draw as many examples of each row as the matrix has."""
    k, width = matrices.shape[-2:]
    words = samplers.random_words(keys, k * (width - 1))[:, None]
    rows = jnp.broadcast_to(_as_int(matrices.sum(-1)), (len(keys), *matrices.shape[:-1]))
    return _split_rows(words, rows, matrices)


def _split_rows(words: Array, rows: Array, matrices: Array) -> Array:
    """Draw the cells of each row, given the number of its examples."""
    k, width = matrices.shape[-2:]
    return samplers.multinomial(words.reshape((*words.shape[:-1], k, width - 1)), rows, matrices)


def _swapped(keys: Array, cells: Array) -> Array:
    """Swap the two predictions of each example with probability 1/2, in pairs `(B, K, K K)`."""
    k = cells.shape[-2]
    cube = cells.reshape(-1, k, k, k)
    a, b = np.triu_indices(k, 1)
    both = cube[..., a, b] + cube[..., b, a]
    words = samplers.random_words(keys, both.shape[-1] * k).reshape(-1, 1, k, both.shape[-1])
    kept = samplers.heads(words, _as_int(both)).astype(cube.dtype)
    drawn = jnp.broadcast_to(cube, (len(keys), *cube.shape))
    drawn = drawn.at[..., a, b].set(kept)
    drawn = drawn.at[..., b, a].set(both - kept)
    return drawn.reshape((len(keys), *cells.shape))


def _halved(keys: Array, cells: Array) -> Array:
    """Draw each example with probability 1/2; row by row, for a short program."""
    words = samplers.random_words(keys, math.prod(cells.shape[-2:]))
    words = words.reshape((-1, 1, *cells.shape[-2:]))
    rows = jax.lax.map(
        lambda row: samplers.heads(*row),
        (jnp.moveaxis(words, -2, 0), jnp.moveaxis(_as_int(cells), -2, 0)),
    )
    return jnp.moveaxis(rows, 0, -2)


def _poisson(keys: Array, matrices: Array) -> Array:
    """Draw each cell from Poisson(its count), so that each example counts Poisson(1) times."""
    words = samplers.random_words(keys, math.prod(matrices.shape[-2:]))
    return samplers.poisson(words.reshape((-1, 1, *matrices.shape[-2:])), matrices)


def _bayesian(keys: Array, matrices: Array) -> Array:
    """Weight each example by its share of Dirichlet(1, ..., 1), times the number of examples."""
    return _dirichlet(keys, matrices) * matrices.sum((-2, -1), keepdims=True)


def _stratified_bayesian(keys: Array, matrices: Array) -> Array:
    """Weight the examples of each row as `_bayesian` does those of the matrix."""
    return _dirichlet_rows(keys, matrices) * matrices.sum(-1, keepdims=True)


def _dirichlet(keys: Array, concentration: Array) -> Array:
    """Draw cell probabilities that sum to 1 over the matrix."""
    shape = concentration.shape[-2:]
    words = samplers.random_words(keys, math.prod(shape))[:, None]
    flat = samplers.dirichlet(words, concentration.reshape((*concentration.shape[:-2], -1)))
    return flat.reshape((*flat.shape[:-1], *shape))


def _dirichlet_rows(keys: Array, concentration: Array) -> Array:
    """Draw probabilities that sum to 1 in each row."""
    words = samplers.random_words(keys, math.prod(concentration.shape[-2:]))
    return samplers.dirichlet(words.reshape((-1, 1, *concentration.shape[-2:])), concentration)


def _as_int(x: Array) -> Array:
    return jnp.round(x).astype(jnp.int32)


def _posterior(keys: Array, counts: Array, *, prior: Array, prevalence: Array | None) -> Array:
    """Draw cell probabilities from their Dirichlet posteriors, prior `(K, 2)`.

    Without a prevalence all cells have one posterior; else each row has one, and the prevalence is
    its share. A prevalence of NaN stands for that of the counts.
    """
    concentration = counts + cell_prior(prior)
    if prevalence is None:
        return _dirichlet(keys, concentration)
    observed = divide(counts.sum(-1), counts.sum((-2, -1))[..., None])
    shares = jnp.where(jnp.isnan(prevalence), observed, prevalence)
    return _dirichlet_rows(keys, concentration) * shares[..., None]


# On the host: from a Generator, how many, and one table.


def _multinomial_on_host(rng: np.random.Generator, size: int, table: np.ndarray) -> np.ndarray:
    """Draw as many examples as the table has from it, with replacement.

    Only cells that hold examples are drawn. Few examples are drawn one by one: a random integer is
    faster than a binomial.
    """
    flat = table.ravel()
    cells = np.flatnonzero(flat)
    drawn = np.zeros((size, flat.size))
    total = int(flat.sum())
    if total == 0:
        return drawn.reshape((size, *table.shape))
    if total < 4 * len(cells):
        of_examples = np.repeat(np.arange(len(cells)), flat[cells].astype(np.int64))
        picked = of_examples[rng.integers(total, size=(size, total), dtype=np.int32)]
        picked += np.arange(size)[:, None] * len(cells)
        drawn[:, cells] = np.bincount(picked.ravel(), minlength=size * len(cells)).reshape(size, -1)
    else:
        drawn[:, cells] = rng.multinomial(total, flat[cells] / total, size)
    return drawn.reshape((size, *table.shape))


def _by_rows(sample: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a sampler that draws each row by itself."""

    def call(rng: np.random.Generator, size: int, table: np.ndarray) -> np.ndarray:
        return np.stack([sample(rng, size, row[None])[:, 0] for row in table], 1)

    return call


def _swapped_on_host(rng: np.random.Generator, size: int, cells: np.ndarray) -> np.ndarray:
    k = len(cells)
    cube = cells.reshape(k, k, k)
    a, b = np.triu_indices(k, 1)
    both = cube[:, a, b] + cube[:, b, a]
    drawn = np.broadcast_to(cube, (size, *cube.shape)).copy()
    drawn[:, :, a, b] = rng.binomial(both.astype(np.int64), 0.5, (size, *both.shape))
    drawn[:, :, b, a] = both - drawn[:, :, a, b]
    return drawn.reshape((size, *cells.shape))


def _dirichlet_on_host(
    rng: np.random.Generator, size: int, concentration: np.ndarray
) -> np.ndarray:
    """Draw probabilities that sum to 1 over the table.

    For a < 1 as Gamma(a + 1) U^(1/a), in logarithms, since the gammas of a small a underflow.
    """
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


_dirichlet_rows_on_host = _by_rows(_dirichlet_on_host)


def _if_finite(sample: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Return a sampler that draws NaN for a table that is not finite."""

    def call(rng: np.random.Generator, size: int, table: np.ndarray) -> np.ndarray:
        if np.isfinite(table).all():
            return sample(rng, size, table)
        return np.full((size, *table.shape), np.nan)

    return call


def _posterior_on_host(
    rng: np.random.Generator,
    size: int,
    counts: np.ndarray,
    *,
    prior: np.ndarray,
    prevalence: np.ndarray | None,
) -> np.ndarray:
    concentration = counts + cell_prior(prior)
    if prevalence is None:
        return _dirichlet_on_host(rng, size, concentration)
    observed = divide(counts.sum(-1), counts.sum((-2, -1)))
    shares = np.where(np.isnan(prevalence), observed, prevalence)
    return _dirichlet_rows_on_host(rng, size, concentration) * shares[:, None]


multinomial = Sampler(_multinomial, _multinomial_on_host)
stratified_multinomial = Sampler(_stratified_multinomial, _by_rows(_multinomial_on_host))
poisson = Sampler(
    _poisson, lambda rng, size, table: rng.poisson(table, (size, *table.shape)).astype(float)
)
bayesian = Sampler(
    _bayesian, lambda rng, size, table: _dirichlet_on_host(rng, size, table) * table.sum()
)
stratified_bayesian = Sampler(
    _stratified_bayesian,
    lambda rng, size, table: (
        _dirichlet_rows_on_host(rng, size, table) * table.sum(-1, keepdims=True)
    ),
)
swapped = Sampler(_swapped, _swapped_on_host)
halved = Sampler(
    _halved,
    lambda rng, size, cells: rng.binomial(cells.astype(np.int64), 0.5, (size, *cells.shape)).astype(
        float
    ),
)


def posterior(prior: Array, prevalence: Array | None) -> Sampler:
    """Return a sampler of cell probabilities; see `_posterior`."""
    options = {"prior": prior, "prevalence": prevalence}
    return Sampler(
        partial(_posterior, **options), _if_finite(partial(_posterior_on_host, **options))
    )


def dirichlet(prior: Array) -> Sampler:
    """Return a sampler of cell probabilities with a prior `(K, W)` for each cell."""
    return Sampler(
        lambda keys, tables: _dirichlet(keys, tables + prior),
        _if_finite(lambda rng, size, table: _dirichlet_on_host(rng, size, table + prior)),
    )


def cell_prior(prior: Array) -> Array:
    """Turn a prior `(K, 2)` into one of cells `(K, K)`.

    The right cell of each class has alpha; its wrong ones share beta equally.
    """
    k = len(prior)
    return xp.where(xp.eye(k, dtype=bool), prior[:, :1], prior[:, 1:] / max(k - 1, 1))


def as_prevalence(prevalence: ArrayLike, k: int) -> Array | None:
    """Return the argument for `posterior` from a user's "inferred", "fixed" or array."""
    if isinstance(prevalence, str):
        check_option(prevalence, "prevalence", ("inferred", "fixed"))
        return None if prevalence == "inferred" else xp.full(k, xp.nan)
    shares = as_float(prevalence, "prevalence")
    if shares.shape != (k,):
        raise ValueError(
            f'prevalence must be "inferred", "fixed" or an array (K,) = ({k},), got shape'
            f" {shares.shape}."
        )
    if is_known(shares) and not ((shares >= 0).all() and abs(shares.sum() - 1) < 1e-3):
        raise ValueError(f"prevalence must hold shares >= 0 that sum to 1, got {prevalence!r}.")
    return shares


def evaluate(
    sampler: Sampler, function: Function, key: Key, counts: Array, *, size: int, numbers: int
) -> Any:
    """Evaluate a function of one table for replicates of each table of a batch.

    Args:
        sampler: how replicates are drawn.
        function: of one table `(K, W)`.
        key: of all replicates.
        counts: `(..., K, W)`.
        size: S, how many replicates of each table.
        numbers: how many numbers the function computes from one table, which bounds the memory.

    Returns:
        The pytree of the function, its arrays `(*)` as `(S, ..., *)`.
    """
    if isinstance(key, HostKey):
        return _evaluate_on_host(sampler, function, key, counts, size, numbers)
    return _evaluate_on_device(sampler, function, key, counts, size, numbers)


def _evaluate_on_device(
    sampler: Sampler, function: Function, key: jax.Array, counts: Array, size: int, numbers: int
) -> Any:
    *batch, k, width = counts.shape
    matrices = counts.reshape(-1, k, width)
    tables_at_once = max(1, min(len(matrices), LANES // (k * width)))
    # As few chunks of keys as fit, of about the same size.
    times = max(1, math.ceil(size * tables_at_once * k * width / LANES))
    keys_at_once = math.ceil(size / times)

    def of_keys(tables: jax.Array, keys: jax.Array) -> Any:
        drawn = sampler.on_device(keys, tables).astype(tables.dtype).reshape(-1, k, width)
        values = map_in_blocks(function, drawn, numbers)
        return jax.tree.map(lambda v: v.reshape((len(keys), len(tables), *v.shape[1:])), values)

    def of_tables(tables: jax.Array) -> Any:
        values = map_chunks(partial(of_keys, tables), keys_at_once, jax.random.split(key, size))
        return jax.tree.map(lambda v: jnp.moveaxis(v, 1, 0), values)

    values = map_chunks(of_tables, tables_at_once, matrices)
    return jax.tree.map(
        lambda v: jnp.moveaxis(v, 1, 0).reshape((size, *batch, *v.shape[2:])), values
    )


def _evaluate_on_host(
    sampler: Sampler, function: Function, key: HostKey, counts: np.ndarray, size: int, numbers: int
) -> Any:
    *batch_shape, k, width = counts.shape
    in_block = max(1, LANES // max(numbers, k * width))

    def of_table(table: np.ndarray) -> Any:
        rng = key.generator()
        sizes = [min(in_block, size - begin) for begin in range(0, size, in_block)]
        blocks = [
            map_in_blocks(function, sampler.on_host(rng, number, table), numbers)
            for number in sizes
        ]
        return jax.tree.map(lambda *x: np.concatenate(x), *blocks)

    tables = counts.reshape(-1, k, width)
    results = [of_table(table) for table in (tables if len(tables) else np.ones((1, k, width)))]
    return jax.tree.map(
        lambda *x: np.stack(x, 1)[:, : len(tables)].reshape(
            (len(x[0]), *batch_shape, *x[0].shape[1:])
        ),
        *results,
    )


def map_tables(function: Function, tables: Array, numbers: int, *, table_ndim: int = 2) -> Any:
    """Evaluate a function of each table `(K, W)` of a batch; `numbers` as for `evaluate`.

    Tables of clusters `(C, K, W)` have a `table_ndim` of 3.
    """
    batch, shape = tables.shape[:-table_ndim], tables.shape[-table_ndim:]
    values = map_in_blocks(function, tables.reshape((-1, *shape)), numbers)
    return jax.tree.map(lambda v: v.reshape((*batch, *v.shape[1:])), values)


def map_batch(function: Function, tables: Array, *, table_ndim: int) -> Any:
    """Evaluate a function of each table of a batch, one after the other."""
    batch, shape = tables.shape[:-table_ndim], tables.shape[-table_ndim:]
    values = lax.map(function, tables.reshape((-1, *shape)))
    return jax.tree.map(lambda v: v.reshape((*batch, *v.shape[1:])), values)


def map_in_blocks(function: Function, tables: Array, numbers: int) -> Any:
    """Evaluate a function of each of `(N, ...)`, as many at once as fit into `LANES` numbers."""
    if not on_device(tables):
        at_once = max(1, LANES // numbers)
        blocks = [
            _each_on_host(function, tables[i : i + at_once])
            for i in range(0, max(len(tables), 1), at_once)
        ]
        if len(blocks) == 1:
            return blocks[0]
        return jax.tree.map(lambda *x: np.concatenate(x), *blocks)
    if len(tables) * numbers <= LANES:
        return jax.vmap(function)(tables)
    return jax.lax.map(function, tables, batch_size=max(LANES // numbers, 1))


def _each_on_host(function: Function, tables: np.ndarray) -> Any:
    """Evaluate a function of all tables at once if it takes batches, else one by one.

    It does if it returns the same for some tables that it is given alone, among them those with the
    fewest and the most cells that are not 0.
    """
    if len(tables) == 0:
        single = function(np.zeros(tables.shape[1:]))
        return jax.tree.map(lambda x: np.zeros((0, *np.shape(x))), single)
    filled = np.count_nonzero(tables.reshape(len(tables), -1), -1)
    alone = {
        i: function(tables[i])
        for i in {0, len(tables) // 2, len(tables) - 1, int(filled.argmin()), int(filled.argmax())}
    }
    if len(alone) < len(tables):
        try:
            together = function(tables)
        except Exception:  # it is made for a single table
            together = None
        if _are_equal(together, alone, len(tables)):
            return jax.tree.map(np.asarray, together)
    values = (alone[i] if i in alone else function(table) for i, table in enumerate(tables))
    return jax.tree.map(lambda *x: np.stack(x), *values)


def _are_equal(together: Any, alone: dict[int, Any], size: int) -> bool:
    """Return whether a batch of `size` results holds those that were computed alone."""
    first = next(iter(alone.values()))
    if together is None or [jax.tree.structure(together)] != [jax.tree.structure(first)]:
        return False

    def matches(batch: Any, *single: Any) -> bool:
        return np.shape(batch) == (size, *np.shape(single[0])) and all(
            np.allclose(batch[i], x, rtol=1e-9, atol=1e-12, equal_nan=True)
            for i, x in zip(alone, single, strict=True)
        )

    return all(jax.tree.leaves(jax.tree.map(matches, together, *alone.values())))
