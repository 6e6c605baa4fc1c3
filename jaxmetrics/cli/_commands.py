"""What the commands do: read, compute, and write what is asked for, or a line that says why not."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import typer

try:
    from jaxmetrics.cli._errors import InputError, named, refusals, shown
    from jaxmetrics.cli._judged_files import Judged, read_judged
except ModuleNotFoundError as error:
    raise SystemExit(
        f"jaxmetrics: the command line needs {error.name}: pip install 'jaxmetrics[cli]'"
    ) from None

from jaxmetrics._wording import percent, title_of
from jaxmetrics.cli._classes import Classes
from jaxmetrics.cli._counted_files import Counted, count_predictions
from jaxmetrics.cli._gates import GatedReport, parsed
from jaxmetrics.cli._inputs import parts_of
from jaxmetrics.cli._matrices import long_table, read_counts
from jaxmetrics.cli._multilabel_files import count_labels
from jaxmetrics.cli._outputs import Output, deliver, progress, waiting
from jaxmetrics.cli._rows import Question
from jaxmetrics.cli._sources import Columns, is_pipe, opened
from jaxmetrics.comparisons import leaderboard as rank
from jaxmetrics.comparisons.differences import check_rope
from jaxmetrics.counts import paired_confusion_matrix
from jaxmetrics.estimates import Metric
from jaxmetrics.intervals.clusters import numbered_clusters
from jaxmetrics.metrics import binary, f1, precision, recall, specificity
from jaxmetrics.planning import detectable_difference, required_examples
from jaxmetrics.ranking import delong_interval
from jaxmetrics.reports import Report, comparison_report
from jaxmetrics.reports._overall import COMPARED
from jaxmetrics.reports.groups import GroupedReport, grouped_report
from jaxmetrics.reports.multilabel import multilabel_report
from jaxmetrics.reports.paired_probabilities import (
    compared_areas,
    compared_probabilities,
    compared_rates,
)
from jaxmetrics.reports.prevalences import report_at_prevalence
from jaxmetrics.reports.probabilities import findings_of_clusters
from jaxmetrics.reports.rankings import ranking_report
from jaxmetrics.reports.states import confusion_matrices
from jaxmetrics.reports.tabular import TabularReport
from jaxmetrics.reports.values import value_of
from jaxmetrics.streaming import load_state, save_state
from jaxmetrics.streaming.states import EvaluatorState, merge_checked

__all__ = [
    "Columns",
    "Output",
    "Question",
    "compare",
    "leaderboard",
    "merge",
    "plan_difference",
    "plan_width",
    "report_counts",
    "report_labels",
    "report_predictions",
]

_OF_POSITIVE: dict[str, Metric] = {
    "precision": binary(precision),
    "recall": binary(recall),
    "specificity": binary(specificity),
    "f1": binary(f1),
}


def report_predictions(
    file: Path, question: Question, prevalence: str | None, output: Output
) -> None:
    """Run `jaxmetrics report FILE`."""

    def result() -> Report | GroupedReport:
        paths = parts_of(file)
        with progress() as on_progress:
            counted = count_predictions(paths, question, on_progress)
        with waiting("computing intervals"), refusals(file):
            return _report_of(counted, _shares(prevalence), output.level)

    deliver(result, output, (file,))


def _shares(prevalence: str | None) -> dict[str, float] | None:
    """Parse `cat=0.1,dog=0.9`."""
    if prevalence is None:
        return None
    pairs = [part.rpartition("=") for part in prevalence.split(",")]
    try:
        return {name.strip(): float(share) for name, _, share in pairs}
    except ValueError:
        raise InputError(
            f"--prevalence must be like 'cat=0.1,dog=0.9', got {prevalence!r}"
        ) from None


def _report_of(
    counted: Counted, shares: Mapping[str, float] | None, level: float
) -> Report | GroupedReport:
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
        report = report.with_probabilities(sums)
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
        report = replace(report, overall={**report.overall, "roc_auc": value_of(area, "score")})
    return report


def report_counts(file: Path, question: Question, prevalence: str | None, output: Output) -> None:
    """Run `jaxmetrics report FILE --counts`."""

    def result() -> Report | GroupedReport:
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
        return multilabel_report(sums, names, output.level)

    deliver(result, output, (file,))


def compare(
    file_a: Path,
    file_b: Path,
    question: Question,
    rope: float,
    gates: Sequence[str],
    output: Output,
) -> None:
    """Run `jaxmetrics compare A B`."""

    def result() -> GatedReport:
        required = [parsed(gate) for gate in gates]
        with refusals("--rope"):
            check_rope(rope)
        judged = read_judged([(file_a, question), (file_b, question)])
        with waiting("computing intervals"), refusals(file_a):
            report = comparison_report(
                judged.true,
                *judged.preds,
                clusters=judged.clusters,
                class_names=judged.class_names,
                names=(shown(file_a), shown(file_b)),
                rope=rope,
                level=output.level,
            )
            figures = {
                **report.figures,
                **_more_figures(judged, question.positive, rope, output.level),
            }
        report = replace(report, num_ignored=judged.num_ignored, figures=figures)
        return GatedReport.of(report, required)

    report = deliver(result, output, (file_a, file_b))
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _more_figures(
    judged: Judged, positive: str | None, rope: float, level: float
) -> dict[str, Any]:
    options: dict[str, Any] = {"rope": rope, "level": level, "clusters": judged.clusters}
    figures: dict[str, Any] = {}
    if positive is not None:
        figures |= compared_rates(judged.true, judged.preds, _OF_POSITIVE, **options)
    if judged.probs is not None:
        names = judged.class_names
        figures |= compared_probabilities(judged.true, judged.probs, names, **options)
    if judged.scores is not None:
        figures["roc_auc"] = compared_areas(judged.true == 1, judged.scores, **options)
    return figures


def leaderboard(
    files: Sequence[Path],
    preds: Sequence[str],
    question: Question,
    metric: str,
    output: Output,
) -> None:
    """Run `jaxmetrics leaderboard FILE...`."""

    def result() -> TabularReport:
        inputs, names = _contenders(files, preds, question)
        judged = read_judged(inputs)
        function = _metric(metric, question.positive)
        with waiting("ranking"), refusals(shown(files[0])):
            board = rank(
                0,
                function,
                judged.true,
                judged.preds,
                num_classes=len(judged.class_names),
                clusters=judged.clusters,
                level=output.level,
            )
        return ranking_report(
            board,
            names,
            metric,
            num_examples=len(judged.true),
            num_ignored=judged.num_ignored,
            num_clusters=None if judged.clusters is None else len(set(judged.clusters)),
            level=output.level,
        )

    deliver(result, output, files)


def _contenders(
    files: Sequence[Path], preds: Sequence[str], question: Question
) -> tuple[list[tuple[Path, Question]], list[str]]:
    """Find the predictions to rank: columns of one file, or a column of each of many."""

    def asked(pred: str | None) -> Question:
        return replace(question, columns=replace(question.columns, pred=pred))

    paths = [path for file in files for path in ([file] if len(files) > 1 else parts_of(file))]
    if len(paths) > 1:
        if len(preds) > 1:
            raise InputError("of many files --pred names one column, which each of them has")
        pred = preds[0] if preds else None
        return [(path, asked(pred)) for path in paths], [shown(path) for path in paths]
    (path,) = paths
    if is_pipe(path):
        raise InputError(
            f"{shown(path)}: it is read once for each classifier, and cannot be a pipe"
        )
    if len(preds) < 2:
        with named(path), opened(path, question.separator) as source:
            names = source.names
        found = [name for name in names if name.startswith(preds[0] if preds else "y_pred")]
        if len(found) < 2:
            raise InputError(
                f"{shown(path)}: a leaderboard needs two columns of predictions: --pred names one,"
                " and is repeatable; without it, all that begin with y_pred are taken"
            )
        preds = found
    return [(path, asked(pred)) for pred in preds], list(preds)


def _metric(name: str, positive: str | None) -> Metric:
    known = COMPARED | (_OF_POSITIVE if positive is not None else {})
    if name not in known:
        hint = "" if positive is not None else f"; with --pos-label {', '.join(_OF_POSITIVE)}"
        raise InputError(f"--metric is one of {', '.join(known)}{hint}, got {name!r}")
    return known[name]


def plan_width(
    file: Path, question: Question, metric: str, half_width: float, is_matrix: bool, output: Output
) -> None:
    """Run `jaxmetrics plan FILE --half-width H`."""

    def result() -> TabularReport:
        if is_matrix:
            matrix, _ = read_counts(file, question.separator)
        else:
            counted = count_predictions(parts_of(file), question)
            matrix = counted.table(counted.classes())
        with refusals("--half-width"):
            function = _metric(metric, question.positive)
            number = float(
                required_examples(function, matrix, half_width=half_width, level=output.level)
            )
        total = float(np.sum(matrix))
        return _plan(
            number,
            f"give {title_of(metric)} an interval of ± {half_width:g}",
            f"{total:.10g} examples were counted.",
            {"metric": metric, "half_width": half_width, "level": output.level},
        )

    deliver(result, output, (file,))


def plan_difference(
    files: tuple[Path, Path],
    question: Question,
    metric: str,
    difference: float,
    power: float,
    output: Output,
) -> None:
    """Run `jaxmetrics plan A B --difference D`."""

    def result() -> TabularReport:
        judged = read_judged([(file, question) for file in files])
        k, n = len(judged.class_names), len(judged.true)
        with refusals("--difference"):
            paired = paired_confusion_matrix(judged.true, *judged.preds, num_classes=k)
            function = _metric(metric, question.positive)
            shown_by_these = float(
                detectable_difference(function, paired, n, power=power, level=output.level)
            )
            if not difference > 0:
                raise ValueError(f"it must be above 0, got {difference!r}")
        # Errors fall as the square root of the number of examples.
        number = n * (shown_by_these / difference) ** 2
        content = {"metric": metric, "difference": difference, "power": power}
        return _plan(
            number,
            f"show a difference of {difference:g} in {title_of(metric)} with a probability of"
            f" {power:g}",
            f"{n} examples were judged by both; so many show one of {shown_by_these:.3g}.",
            {**content, "level": output.level, "detectable_difference": shown_by_these},
        )

    deliver(result, output, files)


def _plan(number: float, purpose: str, counted: str, content: dict[str, Any]) -> TabularReport:
    """Report a number of examples."""
    if np.isnan(number):
        raise InputError("these examples do not say how much it varies: nothing went wrong")
    number = float(np.ceil(number))
    content = {"num_examples": int(number), **content}
    notes = [
        counted,
        f"Intervals: {percent(content['level'])}; by the delta method, whose variance falls as"
        " 1 / n: a guide, not a guarantee.",
    ]
    return TabularReport(
        f"{number:,.0f} examples like these {purpose}.", {}, notes, content, [content]
    )


def merge(files: Sequence[Path], class_names: Sequence[str] | None, output: Output) -> None:
    """Run `jaxmetrics merge STATE...`."""

    def result() -> Report:
        jax.config.update("jax_enable_x64", True)  # states may hold sums in double precision
        state = _merged_state(files)
        for file in output.state_files:
            _save_state(file, state)
        is_report_wanted = output.targets or output.json is not None or not output.state_files
        if not confusion_matrices(state) and not is_report_wanted:
            number = f"{len(files)} states merged"
            print(f"jaxmetrics: {number}; they hold no counts to report on", file=sys.stderr)
            raise typer.Exit
        with waiting("computing intervals"), refusals(files[0]):
            return Report.from_state(state, class_names=class_names, level=output.level)

    deliver(result, output, files)


def _merged_state(files: Sequence[Path]) -> EvaluatorState:
    state = _read_state(files[0])
    for file in files[1:]:
        with refusals(file):
            state = merge_checked(state, _read_state(file))
    return state


def _read_state(file: Path) -> EvaluatorState:
    try:
        return load_state(file)
    except ValueError as error:  # which names the file
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{shown(file)}: {error.strerror}") from None


def _save_state(file: Path, state: EvaluatorState) -> None:
    try:
        save_state(file, state)
    except OSError as error:
        raise InputError(f"{shown(file)}: cannot be written: {error.strerror}") from None
