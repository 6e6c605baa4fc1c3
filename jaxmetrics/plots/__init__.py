"""Plots with matplotlib, which is installed by `pip install 'jaxmetrics[plot]'`.

Each function draws on the matplotlib axes `ax`, or on a new pyplot figure, and returns the axes.
Names are shown unchanged even if they contain dollar signs, but long names are shortened. Functions
raise ImportError if matplotlib is not installed, TypeError if an argument has the wrong type, and
ValueError if an argument has the wrong shape or is out of range.

- `matrices`: heat maps of confusion matrices
- `forests`: forest plots of values with error bars
- `diagrams`: ROC, precision-recall and reliability curves
- `violins`: violin plots of posterior distributions
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.plots.matrices import *
from jaxmetrics.plots.forests import *
from jaxmetrics.plots.diagrams import *
from jaxmetrics.plots.violins import *


def __dir__() -> list[str]:
    """List the functions and types, but not the files that define them."""
    return _public_names(globals())
