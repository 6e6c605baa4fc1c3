"""The commands `compare`, `leaderboard` and `plan`: read files, and compute and write a report."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxmetrics._wording import printable
from jaxmetrics.cli._errors import InputError, check_alone, refusals, shown
from jaxmetrics.cli._gates import check_gates, verdicts
from jaxmetrics.cli._matrices import read_counts
from jaxmetrics.cli._options import refuse
from jaxmetrics.cli._outputs import deliver, progress
from jaxmetrics.cli._predictions import (
    Predictions,
    Selection,
    count_predictions,
    match_predictions,
)
from jaxmetrics.cli._reader import is_pipe, opened, parts_of
from jaxmetrics.cli._score_files import read_scores
from jaxmetrics.clusters import numbered_clusters
from jaxmetrics.comparisons.classifiers import check_rope, compare_predictions
from jaxmetrics.comparisons.leaderboards import leaderboard as rank
from jaxmetrics.comparisons.scores import score_leaderboard
from jaxmetrics.counts import paired_confusion_matrix
from jaxmetrics.estimates import Metric
from jaxmetrics.metrics import binary, f1, precision, recall, specificity
from jaxmetrics.reports.contents import SampleSize, reported_comparison
from jaxmetrics.reports.formats import AnyReport, TabularReport
from jaxmetrics.reports.gates import exit_code
from jaxmetrics.reports.overall_values import COMPARED
from jaxmetrics.reports.pairs import (
    ComparisonReport,
    compared_areas,
    comparison_report,
)
from jaxmetrics.reports.plans import difference_plan, scores_plan, width_plan
from jaxmetrics.reports.rankings import ranking_report
from jaxmetrics.reports.score_means import report_of_scores, score_values

__all__ = ["compare", "leaderboard", "plan"]

_OF_POSITIVE: dict[str, Metric] = {
    "precision": binary(precision),
    "recall": binary(recall),
    "specificity": binary(specificity),
    "f1": binary(f1),
}


def compare(given: Namespace) -> int:
    """Run `jaxmetrics compare A B`, and return the exit code.

    A `--gate`, such as `accuracy >= 0.9`, is a bound on a metric. If a gate fails, the exit code is
    1. If no gate fails, but the confidence interval of a metric contains the bound of its gate, so
    that the gate is undecided, the exit code is 3. Otherwise, the exit code is 0.
    """
    check_gates(given)
    files = given.a, given.b
    title = " and ".join(shown(file.name) for file in files)
    result = _comparison if given.value is None else _comparison_of_scores
    return exit_code(deliver(result, given, files, title).outline().gates)


def _comparison(given: Namespace) -> ComparisonReport:
    _refuse_groups("compare", given)
    with refusals("--rope"):
        check_rope(given.rope)
    question = Selection.of(given)
    files = match_predictions([(file, question) for file in (given.a, given.b)])
    first, names = files[0], (shown(given.a), shown(given.b))
    true, preds, probs = first.ids("true"), _preds(files), [x.column("prob") for x in files]

    @cache
    def at(level: float) -> ComparisonReport:
        options: dict[str, Any] = {"clusters": first.column("cluster"), "rope": given.rope}
        options["level"] = level
        report = comparison_report(
            true,
            *preds,
            y_prob_a=probs[0],
            y_prob_b=probs[1],
            class_names=first.classes,
            names=names,
            **options,
        )
        more = {}
        for name, metric in _OF_POSITIVE.items() if given.pos_label is not None else ():
            comparison = compare_predictions(metric, true, *preds, num_classes=2, **options)
            more[name] = reported_comparison(comparison, "likelihood", "likelihood")
        if question.score is not None:
            scores: Any = [x.column("score") for x in files]
            more["roc_auc"] = compared_areas(true == 1, scores, **options)
        return replace(report, figures={**report.figures, **more})

    def differences(level: float) -> dict[str, Any]:
        return {name: x.difference for name, x in at(level).figures.items()}

    with progress("computing intervals"), refusals(given.a):
        report = at(given.level)
        gates = verdicts(given, differences, report.num_examples, "A - B", "compared")
        listed = _differing(files, given.examples)
        ignored = first.num_rows - len(true)
        return replace(report, num_ignored=ignored, listed=listed, gates=gates)


def _preds(files: Sequence[Predictions]) -> np.ndarray:
    """Return the predictions of M classifiers, `(M, n)`."""
    return np.stack([file.ids("pred") for file in files])


def _differing(files: Sequence[Predictions], number: int) -> list[dict[str, Any]]:
    """List `number` examples that only A or only B predicts correctly. Examples for which the wrong
    classifier is most confident come first.
    """
    found, true, preds = [], files[0].ids("true"), _preds(files)
    for right, wrong in ((0, 1), (1, 0)):
        places = np.flatnonzero((preds[right] == true) & (preds[wrong] != true))
        confidence = files[wrong].confidence
        if confidence is not None:
            places = places[np.argsort(-confidence[places], kind="stable")]
        rows = files[0].listed(
            places[: -(-number // 2)].tolist(), confidence, true=true, A=preds[0], B=preds[1]
        )
        found += [{"right": "AB"[right], **row} for row in rows]
    return found[:number]


def _refuse_groups(command: str, given: Namespace) -> None:
    if given.group is not None:
        raise InputError(
            f"the command {command} accepts --group only together with --value. Add --value with"
            " the name of a column of scores, or leave out --group."
        )


def _comparison_of_scores(given: Namespace) -> AnyReport:
    check_alone("compare", given, "value", "bounds", "id", "cluster", "group", "gate")
    scores = read_scores(given, [(file, given.value) for file in (given.a, given.b)])
    found_at = cache(partial(score_values, scores))

    def values(level: float) -> dict[str, Any]:
        found = found_at(level)
        gaps = {name: x.difference for name, x in found.items() if name != "group"}
        groups = {name: x.difference for name, x in found.get("group", {}).items()}
        return {given.value: gaps["mean"], **gaps, **({"group": groups} if groups else {})}

    with progress("computing intervals"), refusals(given.a):
        gates = verdicts(given, values, scores.sample.number, "A - B", "compared")
        names = shown(given.a), shown(given.b)
        return report_of_scores(scores, found_at(given.level), given.level, gates, names)


def leaderboard(given: Namespace) -> None:
    """Run `jaxmetrics leaderboard FILE...`."""
    result = _ranking if given.value is None else _ranking_of_scores
    deliver(result, given, given.files, "Leaderboard")


def _ranking_of_scores(given: Namespace) -> TabularReport:
    check_alone("leaderboard", given, "value", "bounds", "id", "cluster", "group")
    paths = _paths(given.files)
    columns = [given.value] if len(paths) > 1 else given.value.split(",")
    if len(paths) == len(columns) == 1:
        raise InputError(
            "if a leaderboard reads a single file, --value must name two columns or more, one"
            " column for each system. Write commas between the names."
        )
    inputs, names = _contenders(paths, columns)
    scores = read_scores(given, inputs)
    with progress("ranking"), refusals(given.files[0]):
        board = score_leaderboard(
            scores.values,
            bounds=scores.bounds,
            clusters=scores.clusters,
            groups=scores.groups,
            level=given.level,
        )
    metric = given.value if len(paths) > 1 else "mean score"
    if scores.groups is not None:
        metric = f"{metric}, mean of groups"
    return ranking_report(
        board, names, metric, scores.sample, level=given.level, title=printable(metric)
    )


def _ranking(given: Namespace) -> TabularReport:
    _refuse_groups("leaderboard", given)
    paths, question = _paths(given.files), Selection.of(given)
    inputs, names = _contenders(paths, _columns_of_predictions(paths, question, given.pred))
    files = match_predictions([(path, replace(question, pred=pred)) for path, pred in inputs])
    true, clusters = files[0].ids("true"), files[0].column("cluster")
    function = _metric(given.metric, given.pos_label)
    with progress("ranking"), refusals(given.files[0]):
        board = rank(
            function,
            true,
            _preds(files),
            num_classes=len(files[0].classes),
            clusters=clusters,
            level=given.level,
        )
    number = None if clusters is None else len({*clusters})
    sample = SampleSize(len(true), files[0].num_rows - len(true), number)
    return ranking_report(board, names, given.metric, sample, level=given.level)


def _paths(files: Sequence[Path]) -> Sequence[Path]:
    """List the files of the systems: the given files, or all files of a single folder or glob."""
    return files if len(files) > 1 else parts_of(files[0])


def _names(paths: Sequence[Path]) -> list[str]:
    """Name files by their paths, without the folders that all files share."""
    full = [path.absolute() for path in paths]
    folder = os.path.commonpath([path.parent for path in full])
    return [shown(path.relative_to(folder)) for path in full]


def _contenders(
    paths: Sequence[Path], columns: Sequence[Any]
) -> tuple[list[tuple[Path, Any]], list[str]]:
    """Return the file and the column of each system, and the names of the systems.

    The systems are either one column of many files, or many columns of one file.
    """
    if len(paths) > 1:
        return [(path, columns[0]) for path in paths], _names(paths)
    return [(paths[0], column) for column in columns], list(columns)


def _columns_of_predictions(
    paths: Sequence[Path], question: Selection, given: Sequence[str]
) -> Sequence[str | None]:
    """Return the given columns of predictions, or the columns that begin with y_pred in a single
    file.
    """
    path, *others = paths
    if others and len(given) > 1:
        raise InputError(
            "if a leaderboard reads several files, --pred must be given once and must name a"
            " column that all the files have."
        )
    if others:
        return given or [None]
    if is_pipe(path):
        raise InputError(
            f"{shown(path)} is a pipe, which can be read only once, but this command reads its"
            " input twice. Save the data to a file and give the name of that file."
        )
    if len(given) > 1:
        return given
    with opened(path, question.separator) as table:
        table.label(question.true)
        found = given or [name for name in table.names if name.startswith("y_pred")]
    if len(found) < 2:
        raise InputError(
            f"{shown(path)}: a leaderboard of a single file needs at least two columns of"
            " predictions. Repeat --pred for each column, or leave out --pred to use all columns"
            " whose names begin with y_pred."
        )
    return found


def _metric(name: str, positive: str | None) -> Metric:
    known = COMPARED | (_OF_POSITIVE if positive is not None else {})
    if name not in known:
        hint = "" if positive is not None else f"; with --pos-label {', '.join(_OF_POSITIVE)}"
        raise InputError(f"--metric is one of {', '.join(known)}{hint}, got {name!r}")
    return known[name]


def plan(given: Namespace) -> None:
    """Run `jaxmetrics plan`."""
    files = given.files
    if given.counts and len(files) > 1:
        refuse(
            "--counts reads a single FILE, because the rows of two confusion matrices are not"
            " paired. Leave out --counts, or give one FILE."
        )
    is_width, is_difference = given.half_width is not None, given.difference is not None
    if (is_width, is_difference, len(files)) not in ((True, False, 1), (False, True, 2)):
        refuse("give FILE --half-width H, or FILE FILE --difference D")
    result = _plan_of_width if is_width else _plan_of_difference
    deliver(result if given.value is None else _plan_of_scores, given, files, "Plan")


def _plan_of_scores(given: Namespace) -> TabularReport:
    asked = "value", "bounds", "id", "cluster", "half-width", "difference", "power"
    check_alone("plan", given, *asked)
    scores = read_scores(given, [(file, given.value) for file in given.files])
    with refusals("plan"):
        return scores_plan(
            scores,
            half_width=given.half_width,
            difference=given.difference,
            power=given.power,
            level=given.level,
        )


def _plan_of_width(given: Namespace) -> TabularReport:
    (file,), question = given.files, Selection.of(given)
    if given.counts and given.cluster is not None:
        raise InputError(
            "--cluster cannot be used together with --counts, because a table of counts does not"
            " say which cluster a row belongs to. Leave out one of these options."
        )
    if given.counts:
        matrix = read_counts(file, question).counts
    else:
        matrix = count_predictions(parts_of(file), question).counts()
    function = _metric(given.metric, given.pos_label)
    with refusals("plan"):
        return width_plan(function, given.metric, matrix, given.half_width, given.level)


def _plan_of_difference(given: Namespace) -> TabularReport:
    question = Selection.of(given)
    files = match_predictions([(file, question) for file in given.files])
    clusters, options = files[0].column("cluster"), dict[str, Any]()
    if clusters is not None:
        options["groups"], options["num_groups"] = numbered_clusters(clusters, clusters.shape)
    paired = paired_confusion_matrix(
        files[0].ids("true"), *_preds(files), num_classes=len(files[0].classes), **options
    )
    function = _metric(given.metric, given.pos_label)
    with refusals("plan"):
        return difference_plan(
            function, given.metric, paired, given.difference, given.power, given.level
        )
