"""Calibration of probabilities of a binary event: reliability diagrams, ECE, decompositions.

**The band of `strategy="isotonic"`.** The band contains the whole calibration curve with
probability at least `level`, for any n. It assumes independent examples, and a true frequency of
class 1 that increases with the predicted probability. Consider the examples whose probability is
between two values a and b. Their observed frequency gives a lower confidence bound of the true
frequency at b, and an upper confidence bound of the true frequency at a. The band combines the
bounds of all intervals [a, b] by taking the tightest, with a Bonferroni correction. Source:
Dimitriadis, Dümbgen, Henzi, Puke and Ziegel (2023), Biometrika 110. Here the ends a and b are
between 64 groups of equal weight. The upper bound p for s successes in n trials solves
`2 n KL((s + 1) / n, p) = z^2`: Zubkov and Serov (2013), Theory of Probability and Its Applications
57.

**The decomposition with bins** splits the Brier score `mean (p - y)^2` into reliability, resolution
and uncertainty. Bin b contains the fraction w_b of the examples, with mean probability p_b and
frequency f_b of class 1. The overall frequency is f:

- miscalibration = `sum_b w_b (p_b - f_b)^2`,
- discrimination = `sum_b w_b ((f_b - f)^2 - var_b(p) + 2 cov_b(p, y))`,
- uncertainty = `f (1 - f)`.

Murphy's classic resolution does not contain the variance and the covariance within bins. Without
them, the three terms sum to the Brier score only if all probabilities in a bin are equal. Source:
Stephenson, Coelho and Jolliffe (2008), Weather and Forecasting 23.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from jaxmetrics._applied import applied
from jaxmetrics._arguments.example_arguments import Examples, as_distributions, class_examples
from jaxmetrics._arguments.single import IGNORED, ArrayLike, check_flag, check_level, check_option
from jaxmetrics._numerics.arithmetic import divide, safe_sqrt
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, Arrays, xp
from jaxmetrics._text.printing import Printed
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.ranking.ranks import rank_examples
from jaxmetrics.scoring.bins import Strategy, as_examples, bins_of, edges_of, sums_by_bin
from jaxmetrics.scoring.isotonic import isotonic_curve, isotonic_decomposition
from jaxmetrics.scoring.rows import at_class, is_probability, weighted_mean, weights_of

__all__ = [
    "CalibrationCurve",
    "ScoreDecomposition",
    "calibration_curve",
    "calibration_error",
    "score_decomposition",
    "top_label",
]

Norm = Literal["l1", "l2", "max"]


class CalibrationCurve(
    Printed,
    namedtuple("_CalibrationCurve", "mean_prob frequency low high weight", defaults=[None]),
):
    """Reliability diagram, as returned by `calibration_curve`. The values of empty bins are NaN.

    With `strategy="isotonic"` there are no bins. All arrays then have one value per example,
    `(..., n)`.

    Attributes:
        mean_prob: mean predicted probability in each bin, of shape `(..., B)`.
        frequency: observed frequency of class 1 in each bin.
        low, high: ends of Wilson's interval for the frequency, or of the confidence band with
            `strategy="isotonic"`.
        weight: total weight of the examples in each bin. None with `strategy="isotonic"`.
    """

    __slots__ = ()
    _plural = "points"

    def _numbers(self) -> dict[str, Any]:
        return {name: x for name, x in self._asdict().items() if x is not None}


class ScoreDecomposition(NamedTuple):
    """Decomposition of a proper score, `miscalibration - discrimination + uncertainty`.

    Attributes:
        miscalibration: possible improvement of the score by recalibration, also called reliability.
            At least 0, of shape `(...)`.
        discrimination: how well the probabilities separate the classes, also called resolution.
        uncertainty: score of always predicting the overall frequency of class 1.
    """

    miscalibration: Array
    discrimination: Array
    uncertainty: Array


def calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    num_bins: int | None = None,
    strategy: Strategy | None = None,
    level: float = 0.95,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> CalibrationCurve:
    """Compute the reliability diagram: mean probability and frequency of class 1 in each bin.

    The strategy `"uniform"` uses bins of equal width. `"quantile"` uses bins with edges at
    quantiles of the probabilities. Some of these bins are empty if many probabilities are equal.

    `"isotonic"` uses isotonic regression instead of bins. The frequencies f_i of the examples never
    decrease with the probability, and minimise `sum_i (f_i - y_i)^2` for labels y_i. Source:
    Dimitriadis, Gneiting and Jordan (2021), PNAS 118, where this method is called CORP.

    Args:
        y_true: 0 or 1 (or bool), of shape `(..., n)`. If `y_prob` is not given, `y_true` is the
            result of `calibration_bins`, of shape `(..., B, 3)`.
        y_prob: predicted probabilities of class 1, of shape `(..., n)`.
        num_bins: number of bins B, 10 by default.
        strategy: `"uniform"`, `"quantile"` or `"isotonic"`.
        level: confidence level of Wilson's interval in each bin. With "isotonic", it is the level
            of a confidence band for the whole curve. The band assumes that the true frequency
            increases with the probability. Its formula is at the top of
            `jaxmetrics/scoring/calibration.py`.
        sample_weight: weights of the examples, of shape `(..., n)`. For the intervals, a weight
            must be the number of times that the example occurs.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        `CalibrationCurve`. Its non-empty bins are the same as in scikit-learn's
        `calibration_curve`, unless a probability is equal to the edge of a bin up to rounding,
        because probabilities are compared in float32. With "isotonic" there are n points in the
        order of increasing probability. The point of an ignored example repeats another point.

    >>> curve = calibration_curve([0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0], num_bins=2)
    >>> curve.mean_prob, curve.frequency, curve.low.round(2)
    (array([0.2916667, 1.       ]), array([0.3333333, 1.       ]),
     array([0.06, 0.21]))
    >>> y_true, y_prob = [0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0]
    >>> calibration_curve(y_true, y_prob, num_bins=2, strategy="quantile").mean_prob
    array([0.1875, 0.75  ])
    >>> calibration_curve([[4.0, 0.5, 1.0], [0.0, 0.0, 0.0]]).frequency  # of sums by bin
    array([0.25,  nan])
    >>> calibration_curve([0, 1, 0, 1, 1], [0.1, 0.4, 0.4, 0.6, 0.9], strategy="isotonic").frequency
    array([0. , 0.5, 0.5, 1. , 1. ])
    """
    if strategy is not None:
        check_option(strategy, "strategy", ("uniform", "quantile", "isotonic"))
    if strategy == "isotonic" and y_prob is not None:
        _check_no_bins(num_bins)
        examples = as_examples(y_true, y_prob, sample_weight, where)
        columns = isotonic_curve(examples, rank_examples(examples), level=check_level(level))
        return CalibrationCurve(*columns)
    options = {"sample_weight": sample_weight, "where": where}
    bins = bins_of(y_true, y_prob, num_bins=num_bins, strategy=strategy, **options, default=10)
    return _curve(bins, normal_quantile(level))


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    norm: Norm = "l1",
    num_bins: int | None = None,
    strategy: Strategy | None = None,
    debiased: bool = False,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Compute the expected calibration error (ECE), or its root mean square or maximum variant.

    In bin b, the gap d_b is the mean probability minus the frequency of class 1. The weight w_b is
    the fraction of all examples that are in bin b. All errors are in [0, 1], and smaller is better:

    - `"l1"`, expected calibration error (Naeini et al., 2015, AAAI): `sum_b w_b |d_b|`.
    - `"l2"`, root mean square: `sqrt(sum_b w_b d_b^2)`.
    - `"max"`, maximum calibration error: the greatest `|d_b|` of all non-empty bins.

    Args:
        y_true: 0 or 1 (or bool), of shape `(..., n)`. If `y_prob` is not given, `y_true` is the
            result of `calibration_bins`, of shape `(..., B, 3)`. For several classes use
            `top_label(calibration_error)`.
        y_prob: predicted probabilities of class 1, of shape `(..., n)`.
        norm: `"l1"`, `"l2"` or `"max"`.
        num_bins: number of bins B, 15 by default.
        strategy: `"uniform"` (bins of equal width) or `"quantile"` (edges at quantiles of
            `y_prob`).
        debiased: if True, subtract the bias of the squared gaps. Only for "l2". In bins of n_b > 1
            examples, d_b^2 is replaced by `d_b^2 - f_b (1 - f_b) / (n_b - 1)`, where f_b is the
            frequency of class 1. A negative sum over bins becomes 0. Source: Kumar, Liang and Ma
            (2019), NeurIPS, section 5.
        sample_weight: weights of the examples, of shape `(..., n)`. With `debiased`, a weight must
            be the number of times that the example occurs.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        Errors of shape `(...)`. NaN if there are no examples.

    >>> y_true, y_prob = [0, 1, 1, 1], [0.25, 0.75, 0.25, 1.0]
    >>> calibration_error(y_true, y_prob, num_bins=2)  # gaps of 1/4 and 1/8
    np.float64(0.1875)
    >>> calibration_error(y_true, y_prob, num_bins=2, norm="max")
    np.float64(0.25)
    >>> import jaxmetrics as jm
    >>> first = jm.calibration_bins(y_true[:2], y_prob[:2], num_bins=2)
    >>> second = jm.calibration_bins(y_true[2:], y_prob[2:], num_bins=2)
    >>> calibration_error(first + second)
    np.float64(0.1875)
    """
    check_option(norm, "norm", ("l1", "l2", "max"))
    if check_flag(debiased, "debiased") and norm != "l2":
        raise ValueError(
            'debiased=True needs norm="l2", because jaxmetrics can correct the bias only'
            f" for this norm, got norm={norm!r}."
        )
    options = {"sample_weight": sample_weight, "where": where}
    bins = bins_of(y_true, y_prob, num_bins=num_bins, strategy=strategy, **options, default=15)
    return _error_of_bins(bins, norm=norm, debiased=debiased)


