"""Pictures of reports, and the order in which their pages list classes and mistakes."""

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
from jaxmetrics.ranking import PrecisionRecallCurve, RocCurve
from jaxmetrics.reports._pages import MOST_ROWS
from jaxmetrics.reports.overall_values import PRIOR, matrix_of_true_classes
from jaxmetrics.reports.values import ReportedValue, values_of
from jaxmetrics.scoring import calibration_curve

if TYPE_CHECKING:
    from jaxmetrics.reports.pairs import ComparisonReport
    from jaxmetrics.reports.singles import Report

__all__: list[str] = []

_LONGEST_NAME, _LONGEST_IN_PICTURES = 100, 16
_MOST_CONFUSIONS, _MOST_CURVES, _MOST_BARS = 10, 5, 30

_CURVE = (4.0, 4.0)  # inches

_SHARES_OF = "Confusion matrix{}, percent of each true class"


def pictures_of_one(report: Report) -> dict[str, Any]:
    """Draw one classifier, and order its mistakes, the most frequent first."""
    counts, names = report.counts, labels_of(report.class_names, _LONGEST_NAME)
    right = counts.diagonal()
    fn, fp = counts.sum(1) - right, counts.sum(0) - right
    return {
        "names": names,
        "order": np.argsort(-(fn + fp), kind="stable")[:MOST_ROWS],
        "false_negatives": fn,
        "false_positives": fp,
        "confusions": _worst_confusions(counts, names, report.level),
        "num_confusions": np.count_nonzero(counts) - np.count_nonzero(right),
        "event": labels_of([report.calibrated_event or ""], _LONGEST_NAME)[0],
        "matrices": _matrix_pictures(counts, report.class_names),
        "posteriors": _posterior_pictures(report),
        "curves": _curve_pictures(report),
    }


def pictures_of_two(report: ComparisonReport) -> dict[str, Any]:
    """Draw two classifiers, and order the classes, those first on which they differ most."""
    differences = {title_of(name): x.difference for name, x in report.figures.items()}
    matrices = np.stack([matrix_of_true_classes(matrix) for matrix in report.counts])
    options: Any = {"prior": PRIOR, "level": report.level}
    return {
        "names": labels_of(report.class_names, _LONGEST_NAME),
        "classifiers": labels_of(report.names, _LONGEST_NAME),
        "support": report.counts[0].sum(1),
        "order": np.argsort(-report.only_right_per_class.sum(1), kind="stable")[:MOST_ROWS],
        "differences": svg(
            lambda axes: differences_of(differences, rope=report.rope, ax=axes),
            (5.2, 3),
            "Differences A - B of each metric with their intervals",
        ),
        "violins": svg(
            lambda axes: plots.balanced_accuracy_violin(matrices, ["A", "B"], ax=axes, **options),
            (3.8, 3),
            "Posterior densities of the balanced accuracy of A and B",
        ),
        "matrices": [
            _matrix_picture(
                matrix, report.class_names, "shares", _SHARES_OF.format(f" of {name}"), name
            )
            for name, matrix in zip("AB", report.counts, strict=True)
        ],
    }


class _Confusion(NamedTuple):
    true: str
    pred: str
    times: float
    support: float
    share: ReportedValue


def _worst_confusions(counts: np.ndarray, names: Sequence[str], level: float) -> list[_Confusion]:
    """List the largest cells beside the diagonal, with their share of the true class."""
    mistakes = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    # Of as many mistakes, those of the rarer class first.
    rarity = np.broadcast_to(counts.sum(1, keepdims=True), counts.shape)
    largest = np.lexsort((rarity.ravel(), -mistakes.ravel()))[:_MOST_CONFUSIONS]
    i, j = np.unravel_index(largest[mistakes.ravel()[largest] > 0], counts.shape)
    shares = values_of(proportion_interval(counts[i, j], rarity[i, j], level=level), "wilson")
    return [
        _Confusion(names[true], names[pred], counts[true, pred], rarity[true, pred], share)
        for true, pred, share in zip(i, j, shares, strict=True)
    ]


def _matrix_pictures(counts: np.ndarray, names: tuple[str, ...]) -> list[str]:
    kinds = {"counts": "Confusion matrix, counts", "shares": _SHARES_OF.format("")}
    if counts.size > MOST_CELLS_WITH_NUMBERS:
        kinds.pop("counts")  # the same picture
    return [_matrix_picture(counts, names, numbers, text) for numbers, text in kinds.items()]


