"""Compute the calibration of the probability of one event, from sums by bin, which add up."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._applied import applied
from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._bins import as_edges
from jaxmetrics._compilation import compiled
from jaxmetrics._counting import count
from jaxmetrics._examples import (
    DISTRIBUTIONS,
    IGNORED,
    PROBABILITIES,
    Examples,
    binary_examples,
    class_examples,
)
from jaxmetrics._meshes import varying_alike
from jaxmetrics._namespaces import Array, float_dtype, lax, on_device, xp
from jaxmetrics._validation import ArrayLike, as_float, check_option, check_size
from jaxmetrics.estimates import Estimate, normal_quantile
from jaxmetrics.intervals.clusters import (
    fewest_clusters,
    jackknife_variance,
    kish_number,
    numbered_clusters,
    student_quantile,
    warn_if_few,
)
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.scoring.rows import at_class, is_probability, weighted_mean, weights_of

__all__ = [
    "BrierDecomposition",
    "CalibrationCurve",
    "binned_calibration_curve",
    "binned_calibration_error",
    "binned_calibration_interval",
    "brier_decomposition",
    "calibration_bins",
    "calibration_curve",
    "calibration_error",
    "calibration_interval",
    "top_label",
]

Norm = Literal["l1", "l2", "max"]
Strategy = Literal["uniform", "quantile"]


class CalibrationCurve(NamedTuple):
    """Mean probability, frequency of class 1 with its interval, and weight of each bin, `(..., B)`.

    NaN where a bin is empty.
    """

    mean_prob: Array
    frequency: Array
    low: Array
    high: Array
    weight: Array


class BrierDecomposition(NamedTuple):
    """Parts of the Brier score: `reliability - resolution + uncertainty`."""

    reliability: Array
    resolution: Array
    uncertainty: Array


def calibration_bins(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_bins: int = 15,
    edges: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Add up, by bin of probability, the weight, the probabilities and the truths.

    The sums of two batches, or devices, add up to those of all; `binned_calibration_error` and
    `binned_calibration_curve` take them from there. A bin holds what lies above its lower edge, up
    to and including its upper edge; 0 is in the first bin.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`.
        y_prob: the probability of class 1, `(..., n)`.
        num_bins: B, of equal width in [0, 1], unless `edges` are given.
        edges: `(B - 1,)` edges between the bins, rising, without 0 and 1, such as quantiles of a
            first batch.

    Returns:
        `(..., B, 3)`, float. On the device all NaN if a probability that counts is NaN or outside
        of [0, 1].

    Raises:
        TypeError: labels that are not integers.
        ValueError: shapes that do not fit; on the host, of examples that count, a label of 2 or
            more, -1 and 1 without a 0, a NaN weight, a probability that is NaN or outside of
            [0, 1].

    >>> calibration_bins([0, 1, 1, 1], [0.25, 0.75, 1.0, 0.5], num_bins=2)
    array([[2.  , 0.75, 1.  ],
           [2.  , 1.75, 2.  ]])
    >>> calibration_bins([0, 1, 1, 1], [0.25, 0.75, 1.0, 0.5], edges=[0.25, 0.75])[..., 0]
    array([1., 2., 1.])
    """
    examples = binary_examples(y_true, y_prob, sample_weight, where, PROBABILITIES, name="y_prob")
    if edges is None:
        return _sums(examples, _uniform_edges(examples, num_bins))
    return _sums(examples, as_edges(edges))


def calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_bins: int = 10,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> CalibrationCurve:
    """Compare, by bin, how often class 1 comes true with how probable it was (reliability diagram).

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`.
        y_prob: the probability of class 1, `(..., n)`.
        num_bins: B.
        strategy: `"uniform"`, bins of equal width as in `calibration_bins`; `"quantile"`, edges at
            the quantiles j / B of the probabilities, equal ones in one bin, so that bins may stay
            empty. Weights are numbers of examples: where they were normalised to a sum of 1,
            multiply them by n (else NaN).
        level: of Wilson's interval for the frequency, for which weights are numbers of examples,
            too.

    Returns:
        `CalibrationCurve`. Its bins with weight are those of scikit-learn's `calibration_curve`.

    Raises:
        TypeError, ValueError: as `calibration_bins`; an unknown strategy, an impossible level.

    >>> curve = calibration_curve([0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0], num_bins=2)
    >>> curve.mean_prob, curve.frequency, curve.low.round(2)
    (array([0.2916667, 1.       ]), array([0.3333333, 1.       ]),
     array([0.06, 0.21]))
    >>> y_true, y_prob = [0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0]
    >>> calibration_curve(y_true, y_prob, num_bins=2, strategy="quantile").mean_prob
    array([0.1875, 0.75  ])
    """
    examples = binary_examples(y_true, y_prob, sample_weight, where, PROBABILITIES, name="y_prob")
    bins = _sums(examples, _edges(examples, num_bins, strategy))
    return binned_calibration_curve(bins, level=level)


