"""Compare by cells that stand for examples, with each kind of method in its own way."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import jax

from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, place, split
from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics.betas.parameters import as_prior
from jaxmetrics.comparisons._cells import (
    Layout,
    difference,
    ulp,
)
from jaxmetrics.comparisons.results import Comparison
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.acceleration import Influence, influence_for
from jaxmetrics.intervals.clusters import (
    student_quantile,
)
from jaxmetrics.intervals.confidence import Confidence, beside, confidence
from jaxmetrics.intervals.delta import normal_estimates, value_and_clustered_error, value_and_error
from jaxmetrics.intervals.likelihoods import likelihood_estimates
from jaxmetrics.intervals.methods import (
    Bootstrap,
    Delta,
    IntervalMethod,
    Likelihood,
    Posterior,
)
from jaxmetrics.intervals.quantiles import bootstrap_estimates, mean_of_finite, posterior_estimates
from jaxmetrics.intervals.replicates import map_batch, map_tables
from jaxmetrics.intervals.tables import (
    check_finite,
    is_possible,
    nan_unless,
)
from jaxmetrics.intervals.units import clusters_as_cells, effective_number

__all__: list[str] = []


class Question(NamedTuple):
    """What is asked of cells, whatever the method."""

    metric: Metric
    rope: Array
    level: float
    layout: Layout


def _comparisons(estimates: tuple[Any, Any, Any], better: Any, equivalent: Any) -> Any:
    return jax.tree.map(
        Comparison, *estimates, better, equivalent, is_leaf=lambda x: isinstance(x, Estimate)
    )


def _from_samples(
    estimates: tuple[Any, Any, Any], samples: tuple[Any, Any, Any], rope: Array, possible: Array
) -> Any:
    """Add the shares of replicates in which A is above B, and in which both are equivalent."""

    def better(d: Array) -> Array:
        return mean_of_finite(xp.where(xp.isfinite(d), (d > 0) + (d == 0) / 2, xp.nan))

    def equivalent(a: Array, b: Array, d: Array) -> Array:
        return mean_of_finite(xp.where(xp.isfinite(d), xp.abs(d) <= rope + ulp(a, b), xp.nan))

    shares = jax.tree.map(better, samples[2]), jax.tree.map(equivalent, *samples)
    return nan_unless(possible, _comparisons(estimates, *shares))


@singledispatch
def compare_cells(
    way: IntervalMethod, question: Question, cells: Array, labels: Array | None = None
) -> Any:
    """Compare by cells; each kind of method in its own way."""
    raise TypeError(
        f"differences have no interval by {way!r}: take Likelihood(), Delta(), BCa(key) or"
        " Posterior(key)."
    )


@compare_cells.register
def _(way: Likelihood, question: Question, cells: Array, labels: Array | None = None) -> Any:
    metric, rope, _, layout = question
    reach = _confidence(way, question, cells)
    return _by_likelihood(cells, labels, rope, metric=metric, layout=layout, reach=reach)


@compare_cells.register
def _(way: Delta, question: Question, cells: Array, labels: Array | None = None) -> Any:
    metric, rope, _, layout = question
    reach = _confidence(way, question, cells)
    return _by_delta(cells, labels, rope, metric=metric, layout=layout, reach=reach)


@compare_cells.register
def _(way: Bootstrap, question: Question, cells: Array, labels: Array | None = None) -> Any:
    metric, rope, level, layout = question
    key, cells = place(way.key, cells)
    size = way.num_samples
    options: dict[str, Any] = {"metric": metric, "layout": layout, "size": size, "level": level}
    options["method"] = way.name
    if layout.clustered:
        result = _by_bootstrap_of_clusters(key, cells, rope, **options)
    else:
        result = _by_bootstrap(key, cells, labels, rope, influence=influence_for(cells), **options)
    return check_finite(result, size)


@compare_cells.register
def _(way: Posterior, question: Question, cells: Array, labels: Array | None = None) -> Any:
    metric, rope, level, layout = question
    if layout.clustered:
        raise ValueError("clusters have no posterior: take Likelihood, Delta or BCa.")
    k, size = layout.num_classes, way.num_samples
    key, cells, prior = place(way.key, cells, as_prior(way.prior, k))
    options: dict[str, Any] = {"metric": metric, "size": size, "level": level}
    if layout.paired:
        return check_finite(_by_posterior(key, cells, prior, rope, **options), size)
    a, b = (cells[..., i, :].reshape((*cells.shape[:-2], k, k)) for i in (0, 1))
    return check_finite(_by_posterior_apart(key, a, b, prior, rope, **options), size)


@compiled
def _by_bootstrap(
    key: Key,
    cells: Array,
    labels: Array | None,
    rope: Array,
    *,
    metric: Metric,
    layout: Layout,
    size: int,
    level: float,
    method: str,
    influence: Influence,
) -> Any:
    estimates, samples = bootstrap_estimates(
        key,
        layout.evaluator(metric, labels),
        cells,
        numbers=_numbers(cells, layout),
        size=size,
        level=level,
        method=method,
        stratified=not layout.paired,
        influence=influence,
    )
    return _from_samples(estimates, samples, rope, _is_possible(cells, layout))


@compiled
def _by_bootstrap_of_clusters(
    key: Key,
    clusters: Array,
    rope: Array,
    *,
    metric: Metric,
    layout: Layout,
    size: int,
    level: float,
    method: str,
) -> Any:
    evaluate = layout.evaluator(metric, None)

    def of_one(clusters: Array) -> Any:
        cells, sums = clusters_as_cells(clusters)
        estimates, samples = bootstrap_estimates(
            key,
            lambda drawn: evaluate(sums(drawn)),
            cells,
            numbers=cells.size + _numbers(clusters, layout),
            size=size,
            level=level,
            method=method,
            stratified=False,
            influence=Influence.JACKKNIFE,
        )
        return _from_samples(estimates, samples, rope, cells.sum() > 1)

    return map_batch(of_one, clusters, table_ndim=3)


def _numbers(cells: Array, layout: Layout) -> int:
    return math.prod(cells.shape[-layout.ndim :]) + 2 * layout.num_classes**2


def _is_possible(cells: Array, layout: Layout) -> Array:
    """Return whether no count is negative and there are examples; if not paired, of A and of B."""
    possible = (cells >= 0).all(tuple(range(-layout.ndim, 0)))
    if layout.paired:
        return possible & (cells.sum(tuple(range(-layout.ndim, 0))) > 0)
    return possible & (cells.sum(-1) > 0).all(-1)


def _confidence(way: Likelihood | Delta, question: Question, cells: Array) -> Confidence:
    k = question.layout.num_classes
    return confidence(
        question.level,
        question.metric,
        xp.ones_like(cells, shape=(k, k)),
        simultaneous=way.simultaneous,
        anytime=way.anytime,
    )


@compiled
def _by_delta(
    cells: Array,
    labels: Array | None,
    rope: Array,
    *,
    metric: Metric,
    layout: Layout,
    reach: Confidence,
) -> Any:
    evaluate, numbers = layout.evaluator(metric, labels), _numbers(cells, layout)

    def of_cells(cells: Array) -> Any:
        if layout.clustered:
            return value_and_clustered_error(evaluate, cells, numbers)
        return value_and_error(evaluate, cells, stratified=not layout.paired, numbers=numbers)

    values, errors = map_tables(of_cells, cells, numbers, table_ndim=layout.ndim)
    z = _quantile(reach, cells, layout)
    t = student_quantile(z, effective_number(cells) - 1) if layout.clustered else z
    estimates = normal_estimates(values, errors, t, None)
    return from_limits(estimates, z, rope, _is_possible(cells, layout))


@compiled
def _by_likelihood(
    cells: Array,
    labels: Array | None,
    rope: Array,
    *,
    metric: Metric,
    layout: Layout,
    reach: Confidence,
) -> Any:
    def of_cells(cells: Array) -> list[Any]:
        if cells.ndim != layout.ndim:
            raise ValueError(f"one table at a time, got {cells.shape}.")
        units = layout.units(cells, labels)
        return likelihood_estimates(metric, units, reach, ((1, 0), (0, 1), (1, -1)))

    estimates = map_tables(of_cells, cells, _numbers(cells, layout), table_ndim=layout.ndim)
    z = _quantile(reach, cells, layout)
    return from_limits(estimates, z, rope, _is_possible(cells, layout))


def _quantile(reach: Confidence, cells: Array, layout: Layout) -> Array | float:
    return reach.quantile(effective_number(cells) if layout.clustered else cells.sum((-2, -1)))


def from_limits(
    estimates: tuple[Any, Any, Any], z: Array | float, rope: Array, possible: Array
) -> Any:
    """Add how probable it is that A is above B, and that both are equivalent, where the difference
    is distributed as two halves of normals that have their quantiles at the ends of its interval.
    """

    def below(limit: Array, d: Estimate) -> Array:
        reach = xp.where(limit < d.value, d.value - d.low, d.high - d.value)
        return _normal_cdf(limit, d.value, reach / beside(z, reach))

    def equivalent(d: Estimate) -> Array:
        within = below(rope, d) - below(-rope, d)
        return xp.where(d.low == d.high, xp.abs(d.value) <= rope, within)

    def of_estimates(function: Callable[[Estimate], Array]) -> Any:
        return jax.tree.map(function, estimates[2], is_leaf=lambda x: isinstance(x, Estimate))

    better = of_estimates(lambda d: 1 - below(xp.zeros_like(d.value), d))
    return nan_unless(possible, _comparisons(estimates, better, of_estimates(equivalent)))


def _normal_cdf(limit: Array, mean: Array, error: Array) -> Array:
    """Return P(X <= limit) for normal X; with an error of 0 it is 0, 1 or, at the mean, 1/2."""
    certain = xp.where(mean < limit, 1, xp.where(mean > limit, 0, 0.5))
    z = (limit - mean) / xp.where(error > 0, error, 1)
    share = xp.where(error > 0, special.ndtr(z), certain)
    return xp.where(xp.isnan(mean) | xp.isnan(error), xp.nan, share)


@compiled
def _by_posterior(
    key: Key, cells: Array, prior: Array, rope: Array, *, metric: Metric, size: int, level: float
) -> Any:
    k = cells.shape[-2]
    marginal = replicates.cell_prior(prior)  # of one classifier
    pairs = marginal[:, :, None] * marginal[:, None, :] / marginal.sum(-1)[:, None, None]
    samples = replicates.evaluate(
        replicates.dirichlet(pairs.reshape((k, k * k))),
        Layout(k).evaluator(metric, None),
        key,
        cells,
        size=size,
        numbers=k**3,
    )
    return _from_samples(posterior_estimates(samples, level), samples, rope, is_possible(cells))


@compiled
def _by_posterior_apart(
    key: Key,
    a: Array,
    b: Array,
    prior: Array,
    rope: Array,
    *,
    metric: Metric,
    size: int,
    level: float,
) -> Any:
    sampler = replicates.posterior(prior, None)
    of_a, of_b = (
        replicates.evaluate(
            sampler, metric, own_key, counts, size=size, numbers=counts.shape[-1] ** 2
        )
        for own_key, counts in zip(split(key), (a, b), strict=True)
    )
    samples = of_a, of_b, jax.tree.map(difference, of_a, of_b)
    possible = is_possible(a) & is_possible(b)
    return _from_samples(posterior_estimates(samples, level), samples, rope, possible)
