"""Rankings of many classifiers on the same examples.

The covariance matrix of the M values is estimated by the delta method. It accounts for errors that
several classifiers make on the same examples.

- **`probability_best`** is the probability that a classifier is the best, if the true values of
  all classifiers come from one normal distribution (empirical Bayes). The observed values are
  shrunk towards their mean. If the true values of two classifiers are equal, the probability of the
  one with the higher observed value is too high. If one classifier is by far the best, its
  probability is much too low. So tables do not contain it; decide by ranks and tiers.
- **`rank_low`, `rank_high` and `tiers`** come from a step-down max-t test of all pairs of
  classifiers (Romano and Wolf 2005). `rank_low` is 1 plus the number of significantly better
  classifiers. `rank_high` is M minus the number of significantly worse classifiers: Mogstad,
  Romano, Shaikh and Wilhelm (2024), Review of Economic Studies 91.
- **`winner_estimate`** is the value of the winner, corrected for its selection as the best. Random
  noise is added to all values to select the winner. The same noise is subtracted from the values to
  evaluate the winner. This is like selecting the winner on one half of the examples and evaluating
  it on the other half. The estimate is not biased upwards, but may be slightly too low. The lower
  end of its interval is lowered by the same correction as the value.
"""

from __future__ import annotations

import html
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jaxmetrics._arguments.example_arguments import read_examples
from jaxmetrics._arguments.indices import check_order, named_systems
from jaxmetrics._arguments.keys import Key, KeyLike, place, split
from jaxmetrics._arguments.single import (
    IGNORED,
    ArrayLike,
    are_valid,
    as_array,
    as_mask,
    check_level,
    shapes_of,
)
from jaxmetrics._numerics.arithmetic import divide, matmul, pick
from jaxmetrics._places.chunks import LANES
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import Array, float_dtype, is_jax, is_known, lax, xp
from jaxmetrics._sums.counting import class_ids
from jaxmetrics._text.printing import Backend, frame_of
from jaxmetrics._text.standings import as_dict, ranking, shown_ranking
from jaxmetrics.clusters import (
    check_size_of_tables,
    number_of_clusters,
    numbered_clusters,
)
from jaxmetrics.comparisons._rankings import (
    UNSEEN,
    draws_of,
    layers,
    optimism,
    shares_of_firsts,
    shown_above,
    variances_of_differences,
)
from jaxmetrics.counts import class_axes, confusion_matrix, named_classes
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals.checks import as_floats, check_num_samples, nan_unless, placed
from jaxmetrics.intervals.derivatives import jacobian
from jaxmetrics.intervals.functionals import Row
from jaxmetrics.intervals.methods import IntervalMethod, Likelihood, check_method, interval
from jaxmetrics.intervals.replicates import map_tables

__all__ = ["Leaderboard", "leaderboard"]


class _Leaderboard(NamedTuple):
    estimates: Estimate
    probability_best: Array
    winner: Array
    winner_estimate: Estimate
    rank_low: Array
    rank_high: Array
    tiers: Array


