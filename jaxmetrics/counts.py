"""Count labels and predictions into a confusion matrix `(..., K, K)`, which every metric reads.

Rows are true classes and columns are predicted classes. Labels have shape `(..., n)` for n
examples. Arrays with a value for each class or label have one more axis at the end: `y_prob` has
shape `(..., n, K)`. Leading axes are batch axes and broadcast. For example, predictions of shape
`(1000, n)` and `y_true` of shape `(n,)` give matrices of shape `(1000, K, K)`. Labels are integers
or bool, in NumPy arrays, JAX arrays or lists.

- **Examples with a negative label in `y_true` are ignored** (or in `groups`). Common marks for
  missing labels are -1 and -100.
- **A prediction that is not the id of a class is wrong.** In a NumPy array, a negative prediction
  for an example that is not ignored raises an error. To leave the example out, pass `where`. To
  count the prediction as wrong, make its label a class, as in `labels=[-1, 0, 1]`. A label of
  `num_classes` or more also raises an error.
- In a JAX array, no error can be raised, and the matrix has no column for such a prediction: the
  example is not counted. To find such labels, call `check_labels`. An evaluator counts them as
  `num_invalid`.
- **One-hot labels raise an error**, because their rows would be read as a batch. Only NumPy arrays
  of shape `(n, K)` are checked.
- `sample_weight` has shape `(..., n)`. An example of weight 2 counts like two equal examples.
  Without weights, the counts are integers: int64 for NumPy arrays, int32 for JAX arrays (up to 2^31
  - 1 per cell). With weights, the counts are floats.
- `where` is a boolean mask of shape `(..., n)`. Examples for which it is False are ignored, even if
  their values are NaN.
- `groups` has shape `(..., n)` and contains group ids from 0 to `num_groups` - 1. With groups, the
  result has one matrix per group: `(..., G, K, K)` for G groups.

A wrong dtype, shape or size raises TypeError or ValueError, also under jit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np

from jaxmetrics._applied import without_order
from jaxmetrics._arguments.example_arguments import (
    Argument,
    as_probabilities,
    as_scores,
    binary_examples,
    label_examples,
)
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.labels import are_integers, as_names, ordered_categories, sorted_classes
from jaxmetrics._arguments.single import (
    RAVEL,
    ArrayLike,
    as_array,
    as_class_ids,
    as_counts,
    as_float,
    as_mask,
    as_rows,
    as_wide,
    check_integer,
    check_option,
    check_size,
    check_tables,
    ids_in_range,
    is_integer,
    non_negative,
    on_host,
    refuse_where,
    require,
)
from jaxmetrics._places.compilation import compiled, one_program
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, is_jax, lax, on_device, xp
from jaxmetrics._sums.bin_edges import bins_between
from jaxmetrics._sums.cell_sums import cells, proportions, tables, tp_fp_fn
from jaxmetrics._sums.counting import Axis, count
from jaxmetrics._text.wording import element

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


class _CountOptions(TypedDict, total=False):
    num_classes: int | None
    labels: Sequence[Hashable] | None
    sample_weight: ArrayLike | None
    where: ArrayLike | None
    groups: ArrayLike | None
    num_groups: int | None


@overload
def confusion_matrix(  # type: ignore[overload-overlap]  # JAX arrays are array-like, too
    y_true: jax.Array, y_pred: ArrayLike, **options: Unpack[_CountOptions]
) -> jax.Array: ...


@overload
def confusion_matrix(
    y_true: ArrayLike | Sequence[Hashable],
    y_pred: ArrayLike | Sequence[Hashable],
    **options: Unpack[_CountOptions],
) -> np.ndarray: ...


@one_program
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
        y_true, y_pred: true and predicted class ids, or members of `labels`, of shape `(..., n)`.
            Examples with a negative true class id are ignored. Ravel labels of shape (n, T).
        num_classes: number of classes K, a Python int. It is required for JAX arrays. The default
            for NumPy arrays is the largest class id + 1.
        labels: list of the K classes, such as strings, in the order of the rows. It cannot be used
            with JAX arrays.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: bool, of shape `(..., n)`. Examples for which `where` is False are ignored.
        groups, num_groups: group ids of the examples, of shape `(..., n)`, and number of groups G.

    Returns:
        Confusion matrices of shape `(..., K, K)`, or `(..., G, K, K)` with groups. Counts are
        integers, or floats if `sample_weight` is given.

    Raises:
        TypeError: if labels are not integers, if `where` is not boolean, or if `num_classes` is not
            a Python int.
        ValueError: if shapes do not match, if `num_classes` is missing for JAX arrays, or if a
            label is not in `labels`. For NumPy arrays, also if a class id is `num_classes` or more,
            if a prediction for an example that is not ignored is negative, or if a weight is NaN,
            infinite or negative.

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
    >>> confusion_matrix([0, 1, 1], [0, -1, 1], labels=[0, 1, -1])  # -1 is a wrong prediction
    array([[1, 0, 0],
           [0, 1, 1],
           [0, 0, 0]])
    """
    named: dict[str, Any] = {"y_true": y_true, "y_pred": y_pred}
    check_order(**named, sample_weight=sample_weight, where=where, groups=groups)
    axes = class_axes(named, num_classes, labels, where)
    return count(axes, sample_weight, where, groups, num_groups)


