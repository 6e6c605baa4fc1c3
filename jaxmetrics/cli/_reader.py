"""Read files of all formats as tables.

A path stands for a file, for the files of a folder or glob pattern, or for standard input. The
extension determines the format of a file; for standard input, the first bytes determine it. Polars
scans text, Parquet and Arrow files, which may be larger than memory. Compressed text, the arrays
of NPZ files and standard input are held in memory, up to a limit.
"""

from __future__ import annotations

import csv
import errno
import glob
import io
import json
import re
import sys
import zipfile
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial, reduce
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import is_number
from jaxmetrics.cli._errors import (
    InputError,
    closed_standard_error,
    listed,
    named,
    reading,
    shortened,
    shown,
)
from jaxmetrics.cli._text_files import (
    COMPRESSED,
    OF_INSPECT,
    ROW,
    START,
    check_size,
    check_text,
    decompressed,
    held,
    json_lines,
    lines_of_table,
)

MAX_CLASSES = 4096  # the largest number of classes of a report
JOIN_HINT = "give --id with a column of ids to match the rows by"

_MOST_COLUMNS = 2**16
_FIRST_ROWS = 2**16  # the first rows are read alone, because most errors occur there
_PIECE_ROWS = 2**22  # the largest number of rows that are counted at once
_LONGEST_TEXT = 1000  # the largest number of characters of a shown value
_JSON_LINES = (".jsonl", ".ndjson")
_BINARY = (".parquet", ".arrow", ".feather", ".npz")
_KNOWN = (".csv", ".tsv", *_JSON_LINES, *_BINARY)
_JSON = ".json"  # a table of Weights & Biases or MLflow; a folder may have .json files of settings
_STANDARD_INPUT = Path("-")
_FIRST_BYTES = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\3\4": ".npz"}
_OPTIONS = {"y_true": "--true", "y_pred": "--pred"}  # the options that name other columns
_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
# The files of lm-evaluation-harness, with `doc_id` from 0 in the file of each task.
_FILE_OF_TASK = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT[-\d:.]+\.jsonl(\.gz|\.zst)?")

Reduction: TypeAlias = Callable[[pl.LazyFrame], pl.LazyFrame]


def parts_of(path: Path) -> list[Path]:
    """List the files that a path stands for, sorted: a file, all files of a folder or glob pattern,
    or standard input.
    """
    with named(path):
        if path == _STANDARD_INPUT:
            return [path]
        try:
            path.stat()
            files = sorted(path.iterdir()) if path.is_dir() else []
        except OSError as error:
            matches = sorted(map(Path, glob.glob(str(path))))
            if error.errno == errno.ENOENT and matches:
                return [part for file in matches for part in parts_of(file)]
            reason = "no such file" if error.errno == errno.ENOENT else error.strerror
            raise InputError(str(reason)) from None
        if path.is_dir():
            # The names of hidden and temporary files begin with "." or "_".
            seen = [x for x in files if x.name[0] not in "._" and x.is_file()]
            parts = [x for x in seen if _extension(x) in _KNOWN]
            if not parts:
                raise InputError(f"the folder contains no file of type {', '.join(_KNOWN)}")
            return parts
        if path.is_file() and _extension(path) == ".eval":
            raise InputError(OF_INSPECT)
        if path.is_file() and _extension(path) not in (*_KNOWN, _JSON):
            raise InputError(
                f"the suffix {path.suffix!r} is unknown. The supported suffixes are"
                f" {', '.join(_KNOWN)}. Files of text may be compressed"
                f" ({' or '.join(COMPRESSED)})."
            )
    return [path]


def mentioned(path: Path) -> list[Path]:
    """List all files of any type that a path may stand for."""
    inside = list(path.iterdir()) if path.is_dir() else []
    return [path, *map(Path, glob.glob(str(path))), *inside]


