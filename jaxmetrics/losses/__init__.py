"""Losses for training, which are computed from logits and can be differentiated. Most functions
return one loss per example. `weighted_mean` averages these losses.

- `per_example`: cross-entropy and related losses, hinge losses
- `large_vocabulary`: cross-entropy of a linear layer with so many classes that the logits do not
  fit in memory
- `whole_batch`: losses of a whole batch, based on a confusion matrix, ROC AUC or calibration
"""

from jaxmetrics.losses.large_vocabulary import *
from jaxmetrics.losses.whole_batch import *
from jaxmetrics.losses.per_example import *