def binned_calibration_curve(bins: ArrayLike, *, level: float = 0.95) -> CalibrationCurve:
    """Compute `calibration_curve` from sums `(..., B, 3)` of `calibration_bins`.

    Raises:
        ValueError: bins of another shape, a level outside (0, 1).

    >>> binned_calibration_curve([[4.0, 0.5, 1.0], [0.0, 0.0, 0.0]]).frequency
    array([0.25,  nan])
    """
    return _curve(_as_bins(bins), normal_quantile(level))


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    norm: Norm = "l1",
    num_bins: int = 15,
    strategy: Strategy = "uniform",
    debiased: bool = False,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Measure the distance of probabilities from frequencies by bin, in [0, 1]; less is better.

    With the gap d_b = mean probability - frequency of class 1 in bin b, and w_b its share of the
    weight:

    - `"l1"`, expected calibration error: `sum_b w_b |d_b|`. Naeini, Cooper and Hauskrecht (2015),
      AAAI.
    - `"l2"`, root mean square: `sqrt(sum_b w_b d_b^2)`.
    - `"max"`: the greatest `|d_b|` of the bins with weight.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`. Of several classes: `top_label(calibration_error)`.
        y_prob: the probability of class 1, `(..., n)`.
        num_bins, strategy: as for `calibration_curve`.
        debiased: of few examples the error is too large, also of perfect forecasts; the interval of
            `calibration_interval` allows for that. With f_b the frequency in a bin of n_b examples
            (weights are numbers of examples), take `d_b^2 - f_b (1 - f_b) / (n_b - 1)` for d_b^2,
            and 0 if the sum is negative; a bin of one example stays as it is. Only for "l2". Kumar,
            Liang and Ma (2019), NeurIPS, section 5.

    Raises:
        TypeError, ValueError: as `calibration_bins`; an unknown norm or strategy, `debiased` with
            a norm other than "l2".

    >>> y_true, y_prob = [0, 1, 1, 1], [0.25, 0.75, 0.25, 1.0]
    >>> calibration_error(y_true, y_prob, num_bins=2)  # gaps of 1/4 and 1/8
    np.float64(0.1875)
    >>> calibration_error(y_true, y_prob, num_bins=2, norm="max")
    np.float64(0.25)
    """
    _check_norm(norm, debiased)
    examples = binary_examples(y_true, y_prob, sample_weight, where, PROBABILITIES, name="y_prob")
    bins = _sums(examples, _edges(examples, num_bins, strategy))
    return _error(bins, norm=norm, debiased=debiased)


def binned_calibration_error(
    bins: ArrayLike, *, norm: Norm = "l1", debiased: bool = False
) -> Array:
    """Compute `calibration_error` from sums `(..., B, 3)` of `calibration_bins`.

    Raises:
        ValueError: bins of another shape, an unknown norm, `debiased` with a norm other than "l2".

    >>> first = calibration_bins([0, 1], [0.25, 0.75], num_bins=2)
    >>> second = calibration_bins([1, 1], [0.25, 1.0], num_bins=2)
    >>> binned_calibration_error(first + second)
    np.float64(0.1875)
    """
    _check_norm(norm, debiased)
    return _error(_as_bins(bins), norm=norm, debiased=debiased)


def calibration_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_bins: int = 15,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
) -> Estimate:
    """Estimate the expected calibration error, with an interval that holds also where it is 0.

    The error of a sample, `E = sum_b w_b |d_b|` as in `calibration_error`, is too large, since
    chance parts probabilities from frequencies as well, and a bootstrap of it never contains 0.
    With the true gaps δ_b and noise e_b = d_b - δ_b of standard error s_b, two inequalities hold
    whatever the gaps are:

    - `E - sum w_b |δ_b| <= sum w_b |e_b|`, an equality for calibrated probabilities. So the lower
      end is E less the upper quantile of a sum of half-normals (its first three cumulants, by
      Cornish and Fisher), and 0 at least.
    - `sum w_b |δ_b| - E <= -sum w_b sign(δ_b) e_b`, an equality where all gaps are large. So the
      upper end is E plus the Wilson limits of the bins' gaps, squared and added as by Zou and
      Donner (2008), Statistics in Medicine 27.

    Where the gaps lie between it covers more than `level`. The error is that of these bins: bins of
    finite width hide what cancels within them. In simulations with 30 to 10,000 examples,
    calibrated, over- and underconfident, of one event and of predicted classes, it covered in 94.5
    to 100 %, where calibrated in 95.5 to 100 %.

    Of clusters, whose examples depend on one another, a bin of n_b examples, n_cb of cluster c,
    counts as `n_b / (1 + ρ (sum_c n_cb^2 / n_b - 1))` of them, with the intraclass correlation ρ of
    `y - p` within bins by moments. Quantiles are Student's with Kish's number of clusters less 1,
    and neither end is nearer than by the jackknife of clusters. Simulated with 20 and 50 clusters,
    sizes up to 10:1 and correlations of 0 to 0.7 it covered in 92 to 100 %, the interval without
    clusters in 0 to 100 %.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`. Of several classes:
            `top_label(calibration_interval)`.
        y_prob: the probability of class 1, `(..., n)`.
        num_bins, strategy: as for `calibration_curve`; weights are numbers of examples.
        clusters: ids of any hashable kind, `(..., n)`. Fewer than 20 that count give a warning on
            the host.

    Returns:
        `Estimate`, each `(...)`; NaN without examples.

    Raises:
        TypeError, ValueError: as `calibration_curve`; cluster ids that are missing or hidden by
            jit.

    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(500)
    >>> calibrated = calibration_interval(rng.random(500) < y_prob, y_prob)
    >>> calibrated.value.round(3), calibrated.low
    (np.float64(0.043), np.float64(0.0))
    >>> calibration_interval(rng.random(500) < y_prob**2, y_prob).low.round(3)
    np.float64(0.083)
    """
    z = normal_quantile(level)
    examples = binary_examples(y_true, y_prob, sample_weight, where, PROBABILITIES, name="y_prob")
    edges = _edges(examples, num_bins, strategy)
    if clusters is None:
        return _interval(_sums(examples, edges), z)
    shape = np.broadcast_shapes(examples.ids.shape, examples.values.shape)
    numbers, size = numbered_clusters(clusters, shape)
    if not on_device(examples):
        warn_if_few(fewest_clusters(numbers, size, examples.amounts != 0))
    return _clustered_interval(_sums(examples, edges, numbers, num_clusters=size), z)


def binned_calibration_interval(bins: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Compute `calibration_interval` from sums `(..., B, 3)` of `calibration_bins`.

    Raises:
        ValueError: bins of another shape, a level outside (0, 1).

    >>> estimate = binned_calibration_interval([[40.0, 10.0, 14.0], [60.0, 48.0, 51.0]])
    >>> estimate.value, estimate.low, estimate.high.round(2)
    (np.float64(0.07), np.float64(0.0), np.float64(0.14))
    """
    return _interval(_as_bins(bins), normal_quantile(level))


