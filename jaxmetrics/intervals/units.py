"""Independent sampling units: how often each was seen, and what it adds to tables of counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import NamedTuple

from jaxmetrics._arithmetic import divide, matmul, safe_sqrt
from jaxmetrics._namespaces import Array, is_known, xp
from jaxmetrics.intervals.clusters import kish_number, student_quantile, warn_if_few

__all__: list[str] = []


class Units(NamedTuple):
    """Kinds of units, in R strata whose totals are fixed; one stratum of all if nothing is.

    Attributes:
        counts: how often each was seen, `(R, U)`.
        possible: whether it can be seen at all, `(R, U)`.
        unused: groups of kinds that add to classes without examples, `(G, R, U)`.
        tables: from weights of the kinds `(..., R, U)` to T tables of counts `(..., T, K, K)`.
        slopes: from derivatives by those tables, `(T, K, K)`, to derivatives by the weights.
        clusters: whose sum the counts are, `(C, 1, U)`; None where units are drawn one by one.
        complete: whether kinds that were not seen are among them.
    """

    counts: Array
    possible: Array
    unused: Array
    tables: Callable[[Array], Array]
    slopes: Callable[[Array], Array]
    clusters: Array | None = None
    complete: bool = True


def cells_as_units(
    table: Array, *, stratified: bool = False, clusters: Array | None = None
) -> Units:
    """Return the cells of a table `(K, K)`, or of those of groups `(G K, K)`, as kinds of examples.

    Stratified, the rows are fixed; clusters `(C, G K, K)`, whose sum it is, are drawn whole.
    """
    shape = table.shape if stratified else (1, table.size)
    groups = table.reshape((-1, table.shape[-1], table.shape[-1]))
    sums = (groups.sum(axis, keepdims=True) for axis in (-1, -2))
    unused = xp.stack([xp.broadcast_to(x == 0, groups.shape) for x in sums])
    return Units(
        table.reshape(shape),
        xp.ones(shape, bool),
        unused.reshape((2, *shape)),
        lambda weights: weights.reshape((*weights.shape[:-2], 1, *table.shape)),
        lambda slopes: slopes.reshape(shape),
        None if clusters is None else clusters.reshape((len(clusters), *shape)),
    )


def as_clusters(counts: Array, cluster_axis: int, *, table_ndim: int = 2) -> Array:
    """Move the axis of clusters before the tables, and warn of too few clusters."""
    axis = operator.index(cluster_axis)
    axis = axis + counts.ndim if axis < 0 else axis
    if not 0 <= axis < counts.ndim - table_ndim:
        raise ValueError(
            f"cluster_axis must be an axis before those of the table, got {cluster_axis} for counts"
            f" of shape {counts.shape}; {-table_ndim - 1} is the last of them."
        )
    clusters = xp.moveaxis(counts, axis, -table_ndim - 1)
    if counts.shape[axis] == 0:
        raise ValueError(f"there are no clusters: counts have shape {counts.shape}.")
    if is_known(clusters) and clusters.size:
        warn_if_few(int(number_of_clusters(clusters, table_ndim=table_ndim).min()))
    return clusters


def number_of_clusters(clusters: Array, *, table_ndim: int = 2) -> Array:
    """Count those of the clusters `(..., C, *table)` that hold examples."""
    return (clusters.sum(tuple(range(-table_ndim, 0))) > 0).sum(-1)


def effective_number(clusters: Array, *, table_ndim: int = 2) -> Array:
    """Return Kish's number of the clusters `(..., C, *table)`."""
    return kish_number(clusters.sum(tuple(range(-table_ndim, 0))))


def clustered_error(clusters: Array, slopes: Array) -> Array:
    """Return standard errors `(..., V)` from derivatives `(..., V, U)` by the sum of clusters
    `(..., C, U)`.

    With u_c the sum of the derivatives over the examples of a cluster and s_c its share of all
    examples, they are those of the jackknife, to first order: `sqrt((C - 1) / C sum (d_c - mean
    d)^2)`, `d_c = u_c / (1 - s_c)`; of one size, `sqrt(C / (C - 1) sum u_c^2)`. Clusters without
    examples do not count.
    """
    sizes = clusters.sum(-1)
    rest = 1 - divide(sizes, sizes.sum(-1, keepdims=True))
    moved = divide(matmul(slopes, xp.swapaxes(clusters, -2, -1)), rest[..., None, :])
    counted = (sizes > 0)[..., None, :]
    number = counted.sum(-1)
    mean = divide(xp.where(counted, moved, 0).sum(-1), number)
    centred = xp.where(counted, moved - mean[..., None], 0)
    largest = xp.abs(centred).max(-1)
    squares = (divide(centred, largest[..., None]) ** 2).sum(-1)
    error = largest * safe_sqrt(squares * divide(number - 1, number))
    return xp.where(number > 1, error, xp.nan)


def effective_share(
    error: Array, clustered: Array, size: Array, number: Array, z: Array | float
) -> Array:
    """Return to how many independent examples an example of clusters amounts, at most one; 0 for a
    single cluster.

    It is the ratio of both variances, or the number of clusters per example where no variance was
    seen, and accounts for degrees of freedom. Korn and Graubard (1998), Survey Methodology 24.

    Args:
        error, clustered: standard errors if examples were independent, and of clusters.
        size: the number of examples.
        number: the effective number of clusters.
        z: the normal quantile of the level.
    """
    without_variance = divide(number, size)
    share = xp.where(error > 0, divide(error, clustered) ** 2, without_variance)
    share = xp.where((clustered == 0) & (error > 0), 1, share)
    t = student_quantile(z, xp.maximum(number - 1, 1))
    return xp.where(number > 1, xp.minimum(share, 1) * (z / t) ** 2, 0)


def clusters_as_cells(clusters: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Return cells `(R, W)` with a 1 for each of the clusters `(C, K, W)` that holds examples, and
    a function from how often each is drawn, `(..., R, W)`, to their sum, `(..., K, W)`.

    R and W are about equal, since a multinomial on the device takes R + W steps.
    """
    number, *table = clusters.shape
    flat = clusters.reshape((number, -1))
    width = math.isqrt(max(number - 1, 0)) + 1
    more = -number % width
    cells = xp.pad(flat.sum(-1) > 0, (0, more)).astype(flat.dtype).reshape((-1, width))

    def sums(drawn: Array) -> Array:
        batch = drawn.shape[:-2]
        return matmul(drawn.reshape((*batch, -1))[..., :number], flat).reshape((*batch, *table))

    return cells, sums
