"""Intervals from few examples with truth and many that were only judged, by a model, say."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import divide, matmul
from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, is_jax, on_device, xp
from jaxmetrics._validation import ArrayLike, as_float, check_level, check_option
from jaxmetrics.estimates import Estimate, Metric, check_transform, normal_estimate, normal_quantile
from jaxmetrics.intervals.clusters import student_quantile
from jaxmetrics.intervals.confidence import Confidence
from jaxmetrics.intervals.delta import standard_error, warn_of_values_outside
from jaxmetrics.intervals.derivatives import jacobian
from jaxmetrics.intervals.likelihoods import in_one_row, likelihood_estimates
from jaxmetrics.intervals.replicates import map_tables
from jaxmetrics.intervals.tables import as_floats, frequencies, numbers_of_examples, where_answered
from jaxmetrics.intervals.units import Units, as_clusters, clustered_error, effective_number

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
    method: Literal["likelihood", "delta"] = "likelihood",
    transform: Literal["logit", "atanh", "log"] | None = None,
    paired: bool = False,
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

    - `"likelihood"`: the values of the metric of R that neither sample refutes, with λ as found;
      see `likelihood_interval`, whose half example more stands for judge's errors not seen.
    - `"delta"`: normal, with the standard error s; of accuracy it is the interval that PPI++ gives
      a mean.

    **The examples with truth must be a random sample of the same population as the others.** Where
    those were labelled that are hard, recent, or doubtful to the judge, its errors among them are
    not its errors elsewhere, and the interval misses the truth without a sign of it. The judge may
    be as bad as it likes, but must not have been fitted to these examples.

    Simulated for n of 50 to 2000, N of n to 100 n, 2 and 3 classes and judges with a kappa of 0 to
    .95 (`bench/judged.py`): `"likelihood"` covered in 94 to 100 %, the more the fewer errors of the
    judge were seen, and `"delta"`, on its scales, in 81 to 97 %, 94 to 96 % with 2000 truths. With
    a kappa of .8 or more and N of 10 n or more, intervals of 2000 truths were 0.29 to 0.77 times as
    wide as from truth alone. With 50, those by likelihood were 0.56 to 1.10 times as wide, and with
    a judge that knows nothing up to 1.04 times; by the delta method never wider.

    Args:
        metric: as for `delta_method`.
        labelled: `(..., K, K, K)`, truth, judge's label, prediction, as `paired_confusion_matrix`
            counts them. Each class should be the truth of five examples or more.
        judged: `(..., K, K)`, judge's label and prediction of examples that are not in `labelled`.
        transform: of the delta method, as for `delta_method`.
        paired: whether two classifiers are compared, A - B: `labelled` is then `(..., K, K, K, K)`,
            truth, judge, A and B, and `judged` `(..., K, K, K)`.
        cluster_axis: of the delta method, the axis with the tables of clusters in `labelled`, -4 of
            `(..., C, K, K, K)`, and next to its own table in `judged`, -3; see `delta_method`. No
            cluster is in both.

    Returns:
        `Estimate` or a pytree of them. Shares in R may be negative where truth is rare, and a
        metric then leave its range. NaN without examples with truth; without others it is the
        interval from truth alone. Under jit NaN for tables that hold no counts.

    Raises:
        ValueError: tables of other shapes, counts that are negative or (likelihood) not whole, a
            level outside of (0, 1), an unknown method or transform, a transform or clusters that
            the method or a difference does not take.

    A judge that errs in 10 % of 200 examples with truth, which alone give 0.825 [0.766, 0.874]:

    >>> import jaxmetrics as jm
    >>> labelled = [[[72, 10], [2, 6]], [[8, 4], [11, 87]]]  # truth, judge, prediction
    >>> judged = [[1640, 310], [265, 1785]]
    >>> prediction_powered(jm.accuracy, labelled, judged)
    0.819 [0.772, 0.861]
    """
    reach = Confidence(check_level(level))
    check_option(method, "method", ("likelihood", "delta"))
    check_transform(transform)
    by_likelihood = method == "likelihood"
    if by_likelihood and (transform, cluster_axis) != (None, None):
        raise ValueError('transform and cluster_axis are for method="delta".')
    if paired and transform is not None:
        raise ValueError("differences have no scale to transform to: leave transform out.")
    truth, others = _as_tables(labelled, judged, paired, whole=by_likelihood)
    ndim, clustered = 3 + paired, cluster_axis is not None
    if cluster_axis is not None:
        next_to_table = cluster_axis + 1 if cluster_axis < 0 else cluster_axis
        truth = as_clusters(truth, cluster_axis, table_ndim=ndim)
        others = as_clusters(others, next_to_table, table_ndim=ndim - 1)
    floats = as_floats(metric)
    if paired:
        floats = partial(_difference, floats)
    k = truth.shape[-1]
    layout = _Layout(k, truth.shape[-ndim - 1] if clustered else None)
    packed = layout.packed(truth, others, ndim)
    packed = where_answered(floats, packed, np.ones((k, k ** (1 + paired))))
    estimates = _prediction_powered(
        packed,
        metric=floats,
        layout=layout,
        reach=reach,
        transform=transform,
        by_likelihood=by_likelihood,
    )
    if transform is not None and not on_device(estimates):
        warn_of_values_outside(estimates, transform)
    return estimates


