"""Comparison of systems by a score for each item, such as 0 or 1 or a grade; greater is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._arguments.indices import check_order, is_labelled, named_systems
from jaxmetrics._arguments.keys import Key, KeyLike, place
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_float,
    as_mask,
    check_examples,
    check_flag,
    check_level,
    largest_eps,
    refuse_where,
    shapes_of,
)
from jaxmetrics._numerics.arithmetic import divide, matmul
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, is_known, on_device, xp
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.clusters import kish_number, numbered_clusters, sums_by_cluster
from jaxmetrics.comparisons.classifiers import Comparison, by_halves, check_rope, mover
from jaxmetrics.comparisons.leaderboards import Leaderboard, ranked
from jaxmetrics.estimates import Estimate, normal_estimate, normal_quantile, with_level
from jaxmetrics.intervals.checks import check_num_samples, nan_unless
from jaxmetrics.intervals.means import check_bounds, clipped, mean_estimate, refuse_beyond
from jaxmetrics.intervals.strata import Strata, mean_of_groups

__all__ = ["compare_scores", "score_leaderboard"]

_INFINITE = "but scores must be finite. NaN marks a missing score."


@on_host_if_small
def compare_scores(
    a: ArrayLike,
    b: ArrayLike,
    *,
    bounds: tuple[float, float] | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    where: ArrayLike | None = None,
    paired: bool = True,
    level: float = 0.95,
    rope: ArrayLike = 0.0,
) -> Comparison:
    """Compare the mean scores of two systems, such as language models, on the same items.

    Without bounds, the intervals are Student's t intervals (`mean_interval`). With bounds, they are
    empirical likelihood intervals, which are more accurate for few items, for a mean near a bound,
    or if few items have different scores. For the interval of the difference see the top of the
    file `jaxmetrics/intervals/means.py`. For scores 0 and 1, it equals `interval` of
    `difference(accuracy)`; with clusters, `interval` is up to 15 % wider, because it adds a part of
    a cluster. Source: Miller (2024), Adding error bars to evals, arXiv 2411.00640, section 4.

    For independent scores, such as accuracies of training runs, `paired=False` computes Welch's
    interval (1947, Biometrika 34) or, with bounds, combines the two likelihood intervals by MOVER
    (Zou and Donner, 2008, Statistics in Medicine 27).

    Args:
        a, b: scores `(..., n)` of the same items in the same order. Greater scores are better. An
            item is ignored if one of its scores is NaN, or infinite in JAX arrays.
        bounds: the least and the greatest possible score, such as (0, 1) for wrong and correct.
            Leave it out if all scores are similar and far from the bounds.
        clusters: `(..., n)`, ids of clusters, such as texts with several questions. Items with the
            same id may be correlated. Different clusters must be independent.
        where: bool, `(..., n)`. Items for which `where` is False are ignored.
        paired: False if the scores of A and B, which may differ in number, are independent. It
            cannot be used with `clusters` and `where`.
        level: the confidence level.
        rope: the largest difference that does not matter to you, a number >= 0.

    Returns:
        `Comparison` of shape `(...)`, NaN if no item has scores of both systems. Its probabilities
        come from Student's t distribution. With bounds, they come from a two-piece normal
        distribution whose two halves are fitted to the two ends of the interval.

    Raises:
        ValueError: if numbers of items differ, if scores are infinite or beyond the bounds (under
            jit, the result is NaN instead), or if an option is invalid.

    >>> a, b = [1, 1, 0, 1, 1] * 20, [1, 0, 0, 1, 1] * 20
    >>> compare_scores(a, b, bounds=(0, 1)).difference
    0.200 [0.124, 0.288]
    >>> compare_scores([0.74, 0.77, 0.75], [0.71, 0.73, 0.70, 0.71], paired=False).difference
    0.041 [0.010, 0.071]
    """
    width, z = check_rope(rope), normal_quantile(level)
    check_bounds(bounds)
    method = "student" if bounds is None else "likelihood"
    if not check_flag(paired, "paired"):
        if where is not None or clusters is not None:
            raise ValueError(
                "paired=False cannot be used with where or clusters: pass only the scores that"
                " count, and the mean score of each cluster."
            )
        found = with_level(_unpaired(a, b, bounds, z, width), level, method)
        if bounds is None:
            return found
        return found._replace(difference=replace(found.difference, method="mover"))
    check_order(a=a, b=b, where=where, clusters=clusters)
    arrays, mask = (as_array(a, "a"), as_array(b, "b")), as_mask(where)
    systems = as_float(arrays[0], "a"), as_float(arrays[1], "b")
    m, n = (x.shape[-1:] for x in systems)
    if m != n and m and n:
        raise ValueError(
            f"a and b must be scores of the same items, got {m[0]} and {n[0]} scores. If they are"
            " independent, such as those of different training runs, pass paired=False."
        )
    check_examples(shapes_of(a=systems[0], b=systems[1], where=mask))
    for name, array in zip("ab", systems, strict=True):
        refuse_where(np.isinf, array, name, _INFINITE, mask)
    (x, y), shared = _without_missing(systems, mask)
    eps = largest_eps(*arrays)
    if bounds is not None:
        refuse_beyond(bounds, x, "a", shared, eps=eps)
        refuse_beyond(bounds, y, "b", shared, eps=eps)
        # Otherwise, two rounding errors could add up in the difference.
        x, y = _clipped((x, y), bounds=bounds, eps=eps)
    estimate = partial(mean_estimate, z=z, where=shared, clusters=clusters)
    of_a, of_b = estimate("a", x, bounds=bounds), estimate("b", y, bounds=bounds)
    limits = bounds_of_difference(bounds)
    difference = estimate("a - b", x - y, bounds=limits, is_difference=True)
    freedom = None
    if bounds is None:
        sizes = shared.astype(x.dtype)
        if clusters is not None:
            sizes = sums_by_cluster(sizes, *numbered_clusters(clusters, sizes.shape))
        freedom = kish_number(sizes) - 1
    compared = by_halves(of_a, of_b, difference, z, width, freedom)
    return with_level(compared, level, method)


def _unpaired(
    a: ArrayLike, b: ArrayLike, bounds: tuple[float, float] | None, z: float, rope: Array
) -> Comparison:
    """Compare the means of independent scores."""
    estimates = []
    for name, given in (("a", a), ("b", b)):
        array = as_array(given, name)
        x, eps = as_float(array, name), largest_eps(array)
        refuse_where(np.isinf, x, name, _INFINITE)
        known = xp.isfinite(x)
        estimates.append(mean_estimate(name, x, z=z, where=known, bounds=bounds, eps=eps))
    of_a, of_b = estimates
    if of_a.value.shape != of_b.value.shape:
        shapes = f"{of_a.value.shape} and {of_b.value.shape}"
        raise ValueError(f"a and b must have the same batch axes, got {shapes}.")
    return _compared_means(of_a, of_b, z, rope, has_bounds=bounds is not None)


@compiled
def _compared_means(
    of_a: Estimate, of_b: Estimate, z: Array | float, rope: Array, *, has_bounds: bool
) -> Comparison:
    gap, t, freedom = xp.asarray(of_a.value - of_b.value), z, None
    v, w = (x.standard_error**2 for x in (of_a, of_b))
    if not has_bounds:
        m, n = (xp.asarray(x.num_examples) - 1 for x in (of_a, of_b))
        freedom = divide((v + w) ** 2, divide(v**2, m) + divide(w**2, n), 1.0)
        t = student_quantile(z, freedom)
    difference = normal_estimate(gap, xp.sqrt(v + w), t)
    if has_bounds:
        difference = mover(of_a, of_b, difference)
    return by_halves(of_a, of_b, difference, z, rope, freedom)


def bounds_of_difference(bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the bounds of the difference of two scores that have the given bounds."""
    return None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])


