"""Confusion matrices of data frames and SQL tables, counted by their engine.

Tables are from pandas, Polars (eager or lazy), PyArrow, DuckDB, Ibis, PySpark, Dask or any other
library that narwhals supports. The engine returns only one row per non-empty cell, so a lazy table
needs little memory. The result does not depend on the order of rows or on the engine.

- **Labels** are strings, integers or bool. For categorical columns, the categories are the labels.
  Floats without fractional part are converted to integers.
- **Rows are ignored** if the true label, the prediction or the group is null, NaN or a negative
  integer. `num_ignored` is their number.
- `sample_weight` is the name of a column of weights. If the table has one row per cell of the
  confusion matrix, it is the name of the column of counts. Integers are summed exactly, in int64.
  Sums of floats are rounded only once.
- `groups` and `clusters` are names of columns of ids. The result then has one matrix per group or
  cluster, in additional leading axes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._engines import Cells, Scores, fetch
from jaxmetrics._labels import as_names
from jaxmetrics._validation import as_number, check_option
from jaxmetrics.counts import ids_by_label
from jaxmetrics.ranking.histograms import check_num_bins, score_bins

__all__ = ["TableCounts", "confusion_matrix_of", "paired_confusion_matrix_of", "score_histogram_of"]

_MOST_COUNTS = 2**27  # 1 GB
_ROUNDING = 8 * float(np.finfo(np.float32).eps)  # tolerance for rounding errors of probabilities


class TableCounts(NamedTuple):
    """Counts of the rows of a data frame or SQL table, with the names of classes, groups and
    clusters.

    Attributes:
        counts: array of int64, or float64 if weights are not integers.
        class_names: names of the classes, in the order of the rows and columns of `counts`.
        group_names, cluster_names: names of the groups and clusters, in the order of their axes in
            `counts`. Empty if there are none.
        num_ignored: number (or total weight) of the ignored rows.
    """

    counts: np.ndarray
    class_names: tuple[str, ...]
    group_names: tuple[str, ...]
    cluster_names: tuple[str, ...]
    num_ignored: int | float


def confusion_matrix_of(
    table: Any,
    *,
    y_true: str = "y_true",
    y_pred: str = "y_pred",
    sample_weight: str | None = None,
    groups: str | None = None,
    clusters: str | None = None,
    labels: Sequence[Hashable] | None = None,
) -> TableCounts:
    """Compute the confusion matrix of a data frame or SQL table.

    Args:
        table: a data frame or SQL relation. It may have at most 2^23 different combinations of
            the values in the columns named below.
        y_true, y_pred: names of the columns of true and predicted labels.
        sample_weight: name of a column of weights, such as the number of examples in each row.
        groups, clusters: names of the columns of group ids and of cluster ids. If given, each group
            or cluster is counted separately.
        labels: the K classes in the order of the rows and columns of the confusion matrix. The
            default is all classes that occur, sorted.

    Returns:
        `TableCounts` with `counts` of shape `(K, K)`: `counts[i, j]` is the number of rows of class
        i predicted as class j. The shape is `(G, K, K)` with groups, `(C, K, K)` with clusters, and
        `(G, C, K, K)` with both. For intervals with clusters, pass `cluster_axis=-3`.

    Raises:
        ImportError: if narwhals is not installed.
        TypeError: if `table` is not a table, if a column does not contain labels or weights, or if
            labels are both strings and integers.
        ValueError: if a column is missing, if a label is not in `labels`, if a weight is negative,
            NaN, infinite or null, if a cluster id is null, if no class occurs, if the result has
            too many entries, or if a sum of weights is 2^63 or more.

    >>> import polars as pl
    >>> table = pl.DataFrame({"y_true": ["cat", "dog", "dog"], "y_pred": ["cat", "dog", None]})
    >>> result = confusion_matrix_of(table)
    >>> result.counts, result.class_names, result.num_ignored
    (array([[1, 0],
           [0, 1]]), ('cat', 'dog'), 1)
    >>> cells = pl.DataFrame({"y_true": [0, 0, 1], "y_pred": [0, 1, 1], "count": [90, 10, 2**60]})
    >>> confusion_matrix_of(cells.lazy(), sample_weight="count", labels=[1, 0]).counts
    array([[1152921504606846976,                   0],
           [                 10,                  90]])
    """
    columns = {"y_true": y_true, "y_pred": y_pred}
    return _counted(table, columns, sample_weight, groups, clusters, labels)


def paired_confusion_matrix_of(
    table: Any,
    *,
    y_true: str = "y_true",
    y_pred_a: str = "y_pred_a",
    y_pred_b: str = "y_pred_b",
    sample_weight: str | None = None,
    groups: str | None = None,
    clusters: str | None = None,
    labels: Sequence[Hashable] | None = None,
) -> TableCounts:
    """Compute the paired confusion matrix of a data frame or SQL table, the input of `compare`.

    The same errors are raised as by `confusion_matrix_of`.

    Args:
        table: a data frame or SQL relation. It may have at most 2^23 different combinations of
            the values in the columns named below.
        y_true, y_pred_a, y_pred_b: names of the columns of true labels and of the predictions of A
            and B.
        sample_weight: name of a column of weights, such as the number of examples in each row.
        groups, clusters: names of the columns of group ids and of cluster ids. If given, each group
            or cluster is counted separately.
        labels: the K classes in the order of the axes of `counts`. The default is all classes that
            occur, sorted.

    Returns:
        `TableCounts` with `counts` of shape `(K, K, K)`: `counts[i, j, k]` is the number of rows of
        class i for which A predicts class j and B predicts class k. The shape is `(G, K, K, K)`
        with groups, `(C, K, K, K)` with clusters, and `(G, C, K, K, K)` with both.

    >>> import polars as pl
    >>> table = pl.DataFrame({"y": [0, 1, 1], "old": [0, 1, 0], "new": [0, 0, 0]})
    >>> result = paired_confusion_matrix_of(table, y_true="y", y_pred_a="old", y_pred_b="new")
    >>> result.counts.sum(-1)  # the confusion matrix of A
    array([[1, 0],
           [1, 1]])
    """
    columns = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    return _counted(table, columns, sample_weight, groups, clusters, labels)


def score_histogram_of(
    table: Any,
    *,
    scale: Literal["probability", "logit", "float"],
    y_true: str = "y_true",
    y_score: str = "y_score",
    threshold: float | None = None,
    num_bins: int = 4096,
    sample_weight: str | None = None,
    groups: str | None = None,
    clusters: str | None = None,
    labels: Sequence[Hashable] | None = None,
) -> TableCounts:
    """Compute the histogram of scores of each class from a data frame or SQL table.

    The bins are the same as in `score_histogram`. From the counts, `roc_auc` and
    `average_precision` compute bounds of the value without bins.

    Args:
        table: a data frame or SQL relation. It may have at most 2^23 different combinations of
            the values in the columns named below.
        scale: definition of the bins, `"probability"`, `"logit"` or `"float"`, as in
            `score_histogram`.
        y_true: name of a column of labels, which are 0 and 1, bool, or the two classes in `labels`.
        y_score: name of a column of scores, real numbers.
        threshold: if given, rows with `score >= threshold` and other rows are counted separately.
            It is rounded to float32 if scores are float32.
        num_bins: number of bins B, a power of two from 64 to 2^16.
        sample_weight: name of a column of weights, such as the number of examples in each row.
        groups, clusters: names of the columns of group ids and of cluster ids. If given, each group
            or cluster is counted separately.
        labels: the negative and the positive class, if classes are not 0 and 1.

    Returns:
        `TableCounts` with `counts` of shape `(2, B)`: the histograms of negatives and of positives.
        With a threshold, the shape is `(2, 2, B)` for true class, predicted class and bin. Then
        `counts.sum(-1)` is the confusion matrix, and `counts.sum(-2)` is the histogram.

    Raises:
        TypeError, ValueError: under the same conditions as `confusion_matrix_of`, if a score is NaN
            or null (except in ignored rows), if `scale` is "probability" and a score is not in [0,
            1], or if the classes are not 0 and 1 and `labels` is not given.

    >>> import polars as pl, jaxmetrics as jm
    >>> table = pl.LazyFrame({"y_true": [0, 1, 0, 1], "y_score": [0.001, 0.4, 0.4, 0.99999]})
    >>> counts = score_histogram_of(table, scale="probability", threshold=0.5).counts
    >>> counts.sum(-1)
    array([[2, 0],
           [1, 1]])
    >>> jm.roc_auc(counts.sum(-2))
    AreaBounds(value=np.float64(0.875), low=np.float64(0.75), high=np.float64(1.0))
    """
    check_option(scale, "scale", ("probability", "logit", "float"))
    if threshold is not None:
        threshold = as_number(threshold, "threshold")
    scores = Scores(y_score, scale, check_num_bins(num_bins), threshold)
    return _counted(table, {"y_true": y_true}, sample_weight, groups, clusters, labels, scores)


def _counted(
    table: Any,
    class_columns: dict[str, str],
    sample_weight: str | None,
    groups: str | None,
    clusters: str | None,
    labels: Sequence[Hashable] | None,
    scores: Scores | None = None,
) -> TableCounts:
    """Convert the labels of the cells returned by the engine to indices, and fill the array of
    counts.
    """
    units = {"groups": groups, "clusters": clusters}
    columns = {role: column for role, column in units.items() if column is not None} | class_columns
    cells = fetch(table, columns, sample_weight, scores)
    values = cells.values
    if scores is not None:
        labels = _two_classes(values["y_true"], labels, columns["y_true"])
    numbers = _numbers_by_role(values, class_columns, labels)
    axes = {
        role: np.array([numbers[role].get(x, -1) for x in values[role]], int) for role in values
    }

    is_counted = np.all([axes[role] >= 0 for role in columns if role != "clusters"], axis=0)
    _check_units(cells, is_counted, axes.get("clusters"), sample_weight, clusters)
    if scores is not None:
        axes["bins"] = _bins(cells, is_counted & cells.has_weight, scores)
        numbers["bins"] = range(scores.num_bins)

    shape = [len(numbers[role]) for role in axes]
    counts, num_ignored = _summed(cells, list(axes.values()), shape)
    classes, group_names, cluster_names = (
        tuple(map(str, numbers[role])) for role in ("y_true", "groups", "clusters")
    )
    return TableCounts(counts, classes, group_names, cluster_names, num_ignored)


def _check_units(
    cells: Cells,
    is_counted: np.ndarray,
    cluster_ids: np.ndarray | None,
    sample_weight: str | None,
    clusters: str | None,
) -> None:
    """Raise if weights are invalid, or if a row that is not ignored has no cluster id."""
    num_invalid = cells.num_invalid[is_counted].sum()
    if num_invalid:
        raise ValueError(
            f"sample_weight names the column {sample_weight!r}, in which {num_invalid}"
            " weights are negative, NaN, infinite, null or greater than 2^62. Correct or remove"
            " these rows."
        )
    if cluster_ids is not None and (is_counted & cells.has_weight & (cluster_ids < 0)).any():
        raise ValueError(
            f"clusters names the column {clusters!r}, which contains nulls, but every row"
            " needs an id. If a row belongs to no cluster, give it an id that no other row has."
        )


def _is_ignored(label: Hashable) -> bool:
    return label is None or (isinstance(label, int) and label < 0)


def _numbered(ids: Iterable[Any]) -> dict[Hashable, int]:
    return {x: i for i, x in enumerate(sorted(set(ids)))}


def _numbers_by_role(
    values: dict[str, list[Any]], class_columns: dict[str, str], labels: Sequence[Hashable] | None
) -> dict[str, Any]:
    """Convert the labels of all axes to indices; ignored labels become -1."""
    return dict.fromkeys(class_columns, _class_ids(values, class_columns, labels)) | {
        "groups": _numbered(x for x in values.get("groups", ()) if not _is_ignored(x)),
        "clusters": _numbered(x for x in values.get("clusters", ()) if x is not None),
        "predicted": {False: 0, True: 1},
    }


def _class_ids(
    values: dict[str, list[Any]], columns: dict[str, str], labels: Sequence[Hashable] | None
) -> dict[Hashable, int]:
    """Return a dict from classes to ids, for `labels` or for all classes that occur, sorted."""
    present = {x for role in columns for x in values[role]} - {None}
    if len({isinstance(x, str) for x in present}) > 1:
        named = ", ".join(f"{role} ({column!r})" for role, column in columns.items())
        raise TypeError(
            f"{named} contain both strings and integers. Convert all of them to the same type."
        )
    if labels is None:
        labels = sorted(x for x in present if not _is_ignored(x))
        if not labels:
            raise ValueError(
                f"The column {columns['y_true']!r} contains no class. If a table may be empty,"
                " pass labels=[...] with a list of the classes."
            )
    ids = ids_by_label(labels)
    for role, column in columns.items():
        unknown = [x for x in values[role] if x not in ids and not _is_ignored(x)]
        if unknown:
            raise ValueError(
                f"{role} names the column {column!r}, which contains {unknown[0]!r}, but"
                f" {unknown[0]!r} is not one of the classes in labels, {list(ids)!r}. Remove the"
                " rows with this value, or set the value to null."
            )
    return ids


def _two_classes(
    values: list[Any], labels: Sequence[Hashable] | None, column: str
) -> Sequence[Hashable]:
    """Return the negative and the positive class."""
    if labels is not None:
        classes = as_names(labels, "labels")
        if len(classes) != 2:
            raise ValueError(f"labels must be [negative, positive], got {classes!r}.")
        return classes
    present = {*values} - {None}
    counted = {x for x in present if not _is_ignored(x)}
    if not counted <= {0, 1} or (counted == {1} and -1 in present):
        shown = ", ".join(sorted(map(repr, present))[:5])
        raise ValueError(
            f"y_true names the column {column!r}, which contains {shown}, but the column"
            " must contain 0 and 1, or bool. If the classes have other names, pass"
            " labels=[negative, positive]."
        )
    return [False, True] if any(isinstance(x, bool) for x in present) else [0, 1]


def _bins(cells: Cells, is_counted: np.ndarray, asked: Scores) -> np.ndarray:
    """Return the bin of each cell, by the same function as for arrays."""
    named = f"y_score is the column {asked.column!r}, which contains"
    scores = cells.scores
    if np.isnan(scores[:, is_counted]).any():
        raise ValueError(
            f"{named} NaN or null. Remove the rows with such values, or set their true label to"
            " null."
        )
    if asked.scale == "probability":
        beyond = scores[:, is_counted & ((scores < -_ROUNDING) | (scores > 1 + _ROUNDING)).any(0)]
        if beyond.size:
            raise ValueError(
                f"{named} {beyond.flat[0]:g}, but probabilities must be at least 0 and at most 1."
                ' If the scores are logits, pass scale="logit".'
            )
        scores = np.clip(scores, 0, 1)
    bins, bins_of_greatest = score_bins(scores, scale=asked.scale, size=asked.num_bins)
    if (bins != bins_of_greatest)[is_counted].any():
        raise ArithmeticError(
            f"{named} scores for which the arithmetic of the data frame engine does not"
            " follow IEEE 754."
        )
    return bins


def _summed(
    cells: Cells, axes: list[np.ndarray], shape: list[int]
) -> tuple[np.ndarray, int | float]:
    """Return the sum of weights of each entry of the table, and of ignored rows.

    Integers are summed exactly; sums of other weights are rounded once.
    """
    size = math.prod(shape)
    if size > _MOST_COUNTS:
        raise ValueError(
            f"counts would have the shape {tuple(shape)}, which is more than the limit of"
            f" {_MOST_COUNTS} entries. Use fewer classes, groups or clusters."
        )
    is_kept = np.all([ids >= 0 for ids in axes], axis=0)
    index = sum(ids * math.prod(shape[i + 1 :]) for i, ids in enumerate(axes))
    places, inverse = np.unique(np.where(is_kept, index, size), return_inverse=True)
    digits = np.zeros((len(places), cells.digits.shape[1]), np.int64)
    np.add.at(digits, inverse, cells.digits)
    lowest = min(cells.shifts)
    shifts = [shift - lowest for shift in cells.shifts]
    totals = [sum(map(operator.lshift, row, shifts)) for row in digits.tolist()]
    if not cells.has_integers:
        totals = [math.ldexp(total, lowest) for total in totals]
    elif max(totals, default=0) >= 2**63:
        raise ValueError(
            f"The sample weights of one cell of the counts sum to {max(totals)}, which is too large"
            " for int64. Use smaller weights."
        )
    flat = np.zeros(size + 1, np.int64 if cells.has_integers else np.float64)
    flat[places] = totals
    return flat[:-1].reshape(shape), flat[-1].item()
