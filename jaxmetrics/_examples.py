"""Validate the examples that measures of scores and of probabilities take.

Truth stands beside numbers, one for each example, `(..., n)`, or one for each of its classes or
labels, `(..., n, K)`; weights and a mask `(..., n)` say which examples count. What shapes and
dtypes show is checked always. What values show is checked where they live on the host, since jit
hides those of JAX arrays. The values of examples that do not count are not checked: those that
`where` leaves out, those of weight 0 and those whose label is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import append_axes
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_jax, on_device, xp
from jaxmetrics._validation import (
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
    check_weights,
    ids_in_range,
    is_integer,
    refuse_where,
    shapes_of,
    valid_ids,
)

__all__: list[str] = []


class Examples(NamedTuple):
    """Checked examples.

    `ids`: class ids, negative where there is none, `(..., n)`, or `(..., n, L)` 0 or 1 for each of
    L labels. `values`: a number for each example or for each of its classes or labels. `weights`,
    `mask`: `(..., n)`, None where none were given. `shares`: of soft truth, whose ids are 0, what
    share of each class is true, `(..., n, K)`.
    """

    ids: Array
    values: Array
    weights: Array | None
    mask: Array | None
    shares: Array | None = None

    @property
    def amounts(self) -> Array:
        """How much each example of one label counts, `(..., n)`.

        It is 1 (int8) or the weight of the example, 0 where it is left out.
        """
        keep = self.ids >= 0
        keep = keep if self.mask is None else keep & self.mask
        return keep.astype(xp.int8) if self.weights is None else xp.where(keep, self.weights, 0)


# Checks and converts an argument, given its name, and which of its values count (None: all of them;
# an array of JAX: not known, so that no value is checked).
_Reader = Callable[[Array, str, "Array | None"], Array]


class Kind(NamedTuple):
    """What an argument holds: how it is checked, and a hint how to make rows of two classes."""

    read: _Reader
    two_class_hint: str = ""


def binary_examples(
    y_true: ArrayLike,
    values: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    kind: Kind,
    *,
    name: str,
    truth_name: str = "y_true",
) -> Examples:
    """Check truth of 0 and 1 with one number for each example."""
    truth, numbers = as_array(y_true, truth_name), as_array(values, name)
    check_integer(truth, truth_name)
    check_no_column(truth, truth_name)
    check_real(numbers, name)
    has_axis_of_classes = numbers.ndim == truth.ndim + 1
    if has_axis_of_classes and truth.shape[-1:] == numbers.shape[-2:-1] != numbers.shape[-1:]:
        column = 0 if numbers.shape[-1] == 1 else 1
        raise ValueError(
            f"{name} must have shape (..., n), one number per example, the score or probability of"
            f" class 1, got {numbers.shape} for {truth_name} {truth.shape}. Take"
            f" {name}[..., {column}] of {column + 1}, per_class(function) or"
            " top_label(function) of several classes, per_label(function) of labels."
        )
    given = _Argument(truth_name, truth, _class_ids(2)), _Argument(name, numbers, kind.read)
    return _examples(*given, sample_weight, where)


def is_soft(y_true: ArrayLike, rows: ArrayLike, name: str) -> bool:
    """Tell whether truth is no class ids, but floats `(..., n, K)`, shares of all classes."""
    truth, numbers = as_array(y_true, "y_true"), as_array(rows, name)
    are_rows = min(truth.ndim, numbers.ndim) >= 2 and truth.shape[-1] == numbers.shape[-1]
    return are_rows and bool(xp.issubdtype(truth.dtype, xp.floating))


def soft_examples(
    y_true: ArrayLike,
    rows: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    kind: Kind,
    truth_kind: Kind,
    *,
    name: str,
) -> Examples:
    """Check what share of each of K classes is true, with a number for each."""
    examples = label_examples(y_true, rows, sample_weight, where, kind, truth_kind, name=name)
    ids = xp.zeros_like(examples.ids, xp.int8, shape=examples.ids.shape[:-1])
    return examples._replace(ids=ids, shares=examples.ids)


def class_examples(
    y_true: ArrayLike,
    rows: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    kind: Kind,
    *,
    name: str,
) -> Examples:
    """Check class ids with a number for each of K classes."""
    truth, numbers = as_array(y_true, "y_true"), as_rows(rows, name)
    check_integer(truth, "y_true")
    check_real(numbers, name)
    k = numbers.shape[-1] if numbers.ndim else 1
    if numbers.ndim <= truth.ndim:
        check_no_column(truth, "y_true")
    # With as many axes as truth, the numbers may still be rows, which batches of truth share.
    are_rows = numbers.ndim >= 2 and k >= 2 and numbers.shape != truth.shape
    if are_rows and numbers.ndim <= truth.ndim:
        are_rows = numbers.shape[-2] == truth.shape[-1]
    if not are_rows:
        raise ValueError(
            f"{name} must have shape (..., n, K), a number for each of K >= 2 classes of the n"
            f" examples of y_true, got {numbers.shape} for y_true"
            f" {truth.shape}{kind.two_class_hint}."
        )
    given = _Argument("y_true", truth, _class_ids(k)), _Argument(name, numbers, kind.read, 1)
    return _examples(*given, sample_weight, where)


def label_examples(
    y_true: ArrayLike,
    values: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    kind: Kind,
    truth_kind: Kind,
    *,
    name: str,
) -> Examples:
    """Check what is true of each of L labels, with a number for each.

    Weights and mask are of examples.
    """
    truth, numbers = as_array(y_true, "y_true"), as_array(values, name)
    check_real(truth, "y_true")
    check_real(numbers, name)
    if min(truth.ndim, numbers.ndim) < 2 or not truth.shape[-1] == numbers.shape[-1] > 0:
        raise ValueError(
            f"y_true and {name} must have shape (..., n, L) with the same n and L, one column per"
            f" label; got {truth.shape} and {numbers.shape}."
        )
    given = _Argument("y_true", truth, truth_kind.read, 1), _Argument(name, numbers, kind.read, 1)
    return _examples(*given, sample_weight, where)


class _Argument(NamedTuple):
    """An array of examples, with `inner` axes behind theirs."""

    name: str
    array: Array
    read: _Reader
    inner: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape[: self.array.ndim - self.inner]


def _examples(
    truth: _Argument, numbers: _Argument, sample_weight: ArrayLike | None, where: ArrayLike | None
) -> Examples:
    weights = None if sample_weight is None else as_float(sample_weight, "sample_weight")
    mask = as_mask(where)
    shapes = {truth.name: truth.shape, numbers.name: numbers.shape}
    check_examples(shapes | shapes_of(sample_weight=weights, where=mask))

    # The values of an argument are checked where all those read before it let the example count.
    has_weight = weights if weights is None or is_jax(weights) else weights != 0
    counted = _with_inner_axes(_both(mask, has_weight), truth.inner)
    ids = truth.read(truth.array, truth.name, _any_of_batch(counted, truth.array.shape))
    counted = _both(counted, ids if is_jax(ids) else ids >= 0)
    if weights is not None:
        of_examples = counted if is_jax(counted) or not truth.inner else np.any(counted, -1)
        check_weights(weights, _any_of_batch(of_examples, weights.shape))
    counted = _with_inner_axes(counted, numbers.inner - truth.inner)
    values = numbers.read(numbers.array, numbers.name, _any_of_batch(counted, numbers.array.shape))
    return Examples(ids, values, weights, mask)


def _with_inner_axes(counted: Array | None, number: int) -> Array | None:
    """Append axes to that of the examples."""
    return counted if counted is None or is_jax(counted) else append_axes(counted, number)


def _both(a: Array | None, b: Array | None) -> Array | None:
    """Tell what counts by both; an array of JAX where that is not known."""
    if a is None or is_jax(b):
        return b
    return a if b is None or is_jax(a) else a & b


def _any_of_batch(counted: Array | None, shape: tuple[int, ...]) -> Array | None:
    """Tell what counts, of an array of this shape, in any of the batch entries that share it."""
    if counted is None or is_jax(counted):
        return counted
    counted = counted.any(tuple(range(max(counted.ndim - len(shape), 0))))
    shared = [i for i in range(-counted.ndim, 0) if shape[i] == 1 < counted.shape[i]]
    return counted.any(tuple(shared), keepdims=True)


def _class_ids(size: int) -> _Reader:
    def read(ids: Array, name: str, counted: Array | None) -> Array:
        check_integer(ids, name)
        if is_jax(ids):
            return valid_ids(ids, size=size)
        if size > 2:
            return ids_in_range(ids, name, size, counted)
        check_binary(ids, name, counted)
        return ids_in_range(ids, name, size, counted).astype(np.int8)

    return read


def _scores(given: Array, name: str, counted: Array | None) -> Array:
    """Check scores; only their order matters, so they keep the precision in which they came."""
    if on_device(given, counted) or is_integer(given) or not given.size:
        return given
    if np.isnan(given.max()):  # in one pass, without a mask
        check_no_nan(given, name, counted)
    return given


def _gains(given: Array, name: str, counted: Array | None) -> Array:
    gains = as_float(given, name)
    if not on_device(gains, counted):
        message = "but relevance is a number >= 0; where= leaves examples out."
        refuse_where(~(gains >= 0), gains, name, message, counted)
    return gains


def _probabilities(given: Array, name: str, counted: Array | None) -> Array:
    """Check probabilities; what rounding has put beyond 0 or 1 is put back."""
    p = as_float(given, name)
    if on_device(p, counted):
        return p
    rounding = 8 * _eps(given)
    check_no_nan(p, name, counted)
    message = (
        "but probabilities lie in [0, 1]. Logits become probabilities by a softmax or sigmoid."
    )
    refuse_where((p < -rounding) | (p > 1 + rounding), p, name, message, counted)
    return np.clip(p, 0, 1)


def _distributions(given: Array, name: str, counted: Array | None) -> Array:
    """Check probabilities of all classes; on the device, rows that do not sum to 1 become NaN."""
    p = _probabilities(given, name, counted)
    if on_device(p, counted):
        return nan_unless_normalized(p, eps=_eps(given))
    message = (
        "but probabilities of all classes sum to 1: divide them by their sum, or take the softmax"
        " of logits."
    )
    off = ~sums_to_one(p, _eps(given))
    if off.any():
        refuse_where(off, p.sum(-1), f"the sum of {name}", message, _of_rows(counted))
    return p


@compiled
def nan_unless_normalized(rows: Array, *, eps: float) -> Array:
    """Replace rows `(..., K)` of probabilities that do not sum to 1 by NaN."""
    return xp.where(sums_to_one(rows, eps)[..., None], rows, xp.nan)


def sums_to_one(rows: Array, eps: float) -> Array:
    """Tell which rows `(..., K)` of probabilities sum to 1, but for their rounding.

    Files hold probabilities that were rounded to three decimals or more. Each of K such errors is
    spread evenly over ±0.0005, so their sum has the standard deviation 0.001 sqrt(K / 12), of which
    six are allowed: that is more than all errors together can be up to K = 12, and beyond it one
    row in 10^9 is refused. At most 0.05 is allowed, so that thousands of scores that were not
    normalised do not pass. Numbers of a dtype with a coarser `eps` may be off by its root.
    """
    three_decimals = min(0.001 * math.sqrt(3 * rows.shape[-1]), 0.05)
    return abs(rows.sum(-1) - 1) <= max(three_decimals, math.sqrt(eps))


def are_distributions(rows: Array, eps: float = 0.0) -> Array:
    """Tell which rows `(..., K)` are not negative, nor NaN, and sum to 1 but for their rounding."""
    return (rows >= 0).all(-1) & sums_to_one(rows, eps)


def _logits(given: Array, name: str, counted: Array | None) -> Array:
    """Check logits, and refuse probabilities, of which a softmax says little."""
    z = as_float(given, name)
    if not on_device(z, counted):
        check_no_nan(z, name, counted)
        greatest = z.max(-1)
        message = "but a softmax needs a finite one. -inf rules a class out; not all can be."
        refuse_where(
            np.isinf(greatest), greatest, f"the greatest of {name}", message, _of_rows(counted)
        )
        refuse_distributions(z, name, _of_rows(counted), _eps(given))
    return z


def refuse_distributions(z: Array, name: str, rows: Array | None, eps: float = 0.0) -> None:
    """Refuse logits `(..., K)` of the host that are probabilities in all rows that count."""
    if on_device(z, rows) or z.shape[-1] < 2:
        return
    counted = True if rows is None else rows
    is_distribution, counted = np.broadcast_arrays(are_distributions(z, eps), counted)
    if counted.any() and is_distribution[counted].all():
        raise ValueError(
            f"{name} holds probabilities: each row lies in [0, 1] and sums to 1. Give what the"
            f" softmax was taken of, or np.log({name})."
        )


def _of_rows(counted: Array | None) -> Array | None:
    return None if counted is None else counted[..., 0]


def _eps(given: np.ndarray) -> float:
    """Return the eps of the dtype in which numbers came.

    At least that of float32, in which those of lists may have been computed.
    """
    floating = jax.numpy.issubdtype(given.dtype, np.floating)
    return float(max(xp.finfo(given.dtype).eps if floating else 0.0, np.finfo(np.float32).eps))


_TWO_CLASS = "; two_class makes such an array of the probability of class 1"
_TWO_LOGITS = "; np.stack([np.zeros_like(z), z], -1) makes such an array of the logit z of class 1"

# The label of examples that are left out where truth is made here: beside a 1, `check_binary` would
# warn that -1 may be the other one of two classes.
IGNORED = np.int8(-100)

INDICATORS = Kind(_class_ids(2))
SCORES = Kind(_scores)
GAINS = Kind(_gains)
PROBABILITIES = Kind(_probabilities)
DISTRIBUTIONS = Kind(_distributions, _TWO_CLASS)
LOGITS = Kind(_logits, _TWO_LOGITS)
