"""Confidence intervals of proportions.

Let s be the successes, n the trials, p = s / n, and z the normal quantile of the level. The methods
are:

- `"wilson"`: `(p + z^2 / (2 n) ± z sqrt(p (1 - p) / n + z^2 / (4 n^2))) / (1 + z^2 / n)`.
  Source: Wilson (1927), JASA 22.
- `"likelihood"`: the proportions q with `s log(p / q) + (n - s) log((1 - p) / (1 - q)) <= z^2 /
  2`, after a third of a failure was added for the lower end, and a third of a success for the
  upper end. This is the interval of `interval(accuracy, counts)`. Source: see `Likelihood`.
- `"agresti_coull"`: `c ± z sqrt(c (1 - c) / (n + z^2))`, clipped to [0, 1], where c is the
  midpoint of Wilson's interval. Source: Agresti and Coull (1998), The American Statistician 52.
- `"jeffreys"`: equal-tailed quantiles of Beta(s + 1/2, n - s + 1/2). The lower end is 0 if s =
  0, and the upper end is 1 if s = n. Source: Brown, Cai and DasGupta (2001), Statistical
  Science 16, section 3.1.
- `"clopper_pearson"`: from the lower quantile of `Beta(s, n - s + 1)` to the upper quantile of
  `Beta(s + 1, n - s)`. The coverage is at least `level`, and mostly greater. Source: Clopper
  and Pearson (1934), Biometrika 26.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_float,
    check_axis,
    check_level,
    check_option,
    is_integer,
    largest_eps,
    refuse_where,
)
from jaxmetrics._numerics.arithmetic import divide, pick, safe_sqrt
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics.betas.distributions import betainccinv, betaincinv
from jaxmetrics.clusters import as_clusters, clustered_error, effective_share, kish_number
from jaxmetrics.estimates import Estimate, computed_estimate, normal_quantile, with_level
from jaxmetrics.intervals.tilting import ADDED, ADDED_OF_CLUSTER, farthest_cluster, tilted

__all__ = ["proportion_interval"]


def wilson_interval(s: Array, n: Array, z: float) -> tuple[Array, Array]:
    """Return Wilson's interval for s successes in n trials, `0 <= s <= n`; [0, 1] if n is 0."""
    p = divide(s, n, xp.nan)
    low, high = _wilson_roots(s, n, z)
    high = xp.where(2 * s <= n, high, 1 - _wilson_roots(n - s, n, z)[0])  # exactly 1 at s = n
    # At a tiny level, rounding may swap the ends.
    return xp.where(low > p, p, low), xp.where(high < p, p, high)


def _wilson_roots(s: Array, n: Array, z: float) -> tuple[Array, Array]:
    """Return the roots of Wilson's quadratic.

    The smaller root is computed from the product of the roots, `(s/n)^2 n / (n + z^2)`, so that the
    smaller root is exactly 0 if s is 0.
    """
    numerator = 2 * s + z**2 + z * xp.sqrt(z**2 + 4 * s * divide(n - s, n))
    return 2 * s * divide(s, n) / numerator, numerator / (2 * (n + z**2))


