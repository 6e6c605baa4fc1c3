"""Areas under curves, such as ROC AUC and average precision, computed exactly.

**Intervals with clusters.** s is the jackknife standard error over clusters, which is close to that
of Obuchowski (1997), Biometrics 53. N is multiplied by the ratio of DeLong's variance to s^2, but
at most by 1. z is replaced by the quantile of Student's t distribution.

**The interval of an average of areas** (`delong_interval` with `average`). A is the average
`sum_k w_k A_k` of the areas of K classes, each against all others. For example i and class k, let
V_ik be the placement value: the fraction of examples of other classes with lower scores of k if i
belongs to k, and otherwise the fraction of examples of k with higher scores. Let n_ik be the number
of the examples that belong to k as i does, or do not. Example i moves A by
`u_i = sum_k w_k (V_ik - A_k) / sqrt(n_ik (n_ik - 1))`. If the weights w_k are the shares of the
classes in n examples, an example of class c also moves them, and u_i contains the additional term
`(A_c - A) / sqrt(n (n - 1))`. Then `s^2 = sum_i u_i^2`. With two classes, this is DeLong's
variance. The covariances of the areas need not be computed, because the influences of an example
on several areas are added first.

The score method is Wilson's interval of A in N trials, where 1 / N is the sum over the K classes c
of `(sum_{i in c} u_i^2 + g_c^2 / (2 K)) / (A (1 - A) + 1 / (K m_c))`. Class c has m_c examples, and
`g_c = w_c / m_c + sum_{k != c} w_k / (n - m_k)` is the most that one of them moves A. The added
terms keep the width positive if A is 1. With two classes, they are as in `delong_interval`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._arguments.example_arguments import Examples, as_scores, class_examples
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import ArrayLike, as_float, check_flag, check_option, is_integer
from jaxmetrics._numerics.arithmetic import divide, matmul
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, float_dtype, is_known, lax, xp
from jaxmetrics._sums.bin_edges import as_histogram, refuse_options
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.clusters import (
    COIN_TOSS,
    Spread,
    clusters_of_examples,
    jackknife_moves,
    sums_by_cluster,
)
from jaxmetrics.estimates import Estimate, normal_estimate, normal_quantile, with_level
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.ranking.columns import one_against_rest
from jaxmetrics.ranking.histograms import average_precision_bounds, roc_auc_bounds
from jaxmetrics.ranking.ranks import (
    Ranked,
    cumulative_positives,
    rank,
    rank_examples,
    restore,
    sorted_once,
    sum_above,
    take,
)

__all__ = ["auc", "average_precision", "delong_interval", "roc_auc", "roc_auc_one_vs_one"]

# Added to the binomial variance of a class. If all placement values are 1, each example then counts
# as ADDED_BINOMIAL / COIN_TOSS = 2 independent trials. Half the value makes intervals of areas near
# 1 nearly twice as wide, as does twice the value of COIN_TOSS.
ADDED_BINOMIAL = 1 / 2


def auc(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the area under a curve (trapezoidal rule), `sum (x_i+1 - x_i) (y_i+1 + y_i) / 2`.

    Args:
        x, y: coordinates of the m points of the curve, of shape `(..., m)`. x must be monotonic. If
            x decreases, the area is the same as for the points in reverse order.

    Returns:
        Areas of shape `(...)`. The area is NaN if a coordinate is NaN or if x is not monotonic.

    >>> auc([0.0, 0.5, 1.0], [0.0, 0.8, 1.0])
    np.float64(0.65)
    """
    xs, ys = as_float(x, "x"), as_float(y, "y")
    if xs.ndim == 0 or ys.ndim == 0 or xs.shape[-1] != ys.shape[-1] or xs.shape[-1] < 2:
        raise ValueError(
            "x and y must have the same number of points on their last axis, and at least 2"
            f" points, got the shapes {xs.shape} and {ys.shape}."
        )
    return _trapezoids(xs, ys)


@compiled
def _trapezoids(xs: Array, ys: Array) -> Array:
    steps = xp.diff(xs, axis=-1)
    turns = (steps > 0).any(-1) & (steps < 0).any(-1)
    return xp.where(turns, xp.nan, xp.abs((steps * (ys[..., 1:] + ys[..., :-1])).sum(-1) / 2))


