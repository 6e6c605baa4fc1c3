"""Compile functions for arrays of JAX: what of a call is static, and which calls share a program.

Only here is `jax.jit` called, but for `linear_cross_entropy`, which exists on the device alone.
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
    """Call `function` at once for arrays of the host, and compile it for those of JAX.

    Where it is compiled, arrays, lists and positional numbers are traced; keyword arguments that
    are Python values, and functions and strings anywhere, are static. Inside, ranks and dtypes are
    promoted by NumPy's rules, whatever the user has set for the program, and arrays may be spread
    over any mesh.
    """

    def from_leaves(static: _Static, traced: list[Any]) -> R:
        args, kwargs = static.with_arrays(traced)
        return function(*args, **kwargs)

    # The name by which profilers and error messages know the program.
    from_leaves.__name__ = from_leaves.__qualname__ = function.__name__
    jitted = jax.jit(from_leaves, static_argnums=0)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not on_device(args, kwargs):
            with np.errstate(all="ignore"):
                return jax.tree.map(_scalar, function(*args, **kwargs))
        static, traced = _split(args, kwargs)
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return on_any_mesh(jitted)(static, traced)

    return call


def _scalar(x: Any) -> Any:
    """Make a number of an array without axes, as NumPy's own reductions do."""
    return x[()] if type(x) is np.ndarray and x.ndim == 0 else x


class _Static:
    """The arguments of a call without its arrays.

    Those of calls that share a compiled program are equal and have the same hash.
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
        leaves = [next(rest) if x is _TRACED else x for x in self.leaves]
        return jax.tree.unflatten(self.structure, leaves)


def _key(x: Any) -> Hashable:
    """Make a key of a static value; functions with the same code that see the same values share it.

    So a lambda written in the call finds the program that was compiled for it in the last call.
    """
    if isinstance(x, types.FunctionType):
        return _hashable_or(x, _key_of_function)
    if isinstance(x, functools.partial):
        return _hashable_or(x, lambda x: _key((x.func, x.args, x.keywords)))
    if isinstance(x, tuple):
        return (type(x), *map(_key, x))
    if isinstance(x, dict):
        return (dict, *((name, _key(value)) for name, value in x.items()))
    if dataclasses.is_dataclass(x) and not isinstance(x, type):
        return (type(x), *(_key(getattr(x, field.name)) for field in dataclasses.fields(x)))
    return (type(x), x)


def _hashable_or(x: Any, key_of: Callable[[Any], Hashable]) -> Hashable:
    """Make the key of a function, or take itself where a value that it sees may still change."""
    try:
        key = key_of(x)
        hash(key)
    except (TypeError, ValueError):  # a value is not hashable; a cell of the closure is empty
        return x
    return key


def _key_of_function(x: types.FunctionType) -> Hashable:
    seen = tuple(_key(cell.cell_contents) for cell in x.__closure__ or ())
    return (x.__code__, id(x.__globals__), _key(x.__defaults__), _key(x.__kwdefaults__), seen)


_TRACED = object()  # stands in the place of an array


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
    arrays = [_canonical(x) for x, traced in zip(leaves, is_traced, strict=True) if traced]
    return _Static(structure, tuple(static)), arrays


def _canonical(x: Any) -> Any:
    """Convert a NumPy array to the dtype that JAX gives it.

    A nested jit remembers by object, so that it would give an array the dtype of before x64 was
    switched.
    """
    if not isinstance(x, np.ndarray | np.generic):
        return x
    if np.ma.is_masked(x):
        raise TypeError(
            "an argument is a masked array: give its .data, and leave masked entries out."
        )
    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    return x if x.dtype == dtype else x.astype(dtype)


def _is_list_of_numbers(x: object) -> bool:
    return isinstance(x, list) and not on_device(x)


def promoting(function: Callable[P, R]) -> Callable[P, R]:
    """Call a function of JAX arrays with NumPy's rules for ranks and dtypes, on any mesh.

    What the user has set for his program does not matter inside.
    """
    anywhere = on_any_mesh(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return anywhere(*args, **kwargs)

    return call
