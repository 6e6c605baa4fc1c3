"""Find the columns of a table of predictions, and read and check its rows."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NoReturn

import numpy as np
import polars as pl

from jaxmetrics._examples import are_distributions
from jaxmetrics.cli import _tables
from jaxmetrics.cli._classes import refusal_of, rest_of, sorted_classes
from jaxmetrics.cli._errors import InputError, listed, reading, shortened
from jaxmetrics.cli._tables import ROW, FileTable, Value

__all__: list[str] = []

LABELS = ("true", "pred")
COUNTED = "counted"  # boolean column of batches, False for ignored rows
_LISTED = 12  # the largest number of columns or values in an error message
_GREATEST = float(np.finfo(float).max)
_NO_GROUP = "(missing)"  # the name of the group of rows without a group


@dataclass(frozen=True)
class Selection:
    """The columns and rows to read; the attributes have the names of the options.

    Attributes:
        true, pred, weight, score, group, cluster, id, show: names of columns or arrays. If `pred`
            is None, the predictions are the column `y_pred`; if there is no such column, they are
            computed from the probabilities or from the threshold.
        prob: the prefix of the columns of probabilities, or the name of an NPZ array.
        ignore: labels whose rows are left out.
        pos_label: the positive class, or None if no class is given as positive.
        threshold: the least score or probability for which the positive class is predicted.
        separator: the column separator in text files; if it is None, the extension determines it.
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
    def of(cls, given: Namespace) -> Selection:
        """Make the selection from the options of a command."""
        names = {field.name for field in fields(cls)} & {*vars(given)}
        question = cls(**{name: getattr(given, name) for name in names})
        if question.examples < 0:
            raise InputError(f"--examples must be 0 or more, got {question.examples}")
        if question.show and not question.examples:
            raise InputError(
                "--show is used only together with --examples. Add --examples NUMBER, the number of"
                " rows to list, or leave out --show."
            )
        return question

    @property
    def has_scores(self) -> bool:
        """Whether there are probabilities or scores."""
        return self.prob is not None or self.score is not None

    @property
    def names_of_rows(self) -> dict[str, str]:
        """The columns that identify a listed row (its id and the columns to show), by role."""
        found = {} if self.id is None else {"id": self.id}
        return found | {f"show {i}": name for i, name in enumerate(self.show)}

    def check_threshold(self) -> None:
        """Raise an error if there is a threshold but no scores, or a threshold and predictions."""
        if self.threshold is None:
            return
        if not self.has_scores:
            raise InputError(
                "--threshold is applied to scores or probabilities. Add --score or --prob, or"
                " leave out --threshold."
            )
        if self.pred is not None:
            raise InputError(
                "--pred and --threshold cannot be used together, because each of them determines"
                " the predicted class. Leave out one of them."
            )
        if self.threshold != self.threshold:
            raise InputError("--threshold must be a number, got nan")


