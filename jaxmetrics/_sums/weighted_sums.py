"""Sums of weights by cell in float32, which stay accurate for many examples."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from jaxmetrics._places.jax_imports import jax, jnp
from jaxmetrics._places.namespaces import Array, Arrays
from jaxmetrics._sums.scatter import count_ids, iota

__all__: list[str] = []


# Number of values that are added one after another: the error of 256 roundings in float32 is below
# 2e-5 of the sum.
SLOT_SIZE = 256
# If there are at most this many cells, an accelerator compares every value's cell with every cell.
_FEW_CELLS = 512
# Number of values of a chunk of `_sum_by_product`: they fit in the vector memory of a TPU.
_PRODUCT_SIZE = 2**20
_EXAMPLES_OF_PRODUCT = 128  # the side of a TPU's matrix unit


def sum_by_cell(cell: Array, values: Array, num_cells: int, most: int) -> Array:
    """Return the sum of the values `(n, *window)` of each cell, `(num_cells, *window)`.

    A value is dropped if its cell is `num_cells` or more. `most` is an upper bound of the number of
    values of a cell.

    If float32 values are added one after another, the sum drifts (ten million times 0.1 gives
    1,087,937), and a sum of ones stops at 2^24. Therefore, the values of a cell are distributed
    over slots of about SLOT_SIZE values, and then the slots are summed.
    """
    if most <= SLOT_SIZE:
        return _scatter_add(cell, values, num_cells)
    if num_cells <= _FEW_CELLS:
        return _sum_of_few_cells(cell, values, num_cells)
    return _sum_of_many_cells(cell, values, num_cells, most)


def _scatter_add(index: Array, values: Array, size: int) -> Array:
    return jnp.zeros((size, *values.shape[1:]), values.dtype).at[index].add(values, mode="drop")


def _sum_of_few_cells(cell: Array, values: Array, num_cells: int) -> Array:
    """Return the sums by lanes on a CPU, by products on a TPU, and by comparison elsewhere.

    A TPU multiplies matrices of floats only.
    """
    in_lanes, by_product, by_comparison = (
        partial(method, num_cells=num_cells)
        for method in (_sum_in_lanes, _sum_by_product, _sum_by_comparison)
    )
    if values.ndim > 1:  # compilers repeat the comparison for each number of the window
        return in_lanes(cell, values)

    @jax.custom_jvp  # otherwise each platform would keep the residuals of all platforms
    def summed(cell: Array, values: Array) -> Array:
        on_tpu = by_product if jnp.issubdtype(values.dtype, jnp.floating) else by_comparison
        return jax.lax.platform_dependent(
            cell, values, cpu=in_lanes, tpu=on_tpu, default=by_comparison
        )

    @summed.defjvp
    def _(primals: Arrays, tangents: Arrays) -> Arrays:
        return summed(*primals), in_lanes(primals[0], tangents[1])

    return summed(cell, values)


def _shortest(cell: Array, num_cells: int) -> Array:
    """Return cell numbers in 8 or 16 bits: compilers write them to memory before they use them."""
    return jnp.minimum(cell, num_cells).astype(np.min_scalar_type(num_cells))


def _sum_by_comparison(cell: Array, values: Array, num_cells: int) -> Array:
    """Return sums by comparing each value's cell with all cells, SLOT_SIZE values at a time."""
    numbers = _in_slots(_shortest(cell, num_cells), num_cells)[..., None]
    is_cell = numbers == iota((1, 1, num_cells), 2)
    sums = jnp.where(is_cell, _in_slots(values)[..., None], 0).sum(1, dtype=values.dtype)
    return _sum_in_slots(sums)


