"""The contents of reports in any format: values with intervals, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxmetrics._text.wording import interval, labels_of, printable, title_of, written
from jaxmetrics.estimates import Estimate, normal_quantile

if TYPE_CHECKING:
    from jaxmetrics.comparisons.classifiers import Comparison
    from jaxmetrics.reports.gates import JudgedGate

__all__: list[str] = []

LONGEST_NAME = 40
_LONGEST_NAME_OF_SYSTEM = 200
_QUANTILE_OF_POWER = 0.8416  # of the standard normal distribution, for a power of 80 %
_LONGEST_TEXT = 80  # the largest number of characters in a cell of a listed example


class ReportedValue(Estimate):
    """A value in a report: an `Estimate` with the method of its interval and a note.

    If a value has no interval, its `low` and `high` are NaN.

    Attributes:
        method: the method of the interval, or None if there is no interval. It is `"likelihood"`
            for proportions, for other smooth functions of the counts and for differences;
            `"tango"` for the accuracy gain; `"delta"` for functions of sums of weights that are not
            proportions (on the logit scale, or on the atanh scale if values can be negative);
            `"posterior"` for the posterior balanced accuracy; `"normal"` for means in the state of
            an evaluator; `"student"` for log losses, differences of means, and the accuracy gain if
            there are clusters; `"score"` for areas under ROC curves; `"mover"` for differences of
            areas and of groups; `"inequalities"` for the calibration error; `"bounds"` for bounds
            of the exact area.
        note: a note for the interpretation of the value, or None.

    >>> value = ReportedValue(0.851, 0.8, 0.892, method="likelihood")
    >>> value, value.method, value.note
    (0.851 [0.800, 0.892], 'likelihood', None)
    """

    method: str | None = None
    note: str | None = None

    def __new__(
        cls,
        value: float,
        low: float = math.nan,
        high: float = math.nan,
        standard_error: float = math.nan,
        num_undefined: float = 0,
        *,
        method: str | None = None,
        note: str | None = None,
    ) -> ReportedValue:
        """Make the estimate, and set its method and note as attributes."""
        found = super().__new__(cls, value, low, high, standard_error, num_undefined)
        found.method, found.note = method, note
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON. NaN becomes None; without an interval, the dict has no ends."""
        names = "value", "low", "high", "method", "note"
        parts = {name: number(getattr(self, name)) for name in names}
        return {name: x for name, x in parts.items() if name == "value" or x is not None}

    def record(self, level: float) -> dict[str, Any]:
        """Return a row for the CSV file."""
        numbers = {name: number(getattr(self, name)) for name in ("value", "low", "high")}
        return {**numbers, "level": level if self.has_interval else None, "method": self.method}

    @property
    def written(self) -> list[str]:
        """The value and the ends as text, with only as many digits as the interval justifies."""
        return written(*self[:3])

    def ends(self, between: str) -> str:
        """Write the ends of the interval, or "" if there is no interval."""
        return between.join(self.written[1:]) * self.has_interval

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)


class Difference(ReportedValue):
    """A difference, which may be negative: text tables write "low to high", not "low-high"."""


class PosteriorValue(ReportedValue):
    """A posterior mean with a credible interval, which is not listed among confidence intervals:
    only pictures, JSON and CSV contain it.
    """


def value_of(x: Estimate, method: str, note: str | None = None) -> ReportedValue:
    """Return an estimate as a reported value; it has no interval if the ends are NaN."""
    if np.isnan(x.low):
        return ReportedValue(float(x.value), note=note)
    return ReportedValue(*map(float, x), method=method, note=note)


def reported_comparison(x: Comparison, method: str, method_of_difference: str) -> Comparison:
    """Return the comparison with A, B and A - B as reported values, which have their methods."""
    a, b = value_of(x.a, method), value_of(x.b, method)
    d = value_of(x.difference, method_of_difference)
    return type(x)(a, b, Difference(*d, method=d.method), *map(float, x[3:]))


def names_of_both(names: Sequence[str]) -> dict[str, str]:
    """Return the names of A and B by letter, without names that are equal to their letter."""
    labels = labels_of(names, _LONGEST_NAME_OF_SYSTEM)
    return {short: name for short, name in zip("AB", labels, strict=True) if short != name}


def verdict_of(d: Estimate, what: str, sample: SampleSize, level: float, rope: float = 0.0) -> str:
    """Write a sentence on the difference of A and B. It says which of them is better, that they are
    equivalent, or how large a difference must be so that samples of this size show it. The sentence
    is "" if there is no interval.
    """
    if math.isnan(d.low):
        return ""
    if d.low > 0:
        return f"A is better: its {what} is higher by {interval(*d[:3])}."
    if d.high < 0:
        return f"B is better: its {what} is higher by {interval(-d.value, -d.high, -d.low)}."
    found = f"{what} of A minus {what} of B is {interval(*d[:3])}"
    if max(-d.low, d.high) <= rope:
        return f"A and B are equivalent: {found}, within {rope:g} of 0."
    told = f"A and B cannot be told apart: {found}."
    shown = (normal_quantile(level) + _QUANTILE_OF_POWER) * d.standard_error
    if not shown > 0:
        return told
    number, units = sample.units_drawn
    return (
        f"{told} With 80 % power, {number} {units} like these show a difference of {shown:.2g}, and"
        f" {4 * number} {units} show a difference of {shown / 2:.2g}."
    )


def values_of(x: Estimate, method: str) -> list[ReportedValue]:
    """Return n reported values from an estimate whose arrays have shape `(n,)`."""
    parts = (np.asarray(part).tolist() for part in x)
    return [value_of(Estimate(*numbers), method) for numbers in zip(*parts, strict=True)]


