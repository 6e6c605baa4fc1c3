"""Compilation: the one place where `jax.jit` is called, what of a call is static, and which calls
share a compiled program.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import numpy as np

from jaxmetrics._meshes import P, R, on_any_mesh
from jaxmetrics._namespaces import on_device

__all__: list[str] = []


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function` at once for arrays of the host, compiled for those of JAX.

    Where it is compiled, arrays, lists and positional numbers are traced; keyword arguments that
    are Python values, and functions and strings anywhere, are static. Inside, ranks and dtypes are
    promoted by NumPy's rules, whatever the user has set for the program, and arrays may be spread
    over any mesh.
    """

    def whole(static: _Static, dynamic: list[Any]) -> R:
        args, kwargs = static.with_arrays(dynamic)
        return function(*args, **kwargs)

    whole.__name__ = whole.__qualname__ = function.__name__
    jitted = jax.jit(whole, static_argnums=0)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not on_device(args, kwargs):
            with np.errstate(all="ignore"):
                return jax.tree.map(_scalar, function(*args, **kwargs))
        static, dynamic = _split(args, kwargs)
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return on_any_mesh(jitted)(static, dynamic)

    return call


def _scalar(x: Any) -> Any:
    """A number for an array without axes."""
    return x[()] if type(x) is np.ndarray and x.ndim == 0 else x


class _Static:
    """The arguments of a call but for its arrays: equal, and hashed alike, for calls that share a
    compiled program.
    """

    def __init__(self, structure: Any, leaves: tuple[Any, ...]) -> None:
        self.structure, self.leaves = structure, leaves
        self.key = (structure, tuple(map(_key, leaves)))
        self.hash = hash(self.key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.key == other.key

    def with_arrays(self, arrays: Sequence[Any]) -> Any:
        rest = iter(arrays)
        return jax.tree.unflatten(
            self.structure, [next(rest) if x is _TRACED else x for x in self.leaves]
        )


def _key(x: Any) -> Hashable:
    """What a static value is known by. Functions count as equal that have the same code and see the
    same values.

    So a lambda written in the call finds the program that was compiled for it in the last call.
    """
    if isinstance(x, types.FunctionType | functools.partial):
        try:
            key = (
                _key_of_function(x)
                if isinstance(x, types.FunctionType)
                else _key((x.func, x.args, x.keywords))
            )
            hash(key)
        except (TypeError, ValueError):
            # What is not hashable may change, and a cell may still be empty.
            return x
        return key
    if isinstance(x, tuple):
        return (type(x), *map(_key, x))
    if isinstance(x, dict):
        return (dict, *((name, _key(value)) for name, value in x.items()))
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return (type(x), *(_key(getattr(x, field.name)) for field in dataclasses.fields(x)))
    return (type(x), x)


def _key_of_function(x: types.FunctionType) -> Hashable:
    seen = tuple(_key(cell.cell_contents) for cell in x.__closure__ or ())
    return (x.__code__, id(x.__globals__), _key(x.__defaults__), _key(x.__kwdefaults__), seen)


class _Traced:
    """Stands in the place of an array."""


_TRACED = _Traced()


def _split(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Static, list[Any]]:
    leaves, structure = jax.tree.flatten((args, kwargs), is_leaf=_is_list_of_numbers)
    num_positional = len(jax.tree.leaves(args, is_leaf=_is_list_of_numbers))
    leaves = [np.asarray(x) if isinstance(x, list) else x for x in leaves]
    is_traced = [
        isinstance(x, np.ndarray | np.generic | jax.Array)
        or (i < num_positional and type(x) in (int, float))
        for i, x in enumerate(leaves)
    ]
    static = (_TRACED if traced else x for x, traced in zip(leaves, is_traced, strict=True))
    dynamic = [_canonical(x) for x, traced in zip(leaves, is_traced, strict=True) if traced]
    return _Static(structure, tuple(static)), dynamic


def _canonical(x: Any) -> Any:
    """A NumPy array in the dtype that JAX gives it: of one object, a nested jit remembers that of
    before x64 was switched.
    """
    if not isinstance(x, np.ndarray | np.generic):
        return x
    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    return x if x.dtype == dtype else x.astype(dtype)


def _is_list_of_numbers(x: object) -> bool:
    return isinstance(x, list) and not on_device(x)


def promoting(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of JAX arrays with NumPy's rules for ranks and dtypes inside, whatever the user
    has set, on any mesh.
    """
    anywhere = on_any_mesh(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return anywhere(*args, **kwargs)

    return call
