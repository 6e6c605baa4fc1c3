"""Compute from counts every performance measure that a confusion matrix determines.

A metric is a function of `counts`, shape `(..., K, K)`, integer or float; row = true class, column
= predicted class; leading axes are batch. Per-class rates return `(..., K)`, other metrics `(...)`:
float64 of NumPy for counts on the host, and for a JAX array one in its precision. Of class i
against the rest: TP = C_ii, FN = the rest of its row, FP = the rest of its column, TN = all else; n
= the sum of all cells.

- **0/0** gives `zero_division`, a number, 0.0 unless said otherwise; NaN means undefined, and
  averages skip it.
- Averages are functions of functions: `macro(f1)(counts)`. They run over the classes that occur, in
  truth or prediction.
- Gradients with respect to float counts are finite, also at empty cells and absent classes.
- A NaN in `counts` makes NaN of what depends on it; averages do not skip it.
- ValueError is raised for negative or infinite `counts` of the host; what rounding has put less
  than 1e-9 below 0 counts as 0. Those of a JAX array are not looked at.
- TypeError and ValueError are raised for `counts` that are not numeric or not of shape
  `(..., K, K)`.

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
