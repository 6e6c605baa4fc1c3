"""Bins on the line: rising edges, and histograms of scores."""

from __future__ import annotations

from jaxmetrics._compilation import compiled
from jaxmetrics._meshes import varying_alike
from jaxmetrics._namespaces import Array, is_known, xp
from jaxmetrics._validation import ArrayLike, as_float

__all__: list[str] = []


def as_edges(edges: ArrayLike) -> Array:
    """The edges between B bins, rising."""
    cuts = as_float(edges, "edges")
    if cuts.ndim != 1 or cuts.size == 0:
        raise ValueError(
            f"edges must have shape (B - 1,) the edges between B bins, got {cuts.shape}."
        )
    if is_known(cuts) and not bool((cuts[1:] >= cuts[:-1]).all() & ~xp.isnan(cuts).any()):
        raise ValueError("edges must rise.")
    return cuts


@compiled
def bins_between(edges: Array, x: Array) -> Array:
    """How many of the rising edges each number reaches, `edge <= x`; -1 for NaN."""
    edges, x = varying_alike(edges, x)
    reached = xp.searchsorted(edges, x, side="right", method="scan_unrolled")
    return xp.where(xp.isnan(x), -1, reached.astype(xp.int32))


def as_histogram(histogram: ArrayLike) -> Array:
    """Numbers of negatives and positives in each bin, `(..., 2, B)`, as floats."""
    array = as_float(histogram, "histogram")
    if array.ndim < 2 or array.shape[-2] != 2 or array.shape[-1] == 0:
        raise ValueError(
            "histogram must have shape (..., 2, B), as score_histogram returns it, got"
            f" {array.shape}."
        )
    return array
