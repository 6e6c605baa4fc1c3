"""Isotonic regression of labels on predicted probabilities (CORP), for calibration without bins.

The frequency of class 1 is estimated as an increasing function of the probability, by the
pool-adjacent-violators algorithm. CORP stands for consistent, optimally binned, reproducible and
pool-adjacent-violators. Source: Dimitriadis, Gneiting and Jordan (2021), PNAS 118.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arguments.example_arguments import Examples
from jaxmetrics._numerics.arithmetic import divide, safe_log
from jaxmetrics._numerics.roots import root
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, Arrays, float_dtype, lax, on_device, special, xp
from jaxmetrics.betas.distributions import log1p_minus
from jaxmetrics.ranking.ranks import Ranked, cumulative_positives, points
from jaxmetrics.scoring.bins import positions
from jaxmetrics.scoring.rows import is_probability, weighted_mean, weights_of

__all__: list[str] = []

# Number of groups of examples. The band uses all intervals from the start of one to the end of
# another.
_NUM_GROUPS = 64


@compiled
def isotonic_curve(examples: Examples, ranked: Ranked, *, level: float) -> Arrays:
    """Compute the isotonic regression and its confidence band, by increasing probability.

    Returns:
        Probabilities, frequencies, and the lower and upper end of the band, all of shape
        `(..., n)`.
    """
    sums = _sums(examples, ranked)
    low, high = _band(sums, level)
    f = _frequency(sums) + sums.invalid
    # The probabilities in the order of the sums; ignored examples repeat another one.
    p = points(ranked)[2][..., 1:]
    highest = xp.where(p < xp.inf, p, -xp.inf).max(-1, keepdims=True, initial=-xp.inf)
    p = xp.where(p < xp.inf, p, xp.where(highest == -xp.inf, xp.nan, highest)) + sums.invalid
    columns = xp.broadcast_arrays(p, f, xp.minimum(low, f), xp.maximum(high, f))
    return tuple(x[..., ::-1] for x in columns)


class _CumulativeSums(NamedTuple):
    """Cumulative sums by decreasing probability, of shape `(..., n + 1)`; ties repeat a sum."""

    true: Array
    weight: Array
    invalid: Array  # (..., 1): NaN if a value that is not ignored is invalid, else 0

    @property
    def weights(self) -> Array:
        """The increase of the cumulative weights at each example, of shape `(..., n)`."""
        return self.weight[..., 1:] - self.weight[..., :-1]


def _sums(examples: Examples, ranked: Ranked) -> _CumulativeSums:
    true, false = cumulative_positives(ranked)
    impossible = ranked.undefined
    if on_device(examples):  # NumPy arrays have been checked already
        counts = examples.amounts != 0
        impossible |= (counts & ~is_probability(examples.values)).any(-1)
    return _CumulativeSums(true, true + false, xp.where(impossible, xp.nan, 0.0)[..., None])


def _frequency(sums: _CumulativeSums) -> Array:
    """Compute the isotonic regression at each example, by decreasing probability.

    Isotonic regression is the slope of the least concave majorant of the cumulative sums: Barlow,
    Bartholomew, Bremner and Brunk (1972), Statistical Inference under Order Restrictions, theorem
    1.1.
    """
    y, x = sums.true, sums.weight
    if not on_device(x):
        rows = zip(y.reshape((-1, y.shape[-1])), x.reshape((-1, x.shape[-1])), strict=True)
        return np.array([_pooled(*row) for row in rows]).reshape(sums.weights.shape)
    vertex, axis, end = _vertices(x, y), x.ndim - 1, x.shape[-1] - 1
    place = lax.broadcasted_iota(xp.int32, x.shape, axis)
    left = lax.cummax(xp.where(vertex, place, 0), axis)[..., :-1]
    right = lax.cummin(xp.where(vertex, place, end), axis, reverse=True)[..., 1:]
    at_right, at_left = (
        [xp.take_along_axis(z, place, -1) for z in (y, x)] for place in (right, left)
    )
    return _ratio(at_right[0] - at_left[0], at_right[1] - at_left[1])


def _pooled(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Pool adjacent violators one after another, in NumPy."""
    from scipy.optimize import isotonic_regression

    is_new = np.diff(x) > 0  # the first of its ties
    if not is_new.any():
        return np.full(is_new.shape, np.nan)
    weights = np.diff(x)[is_new].astype(float)
    fit = isotonic_regression(np.diff(y)[is_new] / weights, weights=weights, increasing=False)
    return fit.x[np.maximum(np.cumsum(is_new) - 1, 0)]