def _matrix_picture(
    counts: np.ndarray, names: tuple[str, ...], numbers: Any, text: str, title: str = ""
) -> str:
    size = min(max(1.4 + 0.33 * len(names), 3.4), 8)

    def draw(axes: Any) -> None:
        bar = counts.size > MOST_CELLS_WITH_NUMBERS
        labels = _shortened(names)
        plots.confusion_matrix(counts, class_names=labels, numbers=numbers, colorbar=bar, ax=axes)
        if title:
            axes.set_title(title)

    return svg(draw, (size, size), f"{text}; rows are truth")


def _shortened(names: Sequence[str]) -> list[str]:
    return labels_of(names, _LONGEST_IN_PICTURES)


def _posterior_pictures(report: Report) -> list[str]:
    """Draw the violin of balanced accuracy, and the recalls of which it is the average."""
    values = report.per_class["recall"]
    defined = [i for i, x in enumerate(values) if not math.isnan(x.value)]
    worst = sorted(defined, key=lambda i: values[i].value)[:_MOST_BARS]
    names = _shortened(report.class_names)
    recalls = np.array([values[i][:3] for i in worst], float)
    matrix, height = matrix_of_true_classes(report.counts), max(2.4, 0.8 + 0.24 * len(recalls))
    options: Any = {"prior": PRIOR, "level": report.level}
    return [
        svg(
            lambda axes: plots.balanced_accuracy_violin(matrix, [""], ax=axes, **options),
            (3.6, 3.6),
            "Posterior density of balanced accuracy",
        ),
        svg(
            lambda axes: forest([names[i] for i in worst], recalls, xlabel="recall", ax=axes),
            (4.8, height),
            "Recall of each class with its interval, the least on top",
        ),
    ]


def _curve_pictures(report: Report) -> list[str]:
    """Draw the curves of ROC, precision and recall, reliability."""
    pictures = []
    events = _events(report)

    def draw_events(draw: Any, points: Any, text: str) -> str:
        def draw_all(axes: Any) -> None:
            for name, histogram in events:
                draw(points(histogram), name=name, ax=axes)

        return svg(draw_all, _CURVE, text)

    if events:
        precision = plots.precision_recall, _precision_recall_points
        pictures.append(draw_events(plots.roc, _roc_points, "ROC curves"))
        pictures.append(draw_events(*precision, "Precision against recall"))
    if report.calibration_bins is not None:
        curve = calibration_curve(report.calibration_bins, level=report.level)
        (name,) = _shortened((report.calibrated_event or "",))
        text = f"How often {name} is right where it has probability p"
        pictures.append(
            svg(lambda axes: plots.reliability(curve, name=name, ax=axes), _CURVE, text)
        )
    return pictures


def _events(report: Report) -> list[tuple[str, np.ndarray]]:
    """Choose the histograms of the last of two classes, or of those with the smallest areas."""
    if report.score_histogram is None:
        return []
    areas = [x.value for x in report.per_class["roc_auc"]]
    # NaN comes last.
    order = [1] if len(areas) == 2 else np.argsort(areas, kind="stable")[:_MOST_CURVES].tolist()
    names = _shortened(report.class_names)
    return [(names[i], report.score_histogram[i]) for i in order if not math.isnan(areas[i])]


def _roc_points(histogram: np.ndarray) -> RocCurve:
    fp, tp, bins = _cumulative_counts(histogram)
    return RocCurve(fp / fp[-1], tp / tp[-1], bins)


def _precision_recall_points(histogram: np.ndarray) -> PrecisionRecallCurve:
    fp, tp, bins = _cumulative_counts(histogram)
    precision = np.divide(tp, tp + fp, out=np.ones(len(tp)), where=tp + fp > 0)
    return PrecisionRecallCurve(precision, tp / tp[-1], bins)


def _cumulative_counts(histogram: np.ndarray) -> list[Any]:
    """Count negatives and positives at or above each bin, from above the highest down;
    without those that are empty.
    """
    (bins,) = histogram.sum(0).nonzero()
    bins = bins[::-1]
    counts = np.pad(histogram[:, bins].cumsum(1), ((0, 0), (1, 0)))
    return [*counts, np.append(histogram.shape[1], bins)]
