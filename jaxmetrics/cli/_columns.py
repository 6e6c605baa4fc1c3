"""Find the columns of a table of predictions, and check the numbers in them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from jaxmetrics._arguments.example_arguments import are_distributions
from jaxmetrics.cli._classes import rest_of, sorted_classes
from jaxmetrics.cli._errors import InputError, decimal_hint, listed, shortened
from jaxmetrics.cli._reader import FileTable
from jaxmetrics.cli._text_files import ROW

LABELS = ("true", "pred")
COUNTED = "counted"  # boolean column, False for ignored rows
_LISTED = 12  # the largest number of columns or values in an error message
_GREATEST = float(np.finfo(float).max)


def _check_threshold(options: Namespace, has_scores: bool) -> None:
    """Raise an error if there is a threshold but no scores, or a threshold and predictions."""
    if options.threshold is None:
        return
    if not has_scores:
        raise InputError(
            "--threshold is applied to scores or probabilities. Add --score or --prob, or"
            " leave out --threshold."
        )
    if options.pred is not None:
        raise InputError(
            "--pred and --threshold cannot be used together, because each of them determines"
            " the predicted class. Leave out one of them."
        )
    if options.threshold != options.threshold:
        raise InputError("--threshold must be a number, got nan")


class Columns:
    """The columns of a table of predictions.

    Attributes:
        labels, numbers, shown: values by role. The roles of probabilities are `prob 0`, `prob 1`
            and so on; the roles of the columns to show are `show 0`, `show 1` and so on.
        prob_classes: the sorted classes that have a column of probabilities; empty if a single
            column has the probability of the positive class.
        positive: the positive class, or None if no class is given as positive. The default
            for scores is "1".
    """

    def __init__(self, table: FileTable, options: Namespace) -> None:
        has_prob, has_score = options.prob is not None, options.score is not None
        _check_threshold(options, has_prob or has_score)
        self.table, self.options = table, options
        self.prob_classes: list[str] = []
        by_threshold = options.threshold is not None
        has_pred = "y_pred" in table.names and not by_threshold
        pred = "y_pred" if has_pred or not (has_prob or has_score) else None
        names = {"true": options.true, "pred": options.pred or pred}
        names |= {role: getattr(options, role) for role in ("group", "cluster", "id")}
        self.labels = {role: table.label(name) for role, name in names.items() if name is not None}
        self.shown = {f"show {i}": table.text(name) for i, name in enumerate(options.show)}
        names = {"weight": _amount_of(options), "score": options.score}
        self.numbers = {role: table.number(x) for role, x in names.items() if x is not None}
        # The columns of clusters and ids may have a second role.
        single = {role: x.name for role, x in (self.labels | self.numbers).items()}
        single = {role: x for role, x in single.items() if role not in ("cluster", "id")}
        if len({*single.values()}) < len(single):
            roles = ", ".join(f"{role} = {name!r}" for role, name in single.items())
            raise InputError(
                f"one column is given for two options: {roles}. Give a different column for each."
            )
        if has_prob:
            self._find_probabilities(options.prob)
        self.positive = options.pos_label
        if self.positive is None and (has_score or (has_prob and not self.prob_classes)):
            self.positive = "1"
        if by_threshold and self.positive is None:
            raise InputError(
                "--threshold needs a positive class. Add --pos-label with the name of this class."
            )
        if "pred" not in self.labels and not has_prob and not by_threshold:
            raise InputError(
                "--score gives scores, but the predicted classes are missing. Add --threshold,"
                " the least score for which the positive class is predicted, or --pred, the column"
                " of the predicted class."
            )

    def _find_probabilities(self, prefix: str) -> None:
        table = self.table
        taken = [x.name for x in (*self.labels.values(), *self.numbers.values())]
        is_one_column = prefix in table.names and table.width(prefix) is None
        family = {"": table.number(prefix)} if is_one_column else table.family(prefix, taken)
        classes = sorted_classes(family)
        if classes != [""]:
            self.prob_classes = self.options.classes or classes
            if len(family) == 1:
                (column,) = family.values()
                raise InputError(
                    f"--prob is a prefix that only one column has, {column.name!r}, but there must"
                    " be one column for each class. If this column contains the probability of the"
                    " positive class, give its full name."
                )
            if {*classes} != {*self.prob_classes}:
                raise InputError(
                    f"there are columns of probabilities for the classes {listed(classes)}, but"
                    f" --classes names {listed(self.prob_classes)}. Each class needs a column."
                )
            classes = self.prob_classes
        self.numbers |= {f"prob {i}": family[name] for i, name in enumerate(classes)}

    def with_numbers(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Check the numbers of rows that are not ignored, and add predictions if they are computed.

        The probabilities of a row become an array `prob`; if there is a positive class, the array
        has two elements, for the rest and for the positive class.
        """
        options, computed = self.options, dict[str, Any]()
        if options.prob is not None:
            computed["prob"] = self._probabilities(rows)
        if "score" in self.numbers:
            are_finite = _within(-np.inf, np.inf)
            computed["score"] = self._checked(rows, ["score"], are_finite, "a number")[:, 0]
        if "weight" in self.numbers:
            weights = self._checked(rows, ["weight"], _within(0, _GREATEST), "a number >= 0")
            computed["weight"] = weights[:, 0]
            computed["is weighted"] = weights[:, 0] > 0  # rows of weight 0 are counted apart
            if options.count is None and options.cluster is None:
                computed["square"] = weights[:, 0] ** 2
        if "pred" not in self.labels and self.positive is None:
            best = computed["prob"].argmax(1)
            computed["pred"] = np.array(self.prob_classes, object)[best].tolist()
        elif "pred" not in self.labels:
            values = computed["score"] if "score" in computed else computed["prob"][:, 1]
            threshold = 0.5 if options.threshold is None else options.threshold
            columns = rows.select("score" if "score" in computed else "^prob .*$")
            if pl.Float32 in columns.dtypes:  # 0.7 in float32 is not below the threshold 0.7
                threshold = float(np.float32(threshold))
            names = np.array([rest_of(str(self.positive)), self.positive], object)
            computed["pred"] = names[(values >= threshold).astype(int)].tolist()
        rows = rows.drop("^prob .*$", strict=False)
        return rows.with_columns(pl.Series(role, values) for role, values in computed.items())

    def _checked(
        self,
        rows: pl.DataFrame,
        roles: Sequence[str],
        are_valid: Callable[[np.ndarray], np.ndarray],
        expected: str,
    ) -> np.ndarray:
        """Return numbers `(n, len(roles))`; raise an error for an invalid number, except in ignored
        rows, where numbers become 0.
        """
        numbers, counted = as_numbers(rows, roles), rows[COUNTED].to_numpy()
        bad = counted & ~are_valid(numbers)
        if bad.any():
            row, *values = rows.select(ROW, *roles).row(int(bad.argmax()))
            names = " + ".join(repr(self.numbers[role].name) for role in roles[:_LISTED])
            if len(roles) > _LISTED:
                names += f" + {len(roles) - _LISTED} more"
            value = values[0] if len(values) == 1 else values[:_LISTED]
            value = shortened(value) if isinstance(value, str) else value
            raise InputError(
                f"in row {row}, the value of {names} is {value!r}, but it must be"
                f" {expected}{decimal_hint(str(value))}."
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


def _within(least: float, greatest: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: np.all((values >= least) & (values <= greatest), axis=1)


def _amount_of(options: Namespace) -> str | None:
    """Return the column of weights or of numbers of examples."""
    if options.weight is not None and options.count is not None:
        raise InputError(
            "--weight and --count cannot be used together. Leave out --count if each row is one"
            " example, and --weight otherwise."
        )
    return options.weight or options.count


def as_numbers(rows: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Convert columns to floats `(n, len(columns))`; values that are not numbers become NaN."""
    numbers = rows.select(pl.col(columns).cast(pl.Float64, strict=False)).fill_null(np.nan)
    return numbers.to_numpy().copy()
