"""Metrics that return one number per confusion matrix, such as accuracy."""

from __future__ import annotations

from jaxmetrics._applied import of_equal_classes
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import ArrayLike, as_counts, as_square, check_flag
from jaxmetrics._numerics.arithmetic import (
    divide,
    divide_by_geometric_mean,
    safe_log,
    safe_sqrt,
    weighted_sum,
)
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, Arrays, xp
from jaxmetrics._sums.cell_sums import (
    cells,
    dependence,
    diagonal,
    off_diagonal,
    others,
    outside,
    proportions,
    rest_of_column,
    rest_of_row,
    sum_of_rows,
)
from jaxmetrics.metrics.rates import recall

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "confusion_entropy",
    "cramers_v",
    "error_rate",
    "expected_cost",
    "g_mean",
    "matthews_corrcoef",
    "mutual_information",
    "naive_accuracy",
    "no_information_rate",
    "normalized_mutual_information",
]


@compiled
def accuracy(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute accuracy, the fraction of correct predictions, `sum_i C_ii / n`, in [0, 1].

    `counts` is a confusion matrix C of shape `(..., K, K)`. Returns one number per matrix, of shape
    `(...)`. If there are no examples, the value is `zero_division`.

    >>> accuracy([[8, 2], [1, 9]])
    np.float64(0.85)
    """
    right, wrong = _right_and_wrong(counts)
    return divide(right, right + wrong, zero_division)


naive_accuracy = accuracy


@compiled
def error_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the error rate, the fraction of wrong predictions, `sum_{i != j} C_ij / n`, in
    [0, 1].

    The error rate equals 1 - accuracy. It is also called zero-one loss. `counts` is a confusion
    matrix C of shape `(..., K, K)`. Returns one number per matrix, of shape `(...)`. If there are
    no examples, the value is `zero_division`.

    >>> error_rate([[8, 2], [1, 9]])
    np.float64(0.15)
    """
    right, wrong = _right_and_wrong(counts)
    return divide(wrong, right + wrong, zero_division)


def _right_and_wrong(counts: ArrayLike) -> Arrays:
    c = as_counts(counts)
    return diagonal(c).sum(-1), off_diagonal(c).sum((-2, -1))


@compiled
def no_information_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the no-information rate: the accuracy of always predicting the most common class.

    The formula is `max_i t_i / n`, in [0, 1], where t_i is the sum of row i. `counts` is a
    confusion matrix `(..., K, K)`. Returns one number per matrix, of shape `(...)`. If there are no
    examples, the value is `zero_division`.

    The rate is an estimate. If several classes may be the most common one, it is too high on
    average, and its interval lies too high. To compare accuracy with it, use `no_information_test`,
    because both come from the same examples.

    >>> no_information_rate([[5, 1], [3, 3]])
    np.float64(0.5)
    """
    support = as_counts(counts).sum(-1)
    return divide(support.max(-1), support.sum(-1), zero_division)


@of_equal_classes
@compiled
def balanced_accuracy(counts: ArrayLike, *, adjusted: bool = False) -> Array:
    """Compute balanced accuracy, the unweighted mean of the recalls of all classes, in [0, 1].

    `counts` is a confusion matrix `(..., K, K)`. Returns one number per matrix, of shape `(...)`.
    Classes without examples are skipped. If there are no examples, the value is NaN. If `adjusted`
    is True, the balanced accuracy b is rescaled to `(b - 1/k) / (1 - 1/k)`, where k is the number
    of classes with examples. The value is then 0 for random guessing, and NaN if k = 1. Source:
    Brodersen, Ong, Stephan and Buhmann (2010), The balanced accuracy and its posterior
    distribution, ICPR.

    >>> balanced_accuracy([[8, 2], [1, 9]]), balanced_accuracy([[8, 2], [1, 9]], adjusted=True)
    (np.float64(0.85), np.float64(0.7))
    """
    check_flag(adjusted, "adjusted")
    rates, in_truth, k = _recalls_in_truth(counts)
    balanced = divide(xp.where(in_truth, rates, 0).sum(-1), k, xp.nan)
    return divide(balanced * k - 1, k - 1, xp.nan) if adjusted else balanced


@compiled
def g_mean(counts: ArrayLike) -> Array:
    """Compute the geometric mean of the recalls (G-mean), `(prod_i recall_i)^(1/k)`, in [0, 1].

    The product is over the k classes with examples. For two classes G-mean is
    `sqrt(recall * specificity)`. `counts` is a confusion matrix `(..., K, K)`. Returns one number
    per matrix, of shape `(...)`. If there are no examples, the value is NaN. Source: Kubat and
    Matwin (1997), Addressing the curse of imbalanced training sets, ICML.

    >>> g_mean([[9, 7], [0, 4]])
    np.float64(0.75)
    """
    rates, in_truth, k = _recalls_in_truth(counts)
    mean_log = divide(safe_log(xp.where(in_truth, rates, 1)).sum(-1), k, xp.nan)
    return xp.where((in_truth & (rates == 0)).any(-1), 0, xp.exp(mean_log))


def _recalls_in_truth(counts: ArrayLike) -> Arrays:
    """Return the recalls, a mask of the classes with examples, and the number of such classes."""
    c = as_counts(counts)
    in_truth = c.sum(-1) != 0
    return recall(c), in_truth, in_truth.sum(-1).astype(c.dtype)


@compiled
def matthews_corrcoef(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the Matthews correlation coefficient (MCC, R_K), in [-1, 1].

    The formula is `(c s - sum_k t_k p_k) / sqrt((s^2 - sum_k p_k^2) (s^2 - sum_k t_k^2))`. Here s
    is the number of examples, and c the number of correct predictions. t_k examples have true class
    k, and p_k examples are predicted as class k. For two classes MCC is the phi coefficient.
    `counts` is a confusion matrix `(..., K, K)`. Returns one number per matrix, of shape `(...)`.
    If only one class is predicted, or only one class has examples, the value is `zero_division`.
    Source: Gorodkin (2004), Comparing two K-category assignments by a K-category correlation
    coefficient.

    >>> matthews_corrcoef([[8, 2], [1, 9]]), matthews_corrcoef([[0, 75], [0, 25]])
    (np.float64(0.7035), np.float64(0.0))
    """
    tp, fp, fn, tn = cells(proportions(counts))
    covariance = (tp * tn - fp * fn).sum(-1)
    spread_pred = ((tp + fp) * (fn + tn)).sum(-1)
    spread_true = ((tp + fn) * (fp + tn)).sum(-1)
    return divide_by_geometric_mean(covariance, spread_pred, spread_true, zero_division)


@compiled
def cramers_v(counts: ArrayLike) -> Array:
    """Compute Cramér's V, `sqrt(chi^2 / n / (min(r, c) - 1))`, in [0, 1].

    Cramér's V measures the association of true and predicted classes. Here chi^2 is Pearson's
    chi-squared statistic of `counts`, and r and c are the numbers of rows and columns whose sum is
    not 0. `counts` is a confusion matrix `(..., K, K)`. Returns one number per matrix, of shape
    `(...)`. If r or c is below 2, the value is NaN. Source: Cramér (1946), Mathematical Methods of
    Statistics, ch. 21.

    >>> cramers_v([[8, 2], [1, 9]])
    np.float64(0.7035)
    """
    p = proportions(counts)
    t, q = p.sum(-1), p.sum(-2)

    def terms(p: Array, _: Array) -> Array:
        return divide(dependence(p) ** 2, p.sum(-1, keepdims=True) * q[..., None, :])

    chi2_per_example = sum_of_rows(terms, p).sum(-1)
    num_occurring = xp.minimum((t != 0).sum(-1), (q != 0).sum(-1))
    return safe_sqrt(
        divide(chi2_per_example, xp.maximum(num_occurring - 1, 0).astype(p.dtype), xp.nan)
    )


@compiled
def mutual_information(counts: ArrayLike) -> Array:
    """Compute the mutual information of true and predicted classes, in nats, at least 0.

    The formula is `sum_ij p_ij log(p_ij / (t_i q_j))`, where `p = counts / n` has row sums t and
    column sums q. `counts` is a confusion matrix `(..., K, K)`. Returns one number per matrix, of
    shape `(...)`. Source: Shannon (1948), A mathematical theory of communication.

    >>> mutual_information([[5, 0], [0, 5]])  # log 2
    np.float64(0.6931)
    """
    p = proportions(counts)
    q = p.sum(-2)

    def terms(p: Array, _: Array) -> Array:
        expected = p.sum(-1, keepdims=True) * q[..., None, :]
        u, r = (
            divide(p, expected),
            divide(dependence(p), expected),
        )  # equals u - 1, but without cancellation
        # Mutual information equals the sum of expected * (u log u - r), whose terms are all >= 0.
        # For small |r|, u log u - r would cancel, so we use its series r^2 sum_k (-r)^k / ((k +
        # 1)(k + 2)): for |r| < 0.1, 14 terms have an error of 1e-16.
        near = abs(r) < 0.1
        small_r = xp.where(near, r, 0)
        series = xp.zeros_like(r)
        for k in reversed(range(14)):
            series = 1 / ((k + 1) * (k + 2)) - small_r * series
        return expected * xp.where(near, small_r**2 * series, u * safe_log(u) - r)

    return sum_of_rows(terms, p).sum(-1)


@compiled
def normalized_mutual_information(counts: ArrayLike) -> Array:
    """Compute the normalised mutual information of true and predicted classes, in [0, 1].

    The formula is `I / ((H(t) + H(q)) / 2)`. Here I is the mutual information, t and q are the row
    and column sums of `counts / n`, and `H(t) = -sum t log t` is the entropy. `counts` is a
    confusion matrix `(..., K, K)`. Returns one number per matrix, of shape `(...)`. If all examples
    are in one cell, the value is 1, as in scikit-learn. Source: Kvålseth (1987), Entropy and
    correlation, IEEE Transactions on Systems, Man and Cybernetics 17.

    >>> normalized_mutual_information([[5, 0], [0, 5]])
    np.float64(1.0)
    >>> normalized_mutual_information([[4, 1], [1, 4]])
    np.float64(0.2780719)
    """
    p = proportions(counts)
    mean_entropy = (_entropy(p.sum(-1)) + _entropy(p.sum(-2))) / 2
    return divide(mutual_information(p), mean_entropy, 1.0)


def _entropy(p: Array) -> Array:
    """Return `-sum p log p`; if p is near 1, log p is computed from the sum of all other values."""
    is_top = p.real > 0.5
    rest = xp.where(is_top, others(p), 0)
    return -(p * xp.where(is_top, xp.log1p(-rest), safe_log(p))).sum(-1)


@compiled
def confusion_entropy(counts: ArrayLike) -> Array:
    """Compute the confusion entropy (CEN), which is high if mistakes are spread over many cells.

    The formula is `sum_j s_j / (2 n) * CEN_j`, where s_j is the sum of row j and column j. CEN_j is
    the sum of `-x log x` over `x = C_jl / s_j` and `x = C_lj / s_j` for all classes l != j. The
    base of the logarithm is `2 (k - 1)` if k classes occur. `counts` is a confusion matrix C of
    shape `(..., K, K)`. Returns one number per matrix, of shape `(...)`. The value is 0 if there
    are no mistakes, and at most 1 if there are three or more classes. Source: Wei, Yuan, Hu and
    Wang (2010), A novel measure for evaluating classifiers, Expert Systems with Applications 37.

    >>> confusion_entropy([[4, 1, 0], [0, 5, 0], [1, 0, 4]])
    np.float64(0.2212)
    """
    p = proportions(counts)
    t, q = p.sum(-1), p.sum(-2)

    def terms(p: Array, classes: Array) -> Array:
        # If x = mistakes / (mistakes + rest), then -log x = log(1 + rest / mistakes).
        mistakes = outside(classes, p)
        rest_in_row = rest_of_row(p) + q[..., classes, None]
        rest_in_column = rest_of_column(p) + t[..., None, :]
        spread = sum(xp.log1p(divide(x, mistakes)) for x in (rest_in_row, rest_in_column))
        return mistakes * spread

    k = (t + q != 0).sum(-1).astype(p.dtype)
    return divide(sum_of_rows(terms, p).sum(-1) / 2, xp.log(xp.maximum(2 * (k - 1), 1)))


@compiled
def expected_cost(counts: ArrayLike, cost: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the mean cost per example, `sum_ij C_ij cost_ij / n`, in the units of `cost`.

    `cost[i][j]` is the cost of predicting class j for an example of class i. `counts` is a
    confusion matrix C of shape `(..., K, K)`. Returns one number per matrix, of shape `(...)`. If
    there are no examples, the value is `zero_division`. Raises ValueError if `cost` does not have
    shape `(K, K)`. Source: Elkan (2001), The foundations of cost-sensitive learning, IJCAI.

    >>> cost = [[0.0, 1.0], [10.0, 0.0]]  # a false negative costs as much as ten false positives
    >>> expected_cost([[8, 2], [1, 9]], cost)
    np.float64(0.6)
    """
    check_order(counts=counts, cost=cost)
    c = as_counts(counts)
    total_cost = weighted_sum(c, as_square(cost, c.shape[-1], "cost"))
    return divide(total_cost, c.sum((-2, -1)), zero_division)
