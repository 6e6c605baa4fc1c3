"""Compute curves over all thresholds, and the points of them that people quote.

A threshold t predicts class 1 where `score >= t`. A curve has one point per example and one before
them, `(..., n + 1)`, by falling threshold: first +inf, where nothing is predicted to be positive.
Examples with equal scores, and those left out, repeat a point, so that the length is known to jit
while areas and maxima are those of the distinct points. All of it comes from one sort. On the host
thresholds are the scores themselves. Where labels or weights of JAX take NumPy scores in double
precision to the device, these are rounded down to float32 (float64 under x64), so that `score >= t`
holds for the example that made the threshold t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import append_axes, divide
from jaxmetrics._cell_sums import tables
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, float_dtype, is_known, on_device, xp
from jaxmetrics._validation import ArrayLike, as_float
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.tables import where_answered
from jaxmetrics.ranking.ranks import Points, Ranked, points, rank

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
    "precision_at_recall",
    "precision_recall_curve",
    "recall_at_precision",
    "roc_curve",
    "sensitivity_at_specificity",
    "specificity_at_sensitivity",
]


class RocCurve(NamedTuple):
    """Hold a ROC curve, as `roc_curve` makes it.

    Attributes:
        fpr: false positive rates, rising, `(..., n + 1)`.
        tpr: true positive rates, rising, `(..., n + 1)`.
        thresholds: falling from +inf, `(..., n + 1)`.
    """

    fpr: Array
    tpr: Array
    thresholds: Array


class PrecisionRecallCurve(NamedTuple):
    """Hold a precision-recall curve, as `precision_recall_curve` makes it.

    Attributes:
        precision: in [0, 1], `(..., n + 1)`.
        recall: rising from 0, `(..., n + 1)`.
        thresholds: falling from +inf, `(..., n + 1)`.
    """

    precision: Array
    recall: Array
    thresholds: Array


class DetCurve(NamedTuple):
    """Hold a detection error tradeoff, as `det_curve` makes it.

    Attributes:
        fpr: false positive rates, rising, `(..., n + 1)`.
        fnr: false negative rates, falling, `(..., n + 1)`.
        thresholds: falling from +inf, `(..., n + 1)`.
    """

    fpr: Array
    fnr: Array
    thresholds: Array


class OperatingPoint(NamedTuple):
    """Hold a point of a curve, as `best_threshold` and its kin choose it.

    Attributes:
        value: of the metric or rate, `(...)`.
        threshold: from which score on class 1 is predicted to reach it, `(...)`.
    """

    value: Array
    threshold: Array


def roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> RocCurve:
    """Compute true positive rates `TP / P` and false positive rates `FP / N` at all thresholds.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; negative labels leave their examples out.
        y_score: real numbers, `(..., n)`; only their order matters.
        sample_weight: `(..., n)`; weight 2 equals the example written twice, 0 the example left
            out.
        where: bool, `(..., n)`; false leaves the example out, whatever it holds.

    Returns:
        `RocCurve`, rising from (0, 0) to (1, 1). The rate of a class without examples is NaN; on
        the device all is NaN if a score that counts is.

    Raises:
        TypeError: labels that are no integers, scores that are no real numbers, a mask that is not
            bool.
        ValueError: unequal numbers of examples, batch axes that do not broadcast; on the host, of
            examples that count, a label of 2 or more, -1 and 1 without a 0, a NaN score and a NaN
            weight.

    >>> roc_curve([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    RocCurve(fpr=array([0. , 0. , 0.5, 0.5, 1. ]), tpr=array([0. , 0.5, 1. , 1. , 1. ]),
             thresholds=array([ inf, 0.75, 0.5 , 0.5 , 0.25]))
    """
    return _roc_curve(rank(y_true, y_score, sample_weight, where))


@compiled
def _roc_curve(ranked: Ranked) -> RocCurve:
    tp, fp, threshold = _points(ranked)
    return RocCurve(_rate(fp), _rate(tp), threshold)


def precision_recall_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> PrecisionRecallCurve:
    """Compute precision `TP / (TP + FP)` and recall `TP / P` at all thresholds.

    Where nothing is predicted to be positive, precision is 1, as in scikit-learn, whose curve runs
    the other way, by rising threshold. Arguments, errors and NaN as `roc_curve`.

    >>> curve = precision_recall_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> curve.precision, curve.recall
    (array([1.       , 1.       , 0.6666667, 0.6666667, 0.5      ]),
     array([0. , 0.5, 1. , 1. , 1. ]))
    """
    return _precision_recall_curve(rank(y_true, y_score, sample_weight, where))


@compiled
def _precision_recall_curve(ranked: Ranked) -> PrecisionRecallCurve:
    tp, fp, threshold = _points(ranked)
    return PrecisionRecallCurve(divide(tp, tp + fp, 1.0), _rate(tp), threshold)


def det_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> DetCurve:
    """Compute false positive rates `FP / N` and false negative rates `FN / P` at all thresholds.

    This is the detection error tradeoff. Arguments, errors and NaN as `roc_curve`.

    >>> det_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])[:2]
    (array([0. , 0. , 0.5, 0.5, 1. ]), array([1. , 0.5, 0. , 0. , 0. ]))
    """
    return _det_curve(rank(y_true, y_score, sample_weight, where))


@compiled
def _det_curve(ranked: Ranked) -> DetCurve:
    tp, fp, threshold = _points(ranked)
    return DetCurve(_rate(fp), _complement_of_rate(tp), threshold)


def metric_at_thresholds(
    metric: Callable[[Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Any, Array]:
    """Compute any metric of counts at all thresholds.

    Args:
        metric: a function of one matrix `(2, 2)`, `[[TN, FP], [FN, TP]]`, yours included, to an
            array or a pytree of arrays. A metric of class 1 alone is `binary(f1)`. On the host it
            is given NumPy arrays, all tables `(m, 2, 2)` at once if it answers for them as it does
            for single ones; one that answers with JAX arrays moves the work to the device.
        y_true, y_score, sample_weight, where: as for `roc_curve`.

    Returns:
        Values `(..., n + 1, *shape of the metric)` and thresholds `(..., n + 1)`. NaN scores and
        errors as `roc_curve`.

    >>> import jaxmetrics as jm
    >>> metric_at_thresholds(jm.accuracy, [0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75])
    (array([0.5 , 0.75, 0.5 , 0.75, 0.5 ]), array([  inf, 0.75 , 0.5  , 0.25 , 0.125]))
    """
    ranked = rank(y_true, y_score, sample_weight, where)
    if not on_device(ranked) and on_device(where_answered(metric, np.ones((2, 2)))):
        ranked = jax.tree.map(jax.numpy.asarray, ranked)
    return _at_thresholds(metric, ranked)


@compiled
def _at_thresholds(metric: Callable[[Array], Any], ranked: Ranked) -> tuple[Any, Array]:
    tp, fp, threshold = _points(ranked)
    counts = tables(tp, fp, tp[..., -1:] - tp, fp[..., -1:] - fp)
    undefined = xp.isnan(threshold)

    def nan_if_undefined(x: Array) -> Array:
        value = xp.asarray(x, float_dtype(counts))
        return xp.where(append_axes(undefined, value.ndim - undefined.ndim), xp.nan, value)

    # 4: the cells of a table, from whose number it is known how many tables fit into a block.
    return jax.tree.map(nan_if_undefined, replicates.map_tables(metric, counts, 4)), threshold


def best_threshold(
    metric: Callable[[Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the threshold at which a metric of counts is greatest; of several, the highest.

    The value is the best on these examples, hence too high for new ones: measure it on held-out
    ones. Arguments as `metric_at_thresholds`; the metric returns one number.

    Returns:
        `OperatingPoint(value, threshold)`, each `(...)`; +inf says that nothing should be positive.
        Where the metric is NaN it is passed over; NaN if it is NaN everywhere.

    >>> import jaxmetrics as jm
    >>> best_threshold(jm.binary(jm.f1), [0, 1, 0, 1, 1], [0.1, 0.4, 0.5, 0.8, 0.9])
    OperatingPoint(value=np.float64(0.857), threshold=np.float64(0.4))
    """
    values, threshold = metric_at_thresholds(
        metric, y_true, y_score, sample_weight=sample_weight, where=where
    )
    if getattr(values, "shape", None) != threshold.shape:
        raise ValueError(
            "metric must return one number for one matrix of counts; binary(f1) is f1 of class 1,"
            " macro(f1) its mean. At all thresholds it returned the shape"
            f" {jax.tree.map(xp.shape, values)}, expected {threshold.shape}."
        )
    return _best_threshold(values, threshold)


