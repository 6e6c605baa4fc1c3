"""Thresholds that maximise a metric, or that keep a rate with confidence.

**Intervals of a threshold that was chosen** (`best_threshold` with `level`). The threshold is
chosen again in 1000 Poisson bootstrap replicates. Let t be the threshold of a replicate. The
optimism is the mean of the metric of the replicate minus the metric of the examples, both at t.
Source: Efron (1983), JASA 78. The interval of the metric is the interval that `interval` computes
at the chosen threshold, but its lower end is reduced by the optimism. It is an interval for the
metric of the population at the chosen threshold. So is the interval of the constraint. The interval
of the threshold is for the best threshold of the population. Often several thresholds are equally
good. So the interval reaches from a quantile of the lowest to a quantile of the highest threshold
that is best in a replicate. If no threshold of a replicate satisfies the constraint, these are
infinite. With clusters, each cluster of a replicate gets a Poisson number, and `interval` computes
the intervals of clusters.

**Thresholds that keep a rate** (`safe_threshold`). A rate is the quotient s / (s + f) of successes
s and trials s + f. At each threshold, the hypothesis that the rate of the population is below
`least` is tested by an exact binomial test, with the p-value `P(X >= s)` for
`X ~ Binomial(s + f, least)`. The thresholds are tested in a fixed order, in which failures appear
one after another: upwards for recall, and downwards for precision and specificity. If a test is not
passed, all further hypotheses are kept. Source: fixed sequence testing in Angelopoulos, Bates,
Candès, Jordan and Lei (2021), Learn then Test, arXiv:2110.01052. Fewer than
`m = log(1 - level) / log(least)` trials cannot pass. So if the number of trials grows from 0, as
for precision, there are J walks, which start where it reaches 2 m, 4 m, 8 m, ... Their tests have
the level `(1 - level) / J`. The threshold of the walk that goes farthest is returned.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.keys import Key, KeyLike, place
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_float,
    as_number,
    check_function,
    check_level,
    refuse_where,
    require,
)
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, lax, on_device, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._sums.cell_sums import tables
from jaxmetrics._text.printing import Printed
from jaxmetrics._text.wording import percent, shown
from jaxmetrics.betas.distributions import betainc, betaincinv
from jaxmetrics.clusters import numbered_clusters, sums_by_cluster
from jaxmetrics.estimates import Estimate, computed_estimate, with_level
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.checks import name_of
from jaxmetrics.intervals.methods import interval
from jaxmetrics.intervals.quantiles import mean_of_finite
from jaxmetrics.ranking.curves import at_thresholds, sorted_for
from jaxmetrics.ranking.ranks import Ranked, points, rank, restore

__all__ = ["ConstrainedPoint", "OperatingPoint", "best_threshold", "safe_threshold"]

# An arbitrary confusion matrix, in which all rates of two cells differ.
_COUNTS = np.array([[1009.0, 2003.0], [3001.0, 4999.0]])
_SELECTIONS = 1000  # number of replicates in which a threshold is chosen


class OperatingPoint(Printed, namedtuple("_OperatingPoint", "value threshold")):
    """Operating point of a classifier, as returned by `best_threshold` and `safe_threshold`.

    Attributes:
        value: value of the metric at the threshold, of shape `(...)`, or an `Estimate` of it.
        threshold: class 1 is predicted if the score is at least this number; of shape `(...)`.
    """

    __slots__ = ()
    _plural = "operating points"


class ConstrainedPoint(Printed, namedtuple("_ConstrainedPoint", "value threshold constraint")):
    """Operating point of a classifier, as returned by `best_threshold` with a constraint and a
    level.

    Attributes:
        value: an `Estimate` of the metric at the threshold.
        threshold: an `Estimate` of the best threshold.
        constraint: an `Estimate` of the constrained metric at the threshold.
    """

    __slots__ = ()
    _plural = "operating points"


def best_threshold(
    metric: Callable[[Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    subject_to: tuple[Callable[[Array], Any], ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    level: float | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    key: KeyLike = 0,
) -> Any:
    """Find the threshold that maximises a metric of a confusion matrix.

    For example, `best_threshold(recall, y_true, y_score, subject_to=(precision, 0.9))` is the
    greatest recall among all thresholds with a precision of at least 0.9. The metric at the chosen
    threshold is usually smaller on new examples, and the constraint may not hold there. `interval`
    treats the threshold as known: on the examples from which it was chosen, it lies too high. So
    evaluate it on held-out examples or pass `level`. `safe_threshold` keeps a constraint.

    Args:
        metric: a function of a confusion matrix `(2, 2)` that returns one number, or one number per
            class. If it returns one per class, the value of class 1 is maximised.
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored.
        subject_to: a constraint `(metric, minimum)`. Only thresholds at which this metric is at
            least `minimum`, a number or an array that broadcasts to `(...)`, are considered.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.
        level: the confidence level of intervals that allow for the choice of the threshold (for the
            formulas see the top of the file `jaxmetrics/ranking/thresholds.py`); None for no
            intervals. It needs independent examples or `clusters`, and no `sample_weight`.
        clusters: cluster id of each example, `(..., n)`. Examples of a cluster may be correlated.
        key: a JAX key or an int seed for the bootstrap of these intervals.

    Returns:
        `OperatingPoint(value, threshold)`, both of shape `(...)`. If several thresholds are equally
        good, the highest is returned. Thresholds at which a metric is NaN are skipped. Value and
        threshold are NaN if no threshold is left. If the threshold is +inf, no example is predicted
        positive. With `level`, value and threshold are `Estimate`s of the metric in the population
        at the returned threshold, and of the best threshold of the population. Its interval misses
        a best threshold that is below or above nearly all scores. With a constraint, too, the
        result is `ConstrainedPoint(value, threshold, constraint)`.

    >>> import jaxmetrics as jm
    >>> y_true, y_score = [0, 1, 0, 1, 1], [0.1, 0.4, 0.5, 0.8, 0.9]
    >>> best_threshold(jm.f1, y_true, y_score)
    value 0.857, threshold 0.400
    >>> best_threshold(jm.recall, y_true, y_score, subject_to=(jm.specificity, 0.9))
    value 0.667, threshold 0.800
    >>> best_threshold(jm.f1, y_true * 20, y_score * 20, level=0.95)
    value 0.857 [0.772, 0.911], threshold 0.400 [0.100, 0.800]
    """
    named = {"sample_weight": sample_weight, "where": where, "clusters": clusters}
    check_order(y_true=y_true, y_score=y_score, **named)
    check_function(metric, "metric", "a metric, a function of counts, such as jaxmetrics.accuracy")
    metrics, minimum = [metric], np.float64(-np.inf)
    if subject_to is not None:
        if not isinstance(subject_to, tuple | list) or len(subject_to) != 2:
            raise TypeError(
                "subject_to must be a pair of a metric and the least value that this metric may"
                f" have, such as (jaxmetrics.precision, 0.9), got {shown(subject_to)}."
            )
        constraint, least = subject_to
        check_function(
            constraint,
            "subject_to[0]",
            "a metric, a function of counts, such as jaxmetrics.precision",
        )
        minimum = as_float(least, "subject_to[1]")
        metrics.append(constraint)

    def together(counts: Array) -> tuple[Any, ...]:
        return tuple(x(counts) for x in metrics)

    function, ranked = sorted_for(together, y_true, y_score, sample_weight, where)
    rows = _rows(function, ranked)
    batch = rows.shape[:-2]
    if minimum.ndim > len(batch):
        raise ValueError(
            "subject_to[1] must be a number, or an array that broadcasts with the batch axes"
            f" {batch}, got an array of shape {minimum.shape}."
        )
    message = "expected the least value of the metric."
    refuse_where(np.isnan, minimum, "subject_to[1]", message)
    point = _best_threshold(rows, minimum)
    if level is None:
        if clusters is not None:
            raise ValueError("clusters changes only intervals: pass level, such as 0.95, too.")
        return point
    if sample_weight is not None:
        raise ValueError("level and sample_weight cannot be used together: pass only one of them.")
    tail, placed_key = (1 - check_level(level)) / 2, place(key, ranked.score)[0]
    n, axis, size = rows.shape[-2] - 1, None, 0
    numbers = np.arange(n)
    if clusters is not None:
        axis, (numbers, size) = -3, numbered_clusters(clusters, (*batch, n))
    counts, optimism, ends = _chosen_again(
        placed_key, ranked, rows, numbers, function, minimum, tail, num_clusters=size
    )
    threshold = with_level(Estimate(point.threshold, *ends), level, "percentile")
    smallest = xp.where(xp.isnan(rows), xp.inf, rows).min(-2)  # is in the metric's range
    known, estimates = ~xp.isnan(point.threshold), []
    for i, estimate in enumerate(interval(function, counts, level=level, cluster_axis=axis)):
        if estimate.value.ndim > len(batch):
            estimate = trees.map(lambda x: x[..., 1], estimate)
        low = xp.minimum(estimate.low, smallest[..., i])
        low = xp.maximum(estimate.low - optimism[..., i], low)
        value, low, high = (
            xp.where(known, x, xp.nan) for x in (estimate.value, low, estimate.high)
        )
        estimates.append(replace(estimate, value=value, low=low, high=high))
    first, *constrained = estimates
    if constrained:
        return ConstrainedPoint(first, threshold, *constrained)
    return OperatingPoint(first, threshold)


def _rows(function: Callable[[Array], Any], ranked: Ranked) -> Array:
    """Return a row for each threshold, `(..., n + 1, V + 1)`: V metrics, then the threshold."""
    found, threshold = at_thresholds(function, ranked)
    names = "metric", "subject_to[0]"
    columns = [_of_class_1(*x, threshold) for x in zip(names, found, strict=False)]
    return xp.stack([*columns, threshold], -1)


def _of_class_1(name: str, values: Any, threshold: Array) -> Array:
    """Return one number per threshold; if the metric returns one per class, use the value of class
    1.
    """
    shape = getattr(values, "shape", None)
    if shape == (*threshold.shape, 2):
        return values[..., 1]
    if shape != threshold.shape:
        raise ValueError(
            f"{name} must return one number for each confusion matrix, or one number for each"
            " class. For the confusion matrices of all thresholds, it returned an array of shape"
            f" {trees.map(xp.shape, values)}, but the shape {threshold.shape} was expected."
        )
    return values


def _best(rows: Array, least: Array) -> tuple[Array, Array, Array]:
    """Return the indices of the highest and of the lowest threshold with the greatest value that
    satisfies the constraint, and whether there is one.
    """
    values, reached = rows[..., 0], rows[..., -2]
    allowed = ~xp.isnan(values) & (reached >= least[..., None])
    greatest = xp.where(allowed, values, -xp.inf).max(-1, keepdims=True)
    best = allowed & (values == greatest)
    last = values.shape[-1] - 1 - xp.argmax(best[..., ::-1], -1)
    return xp.argmax(best, -1), last, best.any(-1)


def _at(rows: Array, index: Array) -> Array:
    rows = xp.broadcast_to(rows, (*index.shape, *rows.shape[-2:]))
    return xp.take_along_axis(rows, index[..., None, None], -2)[..., 0, :]


@compiled
def _best_threshold(rows: Array, least: Array) -> OperatingPoint:
    first, _, exists = _best(rows, least)
    row = xp.where(exists[..., None], _at(rows, first), xp.nan)
    return OperatingPoint(row[..., 0], row[..., -1])


@compiled
def _chosen_again(
    key: Key,
    ranked: Ranked,
    rows: Array,
    numbers: Array,
    function: Callable[[Array], Any],
    least: Array,
    tail: float,
    *,
    num_clusters: int,
) -> tuple[Array, Array, tuple[Array, Array]]:
    """Choose the threshold in replicates, which draw the units (examples or clusters) `numbers`.

    Returns the counts at the threshold of the examples (for each cluster, if any), how much the
    lower ends of the metrics are reduced, and the ends of the interval of the threshold.
    """
    first, _, exists = _best(rows, least)

    def chosen(drawn: Array) -> Array:
        added = (1,) * (rows.ndim - 1 - numbers.ndim)
        weights = drawn[..., 0, numbers].reshape((*drawn.shape[:-2], *added, *numbers.shape))
        again = _rows(function, ranked.weighted(weights))
        first, last, exists = _best(again, least)
        beyond = xp.full_like(again[..., :1, :], -xp.inf)
        below = _at(xp.concatenate([again[..., 1:, :], beyond], -2), last)
        row = _at(again, first)
        gains = row[..., :-1] - _at(rows[..., :-1], first)
        # If no threshold satisfies the constraint, any may be the best one.
        unknown = xp.asarray([0] * gains.shape[-1] + [-xp.inf, xp.inf], rows.dtype)
        columns = xp.concatenate([gains, below[..., -1:], row[..., -1:]], -1)
        return xp.where(exists[..., None], columns, unknown)

    units = xp.ones_like(rows, shape=(1, num_clusters or numbers.size))
    samples = replicates.evaluate(
        replicates.poisson, chosen, key, units, size=_SELECTIONS, numbers=2 * rows.size
    )
    optimism = xp.maximum(mean_of_finite(samples[..., :-2]), 0)  # ratios may be infinite
    low = xp.quantile(samples[..., -2], tail, 0, method="lower")
    high = xp.quantile(samples[..., -1], 1 - tail, 0, method="higher")
    ends = xp.where(exists, xp.stack([low, high]), xp.nan)
    threshold = _at(rows, first)[..., -1:]
    predicted = (ranked.score >= threshold).astype(rows.dtype)
    truth = [restore(x, ranked.position) for x in (ranked.positive, ranked.negative)]
    cells = xp.stack([x * y for y in (predicted, 1 - predicted) for x in truth])
    sums = sums_by_cluster(cells, numbers, num_clusters) if num_clusters else cells.sum(-1)
    return tables(*sums), optimism, (ends[0], ends[1])


def safe_threshold(
    metric: Callable[[Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    least: float,
    level: float = 0.95,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """Find a threshold at which a rate, such as recall, is at least `least` with confidence.

    With probability `level`, a test set yields a threshold at which the rate of new examples is at
    least `least`. Each threshold is tested by an exact binomial test, in a fixed order, until one
    does not pass (Learn then Test, Angelopoulos et al. 2021). The last one that passed is returned:
    for recall the highest, for precision and specificity the lowest. The formulas are at the top of
    the file `jaxmetrics/ranking/thresholds.py`. For a classifier that abstains, pass which
    predictions are correct as `y_true`, and the confidence as `y_score`: the precision is then the
    accuracy of the answers.

    Args:
        metric: a rate that is the quotient s / (s + f) of two cells of a confusion matrix, such as
            `recall`, `precision`, `specificity` or `negative_predictive_value`. If it returns one
            number per class, the rate of class 1 is meant.
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored. The examples must be independent.
        least: the least value that the rate of new examples may have, between 0 and 1.
        level: the confidence level.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        `OperatingPoint(value, threshold)`. `value` is an `Estimate` of the rate with a one-sided
        interval, from Clopper and Pearson's lower limit, which is at least `least`, to 1. It has
        the level of the test, which is higher than `level` for precision. All numbers are NaN if no
        threshold passes, for example if there are fewer than 29 positives for a recall of 0.9, or
        fewer than 57 examples for a precision of 0.9. For NumPy arrays, a warning says how many
        examples are needed.

    Raises:
        TypeError, ValueError: if `metric` is not such a rate, if `least` or `level` is not in (0,
            1), or if labels or scores are invalid.

    >>> import jaxmetrics as jm
    >>> y_true, y_score = np.arange(400) % 2, np.arange(400) % 20 + 5 * (np.arange(400) % 2)
    >>> safe_threshold(jm.recall, y_true, y_score, least=0.8)
    value 0.900 [0.858, 1.000], threshold 8.000
    >>> safe_threshold(jm.precision, y_true, y_score, least=0.7)
    value 1.000 [0.926, 1.000], threshold 20.000
    """
    check_function(metric, "metric", "a rate, a function of counts, such as jaxmetrics.recall")
    least = as_number(least, "least", above=0)
    require(least < 1, "least", "be a number between 0 and 1", least)
    tail = 1 - check_level(level)
    value = _of_class_1("metric", np.asarray(metric(_COUNTS), float), np.zeros(()))
    cells = _COUNTS.ravel()
    is_rate = np.isclose(cells[:, None] / (cells[:, None] + cells), value, rtol=1e-5)
    if is_rate.sum() != 1:
        raise ValueError(
            "metric must be a rate that is the quotient s / (s + f) of two cells of a confusion"
            " matrix, such as recall = TP / (TP + FN) or precision = TP / (TP + FP)."
        )
    success, failure = (int(x) for x in np.argwhere(is_rate)[0])
    ranked = rank(y_true, y_score, where=where)
    point = _safe_threshold(ranked, least, tail, success=success, failure=failure)
    if not on_device(point) and (fails := np.isnan(point.threshold)).any():
        numbers, true_class = ranked.totals[::-1], success // 2
        is_fixed = failure // 2 == true_class  # the trials are the examples of a true class
        number, factor, kind = numbers[0] + numbers[1], 2, ""
        if is_fixed:
            number, factor, kind = numbers[true_class], 1, f" of class {true_class}"
        number = number[fails].min()
        needed = math.ceil(factor * math.log(tail) / math.log(least))
        reason = "There are too many mistakes at each threshold."
        if number < needed:
            reason = f"There are {number:g} examples{kind}, but at least {needed} are needed."
        warn(
            f"no threshold keeps {name_of(metric)} >= {least:g} with {percent(level)} confidence,"
            f" so the result is NaN. {reason}"
        )
    return point._replace(value=with_level(point.value, level, "clopper_pearson"))


@compiled
def _safe_threshold(ranked: Ranked, *limits: float, success: int, failure: int) -> OperatingPoint:
    tp, fp, threshold = points(ranked)
    least, tail = (xp.asarray(x, tp.dtype) for x in limits)
    cells = fp[..., -1:] - fp, fp, tp[..., -1:] - tp, tp
    walk = cells[success], cells[failure], threshold
    if failure in (0, 2):  # at the lowest threshold, no example is predicted negative
        walk = tuple(x[..., ::-1] for x in walk)
    s, f, _ = walk
    doublings = xp.floor(xp.log2(xp.maximum((s + f) * xp.log(least) / xp.log(tail), 1)))
    starts = xp.concatenate(
        [s[..., :1] + f[..., :1] > 0, doublings[..., 1:] > doublings[..., :-1]], -1
    )
    part = tail / xp.maximum(starts.sum(-1, keepdims=True), 1)
    passes = (s > 0) & (betainc(xp.maximum(s, 1), f + 1, least) <= part)
    place, axis = xp.broadcast_to(xp.arange(s.shape[-1]), s.shape), s.ndim - 1
    started, failed = (lax.cummax(xp.where(x, place, -1), axis) for x in (starts, ~passes))
    best = xp.where(passes & (started > failed), place, -1).max(-1, keepdims=True)
    s, f, threshold = (
        xp.where(best < 0, xp.nan, xp.take_along_axis(x, xp.maximum(best, 0), -1)) for x in walk
    )
    n = s + f
    low, high = betaincinv(s, f + 1, part), xp.where(xp.isnan(n), n, 1)
    numbers = s / n, low, high, xp.sqrt(s / n * (f / n) / n)
    value = computed_estimate(*(x[..., 0] for x in numbers), num_examples=n[..., 0])
    return OperatingPoint(value, threshold[..., 0])
