"""An estimate: a value with its confidence interval and standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics._text.printing import Printed
from jaxmetrics._text.wording import interval
from jaxmetrics._validation import check_level, check_option

__all__ = ["Estimate"]


Metric: TypeAlias = Callable[[Array], Any]


class Scale(NamedTuple):
    """A monotone function from an interval to the real numbers, such as the logit."""

    lowest: float
    highest: float
    transform: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope_of_inverse: Callable[[Array], Array]  # the derivative, as a function of the value


SCALES = {
    "logit": Scale(0, 1, special.logit, special.expit, lambda v: v * (1 - v)),
    "atanh": Scale(-1, 1, xp.arctanh, xp.tanh, lambda v: 1 - v**2),
    "log": Scale(0, math.inf, xp.log, xp.exp, lambda v: v),
}


class _Estimate(NamedTuple):
    value: Array
    low: Array
    high: Array
    standard_error: Array
    num_undefined: Array


class Estimate(Printed, _Estimate):
    """An estimate with its confidence interval and standard error: arrays of the same shape.

    Attributes:
        value: the estimate.
        low, high: the lower and upper end of the confidence interval.
        standard_error: the standard error of the value. The docstring of the function that returned
            the estimate explains it.
        num_undefined: the number of bootstrap replicates (random resamples of the examples) in
            which the metric was NaN or infinite. These replicates are not part of the interval.

    The narrower the interval, the more decimals are printed, unless an f-string has a format such
    as `.1%`. `print` writes several estimates as a table. `float` returns a single value. `to_dict`
    and `to_frame` return all attributes.

    >>> import jaxmetrics as jm
    >>> accuracy = jm.proportion_interval(80, 94)
    >>> accuracy
    0.851 [0.765, 0.909]
    >>> f"{accuracy:.1%}", float(accuracy) > 0.85
    ('85.1% [76.5%, 90.9%]', True)
    >>> recalls = jm.proportion_interval([90, 1995], [100, 2000])
    >>> recalls
    2 estimates: 0.900 [0.826, 0.945]; 0.9975 [0.9942, 0.9989]
    >>> print(recalls)
       value [low, high]
    0  0.900 [0.826, 0.945]
    1  0.9975 [0.9942, 0.9989]
    >>> recalls.to_dict()["low"]
    [0.825634, 0.994160]
    """

    __slots__ = ()
    _plural = "estimates"

    def __float__(self) -> float:
        """Return the value if the estimate is a single estimate, not a batch."""
        if np.shape(self.value) != ():
            raise TypeError(
                "Only a single estimate can be converted to float, but this Estimate has the"
                f" shape {np.shape(self.value)}. Select one estimate first."
            )
        return float(self.value)

    def _cells(self, spec: str) -> dict[str, str]:
        text = interval(self.value, self.low, self.high, spec)
        undefined = f" ({self.num_undefined:g} replicates undefined)" if self.num_undefined else ""
        return {"value [low, high]": text + undefined}


def normal_quantile(level: float) -> float:
    """Return z such that a standard normal variable is in [-z, z] with probability `level`."""
    return -NormalDist().inv_cdf((1 - check_level(level)) / 2)


def check_transform(transform: str | None, name: str = "transform") -> None:
    if transform is not None:
        check_option(transform, name, tuple(SCALES))


def normal_estimate(
    value: Array, error: Array, z: Array | float, transform: str | None = None
) -> Estimate:
    low, high = _normal_interval(value, z * error, transform)
    return computed_estimate(value, low, high, error)


def computed_estimate(value: Array, low: Array, high: Array, error: Array) -> Estimate:
    """Make an estimate that does not come from replicates."""
    return Estimate(value, low, high, error, xp.zeros(np.shape(value), xp.int32))


def _normal_interval(value: Array, reach: Array, transform: str | None) -> tuple[Array, Array]:
    """Return the ends of the interval, which are NaN if the value is outside of the domain of the
    scale.
    """
    if transform is None:
        return value - reach, value + reach
    scale = SCALES[transform]
    almost = 1 - 2 * xp.finfo(value.dtype).eps  # rounding may move an end away from 1
    inside = (value > scale.lowest * almost) & (value < scale.highest * almost)
    v = xp.where(inside, value, 0.5)  # 0.5 is inside all scales
    centre, reach = scale.transform(v), reach / scale.slope_of_inverse(v)
    with np.errstate(over="ignore"):  # an end may be infinite
        ends = scale.inverse(xp.stack([centre - reach, centre + reach]))
    low, high = xp.where(inside, ends, xp.nan)
    return low, high
