"""Metrics of predicted probabilities: proper scoring rules and calibration.

A proper score is best, on average, for the true probabilities. Probabilities are calibrated if
events with predicted probability p occur with frequency p.

Scores read probabilities of all classes, `y_prob` `(..., n, K)`, with the classes on the last axis;
`two_class` makes them from the probability of class 1. `y_true` holds class ids `(..., n)` or soft
labels, the shares of all classes, floats `(..., n, K)`, for example from annotators who disagree.
Calibration functions read one event: `y_true` 0 or 1, `(..., n)`, and `y_prob` `(..., n)`, the
probability of class 1; `top_label` applies them to the predicted class of several. `logits` is a
separate argument: a softmax is never applied unasked, and rows are not normalised.

- Extra leading axes are batch axes and broadcast. Results are floats, one per batch entry unless
  said otherwise.
- A negative label drops its example, and so does `where=False`, even if the example holds NaN.
  `sample_weight` 2 equals the row written twice, 0 the row left out.
- In NumPy arrays, invalid values of examples that count raise ValueError and name their place: a
  label that is not a class, a weight that is NaN, infinite or negative, a probability outside of
  [0, 1], logits without a finite value or all of which are probabilities, and a row of
  probabilities that does not sum to 1. The sum may be off as much as rounding to three decimals
  makes it, `0.001 sqrt(3 K)` (0.0024 for two classes, at most 0.05), or by the square root of the
  eps of its dtype if that is more (float16, bfloat16). In JAX arrays an invalid label drops its
  example, and other invalid values give NaN. A batch entry without examples gives NaN.
- Mistakes in dtype, shape or options raise TypeError or ValueError, also under jit.
"""

# scores that are best for the true probabilities
from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.scoring.proper import *

# bins, curves, errors and their intervals
from jaxmetrics.scoring.bins import *
from jaxmetrics.scoring.calibration import *
from jaxmetrics.scoring.calibration_intervals import *

# temperature scaling
from jaxmetrics.scoring.temperature import *


def __dir__() -> list[str]:
    """List functions and types, not the files that they come from."""
    return _public_names(globals())
