"""Count labels and predictions into a confusion matrix `(..., K, K)`, which every metric reads.

Rows are true classes and columns are predicted classes. The last axis of labels has the `n`
examples; `y_prob` and indicator arrays have one more axis behind it, for classes or labels. Extra
leading axes are batch axes and broadcast: predictions of a thousand checkpoints `(1000, n)` with
one `y_true` `(n,)` give `(1000, K, K)`. Labels are NumPy arrays, JAX arrays or lists of any integer
dtype, or bool.

- **A negative label drops its example**, whether in `y_true`, `y_pred` or `groups`: -1 and -100
  mean "ignore". A label at or beyond `num_classes` is a mistake. In NumPy arrays it raises. In JAX
  arrays, whose values are not inspected, it drops its example, too; outside of jit, `check_labels`
  raises for it. (If x64 is off, JAX cuts a 64-bit label that is passed into jit to 32 bits.)
- **One-hot rows are not read as a batch**: a NumPy array `(n, K)` of 0 and 1 with a single 1 in
  each row raises if K is `num_classes`, or if `num_classes` is left out.
- `sample_weight` `(..., n)`: weight 2 equals the row written twice, weight 0 the row left out.
  Without weights the counts are exact integers: int64 for NumPy arrays, int32 for JAX arrays (up to
  2^31 - 1 per cell). With weights they are floats.
- `where` `(..., n)`, bool: False leaves the example out, even if it holds NaN.
- `groups` `(..., n)` with `num_groups` adds an axis before the matrix: `(..., G, K, K)`.

Mistakes in dtypes, shapes and sizes raise TypeError or ValueError, also under jit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from jaxmetrics._bins import bins_between
from jaxmetrics._cell_sums import cells, proportions, tables, tp_fp_fn
from jaxmetrics._compilation import compiled
from jaxmetrics._counting import Axis, count
from jaxmetrics._labels import as_names
from jaxmetrics._namespaces import Array, is_jax, is_known, lax, on_device, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_class_ids,
    as_counts,
    as_float,
    as_mask,
    as_rows,
    as_wide,
    check_binary,
    check_examples,
    check_integer,
    check_no_nan,
    check_option,
    check_real,
    check_size,
    check_square,
    ids_in_range,
    is_integer,
    on_host,
    refuse_where,
    shapes_of,
)
from jaxmetrics._wording import element

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
    """Compute the confusion matrix: `C[i, j]` counts the examples of class i predicted as class j.

    Args:
        y_true, y_pred: true and predicted class ids, `(..., n)`; with `labels`, members of
            `labels`, of any hashable type. A negative class id drops its example.
        num_classes: number of classes K, static. NumPy arrays may do without: the default is the
            largest class id + 1.
        labels: the K classes in the order of the rows, for NumPy arrays and lists. A label that is
            not among them raises, unless `where` leaves out its example.
        sample_weight: weight of each example, `(..., n)`; weight 2 equals the row written twice.
        where: bool, `(..., n)`; False leaves the example out, even if it holds NaN.
        groups, num_groups: group id of each example, `(..., n)`, and the number of groups G, to get
            one matrix per group.

    Returns:
        Counts `(..., K, K)`, or `(..., G, K, K)` with groups; integers, or floats with
        `sample_weight`.

    Raises:
        TypeError: labels that are not integers, a mask that is not bool, a `num_classes` that is
            not a Python int.
        ValueError: unequal numbers of examples, batch axes that do not broadcast, JAX arrays
            without `num_classes`. For NumPy arrays also a class id at or beyond `num_classes`, a
            label that is not among `labels`, and a weight that is NaN, infinite or negative.

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
    axes = class_axes(named, num_classes, labels, where)
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
    """Compute the paired confusion matrix of two classifiers A and B on the same examples.

    `C[i, j, k]` counts the examples of class i that A predicted as j and B as k. It contains all
    that `compare` needs.

    Args:
        y_true, y_pred_a, y_pred_b: true class ids and the predictions of A and B, `(..., n)`; with
            `labels`, members of `labels`. A negative class id drops its example.
        num_classes: number of classes K, static; for NumPy arrays by default the largest class id +
            1.
        labels: the K classes in the order of the axes, for NumPy arrays and lists.
        sample_weight: weight of each example, `(..., n)`; weight 2 equals the row written twice.
        where: bool, `(..., n)`; False leaves the example out.
        groups, num_groups: group id of each example, `(..., n)`, and the number of groups G.

    Returns:
        Counts `(..., K, K, K)`, or `(..., G, K, K, K)` with groups. The sum over the last axis is
        the confusion matrix of A, the sum over the axis before it the confusion matrix of B.

    Raises:
        TypeError, ValueError: the same mistakes for which `confusion_matrix` raises.

    >>> paired_confusion_matrix([0, 1, 1], [0, 1, 0], [0, 0, 0])
    array([[[1, 0],
            [0, 0]],
    <BLANKLINE>
           [[1, 0],
            [1, 0]]])
    """
    named: dict[str, Any] = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    axes = class_axes(named, num_classes, labels, where)
    return count(axes, sample_weight, where, groups, num_groups)


