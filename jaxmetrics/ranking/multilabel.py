"""Top-k metrics, metrics of the ranking of labels within each example, and metrics of label sets.

The scores `y_score` of shape `(..., n, L)` rank the L labels of each of n examples. `y_true` and
`y_pred` are label sets: arrays of 0 and 1 (or bool) of shape `(..., n, L)`. If a value is negative,
this label of this example is ignored. The result of shape `(...)` is the mean over examples,
weighted by `sample_weight` of shape `(..., n)`. Examples where the boolean mask `where` of shape
`(..., n)` is False are ignored. If no examples are left, the mean is NaN. A wrong dtype raises
TypeError, and shapes that do not match raise ValueError. The values of NumPy arrays are checked,
too, except for ignored examples: ValueError is raised if a score is NaN, if a weight is NaN,
infinite or negative, or if a label is invalid. In JAX arrays a NaN score makes the mean NaN, and an
invalid label is ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Literal

import numpy as np

from jaxmetrics._arguments.example_arguments import (
    Examples,
    as_gains,
    as_indicators,
    as_predicted_indicators,
    as_scores,
    class_examples,
    label_examples,
)
from jaxmetrics._arguments.single import ArrayLike, check_option, check_size
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled, one_program
from jaxmetrics._places.namespaces import Array, Arrays, float_dtype, xp
from jaxmetrics.ranking.areas import mean_precision
from jaxmetrics.ranking.columns import scored_labels
from jaxmetrics.ranking.ranks import (
    MeasureOfScores,
    Ranked,
    cumulative_positives,
    cumulative_sum,
    of_scores,
    order,
    rank_examples,
    sum_above,
    take,
)

__all__ = [
    "coverage_error",
    "dcg",
    "exact_match",
    "hamming_loss",
    "label_ranking_average_precision",
    "label_ranking_loss",
    "ndcg",
    "top_k_accuracy",
    "top_k_precision",
    "top_k_recall",
]


def _of_labels(measure: Callable[[Ranked], Array]) -> MeasureOfScores[Array]:
    """Turn a metric of the sorted labels of one example into its mean over examples."""

    @wraps(measure)
    def mean(labels: _Labels) -> Array:
        return _mean(xp.where(labels[0].undefined, xp.nan, measure(labels[0])), labels[1])

    return of_scores(mean, _ranked_labels)


_Labels = tuple[Ranked, Array]  # the sorted labels of each example, and its weight


def _ranked_labels(*arguments: Any) -> _Labels:
    examples = scored_labels(*arguments)
    return rank_examples(examples._replace(weights=None, mask=None)), _amounts(examples)


_label_sets = partial(
    label_examples, read=as_predicted_indicators, read_truth=as_indicators, name="y_pred"
)
_scored_gains = partial(label_examples, read=as_scores, read_truth=as_gains, name="y_score")


@one_program
def top_k_accuracy(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int,
    ties: Literal["index", "expected"] = "index",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute top-k accuracy: how often the true class is among the k classes with the highest
    scores.

    Args:
        y_true: class ids of shape `(..., n)`. Examples with a negative id are ignored.
        y_score: a score for each class, of shape `(..., n, K)`.
        k: number of classes with the highest scores, an int >= 1.
        ties: what to do if several classes have the same score as the class at place k. `"index"`
            prefers the class with the greater index, as scikit-learn does. `"expected"` counts a
            tied true class as the probability that a random order places it among the first k:
            `(k - number of classes with higher scores) / number of tied classes`, clipped to [0,
            1].
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Fractions in [0, 1], of shape `(...)`.

    >>> scores = [[0.5, 0.2, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1], [0.3, 0.3, 0.3, 0.1]]
    >>> top_k_accuracy([2, 2, 0], scores, k=2).round(4)
    np.float64(0.3333)
    >>> top_k_accuracy([2, 2, 0], scores, k=2, ties="expected").round(4)
    np.float64(0.3889)
    """
    check_option(ties, "ties", ("index", "expected"))
    examples = class_examples(y_true, y_score, sample_weight, where, as_scores, name="y_score")
    return _top_k_accuracy(examples, k=check_size(k, "k"), ties=ties)


