"""Histograms of scores for data in batches, and bounds of areas under curves computed from them.

A histogram tells which of two scores is greater if they are in different bins, but not if they are
in the same bin. Therefore a histogram determines only a lower and an upper bound of the exact area.
The bounds are close together if bins are narrow where there are many scores. The scale
"probability" is for classifiers that give many scores near 0 or 1.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from jaxmetrics._arguments.example_arguments import as_probabilities, as_scores, binary_examples
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import ArrayLike, as_float, check_option, check_size
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, Arrays, lax, xp
from jaxmetrics._sums.bin_edges import as_edges, bins_between
from jaxmetrics._sums.counting import count

__all__ = ["AreaBounds", "score_histogram"]


_LEAST_NORMAL = np.finfo(np.float32).tiny


class AreaBounds(NamedTuple):
    """Bounds of the area under a curve, as `roc_auc` computes them from a histogram.

    Attributes:
        value: the mean of both bounds, of shape `(...)`. For ROC AUC, this is the area if all
            scores in the same bin are equal.
        low, high: lower and upper bound of the area of the scores in these bins, of shape `(...)`.
    """

    value: Array
    low: Array
    high: Array


def score_histogram(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    scale: Literal["probability", "logit", "float"] | None = None,
    edges: ArrayLike | None = None,
    num_bins: int = 4096,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    num_groups: int | None = None,
) -> Array:
    """Compute a histogram of the scores of each class; the histograms of batches can be added.

    Use histograms if your data do not fit in memory. Pass the sum of the histograms of all batches
    to `roc_auc` or `average_precision`. The bins are defined by one of these options:

    - `scale="probability"`: bins for probabilities, which are narrower near 0 and 1. There are
      `num_bins / 64` bins between each power of 2 and the next, from 2^-41 to 1/2. Above 1/2, these
      are the bins of 1 - p, which ends at 2^-25.
    - `scale="logit"`: bins of equal width from -32 to 32.
    - `scale="float"`: bins for any real numbers, defined by the leading bits of a float32. With
      4096 bins, there are eight bins between each power of 2 and the next.
    - `edges=`: B - 1 increasing boundaries of B bins, such as the quantiles
      `np.quantile(scores_of_a_batch, np.linspace(0, 1, B + 1)[1:-1])`. A score equal to a boundary
      is in the upper bin. This option is slower than `scale`.

    A score below the first bin is counted in the first bin, and a score above the last bin in the
    last bin. If `scale` is given, scores are rounded to float32. If scores are float32, `edges` are
    rounded to float32.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(..., n)`. For
            `scale="probability"`, NumPy scores must be in [0, 1]. NaN scores in JAX arrays are
            ignored.
        scale, edges: definition of the bins, as described above.
        num_bins: number of bins B, a power of two from 64 to 2^16. Not used if `edges` is given.
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.
        groups: group id of each example, from 0 to G - 1, of shape `(..., n)`. Examples with other
            ids are ignored.
        num_groups: number of groups G. It is required if `groups` is a JAX array.

    Returns:
        Counts of shape `(..., 2, B)`, or `(..., G, 2, B)` with groups: the histogram of negatives,
        then the histogram of positives. Counts are integers, or floats if `sample_weight` is given.

    >>> histogram = score_histogram([0, 1, 0, 1], [0.001, 0.4, 0.4, 0.99999], scale="probability")
    >>> from jaxmetrics import roc_auc
    >>> histogram.shape, roc_auc(histogram)
    ((2, 4096), AreaBounds(value=np.float64(0.875), low=np.float64(0.75), high=np.float64(1.0)))
    """
    check_order(
        y_true=y_true, y_score=y_score, sample_weight=sample_weight, where=where, groups=groups
    )
    if (scale is None) == (edges is None):
        raise ValueError(
            'The bins are not defined. Pass scale="probability", scale="logit" or'
            ' scale="float", or pass the edges between the bins as edges.'
        )
    if scale is not None:
        check_option(scale, "scale", tuple(_BINS))
    read = as_probabilities if scale == "probability" else as_scores
    examples = binary_examples(y_true, y_score, sample_weight, where, read, name="y_score")
    if scale is None:
        assert edges is not None
        inner_edges = as_edges(edges)
        size, bins = inner_edges.size + 1, bins_between(inner_edges, examples.values)
    else:
        size = check_num_bins(num_bins)
        bins = score_bins(as_float(examples.values, "y_score"), scale=scale, size=size)
    axes = [("y_true", examples.ids, 2), ("y_score", bins, size)]
    return count(axes, examples.weights, examples.mask, groups, num_groups, refuse_columns=False)


def check_num_bins(num_bins: int) -> int:
    size = check_size(num_bins, "num_bins")
    if not 64 <= size <= 2**16 or size & (size - 1):
        raise ValueError(f"num_bins must be a power of two from 64 to 65536, got {num_bins}.")
    return size


@compiled
def score_bins(score: Array, *, scale: str, size: int) -> Array:
    """Return the bin number of each score, rounded to float32, for one of the scales; -1 for NaN.

    Subnormal numbers are treated as 0, because most accelerators do the same.
    """
    score = score.astype(xp.float32)
    score = xp.where(xp.abs(score) < _LEAST_NORMAL, np.float32(0), score)
    bins = xp.clip(_BINS[scale](score, size), 0, size - 1)
    return xp.where(xp.isnan(score), -1, bins)


# Functions from scores to bin numbers. The bounds of areas require that they are monotone to the
# last bit, so they use the bits of scores, 1 - p and products with powers of two, but no logarithm.


def _by_octaves(p: Array, size: int) -> Array:
    """Return the bin numbers for `size / 64` bins per octave of p below 1/2 and of 1 - p above 1/2.

    The bits of a positive float32 are its exponent, followed by the 23 bits of its mantissa.
    Without the lowest bits of the mantissa they are the number of the bin.
    """
    shift = 23 - (size // 64).bit_length() + 1

    def parts_above(lowest: float, x: Array) -> Array:
        least = np.float32(lowest)
        return (_bits(xp.maximum(x, least)) - _bits(least)) >> shift

    return xp.where(p < 0.5, parts_above(2.0**-41, p), size - 1 - parts_above(2.0**-25, 1 - p))


def _evenly(logit: Array, size: int) -> Array:
    # The sum of a score and 32 would be rounded, possibly to another bin; a product with a power of
    # two is exact.
    return xp.floor(xp.clip(logit, -32, 32) * (size / 64)).astype(xp.int32) + size // 2


def _by_leading_bits(score: Array, size: int) -> Array:
    bits = _bits(score)
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # bits of negatives decrease
    return (rising >> (33 - size.bit_length())) + size // 2


def _bits(x: Array) -> Array:
    return lax.bitcast_convert_type(x, xp.int32)


_BINS = {"probability": _by_octaves, "logit": _evenly, "float": _by_leading_bits}


@compiled
def roc_auc_bounds(histogram: Array) -> AreaBounds:
    """Compute bounds of the area under the ROC curve; see `roc_auc`."""
    q, p = (divide(x, x.sum(-1)[..., None], xp.nan) for x in _classes(histogram))
    in_order, in_same_bin = (q * _above(p)).sum(-1), (q * p).sum(-1)
    return _between(in_order, in_order + in_same_bin)


@compiled
def average_precision_bounds(histogram: Array) -> AreaBounds:
    """Compute bounds of average precision; see `average_precision`."""
    n, p = _classes(histogram)
    tp, fp = _above(p), _above(n)
    f = fp + n
    best = p * divide(tp + p, tp + p + fp)
    worst = p - f * xp.log1p(divide(p, tp + f))
    num_pos = p.sum(-1)
    return _between(*(divide(x.sum(-1), num_pos, xp.nan) for x in (worst, best)))


def _classes(histogram: Array) -> Arrays:
    return histogram[..., 0, :], histogram[..., 1, :]


def _above(x: Array) -> Array:
    """Return for each bin the sum of all higher bins.

    Subtraction from the total is avoided, because it would cancel next to a bin with a large count.
    """
    higher = xp.concatenate([x[..., 1:], xp.zeros_like(x[..., :1])], -1)
    return lax.cumsum(higher, x.ndim - 1, reverse=True)


def _between(low: Array, high: Array) -> AreaBounds:
    """Widen the bounds by the greatest possible rounding error, 2e-6 in float32."""
    slack = 16 * float(np.finfo(low.dtype).eps)
    return AreaBounds((low + high) / 2, xp.clip(low - slack, 0, 1), xp.clip(high + slack, 0, 1))
