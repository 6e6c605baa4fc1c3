"""Differentiable losses of logits, one per example, to be reduced by `weighted_mean`.

- `per_example`: cross-entropy and related losses, hinge losses
- `large_vocabulary`: cross-entropy of a linear layer whose logits do not fit into memory
- `whole_batch`: losses of a whole batch: any metric of soft counts, ROC AUC, calibration
"""

from jaxmetrics.losses.large_vocabulary import *
from jaxmetrics.losses.whole_batch import *
from jaxmetrics.losses.per_example import *
