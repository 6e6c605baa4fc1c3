"""Cross-entropy of a linear layer with a large vocabulary, without storing all logits in memory.

For n examples and V words there are n V logits, and their gradient has the same size. For 8192
tokens and 131,072 words, each of them needs 4 GiB. Here the logits are computed in blocks.

`linear_cross_entropy` returns one loss per example. Its blocks are `chunk_size` words of all
examples. Each block is discarded after use and computed again for the gradient. Therefore four
matrix products are computed instead of three. `mean_linear_cross_entropy` returns a mean with known
weights. Its blocks are all words of `chunk_size` examples, and the gradients are computed together
with the loss, from the same logits. Therefore three products are enough.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxmetrics._arguments.example_arguments import as_weights
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_mask,
    check_examples,
    check_flag,
    check_size,
    is_integer,
    shapes_of,
    valid_ids,
)
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.namespaces import Array
from jaxmetrics._text.wording import shown
from jaxmetrics.losses._softmax import refuse_torch_gradient
from jaxmetrics.losses._vocabulary_blocks import (
    Coefficients,
    Operands,
    Options,
    losses_in_blocks,
    weighted_sums,
)
from jaxmetrics.losses.per_example import as_real, as_term, class_ids

__all__ = ["linear_cross_entropy", "mean_linear_cross_entropy"]


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
    entropy: bool = False,
) -> Array:
    """Compute the cross-entropy of logits `z = hidden @ kernel + bias` without storing the logits.

    The loss is `ln sum_v exp(z_v) - z_y` for label y, in nats. Use this function for language
    models. If the mean loss is enough, `mean_linear_cross_entropy` takes less time.

    `jax.grad` works with respect to `hidden`, `kernel` and `bias`. Forward mode (`jax.jvp`) does
    not. If `hidden` and `kernel` are bfloat16, products are computed in bfloat16 and added in
    float32. Otherwise all computations are in float32, or in float64 if `jax_enable_x64` is on. Use
    batch axes instead of `jax.vmap`, which needs much memory.

    Args:
        hidden: activations, of shape `(..., n, d)`.
        kernel: weights of the linear layer, of shape `(d, V)`.
        labels: word ids of shape `(..., n)`. Negative ids have loss and gradient 0. An id >= V
            raises an error in a NumPy array, and acts like a negative id in a JAX array.
        bias: bias of shape `(V,)`. A word with bias -inf has probability 0. With
            `label_smoothing > 0` the loss is then inf.
        chunk_size: number of words per block. By default, a block has about 4 million logits on a
            CPU or 134 million on other devices, and at least 512 words.
        where: boolean mask of shape `(..., n)`. Where the mask is False, loss and gradient are 0.
        label_smoothing: number eps in [0, 1]. The loss is
            `(1 - eps) (ln sum_v exp(z_v) - z_y) + eps (ln sum_v exp(z_v) - mean_v z_v)`.
        z_loss: factor of a second loss, which is added: `z_loss (ln sum_v exp(z_v))^2`. Source:
            Chowdhery et al. (2022), PaLM, arXiv:2204.02311, section 5.
        soft_cap: number c > 0. The logits z are replaced by `c tanh(z / c)`.
        axis_name: the axis of `jax.shard_map` that divides the words among devices. Each device
            gets `kernel` and `bias` of its own words, but `labels` are ids in the whole vocabulary.
        entropy: if True, return the pair of the losses and of the entropies `-sum_v p_v ln p_v` of
            p = softmax(z), both differentiable, for example for reinforcement learning.

    Returns:
        One loss per example, a JAX array of shape `(..., n)`, or the pair of losses and entropies.

    >>> hidden, kernel = jnp.eye(2), jnp.asarray([[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
    >>> linear_cross_entropy(hidden, kernel, [0, 0]).round(4)  # ln 4 and ln(1 + 3 exp(-3))
    Array([1.3863, 0.1392], dtype=float32)
    >>> labels, options = jnp.asarray([0, -100]), {"label_smoothing": 0.1, "chunk_size": 3}
    >>> losses, entropies = linear_cross_entropy(hidden, kernel, labels, entropy=True, **options)
    >>> losses.round(4), entropies.round(4)
    (Array([1.3863, 0. ], dtype=float32), Array([1.3863, 0. ], dtype=float32))
    """
    options, operands, mask, terms, _ = _checked(
        hidden,
        kernel,
        labels,
        None,
        where,
        bias,
        chunk_size,
        label_smoothing,
        z_loss,
        soft_cap,
        axis_name,
    )
    options = options._replace(entropy=check_flag(entropy, "entropy"))
    return losses_in_blocks(options, operands, mask, terms)


def mean_linear_cross_entropy(
    hidden: ArrayLike,
    kernel: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    where: ArrayLike | None = None,
    *,
    bias: ArrayLike | None = None,
    chunk_size: int | None = None,
    label_smoothing: ArrayLike = 0.0,
    z_loss: ArrayLike = 0.0,
    soft_cap: float | None = None,
    axis_name: Hashable | None = None,
    parts: bool = False,
) -> Array:
    """Compute the mean cross-entropy of a linear layer, and its gradients with three products.

    The result is `weighted_mean(linear_cross_entropy(...), sample_weight, where)`. Inside of
    `jax.grad` or `jax.value_and_grad`, the gradients are computed together with the loss and kept
    until they are needed, so that logits are not computed twice. Nothing has to be done with the
    gradients by hand: differentiate the loss of the whole model. Forward mode does not work.

    Args:
        hidden, kernel, labels, bias, label_smoothing, z_loss, soft_cap, axis_name: as in
            `linear_cross_entropy`.
        sample_weight: weights w of the examples, of shape `(..., n)`. Examples with weight 0 are
            ignored.
        where: boolean mask of the examples to include, of shape `(..., n)`.
        chunk_size: number of examples per block, each with V logits. By default, a block has about
            8 million logits on a CPU or 268 million on other devices, and at least 256 examples.
        parts: if True, return the pair `(sum w l, sum w)` of the losses l, to be added over
            batches or devices.

    Returns:
        The mean `sum w l / sum w` in nats, a JAX array without axes, or the pair. If all examples
        are ignored, the mean and its gradients are 0. Ids < 0 are ignored in both sums.

    >>> hidden, kernel = jnp.eye(2), jnp.asarray([[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
    >>> import jax
    >>> mean = lambda kernel: mean_linear_cross_entropy(hidden, kernel, jnp.asarray([0, -1]))
    >>> loss, gradient = jax.value_and_grad(mean)(kernel)
    >>> loss.round(4), gradient[0]  # ln 4
    (Array(1.3863, dtype=float32), Array([-0.75,  0.25,  0.25,  0.25], dtype=float32))
    """
    checked = _checked(
        hidden,
        kernel,
        labels,
        sample_weight,
        where,
        bias,
        chunk_size,
        label_smoothing,
        z_loss,
        soft_cap,
        axis_name,
    )
    sums = weighted_sums(*checked)
    return sums if check_flag(parts, "parts") else divide(*sums)


def _checked(
    hidden: ArrayLike,
    kernel: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    where: ArrayLike | None,
    bias: ArrayLike | None,
    chunk_size: int | None,
    label_smoothing: ArrayLike,
    z_loss: ArrayLike,
    soft_cap: float | None,
    axis_name: Hashable | None,
) -> tuple[Options, Operands, Array | None, Coefficients, Array | None]:
    check_order(hidden=hidden, labels=labels, sample_weight=sample_weight, where=where)
    h, k = _as_operand(hidden, "hidden"), _as_operand(kernel, "kernel")
    b = None if bias is None else _as_operand(bias, "bias")
    if h.ndim < 2 or k.ndim != 2 or h.shape[-1] != k.shape[0] or 0 in k.shape:
        raise ValueError(
            "hidden must have shape (..., n, d) and kernel must have shape (d, V), but the shape"
            f" of hidden is {h.shape} and the shape of kernel is {k.shape}."
        )
    if b is not None and b.shape != k.shape[1:]:
        raise ValueError(
            f"bias must have shape (V,) = ({k.shape[1]},), with one number for each column of"
            f" kernel, got {b.shape}."
        )
    vocabulary = k.shape[1] * (1 if axis_name is None else _number_of_devices(axis_name))
    mask = as_mask(where)
    words = as_array(labels, "labels")
    weights = None if sample_weight is None else as_real(sample_weight, "sample_weight")
    shapes = shapes_of(labels=words, sample_weight=weights, where=mask)
    check_examples({"hidden without d": h.shape[:-1]} | shapes)
    if not is_integer(words):
        raise TypeError(
            "labels must contain ids of words, whose dtype is an integer dtype, got"
            f" {words.dtype}. Pass the arguments in the order (hidden, kernel, labels)."
        )
    # Ids that are not in [0, V) become -1.
    ids = valid_ids(class_ids(words, vocabulary, mask), size=vocabulary)
    if weights is not None:
        weights = as_weights(weights, "sample_weight", mask)
    smoothing = as_term(label_smoothing, "label_smoothing")
    terms = Coefficients(smoothing, as_term(z_loss, "z_loss", most=math.inf))
    size = 0 if chunk_size is None else check_size(chunk_size, "chunk_size")
    cap = None if soft_cap is None else _check_cap(soft_cap)
    options = Options(size, cap, smoothing is not None, False, axis_name, vocabulary)
    return options, Operands(h, k, b, ids), mask, terms, weights


def _as_operand(x: ArrayLike, name: str) -> Array:
    """Convert to an array of floats. A float array keeps its dtype, so that its gradient has the
    same dtype.
    """
    refuse_torch_gradient(x, name)
    array = as_array(x, name)
    return jnp.asarray(array) if jnp.issubdtype(array.dtype, jnp.floating) else as_real(array, name)


def _check_cap(soft_cap: float) -> float:
    is_number = isinstance(soft_cap, int | float | np.integer | np.floating)
    if not is_number or isinstance(soft_cap, bool):
        raise TypeError(
            "soft_cap must be a Python number or None, not an array, got"
            f" {type(soft_cap).__name__}."
        )
    if not 0 < soft_cap <= float(np.finfo(float).max):
        raise ValueError(
            "soft_cap must be positive and finite, or None if the logits are not capped, got"
            f" {shown(soft_cap)}."
        )
    return float(soft_cap)


def _number_of_devices(axis_name: Hashable) -> int:
    try:
        hash(axis_name)  # check_vma is static
        return int(lax.psum(1, axis_name))
    except (NameError, TypeError, ValueError):
        raise ValueError(
            "axis_name must be the name of a mesh axis over which jax.shard_map runs, got"
            f" {shown(axis_name)}."
        ) from None