def class_axes(
    named: dict[str, Any],
    num_classes: int | None,
    labels: Sequence[Hashable] | None,
    where: ArrayLike | None,
) -> list[Axis]:
    """Make axes of the same K classes; labels become class ids."""
    if labels is None:
        size = None if num_classes is None else check_size(num_classes, "num_classes")
        return [(name, values, size) for name, values in named.items()]
    classes = as_names(labels, "labels")
    if num_classes is not None and num_classes != len(classes):
        raise ValueError(f"labels names {len(classes)} classes, but num_classes is {num_classes}.")
    ids = ids_by_label(classes)
    return [
        (name, ids_of_labels(values, ids, name, where), len(classes))
        for name, values in named.items()
    ]


def strings_among(named: Mapping[str, Any]) -> list[str] | None:
    """Return the labels that occur, sorted, if they are strings; None for class ids."""
    arrays = [as_array(values, name) for name, values in named.items() if not is_jax(values)]
    found = [x for array in arrays if array.dtype.kind in "UO" for x in array.ravel().tolist()]
    return sorted(set(found)) if found and all(isinstance(x, str) for x in found) else None


def ids_by_label(labels: Iterable[Hashable]) -> dict[Hashable, int]:
    """Map each label to its class id."""
    classes = as_names(labels, "labels")
    classes = [x.item() if isinstance(x, np.generic) else x for x in classes]
    try:
        ids = {label: i for i, label in enumerate(classes)}
    except TypeError as error:
        raise TypeError(f"labels must be hashable, but {error}.") from None
    if not classes or len(ids) < len(classes):
        raise ValueError(f"labels must name each class once, and at least one, got {classes!r}.")
    return ids


def ids_of_labels(
    values: Any, ids: dict[Hashable, int], name: str, where: ArrayLike | None
) -> np.ndarray:
    """Convert labels of any hashable type to class ids.

    A label that is not in `ids` raises, or becomes -1 where `where` leaves it out.
    """
    if is_jax(values):
        raise TypeError(
            f"labels=[...] needs NumPy arrays or lists, but {name} is a JAX array: pass class ids."
        )
    array = _array_of_labels(values, name)
    try:
        present, inverse = _distinct(array)
    except TypeError as error:  # a row in a list of lists is not a label
        raise TypeError(
            f"{name} must hold labels (batch axes: as a NumPy array), but {error}."
        ) from None
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
            f"{element(name, index)} is {label!r}, which is not among labels {list(ids)!r}; use"
            " where= to leave examples out."
        )
    return result


def _array_of_labels(values: Any, name: str) -> np.ndarray:
    if not isinstance(values, list | tuple):
        return on_host(values, name)
    array = np.empty(len(values), object)  # NumPy would convert 1 beside "a" to a string
    array[:] = values
    return array


