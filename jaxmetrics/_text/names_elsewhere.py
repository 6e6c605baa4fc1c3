"""Names of metrics in other libraries, for the message of AttributeError and for the site."""

from __future__ import annotations

__all__: list[str] = []

_AVERAGES = "macro({0}), micro({0}), weighted({0}) or binary({0}), functions of counts"

NAMES_HERE = {
    "accuracy_score": "accuracy",
    "aurc": "risk_coverage",
    "auroc": "roc_auc",
    "average_precision_score": "average_precision",
    "balanced_accuracy_score": "balanced_accuracy",
    "brier_score_loss": "brier_score",
    "classification_report": "report",
    "cohen_kappa_score": "cohen_kappa",
    "confidence_interval": "interval(metric, counts)",
    "confusion_matrix_display": "plots.confusion_matrix",
    "dice": "f1",
    "ece": "calibration_error",
    "expected_calibration_error": "calibration_error",
    "f1_score": _AVERAGES.format("f1"),
    "fbeta_score": "macro(partial(f_beta, beta=...))",
    "fleiss_kappa": "rater_agreement(ratings).kappa",
    "gini": "roc_auc (Gini = 2 * roc_auc - 1)",
    "iou": "jaccard",
    "jaccard_index": "jaccard",
    "jaccard_score": _AVERAGES.format("jaccard"),
    "kappa": "cohen_kappa",
    "mae": "macro_absolute_error",
    "matthews": "matthews_corrcoef",
    "mcc": "matthews_corrcoef",
    "mcnemar_test": "mcnemar",
    "npv": "negative_predictive_value",
    "ppv": "precision",
    "pr_curve": "precision_recall_curve",
    "precision_score": _AVERAGES.format("precision"),
    "producers_accuracy": "recall",
    "recall_score": _AVERAGES.format("recall"),
    "roc_auc_score": "roc_auc, or per_class(roc_auc) of several classes",
    "sensitivity": "recall",
    "softmax_cross_entropy": "cross_entropy",
    "temperature_scaling": "fit_temperature",
    "top_k_accuracy_score": "top_k_accuracy",
    "true_negative_rate": "specificity",
    "true_positive_rate": "recall",
    "users_accuracy": "precision",
    "wilson": "proportion_interval",
    "youden_j": "informedness",
    "zero_one_loss": "error_rate",
}
