"""Streaming evaluation, which computes metrics of data in batches, also on several devices and
hosts.

- `evaluators`: functions that start, update and merge running sums, and compute results from them
- `accumulators`: the metrics that an evaluator computes, such as metrics of counts and means
- `statistics`: the sums that accumulators need, and a base class for your own sums
- `states`: the state of an evaluator, which contains its running sums
- `files`: functions that save and load states
- `confidence_sequences`: intervals of a mean that are valid even if you look after every batch
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.streaming.accumulators import *
from jaxmetrics.streaming.confidence_sequences import *
from jaxmetrics.streaming.evaluators import *
from jaxmetrics.streaming.files import *
from jaxmetrics.streaming.states import *
from jaxmetrics.streaming.statistics import *


def __dir__() -> list[str]:
    """List the functions and types, but not the files that define them."""
    return _public_names(globals())
