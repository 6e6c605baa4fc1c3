"""Binary metrics of scores, such as ROC AUC, computed for each class or label."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from jaxmetrics._applied import applied
from jaxmetrics._arguments.example_arguments import (
    Examples,
    as_indicators,
    as_scores,
    class_examples,
    label_examples,
)
from jaxmetrics._arguments.single import IGNORED, ArrayLike, check_option
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, float_dtype, on_device, xp

__all__ = ["per_class", "per_label"]

Measure = Callable[..., Any]
Average = Literal["macro", "weighted", "micro"]

A_MEASURE = "measure, a function of (y_true, y_score), such as jaxmetrics.roc_auc"


def per_class(measure: Measure, *, average: Average | None = None) -> Measure:
    """Compute a binary metric of scores, such as `roc_auc`, for each class against all others.

    Args:
        measure: a function of `(y_true, y_score, ...)` that accepts arrays with leading batch axes,
            such as `roc_auc` or `partial(best_threshold, metric)`.
        average: None returns one value per class. `"macro"` returns the mean of these values.
            `"weighted"` returns their mean, weighted by the number (or total weight) of the
            examples of each class. In both means, classes whose value is NaN are skipped. `"micro"`
            treats every pair of an example and a class as one example of a single binary problem.

    Returns:
        A function of class ids `y_true` of shape `(..., n)` and scores `y_score` of shape
        `(..., n, K)`. It returns one value per class, of shape `(..., K)`, or an average, of shape
        `(...)`. All other arguments, such as `sample_weight`, are passed to `measure`.

    >>> from jaxmetrics import roc_auc
    >>> scores = [[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]]
    >>> scores += [[0.4, 0.3, 0.3], [0.1, 0.2, 0.7]]
    >>> per_class(roc_auc)([0, 0, 1, 1, 2], scores)
    array([0.8333333, 0.8333333, 1.       ])
    >>> per_class(roc_auc, average="macro")([0, 0, 1, 1, 2], scores)
    np.float64(0.8888889)
    """
    return _of_columns(_per_class, measure, average)


def per_label(measure: Measure, *, average: Average | None = None) -> Measure:
    """Compute a binary metric of scores, such as `roc_auc`, for each label of a multilabel problem.

    Args:
        measure: a function of `(y_true, y_score, ...)` that accepts arrays with leading batch axes,
            such as `roc_auc` or `partial(best_threshold, metric)`.
        average: None returns one value per label. `"macro"` returns the mean of these values.
            `"weighted"` returns their mean, weighted by the number of positive examples of each
            label. In both means, labels whose value is NaN are skipped. `"micro"` treats every pair
            of an example and a label as one example of a single binary problem.

    Returns:
        A function of labels `y_true` and scores `y_score`, both of shape `(..., n, L)` for n
        examples and L labels. It returns one value per label, of shape `(..., L)`, or an average,
        of shape `(...)`. Labels are 0 or 1. A label below 0 is ignored, but not the other labels of
        the same example.

    >>> from jaxmetrics import average_precision
    >>> per_label(average_precision)([[1, 0], [0, 1], [1, 1]], [[0.9, 0.2], [0.4, 0.1], [0.3, 0.8]])
    array([0.8333333, 0.8333333])
    """
    return _of_columns(_per_label, measure, average)


def _of_columns(scheme: Measure, measure: Measure, average: Average | None) -> Measure:
    if average is not None:
        check_option(average, "average", ("macro", "weighted", "micro"))
    options = {} if average is None else {"average": average}
    return applied(scheme, measure, A_MEASURE, **options)


def _per_class(measure: Measure, *args: Any, **options: Any) -> Any:
    def read(*arguments: Any) -> Examples:
        return one_against_rest(_scored_classes(*arguments))

    return _measured_by_column(read, measure, *args, **options)


def _per_label(measure: Measure, *args: Any, **options: Any) -> Any:
    def read(*arguments: Any) -> Examples:
        examples = scored_labels(*arguments)
        return _in_columns(examples, examples.ids.swapaxes(-1, -2), np.int8(1))

    return _measured_by_column(read, measure, *args, **options)


_scored_classes = partial(class_examples, read=as_scores, name="y_score")
scored_labels = partial(label_examples, read=as_scores, read_truth=as_indicators, name="y_score")


def _measured_by_column(
    read: Callable[..., Examples],
    measure: Measure,
    y_true: ArrayLike,
    y_score: ArrayLike,
    *args: Any,
    average: Average | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    **options: Any,
) -> Any:
    """Compute a metric of one binary problem per class or label, and average the values if
    asked.
    """
    problems = read(y_true, y_score, sample_weight, where)
    if average == "micro":
        problems = _joined(problems)
    values = _measured(measure, problems, *args, **options)
    if average in (None, "micro"):
        return values
    shape = np.broadcast_shapes(*(x.shape for x in problems if x is not None))
    if getattr(values, "shape", None) != shape[:-1]:
        raise ValueError(
            f"average={average!r} needs a metric that returns one number, such as roc_auc, because"
            " curves and thresholds cannot be averaged. Pass average=None to get the result of"
            " each class."
        )
    return _mean_of_defined(values, problems, weighted=average == "weighted")


def _measured(measure: Measure, problems: Examples, *args: Any, **options: Any) -> Any:
    truth, columns, weights, mask, *_ = problems
    if truth.ndim == 2 and truth.shape[-1] == 1 and not on_device(truth):
        # A single example of K classes has shape (K, 1), which would be refused as a column of K
        # examples. An additional batch axis avoids the error.
        with_batch_axis = problems._replace(ids=truth[None])
        values = _measured(measure, with_batch_axis, *args, **options)
        return trees.map(lambda x: x[0], values)
    options |= {} if weights is None else {"sample_weight": weights}
    options |= {} if mask is None else {"where": mask}
    return measure(truth, columns, *args, **options)


def one_against_rest(examples: Examples) -> Examples:
    """Make one binary problem per class, of shape `(..., K, n)`, from class ids and scores
    `(..., n, K)`.
    """
    classes = np.arange(examples.values.shape[-1], dtype=np.int32)[:, None]
    return _in_columns(examples, examples.ids[..., None, :], classes)


def _in_columns(examples: Examples, ids: Array, classes: Array) -> Examples:
    """Make binary problems of shape `(..., K, n)`, in which an example is positive if its id is the
    class of the column.
    """
    weights, mask = (
        None if x is None else x[..., None, :] for x in (examples.weights, examples.mask)
    )
    return Examples(_is_class(ids, classes), examples.values.swapaxes(-1, -2), weights, mask)


@compiled
def _is_class(ids: Array, classes: Array) -> Array:
    return xp.where(ids >= 0, (ids == classes).astype(xp.int8), IGNORED)


@compiled
def _joined(examples: Examples) -> Examples:
    """Join the binary problems of all classes or labels into a single one, for the micro
    average.
    """
    k, n = xp.broadcast_shapes(examples.ids.shape, examples.values.shape)[-2:]

    def joined(x: Array) -> Array:
        batch_shape = x.shape[:-2]
        return xp.broadcast_to(x, (*batch_shape, k, n)).reshape((*batch_shape, k * n))

    return trees.map(joined, examples)


@compiled
def _mean_of_defined(values: Array, examples: Examples, *, weighted: bool) -> Array:
    """Average the values `(..., K)` that are not NaN. The mean is NaN if the score of an example
    that is not ignored is NaN.

    If `weighted`, the weight of a class is the number (or total weight) of its examples.
    """
    values = values.astype(float_dtype(values))
    support = xp.where(examples.ids == 1, examples.amounts, 0).sum(-1)
    weight = xp.where(xp.isnan(values), 0, support if weighted else xp.ones_like(values))
    terms = weight * xp.where(weight > 0, values, 0)
    # Values are added in order of size, so that the order of classes does not change the rounding.
    mean = divide(xp.sort(terms, -1).sum(-1), xp.sort(weight, -1).sum(-1), xp.nan)
    lacks_scores = (xp.isnan(examples.values) & (examples.amounts != 0)).any((-2, -1))
    return xp.where(lacks_scores, xp.nan, mean)
