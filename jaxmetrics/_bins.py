"""Check and search what divides numbers into bins: rising edges, and histograms of scores.

A number must be in the same bin wherever it is counted, so that states of the host, of devices and
of tables add up. Therefore the edges of float32 numbers, and of narrower ones, are rounded to
float32 on the host too, as they are on a device.
"""

from __future__ import annotations

import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._meshes import varying_alike
from jaxmetrics._namespaces import Array, float_dtype, is_known, xp
from jaxmetrics._validation import ArrayLike, as_float

__all__: list[str] = []


def as_edges(edges: ArrayLike) -> Array:
    """Check the edges between B bins: `(B - 1,)`, rising."""
    array = as_float(edges, "edges")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"edges must have shape (B - 1,), the edges between B bins, got {array.shape}."
        )
    if is_known(array) and not bool((array[1:] >= array[:-1]).all() & ~xp.isnan(array).any()):
        raise ValueError("edges must be increasing.")
    return array


@compiled
def bins_between(edges: Array, x: Array) -> Array:
    """Count how many of the rising edges each number reaches, `edge <= x`; -1 for NaN.

    `x` comes in its own dtype, which says how far edges are rounded.
    """
    if xp.issubdtype(x.dtype, xp.floating) and x.dtype.itemsize <= 4:
        edges = edges.astype(np.float32)
    edges, x = varying_alike(*(a.astype(float_dtype(edges, x)) for a in (edges, x)))
    reached = xp.searchsorted(edges, x, side="right", method="scan_unrolled")
    return xp.where(xp.isnan(x), -1, reached.astype(xp.int32))


def refuse_options(second: str, made_by: str, **options: object) -> None:
    """Refuse options of examples where `y_true` holds what was added up of them."""
    given = [name for name, x in options.items() if x is not None]
    if given:
        raise TypeError(
            f"{', '.join(given)} may only be given with examples (y_true, {second}): y_true"
            f" without {second} is the result of {made_by}, which takes such options."
        )


def as_histogram(histogram: ArrayLike, name: str = "histogram") -> Array:
    """Check numbers of negatives and positives in each bin, `(..., 2, B)`, and make them floats."""
    array = as_float(histogram, name)
    if array.ndim < 2 or array.shape[-2] != 2 or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (..., 2, B), as score_histogram returns it, got {array.shape}."
        )
    return array
