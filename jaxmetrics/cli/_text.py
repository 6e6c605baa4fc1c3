"""Tables in text: CSV and JSON lines, compressed or not, from a file or a pipe.

They are read once, from their beginning, in blocks of bytes that end with a row, which polars
parses.
"""

from __future__ import annotations

import gzip
import io
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import polars as pl

from jaxmetrics.cli import _tables
from jaxmetrics.cli._errors import InputError, reason_of, shortened
from jaxmetrics.cli._json_lines import JsonLines
from jaxmetrics.cli._tables import ROW, Column, element_of

__all__: list[str] = []

COMPRESSED = (".gz", ".zst")
_LONGEST_LINE = 2**26
_ZSTD_BYTES = 2**10  # which may stand for 32 thousand times as many


def decompressed(stream: Any, path: Path) -> Any:
    """Decompress a stream that is compressed, whatever its name."""
    start = stream.peek(4)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=stream)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return io.BufferedReader(_Zstd(stream), _tables.BATCH_BYTES)
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


def syntax_of(kind: str, separator: str | None) -> Separated | JsonLines:
    if kind in (".jsonl", ".ndjson"):
        return JsonLines()
    return Separated(_checked_separator(separator) or ("\t" if kind == ".tsv" else ","))


def _checked_separator(separator: str | None) -> str | None:
    given = {"\\t": "\t", "tab": "\t"}.get(separator or "", separator)
    if given is not None and (len(given.encode()) != 1 or given in '"\r\n'):
        raise InputError(f"--separator must be one character of ASCII, or \\t, got {separator!r}")
    return given


class Separated(NamedTuple):
    """Text of separated values under a header."""

    separator: str

    @property
    def blank(self) -> pl.Expr:
        """Tell which lines are blank."""
        return pl.all_horizontal(pl.exclude(ROW).is_null())

    def header(self, first: bytes) -> tuple[bytes, list[str]]:
        """Return the header, which every block is given, and the columns that it names."""
        line, end, _ = first.partition(b"\n")
        if not end and b"\r" in line.rstrip():
            raise InputError(
                "lines end with a carriage return alone: tr '\\r' '\\n' writes them as they must be"
            )
        if line.count(b'"') % 2:
            raise InputError("the header has a quote that is not closed")
        return line + end, self._read(line, has_header=True).columns

    def width(self, name: str) -> None:
        """No column holds lists."""

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
        is_quoted = block.count(b'"', 0, end) % 2
        while is_quoted:
            before = block.rfind(b"\n", 0, block.rfind(b'"', 0, end)) + 1
            is_quoted ^= block.count(b'"', before, end) % 2
            end = before
        return end

    def parse(self, text: bytes, kinds: Mapping[str, Any], before: int) -> pl.DataFrame:
        """Parse rows under the header, or name the first one that cannot be parsed."""
        try:
            return self._read(text, has_header=True)
        except pl.exceptions.PolarsError as error:
            number = before + self._first_bad_row(text)
            raise InputError(f"cannot be read: row {number}: {reason_of(error)}") from None

    def _first_bad_row(self, text: bytes) -> int:
        lines = [line + b"\n" for line in text.split(b"\n")]
        quotes = accumulate(line.count(b'"') for line in lines)
        ends = [i for i, number in enumerate(quotes, 1) if number % 2 == 0]  # of header and rows

        def is_bad(end: int) -> bool:
            try:
                self._read(b"".join(lines[:end]), has_header=True)
            except pl.exceptions.PolarsError:
                return True
            return False

        return bisect_left(ends, True, key=is_bad)

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


class TextSource:
    """Reads text from a stream, once."""

    num_rows: int | None = None

    def __init__(self, stream: IO[bytes], syntax: Separated | JsonLines) -> None:
        self.syntax = syntax
        self._blocks = _blocks(stream, syntax.end_of_rows)
        first = next(self._blocks, b"").removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        if not first.strip():
            raise InputError("cannot be read: empty")
        if b"\0" in first:
            raise InputError(
                "cannot be read: it holds bytes of 0, which no text in UTF-8 has; is it UTF-16, or"
                " another kind of file than its extension says?"
            )
        self._header, self.names = syntax.header(first)
        self._first = first[len(self._header) :]

    def width(self, name: str) -> int | None:
        """Return the number of elements of a list, as many as its first row has."""
        return self.syntax.width(name)

    def check_labels(self, name: str) -> None:
        """Refuse lists."""
        if self.width(name) is not None:
            raise InputError(f"column {name!r} holds lists: expected strings or integers")

    def batches(
        self, labels: Mapping[str, Column], numbers: Mapping[str, Column]
    ) -> Iterator[pl.DataFrame]:
        """Leave out blank lines, and strip spaces."""
        columns = [pl.col(ROW)]
        columns += [pl.col(x.name).str.strip_chars().alias(key) for key, x in labels.items()]
        columns += [self._number(field).alias(key) for key, field in numbers.items()]
        fields = [*labels.values(), *numbers.values()]
        kinds = {x.name: pl.String if x.place is None else pl.List(pl.Float64) for x in fields}
        before = 0
        for block in chain([self._first], self._blocks):
            frame = self.syntax.parse(self._header + block, kinds, before)
            rows = pl.int_range(before + 1, before + 1 + pl.len(), dtype=pl.Int64).alias(ROW)
            yield frame.with_columns(rows).filter(~self.syntax.blank).select(columns)
            before += len(frame)

    def _number(self, field: Column) -> pl.Expr:
        column = pl.col(field.name)
        if field.place is None:
            return column.str.strip_chars()
        return element_of(column, field.place, self.width(field.name) or 0)

    def pieces(self, labels: Mapping[str, Column]) -> Iterator[pl.LazyFrame]:
        """Give the batches."""
        return (batch.lazy() for batch in self.batches(labels, {}))


def _blocks(stream: IO[bytes], end_of_rows: Callable[[bytes], int]) -> Iterator[bytes]:
    """Read blocks of whole rows, of about equal size."""
    rest = b""
    while chunk := stream.read(_tables.BATCH_BYTES):
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
