"""Beta distributions: a single one, and sums and averages of independent ones.

- `distributions`: density, cdf and quantiles of one beta distribution
- `parameters`: priors, and the posteriors of recalls from counts
- `beta_averages`: `BetaAverage`, and its methods as functions
- `sums`: the sum, on a grid and at points
- `_convolutions`: how the distribution of a sum is computed, and its accuracy
- `_characteristic`: characteristic functions, and windows that contain all of the mass
- `_multilevel`: sums whose characteristic function decays slowly
- `_splines`: how such a distribution is stored and evaluated
- `_quadrature`: points and weights
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.betas.parameters import *
from jaxmetrics.betas.distributions import *
from jaxmetrics.betas.beta_averages import *
from jaxmetrics.betas.sums import *


def __dir__() -> list[str]:
    """List functions and types, not the files that they come from."""
    return _public_names(globals())
