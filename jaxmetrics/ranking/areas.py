"""Compute areas under curves, exactly, from one sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._arithmetic import divide, matmul
from jaxmetrics._compilation import compiled
from jaxmetrics._examples import SCORES, Examples, class_examples
from jaxmetrics._namespaces import Array, float_dtype, is_known, lax, on_device, xp
from jaxmetrics._validation import ArrayLike, as_float, check_option, is_integer
from jaxmetrics.estimates import Estimate, normal_estimate, normal_quantile
from jaxmetrics.intervals.clusters import (
    fewest_clusters,
    kish_number,
    numbered_clusters,
    student_quantile,
    sums_by_cluster,
    warn_if_few,
)
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.ranking.columns import one_against_rest
from jaxmetrics.ranking.ranks import (
    Ranked,
    cumulative_positives,
    rank,
    rank_examples,
    restore,
    sum_above,
    take,
)

__all__ = ["auc", "average_precision", "delong_interval", "roc_auc", "roc_auc_one_vs_one"]


def auc(x: ArrayLike, y: ArrayLike) -> Array:
    """Integrate a curve by the trapezoidal rule, `sum (x_i+1 - x_i) (y_i+1 + y_i) / 2`.

    Args:
        x, y: `(..., m)`, of points in order; x rising or falling, which does not change the sign.

    Returns:
        `(...)`; NaN if a point is, or x turns back.

    Raises:
        ValueError: fewer than two points, shapes that do not go together.

    >>> auc([0.0, 0.5, 1.0], [0.0, 0.8, 1.0])
    np.float64(0.65)
    """
    xs, ys = as_float(x, "x"), as_float(y, "y")
    if xs.ndim == 0 or ys.ndim == 0 or xs.shape[-1] != ys.shape[-1] or xs.shape[-1] < 2:
        raise ValueError(
            "x and y must have the same number of points, at least 2, on the last axis; got"
            f" {xs.shape}, {ys.shape}."
        )
    return _trapezoids(xs, ys)


@compiled
def _trapezoids(xs: Array, ys: Array) -> Array:
    steps = xp.diff(xs, axis=-1)
    turns = (steps > 0).any(-1) & (steps < 0).any(-1)
    return xp.where(turns, xp.nan, xp.abs((steps * (ys[..., 1:] + ys[..., :-1])).sum(-1) / 2))


def roc_auc(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    max_fpr: ArrayLike | None = None,
    min_tpr: ArrayLike | None = None,
    standardized: bool = True,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the area under the ROC curve.

    It is the share of pairs of a positive and a negative whose scores are in order, ties counting
    half. With `max_fpr` m it is the area A up to that false positive rate, scaled so that chance is
    0.5 and the best 1: `(1 + (A - m^2 / 2) / (m - m^2 / 2)) / 2`, McClish (1989), Medical Decision
    Making 9. With `min_tpr` it is that along sensitivity, of the true negative rate over true
    positive rates above it, with m = 1 - `min_tpr`: Jiang, Metz and Nishikawa (1996), Radiology
    201. `standardized=False` gives A itself.

    For several classes or labels: `per_class(roc_auc)`, `per_label(roc_auc)`, and
    `roc_auc_one_vs_one`. Its gradient is 0 with respect to scores, and right with respect to
    weights.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; negative labels leave their examples out: of labels
            -1 and 1 take `y_true == 1`.
        y_score: real numbers, `(..., n)`; only their order matters. NumPy arrays are compared in
            their own precision, what jit hides in float32 (float64 under x64).
        max_fpr: in (0, 1].
        min_tpr: in [0, 1), not together with `max_fpr`.
        sample_weight: `(..., n)`; weight 2 equals the example written twice, 0 the example left
            out.
        where: bool, `(..., n)`; false leaves the example out, whatever it holds.

    Returns:
        `(...)`, in [0, 1]; NaN without both classes, on the device also if a score that counts is
        NaN.

    Raises:
        TypeError: labels that are no integers, scores that are no real numbers, a mask that is not
            bool.
        ValueError: unequal numbers of examples, batch axes that do not broadcast, `max_fpr`
            outside of (0, 1], `min_tpr` outside of [0, 1) or both; on the host, of examples that
            count, a label of 2 or more, -1 and 1 without a 0, a NaN score and a NaN weight.

    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    np.float64(0.875)
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], min_tpr=0.5, standardized=False)
    np.float64(0.375)
    """
    if max_fpr is not None and min_tpr is not None:
        raise ValueError("give either max_fpr or min_tpr, got both.")
    limit = None if max_fpr is None else as_float(max_fpr, "max_fpr")
    if limit is not None and is_known(limit) and not bool(((limit > 0) & (limit <= 1)).all()):
        raise ValueError(f"max_fpr must lie in (0, 1], got {max_fpr!r}.")
    if min_tpr is not None:
        limit = 1 - as_float(min_tpr, "min_tpr")
        if is_known(limit) and not bool(((limit > 0) & (limit <= 1)).all()):
            raise ValueError(f"min_tpr must lie in [0, 1), got {min_tpr!r}.")
    ranked = rank(y_true, y_score, sample_weight, where)
    return _roc_auc(ranked, limit, along_sensitivity=min_tpr is not None, standardized=standardized)


