"""Reports for a population with other class frequencies (prevalences) than the examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from jaxmetrics import (
    Estimate,
    at_prevalence,
    f1,
    interval,
    precision,
    specificity,
)
from jaxmetrics.estimates import Metric
from jaxmetrics.reports.overall_values import metrics_of
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.values import value_of, values_of

__all__: list[str] = []

_PER_CLASS: dict[str, Metric] = {"precision": precision, "specificity": specificity, "f1": f1}


def report_at_prevalence(report: Report, prevalence: Mapping[str, float] | float) -> Report:
    """Convert a report to a population in which the classes have other frequencies.

    The error rates within each class are assumed to stay the same, so the recalls do not change.
    The likelihood intervals assume that the number of examples of each class was fixed in advance.
    Accuracy is not compared with the share of the most frequent class, which is given; the rows may
    also be the classes of a map, whose true classes are the columns.

    Raises:
        ValueError: if the classes differ from the classes of the report, if the frequencies do not
            sum to 1, if a class has no examples, or if the counts are sums of weights of which the
            squares are unknown.
    """
    names = report.class_names
    if not isinstance(prevalence, Mapping):
        if len(names) != 2:
            raise ValueError(
                f"a single share is that of the second of two classes, but the classes are"
                f" {', '.join(names)}. Give the share of each class."
            )
        prevalence = {names[0]: 1 - prevalence, names[1]: prevalence}
    if set(prevalence) != set(names):
        raise ValueError(
            f"prevalence must contain each of the classes {', '.join(names)} exactly once, got"
            f" {', '.join(prevalence)}."
        )
    shares = [prevalence[name] for name in names]
    for name, number, share in zip(names, report.support, shares, strict=True):
        if number == 0 and share > 0:
            raise ValueError(
                f"The class {name!r} has no examples, so the data do not show how often this class"
                " is misclassified. Give this class the share 0, or add examples of this class."
            )
    of_labels = shares + [0.0] * len(report.invalid)
    options: Any = {"squares": report.squares, "level": report.level, "stratified": True}

    def estimate(metric: Metric) -> Estimate:
        return interval(at_prevalence(metric, of_labels), report.counts, **options)

    listed = ", ".join(f"{name} {share:g}" for name, share in zip(names, shares, strict=True))
    note = f"like all values below, it is for the class shares {listed}; recalls do not change."
    overall = {
        name: value_of(estimate(metric), note if name == "accuracy" else None)
        for name, metric in metrics_of(len(names), len(of_labels)).items()
    }
    per_class = dict(report.per_class)
    for name, metric in _PER_CLASS.items():
        per_class[name] = values_of(estimate(metric))[: len(names)]
    return replace(report, overall=overall, per_class=per_class)
