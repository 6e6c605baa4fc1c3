"""The report of two classifiers on the same examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmetrics._labels import as_ids
from jaxmetrics._printing import Backend, frame_of
from jaxmetrics._validation import ArrayLike, on_host
from jaxmetrics.comparisons import Comparison, compare, compare_predictions, mcnemar
from jaxmetrics.comparisons.differences import cubes_of_clusters
from jaxmetrics.counts import confusion_matrix
from jaxmetrics.intervals.units import number_of_clusters
from jaxmetrics.reports._csv import comparison_columns, comparison_csv
from jaxmetrics.reports._markdown import comparison_markdown
from jaxmetrics.reports._overall import (
    COMPARED,
    MOST_WITH_INTERVALS,
    Evidence,
    check_number_of_classes,
    overall_values,
)
from jaxmetrics.reports._pages import comparison_page
from jaxmetrics.reports._text import comparison_fragment, comparison_text
from jaxmetrics.reports.contents import ComparisonContents, json_of
from jaxmetrics.reports.values import ComparedValue, ReportedValue, value_of

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
    A 0.750 [0.589, 0.862], B 0.500 [0.345, 0.655], A - B 0.250 [0.092, 0.416], P(A > B) 0.999
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
        return comparison_csv(self)

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
    named = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    true, pred_a, pred_b = (on_host(labels, name) for name, labels in named.items())
    if true.ndim != 1 or not true.shape == pred_a.shape == pred_b.shape:
        raise ValueError(
            "y_true, y_pred_a and y_pred_b must have shape (n,), the same number of examples: got"
            f" {true.shape}, {pred_a.shape}, {pred_b.shape}."
        )
    (true, pred_a, pred_b), classes = as_ids(
        {"y_true": true, "y_pred_a": pred_a, "y_pred_b": pred_b}, class_names, None
    )
    k = len(classes)
    check_number_of_classes(k, "comparison")
    counted = np.logical_and.reduce([(x >= 0) & (x < k) for x in (true, pred_a, pred_b)])
    if not counted.any():
        raise ValueError("there are no examples to compare.")
    cubes = None
    if clusters is not None:
        cubes = cubes_of_clusters(true, pred_a, pred_b, clusters, k, where=counted)
    true, pred_a, pred_b = true[counted], pred_a[counted], pred_b[counted]
    matrices = np.stack([confusion_matrix(true, pred, num_classes=k) for pred in (pred_a, pred_b)])
    only_right = _only_right(pred_a == true, pred_b == true, true, k)
    only_a, only_b = only_right.sum(0).tolist()
    if cubes is None:
        number, test = None, mcnemar([[0, only_a], [only_b, 0]])
        values = _compared_values(matrices, (true, pred_a, pred_b), rope, level)
    else:
        number, test = int(number_of_clusters(cubes, table_ndim=3)), mcnemar(cubes, cluster_axis=0)
        values = _compared_values_of_clusters(cubes, rope, level)
    return ComparisonReport(
        counts=matrices,
        class_names=tuple(map(str, classes)),
        num_ignored=int((~counted).sum()),
        names=names,
        level=level,
        rope=rope,
        figures=values,
        only_right_per_class=only_right,
        p_value=float(test.p_value),
        num_clusters=number,
    )


def _only_right(right_a: np.ndarray, right_b: np.ndarray, true: np.ndarray, k: int) -> np.ndarray:
    """Count the examples of each class that only A has right, and only B, `(K, 2)`."""
    only_a = np.bincount(true[right_a & ~right_b], minlength=k)
    only_b = np.bincount(true[right_b & ~right_a], minlength=k)
    return np.stack([only_a, only_b], 1)


def _compared_values(
    matrices: np.ndarray, labels: tuple[np.ndarray, ...], rope: float, level: float
) -> dict[str, ComparedValue]:
    """Report the values of A and B as their reports do, and their differences by likelihood."""
    a, b = (overall_values(Evidence(matrix, level)) for matrix in matrices)
    options: dict[str, Any] = {"num_classes": len(matrices[0]), "rope": rope, "level": level}
    if len(matrices[0]) > MOST_WITH_INTERVALS:
        return {
            name: ComparedValue(
                a[name], b[name], ReportedValue(a[name].value - b[name].value), math.nan, math.nan
            )
            for name in COMPARED
        }
    return {
        name: _compared(a[name], b[name], compare_predictions(0, metric, *labels, **options))
        for name, metric in COMPARED.items()
    }


def _compared_values_of_clusters(
    cubes: np.ndarray, rope: float, level: float
) -> dict[str, ComparedValue]:
    """Report as `_compared_values`, from the pairs of predictions in each cluster."""
    a, b = (
        overall_values(Evidence(tables.sum(0), level, clusters=tables))
        for tables in (cubes.sum(3), cubes.sum(2))
    )
    options: dict[str, Any] = {"rope": rope, "level": level, "cluster_axis": 0}
    return {
        name: _compared(a[name], b[name], compare(0, metric, cubes, **options))
        for name, metric in COMPARED.items()
    }


def _compared(a: ReportedValue, b: ReportedValue, comparison: Comparison) -> ComparedValue:
    difference = value_of(comparison.difference, "likelihood")
    shares = float(comparison.probability_better), float(comparison.probability_equivalent)
    return ComparedValue(a, b, difference, *shares)
