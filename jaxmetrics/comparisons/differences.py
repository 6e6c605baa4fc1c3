"""The difference of a metric between two classifiers, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place, split
from jaxmetrics._namespaces import Array, is_known, special, xp
from jaxmetrics._validation import ArrayLike, as_counts, as_float, check_option, check_size
from jaxmetrics.betas.parameters import as_prior
from jaxmetrics.comparisons._cells import (
    Layout,
    as_cells,
    difference,
    distinct,
    in_rectangle,
    pairs_of_combinations,
    ulp,
)
from jaxmetrics.estimates import Estimate, Metric, normal_estimate, normal_quantile
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.acceleration import Influence, influence_for
from jaxmetrics.intervals.delta import value_and_error
from jaxmetrics.intervals.likelihoods import likelihood_estimate, likelihood_estimates
from jaxmetrics.intervals.quantiles import bootstrap_estimates, mean_of_finite, posterior_estimates
from jaxmetrics.intervals.replicates import map_tables
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

_MOST_CELLS = 2**18  # of pairs, 64 classes, that the likelihood takes with those not seen

_CHECKS = {
    "likelihood": partial(numbers_of_examples, most=math.inf),
    "bootstrap": numbers_of_examples,
    "posterior": frequencies,
    "delta": frequencies,
}

__all__ = ["Comparison", "compare", "compare_predictions", "compare_unpaired"]


class Comparison(NamedTuple):
    """Hold a metric of A, of B and their difference A - B."""

    a: Estimate
    b: Estimate
    difference: Estimate
    probability_better: Array  # that A is above B
    probability_equivalent: Array  # that the two differ by no more than `rope`


def compare(
    key: KeyLike,
    metric: Metric,
    paired: ArrayLike,
    *,
    method: Literal["likelihood", "bootstrap", "posterior", "delta"] = "likelihood",
    rope: ArrayLike = 0.0,
    prior: ArrayLike = 1.0,
    num_samples: int = 2000,
    level: float = 0.95,
) -> Any:
    """Estimate the difference of a metric between two classifiers on the same examples.

    - `"likelihood"`: the least and the greatest difference, over probabilities of the pairs that
      the counts do not refute; see `likelihood_interval`. Nothing is drawn.
    - `"bootstrap"`: test sets drawn from this one, with their pairs; BCa intervals.
    - `"posterior"`: per class a Dirichlet posterior on the pairs of predictions. Its prior is the
      product of the priors that `posterior` gives A and B, so that each of them alone has that
      posterior; it is worth 2 examples per class, however many pairs there are.
    - `"delta"`: normal, from the derivatives; nothing is drawn.

    Args:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        metric: a function of one `(K, K)` matrix that returns an array or a pytree of arrays.
        paired: `(..., K, K, K)`, from `paired_confusion_matrix`; for hundreds of classes see
            `compare_predictions`.
        rope: the region of practical equivalence: differences up to this size, in the metric's
            units, do not matter.
        prior: of the posterior: alpha = beta, `(alpha, beta)` or `(K, 2)`.

    Returns:
        `Comparison`, or a pytree of them. `probability_better` is the share of the replicates in
        which A is above B, ties counting half: for the posterior a probability, for the others one
        minus a one-sided p-value, roughly. Where nothing is drawn, it is that of a distribution of
        two normal halves which has its quantiles at the ends of the interval.

    Raises:
        ValueError: a `paired` of another shape, negative or (likelihood, bootstrap) fractional
            counts, an unknown method, a rope below 0, num_samples < 2, a level outside of (0, 1).

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a = [0, 0, 1, 1, 1, 0] * 20, [0, 0, 1, 1, 1, 1] * 20
    >>> y_pred_b = [0, 1, 1, 1, 0, 1] * 20
    >>> paired = jm.paired_confusion_matrix(y_true, y_pred_a, y_pred_b, num_classes=2)
    >>> comparison = compare(0, jm.accuracy, paired)
    >>> comparison.difference.value.round(3), comparison.probability_better > 0.99
    (np.float64(0.333), np.True_)
    """
    check_option(method, "method", ("likelihood", "bootstrap", "posterior", "delta"))
    options = _options(metric, rope, num_samples, level)
    cells = as_cells(paired, _CHECKS[method])
    k = cells.shape[-2]
    cells = where_answered(options["metric"], cells, np.ones((k, k)))
    if method == "posterior":
        result = _by_posterior(*place(key, cells, as_prior(prior, k)), **options)
        return check_finite(result, num_samples)
    placed_key, cells = place(key, cells)
    dense = _MOST_CELLS if method == "likelihood" else 4096
    if not is_known(cells) or k**3 <= dense or cells.size == 0:
        return _compare(placed_key, cells, None, method=method, layout=Layout(k), options=options)
    return _compare_used_cells(placed_key, cells, method, options)


def _compare_used_cells(key: Key, cells: Array, method: str, options: dict[str, Any]) -> Any:
    """Compare by the cells `(..., K, K K)` that hold examples, few of those of many classes."""
    k = cells.shape[-2]
    results = []
    for matrix in cells.reshape(-1, k, k * k):  # one by one, so that each draws the same as alone
        true, pair = np.nonzero(np.asarray(matrix))
        counts, labels = in_rectangle(matrix[true, pair], np.stack([true, pair // k, pair % k]), k)
        results.append(
            _compare(key, counts, labels, method=method, layout=Layout(k), options=options)
        )
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
    method: Literal["likelihood", "bootstrap", "delta"] = "likelihood",
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

    Returns:
        `Comparison`, or a pytree of them; other arguments and errors as `compare`.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a = [0, 0, 1, 1, 1, 0] * 20, [0, 0, 1, 1, 1, 1] * 20
    >>> y_pred_b = [0, 1, 1, 1, 0, 1] * 20
    >>> comparison = compare_predictions(0, jm.accuracy, y_true, y_pred_a, y_pred_b, num_classes=2)
    >>> comparison.difference.value.round(3)
    np.float64(0.333)
    """
    check_option(method, "method", ("likelihood", "bootstrap", "delta"))
    options = _options(metric, rope, num_samples, level)
    k = check_size(num_classes, "num_classes")
    counts, labels = distinct(
        {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}, k, where
    )
    placed_key, counts = place(key, where_answered(options["metric"], counts, np.ones((k, k))))
    if method == "likelihood" and k**3 <= _MOST_CELLS:  # pairs that were not seen take part
        cells = pairs_of_combinations(counts, labels, k)
        return _compare(placed_key, cells, None, method=method, layout=Layout(k), options=options)
    return _compare(placed_key, counts, labels, method=method, layout=Layout(k), options=options)


