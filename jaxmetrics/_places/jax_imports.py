"""JAX, imported when it is first used, so that computations by NumPy do not wait for the import.

`trees` has the functions of `jax.tree`, and works also if JAX is not loaded.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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


T = TypeVar("T", bound=type)
# The names of the fields of each dataclass that is a pytree: fields with subtrees, static fields.
_FIELDS: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {}


def pytree(kind: T) -> T:
    """Register a dataclass as a pytree, now or as soon as JAX is imported.

    Fields with the metadata `{"static": True}` are part of the structure.
    """
    fields = [(x.metadata.get("static", False), x.name) for x in dataclasses.fields(kind)]
    data, static = (tuple(name for is_static, name in fields if is_static == i) for i in (0, 1))
    _FIELDS[kind] = data, static
    if is_loaded():
        jax.tree_util.register_dataclass(kind, data, static)
    elif not any(isinstance(finder, _FinderOfJax) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FinderOfJax())
    return kind


class _FinderOfJax:
    """Finder of the module `jax` that registers pytrees after the module was executed.

    JAX has no other way to register a type without importing JAX.
    """

    def find_spec(self, name: str, *args: Any) -> importlib.machinery.ModuleSpec | None:
        if name != "jax":
            return None
        specs = (x.find_spec(name, *args) for x in sys.meta_path if x is not self)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module: types.ModuleType) -> None:
                execute(module)
                for kind, (data, static) in _FIELDS.items():
                    module.tree_util.register_dataclass(kind, data, static)
                sys.meta_path.remove(self)

            spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]  # a hook
        return spec


class _Structure(NamedTuple):
    """The structure of a tree: type, keys and subtrees of the root; a leaf has no type.

    The keys of a dataclass are the values of its static fields.
    """

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
        if self.kind in _FIELDS:
            names = [name for of in _FIELDS[self.kind] for name in of]
            return self.kind(**dict(zip(names, [*parts, *self.keys], strict=True)))
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
    if type(x) in _FIELDS:
        data, static = _FIELDS[type(x)]
        return tuple(getattr(x, name) for name in static), [getattr(x, name) for name in data]
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
    """`jax.tree`; JAX is not loaded for trees of tuples, lists, dicts, our types and numbers."""

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
