"""What the commands do: read, compute, and write what is asked for, or a line that says why not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from jaxmetrics.cli._classes import Classes
from jaxmetrics.cli._counted_files import Counted, count_predictions
from jaxmetrics.cli._errors import InputError, refusals, shown
from jaxmetrics.cli._inputs import parts_of
from jaxmetrics.cli._matrices import long_table, read_counts
from jaxmetrics.cli._multilabel_files import count_labels
from jaxmetrics.cli._outputs import Output, deliver, progress, waiting
from jaxmetrics.cli._rows import Columns, Selection
from jaxmetrics.clusters import numbered_clusters
from jaxmetrics.ranking import delong_interval
from jaxmetrics.reports import Report
from jaxmetrics.reports.contents import Findings, value_of
from jaxmetrics.reports.formats import AnyReport, TabularReport
from jaxmetrics.reports.grouped import grouped_report
from jaxmetrics.reports.label_sets import report_of_sums
from jaxmetrics.reports.prevalences import report_at_prevalence
from jaxmetrics.reports.probabilities import findings_of_clusters, probability_findings

__all__ = [
    "Columns",
    "Output",
    "Selection",
    "report_counts",
    "report_labels",
    "report_of",
    "report_predictions",
]


def report_predictions(
    file: Path, question: Selection, prevalence: str | None, output: Output
) -> None:
    """Run `jaxmetrics report FILE`."""

    def result() -> AnyReport:
        shares, columns = _shares(prevalence), question.columns
        if shares is not None and (columns.prob or columns.cluster):
            raise InputError("--prevalence restates counts: it takes no --prob or --cluster")
        paths = parts_of(file)
        with progress() as on_progress:
            counted = count_predictions(paths, question, on_progress)
        with waiting("computing intervals"), refusals(file):
            return _report_of(counted, shares, output.level)

    deliver(result, output, (file,))


def _shares(prevalence: str | None) -> dict[str, float] | None:
    """Parse `cat=0.1,dog=0.9`."""
    if prevalence is None:
        return None
    parts = [part.rpartition("=") for part in prevalence.split(",")]
    try:
        pairs = [(name.strip(), float(share)) for name, _, share in parts]
    except ValueError:
        raise InputError(
            f"--prevalence must be like 'cat=0.1,dog=0.9', got {prevalence!r}"
        ) from None
    shares = dict(pairs)
    are_shares = all(share >= 0 for share in shares.values())
    if len(shares) < len(pairs) or not are_shares or not abs(sum(shares.values()) - 1) < 1e-3:
        raise InputError(
            "--prevalence must give each class one share >= 0, and these must sum to 1, got"
            f" {prevalence!r}"
        )
    return shares


def _report_of(counted: Counted, shares: Mapping[str, float] | None, level: float) -> AnyReport:
    classes = counted.classes()

    def of_group(group: str | None, level: float) -> Report:
        return report_of(counted, classes, group, shares, level)

    total = of_group(None, level)
    if "group" not in counted.keys:
        return total
    return grouped_report(total, of_group, counted.groups())


def report_of(
    counted: Counted,
    classes: Classes,
    group: str | None,
    shares: Mapping[str, float] | None,
    level: float,
) -> Report:
    """Report on what was counted, of one group or of all rows."""
    report = Report.from_counts(
        counted.table(classes, group),
        class_names=classes.names,
        num_ignored=counted.ignored(group),
        level=level,
    )
    if shares is not None:
        report = report_at_prevalence(report, shares)
    sums = counted.sums_of(group)
    if sums is not None:
        if counted.positive is None:
            order = [counted.prob_classes.index(name) for name in classes.names]
            sums = sums.reordered(np.array(order))
        found = probability_findings(sums, report.class_names, level)
        report = report.with_findings(found)
    return _with_rows(report, counted, classes, group) if counted.rows else report


def _with_rows(report: Report, counted: Counted, classes: Classes, group: str | None) -> Report:
    """Add what only rows say: of probabilities of clusters, and of scores."""
    rows, level = counted.rows_of(group), report.level
    true = rows["true id"].to_numpy()
    clusters = rows["cluster"].to_list() if "cluster" in rows.columns else None
    weights = rows["weight"].to_numpy() if "weight" in rows.columns else None
    if clusters is not None and "prob 0" in rows.columns:
        numbers, _ = numbered_clusters(clusters, true.shape)
        prob = rows.select("^prob .*$").to_numpy()
        if counted.positive is None:
            order = np.array([counted.prob_classes.index(name) for name in classes.names])
            true, prob = np.argsort(order)[true], prob[:, order]
        report = report.with_findings(findings_of_clusters(true, prob, weights, numbers, level))
    if "score" in rows.columns:
        if weights is not None:
            raise ValueError("scores with weights have no interval: leave out --weight or --score.")
        area = delong_interval(true, rows["score"].to_numpy(), level=level, clusters=clusters)
        report = report.with_findings(Findings({"roc_auc": value_of(area, "score")}))
    return report


def report_counts(file: Path, question: Selection, prevalence: str | None, output: Output) -> None:
    """Run `jaxmetrics report FILE --counts`."""

    def result() -> AnyReport:
        asked = question.columns
        if question.ignore or asked.prob or asked.score or asked.group or asked.cluster:
            raise InputError(
                "--counts reads a matrix: it takes no --prob, --score, --group, --cluster or"
                " --ignore"
            )
        paths = parts_of(file)
        if len(paths) > 1:
            raise InputError(f"{shown(file)}: --counts reads one file, these are {len(paths)}")
        (path,) = paths
        table = long_table(path, question)
        shares = _shares(prevalence)
        if table is not None:
            counted = count_predictions([path], table)
            with refusals(file):
                return _report_of(counted, shares, output.level)
        if asked != Columns() or question.positive is not None:
            raise InputError("--counts reads a matrix: it takes no --true, --pred or --weight")
        matrix, names = read_counts(path, question.separator)
        with waiting("computing intervals"), refusals(file):
            report = Report.from_counts(matrix, class_names=names, level=output.level)
            return report if shares is None else report_at_prevalence(report, shares)

    deliver(result, output, (file,))


def report_labels(
    file: Path, prefixes: tuple[str, str], separator: str | None, output: Output
) -> None:
    """Run `jaxmetrics report FILE --labels-prefix TRUE PRED`."""

    def result() -> TabularReport:
        sums, names = count_labels(parts_of(file), prefixes, separator)
        return report_of_sums(sums, names, output.level)

    deliver(result, output, (file,))
