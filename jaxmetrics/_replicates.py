"""Replicates of confusion matrices, drawn from them or from their posterior, and functions of them, in bounded memory.

Matrices of many classes are drawn without the columns of each row that are empty (`columns`), so that 1000 classes with 50,000
examples are some fifty columns of 1000 rows, not a million cells. Each replicate has a key of its own, from which it draws the
same words for every matrix: neither the batch nor the size of the chunks changes a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics import _samplers
from jaxmetrics._arrays import ArrayLike, as_float, check_option, divide

__all__: list[str] = []

_LANES = 2**22  # numbers per array that a chunk may hold: 16 MB in float32


def by_used_columns(function: Callable[[jax.Array, jax.Array | None], Any], counts: jax.Array, *, axis: int = 0) -> Any:
    """`function(counts, columns)` of counts `(..., K, K)`, with the batch axes of its results put at `axis`.

    Matrices of many classes are taken one by one, with the columns of each, so that all draw what they would alone. Under a
    trace, where no cell is known to be empty, columns are None, as for few classes.
    """
    *batch, k, m = counts.shape
    if isinstance(counts, jax.core.Tracer) or k * m <= 4096 or counts.size == 0:
        return function(counts, None)
    results = [function(matrix, used_columns(matrix)) for matrix in counts.reshape(-1, k, m)]
    return jax.tree.map(lambda *x: jnp.stack(x, axis).reshape(*x[0].shape[:axis], *batch, *x[0].shape[axis:]), *results)


def used_columns(matrix: jax.Array) -> jax.Array | None:
    """The columns of each row that are not empty, `(K, W)`, W a power of two, M where there is none; None stands for all."""
    used = np.asarray(matrix != 0)
    m = used.shape[-1]
    width = 2 ** math.ceil(math.log2(max(int(used.sum(-1).max()), 1)))
    return None if width >= m else jnp.asarray(np.sort(np.where(used, np.arange(m), m), -1)[:, :width], jnp.int32)


def take_columns(counts: jax.Array, columns: jax.Array | None) -> jax.Array:
    """`(K, W)` of `(K, M)`; all of `(..., K, M)` where columns is None."""
    if columns is None:
        return counts
    m = counts.shape[-1]
    return jnp.where(columns < m, jnp.take_along_axis(counts, jnp.minimum(columns, m - 1), -1), 0)


def whole(values: jax.Array, columns: jax.Array | None, width: int) -> jax.Array:
    """`(..., K, width)` again."""
    if columns is None:
        return values
    k = values.shape[-2]
    empty = jnp.zeros((*values.shape[:-1], width), values.dtype)
    return empty.at[..., np.arange(k)[:, None], columns].add(values, mode="drop")


Draw = Callable[[jax.Array, jax.Array], jax.Array]
"""From keys `(R,)` and matrices `(B, K, W)` to replicates `(R, B, K, W)`."""


def multinomial(keys: jax.Array, matrices: jax.Array) -> jax.Array:
    """As many examples as the matrix has, drawn from it with replacement."""
    rows = matrices.sum(-1)
    words = _samplers.random_words(keys, rows.shape[-1] * matrices.shape[-1] - 1)[:, None]
    of_rows, of_cells = jnp.split(words, [rows.shape[-1] - 1], -1)
    return _split_rows(of_cells, _samplers.multinomial(of_rows, _as_int(rows.sum(-1)), rows), matrices)


def stratified_multinomial(keys: jax.Array, matrices: jax.Array) -> jax.Array:
    """As many examples of each row as the matrix has."""
    k, width = matrices.shape[-2:]
    words = _samplers.random_words(keys, k * (width - 1))[:, None]
    return _split_rows(words, jnp.broadcast_to(_as_int(matrices.sum(-1)), (len(keys), *matrices.shape[:-1])), matrices)


def _split_rows(words: jax.Array, rows: jax.Array, matrices: jax.Array) -> jax.Array:
    k, width = matrices.shape[-2:]
    return _samplers.multinomial(words.reshape(*words.shape[:-1], k, width - 1), rows, matrices)


def swapped(keys: jax.Array, cells: jax.Array) -> jax.Array:
    """Pairs of predictions `(B, K, K K)` in which each example keeps or swaps its two predictions, as a coin falls."""
    k = cells.shape[-2]
    cube = cells.reshape(-1, k, k, k)
    a, b = np.triu_indices(k, 1)
    both = cube[..., a, b] + cube[..., b, a]
    words = _samplers.random_words(keys, both.shape[-1] * k).reshape(-1, 1, k, both.shape[-1])
    one = jnp.ones((), cube.dtype)
    kept = _samplers.binomial(words, _as_int(both), one, one).astype(cube.dtype)
    drawn = jnp.broadcast_to(cube, (len(keys), *cube.shape)).at[..., a, b].set(kept).at[..., b, a].set(both - kept)
    return drawn.reshape(len(keys), *cells.shape)


def halved(keys: jax.Array, cells: jax.Array) -> jax.Array:
    """Half of the examples, each as a coin falls."""
    words = _samplers.random_words(keys, math.prod(cells.shape[-2:])).reshape(-1, 1, *cells.shape[-2:])
    one = jnp.ones((), cells.dtype)
    return _samplers.binomial(words, _as_int(cells), one, one)


def poisson(keys: jax.Array, matrices: jax.Array) -> jax.Array:
    """Each cell by itself, with its count as the mean: each example counted Poisson(1) times."""
    words = _samplers.random_words(keys, math.prod(matrices.shape[-2:]))
    return _samplers.poisson(words.reshape(-1, 1, *matrices.shape[-2:]), matrices)


def bayesian(keys: jax.Array, matrices: jax.Array) -> jax.Array:
    """Each example weighted by its share of Dirichlet(1, ..., 1), times the number of examples."""
    return dirichlet(keys, matrices) * matrices.sum((-2, -1), keepdims=True)


def stratified_bayesian(keys: jax.Array, matrices: jax.Array) -> jax.Array:
    """The same in each row."""
    return _dirichlet_rows(keys, matrices) * matrices.sum(-1, keepdims=True)


def dirichlet(keys: jax.Array, concentration: jax.Array) -> jax.Array:
    """Cell probabilities, 1 in all."""
    shape = concentration.shape[-2:]
    words = _samplers.random_words(keys, math.prod(shape))[:, None]
    flat = _samplers.dirichlet(words, concentration.reshape(*concentration.shape[:-2], -1))
    return flat.reshape(*flat.shape[:-1], *shape)


def _dirichlet_rows(keys: jax.Array, concentration: jax.Array) -> jax.Array:
    """Probabilities, 1 in each row."""
    words = _samplers.random_words(keys, math.prod(concentration.shape[-2:]))
    return _samplers.dirichlet(words.reshape(-1, 1, *concentration.shape[-2:]), concentration)


def _as_int(x: jax.Array) -> jax.Array:
    return jnp.round(x).astype(jnp.int32)


def posterior(keys: jax.Array, counts: jax.Array, *, prior: jax.Array, prevalence: jax.Array | None) -> jax.Array:
    """Cell probabilities from Dirichlet posteriors, prior `(K, 2)`: of all cells, or of rows whose share is the prevalence.

    A prevalence of NaN stands for that of the counts.
    """
    concentration = counts + cell_prior(prior)
    if prevalence is None:
        return dirichlet(keys, concentration)
    observed = divide(counts.sum(-1), counts.sum((-2, -1))[..., None])
    return _dirichlet_rows(keys, concentration) * jnp.where(jnp.isnan(prevalence), observed, prevalence)[..., None]


def cell_prior(prior: jax.Array) -> jax.Array:
    """From `(K, 2)` to cells `(K, K)`: alpha for the right cell of each class, beta spread over the wrong ones."""
    k = len(prior)
    return jnp.where(jnp.eye(k, dtype=bool), prior[:, :1], prior[:, 1:] / max(k - 1, 1))


def as_prevalence(prevalence: ArrayLike, k: int) -> jax.Array | None:
    """The argument for `posterior` from a user's "inferred", "fixed" or array."""
    if isinstance(prevalence, str):
        check_option(prevalence, "prevalence", ("inferred", "fixed"))
        return None if prevalence == "inferred" else jnp.full(k, jnp.nan)
    shares = as_float(prevalence, "prevalence")
    if shares.shape != (k,):
        raise ValueError(f'prevalence must be "inferred", "fixed" or an array (K,) = ({k},), got shape {shares.shape}.')
    if not isinstance(shares, jax.core.Tracer) and not ((shares >= 0).all() and abs(shares.sum() - 1) < 1e-3):
        raise ValueError(f"prevalence must hold shares >= 0 that sum to 1, got {prevalence!r}.")
    return shares


