"""Proper scoring rules of predicted probabilities, such as log loss and the Brier score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jaxmetrics._arguments.example_arguments import (
    Examples,
    Reading,
    as_distributions,
    as_logits,
    as_probabilities,
    class_examples,
    label_examples,
)
from jaxmetrics._arguments.single import ArrayLike, as_array, as_float
from jaxmetrics._numerics.arithmetic import divide, safe_log, safe_sqrt
from jaxmetrics._places.compilation import compiled, one_program
from jaxmetrics._places.namespaces import Array, Arrays, float_dtype, xp
from jaxmetrics._sums.counting import count
from jaxmetrics.scoring.rows import (
    at_class,
    is_probability,
    is_valid_logits,
    weighted_mean,
    weights_of,
)

__all__ = [
    "brier_score",
    "d2_brier_score",
    "d2_log_loss_score",
    "log_loss",
    "normalized_entropy",
    "ranked_probability_score",
    "spherical_score",
    "two_class",
]


def two_class(y_prob: ArrayLike) -> Array:
    """Convert probabilities p of class 1 to probabilities of both classes, `[1 - p, p]`.

    Scores such as `log_loss` need the probabilities of all classes. `y_prob` has shape `(..., n)`.
    Returns floats of shape `(..., n, 2)`.

    >>> brier_score([0, 1], two_class([0.25, 0.5]))
    np.float64(0.15625)
    """
    p = as_float(y_prob, "y_prob")
    return xp.stack([1 - p, p], -1)


@one_program
def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the log loss (cross-entropy) in nats: the mean of `-ln p_y` for true class y.

    The log loss is at least 0, and smaller is better. Probabilities are clipped to
    `[eps, 1 - eps]`, where eps is the machine epsilon of their dtype. The loss of an example is
    then at most 15.9 in float32 and 4.9 in bfloat16. Clipped probabilities have gradient 0. Prefer
    `logits`, which are never clipped. The rows of `y_prob` are not normalised. In JAX arrays, a row
    that does not sum to 1 gives NaN.

    Args:
        y_true: class ids of shape `(..., n)`, or soft labels t: floats of shape `(..., n, K)` whose
            rows sum to 1. The loss of a soft label is `-sum_k t_k ln p_k`. Multilabel rows with
            several ones raise an error.
        y_prob, logits: predicted probabilities or logits, of shape `(..., n, K)`. Pass one of the
            two.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    >>> log_loss([0, 2], [[0.5, 0.25, 0.25], [0.5, 0.25, 0.25]])  # (ln 2 + ln 4) / 2
    np.float64(1.0397208)
    >>> log_loss([0, 2], logits=[[10000.0, 0.0, 0.0], [20.0, 0.0, 20.0]])
    np.float64(0.3465736)
    """
    return _log_loss(*_forecast(y_true, y_prob, logits, sample_weight, where))


