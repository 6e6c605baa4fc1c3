"""Draw pictures by matplotlib (the extra `plot`), which is imported when a function is called.

Each function draws on the matplotlib axes `ax`, or on those of a new figure of pyplot, and returns
them, with labels of their own: a notebook shows the figure, and `pyplot.savefig` and `pyplot.close`
find it. Names are shown as they are, also with dollar signs in them; long ones are cut. Without
matplotlib ImportError is raised; arguments of another kind raise TypeError, of another shape or
range ValueError.

- `matrices`: who is taken for whom
- `forests`: values with their intervals, below each other
- `diagrams`: curves of scores and probabilities
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
