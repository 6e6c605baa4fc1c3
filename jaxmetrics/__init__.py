"""Measure classifiers by functions of confusion matrices, in JAX and NumPy.

labels, predictions -> counts -> metric -> number:
`macro(f1)(confusion_matrix(y_true, y_pred, num_classes=10))`.
"""

from typing import TYPE_CHECKING

from jaxmetrics._public_names import public_names as _public_names

# data -> counts
from jaxmetrics.counts import *

# counts -> numbers; macro, micro, weighted averages
from jaxmetrics.metrics import *

# betas: one, and sums and averages of independent ones, in `jm.betas`
from jaxmetrics import betas as betas

# counts -> posteriors: of balanced accuracy, rates and cell probabilities
from jaxmetrics.posteriors import *

# scores -> curves and areas
from jaxmetrics.ranking import *

# probabilities -> proper scores and calibration
from jaxmetrics.scoring import *

# logits -> differentiable losses
from jaxmetrics.losses import *

# counts -> an estimate with its interval
from jaxmetrics.estimates import *
from jaxmetrics.intervals import *

# classifiers on the same examples, compared
from jaxmetrics.comparisons import *

# how many examples, and what they can show
from jaxmetrics.planning import *

# states that add, over batches, devices and hosts; their types in `jm.streaming`
from jaxmetrics import streaming as streaming
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

# any data frame or SQL relation -> counts
from jaxmetrics.tables import *

# pictures, by matplotlib, which is imported when one is drawn
from jaxmetrics import plots as plots

# predictions -> Report
from jaxmetrics.reports import *

__version__ = "0.2.0"


_NAMESPACES = {"betas": betas, "plots": plots, "streaming": streaming}

# What is written in the place of a name of earlier versions, or of one without its namespace.
_MOVED = {
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
    "binned_calibration_curve": "calibration_curve(bins)",
    "binned_calibration_error": "calibration_error(bins)",
    "binned_calibration_interval": "calibration_interval(bins)",
    **{
        name: f"{space}.{name}"
        for space, module in _NAMESPACES.items()
        for name in dir(module)
        if name not in globals()
    },
}


def __dir__() -> list[str]:
    """List functions, types and namespaces, not the files that they come from."""
    return sorted(["__version__", *_NAMESPACES, *_public_names(globals())])


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what has another name here, of earlier versions and of other libraries."""
        from jaxmetrics._names_elsewhere import NAMES_HERE

        here = _MOVED.get(name) or NAMES_HERE.get(name)
        hint = f" Here it is {here}." if here else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")
