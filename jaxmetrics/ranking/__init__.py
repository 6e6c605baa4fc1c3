"""Ranking metrics: curves and areas of scores.

- `curves`: ROC, precision-recall and DET curves; any metric at all thresholds; operating points
- `areas`: ROC AUC (also partial and one against one), average precision, DeLong's interval
- `precision_intervals`: a confidence interval of average precision
- `columns`: any of these per class or label, and averaged
- `multilabel`: top-k metrics, and metrics of how the labels of each example are ranked
- `histograms`: areas of streams of scores, with certified bounds

The last axis has the n examples; extra leading axes are batch axes and broadcast:

- `y_true`: 0 or 1 (or bool), `(..., n)`; a negative label drops its example: for labels -1 and 1
  pass `y_true == 1`.
- `y_score`: real numbers, `(..., n)`; only their order matters. NumPy arrays are compared in their
  own precision, tracers under jit in float32 (float64 under x64).
- `sample_weight`: `(..., n)`; weight 2 equals the example written twice, 0 the example left out.
- `where`: bool, `(..., n)`; False leaves the example out, even if it holds NaN.

Labels that are not integers, scores that are not real numbers and a mask that is not bool raise
TypeError; unequal numbers of examples and batch axes that do not broadcast raise ValueError. In
NumPy arrays, examples that count also raise ValueError for a label of 2 or more, labels -1 and 1
without a 0, a NaN score, and a weight that is NaN, infinite or negative. In JAX arrays a NaN score
that counts makes results NaN.
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.ranking.areas import *
from jaxmetrics.ranking.columns import *
from jaxmetrics.ranking.curves import *
from jaxmetrics.ranking.histograms import *
from jaxmetrics.ranking.multilabel import *
from jaxmetrics.ranking.precision_intervals import *


def __dir__() -> list[str]:
    """List functions and types, not the files that they come from."""
    return _public_names(globals())
