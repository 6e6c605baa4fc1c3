"""The numbers of a report that are computed from one confusion matrix.

All is computed on the host, at once, in double precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxmetrics._cell_sums import cells
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals import delta_method, likelihood_interval, proportion_interval
from jaxmetrics.metrics import (
    accuracy,
    balanced_accuracy,
    cohen_kappa,
    f1,
    macro,
    matthews_corrcoef,
    no_information_rate,
    weighted,
)
from jaxmetrics.posteriors import balanced_accuracy_posterior
from jaxmetrics.reports._text import fraction
from jaxmetrics.reports.values import ReportedValue, value_of

__all__: list[str] = []


class PerClass(NamedTuple):
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate


_FRACTIONS: dict[str, Metric] = {
    "balanced_accuracy": balanced_accuracy,
    "macro_f1": macro(f1),
    "weighted_f1": weighted(f1),
}
_COEFFICIENTS: dict[str, Metric] = {
    "matthews_corrcoef": matthews_corrcoef,
    "cohen_kappa": cohen_kappa,
}
COMPARED: dict[str, Metric] = {"accuracy": accuracy} | _FRACTIONS | _COEFFICIENTS
_FEW_CLASSES = 32


def all_of(metrics: Mapping[str, Metric]) -> Metric:
    return lambda counts: {name: metric(counts) for name, metric in metrics.items()}


def per_class_estimates(counts: np.ndarray, level: float) -> PerClass:
    tp, fp, fn, tn = cells(counts)
    proportion = partial(proportion_interval, level=level)
    jaccard = proportion(tp, tp + fp + fn)
    return PerClass(
        precision=proportion(tp, tp + fp),
        recall=proportion(tp, tp + fn),
        specificity=proportion(tn, tn + fp),
        f1=Estimate(*(2 * j / (1 + j) for j in jaccard)),  # which grows with Jaccard's index
    )


def overall_values(counts: np.ndarray, level: float) -> dict[str, ReportedValue]:
    """Report the overall values."""
    right = value_of(proportion_interval(counts.trace(), counts.sum(), level=level), "wilson")
    smooth = _smooth_values(counts, level)
    return {
        "accuracy": right,
        "balanced_accuracy": smooth["balanced_accuracy"],
        "macro_f1": smooth["macro_f1"],
        "micro_f1": right,  # with one label per example
        "weighted_f1": smooth["weighted_f1"],
        "matthews_corrcoef": smooth["matthews_corrcoef"],
        "cohen_kappa": smooth["cohen_kappa"],
        # A maximum: an interval of the commonest class's share is none of the largest share.
        "no_information_rate": ReportedValue(float(no_information_rate(counts))),
    }


def _smooth_values(counts: np.ndarray, level: float) -> dict[str, ReportedValue]:
    """Report by likelihood, or sums of weights, which have none, by the delta method."""
    if (counts != np.round(counts)).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are none at 0 and 1
            estimates = delta_method(all_of(_FRACTIONS), counts, level=level, transform="logit")
            estimates |= delta_method(all_of(_COEFFICIENTS), counts, level=level, transform="atanh")
        return {name: value_of(x, "delta") for name, x in estimates.items()}
    metrics = _FRACTIONS | _COEFFICIENTS
    interval = partial(likelihood_interval, level=level)
    if len(counts) > _FEW_CLASSES:  # the derivatives are compiled, once for all
        estimates = interval(all_of(metrics), counts)
    else:
        estimates = {name: interval(metric, counts) for name, metric in metrics.items()}
    return {name: value_of(x, "likelihood") for name, x in estimates.items()}


def posterior_balanced_accuracy(matrix: np.ndarray, level: float) -> ReportedValue:
    """Report mean and equal-tailed interval of balanced accuracy under a flat prior, of the classes
    that occur in truth.
    """
    average = balanced_accuracy_posterior(matrix_of_true_classes(matrix))
    low, high = map(float, average.interval(level))
    note = "The prior is flat, worth one right and one wrong example of each class"
    estimate = float(balanced_accuracy(matrix))
    if not low <= estimate <= high:
        note += "; it pulls the interval away from the balanced accuracy of these examples, "
        note += fraction(estimate)
    return ReportedValue(float(average.mean), low, high, "posterior", f"{note}.")


def matrix_of_true_classes(matrix: np.ndarray) -> np.ndarray:
    """Make a matrix with the same right and wrong examples of each class that occurs in truth, and
    no other class.
    """
    right, support = matrix.diagonal(), matrix.sum(1)
    (found,) = support.nonzero()
    if len(found) < 2:
        return matrix
    # What the wrong ones were taken for does not matter to recalls.
    wrong = np.roll(np.diag((support - right)[found]), 1, axis=1)
    return np.diag(right[found]) + wrong
