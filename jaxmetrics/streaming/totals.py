"""Exact sums of integers and accurate sums of floats over many batches, in pairs of numbers.

A float32 counter stops increasing at 2^24, and an int32 counter overflows at 2^31. Therefore a
*count* is an array of two uint32 with the value `count[0] + 2^31 count[1]`, which is exact below
2^63 even if `jax_enable_x64` is off. The last bit of `count[0]` has the value of the first bit of
`count[1]`: examples are counted in `count[0]` alone, and the bit is carried when it may be set. A
*sum* is an array of two floats with the value `sum[0] + sum[1]`, the nearest float and the
remainder (Knuth, The Art of Computer Programming, vol. 2, section 4.2.2, theorem B). In float32 the
error of an addition is 2^-48 times its terms, unless the terms are below 1e-30. A *total* is a
count or a sum. Both numbers of a pair are in one array, because a call of a jitted function takes
longer with each additional array.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arguments.single import is_integer, on_host
from jaxmetrics._places.namespaces import float_dtype

__all__: list[str] = []

_WORD = np.uint32(2**31 - 1)


class Totals(NamedTuple):
    """The total of a table in a state of version 0.3, in which weights had sums of their own and
    counts had the value `counts[0] + 2^32 counts[1]`.
    """

    sums: np.ndarray
    counts: np.ndarray | None = None


def no_total(shape: tuple[int, ...], *, is_integer: bool) -> jax.Array:
    return jnp.zeros((2, *shape), jnp.uint32 if is_integer else float_dtype())


def as_total(number: jax.Array) -> jax.Array:
    """Convert integers from 0 to 2^31 - 1 to a count, and floats to a sum."""
    words = number.astype(jnp.uint32 if is_integer(number) else float_dtype())
    return jnp.stack([words, jnp.zeros_like(words)])


def carried(count: jax.Array) -> jax.Array:
    """Move the last bit of the lower word of a count to the upper word."""
    return jnp.stack([count[0] & _WORD, count[1] + (count[0] >> 31)])


def carried_if(is_needed: jax.Array, count: jax.Array) -> jax.Array:
    """Call `carried` if needed, in place and without memory for a second count, row by row."""

    def carry(i: jax.Array, count: jax.Array) -> jax.Array:
        return count.at[:, i].set(carried(count[:, i]))

    return lax.fori_loop(0, jnp.where(is_needed, count.shape[1], 0), carry, count)


def add(a: jax.Array, b: jax.Array) -> jax.Array:
    """Add two counts or two sums."""
    if is_integer(a):
        # In one kernel: XLA on a CPU writes each array that is stacked.
        low = (a[0] & _WORD) + (b[0] & _WORD)
        high = a[1] + b[1] + (a[0] >> 31) + (b[0] >> 31)
        return jnp.stack([low & _WORD, high + (low >> 31)])
    value, error = _two_sum(a[0], b[0])
    return jnp.stack(_two_sum(value, error + (a[1] + b[1])))


def _two_sum(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return `a + b` and its rounding error (0 if the sum is infinite or NaN)."""
    total = a + b
    of_b = total - a
    error = (a - (total - of_b)) + (b - of_b)
    return total, jnp.where(jnp.isfinite(total), error, 0)


def sum_over_devices(total: jax.Array, axis_name: Hashable) -> jax.Array:
    """Sum over up to 4096 devices without rounding, so the order of devices does not matter."""
    if is_integer(total):
        low, high = carried(total)
        low, middle, high = lax.psum((low & 0xFFFF, low >> 16, high), axis_name)
        upper = jnp.stack([middle << 16 & _WORD, (middle >> 15) + high])
        return add(as_total(low), upper)
    slices = _slices(total, lax.pmax(jnp.abs(total[0]), axis_name))
    return reduce(add, map(as_total, lax.psum(slices, axis_name)))


def _slices(total: jax.Array, largest: jax.Array) -> list[jax.Array]:
    """Split a sum into parts that are multiples of the same unit on all devices. Each part has 12
    unused bits for the carries of 4096 devices.
    """
    bits = np.finfo(total.dtype).nmant + 1 - 12
    _, exponent = jnp.frexp(jnp.where(jnp.isfinite(largest), jnp.maximum(largest, 2.0**-60), 1))
    rest, error = total
    slices = []
    for i in range(1, 5):
        unit = jnp.ldexp(jnp.ones_like(rest), exponent - i * bits)
        finite = jnp.isfinite(rest)
        # Rounded towards 0, because the value may be near the greatest float.
        part = jnp.where(finite, jnp.trunc(rest / unit) * unit, rest)
        slices.append(part)
        rest, error = _two_sum(jnp.where(finite, rest - part, 0), error)
    return [*slices, rest + error]


def as_floats(total: jax.Array) -> jax.Array:
    """Round a total to a single float."""
    if is_integer(total):
        return total[1].astype(float_dtype()) * 2.0**31 + total[0].astype(float_dtype())
    return total[0] + total[1]


def as_numpy(total: jax.Array) -> np.ndarray:
    """Return a total as NumPy uint64 or float64, without rounding."""
    a, b = on_host(total, "state")
    if is_integer(total):
        return a.astype(np.uint64) + (b.astype(np.uint64) << np.uint64(31))
    return a.astype(np.float64) + b.astype(np.float64)
