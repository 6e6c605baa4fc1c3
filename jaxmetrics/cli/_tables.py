"""The base class of tables in files, which are read in pieces of bounded size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from jaxmetrics.cli._errors import InputError, listed, reading

__all__: list[str] = []

BATCH_BYTES = 2**22
BATCH_ROWS = 2**16
PIECE_ROWS = 2**22  # the largest number of rows of a piece
MAX_CLASSES = 4096  # the largest number of classes of a report
_MOST_HELD = 3 * 2**28  # the largest size of the rows that are kept in memory, in bytes
JOIN_HINT = "give --id with a column of ids to match the rows by"
_OPTIONS = {"y_true": "--true", "y_pred": "--pred"}  # the options that name other columns
_LONGEST_TEXT = 1000  # the largest number of characters of a shown value
_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)

ROW = "number of the row"  # rows are counted from 1, and blank lines count

Reduction: TypeAlias = Callable[[pl.LazyFrame], pl.LazyFrame]


class Value(NamedTuple):
    """A value of each row: its name in error messages, and the expression that computes it."""

    name: str
    expr: pl.Expr


class FileTable(ABC):
    """A table in a file.

    Attributes:
        names: the names of the columns or arrays; the name of a field of an object is its path with
            dots.
        num_rows: the number of rows; None if it is unknown until all rows are read.
    """

    names: Sequence[str]
    num_rows: int | None = None

    @abstractmethod
    def kind(self, name: str) -> Any:
        """Return the type of a column."""

    @abstractmethod
    def _pieces(self, names: Collection[str]) -> Iterator[pl.LazyFrame]:
        """Read `ROW` and at least these columns, piece by piece, in the order of the rows."""

    def _batches(
        self, names: Collection[str], values: Sequence[pl.Expr], reduced: Reduction | None
    ) -> Iterator[pl.DataFrame]:
        for piece in self._pieces(names):
            rows = piece.select(values)
            if reduced is None:
                yield rows.collect()
            else:
                yield reduced(rows).collect(engine="streaming")

    def batches(
        self, asked: Mapping[str, Value], reduced: Reduction | None = None
    ) -> Iterator[pl.DataFrame]:
        """Read `ROW` and values by their roles, in batches of rows that fit into memory.

        Args:
            asked: the values by role.
            reduced: a function that is applied to each batch and returns few rows, or None. If this
                function is given, batches may be larger.
        """
        values = [pl.col(ROW), *(value.expr.alias(role) for role, value in asked.items())]
        names = [name for value in asked.values() for name in value.expr.meta.root_names()]
        batches = self._batches(list(dict.fromkeys(names)), values, reduced)
        while True:
            with reading():  # only while a batch is read, not while it is used
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    def width(self, name: str) -> int | None:
        """Return how many numbers each row has in a column of arrays; None for other columns."""
        kind = self.kind(name)
        return kind.shape[0] if isinstance(kind, pl.Array) else None

    def holds(self, name: str) -> str:
        """Describe the contents of an unsuitable column for an error message."""
        return f"column {name!r} holds {self.kind(name)}"

    def _existing_kind(self, name: str) -> Any:
        """Return the type of a column; raise an error if the column does not occur exactly once."""
        if name not in self.names:
            way = f"; {_OPTIONS[name]} names another column" if name in _OPTIONS else ""
            raise InputError(self.missing(f"no column {name!r}", way))
        if f"{name}_duplicated_0" in self.names:  # polars renames a duplicate column
            raise InputError(f"the file has two columns {name!r}")
        return self.kind(name)

    def label(self, name: str) -> Value:
        """Return the classes, groups or ids of a column, without conversion."""
        kind = self._existing_kind(name)
        if not (kind.is_integer() or kind in _TEXT_KINDS):
            raise InputError(
                f"{self.holds(name)}, but classes, groups and ids must be strings or integers."
            )
        return Value(name, pl.col(name))

    def written(self, name: str, labels: pl.Expr) -> pl.Expr:
        """Convert the labels of a column to strings; missing labels become empty strings."""
        return labels.cast(pl.String).fill_null("")

    def text(self, name: str) -> Value:
        """Convert values of any type to strings of limited length; join lists by commas."""
        kind, values = self._existing_kind(name), pl.col(name)
        if isinstance(kind, pl.List | pl.Array):
            values = values.cast(pl.List(pl.String)).list.join(", ", ignore_nulls=True)
        elif kind == pl.Binary:
            raise InputError(f"{self.holds(name)}: expected text or numbers")
        return Value(name, values.cast(pl.String).str.slice(0, _LONGEST_TEXT))

    def number(self, name: str, place: int | None = None) -> Value:
        """Return the numbers of a column in their type in the file.

        Args:
            name: the name of a column.
            place: the index of the number in each array or list; None for a column of numbers. A
                list whose length differs from the first list gives null.
        """
        kind, values, shown = self._existing_kind(name), pl.col(name), name
        if place is not None:
            shown = f"{name}[:, {place}]"
            if isinstance(kind, pl.Array):
                values = values.arr.get(place)
            else:
                is_whole = values.list.len() == self.width(name)
                values = pl.when(is_whole).then(values.list.get(place, null_on_oob=True))
            kind = kind.inner
        if not (kind.is_numeric() or kind in (*_TEXT_KINDS, pl.Null)):
            raise InputError(f"{self.holds(name)}: expected numbers")
        # Categories are converted as text, because their codes are not the numbers.
        return Value(shown, values.cast(pl.String) if kind in (pl.Categorical, pl.Enum) else values)

    def missing(self, what: str, way: str = "") -> str:
        """Return an error message that a column is missing, with the names that the file has, and
        a way out.
        """
        return f"{what}; the file has {listed(self.names)}{way}"

    def family(self, prefix: str, taken: Collection[str] = ()) -> dict[str, Value]:
        """Return numbers by class, from columns with a prefix or from a column of arrays or lists.

        Args:
            prefix: the prefix of the columns, or the full name of one column.
            taken: the names of columns that have another role.
        """
        if prefix in self.names and (width := self.width(prefix)) is not None:
            if not 0 < width <= MAX_CLASSES:
                raise InputError(
                    f"the column {prefix!r} contains {width} numbers in each row, but 1 to"
                    f" {MAX_CLASSES} numbers were expected."
                )
            return {str(i): self.number(prefix, i) for i in range(width)}
        found = [name for name in self.names if name.startswith(prefix) and name not in taken]
        if found and all(name.startswith(f"{prefix}.") for name in found):
            prefix = f"{prefix}."  # the columns are fields of an object
        if len(found) > MAX_CLASSES:
            raise InputError(
                f"{len(found)} columns have names that begin with {prefix!r}, but a report may"
                f" have at most {MAX_CLASSES} classes. Check the prefix."
            )
        if not found:
            raise InputError(self.missing(f"no column begins with {prefix!r}"))
        return {name.removeprefix(prefix): self.number(name) for name in found}


def check_held(rows: Iterable[pl.DataFrame]) -> None:
    """Raise an error if the rows that are kept take too much memory."""
    if sum(frame.estimated_size() for frame in rows) > _MOST_HELD:
        raise InputError(
            "the file has too many rows. Scores, paired predictions and, if --cluster is given,"
            " probabilities are kept in memory, where they may take at most"
            f" {_MOST_HELD // 2**20} MB. Use fewer rows."
        )


def check_number_of_rows(paths: Sequence[str], frames: Sequence[pl.DataFrame]) -> None:
    """Raise an error if files without ids have different numbers of rows."""
    number = len(frames[0])
    for path, rows in zip(paths, frames, strict=True):
        if len(rows) != number:
            raise InputError(
                f"all files must have the same number of rows, but {paths[0]} has {number} rows"
                f" and {path} has {len(rows)} rows; {JOIN_HINT}"
            )


def dotted(paths: Iterable[tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the paths of columns and of fields of objects by their names with dots. If two paths
    have the same name, the shorter path is returned.
    """
    names: dict[str, tuple[str, ...]] = {}
    for path in sorted(paths, key=len):
        names.setdefault(".".join(path), path)
    return names


def column_at(path: Sequence[str]) -> pl.Expr:
    """Return the column at a path of length 1, or the field of objects at a longer path."""
    column = pl.col(path[0])
    for key in path[1:]:
        column = column.struct.field(key)
    return column
