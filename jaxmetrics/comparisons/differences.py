"""The difference of a metric between two classifiers, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, singledispatch
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place, split
from jaxmetrics._namespaces import Array, is_known, special, xp
from jaxmetrics._printing import Printed
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_counts,
    as_float,
    check_level,
    check_size,
)
from jaxmetrics._wording import fraction
from jaxmetrics.betas.parameters import as_prior
from jaxmetrics.comparisons._cells import (
    Layout,
    as_cells,
    cells_of_clusters,
    difference,
    distinct,
    in_rectangle,
    pairs_of_combinations,
    ulp,
)
from jaxmetrics.counts import paired_confusion_matrix
from jaxmetrics.estimates import Estimate, Metric, normal_quantile
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.acceleration import Influence, influence_for
from jaxmetrics.intervals.clusters import (
    check_size_of_tables,
    numbered_clusters,
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
    as_method,
)
from jaxmetrics.intervals.quantiles import bootstrap_estimates, mean_of_finite, posterior_estimates
from jaxmetrics.intervals.replicates import map_batch, map_tables
from jaxmetrics.intervals.tables import (
    as_floats,
    check_finite,
    check_num_samples,
    frequencies,
    is_possible,
    nan_unless,
    numbers_of_examples,
    where_answered,
)
from jaxmetrics.intervals.units import clusters_as_cells, effective_number

_MOST_CELLS = 2**18  # of pairs, 64 classes, for which errors that were not seen matter
_FEW_CELLS = 2**12  # beyond, it is faster to look for those that hold examples

__all__ = ["Comparison", "compare", "compare_predictions", "compare_unpaired"]


class _Comparison(NamedTuple):
    a: Estimate
    b: Estimate
    difference: Estimate
    probability_better: Array  # that A is above B
    probability_equivalent: Array  # that the two differ by no more than `rope`


class Comparison(Printed, _Comparison):
    """Hold a metric of A, of B and their difference A - B.

    It prints as `Estimate` does, and has its methods.

    >>> import jaxmetrics as jm
    >>> compare_unpaired(0, jm.accuracy, [[90, 10], [5, 95]], [[80, 20], [9, 91]], rope=0.02)
    A 0.925 [0.880, 0.956], B 0.855 [0.799, 0.899], A - B 0.070 [0.007, 0.135],
    P(A > B) 0.985, P(equivalent) 0.058
    """

    __slots__ = ()
    _plural = "comparisons"

    def _cells(self, spec: str) -> dict[str, str]:
        return comparison_cells(self, spec)


def comparison_cells(x: Any, spec: str) -> dict[str, str]:
    """Write the parts of a comparison of two numbers."""
    cells = {"A": x.a, "B": x.b, "A - B": x.difference}
    shares = {"P(A > B)": x.probability_better}
    if x.probability_equivalent:
        shares["P(equivalent)"] = x.probability_equivalent
    return {title: format(part, spec) for title, part in cells.items()} | {
        title: format(share, spec) if spec else fraction(share) for title, share in shares.items()
    }


def compare(
    key: KeyLike,
    metric: Metric,
    paired: ArrayLike,
    *,
    method: IntervalMethod
    | Literal["likelihood", "bootstrap", "posterior", "delta"] = "likelihood",
    rope: ArrayLike = 0.0,
    prior: ArrayLike = 1.0,
    num_samples: int = 2000,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate the difference of a metric between two classifiers on the same examples.

    - `"likelihood"`: the least and the greatest difference, over probabilities of the pairs that
      the counts do not refute; see `likelihood_interval`. Nothing is drawn.
    - `"bootstrap"`: test sets drawn from this one, with their pairs; BCa intervals.
    - `"posterior"`: per class a Dirichlet posterior on the pairs of predictions. Its prior is the
      product of the priors that `posterior` gives A and B, so that each of them alone has that
      posterior; it is worth 2 examples per class, however many pairs there are.
    - `"delta"`: normal, from the derivatives; nothing is drawn.
    - or a method as a value, which holds its own key: `Likelihood()`, `Percentile(key)`, ...

    Args:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator; not used where
            nothing is drawn.
        metric: a function of one `(K, K)` matrix that returns an array or a pytree of arrays.
        paired: `(..., K, K, K)`, from `paired_confusion_matrix`; for hundreds of classes see
            `compare_predictions`.
        rope: the region of practical equivalence: differences up to this size, in the metric's
            units, do not matter.
        prior: of the posterior: alpha = beta, `(alpha, beta)` or `(K, 2)`.
        cluster_axis: the axis of `(..., C, K, K, K)` with pairs of clusters, -4; see
            `likelihood_interval`, `bootstrap` and `delta_method`.

    Returns:
        `Comparison`, or a pytree of them. `probability_better` is the share of the replicates in
        which A is above B, ties counting half: for the posterior a probability, for the others one
        minus a one-sided p-value, roughly. Where nothing is drawn, it is that of a distribution of
        two normal halves which has its quantiles at the ends of the interval.

    Raises:
        ValueError: a `paired` of another shape, negative or (likelihood, bootstrap) fractional
            counts, an unknown method, a rope below 0, num_samples < 2, a level outside of (0, 1),
            a posterior of clusters.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a = [0, 0, 1, 1, 1, 0] * 20, [0, 0, 1, 1, 1, 1] * 20
    >>> y_pred_b = [0, 1, 1, 1, 0, 1] * 20
    >>> paired = jm.paired_confusion_matrix(y_true, y_pred_a, y_pred_b, num_classes=2)
    >>> comparison = compare(0, jm.accuracy, paired)
    >>> comparison.difference, comparison.probability_better > 0.99
    (0.333 [0.246, 0.423], np.True_)
    """
    way = _as_method(method, key, num_samples, prior=prior)
    floats = as_floats(metric)
    cells = as_cells(paired, _check_for(way))
    k = cells.shape[-2]
    if cluster_axis is not None:
        cells = cells_of_clusters(cells, cluster_axis)
    layout = Layout(k, clustered=cluster_axis is not None)
    question = _Question(floats, check_rope(rope), check_level(level), layout)
    cells = where_answered(floats, cells, np.ones((k, k)))
    if _takes_all_pairs(way, k) or layout.clustered or not is_known(cells) or cells.size == 0:
        return _compare(way, question, cells)
    return _compare_used_cells(way, question, cells)


