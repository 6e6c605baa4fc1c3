"""Base class of statistics, from which you can derive your own, and the batches that statistics
read.

The fields of a batch are checked, and their axes of examples are flattened to one axis of length n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arguments.example_arguments import as_distributions, as_weights
from jaxmetrics._arguments.single import (
    INT32_MAX,
    RAVEL,
    ArrayLike,
    as_array,
    as_class_ids,
    as_float,
    as_mask,
    as_rows,
    check_integer,
    check_real,
    is_integer,
    valid_ids,
)
from jaxmetrics._numerics.samplers import hashed
from jaxmetrics._places.namespaces import float_dtype

__all__ = ["Batch", "Kind", "Statistic"]


class Kind(IntEnum):
    """Kind of a field of a batch: `{"y_true": Kind.LABELS, "loss": Kind.NUMBERS}`.

    If several statistics declare different kinds for the same field, the first of these kinds in
    the list below is used.

    Attributes:
        UNITS: one integer per example. Correlated examples have the same integer.
        LABELS: one class id per example. Negative ids are no classes.
        WEIGHTS: one finite number >= 0 per example. Other numbers raise ValueError in a NumPy
            array, and make results NaN in a JAX array.
        NUMBERS: one real number per example.
        ROWS: one real number per example and class.
    """

    UNITS = 1
    LABELS = 2
    WEIGHTS = 3
    NUMBERS = 4
    ROWS = 5


# Kinds of standard fields by name.
Fields: TypeAlias = Mapping[str, Kind]

MASK, WEIGHT = "where", "sample_weight"  # fields that every batch may have
_PREDICTED, _LOGITS, _PROBABILITIES = "y_pred", "logits", "y_prob"


def prediction_fields(suffix: str = "") -> dict[str, Kind]:
    """List the names of fields for predictions; `Batch.predictions` uses the first field that is
    given.
    """
    return {
        _PREDICTED + suffix: Kind.LABELS,
        _LOGITS + suffix: Kind.ROWS,
        _PROBABILITIES + suffix: Kind.ROWS,
    }


PROBABILITY_FIELDS = {_PROBABILITIES: Kind.ROWS, _LOGITS: Kind.ROWS}


def kinds_by_name(declared: Iterable[Fields]) -> dict[str, Kind]:
    """Return the kind of each field by name."""
    kinds: dict[str, Kind] = {}
    for fields in declared:
        for name, kind in fields.items():
            kinds[name] = min(kind, kinds.get(name, kind))
    return kinds


def converted_field(name: str, x: ArrayLike, kind: Kind) -> jax.Array | np.ndarray:
    """Convert a field before it is passed to a jitted function, because JAX would cut int64 to
    int32.

    Labels that do not fit into int32 become -1, units become 32-bit integers, and other numbers
    become floats.
    """
    array = as_rows(x, name) if kind is Kind.ROWS else as_array(x, name)
    if kind is Kind.LABELS:
        check_integer(array, name)
    else:
        check_real(array, name)
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        return array
    if kind is Kind.UNITS:
        return _words(array)
    if kind is Kind.LABELS:
        return np.where((array >= 0) & (array <= INT32_MAX), array, -1).astype(np.int32)
    return array.astype(float_dtype())


class Batch:
    """Fields of a batch, flattened to n examples, which a `Statistic` reads.

    Args:
        fields: arrays by name.
        kinds: kinds of fields by name. A field without a kind has the kind NUMBERS.

    Attributes:
        size: number of examples n.
        where: boolean mask of shape `(n,)`, or None.
        weight: sample weights of shape `(n,)`, or None.

    >>> batch = Batch({"loss": np.array([[1.0, 2.0], [3.0, 4.0]])}, {})
    >>> batch.size, batch.numbers("loss").tolist()
    (4, [1.0, 2.0, 3.0, 4.0])
    """

    def __init__(
        self, fields: Mapping[str, jax.Array | np.ndarray], kinds: Mapping[str, Kind]
    ) -> None:
        """Check the mask and the weights. Other fields are checked when they are read."""
        self._fields = fields
        per_example = [name for name in fields if kinds.get(name) is not Kind.ROWS]
        self._first = next((name for name in ("y_true", *per_example) if name in fields), "")
        if not self._first:
            name = next(iter(fields), "")
            raise ValueError(
                "The batch must have a field with one number for each example, such as y_true,"
                f" but its fields are {name or 'none'}."
            )
        self._shape = fields[self._first].shape
        if not self._shape:
            raise ValueError(
                f"{self._first} must have shape (..., n), with one number for each example, got a"
                " single number."
            )
        self.size = math.prod(self._shape)
        mask = as_mask(fields.get(MASK))
        self.where = None if mask is None else self._flat(MASK, mask)
        self.weight = self.weights(WEIGHT) if WEIGHT in fields else None

    def numbers(self, name: str) -> jax.Array:
        """Return a field of one real number per example as floats `(n,)`."""
        return self._flat(name, as_float(self._get(name), name))

    def weights(self, name: str) -> jax.Array:
        """Return a field of weights as floats `(n,)`. Invalid weights become NaN."""
        return as_weights(self.numbers(name), name)

    def labels(self, name: str, num_classes: int) -> jax.Array:
        """Return a field of class ids `(n,)`. Ids of `num_classes` or more become -1."""
        ids = as_class_ids(self._get(name), name, num_classes)
        return self._flat(name, valid_ids(ids, size=num_classes))

    def predictions(self, num_classes: int, suffix: str = "") -> jax.Array:
        """Return the predicted class ids `(n,)`: `y_pred`, or the argmax of `logits` or `y_prob`.

        The prediction of a row with NaN is -1.
        """
        fields = prediction_fields(suffix)
        name = self._first_of(fields)
        if fields[name] is Kind.LABELS:
            return self.labels(name, num_classes)
        greatest, ids = _greatest(self._float_rows(name, num_classes))
        return jnp.where(jnp.isnan(greatest), -1, ids)

    def probabilities(self, num_classes: int) -> jax.Array:
        """Return the probabilities `(n, K)`: `y_prob`, or the softmax of `logits`.

        Rows of `y_prob` that do not sum to 1 become NaN.
        """
        name = self._first_of(PROBABILITY_FIELDS)
        rows = self._float_rows(name, num_classes)
        if name == _LOGITS:
            return jax.nn.softmax(as_float(rows, name), axis=-1)
        return as_distributions(rows, name)

    def rows(self, name: str, num_columns: int) -> jax.Array:
        """Return a field of `num_columns` numbers per example as floats `(n, num_columns)`."""
        return as_float(self._float_rows(name, num_columns), name)

    def units(self, name: str) -> jax.Array:
        """Return a field of units as 32-bit integers `(n,)`."""
        ids = jnp.asarray(self._get(name))
        if not is_integer(ids):
            raise TypeError(
                f"{name} must contain integers that are equal for correlated examples, got"
                f" {ids.dtype}."
            )
        return self._flat(name, ids if ids.dtype == jnp.uint32 else _words(ids))

    def _first_of(self, names: Iterable[str]) -> str:
        first, *others = names
        for name in (first, *others):
            if name in self._fields:
                return name
        raise ValueError(
            f"The batch must have the field {first}, or the field {' or '.join(others)} instead,"
            f" but its fields are {', '.join(self._fields)}."
        )

    def _get(self, name: str) -> jax.Array | np.ndarray:
        if name not in self._fields:
            raise ValueError(
                f"The batch must have the field {name}, but its fields are"
                f" {', '.join(self._fields)}."
            )
        return self._fields[name]

    def _flat(self, name: str, x: jax.Array) -> jax.Array:
        if x.shape != self._shape:
            are_rows = x.shape[:-1] == self._shape
            way = " Scores of several classes need an accumulator with num_classes." * are_rows
            raise ValueError(
                f"{name} must have one number for each example, so its shape must be"
                f" {self._shape}, like the shape of {self._first}, got {x.shape}."
                f"{way}{RAVEL}"
            )
        return x.reshape(self.size)

    def _float_rows(self, name: str, num_classes: int) -> jax.Array:
        """Return rows in their own dtype, whose precision is sufficient for `_greatest`."""
        x, expected = jnp.asarray(self._get(name)), (*self._shape, num_classes)
        if x.shape != expected:
            way = (
                f" If rows of {self._first} are one-hot, pass their .argmax(-1). If columns are"
                " labels of 0 and 1 (multilabel), use two classes: pass y_score or y_pred of this"
                " shape, num_groups=L, and as groups numpy.arange(L) in each row."
            )
            raise ValueError(
                f"{name} must have one number for each example and each class. Its shape must be"
                f" {expected}, because {self._first} has the shape {self._shape} and num_classes is"
                f" {num_classes}, got an array of shape {x.shape}."
                f"{way if x.shape == self._shape else RAVEL}"
            )
        if not jnp.issubdtype(x.dtype, jnp.floating):
            raise TypeError(f"{name} must contain floats, got {x.dtype}.")
        return x.reshape(self.size, num_classes)


@runtime_checkable
class Statistic(Protocol):
    """Base class of statistics, which map a batch to an array, the table. Tables are summed over
    batches.

    To write your own statistic, define a frozen dataclass with these members. Pass an `Accumulator`
    with your statistic and named functions of its table to `evaluator`. Options of a statistic must
    be numbers, strings or statistics, so that the state can be saved.

    >>> import jax.numpy as jnp, jaxmetrics as jm
    >>> @dataclass(frozen=True)
    ... class LossSums:
    ...     num_classes: int
    ...     is_integer = False
    ...     fields = {"y_true": jm.streaming.Kind.LABELS, "loss": jm.streaming.Kind.NUMBERS}
    ...
    ...     @property
    ...     def shape(self):
    ...         return 2, self.num_classes
    ...
    ...     def is_usable(self, batch):
    ...         return batch.labels("y_true", self.num_classes) >= 0
    ...
    ...     def table(self, batch, weight, keep):
    ...         loss = jnp.where(keep, batch.numbers("loss"), 0)
    ...         weight = jnp.where(keep, jnp.ones_like(loss) if weight is None else weight, 0)
    ...         y_true = batch.labels("y_true", self.num_classes)
    ...         return jnp.stack([weight, weight * loss]) @ jax.nn.one_hot(y_true, self.num_classes)
    >>> class_losses = jm.streaming.Accumulator(
    ...     (LossSums(num_classes=2),), (("class_loss", lambda sums: sums[1] / sums[0]),)
    ... )
    >>> evaluator = jm.evaluator(class_losses, jm.mean_of("loss"))
    >>> batch = {"y_true": jnp.array([0, 1, 1]), "loss": jnp.array([1.0, 2.0, 3.0])}
    >>> state = evaluator.update(evaluator.init(), **batch)
    >>> evaluator.compute(state)["class_loss"]
    Array([1. , 2.5], dtype=float32)
    """

    @property
    def fields(self) -> Mapping[str, Kind]:
        """Return the fields of a batch that the statistic may read, with their kinds."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the table."""

    @property
    def is_integer(self) -> bool:
        """Return True if tables consist of integers >= 0, which are summed exactly. Batches then
        cannot have weights.
        """

    def is_usable(self, batch: Batch) -> jax.Array | None:
        """Return a mask `(n,)` of the examples that the statistic can use, or None for all
        examples.

        If one statistic of an evaluator cannot use an example, all other statistics ignore this
        example, too. `table` may leave out more examples, such as those with invalid predictions.
        """

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        """Return the table of the examples where the mask `keep` `(n,)` is True. The weights are
        `(n,)` or None.

        To support `poisson_bootstrap`, accept weights `(S, n)` and return tables `(S, *shape)`.
        """


