"""Differentiable losses of logits for training. Most return one loss per example, which
`weighted_mean` averages.

- `per_example`: cross-entropy and related losses, hinge losses
- `large_vocabulary`: cross-entropy of a linear layer with too many classes to store its logits
- `whole_batch`: losses of a whole batch: any smooth metric, ROC AUC, calibration
"""

from jaxmetrics.losses.large_vocabulary import *
from jaxmetrics.losses.whole_batch import *
from jaxmetrics.losses.per_example import *
