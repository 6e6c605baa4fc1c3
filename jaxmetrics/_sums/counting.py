"""Count examples into a table with one axis of classes for each argument."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxmetrics._arguments.example_arguments import Argument, read_examples
from jaxmetrics._arguments.single import (
    INT32_MAX,
    MOST_CELLS,
    ArrayLike,
    as_array,
    check_cells,
    check_integer,
    check_no_column,
    check_no_one_hot,
    check_size,
    ids_in_range,
    warn_of_left_out_class,
)
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jnp, trees
from jaxmetrics._places.namespaces import Array, float_dtype, is_jax, on_device, xp
from jaxmetrics._sums.scatter import add_at, cell_numbers, count_ids, in_all_tables
from jaxmetrics._sums.weighted_sums import sum_by_cell

__all__: list[str] = []

# An axis of a table: the name of the argument, its class ids (..., n), and the number of classes,
# which is the largest id + 1 if it is None. The first axis is truth, the others are predictions.
Axis = tuple[str, ArrayLike, int | None]

# Number of examples, over all batch entries, that NumPy counts at once, so that their cell numbers
# stay in the cache. If there are many cells, it is eight times the number of cells.
_EXAMPLES_AT_ONCE = 2**18


class _Observations(NamedTuple):
    """Checked examples: class ids for each axis of the table, weights and mask, `(..., n)` each.

    Each example adds 1, or its weight, to its cell. If `rows`, `(..., n, W)`, are given, a cell has
    W numbers, and each example adds its row, multiplied by its weight.
    """

    ids: tuple[Array, ...]
    weights: Array | None
    mask: Array | None
    rows: Array | None

    @property
    def shape(self) -> tuple[int, ...]:
        """The common shape of all examples, `(..., n)`."""
        shapes = [x.shape for x in (*self.ids, self.weights, self.mask) if x is not None]
        shapes += [] if self.rows is None else [self.rows.shape[:-1]]
        return np.broadcast_shapes(*shapes)

    @property
    def window(self) -> tuple[int, ...]:
        """The shape of an example's contribution, `()` or `(W,)`."""
        return () if self.rows is None else self.rows.shape[-1:]

    @property
    def is_unweighted(self) -> bool:
        return self.weights is None and self.rows is None

    def with_one_batch_axis(self, *batch_shape: int) -> _Observations:
        """Flatten the batch axes of each array to one axis.

        The axis has length 1 if all batch entries share the array, which is broadcast where needed.
        """
        n = self.ids[0].shape[-1]

        def joined(x: Array | None, *window: int) -> Array | None:
            if x is None:
                return None
            if math.prod(x.shape[: x.ndim - 1 - len(window)]) == 1:
                return x.reshape((1, n, *window))
            full = xp.broadcast_to(x, (*batch_shape, n, *window))
            return full.reshape((math.prod(batch_shape), n, *window))

        ids = tuple(map(joined, self.ids))
        rows = joined(self.rows, *self.window)
        return _Observations(ids, joined(self.weights), joined(self.mask), rows)

    def part(self, entries: slice, examples: slice) -> _Observations:
        """Return some of the examples of some entries of the single batch axis."""
        return trees.map(lambda x: (x if len(x) == 1 else x[entries])[:, examples], self)


def count(
    axes: Sequence[Axis],
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    rows: Argument | None = None,
    *,
    refuse_columns: bool = True,
) -> Array:
    """Check the arguments and count them into a table with one axis per entry of `axes`.

    If groups are given, their axis comes first. Ids of shape `(n, 1)` raise an error, because they
    are probably a column that should be raveled. Pass `refuse_columns=False` if the ids were
    checked, or if the axis before the examples is an axis of labels or classes.
    """
    axes = _with_groups(axes, groups, num_groups)
    window = () if rows is None else rows.array.shape[-1:]
    labels, sizes = class_ids(axes, window, refuse_columns=refuse_columns)
    ids, values, weights, mask = read_examples(labels, rows, sample_weight, where)
    if on_device(ids, weights, mask, values):
        ids_to_move = tuple(map(_narrowed, ids, sizes))
        return _joint_histogram(_Observations(ids_to_move, weights, mask, values), sizes=sizes)
    some_are_ignored = any(x is not given.array for x, given in zip(ids, labels, strict=True))
    if some_are_ignored:
        first = int(groups is not None)
        for pred in labels[first + 1 :]:
            warn_of_left_out_class(labels[first].array, pred.array, mask)
    observations = _Observations(tuple(ids), weights, mask, values)
    return _joint_histogram_on_host(observations, sizes, some_are_ignored)


