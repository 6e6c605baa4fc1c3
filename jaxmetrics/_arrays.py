"""What every file needs at its door: conversion, static checks and their wording, division that knows about 0/0.

Mistakes that are visible in the shapes, dtypes and Python values raise here, also while JAX traces. What depends on the
numbers in an array (a label out of range, a negative count) cannot raise under `jax.jit` and never does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

__all__: list[str] = []

ArrayLike: TypeAlias = jax.typing.ArrayLike | npt.ArrayLike

P = ParamSpec("P")
R = TypeVar("R")

INT32_MAX = int(np.iinfo(np.int32).max)


def float_dtype() -> np.dtype:
    """The dtype in which everything is computed: float32, or float64 under `jax_enable_x64`."""
    return jax.dtypes.canonicalize_dtype(float)


def as_host_or_jax(x: ArrayLike) -> jax.Array | np.ndarray:
    """JAX arrays and tracers as they are, everything else as a NumPy array; an empty list counts as integers."""
    if isinstance(x, jax.Array):
        return x
    if isinstance(x, list | tuple) and any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(x)):
        return jnp.asarray(x)
    array = np.asarray(x)
    return array.astype(np.int8) if array.size == 0 and isinstance(x, list | tuple) else array


def is_integer(x: jax.Array | np.ndarray) -> bool:
    return jnp.issubdtype(x.dtype, jnp.integer) or x.dtype == bool


def as_float(x: ArrayLike, name: str) -> jax.Array:
    """`x` in the computing dtype; NumPy integers beyond int32 are rounded, not wrapped."""
    array = as_host_or_jax(x)
    check_real(array, name)
    if isinstance(array, np.ndarray):
        return jnp.asarray(array.astype(float_dtype()))
    return array.astype(float_dtype())


def check_real(array: jax.Array | np.ndarray, name: str) -> None:
    if not (is_integer(array) or jnp.issubdtype(array.dtype, jnp.floating)):
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")


def as_counts(counts: ArrayLike) -> jax.Array:
    """`counts` as floats of shape `(..., K, K)`."""
    array = as_float(counts, "counts")
    check_square(array, "counts")
    return array


def weighted_sum(p: jax.Array, w: jax.Array) -> jax.Array:
    """`sum_ij w_ij p_ij` of matrices p `(..., K, K)` with weights `(K, K)`."""
    return (p * jnp.broadcast_to(w, p.shape)).sum((-2, -1))


def check_square(array: jax.Array, name: str) -> None:
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (..., K, K) (row = true class, column = predicted class), got {array.shape}."
            " jaxmetrics.confusion_matrix makes such an array from labels and predictions."
        )


def as_square(x: ArrayLike, k: int, name: str) -> jax.Array:
    """`x` as a `(k, k)` array of floats that goes with counts of k classes."""
    array = as_float(x, name)
    if array.shape != (k, k):
        raise ValueError(f"{name} must have shape (K, K) = ({k}, {k}) like one matrix of counts, got {array.shape}.")
    return array


def check_size(value: int, name: str) -> int:
    """A static size of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"{name} must be a Python int, because it sets the shape of the result; got {type(value).__name__}."
            " Under jax.jit, close over it or name it in static_argnames."
        )
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}.")
    return int(value)


def promoting(function: Callable[P, R]) -> Callable[P, R]:
    """`function` with NumPy's rules for ranks and dtypes inside, whatever the user has set for the program, on any mesh."""
    anywhere = on_any_mesh(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return anywhere(*args, **kwargs)

    return call


def on_any_mesh(function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which may gather, scatter and sort along the axes of a mesh that are `Explicit`; its results are replicated.

    Along such axes, the default of `jax.make_mesh` in recent versions of JAX, an operation whose result could be spread in
    several ways raises. Inside, the partitioner decides, as it does for axes that are `Auto`.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves, structure = jax.tree.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, jax.Array)]
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


def check_level(level: float) -> float:
    """The probability with which an interval is meant to contain the true value."""
    if not (isinstance(level, int | float) and 0 < (1 - level) / 2 < 0.5):
        raise ValueError(f"level must be a Python number between 0 and 1 (0.95 for 95 %), got {level!r}.")
    return level


