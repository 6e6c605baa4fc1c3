"""Clusters: groups of examples that depend on one another, as those of one patient do.

Clusters, not examples, are then the independent units. With C of them a variance has C - 1 degrees
of freedom, and an interval takes the quantile of Student's distribution instead of the normal one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._namespaces import Array, is_known, on_device, xp
from jaxmetrics._validation import ArrayLike, on_host, warn
from jaxmetrics._weighted_sums import sum_by_cell

__all__: list[str] = []

FEWEST = 20  # clusters from which intervals were simulated to cover
_MOST_CELLS = 2**27  # of the tables of all clusters, 1 GB


def numbered_clusters(
    clusters: ArrayLike | Sequence[Any], shape: tuple[int, ...], name: str = "clusters"
) -> tuple[np.ndarray, int]:
    """Number the clusters of examples `(..., n)` from 0 in each batch entry.

    Args:
        clusters: ids of any hashable kind, such as integers, strings or tuples, `(n,)` or with
            batch axes that broadcast to those of `shape`.
        shape: that of the examples, `(..., n)`.

    Returns:
        The numbers, int32, in the shape of the ids, and the greatest number of clusters that a
        batch entry has.

    Raises:
        TypeError: ids that jit hides, or that are not hashable.
        ValueError: another number of ids than of examples, an id that is missing (None, NaN, NaT).

    >>> numbered_clusters(["b", "a", "b"], (3,))
    (array([0, 1, 0], dtype=int32), 2)
    """
    ids = _as_ids(clusters, name)
    if not shape:
        raise ValueError(f"{name} are of examples, but the other arguments have no axis of them.")
    if ids.ndim == 0 or not _fits(ids.shape, shape):
        *batch, n = shape
        wanted = f"(n,) = ({n},)" + (f" or {tuple(shape)}" if batch else "")
        raise ValueError(f"{name} must have shape {wanted}, one id per example, got {ids.shape}.")
    numbers = _numbered(ids.ravel(), name).reshape((-1, ids.shape[-1]))
    if not numbers.size:
        return numbers.reshape(ids.shape), 0
    if len(numbers) > 1:
        # Numbers of pairs of a batch entry and an id; those of one entry follow one another.
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
            f"{name} must hold ids that jit does not hide: how many clusters there are sets the"
            " shape of what is compiled. Close over them."
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
            " needs an id, one of its own if it belongs to no other."
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
    return np.array([_is_missing(x) for x in ids.tolist()], bool)


def _is_missing(x: Any) -> bool:
    try:
        return x is None or bool(x != x)  # NaN and NaT
    except (TypeError, ValueError):  # pandas' NA is neither equal nor not
        return True


def warn_if_few(number: int) -> None:
    """Warn of fewer clusters than intervals were simulated for."""
    if number < FEWEST:
        warn(
            f"{number} clusters are few: intervals were found to cover from {FEWEST} clusters, with"
            " fewer they may be too narrow."
        )


def check_size_of_tables(number: int, cells: int, advice: str) -> None:
    """Refuse tables of clusters, of so many cells each, that memory may not hold."""
    if number * cells > _MOST_CELLS:
        raise ValueError(
            f"{number} clusters with tables of {cells} cells are {number * cells:.3g} cells: at"
            f" most {_MOST_CELLS:.3g} are held. {advice}"
        )


def student_quantile(z: Array | float, degrees_of_freedom: Array) -> Array:
    """Return the quantile of Student's distribution that belongs to the normal quantile z.

    `z + g_1(z) / ν + ... + g_4(z) / ν^4` by Cornish and Fisher; Abramowitz and Stegun (1964),
    equation 26.7.5. At levels up to 0.99 it is right to 1 % from ν = 3.

    >>> student_quantile(1.959964, 19).round(3)
    np.float64(2.093)
    """
    w = z**2
    g = (
        z * (w + 1) / 4,
        z * ((5 * w + 16) * w + 3) / 96,
        z * (((3 * w + 19) * w + 17) * w - 15) / 384,
        z * ((((79 * w + 776) * w + 1482) * w - 1920) * w - 945) / 92160,
    )
    nu = xp.asarray(degrees_of_freedom, dtype=float)
    x = xp.where(nu > 0, 1 / xp.where(nu > 0, nu, 1), xp.nan)
    return z + x * (g[0] + x * (g[1] + x * (g[2] + x * g[3])))


def kish_number(sizes: Array) -> Array:
    """Return of clusters with sizes `(..., C)` how many of one size would tell as much.

    `(sum m_c)^2 / sum m_c^2`; 0 without examples. Kish (1965), Survey Sampling.
    """
    shares = divide(sizes, sizes.sum(-1, keepdims=True))
    return divide(1, (shares**2).sum(-1))


def jackknife_variance(moves: Array, shares: Array) -> Array:
    """Return the variance of a mean by leaving out one cluster at a time.

    `(C - 1) / C sum (m_c / (1 - s_c))^2`, m_c the residuals of a cluster added up and divided by
    the number of all examples, s_c its share of them; those without examples do not count.
    """
    number = (shares > 0).sum(-1)
    without = divide(moves, 1 - shares, xp.nan)  # how far the mean without the cluster is off
    return divide(number - 1.0, number, xp.nan) * (without**2).sum(-1)


def sums_by_cluster(values: Array, numbers: Array, size: int) -> Array:
    """Add up values `(..., n)` by the number of their cluster, `(..., size)`."""
    values, numbers = xp.broadcast_arrays(values, numbers)
    *batch, n = values.shape
    rows = values.reshape((-1, n))
    first = size * xp.arange(len(rows))[:, None]  # number of a batch entry
    place = (numbers.reshape(rows.shape) + first).ravel()
    if on_device(rows, place):
        sums = sum_by_cell(place, rows.ravel(), size * len(rows), n)
    else:
        sums = np.bincount(place, rows.ravel(), minlength=size * len(rows))
    return sums.reshape((*batch, size))


def fewest_clusters(numbers: Array, size: int, counted: Array) -> int:
    """Return of how many clusters examples count, in that batch entry where they are fewest."""
    number = (sums_by_cluster(counted, numbers, size) > 0).sum(-1)
    return int(number[number > 0].min(initial=size))