def class_ids(
    axes: Sequence[Axis], window: tuple[int, ...] = (), *, refuse_columns: bool = True
) -> tuple[list[Argument], tuple[int, ...]]:
    """Check the dtype and shape of the class ids, and return the number of classes of each axis.

    A table with these axes and the axes `window` must fit into memory.
    """
    given = {name: as_array(labels, name) for name, labels, _ in axes}
    for name, _, size in axes:
        check_integer(given[name], name)
        if refuse_columns:
            check_no_column(given[name], name)
            if name == "y_true":
                check_no_one_hot(given[name], name, size)
    sizes = _sizes(axes, given)
    check_cells((*sizes, *window), "num_classes and num_groups")
    num_truths = 2 if axes[0][0] == "groups" else 1
    readings = [
        functools.partial(ids_in_range, size=size, is_truth=i < num_truths)
        for i, size in enumerate(sizes)
    ]
    return list(map(Argument, given.values(), given, readings)), sizes


def _with_groups(
    axes: Sequence[Axis], groups: ArrayLike | None, num_groups: int | None
) -> Sequence[Axis]:
    if groups is not None:
        size = None if num_groups is None else check_size(num_groups, "num_groups")
        return [("groups", groups, size), *axes]
    if num_groups is not None:
        raise ValueError("num_groups is given without groups, the group ids.")
    return axes


def _sizes(axes: Sequence[Axis], given: dict[str, Array]) -> tuple[int, ...]:
    """Return the number of classes of each axis.

    If axes have no number, their number is one more than the largest class id in all of them. The
    number of groups is one more than the largest group id.
    """
    sizes = {name: size for name, _, size in axes}
    unsized = [name for name, size in sizes.items() if size is None]
    classes = [name for name in unsized if name != "groups"]
    for names, size_name in ((["groups"], "num_groups"), (classes, "num_classes")):
        if names and names[0] in unsized:
            size = _number_of_ids({name: given[name] for name in names}, size_name)
            sizes |= dict.fromkeys(names, size)
    return tuple(size for size in sizes.values() if size is not None)


def _number_of_ids(named_ids: dict[str, Array], size_name: str) -> int:
    for name, ids in named_ids.items():
        if is_jax(ids):
            raise ValueError(
                f"{size_name} is required if {name} is a JAX array, because the shape of the"
                f" result depends on {size_name}."
            )
    largest = max(int(ids.max(initial=0)) for ids in named_ids.values())
    if (largest + 1) ** len(named_ids) > MOST_CELLS:
        raise ValueError(
            f"The largest class id in {', '.join(named_ids)} is {largest}, and a table with so"
            " many classes does not fit into memory. Pass labels=[...] with a list of the classes"
            " that occur."
        )
    return largest + 1


def _narrowed(ids: Array, size: int) -> Array:
    """Convert valid NumPy ids to the smallest dtype, for a faster transfer to the device."""
    return ids if is_jax(ids) else ids.astype(np.min_scalar_type(-size))