def _as_tables(
    labelled: ArrayLike, judged: ArrayLike, paired: bool, *, whole: bool
) -> tuple[Array, Array]:
    ndim = 3 + paired
    truth, others = as_float(labelled, "labelled"), as_float(judged, "judged")
    of_truth, of_others = truth.shape[-ndim:], others.shape[1 - ndim :]
    if len(of_truth) < ndim or len({*of_truth, *of_others}) > 1 or of_others != of_truth[1:]:
        axes = ["truth", "judge", *(("A", "B") if paired else ("prediction",))]
        raise ValueError(
            f"labelled must have shape (..., {', '.join('K' * ndim)}) ({', '.join(axes)}), and"
            f" judged the same without the first, got {truth.shape} and {others.shape}."
            " jaxmetrics.paired_confusion_matrix(y_true, y_judge, y_pred) and"
            " confusion_matrix(y_judge, y_pred) make such tables."
        )
    checked: Callable[..., Array] = frequencies
    if whole:
        checked = partial(numbers_of_examples, most=math.inf)
    return (
        checked(truth, "labelled", table_ndim=ndim),
        checked(others, "judged", table_ndim=ndim - 1),
    )


def _difference(metric: Metric, table: Array) -> Any:
    """Return the metric of A minus that of B, of a table `(..., K, K K)`."""
    k = table.shape[-2]
    cube = table.reshape((*table.shape[:-1], k, k))
    return jax.tree.map(lambda a, b: a - b, metric(cube.sum(-1)), metric(cube.sum(-2)))


class _Sample(NamedTuple):
    """How often each of U kinds of examples was seen, in all and in each of C clusters."""

    counts: Array  # (U,)
    clusters: Array | None  # (C, U); None where examples are independent

    @property
    def total(self) -> Array:
        return self.counts.sum()

    def sum_of(self, x: Array) -> Array:
        """Add up numbers `(V, U)` of all examples."""
        return (self.counts * x).sum(-1)

    def products(self, x: Array, y: Array) -> Array:
        """Add up the products of two numbers `(V, U)` of all independent units."""
        if self.clusters is None:
            return self.sum_of(x * y)
        of_x, of_y = (matmul(a, self.clusters.T) for a in (x, y))
        return (of_x * of_y).sum(-1)

    def error(self, value: Array, slopes: Array) -> Array:
        """Return the standard error of a value from its derivatives by the counts, `(U,)`."""
        if self.clusters is None:
            return standard_error(self.counts[None], value, slopes[None], stratified=False)
        centred = slopes - divide(self.sum_of(slopes), self.total)
        return clustered_error(self.clusters, centred[None])[0]


