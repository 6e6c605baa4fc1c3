"""Files of predictions of several classifiers for the same examples, kept row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import (
    check_kinds,
    one_against_rest,
    sorted_classes,
    warn_of_other_names,
)
from jaxmetrics.cli._errors import InputError, listed, named, shown
from jaxmetrics.cli._listing import by_confidence, listed_rows, with_confidence
from jaxmetrics.cli._predictions import COUNTED, Predictions, Selection
from jaxmetrics.cli._reader import JOIN_HINT, ROW, check_number_of_rows, parts_of

__all__: list[str] = []

_NAMES = {"true": ("true class", "true classes"), "cluster": ("cluster", "clusters")}


class Judged(NamedTuple):
    """The predictions of M classifiers for the same n examples, without ignored examples.

    Attributes:
        class_names: K names.
        true: class ids `(n,)`.
        preds: class ids `(M, n)`.
        probs: the probabilities `(n, K)` of each classifier, or None.
        scores: the scores `(n,)` of each classifier for the last class, or None.
        clusters: cluster ids `(n,)`, or None.
        num_ignored: number of ignored examples.
        rows: the rows of the first file.
        names_of_rows: the names of the columns that identify rows in lists, by their roles.
    """

    class_names: list[str]
    true: np.ndarray
    preds: np.ndarray
    probs: list[np.ndarray] | None
    scores: list[np.ndarray] | None
    clusters: list[str] | None
    num_ignored: int
    rows: pl.DataFrame
    names_of_rows: Mapping[str, str]

    def differing(self, number: int) -> list[dict[str, Any]]:
        """List `number` examples that only A or only B predicts correctly. Examples for which the
        wrong classifier is most confident come first.
        """
        names = np.array(self.class_names, object)
        ids = {"true": self.true, "A": self.preds[0], "B": self.preds[1]}
        rows = self.rows.with_columns(
            pl.Series(name, names[found], pl.String) for name, found in ids.items()
        )
        sides = []
        for right, wrong in ((0, 1), (1, 0)):
            only = (self.preds[right] == self.true) & (self.preds[wrong] != self.true)
            side = rows.with_columns(right=pl.lit("AB"[right]))
            if self.probs is not None:
                prob = self.probs[wrong][np.arange(len(rows)), self.preds[wrong]]
                side = with_confidence(side, prob)
            sides.append(by_confidence(side.filter(only)).head(-(-number // 2)))
        return listed_rows(pl.concat(sides).head(number), ["true", "A", "B"], self.names_of_rows)


def read_judged(inputs: Sequence[tuple[Path, Selection]]) -> Judged:
    """Read predictions of the same examples, and match their rows by `id` or by their order.

    All files must have the same true classes.
    """
    paths, id_column = [shown(path) for path, _ in inputs], inputs[0][1].id
    labels: dict[str, int] = {}
    files = []
    for path, question in inputs:
        file = Predictions(question, is_held=True, labels=labels).read(parts_of(path))
        if not file.num_rows:
            raise InputError(f"{shown(path)}: the file has no rows")
        files.append(file)
    frames = [file.rows for file in files]
    if id_column is None:
        check_number_of_rows(paths, frames)
    else:
        frames = _joined(paths, frames)
    names = np.array([*labels, "(ignored)"], object)
    for name_of_file, rows in zip(paths[1:], frames[1:], strict=True):
        for role in (name for name in _NAMES if name in rows.columns):
            _check_same(role, paths[0], frames[0], name_of_file, rows, id_column, names)
    kept = np.logical_and.reduce([rows[COUNTED].to_numpy() for rows in frames])
    if not kept.any():
        raise InputError("all rows are ignored")
    for file, rows in zip(files, frames, strict=True):
        file.frames = [rows.filter(kept)]
    classes, rows = _classes(paths, files), files[0].rows
    has_probs, has_scores = "prob" in rows.columns, "score" in rows.columns
    return Judged(
        classes,
        files[0].ids("true", classes=classes),
        np.stack([file.ids("pred", classes=classes) for file in files]),
        [*map(_probabilities, paths, files, [classes] * len(files))] if has_probs else None,
        [file.rows["score"].to_numpy() for file in files] if has_scores else None,
        rows["cluster"].to_list() if "cluster" in rows.columns else None,
        int((~kept).sum()),
        rows,
        inputs[0][1].names_of_rows,
    )


def _classes(paths: Sequence[str], files: Sequence[Predictions]) -> list[str]:
    true, positive = files[0].names("true"), files[0].positive
    labels = true.union(*(file.names("pred") for file in files))
    if positive is None:
        labels.update(*(file.prob_classes for file in files))
        for path, file in zip(paths, files, strict=True):
            pred = file.names("pred")
            with named(path):
                check_kinds(true, pred)
            warn_of_other_names(true, pred, path)
    classes = sorted_classes(labels) if positive is None else one_against_rest(labels, positive)
    if len(classes) < 2:
        raise InputError(
            f"a comparison needs at least two classes, but the files contain {listed(classes)}."
        )
    return classes


def _probabilities(path: str, file: Predictions, classes: list[str]) -> np.ndarray:
    if file.positive is None and file.prob_classes != classes:
        raise InputError(
            f"{path}: the columns of probabilities are for the classes"
            f" {listed(file.prob_classes)}, but the classes in the files are {listed(classes)}."
            " Each class needs a column of probabilities."
        )
    return file.rows["prob"].to_numpy()


def _check_same(
    role: str,
    path_a: str,
    a: pl.DataFrame,
    path_b: str,
    b: pl.DataFrame,
    id_column: str | None,
    names: np.ndarray,
) -> None:
    differ = (a[role] != b[role]).to_numpy()
    if not differ.any():
        return
    i, (one, many) = int(differ.argmax()), _NAMES[role]
    by_row = id_column is None
    first = f"row {a[ROW][i]}" if by_row else f"{id_column} {a['id'][i]!r}"
    hint = f"; {JOIN_HINT}" if by_row else ""
    found = [x[role][i] if role == "cluster" else names[x[role][i]] for x in (a, b)]
    raise InputError(
        f"{path_a} and {path_b} must have the same {one} in each row, but the {one} differs in"
        f" {differ.sum()} of {len(a)} rows. The first difference is in {first}, where the {many}"
        f" are {found[0]!r} and {found[1]!r}{hint}"
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