def _extension(path: Path) -> str:
    """Return the extension of a file, such as ".csv" for "a.csv.gz"."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_pipe(path: Path) -> bool:
    """Return whether a path can be read only once, as standard input, a pipe or a device."""
    return path == _STANDARD_INPUT or (path.exists() and not path.is_file())


class Value(NamedTuple):
    """A value of each row: its name in error messages, and the expression that computes it."""

    name: str
    expr: pl.Expr


class FileTable:
    """A table in a file.

    Attributes:
        names: the names of the columns or arrays; the name of a field of an object is its path with
            dots.
        num_rows: the number of rows; None if it is unknown until all rows are read.
        separator: the separator of the columns of text, or None for other formats.
        raw: the rows of text before spaces are removed, or None.
        task: the task of a file of lm-evaluation-harness, which is also a column, or None.
        where: the values of columns that `--where` selects; batches leave out other rows.
        decimal: the decimal separator of numbers in text.
    """

    raw: pl.LazyFrame | None = None
    task: str | None = None
    where: Mapping[str, Collection[str]] = {}
    decimal = "."

    def __init__(
        self, rows: pl.LazyFrame, num_rows: int | None = None, separator: str | None = None
    ) -> None:
        paths: dict[str, tuple[tuple[str, ...], pl.DataType]] = {}
        schema = rows.collect_schema()
        _check_number_of_columns(len(schema))
        for path, kind in sorted(_leaves(schema), key=lambda x: len(x[0])):
            paths.setdefault(".".join(path), (path, kind))
        del paths[ROW]
        self.names = list(paths)
        self._kinds = {name: kind for name, (_, kind) in paths.items()}
        self.num_rows, self.separator = num_rows, separator
        columns = [
            reduce(lambda x, key: x.struct.field(key), path[1:], pl.col(path[0])).alias(name)
            for name, (path, _) in paths.items()
        ]
        self._rows = rows.select(ROW, *columns)

    def of_task(self, task: str) -> FileTable:
        """Return the table with a column `task`, and columns `name.0` and `name.1` for pairs."""
        lists = [name for name, kind in self._kinds.items() if isinstance(kind, pl.List)]
        pairs = {f"{x}.{i}": pl.col(x).list.get(i, null_on_oob=True) for x in lists for i in (0, 1)}
        table = FileTable(self._rows.with_columns(task=pl.lit(task), **pairs), self.num_rows)
        table.task = task
        return table

    def spaced(self, names: Collection[str]) -> list[str]:
        """Return texts of the first rows that have spaces around them in the file."""
        if self.raw is None:
            return []
        with reading():
            columns = {*names} & {*self.raw.collect_schema().names()}
            rows = self.raw.head(_FIRST_ROWS).select(pl.col(sorted(columns)).cast(pl.String))
            texts = {y for x in rows.collect() for y in x.drop_nulls().unique()}
        return sorted(x for x in texts if x.strip() not in (x, ""))

    def kind(self, name: str) -> Any:
        """Return the type of a column."""
        return self._kinds[name]

    def scanned(self, names: Collection[str]) -> pl.LazyFrame:
        """Return `ROW` and at least these columns."""
        return self._rows

    def batches(
        self, asked: Mapping[str, Value], reduced: Reduction | None = None
    ) -> Iterator[pl.DataFrame]:
        """Read `ROW` and values by their roles, in batches of rows that fit into memory.

        Args:
            asked: the values by role.
            reduced: a function that is applied to each batch and returns few rows, or None. If this
                function is given, batches may be larger.
        """
        with reading():
            names = [x for value in asked.values() for x in value.expr.meta.root_names()]
            values = [value.expr.alias(role) for role, value in asked.items()]
            kept = [self.written(x, self.label(x).expr).is_in(y) for x, y in self.where.items()]
            rows = self.scanned([*names, *self.where]).filter(*kept)
            rows = rows.select(pl.col(ROW).cast(pl.Int64), *values)
            frames = self._read(rows, reduced)
        while True:
            with reading():  # only while a batch is read, not while it is used
                batch = next(frames, None)
            if batch is None:
                return
            yield batch

    def _read(self, rows: pl.LazyFrame, reduced: Reduction | None) -> Iterator[pl.DataFrame]:
        if reduced is None or self.num_rows is None or self.where:
            for batch in rows.collect_batches(chunk_size=_FIRST_ROWS, maintain_order=True):
                yield batch if reduced is None else reduced(batch.lazy()).collect()
            return
        start, size = 0, _FIRST_ROWS
        while start < self.num_rows:
            yield reduced(rows.slice(start, size)).collect(engine="streaming")
            start, size = start + size, _PIECE_ROWS

    def width(self, name: str) -> int | None:
        """Return the number of elements in each array or in the first list of a column; None for
        other columns.
        """
        kind = self.kind(name)
        if not (isinstance(kind, pl.List) or kind == pl.String):
            return kind.shape[0] if isinstance(kind, pl.Array) else None
        values = pl.col(name)
        lists = self._cells(values) if kind == pl.String else values
        with reading():
            rows = self.scanned([name]).select(values, number=lists.list.len()).head(1)
            (first, number) = next(rows.collect().iter_rows(), (None, 0))
        if kind == pl.String and not re.match(r"\[|\S+\s", first or ""):
            return None
        return int(number or 0)

    def _cells(self, text: pl.Expr) -> pl.Expr:
        """Split text such as "[0.9, 0.1]" or "0.9 0.1" into its numbers."""
        return text.str.extract_all(r"[^\s,\[\]]+" if self.decimal == "." else r"[^\s\[\]]+")

    def holds(self, name: str) -> str:
        """Describe the contents of an unsuitable column for an error message."""
        return f"column {name!r} holds {self.kind(name)}"

    def _existing_kind(self, name: str) -> Any:
        """Return the type of a column; raise an error if the column does not occur exactly once."""
        if name not in self.names:
            way = f"; {_OPTIONS[name]} names another column" if name in _OPTIONS else ""
            if way and self.task is not None:
                way = "; --value reads a column of scores of lm-evaluation-harness, such as acc"
            if sum(x.startswith(name) for x in self.names) > 1:
                way = (
                    f". Several columns begin with {name!r}: if they are 0 and 1 for each class,"
                    " write the name of the class in one column, with idxmax(axis=1) of pandas. For"
                    " a multilabel problem, use --labels-prefix"
                )
            raise InputError(self.missing(f"no column {name!r}", way))
        if f"{name}_duplicated_0" in self.names:  # polars renames a duplicate column
            raise InputError(f"the file has two columns {name!r}")
        return self.kind(name)

    def label(self, name: str) -> Value:
        """Return the classes, groups or ids of a column, without conversion."""
        kind = self._existing_kind(name)
        if not (kind.is_integer() or kind in _TEXT_KINDS):
            way = ""
            if kind.is_float():
                way = (
                    " pandas stores integers with missing values as floats; convert_dtypes() makes"
                    " them integers again. --prob reads a column of probabilities."
                )
            elif isinstance(kind, pl.List):
                way = (
                    " For a multilabel problem, write a column of 0 and 1 for each label, and use"
                    " --labels-prefix."
                )
            raise InputError(
                f"{self.holds(name)}, but classes, groups and ids must be strings or integers.{way}"
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

    def number(self, name: str, place: int | None = None, width: int | None = None) -> Value:
        """Return the numbers of a column in their type in the file.

        Args:
            name: the name of a column.
            place: the index of the number in each array or list; None for a column of numbers.
            width: the length of the arrays or lists. A list of another length gives null.
        """
        kind, values, shown = self._existing_kind(name), pl.col(name), name
        if place is not None:
            shown = f"{name}[:, {place}]"
            if isinstance(kind, pl.Array):
                values = values.arr.get(place)
            else:
                if kind == pl.String:
                    kind, values = pl.List(pl.String), self._cells(values)
                is_whole = values.list.len() == width
                values = pl.when(is_whole).then(values.list.get(place, null_on_oob=True))
            kind = kind.inner
        if not (kind.is_numeric() or kind in (*_TEXT_KINDS, pl.Null)):
            way = ""
            if self.task is not None and isinstance(kind, pl.List):
                way = (
                    ". lm-evaluation-harness computes this metric from all pairs [true, predicted]"
                    f" of the task: --true {name}.0 --pred {name}.1 reads them"
                )
            raise InputError(f"{self.holds(name)}: expected numbers{way}")
        if kind in (pl.Categorical, pl.Enum):  # text, because their codes are not the numbers
            values = values.cast(pl.String)
        if self.decimal != "." and kind == pl.String:
            values = values.str.replace_all(self.decimal, ".", literal=True)
        return Value(shown, values)

    def missing(self, what: str, way: str = "") -> str:
        """Return an error message that a column is missing, with the names that the file has, and
        a way out. If text has a single column, the message suggests another separator.
        """
        separator, first = self.separator, "".join(self.names[:1])
        names = [re.sub(r"_duplicated_\d+$", "", x) for x in self.names]
        if separator and (len({*names}) < len(names) or all(map(is_number, names))):
            return (
                f"{what}; the first line, {listed(names)}, is read as the names of the columns. If"
                " it is a row of values, add a line of names above it"
            )
        others = [c for c in ",;\t|" if separator and c != separator and c in first]
        if len(self.names) > 1 or not others:
            return f"{what}; the file has {listed(self.names)}{way}"
        option = "\\t" if others[0] == "\t" else others[0]
        return (
            f"columns are not separated by {separator!r}, the first line is"
            f" {shortened(first)!r}: --separator '{option}' reads it"
        )

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
            return {str(i): self.number(prefix, i, width) for i in range(width)}
        members = [name for name in self.names if name.startswith(prefix) and name not in taken]
        if members and all(name.startswith(f"{prefix}.") for name in members):
            prefix = f"{prefix}."  # the columns are fields of an object
        if len(members) > MAX_CLASSES:
            raise InputError(
                f"{len(members)} columns have names that begin with {prefix!r}, but a report may"
                f" have at most {MAX_CLASSES} classes. Check the prefix."
            )
        if not members:
            raise InputError(self.missing(f"no column begins with {prefix!r}"))
        return {name.removeprefix(prefix): self.number(name) for name in members}


class Arrays(FileTable):
    """The arrays of an NPZ file, which are read when they are needed."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive, self.separator, self.num_rows = archive, None, None
        self.names = [x.removesuffix(".npy") for x in archive.namelist() if x.endswith(".npy")]
        self.held = cache(self._array)

    def _array(self, name: str) -> np.ndarray:
        check_size(self._archive.getinfo(f"{name}.npy").file_size)
        try:
            with self._archive.open(f"{name}.npy") as file:
                array = np.ascontiguousarray(np.lib.format.read_array(file))
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise InputError(
                f"the array {name!r} contains Python objects, which cannot be read. Save the array"
                " with integers or with strings of fixed width."
            ) from None
        check_size(array.size)  # strings may have no bytes
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8")
        return array

    def kind(self, name: str) -> Any:
        """Return the Polars type of an array `(n,)` or `(n, K)`; `Unknown` for other arrays."""
        array = self.held(name)
        if array.ndim > 2 or array.dtype.kind not in ("iubf" if array.ndim == 2 else "iubfU"):
            return pl.Unknown()
        return pl.Series(array[:0]).dtype

    def holds(self, name: str) -> str:
        """Describe the contents of an unsuitable array for an error message."""
        array = self.held(name)
        if array.ndim == 1:
            return f"array {name!r} holds {array.dtype}"
        return f"array {name!r} has shape {array.shape}, expected (n,)"

    def written(self, name: str, labels: pl.Expr) -> pl.Expr:
        """Convert labels to strings; booleans become "True" and "False", as in NumPy."""
        text = super().written(name, labels)
        return text.str.to_titlecase() if self.kind(name) == pl.Boolean else text

    def scanned(self, names: Collection[str]) -> pl.LazyFrame:
        """Return `ROW` and these arrays, which must have the same length."""
        arrays = {name: self.held(name) for name in names}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len({*lengths.values()}) > 1:
            sizes = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
            raise InputError(
                f"all arrays must have the same length, but they have unequal lengths: {sizes}."
            )
        check_size(sum(array.nbytes for array in arrays.values()))
        self.num_rows = max(lengths.values())
        return pl.LazyFrame({name: _series(x) for name, x in arrays.items()}).with_row_index(ROW, 1)


