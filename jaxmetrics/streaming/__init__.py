"""States that add, over batches, devices and hosts: evaluation inside the training loop.

- `evaluators`: what a state is; `init`, `update`, `merge`, `psum`, `compute`
- `accumulators`: what is added up: counts, means, scores, probabilities, pairs, Poisson bootstrap
- `confidence_sequences`: intervals that may be looked at after every batch
- `files`: states on disk
"""

from jaxmetrics.streaming.accumulators import *
from jaxmetrics.streaming.confidence_sequences import *
from jaxmetrics.streaming.evaluators import *
from jaxmetrics.streaming.files import *
