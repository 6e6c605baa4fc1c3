"""Compute the calibration of the probability of one event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from jaxmetrics._applied import applied
from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._examples import DISTRIBUTIONS, IGNORED, Examples, class_examples
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike, check_flag, check_option
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.scoring.bins import Strategy, as_examples, bins_of, edges_of, sums_by_bin
from jaxmetrics.scoring.rows import at_class, is_probability, weighted_mean, weights_of

__all__ = [
    "BrierDecomposition",
    "CalibrationCurve",
    "brier_decomposition",
    "calibration_curve",
    "calibration_error",
    "top_label",
]

Norm = Literal["l1", "l2", "max"]


class CalibrationCurve(NamedTuple):
    """Hold a reliability diagram, as `calibration_curve` makes it; NaN where a bin is empty.

    Attributes:
        mean_prob: the mean probability of each bin, `(..., B)`.
        frequency: how often class 1 came true, `(..., B)`.
        low, high: the ends of Wilson's interval for the frequency, `(..., B)`.
        weight: the number of examples, or their weight, `(..., B)`.
    """

    mean_prob: Array
    frequency: Array
    low: Array
    high: Array
    weight: Array


class BrierDecomposition(NamedTuple):
    """Hold the parts of the Brier score, `reliability - resolution + uncertainty`.

    Attributes:
        reliability: the mean squared distance of probabilities from frequencies, `(...)`.
        resolution: how much the frequencies of the bins differ, `(...)`.
        uncertainty: the variance of the truth, `(...)`.
    """

    reliability: Array
    resolution: Array
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
    """Compare, by bin, how often class 1 comes true with how probable it was (reliability diagram).

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; without `y_prob`, bins `(..., B, 3)` by
            `calibration_bins`, which add up over batches.
        y_prob: the probability of class 1, `(..., n)`.
        num_bins: B, 10 unless given.
        strategy: `"uniform"`, bins of equal width as in `calibration_bins`; `"quantile"`, edges at
            the quantiles j / B of the probabilities, equal ones in one bin, so that bins may stay
            empty. Weights are numbers of examples: where they were normalised to a sum of 1,
            multiply them by n (else NaN).
        level: of Wilson's interval for the frequency, for which weights are numbers of examples,
            too.

    Returns:
        `CalibrationCurve`. Its bins with weight are those of scikit-learn's `calibration_curve`.

    >>> curve = calibration_curve([0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0], num_bins=2)
    >>> curve.mean_prob, curve.frequency, curve.low.round(2)
    (array([0.2916667, 1.       ]), array([0.3333333, 1.       ]),
     array([0.06, 0.21]))
    >>> y_true, y_prob = [0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0]
    >>> calibration_curve(y_true, y_prob, num_bins=2, strategy="quantile").mean_prob
    array([0.1875, 0.75  ])
    >>> calibration_curve([[4.0, 0.5, 1.0], [0.0, 0.0, 0.0]]).frequency  # of sums by bin
    array([0.25,  nan])
    """
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
    """Measure the distance of probabilities from frequencies by bin, in [0, 1]; less is better.

    With the gap d_b = mean probability - frequency of class 1 in bin b, and w_b its share of the
    weight:

    - `"l1"`, expected calibration error: `sum_b w_b |d_b|`. Naeini, Cooper and Hauskrecht (2015),
      AAAI.
    - `"l2"`, root mean square: `sqrt(sum_b w_b d_b^2)`.
    - `"max"`: the greatest `|d_b|` of the bins with weight.

    Args:
        y_true: 0 or 1 (or bool), `(..., n)`; without `y_prob`, bins `(..., B, 3)` by
            `calibration_bins`, which add up over batches. Of several classes:
            `top_label(calibration_error)`.
        y_prob: the probability of class 1, `(..., n)`.
        num_bins: B, 15 unless given.
        strategy: as for `calibration_curve`.
        debiased: subtract the bias of the squared gaps, for "l2" only: chance alone makes the error
            of few examples too large. With f_b the frequency in a bin of n_b examples (weights are
            numbers of examples), take `d_b^2 - f_b (1 - f_b) / (n_b - 1)` for d_b^2, and 0 if the
            sum is negative, so that a smaller bias remains; a bin of one example stays as it is.
            Kumar, Liang and Ma (2019), NeurIPS, section 5.

    Returns:
        `(...)`; NaN without examples.

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
        raise ValueError(f'debiased=True needs norm="l2", whose bias is known, got norm={norm!r}.')
    options = {"sample_weight": sample_weight, "where": where}
    bins = bins_of(y_true, y_prob, num_bins=num_bins, strategy=strategy, **options, default=15)
    return _error_of_bins(bins, norm=norm, debiased=debiased)


