"""One number of a report, with its interval."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics.estimates import Estimate

__all__ = ["ComparedValue", "ReportedValue"]


class ReportedValue(NamedTuple):
    """Holds one number of a report, with its interval.

    `method` names that of the interval: `"wilson"` for proportions and for F1, `"delta"` for what
    else is a smooth function of the counts (on the logit scale, or atanh where values can be
    negative), `"posterior"` where the delta method would give no width, since no error was seen, or
    too little, since a class was never right, and for the posterior balanced accuracy, `"bca"` in
    comparisons, `"normal"` for means, `"score"` for areas under ROC curves, `"bounds"` where the
    exact value of an area lies between the two. None: no interval.
    """

    value: float
    low: float | None = None
    high: float | None = None
    method: str | None = None


class ComparedValue(NamedTuple):
    """Holds one number of two classifiers; see `Comparison`."""

    a: ReportedValue
    b: ReportedValue
    difference: ReportedValue
    probability_better: float
    probability_equivalent: float
    num_undefined: int  # replicates in which it was not defined, left out


def value_of(x: Estimate, method: str) -> ReportedValue:
    """Report an estimate, without an interval where that is undefined."""
    if np.isnan(x.low):
        return ReportedValue(float(x.value))
    return ReportedValue(float(x.value), float(x.low), float(x.high), method)


def as_estimate(x: ReportedValue) -> Estimate:
    """Convert a reported value to what pictures take."""
    missing = x.low is None or x.high is None
    ends = (math.nan, math.nan) if missing else (x.low, x.high)
    return Estimate(*(np.float64(part) for part in (x.value, *ends, math.nan, 0)))


def posterior_value(value: float, posterior: Estimate) -> ReportedValue:
    """Report a value with the interval of its posterior, extended to contain it."""
    low, high = float(posterior.low), float(posterior.high)
    return ReportedValue(value, min(value, low), max(value, high), "posterior")


def as_json(x: ReportedValue | ComparedValue) -> dict[str, Any]:
    """Convert a value to JSON: None for NaN, and no ends where there is no interval."""
    if isinstance(x, ComparedValue):
        return {
            key: as_json(part) if isinstance(part, ReportedValue) else _number(part)
            for key, part in x._asdict().items()
        }
    known = {key: part for key, part in x._asdict().items() if key == "value" or part is not None}
    return {key: _number(part) for key, part in known.items()}


def _number(x: Any) -> Any:
    return None if isinstance(x, float) and math.isnan(x) else x