def _roc_auc_of_ranked(
    ranked: Ranked,
    *,
    max_fpr: ArrayLike | None = None,
    min_tpr: ArrayLike | None = None,
    standardized: bool = True,
) -> Array:
    check_flag(standardized, "standardized")
    if max_fpr is not None and min_tpr is not None:
        raise ValueError("max_fpr and min_tpr cannot be used together: pass only one of them.")
    limit = None if max_fpr is None else as_float(max_fpr, "max_fpr")
    limit = limit if min_tpr is None else 1 - as_float(min_tpr, "min_tpr")
    if limit is not None and is_known(limit) and not bool(((limit > 0) & (limit <= 1)).all()):
        if min_tpr is not None:
            raise ValueError(f"min_tpr must lie in [0, 1), got {min_tpr!r}.")
        raise ValueError(f"max_fpr must lie in (0, 1], got {max_fpr!r}.")
    return _roc_auc(ranked, limit, along_sensitivity=min_tpr is not None, standardized=standardized)


@sorted_once(_roc_auc_of_ranked)
def roc_auc(
    y_true: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    max_fpr: ArrayLike | None = None,
    min_tpr: ArrayLike | None = None,
    standardized: bool = True,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the area under the ROC curve (ROC AUC).

    ROC AUC is the probability that a random positive example has a greater score than a random
    negative example. Equal scores count half. The Gini coefficient is 2 ROC AUC - 1. For several
    classes or labels use `per_class(roc_auc)`, `per_label(roc_auc)` or `roc_auc_one_vs_one`.

    Args:
        y_true: labels 0 or 1, of shape `(..., n)`. If `y_score` is not given, `y_true` is a
            histogram from `score_histogram`, of shape `(..., 2, B)`.
        y_score: real scores of shape `(..., n)`. A greater score means that class 1 is more likely.
        max_fpr: greatest false positive rate m, in (0, 1]. If given, A is the area under the part
            of the ROC curve with false positive rates up to m. It is rescaled to
            `(1 + (A - m^2 / 2) / (m - m^2 / 2)) / 2`, which is 0.5 for random and 1 for perfect
            scores. Source: McClish (1989), Medical Decision Making 9.
        min_tpr: smallest true positive rate, in [0, 1). If given, A is the area under the true
            negative rate as a function of the true positive rate, from `min_tpr` to 1. It is
            rescaled in the same way, with m = 1 - `min_tpr`. It cannot be used with `max_fpr`.
            Source: Jiang, Metz and Nishikawa (1996), Radiology 201.
        standardized: if False, return the partial area A without rescaling.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Areas in [0, 1], of shape `(...)`. An area is NaN if a class has no examples. The gradient
        with respect to the scores is 0, so use `pairwise_auc_loss` for training.

        For a histogram, the result is `AreaBounds` with `low = sum_b q_b sum_{c>b} p_c` and
        `high = low + sum_b q_b p_b`. Here p_b is the fraction of the positives in bin b, and q_b is
        the fraction of the negatives in bin b.

    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    np.float64(0.875)
    >>> [x.round(4) for x in roc_auc([[5, 4, 1], [0, 2, 8]])]  # of a histogram
    [np.float64(0.9), np.float64(0.82), np.float64(0.98)]
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8], min_tpr=0.5, standardized=False)
    np.float64(0.375)
    """
    options = {"max_fpr": max_fpr, "min_tpr": min_tpr}
    if y_score is None:
        refuse_options(
            "y_score", "score_histogram", **options, sample_weight=sample_weight, where=where
        )
        check_flag(standardized, "standardized")
        return roc_auc_bounds(as_histogram(y_true, "y_true (a histogram if y_score is not given)"))
    ranked = rank(y_true, y_score, sample_weight, where)
    return _roc_auc_of_ranked(ranked, standardized=standardized, **options)


@compiled
def _roc_auc(
    ranked: Ranked,
    limit: Array | None,
    *,
    along_sensitivity: bool = False,
    standardized: bool = True,
) -> Array:
    if not is_integer(ranked.positive):
        # We divide by the greatest weight, so that products neither overflow nor underflow.
        positive, negative = (
            divide(w, lax.stop_gradient(w.max(-1, keepdims=True, initial=0)))
            for w in (ranked.positive, ranked.negative)
        )
        ranked = ranked._replace(positive=positive, negative=negative)
    num_pos, num_neg = ranked.totals
    if limit is None:
        # Without weights, all terms are multiples of 1/2. Their float64 sum is exact, so the order
        # of examples does not change the result.
        pairs_in_order = (ranked.negative * sum_above(ranked.positive, ranked.last)).sum(-1)
        area = divide(divide(pairs_in_order, num_pos), num_neg)
    else:
        tp, fp = cumulative_positives(ranked)
        curve = tp, fp, num_pos[..., None], num_neg[..., None]
        if along_sensitivity:
            # The curve by increasing score, with positives and negatives exchanged.
            curve = (fp[..., -1:] - fp)[..., ::-1], (tp[..., -1:] - tp)[..., ::-1], *curve[:1:-1]
        area = _partial_area(*curve, limit, standardized=standardized)
    return xp.where(~ranked.undefined & (num_pos > 0) & (num_neg > 0), area, xp.nan)


def _partial_area(
    tp: Array, fp: Array, num_pos: Array, num_neg: Array, max_fpr: Array, *, standardized: bool
) -> Array:
    """Compute the area up to `max_fpr`, or McClish's standardized partial area."""
    m = xp.where((max_fpr > 0) & (max_fpr <= 1), max_fpr, xp.nan)
    d_fpr, d_tpr = divide(xp.diff(fp, axis=-1), num_neg), divide(xp.diff(tp, axis=-1), num_pos)
    fpr, tpr = divide(fp, num_neg)[..., :-1], divide(tp, num_pos)[..., :-1]
    width = xp.clip(m[..., None] - fpr, 0, d_fpr)  # width of each trapezoid up to max_fpr
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
    """Compute the one-vs-one ROC AUC (Hand and Till's M), the mean of `(A(i|j) + A(j|i)) / 2`.

    The mean is over all pairs of classes i and j. A(i|j) is the ROC AUC of the scores of class i,
    computed only from the examples of classes i and j. With `average="macro"`, M does not depend on
    how frequent the classes are. Source: Hand and Till (2001), Machine Learning 45.

    Args:
        y_true: class ids of shape `(..., n)`. Examples with a negative id are ignored.
        y_score: a score for each class, of shape `(..., n, K)`.
        average: `"macro"` is the unweighted mean over pairs of classes. `"weighted"` weights each
            pair by the fraction of examples that belong to its two classes.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`. Pairs in which a class has no examples are skipped. The
        value is NaN if all pairs are skipped.

    >>> scores = [[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3]]
    >>> scores += [[0.4, 0.3, 0.3], [0.1, 0.2, 0.7]]
    >>> roc_auc_one_vs_one([0, 0, 1, 1, 2], scores)
    np.float64(0.9166667)
    """
    check_option(average, "average", ("macro", "weighted"))
    examples = class_examples(y_true, y_score, sample_weight, where, as_scores, name="y_score")
    ranked = rank_examples(one_against_rest(examples))
    return _hand_till(ranked, examples, weighted=average == "weighted")


