"""Intervals for any metric: an estimate with its lower and upper end.

An interval is a function of a metric and of a sample: `interval(metric, counts, method=...)`. A
metric is any function of one matrix of counts `(K, K)`, yours included, that returns an array or a
pytree of arrays; leading axes of counts are batch. `samples` says what is drawn: units in strata,
clusters of units, pairs, test sets; `methods` how the ends are found; `functionals` what a method
reads, a metric as a function of how often each kind of unit occurs. So each method serves all
samples, and the other way round.

`proportion_interval` is for fractions of examples, `mean_interval` for means, `prediction_powered`
adds to few examples with truth many that only a judge labelled, and `bootstrap_examples` is for
statistics that no counts determine, such as the average precision.

From counts on the host NumPy draws, and the metric is given NumPy tables, in batches `(N, K, K)` if
it takes batches; a metric that returns JAX arrays moves the work to the device.
"""

from jaxmetrics.intervals.examples import *
from jaxmetrics.intervals.judged import *
from jaxmetrics.intervals.means import *
from jaxmetrics.intervals.proportions import *
from jaxmetrics.intervals.methods import *
