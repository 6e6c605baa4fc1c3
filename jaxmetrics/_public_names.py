"""What completion shows of a namespace: its functions and types, not the files that they are in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__: list[str] = []


def public_names(namespace: Mapping[str, Any]) -> list[str]:
    """List the functions and types of a module's `globals()`."""
    return sorted(x for x, value in namespace.items() if callable(value) and not x.startswith("_"))
