"""Where the data live, the work is done: one source for NumPy on the host and JAX on its devices.

A formula is written once, with `xp` in the place of `numpy` and `lax`, `special` in those of `jax.lax` and
`jax.scipy.special`. Each call looks at its arguments: a JAX array or tracer among them means JAX, in its precision; anything
else is computed at once by NumPy, in float64. So what a person asks about arrays in memory is answered without a compiler,
and the same line runs within `jax.jit`.

`compiled` stands at the entrance of a function: on the host it calls it, for JAX arrays it compiles it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
import types
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

__all__: list[str] = []

P = ParamSpec("P")
R = TypeVar("R")

Array: TypeAlias = Any  # a NumPy array where all arguments live on the host, else a JAX array

_HOST_TYPES = frozenset({np.ndarray, float, int, bool, str, type(None), np.float64, np.int64, np.bool_})


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
    """The dtype in which these arrays are computed: float64 on the host; on the device float32, under `jax_enable_x64` float64.

    Without arrays that of the device.
    """
    return jax.dtypes.canonicalize_dtype(float) if not arrays or on_device(arrays) else np.dtype(float)


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


def _put_along_axis(a: np.ndarray, i: np.ndarray, values: np.ndarray, axis: int, inplace: bool = False) -> np.ndarray:
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
        if host is None or name in ("finfo", "iinfo", "issubdtype", "promote_types"):  # of all dtypes, bfloat16 too
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
    return np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape((-1,) + (1,) * (len(shape) - 1 - dimension)), shape)


def _sort(operands: Sequence[np.ndarray], dimension: int = -1, num_keys: int = 1) -> list[np.ndarray]:
    """Several arrays in the order of the first."""
    order = np.argsort(operands[0], dimension, kind="stable")
    return [np.take_along_axis(x, order, dimension) for x in operands]


def _accumulate(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    def call(x: np.ndarray, axis: int = 0, reverse: bool = False) -> np.ndarray:
        return np.flip(ufunc.accumulate(np.flip(x, axis), axis), axis) if reverse else ufunc.accumulate(x, axis)

    return call


def _elementwise(function: Callable[[float], float]) -> Callable[[Any], np.ndarray]:
    table = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(table(x), float)


_erfc = _elementwise(math.erfc)


def _normal_quantile(p: float) -> float:
    return statistics.NormalDist().inv_cdf(p) if 0 < p < 1 else -math.inf if p == 0 else math.inf if p == 1 else math.nan


def _softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


if TYPE_CHECKING:
    xp = jnp
    from jax import lax as lax
    from jax.scipy import special as special
else:
    xp = _Namespace("xp")
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
                "stop_gradient": lambda x: jax.tree.map(np.real, x),  # derivatives there are imaginary
                "while_loop": _while_loop,
            }.items()
        },
        Precision=jax.lax.Precision,
    )
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
        ndtr=lambda x: special.erfc(-x / math.sqrt(2)) / 2,  # JAX's own takes three times as long to compile
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


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """`function` at once for arrays of the host, compiled for those of JAX.

    Where it is compiled, arrays, lists and positional numbers are traced; keyword arguments that are Python values, and
    functions and strings anywhere, are static. Inside, ranks and dtypes are promoted by NumPy's rules, whatever the user has
    set for the program, and arrays may be spread over any mesh.
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
    """The arguments of a call but for its arrays: equal, and hashed alike, for calls that share a compiled program."""

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
        return jax.tree.unflatten(self.structure, [next(rest) if x is _TRACED else x for x in self.leaves])


def _key(x: Any) -> Hashable:
    """What a static value is known by. Functions count as equal that have the same code and see the same values.

    So a lambda written in the call finds the program that was compiled for it in the last call.
    """
    if isinstance(x, types.FunctionType | functools.partial):
        try:
            key = _key_of_function(x) if isinstance(x, types.FunctionType) else _key((x.func, x.args, x.keywords))
            hash(key)
        except (TypeError, ValueError):  # what is not hashable may change, and a cell may still be empty
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
        isinstance(x, np.ndarray | np.generic | jax.Array) or (i < num_positional and type(x) in (int, float))
        for i, x in enumerate(leaves)
    ]
    static = (_TRACED if traced else x for x, traced in zip(leaves, is_traced, strict=True))
    dynamic = [_canonical(x) for x, traced in zip(leaves, is_traced, strict=True) if traced]
    return _Static(structure, tuple(static)), dynamic


def _canonical(x: Any) -> Any:
    """A NumPy array in the dtype that JAX gives it: of one object, a nested jit remembers that of before x64 was switched."""
    if not isinstance(x, np.ndarray | np.generic):
        return x
    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    return x if x.dtype == dtype else x.astype(dtype)


def _is_list_of_numbers(x: object) -> bool:
    return isinstance(x, list) and not on_device(x)


def on_any_mesh(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which may gather, scatter and sort along the axes of a mesh that are `Explicit`; its results are replicated.

    Along such axes, the default of `jax.make_mesh` in recent versions of JAX, an operation whose result could be spread in
    several ways raises. Inside, the partitioner decides, as it does for axes that are `Auto`.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves, structure = jax.tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if is_jax(x)]
        mesh = next((mesh for mesh in map(_explicit_mesh, (leaves[i] for i in places)) if mesh is not None), None)
        if mesh is None:
            return function(*args, **kwargs)

        def on_arrays(*arrays: jax.Array) -> R:
            all_leaves = list(leaves)
            for i, x in zip(places, arrays, strict=True):
                all_leaves[i] = x
            args, kwargs = jax.tree.unflatten(structure, all_leaves)
            return function(*args, **kwargs)

        replicated = NamedSharding(mesh, PartitionSpec())
        auto = jax.sharding.auto_axes(on_arrays, axes=mesh.axis_names, out_sharding=replicated)
        return auto(*(leaves[i] for i in places))

    return call


def _explicit_mesh(x: jax.Array) -> Mesh | AbstractMesh | None:
    sharding = jax.typeof(x).sharding if isinstance(x, jax.core.Tracer) else x.sharding
    if not isinstance(sharding, NamedSharding):
        return None
    return sharding.mesh if AxisType.Explicit in sharding.mesh.axis_types else None


def promoting(function: Callable[P, R]) -> Callable[P, R]:
    """`function` of JAX arrays with NumPy's rules for ranks and dtypes inside, whatever the user has set, on any mesh."""
    anywhere = on_any_mesh(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return anywhere(*args, **kwargs)

    return call
