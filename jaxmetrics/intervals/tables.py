"""Check the tables of counts to draw from, and the metrics to be estimated."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxmetrics._arithmetic import append_axes
from jaxmetrics._namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics._validation import ArrayLike, as_counts, check_size, refuse_where
from jaxmetrics.estimates import Estimate, Metric

__all__: list[str] = []

_TOO_MANY = 2.0**31


def as_floats(metric: Metric) -> Metric:
    """Return the metric with results in the computing dtype."""
    if not callable(metric):
        raise TypeError(
            f"metric must be a function of counts, got {type(metric).__name__}; for several at"
            " once, one that returns a dict:"
            ' lambda counts: {"accuracy": jaxmetrics.accuracy(counts), ...}.'
        )

    def call(counts: Array) -> Any:
        values = jax.tree.map(_as_float, metric(read_only(counts)))
        if not jax.tree.leaves(values):
            raise ValueError(f"metric must return an array or a pytree of arrays, got {values!r}.")
        return values

    return call


def tables_of(metric: Metric, counts: ArrayLike, table_ndim: int) -> tuple[Metric, Array]:
    """Return counts as tables `(..., R, K)` whose rows are classes, or classes of groups, and the
    metric as a function of one, with results in the computing dtype.
    """
    floats, tables = as_floats(metric), as_counts(counts)
    if table_ndim == 2:
        return floats, tables
    if table_ndim != 3 or tables.ndim < 3:
        raise ValueError(
            "table_ndim must be 2, for a metric of counts (K, K), or 3, for one of groups (G, K,"
            f" K), got {table_ndim} and counts of shape {tables.shape}."
        )
    *batch, groups, k, _ = tables.shape

    def of_groups(table: Array) -> Any:
        return floats(table.reshape((*table.shape[:-2], groups, k, k)))

    return of_groups, tables.reshape((*batch, groups * k, k))


def axis_of_tables(cluster_axis: int, table_ndim: int) -> int:
    """Return the axis of clusters where the axes of a table have become two."""
    return cluster_axis + table_ndim - 2 if cluster_axis < 0 else cluster_axis


def read_only(x: Array) -> Array:
    """Return a view of a NumPy array in which a user's function cannot write."""
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x


def _as_float(x: Any) -> Array:
    if is_jax(x):
        return x.astype(float_dtype(x))
    array = np.asarray(x)
    return array if array.dtype == np.complex128 else array.astype(float)  # complex: derivatives


def where_answered(metric: Metric, tables: Array, example: np.ndarray | None = None) -> Array:
    """Move tables of the host to the device if the metric returns arrays of the device.

    This is tried on the example, or else on the first of the tables.
    """
    if on_device(tables):
        return tables
    if example is None and tables.size:
        example = tables.reshape((-1, *tables.shape[-2:]))[0]
    elif example is None:
        example = np.ones(tables.shape[-2:])
    try:
        moves = on_device(metric(example))
    except AttributeError:  # such as .at, which arrays of JAX have alone
        moves = True
    return jax.numpy.asarray(tables, float_dtype()) if moves else tables


def check_not_stratified(stratified: bool) -> None:
    if stratified:
        raise ValueError("clusters are drawn whole: the totals of rows cannot be fixed as well.")


def check_num_samples(num_samples: int) -> int:
    if check_size(num_samples, "num_samples") < 2:
        raise ValueError("num_samples must be at least 2.")
    return num_samples


def frequencies(counts: Array, name: str = "counts", *, table_ndim: int = 2) -> Array:
    """Check counts or sums of weights, in tables of so many axes.

    A table with a negative one raises, or becomes NaN where jit hides it.
    """
    axes = tuple(range(-table_ndim, 0))
    seen = _seen(counts)
    if seen is not None:
        refuse_where(~(seen >= 0), seen, name, "expected a count >= 0.")
        return counts
    return xp.where((counts >= 0).all(axes, keepdims=True), counts, xp.nan)


def numbers_of_examples(
    counts: Array, name: str = "counts", *, table_ndim: int = 2, most: float = _TOO_MANY
) -> Array:
    """Check counts as `frequencies` does, and that they are whole numbers, below `most` in all."""
    axes = tuple(range(-table_ndim, 0))
    seen = _seen(counts)
    if seen is None:
        valid = (counts >= 0) & (counts == xp.round(counts))
        few = counts.sum(axes, keepdims=True) < most
        return xp.where(valid.all(axes, keepdims=True) & few, counts, xp.nan)
    valid = (seen >= 0) & (seen == np.round(seen)) & (seen < np.inf)
    refuse_where(
        ~valid,
        seen,
        name,
        "expected a number of examples, since sums of weights do not say how many there are.",
    )
    if (seen.sum(axes) >= most).any():
        raise ValueError(
            f"{name} holds 2^31 examples or more for one estimate: derivatives and posteriors have"
            " no such limit."
        )
    return counts


def _seen(x: Array) -> np.ndarray | None:
    """Return the values of an array, also where derivatives are taken; None if jit hides them."""
    try:
        return np.asarray(x if is_known(x) else lax.stop_gradient(x))
    except jax.errors.TracerArrayConversionError:
        return None


def is_possible(counts: Array) -> Array:
    return (counts >= 0).all((-2, -1))


def nan_unless(possible: Array, estimates: Any) -> Any:
    """Replace by NaN the estimates of those matrices of a batch that have no interval."""

    def mask(x: Array) -> Array:
        if x.dtype == xp.int32:  # the number of undefined replicates
            return x
        return xp.where(append_axes(possible, x.ndim - possible.ndim), x, xp.nan)

    return jax.tree.map(mask, estimates)


def check_finite(estimates: Any, size: int) -> Any:
    leaves = jax.tree.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate))
    undefined = [leaf.num_undefined for leaf in leaves if isinstance(leaf, Estimate)]
    known = all(map(is_known, undefined))
    if known and undefined and all(n.size and bool((n == size).all()) for n in undefined):
        raise ValueError(
            f"metric is NaN or infinite in all of {size} replicates: it has no interval."
        )
    return estimates