@compiled
def _top_k_accuracy(examples: Examples, *, k: int, ties: str) -> Array:
    ids, score, *_ = examples
    dtype = float_dtype(score)  # scores are compared unrounded: float32 would tie large integers
    shape = xp.broadcast_shapes(ids.shape, score.shape[:-1])
    true = xp.broadcast_to(xp.maximum(ids, 0)[..., None], (*shape, 1))
    true_score = xp.take_along_axis(xp.broadcast_to(score, (*shape, score.shape[-1])), true, -1)
    num_higher, ties_with_true = (score > true_score).sum(-1), score == true_score
    if ties == "index":
        preferred = ties_with_true & (xp.arange(score.shape[-1]) > true)
        in_top_k = num_higher + preferred.sum(-1) < k
    else:
        places_left, num_tied = (x.astype(dtype) for x in (k - num_higher, ties_with_true.sum(-1)))
        in_top_k = xp.clip(divide(places_left, num_tied), 0, 1)
    undefined = xp.isnan(score.astype(dtype)).any(-1)
    return _mean(xp.where(undefined, xp.nan, in_top_k.astype(dtype)), examples.amounts)


def top_k_precision(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute precision at k: the fraction of true labels among the k labels with the highest
    scores, averaged over examples.

    The number of true labels is divided by k, even if there are fewer than k labels. If several
    labels have the same score as the label at place k, the expected number of true labels in a
    random order is counted.

    Args:
        y_true: labels 0 or 1, of shape `(..., n, L)` for n examples and L labels.
        y_score: real scores of shape `(..., n, L)`.
        k: number of labels with the highest scores, an int >= 1.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`.

    >>> y_true, y_score = [[1, 0, 1, 0], [0, 0, 0, 1]], [[0.9, 0.8, 0.1, 0], [0.1, 0.2, 0.3, 0.3]]
    >>> top_k_precision(y_true, y_score, k=2)
    np.float64(0.5)
    """
    labels = _ranked_labels(y_true, y_score, sample_weight, where)
    return _mean_of_hits(labels, check_size(k, "k"), among_true=False)


def top_k_recall(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute recall at k: the fraction of the true labels that are among the k labels with the
    highest scores, averaged over examples.

    For an example without true labels, recall is 0. If several labels have the same score as the
    label at place k, the expected number of true labels in a random order is counted.

    Args:
        y_true: labels 0 or 1, of shape `(..., n, L)` for n examples and L labels.
        y_score: real scores of shape `(..., n, L)`.
        k: number of labels with the highest scores, an int >= 1.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`.

    >>> y_true, y_score = [[1, 0, 1, 0], [0, 0, 0, 1]], [[0.9, 0.8, 0.1, 0], [0.1, 0.2, 0.3, 0.3]]
    >>> top_k_recall(y_true, y_score, k=2)
    np.float64(0.75)
    """
    labels = _ranked_labels(y_true, y_score, sample_weight, where)
    return _mean_of_hits(labels, check_size(k, "k"), among_true=True)


@compiled
def _mean_of_hits(labels: _Labels, k: Array, *, among_true: bool) -> Array:
    """Average the share of the true labels or of the first k labels that are both.

    Ties count with their probability.
    """
    ranked, amounts = labels
    dtype = float_dtype(ranked.score)
    counted = ranked.positive + ranked.negative
    start, end = (x.astype(dtype) for x in _ranks_of_ties(counted, ranked.last))
    places = xp.clip(divide(k - start, end - start), 0, 1)
    hits = (ranked.positive.astype(dtype) * places).sum(-1)
    share = divide(hits, ranked.totals[0]) if among_true else hits / k
    return _mean(xp.where(ranked.undefined, xp.nan, share), amounts)


@one_program
def hamming_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the Hamming loss: the fraction of labels that are wrong, `mean(y_true != y_pred)`.

    Args:
        y_true, y_pred: labels 0 or 1, of shape `(..., n, L)` for n examples and L labels.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`.

    >>> hamming_loss([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    np.float64(0.25)
    """
    return _mean_of_sets(_label_sets(y_true, y_pred, sample_weight, where), exact=False)


@one_program
def exact_match(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute exact match (subset accuracy): the fraction of examples whose labels are all correct.

    Args:
        y_true, y_pred: labels 0 or 1, of shape `(..., n, L)` for n examples and L labels.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`.

    >>> exact_match([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    np.float64(0.5)
    """
    return _mean_of_sets(_label_sets(y_true, y_pred, sample_weight, where), exact=True)


@compiled
def _mean_of_sets(examples: Examples, *, exact: bool) -> Array:
    """Average over examples whether all labels are correct, or over labels whether they are wrong.

    An example whose labels are all ignored does not count.
    """
    true, pred, *_ = examples
    counted = (true >= 0) & (pred >= 0)
    wrong, dtype = (true != pred) & counted, float_dtype(true)
    if exact:
        values, shares = (~wrong.any(-1)).astype(dtype), counted.any(-1)
    else:
        shares = counted.sum(-1).astype(dtype)
        values = divide(wrong.sum(-1).astype(dtype), shares)
    return _mean(values, xp.where(shares > 0, shares * _amounts(examples), 0))


@_of_labels
def label_ranking_average_precision(ranked: Ranked) -> Array:
    """Compute label ranking average precision (LRAP), averaged over examples.

    For each true label t of an example, take the labels whose score is at least the score of t.
    Compute the fraction of true labels among them. LRAP of the example is the mean of this fraction
    over its true labels. It is 1 if the labels are all true or all false.

    Args:
        y_true: labels 0 or 1, of shape `(..., n, L)` for n examples and L labels.
        y_score: real scores of shape `(..., n, L)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in (0, 1], of shape `(...)`.

    >>> y_true, y_score = [[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]]
    >>> label_ranking_average_precision(y_true, y_score).round(4)
    np.float64(0.4167)
    """
    num_true, num_false = ranked.totals
    return xp.where((num_true > 0) & (num_false > 0), mean_precision(ranked), 1)


@_of_labels
def label_ranking_loss(ranked: Ranked) -> Array:
    """Compute the label ranking loss, averaged over examples.

    The loss of an example is the fraction of wrongly ordered pairs of a true and a false label. A
    pair is wrongly ordered if the score of the false label is at least the score of the true label.
    The loss is 0 if the labels are all true or all false.

    Args:
        y_true: labels 0 or 1, of shape `(..., n, L)` for n examples and L labels.
        y_score: real scores of shape `(..., n, L)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`.

    >>> label_ranking_loss([[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]])
    np.float64(0.75)
    """
    tp, fp = cumulative_positives(ranked)
    num_true, num_false = ranked.totals
    # Fractions are summed, because with 100,000 labels the number of pairs may not fit in int32,
    # and a float32 sum of large numbers drifts.
    wrong = divide(fp[..., 1:].astype(float_dtype(fp)), num_false[..., None])
    return divide((xp.diff(tp, axis=-1) * wrong).sum(-1), num_true)


@_of_labels
def coverage_error(ranked: Ranked) -> Array:
    """Compute the coverage error: how many labels, taken in decreasing order of their scores, are
    needed to include all true labels, averaged over examples.

    Labels with the same score as the last true label are included. The number is 0 for an example
    without true labels.

    Args:
        y_true: labels 0 or 1, of shape `(..., n, L)` for n examples and L labels.
        y_score: real scores of shape `(..., n, L)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, L], of shape `(...)`.

    >>> coverage_error([[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]])
    np.float64(2.5)
    """
    tp, fp = cumulative_positives(ranked)
    depth = xp.where(xp.diff(tp, axis=-1, prepend=0) > 0, tp + fp, 0).max(-1)
    return depth.astype(float_dtype(depth))


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute normalised discounted cumulative gain (NDCG), `DCG / (DCG of the best order)`.

    `DCG = sum_r gain_r / log2(r + 1)` is a sum over ranks r = 1, 2, .... gain_r is the relevance of
    the label at rank r. The label with the highest score has rank 1. Labels with equal scores get
    the mean of their relevances. The result is the mean over examples. Sources: Järvelin and
    Kekäläinen (2002), ACM TOIS 20; McSherry and Najork (2008), ECIR.

    Args:
        y_true: relevance of L labels (or documents) for n examples (or queries), numbers >= 0 of
            shape `(..., n, L)`. If all labels of an example have relevance 0, its NDCG is 0.
            Negative relevance raises ValueError for NumPy arrays, and gives NaN for JAX arrays.
        y_score: real scores of shape `(..., n, L)`.
        k: number of ranks in the sum. By default all ranks are used.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values in [0, 1], of shape `(...)`.

    >>> ndcg([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]]).round(4)
    np.float64(0.6957)
    """
    return _gain(y_true, y_score, sample_weight, where, k=k, normalized=True)


def dcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute discounted cumulative gain (DCG), `sum_r gain_r / log2(r + 1)` over ranks r.

    The result is the mean over examples. The ranks are r = 1, 2, .... gain_r is the relevance of
    the label at rank r. The label with the highest score has rank 1.

    Args:
        y_true: relevance of L labels (or documents) for n examples (or queries), numbers >= 0 of
            shape `(..., n, L)`.
        y_score: real scores of shape `(..., n, L)`.
        k: number of ranks in the sum. By default all ranks are used.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        Values of shape `(...)`.

    >>> dcg([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]]).round(4)
    np.float64(9.4995)
    """
    return _gain(y_true, y_score, sample_weight, where, k=k, normalized=False)


def _gain(*arguments: Any, k: int | None, normalized: bool) -> Array:
    examples = _scored_gains(*arguments)
    num_labels = examples.values.shape[-1]
    num_ranks = num_labels if k is None else min(num_labels, check_size(k, "k"))
    return _dcg(examples, *order(examples.values), k=num_ranks, normalized=normalized)


@compiled
def _dcg(examples: Examples, position: Array, last: Array, *, k: int, normalized: bool) -> Array:
    gain, score, *_ = examples
    dtype = float_dtype(gain, score)
    gain, undefined = gain.astype(dtype), xp.isnan(score.astype(dtype)).any(-1)
    rank = np.arange(gain.shape[-1])  # ranks from 0
    discount = np.where(rank < k, 1 / np.log2(rank + 2), 0)
    # Each label has the mean of the discounts of its ties, which have ranks from `start` to `end` -
    # 1. Sums of discounts are split in a float and its remainder, because the difference of two
    # float32 sums over 100,000 ranks is wrong by 0.2 %.
    sums = np.concatenate([[0.0], np.cumsum(discount)])
    nearest = sums.astype(float_dtype(last))
    remainder = (sums - nearest).astype(nearest.dtype)
    start, end = _ranks_of_ties(xp.ones(last.shape, xp.int32), last)
    total, error = (xp.take(x, end) - xp.take(x, start) for x in (nearest, remainder))
    mean_discount = divide(total + error, (end - start).astype(nearest.dtype))
    dcg = (take(gain, position) * mean_discount.astype(dtype)).sum(-1)
    if normalized:
        dcg = divide(dcg, (-xp.sort(-gain, -1) * discount.astype(dtype)).sum(-1))
    defined = ~undefined & (gain >= 0).all(-1)
    return _mean(xp.where(defined, dcg, xp.nan), _amounts(examples))


def _ranks_of_ties(counted: Array, last: Array) -> Arrays:
    """Return for each sorted label the first rank (from 0) of its ties and the rank after the
    last.
    """
    end = cumulative_sum(counted, last)
    return (2 * sum_above(counted, last)).astype(end.dtype) - end, end


@compiled
def _amounts(examples: Examples) -> Array:
    """Return the weight of each example, which does not depend on which of its labels are
    ignored.
    """
    return examples._replace(ids=xp.zeros(examples.ids.shape[:-1], xp.int8)).amounts


def _mean(values: Array, amounts: Array) -> Array:
    """Return the mean of values `(..., n)`, weighted by the weights of examples."""
    shape = xp.broadcast_shapes(amounts.shape, values.shape)
    amounts = xp.broadcast_to(amounts, shape).astype(values.dtype)
    return divide((amounts * xp.where(amounts == 0, 0, values)).sum(-1), amounts.sum(-1), xp.nan)
