"""ROC, precision-recall and DET curves, any metric at all thresholds, and best thresholds.

At threshold t, class 1 is predicted if `score >= t`. A curve has n + 1 points in the order of
decreasing thresholds: a first point, and then one point per example. The threshold of the first
point is +inf, so no example is predicted positive. Examples with equal scores give equal points,
and an ignored example repeats another point, so that the length of a curve is known under jit.
Areas and maxima are computed from the distinct points. If all arguments are NumPy arrays, the
thresholds are the scores themselves. If `y_score` is a float64 NumPy array and another argument is
a JAX array, scores are rounded down to float32 (unless `jax_enable_x64` is on), so that
`score >= t` is true for the example whose rounded score is t.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arguments.single import (
    ArrayLike,
    as_float,
    as_number,
    check_function,
    check_level,
    refuse_where,
    require,
)
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import Array, float_dtype, lax, on_device, xp
from jaxmetrics._sums.cell_sums import tables
from jaxmetrics._text.printing import Printed
from jaxmetrics._text.wording import shown
from jaxmetrics.betas.distributions import betainc, betaincinv
from jaxmetrics.estimates import computed_estimate, with_level
from jaxmetrics.intervals.checks import as_floats, placed
from jaxmetrics.intervals.functionals import Row
from jaxmetrics.ranking.ranks import Ranked, of_scores, points, rank

__all__ = [
    "DetCurve",
    "OperatingPoint",
    "PrecisionRecallCurve",
    "RocCurve",
    "best_threshold",
    "det_curve",
    "equal_error_rate",
    "ks_statistic",
    "metric_at_thresholds",
    "precision_recall_curve",
    "roc_curve",
    "safe_threshold",
]

# An arbitrary confusion matrix, in which all rates of two cells differ.
_COUNTS = np.array([[1009.0, 2003.0], [3001.0, 4999.0]])


class RocCurve(NamedTuple):
    """ROC curve, as returned by `roc_curve`.

    Attributes:
        fpr: increasing false positive rates, of shape `(..., n + 1)`.
        tpr: increasing true positive rates, of shape `(..., n + 1)`.
        thresholds: decreasing thresholds, the first of which is +inf, of shape `(..., n + 1)`.
    """

    fpr: Array
    tpr: Array
    thresholds: Array


class PrecisionRecallCurve(NamedTuple):
    """Precision-recall curve, as returned by `precision_recall_curve`.

    Attributes:
        precision: precision at each threshold, of shape `(..., n + 1)`.
        recall: recall at each threshold, increasing from 0, of shape `(..., n + 1)`.
        thresholds: decreasing thresholds, the first of which is +inf, of shape `(..., n + 1)`.
    """

    precision: Array
    recall: Array
    thresholds: Array


class DetCurve(NamedTuple):
    """Detection error tradeoff (DET) curve, as returned by `det_curve`.

    Attributes:
        fpr: increasing false positive rates, of shape `(..., n + 1)`.
        fnr: decreasing false negative rates, of shape `(..., n + 1)`.
        thresholds: decreasing thresholds, the first of which is +inf, of shape `(..., n + 1)`.
    """

    fpr: Array
    fnr: Array
    thresholds: Array


class OperatingPoint(Printed, namedtuple("_OperatingPoint", "value threshold")):
    """Operating point of a classifier, as returned by `best_threshold`.

    Attributes:
        value: value of the metric at the threshold, of shape `(...)`.
        threshold: class 1 is predicted if the score is at least this number; of shape `(...)`.
    """

    __slots__ = ()
    _plural = "operating points"


@of_scores
def roc_curve(ranked: Ranked) -> RocCurve:
    """Compute the ROC curve: true positive rate `TP / (TP + FN)` and false positive rate
    `FP / (FP + TN)`.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        `RocCurve` with one point for each threshold, from (0, 0) to (1, 1). True positive rates are
        NaN without positives, and false positive rates are NaN without negatives.

    >>> roc_curve([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    RocCurve(fpr=array([0. , 0. , 0.5, 0.5, 1. ]), tpr=array([0. , 0.5, 1. , 1. , 1. ]),
             thresholds=array([ inf, 0.75, 0.5 , 0.5 , 0.25]))
    """
    tp, fp, threshold = points(ranked)
    return RocCurve(_rate(fp), _rate(tp), threshold)


@of_scores
def precision_recall_curve(ranked: Ranked) -> PrecisionRecallCurve:
    """Compute the precision-recall curve: precision `TP / (TP + FP)` and recall `TP / (TP + FN)`.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        `PrecisionRecallCurve` with one point for each threshold. Thresholds decrease, while those
        of scikit-learn increase. If no example is predicted positive, precision is 1, as in
        scikit-learn.

    >>> curve = precision_recall_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> curve.precision, curve.recall
    (array([1.       , 1.       , 0.6666667, 0.6666667, 0.5      ]),
     array([0. , 0.5, 1. , 1. , 1. ]))
    """
    tp, fp, threshold = points(ranked)
    return PrecisionRecallCurve(divide(tp, tp + fp, 1.0), _rate(tp), threshold)


@of_scores
def det_curve(ranked: Ranked) -> DetCurve:
    """Compute the detection error tradeoff (DET) curve: false positive and false negative rates.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        `DetCurve` with `FP / (FP + TN)` and `FN / (FN + TP)` for each threshold.

    >>> det_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])[:2]
    (array([0. , 0. , 0.5, 0.5, 1. ]), array([1. , 0.5, 0. , 0. , 0. ]))
    """
    tp, fp, threshold = points(ranked)
    return DetCurve(_rate(fp), _complement_of_rate(tp), threshold)


def metric_at_thresholds(
    metric: Callable[[Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Any, Array]:
    """Compute a metric, such as accuracy, of the confusion matrix at each threshold of the scores.

    Args:
        metric: a function of a confusion matrix `[[TN, FP], [FN, TP]]`, such as `accuracy`, that
            returns an array or a pytree of arrays. To get only the value of class 1, pass
            `binary(f1)` instead of `f1`. For NumPy arrays, the metric is called with all matrices
            at once if it accepts the shape `(m, 2, 2)`.
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        The metric at each threshold, of shape `(..., n + 1, *shape)`, and the thresholds, of shape
        `(..., n + 1)`. Here `shape` is the shape of the metric of one matrix.

    >>> import jaxmetrics as jm
    >>> metric_at_thresholds(jm.accuracy, [0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75])
    (array([0.5 , 0.75, 0.5 , 0.75, 0.5 ]), array([  inf, 0.75 , 0.5  , 0.25 , 0.125]))
    """
    check_function(metric, "metric", "a metric, a function of counts, such as jaxmetrics.accuracy")
    ranked = rank(y_true, y_score, sample_weight, where)
    example = xp.ones_like(ranked.score, shape=(2, 2), dtype=float_dtype(ranked.score))
    metric, example = placed(as_floats(metric), example, example.shape[-2:])
    if on_device(example):
        ranked = trees.map(jax.numpy.asarray, ranked)
    return _at_thresholds(metric, ranked)


@compiled
def _at_thresholds(metric: Callable[[Array], Any], ranked: Ranked) -> tuple[Any, Array]:
    tp, fp, threshold = points(ranked)
    counts = tables(tp, fp, tp[..., -1:] - tp, fp[..., -1:] - fp)
    row = Row(metric, xp.ones_like(counts, shape=(2, 2)))
    values = row(counts).astype(counts.dtype)
    values = xp.where(xp.isnan(threshold)[..., None], xp.nan, values)
    return row.unflatten(values, threshold.ndim), threshold


def best_threshold(
    metric: Callable[[Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    subject_to: tuple[Callable[[Array], Any], ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the threshold that maximises a metric of a confusion matrix.

    For example, recall at a precision of 0.9 is
    `best_threshold(recall, y_true, y_score, subject_to=(precision, 0.9))`. This is the greatest
    recall among all thresholds with a precision of at least 0.9. The metric at the chosen threshold
    is usually smaller on new examples, and the constraint may not hold there. `interval` treats the
    threshold as known: on the examples from which it was chosen, the interval lies too high. So
    evaluate it on held-out examples.

    Args:
        metric: a function of a confusion matrix `(2, 2)` that returns one number, or one number per
            class. If it returns one per class, the value of class 1 is maximised.
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored.
        subject_to: a constraint `(metric, minimum)`. Only thresholds at which this metric is at
            least `minimum` are considered. `minimum` is a number or an array that broadcasts to
            `(...)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        `OperatingPoint(value, threshold)`, both of shape `(...)`. If several thresholds are equally
        good, the highest is returned. Thresholds at which a metric is NaN are skipped. Value and
        threshold are NaN if no threshold is left. If the threshold is +inf, no example is predicted
        positive.

    >>> import jaxmetrics as jm
    >>> y_true, y_score = [0, 1, 0, 1, 1], [0.1, 0.4, 0.5, 0.8, 0.9]
    >>> best_threshold(jm.f1, y_true, y_score)
    value 0.857, threshold 0.400
    >>> best_threshold(jm.recall, y_true, y_score, subject_to=(jm.specificity, 0.9))
    value 0.667, threshold 0.800
    """
    options = {"sample_weight": sample_weight, "where": where}
    if subject_to is None:
        values, threshold = metric_at_thresholds(metric, y_true, y_score, **options)
        values = _of_class_1(values, threshold, "metric")
        return _best_threshold(values, threshold, values, np.float64(-np.inf))
    check_function(metric, "metric", "a metric, a function of counts, such as jaxmetrics.accuracy")
    if not isinstance(subject_to, tuple | list) or len(subject_to) != 2:
        raise TypeError(
            "subject_to must be a pair of a metric and the least value that this metric may have,"
            f" such as (jaxmetrics.precision, 0.9), got {shown(subject_to)}."
        )
    constraint, least = subject_to
    check_function(
        constraint, "subject_to[0]", "a metric, a function of counts, such as jaxmetrics.precision"
    )

    def both(counts: Array) -> tuple[Any, Any]:
        return metric(counts), constraint(counts)

    (values, reached), threshold = metric_at_thresholds(both, y_true, y_score, **options)
    values = _of_class_1(values, threshold, "metric")
    reached = _of_class_1(reached, threshold, "subject_to[0]")
    name, batch, minimum = "subject_to[1]", threshold.shape[:-1], as_float(least, "subject_to[1]")
    if minimum.ndim > len(batch):
        raise ValueError(
            f"{name} must be a number, or an array that broadcasts with the batch axes {batch},"
            f" got an array of shape {minimum.shape}."
        )
    refuse_where(np.isnan, minimum, name, "expected the least value of the metric.")
    return _best_threshold(values, threshold, reached, minimum)


