"""Count class ids on the device, by what its platform does best.

A scatter of ones is the method of CPUs. On a GPU additions to few cells collide, and on a TPU they
are made one after another (https://github.com/openxla/xla/issues/12982). So a GPU compares each
example with each of few cells, and a TPU multiplies two one-hot matrices; both read the labels once
or twice and write nothing else.
"""

from __future__ import annotations

import math
from functools import partial

from jaxmetrics._jax import jax, jnp
from jaxmetrics._namespaces import Array
from jaxmetrics._validation import INT32_MAX

__all__: list[str] = []


# Of so few cells an accelerator compares every example with each.
FEW_CELLS = 512
# Of so many cells the product on a TPU takes as long as a scatter.
_CELLS_OF_PRODUCTS = 2**20

# Examples in a chunk of `_count_in_chunks`, whose indices then stay in the cache of a CPU.
CHUNK_SIZE = 2**16


def iota(shape: tuple[int, ...], dimension: int) -> Array:
    return jax.lax.broadcasted_iota(jnp.int32, shape, dimension)


def batch_entries(batch: int) -> Array:
    """Number the batch entries, `(batch, 1)`."""
    return iota((batch, 1), 0)


def count_ids(batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array) -> Array:
    """Count into a table `(batch, *sizes)`; ids and keep are `(1 or batch, n)`."""
    cells = math.prod(sizes)
    at_once = partial(_count_at_once, batch, sizes)
    methods = {
        "cpu": partial(_count_in_chunks, batch, sizes),
        "tpu": partial(_count_by_product, batch, sizes) if cells <= _CELLS_OF_PRODUCTS else at_once,
        "default": partial(_count_by_comparison, batch, sizes) if cells <= FEW_CELLS else at_once,
    }
    return jax.lax.platform_dependent(ids, keep, **methods)


def _count_by_comparison(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """Compare the cell of each example with all cells, in one pass over the labels."""
    cell = raveled(ids, sizes, keep)
    is_cell = cell[..., None] == iota((1, 1, math.prod(sizes)), 2)
    table = is_cell.sum(-2, dtype=jnp.int32).reshape((-1, *sizes))
    return jnp.broadcast_to(table, (batch, *sizes))


def _count_by_product(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """Multiply one-hot matrices of the last axis and of all others, without holding them."""
    *others, last = sizes
    rows = _one_hot(raveled(ids[:-1], tuple(others), keep), math.prod(others))
    columns = _one_hot(ids[-1], last)
    both = (jnp.broadcast_to(x, (batch, *x.shape[1:])) for x in (rows, columns))
    over_examples = (((1,), (1,)), ((0,), (0,)))
    table = jax.lax.dot_general(*both, over_examples, preferred_element_type=jnp.int32)
    return table.reshape((batch, *sizes))


def _one_hot(ids: Array, size: int) -> Array:
    """Return `(batch, n, size)`; zeros for an id that is out of range."""
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(jnp.int32)
    return (wide[..., None] == iota((1, 1, size), 2)).astype(jnp.int8)


def _count_at_once(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """Scatter ones."""
    one = jnp.ones((), jnp.int32)
    return add_at(jnp.zeros((batch, *sizes), jnp.int32), (batch_entries(batch), *ids), keep, one)


def _count_in_chunks(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """Scatter ones in a loop over chunks of examples.

    XLA's CPU backend writes the scatter's indices and ones to memory first. In chunks they stay in
    the cache, which makes ten million labels cost little more than reading them (2.5 times faster
    than at once).
    """
    n = keep.shape[-1]
    length = min(n, max(1, CHUNK_SIZE // max(1, batch)))

    def add_chunk(i: Array | int, table: Array) -> Array:
        # The last chunk overlaps the one before: count its new part only.
        start = jnp.minimum(i * length, n - length)
        is_new = start + iota((1, length), 1) >= i * length
        kept, *chunk = (
            jax.lax.dynamic_slice_in_dim(x, start, length, axis=1) for x in (keep, *ids)
        )
        one = jnp.ones((), jnp.int32)
        return add_at(table, (batch_entries(batch), *chunk), kept & is_new, one)

    # The first chunk stands before the loop, so that the loop starts from a table that varies over
    # devices as the ids do.
    table = add_chunk(0, jnp.zeros((batch, *sizes), jnp.int32))
    return jax.lax.fori_loop(1, -(-n // length), add_chunk, table) if length < n else table


def add_at(table: Array, ids: tuple[Array, ...], keep: Array, values: Array) -> Array:
    """Add `values` to a table in the cells `ids`, one for each of its leading axes.

    Only where `keep`, and where all ids are in range.
    """
    sizes, window = table.shape[: len(ids)], table.shape[len(ids) :]
    # One fused index is 1.7 times faster than several, while int32 can hold it.
    if math.prod(sizes) <= INT32_MAX:
        index = [raveled(ids, sizes, keep)]
        sizes = (math.prod(sizes),)
    else:
        index = [raveled((x,), (size,), keep) for x, size in zip(ids, sizes, strict=True)]
        index = jnp.broadcast_arrays(*index)
    values = jnp.broadcast_to(values, index[0].shape + window)
    flat = table.reshape(sizes + window).at[tuple(index)].add(values, mode="drop")
    return flat.reshape(table.shape)


def raveled(ids: tuple[Array, ...], sizes: tuple[int, ...], keep: Array) -> Array:
    """Number each example's cell in the flattened table.

    Past its end where not `keep`, or where an id is out of range.
    """
    cell = jnp.zeros_like(keep, jnp.int32)
    for x, size in zip(ids, sizes, strict=True):
        keep = keep & in_range(x, size)
        cell = cell * size + x.astype(jnp.int32)
    return jnp.where(keep, cell, math.prod(sizes))


def in_range(ids: Array, size: int) -> Array:
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(jnp.int32)  # a size of 200 is no int8
    return (wide >= 0) & (wide < size)
