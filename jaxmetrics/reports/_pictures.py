"""The pictures on report pages, and the order of classes and mistakes on the pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxmetrics import plots
from jaxmetrics._text.wording import labels_of, title_of
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.plots.forests import forest
from jaxmetrics.plots.matrices import MOST_CELLS_WITH_NUMBERS
from jaxmetrics.plots.vector_graphics import svg
from jaxmetrics.ranking import (
    PrecisionRecallCurve,
    RocCurve,
    precision_recall_curve,
    roc_auc,
    roc_curve,
)
from jaxmetrics.reports.contents import ReportedValue, values_of
from jaxmetrics.reports.formats import MOST_ROWS_OF_PAGE
from jaxmetrics.reports.overall_values import PRIOR, matrix_of_true_classes, mistakes_in
from jaxmetrics.scoring import calibration_curve

if TYPE_CHECKING:
    from jaxmetrics.reports.pairs import ComparisonReport
    from jaxmetrics.reports.singles import Report

__all__: list[str] = []

_LONGEST_NAME, _LONGEST_IN_PICTURES = 100, 16
_MOST_CONFUSIONS, _MOST_CURVES, _MOST_BARS = 10, 5, 30

_OUTSIDE = 0.05  # the share of intervals that may extend beyond either end of an axis
_CURVE = (4.0, 4.0)  # inches


def pictures_of_one(report: Report) -> dict[str, Any]:
    """Draw the pictures for one classifier, and sort its mistakes by frequency."""
    counts, names = report.counts, labels_of(report.class_names, _LONGEST_NAME)
    wrong = mistakes_in(counts)
    fn, fp = wrong.sum(1), wrong.sum(0)
    order = np.argsort(-(fn + fp), kind="stable")[:MOST_ROWS_OF_PAGE]
    # If the cells have no numbers, the pictures of counts and of shares would be the same.
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
        "num_confusions": np.count_nonzero(wrong),
        "event": labels_of([report.calibrated_event or ""], _LONGEST_NAME)[0],
        "matrices": [_matrix_picture(counts, report.class_names, x) for x in numbers],
        "largest_mistake": _largest_mistake(counts),
        "posteriors": [
            _violin((3.6, 3.6), "Posterior density of balanced accuracy", report.level, counts),
            _recalls(report),
        ],
        "curves": _curves_of_one(report),
    }


def pictures_of_two(report: ComparisonReport) -> dict[str, Any]:
    """Draw the pictures for two classifiers, and sort the classes by how much A and B differ."""
    # The log loss is omitted: it has no upper limit and would compress the other intervals.
    compared = {title_of(name): x for name, x in report.figures.items() if name != "log_loss"}
    largest = max(map(_largest_mistake, report.counts))
    of_class, curves = _curves_of_two(report)
    return {
        "names": labels_of(report.class_names, _LONGEST_NAME),
        "classifiers": labels_of(report.names, _LONGEST_NAME),
        "support": report.counts[0].sum(1),
        "order": np.argsort(-report.only_right_per_class.sum(1), kind="stable")[:MOST_ROWS_OF_PAGE],
        "differences": svg(
            (5.2, max(3, 0.8 + 0.2 * len(compared))),
            "Differences A - B of each metric with their intervals",
            partial(plots.difference, compared, rope=report.rope),
        ),
        "violins": _violin(
            (3.8, 3),
            "Posterior densities of the balanced accuracy of A and B",
            report.level,
            *report.counts,
        ),
        "matrices": [
            _matrix_picture(matrix, report.class_names, "shares", name, largest or None)
            for name, matrix in zip("AB", report.counts, strict=True)
        ],
        "largest_mistake": largest,
        "of_class": of_class,
        "curves": curves,
    }


class _Axis(NamedTuple):
    """The ends of an axis, and the number of decimals of the ends."""

    low: float
    high: float
    decimals: int

    @property
    def ends(self) -> list[str]:
        """The ends as text."""
        return [f"{x:.{self.decimals}f}" for x in (self.low, self.high)]

    def place(self, x: float) -> float:
        """Return the position of a number from 0 to 1; numbers beyond an end are put at the end."""
        return min(max((x - self.low) / (self.high - self.low), 0.0), 1.0)


def _axis_of(values: Sequence[ReportedValue]) -> _Axis:
    """Choose an axis between round numbers that contains all values and most intervals.

    It need not contain the very wide intervals of a few rare classes, because they would compress
    all other intervals.
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


def _worst_confusions(counts: np.ndarray, names: Sequence[str], level: float) -> list[Any]:
    """List the largest off-diagonal cells: the true and the predicted class, the count of the cell,
    the number of examples of the true class, and the share of the cell in this number.
    """
    mistakes = mistakes_in(counts)
    # Among cells with equal counts, rarer true classes come first.
    rarity = np.broadcast_to(counts.sum(1, keepdims=True), counts.shape)
    largest = np.lexsort((rarity.ravel(), -mistakes.ravel()))[:_MOST_CONFUSIONS]
    true, pred = np.unravel_index(largest[mistakes.ravel()[largest] > 0], counts.shape)
    times, support = counts[true, pred], rarity[true, pred]
    shares = proportion_interval(times, support, level=level, method="likelihood")
    named = ([names[i] for i in ids] for ids in (true, pred))
    return [*zip(*named, times, support, values_of(shares, "likelihood"), strict=True)]


