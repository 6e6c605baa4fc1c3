"""Histograms of scores per class, which add up over batches and devices, and bounds of areas.

The order of a positive and a negative in different bins is known; only the order of pairs within a
bin is unknown. So the histogram determines two bounds of the exact area. They are close if the bins
are fine where the scores lie; the scales are designed for scores that pile up near 0 or 1.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._bins import as_edges, bins_between
from jaxmetrics._compilation import compiled
from jaxmetrics._counting import count
from jaxmetrics._examples import PROBABILITIES, SCORES, binary_examples
from jaxmetrics._namespaces import Array, lax, xp
from jaxmetrics._validation import ArrayLike, as_float, check_option, check_size

__all__ = ["AreaBounds", "score_histogram"]


_LEAST_NORMAL = np.finfo(np.float32).tiny


class AreaBounds(NamedTuple):
    """Bounds of the exact area under a curve, as `roc_auc` computes them from a histogram.

    Attributes:
        value: the area if scores within a bin are ties, `(...)`.
        low, high: the least and the greatest area of any scores in these bins, `(...)`.
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
    """Compute the histogram of scores of each class, to add up over batches.

    `roc_auc` and `average_precision` accept the sum of the histograms of all batches instead of
    examples. The bins rise with the score. One of these must say how they are spaced, because
    scores are never reinterpreted:

    - `scale="probability"`: finer towards 0 and 1: 64 octaves (powers of two), for p from 2^-41 to
    1/2 and for 1 - p from 1/2 to 2^-25, each divided into `num_bins / 64` bins.
    - `scale="logit"`: equally spaced, from -32 to 32.
    - `scale="float"`: the leading bits of a float32, for any real number: 4096 bins halve the range
      eight times per octave.
    - `edges` `(B - 1,)`, increasing: the boundaries of B bins (a score on an edge is in the upper
      bin), such as the quantiles `np.quantile(scores_of_a_batch, np.linspace(0, 1, B + 1)[1:-1])`.
      Slower than a scale, because each score is searched.

    Scores beyond the outermost bins belong to them; NumPy probabilities must lie in [0, 1]. With a
    scale, scores are rounded to float32 first, on NumPy and JAX alike; edges are rounded to float32
    unless the scores are float64.

    Args:
        y_true, y_score: 0 or 1, and scores, `(..., n)`; NaN scores in JAX arrays drop their
            examples.
        scale, edges: the spacing of the bins, see above.
        num_bins: number of bins B, static, a power of two from 64 to 2^16, unless `edges` are
            given.
        sample_weight: weight of each example, `(..., n)`.
        where: bool, `(..., n)`; False leaves the example out.
        groups: group ids `(..., n)` from 0 to G - 1; other ids drop their examples.
        num_groups: number of groups G, static; needed with groups in JAX arrays.

    Returns:
        Counts `(..., 2, B)`, with groups `(..., G, 2, B)`, negatives before positives; integers, or
        floats with `sample_weight`.

    >>> histogram = score_histogram([0, 1, 0, 1], [0.001, 0.4, 0.4, 0.99999], scale="probability")
    >>> from jaxmetrics import roc_auc
    >>> histogram.shape, roc_auc(histogram)
    ((2, 4096), AreaBounds(value=np.float64(0.875), low=np.float64(0.75), high=np.float64(1.0)))
    """
    if (scale is None) == (edges is None):
        raise ValueError(
            'give the spacing of the bins: scale="probability", "logit" or "float", or edges.'
        )
    if scale is not None:
        check_option(scale, "scale", tuple(_BINS))
    kind = PROBABILITIES if scale == "probability" else SCORES
    examples = binary_examples(y_true, y_score, sample_weight, where, kind, name="y_score")
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
    """Number the bins of scores, rounded to float32, on one of the scales; -1 for NaN.

    Subnormal numbers count as 0, as on most devices.
    """
    score = score.astype(xp.float32)
    score = xp.where(xp.abs(score) < _LEAST_NORMAL, np.float32(0), score)
    bins = xp.clip(_BINS[scale](score, size), 0, size - 1)
    return xp.where(xp.isnan(score), -1, bins)


# The scales, from scores to bin numbers. Each is monotone to the last bit, which the bounds
# require: they use bits, 1 - p and products with powers of two, no logarithm.


def _by_octaves(p: Array, size: int) -> Array:
    """Number the `size / 64` parts of each octave from 2^-41 to 1/2, and of 1 - p likewise.

    The bits of a positive float32 are its exponent before the 23 bits of its mantissa: without the
    lowest of these they number the parts of octaves.
    """
    shift = 23 - (size // 64).bit_length() + 1

    def parts_above(lowest: float, x: Array) -> Array:
        least = np.float32(lowest)
        return (_bits(xp.maximum(x, least)) - _bits(least)) >> shift

    return xp.where(p < 0.5, parts_above(2.0**-41, p), size - 1 - parts_above(2.0**-25, 1 - p))


def _evenly(logit: Array, size: int) -> Array:
    # A sum with 32 would be rounded, possibly across an edge; a product with a power of two is
    # exact.
    return xp.floor(xp.clip(logit, -32, 32) * (size / 64)).astype(xp.int32) + size // 2


def _by_leading_bits(score: Array, size: int) -> Array:
    bits = _bits(score)
    rising = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # the bits of negative floats decrease: invert them
    return (rising >> (33 - size.bit_length())) + size // 2


def _bits(x: Array) -> Array:
    return lax.bitcast_convert_type(x, xp.int32)


_BINS = {"probability": _by_octaves, "logit": _evenly, "float": _by_leading_bits}


@compiled
def roc_auc_bounds(histogram: Array) -> AreaBounds:
    """Bound the area under the ROC curve; see `roc_auc`."""
    q, p = (divide(x, x.sum(-1)[..., None], xp.nan) for x in _classes(histogram))
    in_order, in_same_bin = (q * _above(p)).sum(-1), (q * p).sum(-1)
    return _between(in_order, in_order + in_same_bin)


@compiled
def average_precision_bounds(histogram: Array) -> AreaBounds:
    """Bound the average precision; see `average_precision`."""
    n, p = _classes(histogram)
    tp, fp = _above(p), _above(n)
    f = fp + n
    best = p * divide(tp + p, tp + p + fp)
    worst = p - f * xp.log1p(divide(p, tp + f))
    num_pos = p.sum(-1)
    return _between(*(divide(x.sum(-1), num_pos, xp.nan) for x in (worst, best)))


def _classes(histogram: Array) -> tuple[Array, Array]:
    return histogram[..., 0, :], histogram[..., 1, :]


def _above(x: Array) -> Array:
    """Add up all higher bins.

    Without a subtraction, which would cancel beside a full bin.
    """
    higher = xp.concatenate([x[..., 1:], xp.zeros_like(x[..., :1])], -1)
    return lax.cumsum(higher, x.ndim - 1, reverse=True)


def _between(low: Array, high: Array) -> AreaBounds:
    """Widen bounds by the possible rounding error, 2e-6 in float32."""
    slack = 16 * float(np.finfo(low.dtype).eps)
    return AreaBounds((low + high) / 2, xp.clip(low - slack, 0, 1), xp.clip(high + slack, 0, 1))