def _check_no_bins(num_bins: int | None) -> None:
    if num_bins is not None:
        raise ValueError(
            f'num_bins is {num_bins}, but strategy="isotonic" does not use bins. Leave out'
            " num_bins."
        )


def score_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    score: Literal["brier", "log_loss"] = "brier",
    strategy: Strategy = "isotonic",
    num_bins: int | None = None,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> ScoreDecomposition:
    """Decompose the Brier score or log loss into miscalibration, discrimination and uncertainty.

    The score equals `miscalibration - discrimination + uncertainty`. S is the score of the
    probabilities. S_C is the score after recalibration by isotonic regression. S_R is the score of
    always predicting the frequency of class 1.

    - miscalibration = `S - S_C`, which is 0 for calibrated probabilities (smaller is better),
    - discrimination = `S_R - S_C`, which is 0 if the order of the probabilities says nothing about
      the labels (greater is better),
    - uncertainty = `S_R`, which depends only on the labels.

    All three parts are at least 0. In small samples, miscalibration and discrimination are both too
    large by about the same amount. Source: Dimitriadis, Gneiting and Jordan (2021), PNAS 118,
    equation 7. The formulas for bins are at the top of `jaxmetrics/scoring/calibration.py`.

    Args:
        y_true: 0 or 1 (or bool), of shape `(..., n)`. Examples with a negative label are ignored.
        y_prob: predicted probabilities of class 1, of shape `(..., n)`.
        score: `"brier"` for `mean (p - y)^2`, or `"log_loss"` for the log loss in nats. The log
            loss needs the strategy "isotonic".
        strategy: `"isotonic"` for isotonic regression, or `"uniform"` or `"quantile"` for bins.
        num_bins: number of bins. Not allowed if `strategy` is "isotonic".
        sample_weight: weights of the examples, of shape `(..., n)`.
        where: boolean mask of the examples to include, of shape `(..., n)`.

    Returns:
        `ScoreDecomposition`, whose three parts have shape `(...)`.

    >>> parts = score_decomposition([0, 1, 0, 1], [0.25, 0.5, 0.75, 1.0])
    >>> parts.uncertainty
    np.float64(0.25)
    >>> parts.miscalibration - parts.discrimination + parts.uncertainty  # (1 + 4 + 9 + 0) / 64
    np.float64(0.21875)
    >>> score_decomposition([0, 1, 1, 1], [0.25, 0.75, 0.25, 1.0], strategy="uniform", num_bins=2)
    ScoreDecomposition(miscalibration=np.float64(0.0390625), discrimination=np.float64(0.0546875),
                       uncertainty=np.float64(0.1875))
    """
    check_option(score, "score", ("brier", "log_loss"))
    check_option(strategy, "strategy", ("uniform", "quantile", "isotonic"))
    examples = as_examples(y_true, y_prob, sample_weight, where)
    if strategy == "isotonic":
        _check_no_bins(num_bins)
        ranked = rank_examples(examples)
        return ScoreDecomposition(*isotonic_decomposition(examples, ranked, score=score))
    if score != "brier":
        raise ValueError(
            f'strategy={strategy!r} can only be used with score="brier", got score={score!r}.'
            ' For other scores, use strategy="isotonic".'
        )
    edges = edges_of(examples, 10 if num_bins is None else num_bins, strategy)
    return _binned_decomposition(examples, edges)