def evaluate(
    draw: Draw, function: Callable[[jax.Array], Any], key: jax.Array, counts: jax.Array, *, size: int, numbers: int
) -> Any:
    """`function` of one replicate `(K, W)`, for `size` replicates of each of `counts` `(..., K, W)`: a pytree of `(S, ..., *)`.

    `numbers`: how many the function makes on its way.
    """
    *batch_shape, k, width = counts.shape
    matrices, keys = counts.reshape(-1, k, width), jax.random.split(key, size)
    batch = len(matrices)
    in_block = max(min(batch, _LANES // (k * width)), 1)
    chunks = math.ceil(size * in_block * k * width / _LANES)
    in_chunk = math.ceil(size / max(chunks, 1))
    chunks = math.ceil(size / in_chunk)
    chunked_keys = keys[np.minimum(np.arange(chunks * in_chunk), size - 1)].reshape(chunks, in_chunk)

    def of_chunk(keys: jax.Array, block: jax.Array) -> Any:
        drawn = draw(keys, block).astype(block.dtype).reshape(-1, k, width)
        values = each(function, drawn, numbers)
        return jax.tree.map(lambda v: v.reshape(in_chunk, in_block, *v.shape[1:]), values)

    def of_block(block: jax.Array) -> Any:
        values = lax.map(lambda keys: of_chunk(keys, block), chunked_keys)
        return jax.tree.map(lambda v: v.reshape(chunks * in_chunk, *v.shape[2:])[:size], values)

    blocks = math.ceil(batch / in_block)
    if blocks == 1:
        values = of_block(matrices)
    else:
        padded = matrices[np.minimum(np.arange(blocks * in_block), batch - 1)].reshape(blocks, in_block, k, width)
        values = jax.tree.map(lambda v: jnp.moveaxis(v, 0, 1), lax.map(of_block, padded))
        values = jax.tree.map(lambda v: v.reshape(size, blocks * in_block, *v.shape[3:])[:, :batch], values)
    return jax.tree.map(lambda v: v.reshape(size, *batch_shape, *v.shape[2:]), values)


def each(function: Callable[[jax.Array], Any], matrices: jax.Array, numbers: int) -> Any:
    """`function` of each of `(N, ...)`, as many at once as have room when each makes so many numbers."""
    if len(matrices) * numbers <= _LANES:
        return jax.vmap(function)(matrices)
    return lax.map(function, matrices, batch_size=max(_LANES // numbers, 1))
