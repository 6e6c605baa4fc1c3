"""Files of predictions as batches of rows: CSV and Parquet by polars, NPZ by NumPy.

A batch is a polars frame with the columns `true` and `pred` (class names as strings), `weight` and,
for each class with probabilities, `prob 0`, `prob 1`, ...; all but `true` only where the file has
them and they are asked for.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

import numpy as np
import polars as pl

from jaxmetrics.cli import PRED, TRUE

__all__: list[str] = []

BATCH_SIZE = 2**18
MAX_CLASSES = 4096
EXTENSIONS = (".csv", ".parquet", ".npz")
LABELS = ("true", "pred")  # roles whose columns hold classes

_ROW = "number of the row"  # a column of frames from files whose blank lines are left out


class InputError(Exception):
    """Something is wrong with what the user gave; the message is one line that says what."""


@dataclass(frozen=True)
class Columns:
    """Names columns or arrays, and the prefix (NPZ: the array) of the probabilities.

    `pred` None means `y_pred`, or the most probable class where the file has only probabilities.
    """

    true: str = TRUE
    pred: str | None = None
    weight: str | None = None
    prob: str | None = None
    id: str | None = None

    def roles(self, found: Sequence[str]) -> dict[str, str]:
        """Give the column of each role but `prob`, all of them among those `found`."""
        pred = self.pred or (PRED if self.prob is None or PRED in found else None)
        named = ("true", self.true), ("pred", pred), ("weight", self.weight), ("id", self.id)
        roles = {role: name for role, name in named if name}
        for name in roles.values():
            if name not in found:
                raise InputError(f"no column {name!r}; the file has {listed(found)}")
            if f"{name}_duplicated_0" in found:  # what polars makes of a second one
                raise InputError(f"the file has two columns {name!r}")
        if len(set(roles.values())) < len(roles):
            given = ", ".join(f"{role} = {name!r}" for role, name in roles.items())
            raise InputError(f"one column has two roles: {given}")
        return roles


@contextmanager
def input_errors(path: Path) -> Iterator[None]:
    """Turn errors of the block into an InputError that names the file."""
    try:
        if path.suffix.lower() not in EXTENSIONS:
            known = ", ".join(EXTENSIONS)
            raise InputError(f"unknown extension {path.suffix!r}; known are {known}")
        if not path.is_file():
            raise InputError("it is a directory" if path.is_dir() else "no such file")
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (pl.exceptions.PolarsError, OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        hint = "; is it UTF-8?" if "utf-8" in reason else ""
        raise InputError(f"{path}: cannot be read: {reason}{hint}") from error


class Source(Protocol):
    num_rows: int | None  # None if unknown before the end
    roles: dict[str, str]  # the column of each role
    prob_names: list[str]  # the columns of probabilities
    prob_classes: list[str]  # and the classes they belong to

    def batches(self, start: int = 0) -> Iterator[pl.DataFrame]: ...


def opened_source(path: Path, columns: Columns) -> Source:
    is_npz = path.suffix.lower() == ".npz"
    return NpzSource(path, columns) if is_npz else TableSource(path, columns)


class TableSource:
    """Reads CSV or Parquet."""

    def __init__(self, path: Path, columns: Columns) -> None:
        is_csv = path.suffix.lower() == ".csv"
        if is_csv:
            table = pl.scan_csv(path, infer_schema=False, glob=False)
        else:
            table = pl.scan_parquet(path, glob=False)
        schema = table.collect_schema()
        found = schema.names()
        if len(found) == 1 and re.search(r"[;\t|]", found[0]):
            raise InputError(f"columns must be separated by commas; the first line is {found[0]!r}")
        self.roles = columns.roles(found)
        prefix = columns.prob or ""
        free = [name for name in found if name not in self.roles.values()]
        self.prob_names = [name for name in free if prefix and name.startswith(prefix)]
        self.prob_classes = [name.removeprefix(prefix) for name in self.prob_names]
        if prefix and not self.prob_names:
            raise InputError(f"no column begins with {prefix!r}; the file has {listed(found)}")
        for role in LABELS:
            if role in self.roles and schema[self.roles[role]].is_float():
                name = self.roles[role]
                raise InputError(
                    f"column {name!r} holds {schema[name]}: classes must be strings or integers"
                )
        self.num_rows = None if is_csv else table.select(pl.len()).collect().item()
        self._path, self._is_csv, self._table = path, is_csv, table
        self._labels: dict[str, None] = {}  # found in the pieces of CSV so far, as they are written

    def batches(self, start: int = 0) -> Iterator[pl.DataFrame]:
        """Read the rows from `start` on, in order."""
        columns = [pl.col(name).alias(role) for role, name in self.roles.items()]
        columns += [
            pl.col(name).alias(column)
            for name, column in zip(self.prob_names, prob_columns(self), strict=True)
        ]
        table = self._table.slice(start)
        if self._is_csv:  # leave out blank lines, strip spaces
            blank = pl.all_horizontal(pl.all().exclude(_ROW).is_null())
            table = table.with_row_index(_ROW, start + 1).filter(~blank)
            columns = [pl.col(_ROW), *(column.str.strip_chars() for column in columns)]
        rows = table.select(columns).with_columns(
            pl.col(role).cast(pl.String) for role in LABELS if role in self.roles
        )
        return rows.collect_batches(chunk_size=BATCH_SIZE, maintain_order=True)

    def cells(self, start: int, length: int) -> tuple[int, pl.DataFrame]:
        """Count the rows of a piece of the table, and how often (`len`) each pair of labels occurs.

        Pairs of the first piece are in the order of their first appearance.
        """
        piece, cells = self._table.slice(start, length), self._cells_of_known(start, length)
        if cells is None:
            cells = self._count_pairs(piece, maintain_order=start == 0)
            if self._is_csv:
                for role in LABELS:
                    self._labels |= dict.fromkeys(cells[role].unique().drop_nulls())
        num_rows = int(cells["len"].sum())
        nothing = pl.col("true").is_null() & pl.col("pred").is_null()
        if self._is_csv and not cells.filter(nothing).is_empty():
            # These are blank lines where the other columns are empty, too.
            blank = pl.all_horizontal(pl.all().is_null()).sum()
            num_blank = piece.select(blank).collect(engine="streaming").item()
            rest = pl.col("len") - pl.when(nothing).then(num_blank).otherwise(0)
            cells = cells.with_columns(rest).filter(pl.col("len") > 0)
        labels = pl.col(LABELS).cast(pl.String)
        return num_rows, cells.with_columns(labels.str.strip_chars() if self._is_csv else labels)

    def _cells_of_known(self, start: int, length: int) -> pl.DataFrame | None:
        """Count the cells of a piece of CSV in which no label is new; None if one is. To look
        labels up is faster than to hold them.
        """
        if not 0 < len(self._labels) <= MAX_CLASSES:
            return None
        kinds = {self.roles[role]: pl.Enum(list(self._labels)) for role in LABELS}
        table = pl.scan_csv(self._path, infer_schema=False, glob=False, schema_overrides=kinds)
        try:
            return self._count_pairs(table.slice(start, length))
        except pl.exceptions.PolarsError:
            return None

    def _count_pairs(self, piece: pl.LazyFrame, maintain_order: bool = False) -> pl.DataFrame:
        pair = [pl.col(self.roles[role]).alias(role) for role in LABELS]
        grouped = piece.group_by(pair, maintain_order=maintain_order)
        return grouped.agg(pl.len()).collect(engine="streaming")


class NpzSource:
    """Reads the arrays of NPZ from the archive piece by piece."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            files = [name for name in archive.namelist() if name.endswith(".npy")]
            found = [name.removesuffix(".npy") for name in files]
            if columns.prob is not None and columns.prob not in found:
                raise InputError(f"no array {columns.prob!r}; the file has {listed(found)}")
            self.roles = columns.roles(found)
            self._arrays = self.roles | ({"prob": columns.prob} if columns.prob else {})
            shapes = {role: self._check(archive, role, name) for role, name in self._arrays.items()}
        lengths = {self._arrays[role]: shape[0] for role, shape in shapes.items()}
        if len(set(lengths.values())) > 1:
            found_lengths = ", ".join(f"{name!r} has {n}" for name, n in lengths.items())
            raise InputError(f"unequal lengths: {found_lengths}")
        self.num_rows: int | None = shapes["true"][0]
        num_classes = shapes["prob"][1] if columns.prob else 0
        self.prob_names = [f"{columns.prob}[:, {i}]" for i in range(num_classes)]
        self.prob_classes = [str(i) for i in range(num_classes)]

    @staticmethod
    def _check(archive: zipfile.ZipFile, role: str, name: str) -> tuple[int, ...]:
        with archive.open(f"{name}.npy") as file:
            shape, _, dtype = _read_header(file, name)
        if len(shape) != (2 if role == "prob" else 1):
            expected = "(n, K)" if role == "prob" else "(n,)"
            raise InputError(f"array {name!r} has shape {shape}, expected {expected}")
        if role in (*LABELS, "id"):
            kinds, expected = "iubUS", "strings or integers"
        else:
            kinds, expected = "iubf", "real numbers"
        if dtype.kind not in kinds:
            raise InputError(f"array {name!r} holds {dtype}: expected {expected}")
        return shape

    def batches(self, start: int = 0) -> Iterator[pl.DataFrame]:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            readers = {role: _npy_rows(archive, name, stack) for role, name in self._arrays.items()}
            for pieces in zip(*readers.values(), strict=True):
                piece = dict(zip(readers, pieces, strict=True))
                prob = piece.pop("prob", np.empty((0, 0)))
                data = {
                    role: pl.Series(x.astype(str) if x.dtype.kind in "bS" else x)
                    for role, x in piece.items()
                }
                data |= {
                    column: pl.Series(prob[:, i].astype(float))
                    for i, column in enumerate(prob_columns(self))
                }
                yield _with_text_labels(pl.DataFrame(data))


