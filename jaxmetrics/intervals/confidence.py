"""How far an interval reaches: for one number or for several at once, once or at all times."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from jaxmetrics._arithmetic import divide
from jaxmetrics._jax import jax, trees
from jaxmetrics._namespaces import Array, is_jax, xp
from jaxmetrics._validation import check_flag, check_size
from jaxmetrics.estimates import Metric, normal_quantile

__all__: list[str] = []

_NARROWEST = 500  # examples


class Confidence(NamedTuple):
    """With which probability an interval holds, and when.

    Attributes:
        level: of the interval of one value.
        narrowest: None for an interval that is computed once; for one that holds at all times, the
            number of units at which it is to be narrowest.
    """

    level: float
    narrowest: int | None = None

    def quantile(self, n: Array) -> Array | float:
        """Return by how many standard errors the interval of n independent units reaches.

        Once it is the normal quantile. At all times it is the boundary that a normal mixture
        martingale crosses with probability α, `sqrt(2 (1 + 1 / m) ln(sqrt(m + 1) / α))`, m = n ρ^2:
        Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52, theorem
        2.2; ρ as there in appendix B.2.
        """
        if self.narrowest is None:
            return normal_quantile(self.level)
        doubled = -2 * math.log(1 - self.level)
        m = n * ((doubled + math.log(doubled) + 1) / self.narrowest)
        reach = xp.sqrt((1 + divide(1.0, m)) * (xp.log1p(m) + doubled))
        return xp.where(m > 0, reach, xp.inf)


def confidence(
    level: float,
    metric: Metric,
    example: Array,
    *,
    simultaneous: bool = False,
    anytime: bool | int = False,
) -> Confidence:
    """Return how far the intervals of a metric reach, which is computed of tables like the example.

    Simultaneous intervals of V values have the level `level^(1 / V)` each: for normal estimates
    they then hold together with `level`, whatever their correlations. Šidák (1967), Journal of the
    American Statistical Association 62.
    """
    normal_quantile(level)  # checks it
    if check_flag(simultaneous, "simultaneous"):
        values = jax.eval_shape(metric, example) if is_jax(example) else metric(example)
        number = sum(math.prod(np.shape(x)) for x in trees.leaves(values))
        level = level ** (1 / max(number, 1))
    if isinstance(anytime, bool | np.bool_):
        return Confidence(level, _NARROWEST if anytime else None)
    return Confidence(level, check_size(anytime, "anytime"))