class Predictions:
    """A table of predictions whose columns are known.

    Attributes:
        labels, numbers, shown: values by role. The roles of probabilities are `prob 0`, `prob 1`
            and so on; the roles of the columns to show are `show 0`, `show 1` and so on.
        prob_classes: the sorted classes that have a column of probabilities; empty if a single
            column has the probability of the positive class.
        positive: the positive class, or None if no class is given as positive. The default
            for scores is "1".
        classes: the labels that occur, in the order of their first appearance.
    """

    def __init__(self, table: FileTable, question: Selection, classes: dict[str, None]) -> None:
        question.check_threshold()
        self._table, self._question, self._classes = table, question, classes
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
        self.positive = self._positive_class()
        if "pred" not in self.labels and question.prob is None and not by_threshold:
            raise InputError(
                "--score gives scores, but the predicted classes are missing. Add --threshold,"
                " the least score for which the positive class is predicted, or --pred, the column"
                " of the predicted class."
            )

    def _positive_class(self) -> str | None:
        question = self._question
        has_one_probability = question.prob is not None and not self.prob_classes
        default = "1" if question.score is not None or has_one_probability else None
        positive = default if question.pos_label is None else question.pos_label
        if question.threshold is not None and positive is None:
            raise InputError(
                "--threshold needs a positive class. Add --pos-label with the name of this class."
            )
        return positive

    def _check_distinct(self) -> None:
        given = {**self.labels, **self.numbers}
        for role in ("cluster", "id"):  # these columns may have a second role
            given.pop(role, None)
        if len({x.name for x in given.values()}) < len(given):
            found = ", ".join(f"{role} = {x.name!r}" for role, x in given.items())
            raise InputError(
                f"one column is given for two options: {found}. Give a different column for each."
            )

    def _find_probabilities(self, prefix: str) -> None:
        table = self._table
        taken = [x.name for x in (*self.labels.values(), *self.numbers.values())]
        is_one_column = prefix in table.names and table.width(prefix) is None
        family = {"": table.number(prefix)} if is_one_column else table.family(prefix, taken)
        classes = sorted_classes(family)
        if classes != [""]:
            self.prob_classes = classes
            self._classes |= dict.fromkeys(classes)
            if len(family) == 1:
                (column,) = family.values()
                raise InputError(
                    f"--prob is a prefix that only one column has, {column.name!r}, but there must"
                    " be one column for each class. If this column contains the probability of the"
                    " positive class, give its full name."
                )
        self.numbers |= {f"prob {i}": family[name] for i, name in enumerate(classes)}

    @property
    def judged_classes(self) -> list[str]:
        """The classes of the probabilities in `batches`. If there is a positive class: the rest and
        the positive class.
        """
        if self.positive is None:
            return self.prob_classes
        return [rest_of(self.positive), self.positive]

    def _text(self, role: str, values: pl.Expr) -> pl.Expr:
        text = self._table.written(self.labels[role].name, values)
        return (text.replace("", _NO_GROUP) if role == "group" else text).alias(role)

    def _with_counted(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add the column that is True for rows that are not ignored."""
        roles = [role for role in LABELS if role in self.labels]  # without computed predictions
        is_ignored = pl.any_horizontal(pl.col(roles).is_in(list(self._question.ignore)))
        return rows.with_columns(~is_ignored.alias(COUNTED))

    def _refuse(self, row: object, role: str, value: str, message: str) -> NoReturn:
        name = self.labels[role].name
        raise InputError(f"row {row}: {name!r} is {shortened(value)!r}, {message}")

    def _check_labels(self, rows: pl.DataFrame) -> None:
        """Add new classes in the order of their rows; raise an error for an invalid class or
        cluster.
        """
        known = [*self._classes, *self._question.ignore]
        labels = [
            rows.select(pl.col(role).alias("label"), ROW, pl.lit(role).alias("role"))
            for role in LABELS
            if role in self.labels
        ]
        new = pl.concat(labels).filter(~pl.col("label").is_in(known))
        new = new.sort(ROW, maintain_order=True).unique("label", keep="first", maintain_order=True)
        for label, row, role in new.iter_rows():
            message = refusal_of(label)
            if message is None and self.prob_classes and label not in self.prob_classes:
                message = "a class for which there is no column of probabilities"
            elif message is None and len(self._classes) == _tables.MAX_CLASSES:
                message = f"after {_tables.MAX_CLASSES} other values: is it a column of classes?"
            if message is not None:
                self._refuse(row, role, label, message)
            self._classes[label] = None
        if "cluster" in self.labels:
            missing = rows.filter(pl.col(COUNTED) & (pl.col("cluster") == ""))
            if len(missing):
                self._refuse(missing[ROW].min(), "cluster", "", "which is no cluster")

    def cells(self) -> Iterator[pl.DataFrame]:
        """Count the combinations of labels in each piece of the table."""
        roles = list(self.labels)
        for cells in self._table.batches(self.labels, lambda rows: cells_of(rows, roles)):
            texts = (self._text(role, pl.col(role)) for role in roles)
            cells = self._with_counted(cells.with_columns(texts))
            self._check_labels(cells)
            yield cells

    def batches(self) -> Iterator[pl.DataFrame]:
        """Read batches of rows, and check their numbers.

        The probabilities of a row are an array `prob`; if there is a positive class, the array has
        two elements, for the rest and for the positive class. Numbers in ignored rows are not
        checked but set to 0. If there is no column of predictions, they are computed from the
        probabilities or scores.
        """
        asked = self.labels | self.numbers | self.shown
        for role, (name, column) in self.labels.items():
            asked[role] = Value(name, self._text(role, column))
        for batch in self._table.batches(asked):
            rows = self._with_counted(batch)
            found: dict[str, Any] = {}
            if self._question.prob is not None:
                found["prob"] = self._probabilities(rows)
            if "score" in self.numbers:
                found["score"] = self._checked(
                    rows, ["score"], _within(-np.inf, np.inf), "a number"
                )[:, 0]
            self._check_labels(rows)
            if "weight" in self.numbers:
                weights = self._checked(rows, ["weight"], _within(0, _GREATEST), "a number >= 0")
                found["weight"] = weights[:, 0]
            if "pred" not in self.labels:
                found["pred"] = self._predictions(rows, found)
            rows = rows.drop("^prob .*$", strict=False)
            yield rows.with_columns(pl.Series(role, values) for role, values in found.items())

    def _checked(
        self,
        rows: pl.DataFrame,
        roles: Sequence[str],
        are_valid: Callable[[np.ndarray], np.ndarray],
        expected: str,
    ) -> np.ndarray:
        """Return numbers `(n, len(roles))`; raise an error for an invalid number, except in ignored
        rows.
        """
        numbers, counted = as_numbers(rows, roles), rows[COUNTED].to_numpy()
        bad = counted & ~are_valid(numbers)
        if bad.any():
            row, *given = rows.select(ROW, *roles).row(int(bad.argmax()))
            names = " + ".join(repr(self.numbers[role].name) for role in roles[:_LISTED])
            more = f" + {len(roles) - _LISTED} more" if len(roles) > _LISTED else ""
            found = given[0] if len(given) == 1 else given[:_LISTED]
            found = shortened(found) if isinstance(found, str) else found
            raise InputError(
                f"in row {row}, the value of {names}{more} is {found!r}, but it must be {expected}."
            )
        numbers[~counted] = 0
        return numbers

    def _probabilities(self, rows: pl.DataFrame) -> np.ndarray:
        roles = [role for role in self.numbers if role.startswith("prob ")]
        if len(roles) == 1:
            prob = self._checked(rows, roles, _within(0, 1), "a probability")
            return np.concatenate([1 - prob, prob], 1)
        prob = self._checked(rows, roles, are_distributions, "probabilities that sum to 1")
        if self.positive is None:
            return prob
        if self.positive not in self.prob_classes:
            raise InputError(
                f"there is no column of probabilities for the class {self.positive!r}. There are"
                f" columns for the classes {listed(self.prob_classes)}. Add a column for each"
                " class."
            )
        place = self.prob_classes.index(self.positive)
        return np.stack([np.delete(prob, place, 1).sum(1), prob[:, place]], 1)

    def _predictions(self, rows: pl.DataFrame, found: Mapping[str, np.ndarray]) -> list[str]:
        """Predict the most probable class, or, if there is a positive class, by the threshold."""
        if self.positive is None:
            ids = found["prob"].argmax(1)
        else:
            values = found["score"] if "score" in found else found["prob"][:, 1]
            threshold = 0.5 if self._question.threshold is None else self._question.threshold
            columns = rows.select("score" if "score" in found else "^prob .*$")
            if pl.Float32 in columns.dtypes:  # 0.7 in float32 is not below the threshold 0.7
                threshold = float(np.float32(threshold))
            ids = (values >= threshold).astype(int)
        return np.array(self.judged_classes, object)[ids].tolist()


def _within(least: float, greatest: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: np.all((values >= least) & (values <= greatest), axis=1)


def as_numbers(rows: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Convert columns to floats `(n, len(columns))`; values that are not numbers become NaN."""
    numbers = rows.select(pl.col(columns).cast(pl.Float64, strict=False)).fill_null(np.nan)
    return numbers.to_numpy().copy()


def cells_of(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Count the combinations of labels, and return the first row number of each combination."""
    found = [pl.len().cast(pl.Int64).alias("number"), pl.col(ROW).min()]
    if "weight" in rows.collect_schema():
        found.append(pl.col("weight").sum().alias("mass"))
    return rows.group_by(keys).agg(found)
