"""The command `report`: read a file, and compute and write its report, or print one error line."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from jaxmetrics.cli._classes import warn_of_other_names
from jaxmetrics.cli._errors import InputError, check_alone, refusals, shown
from jaxmetrics.cli._gates import check_gates, verdicts
from jaxmetrics.cli._matrices import read_counts
from jaxmetrics.cli._multilabel_files import read_labels
from jaxmetrics.cli._outputs import deliver, progress
from jaxmetrics.cli._predictions import (
    Predictions,
    Selection,
    count_predictions,
    whole,
)
from jaxmetrics.cli._reader import parts_of
from jaxmetrics.cli._score_files import read_scores
from jaxmetrics.ranking import delong_interval
from jaxmetrics.reports.contents import Findings, value_of
from jaxmetrics.reports.formats import AnyReport, TabularReport
from jaxmetrics.reports.gates import exit_code
from jaxmetrics.reports.grouped import grouped_report
from jaxmetrics.reports.label_sets import multilabel_report
from jaxmetrics.reports.prevalences import report_at_prevalence
from jaxmetrics.reports.score_means import report_of_scores, score_values
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.singles import report as make_report

__all__ = ["report", "report_of"]


def report(given: Namespace) -> int:
    """Run `jaxmetrics report FILE`, and return the exit code.

    A `--gate`, such as `accuracy >= 0.9`, is a bound on a metric. If a gate fails, the exit code is
    1. If no gate fails, but the confidence interval of a metric contains the bound of its gate, so
    that the gate is undecided, the exit code is 3. Otherwise, the exit code is 0.
    """
    check_gates(given)
    result: Callable[[Namespace], AnyReport] = _report_of_predictions
    if given.labels_prefix is not None:
        result = _report_of_labels
    elif given.counts:
        result = _report_of_counts
    elif given.value is not None:
        result = _report_of_scores
    found = deliver(result, given, [given.file], shown(given.file.name))
    return exit_code(found.outline().gates)


def _report_of_predictions(given: Namespace) -> AnyReport:
    shares, question = _shares(given.prevalence), Selection.of(given)
    if shares is not None and (given.prob or given.cluster):
        raise InputError(
            "--prevalence cannot be used together with --prob or --cluster. Leave out"
            " --prevalence, or leave out --prob and --cluster."
        )
    if given.id is not None and not given.examples:
        raise InputError(
            "--id is used only together with --examples. Add --examples NUMBER, the number of"
            " rows to list with their ids, or leave out --id."
        )
    with progress("rows") as on_progress:
        found = count_predictions(parts_of(given.file), question, on_progress)
    if found.positive is None:
        warn_of_other_names(found.names("true"), found.names("pred"))

    def of_group(name: str, level: float) -> Report:
        return report_of(found.of_group(name), shares, level)

    with progress("computing intervals"), refusals(given.file):
        total = _gated(given, lambda level: report_of(found, shares, level))
        if given.examples:
            total = replace(total, listed=_listed(found, total, given.examples))
        return total if given.group is None else grouped_report(total, of_group, found.groups())


def _gated(given: Namespace, report_at: Callable[[float], Report]) -> Report:
    """Make the report, and add the verdicts on the gates."""
    report_at = cache(report_at)
    report = report_at(given.level)
    gates = verdicts(given, lambda level: report_at(level).values(), report.num_examples)
    return replace(report, gates=gates)


def _report_of_counts(given: Namespace) -> AnyReport:
    check_alone(
        "report", given, "counts", "true", "pred", "weight", "pos-label", "prevalence", "gate"
    )
    paths = parts_of(given.file)
    if len(paths) > 1:
        raise InputError(
            f"{shown(given.file)}: --counts reads a single file, but the command has {len(paths)}"
            " files. Give one file only."
        )
    found, shares = read_counts(paths[0], Selection.of(given)), _shares(given.prevalence)
    if given.pos_label is not None and not found.is_of_cells:
        raise InputError(
            "--counts and --pos-label cannot be used together if FILE is a confusion matrix."
            " Leave out --pos-label."
        )

    def at(level: float) -> Report:
        report = Report.from_counts(
            found.counts,
            class_names=found.class_names,
            num_ignored=found.num_ignored,
            level=level,
        )
        return report if shares is None else report_at_prevalence(report, shares)

    with progress("computing intervals"), refusals(given.file):
        return _gated(given, at)


def _report_of_labels(given: Namespace) -> TabularReport:
    check_alone("report", given, "labels-prefix")
    true, pred, names = read_labels(parts_of(given.file), given.labels_prefix, given.separator)
    return multilabel_report(true, pred, label_names=names, level=given.level)


def _report_of_scores(given: Namespace) -> TabularReport:
    check_alone("report", given, "value", "bounds", "id-of-examples", "cluster", "group", "gate")
    scores = read_scores(given, [(given.file, given.value)])
    found_at = cache(partial(score_values, scores))

    def values(level: float) -> dict[str, Any]:
        return {given.value: found_at(level)["mean"], **found_at(level)}

    with progress("computing intervals"), refusals(given.file):
        gates = verdicts(given, values, scores.sample.number)
        return report_of_scores(scores, found_at(given.level), given.level, gates)


def _shares(prevalence: str | None) -> dict[str, float] | None:
    """Parse `cat=0.1,dog=0.9`."""
    if prevalence is None:
        return None
    parts = [part.rpartition("=") for part in prevalence.split(",")]
    try:
        pairs = [(name.strip(), float(share)) for name, _, share in parts]
    except ValueError:
        raise InputError(
            "--prevalence must have the form CLASS=SHARE,CLASS=SHARE, such as 'cat=0.1,dog=0.9',"
            f" got {prevalence!r}."
        ) from None
    shares = dict(pairs)
    are_shares = all(share >= 0 for share in shares.values())
    if len(shares) < len(pairs) or not are_shares or not abs(sum(shares.values()) - 1) < 1e-3:
        raise InputError(
            "--prevalence must give each class one share that is not negative, and the shares"
            f" must sum to 1, got {prevalence!r}. Correct the shares."
        )
    return shares


def report_of(found: Predictions, shares: Mapping[str, float] | None, level: float) -> Report:
    """Make the report on the rows; `shares` are the class shares of --prevalence."""
    options: dict[str, Any] = {"class_names": found.classes, "level": level}
    if not found.is_held:
        report = Report.from_counts(found.counts(), num_ignored=found.ignored(), **options)
        return report if shares is None else report_at_prevalence(report, shares)
    weights, clusters, score = map(found.column, ("weight", "cluster", "score"))
    options |= {"y_prob": found.column("prob"), "sample_weight": weights, "clusters": clusters}
    true = found.ids("true")
    report = make_report(true, found.ids("pred"), **options)
    report = replace(report, counts=whole(report.counts))
    if shares is not None:
        report = report_at_prevalence(report, shares)
    if score is None:
        return report
    if weights is not None:
        raise ValueError(
            "If examples have weights, jaxmetrics has no confidence intervals for metrics of"
            " scores. Leave out --weight or --score."
        )
    counted = true >= 0
    clusters = None if clusters is None else clusters[counted]
    area = delong_interval(true[counted], score[counted], level=level, clusters=clusters)
    return report.with_findings(Findings({"roc_auc": value_of(area, "score")}))


def _listed(found: Predictions, report: Report, number: int) -> list[dict[str, Any]]:
    """List rows of the five most frequent kinds of mistakes, kind by kind."""
    kinds = report.mistakes()
    places = [i for kind in kinds for i in kind.indices[: -(-number // len(kinds))]][:number]
    ids = {"true": found.ids("true"), "predicted": found.ids("pred")}
    return found.listed(places, found.confidence, **ids)
