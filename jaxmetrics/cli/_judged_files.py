"""Files of predictions by several classifiers for the same examples, held row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import Classes, all_classes, check_kinds, one_against_rest
from jaxmetrics.cli._counted_files import Counted, hold_predictions
from jaxmetrics.cli._errors import InputError, listed, named, shown
from jaxmetrics.cli._rows import COUNTED, Selection
from jaxmetrics.cli._tables import ROW

__all__: list[str] = []

_Named = tuple[str, pl.DataFrame]  # the rows of a file

_JOIN_HINT = "--id names a column to join them by"


@dataclass(frozen=True)
class Judged:
    """Holds the predictions of M classifiers for the n examples that count.

    Attributes:
        class_names: K names.
        true: class ids `(n,)`.
        preds: class ids `(M, n)`.
        probs: of each classifier `(n, K)`, or None.
        scores: of each classifier `(n,)` for the last class, or None.
        clusters: `(n,)`, or None.
        num_ignored: examples left out.
    """

    class_names: list[str]
    true: np.ndarray
    preds: np.ndarray
    probs: list[np.ndarray] | None
    scores: list[np.ndarray] | None
    clusters: list[str] | None
    num_ignored: int


def read_judged(inputs: Sequence[tuple[Path, Selection]]) -> Judged:
    """Read predictions, joined by row or by `columns.id`; true classes must agree."""
    paths = [shown(path) for path, _ in inputs]
    files = [hold_predictions(path, question) for path, question in inputs]
    frames = [pl.concat(file.rows) for file in files]
    id_column = inputs[0][1].columns.id
    if id_column is not None:
        for path, frame in zip(paths, frames, strict=True):
            _check_ids(path, frame)
        frames[1:] = [
            _joined((paths[0], frames[0]), other)
            for other in zip(paths[1:], frames[1:], strict=True)
        ]
    for path, frame in zip(paths[1:], frames[1:], strict=True):
        _check_same_truth((paths[0], frames[0]), (path, frame), id_column)
    kept = np.logical_and.reduce([frame[COUNTED].to_numpy() for frame in frames])
    if not kept.any():
        raise InputError("all rows are ignored")
    frames = [frame.filter(pl.Series(kept)) for frame in frames]
    return _judged(paths, files, frames, int((~kept).sum()))


def _judged(
    paths: Sequence[str],
    files: Sequence[Counted],
    frames: Sequence[pl.DataFrame],
    num_ignored: int,
) -> Judged:
    first, positive = frames[0], files[0].positive
    true = set(first["true"].unique())
    labels = true.union(*(frame["pred"].unique() for frame in frames))
    if positive is not None:
        classes = one_against_rest(dict.fromkeys(labels), positive)
    else:
        classes = all_classes(labels.union(*(file.prob_classes for file in files)))
        for path, frame in zip(paths, frames, strict=True):
            with named(path):
                check_kinds(true, frame["pred"].unique())
    if len(classes.names) < 2:
        raise InputError(
            f"a comparison needs at least two classes, the files have {listed(classes.names)}"
        )
    probs = None
    if "prob" in first.columns:
        probs = [_probabilities(*x, classes) for x in zip(paths, files, frames, strict=True)]
    scores = [frame["score"].to_numpy() for frame in frames] if "score" in first.columns else None
    return Judged(
        classes.names,
        classes.ids_of(first["true"]),
        np.stack([classes.ids_of(frame["pred"]) for frame in frames]),
        probs,
        scores,
        first["cluster"].to_list() if "cluster" in first.columns else None,
        num_ignored,
    )


def _probabilities(path: str, file: Counted, frame: pl.DataFrame, classes: Classes) -> np.ndarray:
    """Put the columns in the order of the classes."""
    prob = frame["prob"].to_numpy()
    if file.positive is not None:
        return prob
    if set(file.prob_classes) != set(classes.names):
        raise InputError(
            f"{path}: its probabilities are of {listed(file.prob_classes)}, the classes are"
            f" {listed(classes.names)}"
        )
    return prob[:, [file.prob_classes.index(name) for name in classes.names]]


def _check_same_truth(a: _Named, b: _Named, id_column: str | None) -> None:
    (path_a, rows_a), (path_b, rows_b) = a, b
    if len(rows_a) != len(rows_b):
        raise InputError(
            f"{path_a} has {len(rows_a)} rows, {path_b} has {len(rows_b)}; {_JOIN_HINT}"
        )
    differ = (rows_a["true"] != rows_b["true"]).to_numpy()
    if not differ.any():
        return
    i = int(differ.argmax())
    by_row = id_column is None
    first = f"row {rows_a[ROW][i]}" if by_row else f"{id_column} {rows_a['id'][i]!r}"
    hint = f"; {_JOIN_HINT}" if by_row else ""
    raise InputError(
        f"{path_a} and {path_b} differ in the true class of {differ.sum()} of {len(rows_a)} rows,"
        f" the first at {first}: {rows_a['true'][i]!r} and {rows_b['true'][i]!r}{hint}"
    )


def _check_ids(path: str, rows: pl.DataFrame) -> None:
    repeated = rows["id"].is_duplicated()
    if repeated.any():
        raise InputError(
            f"{path}: {repeated.sum()} rows share their id with others, the first"
            f" {rows['id'].filter(repeated)[0]!r}"
        )


def _joined(a: _Named, b: _Named) -> pl.DataFrame:
    """Put the rows of B in the order of A's ids."""
    for (path, rows), (other_path, other) in ((a, b), (b, a)):
        alone = rows.join(other.select("id"), on="id", how="anti", maintain_order="left")
        if len(alone):
            raise InputError(
                f"{len(alone)} of {len(rows)} rows of {path} are not in {other_path}, the first is"
                f" {alone['id'][0]!r}"
            )
    return a[1].select("id").join(b[1], on="id", how="left", maintain_order="left")
