"""Pictures on report pages, and the order of classes and mistakes there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxmetrics import plots
from jaxmetrics._wording import labels_of, title_of
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.plots.forests import differences_of, forest
from jaxmetrics.plots.matrices import MOST_CELLS_WITH_NUMBERS
from jaxmetrics.plots.vector_graphics import svg
from jaxmetrics.ranking import PrecisionRecallCurve, RocCurve, roc_auc
from jaxmetrics.reports.contents import ReportedValue, values_of
from jaxmetrics.reports.formats import MOST_ROWS_OF_PAGE
from jaxmetrics.reports.overall_values import PRIOR, matrix_of_true_classes
from jaxmetrics.scoring import calibration_curve

if TYPE_CHECKING:
    from jaxmetrics.reports.pairs import ComparisonReport
    from jaxmetrics.reports.singles import Report

__all__: list[str] = []

_LONGEST_NAME, _LONGEST_IN_PICTURES = 100, 16
_MOST_CONFUSIONS, _MOST_CURVES, _MOST_BARS = 10, 5, 30

_OUTSIDE = 0.05  # share of the intervals that may exceed an axis at either end
_CURVE = (4.0, 4.0)  # inches
# Functions that draw the curves of `_curves_of`.
_DRAWN: Sequence[tuple[str, Any]] = (
    ("ROC curves", plots.roc),
    ("Precision against recall", plots.precision_recall),
)


def pictures_of_one(report: Report) -> dict[str, Any]:
    """Draw the pictures for one classifier, and sort its mistakes by frequency."""
    counts, names = report.counts, labels_of(report.class_names, _LONGEST_NAME)
    right = counts.diagonal()
    fn, fp = counts.sum(1) - right, counts.sum(0) - right
    order = np.argsort(-(fn + fp), kind="stable")[:MOST_ROWS_OF_PAGE]
    # Without numbers in the cells, both pictures would be the same.
    numbers = ["shares"] if counts.size > MOST_CELLS_WITH_NUMBERS else ["counts", "shares"]
    return {
        "names": names,
        "order": order,
        "false_negatives": fn,
        "false_positives": fp,
        "axes": {
            name: _axis_of([column[i] for i in order])
            for name, column in report.per_class.items()
            if name != "specificity"
        },
        "confusions": _worst_confusions(counts, names, report.level),
        "num_confusions": np.count_nonzero(counts) - np.count_nonzero(right),
        "event": labels_of([report.calibrated_event or ""], _LONGEST_NAME)[0],
        "matrices": [_matrix_picture(counts, report.class_names, x) for x in numbers],
        "largest_mistake": _largest_mistake(counts),
        "posteriors": _posterior_pictures(report),
        "curves": _curve_pictures(report),
    }


def pictures_of_two(report: ComparisonReport) -> dict[str, Any]:
    """Draw the pictures for two classifiers, and sort the classes by how much A and B differ."""
    # The log loss is omitted: it has no upper limit and would compress the other intervals.
    differences = {
        title_of(name): x.difference for name, x in report.figures.items() if name != "log_loss"
    }
    matrices = np.stack([matrix_of_true_classes(matrix) for matrix in report.counts])
    options: Any = {"prior": PRIOR, "level": report.level}
    largest = max(map(_largest_mistake, report.counts))
    return {
        "names": labels_of(report.class_names, _LONGEST_NAME),
        "classifiers": labels_of(report.names, _LONGEST_NAME),
        "support": report.counts[0].sum(1),
        "order": np.argsort(-report.only_right_per_class.sum(1), kind="stable")[:MOST_ROWS_OF_PAGE],
        "differences": svg(
            differences_of,
            (5.2, max(3, 0.8 + 0.2 * len(differences))),
            "Differences A - B of each metric with their intervals",
            differences,
            rope=report.rope,
        ),
        "violins": svg(
            plots.balanced_accuracy_violin,
            (3.8, 3),
            "Posterior densities of the balanced accuracy of A and B",
            matrices,
            ["A", "B"],
            **options,
        ),
        "matrices": [
            _matrix_picture(
                matrix, report.class_names, "shares", f" of {name}", name, scale=largest or None
            )
            for name, matrix in zip("AB", report.counts, strict=True)
        ],
        "largest_mistake": largest,
        **_curves_of_two(report),
    }


class _Axis(NamedTuple):
    """The ends of an axis, and their number of decimals."""

    low: float
    high: float
    decimals: int

    @property
    def ends(self) -> list[str]:
        """The ends as text."""
        return [f"{x:.{self.decimals}f}" for x in (self.low, self.high)]

    def place(self, x: float) -> float:
        """Return the position of a number from 0 to 1; numbers beyond the axis are at its end."""
        return min(max((x - self.low) / (self.high - self.low), 0.0), 1.0)


def _axis_of(values: Sequence[ReportedValue]) -> _Axis:
    """Choose an axis between round numbers that contains all values and most intervals; very wide
    intervals of a few rare classes would compress the others.
    """
    low, high = 0.0, 1.0
    if found := [x for x in values if x.has_interval]:
        value, lows, highs = np.array([x[:3] for x in found]).T
        low = float(np.nanmin([*value, np.quantile(lows, _OUTSIDE, method="lower")]))
        high = float(np.nanmax([*value, np.quantile(highs, 1 - _OUTSIDE, method="higher")]))
    digits = max(0, -math.floor(math.log10(high - low))) if high > low else 0
    unit = 10.0**-digits
    first, last = math.floor(low / unit + 1e-9), math.ceil(high / unit - 1e-9)
    return _Axis(first * unit, max(last, first + 1) * unit, digits)


class _Confusion(NamedTuple):
    true: str
    pred: str
    times: float
    support: float
    share: ReportedValue


def _worst_confusions(counts: np.ndarray, names: Sequence[str], level: float) -> list[_Confusion]:
    """List the largest off-diagonal cells, with their share of the true class."""
    mistakes = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    # Ties: the rarer class first.
    rarity = np.broadcast_to(counts.sum(1, keepdims=True), counts.shape)
    largest = np.lexsort((rarity.ravel(), -mistakes.ravel()))[:_MOST_CONFUSIONS]
    i, j = np.unravel_index(largest[mistakes.ravel()[largest] > 0], counts.shape)
    shares = values_of(proportion_interval(counts[i, j], rarity[i, j], level=level), "wilson")
    return [
        _Confusion(names[true], names[pred], *numbers)
        for true, pred, *numbers in zip(i, j, counts[i, j], rarity[i, j], shares, strict=True)
    ]


def _largest_mistake(counts: np.ndarray) -> float:
    """Return the largest share of a true class that is classified as another class."""
    mistakes = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    support = counts.sum(1)
    return float(np.max(mistakes.max(1) / np.where(support > 0, support, 1)))


def _matrix_picture(
    counts: np.ndarray,
    names: tuple[str, ...],
    numbers: Any,
    of_whom: str = "",
    title: str = "",
    scale: float | None = None,
) -> str:
    what = "percent of each true class" if numbers == "shares" else "counts"

    def draw(ax: Any) -> None:
        options: Any = {"class_names": _shortened(names), "numbers": numbers, "scale": scale}
        plots.confusion_matrix(counts, **options, colorbar=False, ax=ax)
        if title:
            ax.set_title(title)

    size = min(max(1.4 + 0.33 * len(names), 3.4), 8)
    return svg(draw, (size, size), f"Confusion matrix{of_whom}, {what}; rows are truth")


def _shortened(names: Sequence[str]) -> list[str]:
    return labels_of(names, _LONGEST_IN_PICTURES)


def _posterior_pictures(report: Report) -> list[str]:
    """Draw the violin of balanced accuracy, and the recalls of the classes."""
    values = report.per_class["recall"]
    defined = [i for i, x in enumerate(values) if not math.isnan(x.value)]
    worst = sorted(defined, key=lambda i: values[i].value)[:_MOST_BARS]
    names = _shortened(report.class_names)
    recalls = np.array([values[i][:3] for i in worst])
    matrix, height = matrix_of_true_classes(report.counts), max(2.4, 0.8 + 0.24 * len(recalls))
    options: Any = {"prior": PRIOR, "level": report.level}
    return [
        svg(
            plots.balanced_accuracy_violin,
            (3.6, 3.6),
            "Posterior density of balanced accuracy",
            matrix,
            [""],
            **options,
        ),
        svg(
            forest,
            (4.8, height),
            "Recall of each class with its interval, the least on top",
            [names[i] for i in worst],
            recalls,
            xlabel="recall",
        ),
    ]


def _curve_pictures(report: Report) -> list[str]:
    """Draw ROC, precision-recall and reliability curves."""
    events = [(name, _curves_of(histogram)) for name, histogram in _events(report)]
    pictures = []
    if events:
        for kind, (title, draw) in enumerate(_DRAWN):
            pictures.append(svg(_draw_events, _CURVE, title, draw, events, kind))
    if report.calibration_bins is not None:
        curve = calibration_curve(report.calibration_bins, level=report.level)
        (name,) = _shortened((report.calibrated_event or "",))
        text = f"How often {name} is right where it has probability p"
        pictures.append(svg(plots.reliability, _CURVE, text, curve, name=name))
    return pictures


def _curves_of_two(report: ComparisonReport) -> dict[str, Any]:
    """Draw the curves of A and B on the same axes: for the second of two classes, or for the class
    with the largest difference in area, and reliability diagrams.
    """
    of_class, pictures = "", []
    if report.score_histograms is not None:
        k = len(report.class_names)
        areas = [x.value for x in map(roc_auc, report.score_histograms)]
        gaps = np.nan_to_num(np.abs(areas[0] - areas[1]), nan=-1.0)
        i = 1 if k == 2 else int(gaps.argmax())
        if gaps[i] >= 0:
            (of_class,) = labels_of([report.class_names[i]], _LONGEST_NAME)
            events = [
                (name, _curves_of(histogram[i]))
                for name, histogram in zip("AB", report.score_histograms, strict=True)
            ]
            for kind, (title, draw) in enumerate(_DRAWN):
                text = f"{title} of A and B"
                pictures.append(svg(_draw_events, _CURVE, text, draw, events, kind))
    if report.calibration_bins is not None:
        text = "Reliability of A and B"
        bins = report.calibration_bins
        pictures.append(svg(_draw_reliability, _CURVE, text, bins, report.level))
    return {"curves": pictures, "of_class": of_class}


def _draw_reliability(bins: Sequence[np.ndarray], level: float, ax: Any) -> None:
    for name, of_one in zip("AB", bins, strict=True):
        plots.reliability(calibration_curve(of_one, level=level), name=name, ax=ax)


def _draw_events(draw: Any, events: Sequence[Any], kind: int, ax: Any) -> None:
    for name, curves in events:
        draw(curves[kind], name=name, ax=ax)


def _events(report: Report) -> list[tuple[str, np.ndarray]]:
    """Choose the histograms of the second of two classes, or of the classes with the smallest
    areas.
    """
    if report.score_histogram is None:
        return []
    areas = [x.value for x in report.per_class["roc_auc"]]
    # NaN comes last.
    order = [1] if len(areas) == 2 else np.argsort(areas, kind="stable")[:_MOST_CURVES].tolist()
    names = _shortened(report.class_names)
    return [(names[i], report.score_histogram[i]) for i in order if not math.isnan(areas[i])]


def _curves_of(histogram: np.ndarray) -> tuple[RocCurve, PrecisionRecallCurve]:
    """Compute the curves of a histogram `(2, B)`, with one point per nonempty bin."""
    (bins,) = histogram.sum(0).nonzero()
    bins = bins[::-1]
    fp, tp = np.pad(histogram[:, bins].cumsum(1), ((0, 0), (1, 0)))
    thresholds, recall = np.append(histogram.shape[1], bins), tp / tp[-1]
    precision = np.divide(tp, tp + fp, out=np.ones(len(tp)), where=tp + fp > 0)
    roc = RocCurve(fp / fp[-1], recall, thresholds)
    return roc, PrecisionRecallCurve(precision, recall, thresholds)
