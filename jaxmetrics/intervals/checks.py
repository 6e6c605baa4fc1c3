"""Check counts and metrics before an interval is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmetrics._applied import Applied, estimated
from jaxmetrics._arguments.single import (
    check_function,
    check_samples,
    refuse_where,
    takes_complex,
)
from jaxmetrics._numerics.arithmetic import append_axes, divide
from jaxmetrics._places.compilation import is_constant, traced_metric
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics._places.tracing import TracedMetric
from jaxmetrics._text.wording import shown
from jaxmetrics.estimates import Estimate, Metric

__all__: list[str] = []

# With more, 95 % intervals of balanced accuracy cover down to 35 %, and with less 91 % or more, in
# the study "few examples" of `bench/studies/labels.py`. Of up to four classes, or three with few
# examples, the added part of an example is enough.
_MOST_MISSED, _FEWEST_CLASSES, _FEWEST_OF_FEW = 0.3, 5, 3.5
MOST_EXAMPLES = 2.0**31  # limit of examples per table, because draws are int32


def as_floats(metric: Metric) -> Metric:
    """Return the metric with its results cast to the dtype of the computation."""
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
    with np.errstate(all="ignore"):  # such as 1 / 0 at a table that was only tried
        return as_values(estimated(metric, read_only(counts)), "metric")


def name_of(metric: Metric) -> str:
    """Return the name of a metric for error messages."""
    if isinstance(metric, Applied) and metric.scheme is _floats:
        metric = metric.function
    return getattr(metric, "__name__", repr(metric))


def read_only(x: Array) -> Array:
    """Return a read-only view of a NumPy array, which a user's function cannot change."""
    if isinstance(x, np.ndarray):
        x = x.view()
        x.flags.writeable = False
    return x


def as_values(values: Any, name: str) -> Any:
    """Convert what a user's function `name` returned to the dtype of the computation."""
    if not trees.leaves(values):
        raise ValueError(f"{name} must return an array or a pytree of arrays, got {values!r}.")
    return trees.map(lambda x: _as_floating(x, name), values)


def _as_floating(x: Any, name: str) -> Array:
    if is_jax(x):
        if x.dtype.kind == "c":
            raise TypeError(f"{name} must return real numbers, got {x.dtype}.")
        return x.astype(float_dtype(x))
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"{name} must return numbers, got {shown(x)}.")
    if array.dtype.kind != "c":
        return array.astype(float)
    if not takes_complex.get():
        raise TypeError(f"{name} must return real numbers, got {array.dtype}.")
    return array  # a derivative is computed by complex steps


def placed(metric: Metric, tables: Array, shape: tuple[int, ...]) -> tuple[Metric, Array]:
    """Convert NumPy tables to JAX arrays if the metric returns JAX arrays.

    To find out whether it does, the metric is called with a table of ones, unless the metric is
    from this package. If the tables are JAX arrays, a traced metric is returned; see
    `traced_metric`.
    """
    if not on_device(tables):
        if is_constant(metric) or not answers_on_device(metric, np.ones(shape)):
            return metric, tables
        tables = jax.numpy.asarray(tables, float_dtype())
    return traced_metric(metric, shape, tables.dtype), tables


def answers_on_device(function: Callable[..., Any], *args: Array, **kwargs: Array) -> bool:
    """Return whether a function returns JAX arrays if its arguments are NumPy arrays."""
    try:
        return on_device(function(*args, **kwargs))
    except AttributeError:  # it uses an attribute that only JAX arrays have, such as .at
        return True


class FewExamplesWarning(UserWarning):
    """There are few examples per class."""


