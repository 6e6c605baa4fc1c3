"""Plots with matplotlib (the extra `plot`), which is imported when a function is called.

Each function draws on the matplotlib axes `ax`, or on the axes of a new pyplot figure, and returns
the axes, with their labels: a notebook shows the figure, and `pyplot.savefig` and `pyplot.close`
find it. Names are shown literally, also with dollar signs; long names are shortened. Without
matplotlib ImportError is raised; arguments of a wrong type raise TypeError, of a wrong shape or
range ValueError.

- `matrices`: confusion matrices
- `forests`: forest plots of values with error bars
- `diagrams`: ROC, precision-recall and reliability curves
- `violins`: posteriors
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.plots.matrices import *
from jaxmetrics.plots.forests import *
from jaxmetrics.plots.diagrams import *
from jaxmetrics.plots.violins import *


def __dir__() -> list[str]:
    """List functions and types, not the files that they come from."""
    return _public_names(globals())