@compiled
def _roc_auc(
    ranked: Ranked,
    limit: Array | None,
    *,
    along_sensitivity: bool = False,
    standardized: bool = True,
) -> Array:
    if not is_integer(ranked.positive):
        # So that products of weights neither overflow nor underflow.
        positive, negative = _relative(ranked.positive), _relative(ranked.negative)
        ranked = ranked._replace(positive=positive, negative=negative)
    num_pos, num_neg = (
        x.sum(-1).astype(float_dtype(x)) for x in (ranked.positive, ranked.negative)
    )
    if limit is None:
        # Without weights a sum of whole and half numbers, exact in float64: the order of examples
        # does not matter.
        pairs_in_order = (ranked.negative * sum_above(ranked.positive, ranked.last)).sum(-1)
        area = divide(divide(pairs_in_order, num_pos), num_neg)
    else:
        tp, fp = cumulative_positives(ranked)
        curve = tp, fp, num_pos[..., None], num_neg[..., None]
        if along_sensitivity:  # the curve that has the negatives first, by rising score
            curve = (fp[..., -1:] - fp)[..., ::-1], (tp[..., -1:] - tp)[..., ::-1], *curve[:1:-1]
        area = _partial_area(*curve, limit, standardized=standardized)
    return xp.where(~ranked.undefined & (num_pos > 0) & (num_neg > 0), area, xp.nan)


def _relative(weights: Array) -> Array:
    """Express weights in units of the greatest."""
    return divide(weights, lax.stop_gradient(weights.max(-1, keepdims=True, initial=0)))


def _partial_area(
    tp: Array, fp: Array, num_pos: Array, num_neg: Array, max_fpr: Array, *, standardized: bool
) -> Array:
    """Compute the area A up to `max_fpr`, or what McClish makes of it."""
    m = xp.where((max_fpr > 0) & (max_fpr <= 1), max_fpr, xp.nan)
    d_fpr, d_tpr = divide(xp.diff(fp, axis=-1), num_neg), divide(xp.diff(tp, axis=-1), num_pos)
    fpr, tpr = divide(fp, num_neg)[..., :-1], divide(tp, num_pos)[..., :-1]
    width = xp.clip(m[..., None] - fpr, 0, d_fpr)  # of each trapezoid, up to the limit
    area = (width * (tpr + d_tpr * divide(width, d_fpr) / 2)).sum(-1)
    if not standardized:
        return area
    area_of_chance = m**2 / 2
    return (1 + (area - area_of_chance) / (m - area_of_chance)) / 2


