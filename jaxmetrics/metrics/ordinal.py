"""Metrics of ordered classes, such as grades, in which near misses are better than far ones."""

from __future__ import annotations

import numpy as np

from jaxmetrics._applied import refuse_unknown_order
from jaxmetrics._arguments.single import ArrayLike, as_counts, check_size
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, xp

__all__ = ["accuracy_within", "macro_absolute_error"]


def distances(k: int) -> np.ndarray:
    """Return the distances `|i - j|` between the classes, of shape `(K, K)`."""
    i = np.arange(k, dtype=float)
    return abs(i[:, None] - i)


def _with_distances(counts: ArrayLike) -> tuple[Array, np.ndarray]:
    """Return the counts and the distances of the classes, whose order must be known."""
    c = as_counts(counts)
    if c.shape[-1] > 2:
        refuse_unknown_order()
    return c, distances(c.shape[-1])


def accuracy_within(counts: ArrayLike, k: int = 1, *, zero_division: ArrayLike = 0.0) -> Array:
    """Compute the fraction of predictions at most `k` classes away from the truth, in [0, 1].

    The formula is `sum of C_ij over |i - j| <= k, divided by n`. If k is 0, this is the accuracy.
    For grades it is called accuracy within one grade, 1-off accuracy or adjacent agreement.
    `counts` is a confusion matrix C of shape `(..., K, K)` whose classes are in order. Returns one
    number per matrix, of shape `(...)`. If there are no examples, the value is `zero_division`.
    Raises an error if k is not an integer of at least 0. As a function of `counts` only, for
    example in `interval`, use `functools.partial(accuracy_within, k=2)`. Source: Gaudette and
    Japkowicz (2009), Evaluation methods for ordinal classification, Canadian AI.

    >>> grades = [[6, 2, 1], [1, 7, 1], [0, 1, 1]]
    >>> accuracy_within(grades), accuracy_within(grades, 0)
    (np.float64(0.95), np.float64(0.7))
    """
    return _accuracy_within(counts, k=check_size(k, "k", 0), zero_division=zero_division)


@compiled
def _accuracy_within(counts: ArrayLike, *, k: int, zero_division: ArrayLike) -> Array:
    c, distance = _with_distances(counts)
    near = distance <= k
    right, wrong = (xp.where(x, c, 0).sum((-2, -1)) for x in (near, ~near))
    return divide(right, right + wrong, zero_division)


@compiled
def macro_absolute_error(counts: ArrayLike) -> Array:
    """Compute the mean over classes of the mean absolute error of their examples, in [0, K - 1].

    The error of an example of class i that is predicted as class j is `|i - j|`. The formula is
    `mean over i of (sum_j C_ij |i - j| / sum_j C_ij)`. Unlike the mean absolute error (MAE) of all
    examples, the value is not small if only rare classes have errors. `counts` is a confusion
    matrix C of shape `(..., K, K)` whose classes are in order. Returns one number per matrix, of
    shape `(...)`. Classes without examples are skipped. If there are no examples, the value is NaN.
    Source: Baccianella, Esuli and Sebastiani (2009), Evaluation measures for ordinal regression,
    ISDA.

    >>> macro_absolute_error([[8, 2, 0], [1, 4, 0], [1, 0, 1]])
    np.float64(0.4666666666666666)
    """
    c, distance = _with_distances(counts)
    n = c.sum(-1)
    errors = divide((c * distance.astype(c.dtype)).sum(-1), n)
    return divide(errors.sum(-1), (n != 0).sum(-1).astype(errors.dtype), xp.nan)
