"""Reports on one classifier from labels, also of groups of examples."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxmetrics import IntervalMethod, confusion_matrix
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import ArrayLike, check_flag, check_real, on_host, require
from jaxmetrics.clusters import (
    check_size_of_tables,
    few_clusters,
    numbered_clusters,
    warn_of_few_clusters,
)
from jaxmetrics.reports.grouped import grouped_report
from jaxmetrics.reports.overall_values import (
    as_invalid,
    check_each,
    checked_labels,
    checked_probabilities,
    rows_of_groups,
)
from jaxmetrics.reports.probabilities import (
    areas_of_examples,
    confidence_of,
    findings_of_examples,
    probability_findings,
    probability_sums,
)
from jaxmetrics.reports.singles import LabelledExamples, Report

__all__ = ["report"]

_MOST_RANKED = 2**24  # the largest number of probabilities that are sorted for exact areas


def report(
    y_true: ArrayLike | Sequence[str],
    y_pred: ArrayLike | Sequence[str],
    *,
    y_prob: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    frequency: bool = False,
    clusters: ArrayLike | Sequence[Any] | None = None,
    groups: ArrayLike | Sequence[Any] | None = None,
    class_names: Sequence[str] | Sequence[int] | None = None,
    invalid: Hashable | Sequence[Hashable] | None = None,
    level: float = 0.95,
    method: IntervalMethod | None = None,
) -> Report:
    """Make a classification report from labels: metrics of a classifier with confidence intervals.

    Args:
        y_true, y_pred: true and predicted labels, `(n,)`, strings or integers. Examples are ignored
            if the true label is negative. Other negative predictions raise an error.
        y_prob: probabilities `(n, K)`, one column per class. They add expected accuracy, log loss,
            Brier score, calibration error and one-vs-rest ROC AUC. Data frames have columns such as
            "0" or "prob_0". A warning is given if most `y_pred` are not the most probable class.
        sample_weight: `(n,)`, weights of any scale. With weights, ROC AUC has no interval.
        frequency: True if the weights say how often each example occurs.
        clusters: `(n,)`, ids of clusters of correlated examples. Fewer than 20 give a warning.
        groups: `(n,)`, ids of subgroups. They add `groups`, one `Report` per subgroup, and
            `disparities` (see `compare_groups`). None, NaN and "" are the group "(missing)".
        class_names: names of the ids 0 to K - 1; for labels that are strings or other integers,
            such as [-1, 1], all labels in order. The default is all labels that occur, sorted.
        invalid: labels of predictions that are no class, such as answers that cannot be parsed, or
            "" for examples without an answer. They count as wrong, and averages do not include
            them. They add the share and the accuracy of the others (`valid_rate`, ...).
        level: the confidence level.
        method: the interval method for metrics that are not proportions. The default is
            `Likelihood()`, or `Delta` for clusters with weights.

    Returns:
        A `Report` with NumPy arrays. With groups, `print` writes one column per group.

    Raises:
        TypeError, ValueError: if labels are neither strings nor integers, or unknown; if a true
            label is invalid; if there are not 2 to 4096 classes; or if all examples are ignored.

    >>> y_true, y_pred = ["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"]
    >>> print(report(y_true, y_pred).to_text())  # doctest: +ELLIPSIS
    4 examples, 2 classes
    ...
    class  n  precision             recall                F1
    ...
    >>> print(report(y_true * 9, ["cat", "dog", "?", "cat"] * 9, invalid="?")["valid_rate"])
    0.750 [0.588, 0.872]
    >>> by_site = report(y_true * 9, y_pred * 9, groups=["north", "north", "south"] * 12)
    >>> by_site.groups["north"]["accuracy"], by_site.disparities["accuracy", ""]
    (0.750 [0.547, 0.894], 0.000 [0.000, 0.329])
    """
    labels: Any = {"y_true": y_true, "y_pred": y_pred}
    others = {"sample_weight": sample_weight, "groups": groups, "clusters": clusters}
    check_order(**labels, y_prob=y_prob, **others)
    not_valid = as_invalid(invalid)
    (true, pred), names = checked_labels(
        "report", class_names, {"y_prob": y_prob}, not_valid, **labels
    )
    weights, are_copies = None, check_flag(frequency, "frequency")
    if sample_weight is not None:
        weights = on_host(sample_weight, "sample_weight")
        check_real(weights, "sample_weight")
        possible = (weights >= 0) & (weights < np.inf)
        check_each(possible, weights, "sample_weight", "a finite number >= 0")
        weights = weights.astype(float)  # because sums in float16 are limited to 65,504
        expected = f"have shape (n,) = {true.shape}"
        require(weights.shape == true.shape, "sample_weight", expected, weights.shape)
    prob = None if y_prob is None else checked_probabilities(y_prob, true, pred, names)
    numbers = None if clusters is None else numbered_clusters(clusters, true.shape)[0]
    are_examples = true >= 0 if weights is None else (true >= 0) & (weights > 0)
    named = {} if groups is None else rows_of_groups(groups, are_examples)
    k, place = len(names) + len(not_valid), np.arange(len(true))

    def report_of(group: str | None, level: float) -> Report:
        """Make the report on a group, or on all examples."""
        rows: Any = ... if group is None else named[group]
        t, p, w = true[rows], pred[rows], None if weights is None else weights[rows]
        options: Any = {"sample_weight": w}
        ids = None
        if numbers is not None:
            ids, number = numbered_clusters(numbers[rows], t.shape)
            check_size_of_tables(number, k * k, "Merge clusters or classes.")
            options |= {"groups": ids, "num_groups": number}
        counted, confidence = t >= 0, None
        squares = None
        if w is not None and not are_copies and numbers is None:
            squares = confusion_matrix(t, p, num_classes=k, sample_weight=w**2)
        result = Report.from_counts(
            confusion_matrix(t, p, num_classes=k, **options),
            class_names=[*names, *map(str, not_valid)],
            invalid=not_valid,
            squares=squares,
            num_ignored=int((~counted).sum()),
            level=level,
            method=method,
        )
        if w is not None and not are_copies:
            result = replace(result, num_weighted=int((counted & (w > 0)).sum()))
        if prob is not None:
            q = prob[rows]
            confidence = confidence_of(q[counted], p[counted])
            sums = probability_sums(t, q, w)
            areas = None
            if w is None and numbers is None and q.size <= _MOST_RANKED:
                areas = areas_of_examples(t[counted], q[counted], level=level)
            findings = probability_findings(sums, result.class_names, level, areas)
            result = result.with_findings(findings)
            if numbers is not None or squares is not None:
                findings = findings_of_examples(t, q, w, ids, level, frequency=are_copies)
                result = result.with_findings(findings)
        examples = LabelledExamples(place[rows][counted], t[counted], p[counted], confidence)
        return replace(result, examples=examples)

    with few_clusters() as few:
        total = report_of(None, level)
    warn_of_few_clusters(few)
    return total if groups is None else grouped_report(total, report_of, [*named])
