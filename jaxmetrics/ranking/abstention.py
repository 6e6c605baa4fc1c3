"""Abstention: the error rate of a classifier that answers only if its confidence is high enough.

At threshold t, an example is answered if `confidence >= t`. The coverage is the fraction of
examples that are answered, and the risk is the error rate among them.

The interval of the accuracy at a coverage c is for the population: it covers the accuracy among the
fraction c of examples with the highest confidence. The threshold is estimated from the same
examples, so that its coverage in the population is c ± s with `s = sqrt(c (1 - c) / n)`. Each
distance from the accuracy A to an end is the square root of the sum of two squares (MOVER; Zou and
Donner, 2008, Statistics in Medicine 27): the distance from A to the end of the likelihood interval
of a proportion of the answered examples, and the largest distance in this direction from A to the
accuracies at the coverages `c - z s` and `c + z s`, where z is the normal quantile. The interval
therefore also covers the accuracy of new examples at the threshold that was found. In simulations
with 50 to 2000 examples (`bench/studies/areas.py`), the coverage of the 95 % interval was 94 to
98 %. It is lower if many examples have equal confidence and the coverage c is just reached by a
group of them, because the accuracy then jumps at c.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import (
    IGNORED,
    INT32_MAX,
    ArrayLike,
    as_class_ids,
    as_float,
    as_mask,
    as_number,
    check_examples,
    check_level,
    require,
)
from jaxmetrics._numerics.arithmetic import divide, safe_sqrt
from jaxmetrics._places.compilation import compiled, on_host_if_small
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics.estimates import Estimate, normal_quantile
from jaxmetrics.intervals.proportions import proportion_interval
from jaxmetrics.ranking.ranks import Ranked, cumulative_sum, points, rank

__all__ = ["RiskCoverage", "risk_coverage"]


class RiskCoverage(NamedTuple):
    """Risk-coverage curve, as returned by `risk_coverage`.

    Attributes:
        coverage: increasing fractions of answered examples, of shape `(..., n + 1)`.
        risk: error rate among the answered examples, of shape `(..., n + 1)`.
        thresholds: decreasing thresholds, the first of which is +inf, of shape `(..., n + 1)`.
        area: area under the risk-coverage curve (AURC), of shape `(...)`.
        accuracy: accuracy at the given coverage, or None.
        threshold: threshold of the given coverage, of shape `(...)`, or None.
    """

    coverage: Array
    risk: Array
    thresholds: Array
    area: Array
    accuracy: Estimate | None
    threshold: Array | None

    def __repr__(self) -> str:
        """Return one line without the points of the curve."""
        numbers = {"area": self.area, "accuracy": self.accuracy, "threshold": self.threshold}
        parts = [f"{name}={x}" for name, x in numbers.items() if x is not None]
        return f"RiskCoverage({', '.join(parts)}, {self.coverage.shape[-1]} points)"


@on_host_if_small
def risk_coverage(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    confidence: ArrayLike,
    *,
    coverage: float | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> RiskCoverage:
    """Compute the risk-coverage curve of a classifier that abstains if its confidence is low.

    The risk at a threshold is the error rate among the examples whose confidence is at least the
    threshold, and the coverage is their fraction of all examples. Examples with equal confidence
    are answered together. The area (AURC) is the mean over all examples of the risk at the
    threshold that is their own confidence, `mean_i (sum_j wrong_j [c_j >= c_i] / sum_j [c_j >=
    c_i])`. It is small if mistakes have a low confidence. Source: Geifman, Uziel and El-Yaniv
    (2019), Bias-reduced uncertainty estimation, ICLR, equation 2. `safe_threshold` limits the risk.

    Args:
        y_true, y_pred: class ids of shape `(..., n)`. Examples with a negative true class are
            ignored. For bools `correct`, pass `np.ones_like(correct), correct`.
        confidence: real numbers of shape `(..., n)`, such as the largest probability. Only their
            order matters.
        coverage: fraction of examples to answer, in (0, 1]. The accuracy is then computed for the
            smallest coverage of the curve that is at least as large.
        level: the confidence level of the interval of this accuracy.
        sample_weight: weights of the examples, of shape `(..., n)`. For the interval, each example
            stays one example, and the scale of the weights does not matter.
        where: boolean mask of shape `(..., n)`. Examples where it is False are ignored.

    Returns:
        `RiskCoverage` with one point for each threshold. At coverage 0, the risk is 0. If there are
        no examples, coverage and area are NaN. If `coverage` is given, `accuracy` is an `Estimate`
        of shape `(...)`, whose interval takes into account that the threshold was estimated from
        the same examples (formulas in `jaxmetrics/ranking/abstention.py`), and whose `num_examples`
        is the number of answered examples.

    Raises:
        TypeError, ValueError: if shapes or dtypes are invalid, if a prediction is negative, if the
            confidence is NaN, or if `coverage` is not in (0, 1]. Under jit, a negative prediction
            counts as wrong, and a confidence that is NaN gives NaN.

    >>> y_true, y_pred = [0, 1, 1, 0, 1] * 20, [0, 1, 0, 0, 0] * 20
    >>> curve = risk_coverage(y_true, y_pred, [0.9, 0.8, 0.3, 0.7, 0.8] * 20, coverage=0.8)
    >>> curve.coverage[::20], curve.risk[::20].round(3), curve.area.round(3)
    (array([0. , 0.2, 0.6, 0.6, 0.8, 1. ]), array([0.   , 0.   , 0.333, 0.333, 0.25 , 0.4  ]),
     np.float64(0.263))
    >>> curve.accuracy, curve.threshold
    (0.750 [0.567, 0.837], np.float64(0.7))
    """
    named = {"y_true": y_true, "y_pred": y_pred, "confidence": confidence}
    check_order(**named, sample_weight=sample_weight, where=where)
    if coverage is not None:
        require(0 < as_number(coverage, "coverage") <= 1, "coverage", "be in (0, 1]", coverage)
    mask, weights = as_mask(where), sample_weight
    weights = None if weights is None else as_float(weights, "sample_weight")
    true = as_class_ids(y_true, "y_true", INT32_MAX, mask, weights)
    counted = mask, weights, true >= 0
    pred = as_class_ids(y_pred, "y_pred", INT32_MAX, *counted, is_truth=False)
    check_examples({"y_true": true.shape, "y_pred": pred.shape})
    is_wrong = _is_wrong(true, pred)
    ranked = rank(is_wrong, confidence, sample_weight, where, name="confidence")
    return _risk_coverage(ranked, goal=coverage, level=check_level(level))


@compiled
def _is_wrong(true: Array, pred: Array) -> Array:
    return xp.where(true < 0, IGNORED, true != pred).astype(xp.int8)


@compiled
def _risk_coverage(ranked: Ranked, *, goal: float | None, level: float) -> RiskCoverage:
    wrong, right, thresholds = points(ranked)
    answered, amounts = wrong + right, ranked.positive + ranked.negative
    total, risk = answered[..., -1:], divide(wrong, answered)
    coverage = divide(answered, total, xp.nan)
    area = divide((amounts * risk[..., 1:]).sum(-1), total[..., 0], xp.nan)
    curve = RiskCoverage(coverage, risk, thresholds, area, None, None)
    if goal is None:
        return curve
    # Kish's effective numbers of answered examples; 0 at coverage 0. No square overflows.
    largest = amounts.max(-1, keepdims=True, initial=0)
    squares = cumulative_sum(divide(amounts, largest) ** 2, ranked.last)
    squares = xp.concatenate([xp.ones_like(total), squares], -1)
    numbers = divide(divide(answered, largest) ** 2, squares)

    def at(x: Array, goal: Array | float) -> Array:
        least = xp.clip(goal, 1e-9, 1) * (1 - 1e-6)  # sums of weights may be rounded
        place = xp.argmax(coverage >= least, -1)[..., None]
        return xp.take_along_axis(x, place, -1)[..., 0]

    accuracy, number = divide(right, answered, xp.nan), at(numbers, goal)
    right_answers = at(accuracy, goal) * number
    found = proportion_interval(right_answers, number, level=level, method="likelihood")
    error_of_goal = safe_sqrt(divide(goal * (1 - goal), numbers[..., -1:]))
    reach = normal_quantile(level) * error_of_goal
    near = xp.stack([at(accuracy, goal - reach), at(accuracy, goal + reach)])
    value = found.value
    low = value - xp.hypot(value - found.low, xp.maximum(value - near.min(0), 0))
    high = value + xp.hypot(found.high - value, xp.maximum(near.max(0) - value, 0))
    examples = xp.concatenate([0 * total, cumulative_sum(amounts > 0, ranked.last)], -1)
    found = replace(
        found,
        low=xp.maximum(low, 0),
        high=xp.minimum(high, 1),
        num_examples=at(examples, goal),
    )
    return curve._replace(accuracy=found, threshold=at(thresholds, goal))
