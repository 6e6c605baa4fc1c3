"""Counting: class ids of examples into a table with one axis for each argument."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, float_dtype, is_jax, on_device
from jaxmetrics._scatter import add_at, count_ids, in_range, iota, raveled
from jaxmetrics._validation import (
    INT32_MAX,
    ArrayLike,
    as_array,
    as_class_ids,
    as_float,
    as_mask,
    check_examples,
    check_integer,
    check_no_column,
    check_no_nan,
    check_size,
    ids_in_range,
)
from jaxmetrics._weighted_sums import sum_by_cell

__all__: list[str] = []

# An axis of the table to be counted: the argument's name, its class ids (..., n), the number of
# classes (None: of those seen).
Axis = tuple[str, ArrayLike, int | None]


def count(
    axes: Sequence[Axis],
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    rows: Array | None = None,
    *,
    labels_are_batch: bool = False,
) -> Array:
    """Check the arguments and count them into a table with one axis per entry of `axes`, groups
    first.

    `labels_are_batch`: the axis before the examples is one of labels, of which there may be several
    for one example.
    """
    if num_groups is not None and groups is None:
        raise ValueError(
            "num_groups says how many groups there are, but groups, their ids, are missing."
        )
    if groups is not None:
        size = None if num_groups is None else check_size(num_groups, "num_groups")
        axes = [("groups", groups, size), *axes]
    given = {name: as_array(labels, name) for name, labels, _ in axes}
    for name, x in given.items():
        check_integer(x, name)
        if not labels_are_batch:
            check_no_column(x, name)
    mask = None if where is None else as_mask(where)
    weights = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    shapes = {name: x.shape for name, x in given.items()}
    shapes |= {"y_prob": rows.shape[:-1]} if rows is not None else {}
    shapes |= {"sample_weight": weights.shape} if weights is not None else {}
    shapes |= {"where": mask.shape} if mask is not None else {}
    check_examples(shapes)
    if weights is not None:
        check_no_nan(weights, "sample_weight", mask)
    sizes = _sizes(axes, given)
    ids = tuple(
        ids_in_range(x, name, size, mask)
        for (name, x), size in zip(given.items(), sizes, strict=True)
    )
    if on_device(ids, weights, mask, rows):
        return _joint_histogram(tuple(map(_narrowed, ids, sizes)), weights, mask, rows, sizes=sizes)
    some_are_ignored = any(x is not labels for x, labels in zip(ids, given.values(), strict=True))
    return _joint_histogram_on_host(ids, weights, mask, rows, sizes, some_are_ignored)


def _sizes(axes: Sequence[Axis], given: dict[str, Array]) -> tuple[int, ...]:
    """The number of classes of each axis; where it was left out, the largest class id of all such
    axes (groups apart) + 1.
    """

    def largest(names: list[str]) -> int:
        for name in names:
            if is_jax(given[name]):
                size = "num_groups" if name == "groups" else "num_classes"
                raise ValueError(
                    f"{size} is needed where {name} is a JAX array: it sets the shape of the"
                    " result."
                )
            as_class_ids(given[name][..., :0], name, 1)
        return max([0, *(int(given[name].max()) for name in names if given[name].size)]) + 1

    unknown = [name for name, _, size in axes if size is None and name != "groups"]
    of_classes = largest(unknown) if unknown else 0
    return tuple(
        size if size is not None else largest([name]) if name == "groups" else of_classes
        for name, _, size in axes
    )


def _narrowed(ids: Array, size: int) -> Array:
    """Valid ids of the host in the smallest dtype that holds them, which reach the device
    sooner.
    """
    return (
        ids
        if is_jax(ids)
        else ids.astype(np.int8 if size <= 127 else np.int16 if size <= 32767 else np.int32)
    )


_EXAMPLES_AT_ONCE = 2**22


@np.errstate(all="ignore")
def _joint_histogram_on_host(
    ids: tuple[np.ndarray, ...],
    weights: np.ndarray | None,
    mask: np.ndarray | None,
    rows: np.ndarray | None,
    sizes: tuple[int, ...],
    some_are_ignored: bool,
) -> np.ndarray:
    """`_joint_histogram` by `numpy.bincount`, some batch entries at a time."""
    per_example = [x.shape for x in (*ids, weights, mask) if x is not None] + (
        [] if rows is None else [rows.shape[:-1]]
    )
    *batch_shape, n = np.broadcast_shapes(*per_example)
    batch, num_cells, window = (
        math.prod(batch_shape),
        math.prod(sizes),
        () if rows is None else rows.shape[-1:],
    )
    unweighted = weights is None and rows is None
    table = np.zeros((batch, num_cells, *window), np.int64 if unweighted else np.float64)
    at_once = max(1, _EXAMPLES_AT_ONCE // max(n, 1))

    def entries(x: np.ndarray, begin: int, *window: int) -> np.ndarray:
        """Some batch entries of an argument; one that all entries share stays as it is."""
        if math.prod(x.shape[: x.ndim - 1 - len(window)]) == 1:
            return x.reshape((1, n, *window))
        return np.broadcast_to(x, (*batch_shape, n, *window)).reshape((batch, n, *window))[
            begin : begin + at_once
        ]

    for begin in range(0, batch if n else 0, at_once):
        number = min(at_once, batch - begin)
        shape = (number, n)
        cell = np.zeros(shape, np.intp)
        keep = None if mask is None else entries(mask, begin)
        for i, (x, size) in enumerate(zip(ids, sizes, strict=True)):
            one = entries(x, begin)
            if some_are_ignored:
                keep = one >= 0 if keep is None else keep & (one >= 0)
            if i:
                cell *= size
            cell += one
        if number > 1:
            cell += num_cells * np.arange(number)[:, None]
        taken = slice(None) if keep is None else np.broadcast_to(keep, shape).ravel()
        flat = cell.ravel()[taken]

        def add(
            values: np.ndarray | None, flat: np.ndarray = flat, number: int = number
        ) -> np.ndarray:
            return np.bincount(flat, values, number * num_cells).reshape(number, num_cells)

        end = begin + number
        amount = (
            None
            if weights is None
            else np.broadcast_to(entries(weights, begin), shape).ravel()[taken]
        )
        if rows is None:
            table[begin:end] = add(amount)
            continue
        for i in range(window[0]):
            values = np.broadcast_to(entries(rows, begin, *window)[..., i], shape).ravel()[taken]
            if amount is not None:
                values = amount * np.where((amount != 0) | np.isfinite(values), values, 0)
            table[begin:end, :, i] = add(values)
    return table.reshape((*batch_shape, *sizes, *window))


@compiled
def _joint_histogram(
    ids: tuple[Array, ...],
    weights: Array | None,
    mask: Array | None,
    rows: Array | None,
    *,
    sizes: tuple[int, ...],
) -> Array:
    """Add 1, or `weights` times `rows` `(..., n, W)`, into the cell that the ids name:
    `(..., *sizes)` or `(..., *sizes, W)`.

    Jitted because the passes over the examples (checks, fused index, scatter) then become one.
    """
    per_example = [x.shape for x in (*ids, weights, mask) if x is not None] + (
        [] if rows is None else [rows.shape[:-1]]
    )
    *batch_shape, n = np.broadcast_shapes(*per_example)
    batch = math.prod(batch_shape)
    window = () if rows is None else rows.shape[-1:]
    unweighted = rows is None and weights is None
    if n == 0:
        return jnp.zeros(
            (*batch_shape, *sizes, *window), jnp.int32 if unweighted else float_dtype()
        )

    def flat(x: Array, *window: int) -> Array:
        lead = x.shape[: x.ndim - 1 - len(window)]
        if math.prod(lead) == 1:  # stays small; broadcast by whoever needs the batch axis
            return x.reshape((1, *x.shape[len(lead) :]))
        return jnp.broadcast_to(x, (*batch_shape, n, *window)).reshape((batch, n, *window))

    ids = tuple(map(flat, ids))
    keep = jnp.full((1, n), True) if mask is None else flat(mask)
    if unweighted:
        return count_ids(batch, sizes, ids, keep).reshape((*batch_shape, *sizes))

    # What is left out is replaced before it is multiplied and added, so that a NaN there reaches no
    # gradient either.
    for x, size in zip(ids, sizes, strict=True):
        keep &= in_range(x, size)
    values = jnp.where(keep, jnp.ones((), float_dtype()) if weights is None else flat(weights), 0)
    if rows is not None:
        weight, row = values[..., None], flat(rows, *window)
        values = weight * jnp.where((weight != 0) | jnp.isfinite(row), row, 0)

    if math.prod((batch, *sizes)) > INT32_MAX:  # more cells than `sum_by_cell` can number
        table = jnp.zeros((batch, *sizes, *window), float_dtype())
        table = add_at(table, (iota((batch, 1), 0), *ids), keep, values)
    else:
        cell = raveled((iota((batch, 1), 0), *ids), (batch, *sizes), keep).reshape(-1)
        flat_values = jnp.broadcast_to(values, (batch, n, *window)).reshape((-1, *window))
        table = sum_by_cell(cell, flat_values, math.prod((batch, *sizes)), most=n)
    return table.reshape((*batch_shape, *sizes, *window))
