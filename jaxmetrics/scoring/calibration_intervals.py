"""Confidence intervals of the expected calibration error (ECE).

The calibration error of a sample, `E = sum_b w_b |d_b|` as in `calibration_error`, is biased
upwards, because the gaps d_b between probabilities and frequencies are never exactly 0. Therefore
its bootstrap interval never contains 0. Let δ_b be the true gaps and e_b = d_b - δ_b their noise.
Two inequalities are true for any gaps:

- `E - sum w_b |δ_b| <= sum w_b |e_b|`, an equality for calibrated probabilities. Therefore the
  lower end of the interval is E minus the upper quantile of a sum of half-normal variables, but at
  least 0. The quantile is computed from the first three cumulants of the sum by the Cornish–Fisher
  expansion.
- `sum w_b |δ_b| - E <= -sum w_b sign(δ_b) e_b`, an equality if all gaps are large. Therefore the
  upper end of the interval is E plus the root of the sum of the squared distances from each gap to
  its Wilson limit. Source: Zou and Donner (2008), Statistics in Medicine 27.

If the gaps are neither 0 nor large, the coverage is greater than `level`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import ArrayLike, check_flag
from jaxmetrics._numerics.arithmetic import append_axes, divide, safe_sqrt
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.clusters import independent_share, jackknife_variance, kish_number
from jaxmetrics.estimates import Estimate, computed_estimate, normal_quantile, with_level
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.scoring.bins import Strategy, bins_of

__all__ = ["calibration_interval"]


@on_host_if_small
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
    frequency: bool = False,
) -> Estimate:
    """Compute a confidence interval of the expected calibration error (ECE).

    The ECE is `E = sum_b w_b |d_b|`. In bin b, the gap d_b is the mean probability minus the
    frequency of class 1. The weight w_b is the fraction of all examples that are in bin b.

    The interval is valid even if the true error is 0. A bootstrap interval is not, because the ECE
    of a sample is biased upwards. The formulas are at the top of
    `jaxmetrics/scoring/calibration_intervals.py`.

    The true error is the ECE in the population, computed with the same bins. Within a bin,
    probabilities that are too high and too low cancel.

    Args:
        y_true: 0 or 1 (or bool), of shape `(..., n)`. If `y_prob` is not given, `y_true` is the
            result of `calibration_bins`, of shape `(..., B, 3)`. For several classes use
            `top_label(calibration_interval)`.
        y_prob: predicted probabilities of class 1, of shape `(..., n)`.
        num_bins: number of bins B, 15 by default.
        strategy: `"uniform"` (bins of equal width) or `"quantile"` (edges at quantiles of
            `y_prob`).
        level: the confidence level.
        sample_weight: weights of the examples, of shape `(..., n)`; their scale does not matter.
            A bin has the effective number of examples `sum(w)^2 / sum(w^2)` (Kish, 1965).
        where: boolean mask of the examples to include, of shape `(..., n)`.
        clusters: cluster id of each example, of shape `(..., n)` and any hashable type. Examples of
            one cluster may be correlated. The effective number of examples is then computed from
            the jackknife variance. Fewer than 20 clusters give a warning for NumPy arrays.
        frequency: True if the weights say how often each example occurs.

    Returns:
        `Estimate` of shape `(...)`. Its values are NaN if there are no examples.

    >>> rng = np.random.default_rng(0)
    >>> y_prob = rng.random(500)
    >>> calibration_interval(rng.random(500) < y_prob, y_prob)
    0.043 [0.000, 0.081]
    >>> calibration_interval(rng.random(500) < y_prob**2, y_prob)
    0.166 [0.083, 0.197]
    >>> calibration_interval([[40.0, 10.0, 14.0], [60.0, 48.0, 51.0]])  # of sums by bin
    0.070 [0.000, 0.145]
    """
    check_order(
        y_true=y_true, y_prob=y_prob, sample_weight=sample_weight, where=where, clusters=clusters
    )
    options: Any = {"num_bins": num_bins, "strategy": strategy, "where": where, "default": 15}
    options["sample_weight"] = sample_weight
    bins, squares = bins_of(y_true, y_prob, **options, clusters=clusters), None
    if not check_flag(frequency, "frequency") and sample_weight is not None:
        squares = bins_of(y_true, y_prob, **options, squares=True)[..., 0]
    z = normal_quantile(level)
    estimate = _interval(bins, squares, z, are_clusters=clusters is not None)
    return with_level(estimate, level, "inequalities")


class _Bins(NamedTuple):
    """Statistics of each bin; all arrays have shape `(..., B)`."""

    n: Array
    p: Array  # the mean probability
    f: Array  # the frequency of class 1
    variance: Array  # variance of labels: p (1 - p) if calibrated, f (1 - f) if the gap is large
    gap: Array  # |p - f|
    share: Array  # w, the fraction of the examples
    error: Array  # (...): calibration error
    spread: Array  # (...): variance of the gap over examples


def _statistics(sums: Array) -> _Bins:
    n, sum_prob, sum_true = xp.moveaxis(sums, -1, 0)
    p, f = divide(sum_prob, n), divide(sum_true, n)
    variance = xp.maximum(p * divide(n - sum_prob, n), f * divide(n - sum_true, n))
    gap, total = xp.abs(p - f), n.sum(-1)
    error, share = divide((n * gap).sum(-1), total, xp.nan), divide(n, total[..., None])
    spread = xp.maximum((share * gap**2).sum(-1) - error**2, 0)
    return _Bins(n, p, f, variance, gap, share, error, spread)


class _Units(NamedTuple):
    """Numbers of the independent units, which are examples or clusters."""

    examples: Array  # (..., B): effective number of independent examples in each bin
    number: Array  # (...): number of units, for the variance of w_b
    quantile: Array  # (...): normal or Student's quantile
    variance: Array  # (...): smallest variance of the error


@compiled
def _interval(sums: Array, squares: Array | None, z: float, *, are_clusters: bool) -> Estimate:
    if squares is not None:  # weights sum to their effective number
        scale = divide(sums[..., 0].sum((-2, -1) if are_clusters else -1), squares.sum(-1))
        sums = sums * append_axes(scale, 3 if are_clusters else 2)
        squares = squares * append_axes(scale, 1) ** 2
    bins = _statistics(sums.sum(-3) if are_clusters else sums)
    error, share, total = bins.error, bins.share, bins.n.sum(-1)
    if are_clusters:
        units = _clusters(sums, bins, z)
    else:
        examples = bins.n if squares is None else bins.n * divide(bins.n, squares)
        units = _Units(examples, total, xp.full(np.shape(total), z), xp.zeros_like(total))
    z = units.quantile
    noise = share * safe_sqrt(divide(bins.variance, units.examples))
    variance_of_shares = divide(bins.spread, units.number, xp.nan)

    def reach(squares: Array) -> Array:
        return safe_sqrt(xp.maximum(squares + z**2 * variance_of_shares, z**2 * units.variance))

    low = error - math.sqrt(2 / math.pi) * noise.sum(-1) - reach(_half_normal_reach(noise, z) ** 2)
    high = error + reach(((share * _growth_of_gap(bins, units)) ** 2).sum(-1))
    variance = xp.maximum((noise**2).sum(-1) + variance_of_shares, units.variance)
    ends = xp.maximum(low, 0), xp.minimum(high, 1)
    number = {"num_examples" if squares is None else "effective_number": total}
    return computed_estimate(error, *ends, safe_sqrt(variance), **number)


def _half_normal_reach(sd: Array, z: Array) -> Array:
    """Return the quantile (at the normal quantile z) of a sum of half-normals, minus its mean."""
    sd_of_sum = safe_sqrt((1 - 2 / math.pi) * (sd**2).sum(-1))
    third = math.sqrt(2 / math.pi) * (4 / math.pi - 1) * (sd**3).sum(-1)
    return z * sd_of_sum + (z**2 - 1) / 6 * divide(third, sd_of_sum**2)


def _growth_of_gap(bins: _Bins, units: _Units) -> Array:
    """Return by how much the gap of each bin increases at the farther one of Wilson's limits."""
    n = units.examples
    lowest, highest = wilson_interval(bins.f * n, n, units.quantile[..., None])
    return xp.maximum(xp.abs(bins.p - lowest), xp.abs(highest - bins.p)) - bins.gap


