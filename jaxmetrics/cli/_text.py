"""Read tables in text files, which may be compressed, from a file or a pipe.

A file is read once, in blocks of complete rows. Memory is therefore bounded, even if the file is
compressed, and error messages can name the row.
"""

from __future__ import annotations

import gzip
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Collection, Iterator
from functools import partial
from itertools import accumulate, chain
from typing import Any

import polars as pl

from jaxmetrics.cli import _tables
from jaxmetrics.cli._errors import InputError, reason_of, shortened
from jaxmetrics.cli._tables import ROW, FileTable

__all__: list[str] = []

COMPRESSED = (".gz", ".zst")
_LONGEST_LINE = 2**26
_ZSTD_BYTES = 2**10  # few compressed bytes, because they may expand by a factor of 32 thousand


def chunks_of(stream: Any, suffix: str) -> Iterator[bytes]:
    """Read a stream in pieces, and decompress it if its first bytes show that it is compressed."""
    start = stream.peek(4)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd_chunks(stream)
    if start.startswith(b"\x1f\x8b"):
        stream = gzip.GzipFile(fileobj=stream)
    elif suffix in COMPRESSED:
        raise InputError(f"cannot be read: the contents are not {suffix} data")
    return iter(partial(stream.read, _tables.BATCH_BYTES), b"")


def _zstd_chunks(stream: Any) -> Iterator[bytes]:
    """Decompress Zstandard frames; raise an error if the last frame is truncated."""
    try:
        import zstandard
    except ImportError:
        raise InputError(
            "the file cannot be read, because .zst files need the package zstandard. Install it"
            " with: pip install zstandard"
        ) from None
    frames, frame = zstandard.ZstdDecompressor(max_window_size=2**27), None
    while data := stream.read(_ZSTD_BYTES):
        while data:
            frame = frame or frames.decompressobj()
            yield frame.decompress(data)
            data = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None:
        raise InputError("cannot be read: the compressed file is truncated")


class Text(FileTable):
    """Base class of tables in text, which is read once."""

    blank = pl.lit(False)  # expression that is True for blank lines

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._blocks = self._whole_rows(chunks)
        first = next(self._blocks, b"").removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        if not first.strip():
            raise InputError("cannot be read: the file is empty")
        if b"\0" in first:
            raise InputError(
                "the file cannot be read, because it contains zero bytes, which do not occur in"
                " UTF-8 text. Save the file as UTF-8 if it is UTF-16, or correct its suffix if it"
                " is not a text file."
            )
        self._first = self._without_header(first)

    @abstractmethod
    def _without_header(self, first: bytes) -> bytes:
        """Find the columns in the first block, and return the rows of the block."""

    @abstractmethod
    def _parsed(self, rows: bytes, names: Collection[str], before: int) -> pl.DataFrame:
        """Parse rows that follow `before` other rows; an error names the first invalid row."""

    def _end_of_rows(self, block: bytes) -> int:
        return block.rfind(b"\n") + 1

    def _whole_rows(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield blocks of complete rows that have similar sizes."""
        rest, searched = bytearray(), 0
        for chunk in chunks:
            rest += chunk
            if len(rest) < searched + _tables.BATCH_BYTES:
                continue
            end = self._end_of_rows(bytes(rest))
            if end:
                yield bytes(rest[:end])
            del rest[:end]
            searched = len(rest)
            if searched > _LONGEST_LINE:
                raise InputError(
                    f"a row has more than {_LONGEST_LINE // 2**20} MB. Check that the file is a"
                    " text file and that every quote is closed."
                )
        if rest:
            yield bytes(rest)

    def _pieces(self, names: Collection[str]) -> Iterator[pl.LazyFrame]:
        """Yield frames without blank lines, and without spaces around values."""
        before = 0
        for block in chain([self._first], self._blocks):
            frame = self._parsed(block, names, before)
            row = pl.int_range(before + 1, before + 1 + pl.len(), dtype=pl.Int64).alias(ROW)
            rows = frame.lazy().with_columns(row).filter(~self.blank).select(ROW, *names)
            yield rows.with_columns(pl.col(pl.String).str.strip_chars())
            before += len(frame)


class SeparatedValues(Text):
    """Reads text with a header and values that are separated by a character, such as CSV."""

    blank = pl.all_horizontal(pl.exclude(ROW).is_null())

    def __init__(self, chunks: Iterator[bytes], separator: str) -> None:
        self.separator = separator
        super().__init__(chunks)

    def kind(self, name: str) -> Any:
        """Return the type of all columns, strings."""
        return pl.String

    def _without_header(self, first: bytes) -> bytes:
        line, end, rows = first.partition(b"\n")
        if not end and b"\r" in line.rstrip():
            raise InputError(
                "the lines of the file end with a carriage return only, but they must end with a"
                " line feed. Convert them with tr '\\r' '\\n'."
            )
        if line.count(b'"') % 2:
            raise InputError("the header has a quote that is not closed")
        self._header = line + end
        self.names = self._read(line).columns
        return rows

    def missing(self, what: str, way: str = "") -> str:
        """Return an error message; if there is a single column, it suggests another separator."""
        others = [c for c in ",;\t|" if c != self.separator and c in self.names[0]]
        if len(self.names) > 1 or not others:
            return super().missing(what, way)
        option = "\\t" if others[0] == "\t" else others[0]
        return (
            f"columns are not separated by {self.separator!r}, the first line is"
            f" {shortened(self.names[0])!r}: --separator '{option}' reads it"
        )

    def _end_of_rows(self, block: bytes) -> int:
        """Return the end of the last complete row, which is not a line break within quotes."""
        end = block.rfind(b"\n") + 1
        is_quoted = block.count(b'"', 0, end) % 2
        while is_quoted:
            before = block.rfind(b"\n", 0, block.rfind(b'"', 0, end)) + 1
            is_quoted ^= block.count(b'"', before, end) % 2
            end = before
        return end

    def _parsed(self, rows: bytes, names: Collection[str], before: int) -> pl.DataFrame:
        try:
            return self._read(self._header + rows)
        except pl.exceptions.PolarsError as error:
            number = before + self._first_bad_row(rows)
            raise InputError(f"cannot be read: row {number}: {reason_of(error)}") from None

    def _first_bad_row(self, rows: bytes) -> int:
        lines = [line + b"\n" for line in rows.split(b"\n")]
        quotes = accumulate(line.count(b'"') for line in lines)
        ends = [i for i, number in enumerate(quotes, 1) if number % 2 == 0]

        def is_bad(end: int) -> bool:
            try:
                self._read(self._header + b"".join(lines[:end]))
            except pl.exceptions.PolarsError:
                return True
            return False

        return bisect_left(ends, True, key=is_bad) + 1

    def _read(self, text: bytes) -> pl.DataFrame:
        return pl.read_csv(
            text, separator=self.separator, infer_schema=False, raise_if_empty=False, glob=False
        )
