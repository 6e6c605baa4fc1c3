"""Prediction-powered inference: intervals from a few true labels and many labels of a judge.

The judge labels all examples, and its errors are estimated from the n examples whose truth is
known. T are the shares of each combination (truth, prediction) among these n examples, J are the
shares of each combination (judge's label, prediction) among the same n examples, and J' are the
same shares among the other N examples. The estimate is the metric of the rectified shares
`R = T + λ (J' - J)`.

Let t and j be the derivatives of the metric with respect to an example's contribution to T and to
J. The factor λ minimises the variance `s^2 = var(t - λ j) / n + var(λ j) / N`, so that
`λ = cov(t, j) / (var(j) (1 + n / N))`, clipped to [0, 1]. If λ is 0, the judge is uninformative and
is ignored. If the metric returns several values, each value has its own λ. Source: Angelopoulos,
Duchi and Zrnic (2023), PPI++, arXiv:2311.01453, section 6.

In PPI++, var(j) is from all n + N examples. Here it is from the same n examples as cov(t, j), as in
a regression estimator. For a judge without mistakes, t = j, so that λ is close to 1 / (1 + n / N)
in every sample. With var(j) from all examples, λ would be small in samples with few mistakes and
large in samples with many, and the estimate would be biased upwards. If no labelled example has a
mistake, cov(t, j) and var(j) may be 0. Therefore a tenth of an example is added, with the variance
v of j among all examples and the covariance 5/8 v:
`λ = (n cov(t, j) + v / 16) / ((n var(j) + v / 10) (1 + n / N))`.

The interval contains all values of the metric of R that a likelihood-ratio test of both samples
does not reject, for fixed λ. As in `Likelihood`, a third of an example is added, so that the
interval allows for errors of the judge that did not occur. The time of the computation does not
depend on n and N.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._applied import Applied, read_by
from jaxmetrics._arguments.single import ArrayLike, as_float, check_level
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.chunks import map_chunks
from jaxmetrics._places.compilation import on_host_if_small
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import Array, is_jax, is_known, special, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics.clusters import as_clusters
from jaxmetrics.estimates import Estimate, Metric, with_level
from jaxmetrics.intervals.checks import as_floats, nan_unless
from jaxmetrics.intervals.derivatives import jacobian
from jaxmetrics.intervals.estimation import Confidence, Question, of_samples
from jaxmetrics.intervals.functionals import Functional, Row
from jaxmetrics.intervals.methods import Likelihood
from jaxmetrics.intervals.samples import Design, Sample, absences, in_two_strata, with_any

__all__ = ["prediction_powered"]

# Weight of the judge's labels in the table at which λ is computed. It is positive so that needed
# cells are not empty and derivatives exist. The choice affects λ, and λ only affects the width.
_JUDGED = 0.1
_UNLIKELY = 1e-3  # p-value of the warning that the labelled examples are not a random sample
# Number of examples that are added to compute λ, which only matters if var(j) is almost 0. With a
# hundredth or a whole example, the bias and the error of accuracy change by less than 5 %.
_ADDED = 0.1
# cov(t, j) / var(j) in the added example, which is λ if the labelled examples show no mistakes. It
# would be 1 for a judge without mistakes, whose mean estimate is otherwise too high. It would be
# 1/4 for a judge with three times as many mistakes as the classifier, whose mean estimate is
# otherwise too low. In simulations with n = 50 to 200, the bias of accuracy is at most .003; it is
# .005 with 0.3 or 1 instead.
_SLOPE = 5 / 8


@on_host_if_small
def prediction_powered(
    metric: Metric,
    labelled: ArrayLike,
    judged: ArrayLike,
    *,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Estimate:
    """Estimate a metric from few true labels and many labels that a judge assigned (PPI++).

    The metric is computed from the labels of the judge, such as a language model. It is corrected
    by the judge's errors on the examples whose true label is known. For the formula see
    `jaxmetrics.intervals.judged`.

    **The examples whose true label is known must be a random sample of all examples.** If they were
    chosen because they are hard or recent, or as many of each class, the interval misses the true
    value. There is a warning only if the judge's labels of them and of the others differ (p < .001,
    likelihood-ratio test). The judge must not have been trained on these examples.

    Args:
        metric: a function of counts `(..., K, K)`, or `difference(metric)` for two classifiers.
        labelled: counts of the examples whose true label is known, of shape `(..., K, K, K)`,
            computed by `paired_confusion_matrix(y_true, y_judge, y_pred)`. Each class should have
            at least five examples. If `metric` is a difference, the axes are truth, judge, A and B.
        judged: counts of the other examples, of shape `(..., K, K)`, computed by
            `confusion_matrix(y_judge, y_pred)`. If `metric` is a difference, the axes are judge, A
            and B.
        level: the confidence level.
        cluster_axis: the axis of clusters in `labelled`, which are groups of correlated examples.
            It is -4 for the shape `(..., C, K, K, K)`. In `judged`, clusters are then on axis -3.
            No cluster may be in both arrays.

    Returns:
        `Estimate`, or a dict or tuple of them, within the range of the metric. It is NaN if
        `labelled` is empty. If `judged` is empty, the interval is computed from `labelled` alone.

    Raises:
        ValueError: if the shapes of `labelled` and `judged` do not fit, if counts are negative or
            fractional, or if `level` is not in (0, 1). Under jit, invalid counts give NaN instead.

    In this example, 10 % of the judge's labels are wrong. The 200 examples in `labelled` alone give
    a wider interval, 0.825 [0.766, 0.874]:

    >>> import jaxmetrics as jm
    >>> labelled = [[[72, 10], [2, 6]], [[8, 4], [11, 87]]]  # truth, judge, prediction
    >>> judged = [[1640, 310], [265, 1785]]
    >>> prediction_powered(jm.accuracy, labelled, judged)
    0.819 [0.772, 0.860]
    """
    method, reach = Likelihood(), Confidence(check_level(level))
    reads = read_by(metric)
    is_difference = reads is not None and reads.pairs
    ndim = 3 + is_difference
    tables, (k, width) = _read(labelled, judged, method, ndim, cluster_axis)
    read = Applied(_of_pairs, as_floats(metric)) if is_difference else metric
    if tables.ndim == 2 and is_known(tables):  # a single table without clusters
        _warn_of_unlike(*_unpacked(np.asarray(tables), k))
    design = Design(of_judged, (("num_classes", k),), is_clustered=cluster_axis is not None)
    question = Question.of(read, tables, design, (k, width))
    estimates = of_samples(partial(_rectified, method=method, reach=reach), question)
    return with_level(estimates, level, "prediction-powered")


def _read(
    labelled: ArrayLike, judged: ArrayLike, method: Likelihood, ndim: int, cluster_axis: int | None
) -> tuple[Array, tuple[int, int]]:
    """Return both tables as `_packed` lays them out, and the shape `(K, W)` that metrics read.

    W is the number of predictions K, or the number of pairs of predictions K^2.
    """
    truth, others = as_float(labelled, "labelled"), as_float(judged, "judged")
    shape, expected = others.shape[1 - ndim :], truth.shape[-ndim:]
    if len(expected) < ndim or len({*expected, *shape}) > 1 or shape != expected[1:]:
        axes = ["truth", "judge", *(("A", "B") if ndim > 3 else ("prediction",))]
        reason = " for difference(metric)" if ndim > 3 else ""
        raise ValueError(
            f"labelled must have shape (..., {', '.join('K' * ndim)}){reason}, with the axes"
            f" {', '.join(axes)}, and judged shape (..., {', '.join('K' * (ndim - 1))}), with the"
            f" axes {', '.join(axes[1:])}. Got labelled of shape {truth.shape} and judged of shape"
            f" {others.shape}. To make labelled, use jaxmetrics.paired_confusion_matrix(y_true,"
            " y_judge, y_pred); to make judged, use jaxmetrics.confusion_matrix(y_judge, y_pred)."
        )
    is_clustered = cluster_axis is not None
    check = partial(method.check, is_clustered=is_clustered)
    truth = check(truth, "labelled", table_ndim=ndim)
    others = check(others, "judged", table_ndim=ndim - 1)
    k = others.shape[-1]
    if cluster_axis is not None:
        truth = as_clusters(truth, cluster_axis, table_ndim=ndim)
        next_to_table = cluster_axis + 1 if cluster_axis < 0 else cluster_axis
        others = as_clusters(others, next_to_table, table_ndim=ndim - 1)
    width = k ** (ndim - 2)
    truth = truth.reshape((*truth.shape[:-ndim], k, k, width))
    others = others.reshape((*others.shape[: 1 - ndim], k, width))
    return _packed(truth, others, is_clustered=is_clustered), (k, width)


def _warn_of_unlike(labelled: np.ndarray, judged: np.ndarray) -> None:
    """Warn if the judge's labels show that the labelled examples are not a random sample.

    The likelihood-ratio test holds its level for rare classes, unlike Pearson's.
    """
    counts = np.stack([labelled.sum((0, 2)), judged.sum(1)])
    sizes, of_all = counts.sum(1, keepdims=True), counts.sum(0)
    expected = sizes * divide(of_all, sizes.sum())
    half_statistic, freedom = special.rel_entr(counts, expected).sum(), np.sum(of_all > 0) - 1
    if freedom > 0 and special.gammaincc(freedom / 2, half_statistic) < _UNLIKELY:
        shares = divide(counts, sizes)
        i = int(np.argmax(abs(shares[0] - shares[1])))
        warn(
            f"the examples in labelled are not a random sample: the judge assigns class {i} to"
            f" {shares[0, i]:.1%} of them, but to {shares[1, i]:.1%} of the examples in judged. The"
            " estimate may be far from the true value. Label examples that were drawn at random;"
            " a set with equally many examples of each class is not a random sample."
        )


def _of_pairs(metric: Metric, table: Array) -> Any:
    """Compute a metric of pairs `(..., K, K, K)` from a table `(..., K, K K)`."""
    k = table.shape[-2]
    return metric(table.reshape((*table.shape[:-1], k, k)))


def _packed(labelled: Array, judged: Array, *, is_clustered: bool = False) -> Array:
    """Lay out both tables, `(..., K, K, W)` and `(..., K, W)`, as two rows `(..., 2, K K W)`.

    The judged table fills the first K W columns of its row.
    """
    cells = labelled.reshape((*labelled.shape[:-3], math.prod(labelled.shape[-3:])))
    fewer = judged.reshape((*judged.shape[:-2], math.prod(judged.shape[-2:])))
    return in_two_strata(cells, fewer, is_clustered=is_clustered)


def _unpacked(packed: Array, k: int) -> tuple[Array, Array]:
    cubes = packed.reshape((*packed.shape[:-1], k, k, -1))
    return cubes[..., 0, :, :, :], cubes[..., 1, 0, :, :]


def _rectified(metric: Functional, method: Likelihood, reach: Confidence) -> Any:
    """Estimate each value of the metric with its own λ."""
    alone, row = metric.sample, metric.row
    k = alone.tables(alone.counts).shape[-2]
    labelled, judged = _unpacked(alone.counts, k)
    by_judge = labelled.sum(0) + judged
    # The shares of (truth, prediction), mixed with a small part of the judge's shares.
    near = (1 - _JUDGED) * divide(labelled.sum(1), labelled.sum(), xp.nan)
    near = near + _JUDGED * divide(by_judge, by_judge.sum())
    shares = _tuned(alone, jacobian(row, near))

    def of_value(i: Array, share: Array) -> Estimate:
        sample = of_judged(alone.counts, num_classes=k, share=share)
        sample = sample._replace(clusters=alone.clusters)
        row_of_one, _ = method.estimate(Functional(sample, _Value(row, i), ((1,),)), reach)
        estimate = trees.map(lambda x: x[0], row_of_one)
        return nan_unless(sample.counts[0].sum() > 0, estimate)

    if is_jax(shares):
        number = len(shares)  # on a CPU one by one, as in `likelihood_limits`
        return map_chunks(jax.vmap(of_value), 1, jax.numpy.arange(number), shares, times=number)
    each = [of_value(i, share) for i, share in enumerate(shares)]
    return trees.map(lambda *x: np.stack(x), *each)


class _Value(Row):
    """A single value of a row, as a function of tables."""

    size = 1

    def __init__(self, row: Row, i: Array) -> None:
        self._row, self._i = row, i

    def __call__(self, tables: Array) -> Array:
        return self._row(tables)[..., self._i][..., None]


def of_judged(counts: Array, *, num_classes: int, share: Array | float = 0.0) -> Sample:
    """Return the sample of labelled and judged examples, which are two strata, `(2, K K W)`.

    Its table contains the rectified shares. `share` is λ.
    """
    k = num_classes
    totals = counts.sum(-1, keepdims=True)
    signs = np.array([[-1.0], [1.0]], counts.dtype)

    def tables(numbers: Array) -> Array:
        labelled, judged = _unpacked(divide(numbers, numbers.sum(-1, keepdims=True)), k)
        rectified = labelled.sum(-2) + share * (judged - labelled.sum(-3))
        return _not_negative(rectified)[..., None, :, :]

    def adjoint(slopes: Array) -> Array:
        truth, judge = _by_example(slopes[0])
        return divide(truth + signs * share * judge, totals)

    everything = xp.ones((k, k, counts.shape[-1] // (k * k)), bool)
    unused, possible = _unused(*_unpacked(counts, k)), _packed(everything, everything[0])
    return Sample(counts, tables, adjoint, unused, possible=possible, rows=2)


def _unused(labelled: Array, judged: Array) -> Array:
    """Return the kinds of examples that have a label or a prediction that does not occur.

    A label occurs if it is the truth or the judge's label of an example.
    """
    k, w = judged.shape
    of_label = labelled.sum((1, 2)) + labelled.sum((0, 2)) + judged.sum(1)
    of_pred = labelled.sum((0, 1)) + judged.sum(0)
    pairs = of_pred.reshape((k, -1))
    of_preds = (of_pred,) if w == k else (pairs.sum(1), pairs.sum(0))
    label, *preds = absences(of_label, *of_preds)
    with_truth, without = with_any(label, label, *preds), with_any(label, *preds)
    return _packed(with_truth.reshape((-1, k, k, w)), without.reshape((-1, k, w)))


def _by_example(slopes: Array) -> tuple[Array, Array]:
    """Return derivatives with respect to examples from derivatives with respect to shares.

    From derivatives `(..., K, W)`, return two arrays `(..., 2, U)`, because an example contributes
    to the shares by its truth and by its judge's label.
    """
    *batch, k, w = slopes.shape
    as_truth, as_judge = (
        xp.broadcast_to(x, (*batch, k, k, w))
        for x in (slopes[..., :, None, :], slopes[..., None, :, :])
    )
    return _packed(as_truth, xp.zeros_like(slopes)), _packed(as_judge, slopes)


def _tuned(sample: Sample, slopes: Array) -> Array:
    """Return λ for values `(V,)` from their derivatives with respect to the shares, `(V, K, W)`."""
    counts = sample.counts
    n, m = counts.sum(-1)
    truth, judge = _by_example(slopes)
    mean = divide((counts * judge).sum((-2, -1)), n + m)[:, None, None]
    added = _ADDED * divide(sample.products(judge - mean, judge - mean).sum(-1), n + m)
    truth, judge = (
        x - divide((counts * x).sum(-1), counts.sum(-1))[..., None] for x in (truth, judge)
    )
    covariance, squares = (sample.products(x, judge)[:, 0] for x in (truth, judge))
    share = divide(m, n + m) * divide(covariance + _SLOPE * added, squares + added)
    return xp.clip(share, 0, 1)


def _not_negative(shares: Array) -> Array:
    """Set negative rectified shares `(..., K, W)` to 0.

    Positive shares are scaled so that the share of correct predictions does not change, and the
    estimate of accuracy stays unbiased. For pairs of predictions, this applies to the shares for
    which A, B or both are correct.
    """
    k, w = shares.shape[-2:]
    truth, pairs = np.arange(k)[:, None], np.stack(np.divmod(np.arange(w), k))
    right = pairs[:, None] == truth  # (2, K, W)
    kinds = right[0] + 2 * right[1] if w > k else np.eye(k, dtype=int)
    positive = xp.maximum(shares, 0)
    result: Array = 0.0
    for kind in np.unique(kinds):
        total, above = (xp.where(kinds == kind, x, 0).sum((-2, -1)) for x in (shares, positive))
        scale = divide(xp.maximum(total, 0), above)[..., None, None]
        result = result + xp.where(kinds == kind, positive * scale, 0)
    return result
