"""Streaming evaluation: states that add up over batches, devices and hosts, in the training loop.

- `evaluators`: `init`, `update`, `merge`, `psum`, `compute`
- `accumulators`: what to compute: metrics of counts, means, areas, calibration, bootstraps
- `statistics`: the sums behind them, and the batches that they read; a base for your own
- `states`: the sums so far; `files`: states on disk
- `confidence_sequences`: intervals that may be looked at after every batch
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.streaming.accumulators import *
from jaxmetrics.streaming.confidence_sequences import *
from jaxmetrics.streaming.evaluators import *
from jaxmetrics.streaming.files import *
from jaxmetrics.streaming.states import *
from jaxmetrics.streaming.statistics import *


def __dir__() -> list[str]:
    """List functions and types, not the files that they come from."""
    return _public_names(globals())
