"""ROC, precision-recall and DET curves, and any metric at all thresholds.

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
from typing import Any

from jaxmetrics._arguments.single import ArrayLike, check_function
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import Array, float_dtype, on_device, xp
from jaxmetrics._sums.cell_sums import tables
from jaxmetrics._text.printing import Printed
from jaxmetrics.intervals.checks import as_floats, placed
from jaxmetrics.intervals.functionals import Row
from jaxmetrics.ranking.ranks import Ranked, of_scores, points, rank

__all__ = [
    "DetCurve",
    "PrecisionRecallCurve",
    "RocCurve",
    "det_curve",
    "equal_error_rate",
    "ks_statistic",
    "metric_at_thresholds",
    "precision_recall_curve",
    "roc_curve",
]


class RocCurve(Printed, namedtuple("_RocCurve", "fpr tpr thresholds")):
    """ROC curve, as returned by `roc_curve`.

    Attributes:
        fpr: increasing false positive rates, of shape `(..., n + 1)`.
        tpr: increasing true positive rates, of shape `(..., n + 1)`.
        thresholds: decreasing thresholds, the first of which is +inf, of shape `(..., n + 1)`.
    """

    __slots__ = ()
    _plural = "points"


class PrecisionRecallCurve(
    Printed, namedtuple("_PrecisionRecallCurve", "precision recall thresholds")
):
    """Precision-recall curve, as returned by `precision_recall_curve`.

    Attributes:
        precision: precision at each threshold, of shape `(..., n + 1)`.
        recall: recall at each threshold, increasing from 0, of shape `(..., n + 1)`.
        thresholds: decreasing thresholds, the first of which is +inf, of shape `(..., n + 1)`.
    """

    __slots__ = ()
    _plural = "points"


class DetCurve(Printed, namedtuple("_DetCurve", "fpr fnr thresholds")):
    """Detection error tradeoff (DET) curve, as returned by `det_curve`.

    Attributes:
        fpr: increasing false positive rates, of shape `(..., n + 1)`.
        fnr: decreasing false negative rates, of shape `(..., n + 1)`.
        thresholds: decreasing thresholds, the first of which is +inf, of shape `(..., n + 1)`.
    """

    __slots__ = ()
    _plural = "points"


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

    >>> print(roc_curve([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]))
       fpr    tpr    thresholds
    0  0.000  0.000  inf
    1  0.000  0.500  0.750
    2  0.500  1.000  0.500
    3  0.500  1.000  0.500
    4  1.000  1.000  0.250
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
    return at_thresholds(*sorted_for(metric, y_true, y_score, sample_weight, where))


def sorted_for(metric: Callable[[Array], Any], *examples: Any) -> tuple[Any, Ranked]:
    """Sort the examples; in JAX arrays, if the metric returns JAX arrays."""
    check_function(metric, "metric", "a metric, a function of counts, such as jaxmetrics.accuracy")
    ranked = rank(*examples)
    example = xp.ones_like(ranked.score, shape=(2, 2), dtype=float_dtype(ranked.score))
    metric, example = placed(as_floats(metric), example, example.shape[-2:])
    if on_device(example):
        ranked = trees.map(jax.numpy.asarray, ranked)
    return metric, ranked


@compiled
def at_thresholds(metric: Callable[[Array], Any], ranked: Ranked) -> tuple[Any, Array]:
    tp, fp, threshold = points(ranked)
    counts = tables(tp, fp, tp[..., -1:] - tp, fp[..., -1:] - fp)
    row = Row(metric, xp.ones_like(counts, shape=(2, 2)))
    values = row(counts).astype(counts.dtype)
    values = xp.where(xp.isnan(threshold)[..., None], xp.nan, values)
    return row.unflatten(values, threshold.ndim), threshold


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
