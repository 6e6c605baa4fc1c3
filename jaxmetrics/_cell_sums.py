"""Sums of the cells of a confusion matrix that do not cancel, above all the 2x2 tables of one class
against the rest.

`FN = support - TP` and `TN = total - TP - FP - FN` lose digits in float32 where a class holds
nearly all examples or nearly none: of 1e9 examples the last thousand vanish. Adding up the cells
that belong keeps every digit.
"""

from __future__ import annotations

from jaxmetrics._arithmetic import divide, matmul
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike, as_counts

__all__: list[str] = []


def proportions(counts: ArrayLike, *, axes: tuple[int, ...] = (-2, -1)) -> Array:
    """`counts` divided by their sum over `axes`, 0 where it is 0; over all cells, so that no
    product of counts overflows.
    """
    c = as_counts(counts)
    return divide(c, c.sum(axes, keepdims=True))


def diagonal(p: Array) -> Array:
    """The cells that are right, `(..., K)`."""
    return xp.diagonal(p, axis1=-2, axis2=-1)


def off_diagonal(p: Array) -> Array:
    """The cells that are wrong, `(..., K, K)`, with 0 on the diagonal."""
    return xp.where(xp.broadcast_to(xp.eye(p.shape[-1], dtype=bool), p.shape), 0, p)


def tp_fp_fn(p: Array) -> tuple[Array, Array, Array]:
    """TP, FP and FN of each class, `(..., K)` each."""
    off = off_diagonal(p)
    return diagonal(p), off.sum(-2), off.sum(-1)


def rest_of_row(p: Array) -> Array:
    """`[i, j]` = the sum of row i without column j."""
    return matmul(p, 1 - xp.eye(p.shape[-1], dtype=p.dtype))


def rest_of_column(p: Array) -> Array:
    """`[i, j]` = the sum of column j without row i."""
    return matmul(1 - xp.eye(p.shape[-1], dtype=p.dtype), p)


def true_negatives(p: Array) -> Array:
    """TN of each class, `(..., K)`: the sum of the cells outside its row and column."""
    return off_diagonal(rest_of_row(p)).sum(-2)


def dependence(p: Array) -> Array:
    """`p_ij - t_i q_j` with the row sums t and column sums q of proportions p: 0 if truth and
    prediction are independent.

    As the determinant of the 2x2 table of row i against the rest and column j against the rest,
    which keeps the digits that `p - t q` cancels.
    """
    rows, columns = rest_of_row(p), rest_of_column(p)
    return p * rest_of_column(rows) - rows * columns


def cells(p: Array) -> tuple[Array, Array, Array, Array]:
    """TP, FP, FN and TN of each class, `(..., K)` each."""
    return *tp_fp_fn(p), true_negatives(p)


def tables(tp: Array, fp: Array, fn: Array, tn: Array) -> Array:
    """`[[TN, FP], [FN, TP]]`, `(..., 2, 2)`: row = true, column = predicted, 1 = the class, 0 = the
    rest.
    """
    return xp.stack([xp.stack([tn, fp], -1), xp.stack([fn, tp], -1)], -2)
