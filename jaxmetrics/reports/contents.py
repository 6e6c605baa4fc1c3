"""What reports say, whatever they are written as: values with intervals, tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxmetrics._wording import interval, labels_of, printable, title_of, written
from jaxmetrics.estimates import Estimate

if TYPE_CHECKING:
    from jaxmetrics.comparisons.classifiers import Comparison
    from jaxmetrics.reports.gates import JudgedGate

__all__: list[str] = []

LONGEST_NAME = 40
_LONGEST_TEXT = 80  # of an example that is listed


class ReportedValue(Estimate):
    """Holds one number of a report, an `Estimate` whose ends are NaN where it has no interval.

    Attributes:
        method: of the interval, or None: `"wilson"` for proportions and for F1, `"likelihood"` for
            what else is a smooth function of the counts and for differences, `"delta"` in its place
            where the counts are sums of weights (on the logit scale, or atanh where values can be
            negative), `"posterior"` for the posterior balanced accuracy, `"normal"` for means of
            states, `"student"` for log losses and differences of means, `"score"` for areas under
            ROC curves, `"mover"` for differences of areas and of groups, `"inequalities"` for the
            calibration error, `"bounds"` where the exact area lies between the two ends.
        note: what a reader must know to read the number right, or None.

    >>> value = ReportedValue(0.851, 0.8, 0.892, method="wilson")
    >>> value, value.method, value.note
    (0.851 [0.800, 0.892], 'wilson', None)
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
        """Add the method and the note, which are no numbers."""
        found = super().__new__(cls, value, low, high, standard_error, num_undefined)
        found.method, found.note = method, note
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds: None for NaN, and no ends where there is no interval."""
        names = "value", "low", "high", "method", "note"
        parts = {name: number(getattr(self, name)) for name in names}
        return {name: x for name, x in parts.items() if name == "value" or x is not None}

    def record(self, level: float) -> dict[str, Any]:
        """Return a row of a table for programs."""
        numbers = {name: number(getattr(self, name)) for name in ("value", "low", "high")}
        return {**numbers, "level": level if self.has_interval else None, "method": self.method}

    @property
    def written(self) -> list[str]:
        """Writes the value and the ends, as few digits of all as tell the ends apart."""
        return written(*self[:3])

    def ends(self, between: str) -> str:
        """Write the interval, if there is one."""
        return between.join(self.written[1:]) * self.has_interval

    @property
    def has_interval(self) -> bool:
        """Tells whether there are ends."""
        return not math.isnan(self.low)


class Difference(ReportedValue):
    """Marks a value as one that might be negative, which text writes with more room."""


def value_of(x: Estimate, method: str, note: str | None = None) -> ReportedValue:
    """Report an estimate, without an interval where that is undefined."""
    if np.isnan(x.low):
        return ReportedValue(float(x.value), note=note)
    return ReportedValue(*map(float, x), method=method, note=note)


def reported_comparison(x: Comparison, method: str, method_of_difference: str) -> Comparison:
    """Report A, B and their difference, with the methods of their intervals."""
    a, b = value_of(x.a, method), value_of(x.b, method)
    d = value_of(x.difference, method_of_difference)
    return type(x)(a, b, Difference(*d, method=d.method), *map(float, x[3:]))


def verdict_of(d: Estimate, what: str) -> str:
    """Say which of A and B is better by the interval of A - B, if that tells."""
    if d.low > 0:
        return f"A is better: its {what} is higher by {interval(*d[:3])}."
    if d.high < 0:
        return f"B is better: its {what} is higher by {interval(-d.value, -d.high, -d.low)}."
    return ""


def values_of(x: Estimate, method: str) -> list[ReportedValue]:
    """Report an estimate of n numbers, `(n,)` each of its parts."""
    parts = (np.asarray(part).tolist() for part in x)
    return [value_of(Estimate(*numbers), method) for numbers in zip(*parts, strict=True)]


def value_cell(x: ReportedValue) -> str:
    """Write a value and its interval in a sentence, or in a table with room."""
    return x.written[0] + f" ({x.ends(' to ')})" * x.has_interval


def number(x: Any) -> Any:
    """Return None for NaN, which JSON has not."""
    return None if isinstance(x, float) and math.isnan(x) else x


class SampleSize(NamedTuple):
    """Says how many examples were looked at."""

    number: float
    num_ignored: int = 0
    num_clusters: int | None = None
    units: str = "examples"

    def __str__(self) -> str:
        clusters = (
            "" if self.num_clusters is None else f" in {_counted(self.num_clusters, 'clusters')}"
        )
        ignored = f", {self.num_ignored} ignored" if self.num_ignored else ""
        return f"{_counted(self.number, self.units)}{clusters}{ignored}"

    def content(self) -> dict[str, Any]:
        """Write it for programs."""
        clusters = {} if self.num_clusters is None else {"num_clusters": self.num_clusters}
        return {f"num_{self.units}": self.number, "num_ignored": self.num_ignored, **clusters}


def _counted(number: float, units: str) -> str:
    return f"{number:.10g} {units if number != 1 else units[:-1]}"


class Findings(NamedTuple):
    """What is added to a report: values by name, values of each class, tables for its pictures."""

    overall: Mapping[str, ReportedValue] = {}
    per_class: Mapping[str, Sequence[ReportedValue]] = {}
    tables: Mapping[str, Any] = {}


class ValueTable(NamedTuple):
    """Holds rows of texts and values. Names of users in them are printable.

    Attributes:
        titles: of the columns.
        rows: their cells, the first of which name the row.
        details: the numbers of columns that text leaves out, for want of room.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str | ReportedValue]]
    details: tuple[int, ...] = ()


