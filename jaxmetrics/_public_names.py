"""`__dir__` of namespaces: public functions and types, without modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__: list[str] = []


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """List the functions and types of a module's `globals()`."""
    return sorted(x for x, value in namespace.items() if callable(value) and not x.startswith("_"))
