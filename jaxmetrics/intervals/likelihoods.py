"""Likelihood intervals: the search for the values of a metric that the counts do not refute."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._chunks import LANES, map_chunks
from jaxmetrics._jax import jax
from jaxmetrics._namespaces import Array, is_jax, lax, xp
from jaxmetrics._samplers import deviance
from jaxmetrics.intervals.derivatives import Function, differentiator
from jaxmetrics.intervals.functionals import AT_ONCE, Functional
from jaxmetrics.intervals.samples import Sample

__all__: list[str] = []

# Of an example, in the cell that moves the metric most: without an error the limit is then 3.0 / n,
# that of the mid-p value.
ADDED = 1 / 3
ADDED_OF_CLUSTER = 3 / 4  # of the cluster that moves it most
_TRACE = 1e-6  # of an example, in cells without any, for their derivatives
_MOST_PASSES = 20
_NEWTON_STEPS = 10
_SOME = 16  # cells


def likelihood_limits(metric: Functional, shares: Array, z: Array | float) -> tuple[Array, Array]:
    """Return the lower and upper ends of values `(V,)`; NaN where a share is 0.

    Args:
        shares: to how many independent units a unit amounts, for each value.

    See `jaxmetrics.Likelihood`.
    """
    sample, values = metric.sample, metric.values
    derivative = differentiator(metric.row, sample.tables(sample.counts)[0])

    def limits(i: Array) -> Array:
        ends = _Problem(metric, derivative, i, shares[i]).extremes(z**2 / 2)
        return xp.where(shares[i] > 0, ends, xp.nan)

    if is_jax(values):
        at_once = max(LANES // (2 * sample.counts.size), 1)
        ends = map_chunks(jax.vmap(limits), at_once, jax.numpy.arange(len(values)))
    else:
        ends = np.stack([limits(i) for i in range(len(values))])
    low, high = ends.T
    # A value that no likely table moves, though others do, is a convention, or flat here.
    kinds = xp.arange(sample.counts.size).reshape(sample.counts.shape)
    others = sample.counts + 1 + kinds / sample.counts.size
    moves = (metric(others) != values) | (not sample.is_complete)
    low, high = (xp.where((low == high) & moves, xp.nan, x) for x in (low, high))
    return low, high


class _Place(NamedTuple):
    """Where the search for an extreme is: at weights of units, after a step along `slopes`."""

    weights: Array
    slopes: Array
    value: Array
    gain: Array
    passes: Array


class _Problem(NamedTuple):
    """Find the extremes of value i near the counts of a sample, of which each unit amounts to a
    share of an independent one.
    """

    metric: Functional
    derivative: Function
    i: Array
    share: Array

    def value(self, numbers: Array) -> Array:
        return self.metric(numbers)[..., self.i]

    def slope(self, numbers: Array) -> Array:
        """Return the derivative of the value, `(R, U)`, and 0 where it is not finite."""
        if is_jax(numbers):
            slope = jax.grad(self.value)(numbers)
        else:
            slope = self.metric.slope(self.i, numbers, self.derivative)
        return xp.where(xp.isfinite(slope), slope, 0)

    def extremes(self, radius: float) -> Array:
        """Return the least and the greatest value within the radius."""
        sample, reach = self.metric.sample, radius / self.share
        start, limit, closed = self.start()
        allowed = sample.can_occur & ~closed & (sample.counts.sum(-1, keepdims=True) > 0)
        slopes = self.slope(xp.where((sample.counts == 0) & allowed, _TRACE, sample.counts))
        flat = (allowed & (slopes == 0)).reshape(-1)
        ends = [_steepest(sample, s * slopes, allowed, ADDED / self.share) for s in (-1, 1)]
        reached = self.reached(flat, xp.stack(ends), reach)

        def extreme(sign: Array, cell: Array) -> Array:
            cell, is_hidden = _hidden(flat, sign * reached, cell)
            elsewhere = is_hidden | (limit != 0)
            found = self.ascent(sign, start, sign * slopes, cell, elsewhere, reach).greatest()
            known = xp.isfinite(start) | (limit != 0)
            return xp.where(sign * limit > 0, limit, xp.where(known, sign * found, xp.nan))

        if is_jax(start):
            return jax.vmap(extreme)(jax.numpy.array([-1, 1], start.dtype), xp.stack(ends))
        return np.stack([extreme(sign, cell) for sign, cell in zip((-1, 1), ends, strict=True)])

    def reached(self, flat: Array, steepest: Array, reach: Array) -> Array:
        """Return the value where a cell has grown as far as is likely, for each cell.

        It is known of flat cells, which at first do not move the value, such as errors in classes
        that are hidden behind the worst one, and of the steepest; all 0 where they are too many.
        """
        counts = self.metric.sample.counts
        values: Any = xp.zeros_like(counts).reshape(-1)
        if counts.size**2 > AT_ONCE:
            return values
        if not is_jax(counts):
            if flat.any():
                cells = np.union1d(np.flatnonzero(flat), steepest)
                values[cells] = self.value(_grown(counts, cells, reach))
            return values
        # Some at a time, for as long as there are any: smooth metrics have none.
        first = xp.pad(xp.argsort(~flat), (0, _SOME))
        order = xp.concatenate([steepest, first])
        last = xp.where(flat.any(), len(steepest) + flat.sum(), 0)

        def evaluate(state: tuple[Array, Array]) -> tuple[Array, Array]:
            i, values = state
            some = jax.lax.dynamic_slice(order, (i,), (_SOME,))
            found = self.value(_grown(counts, some, reach))
            return i + _SOME, values.at[some].set(found)

        return lax.while_loop(lambda state: state[0] < last, evaluate, (0 * last, values))[1]

    def ascent(
        self, sign: Array, start: Array, slopes: Array, cell: Array, elsewhere: Array, reach: Array
    ) -> _Ascent:
        """Begin where the cell has more, or elsewhere: where it has grown as far as is likely, if
        the slopes at the counts say nothing of it.
        """
        sample = self.metric.sample
        base = _with_more(sample, cell, slopes, ADDED / self.share)
        grown = lax.cond(
            elsewhere, lambda: _grown(sample.counts, cell[None], reach)[0], lambda: base
        )
        return _Ascent(self, sign, start, slopes, base, grown, elsewhere, reach)

    def start(self) -> tuple[Array, Array, Array]:
        """Return the value, its limit, and the units of groups in which an example makes it jump.

        The limit is infinite where the value grows without bound as the cells without examples
        come near 0, such as a ratio to a rate of errors of which none was seen; else it is 0.
        """
        sample = self.metric.sample
        counts, unused, possible = sample.counts, sample.unused, sample.can_occur
        some = xp.where(unused, _TRACE, counts)
        near = [xp.where((counts == 0) & possible, t, counts) for t in (_TRACE, _TRACE / 1000)]
        tried = xp.concatenate([counts[None], some, xp.stack(near)])
        start, *jumps, larger, smaller = self.value(tried)
        moved = ~(xp.abs(xp.stack(jumps) - start) <= 1e-4 * (1 + xp.abs(start)))
        grows = (xp.abs(smaller) > 100 * xp.abs(larger)) & (xp.abs(smaller) > 1000)
        limit = xp.where(grows, xp.sign(smaller) * xp.inf, 0)
        return start, limit, (unused & moved[:, None, None]).any(0)


class _Ascent(NamedTuple):
    """The search for the greatest of `sign` times a value within reach of counts.

    The value is made linear, the extreme of that found, and the way there searched for a greater
    value, until that gains nothing: the conditional gradient method of Frank and Wolfe (1956).

    Attributes:
        start: the value at the counts of the sample.
        slopes: of `sign` times the value there.
        base: the counts with more in a cell, to which what is likely refers.
        grown: where the first derivatives are taken if it is elsewhere.
    """

    problem: _Problem
    sign: Array
    start: Array
    slopes: Array
    base: Array
    grown: Array
    elsewhere: Array
    reach: Array

    def greatest(self) -> Array:
        infinite = xp.full_like(self.start, xp.inf)
        first = _Place(
            self.base,
            xp.where(self.elsewhere, 0, self.slopes),
            xp.where(xp.isfinite(self.start), self.sign * self.start, -infinite),
            infinite,
            xp.zeros((), xp.int32),
        )
        return lax.while_loop(self.is_unfinished, self.improve, first).value

    def is_unfinished(self, search: _Place) -> Array:
        origin = xp.where(xp.isfinite(self.start), self.sign * self.start, 0)
        gains = search.gain > 1e-5 * xp.abs(search.value - origin)
        return (search.passes == 0) | (gains & (search.passes < _MOST_PASSES))

    def improve(self, search: _Place) -> _Place:
        place = xp.where(search.passes == 0, self.grown, search.weights)
        # At a kink, as where two groups are the best, both of its slopes are needed.
        slopes = lax.cond(
            (search.passes == 0) & ~self.elsewhere,
            lambda: search.slopes,
            lambda: (self.sign * self.problem.slope(place) + search.slopes) / 2,
        )
        way = tilted(self.base, slopes, self.reach) - search.weights
        steps = xp.full_like(self.start, 0.5) ** np.arange(4)[:, None, None]
        values = self.sign * self.problem.value(search.weights + steps * way)
        best = xp.argmax(values)
        gain = values[best] - search.value
        weights = xp.where(gain > 0, search.weights + steps[best] * way, search.weights)
        value = xp.maximum(values[best], search.value)
        return _Place(weights, slopes, value, gain, search.passes + 1)


def _steepest(sample: Sample, slopes: Array, allowed: Array, added: Array) -> Array:
    """Return the kind that raises the value most."""
    counts = sample.counts
    totals = counts.sum(-1, keepdims=True)
    mean = divide((counts * slopes).sum(-1, keepdims=True), totals)
    share = totals / (totals + added) if len(counts) > 1 else xp.ones_like(totals)
    return xp.argmax(xp.where(allowed, (slopes - mean) * share, -xp.inf))


def _hidden(flat: Array, reached: Array, steepest: Array) -> tuple[Array, Array]:
    """Return the flat cell that reaches further than the steepest one, or that one, and whether any
    does.
    """
    furthest = xp.argmax(xp.where(flat, reached, -xp.inf))
    is_hidden = reached[furthest] - reached[steepest] > 0
    return xp.where(is_hidden & flat[furthest], furthest, steepest), is_hidden


def _with_more(sample: Sample, cell: Array, slopes: Array, added: Array) -> Array:
    """Add to one of the units `(R, U)`, and of clusters half of that which raises the value most.

    Of several strata that of the unit keeps its total.
    """
    counts = sample.counts
    best = (xp.arange(counts.size) == cell).reshape(counts.shape)
    more = counts + added * best
    if len(counts) > 1:
        totals = counts.sum(-1, keepdims=True)
        more = xp.where(best.any(-1, keepdims=True), more * (totals / (totals + added)), counts)
    if sample.clusters is None:
        return more
    mean = divide((counts * slopes).sum(-1, keepdims=True), counts.sum(-1, keepdims=True))
    best_cluster = xp.argmax((sample.clusters * (slopes - mean)).sum((-2, -1)))
    return more + ADDED_OF_CLUSTER * sample.clusters[best_cluster]


def _grown(counts: Array, cells: Array, reach: Array) -> Array:
    """Return counts `(R, U)` in which one of the cells has Wilson's upper limit, `(N, R, U)`."""
    ones = (xp.arange(counts.size) == cells[:, None]).reshape((-1, *counts.shape))
    n, c = counts.sum(-1, keepdims=True), (counts * ones).sum(-1, keepdims=True)
    root = xp.sqrt(2 * reach * (c * (1 - divide(c, n)) + reach / 2))
    w = divide(c + reach + root, n + 2 * reach) * n
    rest = xp.where(ones, 0, counts) * divide(n - w, n - c)
    return xp.where(ones.any(-1, keepdims=True), rest + w * ones, counts)


