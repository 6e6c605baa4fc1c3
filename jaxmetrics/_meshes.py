"""Let functions take arrays that are spread over a mesh of devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, ParamSpec, TypeVar

from jaxmetrics._jax import jax, trees
from jaxmetrics._namespaces import Array, is_jax, on_device

__all__: list[str] = []

P = ParamSpec("P")
R = TypeVar("R")


def on_any_mesh(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function` gather, scatter and sort along `Explicit` axes; its results are replicated.

    Along such axes of a mesh, the default of `jax.make_mesh` in recent versions of JAX, an
    operation whose result could be spread in several ways raises. Inside `function`, the
    partitioner decides, as it does for axes that are `Auto`.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        leaves, structure = trees.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if is_jax(x)]
        meshes = (_explicit_mesh(leaves[i]) for i in places)
        mesh = next((mesh for mesh in meshes if mesh is not None), None)
        if mesh is None:
            return function(*args, **kwargs)

        def of_arrays(*arrays: jax.Array) -> R:  # `auto_axes` takes arrays only
            all_leaves = list(leaves)
            for i, x in zip(places, arrays, strict=True):
                all_leaves[i] = x
            args, kwargs = trees.unflatten(structure, all_leaves)
            return function(*args, **kwargs)

        replicated = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        auto = jax.sharding.auto_axes(of_arrays, axes=mesh.axis_names, out_sharding=replicated)
        return auto(*(leaves[i] for i in places))

    return call


def _explicit_mesh(x: jax.Array) -> jax.sharding.Mesh | jax.sharding.AbstractMesh | None:
    sharding = jax.typeof(x).sharding if isinstance(x, jax.core.Tracer) else x.sharding
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return None
    return sharding.mesh if jax.sharding.AxisType.Explicit in sharding.mesh.axis_types else None


def varying_alike(*arrays: Array | None) -> tuple[Any, ...]:
    """Mark as differing between devices, inside `jax.shard_map`, all arrays if any of them does.

    A gradient may differ between devices only if its argument does; the transpose of the mark adds
    up the devices' gradients.
    """
    if not on_device(arrays):
        return arrays
    axes = frozenset[Hashable]().union(*(varying_axes(x) for x in arrays if x is not None))
    return tuple(None if x is None else _vary_along(x, axes - varying_axes(x)) for x in arrays)


def varying_axes(x: Array) -> frozenset[Hashable]:
    """Return the axes along which devices may hold different `x`."""
    if not is_jax(x):
        return frozenset()
    kind = jax.typeof(x)
    if hasattr(kind, "manual_axis_type"):
        return kind.manual_axis_type.varying
    return kind.vma  # its name in JAX 0.7


def _vary_along(x: Array, axes: frozenset[Hashable]) -> Array:
    if not axes:
        return x
    pcast = getattr(jax.lax, "pcast", None)  # JAX 0.7 has pvary only
    mark = partial(pcast, to="varying") if pcast else jax.lax.__dict__["pvary"]
    return mark(x, tuple(axes))
