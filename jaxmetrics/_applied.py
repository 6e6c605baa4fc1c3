"""Functions of functions, such as `macro(f1)`, `per_class(roc_auc)` and `metric_loss(accuracy)`."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar, cast

__all__: list[str] = []


@dataclass(frozen=True, eq=False)
class Applied:
    """A scheme such as `macro`, applied to a function with options.

    Objects with the same function and options are equal and have the same hash, so that
    `jax.jit(macro(f1))` and static arguments find their compiled code; they can be pickled.
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
        """Return the parts that define equality: the function, and the options as printed."""
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
    """Apply `scheme` to a function; the message says what is expected if it is not a function."""
    if not callable(function):
        name = scheme.__name__.strip("_")
        raise TypeError(f"{name} takes {expected}, got {function!r}.")
    return Applied(scheme, function, tuple(options.items()))


F = TypeVar("F", bound=Callable[..., Any])


class Reads(NamedTuple):
    """The tables that a metric reads, if not matrices of classes `(K, K)`.

    Attributes:
        pairs: pairs of predictions `(K, K, K)`.
        labels: tables of the labels of the same examples, `(L, 2, 2)`.
    """

    pairs: bool = False
    labels: bool = False


def reading(**tables: bool) -> Callable[[F], F]:
    """Mark a scheme whose functions read tables with three axes, and which tables."""

    def mark(scheme: F) -> F:
        scheme.reads = Reads(**tables)  # type: ignore[attr-defined]
        return scheme

    return mark


def read_by(metric: Any) -> Reads | None:
    """Return which tables a metric reads, also for schemes applied to it.

    None stands for `(K, K)`. A user's function has the attribute `table_ndim = 3`.
    """
    while metric is not None:
        found = getattr(getattr(metric, "scheme", None), "reads", None)
        if found is None and getattr(metric, "table_ndim", 2) == 3:
            found = Reads()
        if found is not None:
            return cast(Reads, found)
        metric = getattr(metric, "function", getattr(metric, "func", None))
    return None


def weighted_by(of_weights: Callable[..., Any]) -> Callable[[F], F]:
    """Register how a statistic is computed for many weights of the same examples.

    `of_weights` takes the statistic's arguments without weights, and returns a function of weights
    `(..., n)`: work that does not depend on weights, such as a sort, is done once.
    """

    def mark(statistic: F) -> F:
        statistic.of_weights = of_weights  # type: ignore[attr-defined]
        return statistic

    return mark


def of_weights(statistic: Any) -> Callable[..., Any] | None:
    """Return the function registered by `weighted_by` for a statistic, or for a `partial` of it."""
    if not isinstance(statistic, partial):
        return getattr(statistic, "of_weights", None)
    found = of_weights(statistic.func)
    given = {"sample_weight", "where"} & statistic.keywords.keys()
    if found is None or statistic.args or given:
        return None
    return partial(found, **statistic.keywords)


_is_estimated: ContextVar[bool] = ContextVar("is_estimated", default=False)


def estimated(metric: Callable[..., Any], counts: Any) -> Any:
    """Call a metric for an interval; metrics of the extremes of groups raise."""
    token = _is_estimated.set(True)
    try:
        return metric(counts)
    finally:
        _is_estimated.reset(token)


def of_extremes(scheme: F) -> F:
    """Decorate a scheme that compares the extremes of groups, so that intervals of it raise.

    Chance alone increases the differences between extremes, so general interval methods are
    invalid.
    """

    @wraps(scheme)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _is_estimated.get():
            raise ValueError(
                "metric compares the extremes of groups, which differ by chance: use"
                " jaxmetrics.compare_groups(rate, counts) for its interval, with ratio=True for"
                " the smallest ratio."
            )
        return scheme(*args, **kwargs)

    return cast(F, call)
