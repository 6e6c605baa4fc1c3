"""Likelihood intervals: the values of a metric that the counts do not refute."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_jax, lax, xp
from jaxmetrics._validation import ArrayLike
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals.confidence import Confidence, confidence
from jaxmetrics.intervals.delta import standard_error
from jaxmetrics.intervals.derivatives import differentiator
from jaxmetrics.intervals.replicates import map_in_blocks, map_tables
from jaxmetrics.intervals.samplers import deviance
from jaxmetrics.intervals.tables import (
    axis_of_tables,
    check_not_stratified,
    numbers_of_examples,
    tables_of,
    where_answered,
)
from jaxmetrics.intervals.units import (
    Units,
    as_clusters,
    cells_as_units,
    clustered_error,
    effective_number,
    effective_share,
)

__all__ = ["likelihood_interval"]

_ADDED = 0.5  # examples, to the cell that moves the metric most
_TRACE = 1e-6  # of an example, in cells without any, for their derivatives
_MOST_PASSES = 20
_NEWTON_STEPS = 10
_AT_ONCE = 2**20  # numbers in the tables of a batch; of larger ones each is faster alone


def likelihood_interval(
    metric: Metric,
    counts: ArrayLike,
    *,
    level: float = 0.95,
    stratified: bool = False,
    cluster_axis: int | None = None,
    table_ndim: int = 2,
    simultaneous: bool = False,
    anytime: bool | int = False,
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
    19. The half example and what it covers: `bench/coverage.py`. Examples of clusters count as the
    number of independent ones for which the metric would vary as much, and half of the cluster that
    moves the metric most is added, too: Rao and Scott (1981), Journal of the American Statistical
    Association 76.

    Args:
        metric: a function of one `(K, K)` matrix, differentiable, that does not grow with the
            number of examples; for counts on the host it may also be computed by NumPy.
        counts: `(..., K, K)` numbers of examples.
        stratified: whether the totals of the rows were chosen, and not drawn.
        cluster_axis, table_ndim, simultaneous, anytime: as for `delta_method`. The least difference
            between groups is above 0 here also where they are equal, if by little.

    Returns:
        `Estimate` or a pytree of them, with the standard error of the delta method. NaN where the
        metric is undefined; the ends are NaN where no likely table moves it, as the precision of a
        class that is never predicted, which is a convention. Under jit NaN for a matrix that does
        not hold numbers of examples.

    Raises:
        ValueError: counts that are not square, negative or not whole, a level outside of (0, 1),
            clusters that are stratified.

    >>> import jaxmetrics as jm
    >>> likelihood_interval(jm.balanced_accuracy, [[490, 5], [0, 5]])
    0.995 [0.757, 0.998]
    """
    floats, tables = tables_of(metric, counts, table_ndim)
    tables = where_answered(floats, numbers_of_examples(tables, most=np.inf))
    reach = confidence(level, floats, tables, simultaneous=simultaneous, anytime=anytime)
    if cluster_axis is None:
        return _likelihood_interval(tables, metric=floats, reach=reach, stratified=stratified)
    check_not_stratified(stratified)
    clusters = as_clusters(tables, axis_of_tables(cluster_axis, table_ndim))
    return _of_clusters(clusters, metric=floats, reach=reach)


@compiled
def _likelihood_interval(
    tables: Array, *, metric: Metric, reach: Confidence, stratified: bool
) -> Any:
    function = partial(_of_table, metric, reach=reach, stratified=stratified)
    return map_tables(function, tables, math.prod(tables.shape[-2:]))


@compiled
def _of_clusters(clusters: Array, *, metric: Metric, reach: Confidence) -> Any:
    function = partial(_of_sum, metric, reach=reach)
    return map_tables(function, clusters, math.prod(clusters.shape[-3:]), table_ndim=3)


def _of_table(metric: Metric, table: Array, *, reach: Confidence, stratified: bool) -> Any:
    if table.ndim != 2:
        raise ValueError(f"one table at a time, got {table.shape}.")
    units = cells_as_units(table, stratified=stratified)
    (estimates,) = likelihood_estimates(metric, units, reach)
    return estimates


