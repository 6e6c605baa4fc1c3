"""Sums and averages of independent betas: the k-fold convolution by FFT, on a fixed number of points placed for each matrix.

- `averages`: `BetaAverage`, and its functions by the names of the mathematics
- `sums`: parameters from counts, the sum on a grid
- `_convolutions`: how the law of a sum is found, and how exact it is; `_laws`: how it is held
"""

from jaxmetrics.betasum.averages import *
from jaxmetrics.betasum.sums import *
