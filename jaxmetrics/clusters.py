"""Clusters: groups of correlated examples, such as the images of one patient.

Examples of the same cluster may be correlated. Different clusters must be independent. Intervals
from C clusters use Student's quantile with C - 1 degrees of freedom instead of the normal quantile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arguments.labels import is_missing
from jaxmetrics._arguments.single import ArrayLike, check_axis, is_integer, on_host
from jaxmetrics._numerics.arithmetic import divide, matmul, safe_sqrt
from jaxmetrics._places.namespaces import Array, is_known, on_device, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._sums.weighted_sums import sum_by_cell
from jaxmetrics.betas.student import student_quantile

__all__: list[str] = []

FEWEST = 20  # least number of clusters for which intervals had their level in simulations
# Added to sums of squares that may be near 0 by chance: the variance of a coin toss, which is the
# largest variance of a proportion. Agresti and Coull (1998), The American Statistician 52, add
# trials to a proportion for the same reason.
COIN_TOSS = 1 / 4
NO_GROUP = "(missing)"  # the name of the group of examples without a group
_MOST_CELLS = 2**27  # greatest number of cells in the tables of all clusters, 1 GB


def numbered_clusters(
    clusters: ArrayLike | Sequence[Any], shape: tuple[int, ...], name: str = "clusters"
) -> tuple[np.ndarray, int]:
    """Convert the cluster ids of examples to integers from 0, in each batch entry.

    Args:
        clusters: ids of any hashable type, such as integers, strings or tuples, of shape `(n,)` or
            with batch axes that broadcast to the batch axes of `shape`.
        shape: shape of the examples, `(..., n)`.

    Returns:
        Two values: the integers as an int32 array of the same shape as the ids, and the number of
        clusters in the batch entry that has most clusters.

    Raises:
        TypeError: if ids are not known under jit, or are not hashable.
        ValueError: if the number of ids differs from the number of examples, or if an id is missing
            (None, NaN, NaT).

    >>> numbered_clusters(["b", "a", "b"], (3,))
    (array([0, 1, 0], dtype=int32), 2)
    """
    ids = _as_ids(clusters, name)
    if shape[-1:] in ((), (0,)):
        raise ValueError(
            f"{name} cannot be used here, because the other arguments have no examples."
            f" Leave out {name}."
        )
    try:
        fits = ids.shape[-1:] == shape[-1:] and np.broadcast_shapes(ids.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        *batch, n = shape
        wanted = f"(n,) = ({n},)" + (f" or {tuple(shape)}" if batch else "")
        raise ValueError(
            f"{name} must have shape {wanted}, with one id for each example, got {ids.shape}."
        )
    numbers = _numbered(ids.ravel(), name).reshape((-1, ids.shape[-1]))
    if not numbers.size:
        return numbers.reshape(ids.shape), 0
    if len(numbers) > 1:
        # Pairs of a batch entry and an id are numbered, and numbers are consecutive within an
        # entry.
        pairs = numbers + (numbers.max() + 1) * np.arange(len(numbers))[:, None]
        numbers = np.unique(pairs, return_inverse=True)[1].reshape(numbers.shape)
        numbers = numbers - numbers.min(-1, keepdims=True)
    return numbers.reshape(ids.shape).astype(np.int32), int(numbers.max()) + 1


def _as_ids(clusters: Any, name: str) -> np.ndarray:
    if isinstance(clusters, list | tuple) and any(isinstance(x, tuple) for x in clusters):
        ids = np.empty(len(clusters), object)  # a tuple is an id and not a row of ids
        ids[:] = clusters
        return ids
    if not is_known(clusters):
        raise TypeError(
            f"{name} must not be an argument of a function under jax.jit, because the number of"
            " clusters determines the shapes of arrays, and JAX must know shapes when it compiles."
            " Use an array of ids that is defined outside of the compiled function."
        )
    if isinstance(clusters, list | tuple) and any(isinstance(x, str) for x in clusters):
        # Otherwise NumPy would convert a missing id to "nan".
        clusters = np.asarray(clusters, object)
    return on_host(clusters, name)


def _numbered(ids: np.ndarray, name: str) -> np.ndarray:
    """Convert ids `(n,)` to numbers from 0."""
    if ids.dtype.kind == "O":
        missing = np.array([is_missing(x) for x in ids.tolist()], bool)
    else:
        missing = ids != ids  # NaN or NaT
    if missing.any():
        hint = "If an example belongs to no cluster, give it an id that no other example has."
        if name == "groups":
            hint = "Leave out examples without an id, or give them one id, such as 'unknown'."
        raise ValueError(
            f"{name}[{np.argmax(missing)}] is missing ({ids[np.argmax(missing)]}), but every"
            f" example needs an id. {hint}"
        )
    if ids.dtype.kind in "biufmM":
        return np.unique(ids, return_inverse=True)[1]
    known: dict[Any, int] = {}
    try:
        return np.array([known.setdefault(x, len(known)) for x in ids.tolist()], np.int64)
    except TypeError as error:
        raise TypeError(f"{name} must contain hashable ids, but {error}.") from None


def clusters_of_examples(
    clusters: ArrayLike | Sequence[Any], amounts: Array, shape: tuple[int, ...]
) -> tuple[np.ndarray, int]:
    """Convert cluster ids to numbers, and warn if few clusters have examples that are not ignored.

    `amounts` of shape `(..., n)` are 0 for ignored examples.
    """
    numbers, size = numbered_clusters(clusters, shape)
    if not on_device(amounts):
        warn_of_clusters(sums_by_cluster(amounts != 0, numbers, size))
    return numbers, size


_few: ContextVar[list[int] | None] = ContextVar("few", default=None)


@contextmanager
def few_clusters() -> Iterator[list[int]]:
    """Collect numbers of clusters that are too small, instead of issuing a warning for each."""
    few: list[int] = []
    token = _few.set(few)
    try:
        yield few
    finally:
        _few.reset(token)


def warn_of_few_clusters(numbers: list[int], text: str | None = None) -> None:
    """Issue one warning of numbers of clusters that are too small; `text` describes them."""
    if (few := _few.get()) is not None:
        few += numbers
    elif numbers:
        fewest = min(numbers)
        of_class = " (of a class)" * (fewest < max(numbers))
        text = text or f"{fewest} cluster{'s' * (fewest > 1)}{of_class}"
        warn(
            f"with {text}, confidence intervals may be too narrow. They reach their confidence"
            f" level with at least {FEWEST} clusters."
        )


def warn_of_clusters(sizes: Array) -> None:
    """Warn if there are too few clusters for reliable intervals, or if their sizes `(..., C)` are
    too unequal. The batch entry with the fewest clusters is checked.
    """
    sizes = np.asarray(sizes).reshape((-1, sizes.shape[-1]))
    number = (sizes > 0).sum(-1)
    fewest = int(number[number > 0].min(initial=sizes.shape[-1]))
    if fewest < FEWEST:
        warn_of_few_clusters([fewest])
        return
    effective = kish_number(sizes)
    unequal = (number > 0) & (2 * effective < number)
    if unequal.any():
        warn(
            f"The {number[unequal][0]} clusters of a value (for a class, the clusters with its"
            " examples) have such unequal sizes that their effective number is"
            f" {effective[unequal][0]:.3g}. Confidence intervals reach their level if the"
            " largest cluster is at most 10 times as large as the smallest cluster. Otherwise they"
            " may be wrong if the metric differs between large and small clusters."
        )


def check_size_of_tables(number: int, cells: int, advice: str, units: str = "clusters") -> None:
    """Raise an error if the tables of all clusters may not fit in memory."""
    if number * cells > _MOST_CELLS:
        raise ValueError(
            f"{number} {units}, each with a table of {cells} cells, need {number * cells:.3g}"
            f" cells together, but at most {_MOST_CELLS:.3g} cells are allowed. {advice}"
        )


def as_clusters(counts: Array, cluster_axis: int, *, table_ndim: int = 2) -> Array:
    """Move the cluster axis before the axes of the table, and warn if clusters are few or
    unequal.
    """
    axis = check_axis(cluster_axis, "cluster_axis")
    axis = axis + counts.ndim if axis < 0 else axis
    if not 0 <= axis < counts.ndim - table_ndim:
        raise ValueError(
            f"The last {table_ndim} axes of counts are the axes of one table, so cluster_axis must"
            f" be {-table_ndim - 1} or another axis before them. counts has the shape"
            f" {counts.shape}, and cluster_axis is {cluster_axis}."
        )
    clusters = xp.moveaxis(counts, axis, -table_ndim - 1)
    if counts.shape[axis] == 0:
        raise ValueError(
            "The axis cluster_axis of counts must contain at least one cluster, got counts of"
            f" shape {counts.shape}."
        )
    if is_known(clusters) and clusters.size:
        warn_of_clusters(clusters.sum(tuple(range(-table_ndim, 0))))
    return clusters


def number_of_clusters(clusters: Array, *, table_ndim: int = 2) -> Array:
    """Return the number of clusters that contain examples, from counts `(..., C, *table)`."""
    return (clusters.sum(tuple(range(-table_ndim, 0))) > 0).sum(-1)


def kish_number(sizes: Array) -> Array:
    """Return Kish's effective number of clusters with sizes `(..., C)`.

    The formula is `(sum m_c)^2 / sum m_c^2`. The effective number is smaller than C if the clusters
    have unequal sizes, and it is 0 if there are no examples. Source: Kish (1965), Survey Sampling.
    """
    shares = divide(sizes, sizes.sum(-1, keepdims=True))
    return divide(1, (shares**2).sum(-1))


class Spread(NamedTuple):
    """The variance of an estimate; all attributes have shape `(...)`.

    Attributes:
        independent: the variance if examples are independent.
        variance: the variance if clusters are independent.
        share: the number of independent examples with the same variance as one clustered example.
        number: the effective number of independent units.
    """

    independent: Array
    variance: Array
    share: Array
    number: Array

    @classmethod
    def of_classes(cls, moves: Array, independent: Array, sizes: Array, parts: Array) -> Spread:
        """Compute the variance from the moves `(..., C)` of clusters (`jackknife_moves`).

        The number is Kish's effective number of clusters, where the size of a cluster is the part
        of the variance that the cluster contributes, summed over classes.

        Args:
            moves: changes of the estimate.
            independent: the variance if examples are independent.
            sizes: the number of examples of each of K classes in each cluster, `(..., K, C)`.
            parts: the part of the variance that one example of each class contributes, `(..., K)`,
                after the variance of a coin toss was added to each class, so that no part is 0.
        """
        variance, size = (moves**2).sum(-1), sizes.sum(-2)
        errors = safe_sqrt(independent), safe_sqrt(variance)
        share = independent_share(*errors, size.sum(-1), kish_number(size))
        share = xp.where(xp.isnan(variance), xp.nan, share)
        number = kish_number((parts[..., None] * sizes).sum(-2))
        return cls(independent, variance, share, number)


def _over_clusters(x: Array) -> Array:
    return x.sum(-1, keepdims=True)


def jackknife_moves(
    sums: Array,
    shares: Array,
    *,
    is_centred: bool = False,
    is_counted: Array | None = None,
    total: Callable[[Array], Array] = _over_clusters,
) -> Array:
    """Return by how much an estimate changes if one of C clusters is left out, scaled so that the
    sum of squares is the variance of the estimate.

    The moves are `sqrt((C - 1) / C) u_c / (1 - s_c)`. Here u_c is the sum over a cluster of the
    derivatives with respect to the weights of the examples, and s_c is the fraction of the examples
    that are in the cluster. If all clusters have the same size, the variance is
    `C / (C - 1) sum u_c^2`. Source: CV3 of MacKinnon, Nielsen and Webb (2023), Journal of Applied
    Econometrics 38.

    Args:
        sums, shares: u_c and s_c, `(..., C)`.
        is_centred: whether the mean of `u_c / (1 - s_c)` over clusters is subtracted (CV3J in the
            same source). This is needed if the derivatives do not sum to 0.
        is_counted: whether a cluster contains examples, `(..., C)`; by default `shares > 0`.
        total: function that adds up an array `(..., C)` over the clusters of a stratum; its result
            broadcasts against the array.

    Returns:
        Moves `(..., C)`, which are NaN if there is only one cluster.
    """
    is_counted = shares > 0 if is_counted is None else is_counted
    moves = xp.where(is_counted, divide(sums, 1 - shares, xp.nan), 0)
    number = total(is_counted.astype(moves.dtype))
    if is_centred:
        moves = xp.where(is_counted, moves - divide(total(moves), number), 0)
    return moves * safe_sqrt(divide(number - 1, number, xp.nan))


def _sums_by_value(clusters: Array, slopes: Array) -> Array:
    """Sum clusters `(..., C, R, U)` times slopes `(..., V, R, U)` over units, `(..., V, R, C)`."""
    held = xp.swapaxes(clusters, -3, -2)  # (..., R, C, U)
    return xp.moveaxis(matmul(held, xp.moveaxis(slopes, -3, -1)), -1, -3)


def sizes_by_value(clusters: Array, influences: Array) -> Array:
    """Return how many examples of each cluster can move each of V values, `(..., V, R, C)`.

    These are the examples of the cells whose influence on the value, `(..., V, R, U)`, is not 0.
    The recall of a class, for example, depends only on the clusters with examples of this class. If
    no cell has an influence, all examples count.
    """
    sizes = _sums_by_value(clusters, (influences != 0).astype(clusters.dtype))
    of_all = xp.swapaxes(clusters, -3, -2).sum(-1)[..., None, :, :]
    return xp.where(sizes.any(-1, keepdims=True), sizes, of_all)


def clustered_error(clusters: Array, slopes: Array, influences: Array) -> Array:
    """Return jackknife standard errors `(..., V)` of V values from their derivatives
    `(..., V, R, U)` with respect to the sum of independent clusters `(..., C, R, U)`, each in one
    of R strata. Clusters without examples that matter for a value are ignored (`sizes_by_value`).
    """
    sizes = sizes_by_value(clusters, influences)
    shares = divide(sizes, sizes.sum(-1, keepdims=True))
    moves = jackknife_moves(_sums_by_value(clusters, slopes), shares, is_centred=True)
    largest = xp.abs(moves).max((-2, -1), keepdims=True)  # no square overflows
    return largest[..., 0, 0] * safe_sqrt((divide(moves, largest) ** 2).sum((-2, -1)))


def independent_share(error: Array, clustered: Array, size: Array, number: Array) -> Array:
    """Return the number of independent examples with the same variance as one clustered example.

    This number is the ratio of the variance for independent examples to the variance for clusters,
    but at most 1. If both variances are 0, it is the number of clusters per example.

    Args:
        error, clustered: standard errors for independent examples and for clusters.
        size: number of examples.
        number: effective number of clusters.
    """
    share = xp.where(error > 0, divide(error, clustered) ** 2, divide(number, size))
    return xp.minimum(xp.where((clustered == 0) & (error > 0), 1, share), 1)


def effective_share(
    error: Array, clustered: Array, size: Array, number: Array, z: Array | float
) -> Array:
    """Return `independent_share` multiplied by the squared ratio of the normal quantile z to
    Student's quantile; 0 for a single cluster: Korn and Graubard (1998), Survey Methodology 24.
    """
    t = student_quantile(z, xp.maximum(number - 1, 1))
    share = independent_share(error, clustered, size, number)
    return xp.where(number > 1, share * (z / t) ** 2, 0)


def jackknife_variance(sums: Array, shares: Array) -> Array:
    """Return the jackknife variance of a mean. `sums`, `(..., C)`, are the sums of the residuals in
    clusters divided by the total number of examples.
    """
    return (jackknife_moves(sums, shares) ** 2).sum(-1)


def sums_by_cluster(values: Array, numbers: Array, size: int) -> Array:
    """Sum values `(..., n)` by cluster; the result has shape `(..., size)`."""
    values, numbers = xp.broadcast_arrays(values, numbers)
    *batch, n = values.shape
    rows = values.reshape((-1, n))
    first = size * xp.arange(len(rows), dtype=numbers.dtype)[:, None]  # index of the batch entry
    place = (numbers.reshape(rows.shape) + first).ravel()
    if on_device(rows, place):
        wide = rows.astype(xp.promote_types(rows.dtype, np.int32)) if is_integer(rows) else rows
        sums = sum_by_cell(place, wide.ravel(), size * len(rows), n)
    else:
        sums = np.bincount(place, rows.ravel(), minlength=size * len(rows))
    return sums.reshape((*batch, size))