def _ratio(a: Array, b: Array) -> Array:
    """Divide counts or sums in the float precision of results; 0/0 gives NaN."""
    return divide(a.astype(float_dtype(a)), b.astype(float_dtype(b)), xp.nan)


def _vertices(x: Array, y: Array) -> Array:
    """Return a mask of the points `(..., m)` that are vertices of the least concave majorant.

    All rows are joined to one sequence, in which the first and the last point of each row are
    vertices.
    """
    place = xp.zeros_like(x, xp.int32) + xp.arange(x.shape[-1])
    is_end = (place == 0) | (place == x.shape[-1] - 1)
    # All slopes are at most 1. If points are equal, the last is the vertex.
    allowed = xp.concatenate([(x - y)[..., :-1] < (x - y)[..., 1:], is_end[..., -1:]], -1)
    return _split(*(z.reshape(-1) for z in (x, y, is_end, allowed))).reshape(x.shape)


def _split(x: Array, y: Array, ends: Array, allowed: Array) -> Array:
    """Find more vertices by quickhull: the points farthest above the line between two neighbouring
    vertices.

    The number of steps is at most the number of digits of x and y: Greenfield (1990), A proof for a
    quickhull algorithm, Syracuse University.
    """
    place, last = xp.arange(len(x)), len(x) - 1

    def add(state: Arrays) -> Arrays:
        vertex, _ = state
        left = lax.cummax(xp.where(vertex, place, 0), 0)
        right = lax.cummin(xp.where(vertex, place, last), 0, reverse=True)
        (dx, dy), (width, height) = (
            [(v[of] - v[left]).astype(float_dtype(x)) for v in (x, y)] for of in (place, right)
        )
        above = xp.where(allowed, dy * width - height * dx, 0)
        greatest: Any = xp.zeros_like(above)
        farthest = (above > 0) & (above >= greatest.at[left].max(above)[left])
        return vertex | farthest, farthest.any()

    return lax.while_loop(lambda state: state[1], add, (ends, ends[0]))[0]


def _band(sums: _CumulativeSums, level: float) -> Arrays:
    """Compute the simultaneous confidence band of the frequency at each example."""
    n = sums.weight
    (starts, ends), _ = groups = _groups(sums)
    # All intervals from the start of a group a to the end of a group b.
    trials, successes = (
        xp.maximum(y[..., None, :] - x[..., :, None], 0).astype(float_dtype(n)) for x, y in groups
    )
    num_groups = (ends > starts).sum(-1)
    z = -special.ndtri((1 - level) / xp.maximum(num_groups * (num_groups + 1), 1))
    lowest, highest = _binomial_bounds(successes, trials, z[..., None, None])
    # One bound of a point is from all intervals that start at or after it, the other bound is from
    # all intervals that end at or before it.
    low = lax.cummax(lowest.max(-1), lowest.ndim - 2, reverse=True)
    high = lax.cummin(highest.min(-2), highest.ndim - 2)
    # For each group, the first position whose cumulative sum is greater than at the group's start.
    later = n[..., 1:]
    size = later.shape[-1]
    following = xp.minimum(positions(n, starts, side="right"), size)
    after_start = positions(later, xp.take_along_axis(n, following, -1), side="right")
    return (
        _steps(xp.concatenate([low, xp.zeros_like(low[..., :1])], -1), after_start, size),
        _steps(
            xp.concatenate([xp.ones_like(high[..., :1]), high], -1), positions(later, ends), size
        ),
    )


