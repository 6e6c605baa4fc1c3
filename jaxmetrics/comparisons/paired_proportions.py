"""Intervals of the difference of two accuracies on the same examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from jaxmetrics._arithmetic import divide, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._roots import root
from jaxmetrics._validation import ArrayLike, as_float, check_option
from jaxmetrics.comparisons.hypothesis_tests import discordant
from jaxmetrics.estimates import Estimate, normal_quantile

__all__ = ["paired_difference_interval"]


@compiled
def paired_difference_interval(
    paired: ArrayLike,
    *,
    level: float = 0.95,
    method: Literal["tango", "bonett_price"] = "tango",
) -> Estimate:
    """Estimate the accuracy of A less that of B on the same examples, with an interval.

    With b of n examples for which only A is right and c for which only B is, the difference is
    (b - c) / n. `mcnemar` tests whether it is 0.

    - `"tango"`: all differences δ that a score test does not reject,
      `(b - c - nδ)^2 <= z^2 n (2q + δ (1 - δ))`, where q is the likeliest probability that only B
      is right, given δ. Tango (1998), Statistics in Medicine 17.
    - `"bonett_price"`: `p - q ± z sqrt((p + q - (p - q)^2) / (n + 2))`, with p = (b + 1) / (n + 2)
      and q = (c + 1) / (n + 2), cut to [-1, 1]. Bonett and Price (2012), Journal of Educational and
      Behavioral Statistics 37.

    Args:
        paired: as for `mcnemar`; weights are read as frequencies.

    Returns:
        `Estimate` of shape `(...)`, in [-1, 1]; `standard_error` is `sqrt(b + c - (b - c)^2 / n) /
        n`. Without examples the value is NaN and the interval [-1, 1]; negative counts give NaN.

    Raises:
        ValueError: another shape, a level outside of (0, 1), an unknown method.

    >>> paired_difference_interval([[1, 1], [7, 12]])
    -0.286 [-0.517, -0.026]
    """
    check_option(method, "method", tuple(_METHODS))
    z = normal_quantile(level)
    table = as_float(paired, "paired")
    only_a, only_b, valid = discordant(table)
    n = table.sum() if table.shape == (2, 2) else table.sum((-3, -2, -1))
    p, q = (xp.where(valid, divide(x, n), xp.nan) for x in (only_a, only_b))
    low, high = _METHODS[method](p, q, n, z)
    low, high = (xp.where((n == 0) & valid, end, x) for end, x in ((-1, low), (1, high)))
    error = safe_sqrt(divide(p + q - (p - q) ** 2, n, xp.nan))
    value = xp.where(n == 0, xp.nan, p - q)
    return Estimate(value, low, high, error, xp.zeros(value.shape, xp.int32))


def _tango(p: Array, q: Array, n: Array, z: float) -> tuple[Array, Array]:
    return p - q - _reach(q, p, n, z), p - q + _reach(p, q, n, z)


def _reach(p: Array, q: Array, n: Array, z: float) -> Array:
    """Return how far above p - q the greatest difference lies that the score test admits."""

    def excess(distance: Array) -> tuple[Array, Array]:
        delta = xp.minimum(p - q + distance, 1)
        slope = (2 - p + q) * delta - p - q
        root = xp.sqrt(xp.maximum(slope**2 + 8 * q * delta * (1 - delta), 0))
        # Of two forms of one solution, that which subtracts nothing.
        product = divide(2 * q * delta * (1 - delta), slope + root)
        likeliest = xp.where(slope > 0, product, (root - slope) / 4)
        variance = xp.maximum(2 * likeliest + delta * (1 - delta), 0)
        return distance - z * xp.sqrt(divide(variance, n)), xp.zeros_like(distance)

    most = 1 - p + q
    rtol = float(xp.finfo(p.dtype).eps)
    return root(excess, xp.zeros_like(p), most, most / 2, rtol=rtol)


def _bonett_price(p: Array, q: Array, n: Array, z: float) -> tuple[Array, Array]:
    p, q = ((n * x + 1) / (n + 2) for x in (p, q))
    reach = z * xp.sqrt((p + q - (p - q) ** 2) / (n + 2))
    return xp.maximum(p - q - reach, -1), xp.minimum(p - q + reach, 1)


# The ends, from the shares of examples for which only A and only B is right, n and z.
_METHODS: dict[str, Callable[[Array, Array, Array, float], tuple[Array, Array]]] = {
    "tango": _tango,
    "bonett_price": _bonett_price,
}