@on_host_if_small
def proportion_interval(
    successes: ArrayLike,
    trials: ArrayLike,
    *,
    level: float = 0.95,
    method: Literal[
        "wilson", "likelihood", "jeffreys", "clopper_pearson", "agresti_coull"
    ] = "wilson",
    cluster_axis: int | None = None,
) -> Estimate:
    """Compute a confidence interval of a binomial proportion, `successes` divided by `trials`.

    The formulas are explained in `jaxmetrics.intervals.proportions`.

    Use `"likelihood"` or `"clopper_pearson"` at levels above 95 %, or if fewer than one mistake is
    expected. At the levels 95, 99 and 99.9 %, the exact coverage of `"likelihood"` for 20 or more
    trials is at least 91.67, 98.18 and 99.80 %, and of `"wilson"` 83.66, 88.84 and 92.42 % (91.58,
    96.71 and 99.00 % if at least one success and one failure are expected).

    Args:
        successes, trials: counts, or sums of weights, whose shapes broadcast against each other.
        level: the confidence level.
        method: `"wilson"`, `"likelihood"`, `"agresti_coull"`, `"jeffreys"` or `"clopper_pearson"`.
        cluster_axis: the axis of clusters in `successes` and `trials`. A cluster is a group of
            correlated trials, such as the images of one patient. `trials` is then replaced by an
            effective number of independent trials (Korn and Graubard, 1998, Survey Methodology 24).
            For `"likelihood"`, three quarters of the cluster that moves p most towards an end are
            added, as in `interval`. Fewer than 20 clusters give a warning in NumPy.

    Returns:
        `Estimate` of p, in [0, 1]. Without clusters, the standard error is `sqrt(p (1 - p) / n)`.
        If there are no trials, the value is NaN and the interval is [0, 1].

    Raises:
        ValueError: if `trials` are infinite, if `successes` are not in `[0, trials]`, if they lie
            between 0 and 1 although `trials` are integers above 1 (they are rates), if `level` is
            not in (0, 1), or if the method is unknown. Under jit, invalid numbers give NaN instead.

    >>> proportion_interval(18, 20)
    0.900 [0.699, 0.972]
    >>> proportion_interval(18, 20, method="likelihood")
    0.900 [0.704, 0.983]
    """
    check_option(
        method, "method", ("likelihood", "wilson", "jeffreys", "clopper_pearson", "agresti_coull")
    )
    options: dict[str, Any] = {"method": method, "cluster_axis": cluster_axis}
    return _proportion_interval(successes, trials, level=check_level(level), **options)


@compiled
def _proportion_interval(
    successes: ArrayLike, trials: ArrayLike, *, level: float, method: str, cluster_axis: int | None
) -> Estimate:
    z = normal_quantile(level)
    arrays = as_array(successes, "successes"), as_array(trials, "trials")
    s, n = xp.broadcast_arrays(as_float(arrays[0], "successes"), as_float(arrays[1], "trials"))
    # Equal sums of weights may differ by rounding, in the dtype in which they were computed.
    eps = largest_eps(*arrays) and largest_eps(*arrays, n)
    rounding = 8 * eps * n
    s = xp.where((s >= -rounding) & (s <= n + rounding), xp.clip(s, 0, n), s)
    if is_integer(arrays[1]):
        message = "a rate and not a number of successes. Pass successes=rate * trials."
        refuse_where((s > 0) & (s < 1) & (n > 1), s, "successes", message)
    refuse_where(np.isinf, n, "trials", "but the number of trials is finite.")
    message = "but successes lie between 0 and the number of trials."
    refuse_where((s < 0) | (s > n), s, "successes", message)
    possible = (s >= 0) & (s <= n)
    s, n = xp.where(possible, s, xp.nan), xp.where(possible, n, xp.nan)
    share, error, farthest = 1.0, _error(s, n), xp.zeros((2, 2, *n.shape), n.dtype)
    if cluster_axis is not None:
        s, n, share, error, farthest = _pooled(s, n, cluster_axis, z)
    p = divide(s, n, xp.nan)
    if method == "likelihood":
        of_cluster = ADDED_OF_CLUSTER * farthest
        low, high = _likelihood_ends((s + of_cluster[0]) * share, (n + of_cluster[1]) * share, z)
        low, high = xp.where(low > p, p, low), xp.where(high < p, p, high)  # by rounding
    else:
        low, high = _ends(method, s * share, n * share, level, z)
    effective = None if cluster_axis is None else n * share
    estimate = computed_estimate(p, low, high, error, num_examples=n, effective_number=effective)
    return with_level(estimate, level, method)


def _error(s: Array, n: Array) -> Array:
    return safe_sqrt(divide(divide(s, n, xp.nan) * divide(n - s, n, xp.nan), n, xp.nan))


