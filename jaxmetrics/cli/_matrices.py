"""Read a confusion matrix whose rows are the true classes, or a table with a row per cell."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import is_integer, is_number
from jaxmetrics.cli._errors import InputError, listed, reading, shortened
from jaxmetrics.cli._predictions import Selection, count_predictions
from jaxmetrics.cli._reader import MAX_CLASSES, ROW, Arrays, Table, Value, is_pipe, opened

__all__: list[str] = []


class Matrix(NamedTuple):
    """A confusion matrix, and the class names if the file contains class names."""

    counts: np.ndarray
    class_names: list[str] | None
    num_ignored: int = 0
    is_of_cells: bool = False


def read_counts(path: Path, question: Selection) -> Matrix:
    """Read a confusion matrix, or a table with the columns `y_true`, `y_pred` and `count`."""
    with opened(path, question.separator) as table, reading():
        # A table of cells is read twice, and a pipe cannot be.
        cells = None if is_pipe(path) else _cells(table, question)
        if cells is None:
            return _matrix(table, question)
    found = count_predictions([path], cells)
    return Matrix(found.counts(), found.classes, found.ignored(), is_of_cells=True)


def _cells(table: Table, question: Selection) -> Selection | None:
    """Return the columns to read from a table of cells, or None for a matrix."""
    roles = {question.true, question.pred or "y_pred"}
    if not roles <= set(table.names):
        return None
    others = [name for name in table.names if name not in roles]
    if question.weight is None and not others:
        raise InputError(
            "the file is a table of predictions, not a confusion matrix. Leave out --counts."
        )
    if question.weight is None and len(others) != 1:
        raise InputError(
            "the file is a table of predictions, not a confusion matrix. Use --weight to name its"
            f" column of counts, which is one of the columns {listed(others)}."
        )
    return replace(question, weight=question.weight or others[0])


def _matrix(table: Table, question: Selection) -> Matrix:
    """Convert text to numbers. If there is one column more than there are rows, the first column
    contains the class names.
    """
    if replace(question, separator=None, ignore=(), pos_label=None) != Selection():
        raise InputError(
            "--counts reads a confusion matrix and cannot be used together with --true, --pred or"
            " --weight. Leave out --counts or these options."
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
            rows, names = [names, *rows], None
    if names is not None and len(names) == len(rows) + 1:
        row_names, rows, names = [row[0] for row in rows], [row[1:] for row in rows], names[1:]
        if row_names != names:
            raise InputError(
                "the rows and the columns of the confusion matrix must name the same classes, but"
                f" the rows name {listed(row_names)} and the columns name {listed(names)}."
            )
    counts = _numbers(rows)
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


def _columns(table: Table) -> Mapping[str, Value]:
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
                    " a number. If the file is a table of predictions with a column of counts, use"
                    " --weight COLUMN to name this column."
                )
    integers = all(is_integer(cell) and abs(int(cell)) < 2**63 for row in rows for cell in row)
    number = int if integers else float
    return np.array([[number(cell) for cell in row] for row in rows])
