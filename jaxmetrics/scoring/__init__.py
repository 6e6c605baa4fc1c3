"""Probabilities judged: proper scores, which reward honest probabilities, and calibration, whether p comes true p of the time.

Scores take probabilities of all classes, `y_prob` `(..., n, K)` with the classes on the last axis; `two_class` makes them from
the probability of class 1. Calibration asks about one event: `y_true` 0 or 1 `(..., n)` and `y_prob` `(..., n)`, the
probability of class 1; `top_label` asks about the predicted class of several. Where a function takes `logits`, it is another
argument: nothing is passed through a softmax unasked, and no row is normalised.

- Leading axes are batch and broadcast. Results are float, one per batch entry unless said otherwise.
- A label outside the classes drops its example, and so does `where=False`, whatever the example holds. `sample_weight` 2 equals
  the row written twice, 0 the row left out.
- A probability outside of [0, 1] (by more than rounding), and NaN, gives NaN; so does a batch entry without examples.
- Static mistakes (dtype, shape, an unknown option) raise TypeError or ValueError, also under jit.
"""

from jaxmetrics.scoring.proper import *  # scores that honest probabilities optimise
from jaxmetrics.scoring.calibration import *  # bins, curves, errors, temperature

__all__ = [
    "BrierDecomposition",
    "CalibrationCurve",
    "binned_calibration_curve",
    "binned_calibration_error",
    "brier_decomposition",
    "brier_score",
    "calibration_bins",
    "calibration_curve",
    "calibration_error",
    "d2_brier_score",
    "d2_log_loss_score",
    "fit_temperature",
    "log_loss",
    "normalized_entropy",
    "ranked_probability_score",
    "spherical_score",
    "top_label",
    "two_class",
]
