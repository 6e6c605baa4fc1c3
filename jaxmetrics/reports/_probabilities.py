"""What a report says of probabilities: sums over examples, which add up over batches, and the figures made of them."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._estimates import Estimate, normal_estimate, normal_quantile, of_each, value_and_error
from jaxmetrics.counts import soft_confusion_matrix
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.ranking import per_class, roc_auc_bounds, score_histogram
from jaxmetrics.reports._figures import Figure, figure_of
from jaxmetrics.scoring import binned_calibration_error, brier_score, calibration_bins, log_loss, top_label
from jaxmetrics.streaming.accumulators import mean_estimate

__all__: list[str] = []


class ProbabilitySums(NamedTuple):
    """Arrays on the host; those of two batches are added one by one."""

    soft_counts: np.ndarray  # (K, K)
    log_loss: np.ndarray  # (3,), the weight, the weighted sum, that of squares
    brier_score: np.ndarray  # (3,)
    score_histogram: np.ndarray  # (K, 2, B), of each class against the others
    calibration_bins: np.ndarray  # (K, bins, 3), of each class
    top_label_bins: np.ndarray  # (bins, 3), of the most probable class

    def of_classes(self, order: np.ndarray) -> ProbabilitySums:
        """With the classes in another order."""
        return self._replace(
            soft_counts=self.soft_counts[np.ix_(order, order)],
            score_histogram=self.score_histogram[order],
            calibration_bins=self.calibration_bins[order],
        )

    @property
    def judged_bins(self) -> np.ndarray:
        """By which calibration is judged: of the last of two classes, or else of the most probable class."""
        return self.calibration_bins[1] if len(self.calibration_bins) == 2 else self.top_label_bins


def probability_sums(y_true: np.ndarray, y_prob: np.ndarray, weights: np.ndarray | None) -> ProbabilitySums:
    """Of a batch: class ids `(n,)`, -1 to be left out, probabilities `(n, K)`, which may exceed 1 by rounding, and weights."""
    counted = y_true >= 0
    prob = np.minimum(np.where(counted[:, None], y_prob, 0), 1)
    mass = np.where(counted, 1 if weights is None else weights, 0).astype(float)

    def moments(values: jax.Array) -> np.ndarray:
        x = np.where(counted, values, 0).astype(float)
        return np.array([mass.sum(), mass @ x, mass @ x**2])

    one_by_one = y_true[:, None], prob[:, None]  # each example a batch of its own
    options: dict[str, Any] = {"sample_weight": weights}
    return ProbabilitySums(
        soft_counts=_wide(soft_confusion_matrix(y_true, prob, **options)),
        log_loss=moments(log_loss(*one_by_one)),
        brier_score=moments(brier_score(*one_by_one)),
        score_histogram=_wide(per_class(score_histogram)(y_true, prob, scale="probability", **options)),
        calibration_bins=_wide(per_class(calibration_bins)(y_true, prob, **options)),
        top_label_bins=_wide(top_label(calibration_bins)(y_true, prob, **options)),
    )


def _wide(table: jax.Array) -> np.ndarray:
    """With 64 bits, so that batches add up."""
    array = np.asarray(table)
    return array.astype(np.int64 if array.dtype.kind == "i" else np.float64)


def probability_figures(sums: ProbabilitySums, level: float) -> dict[str, Figure]:
    """Overall, by name."""
    figures = {"expected_accuracy": expected_accuracy(sums.soft_counts, level)}
    for name in ("log_loss", "brier_score"):
        value, low, high, method = figure_of(mean_estimate(getattr(sums, name), level), "normal")
        figures[name] = Figure(value, None if low is None else max(low, 0.0), high, method)
    return figures | {"calibration_error": Figure(float(binned_calibration_error(sums.judged_bins)))}


def expected_accuracy(soft_counts: np.ndarray, level: float) -> Figure:
    """The mean probability given to the truth; probabilities vary less than 0 and 1, so the interval is wide enough."""
    return figure_of(proportion_interval(soft_counts.trace(), soft_counts.sum(), level=level), "wilson")


def area_figures(histograms: np.ndarray, level: float) -> list[Figure]:
    """ROC AUC of each histogram `(K, 2, B)`, ties within bins counting half."""
    z = normal_quantile(level)
    estimates = jax.device_get(_areas(histograms.astype(float), z))
    figures = [figure_of(jax.tree.map(lambda x: x[i], estimates), "delta") for i in range(len(histograms))]  # noqa: B023
    for i, (negative, positive) in enumerate(histograms):
        below, above = np.flatnonzero(negative), np.flatnonzero(positive)
        if below.size and above.size and below[-1] < above[0]:  # every pair is in order
            figures[i] = Figure(1.0, _lowest_area_of_separated(positive.sum(), negative.sum(), z), 1.0, "newcombe")
    return figures


@partial(jax.jit, static_argnames="z")
def _areas(histograms: jax.Array, z: float) -> Estimate:
    """With the variance of the delta method, which is DeLong's of the binned scores."""

    def area(histogram: jax.Array) -> jax.Array:
        return roc_auc_bounds(histogram).value

    values, errors = of_each(partial(value_and_error, area, stratified=False), histograms, histograms[0].size)
    return normal_estimate(values, errors, z, "logit")


def _lowest_area_of_separated(m: float, n: float, z: float) -> float:
    """The least area that m positives, all above n negatives, do not contradict; by bisection.

    The score interval of Newcombe (2006), Statistics in Medicine 25, part 2, method 5: `(1 - θ)^2 = z^2 V(θ)` with
    `V(θ) = θ (1 - θ) / mn (1 + (N - 1) ((1 - θ) / (2 - θ) + θ / (1 + θ)))` and `N = (m + n) / 2`.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        theta = (low + high) / 2
        spread = 1 + ((m + n) / 2 - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        low, high = (theta, high) if (1 - theta) * m * n > z**2 * theta * spread else (low, theta)
    return low
