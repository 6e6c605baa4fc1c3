"""Average rates, of this package or your own, over classes: functions of functions of counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from jaxmetrics._applied import applied
from jaxmetrics._arithmetic import divide
from jaxmetrics._cell_sums import cells, proportions, tables
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike, as_counts
from jaxmetrics.metrics.rates import prevalence

__all__ = [
    "at_prevalence",
    "binary",
    "macro",
    "micro",
    "weighted",
    "weighted_micro",
]


Metric = Callable[..., Array]

A_RATE = "a function of counts, such as jaxmetrics.f1"


def of_counts(scheme: Callable[..., Array]) -> Callable[..., Array]:
    """Let a scheme `(metric, counts, **options)` take counts as users give them."""

    @compiled
    @wraps(scheme)
    def call(metric: Metric, counts: ArrayLike, **options: Any) -> Array:
        return scheme(metric, as_counts(counts), **options)

    return call


def macro(rate: Metric) -> Metric:
    """Average a per-class rate over the k classes that occur, `sum_i r_i / k`.

    They occur in truth or prediction. The result is a function of counts. Classes whose rate is NaN
    are skipped. Without any example the result is the rate's own 0/0. Keyword arguments of the
    result go to the rate: `macro(f1)(counts, zero_division=np.nan)`.

    Args:
        rate: a function from counts `(..., K, K)` to `(..., K)`, of jaxmetrics or your own.

    Raises:
        ValueError: when called, if `rate` does not return one value per class.

    >>> from jaxmetrics import recall
    >>> macro(recall)([[1, 1, 0], [0, 2, 0], [0, 0, 0]])  # the third class does not occur
    np.float64(0.75)
    >>> macro(recall)
    macro(recall)
    """
    return applied(_macro, rate, A_RATE)


def weighted(rate: Metric) -> Metric:
    """Average a per-class rate weighted by support t_i, `sum_i t_i r_i / sum_i t_i`.

    Support is the sum of a row. NaN rates are skipped; if no support is left, the rates left count
    alike, as in scikit-learn. Otherwise as `macro`.

    >>> from jaxmetrics import precision
    >>> weighted(precision)([[1, 1], [0, 6]])
    np.float64(0.8929)
    """
    return applied(_weighted, rate, A_RATE)


def micro(rate: Metric) -> Metric:
    """Compute a rate of the sum of the 2x2 tables of all classes.

    With one label per example, micro precision = recall = F1 = accuracy. Tables of classes that do
    not occur are left out. `rate`, keyword arguments and errors as `macro`.

    >>> from jaxmetrics import jaccard
    >>> micro(jaccard)([[8, 2], [1, 9]])  # 17 / (17 + 3 + 3)
    np.float64(0.7391)
    """
    return applied(_micro, rate, A_RATE)


def weighted_micro(rate: Metric) -> Metric:
    """Compute a rate of the sum of the 2x2 tables, weighted by support t_i.

    Precision becomes `sum_i C_ii t_i / sum_i p_i t_i` (p = column sums) and recall
    `sum_i C_ii t_i / sum_i t_i^2`. Otherwise as `micro`.

    >>> from jaxmetrics import recall
    >>> weighted_micro(recall)([[8, 2], [1, 4]])  # (8 * 10 + 4 * 5) / (10^2 + 5^2)
    np.float64(0.8)
    """
    return applied(_weighted_micro, rate, A_RATE)


def binary(rate: Metric, pos_label: int = 1) -> Metric:
    """Compute a rate of the positive class of a 2x2 matrix.

    Raises:
        ValueError: `pos_label` is not 0 or 1; when called, if there are not two classes.

    >>> from jaxmetrics import recall
    >>> binary(recall)([[8, 2], [1, 9]]), binary(recall, pos_label=0)([[8, 2], [1, 9]])
    (np.float64(0.9), np.float64(0.8))
    """
    if type(pos_label) is not int or pos_label not in (0, 1):
        raise ValueError(f"pos_label must be 0 or 1, got {pos_label!r}.")
    return applied(_binary, rate, A_RATE, pos_label=pos_label)


def at_prevalence(metric: Metric, prevalence: Sequence[float]) -> Metric:
    """Compute a metric as of examples among which the classes have other frequencies.

    With p the prevalence of the true classes, `C'_ij = p_i C_ij / sum_j C_ij`: how often a class is
    taken for another stays as it was found. Elkan (2001), The foundations of cost-sensitive
    learning, IJCAI. The result is a function of counts; a class without examples, of which nothing
    is known, makes NaN unless its prevalence is 0. For an interval with the number of examples of
    each class fixed, give it to `likelihood_interval(..., stratified=True)`.

    Args:
        metric: a function of counts, which does not grow with them.
        prevalence: K numbers >= 0 that sum to 1.

    Raises:
        ValueError: a prevalence that does not sum to 1 or is negative; when called, if there are
            not K classes.

    >>> from jaxmetrics import precision
    >>> at_prevalence(precision, [0.99, 0.01])([[90, 10], [10, 90]])  # 9 of 108 alarms are right
    array([0.99888, 0.08333])
    """
    shares = tuple(map(float, prevalence))
    if not all(x >= 0 for x in shares) or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise ValueError(f"prevalence must be numbers >= 0 that sum to 1, got {shares}.")
    return applied(_at_prevalence, metric, A_RATE, shares=shares)


@of_counts
def _at_prevalence(metric: Metric, counts: Array, shares: tuple[float, ...], **options: Any) -> Any:
    if counts.shape[-1] != len(shares):
        raise ValueError(
            f"prevalence has {len(shares)} classes, but counts have shape {counts.shape}."
        )
    p = xp.asarray(shares, counts.dtype)[:, None]
    rates = divide(counts, counts.sum(-1, keepdims=True), xp.nan)
    return metric(xp.where(p > 0, p * rates, 0), **options)


@of_counts
def _macro(rate: Metric, counts: Array, **options: Any) -> Array:
    occurs = _occurs(counts)
    # Without examples all classes count alike.
    occurs = xp.where((occurs != 0).any(-1, keepdims=True), occurs, 1)
    return _mean(xp.where(occurs != 0, _per_class(rate, counts, **options), xp.nan), occurs)


@of_counts
def _weighted(rate: Metric, counts: Array, **options: Any) -> Array:
    return _mean(_per_class(rate, counts, **options), prevalence(counts))


@of_counts
def _micro(rate: Metric, counts: Array, **options: Any) -> Array:
    return _per_class(rate, _pooled(counts, _occurs(counts)), **options)[..., 1]


@of_counts
def _weighted_micro(rate: Metric, counts: Array, **options: Any) -> Array:
    return _per_class(rate, _pooled(counts, prevalence(counts)), **options)[..., 1]


@of_counts
def _binary(rate: Metric, counts: Array, pos_label: int, **options: Any) -> Array:
    if counts.shape[-1] != 2:
        raise ValueError(
            f"binary needs two classes, got counts of shape {counts.shape}; macro averages over"
            " more."
        )
    return _per_class(rate, counts, **options)[..., pos_label]


def _occurs(counts: Array) -> Array:
    """Mark by 1.0 the classes that occur in truth or prediction, by 0.0 the others.

    Beside a NaN in counts a class has NaN, which is not to be skipped.
    """
    occurrences = counts.sum(-1) + counts.sum(-2)
    return xp.where(xp.isnan(occurrences), xp.nan, (occurrences != 0).astype(counts.dtype))


def _pooled(counts: Array, class_weights: Array) -> Array:
    """Add up the weighted 2x2 tables of classes against the rest, to `(..., 2, 2)`."""
    return tables(*((cell * class_weights).sum(-1) for cell in cells(proportions(counts))))


def _per_class(rate: Metric, counts: Array, **options: Any) -> Array:
    """Compute `rate`, and check that it has one value per class."""
    values = xp.asarray(rate(counts, **options))
    k = counts.shape[-1]
    if values.ndim < counts.ndim - 1 or values.shape[-1] != k:
        name = getattr(rate, "__name__", repr(rate))
        raise ValueError(
            f"averages take a rate with one value per class: {name} should return shape (..., {k})"
            f" for counts of shape {counts.shape}, but returned {values.shape}."
        )
    return values


def _mean(rates: Array, class_weights: Array) -> Array:
    """Average over classes, skipping NaN; where all weights left are 0 they count as equal."""
    defined = ~xp.isnan(rates)
    w = xp.where(defined, xp.broadcast_to(class_weights, rates.shape), 0)
    w = xp.where((w != 0).any(-1, keepdims=True), w, defined.astype(w.dtype))
    return divide((xp.where(defined, rates, 0) * w).sum(-1), w.sum(-1), xp.nan)
