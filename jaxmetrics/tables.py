"""Confusion matrices of data frames and SQL tables, counted by their own engine.

A table is one of pandas, Polars (eager or lazy), PyArrow, DuckDB, Ibis, PySpark, Dask or any other
library that narwhals supports. The engine groups and sums, so a lazy table of any length is counted
in little memory; only one row per non-empty cell is fetched. Sums are sums of whole numbers, which
do not depend on the order of addition: every engine returns the same bits.

- **Labels** are strings, integers or bool. Categorical columns are read as their categories, and
  floats that are whole numbers as integers.
- **A row is ignored**, and counted in `num_ignored`, if its truth, prediction or group is null, NaN
  or a negative integer.
- `sample_weight` names a column of weights, or of counts for a table with one row per cell.
  Integers are added exactly, to int64. Floats are truncated 93 binary digits below the greatest of
  them (or at 2^-1062), added exactly, and rounded once: weights above 2^-40 of the greatest lose
  nothing.
- `groups` and `clusters` name columns of ids, which add axes before the others.
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
_ROUNDING = 8 * float(np.finfo(np.float32).eps)  # rounding of probabilities beyond 0 or 1


class TableCounts(NamedTuple):
    """Counts of a table, and the names along their axes.

    Attributes:
        counts: int64, or float64 for weights that are not integers.
        class_names: names of the classes, in the order of rows and columns.
        group_names, cluster_names: sorted names of groups and clusters, in the order of their axes;
            empty without groups or clusters.
        num_ignored: number of rows without a class or group, or their weight.
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
    """Compute the confusion matrix `C[i, j]` (class i predicted as j) of a data frame or SQL table.

    Args:
        table: a data frame or relation, with at most 2^23 non-empty cells.
        y_true, y_pred: names of the columns of labels.
        sample_weight: name of a column of weights, or of counts.
        groups, clusters: names of columns of ids, which add axes.
        labels: the K classes in the order of the rows; by default the classes that occur, sorted.

    Returns:
        `TableCounts` with counts `(K, K)`; with groups `(G, K, K)`; with clusters `(C, K, K)`, for
        functions with `cluster_axis=-3`; with both `(G, C, K, K)`.

    Raises:
        ImportError: narwhals is not installed.
        TypeError: an object that is not a table, columns that do not hold labels or weights,
            strings mixed with integers.
        ValueError: a column that is missing, a label that is not among `labels`, a weight that is
            negative, NaN, infinite or null, a null cluster, no class, too many cells, a sum of 2^63
            or more.

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
    """Compute the paired confusion matrix of a data frame or SQL table, for `compare`.

    Args:
        table: a data frame or relation, with at most 2^23 non-empty cells.
        y_true, y_pred_a, y_pred_b: names of the columns of true labels and predictions of A and B.
        sample_weight: name of a column of weights, or of counts.
        groups, clusters: names of columns of ids, which add axes.
        labels: the K classes in the order of the axes; by default the classes that occur, sorted.

    Returns:
        `TableCounts` with counts `(K, K, K)` by truth, prediction of A and prediction of B; groups
        and clusters add axes before them. It raises the same errors as `confusion_matrix_of`.

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
    """Compute the histogram of scores of two classes of a data frame or SQL table.

    The bins are exactly the same as in `score_histogram`. One pass over the table gives
    `roc_auc` and `average_precision` with certified bounds, and with a threshold the confusion
    matrix.

    Args:
        table: a data frame or relation, with at most 2^23 non-empty cells.
        scale: the spacing of the bins: `"probability"`, `"logit"` or `"float"`; see
            `score_histogram`.
        y_true: name of a column of 0 and 1, or bool, or of the two `labels`.
        y_score: name of a column of real numbers.
        threshold: adds an axis of the predictions `score >= threshold`; rounded to float32 for a
            column of float32.
        num_bins: number of bins B, a power of two from 64 to 2^16.
        sample_weight: name of a column of weights, or of counts.
        groups, clusters: names of columns of ids, which add axes.
        labels: the negative class and the positive one.

    Returns:
        `TableCounts` with counts `(2, B)`, negatives first. With a threshold `(2, 2, B)`: the sum
        over the bins is the confusion matrix, the sum over the predictions (`counts.sum(-2)`) the
        histogram.

    Raises:
        TypeError, ValueError: the mistakes for which `confusion_matrix_of` raises; scores of
            counted rows that are NaN, null or, for `scale="probability"`, not probabilities; truth
            other than 0 and 1 without `labels`.

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
    """Map the labels of the engine's cells to indices, and fill the table."""
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
    """Raise for invalid weights, and for rows that count but belong to no cluster."""
    num_invalid = cells.num_invalid[is_counted].sum()
    if num_invalid:
        raise ValueError(
            f"sample_weight names the column {sample_weight!r}, of which {num_invalid} weights are"
            " negative, NaN, infinite, null or beyond 2^62."
        )
    if cluster_ids is not None and (is_counted & cells.has_weight & (cluster_ids < 0)).any():
        raise ValueError(
            f"clusters names the column {clusters!r}, which holds nulls; each row needs an id, a"
            " unique one if it belongs to no cluster."
        )


