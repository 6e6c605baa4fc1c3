"""The difference of a metric between two classifiers, with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import jax
import numpy as np

from jaxmetrics._keys import KeyLike
from jaxmetrics._namespaces import Array, is_known, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_counts,
    as_float,
    check_level,
    check_size,
)
from jaxmetrics.comparisons._by_method import Question, compare_cells, from_limits
from jaxmetrics.comparisons._cells import (
    Layout,
    as_cells,
    cells_of_clusters,
    distinct,
    in_rectangle,
    pairs_of_combinations,
)
from jaxmetrics.counts import paired_confusion_matrix
from jaxmetrics.estimates import Estimate, Metric, normal_quantile
from jaxmetrics.intervals.clusters import (
    check_size_of_tables,
    numbered_clusters,
)
from jaxmetrics.intervals.methods import (
    Bootstrap,
    Delta,
    IntervalMethod,
    Likelihood,
    Posterior,
    as_method,
)
from jaxmetrics.intervals.tables import (
    as_floats,
    check_num_samples,
    frequencies,
    numbers_of_examples,
    where_answered,
)

__all__ = ["compare", "compare_predictions", "compare_unpaired"]

_MOST_CELLS = 2**18  # of pairs, 64 classes, for which errors that were not seen matter
_FEW_CELLS = 2**12  # beyond, it is faster to look for those that hold examples


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
    question = Question(floats, check_rope(rope), check_level(level), layout)
    cells = where_answered(floats, cells, np.ones((k, k)))
    if _takes_all_pairs(way, k) or layout.clustered or not is_known(cells) or cells.size == 0:
        return compare_cells(way, question, cells)
    return _compare_used_cells(way, question, cells)


def _compare_used_cells(way: IntervalMethod, question: Question, cells: Array) -> Any:
    """Compare by the cells `(..., K, K K)` that hold examples, few of those of many classes."""
    k = cells.shape[-2]
    results = []
    for matrix in cells.reshape(-1, k, k * k):  # one by one, so that each draws the same as alone
        true, pair = np.nonzero(np.asarray(matrix))
        counts, labels = in_rectangle(matrix[true, pair], np.stack([true, pair // k, pair % k]), k)
        results.append(compare_cells(way, question, counts, labels))
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
    question = Question(floats, check_rope(rope), check_level(level), Layout(k))
    counts, labels = distinct(
        {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}, k, where
    )
    counts = where_answered(floats, counts, np.ones((k, k)))
    if isinstance(way, Likelihood) and _takes_all_pairs(way, k):
        return compare_cells(way, question, pairs_of_combinations(counts, labels, k))
    return compare_cells(way, question, counts, labels)


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
    return compare_cells(way, Question(floats, width, check_level(level), layout), cells)


def _of_estimates(of_a: Any, of_b: Any, level: float, rope: Array) -> Any:
    """Compare by independent estimates of A and of B."""

    def of_difference(a: Estimate, b: Estimate) -> Estimate:
        d = a.value - b.value
        low = d - xp.hypot(a.value - a.low, b.high - b.value)
        high = d + xp.hypot(a.high - a.value, b.value - b.low)
        error = xp.hypot(a.standard_error, b.standard_error)
        return Estimate(d, low, high, error, a.num_undefined + b.num_undefined)

    d = jax.tree.map(of_difference, of_a, of_b, is_leaf=lambda x: isinstance(x, Estimate))
    return from_limits((of_a, of_b, d), normal_quantile(level), rope, xp.asarray(True))


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