@one_program
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

    `C[i, j, k]` counts the examples of class i that A predicted as class j and B as class k.
    `compare` compares A and B by this array.

    Args:
        y_true, y_pred_a, y_pred_b: true class ids and those predicted by A and B, or members of
            `labels`, of shape `(..., n)`. Examples with a negative true class id are ignored.
        num_classes: number of classes K, a Python int. It is required for JAX arrays. The default
            for NumPy arrays is the largest class id + 1.
        labels: list of the K classes, such as strings, in the order of the axes. It cannot be used
            with JAX arrays.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: bool, of shape `(..., n)`. Examples for which `where` is False are ignored.
        groups, num_groups: group ids of the examples, of shape `(..., n)`, and number of groups G.

    Returns:
        Counts of shape `(..., K, K, K)`, or `(..., G, K, K, K)` with groups. The sum over the last
        axis is the confusion matrix of A. The sum over the last axis but one is the confusion
        matrix of B.

    Raises:
        TypeError, ValueError: under the same conditions as `confusion_matrix`.

    >>> paired_confusion_matrix([0, 1, 1], [0, 1, 0], [0, 0, 0])
    array([[[1, 0],
            [0, 0]],
    <BLANKLINE>
           [[1, 0],
            [1, 0]]])
    """
    named: dict[str, Any] = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    check_order(**named, sample_weight=sample_weight, where=where, groups=groups)
    axes = class_axes(named, num_classes, labels, where)
    return count(axes, sample_weight, where, groups, num_groups)


def class_axes(
    named: dict[str, Any],
    num_classes: int | None,
    labels: Sequence[Hashable] | None,
    where: ArrayLike | None,
) -> list[Axis]:
    """Describe one axis of the table for each array of class ids, all with the same K classes;
    labels are first converted to class ids.
    """
    if labels is None:
        size = None if num_classes is None else check_size(num_classes, "num_classes")
        return [(name, values, size) for name, values in named.items()]
    classes = as_names(labels, "labels")
    if num_classes is not None and num_classes != len(classes):
        raise ValueError(
            f"labels contains {len(classes)} classes, but num_classes is {num_classes}. Leave out"
            " num_classes."
        )
    ids = ids_by_label(classes)
    return [
        (name, ids_of_labels(values, ids, name, where), len(classes))
        for name, values in named.items()
    ]


def named_classes(
    metric: Callable[..., Any], named: Mapping[str, Any]
) -> tuple[Callable[..., Any], list[str] | None]:
    """Return the classes if labels are strings, in their order, or None if they are class ids.

    If the strings have no order, the returned metric raises an error if it depends on the order.
    """
    arrays = [as_array(values, name) for name, values in named.items() if not is_jax(values)]
    found = [x for array in arrays if array.dtype.kind in "UO" for x in array.ravel().tolist()]
    if not found or not all(isinstance(x, str) for x in found):
        return metric, None
    if categories := ordered_categories(named):
        return metric, categories
    classes = sorted_classes(found)
    return metric if are_integers(classes) else without_order(metric), classes


def ids_by_label(labels: Iterable[Hashable]) -> dict[Hashable, int]:
    """Map each label to its class id."""
    classes = as_names(labels, "labels")
    classes = [x.item() if isinstance(x, np.generic) else x for x in classes]
    try:
        ids = {label: i for i, label in enumerate(classes)}
    except TypeError as error:
        raise TypeError(f"labels must contain hashable values, but {error}.") from None
    if not classes or len(ids) < len(classes):
        raise ValueError(
            "labels must contain at least one class, and it must contain each class only once,"
            f" got {classes!r}."
        )
    return ids


def ids_of_labels(
    values: Any, ids: dict[Hashable, int], name: str, where: ArrayLike | None
) -> np.ndarray:
    """Convert labels of any hashable type to class ids.

    A label that is not in `ids` raises ValueError. Labels of examples for which `where` is False
    are not checked; unknown ones become -1.
    """
    if is_jax(values):
        raise TypeError(
            f"labels cannot be used with JAX arrays, but {name} is a JAX array. Leave out labels"
            " and pass class ids."
        )
    array = _array_of_labels(values, name)
    try:
        present, inverse = _distinct(array)
    except TypeError as error:  # a row in a list of lists is not a label
        raise TypeError(
            f"{name} must be a flat list or a NumPy array of labels, but {error}.{RAVEL}"
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
            f"{element(name, index)} is {label!r}, which is not one of the classes in labels,"
            f" {list(ids)!r}. Add the class to labels, or pass where= to leave out such examples."
        )
    return result


def _array_of_labels(values: Any, name: str) -> np.ndarray:
    if not isinstance(values, list | tuple):
        return on_host(values, name)
    array = np.empty(len(values), object)  # NumPy would convert 1 beside "a" to a string
    array[:] = values
    return array


def _distinct(array: np.ndarray) -> tuple[list[Hashable], np.ndarray]:
    """Return the distinct labels as Python values, and for each element the index of its label."""
    if array.dtype.kind not in "OT":  # NumPy's strings may be missing, and cannot be sorted then
        present, inverse = np.unique(array, return_inverse=True)
        return present.tolist(), inverse
    places: dict[Hashable, int] = {}
    inverse = np.array([places.setdefault(label, len(places)) for label in array.ravel()], np.int64)
    return list(places), inverse


@one_program
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
    """Compute the soft confusion matrix: `C[i, j]` sums `y_prob[..., j]` over examples of class i.

    This is the expected confusion matrix if each predicted class is drawn at random from `y_prob`.
    The matrix is differentiable, so any smooth metric of it can be a training loss (see
    `metric_loss`). Probabilities are neither normalised nor passed through a softmax.

    Args:
        y_true: class ids of shape `(..., n)`. Examples with a negative class id are ignored.
        y_prob: predicted probabilities of shape `(..., n, K)`.
        num_classes: number of classes K. If given, it must equal the length of the last axis of
            `y_prob`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: bool, of shape `(..., n)`. Examples for which `where` is False are ignored.
        groups, num_groups: group ids of the examples, of shape `(..., n)`, and number of groups G.

    Returns:
        Sums of probabilities, floats of shape `(..., K, K)`, or `(..., G, K, K)` with groups.

    Raises:
        TypeError, ValueError: under the same conditions as `confusion_matrix`. ValueError is also
            raised if `y_prob` is a NumPy array and a probability is NaN, negative or above 1.

    >>> soft_confusion_matrix([0, 1, 1], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])
    array([[0.75, 0.25],
           [0.75, 1.25]])
    """
    check_order(
        y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, where=where, groups=groups
    )
    given = as_rows(y_prob, "y_prob")
    expected = "have shape (..., n, K), with one probability for each class"
    require(given.ndim >= 2, "y_prob", expected, given.shape)
    k = given.shape[-1]
    if num_classes is not None and check_size(num_classes, "num_classes") != k:
        raise ValueError(
            f"The last axis of y_prob has one entry for each of {k} classes, but num_classes is"
            f" {num_classes}. Pass num_classes={k} or leave it out."
        )
    rows = Argument(given, "y_prob", as_probabilities, axes=1)
    return count([("y_true", y_true, k)], sample_weight, where, groups, num_groups, rows)


@one_program
def multilabel_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> Array:
    """Compute one 2x2 confusion matrix per label of a multilabel problem from 0/1 indicator arrays.

    Args:
        y_true, y_pred: 0 or 1 (or bool) for n examples and L labels, of shape `(..., n, L)`. If a
            value of `y_true` is below 0, this label of this example is ignored.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: bool, of shape `(..., n)`. Examples for which `where` is False are ignored.
        groups, num_groups: group ids of the examples, of shape `(..., n)`, and number of groups G.

    Returns:
        Matrices `[[TN, FP], [FN, TP]]`, an array of shape `(..., L, 2, 2)`, or `(..., L, G, 2, 2)`
        with groups.

    Raises:
        TypeError, ValueError: under the same conditions as `confusion_matrix`.

    >>> multilabel_confusion_matrix([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[1, 0],
            [0, 1]]])
    """
    check_order(
        y_true=y_true, y_pred=y_pred, sample_weight=sample_weight, where=where, groups=groups
    )
    true, pred = as_array(y_true, "y_true"), as_array(y_pred, "y_pred")
    check_integer(true, "y_true")
    check_integer(pred, "y_pred")
    read = partial(ids_in_range, size=2, is_truth=False), partial(ids_in_range, size=2)
    examples = label_examples(true, pred, sample_weight, where, *read, name="y_pred")
    group_ids = None if groups is None else as_array(groups, "groups")
    weights, mask, group_ids = (
        x if x is None or x.ndim == 0 else x[..., None, :]
        for x in (examples.weights, examples.mask, group_ids)
    )
    true, pred = examples.ids.swapaxes(-1, -2), examples.values.swapaxes(-1, -2)
    axes = [("y_true", true, 2), ("y_pred", pred, 2)]
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
    """Compute a 2x2 confusion matrix per threshold; class 1 is predicted if `y_score >= threshold`.

    Args:
        y_true: 0 or 1 (or bool), of shape `(..., n)`. Examples whose label is below 0 are ignored.
        y_score: scores, real numbers of shape `(..., n)`. A NaN score raises an error in a NumPy
            array. In a JAX array, an example with a NaN score is ignored.
        thresholds: T thresholds of shape `(T,)`, in any order. They are rounded to float32 if
            scores are float32 or narrower.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: bool, of shape `(..., n)`. Examples for which `where` is False are ignored.
        groups, num_groups: group ids of the examples, of shape `(..., n)`, and number of groups G.

    Returns:
        Matrices `[[TN, FP], [FN, TP]]` in the order of `thresholds`, an array of shape
        `(..., T, 2, 2)`, or `(..., T, G, 2, 2)` with groups.

    Raises:
        TypeError, ValueError: under the same conditions as `confusion_matrix`.

    >>> confusion_matrix_at_thresholds([0, 0, 1, 1], [0.1, 0.5, 0.5, 0.9], [0.5, 0.6])
    array([[[1, 1],
            [0, 2]],
    <BLANKLINE>
           [[2, 0],
            [1, 1]]])
    """
    check_order(
        y_true=y_true, y_score=y_score, sample_weight=sample_weight, where=where, groups=groups
    )
    cuts = as_float(thresholds, "thresholds")
    expected = "have shape (T,) with at least one threshold"
    require(cuts.ndim == 1 and cuts.size > 0, "thresholds", expected, cuts.shape)
    refuse_where(np.isnan, cuts, "thresholds", "but a threshold must be a number.")
    examples = binary_examples(y_true, y_score, sample_weight, where, as_scores, name="y_score")
    bins = _bins_between_unsorted(cuts, examples.values)
    axes = [("y_true", examples.ids, 2), ("y_score", bins, cuts.size + 1)]
    histogram = count(
        axes, examples.weights, examples.mask, groups, num_groups, refuse_columns=False
    )
    return _tables_at_thresholds(cuts, histogram, has_groups=groups is not None)


@compiled
def _bins_between_unsorted(thresholds: Array, scores: Array) -> Array:
    return bins_between(xp.sort(thresholds), scores)


@compiled
def _tables_at_thresholds(thresholds: Array, histogram: Array, *, has_groups: bool) -> Array:
    predicted_0 = xp.cumsum(histogram, -1)[..., :-1]
    predicted_1 = lax.cumsum(histogram, histogram.ndim - 1, reverse=True)[..., 1:]
    # In the original order of the thresholds, (..., G, 2, T, 2).
    rank = xp.argsort(xp.argsort(thresholds))
    counts = xp.stack([predicted_0, predicted_1], -1)[..., rank, :]
    return xp.moveaxis(counts, -2, -4 if has_groups else -3)


def one_vs_rest(counts: ArrayLike) -> Array:
    """Compute the 2x2 confusion matrix of each class against all others, `[[TN, FP], [FN, TP]]`.

    Args:
        counts: confusion matrix of shape `(..., K, K)`; rows are true classes.

    Returns:
        One matrix per class, an array of shape `(..., K, 2, 2)`. Integers stay integers: int64 for
        NumPy arrays, int32 or wider for JAX arrays. Int32 counts are exact below 2^31. NumPy
        integers become floats if their sum is 2^62 or more.

    Raises:
        TypeError, ValueError: if `counts` is not numeric or does not have shape `(..., K, K)`.

    >>> one_vs_rest([[5, 1], [2, 9]])[0]
    array([[9, 2],
           [1, 5]])
    """
    array = as_array(counts, "counts")
    if not is_jax(array) and is_integer(array):
        array = as_wide(array)
    if not is_integer(array):
        return tables(*cells(as_counts(array)))
    check_tables(array, "counts")
    array = non_negative(array, "counts")
    return _integer_tables(array.astype(np.int32) if array.dtype.itemsize < 4 else array)


@compiled
def _integer_tables(counts: Array) -> Array:
    tp, fp, fn = tp_fp_fn(counts)
    total = counts.sum((-2, -1), keepdims=True)[..., 0]
    return tables(tp, fp, fn, total - tp - fp - fn).astype(counts.dtype)


def normalize(counts: ArrayLike, over: Literal["true", "pred", "all"] = "true") -> Array:
    """Normalise a confusion matrix by the sums of its rows, of its columns, or of all cells.

    Args:
        counts: confusion matrix of shape `(..., K, K)`; rows are true classes.
        over: `"true"` divides by the sum of each row, `C_ij / sum_j C_ij`. `"pred"` divides by the
            sum of each column, `C_ij / sum_i C_ij`. `"all"` divides by the sum of all cells.

    Returns:
        Shares in [0, 1], floats of shape `(..., K, K)`. A row, column or matrix without examples is
        filled with 0, as in scikit-learn.

    Raises:
        TypeError, ValueError: if `over` is not `"true"`, `"pred"` or `"all"`, or if `counts` is not
            numeric or does not have shape `(..., K, K)`.

    >>> normalize([[3, 1], [0, 0]], over="true")
    array([[0.75, 0.25],
           [0.  , 0.  ]])
    """
    axes = {"true": (-1,), "pred": (-2,), "all": (-2, -1)}
    check_option(over, "over", tuple(axes))
    return proportions(counts, axes=axes[over])


def check_labels(labels: ArrayLike, *, num_classes: int, name: str = "labels") -> None:
    """Raise ValueError if a label lies outside of `[0, num_classes)`.

    Call this function to find invalid labels in JAX arrays. Functions such as `confusion_matrix`
    ignore examples with such labels without an error.

    Args:
        labels: class ids, a NumPy or JAX array of any shape.
        num_classes: number of classes K.
        name: the name of `labels` in the error message.

    Raises:
        ValueError: if a label is negative, or `num_classes` or more. The message contains the first
            such label and its index.
        TypeError: if `labels` is not of an integer or bool dtype, or if `check_labels` is called
            under jit.

    >>> check_labels([0, 2, 3], num_classes=3, name="y_true")
    Traceback (most recent call last):
    ValueError: y_true[2] is 3, but class ids must lie in [0, 3).
    """
    size = check_size(num_classes, "num_classes")
    array = on_host(labels, name)
    as_class_ids(array.ravel()[:0], name, size)
    refuse_where(
        (array < 0) | (array >= size), array, name, f"but class ids must lie in [0, {size})."
    )
