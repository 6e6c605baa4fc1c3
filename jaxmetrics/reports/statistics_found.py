"""The values that each statistic in an evaluator's state adds to a report."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

import numpy as np

from jaxmetrics.ranking import average_precision, roc_auc
from jaxmetrics.reports.contents import Findings, ReportedValue, value_of
from jaxmetrics.reports.probabilities import PREDICTED, area_values, calibration_value
from jaxmetrics.scoring import calibration_interval
from jaxmetrics.streaming.accumulators import means_of
from jaxmetrics.streaming.standard_statistics import (
    CalibrationBins,
    ConfusionMatrix,
    Moments,
    ScoreHistogram,
)
from jaxmetrics.streaming.states import EvaluatorState

if TYPE_CHECKING:
    from jaxmetrics.reports.singles import Report

__all__: list[str] = []


@singledispatch
def findings_of(statistic: object, table: np.ndarray, report: Report) -> Findings:
    """Return the values that a statistic, which is not a confusion matrix, adds to a report.

    `findings_of.register` registers a function for a type of statistics. A statistic of another
    type adds nothing.
    """
    return Findings()


@findings_of.register(Moments)
def _(statistic: Moments, table: np.ndarray, report: Report) -> Findings:
    found = {name: mean(table, report.level) for name, mean in means_of(statistic).items()}
    return Findings(
        {
            f"mean_{name}" if name in report.overall else name: value_of(estimate, "normal")
            for name, estimate in found.items()
            if estimate.value.ndim == 0
        }
    )


@findings_of.register(ScoreHistogram)
def _(statistic: ScoreHistogram, table: np.ndarray, report: Report) -> Findings:
    if statistic.num_groups is not None:
        return Findings()
    if statistic.num_classes is None:
        bounds = {
            "roc_auc": roc_auc(table),
            "average_precision": average_precision(table),
        }
        values = {k: ReportedValue(*map(float, x), method="bounds") for k, x in bounds.items()}
        return Findings(values)
    if statistic.num_classes != len(report.class_names):
        return Findings()
    areas = {"roc_auc": area_values(table, report.level)}
    return Findings(per_class=areas, tables={"score_histogram": table})


@findings_of.register(CalibrationBins)
def _(statistic: CalibrationBins, table: np.ndarray, report: Report) -> Findings:
    gap = calibration_interval(table, level=report.level)
    event = report.class_names[-1] if statistic.num_classes is None else PREDICTED
    return Findings(
        {"calibration_error": calibration_value(gap)},
        tables={"calibration_bins": table, "calibrated_event": event},
    )


def confusion_matrices(state: EvaluatorState) -> list[ConfusionMatrix]:
    """List the confusion matrices in a state that a report can use, which have no groups."""
    return [s for s in state.statistics if isinstance(s, ConfusionMatrix) and s.num_groups is None]
