"""Read JSON lines (text with one JSON object per line), and keep only the requested columns.

The fields of nested objects are also columns; their names contain dots: `evaluation.is_correct`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Any

import polars as pl

from jaxmetrics.cli._errors import InputError, shortened
from jaxmetrics.cli._tables import column_at, dotted
from jaxmetrics.cli._text import Text

__all__: list[str] = []


class JsonLines(Text):
    """Reads JSON lines, with values as strings or lists of strings."""

    def _without_header(self, first: bytes) -> bytes:
        """Find the columns in the first block; the first value of a column determines its type."""
        found: dict[tuple[str, ...], Any] = {}
        for row in _objects(first, 0):
            for path, value in _fields(row):
                if value is not None:
                    found.setdefault(path, value)
        self._paths = dotted(
            path
            for path, value in found.items()
            if not isinstance(value, dict) and isinstance(found.get(path[:-1], {}), dict)
        )
        self._first_values = {name: found[path] for name, path in self._paths.items()}
        self.names = list(self._paths)
        return first

    def kind(self, name: str) -> Any:
        """Return the type of a column: strings or lists of strings."""
        is_list = isinstance(self._first_values[name], list)
        return pl.List(pl.String) if is_list else pl.String

    def width(self, name: str) -> int | None:
        """Return the number of elements in the first list; None for a column without lists."""
        first = self._first_values[name]
        return len(first) if isinstance(first, list) else None

    def _parsed(self, rows: bytes, names: Collection[str], before: int) -> pl.DataFrame:
        if b"\\ud" not in rows.lower():  # polars reads half a surrogate pair as U+0000
            with suppress(pl.exceptions.PolarsError):
                return self._parsed_by_polars(rows, names)
        # Polars failed: a row is invalid (the error below names it), or contains values that only
        # Python reads, such as NaN.
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for number, row in enumerate(_objects(rows, before), before + 1):
            for name, values in columns.items():
                value: Any = row
                for key in self._paths[name]:
                    value = value.get(key) if isinstance(value, dict) else None
                if self.width(name) is None:
                    values.append(_text(value))
                elif isinstance(value, list | None):
                    values.append(value and [_text(element) for element in value])
                else:
                    raise InputError(
                        f"in row {number}, the column {name!r} contains {shortened(str(value))!r},"
                        " but a list was expected."
                    )
        return pl.DataFrame(columns, {name: self.kind(name) for name in names})

    def _parsed_by_polars(self, rows: bytes, names: Collection[str]) -> pl.DataFrame:
        paths = {name: self._paths[name] for name in names}
        schema: dict[str, Any] = {}
        for name, (*objects, last) in paths.items():
            fields = schema
            for key in objects:
                fields = fields.setdefault(key, {})
            fields[last] = self.kind(name)
        found = pl.read_ndjson(BytesIO(rows), schema={x: _struct(y) for x, y in schema.items()})
        return found.select(column_at(path).alias(name) for name, path in paths.items())


def _struct(kind: Any) -> Any:
    if isinstance(kind, dict):
        return pl.Struct({name: _struct(inner) for name, inner in kind.items()})
    return kind


def _objects(text: bytes, before: int) -> Iterator[dict[str, Any]]:
    """Parse lines, and raise an error that names the first invalid line; keep integers as text."""
    lines = filter(None, map(bytes.strip, text.split(b"\n")))
    for number, line in enumerate(lines, before + 1):
        try:
            row = json.loads(line.decode(), parse_int=str, parse_float=_decimal, parse_constant=str)
        except (ValueError, RecursionError) as error:
            raise InputError(f"cannot be read: row {number}: {error}") from None
        if not isinstance(row, dict):
            raise InputError(f"cannot be read: row {number} is not a JSON object")
        yield row


def _decimal(number: str) -> str:
    """Write a float as the name of a class: 1.0 is the class "1"."""
    value = float(number)
    return str(int(value)) if value.is_integer() else repr(value)


def _fields(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in row.items():
        yield (name,), value
        if isinstance(value, dict):
            yield from (((name, *path), x) for path, x in _fields(value))


def _text(value: Any) -> str | None:
    r"""Write a value as text; replace half of a surrogate pair by an escape such as `\ud800`."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
