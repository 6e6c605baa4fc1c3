"""Rows of predictions: find their columns, and check their values."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import polars as pl

from jaxmetrics._examples import are_distributions
from jaxmetrics.cli import _tables
from jaxmetrics.cli._classes import Classes, refusal_of, rest_of
from jaxmetrics.cli._errors import InputError, listed, reading, shortened
from jaxmetrics.cli._tables import ROW, Column, FileTable

__all__: list[str] = []

LABELS = ("true", "pred")
COUNTED = "counted"  # column of batches: which rows count
_LISTED = 12  # columns or values in a message
_NO_GROUP = "(missing)"  # group of rows without a group


@dataclass(frozen=True)
class Columns:
    """Names columns or arrays by their role, and the prefix (NPZ: the array) of probabilities.

    `pred` None means `y_pred`, or if the file has none, the prediction from probabilities or the
    threshold.
    """

    true: str = "y_true"
    pred: str | None = None
    weight: str | None = None
    prob: str | None = None
    score: str | None = None
    group: str | None = None
    cluster: str | None = None
    id: str | None = None
    show: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """The selection of columns and rows to read.

    Attributes:
        columns: the columns by their roles.
        ignore: labels whose rows are left out.
        positive: the positive class, if there is one, against the rest.
        threshold: the least score or probability that predicts the positive class.
        separator: the column separator of text; None for the default of the extension.
        num_examples: the number of rows to list.
    """

    columns: Columns
    ignore: frozenset[str] = frozenset()
    positive: str | None = None
    threshold: float | None = None
    separator: str | None = None
    num_examples: int = 0

    @classmethod
    def of(cls, given: Namespace) -> Selection:
        """Make the selection from the arguments of a command."""
        asked = vars(given)
        roles = {role: asked[role] for role in Columns.__annotations__ if role in asked}
        number = asked.get("examples", 0)
        if number < 0:
            raise InputError(f"--examples must be 0 or more, got {number}")
        if roles.get("show") and not number:
            raise InputError("--show needs --examples, the number of rows to list")
        return cls(
            Columns(**roles),
            frozenset(asked.get("ignore", ())),
            asked.get("pos_label"),
            asked.get("threshold"),
            asked["separator"],
            number,
        )


class Predictions:
    """A table of predictions with known columns.

    Attributes:
        num_rows: the number of rows; None if unknown before the end.
        labels, numbers, shown: columns by role; probabilities are `prob 0`, `prob 1`, ..., columns
            that are shown with examples `show 0`, `show 1`, ...
        prob_classes: the classes with a column of probabilities each; empty if a single column has
            the probability of the positive class.
        positive: the positive class, against the rest; 1 for scores.
    """

    def __init__(self, table: FileTable, question: Selection) -> None:
        self._table, self.question, columns = table, question, question.columns
        has_scores = _has_scores(question)
        self.prob_classes: list[str] = []
        with reading():
            by_threshold = question.threshold is not None
            has_pred = not has_scores or ("y_pred" in table.names and not by_threshold)
            roles = {
                "true": columns.true,
                "pred": columns.pred or ("y_pred" if has_pred else None),
                "group": columns.group,
                "cluster": columns.cluster,
                "id": columns.id,
            }
            self.labels = self._columns(roles)
            for column in self.labels.values():
                table.check_label(column.name)
            shown = {f"show {i}": name for i, name in enumerate(columns.show)}
            self.shown = self._columns(shown)
            self.numbers = self._columns({"weight": columns.weight, "score": columns.score})
            self._check_distinct()
            if columns.prob is not None:
                self._find_probabilities(columns.prob)
            self.num_rows = table.num_rows
        has_one = columns.score is not None or (columns.prob is not None and not self.prob_classes)
        is_one = question.positive is None and has_one
        self.positive = "1" if is_one else question.positive
        if by_threshold and self.positive is None:
            raise InputError("--threshold needs a positive class: give --pos-label")
        if "pred" not in self.labels and columns.prob is None and not by_threshold:
            raise InputError(
                "scores are not predictions: give --threshold, the least score that predicts the"
                " positive class, or --pred, a column of predictions"
            )

    def _columns(self, roles: Mapping[str, str | None]) -> dict[str, Column]:
        return {role: self._table.column(name) for role, name in roles.items() if name is not None}

    def _check_distinct(self) -> None:
        given = {**self.labels, **self.numbers}
        for role in ("cluster", "id"):  # an id may have two roles
            given.pop(role, None)
        if len(set(given.values())) < len(given):
            found = ", ".join(f"{role} = {column.name!r}" for role, column in given.items())
            raise InputError(f"one column has two roles: {found}")

    def _find_probabilities(self, prefix: str) -> None:
        taken = [column.name for column in (*self.labels.values(), *self.numbers.values())]
        family = self._table.family(prefix, taken)
        if list(family) != [""]:
            self.prob_classes = list(family)
            if len(family) == 1:
                (column,) = family.values()
                raise InputError(
                    f"--prob matches a single column, {str(column)!r}: expected one column per"
                    " class, or the full name of one column with the probability of the positive"
                    " class"
                )
        self.numbers |= {f"prob {i}": column for i, column in enumerate(family.values())}

    @property
    def names_of_rows(self) -> dict[str, str]:
        """The columns that identify a row, by their roles: its id, and the columns to show."""
        found = {role: str(x) for role, x in self.shown.items()}
        return ({"id": str(self.labels["id"])} if "id" in self.labels else {}) | found

    @property
    def judged_classes(self) -> list[str]:
        """The classes of the probabilities in `batches`: several, or the rest and the positive
        class.
        """
        if self.positive is None:
            return self.prob_classes
        return [rest_of(self.positive), self.positive]

    def refuse(self, row: int, role: str, value: object, message: str) -> NoReturn:
        """Raise an error that names the row and the column."""
        name = str(self.labels.get(role) or self.numbers[role])
        text = shortened(value) if isinstance(value, str) else value
        raise InputError(f"row {row}: {name!r} is {text!r}, {message}")

    def learn_labels(self, labels: dict[str, None], rows: pl.DataFrame) -> None:
        """Add new classes in the order of their rows; invalid classes raise."""
        known = [*labels, *self.question.ignore]
        roles = [
            rows.select(pl.col(role).alias("label"), ROW, pl.lit(role).alias("role"))
            for role in LABELS
            if role in self.labels  # not predictions from probabilities and scores
        ]
        new = pl.concat(roles).filter(~pl.col("label").is_in(known))
        new = new.sort(ROW, maintain_order=True).unique("label", keep="first", maintain_order=True)
        for label, row, role in new.iter_rows():
            message = refusal_of(label)
            if message is None and self.prob_classes and label not in self.prob_classes:
                message = "a class for which there is no column of probabilities"
            elif message is None and len(labels) == _tables.MAX_CLASSES:
                message = f"after {_tables.MAX_CLASSES} other values: is it a column of classes?"
            if message is not None:
                self.refuse(row, role, label, message)
            labels[label] = None

    def _texts(self, values: Mapping[str, pl.Expr]) -> list[pl.Expr]:
        texts = []
        for role, column in self.labels.items():
            text = self._table.label(column, values[role]).fill_null("")
            texts.append((text.replace("", _NO_GROUP) if role == "group" else text).alias(role))
        return texts

    def cells(self) -> Iterator[pl.DataFrame]:
        """Count the combinations of labels, piece by piece, in polars."""
        roles = list(self.labels)
        values = [pl.col(column.name).alias(role) for role, column in self.labels.items()]
        texts = self._texts({role: pl.col(role) for role in roles})
        for piece in self._table.pieces(self.labels.values()):
            with reading():
                rows = piece.select(ROW, *values)
                cells = cells_of(rows, roles).collect(engine="streaming")
            yield cells.with_columns(texts)

    def batches(self) -> Iterator[pl.DataFrame]:
        """Read batches of rows, with checked numbers.

        Probabilities are arrays `prob`; with a positive class they have the columns rest and
        positive. In ignored rows, probabilities and scores are not checked, and are 0. Missing
        predictions are made from probabilities or scores. Weights are unchanged.
        """
        with reading():
            numbers = [self._table.number(x).alias(key) for key, x in self.numbers.items()]
            numbers += [self._table.text(x.name).alias(key) for key, x in self.shown.items()]
        texts = self._texts({role: pl.col(x.name) for role, x in self.labels.items()})
        columns = [*self.labels.values(), *self.numbers.values(), *self.shown.values()]
        for batch in self._table.batches(columns, [pl.col(ROW), *texts, *numbers]):
            rows = batch.with_columns(~self.is_ignored(batch.columns).alias(COUNTED))
            prob, score = self._probabilities(rows), self._scores(rows)
            rows = rows.drop("score", "^prob .*$", strict=False)
            if "pred" not in rows.columns:
                rows = rows.with_columns(self._predictions(prob, score))
            if prob is not None:
                rows = rows.with_columns(pl.Series("prob", prob))
            if score is not None:
                rows = rows.with_columns(pl.Series("score", score))
            yield rows

    def is_ignored(self, columns: Collection[str]) -> pl.Expr:
        """Tell which rows are ignored."""
        roles = [role for role in LABELS if role in columns]
        return pl.any_horizontal(pl.col(roles).is_in(list(self.question.ignore)))

    def _probabilities(self, rows: pl.DataFrame) -> np.ndarray | None:
        columns = [name for name in self.numbers if name.startswith("prob ")]
        if not columns:
            return None
        prob = as_numbers(rows, columns)
        if len(columns) == 1:
            valid, expected = (prob[:, 0] >= 0) & (prob[:, 0] <= 1), "a probability"
            prob = np.concatenate([1 - prob, prob], 1)
        else:
            valid, expected = are_distributions(prob), "probabilities that sum to 1"
        counted = rows[COUNTED].to_numpy()
        if not (valid | ~counted).all():
            i = int((counted & ~valid).argmax())
            self._refuse_probabilities(rows.select(ROW, *columns).row(i), columns, expected)
        prob[~counted] = 0
        if self.positive is not None and len(columns) > 1:
            place = self._place_of_positive(self.positive)
            prob = np.stack([np.delete(prob, place, 1).sum(1), prob[:, place]], 1)
        return prob

    def _refuse_probabilities(
        self, row: Sequence[object], columns: Sequence[str], expected: str
    ) -> NoReturn:
        number, *values = row
        names = " + ".join(repr(str(self.numbers[x])) for x in columns[:_LISTED])
        more = f" + {len(columns) - _LISTED} more" if len(columns) > _LISTED else ""
        given = values[0] if len(values) == 1 else values[:_LISTED]
        raise InputError(f"row {number}: {names}{more} is {given!r}, expected {expected}")

    def _place_of_positive(self, positive: str) -> int:
        if positive not in self.prob_classes:
            raise InputError(
                f"there is no column of probabilities for the class {positive!r}, only for"
                f" {listed(self.prob_classes)}"
            )
        return self.prob_classes.index(positive)

    def _scores(self, rows: pl.DataFrame) -> np.ndarray | None:
        if "score" not in self.numbers:
            return None
        scores = as_numbers(rows, ["score"])[:, 0]
        counted = rows[COUNTED].to_numpy()
        bad = counted & np.isnan(scores)
        if bad.any():
            i = int(bad.argmax())
            self.refuse(rows[ROW][i], "score", rows["score"][i], "expected a number")
        return np.where(counted, scores, 0)

    def _predictions(self, prob: np.ndarray | None, score: np.ndarray | None) -> pl.Series:
        """Predict the most probable class, or with a threshold the positive class."""
        if self.positive is None and prob is not None:
            return pl.Series("pred", np.array(self.prob_classes, object)[prob.argmax(1)], pl.String)
        values = prob[:, 1] if score is None and prob is not None else score
        threshold = 0.5 if self.question.threshold is None else self.question.threshold
        names = np.array(self.judged_classes, object)
        chosen = np.asarray(values) >= threshold
        return pl.Series("pred", names[chosen.astype(int)], pl.String)

    def check_clusters(self, rows: pl.DataFrame) -> None:
        """Raise for missing cluster ids."""
        if "cluster" in rows.columns:
            missing = rows.filter(pl.col("cluster") == "").sort(ROW)
            if len(missing):
                self.refuse(missing[ROW][0], "cluster", "", "which is no cluster")

    def class_ids(self, labels: pl.Series) -> np.ndarray:
        """Return ids among `judged_classes`."""
        if self.positive is not None:
            return (labels == self.positive).to_numpy().astype(np.int64)
        order = {name: i for i, name in enumerate(self.prob_classes)}
        return Classes(self.prob_classes, order).ids_of(labels)


def as_numbers(rows: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Convert columns to floats `(n, len(columns))`, with NaN for values that are not numbers."""
    numbers = rows.select(pl.col(columns).cast(pl.Float64, strict=False)).fill_null(np.nan)
    return numbers.to_numpy().copy()


def _has_scores(question: Selection) -> bool:
    columns = question.columns
    has_scores = columns.prob is not None or columns.score is not None
    if question.threshold is not None:
        if not has_scores:
            raise InputError("--threshold needs --score or --prob")
        if columns.pred is not None:
            raise InputError("--pred and --threshold both define the prediction: give only one")
        if question.threshold != question.threshold:
            raise InputError("--threshold must be a number, got nan")
    return has_scores


def cells_of(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Count the combinations of labels, and return the first row of each."""
    found = [pl.len().cast(pl.Int64).alias("number"), pl.col(ROW).min()]
    if "weight" in rows.collect_schema():
        weight = pl.col("weight").cast(pl.Float64, strict=False)
        good = (weight.is_finite() & (weight >= 0)).fill_null(False)
        found += [
            weight.filter(good).sum().alias("mass"),
            pl.col(ROW).filter(~good).first().alias("bad row"),
            pl.col("weight").filter(~good).first().alias("bad weight"),
        ]
    return rows.group_by(keys).agg(found)
