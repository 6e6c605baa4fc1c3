"""The commands `report`, `compare`, `leaderboard` and `plan`: read files, and compute a report."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxmetrics._text.wording import printable
from jaxmetrics.cli._classes import warn_of_other_names
from jaxmetrics.cli._errors import InputError, check_alone, listed, refusals, shortened, shown
from jaxmetrics.cli._matching import match_predictions
from jaxmetrics.cli._options import refuse
from jaxmetrics.cli._other_files import read_counts, read_labels, read_scores
from jaxmetrics.cli._outputs import deliver, progress
from jaxmetrics.cli._predictions import (
    Predictions,
    Selection,
    count_predictions,
    whole,
)
from jaxmetrics.cli._reader import is_pipe, opened, parts_of
from jaxmetrics.clusters import numbered_clusters
from jaxmetrics.comparisons.classifiers import check_rope, compare_predictions
from jaxmetrics.comparisons.leaderboards import leaderboard as rank
from jaxmetrics.comparisons.scores import score_leaderboard
from jaxmetrics.counts import paired_confusion_matrix
from jaxmetrics.estimates import Metric
from jaxmetrics.metrics import binary, f1, precision, recall, specificity
from jaxmetrics.ranking import delong_interval
from jaxmetrics.reports.contents import Findings, SampleSize
from jaxmetrics.reports.formats import AnyReport, TabularReport
from jaxmetrics.reports.gates import Gate, JudgedGate, exit_code, judged
from jaxmetrics.reports.grouped import grouped_report
from jaxmetrics.reports.label_sets import multilabel_report
from jaxmetrics.reports.labelled import report as make_report
from jaxmetrics.reports.overall_values import COMPARED
from jaxmetrics.reports.pairs import ComparisonReport, compared_areas, comparison_report
from jaxmetrics.reports.plans import difference_plan, scores_plan, width_plan
from jaxmetrics.reports.prevalences import report_at_prevalence
from jaxmetrics.reports.rankings import ranking_report
from jaxmetrics.reports.score_means import report_of_scores, score_values
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.values import ReportValue, compared, value_of

__all__ = ["compare", "leaderboard", "plan", "report"]

_OF_POSITIVE: dict[str, Metric] = {
    "precision": binary(precision),
    "recall": binary(recall),
    "specificity": binary(specificity),
    "f1": binary(f1),
}


def report(given: Namespace) -> int:
    """Run `jaxmetrics report FILE`, and return the exit code.

    A `--gate`, such as `accuracy >= 0.9`, is a bound on a metric. If a gate fails, the exit code is
    1. If no gate fails, but the confidence interval of a metric contains the bound of its gate, so
    that the gate is undecided, the exit code is 3. Otherwise, the exit code is 0.
    """
    _check_gates(given)
    result: Callable[[Namespace], AnyReport] = _report_of_predictions
    if given.labels_prefix is not None:
        result = _report_of_labels
    elif given.counts:
        result = _report_of_counts
    elif given.value is not None:
        result = _means_of_scores
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
        return _report_of(found.of_group(name), shares, level)

    with progress("computing intervals"), refusals(given.file):
        total = _gated(given, lambda level: _report_of(found, shares, level))
        if given.examples:
            total = replace(total, listed=_listed(found, total, given.examples))
        return total if given.group is None else grouped_report(total, of_group, found.groups())


def _gated(given: Namespace, report_at: Callable[[float], Report]) -> Report:
    """Make the report, and add the verdicts on the gates."""
    report_at = cache(report_at)
    report = report_at(given.level)
    gates = _verdicts(given, lambda level: report_at(level).values(), report.num_examples)
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


def _means_of_scores(given: Namespace) -> TabularReport:
    """Report on the scores of one system, or compare the scores of two systems."""
    files = [given.a, given.b] if "a" in given else [given.file]
    command = "report" if len(files) == 1 else "compare"
    check_alone(command, given, "value", "bounds", "id", "cluster", "group", "gate")
    scores = read_scores(given, [(file, given.value) for file in files])
    found_at = cache(partial(score_values, scores))

    def judged_value(x: Any) -> Any:
        return x.difference if len(files) == 2 else x

    def values(level: float) -> dict[str, Any]:
        found = dict(found_at(level))
        groups = {name: judged_value(x) for name, x in found.pop("group", {}).items()}
        values = {name: judged_value(x) for name, x in found.items()}
        return {given.value: values["mean"], **values, **({"group": groups} if groups else {})}

    with progress("computing intervals"), refusals(files[0]):
        what = ("A - B", "compared") if len(files) == 2 else ()
        gates = _verdicts(given, values, scores.sample.number, *what)
        names = {"names": (shown(given.a), shown(given.b))} if len(files) == 2 else {}
        return report_of_scores(scores, found_at(given.level), given.level, gates, **names)


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


def _report_of(found: Predictions, shares: Mapping[str, float] | None, level: float) -> Report:
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


def compare(given: Namespace) -> int:
    """Run `jaxmetrics compare A B`, and return the exit code, as `report` does."""
    _check_gates(given)
    files = given.a, given.b
    title = " and ".join(shown(file.name) for file in files)
    result = _comparison if given.value is None else _means_of_scores
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
            more[name] = compared(comparison, "likelihood", "likelihood")
        if question.score is not None:
            scores: Any = [x.column("score") for x in files]
            more["roc_auc"] = compared_areas(true == 1, scores, **options)
        return replace(report, figures={**report.figures, **more})

    def differences(level: float) -> dict[str, Any]:
        return {name: x.difference for name, x in at(level).figures.items()}

    with progress("computing intervals"), refusals(given.a):
        report = at(given.level)
        gates = _verdicts(given, differences, report.num_examples, "A - B", "compared")
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


def _check_gates(given: Namespace) -> None:
    """Exit with an error if a gate cannot be parsed, before files are read."""
    for text in given.gate:
        try:
            Gate.parsed(text)
        except ValueError:
            refuse(
                "--gate must have a form such as 'accuracy >= 0.9', 'recall[cat] >= 0.8' or"
                f" 'log_loss <= 0.02', got {shortened(text)!r}"
            )


def _verdicts(
    given: Namespace,
    values_at: Callable[[float], Mapping[str, Any]],
    number: float,
    what: str = "",
    verb: str = "reported",
) -> list[JudgedGate]:
    """Decide the gates.

    Args:
        given: the parsed arguments.
        values_at: a function of a confidence level that returns the values of the report; values
            per class are dicts.
        number: the number of examples.
        what: what the values describe, such as "A - B".
        verb: what was done with the metrics, for an error message: "reported" or "compared".
    """

    def value(gate: Gate, level: float) -> ReportValue:
        known = values_at(level)
        if gate.name not in known:
            raise InputError(
                f"--gate names the unknown metric {shortened(gate.name)!r}. The {verb} metrics are"
                f" {', '.join(known)}."
            )
        found = known[gate.name]
        if not isinstance(found, Mapping):
            if gate.of_class is not None:
                raise InputError(
                    f"--gate names a class for the metric {gate.name}, which has a single value"
                    " for all classes. Leave out the brackets and the class."
                )
            return found
        if gate.of_class not in found:
            raise InputError(
                f"--gate names the metric {gate.name}, which has one value for each class. Write"
                " one of the classes in brackets, such as"
                f" {gate.name}[{shortened(next(iter(found)))}]. The classes are {listed([*found])}."
            )
        return found[gate.of_class]

    gates = [Gate.parsed(text) for text in given.gate]
    return judged(gates, value, level=given.level, number=number, what=what)
