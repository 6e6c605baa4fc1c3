"""How many examples a test set needs, and which differences it can show."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import jax
import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics._validation import ArrayLike, as_counts, as_float, check_level, check_size
from jaxmetrics.comparisons import compare
from jaxmetrics.comparisons._cells import as_cells, cells_of_clusters, difference
from jaxmetrics.comparisons.results import Comparison
from jaxmetrics.estimates import Estimate, Metric, normal_quantile
from jaxmetrics.intervals import Delta, delta_method, replicates
from jaxmetrics.intervals.clusters import student_quantile
from jaxmetrics.intervals.tables import (
    as_floats,
    check_num_samples,
    frequencies,
    nan_unless,
    where_answered,
)
from jaxmetrics.intervals.units import as_clusters, clusters_as_cells, number_of_clusters

__all__ = ["detectable_difference", "power", "required_examples", "simulated_error"]


def required_examples(
    metric: Metric,
    counts: ArrayLike,
    *,
    half_width: float,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate how many examples like these an interval of a given half-width takes.

    With s the standard error of the delta method at the N examples that were counted, whose
    variance falls as 1 / n, `n = N (z s / h)^2`, to be rounded up. `simulated_error` of n examples
    tells whether it is right: z times that is h, within some percent unless classes are rare.

    Args:
        metric: as for `delta_method`.
        counts: `(..., K, K)`, of a pilot study, or expected; only their proportions matter.
        half_width: h, in the units of the metric.
        level: of the interval.
        cluster_axis: the axis of `(..., C, K, K)` with tables of clusters, -3. n and N are then
            numbers of clusters, and n is greater by `(z^2 + 1) / 2`, for Student's quantile.

    Returns:
        n, `(...)`, or a pytree of them; NaN where the error is 0 or undefined, as where no mistake
        was seen.

    Raises:
        ValueError: a half-width that is not above 0, and what `delta_method` refuses.

    >>> import jaxmetrics as jm
    >>> required_examples(jm.accuracy, [[45, 5], [5, 45]], half_width=0.02)  # 1.96^2 .9 .1 / .02^2
    np.float64(864.33)
    """
    _check_positive(half_width, "half_width")
    tables = as_counts(counts)
    estimates = delta_method(metric, tables, level=level, cluster_axis=cluster_axis)
    z, total = normal_quantile(level), _number_of_units(tables, cluster_axis, 2)
    more = 0 if cluster_axis is None else (z**2 + 1) / 2

    def number(estimate: Estimate) -> Array:
        return _scaled(estimate.standard_error, total, z / half_width) ** 2 + more

    return jax.tree.map(number, estimates, is_leaf=lambda x: isinstance(x, Estimate))