def normalized_entropy(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute normalised entropy: log loss / log loss of always predicting the class frequencies.

    The formula is `log_loss / -sum_k f_k ln f_k`, where f_k is the frequency of class k. Smaller is
    better. Always predicting the class frequencies has value 1. Source: He et al. (2014), Practical
    lessons from predicting clicks on ads at Facebook, section 3.

    Args:
        y_true: class ids of shape `(..., n)`, or soft labels of shape `(..., n, K)`, the
            probability of each class.
        y_prob, logits: predicted probabilities or logits, of shape `(..., n, K)`. Pass one of the
            two.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        Values of shape `(...)`. NaN if fewer than two classes occur.

    >>> normalized_entropy([0, 0, 0, 1], two_class([0.25, 0.25, 0.25, 0.25]))
    np.float64(1.0)
    """
    return _normalized_entropy(*_forecast(y_true, y_prob, logits, sample_weight, where))


def d2_log_loss_score(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    logits: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the D² log loss score, `1 - normalized_entropy`: the fraction of log loss explained.

    The score is at most 1, and greater is better. Always predicting the class frequencies has score
    0.

    Args:
        y_true: class ids of shape `(..., n)`, or soft labels of shape `(..., n, K)`, the
            probability of each class.
        y_prob, logits: predicted probabilities or logits, of shape `(..., n, K)`. Pass one of the
            two.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    >>> d2_log_loss_score([0, 0, 1, 1], two_class([0.25, 0.25, 0.75, 0.75]))  # 1 - ln(4/3) / ln 2
    np.float64(0.5849625)
    """
    options = {"logits": logits, "sample_weight": sample_weight, "where": where}
    return 1 - normalized_entropy(y_true, y_prob, **options)


@one_program
def brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scale_by_half: bool | Literal["auto"] = "auto",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the Brier score: mean squared error of probabilities, summed over classes, in [0, 2].

    The formula is the mean over examples of `sum_k (p_k - y_k)^2`. Here p_k is the predicted
    probability of class k, and y_k is 1 for the true class and 0 otherwise. Smaller is better.
    Source: Brier (1950), Monthly Weather Review 78.

    Args:
        y_true: class ids of shape `(..., n)`, or soft labels y_k: floats in [0, 1] of shape
            `(..., n, K)`. Rows of soft labels need not sum to 1. In multilabel problems a row may
            contain several ones.
        y_prob: predicted probabilities of shape `(..., n, K)`. With soft labels, its rows need not
            sum to 1.
        scale_by_half: if True, the score is divided by 2, so that it is in [0, 1]. For two classes,
            it is then the mean of `(p_1 - y_1)^2`. If "auto", the score is divided by 2 only for
            two classes, as in scikit-learn.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    >>> brier_score([0, 1], [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])  # (1/4 + 1/16 + 1/16) / 2
    np.float64(0.1875)
    >>> brier_score([0, 1], [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]], scale_by_half=True)
    np.float64(0.09375)
    >>> brier_score([[0.5, 0.5, 0.0], [1.0, 1.0, 0.0]], [[0.5, 0.25, 0.25], [0.5, 0.75, 0.5]])
    np.float64(0.34375)
    """
    if not isinstance(scale_by_half, bool | str) or scale_by_half not in (True, False, "auto"):
        raise ValueError(f"scale_by_half must be True, False or 'auto', got {scale_by_half!r}.")
    examples = _examples(y_true, y_prob, sample_weight, where, _EVENTS)
    half = examples.values.shape[-1] == 2 if scale_by_half == "auto" else scale_by_half
    score = _mean_of(_squared_distance, examples)
    return score / 2 if half else score


@one_program
def d2_brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the Brier skill score (D² Brier score): `1 - Brier score / reference score`.

    The reference score is the Brier score of always predicting the class frequencies. The skill
    score is at most 1, and greater is better.

    Args:
        y_true: class ids of shape `(..., n)`, or soft labels: floats in [0, 1] of shape
            `(..., n, K)`.
        y_prob: predicted probabilities of shape `(..., n, K)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        Values of shape `(...)`. NaN if all labels are the same.

    >>> d2_brier_score([0, 0, 1, 1], two_class([0.25, 0.25, 0.75, 0.75]))
    np.float64(0.75)
    """
    return _d2_brier_score(_examples(y_true, y_prob, sample_weight, where, _EVENTS))


