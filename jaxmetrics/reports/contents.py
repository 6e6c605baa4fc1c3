"""What reports say, whatever they are written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics.reports.values import ReportedValue, dict_of

__all__: list[str] = []


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


def labelled_values(
    overall: Mapping[str, ReportedValue],
    columns: Mapping[str, Sequence[ReportedValue]],
    labels: Sequence[str],
    no_label: Any = "",
) -> dict[tuple[str, Any], ReportedValue]:
    """List values by name and class (or label), those of all together first."""
    found: dict[tuple[str, Any], ReportedValue] = {
        (name, no_label): x for name, x in overall.items()
    }
    for name, column in columns.items():
        found |= {(name, label): x for label, x in zip(labels, column, strict=True)}
    return found


def sample_content(
    num_examples: float, num_ignored: int, num_clusters: int | None = None
) -> dict[str, Any]:
    """Write for programs how many examples were looked at."""
    clusters = {} if num_clusters is None else {"num_clusters": num_clusters}
    return {"num_examples": num_examples, "num_ignored": num_ignored, **clusters}


def value_content(
    overall: Mapping[str, ReportedValue],
    columns: Mapping[str, Sequence[ReportedValue]],
    labels: Sequence[str],
    support: np.ndarray,
    kind: str = "classes",
) -> dict[str, Any]:
    """Write for programs overall values, and those of each class or label with its examples."""
    of_kind = [
        {"name": name, "support": n} | {key: dict_of(x[i]) for key, x in columns.items()}
        for i, (name, n) in enumerate(zip(labels, support.tolist(), strict=True))
    ]
    return {"overall": {name: dict_of(x) for name, x in overall.items()}, kind: of_kind}
