"""Reports on groups of examples, with the largest difference of each metric between groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from jaxmetrics import Estimate
from jaxmetrics._text.wording import labels_of, percent, title_of
from jaxmetrics.comparisons.disparities import greatest_difference, pairwise_level
from jaxmetrics.estimates import with_level
from jaxmetrics.reports.contents import (
    LONGEST_NAME,
    POSTERIOR,
    Outline,
    ValueTable,
    listing,
    quantity,
)
from jaxmetrics.reports.overall_values import Evidence
from jaxmetrics.reports.singles import EXAMPLES, Report
from jaxmetrics.reports.values import Key, ReportValue, exactly, records_of, value_of, values_of

__all__: list[str] = []

Values: TypeAlias = Mapping[Key, ReportValue]

# These values are redundant with other values.
_NOT_COMPARED = ("accuracy_gain", POSTERIOR, "micro_f1")
_MOST_CLASSES = 10  # if there are more classes, the text has no rates per class
_MOST_SHOWN = 3  # the number of differences in the verdict
_NOTE = (
    "A disparity is the largest difference between groups, which chance alone makes positive. Its "
    "interval allows for the selection of the two most different groups, because it combines "
    "simultaneous intervals of all pairs of groups (MOVER, Zou and Donner 2008; Bonferroni)."
)


@dataclass(frozen=True, eq=False, repr=False)
class GroupedReport(Report):
    """A report on all examples and on each group of examples."""

    template: ClassVar[str] = "tables.html"

    def outline(self) -> Outline:
        """Return the contents as a table with a column per group, and a table of the
        disparities.
        """
        groups = {name: _values(x) for name, x in self.groups.items()}
        first = next(iter(groups.values()))
        keys = _shown_keys(self.class_names, [key for key in first if key[0] != POSTERIOR])
        sizes = (f"{x.num_examples:.10g}" for x in self.groups.values())
        rows: list[list[Any]] = [["examples", *sizes]]
        rows += [
            [_title(key), *(x.get(key, exactly(np.nan)) for x in groups.values())] for key in keys
        ]
        sample = self.sample._replace(num_ignored=0, num_clusters=None)
        shared = "" if self.num_clusters is None else ", as if no cluster belonged to two groups"
        return Outline(
            heading=f"{sample}, {len(self.class_names)} classes, {quantity(len(groups), 'groups')}",
            verdict=_verdict(self.disparities, self.level),
            tables={
                "Groups": ValueTable(["", *labels_of(list(groups), LONGEST_NAME)], rows),
                **listing(EXAMPLES, self.listed),
            },
            summary=[(_title(x), self.disparities[x]) for x in keys if x in self.disparities],
            summary_title="Disparities",
            notes=[
                f"Intervals: {percent(self.level)}. Each group is evaluated separately{shared}.",
                _NOTE if self.disparities else "There is one group, so nothing can be compared.",
            ],
            level=self.level,
            gates=self.gates,
        )

    def _more_content(self) -> dict[str, Any]:
        return {
            "groups": {name: x.to_dict() for name, x in self.groups.items()},
            "disparities": [
                {"name": name, "class": of_class or None, **x.to_dict()}
                for (name, of_class), x in self.disparities.items()
            ],
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a CSV row for each value of a group, for each value of all examples, and for each
        disparity.
        """
        groups = {name: _values(x) for name, x in self.groups.items()}
        whole = {"": _values(self), "greatest difference": self.disparities}
        return [
            record
            for group, values in (groups | whole).items()
            for record in records_of(values, self.level, "class", group=group)
        ]


def _verdict(disparities: Values, level: float) -> str:
    """Write which values differ significantly between groups, the largest differences first."""
    if not disparities:
        return ""
    shown = [key for key, x in disparities.items() if x.low > 0]
    if not shown:
        return f"None of {len(disparities)} values is shown to differ between groups."
    shown.sort(key=lambda key: -disparities[key].low)
    most = [f"{_title(key)} by {disparities[key]}" for key in shown[:_MOST_SHOWN]]
    return (
        f"{len(shown)} of {len(disparities)} values are shown to differ between groups (each by "
        f"its own {percent(level)} interval). The largest differences: {'; '.join(most)}."
    )


def grouped_report(
    total: Report, report_of: Callable[[str, float], Report], names: Sequence[str]
) -> Report:
    """Add reports on groups, and the disparities, to the report on all examples.

    Args:
        total: the report on all examples.
        report_of: a function that makes the report on a group at a confidence level.
        names: the names of the groups.
    """
    level, disparities = total.level, {}
    groups = {name: report_of(name, level) for name in names}
    if len(names) > 1:
        wide = pairwise_level(level, len(names))
        widened = groups if len(names) == 2 else {name: report_of(name, wide) for name in names}
        values = [_values(x) for x in widened.values()]
        for key in values[0]:
            estimates = [x[key].estimate for x in values]
            parts = "value", "low", "high", "standard_error", "num_undefined"
            columns = (np.array([getattr(x, part) for x in estimates], float) for part in parts)
            largest = greatest_difference(Estimate(*columns))
            x = value_of(with_level(largest, level, "mover"))
            if key[0] not in _NOT_COMPARED and x.has_interval:
                disparities[key] = x
    fields_of_total = {x.name: getattr(total, x.name) for x in fields(total)}
    return GroupedReport(**fields_of_total | {"groups": groups, "disparities": disparities})


def _values(report: Report) -> Values:
    """Return the values of a report, and the selection rate of each class."""
    values = report.class_values
    if report.num_clusters is None:
        evidence = Evidence(report.counts, report.level, squares=report.squares)
        rates = values_of(evidence.proportions(_selected_and_others))[: len(report.class_names)]
        values = values._replace(columns={**values.columns, "selection_rate": rates})
    return values.all()


def _selected_and_others(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tables.sum(0), tables.sum() - tables.sum(0)


def _shown_keys(classes: Sequence[str], keys: Sequence[Key]) -> list[Key]:
    """Choose the values to show: overall values and, for up to ten classes, the values per class.
    If there are two classes, only the second class is shown.
    """
    shown = classes[1:] if len(classes) == 2 else classes
    return [key for key in keys if not key[1] or (len(shown) <= _MOST_CLASSES and key[1] in shown)]


def _title(key: Key) -> str:
    name, of_class = key
    return ", ".join([title_of(name), *labels_of([of_class] if of_class else [], LONGEST_NAME)])