def _of_class_1(values: Any, threshold: Array, name: str) -> Array:
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


@compiled
def _best_threshold(
    values: Array, threshold: Array, reached: Array, least: Array
) -> OperatingPoint:
    """Return the highest threshold among those with the greatest value that satisfies the
    constraint.
    """
    allowed = ~xp.isnan(values) & (reached >= least[..., None])
    best = xp.argmax(xp.where(allowed, values, -xp.inf), -1)[..., None]
    exists = allowed.any(-1)

    def at_best(x: Array) -> Array:
        return xp.where(exists, xp.take_along_axis(x, best, -1)[..., 0], xp.nan)

    return OperatingPoint(at_best(values), at_best(threshold))


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

    In at least `level` of the test sets, the rate of new examples at the returned threshold is at
    least `least`. For each threshold, the hypothesis that the rate is smaller is tested by an exact
    binomial test, with the p-value `P(X >= s)` for `X ~ Binomial(s + f, least)`, s successes and f
    failures. The thresholds are tested in a fixed order, in which failures become possible one
    after another (recall: from the lowest threshold upwards; precision and specificity: from the
    highest downwards), until a test is not passed. The last threshold that passed is returned.
    Source: fixed sequence testing in Angelopoulos, Bates, Candès, Jordan and Lei (2021), Learn then
    Test, arXiv:2110.01052.

    Fewer than `m = log(1 - level) / log(least)` trials s + f cannot pass a test. So if the number
    of trials grows from 0, as for precision, there are J walks, which start where it reaches 2 m,
    4 m, 8 m, ... The p-values are then compared with `(1 - level) / J`, and the threshold of the
    walk that goes farthest is returned.

    Args:
        metric: a rate that is the quotient s / (s + f) of two cells of a confusion matrix, such as
            `recall`, `precision`, `specificity` or `negative_predictive_value`. If it returns one
            number per class, the rate of class 1 is meant.
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored. The examples must be independent of each other and of the
            classifier.
        least: the least value that the rate of new examples may have, between 0 and 1.
        level: the confidence level.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        `OperatingPoint(value, threshold)`. `value` is an `Estimate` of the rate with a one-sided
        interval, from Clopper and Pearson's lower limit, which is at least `least`, to 1. All
        numbers are NaN if no threshold passes, for example if there are fewer than 29 positives for
        a recall of 0.9, or fewer than 57 examples for a precision of 0.9.

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
    value = _of_class_1(np.asarray(metric(_COUNTS)), np.zeros(()), "metric")
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


