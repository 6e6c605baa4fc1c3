"""From predictions of one classifier to their report, and to those of groups of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from jaxmetrics._examples import are_distributions
from jaxmetrics._validation import ArrayLike, as_rows, check_real, on_host, warn
from jaxmetrics._wording import listed
from jaxmetrics.clusters import check_size_of_tables, numbered_clusters
from jaxmetrics.counts import confusion_matrix
from jaxmetrics.intervals import IntervalMethod
from jaxmetrics.reports.grouped import grouped_report
from jaxmetrics.reports.labels import check_each, checked_labels, numbered_classes
from jaxmetrics.reports.probabilities import (
    findings_of_clusters,
    probability_findings,
    probability_sums,
)
from jaxmetrics.reports.singles import Report

__all__ = ["report"]


class _Predictions(NamedTuple):
    """Holds examples: class ids, which of them count, and what else is known of them."""

    true: np.ndarray
    pred: np.ndarray
    counted: np.ndarray
    prob: np.ndarray | None
    weights: np.ndarray | None
    clusters: np.ndarray | None

    def among(self, rows: np.ndarray) -> _Predictions:
        """Return some of the examples."""
        chosen: Any = (None if x is None else x[rows] for x in self)
        return _Predictions(*chosen)

    def report(
        self, class_names: Sequence[str], level: float, method: IntervalMethod | None
    ) -> Report:
        """Report on them."""
        k, numbers, number = len(class_names), None, None
        if self.clusters is not None:
            numbers, number = numbered_clusters(self.clusters, self.true.shape)
            check_size_of_tables(number, k * k, "Merge clusters or classes.")
        counts = confusion_matrix(
            self.true,
            self.pred,
            num_classes=k,
            sample_weight=self.weights,
            where=self.counted,
            groups=numbers,
            num_groups=number,
        )
        ignored = int((~self.counted).sum())
        found = Report.from_counts(
            counts, class_names=class_names, num_ignored=ignored, level=level, method=method
        )
        if self.prob is None:
            return found
        examples = np.where(self.counted, self.true, -1), self.prob, self.weights
        sums = probability_sums(*examples)
        found = found.with_findings(probability_findings(sums, found.class_names, level))
        if numbers is None:
            return found
        return found.with_findings(findings_of_clusters(*examples, numbers, level))


def report(
    y_true: ArrayLike | Sequence[str],
    y_pred: ArrayLike | Sequence[str],
    *,
    y_prob: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    groups: ArrayLike | Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    level: float = 0.95,
    method: IntervalMethod | None = None,
) -> Report:
    """Report on predictions, each number with its interval, from labels on the host.

    Args:
        y_true, y_pred: `(n,)`, strings or integers. Without `class_names` the classes are those
            that occur, sorted. Negative integers, and ids beyond `class_names` or the columns of
            `y_prob`, are ignored and counted as such.
        y_prob: `(n, K)` probabilities, a column per class in the order of the report; in a data
            frame columns are found by their names, those of the classes or "0" to "K - 1", alone or
            behind "prob_". Adds the expected accuracy (the mean probability given to the truth),
            log loss and Brier score, the calibration error, and each class's area under the ROC
            curve against the others. Warns if `y_pred` is not its greatest in most rows.
        sample_weight: `(n,)`; intervals read weights as frequencies (weight 2 = the row written
            twice).
        clusters: `(n,)` ids of groups of examples that may be alike, as those of one patient, of
            any kind; a warning for fewer than 20. With weights, areas have no interval.
        groups: `(n,)` ids of groups to be reported on one by one: the result then has `groups`, a
            `Report` by the name of each, and `disparities`, the greatest difference of each value
            between them by its name and class, with an interval as `compare_groups` has it.
        class_names: names of the ids 0 to K - 1, or, for strings, the classes in the order wanted.
        level: of the intervals.
        method: as for `Report.from_counts`.

    Returns:
        `Report`, all of it on the host; of groups a kind of it, which prints them side by side.

    Raises:
        TypeError: labels that are neither strings nor integers, other arguments that are no
            numbers.
        ValueError: unequal lengths, no 2 to 4096 classes, an unknown class name, a negative
            weight, probabilities that do not sum to 1, no example left, `level` not in (0, 1),
            groups with the same name.

    >>> y_true, y_pred = ["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"]
    >>> print(report(y_true, y_pred).to_text())  # doctest: +ELLIPSIS
    4 examples, 2 classes
    <BLANKLINE>
    class  n  precision         recall            specificity       F1
    cat    2  0.667 .208-.939   1.000 .342-1.000  0.500 .095-.905   0.800 .344-.968
    ...
    >>> by_site = report(y_true * 9, y_pred * 9, groups=["north", "north", "south"] * 12)
    >>> by_site.groups["north"]["accuracy"], by_site.disparities["accuracy", ""]
    (0.750 [0.551, 0.880], 0.000 [0.000, 0.311])
    """
    labels = checked_labels(y_true=y_true, y_pred=y_pred)
    n = len(labels["y_true"])
    if n == 0:
        raise ValueError("there are no examples to report on.")
    weights = None if sample_weight is None else _checked_weights(sample_weight)
    num_columns = None if y_prob is None else _number_of_columns(y_prob, n)
    (true, pred), names, counted = numbered_classes(labels, class_names, "report", num_columns)
    prob = None
    if y_prob is not None:
        prob = np.asarray(as_rows(y_prob, "y_prob", names))
        _check_probabilities(prob, pred, counted, names)
    numbers = None if clusters is None else numbered_clusters(clusters, true.shape)[0]
    examples = _Predictions(true, pred, counted, prob, weights, numbers)
    total = examples.report(names, level, method)
    if groups is None:
        return total
    named = _rows_of_groups(groups, counted)
    return grouped_report(
        total, lambda name, wide: examples.among(named[name]).report(names, wide, method), [*named]
    )


def _rows_of_groups(
    groups: ArrayLike | Sequence[Any], counted: np.ndarray
) -> dict[str, np.ndarray]:
    """Find the rows of each group of which examples count, `(n,)`, by its name."""
    numbers, _ = numbered_clusters(groups, counted.shape, "groups")
    found, first = np.unique(np.where(counted, numbers, -1), return_index=True)
    ids = list(cast(Any, groups))
    named = {str(ids[i]): numbers == g for g, i in zip(found, first, strict=True) if g >= 0}
    if len(named) < (found >= 0).sum():
        raise ValueError(f"groups must differ in their names, got {listed(map(str, ids))}.")
    return named


def _checked_weights(sample_weight: ArrayLike) -> np.ndarray:
    weights = on_host(sample_weight, "sample_weight")
    check_real(weights, "sample_weight")
    possible = (weights >= 0) & (weights < np.inf)
    check_each(possible, weights, "sample_weight", "a finite number >= 0")
    return weights


def _check_probabilities(
    prob: np.ndarray, pred: np.ndarray, counted: np.ndarray, names: Sequence[str]
) -> None:
    valid = are_distributions(prob) | ~counted
    check_each(valid, prob, "y_prob", "probabilities that sum to 1")
    if 2 * (prob.argmax(1) != pred)[counted].sum() > counted.sum():
        warn(
            "y_pred is not the most probable class of y_prob in most rows: column j of y_prob"
            f" is taken for class j of {listed(names)}."
        )


def _number_of_columns(y_prob: ArrayLike, n: int) -> int:
    prob = on_host(y_prob, "y_prob")
    check_real(prob, "y_prob")
    if prob.ndim != 2 or len(prob) != n:
        raise ValueError(f"y_prob must have shape (n, K) = ({n}, K), got {prob.shape}.")
    return prob.shape[1]
