"""What the cells of a comparison stand for: pairs of predictions, or the combinations of labels that occur."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arrays import ArrayLike, as_class_ids, as_float, as_mask, check_examples, float_dtype
from jaxmetrics._estimates import Metric

__all__: list[str] = []


def as_cube(paired: ArrayLike) -> jax.Array:
    counts = as_float(paired, "paired")
    if counts.ndim < 3 or len(set(counts.shape[-3:])) != 1 or counts.shape[-1] == 0:
        raise ValueError(
            f"paired must have shape (..., K, K, K) (truth, prediction of A, prediction of B), got {counts.shape}."
            " jaxmetrics.paired_confusion_matrix makes such an array."
        )
    return counts


def as_cells(paired: ArrayLike, checked: Callable[[jax.Array, str], jax.Array]) -> jax.Array:
    """`(..., K, K K)`: column a K + b for the predictions a and b."""
    cube = as_cube(paired)
    return checked(cube, "paired").reshape(*cube.shape[:-2], -1)


class Layout(NamedTuple):
    """What the cells of a comparison stand for: pairs `(K, K K)`, pairs listed by their labels, or A and B apart `(2, K K)`."""

    num_classes: int
    paired: bool = True

    def matrices(self, cells: jax.Array, labels: jax.Array | None) -> tuple[jax.Array, jax.Array]:
        """The confusion matrices of A and B."""
        k = self.num_classes
        if labels is not None:
            a, b = matrices_of(cells, labels, k)
            return a, b
        if not self.paired:
            return cells[0].reshape(k, k), cells[1].reshape(k, k)
        cube = cells.reshape(k, k, k)
        return cube.sum(-1), cube.sum(-2)

    def evaluate(self, metric: Metric, labels: jax.Array | None, cells: jax.Array) -> tuple[Any, Any, Any]:
        """The metric of A, of B and the difference."""
        of_a, of_b = map(metric, self.matrices(cells, labels))
        return of_a, of_b, jax.tree.map(difference, of_a, of_b)


def difference(a: jax.Array, b: jax.Array) -> jax.Array:
    """`a - b`, exactly 0 where it is only rounding; the derivative stays."""
    d = a - b
    return d - jax.lax.stop_gradient(jnp.where(jnp.abs(d) <= ulp(a, b), d, 0))


def ulp(a: jax.Array, b: jax.Array) -> jax.Array:
    """The rounding of `a - b`."""
    return jnp.finfo(a.dtype).eps * (jnp.abs(a) + jnp.abs(b)) / 2


def matrices_of(cells: jax.Array, labels: jax.Array, k: int) -> jax.Array:
    """`(M, K, K)` of M classifiers from cells `(R, W)`, whose labels `(1 + M, R, W)`, truth first, are K where empty."""

    def matrix(pred: jax.Array) -> jax.Array:
        return jnp.zeros((k, k), cells.dtype).at[labels[0], pred].add(cells, mode="drop")

    return jax.vmap(matrix)(labels[1:])


def distinct(named_labels: dict[str, ArrayLike], k: int, where: ArrayLike | None) -> tuple[jax.Array, jax.Array]:
    """The combinations of labels that occur: how often `(R, W)`, and their labels `(C, R, W)`."""
    ids = [as_class_ids(labels, name, k) for name, labels in named_labels.items()]
    shapes = {name: x.shape for name, x in zip(named_labels, ids, strict=True)}
    mask = None if where is None else as_mask(where)
    check_examples(shapes if mask is None else shapes | {"where": mask.shape})
    if any(len(shape) != 1 for shape in shapes.values()):
        raise ValueError(f"labels must have shape (n,), got {', '.join(f'{name} {shape}' for name, shape in shapes.items())}.")
    if any(isinstance(x, jax.core.Tracer) for x in (*ids, mask)):
        hidden = jnp.stack([x.astype(jnp.int32) for x in ids])
        counted = ((hidden >= 0) & (hidden < k)).all(0) & (True if mask is None else mask)
        return in_rectangle(counted.astype(float_dtype()), hidden, k)
    table = np.stack([np.asarray(x, np.int32) for x in ids])
    table = table[:, ((table >= 0) & (table < k)).all(0) & (True if mask is None else np.asarray(mask))]
    combination = table[0].astype(np.int64)
    for row in table[1:]:
        combination = np.unique(combination * k + row, return_inverse=True)[1].astype(np.int64)
    _, first, counts = np.unique(combination, return_index=True, return_counts=True)
    return in_rectangle(counts, table[:, first], k)


def in_rectangle(counts: np.ndarray | jax.Array, labels: np.ndarray | jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """Cells `(U,)` laid out as `(R, W)`, about a square and a power of two, and their labels `(C, U)` as `(C, R, W)`.

    A multinomial of them then takes R + W steps, not U.
    """
    number = len(counts)
    exponent = math.ceil(math.log2(max(number, 1)))
    shape = 2 ** (exponent // 2), 2 ** (exponent - exponent // 2)
    more = math.prod(shape) - number
    padded = jnp.pad(jnp.asarray(counts, float_dtype()), (0, more))
    padded_labels = jnp.pad(jnp.asarray(labels, jnp.int32), ((0, 0), (0, more)), constant_values=k)
    return padded.reshape(shape), padded_labels.reshape(-1, *shape)
