"""The report of two classifiers on the same examples."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._validation import ArrayLike, as_counts
from jaxmetrics.comparisons import Comparison, compare, compare_predictions, mcnemar
from jaxmetrics.counts import confusion_matrix, paired_confusion_matrix
from jaxmetrics.reports._figures import (
    COMPARED,
    Figure,
    compared_metrics,
    evaluate,
    figure_dict,
    figure_of,
    overall_figures,
)
from jaxmetrics.reports._pages import comparison_page_of
from jaxmetrics.reports._text import cell, printable, table_of, title_of
from jaxmetrics.reports.labels import as_ids

__all__ = ["ComparedFigure", "ComparisonReport", "comparison_report"]

_NUM_SAMPLES = 2000  # replicates of a comparison
_MOST_CLASSES_OF_A_CUBE = 64


class ComparedFigure(NamedTuple):
    """One number of two classifiers; see `Comparison`."""

    a: Figure
    b: Figure
    difference: Figure
    probability_better: float
    probability_equivalent: float
    num_undefined: int  # replicates in which it was not defined, left out


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """What `comparison_report` found out about classifiers A and B on the same examples.

    Attributes:
        counts: the confusion matrices of A and B, `(2, K, K)`.
        class_names: K names.
        num_ignored: examples left out because a label was out of range.
        names: of A and B.
        level: of the intervals.
        rope: differences up to this size do not matter.
        figures: by name. A and B have the intervals that `report` gives them, their difference that
            of `compare`: bootstrap (BCa), or posterior where all replicates agree.
        only_right_per_class: how many examples of each class only A has right, and only B,
            `(K, 2)`.
        p_value: of McNemar's test (mid-p) that the two are right equally often.
    """

    counts: np.ndarray
    class_names: tuple[str, ...]
    num_ignored: int
    names: tuple[str, str]
    level: float
    rope: float
    figures: Mapping[str, ComparedFigure]
    only_right_per_class: np.ndarray
    p_value: float

    @property
    def num_examples(self) -> int:
        """How many were compared."""
        return int(self.counts[0].sum())

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.class_names)

    @property
    def only_right(self) -> tuple[int, int]:
        """How many examples only A has right, and only B."""
        of_a, of_b = self.only_right_per_class.sum(0).tolist()
        return of_a, of_b

    def to_text(self) -> str:
        """A table for a terminal, one line per figure, and McNemar's test."""
        a, b = map(printable, self.names)
        ignored = f", {self.num_ignored} ignored" if self.num_ignored else ""
        heading = (
            f"{self.num_examples} examples{ignored}, {self.num_classes} classes\nA  {a}\nB  {b}"
        )
        rows = [
            ["", "A", "B", "A - B", "", "P(A>B)"] + [f"P(within {self.rope:g})"] * (self.rope > 0)
        ]
        for name, x in self.figures.items():
            shares = [f"{x.probability_better:.3f}"] + [f"{x.probability_equivalent:.3f}"] * (
                self.rope > 0
            )
            method = x.difference.interval or ""
            rows.append(
                [
                    title_of(name),
                    cell(x.a),
                    cell(x.b),
                    cell(x.difference, signed=True),
                    method,
                    *shares,
                ]
            )
        of_a, of_b = self.only_right
        test = (
            f"Right only in A: {of_a}, only in B: {of_b}; McNemar's test (mid-p):"
            f" p = {self.p_value:.3g}."
        )
        note = (
            f"Intervals: {100 * self.level:.10g} %; of A - B by paired bootstrap (bca),\n"
            "posterior where all replicates agree."
        )
        undefined = [
            f"{title_of(name)} in {x.num_undefined}"
            for name, x in self.figures.items()
            if x.num_undefined
        ]
        left_out = (
            f"\nUndefined, and left out, of {_NUM_SAMPLES} replicates: {', '.join(undefined)}."
            if undefined
            else ""
        )
        return "\n\n".join([heading, table_of(rows), f"{test}\n{note}{left_out}"]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            "num_examples": self.num_examples,
            "num_ignored": self.num_ignored,
            "num_classes": self.num_classes,
            "names": list(self.names),
            "level": self.level,
            "rope": self.rope,
            "figures": {name: _compared_dict(x) for name, x in self.figures.items()},
            "mcnemar": {
                "only_a": self.only_right[0],
                "only_b": self.only_right[1],
                "p_value": self.p_value,
            },
            "classes": [
                {
                    "name": name,
                    "support": int(support),
                    "only_a": int(only_a),
                    "only_b": int(only_b),
                }
                for name, support, (only_a, only_b) in zip(
                    self.class_names, self.counts[0].sum(1), self.only_right_per_class, strict=True
                )
            ],
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"

    def to_html(self, *, title: str = "Comparison of two classifiers") -> str:
        """One page of HTML that loads nothing, for a screen, a phone or paper.

        Differences, where the two differ, pictures, and how the intervals were made.

        Args:
            title: the heading.

        Raises:
            ImportError: jinja2 or matplotlib is not installed; the extra `html` has both.
        """
        return comparison_page_of(self, title)


def comparison_report(
    y_true: ArrayLike | Sequence[str],
    y_pred_a: ArrayLike | Sequence[str],
    y_pred_b: ArrayLike | Sequence[str],
    *,
    class_names: Sequence[str] | None = None,
    names: tuple[str, str] = ("A", "B"),
    rope: float = 0.0,
    level: float = 0.95,
) -> ComparisonReport:
    """Two classifiers on the same examples, compared in pairs, from labels on the host.

    Args:
        y_true, y_pred_a, y_pred_b, class_names: as for `report`.
        names: of A and B, for the record.
        rope: differences up to this size do not matter; see `compare`.
        level: of the intervals.

    Raises:
        TypeError: labels that are neither strings nor integers.
        ValueError: unequal lengths, fewer than two classes, an unknown class name, no example left,
            `rope` below 0, `level` not in (0, 1).

    >>> y_true = ["cat", "dog"] * 30
    >>> y_pred_a, y_pred_b = ["cat", "dog"] * 25 + ["cat"] * 10, ["cat"] * 30 + ["dog"] * 30
    >>> print(comparison_report(y_true, y_pred_a, y_pred_b).to_text())  # doctest: +ELLIPSIS
    60 examples, 2 classes
    A  A
    B  B
    <BLANKLINE>
                       A                B                A - B ...
    accuracy           0.917 ...
    """
    true, pred_a, pred_b = (np.asarray(labels) for labels in (y_true, y_pred_a, y_pred_b))
    if true.ndim != 1 or not true.shape == pred_a.shape == pred_b.shape:
        raise ValueError(
            "y_true, y_pred_a and y_pred_b must have shape (n,), the same number of examples: got"
            f" {true.shape}, {pred_a.shape}, {pred_b.shape}."
        )
    (true, pred_a, pred_b), classes = as_ids(
        {"y_true": true, "y_pred_a": pred_a, "y_pred_b": pred_b}, class_names, None
    )
    k = len(classes)
    if k < 2:
        raise ValueError(f"a comparison needs at least two classes, got {k}.")
    counted = np.logical_and.reduce([(x >= 0) & (x < k) for x in (true, pred_a, pred_b)])
    if not counted.any():
        raise ValueError("there are no examples to compare.")
    true, pred_a, pred_b = true[counted], pred_a[counted], pred_b[counted]
    options: dict[str, Any] = {"rope": rope, "num_samples": _NUM_SAMPLES, "level": level}
    compared = compare_predictions(
        0, compared_metrics, true, pred_a, pred_b, num_classes=k, **options
    )
    certain = any(float(x.difference.low) == float(x.difference.high) for x in compared.values())
    if certain and k <= _MOST_CLASSES_OF_A_CUBE:
        paired = paired_confusion_matrix(true, pred_a, pred_b, num_classes=k)
        believed = compare(0, compared_metrics, paired, method="posterior", **options)
    else:
        believed = {}
    matrices = np.stack([confusion_matrix(true, pred, num_classes=k) for pred in (pred_a, pred_b)])
    estimates = (evaluate(as_counts(matrix), level)[0] for matrix in matrices)
    of_a, of_b = (overall_figures(x, level, y) for x, y in zip(matrices, estimates, strict=True))
    right_a, right_b = pred_a == true, pred_b == true
    only_right = np.stack(
        [
            np.bincount(true[x & ~y], minlength=k)
            for x, y in ((right_a, right_b), (right_b, right_a))
        ],
        1,
    )
    only_a, only_b = only_right.sum(0).tolist()
    return ComparisonReport(
        counts=matrices,
        class_names=tuple(map(str, classes)),
        num_ignored=int((~counted).sum()),
        names=names,
        level=level,
        rope=rope,
        figures={
            name: _compared(of_a[name], of_b[name], compared[name], believed.get(name))
            for name in COMPARED
        },
        only_right_per_class=only_right,
        p_value=float(mcnemar([[0, only_a], [only_b, 0]]).p_value),
    )


def _compared(
    a: Figure, b: Figure, drawn: Comparison, believed: Comparison | None
) -> ComparedFigure:
    """The difference by bootstrap; where all replicates agree, the posterior's, extended to the
    value.
    """
    difference = figure_of(drawn.difference, "bca")
    if believed is not None and difference.low == difference.high:
        value, low, high = (
            difference.value,
            float(believed.difference.low),
            float(believed.difference.high),
        )
        difference = Figure(value, min(value, low), max(value, high), "posterior")
        drawn = believed
    shares = float(drawn.probability_better), float(drawn.probability_equivalent)
    return ComparedFigure(a, b, difference, *shares, int(drawn.difference.num_undefined))


def _compared_dict(x: ComparedFigure) -> dict[str, Any]:
    return {
        key: figure_dict(v) if isinstance(v, Figure) else None if math.isnan(v) else v
        for key, v in x._asdict().items()
    }
