"""Read the arrays of an NPZ file from the archive in pieces."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from functools import cache
from io import BytesIO
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl

from jaxmetrics.cli import _tables
from jaxmetrics.cli._errors import InputError
from jaxmetrics.cli._tables import ROW, FileTable

__all__: list[str] = []

_LONGEST_HEADER = 2**16
_LARGEST_ROW = 2**24  # bytes
_KINDS = {"i": pl.Int64, "u": pl.UInt64, "b": pl.Boolean, "f": pl.Float64} | dict.fromkeys(
    "US", pl.String
)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype
    num_bytes: int

    @property
    def row_bytes(self) -> int:
        """The size of a row in bytes."""
        return self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=object))


class Arrays(FileTable):
    """Reads NPZ files in bounded memory, even if their headers are damaged."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        self.names = [name.removesuffix(".npy") for name in members]
        self._header = cache(self._read_header)

    def _read_header(self, name: str) -> _Header:
        with self._archive.open(f"{name}.npy") as file:
            start = BytesIO(file.read(_LONGEST_HEADER))
        is_first_version = np.lib.format.read_magic(start) == (1, 0)
        read = (
            np.lib.format.read_array_header_1_0
            if is_first_version
            else np.lib.format.read_array_header_2_0
        )
        header = _Header(*read(start), start.tell())
        if header.dtype.hasobject:
            raise InputError(
                f"the array {name!r} contains Python objects, which cannot be read. Save the array"
                " with integers or with strings of fixed width."
            )
        if not all(type(n) is int and 0 <= n < 2**62 for n in header.shape):
            raise InputError(f"array {name!r} has an impossible shape: {header.shape}")
        return header

    def kind(self, name: str) -> Any:
        """Return the Polars type of an array `(n,)` or `(n, K)`; `Unknown` for other arrays."""
        header = self._header(name)
        kind = _KINDS.get(header.dtype.kind, pl.Unknown)
        if len(header.shape) == 1:
            return kind
        if len(header.shape) != 2 or kind in (pl.String, pl.Unknown):
            return pl.Unknown
        if header.fortran_order:
            raise InputError(
                f"the array {name!r} is stored in Fortran order, but must be in C order. Save"
                f" numpy.ascontiguousarray({name}) instead."
            )
        return pl.Array(kind, header.shape[1])

    def holds(self, name: str) -> str:
        """Describe the contents of an unsuitable array for an error message."""
        header = self._header(name)
        if len(header.shape) == 1:
            return f"array {name!r} holds {header.dtype}"
        return f"array {name!r} has shape {header.shape}, expected (n,)"

    def written(self, name: str, labels: pl.Expr) -> pl.Expr:
        """Convert labels to strings; booleans become "True" and "False", as in NumPy."""
        text = super().written(name, labels)
        return text.str.to_titlecase() if self.kind(name) == pl.Boolean else text

    def _pieces(self, names: Collection[str]) -> Iterator[pl.LazyFrame]:
        headers = {name: self._header(name) for name in names}
        for name, header in headers.items():
            if not 0 < header.row_bytes <= _LARGEST_ROW:
                raise InputError(
                    f"the array {name!r} has {header.row_bytes} bytes per row, but a row must have"
                    f" 1 to {_LARGEST_ROW} bytes."
                )
        lengths = {name: header.shape[0] for name, header in headers.items()}
        self.num_rows = max(lengths.values())
        if min(lengths.values()) < self.num_rows:
            found = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
            raise InputError(
                f"all arrays must have the same length, but they have unequal lengths: {found}."
            )
        row_bytes = sum(header.row_bytes for header in headers.values())
        size = max(1, min(_tables.BATCH_ROWS, 4 * _tables.BATCH_BYTES // row_bytes))
        with ExitStack() as stack:
            files = {name: stack.enter_context(self._archive.open(f"{name}.npy")) for name in names}
            for name, file in files.items():
                file.read(headers[name].num_bytes)
            for start in range(0, self.num_rows, size):
                number = min(size, self.num_rows - start)
                rows = {name: _series(files[name], headers[name], name, number) for name in names}
                yield pl.LazyFrame({ROW: np.arange(start + 1, start + 1 + number), **rows})


def _series(file: IO[bytes], header: _Header, name: str, number: int) -> pl.Series:
    data = file.read(number * header.row_bytes)
    if len(data) < number * header.row_bytes:
        raise InputError(f"array {name!r} ends before its last row")
    rows = np.frombuffer(data, header.dtype).reshape(number, *header.shape[1:])
    if rows.dtype.kind == "f":
        return pl.Series(rows.astype(np.float32 if rows.dtype.itemsize <= 4 else float))
    if rows.dtype.kind == "S":
        rows = np.char.decode(rows, "utf-8")
    if rows.dtype.kind != "U":
        return pl.Series(rows.astype(rows.dtype.newbyteorder("=")))
    try:
        return pl.Series(rows.tolist(), dtype=pl.String)
    except (ValueError, SystemError):  # raised for surrogates and for numbers beyond Unicode
        raise InputError(f"array {name!r} holds invalid characters") from None