@np.errstate(all="ignore")
def _joint_histogram_on_host(
    observations: _Observations, sizes: tuple[int, ...], some_are_ignored: bool
) -> np.ndarray:
    """Compute `_joint_histogram` for NumPy arrays by `numpy.bincount`, some examples at a time."""
    *batch_shape, n = observations.shape
    batch, at_once = math.prod(batch_shape), max(_EXAMPLES_AT_ONCE, 8 * math.prod(sizes))
    observations = observations.with_one_batch_axis(*batch_shape)
    if batch * n <= at_once:
        table = _by_bincount(observations, (batch, n), sizes, some_are_ignored)
    else:
        tables = []
        for entries in _slices(batch, max(1, at_once // n)):
            parts = (
                _by_bincount(
                    observations.part(entries, examples),
                    (entries.stop - entries.start, examples.stop - examples.start),
                    sizes,
                    some_are_ignored,
                )
                for examples in _slices(n, at_once)
            )
            tables.append(functools.reduce(np.add, parts))
        table = np.concatenate(tables)
    return table.reshape((*batch_shape, *sizes, *observations.window))


def _slices(size: int, step: int) -> list[slice]:
    return [slice(begin, min(begin + step, size)) for begin in range(0, size, step)]


def _by_bincount(
    observations: _Observations,
    shape: tuple[int, int],
    sizes: tuple[int, ...],
    some_are_ignored: bool,
) -> np.ndarray:
    """Count examples `(batch entries, n)` into a table `(batch entries, cells, *window)`."""
    ids, weights, keep, rows = observations
    if some_are_ignored:
        for x in ids:
            keep = x >= 0 if keep is None else keep & (x >= 0)
    kept = slice(None) if keep is None else np.broadcast_to(keep, shape).ravel()
    cell = _cell_numbers(ids, shape, sizes).ravel()[kept]
    table_shape = shape[0], math.prod(sizes)

    def of_kept(x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(x, shape).ravel()[kept]

    def sums(values: np.ndarray | None) -> np.ndarray:
        table = np.bincount(cell, values, math.prod(table_shape)).reshape(table_shape)
        return table if values is None else table.astype(float, copy=False)  # int64 if empty

    weight = None if weights is None else of_kept(weights)
    if rows is None:
        return sums(weight)
    columns = []
    for i in range(rows.shape[-1]):
        values = of_kept(rows[..., i])
        if weight is not None:
            values = weight * np.where((weight != 0) | np.isfinite(values), values, 0)
        columns.append(sums(values))
    return np.stack(columns, -1)


def _cell_numbers(
    ids: tuple[np.ndarray, ...], shape: tuple[int, int], sizes: tuple[int, ...]
) -> np.ndarray:
    """Return the cell numbers of examples `(batch entries, n)`, consecutive over batch entries.

    They are computed in place, because further passes over the examples would take most of the
    time.
    """
    cell = np.empty(shape, np.intp)
    cell[...] = ids[0]
    for x, size in zip(ids[1:], sizes[1:], strict=True):
        cell *= size
        cell += x
    if len(cell) > 1:
        cell += math.prod(sizes) * np.arange(len(cell))[:, None]
    return cell


@compiled
def _joint_histogram(observations: _Observations, *, sizes: tuple[int, ...]) -> Array:
    """Add the contribution of each example to the cell of its ids.

    Returns `(..., *sizes)` or `(..., *sizes, W)`. The function is compiled, so that the passes over
    the examples (checks, index, scatter) become one.
    """
    *batch_shape, n = observations.shape
    shape = (*batch_shape, *sizes, *observations.window)
    if n == 0:
        return jnp.zeros(shape, jnp.int32 if observations.is_unweighted else float_dtype())
    ids, _, mask, _ = observations = observations.with_one_batch_axis(*batch_shape)
    keep = jnp.full((1, n), True) if mask is None else mask
    batch = math.prod(batch_shape)
    if observations.is_unweighted:
        return count_ids(batch, sizes, ids, keep).reshape(shape)
    return _weighted_table(observations, keep, batch, sizes).reshape(shape)


def _weighted_table(
    observations: _Observations, keep: Array, batch: int, sizes: tuple[int, ...]
) -> Array:
    ids, weights, _, rows = observations
    size, window, n = math.prod(sizes), observations.window, keep.shape[-1]
    cell = cell_numbers(ids, sizes, keep)
    values = jnp.ones((1, 1), float_dtype()) if weights is None else weights
    if rows is not None:
        # Ignored values are replaced before the multiplication, so that their NaN does not reach
        # the gradients.
        weight = jnp.where(cell < size, values, 0)[..., None]
        values = weight * jnp.where((weight != 0) | jnp.isfinite(rows), rows, 0)
    values = jnp.broadcast_to(values, (batch, n, *window))
    if batch * size > INT32_MAX:  # beyond the range of `sum_by_cell`
        return add_at(jnp.zeros((batch, size, *window), values.dtype), cell, values)
    flat = in_all_tables(cell, batch, size).reshape(-1)
    return sum_by_cell(flat, values.reshape((-1, *window)), batch * size, most=n)
