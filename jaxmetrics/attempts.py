"""Pass@k and related scores if each item has several attempts, such as answers of a language model.

The functions estimate a score for each item from r attempts, without bias. Pass these scores to
`score_report` or `score_leaderboard` for confidence intervals over items.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from jaxmetrics._arguments.single import ArrayLike, as_float, check_option, check_size, refuse_where
from jaxmetrics._numerics.arithmetic import divide, safe_sqrt
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, lax, xp

__all__ = ["pass_at_k", "score_variance"]


def pass_at_k(
    scores: ArrayLike, k: int, *, rule: Literal["any", "all", "majority"] = "any"
) -> Array:
    """Estimate pass@k, pass^k or majority@k: any, all or most of k attempts at an item are correct.

    If c of r attempts are correct, pass@k is `1 - C(r - c, k) / C(r, k)` and pass^k is
    `C(c, k) / C(r, k)`, where `C(a, b)` is a binomial coefficient. These estimates are unbiased.
    For intervals of means over items, pass the estimates to `score_report` with `bounds=(0, 1)`. It
    leaves out items with fewer than k attempts, and says how many there are and what the mean of
    all items is in the worst case. Other functions of scores leave them out without a word, or
    refuse them (`mean_interval`).

    Args:
        scores: r attempts at each of n items, of shape `(..., n, r)`: 1 or True for a correct
            attempt, 0 for a wrong one, NaN for a missing one.
        k: number of attempts, at most r.
        rule: `"any"` for pass@k, at least one correct attempt (Chen et al., 2021, arXiv
            2107.03374). `"all"` for pass^k, k correct attempts (Yao et al., 2024, arXiv
            2406.12045). `"majority"` for majority@k, more than k/2 correct attempts, where exactly
            k/2 correct attempts count half.

    Returns:
        Probabilities of shape `(..., n)`. The probability of an item with fewer than k attempts is
        NaN.

    Raises:
        TypeError, ValueError: if `scores` has fewer than two axes, if a score is not 0, 1 or NaN
            (under jit, the result is NaN instead), if `k` is not an integer from 1 to r, or if
            `rule` is unknown.

    >>> scores = [[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    >>> pass_at_k(scores, 2).round(3).tolist()
    [0.833, 0.0, 1.0]
    >>> pass_at_k(scores, 2, rule="all").round(3).tolist()
    [0.167, 0.0, 1.0]
    >>> import jaxmetrics as jm
    >>> nan = float("nan")
    >>> passed = pass_at_k([*scores * 30, [1, nan, nan, nan]], 2)
    >>> print(jm.score_report(passed, bounds=(0, 1)).to_text())  # doctest: +ELLIPSIS
    90 items, 1 ignored, score
    ...
    91 items is at least 0.604 [0.509, 0.692] and at most 0.615 [0.520, 0.702],
    ...
    """
    check_size(k, "k")
    check_option(rule, "rule", ("any", "all", "majority"))
    x = _attempts(scores)
    if k > x.shape[-1]:
        raise ValueError(
            f"k must be at most {x.shape[-1]}, which is the number of attempts in scores, got {k}."
        )
    refuse_where(lambda x: (x != 0) & (x != 1) & ~np.isnan(x), x, "scores", "expected 0, 1 or NaN.")
    correct = np.arange(k + 1)
    shares = {
        "any": (correct > 0) * 1.0,
        "all": (correct == k) * 1.0,
        "majority": (1 + np.sign(2 * correct - k)) / 2,
    }[rule]
    return _expected_share(x, shares)


@compiled
def _expected_share(x: Array, shares: np.ndarray) -> Array:
    """Return the expected share `(..., n)` of k of the attempts, if c correct of them give share c.

    The number of correct attempts among k has a hypergeometric distribution.
    """
    made, correct = ~xp.isnan(x), np.arange(len(shares))
    right, number = xp.where(made, x, 0).sum(-1), made.sum(-1).astype(x.dtype)

    def draw(i: Array, chances: Array) -> Array:
        is_right = xp.clip(divide(right[..., None] - correct, number[..., None] - i), 0, 1)
        hits = (chances * is_right)[..., :-1]
        return chances * (1 - is_right) + xp.pad(hits, [(0, 0)] * right.ndim + [(1, 0)])

    # A function of `number`, because the loop would be unrolled if it started from a NumPy array.
    start = xp.where(correct == 0, xp.ones_like(number)[..., None], 0)
    chances = lax.fori_loop(0, len(shares) - 1, draw, start)
    expected = (chances * shares.astype(x.dtype)).sum(-1)
    is_valid = (~made | (x == 0) | (x == 1)).all(-1) & (number >= len(shares) - 1)
    # By rounding, probabilities may sum to more than 1, which is beyond the bounds of means.
    return xp.where(is_valid, xp.minimum(expected, 1), xp.nan)


class ScoreVariance(NamedTuple):
    """Variance of scores between items and within items, as returned by `score_variance`.

    Attributes:
        items: variance between items, the variance of their expected scores.
        attempts: variance within items, the variance of the attempts at the same item.
    """

    items: Array
    attempts: Array

    def standard_error(self, num_items: int, num_attempts: int) -> Array:
        """Return the standard error of the mean score for any numbers of items and attempts per
        item: `sqrt((items + attempts / num_attempts) / num_items)`.
        """
        check_size(num_items, "num_items")
        check_size(num_attempts, "num_attempts")
        error: Array = safe_sqrt((self.items + self.attempts / num_attempts) / num_items)
        return error[()]  # converts an array of shape () to a number


@compiled
def score_variance(scores: ArrayLike) -> ScoreVariance:
    """Split the variance of scores into variance between items and variance within items.

    The result shows whether more items or more attempts would narrow the confidence interval of the
    mean score. Its method `standard_error(num_items, num_attempts)` returns the standard error of
    the mean score for any numbers of items and attempts per item.

    The estimates are those of one-way analysis of variance with random effects. The attribute
    `attempts` is the variance v within items: the pooled sample variance of the attempts at each
    item. The attribute `items` is the variance between items: the sample variance of the item means
    minus `v * mean(1 / r)`, or 0 if this is negative. Source: Searle, Casella and McCulloch (1992),
    Variance Components.

    Args:
        scores: scores of r attempts at each of n items, of shape `(..., n, r)`, on any scale. NaN
            stands for a missing attempt. To compare two systems, pass the differences of their
            scores, `a - b`.

    Returns:
        `ScoreVariance` of shape `(...)`. Variances are NaN if there are fewer than two items, or if
        no item has two attempts.

    Raises:
        TypeError, ValueError: if `scores` are not real numbers or have fewer than two axes.

    >>> variance = score_variance([[1, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 1]])
    >>> variance.items.round(3), variance.attempts.round(3)
    (np.float64(0.146), np.float64(0.146))
    >>> variance.standard_error(1000, 1).round(4), variance.standard_error(1000, 8).round(4)
    (np.float64(0.0171), np.float64(0.0129))
    """
    x = _attempts(scores)
    made = ~xp.isnan(x)
    x, number = xp.where(made, x, 0), made.sum(-1).astype(x.dtype)
    seen = number > 0
    means = divide(x.sum(-1), number)
    squares = xp.where(made, (x - means[..., None]) ** 2, 0).sum((-2, -1))
    attempts = divide(squares, xp.maximum(number - 1, 0).sum(-1), xp.nan)
    size = seen.sum(-1).astype(x.dtype)
    centre = divide((seen * means).sum(-1), size)
    spread = (seen * (means - centre[..., None]) ** 2).sum(-1)
    between = divide(spread, xp.maximum(size - 1, 0), xp.nan)
    noise = attempts * divide(divide(1.0, xp.where(seen, number, xp.inf)).sum(-1), size)
    return ScoreVariance(xp.maximum(between - noise, 0), attempts)


def _attempts(scores: ArrayLike) -> Array:
    x = as_float(scores, "scores")
    if x.ndim < 2:
        raise ValueError(
            f"scores must have shape (..., n, r) for n items with r attempts each, got {x.shape}."
        )
    return x