def value_cell(x: ReportedValue) -> str:
    """Write a value and its interval for a sentence or a wide table."""
    return x.written[0] + f" ({x.ends(' to ')})" * x.has_interval


def number(x: Any) -> Any:
    """Return None for NaN, because JSON does not support NaN; return other values unchanged."""
    return None if isinstance(x, float) and math.isnan(x) else x


class SampleSize(NamedTuple):
    """The numbers of examples, of ignored examples, and of clusters if there are any."""

    number: float
    num_ignored: int = 0
    num_clusters: int | None = None
    units: str = "examples"

    def __str__(self) -> str:
        clusters = (
            "" if self.num_clusters is None else f" in {quantity(self.num_clusters, 'clusters')}"
        )
        ignored = f", {self.num_ignored} ignored" if self.num_ignored else ""
        return f"{quantity(self.number, self.units)}{clusters}{ignored}"

    @property
    def units_drawn(self) -> tuple[float, str]:
        """The number and the name of the independent units: examples, items or clusters."""
        if self.num_clusters is None:
            return self.number, self.units
        return self.num_clusters, "clusters"

    def content(self) -> dict[str, Any]:
        """Return the numbers by name, for JSON."""
        clusters = {} if self.num_clusters is None else {"num_clusters": self.num_clusters}
        return {f"num_{self.units}": self.number, "num_ignored": self.num_ignored, **clusters}


def quantity(number: float, units: str) -> str:
    """Write a number of units, such as "3 labels" and "1 label"."""
    return f"{number:.10g} {units if number != 1 else units[:-1]}"


class Findings(NamedTuple):
    """Additions to a report: overall values by name, values per class, and tables for pictures."""

    overall: Mapping[str, ReportedValue] = {}
    per_class: Mapping[str, Sequence[ReportedValue]] = {}
    tables: Mapping[str, Any] = {}


class ValueTable(NamedTuple):
    """A table whose cells are texts and values. Names that users gave are already printable.

    Attributes:
        titles: the titles of the columns.
        rows: the cells; the first cell of a row is its name.
        details: the indices of columns that text omits.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str | ReportedValue]]
    details: tuple[int, ...] = ()


def listing(title: str, records: Sequence[Mapping[str, Any]]) -> dict[str, ValueTable]:
    """Return a dict with the title and the table of listed examples; the dict is empty if there are
    no examples. Values under "columns" become columns of the table, too.
    """
    if not records:
        return {}
    flat = [[*x.items(), *x["columns"].items()] for x in records]
    rows = [[(name, value) for name, value in x if name != "columns"] for x in flat]
    titles = [printable(name) for name, _ in rows[0]]
    return {title: ValueTable(titles, [[_text_of(value) for _, value in row] for row in rows])}


def _text_of(x: Any) -> str:
    if isinstance(x, float):
        return written(x)[0]
    text = printable("" if x is None else str(x))
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


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
    """

    heading: str
    verdict: str = ""
    summary: Sequence[tuple[str, ReportedValue]] = ()
    tables: Mapping[str, ValueTable] = {}
    summary_title: str = ""
    names: Mapping[str, str] = {}
    result: str = ""
    intervals: str = ""
    notes: Sequence[str] = ()
    level: float = 0.95
    gates: Sequence[JudgedGate] = ()


class ClassValues(NamedTuple):
    """Values for all examples, and for each class or label.

    Attributes:
        overall: overall values by name.
        columns: values of the classes, by name.
        names: the names of the classes.
        support: the number of examples of each class.
    """

    overall: Mapping[str, ReportedValue]
    columns: Mapping[str, Sequence[ReportedValue]]
    names: Sequence[str]
    support: np.ndarray

    def by_name(self) -> dict[str, Any]:
        """Return the overall values by name, and dicts of the values per class by name."""
        columns = self.columns.items()
        classes = {name: dict(zip(self.names, x, strict=True)) for name, x in columns}
        return {**self.overall, **classes, **self.overall}

    def by_class(self) -> dict[tuple[str, str], ReportedValue]:
        """Return all values by name and class. Overall values come first and have the class ""."""
        found = {(name, ""): x for name, x in self.overall.items()}
        for name, column in self.columns.items():
            found |= {(name, c): x for c, x in zip(self.names, column, strict=True)}
        return found

    def summary(self) -> list[tuple[str, ReportedValue]]:
        """Return the overall values with their titles, without posterior values."""
        values = self.overall.items()
        return [(title_of(name), x) for name, x in values if not isinstance(x, PosteriorValue)]

    def table(self, kind: str) -> ValueTable:
        """Return a table with one row per class."""
        support = (f"{x:.10g}" for x in self.support)
        names = labels_of(self.names, LONGEST_NAME)
        rows = [*zip(names, support, *self.columns.values(), strict=True)]
        return ValueTable([kind, "n", *map(title_of, self.columns)], rows)

    def content(self, kind: str) -> dict[str, Any]:
        """Return all values for JSON."""
        of_kind = [
            {"name": name, "support": n} | {key: x[i].to_dict() for key, x in self.columns.items()}
            for i, (name, n) in enumerate(zip(self.names, self.support.tolist(), strict=True))
        ]
        return {"overall": {name: x.to_dict() for name, x in self.overall.items()}, kind: of_kind}


def records_of(
    values: Mapping[tuple[str, str], ReportedValue], kind: str, level: float, **more: str
) -> list[dict[str, Any]]:
    """Return values by name and class as rows for the CSV file; `more` has further columns."""
    return [
        {"name": name, kind: of_class or None, **more, **x.record(level)}
        for (name, of_class), x in values.items()
    ]
