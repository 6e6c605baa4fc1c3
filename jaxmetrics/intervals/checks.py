"""Check counts and metrics before an interval is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmetrics._applied import Applied, estimated
from jaxmetrics._arithmetic import append_axes
from jaxmetrics._compilation import is_constant, traced_metric
from jaxmetrics._jax import jax, trees
from jaxmetrics._namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics._tracing import TracedMetric
from jaxmetrics._validation import (
    check_function,
    check_samples,
    refuse_where,
    takes_complex,
)
from jaxmetrics._wording import shown
from jaxmetrics.estimates import Estimate, Metric

__all__: list[str] = []

MOST_EXAMPLES = 2.0**31  # examples per table, for int32 draws


def as_floats(metric: Metric) -> Metric:
    """Return the metric with results in the computing dtype."""
    check_function(
        metric,
        "metric",
        "a function of counts, such as jaxmetrics.accuracy or, for several at once, lambda counts:"
        ' {"accuracy": jaxmetrics.accuracy(counts), ...}',
    )

    if isinstance(metric, TracedMetric) or getattr(metric, "scheme", None) is _floats:
        return metric
    return Applied(_floats, metric)


def _floats(metric: Metric, counts: Array) -> Any:
    values = trees.map(as_floating, estimated(metric, read_only(counts)))
    if not trees.leaves(values):
        raise ValueError(f"metric must return an array or a pytree of arrays, got {values!r}.")
    return values


def name_of(metric: Metric) -> str:
    """Return the name of a metric for messages."""
    given = metric.function if isinstance(metric, Applied) and metric.scheme is _floats else metric
    return getattr(given, "__name__", repr(given))


def read_only(x: Array) -> Array:
    """Return a read-only view of a NumPy array, for a user's function."""
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x


def as_floating(x: Any) -> Array:
    """Return a value of a metric in the computing dtype."""
    if is_jax(x):
        if x.dtype.kind == "c":
            raise TypeError(f"metric must return real numbers, got {x.dtype}.")
        return x.astype(float_dtype(x))
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"metric must return numbers, got {shown(x)}.")
    if array.dtype.kind != "c":
        return array.astype(float)
    if not takes_complex.get():
        raise TypeError(f"metric must return real numbers, got {array.dtype}.")
    return array  # for a derivative


def placed(metric: Metric, tables: Array, shape: tuple[int, ...]) -> tuple[Metric, Array]:
    """Move tables from the host to the device if the metric returns JAX arrays.

    This is tested with a table of ones of the shape that the metric reads, unless the metric is
    from this package. On the device, the returned metric is traced anew; see `traced_metric`.
    """
    if not on_device(tables):
        if is_constant(metric) or not answers_on_device(metric, np.ones(shape)):
            return metric, tables
        tables = jax.numpy.asarray(tables, float_dtype())
    return traced_metric(metric, shape, tables.dtype), tables


def answers_on_device(function: Callable[..., Any], *args: Array, **kwargs: Array) -> bool:
    """Tell whether a function of NumPy arrays returns JAX arrays."""
    try:
        return on_device(function(*args, **kwargs))
    except AttributeError:  # such as .at, which only JAX arrays have
        return True


def check_num_samples(num_samples: int) -> int:
    return check_samples(num_samples, "num_samples", least=2)


def check_counts(
    counts: Array, name: str = "counts", *, table_ndim: int = 2, most: float | None = None
) -> Array:
    """Check tables with `table_ndim` axes: integers with a sum below `most`, or if `most` is None
    any sums of weights.

    An impossible table raises, or becomes NaN under jit.
    """
    axes = tuple(range(-table_ndim, 0))
    seen = _seen(counts)
    known = counts if seen is None else seen
    valid = (known >= 0) & (known < xp.inf)
    expected = "expected a count >= 0, and a finite one."
    if most is not None:
        valid = valid & (known == xp.round(known))
        expected = (
            "expected a number of examples, since sums of weights do not say how many there are."
        )
    few = known.sum(axes, keepdims=True) < (math.inf if most is None else most)
    if seen is None:
        return xp.where(valid.all(axes, keepdims=True) & few, counts, xp.nan)
    refuse_where(~valid, seen, name, expected)
    if most is not None and not few.all():
        raise ValueError(
            f"{name} holds 2^31 examples or more for one estimate: Delta() and Posterior() have no"
            " such limit."
        )
    return counts


def _seen(x: Array) -> np.ndarray | None:
    """Return the values of an array, also while derivatives are taken; None under jit."""
    try:
        return np.asarray(x if is_known(x) else lax.stop_gradient(x))
    except jax.errors.TracerArrayConversionError:
        return None


def nan_unless(possible: Array, estimates: Any) -> Any:
    """Replace the estimates of matrices without an interval by NaN."""

    def mask(x: Array) -> Array:
        if x.dtype == xp.int32:  # num_undefined stays an integer
            return x
        return xp.where(append_axes(possible, x.ndim - possible.ndim), x, xp.nan)

    return trees.map(mask, estimates)


def check_finite(estimates: Any, size: int) -> Any:
    leaves = trees.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate))
    undefined = [leaf.num_undefined for leaf in leaves if isinstance(leaf, Estimate)]
    known = undefined and all(map(is_known, undefined))
    # Compared on the host, because each comparison on the device is a program.
    if known and all(n.size and bool((np.asarray(n) == size).all()) for n in undefined):
        raise ValueError(
            f"metric is NaN or infinite in all of {size} replicates of the counts: it has no"
            " interval."
        )
    return estimates
