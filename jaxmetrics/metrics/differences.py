"""The difference of a metric between two classifiers on the same examples."""

from __future__ import annotations

from typing import Any

from jaxmetrics._applied import applied, reading
from jaxmetrics._arguments.single import ArrayLike, as_counts
from jaxmetrics._numerics.arithmetic import subtract
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array
from jaxmetrics.metrics.averages import A_METRIC, Metric

__all__ = ["difference"]


def difference(metric: Metric) -> Metric:
    """Compute the difference of a metric between classifiers A and B, `metric(A) - metric(B)`.

    Args:
        metric: a function of counts `(..., K, K)` that returns an array, or a dict or tuple of
            arrays (any pytree).

    Returns:
        A function of paired counts `(..., K, K, K)` from `paired_confusion_matrix`. Differences
        that are rounding errors become 0. `interval(difference(metric), counts)` returns the same
        interval as `compare`.

    Raises:
        TypeError: if `metric` is not a function.
        ValueError: raised by the returned function if paired counts do not have shape
            `(..., K, K, K)`.

    >>> import jaxmetrics as jm
    >>> paired = [[[80, 6], [4, 10]], [[10, 5], [5, 80]]]
    >>> gain = difference(jm.accuracy)
    >>> gain(paired).round(3), jm.interval(gain, paired)
    (np.float64(0.01), 0.010 [-0.037, 0.058])
    """
    return applied(_difference, metric, A_METRIC)


@reading(pairs=True)
@compiled
def _difference(metric: Metric, paired: ArrayLike, **options: Any) -> Any:
    cube: Array = as_counts(paired, "paired", ndim=3)
    a, b = (metric(cube.sum(axis), **options) for axis in (-1, -2))
    return trees.map(subtract, a, b)
