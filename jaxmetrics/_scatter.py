"""Count class ids on the device, with the fastest method of each platform.

CPUs scatter ones. On a GPU, additions to few cells collide, and on a TPU they are sequential
(https://github.com/openxla/xla/issues/12982). So a GPU compares each example with each cell if
cells are few, and a TPU multiplies two one-hot matrices, which are never materialized: the memory
traffic of both is about twice the size of the labels.
"""

from __future__ import annotations

import math
from functools import partial

from jaxmetrics._compilation import compiled
from jaxmetrics._jax import jax, jnp
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import INT32_MAX, are_valid

__all__: list[str] = []


# With at most this many cells, an accelerator compares every example with every cell.
FEW_CELLS = 512
# With more cells, a scatter is faster than the product on a TPU.
_CELLS_OF_PRODUCTS = 2**20

# Examples in a chunk of `_count_in_chunks`, whose indices then stay in the cache of a CPU.
CHUNK_SIZE = 2**16


def iota(shape: tuple[int, ...], dimension: int) -> Array:
    return jax.lax.broadcasted_iota(jnp.int32, shape, dimension)


@compiled
def valid_ids(ids: Array, *, size: int) -> Array:
    """Convert class ids to int32, -1 for those outside of [0, size)."""
    return xp.where(are_valid(ids, size), ids.astype(xp.int32), -1)


def count_ids(batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array) -> Array:
    """Count into a table `(batch, *sizes)`; ids and keep are `(1 or batch, n)`."""
    cells, in_cache = math.prod(sizes), max(1, CHUNK_SIZE // max(1, batch))
    at_once = partial(_count_in_chunks, batch, sizes, keep.shape[-1])
    by_comparison = partial(_count_by_comparison, batch, sizes)
    by_product = partial(_count_by_product, batch, sizes)
    methods = {
        "cpu": partial(_count_in_chunks, batch, sizes, in_cache),
        "tpu": by_product if cells <= _CELLS_OF_PRODUCTS else at_once,
        "default": by_comparison if cells <= FEW_CELLS else at_once,
    }
    return jax.lax.platform_dependent(ids, keep, **methods)


def _count_by_comparison(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """Compare the cell of each example with all cells, in one pass over the labels."""
    is_cell = _one_hot(cell_numbers(ids, sizes, keep), math.prod(sizes))
    table = is_cell.sum(-2, dtype=jnp.int32).reshape((-1, *sizes))
    return jnp.broadcast_to(table, (batch, *sizes))


def _count_by_product(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """Multiply the one-hot matrices of the last axis and of all others, without materializing
    them.
    """
    *others, last = sizes
    # The ids themselves, if they are those of one axis: a pass for their numbers would be written.
    first = ids[0] if len(others) == 1 else cell_numbers(ids[:-1], tuple(others), keep)
    rows = _one_hot(first, math.prod(others)) & keep[..., None]
    columns = _one_hot(ids[-1], last)
    rows, columns = (
        jnp.broadcast_to(x, (batch, *x.shape[1:])).astype(jnp.int8) for x in (rows, columns)
    )
    over_examples = (((1,), (1,)), ((0,), (0,)))
    table = jax.lax.dot_general(rows, columns, over_examples, preferred_element_type=jnp.int32)
    return table.reshape((batch, *sizes))


def _one_hot(ids: Array, size: int) -> Array:
    """Return `(batch, n, size)`; False for an id that is out of range."""
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(jnp.int32)
    return wide[..., None] == iota((1, 1, size), 2).astype(wide.dtype)


def _count_in_chunks(
    batch: int, sizes: tuple[int, ...], length: int, ids: tuple[Array, ...], keep: Array
) -> Array:
    """Scatter ones in a loop over chunks of examples.

    XLA's CPU backend writes the scatter's indices and ones to memory first. In chunks they stay in
    the cache, so counting ten million labels takes little longer than reading them (2.5 times
    faster than without chunks).
    """
    n = keep.shape[-1]
    length = min(n, length)

    def add_chunk(i: Array | int, table: Array) -> Array:
        # The last chunk overlaps the one before: count its new part only.
        start = jnp.minimum(i * length, n - length)
        is_new = start + iota((1, length), 1) >= i * length
        kept, *chunk = (
            jax.lax.dynamic_slice_in_dim(x, start, length, axis=1) for x in (keep, *ids)
        )
        cell = cell_numbers(tuple(chunk), sizes, kept & is_new)
        return add_at(table, cell, jnp.ones((), jnp.int32))

    # The first chunk is counted before the loop, so that the table varies over devices in the same
    # way as the ids.
    table = add_chunk(0, jnp.zeros((batch, math.prod(sizes)), jnp.int32))
    if length < n:
        table = jax.lax.fori_loop(1, -(-n // length), add_chunk, table)
    return table.reshape((batch, *sizes))


def cell_numbers(ids: tuple[Array, ...], sizes: tuple[int, ...], keep: Array) -> Array:
    """Return the cell number of each example in the flattened table of its batch entry.

    It is past the end for examples not to `keep`, and for ids out of range.
    """
    cell = jnp.zeros_like(keep, jnp.int32)
    for x, size in zip(ids, sizes, strict=True):
        keep = keep & are_valid(x, size)
        cell = cell * size + x.astype(jnp.int32)
    return jnp.where(keep, cell, math.prod(sizes))


def in_all_tables(cell: Array, batch: int, size: int) -> Array:
    """Convert cell numbers `(1 or batch, n)` within tables to numbers over all batch entries."""
    return jnp.where(cell < size, iota((batch, 1), 0) * size + cell, batch * size)


def add_at(table: Array, cell: Array, values: Array) -> Array:
    """Add `values` to tables `(batch, cells, *window)` in the cells `(1 or batch, n)`.

    A cell past the end drops its value.
    """
    batch, size, *window = table.shape
    # One fused index is 1.7 times faster than two, as long as it fits in int32.
    if batch * size > INT32_MAX:
        return table.at[iota((batch, 1), 0), cell].add(values, mode="drop")
    index = in_all_tables(cell, batch, size)
    flat = table.reshape((batch * size, *window)).at[index].add(values, mode="drop")
    return flat.reshape(table.shape)
