"""Namespaces that are NumPy for data on the host, and JAX for data on its devices.

A formula is written once, with `xp` in the place of `numpy` and `lax`, `special` in those of
`jax.lax` and `jax.scipy.special`. Each call looks at its arguments: a JAX array or tracer among
them means JAX, in its precision; anything else is computed at once by NumPy, in float64. So what a
person asks about arrays in memory is answered without a compiler, and the same line runs within
`jax.jit`.

A function decorated by `compiled` (in `_compilation`) is called on the host, and compiled for JAX
arrays.
"""

from __future__ import annotations

import functools
import math
import statistics
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

__all__: list[str] = []


# A NumPy array where all arguments live on the host, else a JAX array. It is Any because only an
# overload of every function could say which of the two comes back. Of `jax.Array | np.ndarray` each
# user would have to narrow the result: it is no `jax.Array` for a loss to return, and for mypy its
# `abs` is an object. A scalar of NumPy's, which metrics of one matrix return, is neither.
Array: TypeAlias = Any

_HOST_TYPES = frozenset(
    {np.ndarray, float, int, bool, str, type(None), np.float64, np.int64, np.bool_}
)


def is_jax(x: object) -> bool:
    """Tell whether `x` is an array or tracer of JAX."""
    return type(x) not in _HOST_TYPES and isinstance(x, jax.Array)


def on_device(*values: Any) -> bool:
    """Tell whether an array of JAX is among the values, or the leaves of pytrees among them."""
    try:
        return any(map(is_jax, jax.tree.leaves(values)))
    except Exception:  # a list that holds itself, or what JAX refuses: no array, to be named later
        return False


def is_known(x: object) -> bool:
    """Tell whether the values of an array can be looked at: those of a tracer cannot."""
    return not isinstance(x, jax.core.Tracer)


def float_dtype(*arrays: Any) -> np.dtype:
    """Return the dtype in which these arrays are computed.

    On the host it is float64; on the device, and where no arrays are given, float32, or float64
    under `jax_enable_x64`.
    """
    if arrays and not on_device(arrays):
        return np.dtype(float)
    return jax.dtypes.canonicalize_dtype(float)


def _dispatched(numpys: Callable[..., Any], jaxs: Callable[..., Any]) -> Callable[..., Any]:
    """JAX's function where an argument is an array of JAX, else NumPy's.

    It runs for every operation on the host, so the usual case, arrays and numbers by position, is
    decided without `on_device`, which flattens pytrees.
    """

    @functools.wraps(jaxs)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if is_jax(x) or (isinstance(x, list | tuple) and on_device(x)):
                return jaxs(*args, **kwargs)
        if kwargs and on_device(kwargs):
            return jaxs(*args, **kwargs)
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


# NumPy's functions where they differ from JAX's in their arguments, or in the order of ties.
_NUMPYS: dict[str, Callable[..., Any]] = {
    "argsort": lambda x, axis=-1: np.argsort(x, axis, kind="stable"),
    "atan2": np.arctan2,
    "einsum": _einsum,
    "matmul": _matmul,
    "put_along_axis": _put_along_axis,
    "searchsorted": _searchsorted,
    "take_along_axis": _take_along_axis,
}


# JAX's know bfloat16, NumPy's do not.
_FUNCTIONS_OF_DTYPES = {"finfo", "iinfo", "issubdtype", "promote_types"}


class _Namespace(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        jaxs, numpys = getattr(jnp, name), _NUMPYS.get(name, getattr(np, name, None))
        if numpys is None or name in _FUNCTIONS_OF_DTYPES:
            value = jaxs
        elif not callable(jaxs) or isinstance(numpys, type):  # a constant or a dtype
            value = numpys
        else:
            value = _dispatched(numpys, jaxs)
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


def _scan(body: Callable[[Any, Any], Any], init: Any, xs: Any) -> tuple[Any, Any]:
    leaves, structure = jax.tree.flatten(xs)
    values = []
    for x in zip(*leaves, strict=True):
        init, value = body(init, jax.tree.unflatten(structure, x))
        values.append(value)
    return init, jax.tree.map(lambda *v: np.stack(v), *values)


def _iota(dtype: Any, shape: Sequence[int], dimension: int) -> np.ndarray:
    numbers = np.arange(shape[dimension], dtype=dtype)
    axes_behind = (1,) * (len(shape) - 1 - dimension)
    return np.broadcast_to(numbers.reshape((-1, *axes_behind)), shape)


def _sort(
    operands: Sequence[np.ndarray], dimension: int = -1, num_keys: int = 1
) -> list[np.ndarray]:
    """Sort several arrays in the order of the first."""
    order = np.argsort(operands[0], dimension, kind="stable")
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _accumulate(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    def call(x: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
        if reverse:
            return np.flip(ufunc.accumulate(np.flip(x, axis), axis), axis)
        return ufunc.accumulate(x, axis)

    return call


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], np.ndarray]:
    ufunc = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(ufunc(x), float)


def _normal_quantile(p: float) -> float:
    if 0 < p < 1:
        return statistics.NormalDist().inv_cdf(p)
    return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


_LAX_OF_NUMPY: dict[str, Callable[..., Any]] = {
    "bitcast_convert_type": lambda x, dtype: np.asarray(x).view(dtype),
    "broadcasted_iota": _iota,
    "complex": lambda a, b: a + 1j * b,
    "cond": lambda condition, on_true, on_false: on_true() if condition else on_false(),
    "cummax": _accumulate(np.maximum),
    "cummin": _accumulate(np.minimum),
    "cumsum": _accumulate(np.add),
    "fori_loop": _fori_loop,
    "map": lambda function, xs: _scan(lambda _, x: (None, function(x)), None, xs)[1],
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "scan": _scan,
    "sort": _sort,
    # Derivatives on the host are imaginary parts, see `intervals.derivatives`.
    "stop_gradient": lambda x: jax.tree.map(np.real, x),
    "while_loop": _while_loop,
}
_SPECIAL_OF_NUMPY: dict[str, Callable[..., Any]] = {
    "erfc": _elementwise(math.erfc),
    "expit": lambda x: np.exp(-np.logaddexp(0, -np.asarray(x))),
    "logit": lambda x: np.log(x) - np.log1p(-np.asarray(x)),
    "ndtri": _elementwise(_normal_quantile),
    "softmax": _softmax,
}


def _module(numpys: dict[str, Callable[..., Any]], jaxs: Any, **more: Any) -> types.SimpleNamespace:
    functions = {name: _dispatched(host, getattr(jaxs, name)) for name, host in numpys.items()}
    return types.SimpleNamespace(**functions, **more)


if TYPE_CHECKING:
    xp = jnp
    from jax import lax as lax
    from jax.scipy import special as special
else:
    xp = _Namespace("xp")
    lax = _module(_LAX_OF_NUMPY, jax.lax, Precision=jax.lax.Precision)
    special = _module(
        _SPECIAL_OF_NUMPY,
        jax.scipy.special,
        # By erfc: the `ndtr` of JAX takes three times as long to compile.
        ndtr=lambda x: special.erfc(-x / math.sqrt(2)) / 2,
    )


class custom_jvp:
    """Apply `jax.custom_jvp` to calls with arrays of JAX; on the host call the function itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.fun = function
        with_rule = jax.custom_jvp(function)
        self.defjvp = with_rule.defjvp
        # Jitted, since JAX then keeps one jaxpr of it, by which jaxprs that hold it are compared.
        self._on_device = jax.jit(with_rule)

    def __call__(self, *args: Any) -> Any:
        return self._on_device(*args) if on_device(args) else self.fun(*args)
