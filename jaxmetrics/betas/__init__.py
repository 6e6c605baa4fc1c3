"""The beta distribution, and distributions of sums and averages of independent beta variables.

- `distributions`: density, cdf and quantiles of the beta distribution
- `parameters`: priors, and parameters of the posteriors of recalls
- `beta_averages`: the distribution of an average (`BetaAverage`), and functions such as its cdf
- `sums`: density and cdf of a sum, on a grid or at given points
"""

from jaxmetrics._public_names import public_names as _public_names
from jaxmetrics.betas.parameters import *
from jaxmetrics.betas.distributions import *
from jaxmetrics.betas.beta_averages import *
from jaxmetrics.betas.sums import *


def __dir__() -> list[str]:
    """List the functions and types, but not the files that define them."""
    return _public_names(globals())
