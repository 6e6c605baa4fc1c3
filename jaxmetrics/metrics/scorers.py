"""scikit-learn scorers made of metrics of counts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jaxmetrics._applied import applied, without_order
from jaxmetrics._indices import check_order
from jaxmetrics._labels import are_integers, ordered_categories, sorted_classes
from jaxmetrics._validation import ArrayLike, check_real
from jaxmetrics.counts import confusion_matrix, ids_by_label
from jaxmetrics.metrics.averages import A_METRIC, Metric

__all__ = ["scorer"]


def scorer(metric: Metric, *, labels: Sequence[Hashable] | None = None) -> Callable[..., float]:
    """Make a scikit-learn scorer, to be passed as `scoring=`, from a metric of confusion matrices.

    Pass the scorer to functions such as `cross_val_score(model, X, y, scoring=scorer(macro(f1)))`
    or to `GridSearchCV`, also with `n_jobs`. Greater scores must be better, so pass
    `lambda counts: -error_rate(counts)` for the error rate. For metrics of scores or probabilities
    use scikit-learn's `make_scorer`, as in
    `make_scorer(roc_auc, response_method="decision_function")`.

    Args:
        metric: a function of counts `(K, K)` that returns one number.
        labels: the K classes, in the order of the rows of the confusion matrix. Default: all labels
            in `y`, in the predictions and in the attribute `classes_` of the estimator, sorted.

    Returns:
        A function `(estimator, X, y, sample_weight=None)` that returns a float. The estimator must
        have the method `predict`. The labels `y` have shape `(n,)` and any type. As in
        scikit-learn, -1 is an ordinary label.

    Raises:
        TypeError: if `metric` is not a function.
        ValueError: if `labels` contains duplicates. The returned function raises ValueError if `y`
            or the predictions do not have shape `(n,)`, or if the metric returns more than one
            number.

    >>> import jaxmetrics as jm
    >>> class Model:
    ...     def predict(self, X):
    ...         return ["cat" if x > 0 else "dog" for x in X]
    >>> scorer(jm.macro(jm.recall))(Model(), [1, -1, 2, 3], ["cat", "dog", "dog", "cat"])
    0.75
    >>> scorer(jm.macro(jm.recall))
    scorer(macro(recall))
    """
    named = {} if labels is None else {"labels": tuple(ids_by_label(labels))}
    return applied(_scorer, metric, A_METRIC, **named)


def _scorer(
    metric: Metric,
    estimator: Any,
    X: Any,  # scikit-learn's name for it
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    labels: Sequence[Hashable] | None = None,
) -> float:
    predictions = estimator.predict(X)
    check_order(y=y, predictions=predictions, sample_weight=sample_weight)
    y_true, y_pred = np.asarray(y), np.asarray(predictions)
    if y_true.ndim != 1 or y_pred.shape != y_true.shape:
        raise ValueError(
            "y and the predictions must have the same shape (n,), but the shape of y is"
            f" {y_true.shape} and the shape of the predictions is {y_pred.shape}."
        )
    if labels is None:
        known = getattr(estimator, "classes_", y_pred)
        everything = np.concatenate([known, y_true, y_pred])
        try:
            labels = ordered_categories({"y": y})
            if labels is None:
                labels = sorted_classes(everything.tolist())
                if isinstance(labels[0], str) and not are_integers(labels):
                    metric = without_order(metric)
        except TypeError:
            raise TypeError(
                "y and the predictions must contain labels of the same type, such as str or int."
                " Convert one of them to the type of the other."
            ) from None
    counts = confusion_matrix(y_true, y_pred, labels=labels, sample_weight=sample_weight)
    value = np.asarray(metric(counts))
    if value.shape != ():
        raise ValueError(
            f"metric must return one number, but it returned an array of shape {value.shape}. Use"
            " an average over classes, such as jaxmetrics.macro(jaxmetrics.f1)."
        )
    check_real(value, "the result of metric")
    return float(value)
