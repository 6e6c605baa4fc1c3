"""Find the files that a path stands for, and open each file as a table of its type.

The extension determines the type of a file; for standard input, the first bytes determine it.
"""

from __future__ import annotations

import errno
import glob
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
from jaxmetrics.cli._errors import InputError, closed_standard_error, named, reading, shown
from jaxmetrics.cli._json_lines import JsonLines
from jaxmetrics.cli._tables import ROW, FileTable, Reduction, column_at, dotted
from jaxmetrics.cli._text import COMPRESSED, SeparatedValues, chunks_of

__all__: list[str] = []

_JSON_LINES = (".jsonl", ".ndjson")
_BINARY = (".parquet", ".arrow", ".feather", ".npz")
_KNOWN = (".csv", ".tsv", *_JSON_LINES, *_BINARY)
_STANDARD_INPUT = Path("-")
_FIRST_BYTES = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\3\4": ".npz"}


def parts_of(path: Path) -> list[Path]:
    """List the files that a path stands for, sorted: a file, all files of a folder or glob pattern,
    or standard input.
    """
    with named(path):
        if path == _STANDARD_INPUT:
            return [path]
        try:
            path.stat()
        except OSError as error:
            found = sorted(map(Path, glob.glob(str(path))))
            if error.errno == errno.ENOENT and found:
                return [part for file in found for part in parts_of(file)]
            reason = "no such file" if error.errno == errno.ENOENT else error.strerror
            raise InputError(str(reason)) from None
        if path.is_dir():
            return _parts_in(path)
        if path.is_file() and _extension(path) not in _KNOWN:
            raise InputError(
                f"the suffix {path.suffix!r} is unknown. The supported suffixes are"
                f" {', '.join(_KNOWN)}. Files of text may be compressed"
                f" ({' or '.join(COMPRESSED)})."
            )
    return [path]


def _parts_in(folder: Path) -> list[Path]:
    """List the files of known types in a folder, but not hidden and temporary files."""
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(str(error.strerror)) from None
    parts = [
        file
        for file in files
        if file.name[0] not in "._" and _extension(file) in _KNOWN and file.is_file()
    ]
    if not parts:
        raise InputError(f"the folder contains no file of type {', '.join(_KNOWN)}")
    return parts


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


@contextmanager
def opened(path: Path, separator: str | None) -> Iterator[FileTable]:
    """Open a file as a table; errors in the block begin with the name of the file."""
    with named(path), ExitStack() as files:
        with reading():
            table = _table(path, separator, files)
        # Threads of polars may also panic while no piece is read.
        if isinstance(table, ScannedTable):
            files.enter_context(closed_standard_error())
        yield table


def _table(path: Path, separator: str | None, files: ExitStack) -> FileTable:
    is_standard_input = path == _STANDARD_INPUT
    if is_standard_input and sys.stdin is None:
        raise InputError("standard input is closed")
    stream: Any = sys.stdin.buffer if is_standard_input else files.enter_context(path.open("rb"))
    kind = _extension(path)
    if is_pipe(path):
        start = stream.peek(16)
        kind = next((x for first, x in _FIRST_BYTES.items() if start.startswith(first)), "")
        if kind:
            stream = io.BytesIO(stream.read())  # these formats have their index at the end
    if kind == ".npz":
        return Arrays(files.enter_context(zipfile.ZipFile(stream)))
    if kind in _BINARY:
        # polars reads a file faster if it is given the name, which must be valid UTF-8.
        by_name = path.is_file() and shown(path) == str(path)
        return ScannedTable(_scan(path if by_name else None, stream, kind))
    chunks = filter(None, chunks_of(stream, path.suffix.lower()))
    first = next(chunks, b"")
    is_object = first.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{")
    if kind in _JSON_LINES or (not kind and is_object):
        return JsonLines(chain([first], chunks))
    return SeparatedValues(chain([first], chunks), _checked_separator(kind, separator))


def _checked_separator(kind: str, separator: str | None) -> str:
    """Return the given column separator, or the default separator of the file type."""
    given = {"\\t": "\t", "tab": "\t"}.get(separator or "", separator)
    if given is not None and (len(given.encode()) != 1 or given in '"\r\n'):
        raise InputError(
            f"--separator must be one ASCII character, or \\t for a tab, got {separator!r}"
        )
    return given or ("\t" if kind == ".tsv" else ",")


def _scan(path: Path | None, stream: IO[bytes], kind: str) -> pl.LazyFrame:
    start = stream.read(6)
    stream.seek(0)
    if kind == ".parquet":
        return pl.scan_parquet(path or stream, glob=False, hive_partitioning=False)
    if start == b"ARROW1":
        return pl.scan_ipc(path or stream, glob=False, hive_partitioning=False)
    return pl.read_ipc_stream(path or stream.read()).lazy()  # Arrow has a stream format, too


def _leaves(
    schema: Mapping[str, Any], *objects: str
) -> Iterator[tuple[tuple[str, ...], pl.DataType]]:
    """List the path and type of each column; a column of objects is replaced by its fields."""
    for name, kind in schema.items():
        if isinstance(kind, pl.Struct):
            yield from _leaves(dict(kind), *objects, name)
        else:
            yield (*objects, name), kind


class ScannedTable(FileTable):
    """Reads Parquet or Arrow files."""

    def __init__(self, table: pl.LazyFrame) -> None:
        kinds = dict(_leaves(table.collect_schema()))
        paths = dotted(kinds)
        self.names = list(paths)
        self._kinds = {name: kinds[path] for name, path in paths.items()}
        columns = (column_at(path).alias(name) for name, path in paths.items())
        number = pl.col(ROW).cast(pl.Int64)
        self._table = table.with_row_index(ROW, 1).select(number, *columns)
        self.num_rows: int = table.select(pl.len()).collect().item()

    def kind(self, name: str) -> Any:
        """Return the type of a column, or of a field of objects."""
        return self._kinds[name]

    def width(self, name: str) -> int | None:
        """Return the number of elements in each array or in the first list of a column."""
        if not isinstance(self._kinds[name], pl.List):
            return super().width(name)
        first = self._table.select(pl.col(name).list.len()).head(1).collect()
        return int(first.item() or 0) if len(first) else 0

    def _pieces(self, names: Collection[str]) -> Iterator[pl.LazyFrame]:
        """Yield slices; the first slice is small, because most errors occur in the first rows."""
        start, size = 0, _tables.BATCH_ROWS
        while start < self.num_rows:
            yield self._table.slice(start, size)
            start, size = start + size, _tables.PIECE_ROWS

    def _batches(
        self, names: Collection[str], values: Sequence[pl.Expr], reduced: Reduction | None
    ) -> Iterator[pl.DataFrame]:
        """Read batches; polars divides the table if the rows are not reduced."""
        if reduced is not None:
            yield from super()._batches(names, values, reduced)
            return
        size = max(1, min(_tables.BATCH_ROWS, 4 * _tables.BATCH_BYTES // (8 * len(values))))
        rows = self._table.select(values)
        yield from rows.collect_batches(chunk_size=size, maintain_order=True)
