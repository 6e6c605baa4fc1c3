"""Sums of weights, probabilities and labels in each bin of probability, for data in batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from jaxmetrics._arguments.example_arguments import (
    Argument,
    Examples,
    as_numbers,
    as_probabilities,
    binary_examples,
)
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_float,
    check_option,
    check_samples,
    is_integer,
    non_negative,
)
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jnp
from jaxmetrics._places.meshes import varying_alike
from jaxmetrics._places.namespaces import Array, lax, on_device, xp
from jaxmetrics._sums.bin_edges import as_edges, refuse_options
from jaxmetrics._sums.counting import count
from jaxmetrics.clusters import clusters_of_examples
from jaxmetrics.scoring.rows import is_probability, weights_of

__all__ = ["calibration_bins"]

Strategy = Literal["uniform", "quantile", "isotonic"]


def calibration_bins(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_bins: int = 15,
    edges: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the sums of weights, probabilities and labels in each bin of predicted probability.

    Use this function if your data do not fit in memory: add the results of all batches. Pass the
    total to `calibration_error`, `calibration_curve` or `calibration_interval` instead of labels
    and probabilities. A bin includes its upper edge but not its lower edge. The first bin also
    includes 0. Probabilities and edges are compared in float32.

    Args:
        y_true: 0 or 1 (or bool), of shape `(..., n)`. Examples with a negative label are ignored.
        y_prob: predicted probabilities of class 1, of shape `(..., n)`.
        num_bins: number of bins B of equal width in [0, 1]. Not used if `edges` is given.
        edges: the B - 1 inner edges of the bins, without 0 and 1, in increasing order.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        Sums of weights, probabilities and labels in each bin, floats of shape `(..., B, 3)`. If a
        JAX array contains an invalid probability, all sums are NaN.

    >>> calibration_bins([0, 1, 1, 1], [0.25, 0.75, 1.0, 0.5], num_bins=2)
    array([[2.  , 0.75, 1.  ],
           [2.  , 1.75, 2.  ]])
    >>> calibration_bins([0, 1, 1, 1], [0.25, 0.75, 1.0, 0.5], edges=[0.25, 0.75])[..., 0]
    array([1., 2., 1.])
    """
    inner = _uniform_edges(num_bins) if edges is None else as_edges(edges).astype(np.float32)
    return sums_by_bin(as_examples(y_true, y_prob, sample_weight, where), inner)


def as_examples(
    y_true: ArrayLike, y_prob: ArrayLike, sample_weight: ArrayLike | None, where: ArrayLike | None
) -> Examples:
    """Check labels 0 and 1 and probabilities of class 1, and return them as examples."""
    return binary_examples(y_true, y_prob, sample_weight, where, as_probabilities, name="y_prob")


def _uniform_edges(num_bins: int) -> np.ndarray:
    edges = np.linspace(0, 1, check_samples(num_bins, "num_bins") + 1)[1:-1]
    return edges.astype(np.float32)


def edges_of(examples: Examples, num_bins: int, strategy: str | None) -> Array:
    check_option("uniform" if strategy is None else strategy, "strategy", ("uniform", "quantile"))
    if strategy == "quantile":
        return _quantile_edges(examples, num_bins=check_samples(num_bins, "num_bins"))
    return _uniform_edges(num_bins)


@compiled
def _quantile_edges(examples: Examples, *, num_bins: int) -> Array:
    """Return the quantiles j / B of the probabilities, which are the B - 1 edges between bins.

    Let all examples be sorted by probability and repeated according to their weights. If weights
    are below 1, all are divided by the smallest, so that each example is at least one row. Of W
    rows, edge j is the probability in row `floor((W - 1) j / B)`, counted from 0. Linearly
    interpolated quantiles give the same bins, because they are between this row and the next one.
    """
    p, w = xp.broadcast_arrays(
        lax.stop_gradient(examples.values), lax.stop_gradient(weights_of(examples))
    )
    if p.shape[-1] == 0:
        return xp.zeros((*p.shape[:-1], num_bins - 1), p.dtype)
    counts = w > 0
    sorted_p, j = xp.where(counts, p, xp.inf), xp.arange(1, num_bins)
    num_examples = counts.sum(-1, keepdims=True, dtype=xp.int32)
    if examples.weights is None:
        sorted_p = xp.sort(sorted_p, -1)
        row_of_edge = _quantile_rows(num_examples, j, num_bins)
    else:
        sorted_p, w = lax.sort((sorted_p, _rows_of_weights(w, counts)), num_keys=1)
        # A cumulative sum that is added pairwise may decrease by rounding, so we take its maximum.
        rows_up_to = lax.cummax(xp.cumsum(w, -1), w.ndim - 1)
        rows = _quantile_rows(rows_up_to[..., -1:], j, num_bins)
        row_of_edge = positions(rows_up_to, rows, side="right", method="scan")
    last = xp.maximum(num_examples - 1, 0)
    return xp.take_along_axis(sorted_p, xp.clip(row_of_edge, 0, last).astype(xp.int32), -1)