def as_edges(edges: ArrayLike) -> jax.Array:
    """The edges between B bins, rising."""
    cuts = as_float(edges, "edges")
    if cuts.ndim != 1 or cuts.size == 0:
        raise ValueError(f"edges must have shape (B - 1,) the edges between B bins, got {cuts.shape}.")
    if not isinstance(cuts, jax.core.Tracer) and not bool((cuts[1:] >= cuts[:-1]).all() & ~jnp.isnan(cuts).any()):
        raise ValueError("edges must rise.")
    return cuts


@promoting
def bins_between(edges: jax.Array, x: jax.Array) -> jax.Array:
    """How many of the rising edges each number reaches, `edge <= x`; -1 for NaN."""
    edges, x = varying_alike(edges, x)
    reached = jnp.searchsorted(edges, x, side="right", method="scan_unrolled")
    return jnp.where(jnp.isnan(x), -1, reached.astype(jnp.int32))


def as_histogram(histogram: ArrayLike) -> jax.Array:
    """Numbers of negatives and positives in each bin, `(..., 2, B)`, as floats."""
    array = as_float(histogram, "histogram")
    if array.ndim < 2 or array.shape[-2] != 2 or array.shape[-1] == 0:
        raise ValueError(f"histogram must have shape (..., 2, B), as score_histogram returns it, got {array.shape}.")
    return array


def varying_alike(*arrays: jax.Array | None) -> tuple[Any, ...]:
    """Inside `jax.shard_map`, mark what differs between devices in any argument as differing in all.

    A gradient may differ between devices only if its argument does; the transpose of the mark adds up the devices' gradients.
    """
    axes = frozenset[Hashable]().union(*(varying_axes(x) for x in arrays if x is not None))
    return tuple(None if x is None else _vary_along(x, axes - varying_axes(x)) for x in arrays)


def varying_axes(x: jax.Array) -> frozenset[Hashable]:
    """The axes along which devices may hold different `x`; the field has moved since JAX 0.7."""
    kind = jax.typeof(x)
    return kind.manual_axis_type.varying if hasattr(kind, "manual_axis_type") else kind.vma


def _vary_along(x: jax.Array, axes: frozenset[Hashable]) -> jax.Array:
    if not axes:
        return x
    mark = partial(lax.pcast, to="varying") if hasattr(lax, "pcast") else lax.__dict__["pvary"]  # JAX 0.7 has the latter only
    return mark(x, tuple(axes))


SMALLEST_BETA_PARAMETER = 0.05  # below, a density is hardly more than its poles, which no table resolves


def are_beta_parameters(parameters: jax.Array) -> jax.Array:
    return (parameters >= SMALLEST_BETA_PARAMETER * (1 - 1e-6)) & (parameters < jnp.inf)


def as_prior(prior: ArrayLike, k: int) -> jax.Array:
    """`prior` as a row (alpha, beta) per class, `(k, 2)`; NaN where it is impossible and jit hides it."""
    p = as_float(prior, "prior")
    if p.shape not in ((), (2,), (k, 2)):
        raise ValueError(f"prior must be a number, (alpha, beta) or an array (K, 2) = ({k}, 2), got shape {p.shape}.")
    if not isinstance(p, jax.core.Tracer) and not bool(are_beta_parameters(p).all()):
        raise ValueError(
            f"prior must be finite and at least {SMALLEST_BETA_PARAMETER}, got {prior!r}. 1 is flat, 0.5 is Jeffreys' prior."
        )
    return jnp.broadcast_to(jnp.where(are_beta_parameters(p), p, jnp.nan), (k, 2))


