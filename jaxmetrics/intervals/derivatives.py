"""Derivatives of a function of one table of counts, by JAX on the device, by NumPy on the host.

NumPy differentiates by complex steps: f(c + ih) = f(c) + ih f'(c) + O(h^2), so that the imaginary
part, divided by h, is the derivative to the last digit, since nothing is subtracted. Squire and
Trapp (1998), SIAM Review 40. This requires that f is analytic and computed without `abs` or a cast,
as all metrics of this package are. Whether it holds is tested with one difference quotient; if not,
as for some functions of users, the derivatives are extrapolated differences. Ridders (1982),
Advances in Engineering Software 4.

On the host only cells that hold examples have a derivative here; that of others is 0, since no
error or influence needs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.experimental
import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_jax, xp
from jaxmetrics._validation import complex_steps
from jaxmetrics.intervals.replicates import map_in_blocks

__all__: list[str] = []

Function = Callable[[Array], Any]

# JAX 0.7 has it in `jax.experimental` only.
_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.__dict__["enable_x64"]

_STEP = 1e-30  # its square is nothing beside any count
_MOST_NUMBERS = 2**25  # beyond, one reverse pass of JAX is faster than a table for each cell
_WORTH_COMPILING = 32  # as many times fewer numbers, where tens of derivatives are taken


def jacobian(function: Function, table: Array, numbers: int = 0) -> Any:
    """Differentiate a function by each cell of a table `(K, W)`: arrays `(*)` give `(*, K, W)`."""
    if is_jax(table):
        return jax.jacrev(function)(table)
    if np.count_nonzero(table) * max(numbers, table.size) > _MOST_NUMBERS:
        try:
            with _x64(True), jax.default_device(jax.devices("cpu")[0]):
                return jax.tree.map(np.asarray, _reverse(function, jax.numpy.asarray(table)))
        except (jax.errors.JAXTypeError, AttributeError, TypeError):
            pass  # it is computed by NumPy and cannot be traced
    slopes = _by_complex_steps(function, table)
    return _by_differences(function, table) if slopes is None else slopes


def differentiator(function: Function, table: Array) -> Function:
    """Return a function that differentiates `function`, which gives one array, at such tables.

    Where the derivative is taken tens of times, what works is found out once: on the host, whether
    one batch of complex tables gives what `jacobian` does.
    """
    checked = partial(jacobian, function, numbers=_WORTH_COMPILING * table.size)
    if is_jax(table):
        return checked

    def is_small(table: np.ndarray) -> bool:
        return bool(np.count_nonzero(table) * table.size <= _MOST_NUMBERS // _WORTH_COMPILING)

    if not is_small(table):
        return checked
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same = np.allclose(_in_one_batch(function, table), checked(table), 1e-9, 1e-12, True)
    except Exception:  # whatever a function of the user's makes of complex numbers
        same = False
    return lambda table: (
        _in_one_batch(function, table) if same and is_small(table) else checked(table)
    )


def _in_one_batch(function: Function, table: np.ndarray) -> np.ndarray:
    """Differentiate by complex steps of all cells at once."""
    cells = np.flatnonzero(table)
    tables = np.repeat(table[None].astype(complex), len(cells), 0)
    tables.reshape((len(cells), -1))[np.arange(len(cells)), cells] += 1j * _STEP
    with complex_steps():
        values = function(tables)
    return _by_cell(values.imag / _STEP, cells, table)


@compiled
def _reverse(function: Function, table: jax.Array) -> Any:
    return jax.jacrev(function)(table)


def map_cells(function: Callable[[Array], Any], table: Array, numbers: int) -> Any:
    """Evaluate a function of the tables `(K, W)` with a single 1, for each cell: `(*, K, W)`.

    On the host the cells without examples are left out, and the function may be given a batch.
    """
    cells = np.arange(table.size) if is_jax(table) else np.flatnonzero(table)
    places = np.arange(table.size).reshape(table.shape)

    def of_cell(cell: Array) -> Any:
        return function((places == cell[..., None, None]).astype(table.dtype))

    values = map_in_blocks(of_cell, jax.numpy.asarray(cells) if is_jax(table) else cells, numbers)
    return _by_cell(values, cells, table)


def _by_cell(values: Any, cells: np.ndarray, table: Array) -> Any:
    """Put a value for each of the cells, `(N, *)`, in its place: `(*, K, W)`."""

    def place(v: Array) -> Array:
        rows: Any = xp.moveaxis(v, 0, -1)
        if len(cells) < table.size:
            everywhere = np.zeros((*rows.shape[:-1], table.size), rows.dtype)
            everywhere[..., cells] = rows
            rows = everywhere
        return rows.reshape((*rows.shape[:-1], *table.shape))

    return jax.tree.map(place, values)


def _by_complex_steps(function: Function, table: np.ndarray) -> Any:
    """Differentiate by complex steps; None if the function is not analytic."""
    pattern = np.cos(np.arange(table.size)).reshape(table.shape)
    step = 1e-3
    try:
        with warnings.catch_warnings(), complex_steps():
            warnings.simplefilter("error")  # a cast that discards the imaginary part
            values = map_cells(lambda one: function(table + 1j * _STEP * one), table, table.size)
        slopes = jax.tree.map(lambda v: np.imag(v) / _STEP, values)
        around = [function(table * (1 + s * pattern)) for s in (step, -step, step / 2, -step / 2)]
    except Exception:  # whatever a function of the user's makes of complex numbers
        return None

    def agrees(slope: np.ndarray, *around: np.ndarray) -> bool:
        ahead, behind, half_ahead, half_behind = around
        terms = slope * table * pattern
        expected = terms.sum((-2, -1))
        # Its error is O(step^4).
        quotient = (8 * (half_ahead - half_behind) - (ahead - behind)) / (6 * step)
        room = 1e-6 * np.abs(terms).sum((-2, -1)) + 1e-12 * np.abs(ahead)  # of rounding
        close = np.abs(quotient - expected) <= room
        return bool(np.all(close | ~np.isfinite(quotient)))

    return slopes if all(jax.tree.leaves(jax.tree.map(agrees, slopes, *around))) else None


def _by_differences(function: Function, table: np.ndarray) -> Any:
    """Differentiate by central differences, extrapolated to a step of 0.

    The steps are a half, a quarter, ... of each count.
    """

    def quotient(share: float) -> Any:
        ahead, behind = (
            map_cells(lambda one: function(table * (1 + signed * one)), table, table.size)  # noqa: B023  # called at once
            for signed in (share, -share)
        )
        steps = np.where(table > 0, 2 * share * table, 1)
        return jax.tree.map(lambda a, b: (a - b) / steps, ahead, behind)

    quotients = [quotient(1 / 2**i) for i in range(1, 10)]
    return jax.tree.map(lambda *q: _extrapolated(list(q)), *quotients)


def _extrapolated(quotients: list[np.ndarray]) -> np.ndarray:
    """Extrapolate by Neville's scheme, for errors in even powers of steps that halve.

    Returns the entry of the scheme that agrees best with its neighbours.
    """
    best, smallest = quotients[0], np.full(quotients[0].shape, np.inf)
    before = [quotients[0]]
    for quotient in quotients[1:]:
        row = [quotient]
        for j, previous in enumerate(before, start=1):
            row.append(row[-1] + (row[-1] - previous) / (4**j - 1))
            error = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - previous))
            better = error < smallest
            best, smallest = np.where(better, row[-1], best), np.where(better, error, smallest)
        before = row
    return best
