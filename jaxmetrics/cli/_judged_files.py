"""Files of predictions of several classifiers for the same examples, kept row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import Classes, all_classes, check_kinds, one_against_rest
from jaxmetrics.cli._counted_files import Counted, hold_predictions
from jaxmetrics.cli._errors import InputError, listed, named, shown
from jaxmetrics.cli._mistakes import place_of
from jaxmetrics.cli._rows import COUNTED, Selection
from jaxmetrics.cli._tables import JOIN_HINT, ROW, check_number_of_rows

__all__: list[str] = []


class Judged(NamedTuple):
    """The predictions of M classifiers for the n examples that count.

    Attributes:
        class_names: K names.
        true: class ids `(n,)`.
        preds: class ids `(M, n)`.
        probs: probabilities of each classifier `(n, K)`, or None.
        scores: scores of each classifier `(n,)` for the last class, or None.
        clusters: cluster ids `(n,)`, or None.
        num_ignored: number of ignored examples.
        rows: the columns of the first file that identify and show rows: `names_of_rows` by their
            roles.
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
        """List `number` examples that only A, or only B, predicts correctly; first the examples for
        which the other is most confident.
        """
        a_is_right, b_is_right = self.preds == self.true
        sides = (a_is_right & ~b_is_right, 1), (b_is_right & ~a_is_right, 0)
        listed = []
        for (only, wrong), right in zip(sides, "AB", strict=True):
            places = np.flatnonzero(only)
            prob = None if self.probs is None else self.probs[wrong]
            if prob is not None:
                confidence = prob[places, self.preds[wrong][places]]
                places = places[np.argsort(-confidence, kind="stable")]
            for i in places[: -(-number // 2)].tolist():
                a, b = (self.class_names[pred[i]] for pred in self.preds)
                row = self.rows.row(i, named=True)
                listed.append(
                    {
                        "right": right,
                        **place_of(row),
                        **{"true": self.class_names[self.true[i]], "A": a, "B": b},
                        **({} if prob is None else {"probability": prob[i, self.preds[wrong][i]]}),
                        "columns": {name: row[role] for role, name in self.names_of_rows.items()},
                    }
                )
        return listed[:number]


class _Held(NamedTuple):
    path: str
    file: Counted
    rows: pl.DataFrame


def read_judged(inputs: Sequence[tuple[Path, Selection]]) -> Judged:
    """Read predictions, joined row by row or by `columns.id`; true classes must agree."""
    found = []
    for path, question in inputs:
        file = hold_predictions(path, question)
        found.append(_Held(shown(path), file, pl.concat(file.rows)))
    id_column = inputs[0][1].columns.id
    if id_column is not None:
        for x in found:
            _check_ids(x)
        found[1:] = [_joined(found[0], x) for x in found[1:]]
    for x in found[1:]:
        _check_same_truth(found[0], x, id_column)
    kept = np.logical_and.reduce([x.rows[COUNTED].to_numpy() for x in found])
    if not kept.any():
        raise InputError("all rows are ignored")
    counted = [x._replace(rows=x.rows.filter(pl.Series(kept))) for x in found]
    return _judged(counted, int((~kept).sum()))


def _judged(found: Sequence[_Held], num_ignored: int) -> Judged:
    rows, positive = found[0].rows, found[0].file.positive
    true = set(rows["true"].unique())
    labels = true.union(*(x.rows["pred"].unique() for x in found))
    if positive is not None:
        classes = one_against_rest(dict.fromkeys(labels), positive)
    else:
        classes = all_classes(labels.union(*(x.file.prob_classes for x in found)))
        for x in found:
            with named(x.path):
                check_kinds(true, x.rows["pred"].unique())
    if len(classes.names) < 2:
        raise InputError(
            f"a comparison needs at least two classes, the files have {listed(classes.names)}"
        )
    has_probs, has_scores = "prob" in rows.columns, "score" in rows.columns
    return Judged(
        classes.names,
        classes.ids_of(rows["true"]),
        np.stack([classes.ids_of(x.rows["pred"]) for x in found]),
        [_probabilities(x, classes) for x in found] if has_probs else None,
        [x.rows["score"].to_numpy() for x in found] if has_scores else None,
        rows["cluster"].to_list() if "cluster" in rows.columns else None,
        num_ignored,
        rows,
        found[0].file.names_of_rows,
    )


def _probabilities(x: _Held, classes: Classes) -> np.ndarray:
    """Put the columns in the order of the classes."""
    prob, names = x.rows["prob"].to_numpy(), x.file.prob_classes
    if x.file.positive is not None:
        return prob
    if set(names) != set(classes.names):
        raise InputError(
            f"{x.path}: it has probabilities for the classes {listed(names)}, but the classes are"
            f" {listed(classes.names)}"
        )
    return prob[:, [names.index(name) for name in classes.names]]


def _check_same_truth(a: _Held, b: _Held, id_column: str | None) -> None:
    check_number_of_rows(a.path, a.rows, b.path, b.rows)
    differ = (a.rows["true"] != b.rows["true"]).to_numpy()
    if not differ.any():
        return
    i = int(differ.argmax())
    by_row = id_column is None
    first = f"row {a.rows[ROW][i]}" if by_row else f"{id_column} {a.rows['id'][i]!r}"
    hint = f"; {JOIN_HINT}" if by_row else ""
    raise InputError(
        f"{a.path} and {b.path} differ in the true class of {differ.sum()} of {len(a.rows)} rows,"
        f" the first at {first}: {a.rows['true'][i]!r} and {b.rows['true'][i]!r}{hint}"
    )


def _check_ids(x: _Held) -> None:
    repeated = x.rows["id"].is_duplicated()
    if repeated.any():
        raise InputError(
            f"{x.path}: {repeated.sum()} rows share their id with others, the first"
            f" {x.rows['id'].filter(repeated)[0]!r}"
        )


def _joined(a: _Held, b: _Held) -> _Held:
    """Put the rows of B in the order of A's ids."""
    for x, other in ((a, b), (b, a)):
        ids = other.rows.select("id")
        alone = x.rows.join(ids, on="id", how="anti", maintain_order="left")
        if len(alone):
            raise InputError(
                f"{len(alone)} of {len(x.rows)} rows of {x.path} are not in {other.path}, the"
                f" first is {alone['id'][0]!r}"
            )
    rows = a.rows.select("id").join(b.rows, on="id", how="left", maintain_order="left")
    return b._replace(rows=rows)
