"""One batch on its way into a state: its fields, checked against each other and flattened to one
axis of n examples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._namespaces import float_dtype
from jaxmetrics._validation import (
    INT32_MAX,
    ArrayLike,
    as_array,
    as_class_ids,
    as_float,
    as_mask,
    is_integer,
    valid_ids,
)
from jaxmetrics.intervals.samplers import hashed

__all__: list[str] = []

PREDICTIONS = ("y_pred", "logits", "y_prob")
LABELS = ("y_true", "y_pred", "groups")
ROWS = ("logits", "y_prob")  # one number per class, unless y_prob is the probability of one event


def as_field(name: str, x: ArrayLike) -> jax.Array | np.ndarray:
    """A field as it may enter a jitted function, where JAX wraps NumPy's integers that int32 does
    not hold.

    Labels among them become -1; units become words; others floats.
    """
    array = as_array(x, name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        return array
    if name == "unit":
        return _words(array)
    if name.startswith(LABELS):
        return np.where((array >= 0) & (array <= INT32_MAX), array, -1).astype(np.int32)
    return array.astype(float_dtype())


class Batch:
    """The fields of a batch; `shape` is that of the examples, as the field `first` has it."""

    def __init__(self, fields: Mapping[str, jax.Array | np.ndarray]) -> None:
        self.fields = fields
        one_each = [name for name in fields if not name.startswith(ROWS)]
        self.first = next((name for name in ("y_true", *one_each) if name in fields), "")
        if not self.first:
            name = next(iter(fields), "")
            raise ValueError(
                "the batch has no field with one number per example, such as y_true; it has"
                f" {name or 'none'}."
            )
        self.shape = fields[self.first].shape
        if not self.shape:
            raise ValueError(
                f"{self.first} must have one number per example, (..., n), got a single number."
            )
        self.size = math.prod(self.shape)
        self.where = (
            self._one_each("where", as_mask(fields["where"])) if "where" in fields else None
        )
        self.weight = self.numbers("sample_weight") if "sample_weight" in fields else None

    def numbers(self, name: str) -> jax.Array:
        """One real number per example, `(n,)`."""
        return self._one_each(name, as_float(self._get(name), name))

    def labels(self, name: str, num_classes: int) -> jax.Array:
        """Class ids, -1 where they are none."""
        return self._one_each(
            name, valid_ids(as_class_ids(self._get(name), name, num_classes), size=num_classes)
        )

    def predictions(self, num_classes: int, suffix: str = "") -> jax.Array:
        """Class ids: those given, or of the greatest logit or probability; -1 where that is NaN."""
        names = [name + suffix for name in PREDICTIONS]
        name = next((name for name in names if name in self.fields), None)
        if name is None:
            raise ValueError(
                f"the batch lacks {names[0]}, or {names[1]} or {names[2]} instead; it has"
                f" {', '.join(self.fields)}."
            )
        if name == names[0]:
            return self.labels(name, num_classes)
        greatest, ids = _greatest(self._rows(name, num_classes))
        return jnp.where(jnp.isnan(greatest), -1, ids)

    def probabilities(self, num_classes: int) -> jax.Array:
        """`(n, K)`: those given, or of the logits by softmax."""
        if "y_prob" in self.fields:
            return as_float(self._rows("y_prob", num_classes), "y_prob")
        if "logits" in self.fields:
            return jax.nn.softmax(as_float(self._rows("logits", num_classes), "logits"), axis=-1)
        raise ValueError(
            f"the batch lacks y_prob, or logits instead; it has {', '.join(self.fields)}."
        )

    def units(self) -> jax.Array:
        """A word of 32 bits for each."""
        ids = jnp.asarray(self._get("unit"))
        if not is_integer(ids):
            raise TypeError(
                "unit must hold integers, the same for examples that belong together, got"
                f" {ids.dtype}."
            )
        return self._one_each("unit", ids if ids.dtype == jnp.uint32 else _words(ids))

    def _get(self, name: str) -> jax.Array | np.ndarray:
        if name not in self.fields:
            raise ValueError(f"the batch lacks {name}; it has {', '.join(self.fields)}.")
        return self.fields[name]

    def _one_each(self, name: str, x: jax.Array) -> jax.Array:
        if x.shape != self.shape:
            raise ValueError(
                f"{name} must have one number per example, {self.shape} like {self.first}, got"
                f" {x.shape}."
            )
        return x.reshape(self.size)

    def _rows(self, name: str, num_classes: int) -> jax.Array:
        x = jnp.asarray(self._get(name))
        if x.shape != (*self.shape, num_classes):
            raise ValueError(
                f"{name} must have one number per example and class, {(*self.shape, num_classes)}"
                f" for {self.first} {self.shape} and num_classes={num_classes}, got {x.shape}."
            )
        if not jnp.issubdtype(x.dtype, jnp.floating):
            raise TypeError(f"{name} must hold floats, got {x.dtype}.")
        return x.reshape(self.size, num_classes)


def _words(ids: Any) -> Any:
    """Integers as uint32, NumPy's or JAX's alike: below 2^32 themselves, others their lower half
    and a hash of their upper.
    """
    wide = ids.astype(np.int64) if isinstance(ids, np.ndarray) else ids
    if wide.dtype.itemsize == 8:
        low, high = (
            (wide & 0xFFFFFFFF).astype(np.uint32),
            (wide >> 32 & 0xFFFFFFFF).astype(np.uint32),
        )
    else:
        low, high = wide.astype(np.uint32), (wide < 0).astype(np.uint32) * np.uint32(0xFFFFFFFF)
    return low ^ (hashed(high) * (high != 0).astype(np.uint32))  # type: ignore[arg-type]


def _greatest(rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The greatest of each row and the first place where it stands; NaN is greater than any.
    `argmax` would throw it away.
    """

    def greater(
        a: tuple[jax.Array, jax.Array], b: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        (x, i), (y, j) = a, b
        first = (x > y) | jnp.isnan(x) | ((x == y) & (i < j))
        return jnp.where(first, x, y), jnp.where(first, i, j)

    # Some have no infinity.
    rows = lax.stop_gradient(rows if rows.dtype.itemsize > 1 else rows.astype(jnp.float32))
    places = lax.broadcasted_iota(jnp.int32, rows.shape, 1)
    return lax.reduce((rows, places), (np.array(-np.inf, rows.dtype), np.int32(0)), greater, (1,))
