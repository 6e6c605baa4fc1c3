"""Read scores per item (0 and 1, booleans or grades) instead of truth and predictions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jaxmetrics.cli._errors import InputError, named, reading, shown
from jaxmetrics.cli._inputs import parts_of
from jaxmetrics.cli._sources import opened
from jaxmetrics.cli._tables import (
    JOIN_HINT,
    MOST_HELD,
    ROW,
    Column,
    FileTable,
    check_number_of_rows,
    is_too_much,
)
from jaxmetrics.reports.score_means import ItemScores

__all__: list[str] = []

_ROLES = ("id", "cluster", "group")
_BETWEEN = "\x1f"  # joins ids from several columns
_MISSING = ("", "nan", "null", "none")
_WORDS = {"true": "1", "false": "0"} | {
    "c": "1",
    "p": "0.5",
    "i": "0",
    "n": "0",
}  # letters of Inspect


def read_scores(given: Namespace, inputs: Sequence[tuple[Path, str]]) -> ItemScores:
    """Read a column of scores from each file, joined by `--id` or row by row."""
    frames = [_frame(given, path, column) for path, column in inputs]
    paths = [shown(path) for path, _ in inputs]
    if given.id is None:
        rows = frames[0]
        for path, frame in zip(paths, frames, strict=True):
            check_number_of_rows(paths[0], rows, path, frame)
        values = [frame["value"].to_numpy() for frame in frames]
        placed = [x.drop(ROW, "value").with_row_index("item", offset=1) for x in frames]
        _check_labels(pl.concat(placed), "item")
    else:
        rows = pl.concat([frame.drop(ROW, "value") for frame in frames])
        _check_labels(rows, "id")
        rows = rows.unique("id", keep="first", maintain_order=True)
        values = [
            rows.select("id")
            .join(frame, on="id", how="left", maintain_order="left")["value"]
            .fill_null(np.nan)
            .to_numpy()
            for frame in frames
        ]
    scores = np.stack(values)
    if np.isnan(scores).any(0).all():
        raise InputError(f"{paths[0]}: no item has a score in all files")
    clusters, _ = _numbered(rows, "cluster")
    groups = _numbered(rows, "group")
    return ItemScores(inputs[0][1], scores, _bounds(given.bounds, scores), clusters, *groups)


def _numbered(rows: pl.DataFrame, role: str) -> tuple[np.ndarray | None, list[str]]:
    """Number the labels in a column, groups in the order of their names."""
    if role not in rows.columns:
        return None, []
    names = rows[role].unique(maintain_order=True)
    names = names.sort() if role == "group" else names
    return rows[role].cast(pl.Enum(names)).to_physical().to_numpy().astype(int), names.to_list()


def _check_labels(rows: pl.DataFrame, item: str) -> None:
    """Raise for items that have different clusters or groups in different files."""
    for role in {*_ROLES[1:]} & {*rows.columns}:
        found = rows.select(item, role).unique()
        if found[item].is_duplicated().any():
            first = found.filter(pl.col(item).is_duplicated())[item].min()
            hint = f"; {JOIN_HINT}" if item == "item" else ""
            raise InputError(f"the files have different {role}s for the item {first!r}{hint}")


def _frame(given: Namespace, path: Path, column: str) -> pl.DataFrame:
    """Read the rows of a file, or of all of its parts."""
    frames: list[pl.DataFrame] = []
    for part in parts_of(path):
        with named(part), opened(part, given.separator) as table:
            for rows in _batches(table, given, column):
                frames.append(rows)
                if is_too_much(frames):
                    raise InputError(
                        f"too many rows: at most {MOST_HELD // 2**20} MB are held in memory"
                    )
    with named(path):
        if not frames or not sum(map(len, frames)):
            raise InputError("the file has no rows")
        found = pl.concat(frames)
        if "id" in found.columns and found["id"].is_duplicated().any():
            first = found.filter(pl.col("id").is_duplicated())["id"][0].replace(_BETWEEN, ",")
            raise InputError(
                f"several rows have the same id, first {first!r}; --id COLUMN,COLUMN joins ids from"
                " several columns, such as item and attempt"
            )
    return found


def _batches(table: FileTable, given: Namespace, column: str) -> Iterator[pl.DataFrame]:
    """Read a column of scores with its ids, clusters and groups."""
    with reading():
        asked = {role: getattr(given, role, None) for role in _ROLES}
        labels = {role: _labels(table, name, role) for role, name in asked.items() if name}
        value = table.column(column)
        texts = [
            pl.concat_str(
                [table.label(x, pl.col(x.name)).replace("", None) for x in columns],
                separator=_BETWEEN,
            )
            .fill_null("")
            .alias(role)
            for role, columns in labels.items()
        ]
        number = table.number(value).cast(pl.String).alias("value")
    read = [value, *(x for columns in labels.values() for x in columns)]
    for rows in table.batches(read, [pl.col(ROW), *texts, number]):
        yield _with_numbers(rows, column, [*labels])


def _labels(table: FileTable, name: str, role: str) -> list[Column]:
    """Find the columns of labels; ids may use several columns."""
    names = name.split(",") if role == "id" and name not in table.names else [name]
    columns = [table.column(x) for x in names]
    for column in columns:
        table.check_label(column.name)
    return columns


def _with_numbers(rows: pl.DataFrame, column: str, labels: Sequence[str]) -> pl.DataFrame:
    """Read numbers, booleans and the letters of Inspect: correct, partial, incorrect, no answer.

    Missing scores are NaN, other values raise.
    """
    text = pl.col("value").str.strip_chars().str.to_lowercase().fill_null("")
    number = text.replace(_WORDS).cast(pl.Float64, strict=False)
    found = rows.with_columns(number=number, missing=text.is_in(_MISSING))
    bad = found.filter(~pl.col("missing") & ~pl.col("number").is_finite().fill_null(False))
    if len(bad):
        row, value = bad[ROW][0], bad["value"][0]
        raise InputError(f"row {row}: {column!r} is {value!r}, expected a number or true or false")
    for role in labels:
        if (empty := found.filter(pl.col(role) == "")).height:
            raise InputError(f"row {empty[ROW][0]}: the {role} is missing")
    return found.select(ROW, *labels, value=pl.col("number").fill_null(np.nan))


def _bounds(given: str | None, scores: np.ndarray) -> tuple[float, float] | None:
    """Parse `--bounds LOW,HIGH`; by default (0, 1) if all scores lie in between, otherwise None."""
    least, greatest = np.nanmin(scores), np.nanmax(scores)
    if given is None:
        return (0.0, 1.0) if 0 <= least <= greatest <= 1 else None
    try:
        low, high = map(float, given.split(","))
    except ValueError:
        raise InputError(f"--bounds must be like '0,1', got {given!r}") from None
    if not (low < high and low <= least <= greatest <= high):
        raise InputError(
            f"--bounds must be increasing and contain all scores, which range from {least} to"
            f" {greatest}, got {given!r}"
        )
    return low, high