def _compare_used_cells(way: IntervalMethod, question: _Question, cells: Array) -> Any:
    """Compare by the cells `(..., K, K K)` that hold examples, few of those of many classes."""
    k = cells.shape[-2]
    results = []
    for matrix in cells.reshape(-1, k, k * k):  # one by one, so that each draws the same as alone
        true, pair = np.nonzero(np.asarray(matrix))
        counts, labels = in_rectangle(matrix[true, pair], np.stack([true, pair // k, pair % k]), k)
        results.append(_compare(way, question, counts, labels))
    return jax.tree.map(
        lambda *x: xp.stack(x).reshape((*cells.shape[:-2], *np.shape(x[0]))), *results
    )


def compare_predictions(
    key: KeyLike,
    metric: Metric,
    y_true: ArrayLike,
    y_pred_a: ArrayLike,
    y_pred_b: ArrayLike,
    *,
    num_classes: int,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    method: IntervalMethod | Literal["likelihood", "bootstrap", "delta"] = "likelihood",
    rope: ArrayLike = 0.0,
    num_samples: int = 2000,
    level: float = 0.95,
) -> Any:
    """Compare as `compare` does, from labels, for any number of classes.

    The work grows with the number of combinations of labels that occur, not with K^3.

    Args:
        y_true, y_pred_a, y_pred_b: class ids `(n,)`. An example with one outside of
            `[0, num_classes)` is left out.
        where: `(n,)`, True = counted.
        clusters: `(n,)` ids, of any hashable kind, of groups of examples that may be alike, as
            those of one patient; they, not examples, are then the independent units. Each of the C
            clusters has a table of all K^3 pairs, and C K^3 may be 2^27 at most.

    Returns:
        `Comparison`, or a pytree of them; other arguments and errors as `compare`.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a = [0, 0, 1, 1, 1, 0] * 20, [0, 0, 1, 1, 1, 1] * 20
    >>> y_pred_b = [0, 1, 1, 1, 0, 1] * 20
    >>> comparison = compare_predictions(0, jm.accuracy, y_true, y_pred_a, y_pred_b, num_classes=2)
    >>> comparison.difference
    0.333 [0.246, 0.423]
    """
    way = _as_method(method, key, num_samples)
    if isinstance(way, Posterior):
        raise ValueError("labels have no posterior here: take compare, of pairs that are counted.")
    k, floats = check_size(num_classes, "num_classes"), as_floats(metric)
    if clusters is not None:
        cubes = cubes_of_clusters(y_true, y_pred_a, y_pred_b, clusters, k, where=where)
        return compare(key, metric, cubes, method=way, rope=rope, level=level, cluster_axis=-4)
    question = _Question(floats, check_rope(rope), check_level(level), Layout(k))
    counts, labels = distinct(
        {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}, k, where
    )
    counts = where_answered(floats, counts, np.ones((k, k)))
    if isinstance(way, Likelihood) and _takes_all_pairs(way, k):
        return _compare(way, question, pairs_of_combinations(counts, labels, k))
    return _compare(way, question, counts, labels)


def cubes_of_clusters(
    y_true: ArrayLike,
    y_pred_a: ArrayLike,
    y_pred_b: ArrayLike,
    clusters: ArrayLike | Sequence[Any],
    k: int,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Count the pairs of predictions in each cluster, `(C, K, K, K)`."""
    numbers, number = numbered_clusters(clusters, as_array(y_true, "y_true").shape)
    advice = "Merge clusters or classes; a leaderboard of both classifiers holds 2 K^2 cells."
    check_size_of_tables(number, k**3, advice)
    return paired_confusion_matrix(
        y_true,
        y_pred_a,
        y_pred_b,
        num_classes=k,
        where=where,
        groups=numbers,
        num_groups=number,
    )


def compare_unpaired(
    key: KeyLike,
    metric: Metric,
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    *,
    method: IntervalMethod
    | Literal["likelihood", "bootstrap", "posterior", "delta"] = "likelihood",
    rope: ArrayLike = 0.0,
    prior: ArrayLike = 1.0,
    num_samples: int = 2000,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate the difference of a metric between classifiers on different, independent examples.

    For the same examples use `compare`: their pairs are lost here, and with them most of the power.

    Args:
        counts_a, counts_b: `(..., K, K)`, of one shape but for the number of clusters.
        cluster_axis: the axis of `(..., C, K, K)` with the counts of clusters, -3. The ends of the
            difference then come from those of A and of B, `d - sqrt((a - l_a)^2 + (u_b - b)^2)` and
            `d + sqrt((u_a - a)^2 + (b - l_b)^2)`: Zou and Donner (2008), Statistics in Medicine 27.

    Returns:
        `Comparison`, or a pytree of them; other arguments, methods and errors as `compare`.

    >>> import jaxmetrics as jm
    >>> apart = compare_unpaired(0, jm.accuracy, [[90, 10], [5, 95]], [[80, 20], [9, 91]])
    >>> apart.difference
    0.070 [0.007, 0.135]
    """
    way = _as_method(method, key, num_samples, prior=prior)
    floats = as_floats(metric)
    a, b = as_counts(counts_a), as_counts(counts_b)
    width = check_rope(rope)
    if cluster_axis is not None:
        of_a, of_b = (way(metric, x, level=level, cluster_axis=cluster_axis) for x in (a, b))
        return _of_estimates(of_a, of_b, level, width)
    if a.shape != b.shape:
        raise ValueError(
            f"counts_a and counts_b must have one shape (..., K, K), got {a.shape} and {b.shape}."
        )
    k = a.shape[-1]
    a, b = _check_for(way)(xp.stack([a, b]))
    a = where_answered(floats, a, np.ones((k, k)))
    b = where_answered(floats, b, np.ones((k, k)))
    cells = xp.stack([a.reshape((*a.shape[:-2], -1)), b.reshape((*b.shape[:-2], -1))], -2)
    layout = Layout(k, paired=False)
    return _compare(way, _Question(floats, width, check_level(level), layout), cells)


def _of_estimates(of_a: Any, of_b: Any, level: float, rope: Array) -> Any:
    """Compare by independent estimates of A and of B."""

    def of_difference(a: Estimate, b: Estimate) -> Estimate:
        d = a.value - b.value
        low = d - xp.hypot(a.value - a.low, b.high - b.value)
        high = d + xp.hypot(a.high - a.value, b.value - b.low)
        error = xp.hypot(a.standard_error, b.standard_error)
        return Estimate(d, low, high, error, a.num_undefined + b.num_undefined)

    d = jax.tree.map(of_difference, of_a, of_b, is_leaf=lambda x: isinstance(x, Estimate))
    return _from_limits((of_a, of_b, d), normal_quantile(level), rope, xp.asarray(True))


class _Question(NamedTuple):
    """What is asked of cells, whatever the method."""

    metric: Metric
    rope: Array
    level: float
    layout: Layout


def _as_method(
    method: IntervalMethod | str, key: KeyLike, num_samples: int, **options: Any
) -> IntervalMethod:
    way = as_method(method, key, num_samples=check_num_samples(num_samples), **options)
    if isinstance(way, Delta) and way.transform is not None:
        raise ValueError(f"differences have no scale to transform to: take Delta(), not {way}.")
    if isinstance(way, Bootstrap | Posterior):
        check_num_samples(way.num_samples)
    return way


def _takes_all_pairs(way: IntervalMethod, k: int) -> bool:
    """Return whether pairs of predictions that were not seen are cells, too."""
    if isinstance(way, Posterior):
        return True
    return k**3 <= (_MOST_CELLS if isinstance(way, Likelihood) else _FEW_CELLS)


def _check_for(way: IntervalMethod) -> Callable[..., Array]:
    if isinstance(way, Likelihood):
        return partial(numbers_of_examples, most=math.inf)
    return numbers_of_examples if isinstance(way, Bootstrap) else frequencies


def check_rope(rope: ArrayLike) -> Array:
    """Check the largest difference that does not matter."""
    width = as_float(rope, "rope")
    if width.shape != ():
        raise ValueError(f"rope must be one number, got shape {width.shape}.")
    if is_known(width) and not bool((width >= 0).all()):
        raise ValueError(
            f"rope must be >= 0, the largest difference that does not matter, got {rope!r}."
        )
    return width


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
def _compare(
    way: IntervalMethod, question: _Question, cells: Array, labels: Array | None = None
) -> Any:
    """Compare by cells; each kind of method in its own way."""
    raise TypeError(f"method must be one of jaxmetrics.intervals, got {way!r}.")


@_compare.register
def _(way: Likelihood, question: _Question, cells: Array, labels: Array | None = None) -> Any:
    metric, rope, _, layout = question
    reach = _confidence(way, question, cells)
    return _by_likelihood(cells, labels, rope, metric=metric, layout=layout, reach=reach)


@_compare.register
def _(way: Delta, question: _Question, cells: Array, labels: Array | None = None) -> Any:
    metric, rope, _, layout = question
    reach = _confidence(way, question, cells)
    return _by_delta(cells, labels, rope, metric=metric, layout=layout, reach=reach)


@_compare.register
def _(way: Bootstrap, question: _Question, cells: Array, labels: Array | None = None) -> Any:
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


@_compare.register
def _(way: Posterior, question: _Question, cells: Array, labels: Array | None = None) -> Any:
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


def _confidence(way: Likelihood | Delta, question: _Question, cells: Array) -> Confidence:
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
    return _from_limits(estimates, z, rope, _is_possible(cells, layout))


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
    return _from_limits(estimates, z, rope, _is_possible(cells, layout))


def _quantile(reach: Confidence, cells: Array, layout: Layout) -> Array | float:
    return reach.quantile(effective_number(cells) if layout.clustered else cells.sum((-2, -1)))


def _from_limits(
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
