"""Intervals of means of examples, such as log losses and Brier scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, on_device, xp
from jaxmetrics._validation import (
    ArrayLike,
    as_float,
    as_mask,
    as_weights,
    check_examples,
    check_no_nan,
    shapes_of,
)
from jaxmetrics.estimates import Estimate, check_transform, normal_estimate, normal_quantile
from jaxmetrics.intervals.clusters import (
    fewest_clusters,
    jackknife_variance,
    kish_number,
    numbered_clusters,
    student_quantile,
    sums_by_cluster,
    warn_if_few,
)

__all__ = ["mean_interval"]


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    transform: Literal["logit", "atanh", "log"] | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
) -> Estimate:
    """Estimate the mean of examples, with Student's interval `m ± t s`.

    Of independent examples `s^2 = sum w (x - m)^2 / (W (W - 1))` with W the sum of the weights,
    and t has W - 1 degrees of freedom. Of clusters s is that of the jackknife that leaves out one
    of the C clusters at a time: with w_c the share of cluster c and m_c its mean,
    `s^2 = (C - 1) / C sum (w_c (m_c - m) / (1 - w_c))^2`, and t has `1 / sum w_c^2 - 1` degrees of
    freedom; of one size they are C - 1, and s^2 is `C / (C - 1) sum (w_c (m_c - m))^2`. MacKinnon,
    Nielsen and Webb (2023), Journal of Applied Econometrics 38; Kish (1965), Survey Sampling.

    Simulated with 20 to 100 clusters of sizes up to 10:1 and intraclass correlations of 0 to 0.7,
    the interval covers in 94 to 95 % for normal values; for log losses, Brier scores and
    exponential ones with `"log"` in 91 to 96 %, without in 87 to 95 %. The usual
    `C / (C - 1) sum (w_c (m_c - m))^2` with C - 1 degrees of freedom covers in 81 to 95 %.

    Args:
        values: real numbers, `(..., n)`: `nll(y_prob, y_true)` are the log losses of examples,
            `(y_prob - y_true) ** 2` their Brier scores.
        transform: `"log"` for means of what is not negative: `log m ± t s / m`, transformed back;
            `"logit"`, `"atanh"` as for `delta_method`.
        sample_weight: `(..., n)`, numbers of examples.
        where: bool, `(..., n)`; false leaves the example out, whatever it holds.
        clusters: ids of groups of examples that depend on one another, as those of a patient do,
            `(..., n)`, of any hashable kind. Fewer than 20 that count give a warning on the host.

    Returns:
        `Estimate`, each `(...)`; NaN of nothing, and of one example or cluster all but the value.
        Where all values are equal the width is 0; on the log scale NaN if they are 0.

    Raises:
        TypeError: values that are no real numbers, a mask that is not bool, cluster ids that jit
            hides.
        ValueError: shapes that do not go together, a level outside of (0, 1), an unknown transform,
            missing cluster ids; on the host NaN values or weights that count.

    >>> mean_interval([2.0, 4.0, 4.0, 6.0])
    4.000 [1.405, 6.595]
    >>> import numpy as np
    >>> patient = np.repeat(np.arange(30), 10)
    >>> losses = np.random.default_rng(0).exponential(size=30)[patient]
    >>> estimate = mean_interval(losses, transform="log", clusters=patient)
    >>> estimate.standard_error / mean_interval(losses).standard_error > 3
    np.True_
    """
    check_transform(transform)
    z, x = normal_quantile(level), as_float(values, "values")
    mask = None if where is None else as_mask(where)
    weights = None if sample_weight is None else as_weights(sample_weight, mask)
    shapes = shapes_of(values=x, sample_weight=weights, where=mask)
    check_examples(shapes)
    x, amounts = _amounts(x, weights, mask)
    if not on_device(x, amounts):
        check_no_nan(x, "values", amounts != 0)
    numbers, size = None, 0
    if clusters is not None:
        numbers, size = numbered_clusters(clusters, x.shape)
        if not on_device(amounts):
            warn_if_few(fewest_clusters(numbers, size, amounts != 0))
    return _mean_interval(x, amounts, numbers, z, transform=transform, num_clusters=size)


@compiled
def _amounts(x: Array, weights: Array | None, mask: Array | None) -> tuple[Array, Array]:
    amounts = xp.ones_like(x) if weights is None else weights.astype(x.dtype)
    amounts = amounts if mask is None else xp.where(mask, amounts, 0)
    x, amounts = xp.broadcast_arrays(x, amounts)
    return x, amounts


@compiled
def _mean_interval(
    x: Array,
    amounts: Array,
    numbers: Array | None,
    z: float,
    *,
    transform: str | None,
    num_clusters: int,
) -> Estimate:
    x, total = xp.where(amounts != 0, x, 0), amounts.sum(-1)
    mean = divide((amounts * x).sum(-1), total, xp.nan)
    residuals = x - mean[..., None]
    if numbers is None:
        squares = (amounts * residuals**2).sum(-1)
        variance = divide(squares, total * xp.maximum(total - 1, 0), xp.nan)
        freedom = total - 1
    else:
        shares, moves = (
            divide(sums_by_cluster(of_examples, numbers, num_clusters), total[..., None], xp.nan)
            for of_examples in (amounts, amounts * residuals)
        )
        variance = jackknife_variance(moves, shares)
        freedom = kish_number(shares) - 1
    return normal_estimate(mean, safe_sqrt(variance), student_quantile(z, freedom), transform)