def _sum_by_product(cell: Array, values: Array, num_cells: int) -> Array:
    """Return sums by products of the one-hot matrices of the two digits of the cell numbers.

    The products of a chunk are summed as SLOT_SIZE values are elsewhere, and so are the chunks.
    """
    n, base = len(cell), math.isqrt(num_cells - 1) + 1
    length = min(_PRODUCT_SIZE, n + -n % _EXAMPLES_OF_PRODUCT)
    missing = max(0, length - n)
    cell = jnp.pad(_shortest(cell, num_cells), (0, missing), constant_values=num_cells)
    values = jnp.pad(values, (0, missing))

    def of_chunk(i: Array) -> Array:
        # The last chunk overlaps the previous chunk: only its new examples are added.
        start = jnp.minimum(i * length, n + missing - length)
        numbers, x = (jax.lax.dynamic_slice_in_dim(v, start, length) for v in (cell, values))
        is_new = start + iota(x.shape, 0) >= i * length
        numbers = jnp.where(is_new, numbers.astype(jnp.int32), num_cells)
        # Without this barrier, XLA would add all examples of the chunk one after another.
        return _sum_in_slots(jax.lax.optimization_barrier(_products(numbers, x, base)))

    sums = _sum_in_slots(jax.lax.map(of_chunk, jnp.arange(-(-n // length), dtype=jnp.int32)))
    finite, positive, negative = jnp.split(sums, 3, -1)
    total = finite + jnp.where(positive > 0, jnp.inf, 0) - jnp.where(negative > 0, jnp.inf, 0)
    return total.reshape(-1)[:num_cells]


def _products(cell: Array, values: Array, base: int) -> Array:
    """Return the products of _EXAMPLES_OF_PRODUCT examples each, `(products, base, 3 base)`.

    The three parts of the last axis are sums of finite values, and numbers of values +inf and -inf,
    because `0 * inf` would be NaN in all other cells. NaN counts as `inf - inf`.
    """
    high, low, x = (v.reshape((-1, _EXAMPLES_OF_PRODUCT, 1)) for v in (*divmod(cell, base), values))
    part, digit = np.divmod(np.arange(3 * base, dtype=np.int32), base)
    infinity = np.where(part == 1, np.inf, -np.inf).astype(x.dtype)
    is_infinite = (x == infinity) | jnp.isnan(x)
    amount = jnp.where(part == 0, jnp.where(jnp.isfinite(x), x, 0), is_infinite)
    rows, columns = (high == digit[:base]).astype(x.dtype), jnp.where(low == digit, amount, 0)
    return jnp.einsum("snh,snl->shl", rows, columns, precision="highest")


def _sum_in_slots(x: Array) -> Array:
    """Return the sum over the first axis, SLOT_SIZE numbers at a time."""
    while len(x) > 1:
        x = _in_slots(x).sum(1, dtype=x.dtype)
    return x[0]


def _in_slots(x: Array, padding: int = 0) -> Array:
    """Pad an array `(n, ...)` and reshape it to `(slots, SLOT_SIZE, ...)`."""
    missing = -len(x) % SLOT_SIZE
    padded = jnp.pad(x, [(0, missing), *((0, 0) for _ in x.shape[1:])], constant_values=padding)
    return padded.reshape((-1, SLOT_SIZE, *x.shape[1:]))


def _sum_in_lanes(cell: Array, values: Array, num_cells: int) -> Array:
    """Return sums by lanes of about SLOT_SIZE values, which are then added pairwise.

    Each lane has one slot per cell. For at most _FEW_CELLS cells, there are at most twice as many
    slots as values.
    """
    n = len(cell)
    num_lanes = 1 << (n // SLOT_SIZE).bit_length()
    lane = iota(cell.shape, 0) // -(-n // num_lanes)
    slot = jnp.where(cell < num_cells, lane * num_cells + cell, num_lanes * num_cells)
    lanes = _scatter_add(slot, values, num_lanes * num_cells).reshape(
        (num_lanes, num_cells, *values.shape[1:])
    )
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def _sum_of_many_cells(cell: Array, values: Array, num_cells: int, most: int) -> Array:
    """Return sums by slots; the number of slots of a cell is proportional to its number of values.

    The sums of the slots are then summed in the same way.
    """
    n = len(cell)
    count = count_ids(1, (num_cells,), (cell[None],), jnp.full((1, n), True))[0]
    num_slots = count // SLOT_SIZE + 1
    first_slot = jnp.cumsum(num_slots) - num_slots
    turn = jax.lax.rem(iota(cell.shape, 0), num_slots.at[cell].get(mode="fill", fill_value=1))
    all_slots = num_cells + n // SLOT_SIZE  # static upper bound of the sum of num_slots
    slot = jnp.where(cell < num_cells, first_slot.at[cell].get(mode="clip") + turn, all_slots)
    cells = jnp.arange(num_cells, dtype=jnp.int32)
    cell_of_slot = jnp.repeat(cells, num_slots, total_repeat_length=all_slots)
    sums = _scatter_add(slot, values, all_slots)
    return sum_by_cell(cell_of_slot, sums, num_cells, most // SLOT_SIZE + 1)
