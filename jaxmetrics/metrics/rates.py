"""Per-class rates such as recall: functions of counts that return one value per class."""

from __future__ import annotations

from jaxmetrics._arguments.single import ArrayLike, as_counts, as_float, refuse_where
from jaxmetrics._numerics.arithmetic import divide, divide_by_geometric_mean
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics._sums.cell_sums import cells, proportions, tp_fp_fn

__all__ = [
    "diagnostic_odds_ratio",
    "f1",
    "f_beta",
    "false_discovery_rate",
    "false_negative_rate",
    "false_omission_rate",
    "false_positive_rate",
    "fowlkes_mallows",
    "informedness",
    "jaccard",
    "lift",
    "markedness",
    "negative_likelihood_ratio",
    "negative_predictive_value",
    "net_benefit",
    "p4",
    "positive_likelihood_ratio",
    "precision",
    "prevalence",
    "recall",
    "selection_rate",
    "specificity",
    "tversky",
]


@compiled
def recall(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute recall (sensitivity, true positive rate), `TP / (TP + FN)`, in [0, 1].

    For a map, the recall of a class is called its producer's accuracy.
    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> recall([[8, 2], [1, 9]])
    array([0.8, 0.9])
    """
    tp, _, fn = tp_fp_fn(as_counts(counts))
    return divide(tp, tp + fn, zero_division)


@compiled
def precision(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute precision (positive predictive value), `TP / (TP + FP)`, in [0, 1].

    For a map, the precision of a class is called its user's accuracy.
    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> precision([[8, 2], [0, 6]])
    array([1.  , 0.75])
    """
    tp, fp, _ = tp_fp_fn(as_counts(counts))
    return divide(tp, tp + fp, zero_division)


@compiled
def specificity(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute specificity (true negative rate), `TN / (TN + FP)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> specificity([[8, 2], [1, 9]])
    array([0.9, 0.8])
    """
    _, fp, _, tn = cells(as_counts(counts))
    return divide(tn, tn + fp, zero_division)


@compiled
def negative_predictive_value(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the negative predictive value (NPV), `TN / (TN + FN)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> negative_predictive_value([[8, 2], [0, 6]])
    array([0.75, 1.  ])
    """
    _, _, fn, tn = cells(as_counts(counts))
    return divide(tn, tn + fn, zero_division)


@compiled
def false_positive_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the false positive rate (fall-out), `FP / (FP + TN)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> false_positive_rate([[8, 2], [1, 9]])
    array([0.1, 0.2])
    """
    _, fp, _, tn = cells(as_counts(counts))
    return divide(fp, fp + tn, zero_division)


@compiled
def false_negative_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the false negative rate (miss rate), `FN / (FN + TP)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> false_negative_rate([[8, 2], [1, 9]])
    array([0.2, 0.1])
    """
    tp, _, fn = tp_fp_fn(as_counts(counts))
    return divide(fn, tp + fn, zero_division)


@compiled
def false_discovery_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the false discovery rate, `FP / (FP + TP)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> false_discovery_rate([[8, 2], [0, 6]])
    array([0.  , 0.25])
    """
    tp, fp, _ = tp_fp_fn(as_counts(counts))
    return divide(fp, tp + fp, zero_division)


@compiled
def false_omission_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the false omission rate, `FN / (FN + TN)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> false_omission_rate([[8, 2], [0, 6]])
    array([0.25, 0.  ])
    """
    _, _, fn, tn = cells(as_counts(counts))
    return divide(fn, fn + tn, zero_division)


@compiled
def tversky(
    counts: ArrayLike, alpha: ArrayLike, beta: ArrayLike, *, zero_division: ArrayLike = 0.0
) -> Array:
    """Compute the Tversky index, `TP / (TP + alpha FP + beta FN)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`. The weights `alpha` and `beta` are at
    least 0: a negative weight raises an error, or gives NaN for JAX arrays. Arrays of one `alpha`
    or `beta` per confusion matrix broadcast against the leading axes `...` of `counts`. With alpha
    = beta = 1 the Tversky index is the Jaccard index, and with alpha = beta = 1/2 it is F1. Source:
    Tversky (1977), Features of similarity.

    >>> tversky([[8, 2], [0, 6]], alpha=0.5, beta=0.0)
    array([1.       , 0.857])
    """
    weights = _not_negative(alpha, "alpha"), _not_negative(beta, "beta")
    return _tversky(counts, *weights, zero_division)


def _not_negative(x: ArrayLike, name: str) -> Array:
    array = as_float(x, name)
    refuse_where(lambda x: x < 0, array, name, "but it must be at least 0.")
    return xp.where(array < 0, xp.nan, array)


def _tversky(
    counts: ArrayLike, alpha: ArrayLike, beta: ArrayLike, zero_division: ArrayLike
) -> Array:
    a, b = as_float(alpha, "alpha")[..., None], as_float(beta, "beta")[..., None]
    tp, fp, fn, a, b = xp.broadcast_arrays(*tp_fp_fn(as_counts(counts)), a, b)
    return divide(tp, tp + a * fp + b * fn, zero_division)


@compiled
def f_beta(counts: ArrayLike, beta: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the F-beta score, in which recall is `beta` times as important as precision.

    The formula is `(1 + beta^2) TP / ((1 + beta^2) TP + beta^2 FN + FP)`, in [0, 1]. If `beta` is
    0, the score equals precision. If `beta` is infinite, the score equals recall. An array of one
    `beta` per confusion matrix broadcasts against the leading axes `...` of `counts`. `counts` is a
    confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`. If the
    denominator is 0, the value is `zero_division`. Source: van Rijsbergen (1979), Information
    Retrieval, ch. 7.

    >>> f_beta([[8, 2], [0, 6]], beta=2.0)
    array([0.8333333, 0.9375   ])
    """
    b = _not_negative(beta, "beta")
    # equals beta^2 / (1 + beta^2), but is correct for infinity and not rounded to 0 for small beta
    weight_of_fn = xp.where(b == 0, 0, 1 / (1 + xp.where(b == 0, 1, b) ** -2.0))
    return _tversky(counts, 1 / (1 + b**2), weight_of_fn, zero_division)


@compiled
def f1(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the F1 score (Dice coefficient), `2 TP / (2 TP + FP + FN)`, in [0, 1].

    F1 is the harmonic mean of precision and recall. `counts` is a confusion matrix `(..., K, K)`.
    Returns one value per class, of shape `(..., K)`. If the denominator is 0, the value is
    `zero_division`.

    >>> f1([[6, 2], [1, 1]])
    array([0.8, 0.4])
    """
    return _tversky(counts, 0.5, 0.5, zero_division)


@compiled
def jaccard(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the Jaccard index (intersection over union, IoU), `TP / (TP + FP + FN)`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`.

    >>> jaccard([[6, 1], [1, 2]])
    array([0.75, 0.5 ])
    """
    return _tversky(counts, 1.0, 1.0, zero_division)


@compiled
def fowlkes_mallows(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the Fowlkes–Mallows index, `TP / sqrt((TP + FP)(TP + FN))`, in [0, 1].

    The index is the geometric mean of precision and recall. `counts` is a confusion matrix
    `(..., K, K)`. Returns one value per class, of shape `(..., K)`. If the denominator is 0, the
    value is `zero_division`. Source: Fowlkes and Mallows (1983), A method for comparing two
    hierarchical clusterings, JASA 78.

    >>> fowlkes_mallows([[4, 0], [5, 7]])
    array([0.6666667, 0.7637626])
    """
    tp, fp, fn = tp_fp_fn(proportions(counts))
    return divide_by_geometric_mean(tp, tp + fp, tp + fn, zero_division)


@compiled
def p4(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute P4, the harmonic mean of precision, recall, specificity and NPV, in [0, 1].

    The formula is `4 TP TN / (4 TP TN + (TP + TN)(FP + FN))`. `counts` is a confusion matrix
    `(..., K, K)`. Returns one value per class, of shape `(..., K)`. If the denominator is 0, the
    value is `zero_division`. Source: Sitarz (2022), Extending F1 metric, probabilistic approach.

    >>> p4([[6, 2], [1, 1]])
    array([0.533, 0.533])
    """
    tp, fp, fn, tn = cells(proportions(counts))
    return divide(4 * tp * tn, 4 * tp * tn + (tp + tn) * (fp + fn), zero_division)


@compiled
def informedness(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute informedness (Youden's J), recall + specificity - 1, in [-1, 1].

    The formula is `(TP TN - FP FN) / ((TP + FN)(FP + TN))`. `counts` is a confusion matrix
    `(..., K, K)`. Returns one value per class, of shape `(..., K)`. If the denominator is 0, the
    value is `zero_division`. Source: Powers (2011), Evaluation: from precision, recall and
    F-measure to ROC, informedness, markedness.

    >>> informedness([[8, 2], [1, 9]])
    array([0.7, 0.7])
    """
    tp, fp, fn, tn = cells(proportions(counts))
    return divide(tp * tn - fp * fn, (tp + fn) * (fp + tn), zero_division)


@compiled
def markedness(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute markedness, precision + NPV - 1, in [-1, 1].

    The formula is `(TP TN - FP FN) / ((TP + FP)(FN + TN))`. `counts` is a confusion matrix
    `(..., K, K)`. Returns one value per class, of shape `(..., K)`. If the denominator is 0, the
    value is `zero_division`. Source: Powers (2011), Evaluation: from precision, recall and
    F-measure to ROC, informedness, markedness.

    >>> markedness([[8, 2], [0, 6]])
    array([0.75, 0.75])
    """
    tp, fp, fn, tn = cells(proportions(counts))
    return divide(tp * tn - fp * fn, (tp + fp) * (fn + tn), zero_division)


@compiled
def positive_likelihood_ratio(counts: ArrayLike, *, zero_division: ArrayLike = xp.nan) -> Array:
    """Compute the positive likelihood ratio (LR+), recall / false positive rate, at least 0.

    The formula is `TP (FP + TN) / ((TP + FN) FP)`. `counts` is a confusion matrix `(..., K, K)`.
    Returns one value per class, of shape `(..., K)`. If the denominator is 0, the value is
    `zero_division`. The default is NaN, as in scikit-learn.

    >>> positive_likelihood_ratio([[8, 2], [1, 9]])
    array([8. , 4.5])
    """
    tp, fp, fn, tn = cells(proportions(counts))
    return divide(tp * (fp + tn), (tp + fn) * fp, zero_division)


@compiled
def negative_likelihood_ratio(counts: ArrayLike, *, zero_division: ArrayLike = xp.nan) -> Array:
    """Compute the negative likelihood ratio (LR-), false negative rate / specificity, at least 0.

    The formula is `FN (FP + TN) / ((TP + FN) TN)`. `counts` is a confusion matrix `(..., K, K)`.
    Returns one value per class, of shape `(..., K)`. If the denominator is 0, the value is
    `zero_division`. The default is NaN, as in scikit-learn.

    >>> negative_likelihood_ratio([[8, 2], [1, 4]])
    array([0.25, 0.25])
    """
    tp, fp, fn, tn = cells(proportions(counts))
    return divide(fn * (fp + tn), (tp + fn) * tn, zero_division)


@compiled
def diagnostic_odds_ratio(counts: ArrayLike, *, zero_division: ArrayLike = xp.nan) -> Array:
    """Compute the diagnostic odds ratio, `TP TN / (FP FN)`, at least 0.

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If the denominator is 0, the value is `zero_division`. The default is NaN. Source: Glas et al.
    (2003), The diagnostic odds ratio: a single indicator of test performance.

    >>> diagnostic_odds_ratio([[8, 2], [1, 9]])
    array([36., 36.])
    """
    tp, fp, fn, tn = cells(proportions(counts))
    return divide(tp * tn, fp * fn, zero_division)


@compiled
def prevalence(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute prevalence, the fraction of examples of each class, `(TP + FN) / n`, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`.
    If there are no examples, the value is `zero_division`.

    >>> prevalence([[6, 2], [1, 1]])
    array([0.8, 0.2])
    """
    support = as_counts(counts).sum(-1)
    return divide(support, support.sum(-1, keepdims=True), zero_division)


@compiled
def selection_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the selection rate, the fraction of examples predicted as each class, in [0, 1].

    The formula is `(TP + FP) / n`. `counts` is a confusion matrix `(..., K, K)`. Returns one value
    per class, of shape `(..., K)`. If there are no examples, the value is `zero_division`.

    >>> selection_rate([[6, 2], [1, 1]])
    array([0.7, 0.3])
    """
    predicted = as_counts(counts).sum(-2)
    return divide(predicted, predicted.sum(-1, keepdims=True), zero_division)


@compiled
def lift(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute lift, `precision / prevalence`, which is at least 0. Random guessing has lift 1.

    The formula is `TP n / ((TP + FP)(TP + FN))`, where n is the number of examples. `counts` is a
    confusion matrix `(..., K, K)`. Returns one value per class, of shape `(..., K)`. If the
    denominator is 0, the value is `zero_division`. If all examples are predicted as the class, lift
    is 1; its interval contains other values, because new examples may be predicted otherwise.
    Source: Brin, Motwani, Ullman and Tsur (1997), Dynamic itemset counting and implication rules,
    where lift is called interest.

    >>> lift([[5, 0], [1, 2]])
    array([1.333, 2.667])
    """
    tp, fp, fn = tp_fp_fn(proportions(counts))
    return divide(tp, (tp + fp) * (tp + fn), zero_division)


@compiled
def net_benefit(counts: ArrayLike, threshold: ArrayLike) -> Array:
    """Compute the net benefit at threshold t, `TP / n - FP / n * t / (1 - t)`.

    The unit is true positives per example. `counts` is a confusion matrix `(..., K, K)`. Returns
    one value per class, of shape `(..., K)`. If there are no examples, the value is 0. The
    `threshold` t in [0, 1) is the smallest probability of the class at which acting is worthwhile,
    for example treating a patient. If t is 1, the value is -inf or NaN.

    A decision curve shows the net benefit as a function of t. For labels y, probabilities p and an
    array of thresholds t, use
    `binary(net_benefit)(confusion_matrix_at_thresholds(y, p, t), threshold=t)`. Source: Vickers and
    Elkin (2006), Decision curve analysis, Medical Decision Making 26.

    >>> net_benefit([[8, 2], [0, 6]], threshold=0.5)
    array([0.5 , 0.25])
    """
    tp, fp, _ = tp_fp_fn(proportions(counts))
    tp, fp, t = xp.broadcast_arrays(tp, fp, as_float(threshold, "threshold")[..., None])
    return tp - fp * t / (1 - t)
