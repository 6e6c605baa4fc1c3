"""Likelihood-ratio intervals: the extreme values of a metric that the test does not reject."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arithmetic import argmax, divide
from jaxmetrics._chunks import LANES, map_chunks
from jaxmetrics._jax import jax
from jaxmetrics._namespaces import Array, is_jax, lax, xp
from jaxmetrics._samplers import deviance
from jaxmetrics.intervals.derivatives import Function, differentiator
from jaxmetrics.intervals.functionals import AT_ONCE, Functional
from jaxmetrics.intervals.samples import Sample

__all__: list[str] = []

# Part of an example that is added to the cell that moves the metric most. For an error rate without
# errors, the upper limit is then 3.0 / n, the same as for the mid-p value.
ADDED = 1 / 3
ADDED_OF_CLUSTER = 3 / 4  # part of a cluster that is added: the cluster that moves the metric most
_TRACE = 1e-6  # part of an example that is added to empty cells to compute derivatives there
_MOST_PASSES = 20
_STEPS = (1, 1 - 2**-10, 1 / 2, 1 / 4, 1 / 8)  # the second shows whether the value still increases
_MOST_ROUNDS = 20  # each makes a segment three times shorter
_NEWTON_STEPS = 10
_SOME = 16  # number of cells that are grown at once for JAX arrays


def likelihood_limits(metric: Functional, shares: Array, z: Array | float) -> tuple[Array, Array]:
    """Return the lower and upper ends of values `(V,)`; see `jaxmetrics.Likelihood`.

    `shares`, `(V,)`, say how many independent units a unit counts for each value. If the share is
    0, the ends are NaN.
    """
    sample, values = metric.sample, metric.values
    derivative = differentiator(metric.row, sample.tables(sample.counts)[0])
    infinite, jumps, moves = _edges(metric)

    def limits(i: Array) -> Array:
        search = _LikelihoodSearch(metric, derivative, i, z**2 / 2 / shares[i], ADDED / shares[i])
        closed = (sample.unused & jumps[:, i, None, None]).any(0)
        return xp.where(shares[i] > 0, search.extremes(infinite[i], closed), xp.nan)

    if is_jax(values):
        at_once = max(LANES // (2 * sample.counts.size), 1)
        ends = map_chunks(jax.vmap(limits), at_once, jax.numpy.arange(len(values)))
    else:
        ends = np.stack([limits(i) for i in range(len(values))])
    low, high = ends.T
    # If only improbable tables change a value, the value is a convention, or the metric is flat.
    low, high = (xp.where((low == high) & moves, xp.nan, x) for x in (low, high))
    return low, high


def _edges(metric: Functional) -> tuple[Array, Array, Array]:
    """Return three properties of values `(V,)` near empty cells.

    1. The limits `(V,)`: infinite if the value grows without bound as empty cells approach 0, such
       as a ratio with an error rate of 0 in the denominator, and otherwise 0.
    2. Whether the values jump if examples are added to one of the groups of unused cells, `(G, V)`.
    3. Whether any table changes the values, `(V,)`.
    """
    sample, start = metric.sample, metric.values
    counts = sample.counts
    possible = (counts == 0) & sample.can_occur
    near = [xp.where(possible, trace, counts) for trace in (_TRACE, _TRACE / 1000)]
    number = xp.arange(counts.size).reshape(counts.shape)
    other = counts + 1 + number / counts.size
    # A kind in two groups, an absent label and an absent prediction, would make both groups jump.
    in_one_group = sample.unused & (sample.unused.sum(0) == 1)
    # The value after the addition may be the same by chance, but not for two uneven additions.
    uneven = (number % 1000) ** 2 * 0.618034 % 1
    added = _TRACE * xp.stack([1 + uneven, 2 - uneven])[:, None]
    used = xp.where(in_one_group, added, counts).reshape((-1, *counts.shape))
    values = metric(xp.concatenate([used, xp.stack([*near, other])]))
    changes = xp.abs(values[:-3] - start).reshape((2, len(sample.unused), *start.shape))
    jumps = (~(changes <= 1e-4 * (1 + xp.abs(start)))).any(0)
    larger, smaller, elsewhere = values[-3:]
    grows = (xp.abs(smaller) > 100 * xp.abs(larger)) & (xp.abs(smaller) > 1000)
    limit = xp.where(grows, xp.sign(smaller) * xp.inf, 0)
    return limit, jumps, (elsewhere != start) | (not sample.is_complete)


class _Place(NamedTuple):
    """The state of a search: the weights of units after a step, whose slopes are `slopes`.

    `target` are the weights to which the first pass led, and `turns` is whether the value decreased
    before them.
    """

    weights: Array
    slopes: Array
    value: Array
    gain: Array
    passes: Array
    target: Array
    turns: Array


class _LikelihoodSearch(NamedTuple):
    """Search for the smallest and the largest plausible value number i of a metric.

    Attributes:
        metric: the metric, with the sample for which it is estimated.
        derivative: the function that computes derivatives of the metric for NumPy tables.
        i: the number of the value.
        reach: the log-likelihood ratio up to which tables are not rejected.
        added: the number of examples that are added to the cell that moves the value most.
    """

    metric: Functional
    derivative: Function
    i: Array
    reach: Array
    added: Array

    def value(self, numbers: Array) -> Array:
        values = self.metric(numbers)
        if not is_jax(values):
            return values[..., self.i]
        # The gradient of an indexed array is a scatter, which is slow on a TPU.
        return xp.where(xp.arange(values.shape[-1]) == self.i, values, 0).sum(-1)

    def slope(self, numbers: Array) -> Array:
        """Return the derivative of the value, `(R, U)`, with 0 for values that are not finite."""
        if is_jax(numbers):
            slope = jax.grad(self.value)(numbers)
        else:
            slope = self.metric.slope(self.i, numbers, self.derivative)
        return xp.where(xp.isfinite(slope), slope, 0)

    def extremes(self, infinite: Array, closed: Array) -> Array:
        """Return the smallest and the largest value; the cells in `closed` stay empty."""
        sample, start = self.metric.sample, self.metric.values[self.i]
        allowed = sample.can_occur & ~closed & (sample.counts.sum(-1, keepdims=True) > 0)
        slopes = self.slope(xp.where((sample.counts == 0) & allowed, _TRACE, sample.counts))
        flat = (allowed & (slopes == 0)).reshape(-1)
        reached = self.reached(flat)[: flat.size]
        is_known = xp.isfinite(start) | (infinite != 0)

        def extreme(sign: Array) -> Array:
            steepest = _steepest(sample, sign * slopes, allowed, self.added)
            cell, is_hidden = _hidden(flat, sign * reached, steepest)
            found = sign * self.ascend(sign, sign * slopes, cell, is_hidden | (infinite != 0))
            found = xp.where(is_known, found, xp.nan)
            return xp.where(sign * infinite > 0, infinite, found)

        one = xp.ones_like(start)
        one_by_one = partial(lax.map, extreme)
        return lax.platform_dependent(
            xp.stack([-one, one]),
            cpu=one_by_one,
            tpu=one_by_one,  # both at once take half as long again to compile
            default=lambda signs: jax.vmap(extreme)(signs),
        )

    def reached(self, flat: Array) -> Array:
        """Return for each cell the value after the cell has grown as far as the likelihood allows.

        These values are needed for flat cells, whose slope is 0. If the metric is a minimum over
        classes, for example, all cells of other classes than the worst are flat. If there are no
        flat cells, or too many cells, all returned values are 0.
        """
        counts = self.metric.sample.counts
        values: Any = xp.zeros_like(counts).reshape(-1)
        if counts.size**2 > AT_ONCE:
            return values
        # Smooth metrics have no flat cells. For JAX arrays, several cells are grown at a time.
        width = _SOME if is_jax(counts) else counts.size
        blocks = xp.arange(-(-counts.size // width))
        number = xp.where(flat.any(), len(blocks), 0)

        def evaluate(state: tuple[Array, Array]) -> tuple[Array, Array]:
            block, values = state
            found = self.value(_grown(counts, block * width + xp.arange(width), self.reach))
            return block + 1, xp.where((blocks == block)[:, None], found, values)

        first = 0 * number, xp.zeros((len(blocks), width), counts.dtype)
        return lax.while_loop(lambda state: state[0] < number, evaluate, first)[1].reshape(-1)

    def ascend(self, sign: Array, slopes: Array, cell: Array, is_elsewhere: Array) -> Array:
        """Return the maximum of `sign` times the value, with part of an example added to a cell.

        This is the conditional gradient method of Frank and Wolfe (1956). The value is linearized,
        the table is computed at which the linear function is largest, and the segment from the
        current table to this table is searched for a greater value. These steps are repeated until
        the value does not increase any more. The first slopes are the slopes at the counts or, if
        `is_elsewhere` is True, the slopes where the cell has grown as far as the likelihood allows.
        """
        base, grown = self.surroundings(slopes, cell, is_elsewhere)
        start = sign * self.metric.values[self.i]
        is_known = xp.isfinite(start)
        origin = xp.where(is_known, start, 0)

        def is_unfinished(place: _Place) -> Array:
            gains = place.gain > 1e-5 * xp.abs(place.value - origin)
            return (place.passes == 0) | (gains & (place.passes < _MOST_PASSES))

        def improve(place: _Place) -> _Place:
            is_first = place.passes == 0
            at = xp.where(is_first, grown, place.weights)
            slopes = lax.cond(
                is_first & ~is_elsewhere,
                lambda: place.slopes,
                # At a kink, for example if two groups are equally good, both slopes are needed.
                lambda: (sign * self.slope(at) + place.slopes) / 2,
            )
            return self.farthest(sign, place, slopes, tilted(base, slopes, self.reach))

        value, slopes = xp.where(is_known, start, -xp.inf), xp.where(is_elsewhere, 0, slopes)
        gain, passes = xp.full_like(start, xp.inf), xp.zeros((), xp.int32)
        first = _Place(base, slopes, value, gain, passes, base, xp.zeros((), bool))
        return self.greatest_before(sign, lax.while_loop(is_unfinished, improve, first))

    def surroundings(self, slopes: Array, cell: Array, grows: Array) -> tuple[Array, Array]:
        """Return the counts after a part of an example is added to a cell, and the grown counts.

        The grown counts are the counts where the cell has grown as far as the likelihood allows. If
        `grows` is False, they are the same as the first counts.
        """
        sample = self.metric.sample
        base = _with_more(sample, cell, slopes, self.added)
        grown = lax.cond(
            grows, lambda: _grown(sample.counts, cell[None], self.reach)[0], lambda: base
        )
        return base, grown

    def farthest(self, sign: Array, place: _Place, slopes: Array, target: Array) -> _Place:
        """Return the place on a segment where `sign` times the value is greatest."""
        way = target - place.weights
        steps = xp.asarray(np.array(_STEPS, way.dtype))[:, None, None]
        values = sign * self.value(place.weights + steps * way)
        greatest = values.max()
        step = xp.where(values == greatest, steps[:, 0, 0], 0).max()
        gain = greatest - place.value
        weights = xp.where(gain > 0, place.weights + step * way, place.weights)
        value = xp.maximum(greatest, place.value)
        is_first = place.passes == 0
        first_target = xp.where(is_first, target, place.target)
        turns = xp.where(is_first, values[1] > values[0], place.turns)
        return _Place(weights, slopes, value, gain, place.passes + 1, first_target, turns)

    def greatest_before(self, sign: Array, place: _Place) -> Array:
        """Return the greatest of `sign` times the values at a place and before its first target.

        The value may be greatest in the middle: for example, the absolute difference of two recalls
        is 0 where they are equal. Only if the value decreases before the target, it is computed at
        five steps between the counts and the target. The neighbours of the best step are the ends
        of a shorter segment, which is searched in the same way.
        """
        counts = self.metric.sample.counts
        way, numbers = place.target - counts, np.arange(1, 6, dtype=counts.dtype)

        def search(segment: _Segment) -> _Segment:
            width = segment.width / 6
            steps = segment.first + numbers[:, None, None] * width
            values = sign * self.value(counts + steps * way)
            values = xp.where(xp.isnan(values), -xp.inf, values)
            first = segment.first + argmax(values) * width
            value = xp.maximum(values.max(), segment.value)
            return _Segment(first, 2 * width, value, segment.rounds + 1)

        zero = xp.zeros_like(place.value)
        start = _Segment(zero, zero + 1, place.value, xp.where(place.turns, 0, _MOST_ROUNDS))
        found = lax.while_loop(lambda segment: segment.rounds < _MOST_ROUNDS, search, start).value
        # The steps come near a kink, but not exactly to it.
        room = (1e-8 + 100 * xp.finfo(found.dtype).eps) * xp.abs(self.metric.values[self.i])
        return xp.where(place.turns & (xp.abs(found) <= room), 0 * sign, found)  # no -0


class _Segment(NamedTuple):
    """The state of a search between the steps `first` and `first + width`.

    `value` is the greatest value so far.
    """

    first: Array
    width: Array
    value: Array
    rounds: Array


def _steepest(sample: Sample, slopes: Array, allowed: Array, added: Array) -> Array:
    """Return the index of the kind of unit that increases the value most."""
    counts = sample.counts
    totals = counts.sum(-1, keepdims=True)
    mean = divide((counts * slopes).sum(-1, keepdims=True), totals)
    share = totals / (totals + added) if len(counts) > 1 else xp.ones_like(totals)
    return argmax(xp.where(allowed, (slopes - mean) * share, -xp.inf).reshape(-1))


def _hidden(flat: Array, reached: Array, steepest: Array) -> tuple[Array, Array]:
    """Return the cell with the most extreme value, and whether it is a flat cell.

    The returned cell is the flat cell with the most extreme `reached` value if this value exceeds
    the value of the steepest cell, and otherwise the steepest cell.
    """
    of_flat = xp.where(flat, reached, -xp.inf)
    of_steepest = xp.where(xp.arange(len(flat)) == steepest, reached, 0).sum()
    is_hidden = of_flat.max() > of_steepest
    return xp.where(is_hidden, argmax(of_flat), steepest), is_hidden


def _with_more(sample: Sample, cell: Array, slopes: Array, added: Array) -> Array:
    """Add a part of an example to one of the cells `(R, U)`.

    If there are several strata, the stratum of the cell keeps its total. If there are clusters, a
    part of the cluster that increases the value most is also added.
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
    moves = (sample.clusters * (slopes - mean)).sum((-2, -1))
    sizes = sample.clusters.sum((-2, -1)) * xp.abs(slopes).max()
    return more + ADDED_OF_CLUSTER * sample.clusters[farthest_cluster(moves, sizes)]


