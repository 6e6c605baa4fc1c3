"""Functions of functions, such as `macro(f1)`, `per_class(roc_auc)` and `metric_loss(accuracy)`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__: list[str] = []


@dataclass(frozen=True)
class Applied:
    """A function of functions applied to one, with its options.

    It is equal to, and hashes as, another of the same parts, so that `jax.jit(macro(f1))` and
    static arguments find their compiled code again; and it can be pickled.
    """

    scheme: Callable[..., Any]
    function: Callable[..., Any]
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.scheme(self.function, *args, **dict(self.options), **kwargs)

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
    """`scheme` applied to a function, of which the message says what is expected where it is
    none.
    """
    if not callable(function):
        name = scheme.__name__.strip("_")
        raise TypeError(f"{name} takes {expected}, got {function!r}.")
    return Applied(scheme, function, tuple(options.items()))
