"""The values of a report that are computed from probabilities.

Probabilities are reduced to sums over examples; the sums of two batches can be added. The sums are
computed with NumPy in float64.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics import (
    Estimate,
    calibration_bins,
    calibration_interval,
    delong_interval,
    mean_interval,
    per_class,
    proportion_interval,
    roc_auc,
    soft_confusion_matrix,
    top_label,
)
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.estimates import normal_estimate, normal_quantile, with_level
from jaxmetrics.intervals.proportions import wilson_interval
from jaxmetrics.ranking.areas import area_moments
from jaxmetrics.ranking.histograms import score_bins
from jaxmetrics.reports.contents import Findings
from jaxmetrics.reports.values import ReportValue, exactly, value_of, values_of

__all__: list[str] = []

_SCORE_BINS = 4096
_CALIBRATION_BINS = 15
_AT_ONCE = 2**21  # the number of probabilities in a batch; a few arrays of this size are made
_MOST_AVERAGED = 2**22  # the largest number of scores for an interval of macro ROC AUC, a second
_NEAR_1 = 0.999
_FEWEST = 30  # effective number of examples from which log loss intervals reached their level
PREDICTED = "predicted class"  # the event whose calibration is reported for more than two classes


class ProbabilitySums(NamedTuple):
    """Sums over examples, as NumPy arrays; the sums of two batches are added elementwise."""

    soft_counts: np.ndarray  # (K, K)
    log_loss: np.ndarray  # (3,), weight, weighted sum and weighted sum of squares
    brier_score: np.ndarray  # (B, 2), weight and weighted sum of the scores in each bin
    score_histogram: np.ndarray  # (K, 2, B), each class against the rest
    calibration_bins: np.ndarray  # (bins, 3), of the event of `_apply_to_event`

    @classmethod
    def zeros(cls, k: int, dtype: type) -> ProbabilitySums:
        """Return the sums of no examples for K classes."""
        return cls(
            soft_counts=np.zeros((k, k)),
            log_loss=np.zeros(3),
            brier_score=np.zeros((_SCORE_BINS, 2)),
            score_histogram=np.zeros((k, 2, _SCORE_BINS), dtype),
            calibration_bins=np.zeros((_CALIBRATION_BINS, 3)),
        )


def probability_sums(
    y_true: np.ndarray, y_prob: np.ndarray, weights: np.ndarray | None
) -> ProbabilitySums:
    """Compute the sums over examples, in batches, which need little memory.

    Args:
        y_true: class ids `(n,)`; examples with the id -1 are ignored.
        y_prob: probabilities `(n, K)`, which may exceed 1 by rounding.
        weights: weights `(n,)`, or None.
    """
    k, dtype = y_prob.shape[1], np.int64 if weights is None else float
    classes = np.arange(k)
    sums = ProbabilitySums.zeros(k, dtype)
    counted = np.flatnonzero(y_true >= 0)
    size = max(1, _AT_ONCE // k)
    for begin in range(0, len(counted), size):
        part = counted[begin : begin + size]
        truth = y_true[part]
        mass = np.ones(len(part), dtype) if weights is None else weights[part]
        prob, log_losses, brier_scores = losses_of(truth, y_prob[part])
        np.add.at(sums.soft_counts, truth, mass[:, None] * prob)
        sums.log_loss[:] += _moments(log_losses, mass)
        shares = brier_scores / worst_brier_score(prob)
        bins = score_bins(shares, scale="probability", size=_SCORE_BINS)
        np.add.at(sums.brier_score, bins, np.stack([mass, mass * brier_scores], -1))
        # The score histograms of each class against the rest.
        places = _SCORE_BINS * (2 * classes + (truth[:, None] == classes))
        places += score_bins(_log_odds(prob), scale="logit", size=_SCORE_BINS)
        np.add.at(sums.score_histogram.reshape(-1), places.ravel(), mass.repeat(k))
        sums.calibration_bins[:] += _apply_to_event(
            calibration_bins, truth, prob, sample_weight=mass
        )
    return sums


def _apply_to_event(
    function: Callable[..., Any], y_true: np.ndarray, y_prob: np.ndarray, **options: Any
) -> Any:
    """Call a function of the probability of the second class if there are two classes, otherwise of
    the probability of the predicted class.
    """
    if y_prob.shape[1] == 2:
        return function(y_true, y_prob[:, 1], **options)
    return top_label(function)(y_true, y_prob, **options)


def losses_of(y_true: np.ndarray, y_prob: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the probabilities in float64, and the log loss and Brier score of each example."""
    eps = np.finfo(y_prob.dtype if y_prob.dtype.kind == "f" else float).eps
    prob = np.minimum(y_prob.astype(float), 1)
    prob_of_truth = np.take_along_axis(prob, y_true[:, None], 1)[:, 0]
    surprise = -np.log(np.clip(prob_of_truth, eps, 1 - eps))
    # The sum over the classes of (p - 1)^2 for the true class and p^2 for other classes.
    distance = np.clip((prob**2).sum(1) - 2 * prob_of_truth + 1, 0, 2)  # corrects rounding
    return prob, surprise, distance * (worst_brier_score(prob) / 2)