def roc_auc_one_vs_one(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    average: Literal["macro", "weighted"] = "macro",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute Hand and Till's M: the mean over pairs of classes i, j of `(A(i|j) + A(j|i)) / 2`.

    A(i|j) is the area under the ROC curve of score i among the examples of classes i and j. Unlike
    the areas of one class against the rest, M does not depend on how frequent the classes are. Hand
    and Till (2001), Machine Learning 45.

    Args:
        y_true: class ids, `(..., n)`; a negative label leaves its example out.
        y_score: `(..., n, K)`.
        average: "macro", each pair the same; "weighted" by the share of the examples that is in the
            pair.
        sample_weight, where: `(..., n)`.

    Returns:
        `(...)`, in [0, 1]; pairs of which a class is absent are left out, NaN if all are.

    Raises:
        TypeError, ValueError: as `roc_auc`; `y_score` without an axis of at least two classes.

    >>> scores = [[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]]
    >>> scores += [[0.4, 0.3, 0.3], [0.1, 0.2, 0.7]]
    >>> roc_auc_one_vs_one([0, 0, 1, 1, 2], scores)
    np.float64(0.9166667)
    """
    check_option(average, "average", ("macro", "weighted"))
    examples = class_examples(y_true, y_score, sample_weight, where, SCORES, name="y_score")
    ranked = rank_examples(one_against_rest(examples))
    return _hand_till(ranked, examples, weighted=average == "weighted")


@compiled
def _hand_till(ranked: Ranked, examples: Examples, *, weighted: bool) -> Array:
    k = examples.values.shape[-1]
    amount = examples.amounts.astype(float_dtype(ranked.score))
    one_hot = (examples.ids[..., None] == xp.arange(k)) * amount[..., None]  # (..., n, i)
    support = one_hot.sum(-2)
    # Placement values (..., j, n): the share of class j whose score j is higher. Their mean over
    # the examples of class i is A(j|i), (..., j, i).
    num_pos = ranked.positive.astype(amount.dtype).sum(-1, keepdims=True)
    placements = restore(divide(sum_above(ranked.positive, ranked.last), num_pos), ranked.position)
    areas = divide(matmul(placements, one_hot), support[..., None, :])
    areas = (areas + areas.swapaxes(-1, -2)) / 2

    weight = _pair_weights(support, areas, weighted=weighted)
    mean = divide((weight * areas).sum((-2, -1)), weight.sum((-2, -1)), xp.nan)
    return xp.where(ranked.undefined.any(-1), xp.nan, mean)


def _pair_weights(support: Array, areas: Array, *, weighted: bool) -> Array:
    """Weigh pairs of classes `(..., K, K)`: above the diagonal, and where both occur."""
    k = support.shape[-1]
    prevalence = divide(support, support.sum(-1, keepdims=True))
    if weighted:
        weight = prevalence[..., None, :] + prevalence[..., :, None]
    else:
        weight = xp.ones_like(areas)
    occurs = support > 0
    both_occur = occurs[..., None, :] & occurs[..., :, None]
    return xp.where(both_occur & xp.triu(xp.ones((k, k), bool), 1), weight, 0)


def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Average the precision over the positives, `sum_t (R_t - R_t-1) P_t`.

    The sum over the distinct thresholds is one of steps, not of trapezoids. Arguments, errors and
    NaN scores as `roc_auc`.

    Returns:
        `(...)`, in [0, 1]; NaN without positives.

    >>> average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).round(4)
    np.float64(0.8333)
    """
    return _average_precision(rank(y_true, y_score, sample_weight, where))


@compiled
def _average_precision(ranked: Ranked) -> Array:
    tp, fp = cumulative_positives(ranked)
    d_tp, tp, predicted = (x.astype(float_dtype(x)) for x in (xp.diff(tp, axis=-1), tp, tp + fp))
    precision = divide(tp, predicted)
    mean = divide((d_tp * precision[..., 1:]).sum(-1), tp[..., -1], xp.nan)
    return xp.where(ranked.undefined, xp.nan, mean)


Method: TypeAlias = Literal["score", "logit", "normal"]


def delong_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "score",
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
) -> Estimate:
    """Estimate the area under the ROC curve, with an interval by DeLong's variance.

    With the placement values V_i, the share of negatives below positive i, and W_j, that of
    positives above negative j, ties counting half, the variance of the area A of m positives and n
    negatives is `s^2 = var(V) / m + var(W) / n`: DeLong, DeLong and Clarke-Pearson (1988),
    Biometrics 44. `delong` compares two areas on the same examples.

    - `"score"`: Wilson's interval for a proportion A of N examples, N the number whose proportion
      would vary as the area does: `1 / N = d_V / m + d_W / n`, `d_V = (m var(V) + 1/4) / (m A (1 -
      A) + 1/2)` and so with W and n. The variance is that at the end of the interval, not at A, and
      half an example, as variable as half a coin, keeps it from 0 where no mistake was seen.
    - `"logit"`: `A ± z s` on the scale `log(A / (1 - A))`. It has width 0 where the classes are
      perfectly separated.
    - `"normal"`: `A ± z s`, which may leave [0, 1].

    Simulated at a level of 95 % with 10 to 500 of each class (binormal, exponential and discrete
    scores, mixtures in which some positives are at chance or below all negatives, areas of 0.5 to
    0.99), `"score"` covers in 91 to 100 %, Newcombe's (2006) interval in 74 to 100 %, `"logit"` in
    13 to 97 %.

    With `clusters` s is that of Obuchowski (1997), Biometrics 53, from sums of placement values by
    cluster, which may hold both classes. N is made of Kish's effective numbers of clusters in the
    place of m and n, and z is the quantile of Student's distribution, with one degree of freedom
    less than their number (C - 1 of C clusters of one size; Welch's where a class is in few of
    them). Simulated with 20 to 100 clusters, sizes up to 10:1, intraclass correlations of 0 to 0.7
    and areas of 0.6 to 0.99, `"score"` covers in 94 to 100 %, near 1 in more than 98 %, where the
    same intervals without clusters cover in 42 to 100 %.

    Args:
        y_true, y_score, where: as for `roc_auc`.
        level: the probability with which the interval is meant to contain the true area.
        method: of the interval.
        clusters: ids of groups of examples that depend on one another, as those of a patient do,
            `(..., n)`, of any hashable kind. Fewer than 20 that count give a warning on the host.

    Returns:
        `Estimate`, each `(...)`; NaN without both classes. `standard_error` is s, NaN without two
        positives and two negatives; with clusters all but the value, without two of each class.

    Raises:
        TypeError, ValueError: as `roc_auc`; a level outside of (0, 1), an unknown method, cluster
            ids that are missing or hidden by jit.

    >>> y_true, y_score = [0, 0, 0, 1, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8, 0.9]
    >>> delong_interval(y_true, y_score)
    1.000 [0.439, 1.000]
    """
    check_option(method, "method", ("score", "logit", "normal"))
    z, ranked = normal_quantile(level), rank(y_true, y_score, where=where)
    numbers, size = numbers_of_clusters(clusters, ranked)
    return _delong_interval(ranked, numbers, z, method=method, num_clusters=size)


