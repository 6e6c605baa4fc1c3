"""Losses per example, such as cross-entropy, computed from logits without reduction.

`logits` have shape `(..., K)` for K classes. `labels` are class ids of shape `(...)`, and the
losses have the same shape. The last axis of `(...)` must have the same length in all arguments, and
the axes before it broadcast.

An example is ignored if its label is negative, or if the boolean mask `where` is False. Labels of K
or more in a JAX array are ignored, too. The loss of an ignored example and its gradient are exactly
0, whatever the logits are.

Logits may be infinite. A class with logit -inf is impossible, and a class with logit +inf is
certain. If all logits of an example are -inf, its classes are equally probable. With infinite
logits the loss may be infinite, but its gradient with respect to logits is finite. If a logit is
NaN, the loss is NaN.

If `class_weights` of shape `(K,)` are given, the loss of each example is multiplied by the weight
of its class. Examples with weight 0 are ignored. Losses are computed at least in float32.

If the arguments are NumPy arrays or lists, losses are NumPy arrays of float64. If an argument is a
JAX array, losses are JAX arrays. Their computation is compiled and can be differentiated.

Labels that are not integer or bool raise TypeError, unless the function allows soft labels. Shapes
that do not match raise ValueError. NumPy arrays and lists also raise ValueError if a label is K or
more, or if all rows of logits look like probabilities, of which a softmax is meaningless. If they
are logits, add 1 to all of them, which does not change the softmax. In JAX arrays, probabilities
are not detected. Tensors of torch that require a
gradient raise TypeError, because their gradient would be lost.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from jaxmetrics._arguments.example_arguments import aligned, as_training_logits, as_weights, eps_of
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_float,
    as_mask,
    as_rows,
    check_axis,
    check_binary,
    check_examples,
    check_flag,
    check_integer,
    check_real,
    ids_in_range,
    is_integer,
    refuse_where,
    shapes_of,
    valid_ids,
)
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, Arrays, custom_jvp, xp
from jaxmetrics.losses._softmax import (
    log_normalizer,
    neg_log_softmax,
    one_hot,
    refuse_torch_gradient,
    soft_target_loss,
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

_GREATEST = float(np.finfo(float).max)


def cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    class_weights: ArrayLike | None = None,
    label_smoothing: ArrayLike = 0.0,
    z_loss: ArrayLike = 0.0,
) -> Array:
    """Compute the cross-entropy loss `-ln softmax(z)_y` of each example, in nats, >= 0.

    With label smoothing s, the loss is `(1 - s) w_y l_y + (s / K) sum_c w_c l_c`. Here
    `l_c = -ln softmax(z)_c`, and w_c is the weight of class c. Source: Szegedy et al. (2016), CVPR,
    section 7.

    If logits of shape `(batch, time, K)` are the product of `hidden` and a matrix, flatten the
    examples before the product: `logits = hidden.reshape(-1, d) @ kernel`, with
    `labels.reshape(-1)`. Otherwise XLA also writes the transposed gradient on a CPU, which needs
    twice the memory and more time.

    Args:
        logits: real numbers z of shape `(..., K)`, before the softmax.
        labels: class ids y of shape `(...)`. Negative labels have loss and gradient 0.
        where: boolean mask of shape `(...)`. Where the mask is False, loss and gradient are 0.
        class_weights: weight of each class, of shape `(K,)`.
        label_smoothing: label smoothing s in [0, 1].
        z_loss: factor of a second loss, which is added: `z_loss w_y (ln sum_c exp(z_c))^2`. Source:
            Chowdhery et al. (2022), PaLM, arXiv:2204.02311, section 5.

    Returns:
        One loss per example, of shape `(...)`. Average the losses by
        `weighted_mean(losses, where=labels >= 0)`, because ignored examples have loss 0. Labels
        beyond K - 1 raise an error in NumPy arrays, and are ignored in JAX arrays.

    >>> logits, labels = [[2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]], np.array([0, 2, -1])
    >>> losses = cross_entropy(logits, labels)
    >>> losses.round(4)
    array([0.2395, 1.0986, 0.    ])

    PyTorch divides the mean with `class_weights` by the sum of the weights. The weights are then
    weights of the examples:

    >>> from jaxmetrics import weighted_mean
    >>> weights = np.array([1.0, 1.0, 2.0])[np.maximum(labels, 0)]
    >>> weighted_mean(losses, sample_weight=weights, where=labels >= 0).round(4)
    np.float64(0.8122)

    >>> cross_entropy([[2.0, 0.0, 0.0]], [0], label_smoothing=0.3).round(4)
    array([0.6395])
    """
    examples = _of_logits(logits, labels, where, class_weights)
    smoothing = as_term(label_smoothing, "label_smoothing")
    return _cross_entropy(examples, smoothing, as_term(z_loss, "z_loss", most=np.inf))


@compiled
def _cross_entropy(
    examples: _Labelled, smoothing: Array | None, weight_of_z: Array | None
) -> Array:
    z, ids, counts = examples.broadcast()
    loss = examples.weighted(neg_log_softmax(z, ids, counts), ids, counts)
    if smoothing is not None:
        weights = xp.ones_like(z[..., :1]) if examples.weights is None else examples.weights
        target = xp.broadcast_to(weights / z.shape[-1], z.shape)
        loss = scaled(1 - smoothing, loss)
        loss = loss + scaled(smoothing, soft_target_loss(z, target, counts))
    if weight_of_z is not None:
        normalizer = log_normalizer(z, counts)
        infinite = xp.isinf(normalizer)
        squares = xp.where(infinite, xp.inf, xp.where(infinite, 0, normalizer) ** 2)
        loss = loss + scaled(weight_of_z, examples.weighted(squares, ids, counts))
    return loss


def as_real(x: ArrayLike, name: str) -> Array:
    """Convert to floats; complex numbers raise TypeError, also under jit and grad."""
    refuse_torch_gradient(x, name)
    array = as_float(x, name)
    check_real(array, name)
    return array


def _real_rows(x: ArrayLike, name: str) -> Array:
    refuse_torch_gradient(x, name)
    return as_real(as_rows(x, name), name)


def as_term(coefficient: ArrayLike, name: str, most: float = 1) -> Array | None:
    """Check the coefficient of a term of a loss, which must be one number in [0, `most`].

    If the coefficient is a Python number, its value is known: a number out of range raises
    ValueError, and 0 becomes None, so that the term is not computed.
    """
    number = as_real(coefficient, name)
    if number.ndim:
        raise ValueError(f"{name} must be a single number, got an array of shape {number.shape}.")
    if not isinstance(coefficient, int | float | np.number):
        return number
    if not 0 <= coefficient <= most:
        expected = "in [0, 1]" if most == 1 else ">= 0"
        raise ValueError(f"{name} must be {expected}, got {coefficient}.")
    return None if coefficient == 0 else number


def scaled(coefficient: Array, loss: Array) -> Array:
    """Multiply a loss by a coefficient; a coefficient of 0 gives 0 even if the loss is infinite."""
    return coefficient * xp.where((coefficient == 0) & xp.isinf(loss), 0, loss)


def soft_cross_entropy(
    logits: ArrayLike, target_probs: ArrayLike, *, where: ArrayLike | None = None
) -> Array:
    """Compute the cross-entropy of soft labels t, `-sum_c t_c ln softmax(z)_c`, in nats.

    `logits` are z and `target_probs` are t >= 0, both of shape `(..., K)`. The rows of t are not
    normalised. Where the boolean mask `where` of shape `(...)` is False, loss and gradient are 0.
    Returns one loss per example, of shape `(...)`.

    >>> soft_cross_entropy([[2.0, 0.0, 0.0]], [[0.8, 0.1, 0.1]]).round(4)
    array([0.6395])
    """
    check_order(logits=logits, target_probs=target_probs, where=where)
    z = _real_rows(logits, "logits")
    t = _real_rows(target_probs, "target_probs")
    if z.ndim == 0 or t.ndim == 0 or z.shape[-1] != t.shape[-1]:
        raise ValueError(
            "logits and target_probs must both have shape (..., K) with the same number of"
            f" classes K, got the shapes {z.shape} and {t.shape}."
        )
    mask = _mask(where, _of_rows(logits=z, target_probs=t))
    as_training_logits(z, "logits", aligned(mask, 0, 1))
    return _soft_cross_entropy(z, t, mask)


@compiled
def _soft_cross_entropy(z: Array, t: Array, mask: Array | None) -> Array:
    shape = np.broadcast_shapes(z.shape[:-1], t.shape[:-1])
    return soft_target_loss(z, t, xp.ones_like(z, bool, shape=shape) if mask is None else mask)


def nll(probs: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None) -> Array:
    """Compute the negative log-likelihood `-sum_c y_c ln p_c` from probabilities, in nats.

    If you have logits, use `cross_entropy`, which is more accurate.

    Args:
        probs: probabilities p of shape `(..., K)`, which are neither normalised nor clipped.
        labels: class ids of shape `(...)`, or soft or one-hot labels y of shape `(..., K)`.
        where: boolean mask of shape `(...)`. Where the mask is False, loss and gradient are 0.

    Returns:
        One loss per example, of shape `(...)`. If p = 0 for a class with y > 0, the loss is inf and
        its gradient is -inf. A class with y = 0 adds 0 to the loss and to its gradient.

    >>> nll([[0.5, 0.25, 0.25], [0.1, 0.0, 0.9]], [0, 2]).round(4)
    array([0.6931, 0.1054])
    >>> nll([[0.5, 0.25, 0.25]], [[0.0, 0.5, 0.5]]).round(4)
    array([1.3863])
    """
    check_order(probs=probs, labels=labels, where=where)
    p, y = _real_rows(probs, "probs"), as_rows(labels, "labels")
    if p.ndim == 0:
        raise ValueError(f"probs must have shape (..., K), got {p.shape}.")
    if y.ndim == p.ndim:
        y = as_real(y, "labels")
        if y.shape[-1] != p.shape[-1]:
            raise ValueError(
                "labels must be class ids, or probabilities with the same shape (..., K) as"
                f" probs, which is {p.shape}, got {y.shape}."
            )
        return _nll(_Labelled(p, y, _mask(where, _of_rows(probs=p, labels=y))))
    return _nll(_of_classes(p, y, where, name="probs"))


@compiled
def _nll(examples: _Labelled) -> Array:
    p, y, mask, _ = examples
    if is_integer(y):
        p, ids, mask = examples.broadcast()
        y = one_hot(ids, p.shape[-1]).astype(p.dtype)
    contributes = _kept(y != 0, mask if mask is None else mask[..., None])
    return xp.where(contributes, -y * xp.log(xp.where(contributes, p, 1)), 0).sum(-1)


def binary_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    class_weights: ArrayLike | None = None,
) -> Array:
    """Compute the binary cross-entropy `-y ln sigmoid(z) - (1 - y) ln sigmoid(-z)`, in nats.

    Args:
        logits: real numbers z of shape `(...)`. In multilabel problems, one per example and label.
        labels: labels y of shape `(...)`, integers 0 and 1 or probabilities of class 1. Floats
            outside [0, 1] raise ValueError in a NumPy array, and make the loss NaN in a JAX array.
        where: boolean mask of shape `(...)`. Where the mask is False, loss and gradient are 0.
        class_weights: weights of the classes y = 0 and y = 1, of shape `(2,)`.

    >>> binary_cross_entropy([0.0, 2.0, -2.0], [1, 1, 1]).round(4)
    array([0.6931, 0.1269, 2.1269])
    """
    check_order(logits=logits, labels=labels, where=where)
    z, truth = as_real(logits, "logits"), as_array(labels, "labels")
    mask = _mask(where, shapes_of(logits=z, labels=truth))
    weights = _class_weights(class_weights, 2)
    if is_integer(truth):
        return _binary_cross_entropy(z, class_ids(truth, 2, mask), mask, weights)
    y, rounding = as_real(truth, "labels"), 8 * eps_of(truth)
    message = "but probabilities must be in [0, 1]."
    refuse_where(lambda y: (y < -rounding) | (y > 1 + rounding), y, "labels", message, mask)
    return _binary_cross_entropy(z, y, mask, weights, rounding=rounding)


@compiled
def _binary_cross_entropy(
    z: Array, y: Array, mask: Array | None, weights: Array | None, *, rounding: float = 0.0
) -> Array:
    counts = _kept((y == 0) | (y == 1) if is_integer(y) else xp.ones_like(y, bool), mask)
    y = y.astype(z.dtype)
    possible = (y >= -rounding) & (y <= 1 + rounding)
    y = xp.where(counts, xp.where(possible, xp.clip(y, 0, 1), xp.nan), 0)
    negative, positive = (1 - y, y) if weights is None else (weights[0] * (1 - y), weights[1] * y)
    return xp.where(counts, _logistic_loss(xp.where(counts, z, 0), negative, positive), 0)


@custom_jvp
def _logistic_loss(z: Array, negative: Array, positive: Array) -> Array:
    """Compute `negative ln(1 + e^z) + positive ln(1 + e^-z)` for two weights of each logit z."""
    return scaled(negative, xp.logaddexp(z, 0.0)) + scaled(positive, xp.logaddexp(-z, 0.0))


@_logistic_loss.defjvp
def _logistic_loss_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    """Compute the derivative, which is finite even for infinite logits."""
    (z, negative, positive), (dz, d_negative, d_positive) = primals, tangents
    slope = negative * jax.nn.sigmoid(z) - positive * jax.nn.sigmoid(-z)
    finite_z = xp.clip(z, -xp.finfo(z.dtype).max, xp.finfo(z.dtype).max)
    change_by_weights = (
        jax.nn.softplus(finite_z) * d_negative + jax.nn.softplus(-finite_z) * d_positive
    )
    return _logistic_loss(z, negative, positive), slope * dz + change_by_weights


def focal_loss(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    gamma: ArrayLike = 2.0,
    where: ArrayLike | None = None,
    class_weights: ArrayLike | None = None,
) -> Array:
    """Compute the focal loss `-(1 - p_y)^gamma ln p_y` in nats, where p = softmax(z).

    Focal loss is cross-entropy with less weight on examples whose class y has a high probability
    p_y. Then a few hard examples are not outweighed by many easy examples. Source: Lin et al.
    (2017), ICCV. For the parameter alpha of this paper, pass `class_weights=[1 - alpha, alpha]`.
    For binary classification with a single logit z, pass the two logits [0, z].

    Args:
        logits: real numbers z of shape `(..., K)`.
        labels: class ids y of shape `(...)`. Negative labels have loss and gradient 0.
        gamma: a number >= 0, which may be traced. If gamma is 0, focal loss is cross-entropy.
        where: boolean mask of shape `(...)`. Where the mask is False, loss and gradient are 0.
        class_weights: weight of each class, of shape `(K,)`.

    >>> focal_loss([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]], [0, 2]).round(4)
    array([0.0109, 0.4883])
    """
    power = as_term(gamma, "gamma", most=_GREATEST)
    return _focal_loss(_of_logits(logits, labels, where, class_weights), power)


@compiled
def _focal_loss(examples: _Labelled, gamma: Array | None) -> Array:
    z, ids, counts = examples.broadcast()
    loss = neg_log_softmax(z, ids, counts)
    if gamma is not None:
        loss = _focal(loss, gamma)
    return examples.weighted(loss, ids, counts)


@custom_jvp
def _focal(loss: Array, gamma: Array) -> Array:
    """Compute `(1 - e^-l)^gamma l` from the cross-entropy l = -ln p_y."""
    return xp.where(loss == 0, 0, _one_minus_p(loss) ** gamma * loss)


@_focal.defjvp
def _focal_jvp(primals: Arrays, tangents: Arrays) -> Arrays:
    """Compute the derivatives by l, whose limits are 0 for l = 0 and 1 for l = inf, and by gamma,
    whose limits are 0.
    """
    (loss, gamma), (d_loss, d_gamma) = primals, tangents
    has_slope = ((loss > 0) & (loss < xp.inf)) | xp.isnan(loss)
    finite = xp.where(has_slope, loss, 1)
    q = _one_minus_p(finite)
    slope = q**gamma + gamma * q ** (gamma - 1) * xp.exp(-finite) * finite
    slope = xp.where(has_slope, slope, xp.where(loss > 0, 1, 0))
    by_gamma = xp.where(has_slope, q**gamma * xp.log(q) * finite, 0)
    return _focal(loss, gamma), slope * d_loss + by_gamma * d_gamma


def _one_minus_p(loss: Array) -> Array:
    return -xp.expm1(-loss)


def hinge_loss(logits: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None) -> Array:
    """Compute the binary hinge loss `max(0, 1 - (2 y - 1) z)` of label y (0 or 1) and score z.

    `logits` are real scores z and `labels` y are 0 or 1 (or bool), both of shape `(...)`. Where the
    boolean mask `where` of shape `(...)` is False, loss and gradient are 0. Returns one loss per
    example, of shape `(...)`.

    >>> hinge_loss([2.0, 0.5, 0.5], [1, 1, 0])
    array([0. , 0.5, 1.5])
    """
    check_order(logits=logits, labels=labels, where=where)
    z, truth = as_real(logits, "logits"), as_array(labels, "labels")
    mask = _mask(where, shapes_of(logits=z, labels=truth))
    check_integer(truth, "labels")
    ids = class_ids(truth, 2, mask)
    # Other libraries use labels -1 and 1, but a negative label is ignored here.
    check_binary(truth, "labels", mask)
    return _hinge_loss(z, ids, mask)


@compiled
def _hinge_loss(z: Array, ids: Array, mask: Array | None) -> Array:
    margin = xp.where(_kept((ids == 0) | (ids == 1), mask), xp.where(ids == 1, z, -z), 1)
    return xp.maximum(1 - margin, 0)


def multiclass_hinge_loss(
    logits: ArrayLike, labels: ArrayLike, *, where: ArrayLike | None = None
) -> Array:
    """Compute the multiclass hinge loss `max(0, 1 + max_{c != y} z_c - z_y)` for true class y.

    `logits` z have shape `(..., K)`, and `labels` y are class ids of shape `(...)`. Where the
    boolean mask `where` of shape `(...)` is False, loss and gradient are 0. Returns one loss per
    example, of shape `(...)`. Source: Crammer and Singer (2001), Journal of Machine Learning
    Research 2.

    >>> multiclass_hinge_loss([[2.0, 0.5, 0.0], [2.0, 1.5, 0.0]], [0, 1])
    array([0. , 1.5])
    """
    return _multiclass_hinge_loss(_of_classes(logits, labels, where))


@compiled
def _multiclass_hinge_loss(examples: _Labelled) -> Array:
    z, ids, counts = examples.broadcast()
    if z.shape[-1] == 1:
        return xp.zeros_like(z[..., 0])
    z = xp.where(counts[..., None], z, 0)
    is_label = one_hot(ids, z.shape[-1])
    best_other = xp.where(is_label, -xp.inf, z).max(-1)
    z_y = xp.where(is_label, z, 0).sum(-1)
    both_infinite = (best_other == z_y) & xp.isinf(z_y)  # inf - inf would be NaN
    best_other, z_y = (xp.where(both_infinite, 0, x) for x in (best_other, z_y))
    return xp.where(counts, xp.maximum(1 + (best_other - z_y), 0), 0)


def weighted_mean(
    values: ArrayLike,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    axis: int | tuple[int, ...] | None = None,
    parts: bool = False,
) -> Array | tuple[Array, Array]:
    """Compute the weighted mean of losses l with weights w, `sum w l / sum w`.

    Examples with weight 0 do not change this mean, unlike `mean(w * l)`. Do not average the means
    of several devices or batches, because their total weights may differ. Use `parts=True`, add up
    the pairs, and divide the total of `w l` by the total of `w`.

    Args:
        values: losses l of shape `(...)`.
        sample_weight: weights w of shape `(...)`. Examples with weight 0 are ignored.
        where: boolean mask of the examples to include, of shape `(...)`.
        axis: axis or axes over which the mean is computed. Default: all axes.
        parts: if True, return the pair `(sum w l, sum w)`.

    Returns:
        The weighted mean or, if `parts` is True, the pair `(sum w l, sum w)`. If all examples are
        ignored, the mean and its gradient are 0. The losses of ignored examples may be NaN.

    >>> weighted_mean([1.0, 2.0, np.nan], where=[True, True, False])
    np.float64(1.5)
    >>> weighted_mean([[1.0, 2.0], [3.0, 6.0]]), weighted_mean([[1.0, 2.0], [3.0, 6.0]], axis=-1)
    (np.float64(3.0), array([1.5, 4.5]))
    >>> import jax.numpy as jnp
    >>> weighted_mean(jnp.array([1.0, 2.0]), sample_weight=[3.0, 1.0], parts=True)
    (Array(5., dtype=float32), Array(4., dtype=float32))
    """
    check_order(values=values, sample_weight=sample_weight, where=where)
    check_flag(parts, "parts")
    for number in axis if isinstance(axis, tuple) else () if axis is None else (axis,):
        check_axis(number, "axis")
    v = as_real(values, "values")
    weights = None if sample_weight is None else as_real(sample_weight, "sample_weight")
    mask = _mask(where, shapes_of(values=v, sample_weight=weights))
    weights = None if weights is None else as_weights(weights, "sample_weight", mask)
    return _weighted_mean(v, weights, mask, axis=axis, parts=parts)


@compiled
def _weighted_mean(
    v: Array,
    weights: Array | None,
    mask: Array | None,
    *,
    axis: int | tuple[int, ...] | None,
    parts: bool,
) -> Array | tuple[Array, Array]:
    w = xp.ones_like(v) if weights is None else weights
    w = w if mask is None else xp.where(mask, w, 0)
    w = xp.broadcast_to(w, np.broadcast_shapes(w.shape, v.shape))
    sums = (w * xp.where((w == 0) & ~xp.isfinite(v), 0, v)).sum(axis), w.sum(axis)
    return sums if parts else divide(*sums)


class _Labelled(NamedTuple):
    """Logits `(..., K)`, class ids `(...)`, mask `(...)` and class weights `(K,)`, checked but not
    broadcast yet.
    """

    logits: Array
    ids: Array
    mask: Array | None
    weights: Array | None = None

    def broadcast(self) -> Arrays:
        """Return broadcast logits, class ids as int32 (0 for ignored labels), and a mask of the
        examples that are not ignored.
        """
        ids = valid_ids(self.ids, size=self.logits.shape[-1])
        counts = _kept(ids >= 0, self.mask)
        shape = np.broadcast_shapes(self.logits.shape[:-1], counts.shape)
        ids, counts = (xp.broadcast_to(x, shape) for x in (xp.maximum(ids, 0), counts))
        return xp.broadcast_to(self.logits, (*shape, self.logits.shape[-1])), ids, counts

    def weighted(self, loss: Array, ids: Array, counts: Array) -> Array:
        """Multiply losses by the weights of the classes of the broadcast ids."""
        if self.weights is None:
            return loss
        return scaled(xp.where(counts, self.weights[ids], 0), loss)


def _of_logits(
    logits: ArrayLike,
    labels: ArrayLike,
    where: ArrayLike | None,
    class_weights: ArrayLike | None = None,
) -> _Labelled:
    examples = _of_classes(logits, labels, where)
    z = examples.logits
    as_training_logits(z, "logits", aligned(examples.mask, 0, 1))
    return examples._replace(weights=_class_weights(class_weights, z.shape[-1]))


def _of_classes(
    logits: ArrayLike, labels: ArrayLike, where: ArrayLike | None, name: str = "logits"
) -> _Labelled:
    check_order(**{name: logits}, labels=labels, where=where)
    z, ids = _real_rows(logits, name), as_array(labels, "labels")
    if z.ndim == 0 or z.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (..., K), with one number for each class, got {z.shape}."
        )
    # Checked before shapes, because this error is clearer if arguments are swapped.
    check_integer(ids, "labels")
    mask = _mask(where, _of_rows(**{name: z}) | {"labels": ids.shape})
    return _Labelled(z, class_ids(ids, z.shape[-1], mask), mask)


def class_ids(labels: Array, size: int, mask: Array | None) -> Array:
    """Check class ids; a column `(n, 1)` is allowed if logits have shape `(n, 1, K)`."""
    return ids_in_range(labels, "labels", mask, size=size)


def _of_rows(**rows: Array) -> dict[str, tuple[int, ...]]:
    return {f"{name} without the axis of classes": x.shape[:-1] for name, x in rows.items()}


def _mask(where: ArrayLike | None, shapes: dict[str, tuple[int, ...]]) -> Array | None:
    """Check the mask and the shapes of examples; a shape `()` broadcasts to all others."""
    mask = as_mask(where)
    shapes |= shapes_of(where=mask)
    check_examples({name: shape for name, shape in shapes.items() if shape})
    return mask


def _kept(counts: Array, mask: Array | None) -> Array:
    return counts if mask is None else counts & mask


def _class_weights(class_weights: ArrayLike | None, k: int) -> Array | None:
    if class_weights is None:
        return None
    weights = as_real(class_weights, "class_weights")
    if weights.shape != (k,):
        raise ValueError(f"class_weights must have shape (K,) = ({k},), got {weights.shape}.")
    return weights