def worst_brier_score(prob: np.ndarray) -> float:
    """Return the largest possible Brier score of probabilities `(n, K)`, which is 1 for two classes
    and otherwise 2.
    """
    return 1.0 if prob.shape[1] == 2 else 2.0


def confidence_of(prob: np.ndarray, pred: np.ndarray) -> np.ndarray:
    """Return the probabilities of the predicted classes `(n,)`; NaN for invalid predictions."""
    k = prob.shape[1]
    return np.where(pred < k, prob[np.arange(len(pred)), np.minimum(pred, k - 1)], np.nan)


def _moments(values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    return np.array([mass.sum(), mass @ values, mass @ values**2])


def _log_odds(prob: np.ndarray) -> np.ndarray:
    """Compute the log-odds of each class against the rest. The probability of the rest is a sum
    where p is near 1, because 1 - p loses digits. Elsewhere, the sum would break ties by rounding.
    """
    none = np.zeros((len(prob), 1))
    before = np.concatenate([none, prob[:, :-1].cumsum(1)], 1)
    after = np.concatenate([prob[:, :0:-1].cumsum(1)[:, ::-1], none], 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(prob) - np.log(np.where(prob < _NEAR_1, 1 - prob, before + after))


def probability_findings(
    sums: ProbabilitySums,
    class_names: tuple[str, ...],
    level: float,
    areas: Findings | None = None,
) -> Findings:
    """Compute the values of the report from the sums, but for areas that are given."""
    if areas is None:
        areas = findings_of_areas(area_values(sums.score_histogram, level))
    # The bins of Brier scores are so narrow that their means replace the scores.
    weights, totals = sums.brier_score[sums.brier_score[:, 0] > 0].T
    bounds = 0, worst_brier_score(sums.soft_counts)
    scores = np.clip(totals / weights, *bounds)
    findings = _findings(
        expected_accuracy(sums.soft_counts, level),
        _log_loss(sums.log_loss, level),
        sums.log_loss,
        mean_interval(scores, sample_weight=weights, frequency=True, bounds=bounds, level=level),
        calibration_interval(sums.calibration_bins, level=level),
        areas,
    )
    tables = {
        "score_histogram": sums.score_histogram,
        "calibration_bins": sums.calibration_bins,
        "calibrated_event": class_names[1] if len(class_names) == 2 else PREDICTED,
    }
    return findings._replace(tables=tables)


def findings_of_examples(
    y_true: np.ndarray,
    y_prob: np.ndarray,
    weights: np.ndarray | None,
    numbers: np.ndarray | None,
    level: float,
    *,
    frequency: bool = False,
) -> Findings:
    """Compute the values of `probability_findings` if there are clusters or weights.

    The values are computed from the examples, because the sums do not contain clusters and squares
    of weights. If there are weights, areas have no interval.
    """
    counted = y_true >= 0
    y_true, numbers = y_true[counted], None if numbers is None else numbers[counted]
    mass = np.ones(len(y_true)) if weights is None else weights[counted]
    prob, log_losses, brier_scores = losses_of(y_true, y_prob[counted])
    options: Any = {"level": level, "clusters": numbers}
    if weights is None:
        areas = areas_of_examples(y_true, prob, **options)
    else:
        weighted = per_class(roc_auc)(y_true, _log_odds(prob), sample_weight=mass)
        areas = findings_of_areas([exactly(x) for x in weighted])
    if weights is not None:
        options |= {"sample_weight": mass, "frequency": frequency}
    if numbers is None:
        of_truth = np.take_along_axis(prob, y_true[:, None], 1)[:, 0]
        expected = value_of(mean_interval(of_truth, bounds=(0, 1), **options))
    else:
        soft_counts = soft_confusion_matrix(y_true, prob, sample_weight=mass, groups=numbers)
        expected = expected_accuracy(soft_counts, level)
    return _findings(
        expected,
        mean_interval(log_losses, transform="log", **options),
        _moments(log_losses, mass),
        mean_interval(brier_scores, bounds=(0, worst_brier_score(prob)), **options),
        _apply_to_event(calibration_interval, y_true, prob, **options),
        areas,
    )


def areas_of_examples(y_true: np.ndarray, prob: np.ndarray, **options: Any) -> Findings:
    """Report the ROC AUC of each class, and their mean, by `delong_interval`."""
    scores, macro = _log_odds(np.minimum(prob.astype(float), 1)), None
    if prob.size <= _MOST_AVERAGED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of clusters, which are warned of below
            macro = delong_interval(y_true, scores, average="macro", **options)
    return findings_of_areas(
        values_of(per_class(delong_interval)(y_true, scores, **options)), macro
    )


def findings_of_areas(areas: list[ReportValue], macro: Estimate | None = None) -> Findings:
    """Return the areas of the classes and, of more than two classes, their mean."""
    defined = [x.value for x in areas if not math.isnan(x.value)]
    if len(areas) == 2:  # both classes have the same area
        return Findings(per_class={"roc_auc": [value_of_area(x.estimate) for x in areas]})
    if not defined:
        return Findings(per_class={"roc_auc": areas})
    mean = exactly(np.mean(defined)) if macro is None else value_of(macro)
    return Findings({"macro_roc_auc": mean}, {"roc_auc": areas})


def value_of_area(area: Estimate) -> ReportValue:
    """Report the ROC AUC of a positive class, with a note if it is below 0.5."""
    note = None
    if area.high < 0.5:
        note = (
            "it is below 0.5, because the other class has the higher scores. Make that class the"
            " positive one (--pos-label on the command line), negate the scores, or exchange the"
            " columns of probabilities."
        )
    return value_of(area, note)


def _findings(
    expected: ReportValue,
    log_loss: Estimate,
    moments_of_losses: np.ndarray,
    brier_score: Estimate,
    gap: Estimate,
    areas: Findings,
) -> Findings:
    number, total, squares = moments_of_losses
    effective, note = total**2 / squares if squares > 0 else 0.0, None
    if 0 < effective < _FEWEST and not np.isnan(log_loss.low):
        note = (
            "a few examples make up most of the loss (effective number of examples: "
            f"{max(effective, 1):.0f} of {number:.10g}), so its interval may be too narrow."
        )
    overall = {
        "expected_accuracy": expected,
        "log_loss": value_of(log_loss, note),
        "brier_score": value_of(brier_score),
        "calibration_error": calibration_value(gap),
    }
    return Findings(overall | dict(areas.overall), areas.per_class)


def expected_accuracy(soft_counts: np.ndarray, level: float) -> ReportValue:
    """Report the mean probability of the true class, from soft counts `(K, K)`, or `(C, K, K)` for
    clusters.

    The interval is an interval of a proportion, which is wide enough, because probabilities vary
    less than numbers that are 0 or 1.
    """
    of_truth, total = soft_counts.trace(axis1=-2, axis2=-1), soft_counts.sum((-2, -1))
    options: Any = {"level": level, "cluster_axis": 0 if soft_counts.ndim > 2 else None}
    estimate = proportion_interval(of_truth, total, method="likelihood", **options)
    return value_of(estimate)


def calibration_value(gap: Estimate) -> ReportValue:
    """Report the calibration error, with a note about its bias."""
    return value_of(gap, "The value is biased upwards, because chance alone makes it positive.")


def _log_loss(moments: np.ndarray, level: float) -> Estimate:
    """Estimate a log loss with Student's interval on the log scale.

    There is no interval if the losses of all examples are equal, because the losses in the
    population may still vary.
    """
    number, total, squares = moments
    mean = total / number if number else math.nan
    variance = squares - number * mean**2
    if number <= 1 or variance <= 1e-12 * squares:
        return Estimate(mean)
    error = np.sqrt(variance / (number - 1) / number)
    t = student_quantile(normal_quantile(level), number - 1)
    return with_level(normal_estimate(mean, error, t, "log"), level, "student")


def area_values(histograms: np.ndarray, level: float) -> list[ReportValue]:
    """Report the ROC AUC of each class from score histograms `(K, 2, B)`.

    Ties within bins count half, as in `roc_auc`. The interval is computed as in `delong_interval`:
    its lower end from the smallest area that the bins allow, its upper end from the largest. Scores
    in the outermost bins, which contain the probabilities 0 and 1, count as equal.
    """
    z, areas = normal_quantile(level), []
    for histogram in histograms:
        negative, positive = histogram.astype(float)
        m, n = positive.sum(), negative.sum()
        if m == 0 or n == 0:
            areas.append(exactly(math.nan))
            continue
        below = (negative.cumsum() - negative / 2) / n
        above = (positive[::-1].cumsum()[::-1] - positive / 2) / m
        sides = np.append(positive, 0 * positive), np.append(0 * negative, negative)
        moments = area_moments(np.append(below, above), *sides)
        value, number = moments.value, moments.number
        # Half of the share of pairs within a bin.
        unsure = (positive * negative / (m * n))[1:-1].sum() / 2
        low, _ = wilson_interval((value - unsure) * number, number, z)
        _, high = wilson_interval((value + unsure) * number, number, z)
        error = np.sqrt(moments.variance)
        area = Estimate(value, low, high, error, level=level, method="score")
        areas.append(value_of(area))
    return areas
