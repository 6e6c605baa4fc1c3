"""How many examples a test set needs, and which differences it can show."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import jax

from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, xp
from jaxmetrics._validation import ArrayLike, as_counts, as_float
from jaxmetrics.comparisons import compare
from jaxmetrics.comparisons.differences import Comparison
from jaxmetrics.estimates import Estimate, Metric, normal_quantile
from jaxmetrics.intervals import Delta, delta_method

__all__ = ["detectable_difference", "required_examples"]


def required_examples(
    metric: Metric, counts: ArrayLike, *, half_width: float, level: float = 0.95
) -> Any:
    """Estimate how many examples like these an interval of a given half-width takes.

    With s the standard error of the delta method at the N examples that were counted, whose
    variance falls as 1 / n, `n = N (z s / h)^2`, to be rounded up.

    Args:
        metric: as for `delta_method`.
        counts: `(..., K, K)`, of a pilot study, or expected; only their proportions matter.
        half_width: h, in the units of the metric.
        level: of the interval.

    Returns:
        n, `(...)`, or a pytree of them; NaN where the error is 0 or undefined, as where no mistake
        was seen.

    Raises:
        ValueError: a half-width that is not above 0, and what `delta_method` refuses.

    >>> import jaxmetrics as jm
    >>> required_examples(jm.accuracy, [[45, 5], [5, 45]], half_width=0.02)  # 1.96^2 .9 .1 / .02^2
    np.float64(864.33)
    """
    _check_positive(half_width, "half_width")
    total = as_float(as_counts(counts), "counts").sum((-2, -1))
    estimates = delta_method(metric, counts, level=level)
    reach = normal_quantile(level) / half_width

    def number(estimate: Estimate) -> Array:
        return _scaled(estimate.standard_error, total, reach) ** 2

    return jax.tree.map(number, estimates, is_leaf=lambda x: isinstance(x, Estimate))


def detectable_difference(
    metric: Metric,
    paired: ArrayLike,
    num_examples: int,
    *,
    power: float = 0.8,
    level: float = 0.95,
) -> Any:
    """Estimate the difference between two classifiers that so many examples would show.

    With s the standard error of the difference of the N pairs that were counted, by the delta
    method, `d = (z + z_power) s sqrt(N / n)`: a true difference of this size has an interval
    without 0 with the given power.

    Args:
        metric: as for `compare`.
        paired: `(..., K, K, K)`, from `paired_confusion_matrix`, of a pilot study; only their
            proportions matter, and among these how often the two classifiers disagree.
        num_examples: n.
        power: the probability to show it.
        level: of the interval.

    Returns:
        `(...)` or a pytree; NaN where the error is 0 or undefined, as where they never disagree.

    Raises:
        ValueError: a power not in (0, 1), no examples, and what `compare` refuses.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> detectable_difference(jm.accuracy, paired, 1000).round(3)
    np.float64(0.028)
    """
    _check_positive(num_examples, "num_examples")
    if not 0 < power < 1:
        raise ValueError(f"power must be between 0 and 1, got {power!r}.")
    total = as_float(paired, "paired").sum((-3, -2, -1))
    comparisons = compare(0, metric, paired, method=Delta(), level=level)
    reach = normal_quantile(level) + NormalDist().inv_cdf(power)

    def difference(comparison: Comparison) -> Array:
        return _scaled(comparison.difference.standard_error, total, reach / num_examples**0.5)

    return jax.tree.map(difference, comparisons, is_leaf=lambda x: isinstance(x, Comparison))


@compiled
def _scaled(error: Array, total: Array, factor: float) -> Array:
    """Multiply errors `(..., *)` of `total` examples `(...)` by its root, which leaves that of one
    example, and by a factor; NaN where nothing varies.
    """
    totals = total.reshape(total.shape + (1,) * (error.ndim - total.ndim))
    return xp.where(error > 0, factor * error * xp.sqrt(totals), xp.nan)


def _check_positive(x: float, name: str) -> None:
    if not x > 0:
        raise ValueError(f"{name} must be above 0, got {x!r}.")
