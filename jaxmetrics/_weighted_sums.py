"""Add up weights by cell in float32, without drift for many examples."""

from __future__ import annotations

from functools import partial

from jaxmetrics._jax import jax, jnp
from jaxmetrics._namespaces import Array
from jaxmetrics._scatter import FEW_CELLS, count_ids, iota

__all__: list[str] = []


# Number of values that are added sequentially: 256 roundings of float32 stay below 2e-5 of the sum.
SLOT_SIZE = 256


def sum_by_cell(cell: Array, values: Array, num_cells: int, most: int) -> Array:
    """Add up the values `(n, *window)` of each cell, to `(num_cells, *window)`.

    `most` bounds the number of values of a cell; a cell of `num_cells` or more drops its value.

    A float32 sum that takes one addition after another drifts (ten million times 0.1 gives
    1,087,937) and stops at 2^24. So the values of a cell are spread over slots, about SLOT_SIZE to
    each, and the slots are summed.
    """
    if most <= SLOT_SIZE:
        return _scatter_add(cell, values, num_cells)
    if num_cells <= FEW_CELLS:
        return _sum_of_few_cells(cell, values, num_cells)
    return _sum_in_slots(cell, values, num_cells, most)


def _scatter_add(index: Array, values: Array, size: int) -> Array:
    return jnp.zeros((size, *values.shape[1:]), values.dtype).at[index].add(values, mode="drop")


def _sum_of_few_cells(cell: Array, values: Array, num_cells: int) -> Array:
    """Sum in lanes on a CPU, and without a scatter on an accelerator."""
    in_lanes, by_comparison = (
        partial(method, num_cells=num_cells) for method in (_sum_in_lanes, _sum_by_comparison)
    )
    if values.ndim > 1:  # compilers keep the comparison for each number of the window
        return in_lanes(cell, values)

    @jax.custom_jvp  # otherwise the residuals of every platform would be kept on all
    def summed(cell: Array, values: Array) -> Array:
        return jax.lax.platform_dependent(cell, values, cpu=in_lanes, default=by_comparison)

    @summed.defjvp
    def _(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
        return summed(*primals), in_lanes(primals[0], tangents[1])

    return summed(cell, values)


def _sum_by_comparison(cell: Array, values: Array, num_cells: int) -> Array:
    """Compare the cell of each value with all cells, and sum SLOT_SIZE examples at a time."""
    is_cell = _in_slots(cell, num_cells)[..., None] == iota((1, 1, num_cells), 2)
    sums = jnp.where(is_cell, _in_slots(values)[..., None], 0).sum(1, dtype=values.dtype)
    while len(sums) > 1:
        sums = _in_slots(sums).sum(1, dtype=values.dtype)
    return sums[0]


def _in_slots(x: Array, padding: int = 0) -> Array:
    """Reshape `(n, ...)` to `(slots, SLOT_SIZE, ...)`, padded."""
    missing = -len(x) % SLOT_SIZE
    padded = jnp.pad(x, [(0, missing), *((0, 0) for _ in x.shape[1:])], constant_values=padding)
    return padded.reshape((-1, SLOT_SIZE, *x.shape[1:]))


def _sum_in_lanes(cell: Array, values: Array, num_cells: int) -> Array:
    """Sum lanes of about SLOT_SIZE examples with one slot per cell each, then add lanes pairwise.

    With at most FEW_CELLS cells, there are at most twice as many slots as values.
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


def _sum_in_slots(cell: Array, values: Array, num_cells: int, most: int) -> Array:
    """Distribute the values of a cell over several slots, in proportion to their number.

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
