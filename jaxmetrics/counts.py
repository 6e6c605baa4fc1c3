"""From labels and predictions to counts, the array `(..., K, K)` on which every metric works.

Row = true class, column = predicted class. Shapes: `n` examples on the last axis (`y_prob` and indicator arrays carry their
classes or labels behind it); leading axes are batch and broadcast, so a thousand checkpoints' predictions `(1000, n)` against
one `y_true` `(n,)` give `(1000, K, K)`. Labels are NumPy arrays, JAX arrays or lists of any integer dtype, or bool.

- **A label outside `[0, num_classes)` drops its example**, in truth, prediction and group alike: -1 and -100 mean "ignore".
  `check_labels` raises instead, outside of jit. (A 64-bit label that is passed into jit with x64 off has been cut to 32
  bits by JAX before it gets here; NumPy arrays given outside of jit are checked in full.)
- `sample_weight` `(..., n)`: weight 2 equals the row written twice, weight 0 the row left out. Without weights the counts
  are int32 and exact (up to 2^31 - 1 per cell); with weights they are float32 (float64 under x64).
- `where` `(..., n)`, bool: False leaves the example out, whatever it holds, NaN included.
- `groups` `(..., n)` with `num_groups` adds an axis before the matrix: `(..., G, K, K)`.

Static mistakes (dtype, shape, missing size) raise TypeError or ValueError, also under jit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arrays import (
    INT32_MAX,
    ArrayLike,
    as_class_ids,
    as_counts,
    as_float,
    as_host_or_jax,
    as_mask,
    bins_between,
    check_examples,
    check_size,
    check_square,
    float_dtype,
    is_integer,
    on_any_mesh,
)
from jaxmetrics._cell_sums import cells, hits_and_misses, proportions, tables

__all__ = [
    "check_labels",
    "confusion_matrix",
    "confusion_matrix_at_thresholds",
    "multilabel_confusion_matrix",
    "normalize",
    "one_vs_rest",
    "paired_confusion_matrix",
    "soft_confusion_matrix",
]

# An axis of the table to be counted: the argument's name, its class ids (..., n), the number of classes.
_Axis = tuple[str, ArrayLike, int]


def confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    num_classes: int,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> jax.Array:
    """Confusion matrix: `C[i, j]` = number (or weight) of the examples of class i that were predicted as j.

    Args:
        y_true, y_pred: class ids, `(..., n)`.
        num_classes: K, static.
        sample_weight, where, groups, num_groups: see the docstring of `jaxmetrics.counts`.

    Returns:
        `(..., K, K)`, with groups `(..., G, K, K)`; int32, or float with `sample_weight`.

    Raises:
        TypeError: labels that are not integers, a mask that is not bool, a `num_classes` that is not a Python int.
        ValueError: unequal numbers of examples, batch axes that do not broadcast, `groups` without `num_groups`.

    >>> confusion_matrix([0, 1, 1, 2, -1], [0, 1, 2, 2, 0], num_classes=3)
    Array([[1, 0, 0],
           [0, 1, 1],
           [0, 0, 1]], dtype=int32)
    >>> confusion_matrix([0, 1, 1], [0, 1, 0], num_classes=2, sample_weight=[1.0, 0.5, 2.0])
    Array([[1. , 0. ],
           [2. , 0.5]], dtype=float32)
    """
    k = check_size(num_classes, "num_classes")
    axes = [("y_true", y_true, k), ("y_pred", y_pred, k)]
    return count(axes, sample_weight, where, groups, num_groups)


def paired_confusion_matrix(
    y_true: ArrayLike,
    y_pred_a: ArrayLike,
    y_pred_b: ArrayLike,
    *,
    num_classes: int,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> jax.Array:
    """`C[i, j, k]` = number of examples of class i that A predicted as j and B as k: all that a comparison needs.

    Returns:
        `(..., K, K, K)`; its sum over the last axis is the confusion matrix of A, over the last but one that of B.
        Arguments and errors as `confusion_matrix`.

    >>> paired_confusion_matrix([0, 1, 1], [0, 1, 0], [0, 0, 0], num_classes=2)
    Array([[[1, 0],
            [0, 0]],
    <BLANKLINE>
           [[1, 0],
            [1, 0]]], dtype=int32)
    """
    k = check_size(num_classes, "num_classes")
    axes = [("y_true", y_true, k), ("y_pred_a", y_pred_a, k), ("y_pred_b", y_pred_b, k)]
    return count(axes, sample_weight, where, groups, num_groups)


def soft_confusion_matrix(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> jax.Array:
    """Expected confusion matrix when each prediction is drawn from its probabilities: `C[i, j]` = sum of `y_prob[.., j]`
    over the examples of class i.

    It is linear in `y_prob` and `sample_weight`, so any smooth metric of it is a differentiable loss. `y_prob` is summed
    as it stands: rows are neither normalised nor passed through a softmax.

    Args:
        y_true: class ids, `(..., n)`.
        y_prob: probabilities, `(..., n, K)`.
        num_classes: K, only to be checked against `y_prob`.

    Returns:
        `(..., K, K)`, float. Other arguments and errors as `confusion_matrix`.

    >>> soft_confusion_matrix([0, 1, 1], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    Array([[0.75, 0.25],
           [0.75, 1.25]], dtype=float32)
    """
    probs = as_float(y_prob, "y_prob")
    if probs.ndim < 2:
        raise ValueError(f"y_prob must have shape (..., n, K), one probability per class, got {probs.shape}.")
    k = probs.shape[-1]
    if num_classes is not None and check_size(num_classes, "num_classes") != k:
        raise ValueError(f"y_prob has {k} classes on its last axis, but num_classes is {num_classes}.")
    return count([("y_true", y_true, k)], sample_weight, where, groups, num_groups, probs)


def multilabel_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> jax.Array:
    """One 2x2 table per label from indicator arrays.

    Args:
        y_true, y_pred: 0 or 1 (or bool), `(..., n, L)`; any other value leaves out that label of that example.
        sample_weight, where, groups: per example, `(..., n)`.

    Returns:
        `(..., L, 2, 2)`, with groups `(..., L, G, 2, 2)`; each `[[TN, FP], [FN, TP]]`. Errors as `confusion_matrix`.

    >>> multilabel_confusion_matrix([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    Array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[1, 0],
            [0, 1]]], dtype=int32)
    """

    true, pred = as_class_ids(y_true, "y_true", 2), as_class_ids(y_pred, "y_pred", 2)
    if min(true.ndim, pred.ndim) < 2 or true.shape[-2:] != pred.shape[-2:]:
        raise ValueError(
            "y_true and y_pred must have shape (..., n, L) with the same n and L, one column per label;"
            f" got {true.shape} and {pred.shape}."
        )

    def repeated_for_labels(per_example: ArrayLike | None) -> jax.Array | np.ndarray | None:
        if per_example is None:
            return None
        array = as_host_or_jax(per_example)
        return array[..., None, :] if array.ndim else array

    axes = [("y_true", true.swapaxes(-1, -2), 2), ("y_pred", pred.swapaxes(-1, -2), 2)]
    weights, mask, group_ids = map(repeated_for_labels, (sample_weight, where, groups))
    return count(axes, weights, mask, group_ids, num_groups)


def confusion_matrix_at_thresholds(
    y_true: ArrayLike,
    y_score: ArrayLike,
    thresholds: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> jax.Array:
    """One 2x2 table per threshold, where `y_score >= threshold` predicts class 1.

    Each score is placed among the sorted thresholds by bisection, and cumulative sums of that one histogram give all
    tables: O(n log T), not a pass per threshold.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`.
        y_score: real numbers, `(..., n)`, compared in float32 (float64 under x64). A NaN score is neither above nor below
            a threshold: its example is dropped.
        thresholds: `(T,)`, in any order.

    Returns:
        `(..., T, 2, 2)`, with groups `(..., T, G, 2, 2)`; each `[[TN, FP], [FN, TP]]`. Errors as `confusion_matrix`.

    >>> confusion_matrix_at_thresholds([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.9], [0.5, 0.6])
    Array([[[1, 1],
            [0, 2]],
    <BLANKLINE>
           [[2, 0],
            [1, 1]]], dtype=int32)
    """
    scores = as_float(y_score, "y_score")
    cuts = as_float(thresholds, "thresholds")
    if cuts.ndim != 1 or cuts.size == 0:
        raise ValueError(f"thresholds must have shape (T,) with at least one threshold, got {cuts.shape}.")
    order = jnp.argsort(cuts)
    axes = [("y_true", y_true, 2), ("y_score", bins_between(cuts[order], scores), cuts.size + 1)]
    histogram = count(axes, sample_weight, where, groups, num_groups)
    below = jnp.cumsum(histogram, -1)[..., :-1]
    reached = lax.cumsum(histogram, histogram.ndim - 1, reverse=True)[..., 1:]
    tables_last = jnp.stack([below, reached], -1)[..., jnp.argsort(order), :]  # (..., G, 2, T, 2)
    return jnp.moveaxis(tables_last, -2, -3 if groups is None else -4)


def one_vs_rest(counts: ArrayLike) -> jax.Array:
    """The 2x2 table of each class against all others, `[[TN, FP], [FN, TP]]`.

    Returns:
        `(..., K, 2, 2)`. Integers give int32 (or their own wider dtype), exact while the cells of the result are below
        2^31; floats are added up without a subtraction, so small cells keep their digits beside large ones.

    Raises:
        TypeError, ValueError: `counts` is not numeric, not of shape `(..., K, K)`, or holds integers that JAX would wrap.

    >>> one_vs_rest([[5, 1], [2, 9]])[0]
    Array([[9, 2],
           [1, 5]], dtype=int32)
    """
    array = as_host_or_jax(counts)
    if not is_integer(array):
        return tables(*cells(as_counts(counts)))
    if isinstance(array, np.ndarray) and array.size and array.max() > jnp.iinfo(jnp.asarray(array[:0]).dtype).max:
        raise ValueError(f"counts holds {array.max()}, beyond JAX's 32-bit integers: give floats, or enable jax_enable_x64.")
    integers = jnp.asarray(array)
    check_square(integers, "counts")
    if integers.dtype.itemsize < 4:
        integers = integers.astype(jnp.int32)
    tp, fp, fn = hits_and_misses(integers)
    total = integers.sum((-2, -1), keepdims=True)[..., 0]
    return tables(tp, fp, fn, total - tp - fp - fn).astype(integers.dtype)


def normalize(counts: ArrayLike, over: Literal["true", "pred", "all"] = "true") -> jax.Array:
    """`counts` as fractions of each true class, `C_ij / sum_j C_ij`, each predicted class, `C_ij / sum_i C_ij`, or all.

    Returns:
        `(..., K, K)`, float in [0, 1]. A row, column or matrix without examples stays 0, as in scikit-learn.

    Raises:
        TypeError, ValueError: `over` is another word; `counts` is not numeric or not of shape `(..., K, K)`.

    >>> normalize([[3, 1], [0, 0]], over="true")
    Array([[0.75, 0.25],
           [0.  , 0.  ]], dtype=float32)
    """
    axes = {"true": (-1,), "pred": (-2,), "all": (-2, -1)}
    if over not in axes:
        raise ValueError(f'over must be "true", "pred" or "all", got {over!r}.')
    return proportions(counts, axes[over])


def check_labels(labels: ArrayLike, *, num_classes: int, name: str = "labels") -> None:
    """Raise if a label lies outside `[0, num_classes)`; counting itself would drop it without a word.

    Host-side: it needs the values, so it cannot run under jit.

    Raises:
        ValueError: the first offending label and its index.
        TypeError: `labels` is not of an integer or bool dtype, or is a tracer.

    >>> check_labels([0, 2, 3], num_classes=3, name="y_true")
    Traceback (most recent call last):
    ValueError: y_true[2] is 3, but class ids must lie in [0, 3).
    """
    size = check_size(num_classes, "num_classes")
    if isinstance(labels, jax.core.Tracer):
        raise TypeError(f"check_labels looks at the values of {name}, which jit, vmap and grad hide: call it outside.")
    array = np.asarray(as_host_or_jax(labels))
    as_class_ids(array, name, size)
    bad = np.argwhere((array < 0) | (array >= size))
    if len(bad):
        index = tuple(bad[0].tolist())
        where = ", ".join(map(str, index))
        raise ValueError(f"{name}[{where}] is {array[index]}, but class ids must lie in [0, {size}).")


def count(
    axes: Sequence[_Axis],
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    rows: jax.Array | None = None,
) -> jax.Array:
    """Check the arguments and count them into a table with one axis per entry of `axes`, groups first."""
    if (groups is None) != (num_groups is None):
        raise ValueError("groups and num_groups go together: the class ids of the groups and how many there are.")
    if groups is not None and num_groups is not None:
        axes = [("groups", groups, check_size(num_groups, "num_groups")), *axes]
    ids = {name: as_class_ids(labels, name, size) for name, labels, size in axes}
    weights = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = None if where is None else as_mask(where)
    shapes = {name: x.shape for name, x in ids.items()}
    shapes |= {"y_prob": rows.shape[:-1]} if rows is not None else {}
    shapes |= {"sample_weight": weights.shape} if weights is not None else {}
    shapes |= {"where": mask.shape} if mask is not None else {}
    check_examples(shapes)
    return _joint_histogram(tuple(ids.values()), weights, mask, rows, sizes=tuple(size for _, _, size in axes))


@on_any_mesh
@partial(jax.jit, static_argnames="sizes")
def _joint_histogram(
    ids: tuple[jax.Array, ...],
    weights: jax.Array | None,
    mask: jax.Array | None,
    rows: jax.Array | None,
    *,
    sizes: tuple[int, ...],
) -> jax.Array:
    """Add 1, or `weights` times `rows` `(..., n, W)`, into the cell that the ids name: `(..., *sizes)` or `(..., *sizes, W)`.

    Jitted because the passes over the examples (checks, fused index, scatter) then become one.
    """
    per_example = [x.shape for x in (*ids, weights, mask) if x is not None] + ([] if rows is None else [rows.shape[:-1]])
    *batch_shape, n = np.broadcast_shapes(*per_example)
    batch = math.prod(batch_shape)
    window = () if rows is None else rows.shape[-1:]
    unweighted = rows is None and weights is None
    if n == 0:
        return jnp.zeros((*batch_shape, *sizes, *window), jnp.int32 if unweighted else float_dtype())

    def flat(x: jax.Array, *window: int) -> jax.Array:
        lead = x.shape[: x.ndim - 1 - len(window)]
        if math.prod(lead) == 1:  # stays small; broadcast by whoever needs the batch axis
            return x.reshape(1, *x.shape[len(lead) :])
        return jnp.broadcast_to(x, (*batch_shape, n, *window)).reshape(batch, n, *window)

    ids = tuple(map(flat, ids))
    keep = jnp.full((1, n), True) if mask is None else flat(mask)
    if unweighted:
        return _count_ids(batch, sizes, ids, keep).reshape(*batch_shape, *sizes)

    # What is left out is replaced before it is multiplied and added, so that a NaN there reaches no gradient either.
    for x, size in zip(ids, sizes, strict=True):
        keep &= _in_range(x, size)
    values = jnp.where(keep, jnp.ones((), float_dtype()) if weights is None else flat(weights), 0)
    if rows is not None:
        weight, row = values[..., None], flat(rows, *window)
        values = weight * jnp.where((weight != 0) | jnp.isfinite(row), row, 0)

    if math.prod((batch, *sizes)) > INT32_MAX:  # more cells than `_sum_by_cell` can number
        table = jnp.zeros((batch, *sizes, *window), float_dtype())
        table = _add_at(table, (_iota((batch, 1), 0), *ids), keep, values)
    else:
        cell = _ravel((_iota((batch, 1), 0), *ids), (batch, *sizes), keep).reshape(-1)
        flat_values = jnp.broadcast_to(values, (batch, n, *window)).reshape(-1, *window)
        table = _sum_by_cell(cell, flat_values, math.prod((batch, *sizes)), most=n)
    return table.reshape(*batch_shape, *sizes, *window)


def _iota(shape: tuple[int, ...], dimension: int) -> jax.Array:
    return lax.broadcasted_iota(jnp.int32, shape, dimension)


def _count_ids(batch: int, sizes: tuple[int, ...], ids: tuple[jax.Array, ...], keep: jax.Array) -> jax.Array:
    """Integer table `(batch, *sizes)`; ids and keep are `(1 or batch, n)`."""
    methods = {"cpu": partial(_count_in_chunks, batch, sizes), "default": partial(_count_at_once, batch, sizes)}
    return lax.platform_dependent(ids, keep, **methods)


def _count_at_once(batch: int, sizes: tuple[int, ...], ids: tuple[jax.Array, ...], keep: jax.Array) -> jax.Array:
    """By one scatter of ones."""
    one = jnp.ones((), jnp.int32)
    return _add_at(jnp.zeros((batch, *sizes), jnp.int32), (_iota((batch, 1), 0), *ids), keep, one)


def _count_in_chunks(batch: int, sizes: tuple[int, ...], ids: tuple[jax.Array, ...], keep: jax.Array) -> jax.Array:
    """In a loop over chunks of examples.

    XLA's CPU backend writes the scatter's indices and ones to memory first. In chunks they stay in the cache, which makes
    ten million labels cost little more than reading them (2.5 times faster than at once).
    """
    n = keep.shape[-1]
    length = min(n, max(1, 2**16 // max(1, batch)))

    def add_chunk(i: jax.Array | int, table: jax.Array) -> jax.Array:
        start = jnp.minimum(i * length, n - length)  # the last chunk overlaps the one before: count its new part only
        new = start + _iota((1, length), 1) >= i * length
        chunk = [lax.dynamic_slice_in_dim(x, start, length, axis=1) for x in (keep, *ids)]
        return _add_at(table, (_iota((batch, 1), 0), *chunk[1:]), chunk[0] & new, jnp.ones((), jnp.int32))

    # The first chunk stands before the loop, so that the loop starts from a table that varies over devices as the ids do.
    table = add_chunk(0, jnp.zeros((batch, *sizes), jnp.int32))
    return lax.fori_loop(1, -(-n // length), add_chunk, table) if length < n else table


def _add_at(table: jax.Array, ids: tuple[jax.Array, ...], keep: jax.Array, values: jax.Array) -> jax.Array:
    """`table` with `values` added in the cells `ids` (one per leading axis of the table), where `keep` and in range."""
    sizes, window = table.shape[: len(ids)], table.shape[len(ids) :]
    if math.prod(sizes) <= INT32_MAX:  # one fused index is 1.7 times faster than several, while int32 can hold it
        index = [_ravel(ids, sizes, keep)]
        sizes = (math.prod(sizes),)
    else:
        index = [_ravel((x,), (size,), keep) for x, size in zip(ids, sizes, strict=True)]
        index = jnp.broadcast_arrays(*index)
    values = jnp.broadcast_to(values, index[0].shape + window)
    return table.reshape(sizes + window).at[tuple(index)].add(values, mode="drop").reshape(table.shape)


def _ravel(ids: tuple[jax.Array, ...], sizes: tuple[int, ...], keep: jax.Array) -> jax.Array:
    """The number of each example's cell in the flattened table; past the end where not `keep` or an id is out of range."""
    cell = jnp.zeros_like(keep, jnp.int32)
    for x, size in zip(ids, sizes, strict=True):
        keep = keep & _in_range(x, size)
        cell = cell * size + x.astype(jnp.int32)
    return jnp.where(keep, cell, math.prod(sizes))


def _sum_by_cell(cell: jax.Array, values: jax.Array, num_cells: int, most: int) -> jax.Array:
    """Sums `(num_cells, *window)` of the values `(n, *window)` of each cell; `most` bounds the values of a cell.

    A float32 sum that takes one addition after another drifts (ten million times 0.1 gives 1,087,937) and stops at 2^24.
    So the values of a cell are spread over slots, about SLOT_SIZE to each, and the slots are summed.
    """
    if most <= SLOT_SIZE:
        return _scatter_add(cell, values, num_cells)
    if num_cells <= FEW_CELLS:
        return _sum_in_lanes(cell, values, num_cells)
    return _sum_in_slots(cell, values, num_cells, most)


SLOT_SIZE = 256
FEW_CELLS = 2 * SLOT_SIZE  # so that all lanes together hold at most twice as many numbers as there are values


def _scatter_add(index: jax.Array, values: jax.Array, size: int) -> jax.Array:
    return jnp.zeros((size, *values.shape[1:]), values.dtype).at[index].add(values, mode="drop")


def _sum_in_lanes(cell: jax.Array, values: jax.Array, num_cells: int) -> jax.Array:
    """Every cell has a slot for each run of SLOT_SIZE examples; tables of slots are added in pairs."""
    n = len(cell)
    num_lanes = 1 << (n // SLOT_SIZE).bit_length()
    lane = _iota(cell.shape, 0) // -(-n // num_lanes)
    slot = jnp.where(cell < num_cells, lane * num_cells + cell, num_lanes * num_cells)
    lanes = _scatter_add(slot, values, num_lanes * num_cells).reshape(num_lanes, num_cells, *values.shape[1:])
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def _sum_in_slots(cell: jax.Array, values: jax.Array, num_cells: int, most: int) -> jax.Array:
    """A cell has as many slots as its number of values asks for, which take turns; their sums are summed in the same way."""
    n = len(cell)
    count = _count_ids(1, (num_cells,), (cell[None],), jnp.full((1, n), True))[0]
    num_slots = count // SLOT_SIZE + 1
    first_slot = jnp.cumsum(num_slots) - num_slots
    turn = lax.rem(_iota(cell.shape, 0), num_slots.at[cell].get(mode="fill", fill_value=1))
    all_slots = num_cells + n // SLOT_SIZE
    slot = jnp.where(cell < num_cells, first_slot.at[cell].get(mode="clip") + turn, all_slots)
    cell_of_slot = jnp.repeat(jnp.arange(num_cells, dtype=jnp.int32), num_slots, total_repeat_length=all_slots)
    return _sum_by_cell(cell_of_slot, _scatter_add(slot, values, all_slots), num_cells, most // SLOT_SIZE + 1)


def _in_range(ids: jax.Array, size: int) -> jax.Array:
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(jnp.int32)  # int8 cannot be compared with 200
    return (wide >= 0) & (wide < size)
