"""Classification metrics of a confusion matrix.

A metric is a function of `counts`, a confusion matrix `(..., K, K)` of integers or floats; rows are
true classes, columns are predicted classes, extra leading axes are batch axes. Per-class rates
return `(..., K)`, other metrics `(...)`: NumPy float64 for NumPy counts, and for a JAX array a JAX
array in its precision. For class i against the rest: TP = C_ii, FN = the rest of row i, FP = the
rest of column i, TN = all other cells; n = the sum of all cells.

- **0/0** gives `zero_division`, a number, 0.0 by default; NaN means undefined, and averages skip
  it.
- Averages are functions of metrics: `macro(f1)(counts)`. They average over the classes that occur
  in truth or prediction.
- Gradients with respect to float counts are finite, also at empty cells and absent classes.
- A NaN in `counts` makes every value that depends on it NaN; averages do not skip it.
- Negative or infinite NumPy `counts` raise ValueError; rounding errors less than 1e-9 below 0 count
  as 0. The values of JAX arrays are not inspected.
- `counts` that are not numeric, or not of shape `(..., K, K)`, raise TypeError or ValueError.

Formulas without a source: Sokolova and Lapalme (2009), A systematic analysis of performance
measures for classification tasks, Information Processing & Management 45(4).
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