def score_leaderboard(
    scores: ArrayLike | Mapping[str, Any],
    *,
    bounds: tuple[float, float] | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    groups: ArrayLike | Sequence[Any] | None = None,
    where: ArrayLike | None = None,
    key: KeyLike = 0,
    num_samples: int = 2000,
    level: float = 0.95,
) -> Leaderboard:
    """Rank systems by their mean scores on the same items.

    Ranks, tiers, `probability_best` and `winner_estimate` are computed as in `leaderboard`.

    Args:
        scores: `(M, n)`, one row for each system; or a dict of rows, or a data frame with a column
            for each system, whose names are printed. Greater scores are better. An item is ignored
            if one of its scores is NaN. Infinite scores raise ValueError, and are ignored in JAX
            arrays.
        bounds: the least and the greatest possible score, such as (0, 1) for wrong and correct.
            Leave it out if all scores are similar and far from the bounds (see `mean_interval`).
        clusters: `(n,)`, ids of clusters, such as texts with several questions. Items with the same
            id may be correlated. Different clusters must be independent.
        groups: `(n,)`, the id of a group, such as a task, for each item. If groups are given,
            systems are ranked by the unweighted mean of their group means, and scores must be NumPy
            arrays.
        where: bool, `(n,)`. Items for which `where` is False are ignored.
        key: a JAX key, an int seed, or a NumPy Generator (only if scores are NumPy arrays).
        num_samples: number of random draws for `probability_best` and for the test of all pairs.
        level: the confidence level of each estimate, and of all intervals of ranks together.

    Returns:
        `Leaderboard`. If no groups are given, each estimate is computed by `mean_interval`.

    Raises:
        ValueError: if `scores` is not of shape `(M, n)`, if fewer than two items (or clusters) have
            scores of all systems, if scores lie outside of the bounds (under jit, the result is NaN
            instead), if `num_samples` is below 2, or if `level` lies outside of (0, 1).

    >>> scores = [[1, 1, 0, 1, 1] * 20, [0, 1, 0, 1, 1] * 20, [1, 0, 0, 0, 1] * 20]
    >>> board = score_leaderboard(scores, bounds=(0, 1))
    >>> board.tiers.tolist()
    [1, 2, 3]
    >>> board.estimates
    3 estimates: 0.800 [0.712, 0.871]; 0.600 [0.500, 0.694]; 0.400 [0.306, 0.500]
    """
    rows, names = named_systems(scores)
    check_order(scores=rows, where=where, clusters=clusters, groups=groups)
    level = check_level(level)
    check_bounds(bounds)
    size = check_num_samples(num_samples)
    x, eps = _rows_of_systems(rows), largest_eps(as_array(rows, "scores"))
    mask = as_mask(where)
    if mask is not None and mask.shape != x.shape[1:]:
        raise ValueError(f"where must have shape (n,) = {x.shape[1:]}, got {mask.shape}.")
    refuse_where(np.isinf, x, "scores", _INFINITE, mask)
    x, shared = _without_missing(x, mask)
    z, numbers, number = normal_quantile(level), None, 0
    if clusters is not None:
        numbers, number = numbered_clusters(clusters, x.shape[1:])
    units = shared if numbers is None else sums_by_cluster(shared, numbers, number)
    if is_known(units) and np.count_nonzero(units) < 2:
        raise ValueError(
            "A ranking needs at least two items, or two clusters of items, for which all systems"
            f" have scores, got {np.count_nonzero(units)}."
        )
    placed_key, x, shared = place(key, x, shared)
    options: Any = {"bounds": bounds, "size": size, "level": level}
    if groups is not None:
        if on_device(x):
            raise TypeError(
                "If groups is given, scores must be a NumPy array, got JAX arrays. Pass"
                " np.asarray(scores)."
            )
        refuse_beyond(bounds, x, "scores", shared, eps=eps)
        x = x if bounds is None else clipped(x, bounds, eps)
        ids, _ = numbered_clusters(groups, x.shape[1:], "groups")
        strata = Strata.of(ids[shared], None if numbers is None else numbers[shared])
        board = _leaderboard_of_groups(placed_key, x[:, shared], strata, z, **options)
        method = "mover" if bounds is None else "likelihood"
    else:
        limits: Any = {"bounds": bounds, "eps": eps}
        estimates = mean_estimate("scores", x, z=z, where=shared, clusters=clusters, **limits)
        board = _score_leaderboard(
            placed_key, x, shared, numbers, estimates, num_clusters=number, **options
        )
        method = "student" if bounds is None else "likelihood"
    board = with_level(board, level, method)
    board.names = names
    return board


