"""Combinations of labels that occur, and how often: what many classes or classifiers are read from,
since of K^3 pairs few occur.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from jaxmetrics._jax import jax
from jaxmetrics._namespaces import Array, float_dtype, is_jax, is_known, on_device, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_class_ids,
    as_mask,
    check_examples,
    shapes_of,
)

__all__: list[str] = []


def distinct(
    named_labels: Mapping[str, ArrayLike], k: int, where: ArrayLike | None
) -> tuple[Array, Array]:
    """Count the combinations of labels that occur, `(R, W)`; return their labels `(C, R, W)`."""
    mask = None if where is None else as_mask(where)
    ids = _checked_ids(named_labels, k, mask)
    if not all(map(is_known, (*ids, mask))):  # each example is a combination of its own
        hidden = xp.stack([x.astype(xp.int32) for x in ids])
        counted = ((hidden >= 0) & (hidden < k)).all(0) & (True if mask is None else mask)
        return in_rectangle(counted.astype(float_dtype(counted)), hidden, k)
    table = np.stack([np.asarray(x, np.int32) for x in ids])
    kept = ((table >= 0) & (table < k)).all(0) & (True if mask is None else np.asarray(mask))
    cells, labels = in_rectangle(*_combinations(table[:, kept], k), k)
    if not on_device(ids, mask):
        return cells, labels
    return jax.numpy.asarray(cells, float_dtype()), jax.numpy.asarray(labels, np.int32)


def _checked_ids(named_labels: Mapping[str, ArrayLike], k: int, mask: Array | None) -> list[Array]:
    """Check labels `(n,)` of the same examples, and return them as class ids."""
    given = {name: as_array(labels, name) for name, labels in named_labels.items()}
    shapes = {name: x.shape for name, x in given.items()}
    shapes |= shapes_of(where=mask)
    check_examples(shapes)
    if any(len(shape) != 1 for shape in shapes.values()):
        described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"labels and where must have shape (n,), got {described}.")
    return [as_class_ids(x, name, k, mask) for name, x in given.items()]


def _combinations(table: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each column of labels `(C, n)` occurs, `(U,)`, and those columns, `(C, U)`.

    A combination is numbered row by row among those that occur, so that the numbers stay small.
    """
    combination = table[0].astype(np.int64)
    for row in table[1:]:
        combination = np.unique(combination * k + row, return_inverse=True)[1].astype(np.int64)
    _, first, counts = np.unique(combination, return_index=True, return_counts=True)
    return counts.astype(float), table[:, first]


def in_rectangle(counts: Array, labels: Array, k: int) -> tuple[Array, Array]:
    """Lay out cells `(U,)` as `(R, W)`, and their labels `(C, U)` as `(C, R, W)`.

    R and W are powers of two, about equal: a multinomial of the cells then takes R + W steps, not
    U.
    """
    number = len(counts)
    exponent = math.ceil(math.log2(max(number, 1)))
    shape = 2 ** (exponent // 2), 2 ** (exponent - exponent // 2)
    more = math.prod(shape) - number
    padded = xp.pad(counts, (0, more))
    padded_labels = xp.pad(labels, ((0, 0), (0, more)), constant_values=k)
    return padded.reshape(shape), padded_labels.reshape((-1, *shape))


def pairs_of_combinations(cells: Array, labels: Array, k: int) -> Array:
    """Lay out combinations of truth and two predictions as cells of pairs, `(K, K K)`."""
    true, a, b = labels.reshape((3, -1))
    if is_jax(cells):
        empty = jax.numpy.zeros((k, k * k), cells.dtype)
        columns = jax.numpy.where((a < k) & (b < k), a * k + b, k * k)
        return empty.at[true, columns].add(cells.reshape(-1), mode="drop")
    used = true < k
    pairs = np.zeros((k, k * k))
    np.add.at(pairs, (true[used], a[used] * k + b[used]), cells.reshape(-1)[used])
    return pairs


def used_pairs(table: Array) -> tuple[Array, Array]:
    """Return the pairs `(K, K K)` that occur, and how often, as `distinct` does."""
    k = len(table)
    true, pair = np.nonzero(np.asarray(table))
    labels = np.stack([true, pair // k, pair % k]).astype(np.int32)
    return in_rectangle(table[true, pair], labels, k)


def used_columns(table: Array) -> tuple[Array, Array] | None:
    """Return the columns of each row of `(K, K)` that are not empty, as `distinct` does, `(K, W)`.

    W is a power of two, and shorter rows are filled up. None where that saves nothing.
    """
    used, k = np.asarray(table != 0), len(table)
    width = 2 ** math.ceil(math.log2(max(int(used.sum(-1).max()), 1)))
    if width >= k:
        return None
    columns = np.sort(np.where(used, np.arange(k), k), -1)[:, :width].astype(np.int32)
    cells = xp.take_along_axis(table, np.minimum(columns, k - 1), -1)
    rows = np.where(columns < k, np.arange(k, dtype=np.int32)[:, None], k)
    return xp.where(columns < k, cells, 0), np.stack([rows, columns])


def tabulation(labels: Array, k: int) -> Callable[[Array], Array]:
    """Return a function from cells `(..., R, W)` to the matrices `(..., M, K, K)` of M classifiers.

    The cells' labels `(1 + M, R, W)`, truth first, are K where a cell is empty.
    """
    true, *preds = labels.reshape((len(labels), -1))
    sums = [_sums_of(true * k + pred, k * k) for pred in preds]

    def tabulate(cells: Array) -> Array:
        batch = cells.shape[:-2]
        flat = cells.reshape((*batch, -1))
        return xp.stack([of(flat).reshape((*batch, k, k)) for of in sums], -3)

    return tabulate


def _sums_of(entries: Array, size: int) -> Callable[[Array], Array]:
    """Return a function that adds up cells `(..., U)` by entry, `(..., size)`; beyond they drop."""
    if is_jax(entries):
        return lambda cells: (
            jax.numpy.zeros((*cells.shape[:-1], size), cells.dtype)
            .at[..., entries]
            .add(cells, mode="drop")
        )
    order = np.argsort(entries, kind="stable")[: np.count_nonzero(entries < size)]
    occurring, first = np.unique(entries[order], return_index=True)

    def sums(cells: np.ndarray) -> np.ndarray:
        result = np.zeros((*cells.shape[:-1], size))
        if len(first):
            result[..., occurring] = np.add.reduceat(cells[..., order], first, axis=-1)
        return result

    return sums
