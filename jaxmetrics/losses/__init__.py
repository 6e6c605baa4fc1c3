"""Logits -> differentiable losses, one per example, to be reduced by `weighted_mean`.

- `per_example`: cross-entropy and its relatives, hinge
- `large_vocabulary`: cross-entropy of a head whose logits are too many to be held
- `whole_batch`: losses of a batch as a whole: any metric of soft counts, pairs of scores,
  calibration
"""

from jaxmetrics.losses.large_vocabulary import *
from jaxmetrics.losses.whole_batch import *
from jaxmetrics.losses.per_example import *
