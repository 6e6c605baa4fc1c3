"""Scores -> curves and areas.

- `curves`: ROC, precision and recall, DET; any metric at all thresholds; the points of curves that
  people quote
- `areas`: ROC AUC (partial, one against one), average precision, DeLong's interval
- `precision_intervals`: an interval of the average precision
- `columns`: any of them per class or label, and averaged
- `multilabel`: top-k, and how the labels of each example are ranked
- `histograms`: areas of streams, with certified bounds

Examples stand on the last axis, leading axes are batch and broadcast:

- `y_true`: 0 or 1 (or bool), `(..., n)`; negative labels leave their examples out: of labels -1 and
  1 take `y_true == 1`.
- `y_score`: real numbers, `(..., n)`; only their order matters. NumPy arrays are compared in their
  own precision, what jit hides in float32 (float64 under x64).
- `sample_weight`: `(..., n)`; weight 2 equals the example written twice, 0 the example left out.
- `where`: bool, `(..., n)`; false leaves the example out, whatever it holds.

Labels that are no integers, scores that are no real numbers and a mask that is not bool raise
TypeError, unequal numbers of examples and batch axes that do not broadcast ValueError; so do, on
the host, of examples that count, a label of 2 or more, -1 and 1 without a 0, a NaN score, and a
weight that is NaN, infinite or negative. On the device a NaN score that counts makes results NaN.
"""

from jaxmetrics.ranking.areas import *
from jaxmetrics.ranking.columns import *
from jaxmetrics.ranking.curves import *
from jaxmetrics.ranking.histograms import *
from jaxmetrics.ranking.multilabel import *
from jaxmetrics.ranking.precision_intervals import *
