"""Likelihood-ratio intervals: the extreme values of a metric that the test does not reject."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._numerics.arithmetic import append_axes, argmax, divide
from jaxmetrics._places.chunks import LANES, TIMES_ON_ACCELERATORS, map_chunks
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, is_jax, lax, xp
from jaxmetrics.clusters import sizes_by_value
from jaxmetrics.intervals.derivatives import Function, differentiator
from jaxmetrics.intervals.functionals import AT_ONCE, Functional, uneven
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


class LikelihoodLimits(NamedTuple):
    """The ends of the intervals of values `(V,)`, and their derivatives `(V, R, U)`.

    `shares`, `(V,)`, say how many independent units a unit counts for each value. If the share is
    0, the ends are NaN.
    """

    low: Array
    high: Array
    values: Array
    slopes: Array
    shares: Array


def likelihood_limits(metric: Functional, z: Array | float) -> LikelihoodLimits:
    """Search for the ends of the intervals of all values; see `jaxmetrics.Likelihood`."""
    sample, edges = metric.sample, _edges(metric, z)
    values = edges.values
    derivative = differentiator(metric.row, sample.tables(sample.counts)[0])
    influences = metric.influences

    def limits(i: Array | int) -> tuple[Array, ...]:
        of_one = None if influences is None else influences[i][None]
        search = _LikelihoodSearch(metric, derivative, i, values[i], of_one)
        closed = (sample.unused & edges.jumps[:, i, None, None]).any(0)
        allowed = sample.can_occur & ~closed & (sample.counts.sum(-1, keepdims=True) > 0)
        slopes, *traced = search.first_slopes(edges.infinite[i], allowed)
        share = sample.shares(values[i][None], slopes[None], of_one, z)[0]
        search = search._replace(reach=z**2 / 2 / share, added=ADDED / share)
        ends = search.extremes(edges, allowed, *traced)
        return *xp.where(share > 0, ends, xp.nan), slopes, share

    if is_jax(values) and len(values) > 1:
        numbers = sample.counts.size * max(sample.counts.size, 2 * len(_STEPS))
        at_once = TIMES_ON_ACCELERATORS * max(LANES // numbers, 1)
        # Searches that run together last as long as the slowest. A CPU runs them one by one.
        found = map_chunks(jax.vmap(limits), 1, jax.numpy.arange(len(values)), times=at_once)
    else:
        found = map(xp.stack, zip(*map(limits, range(len(values))), strict=True))
    low, high, slopes, shares = found
    # If only improbable tables change a value, the value is a convention, or the metric is flat.
    low, high = (xp.where((low == high) & edges.moves, xp.nan, x) for x in (low, high))
    return LikelihoodLimits(low, high, values, slopes, shares)


class _Edges(NamedTuple):
    """Values `(V,)`, and what becomes of them near empty cells and if cells grow.

    Attributes:
        values: the values at the sample itself, `(V,)`.
        infinite: the limits `(V,)`: infinite if the value grows without bound as empty cells
            approach 0, such as a ratio with an error rate of 0 in the denominator, otherwise 0.
        jumps: whether the values jump if examples are added to one of the groups of unused cells,
            `(G + 1, V)`. Last, whether they depend on the classes that occur: if so, examples of
            other classes are not plausible, and the interval is the same without these classes.
        moves: whether any table changes the values, `(V,)`.
        grown: tables in each of which one of C cells has grown, `(C, R, U)`. C is 0 if there are
            too many cells.
        reached: the values of these tables, `(C, V)`.
    """

    values: Array
    infinite: Array
    jumps: Array
    moves: Array
    grown: Array
    reached: Array


def _edges(metric: Functional, z: Array | float) -> _Edges:
    """Evaluate the metric at the sample, near empty cells and at grown cells, in one call."""
    sample = metric.sample
    counts = sample.counts
    possible = (counts == 0) & sample.can_occur
    near = [xp.where(possible, trace, counts) for trace in (_TRACE, _TRACE / 1000)]
    number = xp.arange(counts.size).reshape(counts.shape)
    other = counts + 1 + number / counts.size
    # A kind in two groups, an absent label and an absent prediction, would make both groups jump.
    groups, absent = sample.unused[:-1], sample.unused[-1]
    in_one_group = groups & (groups.sum(0) == 1)
    # The value after the addition may be the same by chance, but not for two uneven additions.
    pattern = xp.stack([1 + uneven(counts), 2 - uneven(counts)])[:, None]
    used = xp.stack([xp.where(in_one_group, x * pattern, counts) for x in (_TRACE, _TRACE**2)])
    used = used.reshape((-1, *counts.shape))
    has_some = counts.size <= (math.isqrt(AT_ONCE) if is_jax(counts) else _SOME_CELLS)
    grown = _grown(counts, z**2 / 2) if has_some else used[:0]
    tables = xp.stack([counts, *near, other, xp.where(absent, counts, other)])
    values = metric(xp.concatenate([tables, used, grown]))
    start, larger, smaller, elsewhere, inside = values[:5]
    changes, reached = xp.split(values[5:], [len(used)])
    changes = xp.abs(changes - start).reshape((2, 2, len(groups), *start.shape))
    # A steep root changes less if less is added; a jump does not.
    is_small = changes[0] <= 1e-4 * (1 + xp.abs(start))
    jumps = ~(is_small | (changes[1] <= 0.9 * changes[0])).all(0)
    rounding = 100 * xp.finfo(start.dtype).eps * (1 + xp.abs(start))
    jumps = xp.concatenate([jumps, ~(xp.abs(inside - start) <= rounding)[None]])
    grows = (xp.abs(smaller) > 100 * xp.abs(larger)) & (xp.abs(smaller) > 1000)
    limit = xp.where(grows, xp.sign(smaller) * xp.inf, 0)
    moves = (elsewhere != start) | (not sample.is_complete)
    return _Edges(start, limit, jumps, moves, grown, reached)


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
        start: the value at the sample itself.
        influences: if there are clusters, those of the kinds on the value, `(1, R, U)`.
        reach: the log-likelihood ratio up to which tables are not rejected.
        added: the number of examples that are added to one cell.
    """

    metric: Functional
    derivative: Function
    i: Array | int
    start: Array
    influences: Array | None = None
    reach: Array | float = 0.0
    added: Array | float = 0.0

    def value(self, numbers: Array) -> Array:
        values = self.metric(numbers)
        if isinstance(self.i, int):
            return values[..., self.i]
        # The gradient of an indexed array is a scatter, which is slow on a TPU.
        return xp.where(xp.arange(values.shape[-1]) == self.i, values, 0).sum(-1)

    def slope(self, numbers: Array) -> Array:
        """Return the derivatives of the value, `(..., R, U)`."""
        if is_jax(numbers):
            return jax.grad(lambda x: self.value(x).sum())(numbers)
        tables = numbers.reshape((-1, *numbers.shape[-2:]))
        return self.metric.slope(self.i, tables, self.derivative).reshape(numbers.shape)

    def first_slopes(self, infinite: Array, allowed: Array) -> tuple[Array, Array, Array]:
        """Return derivatives at the counts, counts with a trace in empty cells, and those there."""
        counts = self.metric.sample.counts
        trace = xp.where(infinite == 0, _TRACE, ADDED)  # so that no slope is nearly infinite
        traced = xp.where((counts == 0) & allowed, trace, counts)
        if is_jax(counts):
            slopes = self.slope(xp.stack([counts, traced]))
            return slopes[0], traced, _finite(slopes[1])
        return self.metric.slopes[self.i], traced, _finite(self.slope(traced[None])[0])

    def extremes(self, edges: _Edges, allowed: Array, traced: Array, slopes: Array) -> Array:
        """Return the smallest and the largest value; only the cells that are `allowed` may grow.

        Each of several searches adds a part of an example to one cell. The first search begins with
        the slopes at the counts and adds to the cell that moves the value most. The others begin
        with the slopes where their cell has grown as far as the likelihood allows. If the metric is
        a minimum over classes, for example, only growth shows that a class may become the worst.
        """
        start, infinite = self.start, edges.infinite[self.i]
        one = xp.ones_like(start)
        sign = xp.stack([-one, one])[:, None]
        cells, may_grow, grown = self.starts(edges, slopes, allowed)
        base = self.with_added(sign[..., None] * slopes, cells, allowed)
        near = xp.concatenate([traced[None], grown])
        # Where a cell cannot grow, the first search is repeated.
        is_own = xp.concatenate([xp.ones(1, bool), may_grow])
        repeated = xp.where(is_own, xp.arange(len(near)), 0)
        slopes = slopes[None]
        if not is_jax(near) and len(grown):
            slopes = np.concatenate([slopes, _finite(self.slope(grown))])
        tables = base[:, repeated], near[repeated]
        ends = sign[:, 0] * self.ascend(sign, *tables, slopes, is_own)
        ends = xp.where(ends == 0, 0, ends)  # no -0
        ends = xp.where(xp.isfinite(start) | (infinite != 0), ends, xp.nan)
        return xp.where(sign[:, 0] * infinite > 0, infinite, ends)

    def starts(self, edges: _Edges, slopes: Array, allowed: Array) -> tuple[Array, Array, Array]:
        """Return cells from whose growth searches begin, which may grow, and the grown tables.

        These are all cells if there are few. Otherwise, they are the two cells after whose growth
        the value is smallest and largest.
        """
        counts, grown = self.metric.sample.counts, edges.grown
        may_grow, reached = allowed.reshape(-1), edges.reached[:, self.i]
        if counts.size > _SOME_CELLS:
            is_flat = (allowed & (slopes == 0)).any()
            if not is_jax(counts) and is_flat and counts.size**2 <= AT_ONCE:
                grown = _grown(counts, self.reach)
                reached = self.value(grown)
            may_grow = (may_grow & is_flat)[: len(grown)]
        cells = xp.arange(len(grown))
        if len(cells) > _FEW_CELLS:
            tried = allowed.reshape(-1) & ~xp.isnan(reached)
            cells = argmax(xp.where(tried, xp.stack([-reached, reached]), -xp.inf))
        if not is_jax(counts):
            cells = cells[may_grow[cells]]
        return cells, may_grow[cells], grown[cells]

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
        if clusters is None or self.influences is None:
            return tables
        moves = (clusters * centred[:, None]).sum((-2, -1))
        sizes = (
            sizes_by_value(clusters, self.influences).sum(-2)
            * xp.abs(slopes).max((-2, -1))[:, None]
        )
        return tables + ADDED_OF_CLUSTER * clusters[farthest_cluster(moves, sizes)][:, None]

    def ascend(self, sign: Array, base: Array, near: Array, slopes: Array, is_own: Array) -> Array:
        """Return the maxima `(2,)` of `sign` times the value within the reach of `base`.

        `sign` is `(2, 1)`, and there are M searches per sign with the tables `base`,
        `(2, M, R, U)`, and the tables `near`, `(M, R, U)`, at which the first slopes are computed;
        for NumPy tables, these are the `slopes`. Where `is_own`, `(M,)`, is False, the first search
        is repeated. After a few steps, the best searches are continued until no value increases any
        more.
        """
        start, m = self.start, len(near)
        is_known = xp.isfinite(start)
        origin = xp.where(is_known, start, 0) * sign
        has_few = self.metric.sample.counts.size <= _FEW_CELLS
        # A program has one shape: if one search is continued, it tries one after the other.
        number = m if has_few or not is_jax(base) else 1

        # G groups of searches, `(G, 2, 2, M / G, R, U)`; the last is repeated for the best.
        groups = xp.stack([base, xp.broadcast_to(near, base.shape)], 1)
        groups = groups.reshape((2, 2, -1, number, *base.shape[2:]))
        groups = xp.moveaxis(groups, 2, 0)
        groups = xp.concatenate([groups, groups[-1:]])
        is_last = np.arange(len(groups)) == len(groups) - 1
        none = xp.zeros((2, number), base.dtype)
        at_start = none + xp.where(is_known, sign * start, -xp.inf)

        def search(best: _Place, group: Any) -> tuple[_Place, None]:
            tables, is_last = group

            def kept() -> _Place:
                if number < m or m == 1:
                    return best
                values = xp.where(is_own, best.value, -xp.inf)
                some = xp.argsort(-values)[:, : _CONTINUED if has_few else 1]
                if is_jax(some):  # a program continues as many searches as began
                    some = some[:, np.arange(m) % some.shape[1]]
                return _Place(*(x[xp.arange(2)[:, None], some] for x in best))

            def begun() -> _Place:
                base, near = tables[:, 0], tables[:, 1]
                first = 0 * near if is_jax(near) else sign[..., None, None] * slopes
                return _Place(base, near, first, at_start, none, none > 0)

            place = self.climb(sign, origin, lax.cond(is_last, kept, begun), is_last, has_few)
            if number == m:
                return place, None

            def better(x: Array, y: Array) -> Array:
                return xp.where(append_axes(place.value > best.value, x.ndim - 2), x, y)

            return _Place(*map(better, place, best)), None

        zeros = 0 * groups[0, :, 0]
        first = _Place(zeros, zeros, zeros, none - xp.inf, none, none > 0)
        place, _ = lax.scan(search, first, (groups, is_last))
        # The steps come near a kink at 0, but not exactly to it.
        room = (1e-8 + 100 * xp.finfo(none.dtype).eps) * xp.abs(start)
        value = place.value
        return xp.where(place.is_inside & (xp.abs(value) <= room), 0 * value, value).max(1)

    def climb(
        self, sign: Array, origin: Array, place: _Place, is_last: Array, has_few: bool
    ) -> _Place:
        """Increase the values by the conditional gradient method of Frank and Wolfe (1956).

        The value is linearized, the table is computed at which the linear function is largest, and
        the segment from the current table to this table is searched for a greater value. The first
        climb begins with the slopes at `place.weights`, but at the table `place.base`. A climb ends
        if all gains are small, compared to the distances of the values from `origin`.
        """
        most_passes = xp.where(is_last, _MOST_PASSES, _TRIAL_PASSES if has_few else 1)
        most_rounds = xp.where(is_last, _MOST_ROUNDS, _FEW_ROUNDS)

        def is_unfinished(state: tuple[_Place, Array]) -> Array:
            place, passes = state
            gains = place.gain > 1e-5 * xp.abs(place.value - origin)
            return (passes == 0) | (gains.any() & (passes < most_passes))

        def improve(state: tuple[_Place, Array]) -> tuple[_Place, Array]:
            place, passes = state
            is_new, slopes = (passes == 0) & ~is_last, place.slopes
            if is_jax(is_new) or not is_new:
                now = sign[..., None, None] * _finite(self.slope(place.weights))
                # At a kink, for example if two groups are equally good, both are needed.
                slopes = xp.where(is_new, now, (now + slopes) / 2)
            before = xp.where(is_new, place.base, place.weights)
            target = tilted(place.base, slopes, self.reach)
            rounds = xp.where(passes == 0, most_rounds, _FEW_ROUNDS)
            step, value, is_inside = self.farthest(sign, before, target, rounds)
            gain = value - place.value
            weights = before + step[..., None, None] * (target - before)
            weights = xp.where((gain > 0)[..., None, None], weights, before)
            value = xp.maximum(value, place.value)
            is_inside = xp.where(gain > 0, is_inside, place.is_inside)
            return _Place(place.base, weights, slopes, value, gain, is_inside), passes + 1

        return lax.while_loop(is_unfinished, improve, (place, xp.zeros((), xp.int32)))[0]

    def farthest(
        self, sign: Array, before: Array, target: Array, most_rounds: Array
    ) -> tuple[Array, Array, Array]:
        """Return the steps `(2, M)` towards a target for which `sign` times the value is greatest.

        Also returned are these greatest values, and whether they lie inside of the segment, as the
        absolute difference of two recalls is 0 where they are equal. Only then the segment is
        divided: the neighbours of the best of five steps are the ends of a shorter segment, which
        is searched in the same way.
        """
        way = target - before
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
            values = sign * self.value(before + steps[..., None, None] * way)
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

        zero = xp.zeros_like(before[..., 0, 0])
        first = _Segment(zero, zero + 1, zero + 1, zero - xp.inf, zero, xp.zeros((), xp.int32))
        last = lax.while_loop(is_unfinished, search, first)
        return last.step, last.value, last.step < 1


def _finite(slopes: Array) -> Array:
    return xp.where(xp.isfinite(slopes), slopes, 0)


def _grown(counts: Array, reach: Array | float) -> Array:
    """Return tables `(R U, R, U)`, in each of which one cell has grown to Wilson's upper limit."""
    n = counts.sum(-1, keepdims=True)
    root = xp.sqrt(2 * reach * (counts * (1 - divide(counts, n)) + reach / 2))
    w = divide(counts + reach + root, n + 2 * reach) * n
    shrunk = divide(n - w, n - counts)
    ones = xp.eye(counts.size, dtype=bool).reshape((-1, *counts.shape))
    w, shrunk = (x.reshape((-1, 1, 1)) for x in (w, shrunk))
    return xp.where(ones, w, xp.where(ones.any(-1, keepdims=True), counts * shrunk, counts))
