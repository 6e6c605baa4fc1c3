"""Reports of groups of examples, and of how much a metric differs between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmetrics._wording import Table, labels_of, percent, sample_size, title_of
from jaxmetrics.comparisons.disparities import greatest_difference, pairwise_level
from jaxmetrics.estimates import Estimate
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.tabular import TabularReport
from jaxmetrics.reports.values import (
    ReportedValue,
    as_json,
    value_cell,
    value_of,
    value_record,
    values_of,
)

__all__: list[str] = []

_METHOD = "mover"
_NOT_COMPARED = ("balanced_accuracy_posterior", "micro_f1")  # the same in other words
_LONGEST_NAME = 40
_MOST_CLASSES = 10  # of which every rate is a line of text
_NOTE = (
    "Disparity: the greatest difference between groups, which chance alone makes more than 0. Its"
    " interval holds whichever groups differ most: it is made of those of all pairs of groups"
    " (MOVER, Zou and Donner 2008), which hold at once by Bonferroni's inequality."
)


def _disparity(values: Sequence[ReportedValue]) -> ReportedValue:
    """Report the greatest difference between values with intervals of `pairwise_level`."""
    value, low, high = np.array([x[:3] for x in values], float).T
    unknown = np.zeros_like(value)
    return value_of(greatest_difference(Estimate(value, low, high, unknown, unknown)), _METHOD)


@dataclass(frozen=True, eq=False)
class GroupedReport(TabularReport):
    """What was found out about groups of examples.

    Attributes:
        total: the report of all examples.
        groups: those of each group, by its name.
        disparities: the greatest difference of each value between groups, by name, and of values
            of classes by name and class.
    """

    total: Report
    groups: Mapping[str, Report]
    disparities: Mapping[tuple[str, str], ReportedValue]


def grouped_report(
    total: Report, report_of: Callable[[str, float], Report], names: Sequence[str]
) -> GroupedReport:
    """Report on groups by a function that reports on one of them at a level."""
    level = total.level
    groups = {name: report_of(name, level) for name in names}
    wide = groups
    if len(names) > 2:
        wide_level = pairwise_level(level, len(names))
        wide = {name: report_of(name, wide_level) for name in names}
    values = {name: _values(x) for name, x in groups.items()}
    wide_values = {name: _values(x) for name, x in wide.items()}
    disparities = {
        key: _disparity([wide_values[name][key] for name in names])
        for key in values[names[0]]
        if len(names) > 1 and key[0] not in _NOT_COMPARED
    }
    disparities = {key: x for key, x in disparities.items() if x.method is not None}
    return GroupedReport(
        heading=f"{sample_size(total.num_examples)}, {len(total.class_names)} classes,"
        f" {len(names)} groups",
        tables=_tables(total, groups, values, disparities),
        notes=[
            f"Intervals: {percent(level)}. Each group is reported on by itself"
            + (", as if groups shared no clusters." if total.num_clusters is not None else "."),
            *([_NOTE] if disparities else ["There is one group: nothing can be compared."]),
        ],
        content=_content(total, groups, disparities),
        records=_records(values | {"": _values(total)}, disparities, level),
        total=total,
        groups=groups,
        disparities=disparities,
    )


def _values(report: Report) -> dict[tuple[str, str], ReportedValue]:
    """Collect the values of a report by name and class, with the rates at which classes are
    predicted.
    """
    found = {(name, ""): x for name, x in report.overall.items()}
    for name, column in report.per_class.items():
        found |= {(name, c): x for c, x in zip(report.class_names, column, strict=True)}
    if report.num_clusters is None:
        share = proportion_interval(report.counts.sum(0), report.counts.sum(), level=report.level)
        rates = zip(report.class_names, values_of(share, "wilson"), strict=True)
        found |= {("selection_rate", c): x for c, x in rates}
    return found


def _title(key: tuple[str, str]) -> str:
    name, of_class = key
    label = labels_of([of_class], _LONGEST_NAME)[0]
    return f"{title_of(name)}, {label}" if of_class else title_of(name)


def _tables(
    total: Report,
    groups: Mapping[str, Report],
    values: Mapping[str, Mapping[tuple[str, str], ReportedValue]],
    disparities: Mapping[tuple[str, str], ReportedValue],
) -> dict[str, Table]:
    classes = total.class_names
    shown_classes = {"", *(classes[1:] if len(classes) == 2 else classes[: _MOST_CLASSES + 1])}
    if len(shown_classes) > _MOST_CLASSES + 1:
        shown_classes = {""}
    keys = [key for key in values[next(iter(groups))] if key[1] in shown_classes]
    columns = ["", *labels_of(list(groups), _LONGEST_NAME)]
    rows = [["examples", *(f"{x.num_examples:.10g}" for x in groups.values())]]
    missing = ReportedValue(math.nan)
    rows += [
        [_title(key), *(value_cell(x.get(key, missing)) for x in values.values())] for key in keys
    ]
    tables = {"Groups": Table(columns, rows)}
    if not disparities:
        return tables
    greatest = [[_title(key), value_cell(disparities[key])] for key in keys if key in disparities]
    return tables | {"Disparities": Table(["", "greatest difference"], greatest)}


def _content(
    total: Report,
    groups: Mapping[str, Report],
    disparities: Mapping[tuple[str, str], ReportedValue],
) -> dict[str, Any]:
    content = total.to_dict()
    matrix = content.pop("confusion_matrix")
    return {
        **content,
        "groups": {name: x.to_dict() for name, x in groups.items()},
        "disparities": [
            {"name": name, "class": of_class or None, **as_json(x)}
            for (name, of_class), x in disparities.items()
        ],
        "confusion_matrix": matrix,
    }


def _records(
    values: Mapping[str, Mapping[tuple[str, str], ReportedValue]],
    disparities: Mapping[tuple[str, str], ReportedValue],
    level: float,
) -> list[dict[str, Any]]:
    parts = [*values.items(), ("greatest difference", disparities)]
    return [
        {"name": name, "class": of_class, "group": group, **value_record(x, level)}
        for group, found in parts
        for (name, of_class), x in found.items()
    ]
