"""Mark arrays that vary between the devices of a mesh, inside `jax.shard_map`."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, is_jax, on_device

__all__: list[str] = []


def varying_alike(*arrays: Array | None) -> tuple[Any, ...]:
    """Mark all arrays as varying if any array varies between devices inside `jax.shard_map`.

    A gradient may vary between devices only if the argument of the function also does. The
    transpose of the mark adds up the gradients of all devices.
    """
    if not on_device(arrays):
        return arrays
    axes = frozenset[Hashable]().union(*(varying_axes(x) for x in arrays if x is not None))
    return tuple(None if x is None else _vary_along(x, axes - varying_axes(x)) for x in arrays)


def varying_axes(x: Array) -> frozenset[Hashable]:
    """Return the mesh axes along which `x` may vary."""
    if not is_jax(x):
        return frozenset()
    kind = jax.typeof(x)
    if hasattr(kind, "manual_axis_type"):
        return kind.manual_axis_type.varying
    return kind.vma  # the name in JAX 0.7


def _vary_along(x: Array, axes: frozenset[Hashable]) -> Array:
    if not axes:
        return x
    pcast = getattr(jax.lax, "pcast", None)  # JAX 0.7 has pvary only
    mark = partial(pcast, to="varying") if pcast else jax.lax.__dict__["pvary"]
    return mark(x, tuple(axes))