@compiled
def _hand_till(ranked: Ranked, examples: Examples, *, weighted: bool) -> Array:
    k = examples.values.shape[-1]
    amount = examples.amounts.astype(float_dtype(ranked.score))
    one_hot = (examples.ids[..., None] == xp.arange(k)) * amount[..., None]  # (..., n, i)
    support = one_hot.sum(-2)
    # Placement values of shape (..., j, n): the fraction of class j with a higher score j than the
    # example. Their mean over the examples of class i is A(j|i), of shape (..., j, i).
    num_pos, _ = ranked.totals
    above = sum_above(ranked.positive, ranked.last)
    placements = restore(divide(above, num_pos[..., None]), ranked.position)
    areas = divide(matmul(placements, one_hot), support[..., None, :])
    areas = (areas + areas.swapaxes(-1, -2)) / 2

    share = divide(support, support.sum(-1, keepdims=True))
    weight = share[..., None, :] + share[..., :, None] if weighted else xp.ones_like(areas)
    occurs = support > 0
    both_occur = occurs[..., None, :] & occurs[..., :, None]
    # Each pair has a weight once, above the diagonal.
    weight = xp.where(both_occur & xp.triu(xp.ones((k, k), bool), 1), weight, 0)
    mean = divide((weight * areas).sum((-2, -1)), weight.sum((-2, -1)), xp.nan)
    return xp.where(ranked.undefined.any(-1), xp.nan, mean)


