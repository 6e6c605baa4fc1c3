"""Confusion matrices of data frames and SQL tables, counted by their engine.

Tables are from pandas, Polars (eager or lazy), PyArrow, DuckDB, Ibis, PySpark, Dask or any other
library that narwhals supports. One query reads the rows once, and returns only one row per
non-empty cell, so a lazy table needs little memory.

- **Labels** are strings, integers or bool. For categorical columns, the categories are the labels.
  Floats without fractional part are converted to integers.
- **Rows are ignored** if the true label is null, NaN or a negative integer, or the group a negative
  integer.
  `num_ignored` is their number. Such a prediction for any other row raises an error, because it is
  a wrong prediction. A label -1 in `labels` is a class.
- `sample_weight` is the name of a column of weights. If the table has one row per cell of the
  confusion matrix, it is the name of the column of counts. Integers are summed exactly, in int64.
  Floats are summed by the engine in float64, so the last digits of a sum depend on the order in
  which the engine reads the rows.
- `groups` and `clusters` are names of columns of ids. The result then has one matrix per group or
  cluster, in additional leading axes. Rows whose group is null, NaN or "" are the last group, whose
  name is "(missing)".
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._arguments.labels import as_names, ordered_categories, sorted_classes
from jaxmetrics._arguments.single import as_number, check_option
from jaxmetrics._text.wording import shown
from jaxmetrics.clusters import NO_GROUP
from jaxmetrics.counts import ids_by_label
from jaxmetrics.ranking.histograms import check_num_bins

if TYPE_CHECKING:
    from narwhals.schema import Schema
    from narwhals.stable.v2 import Expr, LazyFrame
    from narwhals.stable.v2.dtypes import DType

__all__ = ["TableCounts", "confusion_matrix_of", "paired_confusion_matrix_of", "score_histogram_of"]

_MOST_CELLS = 2**23  # most rows that a query returns
_MOST_COUNTS = 2**27  # 1 GB
_GREATEST_WEIGHT = 2**62  # of integers
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
        squares: sums of the squares of weights, an array of float64 like `counts`, for the argument
            `squares` of `interval`. None if there are no weights.
    """

    counts: np.ndarray
    class_names: tuple[str, ...]
    group_names: tuple[str, ...]
    cluster_names: tuple[str, ...]
    num_ignored: int | float
    squares: np.ndarray | None = None


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
        ValueError: if a column is missing, if a label is not in `labels`, if the prediction for a
            row that is not ignored is null, NaN or negative, if a weight is negative,
            NaN, infinite or null, if a cluster id is null, if no class occurs, if the result has
            too many entries, or if integer weights sum to 2^63 or more.

    >>> import polars as pl
    >>> table = pl.DataFrame({"y_true": ["cat", "dog", None], "y_pred": ["cat", "dog", "dog"]})
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

    The bins are the same as in `score_histogram`, except that an engine which rounds powers of 2
    may count a score at an edge in the neighboring bin. From the counts, `roc_auc` and
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
    scores = _Scores(y_score, scale, check_num_bins(num_bins), threshold)
    return _counted(table, {"y_true": y_true}, sample_weight, groups, clusters, labels, scores)


class _Scores(NamedTuple):
    """A column of scores, its bins, and the threshold from which class 1 is predicted."""

    column: str
    scale: str
    num_bins: int
    threshold: float | None

    def check_bins(self, bins: set[int | None]) -> None:
        """Raise an error if a score is null, or an invalid probability, in bin -1."""
        named = f"y_score is the column {self.column!r}, which contains"
        if None in bins:
            raise ValueError(
                f"{named} NaN or null. Remove the rows with such values, or set their true label"
                " to null."
            )
        if -1 in bins:
            raise ValueError(
                f"{named} numbers below 0 or above 1, but probabilities must be at least 0 and at"
                ' most 1. If the scores are logits, pass scale="logit".'
            )


