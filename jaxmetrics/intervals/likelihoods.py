"""Likelihood-ratio intervals: the extreme values of a metric that the test does not reject."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._numerics.arithmetic import argmax, divide
from jaxmetrics._places.chunks import LANES, map_chunks
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, is_jax, lax, xp
from jaxmetrics.intervals.derivatives import Function, differentiator
from jaxmetrics.intervals.functionals import AT_ONCE, Functional
from jaxmetrics.intervals.tilting import ADDED, ADDED_OF_CLUSTER, farthest_cluster, tilted

__all__: list[str] = []

_TRACE = 1e-6  # part of an example that is added to empty cells to compute derivatives there
_MOST_PASSES = 20
_STEPS = (1, 1 - 2**-10, 1 / 2, 1 / 4, 1 / 8)  # the second shows whether the value still increases
_MOST_ROUNDS = 20  # each makes a segment three times shorter; 0 is found to 3e-10 of the segment
_FEW_ROUNDS = 8  # for segments after the first, where the slopes change again
_TRIAL_PASSES = 4  # after which only the best searches are continued
_CONTINUED = 3
_FEW_CELLS = 16  # so many cells are all tried: up to four classes, or pairs for two classes
_SOME_CELLS = 256  # of more cells, each is grown only if the metric is flat: it takes long


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
        numbers = sample.counts.size * max(sample.counts.size, 2 * len(_STEPS))
        at_once = max(LANES // numbers, 1)
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
    pattern = xp.stack([1 + uneven, 2 - uneven])[:, None]
    used = xp.stack([xp.where(in_one_group, x * pattern, counts) for x in (_TRACE, _TRACE**2)])
    values = metric(xp.concatenate([used.reshape((-1, *counts.shape)), xp.stack([*near, other])]))
    changes = xp.abs(values[:-3] - start).reshape((2, 2, len(sample.unused), *start.shape))
    # A steep root changes less if less is added; a jump does not.
    is_small = changes[0] <= 1e-4 * (1 + xp.abs(start))
    jumps = ~(is_small | (changes[1] <= 0.9 * changes[0])).all(0)
    larger, smaller, elsewhere = values[-3:]
    grows = (xp.abs(smaller) > 100 * xp.abs(larger)) & (xp.abs(smaller) > 1000)
    limit = xp.where(grows, xp.sign(smaller) * xp.inf, 0)
    return limit, jumps, (elsewhere != start) | (not sample.is_complete)


class _Place(NamedTuple):
    """The state of M searches per direction: the weights of units, and the slopes of the last step.

    `base` are the counts with the part of an example that was added. `gain` is by how much the last
    step increased the value, and `is_inside` is whether the largest value was found before the end
    of a step.
    """

    base: Array
    weights: Array
    slopes: Array
    value: Array
    gain: Array
    is_inside: Array


class _Segment(NamedTuple):
    """The state of M searches on segments: between the steps `first` and `first + width`.

    `step` and `value` are the best so far, and `spread` is the range of the last values.
    """

    first: Array
    width: Array
    step: Array
    value: Array
    spread: Array
    rounds: Array


class _LikelihoodSearch(NamedTuple):
    """Search for the smallest and the largest plausible value number i of a metric.

    Attributes:
        metric: the metric, with the sample for which it is estimated.
        derivative: the function that computes derivatives of the metric for NumPy tables.
        i: the number of the value.
        reach: the log-likelihood ratio up to which tables are not rejected.
        added: the number of examples that are added to one cell.
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
        """Return the derivatives of the value, `(..., R, U)`, with 0 if they are not finite."""
        if is_jax(numbers):
            slope = jax.grad(lambda x: self.value(x).sum())(numbers)
        else:
            tables = numbers.reshape((-1, *numbers.shape[-2:]))
            slope = self.metric.slope(self.i, tables, self.derivative).reshape(numbers.shape)
        return xp.where(xp.isfinite(slope), slope, 0)

    def extremes(self, infinite: Array, closed: Array) -> Array:
        """Return the smallest and the largest value; the cells in `closed` stay empty.

        Each of several searches adds a part of an example to one cell. The first search begins with
        the slopes at the counts and adds to the cell that moves the value most. The others begin
        with the slopes where their cell has grown as far as the likelihood allows. If the metric is
        a minimum over classes, for example, only growth shows that a class may become the worst.
        """
        sample, start = self.metric.sample, self.metric.values[self.i]
        counts = sample.counts
        allowed = sample.can_occur & ~closed & (counts.sum(-1, keepdims=True) > 0)
        trace = xp.where(infinite == 0, _TRACE, ADDED)  # so that no slope is nearly infinite
        traced = xp.where((counts == 0) & allowed, trace, counts)[None]
        slopes, cells, may_grow = self.starts(traced, allowed)
        one = xp.ones_like(start)
        sign = xp.stack([-one, one])[:, None]
        oriented = sign[..., None, None] * slopes  # (2, M, R, U)
        base = self.with_added(oriented[:, 0], cells, allowed)
        ends = sign[:, 0] * self.ascend(sign, base, oriented, may_grow)
        ends = xp.where(ends == 0, 0, ends)  # no -0
        ends = xp.where(xp.isfinite(start) | (infinite != 0), ends, xp.nan)
        return xp.where(sign[:, 0] * infinite > 0, infinite, ends)

    def starts(self, traced: Array, allowed: Array) -> tuple[Array, Array, Array]:
        """Return the first slopes of M searches, the cells of all but the first, and which count.

        The first search begins with the slopes at the `traced` counts.
        """
        counts, reach = self.metric.sample.counts, self.reach
        if counts.size <= _SOME_CELLS:
            cells = self.most_extreme_if_grown(allowed)
            slopes = self.slope(xp.concatenate([traced, _grown(counts, cells, reach)]))
            may_grow = allowed.reshape(-1)[cells]
        else:
            slopes, cells, may_grow = self.slope(traced), xp.arange(0), xp.zeros(0, bool)
            is_flat = (allowed & (slopes[0] == 0)).any()
            if counts.size**2 <= AT_ONCE and (is_jax(counts) or is_flat):
                cells = self.most_extreme_if_grown(allowed)
                slopes = xp.concatenate([slopes, self.slope(_grown(counts, cells, reach))])
                may_grow = is_flat & allowed.reshape(-1)[cells]
        return slopes, cells, xp.concatenate([xp.ones(1, bool), may_grow])

    def most_extreme_if_grown(self, allowed: Array) -> Array:
        """Return the cells from whose growth searches begin.

        These are all cells if there are few. Otherwise, they are the two cells after whose growth
        the value is smallest and largest.
        """
        counts = self.metric.sample.counts
        cells = xp.arange(counts.size)
        if counts.size <= _FEW_CELLS:
            return cells
        reached = self.value(_grown(counts, cells, self.reach))
        may_grow = allowed.reshape(-1) & ~xp.isnan(reached)
        return argmax(xp.where(may_grow, xp.stack([-reached, reached]), -xp.inf))

    def with_added(self, slopes: Array, cells: Array, allowed: Array) -> Array:
        """Add a part of an example to the counts, which gives M tables per direction.

        The example is added to the cell that increases the value most, for the slopes `(2, R, U)`
        of both directions, or to one of the other `cells`, `(M - 1,)`. If there are several strata,
        the stratum of the cell keeps its total. If there are clusters, a part of the cluster that
        increases the value most is also added.
        """
        sample = self.metric.sample
        counts, clusters = sample.counts, sample.clusters
        totals = counts.sum(-1, keepdims=True)
        share = totals / (totals + self.added) if sample.is_stratified else xp.ones_like(totals)
        centred = slopes - divide((counts * slopes).sum(-1, keepdims=True), totals)
        steepest = argmax(xp.where(allowed, centred * share, -xp.inf).reshape((2, -1)))
        cells = xp.concatenate([steepest[:, None], xp.stack([cells, cells])], 1)
        is_cell = xp.arange(counts.size) == cells[..., None]
        is_cell = is_cell.reshape((*cells.shape, *counts.shape))
        tables = counts + self.added * is_cell
        if sample.is_stratified:
            tables = xp.where(is_cell.any(-1, keepdims=True), tables * share, counts)
        if clusters is None:
            return tables
        moves = (clusters * centred[:, None]).sum((-2, -1))
        sizes = clusters.sum((-2, -1)) * xp.abs(slopes).max((-2, -1))[:, None]
        return tables + ADDED_OF_CLUSTER * clusters[farthest_cluster(moves, sizes)][:, None]

    def ascend(self, sign: Array, base: Array, slopes: Array, may_grow: Array) -> Array:
        """Return the maxima `(2,)` of `sign` times the value within the reach of `base`.

        `sign` is `(2, 1)`, and there are M searches per sign with the tables `base` and first
        `slopes`, `(2, M, R, U)`. Those where `may_grow`, `(M,)`, is False are ignored. After a few
        steps, the best searches are continued until no value increases any more.
        """
        start = self.metric.values[self.i]
        is_known, none = xp.isfinite(start), xp.zeros(base.shape[:2], base.dtype)
        at_start = none + xp.where(is_known, sign * start, -xp.inf)
        origin = xp.where(is_known, start, 0) * sign
        place = _Place(base, base, slopes, at_start, none, none > 0)
        passes, number = (_TRIAL_PASSES, _CONTINUED) if len(may_grow) > 3 else (1, 1)
        place = self.climb(sign, origin, place, passes, is_first=True)
        best, values = [], xp.where(may_grow, place.value, -xp.inf)
        for _ in range(number):
            best.append(argmax(values))
            values = xp.where(xp.arange(len(may_grow)) == best[-1][:, None], -xp.inf, values)
        kept = xp.arange(2)[:, None], xp.stack(best, 1)
        place = _Place(*(x[kept] for x in place))
        place = self.climb(sign, origin, place, _MOST_PASSES, is_first=False)
        # The steps come near a kink at 0, but not exactly to it.
        room = (1e-8 + 100 * xp.finfo(none.dtype).eps) * xp.abs(start)
        value = place.value
        return xp.where(place.is_inside & (xp.abs(value) <= room), 0 * value, value).max(1)

    def climb(
        self, sign: Array, origin: Array, place: _Place, most_passes: int, *, is_first: bool
    ) -> _Place:
        """Increase the values by the conditional gradient method of Frank and Wolfe (1956).

        The value is linearized, the table is computed at which the linear function is largest, and
        the segment from the current table to this table is searched for a greater value. The first
        climb begins with the slopes of `place`. A climb ends if all gains are small, compared to
        the distances of the values from `origin`.
        """

        def is_unfinished(state: tuple[_Place, Array]) -> Array:
            place, passes = state
            gains = place.gain > 1e-5 * xp.abs(place.value - origin)
            return (passes == 0) | (gains.any() & (passes < most_passes))

        def improve(state: tuple[_Place, Array]) -> tuple[_Place, Array]:
            place, passes = state

            def mean_slopes() -> Array:
                # At a kink, for example if two groups are equally good, both are needed.
                return (sign[..., None, None] * self.slope(place.weights) + place.slopes) / 2

            if is_first:
                slopes = lax.cond(passes == 0, lambda: place.slopes, mean_slopes)
            else:
                slopes = mean_slopes()
            target = tilted(place.base, slopes, self.reach)
            most_rounds = _FEW_ROUNDS if is_first else _MOST_ROUNDS
            rounds = xp.where(passes == 0, most_rounds, _FEW_ROUNDS)
            step, value, is_inside = self.farthest(sign, place, target, rounds)
            gain = value - place.value
            weights = place.weights + step[..., None, None] * (target - place.weights)
            weights = xp.where((gain > 0)[..., None, None], weights, place.weights)
            value = xp.maximum(value, place.value)
            is_inside = xp.where(gain > 0, is_inside, place.is_inside)
            return _Place(place.base, weights, slopes, value, gain, is_inside), passes + 1

        return lax.while_loop(is_unfinished, improve, (place, xp.zeros((), xp.int32)))[0]

    def farthest(
        self, sign: Array, place: _Place, target: Array, most_rounds: Array
    ) -> tuple[Array, Array, Array]:
        """Return the steps `(2, M)` towards a target for which `sign` times the value is greatest.

        Also returned are these greatest values, and whether they lie inside of the segment, as the
        absolute difference of two recalls is 0 where they are equal. Only then the segment is
        divided: the neighbours of the best of five steps are the ends of a shorter segment, which
        is searched in the same way.
        """
        way = target - place.weights
        coarse = xp.asarray(np.array(_STEPS, way.dtype))[:, None, None]
        numbers = xp.asarray(np.arange(1, 6, dtype=way.dtype))[:, None, None]
        least = max(1e-9, 8 * float(xp.finfo(way.dtype).eps))

        def is_unfinished(segment: _Segment) -> Array:
            is_inside = (segment.step < 1) & (segment.spread > least * xp.abs(segment.value))
            return (segment.rounds == 0) | (is_inside.any() & (segment.rounds <= most_rounds))

        def search(segment: _Segment) -> _Segment:
            is_first = segment.rounds == 0
            width = segment.width / 6
            steps = xp.where(is_first, coarse, segment.first + numbers * width)
            values = sign * self.value(place.weights + steps[..., None, None] * way)
            values = xp.where(xp.isnan(values), -xp.inf, values)
            greatest = values.max(0)
            # Rounding decides which of nearly equal values is the greatest.
            is_greatest = values >= greatest - least * xp.abs(greatest)
            step = xp.where(is_greatest, steps, 0).max(0)
            return _Segment(
                xp.where(is_first, segment.first, step - width),
                xp.where(is_first, segment.width, 2 * width),
                xp.where(greatest > segment.value, step, segment.step),
                xp.maximum(greatest, segment.value),
                xp.where(is_first, xp.inf, greatest - values.min(0)),
                segment.rounds + 1,
            )

        zero = xp.zeros_like(place.value)
        first = _Segment(zero, zero + 1, zero + 1, zero - xp.inf, zero, xp.zeros((), xp.int32))
        last = lax.while_loop(is_unfinished, search, first)
        return last.step, last.value, last.step < 1


def _grown(counts: Array, cells: Array, reach: Array) -> Array:
    """Return N counts `(N, R, U)`, in each of which one cell has grown to Wilson's upper limit."""
    ones = (xp.arange(counts.size) == cells[:, None]).reshape((-1, *counts.shape))
    n, c = counts.sum(-1, keepdims=True), (counts * ones).sum(-1, keepdims=True)
    root = xp.sqrt(2 * reach * (c * (1 - divide(c, n)) + reach / 2))
    w = divide(c + reach + root, n + 2 * reach) * n
    rest = xp.where(ones, 0, counts) * divide(n - w, n - c)
    return xp.where(ones.any(-1, keepdims=True), rest + w * ones, counts)
