"""Slow, obvious float64 versions, straight from the definitions."""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

NAN = math.nan
Rate = Callable[[np.ndarray], np.ndarray]


def fields_of(x: Any) -> tuple[Any, ...]:
    """The value, both ends and the standard error of an estimate."""
    return x.value, x.low, x.high, x.standard_error


def confusion_matrix(
    y_true: Any,
    y_pred: Any,
    num_classes: int,
    sample_weight: Any = None,
    where: Any = None,
) -> np.ndarray:
    counts = np.zeros((num_classes, num_classes))
    for i in range(len(y_true)):
        t, p = int(y_true[i]), int(y_pred[i])
        if (where is None or where[i]) and 0 <= t < num_classes and 0 <= p < num_classes:
            counts[t, p] += 1.0 if sample_weight is None else float(sample_weight[i])
    return counts


def ratio(a: Any, b: Any, zero: float = 0.0) -> Any:
    return a / b if b != 0 else zero


def cells(c: np.ndarray, k: int) -> tuple[float, float, float, float]:
    """TP, FP, FN, TN of class k."""
    sums = np.zeros((2, 2))
    for i, j in np.ndindex(*c.shape):
        sums[int(i == k), int(j == k)] += c[i, j]
    (tn, fp), (fn, tp) = sums
    return tp, fp, fn, tn


def rates(tp: Any, fp: Any, fn: Any, tn: Any) -> dict[str, Any]:
    """The rates of one class."""
    true, predicted = tp + fn, tp + fp
    false, n = tn + fp, tp + fp + fn + tn
    return {
        "recall": ratio(tp, true),
        "precision": ratio(tp, predicted),
        "specificity": ratio(tn, false),
        "negative_predictive_value": ratio(tn, tn + fn),
        "false_positive_rate": ratio(fp, false),
        "false_negative_rate": ratio(fn, true),
        "false_discovery_rate": ratio(fp, predicted),
        "false_omission_rate": ratio(fn, fn + tn),
        "f1": ratio(2 * tp, 2 * tp + fp + fn),
        "f_beta": ratio(5 * tp, 5 * tp + 4 * fn + fp),  # beta = 2
        "tversky": ratio(tp, tp + 0.3 * fp + 0.8 * fn),
        "jaccard": ratio(tp, tp + fp + fn),
        "fowlkes_mallows": math.sqrt(ratio(tp, predicted) * ratio(tp, true)),
        "p4": ratio(4 * tp * tn, 4 * tp * tn + (tp + tn) * (fp + fn)),
        "informedness": tp / true + tn / false - 1 if true * false else 0.0,
        "markedness": tp / predicted + tn / (tn + fn) - 1 if predicted * (tn + fn) else 0.0,
        "positive_likelihood_ratio": ratio(ratio(tp, true, NAN), ratio(fp, false, NAN), NAN),
        "negative_likelihood_ratio": ratio(ratio(fn, true, NAN), ratio(tn, false, NAN), NAN),
        "diagnostic_odds_ratio": ratio(tp * tn, fp * fn, NAN),
        "prevalence": ratio(true, n),
        "selection_rate": ratio(predicted, n),
        "lift": ratio(ratio(tp, predicted), ratio(true, n)),
        "net_benefit": ratio(tp, n) - ratio(fp, n) * 0.2 / 0.8,  # threshold = 0.2
    }


def rate(name: str, c: np.ndarray) -> np.ndarray:
    """Of each class, in fractions: differences of nearly equal sums lose no digits."""
    return np.array([float(rates(*map(Fraction, cells(c, k)))[name]) for k in range(len(c))])


RATES: dict[str, Rate] = {name: partial(rate, name) for name in rates(1, 1, 1, 1)}


def occurring(c: np.ndarray) -> list[int]:
    return [k for k in range(len(c)) if c[k, :].sum() + c[:, k].sum() > 0]


def macro(rate: Rate, c: np.ndarray) -> float:
    return float(np.mean(rate(c)[occurring(c) or range(len(c))]))


