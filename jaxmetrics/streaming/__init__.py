"""Streaming evaluation: metrics of data in batches, also on several devices and hosts.

- `evaluators`: functions that start, update, merge and evaluate running sums (the state)
- `accumulators`: what is computed: metrics of counts, means, areas, calibration, bootstraps
- `statistics`: what accumulators sum, the batches that they read, a base class for your own
- `states`: the running sums; `files`: saving and loading them
- `confidence_sequences`: intervals that are valid if you look at them after every batch
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
