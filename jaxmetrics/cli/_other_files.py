"""Read files other than files of predictions: scores, multilabel problems, and matrices."""

from __future__ import annotations

import math
import re
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jaxmetrics._arguments.single import largest_eps
from jaxmetrics.cli._classes import is_integer, is_number
from jaxmetrics.cli._columns import as_numbers
from jaxmetrics.cli._errors import (
    InputError,
    decimal_hint,
    listed,
    named,
    reading,
    shortened,
    shown,
)
from jaxmetrics.cli._items import clusters_of, usual_items
from jaxmetrics.cli._options import with_options
from jaxmetrics.cli._predictions import FILE, count_predictions, listed_rows
from jaxmetrics.cli._reader import (
    JOIN_HINT,
    MAX_CLASSES,
    Arrays,
    FileTable,
    Value,
    check_number_of_rows,
    check_order,
    is_pipe,
    no_rows,
    opened,
    parts_of,
)
from jaxmetrics.cli._text_files import ROW, check_size
from jaxmetrics.clusters import NO_GROUP
from jaxmetrics.intervals.means import clipped, tolerated
from jaxmetrics.reports.score_means import ItemScores
from jaxmetrics.reports.singles import whole

_MOST_LABELS = 1000
_BETWEEN = "\x1f"  # separator between the parts of an id from several columns
_MISSING = ("", "nan", "null", "none", "na", "n/a")
_WORDS = {"true": "1", "false": "0", "yes": "1", "no": "0"} | {
    "c": "1",
    "p": "0.5",
    "i": "0",
    "n": "0",
}  # c, p, i and n are the scores of Inspect


def read_scores(systems: Sequence[Namespace]) -> tuple[ItemScores, pl.DataFrame]:
    """Read the scores of each system, and match the items by `--id` or by their order. Also return
    the rows of the items, in the first file that contains an item.
    """
    options, pairs = systems[0], [_frame(x, x.files[0], x.value) for x in systems]
    frames, names_of_clusters = [frame for frame, _ in pairs], [name for _, name in pairs]
    paths, columns = [x.name for x in systems], {x.value for x in systems}
    by_id = ["id" in frame.columns for frame in frames]
    if any(by_id) != all(by_id):
        raise InputError(f"{paths[by_id.index(False)]}: the items have no ids; {JOIN_HINT}")
    item = "id" if all(by_id) else "item"
    if item == "item":
        check_number_of_rows(paths, frames)
        _check_blank_rows(paths, frames)
        check_order(paths, frames)
        frames = [frame.with_row_index(item, offset=1) for frame in frames]
    of_items = [frame.drop("value", "usual id", strict=False) for frame in frames]
    rows = pl.concat(of_items, how="diagonal")
    if options.cluster is None and "cluster" in rows.columns:
        alone = pl.format(f"{_BETWEEN}{{}}", item)  # an item that does not repeat
        rows = rows.with_columns(pl.col("cluster").fill_null(alone))
    _check_labels(rows, item)
    rows = rows.unique(item, keep="first", maintain_order=True)
    scores = np.stack(
        [
            rows.select(item)
            .join(frame, on=item, how="left", maintain_order="left")["value"]
            .fill_null(np.nan)
            .to_numpy()
            for frame in frames
        ]
    )
    if np.isnan(scores).any(0).all():
        raise InputError(f"{paths[0]}: no item has a score in all files")
    clusters, _ = _numbered(rows, "cluster")
    groups = _numbered(rows, "group")
    bounds = _bounds(options.bounds, scores)
    if bounds is not None:
        scores = clipped(scores, bounds, largest_eps(scores))
    cluster = next(filter(None, names_of_clusters), None)
    name = columns.pop() if len(columns) == 1 else "mean score"
    return ItemScores(name, scores, bounds, clusters, *groups, cluster), rows