@one_program
def spherical_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the spherical score: the mean of `p_y / sqrt(sum_k p_k^2)` for true class y.

    The score is in [0, 1], and greater is better. For each example, it is the cosine of the angle
    between the probabilities and the one-hot label. Source: Gneiting and Raftery (2007), JASA 102,
    example 2 with α = 2.

    Args:
        y_true: class ids of shape `(..., n)`, or soft labels of shape `(..., n, K)`, the
            probability of each class.
        y_prob: predicted probabilities of shape `(..., n, K)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    >>> spherical_score([0, 1], two_class([0.0, 0.75])).round(4)  # 3 / sqrt(10) in the second row
    np.float64(0.9743)
    """
    return _mean_of(_cosine, _examples(y_true, y_prob, sample_weight, where))


@one_program
def ranked_probability_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the ranked probability score (RPS) for ordered classes, in [0, 1].

    The score of an example is `sum_{k<K} (F_k - [y <= k])^2 / (K - 1)`. Here F_k is the predicted
    probability of all classes up to k. `[y <= k]` is 1 if the true class y is at most k, and 0
    otherwise. Smaller is better. A prediction that is wrong by two classes has a worse score than
    one that is wrong by one class. Source: Epstein (1969), Journal of Applied Meteorology 8.

    Args:
        y_true: class ids of shape `(..., n)`, or soft labels of shape `(..., n, K)`, the
            probability of each class.
        y_prob: predicted probabilities of shape `(..., n, K)`.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    >>> ranked_probability_score([0], [[0.0, 1.0, 0.0]])
    np.float64(0.5)
    >>> ranked_probability_score([0], [[0.0, 0.0, 1.0]])
    np.float64(1.0)
    """
    return _mean_of(_mean_cumulative_distance, _examples(y_true, y_prob, sample_weight, where))


def _examples(
    y_true: ArrayLike,
    rows: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    read: tuple[Reading, Reading] = (as_distributions, as_distributions),
    *,
    name: str = "y_prob",
) -> Examples:
    """Check rows of probabilities or logits, and their class ids or soft labels.

    Soft labels are floats `(..., n, K)`. The functions `read` read rows and soft labels.
    """
    truth, numbers = as_array(y_true, "y_true"), as_array(rows, name)
    are_rows = min(truth.ndim, numbers.ndim) >= 2 and truth.shape[-1] == numbers.shape[-1]
    if are_rows and xp.issubdtype(truth.dtype, xp.floating):
        examples = label_examples(y_true, rows, sample_weight, where, *read, name=name)
        ids = xp.zeros_like(examples.ids, xp.int8, shape=examples.ids.shape[:-1])
        return examples._replace(ids=ids, shares=examples.ids)
    hint = (
        " If y_true contains the shares of all classes, one-hot or soft, y_true must contain"
        " floats."
    )
    read_rows = as_logits if read[0] is as_logits else as_distributions
    return class_examples(y_true, rows, sample_weight, where, read_rows, name=name, hint=hint)


# Rows of soft labels need not sum to 1, because the Brier score is proper for each class
# separately.
_EVENTS = as_probabilities, as_probabilities


def _forecast(
    y_true: ArrayLike,
    y_prob: ArrayLike | None,
    logits: ArrayLike | None,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
) -> tuple[Examples, float | None]:
    """Check the examples, and return them with the eps of probabilities (None for logits)."""
    if logits is not None and y_prob is None:
        read = as_logits, as_distributions
        return _examples(y_true, logits, sample_weight, where, read, name="logits"), None
    if y_prob is None or logits is not None:
        raise ValueError(
            "Exactly one of y_prob and logits must be given, got"
            f" {('neither' if y_prob is None else 'both')}. If both are available, pass logits,"
            " which are more accurate."
        )
    examples = _examples(y_true, y_prob, sample_weight, where)
    dtypes = [float_dtype(examples), as_array(y_prob, "y_prob").dtype]
    floats = [dtype for dtype in dtypes if xp.issubdtype(dtype, xp.floating)]
    return examples, max(float(xp.finfo(dtype).eps) for dtype in floats)


@compiled
def _log_loss(examples: Examples, eps: float | None) -> Array:
    if eps is None:
        return _mean_of(_negative_log_softmax, examples, of_logits=True)
    return _mean_of(_negative_log_likelihood, examples, eps)


@compiled
def _mean_of(
    score: Callable[..., Array], examples: Examples, *options: ArrayLike, of_logits: bool = False
) -> Array:
    """Return the weighted mean of a score; NaN if a row that is not ignored is invalid.

    A score maps rows `(..., n, K)`, labels and options to one value per example. Labels are class
    ids `(..., n)` or soft labels `(..., n, K)`.

    Invalid rows are replaced before the score is computed, so that ignored rows do not affect
    gradients. Scores do not depend on weights, so they are computed once for a batch of weights.
    """
    ids, rows, *_, shares = examples
    shape = xp.broadcast_shapes(ids.shape, rows.shape[:-1])
    rows = xp.broadcast_to(rows, (*shape, rows.shape[-1]))
    valid = is_valid_logits(rows) if of_logits else is_probability(rows).all(-1)
    truth = xp.broadcast_to(ids, shape) if shares is None else xp.broadcast_to(shares, rows.shape)
    if shares is not None:
        valid &= is_probability(truth).all(-1)
        truth = xp.where(valid[..., None], truth, 0)
    rows = xp.where(valid[..., None], rows, 1 / rows.shape[-1])
    values = score(rows, truth, *options)
    return weighted_mean(xp.where(valid, values, xp.nan), weights_of(examples))


def _negative_log_likelihood(p: Array, y: Array, eps: Array) -> Array:
    if y.ndim < p.ndim:
        return -xp.log(xp.clip(at_class(p, y), eps, 1 - eps))
    return -(y * xp.log(xp.clip(p, eps, 1 - eps))).sum(-1)


def _negative_log_softmax(z: Array, y: Array) -> Array:
    """Compute `logsumexp(z) - z_y` in two parts, without cancellation.

    The parts are `log1p(sum_k exp(z_k - z_top))` over all k except the greatest logit, and
    `z_top - z_y`.
    """
    index_of_top = xp.argmax(z, -1)
    top = at_class(z, index_of_top)
    others = xp.where(_one_hot(z, index_of_top), 0, xp.exp(z - top[..., None])).sum(-1)
    if y.ndim < z.ndim:
        return xp.log1p(others) + (top - at_class(z, y))
    below = xp.where(y > 0, top[..., None] - xp.where(y > 0, z, 0), 0)
    return xp.log1p(others) * y.sum(-1) + (y * below).sum(-1)


# Rows sum to 1 up to rounding, so that the scores of class ids are clipped to their ranges.


def _squared_distance(p: Array, y: Array) -> Array:
    squares = ((p - _shares(p, y)) ** 2).sum(-1)
    return xp.minimum(squares, 2) if y.ndim < p.ndim else squares


def _cosine(p: Array, y: Array) -> Array:
    return divide((_shares(p, y) * p).sum(-1), safe_sqrt((p**2).sum(-1)), xp.nan)


def _mean_cumulative_distance(p: Array, y: Array) -> Array:
    return (xp.clip(xp.cumsum(p - _shares(p, y), -1)[..., :-1], -1, 1) ** 2).mean(-1)


def _shares(rows: Array, truth: Array) -> Array:
    return _one_hot(rows, truth) if truth.ndim < rows.ndim else truth


def _one_hot(rows: Array, ids: Array) -> Array:
    return ids[..., None] == xp.arange(rows.shape[-1])


@compiled
def _normalized_entropy(examples: Examples, eps: float | None) -> Array:
    f, rest = _class_frequencies(examples)
    # For a frequency near 1, log1p(-rest) has full precision; the logarithm in float32 has not.
    log_f = xp.where(f > 0.5, xp.log1p(-xp.where(f > 0.5, rest, 0)), safe_log(f))
    return divide(_log_loss(examples, eps), -(f * log_f).sum(-1), xp.nan)


@compiled
def _d2_brier_score(examples: Examples) -> Array:
    f, rest = _class_frequencies(examples)
    constant = (f * rest).sum(-1)
    if examples.shares is not None:
        constant = _mean_of(_squared_distance, examples._replace(values=f[..., None, :]))
        rounding = f.shape[-1] * (8 * xp.finfo(f.dtype).eps) ** 2  # if all labels are the same
        constant = xp.where(constant > rounding, constant, 0)
    return 1 - divide(_mean_of(_squared_distance, examples), constant, xp.nan)


def _class_frequencies(examples: Examples) -> Arrays:
    """Return the frequency f of each class and 1 - f, both of shape `(..., K)`.

    If a class contains nearly all examples, 1 - f is the sum of all other frequencies, to keep its
    precision.
    """
    k, shares = examples.values.shape[-1], examples.shares
    if shares is not None:
        weights = weights_of(examples)[..., None]
        total = weights.sum(-2)
        sums = xp.where(weights != 0, weights * shares, 0).sum(-2)
        return divide(sums, total, xp.nan), divide(total - sums, total, xp.nan)
    sums = count([("y_true", examples.ids, k)], weights_of(examples), None, refuse_columns=False)
    is_top = xp.argmax(sums, -1)[..., None] == xp.arange(k)
    total = sums.sum(-1, keepdims=True)
    rest = xp.where(is_top, xp.where(is_top, 0, sums).sum(-1, keepdims=True), total - sums)
    return divide(sums, total, xp.nan), divide(rest, total, xp.nan)