@dataclass(frozen=True)
class SavedStatistic:
    """A statistic of a saved state whose class is unknown, because `load_state` was called without
    evaluator.

    States with equal descriptions can still be merged and saved again.
    """

    description: str


def _words(ids: Any) -> Any:
    """Convert NumPy or JAX integers to uint32. Integers below 2^32 are unchanged. If an integer is
    greater, its lower half is combined with a hash of its upper half.
    """
    wide = ids.astype(np.int64) if isinstance(ids, np.ndarray) else ids
    if wide.dtype.itemsize == 8:
        low = (wide & 0xFFFFFFFF).astype(np.uint32)
        high = (wide >> 32 & 0xFFFFFFFF).astype(np.uint32)
    else:
        low = wide.astype(np.uint32)
        high = (wide < 0).astype(np.uint32) * np.uint32(0xFFFFFFFF)  # sign extension
    return low ^ (hashed(high) * (high != 0).astype(np.uint32))  # type: ignore[arg-type]  # or NumPy


def _greatest(rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the greatest number of each row and its first position; NaN counts as
    the greatest.
    """

    def greater(
        a: tuple[jax.Array, jax.Array], b: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        (x, i), (y, j) = a, b
        first = (x > y) | jnp.isnan(x) | ((x == y) & (i < j))
        return jnp.where(first, x, y), jnp.where(first, i, j)

    # Some narrow float dtypes have no infinity.
    rows = lax.stop_gradient(rows if rows.dtype.itemsize > 1 else rows.astype(jnp.float32))
    places = lax.broadcasted_iota(jnp.int32, rows.shape, 1)
    return lax.reduce((rows, places), (np.array(-np.inf, rows.dtype), np.int32(0)), greater, (1,))