def detectable_difference(
    metric: Metric,
    paired: ArrayLike,
    num_examples: int,
    *,
    power: float = 0.8,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate the difference between two classifiers that so many examples would show.

    With s the standard error of the difference of the N pairs that were counted, by the delta
    method, `d = (z + z_power) s sqrt(N / n)`: a true difference of this size has an interval
    without 0 with the given power.

    Args:
        metric: as for `compare`.
        paired: `(..., K, K, K)`, from `paired_confusion_matrix`, of a pilot study; only their
            proportions matter, and among these how often the two classifiers disagree.
        num_examples: n.
        power: the probability to show it.
        level: of the interval.
        cluster_axis: the axis of `(..., C, K, K, K)` with pairs of clusters, -4. n and N are then
            numbers of clusters, and z is the quantile of Student's t with n - 1 degrees of freedom.

    Returns:
        `(...)` or a pytree; NaN where the error is 0 or undefined, as where they never disagree.

    Raises:
        ValueError: a power not in ((1 - level) / 2, 1), no examples, a single cluster, and what
            `compare` refuses.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> detectable_difference(jm.accuracy, paired, 1000).round(3)
    np.float64(0.028)
    """
    by_chance = (1 - check_level(level)) / 2
    if not by_chance < power < 1:
        raise ValueError(
            f"power must be between {by_chance:g}, which chance alone has at this level, and 1, got"
            f" {power!r}."
        )
    reach = _reach(num_examples, level, cluster_axis) + NormalDist().inv_cdf(power)
    errors = _errors_of_difference(metric, paired, num_examples, cluster_axis)
    return jax.tree.map(lambda s: reach * s, errors)


def power(
    metric: Metric,
    paired: ArrayLike,
    num_examples: int,
    *,
    difference: float,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate with which probability so many examples show a difference of two classifiers.

    It is `Φ(d / (s sqrt(N / n)) - z)`, the probability that the interval of a true difference d has
    no 0 in it and the sign of d; the inverse of `detectable_difference`.

    Args:
        metric, paired, num_examples, level, cluster_axis: as for `detectable_difference`.
        difference: d, in the units of the metric, of either sign. Choose one that would matter:
            the power at the difference that the pilot happened to find says no more than its
            p-value. Hoenig and Heisey (2001), The American Statistician 55.

    Returns:
        `(...)` or a pytree; NaN where the error is 0 or undefined, as where they never disagree.

    Raises:
        ValueError: a difference of 0, and what `detectable_difference` refuses.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> power(jm.accuracy, paired, 1000, difference=0.028).round(2)
    np.float64(0.8)
    >>> power(jm.accuracy, paired, 300, difference=0.028).round(2)
    np.float64(0.34)
    """
    _check_positive(abs(difference), "the size of difference")
    reach = _reach(num_examples, level, cluster_axis)
    errors = _errors_of_difference(metric, paired, num_examples, cluster_axis)
    return jax.tree.map(lambda s: special.ndtr(abs(difference) / s - reach), errors)


def simulated_error(
    key: KeyLike,
    metric: Metric,
    counts: ArrayLike,
    num_examples: int,
    *,
    paired: bool = False,
    cluster_axis: int | None = None,
    num_samples: int = 2000,
) -> Any:
    """Draw test sets of so many examples, and return the standard deviation of a metric.

    So a plan is verified, which rests on derivatives: with few examples of a class a metric is not
    as good as linear, and its error not `s sqrt(N / n)`.

    Args:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        metric: a function of one `(K, K)` matrix.
        counts: `(..., K, K)`, of a pilot study, whose proportions the test sets are drawn from.
        num_examples: n, or with clusters the number of clusters, which are drawn as they are.
        paired: whether `counts` are `(..., K, K, K)`, from `paired_confusion_matrix`, and the error
            is that of the difference.
        cluster_axis: the axis with tables of clusters, -3, or -4 of pairs.
        num_samples: S. With 2000 the result has a standard error of 1.6 %.

    Returns:
        `(...)` or a pytree; test sets in which the metric is undefined do not count.

    Raises:
        ValueError: counts of another shape or negative, no examples, num_samples < 2.

    >>> import jaxmetrics as jm
    >>> pilot = [[45, 5], [5, 45]]
    >>> (1.96 * simulated_error(0, jm.accuracy, pilot, 864)).round(3)  # planned for 0.02
    np.float64(0.02)
    """
    check_size(num_examples, "num_examples")
    size = check_num_samples(num_samples)
    floats = as_floats(metric)
    if paired:
        tables = as_cells(counts, frequencies)
        clusters = tables if cluster_axis is None else cells_of_clusters(tables, cluster_axis)
    else:
        tables = frequencies(as_counts(counts))
        clusters = tables if cluster_axis is None else as_clusters(tables, cluster_axis)
    k = tables.shape[-2]
    placed, clusters = place(key, where_answered(floats, clusters, np.ones((k, k))))
    options: dict[str, Any] = {"metric": floats, "paired": paired, "size": size}
    clustered = cluster_axis is not None
    return _simulated_error(placed, clusters, n=num_examples, clustered=clustered, **options)


@compiled
def _simulated_error(
    key: Key, tables: Array, *, metric: Metric, paired: bool, n: int, clustered: bool, size: int
) -> Any:
    def of_table(table: Array) -> Any:
        if not paired:
            return metric(table)
        cube = table.reshape((*table.shape[:-1], len(table), -1))
        return jax.tree.map(difference, metric(cube.sum(-1)), metric(cube.sum(-2)))

    def errors(cells: Array, function: Any, numbers: int) -> Any:
        total = cells.sum((-2, -1), keepdims=True)
        scaled = xp.where(total > 0, cells * (n / xp.where(total > 0, total, 1)), xp.nan)
        drawn = replicates.evaluate(_SAMPLER, function, key, scaled, size=size, numbers=numbers)
        return nan_unless(total[..., 0, 0] > 0, jax.tree.map(_spread, drawn))

    cells_of_table = math.prod(tables.shape[-2:])
    if not clustered:
        return errors(tables, of_table, cells_of_table)

    def of_clusters(clusters: Array) -> Any:
        cells, sums = clusters_as_cells(clusters)
        return errors(cells, lambda drawn: of_table(sums(drawn)), cells.size + cells_of_table)

    return replicates.map_batch(of_clusters, tables, table_ndim=3)


def _spread(x: Array) -> Array:
    """Return the standard deviation of those of `(S, ...)` that are finite."""
    finite = xp.isfinite(x)
    number = finite.sum(0).astype(x.dtype)
    mean = divide(xp.where(finite, x, 0).sum(0), number)
    squares = xp.where(finite, (x - mean) ** 2, 0).sum(0)
    return xp.sqrt(divide(squares, number - 1, xp.nan))


def _drawn_on_host(rng: np.random.Generator, size: int, table: np.ndarray) -> np.ndarray:
    """Draw from a table of shares that are multiplied by the number of examples."""
    total = table.sum()
    if np.isnan(total):
        return np.full((size, *table.shape), np.nan)
    return rng.multinomial(round(total), table.ravel() / total, size).reshape((size, *table.shape))


_SAMPLER = replicates.multinomial._replace(on_host=_drawn_on_host)


def _number_of_units(tables: Array, cluster_axis: int | None, ndim: int) -> Array:
    """Return the number of examples of tables of so many axes, or that of their clusters."""
    if cluster_axis is None:
        return tables.sum(tuple(range(-ndim, 0)))
    clusters = xp.moveaxis(tables, cluster_axis, -ndim - 1)
    return number_of_clusters(clusters, table_ndim=ndim).astype(tables.dtype)


def _errors_of_difference(
    metric: Metric, paired: ArrayLike, num_examples: int, cluster_axis: int | None
) -> Any:
    """Return the standard errors that the difference would have with so many examples."""
    cubes = as_float(paired, "paired")
    compared = compare(0, metric, cubes, method=Delta(), cluster_axis=cluster_axis)
    total = _number_of_units(cubes, cluster_axis, 3)

    def error(comparison: Comparison) -> Array:
        return _scaled(comparison.difference.standard_error, total, num_examples**-0.5)

    return jax.tree.map(error, compared, is_leaf=lambda x: isinstance(x, Comparison))


def _reach(num_examples: int, level: float, cluster_axis: int | None) -> float:
    """Return how many standard errors an interval reaches to either side."""
    _check_positive(num_examples, "num_examples")
    z = normal_quantile(level)
    if cluster_axis is None:
        return z
    if num_examples < 2:
        raise ValueError("a single cluster has no interval: num_examples must be 2 or more.")
    return float(student_quantile(z, np.float64(num_examples - 1)))


@compiled
def _scaled(error: Array, total: Array, factor: float) -> Array:
    """Multiply errors `(..., *)` of `total` units `(...)` by its root, which leaves that of one
    unit, and by a factor; NaN where nothing varies.
    """
    totals = total.reshape(total.shape + (1,) * (error.ndim - total.ndim))
    return xp.where(error > 0, factor * error * xp.sqrt(totals), xp.nan)


def _check_positive(x: float, name: str) -> None:
    if not x > 0:
        raise ValueError(f"{name} must be above 0, got {x!r}.")
