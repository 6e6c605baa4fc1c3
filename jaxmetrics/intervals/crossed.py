"""Intervals of means of scores that are crossed: several seeds, each scored on the same items.

S seeds and N items are samples, and a score is the sum of the mean, an effect of its seed, an
effect of its item, and the rest, which is called the interaction. The variances of the effects are
estimated by two-way analysis of variance, `(MS_seeds - MS_interaction) / N` for seeds, where MS are
mean squares. Negative estimates become 0. Source: Searle, Casella and McCulloch (1992), Variance
Components, chapter 4.

The squared distance from the mean to an end of the interval is

    D^2 + max(t^2 MS_seeds - u^2 MS_interaction, 0) / (S N).

Here D is the distance from the mean to this end of `mean_interval` of the N item means, and t and u
are quantiles of Student's t distribution with S - 1 and (S - 1) (N - 1) degrees of freedom. The
interaction is subtracted because the item means contain it, too. Squared distances are added as in
MOVER, the method of variance estimates recovery (Zou and Donner, 2008, Statistics in Medicine 27).
If bounds are given, the distance for seeds, the root of the second term, is computed on the logit
scale.

In simulations with 3 to 20 seeds and 20 to 1000 items (`python -m bench simulations --rows "seeds
and items"`), the coverage of the 95 % interval was 93.3 to 99.5 %. For scores in [0, 1] without
bounds, it was 87 to 99 %, and for `mean_interval` of the item means 25 to 98 %. If a seed
fails with probability 1/5, half of all sets of three seeds contain no failure, and their intervals
do not contain the mean.

If items are dependent, such as questions about the same text, average the scores of each text, and
pass the texts as items. For a metric of counts, such as macro F1, the score of an item is the
metric plus N times its derivative with respect to the count to which the item belongs: the mean
score of a seed is then the metric. In simulations of macro F1 with 3 to 12 seeds (`--rows "macro F1
of seeds"`), the coverage was 93.5 to 98.2 %.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import replace
from functools import reduce

import numpy as np

from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_float,
    is_integer,
    largest_eps,
    refuse_where,
)
from jaxmetrics._numerics.arithmetic import divide, safe_sqrt
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._text.printing import Printed
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.estimates import normal_quantile, with_level
from jaxmetrics.intervals.means import check_bounds, clipped, mean_estimate, refuse_beyond

__all__ = ["crossed_interval"]


class CrossedInterval(Printed, namedtuple("_CrossedInterval", "mean seeds items interaction")):
    """Mean score over seeds and items, and variances of a score, returned by `crossed_interval`.

    For s seeds and n items, the standard error of the mean is the square root of
    `seeds / s + items / n + interaction / (s n)`, unless a negative estimate of `items` was
    replaced by 0.

    Attributes:
        mean: the mean, with its interval for new seeds and new items.
        seeds: variance between seeds, the variance of the expected scores of the trained systems.
        items: variance between items, the variance of the expected scores of the items.
        interaction: the rest of the variance of a score, which depends on both seed and item.
    """

    __slots__ = ()
    _plural = "means"


@on_host_if_small
def crossed_interval(
    scores: ArrayLike,
    others: ArrayLike | None = None,
    *,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> CrossedInterval:
    """Compute a confidence interval of a mean score for new seeds and new items.

    A system is trained with S seeds, and each trained system is scored on the same N items. The
    interval is for the expected score if the system is trained again and scored on new items. For
    the S trained systems only, `mean_interval` of the item means is narrower. For the formulas and
    the coverage, dependent items and metrics such as macro F1, see `jaxmetrics.intervals.crossed`.

    Args:
        scores: real numbers of shape `(..., S, N)`, one row for each seed.
        others: scores `(..., S, N)` of a second system on the same items. The interval is then for
            the difference, scores - others. Seeds of the two systems must be independent, and their
            numbers may differ. If seeds are paired, for example because each seed selects the
            training data, pass the differences of the scores as `scores`.
        bounds: least and greatest possible score, such as (0, 1) for wrong and correct. The
            interval then lies within the bounds, or within the bounds of differences.
        level: the confidence level.

    Returns:
        `CrossedInterval` of shape `(...)`, with the attributes `mean`, an `Estimate`, and `seeds`,
        `items` and `interaction`, the variances of a single score. For two systems, `seeds` and
        `interaction` are sums over both. With one seed or one item, the ends are NaN.

    Raises:
        TypeError, ValueError: if scores are not real numbers of shape `(..., S, N)`, if the numbers
            of items differ, if a score is NaN, infinite or beyond the bounds (under jit, the result
            is NaN instead), if integers without bounds may be class ids, or if an option is
            invalid. More seeds than items give a warning.

    >>> import numpy as np
    >>> rng = np.random.default_rng(4)
    >>> chance = 0.75 + 0.05 * rng.normal(size=(5, 1)) + 0.2 * rng.uniform(-1, 1, 400)
    >>> scores = rng.random((5, 400)) < chance  # 5 seeds, 400 items
    >>> found = crossed_interval(scores, bounds=(0, 1))
    >>> found.mean
    0.761 [0.676, 0.830]
    >>> found.seeds.round(4), found.items.round(4), found.interaction.round(4)
    (np.float64(0.0033), np.float64(0.0154), np.float64(0.1639))
    >>> others = rng.random((3, 400)) < 0.8  # of another system, with 3 seeds
    >>> crossed_interval(scores, others, bounds=(0, 1)).mean
    -0.022 [-0.102, 0.058]
    """
    check_order(scores=scores, others=others)
    check_bounds(bounds)
    arrays = {"scores": as_array(scores, "scores")}
    if others is not None:
        arrays["others"] = as_array(others, "others")
    systems, eps = [], largest_eps(*arrays.values())
    for name, array in arrays.items():
        x = as_float(array, name)
        systems.append(x)
        if x.ndim < 2 or 0 in x.shape or x.shape[-1] != systems[0].shape[-1]:
            raise ValueError(
                "scores, and others if given, must have shape (..., S, N) for S seeds and the same"
                f" N items, got {' and '.join(str(np.shape(x)) for x in arrays.values())}."
            )
        message = "but scores must be finite. Leave out items without scores of all seeds."
        refuse_where(lambda x: ~np.isfinite(x), x, name, message)
        refuse_beyond(bounds, x, name, eps=eps)
        if bounds is None and is_integer(array):
            message = (
                "but scores of an integer dtype must be 0 and 1, or bounds must be given. If"
                f" {name} are predicted classes, pass y_pred == y_true. If they are grades, pass"
                f" bounds. If they are other numbers, pass {name}.astype(float)."
            )
            refuse_where(lambda x: (x > 1) & (x.min() == 0), array, name, message)
        if x.shape[-2] > x.shape[-1]:
            warn(
                f"{name} has {x.shape[-2]} rows and only {x.shape[-1]} columns, but each row is a"
                f" seed and each column is an item. If each row is an item, pass {name}.T."
            )
    found = _crossed_interval(tuple(systems), normal_quantile(level), bounds=bounds, eps=eps)
    return with_level(found, level, "student" if bounds is None else "likelihood")


@compiled
def _crossed_interval(
    systems: tuple[Array, ...], z: float, *, bounds: tuple[float, float] | None, eps: float
) -> CrossedInterval:
    largest: Array | float = 1.0
    if bounds is None:
        # Squares of the scores might overflow or underflow.
        largest = reduce(xp.maximum, (xp.abs(x).max((-2, -1)) for x in systems))
        systems = tuple(divide(x, largest[..., None, None]) for x in systems)
    else:
        systems = tuple(clipped(x, bounds, eps) for x in systems)
    means, *subtracted = (x.mean(-2) for x in systems)
    if subtracted:
        means = means - subtracted[0]
        bounds = bounds and (bounds[0] - bounds[1], bounds[1] - bounds[0])
    over_items = mean_estimate("scores", means, z=z, bounds=bounds, is_difference=bool(subtracted))
    n, variance = means.shape[-1], over_items.standard_error**2
    parts = (_parts(x, z) for x in systems)
    seeds, interaction, of_seeds, of_items, squares = map(sum, zip(*parts, strict=True))
    error, items = safe_sqrt(variance + of_seeds), xp.maximum(n * variance - of_items, 0)
    value, reach = over_items.value, safe_sqrt(squares)
    down, up = reach, reach
    if bounds is not None:
        width = bounds[1] - bounds[0]
        p = (value - bounds[0]) / width
        scale = width * p * (1 - p)
        # p - expit(logit(p) - x) is p (1 - p) v / (1 - p v) with v = 1 - exp(-x). At a bound, the
        # reach is 0 or NaN.
        v = -xp.expm1(-divide(reach, scale, reach))
        down, up = scale * v / (1 - p * v), scale * v / (1 - (1 - p) * v)
    low = value - safe_sqrt((value - over_items.low) ** 2 + down**2)
    high = value + safe_sqrt((over_items.high - value) ** 2 + up**2)
    low, high = xp.clip(xp.stack([low, high]), *(bounds or (-np.inf, np.inf)))
    value, low, high, error = (largest * x for x in (value, low, high, error))
    mean = replace(over_items, value=value, low=low, high=high, standard_error=error)
    return CrossedInterval(mean, *(largest * x * largest for x in (seeds, items, interaction)))


def _parts(x: Array, z: float) -> tuple[Array, ...]:
    """Return the variances of seeds and of the interaction, the part of the former in the variance
    of the mean and of the latter in the variance of item means, and the term of the interval.
    """
    *_, s, n = x.shape
    freedom = s - 1.0, (s - 1.0) * (n - 1)
    centred = x - x.mean(-2, keepdims=True)
    sums = n * (centred.mean(-1) ** 2).sum(-1), n * centred.var(-1).sum(-1)
    of_seeds, rest = (divide(x, nu, xp.nan) for x, nu in zip(sums, freedom, strict=True))
    t, u = (student_quantile(z, nu) for nu in freedom)
    seeds = xp.maximum(of_seeds - rest, 0) / n
    squares = xp.maximum(t**2 * of_seeds - u**2 * rest, 0) / (s * n)
    return seeds, rest, seeds / s, rest / s, squares