class Leaderboard(_Leaderboard):
    """Ranking of M classifiers by one metric, as returned by `leaderboard` and `score_leaderboard`.

    Attributes:
        estimates: `(M,)`, the metric of each classifier. The greatest value is too high on average,
            because it was selected as the greatest. See `winner_estimate`.
        probability_best: `(M,)`, the probability that the classifier is the best of all in the
            population of examples, if the true values come from one normal distribution. It can be
            far too low or too high for other true values.
        winner: the index of the classifier with the highest value. If several classifiers have this
            value, it is the first of them.
        winner_estimate: the expected value of the winner on new examples, corrected for its
            selection as the best.
        rank_low, rank_high: `(M,)`, the confidence interval of the true rank of each classifier.
            Rank 1 is the best. With probability `level`, all M intervals contain the true ranks.
        tiers: `(M,)`, the tier of each classifier. Tier 1 is the best. Within a tier, no classifier
            is significantly better than another. Each classifier of tier t > 1 is significantly
            worse than some classifier of tier t - 1. With probability `level`, all these
            differences are real.
        names: the names of the classifiers, if they were given in a dict or a data frame.

    A `Leaderboard` prints as a table of at most 20 classifiers, sorted by tier and value. Methods
    such as `to_text`, `to_html` and `to_frame` write all classifiers. They take an argument `names`
    with the names of the classifiers. The default is the attribute `names`, or "0" to "M - 1".

    >>> import jaxmetrics as jm
    >>> y_true = [0, 0, 1, 1, 1, 0] * 20
    >>> y_preds = [[0, 0, 1, 1, 1, 1] * 20, [0, 1, 1, 1, 0, 1] * 20, [0, 0, 1, 1, 0, 0] * 20]
    >>> board = leaderboard(jm.accuracy, y_true, y_preds)
    >>> print(board.to_text(["old", "tiny", "new"]))
    classifier  value [low, high]     ranks   tier
    old         0.833 [0.757, 0.893]  1 to 2  1
    new         0.833 [0.757, 0.893]  1 to 2  1
    tiny        0.500 [0.410, 0.590]  3       2
    <BLANKLINE>
    old and new cannot be told apart.
    tiny is shown to be worse than one above.
    Expected for the winner, old, on new examples: 0.813 [0.737, 0.893].
    """

    # Not a field, because compiled functions return arrays only.
    names: Sequence[str] | None = None

    def __repr__(self) -> str:
        """Return the ranking as text or, if values are unknown under jit, the named tuple."""
        written = shown_ranking(self)
        return super().__repr__() if written is None else written.text()

    def _repr_html_(self) -> str:
        written = shown_ranking(self)
        return html.escape(repr(self)) if written is None else written.html()

    def to_text(self, names: Sequence[str] | None = None) -> str:
        """Return the ranking of all classifiers as text.

        Raises:
            ValueError: if the number of names is not M, if this object contains a batch of
                leaderboards, or if values are unknown under jit.
        """
        return ranking(self, names).text()

    def to_markdown(self, names: Sequence[str] | None = None) -> str:
        """Return the ranking as a Markdown table and sentences; for errors see `to_text`."""
        return ranking(self, names).markdown()

    def to_latex(self, names: Sequence[str] | None = None) -> str:
        """Return the ranking as a LaTeX table for the packages booktabs and graphicx, and
        sentences; for errors see `to_text`.

        >>> import jaxmetrics as jm
        >>> y_true, constant = [0, 1, 1] * 40, [1, 1, 1] * 40
        >>> board = jm.leaderboard(jm.accuracy, y_true, {"A & B": y_true, "constant": constant})
        >>> print(board.to_latex())  # doctest: +ELLIPSIS
        \\begin{center}
        ...
        classifier & value [low, high] & ranks & tier \\\\
        \\midrule
        A \\& B & 1.000 [0.975, 1.000] & 1 & 1 \\\\
        constant & 0.667 [0.578, 0.748] & 2 & 2 \\\\
        ...
        constant is shown to be worse than one above.
        ...
        """
        return ranking(self, names).latex()

    def to_html(self, names: Sequence[str] | None = None, *, title: str = "Leaderboard") -> str:
        """Return the ranking as one HTML page without external files.

        Args:
            names: names of the classifiers.
            title: the heading of the page.

        Raises:
            ValueError: under the same conditions as `to_text`.
            ImportError: if jinja2 or matplotlib is not installed; the extra `html` installs both.
        """
        from jaxmetrics.reports.rankings import ranking_report

        return ranking_report(self, names).to_html(title=title)

    def to_dict(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the winner and all classifiers, best first, as dicts; for errors see `to_text`."""
        return as_dict(self, names)

    def to_frame(
        self, names: Sequence[str] | None = None, *, backend: Backend | None = None
    ) -> Any:
        """Return a data frame with one row per classifier, the best first.

        Args:
            names: names of the classifiers.
            backend: `"pandas"`, `"polars"` or `"pyarrow"`. The default is pandas if it is
                installed, otherwise Polars.

        Raises:
            ValueError: under the same conditions as `to_text`.
            ImportError: if the backend is not installed.
        """
        rows = as_dict(self, names)["classifiers"]
        return frame_of({name: [row[name] for row in rows] for name in rows[0]}, backend)


def leaderboard(
    metric: Metric,
    y_true: ArrayLike | Sequence[Hashable],
    y_preds: ArrayLike | Sequence[Sequence[Hashable]] | Mapping[str, Any],
    *,
    num_classes: int | None = None,
    labels: Sequence[Hashable] | None = None,
    key: KeyLike = 0,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    method: IntervalMethod = Likelihood(),  # noqa: B008  # it is frozen
    num_samples: int = 2000,
    level: float = 0.95,
) -> Leaderboard:
    """Rank classifiers or checkpoints by a metric on the same examples.

    All pairs of classifiers are compared by the step-down max-t test (Romano and Wolf, 2005), which
    corrects for multiple comparisons. `jaxmetrics.comparisons.leaderboards` explains the methods.

    Args:
        metric: a differentiable function of a `(K, K)` matrix that returns one number. This number
            must not change if all counts are multiplied by the same number. Greater values are
            better. A classifier whose metric is NaN comes last.
        y_true: `(n,)`, class ids, strings, or members of `labels`. Examples with a negative class
            id in `y_true` are ignored.
        y_preds: predictions `(M, n)`, one row for each classifier; or a dict of rows, or a data
            frame with a column for each classifier, whose names are printed. A prediction that is
            not the id of a class raises an error in a NumPy array. In a JAX array, the example is
            ignored for all classifiers.
        num_classes: number of classes K. The default for NumPy arrays is the largest class id + 1.
        labels: list of the K classes in the order of their ids. It cannot be used with JAX arrays.
            The default for strings is all strings that occur, sorted.
        key: a JAX key, an int seed, or a NumPy Generator (only if labels are NumPy arrays).
        where: bool, `(n,)`. Examples for which `where` is False are ignored.
        clusters: `(n,)`, ids of clusters, such as patients. Examples with the same id may be
            correlated. Fewer than 20 clusters give a warning.
        method: the interval method of `estimates` and `winner_estimate`.
        num_samples: number of random draws for `probability_best` and for the test of all pairs.
        level: the confidence level of each estimate, and of all intervals of ranks together.

    Raises:
        ValueError: if `y_true` and the rows of `y_preds` differ in length, if the metric is not one
            number or is NaN or infinite for all classifiers, if `num_samples` is below 2, if
            `level` lies outside of (0, 1), if there are fewer than two examples or clusters, or if
            the matrices of M classifiers in C clusters have `M C K K` > 2^27 cells.

    >>> import jaxmetrics as jm
    >>> y_true, old = ["cat", "dog", "dog"] * 40, ["cat", "cat", "dog"] * 40
    >>> board = leaderboard(jm.accuracy, y_true, [y_true, old], labels=["cat", "dog"])
    >>> board.estimates
    2 estimates: 1.000 [0.975, 1.000]; 0.667 [0.578, 0.748]
    >>> int(board.winner), board.tiers.tolist(), board.rank_high.tolist()
    (0, [1, 2], [1, 2])
    """
    y_preds, names = named_systems(y_preds)
    check_order(y_true=y_true, y_preds=y_preds, where=where, clusters=clusters)
    level = check_level(level)
    check_method(method)
    named: dict[str, Any] = {"y_true": y_true, "y_preds": y_preds}
    named["y_preds"] = as_array(named["y_preds"], "y_preds")
    if labels is None and num_classes is None:
        metric, labels = named_classes(metric, named)
    size, floats = check_num_samples(num_samples), as_floats(metric)
    true, preds, k = _read(named, num_classes, labels, where)
    numbers, number = None, None
    if clusters is not None:
        numbers, number = numbered_clusters(clusters, true.shape)
        advice = "Merge clusters or classes, or rank fewer classifiers."
        check_size_of_tables(number, len(preds) * k * k, advice)
    tables = confusion_matrix(true, preds, num_classes=k, groups=numbers, num_groups=number)
    if clusters is not None and is_known(tables) and number_of_clusters(tables[0]) < 2:
        raise ValueError(
            "A ranking needs at least two clusters that contain examples. Check the argument"
            " clusters."
        )
    floats, tables = placed(floats, tables.astype(float_dtype(tables)), (k, k))
    placed_key, tables, *examples = place(key, tables, true, preds)
    axis = None if number is None else -3
    estimates = interval(floats, tables, method=method, level=level, cluster_axis=axis)
    board: Leaderboard = _leaderboard(
        placed_key,
        tables,
        examples if number is None else None,
        _checked(estimates),
        metric=floats,
        size=size,
        level=level,
    )
    board.names = names
    return board


def _read(
    named: dict[str, Any],
    num_classes: int | None,
    labels: Sequence[Hashable] | None,
    where: ArrayLike | None,
) -> tuple[Array, Array, int]:
    """Return the class ids of truth `(n,)` and predictions `(M, n)`, and the number of classes K.

    The class id of truth is negative for examples that do not count.
    """
    mask = as_mask(where)
    axes = class_axes(named, num_classes, labels, mask)
    arguments, (k, _) = class_ids(axes, refuse_columns=False)
    (true, preds), *_ = read_examples(arguments, None, None, mask)
    if preds.ndim != 2 or len(preds) == 0:
        raise ValueError(
            f"y_preds must have shape (M, n), with one row for each classifier, got {preds.shape}."
        )
    for name, shape in shapes_of(y_true=true, where=mask).items():
        if len(shape) != 1:
            raise ValueError(f"{name} must have shape (n,), got {shape}.")
    counted = are_valid(true, k) & are_valid(preds, k).all(0)
    counted = counted if mask is None else counted & mask
    n = counted.sum()
    if is_known(n) and n < 2:
        raise ValueError(
            f"A ranking needs at least two examples, got {n}. Examples with where=False and"
            " examples with a negative label in y_true do not count."
        )
    return xp.where(counted, true.astype(xp.int32), xp.int32(IGNORED)), preds, k


def _checked(estimates: Any) -> Estimate:
    is_one = isinstance(estimates, Estimate)
    if not is_one or estimates.value.ndim > 1:
        values = f"an array of shape {estimates.value.shape[1:]}" if is_one else "several values"
        raise ValueError(
            f"metric must return one number for one confusion matrix, but it returned {values}."
        )
    if is_known(estimates.value) and not bool(xp.isfinite(estimates.value).any()):
        raise ValueError(
            "metric is NaN or infinite for all classifiers, so the classifiers cannot be ranked."
            " Use another metric, or check the labels."
        )
    return estimates


@compiled
def _leaderboard(
    key: Key,
    tables: Array,
    examples: Sequence[Array] | None,
    estimates: Estimate,
    *,
    metric: Metric,
    size: int,
    level: float,
) -> Leaderboard:
    """Rank from matrices `(M, K, K)` and examples, or from tables of clusters `(M, C, K, K)`."""
    clustered = examples is None
    number = number_of_clusters(tables[0]) if clustered else tables[0].sum()
    matrices = tables.sum(1) if clustered else tables
    m, k, _ = matrices.shape
    slopes, common = _slopes(metric, matrices, estimates.value > -xp.inf)
    reach = xp.where(matrices.sum(-1) > 0, slopes.max(-1) - slopes.min(-1), 0).max(-1)
    if examples is None:
        units = tables.reshape((m, -1, k * k))
    else:  # the number of the cell of each prediction, K^2 if it does not count
        true, preds = examples
        if not is_jax(true):  # on the host, where shapes may depend on values
            true, preds = true[true >= 0], preds[:, true >= 0]
        units = xp.where(true >= 0, true * k + preds, k * k).astype(xp.int32)
    # If derivatives are common, swapping two classifiers in a unit changes only the sign.
    own, swapped = _products((slopes, common), units)
    covariance = divide(number, number - 1) * own if clustered else own
    board = ranked(key, estimates, covariance, (own, swapped), reach, size=size, level=level)
    return nan_unless(number > int(clustered), board)


def ranked(
    key: Key,
    estimates: Estimate,
    covariance: Array,
    products: tuple[Array, Array],
    reach: Array,
    *,
    size: int,
    level: float,
) -> Leaderboard:
    """Rank M values that are sums over units, with `size` draws of their errors.

    Args:
        covariance: the covariance of the values, `(M, M)`.
        products: two matrices `sum u u^T` over units. In the first, u are the contributions of a
            unit to the values; in the second, contributions of which the difference between two
            classifiers changes its sign if the classifiers are swapped.
        reach: the largest change of a value by one example, `(M,)` or one number for all values.
    """
    unseen = xp.full_like(estimates.value, UNSEEN / 2) * reach**2
    squares = xp.maximum(*map(variances_of_differences, products))
    values = xp.where(xp.isnan(estimates.value), -xp.inf, estimates.value)
    keys, winner = split(key), xp.argmax(values)
    noise = draws_of(keys[0], covariance, size)
    above = shown_above(keys[1], values, covariance, squares, unseen, noise, level)
    own = trees.map(lambda x: pick(x, winner[None])[0], estimates)
    bias = optimism(values, noise, winner)
    return Leaderboard(
        estimates,
        shares_of_firsts(values, covariance, noise),
        winner.astype(xp.int32),
        replace(own, value=own.value - bias, low=own.low - bias),
        (1 + above.sum(0)).astype(xp.int32),
        (len(values) - above.sum(1)).astype(xp.int32),
        layers(above),
    )


def _slopes(metric: Metric, matrices: Array, finite: Array) -> tuple[Array, Array]:
    """Return derivatives of the metric at each of the matrices `(M, K, K)`, and at their mean.

    The derivative at the mean is repeated M times. Two examples with the average predictions of all
    classifiers are added to each class, so that a classifier without a mistake in a small class is
    not assumed to be always correct.
    """
    rows = matrices.sum(-1, keepdims=True)
    mean = matrices.mean(0, keepdims=True)
    likely = divide(rows * (matrices + UNSEEN * divide(mean, rows)), rows + UNSEEN)
    at = xp.concatenate([likely, mean])
    row = Row(metric, mean[0])
    slopes = map_tables(lambda table: jacobian(row, table)[0], at, mean.size)
    own, common = xp.where(finite[:, None, None], slopes[:-1], 0), slopes[-1]
    own = own - divide((matrices * own).sum((-2, -1), keepdims=True), rows[0].sum())
    return own, xp.broadcast_to(xp.where(xp.isfinite(common), common, 0), own.shape)


def _products(slopes: Sequence[Array], units: Array) -> list[Array]:
    """Return for each of the slopes the sum of `u u^T` over units, a matrix `(M, M)`.

    The contributions of a unit, u `(M,)`, are its slopes. Units are either the cells of examples,
    `(M, n)`, which are summed in blocks, or the tables of clusters, `(M, C, K K)`.
    """
    by_cell = [x.reshape((len(x), -1)) for x in slopes]
    m, num_cells = by_cell[0].shape
    if units.ndim == 3:
        contributions = (matmul(units, x[..., None])[..., 0] for x in by_cell)
        return [matmul(u, u.T) for u in contributions]
    by_cell = [xp.pad(x, ((0, 0), (0, 1))) for x in by_cell]
    num_blocks = max(1, -(-units.size // LANES))
    width = -(-units.shape[1] // num_blocks)
    padding = num_blocks * width - units.shape[1]
    padded = xp.pad(units, ((0, 0), (0, padding)), constant_values=num_cells)

    def add(totals: list[Array], block: Array) -> tuple[list[Array], None]:
        contributions = (pick(x, block) for x in by_cell)
        return [t + matmul(u, u.T) for t, u in zip(totals, contributions, strict=True)], None

    blocks = xp.moveaxis(padded.reshape((m, num_blocks, width)), 1, 0)
    return lax.scan(add, [xp.zeros((m, m), x.dtype) for x in by_cell], blocks)[0]
