"""An estimate: a value with the ends of its interval and its standard error."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics._validation import check_level

__all__ = ["Estimate"]


Metric: TypeAlias = Callable[[Array], Any]


class Estimate(NamedTuple):
    """A value, the ends of its interval and its standard error: arrays of one shape.

    `num_undefined` counts the replicates in which the metric was NaN or infinite; it is 0 where
    nothing was drawn. These replicates are left out of the other figures, so that the interval
    holds for test sets in which the metric is defined.
    """

    value: Array
    low: Array
    high: Array
    standard_error: Array
    num_undefined: Array


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal lies in [-z, z] with probability `level`."""
    return -NormalDist().inv_cdf((1 - check_level(level)) / 2)


def normal_estimate(value: Array, error: Array, z: float, transform: str | None = None) -> Estimate:
    low, high = _normal_interval(value, z * error, transform)
    return Estimate(value, low, high, error, xp.zeros(np.shape(value), xp.int32))


def _normal_interval(value: Array, reach: Array, transform: str | None) -> tuple[Array, Array]:
    if transform is None:
        return value - reach, value + reach
    if transform == "logit":
        inside, slope = (value > 0) & (value < 1), value * (1 - value)
        centre = special.logit(xp.where(inside, value, 0.5))
    else:
        inside, slope = xp.abs(value) < 1, 1 - value**2
        centre = xp.arctanh(xp.where(inside, value, 0.5))
    reach = reach / xp.where(inside, slope, 1)
    ends = xp.stack([centre - reach, centre + reach])
    low, high = special.expit(ends) if transform == "logit" else xp.tanh(ends)
    at_an_end = ~inside & ~xp.isnan(reach)
    return xp.where(at_an_end, value, low), xp.where(at_an_end, value, high)