def _groups(sums: _CumulativeSums) -> list[Arrays]:
    """Return the cumulative sums of weights and labels at the start and the end of each group."""
    n = sums.weight
    shares = xp.arange(1, _NUM_GROUPS + 1) / _NUM_GROUPS
    last = positions(n, (n[..., -1:] * shares).astype(n.dtype), side="right") - 1
    ends = [xp.take_along_axis(x, last, -1) for x in (n, sums.true)]
    return [(xp.concatenate([xp.zeros_like(x[..., :1]), x[..., :-1]], -1), x) for x in ends]


def _steps(values: Array, first: Array, size: int) -> Array:
    """Expand the G + 1 values of a step function to `size` values; each value except the first
    starts at one of G positions.
    """
    if on_device(values, first):
        steps = positions(first, xp.arange(size), side="right")
        return xp.take_along_axis(values, steps, -1)
    times = np.diff(first, prepend=0, append=size)
    return np.repeat(values.reshape(-1), times.reshape(-1)).reshape((*values.shape[:-1], size))


def _binomial_bounds(s: Array, n: Array, z: Array) -> Arrays:
    """Compute lower and upper confidence bounds of a proportion, each with error at most
    `P(Z > z)`.

    If X ~ B(n, p) and p >= (s + 1) / n, then `P(X <= s) <= P(Z > sqrt(2 n KL((s + 1) / n, p)))`:
    Zubkov and Serov (2013).
    """
    reach_down, reach_up = (_reach(divide(x + 1, n, 1.0), n, z) for x in (n - s, s))
    low, high = divide(s - 1, n) - reach_down, divide(s + 1, n) + reach_up
    return xp.where(s > 1, xp.maximum(low, 0), 0), xp.where(n - s > 1, xp.minimum(high, 1), 1)


def _reach(q: Array, n: Array, z: Array) -> Array:
    """Return the solution t > 0 of `2 n KL(q, q + t) = z^2`."""
    rest = xp.where(q < 1, 1 - q, 0.5)
    q = xp.where(q < 1, q, 0.5)

    def excess(t: Array) -> Arrays:
        up, down = t / q, -t / rest
        kl = -q * log1p_minus(up, xp.log1p(up)) - rest * log1p_minus(down, xp.log1p(down))
        return 2 * n * kl - z**2, 2 * n * t / ((q + t) * (rest - t))

    normal = z * xp.sqrt(q * rest / xp.maximum(n, 1))
    return root(excess, xp.zeros_like(q), rest, xp.minimum(normal, rest / 2), rtol=1e-6)


@compiled
def isotonic_decomposition(examples: Examples, ranked: Ranked, *, score: str) -> Arrays:
    """Compute miscalibration, discrimination and uncertainty; see `score_decomposition`."""
    score_of_forecast, expected_score = _SCORES[score]
    sums = _sums(examples, ranked)
    p = xp.clip(examples.values, 0, 1)
    original = weighted_mean(score_of_forecast(p, examples.ids), weights_of(examples))
    recalibrated = weighted_mean(expected_score(_frequency(sums)), sums.weights.astype(p.dtype))
    uncertainty = expected_score(_ratio(sums.true[..., -1], sums.weight[..., -1]))
    parts = original - recalibrated, uncertainty - recalibrated, uncertainty
    return tuple(part + sums.invalid[..., 0] for part in xp.broadcast_arrays(*parts))


def _negative_log_likelihood(p: Array, y: Array) -> Array:
    eps = xp.finfo(p.dtype).eps
    p = xp.clip(p, eps, 1 - eps)
    return -xp.where(y == 1, xp.log(p), xp.log1p(-p))


def _entropy(f: Array) -> Array:
    return -(f * safe_log(f) + (1 - f) * safe_log(1 - f))


# The score of a forecast p for label y, and its expected value if class 1 has frequency p.
_SCORES: dict[str, tuple[Callable[[Array, Array], Array], Callable[[Array], Array]]] = {
    "brier": (lambda p, y: (p - y) ** 2, lambda f: f * (1 - f)),
    "log_loss": (_negative_log_likelihood, _entropy),
}
