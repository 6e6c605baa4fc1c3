"""Sums that stay exact or nearly so, however long they are: of integers in two 32-bit limbs, of floats with their error.

A float32 counter stops at 2^24, an int32 one wraps at 2^31. `Count` holds `low + 2^32 high`, exact below 2^64, with x64 off
too. `Sum` holds the float nearest to the sum and what is missing from it (Knuth, The Art of Computer Programming, vol. 2,
section 4.2.2, theorem B), twice the digits of one float: a relative error of 2^-46 in float32.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arrays import float_dtype

__all__: list[str] = []


class Count(NamedTuple):
    """`low + 2^32 high`, uint32 both."""

    low: jax.Array
    high: jax.Array


class Sum(NamedTuple):
    """`value + error`."""

    value: jax.Array
    error: jax.Array


Total: TypeAlias = Count | Sum


def no_count(shape: tuple[int, ...]) -> Count:
    return Count(jnp.zeros(shape, jnp.uint32), jnp.zeros(shape, jnp.uint32))


def no_sum(shape: tuple[int, ...]) -> Sum:
    return Sum(jnp.zeros(shape, float_dtype()), jnp.zeros(shape, float_dtype()))


def as_count(number: jax.Array) -> Count:
    """Of integers >= 0."""
    return Count(number.astype(jnp.uint32), jnp.zeros(number.shape, jnp.uint32))


def as_sum(number: jax.Array) -> Sum:
    return Sum(number.astype(float_dtype()), jnp.zeros(number.shape, float_dtype()))


def add_counts(a: Count, b: Count) -> Count:
    low = a.low + b.low
    return Count(low, a.high + b.high + (low < b.low).astype(jnp.uint32))


def add_sums(a: Sum, b: Sum) -> Sum:
    value, error = _two_sum(a.value, b.value)
    return Sum(*_two_sum(value, error + (a.error + b.error)))


def _two_sum(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`a + b` and its rounding error; 0 for the latter where the sum is infinite or NaN."""
    total = a + b
    of_b = total - a
    error = (a - (total - of_b)) + (b - of_b)
    return total, jnp.where(jnp.isfinite(total), error, 0)


def sum_over_devices(total: Total, axis_name: Hashable) -> Total:
    """Over an axis of up to 4096 devices, by sums that need no rounding, so that their order does not matter."""
    if isinstance(total, Count):
        low, middle, high = lax.psum((total.low & 0xFFFF, total.low >> 16, total.high), axis_name)
        carried = Count(middle << 16, (middle >> 16) + high)
        return add_counts(as_count(low), carried)
    slices = _slices(total, lax.pmax(jnp.abs(total.value), axis_name))
    return reduce(add_sums, map(as_sum, lax.psum(slices, axis_name)))


def _slices(total: Sum, largest: jax.Array) -> list[jax.Array]:
    """Parts whose sum is the total, each a multiple of a unit that is common to the devices and leaves 12 bits free."""
    bits = np.finfo(total.value.dtype).nmant + 1 - 12
    _, exponent = jnp.frexp(jnp.where(jnp.isfinite(largest), jnp.maximum(largest, 2.0**-60), 1))
    rest, error = total
    slices = []
    for i in range(1, 5):
        unit = jnp.ldexp(jnp.ones_like(rest), exponent - i * bits)
        finite = jnp.isfinite(rest)
        part = jnp.where(finite, jnp.round(rest / unit) * unit, rest)
        slices.append(part)
        rest, error = _two_sum(jnp.where(finite, rest - part, 0), error)
    return [*slices, rest + error]


def as_floats(total: Total) -> jax.Array:
    """Rounded to one float."""
    if isinstance(total, Count):
        return total.high.astype(float_dtype()) * 2.0**32 + total.low.astype(float_dtype())
    return total.value + total.error


def as_numpy(total: Total) -> np.ndarray:
    """On the host, unrounded: uint64, or float64."""
    a, b = (np.asarray(x) for x in total)
    if isinstance(total, Count):
        return a.astype(np.uint64) + (b.astype(np.uint64) << np.uint64(32))
    return a.astype(np.float64) + b.astype(np.float64)


def in_float64(totals: dict[str, Total]) -> np.ndarray:
    """A table on the host, its count and its sum together."""
    return np.sum([as_numpy(total).astype(np.float64) for total in totals.values()], axis=0)
