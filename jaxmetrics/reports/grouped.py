"""Reports of groups of examples, and of how much a metric differs between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxmetrics._wording import labels_of, percent, sample_size, title_of
from jaxmetrics.comparisons.disparities import greatest_difference, pairwise_level
from jaxmetrics.estimates import Estimate
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.reports.contents import LONGEST_NAME, ClassValues, Outline, ValueTable
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.tabular import TabularReport
from jaxmetrics.reports.values import ReportedValue, dict_of, record_of, value_of, values_of

__all__: list[str] = []

Key: TypeAlias = tuple[str, str | None]  # a name, and a class or none
Values: TypeAlias = dict[Key, ReportedValue]

_NOT_COMPARED = ("balanced_accuracy_posterior", "micro_f1")  # the same in other words
_MOST_CLASSES = 10  # of which every rate is a line of text
_NOTE = (
    "Disparity: the greatest difference between groups, which chance alone makes more than 0. Its"
    " interval holds whichever groups differ most: it is made of those of all pairs of groups"
    " (MOVER, Zou and Donner 2008), which hold at once by Bonferroni's inequality."
)


def grouped_report(
    total: Report, report_of: Callable[[str, float], Report], names: Sequence[str]
) -> TabularReport:
    """Report on groups, whose reports are found by their names.

    Args:
        total: the report of all examples.
        report_of: reports on a group at a level.
        names: of the groups.
    """
    groups = {name: report_of(name, total.level) for name in names}
    values = {name: _values(x) for name, x in groups.items()}
    disparities = {}
    if len(names) > 1:
        level = pairwise_level(total.level, len(names))
        disparities = _disparities([_values(report_of(name, level)) for name in names])
    sample = f"{sample_size(total.num_examples)}, {len(total.class_names)} classes"
    shared = ", as if groups shared no clusters" if total.num_clusters is not None else ""
    content = total.to_dict()
    matrix = content.pop("confusion_matrix")
    content["groups"] = {name: x.to_dict() for name, x in groups.items()}
    content["disparities"] = [
        {"name": name, "class": of_class or None, **dict_of(x)}
        for (name, of_class), x in disparities.items()
    ]
    parts = [*values.items(), ("", _values(total)), ("greatest difference", disparities)]
    keys = _shown_keys(total, [*values[names[0]]])
    return TabularReport(
        Outline(
            heading=f"{sample}, {len(names)} groups",
            tables={"Groups": _table(groups, values, keys)},
            summary=[(_title(key), disparities[key]) for key in keys if key in disparities],
            summary_title="Disparities",
            notes=[
                f"Intervals: {percent(total.level)}. Each group is reported on by itself{shared}.",
                _NOTE if disparities else "There is one group: nothing can be compared.",
            ],
            level=total.level,
        ),
        content | {"confusion_matrix": matrix},
        [
            {"name": name, "class": c, "group": group, **record_of(x, total.level)}
            for group, found in parts
            for (name, c), x in found.items()
        ],
        groups,
    )


def _values(report: Report) -> Values:
    """Collect the values of a report, with the rates at which classes are predicted."""
    columns = dict(report.per_class)
    if report.num_clusters is None:
        share = proportion_interval(report.counts.sum(0), report.counts.sum(), level=report.level)
        columns["selection_rate"] = values_of(share, "wilson")
    return ClassValues(report.overall, columns, report.class_names, report.support).by_class()


def _disparities(groups: Sequence[Values]) -> Values:
    """Report the greatest differences between groups with intervals of `pairwise_level`."""
    found = {}
    for key in groups[0]:
        if key[0] not in _NOT_COMPARED:
            value, low, high = np.array([x[key][:3] for x in groups], float).T
            unknown = np.zeros_like(value)
            difference = greatest_difference(Estimate(value, low, high, unknown, unknown))
            found[key] = value_of(difference, "mover")
    return {key: x for key, x in found.items() if x.method is not None}


def _shown_keys(total: Report, keys: Sequence[Key]) -> list[Key]:
    """Choose the values of all classes if they are few, of the last of two, or of none."""
    classes = total.class_names
    shown = classes[1:] if len(classes) == 2 else classes
    return [key for key in keys if not key[1] or (len(shown) <= _MOST_CLASSES and key[1] in shown)]


def _title(key: Key) -> str:
    name, of_class = key
    return ", ".join([title_of(name), *labels_of([of_class] if of_class else [], LONGEST_NAME)])


def _table(
    groups: Mapping[str, Report],
    values: Mapping[str, Values],
    keys: Sequence[Key],
) -> ValueTable:
    missing = ReportedValue(math.nan)
    rows: list[list[Any]] = [["examples", *(f"{x.num_examples:.10g}" for x in groups.values())]]
    rows += [[_title(key), *(x.get(key, missing) for x in values.values())] for key in keys]
    return ValueTable(["", *labels_of(list(groups), LONGEST_NAME)], rows)
