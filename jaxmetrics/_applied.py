"""Functions made from functions: `macro(f1)`, `per_class(roc_auc)`, `metric_loss(accuracy)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar, cast

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class Applied:
    """A scheme, such as `macro`, applied to a function, such as `f1`; it is a function itself.

    Objects with the same scheme, function and options are equal and have the same hash, so that
    `jax.jit(macro(f1))` and static arguments find their compiled code. Objects can be pickled.
    """

    scheme: Callable[..., Any]
    function: Callable[..., Any]
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.scheme(self.function, *args, **dict(self.options), **kwargs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Applied) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    @property
    def _parts(self) -> tuple[Any, ...]:
        """Return the parts that define equality: scheme, function, and the repr of the options."""
        is_applied = isinstance(self.function, Applied)
        function = self.function if is_applied else id(self.function)
        return self.scheme, function, repr(self.options)

    @property
    def __name__(self) -> str:
        of = getattr(self.function, "__name__", repr(self.function))
        options = (f"{name}={value!r}" for name, value in self.options)
        return f"{self.scheme.__name__.strip('_')}({', '.join([of, *options])})"

    def __repr__(self) -> str:
        return self.__name__


def applied(
    scheme: Callable[..., Any], function: Callable[..., Any], expected: str, **options: Any
) -> Applied:
    """Apply a scheme to a function; `expected` is the error message's text if it is no function."""
    if not callable(function):
        name = scheme.__name__.strip("_")
        raise TypeError(f"{name} takes {expected}, got {function!r}.")
    return Applied(scheme, function, tuple(options.items()))


F = TypeVar("F", bound=Callable[..., Any])


class Reads(NamedTuple):
    """The kind of tables that a metric reads, if these are not matrices of classes `(K, K)`.

    Attributes:
        pairs: True if the metric reads pairs of predictions, `(K, K, K)`.
        labels: True if the metric reads one table per label, `(L, 2, 2)`, of the same examples.
    """

    pairs: bool = False
    labels: bool = False


def reading(**tables: bool) -> Callable[[F], F]:
    """Decorate a scheme whose functions read tables with three axes; for options see `Reads`."""

    def mark(scheme: F) -> F:
        scheme.reads = Reads(**tables)  # type: ignore[attr-defined]  # a mark
        return scheme

    return mark


def read_by(metric: Any) -> Reads | None:
    """Return which tables a metric reads, or None for matrices `(K, K)`.

    Schemes that are applied to the metric are looked through. A user's function that reads tables
    with three axes has the attribute `table_ndim = 3`.
    """
    for part in _parts_of(metric):
        found = getattr(part, "reads", None)
        if found is None and getattr(part, "table_ndim", 2) == 3:
            found = Reads()
        if found is not None:
            return cast(Reads, found)
    return None


def _parts_of(metric: Any) -> Iterator[Any]:
    """Yield a metric, and the schemes and functions of which it was made."""
    while metric is not None:
        yield getattr(metric, "scheme", None)
        yield metric
        metric = getattr(metric, "function", getattr(metric, "func", None))


def of_equal_classes(metric: F) -> F:
    """Decorate a metric, or a scheme, that gives equal weights to classes with few examples."""
    metric.of_equal_classes = True  # type: ignore[attr-defined]  # a mark
    return metric


def is_of_equal_classes(metric: Any) -> bool:
    return any(hasattr(part, "of_equal_classes") for part in _parts_of(metric))


def weighted_by(of_weights: Callable[..., Any]) -> Callable[[F], F]:
    """Decorate a statistic with a faster way to compute it for many weights of the same examples.

    `of_weights` takes the statistic's arguments without weights, and returns a function of weights
    `(..., n)`. Work that does not depend on weights, such as sorting, is done only once.
    """

    def mark(statistic: F) -> F:
        statistic.of_weights = of_weights  # type: ignore[attr-defined]  # a mark
        return statistic

    return mark


def of_weights(statistic: Any) -> Callable[..., Any] | None:
    """Return the function registered by `weighted_by` for a statistic or a `partial`, or None."""
    if not isinstance(statistic, partial):
        return getattr(statistic, "of_weights", None)
    found = of_weights(statistic.func)
    given = {"sample_weight", "where"} & statistic.keywords.keys()
    if found is None or statistic.args or given:
        return None
    return partial(found, **statistic.keywords)


_is_without_order: ContextVar[bool] = ContextVar("is_without_order", default=False)


def without_order(metric: Callable[..., Any]) -> Callable[..., Any]:
    """Return the metric for classes that were found in text labels and sorted as text."""
    return Applied(_without_order, metric) if callable(metric) else metric


def _without_order(metric: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    token = _is_without_order.set(True)
    try:
        return metric(*args, **kwargs)
    finally:
        _is_without_order.reset(token)


def refuse_unknown_order() -> None:
    """Raise an error if a metric that depends on the order of classes is called `without_order`."""
    if _is_without_order.get():
        raise ValueError(
            "metric depends on the order of the classes, but the labels are strings, which would be"
            " sorted alphabetically. Pass labels=[...] with the classes in their order."
        )


_is_estimated: ContextVar[bool] = ContextVar("is_estimated", default=False)


def estimated(metric: Callable[..., Any], counts: Any) -> Any:
    """Call a metric for an interval; a metric decorated with `of_extremes` raises an error."""
    token = _is_estimated.set(True)
    try:
        return metric(counts)
    finally:
        _is_estimated.reset(token)


def of_extremes(scheme: F) -> F:
    """Decorate a scheme that compares the best and the worst group: its intervals raise an error.

    Chance alone makes the best and the worst of several groups differ, even if all groups have the
    same true value, so that general interval methods are invalid.
    """

    @wraps(scheme)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _is_estimated.get():
            raise ValueError(
                "metric compares the best group with the worst group. Even if all groups have the"
                " same true value, the best and the worst group of a sample differ by chance, so"
                " that a confidence interval for this metric would be wrong. For a valid interval"
                " of the largest difference, call jaxmetrics.compare_groups(rate, counts). For a"
                " valid interval of the smallest ratio, call"
                " jaxmetrics.compare_groups(rate, counts, ratio=True)."
            )
        return scheme(*args, **kwargs)

    return cast(F, call)
