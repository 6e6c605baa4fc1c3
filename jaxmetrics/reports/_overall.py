"""The numbers of a report that are computed from one confusion matrix.

All is computed on the host, at once, in double precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxmetrics._cell_sums import cells
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals import delta_method, posterior, proportion_interval
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
from jaxmetrics.reports.values import ReportedValue, posterior_value, value_of

__all__: list[str] = []


class PerClass(NamedTuple):
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate


_PROPORTIONS = ("accuracy", "micro_f1")
_FRACTIONS: dict[str, Metric] = {
    "balanced_accuracy": balanced_accuracy,
    "macro_f1": macro(f1),
    "weighted_f1": weighted(f1),
}
_COEFFICIENTS: dict[str, Metric] = {
    "matthews_corrcoef": matthews_corrcoef,
    "cohen_kappa": cohen_kappa,
}
_ORDER = (
    *("accuracy", "balanced_accuracy", "macro_f1", "micro_f1", "weighted_f1"),
    *("matthews_corrcoef", "cohen_kappa", "no_information_rate"),
)

COMPARED: dict[str, Metric] = {"accuracy": accuracy} | _FRACTIONS | _COEFFICIENTS


def _all_of(metrics: Mapping[str, Metric]) -> Metric:
    return lambda counts: {name: metric(counts) for name, metric in metrics.items()}


_fractions, _coefficients, compared_metrics = map(_all_of, (_FRACTIONS, _COEFFICIENTS, COMPARED))


def estimates_of(counts: np.ndarray, level: float) -> tuple[dict[str, Estimate], PerClass]:
    """Estimate the overall metrics and those of each class."""
    tp, fp, fn, tn = cells(counts)
    proportion = partial(proportion_interval, level=level)
    right = proportion(tp.sum(), counts.sum())  # with one label per example the micro F1, too
    overall = {"accuracy": right, "micro_f1": right}
    # A maximum: an interval of the commonest class's share is none of the largest share.
    nan = np.nan
    overall["no_information_rate"] = Estimate(no_information_rate(counts), nan, nan, nan, 0)
    overall |= delta_method(_fractions, counts, level=level, transform="logit")
    overall |= delta_method(_coefficients, counts, level=level, transform="atanh")
    jaccard = proportion(tp, tp + fp + fn)
    per_class = PerClass(
        precision=proportion(tp, tp + fp),
        recall=proportion(tp, tp + fn),
        specificity=proportion(tn, tn + fp),
        f1=Estimate(*(2 * j / (1 + j) for j in jaccard)),  # which grows with Jaccard's index
    )
    return overall, per_class


def overall_values(
    matrix: np.ndarray, level: float, estimates: Mapping[str, Estimate]
) -> dict[str, ReportedValue]:
    """Report the overall values, with the posterior's interval where the delta method gives no
    width or too little: where there is no error, or a class that was never right.
    """
    values = {}
    for name in _ORDER:
        at_most_one = Estimate(*(np.minimum(part, 1) for part in estimates[name]))  # by rounding
        values[name] = value_of(at_most_one, "wilson" if name in _PROPORTIONS else "delta")
    never_right = bool(((matrix.diagonal() == 0) & (matrix.sum(1) > 0)).any())
    certain = [
        name
        for name in _FRACTIONS | _COEFFICIENTS
        if not np.isnan((x := values[name]).value) and (never_right or x.low == x.high)
    ]
    if certain:
        occurring = (matrix.sum(0) > 0) | (matrix.sum(1) > 0)
        present = matrix[np.ix_(occurring, occurring)] if occurring.sum() > 1 else matrix
        num_samples = min(10_000, max(2000, 2**20 // present.size))  # a tenth of a second
        posteriors = posterior(0, compared_metrics, present, num_samples=num_samples, level=level)
        for name in certain:
            values[name] = posterior_value(values[name].value, posteriors[name])
    return values


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
