"""One table of every public function, and the matrices and examples on which the invariants run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import jaxmetrics as jm
from tests import oracles

K = 4


@dataclass(frozen=True)
class Metric:
    """A function of counts, with what is promised of it.

    `output`: "number" `(...)`, "classes" `(..., K)` or "groups" (counts `(..., G, K, K)` to `(..., K)`).
    """

    call: Callable[..., Any]
    oracle: Callable[..., Any]
    output: str
    smooth: bool = True
    scale_free: bool = True
    any_class_order: bool = True
    ignores_absent_classes: bool = True
    two_classes: bool = False


def _overall(name: str, call: Callable[..., Any], **promises: bool) -> tuple[str, Metric]:
    return name, Metric(call, oracles.OVERALL[name], "number", **promises)


def _costs(counts: Any) -> np.ndarray:
    return oracles.example_costs(np.shape(counts)[-1])


ORDERED = {"any_class_order": False}
FIXED_K = {"ignores_absent_classes": False}
_RATE_CALLS = {
    "f_beta": partial(jm.f_beta, beta=2.0),
    "tversky": partial(jm.tversky, alpha=0.3, beta=0.8),
    "net_benefit": partial(jm.net_benefit, threshold=0.2),
}

METRICS: dict[str, Metric] = dict(
    [
        _overall("accuracy", jm.accuracy),
        _overall("naive_accuracy", jm.naive_accuracy),
        _overall("error_rate", jm.error_rate),
        _overall("no_information_rate", jm.no_information_rate, smooth=False),
        _overall("balanced_accuracy", jm.balanced_accuracy),
        _overall("balanced_accuracy adjusted", partial(jm.balanced_accuracy, adjusted=True)),
        _overall("g_mean", jm.g_mean),
        _overall("matthews_corrcoef", jm.matthews_corrcoef),
        _overall("cohen_kappa", jm.cohen_kappa),
        _overall("cohen_kappa linear", partial(jm.cohen_kappa, weights="linear"), **ORDERED),
        _overall("cohen_kappa quadratic", partial(jm.cohen_kappa, weights="quadratic"), **ORDERED),
        _overall("cohen_kappa costs", lambda c: jm.cohen_kappa(c, weights=_costs(c)), **ORDERED),
        _overall("cohen_kappa pooled", partial(jm.cohen_kappa, chance="pooled")),
        _overall("cohen_kappa uniform", partial(jm.cohen_kappa, chance="uniform"), **FIXED_K),
        _overall("cohen_kappa majority", partial(jm.cohen_kappa, chance="majority"), smooth=False),
        _overall("cohen_kappa gwet", partial(jm.cohen_kappa, chance="gwet"), **FIXED_K),
        _overall("cohen_kappa gwet linear", partial(jm.cohen_kappa, chance="gwet", weights="linear"), **ORDERED, **FIXED_K),
        _overall("krippendorff_alpha", jm.krippendorff_alpha, scale_free=False),
        _overall(
            "krippendorff_alpha quadratic", partial(jm.krippendorff_alpha, weights="quadratic"), scale_free=False, **ORDERED
        ),
        _overall("cramers_v", jm.cramers_v),
        _overall("mutual_information", jm.mutual_information),
        _overall("confusion_entropy", jm.confusion_entropy),
        _overall("expected_cost", lambda c: jm.expected_cost(c, _costs(c)), **ORDERED),
        _overall("macro", jm.macro(jm.f1)),
        _overall("macro precision", jm.macro(jm.precision)),
        _overall("weighted", jm.weighted(jm.f1)),
        _overall("micro", jm.micro(jm.f1)),
        _overall("micro specificity", jm.micro(jm.specificity)),
        _overall("weighted_micro", jm.weighted_micro(jm.precision)),
        _overall("weighted_micro recall", jm.weighted_micro(jm.recall)),
        *(
            (name, Metric(_RATE_CALLS.get(name, getattr(jm, name)), oracle, "classes"))
            for name, oracle in oracles.RATES.items()
        ),
        (
            "binary",
            Metric(
                jm.binary(jm.precision), lambda c: oracles.RATES["precision"](c)[1], "number", True, True, False, False, True
            ),
        ),
        ("group_ratio", Metric(jm.group_ratio(jm.precision), oracles.GROUPS["group_ratio"], "groups")),
        ("group_difference", Metric(jm.group_difference(jm.precision), oracles.GROUPS["group_difference"], "groups")),
        ("demographic_parity_ratio", Metric(jm.demographic_parity_ratio, oracles.GROUPS["demographic_parity_ratio"], "groups")),
        ("equal_opportunity_ratio", Metric(jm.equal_opportunity_ratio, oracles.GROUPS["equal_opportunity_ratio"], "groups")),
    ]
)


@dataclass(frozen=True)
class Counter:
    """A function from examples to counts: `call(*arrays, **options)` with `examples` = arrays of n examples each.

    `axis` is the axis of examples in each array, counted from the end; invalid labels are among them.
    """

    call: Callable[..., Any]
    examples: tuple[np.ndarray, ...]
    axis: tuple[int, ...]


_rng = np.random.default_rng(20)
N = 48
_TRUE = _rng.integers(-1, K + 1, N).astype(np.int32)  # -1 and K are dropped
_PRED = np.where(_rng.random(N) < 0.6, _TRUE, _rng.integers(-1, K + 1, N)).astype(np.int32)
_OTHER = np.where(_rng.random(N) < 0.5, _TRUE, _rng.integers(0, K, N)).astype(np.int32)
_BINARY = _rng.integers(-1, 2, N).astype(np.int32)
_SCORE = np.round(_rng.normal(size=N) + _BINARY, 1).astype(np.float32)  # rounded: ties with thresholds
_PROB = _rng.dirichlet(np.ones(K), N).astype(np.float32)
_LABELS = _rng.integers(-1, 2, (2, N, 3)).astype(np.int32)

COUNTERS: dict[str, Counter] = {
    "confusion_matrix": Counter(partial(jm.confusion_matrix, num_classes=K), (_TRUE, _PRED), (-1, -1)),
    "paired_confusion_matrix": Counter(
        partial(jm.paired_confusion_matrix, num_classes=K), (_TRUE, _PRED, _OTHER), (-1, -1, -1)
    ),
    "soft_confusion_matrix": Counter(jm.soft_confusion_matrix, (_TRUE, _PROB), (-1, -2)),
    "multilabel_confusion_matrix": Counter(jm.multilabel_confusion_matrix, (_LABELS[0], _LABELS[1]), (-2, -2)),
    "confusion_matrix_at_thresholds": Counter(
        partial(jm.confusion_matrix_at_thresholds, thresholds=np.array([0.5, -0.2, 1.1], np.float32)),
        (_BINARY, _SCORE),
        (-1, -1),
    ),
}

# Functions from examples to numbers, described as `Counter` is.
SCORERS: dict[str, Counter] = {
    "roc_auc": Counter(jm.roc_auc, (_BINARY, _SCORE), (-1, -1)),
    "roc_auc partial": Counter(partial(jm.roc_auc, max_fpr=0.3), (_BINARY, _SCORE), (-1, -1)),
    "average_precision": Counter(jm.average_precision, (_BINARY, _SCORE), (-1, -1)),
    "equal_error_rate": Counter(jm.equal_error_rate, (_BINARY, _SCORE), (-1, -1)),
    "ks_statistic": Counter(jm.ks_statistic, (_BINARY, _SCORE), (-1, -1)),
    "best_threshold": Counter(partial(jm.best_threshold, jm.accuracy), (_BINARY, _SCORE), (-1, -1)),
    "recall_at_precision": Counter(partial(jm.recall_at_precision, min_precision=0.7), (_BINARY, _SCORE), (-1, -1)),
    "precision_at_recall": Counter(partial(jm.precision_at_recall, min_recall=0.7), (_BINARY, _SCORE), (-1, -1)),
    "sensitivity_at_specificity": Counter(
        partial(jm.sensitivity_at_specificity, min_specificity=0.7), (_BINARY, _SCORE), (-1, -1)
    ),
    "specificity_at_sensitivity": Counter(
        partial(jm.specificity_at_sensitivity, min_sensitivity=0.7), (_BINARY, _SCORE), (-1, -1)
    ),
    "score_histogram": Counter(partial(jm.score_histogram, scale="logit", num_bins=64), (_BINARY, _SCORE), (-1, -1)),
    "roc_auc_one_vs_one": Counter(jm.roc_auc_one_vs_one, (_TRUE, _PROB), (-1, -2)),
    "per_class": Counter(jm.per_class(jm.roc_auc), (_TRUE, _PROB), (-1, -2)),
    "per_class weighted": Counter(jm.per_class(jm.average_precision, average="weighted"), (_TRUE, _PROB), (-1, -2)),
    "per_label": Counter(jm.per_label(jm.average_precision, average="macro"), (_LABELS[0], _PROB[:, :3]), (-2, -2)),
    "top_k_accuracy": Counter(partial(jm.top_k_accuracy, k=2), (_TRUE, _PROB), (-1, -2)),
    "hamming_loss": Counter(jm.hamming_loss, (_LABELS[0], _LABELS[1]), (-2, -2)),
    "exact_match": Counter(jm.exact_match, (_LABELS[0], _LABELS[1]), (-2, -2)),
    "label_ranking_average_precision": Counter(jm.label_ranking_average_precision, (_LABELS[0], _PROB[:, :3]), (-2, -2)),
    "label_ranking_loss": Counter(jm.label_ranking_loss, (_LABELS[0], _PROB[:, :3]), (-2, -2)),
    "coverage_error": Counter(jm.coverage_error, (_LABELS[0], _PROB[:, :3]), (-2, -2)),
    "ndcg": Counter(jm.ndcg, (np.abs(_LABELS[0]).astype(np.float32), _PROB[:, :3]), (-2, -2)),
    "log_loss": Counter(jm.log_loss, (_TRUE, _PROB), (-1, -2)),
    "brier_score": Counter(jm.brier_score, (_TRUE, _PROB), (-1, -2)),
    "spherical_score": Counter(jm.spherical_score, (_TRUE, _PROB), (-1, -2)),
    "ranked_probability_score": Counter(jm.ranked_probability_score, (_TRUE, _PROB), (-1, -2)),
    "d2_log_loss_score": Counter(jm.d2_log_loss_score, (_TRUE, _PROB), (-1, -2)),
    "d2_brier_score": Counter(jm.d2_brier_score, (_TRUE, _PROB), (-1, -2)),
    "normalized_entropy": Counter(jm.normalized_entropy, (_TRUE, _PROB), (-1, -2)),
    "calibration_bins": Counter(jm.calibration_bins, (_BINARY, _PROB[:, 0]), (-1, -1)),
    "calibration_error": Counter(jm.calibration_error, (_BINARY, _PROB[:, 0]), (-1, -1)),
    "calibration_curve": Counter(partial(jm.calibration_curve, strategy="quantile"), (_BINARY, _PROB[:, 0]), (-1, -1)),
    "brier_decomposition": Counter(jm.brier_decomposition, (_BINARY, _PROB[:, 0]), (-1, -1)),
    "top_label": Counter(jm.top_label(jm.calibration_error), (_TRUE, _PROB), (-1, -2)),
    "fit_temperature": Counter(jm.fit_temperature, (_TRUE, 3 * np.log(_PROB)), (-1, -2)),
}

# Public names that are no function of examples or counts alone, and the file that tests them.
OTHERS = {
    "check_labels": "test_counts",
    "normalize": "test_counts",
    "one_vs_rest": "test_counts",
    "BetaAverage": "test_betasum",
    "Convolution": "test_betasum",
    "beta_avg_cdf": "test_betasum",
    "beta_avg_inv_cdf": "test_betasum",
    "beta_avg_pdf": "test_betasum",
    "beta_sum_cdf": "test_betasum",
    "beta_sum_pdf": "test_betasum",
    "convolve_betas": "test_betasum",
    "get_beta_parameters": "test_betasum",
    "accuracy_posterior": "test_posteriors",
    "balanced_accuracy_expected": "test_posteriors",
    "balanced_accuracy_posterior": "test_posteriors",
    "beta_cdf": "test_posteriors",
    "beta_pdf": "test_posteriors",
    "beta_ppf": "test_posteriors",
    "posterior_counts": "test_posteriors",
    "precision_posterior": "test_posteriors",
    "recall_posterior": "test_posteriors",
    "Estimate": "test_intervals",
    "bootstrap": "test_intervals",
    "bootstrap_counts": "test_intervals",
    "bootstrap_examples": "test_intervals",
    "delta_method": "test_intervals",
    "posterior": "test_intervals",
    "proportion_interval": "test_intervals",
    "bootstrap_histogram": "test_ranking",
    "AreaBounds": "test_ranking",
    "DetCurve": "test_ranking",
    "OperatingPoint": "test_ranking",
    "PrecisionRecallCurve": "test_ranking",
    "RocCurve": "test_ranking",
    "auc": "test_ranking",
    "average_precision_bounds": "test_ranking",
    "delong_interval": "test_ranking",
    "det_curve": "test_ranking",
    "metric_at_thresholds": "test_ranking",
    "precision_recall_curve": "test_ranking",
    "roc_auc_bounds": "test_ranking",
    "roc_curve": "test_ranking",
    "BrierDecomposition": "test_scoring",
    "CalibrationCurve": "test_scoring",
    "binned_calibration_curve": "test_scoring",
    "binned_calibration_error": "test_scoring",
    "two_class": "test_scoring",
    "binary_cross_entropy": "test_losses",
    "cross_entropy": "test_losses",
    "focal_loss": "test_losses",
    "hinge_loss": "test_losses",
    "linear_cross_entropy": "test_large_vocabulary",
    "metric_loss": "test_losses",
    "multiclass_hinge_loss": "test_losses",
    "nll": "test_losses",
    "pairwise_auc_loss": "test_losses",
    "soft_calibration_error": "test_losses",
    "soft_cross_entropy": "test_losses",
    "weighted_mean": "test_losses",
    "Accumulator": "test_streaming",
    "ConfidenceSequence": "test_streaming",
    "ConfidenceState": "test_streaming",
    "Evaluator": "test_streaming",
    "PairedValues": "test_streaming",
    "calibration_metrics": "test_streaming",
    "confidence_sequence": "test_streaming",
    "count_metrics": "test_streaming",
    "evaluator": "test_streaming",
    "load_state": "test_streaming",
    "mean_of": "test_streaming",
    "paired_metrics": "test_streaming",
    "poisson_bootstrap": "test_streaming",
    "ranking_metrics": "test_streaming",
    "save_state": "test_streaming",
    "to_python": "test_streaming",
    "Comparison": "test_comparisons",
    "DeLong": "test_comparisons",
    "HypothesisTest": "test_comparisons",
    "Leaderboard": "test_comparisons",
    "compare": "test_comparisons",
    "compare_predictions": "test_comparisons",
    "compare_unpaired": "test_comparisons",
    "delong": "test_comparisons",
    "leaderboard": "test_comparisons",
    "mcnemar": "test_comparisons",
    "permutation_test": "test_comparisons",
    "ComparedFigure": "test_reports",
    "ComparisonReport": "test_reports",
    "Figure": "test_reports",
    "Report": "test_reports",
    "comparison_report": "test_reports",
    "report": "test_reports",
}

MATRICES: dict[str, np.ndarray] = {
    "ordinary": np.array([[31, 4, 2, 0], [3, 22, 6, 1], [0, 5, 40, 7], [2, 1, 3, 18]]),
    "absent class": np.array([[31, 4, 0, 2], [3, 22, 0, 6], [0, 0, 0, 0], [2, 1, 0, 18]]),
    "only in truth": np.array([[31, 4, 0, 2], [3, 22, 0, 6], [5, 1, 0, 2], [2, 1, 0, 18]]),
    "only in prediction": np.array([[31, 4, 1, 2], [3, 22, 4, 6], [0, 0, 0, 0], [2, 1, 3, 18]]),
    "constant prediction": np.array([[0, 0, 9, 0], [0, 0, 5, 0], [0, 0, 70, 0], [0, 0, 16, 0]]),
    "one class": np.array([[0, 0, 0, 0], [0, 12, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    "one class, all wrong": np.array([[0, 0, 0, 0], [0, 0, 5, 0], [0, 0, 0, 0], [0, 0, 0, 0]]),
    "perfect": np.diag([3, 1, 8, 2]),
    "all wrong": np.array([[0, 3, 1, 2], [4, 0, 2, 5], [1, 2, 0, 2], [2, 1, 2, 0]]),
    "rare": np.array([[10**9, 30, 2, 5], [40, 300, 1, 0], [7, 0, 12, 3], [1, 2, 1, 4]]),
    "empty": np.zeros((4, 4), int),
}
TWO_CLASS_MATRICES: dict[str, np.ndarray] = {
    "ordinary": np.array([[80, 7], [3, 21]]),
    "rare": np.array([[2 * 10**9, 300], [40, 1000]]),
    "never positive": np.array([[9, 0], [4, 0]]),
    "one class": np.array([[9, 0], [0, 0]]),
    "empty": np.zeros((2, 2), int),
}
GROUPED: dict[str, np.ndarray] = {
    "ordinary": np.stack([MATRICES["ordinary"], MATRICES["all wrong"], MATRICES["perfect"]]),
    "empty group": np.stack([MATRICES["ordinary"], MATRICES["empty"], MATRICES["absent class"]]),
    "empty": np.zeros((3, 4, 4), int),
}


def matrices_of(metric: Metric) -> dict[str, np.ndarray]:
    return GROUPED if metric.output == "groups" else TWO_CLASS_MATRICES if metric.two_classes else MATRICES
