"""Intervals for any metric: an estimate with its lower and upper end.

A `metric` is any function of one matrix of counts `(K, K)`, yours included, that returns an array
or a pytree of arrays; a dict of metrics is evaluated in one pass over the same replicates. The
result is an `Estimate`, or the pytree with an `Estimate` for each array. Leading axes of counts are
batch: `(..., K, K)` gives estimates of shape `(..., *shape of the array)`.

- `likelihood_interval` is the one of first choice: all values that the counts do not refute,
  also where classes are rare, or no error was seen.
- `bootstrap` asks how the metric would vary over test sets like this one. To resample n examples is
  to draw the K^2 cells from a multinomial, so its cost does not depend on n.
- `posterior` asks which metrics are plausible, given the counts and a prior: also where no error
  was seen. With many classes of few examples the prior outweighs the counts.
- `delta_method` differentiates the metric; nothing is drawn.
- `prediction_powered` adds to few examples with truth many that only a judge labelled.
- `Likelihood()`, `Delta(transform)`, `BCa(key)`, `Posterior(key)`, ... are these as values, to hand
  to what needs a method.
- `proportion_interval` is for fractions of examples, `mean_interval` for means.
- `bootstrap_examples` is for statistics that no counts determine, such as the average precision.

Examples of clusters, of one patient, say, are not independent: `cluster_axis` names the axis of
counts of clusters, `clusters` gives ids of examples.

`level` is the probability with which an interval is meant to contain the true value, 0.95 unless
said otherwise. What draws random numbers takes a `key` first, and draws the same for a matrix alone
as in a batch: the matrices of a batch share their random numbers; `jax.vmap` over keys makes them
independent. A `key` is a JAX key, an int seed or, for counts of the host, a NumPy Generator.

From counts on the host NumPy draws, and the metric is given NumPy tables, in batches `(N, K, K)` if
it takes batches; a metric that returns JAX arrays moves the work to the device.
"""

from jaxmetrics.intervals.bootstraps import *
from jaxmetrics.intervals.examples import *
from jaxmetrics.intervals.posterior_draws import *
from jaxmetrics.intervals.delta import *
from jaxmetrics.intervals.judged import *
from jaxmetrics.intervals.likelihoods import *
from jaxmetrics.intervals.means import *
from jaxmetrics.intervals.proportions import *
from jaxmetrics.intervals.methods import *
