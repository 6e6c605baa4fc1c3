"""Tables of the examples of a comparison: pairs of predictions, or combinations of labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_class_ids,
    as_float,
    as_mask,
    check_examples,
    shapes_of,
)
from jaxmetrics.estimates import Metric
from jaxmetrics.intervals.tables import axis_of_tables
from jaxmetrics.intervals.units import Units, as_clusters

__all__: list[str] = []


def as_cube(paired: ArrayLike) -> Array:
    counts = as_float(paired, "paired")
    if counts.ndim < 3 or len(set(counts.shape[-3:])) != 1 or counts.size == 0:
        raise ValueError(
            "paired must have shape (..., K, K, K) (truth, prediction of A, prediction of B), got"
            f" {counts.shape}. jaxmetrics.paired_confusion_matrix makes such an array."
        )
    return counts


def as_cells(paired: ArrayLike, checked: Callable[..., Array]) -> Array:
    """Return checked cells `(..., K, K K)`: column a K + b for the predictions a and b."""
    cube = as_cube(paired)
    return checked(cube, "paired", table_ndim=3).reshape((*cube.shape[:-2], -1))


def cells_of_clusters(cells: Array, cluster_axis: int) -> Array:
    """Move the axis of clusters, counted in the cubes of the cells, to `(..., C, K, K K)`."""
    return as_clusters(cells, axis_of_tables(cluster_axis, 3))


class Layout(NamedTuple):
    """Say what the cells of a comparison stand for.

    They are pairs of predictions, `(K, K K)` or, with labels, those that occur; or else, not
    `paired`, the two confusion matrices `(2, K K)`. Clustered, each cluster has such a table.
    """

    num_classes: int
    paired: bool = True
    clustered: bool = False

    @property
    def ndim(self) -> int:
        """The number of axes of the cells."""
        return 3 if self.clustered else 2

    def evaluator(
        self, metric: Metric, labels: Array | None
    ) -> Callable[[Array], tuple[Any, Any, Any]]:
        """Return a function from cells to the metric of A, of B and the difference."""
        matrices = self.matrices(labels)

        def evaluate(cells: Array) -> tuple[Any, Any, Any]:
            both = matrices(cells)
            if is_jax(both):  # in one call, so that the metric is compiled once
                values = jax.vmap(metric)(both)
                of_a = jax.tree.map(lambda x: x[0], values)
                of_b = jax.tree.map(lambda x: x[1], values)
            else:
                of_a, of_b = metric(both[..., 0, :, :]), metric(both[..., 1, :, :])
            return of_a, of_b, jax.tree.map(difference, of_a, of_b)

        return evaluate

    def matrices(self, labels: Array | None) -> Callable[[Array], Array]:
        """Return a function from cells to the confusion matrices of A and B, `(..., 2, K, K)`."""
        return self._of_dense_cells if labels is None else tabulation(labels, self.num_classes)

    def units(self, cells: Array, labels: Array | None) -> Units:
        """Return the cells `(R, W)` as kinds of examples with two tables, of A and of B."""
        clusters = cells if self.clustered else None
        cells = cells.sum(0) if self.clustered else cells
        shape = (1, cells.size) if self.paired else cells.shape
        matrices = self.matrices(labels)
        return Units(
            cells.reshape(shape),
            xp.ones(shape, bool) if labels is None else (cells > 0).reshape(shape),
            self._unused(matrices(cells), cells, labels).reshape((-1, *shape)),
            lambda weights: matrices(weights.reshape((*weights.shape[:-2], *cells.shape))),
            lambda slopes: self._slopes(slopes, labels).reshape(shape),
            None if clusters is None else clusters.reshape((len(clusters), *shape)),
            complete=labels is None,
        )

    def _unused(self, both: Array, cells: Array, labels: Array | None) -> Array:
        """Return the cells of classes that are never the truth, or never predicted by A or by B.

        With labels there are none: only what was seen takes part.
        """
        if labels is not None:
            return xp.zeros((1, *cells.shape), bool)
        rows, columns = both.sum(-1) == 0, both.sum(-2) == 0
        groups: tuple[Array, ...] = (rows[:, :, None], columns[:, None, :])
        if self.paired:
            groups = rows[0][:, None, None], columns[0][:, None], columns[1]
        k = self.num_classes
        shape = (k, k, k) if self.paired else (2, k, k)
        return xp.stack([xp.broadcast_to(group, shape) for group in groups])

    def _slopes(self, by_tables: Array, labels: Array | None) -> Array:
        """Give each cell the sum of the derivatives by the entries to which it adds."""
        if not self.paired:
            return by_tables
        a, b = by_tables
        if labels is None:
            return a[:, :, None] + b[:, None, :]
        true, pred_a, pred_b = labels
        a, b = (np.pad(x, (0, 1)) for x in by_tables)  # empty cells have the label K
        return a[true, pred_a] + b[true, pred_b]

    def _of_dense_cells(self, cells: Array) -> Array:
        """Return the confusion matrices of A and B, `(..., 2, K, K)`."""
        k, batch = self.num_classes, cells.shape[:-2]
        if not self.paired:
            return cells.reshape((*batch, 2, k, k))
        cube = cells.reshape((*batch, k, k, k))
        return xp.stack([cube.sum(-1), cube.sum(-2)], -3)


def difference(a: Array, b: Array) -> Array:
    """Return `a - b`, exactly 0 where it is only rounding; its derivative is kept."""
    d = a - b
    return d - lax.stop_gradient(xp.where(xp.abs(d) <= ulp(a, b), d, 0))


def ulp(a: Array, b: Array) -> Array:
    """Return a bound of the rounding of `a - b`."""
    return xp.finfo(a.dtype).eps * (xp.abs(a) + xp.abs(b)) / 2


def tabulation(labels: Array, k: int) -> Callable[[Array], Array]:
    """Return a function from cells `(..., R, W)` to the matrices `(..., M, K, K)` of M classifiers.

    The cells' labels `(1 + M, R, W)`, truth first, are K where a cell is empty.
    """
    num_classifiers = len(labels) - 1
    rows = [] if is_jax(labels) else _sums_by_row(labels.reshape((len(labels), -1)), k)

    def matrix(cells: Array, pred: Array) -> Array:
        return jax.numpy.zeros((k, k), cells.dtype).at[labels[0], pred].add(cells, mode="drop")

    def tabulate(cells: Array) -> Array:
        shape = (*cells.shape[:-2], num_classifiers, k, k)
        if is_jax(cells):
            flat = cells.reshape((-1, *cells.shape[-2:]))
            return jax.vmap(jax.vmap(matrix, (None, 0)), (0, None))(flat, labels[1:]).reshape(shape)
        flat = cells.reshape((-1, labels[0].size))
        tables = np.zeros((len(flat), num_classifiers * k * k), cells.dtype)
        for used, occurring, adds_to in rows:
            tables[:, occurring] = flat[:, used] @ adds_to
        return tables.reshape(shape)

    return tabulate


def _sums_by_row(labels: np.ndarray, k: int) -> list[tuple[slice, np.ndarray, np.ndarray]]:
    """Plan the sums for each true class.

    Returns:
        For each: its cells, the entries of its row in all matrices that occur, and a matrix of 0
        and 1 that says which cell adds to which entry.
    """
    true, preds = labels[0], labels[1:]
    rows = []
    for i in np.unique(true[true < k]):
        # Cells come in the order of their true class.
        used = slice(*np.searchsorted(true, [i, i + 1]))
        entries = preds[:, used] + k * k * np.arange(len(preds))[:, None] + k * i
        occurring, place = np.unique(entries, return_inverse=True)
        adds_to = np.zeros((entries.shape[1], len(occurring)))
        adds_to[np.arange(len(adds_to)), place.reshape(entries.shape)] = 1
        rows.append((used, occurring, adds_to))
    return rows


def distinct(
    named_labels: dict[str, ArrayLike], k: int, where: ArrayLike | None
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


def _checked_ids(named_labels: dict[str, ArrayLike], k: int, mask: Array | None) -> list[Array]:
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
