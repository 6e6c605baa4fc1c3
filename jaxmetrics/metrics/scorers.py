"""scikit-learn scorers from metrics of counts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jaxmetrics._applied import applied
from jaxmetrics._validation import ArrayLike, check_real
from jaxmetrics.counts import confusion_matrix, ids_by_label
from jaxmetrics.metrics.averages import A_METRIC, Metric

__all__ = ["scorer"]


def scorer(metric: Metric, *, labels: Sequence[Hashable] | None = None) -> Callable[..., float]:
    """Make a scikit-learn scorer of a metric of counts, to pass as `scoring=`.

    `cross_val_score(model, X, y, scoring=scorer(macro(f1)))` and `GridSearchCV` accept it, also
    with `n_jobs`. scikit-learn takes greater scores for better: instead of `error_rate` pass
    `lambda counts: -error_rate(counts)`. For metrics of scores and probabilities use scikit-learn's
    `make_scorer(roc_auc, response_method="decision_function")`.

    Args:
        metric: a function of counts `(K, K)` that returns one number.
        labels: the K classes in the order of the rows. Default: the sorted union of the estimator's
            `classes_`, if it has them, and the labels in `y`.

    Returns:
        A function `(estimator, X, y, sample_weight=None)` that returns a float. `estimator` has a
        method `predict`; `y` `(n,)` holds labels of any type. As in scikit-learn, -1 is a label
        like any other.

    Raises:
        TypeError: `metric` is not a function.
        ValueError: duplicate labels; when called, a `y` or predictions of another shape, or a
            metric that returns more than one number.

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
    X: Any,  # as scikit-learn calls it
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    labels: Sequence[Hashable] | None = None,
) -> float:
    y_true, y_pred = np.asarray(y), np.asarray(estimator.predict(X))
    if y_true.ndim != 1 or y_pred.shape != y_true.shape:
        raise ValueError(
            "y must have shape (n,), a label for each prediction, got"
            f" {y_true.shape} for predictions {y_pred.shape}."
        )
    if labels is None:
        known = getattr(estimator, "classes_", y_pred)
        everything = np.concatenate([known, y_true, y_pred])
        try:
            labels = np.unique(everything).tolist()
        except TypeError:
            raise TypeError("y and the predictions must hold labels of one kind.") from None
    counts = confusion_matrix(y_true, y_pred, labels=labels, sample_weight=sample_weight)
    value = np.asarray(metric(counts))
    if value.shape != ():
        raise ValueError(
            f"metric must return one number, got shape {value.shape}: an average does, such as"
            " jaxmetrics.macro(jaxmetrics.f1)."
        )
    check_real(value, "the result of metric")
    return float(value)
