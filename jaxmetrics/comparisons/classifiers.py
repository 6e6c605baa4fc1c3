"""Comparison of two classifiers: the metric of A, the metric of B and their difference."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_counts,
    as_float,
    check_cells,
    check_integer,
)
from jaxmetrics._numerics.arithmetic import divide, rounding, safe_sqrt
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, is_jax, is_known, special, xp
from jaxmetrics._sums.counting import Axis
from jaxmetrics._text.printing import Printed
from jaxmetrics._text.wording import CONFIDENCE, probability
from jaxmetrics.betas.student import student_quantile, student_tails
from jaxmetrics.clusters import as_clusters, check_size_of_tables, numbered_clusters
from jaxmetrics.counts import class_axes, named_classes, paired_confusion_matrix
from jaxmetrics.estimates import Estimate, Metric, with_level
from jaxmetrics.intervals.estimation import Confidence, Question, answer, question_of, reach_of
from jaxmetrics.intervals.functionals import Functional
from jaxmetrics.intervals.methods import IntervalMethod, Likelihood, check_method
from jaxmetrics.intervals.quantiles import mean_of_finite
from jaxmetrics.intervals.samples import (
    Design,
    check_one_axis,
    distinct,
    in_two_strata,
    of_combinations,
    of_counts,
)
from jaxmetrics.metrics.differences import difference

__all__ = ["Comparison", "compare", "compare_predictions", "compare_unpaired"]

_OF_BOTH = ((1, 0), (0, 1), (1, -1))  # A, B and A - B


class _Comparison(NamedTuple):
    a: Estimate
    b: Estimate
    difference: Estimate
    probability_better: Array
    probability_equivalent: Array


class Comparison(Printed, _Comparison):
    """Result of a comparison: the metric of A, the metric of B, and the difference A - B.

    Attributes:
        a, b: the metric of A and of B, each an `Estimate`.
        difference: A - B, an `Estimate`.
        probability_better: the confidence that A is better: the one-sided confidence level at which
            the metric of A is greater than the metric of B, which is one minus a one-sided p-value.
            Only for the method `Posterior` is it a probability that A is better. See `compare`.
        probability_equivalent: the confidence that the difference lies between `-rope` and `rope`,
            computed in the same way. `rope` is an argument of the function that compared A and B.

    A `Comparison` prints like an `Estimate` and has the same methods `to_dict` and `to_frame`.

    >>> import jaxmetrics as jm
    >>> jm.compare_unpaired(jm.accuracy, [[90, 10], [5, 95]], [[80, 20], [9, 91]], rope=0.02)
    A 0.925 [0.881, 0.956], B 0.855 [0.800, 0.899], A - B 0.070 [0.007, 0.134],
    confidence A > B 0.986, confidence equivalent 0.056
    """

    __slots__ = ()
    _plural = "comparisons"

    def _cells(self, spec: str) -> dict[str, str]:
        cells = {"A": self.a, "B": self.b, "A - B": self.difference}
        shares: dict[str, Any] = {CONFIDENCE: self.probability_better}
        if self.probability_equivalent:
            shares["confidence equivalent"] = self.probability_equivalent
        return {title: format(part, spec) for title, part in cells.items()} | {
            title: probability(x) for title, x in shares.items()
        }


@on_host_if_small
def compare(
    metric: Metric,
    paired: ArrayLike,
    *,
    method: IntervalMethod = Likelihood(),  # noqa: B008  # it is frozen
    level: float = 0.95,
    rope: ArrayLike = 0.0,
    squares: ArrayLike | None = None,
    cluster_axis: int | None = None,
) -> Comparison:
    """Compare two classifiers on the same examples: estimate a metric of A, of B, and of A - B.

    Args:
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
        paired: counts `(..., K, K, K)`, computed by `paired_confusion_matrix`. For hundreds of
            classes, use `compare_predictions`, which needs less memory.
        method: an interval method, such as `Likelihood()`, `Delta()` or `Bootstrap(key)`.
        level: the confidence level.
        rope: the largest difference that does not matter to you, a number >= 0. The range from
            -rope to rope is the region of practical equivalence.
        squares: if examples have weights, the sums of their squares, of the same shape as `paired`:
            `paired_confusion_matrix(..., sample_weight=w**2)`; see `interval`.
        cluster_axis: the axis of clusters (groups of correlated examples): -4 for shape
            `(..., C, K, K, K)`.

    Returns:
        `Comparison`, or a dict or tuple of them, like the result of `metric`. Its
        `probability_better` is the one-sided confidence level at which A is better. For
        `Likelihood` and `Delta`, it comes from a two-piece normal distribution around the
        difference, whose two halves are fitted to the two ends of the interval. For `Bootstrap`, it
        is the share of replicates (random resamples of the examples) in which A is better; equal
        values count half. For `Posterior`, it is a posterior probability.

    Raises:
        ValueError: if `paired` is not of shape `(..., K, K, K)`, if counts are negative, or
            fractional without `squares` or clusters, if `rope` is below 0, if `level` lies outside
            of (0, 1), or if there are clusters and the method is `Posterior`.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a = [0, 0, 1, 1, 1, 0] * 20, [0, 0, 1, 1, 1, 1] * 20
    >>> y_pred_b = [0, 1, 1, 1, 0, 1] * 20
    >>> paired = jm.paired_confusion_matrix(y_true, y_pred_a, y_pred_b, num_classes=2)
    >>> comparison = compare(jm.accuracy, paired)
    >>> comparison.difference, comparison.probability_better > 0.99
    (0.333 [0.248, 0.422], np.True_)
    """
    check_method(method)
    check = partial(method.check, name="paired")
    question = question_of(
        difference(metric), paired, check, squares=squares, cluster_axis=cluster_axis
    )
    return _compared(question, method, level, rope)


@on_host_if_small
def compare_predictions(
    metric: Metric,
    y_true: ArrayLike,
    y_pred_a: ArrayLike,
    y_pred_b: ArrayLike,
    *,
    num_classes: int | None = None,
    labels: Sequence[Hashable] | None = None,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    method: IntervalMethod = Likelihood(),  # noqa: B008  # it is frozen
    level: float = 0.95,
    rope: ArrayLike = 0.0,
) -> Comparison:
    """Compare two classifiers on the same examples as `compare` does, but from labels.

    Time and memory grow with the number of triples (true class, prediction of A, prediction of B)
    that occur, not with K^3.

    Args:
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
        y_true, y_pred_a, y_pred_b: `(n,)`, class ids, strings, or members of `labels`. Examples
            with a negative class id in `y_true` are ignored. A prediction that is not the id of a
            class raises an error in a NumPy array. In a JAX array, the example is ignored.
        num_classes: number of classes K. The default for NumPy arrays is the largest class id + 1.
        labels: list of the K classes in the order of their ids. It cannot be used with JAX arrays.
            The default for strings is all strings that occur, sorted.
        where: bool, `(n,)`. Examples for which `where` is False are ignored.
        clusters: `(n,)`, ids of clusters, such as patients. Examples with the same id may be
            correlated. There can be at most 2^27 / K^3 clusters.
        method: an interval method, such as `Likelihood()` or `Bootstrap(key)`.
        level: the confidence level.
        rope: the largest difference that does not matter to you, a number >= 0. The range from
            -rope to rope is the region of practical equivalence.

    Returns:
        `Comparison`, or a dict or tuple of them, like the result of `metric`.

    Raises:
        TypeError, ValueError: if labels or cluster ids are invalid, if `rope` is below 0, if
            `level` lies outside of (0, 1), or if the method is `Posterior`, which needs `compare`.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a = [0, 0, 1, 1, 1, 0] * 20, [0, 0, 1, 1, 1, 1] * 20
    >>> y_pred_b = [0, 1, 1, 1, 0, 1] * 20
    >>> compare_predictions(jm.accuracy, y_true, y_pred_a, y_pred_b).difference
    0.333 [0.248, 0.422]
    """
    check_order(y_true=y_true, y_pred_a=y_pred_a, y_pred_b=y_pred_b, where=where, clusters=clusters)
    check_method(method)
    named: dict[str, Any] = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    if labels is None and num_classes is None:
        metric, labels = named_classes(metric, named)
    axes = class_axes(named, num_classes, labels, where)
    k = _number_of_classes(axes)
    named = {name: values for name, values, _ in axes}
    true, a, b = named.values()
    if clusters is not None:
        cubes = cubes_of_clusters(true, a, b, clusters, k, where=where)
        return compare(metric, cubes, method=method, rope=rope, level=level, cluster_axis=-4)
    if method.most_kinds == math.inf:
        raise ValueError(
            f"The method {method.name} needs a table of paired counts, not labels. Call"
            " compare(metric, paired_confusion_matrix(y_true, y_pred_a, y_pred_b), method=...)."
        )
    check_one_axis(named, where)
    if k**3 <= method.most_kinds and isinstance(method, Likelihood):
        cube = paired_confusion_matrix(true, a, b, num_classes=k, where=where)
        return compare(metric, cube, method=method, rope=rope, level=level)
    tables, listed = distinct(named, k, where)
    design = Design(of_combinations, (("num_classes", k),))
    return _compared(Question.of(metric, tables, design, (k, k), listed), method, level, rope)


def _number_of_classes(axes: Sequence[Axis]) -> int:
    """Return the number of classes, by default one more than the largest class id."""
    for name, values, size in axes:
        if size is None and is_jax(values):
            raise ValueError(f"num_classes is required if {name} is a JAX array.")
    ids = [as_array(values, name) for name, values, _ in axes]
    for x, (name, *_) in zip(ids, axes, strict=True):
        check_integer(x, name)
    sizes = [size for *_, size in axes if size is not None]
    k = sizes[0] if sizes else 1 + max(int(x.max(initial=0)) for x in ids)
    check_cells((k, k), "num_classes")
    return k


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
    advice = (
        "Merge clusters or classes, or use leaderboard, which has only 2 K^2 cells per cluster."
    )
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


@on_host_if_small
def compare_unpaired(
    metric: Metric,
    counts_a: ArrayLike,
    counts_b: ArrayLike,
    *,
    method: IntervalMethod = Likelihood(),  # noqa: B008  # it is frozen
    level: float = 0.95,
    rope: ArrayLike = 0.0,
    cluster_axis: int | None = None,
) -> Comparison:
    """Compare a metric of two classifiers on two independent test sets.

    If both classifiers were evaluated on the same examples, use `compare`. It has more statistical
    power than this function, because it uses the pairs of predictions.

    Args:
        metric: a function of a `(K, K)` matrix that returns an array, or arrays in a dict or tuple.
        counts_a, counts_b: `(..., K, K)`, the confusion matrices of A and of B. Both arrays have
            the same shape, except for the number of clusters.
        method: an interval method, such as `Likelihood()` or `Bootstrap(key)`.
        level: the confidence level.
        rope: the largest difference that does not matter to you, a number >= 0. The range from
            -rope to rope is the region of practical equivalence.
        cluster_axis: the axis of clusters (groups of correlated examples): -3 for shape
            `(..., C, K, K)`.

    Returns:
        `Comparison`, or a dict or tuple of them, like the result of `metric`.

    Raises:
        ValueError: if `counts_a` and `counts_b` have different shapes `(..., K, K)`, if counts are
            negative, or fractional without clusters, if `rope` is below 0, if `level` lies outside
            of (0, 1), or if there are clusters and the method is `Posterior`.

    >>> import jaxmetrics as jm
    >>> apart = compare_unpaired(jm.accuracy, [[90, 10], [5, 95]], [[80, 20], [9, 91]])
    >>> apart.difference
    0.070 [0.007, 0.134]
    """
    check_method(method)
    is_clustered = cluster_axis is not None
    check = partial(method.check, is_clustered=is_clustered)
    a = check(as_counts(counts_a, "counts_a"), "counts_a")
    b = check(as_counts(counts_b, "counts_b"), "counts_b")
    if cluster_axis is not None:
        a, b = (as_clusters(x, cluster_axis) for x in (a, b))
    of_a, of_b = (np.delete(x.shape, -3) if is_clustered else x.shape for x in (a, b))
    if tuple(of_a) != tuple(of_b):
        raise ValueError(
            f"counts_a and counts_b must have the same shape (..., K, K), got {a.shape} and"
            f" {b.shape}."
        )
    k = a.shape[-1]
    a, b = (x.reshape((*x.shape[:-2], k * k)) for x in (a, b))
    both = in_two_strata(a, b, is_clustered=is_clustered)
    options = (("num_tables", 2), ("are_apart", True))
    design = Design(of_counts, options, is_clustered=is_clustered)
    found = _compared(Question.of(metric, both, design, (k, k)), method, level, rope)
    # The two test sets have different numbers of examples.
    return trees.map(
        lambda x: replace(x, num_examples=None) if isinstance(x, Estimate) else x,
        found,
        is_leaf=lambda x: isinstance(x, Estimate),
    )


def _compared(
    question: Question, method: IntervalMethod, level: float, rope: ArrayLike
) -> Comparison:
    question = question._replace(design=question.design._replace(contrasts=_OF_BOTH))
    reach = reach_of(method, question, level)
    found = answer(question, method, reach, check_rope(rope), summary=_comparison)
    return with_level(found, level, method.name)


def _comparison(
    found: Estimate, samples: Array | None, metric: Functional, reach: Confidence, rope: Array
) -> Comparison:
    """Return the comparison of V values from estimates `(3 V,)` of A, B and A - B."""
    a, b, d = (trees.map(lambda x, i=i: xp.split(x, 3)[i], found) for i in range(3))
    # A value without an interval, such as a precision without predictions, is a convention.
    is_convention = xp.isnan(a.low) | xp.isnan(b.low)
    low, high = (xp.where(is_convention, xp.nan, x) for x in (d.low, d.high))
    d = replace(d, low=low, high=high)
    if samples is None:
        return by_halves(a, b, d, reach.quantile(metric.sample.number), rope)
    of_a, of_b, of_d = xp.split(samples, 3, -1)
    known = xp.isfinite(of_d)
    above = xp.where(known, (of_d > 0) + (of_d == 0) / 2, xp.nan)
    alike = xp.where(known, xp.abs(of_d) <= rope + rounding(of_a, of_b), xp.nan)
    return Comparison(a, b, d, mean_of_finite(above), mean_of_finite(alike))


@compiled
def by_halves(
    a: Estimate,
    b: Estimate,
    d: Estimate,
    z: Array | float,
    rope: Array | float,
    freedom: Array | None = None,
) -> Comparison:
    """Compare by a two-piece normal distribution fitted to the interval of the difference d.

    The ends of the interval are z standard deviations from d. If degrees of freedom are given,
    Student's t distribution replaces the normal distribution.
    """
    better = 1 - _below(xp.zeros_like(d.value), d, z, freedom)
    within = _below(rope, d, z, freedom) - _below(-rope, d, z, freedom)
    equivalent = xp.where(d.low == d.high, xp.abs(d.value) <= rope, within)
    return Comparison(a, b, d, better, equivalent)


def _below(limit: Array | float, d: Estimate, z: Array | float, freedom: Array | None) -> Array:
    """Return P(X <= limit) for the distribution that is fitted to the interval of d.

    For an interval of width 0, the probability is 0 or 1, or 1/2 if the limit equals the value.
    """
    quantile = z if freedom is None else student_quantile(z, freedom)
    error = xp.where(limit < d.value, d.value - d.low, d.high - d.value) / quantile
    certain = xp.where(d.value < limit, 1, xp.where(d.value > limit, 0, 0.5))
    distance = (limit - d.value) / xp.where(error > 0, error, 1)
    if freedom is None:
        share = special.ndtr(distance)
    else:
        tail = student_tails(distance, freedom) / 2
        share = xp.where(distance < 0, tail, 1 - tail)
    share = xp.where(error > 0, share, certain)
    return xp.where(xp.isnan(d.value) | xp.isnan(error), xp.nan, share)


def check_rope(rope: ArrayLike) -> Array:
    """Return the rope, the largest difference that does not matter, as an array after a check."""
    width = as_float(rope, "rope")
    if width.shape != ():
        raise ValueError(f"rope must be one number, got shape {width.shape}.")
    if is_known(width) and not bool((width >= 0).all()):
        raise ValueError(
            "rope must not be negative, because it is the largest difference that does not matter"
            f" to you, got {rope!r}."
        )
    return width


def mover(of_a: Estimate, of_b: Estimate, gap: Estimate) -> Estimate:
    """Compute the interval of A - B from the intervals of A and B and their correlation (MOVER).

    `gap` is the difference with its standard error. Source: Zou and Donner (2008), Statistics in
    Medicine 27.
    """
    error_a, error_b = of_a.standard_error, of_b.standard_error
    covariance = (error_a**2 + error_b**2 - gap.standard_error**2) / 2
    correlation = divide(covariance, error_a * error_b)

    def reach(of_a: Array, of_b: Array) -> Array:
        return safe_sqrt(xp.maximum(of_a**2 + of_b**2 - 2 * correlation * of_a * of_b, 0))

    low = gap.value - reach(of_a.value - of_a.low, of_b.high - of_b.value)
    high = gap.value + reach(of_a.high - of_a.value, of_b.value - of_b.low)
    return replace(gap, low=low, high=high)
