"""JAX, imported when it is first used, so that computations by NumPy do not wait for the import.

`trees` has the functions of `jax.tree`, and works also if JAX is not loaded.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

__all__: list[str] = []


class _Lazy(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import jax as jax
    from jax import lax as lax
    from jax import numpy, tree

    jnp, trees = numpy, tree
else:
    jax, jnp, lax = map(_Lazy, ("jax", "jax.numpy", "jax.lax"))


def is_loaded() -> bool:
    """Return whether JAX is loaded, so that JAX arrays can exist."""
    return "jax" in sys.modules


def knows_dtypes() -> bool:
    """Return whether arrays of dtypes that NumPy lacks, such as bfloat16, can exist."""
    return "ml_dtypes" in sys.modules


class _Structure(NamedTuple):
    """The structure of a tree: type, keys and subtrees of the root; a leaf has no type."""

    kind: type | None = None
    keys: tuple[Any, ...] = ()
    children: tuple[_Structure, ...] = ()

    def build(self, leaves: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(leaves)
        parts = [child.build(leaves) for child in self.children]
        if self.kind is dict:
            return dict(zip(self.keys, parts, strict=True))
        if self.kind is types.NoneType:
            return None
        return self.kind(*parts) if hasattr(self.kind, "_fields") else self.kind(parts)


class _UnknownType(Exception):
    """Raised if only JAX can tell whether a value is a leaf."""


_LEAVES = (np.ndarray, np.generic, bool, int, float, complex, str)


def _parts(x: Any) -> tuple[tuple[Any, ...], Iterable[Any]] | None:
    """Return the keys and values of a node; None for a leaf."""
    if x is None:
        return (), ()
    if type(x) in (list, tuple) or (isinstance(x, tuple) and hasattr(x, "_fields")):
        return (), x
    if type(x) is dict:
        keys = tuple(sorted(x))
        return keys, [x[key] for key in keys]
    if isinstance(x, _LEAVES):
        return None
    raise _UnknownType


def _flatten(x: Any, is_leaf: Callable[[Any], bool], leaves: list[Any]) -> _Structure:
    found = None if is_leaf(x) else _parts(x)
    if found is None:
        leaves.append(x)
        return _Structure()
    keys, values = found
    return _Structure(type(x), keys, tuple(_flatten(part, is_leaf, leaves) for part in values))


class _Trees:
    """`jax.tree`; JAX is not loaded for trees of tuples, lists, dicts, arrays and numbers."""

    def flatten(self, x: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[Any, Any]:
        leaves: list[Any] = []
        if not is_loaded():
            try:
                return leaves, _flatten(x, is_leaf or (lambda _: False), leaves)
            except _UnknownType:
                pass
        return jax.tree.flatten(x, is_leaf)

    def unflatten(self, structure: Any, leaves: Iterable[Any]) -> Any:
        if isinstance(structure, _Structure):
            return structure.build(iter(leaves))
        return jax.tree.unflatten(structure, leaves)

    def leaves(self, x: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
        return jax.tree.leaves(x, is_leaf) if is_loaded() else self.flatten(x, is_leaf)[0]

    def map(
        self,
        function: Callable[..., Any],
        x: Any,
        *others: Any,
        is_leaf: Callable[[Any], bool] | None = None,
    ) -> Any:
        if is_loaded():
            return jax.tree.map(function, x, *others, is_leaf=is_leaf)
        flat, structure = self.flatten(x, is_leaf)
        columns = [self.leaves(other, is_leaf) for other in others]
        return self.unflatten(structure, map(function, flat, *columns))


if not TYPE_CHECKING:
    trees = _Trees()
