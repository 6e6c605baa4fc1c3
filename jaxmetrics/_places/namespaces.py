"""Namespaces whose functions call NumPy for NumPy arrays and JAX for JAX arrays.

A formula is written once, with `xp` instead of `numpy`, and with `lax` and `special` instead of
`jax.lax` and `jax.scipy.special`. Each call inspects its arguments. If one of them is a JAX array
or tracer, JAX computes the result, in the precision of JAX. Otherwise, NumPy and SciPy compute the
result immediately, in float64. So NumPy arrays need no compiler, and the same line runs within
`jax.jit`. Special functions that JAX lacks are implemented for JAX arrays only (`scipys`).

A function decorated by `compiled` (in `compilation`) is called directly for NumPy arrays and is
compiled for JAX arrays.
"""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from jaxmetrics._places.jax_imports import is_loaded, jax, jnp, knows_dtypes, trees

__all__: list[str] = []


# A JAX array if any argument is a JAX array, and otherwise a NumPy array. The type is Any, because
# only overloads of every function could say which type a call returns. If it were the union
# `jax.Array | np.ndarray`, users would have to narrow each result: a loss could not return a result
# as `jax.Array`, and for mypy the `abs` of a result is an object. NumPy scalars, which metrics of
# one matrix return, are neither.
Array: TypeAlias = Any
Arrays: TypeAlias = tuple[Array, ...]

P = ParamSpec("P")
R = TypeVar("R")

_HOST_TYPES = frozenset(
    {np.ndarray, float, int, bool, str, type(None), np.float64, np.int64, np.bool_}
)


def is_jax(x: object) -> bool:
    """Return whether `x` is a JAX array or tracer."""
    return type(x) not in _HOST_TYPES and is_loaded() and isinstance(x, jax.Array)


def on_device(*values: Any) -> bool:
    """Return whether any of the values, or of the leaves of pytrees, is a JAX array."""
    others = [x for x in values if type(x) not in _HOST_TYPES]
    if not (others and is_loaded()):
        return False
    try:
        return any(isinstance(x, jax.Array) for x in others) or any(
            map(is_jax, trees.leaves(others))
        )
    except Exception:  # a value is not an array; a later error names it
        return False


def is_known(x: object) -> bool:
    """Return whether the values of an array are known; the values of a tracer are unknown."""
    return not (is_loaded() and isinstance(x, jax.core.Tracer))


def on_one_cpu(x: jax.Array) -> bool:
    """Return whether the values of a JAX array are known and in the memory of one CPU."""
    can_be_read = is_known(x) and x.is_fully_addressable
    return can_be_read and [device.platform for device in x.devices()] == ["cpu"]


def float_dtype(*arrays: Any) -> np.dtype:
    """Return the float dtype of computations with these arrays.

    For NumPy arrays, this is float64. For JAX arrays, or without arrays, this is float32, or
    float64 under `jax_enable_x64`.
    """
    if arrays and not on_device(arrays):
        return np.dtype(float)
    return jax.dtypes.canonicalize_dtype(float)


