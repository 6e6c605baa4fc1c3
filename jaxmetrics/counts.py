"""From labels and predictions to counts, the array `(..., K, K)` on which every metric works.

Row = true class, column = predicted class. Shapes: `n` examples on the last axis (`y_prob` and indicator arrays carry their
classes or labels behind it); leading axes are batch and broadcast, so a thousand checkpoints' predictions `(1000, n)` against
one `y_true` `(n,)` give `(1000, K, K)`. Labels are NumPy arrays, JAX arrays or lists of any integer dtype, or bool.

- **A negative label drops its example**, in truth, prediction and group alike: -1 and -100 mean "ignore". One at or beyond
  `num_classes` is a mistake: on the host it raises, in JAX arrays, whose values jit hides, it drops its example too, and
  `check_labels` raises outside of jit. (A 64-bit label that is passed into jit with x64 off has been cut to 32 bits by JAX.)
- `sample_weight` `(..., n)`: weight 2 equals the row written twice, weight 0 the row left out. Without weights the counts are
  integers and exact: int64 on the host, int32 on the device (up to 2^31 - 1 per cell). With weights they are floats.
- `where` `(..., n)`, bool: False leaves the example out, whatever it holds, NaN included.
- `groups` `(..., n)` with `num_groups` adds an axis before the matrix: `(..., G, K, K)`.

Static mistakes (dtype, shape, missing size) raise TypeError or ValueError, also under jit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arrays import (
    INT32_MAX,
    ArrayLike,
    as_array,
    as_class_ids,
    as_counts,
    as_float,
    as_mask,
    bins_between,
    check_binary,
    check_examples,
    check_integer,
    check_no_column,
    check_no_nan,
    check_size,
    check_square,
    ids_in_range,
    is_integer,
    refuse_where,
)
from jaxmetrics._backends import Array, compiled, float_dtype, is_jax, is_known, lax, on_device, xp
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

# An axis of the table to be counted: the argument's name, its class ids (..., n), the number of classes (None: of those seen).
_Axis = tuple[str, ArrayLike, int | None]


def confusion_matrix(
    y_true: ArrayLike | Sequence[Hashable],
    y_pred: ArrayLike | Sequence[Hashable],
    *,
    num_classes: int | None = None,
    labels: Sequence[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> Array:
    """Confusion matrix: `C[i, j]` = number (or weight) of the examples of class i that were predicted as j.

    Args:
        y_true, y_pred: class ids, `(..., n)`; with `labels`, members of it, of any kind.
        num_classes: K, static; may be left out for arrays of the host: the largest class id + 1.
        labels: the K classes in the order of the rows, on the host. A row with another label raises; `where` leaves it out.
        sample_weight, where, groups, num_groups: see the docstring of `jaxmetrics.counts`.

    Returns:
        `(..., K, K)`, with groups `(..., G, K, K)`; integers, or float with `sample_weight`.

    Raises:
        TypeError: labels that are not integers, a mask that is not bool, a `num_classes` that is not a Python int.
        ValueError: unequal numbers of examples, batch axes that do not broadcast, JAX arrays without `num_classes`; on the host
            a label at or beyond `num_classes`, or not among `labels`, and a NaN weight.

    >>> confusion_matrix([0, 1, 1, 2, -1], [0, 1, 2, 2, 0])
    array([[1, 0, 0],
           [0, 1, 1],
           [0, 0, 1]])
    >>> confusion_matrix([0, 1, 1], [0, 1, 0], sample_weight=[1.0, 0.5, 2.0])
    array([[1. , 0. ],
           [2. , 0.5]])
    >>> confusion_matrix(["cat", "dog", "dog"], ["cat", "dog", "cat"], labels=["dog", "cat"])
    array([[1, 1],
           [0, 1]])
    """
    named: dict[str, Any] = {"y_true": y_true, "y_pred": y_pred}
    axes = _class_axes(named, num_classes, labels, where)
    return count(axes, sample_weight, where, groups, num_groups)


def paired_confusion_matrix(
    y_true: ArrayLike | Sequence[Hashable],
    y_pred_a: ArrayLike | Sequence[Hashable],
    y_pred_b: ArrayLike | Sequence[Hashable],
    *,
    num_classes: int | None = None,
    labels: Sequence[Hashable] | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> Array:
    """`C[i, j, k]` = number of examples of class i that A predicted as j and B as k: all that a comparison needs.

    Returns:
        `(..., K, K, K)`; its sum over the last axis is the confusion matrix of A, over the last but one that of B.
        Arguments and errors as `confusion_matrix`.

    >>> paired_confusion_matrix([0, 1, 1], [0, 1, 0], [0, 0, 0])
    array([[[1, 0],
            [0, 0]],
    <BLANKLINE>
           [[1, 0],
            [1, 0]]])
    """
    named: dict[str, Any] = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    axes = _class_axes(named, num_classes, labels, where)
    return count(axes, sample_weight, where, groups, num_groups)


def _class_axes(
    named: dict[str, Any], num_classes: int | None, labels: Sequence[Hashable] | None, where: ArrayLike | None
) -> list[_Axis]:
    """Axes of the same K classes."""
    if labels is None:
        size = None if num_classes is None else check_size(num_classes, "num_classes")
        return [(name, values, size) for name, values in named.items()]
    classes = list(labels)
    if num_classes is not None and num_classes != len(classes):
        raise ValueError(f"labels names {len(classes)} classes, but num_classes is {num_classes}.")
    ids = ids_by_label(classes)
    return [(name, ids_of_labels(values, ids, name, where), len(classes)) for name, values in named.items()]


def ids_by_label(labels: Iterable[Hashable]) -> dict[Hashable, int]:
    """The class id of each label."""
    classes = [x.item() if isinstance(x, np.generic) else x for x in labels]
    ids = {label: i for i, label in enumerate(classes)}
    if not classes or len(ids) < len(classes):
        raise ValueError(f"labels must name each class once, and at least one, got {classes!r}.")
    return ids


def ids_of_labels(values: Any, ids: dict[Hashable, int], name: str, where: ArrayLike | None) -> np.ndarray:
    """Class ids of an array of labels of any hashable kind; -1 where `where` leaves out one that is not in `ids`."""
    if on_device(values):
        raise TypeError(f"labels=[...] names classes of arrays of the host; {name} is a JAX array: give class ids.")
    array = values if isinstance(values, np.ndarray) else _array_of_labels(values)
    try:
        present, inverse = _distinct(array)
    except TypeError as error:  # a row of labels in a list of lists is itself no label
        raise TypeError(f"{name} must hold labels (batch axes: as a NumPy array), but {error}.") from None
    codes = np.array([ids.get(label, -1) for label in present], np.int64)
    result = codes[inverse].reshape(array.shape)
    unknown = result < 0
    if where is not None and not on_device(where):
        unknown = unknown & np.asarray(as_mask(where))
    if unknown.any():
        index = np.argwhere(unknown)[0].tolist()
        label = array[tuple(index)]
        label = label.item() if isinstance(label, np.generic) else label
        raise ValueError(
            f"{name}[{', '.join(map(str, index))}] is {label!r}, which is not among labels {list(ids)!r};"
            " where= leaves examples out."
        )
    return result


def _array_of_labels(values: Any) -> np.ndarray:
    array = values.to_numpy() if hasattr(values, "to_numpy") else None
    if array is None:
        array = np.empty(len(values), object)
        array[:] = values
    return np.asarray(array)


def _distinct(array: np.ndarray) -> tuple[list[Hashable], np.ndarray]:
    """The labels that occur, as Python values, and the place of each element among them."""
    if array.dtype != object:
        present, inverse = np.unique(array, return_inverse=True)
        return present.tolist(), inverse
    places: dict[Hashable, int] = {}
    inverse = np.array([places.setdefault(label, len(places)) for label in array.ravel()], np.int64)
    return list(places), inverse


def soft_confusion_matrix(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_classes: int | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> Array:
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
    array([[0.75, 0.25],
           [0.75, 1.25]])
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
) -> Array:
    """One 2x2 table per label from indicator arrays.

    Args:
        y_true, y_pred: 0 or 1 (or bool), `(..., n, L)`; a negative value leaves out that label of that example.
        sample_weight, where, groups: per example, `(..., n)`.

    Returns:
        `(..., L, 2, 2)`, with groups `(..., L, G, 2, 2)`; each `[[TN, FP], [FN, TP]]`. Errors as `confusion_matrix`.

    >>> multilabel_confusion_matrix([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[1, 0],
            [0, 1]]])
    """
    true, pred = as_array(y_true, "y_true"), as_array(y_pred, "y_pred")
    if min(true.ndim, pred.ndim) < 2 or true.shape[-2:] != pred.shape[-2:]:
        raise ValueError(
            "y_true and y_pred must have shape (..., n, L) with the same n and L, one column per label;"
            f" got {true.shape} and {pred.shape}."
        )

    def repeated_for_labels(per_example: ArrayLike | None) -> Array | None:
        if per_example is None:
            return None
        array = as_array(per_example, "sample_weight, where or groups")
        return array[..., None, :] if array.ndim else array

    kept = None if where is None else as_mask(where)
    axes: list[_Axis] = []
    for name, indicators in (("y_true", true), ("y_pred", pred)):
        check_integer(indicators, name)
        of_rows = None if kept is None or kept.ndim == 0 else kept[..., None]
        axes.append((name, ids_in_range(indicators, name, 2, of_rows).swapaxes(-1, -2), 2))
    weights, mask, group_ids = map(repeated_for_labels, (sample_weight, kept, groups))
    return count(axes, weights, mask, group_ids, num_groups, labels_are_batch=True)


def confusion_matrix_at_thresholds(
    y_true: ArrayLike,
    y_score: ArrayLike,
    thresholds: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> Array:
    """One 2x2 table per threshold, where `y_score >= threshold` predicts class 1.

    Each score is placed among the sorted thresholds by bisection, and cumulative sums of that one histogram give all
    tables: O(n log T), not a pass per threshold.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`.
        y_score: real numbers, `(..., n)`, compared in float64 on the host. A NaN score is neither above nor below a threshold:
            on the host it raises unless `where` leaves it out, in a JAX array it drops its example.
        thresholds: `(T,)`, in any order.

    Returns:
        `(..., T, 2, 2)`, with groups `(..., T, G, 2, 2)`; each `[[TN, FP], [FN, TP]]`. Errors as `confusion_matrix`.

    >>> confusion_matrix_at_thresholds([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.9], [0.5, 0.6])
    array([[[1, 1],
            [0, 2]],
    <BLANKLINE>
           [[2, 0],
            [1, 1]]])
    """
    mask = None if where is None else as_mask(where)
    scores, cuts = as_float(y_score, "y_score"), as_float(thresholds, "thresholds")
    check_no_nan(scores, "y_score", mask)
    if cuts.ndim != 1 or cuts.size == 0:
        raise ValueError(f"thresholds must have shape (T,) with at least one threshold, got {cuts.shape}.")
    truth = as_array(y_true, "y_true")
    check_binary(truth)
    order = xp.argsort(cuts)
    axes = [("y_true", truth, 2), ("y_score", bins_between(cuts[order], scores), cuts.size + 1)]
    histogram = count(axes, sample_weight, mask, groups, num_groups)
    below = xp.cumsum(histogram, -1)[..., :-1]
    reached = lax.cumsum(histogram, histogram.ndim - 1, reverse=True)[..., 1:]
    tables_last = xp.stack([below, reached], -1)[..., xp.argsort(order), :]  # (..., G, 2, T, 2)
    return xp.moveaxis(tables_last, -2, -3 if groups is None else -4)


def one_vs_rest(counts: ArrayLike) -> Array:
    """The 2x2 table of each class against all others, `[[TN, FP], [FN, TP]]`.

    Returns:
        `(..., K, 2, 2)`. Integers stay integers: int64 on the host, on the device int32 (or their own wider dtype), exact while
        the cells of the result are below 2^31. Floats are added up without a subtraction, so small cells keep their digits
        beside large ones.

    Raises:
        TypeError, ValueError: `counts` is not numeric or not of shape `(..., K, K)`.

    >>> one_vs_rest([[5, 1], [2, 9]])[0]
    array([[9, 2],
           [1, 5]])
    """
    array = as_array(counts, "counts")
    if not is_integer(array):
        return tables(*cells(as_counts(counts)))
    check_square(array, "counts")
    if array.dtype.itemsize < 4 or not is_jax(array):
        array = array.astype(np.int32 if is_jax(array) else np.int64)
    return _integer_tables(array)


@compiled
def _integer_tables(counts: Array) -> Array:
    tp, fp, fn = hits_and_misses(counts)
    total = counts.sum((-2, -1), keepdims=True)[..., 0]
    return tables(tp, fp, fn, total - tp - fp - fn).astype(counts.dtype)


def normalize(counts: ArrayLike, over: Literal["true", "pred", "all"] = "true") -> Array:
    """`counts` as fractions of each true class, `C_ij / sum_j C_ij`, each predicted class, `C_ij / sum_i C_ij`, or all.

    Returns:
        `(..., K, K)`, float in [0, 1]. A row, column or matrix without examples stays 0, as in scikit-learn.

    Raises:
        TypeError, ValueError: `over` is another word; `counts` is not numeric or not of shape `(..., K, K)`.

    >>> normalize([[3, 1], [0, 0]], over="true")
    array([[0.75, 0.25],
           [0.  , 0.  ]])
    """
    axes = {"true": (-1,), "pred": (-2,), "all": (-2, -1)}
    if over not in axes:
        raise ValueError(f'over must be "true", "pred" or "all", got {over!r}.')
    return proportions(counts, axes=axes[over])


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
    if not is_known(labels):
        raise TypeError(f"check_labels looks at the values of {name}, which jit, vmap and grad hide: call it outside.")
    array = np.asarray(as_array(labels, name))
    as_class_ids(array[:0], name, size)
    refuse_where((array < 0) | (array >= size), array, name, f"but class ids must lie in [0, {size}).")


def count(
    axes: Sequence[_Axis],
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
    rows: Array | None = None,
    *,
    labels_are_batch: bool = False,
) -> Array:
    """Check the arguments and count them into a table with one axis per entry of `axes`, groups first.

    `labels_are_batch`: the axis before the examples is one of labels, of which there may be several for one example.
    """
    if num_groups is not None and groups is None:
        raise ValueError("num_groups says how many groups there are, but groups, their ids, are missing.")
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
    ids = tuple(ids_in_range(x, name, size, mask) for (name, x), size in zip(given.items(), sizes, strict=True))
    if on_device(ids, weights, mask, rows):
        return _joint_histogram(tuple(map(_narrowed, ids, sizes)), weights, mask, rows, sizes=sizes)
    some_are_ignored = any(x is not labels for x, labels in zip(ids, given.values(), strict=True))
    return _joint_histogram_on_host(ids, weights, mask, rows, sizes, some_are_ignored)


def _sizes(axes: Sequence[_Axis], given: dict[str, Array]) -> tuple[int, ...]:
    """The number of classes of each axis; where it was left out, the largest class id of all such axes (groups apart) + 1."""

    def largest(names: list[str]) -> int:
        for name in names:
            if is_jax(given[name]):
                size = "num_groups" if name == "groups" else "num_classes"
                raise ValueError(f"{size} is needed where {name} is a JAX array: it sets the shape of the result.")
            as_class_ids(given[name][..., :0], name, 1)
        return max([0, *(int(given[name].max()) for name in names if given[name].size)]) + 1

    unknown = [name for name, _, size in axes if size is None and name != "groups"]
    of_classes = largest(unknown) if unknown else 0
    return tuple(size if size is not None else largest([name]) if name == "groups" else of_classes for name, _, size in axes)


def _narrowed(ids: Array, size: int) -> Array:
    """Valid ids of the host in the smallest dtype that holds them, which reach the device sooner."""
    return ids if is_jax(ids) else ids.astype(np.int8 if size <= 127 else np.int16 if size <= 32767 else np.int32)


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
    per_example = [x.shape for x in (*ids, weights, mask) if x is not None] + ([] if rows is None else [rows.shape[:-1]])
    *batch_shape, n = np.broadcast_shapes(*per_example)
    batch, num_cells, window = math.prod(batch_shape), math.prod(sizes), () if rows is None else rows.shape[-1:]
    unweighted = weights is None and rows is None
    table = np.zeros((batch, num_cells, *window), np.int64 if unweighted else np.float64)
    at_once = max(1, _EXAMPLES_AT_ONCE // max(n, 1))

    def entries(x: np.ndarray, begin: int, *window: int) -> np.ndarray:
        """Some batch entries of an argument; one that all entries share stays as it is."""
        if math.prod(x.shape[: x.ndim - 1 - len(window)]) == 1:
            return x.reshape((1, n, *window))
        return np.broadcast_to(x, (*batch_shape, n, *window)).reshape((batch, n, *window))[begin : begin + at_once]

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

        def add(values: np.ndarray | None, flat: np.ndarray = flat, number: int = number) -> np.ndarray:
            return np.bincount(flat, values, number * num_cells).reshape(number, num_cells)

        end = begin + number
        amount = None if weights is None else np.broadcast_to(entries(weights, begin), shape).ravel()[taken]
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

    def flat(x: Array, *window: int) -> Array:
        lead = x.shape[: x.ndim - 1 - len(window)]
        if math.prod(lead) == 1:  # stays small; broadcast by whoever needs the batch axis
            return x.reshape((1, *x.shape[len(lead) :]))
        return jnp.broadcast_to(x, (*batch_shape, n, *window)).reshape((batch, n, *window))

    ids = tuple(map(flat, ids))
    keep = jnp.full((1, n), True) if mask is None else flat(mask)
    if unweighted:
        return _count_ids(batch, sizes, ids, keep).reshape((*batch_shape, *sizes))

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
        flat_values = jnp.broadcast_to(values, (batch, n, *window)).reshape((-1, *window))
        table = _sum_by_cell(cell, flat_values, math.prod((batch, *sizes)), most=n)
    return table.reshape((*batch_shape, *sizes, *window))


def _iota(shape: tuple[int, ...], dimension: int) -> Array:
    return jax.lax.broadcasted_iota(jnp.int32, shape, dimension)


def _count_ids(batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array) -> Array:
    """Integer table `(batch, *sizes)`; ids and keep are `(1 or batch, n)`."""
    methods = {"cpu": partial(_count_in_chunks, batch, sizes), "default": partial(_count_at_once, batch, sizes)}
    return jax.lax.platform_dependent(ids, keep, **methods)


def _count_at_once(batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array) -> Array:
    """By one scatter of ones."""
    one = jnp.ones((), jnp.int32)
    return _add_at(jnp.zeros((batch, *sizes), jnp.int32), (_iota((batch, 1), 0), *ids), keep, one)


def _count_in_chunks(batch: int, sizes: tuple[int, ...], ids: tuple[Array, ...], keep: Array) -> Array:
    """In a loop over chunks of examples.

    XLA's CPU backend writes the scatter's indices and ones to memory first. In chunks they stay in the cache, which makes
    ten million labels cost little more than reading them (2.5 times faster than at once).
    """
    n = keep.shape[-1]
    length = min(n, max(1, 2**16 // max(1, batch)))

    def add_chunk(i: Array | int, table: Array) -> Array:
        start = jnp.minimum(i * length, n - length)  # the last chunk overlaps the one before: count its new part only
        new = start + _iota((1, length), 1) >= i * length
        chunk = [jax.lax.dynamic_slice_in_dim(x, start, length, axis=1) for x in (keep, *ids)]
        return _add_at(table, (_iota((batch, 1), 0), *chunk[1:]), chunk[0] & new, jnp.ones((), jnp.int32))

    # The first chunk stands before the loop, so that the loop starts from a table that varies over devices as the ids do.
    table = add_chunk(0, jnp.zeros((batch, *sizes), jnp.int32))
    return jax.lax.fori_loop(1, -(-n // length), add_chunk, table) if length < n else table


def _add_at(table: Array, ids: tuple[Array, ...], keep: Array, values: Array) -> Array:
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


def _ravel(ids: tuple[Array, ...], sizes: tuple[int, ...], keep: Array) -> Array:
    """The number of each example's cell in the flattened table; past the end where not `keep` or an id is out of range."""
    cell = jnp.zeros_like(keep, jnp.int32)
    for x, size in zip(ids, sizes, strict=True):
        keep = keep & _in_range(x, size)
        cell = cell * size + x.astype(jnp.int32)
    return jnp.where(keep, cell, math.prod(sizes))


def _sum_by_cell(cell: Array, values: Array, num_cells: int, most: int) -> Array:
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


def _scatter_add(index: Array, values: Array, size: int) -> Array:
    return jnp.zeros((size, *values.shape[1:]), values.dtype).at[index].add(values, mode="drop")


def _sum_in_lanes(cell: Array, values: Array, num_cells: int) -> Array:
    """Every cell has a slot for each run of SLOT_SIZE examples; tables of slots are added in pairs."""
    n = len(cell)
    num_lanes = 1 << (n // SLOT_SIZE).bit_length()
    lane = _iota(cell.shape, 0) // -(-n // num_lanes)
    slot = jnp.where(cell < num_cells, lane * num_cells + cell, num_lanes * num_cells)
    lanes = _scatter_add(slot, values, num_lanes * num_cells).reshape((num_lanes, num_cells, *values.shape[1:]))
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


def _sum_in_slots(cell: Array, values: Array, num_cells: int, most: int) -> Array:
    """A cell has as many slots as its number of values asks for, which take turns; their sums are summed in the same way."""
    n = len(cell)
    count = _count_ids(1, (num_cells,), (cell[None],), jnp.full((1, n), True))[0]
    num_slots = count // SLOT_SIZE + 1
    first_slot = jnp.cumsum(num_slots) - num_slots
    turn = jax.lax.rem(_iota(cell.shape, 0), num_slots.at[cell].get(mode="fill", fill_value=1))
    all_slots = num_cells + n // SLOT_SIZE
    slot = jnp.where(cell < num_cells, first_slot.at[cell].get(mode="clip") + turn, all_slots)
    cell_of_slot = jnp.repeat(jnp.arange(num_cells, dtype=jnp.int32), num_slots, total_repeat_length=all_slots)
    return _sum_by_cell(cell_of_slot, _scatter_add(slot, values, all_slots), num_cells, most // SLOT_SIZE + 1)


def _in_range(ids: Array, size: int) -> Array:
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(jnp.int32)  # int8 cannot be compared with 200
    return (wide >= 0) & (wide < size)
