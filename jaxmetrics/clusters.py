"""Clusters: groups of correlated examples, such as the images of one patient.

Clusters, not examples, are then the independent units. With C of them a variance has C - 1 degrees
of freedom, and an interval uses the quantile of Student's t instead of the normal quantile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmetrics._arithmetic import divide, matmul, safe_sqrt
from jaxmetrics._labels import is_missing
from jaxmetrics._namespaces import Array, is_known, on_device, xp
from jaxmetrics._validation import ArrayLike, check_axis, is_integer, on_host, warn
from jaxmetrics._weighted_sums import sum_by_cell
from jaxmetrics.betas.student import student_quantile

__all__: list[str] = []

FEWEST = 20  # clusters; with fewer, intervals did not reach their level in simulations
_MOST_CELLS = 2**27  # cells in the tables of all clusters, 1 GB


def numbered_clusters(
    clusters: ArrayLike | Sequence[Any], shape: tuple[int, ...], name: str = "clusters"
) -> tuple[np.ndarray, int]:
    """Number the clusters of examples `(..., n)` from 0 in each batch entry.

    Args:
        clusters: ids of any hashable kind, such as integers, strings or tuples, `(n,)` or with
            batch axes that broadcast to the batch axes of `shape`.
        shape: the shape of the examples, `(..., n)`.

    Returns:
        The numbers, int32, in the shape of the ids, and the largest number of clusters in a batch
        entry.

    Raises:
        TypeError: ids that jit hides, or that are not hashable.
        ValueError: another number of ids than of examples, an id that is missing (None, NaN, NaT).

    >>> numbered_clusters(["b", "a", "b"], (3,))
    (array([0, 1, 0], dtype=int32), 2)
    """
    ids = _as_ids(clusters, name)
    if not shape:
        raise ValueError(
            f"{name} needs an axis of examples, which the other arguments do not have."
        )
    if ids.ndim == 0 or not _fits(ids.shape, shape):
        *batch, n = shape
        wanted = f"(n,) = ({n},)" + (f" or {tuple(shape)}" if batch else "")
        raise ValueError(f"{name} must have shape {wanted}, one id per example, got {ids.shape}.")
    numbers = _numbered(ids.ravel(), name).reshape((-1, ids.shape[-1]))
    if not numbers.size:
        return numbers.reshape(ids.shape), 0
    if len(numbers) > 1:
        # Numbers of pairs of a batch entry and an id, consecutive within an entry.
        pairs = numbers + (numbers.max() + 1) * np.arange(len(numbers))[:, None]
        numbers = np.unique(pairs, return_inverse=True)[1].reshape(numbers.shape)
        numbers = numbers - numbers.min(-1, keepdims=True)
    return numbers.reshape(ids.shape).astype(np.int32), int(numbers.max()) + 1


def _as_ids(clusters: Any, name: str) -> np.ndarray:
    if isinstance(clusters, list | tuple) and any(isinstance(x, tuple) for x in clusters):
        ids = np.empty(len(clusters), object)  # tuples are ids, not rows
        ids[:] = clusters
        return ids
    if not is_known(clusters):
        raise TypeError(
            f"{name} must be known when jit traces, because the number of clusters sets the shape"
            " of compiled arrays: close over them."
        )
    if isinstance(clusters, list | tuple) and any(isinstance(x, str) for x in clusters):
        clusters = np.asarray(clusters, object)  # else NumPy would make "nan" of a missing one
    return on_host(clusters, name)


def _fits(shape: tuple[int, ...], examples: tuple[int, ...]) -> bool:
    try:
        return shape[-1] == examples[-1] and np.broadcast_shapes(shape, examples) == examples
    except ValueError:
        return False


def _numbered(ids: np.ndarray, name: str) -> np.ndarray:
    """Number ids `(n,)` from 0."""
    missing = _missing(ids)
    if missing.any():
        raise ValueError(
            f"{name}[{np.argmax(missing)}] is missing ({ids[np.argmax(missing)]}); each example"
            " needs an id, a unique one if it belongs to no cluster."
        )
    if ids.dtype.kind in "biufmM":
        return np.unique(ids, return_inverse=True)[1]
    known: dict[Any, int] = {}
    try:
        return np.array([known.setdefault(x, len(known)) for x in ids.tolist()], np.int64)
    except TypeError as error:
        raise TypeError(f"{name} must hold ids that are hashable: {error}.") from None


def _missing(ids: np.ndarray) -> np.ndarray:
    if ids.dtype.kind in "fmM":
        return np.isnat(ids) if ids.dtype.kind in "mM" else np.isnan(ids)
    if ids.dtype.kind != "O":
        return np.zeros(ids.shape, bool)
    return np.array([is_missing(x) for x in ids.tolist()], bool)


def clusters_of_examples(
    clusters: ArrayLike | Sequence[Any], amounts: Array, shape: tuple[int, ...]
) -> tuple[np.ndarray, int]:
    """Number the clusters with `numbered_clusters`, and warn if few clusters contain examples that
    count.

    `amounts`, `(..., n)`, are nonzero for examples that count.
    """
    numbers, size = numbered_clusters(clusters, shape)
    if not on_device(amounts):
        warn_of_clusters(sums_by_cluster(amounts != 0, numbers, size))
    return numbers, size


def warn_of_clusters(sizes: Array) -> None:
    """Warn if clusters with sizes `(..., C)` are too few or too unequal for reliable intervals, in
    the batch entry with the fewest.
    """
    sizes = np.asarray(sizes).reshape((-1, sizes.shape[-1]))
    number = (sizes > 0).sum(-1)
    fewest = int(number[number > 0].min(initial=sizes.shape[-1]))
    if fewest < FEWEST:
        warn(
            f"with {fewest} cluster{'s' if fewest > 1 else ''}, intervals may be too narrow: they"
            f" reach their level with {FEWEST} clusters or more."
        )
        return
    effective = kish_number(sizes)
    unequal = (number > 0) & (2 * effective < number)
    if unequal.any():
        warn(
            f"{number[unequal][0]} clusters have such unequal sizes that their effective number"
            f" is {effective[unequal][0]:.3g}: intervals reach their level for sizes up to 10:1;"
            " beyond, they may be wrong if large clusters differ from small ones."
        )


def check_size_of_tables(number: int, cells: int, advice: str, units: str = "clusters") -> None:
    """Raise if the tables of all clusters may not fit into memory."""
    if number * cells > _MOST_CELLS:
        raise ValueError(
            f"{number} {units} with tables of {cells} cells are {number * cells:.3g} cells: at"
            f" most {_MOST_CELLS:.3g} are allowed. {advice}"
        )


def as_clusters(counts: Array, cluster_axis: int, *, table_ndim: int = 2) -> Array:
    """Move the cluster axis before the tables, and warn if clusters are few or unequal."""
    axis = check_axis(cluster_axis, "cluster_axis")
    axis = axis + counts.ndim if axis < 0 else axis
    if not 0 <= axis < counts.ndim - table_ndim:
        raise ValueError(
            f"cluster_axis must be an axis before the axes of the table, got {cluster_axis} for"
            f" counts of shape {counts.shape}; {-table_ndim - 1} is the last possible one."
        )
    clusters = xp.moveaxis(counts, axis, -table_ndim - 1)
    if counts.shape[axis] == 0:
        raise ValueError(f"cluster_axis holds no clusters: counts have shape {counts.shape}.")
    if is_known(clusters) and clusters.size:
        warn_of_clusters(clusters.sum(tuple(range(-table_ndim, 0))))
    return clusters


def number_of_clusters(clusters: Array, *, table_ndim: int = 2) -> Array:
    """Count the clusters `(..., C, *table)` that contain examples."""
    return (clusters.sum(tuple(range(-table_ndim, 0))) > 0).sum(-1)


def kish_number(sizes: Array) -> Array:
    """Return Kish's effective number of clusters with sizes `(..., C)`.

    `(sum m_c)^2 / sum m_c^2`; 0 without examples. Kish (1965), Survey Sampling.
    """
    shares = divide(sizes, sizes.sum(-1, keepdims=True))
    return divide(1, (shares**2).sum(-1))


def kish_number_of_variance(*classes: tuple[Array, Array, Array]) -> Array:
    """Return Kish's effective number of clusters, with the parts of a variance (summed over
    classes) as their sizes. Half an additional example, with the variance of half a coin toss,
    keeps the parts above 0.

    Args:
        classes: for each class the sizes of the clusters `(..., C)`, its number of examples n, and
            n^2 times its variance, `(...)`.
    """
    parts = [
        size * divide(squares + 1 / 4, number**3)[..., None] for size, number, squares in classes
    ]
    return kish_number(sum(parts[1:], parts[0]))


def clustered_error(clusters: Array, slopes: Array) -> Array:
    """Return standard errors `(..., V)` from derivatives `(..., V, R, U)` with respect to the sum
    of independent clusters `(..., C, R, U)`, each in one of R strata.

    With u_c the sum of the derivatives over the examples of a cluster and s_c its share of the
    examples of its stratum, these are jackknife errors, to first order: `sqrt((C - 1) / C sum (d_c
    - mean d)^2)`, `d_c = u_c / (1 - s_c)`; for clusters of equal size, `sqrt(C / (C - 1) sum
    u_c^2)`. Clusters without examples do not count.
    """
    held = xp.swapaxes(clusters, -3, -2)  # (..., R, C, U)
    sizes = held.sum(-1)
    rest = 1 - divide(sizes, sizes.sum(-1, keepdims=True))
    moved = divide(matmul(held, xp.moveaxis(slopes, -3, -1)), rest[..., None])  # (..., R, C, V)
    counted = (sizes > 0)[..., None]
    number = counted.sum(-2)
    mean = divide(xp.where(counted, moved, 0).sum(-2), number)
    centred = xp.where(counted, moved - mean[..., None, :], 0)
    largest = xp.abs(centred).max((-3, -2), keepdims=True)
    squares = (divide(centred, largest) ** 2).sum(-2) * divide(number - 1, number)
    error = largest[..., 0, 0, :] * safe_sqrt(squares.sum(-2))
    return xp.where((number > 1).all(-2), error, xp.nan)


def independent_share(error: Array, clustered: Array, size: Array, number: Array) -> Array:
    """Return how many independent examples one clustered example is worth, at most 1.

    This is the ratio of both variances, or without any variance the number of clusters per example.

    Args:
        error, clustered: standard errors for independent examples and for clusters.
        size: number of examples.
        number: effective number of clusters.
    """
    share = xp.where(error > 0, divide(error, clustered) ** 2, divide(number, size))
    return xp.minimum(xp.where((clustered == 0) & (error > 0), 1, share), 1)


def share_by_variances(variance: Array, clustered: Array, sizes: Array) -> Array:
    """Return `independent_share` from the variances for independent examples and for clusters with
    sizes `(..., C)`; NaN if the variance for clusters is undefined.
    """
    errors = safe_sqrt(variance), safe_sqrt(clustered)
    share = independent_share(*errors, sizes.sum(-1), kish_number(sizes))
    return xp.where(xp.isnan(clustered), xp.nan, share)


def effective_share(
    error: Array, clustered: Array, size: Array, number: Array, z: Array | float
) -> Array:
    """Return `independent_share`, reduced for the degrees of freedom at the normal quantile z; 0
    for a single cluster. Korn and Graubard (1998), Survey Methodology 24.
    """
    t = student_quantile(z, xp.maximum(number - 1, 1))
    share = independent_share(error, clustered, size, number)
    return xp.where(number > 1, share * (z / t) ** 2, 0)


def jackknife_variance(moves: Array, shares: Array) -> Array:
    """Return the jackknife variance of a mean, which leaves out one cluster at a time.

    `(C - 1) / C sum (m_c / (1 - s_c))^2`, with m_c the sum of the residuals of a cluster divided by
    the total number of examples, and s_c its share of the examples; clusters without examples do
    not count.
    """
    number = (shares > 0).sum(-1)
    without = divide(moves, 1 - shares, xp.nan)  # by how much the mean changes without the cluster
    return divide(number - 1.0, number, xp.nan) * (without**2).sum(-1)


def sums_by_cluster(values: Array, numbers: Array, size: int) -> Array:
    """Add up values `(..., n)` by the number of their cluster, `(..., size)`."""
    values, numbers = xp.broadcast_arrays(values, numbers)
    *batch, n = values.shape
    rows = values.reshape((-1, n))
    first = size * xp.arange(len(rows), dtype=numbers.dtype)[:, None]  # number of a batch entry
    place = (numbers.reshape(rows.shape) + first).ravel()
    if on_device(rows, place):
        wide = rows.astype(xp.promote_types(rows.dtype, np.int32)) if is_integer(rows) else rows
        sums = sum_by_cell(place, wide.ravel(), size * len(rows), n)
    else:
        sums = np.bincount(place, rows.ravel(), minlength=size * len(rows))
    return sums.reshape((*batch, size))
