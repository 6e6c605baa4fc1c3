"""The commands `report`, `compare`, `leaderboard` and `plan`: read files, and compute a report."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from jaxmetrics import (
    ComparisonReport,
    Report,
    compare_predictions,
    comparison_report,
    delong_interval,
    f1,
    macro,
    mean_interval,
    multilabel_report,
    paired_confusion_matrix,
    precision,
    recall,
    score_leaderboard,
    specificity,
)
from jaxmetrics import leaderboard as rank
from jaxmetrics import report as make_report
from jaxmetrics._text.names_elsewhere import NAMES_HERE
from jaxmetrics._text.wording import printable
from jaxmetrics.cli._classes import is_number
from jaxmetrics.cli._errors import InputError, listed, refusals, shortened, shown
from jaxmetrics.cli._matching import match_predictions
from jaxmetrics.cli._options import check_alone
from jaxmetrics.cli._other_files import listed_items, read_counts, read_labels, read_scores
from jaxmetrics.cli._outputs import progress
from jaxmetrics.cli._predictions import Predictions, count_predictions
from jaxmetrics.cli._reader import parts_of
from jaxmetrics.cli._systems import files_of, systems_of
from jaxmetrics.comparisons.classifiers import check_rope, cubes_of_clusters
from jaxmetrics.estimates import Metric
from jaxmetrics.reports.contents import Findings, SampleSize
from jaxmetrics.reports.formats import AnyReport, TabularReport
from jaxmetrics.reports.gates import Gate, judged
from jaxmetrics.reports.grouped import grouped_report
from jaxmetrics.reports.overall_values import metrics_of
from jaxmetrics.reports.pairs import compared_areas
from jaxmetrics.reports.plans import difference_plan, scores_plan, width_plan
from jaxmetrics.reports.prevalences import report_at_prevalence
from jaxmetrics.reports.probabilities import value_of_area
from jaxmetrics.reports.rankings import ranking_report
from jaxmetrics.reports.score_means import report_of_scores, with_items
from jaxmetrics.reports.singles import whole, with_invalid_last
from jaxmetrics.reports.values import Compared, ReportValue, compared, values_of

__all__ = ["compare", "leaderboard", "plan", "report"]

_POSITIVE_METRICS: dict[str, Metric] = {
    name: macro(rate, classes=[1])
    for name, rate in (
        ("precision", precision),
        ("recall", recall),
        ("specificity", specificity),
        ("f1", f1),
    )
}


def report(options: Namespace) -> AnyReport:
    """Report on the file of `jaxmetrics report FILE`."""
    _parse_gates(options)
    if options.labels_prefix is not None:
        check_alone(options, "labels-prefix")
        paths = parts_of(options.files[0])
        true, pred, names = read_labels(paths, options)
        return multilabel_report(true, pred, label_names=names, level=options.level)
    if options.counts:
        return _report_of_counts(options)
    return _report_of_predictions(options) if options.value is None else _means_of_scores(options)


def _report_of_predictions(options: Namespace) -> AnyReport:
    (file,), shares = options.files, _shares(options.prevalence)
    _check_examples(options)
    if shares is not None and (options.prob or options.cluster):
        raise InputError(
            "--prevalence cannot be used together with --prob or --cluster. Leave out"
            " --prevalence, or leave out --prob and --cluster."
        )
    if options.id is not None and not options.examples:
        raise InputError(
            "--id is used only together with --examples. Add --examples NUMBER, the number of"
            " rows to list with their ids, or leave out --id."
        )
    with progress("rows") as on_progress:
        rows = count_predictions(parts_of(file), options, on_progress)
    if shares is not None and rows.column("cluster") is not None:
        raise InputError(
            f"{shown(file)}: --prevalence has no intervals for items that repeat. Leave out"
            " --prevalence, use --where to select rows, or add --cluster '' if all rows are"
            " independent."
        )

    def of_group(name: str, level: float) -> Report:
        return _report_of(rows.of_group(name), shares, level)

    with progress("computing intervals"), refusals(file):
        total = _gated(options, lambda level: _report_of(rows, shares, level))
        if options.examples:
            total = replace(total, listed=_listed(rows, total, options.examples))
        return total if options.group is None else grouped_report(total, of_group, rows.groups())


def _report_of_counts(options: Namespace) -> AnyReport:
    check_alone(
        options,
        "counts",
        *("true", "pred", "weight", "count", "classes", "pos-label", "prevalence", "invalid"),
        "gate",
    )
    (file,) = options.files
    paths = parts_of(file)
    if len(paths) > 1:
        raise InputError(
            f"{shown(file)}: --counts reads a single file, but the command has {len(paths)}"
            " files. Give one file only."
        )
    matrix, shares = read_counts(paths[0], options), _shares(options.prevalence)
    if options.pos_label is not None and not matrix.is_of_cells:
        raise InputError(
            "--counts and --pos-label cannot be used together if FILE is a confusion matrix."
            " Leave out --pos-label."
        )
    settings: Any = {"class_names": matrix.class_names, "num_ignored": matrix.num_ignored}
    settings["invalid"] = options.invalid

    def report_at(level: float) -> Report:
        report = Report.from_counts(matrix.counts, level=level, **settings)
        return report if shares is None else report_at_prevalence(report, shares)

    with progress("computing intervals"), refusals(file):
        return _gated(options, report_at)


def _check_examples(options: Namespace) -> None:
    """Raise an error if the options of listed rows do not fit together."""
    if options.examples < 0:
        raise InputError(f"--examples must be 0 or more, got {options.examples}")
    if options.show and not options.examples:
        raise InputError(
            "--show is used only together with --examples. Add --examples NUMBER, the number of"
            " rows to list, or leave out --show."
        )


def _means_of_scores(options: Namespace) -> TabularReport:
    """Report on the scores of one system, or compare the scores of two systems."""
    allowed = "bounds", "system", "id", "cluster", "group", "gate", "examples", "show"
    check_alone(options, "value", *allowed)
    _check_examples(options)
    systems = files_of(options) if options.command == "report" else systems_of(options)
    (scores, rows), names = read_scores(systems), [x.name for x in systems]

    def report_at(level: float, *case: bool) -> TabularReport:
        return report_of_scores(scores.filled(*case) if case else scores, level, names)

    with progress("computing intervals"), refusals(options.files[0]):
        sample, missing = scores.sample, scores.missing(names)
        report = _gated(systems[0], report_at, sample, missing, scores.bounds is not None)
        return with_items(report, listed_items(scores, rows, systems[0]), len(systems))


def _shares(prevalence: str | None) -> dict[str, float] | float | None:
    """Parse `cat=0.1,dog=0.9`, or the share of the positive class."""
    if prevalence is None:
        return None
    if is_number(prevalence) and 0 <= float(prevalence) <= 1:
        return float(prevalence)
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
            f" must sum to 1, got {prevalence!r}. Divide numbers of examples, or areas, by their"
            " sum."
        )
    return shares


def _report_of(
    rows: Predictions, shares: Mapping[str, float] | float | None, level: float
) -> Report:
    """Make the report on the rows; `shares` are the class shares of --prevalence."""
    settings: Any = {"class_names": rows.axis_names, "level": level}
    settings["invalid"] = rows.options.invalid
    if not rows.is_held:
        settings |= {"squares": rows.squares(), "num_ignored": rows.ignored()}
        report = Report.from_counts(rows.counts(), **settings)
        report = replace(report, num_weighted=rows.num_weighted(), cluster=rows.cluster)
        return report if shares is None else report_at_prevalence(report, shares)
    weights, clusters, score = map(rows.column, ("weight", "cluster", "score"))
    settings |= {"y_prob": rows.column("prob"), "sample_weight": weights, "clusters": clusters}
    settings["frequency"] = rows.options.count is not None
    true = rows.ids("true")
    report = make_report(true, rows.ids("pred"), **settings)
    report = replace(report, counts=whole(report.counts), cluster=rows.cluster)
    if shares is not None:
        report = report_at_prevalence(report, shares)
    if score is None:
        return report
    if weights is not None:
        raise ValueError(
            "If examples have weights, jaxmetrics has no confidence intervals for metrics of"
            " scores. Leave out --weight, --count or --score."
        )
    counted = true >= 0
    clusters = None if clusters is None else clusters[counted]
    area = delong_interval(true[counted], score[counted], level=level, clusters=clusters)
    return report.with_findings(Findings({"roc_auc": value_of_area(area)}))


def _listed(rows: Predictions, report: Report, number: int) -> list[dict[str, Any]]:
    """List rows of the five most frequent kinds of mistakes, kind by kind."""
    kinds = report.mistakes()
    places = [i for kind in kinds for i in kind.indices[: -(-number // len(kinds))]][:number]
    ids = {"true": rows.ids("true"), "predicted": rows.ids("pred")}
    return rows.listed(places, rows.confidence, **ids)


def compare(options: Namespace) -> AnyReport:
    """Compare the two systems of `jaxmetrics compare`."""
    _parse_gates(options)
    if options.value:
        return _means_of_scores(options)
    _refuse_groups(options)
    with refusals("--rope"):
        check_rope(options.rope)
    _check_examples(options)
    files = match_predictions(systems_of(options))
    with progress("computing intervals"), refusals(options.files[0]):
        result = _gated(options, lambda level: _comparison_of(files, level))
        return replace(result, listed=_differing(files, options.examples))


def _comparison_of(files: Sequence[Predictions], level: float) -> ComparisonReport:
    """Make the report on the rows of two classifiers."""
    options, true, preds = files[0].options, files[0].ids("true"), _preds(files)
    clusters = files[0].column("cluster")
    settings: Any = {"clusters": clusters, "rope": options.rope, "level": level}
    probs: Any = {f"y_prob_{x}": y.column("prob") for x, y in zip("ab", files, strict=True)}
    names: Any = [file.options.name for file in files]
    named: Any = {"class_names": files[0].axis_names, "names": names}
    named["invalid"] = options.invalid
    report = comparison_report(true, preds[0], preds[1], **probs, **named, **settings)
    figures, size = {**report.figures}, len(files[0].axis_names)
    for name, metric in _POSITIVE_METRICS.items() if options.pos_label is not None else ():
        comparison = compare_predictions(metric, true, *preds, num_classes=size, **settings)
        figures[name] = compared(comparison)
    if options.score is not None:
        scores: Any = [x.column("score") for x in files]
        figures["roc_auc"] = compared_areas(true == 1, scores, **settings)
    ignored = files[0].num_rows - len(true)
    return replace(report, figures=figures, num_ignored=ignored, cluster=files[0].cluster)


def _preds(files: Sequence[Predictions]) -> np.ndarray:
    """Return the predictions of M classifiers, `(M, n)`."""
    return np.stack([file.ids("pred") for file in files])


def _differing(files: Sequence[Predictions], number: int) -> list[dict[str, Any]]:
    """List `number` examples that only A or only B predicts correctly. Examples for which the wrong
    classifier is most confident come first.
    """
    true, preds = files[0].ids("true"), _preds(files)
    right, ids, listed = preds == true, {"true": true, "A": preds[0], "B": preds[1]}, []
    for i, name in enumerate("AB"):
        places, confidence = np.flatnonzero(right[i] & ~right[1 - i]), files[1 - i].confidence
        if confidence is not None:
            places = places[np.argsort(-confidence[places], kind="stable")]
        rows = files[0].listed(places[: -(-number // 2)].tolist(), confidence, **ids)
        listed += [{"right": name, **row} for row in rows]
    return listed[:number]


def _refuse_groups(options: Namespace) -> None:
    if options.group is not None:
        raise InputError(
            f"the command {options.command} accepts --group only together with --value. Add --value"
            " with the name of a column of scores, or leave out --group."
        )


def leaderboard(options: Namespace) -> TabularReport:
    """Rank the systems of `jaxmetrics leaderboard FILE...`."""
    if options.value:
        return _ranking_of_scores(options)
    _refuse_groups(options)
    files = match_predictions(systems := systems_of(options))
    true, clusters = files[0].ids("true"), files[0].column("cluster")
    size = len(files[0].axis_names)
    function = _metric(files[0].options, size)
    settings: Any = {"num_classes": size, "clusters": clusters, "level": options.level}
    with progress("ranking"), refusals(options.files[0]):
        board = rank(function, true, _preds(files), **settings)
    number = None if clusters is None else len({*clusters})
    ignored, cluster = files[0].num_rows - len(true), files[0].cluster
    sample = SampleSize(len(true), ignored, number, cluster=cluster)
    columns = {}
    if files[0].options.invalid:
        are_valid = _preds(files) < len(files[0].classes)
        settings = {"bounds": (0, 1), "clusters": clusters, "level": options.level}
        columns["valid rate"] = values_of(mean_interval(are_valid, **settings))
    names = [x.name for x in systems]
    return ranking_report(board, names, options.metric, sample, columns=columns)


def _ranking_of_scores(options: Namespace) -> TabularReport:
    check_alone(options, "value", "bounds", "system", "id", "cluster", "group")
    scores, _ = read_scores(systems := systems_of(options))
    settings: Any = {"bounds": scores.bounds, "clusters": scores.clusters, "groups": scores.groups}
    with progress("ranking"), refusals(options.files[0]):
        board = score_leaderboard(scores.values, level=options.level, **settings)
    metric = scores.name if scores.groups is None else f"{scores.name}, mean of groups"
    sample, columns, remark = scores.sample, scores.columns(options.level), ""
    if columns:
        remark = (
            f"Values and ranks are of the {sample.number:,} of {scores.values.shape[1]:,} items for"
            " which no score is missing."
        )
        if scores.bounds is not None:
            remark += (
                " The worst case is the mean of all items if missing scores are"
                f" {scores.bounds[0]:g}, so it may exceed the value, which leaves out items."
            )
    names = [x.name for x in systems]
    more: Any = {"title": printable(metric), "columns": columns, "remark": remark}
    return ranking_report(board, names, metric, sample, **more)


def _metric(options: Namespace, size: int) -> Metric:
    """Return the metric of `--metric` for matrices of this size, with the invalid labels."""
    name, positive = options.metric, options.pos_label
    known = metrics_of(size - len(options.invalid), size)
    known = known | (_POSITIVE_METRICS if positive is not None else {})
    if name not in known:
        hint = "" if positive is not None else f"; with --pos-label {', '.join(_POSITIVE_METRICS)}"
        raise InputError(f"--metric is one of {', '.join(known)}{hint}, got {name!r}")
    return known[name]


def plan(options: Namespace) -> TabularReport:
    """Report how many examples `jaxmetrics plan FILE...` needs."""
    if options.counts and len(options.files) > 1:
        raise InputError(
            "--counts reads a single FILE, because the rows of two confusion matrices are not"
            " paired. Leave out --counts, or give one FILE."
        )
    is_width, is_difference = options.half_width is not None, options.difference is not None
    if (is_width, is_difference, len(options.files)) not in ((True, False, 1), (False, True, 2)):
        raise InputError("give FILE --half-width H, or FILE FILE --difference D")
    if options.value is None:
        return _plan_of_width(options) if is_width else _plan_of_difference(options)
    allowed = "bounds", "id", "cluster", "half-width", "difference", "power"
    check_alone(options, "value", *allowed)
    scores, _ = read_scores(files_of(options))
    targets = {name: getattr(options, name) for name in ("half_width", "difference", "power")}
    with refusals("plan"):
        return scores_plan(scores, **targets, level=options.level)


def _plan_of_width(options: Namespace) -> TabularReport:
    (file,) = options.files
    if options.counts and options.cluster is not None:
        raise InputError(
            "--cluster cannot be used together with --counts, because a table of counts does not"
            " say which cluster a row belongs to. Leave out one of these options."
        )
    if options.counts:
        given = read_counts(file, options)
        with refusals(file):
            matrix, *_ = with_invalid_last(given.counts, None, given.class_names, options.invalid)
    else:
        rows = count_predictions(parts_of(file), options)
        matrix, options = rows.counts(), rows.options
    function = _metric(options, matrix.shape[-1])
    with refusals("plan"):
        return width_plan(function, options.metric, matrix, options.half_width, options.level)


def _plan_of_difference(options: Namespace) -> TabularReport:
    files = match_predictions(files_of(options))
    true, preds, k = files[0].ids("true"), _preds(files), len(files[0].axis_names)
    if (clusters := files[0].column("cluster")) is None:
        paired = paired_confusion_matrix(true, *preds, num_classes=k)
    else:
        paired = cubes_of_clusters(true, preds[0], preds[1], clusters, k)
    function = _metric(files[0].options, k)
    with refusals("plan"):
        return difference_plan(
            function, options.metric, paired, options.difference, options.power, options.level
        )


def _parse_gates(options: Namespace) -> None:
    """Parse the gates, before files are read."""
    for i, text in enumerate(options.gate):
        try:
            gate = Gate.parsed(text)
            options.gate[i] = gate._replace(name="mean") if gate.name == options.value else gate
        except ValueError:
            raise InputError(
                "--gate must have a form such as 'accuracy >= 0.9', 'recall[cat] >= 0.8' or"
                f" 'log_loss <= 0.02', got {shortened(text)!r}"
            ) from None


def _gated(
    options: Namespace,
    report_at: Callable[..., Any],
    sample: SampleSize | None = None,
    missing: str = "",
    is_bounded: bool = True,
) -> Any:
    """Make the report, and decide its gates.

    Args:
        options: the parsed options.
        report_at: a function of a confidence level that makes the report. If scores are missing,
            its second argument is whether they are such that the value is least or greatest.
        sample: the numbers of items and clusters; by default, those of the report.
        missing: which scores are missing, or "".
        is_bounded: whether scores have bounds.
    """
    report_at, is_comparison = cache(report_at), options.command == "compare"

    def value(gate: Gate, level: float, *case: bool) -> ReportValue:
        known = report_at(level, *case).values()
        if options.value:
            known = {options.value: known["mean"], **known}
        if gate.name not in known:
            hint = ""
            if here := NAMES_HERE.get(gate.name):
                hint = f" This package calls it {here}."
            elif gate.name in known.get("group", ()):
                hint = f" Write group[{gate.name}] for the value of this group."
            raise InputError(
                f"--gate names the unknown metric {shortened(gate.name)!r}.{hint} The"
                f" {'compared' if is_comparison else 'reported'} metrics are {', '.join(known)}."
            )
        x = known[gate.name]
        if isinstance(x, Mapping):
            if gate.of_class not in x:
                raise InputError(
                    f"--gate names the metric {gate.name}, which has one value for each class."
                    " Write one of the classes in brackets, such as"
                    f" {gate.name}[{shortened(next(iter(x)))}]. The classes are {listed([*x])}."
                )
            x = x[gate.of_class]
        elif gate.of_class is not None:
            raise InputError(
                f"--gate names a class for the metric {gate.name}, which has a single value"
                " for all classes. Leave out the brackets and the class."
            )
        return x.difference if isinstance(x, Compared) else x

    report = report_at(options.level)
    number, units = (report.sample if sample is None else sample).units_drawn
    what = "A - B" if is_comparison else ""
    settings: Any = {"level": options.level, "number": number, "units": units}
    settings |= {"what": what, "missing": missing}
    if is_bounded:
        settings["worst"] = lambda gate: value(gate, options.level, gate.is_lower)
    gates = judged(options.gate, value, **settings)
    return replace(report, gates=gates)
