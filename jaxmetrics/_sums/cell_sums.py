"""Sums of cells of a confusion matrix: TP, FP, FN and TN of each class, and parts of rows.

Sums are never computed by subtraction: in float32, `FN = support - TP` and
`TN = total - TP - FP - FN` lose digits if a class has nearly all examples or nearly none. Among 1e9
examples, the last thousand vanish.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxmetrics._arguments.single import ArrayLike, as_counts
from jaxmetrics._numerics.arithmetic import divide, matmul
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, Arrays, is_jax, lax, xp

__all__: list[str] = []

_CELLS, _FEWEST_ROWS = 2**16, 16  # cells and least rows of a block that fits into the cache


def proportions(counts: ArrayLike, *, axes: tuple[int, ...] = (-2, -1)) -> Array:
    """Divide `counts` by their sum over `axes`; the result is 0 if the sum is 0.

    Metrics that multiply counts use these proportions, because their products do not overflow.
    """
    c = as_counts(counts)
    return divide(c, c.sum(axes, keepdims=True))


def diagonal(p: Array) -> Array:
    """Return the diagonals of matrices, `(..., K)`: of counts, the correct predictions."""
    if not is_jax(p):
        return np.diagonal(p, axis1=-2, axis2=-1)
    k = p.shape[-1]

    def by_comparison(p: Array) -> Array:  # a TPU needs many kernels to read entries
        classes = jax.numpy.arange(k)
        return jax.numpy.where(classes[:, None] == classes[None], p, 0).sum(-1, dtype=p.dtype)

    return lax.platform_dependent(
        p,
        tpu=by_comparison,
        default=lambda p: p.reshape((*p.shape[:-2], k * k))[..., :: k + 1],
    )


def off_diagonal(p: Array) -> Array:
    """Return the wrong predictions, `(..., K, K)`: the matrix with 0 on the diagonal."""
    if not is_jax(p):
        wrong = p.copy()
        diagonals = np.arange(p.shape[-1])
        wrong[..., diagonals, diagonals] = 0
        return wrong
    # Indices are compared within the program, because a NumPy mask would be K^2 constants.
    return outside(jax.numpy.arange(p.shape[-1]), p)


def tp_fp_fn(p: Array) -> Arrays:
    """Return TP, FP and FN of each class, `(..., K)` each."""
    off = off_diagonal(p)
    return diagonal(p), off.sum(-2), off.sum(-1)


def rest_of_row(p: Array) -> Array:
    """Return, at `[i, j]`, the sum of row i without column j.

    In NumPy, this takes K^2 additions. A matrix product takes K^3, but compiles to a small program,
    and is therefore used for JAX arrays.
    """
    if is_jax(p):
        return matmul(p, 1 - jax.numpy.eye(p.shape[-1], dtype=p.dtype))
    before, after = np.zeros_like(p), np.zeros_like(p)
    np.cumsum(p[..., :-1], -1, out=before[..., 1:])
    np.cumsum(p[..., :0:-1], -1, out=after[..., -2::-1])
    before += after
    return before


def others(x: Array) -> Array:
    """Return, at `[i]`, the sum of the numbers `(..., K)` except number i."""
    if not is_jax(x):
        return rest_of_row(x)
    # A matrix product would add sequentially, which loses digits in float32.
    return off_diagonal(xp.broadcast_to(x[..., None, :], (*x.shape, x.shape[-1]))).sum(-1)


def rest_of_column(p: Array) -> Array:
    """Return, at `[i, j]`, the sum of column j without row i."""
    if is_jax(p):
        return xp.swapaxes(rest_of_row(xp.swapaxes(p, -1, -2)), -1, -2)
    sums = _above(p)
    sums += _below(p)
    return sums


def _above(p: np.ndarray) -> np.ndarray:
    """Return, at `[i, j]`, the sum of the numbers above row i in column j.

    Adding row by row takes a quarter of the time of `cumsum`, which goes down each column.
    """
    sums = np.empty_like(p)
    sums[..., :1, :] = 0
    for i in range(1, p.shape[-2]):
        np.add(sums[..., i - 1, :], p[..., i - 1, :], out=sums[..., i, :])
    return sums


def _below(p: np.ndarray) -> np.ndarray:
    return _above(p[..., ::-1, :])[..., ::-1, :]


def sum_of_rows(terms: Callable[[Array, Array], Array], p: Array) -> Array:
    """Return the sum of the rows of `terms(p, classes)`, `(..., K)`.

    A row of terms may depend on its row of p, its class, and the sums of the rows above and below.
    Therefore, NumPy processes large matrices in blocks of rows that fit into the cache, together
    with one row for the sum of all rows above and one row for the sum of all rows below.
    """
    k = p.shape[-2]
    rows = max(_FEWEST_ROWS, _CELLS // k)
    if is_jax(p):
        return terms(p, jax.numpy.arange(k)).sum(-2)
    if k <= rows:
        return terms(p, np.arange(k)).sum(-2)
    blocks = [p[..., begin : begin + rows, :] for begin in range(0, k, rows)]
    sums = np.stack([block.sum(-2) for block in blocks], -2)
    above, below = _above(sums), _below(sums)
    total = np.zeros_like(above[..., 0, :])
    for i, block in enumerate(blocks):
        merged = np.concatenate([above[..., i : i + 1, :], block, below[..., i : i + 1, :]], -2)
        classes = np.arange(merged.shape[-2]) + i * rows - 1
        total += terms(merged, np.clip(classes, 0, k - 1))[..., 1:-1, :].sum(-2)
    return total


def true_negatives(p: Array) -> Array:
    """Return TN of each class, `(..., K)`: the sum of the cells outside its row and column."""
    return sum_of_rows(lambda p, classes: outside(classes, rest_of_row(p)), p)


def outside(classes: Array, p: Array) -> Array:
    """Return rows of the given classes, with 0 on the diagonal of the whole matrix."""
    return xp.where(classes[:, None] == xp.arange(p.shape[-1])[None], 0, p)


def dependence(p: Array) -> Array:
    """Compute `p_ij - t_i q_j`, where t are the row sums and q the column sums of proportions p.

    The result is 0 if truth and prediction are independent. It is computed as the determinant of
    the 2x2 table of row i against all other rows and column j against all other columns, which
    avoids the cancellation in `p - t q`.
    """
    rows, columns = rest_of_row(p), rest_of_column(p)
    return p * rest_of_column(rows) - rows * columns


def cells(p: Array) -> Arrays:
    """Return TP, FP, FN and TN of each class, `(..., K)` each."""
    return *tp_fp_fn(p), true_negatives(p)


def tables(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    """Return 2x2 tables `[[TN, FP], [FN, TP]]`, `(..., 2, 2)`.

    Rows are the truth, and columns the prediction: 1 for the class, 0 for any other class.
    """
    return xp.stack([xp.stack([tn, fp], -1), xp.stack([fn, tp], -1)], -2)
