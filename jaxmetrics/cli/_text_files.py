"""Read the bytes of text files: decompress them, and scan JSON lines."""

from __future__ import annotations

import gzip
import io
import json
import mmap
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from jaxmetrics.cli._errors import InputError, shortened

ROW = "number of the row"  # rows are counted from 1, and blank lines of separated text count
MOST_HELD = 3 * 2**28  # the largest size of the data that are held in memory, in bytes
START = 2**22  # the number of bytes that show the columns of a text file
COMPRESSED = (".gz", ".zst")

_ZSTD_BYTES = 2**10  # few compressed bytes, because they may expand by a factor of 32 thousand
# Constants, escapes and byte-order marks that Polars does not read in JSON as Python does.
_UNUSUAL = (rb"NaN", rb"Infinity", rb"\\u[dD]", rb"\xef\xbb\xbf")
OF_INSPECT = (
    "the file is perhaps a log of Inspect. Save the samples with samples_df(logs).to_parquet(FILE)"
    " (from inspect_ai.analysis), and give the name of that FILE."
)


def held(chunks: Iterable[bytes]) -> bytes:
    """Join the pieces of a file; raise an error if they are larger than `MOST_HELD`."""
    content = io.BytesIO()
    for chunk in chunks:
        content.write(chunk)
        check_size(content.tell())
    return content.getvalue()


def check_size(size: float) -> None:
    """Raise an error if data of this size would be held in memory."""
    if size > MOST_HELD:
        raise InputError(
            "the file is too large. Standard input, compressed files, arrays, scores, probabilities"
            " and paired predictions are kept in memory, where they may take at most"
            f" {MOST_HELD // 2**20} MB. Decompress the file, or use fewer rows."
        )


def decompressed(stream: Any, start: bytes, suffix: str) -> Iterator[bytes] | None:
    """Decompress text in pieces; None if it is not compressed."""
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        return _zstd_chunks(stream)
    if start.startswith(b"\x1f\x8b"):
        return iter(partial(gzip.GzipFile(fileobj=stream).read, START), b"")
    if suffix in COMPRESSED:
        raise InputError(f"cannot be read: the contents are not {suffix} data")
    return None


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


def check_text(first: bytes) -> None:
    """Raise an error if the beginning of a file is not text in lines."""
    first = first.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    if not first.strip():
        raise InputError("cannot be read: the file is empty")
    if b"\0" in first:
        raise InputError(
            "the file cannot be read, because it contains zero bytes, which do not occur in"
            " UTF-8 text. Save the file as UTF-8 if it is UTF-16, or correct its suffix if it"
            " is not a text file."
        )
    if b"\n" not in first and b"\r" in first.rstrip():
        raise InputError(
            "the lines of the file end with a carriage return only, but they must end with a"
            " line feed. Convert them with tr '\\r' '\\n'."
        )


def json_lines(source: Path | bytes, first: bytes) -> pl.LazyFrame:
    """Scan text with one JSON object per line, with values as strings or lists of strings.

    The first value of a field in the first lines determines its type. Lines with constants and
    escapes that Polars does not read are written anew, so that Polars reads all rows.
    """
    lines = first.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    fields: dict[str, Any] = {}
    is_cut = len(first) == START and len(lines) > 1
    for number, line in enumerate(lines[:-1] if is_cut else lines, 1):
        if line.strip():
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError(
                    f"cannot be read: line {number} is not JSON: {error.msg}"
                ) from None
            if not isinstance(row, dict):
                way = " A list of objects needs the suffix .json." if isinstance(row, list) else ""
                raise InputError(f"{shortened(line.decode())} is not an object.{way}")
            _add_fields(fields, row)
    with ExitStack() as files:
        text: Any = source
        if isinstance(source, Path):
            file = files.enter_context(source.open("rb"))
            text = files.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        if any(re.search(x, text) for x in _UNUSUAL):
            check_size(len(text))
            source = b"\n".join(map(_rewritten, text[:].split(b"\n")))
    schema = {name: _kind_of(value) for name, value in fields.items()}
    # Lists are read as text, because Polars reads no list if another row has no list.
    lists = [name for name, kind in schema.items() if kind == pl.List]
    text = schema | dict.fromkeys(lists, pl.String)
    rows = pl.scan_ndjson(source, schema=text, row_index_name=ROW, row_index_offset=1)
    rows = rows.with_columns(pl.col(lists).str.strip_chars())
    return rows.with_columns(
        pl.when(pl.col(name).str.starts_with("["))
        .then(pl.col(name))
        .str.json_decode(pl.List(pl.String))
        for name in lists
    )


def lines_of_table(content: Any) -> bytes:
    """Write a table with the fields `columns` and `data`, or a list of objects, as JSON lines."""
    if isinstance(content, dict) and {"columns", "data"} <= {*content}:
        content = [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]
    if isinstance(content, dict) and isinstance(content.get("results"), dict):
        raise InputError(
            "the list of rows is inside of the file, as results.results in a file of promptfoo."
            " Save this list as a .json file, with jq .results.results FILE"
        )
    if not isinstance(content, list):
        raise InputError(
            "a .json file must be a list of objects, or a table with 'columns' and 'data', but"
            f" {OF_INSPECT}"
        )
    return b"\n".join(json.dumps(row).encode() for row in content)


def _add_fields(fields: dict[str, Any], row: Mapping[str, Any]) -> None:
    """Add the first value of each field; an object is a dict of its fields."""
    for name, value in row.items():
        if isinstance(value, dict) and isinstance(fields.setdefault(name, {}), dict):
            _add_fields(fields[name], value)
        elif value is not None:
            fields.setdefault(name, value)


def _kind_of(value: Any) -> Any:
    if isinstance(value, dict):
        return pl.Struct({name: _kind_of(inner) for name, inner in value.items()})
    return pl.List(pl.String) if isinstance(value, list) else pl.String


def _rewritten(line: bytes) -> bytes:
    r"""Write NaN as "NaN", and half of a surrogate pair as text such as "\ud800"."""
    if not any(re.search(x, line) for x in _UNUSUAL):
        return line
    text = json.dumps(json.loads(line, parse_constant=str), ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda x: rf"\\u{ord(x[0]):x}", text).encode()
