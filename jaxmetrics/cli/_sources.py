"""Files as tables, of the kind that their names or first bytes say.

Parquet and Arrow files are scanned by polars here; text is in `_text.py`, the arrays of NPZ are in
`_arrays.py`.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import polars as pl

from jaxmetrics.cli import _tables
from jaxmetrics.cli._arrays import ArraySource
from jaxmetrics.cli._errors import InputError, closed_standard_error, reading, shown
from jaxmetrics.cli._tables import ROW, Column, Source, column_at, dotted, element_of
from jaxmetrics.cli._text import COMPRESSED, Separated, TextSource, decompressed, syntax_of

__all__: list[str] = []

TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")
BINARY = (".parquet", ".arrow", ".feather", ".npz")
STANDARD_INPUT = Path("-")

_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)


def extension(path: Path) -> str:
    """Return what says of which kind a file is, without that of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def opened(path: Path, separator: str | None = None, *, checked: bool = True) -> Iterator[Source]:
    """Open a table, of the kind that its extension says, or its first bytes if it is a pipe.

    `checked` refuses text that seems to have another separator.
    """
    with ExitStack() as files:
        with reading():
            source = _source(path, separator, files)
            if checked and isinstance(source, TextSource):
                source.syntax.check(source.names)
        if isinstance(source, ScannedSource):  # whose threads may panic between batches, too
            files.enter_context(closed_standard_error())
        yield source


@contextmanager
def opened_text(path: Path, separator: str | None) -> Iterator[tuple[IO[bytes], Separated]]:
    """Open separated values that have no header."""
    with ExitStack() as files:
        with reading():
            kind, stream = _stream(path, files)
            syntax = syntax_of(kind, separator) if kind in TEXT else None
            if not isinstance(syntax, Separated):
                raise InputError(f"a matrix cannot be read from {kind} here")
            text = decompressed(stream, path)
        yield text, syntax


def _source(path: Path, separator: str | None, files: ExitStack) -> Source:
    kind, stream = _stream(path, files)
    if kind == ".npz":
        return ArraySource(files.enter_context(zipfile.ZipFile(stream)))
    if kind in TEXT:
        return TextSource(decompressed(stream, path), syntax_of(kind, separator))
    # polars reads files faster by their names, which must be UTF-8.
    named = path if path.is_file() and shown(path) == str(path) else None
    return ScannedSource(_scan(named, stream, kind))


def _stream(path: Path, files: ExitStack) -> tuple[str, Any]:
    if not is_pipe(path):
        return extension(path), files.enter_context(path.open("rb"))
    if path != STANDARD_INPUT:
        return _sniffed(files.enter_context(path.open("rb")))
    if sys.stdin is None:
        raise InputError("standard input is closed")
    return _sniffed(sys.stdin.buffer)


def is_pipe(path: Path) -> bool:
    """Tell whether a path is standard input, a pipe or a device: what can be read once."""
    return path == STANDARD_INPUT or (path.exists() and not path.is_file())


def _sniffed(stream: Any) -> tuple[str, Any]:
    """Say by its first bytes what comes from a pipe."""
    start = stream.peek(16)
    for magic, kind in {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\3\4": ".npz"}.items():
        if start.startswith(magic):
            return kind, io.BytesIO(stream.read())  # which ends in what must be read first
    text = decompressed(stream, STANDARD_INPUT)
    start = text.peek(16).lstrip(b"\xef\xbb\xbf \r\n\t")
    return ".jsonl" if start.startswith(b"{") else ".csv", text


def _scan(path: Path | None, stream: IO[bytes], kind: str) -> pl.LazyFrame:
    start = stream.read(6)
    stream.seek(0)
    if kind == ".parquet":
        return pl.scan_parquet(path or stream, glob=False, hive_partitioning=False)
    if start == b"ARROW1":
        return pl.scan_ipc(path or stream, glob=False, hive_partitioning=False)
    return pl.read_ipc_stream(path or stream.read()).lazy()  # the other format of the name


def _leaves(
    schema: Mapping[str, Any], *objects: str
) -> Iterator[tuple[tuple[str, ...], pl.DataType]]:
    """List columns; a column of objects gives way to their fields."""
    for name, kind in schema.items():
        if isinstance(kind, pl.Struct):
            yield from _leaves(dict(kind), *objects, name)
        else:
            yield (*objects, name), kind


class ScannedSource:
    """Reads Parquet or Arrow."""

    def __init__(self, table: pl.LazyFrame) -> None:
        self._table = table.with_row_index(ROW, 1)
        kinds = dict(_leaves(table.collect_schema()))
        self._paths = dotted(list(kinds))
        self._kinds = {name: kinds[path] for name, path in self._paths.items()}
        self.names = list(self._paths)
        self.num_rows: int | None = table.select(pl.len()).collect().item()

    def width(self, name: str) -> int | None:
        """Return the number of elements of an array, or of the first list."""
        kind = self._kinds[name]
        if isinstance(kind, pl.Array):
            return kind.shape[0]
        if isinstance(kind, pl.List):
            with reading():
                lists = column_at(self._paths[name]).list
                lengths = self._table.select(lists.len()).head(1).collect()
            return int(lengths.item() or 0) if len(lengths) else 0
        return None

    def check_labels(self, name: str) -> None:
        """Refuse fractions, dates, bytes and nested columns."""
        kind = self._kinds[name]
        if not (kind.is_integer() or kind in _TEXT_KINDS):
            raise InputError(
                f"column {name!r} holds {kind}: classes, groups and ids are strings or integers"
            )

    def batches(
        self, labels: Mapping[str, Column], numbers: Mapping[str, Column]
    ) -> Iterator[pl.DataFrame]:
        """Read as many rows at once as fit."""
        columns = [pl.col(ROW).cast(pl.Int64), *self._labels(labels)]
        columns += [self._number(field).alias(key) for key, field in numbers.items()]
        size = max(1, min(_tables.BATCH_ROWS, 4 * _tables.BATCH_BYTES // (8 * len(columns))))
        rows = self._table.select(columns)
        yield from rows.collect_batches(chunk_size=size, maintain_order=True)

    def _labels(self, labels: Mapping[str, Column]) -> list[pl.Expr]:
        return [
            column_at(self._paths[field.name]).cast(pl.String).alias(key)
            for key, field in labels.items()
        ]

    def _number(self, field: Column) -> pl.Expr:
        column = column_at(self._paths[field.name])
        kind: Any = self._kinds[field.name]
        if field.place is not None and isinstance(kind, pl.Array):
            column, kind = column.arr.get(field.place), kind.inner
        elif field.place is not None and isinstance(kind, pl.List):
            width = self.width(field.name) or 0
            column, kind = element_of(column, field.place, width), kind.inner
        if not (kind.is_numeric() or kind in (*_TEXT_KINDS, pl.Null)):
            raise InputError(f"column {field.name!r} holds {kind}: expected numbers")
        # The integers that stand for the categories are no numbers.
        return column.cast(pl.String) if kind in (pl.Categorical, pl.Enum) else column

    def whole(self) -> pl.DataFrame:
        """Read all of the table."""
        return self._table.drop(ROW).collect()

    def pieces(self, labels: Mapping[str, Column]) -> Iterator[pl.LazyFrame]:
        """Give pieces of the table, the first one small, where most mistakes show."""
        columns = [pl.col(ROW).cast(pl.Int64), *self._labels(labels)]
        start, size = 0, _tables.BATCH_ROWS
        while start < (self.num_rows or 0):
            yield self._table.slice(start, size).select(columns)
            start, size = start + size, _tables.PIECE_ROWS