@compiled
def _delong_interval(
    ranked: Ranked, numbers: Array | None, z: float, *, method: Method, num_clusters: int
) -> Estimate:
    order = None if numbers is None else take(numbers, ranked.position)
    of_classes = moments_by_class(
        placement_values(ranked), ranked.positive, ranked.negative, order, num_clusters
    )
    return area_estimate(of_classes, quantile(of_classes, z), method)


def numbers_of_clusters(
    clusters: ArrayLike | Sequence[Any] | None, *rankings: Ranked
) -> tuple[Array | None, int]:
    """Number the clusters of the examples in the order in which they came, and count them."""
    if clusters is None:
        return None, 0
    shape = np.broadcast_shapes(*(ranked.positive.shape for ranked in rankings))
    numbers, size = numbered_clusters(clusters, shape)
    if not on_device(rankings):
        counted = rankings[0].positive + rankings[0].negative > 0
        ordered = take(numbers, rankings[0].position)
        warn_if_few(fewest_clusters(ordered, size, counted))
    return numbers, size


class Moments(NamedTuple):
    """The mean and the variance of the placement values of one class, and their number.

    Of clusters the number is Kish's effective one, and the variance is that times the variance
    of the mean.
    """

    mean: Array
    variance: Array
    number: Array

    @property
    def variance_of_mean(self) -> Array:
        return divide(self.variance, self.number, xp.nan)


class Classes(NamedTuple):
    """The moments of both classes; of clusters, whose means covary, also their number."""

    positives: Moments
    negatives: Moments
    covariance: Array | float = 0.0
    number: Array | None = None

    @property
    def variance(self) -> Array:
        variances = self.positives.variance_of_mean + self.negatives.variance_of_mean
        return xp.maximum(variances + 2 * self.covariance, 0)


def moments_by_class(
    placements: Array,
    positive: Array,
    negative: Array,
    numbers: Array | None = None,
    num_clusters: int = 0,
) -> Classes:
    if numbers is None:
        return Classes(moments(placements, positive), moments(placements, negative))
    return _clustered_moments(placements, positive, negative, numbers, num_clusters)


def moments(placements: Array, amounts: Array) -> Moments:
    """Take moments of placement values `(..., n)`, given how often each stands in one class."""
    amounts = amounts.astype(placements.dtype)
    number = amounts.sum(-1)
    mean = divide((amounts * placements).sum(-1), number, xp.nan)
    squares = (amounts * (placements - mean[..., None]) ** 2).sum(-1)
    variance = xp.where(number > 1, divide(squares, number - 1), xp.nan)
    return Moments(mean, variance, number)


