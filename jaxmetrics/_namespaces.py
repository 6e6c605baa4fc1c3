"""Where the data live, the work is done: one source for NumPy on the host and JAX on its devices.

A formula is written once, with `xp` in the place of `numpy` and `lax`, `special` in those of
`jax.lax` and `jax.scipy.special`. Each call looks at its arguments: a JAX array or tracer among
them means JAX, in its precision; anything else is computed at once by NumPy, in float64. So what a
person asks about arrays in memory is answered without a compiler, and the same line runs within
`jax.jit`.

`compiled` stands at the entrance of a function: on the host it calls it, for JAX arrays it compiles
it.
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


Array: TypeAlias = Any  # a NumPy array where all arguments live on the host, else a JAX array

_HOST_TYPES = frozenset(
    {np.ndarray, float, int, bool, str, type(None), np.float64, np.int64, np.bool_}
)


def is_jax(x: object) -> bool:
    """Whether `x` is an array or tracer of JAX."""
    return type(x) not in _HOST_TYPES and isinstance(x, jax.Array)


def on_device(*values: Any) -> bool:
    """Whether an array of JAX is among the values or the leaves of the pytrees."""
    return any(map(is_jax, jax.tree.leaves(values)))


def is_known(x: object) -> bool:
    """Whether the values of an array can be looked at: those of a tracer cannot."""
    return not isinstance(x, jax.core.Tracer)


def float_dtype(*arrays: Any) -> np.dtype:
    """The dtype in which these arrays are computed: float64 on the host; on the device float32,
    under `jax_enable_x64` float64.

    Without arrays that of the device.
    """
    return (
        jax.dtypes.canonicalize_dtype(float) if not arrays or on_device(arrays) else np.dtype(float)
    )


def _either(on_host: Callable[..., Any], on_device_: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(on_device_)
    def call(*args: Any, **kwargs: Any) -> Any:
        for x in args:
            if is_jax(x) or (isinstance(x, list | tuple) and on_device(x)):
                return on_device_(*args, **kwargs)
        if kwargs and on_device(kwargs):
            return on_device_(*args, **kwargs)
        return on_host(*args, **kwargs)

    return call


def _searchsorted(a: np.ndarray, v: np.ndarray, side: Any = "left", method: str = "") -> np.ndarray:
    return np.asarray(np.searchsorted(a, v, side=side))


def _take_along_axis(a: np.ndarray, i: np.ndarray, axis: int, mode: str = "") -> np.ndarray:
    if mode == "clip":
        i = np.clip(i, 0, a.shape[axis] - 1)
    axis %= a.ndim
    shape = np.broadcast_shapes(*((*x.shape[:axis], 1, *x.shape[axis + 1 :]) for x in (a, i)))
    a, i = (np.broadcast_to(x, (*shape[:axis], x.shape[axis], *shape[axis + 1 :])) for x in (a, i))
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


# NumPy's functions where they differ from JAX's in more than the library.
_HOST: dict[str, Callable[..., Any]] = {
    "argsort": lambda x, axis=-1: np.argsort(x, axis, kind="stable"),
    "atan2": np.arctan2,
    "einsum": _einsum,
    "matmul": _matmul,
    "put_along_axis": _put_along_axis,
    "searchsorted": _searchsorted,
    "take_along_axis": _take_along_axis,
}


class _Namespace(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        device, host = getattr(jnp, name), _HOST.get(name, getattr(np, name, None))
        # Of all dtypes, bfloat16 too.
        if host is None or name in (
            "finfo",
            "iinfo",
            "issubdtype",
            "promote_types",
        ):
            value = device
        elif not callable(device) or isinstance(host, type):
            value = host
        else:
            value = _either(host, device)
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
    return np.broadcast_to(
        np.arange(shape[dimension], dtype=dtype).reshape(
            (-1,) + (1,) * (len(shape) - 1 - dimension)
        ),
        shape,
    )


def _sort(
    operands: Sequence[np.ndarray], dimension: int = -1, num_keys: int = 1
) -> list[np.ndarray]:
    """Several arrays in the order of the first."""
    order = np.argsort(operands[0], dimension, kind="stable")
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _accumulate(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    def call(x: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
        return (
            np.flip(ufunc.accumulate(np.flip(x, axis), axis), axis)
            if reverse
            else ufunc.accumulate(x, axis)
        )

    return call


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], np.ndarray]:
    table = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(table(x), float)


_erfc = _elementwise(math.erfc)


def _normal_quantile(p: float) -> float:
    return (
        statistics.NormalDist().inv_cdf(p)
        if 0 < p < 1
        else -math.inf
        if p == 0
        else math.inf
        if p == 1
        else math.nan
    )


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


if TYPE_CHECKING:
    xp = jnp
    from jax import lax as lax
    from jax.scipy import special as special
else:
    xp = _Namespace("xp")
    # Derivatives there are imaginary.
    lax = types.SimpleNamespace(
        **{
            name: _either(host, getattr(jax.lax, name))
            for name, host in {
                "bitcast_convert_type": lambda x, dtype: np.asarray(x).view(dtype),
                "broadcasted_iota": _iota,
                "complex": lambda a, b: a + 1j * b,
                "cummax": _accumulate(np.maximum),
                "cummin": _accumulate(np.minimum),
                "cumsum": _accumulate(np.add),
                "fori_loop": _fori_loop,
                "cond": lambda condition, on_true, on_false: on_true() if condition else on_false(),
                "map": lambda function, xs: _scan(lambda _, x: (None, function(x)), None, xs)[1],
                "scan": _scan,
                "rsqrt": lambda x: 1 / np.sqrt(x),
                "sort": _sort,
                "stop_gradient": lambda x: jax.tree.map(np.real, x),
                "while_loop": _while_loop,
            }.items()
        },
        Precision=jax.lax.Precision,
    )
    # JAX's own takes three times as long to compile.
    special = types.SimpleNamespace(
        **{
            name: _either(host, getattr(jax.scipy.special, name))
            for name, host in {
                "erfc": _erfc,
                "expit": lambda x: np.exp(-np.logaddexp(0, -np.asarray(x))),
                "logit": lambda x: np.log(x) - np.log1p(-np.asarray(x)),
                "ndtri": _elementwise(_normal_quantile),
                "softmax": _softmax,
            }.items()
        },
        ndtr=lambda x: special.erfc(-x / math.sqrt(2)) / 2,
    )


class custom_jvp:
    """`jax.custom_jvp` for arrays of JAX; on the host the function itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.fun = function
        self._on_device = jax.custom_jvp(function)
        self.defjvp = self._on_device.defjvp

    def __call__(self, *args: Any) -> Any:
        return self._on_device(*args) if on_device(args) else self.fun(*args)
