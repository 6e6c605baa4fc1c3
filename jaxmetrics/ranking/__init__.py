"""Ranking metrics of scores, such as ROC AUC, average precision and NDCG.

- `curves`: ROC, precision-recall and DET curves; any metric at all thresholds; best threshold
- `areas`: ROC AUC (also partial and one-vs-one), average precision, DeLong's interval
- `precision_intervals`: a confidence interval of average precision
- `columns`: any binary metric of scores, computed for each class or label, and its averages
- `multilabel`: top-k metrics, and metrics of the ranking of labels within each example
- `histograms`: histograms of scores for data in batches, from which bounds of areas are computed

In all functions the last axis has the n examples; extra leading axes are batch axes and broadcast:

- `y_true` is 0 or 1 (or bool) and has shape `(..., n)`. Examples with a negative label are ignored,
  so if your labels are -1 and 1, pass `y_true == 1`.
- `y_score` contains real numbers and has shape `(..., n)`. Only the order of scores matters. Scores
  in NumPy arrays are compared in the precision of the array. Under jit, scores are compared in
  float32, or in float64 if `jax_enable_x64` is on.
- `sample_weight` has shape `(..., n)`. An example of weight 2 counts like two equal examples, and
  an example of weight 0 is ignored.
- `where` is a boolean mask of shape `(..., n)`. Examples where it is False are ignored, even if
  their values are NaN.

The functions raise TypeError if labels are not integers, if scores are not real numbers, or if
`where` is not boolean. ValueError is raised if the numbers of examples differ or batch axes do not
broadcast. The values of NumPy arrays are checked, too, except for ignored examples: ValueError is
raised if a label is 2 or more, if labels are -1 and 1 without any 0, if a score is NaN, or if a
weight is NaN, infinite or negative. The values of JAX arrays are not checked, but a NaN score of an
example that is not ignored makes the result NaN.
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.ranking.areas import *
from jaxmetrics.ranking.columns import *
from jaxmetrics.ranking.curves import *
from jaxmetrics.ranking.histograms import *
from jaxmetrics.ranking.multilabel import *
from jaxmetrics.ranking.precision_intervals import *


def __dir__() -> list[str]:
    """List the functions and types, but not the files that define them."""
    return _public_names(globals())
