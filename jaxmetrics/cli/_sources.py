"""Files as tables, in batches of rows that are bounded in bytes.

Text (CSV, JSON lines, compressed or not, from a file or a pipe) is read once, from its beginning,
in blocks of bytes that polars parses; Parquet and Arrow files are scanned by polars; the arrays of
NPZ are in `_arrays.py`.
"""

from __future__ import annotations

import gzip
import io
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import polars as pl

from jaxmetrics.cli._errors import InputError, listed, reading, shortened, shown

__all__: list[str] = []

BATCH_BYTES = 2**22
BATCH_ROWS = 2**16
_PIECE_ROWS = 2**22  # which the engine counts at once, and of which there may be as many cells
_LONGEST_LINE = 2**26
_ZSTD_BYTES = 2**10  # which may stand for 32 thousand times as many

MAX_CLASSES = 4096  # of a report

ROW = "number of the row"  # counted from 1, with the blank lines of the file
TEXT = (".csv", ".tsv", ".jsonl", ".ndjson")
COMPRESSED = (".gz", ".zst")
BINARY = (".parquet", ".arrow", ".feather", ".npz")
STANDARD_INPUT = Path("-")

_TEXT_KINDS = (pl.String, pl.Categorical, pl.Enum, pl.Boolean)


class Field(NamedTuple):
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
        self, labels: Mapping[str, Field], numbers: Mapping[str, Field]
    ) -> Iterator[pl.DataFrame]:
        """Read the rows in order: `ROW`, labels as strings, numbers as the file has them.

        The keys name the columns of the batches.
        """

    def pieces(self, labels: Mapping[str, Field]) -> Iterator[pl.LazyFrame]:
        """Read the same as `batches`, in pieces for the engine, of which only few rows leave it."""


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
        yield source


@contextmanager
def opened_text(path: Path, separator: str | None) -> Iterator[tuple[IO[bytes], Separated]]:
    """Open separated values that have no header."""
    with ExitStack() as files, reading():
        kind, stream = _stream(path, files)
        syntax = _syntax(kind, separator) if kind in TEXT else None
        if not isinstance(syntax, Separated):
            raise InputError(f"a matrix cannot be read from {kind} here")
        yield _decompressed(stream, path), syntax


def _source(path: Path, separator: str | None, files: ExitStack) -> Source:
    from jaxmetrics.cli._arrays import ArraySource

    kind, stream = _stream(path, files)
    if kind == ".npz":
        return ArraySource(files.enter_context(zipfile.ZipFile(stream)))
    if kind in TEXT:
        return TextSource(_decompressed(stream, path), _syntax(kind, separator))
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


def _syntax(kind: str, separator: str | None) -> Separated | JsonLines:
    if kind in (".jsonl", ".ndjson"):
        return JsonLines()
    return Separated(_checked_separator(separator) or ("\t" if kind == ".tsv" else ","))


