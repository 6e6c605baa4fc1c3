"""Points and weights of quadrature on an interval whose ends may be hard: a jump, a pole or a
kink.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from jaxmetrics._namespaces import Array, xp

__all__: list[str] = []


class Grid(NamedTuple):
    """Places in an interval, on the last axis."""

    y: Array  # fractions of the way, from 0 to 1
    rest: Array  # 1 - y
    log_y: Array  # y itself may underflow
    log_rest: Array
    weight: Array  # the derivative of log(y / (1 - y)) by the number of the place
    slope: Array  # that of y


class Ends(NamedTuple):
    """How far the places of a grid go towards an end: to sinh v = `reach`, where the interval ends
    or, if hard, nearly does.
    """

    reach: float
    hard: bool

    @property
    def v(self) -> float:
        return math.asinh(self.reach)

    @property
    def cut(self) -> float:
        """The part of (0, 1) that lies beyond."""
        return 0.0 if self.hard else 1 / (1 + math.exp(self.reach))


SOFT = Ends(1.1, hard=False)  # where a density vanishes smoothly: nearly equal steps
# Where it may jump or have a pole: 1e-32 of the interval is left out, 1e-16 of x^(-1/2).
HARD = Ends(73.6, hard=True)
POLE = Ends(368.0, hard=True)  # 1e-16 of x^(-0.9)


@lru_cache
def grid(low: Ends, high: Ends, numbers: range, parts: int) -> Grid:
    """The places of the even and odd `numbers` from 0 to 2 `parts`, which stand for equal steps of
    v.
    """
    v = (low.v + high.v) * np.array(numbers) / (2 * parts) - low.v
    log_lower, log_upper = -np.logaddexp(0, -np.sinh(v)), -np.logaddexp(0, np.sinh(v))
    lower, upper, whole = np.exp(log_lower), np.exp(log_upper), 1 - low.cut - high.cut
    y, rest = np.maximum(lower - low.cut, 0) / whole, np.maximum(upper - high.cut, 0) / whole
    with np.errstate(divide="ignore"):
        log_y = log_lower - np.log(whole) if low.hard else np.log(y)
        log_rest = log_upper - np.log(whole) if high.hard else np.log(rest)
        of_odds = np.exp(log_lower + log_upper - 2 * np.log(whole) - log_y - log_rest)
    step = np.cosh(v) * (low.v + high.v) * whole / parts
    return Grid(y, rest, log_y, log_rest, step * of_odds, step * lower * upper / whole**2)


def middles(low: Ends, high: Ends, m: int) -> Grid:
    """m nodes for an integral."""
    return grid(low, high, range(1, 2 * m, 2), m)


def knots(low: Ends, high: Ends, n: int) -> Grid:
    """n + 1 points from end to end."""
    return grid(low, high, range(0, 2 * n + 1, 2), n)


def chosen(grids: tuple[Grid, ...], index: Array, dtype: np.dtype) -> Grid:
    """The grid of this index, for each of an array."""
    return Grid(
        *(xp.take(np.stack(v).astype(dtype), index, axis=0) for v in zip(*grids, strict=True))
    )


def of_ends(
    places: Callable[[Ends, Ends, int], Grid],
    n: int,
    hard_low: Array,
    hard_high: Array,
    dtype: np.dtype,
) -> Grid:
    """The grids for ends that are hard or soft."""
    grids = tuple(places(low, high, n) for low in (SOFT, HARD) for high in (SOFT, HARD))
    return chosen(grids, 2 * hard_low.astype(xp.int32) + hard_high, dtype)


def between_hard_ends(end: Ends, m: int, dtype: np.dtype) -> Grid:
    """m nodes for an integrand that may have a pole at either end."""
    return Grid(*(v.astype(dtype) for v in middles(end, end, m)))
