"""Score probabilities: proper scores and calibration.

A proper score is best, on average, for the true probabilities; calibration asks whether what is
forecast with probability p comes true p of the time.

Scores take probabilities of all classes, `y_prob` `(..., n, K)` with the classes on the last axis;
`two_class` makes them from the probability of class 1. Truth is class ids `(..., n)` or, soft, the
shares of all classes, floats `(..., n, K)`, as annotators who disagree give them. Calibration asks
about one event: `y_true` 0 or 1 `(..., n)` and `y_prob` `(..., n)`, the probability of class 1;
`top_label` asks about the predicted class of several. `logits` are an argument of their own where
they are taken: nothing is passed through a softmax unasked, and no row is normalised.

- Leading axes are batch and broadcast. Results are float, one per batch entry unless said
  otherwise.
- A negative label drops its example, and so does `where=False`, whatever the example holds.
  `sample_weight` 2 equals the row written twice, 0 the row left out.
- What examples that count cannot hold raises ValueError on the host, with its place: a label that
  is no class, a weight that is NaN, infinite or negative, a probability outside of [0, 1], logits
  without a finite one or all of which are probabilities, and a row of all classes that does not sum
  to 1. The sum may be off as much as rounding to three decimals makes it, `0.001 sqrt(3 K)` (0.0024
  for two classes, at most 0.05), or by the root of the eps of its dtype if that is more (float16,
  bfloat16). On the device such a label drops its example, and the other mistakes make NaN. A batch
  entry without examples is NaN on both.
- Static mistakes (dtype, shape, an unknown option) raise TypeError or ValueError, also under jit.
"""

# scores that are best for the true probabilities
from jaxmetrics.scoring.proper import *

# bins, curves, errors and their intervals
from jaxmetrics.scoring.bins import *
from jaxmetrics.scoring.calibration import *
from jaxmetrics.scoring.calibration_intervals import *

# one number by which logits are divided
from jaxmetrics.scoring.temperature import *
