"""Ranking metrics of scores, such as ROC AUC, average precision and NDCG.

- `curves`: ROC, precision-recall and DET curves; any metric at all thresholds
- `thresholds`: thresholds that maximise a metric, or that keep a rate with confidence
- `areas`: ROC AUC (also partial and one-vs-one), average precision, DeLong's interval
- `precision_intervals`: a confidence interval of average precision
- `abstention`: risk-coverage curve, and accuracy if some examples are not answered
- `columns`: any binary metric of scores for each class or label, and averages over classes
- `multilabel`: top-k metrics, and metrics of the ranking of labels within each example
- `histograms`: histograms of scores for data in batches, and bounds of areas

The last axis has the n examples. Extra leading axes are batch axes and broadcast.

- `y_true`: labels 0 or 1 (or bool), of shape `(..., n)`. Examples with a negative label are
  ignored. If your labels are -1 and 1, pass `y_true == 1`.
- `y_score`: real scores of shape `(..., n)`. Only their order matters. NumPy scores are compared in
  their own precision. Under jit, scores are compared in float32, or in float64 if `jax_enable_x64`
  is on.
- `sample_weight`: weights of the examples, of shape `(..., n)`. An example of weight 2 counts like
  two equal examples.
- `where`: boolean mask of shape `(..., n)`. Examples where it is False are ignored, even if NaN.

TypeError is raised for wrong dtypes, such as labels that are not integers. ValueError is raised if
shapes do not match. For NumPy arrays, ValueError is also raised for a label of 2 or more, for
labels -1 and 1 without any 0, for NaN scores, and for weights that are NaN, infinite or negative.
The values of JAX arrays are not checked. A NaN score in a JAX array makes the result NaN.
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.ranking.abstention import *
from jaxmetrics.ranking.areas import *
from jaxmetrics.ranking.columns import *
from jaxmetrics.ranking.curves import *
from jaxmetrics.ranking.histograms import *
from jaxmetrics.ranking.multilabel import *
from jaxmetrics.ranking.precision_intervals import *
from jaxmetrics.ranking.thresholds import *


def __dir__() -> list[str]:
    """List the functions and types, but not the files that define them."""
    return _public_names(globals())