def _series(array: np.ndarray) -> pl.Series:
    if array.dtype.kind == "U":
        return pl.Series(array.tolist(), dtype=pl.String)
    if array.dtype.kind == "f":
        return pl.Series(array.astype(np.float32 if array.dtype.itemsize <= 4 else float))
    return pl.Series(array.astype(array.dtype.newbyteorder("=")))


def _leaves(schema: Mapping[str, Any], *objects: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """List the path and type of each column; a column of objects is replaced by its fields."""
    for name, kind in schema.items():
        if isinstance(kind, pl.Struct):
            yield from _leaves(dict(kind), *objects, name)
        else:
            yield (*objects, name), kind


@contextmanager
def opened(path: Path, options: Namespace) -> Iterator[FileTable]:
    """Open a file as a table; errors in the block begin with the name of the file."""
    # Threads of polars may also panic while no batch is read.
    with named(path), ExitStack() as files, closed_standard_error():
        with reading():
            table = _table(path, options.separator, files)
            name = _FILE_OF_TASK.fullmatch(path.name)
            if name is not None and "doc_id" in table.names:
                table = table.of_task(name[1])
            for name, value in options.where:
                table.where = {**table.where, name: [*table.where.get(name, ()), value]}
            table.decimal = options.decimal
        yield table


def _table(path: Path, separator: str | None, files: ExitStack) -> FileTable:
    is_standard_input = path == _STANDARD_INPUT
    if is_standard_input and sys.stdin is None:
        raise InputError("standard input is closed")
    stream: Any = sys.stdin.buffer if is_standard_input else files.enter_context(path.open("rb"))
    start, kind = stream.peek(16), _extension(path)
    if is_pipe(path):
        kind = next((x for first, x in _FIRST_BYTES.items() if start.startswith(first)), "")
    is_text = kind not in _BINARY
    chunks = decompressed(stream, start, path.suffix.lower()) if is_text else None
    # Polars opens files by their names, which must be valid UTF-8.
    is_opened_by_name = chunks is None and not is_pipe(path) and shown(path) == str(path)
    is_scanned = is_opened_by_name and kind != _JSON
    source = path if is_scanned else held(chunks or iter(partial(stream.read, START), b""))
    if kind == ".npz":
        file = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        return Arrays(files.enter_context(zipfile.ZipFile(files.enter_context(file))))
    if not is_text:
        options: Any = {"glob": False, "hive_partitioning": False}
        if kind == ".parquet":
            rows = pl.scan_parquet(source, **options)
        elif start.startswith(b"ARROW1"):
            rows = pl.scan_ipc(source, **options)
        else:
            rows = pl.read_ipc_stream(source).lazy()  # Arrow has a stream format, too
        number = rows.select(pl.len()).collect().item()
        return FileTable(rows.with_row_index(ROW, 1), number)
    first = source[:START] if isinstance(source, bytes) else stream.read(START)
    return _text_table(source, first, kind, separator)


def _text_table(source: Path | bytes, first: bytes, kind: str, separator: str | None) -> FileTable:
    """Scan text whose first bytes are known: JSON lines, or separated values with a header."""
    check_text(first)
    if kind == _JSON:
        with suppress(json.JSONDecodeError):  # several lines of JSON
            source = lines_of_table(json.loads(cast(bytes, source)))
            first = source[:START]
        kind = ".jsonl"
    is_object = first.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{")
    if kind in _JSON_LINES or (not kind and is_object):
        return _stripped(json_lines(source, first))
    declared = re.match(rb"(?:\xef\xbb\xbf)?sep=(.)\r?\n", first)  # a line of Excel
    if declared is not None and separator is None:
        separator = declared[1].decode()
    mark = {"\\t": "\t", "tab": "\t"}.get(separator or "", separator)
    if mark is not None and (len(mark.encode()) != 1 or mark in '"\r\n'):
        raise InputError(
            f"--separator must be one ASCII character, or \\t for a tab, got {separator!r}"
        )
    mark = mark or ("\t" if kind == ".tsv" else ",")
    # Polars needs a kilobyte for the name of a column.
    text = io.StringIO(first.decode("utf-8", "replace"), newline="")
    _check_number_of_columns(len(next(csv.reader(text, delimiter=mark), [])))
    options: Any = {"infer_schema": False, "raise_if_empty": False, "glob": False}
    options["skip_lines"] = 0 if declared is None else 1
    rows = pl.scan_csv(source, separator=mark, row_index_name=ROW, row_index_offset=1, **options)
    # Blank lines; for thousands of columns, the optimizer of polars takes minutes and gigabytes.
    some = pl.any_horizontal(pl.exclude(ROW).is_not_null())
    rows = rows.map_batches(
        lambda batch: batch.filter(some),
        projection_pushdown=False,
        predicate_pushdown=False,
        streamable=True,
    )
    return _stripped(rows, mark)


def _stripped(rows: pl.LazyFrame, separator: str | None = None) -> FileTable:
    """Return the table without spaces around texts."""
    table = FileTable(rows.with_columns(pl.col(pl.String).str.strip_chars()), separator=separator)
    table.raw = rows
    return table


def no_rows(options: Namespace) -> str:
    """Say that a file has no rows, or none that `--where` selects."""
    asked = " and ".join(f"{name} = {value!r}" for name, value in options.where)
    return f"the file has no rows{asked and f' with {asked}'}"


def _check_number_of_columns(number: int) -> None:
    if number > _MOST_COLUMNS:
        raise InputError(f"the file has more than {_MOST_COLUMNS} columns. Leave out columns.")


def check_number_of_rows(paths: Sequence[str], frames: Sequence[pl.DataFrame]) -> None:
    """Raise an error if files without ids have different numbers of rows."""
    number = len(frames[0])
    for path, rows in zip(paths, frames, strict=True):
        if len(rows) != number:
            raise InputError(
                f"all files must have the same number of rows, but {paths[0]} has {number} rows"
                f" and {path} has {len(rows)} rows; {JOIN_HINT}"
            )


def check_order(paths: Sequence[str], frames: Sequence[pl.DataFrame]) -> None:
    """Raise an error if files have the same ids in another order."""
    for path, frame in zip(paths[1:], frames[1:], strict=True):
        if any("usual id" not in x.columns for x in (frames[0], frame)):
            continue
        a, b = frames[0]["usual id"], frame["usual id"]
        differ = a != b
        if differ.any() and a.is_in(b.implode()).any():
            row = frames[0][ROW].filter(differ)[0]
            raise InputError(
                f"{paths[0]} and {path} have ids in different orders. The first difference is in"
                f" row {row}; {JOIN_HINT}, or --id '' to match the rows by their order"
            )