def brier_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_bins: int = 10,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> BrierDecomposition:
    """Decompose the Brier score `mean (p - y)^2` into reliability, resolution and uncertainty.

    The score is `reliability - resolution + uncertainty`, whatever the bins. With w_b the share,
    p_b the mean probability and f_b the frequency of class 1 of bin b, f the frequency of all:

    - reliability = `sum_b w_b (p_b - f_b)^2` (less is better),
    - resolution = `sum_b w_b ((f_b - f)^2 - var_b(p) + 2 cov_b(p, y))` (more is better),
    - uncertainty = `f (1 - f)`.

    The variance and the covariance within the bins are those of Stephenson, Coelho and Jolliffe
    (2008), Weather and Forecasting 23; Murphy's classic resolution lacks them, and adds up only if
    all probabilities of a bin are equal.

    Args:
        As `calibration_curve`.

    Returns:
        `BrierDecomposition`, each part `(...)`.

    >>> parts = brier_decomposition([0, 1, 1, 1], [0.25, 0.75, 0.25, 1.0], num_bins=2)
    >>> parts
    BrierDecomposition(reliability=np.float64(0.0390625), resolution=np.float64(0.0546875),
                       uncertainty=np.float64(0.1875))
    >>> parts.reliability - parts.resolution + parts.uncertainty  # (1/16 + 1/16 + 9/16) / 4
    np.float64(0.171875)
    """
    examples = binary_examples(y_true, y_prob, sample_weight, where, PROBABILITIES, name="y_prob")
    return _decomposition(examples, _edges(examples, num_bins, strategy))


