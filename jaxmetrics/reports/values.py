"""The values of reports: estimates, and comparisons of two estimates, with their methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from jaxmetrics import Comparison, Estimate
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._text.wording import interval, written

__all__: list[str] = []

Key: TypeAlias = tuple[str, str]  # a name, and a class or label, or ""


@dataclass(frozen=True, repr=False)
class ReportValue:
    """A value of a report. It prints like its estimate, and `float` returns its number.

    Attributes:
        estimate: the number with its interval and standard error, an `Estimate` of floats. The ends
            are NaN if there is no interval.
        is_difference: whether the value is a difference between two classifiers.

    >>> value = ReportValue(Estimate(0.851, 0.8, 0.892, 0.02, 0, method="likelihood"))
    >>> value, float(value), value.low, value.method
    (0.851 [0.800, 0.892], 0.851, 0.8, 'likelihood')
    """

    estimate: Estimate
    is_difference: bool = False

    @property
    def value(self) -> float:
        """The number."""
        return self.estimate.value

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.estimate.low

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.estimate.high

    @property
    def standard_error(self) -> float:
        """The standard error."""
        return self.estimate.standard_error

    @property
    def method(self) -> str | None:
        """The method of the interval, or None if there is no interval.

        It is `"likelihood"` for proportions, for other smooth functions of the counts and for
        differences; `"tango"` for the accuracy gain; `"delta"` for functions of sums of weights
        that are not proportions (on the logit scale, or on the atanh scale if values can be
        negative); `"posterior"` for the posterior balanced accuracy; `"normal"` for means in the
        state of an evaluator; `"student"` for log losses, differences of means, and the accuracy
        gain if there are clusters; `"score"` for areas under ROC curves; `"mover"` for differences
        of areas and of groups; `"inequalities"` for the calibration error; `"bounds"` for bounds of
        the exact area.
        """
        return self.estimate.method

    @property
    def note(self) -> str | None:
        """A note for the interpretation of the value, or None."""
        return self.estimate.note

    @property
    def numbers(self) -> tuple[float, float, float]:
        """The value and the ends of its interval."""
        return self.value, self.low, self.high

    @property
    def has_interval(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    @property
    def written(self) -> list[str]:
        """The value and the ends as text, with only as many digits as the interval justifies."""
        return written(*self.numbers)

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return repr(self.estimate)

    def __format__(self, spec: str) -> str:
        """Return the value with its interval, if there is one; "-" stands for NaN."""
        return interval(*self.numbers, spec).replace("nan", "-")

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON. NaN becomes None; without an interval, the dict has no ends."""
        names = "value", "low", "high", "standard_error", "method", "note"
        parts = {name: number(getattr(self, name)) for name in names}
        return {name: x for name, x in parts.items() if name == "value" or x is not None}


@dataclass(frozen=True, repr=False)
class Compared:
    """The values of A, of B and of A - B in a report. It prints like a `Comparison`.

    Attributes:
        a, b, difference: the values.
        probability_better, probability_equivalent: the shares of `Comparison`, as floats.
    """

    a: ReportValue
    b: ReportValue
    difference: ReportValue
    probability_better: float
    probability_equivalent: float

    @property
    def systems(self) -> dict[str, ReportValue]:
        """The values by the titles of their columns."""
        return {"A": self.a, "B": self.b, "A - B": self.difference}

    @property
    def shares(self) -> dict[str, float]:
        """The probabilities by name."""
        return {
            "probability_better": self.probability_better,
            "probability_equivalent": self.probability_equivalent,
        }

    def __repr__(self) -> str:
        a, b, difference = (x.estimate for x in self.systems.values())
        return repr(Comparison(a, b, difference, *self.shares.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        values = {"a": self.a, "b": self.b, "difference": self.difference}
        shares = {name: number(x) for name, x in self.shares.items()}
        return {name: x.to_dict() for name, x in values.items()} | shares


def exactly(value: Any, note: str | None = None) -> ReportValue:
    """Return a value without an interval."""
    return ReportValue(Estimate(float(value), note=note))


def value_of(x: Estimate, note: str | None = None, *, is_difference: bool = False) -> ReportValue:
    """Return an estimate as a value of a report; it has no interval if the ends are NaN."""
    if np.isnan(x.low):
        return exactly(x.value, note)
    return ReportValue(replace(trees.map(float, x), note=note), is_difference)


def values_of(x: Estimate) -> list[ReportValue]:
    """Return n values from an estimate whose arrays have shape `(n,)`."""
    return [value_of(x.select(i)) for i in range(len(x.value))]


def compared(x: Comparison) -> Compared:
    """Return a comparison of numbers as a value of a report."""
    difference = value_of(x.difference, is_difference=True)
    shares = float(x.probability_better), float(x.probability_equivalent)
    return Compared(value_of(x.a), value_of(x.b), difference, *shares)


def number(x: Any) -> Any:
    """Return None for NaN, because JSON does not support NaN; return other values unchanged."""
    return None if isinstance(x, float) and math.isnan(x) else x


def records_of(
    values: Mapping[Any, ReportValue | Compared],
    level: float,
    part: str | None = None,
    system: str = "",
    **more: str,
) -> list[dict[str, Any]]:
    """Return values as rows for the CSV file.

    Args:
        values: the values by their name and class, label or group; this is "" or None for values of
            all examples.
        level: the confidence level.
        part: the title of the column of classes, labels or groups; None without this column.
        system: the title of the column of A and B.
        more: further columns.
    """
    rows = []
    for (name, of_part), x in values.items():
        start = {"name": name, **({part: of_part or None} if part else {}), **more}
        systems = x.systems if isinstance(x, Compared) else {"": x}
        for title, value in systems.items():
            ends = dict(zip(("value", "low", "high"), map(number, value.numbers), strict=True))
            known = {"level": level if value.has_interval else None, "method": value.method}
            rows.append({**start, **({system: title} if title else {}), **ends, **known})
    return rows
