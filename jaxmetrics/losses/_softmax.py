"""Losses of a softmax and their derivatives, which are accurate even if probabilities are near 0 or
1.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxmetrics._places.namespaces import Array, Arrays, custom_jvp, is_jax, xp

__all__: list[str] = []


@custom_jvp
def neg_log_softmax(z: Array, ids: Array, counts: Array) -> Array:
    """Compute `-ln softmax(z)_y`, or 0 if `counts` is False."""
    z_y = xp.take_along_axis(z, ids[..., None], -1, mode="clip")[..., 0]
    return xp.where(counts, _neg_log_softmax_at(z_y, _row(z), z.shape[-1]), 0)


@neg_log_softmax.defjvp
def _neg_log_softmax_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    """Compute `(softmax(z) - y) dz`.

    The derivative needs no gather (whose transpose would be a slow scatter), and it is finite for
    infinite logits.
    """
    (z, ids, counts), (dz, _, _) = primals, tangents
    slope = _softmax(z, counts) - one_hot(xp.where(counts, ids, -1), z.shape[-1])
    return neg_log_softmax(z, ids, counts), (slope * dz).sum(-1)


@custom_jvp
def log_normalizer(z: Array, counts: Array) -> Array:
    """Compute `ln sum_c exp(z_c)`, or 0 if `counts` is False."""
    row = _row(z)
    return xp.where(counts, row.top + xp.log(row.total), 0)


@log_normalizer.defjvp
def _log_normalizer_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    (z, counts), (dz, _) = primals, tangents
    return log_normalizer(z, counts), (_softmax(z, counts) * dz).sum(-1)


@custom_jvp
def soft_target_loss(z: Array, t: Array, counts: Array) -> Array:
    """Compute `-sum_c t_c ln softmax(z)_c`, or 0 if `counts` is False. Classes with t = 0 add 0."""
    losses = _neg_log_softmax_at(z, _row(z), z.shape[-1])
    return xp.where(counts, xp.where(t == 0, 0, t * losses).sum(-1), 0)


@soft_target_loss.defjvp
def _soft_target_loss_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    """Compute `(softmax(z) sum_c t_c - t) dz - ln softmax(z) dt`, which is finite for infinite
    z.
    """
    (z, t, counts), (dz, dt, _) = primals, tangents
    kept_t = xp.where(counts[..., None], t, 0)
    slope = _softmax(z, counts) * kept_t.sum(-1, keepdims=True) - kept_t
    change = (slope * dz).sum(-1) + (_finite_losses(z, counts) * dt).sum(-1)
    return soft_target_loss(z, t, counts), change


@custom_jvp
def _finite_losses(z: Array, counts: Array) -> Array:
    """Compute `-ln softmax(z)_c` of all classes, the greatest float instead of infinity, or 0 if
    `counts` is False.
    """
    losses = _neg_log_softmax_at(z, _row(z), z.shape[-1])
    return xp.where(counts[..., None], xp.minimum(losses, xp.finfo(z.dtype).max), 0)


@_finite_losses.defjvp
def _finite_losses_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    (z, counts), (dz, _) = primals, tangents
    mean = (_softmax(z, counts) * dz).sum(-1, keepdims=True)
    return _finite_losses(z, counts), xp.where(counts[..., None], mean - dz, 0)


class _Row(NamedTuple):
    """Terms of a softmax that are computed once per row of logits.

    Rows whose greatest logit is infinite are handled by one `where` per row. A branch would make a
    GPU wait, and a `where` per logit would prevent XLA's fast softmax on a CPU.
    """

    greatest: Array
    top: Array  # the greatest logit if it is finite, else 0
    exps: Array  # exp(z - top), (..., K)
    total: Array  # sum of exps


def refuse_torch_gradient(x: object, name: str) -> None:
    """Raise an error for tensors of torch whose gradient would be lost."""
    if getattr(x, "requires_grad", False):
        raise TypeError(
            f"{name} is a tensor of torch that requires a gradient, which cannot pass through"
            f" NumPy. Pass {name}.detach() if you need only the value. To train, use a JAX array."
        )


def _row(z: Array) -> _Row:
    greatest = z.max(-1)
    top = xp.where(xp.isfinite(greatest), greatest, 0)
    exps = xp.exp(z - top[..., None])
    return _Row(greatest, top, exps, exps.sum(-1))


def _neg_log_softmax_at(z: Array, row: _Row, k: int) -> Array:
    """Compute `-ln softmax` of several logits of each row, `(..., C)`, or of one logit, `(...)`.

    If the greatest logit is +inf, the losses of all classes with logit +inf are 0. If the greatest
    logit is -inf, all classes are equally probable.
    """
    greatest, top, total = (
        x if z.ndim == x.ndim else x[..., None] for x in (row.greatest, row.top, row.total)
    )
    limit = xp.where(z == greatest, xp.where(greatest > 0, 0.0, np.log(k)), xp.inf)
    limit = xp.where(xp.isnan(greatest), xp.nan, limit)
    return xp.where(xp.isfinite(greatest), xp.log(total) - (z - top), limit)


@custom_jvp
def _softmax(z: Array, counts: Array) -> Array:
    """Compute the softmax of logits, or 0 if `counts` is False.

    The exponentials are those of the loss, and XLA computes them once, because on a CPU they take
    most of the time.
    """
    row = _row(z)
    greatest, total = row.greatest[..., None], row.total[..., None]
    limit = xp.where(counts, xp.where(row.greatest > 0, 1, 1 / z.shape[-1]), 0)[..., None]
    is_finite = ~xp.isinf(greatest) & counts[..., None]
    return xp.where(is_finite, row.exps * (1 / total), (z == greatest) * limit)


@_softmax.defjvp
def _softmax_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    """Compute `p (dz - sum_c p_c dz_c)`, so that also second derivatives of losses are finite for
    infinite logits, and 0 if `counts` is False.
    """
    (z, counts), (dz, _) = primals, tangents
    p = _softmax(z, counts)
    return p, p * (dz - (p * dz).sum(-1, keepdims=True))


def one_hot(ids: Array, k: int) -> Array:
    # NumPy's arange would be a constant of k numbers in the compiled program; jnp's is not.
    return ids[..., None] == (jnp if is_jax(ids) else np).arange(k, dtype=np.int32)
