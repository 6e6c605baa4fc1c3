"""The bootstrap of tables of counts."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from jaxmetrics._bins import as_histogram
from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_counts,
    check_level,
    check_option,
    check_size,
)
from jaxmetrics.estimates import Metric
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.acceleration import Influence, influence_for
from jaxmetrics.intervals.confidence import confidence
from jaxmetrics.intervals.quantiles import METHODS, bootstrap_estimates
from jaxmetrics.intervals.tables import (
    as_floats,
    axis_of_tables,
    check_finite,
    check_not_stratified,
    check_num_samples,
    frequencies,
    is_possible,
    nan_unless,
    numbers_of_examples,
    tables_of,
    where_answered,
)
from jaxmetrics.intervals.units import as_clusters, clusters_as_cells

__all__ = ["bootstrap", "bootstrap_counts", "bootstrap_histogram"]


def bootstrap(
    key: KeyLike,
    metric: Metric,
    counts: ArrayLike,
    *,
    num_samples: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile", "basic", "studentized"] = "bca",
    stratified: bool = False,
    cluster_axis: int | None = None,
    table_ndim: int = 2,
    simultaneous: bool = False,
) -> Any:
    """Estimate a metric with a bootstrap interval, from test sets drawn with replacement.

    With θ the metric of the counts, θ* those of the replicates, and Q their quantiles:

    - `"percentile"`: `Q(α/2), Q(1 - α/2)`.
    - `"basic"`: `2θ - Q(1 - α/2), 2θ - Q(α/2)`.
    - `"bca"`: percentiles at levels that correct bias and skewness. The skewness comes from the
      jackknife, which has only as many different values as there are cells; with 10,000 examples
      or more, or more than 90 classes, it comes from the derivatives. Where all replicates lie on
      one side of the value, plain percentiles. Efron (1987), JASA 82.
    - `"studentized"`: `θ - s t(1 - α/2), θ - s t(α/2)`, t the quantiles of `(θ* - θ) / s*`, s the
      error by `delta_method`. Replicates with s* = 0 and θ* != θ count as undefined.

    A metric that is the same in all replicates, as for a classifier without errors, has an interval
    of width 0: the bootstrap gives no probability to errors that did not occur. `posterior` does.

    Args:
        metric: a function of one `(K, K)` matrix; see the docstring of `jaxmetrics.intervals`.
        counts: `(..., K, K)` numbers of examples.
        num_samples: S; quantiles near the ends, as for BCa, need 2000 or more.
        stratified: each class keeps its number of examples, as where the test set was made so.
        cluster_axis: the axis of `(..., C, K, K)` with tables of clusters, -3: whole clusters are
            drawn, C of them. A warning for fewer than 20.
        table_ndim, simultaneous: as for `delta_method`; of V values at once the ends are quantiles
            V times further out, which need as many times more samples.

    Returns:
        `Estimate` or a pytree of them; `standard_error` is the standard deviation of the
        replicates. NaN for a matrix without examples, and under jit for one with negative or
        fractional counts.

    Raises:
        ValueError: counts that are not square, negative or fractional (sums of weights do not say
            how many examples there are), num_samples < 2, a level outside of (0, 1), an unknown
            method, a metric that is nowhere finite, clusters that are stratified.

    >>> import jaxmetrics as jm
    >>> estimate = bootstrap(0, jm.accuracy, [[90, 10], [5, 95]])
    >>> estimate
    0.925 [0.880, 0.955]

    Several metrics at once, yours among them, share the replicates:

    >>> def both(counts):
    ...     return {"accuracy": jm.accuracy(counts), "errors": counts[0, 1] + counts[1, 0]}
    >>> both = bootstrap(0, both, [[90, 10], [5, 95]])
    >>> both["errors"].value, both["accuracy"].low == estimate.low
    (np.float64(15.0), np.True_)
    """
    check_option(method, "method", (*METHODS, "studentized"))
    size = check_num_samples(num_samples)
    floats, tables = tables_of(metric, counts, table_ndim)
    checked = numbers_of_examples if cluster_axis is None else frequencies
    tables = where_answered(floats, checked(tables))
    reach = confidence(level, floats, tables, simultaneous=simultaneous)
    options: dict[str, Any] = {"level": reach.level, "method": method}
    if cluster_axis is None:
        options["stratified"] = stratified
        return _bootstrap_tables(key, floats, tables, size, **options)
    check_not_stratified(stratified)
    clusters = as_clusters(tables, axis_of_tables(cluster_axis, table_ndim))
    placed_key, clusters = place(key, clusters)
    return check_finite(
        _bootstrap_clusters(placed_key, clusters, metric=floats, size=size, **options), size
    )


@compiled
def _bootstrap_clusters(
    key: Key, clusters: Array, *, metric: Metric, size: int, level: float, method: str
) -> Any:
    def of_one(clusters: Array) -> Any:
        cells, sums = clusters_as_cells(clusters)
        estimates, _ = bootstrap_estimates(
            key,
            lambda drawn: metric(sums(drawn)),
            cells,
            numbers=cells.size + clusters[0].size,
            size=size,
            level=level,
            method=method,
            stratified=False,
            influence=Influence.JACKKNIFE,
        )
        return nan_unless(cells.sum() > 1, estimates)

    return replicates.map_batch(of_one, clusters, table_ndim=3)


def bootstrap_histogram(
    key: KeyLike,
    metric: Metric,
    histogram: ArrayLike,
    *,
    num_samples: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile", "basic", "studentized"] = "bca",
    stratified: bool = False,
) -> Any:
    """Estimate a metric of score histograms, such as `roc_auc_bounds`, with a bootstrap interval.

    To resample examples is to draw the cells of the histogram, so that the cost does not depend on
    n. All else is as for `bootstrap`.

    Args:
        metric: a function of one histogram `(2, B)` that returns an array or a pytree of arrays.
        histogram: `(..., 2, B)` numbers of examples, by `score_histogram`.
        num_samples, level, method, stratified: as for `bootstrap`; stratified keeps the number of
            examples of each class.

    Returns:
        `Estimate` or a pytree of them, as `bootstrap`; of `roc_auc_bounds` an `AreaBounds` of
        Estimates.

    Raises:
        ValueError: another shape; as `bootstrap`.

    >>> import jaxmetrics as jm
    >>> bootstrap_histogram(0, jm.roc_auc_bounds, [[50, 40, 10], [5, 20, 75]]).value
    0.865 [0.811, 0.907]
    """
    check_option(method, "method", (*METHODS, "studentized"))
    size, level = check_num_samples(num_samples), check_level(level)
    options: dict[str, Any] = {"level": level, "method": method, "stratified": stratified}
    floats = as_floats(metric)
    tables = numbers_of_examples(as_histogram(histogram), "histogram")
    return _bootstrap_tables(key, floats, where_answered(floats, tables), size, **options)


def _bootstrap_tables(
    key: KeyLike, metric: Metric, tables: Array, size: int, **options: Any
) -> Any:
    placed_key, tables = place(key, tables)
    function = partial(
        _bootstrap, placed_key, metric=metric, size=size, **options, influence=influence_for(tables)
    )
    return check_finite(replicates.by_used_columns(function, tables), size)


@compiled
def _bootstrap(
    key: Key,
    counts: Array,
    columns: Array | None,
    *,
    metric: Metric,
    size: int,
    level: float,
    method: str,
    stratified: bool,
    influence: Influence,
) -> Any:
    cells, (k, width) = replicates.packed(counts, columns), counts.shape[-2:]
    numbers = k * width

    def metric_of_packed(cells: Array) -> Any:
        return metric(replicates.unpacked(cells, columns, width))

    estimates, _ = bootstrap_estimates(
        key,
        metric_of_packed,
        cells,
        numbers=numbers,
        size=size,
        level=level,
        method=method,
        stratified=stratified,
        influence=influence,
    )
    return nan_unless(is_possible(counts) & (counts.sum((-2, -1)) > 0), estimates)


def bootstrap_counts(
    key: KeyLike,
    counts: ArrayLike,
    num_samples: int,
    *,
    method: Literal["multinomial", "poisson", "bayesian"] = "multinomial",
    stratified: bool = False,
) -> Array:
    """Draw bootstrap replicates of confusion matrices.

    - `"multinomial"`: as many examples as there are, drawn with replacement.
    - `"poisson"`: each example counted Poisson(1) times, so that totals vary; batches of a stream
      can be resampled apart.
    - `"bayesian"`: each example weighted by a share of Dirichlet(1, ..., 1). Rubin (1981), Annals
      of Statistics 9. Sums of weights are allowed and read as frequencies.

    Args:
        counts: `(..., K, K)` numbers of examples, below 2^31 in all.
        num_samples: S.
        stratified: each class keeps its number of examples.

    Returns:
        `(S, ..., K, K)`, float, since under jit a matrix with negative or fractional counts gives
        NaN.

    Raises:
        ValueError: counts that are not square, negative or fractional, an unknown method, Poisson
            stratified.

    >>> replicates = bootstrap_counts(0, [[90, 10], [5, 95]], 1000)
    >>> replicates.shape, set(replicates.sum((-2, -1)).tolist())
    ((1000, 2, 2), {200.0})
    """
    check_option(method, "method", ("multinomial", "poisson", "bayesian"))
    if method == "poisson" and stratified:
        raise ValueError(
            "Poisson counts have no fixed totals: stratified=True needs another method."
        )
    size = check_size(num_samples, "num_samples")
    checked = frequencies if method == "bayesian" else numbers_of_examples
    placed_key, examples = place(key, checked(as_counts(counts)))
    function = partial(_draw_counts, placed_key, method=method, stratified=stratified, size=size)
    return replicates.by_used_columns(function, examples, axis=1)


_SAMPLERS = {
    ("multinomial", False): replicates.multinomial,
    ("multinomial", True): replicates.stratified_multinomial,
    ("poisson", False): replicates.poisson,
    ("bayesian", False): replicates.bayesian,
    ("bayesian", True): replicates.stratified_bayesian,
}


@compiled
def _draw_counts(
    key: Key, counts: Array, columns: Array | None, *, method: str, stratified: bool, size: int
) -> Array:
    cells = replicates.packed(counts, columns)
    k = counts.shape[-1]
    draws = replicates.evaluate(
        _SAMPLERS[method, stratified],
        lambda cells: replicates.unpacked(cells, columns, k),
        key,
        cells,
        size=size,
        numbers=k * k,
    )
    return xp.where(is_possible(counts)[..., None, None], draws, xp.nan)
