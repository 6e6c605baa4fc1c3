"""Add up weights by cell in float32, without drift however many examples there are."""

from __future__ import annotations

from jaxmetrics._jax import jax, jnp
from jaxmetrics._namespaces import Array
from jaxmetrics._scatter import count_ids, iota

__all__: list[str] = []


# Values that are added one after another: 256 roundings of float32 stay below 2e-5 of their sum.
SLOT_SIZE = 256
# For so few cells each has a slot in every lane: together they hold at most twice as many numbers
# as there are values.
FEW_CELLS = 2 * SLOT_SIZE


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
        return _sum_in_lanes(cell, values, num_cells)
    return _sum_in_slots(cell, values, num_cells, most)


def _scatter_add(index: Array, values: Array, size: int) -> Array:
    return jnp.zeros((size, *values.shape[1:]), values.dtype).at[index].add(values, mode="drop")


def _sum_in_lanes(cell: Array, values: Array, num_cells: int) -> Array:
    """Give every cell a slot in each lane of about SLOT_SIZE examples, and add lanes in pairs."""
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
    """Give a cell as many slots as its number of values asks for, which take turns.

    The sums of the slots are values of the same cells, and are summed in the same way.
    """
    n = len(cell)
    count = count_ids(1, (num_cells,), (cell[None],), jnp.full((1, n), True))[0]
    num_slots = count // SLOT_SIZE + 1
    first_slot = jnp.cumsum(num_slots) - num_slots
    turn = jax.lax.rem(iota(cell.shape, 0), num_slots.at[cell].get(mode="fill", fill_value=1))
    all_slots = num_cells + n // SLOT_SIZE  # at least the sum of num_slots, and static
    slot = jnp.where(cell < num_cells, first_slot.at[cell].get(mode="clip") + turn, all_slots)
    cells = jnp.arange(num_cells, dtype=jnp.int32)
    cell_of_slot = jnp.repeat(cells, num_slots, total_repeat_length=all_slots)
    sums = _scatter_add(slot, values, all_slots)
    return sum_by_cell(cell_of_slot, sums, num_cells, most // SLOT_SIZE + 1)
