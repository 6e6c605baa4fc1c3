"""Confidence intervals (error bars) for any metric: an estimate with its lower and upper end.

`interval(metric, counts, method=...)` is the main function. A metric is any function of one
confusion matrix `(K, K)` that returns an array or a pytree of arrays; you can also pass a function
of your own. Extra leading axes of counts are batch axes: one interval is computed for each matrix
of the batch.

- `methods` contains the interval methods, which compute the ends of an interval.
- `samples` describes sampling designs, such as strata, clusters, pairs and several test sets.
- `functionals` expresses a metric as a function of how often each kind of unit (example or cluster)
  occurs. Methods only use this function, so every method works for every sampling design.

`proportion_interval` computes intervals of fractions of examples, and `mean_interval` computes
intervals of means. `prediction_powered` combines a few examples whose true labels are known with
many examples that only a judge, such as a language model, has labelled. `bootstrap_examples` is for
statistics that are not functions of counts, such as average precision.

If counts are NumPy arrays, random numbers come from NumPy, and the metric receives NumPy tables, in
batches `(N, K, K)` if it accepts batches. If the metric then returns JAX arrays, the interval is
computed by JAX.

**Anytime-valid intervals** (`anytime=`) keep their coverage even if you look at the interval after
every example and stop when you like. The normal quantile z is replaced by
`sqrt(2 (1 + 1 / m) ln(sqrt(m + 1) / α))`, where m is proportional to the number of examples:
Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52, theorem 2.2. The
guarantee is asymptotic: intervals by `Delta` have this coverage from about 500 examples on. At
100,000 examples, the interval is 1.9 times as wide as an ordinary interval, which is valid for a
single look only.
"""

from jaxmetrics.intervals.examples import *
from jaxmetrics.intervals.judged import *
from jaxmetrics.intervals.means import *
from jaxmetrics.intervals.proportions import *
from jaxmetrics.intervals.methods import *
