"""Confidence intervals (error bars) for any metric: an estimate with its lower and upper end.

`interval(metric, counts, method=...)` is the main function. A metric is any function of one
confusion matrix `(K, K)` that returns an array or a pytree of arrays. Extra leading axes of counts
are batch axes: one interval is computed for each matrix.

The methods are `Likelihood` (default), `Delta`, `Bootstrap` and `Posterior`.

`proportion_interval` computes intervals of proportions, and `mean_interval` computes intervals of
means. `bootstrap_examples` is for statistics that are not functions of counts, such as average
precision. `prediction_powered` combines a few true labels with many labels of a judge, such as a
language model.

If counts are NumPy arrays, the metric receives NumPy arrays, and random numbers come from NumPy. If
the metric then returns JAX arrays, the interval is computed by JAX.

**Anytime-valid intervals** (`anytime=`) keep their coverage if you look at the interval after every
example and stop when you like. The normal quantile z is replaced by
`sqrt(2 (1 + 1 / m) ln(sqrt(m + 1) / α))`, where m is proportional to the number of examples.
Source: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52, theorem
2.2. The guarantee is asymptotic: intervals by `Delta` have this coverage from about 500 examples
on. At 100,000 examples, the interval is 1.9 times as wide as an interval for a single look.
"""

from jaxmetrics.intervals.crossed import *
from jaxmetrics.intervals.examples import *
from jaxmetrics.intervals.judged import *
from jaxmetrics.intervals.means import *
from jaxmetrics.intervals.proportions import *
from jaxmetrics.intervals.methods import *
