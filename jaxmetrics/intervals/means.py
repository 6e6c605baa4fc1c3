"""Intervals of means of examples, such as log losses and Brier scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

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
    refuse_where,
    shapes_of,
)
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.clusters import (
    effective_share,
    jackknife_variance,
    kish_number,
    numbered_clusters,
    sums_by_cluster,
    warn_of_clusters,
)
from jaxmetrics.estimates import (
    Estimate,
    check_transform,
    computed_estimate,
    normal_estimate,
    normal_quantile,
)
from jaxmetrics.intervals.likelihoods import ADDED, ADDED_OF_CLUSTER, tilted

__all__ = ["mean_interval"]


def mean_interval(
    values: ArrayLike,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
    transform: Literal["logit", "atanh", "log"] | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
) -> Estimate:
    """Estimate the mean of examples by Student's interval `m ± t s` or, with bounds, by likelihood.

    Of independent examples `s^2 = sum w (x - m)^2 / (W (W - 1))` with W the sum of the weights,
    and t has W - 1 degrees of freedom. Of clusters s is that of the jackknife that leaves out one
    of the C clusters at a time: with w_c the share of cluster c and m_c its mean,
    `s^2 = (C - 1) / C sum (w_c (m_c - m) / (1 - w_c))^2`, and t has `1 / sum w_c^2 - 1` degrees of
    freedom; of one size they are C - 1, and s^2 is `C / (C - 1) sum (w_c (m_c - m))^2`. MacKinnon,
    Nielsen and Webb (2023), Journal of Applied Econometrics 38; Kish (1965), Survey Sampling.

    With `bounds` the ends are the least and the greatest mean of all distributions of the values
    that these do not refute, as by `Likelihood`: for each end a third of an example more, at
    its bound, stands for values that were not seen. Owen (1988), Biometrika 75.

    Log losses have no bound: their intervals miss the mean where few examples carry it, by `(sum
    x)^2 / sum x^2`, or where mistakes are rarer than one in n.

    Args:
        values: real numbers, `(..., n)`: `nll(y_prob, y_true)` are the log losses of examples,
            `(y_prob - y_true) ** 2` their Brier scores.
        bounds: the least and the greatest value that an example can have, (0, 1) of grades and of
            Brier scores of two classes.
        transform: `"log"` for means of what is not negative: `log m ± t s / m`, transformed back;
            `"logit"`, `"atanh"` as for `Delta`. Bounds need none.
        sample_weight: `(..., n)`, numbers of examples.
        where: bool, `(..., n)`; false leaves the example out, whatever it holds.
        clusters: ids of groups of examples that depend on one another, as those of a patient do,
            `(..., n)`, of any hashable kind. Fewer than 20 that count, or sizes so unequal
            that they count as less than half as many, give a warning on the host.

    Returns:
        `Estimate`, each `(...)`; NaN of nothing, and of one example or cluster all but the value;
        one example within bounds has an interval. Where all values are equal the width is 0, on
        the log scale NaN if they are 0; with bounds it never is.

    Raises:
        TypeError: values that are no real numbers, a mask that is not bool, cluster ids that jit
            hides.
        ValueError: shapes that do not go together, a level outside of (0, 1), an unknown transform,
            bounds that are not finite and rising or that come with a transform, missing cluster
            ids; on the host NaN values or weights that count, values beyond the bounds, which
            otherwise make NaN.

    >>> mean_interval([2.0, 4.0, 4.0, 6.0])
    4.000 [1.402, 6.598]
    >>> grades = [1.0] * 9 + [0.5]
    >>> mean_interval(grades), mean_interval(grades, bounds=(0, 1))
    (0.950 [0.837, 1.063], 0.950 [0.697, 0.997])
    >>> import numpy as np
    >>> patient = np.repeat(np.arange(30), 10)
    >>> losses = np.random.default_rng(0).exponential(size=30)[patient]
    >>> estimate = mean_interval(losses, transform="log", clusters=patient)
    >>> estimate.standard_error / mean_interval(losses).standard_error > 3
    np.True_
    """
    check_transform(transform)
    check_bounds(bounds)
    if bounds is not None and transform is not None:
        raise ValueError(
            f"bounds need no transform: leave out one of bounds={bounds!r} and"
            f" transform={transform!r}."
        )
    return mean_estimate(
        "values", values, sample_weight, where, clusters, bounds, transform, normal_quantile(level)
    )


def mean_estimate(
    name: str,
    values: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    clusters: ArrayLike | Sequence[Any] | None,
    bounds: tuple[float, float] | None,
    transform: str | None,
    z: float,
) -> Estimate:
    """Return `mean_interval` of values that go by a name."""
    x = as_float(values, name)
    mask = None if where is None else as_mask(where)
    weights = None if sample_weight is None else as_weights(sample_weight, mask)
    check_examples({name: x.shape, **shapes_of(sample_weight=weights, where=mask)})
    x, amounts = _amounts(x, weights, mask)
    if not on_device(x, amounts):
        check_no_nan(x, name, amounts != 0)
    if bounds is not None and not on_device(x, amounts):
        outside = ((x < bounds[0]) | (x > bounds[1])) & (amounts != 0)
        refuse_where(outside, x, name, f"beyond bounds={bounds!r}.")
    numbers, size = None, 0
    if clusters is not None:
        numbers, size = numbered_clusters(clusters, x.shape)
        if not on_device(amounts):
            warn_of_clusters(sums_by_cluster(amounts != 0, numbers, size))
    options: dict[str, Any] = {"bounds": bounds, "transform": transform, "num_clusters": size}
    return _mean_interval(x, amounts, numbers, z, **options)


def check_bounds(bounds: tuple[float, float] | None) -> None:
    """Refuse bounds that are not two finite and rising numbers."""
    if bounds is None:
        return
    is_pair = isinstance(bounds, tuple) and len(bounds) == 2
    are_numbers = is_pair and all(isinstance(x, int | float | np.number) for x in bounds)
    lowest, highest = bounds if are_numbers else (np.nan, np.nan)
    if not -np.inf < lowest < highest < np.inf:
        raise ValueError(
            "bounds must be the least and the greatest value that an example can have, both finite,"
            f" such as (0, 1), got {bounds!r}; leave them out for values without."
        )


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
    bounds: tuple[float, float] | None,
    transform: str | None,
    num_clusters: int,
) -> Estimate:
    if bounds is not None:
        x = xp.where((x >= bounds[0]) & (x <= bounds[1]), x, xp.nan)  # what jit hides
    x = xp.where(amounts != 0, x, 0)
    found = _summary(x, amounts, numbers, num_clusters)
    if bounds is None:
        t = student_quantile(z, found.number - 1)
        return normal_estimate(found.mean, found.error, t, transform)
    low, high = (
        xp.where(found.total > 0, _end(found, x, amounts, numbers, z, sign, bound), xp.nan)
        for sign, bound in zip((-1, 1), bounds, strict=True)
    )
    low, high = xp.clip(low, bounds[0], found.mean), xp.clip(high, found.mean, bounds[1])
    return computed_estimate(found.mean, low, high, found.error)


class _MeanAndError(NamedTuple):
    """What an interval of a mean is made of.

    Attributes:
        total: the sum of the weights.
        independent: the standard error of the mean if examples are independent.
        error: the standard error.
        number: of independent units; of clusters Kish's.
        moves: by how much each of the clusters moves the mean, `(..., C)`; None without clusters.
    """

    total: Array
    mean: Array
    independent: Array
    error: Array
    number: Array
    moves: Array | None


def _summary(x: Array, amounts: Array, numbers: Array | None, size: int) -> _MeanAndError:
    total = amounts.sum(-1)
    mean = divide((amounts * x).sum(-1), total, xp.nan)
    residuals = x - mean[..., None]
    squares = (amounts * residuals**2).sum(-1)
    if numbers is None:
        error = safe_sqrt(divide(squares, total * xp.maximum(total - 1, 0), xp.nan))
        return _MeanAndError(total, mean, error, error, total, None)
    shares, moves = (
        divide(sums_by_cluster(of_examples, numbers, size), total[..., None], xp.nan)
        for of_examples in (amounts, amounts * residuals)
    )
    independent = divide(safe_sqrt(squares), total)
    error = safe_sqrt(jackknife_variance(moves, shares))
    return _MeanAndError(total, mean, independent, error, kish_number(shares), moves)


def mean_of_estimates(estimates: Estimate, where: Array | None = None) -> Estimate:
    """Estimate the mean of independent estimates `(..., G)`, each of which counts as one.

    The distances of its ends are the roots of the sums of squares of theirs, over their number, as
    is its standard error: MOVER, Zou and Donner (2008), Statistics in Medicine 27. Of normal
    intervals it is the normal one.

    Args:
        where: bool, `(..., G)`; false leaves an estimate out.
    """
    value, low, high, error, undefined = estimates
    counts = xp.ones_like(value, dtype=bool) if where is None else where
    number = counts.sum(-1).astype(value.dtype)

    def over_number(total: Array) -> Array:
        return divide(total, number, xp.nan)

    def norm(x: Array) -> Array:
        return safe_sqrt(xp.where(counts, x**2, 0).sum(-1))

    mean = over_number(xp.where(counts, value, 0).sum(-1))
    below, above, error = (over_number(norm(x)) for x in (value - low, high - value, error))
    return Estimate(mean, mean - below, mean + above, error, undefined.max(-1))


@compiled
def extremes_of_mean_of_groups(
    counts: Array, values: Array, bounds: tuple[float, float], z: float
) -> tuple[Array, Array]:
    """Return the least and the greatest mean of the means of G groups that a likelihood ratio does
    not refute, as `mean_interval` does for one group.

    Args:
        counts: `(G, n)`, 1 for each value, 0 where a group has fewer.
        values: `(G, n)`.
    """
    smallest = counts.sum(-1).argmin()  # where a third of an example more moves the mean most
    more = ADDED * (np.arange(len(counts)) == smallest)[:, None]
    padded = xp.concatenate([counts, more], -1)
    ends = []
    for sign, bound in zip((-1, 1), bounds, strict=True):
        x = xp.concatenate([values, xp.full_like(more, bound)], -1)
        slopes = sign * x / (len(counts) * padded.sum(-1, keepdims=True))
        weights = tilted(padded, slopes, z**2 / 2)
        ends.append(divide((weights * x).sum(-1), weights.sum(-1)).mean())
    return ends[0], ends[1]


def _end(
    found: _MeanAndError,
    x: Array,
    amounts: Array,
    numbers: Array | None,
    z: float,
    sign: int,
    bound: float,
) -> Array:
    """Return the end of the interval towards the bound, the upper one if the sign is 1: the extreme
    mean of the values, and of a third of an example more at the bound, that is likely enough.
    """
    share = xp.ones_like(found.mean)
    if found.moves is not None:
        share = effective_share(found.independent, found.error, found.total, found.number, z)
        farthest = (sign * found.moves).argmax(-1)[..., None]
        amounts = amounts * (1 + ADDED_OF_CLUSTER * (numbers == farthest)) * share[..., None]
    more = xp.full_like(amounts[..., :1], ADDED, shape=(*amounts.shape[:-1], 1))
    counts = xp.concatenate([amounts, more], -1)
    slopes = sign * xp.concatenate([x, xp.full_like(more, bound)], -1)
    weights = tilted(counts[..., None, :], slopes[..., None, :], z**2 / 2)[..., 0, :]
    extreme = sign * divide((weights * slopes).sum(-1), weights.sum(-1))
    return xp.where(share > 0, extreme, xp.nan)