def _pooled(s: Array, n: Array, axis: int, z: float) -> tuple[Array, ...]:
    """Return both sums over clusters, the number of independent trials that one trial is worth, the
    standard error, and the clusters that move the proportion most.

    The last array, `(2, 2, ...)`, contains the successes and trials of two clusters: of the cluster
    that moves the proportion farthest down, and of the cluster that moves it farthest up.
    """
    check_axis(axis, "cluster_axis")
    if not -s.ndim <= axis < s.ndim:
        raise ValueError(
            f"cluster_axis must be an axis of the array successes of shape {s.shape}, got"
            f" cluster_axis={axis}."
        )
    tables = as_clusters(xp.stack([s, n - s], -1)[..., None, :], axis % s.ndim)
    of_clusters = tables[..., 0, 0], tables.sum((-2, -1))
    s, n = (x.sum(-1) for x in of_clusters)
    p = divide(s, n, xp.nan)
    # A success moves p by (1 - p) / n, a failure by -p / n.
    slopes = divide(xp.stack([1 - p, -p], -1), n[..., None], xp.nan)[..., None, None, :]
    error = clustered_error(tables, slopes, xp.ones_like(slopes, bool))[..., 0]
    share = effective_share(_error(s, n), error, n, kish_number(of_clusters[1]), z)
    moves = of_clusters[0] - p[..., None] * of_clusters[1]
    sizes = of_clusters[1] * xp.maximum(p, 1 - p)[..., None]
    places = [farthest_cluster(sign * moves, sizes) for sign in (-1, 1)]
    farthest = [[pick(x, i[..., None])[..., 0] for i in places] for x in of_clusters]
    return s, n, share, xp.where(n > 0, error, xp.nan), xp.stack([xp.stack(x) for x in farthest])


def _likelihood_ends(s: Array, n: Array, z: float) -> tuple[Array, Array]:
    """Return the lower end for s[0] successes in n[0] trials, and the upper for s[1] in n[1]."""
    # A third of a failure is added for the lower end, a third of a success for the upper end.
    moved = np.array([[0, 1], [1, 0]]).reshape((2, *(1,) * (s.ndim - 1), 1, 2))
    counts = xp.stack([s, n - s], -1)[..., None, :] + ADDED * moved.astype(n.dtype)
    weights = tilted(counts, moved.astype(n.dtype), z**2 / 2)[..., 0, :]
    low, high = weights[..., 0] / weights.sum(-1)
    return low, high


def _ends(method: str, s: Array, n: Array, level: float, z: float) -> tuple[Array, Array]:
    """Return both ends of the interval for s successes in n trials."""
    if method == "wilson":
        return wilson_interval(s, n, z)
    if method == "agresti_coull":
        centre = (s + z**2 / 2) / (n + z**2)
        rest = (n - s + z**2 / 2) / (n + z**2)
        half_width = z * xp.sqrt(centre * rest / (n + z**2))
        return xp.maximum(centre - half_width, 0), xp.minimum(centre + half_width, 1)
    if method == "jeffreys":
        low, high = _quantiles_of_beta(level, (s + 0.5, n - s + 0.5), (s + 0.5, n - s + 0.5))
        return xp.where(s == 0, 0, low), xp.where(s == n, 1, high)
    low, high = _quantiles_of_beta(level, (s, n - s + 1), (s + 1, n - s))  # Clopper and Pearson
    return xp.where(n == 0, 0, low), xp.where(n == 0, 1, high)


def _quantiles_of_beta(
    level: float, low: tuple[Array, Array], high: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the lower quantile of Beta(*low) and the upper quantile of Beta(*high).

    If a parameter is 0, the quantile is 0 or 1. Each quantile is computed from the probability of
    its own tail, (1 - level) / 2, because 1 - (1 - level) / 2 has few digits in float32.
    """

    def quantile(from_tail: Callable[[Array, Array, Array], Array], a: Array, b: Array) -> Array:
        proper = (a > 0) & (b > 0)
        tail = xp.full(a.shape, (1 - level) / 2, a.dtype)
        inner = from_tail(xp.where(proper, a, 1), xp.where(proper, b, 1), tail)
        improper = xp.where(a == 0, 0, xp.where(b == 0, 1, xp.nan))
        return xp.where(proper, inner, improper)

    return quantile(betaincinv, *low), quantile(betainccinv, *high)
