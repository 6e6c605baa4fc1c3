"""Integer counts on the device: class ids scattered into a table."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp

from jaxmetrics._namespaces import Array
from jaxmetrics._validation import (
    INT32_MAX,
)

__all__: list[str] = []


def iota(shape: tuple[int, ...], dimension: int) -> Array:
    return jax.lax.broadcasted_iota(jnp.int32, shape, dimension)


def count_ids(batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array) -> Array:
    """Integer table `(batch, *sizes)`; ids and keep are `(1 or batch, n)`."""
    methods = {
        "cpu": partial(_count_in_chunks, batch, sizes),
        "default": partial(_count_at_once, batch, sizes),
    }
    return jax.lax.platform_dependent(ids, keep, **methods)


def _count_at_once(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """By one scatter of ones."""
    one = jnp.ones((), jnp.int32)
    return add_at(jnp.zeros((batch, *sizes), jnp.int32), (iota((batch, 1), 0), *ids), keep, one)


def _count_in_chunks(
    batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array
) -> Array:
    """In a loop over chunks of examples.

    XLA's CPU backend writes the scatter's indices and ones to memory first. In chunks they stay in
    the cache, which makes ten million labels cost little more than reading them (2.5 times faster
    than at once).
    """
    n = keep.shape[-1]
    length = min(n, max(1, 2**16 // max(1, batch)))

    def add_chunk(i: Array | int, table: Array) -> Array:
        # The last chunk overlaps the one before: count its new part only.
        start = jnp.minimum(i * length, n - length)
        new = start + iota((1, length), 1) >= i * length
        chunk = [jax.lax.dynamic_slice_in_dim(x, start, length, axis=1) for x in (keep, *ids)]
        return add_at(
            table, (iota((batch, 1), 0), *chunk[1:]), chunk[0] & new, jnp.ones((), jnp.int32)
        )

    # The first chunk stands before the loop, so that the loop starts from a table that varies over
    # devices as the ids do.
    table = add_chunk(0, jnp.zeros((batch, *sizes), jnp.int32))
    return jax.lax.fori_loop(1, -(-n // length), add_chunk, table) if length < n else table


def add_at(table: Array, ids: tuple[Array, ...], keep: Array, values: Array) -> Array:
    """`table` with `values` added in the cells `ids` (one per leading axis of the table), where
    `keep` and in range.
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
    return (
        table.reshape(sizes + window).at[tuple(index)].add(values, mode="drop").reshape(table.shape)
    )


def raveled(ids: tuple[Array, ...], sizes: tuple[int, ...], keep: Array) -> Array:
    """The number of each example's cell in the flattened table; past the end where not `keep` or an
    id is out of range.
    """
    cell = jnp.zeros_like(keep, jnp.int32)
    for x, size in zip(ids, sizes, strict=True):
        keep = keep & in_range(x, size)
        cell = cell * size + x.astype(jnp.int32)
    return jnp.where(keep, cell, math.prod(sizes))


def in_range(ids: Array, size: int) -> Array:
    # Int8 cannot be compared with 200.
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(jnp.int32)
    return (wide >= 0) & (wide < size)