def _counted(
    table: Any,
    class_columns: dict[str, str],
    sample_weight: str | None,
    groups: str | None,
    clusters: str | None,
    labels: Sequence[Hashable] | None,
    scores: _Scores | None = None,
) -> TableCounts:
    """Fill the array of counts from the cells that the engine has counted."""
    units = {"groups": groups, "clusters": clusters}
    columns = {role: column for role, column in units.items() if column is not None} | class_columns
    cells, axes, kind = _cells(table, columns, sample_weight, scores)
    values = {role: _python_values(cells[role], role, columns.get(role, role)) for role in axes}
    if scores is not None:
        labels = _two_classes(values["y_true"], labels, columns["y_true"])
    elif labels is None:
        labels = _ordered_classes(_as_lazy_frame(table), class_columns)
    groups_found = [None if x == "" else x for x in values.get("groups", ())]
    numbered_groups = _numbered(x for x in groups_found if not _is_ignored(x))
    if None in groups_found:
        values["groups"], numbered_groups[None] = groups_found, len(numbered_groups)
    ids = dict.fromkeys(class_columns, _class_ids(values, class_columns, labels)) | {
        "groups": numbered_groups,
        "clusters": _numbered(x for x in values.get("clusters", ()) if x is not None),
        "predicted": _numbered([False, True]),
        "bins": _numbered(range(scores.num_bins if scores else 0)),
    }
    index = {role: np.array([ids[role].get(x, -1) for x in values[role]], int) for role in axes}
    is_counted = np.all([index[role] >= 0 for role in columns if role != "clusters"], axis=0)
    if sample_weight is not None:
        _check_weights(cells, is_counted, sample_weight, kind)
    weight: np.ndarray = np.array(cells["weight"].to_list(), kind)
    has_weight = is_counted & (weight > 0)
    _check_predictions(values, index, weight > 0, class_columns)
    if clusters is not None and (index["clusters"] < 0)[has_weight].any():
        raise ValueError(
            f"clusters names the column {clusters!r}, which contains nulls, but every row"
            " needs an id. If a row belongs to no cluster, give it an id that no other row has."
        )
    if scores is not None:
        scores.check_bins({x for x, has in zip(values["bins"], has_weight, strict=True) if has})

    shape = tuple(len(ids[role]) for role in axes)
    if math.prod(shape) > _MOST_COUNTS:
        raise ValueError(
            f"counts would have the shape {shape}, which is more than the limit of"
            f" {_MOST_COUNTS} entries. Use fewer classes, groups or clusters."
        )
    is_kept = np.all([x >= 0 for x in index.values()], axis=0)
    place = tuple(x[is_kept] for x in index.values())

    def tabulated(sums: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.zeros(shape, sums.dtype)
        np.add.at(result, place, sums[is_kept])
        return result

    squares = None
    if sample_weight is not None:
        squares = tabulated(np.array(cells["square"].to_list(), float))
    classes, group_names, cluster_names = (
        tuple(NO_GROUP if x is None else str(x) for x in ids[role])
        for role in ("y_true", "groups", "clusters")
    )
    num_ignored = weight[~is_kept].sum().item()
    names = classes, group_names, cluster_names
    return TableCounts(tabulated(weight), *names, num_ignored, squares)


def _cells(
    table: Any, columns: dict[str, str], sample_weight: str | None, scores: _Scores | None
) -> tuple[Any, list[str], type]:
    """Let the engine group the rows by all columns.

    Returns a frame with one row per cell, its columns that identify a cell, and the dtype of sums.
    """
    nw, frame = _narwhals(), _as_lazy_frame(table)
    values_of = {"sample_weight": sample_weight, "y_score": scores and scores.column}
    _check_columns(frame, columns | {k: x for k, x in values_of.items() if x is not None})
    schema = frame.collect_schema()
    keys = {role: _label(nw.col(column), schema[column]) for role, column in columns.items()}
    weights, kind = _weights(sample_weight, schema)
    sums = {name: nw.col(name).sum() for name in weights} or {"weight": nw.len()}
    if scores is None:
        axes, rows = [*keys], frame.select(**keys, **weights)
    else:
        score, predicted = _score(scores, schema[scores.column])
        axes = [*keys, *predicted, "bins"]
        rows = _with_bins(frame.select(**keys, **predicted, **weights, score=score), scores)
    query = rows.group_by(*axes).agg(**sums).head(_MOST_CELLS + 1)
    # The other engines of Polars load all rows at once.
    options: dict[str, Any] = {"engine": "streaming"} if frame.implementation.is_polars() else {}
    cells = query.collect(**options)
    if len(cells) > _MOST_CELLS:
        raise ValueError(
            f"The columns {', '.join(map(repr, columns.values()))} have more than {_MOST_CELLS}"
            " different combinations of values, which is too many for columns of classes. Check"
            " that these columns contain classes, not numbers or ids."
        )
    return cells, axes, kind


def _narwhals() -> Any:
    try:
        import narwhals.stable.v2 as narwhals
    except ImportError:
        raise ImportError(
            "The package narwhals is needed to count the rows of a table. Install it with: pip"
            " install 'jaxmetrics[tables]'."
        ) from None
    return narwhals


def _as_lazy_frame(table: Any) -> LazyFrame[Any]:
    nw = _narwhals()
    try:
        return nw.from_native(nw.to_native(table, pass_through=True)).lazy()
    except TypeError:
        raise TypeError(
            "table must be a data frame or SQL relation of pandas, Polars, PyArrow, DuckDB, Ibis,"
            " PySpark, Dask or another library that narwhals supports, got"
            f" {type(table).__name__}."
        ) from None


def _ordered_classes(frame: LazyFrame[Any], columns: dict[str, str]) -> list[str] | None:
    """Return the categories of ordered columns in their order, or None without such columns."""
    nw, schema = _narwhals(), frame.collect_schema()
    if frame.implementation.is_pyarrow():
        native = nw.to_native(frame)
        return ordered_categories({role: native[column] for role, column in columns.items()})
    types = {role: schema[column] for role, column in columns.items()}
    return ordered_categories({role: x for role, x in types.items() if isinstance(x, nw.Enum)})


def _check_columns(frame: LazyFrame[Any], columns: dict[str, str]) -> None:
    # In DuckDB, several columns may have the same name, which a schema does not show.
    is_duckdb = frame.implementation.is_duckdb()
    names = frame.columns if is_duckdb else frame.collect_schema().names()
    for role, column in columns.items():
        if not isinstance(column, str | int):
            raise TypeError(f"{role} must be the name of a column, got {shown(column)}.")
        if names.count(column) != 1:
            number = "more than one" if column in names else "no"
            raise ValueError(
                f"The table has {number} column {column!r}, which was passed as {role}. The columns"
                f" of the table are {', '.join(map(repr, names))}."
            )


def _label(label: Expr, dtype: DType) -> Expr:
    if not dtype.is_float():
        return label
    nw = _narwhals()
    number = label.cast(nw.Float64)
    # All fractions become 0.5, which raises an error later. Otherwise each score would be a group.
    integer = nw.when(number == number.floor()).then(number).otherwise(0.5)
    return nw.when(~number.is_nan()).then(integer)


def _weights(column: str | None, schema: Schema) -> tuple[dict[str, Expr], type]:
    """Return what is summed for each cell, and the dtype of the sums of weights.

    A sum of integers may wrap, but the sum of `size`, the same weights in float64, shows it.
    """
    if column is None:
        return {}, np.int64
    nw, dtype = _narwhals(), schema[column]
    is_integer = dtype.is_integer() or dtype == nw.Boolean
    if not (is_integer or dtype.is_float() or dtype.is_decimal()):
        raise TypeError(
            f"sample_weight names the column {column!r}, which contains {dtype}, but"
            " weights must be numbers."
        )
    kind = nw.Int64 if is_integer else nw.Float64
    x = nw.col(column) if dtype.is_integer() else nw.col(column).cast(kind)
    is_weight = (x >= 0) & (x <= _GREATEST_WEIGHT if is_integer else x.is_finite())
    weight = nw.when(is_weight).then(x).otherwise(0).cast(kind)
    num_invalid = nw.when(is_weight).then(0).otherwise(1)
    # A cast of PyArrow refuses integers that float64 rounds; a quotient is rounded.
    size = weight / 1
    sums = {"weight": weight, "size": size, "square": size * size, "num_invalid": num_invalid}
    return sums, np.int64 if is_integer else np.float64


def _check_weights(cells: Any, is_counted: np.ndarray, column: str, kind: type) -> None:
    num_invalid = np.array(cells["num_invalid"].to_list(), int)[is_counted].sum()
    if num_invalid:
        raise ValueError(
            f"sample_weight names the column {column!r}, in which {num_invalid}"
            " weights are negative, NaN, infinite, null or greater than 2^62. Correct or remove"
            " these rows."
        )
    total = sum(cells["size"].to_list())
    if total >= (2**63 if kind is np.int64 else math.inf):
        raise ValueError(
            f"sample_weight names the column {column!r}, whose weights sum to {total:g}, which is"
            f" too large for {kind.__name__}. Use smaller weights."
        )


def _score(scores: _Scores, dtype: DType) -> tuple[Expr, dict[str, Expr]]:
    """Return scores as float64, with null for NaN, and the prediction `score >= threshold`."""
    nw = _narwhals()
    if not dtype.is_numeric():
        raise TypeError(
            f"y_score names the column {scores.column!r}, which contains {dtype}, but scores"
            " must be numbers."
        )
    number = nw.col(scores.column).cast(nw.Float64)
    score = nw.when(~number.is_nan()).then(number)
    if scores.threshold is None:
        return score, {}
    threshold = np.float32(scores.threshold) if dtype == nw.Float32 else scores.threshold
    return score, {"predicted": score >= float(threshold)}


def _with_bins(rows: LazyFrame[Any], scores: _Scores) -> LazyFrame[Any]:
    """Add the bin of each score: null for null, and -1 for an invalid probability.

    A number `x = 2^e y` with 1 <= y < 2 is `e + y - 1` octaves above 1, interpolated linearly
    between powers of 2. If the engine rounds the logarithm of a power of 2 down, this sum remains
    the same.
    """
    nw, scale, size = _narwhals(), scores.scale, scores.num_bins
    score, x, octaves = nw.col("score"), nw.col("x"), nw.col("octaves")
    greatest = 32.0 if scale == "logit" else float(np.finfo(np.float32).max)
    rows = rows.with_columns(x=score.clip(-greatest, greatest).cast(nw.Float32).cast(nw.Float64))
    if scale == "logit":
        bins = ((x * (size / 64)).floor() + size // 2).clip(0, size - 1)
        return rows.with_columns(bins=bins.cast(nw.Int64))

    def bins_above(lowest: int) -> Expr:
        return ((octaves - lowest) * per_octave).floor()

    if scale == "probability":
        per_octave = size / 64
        positive = nw.when(x < 0.5).then(x.clip(2.0**-41)).otherwise((1 - x).clip(2.0**-25))
        bins = nw.when(x < 0.5).then(bins_above(-41)).otherwise(size - 1 - bins_above(-25))
        bins = nw.when((score < -_ROUNDING) | (score > 1 + _ROUNDING)).then(-1).otherwise(bins)
    else:
        per_octave = size / 2**9  # float32 has 2^9 combinations of a sign and an exponent
        positive = x.abs().clip(2.0**-127)
        bins = nw.when(x < 0).then(-1 - bins_above(-127)).otherwise(bins_above(-127)) + size // 2
    exponent = nw.col("positive").log(2).floor()
    mantissa = nw.col("positive") * 2.0 ** (0 - exponent)
    rows = rows.with_columns(positive=positive).with_columns(octaves=exponent + mantissa - 1)
    return rows.with_columns(bins=bins.cast(nw.Int64))


def _python_values(series: Any, role: str, column: str) -> list[Any]:
    """Convert labels to Python strings, integers and bools; missing labels become None."""

    def label(value: Any) -> str | int:
        value = value.item() if isinstance(value, np.generic) else value
        is_number = isinstance(value, float | Decimal)
        if is_number and math.isfinite(value) and value == int(value):
            return int(value)
        if not isinstance(value, str | int):
            raise TypeError(
                f"{role} names the column {column!r}, which has the type {series.dtype},"
                " but labels and ids must be strings, integers or bool."
                + " score_histogram_of counts scores."
                * is_number
            )
        return value

    is_null = series.is_null().to_list()
    return [None if null else label(x) for x, null in zip(series.to_list(), is_null, strict=True)]


def _numbered(ids: Iterable[Any]) -> dict[Hashable, int]:
    return {x: i for i, x in enumerate(sorted(set(ids)))}


def _is_ignored(label: Hashable) -> bool:
    return label is None or (isinstance(label, int) and label < 0)


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
        labels = sorted_classes(x for x in present if not _is_ignored(x))
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
        names = as_names(labels, "labels")
        if len(names) != 2:
            raise ValueError(f"labels must be [negative, positive], got {names!r}.")
        return names
    present = {*values} - {None}
    classes = {x for x in present if not _is_ignored(x)}
    if not classes <= {0, 1} or (classes == {1} and -1 in present):
        listed = ", ".join(sorted(map(repr, present))[:5])
        raise ValueError(
            f"y_true names the column {column!r}, which contains {listed}, but the column"
            " must contain 0 and 1, or bool. If the classes have other names, pass"
            " labels=[negative, positive]."
        )
    return [False, True] if any(isinstance(x, bool) for x in present) else [0, 1]


def _check_predictions(
    values: dict[str, list[Any]],
    index: dict[str, np.ndarray],
    has_weight: np.ndarray,
    columns: dict[str, str],
) -> None:
    """Raise an error if a prediction for a row that is not ignored is no class."""
    is_kept = (index["y_true"] >= 0) & has_weight
    for role, column in columns.items():
        bad = np.flatnonzero(is_kept & (index[role] < 0) & (index.get("groups", is_kept) >= 0))
        if bad.size:
            true, label = values["y_true"][bad[0]], values[role][bad[0]]
            raise ValueError(
                f"{role} names the column {column!r}, which contains {label!r} for a row whose true"
                f" label is {true!r}. Leave out rows without a prediction, or replace {label!r} by"
                " a label such as 'none' (-1 among integers) and add it to labels=[...]. It is then"
                " a class, which counts as a wrong prediction."
            )
