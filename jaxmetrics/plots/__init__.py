"""Draw pictures by matplotlib (the extra `plot`), which is imported when a function is called.

Each function draws on the axes given, or on new ones, which pyplot does not know:
`roc(y_true, y_score).figure.savefig("roc.png")`. Names are shown as they are, also with dollar
signs in them; long ones are cut.

- `matrices`: who is taken for whom
- `forests`: values with their intervals, below each other
- `curves`: scores and probabilities
- `violins`: posteriors
"""

from jaxmetrics.plots.matrices import *
from jaxmetrics.plots.forests import *
from jaxmetrics.plots.curves import *
from jaxmetrics.plots.violins import *
