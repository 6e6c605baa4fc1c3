"""One number of a report, with its interval."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._printing import line_of
from jaxmetrics._wording import fraction, interval
from jaxmetrics.comparisons.classifiers import Comparison, comparison_cells
from jaxmetrics.estimates import Estimate

__all__ = ["ComparedValue", "ReportedValue"]


class ReportedValue(NamedTuple):
    """Hold one number of a report, with its interval.

    Attributes:
        value: the number.
        low, high: the ends of its interval, or None.
        method: of the interval, or None: `"wilson"` for proportions and for F1, `"likelihood"` for
            what else is a smooth function of the counts and for differences, `"delta"` in its place
            where the counts are sums of weights (on the logit scale, or atanh where values can be
            negative), `"posterior"` for the posterior balanced accuracy, `"normal"` for means of
            states, `"student"` for log losses and differences of means, `"score"` for areas under
            ROC curves, `"mover"` for differences of areas and of groups, `"inequalities"` for the
            calibration error, `"bounds"` where the exact area lies between the two ends.
        note: what a reader must know to read the number right, or None.

    >>> value = ReportedValue(0.851, 0.8, 0.892, "wilson")
    >>> value, f"{value:.2f}", float(value)
    (0.851 [0.800, 0.892], '0.85 [0.80, 0.89]', 0.851)
    """

    value: float
    low: float | None = None
    high: float | None = None
    method: str | None = None
    note: str | None = None

    def __float__(self) -> float:
        """Return the value."""
        return float(self.value)

    def __repr__(self) -> str:
        """Write the value and its interval."""
        return format(self)

    def __format__(self, spec: str) -> str:
        """Write the value and its interval, each number by `spec`."""
        low, high = (math.nan if end is None else end for end in (self.low, self.high))
        return interval(self.value, low, high, spec)


class ComparedValue(NamedTuple):
    """Hold one number of two classifiers; it prints as a `Comparison` does.

    Attributes:
        a, b: the number of A and of B.
        difference: A - B.
        probability_better: how probably A is above B.
        probability_equivalent: how probably they differ by `rope` at most.
    """

    a: ReportedValue
    b: ReportedValue
    difference: ReportedValue
    probability_better: float
    probability_equivalent: float

    def __repr__(self) -> str:
        """Write both values and their difference."""
        return format(self)

    def __format__(self, spec: str) -> str:
        """Write both values and their difference, each number by `spec`."""
        return line_of(comparison_cells(self, spec))


def value_of(x: Estimate, method: str) -> ReportedValue:
    """Report an estimate, without an interval where that is undefined."""
    if np.isnan(x.low):
        return ReportedValue(float(x.value))
    return ReportedValue(float(x.value), float(x.low), float(x.high), method)


def values_of(x: Estimate, method: str) -> list[ReportedValue]:
    """Report an estimate of n numbers, `(n,)` each of its parts."""
    return [value_of(Estimate(*parts), method) for parts in zip(*x, strict=True)]


def compared(x: Comparison) -> ComparedValue:
    """Report a comparison by likelihood."""
    a, b, difference = (value_of(part, "likelihood") for part in x[:3])
    return ComparedValue(a, b, difference, *map(float, x[3:]))


def dict_of(x: ReportedValue | ComparedValue) -> dict[str, Any]:
    """Write a value for JSON: None for NaN, and no ends where there is no interval."""
    return {
        key: dict_of(part) if isinstance(part, ReportedValue) else number(part)
        for key, part in x._asdict().items()
        if key == "value" or part is not None
    }


def record_of(x: ReportedValue, level: float) -> dict[str, Any]:
    """Write a value and its interval as a row of a table for programs."""
    numbers = {key: number(getattr(x, key)) for key in ("value", "low", "high")}
    return {**numbers, "level": None if x.low is None else level, "method": x.method}


def value_cell(x: ReportedValue) -> str:
    """Write a value and its interval in a sentence, or in a table with room."""
    if x.low is None or x.high is None:
        return fraction(x.value)
    return f"{fraction(x.value)} ({fraction(x.low)} to {fraction(x.high)})"


def number(x: Any) -> Any:
    """Return None for NaN, which JSON has not."""
    return None if isinstance(x, float) and math.isnan(x) else x