def few_examples(sizes: np.ndarray) -> str:
    """Return a warning of means over classes, `(..., K)`, that have few examples, or "".

    The n examples of a class show `(n - 1) / n` of the variance `p (1 - p) / n` of its recall p. If
    recalls are equal, an interval of their mean thus misses the share `sum 1/n^2 / sum 1/n`.
    """
    inverse = divide(1.0, sizes.reshape((-1, sizes.shape[-1])))
    squares = inverse**2
    missed = divide(squares.sum(-1), inverse.sum(-1))
    number_of_few = divide(squares.sum(-1) ** 2, (squares**2).sum(-1))  # effective, of classes
    missed *= ((inverse > 0).sum(-1) >= _FEWEST_CLASSES) & (number_of_few >= _FEWEST_OF_FEW)
    if (worst := missed.max(initial=0)) <= _MOST_MISSED:
        return ""
    return (
        "the classes have so few examples that intervals of means over classes, such as balanced"
        f" accuracy, allow for only {1 - worst:.0%} of the variance: they are too narrow."
        " mean_interval(recall(counts), bounds=(0, 1), where=counts.sum(-1) > 0) treats the classes"
        " as a sample. The interval of accuracy needs no examples of each class."
    )


def check_num_samples(num_samples: int) -> int:
    return check_samples(num_samples, "num_samples", least=2)


def check_counts(
    counts: Array, name: str = "counts", *, table_ndim: int = 2, most: float | None = None
) -> Array:
    """Check counts in tables with `table_ndim` axes, and return them.

    If `most` is given, counts must be integers with a sum below `most`. If `most` is None, they may
    be any sums of weights. Invalid counts raise an error, or become NaN under jit.
    """
    axes = tuple(range(-table_ndim, 0))
    try:  # the values are known, even while JAX differentiates by them, but not under jit
        seen = np.asarray(counts if is_known(counts) else lax.stop_gradient(counts))
    except jax.errors.TracerArrayConversionError:
        seen = None
    known = counts if seen is None else seen
    valid = (known >= 0) & (known < xp.inf)
    expected = "expected a count >= 0 that is finite."
    if most is not None:
        valid = valid & (known == xp.round(known))
        expected = (
            "expected a number of examples, an integer >= 0: sums of weights do not say how many"
            " examples there are. If examples have weights, call interval or compare with squares,"
            ' the sums of squared weights, or for clusters with method=jaxmetrics.Delta("logit").'
        )
    few = known.sum(axes, keepdims=True) < (math.inf if most is None else most)
    if seen is None:
        return xp.where(valid.all(axes, keepdims=True) & few, counts, xp.nan)
    refuse_where(~valid, seen, name, expected)
    if most is not None and not few.all():
        raise ValueError(
            f"For this method, each table in {name} must have fewer than 2^31 examples. Use"
            " Delta() or Posterior(), which have no such limit."
        )
    return counts


def check_whole(counts: Array, name: str = "counts", *, table_ndim: int = 2) -> Array:
    """Check that counts are integers, as `check_counts` does, but keep NaN and negative counts."""
    possible = counts >= 0
    zeros = xp.where(possible, counts, 0)
    checked = check_counts(zeros, name, table_ndim=table_ndim, most=math.inf)
    return xp.where(possible, checked, counts)


def nan_unless(possible: Array, estimates: Any) -> Any:
    """Replace estimates by NaN unless they are possible."""

    def mask(x: Array) -> Array:
        if x.dtype == xp.int32:  # num_undefined stays an integer
            return x
        return xp.where(append_axes(possible, x.ndim - possible.ndim), x, xp.nan)

    return trees.map(mask, estimates)


def check_finite(
    estimates: Any,
    size: int,
    function: str = "metric(counts)",
    drawn: str = "random tables that were drawn from counts",
) -> Any:
    leaves = trees.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate))
    undefined = [leaf.num_undefined for leaf in leaves if isinstance(leaf, Estimate)]
    known = undefined and all(map(is_known, undefined))
    # The comparison is made on the host, because on the device it would be compiled.
    if known and all(n.size and bool((np.asarray(n) == size).all()) for n in undefined):
        raise ValueError(
            f"{function.partition('(')[0]} is NaN or infinite for all {size} {drawn}. Therefore it"
            f" has no interval. Check the value of {function}."
        )
    return estimates