def _is_ignored(label: Hashable) -> bool:
    return label is None or (isinstance(label, int) and label < 0)


def _numbered(ids: Iterable[Any]) -> dict[Hashable, int]:
    return {x: i for i, x in enumerate(sorted(set(ids)))}


def _numbers_by_role(
    values: dict[str, list[Any]], class_columns: dict[str, str], labels: Sequence[Hashable] | None
) -> dict[str, Any]:
    """Map the labels of all axes to indices, -1 for ignored labels."""
    return dict.fromkeys(class_columns, _class_ids(values, class_columns, labels)) | {
        "groups": _numbered(x for x in values.get("groups", ()) if not _is_ignored(x)),
        "clusters": _numbered(x for x in values.get("clusters", ()) if x is not None),
        "predicted": {False: 0, True: 1},
    }


def _class_ids(
    values: dict[str, list[Any]], columns: dict[str, str], labels: Sequence[Hashable] | None
) -> dict[Hashable, int]:
    """Map classes in these columns to ids: `labels`, by default the classes that occur, sorted."""
    present = {x for role in columns for x in values[role]} - {None}
    if len({isinstance(x, str) for x in present}) > 1:
        named = ", ".join(f"{role} ({column!r})" for role, column in columns.items())
        raise TypeError(f"{named} mix strings and integers: cast one to the type of the other.")
    if labels is None:
        labels = sorted(x for x in present if not _is_ignored(x))
        if not labels:
            raise ValueError(
                f"no class occurs in the column {columns['y_true']!r}: pass labels=[...] with the"
                " classes of a table that may be empty."
            )
    ids = ids_by_label(labels)
    for role, column in columns.items():
        unknown = [x for x in values[role] if x not in ids and not _is_ignored(x)]
        if unknown:
            raise ValueError(
                f"{role} names the column {column!r}, which holds {unknown[0]!r}, not among"
                f" labels {list(ids)!r}; filter such rows, or make them null."
            )
    return ids


def _two_classes(
    values: list[Any], labels: Sequence[Hashable] | None, column: str
) -> Sequence[Hashable]:
    """Return the negative class and the positive one."""
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
            f"y_true names the column {column!r}, which holds {shown}; truth must be 0 or 1, or"
            " bool: pass labels=[negative, positive] for other classes."
        )
    return [False, True] if any(isinstance(x, bool) for x in present) else [0, 1]


def _bins(cells: Cells, is_counted: np.ndarray, asked: Scores) -> np.ndarray:
    """Return the bin of each cell, by the function that is also used for arrays."""
    named = f"y_score names the column {asked.column!r}, which holds"
    scores = cells.scores
    if np.isnan(scores[:, is_counted]).any():
        raise ValueError(f"{named} NaN or null; filter such rows, or make their truth null.")
    if asked.scale == "probability":
        beyond = scores[:, is_counted & ((scores < -_ROUNDING) | (scores > 1 + _ROUNDING)).any(0)]
        if beyond.size:
            raise ValueError(
                f"{named} {beyond.flat[0]:g}, but probabilities lie in [0, 1]. For logits use"
                ' scale="logit".'
            )
        scores = np.clip(scores, 0, 1)
    bins, bins_of_greatest = score_bins(scores, scale=asked.scale, size=asked.num_bins)
    if (bins != bins_of_greatest)[is_counted].any():
        raise ArithmeticError(
            f"{named} scores for which the engine's arithmetic does not follow IEEE 754."
        )
    return bins


def _summed(
    cells: Cells, axes: list[np.ndarray], shape: list[int]
) -> tuple[np.ndarray, int | float]:
    """Add up the weights of each entry of a table, and the weights of ignored rows.

    Integers are added exactly; other weights round once.
    """
    size = math.prod(shape)
    if size > _MOST_COUNTS:
        raise ValueError(
            f"counts of shape {tuple(shape)} have more than {_MOST_COUNTS} entries: use fewer"
            " classes or ids."
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
        raise ValueError(f"weights of one cell add up to {max(totals)}, which int64 cannot hold.")
    flat = np.zeros(size + 1, np.int64 if cells.has_integers else np.float64)
    flat[places] = totals
    return flat[:-1].reshape(shape), flat[-1].item()
