"""Losses of each example, unreduced: logits first, in float32 or better whatever their dtype.

`logits` `(..., K)` have the classes last, `labels` `(...)` are class ids. The last axis of examples has one length everywhere,
leading axes broadcast. A label outside of [0, K),
and `where=False`, makes the loss and its gradient exactly 0, whatever the logits hold. An infinite logit is a limit: -inf rules
a class out, +inf makes it certain, and where all are -inf they are equally probable; the loss may then be infinite, its
gradient in the logits never is, nor NaN. NaN logits make the loss NaN. `class_weights` `(K,)` multiply the loss of each example
by the weight of its class; a weight of 0 leaves it out. In float32, losses of several classes have an absolute error of 1e-7.

Labels of another dtype than integer or bool (but for distributions, where they are announced) raise TypeError; shapes that do
not go together ValueError.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arrays import (
    ArrayLike,
    as_class_ids,
    as_float,
    as_host_or_jax,
    as_mask,
    divide,
    is_integer,
    promoting,
    valid_ids,
)

__all__ = [
    "binary_cross_entropy",
    "cross_entropy",
    "focal_loss",
    "hinge_loss",
    "multiclass_hinge_loss",
    "nll",
    "soft_cross_entropy",
    "weighted_mean",
]


def cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    class_weights: ArrayLike | None = None,
    label_smoothing: ArrayLike = 0.0,
) -> jax.Array:
    """`-ln softmax(z)_y` in nats, >= 0.

    With smoothing s the label has probability 1 - s, and each class s / K more: `(1 - s) w_y l_y + s / K sum_c w_c l_c`, where
    l_c is the loss of class c and w_c its weight. Szegedy et al. (2016), CVPR, section 7.

    Args:
        logits: `(..., K)`.
        labels: class ids, `(...)`.
        where: bool, `(...)`.
        class_weights: `(K,)`.
        label_smoothing: in [0, 1].

    Returns:
        `(...)`.

    >>> cross_entropy([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]], [0, 2, -1]).round(4)
    Array([0.2395, 1.0986, 0.    ], dtype=float32)
    >>> cross_entropy([[2.0, 0.0, 0.0]], [0], label_smoothing=0.3).round(4)
    Array([0.6395], dtype=float32)
    """
    z, ids, counts = _of_classes(logits, labels, where)
    weights = _class_weights(class_weights, z.shape[-1])
    return _cross_entropy(z, ids, counts, weights, as_term(label_smoothing, "label_smoothing"))


@promoting
@jax.jit
def _cross_entropy(
    z: jax.Array, ids: jax.Array, counts: jax.Array, weights: jax.Array | None, smoothing: jax.Array | None
) -> jax.Array:
    loss = _weighted(_surprise(z, jnp.maximum(ids, 0), counts), ids, counts, weights)
    if smoothing is not None:
        share = jnp.broadcast_to((1.0 if weights is None else weights) / z.shape[-1], z.shape)
        loss = scaled(1 - smoothing, loss) + scaled(smoothing, _expected_surprise(z, share, counts))
    return loss


def as_term(coefficient: ArrayLike, name: str, most: float = 1) -> jax.Array | None:
    """One number, in [0, `most`] where that is known now; None for a 0 known now, whose term is then not computed."""
    number = as_float(coefficient, name)
    if number.ndim:
        raise ValueError(f"{name} must be one number, got an array of shape {number.shape}.")
    if isinstance(coefficient, int | float | np.number):
        if not 0 <= coefficient <= most:
            raise ValueError(f"{name} must be {'in [0, 1]' if most == 1 else '>= 0'}, got {coefficient}.")
        return None if coefficient == 0 else number
    return number


def scaled(coefficient: jax.Array, loss: jax.Array) -> jax.Array:
    """Their product, 0 if the coefficient is, also of an infinite loss."""
    return coefficient * jnp.where((coefficient == 0) & jnp.isinf(loss), 0, loss)


@promoting
def _weighted(loss: jax.Array, ids: jax.Array, counts: jax.Array, weights: jax.Array | None) -> jax.Array:
    return loss if weights is None else scaled(jnp.where(counts, weights[jnp.maximum(ids, 0)], 0), loss)


def soft_cross_entropy(logits: ArrayLike, target_probs: ArrayLike, *, where: ArrayLike | None = None) -> jax.Array:
    """`-sum_c t_c ln softmax(z)_c` in nats: cross-entropy with a distribution t instead of a label.

    Args:
        logits: `(..., K)`.
        target_probs: `(..., K)`, >= 0; taken as they stand, not normalised.
        where: bool, `(...)`.

    Returns:
        `(...)`.

    >>> soft_cross_entropy([[2.0, 0.0, 0.0]], [[0.8, 0.1, 0.1]]).round(4)
    Array([0.6395], dtype=float32)
    """
    z, t = as_float(logits, "logits"), as_float(target_probs, "target_probs")
    if z.ndim == 0 or t.ndim == 0 or z.shape[-1] != t.shape[-1]:
        raise ValueError(f"logits and target_probs must have shape (..., K) with the same K, got {z.shape} and {t.shape}.")
    counts = _mask(where, _batch("logits", z.shape[:-1], "target_probs", t.shape[:-1]))
    return _soft_cross_entropy(z, t, counts)


@promoting
@jax.jit
def _soft_cross_entropy(z: jax.Array, t: jax.Array, counts: jax.Array) -> jax.Array:
    return _expected_surprise(z, t, counts)


def nll(probs: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None) -> jax.Array:
    """`-sum_c y_c ln p_c`, the textbook form of cross-entropy, from probabilities; `cross_entropy` of logits is more accurate.

    Args:
        probs: `(..., K)`; taken as they stand, neither normalised nor clipped.
        labels: class ids `(...)`, or a distribution y, one-hot for instance, with as many axes as `probs`, `(..., K)`.
        where: bool, `(...)`.

    Returns:
        `(...)`, in nats; inf where p = 0 at a class with y > 0, with gradient -inf there. A class with y = 0 adds 0, and its
        gradient is 0, at p = 0 too.

    >>> nll([[0.5, 0.25, 0.25], [0.1, 0.0, 0.9]], [0, 2]).round(4)
    Array([0.6931, 0.1054], dtype=float32)
    >>> nll([[0.5, 0.25, 0.25]], [[0.0, 0.5, 0.5]]).round(4)
    Array([1.3863], dtype=float32)
    """
    p, given = as_float(probs, "probs"), as_host_or_jax(labels)
    if p.ndim == 0:
        raise ValueError(f"probs must have shape (..., K), got {p.shape}.")
    if given.ndim == p.ndim:
        y = as_float(given, "labels")
        if y.shape[-1] != p.shape[-1]:
            raise ValueError(f"labels must be class ids, or of shape (..., K) like probs {p.shape}, got {y.shape}.")
        counts = _mask(where, _batch("probs", p.shape[:-1], "labels", y.shape[:-1]))
        return _nll(p, y, counts)
    p, ids, counts = _of_classes(probs, labels, where, name="probs")
    return _nll(p, ids, counts)


@promoting
@jax.jit
def _nll(p: jax.Array, labels: jax.Array, counts: jax.Array) -> jax.Array:
    y = _one_hot(labels, p.shape[-1]).astype(p.dtype) if is_integer(labels) else labels
    asked = (y != 0) & counts[..., None]
    return jnp.where(asked, -y * jnp.log(jnp.where(asked, p, 1)), 0).sum(-1)


def binary_cross_entropy(
    logits: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None, class_weights: ArrayLike | None = None
) -> jax.Array:
    """`-y ln sigmoid(z) - (1 - y) ln sigmoid(-z)` in nats, for one event or each of several labels.

    Args:
        logits: `(...)`.
        labels: `(...)`, integers 0 and 1 (any other drops the example), or floats: the probability y of the event
            (NaN for one outside of [0, 1]).
        where: bool, `(...)`.
        class_weights: `(2,)`, of y = 0 and y = 1.

    Returns:
        `(...)`.

    >>> binary_cross_entropy([0.0, 2.0, -2.0], [1, 1, 1]).round(4)
    Array([0.6931, 0.1269, 2.1269], dtype=float32)
    """
    z, given = as_float(logits, "logits"), as_host_or_jax(labels)
    ids = as_class_ids(given, "labels", 2) if is_integer(given) else given
    y = as_float(ids, "labels")
    shape = _batch("logits", z.shape, "labels", y.shape)
    counts = _mask(where, shape)
    if is_integer(given):
        counts = counts & jnp.broadcast_to((y == 0) | (y == 1), shape)
    weights = _class_weights(class_weights, 2)
    return _binary_cross_entropy(z, y, counts, jnp.ones(2, z.dtype) if weights is None else weights)


@promoting
@jax.jit
def _binary_cross_entropy(z: jax.Array, y: jax.Array, counts: jax.Array, weights: jax.Array) -> jax.Array:
    y = jnp.where(counts, jnp.where((y >= 0) & (y <= 1), y, jnp.nan), 0)
    return jnp.where(counts, _two_sided(jnp.where(counts, z, 0), weights[0] * (1 - y), weights[1] * y), 0)


@jax.custom_jvp
def _two_sided(z: jax.Array, negative: jax.Array, positive: jax.Array) -> jax.Array:
    return scaled(negative, jax.nn.softplus(z)) + scaled(positive, jax.nn.softplus(-z))


@_two_sided.defjvp
def _two_sided_jvp(
    primals: tuple[jax.Array, jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (z, negative, positive), (dz, d_negative, d_positive) = primals, tangents
    slope = negative * jax.nn.sigmoid(z) - positive * jax.nn.sigmoid(-z)
    finite = jnp.clip(z, -jnp.finfo(z.dtype).max, jnp.finfo(z.dtype).max)
    of_weights = jax.nn.softplus(finite) * d_negative + jax.nn.softplus(-finite) * d_positive
    return _two_sided(z, negative, positive), slope * dz + of_weights


def focal_loss(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    gamma: float = 2.0,
    where: ArrayLike | None = None,
    class_weights: ArrayLike | None = None,
) -> jax.Array:
    """`-(1 - p_y)^gamma ln p_y`, p = softmax(z): cross-entropy that easy examples weigh little in. Lin et al. (2017), ICCV.

    The alpha of that paper is `class_weights=[1 - alpha, alpha]`. For one event with logit z, `logits` are [0, z].

    Args:
        logits: `(..., K)`.
        labels: class ids, `(...)`.
        gamma: static, >= 0; 0 is cross-entropy.
        where: bool, `(...)`.
        class_weights: `(K,)`.

    Returns:
        `(...)`, in nats.

    >>> focal_loss([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0, 2]).round(4)
    Array([0.0109, 0.4883], dtype=float32)
    """
    if not (isinstance(gamma, int | float | np.number) and 0 <= gamma < np.inf):
        raise ValueError(f"gamma must be a finite Python number >= 0, because it is static, got {gamma!r}.")
    z, ids, counts = _of_classes(logits, labels, where)
    loss = cross_entropy(z, ids, where=counts)
    loss = loss if gamma == 0 else _focused(loss, float(gamma))
    return _weighted(loss, ids, counts, _class_weights(class_weights, z.shape[-1]))


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _focused(surprise: jax.Array, gamma: float) -> jax.Array:
    return jnp.where(surprise == 0, 0, _share_wrong(surprise) ** gamma * surprise)


@_focused.defjvp
def _focused_jvp(gamma: float, primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """d/dl of (1 - e^-l)^gamma l, whose limits are 0 at l = 0 and 1 at infinity."""
    (surprise,), (change,) = primals, tangents
    inside = (surprise > 0) & (surprise < jnp.inf)
    finite = jnp.where(inside | jnp.isnan(surprise), surprise, 1)
    wrong = _share_wrong(finite)
    slope = wrong**gamma + gamma * wrong ** (gamma - 1) * jnp.exp(-finite) * finite
    slope = jnp.where(inside | jnp.isnan(surprise), slope, jnp.where(surprise > 0, 1, 0))
    return _focused(surprise, gamma), slope * change


def _share_wrong(surprise: jax.Array) -> jax.Array:
    """`1 - p_y`."""
    return -jnp.expm1(-surprise)


def hinge_loss(logits: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None) -> jax.Array:
    """`max(0, 1 - (2 y - 1) z)` for a score z of one event.

    Args:
        logits: `(...)`, real scores.
        labels: 0 or 1 (or bool), `(...)`; any other drops the example.
        where: bool, `(...)`.

    Returns:
        `(...)`, >= 0.

    >>> hinge_loss([2.0, 0.5, 0.5], [1, 1, 0])
    Array([0. , 0.5, 1.5], dtype=float32)
    """
    z = as_float(logits, "logits")
    ids = jnp.asarray(as_class_ids(labels, "labels", 2))
    shape = _batch("logits", z.shape, "labels", ids.shape)
    return _hinge_loss(z, ids, _mask(where, shape))


@promoting
@jax.jit
def _hinge_loss(z: jax.Array, ids: jax.Array, counts: jax.Array) -> jax.Array:
    counts = counts & ((ids == 0) | (ids == 1))
    margin = jnp.where(counts, jnp.where(ids == 1, z, -z), 1)
    return jnp.maximum(1 - margin, 0)


def multiclass_hinge_loss(logits: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None) -> jax.Array:
    """`max(0, 1 + max_{c != y} z_c - z_y)`. Crammer and Singer (2001), Journal of Machine Learning Research 2.

    Args:
        logits: `(..., K)`, real scores.
        labels: class ids, `(...)`.
        where: bool, `(...)`.

    Returns:
        `(...)`, >= 0; 0 if K = 1.

    >>> multiclass_hinge_loss([[2.0, 0.5, 0.0], [2.0, 1.5, 0.0]], [0, 1])
    Array([0. , 1.5], dtype=float32)
    """
    return _multiclass_hinge_loss(*_of_classes(logits, labels, where))


@promoting
@jax.jit
def _multiclass_hinge_loss(z: jax.Array, ids: jax.Array, counts: jax.Array) -> jax.Array:
    if z.shape[-1] == 1:
        return jnp.zeros(counts.shape, z.dtype)
    z = jnp.where(counts[..., None], z, 0)
    own = _one_hot(ids, z.shape[-1])
    other = jnp.where(own, -jnp.inf, z).max(-1)
    mine = jnp.where(own, z, 0).sum(-1)
    same = (other == mine) & jnp.isinf(mine)  # whose difference would be NaN
    behind = jnp.where(same, 0, jnp.where(same, 0, other) - jnp.where(same, 0, mine))
    return jnp.where(counts, jnp.maximum(1 + behind, 0), 0)


def weighted_mean(
    values: ArrayLike,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    axis: int | tuple[int, ...] | None = None,
    parts: bool = False,
) -> jax.Array | tuple[jax.Array, jax.Array]:
    """`sum w l / sum w`: the mean by which losses are reduced, which a mean of products is not.

    Over devices, hosts or accumulated batches, the means of parts are not to be averaged: ask for the parts, sum each of the
    two, and divide.

    Args:
        values: `(...)`, losses of examples.
        sample_weight: `(...)`; 0 leaves the value out, whatever it is.
        where: bool, `(...)`; false leaves the value out.
        axis: of the sum; all of them, if not given.
        parts: return the pair `(sum w l, sum w)`.

    Returns:
        The mean, and 0 (with gradient 0) where nothing counts; or the pair.

    Raises:
        ValueError: shapes that do not broadcast.

    >>> weighted_mean(jnp.array([1.0, 2.0, jnp.nan]), where=[True, True, False])
    Array(1.5, dtype=float32)
    >>> weighted_mean(jnp.array([1.0, 2.0]), sample_weight=[3.0, 1.0], parts=True)
    (Array(5., dtype=float32), Array(4., dtype=float32))
    """
    v = as_float(values, "values")
    w = jnp.ones((), v.dtype) if sample_weight is None else as_float(sample_weight, "sample_weight")
    shape = _batch("values", v.shape, "sample_weight", w.shape)
    numerator, denominator = _weighted_sums(v, w, _mask(where, shape), axis=axis)
    return (numerator, denominator) if parts else divide(numerator, denominator)


@promoting
@partial(jax.jit, static_argnames="axis")
def _weighted_sums(
    v: jax.Array, w: jax.Array, counts: jax.Array, *, axis: int | tuple[int, ...] | None
) -> tuple[jax.Array, jax.Array]:
    w = jnp.where(counts, w, 0)
    w = jnp.broadcast_to(w, jnp.broadcast_shapes(w.shape, v.shape))
    return (w * jnp.where((w == 0) & ~jnp.isfinite(v), 0, v)).sum(axis), w.sum(axis)


@jax.custom_jvp
def _surprise(z: jax.Array, ids: jax.Array, counts: jax.Array) -> jax.Array:
    """`-ln softmax(z)_y`, 0 where not `counts`."""
    return _surprise_in(_row(z), z, ids, counts)


def _surprise_in(row: _Row, z: jax.Array, ids: jax.Array, counts: jax.Array) -> jax.Array:
    own = jnp.take_along_axis(z, ids[..., None], -1, mode="clip")[..., 0]
    return jnp.where(counts, _surprises(own, row, z.shape[-1]), 0)


@_surprise.defjvp
def _surprise_jvp(
    primals: tuple[jax.Array, jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """`(softmax(z) - y) dz`: without a gather, whose transpose scatters, and finite where logits are infinite."""
    (z, ids, counts), (dz, _, _) = primals, tangents
    row = _row(z)
    slope = _softmax(z, row, counts) - _one_hot(jnp.where(counts, ids, -1), z.shape[-1])
    return _surprise_in(row, z, ids, counts), (slope * dz).sum(-1)


@jax.custom_jvp
def _expected_surprise(z: jax.Array, t: jax.Array, counts: jax.Array) -> jax.Array:
    """`-sum_c t_c ln softmax(z)_c`, to which a class with t = 0 adds 0; 0 where not `counts`."""
    return jnp.where(counts, jnp.where(t == 0, 0, t * _surprises(z, _row(z), z.shape[-1])).sum(-1), 0)


@_expected_surprise.defjvp
def _expected_surprise_jvp(
    primals: tuple[jax.Array, jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (z, t, counts), (dz, dt, _) = primals, tangents
    row = _row(z)
    t = jnp.where(counts[..., None], t, 0)
    slope = _softmax(z, row, counts) * t.sum(-1, keepdims=True) - t
    finite = jnp.where(counts[..., None], jnp.minimum(_surprises(z, row, z.shape[-1]), jnp.finfo(z.dtype).max), 0)
    return _expected_surprise(z, t, counts), (slope * dz).sum(-1) + (finite * dt).sum(-1)


class _Row(NamedTuple):
    """Of each row of logits: the greatest; `top`, the same if it is finite, else 0; `exp(z - top)` `(..., K)` and its sum.

    What an infinite `greatest` needs is chosen row by row: a branch would make a GPU wait, a choice for each logit keeps XLA on
    a CPU from its fast softmax."""

    greatest: jax.Array
    top: jax.Array
    exps: jax.Array
    total: jax.Array


def _row(z: jax.Array) -> _Row:
    greatest = z.max(-1)
    top = jnp.where(jnp.isfinite(greatest), greatest, 0)
    exps = jnp.exp(z - top[..., None])
    return _Row(greatest, top, exps, exps.sum(-1))


def _surprises(z: jax.Array, row: _Row, k: int) -> jax.Array:
    """`-ln softmax` at some logits of each row of K, `(..., C)`, or one of each, `(...)`."""
    greatest, top, total = (x if z.ndim == x.ndim else x[..., None] for x in (row.greatest, row.top, row.total))
    at_an_end = jnp.where(z == greatest, jnp.where(greatest > 0, 0.0, np.log(k)), jnp.inf)
    return jnp.where(jnp.isfinite(greatest), jnp.log(total) - (z - top), jnp.where(jnp.isnan(greatest), jnp.nan, at_an_end))


def _softmax(z: jax.Array, row: _Row, counts: jax.Array) -> jax.Array:
    """0 where not `counts`. The exponentials are those of the loss: on a CPU they take longer than all else."""
    greatest, total = row.greatest[..., None], row.total[..., None]
    at_an_end = jnp.where(counts, jnp.where(row.greatest > 0, 1, 1 / z.shape[-1]), 0)[..., None]
    return jnp.where(~jnp.isinf(greatest) & counts[..., None], row.exps * (1 / total), (z == greatest) * at_an_end)


def _one_hot(ids: jax.Array, k: int) -> jax.Array:
    return ids[..., None] == jnp.arange(k, dtype=jnp.int32)


def _of_classes(
    logits: ArrayLike, labels: ArrayLike, where: ArrayLike | None, name: str = "logits"
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Logits `(..., K)`, class ids as int32, -1 where they are none, and which examples count, `(...)`."""
    z = as_float(logits, name)
    if z.ndim == 0 or z.shape[-1] == 0:
        raise ValueError(f"{name} must have shape (..., K), one number per class, got {z.shape}.")
    ids = valid_ids(as_class_ids(labels, "labels", z.shape[-1]), z.shape[-1])
    shape = _batch(name, z.shape[:-1], "labels", ids.shape)
    z, ids = jnp.broadcast_to(z, (*shape, z.shape[-1])), jnp.broadcast_to(ids, shape)
    return z, ids, _mask(where, shape) & (ids >= 0)


def _batch(first: str, a: tuple[int, ...], second: str, b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the examples: that of one, or equal last axes and leading axes that broadcast."""
    try:
        if a and b and a[-1] != b[-1]:
            raise ValueError
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ValueError(f"{first} and {second} must go together: their examples have the shapes {a} and {b}.") from None


def _mask(where: ArrayLike | None, shape: tuple[int, ...]) -> jax.Array:
    mask = jnp.ones((), bool) if where is None else as_mask(where)
    return jnp.broadcast_to(mask, _batch("where", mask.shape, "the examples", shape))


def _class_weights(class_weights: ArrayLike | None, k: int) -> jax.Array | None:
    if class_weights is None:
        return None
    weights = as_float(class_weights, "class_weights")
    if weights.shape != (k,):
        raise ValueError(f"class_weights must have shape (K,) = ({k},), got {weights.shape}.")
    return weights
