"""Intervals from few examples with truth and many that were only judged, by a model, say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxmetrics._applied import Applied, read_by
from jaxmetrics._arithmetic import divide
from jaxmetrics._compilation import compiled
from jaxmetrics._jax import jax, trees
from jaxmetrics._namespaces import Array, is_jax, xp
from jaxmetrics._validation import ArrayLike, as_float, check_axis, check_level
from jaxmetrics.clusters import as_clusters
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals.checks import as_floats, nan_unless, placed
from jaxmetrics.intervals.confidence import Confidence
from jaxmetrics.intervals.derivatives import jacobian
from jaxmetrics.intervals.functionals import Functional, Row
from jaxmetrics.intervals.methods import Likelihood
from jaxmetrics.intervals.replicates import map_tables
from jaxmetrics.intervals.samples import Sample

__all__ = ["prediction_powered"]

# By how much the table at which λ is found leans to the judge's labels: so no cell is empty that an
# example adds to, and derivatives exist. λ only sets the width, whatever the table.
_JUDGED = 0.1


def prediction_powered(
    metric: Metric,
    labelled: ArrayLike,
    judged: ArrayLike,
    *,
    level: float = 0.95,
    cluster_axis: int | None = None,
) -> Any:
    """Estimate a metric from n examples with truth and N with only a judge's label in its place.

    What the judge gets wrong is learnt from the examples with truth, which it labels, too. With T
    the shares of (truth, prediction) among these, J those of (judge's label, prediction), and J'
    the same among the others, the metric is that of the rectified shares `R = T + λ (J' - J)`. With
    t and j the derivatives of the metric by what an example adds to T and to J, λ makes
    `s^2 = var(t - λ j) / n + var(λ j) / N` least: `λ = cov(t, j) / (var(j) (1 + n / N))`, one for
    each value, from 0, where the judge knows nothing and is left out, to 1. Angelopoulos, Duchi and
    Zrnic (2023), PPI++, arXiv:2311.01453, section 6. The cost does not depend on n and N.

    The interval holds the values of the metric of R that neither sample refutes, with λ as found:
    see `Likelihood`, whose third of an example more stands for judge's errors not seen.

    **The examples with truth must be a random sample of the same population as the others.** Where
    those were labelled that are hard, recent, or doubtful to the judge, its errors among them are
    not its errors elsewhere, and the interval misses the truth without a sign of it. The judge may
    be as bad as it likes, but must not have been fitted to these examples.

    How often it covers, and how much narrower it is than the interval from truth alone: the guide's
    page on intervals, from `bench/judged.py`.

    Args:
        metric: as for `interval`; `difference(metric)` compares two classifiers: `labelled` is then
            `(..., K, K, K, K)`, truth, judge, A and B, and `judged` `(..., K, K, K)`.
        labelled: `(..., K, K, K)`, truth, judge's label, prediction, as `paired_confusion_matrix`
            counts them. Each class should be the truth of five examples or more.
        judged: `(..., K, K)`, judge's label and prediction of examples that are not in `labelled`.
        cluster_axis: the axis with the tables of clusters in `labelled`, -4 of `(..., C, K, K, K)`,
            and next to its own table in `judged`, -3. No cluster is in both.

    Returns:
        `Estimate` or a pytree of them. Shares in R below 0, which occur where truth is rare, count
        as 0, and the others less, so that the share of right predictions stays as it is. So the
        value and the ends stay in the metric's range. NaN without examples with truth; without
        others it is the interval from truth alone. Under jit NaN for tables that hold no counts.

    Raises:
        ValueError: tables of other shapes, counts that are negative or not whole, a level outside
            of (0, 1).

    A judge that errs in 10 % of 200 examples with truth, which alone give 0.825 [0.766, 0.874]:

    >>> import jaxmetrics as jm
    >>> labelled = [[[72, 10], [2, 6]], [[8, 4], [11, 87]]]  # truth, judge, prediction
    >>> judged = [[1640, 310], [265, 1785]]
    >>> prediction_powered(jm.accuracy, labelled, judged)
    0.819 [0.772, 0.860]
    """
    method, reach = Likelihood(), Confidence(check_level(level))
    reads = read_by(metric)
    is_difference = reads is not None and reads.pairs
    ndim, is_clustered = 3 + is_difference, cluster_axis is not None
    given = as_float(labelled, "labelled"), as_float(judged, "judged")
    _check_shapes(*given, ndim)
    tables = [
        method.check(x, name, table_ndim=axes, is_clustered=is_clustered)
        for x, name, axes in zip(given, ("labelled", "judged"), (ndim, ndim - 1), strict=True)
    ]
    if cluster_axis is not None:
        check_axis(cluster_axis, "cluster_axis")
        next_to_table = cluster_axis + 1 if cluster_axis < 0 else cluster_axis
        tables = [
            as_clusters(x, axis, table_ndim=axes)
            for x, axis, axes in zip(
                tables, (cluster_axis, next_to_table), (ndim, ndim - 1), strict=True
            )
        ]
    k = given[0].shape[-1]
    truth, others = tables
    packed = _packed(truth, others, k, ndim, is_clustered)
    floats = as_floats(metric)
    if is_difference:
        floats = Applied(_of_pairs, floats)
    floats, packed = placed(floats, packed, np.ones((k, packed.shape[-1])))
    return _prediction_powered(
        packed, metric=floats, k=k, is_clustered=is_clustered, method=method, reach=reach
    )


def _check_shapes(truth: Array, others: Array, ndim: int) -> None:
    of_truth, of_others = truth.shape[-ndim:], others.shape[1 - ndim :]
    if len(of_truth) < ndim or len({*of_truth, *of_others}) > 1 or of_others != of_truth[1:]:
        axes = ["truth", "judge", *(("A", "B") if ndim > 3 else ("prediction",))]
        raise ValueError(
            f"labelled must have shape (..., {', '.join('K' * ndim)}) ({', '.join(axes)}), and"
            " judged the same without the first"
            f"{', for difference(metric)' if ndim > 3 else ''}, got {truth.shape} and"
            f" {others.shape}."
            " jaxmetrics.paired_confusion_matrix(y_true, y_judge, y_pred) and"
            " confusion_matrix(y_judge, y_pred) make such tables."
        )


def _packed(truth: Array, others: Array, k: int, ndim: int, is_clustered: bool) -> Array:
    """Join both to tables `(..., K K + K, W)`, those of clusters to `(..., C + D, K K + K, W)`.

    W is the number of predictions, or of pairs of them.
    """
    truth = truth.reshape((*truth.shape[:-ndim], k * k, -1))
    others = others.reshape((*others.shape[: 1 - ndim], k, -1))
    own = 2 + is_clustered
    lead = np.broadcast_shapes(*(x.shape[:-own] for x in (truth, others)))
    truth, others = (xp.broadcast_to(x, (*lead, *x.shape[-own:])) for x in (truth, others))
    if not is_clustered:
        return xp.concatenate([truth, others], -2)
    none = [(0, 0)] * (len(lead) + 1)
    rows = xp.pad(truth, [*none, (0, k), (0, 0)]), xp.pad(others, [*none, (k * k, 0), (0, 0)])
    return xp.concatenate(rows, -3)


def _of_pairs(metric: Metric, table: Array) -> Any:
    """Compute a metric of pairs `(..., K, K, K)` from a table `(..., K, K K)`."""
    k = table.shape[-2]
    return metric(table.reshape((*table.shape[:-1], k, k)))


@compiled
def _prediction_powered(
    packed: Array,
    *,
    metric: Metric,
    k: int,
    is_clustered: bool,
    method: Likelihood,
    reach: Confidence,
) -> Any:
    w, ndim = packed.shape[-1], 2 + is_clustered
    row = Row(metric, xp.ones_like(packed, shape=(k, w)))

    def of_table(packed: Array) -> Estimate:
        units = packed.reshape((-1, k * k + k, w))
        alone = _sample(units, xp.zeros_like(units, shape=()), is_clustered)
        shares = _tuned(alone, jacobian(row, _near(units.sum(0), k)))

        def of_value(i: Array, share: Array) -> Estimate:
            """Estimate value i with its λ."""
            sample = _sample(units, share, is_clustered)
            value = Functional(sample, _Value(row, i), ((1,),))
            found, _ = method.estimate(value, reach)
            found = trees.map(lambda x: x[0], found)
            return nan_unless(sample.counts[0].sum() > 0, found)

        if is_jax(shares):
            return jax.vmap(of_value)(jax.numpy.arange(len(shares)), shares)
        each = [of_value(i, share) for i, share in enumerate(shares)]
        return trees.map(lambda *x: np.stack(x), *each)

    numbers = math.prod(packed.shape[packed.ndim - ndim :])
    rows = map_tables(of_table, packed, numbers, table_ndim=ndim)
    return row.unflatten(rows, packed.ndim - ndim)


class _Value(Row):
    """One value of a row."""

    size = 1

    def __init__(self, row: Row, i: Array) -> None:
        self._row, self._i = row, i

    def __call__(self, tables: Array) -> Array:
        return self._row(tables)[..., self._i][..., None]


def _near(table: Array, k: int) -> Array:
    """Return shares of truth and prediction that lean to the judge's, from `(K K + K, W)`."""
    cube, others = table[: k * k].reshape((k, k, -1)), table[k * k :]
    all_judged = divide(cube.sum(0) + others, table.sum())
    return (1 - _JUDGED) * divide(cube.sum(1), cube.sum(), xp.nan) + _JUDGED * all_judged


def _sample(units: Array, share: Array, is_clustered: bool) -> Sample:
    """Return labelled and judged examples, `(C, K K + K, W)`, as kinds in two strata, whose table
    is that of the rectified shares.
    """
    number, rows, w = units.shape
    k = math.isqrt(rows)  # K^2 + K lies below (K + 1)^2
    clusters = _strata(units[:, : k * k].reshape((number, k, k, w)), units[:, k * k :])
    counts = clusters.sum(0)
    totals = counts.sum(-1, keepdims=True)
    signs = np.array([[-1.0], [1.0]], counts.dtype)

    def tables(numbers: Array) -> Array:
        shares = divide(numbers, numbers.sum(-1, keepdims=True))
        labelled = shares[..., 0, :].reshape((*numbers.shape[:-2], k, k, w))
        judged = shares[..., 1, : k * w].reshape((*numbers.shape[:-2], k, w))
        rectified = labelled.sum(-2) + share * (judged - labelled.sum(-3))
        return _not_negative(rectified)[..., None, :, :]

    def adjoint(slopes: Array) -> Array:
        truth, judge = _by_example(slopes[0])
        return divide(truth + signs * share * judge, totals)

    everything = xp.ones((k, k, w), bool)
    return Sample(
        counts,
        tables,
        adjoint,
        _unused(counts, everything.shape),
        possible=_strata(everything, everything[0]),
        rows=2,
        clusters=clusters if is_clustered else None,
    )


def _strata(labelled: Array, judged: Array) -> Array:
    """Lay out numbers by kind, `(..., K, K, W)` and `(..., K, W)`, as `(..., 2, U)`.

    No judged example can be of the kinds behind the first K W.
    """
    flat = labelled.reshape((*labelled.shape[:-3], -1))
    first = judged.reshape((*judged.shape[:-2], -1))
    rest = xp.zeros((*first.shape[:-1], flat.shape[-1] - first.shape[-1]), first.dtype)
    return xp.stack([flat, xp.concatenate([first, rest], -1)], -2)


def _unused(counts: Array, shape: tuple[int, ...]) -> Array:
    """Return the kinds with a class that is neither truth nor judge's label, or with a prediction
    that does not occur.
    """
    k, _, w = shape
    cube, others = counts[0].reshape(shape), counts[1, : k * w].reshape((k, w))
    no_label = (cube.sum((1, 2)) + cube.sum((0, 2)) + others.sum(1)) == 0
    no_prediction = (cube.sum((0, 1)) + others.sum(0)) == 0
    of_labels = (no_label[:, None] | no_label)[..., None], no_label[:, None]
    groups = (of_labels, (no_prediction, no_prediction))
    return xp.stack(
        [_strata(xp.broadcast_to(a, shape), xp.broadcast_to(b, (k, w))) for a, b in groups]
    )


def _by_example(slopes: Array) -> tuple[Array, Array]:
    """Return derivatives by what examples add as truth and as judged, each `(..., 2, U)`, from
    those by shares, `(..., K, W)`.
    """
    *batch, k, w = slopes.shape
    as_truth, as_judge = (
        xp.broadcast_to(x, (*batch, k, k, w)).reshape((*batch, -1))
        for x in (slopes[..., :, None, :], slopes[..., None, :, :])
    )
    none = xp.zeros_like(as_truth)
    elsewhere = xp.concatenate([slopes.reshape((*batch, -1)), none[..., k * w :]], -1)
    return xp.stack([as_truth, none], -2), xp.stack([as_judge, elsewhere], -2)


def _tuned(sample: Sample, slopes: Array) -> Array:
    """Return λ of values `(V,)` from their derivatives by the shares, `(V, K, W)`.

    As PPI++, the variance of the judge is that of both samples, the covariance is of the first.
    """
    counts = sample.counts
    n, m = counts.sum(-1)
    truth, judge = _by_example(slopes)
    mean = divide((counts * judge).sum((-2, -1)), n + m)[:, None, None]
    squares = sample.products(judge - mean, judge - mean).sum(-1)
    truth, judge = (
        x - divide((counts * x).sum(-1), counts.sum(-1))[..., None] for x in (truth, judge)
    )
    covariance = divide(sample.products(truth, judge)[:, 0], n)
    share = divide(covariance, divide(squares, n + m - 1) * divide(n + m, m))
    return xp.clip(share, 0, 1)


def _not_negative(shares: Array) -> Array:
    """Put 0 in the place of shares `(..., K, W)` below it, where more was rectified than there was.

    The others are scaled, so that the share of right predictions stays as it is (of pairs: of A, of
    B and of both), and accuracies without bias.
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
