"""Scores -> curves and areas.

- `curves`: ROC, precision and recall, DET; any metric at all thresholds; the points of curves that
  people quote
- `areas`: ROC AUC (partial, one against one), average precision, DeLong's interval
- `columns`: any of them per class or label, and averaged
- `multilabel`: top-k, and how the labels of each example are ranked
- `histograms`: areas of streams, with certified bounds
"""

from jaxmetrics.ranking.areas import *
from jaxmetrics.ranking.columns import *
from jaxmetrics.ranking.curves import *
from jaxmetrics.ranking.histograms import *
from jaxmetrics.ranking.multilabel import *
