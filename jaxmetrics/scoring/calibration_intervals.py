"""Intervals of the calibration error, of independent examples and of clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._examples import PROBABILITIES, binary_examples
from jaxmetrics._namespaces import Array, on_device, xp
from jaxmetrics._validation import ArrayLike
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.estimates import Estimate, normal_quantile
from jaxmetrics.intervals.clusters import (
    independent_share,
    jackknife_variance,
    kish_number,
    numbered_clusters,
    sums_by_cluster,
    warn_of_clusters,
)
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.scoring.bins import Strategy, as_bins, edges_of, sums_by_bin
from jaxmetrics.scoring.calibration import error_of_bins

__all__ = ["calibration_interval"]


@overload
def calibration_interval(bins: ArrayLike, /, *, level: float = 0.95) -> Estimate: ...


@overload
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
) -> Estimate: ...


def calibration_interval(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    num_bins: int | None = None,
    strategy: Strategy | None = None,
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

    Of clusters, whose examples depend on one another, each example counts as many independent ones
    as the variances of the bins' gaps, added up, are smaller than those by the jackknife of
    clusters, at most one. Quantiles are Student's with Kish's number of clusters less 1, and
    neither end is nearer than by the jackknife of the error itself. Simulated with 20 to 100
    clusters, sizes up to 10:1 and correlations of 0 to 0.7 it covered in 93 to 100 %, the interval
    without clusters in 0 to 100 %.

    From examples, `calibration_interval(y_true, y_prob)`, or from their sums by bin,
    `calibration_interval(bins)`, which add up over batches.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; without `y_prob`, bins `(..., B, 3)` as
            `calibration_bins` makes them. Of several classes: `top_label(calibration_interval)`.
        y_prob: the probability of class 1, `(..., n)`.
        num_bins: B, 15 unless given.
        strategy: as for `calibration_curve`; weights are numbers of examples.
        clusters: ids of any hashable kind, `(..., n)`. Fewer than 20 that count give a warning on
            the host.

    Returns:
        `Estimate`, each `(...)`; NaN without examples.

    Raises:
        TypeError, ValueError: as `calibration_curve`; cluster ids that are missing or hidden by
            jit.

    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(500)
    >>> calibration_interval(rng.random(500) < y_prob, y_prob)
    0.043 [0.000, 0.081]
    >>> calibration_interval(rng.random(500) < y_prob**2, y_prob)
    0.166 [0.083, 0.197]
    >>> calibration_interval([[40.0, 10.0, 14.0], [60.0, 48.0, 51.0]])  # of sums by bin
    0.070 [0.000, 0.145]
    """
    z = normal_quantile(level)
    if y_prob is None:
        given = {"num_bins": num_bins, "strategy": strategy, "sample_weight": sample_weight}
        return _interval(as_bins(y_true, **given, where=where, clusters=clusters), z)
    examples = binary_examples(y_true, y_prob, sample_weight, where, PROBABILITIES, name="y_prob")
    edges = edges_of(examples, num_bins, strategy, default=15)
    if clusters is None:
        return _interval(sums_by_bin(examples, edges), z)
    shape = np.broadcast_shapes(examples.ids.shape, examples.values.shape)
    numbers, size = numbered_clusters(clusters, shape)
    if not on_device(examples):
        warn_of_clusters(sums_by_cluster(examples.amounts != 0, numbers, size))
    return _clustered_interval(sums_by_bin(examples, edges, numbers, num_clusters=size), z)


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
    residuals = excess - n_cb * gap[..., None, :]
    share_of_bin = divide(n_cb, n[..., None, :])
    total = n.sum(-1)
    shares = divide(n_cb.sum(-1), total[..., None])
    number = kish_number(shares)

    # Of the gaps of bins with several clusters, times n: variances of examples and of clusters.
    varies = (n_cb > 0).sum(-2) > 1
    alone = xp.where(varies, n * _variance_of_truth(bins), 0).sum(-1)
    of_bins = jackknife_variance(*(xp.swapaxes(x, -1, -2) for x in (residuals, share_of_bin)))
    together = xp.where(varies, of_bins, 0).sum(-1)
    share = independent_share(safe_sqrt(alone), safe_sqrt(together), total, number)

    error = divide((n * xp.abs(gap)).sum(-1), total, xp.nan)
    of_clusters = divide((xp.sign(gap)[..., None, :] * excess).sum(-1), total[..., None])
    variance = jackknife_variance(of_clusters - shares * error[..., None], shares)
    t = student_quantile(z, number - 1)
    return _estimate(bins, n * share[..., None], number, t, variance)


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
    gap, error = xp.abs(p - f), error_of_bins(bins, norm="l1", debiased=False)
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