def compare_unpaired(
    key: KeyLike,
    metric: Metric,
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    *,
    method: Literal["likelihood", "bootstrap", "posterior", "delta"] = "likelihood",
    rope: ArrayLike = 0.0,
    prior: ArrayLike = 1.0,
    num_samples: int = 2000,
    level: float = 0.95,
) -> Any:
    """Estimate the difference of a metric between classifiers on different, independent examples.

    For the same examples use `compare`: their pairs are lost here, and with them most of the power.

    Args:
        counts_a, counts_b: `(..., K, K)`, of one shape.

    Returns:
        `Comparison`, or a pytree of them; other arguments, methods and errors as `compare`.

    >>> import jaxmetrics as jm
    >>> apart = compare_unpaired(0, jm.accuracy, [[90, 10], [5, 95]], [[80, 20], [9, 91]])
    >>> apart.difference.value.round(3)
    np.float64(0.07)
    """
    check_option(method, "method", ("likelihood", "bootstrap", "posterior", "delta"))
    options = _options(metric, rope, num_samples, level)
    a, b = as_counts(counts_a), as_counts(counts_b)
    if a.shape != b.shape:
        raise ValueError(
            f"counts_a and counts_b must have one shape (..., K, K), got {a.shape} and {b.shape}."
        )
    k = a.shape[-1]
    a, b = _CHECKS[method](xp.stack([a, b]))
    a = where_answered(options["metric"], a, np.ones((k, k)))
    b = where_answered(options["metric"], b, np.ones((k, k)))
    placed_key, a, b = place(key, a, b)
    if method == "posterior":
        result = _by_posterior_apart(placed_key, a, b, as_prior(prior, k), **options)
        return check_finite(result, num_samples)
    cells = xp.stack([a.reshape((*a.shape[:-2], -1)), b.reshape((*b.shape[:-2], -1))], -2)
    return _compare(
        placed_key, cells, None, method=method, layout=Layout(k, paired=False), options=options
    )


