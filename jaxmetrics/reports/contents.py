"""The contents of reports in any format: values with intervals, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._text.wording import (
    Table,
    interval,
    labels_of,
    listed,
    printable,
    probability,
    shortened,
    spec_of,
    title_of,
)
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.reports.gates import QUANTILE_OF_POWER, JudgedGate
from jaxmetrics.reports.values import Key, ReportValue, records_of

__all__: list[str] = []

# The posterior is in JSON, CSV and pictures, but not listed among confidence intervals.
POSTERIOR = "balanced_accuracy_posterior"
LONGEST_NAME = 40
FALSE_DISCOVERIES = 0.05
_LONGEST_NAME_OF_SYSTEM = 200
_MOST_IN_MATRIX, _LONGEST_IN_MATRIX = 12, 16
_LONGEST_TEXT = 80  # the largest number of characters in a cell of a listed example


def names_of_both(names: Sequence[str]) -> dict[str, str]:
    """Return the names of A and B by letter, without names that are equal to their letter."""
    labels = labels_of(names, _LONGEST_NAME_OF_SYSTEM)
    return {short: name for short, name in zip("AB", labels, strict=True) if short != name}


def verdict_of(
    d: ReportValue, what: str, sample: SampleSize, level: float, rope: float = 0.0
) -> str:
    """Write a sentence on the difference of A and B. It says which of them is better, that they are
    equivalent, or how large a difference must be so that samples of this size show it. The sentence
    is "" if there is no interval.
    """
    if math.isnan(d.low):
        return ""
    if d.low > 0:
        return f"A is better: its {what} is higher by {d}."
    if d.high < 0:
        return f"B is better: its {what} is higher by {interval(-d.value, -d.high, -d.low)}."
    difference = f"{what} of A minus {what} of B is {d}"
    if max(-d.low, d.high) <= rope:
        return f"A and B are equivalent: {difference}, within {rope:g} of 0."
    sentence = f"A and B cannot be told apart: {difference}."
    shown = (normal_quantile(level) + QUANTILE_OF_POWER) * d.standard_error
    if not shown > 0:
        return sentence
    number, units = sample.units_drawn
    return (
        f"{sentence} With 80 % power, {number:,.10g} {units} like these show a difference of"
        f" {shown:.2g}, and {4 * number:,.10g} {units} show a difference of {shown / 2:.2g}."
    )


def mcnemar_in_words(only_a: int, only_b: int, p_value: float, kind: str = "mid-p") -> str:
    """Write how often only A and only B is correct, and McNemar's test."""
    p = probability(p_value)
    return (
        f"Only A is correct {only_a:,} times, only B {only_b:,} times; McNemar's test ({kind}): p"
        f" {p if p[0] in '<>' else f'= {p}'}."
    )


class SampleSize(NamedTuple):
    """The numbers of examples, of ignored examples, and of clusters if there are any.

    If examples have weights, `weight` is their sum, and `effective` their effective number.
    `cluster` is the name of the column of cluster ids, if it is known.
    `num_invalid` is the number of invalid predictions, or their weight; None if no label is
    invalid.
    """

    number: float
    num_ignored: int = 0
    num_clusters: int | None = None
    units: str = "examples"
    weight: float | None = None
    effective: float | None = None
    num_invalid: float | None = None
    cluster: str | None = None

    def __str__(self) -> str:
        clusters = ""
        if self.num_clusters is not None:
            name = f" ({printable(self.cluster)})" if self.cluster else ""
            clusters = f" in {quantity(self.num_clusters, 'clusters')}{name}"
        ignored = f", {self.num_ignored:,} ignored" if self.num_ignored else ""
        invalid = ""
        if self.num_invalid is not None:
            number = quantity(round(self.num_invalid, 4), "invalid predictions")
            total = self.number if self.weight is None else self.weight
            invalid = f", {number} ({100 * self.num_invalid / total:.3g} %)"
        weights = ""
        if self.weight is not None:
            weights = f", weights sum to {self.weight:.6g}"
        if self.effective is not None:
            weights += f", effective number {self.effective:.4g}"
        return f"{quantity(self.number, self.units)}{clusters}{ignored}{invalid}{weights}"

    @property
    def units_drawn(self) -> tuple[float, str]:
        """The number and the name of the independent units: examples, items or clusters."""
        if self.num_clusters is None:
            return self.number, self.units
        return self.num_clusters, "clusters"

    def content(self) -> dict[str, Any]:
        """Return the numbers by name, for JSON."""
        others = {
            "num_clusters": self.num_clusters,
            "cluster": self.cluster,
            "num_invalid": self.num_invalid,
            "sum_of_weights": self.weight,
            "effective_number": self.effective,
        }
        return {
            f"num_{self.units}": self.number,
            "num_ignored": self.num_ignored,
            **{name: x for name, x in others.items() if x is not None},
        }


def quantity(number: float, units: str) -> str:
    """Write a number of units, such as "3 labels" and "1 label"."""
    return f"{number:,.10g} {units if number != 1 else units[:-1]}"


def discoveries(p_values: Mapping[Any, float]) -> list[Any]:
    """List the keys whose hypotheses are rejected at the false discovery rate
    `FALSE_DISCOVERIES`, by the method of Benjamini and Hochberg (1995), Journal of the Royal
    Statistical Society B 57.
    """
    ranked = sorted(p_values.values())
    limits = (FALSE_DISCOVERIES * i / len(ranked) for i in range(1, len(ranked) + 1))
    passed = [p for p, limit in zip(ranked, limits, strict=True) if p <= limit]
    return [key for key, p in p_values.items() if passed and p <= passed[-1]]


