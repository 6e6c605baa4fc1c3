"""Confidence intervals of the calibration error, for independent examples and for clusters.

The error of a sample, `E = sum_b w_b |d_b|` as in `calibration_error`, is biased upwards, because
chance alone separates probabilities and frequencies; a bootstrap interval of it never contains 0.
With the true gaps δ_b and noise e_b = d_b - δ_b, two inequalities hold whatever the gaps are:

- `E - sum w_b |δ_b| <= sum w_b |e_b|`, an equality for calibrated probabilities. So the lower end
  is E minus the upper quantile of a sum of half-normals (its first three cumulants, by Cornish and
  Fisher), and at least 0.
- `sum w_b |δ_b| - E <= -sum w_b sign(δ_b) e_b`, an equality if all gaps are large. So the upper end
  is E plus the Wilson limits of the bins' gaps, squared and added as in Zou and Donner (2008),
  Statistics in Medicine 27.

Between the two cases the coverage is above `level`; the guide's page on intervals has simulations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.clusters import independent_share, jackknife_variance, kish_number
from jaxmetrics.estimates import Estimate, normal_quantile
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.scoring.bins import Strategy, bins_of

__all__ = ["calibration_interval"]


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
    """Compute a confidence interval of the expected calibration error (ECE), valid even if it is 0.

    The error of a sample, `E = sum_b w_b |d_b|`, is biased upwards, because chance alone separates
    probabilities and frequencies; a bootstrap interval of it never contains 0. This interval can;
    `jaxmetrics.scoring.calibration_intervals` explains how. The interval is for the error in these
    bins: bins of finite width hide errors that cancel within them.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; or, without `y_prob`, bins `(..., B, 3)` from
            `calibration_bins`. For several classes: `top_label(calibration_interval)`.
        y_prob: predicted probabilities of class 1, of shape `(..., n)`.
        num_bins: number of bins B, 15 by default.
        strategy: `"uniform"`, bins of equal width, or `"quantile"`, edges at the quantiles.
        level: the confidence level.
        sample_weight: numbers of examples, `(..., n)`.
        where: boolean mask of shape `(..., n)`; examples where it is False are ignored.
        clusters: `(..., n)` ids, of any hashable type, of groups of correlated examples. The number
            of examples is reduced to the effective number of independent ones, by the ratio of the
            variances of the bins' gaps to their jackknife variances, at most 1. Fewer than 20
            clusters that count give a warning for NumPy arrays.

    Returns:
        `Estimate` of shape `(...)`; NaN without examples.

    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(500)
    >>> calibration_interval(rng.random(500) < y_prob, y_prob)
    0.043 [0.000, 0.081]
    >>> calibration_interval(rng.random(500) < y_prob**2, y_prob)
    0.166 [0.083, 0.197]
    >>> calibration_interval([[40.0, 10.0, 14.0], [60.0, 48.0, 51.0]])  # of sums by bin
    0.070 [0.000, 0.145]
    """
    options = {"sample_weight": sample_weight, "where": where, "clusters": clusters}
    bins = bins_of(y_true, y_prob, num_bins=num_bins, strategy=strategy, **options, default=15)
    return _interval(bins, normal_quantile(level), are_clusters=clusters is not None)


class _Bins(NamedTuple):
    """Statistics of each bin, `(..., B)`."""

    n: Array
    p: Array  # the mean probability
    f: Array  # the frequency of class 1
    variance: Array  # variance of the truth: p (1 - p) if calibrated, f (1 - f) if the gap is large

    @classmethod
    def of(cls, sums: Array) -> _Bins:
        n, sum_prob, sum_true = xp.moveaxis(sums, -1, 0)
        p, f = divide(sum_prob, n), divide(sum_true, n)
        variance = xp.maximum(p * divide(n - sum_prob, n), f * divide(n - sum_true, n))
        return cls(n, p, f, variance)

    @property
    def gap(self) -> Array:
        return xp.abs(self.p - self.f)

    @property
    def error(self) -> Array:
        return divide((self.n * self.gap).sum(-1), self.n.sum(-1), xp.nan)


class _Units(NamedTuple):
    """The independent units: examples, or clusters."""

    examples: Array  # (..., B): effective number of independent examples in each bin
    number: Array  # (...): number of units, for the variance of the shares of the bins
    quantile: Array  # (...): normal quantile, or Student's
    variance: Array  # (...): smallest variance of the error


@compiled
def _interval(sums: Array, z: float, *, are_clusters: bool) -> Estimate:
    bins = _Bins.of(sums.sum(-3) if are_clusters else sums)
    units = _clusters(sums, bins, z) if are_clusters else _independent(bins, z)
    error, z = bins.error, units.quantile
    share = divide(bins.n, bins.n.sum(-1)[..., None])
    noise = share * safe_sqrt(divide(bins.variance, units.examples))
    spread = xp.maximum((share * bins.gap**2).sum(-1) - error**2, 0)
    variance_of_shares = divide(spread, units.number, xp.nan)

    def reach(squares: Array) -> Array:
        return safe_sqrt(xp.maximum(squares + z**2 * variance_of_shares, z**2 * units.variance))

    low = error - math.sqrt(2 / math.pi) * noise.sum(-1) - reach(_half_normal_reach(noise, z) ** 2)
    high = error + reach(((share * _growth_of_gap(bins, units)) ** 2).sum(-1))
    variance = xp.maximum((noise**2).sum(-1) + variance_of_shares, units.variance)
    ends = xp.maximum(low, 0), xp.minimum(high, 1)
    return Estimate(error, *ends, safe_sqrt(variance), xp.zeros(np.shape(error), xp.int32))


def _half_normal_reach(sd: Array, z: Array) -> Array:
    """Return the distance from the mean of a sum of half-normals to its quantile at z."""
    sd_of_sum = safe_sqrt((1 - 2 / math.pi) * (sd**2).sum(-1))
    third = math.sqrt(2 / math.pi) * (4 / math.pi - 1) * (sd**3).sum(-1)
    return z * sd_of_sum + (z**2 - 1) / 6 * divide(third, sd_of_sum**2)


def _growth_of_gap(bins: _Bins, units: _Units) -> Array:
    """Return by how much the gap of each bin grows to the farther of Wilson's limits."""
    n = units.examples
    lowest, highest = wilson_interval(bins.f * n, n, units.quantile[..., None])
    return xp.maximum(xp.abs(bins.p - lowest), xp.abs(highest - bins.p)) - bins.gap


