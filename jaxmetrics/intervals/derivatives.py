"""Derivatives of a function of one table of counts: by JAX for JAX arrays, otherwise by NumPy.

For NumPy arrays, derivatives are computed by complex steps (Squire and Trapp, 1998, SIAM Review
40). As f(c + ih) = f(c) + ih f'(c) + O(h^2), the imaginary part of f(c + ih), divided by h, is the
derivative. The result is correct to the last digit, because no two numbers are subtracted. The
method requires that f is analytic and is computed without `abs` or a cast, which is true for all
metrics of this package. The derivatives are tested with one difference quotient. If the test fails,
which can happen if users pass functions of their own, the derivatives are computed from
extrapolated differences (Ridders, 1982, Advances in Engineering Software 4).

For NumPy arrays, only the derivatives for cells with examples are computed. The derivatives for
empty cells are set to 0, because they do not affect standard errors and influences.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmetrics._arguments.single import takes_complex
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, is_jax

__all__: list[str] = []

Function = Callable[[Array], Array]

_STEP = 1e-30  # its square is negligible beside any count
_MOST_NUMBERS = 2**25  # for more numbers, one reverse pass of JAX is faster than one table per cell
_AT_ONCE = 2**22  # numbers in the tables of a batch
_WORTH_COMPILING = 32  # the limit is as many times lower if tens of derivatives are computed


def jacobian(function: Function, table: Array, *, times: int = 1) -> Array:
    """Return the derivatives of V values with respect to each cell of one table, `(V, K, W)`.

    The function maps tables `(..., K, W)` to values `(..., V)`. `times` is the number of tables for
    which derivatives will be computed.
    """
    if is_jax(table):
        return jax.jacrev(function)(table)
    if not _is_small(table, times):
        try:
            with _x64(), jax.default_device(jax.devices("cpu")[0]):
                of_one = getattr(function, "of_one", function)
                return np.asarray(_reverse(of_one, jax.numpy.asarray(table)))
        except (jax.errors.JAXTypeError, AttributeError, TypeError):
            pass  # the function is computed by NumPy and cannot be traced
    slopes = _tested_complex_steps(function, table)
    return _by_differences(function, table) if slopes is None else slopes


def differentiator(function: Function, table: Array) -> Function:
    """Return a function that computes derivatives for batches of tables like this one.

    From tables `(L, K, W)` it computes derivatives `(L, V, K, W)`. Complex steps are tested only
    once.
    """

    def one_by_one(tables: Array) -> Array:
        return np.stack([jacobian(function, x, times=_WORTH_COMPILING) for x in tables])

    if (
        is_jax(table)
        or not _is_small(table, _WORTH_COMPILING)
        or _tested_complex_steps(function, table) is None
    ):
        return one_by_one

    def at_once(tables: Array) -> Array:
        if _is_small(tables.max(0), _WORTH_COMPILING):
            # SciPy's functions of a value at its end, such as ppf(1), were not called in the test.
            with contextlib.suppress(TypeError):
                return _by_complex_steps(function, tables)
        return one_by_one(tables)

    return at_once


def _is_small(table: np.ndarray, times: int) -> bool:
    return bool(np.count_nonzero(table) * table.size * times <= _MOST_NUMBERS)


def _x64() -> Any:
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax import experimental  # JAX 0.7 has no jax.enable_x64

    return experimental.__dict__["enable_x64"](True)


@compiled
def _reverse(function: Function, table: jax.Array) -> jax.Array:
    return jax.jacrev(function)(table)


def _by_complex_steps(function: Function, tables: np.ndarray) -> np.ndarray:
    token = takes_complex.set(True)
    try:
        return _by_cell(lambda one: function(tables + 1j * _STEP * one).imag / _STEP, tables)
    finally:
        takes_complex.reset(token)


def _by_cell(function: Function, tables: np.ndarray) -> np.ndarray:
    """Evaluate a function for each cell with examples, at the table that is 1 in this cell only.

    The result for tables `(..., K, W)` is `(..., V, K, W)`, with 0 for cells without examples.
    """
    *batch, k, w = tables.shape
    cells = np.flatnonzero(tables.reshape((-1, k * w)).any(0))
    at_once = max(1, _AT_ONCE // tables.size)

    def of_cells(some: np.ndarray) -> np.ndarray:
        ones = np.zeros((len(some), k * w))
        ones[np.arange(len(some)), some] = 1
        return function(ones.reshape((len(some), *[1] * len(batch), k, w)))

    starts = range(0, max(len(cells), 1), at_once)
    values = np.concatenate([of_cells(cells[i : i + at_once]) for i in starts])
    everywhere = np.zeros((*values.shape[1:], k * w), values.dtype)
    everywhere[..., cells] = np.moveaxis(values, 0, -1)
    return everywhere.reshape((*values.shape[1:], k, w))


def _tested_complex_steps(function: Function, table: np.ndarray) -> np.ndarray | None:
    """Return the derivatives by complex steps; None if a difference quotient contradicts them."""
    pattern = np.cos(np.arange(table.size)).reshape(table.shape)
    steps = 1e-3 * np.array([1, -1, 1 / 2, -1 / 2])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # for a cast that discards the imaginary part
            slopes = _by_complex_steps(function, table)
        around = function(table * (1 + steps[:, None, None] * pattern))
    except Exception:  # a user's function may fail for complex numbers
        return None
    ahead, behind, half_ahead, half_behind = around
    terms = slopes * table * pattern
    expected = terms.sum((-2, -1))
    # The error of this quotient is O(step^4).
    quotient = (8 * (half_ahead - half_behind) - (ahead - behind)) / (6 * steps[0])
    room = 1e-6 * np.abs(terms).sum((-2, -1)) + 1e-12 * np.abs(ahead)  # for rounding
    close = np.abs(quotient - expected) <= room
    return slopes if np.all(close | ~np.isfinite(quotient)) else None


def _by_differences(function: Function, table: np.ndarray) -> np.ndarray:
    """Return derivatives by extrapolated differences, with steps of 1/2, 1/4, ... of each count.

    The errors of difference quotients contain only even powers of the step, so that Neville's
    scheme extrapolates them. The returned value is the entry of the scheme that agrees best with
    its neighbours.
    """

    def quotient(share: float) -> np.ndarray:
        ahead, behind = (
            _by_cell(lambda one: function(table * (1 + signed * one)), table)  # noqa: B023  # called at once
            for signed in (share, -share)
        )
        return (ahead - behind) / np.where(table > 0, 2 * share * table, 1)

    best = quotient(1 / 2)
    before, smallest = [best], np.full(best.shape, np.inf)
    for i in range(2, 10):
        row = [quotient(1 / 2**i)]
        for j, previous in enumerate(before, start=1):
            row.append(row[-1] + (row[-1] - previous) / (4**j - 1))
            error = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - previous))
            better = error < smallest
            best, smallest = np.where(better, row[-1], best), np.where(better, error, smallest)
        before = row
    return best
