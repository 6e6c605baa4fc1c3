"""Reports on scores per item, such as 0 and 1 or grades, instead of truth and predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from jaxmetrics._labels import names_of
from jaxmetrics._validation import ArrayLike, as_float
from jaxmetrics._wording import interval, labels_of, percent, printable, title_of
from jaxmetrics.clusters import numbered_clusters
from jaxmetrics.comparisons.classifiers import Comparison, by_halves
from jaxmetrics.comparisons.scores import bounds_of_difference, compare_scores
from jaxmetrics.estimates import Estimate, normal_quantile
from jaxmetrics.intervals.means import (
    Strata,
    check_bounds,
    mean_interval,
    mean_of_groups,
    refuse_beyond,
)
from jaxmetrics.reports.contents import (
    LONGEST_NAME,
    Outline,
    ReportedValue,
    SampleSize,
    ValueTable,
    reported_comparison,
    value_of,
    verdict_of,
)
from jaxmetrics.reports.formats import AnyReport, TabularReport
from jaxmetrics.reports.gates import JudgedGate, contents_of
from jaxmetrics.reports.grouped import rows_of_groups

__all__ = ["score_report"]

_FALSE_DISCOVERIES = 0.05
_MEAN, _MACRO, _GROUP = "mean", "mean_of_groups", "group"


def score_report(
    scores: ArrayLike,
    other: ArrayLike | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    groups: ArrayLike | Sequence[Any] | None = None,
    name: str = "score",
    names: tuple[str, str] = ("A", "B"),
    level: float = 0.95,
) -> AnyReport:
    """Report on scores per item: the overall mean, the mean of each group, and the difference of
    two systems.

    `mean` weights items equally (micro), `mean_of_groups` weights groups such as tasks equally
    (macro). The interval of `mean_of_groups` is a likelihood interval over all groups; without
    bounds, it combines Student's intervals of the groups by MOVER (Zou and Donner, 2008). Groups
    with a single item or cluster form one stratum. A cluster may lie in several groups. For two
    systems, the report lists the groups in which they differ, at a false discovery rate of 5 %.

    Args:
        scores: `(n,)`; greater is better; NaN for an item without a score.
        other: the scores of a second system for the same items; items without both are left out.
        bounds: the least and the greatest possible score, such as (0, 1) for wrong and correct.
        clusters: ids `(n,)` of groups of correlated items, such as questions about the same text.
        groups: ids `(n,)` of groups with separate means, such as tasks.
        name: the name of the score, for the report.
        names: the names of the systems.
        level: the confidence level.

    Returns:
        A report with `["mean"]`, `["mean_of_groups"]` and `["group"]`, and with `to_text`,
        `to_dict`, `to_json`, `to_csv`, `to_markdown`, `to_frame` and `to_html`.

    Raises:
        TypeError, ValueError: scores, clusters or groups with another shape than `(n,)`, no item
            with scores, and mistakes for which `mean_interval` and `compare_scores` raise.

    >>> right = [1, 1, 0, 1, 1, 0, 1, 1] * 6
    >>> task = ["law"] * 16 + ["math"] * 32
    >>> print(score_report(right, bounds=(0, 1), groups=task, name="accuracy").to_text())
    48 items, accuracy
    <BLANKLINE>
                    n   mean             method
    law             16  0.750 .497-.917  likelihood
    math            32  0.750 .577-.878  likelihood
    mean            48  0.750 .611-.858  likelihood
    mean of groups  48  0.750 .595-.865  likelihood
    <BLANKLINE>
    Intervals: 95 %; likelihood, for scores between 0 and 1.
    The mean weighs items equally, the mean of groups weighs groups equally.
    """
    (title,), (a, b) = names_of([name], 1, "name"), names_of(names, 2, "names")
    values = _checked_values([scores] if other is None else [scores, other], bounds)
    numbers = None if clusters is None else numbered_clusters(clusters, values.shape[1:])[0]
    sample = ItemScores(title, values, bounds, numbers)
    if not sample.is_scored.any():
        raise ValueError("scores: no item has a score of all systems.")
    if groups is not None:
        named = rows_of_groups(groups, np.ones(values.shape[1], bool))
        numbers = np.zeros(values.shape[1], int)
        for i, name_of_group in enumerate(sorted(named)):
            numbers[named[name_of_group]] = i
        sample = sample._replace(groups=numbers, group_names=sorted(named))
    if other is None:
        return report_of_means(sample, means(sample, level), level, ())
    return report_of_differences(sample, differences(sample, level), level, (), (a, b))


def _checked_values(systems: Sequence[ArrayLike], bounds: tuple[float, float] | None) -> np.ndarray:
    """Return the scores of M systems for the same items, `(M, n)`."""
    given = [np.asarray(as_float(x, "scores")) for x in systems]
    if any(x.shape != given[0].shape or x.ndim != 1 for x in given):
        shapes = " and ".join(str(x.shape) for x in given)
        raise ValueError(f"scores must have shape (n,), the same of both systems, got {shapes}.")
    check_bounds(bounds)
    for argument, x in zip(("scores", "other"), given, strict=False):
        refuse_beyond(bounds, x, argument, ~np.isnan(x))
    return np.stack(given).astype(float)


class ItemScores(NamedTuple):
    """Scores of M systems for the same items.

    Attributes:
        name: the name of the scores.
        values: `(M, n)`; NaN if a system has no score for an item.
        bounds: the least and the greatest possible score, or None.
        clusters: cluster numbers of the items, `(n,)`, from 0.
        groups: group numbers of the items, `(n,)`, from 0, such as numbers of tasks.
        group_names: the names of the groups.
    """

    name: str
    values: np.ndarray
    bounds: tuple[float, float] | None = None
    clusters: np.ndarray | None = None
    groups: np.ndarray | None = None
    group_names: Sequence[str] = ()

    @property
    def is_scored(self) -> np.ndarray:
        """Which items have scores of all systems, `(n,)`."""
        return ~np.isnan(self.values).any(0)

    @property
    def sample(self) -> SampleSize:
        """The numbers of items and clusters."""
        scored = self.is_scored
        clusters = None if self.clusters is None else len(np.unique(self.clusters[scored]))
        return SampleSize(int(scored.sum()), int((~scored).sum()), clusters, "items")

    def sizes(self) -> dict[str | None, int]:
        """Return the number of scored items in each group, and in total under the key None."""
        scored = self.is_scored
        groups = [] if self.groups is None else self.groups[scored]
        counts = np.bincount(groups, minlength=len(self.group_names)).tolist()
        return {None: int(scored.sum()), **dict(zip(self.group_names, counts, strict=True))}

    @property
    def method(self) -> str:
        """The name of the interval method."""
        return "student" if self.bounds is None else "likelihood"

    @property
    def method_of_groups(self) -> str:
        """The name of the interval method for the mean of groups."""
        return "mover" if self.bounds is None else "likelihood"

    def at(self, rows: np.ndarray) -> ItemScores:
        """Select items."""
        clusters, groups = (x if x is None else x[rows] for x in (self.clusters, self.groups))
        return self._replace(values=self.values[:, rows], clusters=clusters, groups=groups)

    def by_group(self, estimate: Callable[[ItemScores], Any]) -> dict[str, Any]:
        """Estimate each group separately, from its scored items."""
        if self.groups is None:
            return {}
        counted = np.flatnonzero(self.is_scored)
        order = counted[self.groups[counted].argsort(kind="stable")]
        numbers, first = np.unique(self.groups[order], return_index=True)
        return {
            self.group_names[number]: estimate(self.at(rows)._replace(groups=None))
            for number, rows in zip(numbers, np.split(order, first[1:]), strict=True)
        }

    def means_of_groups(self, level: float) -> list[ReportedValue]:
        """Estimate the mean of groups of each system and, for two systems, of their difference."""
        part = self.at(self.is_scored)
        strata = Strata.of(cast(np.ndarray, part.groups), part.clusters)
        of_systems = [(x, self.bounds) for x in part.values]
        if len(part.values) == 2:
            of_systems.append((part.values[0] - part.values[1], bounds_of_difference(self.bounds)))
        z, method = normal_quantile(level), self.method_of_groups
        return [
            value_of(mean_of_groups(x, strata, bounds=limits, z=z), method)
            for x, limits in of_systems
        ]


def means(scores: ItemScores, level: float) -> dict[str, Any]:
    """Estimate the mean, the mean of each group and the mean of groups, by name."""

    def mean(part: ItemScores) -> ReportedValue:
        return value_of(_mean(part, level, where=part.is_scored), part.method)

    return _with_groups(scores, mean, lambda: scores.means_of_groups(level)[0])


def _mean(scores: ItemScores, level: float, **options: Any) -> Estimate:
    (values,) = scores.values
    return mean_interval(
        values, bounds=scores.bounds, clusters=scores.clusters, level=level, **options
    )


def differences(scores: ItemScores, level: float) -> dict[str, Any]:
    """Compare A and B, by name: overall, in each group, and in the mean of groups."""

    def comparison(part: ItemScores) -> Comparison:
        options: dict[str, Any] = {"bounds": part.bounds, "clusters": part.clusters}
        found = compare_scores(*part.values, level=level, **options)
        return reported_comparison(found, part.method, part.method)

    def of_groups() -> Comparison:
        a, b, d = scores.means_of_groups(level)
        halves = by_halves(a, b, d, normal_quantile(level), 0.0)
        return reported_comparison(halves, scores.method_of_groups, scores.method_of_groups)

    return _with_groups(scores, comparison, of_groups)


def _with_groups(
    scores: ItemScores, estimate: Callable[[ItemScores], Any], mean_of_groups: Callable[[], Any]
) -> dict[str, Any]:
    found, groups = {_MEAN: estimate(scores)}, scores.by_group(estimate)
    return found | ({_MACRO: mean_of_groups(), _GROUP: groups} if groups else {})


def report_of_means(
    scores: ItemScores, found: Mapping[str, Any], level: float, gates: Sequence[JudgedGate]
) -> TabularReport:
    """Make the report on one system."""
    lines = _lines(scores, found)
    rows = [[x.title, x.size, x.value, x.value.method or ""] for x in lines]
    records = [{**x.key, **x.value.record(level)} for x in lines]
    notes = _note_of_missing(scores, level, "the mean of all items")
    tables = {"": ValueTable(["", "n", "mean", "method"], rows)}
    return _report(scores, found, records, notes, level=level, gates=gates, tables=tables)


def report_of_differences(
    scores: ItemScores,
    found: Mapping[str, Any],
    level: float,
    gates: Sequence[JudgedGate],
    names: tuple[str, str],
) -> TabularReport:
    """Make the report on the comparison of A and B."""
    lines = _lines(scores, found)
    rows = [[x.title, x.size, *x.value[:3], f"{x.value.probability_better:.3f}"] for x in lines]
    records = [
        {**x.key, "system": system, **value.record(level)}
        for x in lines
        for system, value in zip(("A", "B", "A - B"), x.value[:3], strict=True)
    ]
    d = found[_MEAN].difference
    alike = f"A and B cannot be told apart: A - B is {interval(*d[:3])}."
    notes = _note_of_missing(scores, level, "the mean of A - B")
    if _GROUP in found:
        differ = labels_of(_that_differ(found[_GROUP]), LONGEST_NAME)
        notes.append(
            f"A and B differ, at a false discovery rate of {percent(_FALSE_DISCOVERIES)} (Benjamini"
            f" and Hochberg), in {', '.join(differ) or 'no group'}."
        )
    return _report(
        scores,
        found,
        records,
        notes,
        level=level,
        gates=gates,
        verdict=verdict_of(d, "mean") or alike,
        names=dict(zip("AB", labels_of(names, 200), strict=True)),
        tables={"": ValueTable(["", "n", "A", "B", "A - B", "P(A > B)"], rows)},
    )


def _note_of_missing(scores: ItemScores, level: float, what: str) -> list[str]:
    """Give the worst-case bounds of a mean for any values of the missing scores."""
    missing = scores.sample.num_ignored
    if scores.bounds is None or not missing:
        return []
    options: dict[str, Any] = {"clusters": scores.clusters, "level": level}
    least, greatest = (np.where(np.isnan(scores.values), x, scores.values) for x in scores.bounds)
    bounds: tuple[float, float] | None = scores.bounds
    if len(least) == 2:
        least, greatest, bounds = (
            least[:1] - greatest[1:],
            greatest[:1] - least[1:],
            bounds_of_difference(bounds),
        )
    low, high = (mean_interval(x[0], bounds=bounds, **options) for x in (least, greatest))
    return [
        f"For any values of the missing scores ({missing}), {what} is between {low.low:.3f} and"
        f" {high.high:.3f}."
    ]


def _that_differ(groups: Mapping[str, Comparison]) -> list[str]:
    """List the groups in which A and B differ significantly: Benjamini and Hochberg (1995), Journal
    of the Royal Statistical Society B 57.
    """
    better = np.array([x.probability_better for x in groups.values()])
    p_value = 2 * np.minimum(better, 1 - better)
    names, order = [*groups], np.argsort(p_value)
    passed = p_value[order] * len(names) <= _FALSE_DISCOVERIES * np.arange(1, len(names) + 1)
    number = np.flatnonzero(passed).max(initial=-1) + 1
    return [names[i] for i in sorted(order[:number])]


class _Line(NamedTuple):
    title: str
    size: str
    name: str
    group: str | None
    value: Any

    @property
    def key(self) -> dict[str, str | None]:
        """The keys of the value in CSV and JSON."""
        return {"name": self.name, "group": self.group}


def _lines(scores: ItemScores, found: Mapping[str, Any]) -> list[_Line]:
    """List the values, groups first."""
    groups, sizes = found.get(_GROUP, {}), scores.sizes()
    titles = labels_of([*groups], LONGEST_NAME)
    of_groups = [
        _Line(title, str(sizes[group]), _MEAN, group, x)
        for title, (group, x) in zip(titles, groups.items(), strict=True)
    ]
    return of_groups + [
        _Line(title_of(name), str(sizes[None]), name, None, found[name])
        for name in (_MEAN, _MACRO)
        if name in found
    ]


def _report(
    scores: ItemScores,
    found: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    more_notes: Sequence[str],
    *,
    level: float,
    **said: Any,
) -> TabularReport:
    """Make a report from values by name and further fields of `Outline`."""
    way = "Student's, for scores without bounds"
    if scores.bounds is not None:
        least, greatest = scores.bounds
        way = f"likelihood, for scores between {least:g} and {greatest:g}"
    notes = [f"Intervals: {percent(level)}; {way}."]
    if scores.groups is not None:
        notes.append("The mean weighs items equally, the mean of groups weighs groups equally.")
        if empty := [name for name, number in scores.sizes().items() if name and not number]:
            names = ", ".join(labels_of(empty, LONGEST_NAME))
            notes.append(f"Left out of the mean of groups, because no item has a score: {names}.")
    heading = f"{scores.sample}, {printable(scores.name)}"
    outline = Outline(heading, notes=[*notes, *more_notes], level=level, **said)
    groups = {name: x.to_dict() for name, x in found.get(_GROUP, {}).items()}
    values = {name: x.to_dict() for name, x in found.items() if name != _GROUP}
    content = {
        **scores.sample.content(),
        "score": scores.name,
        "level": level,
        "values": values | ({_GROUP: groups} if groups else {}),
        **contents_of(outline.gates),
    }
    return TabularReport(outline, content, records, found)