class _Layout(NamedTuple):
    """Say where the counts of both samples stand in one table `(K K + K, W)`, or in one for each
    of C clusters of labelled and D of judged examples, `(C + D, K K + K, W)`.

    W is the number of predictions, or of pairs of them.
    """

    num_classes: int
    num_clusters: int | None  # C

    def packed(self, labelled: Array, judged: Array, ndim: int) -> Array:
        """Join tables of `ndim` and `ndim - 1` axes, and their batch axes."""
        k, apart = self.num_classes, self.num_clusters is not None
        truth = labelled.reshape((*labelled.shape[:-ndim], k * k, -1))
        others = judged.reshape((*judged.shape[: 1 - ndim], k, -1))
        lead = np.broadcast_shapes(*(x.shape[: -2 - apart] for x in (truth, others)))
        truth, others = (
            xp.broadcast_to(x, (*lead, *x.shape[-2 - apart :])) for x in (truth, others)
        )
        if not apart:
            return xp.concatenate([truth, others], -2)
        none = [(0, 0)] * (len(lead) + 1)
        rows = xp.pad(truth, [*none, (0, k), (0, 0)]), xp.pad(others, [*none, (k * k, 0), (0, 0)])
        return xp.concatenate(rows, -3)

    def samples(self, packed: Array) -> tuple[_Sample, _Sample]:
        square = self.num_classes**2
        if self.num_clusters is None:
            return _Sample(packed[:square].ravel(), None), _Sample(packed[square:].ravel(), None)
        truth, others = packed[: self.num_clusters, :square], packed[self.num_clusters :, square:]
        clusters = [x.reshape((len(x), -1)) for x in (truth, others)]
        of_truth, of_others = (_Sample(x.sum(0), x) for x in clusters)
        return of_truth, of_others


@compiled
def _prediction_powered(
    packed: Array,
    *,
    metric: Metric,
    layout: _Layout,
    reach: Confidence,
    transform: str | None,
    by_likelihood: bool,
) -> Any:
    ndim = 2 if layout.num_clusters is None else 3
    function = partial(_of_table, metric, layout, reach, transform, by_likelihood)
    return map_tables(function, packed, math.prod(packed.shape[-ndim:]), table_ndim=ndim)


def _of_table(
    metric: Metric,
    layout: _Layout,
    reach: Confidence,
    transform: str | None,
    by_likelihood: bool,
    packed: Array,
) -> Any:
    if packed.ndim != (2 if layout.num_clusters is None else 3):
        raise ValueError(f"one table at a time, got {packed.shape}.")
    k = layout.num_classes
    labelled, judged = layout.samples(packed)
    cube, others = labelled.counts.reshape((k, k, -1)), judged.counts.reshape((k, -1))
    n, m = labelled.total, judged.total
    by_truth, by_judge = (divide(cube.sum(axis), n, xp.nan) for axis in (1, 0))
    move = divide(others, m) - by_judge

    all_judged = divide(cube.sum(0) + others, n + m)
    near = (1 - _JUDGED) * by_truth + _JUDGED * all_judged
    leaves, structure = jax.tree.flatten(metric(near))
    row = in_one_row(metric, near)
    shares = _tuned(labelled, judged, jacobian(row, near))

    def of_value(i: Array, share: Array) -> Estimate:
        """Estimate value i with its λ."""

        def value_of(table: Array) -> Array:
            return row(table)[..., i]

        if by_likelihood:
            units = _units(cube, others, share)
            return likelihood_estimates(value_of, units, reach)[0]
        table = by_truth + share * move
        value = value_of(table)
        truth, judge, elsewhere = (x[0] for x in _by_example(jacobian(value_of, table)[None]))
        error = labelled.error(value, divide(truth - share * judge, n))
        of_others = judged.error(value, divide(share * elsewhere, m))
        error = xp.hypot(error, xp.where(share > 0, of_others, 0))
        return normal_estimate(value, xp.where(xp.isnan(value), xp.nan, error), t, transform)

    z = normal_quantile(reach.level)
    t: Any = z
    if labelled.clusters is not None:
        t = student_quantile(z, effective_number(labelled.clusters, table_ndim=1) - 1)
    if is_jax(shares):
        estimates = jax.vmap(of_value)(jax.numpy.arange(len(shares)), shares)
    else:
        each = [of_value(i, share) for i, share in enumerate(shares)]
        estimates = jax.tree.map(lambda *x: np.stack(x), *each)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])

    def part(leaf: Array, end: int) -> Estimate:
        return jax.tree.map(
            lambda x: x[end - np.size(leaf) : end].reshape(np.shape(leaf)), estimates
        )

    return jax.tree.unflatten(structure, map(part, leaves, ends))


