"""Averages of per-class rates over classes, such as `macro(f1)` and `weighted(recall)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from jaxmetrics._applied import applied, of_equal_classes, reading
from jaxmetrics._arguments.single import ArrayLike, as_counts, as_float, on_host
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics._sums.cell_sums import cells, proportions, tables
from jaxmetrics._text.wording import shown
from jaxmetrics.metrics.rates import prevalence

__all__ = [
    "at_prevalence",
    "binary",
    "label_macro",
    "label_weighted",
    "macro",
    "micro",
    "weighted",
    "weighted_micro",
]


Metric = Callable[..., Array]

A_RATE = "rate, a function of counts, such as jaxmetrics.f1"
A_METRIC = "metric, a function of counts, such as jaxmetrics.f1"


def of_counts(scheme: Callable[..., Array]) -> Callable[..., Array]:
    """Decorate a function `(metric, counts, **options)` to convert and check the counts."""

    @compiled
    @wraps(scheme)
    def call(metric: Metric, counts: ArrayLike, **options: Any) -> Array:
        return scheme(metric, as_counts(counts), **options)

    return call


def macro(rate: Metric, *, classes: Sequence[int] | None = None) -> Metric:
    """Macro-average a per-class rate: the unweighted mean over classes.

    Classes that occur neither as true nor as predicted class are skipped, and so are classes whose
    rate is NaN. If there are no examples, the result is the value that the rate has for 0/0.

    Args:
        rate: a function of a confusion matrix that returns one value per class, such as `f1` or a
            function that you wrote.
        classes: ids of the classes to average over. Default: all classes. Predictions outside of
            `classes` still count as mistakes.

    Returns:
        A function of counts `(..., K, K)` that returns one number per matrix, `(...)`. It passes
        keyword arguments to the rate, as in `macro(f1)(counts, zero_division=np.nan)`.

    Raises:
        TypeError, ValueError: if `classes` contains duplicates or values that are not class ids.
            The returned function raises ValueError if `classes` contains K or more, or if `rate`
            does not return one value per class.

    >>> from jaxmetrics import recall
    >>> macro(recall)([[1, 1, 0], [0, 2, 0], [0, 0, 0]])  # the third class does not occur
    np.float64(0.75)
    >>> macro(recall, classes=[1, 2])([[1, 1, 0], [0, 2, 0], [0, 3, 0]])
    np.float64(0.5)
    >>> macro(recall)
    macro(recall)
    """
    return applied(_macro, rate, A_RATE, **_chosen(classes))


def weighted(rate: Metric, *, classes: Sequence[int] | None = None) -> Metric:
    """Average a per-class rate weighted by support: `sum_i t_i r_i / sum_i t_i`.

    The support t_i is the number of examples of class i, and r_i is the rate. Classes whose rate is
    NaN are skipped. If all remaining classes have support 0, the result is their unweighted mean,
    as in scikit-learn.

    Args:
        rate: a function of a confusion matrix that returns one value per class, such as `f1`.
        classes: ids of the classes to average over. Default: all classes.

    Returns:
        A function of counts `(..., K, K)` that returns one number per matrix, `(...)`. It passes
        keyword arguments to the rate. The errors are the same as in `macro`.

    >>> from jaxmetrics import precision
    >>> weighted(precision)([[1, 1], [0, 6]])
    np.float64(0.8929)
    """
    return applied(_weighted, rate, A_RATE, **_chosen(classes))


def micro(rate: Metric, *, classes: Sequence[int] | None = None) -> Metric:
    """Micro-average a per-class rate: compute the rate from the sum of the 2x2 matrices of all
    classes.

    The 2x2 matrix of a class is its confusion matrix against all other classes, as in
    `one_vs_rest`. By default, micro-averaged precision, recall and F1 all equal accuracy. Classes
    that occur neither as true nor as predicted class are skipped.

    Args:
        rate: a function of a confusion matrix that returns one value per class, such as `f1`.
        classes: ids of the classes whose 2x2 matrices are added. Default: all classes.

    Returns:
        A function of counts `(..., K, K)` that returns one number per matrix, `(...)`. It passes
        keyword arguments to the rate. The errors are the same as in `macro`.

    >>> from jaxmetrics import jaccard
    >>> micro(jaccard)([[8, 2], [1, 9]])  # 17 / (17 + 3 + 3)
    np.float64(0.7391)
    """
    return applied(_micro, rate, A_RATE, **_chosen(classes))


def weighted_micro(rate: Metric) -> Metric:
    """Compute a rate from the sum of the 2x2 matrices of all classes, weighted by class support.

    Let C_ii be the number of correct predictions of class i, t_i the sum of row i and p_i the sum
    of column i. For precision, the result is `sum_i C_ii t_i / sum_i p_i t_i`. For recall, it is
    `sum_i C_ii t_i / sum_i t_i^2`.

    Args:
        rate: a function of a confusion matrix that returns one value per class, such as `f1`.

    Returns:
        A function of counts `(..., K, K)` that returns one number per matrix, `(...)`. It passes
        keyword arguments to the rate.

    >>> from jaxmetrics import recall
    >>> weighted_micro(recall)([[8, 2], [1, 4]])  # (8 * 10 + 4 * 5) / (10^2 + 5^2)
    np.float64(0.8)
    """
    return applied(_weighted_micro, rate, A_RATE)


def binary(rate: Metric, pos_label: int = 1) -> Metric:
    """For a binary problem, turn a per-class rate into the rate of the positive class only.

    Args:
        rate: a function of a confusion matrix that returns one value per class, such as `f1`.
        pos_label: the positive class, 0 or 1.

    Returns:
        A function of counts `(..., 2, 2)` that returns one number per matrix, `(...)`. It passes
        keyword arguments to the rate.

    Raises:
        ValueError: if `pos_label` is not 0 or 1. The returned function raises ValueError if
            `counts` does not have two classes.

    >>> from jaxmetrics import recall
    >>> binary(recall)([[8, 2], [1, 9]]), binary(recall, pos_label=0)([[8, 2], [1, 9]])
    (np.float64(0.9), np.float64(0.8))
    """
    is_id = isinstance(pos_label, int | np.integer) and not isinstance(pos_label, bool)
    if not is_id or pos_label not in (0, 1):
        raise ValueError(
            f"pos_label must be 0 or 1, the row of the positive class in counts, got {pos_label!r}."
            " To count other labels in this order, pass labels=[negative, positive] to"
            " confusion_matrix."
        )
    return applied(_binary, rate, A_RATE, pos_label=int(pos_label))


def at_prevalence(metric: Callable[..., Any], prevalence: ArrayLike) -> Callable[..., Any]:
    """Compute a metric for a population with other class shares: multiply `C_ij` by `π_i n / t_i`.

    Here n is the number of examples, t_i the number of examples of class i, and π_i the share of
    class i in the new population. The recall of each class does not change. For example,
    `at_prevalence(binary(precision), 0.01)` is the precision in a population with 1 % positives,
    even if the counts contain as many positives as negatives. For a confidence interval, pass the
    returned function to `interval`, which treats the shares π as known. Set `stratified=True` if
    the number of examples per class was fixed in advance. Source: Saerens, Latinne and Decaestecker
    (2002), Neural Computation 14, equation 2.

    Args:
        metric: a function of counts `(..., K, K)`.
        prevalence: shares π of the K classes, Python or NumPy numbers with sum 1. For two classes,
            a single number is the share of class 1.

    Returns:
        A function of counts `(..., K, K)` that returns the metric of the rescaled counts. It passes
        keyword arguments to the metric. If a class with a positive share has no examples, its row
        of the rescaled counts is NaN.

    Raises:
        TypeError: if `metric` is not a function.
        ValueError: if shares are negative or do not sum to 1. The returned function raises
            ValueError if `counts` has more or fewer classes than `prevalence`.

    >>> from jaxmetrics import Delta, binary, interval, precision
    >>> counts = [[90, 10], [20, 80]]
    >>> screening = at_prevalence(binary(precision), 0.01)
    >>> binary(precision)(counts).round(3), screening(counts).round(3)  # 0.8 / (0.8 + 99 * 0.1)
    (np.float64(0.889), np.float64(0.075))
    >>> interval(screening, counts, method=Delta("logit"), stratified=True)
    0.075 [0.043, 0.128]
    """
    shares = np.asarray(as_float(prevalence, "prevalence"), float)
    shares = np.stack([1 - shares, shares]) if shares.ndim == 0 else shares
    if shares.ndim != 1 or not (shares >= 0).all() or not abs(shares.sum() - 1) < 1e-3:
        raise ValueError(
            "prevalence must contain the shares of all K classes, which must not be negative and"
            f" must sum to 1, got {prevalence!r}. Divide numbers of examples, or areas, by their"
            " sum. If there are two classes, prevalence may also be the share of class 1."
        )
    named = tuple((shares / shares.sum()).tolist())
    return applied(_at_prevalence, metric, A_METRIC, prevalence=named)


@of_counts
def _at_prevalence(
    metric: Callable[..., Any], counts: Array, prevalence: tuple[float, ...], **options: Any
) -> Any:
    if counts.shape[-1] != len(prevalence):
        raise ValueError(
            f"prevalence contains shares of {len(prevalence)} classes, but counts has the shape"
            f" {counts.shape}, which means {counts.shape[-1]} classes."
        )
    shares = np.array(prevalence)[:, None]
    expected = shares * counts.sum((-2, -1), keepdims=True)
    rows = divide(counts, counts.sum(-1, keepdims=True), xp.nan)
    return metric(xp.where(shares > 0, expected.astype(counts.dtype) * rows, 0), **options)


def label_macro(rate: Metric) -> Metric:
    """Macro-average a rate over the labels of a multilabel problem: `sum_l r_l / L`.

    Each of the L labels has a 2x2 confusion matrix: class 0 means that the label is absent, class 1
    that it is present. The rate r_l is the rate of class 1. Labels whose rate is NaN are skipped.
    Labels that do not occur are included, as in scikit-learn.

    Args:
        rate: a function of a confusion matrix that returns one value per class, such as `f1`.

    Returns:
        A function of counts `(..., L, 2, 2)` from `multilabel_confusion_matrix`. It returns one
        number, `(...)`, and passes keyword arguments to the rate. For the micro average, call
        `binary(rate)` with `counts.sum(-3)`. The labels of an example may be correlated. For a
        confidence interval, treat each example as a cluster of L labels, as below.

    Raises:
        ValueError: raised by the returned function if `counts` does not have shape
            `(..., L, 2, 2)`, or if `rate` does not return two values for each matrix.

    >>> from jaxmetrics import recall
    >>> counts = [[[5, 1], [1, 3]], [[6, 2], [1, 1]]]
    >>> label_macro(recall)(counts), label_weighted(recall)(counts)  # 3/4 and 1/2, of 4 and 2
    (np.float64(0.625), np.float64(0.6666667))

    Here an axis is added to `y_true` and `y_pred`, so that each example has its own L matrices, in
    an array of shape `(n, L, 2, 2)`. `cluster_axis=-4` says that each example is a cluster:

    >>> import numpy as np, jaxmetrics as jm
    >>> rng = np.random.default_rng(0)
    >>> y_true = rng.integers(0, 2, (100, 3))
    >>> y_pred = y_true ^ (rng.random((100, 3)) < 0.1)
    >>> tables = jm.multilabel_confusion_matrix(y_true[:, None, :], y_pred[:, None, :])
    >>> jm.interval(label_macro(recall), tables, cluster_axis=-4)
    0.896 [0.832, 0.938]
    """
    return applied(_label_macro, rate, A_RATE)


def label_weighted(rate: Metric) -> Metric:
    """Average a rate over the labels of a multilabel problem, weighted by support.

    The support of a label is the number of examples that have the label. Each label has a 2x2
    confusion matrix, in which class 1 means that the label is present. The rate of class 1 is
    averaged. Labels whose rate is NaN are skipped.

    Args:
        rate: a function of a confusion matrix that returns one value per class, such as `f1`.

    Returns:
        A function of counts `(..., L, 2, 2)` that returns one number, `(...)`.

    >>> from jaxmetrics import precision
    >>> label_weighted(precision)([[[5, 1], [1, 3]], [[6, 2], [1, 1]]])  # (4 3/4 + 2 1/3) / 6
    np.float64(0.6111111)
    """
    return applied(_label_weighted, rate, A_RATE)


@of_equal_classes
@of_counts
def _macro(
    rate: Metric, counts: Array, classes: tuple[int, ...] | None = None, **options: Any
) -> Array:
    chosen = _mask(classes, counts)
    occurs = _occurs(counts) * chosen
    # If there are no examples, all classes have the same weight.
    occurs = xp.where((occurs != 0).any(-1, keepdims=True), occurs, chosen)
    return _mean(xp.where(occurs != 0, _per_class(rate, counts, **options), xp.nan), occurs)


@of_counts
def _weighted(
    rate: Metric, counts: Array, classes: tuple[int, ...] | None = None, **options: Any
) -> Array:
    chosen, rates = _mask(classes, counts), _per_class(rate, counts, **options)
    return _mean(xp.where(chosen != 0, rates, xp.nan), prevalence(counts) * chosen)


@of_counts
def _micro(
    rate: Metric, counts: Array, classes: tuple[int, ...] | None = None, **options: Any
) -> Array:
    pooled = _pooled(counts, _occurs(counts) * _mask(classes, counts))
    return _per_class(rate, pooled, **options)[..., 1]


@reading(labels=True)
@of_counts
def _label_macro(rate: Metric, counts: Array, **options: Any) -> Array:
    rates = _of_labels(rate, counts, **options)
    return _mean(rates, xp.ones_like(rates))


@reading(labels=True)
@of_counts
def _label_weighted(rate: Metric, counts: Array, **options: Any) -> Array:
    return _mean(_of_labels(rate, counts, **options), counts[..., 1, :].sum(-1))


def _of_labels(rate: Metric, counts: Array, **options: Any) -> Array:
    if counts.ndim < 3 or counts.shape[-2:] != (2, 2):
        raise ValueError(
            "counts must have shape (..., L, 2, 2), with one matrix of two rows and two columns"
            f" for each of L labels, got {counts.shape}."
        )
    return _per_class(rate, counts, **options)[..., 1]


@of_counts
def _weighted_micro(rate: Metric, counts: Array, **options: Any) -> Array:
    return _per_class(rate, _pooled(counts, prevalence(counts)), **options)[..., 1]


@of_counts
def _binary(rate: Metric, counts: Array, pos_label: int, **options: Any) -> Array:
    if counts.shape[-1] != 2:
        raise ValueError(
            "binary needs counts of shape (..., 2, 2), which are counts of two classes, got shape"
            f" {counts.shape}. If there are more classes, use an average over classes, such as"
            " macro(rate)."
        )
    return _per_class(rate, counts, **options)[..., pos_label]


def _chosen(classes: Sequence[int] | None) -> dict[str, Any]:
    """Check `classes`, and return it as a keyword argument, or no argument if it is None."""
    if classes is None:
        return {}
    ids = on_host(classes, "classes")
    if ids.ndim == 1 and not ids.size:
        raise ValueError(
            "classes must contain at least one class, but it is empty. Pass classes=None for the"
            " average over all classes."
        )
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise TypeError(f"classes must be a list of class ids, got {shown(classes)}.")
    if ids.min() < 0 or len(np.unique(ids)) < len(ids):
        raise ValueError(f"classes must be distinct ids >= 0, got {classes!r}.")
    return {"classes": tuple(ids.tolist())}


def _mask(classes: tuple[int, ...] | None, counts: Array) -> Array:
    """Return 1 for each class to average over and 0 for all others."""
    k = counts.shape[-1]
    if classes is None:
        return np.ones(k, np.int8)
    if max(classes) >= k:
        raise ValueError(
            f"The ids in classes must be less than the number of classes, {k}, got {list(classes)}."
        )
    return np.isin(np.arange(k), classes).astype(np.int8)


def _occurs(counts: Array) -> Array:
    """Return 1.0 for each class that occurs as true or predicted class, and 0.0 for all others.

    The value is NaN for a class with NaN in its counts, so that averages become NaN, too.
    """
    occurrences = counts.sum(-1) + counts.sum(-2)
    return xp.where(xp.isnan(occurrences), xp.nan, (occurrences != 0).astype(counts.dtype))


def _pooled(counts: Array, class_weights: Array) -> Array:
    """Add the weighted one-versus-rest matrices of all classes; the sum has shape `(..., 2, 2)`."""
    return tables(*((cell * class_weights).sum(-1) for cell in cells(proportions(counts))))


def _per_class(rate: Metric, counts: Array, **options: Any) -> Array:
    """Compute `rate` and check that it returns one value per class."""
    values = xp.asarray(rate(counts, **options))
    k = counts.shape[-1]
    if values.ndim < counts.ndim - 1 or values.shape[-1] != k:
        name = getattr(rate, "__name__", repr(rate))
        raise ValueError(
            "An average over classes needs a metric that returns one value for each class. For"
            f" counts of shape {counts.shape}, {name} should return an array of shape (..., {k}),"
            f" but it returned {values.shape}."
        )
    return values


def _mean(rates: Array, class_weights: Array) -> Array:
    """Average over classes and skip NaN; if all remaining weights are 0, equal weights replace
    them.

    A weight is NaN if the class has NaN in its counts. Such a class is not skipped.
    """
    defined = ~xp.isnan(rates)
    w = xp.where(defined, xp.broadcast_to(class_weights, rates.shape), 0)
    w = xp.where((w != 0).any(-1, keepdims=True), w, defined.astype(w.dtype))
    mean = divide((xp.where(defined, rates, 0) * w).sum(-1), w.sum(-1), xp.nan)
    return xp.where(xp.isnan(class_weights).any(-1), xp.nan, mean)
