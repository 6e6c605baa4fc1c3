"""The numbers of a report: what is computed from one confusion matrix, and how it is written.

All is computed on the host, at once, in double precision.
"""

from __future__ import annotations

import math
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
    weighted,
)
from jaxmetrics.posteriors import balanced_accuracy_posterior

__all__ = ["Figure"]


class Figure(NamedTuple):
    """One number of a report, with its interval.

    `interval` names its method: `"wilson"` for proportions and for F1, `"delta"` for what else is a
    smooth function of the counts (on the logit scale, or atanh where values can be negative),
    `"posterior"` where the delta method would give no width, since no error was seen, or too
    little, since a class was never right, and for the posterior balanced accuracy, `"bca"` in
    comparisons, `"normal"` for means, `"newcombe"` for areas under ROC curves, `"bounds"` where the
    exact value of an area lies between the two. None: no interval.
    """

    value: float
    low: float | None = None
    high: float | None = None
    interval: str | None = None


class PerClass(NamedTuple):
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate


_PROPORTIONS = ("accuracy", "micro_f1", "no_information_rate")
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


def evaluate(counts: np.ndarray, level: float) -> tuple[dict[str, Estimate], PerClass]:
    """The overall estimates and those of each class."""
    tp, fp, fn, tn = cells(counts)
    proportion = partial(proportion_interval, level=level)
    right = proportion(tp.sum(), counts.sum())  # with one label per example the micro F1, too
    overall = {"accuracy": right, "micro_f1": right}
    overall["no_information_rate"] = proportion(counts.sum(-1).max(), counts.sum())
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


def overall_figures(
    matrix: np.ndarray, level: float, estimates: Mapping[str, Estimate]
) -> dict[str, Figure]:
    """With the posterior's interval, extended to the value, where the delta method sees nothing
    that could be otherwise: no error, or a class that was never right.
    """
    figures = {}
    for name in _ORDER:
        at_most_one = Estimate(*(np.minimum(part, 1) for part in estimates[name]))  # by rounding
        figures[name] = figure_of(at_most_one, "wilson" if name in _PROPORTIONS else "delta")
    never_right = bool(((matrix.diagonal() == 0) & (matrix.sum(1) > 0)).any())
    certain = [
        name
        for name, x in figures.items()
        if x.interval == "delta" and (never_right or x.low == x.high)
    ]
    if certain:
        occurring = (matrix.sum(0) > 0) | (matrix.sum(1) > 0)
        present = matrix[np.ix_(occurring, occurring)] if occurring.sum() > 1 else matrix
        num_samples = min(10_000, max(2000, 2**20 // present.size))  # a tenth of a second
        believed = posterior(0, compared_metrics, present, num_samples=num_samples, level=level)
        for name in certain:
            value, low, high = (
                figures[name].value,
                float(believed[name].low),
                float(believed[name].high),
            )
            figures[name] = Figure(value, min(value, low), max(value, high), "posterior")
    return figures


def balanced_accuracy_figure(matrix: np.ndarray, level: float) -> Figure:
    """Mean and equal-tailed interval of balanced accuracy under a flat prior, of the classes that
    occur in truth.
    """
    law = balanced_accuracy_posterior(of_true_classes(matrix))
    low, high = law.interval(level)
    return Figure(float(law.mean), float(low), float(high), "posterior")


def of_true_classes(matrix: np.ndarray) -> np.ndarray:
    """A matrix with the same right and wrong examples of each class that occurs in truth, and no
    other class.
    """
    right, support = matrix.diagonal(), matrix.sum(1)
    (found,) = support.nonzero()
    if len(found) < 2:
        return matrix
    wrong = np.roll(np.diag((support - right)[found]), 1, axis=1)  # as whatever else
    return np.diag(right[found]) + wrong


def figure_of(x: Estimate, interval: str) -> Figure:
    return (
        Figure(float(x.value))
        if np.isnan(x.low)
        else Figure(float(x.value), float(x.low), float(x.high), interval)
    )


def figure_dict(figure: Figure) -> dict[str, float | str | None]:
    known = {key: x for key, x in figure._asdict().items() if key == "value" or x is not None}
    return {key: None if isinstance(x, float) and math.isnan(x) else x for key, x in known.items()}