def listing(records: Sequence[Mapping[str, Any]]) -> ValueTable:
    """Write a line for each example that is listed; what is under "columns" are columns, too."""
    flat = [[*x.items(), *x["columns"].items()] for x in records]
    rows = [[(name, value) for name, value in x if name != "columns"] for x in flat]
    titles = [printable(name) for name, _ in rows[0]]
    return ValueTable(titles, [[_text_of(value) for _, value in row] for row in rows])


def _text_of(x: Any) -> str:
    if isinstance(x, float):
        return written(x)[0]
    text = printable("" if x is None else str(x))
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


class Outline(NamedTuple):
    """What a report says to people.

    Attributes:
        heading: one line on what was looked at.
        verdict: a sentence or two on what was found, which stand first.
        summary: the values that matter most, with their titles.
        tables: all others, by the title of the table.
        summary_title: of the summary.
        names: what is meant by short titles of columns, such as A.
        result: one sentence on what the tables show.
        intervals: one sentence on how intervals were made; Markdown only gives their level.
        notes: sentences on what a reader must know.
        level: of the intervals.
        gates: which were judged by these values.
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
    """Holds values of all examples, and of each class or label.

    Attributes:
        overall: values by name.
        columns: for each name the values of the classes.
        names: of the classes.
        support: how many examples each has.
    """

    overall: Mapping[str, ReportedValue]
    columns: Mapping[str, Sequence[ReportedValue]]
    names: Sequence[str]
    support: np.ndarray

    def by_name(self) -> dict[str, Any]:
        """Return the overall values, and values of the classes by their names."""
        columns = self.columns.items()
        classes = {name: dict(zip(self.names, x, strict=True)) for name, x in columns}
        return {**self.overall, **classes, **self.overall}

    def by_class(self, nobody: str | None = "") -> dict[tuple[str, str | None], ReportedValue]:
        """Return all values by name and class, the overall ones first."""
        found = {(name, nobody): x for name, x in self.overall.items()}
        for name, column in self.columns.items():
            found |= {(name, c): x for c, x in zip(self.names, column, strict=True)}
        return found

    def summary(self) -> list[tuple[str, ReportedValue]]:
        """Return the overall values with their titles."""
        return [(title_of(name), x) for name, x in self.overall.items()]

    def table(self, kind: str) -> ValueTable:
        """Write a line for each class."""
        support = (f"{x:.10g}" for x in self.support)
        names = labels_of(self.names, LONGEST_NAME)
        rows = [*zip(names, support, *self.columns.values(), strict=True)]
        return ValueTable([kind, "n", *map(title_of, self.columns)], rows)

    def content(self, kind: str) -> dict[str, Any]:
        """Write all values for programs."""
        of_kind = [
            {"name": name, "support": n} | {key: x[i].to_dict() for key, x in self.columns.items()}
            for i, (name, n) in enumerate(zip(self.names, self.support.tolist(), strict=True))
        ]
        return {"overall": {name: x.to_dict() for name, x in self.overall.items()}, kind: of_kind}

    def records(self, kind: str, level: float, nobody: str | None = "") -> list[dict[str, Any]]:
        """List all values as rows of a table for programs."""
        return [
            {"name": name, kind: of_class, **x.record(level)}
            for (name, of_class), x in self.by_class(nobody).items()
        ]