def _distinct(array: np.ndarray) -> tuple[list[Hashable], np.ndarray]:
    """Find the labels that occur, as Python values, and the position of each element among them."""
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
    """Compute the soft confusion matrix: `C[i, j]` sums `y_prob[.., j]` over examples of class i.

    This is the expected confusion matrix if each prediction is drawn from its probabilities. It is
    linear in `y_prob` and `sample_weight`, so any smooth metric of it is a differentiable loss.
    `y_prob` is summed unchanged: rows are neither normalised nor passed through a softmax.

    Args:
        y_true: class ids, `(..., n)`; a negative class id drops its example.
        y_prob: probabilities, `(..., n, K)`.
        num_classes: number of classes K; checked against `y_prob`, and not needed otherwise.
        sample_weight: weight of each example, `(..., n)`.
        where: bool, `(..., n)`; False leaves the example out.
        groups, num_groups: group id of each example, `(..., n)`, and the number of groups G.

    Returns:
        Sums `(..., K, K)`, or `(..., G, K, K)` with groups; floats.

    Raises:
        TypeError, ValueError: the same mistakes for which `confusion_matrix` raises.

    >>> soft_confusion_matrix([0, 1, 1], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    array([[0.75, 0.25],
           [0.75, 1.25]])
    """
    probs = as_float(as_rows(y_prob, "y_prob"), "y_prob")
    if probs.ndim < 2:
        raise ValueError(
            f"y_prob must have shape (..., n, K), one probability per class, got {probs.shape}."
        )
    k = probs.shape[-1]
    if num_classes is not None and check_size(num_classes, "num_classes") != k:
        raise ValueError(
            f"y_prob has {k} classes on its last axis, but num_classes is {num_classes}."
        )
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
    """Compute one 2x2 confusion matrix per label of a multilabel problem, from indicator arrays.

    Args:
        y_true, y_pred: 0 or 1 (or bool), `(..., n, L)`; a negative value drops this label of this
            example.
        sample_weight: weight of each example, `(..., n)`.
        where: bool, `(..., n)`; False leaves the example out.
        groups, num_groups: group id of each example, `(..., n)`, and the number of groups G.

    Returns:
        Tables `[[TN, FP], [FN, TP]]`, `(..., L, 2, 2)`, or `(..., L, G, 2, 2)` with groups.

    Raises:
        TypeError, ValueError: the same mistakes for which `confusion_matrix` raises.

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
            "y_true and y_pred must have shape (..., n, L) with the same n and L, one column per"
            f" label; got {true.shape} and {pred.shape}."
        )

    def repeated_for_labels(per_example: ArrayLike | None) -> Array | None:
        if per_example is None:
            return None
        array = as_array(per_example, "sample_weight, where or groups")
        return array[..., None, :] if array.ndim else array

    given_mask = as_mask(where)
    check_examples(shapes_of(y_true=true[..., 0], y_pred=pred[..., 0], where=given_mask))
    label_mask = given_mask[..., None] if given_mask is not None and given_mask.ndim else None
    axes: list[Axis] = []
    for name, indicators in (("y_true", true), ("y_pred", pred)):
        check_integer(indicators, name)
        axes.append((name, ids_in_range(indicators, name, 2, label_mask).swapaxes(-1, -2), 2))
    weights, mask, group_ids = map(repeated_for_labels, (sample_weight, given_mask, groups))
    return count(axes, weights, mask, group_ids, num_groups, refuse_columns=False)


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
    """Compute one 2x2 confusion matrix per threshold; `y_score >= threshold` predicts class 1.

    Scores are counted into a histogram between the sorted thresholds, whose cumulative sums give
    all tables: O(n log T) instead of one pass per threshold.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; a negative value drops its example.
        y_score: real numbers, `(..., n)`. A NaN score is neither above nor below a threshold: in a
            NumPy array it raises unless `where` leaves its example out, in a JAX array it drops its
            example. XLA compares JAX numbers below 1.2e-38 (float64: 2.2e-308) as 0.
        thresholds: `(T,)`, in any order. For scores of float32 or narrower dtypes they are rounded
            to float32, so that a float32 score of 0.7 is not below a threshold of 0.7.
        sample_weight: weight of each example, `(..., n)`.
        where: bool, `(..., n)`; False leaves the example out.
        groups, num_groups: group id of each example, `(..., n)`, and the number of groups G.

    Returns:
        Tables `[[TN, FP], [FN, TP]]`, `(..., T, 2, 2)`, or `(..., T, G, 2, 2)` with groups.

    Raises:
        TypeError, ValueError: the same mistakes for which `confusion_matrix` raises.

    >>> confusion_matrix_at_thresholds([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.9], [0.5, 0.6])
    array([[[1, 1],
            [0, 2]],
    <BLANKLINE>
           [[2, 0],
            [1, 1]]])
    """
    mask = as_mask(where)
    scores, cuts = as_array(y_score, "y_score"), as_float(thresholds, "thresholds")
    check_real(scores, "y_score")
    check_no_nan(scores, "y_score", mask)
    if cuts.ndim != 1 or cuts.size == 0:
        raise ValueError(
            f"thresholds must have shape (T,) with at least one threshold, got {cuts.shape}."
        )
    truth = as_array(y_true, "y_true")
    check_integer(truth, "y_true")
    order = xp.argsort(cuts)
    axes = [("y_true", truth, 2), ("y_score", bins_between(cuts[order], scores), cuts.size + 1)]
    histogram = count(axes, sample_weight, mask, groups, num_groups)  # which checks the shapes
    check_binary(truth, "y_true", mask)
    predicted_0 = xp.cumsum(histogram, -1)[..., :-1]
    predicted_1 = lax.cumsum(histogram, histogram.ndim - 1, reverse=True)[..., 1:]
    # In the original order of the thresholds, (..., G, 2, T, 2).
    counts = xp.stack([predicted_0, predicted_1], -1)[..., xp.argsort(order), :]
    return xp.moveaxis(counts, -2, -3 if groups is None else -4)


def one_vs_rest(counts: ArrayLike) -> Array:
    """Compute the 2x2 table of each class against all others, `[[TN, FP], [FN, TP]]`.

    Args:
        counts: confusion matrix, `(..., K, K)`, row = true class.

    Returns:
        Tables `(..., K, 2, 2)`. Integers stay integers: int64 for NumPy arrays (floats if their sum
        reaches 2^62), int32 or their own wider dtype for JAX arrays, exact if every cell of the
        result is below 2^31. Floats are added without any subtraction, so that small cells keep
        their digits beside large ones.

    Raises:
        TypeError, ValueError: `counts` is not numeric or not of shape `(..., K, K)`.

    >>> one_vs_rest([[5, 1], [2, 9]])[0]
    array([[9, 2],
           [1, 5]])
    """
    array = as_array(counts, "counts")
    if not is_jax(array) and is_integer(array):
        array = as_wide(array)
    if not is_integer(array):
        return tables(*cells(as_counts(array)))
    check_square(array, "counts")
    return _integer_tables(array.astype(np.int32) if array.dtype.itemsize < 4 else array)


@compiled
def _integer_tables(counts: Array) -> Array:
    tp, fp, fn = tp_fp_fn(counts)
    total = counts.sum((-2, -1), keepdims=True)[..., 0]
    return tables(tp, fp, fn, total - tp - fp - fn).astype(counts.dtype)


def normalize(counts: ArrayLike, over: Literal["true", "pred", "all"] = "true") -> Array:
    """Normalise a confusion matrix over its true classes, its predicted classes, or all cells.

    `over="true"` gives `C_ij / sum_j C_ij`, "pred" `C_ij / sum_i C_ij`, "all" `C_ij / sum_ij C_ij`.

    Args:
        counts: confusion matrix, `(..., K, K)`, row = true class.
        over: `"true"`, `"pred"` or `"all"`.

    Returns:
        Fractions `(..., K, K)`, floats in [0, 1]. A row, column or matrix without examples stays 0,
        as in scikit-learn.

    Raises:
        TypeError, ValueError: `over` is another word; `counts` is not numeric or not of shape
            `(..., K, K)`.

    >>> normalize([[3, 1], [0, 0]], over="true")
    array([[0.75, 0.25],
           [0.  , 0.  ]])
    """
    axes = {"true": (-1,), "pred": (-2,), "all": (-2, -1)}
    check_option(over, "over", tuple(axes))
    return proportions(counts, axes=axes[over])


def check_labels(labels: ArrayLike, *, num_classes: int, name: str = "labels") -> None:
    """Raise if a label lies outside `[0, num_classes)`.

    `confusion_matrix` silently drops such labels of JAX arrays. The check needs their values, so it
    cannot run under jit.

    Args:
        labels: class ids of any shape, NumPy or JAX; negative class ids raise, too.
        num_classes: number of classes K.
        name: name of the argument in the error message.

    Raises:
        ValueError: a label is out of range; the message names the first one and its index.
        TypeError: `labels` is not of an integer or bool dtype, or is a tracer.

    >>> check_labels([0, 2, 3], num_classes=3, name="y_true")
    Traceback (most recent call last):
    ValueError: y_true[2] is 3, but class ids must lie in [0, 3).
    """
    size = check_size(num_classes, "num_classes")
    if not is_known(labels):
        raise TypeError(
            f"check_labels needs the values of {name}, which jit, vmap and grad hide: call it"
            " outside of them."
        )
    array = on_host(labels, name)
    as_class_ids(array.ravel()[:0], name, size)
    refuse_where(
        (array < 0) | (array >= size), array, name, f"but class ids must lie in [0, {size})."
    )
