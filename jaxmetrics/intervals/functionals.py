"""A metric as a statistical functional: a function of how often each kind of unit occurs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmetrics._numerics.arithmetic import subtract
from jaxmetrics._places.chunks import LANES, map_chunks
from jaxmetrics._places.compilation import is_constant
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import Array, is_jax, xp
from jaxmetrics.estimates import Metric
from jaxmetrics.intervals.derivatives import Function, jacobian

if TYPE_CHECKING:
    from jaxmetrics.intervals.samples import Sample

__all__: list[str] = []

AT_ONCE = 2**20  # numbers in the tables of a batch; larger tables are faster one by one


class Row:
    """A metric whose values, an array or a pytree of arrays, are returned as one row `(..., V)`.

    The argument of the metric is a table `(..., K, W)` or another item. For NumPy arrays, the
    metric is called once for a batch of items if it accepts batches, and otherwise for one item at
    a time. Whether the metric accepts batches is tested once.

    Args:
        metric: a function that returns an array or a pytree of arrays.
        item: an example of the function's argument.
        tried: `(N, *item)`, different items for which the test compares the metric of the batch
            with the metric of each item; by default tables with different empty rows and columns.
        numbers: how many numbers the function reads for each item, if this is more than the item
            contains.
    """

    def __init__(
        self, metric: Metric, item: Array, *, tried: Array | None = None, numbers: int = 0
    ) -> None:
        self.of_one = partial(row_of, metric, item.ndim)  # identifies compiled programs
        self._ndim, self._numbers = item.ndim, max(item.size, numbers)
        leaves, self._structure = trees.flatten(metric(item))
        self._shapes = [np.shape(leaf) for leaf in leaves]
        self._sizes = [math.prod(shape) for shape in self._shapes]
        self.size = sum(self._sizes)
        self._takes_batches = (
            is_jax(item)
            or is_constant(metric)  # all functions of this package accept batches
            or self._agrees_on_batches(_with_empty_classes(item) if tried is None else tried)
        )

    def __call__(self, items: Array) -> Array:
        batch, shape = (
            items.shape[: items.ndim - self._ndim],
            items.shape[items.ndim - self._ndim :],
        )
        if not batch:
            return self.of_one(items)
        flat = items.reshape((-1, *shape))
        if is_jax(items):
            rows = map_chunks(jax.vmap(self.of_one), max(1, LANES // self._numbers), flat)
        elif not flat.size:
            rows = np.zeros((0, self.size))
        else:
            at_once = max(1, AT_ONCE // self._numbers) if self._takes_batches else 1
            starts = range(0, len(flat), at_once)
            # A single item has no batch axis, because the function may not accept one.
            parts = [flat[i : i + at_once] if at_once > 1 else flat[i] for i in starts]
            rows = np.concatenate([np.atleast_2d(self.of_one(part)) for part in parts])
        return rows.reshape((*batch, self.size))

    def _agrees_on_batches(self, tried: np.ndarray) -> bool:
        try:
            alone = np.stack([self.of_one(x) for x in tried])
            return np.allclose(self.of_one(tried), alone, 1e-9, 1e-12, True)
        except Exception:  # the metric accepts only a single item
            return False

    def unflatten(self, rows: Any, num_batch_axes: int = 0) -> Any:
        """Return the values of the rows in the structure that the metric returns.

        `rows` is a pytree of arrays `(..., V)`; each array of the metric's result is replaced by a
        pytree of the parts of `rows` that belong to this array.
        """
        ends = np.cumsum(self._sizes)

        def part(x: Array, end: int, size: int, shape: tuple[int, ...]) -> Array:
            return x[..., end - size : end].reshape((*x.shape[:num_batch_axes], *shape))

        parts = [
            trees.map(lambda x, of=of: part(x, *of), rows)
            for of in zip(ends, self._sizes, self._shapes, strict=True)
        ]
        return trees.unflatten(self._structure, parts)


def row_of(metric: Metric, ndim: int, items: Array) -> Array:
    """Return the values of a metric for the items as one row, `(..., V)`."""
    leaves = trees.leaves(metric(items))
    batch = items.shape[: items.ndim - ndim]
    return xp.concatenate([xp.asarray(x).reshape((*batch, -1)) for x in leaves], -1)


def _with_empty_classes(table: np.ndarray) -> np.ndarray:
    """Return the table and three variants of it, two of which have empty rows and columns."""
    all_used = 1 + np.cos(np.arange(table.size)).reshape(table.shape) ** 2
    first, last = all_used.copy(), all_used.copy()
    first[0], first[:, 0], last[-1], last[:, -1] = 0, 0, 0, 0
    return np.stack([table, all_used, first, last])


@dataclass(eq=False)
class Functional:
    """A metric as a function of how often each kind of unit occurs, `(..., R, U)`.

    The metric has V values for each of the T tables of a sample. The result is one row of P V
    values, where each of the P contrasts is the metric of one table or the difference between two
    tables.

    Attributes:
        sample: the sample, which computes tables from numbers of units.
        row: the metric, whose values are returned as a row.
        contrasts: `(P, T)` factors of the tables: 1 for a value, 1 and -1 for a difference.
    """

    sample: Sample
    row: Row
    contrasts: Sequence[Sequence[int]]

    def __call__(self, numbers: Array) -> Array:
        values = self.row(self.sample.tables(numbers))  # (..., T, V)
        return xp.concatenate([_contrast(values, factors) for factors in self.contrasts], -1)

    @cached_property
    def values(self) -> Array:
        """The values at the sample itself, `(P V,)`."""
        return self(self.sample.counts)

    @cached_property
    def slopes(self) -> Array:
        """The derivatives at the sample itself, `(P V, R, U)`."""
        counts = self.sample.counts
        if is_jax(counts):
            return jax.jacrev(self.__call__)(counts)
        tables = self.sample.tables(counts)
        by_tables = np.stack([jacobian(self.row, table) for table in tables], 1)  # (V, T, K, W)
        factors = np.array(self.contrasts)[:, :, None, None]
        return np.stack([self.sample.adjoint(f * x) for f in factors for x in by_tables])

    @cached_property
    def influences(self) -> Array | None:
        """If there are clusters, how much a unit of each kind may move each value, `(P V, R, U)`,
        0 for kinds that do not matter: the greater derivative of two, at the sample and at a table
        of uneven positive numbers. At the sample alone, it may be 0 by chance, such as that of a
        difference between equal systems.
        """
        if self.sample.clusters is None:
            return None
        counts = self.sample.counts
        elsewhere = replace(self, sample=self.sample._replace(counts=counts + 1 + uneven(counts)))
        return xp.maximum(xp.abs(self.slopes), xp.abs(elsewhere.slopes))

    @property
    def errors(self) -> Array:
        """The standard errors of the values, from their derivatives."""
        return self.sample.errors(self.values, self.slopes, self.influences)

    @property
    def of_units(self) -> Functional:
        """The same functional as a function of how often each cluster or other unit was drawn."""
        units = self.sample.units
        return self if units is self.sample else replace(self, sample=units)

    def values_and_errors(self, numbers: Array) -> tuple[Array, Array]:
        """Return the values and standard errors for replicates of the sample, `(..., R, U)`."""
        if numbers.ndim > self.sample.counts.ndim:
            each = [self.values_and_errors(x) for x in numbers]
            values, errors = map(np.stack, zip(*each, strict=True))
            return values, errors
        other = replace(self, sample=self.sample._replace(counts=numbers))
        return other.values, other.errors

    def slope(self, i: int, numbers: np.ndarray, derivative: Function) -> np.ndarray:
        """Return the derivatives of value i for L NumPy arrays of numbers, `(L, R, U)`."""
        of, v = divmod(i, self.row.size)
        tables = np.moveaxis(self.sample.tables(numbers), -3, 0)
        by_tables = [
            factor * derivative(table)[:, v] if factor else np.zeros(table.shape)
            for factor, table in zip(self.contrasts[of], tables, strict=True)
        ]
        return np.stack([self.sample.adjoint(slopes) for slopes in np.stack(by_tables, 1)])


def uneven(counts: Array) -> Array:
    """Return uneven numbers from 0 to 1 of the shape and the dtype of counts."""
    number = xp.arange(counts.size).reshape(counts.shape)
    return ((number % 1000) ** 2 * 0.618034 % 1).astype(counts.dtype)


def _contrast(values: Array, factors: Sequence[int]) -> Array:
    """Return the values for the table with factor 1, minus the values for factor -1 if any."""
    first = values[..., factors.index(1), :]
    return subtract(first, values[..., factors.index(-1), :]) if -1 in factors else first
