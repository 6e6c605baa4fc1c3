"""A table in a file, read in pieces of bounded size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import polars as pl

from jaxmetrics.cli._errors import InputError, listed, reading

__all__: list[str] = []

BATCH_BYTES = 2**22
BATCH_ROWS = 2**16
PIECE_ROWS = 2**22  # rows per piece, and at most as many cells
MAX_CLASSES = 4096  # groups of a report
MOST_HELD = 3 * 2**28  # bytes of rows that are held in memory
JOIN_HINT = "give --id with a column to join them by"
_OPTIONS = {"y_true": "--true", "y_pred": "--pred"}  # options that select other columns
_LONGEST_TEXT = 1000  # characters of a shown value
_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)

ROW = "number of the row"  # counted from 1, including blank lines

_T = TypeVar("_T")


class Column(NamedTuple):
    """A column, or one column of an array or of lists."""

    name: str
    place: int | None = None

    def __str__(self) -> str:
        return self.name if self.place is None else f"{self.name}[:, {self.place}]"


class FileTable(ABC):
    """A table in a file.

    Attributes:
        names: the names of the columns or arrays; a field of an object has the dotted name of its
            path.
    """

    names: Sequence[str]

    @property
    def num_rows(self) -> int | None:
        """The number of rows; None if unknown before the end."""
        return None

    @abstractmethod
    def kind(self, name: str) -> Any:
        """Return the type of a column."""

    @abstractmethod
    def _pieces(self, names: Collection[str]) -> Iterator[pl.LazyFrame]:
        """Read `ROW` and these columns, in row order."""

    def _batches(
        self, names: Collection[str], columns: Sequence[pl.Expr]
    ) -> Iterator[pl.DataFrame]:
        return (piece.select(columns).collect() for piece in self._pieces(names))

    def pieces(self, columns: Iterable[Column]) -> Iterator[pl.LazyFrame]:
        """Read `ROW` and these columns, in large pieces that polars reduces to cells."""
        return _guarded(self._pieces(_names_of(columns)))

    def batches(
        self, columns: Iterable[Column], values: Sequence[pl.Expr]
    ) -> Iterator[pl.DataFrame]:
        """Compute values of these columns and `ROW`, in batches of rows that fit into memory."""
        return _guarded(self._batches(_names_of(columns), values))

    def width(self, name: str) -> int | None:
        """Return the numbers per row in a column of lists; None for a plain column."""
        kind = self.kind(name)
        return kind.shape[0] if isinstance(kind, pl.Array) else None

    def holds(self, name: str) -> str:
        """Describe the contents of an unsuitable column, for a message."""
        return f"column {name!r} holds {self.kind(name)}"

    def check_label(self, name: str) -> None:
        """Raise for a column that cannot contain classes, groups or ids."""
        kind = self.kind(name)
        if not (kind.is_integer() or kind in _TEXT_KINDS):
            raise InputError(f"{self.holds(name)}: classes, groups and ids are strings or integers")

    def label(self, column: Column, values: pl.Expr) -> pl.Expr:
        """Convert the values of a column of classes, groups or ids to strings."""
        return values.cast(pl.String)

    def text(self, name: str) -> pl.Expr:
        """Convert any values to strings and truncate them; lists are separated by commas."""
        kind, values = self.kind(name), pl.col(name)
        if isinstance(kind, pl.List | pl.Array):
            values = values.cast(pl.List(pl.String)).list.join(", ", ignore_nulls=True)
        elif kind == pl.Binary:
            raise InputError(f"{self.holds(name)}: expected text or numbers")
        return values.cast(pl.String).str.slice(0, _LONGEST_TEXT)

    def number(self, column: Column) -> pl.Expr:
        """Return numbers in the file's type; null for lists of another length."""
        kind, values = self.kind(column.name), pl.col(column.name)
        if column.place is not None and isinstance(kind, pl.Array):
            kind, values = kind.inner, values.arr.get(column.place)
        elif column.place is not None and isinstance(kind, pl.List):
            is_whole = values.list.len() == self.width(column.name)
            element = values.list.get(column.place, null_on_oob=True)
            kind, values = kind.inner, pl.when(is_whole).then(element)
        if not (kind.is_numeric() or kind in (*_TEXT_KINDS, pl.Null)):
            raise InputError(f"{self.holds(column.name)}: expected numbers")
        # The codes of categories are not numbers.
        return values.cast(pl.String) if kind in (pl.Categorical, pl.Enum) else values

    def missing(self, what: str) -> str:
        """Return a message that something is missing, with the existing names."""
        return f"{what}; the file has {listed(self.names)}"

    def column(self, name: str) -> Column:
        """Find a plain column by name."""
        if name not in self.names:
            option = _OPTIONS.get(name)
            hint = f"; {option} names another" if option else ""
            raise InputError(f"{self.missing(f'no column {name!r}')}{hint}")
        if f"{name}_duplicated_0" in self.names:  # polars renames a duplicate column
            raise InputError(f"the file has two columns {name!r}")
        return Column(name)

    def family(self, prefix: str, taken: Collection[str] = ()) -> dict[str, Column]:
        """Find the columns with a prefix, or the columns of an array or of lists, by class."""
        if prefix in self.names and (width := self.width(prefix)) is not None:
            if not 0 < width <= MAX_CLASSES:
                raise InputError(
                    f"column {prefix!r} holds {width} numbers per row, expected 1 to {MAX_CLASSES}"
                )
            return {str(i): Column(prefix, i) for i in range(width)}
        found = [name for name in self.names if name.startswith(prefix) and name not in taken]
        if found and all(name.startswith(f"{prefix}.") for name in found):
            prefix = f"{prefix}."  # fields of an object
        if len(found) > MAX_CLASSES:
            raise InputError(
                f"{len(found)} columns begin with {prefix!r}, more than the {MAX_CLASSES} classes"
                " that a report may have"
            )
        if not found:
            raise InputError(self.missing(f"no column begins with {prefix!r}"))
        return {name.removeprefix(prefix): self.column(name) for name in found}


def check_number_of_rows(path: str, rows: pl.DataFrame, other: str, more: pl.DataFrame) -> None:
    """Raise if two files that are joined row by row have different numbers of rows."""
    if len(rows) != len(more):
        raise InputError(f"{path} has {len(rows)} rows, {other} has {len(more)}; {JOIN_HINT}")


def is_too_much(held: Iterable[pl.DataFrame]) -> bool:
    """Tell whether rows take more than `MOST_HELD` bytes."""
    return sum(frame.estimated_size() for frame in held) > MOST_HELD


def _names_of(columns: Iterable[Column]) -> list[str]:
    return list(dict.fromkeys(column.name for column in columns))


def _guarded(pieces: Iterable[_T]) -> Iterator[_T]:
    """Yield pieces; errors while reading, not while they are used, become an InputError."""
    found = iter(pieces)
    while True:
        with reading():
            piece = next(found, None)
        if piece is None:
            return
        yield piece


def dotted(paths: Iterable[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Name columns and fields of objects by their paths; of equal names, the shorter path has
    priority.
    """
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
