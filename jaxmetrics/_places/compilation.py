"""Compile functions for JAX arrays: which arguments are static, and which calls share a program.

A static value is identified by its parts (`_key`) if it is immutable, such as a number, a string, a
function of this package, or a scheme applied to such a function. Any other value, such as a user's
function, may depend on something that changes. Therefore it is traced in each call, and functions
with the same computation share a program (`tracing`).

`jax.jit` is called only here and for `linear_cross_entropy` and streaming states, which are always
computed by JAX.

Programs are for traced arrays, for many numbers, for counts and metrics, and for whatever draws.
Other functions, whose results people read, compute few numbers by NumPy (`on_host_if_small`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import math
import sys
import types
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np

from jaxmetrics._applied import Applied
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import is_jax, is_known, on_device
from jaxmetrics._places.tracing import Jaxpr, TracedMetric, trace
from jaxmetrics._places.user_warnings import held_warnings, warn

__all__: list[str] = []

_MODULES_OF_DTYPES = ("builtins", "numpy", "jax", "ml_dtypes")
_MOST_COMPUTATIONS = 2**10  # most computations whose calls are counted
_MOST_PROGRAMS = 64  # most cached programs of users' functions, which take some MB each


P = ParamSpec("P")
R = TypeVar("R")


def on_any_mesh(function: Callable[P, R]) -> Callable[P, R]:
    """Allow `function` to gather, scatter and sort along `Explicit` mesh axes.

    `Explicit` axes are the default of `jax.make_mesh` in recent versions of JAX. Along such axes,
    an operation raises an error if its result could be sharded in several ways. Inside `function`,
    JAX's partitioner decides instead, as for `Auto` axes. Axes of a batch are sharded in results as
    in arguments.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves, structure = trees.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if is_jax(x)]
        meshes = (_explicit_mesh(leaves[i]) for i in places)
        mesh = next((mesh for mesh in meshes if mesh is not None), None)
        if mesh is None:
            return function(*args, **kwargs)

        def of_arrays(*arrays: jax.Array) -> R:  # `auto_axes` accepts arrays only
            all_leaves = list(leaves)
            for i, x in zip(places, arrays, strict=True):
                all_leaves[i] = x
            args, kwargs = trees.unflatten(structure, all_leaves)
            return function(*args, **kwargs)

        arrays = [leaves[i] for i in places]
        specs = _specs_of_results(of_arrays, arrays)
        shardings = trees.map(functools.partial(jax.sharding.NamedSharding, mesh), specs)
        auto = jax.sharding.auto_axes(of_arrays, axes=mesh.axis_names, out_sharding=shardings)
        return auto(*arrays)

    return call


def _explicit_mesh(x: jax.Array) -> jax.sharding.Mesh | jax.sharding.AbstractMesh | None:
    sharding = jax.typeof(x).sharding if isinstance(x, jax.core.Tracer) else x.sharding
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return None
    return sharding.mesh if jax.sharding.AxisType.Explicit in sharding.mesh.axis_types else None


