"""Validate examples for metrics of scores and probabilities.

Each example has a truth and one number, `(..., n)`, or one number per class or label,
`(..., n, K)`. Weights and a mask, `(..., n)`, say which examples count. Shapes and dtypes are
always checked. Values are checked for NumPy arrays only, because jit hides the values of JAX
arrays. Examples that do not count (masked, with weight 0 or with a negative label) are not checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_jax, on_device, xp
from jaxmetrics._scatter import valid_ids
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_float,
    as_mask,
    as_rows,
    as_weights,
    check_binary,
    check_examples,
    check_integer,
    check_no_column,
    check_real,
    counted,
    ids_in_range,
    refuse_where,
    shapes_of,
)

__all__: list[str] = []


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

    def of_shares(self) -> Examples:
        """Convert label sets to soft labels, which are the shares of the classes."""
        ids = xp.zeros_like(self.ids, xp.int8, shape=self.ids.shape[:-1])
        return self._replace(ids=ids, shares=self.ids)


class _Argument(NamedTuple):
    """An array of examples, and which examples count.

    Attributes:
        array: one number per example, `(..., n)`, or one per class or label, `(..., n, K)`.
        name: the name of the argument in error messages.
        where: masks, weights or ids (0 or False if ignored) that broadcast against the array.
        of_rows: the same, with one entry per example, `(..., n)`.
    """

    array: Array
    name: str
    where: tuple[Array | None, ...]
    of_rows: tuple[Array | None, ...]

    @property
    def is_hidden(self) -> bool:
        return on_device(self.array, self.where)

    def refuse(
        self, bad: Callable[[Array], Array], x: Array, message: str, of_row: str = ""
    ) -> None:
        """Raise an error for the first bad value of `x`, or the first bad row."""
        where = self.of_rows if of_row else self.where
        refuse_where(bad, x, of_row + self.name, message, *where)


class Reading(NamedTuple):
    """A function that checks and converts an argument, and a hint for problems of two classes."""

    read: Callable[[_Argument], Array]
    two_class_hint: str = ""


def binary_examples(
    y_true: ArrayLike,
    values: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    kind: Reading,
    *,
    name: str,
    truth_name: str = "y_true",
) -> Examples:
    """Check examples with a truth of 0 or 1 and one number per example."""
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
    given = (truth, truth_name, 0), (numbers, name, 0)
    return _examples(*given, sample_weight, where, INDICATORS, kind)


def class_examples(
    y_true: ArrayLike,
    rows: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    kind: Reading,
    *,
    name: str,
    truth_name: str = "y_true",
) -> Examples:
    """Check examples with class ids as truth and one number for each of K classes."""
    truth, numbers = as_array(y_true, truth_name), as_rows(rows, name)
    check_integer(truth, truth_name)
    check_real(numbers, name)
    *shape, k = numbers.shape or (1,)
    are_rows = len(shape) >= 1 and k >= 2
    if len(shape) < truth.ndim:  # a batch of truths may share the rows
        check_no_column(truth, truth_name)
        are_rows &= numbers.shape != truth.shape and shape[-1:] == [*truth.shape[-1:]]
    if not are_rows:
        raise ValueError(
            f"{name} must have shape (..., n, K), with one number for each of the n examples of"
            f" {truth_name} and for each of K >= 2 classes. The shape of {name} is"
            f" {numbers.shape}, and the shape of {truth_name} is"
            f" {truth.shape}.{kind.two_class_hint}"
        )
    given = (truth, truth_name, 0), (numbers, name, 1)
    return _examples(*given, sample_weight, where, Reading(_class_ids(k)), kind)


def is_soft(y_true: ArrayLike, rows: ArrayLike, name: str) -> bool:
    """Return whether truth is soft labels: floats `(..., n, K)`, the shares of all classes."""
    truth, numbers = as_array(y_true, "y_true"), as_array(rows, name)
    are_rows = min(truth.ndim, numbers.ndim) >= 2 and truth.shape[-1] == numbers.shape[-1]
    return are_rows and bool(xp.issubdtype(truth.dtype, xp.floating))


def label_examples(
    y_true: ArrayLike,
    values: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    kind: Reading,
    truth_kind: Reading,
    *,
    name: str,
) -> Examples:
    """Check examples of multilabel problems, with one number for each of L labels.

    Weights and mask have one entry per example.
    """
    truth, numbers = as_array(y_true, "y_true"), as_array(values, name)
    check_real(truth, "y_true")
    check_real(numbers, name)
    if min(truth.ndim, numbers.ndim) < 2 or not truth.shape[-1] == numbers.shape[-1] > 0:
        raise ValueError(
            f"y_true and {name} must have shape (..., n, L) with the same n and L, one column per"
            f" label, got {truth.shape} and {numbers.shape}."
        )
    given = (truth, "y_true", 1), (numbers, name, 1)
    return _examples(*given, sample_weight, where, truth_kind, kind)


# An array, the name of the argument, and the number of axes after the axis of examples.
_Given: TypeAlias = tuple[Array, str, int]


def _examples(
    truth: _Given,
    numbers: _Given,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    truth_kind: Reading,
    kind: Reading,
) -> Examples:
    """Check and convert truth, weights and numbers, in this order.

    The values of an argument are checked only for examples that count by the arguments before.
    """
    weights = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = as_mask(where)
    shapes = {name: x.shape[: x.ndim - axes] for x, name, axes in (truth, numbers)}
    check_examples(shapes | shapes_of(sample_weight=weights, where=mask))

    ids = truth_kind.read(_argument(truth, mask, weights))
    has_label = ids if is_jax(ids) else ids >= 0
    in_row = truth[2] == 1 and not is_jax(ids)
    labelled = has_label.any(-1) if in_row else has_label
    if weights is not None:
        as_weights(weights, mask, labelled)
    argument = _argument(numbers, mask, weights, labelled)
    if in_row:
        argument = argument._replace(where=(*argument.where[:2], has_label))
    return Examples(ids, kind.read(argument), weights, mask)


def _argument(given: _Given, *of_rows: Array | None) -> _Argument:
    array, name, axes = given
    where = (x if x is None or is_jax(x) or not axes else x[..., None] for x in of_rows)
    return _Argument(array, name, tuple(where), of_rows)


def _class_ids(size: int) -> Callable[[_Argument], Array]:
    def read(x: _Argument) -> Array:
        check_integer(x.array, x.name)
        if is_jax(x.array):
            return valid_ids(x.array, size=size)
        if size == 2:
            check_binary(x.array, x.name, *x.where)
        ids = ids_in_range(x.array, x.name, size, *x.where)
        return ids.astype(np.int8) if size == 2 else ids

    return read


def _numbers(x: _Argument) -> Array:
    return as_float(x.array, x.name)


def _scores(x: _Argument) -> Array:
    """Check scores. Their dtype is not changed, because only the order of scores matters."""
    x.refuse(np.isnan, x.array, _NO_NUMBER)
    return x.array


def _gains(x: _Argument) -> Array:
    gains = as_float(x.array, x.name)
    message = "but relevance must be a number >= 0; use where= to leave examples out."
    x.refuse(lambda gains: ~(gains >= 0), gains, message)
    return gains


def _probabilities(x: _Argument) -> Array:
    """Check probabilities; values below 0 or above 1 by a rounding error are clipped."""
    p, rounding = as_float(x.array, x.name), 8 * eps_of(x.array)
    message = "but probabilities lie in [0, 1]. Convert logits by a softmax or sigmoid."
    x.refuse(np.isnan, p, _NO_NUMBER)
    x.refuse(lambda p: (p < -rounding) | (p > 1 + rounding), p, message)
    return p if x.is_hidden else np.clip(p, 0, 1)


def _distributions(x: _Argument) -> Array:
    """Check rows of probabilities; in JAX arrays, rows that do not sum to 1 become NaN."""
    p, eps = _probabilities(x), eps_of(x.array)
    if x.is_hidden:
        return nan_unless_normalized(p, eps=eps)
    message = (
        "but probabilities of all classes sum to 1: divide each row by its sum or, if these are"
        " logits, take the softmax."
    )
    k = p.shape[-1]
    x.refuse(lambda sums: ~is_total(sums, k, eps), p.sum(-1), message, "the sum of ")
    return p


@compiled
def nan_unless_normalized(rows: Array, *, eps: float) -> Array:
    """Replace rows `(..., K)` of probabilities that do not sum to 1 by NaN."""
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


def _logits(x: _Argument) -> Array:
    """Check logits. Probabilities raise an error, because a softmax of them is meaningless."""
    z = as_float(x.array, x.name)
    if not x.is_hidden:
        message = (
            "but a softmax needs a finite greatest logit. -inf rules out a class, and at least one"
            " class of each example must remain."
        )
        x.refuse(np.isnan, z, _NO_NUMBER)
        x.refuse(np.isinf, z.max(-1), message, "the greatest of ")
        refuse_distributions(z, x.name, *x.of_rows, eps=eps_of(x.array))
    return z


def refuse_distributions(z: Array, name: str, *where: Array | None, eps: float = 0.0) -> None:
    """Raise an error if all NumPy rows `(..., K)` that count are probabilities, not logits."""
    if on_device(z, where) or z.shape[-1] < 2:
        return
    found = are_distributions(z, eps)
    if counted(found, *where).any() and not counted(~found, *where).any():
        raise ValueError(
            f"{name} must contain logits, but in each row the numbers lie in [0, 1] and sum to 1,"
            f" as probabilities do. Pass the logits before the softmax, or pass np.log({name})."
        )


def eps_of(given: np.ndarray) -> float:
    """Return the machine epsilon of the dtype of an array, or of float32 if that is larger.

    The numbers of a list may have been computed in float32.
    """
    floating = xp.issubdtype(given.dtype, xp.floating)
    return float(max(xp.finfo(given.dtype).eps if floating else 0.0, np.finfo(np.float32).eps))


_NO_NUMBER = "not a number; use where= to leave examples out."
_TWO_CLASS = " two_class converts the probability of class 1 to this shape."
_TWO_LOGITS = " np.stack([np.zeros_like(z), z], -1) converts the logit z of class 1 to this shape."

# This label marks ignored examples in truth that this package makes. If it were -1, `check_binary`
# would issue a warning that -1 may be the negative class.
IGNORED = np.int8(-100)

INDICATORS = Reading(_class_ids(2))
NUMBERS = Reading(_numbers)
SCORES = Reading(_scores)
GAINS = Reading(_gains)
PROBABILITIES = Reading(_probabilities)
DISTRIBUTIONS = Reading(_distributions, _TWO_CLASS)
LOGITS = Reading(_logits, _TWO_LOGITS)