def tilted(counts: Array, slopes: Array, radius: float) -> Array:
    """Return the weights of the largest `sum slopes * weights` whose log-likelihood ratio is the
    radius.

    In each of the rows `(..., R, U)`, which keep their totals, they are `counts / (nu + t u)`,
    where u are the slopes measured down from the highest, nu depends on the row, and t does not.
    With `s = t / nu` and u centred to d, they are `counts / ((1 + y) Z)`, `y = s d / (1 + s mean)`.
    Both `log t` and the logarithm of the ratio are concave functions of `log s`, so that Newton's
    steps on these scales need no bracket.
    """
    if not is_jax(counts) and counts.ndim == 2:
        used = counts.any(0)
        if not used.any():
            return counts
        if not used.all():  # on the host the others take no time
            weights = np.zeros(counts.shape)
            weights[:, used] = tilted(counts[:, used], slopes[:, used], radius)
            return weights
    rows = _TiltedRows.of(counts, slopes)
    variance = _sum_of_all(counts * rows.d**2)
    possible = variance > 0
    start = xp.log(2 * radius / xp.where(possible, variance, 1)) / 2

    def step(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        return rows.newton_step(state[0], radius)

    first = xp.broadcast_to(start, rows.totals.shape), counts
    _, found = lax.fori_loop(0, _NEWTON_STEPS, step, first)
    return xp.where(possible, found, counts)


class _TiltedRows(NamedTuple):
    """Rows of `tilted` that are searched together: their totals, shares, the mean and d of u."""

    totals: Array
    shares: Array
    mean: Array
    d: Array

    @classmethod
    def of(cls, counts: Array, slopes: Array) -> _TiltedRows:
        totals = counts.sum(-1, keepdims=True)
        shares = divide(counts, totals)
        highest = xp.where(counts > 0, slopes, -xp.inf).max(-1, keepdims=True)
        u = xp.where(counts > 0, highest - slopes, 0)
        u = divide(u, u.max((-2, -1), keepdims=True))
        mean = (shares * u).sum(-1, keepdims=True)
        return cls(totals, shares, mean, xp.where(counts > 0, u - mean, 0))

    def newton_step(self, log_s: Array, radius: float) -> tuple[Array, Array]:
        """Return the next `log s`, and the weights at this one."""
        totals, shares, mean, d = self
        s = xp.exp(log_s)
        scale = 1 + s * mean
        y = s / scale * d
        weights = shares / (1 + y)
        excess = (weights * y * y).sum(-1, keepdims=True)  # Z - 1
        found = totals * weights / (1 + excess)
        ratio = _sum_of_all(found * deviance(excess + (1 + excess) * y))
        # Derivatives by log s: of log Z, of the ratio and of log t.
        of_z = -s * (weights * d / (1 + y)).sum(-1, keepdims=True) / (scale**2 * (1 + excess))
        of_ratio = totals * (s * (weights * d).sum(-1, keepdims=True) / scale**2 + of_z)
        of_t = 1 / scale + of_z
        log_t = log_s + xp.log1p(excess) - xp.log(scale)
        missing = ratio * xp.log(radius / xp.maximum(ratio, 1e-30))
        weight = of_ratio / of_t
        goal = (missing + _sum_of_all(weight * log_t)) / _sum_of_all(weight)
        return log_s + xp.clip((goal - log_t) / of_t, -3, 3), found


def _sum_of_all(x: Array) -> Array:
    return x.sum((-2, -1), keepdims=True)