def farthest_cluster(moves: Array, sizes: Array) -> Array:
    """Return the index of the cluster with the largest move, `(..., C)`.

    Of clusters that move a value equally, the smallest is returned. If all predictions are right,
    for example, no cluster moves the accuracy, and rounding would choose one.
    """
    least = 100 * xp.finfo(moves.dtype).eps * sizes
    return argmax(xp.where(sizes > 0, moves - least, -xp.inf))


def _grown(counts: Array, cells: Array, reach: Array) -> Array:
    """Return N counts `(N, R, U)`, in each of which one cell has grown to Wilson's upper limit."""
    ones = (xp.arange(counts.size) == cells[:, None]).reshape((-1, *counts.shape))
    n, c = counts.sum(-1, keepdims=True), (counts * ones).sum(-1, keepdims=True)
    root = xp.sqrt(2 * reach * (c * (1 - divide(c, n)) + reach / 2))
    w = divide(c + reach + root, n + 2 * reach) * n
    rest = xp.where(ones, 0, counts) * divide(n - w, n - c)
    return xp.where(ones.any(-1, keepdims=True), rest + w * ones, counts)


def tilted(counts: Array, slopes: Array, radius: float) -> Array:
    """Return the weights with the largest `sum slopes * weights` for a given log-likelihood ratio.

    Each of the rows `(..., R, U)` keeps its total. The weights are `counts / (nu + t u)`, where u
    is the highest slope minus the slope, nu depends on the row, and t is the same for all rows.
    With `s = t / nu` and d equal to u minus its mean, the weights are `counts / ((1 + y) Z)` with
    `y = s d / (1 + s mean)`. Both `log t` and the logarithm of the ratio are concave functions of
    `log s`, so that Newton's method on these scales needs no bracket.
    """
    if not is_jax(counts) and counts.ndim == 2:
        used = counts.any(0)
        if not used.any():
            return counts
        if not used.all():  # NumPy computes only the columns that are used
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
    """The rows of `tilted`: totals and shares of the counts, and the mean and d of u."""

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
        """Return the next `log s`, and the weights for the current `log s`."""
        totals, shares, mean, d = self
        s = xp.exp(log_s)
        scale = 1 + s * mean
        y = s / scale * d
        weights = shares / (1 + y)
        excess = (weights * y * y).sum(-1, keepdims=True)  # Z - 1
        found = totals * weights / (1 + excess)
        ratio = _sum_of_all(found * deviance(excess + (1 + excess) * y))
        # Derivatives of log Z, of the ratio and of log t with respect to log s.
        of_z = -s * (weights * d / (1 + y)).sum(-1, keepdims=True) / (scale**2 * (1 + excess))
        of_ratio = totals * (s * (weights * d).sum(-1, keepdims=True) / scale**2 + of_z)
        of_t = 1 / scale + of_z
        log_t = log_s + xp.log1p(excess) - xp.log(scale)
        missing = ratio * xp.log(radius / xp.maximum(ratio, 1e-30))
        weight = of_ratio / of_t
        goal = divide(missing + _sum_of_all(weight * log_t), _sum_of_all(weight))
        return log_s + xp.clip((goal - log_t) / of_t, -3, 3), found


def _sum_of_all(x: Array) -> Array:
    return x.sum((-2, -1), keepdims=True)