def _independent(bins: _Bins, z: float) -> _Units:
    total = bins.n.sum(-1)
    return _Units(bins.n, total, xp.full(np.shape(total), z), xp.zeros_like(total))


def _clusters(sums: Array, bins: _Bins, z: float) -> _Units:
    """Compare clusters with sums `(..., C, B, 3)` to independent examples.

    The effective number of examples is reduced by the ratio of two variances of the bins' gaps, for
    independent examples and for clusters (jackknife). Quantiles are Student's, with Kish's number
    of clusters minus 1 degrees of freedom.
    """
    n, n_cb, gap = bins.n, sums[..., 0], bins.p - bins.f
    excess = sums[..., 1] - sums[..., 2]  # ratio of the variances of probabilities and truths
    total = n.sum(-1)
    shares = divide(n_cb.sum(-1), total[..., None])
    number = kish_number(shares)

    # Variances of the gaps of bins with several clusters, times n.
    varies = (n_cb > 0).sum(-2) > 1
    alone = xp.where(varies, n * bins.variance, 0).sum(-1)
    residuals = excess - n_cb * gap[..., None, :], divide(n_cb, n[..., None, :])
    together = jackknife_variance(*(xp.swapaxes(x, -1, -2) for x in residuals))
    errors = safe_sqrt(alone), safe_sqrt(xp.where(varies, together, 0).sum(-1))
    examples = n * independent_share(*errors, total, number)[..., None]

    of_clusters = divide((xp.sign(gap)[..., None, :] * excess).sum(-1), total[..., None])
    variance = jackknife_variance(of_clusters - shares * bins.error[..., None], shares)
    return _Units(examples, number, student_quantile(z, number - 1), variance)
