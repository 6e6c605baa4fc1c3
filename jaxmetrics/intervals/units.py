"""Independent sampling units: how often each was seen, and what it adds to tables of counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jaxmetrics._namespaces import Array, xp

__all__: list[str] = []


class Units(NamedTuple):
    """Kinds of units, in R strata whose totals are fixed; one stratum of all if nothing is.

    Attributes:
        counts: how often each was seen, `(R, U)`.
        possible: whether it can be seen at all, `(R, U)`.
        unused: groups of kinds that add to classes without examples, `(G, R, U)`.
        tables: from weights of the kinds `(..., R, U)` to T tables of counts `(..., T, K, K)`.
        slopes: from derivatives by those tables, `(T, K, K)`, to derivatives by the weights.
    """

    counts: Array
    possible: Array
    unused: Array
    tables: Callable[[Array], Array]
    slopes: Callable[[Array], Array]


def cells_as_units(table: Array, *, stratified: bool) -> Units:
    """Return the cells of a table `(K, W)` as kinds of examples; stratified, the rows are fixed."""
    shape = table.shape if stratified else (1, table.size)
    sums = (table.sum(axis, keepdims=True) for axis in (-1, -2))
    unused = xp.stack([xp.broadcast_to(x == 0, table.shape) for x in sums])
    return Units(
        table.reshape(shape),
        xp.ones(shape, bool),
        unused.reshape((2, *shape)),
        lambda weights: weights.reshape((*weights.shape[:-2], 1, *table.shape)),
        lambda slopes: slopes.reshape(shape),
    )
