"""Read a confusion matrix (row = true class), or a long table of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxmetrics.cli import _tables
from jaxmetrics.cli._arrays import Arrays
from jaxmetrics.cli._classes import is_integer, is_number
from jaxmetrics.cli._counted_files import count_predictions
from jaxmetrics.cli._errors import InputError, listed, named, reading, shortened
from jaxmetrics.cli._rows import Columns, Selection
from jaxmetrics.cli._sources import ScannedTable, is_pipe, opened
from jaxmetrics.cli._tables import FileTable
from jaxmetrics.cli._text import SeparatedValues

__all__: list[str] = []

_LONGEST_TEXT = 2**27


class Matrix(NamedTuple):
    """A confusion matrix, and the class names if the file has them."""

    counts: np.ndarray
    class_names: list[str] | None
    num_ignored: int = 0
    is_of_cells: bool = False


def read_counts(path: Path, question: Selection) -> Matrix:
    """Read a confusion matrix, or a table `y_true, y_pred, count`."""
    with named(path), opened(path, question.separator) as table, reading():
        cells = None if is_pipe(path) else _cells(table, question)  # which is read twice
        if cells is None:
            return _matrix(table, question)
    counted = count_predictions([path], cells)
    classes = counted.classes()
    return Matrix(counted.table(classes), classes.names, counted.ignored(), is_of_cells=True)


def _matrix(table: FileTable, question: Selection) -> Matrix:
    if question.columns != Columns():
        raise InputError("--counts reads a matrix and does not go with --true, --pred or --weight")
    if isinstance(table, Arrays):
        return Matrix(table.matrix(), None)
    if isinstance(table, ScannedTable):
        return _from_cells(*_scanned(table))
    if isinstance(table, SeparatedValues):
        return _from_cells(*_with_header(table.cells(_LONGEST_TEXT)))
    raise InputError("a matrix cannot be read from JSON lines")


def _cells(table: FileTable, question: Selection) -> Selection | None:
    """Return the selection for a table of cells, or None for a matrix."""
    columns = question.columns
    roles = {columns.true, columns.pred or "y_pred"}
    if not roles <= set(table.names):
        return None
    others = [name for name in table.names if name not in roles]
    if columns.weight is None and not others:
        raise InputError("it is a table of predictions: leave out --counts")
    if columns.weight is None and len(others) != 1:
        raise InputError(
            "it is a table of predictions, not a matrix: pass its column of counts as --weight, one"
            f" of {listed(others)}"
        )
    return replace(question, columns=replace(columns, weight=columns.weight or others[0]))


def _scanned(table: ScannedTable) -> tuple[Sequence[str], list[list[str]]]:
    if max(len(table.names), table.num_rows or 0) > _tables.MAX_CLASSES + 1:
        raise InputError(f"it has more than {_tables.MAX_CLASSES} classes")
    return table.names, [[str(cell) for cell in row] for row in table.whole().iter_rows()]


def _with_header(cells: list[list[str]]) -> tuple[list[str] | None, list[list[str]]]:
    """Drop blank lines, and split off a header if there is one."""
    rows = [row for row in cells if any(row)]
    if not rows:
        raise InputError("the file has no rows")
    if len(rows) == len(rows[0]) + 1 or not all(map(is_number, rows[0])):
        return rows[0], rows[1:]
    return None, rows


def _from_cells(header: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> Matrix:
    """Convert text to numbers; if the header has one column more than there are rows, the first
    column has the class names.
    """
    names = None if header is None else list(header)
    if names is not None and len(names) == len(rows) + 1:
        row_names, rows, names = [row[0] for row in rows], [row[1:] for row in rows], names[1:]
        if row_names != names:
            raise InputError(
                f"rows and columns name different classes: {listed(row_names)} and {listed(names)}"
            )
    for i, row in enumerate(rows):
        for cell in row:
            if not is_number(cell):
                raise InputError(
                    f"row {i + 1}: {shortened(cell)!r} is not a number; for a table of predictions"
                    " with a column of counts, use --weight COLUMN"
                )
    if len(set(map(len, rows))) > 1:
        raise InputError("its rows have different numbers of cells")
    integers = all(is_integer(cell) and abs(int(cell)) < 2**63 for row in rows for cell in row)
    number = int if integers else float
    return Matrix(np.array([[number(cell) for cell in row] for row in rows]), names)
