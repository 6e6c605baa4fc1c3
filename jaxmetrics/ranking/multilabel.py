"""How the classes or labels of each example are ranked, and sets of labels that are right or wrong.

`y_score` `(..., n, L)` ranks the L labels of each example; results are means over examples, weighted by `sample_weight`
`(..., n)`; `where` `(..., n)` leaves examples out. A NaN score in an example that counts makes the mean NaN; the mean of no
examples is NaN. Wrong dtypes raise TypeError, shapes that do not go together ValueError.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp

from jaxmetrics._arrays import (
    ArrayLike,
    as_class_ids,
    as_float,
    as_host_or_jax,
    as_mask,
    check_examples,
    check_option,
    check_real,
    check_size,
    divide,
    float_dtype,
    promoting,
)
from jaxmetrics.ranking._ranks import Ranked, above, order, points, rank, take, through_ties

__all__ = [
    "coverage_error",
    "exact_match",
    "hamming_loss",
    "label_ranking_average_precision",
    "label_ranking_loss",
    "ndcg",
    "top_k_accuracy",
]


def top_k_accuracy(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int,
    ties: Literal["index", "expected"] = "index",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> jax.Array:
    """Share of examples whose true class is among the k classes with the highest scores.

    Where the true class ties with others for the last places, `ties="index"` prefers the class with the higher index, as
    scikit-learn does; `"expected"` gives the mean over all orders of those that tie, `(k - number above) / number that tie`
    clipped to [0, 1], which no order of the classes can improve.

    Args:
        y_true: class ids, `(..., n)`; a label outside of [0, K) leaves its example out.
        y_score: `(..., n, K)`.
        k: static, at least 1.

    Returns:
        `(...)`, in [0, 1]. For weights, masks, NaN and errors see the docstring of `jaxmetrics.ranking.multilabel`.

    >>> scores = [[0.5, 0.2, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1], [0.3, 0.3, 0.3, 0.1]]
    >>> top_k_accuracy([2, 2, 0], scores, k=2).round(4)
    Array(0.3333, dtype=float32)
    >>> top_k_accuracy([2, 2, 0], scores, k=2, ties="expected").round(4)
    Array(0.3889, dtype=float32)
    """
    check_option(ties, "ties", ("index", "expected"))
    score = _scores(y_score)
    ids = as_class_ids(y_true, "y_true", score.shape[-1])
    weight, mask = _weights_and_mask(sample_weight, where, y_true=ids.shape, y_score=score.shape[:-1])
    return _top_k_accuracy(ids, score, weight, mask, k=check_size(k, "k"), ties=ties)


@promoting
@partial(jax.jit, static_argnames=("k", "ties"))
def _top_k_accuracy(
    ids: jax.Array, score: jax.Array, weight: jax.Array | None, mask: jax.Array | None, *, k: int, ties: str
) -> jax.Array:
    wide = ids.astype(jnp.promote_types(ids.dtype, jnp.int32))[..., None]
    valid = ((wide >= 0) & (wide < score.shape[-1]))[..., 0]
    shape = jnp.broadcast_shapes(wide.shape[:-1], score.shape[:-1])
    true = jnp.broadcast_to(jnp.where(valid[..., None], wide, 0), (*shape, 1))
    own = jnp.take_along_axis(jnp.broadcast_to(score, (*shape, score.shape[-1])), true, -1)
    higher, same = (score > own).sum(-1), score == own
    if ties == "index":
        hit = higher + (same & (jnp.arange(score.shape[-1]) > true)).sum(-1) < k
    else:
        hit = jnp.clip(divide((k - higher).astype(float_dtype()), same.sum(-1).astype(float_dtype())), 0, 1)
    return _mean(jnp.where(jnp.isnan(score).any(-1), jnp.nan, hit.astype(float_dtype())), weight, mask, valid)


def hamming_loss(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> jax.Array:
    """Share of labels that are wrong, `mean(y_true != y_pred)` over examples and labels.

    Args:
        y_true, y_pred: 0 or 1 (or bool), `(..., n, L)`; any other value leaves out that label of that example.

    >>> hamming_loss([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    Array(0.25, dtype=float32)
    """
    true, pred, weight, mask = _indicators(y_true, y_pred, sample_weight, where)
    return _hamming_loss(true, pred, weight, mask)


@promoting
@jax.jit
def _hamming_loss(true: jax.Array, pred: jax.Array, weight: jax.Array | None, mask: jax.Array | None) -> jax.Array:
    counted = _is_label(true) & _is_label(pred)
    share = counted.sum(-1).astype(float_dtype())  # in this example
    wrong = divide(((true != pred) & counted).sum(-1).astype(float_dtype()), share)
    weight = share if weight is None else jnp.where(weight == 0, 0, weight * share)
    return _mean(wrong, weight, mask)


def exact_match(
    y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> jax.Array:
    """Share of examples with all labels right, also called subset accuracy.

    Args:
        y_true, y_pred: 0 or 1 (or bool), `(..., n, L)`; any other value leaves out that label of that example.

    >>> exact_match([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    Array(0.5, dtype=float32)
    """
    true, pred, weight, mask = _indicators(y_true, y_pred, sample_weight, where)
    return _exact_match(true, pred, weight, mask)


@promoting
@jax.jit
def _exact_match(true: jax.Array, pred: jax.Array, weight: jax.Array | None, mask: jax.Array | None) -> jax.Array:
    counted = _is_label(true) & _is_label(pred)
    return _mean(((true == pred) | ~counted).all(-1).astype(float_dtype()), weight, mask, counted.any(-1))


def label_ranking_average_precision(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> jax.Array:
    """Mean over examples of the average precision of its labels: of the labels ranked no lower than a true one, the share
    that is true. 1 for an example whose labels are all true or all false.

    Args:
        y_true: 0 or 1 (or bool), `(..., n, L)`; any other value leaves out that label of that example.
        y_score: `(..., n, L)`.

    Returns:
        `(...)`, in (0, 1].

    >>> label_ranking_average_precision([[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]]).round(4)
    Array(0.4167, dtype=float32)
    """
    ranked, weight, mask = _ranked_labels(y_true, y_score, sample_weight, where)
    return _lrap(ranked, weight, mask)


@promoting
@jax.jit
def _lrap(ranked: Ranked, weight: jax.Array | None, mask: jax.Array | None) -> jax.Array:
    tp, fp, num_true, num_false = _label_points(ranked)
    precision = divide(tp, tp + fp)[..., 1:]
    value = divide((jnp.diff(tp, axis=-1) * precision).sum(-1), num_true)
    return _mean(_nan_if(ranked, jnp.where((num_true > 0) & (num_false > 0), value, 1)), weight, mask)


def label_ranking_loss(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> jax.Array:
    """Mean over examples of the share of pairs of a true and a false label in which the true one is not ranked higher.

    Ties count as wrong. 0 for an example whose labels are all true or all false. Arguments as
    `label_ranking_average_precision`; in [0, 1].

    >>> label_ranking_loss([[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]])
    Array(0.75, dtype=float32)
    """
    ranked, weight, mask = _ranked_labels(y_true, y_score, sample_weight, where)
    return _label_ranking_loss(ranked, weight, mask)


@promoting
@jax.jit
def _label_ranking_loss(ranked: Ranked, weight: jax.Array | None, mask: jax.Array | None) -> jax.Array:
    tp, fp, num_true, num_false = _label_points(ranked)
    pairs = (jnp.diff(tp, axis=-1) * fp[..., 1:]).sum(-1)  # of each true label, the false ones ranked no lower
    return _mean(_nan_if(ranked, divide(pairs, num_true * num_false)), weight, mask)


def coverage_error(
    y_true: ArrayLike, y_score: ArrayLike, *, sample_weight: ArrayLike | None = None, where: ArrayLike | None = None
) -> jax.Array:
    """Mean over examples of how far down the ranking all its true labels are covered; ties count as ranked higher.

    Arguments as `label_ranking_average_precision`.

    Returns:
        `(...)`, a number of labels in [0, L]; 0 for an example without true labels.

    >>> coverage_error([[1, 0, 0], [0, 0, 1]], [[0.75, 0.5, 1.0], [1.0, 0.2, 0.1]])
    Array(2.5, dtype=float32)
    """
    ranked, weight, mask = _ranked_labels(y_true, y_score, sample_weight, where)
    return _coverage_error(ranked, weight, mask)


@promoting
@jax.jit
def _coverage_error(ranked: Ranked, weight: jax.Array | None, mask: jax.Array | None) -> jax.Array:
    tp, fp, _, _ = _label_points(ranked)
    depth = jnp.where(jnp.diff(tp, axis=-1, prepend=0) > 0, tp + fp, 0).max(-1)
    return _mean(_nan_if(ranked, depth), weight, mask)


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    k: int | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> jax.Array:
    """Normalised discounted cumulative gain: `DCG / (DCG of the best order)`, `DCG = sum_r gain_r / log2(r + 1)` over ranks r.

    The gain is the relevance as it stands. Labels that tie share the mean of their gains, as if in random order: Järvelin and
    Kekäläinen (2002), ACM TOIS 20; McSherry and Najork (2008), ECIR.

    Args:
        y_true: relevance, numbers >= 0, `(..., n, L)`.
        y_score: `(..., n, L)`.
        k: static; only the first k ranks count. All, if not given.

    Returns:
        `(...)`, the mean over examples, in [0, 1]; 0 for an example without relevant labels, NaN with a negative relevance.

    >>> ndcg([[10, 0, 0, 1, 5]], [[0.1, 0.2, 0.3, 4, 70]]).round(4)
    Array(0.6957, dtype=float32)
    """
    gain, score = as_float(y_true, "y_true"), as_host_or_jax(y_score)
    check_real(score, "y_score")
    if gain.ndim < 2 or score.ndim < 2 or gain.shape[-1] != score.shape[-1]:
        raise ValueError(f"y_true and y_score must have shape (..., n, L) with the same L, got {gain.shape}, {score.shape}.")
    weight, mask = _weights_and_mask(sample_weight, where, y_true=gain.shape[:-1], y_score=score.shape[:-1])
    length = gain.shape[-1]
    undefined = jnp.isnan(as_float(score, "y_score")).any(-1)
    return _ndcg(gain, undefined, order(score), weight, mask, k=min(length, length if k is None else check_size(k, "k")))


@promoting
@partial(jax.jit, static_argnames="k")
def _ndcg(
    gain: jax.Array,
    undefined: jax.Array,
    ordered: tuple[jax.Array, jax.Array],
    weight: jax.Array | None,
    mask: jax.Array | None,
    *,
    k: int,
) -> jax.Array:
    places = jnp.arange(gain.shape[-1])
    discount = jnp.where(places < k, 1 / jnp.log2(places + 2.0), 0).astype(float_dtype())
    position, last = ordered
    sorted_gain = take(gain, position)
    ones = jnp.ones(last.shape, jnp.int32)
    # Of those that tie, n in number with the last in place e, each gets the mean of the discounts of the places e - n to e.
    total = jnp.concatenate([jnp.zeros(1, discount.dtype), jnp.cumsum(discount)])
    end = through_ties(ones, last)
    start = (2 * above(ones, last)).astype(jnp.int32) - end
    shared = divide(total[end] - total[start], (end - start).astype(discount.dtype))
    best = (-jnp.sort(-gain, -1) * discount).sum(-1)
    possible = ~undefined & (gain >= 0).all(-1)
    value = jnp.where(possible, divide((sorted_gain * shared).sum(-1), best), jnp.nan)
    return _mean(value, weight, mask)


def _scores(y_score: ArrayLike) -> jax.Array:
    score = as_float(y_score, "y_score")
    if score.ndim < 2 or score.shape[-1] == 0:
        raise ValueError(f"y_score must have shape (..., n, K), one score per class, got {score.shape}.")
    return score


def _weights_and_mask(
    sample_weight: ArrayLike | None, where: ArrayLike | None, **shapes: tuple[int, ...]
) -> tuple[jax.Array | None, jax.Array | None]:
    weight = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = None if where is None else as_mask(where)
    optional = {"sample_weight": weight, "where": mask}
    check_examples(shapes | {name: x.shape for name, x in optional.items() if x is not None})
    return weight, mask


def _indicators(
    y_true: ArrayLike, y_pred: ArrayLike, sample_weight: ArrayLike | None, where: ArrayLike | None
) -> tuple[jax.Array, jax.Array, jax.Array | None, jax.Array | None]:
    true, pred = (jnp.asarray(as_class_ids(x, name, 2)) for x, name in ((y_true, "y_true"), (y_pred, "y_pred")))
    if min(true.ndim, pred.ndim) < 2 or true.shape[-1] != pred.shape[-1]:
        raise ValueError(f"y_true and y_pred must have shape (..., n, L) with the same L, got {true.shape} and {pred.shape}.")
    weight, mask = _weights_and_mask(sample_weight, where, y_true=true.shape[:-1], y_pred=pred.shape[:-1])
    return true, pred, weight, mask


def _is_label(x: jax.Array) -> jax.Array:
    return (x == 0) | (x == 1)


def _ranked_labels(
    y_true: ArrayLike, y_score: ArrayLike, sample_weight: ArrayLike | None, where: ArrayLike | None
) -> tuple[Ranked, jax.Array | None, jax.Array | None]:
    """The labels of each example, sorted: they take the part that examples have in `rank`."""
    ranked = rank(y_true, y_score)
    if ranked.positive.ndim < 2:
        raise ValueError(f"y_true and y_score must have shape (..., n, L), got {ranked.positive.shape}.")
    return ranked, *_weights_and_mask(sample_weight, where, **{"y_true and y_score": ranked.positive.shape[:-1]})


def _label_points(ranked: Ranked) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """True and false labels ranked no lower than each threshold, `(..., n, L + 1)`, and all of them, `(..., n)`."""
    tp, fp = (x.astype(float_dtype()) for x in points(ranked)[:2])
    return tp, fp, tp[..., -1], fp[..., -1]


def _nan_if(ranked: Ranked, value: jax.Array) -> jax.Array:
    return jnp.where(ranked.undefined, jnp.nan, value)


def _mean(values: jax.Array, weight: jax.Array | None, mask: jax.Array | None, counted: jax.Array | None = None) -> jax.Array:
    """Of values `(..., n)`, those that count."""
    amount = jnp.ones((), values.dtype) if weight is None else weight
    for keep in (mask, counted):
        amount = amount if keep is None else jnp.where(keep, amount, 0)
    amount = jnp.broadcast_to(amount, jnp.broadcast_shapes(amount.shape, values.shape))
    return divide((amount * jnp.where(amount == 0, 0, values)).sum(-1), amount.sum(-1), jnp.nan)
