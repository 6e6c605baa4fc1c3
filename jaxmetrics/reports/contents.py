"""What reports say, whatever they are written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._wording import labels_of, title_of
from jaxmetrics.reports.values import ReportedValue, dict_of

__all__: list[str] = []

LONGEST_NAME = 40


class Findings(NamedTuple):
    """What is added to a report: values by name, values of each class, tables for its pictures."""

    overall: Mapping[str, ReportedValue] = {}
    per_class: Mapping[str, Sequence[ReportedValue]] = {}
    tables: Mapping[str, Any] = {}


class Difference(ReportedValue):
    """Marks a value as one that might be negative, which text writes with more room."""

    __slots__ = ()


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


class Outline(NamedTuple):
    """What a report says to people.

    Attributes:
        heading: one line on what was looked at.
        summary: the values that matter most, with their titles.
        tables: all others, by the title of the table.
        summary_title: of the summary.
        names: what is meant by short titles of columns, such as A.
        result: one sentence on what the tables show.
        intervals: one sentence on how intervals were made; Markdown only gives their level.
        notes: what must be known to read the numbers right.
        level: of the intervals.
    """

    heading: str
    summary: Sequence[tuple[str, ReportedValue]] = ()
    tables: Mapping[str, ValueTable] = {}
    summary_title: str = ""
    names: Mapping[str, str] = {}
    result: str = ""
    intervals: str = ""
    notes: Sequence[str] = ()
    level: float = 0.95


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
            {"name": name, "support": n} | {key: dict_of(x[i]) for key, x in self.columns.items()}
            for i, (name, n) in enumerate(zip(self.names, self.support.tolist(), strict=True))
        ]
        return {"overall": {name: dict_of(x) for name, x in self.overall.items()}, kind: of_kind}


def sample_content(
    num_examples: float, num_ignored: int, num_clusters: int | None = None
) -> dict[str, Any]:
    """Write for programs how many examples were looked at."""
    clusters = {} if num_clusters is None else {"num_clusters": num_clusters}
    return {"num_examples": num_examples, "num_ignored": num_ignored, **clusters}
