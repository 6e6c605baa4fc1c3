"""Comparison of two areas under the ROC curve on the same examples."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, special, xp
from jaxmetrics._validation import ArrayLike, as_array, check_examples
from jaxmetrics.estimates import Estimate, normal_quantile
from jaxmetrics.ranking.areas import area_estimate, placement_values
from jaxmetrics.ranking.ranks import Ranked, rank, restore

__all__ = ["DeLong", "delong"]


class DeLong(NamedTuple):
    """Hold two areas under the ROC curve, their difference A - B, and the test that it is 0."""

    a: Estimate
    b: Estimate
    difference: Estimate
    statistic: Array
    p_value: Array


def delong(
    y_true: ArrayLike, y_score_a: ArrayLike, y_score_b: ArrayLike, *, level: float = 0.95
) -> DeLong:
    """Compare two areas under the ROC curve by DeLong's test.

    An area is the share of pairs of a positive and a negative example whose scores are in order,
    ties counting half. With V_i the share of negatives below positive i, and W_j of positives above
    negative j, the variance of an area is `var(V) / n1 + var(W) / n0`; that of the difference A - B
    likewise from the differences of the shares. DeLong, DeLong and Clarke-Pearson (1988),
    Biometrics 44; the shares by ranks, in O(n log n): Sun and Xu (2014), IEEE Signal Processing
    Letters 21.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; negative labels leave their examples out.
        y_score_a, y_score_b: real numbers, `(..., n)`.

    Returns:
        `DeLong`; `statistic` is the difference over its error, `p_value` two-sided and normal. NaN
        without two positives and two negatives, on the device also where a score that counts is
        NaN. An error of 0 makes p 1 without a difference, else 0.

    Raises:
        ValueError: unequal lengths, a level outside of (0, 1), and what `roc_auc` refuses.

    >>> result = delong([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9], [0.2, 0.6, 0.1, 0.7, 0.5])
    >>> result.a.value.round(4), result.b.value.round(4)
    (np.float64(0.8333), np.float64(0.5))
    """
    z = normal_quantile(level)
    scores = {
        "y_score_a": as_array(y_score_a, "y_score_a"),
        "y_score_b": as_array(y_score_b, "y_score_b"),
    }
    check_examples(
        {"y_true": np.shape(y_true), **{name: score.shape for name, score in scores.items()}}
    )
    first, second = (rank(y_true, score, name=name) for name, score in scores.items())
    return _delong(first, second, z)


@compiled
def _delong(first: Ranked, second: Ranked, z: float) -> DeLong:
    of_first, of_second = (
        restore(placement_values(ranked), ranked.position) for ranked in (first, second)
    )
    positive, negative = (
        restore(group, first.position) > 0 for group in (first.positive, first.negative)
    )
    a, b, difference = (
        area_estimate(shares, positive, negative, z)
        for shares in (of_first, of_second, of_first - of_second)
    )
    error = difference.standard_error
    certain = xp.where(difference.value == 0, 0, xp.inf * xp.sign(difference.value))
    statistic = xp.where(error == 0, certain, difference.value / xp.where(error == 0, 1, error))
    return DeLong(a, b, difference, statistic, 2 * special.ndtr(-xp.abs(statistic)))
