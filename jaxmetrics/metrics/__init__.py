"""Classification metrics of a confusion matrix.

A metric is a function of `counts`, a confusion matrix C of integers or floats. Its shape is
`(..., K, K)`: rows are true classes, columns are predicted classes, and extra leading axes are
batch axes. Per-class rates return one value per class, of shape `(..., K)`. All other metrics
return one number per matrix, of shape `(...)`. The result is NumPy float64 if the counts are NumPy
arrays. It is a JAX array of the same precision if the counts are JAX arrays.

In formulas, class i is compared with all others: TP = C_ii, FN = the other cells of row i, FP = the
other cells of column i, TN = all cells outside row i and column i. The number of examples n is the
sum of all cells.

- **`zero_division`** is the value that a metric returns if its formula gives 0/0. The default is
  0.0. With `zero_division=np.nan`, averages skip the classes whose value is NaN.
- Averages turn a per-class rate into a metric, as in `macro(f1)(counts)`. By default, an average
  includes only the classes that occur as true or as predicted class.
- Gradients with respect to float counts are finite, even if cells are 0 or classes do not occur.
- If a cell of `counts` is NaN, every value that depends on this cell is NaN. Averages do not skip
  such a NaN.
- Negative or infinite NumPy `counts` raise ValueError. The values of JAX arrays are not checked.
- If `counts` is not numeric or does not have shape `(..., K, K)`, metrics raise TypeError or
  ValueError.

Formulas without a source are from Sokolova and Lapalme (2009), A systematic analysis of performance
measures for classification tasks, Information Processing & Management 45(4).
"""

# one number per matrix
from jaxmetrics.metrics.overall import *

# kappa and its relatives
from jaxmetrics.metrics.ordinal import *
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
