"""The report of two classifiers on the same examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmetrics._labels import names_of
from jaxmetrics._printing import Backend, frame_of
from jaxmetrics._validation import ArrayLike
from jaxmetrics.clusters import number_of_clusters
from jaxmetrics.comparisons import Comparison, compare, compare_predictions, mcnemar
from jaxmetrics.comparisons.classifiers import cubes_of_clusters
from jaxmetrics.counts import confusion_matrix
from jaxmetrics.estimates import Metric
from jaxmetrics.reports._csv import comparison_columns, lines_of
from jaxmetrics.reports._markdown import comparison_markdown
from jaxmetrics.reports._overall import COMPARED, MOST_WITH_INTERVALS, Evidence, overall_values
from jaxmetrics.reports._pages import comparison_page
from jaxmetrics.reports._text import comparison_fragment, comparison_text
from jaxmetrics.reports.contents import ComparisonContents, json_of
from jaxmetrics.reports.labels import checked_labels, numbered_classes
from jaxmetrics.reports.values import ComparedValue, ReportedValue, compared

__all__ = ["ComparisonReport", "comparison_report"]


class ComparisonReport(ComparisonContents):
    """Hold what `comparison_report` found out about classifiers A and B on the same examples.

    Attributes:
        counts: the confusion matrices of A and B, `(2, K, K)`.
        class_names: K names.
        num_ignored: examples left out because a label was out of range.
        names: of A and B.
        level: of the intervals.
        rope: differences up to this size do not matter.
        figures: a `ComparedValue` by name. A and B have the intervals that `report` gives them,
            their difference that of `compare`, by likelihood.
        only_right_per_class: how many examples of each class only A has right, and only B,
            `(K, 2)`.
        p_value: of McNemar's test (mid-p, or that of clusters) that the two are right equally
            often.
        num_clusters: of examples, if they come in clusters.

    It prints as its text. Values are found by their names:

    >>> found = comparison_report([0, 1, 1, 0] * 9, [0, 1, 1, 1] * 9, [0, 1, 0, 1] * 9)
    >>> found["accuracy"]
    A 0.750 [0.589, 0.862], B 0.500 [0.345, 0.655], A - B 0.250 [0.101, 0.412], P(A > B) 0.9995
    """

    def __repr__(self) -> str:
        """Write the text."""
        return comparison_text(self).rstrip("\n")

    def _repr_html_(self) -> str:
        return comparison_fragment(self)

    def to_text(self) -> str:
        """Write a table for a terminal, one line per value, and McNemar's test."""
        return comparison_text(self)

    def to_json(self) -> str:
        """Write `to_dict()` as JSON."""
        return json_of(self.to_dict())

    def to_markdown(self) -> str:
        """Write a table of Markdown, to paste where a change is discussed.

        >>> report = comparison_report([0, 1, 1, 0], [0, 1, 1, 1], [0, 1, 0, 1])
        >>> print(report.to_markdown())  # doctest: +ELLIPSIS
        4 examples, 2 classes. In parentheses: 95 % intervals.
        <BLANKLINE>
        |  | A | B | A - B | method | P(A > B) |
        | --- | ---: | ---: | ---: | ---: | ---: |
        | accuracy | 0.750 (0.301 to 0.954) | 0.500 (0.150 to 0.850) | 0.250 ...
        """
        return comparison_markdown(self)

    def to_csv(self) -> str:
        """Write one line per `ReportedValue`: its name, its classifier (A, B or A - B), the value
        and its interval in full precision, level and method, and for A - B the probabilities that A
        is better and that the two are equivalent.

        >>> report = comparison_report([0, 1, 1, 0], [0, 1, 1, 1], [0, 1, 0, 1])
        >>> print(report.to_csv())  # doctest: +ELLIPSIS
        name,classifier,value,low,high,level,method,probability_better,probability_equivalent
        accuracy,A,0.75,0.30...,0.95...,0.95,wilson,,
        accuracy,B,0.5,0.15...,0.8...,0.95,wilson,,
        accuracy,A - B,0.25,...
        """
        return lines_of(comparison_columns(self))

    def to_frame(self, backend: Backend = "polars") -> Any:
        """Return a data frame with the columns of `to_csv`; see `Report.to_frame`."""
        return frame_of(comparison_columns(self), backend)

    def to_html(self, *, title: str = "Comparison of two classifiers") -> str:
        """Write one page of HTML that loads nothing, for a screen, a phone or paper.

        Differences, where the two differ, pictures, and how the intervals were made.

        Args:
            title: the heading.

        Raises:
            ImportError: jinja2 or matplotlib is not installed; the extra `html` has both.
        """
        return comparison_page(self, title)