def _with_text_labels(batch: pl.DataFrame) -> pl.DataFrame:
    return batch.with_columns(pl.col(role).cast(pl.String) for role in label_roles(batch))


def label_roles(batch: pl.DataFrame) -> list[str]:
    """List the roles of labels that a batch has: without predictions, probabilities decide."""
    return [role for role in LABELS if role in batch.columns]


def prob_columns(source: Source) -> list[str]:
    """List the columns of a batch that hold probabilities, in the order of the classes."""
    return [f"prob {i}" for i in range(len(source.prob_names))]


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject:
        raise InputError(
            f"array {name!r} holds Python objects; save it as integers or fixed-width strings"
        )
    return shape, fortran_order, dtype


def _npy_rows(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> Iterator[np.ndarray]:
    file = stack.enter_context(archive.open(f"{name}.npy"))
    shape, fortran_order, dtype = _read_header(file, name)
    if fortran_order and len(shape) > 1:
        raise InputError(
            f"array {name!r} is stored column by column; save numpy.ascontiguousarray of it"
        )
    row = dtype.itemsize * int(np.prod(shape[1:]))
    for start in range(0, shape[0], BATCH_SIZE):
        size = min(BATCH_SIZE, shape[0] - start)
        yield np.frombuffer(file.read(size * row), dtype).reshape(size, *shape[1:])


def row_number(frame: pl.DataFrame, i: int, before: int = 0) -> int:
    """Give the number of row i, counted from 1, with the blank lines of the file."""
    return int(frame[_ROW][i]) if _ROW in frame.columns else before + 1 + i


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:12]))
    return (shown or "nothing") + (f" and {len(names) - 12} more" if len(names) > 12 else "")
