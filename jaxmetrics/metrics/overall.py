"""One number per matrix: `(..., K, K)` to `(...)`."""

from __future__ import annotations

from jaxmetrics._arithmetic import (
    divide,
    divide_by_geometric_mean,
    safe_log,
    safe_sqrt,
    weighted_sum,
)
from jaxmetrics._cell_sums import (
    cells,
    dependence,
    diagonal,
    off_diagonal,
    proportions,
    rest_of_column,
    rest_of_row,
)
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike, as_counts, as_square
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
]


@compiled
def accuracy(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Fraction of correct predictions, `sum_i C_ii / n`, in [0, 1]; also called naive accuracy.

    >>> accuracy([[8, 2], [1, 9]])
    np.float64(0.85)
    """
    right, wrong = _right_and_wrong(counts)
    return divide(right, right + wrong, zero_division)


naive_accuracy = accuracy


@compiled
def error_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Fraction of wrong predictions (zero-one loss, Hamming loss of single labels),
    `sum_{i != j} C_ij / n`, in [0, 1].

    >>> error_rate([[8, 2], [1, 9]])
    np.float64(0.15)
    """
    right, wrong = _right_and_wrong(counts)
    return divide(wrong, right + wrong, zero_division)


def _right_and_wrong(counts: ArrayLike) -> tuple[Array, Array]:
    c = as_counts(counts)
    return diagonal(c).sum(-1), off_diagonal(c).sum((-2, -1))


@compiled
def no_information_rate(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Accuracy of always answering the commonest class, `max_i sum_j C_ij / n`, in [0, 1].

    >>> no_information_rate([[5, 1], [3, 3]])
    np.float64(0.5)
    """
    support = as_counts(counts).sum(-1)
    return divide(support.max(-1), support.sum(-1), zero_division)


@compiled
def balanced_accuracy(counts: ArrayLike, *, adjusted: bool = False) -> Array:
    """Mean recall of the classes that occur in truth, in [0, 1]; NaN if none does.

    `adjusted=True` gives `(b - 1/k) / (1 - 1/k)` for k such classes: 0 for a guess, 1 for no
    mistake, NaN for k = 1. Source: Brodersen, Ong, Stephan and Buhmann (2010), The balanced
    accuracy and its posterior distribution, ICPR.

    >>> balanced_accuracy([[8, 2], [1, 9]]), balanced_accuracy([[8, 2], [1, 9]], adjusted=True)
    (np.float64(0.85), np.float64(0.7))
    """
    rates, in_truth, k = _recalls_in_truth(counts)
    balanced = divide(xp.where(in_truth, rates, 0).sum(-1), k, xp.nan)
    return divide(balanced * k - 1, k - 1, xp.nan) if adjusted else balanced


@compiled
def g_mean(counts: ArrayLike) -> Array:
    """Geometric mean of the recalls of the k classes that occur in truth,
    `(prod_i recall_i)^(1/k)`, in [0, 1].

    For two classes `sqrt(recall * specificity)`. Its gradient where a recall is 0 is taken as 0;
    NaN if k = 0. Source: Kubat and Matwin (1997), Addressing the curse of imbalanced training sets,
    ICML.

    >>> g_mean([[9, 7], [0, 4]])
    np.float64(0.75)
    """
    rates, in_truth, k = _recalls_in_truth(counts)
    mean_log = divide(safe_log(xp.where(in_truth, rates, 1)).sum(-1), k, xp.nan)
    return xp.where((in_truth & (rates == 0)).any(-1), 0, xp.exp(mean_log))


def _recalls_in_truth(counts: ArrayLike) -> tuple[Array, Array, Array]:
    """Recalls, which classes occur in truth, and how many."""
    c = as_counts(counts)
    in_truth = c.sum(-1) != 0
    return recall(c), in_truth, in_truth.sum(-1).astype(c.dtype)


@compiled
def matthews_corrcoef(counts: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Matthews' correlation coefficient (R_K), in [-1, 1]; for two classes the phi coefficient.

    `(c s - sum_k t_k p_k) / sqrt((s^2 - sum_k p_k^2) (s^2 - sum_k t_k^2))` with c correct of s
    examples, t_k true and p_k predicted as k. Computed from the equal sums over classes
    `sum_k (TP TN - FP FN)`, `sum_k (TP + FP)(FN + TN)` and `sum_k (TP + FN)(FP + TN)`, which do not
    cancel. A constant prediction is 0/0. Source: Gorodkin (2004), Comparing two K-category
    assignments by a K-category correlation coefficient.

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
    """Cramér's V, association of truth and prediction in [0, 1]:
    `sqrt(chi^2 / n / (min(r, c) - 1))`.

    r and c are the numbers of classes that occur in truth and in prediction; NaN if either is below
    2. Source: Cramér (1946), Mathematical Methods of Statistics, ch. 21.

    >>> cramers_v([[8, 2], [1, 9]])
    np.float64(0.7035)
    """
    p = proportions(counts)
    t, q = p.sum(-1, keepdims=True), p.sum(-2, keepdims=True)
    chi2_per_example = divide(dependence(p) ** 2, t * q).sum((-2, -1))
    num_occurring = xp.minimum((t != 0).sum((-2, -1)), (q != 0).sum((-2, -1)))
    return safe_sqrt(
        divide(chi2_per_example, xp.maximum(num_occurring - 1, 0).astype(p.dtype), xp.nan)
    )


@compiled
def mutual_information(counts: ArrayLike) -> Array:
    """Mutual information of truth and prediction, `sum_ij p_ij log(p_ij / (t_i q_j))`, in nats, at
    least 0.

    Source: Shannon (1948), A mathematical theory of communication.

    >>> mutual_information([[5, 0], [0, 5]])  # log 2
    np.float64(0.6931)
    """
    p = proportions(counts)
    expected = p.sum(-1, keepdims=True) * p.sum(-2, keepdims=True)
    ratio, excess = divide(p, expected), divide(dependence(p), expected)  # u and r = u - 1
    # The sum is also that of expected * (u log u - r), whose terms are all >= 0; near independence
    # by its series in r.
    small = abs(excess) < 0.1
    r = xp.where(small, excess, 0)
    series = xp.zeros_like(r)
    for k in reversed(range(14)):  # sum_k (-r)^k / ((k + 1)(k + 2)), to 1e-16 for |r| < 0.1
        series = 1 / ((k + 1) * (k + 2)) - r * series
    return (expected * xp.where(small, r**2 * series, ratio * safe_log(ratio) - excess)).sum(
        (-2, -1)
    )


@compiled
def confusion_entropy(counts: ArrayLike) -> Array:
    """Confusion entropy (CEN): how unevenly the mistakes spread, 0 for none; at most 1 for three or
    more classes.

    `sum_j s_j / (2 n) * CEN_j` with `s_j` = row sum + column sum of class j, and `CEN_j` the sum of
    `-x log x` in base `2 (k - 1)` over its mistakes `x = C_jl / s_j` and `C_lj / s_j`; k = the
    number of classes that occur; 0 for a single class. Source: Wei, Yuan, Hu and Wang (2010), A
    novel measure for evaluating classifiers, Expert Systems with Applications 37.

    >>> confusion_entropy([[4, 1, 0], [0, 5, 0], [1, 0, 4]])
    np.float64(0.2212)
    """
    p = proportions(counts)
    t, q = p.sum(-1), p.sum(-2)
    s = t + q
    cen = xp.zeros_like(s)
    # X = mistakes / s and -log x = log(1 + rest / mistakes), s = mistakes + rest.
    for mistakes, rest, axis in (
        (off_diagonal(p), rest_of_row(p) + q[..., :, None], -1),
        (off_diagonal(p), rest_of_column(p) + t[..., None, :], -2),
    ):
        cen += (divide(mistakes, xp.expand_dims(s, axis)) * xp.log1p(divide(rest, mistakes))).sum(
            axis
        )
    k = (s != 0).sum(-1).astype(p.dtype)
    return divide((s / 2 * cen).sum(-1), xp.log(xp.maximum(2 * (k - 1), 1)))


@compiled
def expected_cost(counts: ArrayLike, cost: ArrayLike, *, zero_division: ArrayLike = 0.0) -> Array:
    """Mean cost of a decision, `sum_ij C_ij cost_ij / n`, in the units of `cost`, a `(K, K)` array
    laid out as `counts`.

    Raises ValueError if `cost` has another shape. Source: Elkan (2001), The foundations of
    cost-sensitive learning, IJCAI.

    # A missed positive costs ten false alarms.
    >>> expected_cost([[8, 2], [1, 9]], [[0.0, 1.0], [10.0, 0.0]])
    np.float64(0.6)
    """
    c = as_counts(counts)
    total_cost = weighted_sum(c, as_square(cost, c.shape[-1], "cost"))
    return divide(total_cost, c.sum((-2, -1)), zero_division)