def _clusters(sums: Array, bins: _Bins, z: float) -> _Units:
    """Compute the effective number of independent examples from sums per cluster, `(..., C, B, 3)`.

    The number of examples is multiplied by the ratio of two variances of the gaps, for independent
    examples and for clusters (jackknife). Quantiles are Student's, with Kish's effective number of
    clusters minus 1 degrees of freedom.
    """
    n, n_cb, gap = bins.n, sums[..., 0], bins.p - bins.f
    excess = sums[..., 1] - sums[..., 2]  # ratio of the variances of probabilities and labels
    total = n.sum(-1)
    shares = divide(n_cb.sum(-1), total[..., None])
    number = kish_number(shares)

    # n times the variances of the gaps, in bins that contain several clusters.
    varies = (n_cb > 0).sum(-2) > 1
    alone = xp.where(varies, n * bins.variance, 0).sum(-1)
    residuals = excess - n_cb * gap[..., None, :], divide(n_cb, n[..., None, :])
    together = jackknife_variance(*(xp.swapaxes(x, -1, -2) for x in residuals))
    errors = safe_sqrt(alone), safe_sqrt(xp.where(varies, together, 0).sum(-1))
    examples = n * independent_share(*errors, total, number)[..., None]

    of_clusters = divide((xp.sign(gap)[..., None, :] * excess).sum(-1), total[..., None])
    variance = jackknife_variance(of_clusters - shares * bins.error[..., None], shares)
    return _Units(examples, number, student_quantile(z, number - 1), variance)
