"""Read files with a score per item (0 and 1, booleans or grades) instead of predictions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jaxmetrics._validation import largest_eps
from jaxmetrics.cli._errors import InputError, named, reading, shown
from jaxmetrics.cli._reader import (
    JOIN_HINT,
    ROW,
    Table,
    Value,
    check_held,
    check_number_of_rows,
    opened,
    parts_of,
)
from jaxmetrics.intervals.means import clipped, tolerated
from jaxmetrics.reports.score_means import ItemScores

__all__: list[str] = []

_BETWEEN = "\x1f"  # separator between the parts of an id from several columns
_MISSING = ("", "nan", "null", "none")
_WORDS = {"true": "1", "false": "0"} | {
    "c": "1",
    "p": "0.5",
    "i": "0",
    "n": "0",
}  # c, p, i and n are the scores of Inspect


def read_scores(given: Namespace, inputs: Sequence[tuple[Path, str]]) -> ItemScores:
    """Read a column of scores from each file, and match the items by `--id` or by their order."""
    frames = [_frame(given, path, column) for path, column in inputs]
    paths = [shown(path) for path, _ in inputs]
    item = "item" if given.id is None else "id"
    if given.id is None:
        check_number_of_rows(paths, frames)
        _check_blank_rows(paths, frames)
        frames = [frame.with_row_index(item, offset=1) for frame in frames]
    rows = pl.concat(frame.drop(ROW, "value") for frame in frames)
    _check_labels(rows, item)
    rows = rows.unique(item, keep="first", maintain_order=True)
    scores = np.stack(
        [
            rows.select(item)
            .join(frame, on=item, how="left", maintain_order="left")["value"]
            .fill_null(np.nan)
            .to_numpy()
            for frame in frames
        ]
    )
    if np.isnan(scores).any(0).all():
        raise InputError(f"{paths[0]}: no item has a score in all files")
    clusters, _ = _numbered(rows, "cluster")
    groups = _numbered(rows, "group")
    bounds = _bounds(given.bounds, scores)
    if bounds is not None:
        scores = clipped(scores, bounds, largest_eps(scores))
    return ItemScores(inputs[0][1], scores, bounds, clusters, *groups)


def _check_blank_rows(paths: Sequence[str], frames: Sequence[pl.DataFrame]) -> None:
    """Raise an error if files without ids have empty rows, which may be missing scores, in
    different places.
    """
    before = pl.col(ROW).shift(1, fill_value=0)  # the row numbers of each part of a file begin at 1
    blank = pl.col(ROW) - 1 - pl.when(before < pl.col(ROW)).then(before).otherwise(0)
    numbers = [frame.select(blank)[ROW] for frame in frames]
    for path, number in zip(paths, numbers, strict=True):
        differ = number != numbers[0]
        if differ.any():
            row = frames[0][ROW].filter(differ)[0]
            raise InputError(
                f"{paths[0]} and {path} have empty rows in different places, so that rows at the"
                f" same position may belong to different items. The first difference is before row"
                f" {row} of {paths[0]}; {JOIN_HINT}"
            )


def _numbered(rows: pl.DataFrame, role: str) -> tuple[np.ndarray | None, list[str]]:
    """Return the numbers and the names of the labels in a column; groups are sorted by name."""
    if role not in rows.columns:
        return None, []
    names = rows[role].unique(maintain_order=True)
    names = names.sort() if role == "group" else names
    return rows[role].cast(pl.Enum(names)).to_physical().to_numpy().astype(int), names.to_list()


def _check_labels(rows: pl.DataFrame, item: str) -> None:
    """Raise an error if an item has different clusters or groups in different files."""
    for role in {"cluster", "group"} & {*rows.columns}:
        found = rows.select(item, role).unique()
        if found[item].is_duplicated().any():
            first = found.filter(pl.col(item).is_duplicated())[item].min()
            hint = f"; {JOIN_HINT}" if item == "item" else ""
            raise InputError(
                f"each item must have the same {role} in all files, but the files differ for the"
                f" item {first!r}{hint}"
            )


def _frame(given: Namespace, path: Path, column: str) -> pl.DataFrame:
    """Read the rows of a file, or of all files in a folder."""
    frames: list[pl.DataFrame] = []
    for part in parts_of(path):
        with opened(part, given.separator) as table:
            for rows in _batches(table, given, column):
                frames.append(rows)
                check_held(frames)
    with named(path):
        if not frames or not sum(map(len, frames)):
            raise InputError("the file has no rows")
        found = pl.concat(frames)
        if "id" in found.columns and found["id"].is_duplicated().any():
            first = found.filter(pl.col("id").is_duplicated())["id"][0].replace(_BETWEEN, ",")
            raise InputError(
                "each row must have a different id, but several rows have the same id. The first"
                f" such id is {first!r}. If the rows differ in another column, use several columns"
                " as the id, such as --id item,attempt."
            )
    return found


def _batches(table: Table, given: Namespace, column: str) -> Iterator[pl.DataFrame]:
    """Read scores with their ids, clusters and groups.

    Scores are numbers, booleans, or the letters of Inspect: C (correct), P (partial), I (incorrect)
    and N (no answer). Missing scores become NaN; other values raise an error.
    """
    with reading():
        asked = {
            role: _label(table, name, role)
            for role in ("id", "cluster", "group")
            if (name := getattr(given, role, None))
        }
        labels = list(asked)
        text = table.number(column).expr.cast(pl.String)
        asked["value"] = Value(column, text.str.strip_chars().str.to_lowercase().fill_null(""))
    number = pl.col("value").replace(_WORDS).cast(pl.Float64, strict=False)
    for rows in table.batches(asked | {"text": Value(column, text)}):
        missing = pl.col("value").is_in(_MISSING)
        bad = rows.filter(~missing & ~number.is_finite().fill_null(False))
        if len(bad):
            row, value = bad[ROW][0], bad["text"][0]
            raise InputError(
                f"in row {row}, the column {column!r} contains {value!r}, but a number, true or"
                " false was expected."
            )
        for role in labels:
            if (empty := rows.filter(pl.col(role) == "")).height:
                raise InputError(f"row {empty[ROW][0]}: the {role} is missing")
        yield rows.select(ROW, *labels, value=number.fill_null(np.nan))


def _label(table: Table, name: str, role: str) -> Value:
    """Return labels as strings; ids may consist of the values of several columns."""
    names = name.split(",") if role == "id" and name not in table.names else [name]
    labels = [table.written(x, table.label(x).expr).replace("", None) for x in names]
    return Value(name, pl.concat_str(labels, separator=_BETWEEN).fill_null(""))


def _bounds(given: str | None, scores: np.ndarray) -> tuple[float, float] | None:
    """Parse `--bounds LOW,HIGH`. The default is (0, 1) if all scores are from 0 to 1, otherwise
    None.
    """
    least, greatest = np.nanmin(scores), np.nanmax(scores)
    if given is None:
        lowest, highest = tolerated((0.0, 1.0), largest_eps(scores))
        return (0.0, 1.0) if lowest <= least <= greatest <= highest else None
    try:
        low, high = map(float, given.split(","))
    except ValueError:
        raise InputError(
            f"--bounds must have the form LOW,HIGH, such as '0,1', got {given!r}."
        ) from None
    lowest, highest = tolerated((low, high), largest_eps(scores))
    if not (low < high and lowest <= least <= greatest <= highest):
        raise InputError(
            "--bounds must be two numbers LOW,HIGH with LOW < HIGH between which all scores lie,"
            f" got {given!r}. The least score is {least} and the greatest score is {greatest}."
        )
    return low, high