def _rows_of_systems(scores: ArrayLike) -> Array:
    """Convert scores `(M, n)` to floats."""
    x = as_float(scores, "scores")
    if x.ndim != 2 or len(x) == 0:
        raise ValueError(
            f"scores must have shape (M, n), with one row for each system, got {x.shape}."
        )
    if is_labelled(scores):
        raise ValueError(
            "scores must be an array or a list with one row for each system, got a data frame. Pass"
            " scores.to_numpy().T if each column is a system, or scores.to_numpy() if each row is a"
            " system."
        )
    return x


@compiled
def _clipped(
    systems: tuple[Array, Array], *, bounds: tuple[float, float], eps: float
) -> tuple[Array, ...]:
    return tuple(clipped(x, bounds, eps) for x in systems)


@compiled
def _without_missing(
    systems: Array | tuple[Array, Array], mask: Array | None
) -> tuple[Array, Array]:
    """Return scores, with 0 for items without scores of all systems, and which items have them."""
    x = xp.stack(xp.broadcast_arrays(*systems)) if isinstance(systems, tuple) else systems
    shared = xp.isfinite(x).all(0) & (True if mask is None else mask)
    return xp.where(shared, x, 0), shared


@compiled
def _score_leaderboard(
    key: Key,
    x: Array,
    shared: Array,
    numbers: Array | None,
    estimates: Estimate,
    *,
    bounds: tuple[float, float] | None,
    num_clusters: int,
    size: int,
    level: float,
) -> Leaderboard:
    total = shared.sum()
    own = divide(xp.where(shared, x - estimates.value[:, None], 0), total)
    raw = divide(x, total)
    factor: Array | int = 1
    if numbers is not None:
        held = sums_by_cluster(shared, numbers, num_clusters) > 0
        own, raw = (sums_by_cluster(u, numbers, num_clusters) for u in (own, raw))
        factor = divide(held.sum(), held.sum() - 1)
    span: Array | float
    if bounds is None:
        span = xp.where(shared, x, -xp.inf).max() - xp.where(shared, x, xp.inf).min()
    else:
        span = bounds[1] - bounds[0]
    products = matmul(own, own.T), matmul(raw, raw.T)
    moves = factor * products[0], products, divide(span, total)
    board = ranked(key, estimates, *moves, size=size, level=level)
    return nan_unless(total > 1, _within(bounds, board))


