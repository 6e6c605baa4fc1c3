"""Reports on groups of examples, with the largest difference of each metric between groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from jaxmetrics._text.wording import interval, labels_of, listed, percent, title_of
from jaxmetrics._validation import ArrayLike
from jaxmetrics.clusters import numbered_clusters
from jaxmetrics.comparisons.disparities import greatest_difference, pairwise_level
from jaxmetrics.estimates import Estimate
from jaxmetrics.intervals.proportions import proportion_interval
from jaxmetrics.reports.contents import (
    LONGEST_NAME,
    ClassValues,
    Outline,
    PosteriorValue,
    ReportedValue,
    SampleSize,
    ValueTable,
    quantity,
    records_of,
    value_of,
    values_of,
)

if TYPE_CHECKING:
    from jaxmetrics.reports.singles import Report

__all__: list[str] = []

Key: TypeAlias = tuple[str, str]  # name, and class or ""
Values: TypeAlias = Mapping[Key, ReportedValue]

# These values are redundant with other values.
_NOT_COMPARED = ("accuracy_gain", "balanced_accuracy_posterior", "micro_f1")
_MOST_CLASSES = 10  # if there are more classes, the text has no rates per class
_MOST_SHOWN = 3  # the number of differences in the verdict
_NOTE = (
    "A disparity is the largest difference between groups, which chance alone makes positive. Its "
    "interval allows for the selection of the two most different groups, because it combines "
    "simultaneous intervals of all pairs of groups (MOVER, Zou and Donner 2008; Bonferroni)."
)


def outline_of(report: Report) -> Outline:
    """Return the outline of a report on groups: a table with a column per group, and a table of the
    disparities.
    """
    shared = ", as if no cluster belonged to two groups" if report.num_clusters is not None else ""
    groups = {name: _values(x) for name, x in report.groups.items()}
    first = next(iter(groups.values()))
    listed = [key for key, x in first.items() if not isinstance(x, PosteriorValue)]
    keys = _shown_keys(report.class_names, listed)
    missing = ReportedValue(math.nan)
    sizes = (f"{x.num_examples:.10g}" for x in report.groups.values())
    rows: list[list[Any]] = [["examples", *sizes]]
    rows += [[_title(key), *(x.get(key, missing) for x in groups.values())] for key in keys]
    sample = f"{SampleSize(report.num_examples)}, {len(report.class_names)} classes"
    return Outline(
        heading=f"{sample}, {quantity(len(groups), 'groups')}",
        verdict=_verdict(report.disparities, report.level),
        tables={
            "Groups": ValueTable(["", *labels_of(list(groups), LONGEST_NAME)], rows),
            **report.tables_of_examples,
        },
        summary=[(_title(x), report.disparities[x]) for x in keys if x in report.disparities],
        summary_title="Disparities",
        notes=[
            f"Intervals: {percent(report.level)}. Each group is evaluated separately{shared}.",
            _NOTE if report.disparities else "There is one group, so nothing can be compared.",
        ],
        level=report.level,
        gates=report.gates,
    )


def _verdict(disparities: Values, level: float) -> str:
    """Write which values differ significantly between groups, the largest differences first."""
    if not disparities:
        return ""
    shown = [key for key, x in disparities.items() if x.low > 0]
    if not shown:
        return f"None of {len(disparities)} values is shown to differ between groups."
    shown.sort(key=lambda key: -disparities[key].low)
    most = [f"{_title(key)} by {interval(*disparities[key][:3])}" for key in shown[:_MOST_SHOWN]]
    return (
        f"{len(shown)} of {len(disparities)} values are shown to differ between groups (each by "
        f"its own {percent(level)} interval). The largest differences: {'; '.join(most)}."
    )


def content_of(report: Report) -> dict[str, Any]:
    """Return the reports of the groups and the disparities, for JSON."""
    return {
        "groups": {name: x.to_dict() for name, x in report.groups.items()},
        "disparities": [
            {"name": name, "class": of_class or None, **x.to_dict()}
            for (name, of_class), x in report.disparities.items()
        ],
    }


def records_of_groups(report: Report) -> list[dict[str, Any]]:
    """Return CSV rows with the values of each group, the values of all examples, and the
    disparities.
    """
    groups = {name: _values(x) for name, x in report.groups.items()}
    of_all = {"": _values(report), "greatest difference": report.disparities}
    return [
        record
        for group, values in (groups | of_all).items()
        for record in records_of(values, "class", report.level, group=group)
    ]


def grouped_report(
    total: Report, report_of: Callable[[str, float], Report], names: Sequence[str]
) -> Report:
    """Add reports on groups, and the disparities, to the report on all examples.

    Args:
        total: the report on all examples.
        report_of: a function that makes the report on a group at a confidence level.
        names: the names of the groups.
    """
    level = total.level
    disparities: Values = {}
    groups = {name: report_of(name, level) for name in names}
    if len(names) > 1:
        wide = pairwise_level(level, len(names))
        widened = groups if len(names) == 2 else {name: report_of(name, wide) for name in names}
        disparities = _disparities([_values(x) for x in widened.values()])
    return replace(total, groups=groups, disparities=disparities)


def _values(report: Report) -> Values:
    """Return the values of a report, and the selection rate of each class."""
    columns = dict(report.per_class)
    if report.num_clusters is None:
        times, number = report.counts.sum(0), report.counts.sum()
        share = proportion_interval(times, number, level=report.level, method="likelihood")
        columns["selection_rate"] = values_of(share, "likelihood")
    return ClassValues(report.overall, columns, report.class_names, report.support).by_class()


def _disparities(groups: Sequence[Values]) -> Values:
    """Compute the largest difference of each value between groups, whose intervals have the level
    `pairwise_level`.
    """
    found = {}
    for key in groups[0]:
        if key[0] not in _NOT_COMPARED:
            estimates = Estimate(*np.array([x[key] for x in groups]).T)
            found[key] = value_of(greatest_difference(estimates), "mover")
    return {key: x for key, x in found.items() if x.method is not None}


def _shown_keys(classes: Sequence[str], keys: Sequence[Key]) -> list[Key]:
    """Choose the values to show: overall values and, for up to ten classes, the values per class.
    If there are two classes, only the second class is shown.
    """
    shown = classes[1:] if len(classes) == 2 else classes
    return [key for key in keys if not key[1] or (len(shown) <= _MOST_CLASSES and key[1] in shown)]


def _title(key: Key) -> str:
    name, of_class = key
    return ", ".join([title_of(name), *labels_of([of_class] if of_class else [], LONGEST_NAME)])


def rows_of_groups(groups: ArrayLike | Sequence[Any], counted: np.ndarray) -> dict[str, np.ndarray]:
    """Return a boolean array `(n,)` by group name: which examples belong to the group."""
    numbers, _ = numbered_clusters(groups, counted.shape, "groups")
    found, first = np.unique(np.where(counted, numbers, -1), return_index=True)
    ids = list(cast(Any, groups))
    named = {str(ids[i]): numbers == g for g, i in zip(found, first, strict=True) if g >= 0}
    if len(named) < (found >= 0).sum():
        different = [repr(ids[i]) for g, i in zip(found, first, strict=True) if g >= 0]
        raise ValueError(
            "groups contains different ids that are printed alike. Convert all ids to strings. The"
            f" ids are {listed(different)}."
        )
    return named
