"""The values that each statistic in an evaluator's state adds to a report."""

from __future__ import annotations

from functools import singledispatch
from typing import TypeAlias

import numpy as np

from jaxmetrics import Estimate, average_precision, calibration_interval, roc_auc
from jaxmetrics.reports.contents import ClassValues, Findings
from jaxmetrics.reports.probabilities import (
    PREDICTED,
    area_values,
    calibration_value,
    findings_of_areas,
)
from jaxmetrics.reports.values import ReportValue, exactly, value_of
from jaxmetrics.streaming.accumulators import means_of
from jaxmetrics.streaming.standard_statistics import (
    CalibrationBins,
    ConfusionMatrix,
    Moments,
    ScoreHistogram,
)
from jaxmetrics.streaming.states import EvaluatorState

__all__: list[str] = []

# The table with the squares of weights, which is NaN if unknown; None without weights.
Squares: TypeAlias = np.ndarray | None


@singledispatch
def findings_of(
    statistic: object,
    table: np.ndarray,
    squares: Squares,
    values: ClassValues,
    level: float,
) -> Findings:
    """Return the values that a statistic, which is not a confusion matrix, adds to a report.

    `findings_of.register` registers a function for a type of statistics. A statistic of another
    type adds nothing.
    """
    return Findings()


@findings_of.register
def _(
    statistic: Moments, table: np.ndarray, squares: Squares, values: ClassValues, level: float
) -> Findings:
    means = {name: mean(table, squares, level) for name, mean in means_of(statistic).items()}
    return Findings(
        {
            f"mean_{name}" if name in values.overall else name: value_of(x)
            for name, x in means.items()
            if x.value.ndim == 0
        }
    )


@findings_of.register
def _(
    statistic: ScoreHistogram,
    table: np.ndarray,
    squares: Squares,
    values: ClassValues,
    level: float,
) -> Findings:
    if statistic.num_groups is not None:
        return Findings()
    if statistic.num_classes is None:
        bounds = {"roc_auc": roc_auc(table), "average_precision": average_precision(table)}
        ends = {name: map(float, (x.value, x.low, x.high)) for name, x in bounds.items()}
        return Findings(
            {name: ReportValue(Estimate(*x, method="bounds")) for name, x in ends.items()}
        )
    if statistic.num_classes != len(values.names):
        return Findings()
    areas = area_values(table, level)
    if squares is not None:
        areas = [exactly(x.value) for x in areas]
    return findings_of_areas(areas)._replace(tables={"score_histogram": table})


@findings_of.register
def _(
    statistic: CalibrationBins,
    table: np.ndarray,
    squares: Squares,
    values: ClassValues,
    level: float,
) -> Findings:
    gap = calibration_interval(table, level=level)
    if squares is not None:  # the bins of examples with weights do not show an interval
        gap = Estimate(gap.value)
    event = values.names[-1] if statistic.num_classes is None else PREDICTED
    return Findings(
        {"calibration_error": calibration_value(gap)},
        tables={"calibration_bins": table, "calibrated_event": event},
    )


def confusion_matrices(state: EvaluatorState) -> list[ConfusionMatrix]:
    """List the confusion matrices in a state that a report can use, which have no groups."""
    return [s for s in state.statistics if isinstance(s, ConfusionMatrix) and s.num_groups is None]
