"""Performance measures of classifiers as jit-compiled, vmappable JAX functions of confusion
matrices.

labels, predictions -> counts -> metric -> number:
`macro(f1)(confusion_matrix(y_true, y_pred, num_classes=10))`.
"""

# data -> counts
from jaxmetrics.counts import *

# counts -> numbers; macro, micro, weighted averages
from jaxmetrics.metrics import *

# one beta; sums and averages of independent betas
from jaxmetrics.betas import *

# counts -> posteriors: of balanced accuracy, rates and cell probabilities
from jaxmetrics.posteriors import *

# scores -> curves and areas
from jaxmetrics.ranking import *

# probabilities -> proper scores and calibration
from jaxmetrics.scoring import *

# logits -> differentiable losses
from jaxmetrics.losses import *

# counts -> an estimate with its interval
from jaxmetrics.estimates import *
from jaxmetrics.intervals import *

# classifiers on the same examples, compared
from jaxmetrics.comparisons import *

# states that add, over batches, devices and hosts
from jaxmetrics.streaming import *

# pictures, by matplotlib, which is imported when one is drawn
from jaxmetrics import plots as plots

# predictions -> Report
from jaxmetrics.reports import *

__version__ = "0.1.0"
