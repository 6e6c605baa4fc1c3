"""Measure classifiers by functions of confusion matrices, in JAX and NumPy.

labels, predictions -> counts -> metric -> number:
`macro(f1)(confusion_matrix(y_true, y_pred, num_classes=10))`.
"""

from typing import TYPE_CHECKING

# data -> counts
from jaxmetrics.counts import *

# counts -> numbers; macro, micro, weighted averages
from jaxmetrics.metrics import *

# betas: one, and sums and averages of independent ones
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

# how many examples, and what they can show
from jaxmetrics.planning import *

# states that add, over batches, devices and hosts
from jaxmetrics.streaming import *

# any data frame or SQL relation -> counts
from jaxmetrics.tables import *

# pictures, by matplotlib, which is imported when one is drawn
from jaxmetrics import plots as plots

# predictions -> Report
from jaxmetrics.reports import *

__version__ = "0.2.0"


def __dir__() -> list[str]:
    """List the public names: functions, types and `plots`, not the files that they come from."""
    names = ((name, value) for name, value in globals().items() if not name.startswith("_"))
    return sorted(["__version__", *(n for n, x in names if callable(x) or n == "plots")])


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Say what a measure that goes by another name elsewhere is called here."""
        from jaxmetrics._names_elsewhere import NAMES_HERE

        hint = f" Here it is {NAMES_HERE[name]}." if name in NAMES_HERE else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{hint}")