def _options(metric: Metric, rope: ArrayLike, num_samples: int, level: float) -> dict[str, Any]:
    normal_quantile(level)
    return {
        "metric": as_floats(metric),
        "rope": check_rope(rope),
        "size": check_num_samples(num_samples),
        "level": level,
    }


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


def _compare(
    key: Key,
    cells: Array,
    labels: Array | None,
    *,
    method: str,
    layout: Layout,
    options: dict[str, Any],
) -> Any:
    if method == "bootstrap":
        result = _by_bootstrap(
            key, cells, labels, layout=layout, influence=influence_for(cells), **options
        )
        return check_finite(result, options["size"])
    if method == "likelihood":
        return _by_likelihood(cells, labels, layout=layout, **options)
    return _by_delta(cells, labels, layout=layout, **options)


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
    influence: Influence,
) -> Any:
    estimates, samples = bootstrap_estimates(
        key,
        layout.evaluator(metric, labels),
        cells,
        numbers=_numbers(cells, layout),
        size=size,
        level=level,
        method="bca",
        stratified=not layout.paired,
        influence=influence,
    )
    return _from_samples(estimates, samples, rope, is_possible(cells) & _is_judged(cells, layout))


def _numbers(cells: Array, layout: Layout) -> int:
    return math.prod(cells.shape[-2:]) + 2 * layout.num_classes**2


def _is_judged(cells: Array, layout: Layout) -> Array:
    """Return whether there are examples; if not paired, whether both A and B have some."""
    return cells.sum((-2, -1)) > 0 if layout.paired else (cells.sum(-1) > 0).all(-1)


@compiled
def _by_delta(
    cells: Array,
    labels: Array | None,
    rope: Array,
    *,
    metric: Metric,
    layout: Layout,
    size: int,
    level: float,
) -> Any:
    z = normal_quantile(level)
    function = partial(
        value_and_error,
        layout.evaluator(metric, labels),
        stratified=not layout.paired,
        numbers=_numbers(cells, layout),
    )
    values, errors = map_tables(function, cells, _numbers(cells, layout))
    estimates = jax.tree.map(partial(normal_estimate, z=z), values, errors)
    return _from_limits(estimates, z, rope, is_possible(cells) & _is_judged(cells, layout))


@compiled
def _by_likelihood(
    cells: Array,
    labels: Array | None,
    rope: Array,
    *,
    metric: Metric,
    layout: Layout,
    size: int,
    level: float,
) -> Any:
    z = normal_quantile(level)

    def difference_of(cells: Array) -> Any:
        if cells.ndim != 2:
            raise ValueError(f"one table at a time, got {cells.shape}.")
        return likelihood_estimates(metric, layout.units(cells, labels), z**2 / 2)

    both = layout.matrices(labels)(cells)
    of_each = partial(likelihood_estimate, metric, radius=z**2 / 2, stratified=False)
    alone = map_tables(of_each, both, layout.num_classes**2)
    axis = both.ndim - 3
    of_a, of_b = (jax.tree.map(lambda x, i=i: xp.take(x, i, axis), alone) for i in (0, 1))
    estimates = of_a, of_b, map_tables(difference_of, cells, _numbers(cells, layout))
    return _from_limits(estimates, z, rope, is_possible(cells) & _is_judged(cells, layout))


def _from_limits(estimates: tuple[Any, Any, Any], z: float, rope: Array, possible: Array) -> Any:
    """Add how probable it is that A is above B, and that both are equivalent, where the difference
    is distributed as two halves of normals that have their quantiles at the ends of its interval.
    """

    def below(limit: Array, d: Estimate) -> Array:
        reach = xp.where(limit < d.value, d.value - d.low, d.high - d.value)
        return _normal_cdf(limit, d.value, reach / z)

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
