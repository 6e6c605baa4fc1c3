"""Chance-corrected agreement coefficients, such as Cohen's kappa, from a confusion matrix."""

from __future__ import annotations

from typing import Literal

import numpy as np

from jaxmetrics._applied import refuse_unknown_order
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import ArrayLike, as_counts, as_square, check_option
from jaxmetrics._numerics.arithmetic import divide, weighted_sum
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.namespaces import Array, Arrays, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._sums.cell_sums import off_diagonal, others, proportions
from jaxmetrics.metrics.ordinal import distances

Weights = Literal["linear", "quadratic"] | ArrayLike | None

__all__ = ["cohen_kappa", "krippendorff_alpha"]

_CHANCES = ("marginals", "pooled", "uniform", "majority", "gwet")


@compiled
def cohen_kappa(
    counts: ArrayLike,
    *,
    weights: Weights = None,
    chance: Literal["marginals", "pooled", "uniform", "majority", "gwet"] = "marginals",
) -> Array:
    """Compute Cohen's kappa `1 - D_o / D_e` <= 1, or a similar coefficient of agreement.

    `D_o = sum_ij w_ij p_ij` is the observed mean disagreement. Here `p = counts / n`, and w_ij is
    the cost of predicting class j for an example of class i. `D_e` is the mean disagreement
    expected by chance: the same sum with another probability instead of p_ij. Let t_i be the
    fraction of examples whose true class is i, and q_j the fraction predicted as class j. Depending
    on `chance`, this probability is:

    - `"marginals"`: `t_i q_j`, which gives Cohen's kappa (1960).
    - `"pooled"`: `m_i m_j`, where `m = (t + q) / 2`, which gives Scott's pi (1955). Fleiss'
      kappa (1971) of two raters is equal to Scott's pi.
    - `"uniform"`: `1 / K^2`, which gives the coefficient S of Bennett, Alpert and Goldstein (1954).
    - `"majority"`: `t_i` if class j is the most common true class, and 0 otherwise. This class is
      determined for each table, so its share is not treated as known by intervals. If several
      classes may be the most common one, its share is too high on average, and the value and its
      interval lie too low.
    - `"gwet"`: the coefficient is Gwet's AC1 (2008). Its agreement expected by chance is
      `T_a / (K (K - 1)) sum_k m_k (1 - m_k)`, where T_a is the sum of `1 - w_ij / max w` over all i
      and j.

    Args:
        counts: confusion matrix of shape `(..., K, K)`.
        weights: the costs `w_ij`. None means that all mistakes have cost 1, "linear" means
            `|i - j|`, "quadratic" means `(i - j)^2` (Cohen 1968). Other costs are given as a
            `(K, K)` array.
        chance: the model of agreement by chance, one of these five. "uniform" and "gwet" count all
            K classes, even if they do not occur; for codes 1 and 2, count with `labels=[1, 2]`.

    Returns:
        One number per matrix, of shape `(...)`. The value is NaN if `D_e` is 0, as in scikit-learn,
        for example if only one class occurs.

    Raises:
        ValueError: if `weights` or `chance` is not one of the values listed above.

    >>> ratings = [[4, 1, 0], [1, 3, 1], [0, 2, 8]]
    >>> cohen_kappa(ratings), cohen_kappa(ratings, weights="quadratic")
    (np.float64(0.6078), np.float64(0.8148))
    >>> cohen_kappa(ratings, chance="gwet")
    np.float64(0.6334)
    """
    observed, expected = _mean_disagreement(counts, weights, chance)
    return 1 - divide(observed, expected, xp.nan)


