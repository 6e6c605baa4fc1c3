"""Roots of increasing functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jaxmetrics._places.namespaces import Array, Arrays, lax, xp

__all__: list[str] = []

_MOST_STEPS = 200

# A function that returns the value and the derivative at x; if the derivative is 0, the search uses
# bisection.
Function = Callable[[Array], Arrays]


class _Search(NamedTuple):
    """State of a search for a root between `low` and `high`.

    The next point is `x`, and the last step had the length `step`.
    """

    low: Array
    high: Array
    x: Array
    step: Array
    done: Array
    passes: Array


def root(
    function: Function,
    low: Array,
    high: Array,
    start: Array,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
) -> Array:
    """Find the roots of many increasing functions by Newton's method within a bracket.

    If Newton's step leaves the bracket or is longer than half of the previous step, bisection is
    used instead. If `high` is infinite, `low` must not be negative, and 4 x is the next point
    instead of the middle of the bracket. The search ends when steps are below `atol + rtol |x|`.
    The result is not differentiable.
    """

    def advance(search: _Search) -> _Search:
        value, slope = function(search.x)
        low = xp.where(value < 0, search.x, search.low)
        high = xp.where(value < 0, search.high, search.x)
        x = xp.where(value == 0, search.x, _next(search, value, slope, low, high))
        step = xp.abs(x - search.x)
        done = search.done | (step <= atol + rtol * xp.abs(x)) | xp.isnan(value)
        return _Search(low, high, xp.where(search.done, search.x, x), step, done, search.passes + 1)

    low, high, start = xp.broadcast_arrays(low, high, start)
    undone, passes = xp.zeros(start.shape, bool), xp.zeros((), xp.int32)
    search = _Search(low, high, start, xp.full_like(start, xp.inf), undone, passes)
    return lax.while_loop(
        lambda search: ~search.done.all() & (search.passes < _MOST_STEPS), advance, search
    ).x


def _next(search: _Search, value: Array, slope: Array, low: Array, high: Array) -> Array:
    """Return the next point by Newton's step or, if that is not acceptable, in the bracket."""
    newton = search.x - value / xp.where(slope > 0, slope, 1)
    inside = (slope > 0) & (newton >= low) & (newton <= high)
    shrinks = 2 * xp.abs(newton - search.x) <= search.step
    greatest = xp.finfo(low.dtype).max ** 0.5
    split = xp.where(high == xp.inf, xp.clip(4 * search.x, 1, greatest), (low + high) / 2)
    return xp.where(inside & shrinks, newton, split)