class Findings(NamedTuple):
    """Additions to a report: overall values by name, values per class, and tables for pictures."""

    overall: Mapping[str, ReportValue] = {}
    per_class: Mapping[str, Sequence[ReportValue]] = {}
    tables: Mapping[str, Any] = {}


def listing(title: str, records: Sequence[Mapping[str, Any]]) -> dict[str, Table]:
    """Return a dict with the title and the table of listed examples; the dict is empty if there are
    no examples. Values under "columns" become columns of the table, too.
    """
    if not records:
        return {}
    flat = [[*x.items(), *x["columns"].items()] for x in records]
    rows = [[(name, value) for name, value in x if name != "columns"] for x in flat]
    titles = [printable(name) for name, _ in rows[0]]
    columns = [_texts_of([row[i][1] for row in rows]) for i in range(len(titles))]
    return {title: Table(titles, [*zip(*columns, strict=True)])}


def matrix_of(counts: np.ndarray, names: Sequence[str]) -> dict[str, Table]:
    """Return a dict with the title and the table of a confusion matrix of few classes."""
    if len(names) > _MOST_IN_MATRIX:
        return {}
    labels = labels_of(names, _LONGEST_IN_MATRIX)
    rows = zip(labels, *([f"{x:,.10g}" for x in column] for column in counts.T), strict=True)
    title = "Confusion matrix: rows are true classes, columns are predicted classes"
    return {title: Table(["", *labels], [*rows])}


def _texts_of(column: Sequence[Any]) -> list[str]:
    spec = spec_of(*((x,) for x in column if isinstance(x, float)))
    texts = ["" if x is None else f"{x:{spec}}" if isinstance(x, float) else str(x) for x in column]
    return [shortened(printable(x), _LONGEST_TEXT) for x in texts]


class Outline(NamedTuple):
    """The readable contents of a report.

    Attributes:
        heading: one line about the sample.
        verdict: one or two sentences about the main result, which are shown first.
        summary: the most important values with their titles.
        tables: tables with all other values, by title.
        summary_title: the title of the summary.
        names: explanations of short column titles, such as A.
        result: one sentence about the tables.
        intervals: one sentence about the methods of the intervals; the Markdown format writes only
            the level.
        notes: sentences for the interpretation of the values.
        level: the confidence level of the intervals.
        gates: the gates with their verdicts.
        matrix: the confusion matrix by its title, for Markdown and LaTeX; of two classes, for text,
            too.
    """

    heading: str
    verdict: str = ""
    summary: Sequence[tuple[str, ReportValue]] = ()
    tables: Mapping[str, Table] = {}
    summary_title: str = ""
    names: Mapping[str, str] = {}
    result: str = ""
    intervals: str = ""
    notes: Sequence[str] = ()
    level: float = 0.95
    gates: Sequence[JudgedGate] = ()
    matrix: Mapping[str, Table] = {}


class ByClass(dict[str, Any]):
    """Values by class or label."""

    def __missing__(self, name: object) -> Any:
        raise KeyError(
            f"There is no {name!r} among {listed(self)}. If {name!r} is a group, its values are in"
            f" report.groups[{name!r}]."
        )


class ClassValues(NamedTuple):
    """Values for all examples, and for each class or label.

    Attributes:
        overall: overall values by name.
        columns: values of the classes, by name.
        names: the names of the classes.
        support: the number of examples of each class, or their weight.
        kind: `"class"` or `"label"`.
    """

    overall: Mapping[str, ReportValue]
    columns: Mapping[str, Sequence[ReportValue]]
    names: Sequence[str]
    support: np.ndarray
    kind: str = "class"

    def all(self) -> dict[Key, ReportValue]:
        """Return all values by name and class. Overall values come first and have the class ""."""
        return {(name, ""): x for name, x in self.overall.items()} | {
            (name, part): x
            for name, column in self.columns.items()
            for part, x in zip(self.names, column, strict=True)
        }

    def by_name(self) -> dict[str, Any]:
        """Return the overall values by name, and dicts of the values per class by name."""
        columns = self.columns.items()
        classes = {name: ByClass(zip(self.names, x, strict=True)) for name, x in columns}
        return {**self.overall, **classes, **self.overall}

    def summary(self) -> list[tuple[str, ReportValue]]:
        """Return the overall values with their titles, without the posterior."""
        return [(title_of(name), x) for name, x in self.overall.items() if name != POSTERIOR]

    def table(self) -> Table:
        """Return a table with one row per class."""
        support = (f"{x:,.10g}" for x in self.support)
        names = labels_of(self.names, LONGEST_NAME)
        rows = [*zip(names, support, *self.columns.values(), strict=True)]
        number = "n" if self.support.dtype.kind in "iu" else "weight"
        # Of two classes, it is the recall of the other; of many, it is near 1.
        details = [2 + [*self.columns].index("specificity")]
        titles = [self.kind, number, *map(title_of, self.columns)]
        return Table(titles, rows, details, drawn=2 + [*self.columns].index("f1"))

    def content(self) -> dict[str, Any]:
        """Return all values for JSON."""
        parts = [
            {"name": name, "support": n} | {key: x[i].to_dict() for key, x in self.columns.items()}
            for i, (name, n) in enumerate(zip(self.names, self.support.tolist(), strict=True))
        ]
        overall = {name: x.to_dict() for name, x in self.overall.items()}
        return {"overall": overall, "classes" if self.kind == "class" else "labels": parts}

    def records(self, level: float) -> list[dict[str, Any]]:
        """Return all values as rows for the CSV file."""
        return records_of(self.all(), level, self.kind)