def weighted(rate: Rate, c: np.ndarray) -> float:
    return float(np.average(rate(c), weights=c.sum(1))) if c.sum() else float(np.mean(rate(c)))


def pooled(c: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    table = np.zeros((2, 2))
    for k in occurring(c):
        tp, fp, fn, tn = cells(c, k)
        table += weights[k] * np.array([[tn, fp], [fn, tp]])
    return table


def micro(rate: Rate, c: np.ndarray) -> float:
    return float(rate(pooled(c, [1.0] * len(c)))[1])


def weighted_micro(rate: Rate, c: np.ndarray) -> float:
    return float(rate(pooled(c, list(c.sum(1))))[1])


def matthews_corrcoef(c: np.ndarray) -> float:
    """In fractions up to the root: of rare classes the squares cancel."""
    exact = [[int(x) if x == int(x) else Fraction(x) for x in row] for row in c.tolist()]
    t, p = [sum(row) for row in exact], [sum(column) for column in zip(*exact, strict=True)]
    s, hits = sum(t), sum(row[i] for i, row in enumerate(exact))
    spread = (s**2 - sum(x**2 for x in p)) * (s**2 - sum(x**2 for x in t))
    covariance = hits * s - sum(x * y for x, y in zip(t, p, strict=True))
    return math.copysign(math.sqrt(Fraction(covariance**2) / spread), covariance) if spread else 0.0


def disagreement(weights: str | np.ndarray | None, i: int, j: int) -> float:
    if weights is None:
        return float(i != j)
    if isinstance(weights, str):
        return abs(i - j) if weights == "linear" else (i - j) ** 2
    return float(weights[i, j])


def cohen_kappa(
    c: np.ndarray, weights: str | np.ndarray | None = None, chance: str = "marginals"
) -> float:
    if c.sum() == 0:
        return NAN
    k, p = len(c), c / c.sum()
    t, q = p.sum(1), p.sum(0)
    m = (t + q) / 2
    w = np.array([[disagreement(weights, i, j) for j in range(k)] for i in range(k)])
    if chance == "gwet":
        agreement = 1 - w / w.max()
        chance_agreement = (
            agreement.sum() / (k * (k - 1)) * sum(m[i] * (1 - m[i]) for i in range(k))
        )
        return ratio((agreement * p).sum() - chance_agreement, 1 - chance_agreement, NAN)
    majority = np.eye(k)[t.argmax()]
    expected = {
        "marginals": np.outer(t, q),
        "pooled": np.outer(m, m),
        "uniform": np.full((k, k), 1 / k**2),
        "majority": np.outer(t, majority),
    }[chance]
    return 1 - ratio((w * p).sum(), (w * expected).sum(), NAN)


def krippendorff_alpha(c: np.ndarray, weights: str | None = None) -> float:
    coincidences = c + c.T
    n, n_k = coincidences.sum(), coincidences.sum(1)
    k = len(c)
    observed = expected = 0.0
    for i, j in np.ndindex(k, k):
        observed += disagreement(weights, i, j) * ratio(coincidences[i, j], n)
        expected += disagreement(weights, i, j) * ratio(n_k[i] * n_k[j], n * (n - 1))
    return 1 - ratio(observed, expected, NAN)


def surprise(shares: Iterable[Decimal]) -> Decimal:
    return -sum((x * x.ln() for x in shares if x), Decimal(0))


def confusion_entropy(c: np.ndarray) -> float:
    """In 50 digits, as all entropies: of rare classes the terms cancel."""
    present = occurring(c)
    if len(present) < 2:
        return 0.0
    with localcontext(prec=50):
        result = Decimal(0)
        for j in present:
            both = np.concatenate([c[j], c[:, j]])
            s, wrong = Decimal(both.sum().item()), np.delete(both, [j, j + len(c)])
            result += s * surprise(Decimal(x) / s for x in wrong.tolist())
        return float(result / (2 * Decimal(c.sum().item()) * Decimal(2 * len(present) - 2).ln()))


def cramers_v(c: np.ndarray) -> float:
    """In fractions up to the root: near independence the terms cancel."""
    t, q = c.sum(1).tolist(), c.sum(0).tolist()
    size = min(sum(x > 0 for x in t), sum(x > 0 for x in q))
    if size <= 1:
        return NAN
    square = sum(
        Fraction(x) ** 2 / (Fraction(t[i]) * Fraction(q[j]))
        for i, row in enumerate(c.tolist())
        for j, x in enumerate(row)
        if x
    )
    return math.sqrt((square - 1) / (size - 1))


def entropies(c: np.ndarray) -> list[Decimal]:
    """Of truth, of predictions, and of both together."""
    n = Decimal(c.sum().item()) or 1
    return [surprise(Decimal(x) / n for x in y.ravel().tolist()) for y in (c.sum(1), c.sum(0), c)]


def mutual_information(c: np.ndarray) -> float:
    with localcontext(prec=50):
        t, q, both = entropies(c)
        return float(t + q - both)


def normalized_mutual_information(c: np.ndarray) -> float:
    with localcontext(prec=50):
        t, q, both = entropies(c)
        return float(2 * (t + q - both) / (t + q)) if t + q else 1.0


def recalls_in_truth(c: np.ndarray) -> list[float]:
    return [c[k, k] / c[k].sum() for k in range(len(c)) if c[k].sum() > 0]


def balanced_accuracy(c: np.ndarray, adjusted: bool = False) -> float:
    recalls = recalls_in_truth(c)
    if not recalls:
        return NAN
    k, b = len(recalls), float(np.mean(recalls))
    return ratio(b - 1 / k, 1 - 1 / k, NAN) if adjusted else b


def g_mean(c: np.ndarray) -> float:
    recalls = recalls_in_truth(c)
    return math.prod(recalls) ** (1 / len(recalls)) if recalls else NAN


def cost(c: np.ndarray, costs: np.ndarray) -> float:
    return sum(ratio(c[i, j], c.sum()) * costs[i, j] for i, j in np.ndindex(*c.shape))


def macro_absolute_error(c: np.ndarray) -> float:
    k = len(c)
    errors = [
        sum(c[i, j] * abs(i - j) for j in range(k)) / c[i].sum() for i in range(k) if c[i].sum() > 0
    ]
    return float(np.mean(errors)) if errors else NAN


def accuracy_within(c: np.ndarray, k: int = 1) -> float:
    near = sum(c[i, j] for i, j in np.ndindex(*c.shape) if abs(i - j) <= k)
    return ratio(near, c.sum())


def example_costs(k: int) -> np.ndarray:
    return np.array([[(2.0 * i + j) * (i != j) for j in range(k)] for i in range(k)])


# Keywords of a function and of its oracle, and rates that are averaged, by the names of rows.
KEYWORDS: dict[str, dict[str, Any]] = {
    "accuracy_within two": {"k": 2},
    "balanced_accuracy adjusted": {"adjusted": True},
    "cohen_kappa linear": {"weights": "linear"},
    "cohen_kappa quadratic": {"weights": "quadratic"},
    "cohen_kappa pooled": {"chance": "pooled"},
    "cohen_kappa uniform": {"chance": "uniform"},
    "cohen_kappa majority": {"chance": "majority"},
    "cohen_kappa gwet": {"chance": "gwet"},
    "cohen_kappa gwet linear": {"chance": "gwet", "weights": "linear"},
    "krippendorff_alpha quadratic": {"weights": "quadratic"},
}
AVERAGES = {
    "macro": "f1",
    "macro precision": "precision",
    "weighted": "f1",
    "micro": "f1",
    "micro specificity": "specificity",
    "weighted_micro": "precision",
    "weighted_micro recall": "recall",
}
_functions: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(balanced_accuracy, g_mean, matthews_corrcoef, cohen_kappa, krippendorff_alpha),
        *(cramers_v, mutual_information, normalized_mutual_information, confusion_entropy),
        *(macro, weighted, micro, weighted_micro, accuracy_within, macro_absolute_error),
    )
}
OVERALL: dict[str, Callable[[np.ndarray], float]] = {
    "accuracy": lambda c: ratio(np.trace(c), c.sum()),
    "naive_accuracy": lambda c: ratio(np.trace(c), c.sum()),
    "error_rate": lambda c: ratio(c.sum() - np.trace(c), c.sum()),
    "no_information_rate": lambda c: ratio(max(c.sum(1)), c.sum()),
    **_functions,
    **{name: partial(_functions[name.split()[0]], **words) for name, words in KEYWORDS.items()},
    **{name: partial(_functions[name.split()[0]], RATES[rate]) for name, rate in AVERAGES.items()},
    "cohen_kappa costs": lambda c: cohen_kappa(c, weights=example_costs(len(c))),
    "expected_cost": lambda c: cost(c, example_costs(len(c))),
}