def _sniffed(stream: Any) -> tuple[str, Any]:
    """Say by its first bytes what comes from a pipe."""
    start = stream.peek(16)
    for magic, kind in {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\3\4": ".npz"}.items():
        if start.startswith(magic):
            return kind, io.BytesIO(stream.read())  # which ends in what must be read first
    text = _decompressed(stream, STANDARD_INPUT)
    start = text.peek(16).lstrip(b"\xef\xbb\xbf \r\n\t")
    return ".jsonl" if start.startswith(b"{") else ".csv", text


def _decompressed(stream: Any, path: Path) -> Any:
    """Decompress a stream that is compressed, whatever its name."""
    start = stream.peek(4)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return io.BufferedReader(_Zstd(stream), BATCH_BYTES)
    if path.suffix.lower() in COMPRESSED:
        raise InputError(f"cannot be read: it is not compressed as {path.suffix} says")
    return stream


class _Zstd(io.RawIOBase):
    """Decompresses frames of Zstandard, and notices when the last one is cut off."""

    def __init__(self, stream: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError:
            raise InputError(
                "cannot be read: .zst needs zstandard: pip install zstandard"
            ) from None
        self._stream, self._frames = stream, zstandard.ZstdDecompressor(max_window_size=2**27)
        self._frame: Any = None
        self._ready = b""

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        while not self._ready:
            data = self._stream.read(_ZSTD_BYTES)
            if not data and self._frame is not None:
                raise InputError("cannot be read: the compressed file is cut off")
            if not data:
                return 0
            while data:
                self._frame = self._frame or self._frames.decompressobj()
                self._ready += self._frame.decompress(data)
                data = self._frame.unused_data if self._frame.eof else b""
                self._frame = None if self._frame.eof else self._frame
        n = min(len(buffer), len(self._ready))
        buffer[:n], self._ready = self._ready[:n], self._ready[n:]
        return n


def _checked_separator(separator: str | None) -> str | None:
    given = {"\\t": "\t", "tab": "\t"}.get(separator or "", separator)
    if given is not None and (len(given.encode()) != 1 or given in '"\r\n'):
        raise InputError(f"--separator must be one character of ASCII, or \\t, got {separator!r}")
    return given


class Separated(NamedTuple):
    """Text of separated values under a header."""

    separator: str

    def header(self, first: bytes) -> tuple[bytes, dict[str, Any]]:
        """Return the header, which every block is given, and the columns that it names."""
        line, end, _ = first.partition(b"\n")
        if line.count(b'"') % 2:
            raise InputError("the header has a quote that is not closed")
        return line + end, dict.fromkeys(self.parse(line, {}).columns, pl.String)

    def check(self, names: Sequence[str]) -> None:
        """Refuse a header that seems to have another separator."""
        others = [c for c in ",;\t|" if c != self.separator and c in "".join(names)]
        if len(names) == 1 and others:
            option = "\\t" if others[0] == "\t" else others[0]
            raise InputError(
                f"columns are not separated by {self.separator!r}, the first line is"
                f" {shortened(names[0])!r}: --separator '{option}' reads it"
            )

    def end_of_rows(self, block: bytes) -> int:
        """Find the end of the last row that is whole: a line ends outside of quotes only."""
        end = block.rfind(b"\n") + 1
        if block.count(b'"', 0, end) % 2:
            end = block.rfind(b"\n", 0, block.rfind(b'"', 0, end)) + 1
        return end

    def parse(self, text: bytes, schema: Mapping[str, Any]) -> pl.DataFrame:
        """Parse rows under the header."""
        return self._read(text, has_header=True)

    def cells(self, text: bytes) -> pl.DataFrame:
        """Parse lines without a header."""
        return self._read(text, has_header=False)

    def _read(self, text: bytes, has_header: bool) -> pl.DataFrame:
        return pl.read_csv(
            text,
            has_header=has_header,
            separator=self.separator,
            infer_schema=False,
            raise_if_empty=False,
            glob=False,
        )


class JsonLines:
    """Text of one JSON object per line."""

    def check(self, names: Sequence[str]) -> None:
        """Nothing can be mistaken."""

    def header(self, first: bytes) -> tuple[bytes, dict[str, Any]]:
        """Find the columns in the first block: scalars are read as strings."""
        found = pl.read_ndjson(io.BytesIO(first), infer_schema_length=None).schema
        kinds = {True: pl.List(pl.Float64), False: pl.String}
        return b"", {name: kinds[isinstance(kind, pl.List)] for name, kind in found.items()}

    def end_of_rows(self, block: bytes) -> int:
        """Find the end of the last line."""
        return block.rfind(b"\n") + 1

    def parse(self, text: bytes, schema: Mapping[str, Any]) -> pl.DataFrame:
        """Parse rows."""
        return (
            pl.read_ndjson(io.BytesIO(text), schema=schema)
            if text.strip()
            else pl.DataFrame(schema=schema)
        )


class TextSource:
    """Reads text from a stream, once."""

    num_rows: int | None = None

    def __init__(self, stream: IO[bytes], syntax: Separated | JsonLines) -> None:
        self.syntax = syntax
        self._blocks = _blocks(stream, syntax.end_of_rows)
        first = next(self._blocks, b"").removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        if not first.strip():
            raise InputError("cannot be read: empty")
        self._header, self.schema = syntax.header(first)
        self._first = first[len(self._header) :]
        self.names = list(self.schema)
        self._widths: dict[str, int] = {}
        for name, kind in self.schema.items():
            if kind != pl.String:
                lengths = syntax.parse(self._first, self.schema)[name].list.len().drop_nulls()
                self._widths[name] = int(lengths[0]) if len(lengths) else 0

    def width(self, name: str) -> int | None:
        """Return the number of elements of a list, as many as its first row has."""
        return self._widths.get(name)

    def check_labels(self, name: str) -> None:
        """Refuse lists."""
        if name in self._widths:
            raise InputError(f"column {name!r} holds lists: expected strings or integers")

    def _frames(self) -> Iterator[pl.DataFrame]:
        """Parse block by block, with the numbers of the rows."""
        before = 0
        for block in chain([self._first], self._blocks):
            frame = self.syntax.parse(self._header + block, self.schema)
            numbers = pl.int_range(before + 1, before + 1 + pl.len(), dtype=pl.Int64)
            yield frame.with_columns(numbers.alias(ROW))
            before += len(frame)

    def batches(
        self, labels: Mapping[str, Field], numbers: Mapping[str, Field]
    ) -> Iterator[pl.DataFrame]:
        """Leave out blank lines, and strip spaces."""
        blank = pl.all_horizontal(pl.col(self.names).is_null())
        columns = [pl.col(ROW)]
        columns += [pl.col(x.name).str.strip_chars().alias(key) for key, x in labels.items()]
        columns += [self._number(field).alias(key) for key, field in numbers.items()]
        for frame in self._frames():
            yield frame.filter(~blank).select(columns)

    def _number(self, field: Field) -> pl.Expr:
        if field.place is None:
            return pl.col(field.name).str.strip_chars()
        return _element(field.name, field.place, self._widths[field.name])

    def pieces(self, labels: Mapping[str, Field]) -> Iterator[pl.LazyFrame]:
        """Give the batches."""
        return (batch.lazy() for batch in self.batches(labels, {}))


def _blocks(stream: IO[bytes], end_of_rows: Callable[[bytes], int]) -> Iterator[bytes]:
    """Read blocks of whole rows, of about equal size."""
    rest = b""
    while chunk := stream.read(BATCH_BYTES):
        block = rest + chunk
        end = end_of_rows(block)
        if end:
            yield block[:end]
        rest = block[end:]
        if len(rest) > _LONGEST_LINE:
            raise InputError(
                f"a row has more than {_LONGEST_LINE // 2**20} MB: is it text, and is every quote"
                " closed?"
            )
    if rest:
        yield rest


def _element(name: str, place: int, width: int) -> pl.Expr:
    """Return an element of a column of lists, null where a list has another length."""
    lists = pl.col(name).list
    return pl.when(lists.len() == width).then(lists.get(place, null_on_oob=True))


def _scan(path: Path | None, stream: IO[bytes], kind: str) -> pl.LazyFrame:
    start = stream.read(6)
    stream.seek(0)
    if kind == ".parquet":
        return pl.scan_parquet(path or stream, glob=False, hive_partitioning=False)
    if start == b"ARROW1":
        return pl.scan_ipc(path or stream, glob=False, hive_partitioning=False)
    return pl.read_ipc_stream(path or stream.read()).lazy()  # the other format of the name


class ScannedSource:
    """Reads Parquet or Arrow."""

    def __init__(self, table: pl.LazyFrame) -> None:
        self._table = table.with_row_index(ROW, 1)
        self.schema = table.collect_schema()
        self.names = self.schema.names()
        self.num_rows: int | None = table.select(pl.len()).collect().item()

    def width(self, name: str) -> int | None:
        """Return the number of elements of an array, or of the first list."""
        kind = self.schema[name]
        if isinstance(kind, pl.Array):
            return kind.shape[0]
        if isinstance(kind, pl.List):
            with reading():
                lengths = self._table.select(pl.col(name).list.len()).head(1).collect()
            return int(lengths.item() or 0) if len(lengths) else 0
        return None

    def check_labels(self, name: str) -> None:
        """Refuse fractions, dates, bytes and nested columns."""
        kind = self.schema[name]
        if not (kind.is_integer() or kind in _TEXT_KINDS):
            raise InputError(f"column {name!r} holds {kind}: classes must be strings or integers")

    def batches(
        self, labels: Mapping[str, Field], numbers: Mapping[str, Field]
    ) -> Iterator[pl.DataFrame]:
        """Read as many rows at once as fit."""
        columns = [pl.col(ROW).cast(pl.Int64), *self._labels(labels)]
        columns += [self._number(field).alias(key) for key, field in numbers.items()]
        size = max(1, min(BATCH_ROWS, 4 * BATCH_BYTES // (8 * len(columns))))
        rows = self._table.select(columns)
        return iter(rows.collect_batches(chunk_size=size, maintain_order=True))

    @staticmethod
    def _labels(labels: Mapping[str, Field]) -> list[pl.Expr]:
        return [pl.col(field.name).cast(pl.String).alias(key) for key, field in labels.items()]

    def _number(self, field: Field) -> pl.Expr:
        if field.place is None:
            return pl.col(field.name)
        if isinstance(self.schema[field.name], pl.Array):
            return pl.col(field.name).arr.get(field.place)
        return _element(field.name, field.place, self.width(field.name) or 0)

    def whole(self) -> pl.DataFrame:
        """Read all of the table."""
        return self._table.drop(ROW).collect()

    def pieces(self, labels: Mapping[str, Field]) -> Iterator[pl.LazyFrame]:
        """Give pieces of the table, the first one small, where most mistakes show."""
        columns = [pl.col(ROW).cast(pl.Int64), *self._labels(labels)]
        start, size = 0, BATCH_ROWS
        while start < (self.num_rows or 0):
            yield self._table.slice(start, size).select(columns)
            start, size = start + size, _PIECE_ROWS


@dataclass(frozen=True)
class Columns:
    """Names columns or arrays by their role, and the prefix (NPZ: the array) of probabilities.

    `pred` None means `y_pred`, or what the probabilities or the threshold say where the file has
    none.
    """

    true: str = "y_true"
    pred: str | None = None
    weight: str | None = None
    prob: str | None = None
    score: str | None = None
    group: str | None = None
    cluster: str | None = None
    id: str | None = None


def column_of(source: Source, name: str) -> Field:
    """Find a plain column."""
    if name not in source.names:
        raise InputError(f"no column {name!r}; the file has {listed(source.names)}")
    if f"{name}_duplicated_0" in source.names:  # what polars makes of a second one
        raise InputError(f"the file has two columns {name!r}")
    return Field(name)


def family_of(source: Source, prefix: str, taken: Sequence[str] = ()) -> dict[str, Field]:
    """Find the columns that begin with a prefix, or those of an array or of lists, by class."""
    if prefix in source.names and (width := source.width(prefix)) is not None:
        if not 0 < width <= MAX_CLASSES:
            raise InputError(
                f"column {prefix!r} holds {width} numbers per row, expected 1 to {MAX_CLASSES}"
            )
        return {str(i): Field(prefix, i) for i in range(width)}
    found = [name for name in source.names if name.startswith(prefix) and name not in taken]
    if len(found) > MAX_CLASSES:
        raise InputError(
            f"{len(found)} columns begin with {prefix!r}, more than the {MAX_CLASSES} classes that"
            " a report may have"
        )
    if not found:
        raise InputError(f"no column begins with {prefix!r}; the file has {listed(source.names)}")
    return {name.removeprefix(prefix): column_of(source, name) for name in found}