def listed_items(
    scores: ItemScores, rows: pl.DataFrame, options: Namespace
) -> list[dict[str, Any]]:
    """List up to `--examples` items: those with the lowest scores of a system, or those whose
    scores A and B differ. Then, half of them are items for which A is worse, if there are enough.

    Items with the greatest possible score are not listed.
    """
    number, values = options.examples, scores.values
    if len(values) == 1:
        x, names = values[0], ["score"]
        best = math.inf if scores.bounds is None else scores.bounds[1]
        worse = np.flatnonzero(x < best)
        better = worse[:0]
    else:
        x, names = values[0] - values[1], ["A", "B"]
        worse, better = np.flatnonzero(x < 0), np.flatnonzero(x > 0)
    worse = worse[np.argsort(x[worse], kind="stable")]
    better = better[np.argsort(-x[better], kind="stable")]
    worse = worse[: max(number - number // 2, number - len(better))]
    places = [*worse.tolist(), *better.tolist()][:number]
    columns = whole(values[:, places]).tolist()
    if "id" in rows.columns:
        rows = rows.with_columns(pl.col("id").str.replace_all(_BETWEEN, ",", literal=True))
        options = with_options(options, id=options.id or "id")
    return listed_rows(rows, places, options, dict(zip(names, columns, strict=True)))


def _check_blank_rows(paths: Sequence[str], frames: Sequence[pl.DataFrame]) -> None:
    """Raise an error if files without ids have empty rows, which may be missing scores, in
    different places.
    """
    before = pl.col(ROW).shift(1, fill_value=0)  # the row numbers of each part of a file begin at 1
    blank = pl.col(ROW) - 1 - pl.when(before < pl.col(ROW)).then(before).otherwise(0)
    numbers = [frame.select(blank)[ROW] for frame in frames]
    for path, number in zip(paths, numbers, strict=True):
        differ = number != numbers[0]
        if differ.any():
            row = frames[0][ROW].filter(differ)[0]
            raise InputError(
                f"{paths[0]} and {path} have empty rows in different places, so that rows at the"
                f" same position may belong to different items. The first difference is before row"
                f" {row} of {paths[0]}; {JOIN_HINT}"
            )


def _numbered(rows: pl.DataFrame, role: str) -> tuple[np.ndarray | None, list[str]]:
    """Return the numbers and the names of the labels in a column; groups are sorted by name."""
    if role not in rows.columns:
        return None, []
    names = rows[role].unique(maintain_order=True)
    names = names.sort() if role == "group" else names
    return rows[role].cast(pl.Enum(names)).to_physical().to_numpy().astype(int), names.to_list()


def _check_labels(rows: pl.DataFrame, item: str) -> None:
    """Raise an error if an item has different clusters or groups in different files."""
    for role in {"cluster", "group"} & {*rows.columns}:
        pairs = rows.select(item, role).unique()
        if pairs[item].is_duplicated().any():
            first = pairs.filter(pl.col(item).is_duplicated())[item].min()
            hint = f"; {JOIN_HINT}" if item == "item" else ""
            raise InputError(
                f"each item must have the same {role} in all files, but the files differ for the"
                f" item {first!r}{hint}"
            )


def _frame(options: Namespace, path: Path, column: str) -> tuple[pl.DataFrame, str | None]:
    """Read the rows of a file, or of all files in a folder, and return the column of clusters."""
    frames, size, cluster_name = list[pl.DataFrame](), 0.0, None
    parts, left_out = parts_of(path), list[str]()
    for i, part in enumerate(parts):
        with opened(part, options) as table:
            name = next((x for x in [column, *column.split(",")] if x in table.names), None)
            if name is None and table.task is not None and len(parts) > 1:
                left_out.append(table.task)
                continue
            of_part = _of_part(table, options, len(parts) > 1)
            cluster_name = of_part.cluster or cluster_name
            for rows in _batches(table, of_part, name or column):
                if options.cluster is None and "cluster" in rows.columns:
                    # Items of other files are other items.
                    cluster = pl.format("{}/{}", pl.lit(table.task or str(i)), "cluster")
                    rows = rows.with_columns(cluster=cluster)
                if len(parts) > 1:
                    rows = rows.with_columns(pl.lit(shown(part.name)).alias(FILE))
                frames.append(rows)
                size += rows.estimated_size()
                check_size(size)
    with named(path):
        if len(left_out) == len(parts):
            raise InputError(f"no file of the folder has a column {column!r}")
        if left_out:
            tasks = f"tasks without a column {column!r} are left out: {listed(left_out)}."
            warnings.warn(f"{shown(path)}: {tasks}", stacklevel=2)
        if not frames or not sum(map(len, frames)):
            raise InputError(no_rows(options))
        scores = pl.concat(frames, how="diagonal")
        if "id" in scores.columns and scores["id"].is_duplicated().any():
            first = scores.filter(pl.col("id").is_duplicated())["id"][0].replace(_BETWEEN, ",")
            raise InputError(
                "each row must have a different id, but several rows have the same id. The first"
                f" such id is {first!r}. If the rows differ in another column, use several columns"
                " as the id, such as --id item,attempt. If rows are attempts at the same"
                " item, name the column of items with --cluster; report then needs no --id."
            )
    return scores, cluster_name


def _of_part(table: FileTable, options: Namespace, is_one_of_many: bool) -> Namespace:
    """Return the options with the columns of ids, groups and items that the table has."""
    ids, group = options.id, options.group
    if table.task is not None:
        names = ["task"] if is_one_of_many else []
        names += [options.id or "doc_id", *(["filter"] if "filter" in table.names else [])]
        ids = ",".join(names)
        if is_one_of_many and options.command in ("report", "compare"):
            group = group or "task"
    options = with_options(options, id=ids, group=group)
    return with_options(options, cluster=",".join(clusters_of(table, options)) or None)


def _batches(table: FileTable, options: Namespace, column: str) -> Iterator[pl.DataFrame]:
    """Read scores with their ids, clusters and groups.

    Scores are numbers, booleans, or the letters of Inspect: C (correct), P (partial), I (incorrect)
    and N (no answer). Missing scores become NaN; other values raise an error.
    """
    with reading():
        asked = {
            role: _label(table, name, role)
            for role in ("id", "cluster", "group")
            if (name := getattr(options, role))
        }
        labels = list(asked)
        text = table.number(column).expr.cast(pl.String)
        others = usual_items(table, options) if options.id is None else []
        if options.command != "report" and others:
            asked["usual id"] = _label(table, others[0], "id")
        asked |= {f"show {i}": table.text(name) for i, name in enumerate(options.show)}
        more = [x for x in asked if x not in labels]
        asked["value"] = Value(column, text.str.strip_chars().str.to_lowercase().fill_null(""))
    number = pl.col("value").replace(_WORDS).cast(pl.Float64, strict=False)
    for rows in table.batches(asked | {"text": Value(column, text)}):
        missing = pl.col("value").is_in(_MISSING)
        bad = rows.filter(~missing & ~number.is_finite().fill_null(False))
        if len(bad):
            row, value = bad[ROW][0], bad["text"][0]
            raise InputError(
                f"in row {row}, the column {column!r} contains {value!r}, but a number, true or"
                f" false was expected, or null if there is no score{decimal_hint(value)}."
            )
        for role in labels:
            if (empty := rows.filter(pl.col(role) == "")).height:
                name = asked[role].name
                raise InputError(
                    f"row {empty[ROW][0]}: the {role} is missing in the column {name!r}"
                )
        yield rows.select(ROW, *labels, *more, value=number.fill_null(np.nan))


def _label(table: FileTable, name: str, role: str) -> Value:
    """Return labels as strings; ids may consist of the values of several columns."""
    names = [name] if role == "group" or name in table.names else name.split(",")
    labels = [table.written(x, table.label(x).expr).replace("", None) for x in names]
    return Value(
        name,
        pl.concat_str(labels, separator=_BETWEEN).fill_null(NO_GROUP if role == "group" else ""),
    )


def _bounds(text: str | None, scores: np.ndarray) -> tuple[float, float] | None:
    """Parse `--bounds LOW,HIGH`. The default is (0, 1) if all scores are from 0 to 1, otherwise
    None.
    """
    least, greatest = np.nanmin(scores), np.nanmax(scores)
    if text is None:
        lowest, highest = tolerated((0.0, 1.0), largest_eps(scores))
        return (0.0, 1.0) if lowest <= least <= greatest <= highest else None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"--bounds must have the form LOW,HIGH, such as '0,1', got {text!r}."
        ) from None
    lowest, highest = tolerated((low, high), largest_eps(scores))
    if not (low < high and lowest <= least <= greatest <= highest):
        raise InputError(
            "--bounds must be two numbers LOW,HIGH with LOW < HIGH between which all scores lie,"
            f" got {text!r}. The least score is {least} and the greatest score is {greatest}."
        )
    return low, high


def read_labels(
    paths: Sequence[Path], options: Namespace
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Read the labels in files; `--labels-prefix` selects the columns of true and of predicted
    labels.

    Returns:
        The true and the predicted labels, booleans `(n, L)`, and the names of the labels.
    """
    parts: list[np.ndarray] = []
    names: list[str] = []
    prefixes = options.labels_prefix
    for path in paths:
        with opened(path, options) as table:
            with reading():
                true, pred = (table.family(prefix) for prefix in prefixes)
            if set(true) != set(pred):
                raise InputError(
                    f"the columns of true labels ({prefixes[0]!r}) and the columns of predicted"
                    f" labels ({prefixes[1]!r}) must name the same labels, but they name"
                    f" {listed([*true])} and {listed([*pred])}."
                )
            if len(true) > _MOST_LABELS:
                raise InputError(
                    f"the file has {len(true)} columns of labels, one for each label, but a report"
                    f" may have at most {_MOST_LABELS} labels. Leave out some of these columns."
                )
            if parts and list(true) != names:
                raise InputError("its labels differ from the labels in the previous files")
            names = list(true)
            columns = [*true.values(), *(pred[name] for name in names)]
            for rows in table.batches({str(i): column for i, column in enumerate(columns)}):
                numbers = as_numbers(rows, [str(i) for i in range(len(columns))])
                bad = (numbers != 0) & (numbers != 1)
                if bad.any():
                    i, j = np.argwhere(bad)[0].tolist()
                    value = rows[str(j)][i]
                    raise InputError(
                        f"in row {rows[ROW][i]}, the column {columns[j].name!r} contains"
                        f" {value!r}, but 0 or 1 was expected."
                    )
                parts.append(numbers == 1)
                check_size(sum(part.nbytes for part in parts))
    if not sum(map(len, parts)):
        with named(paths[0]):
            raise InputError(no_rows(options))
    true_labels, pred_labels = np.split(np.concatenate(parts), 2, axis=1)
    return true_labels, pred_labels, names


class Matrix(NamedTuple):
    """A confusion matrix, and the class names if the file contains class names."""

    counts: np.ndarray
    class_names: list[str] | None
    num_ignored: int = 0
    is_of_cells: bool = False


def read_counts(path: Path, options: Namespace) -> Matrix:
    """Read a confusion matrix, or a table with the columns `y_true`, `y_pred` and `count`."""
    with opened(path, options) as table, reading():
        # A table of cells is read twice, and a pipe cannot be.
        cells = None if is_pipe(path) else _cells(table, options)
        if cells is None:
            return _matrix(table, options)
    rows = count_predictions([path], cells)
    return Matrix(rows.counts(), rows.axis_names, rows.ignored(), is_of_cells=True)


def _cells(table: FileTable, options: Namespace) -> Namespace | None:
    """Return the columns to read from a table of cells, or None for a matrix."""
    roles = {options.true, options.pred or "y_pred"}
    if not roles <= set(table.names):
        return None
    others = [name for name in table.names if name not in roles]
    if options.weight is not None:
        warnings.warn(
            "--weight means weights of examples; to name the column of counts, use --count.",
            stacklevel=2,
        )
    amount = options.count or options.weight
    if amount is None and not others:
        raise InputError(
            "the file is a table of predictions, not a confusion matrix. Leave out --counts."
        )
    if amount is None and len(others) != 1:
        raise InputError(
            "the file is a table of predictions, not a confusion matrix. Use --count to name its"
            f" column of counts, which is one of the columns {listed(others)}."
        )
    return with_options(options, weight=None, count=amount or others[0], cluster="")


def _matrix(table: FileTable, options: Namespace) -> Matrix:
    """Convert text to numbers. If there is one column more than there are rows, the first column
    contains the class names.
    """
    amount = options.weight or options.count
    given = options.true, options.pred, amount, options.id, options.classes
    if given != ("y_true", None, None, None, None):
        raise InputError(
            "--counts reads a confusion matrix and cannot be used together with --true, --pred,"
            " --count or --classes. Leave out --counts or these options."
        )
    columns = _columns(table)
    names = None if isinstance(table, Arrays) else list(columns)
    rows: list[list[str]] = []
    for batch in table.batches(columns):
        rows += [["" if x is None else str(x) for x in row] for row in batch.drop(ROW).rows()]
        if len(rows) > MAX_CLASSES + 1:
            raise InputError(
                f"the confusion matrix has more than {MAX_CLASSES} classes, but at most"
                " this number is allowed."
            )
    if names is not None and table.separator is not None:
        names = [re.sub(r"_duplicated_\d+$", "", name).strip() for name in names]
        if len(rows) != len(names) and all(map(is_number, names)):  # there is no header
            if names == [str(i) for i in range(len(names))]:
                warnings.warn(
                    f"the first line, {listed(names)}, is read as the counts of the first class. If"
                    " it names the classes, the row of a class is missing.",
                    stacklevel=2,
                )
            rows, names = [names, *rows], None
    if names is not None and len(names) == len(rows) + 1:
        title, names = names[0].casefold(), names[1:]
        if "pred" in title and "true" not in title and "actual" not in title:
            raise InputError(
                f"the rows of the confusion matrix are named {title!r}, but rows must be true"
                " classes and columns predicted classes. Exchange rows and columns."
            )
        row_names, rows = [row[0] for row in rows], [row[1:] for row in rows]
        if row_names != names:
            raise InputError(
                "the rows and the columns of the confusion matrix must name the same classes, but"
                f" the rows name {listed(row_names)} and the columns name {listed(names)}."
            )
    counts = _numbers([[cell.replace(table.decimal, ".") for cell in row] for row in rows])
    has_fractions = counts.size and (counts != counts.round()).any()
    rounding = 0.01 + 0.005 * counts.size  # shares may have two decimals
    if has_fractions and any(
        np.allclose(counts.sum(axis), total, rounding)
        for axis in (None, 0, 1)
        for total in (1, 100)
    ):
        raise InputError(
            "the confusion matrix contains shares, which do not say how many examples there are."
            " Give the numbers of examples."
        )
    _warn_of_totals(counts)
    return Matrix(counts, names)


def _warn_of_totals(counts: np.ndarray) -> None:
    """Warn if the last row and the last column are the sums of the other rows and columns."""
    k = len(counts) - 1
    if k < 2 or counts.shape != (k + 1, k + 1) or not counts[:k, :k].any():
        return
    columns, rows = counts[:k].sum(0), counts[:, :k].sum(1)
    if (counts[k] == columns).all() and (counts[:, k] == rows).all():
        warnings.warn(
            "the last row and the last column of the confusion matrix are the sums of the others."
            " If they are totals and not a class, leave them out.",
            stacklevel=2,
        )


def _columns(table: FileTable) -> Mapping[str, Value]:
    """Return the columns of the matrix: all columns or, in a file of arrays, the array `counts`."""
    if not isinstance(table, Arrays):
        return {name: Value(name, pl.col(name)) for name in table.names}
    if "counts" not in table.names and len(table.names) != 1:
        raise InputError(table.missing("no array 'counts'"))
    name = "counts" if "counts" in table.names else table.names[0]
    if table.width(name) is None:
        raise InputError(
            f"the array {name!r} must be a confusion matrix of shape (K, K) with real numbers."
        )
    return table.family(name)


def _numbers(rows: Sequence[Sequence[str]]) -> np.ndarray:
    for i, row in enumerate(rows, 1):
        for cell in row:
            if not is_number(cell):
                raise InputError(
                    f"in row {i}, the confusion matrix contains {shortened(cell)!r}, which is not"
                    f" a number{decimal_hint(cell)}. If the file is a table of predictions with a"
                    " column of counts, use --count COLUMN to name this column."
                )
    integers = all(is_integer(cell) and abs(int(cell)) < 2**63 for row in rows for cell in row)
    number = int if integers else float
    return np.array([[number(cell) for cell in row] for row in rows])