def _specs_of_results(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """Return how the results are sharded: an axis like axes of the arguments, if it is as long as
    these, and twice as long if these are.
    """
    specs = [(*jax.typeof(x).sharding.spec, *[None] * x.ndim)[: x.ndim] for x in arrays]

    def shapes(*doubled: Any) -> tuple[list[Any], Any]:
        longer = [
            tuple(n * (1 + (name in doubled)) for n, name in zip(x.shape, spec, strict=True))
            for x, spec in zip(arrays, specs, strict=True)
        ]
        given = (jax.ShapeDtypeStruct(y, x.dtype) for x, y in zip(arrays, longer, strict=True))
        leaves, structure = trees.flatten(jax.eval_shape(function, *given))
        return [x.shape for x in leaves], structure

    results, structure = shapes()
    found: list[list[Any]] = [[None] * len(shape) for shape in results]
    for name in {name for spec in specs for name in spec if name is not None}:
        lengths = {
            n
            for x, spec in zip(arrays, specs, strict=True)
            for n, axis in zip(x.shape, spec, strict=True)
            if axis == name
        }
        with contextlib.suppress(Exception):  # only one of two axes that must be equal is doubled
            for spec, shape, longer in zip(found, results, shapes(name)[0], strict=True):
                grown = [i for i, n in enumerate(shape) if n in lengths and longer[i] == 2 * n]
                if grown:
                    spec[grown[0]] = name
    return trees.unflatten(structure, [jax.sharding.PartitionSpec(*spec) for spec in found])


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that is called directly for NumPy arrays and compiled for JAX arrays.

    If the function is compiled, arrays, lists and positional numbers are traced. Functions, strings
    and Python values of keyword arguments are static. Inside the function, ranks and dtypes are
    promoted by NumPy's rules for any JAX configuration of the user, and arrays may be sharded over
    any mesh.
    """

    def from_leaves(static: _Static, traced: Sequence[Any]) -> R:
        args, kwargs = static.with_arrays(traced)
        return function(*args, **kwargs)

    # Profilers and error messages show this name of the program.
    from_leaves.__name__ = from_leaves.__qualname__ = function.__name__

    @functools.cache
    def jitted() -> Callable[..., R]:
        return promoting(jax.jit(from_leaves, static_argnums=0))

    most, foreign = _arguments_of_metric(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > most or not foreign.isdisjoint(kwargs):
            _refuse_labels(function, args)
        if not on_device(*args, *kwargs.values()):
            with np.errstate(all="ignore"):
                result: Any = function(*args, **kwargs)
            return _scalar(result) if type(result) is np.ndarray else trees.map(_scalar, result)
        static, traced = _split(args, kwargs)
        if not static.is_constant:
            return _traced_anew(functools.partial(from_leaves, static), traced)
        if any(isinstance(x, TracedMetric) for x in (*args, *kwargs.values())):
            return promoting(_program(from_leaves, static))(traced)
        return jitted()(static, traced)

    return call


_MOST_NUMBERS = 2**14  # in the JAX arrays of a call that is computed on the host
_HOST_TABLES = 64  # at most 3 s, about as long as compiling one program


def on_host_if_small(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function whose result a person reads: an interval, a test, a posterior or a plan.

    Outside of jit, few numbers in JAX arrays on one device are computed by NumPy, because compiling
    takes seconds. The results are JAX arrays on the same device. JAX computes values that NumPy
    refuses, which become NaN, and whatever draws, because JAX has draws of its own. After 64 calls
    of the same computation, a program is worth its compilation. The tables of a batch that NumPy
    would evaluate one by one count as calls (`spend`).
    """

    most, _ = _arguments_of_metric(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > most:
            _refuse_labels(function, args)
        found = _by_numpy(function, args, kwargs) if on_device(*args, *kwargs.values()) else None
        if found is None:
            return function(*args, **kwargs)
        result, held = found
        for message, category in held:
            warn(message, category)
        return result

    return call


def _by_numpy(
    function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[R, list[tuple[str, type[Warning]]]] | None:
    """Return the result for few numbers and the warnings, or None if JAX computes the result."""
    leaves, structure = trees.flatten((args, kwargs))
    arrays = [x for x in leaves if is_jax(x)]
    if sum(x.size for x in arrays) > _MOST_NUMBERS or not all(map(is_known, arrays)):
        return None
    if any(getattr(x, "draws", False) for x in (*args, *kwargs.values())):
        return None
    if len({device for x in arrays for device in x.devices()}) > 1:
        return None
    # Of an exception, JAX raises the error, or returns NaN.
    with contextlib.suppress(Exception), held_warnings() as held:
        kinds = (x if callable(x) else getattr(x, "shape", type(x)) for x in leaves)
        token = _spending.set(_allowance(hash((function, structure, *kinds))))
        try:
            spend(1)
            return _on_host(function, leaves, structure), held
        finally:
            _spending.reset(token)
    return None


def _on_host(function: Callable[..., R], leaves: list[Any], structure: Any) -> R:
    arrays = [x for x in leaves if is_jax(x)]
    found = iter(jax.device_get(arrays))
    args, kwargs = trees.unflatten(structure, [next(found) if is_jax(x) else x for x in leaves])
    place = arrays[0].device if any(x.committed for x in arrays) else None

    def back(x: Any) -> Any:
        return jax.device_put(x, place) if isinstance(x, np.ndarray | np.generic) else x

    return trees.map(back, function(*args, **kwargs))


class _Allowance:
    """How many tables of a computation may still be evaluated by NumPy instead of JAX."""

    def __init__(self) -> None:
        self.left = _HOST_TABLES


@functools.lru_cache(_MOST_COMPUTATIONS)
def _allowance(computation: int) -> _Allowance:
    """Return the allowance of a computation, which all its calls share."""
    return _Allowance()


_spending: ContextVar[_Allowance | None] = ContextVar("spending", default=None)


def spend(number: int) -> None:
    """Stop a computation of JAX arrays by NumPy if a program is cheaper than so many tables."""
    allowance = _spending.get()
    if allowance is not None:
        if number > allowance.left:
            raise RuntimeError("a program is cheaper")
        allowance.left -= number


def one_program(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function such that it is one program for JAX arrays, including its checks.

    The function must not check the values of JAX arrays, which are unknown in a program. It runs
    as it is if an argument is a NumPy array, whose values are checked, or a float, because each
    value would need a program of its own.
    """
    whole = compiled(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if all(map(_is_jax_or_static, (*args, *kwargs.values()))):
            # An error is raised by the second call, without the frames of a trace.
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                return whole(*args, **kwargs)
        return function(*args, **kwargs)

    return call


def _is_jax_or_static(x: Any) -> bool:
    return type(x) in (bool, int, str, types.NoneType) or (is_jax(x) and is_known(x))


def promoting(function: Callable[P, R]) -> Callable[P, R]:
    """Call a function of JAX arrays with NumPy's rules for rank and dtype promotion, on any mesh.

    The user's JAX configuration has no effect inside.
    """
    anywhere = on_any_mesh(function)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return anywhere(*args, **kwargs)

    return call


@promoting
def _traced_anew(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    """Trace a function of arrays, and run the compiled program of its computation.

    Under jit, the function is called, and becomes part of the user's program.
    """
    if any(isinstance(x, jax.core.Tracer) for x in arrays):
        return function([x if is_jax(x) else jax.numpy.asarray(x) for x in arrays])
    jaxpr, constants = trace(lambda *x: function(x), *arrays, differentiable=False)
    # Transferred explicitly, which `jax.transfer_guard("disallow")` allows.
    return _program(Jaxpr.__call__, jaxpr)(jax.device_put(constants), arrays)


@functools.lru_cache(_MOST_PROGRAMS)
def _program(function: Callable[..., Any], static: Hashable) -> Callable[..., Any]:
    return jax.jit(functools.partial(function, static))


def traced_metric(metric: Callable[[Any], Any], shape: Sequence[int], dtype: Any) -> Any:
    """Return a metric of JAX tables as a `TracedMetric`, or unchanged if the metric is immutable.

    All metrics whose computations are equal up to constants then share one compiled program.
    """
    if isinstance(metric, TracedMetric) or is_constant(metric):
        return metric
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return TracedMetric.of(metric, jax.ShapeDtypeStruct(tuple(shape), dtype))


def is_constant(x: Any) -> bool:
    """Return whether a value is immutable, such as a function of this package."""
    try:
        _key(x)
    except _MayChange:
        return False
    return True


def _scalar(x: Any) -> Any:
    """Convert an array without axes to a NumPy scalar, as NumPy's reductions do."""
    return x[()] if type(x) is np.ndarray and x.ndim == 0 else x


class _Static:
    """The arguments of a call without the arrays.

    Two calls share a compiled program if these arguments are constant and equal.
    """

    def __init__(self, structure: Any, leaves: tuple[Any, ...]) -> None:
        self.structure, self.leaves = structure, leaves
        try:
            self.key: Hashable = structure, tuple(map(_key, leaves))
        except _MayChange:
            self.key = None
        self.is_constant = self.key is not None
        self.hash = hash(self.key)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.key == other.key

    def with_arrays(self, arrays: Sequence[Any]) -> Any:
        rest = iter(arrays)
        leaves = [next(rest) if x is _TRACED else x for x in self.leaves]
        return trees.unflatten(self.structure, leaves)


class _MayChange(Exception):
    """Raised for a value that may change, so that its parts do not identify it."""


def _key(x: Any) -> Hashable:
    """Return a key of a static value; equivalent values have equal keys."""
    # Derived classes are excluded, because they may be callable and read changing state.
    if x is _TRACED or type(x) in (bool, int, str, bytes, types.NoneType):
        return type(x), x
    if type(x) is float:
        return float, x.hex()  # 0.0 and -0.0 are equal
    if type(x) is tuple or (isinstance(x, tuple) and _is_ours(type(x))):
        return type(x), tuple(map(_key, x))
    if isinstance(x, np.dtype) or (isinstance(x, enum.Enum) and _is_ours(type(x))):
        return x
    if isinstance(x, type) and x.__module__.partition(".")[0] in _MODULES_OF_DTYPES:
        return x
    if isinstance(x, Applied):
        return Applied, _key(x.scheme), _key(x.function), _key(x.options)
    if isinstance(x, functools.partial):
        keywords = tuple((name, _key(value)) for name, value in x.keywords.items())
        return functools.partial, _key(x.func), _key(x.args), keywords
    if _is_ours(type(x)) and dataclasses.is_dataclass(x):
        return type(x), tuple(_key(getattr(x, field.name)) for field in dataclasses.fields(x))
    if isinstance(x, types.FunctionType) and _is_ours(x):
        return x
    raise _MayChange


def _is_ours(x: Any) -> bool:
    """Return whether a function or class is defined in this package."""
    name = x.__module__ or ""
    is_of_package = name.partition(".")[0] == __name__.partition(".")[0]
    return is_of_package and getattr(sys.modules.get(name), x.__qualname__, None) is x


_OF_LABELS = frozenset(  # arguments of scikit-learn's metrics
    {"y_true", "y_pred", "average", "labels", "pos_label", "normalize", "sample_weight"}
)


def _arguments_of_metric(function: Callable[..., Any]) -> tuple[float, frozenset[str]]:
    """Return how many positional arguments a metric of counts accepts, and which arguments of
    labels it does not accept. Other functions may accept any arguments.
    """
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code else ()
    if "counts" not in names:
        return math.inf, frozenset()
    whole: Any = getattr(function, "__wrapped__", function)
    return len(names), _OF_LABELS.difference(whole.__code__.co_varnames)


def _refuse_labels(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Raise an error if labels are passed to a function of counts, which says how to call it."""
    name, counts = function.__name__, "confusion_matrix(y_true, y_pred)"
    metric = next((getattr(x, "__name__", "metric") for x in args if callable(x)), name)
    if name[0] == "_":  # a scheme, such as macro
        metric = f"{name.strip('_')}({metric})"
    is_metric = name[0] == "_" or metric == name
    called = f"{metric}({counts})" if is_metric else f"{name}({metric}, {counts})"
    raise TypeError(
        f"{metric if is_metric else name} takes counts, a confusion matrix, and no labels. All"
        f" options must be passed by name. If you have labels, call {called}; sample_weight is an"
        " argument of confusion_matrix. For an average over classes, or for one class, apply a"
        " function to a metric: macro(f1), macro(f1, classes=[1, 2]) or binary(f1). For a scorer of"
        " scikit-learn, apply scorer, as in scorer(macro(f1))."
    )


_TRACED = object()  # placeholder for an array


def _split(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Static, list[Any]]:
    leaves, structure = trees.flatten((args, kwargs), is_leaf=_is_leaf)
    num_positional = len(trees.leaves(args, is_leaf=_is_leaf))
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
    """Convert a NumPy array to the dtype that it has in JAX.

    Otherwise, a nested jit, which caches by object, would keep an old dtype after x64 was switched.
    """
    if not isinstance(x, np.ndarray | np.generic):
        return x
    if np.ma.is_masked(x):
        raise TypeError(
            "An argument is a masked array: pass an ordinary array without the masked entries."
        )
    dtype = jax.dtypes.canonicalize_dtype(x.dtype)
    return x if x.dtype == dtype else x.astype(dtype)


def _is_leaf(x: object) -> bool:
    """Return whether a value is a leaf: a list of numbers or a function, but no traced metric."""
    if isinstance(x, list):
        return not on_device(x) and not any(isinstance(part, np.ndarray) for part in x)
    return callable(x) and not isinstance(x, TracedMetric)
