"""Check examples, which are described by several arguments, and read which of them count.

Each example has class ids and possibly one number, `(..., n)`, or one number per class or label,
`(..., n, K)`. Weights and a mask, `(..., n)`, say which examples count. Shapes and dtypes are
always checked. Values are checked for NumPy arrays only, because jit hides the values of JAX
arrays. Examples that do not count (masked, with weight 0 or with a negative label) are not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.labels import as_ids, check_columns, ordered_categories
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_float,
    as_mask,
    as_rows,
    check_binary,
    check_examples,
    check_integer,
    check_no_column,
    check_no_nan,
    check_real,
    counted,
    ids_in_range,
    largest_eps,
    refuse_where,
    shapes_of,
    valid_ids,
)
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, is_jax, on_device, xp

__all__: list[str] = []

_MOST_WEIGHT = 1e280  # so that sums of weights are finite

# A function `(array, name, *where)` that converts an argument, and checks the values that count.
Reading: TypeAlias = Callable[..., Array]


class Argument(NamedTuple):
    """An array of shape `(..., n)`, or `(..., n, K)` if `axes` is 1, and how it is read."""

    array: Array
    name: str
    read: Reading
    axes: int = 0


class Examples(NamedTuple):
    """Checked examples.

    Attributes:
        ids: class ids `(..., n)`, negative for ignored labels; or 0 and 1 for each of L labels,
            `(..., n, L)`.
        values: one number per example, `(..., n)`, or per class or label, `(..., n, K)`.
        weights, mask: `(..., n)`, or None.
        shares: for soft labels the share of each class, `(..., n, K)`; all ids are then 0.
    """

    ids: Array
    values: Array
    weights: Array | None
    mask: Array | None
    shares: Array | None = None

    @property
    def amounts(self) -> Array:
        """The weight with which each example counts, `(..., n)`.

        This is the weight of the example, or 1 (int8) without weights; 0 if it is ignored.
        """
        keep = self.ids >= 0
        keep = keep if self.mask is None else keep & self.mask
        return keep.astype(xp.int8) if self.weights is None else xp.where(keep, self.weights, 0)


def read_examples(
    labels: Sequence[Argument],
    numbers: Argument | None,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
) -> tuple[list[Array], Array | None, Array | None, Array | None]:
    """Check and convert labels, numbers, weights and mask.

    Labels are read first, then weights, then numbers. The values of an argument are checked only
    for examples that count by the mask, by the weights and by the labels before.
    """
    weights = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = as_mask(where)
    given = [*labels] if numbers is None else [*labels, numbers]
    shapes = {x.name: x.array.shape[: x.array.ndim - x.axes] for x in given}
    check_examples(shapes | shapes_of(sample_weight=weights, where=mask))
    counts = [(mask, 0), (weights, 0)]

    def read(x: Argument) -> Array:
        return x.read(x.array, x.name, *(aligned(*count, x.axes) for count in counts))

    ids = []
    for x in labels:
        ids.append(read(x))
        if ids[-1] is not x.array:  # some examples may be ignored
            counts.append((ids[-1] if is_jax(ids[-1]) else ids[-1] >= 0, x.axes))
    if weights is not None:
        weights = read(Argument(weights, "sample_weight", as_weights))
    return ids, None if numbers is None else read(numbers), weights, mask


def as_weights(sample_weight: ArrayLike, name: str, *where: Array | None) -> Array:
    """Convert weights to floats; invalid weights (NaN, negative or too large) raise an error.

    If weights or masks are JAX arrays, NaN, negative and infinite weights become NaN instead.
    """
    weights = as_float(sample_weight, name)
    if on_device(weights, where):
        return _nan_unless_valid(weights)
    check_no_nan(weights, name, *where)
    message = f"expected a finite weight >= 0, at most {_MOST_WEIGHT:g}, so that sums are finite."
    refuse_where(lambda w: (w < 0) | (w > _MOST_WEIGHT), weights, name, message, *where)
    return weights


@compiled
def _nan_unless_valid(weights: Array) -> Array:
    return xp.where((weights >= 0) & (weights < math.inf), weights, math.nan)


def aligned(x: Array | None, axes: int, wanted: int) -> Array | None:
    """Add or reduce the axis of classes; JAX arrays, which are not read, are left unchanged."""
    if x is None or is_jax(x) or axes == wanted:
        return x
    return x[..., None] if wanted else x.any(-1)


def binary_examples(
    y_true: ArrayLike,
    values: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    read: Reading,
    *,
    name: str,
    truth_name: str = "y_true",
) -> Examples:
    """Check examples with a truth of 0 or 1 and one number per example."""
    check_order(**{truth_name: y_true, name: values}, sample_weight=sample_weight, where=where)
    truth, numbers = as_array(y_true, truth_name), as_array(values, name)
    check_integer(truth, truth_name)
    check_no_column(truth, truth_name)
    check_real(numbers, name)
    *shape, k = numbers.shape or (1,)
    if len(shape) == truth.ndim and truth.shape[-1:] == tuple(shape[-1:]) != (k,):
        column = 0 if k == 1 else 1
        raise ValueError(
            f"{name} must have shape (..., n), with one number for each of n examples (the score"
            f" or the probability of class 1). The shape of {name} is {numbers.shape}, and the"
            f" shape of {truth_name} is {truth.shape}. If the last axis of {name} has length"
            f" {column + 1}, use {name}[..., {column}]. If there are several classes, use"
            " per_class(function) or top_label(function). If the problem is multilabel, use"
            " per_label(function)."
        )
    given = Argument(truth, truth_name, as_indicators), Argument(numbers, name, read)
    return _examples(*given, sample_weight, where)


def class_examples(
    y_true: ArrayLike,
    rows: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    read: Reading,
    *,
    name: str,
    truth_name: str = "y_true",
    hint: str = "",
) -> Examples:
    """Check examples with class ids as truth and one number for each of K classes.

    With scores, the truth may also consist of strings, as in reports: the columns of a data frame
    have the names of the classes, and columns without names are in their sorted order.
    """
    check_order(**{truth_name: y_true, name: rows}, sample_weight=sample_weight, where=where)
    truth, names = as_array(y_true, truth_name), None
    is_text = isinstance(truth, np.ndarray) and truth.ndim == 1 and truth.dtype.kind in "OTU"
    if is_text and read is as_scores and any(isinstance(x, str) for x in truth):
        ordered = ordered_categories({truth_name: y_true})
        (truth,), names = as_ids({truth_name: truth}, ordered, None)
    numbers = as_rows(rows, name, names)
    if names is not None and numbers.ndim > 1:
        check_columns(numbers.shape[-1], names, name)
    check_integer(truth, truth_name)
    check_real(numbers, name)
    *shape, k = numbers.shape or (1,)
    are_rows = len(shape) >= 1 and k >= 2
    if len(shape) < truth.ndim:  # a batch of truths may share the rows
        check_no_column(truth, truth_name)
        are_rows &= numbers.shape != truth.shape and shape[-1:] == [*truth.shape[-1:]]
    if not are_rows:
        way = f" If {truth_name} is one-hot, pass {truth_name}.argmax(-1)." * (truth.ndim > 1)
        raise ValueError(
            f"{name} must have shape (..., n, K), with one number for each of the n examples of"
            f" {truth_name} and for each of K >= 2 classes. The shape of {name} is"
            f" {numbers.shape}, and the shape of {truth_name} is {truth.shape}."
            f"{_TWO_CLASSES.get(read, '')}{way}{hint}"
        )
    ids = partial(_class_ids, size=k)
    given = Argument(truth, truth_name, ids), Argument(numbers, name, read, 1)
    return _examples(*given, sample_weight, where)


def label_examples(
    y_true: ArrayLike,
    values: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    read: Reading,
    read_truth: Reading,
    *,
    name: str,
) -> Examples:
    """Check examples of multilabel problems, with one number for each of L labels.

    Weights and mask have one entry per example.
    """
    check_order(y_true=y_true, **{name: values}, sample_weight=sample_weight, where=where)
    truth, numbers = as_array(y_true, "y_true"), as_array(values, name)
    check_real(truth, "y_true")
    check_real(numbers, name)
    if min(truth.ndim, numbers.ndim) < 2 or not truth.shape[-1] == numbers.shape[-1] > 0:
        raise ValueError(
            f"y_true and {name} must have shape (..., n, L) with the same n and L, one column per"
            f" label, got {truth.shape} and {numbers.shape}."
        )
    given = Argument(truth, "y_true", read_truth, 1), Argument(numbers, name, read, 1)
    return _examples(*given, sample_weight, where)


def _examples(
    truth: Argument, numbers: Argument, sample_weight: ArrayLike | None, where: ArrayLike | None
) -> Examples:
    (ids,), values, weights, mask = read_examples([truth], numbers, sample_weight, where)
    return Examples(ids, values, weights, mask)


def _class_ids(
    ids: Array, name: str, *where: Array | None, size: int, is_truth: bool = True
) -> Array:
    check_integer(ids, name)
    if is_jax(ids):
        return valid_ids(ids, size=size)
    if size == 2 and is_truth:
        check_binary(ids, name, *where)
    ids = ids_in_range(ids, name, *where, size=size, is_truth=is_truth)
    return ids.astype(np.int8) if size == 2 else ids


as_indicators = partial(_class_ids, size=2)
as_predicted_indicators = partial(_class_ids, size=2, is_truth=False)


def as_numbers(x: Array, name: str, *where: Array | None) -> Array:
    return as_float(x, name)


def as_scores(scores: Array, name: str, *where: Array | None) -> Array:
    """Check scores. Their dtype is not changed, because only the order of scores matters."""
    check_no_nan(scores, name, *where)
    return scores


def as_gains(relevance: Array, name: str, *where: Array | None) -> Array:
    gains = as_float(relevance, name)
    message = "but relevance must be a number >= 0; use where= to leave examples out."
    refuse_where(lambda gains: ~(gains >= 0), gains, name, message, *where)
    return gains


def as_probabilities(given: Array, name: str, *where: Array | None) -> Array:
    """Check probabilities; values below 0 or above 1 by a rounding error are clipped."""
    p, rounding = as_float(given, name), 8 * eps_of(given)
    check_no_nan(p, name, *where)
    message = "but probabilities lie in [0, 1]. Convert logits by a softmax or sigmoid."
    refuse_where(lambda p: (p < -rounding) | (p > 1 + rounding), p, name, message, *where)
    if not on_device(p, where):
        return np.clip(p, 0, 1)
    if rounding <= 8 * xp.finfo(p.dtype).eps:
        return p  # clipped where it is used, because this would be one more program
    return xp.where((p >= -rounding) & (p <= 1 + rounding), xp.clip(p, 0, 1), p)


def as_distributions(given: Array, name: str, *where: Array | None) -> Array:
    """Check rows of probabilities; in JAX arrays, rows that do not sum to 1 become NaN."""
    p, eps = as_probabilities(given, name, *where), eps_of(given)
    if on_device(p, where):
        return _nan_unless_normalized(p, eps=eps)
    message = (
        "but probabilities of all classes sum to 1: divide each row by its sum or, if these are"
        " logits, take the softmax."
    )
    sums = p.sum(-1)
    bad = ~is_total(sums, p.shape[-1], eps)
    refuse_where(bad[..., None], sums, f"the sum of {name}", message, *where)
    return p


@compiled
def _nan_unless_normalized(rows: Array, *, eps: float) -> Array:
    is_normalized = is_total(rows.sum(-1, keepdims=True), rows.shape[-1], eps)
    return xp.where(is_normalized, rows, xp.nan)


def is_total(sums: Array, k: int, eps: float) -> Array:
    """Return which sums of K probabilities are equal to 1 up to rounding.

    Files often contain probabilities that were rounded to three decimals. Each of the K rounding
    errors is uniform in ±0.0005, so that their sum has the standard deviation 0.001 sqrt(K / 12).
    Six standard deviations are allowed. Up to K = 12, this is more than the largest possible error;
    for more classes, one valid row in 10^9 raises an error. At most 0.05 is allowed, so that
    thousands of scores that were not normalised do not pass. For dtypes of low precision, the
    square root of `eps` is allowed if it is larger.
    """
    three_decimals = min(0.001 * math.sqrt(3 * k), 0.05)
    return abs(sums - 1) <= max(three_decimals, math.sqrt(eps))


def are_distributions(rows: Array, eps: float = 0.0) -> Array:
    """Return which rows `(..., K)` are probabilities: not negative, not NaN, and with sum 1."""
    return (rows >= 0).all(-1) & is_total(rows.sum(-1), rows.shape[-1], eps)


def as_logits(given: Array, name: str, *where: Array | None) -> Array:
    """Check logits of which a softmax can be computed."""
    z = as_training_logits(given, name, *where)
    if on_device(z, where):
        return z
    check_no_nan(z, name, *where)
    message = (
        "but a softmax needs a finite greatest logit. -inf rules out a class, and at least one"
        " class of each example must remain."
    )
    top = z.max(-1)
    refuse_where(np.isinf(top)[..., None], top, f"the greatest of {name}", message, *where)
    return z


def as_training_logits(given: Array, name: str, *where: Array | None) -> Array:
    """Check logits, which may be NaN or infinite during training.

    If all NumPy rows that count are probabilities, they raise an error, because a softmax of
    probabilities is meaningless.
    """
    z = as_float(given, name)
    if on_device(z, where) or z.shape[-1] < 2:
        return z
    found = are_distributions(z, eps_of(given))[..., None]
    differ = (z.max(-1) != z.min(-1))[..., None]  # equal logits may be 1 / K, too
    if counted(found & differ, *where).any() and not counted(~found, *where).any():
        raise ValueError(
            f"{name} must contain logits, but in each row the numbers lie in [0, 1] and sum to 1,"
            f" as probabilities do. Pass the logits before the softmax, or pass np.log({name}). If"
            f" these are logits, pass {name} + 1, which has the same softmax."
        )
    return z


def eps_of(given: np.ndarray) -> float:
    """Return the machine epsilon of the dtype of an array, or of float32 if that is larger.

    The numbers of a list may have been computed in float32.
    """
    return max(largest_eps(given), float(np.finfo(np.float32).eps))


_TWO_CLASSES = {
    as_distributions: " two_class(p) converts probabilities p of class 1, of shape (..., n), to"
    " this shape.",
    as_logits: " np.stack([np.zeros_like(z), z], -1) converts the logit z of class 1 to this"
    " shape.",
}