def _leaderboard_of_groups(
    key: Key,
    x: np.ndarray,
    strata: Strata,
    z: float,
    *,
    bounds: tuple[float, float] | None,
    size: int,
    level: float,
) -> Leaderboard:
    """Rank systems by the mean of group means, from the items that have scores of all systems."""
    rows = [mean_of_groups(row, strata, bounds=bounds, z=z) for row in x]
    estimates = trees.map(lambda *values: np.stack(values), *rows)
    centred, num_units = strata.centred(x), int(strata.units.max()) + 1
    own, raw = (sums_by_cluster(u, strata.units, num_units) for u in (centred, strata.weights * x))
    scaled = np.nan_to_num(strata.by_unit(centred))  # NaN if a stratum has one unit
    span = bounds[1] - bounds[0] if bounds else np.ptp(x)
    products = matmul(own, own.T), matmul(raw, raw.T)
    moves = matmul(scaled, scaled.T), products, span * strata.weights.max()
    return _within(bounds, ranked(key, estimates, *moves, size=size, level=level))


def _within(bounds: tuple[float, float] | None, board: Leaderboard) -> Leaderboard:
    """Restrict the winner's corrected interval to the bounds."""
    if bounds is None:
        return board
    winner = board.winner_estimate
    least = xp.asarray(bounds[0], winner.low.dtype)
    winner = replace(winner, low=xp.maximum(winner.low, least))
    return board._replace(winner_estimate=winner)