def group_values(rate: Rate, c: np.ndarray, defined: Any) -> list[list[float]]:
    """For each class the rates of the groups in which `defined(matrix, class)`."""
    k = c.shape[-1]
    return [[float(rate(g)[i]) for g in c if g.sum() > 0 and defined(g, i)] for i in range(k)]


def group_ratio(rate: Rate, c: np.ndarray, defined: Any = lambda g, i: True) -> np.ndarray:
    values = group_values(rate, c, defined)
    return np.array([ratio(min(v), max(v), NAN) if v else NAN for v in values])


def group_difference(rate: Rate, c: np.ndarray) -> np.ndarray:
    values = group_values(rate, c, lambda g, i: True)
    return np.array([max(v) - min(v) if v else NAN for v in values])


GROUPS: dict[str, Rate] = {
    "group_ratio": lambda c: group_ratio(RATES["precision"], c),
    "group_difference": lambda c: group_difference(RATES["precision"], c),
    "demographic_parity_ratio": lambda c: group_ratio(RATES["selection_rate"], c),
    "equal_opportunity_ratio": lambda c: group_ratio(
        RATES["recall"], c, lambda g, i: g[i].sum() > 0
    ),
}


def average_precision(truth: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    """Average over the positives which share is positive of the examples ranked no lower."""
    total = 0.0
    for i in np.flatnonzero(truth):
        above = score >= score[i]
        total += weight[i] * (weight * truth)[above].sum() / weight[above].sum()
    return float(total / (weight * truth).sum())


def best_and_worst_average_precision(histogram: np.ndarray) -> tuple[float, float]:
    """The least and the greatest average precision of all orders, without ties, of the examples
    within each bin.
    """
    negative, positive = histogram[:, ::-1]  # highest bin first
    orders = [
        sorted(set(itertools.permutations([1] * int(p) + [0] * int(n))))
        for n, p in zip(negative, positive, strict=True)
    ]
    values = []
    for parts in itertools.product(*orders):
        truth = np.array([t for part in parts for t in part])
        precision = np.cumsum(truth) / np.arange(1, len(truth) + 1)
        values.append(precision[truth == 1].mean())
    tied_first = 0.0  # positives of a bin that tie, ahead of its negatives
    tp = fp = 0
    for n, p in zip(negative, positive, strict=True):
        tied_first += p * (tp + p) / (tp + p + fp) if p else 0
        tp, fp = tp + p, fp + n
    return min(values), max(max(values), tied_first / positive.sum())


def precision_at_prevalence(counts: np.ndarray, prevalence: tuple[float, ...]) -> np.ndarray:
    """Of each class: right among those predicted, by Bayes' rule from the shares of each row."""
    k = len(counts)
    found = np.zeros(k)
    for j in range(k):
        right = prevalence[j] * counts[j][j] / sum(counts[j])
        predicted = sum(prevalence[i] * counts[i][j] / sum(counts[i]) for i in range(k))
        found[j] = right / predicted if predicted > 0 else 0.0
    return found