def _largest_mistake(counts: np.ndarray) -> float:
    """Return the largest share of a true class that is classified as another class."""
    support = counts.sum(1)
    return float(np.max(mistakes_in(counts).max(1) / np.where(support > 0, support, 1)))


def _matrix_picture(
    counts: np.ndarray,
    names: Sequence[str],
    numbers: Any,
    title: str = "",
    scale: float | None = None,
) -> str:
    what = "percent of each true class" if numbers == "shares" else "counts"
    of_whom = f" of {title}" if title else ""
    options: dict[str, Any] = {"numbers": numbers, "scale": scale, "colorbar": False}
    options["class_names"] = labels_of(names, _LONGEST_IN_PICTURES)
    size = min(max(1.4 + 0.33 * len(names), 3.4), 8)
    return svg(
        (size, size),
        f"Confusion matrix{of_whom}, {what}; rows are truth",
        partial(plots.confusion_matrix, counts, **options),
        lambda ax: ax.set_title(title or ax.get_title()),
    )


def _violin(size: tuple[float, float], text: str, level: float, *counts: np.ndarray) -> str:
    matrices = np.stack([matrix_of_true_classes(x) for x in counts])
    names = ["A", "B"] if len(counts) > 1 else [""]
    draw = partial(plots.balanced_accuracy_violin, matrices, names, prior=PRIOR, level=level)
    return svg(size, text, draw)


def _recalls(report: Report) -> str:
    values, names = report.per_class["recall"], labels_of(report.class_names, _LONGEST_IN_PICTURES)
    defined = [i for i, x in enumerate(values) if not math.isnan(x.value)]
    worst = sorted(defined, key=lambda i: values[i].value)[:_MOST_BARS]
    numbers = np.array([values[i][:3] for i in worst])
    return svg(
        (4.8, max(2.4, 0.8 + 0.24 * len(worst))),
        "Recall of each class with its interval, the least recall on top",
        partial(forest, [names[i] for i in worst], numbers, xlabel="recall"),
    )


def _curves_of_one(report: Report) -> list[str]:
    """Draw the curves for the second class if there are two classes, otherwise for the classes with
    the smallest areas.
    """
    histograms = [] if report.score_histogram is None else [report.score_histogram]
    bins = [] if report.calibration_bins is None else [report.calibration_bins]
    *names, event = labels_of(
        [*report.class_names, report.calibrated_event or ""], _LONGEST_IN_PICTURES
    )
    chosen = _classes_by_area(histograms)[:_MOST_CURVES]
    events = [(names[i], x[i]) for x in histograms for i in chosen]
    text = f"How often {event} is right where it has probability p"
    return _curves(events, [(event, x) for x in bins], report.level, "", text)


def _curves_of_two(report: ComparisonReport) -> tuple[str, list[str]]:
    """Draw the curves of A and B on the same axes, and reliability diagrams.

    The curves are for the second class if there are two classes, otherwise for the class with the
    largest difference in area.
    """
    histograms = [] if report.score_histograms is None else [*report.score_histograms]
    bins = [] if report.calibration_bins is None else [*report.calibration_bins]
    chosen = _classes_by_area(histograms)[:1]
    events = [(name, x[i]) for i in chosen for name, x in zip("AB", histograms, strict=True)]
    named = [*zip("AB", bins, strict=False)]
    curves = _curves(events, named, report.level, " of A and B", "Reliability of A and B")
    return "".join(labels_of([report.class_names[i] for i in chosen], _LONGEST_NAME)), curves


def _curves(
    events: Sequence[tuple[str, np.ndarray]],
    bins: Sequence[tuple[str, np.ndarray]],
    level: float,
    of_whom: str,
    reliability: str,
) -> list[str]:
    """Draw ROC and precision-recall curves of named histograms `(2, B)`, and the reliability
    diagrams of named calibration bins.
    """
    curves = [(name, *_curves_of(histogram)) for name, histogram in events]
    calibrations = [(name, calibration_curve(x, level=level)) for name, x in bins]
    drawn = {
        f"ROC curves{of_whom}": [partial(plots.roc, x, name=name) for name, x, _ in curves],
        f"Precision against recall{of_whom}": [
            partial(plots.precision_recall, x, name=name) for name, _, x in curves
        ],
        reliability: [partial(plots.reliability, x, name=name) for name, x in calibrations],
    }
    return [svg(_CURVE, text, *draws) for text, draws in drawn.items() if draws]


def _classes_by_area(histograms: Sequence[np.ndarray]) -> list[int]:
    """List the classes whose curves are drawn, the most important class first.

    For one classifier, the class with the smallest area comes first; for two classifiers, the class
    with the largest difference in area. If there are two classes, only the second class is listed.
    Classes without an area are left out.
    """
    if not histograms:
        return []
    areas = np.array([roc_auc(x).value for x in histograms])
    rank = areas[0] if len(areas) == 1 else -np.abs(areas[0] - areas[1])
    order = [1] if len(rank) == 2 else np.argsort(rank, kind="stable").tolist()
    return [i for i in order if not math.isnan(rank[i])]


def _curves_of(histogram: np.ndarray) -> tuple[RocCurve, PrecisionRecallCurve]:
    """Compute the curves of a histogram `(2, B)`, with the indices of the bins as scores."""
    y_true, bins = histogram.nonzero()
    options: Any = {"sample_weight": histogram[y_true, bins]}
    return roc_curve(y_true, bins, **options), precision_recall_curve(y_true, bins, **options)
