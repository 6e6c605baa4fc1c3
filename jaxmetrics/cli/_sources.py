"""Open files as tables, by the type of their extension or first bytes."""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

import polars as pl

from jaxmetrics.cli import _tables
from jaxmetrics.cli._arrays import Arrays
from jaxmetrics.cli._errors import InputError, closed_standard_error, reading, shown
from jaxmetrics.cli._json_lines import JsonLines
from jaxmetrics.cli._tables import ROW, FileTable, column_at, dotted
from jaxmetrics.cli._text import COMPRESSED, SeparatedValues, chunks_of

__all__: list[str] = []

JSON_LINES = (".jsonl", ".ndjson")
TEXT = (".csv", ".tsv", *JSON_LINES)
BINARY = (".parquet", ".arrow", ".feather", ".npz")
STANDARD_INPUT = Path("-")
_FIRST_BYTES = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\3\4": ".npz"}


def extension(path: Path) -> str:
    """Return the extension of a file, without the extension of its compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def is_pipe(path: Path) -> bool:
    """Tell whether a path can be read only once: standard input, a pipe or a device."""
    return path == STANDARD_INPUT or (path.exists() and not path.is_file())


@contextmanager
def opened(path: Path, separator: str | None = None) -> Iterator[FileTable]:
    """Open a table by the type of its extension, or of its first bytes if it is a pipe."""
    with ExitStack() as files:
        with reading():
            table = _table(path, separator, files)
        if isinstance(table, ScannedTable):  # polars threads may also panic between pieces
            files.enter_context(closed_standard_error())
        yield table


def _table(path: Path, separator: str | None, files: ExitStack) -> FileTable:
    kind, stream = _stream(path, files)
    if kind == ".npz":
        return Arrays(files.enter_context(zipfile.ZipFile(stream)))
    if kind in BINARY:
        # polars reads files faster by name, which must be UTF-8.
        named = path if path.is_file() and shown(path) == str(path) else None
        return ScannedTable(_scan(named, stream, kind))
    chunks = filter(None, chunks_of(stream, path.suffix.lower()))
    first = next(chunks, b"")
    is_object = first.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{")
    if kind in JSON_LINES or (not kind and is_object):
        return JsonLines(chain([first], chunks))
    return SeparatedValues(chain([first], chunks), _checked_separator(kind, separator))


def _stream(path: Path, files: ExitStack) -> tuple[str, Any]:
    """Open a file, and return its type, or None if it is text of unknown type."""
    if path == STANDARD_INPUT and sys.stdin is None:
        raise InputError("standard input is closed")
    is_standard_input = path == STANDARD_INPUT
    stream: Any = sys.stdin.buffer if is_standard_input else files.enter_context(path.open("rb"))
    if not is_pipe(path):
        return extension(path), stream
    start = stream.peek(16)
    for first_bytes, kind in _FIRST_BYTES.items():
        if start.startswith(first_bytes):
            return kind, io.BytesIO(stream.read())  # whose index is at the end
    return "", stream


def _checked_separator(kind: str, separator: str | None) -> str:
    """Return the column separator: the given one, or the default of the file type."""
    given = {"\\t": "\t", "tab": "\t"}.get(separator or "", separator)
    if given is not None and (len(given.encode()) != 1 or given in '"\r\n'):
        raise InputError(f"--separator must be one character of ASCII, or \\t, got {separator!r}")
    return given or ("\t" if kind == ".tsv" else ",")


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
    """List columns; a column of objects is replaced by its fields."""
    for name, kind in schema.items():
        if isinstance(kind, pl.Struct):
            yield from _leaves(dict(kind), *objects, name)
        else:
            yield (*objects, name), kind


class ScannedTable(FileTable):
    """Reads Parquet or Arrow."""

    def __init__(self, table: pl.LazyFrame) -> None:
        self._table = table.with_row_index(ROW, 1)
        kinds = dict(_leaves(table.collect_schema()))
        paths = dotted(kinds)
        self.names = list(paths)
        self._kinds = {name: kinds[path] for name, path in paths.items()}
        self._columns = {name: column_at(path).alias(name) for name, path in paths.items()}
        self._num_rows: int = table.select(pl.len()).collect().item()

    @property
    def num_rows(self) -> int | None:
        """The number of rows."""
        return self._num_rows

    def kind(self, name: str) -> Any:
        """Return the type of a column or field."""
        return self._kinds[name]

    def width(self, name: str) -> int | None:
        """Return the number of elements of an array, or of the first list."""
        if not isinstance(self._kinds[name], pl.List):
            return super().width(name)
        first = self._table.select(self._columns[name].list.len()).head(1).collect()
        return int(first.item() or 0) if len(first) else 0

    def _rows(self, names: Collection[str]) -> pl.LazyFrame:
        return self._table.select(
            pl.col(ROW).cast(pl.Int64), *(self._columns[name] for name in names)
        )

    def _pieces(self, names: Collection[str]) -> Iterator[pl.LazyFrame]:
        """Yield slices; the first is small, because most mistakes show there."""
        start, size = 0, _tables.BATCH_ROWS
        while start < self._num_rows:
            yield self._rows(names).slice(start, size)
            start, size = start + size, _tables.PIECE_ROWS

    def _batches(
        self, names: Collection[str], columns: Sequence[pl.Expr]
    ) -> Iterator[pl.DataFrame]:
        """Read batches of rows that fit into memory."""
        size = max(1, min(_tables.BATCH_ROWS, 4 * _tables.BATCH_BYTES // (8 * len(columns))))
        rows = self._rows(names).select(columns)
        yield from rows.collect_batches(chunk_size=size, maintain_order=True)

    def whole(self) -> pl.DataFrame:
        """Read all of the table."""
        return self._rows(self.names).drop(ROW).collect()
