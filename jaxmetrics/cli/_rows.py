"""Rows of predictions: find their columns, and check their values."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NoReturn

import numpy as np
import polars as pl

from jaxmetrics._examples import are_distributions
from jaxmetrics.cli import _tables
from jaxmetrics.cli._classes import refusal_of, rest_of
from jaxmetrics.cli._errors import InputError, listed, reading, shortened
from jaxmetrics.cli._tables import ROW, FileTable, Value

__all__: list[str] = []

LABELS = ("true", "pred")
COUNTED = "counted"  # column of batches: which rows count
_LISTED = 12  # columns or values in a message
_NO_GROUP = "(missing)"  # group of rows without a group


@dataclass(frozen=True)
class Question:
    """The columns and rows to read, by the names of the options.

    Attributes:
        true, pred, weight, score, group, cluster, id, show: names of columns or arrays; `pred` None
            means `y_pred`, or if the file has none, the prediction from probabilities or the
            threshold.
        prob: the prefix (NPZ: the array) of probabilities.
        ignore: labels whose rows are left out.
        pos_label: the positive class, if there is one, against the rest.
        threshold: the least score or probability that predicts the positive class.
        separator: the column separator of text; None for the default of the extension.
        examples: the number of rows to list.
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
    ignore: Sequence[str] = ()
    pos_label: str | None = None
    threshold: float | None = None
    separator: str | None = None
    examples: int = 0

    @classmethod
    def of(cls, given: Namespace) -> Question:
        """Take the options of a command."""
        names = {field.name for field in fields(cls)} & {*vars(given)}
        question = cls(**{name: getattr(given, name) for name in names})
        if question.examples < 0:
            raise InputError(f"--examples must be 0 or more, got {question.examples}")
        if question.show and not question.examples:
            raise InputError("--show needs --examples, the number of rows to list")
        return question

    @property
    def has_scores(self) -> bool:
        """Whether there are probabilities or scores."""
        return self.prob is not None or self.score is not None

    def check_threshold(self) -> None:
        """Raise for a threshold of nothing, or beside predictions."""
        if self.threshold is None:
            return
        if not self.has_scores:
            raise InputError("--threshold needs --score or --prob")
        if self.pred is not None:
            raise InputError("--pred and --threshold both define the prediction: give only one")
        if self.threshold != self.threshold:
            raise InputError("--threshold must be a number, got nan")


