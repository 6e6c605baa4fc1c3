"""Curves over all thresholds, and the points of them that people quote.

A threshold t predicts class 1 where `score >= t`. A curve has one point per example and one before them, `(..., n + 1)`, by
falling threshold: first +inf, where nothing is predicted to be positive. Examples with equal scores, and those left out,
repeat a point, so that the length is known to jit while areas and maxima are those of the distinct points. All of it comes
from one sort. Scores in double precision are rounded down to float32 (float64 under x64), so that `score >= t` holds for the
example that made the threshold t.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._arrays import ArrayLike, as_float, divide, float_dtype, promoting
from jaxmetrics._cell_sums import tables
from jaxmetrics.ranking._ranks import Points, Ranked, points, rank, round_down

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
    """False and true positive rate at each threshold, `(..., n + 1)`."""

    fpr: jax.Array
    tpr: jax.Array
    thresholds: jax.Array


class PrecisionRecallCurve(NamedTuple):
    """Precision and recall at each threshold, `(..., n + 1)`."""

    precision: jax.Array
    recall: jax.Array
    thresholds: jax.Array


class DetCurve(NamedTuple):
    """False positive and false negative rate at each threshold, `(..., n + 1)`."""

    fpr: jax.Array
    fnr: jax.Array
    thresholds: jax.Array


class OperatingPoint(NamedTuple):
    """A value and the threshold that reaches it, `(...)`."""

    value: jax.Array
    threshold: jax.Array


def roc_curve(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> RocCurve:
    """True positive rate `TP / P` against false positive rate `FP / N` at every threshold.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; examples of any other label are left out.
        y_score: real numbers, `(..., n)`; only their order matters.
        sample_weight: `(..., n)`; weight 2 equals the example written twice, 0 the example left out.
        where: bool, `(..., n)`; false leaves the example out, whatever it holds.

    Returns:
        `RocCurve`, rising from (0, 0) to (1, 1). The rate of a class without examples is NaN; all is NaN if a score that
        counts is.

    Raises:
        TypeError: labels that are no integers, scores that are no real numbers, a mask that is not bool.
        ValueError: unequal numbers of examples, batch axes that do not broadcast.

    >>> roc_curve([0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75])
    RocCurve(fpr=Array([0. , 0. , 0.5, 0.5, 1. ], dtype=float32), tpr=Array([0. , 0.5, 1. , 1. , 1. ], dtype=float32),
             thresholds=Array([ inf, 0.75, 0.5 , 0.5 , 0.25], dtype=float32))
    """
    tp, fp, threshold = _points(y_true, y_score, sample_weight, where)
    return RocCurve(_share(fp), _share(tp), threshold)


def precision_recall_curve(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> PrecisionRecallCurve:
    """Precision `TP / (TP + FP)` against recall `TP / P` at every threshold.

    Where nothing is predicted to be positive, precision is 1, as in scikit-learn, whose curve runs the other way, by rising
    threshold. Arguments, errors and NaN as `roc_curve`.

    >>> precision_recall_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])[:2]
    (Array([1.       , 1.       , 0.6666667, 0.6666667, 0.5      ], dtype=float32),
     Array([0. , 0.5, 1. , 1. , 1. ], dtype=float32))
    """
    tp, fp, threshold = _points(y_true, y_score, sample_weight, where)
    return PrecisionRecallCurve(_precision(tp, fp), _share(tp), threshold)


def det_curve(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> DetCurve:
    """Detection error tradeoff: false negative rate `FN / P` against false positive rate `FP / N` at every threshold.

    Arguments, errors and NaN as `roc_curve`.

    >>> det_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])[:2]
    (Array([0. , 0. , 0.5, 0.5, 1. ], dtype=float32), Array([1. , 0.5, 0. , 0. , 0. ], dtype=float32))
    """
    tp, fp, threshold = _points(y_true, y_score, sample_weight, where)
    return DetCurve(_share(fp), _share(tp[..., -1:] - tp, of=tp[..., -1:]), threshold)


def metric_at_thresholds(
    metric: Callable[[jax.Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> tuple[Any, jax.Array]:
    """Any metric of counts at every threshold.

    Args:
        metric: a function of one matrix `(2, 2)`, `[[TN, FP], [FN, TP]]`, yours included, to an array or a pytree of arrays.
            A metric of class 1 alone is `binary(f1)`.
        y_true, y_score, sample_weight, where: as for `roc_curve`.

    Returns:
        Values `(..., n + 1, *shape of the metric)` and thresholds `(..., n + 1)`. A counted NaN score makes all NaN.

    >>> import jaxmetrics as jm
    >>> metric_at_thresholds(jm.accuracy, [0, 1, 0, 1], [0.125, 0.25, 0.5, 0.75])
    (Array([0.5 , 0.75, 0.5 , 0.75, 0.5 ], dtype=float32), Array([  inf, 0.75 , 0.5  , 0.25 , 0.125], dtype=float32))
    """
    tp, fp, threshold = _points(y_true, y_score, sample_weight, where)
    counts = tables(tp, fp, tp[..., -1:] - tp, fp[..., -1:] - fp)
    values = metric
    for _ in range(tp.ndim):
        values = jax.vmap(values)
    undefined = jnp.isnan(threshold)

    def nan_if_undefined(x: jax.Array) -> jax.Array:
        value = jnp.asarray(x, float_dtype())
        return jnp.where(undefined.reshape(undefined.shape + (1,) * (value.ndim - undefined.ndim)), jnp.nan, value)

    return jax.tree.map(nan_if_undefined, values(counts)), threshold


def best_threshold(
    metric: Callable[[jax.Array], Any],
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """The threshold at which a metric of counts is greatest; of several, the highest.

    The value is the best on these examples, hence too high for new ones: measure it there. Arguments as
    `metric_at_thresholds`; the metric returns one number.

    Returns:
        `OperatingPoint(value, threshold)`, each `(...)`; +inf says that nothing should be positive. Where the metric is NaN it
        is passed over; NaN if it is NaN everywhere.

    >>> import jaxmetrics as jm
    >>> best_threshold(jm.binary(jm.f1), [0, 1, 0, 1, 1], [0.1, 0.4, 0.5, 0.8, 0.9])
    OperatingPoint(value=Array(0.857, dtype=float32), threshold=Array(0.4, dtype=float32))
    """
    values, threshold = metric_at_thresholds(metric, y_true, y_score, sample_weight=sample_weight, where=where)
    if not isinstance(values, jax.Array) or values.shape != threshold.shape:
        raise ValueError(
            "metric must return one number for one matrix of counts; binary(f1) is f1 of class 1, macro(f1) its mean."
            f" At all thresholds it returned the shape {jax.tree.map(jnp.shape, values)}, expected {threshold.shape}."
        )
    return _greatest(values, threshold, ~jnp.isnan(values))


def recall_at_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_precision: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """The greatest recall among the thresholds whose precision is at least `min_precision`.

    That of +inf is 1, so the value is 0 at +inf if no other will do. Of several thresholds, the highest. Arguments and errors
    as `roc_curve`; NaN without positives.

    >>> recall_at_precision([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=Array(1., dtype=float32), threshold=Array(0.4, dtype=float32))
    """
    precision, recall, threshold = precision_recall_curve(y_true, y_score, sample_weight=sample_weight, where=where)
    return _greatest(recall, threshold, _reaches(precision, min_precision, "min_precision"))


def precision_at_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_recall: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """The greatest precision among the thresholds whose recall is at least `min_recall`; else as `recall_at_precision`.

    >>> precision_at_recall([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=Array(0.667, dtype=float32), threshold=Array(0.4, dtype=float32))
    """
    precision, recall, threshold = precision_recall_curve(y_true, y_score, sample_weight=sample_weight, where=where)
    return _greatest(precision, threshold, _reaches(recall, min_recall, "min_recall"))


def sensitivity_at_specificity(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_specificity: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """The greatest true positive rate among the thresholds whose true negative rate is at least `min_specificity`.

    Of several thresholds, the highest. Arguments and errors as `roc_curve`; NaN without both classes.

    >>> sensitivity_at_specificity([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=Array(0.5, dtype=float32), threshold=Array(0.8, dtype=float32))
    """
    tp, fp, threshold = _points(y_true, y_score, sample_weight, where)
    specificity = _share(fp[..., -1:] - fp, of=fp[..., -1:])
    return _greatest(_share(tp), threshold, _reaches(specificity, min_specificity, "min_specificity"))


def specificity_at_sensitivity(
    y_true: ArrayLike,
    y_score: ArrayLike,
    min_sensitivity: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> OperatingPoint:
    """The greatest true negative rate among the thresholds whose true positive rate is at least `min_sensitivity`.

    Else as `sensitivity_at_specificity`.

    >>> specificity_at_sensitivity([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8], 0.6)
    OperatingPoint(value=Array(0.5, dtype=float32), threshold=Array(0.4, dtype=float32))
    """
    tp, fp, threshold = _points(y_true, y_score, sample_weight, where)
    specificity = _share(fp[..., -1:] - fp, of=fp[..., -1:])
    return _greatest(specificity, threshold, _reaches(_share(tp), min_sensitivity, "min_sensitivity"))


def equal_error_rate(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> jax.Array:
    """The rate at which false positives are as frequent as false negatives, between the points of the curve by a straight line.

    Returns:
        `(...)`, in [0, 1]: 0 for scores that separate the classes. NaN without both classes. Arguments and errors as
        `roc_curve`.

    >>> equal_error_rate([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.5, 0.7, 0.8]).round(4)
    Array(0.3333, dtype=float32)
    """
    fpr, fnr, _ = det_curve(y_true, y_score, sample_weight=sample_weight, where=where)
    crossing = jnp.maximum(jnp.argmax(fpr >= fnr, -1), 1)[..., None]
    (x0, y0), (x1, y1) = ([jnp.take_along_axis(rate, at, -1)[..., 0] for rate in (fpr, fnr)] for at in (crossing - 1, crossing))
    ahead, behind = y0 - x0, x1 - y1
    value = x0 + (x1 - x0) * divide(ahead, ahead + behind)
    return jnp.where(jnp.isnan(fpr + fnr).any(-1), jnp.nan, value)


def ks_statistic(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> jax.Array:
    """Kolmogorov and Smirnov's distance of the scores of the two classes, `max |TPR - FPR|`.

    Returns:
        `(...)`, in [0, 1]. NaN without both classes. Arguments and errors as `roc_curve`.

    >>> ks_statistic([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    Array(0.5, dtype=float32)
    """
    fpr, tpr, _ = roc_curve(y_true, y_score, sample_weight=sample_weight, where=where)
    return jnp.abs(tpr - fpr).max(-1)


def _points(y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, where: ArrayLike | None) -> Points:
    return _defined_points(*rank(y_true, round_down(y_score), sample_weight, where))


@promoting
@jax.jit
def _defined_points(*ranked: jax.Array) -> Points:
    """As floats, NaN where a score that counts is NaN."""
    of = Ranked(*ranked)
    undefined = of.undefined[..., None]
    return Points(*(jnp.where(undefined, jnp.nan, x.astype(float_dtype())) for x in points(of)))


def _share(part: jax.Array, of: jax.Array | None = None) -> jax.Array:
    return divide(part, part[..., -1:] if of is None else of, jnp.nan)


def _precision(tp: jax.Array, fp: jax.Array) -> jax.Array:
    return divide(tp, tp + fp, 1.0)


@promoting
def _reaches(rate: jax.Array, minimum: ArrayLike, name: str) -> jax.Array:
    least = as_float(minimum, name)
    if least.ndim > rate.ndim - 1:
        raise ValueError(
            f"{name} must be a number, or an array that goes with the batch axes {rate.shape[:-1]}, got {least.shape}."
        )
    if not isinstance(least, jax.core.Tracer) and not bool(((least >= 0) & (least <= 1)).all()):
        raise ValueError(f"{name} must lie in [0, 1], got {minimum!r}.")
    return rate >= least[..., None]


def _greatest(values: jax.Array, threshold: jax.Array, allowed: jax.Array) -> OperatingPoint:
    """The first, hence that with the highest threshold, of the greatest values."""
    allowed &= ~jnp.isnan(values)
    best = jnp.argmax(jnp.where(allowed, values, -jnp.inf), -1)[..., None]
    exists = allowed.any(-1)
    return OperatingPoint(*(jnp.where(exists, jnp.take_along_axis(x, best, -1)[..., 0], jnp.nan) for x in (values, threshold)))
