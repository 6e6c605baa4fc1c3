"""Reports on groups of examples, with the largest difference of each metric between groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from statistics import NormalDist
from typing import Any, ClassVar, TypeAlias

import numpy as np

from jaxmetrics import Estimate
from jaxmetrics._arguments.labels import are_integers
from jaxmetrics._text.wording import Table, labels_of, listed, percent, title_of
from jaxmetrics.clusters import few_clusters, warn_of_few_clusters
from jaxmetrics.comparisons.disparities import greatest_difference, pairwise_level
from jaxmetrics.estimates import normal_quantile, with_level
from jaxmetrics.reports.contents import (
    FALSE_DISCOVERIES,
    LONGEST_NAME,
    POSTERIOR,
    Outline,
    discoveries,
    listing,
    quantity,
)
from jaxmetrics.reports.omissions import left_out
from jaxmetrics.reports.overall_values import COEFFICIENTS, Evidence
from jaxmetrics.reports.singles import EXAMPLES, Report
from jaxmetrics.reports.values import Key, ReportValue, exactly, records_of, value_of, values_of

__all__: list[str] = []

Values: TypeAlias = Mapping[Key, ReportValue]

# These values are redundant with other values.
_NOT_COMPARED = ("accuracy_gain", POSTERIOR, "micro_f1")
_MOST_CLASSES = 10  # if there are more classes, the text has no rates per class
_LONGEST_GROUP = 20  # columns of the name of a group, as of a value with its interval
_MOST_SHOWN = 3  # the number of differences in the verdict
_ALL = "(all)"  # the name of all examples in the table of groups
_MOST_COLUMNS, _MOST_VALUES = 4, 6  # if there are more groups, each group is a row of a few values
_NOTE = (
    "A disparity is the largest difference between groups, which chance alone makes positive. Its "
    "interval allows for the selection of the two most different groups, because it combines "
    "simultaneous intervals of all pairs of groups (MOVER, Zou and Donner 2008; Bonferroni). It "
    "does not allow for the number of values, as the false discovery rate does: the list of "
    "differences may leave out a value whose interval is above 0."
)


@dataclass(frozen=True, eq=False, repr=False)
class GroupedReport(Report):
    """A report on all examples and on each group of examples."""

    template: ClassVar[str] = "tables.html"

    def outline(self) -> Outline:
        """Return the contents as a table with a column per group or, for many groups, a row per
        group, and a table of the disparities. All examples are a column or a row, too.
        """
        groups, are_rows = self.values_of_groups, len(self.groups) > _MOST_COLUMNS
        first = next(iter(groups.values()))
        keys = [key for key in first if key[0] != POSTERIOR and self._is_shown(key)]
        titles, names = self._titles(keys), labels_of(list(groups), _LONGEST_GROUP)
        reports: list[Report] = [self.groups[name] for name in groups]
        columns = [*groups.values()]
        # The first row, or the last column, so that groups stand side by side.
        place = 0 if are_rows else len(names)
        names.insert(place, _ALL)
        reports.insert(place, self)
        columns.insert(place, values_with_selection(self))
        sizes = (f"{x.num_examples:,.10g}" for x in reports)
        missing, notes = exactly(np.nan), []
        cells = {titles[key]: [x.get(key, missing) for x in columns] for key in keys}
        table = Table(["", *names], [["examples", *sizes], *([x, *y] for x, y in cells.items())])
        if are_rows:
            others = filter(self._is_shown, self.disparities)
            chosen = [*dict.fromkeys([("accuracy", ""), *self.different, *others])][:_MOST_VALUES]
            cells = {titles[key]: cells[titles[key]] for key in chosen}
            rows = zip(names, table.rows[0][1:], *cells.values(), strict=True)
            table = Table(["group", "n", *cells], [*rows], details=range(3, 2 + len(cells)))
            order = "" if are_integers(groups) else "Groups are sorted by accuracy. "
            notes = [
                f"{order}The table has accuracy and then values that are shown to differ between"
                f" groups, if there are any, before others; CSV and JSON have all values."
            ]
        sample = self.sample._replace(num_ignored=0, num_clusters=None)
        shared = "" if self.num_clusters is None else ", as if no cluster belonged to two groups"
        return Outline(
            heading=f"{sample}, {len(self.class_names)} classes, {quantity(len(groups), 'groups')}",
            verdict=" ".join(filter(None, [super()._verdict, self._differences])),
            tables={"Groups": table, **listing(EXAMPLES, self.listed)},
            summary=[(titles[x], self.disparities[x]) for x in keys if x in self.disparities],
            summary_title="Disparities",
            notes=[
                f"Intervals: {percent(self.level)}. Each group is evaluated separately{shared}.",
                *notes,
                _NOTE if self.disparities else "There is one group, so nothing can be compared.",
            ],
            level=self.level,
            gates=self.gates,
        )

    @cached_property
    def values_of_groups(self) -> dict[str, Values]:
        """The values of each group by name; many groups are sorted by accuracy, unless they are
        numbered.
        """
        values = {name: values_with_selection(x) for name, x in self.groups.items()}
        if len(values) <= _MOST_COLUMNS or are_integers(values):
            return values
        return dict(sorted(values.items(), key=lambda x: x[1]["accuracy", ""].value))

    @cached_property
    def different(self) -> list[Key]:
        """The values that are shown to differ between groups, the largest difference first; last
        coefficients, whose differences are not comparable, because their range is twice as wide.
        """
        p_values, number = {}, len(self.groups)
        for key, x in self.disparities.items():
            if self._is_shown(key):
                # The distance from the value to the lower end of its interval is proportional to z.
                z = normal_quantile(pairwise_level(self.level, number))
                score = z * x.value / max(x.value - x.low, 1e-300) if x.low > 0 else 0
                p_values[key] = min(2 * math.comb(number, 2) * NormalDist().cdf(-score), 1)
        found = sorted(discoveries(p_values), key=lambda key: -self.disparities[key].value)
        return sorted(found, key=lambda key: key[0] in COEFFICIENTS)

    @property
    def _differences(self) -> str:
        """Write which of the shown values differ between groups, the largest differences first."""
        number = sum(map(self._is_shown, self.disparities))
        if not number:
            return ""
        rate = f"at a false discovery rate of {percent(FALSE_DISCOVERIES)}"
        different = self.different
        if not different:
            return f"None of {number} values is shown to differ between groups, {rate}."
        titles = self._titles(different[:_MOST_SHOWN])
        groups = self.values_of_groups
        labels = dict(zip(groups, labels_of(list(groups), _LONGEST_GROUP), strict=True))
        most = []
        for key, title in titles.items():
            ends = (f"{labels[x]}: {groups[x][key].value:.3f}" for x in self._ends(key).values())
            most.append(f"{title} by {self.disparities[key]} ({', '.join(ends)})")
        verb = "is" if len(different) == 1 else "are"
        return (
            f"{len(different)} of {number} values {verb} shown to differ between groups, {rate}"
            f" (Benjamini and Hochberg). The largest difference{'s' * (len(most) > 1)}:"
            f" {'; '.join(most)}."
        )

    def _ends(self, key: Key) -> dict[str, str]:
        """Return the names of the groups with the least and with the greatest value."""
        values = {name: x[key].value for name, x in self.values_of_groups.items()}
        known = [name for name, x in values.items() if not math.isnan(x)]
        return {
            "least": min(known, key=values.__getitem__),
            "greatest": max(known, key=values.__getitem__),
        }

    def _is_shown(self, key: Key) -> bool:
        """Return whether the text contains a value: an overall value or, for up to ten classes, a
        value of a class. Of two classes, some values follow from others: the specificity of one
        class is the recall of the other.
        """
        (name, of_class), names, others = key, self.class_names, left_out(self.support)
        if others:
            return not of_class and name not in others
        if len(names) == 2 and not self.invalid:
            equal = ("selection_rate", "roc_auc") if of_class == names[0] else ()
            return name not in ("specificity", *equal)
        return not of_class or len(names) <= _MOST_CLASSES

    def _titles(self, keys: Sequence[Key]) -> dict[Key, str]:
        names = self.class_names
        labels = dict(zip(names, labels_of(names, LONGEST_NAME), strict=True))
        return {(name, x): title_of(name) + f", {labels.get(x)}" * bool(x) for name, x in keys}

    def _more_content(self) -> dict[str, Any]:
        return {
            "groups": {name: x.to_dict() for name, x in self.groups.items()},
            "disparities": [
                {"name": key[0], "class": key[1] or None, **x.to_dict(), "groups": self._ends(key)}
                for key, x in self.disparities.items()
            ],
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a CSV row for each value of a group, for each value of all examples, and for each
        disparity.
        """
        groups = self.values_of_groups
        whole = {"": values_with_selection(self), "greatest difference": self.disparities}
        return [
            record
            for group, values in (groups | whole).items()
            for record in records_of(values, self.level, "class", group=group)
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
    level, disparities = total.level, {}
    fewest: dict[str, int] = {}

    def of_group(name: str, level: float) -> Report:
        with few_clusters() as few:
            report = report_of(name, level)
        if few:
            fewest[name] = min(few)
        return report

    groups = {name: of_group(name, level) for name in names}
    labels = listed(f"{name}: {n}" for name, n in fewest.items())
    warn_of_few_clusters(
        [*fewest.values()], f"few clusters of a group or of a class in it ({labels})"
    )
    if len(names) > 1:
        wide = pairwise_level(level, len(names))
        widened = groups if len(names) == 2 else {name: of_group(name, wide) for name in names}
        values = [values_with_selection(x) for x in widened.values()]
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


def values_with_selection(report: Report) -> Values:
    """Return the values of a report, and the selection rate of each class, without an interval if
    there are clusters, because a report does not have their counts.
    """
    values = report.class_values
    evidence = Evidence(report.counts, report.level, squares=report.squares)
    rates = values_of(evidence.proportions(_selected_and_others))[: len(report.class_names)]
    if report.num_clusters is not None:
        rates = [exactly(x.value) for x in rates]
    return values._replace(columns={**values.columns, "selection_rate": rates}).all()


def _selected_and_others(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tables.sum(0), tables.sum() - tables.sum(0)
