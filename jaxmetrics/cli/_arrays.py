"""The arrays of an NPZ file, read from the archive piece by piece."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import IO, NamedTuple

import numpy as np
import polars as pl

from jaxmetrics.cli import _tables
from jaxmetrics.cli._errors import InputError
from jaxmetrics.cli._tables import ROW, Column

__all__: list[str] = []

_LONGEST_HEADER = 2**16
_LARGEST_ROW = 2**24  # bytes


class _Array(NamedTuple):
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    fortran_order: bool
    offset: int  # of its first byte in its member of the archive

    @property
    def row_bytes(self) -> int:
        """The size of a row."""
        return self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=object))


class ArraySource:
    """Reads NPZ, bounded in bytes whatever its headers promise."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        members = [name for name in archive.namelist() if name.endswith(".npy")]
        self.names = [name.removesuffix(".npy") for name in members]
        self._known: dict[str, _Array] = {}

    @property
    def num_rows(self) -> int | None:
        """The length of the arrays that were looked at."""
        lengths = {array.shape[0] for array in self._known.values() if array.shape}
        return lengths.pop() if len(lengths) == 1 else None

    def array(self, name: str) -> _Array:
        """Read what is known of an array before its values."""
        if name not in self._known:
            with self._archive.open(f"{name}.npy") as file:
                self._known[name] = _header(file.read(_LONGEST_HEADER), name)
        return self._known[name]

    def width(self, name: str) -> int | None:
        """Return the number of columns of an array `(n, K)`."""
        array = self.array(name)
        if len(array.shape) == 1:
            return None
        self._check(array, "(n, K)", 2)
        if array.fortran_order:
            raise InputError(
                f"array {name!r} is stored column by column; save numpy.ascontiguousarray of it"
            )
        return array.shape[1]

    def check_labels(self, name: str) -> None:
        """Refuse fractions and tables."""
        array = self.array(name)
        self._check(array, "(n,)", 1)
        if array.dtype.kind not in "iubUS":
            raise InputError(f"array {name!r} holds {array.dtype}: expected strings or integers")

    @staticmethod
    def _check(array: _Array, expected: str, ndim: int) -> None:
        if len(array.shape) != ndim:
            raise InputError(f"array {array.name!r} has shape {array.shape}, expected {expected}")
        if not 0 < array.row_bytes <= _LARGEST_ROW and array.shape[-1]:
            raise InputError(
                f"array {array.name!r} has {array.row_bytes} bytes per row, expected 1 to"
                f" {_LARGEST_ROW}"
            )

    def batches(
        self, labels: Mapping[str, Column], numbers: Mapping[str, Column]
    ) -> Iterator[pl.DataFrame]:
        """Read as many rows of all arrays at once as fit."""
        fields = {**labels, **numbers}
        arrays = {field.name: self.array(field.name) for field in fields.values()}
        for field in numbers.values():
            array = arrays[field.name]
            self._check(array, *(("(n,)", 1) if field.place is None else ("(n, K)", 2)))
            _check_numbers(array)
        lengths = {name: array.shape[0] for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{name!r} has {n}" for name, n in lengths.items())
            raise InputError(f"unequal lengths: {found}")
        total = max(lengths.values())
        row_bytes = sum(array.row_bytes for array in arrays.values())
        size = max(1, min(_tables.BATCH_ROWS, 4 * _tables.BATCH_BYTES // max(row_bytes, 1)))
        with ExitStack() as stack:
            files = {name: stack.enter_context(self._values(arrays[name])) for name in arrays}
            for start in range(0, total, size):
                n = min(size, total - start)
                rows = {name: _rows(files[name], array, n) for name, array in arrays.items()}
                yield _frame(rows, labels, numbers, start)

    def whole(self, name: str) -> np.ndarray:
        """Read an array whose shape was found to be small."""
        array = self.array(name)
        _check_numbers(array)
        with self._values(array) as file:
            rows = _rows(file, array._replace(fortran_order=False), array.shape[0])
        return rows.reshape(array.shape[::-1]).T if array.fortran_order else rows

    def _values(self, array: _Array) -> IO[bytes]:
        """Open the file of an array where its values begin."""
        file = self._archive.open(f"{array.name}.npy")
        file.read(array.offset)
        return file

    def pieces(self, labels: Mapping[str, Column]) -> Iterator[pl.LazyFrame]:
        """Give the batches."""
        return (batch.lazy() for batch in self.batches(labels, {}))


def _header(start: bytes, name: str) -> _Array:
    file = io.BytesIO(start)
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject:
        raise InputError(
            f"array {name!r} holds Python objects; save it as integers or fixed-width strings"
        )
    if not all(type(n) is int and 0 <= n < 2**62 for n in shape):
        raise InputError(f"array {name!r} has no possible shape: {shape}")
    return _Array(name, shape, dtype, fortran_order, file.tell())


def _check_numbers(array: _Array) -> None:
    if array.dtype.kind not in "iubf":
        raise InputError(f"array {array.name!r} holds {array.dtype}: expected real numbers")


def _rows(file: IO[bytes], array: _Array, number: int) -> np.ndarray:
    data = file.read(number * array.row_bytes)
    if len(data) < number * array.row_bytes:
        raise InputError(f"array {array.name!r} ends before its last row")
    return np.frombuffer(data, array.dtype).reshape(number, *array.shape[1:])


def _frame(
    rows: Mapping[str, np.ndarray],
    labels: Mapping[str, Column],
    numbers: Mapping[str, Column],
    start: int,
) -> pl.DataFrame:
    length = len(next(iter(rows.values())))
    data = {ROW: pl.Series(np.arange(start + 1, start + 1 + length))}
    for key, field in labels.items():
        data[key] = pl.Series(_as_text(rows[field.name], field.name)).cast(pl.String)
    for key, field in numbers.items():
        array = rows[field.name]
        column = array if field.place is None else array[:, field.place]
        data[key] = pl.Series(column.astype(float))
    return pl.DataFrame(data)


def _as_text(array: np.ndarray, name: str) -> np.ndarray:
    """Decode labels, which must be characters."""
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind == "b":
        return array.astype(str)
    if array.dtype.kind == "U":
        points = array.view(np.uint32)
        if (
            points.max(initial=0) >= 0xD800
            and (  # surrogates and what is beyond Unicode
                ((points < 0xE000) & (points >= 0xD800)) | (points > 0x10FFFF)
            ).any()
        ):
            raise InputError(f"array {name!r} holds what are no characters")
    return array