def _of_sum(metric: Metric, clusters: Array, *, reach: Confidence) -> Any:
    if clusters.ndim != 3:
        raise ValueError(f"one table at a time, got {clusters.shape}.")
    units = cells_as_units(clusters.sum(0), clusters=clusters)
    (estimates,) = likelihood_estimates(metric, units, reach)
    return estimates


def likelihood_estimates(
    metric: Metric, units: Units, reach: Confidence, contrasts: Sequence[Sequence[int]] = ((1,),)
) -> list[Any]:
    """Estimate contrasts between a metric of the tables of units.

    Args:
        metric: a function of one table, which does not grow with it.
        units: of T tables.
        reach: with which confidence.
        contrasts: T factors each, by which the tables' metrics are multiplied and added up.

    Returns:
        For each contrast what `likelihood_interval` returns.
    """
    counts, table = units.counts, units.tables(units.counts)[0]
    leaves, structure = jax.tree.flatten(metric(table))
    row = in_one_row(metric, table)
    values_of = _Values(row, differentiator(row, table), units, np.array(contrasts))
    values, slopes = values_of(counts), values_of.slopes(counts)
    errors = standard_error(counts, values, slopes, stratified=True)
    share = xp.ones_like(values)  # of an independent example, to which one amounts
    if units.clusters is None:
        z = reach.quantile(counts.sum())
    else:
        independent, errors = errors, clustered_error(*map(_flat, (units.clusters, slopes)))
        number = effective_number(units.clusters)
        z = reach.quantile(number)
        share = effective_share(independent, errors, counts.sum(), number, z)

    def limits(i: Array) -> Array:
        """Return the lower and the upper limit of value i."""
        ends = _Problem(values_of, i, share[i]).extremes(z**2 / 2)
        return xp.where(share[i] > 0, ends, xp.nan)

    if is_jax(counts):
        ends = map_in_blocks(limits, jax.numpy.arange(len(values)), 2 * counts.size)
    else:
        ends = np.stack([limits(i) for i in range(len(values))])
    low, high = ends.T
    # A value that no likely table moves, though others do, is a convention, or flat here.
    others = counts + 1 + xp.arange(counts.size).reshape(counts.shape) / counts.size
    moves = (values_of(others) != values) | (not units.complete)
    unknown = (low == high) & moves | (counts.sum() == 0)
    low, high = (xp.where(unknown, xp.nan, x) for x in (low, high))
    estimates = Estimate(values, low, high, errors, xp.zeros(values.shape, xp.int32))
    places = np.cumsum([np.size(leaf) for leaf in leaves])

    def of_contrast(i: int) -> Any:
        row = jax.tree.map(lambda x: x.reshape((len(contrasts), -1))[i], estimates)
        parts = [
            jax.tree.map(lambda x, end=end, v=v: x[end - v.size : end].reshape(v.shape), row)
            for v, end in zip(leaves, places, strict=True)
        ]
        return jax.tree.unflatten(structure, parts)

    return [of_contrast(i) for i in range(len(contrasts))]


def _flat(tables: Array) -> Array:
    return tables.reshape((len(tables), -1))


def in_one_row(metric: Metric, table: Array) -> Callable[[Array], Array]:
    """Return a function that gives the values of a metric as `(V,)`.

    On the host it takes batches, whether or not the metric does.
    """

    def row(table: Array) -> Array:
        shape = (*table.shape[:-2], -1)
        return xp.concatenate([x.reshape(shape) for x in jax.tree.leaves(metric(table))], -1)

    def each(tables: Array) -> Array:
        if tables.ndim == 2:
            return row(tables)
        return np.stack([each(table) for table in tables])

    if is_jax(table):
        return row
    two = np.stack([table, table.T if len(table) == table.shape[-1] else table[::-1]])
    try:
        takes_batches = np.allclose(row(two), each(two), 1e-9, 1e-12, True)
    except Exception:  # it is made for a single table
        takes_batches = False
    return row if takes_batches else each