def _rows_of_weights(w: Array, counts: Array) -> Array:
    """Divide weights by the smallest positive weight if it is below 1; ratios that are integers up
    to rounding in float32 become integers.
    """
    rows = divide(w, xp.where(counts, w, 1).min(-1, keepdims=True, initial=1))
    whole = xp.round(rows)
    is_whole = xp.abs(rows - whole) <= 8 * np.finfo(np.float32).eps * whole
    return xp.where(counts, xp.where(is_whole, whole, rows), 0)


def _quantile_rows(num_rows: Array, j: Array, num_bins: int) -> Array:
    """Compute `floor((W - 1) j / B)` exactly, without overflow of int32."""
    whole = (num_rows - 1) // num_bins
    remainder = (num_rows - 1) - whole * num_bins
    product = remainder * j
    part = product // num_bins
    if is_integer(product):
        # With more than 46,341 bins these products overflow int32, but their small difference is
        # still correct.
        near = (remainder * (j / num_bins)).astype(product.dtype)
        part = near + (product - near * num_bins) // num_bins
    return xp.maximum(whole * j + part, 0)


def positions(ordered: Array, x: Array, **options: Any) -> Array:
    """Return the positions of numbers `(..., n)` among sorted numbers `(..., b)`, by
    `searchsorted`.
    """
    search: Callable[..., Array] = partial(xp.searchsorted, **options)
    if ordered.ndim == 1 and not on_device(ordered, x):
        return search(ordered, x)
    vectorize = jnp.vectorize if on_device(ordered, x) else partial(np.vectorize, otypes=[np.int64])
    return vectorize(search, signature="(b),(n)->(n)")(ordered, x)


@compiled
def sums_by_bin(
    examples: Examples, edges: Array, numbers: Array | None = None, *, num_clusters: int = 0
) -> Array:
    """Compute `calibration_bins` with edges `(..., B - 1)`. With clusters, the sums of each cluster
    are returned, `(..., C, B, 3)`.

    Probabilities are converted to the dtype of the edges before they are compared.
    """
    ids, p, *_ = examples
    p = xp.where(is_probability(p), xp.clip(p, 0, 1), xp.nan)
    rounded = varying_alike(edges, p.astype(edges.dtype))
    place = positions(*rounded, side="left", method="scan_unrolled")
    bin_ids = xp.where(xp.isnan(p), 0, place.astype(xp.int32))
    # For each bin and label, examples add [1, p] times their weight to the sums.
    axes = [("y_prob", bin_ids, edges.shape[-1] + 1), ("y_true", ids, 2)]
    if numbers is not None:
        axes = [("clusters", numbers, num_clusters), *axes]
    rows = Argument(xp.stack([xp.ones_like(p), p], -1), "y_prob", as_numbers, axes=1)
    sums = count(axes, weights_of(examples), None, rows=rows, refuse_columns=False)
    bins = xp.stack([sums[..., 0].sum(-1), sums[..., 1].sum(-1), sums[..., 1, 0]], -1)
    return xp.where(xp.isnan(bins).any((-2, -1), keepdims=True), xp.nan, bins)


def bins_of(y_true: ArrayLike, y_prob: ArrayLike | None, *, default: int, **options: Any) -> Array:
    """Compute the bins of examples. If `y_prob` is None, `y_true` are the bins.

    Args:
        default: number of bins if `options` has no `num_bins`.
        options: `num_bins`, `strategy`, `sample_weight`, `where`, and `clusters` if supported. If
            `squares` is True, the squares of the weights are added up, in the same bins.

    Returns:
        Sums of shape `(..., B, 3)`, or `(..., C, B, 3)` for C clusters.
    """
    squares = options.pop("squares", False)
    if y_prob is None:
        refuse_options("y_prob", "calibration_bins", **options)
        sums = as_float(y_true, "y_true")
        if sums.ndim < 2 or sums.shape[-1] != 3 or sums.shape[-2] == 0:
            raise ValueError(
                "If y_prob is not given, y_true must contain the bins that calibration_bins"
                f" returns, which have the shape (..., B, 3), got shape {sums.shape}."
            )
        return non_negative(sums, "y_true")
    examples = as_examples(y_true, y_prob, options["sample_weight"], options["where"])
    num_bins, clusters = options["num_bins"], options.get("clusters")
    edges = edges_of(examples, default if num_bins is None else num_bins, options["strategy"])
    if squares and examples.weights is not None:
        examples = examples._replace(weights=examples.weights**2)
    if clusters is None:
        return sums_by_bin(examples, edges)
    shape = np.broadcast_shapes(examples.ids.shape, examples.values.shape)
    numbers, size = clusters_of_examples(clusters, examples.amounts, shape)
    return sums_by_bin(examples, edges, numbers, num_clusters=size)
