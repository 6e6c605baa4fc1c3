"""Performance measures of classifiers as jit-compiled, vmappable JAX functions of the confusion matrix.

labels, predictions -> counts -> metric -> number: `macro(f1)(confusion_matrix(y_true, y_pred, num_classes=10))`.
"""

from jaxmetrics.counts import *
from jaxmetrics.metrics import *  # counts -> numbers; macro, micro, weighted averages
from jaxmetrics.betas import *  # one beta; sums and averages of independent betas
from jaxmetrics.posteriors import *  # counts -> posteriors: of balanced accuracy, rates and cell probabilities
from jaxmetrics.ranking import *  # scores -> curves and areas
from jaxmetrics.scoring import *  # probabilities -> proper scores and calibration
from jaxmetrics.losses import *  # logits -> differentiable losses
from jaxmetrics.estimates import *  # a value with its interval
from jaxmetrics.intervals import *
from jaxmetrics.comparisons import *  # classifiers on the same examples, compared
from jaxmetrics.streaming import *  # states that add, over batches, devices and hosts
from jaxmetrics import plots as plots  # pictures, by matplotlib, which is imported when one is drawn
from jaxmetrics.reports import *  # predictions -> Report

__version__ = "0.1.0"
