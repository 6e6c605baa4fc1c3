"""From counts to numbers: every performance measure that a confusion matrix determines.

A metric is a function of `counts`, shape `(..., K, K)`, integer or float; row = true class, column
= predicted class; leading axes are batch. Per-class rates return `(..., K)`, other metrics `(...)`:
float64 of NumPy for counts on the host, and for a JAX array one in its precision. Of class i
against the rest: TP = C_ii, FN = the rest of its row, FP = the rest of its column, TN = all else; n
= the sum of all cells.

- **0/0** gives `zero_division`, a number, 0.0 unless said otherwise; NaN means undefined, and
  averages skip it.
- Averages are functions of functions: `macro(f1)(counts)`. They run over the classes that occur, in
  truth or prediction.
- Gradients with respect to float counts are finite, also at empty cells and absent classes.
- A NaN in `counts` makes NaN of what depends on it; averages do not skip it.
- TypeError and ValueError are raised for `counts` that are not numeric or not of shape
  `(..., K, K)`.

Formulas without a source: Sokolova and Lapalme (2009), A systematic analysis of performance
    measures for classification
tasks, Information Processing & Management 45(4).
"""

from jaxmetrics.metrics.overall import *  # one number per matrix
from jaxmetrics.metrics.agreement import *  # kappa and its relatives
from jaxmetrics.metrics.rates import *  # one number per class
from jaxmetrics.metrics.averages import *  # functions of rates: macro, micro, weighted, binary
from jaxmetrics.metrics.groups import *  # functions of rates: ratio and difference between groups

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "binary",
    "cohen_kappa",
    "confusion_entropy",
    "cramers_v",
    "demographic_parity_ratio",
    "diagnostic_odds_ratio",
    "equal_opportunity_ratio",
    "error_rate",
    "expected_cost",
    "f1",
    "f_beta",
    "false_discovery_rate",
    "false_negative_rate",
    "false_omission_rate",
    "false_positive_rate",
    "fowlkes_mallows",
    "g_mean",
    "group_difference",
    "group_ratio",
    "informedness",
    "jaccard",
    "krippendorff_alpha",
    "lift",
    "macro",
    "markedness",
    "matthews_corrcoef",
    "micro",
    "mutual_information",
    "naive_accuracy",
    "negative_likelihood_ratio",
    "negative_predictive_value",
    "net_benefit",
    "no_information_rate",
    "p4",
    "positive_likelihood_ratio",
    "precision",
    "prevalence",
    "recall",
    "selection_rate",
    "specificity",
    "tversky",
    "weighted",
    "weighted_micro",
]
