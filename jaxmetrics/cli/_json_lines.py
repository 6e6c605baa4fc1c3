"""Read text of one JSON object per line; only columns that are asked for are parsed.

The fields of objects are columns, too, with dots in their names: `evaluation.is_correct`.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from jaxmetrics.cli._errors import InputError, shortened
from jaxmetrics.cli._tables import column_at, dotted

__all__: list[str] = []

# An escape; group 1 is one half of a surrogate pair without the other.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(u[dD][89a-fA-F]\w\w)|.)", re.DOTALL
)


class JsonLines:
    """Reads JSON lines: lists of numbers, and all other values as strings."""

    def __init__(self) -> None:
        self._paths: dict[str, tuple[str, ...]] = {}
        self._widths: dict[tuple[str, ...], int] = {}

    @property
    def blank(self) -> pl.Expr:
        """No line is blank, as polars skips those."""
        return pl.lit(False)

    def check(self, names: Sequence[str]) -> None:
        """Nothing can be mistaken."""

    def header(self, first: bytes) -> tuple[bytes, list[str]]:
        """Find the columns in the first block."""
        # By Python, as polars asks for one type per column also where nobody asks for the column.
        kinds: dict[tuple[str, ...], type] = {}
        for row in _objects(_without_lone_surrogates(first), 0):
            for path, value in _fields(row):
                if value is not None and path not in kinds:
                    kinds[path] = type(value)
                    if isinstance(value, list):
                        self._widths[path] = len(value)
        columns = [path for path, kind in kinds.items() if kind is not dict]
        kinds[()] = dict
        # The first value says whether a column holds objects.
        self._paths = dotted([path for path in columns if kinds[path[:-1]] is dict])
        return b"", list(self._paths)

    def width(self, name: str) -> int | None:
        """Return the number of elements of the first list; None for another column."""
        return self._widths.get(self._paths[name])

    def end_of_rows(self, block: bytes) -> int:
        """Find the end of the last line."""
        return block.rfind(b"\n") + 1

    def parse(self, text: bytes, kinds: Mapping[str, Any], before: int) -> pl.DataFrame:
        """Parse the columns that `kinds` names."""
        text = _without_lone_surrogates(text)
        if not text.strip():
            return pl.DataFrame(schema=dict(kinds))
        paths = {name: self._paths[name] for name in kinds}
        try:
            rows = pl.read_ndjson(io.BytesIO(text), schema=_nested(paths, kinds))
        except pl.exceptions.PolarsError:
            # A bad row, which is named here, or what only Python reads: NaN, numbers as strings.
            text = _only(text, paths, kinds, before)
            strings: dict[bool, Any] = {True: pl.List(pl.String), False: pl.String}
            schema = {name: strings[isinstance(kind, pl.List)] for name, kind in kinds.items()}
            return pl.read_ndjson(io.BytesIO(text), schema=schema)
        return rows.select(column_at(path).alias(name) for name, path in paths.items())


def _fields(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in row.items():
        yield (name,), value
        if isinstance(value, dict):
            yield from (((name, *path), x) for path, x in _fields(value))


def _nested(paths: Mapping[str, Sequence[str]], kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of objects that have the fields at the paths."""
    tree: dict[str, Any] = {}
    for name, (*objects, last) in paths.items():
        node = tree
        for key in objects:
            node = node.setdefault(key, {})
        node[last] = kinds[name]

    def schema_of(node: dict[str, Any]) -> dict[str, Any]:
        return {
            key: pl.Struct(schema_of(kind)) if isinstance(kind, dict) else kind
            for key, kind in node.items()
        }

    return schema_of(tree)


def _without_lone_surrogates(text: bytes) -> bytes:
    r"""Write each as the six characters of its escape: polars reads some as `\u0000`."""
    if b"\\ud" not in text and b"\\uD" not in text:
        return text
    return _ESCAPE.sub(lambda found: b"\\\\" + found[1] if found[1] else found[0], text)


def _objects(text: bytes, before: int) -> Iterator[dict[str, Any]]:
    """Parse lines by Python: slower than polars, but it knows NaN, and where a line is wrong."""
    lines = filter(None, map(bytes.strip, text.split(b"\n")))
    for number, line in enumerate(lines, before + 1):
        try:
            row = json.loads(
                line.decode(), parse_int=str, parse_float=_finite_or_text, parse_constant=str
            )
        except (ValueError, RecursionError) as error:
            raise InputError(f"cannot be read: row {number}: {error}") from None
        if not isinstance(row, dict):
            raise InputError(f"cannot be read: row {number} is no JSON object")
        yield row


def _finite_or_text(number: str) -> float | str:
    return float(number) if math.isfinite(float(number)) else number


def _only(
    text: bytes, paths: Mapping[str, Sequence[str]], kinds: Mapping[str, Any], before: int
) -> bytes:
    """Write rows anew with nothing but the columns asked for."""
    lines = []
    for number, row in enumerate(_objects(text, before), before + 1):
        kept: dict[str, Any] = {}
        for name, path in paths.items():
            value: Any = row
            for key in path:
                value = value.get(key) if isinstance(value, dict) else None
            if isinstance(kinds[name], pl.List) and not isinstance(value, list | None):
                raise InputError(
                    f"row {number}: {name!r} is {shortened(str(value))!r}, expected a list"
                )
            kept[name] = value
        lines.append(json.dumps(kept))
    return "\n".join(lines).encode()