@compiled
def _best_threshold(values: Array, threshold: Array) -> OperatingPoint:
    return _greatest(values, threshold, ~xp.isnan(values))


def recall_at_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_precision: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the greatest recall among the thresholds whose precision is at least `min_precision`.

    The precision of +inf is 1, so the recall is 0 at +inf if no other threshold reaches it. Of
    several thresholds, the highest. Arguments and errors as `roc_curve`; NaN without positives.

    >>> recall_at_precision([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=np.float64(1.0), threshold=np.float64(0.4))
    """
    ranked = rank(y_true, y_score, sample_weight, where)
    return _recall_at_precision(ranked, _as_rate(min_precision, ranked, "min_precision"))


@compiled
def _recall_at_precision(ranked: Ranked, least: Array) -> OperatingPoint:
    precision, recall, threshold = _precision_recall_curve(ranked)
    return _greatest(recall, threshold, precision >= least[..., None])


def precision_at_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_recall: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the greatest precision among the thresholds whose recall is at least `min_recall`.

    Otherwise as `recall_at_precision`.

    >>> precision_at_recall([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=np.float64(0.667), threshold=np.float64(0.4))
    """
    ranked = rank(y_true, y_score, sample_weight, where)
    return _precision_at_recall(ranked, _as_rate(min_recall, ranked, "min_recall"))


@compiled
def _precision_at_recall(ranked: Ranked, least: Array) -> OperatingPoint:
    precision, recall, threshold = _precision_recall_curve(ranked)
    return _greatest(precision, threshold, recall >= least[..., None])


def sensitivity_at_specificity(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_specificity: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the greatest sensitivity where the specificity is at least `min_specificity`.

    That is, the true positive rate among the thresholds by their true negative rate. Of several
    thresholds, the highest. Arguments and errors as `roc_curve`; NaN without both classes.

    >>> sensitivity_at_specificity([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=np.float64(0.5), threshold=np.float64(0.8))
    """
    ranked = rank(y_true, y_score, sample_weight, where)
    return _sensitivity_at_specificity(ranked, _as_rate(min_specificity, ranked, "min_specificity"))


@compiled
def _sensitivity_at_specificity(ranked: Ranked, least: Array) -> OperatingPoint:
    tp, fp, threshold = _points(ranked)
    return _greatest(_rate(tp), threshold, _complement_of_rate(fp) >= least[..., None])


def specificity_at_sensitivity(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_sensitivity: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """Find the greatest specificity where the sensitivity is at least `min_sensitivity`.

    Otherwise as `sensitivity_at_specificity`.

    >>> specificity_at_sensitivity([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=np.float64(0.5), threshold=np.float64(0.4))
    """
    ranked = rank(y_true, y_score, sample_weight, where)
    return _specificity_at_sensitivity(ranked, _as_rate(min_sensitivity, ranked, "min_sensitivity"))


@compiled
def _specificity_at_sensitivity(ranked: Ranked, least: Array) -> OperatingPoint:
    tp, fp, threshold = _points(ranked)
    return _greatest(_complement_of_rate(fp), threshold, _rate(tp) >= least[..., None])


def equal_error_rate(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Find the rate at which the false positive and the false negative rate are equal.

    Between the points of the curve it is found on a straight line.

    Returns:
        `(...)`, in [0, 1]: 0 for scores that separate the classes. NaN without both classes.
        Arguments and errors as `roc_curve`.

    >>> equal_error_rate([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.5, 0.7, 0.8]).round(4)
    np.float64(0.3333)
    """
    return _equal_error_rate(rank(y_true, y_score, sample_weight, where))


@compiled
def _equal_error_rate(ranked: Ranked) -> Array:
    fpr, fnr, _ = _det_curve(ranked)
    crossing = xp.clip(xp.argmax(fpr >= fnr, -1), min(1, fpr.shape[-1] - 1), None)[..., None]
    (fpr0, fnr0), (fpr1, fnr1) = (
        [xp.take_along_axis(rate, at, -1)[..., 0] for rate in (fpr, fnr)]
        for at in (crossing - 1, crossing)
    )
    gap0, gap1 = fnr0 - fpr0, fpr1 - fnr1  # before and after the crossing
    rate = fpr0 + (fpr1 - fpr0) * divide(gap0, gap0 + gap1)
    return xp.where(xp.isnan(fpr + fnr).any(-1), xp.nan, rate)


def ks_statistic(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute Kolmogorov and Smirnov's distance of the scores of two classes, `max |TPR - FPR|`.

    Returns:
        `(...)`, in [0, 1]. NaN without both classes. Arguments and errors as `roc_curve`.

    >>> ks_statistic([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    np.float64(0.5)
    """
    return _ks_statistic(rank(y_true, y_score, sample_weight, where))


@compiled
def _ks_statistic(ranked: Ranked) -> Array:
    fpr, tpr, _ = _roc_curve(ranked)
    return xp.abs(tpr - fpr).max(-1)


def _points(ranked: Ranked) -> Points:
    """Count at all thresholds, as floats; NaN where a score that counts is NaN."""
    undefined = ranked.undefined[..., None]
    return Points(*(xp.where(undefined, xp.nan, x.astype(float_dtype(x))) for x in points(ranked)))


def _rate(cumulative: Array) -> Array:
    """Divide by the number of all examples of the class, which the last threshold counts."""
    return divide(cumulative, cumulative[..., -1:], xp.nan)


def _complement_of_rate(cumulative: Array) -> Array:
    """Compute `1 - _rate`, whose difference would round to 0 beside a rate of almost 1."""
    return divide(cumulative[..., -1:] - cumulative, cumulative[..., -1:], xp.nan)


def _as_rate(minimum: ArrayLike, ranked: Ranked, name: str) -> Array:
    least, batch = as_float(minimum, name), ranked.undefined.shape
    if least.ndim > len(batch):
        raise ValueError(
            f"{name} must be a number, or an array that goes with the batch axes {batch}, got"
            f" {least.shape}."
        )
    if is_known(least) and not bool(((least >= 0) & (least <= 1)).all()):
        raise ValueError(f"{name} must lie in [0, 1], got {minimum!r}.")
    return least


def _greatest(values: Array, threshold: Array, allowed: Array) -> OperatingPoint:
    """Take the first, hence that with the highest threshold, of the greatest values."""
    allowed &= ~xp.isnan(values)
    best = xp.argmax(xp.where(allowed, values, -xp.inf), -1)[..., None]
    exists = allowed.any(-1)

    def at_best(x: Array) -> Array:
        return xp.where(exists, xp.take_along_axis(x, best, -1)[..., 0], xp.nan)

    return OperatingPoint(at_best(values), at_best(threshold))
