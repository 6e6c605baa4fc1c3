"""Logits of a large vocabulary in blocks: sums over the logits, losses and gradients.

Only two numbers per example are stored: M, the greatest logit except the label's logit `z_y`, and
`S = sum_{v != y} exp(z_v - M)`. With `t = M - z_y + ln S` the loss is `ln(1 + e^t)`, and its
derivative with respect to `z_y` is `-sigmoid(t)`. Neither formula is a difference of two large
results, so that a loss of 1e-9 is accurate even if logits are 1e4. To combine the sums S of several
blocks or devices, each S is first converted to a common M. Source: Milakov and Gimelshein (2018),
Online normalizer calculation for softmax, arXiv:1805.02867, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._places.compilation import promoting
from jaxmetrics._places.meshes import varying_alike, varying_axes
from jaxmetrics._places.namespaces import Array, Arrays, float_dtype
from jaxmetrics.losses.per_example import scaled

__all__: list[str] = []

T = TypeVar("T")

# Default size of a block: number of logits, and the least number of words. On a CPU, longer blocks
# do not fit in the cache, and narrower products are slow. On an accelerator, long blocks take a
# fifth of the time, because each block reads and writes the gradient of `hidden` once.
BLOCKS = {"cpu": 2**22, "default": 2**27}
NARROWEST = 512

# Blocks of all words of some examples. Each of them reads and writes the gradient of `kernel`, so
# they have twice as many logits. On a CPU, half as many examples take 7 % longer, and twice as many
# need more memory.
SHORTEST = 256

_Start = Array | int


class Options(NamedTuple):
    """Static options of both functions."""

    chunk_size: int  # words or examples per block, 0 for the best size on this platform
    soft_cap: float | None
    smooth: bool  # whether the sum of all logits is needed
    entropy: bool  # whether entropies are needed
    axis_name: Hashable | None
    vocabulary: int  # V, on all devices


class Operands(NamedTuple):
    """The arrays from which logits are computed, and the labels as indices of columns of the
    kernel. The class is also used for the gradients with respect to these arrays.
    """

    hidden: Array  # (n, d)
    kernel: Array  # (d, V)
    bias: Array | None  # (V,)
    ids: Any = None  # (n,), not differentiated


class _LogitSums(NamedTuple):
    """Sums over the logits of each example; all arrays have shape `(n,)`."""

    top: Array  # M, the greatest logit except the label's
    others: Array  # S = sum of exp(z - M), except the label's
    label: Array  # the label's logit, 0 if the label is not among the columns
    total: Array  # the sum of all logits if it is needed, else 0
    moment: Array  # sum of (z - M) exp(z - M), except the label's, if it is needed, else 0


class Coefficients(NamedTuple):
    """Coefficients of terms of the loss, or None for terms that are not computed."""

    smoothing: Array | None
    weight_of_z: Array | None


@promoting
@partial(jax.jit, static_argnums=0)
def losses_in_blocks(
    options: Options, operands: Operands, mask: Array | None, terms: Coefficients
) -> Array:
    operands, keep, shape = _flat(options, operands, mask)
    sums = _joined(options, _sums_of_logits(options, operands))
    losses = _loss(options, sums, keep, terms).reshape(shape)
    return (losses, _entropy(options, sums, keep).reshape(shape)) if options.entropy else losses


@promoting
@partial(jax.jit, static_argnums=0)
def weighted_sums(
    options: Options,
    operands: Operands,
    mask: Array | None,
    terms: Coefficients,
    weights: Array | None,
) -> tuple[Array, Array]:
    w = jnp.ones((), float_dtype()) if weights is None else weights.astype(float_dtype())
    # NaN is an invalid weight.
    mask = w != 0 if mask is None else mask & (w != 0)
    operands, keep, shape = _flat(options, operands, mask)
    w = jnp.where(keep, jnp.broadcast_to(w, shape).reshape(-1), 0)
    # Their gradients may vary between devices as examples do.
    w, keep, *varying_terms = varying_alike(w, keep, *terms)
    return _weighted_sum(options, operands, keep, w, Coefficients(*varying_terms)), w.sum()


def _flat(
    options: Options, operands: Operands, mask: Array | None
) -> tuple[Operands, Array, tuple[int, ...]]:
    """Flatten the axes of examples. Return operands, a mask of the examples that count, and the
    shape of the examples.
    """
    hidden, kernel, bias, ids = operands
    keep = ids >= 0 if mask is None else (ids >= 0) & mask
    shape = jnp.broadcast_shapes(hidden.shape[:-1], keep.shape)
    keep, ids = (jnp.broadcast_to(x, shape).reshape(-1) for x in (keep, ids))
    hidden = jnp.broadcast_to(hidden, (*shape, hidden.shape[-1])).reshape(-1, hidden.shape[-1])
    # Masked before the matrix products, because 0 times NaN is NaN.
    hidden = jnp.where(keep[:, None], hidden, 0)
    axis_name = options.axis_name
    if axis_name is not None:
        _check_spread(axis_name, hidden, kernel, ids)
        # Relative to the first column of this device.
        ids = ids - lax.axis_index(axis_name) * kernel.shape[1]
    return Operands(*varying_alike(hidden, kernel, bias, ids)), keep, shape


def _loss(options: Options, sums: _LogitSums, keep: Array, terms: Coefficients) -> Array:
    """Compute the loss `ln(1 + S e^(M - z_y))` from the sums, and add label smoothing and z-loss.

    If a logit is +inf or all logits are -inf, the loss is a limit and its gradient is 0.
    """
    largest = jnp.finfo(sums.top.dtype).max  # replaces +inf
    all_ruled_out = (sums.label == -jnp.inf) & (sums.others == 0)
    finite = keep & ~(all_ruled_out | (sums.label >= largest) | (sums.top >= largest))
    top, others, label, total, _ = _where(finite, sums)

    alone = others == 0  # all other words are impossible
    log_others = jnp.where(alone, -jnp.inf, jnp.log(jnp.where(alone, 1, others)))
    loss = _plain_loss(top - label, others, log_others)
    limit_of_infinite = jnp.where(sums.label < largest, jnp.inf, 0)
    limit = jnp.where(all_ruled_out, math.log(options.vocabulary), limit_of_infinite)

    smoothing, weight_of_z = terms
    log_normalizer = jnp.logaddexp(label, top + log_others)  # ln sum_v exp(z_v)
    if smoothing is not None:
        smooth_loss = log_normalizer - total / options.vocabulary
        loss = scaled(1 - smoothing, loss) + scaled(smoothing, smooth_loss)
        limit = jnp.where((smoothing > 0) & ~all_ruled_out, jnp.inf, limit)
    if weight_of_z is not None:
        loss = loss + weight_of_z * log_normalizer**2
        limit = jnp.where(weight_of_z > 0, jnp.inf, limit)
    return jnp.where(keep, jnp.where(finite, loss, limit), 0)


def _entropy(options: Options, sums: _LogitSums, keep: Array) -> Array:
    """Compute the entropy `H(q) + q H_o` in nats. q is the probability of all words except the
    label, and `H_o = ln S - U / S` is the entropy of these words, with U = `sums.moment`.
    """
    top, others, label, _, moment = _where(keep, sums)
    alone = others == 0
    others = jnp.where(alone, 1, others)
    # exp(-1000) is 0, but a product with 1000 is finite.
    log_odds = jnp.where(alone, -1000, jnp.clip(top - label + jnp.log(others), -1000, 1000))
    size = jnp.abs(log_odds)
    of_label = jnp.log1p(jnp.exp(-size)) + size * jax.nn.sigmoid(-size)
    found = of_label + jax.nn.sigmoid(log_odds) * (jnp.log(others) - moment / others)
    found = jnp.where(alone & (label == -jnp.inf), math.log(options.vocabulary), found)
    return jnp.where(keep, found, 0)


def _where(keep: Array, sums: _LogitSums) -> _LogitSums:
    """Replace sums by finite constants, so that the original sums do not affect gradients."""
    constants = _LogitSums(top=0, others=1, label=0, total=0, moment=0)
    return jax.tree.map(partial(jnp.where, keep), sums, constants)


def _plain_loss(difference: Array, others: Array, log_others: Array) -> Array:
    """Compute `ln(1 + S e^d)` for d = M - z_y by one of two equal formulas, so that e^d <= 1.

    If the label's logit is the greatest, the formula is log1p, which is accurate for small losses.
    """
    label_on_top = difference <= 0
    small_loss = jnp.log1p(others * jnp.exp(jnp.where(label_on_top, difference, 0)))
    large_loss = jnp.logaddexp(jnp.where(label_on_top, 0, difference) + log_others, 0)
    return jnp.where(label_on_top, small_loss, large_loss)


def _check_spread(axis_name: Hashable, hidden: Array, kernel: Array, ids: Array) -> None:
    """Check that only words are sharded over the axis. With `check_vma=False` this cannot be
    checked.
    """
    if axis_name not in varying_axes(lax.axis_index(axis_name)):
        return
    if axis_name not in varying_axes(kernel):
        raise ValueError(
            f"If axis_name is {axis_name!r}, the columns of kernel must be sharded over the"
            " devices, but kernel is the same on all devices. Shard kernel, or leave out"
            " axis_name."
        )
    if axis_name in varying_axes(hidden) | varying_axes(ids):
        raise ValueError(
            f"If axis_name is {axis_name!r}, hidden and labels must be the same on all devices,"
            " but they differ between devices."
        )


def _joined(options: Options, sums: _LogitSums) -> _LogitSums:
    """Combine the sums of all devices, each of which has some of the columns of the kernel."""
    if options.axis_name is None:
        return sums
    top = lax.pmax(lax.stop_gradient(sums.top), options.axis_name)
    _, *others = _relative_to(top, sums)
    return _LogitSums(top, *lax.psum(others, options.axis_name))


def _relative_to(top: Array, sums: _LogitSums) -> _LogitSums:
    """Return the same sums for another M."""
    shift = lax.stop_gradient(sums.top) - top
    decay = jnp.exp(shift)
    moment = decay * (sums.moment + jnp.where(decay == 0, 0, shift) * sums.others)
    return sums._replace(top=top, others=decay * sums.others, moment=moment)


def _times_log(x: Array, log: Array) -> Array:
    """Multiply x by a number that is finite unless x is 0."""
    return x * jnp.where(x == 0, 0, log)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _sums_of_logits(options: Options, operands: Operands) -> _LogitSums:
    """Compute the sums over logits. M is not differentiated, because no result depends on it."""

    def step(sums: _LogitSums, start: _Start, size: int) -> _LogitSums:
        z, is_label, _, _ = _block(options, operands, start, size)
        z_others = jnp.where(is_label, -jnp.inf, z)
        top = jnp.maximum(sums.top, z_others.max(1))
        _, others, label, total, moment = _relative_to(top, sums)
        log = z_others - top[:, None]
        exps = jnp.exp(log)
        if options.smooth:
            total = total + z.sum(1)
        if options.entropy:
            moment = moment + _times_log(exps, log).sum(1)
        label = label + jnp.where(is_label, z, 0).sum(1)
        return _LogitSums(top, others + exps.sum(1), label, total, moment)

    zeros = jnp.zeros(operands.hidden.shape[:1], float_dtype())
    # Finite, because -inf - (-inf) would be NaN if the bias is -inf for a whole block.
    lowest = jnp.full_like(zeros, jnp.finfo(zeros.dtype).min)
    return _over_blocks(options, step, _LogitSums(lowest, *[zeros] * 4), operands)


def _forward(options: Options, operands: Operands) -> Any:
    sums = _sums_of_logits(options, operands)
    return sums, (operands, sums.top)


def _backward(
    options: Options, residuals: tuple[Operands, Array], g: _LogitSums
) -> tuple[Operands]:
    """Compute the gradients with respect to the operands from `g`, the gradients with respect to
    the sums.

    For each block let `dz` be the gradient with respect to its logits. The gradient of `hidden` is
    the sum of `dz @ columns.T` over all blocks. The gradients of `kernel` and `bias` are written
    block by block.
    """
    operands, top = residuals
    hidden, *of_columns = operands[:3]
    has_gradient = (g.label != 0) | (g.others != 0) | (g.total != 0) | (g.moment != 0)

    def step(gradients: Any, start: _Start, size: int) -> Any:
        d_hidden, written = gradients
        z, is_label, columns, slope = _block(options, operands, start, size)
        dz = _gradient_of_logits(options, z, is_label, slope, top, g)
        # 0 for ignored examples, even if their gradients are NaN.
        dz = jnp.where(has_gradient[:, None], dz, 0)
        d_bias = None if operands.bias is None else dz.sum(0)
        dz = dz.astype(columns.dtype)
        d_kernel = _dot(hidden.astype(columns.dtype), dz, (0, 0))

        def write(bits: Array, x: Array, like: Array) -> Array:
            x = _bits(x.astype(like.dtype))
            return lax.dynamic_update_slice_in_dim(bits, x, start, -1)

        written = jax.tree.map(write, written, [d_kernel, d_bias], of_columns)
        return d_hidden + _dot(dz, columns, (1, 1)), written

    zeros = jax.tree.map(lambda x: jnp.zeros_like(_bits(x)), of_columns)
    start = jnp.zeros(hidden.shape, float_dtype()), zeros
    d_hidden, written = _over_blocks(options, step, start, operands)
    d_columns = jax.tree.map(lambda x, like: _floats(x, like.dtype), written, of_columns)
    return (Operands(d_hidden.astype(hidden.dtype), *d_columns),)


def _gradient_of_logits(
    options: Options, z: Array, is_label: Array, slope: Array, top: Array, g: _LogitSums
) -> Array:
    log = jnp.where(is_label, -jnp.inf, z) - top[:, None]
    exp = jnp.exp(log)
    dz = jnp.where(is_label, g.label[:, None], g.others[:, None] * exp)
    dz = dz + g.total[:, None] if options.smooth else dz
    dz = dz + g.moment[:, None] * _times_log(exp, 1 + log) if options.entropy else dz
    return dz if slope is None else dz * slope


_sums_of_logits.defvjp(_forward, _backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _weighted_sum(
    options: Options, operands: Operands, keep: Array, weights: Array, terms: Coefficients
) -> Array:
    """Compute `sum_i w_i l_i`, and its gradients in the forward pass."""
    return _with_gradients(options, operands, keep, weights, terms)[0]


def _with_gradients(
    options: Options, operands: Operands, keep: Array, weights: Array, terms: Coefficients
) -> Any:
    """Compute the sum and its gradients in blocks of examples.

    Each block computes its logits twice, in `_sums_of_logits` and in the gradient of this function.
    XLA computes equal terms only once.
    """
    of_columns: Any = operands[1:3]
    n, num_words = len(weights), operands.kernel.shape[1]
    at_once = options._replace(chunk_size=num_words)

    def step(gradients: Any, block: Any) -> Any:
        hidden, ids, keep, weights = block

        def loss(of_rows: list[Any], of_columns: Any) -> Array:
            (hidden, weights, terms), (kernel, bias) = of_rows, of_columns
            sums = _sums_of_logits(at_once, Operands(hidden, kernel, bias, ids))
            return (weights * _loss(options, _joined(options, sums), keep, terms)).sum()

        found, (of_rows, more) = jax.value_and_grad(loss, (0, 1))(
            [hidden, weights, terms], of_columns
        )
        more = jax.tree.map(lambda x, y: x + y.astype(x.dtype), gradients, more)
        return more, (found, *of_rows)

    def in_blocks(num_logits: int, *examples: Array) -> Any:
        size = options.chunk_size or max(SHORTEST, num_logits // num_words)
        num_blocks = max(-(-n // size), 1)
        padding = -n % num_blocks

        # Every num_blocks-th example is in the same block, so that sharded examples stay where
        # they are.
        def cut(x: Array) -> Array:
            x = jnp.pad(x, [(0, padding), *[(0, 0)] * (x.ndim - 1)])
            return x.reshape(-1, num_blocks, *x.shape[1:]).swapaxes(0, 1)

        def joined(x: Array) -> Array:
            return x.swapaxes(0, 1).reshape(-1, *x.shape[2:])[:n]

        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, float_dtype()), of_columns)
        zeros = varying_alike(examples[0], *zeros)[1:]
        d_columns, (losses, d_hidden, d_weights, d_terms) = lax.scan(
            step, zeros, tuple(map(cut, examples))
        )
        d_columns = jax.tree.map(lambda x, like: x.astype(like.dtype), d_columns, of_columns)
        gradients = Operands(joined(d_hidden), *d_columns), joined(d_weights)
        return losses.sum(), gradients, jax.tree.map(lambda x: x.sum(0), d_terms)

    examples = operands.hidden, operands.ids, keep, weights
    if options.chunk_size:
        found, gradients, of_terms = in_blocks(0, *examples)
    else:
        programs = {name: partial(in_blocks, 2 * size) for name, size in BLOCKS.items()}
        found, gradients, of_terms = lax.platform_dependent(*examples, **programs)
    return found, (*gradients, of_terms)


def _times_gradients(options: Options, residuals: Any, g: Array) -> Any:
    operands, weights, terms = jax.tree.map(
        lambda x: (g * x.astype(g.dtype)).astype(x.dtype), residuals
    )
    return operands, None, weights, terms


_weighted_sum.defvjp(_with_gradients, _times_gradients)


def _over_blocks(
    options: Options, step: Callable[[T, _Start, int], T], state: T, operands: Operands
) -> T:
    """Apply `step(state, start, size)` to all blocks of columns one after another; the block size
    depends on the platform.

    If the number of columns is not a multiple of the size, the first block is smaller. The first
    block is computed before the loop, because the initial values of a loop inside `jax.shard_map`
    must vary between devices, which constant zeros do not.
    """
    n, total = len(operands.hidden), operands.kernel.shape[1]

    def fold(num_logits: int, state: T) -> T:
        size = options.chunk_size or max(NARROWEST, num_logits // max(n, 1))
        full = (total - 1) // size
        first = total - full * size
        state = step(state, 0, first)

        def next_block(i: _Start, state: T) -> T:
            return step(state, jnp.asarray(first + i * size, jnp.int32), size)

        return lax.fori_loop(0, full, next_block, state) if full else state

    folds = {platform: partial(fold, num_logits) for platform, num_logits in BLOCKS.items()}
    if options.chunk_size or total <= NARROWEST:
        return folds["cpu"](state)
    return lax.platform_dependent(state, **folds)


def _block(options: Options, operands: Operands, start: _Start, size: int) -> Arrays:
    """Return the logits of all examples for some columns of the kernel, a mask of the labels, the
    columns `(d, size)`, and the derivative of the soft cap, or None without a cap.
    """
    hidden, kernel, bias, ids = operands
    halves = hidden.dtype == kernel.dtype == jnp.bfloat16 and float_dtype() == jnp.float32
    columns = _read(kernel, start, size).astype(hidden.dtype if halves else float_dtype())
    z = _dot(hidden.astype(columns.dtype), columns, (1, 0))
    if bias is not None:
        z = z + _read(bias, start, size).astype(z.dtype)[None]
    slope = None
    if options.soft_cap is not None:
        u = z / options.soft_cap
        e = jnp.exp(-2 * jnp.abs(u))
        slope = 4 * e / (1 + e) ** 2  # equals 1 - tanh^2, but does not cancel
        z = jnp.where(u == -jnp.inf, u, options.soft_cap * jnp.tanh(u))
    z = jnp.minimum(z, jnp.finfo(z.dtype).max)  # replaces +inf, because inf - inf would be NaN
    is_label = (ids - start)[:, None] == lax.broadcasted_iota(jnp.int32, (1, size), 1)
    return z, is_label, columns, slope


def _dot(a: Array, b: Array, axes: tuple[int, int]) -> Array:
    """Multiply two matrices: sum over one axis of each matrix."""
    contracted = ((axes[0],), (axes[1],))
    return lax.dot_general(a, b, (contracted, ((), ())), preferred_element_type=float_dtype())


def _read(x: Array, start: _Start, size: int) -> Array:
    """Return `x[..., start : start + size]`."""
    return _floats(lax.dynamic_slice_in_dim(_bits(x), start, size, -1), x.dtype)


def _bits(x: Array) -> Array:
    """Return the bits of half-precision floats as integers, for slicing.

    Otherwise XLA would convert the whole array to float32 for each slice on a CPU.
    """
    return lax.bitcast_convert_type(x, jnp.uint16) if x.dtype.itemsize == 2 else x


def _floats(bits: Array, dtype: np.dtype) -> Array:
    return lax.bitcast_convert_type(bits, dtype) if bits.dtype != dtype else bits