def comparison_report(
    y_true: ArrayLike | Sequence[str],
    y_pred_a: ArrayLike | Sequence[str],
    y_pred_b: ArrayLike | Sequence[str],
    *,
    clusters: ArrayLike | Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    names: tuple[str, str] = ("A", "B"),
    rope: float = 0.0,
    level: float = 0.95,
) -> ComparisonReport:
    """Compare two classifiers on the same examples, in pairs, from labels on the host.

    Beyond 1024 classes differences have no interval, which would take minutes;
    `compare_predictions` has them.

    Args:
        y_true, y_pred_a, y_pred_b, class_names: as for `report`.
        clusters: `(n,)` ids of groups of examples that may be alike, as for `report`; see
            `compare_predictions` and `mcnemar`.
        names: of A and B, for the record.
        rope: differences up to this size do not matter; see `compare`.
        level: of the intervals.

    Returns:
        `ComparisonReport`, all of it on the host.

    Raises:
        TypeError: labels that are neither strings nor integers.
        ValueError: unequal lengths, no 2 to 4096 classes, an unknown class name, no example left,
            `rope` below 0, `level` not in (0, 1), clusters whose pairs `C K^3` exceed 2^27.

    >>> y_true = ["cat", "dog"] * 30
    >>> y_pred_a, y_pred_b = ["cat", "dog"] * 25 + ["cat"] * 10, ["cat"] * 30 + ["dog"] * 30
    >>> print(comparison_report(y_true, y_pred_a, y_pred_b).to_text())  # doctest: +ELLIPSIS
    60 examples, 2 classes
    <BLANKLINE>
                       A                B                A - B ...
    accuracy           0.917 ...
    """
    a, b = names_of(names, 2, "names")
    labels = checked_labels(y_true=y_true, y_pred_a=y_pred_a, y_pred_b=y_pred_b)
    ids, classes, counted = numbered_classes(labels, class_names, "comparison")
    k = len(classes)
    if not counted.any():
        raise ValueError("y_true, y_pred_a and y_pred_b hold no examples to compare.")
    cubes = None
    if clusters is not None:
        true, pred_a, pred_b = ids
        cubes = cubes_of_clusters(true, pred_a, pred_b, clusters, k, where=counted)
    true, *preds = ids = [x[counted] for x in ids]
    matrices = np.stack([confusion_matrix(true, pred, num_classes=k) for pred in preds])
    only_right = _only_right(k, *ids)
    only_a, only_b = only_right.sum(0).tolist()
    if cubes is None:
        number, test = None, mcnemar([[0, only_a], [only_b, 0]])
    else:
        number, test = int(number_of_clusters(cubes, table_ndim=3)), mcnemar(cubes, cluster_axis=0)
    return ComparisonReport(
        counts=matrices,
        class_names=tuple(map(str, classes)),
        num_ignored=int((~counted).sum()),
        names=(a, b),
        level=level,
        rope=rope,
        figures=_compared_values(matrices, ids, cubes, rope, level),
        only_right_per_class=only_right,
        p_value=float(test.p_value),
        num_clusters=number,
    )


def _only_right(k: int, true: np.ndarray, pred_a: np.ndarray, pred_b: np.ndarray) -> np.ndarray:
    """Count the examples of each class that only A has right, and only B, `(K, 2)`."""
    right_a, right_b = pred_a == true, pred_b == true
    only_a = np.bincount(true[right_a & ~right_b], minlength=k)
    only_b = np.bincount(true[right_b & ~right_a], minlength=k)
    return np.stack([only_a, only_b], 1)


def _compared_values(
    matrices: np.ndarray,
    labels: Sequence[np.ndarray],
    cubes: np.ndarray | None,
    rope: float,
    level: float,
) -> dict[str, ComparedValue]:
    """Report the values of A and B as their reports do, and their differences by likelihood, from
    the labels, or from the pairs of predictions in each cluster, `(C, K, K, K)`.
    """
    k = len(matrices[0])
    options: dict[str, Any] = {"rope": rope, "level": level}
    tables = (None, None) if cubes is None else (cubes.sum(3), cubes.sum(2))
    a, b = (
        overall_values(Evidence(matrix, level, clusters=clusters))
        for matrix, clusters in zip(matrices, tables, strict=True)
    )

    def comparison(metric: Metric) -> Comparison:
        if cubes is None:
            return compare_predictions(metric, *labels, num_classes=k, **options)
        return compare(metric, cubes, cluster_axis=0, **options)

    if k > MOST_WITH_INTERVALS:
        return {
            name: ComparedValue(
                a[name], b[name], ReportedValue(a[name].value - b[name].value), math.nan, math.nan
            )
            for name in COMPARED
        }
    return {
        name: compared(a[name], b[name], comparison(metric)) for name, metric in COMPARED.items()
    }
