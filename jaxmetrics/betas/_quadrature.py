"""Double exponential quadrature on an interval: points and weights.

An end of the interval is called hard if the integrand may have a jump, a pole or a kink there;
otherwise it is soft. Source: Takahasi and Mori (1974), Publ. RIMS 9.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jaxmetrics._places.namespaces import Array, lax, xp

__all__: list[str] = []


class Grid(NamedTuple):
    """Points of an interval, in arrays whose last axis has one element per point."""

    y: Array  # points y as fractions of the length, from 0 to 1
    rest: Array  # 1 - y
    log_y: Array  # y itself may underflow
    log_rest: Array
    weight: Array  # derivative of log(y / (1 - y)) by the index of the point
    slope: Array  # derivative of y by the index of the point


class Ends(NamedTuple):
    """How far a grid extends towards an end of the interval: up to sinh v = `reach`.

    If the end is soft, the grid extends exactly to this end. If the end is hard, only the fraction
    `exp(-reach)` of the interval is beyond the grid.
    """

    reach: float
    hard: bool

    @property
    def v(self) -> float:
        return math.asinh(self.reach)

    @property
    def cut(self) -> float:
        """The length of the part of (0, 1) that is beyond the grid."""
        return 0.0 if self.hard else 1 / (1 + math.exp(self.reach))


SOFT = Ends(1.1, hard=False)  # for a density that is smooth and 0 at the end: nearly equal steps
# For a jump or a pole: 1e-32 of the interval is left out, and 1e-16 of the mass of x^-1/2.
HARD = Ends(73.6, hard=True)
POLE = Ends(368.0, hard=True)  # 1e-16 of the mass of x^-0.9 is left out


@lru_cache
def grid(low: Ends, high: Ends, n: int, *, at_middles: bool) -> Grid:
    """Return the nodes of an integral: the midpoints or the ends of n equal steps of v.

    There are n midpoints, or n + 1 ends of steps, which include both ends of the interval.
    """
    numbers = np.arange(1, 2 * n, 2) if at_middles else np.arange(0, 2 * n + 1, 2)
    v = (low.v + high.v) * numbers / (2 * n) - low.v
    log_lower, log_upper = -np.logaddexp(0, -np.sinh(v)), -np.logaddexp(0, np.sinh(v))
    lower, upper, whole = np.exp(log_lower), np.exp(log_upper), 1 - low.cut - high.cut
    y = np.maximum(lower - low.cut, 0) / whole
    rest = np.maximum(upper - high.cut, 0) / whole
    with np.errstate(divide="ignore"):
        log_y = log_lower - np.log(whole) if low.hard else np.log(y)
        log_rest = log_upper - np.log(whole) if high.hard else np.log(rest)
        slope_of_log_odds = np.exp(log_lower + log_upper - 2 * np.log(whole) - log_y - log_rest)
    step = np.cosh(v) * (low.v + high.v) * whole / n
    weight, slope = step * slope_of_log_odds, step * lower * upper / whole**2
    return Grid(y, rest, log_y, log_rest, weight, slope)


def grid_for_ends(
    n: int, hard_low: Array, hard_high: Array, dtype: np.dtype, *, at_middles: bool
) -> Grid:
    """Return the grid of n steps for an interval with hard or soft ends, on a new last axis."""
    ends = SOFT, HARD
    grids = [grid(low, high, n, at_middles=at_middles) for low in ends for high in ends]
    tables = np.array(grids).astype(dtype)  # (4, 6, points)

    # One gather of all fields, because six make the program of a posterior an eighth longer.
    def by_index(hard_low: Array, hard_high: Array) -> Array:
        index = 2 * hard_low.astype(xp.int32) + hard_high
        return xp.take(tables, index, axis=0, mode="clip")

    def by_comparison(hard_low: Array, hard_high: Array) -> Array:
        low, high = hard_low[..., None, None], hard_high[..., None, None]
        soft, hard = (xp.where(high, tables[i + 1], tables[i]) for i in (0, 2))
        return xp.where(low, hard, soft)

    fields = lax.platform_dependent(hard_low, hard_high, tpu=by_comparison, default=by_index)
    return Grid(*xp.moveaxis(fields, -2, 0))