def dispatched(
    numpys: Callable[..., Any], jaxs: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """Return a function that calls `jaxs()` if an argument is a JAX array, and otherwise `numpys`.

    The function runs for every operation of NumPy, so that the common case (positional arrays and
    numbers) is decided without `on_device`, which flattens pytrees.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if type(x) in _HOST_TYPES:
                continue
            if is_jax(x) or (isinstance(x, list | tuple) and on_device(x)):
                return jaxs()(*args, **kwargs)
        if kwargs and on_device(kwargs):
            return jaxs()(*args, **kwargs)
        return numpys(*args, **kwargs)

    return call


def _searchsorted(a: np.ndarray, v: np.ndarray, side: Any = "left", method: str = "") -> np.ndarray:
    return np.asarray(np.searchsorted(a, v, side=side))


def _take_along_axis(a: np.ndarray, i: np.ndarray, axis: int, mode: str = "") -> np.ndarray:
    i = np.clip(i, 0, a.shape[axis] - 1) if mode == "clip" else i
    return np.take_along_axis(a, i, axis)


def _put_along_axis(
    a: np.ndarray, i: np.ndarray, values: np.ndarray, axis: int, inplace: bool = False
) -> np.ndarray:
    result = a.copy()
    np.put_along_axis(result, np.asarray(i, np.int64), values, axis)
    return result


def _matmul(a: np.ndarray, b: np.ndarray, precision: Any = None) -> np.ndarray:
    return np.matmul(a, b)


def _einsum(subscripts: str, *operands: np.ndarray, precision: Any = None) -> np.ndarray:
    return np.einsum(subscripts, *operands, optimize=True)


# NumPy versions of functions that differ from JAX in their arguments or in the order of ties.
_NUMPYS: dict[str, Callable[..., Any]] = {
    "argsort": lambda x, axis=-1: np.argsort(x, axis, kind="stable"),
    "atan2": np.arctan2,
    "einsum": _einsum,
    "matmul": _matmul,
    "put_along_axis": _put_along_axis,
    "searchsorted": _searchsorted,
    "take_along_axis": _take_along_axis,
}


# JAX supports bfloat16, NumPy does not.
_FUNCTIONS_OF_DTYPES = {"finfo", "iinfo", "issubdtype", "promote_types"}


class _Namespace(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        numpys = _NUMPYS.get(name, getattr(np, name, None))
        if name in _FUNCTIONS_OF_DTYPES:
            return getattr(jnp if knows_dtypes() else np, name)
        if numpys is None:
            value = getattr(jnp, name)
        elif not callable(numpys) or isinstance(numpys, type):  # a constant or a dtype
            value = numpys
        else:
            value = dispatched(numpys, lambda: getattr(jnp, name))
        setattr(self, name, value)
        return value


def _fori_loop(lower: int, upper: int, body: Callable[[int, Any], Any], init: Any) -> Any:
    for i in range(lower, upper):
        init = body(i, init)
    return init


def _while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    while condition(init):
        init = body(init)
    return init


def _scan(body: Callable[[Any, Any], Any], init: Any, xs: Any, unroll: int = 1) -> tuple[Any, Any]:
    leaves, structure = trees.flatten(xs)
    values = []
    for x in zip(*leaves, strict=True):
        init, value = body(init, trees.unflatten(structure, x))
        values.append(value)
    return init, trees.map(lambda *v: np.stack(v), *values)


def _platform_dependent(
    *args: Any,
    cpu: Callable[..., Any] | None = None,
    default: Callable[..., Any],
    **others: Callable[..., Any],
) -> Any:
    return (cpu or default)(*args)


def _iota(dtype: Any, shape: Sequence[int], dimension: int) -> np.ndarray:
    numbers = np.arange(shape[dimension], dtype=dtype)
    axes_behind = (1,) * (len(shape) - 1 - dimension)
    return np.broadcast_to(numbers.reshape((-1, *axes_behind)), shape)


def _sort(
    operands: np.ndarray | Sequence[np.ndarray],
    dimension: int = -1,
    num_keys: int = 1,
    is_stable: bool = True,
) -> Any:
    """Sort an array, or several arrays in the order of the first array."""
    if isinstance(operands, np.ndarray):
        return np.sort(operands, dimension)
    order = np.argsort(operands[0], dimension, kind="stable")
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _accumulate(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    def call(x: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
        if reverse:
            return np.flip(ufunc.accumulate(np.flip(x, axis), axis), axis)
        return ufunc.accumulate(x, axis)

    return call


_LAX_OF_NUMPY: dict[str, Callable[..., Any]] = {
    "bitcast_convert_type": lambda x, dtype: np.asarray(x).view(dtype),
    "broadcasted_iota": _iota,
    "complex": lambda a, b: a + 1j * b,
    "cond": lambda condition, on_true, on_false: on_true() if condition else on_false(),
    "cummax": _accumulate(np.maximum),
    "cummin": _accumulate(np.minimum),
    "cumsum": _accumulate(np.add),
    "fori_loop": _fori_loop,
    "optimization_barrier": lambda x: x,
    "map": lambda function, xs: _scan(lambda _, x: (None, function(x)), None, xs)[1],
    "platform_dependent": _platform_dependent,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "scan": _scan,
    "sort": _sort,
    # Derivatives of NumPy functions are imaginary parts, see `intervals.derivatives`.
    "stop_gradient": lambda x: trees.map(np.real, x),
    "while_loop": _while_loop,
}


def scipys(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a special function; for NumPy arrays, SciPy's function replaces it."""
    return _scipys(function.__name__, lambda: function)


def _scipys(name: str, jaxs: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        from scipy import special  # imported here, because it takes a tenth of a second

        return getattr(special, name)(*args, **kwargs)

    return dispatched(call, jaxs)


class _Special(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        value = _scipys(name, lambda: getattr(jax.scipy.special, name))
        setattr(self, name, value)
        return value

    @staticmethod
    @scipys
    def ndtr(x: Array) -> Array:
        """Compute the normal distribution function by erfc.

        JAX's own `ndtr` takes three times as long to compile.
        """
        return jax.scipy.special.erfc(-x / math.sqrt(2)) / 2


class _Lax(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        host = _LAX_OF_NUMPY.get(name)
        if host is None:
            return getattr(jax.lax, name)
        setattr(self, name, dispatched(host, lambda: getattr(jax.lax, name)))
        return getattr(self, name)


if TYPE_CHECKING:
    xp = jnp
    from jax import lax as lax
    from jax.scipy import special as special
else:
    xp = _Namespace("xp")
    special = _Special("special")
    lax = _Lax("lax")


class custom_jvp:
    """`jax.custom_jvp` for calls with JAX arrays; for NumPy arrays, the function itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.fun = function

    def defjvp(self, rule: Callable[P, R]) -> Callable[P, R]:
        self._rule: Callable[..., Any] = rule
        return rule

    @functools.cached_property
    def _on_device(self) -> Callable[..., Any]:
        with_rule = jax.custom_jvp(self.fun)
        with_rule.defjvp(self._rule)
        # The function is jitted, so that JAX keeps a single jaxpr of the function, and jaxprs that
        # contain it can be compared.
        return jax.jit(with_rule)

    def __call__(self, *args: Any) -> Any:
        return self._on_device(*args) if on_device(args) else self.fun(*args)