def _each(function: Callable[[Array], Array], batch: Array, numbers: int) -> Array:
    """Evaluate a function of tables of so many numbers for each of a batch."""
    if is_jax(batch):
        return jax.vmap(function)(batch)
    if len(batch) * numbers <= _AT_ONCE:
        return function(batch)
    return np.stack([function(x) for x in batch])


class _Values(NamedTuple):
    """The contrasts `(P, T)` between the metrics of T tables, as functions of weights of units.

    They are one row of P V values. On the host they take batches of weights `(..., R, U)`.
    """

    row: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    units: Units
    contrasts: np.ndarray

    def __call__(self, weights: Array) -> Array:
        tables = self.units.tables(weights)
        rates = _each(self.row, tables, tables[0].size)  # (..., T, V)
        rows = [
            sum(factor * rates[..., t, :] for t, factor in enumerate(contrast) if factor)
            for contrast in self.contrasts
        ]
        return xp.concatenate(rows, -1)

    def slopes(self, weights: Array) -> Array:
        """Return all derivatives, `(P V, R, U)`."""
        if is_jax(weights):
            return jax.jacrev(self.__call__)(weights)
        by_tables = np.stack([self.derivative(table) for table in self.units.tables(weights)])
        by_values = np.moveaxis(by_tables, 0, 1)  # (V, T, K, K)
        factors = self.contrasts[:, :, None, None]
        return np.stack([self.units.slopes(factor * x) for factor in factors for x in by_values])

    def slope(self, i: Array, weights: Array) -> Array:
        """Return the derivative of value i, `(R, U)`, and 0 where it is not finite."""
        if is_jax(weights):
            slope = jax.grad(lambda weights: self(weights)[i])(weights)
        else:
            tables = self.units.tables(weights)
            of, v = divmod(i, self.row(tables[0]).size)
            by_tables = [
                factor * self.derivative(table)[v] if factor else np.zeros(table.shape)
                for factor, table in zip(self.contrasts[of], tables, strict=True)
            ]
            slope = self.units.slopes(np.stack(by_tables))
        return xp.where(xp.isfinite(slope), slope, 0)


class _Search(NamedTuple):
    """Where the search for an extreme is: at weights of units, after a step along `slopes`."""

    weights: Array
    slopes: Array
    value: Array
    gain: Array
    passes: Array


class _Problem(NamedTuple):
    """Find the extremes of value i near the counts of the units, of which each amounts to a share
    of an independent one.
    """

    values: _Values
    i: Array
    share: Array

    def value(self, weights: Array) -> Array:
        return self.values(weights)[..., self.i]

    def extremes(self, radius: float) -> Array:
        """Return the least and the greatest value within the radius."""
        units = self.values.units
        start, closed = self.start()
        allowed = units.possible & ~closed
        opened = xp.where((units.counts == 0) & allowed, _TRACE, units.counts)
        slopes = self.values.slope(self.i, opened)

        def extreme(sign: Array) -> Array:
            return sign * self.greatest(sign, sign * start, sign * slopes, allowed, radius)

        if is_jax(start):
            return jax.vmap(extreme)(jax.numpy.array([-1, 1], start.dtype))
        return np.stack([extreme(sign) for sign in (-1, 1)])

    def greatest(
        self, sign: Array, start: Array, slopes: Array, allowed: Array, radius: float
    ) -> Array:
        """Return the greatest of `sign` times the value within the radius.

        The value is made linear, the extreme of that found, and the way there searched for a
        greater value, until that gains nothing: the conditional gradient method of Frank and Wolfe
        (1956).
        """
        base = _with_more(self.values.units, slopes, allowed, _ADDED / self.share)
        steps = xp.full_like(start, 0.5) ** np.arange(4)[:, None, None]

        def improve(search: _Search) -> _Search:
            # At a kink, as where two groups are the best, both of its slopes are needed.
            slopes = lax.cond(
                search.passes == 0,
                lambda: search.slopes,
                lambda: (sign * self.values.slope(self.i, search.weights) + search.slopes) / 2,
            )
            way = _tilted(base, slopes, radius / self.share) - search.weights
            values = sign * _each(lambda s: self.value(search.weights + s * way), steps, way.size)
            best = xp.argmax(values)
            gain = values[best] - search.value
            weights = xp.where(gain > 0, search.weights + steps[best] * way, search.weights)
            value = xp.maximum(values[best], search.value)
            return _Search(weights, slopes, value, gain, search.passes + 1)

        def is_unfinished(search: _Search) -> Array:
            gains = search.gain > 1e-5 * xp.abs(search.value - start)
            return gains & (search.passes < _MOST_PASSES)

        infinite, passes = xp.full_like(start, xp.inf), xp.zeros((), xp.int32)
        first = _Search(base, slopes, start, infinite, passes)
        return lax.while_loop(is_unfinished, improve, first).value

    def start(self) -> tuple[Array, Array]:
        """Return the value, and the units of those groups in which an example makes it jump."""
        counts, _, unused, *_ = self.values.units
        some = xp.where(unused, _TRACE, counts)
        tried = xp.concatenate([counts[None], some])
        start, *values = _each(self.value, tried, counts.size)
        moved = xp.abs(xp.stack(values) - start) > 1e-4 * (1 + xp.abs(start))
        return start, (unused & moved[:, None, None]).any(0)


