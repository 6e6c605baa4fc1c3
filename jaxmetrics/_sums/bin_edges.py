"""Bins: check edges and histograms, and find the bins of numbers.

NumPy and JAX must put a number into the same bin, so that states can be added. Therefore, NumPy
also rounds the edges to float32 if the numbers are float32 or narrower.
"""

from __future__ import annotations

import numpy as np

from jaxmetrics._arguments.single import ArrayLike, as_float, non_negative
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.meshes import varying_alike
from jaxmetrics._places.namespaces import Array, float_dtype, is_known, xp

__all__: list[str] = []


def as_edges(edges: ArrayLike) -> Array:
    """Check the edges between B bins, `(B - 1,)`, which must be increasing."""
    array = as_float(edges, "edges")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            "edges must be an array of shape (B - 1,), which contains the edges between B bins,"
            f" but its shape is {array.shape}."
        )
    if is_known(array) and not bool((array[1:] >= array[:-1]).all() & ~xp.isnan(array).any()):
        raise ValueError("edges must be increasing.")
    return array


@compiled
def bins_between(edges: Array, x: Array) -> Array:
    """Return the bin of each number x, which is the number of edges <= x; the bin of NaN is -1.

    The dtype of `x` determines the rounding of the edges.
    """
    is_narrow = xp.issubdtype(x.dtype, xp.floating) and x.dtype.itemsize <= 4
    # Edges of float64 are not rounded and widened again, because XLA would leave out both.
    dtype = np.float32 if is_narrow else float_dtype(edges, x)
    edges, x = varying_alike(*(a.astype(dtype) for a in (edges, x)))
    reached = xp.searchsorted(edges, x, side="right", method="scan_unrolled")
    return xp.where(xp.isnan(x), -1, reached.astype(xp.int32))


def refuse_options(second: str, made_by: str, **options: object) -> None:
    """Raise an error if options of examples are given, but `y_true` is a histogram or bins."""
    passed = [name for name, x in options.items() if x is not None]
    if passed:
        raise TypeError(
            f"{', '.join(passed)} may only be passed together with both labels and predictions, as"
            f" in (y_true, {second}). Without {second}, the first argument y_true is the result of"
            f" {made_by}: pass {', '.join(passed)} to that function instead."
        )


def as_histogram(histogram: ArrayLike, name: str = "histogram") -> Array:
    """Check a histogram of negatives and positives, `(..., 2, B)`, and convert it to floats."""
    array = as_float(histogram, name)
    if array.ndim < 2 or array.shape[-2] != 2 or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (..., 2, B), which is the shape of a result of"
            f" score_histogram, got {array.shape}."
        )
    return non_negative(array, "histogram")
