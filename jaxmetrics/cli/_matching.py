"""Read files of predictions for the same examples, and match their rows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
import polars as pl

from jaxmetrics._arguments.labels import warn_of_absent
from jaxmetrics.cli._classes import check_classes
from jaxmetrics.cli._columns import COUNTED
from jaxmetrics.cli._errors import InputError, listed, named
from jaxmetrics.cli._items import REPEATED_IN_SOME
from jaxmetrics.cli._predictions import Predictions, classes_of, find_others
from jaxmetrics.cli._reader import (
    JOIN_HINT,
    check_number_of_rows,
    check_order,
    no_rows,
    parts_of,
)
from jaxmetrics.cli._text_files import ROW


def match_predictions(systems: Sequence[Namespace]) -> list[Predictions]:
    """Read predictions of the same examples, and match their rows by `id` or by their order.

    All files must have the same true classes and clusters. Rows that are ignored in one of the
    files are left out.
    """
    paths, by_id = [options.name for options in systems], systems[0].id or None
    labels: dict[str, int] = {}
    files = []
    for options in systems:
        file = Predictions(options, is_held=True, labels=labels).read(parts_of(options.files[0]))
        if not file.num_rows:
            raise InputError(f"{options.name}: {no_rows(options)}")
        files.append(file)
    frames = [file.rows for file in files]
    if by_id is None:
        check_number_of_rows(paths, frames)
    else:
        frames = _joined(paths, frames)
    if len({"cluster" in rows.columns for rows in frames}) > 1:
        raise InputError(REPEATED_IN_SOME)
    if by_id is None:
        check_order(paths, [rows.rename({"id": "usual id"}, strict=False) for rows in frames])
    _check_same(paths, frames, by_id, [*labels, "(ignored)"])
    kept = np.logical_and.reduce([rows[COUNTED].to_numpy() for rows in frames])
    if not kept.any():
        raise InputError("all rows are ignored")
    for file, rows in zip(files, frames, strict=True):
        file.frames = [rows.filter(kept)]
    _find_classes(paths, files)
    return files


def _find_classes(paths: Sequence[str], files: Sequence[Predictions]) -> None:
    """Find the classes of all files; raise an error if the files do not fit together."""
    true, positive, invalid = files[0].names("true"), files[0].positive, files[0].options.invalid
    preds = [file.names("pred") for file in files]
    warn_of_absent(invalid, true, set().union(*preds))
    others = find_others(files, true)
    left_out = {*invalid, *(others if files[0].options.invalid_others else ())}
    present = true.union(*preds).difference(left_out)
    if positive is None:
        present.update(*(file.prob_classes for file in files))
        for name, file, pred in zip(paths, files, preds, strict=True):
            with named(name):
                if not (file.prob_classes or file.options.classes):
                    check_classes(true, pred.difference(left_out))
    classes = classes_of(present, positive, files[0].options, others)
    for name, file in zip(paths, files, strict=True):
        file.classes = classes
        if positive is None and file.options.prob is not None and file.prob_classes != classes:
            raise InputError(
                f"{name}: the columns of probabilities are for the classes"
                f" {listed(file.prob_classes)}, but the classes in the files are"
                f" {listed(classes)}. Each class needs a column of probabilities."
            )


def _check_same(
    paths: Sequence[str], frames: Sequence[pl.DataFrame], by_id: str | None, labels: Sequence[str]
) -> None:
    """Raise an error if the true classes or the clusters of the files differ."""
    a, *others = frames
    for path, b in zip(paths[1:], others, strict=True):
        for role, one, many in (
            ("true", "true class", "true classes"),
            ("cluster", "cluster", "clusters"),
        ):
            differ = (a[role] != b[role]).to_numpy() if role in a.columns else np.array([False])
            if differ.any():
                i = int(differ.argmax())
                first = f"row {a[ROW][i]}" if by_id is None else f"{by_id} {a['id'][i]!r}"
                hint = f"; {JOIN_HINT}" if by_id is None else ""
                values = [labels[x[role][i]] if role == "true" else x[role][i] for x in (a, b)]
                raise InputError(
                    f"{paths[0]} and {path} must have the same {one} in each row, but the {one}"
                    f" differs in {differ.sum()} of {len(a)} rows. The first difference is in"
                    f" {first}, where the {many} are {values[0]!r} and {values[1]!r}{hint}"
                )


def _joined(paths: Sequence[str], frames: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    """Sort the rows of all files in the order of the ids in the first file."""
    for path, rows in zip(paths, frames, strict=True):
        missing = rows.filter(pl.col("id") == "")
        if len(missing):
            raise InputError(f"{path}: row {missing[ROW][0]}: the id is missing")
        repeated = rows["id"].is_duplicated()
        if repeated.any():
            raise InputError(
                f"{path}: each row must have a different id, but {repeated.sum()} rows have the id"
                f" of another row. The first such id is {rows['id'].filter(repeated)[0]!r}."
            )
    first = frames[0]
    for path, rows in zip(paths[1:], frames[1:], strict=True):
        for name, some, other, all_rows in (
            (paths[0], first, path, rows),
            (path, rows, paths[0], first),
        ):
            alone = some.join(all_rows, on="id", how="anti", maintain_order="left")
            if len(alone):
                raise InputError(
                    f"{len(alone)} of the {len(some)} rows in {name} have an id that does not"
                    f" occur in {other}. The first such id is {alone['id'][0]!r}. Give files that"
                    " contain the same ids."
                )
    ids = first.select("id")
    return [ids.join(rows, on="id", how="left", maintain_order="left") for rows in frames]
