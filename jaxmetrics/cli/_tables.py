"""What is read of a file: a table with columns, in batches of rows that are bounded in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import polars as pl

from jaxmetrics.cli._errors import InputError, listed

__all__: list[str] = []

BATCH_BYTES = 2**22
BATCH_ROWS = 2**16
PIECE_ROWS = 2**22  # which the engine counts at once, and of which there may be as many cells
MAX_CLASSES = 4096  # of a report
_OPTIONS = {"y_true": "--true", "y_pred": "--pred"}  # which name other columns than these

ROW = "number of the row"  # counted from 1, with the blank lines of the file


class Column(NamedTuple):
    """A column, or one of those of an array or of a column of lists."""

    name: str
    place: int | None = None

    def __str__(self) -> str:
        return self.name if self.place is None else f"{self.name}[:, {self.place}]"


class Source(Protocol):
    """A table in a file."""

    @property
    def names(self) -> Sequence[str]:
        """Lists the columns or arrays."""

    @property
    def num_rows(self) -> int | None:
        """Counts the rows; None if unknown before the end."""

    def width(self, name: str) -> int | None:
        """Return how many numbers a column holds in each row; None for a plain column."""

    def check_labels(self, name: str) -> None:
        """Refuse a column that cannot hold classes, groups or ids."""

    def batches(
        self, labels: Mapping[str, Column], numbers: Mapping[str, Column]
    ) -> Iterator[pl.DataFrame]:
        """Read the rows in order: `ROW`, labels as strings, numbers as the file has them.

        The keys name the columns of the batches.
        """

    def pieces(self, labels: Mapping[str, Column]) -> Iterator[pl.LazyFrame]:
        """Read the same as `batches`, in pieces for the engine, of which only few rows leave it."""


def column_of(source: Source, name: str) -> Column:
    """Find a plain column."""
    if name not in source.names:
        option = _OPTIONS.get(name)
        hint = f"; {option} names another" if option else ""
        raise InputError(f"no column {name!r}; the file has {listed(source.names)}{hint}")
    if f"{name}_duplicated_0" in source.names:  # what polars makes of a second one
        raise InputError(f"the file has two columns {name!r}")
    return Column(name)


def family_of(source: Source, prefix: str, taken: Sequence[str] = ()) -> dict[str, Column]:
    """Find the columns that begin with a prefix, or those of an array or of lists, by class."""
    if prefix in source.names and (width := source.width(prefix)) is not None:
        if not 0 < width <= MAX_CLASSES:
            raise InputError(
                f"column {prefix!r} holds {width} numbers per row, expected 1 to {MAX_CLASSES}"
            )
        return {str(i): Column(prefix, i) for i in range(width)}
    found = [name for name in source.names if name.startswith(prefix) and name not in taken]
    if found and all(name.startswith(f"{prefix}.") for name in found):
        prefix = f"{prefix}."  # of the fields of an object
    if len(found) > MAX_CLASSES:
        raise InputError(
            f"{len(found)} columns begin with {prefix!r}, more than the {MAX_CLASSES} classes that"
            " a report may have"
        )
    if not found:
        raise InputError(f"no column begins with {prefix!r}; the file has {listed(source.names)}")
    return {name.removeprefix(prefix): column_of(source, name) for name in found}


def element_of(column: pl.Expr, place: int, width: int) -> pl.Expr:
    """Return an element of a column of lists, null where a list has another length."""
    return pl.when(column.list.len() == width).then(column.list.get(place, null_on_oob=True))


def dotted(paths: Sequence[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Name columns and fields of objects by their paths: of two equal names the shorter path's."""
    names: dict[str, tuple[str, ...]] = {}
    for path in sorted(paths, key=len):
        names.setdefault(".".join(path), path)
    return names


def column_at(path: Sequence[str]) -> pl.Expr:
    """Return a column, or a field of the objects in it."""
    column = pl.col(path[0])
    for key in path[1:]:
        column = column.struct.field(key)
    return column