class Predictions:
    """A table of predictions with known columns.

    Attributes:
        labels, numbers, shown: values by role; probabilities are `prob 0`, `prob 1`, ..., columns
            that are shown with examples `show 0`, `show 1`, ...
        prob_classes: the classes with a column of probabilities each; empty if a single column has
            the probability of the positive class.
        positive: the positive class, against the rest; 1 for scores.
    """

    def __init__(self, table: FileTable, question: Question) -> None:
        question.check_threshold()
        self.table, self.question = table, question
        self.prob_classes: list[str] = []
        with reading():
            by_threshold = question.threshold is not None
            has_pred = "y_pred" in table.names and not by_threshold
            pred = "y_pred" if has_pred or not question.has_scores else None
            names = {"true": question.true, "pred": question.pred or pred}
            names |= {role: getattr(question, role) for role in ("group", "cluster", "id")}
            self.labels = {
                role: table.label(name) for role, name in names.items() if name is not None
            }
            self.shown = {f"show {i}": table.text(name) for i, name in enumerate(question.show)}
            names = {"weight": question.weight, "score": question.score}
            self.numbers = {
                role: table.number(name) for role, name in names.items() if name is not None
            }
            self._check_distinct()
            if question.prob is not None:
                self._find_probabilities(question.prob)
        has_one = question.score is not None or (
            question.prob is not None and not self.prob_classes
        )
        self.positive = question.pos_label
        if has_one and self.positive is None:
            self.positive = "1"
        if by_threshold and self.positive is None:
            raise InputError("--threshold needs a positive class: give --pos-label")
        if "pred" not in self.labels and question.prob is None and not by_threshold:
            raise InputError(
                "scores are not predictions: give --threshold, the least score that predicts the"
                " positive class, or --pred, a column of predictions"
            )

    def _check_distinct(self) -> None:
        given = {**self.labels, **self.numbers}
        for role in ("cluster", "id"):  # an id may have two roles
            given.pop(role, None)
        if len({x.name for x in given.values()}) < len(given):
            found = ", ".join(f"{role} = {x.name!r}" for role, x in given.items())
            raise InputError(f"one column has two roles: {found}")

    def _find_probabilities(self, prefix: str) -> None:
        taken = [x.name for x in (*self.labels.values(), *self.numbers.values())]
        family = self.table.family(prefix, taken)
        if list(family) != [""]:
            self.prob_classes = list(family)
            if len(family) == 1:
                (column,) = family.values()
                raise InputError(
                    f"--prob matches a single column, {column.name!r}: expected one column per"
                    " class, or the full name of one column with the probability of the positive"
                    " class"
                )
        self.numbers |= {f"prob {i}": column for i, column in enumerate(family.values())}

    @property
    def names_of_rows(self) -> dict[str, str]:
        """The columns that identify a row, by their roles: its id, and the columns to show."""
        found = {role: x.name for role, x in self.shown.items()}
        return ({"id": self.labels["id"].name} if "id" in self.labels else {}) | found

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
        name = (self.labels | self.numbers)[role].name
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

    def _text(self, role: str, values: pl.Expr) -> pl.Expr:
        text = self.table.written(self.labels[role].name, values)
        return (text.replace("", _NO_GROUP) if role == "group" else text).alias(role)

    def cells(self) -> Iterator[pl.DataFrame]:
        """Count the combinations of labels, piece by piece, in polars."""
        roles = list(self.labels)
        for cells in self.table.batches(self.labels, lambda rows: cells_of(rows, roles)):
            yield cells.with_columns(self._text(role, pl.col(role)) for role in roles)

    def batches(self) -> Iterator[pl.DataFrame]:
        """Read batches of rows, with checked numbers.

        Probabilities are arrays `prob`; with a positive class they have the columns rest and
        positive. In ignored rows, probabilities and scores are not checked, and are 0. Missing
        predictions are made from probabilities or scores. Weights are unchanged.
        """
        asked = self.labels | self.numbers | self.shown
        for role, (name, column) in self.labels.items():
            asked[role] = Value(name, self._text(role, column))
        for batch in self.table.batches(asked):
            rows = batch.with_columns(~self.is_ignored(batch.columns).alias(COUNTED))
            counted = rows[COUNTED].to_numpy()
            values: np.ndarray = np.empty(0)
            if self.question.prob is not None:
                prob = self._probabilities(rows, counted)
                rows = rows.drop("^prob .*$").with_columns(pl.Series("prob", prob))
                values = prob[:, -1]
            if "score" in rows.columns:
                values = self._scores(rows, counted)
                rows = rows.with_columns(pl.Series("score", values))
            if "pred" not in rows.columns:
                threshold = 0.5 if self.question.threshold is None else self.question.threshold
                is_multiclass = self.positive is None
                ids = prob.argmax(1) if is_multiclass else (values >= threshold).astype(int)
                names = np.array(self.judged_classes, object)[ids]
                rows = rows.with_columns(pl.Series("pred", names, pl.String))
            yield rows

    def is_ignored(self, columns: Collection[str]) -> pl.Expr:
        """Tell which rows are ignored."""
        roles = [role for role in LABELS if role in columns]
        return pl.any_horizontal(pl.col(roles).is_in(list(self.question.ignore)))

    def _probabilities(self, rows: pl.DataFrame, counted: np.ndarray) -> np.ndarray:
        roles = [role for role in self.numbers if role.startswith("prob ")]
        prob = as_numbers(rows, roles)
        if len(roles) == 1:
            valid, expected = (prob[:, 0] >= 0) & (prob[:, 0] <= 1), "a probability"
            prob = np.concatenate([1 - prob, prob], 1)
        else:
            valid, expected = are_distributions(prob), "probabilities that sum to 1"
        if not (valid | ~counted).all():
            number, *given = rows.select(ROW, *roles).row(int((counted & ~valid).argmax()))
            names = " + ".join(repr(self.numbers[x].name) for x in roles[:_LISTED])
            more = f" + {len(roles) - _LISTED} more" if len(roles) > _LISTED else ""
            found = given[0] if len(given) == 1 else given[:_LISTED]
            raise InputError(f"row {number}: {names}{more} is {found!r}, expected {expected}")
        prob[~counted] = 0
        if self.positive is None or len(roles) == 1:
            return prob
        if self.positive not in self.prob_classes:
            raise InputError(
                f"there is no column of probabilities for the class {self.positive!r}, only for"
                f" {listed(self.prob_classes)}"
            )
        place = self.prob_classes.index(self.positive)
        return np.stack([np.delete(prob, place, 1).sum(1), prob[:, place]], 1)

    def _scores(self, rows: pl.DataFrame, counted: np.ndarray) -> np.ndarray:
        scores = as_numbers(rows, ["score"])[:, 0]
        bad = counted & np.isnan(scores)
        if bad.any():
            i = int(bad.argmax())
            self.refuse(rows[ROW][i], "score", rows["score"][i], "expected a number")
        return np.where(counted, scores, 0)

    def check_clusters(self, rows: pl.DataFrame) -> None:
        """Raise for missing cluster ids."""
        if "cluster" in rows.columns:
            missing = rows.filter(pl.col("cluster") == "").sort(ROW)
            if len(missing):
                self.refuse(missing[ROW][0], "cluster", "", "which is no cluster")

    def class_ids(self, labels: pl.Series) -> np.ndarray:
        """Return ids among `judged_classes`; other labels are the rest."""
        ids = {name: i for i, name in enumerate(self.judged_classes)}
        return labels.replace_strict(ids, default=0, return_dtype=pl.Int64).to_numpy()


def as_numbers(rows: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Convert columns to floats `(n, len(columns))`, with NaN for values that are not numbers."""
    numbers = rows.select(pl.col(columns).cast(pl.Float64, strict=False)).fill_null(np.nan)
    return numbers.to_numpy().copy()


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
