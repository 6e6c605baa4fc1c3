"""Files of predictions by several classifiers for the same examples, held row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import Classes, all_classes, check_kinds, one_against_rest
from jaxmetrics.cli._errors import InputError, listed, named, shown
from jaxmetrics.cli._inputs import parts_of
from jaxmetrics.cli._rows import COUNTED, Predictions, Selection
from jaxmetrics.cli._sources import opened
from jaxmetrics.cli._tables import ROW

__all__: list[str] = []

_MOST_HELD = 2**26  # numbers
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


@dataclass(frozen=True)
class _HeldRows:
    path: Path
    frame: pl.DataFrame
    classes: list[str]  # of the probabilities
    positive: str | None


def read_judged(inputs: Sequence[tuple[Path, Selection]]) -> Judged:
    """Read predictions, joined by row or by `columns.id`; true classes must agree."""
    found = [_read(path, question) for path, question in inputs]
    first, *others = found
    if inputs[0][1].columns.id is not None:
        for x in found:
            _check_ids(x)
        others = [_joined(first, x) for x in others]
    for x in others:
        if len(x.frame) != len(first.frame):
            raise InputError(
                f"{shown(first.path)} has {len(first.frame)} rows, {shown(x.path)} has"
                f" {len(x.frame)}; {_JOIN_HINT}"
            )
        _check_same_truth(first, x, inputs[0][1].columns.id)
    found = [first, *others]
    kept = np.logical_and.reduce([x.frame[COUNTED].to_numpy() for x in found])
    if not kept.any():
        raise InputError("all rows are ignored" if len(kept) else "the files have no rows")
    counted = [replace(x, frame=x.frame.filter(pl.Series(kept))) for x in found]
    return _judged(counted, int((~kept).sum()))


def _judged(found: Sequence[_HeldRows], num_ignored: int) -> Judged:
    first = found[0]
    labels = set(first.frame["true"].unique()).union(*(x.frame["pred"].unique() for x in found))
    if first.positive is not None:
        classes = one_against_rest(dict.fromkeys(labels), first.positive)
    else:
        classes = all_classes(labels.union(*(x.classes for x in found)))
        true = first.frame["true"].unique()
        for x in found:
            with named(x.path):
                check_kinds(true, x.frame["pred"].unique())
    if len(classes.names) < 2:
        raise InputError(
            f"a comparison needs at least two classes, the files have {listed(classes.names)}"
        )
    columns = first.frame.columns
    has_scores = "score" in columns
    return Judged(
        classes.names,
        classes.ids_of(first.frame["true"]),
        np.stack([classes.ids_of(x.frame["pred"]) for x in found]),
        [_probabilities(x, classes) for x in found] if "prob 0" in columns else None,
        [x.frame["score"].to_numpy() for x in found] if has_scores else None,
        first.frame["cluster"].to_list() if "cluster" in columns else None,
        num_ignored,
    )


def _probabilities(x: _HeldRows, classes: Classes) -> np.ndarray:
    """Put the columns in the order of the classes."""
    prob = x.frame.select("^prob .*$").to_numpy()
    if x.positive is not None:
        return prob
    if set(x.classes) != set(classes.names):
        with named(x.path):
            raise InputError(
                f"its probabilities are of {listed(x.classes)}, the classes are"
                f" {listed(classes.names)}"
            )
    return prob[:, [x.classes.index(name) for name in classes.names]]


def _read(path: Path, question: Selection) -> _HeldRows:
    """Read all rows of a file or of its parts, every class checked."""
    frames: list[pl.DataFrame] = []
    labels: dict[str, None] = {}
    held, classes, positive = 0, [""], None
    for part in parts_of(path):
        with named(part), opened(part, question.separator) as source:
            file = Predictions(source, question)
            if frames and file.prob_classes != classes:
                raise InputError("its columns of probabilities are not those of the file before")
            classes, positive = file.prob_classes, file.positive
            for rows in file.batches():
                file.learn_labels(labels, rows)
                file.check_clusters(rows)
                frames.append(rows)
                held += rows.width * rows.height
                if held > _MOST_HELD:
                    raise InputError(
                        f"more than {_MOST_HELD} numbers and labels, which must be in memory at"
                        " once to be compared"
                    )
    if not frames:
        raise InputError(f"{shown(path)}: the file has no rows")
    return _HeldRows(path, pl.concat(frames), classes, positive)


def _check_same_truth(a: _HeldRows, b: _HeldRows, id_column: str | None) -> None:
    differ = (a.frame["true"] != b.frame["true"]).to_numpy()
    if not differ.any():
        return
    i = int(differ.argmax())
    by_row = id_column is None
    first = f"row {a.frame[ROW][i]}" if by_row else f"{id_column} {a.frame['id'][i]!r}"
    hint = f"; {_JOIN_HINT}" if by_row else ""
    raise InputError(
        f"{shown(a.path)} and {shown(b.path)} differ in the true class of {differ.sum()} of"
        f" {len(a.frame)} rows, the first at {first}: {a.frame['true'][i]!r} and"
        f" {b.frame['true'][i]!r}{hint}"
    )


def _check_ids(x: _HeldRows) -> None:
    repeated = x.frame["id"].is_duplicated()
    if repeated.any():
        raise InputError(
            f"{shown(x.path)}: {repeated.sum()} rows share their id with others, the first"
            f" {x.frame['id'].filter(repeated)[0]!r}"
        )


def _joined(a: _HeldRows, b: _HeldRows) -> _HeldRows:
    """Put the rows of B in the order of A's ids."""
    for x, other in ((a, b), (b, a)):
        alone = x.frame.join(other.frame.select("id"), on="id", how="anti", maintain_order="left")
        if len(alone):
            raise InputError(
                f"{len(alone)} of {len(x.frame)} rows of {shown(x.path)} are not in"
                f" {shown(other.path)}, the first is {alone['id'][0]!r}"
            )
    frame = a.frame.select("id").join(b.frame, on="id", how="left", maintain_order="left")
    return replace(b, frame=frame)