def _clustered_moments(
    placements: Array, positive: Array, negative: Array, numbers: Array, num_clusters: int
) -> Classes:
    """Take moments of placement values of which those of one cluster depend on one another.

    Obuchowski's S10 / m, S01 / n and S11 / mn are the variances of the means and their covariance.
    Kish's number `(sum m_c)^2 / sum m_c^2` of clusters, C where they are of one size, also gives
    the degrees of freedom: with sizes of 10:1 a test by C - 1 of them had a size of up to 13 %,
    this one of up to 9.5 %, mostly below 7 %.
    """

    def of_class(amounts: Array) -> tuple[Moments, Array, Array]:
        amounts = amounts.astype(placements.dtype)
        total = amounts.sum(-1)
        mean = divide((amounts * placements).sum(-1), total, xp.nan)
        in_cluster, residuals = (
            divide(sums_by_cluster(x, numbers, num_clusters), total[..., None], xp.nan)
            for x in (amounts, amounts * (placements - mean[..., None]))
        )
        variance_of_mean = _bessel(in_cluster) * (residuals**2).sum(-1)
        number = kish_number(in_cluster)
        return Moments(mean, number * variance_of_mean, number), residuals, in_cluster

    positives, v, m = of_class(positive)
    negatives, w, n = of_class(negative)
    covariance = _bessel(m + n) * (v * w).sum(-1)
    return Classes(positives, negatives, covariance, kish_number(m + n))


def _bessel(in_cluster: Array) -> Array:
    """Return `C / (C - 1)` for the C clusters that are not empty."""
    number = (in_cluster > 0).sum(-1)
    return divide(number + 0.0, number - 1, xp.nan)


def degrees_of_freedom(of_classes: Classes) -> Array:
    """Return Welch and Satterthwaite's, for the sum of the variances of two means."""
    of_both = of_classes.positives, of_classes.negatives
    variance = sum(x.variance_of_mean for x in of_both)
    squares = sum(divide(x.variance_of_mean**2, x.number - 1) for x in of_both)
    freedom = xp.maximum(divide(variance**2, squares), xp.minimum(*(x.number for x in of_both)) - 1)
    return freedom if of_classes.number is None else xp.minimum(freedom, of_classes.number - 1)


def quantile(of_classes: Classes, z: float) -> Array | float:
    """Return the quantile for the score interval: Student's for clusters."""
    if of_classes.number is None:
        return z
    return student_quantile(z, degrees_of_freedom(of_classes))


def area_estimate(of_classes: Classes, z: Array | float, method: Method) -> Estimate:
    """Estimate an area, the mean placement value of the positives as of the negatives."""
    area, error = of_classes.positives.mean, xp.sqrt(of_classes.variance)
    estimate = normal_estimate(area, error, z, "logit" if method == "logit" else None)
    if method != "score":
        return estimate
    number = effective_number(area, of_classes)
    low, high = wilson_interval(area * number, number, z)
    return estimate._replace(low=low, high=high)


def effective_number(area: Array, of_classes: Classes) -> Array:
    """Return of how many independent examples a proportion varies as the area does."""
    binomial = area * (1 - area)

    def relative_variance(of_class: Moments) -> Array:
        number = of_class.number
        squares = xp.where(number > 1, number * of_class.variance, 0)
        return divide((squares + 1 / 4) / (number * binomial + 1 / 2), number, xp.nan)

    positives, negatives, covariance, _ = of_classes
    of_positives, of_negatives = relative_variance(positives), relative_variance(negatives)
    error = xp.sqrt(positives.variance_of_mean * negatives.variance_of_mean)
    correlation = xp.clip(divide(covariance, xp.where(error > 0, error, 0)), -1, 1)
    of_both = 2 * correlation * xp.sqrt(of_positives * of_negatives)
    return 1 / (of_positives + of_negatives + of_both)


def placement_values(ranked: Ranked) -> Array:
    """Compute placement values of sorted examples without weights.

    That of a positive is the share of negatives below it, that of a negative the share of positives
    above it, ties counting half.
    """
    positive = ranked.positive > 0
    num_pos, num_neg = (
        x.sum(-1, keepdims=True).astype(float_dtype(x)) for x in (ranked.positive, ranked.negative)
    )
    negatives_below = num_neg - sum_above(ranked.negative, ranked.last)
    positives_above = sum_above(ranked.positive, ranked.last)
    pairs_in_order = xp.where(positive, negatives_below, positives_above)
    placements = divide(pairs_in_order, xp.where(positive, num_neg, num_pos), xp.nan)
    return xp.where(ranked.undefined[..., None], xp.nan, placements)