def top_label(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a function of one event to the event that the most probable class is the true one.

    `top_label(calibration_error)(y_true, y_prob)` takes class ids `(..., n)` and probabilities
    `(..., n, K)`: the expected calibration error as Guo et al. (2017), ICML, report it. Keyword
    arguments go to the function. Of equal probabilities the first is the prediction.

    Raises:
        TypeError: not a function. ValueError: when called, as `brier_score`.

    >>> y_prob = [[0.5, 0.25, 0.25], [0.0, 0.25, 0.75], [0.5, 0.5, 0.0]]
    >>> top_label(calibration_error)([0, 2, 1], y_prob, num_bins=2)
    np.float64(0.0833333)
    >>> top_label(calibration_error)
    top_label(calibration_error)
    """
    return applied(
        _top_label, function, "a function of (y_true, y_prob), such as jaxmetrics.calibration_error"
    )


def _top_label(
    function: Callable[..., Any],
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    **options: Any,
) -> Any:
    examples = class_examples(y_true, y_prob, sample_weight, where, DISTRIBUTIONS, name="y_prob")
    given = {"sample_weight": sample_weight, "where": where}
    given = {name: x for name, x in given.items() if x is not None}
    return function(*_predictions(examples), **given, **options)


@compiled
def _predictions(examples: Examples) -> tuple[Array, Array]:
    """Tell whether the most probable class of each example is correct, and its probability.

    Negative where the example is dropped; NaN for an impossible row.
    """
    ids, p = examples.ids, examples.values
    valid = is_probability(p).all(-1)
    valid_p = xp.where(valid[..., None], p, 0)
    prediction = xp.argmax(valid_p, -1)
    correct = xp.where(ids < 0, IGNORED, (prediction == ids).astype(xp.int8))
    return correct, xp.where(valid, at_class(valid_p, prediction), xp.nan)


def _check_norm(norm: str, debiased: bool) -> None:
    check_option(norm, "norm", ("l1", "l2", "max"))
    if debiased and norm != "l2":
        raise ValueError(f'debiased=True needs norm="l2", whose bias is known, got norm={norm!r}.')


def _as_bins(bins: ArrayLike) -> Array:
    sums = as_float(bins, "bins")
    if sums.ndim < 2 or sums.shape[-1] != 3 or sums.shape[-2] == 0:
        raise ValueError(
            f"bins must have shape (..., B, 3), as calibration_bins returns them, got {sums.shape}."
        )
    return sums


def _uniform_edges(examples: Examples, num_bins: int) -> Array:
    edges = np.linspace(0, 1, check_size(num_bins, "num_bins") + 1)[1:-1]
    return edges.astype(float_dtype(examples))


def _edges(examples: Examples, num_bins: int, strategy: str) -> Array:
    check_option(strategy, "strategy", ("uniform", "quantile"))
    if strategy == "uniform":
        return _uniform_edges(examples, num_bins)
    return _quantile_edges(examples, num_bins=check_size(num_bins, "num_bins"))


@compiled
def _quantile_edges(examples: Examples, *, num_bins: int) -> Array:
    """Find the edges `(..., B - 1)` at the quantiles j / B of the probabilities.

    Write each example as often as it weighs, W rows by rising p: edge j is row
    `floor((W - 1) j / B)`, from 0. Linear quantiles lie between that row and the next, where there
    is no further example, so they make the same bins.
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
        num_rows, sorted_p = num_examples, xp.sort(sorted_p, -1)
        row_of_edge = _quantile_rows(num_rows, j, num_bins)
    else:
        sorted_p, w = lax.sort((sorted_p, xp.where(counts, w, 0)), num_keys=1)
        # The running maximum, because sums in a tree may step back by a rounding.
        rows_up_to = lax.cummax(xp.cumsum(w, -1), w.ndim - 1)
        num_rows = rows_up_to[..., -1:]
        rows = _quantile_rows(num_rows, j, num_bins)
        row_of_edge = _positions(rows_up_to, rows, side="right", method="scan")
    last = xp.maximum(num_examples - 1, 0)
    edges = xp.take_along_axis(sorted_p, xp.clip(row_of_edge, 0, last).astype(xp.int32), -1)
    # Weights that were normalised to a sum of 1 are no numbers of rows: all would be one row, all
    # edges the least p.
    return xp.where((num_rows < 2) & (num_examples > 1), xp.nan, edges)


def _quantile_rows(num_rows: Array, j: Array, num_bins: int) -> Array:
    """Compute `floor((W - 1) j / B)`, in parts that do not overflow int32 nor lose a fraction."""
    whole = (num_rows - 1) // num_bins
    remainder = (num_rows - 1) - whole * num_bins
    return xp.maximum(whole * j + remainder * j // num_bins, 0)


def _positions(ordered: Array, x: Array, **options: Any) -> Array:
    """Find numbers `(..., n)` among ordered ones `(..., b)`, by `searchsorted`."""
    search: Callable[..., Array] = partial(xp.searchsorted, **options)
    if ordered.ndim == 1 and not on_device(ordered, x):
        return search(ordered, x)
    vectorize = jnp.vectorize if on_device(ordered, x) else partial(np.vectorize, otypes=[np.int64])
    return vectorize(search, signature="(b),(n)->(n)")(ordered, x)


@compiled
def _sums(
    examples: Examples, edges: Array, numbers: Array | None = None, *, num_clusters: int = 0
) -> Array:
    """Do as `calibration_bins` with edges `(..., B - 1)`; of clusters apart, `(..., C, B, 3)`."""
    ids, p, *_ = examples
    p = xp.where(is_probability(p) & ~xp.isnan(edges).any(-1, keepdims=True), p, xp.nan)
    positions = _positions(*varying_alike(edges, p), side="left", method="scan_unrolled")
    bin_ids = xp.where(xp.isnan(p), 0, positions.astype(xp.int32))
    # By bin and truth, a row [1, p] of each example adds up to their weight and their sum of p.
    axes = [("y_prob", bin_ids, edges.shape[-1] + 1), ("y_true", ids, 2)]
    if numbers is not None:
        axes = [("clusters", numbers, num_clusters), *axes]
    rows = xp.stack([xp.ones_like(p), p], -1)
    sums = count(axes, weights_of(examples), None, rows=rows, refuse_columns=False)
    bins = xp.stack([sums[..., 0].sum(-1), sums[..., 1].sum(-1), sums[..., 1, 0]], -1)
    return xp.where(xp.isnan(bins).any((-2, -1), keepdims=True), xp.nan, bins)


@compiled
def _curve(bins: Array, z: float) -> CalibrationCurve:
    weight, sum_prob, sum_true = xp.moveaxis(bins, -1, 0)
    low, high = (xp.where(weight == 0, xp.nan, end) for end in wilson_interval(sum_true, weight, z))
    return CalibrationCurve(
        divide(sum_prob, weight, xp.nan), divide(sum_true, weight, xp.nan), low, high, weight
    )


@compiled
def _error(bins: Array, *, norm: str, debiased: bool) -> Array:
    n, sum_prob, sum_true = xp.moveaxis(bins, -1, 0)
    total = n.sum(-1)
    gap = xp.abs(divide(sum_prob - sum_true, n))
    if norm == "max":
        return xp.where(total == 0, xp.nan, gap.max(-1))
    if norm == "l1":
        return divide((n * gap).sum(-1), total, xp.nan)
    squares = gap**2
    if debiased:
        variance = divide(sum_true, n) * divide(n - sum_true, n)  # f (1 - f)
        # An example alone has variance 0; if not, weights are no numbers of examples.
        of_one_example = xp.where(variance == 0, 0, xp.nan)
        squares = squares - xp.where(n > 1, divide(variance, n - 1), of_one_example)
    return safe_sqrt(xp.maximum(divide((n * squares).sum(-1), total, xp.nan), 0))


@compiled
def _interval(bins: Array, z: float) -> Estimate:
    total = bins[..., 0].sum(-1)
    return _estimate(bins, bins[..., 0], total, xp.full(np.shape(total), z))


@compiled
def _clustered_interval(clusters: Array, z: float) -> Estimate:
    """Compute `calibration_interval` from sums by cluster and bin, `(..., C, B, 3)`."""
    bins, n_cb = clusters.sum(-3), clusters[..., 0]
    n, sum_prob, sum_true = xp.moveaxis(bins, -1, 0)
    excess = clusters[..., 1] - clusters[..., 2]  # of the probabilities over the truths
    gap = divide(sum_prob - sum_true, n)
    share_of_bin = divide(n_cb, n[..., None, :])

    # If a bin's residuals y - p + d_b correlate by ρ, the squares of their sums by cluster are v_b
    # times `alone + ρ (together - alone)` on average: the gap d_b, taken off, is theirs as well.
    squares = ((excess - n_cb * gap[..., None, :]) ** 2).sum(-2)
    alone = n * (1 - (share_of_bin**2).sum(-2))
    kish = n * (share_of_bin**2).sum(-2)  # the mean size of the cluster of an example
    together = n * (kish - 2 * n * (share_of_bin**3).sum(-2) + divide(kish**2, n))
    v = _variance_of_truth(bins)
    rho = divide((squares - v * alone).sum(-1), (v * (together - alone)).sum(-1))
    effective = divide(n, 1 + xp.clip(rho, 0, 1)[..., None] * xp.maximum(kish - 1, 0))

    total = n.sum(-1)
    shares = divide(n_cb.sum(-1), total[..., None])
    number = kish_number(shares)
    error = divide((n * xp.abs(gap)).sum(-1), total, xp.nan)
    of_clusters = divide((xp.sign(gap)[..., None, :] * excess).sum(-1), total[..., None])
    variance = jackknife_variance(of_clusters - shares * error[..., None], shares)
    return _estimate(bins, effective, number, student_quantile(z, number - 1), variance)


def _variance_of_truth(bins: Array) -> Array:
    """Return p (1 - p), the variance where calibrated, or f (1 - f), where the gap is large."""
    n, sum_prob, sum_true = xp.moveaxis(bins, -1, 0)
    p, f = divide(sum_prob, n), divide(sum_true, n)
    return xp.maximum(p * divide(n - sum_prob, n), f * divide(n - sum_true, n))


def _estimate(
    bins: Array, effective: Array, number: Array, z: Array, variance: Array | float = 0.0
) -> Estimate:
    """Estimate the error of bins that count as so many independent examples `effective`.

    Args:
        number: of units, by which the shares of the bins vary.
        z: the normal quantile or Student's.
        variance: of the error, at least.
    """
    n, sum_prob, sum_true = xp.moveaxis(bins, -1, 0)
    share = divide(n, n.sum(-1)[..., None])
    p, f = divide(sum_prob, n), divide(sum_true, n)
    gap, error = xp.abs(p - f), _error(bins, norm="l1", debiased=False)
    noise = share * safe_sqrt(divide(_variance_of_truth(bins), effective))
    spread = xp.maximum((share * gap**2).sum(-1) - error**2, 0)
    variance_of_shares = divide(spread, number, xp.nan)

    def reach(of_bins: Array) -> Array:
        return safe_sqrt(xp.maximum(of_bins + z**2 * variance_of_shares, z**2 * variance))

    mean = math.sqrt(2 / math.pi) * noise.sum(-1)  # of a sum of half-normals
    sd = safe_sqrt((1 - 2 / math.pi) * (noise**2).sum(-1))
    third = math.sqrt(2 / math.pi) * (4 / math.pi - 1) * (noise**3).sum(-1)
    low = error - mean - reach((z * sd + (z**2 - 1) / 6 * divide(third, sd**2)) ** 2)

    lowest, highest = wilson_interval(f * effective, effective, z[..., None])
    largest_gap = xp.maximum(xp.abs(p - lowest), xp.abs(highest - p))
    high = error + reach(((share * (largest_gap - gap)) ** 2).sum(-1))

    return Estimate(
        error,
        xp.maximum(low, 0),
        xp.minimum(high, 1),
        safe_sqrt(xp.maximum((noise**2).sum(-1) + variance_of_shares, variance)),
        xp.zeros(np.shape(error), xp.int32),
    )


@compiled
def _decomposition(examples: Examples, edges: Array) -> BrierDecomposition:
    n, sum_prob, sum_true = xp.moveaxis(_sums(examples, edges), -1, 0)
    total = n.sum(-1)
    reliability = divide((n * divide(sum_prob - sum_true, n) ** 2).sum(-1), total, xp.nan)
    f, one_minus_f = (divide(x.sum(-1), total, xp.nan) for x in (sum_true, n - sum_true))
    uncertainty = f * one_minus_f
    # What is no probability has made the sums NaN, if it counts.
    p = xp.where(is_probability(examples.values), examples.values, 0)
    brier = weighted_mean((p - examples.ids) ** 2, weights_of(examples))
    # The sum of squares within a bin is that of its means plus n var(p) + n var(y) - 2 n cov(p, y),
    # and the mean variance of y is the uncertainty less Murphy's resolution: so what is left of the
    # score is the resolution of the docstring.
    resolution = reliability + uncertainty - brier
    return BrierDecomposition(reliability, resolution, uncertainty)