@of_scores
def equal_error_rate(ranked: Ranked) -> Array:
    """Compute the equal error rate (EER): the error rate at the threshold where the false positive
    rate and the false negative rate are equal.

    Between two thresholds both rates are interpolated linearly.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`. A value is NaN if a class has no examples.

    >>> equal_error_rate([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.5, 0.7, 0.8]).round(4)
    np.float64(0.3333)
    """
    tp, fp, _ = points(ranked)
    fpr, fnr = _rate(fp), _complement_of_rate(tp)
    crossing = xp.clip(xp.argmax(fpr >= fnr, -1), min(1, fpr.shape[-1] - 1), None)[..., None]
    (fpr0, fnr0), (fpr1, fnr1) = (
        [xp.take_along_axis(rate, at, -1)[..., 0] for rate in (fpr, fnr)]
        for at in (crossing - 1, crossing)
    )
    gap0, gap1 = fnr0 - fpr0, fpr1 - fnr1  # the points before and after the rates are equal
    rate = fpr0 + (fpr1 - fpr0) * divide(gap0, gap0 + gap1)
    return xp.where(xp.isnan(fpr + fnr).any(-1), xp.nan, rate)


@of_scores
def ks_statistic(ranked: Ranked) -> Array:
    """Compute the Kolmogorov–Smirnov statistic of the scores of two classes, `max |TPR - FPR|`.

    TPR and FPR are the true and false positive rates. The maximum is over all thresholds.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`. A value is NaN if a class has no examples.

    >>> ks_statistic([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    np.float64(0.5)
    """
    tp, fp, _ = points(ranked)
    return xp.abs(_rate(tp) - _rate(fp)).max(-1)


def _rate(cumulative: Array) -> Array:
    """Divide counts by the number of examples of the class, which is the count at the last
    threshold.
    """
    return divide(cumulative, cumulative[..., -1:], xp.nan)


def _complement_of_rate(cumulative: Array) -> Array:
    """Compute `1 - _rate` without a subtraction, which would be rounded to 0 if the rate is near
    1.
    """
    return divide(cumulative[..., -1:] - cumulative, cumulative[..., -1:], xp.nan)
