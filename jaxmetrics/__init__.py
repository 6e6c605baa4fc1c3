"""Classification metrics with confidence intervals, for NumPy and JAX.

Functions accept NumPy arrays and JAX arrays. With JAX arrays they also work under jit, vmap and
grad.

The steps are: labels and predictions -> confusion matrix -> metric -> confidence interval.

    counts = confusion_matrix(y_true, y_pred)
    macro(f1)(counts)                   # any metric, per class or averaged
    interval(macro(f1), counts)         # its confidence interval
    report(y_true, y_pred)              # classification report, all with intervals
    comparison_report(y_true, a, b)     # two classifiers on the same examples

`import jaxmetrics` is fast because each module is imported only when one of its names is first used
(Scientific Python SPEC 1, lazy loading).
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxmetrics import betas as betas, plots as plots, streaming as streaming
    from jaxmetrics.attempts import *
    from jaxmetrics.comparisons import *
    from jaxmetrics.counts import *
    from jaxmetrics.estimates import *
    from jaxmetrics.intervals import *
    from jaxmetrics.losses import *
    from jaxmetrics.metrics import *
    from jaxmetrics.planning import *
    from jaxmetrics.posteriors import *
    from jaxmetrics.raters import *
    from jaxmetrics.ranking import *
    from jaxmetrics.reports import *
    from jaxmetrics.scoring import *
    from jaxmetrics.streaming import (
        calibration_metrics as calibration_metrics,
        confidence_sequence as confidence_sequence,
        count_metrics as count_metrics,
        evaluator as evaluator,
        load_state as load_state,
        mean_of as mean_of,
        paired_metrics as paired_metrics,
        poisson_bootstrap as poisson_bootstrap,
        ranking_metrics as ranking_metrics,
        save_state as save_state,
        to_python as to_python,
    )
    from jaxmetrics.tables import *

__version__ = "0.3.0"

# Public names by file or folder. Names in `betas` and `plots` are used with a prefix, such as
# `plots.roc`.
_CONTENTS = {
    "counts": (
        "Data → counts",
        """
        check_labels confusion_matrix confusion_matrix_at_thresholds multilabel_confusion_matrix
        normalize one_vs_rest paired_confusion_matrix soft_confusion_matrix
        """,
    ),
    "metrics": (
        "Counts → numbers",
        """
        accuracy accuracy_within at_prevalence balanced_accuracy binary cohen_kappa
        confusion_entropy cramers_v
        demographic_parity_ratio diagnostic_odds_ratio difference equal_opportunity_ratio
        error_rate expected_cost f1 f_beta false_discovery_rate false_negative_rate
        false_omission_rate false_positive_rate fowlkes_mallows g_mean group_difference
        group_ratio informedness jaccard krippendorff_alpha label_macro label_weighted lift macro
        macro_absolute_error markedness matthews_corrcoef micro mutual_information naive_accuracy
        negative_likelihood_ratio negative_predictive_value net_benefit no_information_rate
        normalized_mutual_information p4 positive_likelihood_ratio precision prevalence recall
        scorer selection_rate specificity tversky weighted weighted_micro
        """,
    ),
    "betas": ("One beta distribution, and averages of independent ones", ""),
    "posteriors": (
        "Counts → posteriors",
        """
        accuracy_posterior balanced_accuracy_expected balanced_accuracy_posterior posterior_counts
        precision_posterior recall_posterior
        """,
    ),
    "ranking": (
        "Scores → curves and areas",
        """
        auc average_precision average_precision_interval best_threshold coverage_error dcg
        delong_interval det_curve equal_error_rate exact_match hamming_loss ks_statistic
        label_ranking_average_precision label_ranking_loss metric_at_thresholds ndcg per_class
        per_label precision_recall_curve risk_coverage roc_auc roc_auc_one_vs_one roc_curve
        safe_threshold score_histogram top_k_accuracy top_k_precision top_k_recall
        """,
    ),
    "scoring": (
        "Probabilities → proper scores and calibration",
        """
        brier_score calibration_bins calibration_curve calibration_error calibration_interval
        d2_brier_score d2_log_loss_score fit_temperature log_loss normalized_entropy
        ranked_probability_score score_decomposition spherical_score top_label two_class
        """,
    ),
    "losses": (
        "Logits → differentiable losses",
        """
        binary_cross_entropy cross_entropy focal_loss hinge_loss linear_cross_entropy
        mean_linear_cross_entropy metric_loss multiclass_hinge_loss nll pairwise_auc_loss
        soft_calibration_error soft_cross_entropy weighted_mean
        """,
    ),
    "estimates": ("A value with its interval", "Estimate"),
    "intervals": (
        "A metric and a sample → an estimate",
        """
        Bootstrap Delta IntervalMethod Likelihood Posterior bootstrap_counts bootstrap_examples
        cross_validation_interval crossed_interval interval mean_interval prediction_powered
        proportion_interval
        """,
    ),
    "attempts": (
        "Several attempts at each item → a score per item",
        "pass_at_k score_variance",
    ),
    "raters": ("Ratings of several raters → their agreement", "rater_agreement"),
    "comparisons": (
        "Classifiers on the same examples, compared",
        """
        Comparison HypothesisTest Leaderboard compare compare_average_precision compare_groups
        compare_predictions compare_scores compare_unpaired delong delong_unpaired leaderboard
        mcnemar no_information_test paired_difference_interval permutation_test score_leaderboard
        """,
    ),
    "planning": (
        "How many examples, and what they can show",
        "detectable_difference power required_examples simulated_error",
    ),
    "streaming": (
        "States that add, over batches, devices and hosts",
        """
        calibration_metrics confidence_sequence count_metrics evaluator load_state mean_of
        paired_metrics poisson_bootstrap ranking_metrics save_state to_python
        """,
    ),
    "tables": (
        "Any data frame or SQL relation → counts",
        "TableCounts confusion_matrix_of paired_confusion_matrix_of score_histogram_of",
    ),
    "plots": ("Pictures", ""),
    "reports": (
        "Predictions → a report",
        "ComparisonReport Report comparison_report multilabel_report report score_report",
    ),
}
_HOMES = {name: home for home, (_, names) in _CONTENTS.items() for name in names.split()}

_NAMESPACES = ("betas", "plots", "ranking", "scoring", "streaming")

__all__ = [*_HOMES, *_NAMESPACES]

# Names of earlier versions and what to use instead, for the message of AttributeError.
_MOVED = {
    "ReportedValue": "Estimate",
    "ComparedValue": "Comparison",
    "likelihood_interval": "interval(metric, counts)",
    "delta_method": "interval(metric, counts, method=jaxmetrics.Delta(scale))",
    "bootstrap": "interval(metric, counts, method=jaxmetrics.Bootstrap(key))",
    "posterior": "interval(metric, counts, method=jaxmetrics.Posterior(key))",
    "bootstrap_histogram": "interval(metric, histogram, method=jaxmetrics.Bootstrap(key))",
    "BCa": 'Bootstrap(key, kind="bca")',
    "Percentile": 'Bootstrap(key, kind="percentile")',
    "Basic": 'Bootstrap(key, kind="basic")',
    "Studentized": 'Bootstrap(key, kind="studentized")',
    "precision_at_recall": "best_threshold(precision, ..., subject_to=(recall, ...))",
    "recall_at_precision": "best_threshold(recall, ..., subject_to=(precision, ...))",
    "sensitivity_at_specificity": "best_threshold(recall, ..., subject_to=(specificity, ...))",
    "specificity_at_sensitivity": "best_threshold(specificity, ..., subject_to=(recall, ...))",
    "DeLong": "delong(y_true, y_score_a, y_score_b), whose results have no public type",
    "binned_calibration_curve": "calibration_curve(bins)",
    "binned_calibration_error": "calibration_error(bins)",
    "binned_calibration_interval": "calibration_interval(bins)",
    "roc_auc_bounds": "roc_auc(histogram)",
    "average_precision_bounds": "average_precision(histogram)",
    "isotonic_calibration_curve": 'calibration_curve(..., strategy="isotonic")',
    "brier_decomposition": 'score_decomposition(..., strategy="uniform")',
    "IsotonicCurve": "scoring.CalibrationCurve",
    "Field": "streaming.Kind",
    "BrierDecomposition": "scoring.ScoreDecomposition",
}


def __dir__() -> list[str]:
    """List the public functions, types and namespaces, but not the modules in which they are
    defined.
    """
    return sorted(["__version__", *__all__])


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import the module of a name when the name is first used.

        If there is no such name, the error message suggests what replaces it.
        """
        if name in _CONTENTS:
            return importlib.import_module(f"{__name__}.{name}")
        if name in _HOMES:
            value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
            globals()[name] = value
            return value
        hint = "" if name.startswith("_") else _hint(name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")


def _hint(name: str) -> str:
    """Return the name used here for a function of an earlier version or of another library."""
    from jaxmetrics._text.names_elsewhere import NAMES_HERE

    spaces = (x for x in _NAMESPACES if name in dir(importlib.import_module(f"{__name__}.{x}")))
    within = (f"{space}.{name}" for space in spaces)
    known = {x: x for x in _HOMES} | NAMES_HERE
    plain = {x.replace("_", "").lower(): y for x, y in known.items()}
    plain = {x.removesuffix("score"): y for x, y in plain.items()} | plain
    key = name.replace("_", "").lower()
    stem = key.removeprefix("binary").removeprefix("multiclass")  # MulticlassF1Score is f1_score
    alike = map(plain.get, (key, stem, stem.removesuffix("score")))
    here = next(filter(None, (_MOVED.get(name), *within, *alike)), None)
    return f" Here it is {here}." if here else ""
