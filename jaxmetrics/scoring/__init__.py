"""Metrics of predicted probabilities: proper scoring rules and calibration.

A scoring rule is proper if, on average, no forecast has a better score than the true probabilities.
Probabilities are calibrated if events with predicted probability p occur with frequency p.

Scoring rules need the probabilities of all K classes: `y_prob` has shape `(..., n, K)`. If you only
have the probability of class 1, use `two_class`. `y_true` contains class ids of shape `(..., n)`,
or soft labels. Soft labels are floats of shape `(..., n, K)` that are the probability of each
class, for example the fraction of annotators who chose it.

Calibration functions need a binary event: `y_true` is 0 or 1, and `y_prob` is the probability of
class 1. Both have shape `(..., n)`. For several classes, use `top_label`.

Pass logits only as `logits`. Probabilities are used as they are, without a softmax and without
normalising rows.

- Extra leading axes are batch axes and broadcast. Unless stated otherwise, results are floats of
  shape `(...)`, one per batch entry.
- Examples with a negative label are ignored, and so are examples where the mask `where` is False.
  The values of ignored examples may be NaN.
- An example of `sample_weight` 2 counts like two equal examples. An example of weight 0 is ignored.
- The values of NumPy arrays are checked, except for ignored examples. ValueError is raised for a
  label that is not a class, a weight that is not a finite number >= 0, and a probability that is
  not in [0, 1]. ValueError is also raised for a row of probabilities that does not sum to 1, a row
  without a finite logit, and logits that look like probabilities.
- The sum of a row of float32 or float64 probabilities may differ from 1 by `0.001 sqrt(3 K)`, but
  at most by 0.05. For float16 and bfloat16 more is allowed.
- In JAX arrays, examples with an invalid label are ignored. Other invalid values give NaN.
- The result of a batch entry without examples is NaN.
- A wrong dtype, shape or option raises TypeError or ValueError.
"""

# proper scoring rules, such as log loss
from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.scoring.proper import *

# calibration: bins, curves, errors and their intervals
from jaxmetrics.scoring.bins import *
from jaxmetrics.scoring.calibration import *
from jaxmetrics.scoring.calibration_intervals import *

# temperature scaling
from jaxmetrics.scoring.temperature import *


def __dir__() -> list[str]:
    """List the functions and types, but not the files that define them."""
    return _public_names(globals())
