"""Classification metrics of a confusion matrix.

A metric is a function of `counts`, a confusion matrix of integers or floats. The shape of `counts`
is `(..., K, K)`: rows are true classes, columns are predicted classes, and extra leading axes are
batch axes. Per-class rates return one value per class, in an array of shape `(..., K)`; all other
metrics return one number per matrix, in an array of shape `(...)`. The result is NumPy float64 for
NumPy counts; for JAX counts it is a JAX array with their precision. In formulas, class i is
compared with all others: TP = C_ii, FN = the other cells of row i, FP = the other cells of column
i, TN = all cells outside row i and column i. The number of examples n is the sum of all cells.

- **`zero_division`** is the value of a metric that is 0/0. The default is 0.0. With
  `zero_division=np.nan` the value is NaN, and averages skip it.
- Averages are functions of metrics: `macro(f1)(counts)`. Averages are over the classes that occur
  among the true or the predicted classes.
- Gradients with respect to float counts are finite, even if cells are 0 or classes do not occur.
- If a cell of `counts` is NaN, every value that depends on it is NaN. Averages do not skip it.
- Negative or infinite NumPy `counts` raise ValueError, but values between -1e-9 and 0 are taken for
  rounding errors and set to 0. The values of JAX arrays are not checked.
- If `counts` is not numeric or does not have shape `(..., K, K)`, metrics raise TypeError or
  ValueError.

The formulas whose docstring names no source are from Sokolova and Lapalme (2009), A systematic
analysis of performance measures for classification tasks, Information Processing & Management
45(4).
"""

# one number per matrix
from jaxmetrics.metrics.overall import *

# kappa and its relatives
from jaxmetrics.metrics.agreement import *

# one number per class
from jaxmetrics.metrics.rates import *

# functions of rates: macro, micro, weighted, binary
from jaxmetrics.metrics.averages import *

# functions of rates: ratio and difference between groups
from jaxmetrics.metrics.groups import *

# functions of metrics: the difference of two classifiers
from jaxmetrics.metrics.differences import *

# functions of metrics: scorers of estimators
from jaxmetrics.metrics.scorers import *
