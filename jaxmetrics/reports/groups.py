"""Reports of groups of examples, and of how much a metric differs between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxmetrics._wording import Table, labels_of, percent, title_of
from jaxmetrics.estimates import Estimate
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.tabular import TabularReport, value_cell, value_record
from jaxmetrics.reports.values import ReportedValue, as_json, value_of

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


def pairwise_level(level: float, num_groups: int) -> float:
    """Return the level at which the intervals of all pairs of groups hold at once."""
    return 1 - (1 - level) / math.comb(num_groups, 2)


def greatest_difference(values: Sequence[ReportedValue]) -> ReportedValue:
    """Report the greatest difference between the values of independent groups.

    With intervals [l, u] of the values v, that of each difference is
    `v_i - v_j - sqrt((v_i - l_i)^2 + (u_j - v_j)^2)` and, upwards, likewise (MOVER: Zou and Donner,
    2008, Statistics in Medicine 27). Where those of all pairs hold at once, the greatest difference
    is no less than the greatest lower end, and no more than the greatest upper one. So the
    intervals given are to be of `pairwise_level`. Simulated with 2 to 8 groups of 20 to 2000
    examples and accuracies of 0.5 to 0.98, alike or not, the interval of the greatest difference of
    accuracy (Wilson) and macro-F1 (likelihood) covered in 94 to 100 % for a level of 95 %: of equal
    groups in 94 to 100 %, of different ones in 95 to 100 %.
    """
    known = [x for x in values if not math.isnan(x.value)]
    if len(known) < 2:
        return ReportedValue(math.nan)
    v = np.array([x.value for x in known])
    greatest = float(v.max() - v.min())
    if any(x.low is None or x.high is None for x in known):
        return ReportedValue(greatest)
    low, high = (np.array([getattr(x, end) for x in known]) for end in ("low", "high"))
    gaps = v[:, None] - v
    below, above = (v - low) ** 2, (high - v) ** 2
    lower = gaps - np.sqrt(below[:, None] + above)
    upper = gaps + np.sqrt(above[:, None] + below)
    np.fill_diagonal(upper, 0)
    return ReportedValue(greatest, max(0.0, float(lower.max())), float(upper.max()), _METHOD)


@dataclass(frozen=True)
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
        key: greatest_difference([wide_values[name][key] for name in names])
        for key in values[names[0]]
        if len(names) > 1 and key[0] not in _NOT_COMPARED
    }
    disparities = {key: x for key, x in disparities.items() if x.method is not None}
    return GroupedReport(
        heading=f"{total.num_examples:.10g} examples, {len(total.class_names)} classes,"
        f" {len(names)} groups",
        tables=_tables(total, groups, values, disparities),
        notes=[
            f"Intervals: {percent(level)}. Each group is reported on by itself.",
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
        rates = (Estimate(*parts) for parts in zip(*share, strict=True))
        found |= {
            ("selection_rate", c): value_of(x, "wilson")
            for c, x in zip(report.class_names, rates, strict=True)
        }
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
