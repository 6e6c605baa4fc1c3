"""From a binary measure to classes and labels: functions of functions, those of this package or your own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arrays import (
    ArrayLike,
    as_class_ids,
    as_float,
    as_host_or_jax,
    as_mask,
    check_option,
    check_real,
    divide,
    float_dtype,
    promoting,
)

__all__ = ["per_class", "per_label"]

Measure = Callable[..., Any]
Average = Literal["macro", "weighted", "micro"]


@dataclass(frozen=True)
class _Columns:
    """A binary measure of each column of the scores. Equal to another of the same parts, so that jit knows it again."""

    measure: Measure
    average: Average | None
    classes: bool

    def __post_init__(self) -> None:
        if not callable(self.measure):
            raise TypeError(f"expected a function of (y_true, y_score), such as jaxmetrics.roc_auc, got {self.measure!r}.")
        if self.average is not None:
            check_option(self.average, "average", ("macro", "weighted", "micro"))

    def __call__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *arguments: Any,
        sample_weight: ArrayLike | None = None,
        where: ArrayLike | None = None,
        **options: Any,
    ) -> Any:
        if self.classes:
            ids, columns = class_columns(y_true, y_score)
            truth = one_hot(ids, columns)
        else:
            truth, columns = label_columns(y_true, y_score)
        weight, mask = per_column(sample_weight, columns), per_column(where, columns)
        if self.average == "micro":
            truth, columns, weight, mask = _joined(truth, columns, weight, mask)
        given = {name: x for name, x in (("sample_weight", weight), ("where", mask)) if x is not None}
        values = self.measure(truth, columns, *arguments, **given, **options)
        if self.average in (None, "micro"):
            return values
        if not isinstance(values, jax.Array) or values.shape != truth.shape[:-1]:
            raise ValueError(
                f"average={self.average!r} needs a measure that returns one number, such as roc_auc: thresholds and points of"
                " curves have no mean. average=None returns those of each class."
            )
        share = _support(truth, weight, mask) if self.average == "weighted" else jnp.ones(truth.shape[:-1], float_dtype())
        return _mean_of_defined(values, share)


def per_class(measure: Measure, *, average: Average | None = None) -> Measure:
    """A binary measure, such as `roc_auc` or `calibration_error`, of each class against the rest.

    Args:
        measure: a function of `(y_true, y_score, ...)` with batch axes, yours included, and with the keywords `sample_weight`
            and `where` if they are used; `partial(best_threshold, metric)` is one.
        average: None keeps one value per class. "macro" is their mean, "weighted" that weighted by the number (or weight) of
            examples of each class, both over the classes whose value is not NaN; "micro" is the measure of all pairs of an
            example and a class together.

    Returns:
        A function of `y_true` `(..., n)`, class ids, and `y_score` `(..., n, K)`, with the measure's own arguments, that
        returns `(..., K)`, or `(...)` if averaged. A label outside of [0, K) leaves its example out.

    Raises:
        TypeError, ValueError: `measure` is no function, or `average` another word, or asked of a measure that returns more than
            one number; as the measure.

    >>> from jaxmetrics import roc_auc
    >>> scores = [[0.8, 0.1, 0.1], [0.3, 0.4, 0.3], [0.2, 0.5, 0.3], [0.4, 0.3, 0.3], [0.1, 0.2, 0.7]]
    >>> per_class(roc_auc)([0, 0, 1, 1, 2], scores)
    Array([0.8333333, 0.8333333, 1.       ], dtype=float32)
    >>> per_class(roc_auc, average="macro")([0, 0, 1, 1, 2], scores)
    Array(0.8888889, dtype=float32)
    """
    return _Columns(measure, average, classes=True)


def per_label(measure: Measure, *, average: Average | None = None) -> Measure:
    """A binary measure of each label of a multilabel problem: as `per_class`, but for `y_true` of 0 and 1 `(..., n, L)`.

    Any other value of `y_true` leaves out that label of that example.

    >>> from jaxmetrics import average_precision
    >>> per_label(average_precision)([[1, 0], [0, 1], [1, 1]], [[0.9, 0.2], [0.4, 0.1], [0.3, 0.8]])
    Array([0.8333334, 0.8333334], dtype=float32)
    """
    return _Columns(measure, average, classes=False)


def class_columns(y_true: ArrayLike, y_score: ArrayLike) -> tuple[jax.Array, Any]:
    """Class ids `(..., n)`, and scores as `(..., K, n)`, NumPy arrays as such."""
    score = _with_columns(y_score)
    return jnp.asarray(as_class_ids(y_true, "y_true", score.shape[-2])), score


def label_columns(y_true: ArrayLike, y_score: ArrayLike) -> tuple[jax.Array, Any]:
    """Truth and scores as `(..., L, n)`."""
    score = _with_columns(y_score)
    truth = jnp.asarray(as_class_ids(y_true, "y_true", 2))
    if truth.ndim < 2 or truth.shape[-2:] != (score.shape[-1], score.shape[-2]):
        raise ValueError(
            "y_true and y_score must have shape (..., n, L) with the same n and L, one column per label;"
            f" got {truth.shape} and {(*score.shape[:-2], score.shape[-1], score.shape[-2])}."
        )
    return truth.swapaxes(-1, -2), score


def _with_columns(y_score: ArrayLike) -> Any:
    score = as_host_or_jax(y_score)
    check_real(score, "y_score")
    if score.ndim < 2 or score.shape[-1] == 0:
        raise ValueError(f"y_score must have shape (..., n, K), one score per class or label, got {score.shape}.")
    return score.swapaxes(-1, -2)


def one_hot(ids: jax.Array, columns: Any) -> jax.Array:
    """Truth of each class against the rest, `(..., K, n)`; -1 where the label is no class."""
    k = columns.shape[-2]
    classes = jnp.arange(k, dtype=jnp.int32)[:, None]
    wide = ids.astype(jnp.int32)[..., None, :] if ids.dtype.itemsize < 4 else ids[..., None, :]
    return _one_hot(wide, classes)


@promoting
def _one_hot(ids: jax.Array, classes: jax.Array) -> jax.Array:
    return jnp.where((ids >= 0) & (ids < len(classes)), (ids == classes).astype(jnp.int8), jnp.int8(-1))


def per_column(per_example: ArrayLike | None, columns: Any) -> Any:
    if per_example is None:
        return None
    array = as_host_or_jax(per_example)
    return array[..., None, :] if array.ndim else array


@promoting
def _joined(truth: jax.Array, columns: Any, weight: Any, mask: Any) -> tuple[Any, ...]:
    """All columns in one."""
    k, n = jnp.broadcast_shapes(truth.shape, columns.shape)[-2:]

    def join(x: Any) -> Any:
        if x is None:
            return None
        broadcast = np.broadcast_to if isinstance(x, np.ndarray) else jnp.broadcast_to
        return broadcast(x, (*x.shape[:-2], k, n)).reshape(*x.shape[:-2], k * n)

    return join(truth), join(columns), join(weight), join(mask)


@promoting
def _support(truth: jax.Array, weight: ArrayLike | None, mask: ArrayLike | None) -> jax.Array:
    amount = jnp.where(truth == 1, 1.0 if weight is None else as_float(weight, "sample_weight"), 0.0)
    return (amount if mask is None else jnp.where(as_mask(mask), amount, 0.0)).sum(-1)


@promoting
def _mean_of_defined(values: jax.Array, share: jax.Array) -> jax.Array:
    share = jnp.where(jnp.isnan(values), 0, share)
    return divide((share * jnp.where(share > 0, values, 0)).sum(-1), share.sum(-1), jnp.nan)