@compiled
def krippendorff_alpha(counts: ArrayLike, *, weights: Weights = None) -> Array:
    """Compute Krippendorff's alpha of two raters, `1 - (N - 1) / N * D_o / D_e`, at most 1.

    Both raters rate all n examples, so there are N = 2 n ratings. `D_o` and `D_e` are the same as
    in `cohen_kappa(chance="pooled")`. Alpha is Scott's pi with a correction for small samples. It
    depends on n, so do not normalise `counts`. Source: Krippendorff (2011), Computing
    Krippendorff's alpha-reliability, equation for two observers.

    Args:
        counts: matrix of shape `(..., K, K)` with a row per class of the first rater and a column
            per class of the second.
        weights: cost if one rater says class i and the other says class j. None means 1 if i != j,
            for nominal data. "linear" means `|i - j|`. "quadratic" means `(i - j)^2`, for interval
            data. A `(K, K)` array contains other costs.

    Returns:
        One number per matrix, of shape `(...)`. The value is NaN if only one class occurs or if
        `N <= 1`.

    Raises:
        ValueError: if `weights` is not None, "linear", "quadratic" or an array of shape `(K, K)`.

    >>> krippendorff_alpha([[4, 1], [1, 4]]), cohen_kappa([[4, 1], [1, 4]], chance="pooled")
    (np.float64(0.62), np.float64(0.6))
    """
    num_ratings = 2 * as_counts(counts).sum((-2, -1))
    observed, expected = _mean_disagreement(counts, weights, "pooled")
    expected = xp.where(num_ratings > 1, expected, 0)
    return 1 - divide(observed * divide(num_ratings - 1, num_ratings), expected, xp.nan)


def _mean_disagreement(counts: ArrayLike, weights: Weights, chance: str) -> Arrays:
    """Compute `D_o` and `D_e` of `cohen_kappa`; both are 0 if there are no examples."""
    check_order(counts=counts, weights=weights)
    check_option(chance, "chance", _CHANCES)
    p = proportions(counts)
    if chance in ("uniform", "gwet"):
        _warn_of_absent_zero(as_counts(counts), chance)
    k, t, q = p.shape[-1], p.sum(-1), p.sum(-2)
    if weights is not None and k > 2:
        refuse_unknown_order()
    w = None if weights is None else _disagreement(weights, k).astype(p.real.dtype)
    observed = off_diagonal(p).sum((-2, -1)) if w is None else weighted_sum(p, w)
    a, b = _marginals(t, q, chance)
    if chance == "gwet":
        largest = min(1, k - 1) if w is None else w.max()
        total_agreement = k if w is None else k**2 - divide(w.sum(), largest)
        agreement = total_agreement / max(1, k * (k - 1)) * (a * (1 - a)).sum(-1)
        expected = largest * (1 - agreement)
    elif w is None:  # this needs K numbers instead of K^2
        expected = (a * others(b)).sum(-1)
    else:
        expected = weighted_sum(a[..., :, None] * b[..., None, :], w)
    return observed, xp.where((p != 0).any((-2, -1)), expected, 0)


def _warn_of_absent_zero(counts: Array, chance: str) -> None:
    """Warn if one matrix has no class 0, as of codes from 1 that were counted without labels."""
    if not isinstance(counts, np.ndarray) or counts.ndim > 2 or not counts.any():
        return
    if ((counts.sum(0) + counts.sum(1)) != 0).sum() < 2:
        return
    # The tables that an interval tries are batches or not whole numbers.
    if not (counts[0].any() or counts[:, 0].any()) and (counts == np.round(counts.real)).all():
        warn(
            "class 0 occurs neither among the true labels nor among the predictions, but"
            f" chance={chance!r} counts it as one of {counts.shape[-1]} classes. If the labels"
            " begin at 1, pass labels=[1, 2, ...] with all classes to confusion_matrix."
        )


def _marginals(t: Array, q: Array, chance: str) -> Arrays:
    """Return the fractions of true and predicted classes under the chance model, of shape
    `(..., K)`.
    """
    if chance == "marginals":
        return t, q
    if chance == "majority":
        return t, (xp.argmax(t, -1)[..., None] == np.arange(t.shape[-1])).astype(t.dtype)
    m = xp.full_like(t, 1 / t.shape[-1]) if chance == "uniform" else (t + q) / 2
    return m, m


def _disagreement(weights: Literal["linear", "quadratic"] | ArrayLike, k: int) -> Array:
    """Return the costs w_ij of disagreement, of shape `(K, K)`."""
    if isinstance(weights, str):
        if weights not in ("linear", "quadratic"):
            raise ValueError(
                f'weights must be None, "linear", "quadratic" or a (K, K) array, got {weights!r}.'
            )
        return distances(k) ** (1 if weights == "linear" else 2)
    return as_square(weights, k, "weights")
