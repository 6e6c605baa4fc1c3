"""Reports of groups of examples, and of how much a metric differs between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from jaxmetrics._wording import labels_of, percent, sample_size, title_of
from jaxmetrics.comparisons.disparities import greatest_difference, pairwise_level
from jaxmetrics.estimates import Estimate
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.reports.contents import LONGEST_NAME, ClassValues, Outline, ValueTable
from jaxmetrics.reports.singles import Report
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


@dataclass(frozen=True, eq=False, repr=False)
class GroupedReport(Report):
    """A report that shows groups side by side."""

    template = "tables.html"

    @cached_property
    def _values(self) -> dict[str, Values]:
        return {name: _values(x) for name, x in self.groups.items()}

    def outline(self) -> Outline:
        """Say what people are told: the groups side by side, and how much they differ."""
        shared = ", as if groups shared no clusters" if self.num_clusters is not None else ""
        keys = _shown_keys(self, [*next(iter(self._values.values()))])
        compared = [key for key in keys if key in self.disparities]
        sample = f"{sample_size(self.num_examples)}, {len(self.class_names)} classes"
        return Outline(
            heading=f"{sample}, {len(self.groups)} groups",
            tables={"Groups": _table(self.groups, self._values, keys)},
            summary=[(_title(key), self.disparities[key]) for key in compared],
            summary_title="Disparities",
            notes=[
                f"Intervals: {percent(self.level)}. Each group is reported on by itself{shared}.",
                _NOTE if self.disparities else "There is one group: nothing can be compared.",
            ],
            level=self.level,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report of all examples, with those of the groups."""
        content = super().to_dict()
        matrix = content.pop("confusion_matrix")
        return {
            **content,
            "groups": {name: x.to_dict() for name, x in self.groups.items()},
            "disparities": [
                {"name": name, "class": of_class or None, **dict_of(x)}
                for (name, of_class), x in self.disparities.items()
            ],
            "confusion_matrix": matrix,
        }

    def records(self) -> list[dict[str, Any]]:
        """List the values of each group, of all examples, and the disparities."""
        of_all = {"": _values(self), "greatest difference": self.disparities}
        return [
            {"name": name, "class": c, "group": group, **record_of(x, self.level)}
            for group, found in (self._values | of_all).items()
            for (name, c), x in found.items()
        ]

    def pictures(self) -> dict[str, Any]:
        """Draw nothing."""
        return {}


def grouped_report(
    total: Report, report_of: Callable[[str, float], Report], names: Sequence[str]
) -> Report:
    """Report on groups, from the report of all examples and a function that reports on a group at a
    level.
    """
    level, disparities = total.level, {}
    groups = {name: report_of(name, level) for name in names}
    if len(names) > 1:
        wide = pairwise_level(level, len(names))
        widened = groups if len(names) == 2 else {name: report_of(name, wide) for name in names}
        disparities = _disparities([_values(x) for x in widened.values()])
    found = {x.name: getattr(total, x.name) for x in fields(total)}
    return GroupedReport(**found | {"groups": groups, "disparities": disparities})


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