@compiled
def _average_precision(ranked: Ranked) -> Array:
    return xp.where(ranked.undefined, xp.nan, mean_precision(ranked))


@sorted_once(_average_precision)
def average_precision(
    y_true: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute average precision (AP), `sum_t (R_t - R_t-1) P_t`.

    The sum is over the distinct thresholds t in decreasing order. P_t and R_t are precision and
    recall at t, and R_t-1 is recall at the threshold before t. As in scikit-learn, the
    precision-recall curve is not interpolated.

    Args:
        y_true: labels 0 or 1, of shape `(..., n)`. If `y_score` is not given, `y_true` is a
            histogram from `score_histogram`, of shape `(..., 2, B)`.
        y_score: real scores of shape `(..., n)`. A greater score means that class 1 is more likely.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`. A value is NaN if there are no positives.

        For a histogram, the result is `AreaBounds` with
        `high = sum p (TP + p) / (TP + p + FP) / P` and
        `low = sum (p - F log(1 + p / (TP + F))) / P`.
        Both sums are over all bins. A bin contains p positives and n negatives. All bins above it
        contain TP positives and FP negatives, and F = FP + n. P is the number of all positives. If
        P is small, `low` may be some hundredths too low.

    >>> average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).round(4)
    np.float64(0.8333)
    >>> average_precision([[5, 4, 1], [0, 2, 8]]).value.round(3)
    np.float64(0.84)
    """
    if y_score is None:
        refuse_options("y_score", "score_histogram", sample_weight=sample_weight, where=where)
        return average_precision_bounds(
            as_histogram(y_true, "y_true (a histogram if y_score is not given)")
        )
    return _average_precision(rank(y_true, y_score, sample_weight, where))


def mean_precision(ranked: Ranked) -> Array:
    """Average over the positives the precision among all examples with an equal or greater
    score.
    """
    tp, fp = cumulative_positives(ranked)
    d_tp, tp, predicted = (x.astype(float_dtype(x)) for x in (xp.diff(tp, axis=-1), tp, tp + fp))
    precision = divide(tp, predicted)
    return divide((d_tp * precision[..., 1:]).sum(-1), tp[..., -1], xp.nan)


Method: TypeAlias = Literal["score", "logit", "normal"]
Average: TypeAlias = Literal["macro", "weighted"]


@on_host_if_small
def delong_interval(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "score",
    average: Average | None = None,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
) -> Estimate:
    """Compute a confidence interval of the area under the ROC curve by DeLong's variance estimate.

    For m positives and n negatives the variance of the area A is `s^2 = var(V) / m + var(W) / n`.
    V_i is the fraction of negatives with lower scores than positive i. W_j is the fraction of
    positives with higher scores than negative j. Equal scores count half. Source: DeLong, DeLong
    and Clarke-Pearson (1988), Biometrics 44. To compare two classifiers use `delong`.

    - `"score"`: Wilson's interval of the proportion A in N trials, with `1 / N = d_V / m + d_W / n`
      and `d_V = (m var(V) + 1/4) / (m A (1 - A) + 1/2)`. d_W is the same formula with W and n. This
      method has the best coverage of the three.
    - `"logit"`: the normal interval of `log(A / (1 - A))`, which is NaN if A is 0 or 1.
    - `"normal"`: the interval `A ± z s`, clipped to [0, 1], where z is the normal quantile of
      `level`. The width is 0 if A is 0 or 1.

    The formulas for clusters and for averages are at the top of `jaxmetrics/ranking/areas.py`.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. Examples with a
            negative label are ignored. With `average`, class ids `(..., n)` or strings `(n,)`, and
            scores `(..., n, K)`, such as probabilities, in named columns or in sorted order.
        level: the confidence level.
        method: `"score"`, `"logit"` or `"normal"`.
        average: `"macro"` or `"weighted"` averages over classes, each against all others, as
            `per_class(roc_auc, average=...)` does. Classes without examples are skipped.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.
        clusters: cluster id of each example, of shape `(..., n)` and any hashable type. A cluster
            is a group of correlated examples, such as the images of one patient. For NumPy arrays,
            fewer than 20 clusters give a warning.

    Returns:
        `Estimate` of shape `(...)`, whose `standard_error` is s. All values are NaN if a class has
        no examples (with `average`, if fewer than two classes have examples). s is NaN if a class
        has fewer than two examples. If fewer than two clusters contain examples of a class, all
        results except `value` are NaN.

    >>> y_true, y_score = [0, 0, 0, 1, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.8, 0.9]
    >>> delong_interval(y_true, y_score)
    1.000 [0.439, 1.000]
    >>> delong_interval([0, 1, 2] * 20, np.eye(3)[[0, 1, 2] * 19 + [0, 2, 1]], average="macro")
    0.975 [0.884, 0.995]
    """
    check_order(y_true=y_true, y_score=y_score, where=where, clusters=clusters)
    check_option(method, "method", ("score", "logit", "normal"))
    z, numbers, size = normal_quantile(level), None, 0
    if average is None:
        ranked = rank(y_true, y_score, where=where)
        numbers, size = numbers_of_clusters(clusters, ranked)
    else:
        check_option(average, "average", ("macro", "weighted"))
        examples = class_examples(y_true, y_score, None, where, as_scores, name="y_score")
        ranked = rank_examples(one_against_rest(examples))
        if clusters is not None:
            shape = np.broadcast_shapes(examples.ids.shape, examples.values.shape[:-1])
            numbers, size = clusters_of_examples(clusters, examples.amounts, shape)
    options: Any = {"method": method, "average": average, "num_clusters": size}
    return with_level(_delong_interval(ranked, numbers, z, **options), level, method)


@compiled
def _delong_interval(
    ranked: Ranked,
    numbers: Array | None,
    z: float,
    *,
    method: Method,
    average: Average | None,
    num_clusters: int,
) -> Estimate:
    columns = placement_values(ranked), ranked.positive, ranked.negative
    if average is not None:
        columns = tuple(restore(x, ranked.position) for x in columns)
    elif numbers is not None:
        numbers = take(numbers, ranked.position)
    moments = area_moments(*columns, numbers, num_clusters, average)
    return area_estimate(moments, quantile(moments, z), method)


def numbers_of_clusters(
    clusters: ArrayLike | Sequence[Any] | None, *rankings: Ranked
) -> tuple[Array | None, int]:
    """Return the cluster number of each example in the original order, and the number of
    clusters.
    """
    if clusters is None:
        return None, 0
    shape = np.broadcast_shapes(*(ranked.positive.shape for ranked in rankings))
    first = rankings[0]
    counted = restore(first.positive + first.negative, first.position)
    return clusters_of_examples(clusters, counted, shape)


class AreaMoments(NamedTuple):
    """An area, or an average of areas, and its variance.

    Attributes:
        value: the area, of shape `(...)` like all attributes.
        variance: the square of the standard error.
        size: number of examples.
        number: number of independent trials of a proportion with the same variance.
        freedom: degrees of freedom of the variance: from the Welch–Satterthwaite equation, or
            Kish's effective number of clusters minus one, where the size of a cluster is its part
            of the variance.
        is_clustered: whether examples are in clusters.
    """

    value: Array
    variance: Array
    size: Array
    number: Array
    freedom: Array
    is_clustered: bool


def area_moments(
    placements: Array,
    positive: Array,
    negative: Array,
    numbers: Array | None = None,
    num_clusters: int = 0,
    average: Average | None = None,
) -> AreaMoments:
    """Compute the area of a binary problem from placement values `(..., n)`, or the average of the
    areas of K classes, each against all others, from placement values `(..., K, n)`.
    """
    sides = [x.astype(placements.dtype) for x in (positive, negative)]
    if average is None:
        placements, *sides = (x[..., None, :] for x in (placements, *sides))
    m, n = totals = [x.sum(-1) for x in sides]  # (..., K)
    occurs, size = m * n > 0, (m + n)[..., 0]
    weight = xp.where(occurs, m if average == "weighted" else 1, 0)
    weight = divide(weight, weight.sum(-1, keepdims=True), xp.nan)
    areas = xp.where(occurs, divide((sides[0] * placements).sum(-1), m), 0)
    value, residuals = (weight * areas).sum(-1), placements - areas[..., None]
    reach = [divide(weight, x) for x in totals]
    if average is None:
        classes, counts = xp.concatenate(sides, -2), xp.concatenate(totals, -1)
        most = xp.concatenate(reach, -1)
    else:  # an example is a positive of its class and a negative of all other classes
        classes, counts, most = sides[0], m, reach[0] + reach[1].sum(-1, keepdims=True) - reach[1]

    def moves(numbers: Array | None) -> Array:
        """Return how much each example or cluster moves the average."""
        places, w = None if numbers is None else numbers[..., None, :], weight[..., None]
        each = sum(
            moves_of_mean(xp.where(x > 0, residuals, 0), x, total, places, num_clusters)
            for x, total in zip(sides, totals, strict=True)
        )
        total = xp.where(w == 0, 0, w * each).sum(-2)
        if average == "weighted":  # the weights are estimated from the same examples
            gaps = (classes * (areas - value[..., None])[..., None]).sum(-2)
            total = total + moves_of_mean(gaps, classes.sum(-2), size, numbers, num_clusters)
        return total

    squares = matmul(classes, moves(None)[..., None] ** 2)[..., 0]
    tosses = divide(2.0, (counts > 0).sum(-1, keepdims=True))  # one for each of two classes
    parts = xp.where(counts > 0, squares + COIN_TOSS * tosses * most**2, 0)
    binomial = (value * (1 - value))[..., None] + divide(ADDED_BINOMIAL * tosses, counts)
    number = 1 / divide(parts, binomial).sum(-1)
    unknown = (xp.minimum(m, n) == 1).any(-1) | xp.isnan(value)
    variance = xp.where(unknown, xp.nan, squares.sum(-1))
    if numbers is None:
        # The variance of two or three placement values may be near 0 by chance, and the equation
        # would give the degrees of freedom of the other class without the variance of a coin toss.
        v = parts - divide(squares, counts)
        freedom = divide(v.sum(-1) ** 2, divide(v**2, counts - 1).sum(-1), xp.nan)
        return AreaMoments(value, variance, size, number, freedom, False)
    sizes = sums_by_cluster(classes, numbers[..., None, :], num_clusters)
    spread = Spread.of_classes(moves(numbers), variance, sizes, divide(parts, counts))
    number, freedom = number * spread.share, spread.number - 1
    return AreaMoments(value, spread.variance, size, number, freedom, True)


def moves_of_mean(
    residuals: Array, amounts: Array, number: Array, numbers: Array | None, num_clusters: int
) -> Array:
    """Return by how much the mean of `number` values changes if a unit (an example or a cluster) is
    left out, scaled so that the sum of squares is the variance of the mean.
    """
    n = number[..., None]
    if numbers is None:
        return residuals * divide(1.0, xp.sqrt(n * (n - 1)))
    size, total = (sums_by_cluster(x, numbers, num_clusters) for x in (amounts, residuals))
    return jackknife_moves(*(divide(x, n, xp.nan) for x in (total, size)))


def quantile(moments: AreaMoments, z: float) -> Array | float:
    """Return the quantile for the score interval: normal, or Student's if there are clusters."""
    return student_quantile(z, moments.freedom) if moments.is_clustered else z


def area_estimate(moments: AreaMoments, z: Array | float, method: Method) -> Estimate:
    value, error, number = moments.value, xp.sqrt(moments.variance), moments.number
    scale = "logit" if method == "logit" else None
    estimate = normal_estimate(value, error, z, scale, num_examples=moments.size)
    low, high = xp.clip(estimate.low, 0, 1), xp.clip(estimate.high, 0, 1)
    if method == "score":
        low, high = wilson_interval(value * number, number, z)
    return replace(estimate, low=low, high=high)


def placement_values(ranked: Ranked) -> Array:
    """Compute the placement values of sorted examples, without weights.

    The placement value of a positive is the fraction of negatives with a lower score. The placement
    value of a negative is the fraction of positives with a higher score. Ties count half.
    """
    positive = ranked.positive > 0
    num_pos, num_neg = (x[..., None] for x in ranked.totals)
    negatives_below = num_neg - sum_above(ranked.negative, ranked.last)
    positives_above = sum_above(ranked.positive, ranked.last)
    pairs_in_order = xp.where(positive, negatives_below, positives_above)
    placements = divide(pairs_in_order, xp.where(positive, num_neg, num_pos), xp.nan)
    return xp.where(ranked.undefined[..., None], xp.nan, placements)