def brier_decomposition(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    num_bins: int = 10,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> BrierDecomposition:
    """Decompose the Brier score `mean (p - y)^2` into reliability, resolution and uncertainty.

    The score is `reliability - resolution + uncertainty`, whatever the bins. With w_b the share,
    p_b the mean probability and f_b the frequency of class 1 of bin b, f the frequency of all:

    - reliability = `sum_b w_b (p_b - f_b)^2` (less is better),
    - resolution = `sum_b w_b ((f_b - f)^2 - var_b(p) + 2 cov_b(p, y))` (more is better),
    - uncertainty = `f (1 - f)`.

    The variance and the covariance within the bins are those of Stephenson, Coelho and Jolliffe
    (2008), Weather and Forecasting 23; Murphy's classic resolution lacks them, and adds up only if
    all probabilities of a bin are equal.

    Args:
        As `calibration_curve`.

    Returns:
        `BrierDecomposition`, each part `(...)`.

    >>> parts = brier_decomposition([0, 1, 1, 1], [0.25, 0.75, 0.25, 1.0], num_bins=2)
    >>> parts
    BrierDecomposition(reliability=np.float64(0.0390625), resolution=np.float64(0.0546875),
                       uncertainty=np.float64(0.1875))
    >>> parts.reliability - parts.resolution + parts.uncertainty  # (1/16 + 1/16 + 9/16) / 4
    np.float64(0.171875)
    """
    examples = as_examples(y_true, y_prob, sample_weight, where)
    return _decomposition(examples, edges_of(examples, num_bins, strategy))


def top_label(function: Callable[..., Any]) -> Callable[..., Any]:
    """Apply a function of one event to the event that the most probable class is the true one.

    `top_label(calibration_error)` is the expected calibration error as Guo et al. (2017), ICML,
    report it. Of equal probabilities the first is the prediction.

    Args:
        function: of `y_true` and `y_prob` of one event, such as `calibration_error`.

    Returns:
        A function of class ids `(..., n)` and probabilities `(..., n, K)`, whose keyword arguments
        go to `function`.

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
    examples = class_examples(y_true, y_prob, sample_weight, where, DISTRIBUTIONS, name="y_prob")
    given = {"sample_weight": sample_weight, "where": where}
    options |= {name: x for name, x in given.items() if x is not None}
    return function(*_predictions(examples), **options)


@compiled
def _predictions(examples: Examples) -> tuple[Array, Array]:
    """Tell whether the most probable class of each example is correct, and its probability.

    Negative where the example is dropped; NaN for an impossible row.
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
        # An example alone has variance 0; if not, weights are no numbers of examples.
        of_one_example = xp.where(variance == 0, 0, xp.nan)
        squares = squares - xp.where(n > 1, divide(variance, n - 1), of_one_example)
    return safe_sqrt(xp.maximum(divide((n * squares).sum(-1), total, xp.nan), 0))


@compiled
def _decomposition(examples: Examples, edges: Array) -> BrierDecomposition:
    n, sum_prob, sum_true = xp.moveaxis(sums_by_bin(examples, edges), -1, 0)
    total = n.sum(-1)
    reliability = divide((n * divide(sum_prob - sum_true, n) ** 2).sum(-1), total, xp.nan)
    f, one_minus_f = (divide(x.sum(-1), total, xp.nan) for x in (sum_true, n - sum_true))
    uncertainty = f * one_minus_f
    # What is no probability has made the sums NaN, if it counts.
    p = xp.where(is_probability(examples.values), examples.values, 0)
    brier = weighted_mean((p - examples.ids) ** 2, weights_of(examples))
    # The sum of squares within a bin is that of its means plus n var(p) + n var(y) - 2 n cov(p, y),
    # and the mean variance of y is the uncertainty less Murphy's resolution: so what is left of the
    # score is the resolution of the docstring.
    resolution = reliability + uncertainty - brier
    return BrierDecomposition(reliability, resolution, uncertainty)
