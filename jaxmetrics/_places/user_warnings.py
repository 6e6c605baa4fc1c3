"""Issue warnings to users, once even if a computation is repeated elsewhere."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

__all__: list[str] = []

_held: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar("held", default=None)


@contextlib.contextmanager
def held_warnings() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Collect warnings, for a computation that may have to be repeated in another way."""
    held: list[tuple[str, type[Warning]]] = []
    token = _held.set(held)
    try:
        yield held
    finally:
        _held.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the line of the user's code that called this package."""
    if (held := _held.get()) is not None:
        held.append((message, category))
        return
    frame, level = sys._getframe(1), 2
    own = "jaxmetrics", "jax"
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in own:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