def _with_more(units: Units, slopes: Array, allowed: Array, added: Array) -> Array:
    """Add to the unit `(R, U)` that raises the value most, and of clusters half of that which does.

    Of several strata that of the unit keeps its total.
    """
    counts = units.counts
    totals = counts.sum(-1, keepdims=True)
    mean = divide((counts * slopes).sum(-1, keepdims=True), totals)
    share = totals / (totals + added) if len(counts) > 1 else xp.ones_like(totals)
    gains = xp.where(allowed & (totals > 0), (slopes - mean) * share, -xp.inf)
    best = (xp.arange(counts.size) == xp.argmax(gains)).reshape(counts.shape)
    more = xp.where(best.any(-1, keepdims=True), (counts + added * best) * share, counts)
    if units.clusters is None:
        return more
    best_cluster = xp.argmax((units.clusters * (slopes - mean)).sum((-2, -1)))
    return more + _ADDED * units.clusters[best_cluster]


def _tilted(counts: Array, slopes: Array, radius: float) -> Array:
    """Return the weights of the largest `sum slopes * weights` whose log-likelihood ratio is the
    radius.

    In each of the rows `(R, U)`, which keep their totals, they are `counts / (nu + t u)`, where u
    are the slopes measured down from the highest, nu depends on the row, and t does not. With
    `s = t / nu` and u centred to d, they are `counts / ((1 + y) Z)`, `y = s d / (1 + s mean)`. Both
    `log t` and the logarithm of the ratio are concave functions of `log s`, so that Newton's steps
    on these scales need no bracket.
    """
    if not is_jax(counts):
        used = counts.any(0)
        if not used.any():
            return counts
        if not used.all():  # on the host the others take no time
            weights = np.zeros(counts.shape)
            weights[:, used] = _tilted(counts[:, used], slopes[:, used], radius)
            return weights
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
        found = totals * weights / (1 + excess)
        ratio = (found * deviance(excess + (1 + excess) * y)).sum()
        # Derivatives by log s: of log Z, of the ratio and of log t.
        of_z = -s * (weights * d / (1 + y)).sum(-1, keepdims=True) / (scale**2 * (1 + excess))
        of_ratio = totals * (s * (weights * d).sum(-1, keepdims=True) / scale**2 + of_z)
        of_t = 1 / scale + of_z
        log_t = log_s + xp.log1p(excess) - xp.log(scale)
        missing = ratio * xp.log(radius / xp.maximum(ratio, 1e-30))
        goal = (missing + (of_ratio / of_t * log_t).sum()) / (of_ratio / of_t).sum()
        return log_s + xp.clip((goal - log_t) / of_t, -3, 3), found

    variance = (totals * shares * d * d).sum()
    possible = variance > 0
    start = xp.log(2 * radius / xp.where(possible, variance, 1)) / 2
    first = xp.broadcast_to(start, totals.shape), counts
    _, found = lax.fori_loop(0, _NEWTON_STEPS, step, first)
    return xp.where(possible, found, counts)