def top_label(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a binary calibration metric into a metric of the top label of a multiclass classifier.

    The top label is the predicted class: the first class with the greatest probability. The binary
    label of an example is 1 if the top label is the true class, and 0 otherwise. The probability of
    label 1 is the probability of the top label. For example, `top_label(calibration_error)` is the
    expected calibration error of a multiclass classifier: Guo et al. (2017), ICML.

    Args:
        function: a function of binary labels `y_true` and probabilities `y_prob` of label 1, such
            as `calibration_error`.

    Returns:
        A function of class ids `(..., n)` and probabilities `(..., n, K)`. It passes its keyword
        arguments to `function`.

    >>> y_prob = [[0.5, 0.25, 0.25], [0.0, 0.25, 0.75], [0.5, 0.5, 0.0]]
    >>> top_label(calibration_error)([0, 2, 1], y_prob, num_bins=2)
    np.float64(0.0833333)
    >>> top_label(calibration_error)
    top_label(calibration_error)
    """
    expected = "a function of (y_true, y_prob), such as jaxmetrics.calibration_error"
    return applied(_top_label, function, expected)


def _top_label(
    function: Callable[..., Any],
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    **options: Any,
) -> Any:
    examples = class_examples(y_true, y_prob, sample_weight, where, as_distributions, name="y_prob")
    options |= {} if sample_weight is None else {"sample_weight": sample_weight}
    options |= {} if where is None else {"where": where}
    return function(*_predictions(examples), **options)


@compiled
def _predictions(examples: Examples) -> Arrays:
    """Return whether the predicted class of each example is correct (1, 0, or -1 for ignored
    examples), and its probability (NaN for an invalid row).
    """
    ids, p = examples.ids, examples.values
    valid = is_probability(p).all(-1)
    valid_p = xp.where(valid[..., None], p, 0)
    prediction = xp.argmax(valid_p, -1)
    correct = xp.where(ids < 0, IGNORED, (prediction == ids).astype(xp.int8))
    return correct, xp.where(valid, at_class(valid_p, prediction), xp.nan)


@compiled
def _curve(bins: Array, z: float) -> CalibrationCurve:
    weight, sum_prob, sum_true = xp.moveaxis(bins, -1, 0)
    low, high = (xp.where(weight == 0, xp.nan, end) for end in wilson_interval(sum_true, weight, z))
    return CalibrationCurve(
        divide(sum_prob, weight, xp.nan), divide(sum_true, weight, xp.nan), low, high, weight
    )


@compiled
def _error_of_bins(bins: Array, *, norm: str, debiased: bool) -> Array:
    n, sum_prob, sum_true = xp.moveaxis(bins, -1, 0)
    total = n.sum(-1)
    gap = xp.abs(divide(sum_prob - sum_true, n))
    if norm == "max":
        return xp.where(total == 0, xp.nan, gap.max(-1))
    if norm == "l1":
        return divide((n * gap).sum(-1), total, xp.nan)
    squares = gap**2
    if debiased:
        variance = divide(sum_true, n) * divide(n - sum_true, n)  # f (1 - f)
        # A bin of one example has variance 0. In any other bin with n <= 1, weights are not numbers
        # of examples.
        of_one_example = xp.where(variance == 0, 0, xp.nan)
        squares = squares - xp.where(n > 1, divide(variance, n - 1), of_one_example)
    return safe_sqrt(xp.maximum(divide((n * squares).sum(-1), total, xp.nan), 0))


@compiled
def _binned_decomposition(examples: Examples, edges: Array) -> ScoreDecomposition:
    n, sum_prob, sum_true = xp.moveaxis(sums_by_bin(examples, edges), -1, 0)
    total = n.sum(-1)
    reliability = divide((n * divide(sum_prob - sum_true, n) ** 2).sum(-1), total, xp.nan)
    f, one_minus_f = (divide(x.sum(-1), total, xp.nan) for x in (sum_true, n - sum_true))
    uncertainty = f * one_minus_f
    # The sums are NaN if the probability of an example that is not ignored is invalid.
    p = xp.where(is_probability(examples.values), examples.values, 0)
    brier = weighted_mean((p - examples.ids) ** 2, weights_of(examples))
    # The sum of (p - y)^2 within a bin is n (mean p - mean y)^2 + n var(p) + n var(y) - 2 n cov(p,
    # y), and the mean of var(y) is the uncertainty minus Murphy's resolution. So discrimination, as
    # defined at the top of the file, is miscalibration + uncertainty - score.
    resolution = reliability + uncertainty - brier
    return ScoreDecomposition(reliability, resolution, uncertainty)