def _units(cube: Array, others: Array, share: Array) -> Units:
    """Return labelled and judged examples as kinds of units of two strata, `(2, K K W)`."""
    k, _, w = cube.shape
    n, m = cube.sum(), others.sum()
    more = (k - 1) * k * w  # kinds that no judged example can be

    def strata(labelled: Array, judged: Array) -> Array:
        flat = judged.reshape((*judged.shape[:-2], k * w))
        padded = xp.concatenate([flat, xp.zeros((*flat.shape[:-1], more), flat.dtype)], -1)
        return xp.stack([labelled.reshape((*labelled.shape[:-3], -1)), padded], -2)

    def tables(weights: Array) -> Array:
        shares = divide(weights, weights.sum(-1, keepdims=True))
        batch = weights.shape[:-2]
        labelled = shares[..., 0, :].reshape((*batch, k, k, w))
        judged = shares[..., 1, : k * w].reshape((*batch, k, w))
        return (labelled.sum(-2) + share * (judged - labelled.sum(-3)))[..., None, :, :]

    def slopes(by_table: Array) -> Array:
        of_truth, of_judge, of_others = _by_example(by_table)
        return strata(
            divide(of_truth - share * of_judge, n).reshape(cube.shape),
            divide(share * of_others, m).reshape(others.shape),
        )

    ones = xp.ones(others.shape, bool)
    rows = (cube.sum((1, 2)) + cube.sum((0, 2)) + others.sum(1)) == 0
    columns = (cube.sum((0, 1)) + others.sum(0)) == 0
    unused = rows[:, None] | rows  # as truth or as judge's label
    of_rows = strata(unused[:, :, None] & ones[0], rows[:, None] & ones)
    of_columns = strata(columns & xp.ones(cube.shape, bool), columns & ones)
    return Units(
        strata(cube, others),
        strata(xp.ones(cube.shape, bool), ones),
        xp.stack([of_rows, of_columns]),
        tables,
        slopes,
    )


def _tuned(labelled: _Sample, judged: _Sample, slopes: Array) -> Array:
    """Return λ of values `(V,)` from their derivatives by the shares, `(V, K, W)`.

    As PPI++, the variance of the judge is that of both samples, the covariance is of the first.
    """
    truth, judge, others = _by_example(slopes)
    n, m = labelled.total, judged.total
    mean = divide(labelled.sum_of(judge) + judged.sum_of(others), n + m)[:, None]
    squares = labelled.products(judge - mean, judge - mean)
    squares = squares + judged.products(others - mean, others - mean)
    truth, judge = (x - divide(labelled.sum_of(x), n)[:, None] for x in (truth, judge))
    covariance = divide(labelled.products(truth, judge), n)
    share = divide(covariance, divide(squares, n + m - 1) * divide(n + m, m))
    return xp.clip(share, 0, 1)


def _by_example(slopes: Array) -> tuple[Array, Array, Array]:
    """Return derivatives `(V, U)` by what labelled examples add as truth and as judged, and by
    what judged examples add, from those by shares, `(V, K, W)`.
    """
    v, k, w = slopes.shape
    cube = (v, k, k, w)
    as_truth = xp.broadcast_to(slopes[:, :, None], cube)
    as_judged = xp.broadcast_to(slopes[:, None], cube)
    return as_truth.reshape((v, -1)), as_judged.reshape((v, -1)), slopes.reshape((v, -1))
