"""Files of confusion matrices, row = true class, or of their cells in a long table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from jaxmetrics.cli._arrays import ArraySource
from jaxmetrics.cli._classes import is_integer, is_number
from jaxmetrics.cli._errors import InputError, listed, named, reading, shortened
from jaxmetrics.cli._rows import Selection
from jaxmetrics.cli._sources import TEXT, ScannedSource, extension, opened, opened_text
from jaxmetrics.cli._tables import MAX_CLASSES, Source

__all__: list[str] = []

_LONGEST_TEXT = 2**27


def long_table(path: Path, question: Selection) -> Selection | None:
    """Return how to read a table `y_true, y_pred, count`, or None if the file is no such table."""
    columns = question.columns
    if not path.is_file():
        return None  # a pipe can be read once
    with named(path), opened(path, question.separator, checked=False) as source:
        roles = {columns.true, columns.pred or "y_pred"}
        if isinstance(source, ArraySource) or not roles <= set(source.names):
            return None
        others = [name for name in source.names if name not in roles]
        if columns.weight is None and not others:
            raise InputError("it is a table of predictions, which is read without --counts")
        if columns.weight is None and len(others) != 1:
            raise InputError(
                "it is a table of predictions, not a matrix: --weight names its column of counts,"
                f" one of {listed(others)}"
            )
    return replace(question, columns=replace(columns, weight=columns.weight or others[0]))


def read_counts(path: Path, separator: str | None) -> tuple[np.ndarray, list[str] | None]:
    """Read a confusion matrix, and the names of its classes where the file has them."""
    with named(path), reading():
        kind = extension(path)
        if kind not in TEXT and path.is_file():
            with opened(path) as source:
                if isinstance(source, ArraySource):
                    return _from_arrays(source), None
                return _from_cells(*_scanned(source))
        rows = _text_rows(path, separator)
        if not rows:
            raise InputError("the file has no rows")
        has_names = len(rows) == len(rows[0]) + 1 or not all(map(is_number, rows[0]))
        header = rows.pop(0) if has_names else None
        return _from_cells(header, rows)


def _from_arrays(source: ArraySource) -> np.ndarray:
    if "counts" not in source.names and len(source.names) != 1:
        raise InputError(f"no array 'counts'; the file has {listed(source.names)}")
    name = "counts" if "counts" in source.names else source.names[0]
    shape = source.array(name).shape
    if len(shape) != 2 or max(shape) > MAX_CLASSES:
        raise InputError(f"array {name!r} has shape {shape}, expected (K, K), K <= {MAX_CLASSES}")
    return source.whole(name)


def _scanned(source: Source) -> tuple[list[str], list[list[str]]]:
    assert isinstance(source, ScannedSource)
    if max(len(source.names), source.num_rows or 0) > MAX_CLASSES + 1:
        raise InputError(f"it is larger than a matrix of {MAX_CLASSES} classes")
    frame = source.whole()
    return frame.columns, [[str(cell) for cell in row] for row in frame.iter_rows()]


def _text_rows(path: Path, separator: str | None) -> list[list[str]]:
    """Read the cells of the lines that are not blank."""
    with opened_text(path, separator) as (stream, syntax):
        text = stream.read(_LONGEST_TEXT + 1)
    if len(text) > _LONGEST_TEXT:
        raise InputError(f"a matrix has at most {_LONGEST_TEXT // 2**20} MB")
    frame = syntax.cells(text)
    rows = [[(cell or "").strip() for cell in row] for row in frame.iter_rows()]
    return [row for row in rows if any(row)]


def _from_cells(
    header: Sequence[str] | None, rows: Sequence[Sequence[str]]
) -> tuple[np.ndarray, list[str] | None]:
    """Convert text to numbers; under a header with one column more than there are rows, the first
    column repeats the names.
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
                    f"row {i + 1}: {shortened(cell)!r} is not a number; of a table of predictions"
                    " and how often each occurs, --weight names the column of counts"
                )
    integers = all(is_integer(cell) and abs(int(cell)) < 2**63 for row in rows for cell in row)
    number = int if integers else float
    return np.array([[number(cell) for cell in row] for row in rows]), names
