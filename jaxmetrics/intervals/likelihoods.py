"""Likelihood intervals: the values of a metric that the counts do not refute."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_jax, lax, xp
from jaxmetrics._validation import ArrayLike, as_counts
from jaxmetrics.estimates import Estimate, Metric, normal_quantile
from jaxmetrics.intervals.delta import value_and_error
from jaxmetrics.intervals.derivatives import jacobian
from jaxmetrics.intervals.replicates import map_in_blocks, map_tables
from jaxmetrics.intervals.samplers import deviance
from jaxmetrics.intervals.tables import as_floats, numbers_of_examples, where_answered

__all__ = ["likelihood_interval"]

_ADDED = 0.5  # examples, to the cell that moves the metric most
_TRACE = 1e-6  # of an example, in cells without any, for their derivatives
_STEPS = 0.5 ** np.arange(4)  # of the way to the extreme of the linearised metric
_MOST_PASSES = 20
_NEWTON_STEPS = 10


def likelihood_interval(
    metric: Metric, counts: ArrayLike, *, level: float = 0.95, stratified: bool = False
) -> Any:
    """Estimate a metric with the interval of its values under which the counts are likely enough.

    The ends are the least and the greatest value over all tables of expected counts E with

        sum C log(C / E) <= z^2 / 2,    sum E = sum C,

    z the normal quantile of the level. For each end C holds half an example more, in the cell that
    moves the metric most towards it: so the interval knows of errors that were not seen. Where a
    class without examples would make the metric jump, as it changes an average over the classes
    that occur, its cells stay empty: the interval is about the classes that occur.

    Nothing is drawn, no scale and no prior is chosen, and the ends are values that the metric
    takes. Owen (2001), Empirical Likelihood; DiCiccio, Hall and Romano (1991), Annals of Statistics
    19. The half example and what it covers: `bench/coverage.py`.

    Args:
        metric: a function of one `(K, K)` matrix, differentiable, that does not grow with the
            number of examples; for counts on the host it may also be computed by NumPy.
        counts: `(..., K, K)` numbers of examples.
        stratified: whether the totals of the rows were chosen, and not drawn.

    Returns:
        `Estimate` or a pytree of them, with the standard error of the delta method. NaN where the
        metric is undefined; the ends are NaN where it is a convention, as the precision of a class
        that is never predicted. Under jit NaN for a
        matrix that does not hold numbers of examples.

    Raises:
        ValueError: counts that are not square, negative or not whole, a level outside of (0, 1).

    >>> import jaxmetrics as jm
    >>> estimate = likelihood_interval(jm.balanced_accuracy, [[490, 5], [0, 5]])
    >>> estimate.value.round(3), estimate.low.round(3), estimate.high.round(3)
    (np.float64(0.995), np.float64(0.757), np.float64(0.998))
    """
    radius = normal_quantile(level) ** 2 / 2
    floats = as_floats(metric)
    tables = where_answered(floats, numbers_of_examples(as_counts(counts), most=np.inf))
    return _likelihood_interval(tables, metric=floats, radius=radius, stratified=stratified)


@compiled
def _likelihood_interval(tables: Array, *, metric: Metric, radius: float, stratified: bool) -> Any:
    def of_table(table: Array) -> Any:
        values, errors = value_and_error(metric, table, stratified=stratified)
        unused = _classes_without_examples(table)
        lows, highs = likelihood_limits(metric, table, values, unused, radius, stratified)
        return jax.tree.map(_estimate, values, lows, highs, errors)

    return map_tables(of_table, tables, tables.shape[-1] ** 2)


def _estimate(value: Array, low: Array, high: Array, error: Array) -> Estimate:
    return Estimate(value, low, high, error, xp.zeros(np.shape(value), xp.int32))


def _classes_without_examples(table: Array) -> Array:
    """Return the cells of classes that never are the truth, and of those never predicted."""
    sums = (table.sum(axis, keepdims=True) for axis in (-1, -2))
    return xp.stack([xp.broadcast_to(x == 0, table.shape) for x in sums])


def likelihood_limits(
    metric: Metric, table: Array, values: Any, unused: Array, radius: float, stratified: bool
) -> tuple[Any, Any]:
    """Return the least and the greatest values of a metric of one table `(K, W)`.

    Args:
        metric: a function of tables `(K, W)`, which does not grow with them.
        table: numbers of examples.
        values: the metric of the table.
        unused: groups of cells without examples, `(G, K, W)`, which stay empty if the metric jumps
            where they get some.
        radius: the largest log-likelihood ratio.
        stratified: whether the totals of the rows are fixed.
    """
    leaves, structure = jax.tree.flatten(values)
    number = sum(np.size(leaf) for leaf in leaves)

    def flat(table: Array) -> Array:
        batch = table.shape[:-2]
        return xp.concatenate([x.reshape((*batch, -1)) for x in jax.tree.leaves(metric(table))], -1)

    def limit(i: Array) -> tuple[Array, Array]:
        """Return the lower limit of value i // 2 for an even i, the upper one for an odd, and
        whether cells were left out.
        """
        problem = _Problem(flat, i // 2, 2 * (i % 2) - 1, table, stratified)
        extreme, closed = problem.extreme(unused, radius)
        return problem.sign * extreme, closed

    if is_jax(table):
        limits, closed = map_in_blocks(limit, jax.numpy.arange(2 * number), table.size)
    else:
        limits, closed = map(np.stack, zip(*map(limit, range(2 * number)), strict=True))
    same = xp.repeat(limits[::2] == limits[1::2], 2)
    limits = xp.where(same & closed, xp.nan, limits)  # nothing is known of what was left out
    places = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
    low, high = (
        [x.reshape(np.shape(v)) for x, v in zip(xp.split(side, places), leaves, strict=True)]
        for side in (limits[::2], limits[1::2])
    )
    return jax.tree.unflatten(structure, low), jax.tree.unflatten(structure, high)


class _Search(NamedTuple):
    """Where the search for an extreme is: at a table, under the likelihood of the counts `base`."""

    table: Array
    base: Array
    value: Array
    gain: Array
    passes: Array


class _Problem(NamedTuple):
    """Maximise `sign` times one of the values of a metric, near the counts of a table `(K, W)`."""

    values: Metric  # in one row
    index: Array
    sign: Array
    counts: Array
    stratified: bool

    def value(self, table: Array) -> Array:
        return self.sign * self.values(table)[..., self.index]

    def slopes(self, table: Array) -> Array:
        """Return the derivative of the value by each cell; rows of `(1, K W)` if not stratified."""
        if is_jax(table):
            slopes = jax.grad(self.value)(table)
        else:
            # So many derivatives are taken that those of 32 classes are worth a compilation.
            slopes = self.sign * jacobian(self.values, table, 32 * table.size)[self.index]
        return self.rows(xp.where(xp.isfinite(slopes), slopes, 0))

    def rows(self, table: Array) -> Array:
        return table if self.stratified else table.reshape((1, -1))

    def extreme(self, unused: Array, radius: float) -> tuple[Array, Array]:
        """Return the greatest value of the tables within the radius, and whether cells were left
        out.

        The value is made linear, the extreme of that found, and the way there searched for a
        greater value, until that gains nothing: the conditional gradient method of Frank and Wolfe
        (1956).
        """
        start, closed = self.start(unused)
        opened = xp.where((self.counts == 0) & ~closed, _TRACE, self.counts)
        shape = self.counts.shape

        def improve(search: _Search) -> _Search:
            slopes = self.slopes(search.table)
            allowed = self.rows(opened > 0)
            more = _with_half(self.rows(self.counts), slopes, allowed, self.stratified)
            is_first = search.passes == 0
            base = xp.where(is_first, more.reshape(shape), search.base)
            origin = xp.where(is_first, base, search.table)
            way = _tilted(self.rows(base), slopes, radius).reshape(shape) - origin
            tables = origin + _STEPS.astype(way.dtype)[:, None, None] * way
            values = map_in_blocks(self.value, tables, self.counts.size)
            best = xp.argmax(values)
            gain = values[best] - search.value
            table = xp.where(gain > 0, tables[best], origin)
            value = xp.maximum(values[best], search.value)
            return _Search(table, base, value, gain, search.passes + 1)

        def is_unfinished(search: _Search) -> Array:
            gains = search.gain > 1e-5 * xp.abs(search.value - start)
            return gains & (search.passes < _MOST_PASSES)

        infinite, passes = xp.full_like(start, xp.inf), xp.zeros((), xp.int32)
        first = _Search(opened, self.counts, start, infinite, passes)
        return lax.while_loop(is_unfinished, improve, first).value, closed.any()

    def start(self, unused: Array) -> tuple[Array, Array]:
        """Return the value, and the cells of those groups in which an example makes it jump."""
        some = xp.where(unused, _TRACE, self.counts)
        tables = xp.concatenate([self.counts[None], some])
        start, *values = map_in_blocks(self.value, tables, self.counts.size)
        moved = xp.abs(xp.stack(values) - start) > 1e-4 * (1 + xp.abs(start))
        return start, (unused & moved[:, None, None]).any(0)


def _with_half(counts: Array, slopes: Array, allowed: Array, stratified: bool) -> Array:
    """Add half an example to the cell of rows `(R, U)` in which it raises the value most.

    If stratified, the row keeps its total.
    """
    totals = counts.sum(-1, keepdims=True)
    mean = divide((counts * slopes).sum(-1, keepdims=True), totals)
    share = totals / (totals + _ADDED) if stratified else 1
    gains = xp.where(allowed & (totals > 0), (slopes - mean) * share, -xp.inf)
    best = (xp.arange(counts.size) == xp.argmax(gains)).reshape(counts.shape)
    more = counts + _ADDED * best
    return xp.where(best.any(-1, keepdims=True), more * share, counts) if stratified else more


def _tilted(counts: Array, slopes: Array, radius: float) -> Array:
    """Return the table of the largest `sum slopes * table` whose log-likelihood ratio is `radius`.

    In each of the rows `(R, U)`, which keep their totals, it is `counts / (nu + t u)`, where u are
    the slopes measured down from the highest, nu depends on the row, and t does not. With
    `s = t / nu` and u centred to d, that is `counts / ((1 + y) Z)`, `y = s d / (1 + s mean)`. Both
    `log t` and the logarithm of the ratio are concave functions of `log s`, so that Newton's steps
    on these scales need no bracket.
    """
    seen = counts > 0
    totals = counts.sum(-1, keepdims=True)
    shares = divide(counts, totals)
    highest = xp.where(seen, slopes, -xp.inf).max(-1, keepdims=True)
    u = xp.where(seen, highest - slopes, 0)
    u = divide(u, u.max())
    mean = (shares * u).sum(-1, keepdims=True)
    d = xp.where(seen, u - mean, 0)

    def step(_: int, state: tuple[Array, Array]) -> tuple[Array, Array]:
        log_s, _ = state
        s = xp.exp(log_s)
        scale = 1 + s * mean
        y = s / scale * d
        weights = shares / (1 + y)
        excess = (weights * y * y).sum(-1, keepdims=True)  # Z - 1
        table = totals * weights / (1 + excess)
        ratio = (table * deviance(excess + (1 + excess) * y)).sum()
        # Derivatives by log s: of log Z, of the ratio and of log t.
        of_z = -s * (weights * d / (1 + y)).sum(-1, keepdims=True) / (scale**2 * (1 + excess))
        of_ratio = totals * (s * (weights * d).sum(-1, keepdims=True) / scale**2 + of_z)
        of_t = 1 / scale + of_z
        log_t = log_s + xp.log1p(excess) - xp.log(scale)
        missing = ratio * xp.log(radius / xp.maximum(ratio, 1e-30))
        goal = (missing + (of_ratio / of_t * log_t).sum()) / (of_ratio / of_t).sum()
        return log_s + xp.clip((goal - log_t) / of_t, -3, 3), table

    variance = (totals * shares * d * d).sum()
    possible = variance > 0
    start = xp.log(2 * radius / xp.where(possible, variance, 1)) / 2
    first = xp.broadcast_to(start, totals.shape), counts
    _, table = lax.fori_loop(0, _NEWTON_STEPS, step, first)
    return xp.where(possible, table, counts)
