"""The numbers of a report that are computed from one confusion matrix.

All is computed on the host, at once, in double precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._cell_sums import cells
from jaxmetrics._validation import ArrayLike
from jaxmetrics._wording import fraction
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals import (
    Delta,
    IntervalMethod,
    Likelihood,
    interval,
    proportion_interval,
)
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
from jaxmetrics.reports.values import ReportedValue, value_of

__all__: list[str] = []


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
# Of a report; a table of their counts takes 128 MB.
MOST_CLASSES = 4096
# Beyond so many, searching tables of K^2 counts for the ends of intervals takes minutes.
MOST_WITH_INTERVALS = 1024
# Jeffreys'. Simulated with recalls of .998 and 250 examples of each of two classes, the interval of
# posterior balanced accuracy covered in 92 % (72 % with a flat prior); of ten classes of 50 with .9
# in 92 % (82 %), with .99 in 60 % (2 %).
PRIOR = 0.5
_NO_INTERVALS = (
    f"beyond {MOST_WITH_INTERVALS} classes neither this nor other averages and coefficients have an"
    " interval, since these would take minutes; method=Delta() asks for them."
)


def check_number_of_classes(k: int, what: str) -> None:
    if k < 2:
        raise ValueError(f"a {what} needs at least two classes, got {k}: class_names names them.")
    if k > MOST_CLASSES:
        raise ValueError(f"a {what} takes at most {MOST_CLASSES} classes, got {k}.")


class Evidence(NamedTuple):
    """What intervals are computed from.

    Attributes:
        counts: `(K, K)`.
        level: of the intervals.
        method: of those that are no proportions; None for the one of first choice.
        clusters: tables `(C, K, K)` whose sum the counts are, if examples come in clusters.
    """

    counts: np.ndarray
    level: float
    method: IntervalMethod | None = None
    clusters: np.ndarray | None = None

    @property
    def tables(self) -> np.ndarray:
        """The counts, or those of each cluster."""
        return self.counts if self.clusters is None else self.clusters

    def proportion(self, successes: ArrayLike, trials: ArrayLike) -> Estimate:
        """Estimate a share from sums over parts of the tables."""
        axis = None if self.clusters is None else 0
        return proportion_interval(successes, trials, level=self.level, cluster_axis=axis)

    def estimate(self, method: IntervalMethod, metric: Metric) -> Any:
        axis = None if self.clusters is None else 0
        return interval(metric, self.tables, method=method, level=self.level, cluster_axis=axis)


def per_class_estimates(evidence: Evidence) -> dict[str, Estimate]:
    """Estimate rates of each class."""
    tp, fp, fn, tn = cells(evidence.tables)
    jaccard = evidence.proportion(tp, tp + fp + fn)
    return {
        "precision": evidence.proportion(tp, tp + fp),
        "recall": evidence.proportion(tp, tp + fn),
        "specificity": evidence.proportion(tn, tn + fp),
        "f1": Estimate(*(2 * j / (1 + j) for j in jaccard)),  # which grows with Jaccard's index
    }


def overall_values(evidence: Evidence) -> dict[str, ReportedValue]:
    """Report the overall values."""
    tables = evidence.tables
    right = evidence.proportion(tables.trace(axis1=-2, axis2=-1), tables.sum((-2, -1)))
    accuracy = value_of(right, "wilson")
    smooth = _smooth_values(evidence)
    posterior = {}
    if evidence.clusters is None:  # it takes examples for independent
        average = posterior_balanced_accuracy(evidence.counts, evidence.level)
        posterior["balanced_accuracy_posterior"] = average
    return {
        "accuracy": accuracy,
        "balanced_accuracy": smooth["balanced_accuracy"],
        **posterior,
        "macro_f1": smooth["macro_f1"],
        "micro_f1": accuracy,  # with one label per example
        "weighted_f1": smooth["weighted_f1"],
        "matthews_corrcoef": smooth["matthews_corrcoef"],
        "cohen_kappa": smooth["cohen_kappa"],
        # A maximum: an interval of the commonest class's share is none of the largest share.
        "no_information_rate": ReportedValue(float(no_information_rate(evidence.counts))),
    }


def _smooth_values(evidence: Evidence) -> dict[str, ReportedValue]:
    """Report by the method, or that of first choice: likelihood, and for sums of weights, which
    have none, the delta method.
    """
    counts, _, method, _ = evidence

    def values(method: IntervalMethod, metrics: Mapping[str, Metric]) -> dict[str, ReportedValue]:
        return {
            name: value_of(evidence.estimate(method, metric), method.name)
            for name, metric in metrics.items()
        }

    if method is None and len(counts) > MOST_WITH_INTERVALS:
        metrics = _FRACTIONS | _COEFFICIENTS
        alone = {name: ReportedValue(float(metric(counts))) for name, metric in metrics.items()}
        return alone | {
            "balanced_accuracy": alone["balanced_accuracy"]._replace(note=_NO_INTERVALS)
        }
    if method is None and (counts != np.round(counts)).any():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are none at 0 and 1
            return values(Delta("logit"), _FRACTIONS) | values(Delta("atanh"), _COEFFICIENTS)
    return values(method or Likelihood(), _FRACTIONS | _COEFFICIENTS)


def posterior_balanced_accuracy(matrix: np.ndarray, level: float) -> ReportedValue:
    """Report the posterior mean of balanced accuracy and its equal-tailed interval, of the classes
    that occur in truth.
    """
    average = balanced_accuracy_posterior(matrix_of_true_classes(matrix), prior=PRIOR)
    low, high = map(float, average.interval(level))
    note = "The prior is Jeffreys', worth half a right and half a wrong example of each class"
    estimate = float(balanced_accuracy(matrix))
    if not low <= estimate <= high:
        note += "; it pulls the interval away from the balanced accuracy of these examples, "
        note += fraction(estimate)
    return ReportedValue(float(average.mean), low, high, "posterior", f"{note}.")


def matrix_of_true_classes(matrix: np.ndarray) -> np.ndarray:
    """Make a matrix with the same right and wrong examples of each class that occurs in truth, and
    no other class, unless only one occurs.
    """
    right = matrix.diagonal()
    wrong = matrix.sum(1) - right
    occurs = right + wrong > 0
    if occurs.sum() > 1:
        right, wrong = right[occurs], wrong[occurs]
    # What the wrong ones were taken for does not matter to recalls.
    return np.diag(right) + np.roll(np.diag(wrong), 1, axis=1)
