"""Reports on data with one score per item, such as 0 and 1 or grades, instead of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics import compare_scores, mcnemar, mean_interval
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.labels import names_of
from jaxmetrics._arguments.single import ArrayLike, as_array, as_float, largest_eps
from jaxmetrics._text.wording import (
    CONFIDENCE,
    Table,
    capital,
    enumeration,
    labels_of,
    percent,
    printable,
    probability,
    title_of,
)
from jaxmetrics.clusters import numbered_clusters
from jaxmetrics.comparisons.classifiers import by_halves
from jaxmetrics.comparisons.scores import bounds_of_difference
from jaxmetrics.estimates import normal_quantile, with_level
from jaxmetrics.intervals.means import check_bounds, clipped, refuse_beyond
from jaxmetrics.intervals.strata import Strata, mean_of_groups
from jaxmetrics.reports.contents import (
    FALSE_DISCOVERIES,
    LONGEST_NAME,
    Outline,
    SampleSize,
    discoveries,
    listing,
    mcnemar_in_words,
    names_of_both,
    quantity,
    verdict_of,
)
from jaxmetrics.reports.formats import AnyReport, TabularReport
from jaxmetrics.reports.overall_values import check_each, rows_of_groups
from jaxmetrics.reports.values import Compared, ReportValue, compared, records_of, value_of

__all__ = ["score_report"]


@dataclass(frozen=True, eq=False, repr=False)
class ScoreReport(TabularReport):
    """A report on scores, whose page has a picture."""


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
    """Report mean scores of items, such as questions, and of groups, or compare two systems.

    `mean` is the mean over all items (micro average). `mean_of_groups` is the unweighted mean of
    the group means (macro average). If `bounds` are given, its interval is a likelihood interval.
    Otherwise Student's intervals of the groups are combined by MOVER (Zou and Donner, 2008). For
    this interval, groups with only one item or one cluster are treated as one group. With `other`,
    the report lists the groups in which the systems differ, at a false discovery rate of 5 %. If
    scores are missing, it says between which values the mean of all items lies.

    Args:
        scores: one score per item, `(n,)`, NaN if it is missing. Greater scores are better.
        other: scores of a second system for the same items. Items without both scores are ignored.
        bounds: the least and the greatest possible score, such as (0, 1) for wrong and correct.
        clusters: `(n,)`, ids of clusters, such as texts with several questions. Items with the same
            id may be correlated.
        groups: `(n,)`, ids of groups, such as tasks.
        name, names: the name of the score, and the names of both systems, in the report.
        level: the confidence level.

    Returns:
        A report with the methods of `Report`, such as `to_text`. Its values are `report["mean"]`
        and, with groups, `report["mean_of_groups"]` and `report["group"]` (by group).

    Raises:
        TypeError, ValueError: if the shape of scores, clusters or groups is not `(n,)`, if no item
            has scores, or for the same reasons as in `mean_interval` and `compare_scores`.

    >>> right = [1, 1, 0, 1, 1, 0, 1, 1] * 6
    >>> task = ["law"] * 16 + ["math"] * 32
    >>> print(score_report(right, bounds=(0, 1), groups=task, name="accuracy").to_text())
    48 items, accuracy
    <BLANKLINE>
                    n   mean                  method      mean: 0.497          0.917
    law             16  0.750 [0.497, 0.917]  likelihood  ───────────────●──────────
    math            32  0.750 [0.577, 0.878]  likelihood       ──────────●────────
    mean            48  0.750 [0.611, 0.858]  likelihood         ────────●───────
    mean of groups  48  0.750 [0.595, 0.865]  likelihood        ─────────●───────
    <BLANKLINE>
    Intervals: 95 %; likelihood, for scores between 0 and 1.
    The mean weighs items equally, the mean of groups weighs groups equally.
    """
    check_order(scores=scores, other=other, groups=groups, clusters=clusters)
    (title,), (a, b) = names_of([name], 1, "name"), names_of(names, 2, "names")
    values = _checked_values([scores] if other is None else [scores, other], bounds)
    numbers = None if clusters is None else numbered_clusters(clusters, values.shape[1:])[0]
    sample = ItemScores(title, values, bounds, numbers)
    if not sample.is_scored.any():
        raise ValueError("scores: no item has a score of all systems.")
    if groups is not None:
        named = rows_of_groups(groups, np.ones(values.shape[1], bool))
        numbers = np.argmax([named[x] for x in sorted(named)], axis=0)
        sample = sample._replace(groups=numbers, group_names=sorted(named))
    return report_of_scores(sample, level, (a, b))


def _checked_values(systems: Sequence[ArrayLike], bounds: tuple[float, float] | None) -> np.ndarray:
    """Return the scores of M systems for the same items, `(M, n)`."""
    arrays = [as_array(x, "scores") for x in systems]
    given = [np.asarray(as_float(x, "scores")) for x in arrays]
    if any(x.shape != given[0].shape or x.ndim != 1 for x in given):
        shapes = " and ".join(str(x.shape) for x in given)
        raise ValueError(
            f"scores must have shape (n,) with the same n for both systems, got {shapes}."
        )
    check_bounds(bounds)
    eps = largest_eps(*arrays)
    for argument, x in zip(("scores", "other"), given, strict=False):
        check_each(~np.isinf(x), x, argument, "a finite number")
        refuse_beyond(bounds, x, argument, ~np.isnan(x), eps=eps)
    values = np.stack(given).astype(float)
    return values if bounds is None else clipped(values, bounds, eps)


class ItemScores(NamedTuple):
    """Scores of M systems for the same items.

    Attributes:
        name: the name of the scores.
        values: `(M, n)`; NaN if a system has no score for an item.
        bounds: the least and the greatest possible score, or None.
        clusters: cluster numbers of the items, `(n,)`, from 0.
        groups: group numbers of the items, `(n,)`, from 0, such as numbers of tasks.
        group_names: the names of the groups.
        cluster: the column of cluster ids, if it is known.
    """

    name: str
    values: np.ndarray
    bounds: tuple[float, float] | None = None
    clusters: np.ndarray | None = None
    groups: np.ndarray | None = None
    group_names: Sequence[str] = ()
    cluster: str | None = None

    @property
    def is_scored(self) -> np.ndarray:
        """Booleans `(n,)`: whether an item has scores of all systems."""
        return ~np.isnan(self.values).any(0)

    @property
    def sample(self) -> SampleSize:
        """The numbers of items and of clusters."""
        scored = self.is_scored
        clusters = None if self.clusters is None else len(np.unique(self.clusters[scored]))
        number, missing = int(scored.sum()), int((~scored).sum())
        return SampleSize(number, missing, clusters, "items", cluster=self.cluster)

    def filled(self, is_least: bool) -> ItemScores:
        """Replace missing scores so that the mean, or the mean of A - B, is least or greatest."""
        assert self.bounds is not None
        ends = self.bounds if is_least else self.bounds[::-1]
        worst = np.array(ends)[: len(self.values), None]
        return self._replace(values=np.where(np.isnan(self.values), worst, self.values))

    def missing(self, names: Sequence[str]) -> str:
        """Write how many scores of one or two systems are missing, or "" if none is."""
        numbers, size = np.isnan(self.values).sum(1), self.values.shape[1]
        files = [f" in {printable(name)}" for name in names] if len(numbers) > 1 else [""]
        parts = [f"{x:,} of {size:,}{file}" for x, file in zip(numbers, files, strict=True) if x]
        return f"scores are missing: {enumeration(parts)}" if parts else ""

    def columns(self, level: float) -> dict[str, Sequence[Any]]:
        """Return columns of a leaderboard: how many scores are missing, and the mean of all items
        in the worst case; none if all items have scores.
        """
        columns: dict[str, Sequence[Any]] = {}
        if not self.is_scored.all():
            columns["missing"] = np.isnan(self.values).sum(1).tolist()
            if self.bounds is not None:
                systems = [self._replace(values=x[None]).filled(True) for x in self.values]
                mean = ItemScores.mean if self.groups is None else ItemScores.mean_of_groups
                columns["worst case"] = [mean(x, level) for x in systems]
        return columns

    def at(self, rows: np.ndarray) -> ItemScores:
        """Return the scores of the selected items."""
        clusters, groups = (x if x is None else x[rows] for x in (self.clusters, self.groups))
        return self._replace(values=self.values[:, rows], clusters=clusters, groups=groups)

    def by_group(self) -> dict[str, ItemScores]:
        """Return the items with scores of each group by name; a group may have no such items."""
        if self.groups is None:
            return {}
        rows = np.flatnonzero(self.is_scored)
        rows = rows[self.groups[rows].argsort(kind="stable")]
        sizes = np.bincount(self.groups[rows], minlength=len(self.group_names))
        parts = np.split(rows, sizes.cumsum()[:-1])
        return {name: self.at(part) for name, part in zip(self.group_names, parts, strict=True)}

    def mean(self, level: float) -> ReportValue | Compared:
        """Estimate the mean of one system, or compare two systems."""
        options: Any = {"bounds": self.bounds, "clusters": self.clusters, "level": level}
        if len(self.values) == 2:
            return compared(compare_scores(*self.values, **options))
        return value_of(mean_interval(self.values[0], where=self.is_scored, **options))

    def mean_of_groups(self, level: float) -> ReportValue | Compared:
        """Estimate the mean of the group means of one system, or compare two systems."""
        part, bounds = self.at(self.is_scored), [self.bounds, self.bounds]
        values, z = [*part.values], normal_quantile(level)
        if len(values) == 2:
            values.append(values[0] - values[1])
            bounds.append(bounds_of_difference(self.bounds))
        strata = Strata.of(np.asarray(part.groups), part.clusters)
        means = [
            mean_of_groups(x, strata, bounds=limits, z=z, is_difference=i == 2)
            for i, (x, limits) in enumerate(zip(values, bounds, strict=False))
        ]
        method = "mover" if self.bounds is None else "likelihood"
        labelled = [with_level(x, level, method) for x in means]
        if len(labelled) == 1:
            return value_of(labelled[0])
        a, b, gap = labelled
        return compared(by_halves(a, b, gap, z, 0.0))


def report_of_scores(scores: ItemScores, level: float, names: Sequence[str]) -> TabularReport:
    """Make the report on one system, or on two systems A and B with these names.

    The values of one system are reported values, the values of two systems are comparisons.
    """
    sample = scores.sample
    parts = {name: x for name, x in scores.by_group().items() if x.values.size}
    groups = {name: x.mean(level) for name, x in parts.items()}
    overall = {"mean": scores.mean(level)}
    if groups:
        overall["mean_of_groups"] = scores.mean_of_groups(level)
    # The name of a group may be "".
    values: dict[tuple[str, str | None], Any] = {("mean", name): x for name, x in groups.items()}
    values |= {(name, None): x for name, x in overall.items()}
    sizes = [*(x.values.shape[1] for x in parts.values()), *[sample.number] * len(overall)]
    content: dict[str, Any] = {"score": scores.name, "level": level}
    outline = Outline(
        heading=f"{sample}, {printable(scores.name)}",
        tables={"": _table(values, sizes)},
        notes=_notes(scores, groups, level),
        level=level,
    )
    if isinstance(mean := overall["mean"], Compared):
        outline = outline._replace(
            verdict=verdict_of(mean.difference, "mean", sample, level),
            names=names_of_both(names),
        )
        a, b = scores.values[:, scores.is_scored]
        if scores.clusters is None and np.isin([a, b], (0, 1)).all():
            only_a, only_b = int((a > b).sum()), int((a < b).sum())
            p_value = float(mcnemar([[0, only_a], [only_b, 0]]).p_value)
            outline = outline._replace(result=mcnemar_in_words(only_a, only_b, p_value))
            content["mcnemar"] = {"only_a": only_a, "only_b": only_b, "p_value": p_value}
            content["mcnemar"]["method"] = "mid-p"
    if missing := scores.missing(names):
        verdict = [outline.verdict, f"{capital(missing)}.", _extremes(scores, level)]
        outline = outline._replace(verdict=" ".join(filter(None, verdict)))
    written: dict[str, Any] = {name: x.to_dict() for name, x in overall.items()}
    if groups:
        written["group"] = {name: x.to_dict() for name, x in groups.items()}
    content["values"] = written
    records = records_of(values, level, "group", "system")
    by_name = {**overall, **({"group": groups} if groups else {})}
    return ScoreReport(outline, {**sample.content(), **content}, records, by_name)


def with_items(
    report: TabularReport, listed: Sequence[Mapping[str, Any]], num_systems: int
) -> TabularReport:
    """Add listed items to the report, for the option `--examples` of the command line."""
    if not listed:
        return report
    title = "Items with the lowest scores" if num_systems == 1 else "Items whose scores differ"
    said, content = report.said, report.content
    said = said._replace(tables={**said.tables, **listing(title, listed)})
    return replace(report, said=said, content={**content, "examples": [*listed]})


def _table(values: Mapping[tuple[str, str | None], Any], sizes: Sequence[float]) -> Table:
    """Return a table with one row per group, and the means of all items below them."""
    labels = iter(labels_of([name for _, name in values if name is not None], LONGEST_NAME))
    columns, rows = ["mean", "method"], []
    for ((name, group), x), size in zip(values.items(), sizes, strict=True):
        cells: list[Any] = [title_of(name) if group is None else next(labels), f"{size:,}"]
        if isinstance(x, Compared):
            columns = ["A", "B", "A - B", CONFIDENCE]
            rows.append([*cells, *x.systems.values(), probability(x.probability_better)])
        else:
            rows.append([*cells, x, x.method or ""])
    return Table(["", "n", *columns], rows, drawn=len(columns))  # the mean, or A - B


def _notes(scores: ItemScores, groups: Mapping[str, Any], level: float) -> list[str]:
    way = "Student's, for scores without bounds"
    if scores.bounds is not None:
        least, greatest = scores.bounds
        way = f"likelihood, for scores between {least:g} and {greatest:g}"
    notes = [f"Intervals: {percent(level)}; {way}."]
    if groups:
        notes.append("The mean weighs items equally, the mean of groups weighs groups equally.")
    if empty := [name for name in scores.group_names if name not in groups]:
        names = ", ".join(labels_of(empty, LONGEST_NAME))
        notes.append(f"The mean of groups leaves out groups in which no item has a score: {names}.")
    if len(scores.values) == 2 and any(x.difference.has_interval for x in groups.values()):
        better = {name: x.probability_better for name, x in groups.items()}
        differ = labels_of(
            discoveries({name: 2 * min(p, 1 - p) for name, p in better.items()}), LONGEST_NAME
        )
        notes.append(
            f"At a false discovery rate of {percent(FALSE_DISCOVERIES)} (Benjamini and Hochberg),"
            f" A and B differ in {', '.join(differ) or 'no group'}."
        )
    return notes


def _extremes(scores: ItemScores, level: float) -> str:
    """Write the least and the greatest mean over all possible values of the missing scores."""
    sample, size = scores.sample, scores.values.shape[1]
    sentence = f"Values are of the other {quantity(sample.number, sample.units)}"
    if scores.bounds is None:
        return f"{sentence}; the mean of all items is unknown, because scores have no bounds."
    least, greatest = (scores.filled(x).mean(level) for x in (True, False))
    what = "the mean"
    if isinstance(least, Compared) and isinstance(greatest, Compared):
        what, least, greatest = "A - B", least.difference, greatest.difference
    return (
        f"{sentence}; {what} of all {size:,} items is at least {least} and at most {greatest},"
        " whatever the missing scores are."
    )