def check_option(value: str, name: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ValueError(f"{name} must be {', '.join(map(repr, options[:-1]))} or {options[-1]!r}, got {value!r}.")


def as_class_ids(labels: ArrayLike, name: str, size: int) -> jax.Array | np.ndarray:
    """Integer class ids with an axis of examples.

    Host arrays are narrowed to the smallest signed dtype that holds -1 and every id: they reach the device sooner, and a
    64-bit label such as 2**32 becomes -1 instead of wrapping to 0 where JAX truncates it to 32 bits.
    """
    ids = as_host_or_jax(labels)
    if not is_integer(ids):
        if not jnp.issubdtype(ids.dtype, jnp.floating):
            hint = " jaxmetrics.report takes strings; numpy.unique(labels, return_inverse=True) turns them into ids."
        elif name == "labels":
            hint = " Logits come first: (logits, labels); distributions go to soft_cross_entropy."
        else:
            hint = " Truth comes first: (y_true, y_pred) or (y_true, y_score); argmax makes class ids of probabilities."
        raise TypeError(f"{name} must hold class ids of an integer or bool dtype, got {ids.dtype}.{hint}")
    if isinstance(ids, np.ndarray):
        dtype = np.int8 if size <= 127 else np.int16 if size <= 32767 else np.int32
        if ids.size == 0 or (ids.min() >= 0 and ids.max() < size):
            return ids.astype(dtype)
        valid = (ids >= 0) & (ids < size)
        return np.where(valid, np.where(valid, ids, 0).astype(dtype), np.asarray(-1, dtype))
    return ids


@promoting
def valid_ids(ids: jax.Array | np.ndarray, size: int) -> jax.Array:
    """Class ids as int32, -1 for those outside of [0, size)."""
    array = jnp.asarray(ids)
    wide = array if array.dtype.itemsize >= 4 else array.astype(jnp.int32)  # int8 cannot be compared with 200
    return jnp.where((wide >= 0) & (wide < size), wide, -1).astype(jnp.int32)


def as_mask(where: ArrayLike) -> jax.Array:
    mask = as_host_or_jax(where)
    if mask.dtype != bool and mask.size:
        raise TypeError(
            f"where must be a bool mask (True = counted), got dtype {mask.dtype}. `mask != 0` makes one of numbers."
        )
    return jnp.asarray(mask, bool)


def check_examples(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """All have an axis of examples of one length, last, and leading axes that broadcast."""
    described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if any(len(shape) == 0 for shape in shapes.values()):
        raise ValueError(f"each argument needs an axis of examples, got the shapes {described}.")
    if len({shape[-1] for shape in shapes.values()}) > 1:
        raise ValueError(f"all arguments must have the same number of examples on the last axis, got the shapes {described}.")
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
    except ValueError:
        raise ValueError(f"the leading (batch) axes must broadcast, got the shapes {described}.") from None


def divide(numerator: jax.Array, denominator: jax.Array, zero_division: ArrayLike = 0.0) -> jax.Array:
    """`numerator / denominator`, and `zero_division` where the denominator is 0; its gradient is finite there."""
    defined = denominator != 0
    quotient = _quotient(numerator, jnp.where(defined, denominator, 1))
    return jnp.where(defined, quotient, as_float(zero_division, "zero_division"))


@jax.custom_jvp
def _quotient(a: jax.Array, b: jax.Array) -> jax.Array:
    return a / b


@_quotient.defjvp
def _quotient_jvp(primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """JAX's own rule divides by b^2, which underflows to 0 for b = 1e-25, the soft count of an absent class."""
    (a, b), (da, db) = primals, tangents
    quotient = _quotient(a, b)
    return quotient, (da - quotient * db) / b


def safe_sqrt(x: jax.Array) -> jax.Array:
    """`sqrt(x)` with gradient 0, not infinity, at 0."""
    return jnp.where(x == 0, 0, jnp.sqrt(jnp.where(x == 0, 1, x)))


def divide_by_geometric_mean(a: jax.Array, b: jax.Array, c: jax.Array, zero_division: ArrayLike) -> jax.Array:
    """`a / sqrt(b c)`, exactly 1 for a = b = c; `zero_division` where b or c is 0."""
    quotient = divide(a, b) * safe_sqrt(divide(b, c))
    return jnp.where((b != 0) & (c != 0), quotient, as_float(zero_division, "zero_division"))


def safe_log(x: jax.Array) -> jax.Array:
    """`log(x)`, and 0 with gradient 0 at 0: for `x log x` and its kin, whose limit there is 0."""
    return jnp.log(jnp.where(x == 0, 1, x))


def matmul(a: jax.Array, b: jax.Array) -> jax.Array:
    """`a @ b` in full precision, also on devices whose default is TF32 or bfloat16."""
    return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)
