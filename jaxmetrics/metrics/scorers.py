"""scikit-learn scorers made of metrics of counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from jaxmetrics._applied import Applied, applied, without_order
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.labels import are_integers, ordered_categories, sorted_classes
from jaxmetrics._arguments.single import ArrayLike, check_real
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
            in `y` and in the predictions, in their order.

    Returns:
        The scorer that `sklearn.metrics.make_scorer` makes, so that metadata routing and
        `TunedThresholdClassifierCV` know it. Without scikit-learn, a function
        `(estimator, X, y, sample_weight=None)` that returns a float. The estimator must have the
        method `predict`. The labels `y` have shape `(n,)` and any type. As in scikit-learn, -1 is
        an ordinary label.

    Raises:
        TypeError: if `metric` is not a function, or is a metric of scores or probabilities.
        ValueError: if `labels` contains duplicates. The scorer raises ValueError if `y` or the
            predictions do not have shape `(n,)`, or if the metric returns more than one number.

    >>> import jaxmetrics as jm
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="constant", constant="cat").fit([[0], [1]], ["cat", "dog"])
    >>> scorer(jm.macro(jm.recall))(model, [[0], [1], [2]], ["cat", "dog", "cat"])
    0.5
    >>> scorer(jm.macro(jm.recall))
    make_scorer(score(macro(recall)), response_method='predict')
    """
    _refuse_scores(metric)
    named = {} if labels is None else {"labels": tuple(ids_by_label(labels))}
    score = applied(_score, metric, A_METRIC, **named)
    try:
        from sklearn.metrics import make_scorer
    except ImportError:
        return Applied(_scorer, score)
    return make_scorer(score)


def _refuse_scores(metric: Any) -> None:
    try:
        names = inspect.signature(metric).parameters.keys()
    except (TypeError, ValueError):
        return
    for name, method in (("y_score", "decision_function"), ("y_prob", "predict_proba")):
        if name in names:
            raise TypeError(
                f"metric must be a function of counts, but {metric.__name__} needs {name}. Use"
                f" sklearn.metrics.make_scorer(jaxmetrics.{metric.__name__},"
                f' response_method="{method}"), with greater_is_better=False if smaller values are'
                " better."
            )


def _scorer(
    score: Callable[..., float],
    estimator: Any,
    X: Any,  # scikit-learn's name for it
    y: Any,
    sample_weight: ArrayLike | None = None,
) -> float:
    return score(y, estimator.predict(X), sample_weight=sample_weight)


def _score(
    metric: Metric,
    y: Any,
    predictions: Any,
    *,
    sample_weight: ArrayLike | None = None,
    labels: Sequence[Hashable] | None = None,
) -> float:
    check_order(y=y, predictions=predictions, sample_weight=sample_weight)
    y_true, y_pred = np.asarray(y), np.asarray(predictions)
    if y_true.ndim != 1 or y_pred.shape != y_true.shape:
        raise ValueError(
            "y and the predictions must have the same shape (n,), but the shape of y is"
            f" {y_true.shape} and the shape of the predictions is {y_pred.shape}."
        )
    if labels is None:
        everything = np.concatenate([y_true, y_pred])
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
