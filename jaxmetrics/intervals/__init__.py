"""Confidence intervals (error bars) for any metric: an estimate with its lower and upper end.

`interval(metric, counts, method=...)` is the main function. A metric is any function of one
confusion matrix `(K, K)`, your own included, that returns an array or a pytree of arrays; extra
leading axes of counts are batch axes. `samples` describes the sampling design: units in strata,
clusters of units, pairs, test sets. `methods` finds the ends of the interval. `functionals`
connects the two: a metric as a function of how often each kind of unit occurs. So every method
works for every design.

`proportion_interval` is for fractions of examples, `mean_interval` for means. `prediction_powered`
combines a few examples with known truth and many that only a judge labelled. `bootstrap_examples`
is for statistics that are not functions of counts, such as average precision.

For NumPy counts, random numbers come from NumPy, and the metric receives NumPy tables, in batches
`(N, K, K)` if it accepts batches; a metric that returns JAX arrays moves the work to the device.

**Anytime-valid intervals** (`anytime=`) keep their coverage if they are looked at after every
example. z becomes `sqrt(2 (1 + 1 / m) ln(sqrt(m + 1) / α))`, with m in proportion to n:
Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52, theorem 2.2. The
guarantee is asymptotic: with `Delta` it holds from about 500 examples on. At 100,000 examples the
interval is 1.9 times as wide as the interval for a single look.
"""

from jaxmetrics.intervals.examples import *
from jaxmetrics.intervals.judged import *
from jaxmetrics.intervals.means import *
from jaxmetrics.intervals.proportions import *
from jaxmetrics.intervals.methods import *
