"""Cross entropy of a linear layer over a large vocabulary, whose logits are never held at once.

Of n examples and V words the logits would fill n V numbers, and their gradient as many again: for
    8192 tokens and 131,072
words that is 4 GiB each, more than the rest of many a model. Here a block of `chunk_size` words is
computed, used and forgotten, and computed once more for the gradient: one product of matrices in
four is extra work.

What a block leaves behind is kept apart from the label's own logit: `M`, the largest of the other
logits, and `S = sum_{v != y} exp(z_v - M)`. With `t = M - z_y + ln S` the loss is `ln(1 + e^t)` and
its slope in `z_y` is `-sigmoid(t)`: neither is the difference of two large numbers, so a loss of
1e-9 keeps its digits, also where the logits are 1e4. Blocks and devices are joined by adding up S
relative to a common M. Milakov and Gimelshein (2018), Online normalizer calculation for softmax,
arXiv:1805.02867, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._compilation import promoting
from jaxmetrics._meshes import varying_alike, varying_axes
from jaxmetrics._namespaces import Array, float_dtype
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_mask,
    check_examples,
    check_size,
    is_integer,
    valid_ids,
)
from jaxmetrics.losses.per_example import as_real, as_term, class_ids, scaled

__all__ = ["linear_cross_entropy"]

T = TypeVar("T")

# Without chunk_size: logits in a block, and the least number of words. Longer blocks leave the
# cache of a CPU, narrower products do not reach its speed.
BLOCK = 2**22
NARROWEST = 512

_Start = jax.Array | int


class _Options(NamedTuple):
    """What is static. `smooth`: the sum of all logits is wanted too."""

    chunk_size: int
    soft_cap: float | None
    smooth: bool


class _Sums(NamedTuple):
    """What is kept of the logits of each example, `(n,)` each."""

    top: jax.Array  # M, the largest logit but the label's
    others: jax.Array  # S = sum of exp(z - M), without the label's
    label: jax.Array  # the label's logit, 0 if the label is none of the columns
    total: jax.Array  # the sum of all logits if it is wanted, else 0


def linear_cross_entropy(
    hidden: ArrayLike,
    kernel: ArrayLike,
    labels: ArrayLike,
    *,
    bias: ArrayLike | None = None,
    chunk_size: int | None = None,
    where: ArrayLike | None = None,
    label_smoothing: ArrayLike = 0.0,
    z_loss: ArrayLike = 0.0,
    soft_cap: float | None = None,
    axis_name: Hashable | None = None,
) -> jax.Array:
    """Cross entropy of the logits `z = hidden @ kernel + bias`, `ln sum_v exp(z_v) - z_y` in nats,
    without holding them.

    Gradients reach `hidden`, `kernel` and `bias` in their dtypes, in reverse mode only. Two
    bfloat16 matrices are multiplied as they are and summed in float32, in the gradient too; others
    are computed in float32, in the precision that `jax_default_matmul_precision` sets, or in
    float64 under x64. Leading axes are cheaper than `jax.vmap`, under which each item of the batch
    has a gradient of the kernel of its own before they are added.

    It is for training, and JAX's alone: NumPy arrays are moved to the device. On the host, with all
    logits held, `cross_entropy(hidden @ kernel, labels)` is the same.

    Args:
        hidden: `(..., n, d)`.
        kernel: `(d, V)`.
        labels: word ids, `(..., n)`; a negative one drops its example: loss and gradient are
            exactly 0. So does one at or beyond V in a JAX array; in a NumPy array, whose values can
            be seen, it raises unless `where` leaves it out.
        bias: `(V,)`; -inf rules a word out, also one beyond a soft cap. (Smoothing gives it
            probability: the loss is inf.)
        chunk_size: words in a block, static; V need not be a multiple. Unless given, about 4
            million logits in a block, but at least 512 words.
        where: bool, `(..., n)`; False drops the example, whatever it holds, NaN included.
        label_smoothing: eps in [0, 1]: `(1 - eps) (ln sum_v exp(z_v) - z_y) + eps (ln sum_v
            exp(z_v) - mean_v z_v)`.
        z_loss: adds `z_loss (ln sum_v exp(z_v))^2`, which keeps the logits from drifting. Chowdhery
            et al. (2022), PaLM, arXiv:2204.02311, section 5.
        soft_cap: c > 0, static; the logits become `c tanh(z / c)`, within [-c, c].
        axis_name: the axis of `jax.shard_map` over which the words are spread: `kernel` and `bias`
            hold this device's columns, `labels` are ids among those of all devices, as is V above.
            (Under `jax.jit` alone a kernel whose V is sharded gives the same result without it, but
            XLA may gather the kernel.)

    Returns:
        The loss of each example, `(..., n)`; float32, or float64 under x64. Logits of +inf, and
        none but -inf, count as in `cross_entropy`, with gradient 0.

    Raises:
        TypeError: labels that are not integers, a `chunk_size` or `soft_cap` that is not a Python
            number.
        ValueError: shapes that do not fit, a `chunk_size` or `soft_cap` that is not positive, a
            NumPy label beyond V.

    >>> hidden, kernel = jnp.eye(2), jnp.asarray([[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
    # Ln 4 and ln(1 + 3 exp(-3)).
    >>> linear_cross_entropy(hidden, kernel, jnp.asarray([0, 0])).round(4)
    Array([1.3863, 0.1392], dtype=float32)
    >>> labels = jnp.asarray([0, -100])
    >>> linear_cross_entropy(hidden, kernel, labels, label_smoothing=0.1, chunk_size=3).round(4)
    Array([1.3863, 0. ], dtype=float32)
    """
    h, k = _as_operand(hidden, "hidden"), _as_operand(kernel, "kernel")
    b = None if bias is None else _as_operand(bias, "bias")
    if h.ndim < 2 or k.ndim != 2 or h.shape[-1] != k.shape[0] or 0 in k.shape:
        raise ValueError(
            f"hidden must be (..., n, d) and kernel (d, V), got hidden {h.shape} and kernel"
            f" {k.shape}."
        )
    if b is not None and b.shape != k.shape[1:]:
        raise ValueError(
            f"bias must have shape (V,) = ({k.shape[1]},) like the columns of kernel, got"
            f" {b.shape}."
        )
    vocabulary = k.shape[1] if axis_name is None else int(lax.psum(k.shape[1], axis_name))
    mask = None if where is None else as_mask(where)
    words = as_array(labels, "labels")
    check_examples(
        {"hidden without d": h.shape[:-1], "labels": words.shape}
        | ({} if mask is None else {"where": mask.shape})
    )
    ids = _as_ids(words, vocabulary, mask)
    smoothing, weight_of_z = (
        as_term(label_smoothing, "label_smoothing"),
        as_term(z_loss, "z_loss", most=math.inf),
    )
    size = None if chunk_size is None else check_size(chunk_size, "chunk_size")
    cap = None if soft_cap is None else _check_cap(soft_cap)
    return _linear_cross_entropy(
        h, k, b, ids, mask, smoothing, weight_of_z, size, cap, axis_name, vocabulary
    )


def _as_operand(x: ArrayLike, name: str) -> jax.Array:
    """In its own dtype, which is that of its gradient; what is no float becomes one."""
    array = as_array(x, name)
    return jnp.asarray(array) if jnp.issubdtype(array.dtype, jnp.floating) else as_real(array, name)


def _as_ids(labels: Array, vocabulary: int, mask: Array | None) -> Array:
    """As int32, -1 for those outside of [0, vocabulary)."""
    if not is_integer(labels):
        raise TypeError(
            f"labels must hold word ids of an integer dtype, got {labels.dtype}. The order is"
            " (hidden, kernel, labels)."
        )
    return valid_ids(class_ids(labels, vocabulary, mask), size=vocabulary)


def _check_cap(soft_cap: float) -> float:
    if isinstance(soft_cap, bool) or not isinstance(
        soft_cap, int | float | np.integer | np.floating
    ):
        raise TypeError(
            "soft_cap must be a Python number, because it is static, or None; got"
            f" {type(soft_cap).__name__}."
        )
    if not 0 < soft_cap < float("inf"):
        raise ValueError(f"soft_cap must be positive and finite (None: no cap), got {soft_cap}.")
    return float(soft_cap)


@promoting
@partial(jax.jit, static_argnames=("chunk_size", "soft_cap", "axis_name", "vocabulary"))
def _linear_cross_entropy(
    hidden: jax.Array,
    kernel: jax.Array,
    bias: jax.Array | None,
    ids: jax.Array,
    mask: jax.Array | None,
    smoothing: jax.Array | None,
    weight_of_z: jax.Array | None,
    chunk_size: int | None,
    soft_cap: float | None,
    axis_name: Hashable | None,
    vocabulary: int,
) -> jax.Array:
    keep = ids >= 0 if mask is None else (ids >= 0) & mask
    shape = jnp.broadcast_shapes(hidden.shape[:-1], keep.shape)
    keep, ids = (jnp.broadcast_to(x, shape).reshape(-1) for x in (keep, ids))
    hidden = jnp.broadcast_to(hidden, (*shape, hidden.shape[-1])).reshape(-1, hidden.shape[-1])
    hidden = jnp.where(keep[:, None], hidden, 0)  # before the products, because 0 NaN = NaN
    size = chunk_size or max(NARROWEST, BLOCK // max(ids.size, 1))
    options = _Options(min(size, kernel.shape[1]), soft_cap, smoothing is not None)
    if axis_name is not None:
        _check_spread(axis_name, hidden, kernel, ids)
    if axis_name is None:
        sums = _sums_of_logits(options, *varying_alike(hidden, kernel, bias, ids))
    else:
        ids = ids - lax.axis_index(axis_name) * kernel.shape[1]
        sums = _joined(
            _sums_of_logits(options, *varying_alike(hidden, kernel, bias, ids)), axis_name
        )
    loss = _loss(sums, keep, smoothing, weight_of_z, vocabulary)
    return loss.reshape(shape)


def _loss(
    sums: _Sums,
    keep: jax.Array,
    smoothing: jax.Array | None,
    weight_of_z: jax.Array | None,
    vocabulary: int,
) -> jax.Array:
    """`ln(1 + S e^(M - z_y))` and its additions; where a logit is +inf, or all are -inf, the limit,
    with gradient 0.
    """
    most = float(np.finfo(sums.top.dtype).max)
    impossible = (sums.label == -jnp.inf) & (sums.others == 0)
    plain = keep & ~impossible & ~((sums.label >= most) | (sums.top >= most))
    top, others, label, total = (
        jnp.where(plain, x, y) for x, y in zip(sums, (0, 1, 0, 0), strict=True)
    )

    ahead = top <= label
    alone = others == 0
    log_others = jnp.where(alone, -jnp.inf, jnp.log(jnp.where(alone, 1, others)))
    close = jnp.log1p(others * jnp.exp(jnp.where(ahead, top - label, 0)))
    loss = jnp.where(ahead, close, jnp.logaddexp(jnp.where(ahead, 0, top - label) + log_others, 0))
    limit = jnp.where(
        impossible, float(np.log(vocabulary)), jnp.where(sums.label < most, jnp.inf, 0)
    )
    both = jnp.logaddexp(label, top + log_others)
    if smoothing is not None:
        loss = scaled(1 - smoothing, loss) + scaled(smoothing, both - total / vocabulary)
        limit = jnp.where((smoothing > 0) & ~impossible, jnp.inf, limit)
    if weight_of_z is not None:
        loss = loss + weight_of_z * both**2
        limit = jnp.where(weight_of_z > 0, jnp.inf, limit)
    return jnp.where(keep, jnp.where(plain, loss, limit), 0)


def _check_spread(
    axis_name: Hashable, hidden: jax.Array, kernel: jax.Array, ids: jax.Array
) -> None:
    """Only the words may differ along the axis; not known under `check_vma=False`."""
    if axis_name not in varying_axes(lax.axis_index(axis_name)):
        return
    if axis_name not in varying_axes(kernel):
        raise ValueError(
            f"axis_name {axis_name!r}: kernel is the same on all devices; its columns should be"
            " spread over them."
        )
    if axis_name in varying_axes(hidden) | varying_axes(ids):
        raise ValueError(
            f"axis_name {axis_name!r}: hidden and labels differ between devices; only kernel and"
            " bias should."
        )


def _joined(sums: _Sums, axis_name: Hashable) -> _Sums:
    """The sums over the columns of all devices."""
    mine = lax.stop_gradient(sums.top)
    top = lax.pmax(mine, axis_name)
    others, label, total = lax.psum(
        (sums.others * jnp.exp(mine - top), sums.label, sums.total), axis_name
    )
    return _Sums(top, others, label, total)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _sums_of_logits(
    options: _Options, hidden: jax.Array, kernel: jax.Array, bias: jax.Array | None, ids: jax.Array
) -> _Sums:
    """The sums of hidden `(n, d)` @ kernel `(d, V)`. M counts as a constant in gradients: no result
    depends on it.
    """

    def step(sums: _Sums, start: _Start, size: int) -> _Sums:
        z, is_label, _, _ = _block(options, hidden, kernel, bias, ids, start, size)
        rest = jnp.where(is_label, -jnp.inf, z)
        top = jnp.maximum(sums.top, rest.max(1))
        others = sums.others * jnp.exp(sums.top - top) + jnp.exp(rest - top[:, None]).sum(1)
        label = sums.label + jnp.where(is_label, z, 0).sum(1)
        return _Sums(top, others, label, sums.total + z.sum(1) if options.smooth else sums.total)

    zeros = jnp.zeros(ids.shape, float_dtype())
    # Not -inf, because -inf - -inf is NaN where the bias rules out a whole block.
    lowest = jnp.full_like(zeros, jnp.finfo(zeros.dtype).min)
    return _over_blocks(
        step, _Sums(lowest, zeros, zeros, zeros), options.chunk_size, kernel.shape[1]
    )


_Residuals = tuple[jax.Array, jax.Array, jax.Array | None, jax.Array, jax.Array]
_Gradients = tuple[jax.Array, jax.Array, jax.Array | None]


def _forward(
    options: _Options, hidden: jax.Array, kernel: jax.Array, bias: jax.Array | None, ids: jax.Array
) -> tuple[_Sums, _Residuals]:
    sums = _sums_of_logits(options, hidden, kernel, bias, ids)
    return sums, (hidden, kernel, bias, ids, sums.top)


def _backward(
    options: _Options, residuals: _Residuals, g: _Sums
) -> tuple[jax.Array, jax.Array, jax.Array | None, None]:
    hidden, kernel, bias, ids, top = residuals
    alive = (g.label != 0) | (g.others != 0) | (g.total != 0)

    def step(gradients: _Gradients, start: _Start, size: int) -> _Gradients:
        of_hidden, of_kernel, of_bias = gradients
        z, is_label, columns, slope = _block(options, hidden, kernel, bias, ids, start, size)
        exp = jnp.exp(jnp.where(is_label, -jnp.inf, z) - top[:, None])
        dz = jnp.where(is_label, g.label[:, None], g.others[:, None] * exp)
        if options.smooth:
            dz = dz + g.total[:, None]
        # Of what is dropped, 0 NaN = 0.
        dz = jnp.where(alive[:, None], dz if slope is None else dz * slope, 0)
        if bias is not None and of_bias is not None:
            of_bias = _write(of_bias, dz.sum(0), bias.dtype, start)
        dz = dz.astype(columns.dtype)
        of_kernel = _write(
            of_kernel, _dot(hidden.astype(columns.dtype), dz, (0, 0)), kernel.dtype, start
        )
        return of_hidden + _dot(dz, columns, (1, 1)), of_kernel, of_bias

    of_bias = None if bias is None else jnp.zeros_like(_bits(bias))
    zeros = jnp.zeros(hidden.shape, float_dtype()), jnp.zeros_like(_bits(kernel)), of_bias
    of_hidden, of_kernel, of_bias = _over_blocks(step, zeros, options.chunk_size, kernel.shape[1])
    if bias is not None and of_bias is not None:
        of_bias = _floats(of_bias, bias.dtype)
    return of_hidden.astype(hidden.dtype), _floats(of_kernel, kernel.dtype), of_bias, None


_sums_of_logits.defvjp(_forward, _backward)


def _over_blocks(step: Callable[[T, _Start, int], T], state: T, size: int, total: int) -> T:
    """Fold `step(state, start, size)` over `total` columns.

    The odd block is the first. It makes the state of the loop out of data: inside `jax.shard_map`,
    zeros that come from nowhere do not differ between devices, and a loop may not change that.
    """
    full = (total - 1) // size
    first = total - full * size
    state = step(state, 0, first)
    if full == 0:
        return state
    return lax.fori_loop(
        0, full, lambda i, state: step(state, jnp.asarray(first + i * size, jnp.int32), size), state
    )


def _block(
    options: _Options,
    hidden: jax.Array,
    kernel: jax.Array,
    bias: jax.Array | None,
    ids: jax.Array,
    start: _Start,
    size: int,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array | None]:
    """The logits of a block of words, `(n, size)`; which are the labels'; the columns of the
    kernel; the slope of a cap.
    """
    columns = _read(kernel, start, size).astype(_product_dtype(hidden, kernel))
    z = _dot(hidden.astype(columns.dtype), columns, (1, 0))
    if bias is not None:
        z = z + _read(bias, start, size).astype(z.dtype)[None]
    slope = None
    if options.soft_cap is not None:
        u = z / options.soft_cap
        e = jnp.exp(-2 * jnp.abs(u))
        z, slope = jnp.where(u == -jnp.inf, u, options.soft_cap * jnp.tanh(u)), 4 * e / (1 + e) ** 2
    z = jnp.minimum(z, jnp.finfo(z.dtype).max)  # of +inf, two would make NaN
    return (
        z,
        (ids - start)[:, None] == lax.broadcasted_iota(jnp.int32, (1, size), 1),
        columns,
        slope,
    )


def _product_dtype(hidden: jax.Array, kernel: jax.Array) -> np.dtype:
    halves = hidden.dtype == kernel.dtype == jnp.bfloat16 and float_dtype() == jnp.float32
    return hidden.dtype if halves else float_dtype()


def _dot(a: jax.Array, b: jax.Array, axes: tuple[int, int]) -> jax.Array:
    """The sum over one axis of each."""
    contracted = ((axes[0],), (axes[1],))
    return lax.dot_general(a, b, (contracted, ((), ())), preferred_element_type=float_dtype())


def _read(x: jax.Array, start: _Start, size: int) -> jax.Array:
    """`x[..., start : start + size]`."""
    return _floats(lax.dynamic_slice_in_dim(_bits(x), start, size, -1), x.dtype)


def _write(bits: jax.Array, x: jax.Array, dtype: np.dtype, start: _Start) -> jax.Array:
    """`x` as the columns from `start` on of an array of `dtype`."""
    return lax.dynamic_update_slice_in_dim(bits, _bits(x.astype(dtype)), start, -1)


def _bits(x: jax.Array) -> jax.Array:
    """Half-precision floats as integers, for slicing: on a CPU, XLA would convert the whole array
    to float32 for each slice.
    """
    return lax.bitcast_convert_type(x, jnp.uint16) if x.dtype.itemsize == 2 else x


def _floats(bits: jax.Array, dtype: np.dtype) -> jax.Array:
    return lax.bitcast_convert_type(bits, dtype) if bits.dtype != dtype else bits
