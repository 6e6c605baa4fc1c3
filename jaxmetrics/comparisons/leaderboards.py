"""Ranking of many classifiers on the same examples."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._arithmetic import divide, matmul, safe_sqrt
from jaxmetrics._compilation import compiled
from jaxmetrics._keys import HostKey, Key, KeyLike, place, split
from jaxmetrics._namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics._printing import Backend, frame_of
from jaxmetrics._validation import (
    ArrayLike,
    as_array,
    as_class_ids,
    as_mask,
    check_examples,
    check_integer,
    check_level,
    check_size,
    ids_in_range,
)
from jaxmetrics.comparisons._rankings import (
    differences_of,
    layers,
    noise_of,
    plausible_values,
    rank_shares,
    shown_above,
)
from jaxmetrics.comparisons._standings import (
    MOST_ROWS,
    are_known,
    as_columns,
    as_dict,
    ranking,
)
from jaxmetrics.counts import confusion_matrix
from jaxmetrics.estimates import Estimate, Metric
from jaxmetrics.intervals.clusters import check_size_of_tables, numbered_clusters
from jaxmetrics.intervals.derivatives import jacobian
from jaxmetrics.intervals.methods import IntervalMethod, Likelihood, check_method
from jaxmetrics.intervals.replicates import LANES, map_tables
from jaxmetrics.intervals.tables import as_floats, check_num_samples, nan_unless, where_answered
from jaxmetrics.intervals.units import number_of_clusters

__all__ = ["Leaderboard", "leaderboard"]

_ADDED = 4  # examples of each class
_HALVES = 200  # the mean over them and their rests errs by a tenth of the standard error


class _Leaderboard(NamedTuple):
    estimates: Estimate
    probability_best: Array
    rank_probabilities: Array
    winner: Array
    winner_estimate: Estimate
    rank_low: Array
    rank_high: Array
    tiers: Array


class Leaderboard(_Leaderboard):
    """Rank M classifiers by one metric.

    Attributes:
        estimates: `(M,)`, each classifier by itself.
        probability_best: `(M,)`, how probably it comes first on all examples to come.
        rank_probabilities: `(M, M)`, row = classifier, column = rank, best first; its first column
            is `probability_best`.
        winner: the classifier with the highest value; the first of them.
        winner_estimate: what to expect of the winner on new examples, corrected for its having been
            chosen on these.
        rank_low, rank_high: `(M,)`, from 1, the best: the interval of its rank among the true
            values. All M intervals hold at once with `level`. One that starts at 1 may be the best.
        tiers: `(M,)`, from 1: no classifier of a tier is shown to be better than another of it, and
            each of tier t > 1 is shown to be worse than one of tier t - 1. All of these statements
            hold at once with `level`. So those in one tier are tied, as far as the examples tell.

    It prints as a ranking by tier and value, of many classifiers the first 20; its methods take
    their names, which are "0" to "M - 1" if not given.

    >>> import jaxmetrics as jm
    >>> y_true = [0, 0, 1, 1, 1, 0] * 20
    >>> y_preds = [[0, 0, 1, 1, 1, 1] * 20, [0, 1, 1, 1, 0, 1] * 20, [0, 0, 1, 1, 0, 0] * 20]
    >>> board = leaderboard(0, jm.accuracy, y_true, y_preds, num_classes=2)
    >>> print(board.to_text(["old", "tiny", "new"]))
    classifier  value [low, high]     ranks   tier  P(best)
    old         0.833 [0.756, 0.893]  1 to 2  1     0.484
    new         0.833 [0.756, 0.893]  1 to 2  1     0.516
    tiny        0.500 [0.409, 0.591]  3       2     0.000
    <BLANKLINE>
    old and new cannot be told apart.
    tiny is shown to be worse than one above.
    On new examples expect of the winner, old: 0.811 [0.734, 0.893].
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Write the ranking, or what cannot be looked at as named tuples are."""
        return ranking(self, most_rows=MOST_ROWS).text() if are_known(self) else super().__repr__()

    def _repr_html_(self) -> str:
        if not are_known(self):
            return html.escape(repr(self))
        return ranking(self, most_rows=MOST_ROWS).html()

    def to_text(self, names: Sequence[str] | None = None) -> str:
        """Write the ranking of all classifiers.

        Raises:
            ValueError: not as many names; a batch of leaderboards; numbers that are not known, as
                under jit.
        """
        return ranking(self, names).text()

    def to_dict(self, names: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the winner and all classifiers, best first, as dicts; errors as `to_text`."""
        return as_dict(self, names)

    def to_frame(self, names: Sequence[str] | None = None, *, backend: Backend = "polars") -> Any:
        """Return a data frame, a row for each classifier, best first; errors as `to_text`.

        Args:
            names: of the classifiers.
            backend: `"polars"`, `"pandas"` or `"pyarrow"`.

        Raises:
            ImportError: narwhals (the extra `tables`), or the backend, is not installed.
        """
        return frame_of(as_columns(self, names), backend)


def leaderboard(
    key: KeyLike,
    metric: Metric,
    y_true: ArrayLike,
    y_preds: ArrayLike,
    *,
    num_classes: int,
    where: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    method: IntervalMethod = Likelihood(),  # noqa: B008  # it is frozen
    num_samples: int = 2000,
    level: float = 0.95,
) -> Leaderboard:
    """Rank classifiers or checkpoints on the same examples, and estimate the best of them.

    All are judged by the same examples, so that the difficulty of these, common to all, does not
    affect their order. What an example contributes to a metric is taken from its derivatives, so
    that each example is seen once, whatever the metric.

    - `probability_best` and `rank_probabilities` take the true values for normally distributed, on
      an unknown scale and perhaps the more alike, the more alike the errors are, since the best of
      many looks better than it is. Simulated with 2 to 30 classifiers and 60 to 4000 examples, as
      difficult for all or not, and with true accuracies from eight distributions, those said to be
      best with a probability of p were so in a share of p, within 0.02 for each tenth. Where true
      values crowd below a bound it is too sure: in two groups of equals, those said to be best in
      0.69 were so in 0.57.
    - `rank_low`, `rank_high` and `tiers` assume nothing of the true values. A rank is at least one
      more than the number of classifiers shown to be better, and at most M less the number shown to
      be worse: Mogstad, Romano, Shaikh and Wilhelm (2024), Review of Economic Studies 91. As if two
      examples more were seen, at which a pair of classifiers differs as much as it can, few
      examples tell two apart no sooner than a sign test. Simulated with 2 to 30 classifiers, tied
      or not, 5 to 1000 examples and accuracies of 0.5 to 0.99, one was wrongly shown to be better
      than another in 0 to 8 %, for a level of 95 %; by the macro F1 of classes that are expected
      once or less in 20 examples or fewer, in up to 29 %.
    - `winner_estimate` lets a random half of the examples choose and the other half judge, and
      averages over 400 halves: that is not biased upwards, and a little too low where half of the
      examples choose worse than all. The interval is the winner's own, with its lower end moved as
      far. Simulated with 2 to 50 classifiers, alike or apart, accuracies of 0.6 to 0.99 and 60 to
      1000 examples, it covered in 94 to 100 %, for a level of 95 %.

    Of `clusters`, what is said above of examples is said of them. Simulated with 4 to 10
    classifiers, 20 to 100 clusters of 2 to 20 examples, latent correlations within clusters of 0.1
    to 0.7 and accuracies of 0.6 to 0.95, one was wrongly shown to be better than another in 0 to
    5 % (without clusters in up to 100 %). The interval of the winner covered in 93 to 100 %, at
    0.95 and 0.7 in 89 % and more, as its own does. `probability_best` was rather too modest than
    too sure: those said to be best with 0.2 to 0.3 were so in 0.16 to 0.34, with 0.7 to 0.9 in 0.78
    to 0.92.

    Args:
        key: a JAX key, an int seed or, for labels of the host, a NumPy Generator.
        metric: a differentiable function of one `(K, K)` matrix that returns one number and does
            not grow with the number of examples; more is better, and NaN comes last.
        y_true: class ids `(n,)`.
        y_preds: class ids `(M, n)`. An example with a label outside of `[0, num_classes)`, of any
            classifier, is left out.
        where: `(n,)`, True = counted.
        clusters: `(n,)` ids, of any hashable kind, of groups of examples that may be alike, as
            those of one patient; they, not examples, are then the independent units. A warning for
            fewer than 20.
        method: of the intervals of `estimates`, from which that of the winner is made.
        num_samples: of draws for probabilities and for simultaneous intervals.

    Returns:
        `Leaderboard`.

    Raises:
        ValueError: shapes that do not fit, a metric of more than one number, or nowhere finite,
            num_samples < 2, a level outside of (0, 1), fewer than two examples or clusters that
            count, clusters whose matrices have more than 2^27 cells `M C K K`.

    >>> import jaxmetrics as jm
    >>> y_true = [0, 0, 1, 1, 1, 0] * 20
    >>> y_preds = [[0, 0, 1, 1, 1, 1] * 20, [0, 1, 1, 1, 0, 1] * 20, [0, 0, 1, 1, 0, 0] * 20]
    >>> board = leaderboard(0, jm.accuracy, y_true, y_preds, num_classes=2)
    >>> board.estimates
    3 estimates: 0.833 [0.756, 0.893]; 0.500 [0.409, 0.591]; 0.833 [0.756, 0.893]
    >>> int(board.winner), board.probability_best.round(1)
    (0, array([0.5, 0. , 0.5]))
    >>> board.tiers.tolist(), board.rank_low.tolist(), board.rank_high.tolist()
    ([1, 2, 1], [1, 3, 1], [2, 3, 2])
    """
    check_level(level)
    check_method(method)
    size, k = check_num_samples(num_samples), check_size(num_classes, "num_classes")
    floats = as_floats(metric)
    examples = _checked(y_true, y_preds, where, k)
    example = where_answered(floats, np.ones((k, k)))
    if is_jax(example):
        examples = Judgements(*map(jax.numpy.asarray, examples))
    answer = jax.eval_shape(floats, example) if on_device(examples) else floats(example)
    if (shape := jax.tree.map(np.shape, answer)) != ():
        raise ValueError(
            f"a leaderboard ranks by one number: the metric of one matrix returns {shape} instead."
        )
    if is_known(examples.counted) and (n := int(examples.counted.sum())) < 2:
        raise ValueError(
            f"a ranking needs two examples or more, got {n} that count: those hidden by where or"
            " with a label below 0, in y_true or in a row of y_preds, do not."
        )
    numbers, number = None, None
    if clusters is not None:
        numbers, number = numbered_clusters(clusters, examples.true.shape)
        advice = "Merge clusters or classes, or rank fewer classifiers."
        check_size_of_tables(number, len(examples.preds) * k * k, advice)
    placed_key, *placed = place(key, *examples)
    tables = confusion_matrix(
        placed[0],
        placed[1],
        num_classes=k,
        where=placed[2],
        groups=numbers,
        num_groups=number,
    )
    if clusters is not None and is_known(tables) and number_of_clusters(tables[0]) < 2:
        raise ValueError("clusters must be at least two with examples that count.")
    board = _leaderboard(
        placed_key,
        _only_counted(Judgements(*placed)) if clusters is None else None,
        tables.astype(float_dtype(tables)),
        method(floats, tables, level=level, cluster_axis=None if clusters is None else -3),
        metric=floats,
        size=size,
        level=level,
    )
    values = board.estimates.value
    if is_known(values) and not bool(xp.isfinite(values).any()):
        raise ValueError("metric is NaN or infinite for all classifiers: there is none to rank.")
    return board


class Judgements(NamedTuple):
    """Class ids `(n,)` and `(M, n)`, and which of the examples count, `(n,)`."""

    true: Array
    preds: Array
    counted: Array


def _checked(y_true: ArrayLike, y_preds: ArrayLike, where: ArrayLike | None, k: int) -> Judgements:
    preds = as_array(y_preds, "y_preds")
    if preds.ndim != 2 or len(preds) == 0:
        raise ValueError(
            f"y_preds must have shape (M, n), a row per classifier, got {preds.shape}."
        )
    mask = None if where is None else as_mask(where)
    true = as_class_ids(y_true, "y_true", k, mask)
    shapes = {"y_true": true.shape, "y_preds": preds.shape}
    check_examples(shapes if mask is None else shapes | {"where": mask.shape})
    if true.ndim != 1:
        raise ValueError(f"y_true must have shape (n,), got {true.shape}.")
    check_integer(preds, "y_preds")
    preds = ids_in_range(preds, "y_preds", k, mask)
    counted = (true >= 0) & (true < k) & ((preds >= 0) & (preds < k)).all(0)
    counted = counted if mask is None else counted & mask
    if on_device(true, preds, counted):
        return Judgements(*map(jax.numpy.asarray, (true, preds, counted)))
    return Judgements(true, preds.astype(np.min_scalar_type(k - 1)), counted)


def _only_counted(examples: Judgements) -> Judgements:
    """Leave out the others on the host, where shapes may depend on values."""
    true, preds, counted = examples
    if on_device(examples):
        return examples
    return Judgements(true[counted], preds[:, counted], counted[counted])


@compiled
def _leaderboard(
    key: Key,
    examples: Judgements | None,
    tables: Array,
    estimates: Estimate,
    *,
    metric: Metric,
    size: int,
    level: float,
) -> Leaderboard:
    """Rank by examples and their matrices `(M, K, K)`, or by those of clusters `(M, C, K, K)`."""
    matrices = tables if examples is not None else tables.sum(1)
    n = matrices[0].sum()
    number = n if examples is not None else number_of_clusters(tables[0]).astype(n.dtype)
    keys = split(key)
    ranked = _last_if_nan(estimates.value)
    finite = ranked > -xp.inf
    slopes = map_tables(partial(_slope, metric), _towards_mean(matrices), matrices[0].size)
    influence = number * xp.where(finite[:, None, None], slopes, 0)
    influence = influence - divide((matrices * influence).sum((-2, -1), keepdims=True), n)
    halves = min(size, _HALVES)
    if examples is not None:
        contributions = partial(_of_examples, influence)
        sums = _sums(keys[0], examples, contributions, len(matrices), halves=halves)
    else:
        m, size_of_table = len(matrices), matrices[0].size
        of_cells = influence.reshape((m, size_of_table, 1))
        of_clusters = matmul(tables.reshape((m, -1, size_of_table)), of_cells)[..., 0]
        of_clusters = of_clusters * safe_sqrt(divide(number, number - 1))
        sums = _sums(keys[0], of_clusters, lambda u: u, len(matrices), halves=halves)
    noise = noise_of(sums.second / number, sums.fourth / number, number)
    values = xp.where(finite, ranked, divide(xp.where(finite, ranked, 0).sum(), finite.sum()))

    gaps, variances = values[:, None] - values, differences_of(noise)
    alike = (variances == 0) & (gaps == 0) & (finite[:, None] == finite)
    group = xp.argmax(alike, 0)  # the first that is alike
    draws = xp.where(finite, plausible_values(keys[1], values, noise, size), -xp.inf)
    shares = rank_shares(xp.take(draws, group, 1), group)

    # From the same draws of noise.
    if examples is not None:
        squares = variances + _differences_of_classes(influence, matrices) / n**2
    else:
        squares = divide(_differences_of_clusters(influence, tables), number**2)
    unseen = divide(_reach(influence, matrices), number) ** 2
    above = shown_above(keys[1], gaps, squares, noise, unseen, size=size, level=level)
    above = (above & finite) | (finite[:, None] & ~finite)
    num_above, num_below = above.sum(0), above.sum(1)

    winner = xp.argmax(ranked).astype(xp.int32)
    own = jax.tree.map(lambda x: x[winner], estimates)
    # With a single classifier there was no choice, and so no bias.
    bias = _selection_bias(ranked, sums.moved / number) if len(values) > 1 else 0.0
    corrected = own._replace(value=own.value - bias, low=own.low - bias)
    board = Leaderboard(
        estimates,
        shares[:, 0],
        shares,
        winner,
        corrected,
        (1 + num_above).astype(xp.int32),
        (len(values) - num_below).astype(xp.int32),
        layers(above),
    )
    return nan_unless(n > 0 if examples is not None else number > 1, board)


def _last_if_nan(values: Array) -> Array:
    return xp.where(xp.isnan(values), -xp.inf, values)


def _slope(metric: Metric, table: Array) -> Array:
    """Differentiate a metric by the cells of one table; refuse a batch, which the host tries."""
    if table.ndim != 2:
        raise ValueError(f"one table at a time, got {table.shape}.")
    return jacobian(metric, table, table.size)


def _towards_mean(matrices: Array) -> Array:
    """Add examples to each class of each classifier, predicted as by all, and scale it back.

    So a classifier that was always right in a small class is not taken for one that always is.
    """
    rows = matrices.sum(-1, keepdims=True)
    of_all = divide(matrices.mean(0), rows)
    return divide(rows * (matrices + _ADDED * of_all), rows + _ADDED)


def _differences_of_classes(influence: Array, matrices: Array) -> Array:
    """Return what to add to sums of squared differences about their means, for those about 0.

    Class c contributes D_c to the difference of two classifiers, by the mean of their derivatives,
    while their own contributions in it differ by E_c, 0 where a metric averages over classes. The
    sum over the n_c examples of each class is about E_c / n_c; with `(D_c^2 - E_c^2) / n_c` it is
    about 0, as if all derivatives were the same.

    Args:
        influence: `(M, K, K)`, what an example of each cell contributes.
        matrices: `(M, K, K)`.

    Returns:
        `(M, M)`, of sums over the examples.
    """
    by_class, counts = xp.moveaxis(influence, 1, 0), xp.moveaxis(matrices, 1, 0)
    products = matmul(by_class, counts.swapaxes(-1, -2))  # (K, i, j), u of i at the cells of j
    own = xp.diagonal(products, axis1=-2, axis2=-1)
    contributed = own[:, :, None] - own[:, None, :]
    differ = (contributed - products + products.swapaxes(-1, -2)) / 2
    support = counts[:, 0].sum(-1)[:, None, None]
    return divide(differ**2 - contributed**2, support).sum(0)


def _reach(influence: Array, matrices: Array) -> Array:
    """Return by how much another prediction for one example can move what it contributes, `(M,)`.

    Args:
        influence: `(M, K, K)`, what an example of each cell contributes.
        matrices: `(M, K, K)`.
    """
    ranges = influence.max(-1) - influence.min(-1)
    return xp.where(matrices.sum(-1) > 0, ranges, 0).max(-1)


def _differences_of_clusters(influence: Array, tables: Array) -> Array:
    """Return sums over the clusters of squared differences about 0, `(M, M)`.

    A cluster contributes to the difference of two classifiers by the mean of their derivatives, so
    that to swap the two in it changes no more than the sign.

    Args:
        influence: `(M, K, K)`, what an example of each cell contributes.
        tables: `(M, C, K, K)`.
    """
    m, number = tables.shape[:2]
    of_cells = influence.reshape((m, -1)).T
    num_blocks = max(1, -(-number * m**2 // LANES))
    at_once = -(-number // num_blocks)
    flat = xp.moveaxis(tables.reshape((m, number, -1)), 0, 1)  # (C, M, K K)
    flat = xp.pad(flat, ((0, num_blocks * at_once - number), (0, 0), (0, 0)))

    def add(sums: Array, block: Array) -> tuple[Array, None]:
        products = matmul(block, of_cells)  # (c, i, j), u of j at the cells of i
        own = xp.diagonal(products, axis1=-2, axis2=-1)
        twice = own[:, :, None] - own[:, None, :] + products - products.swapaxes(-1, -2)
        return sums + (twice**2).sum(0) / 4, None

    blocks = flat.reshape((num_blocks, at_once, *flat.shape[1:]))
    return lax.scan(add, xp.zeros((m, m), tables.dtype), blocks)[0]


class Sums(NamedTuple):
    """Sums over the units, examples or clusters, whose contributions are u `(M,)`.

    Attributes:
        second: `(M, M)`, of u u^T.
        fourth: of `|u - mean u|^4`.
        moved: `(S, M)`, of u over a random half of them less that over the other half.
    """

    second: Array
    fourth: Array
    moved: Array


def _sums(
    key: Key, units: Any, contributions: Callable[[Any], Array], m: int, *, halves: int
) -> Sums:
    """Add up the contributions `(M, n)` of all units, whose arrays are `(..., n)`, block by block.

    What is padded with zeros contributes nothing.
    """
    leaves = jax.tree.leaves(units)
    n = leaves[0].shape[-1]
    at_once = max(2, LANES // max(m, halves))
    num_blocks = max(1, -(-n // at_once))
    width = 2 * -(-n // (2 * num_blocks))
    of_order, of_signs = split(key)
    order = _permutation(of_order, n)

    def in_blocks(x: Array) -> Array:
        """Shuffle the units, so that those of a pair are no neighbours; `(B, ..., width)`."""
        shuffled = xp.pad(
            xp.take(x, order, -1), [(0, 0)] * (x.ndim - 1) + [(0, num_blocks * width - n)]
        )
        return xp.moveaxis(shuffled.reshape((*x.shape[:-1], num_blocks, width)), -2, 0)

    def add(sums: Sums, block: tuple[Any, Array]) -> tuple[Sums, None]:
        units, number = block
        u = contributions(units)
        distance = (u**2).sum(0) - u.sum(0) ** 2 / m
        signs = _signs(of_signs, number, (halves, width // 2), u.dtype)
        # One of each pair is in the half, the other is not.
        moved = matmul(signs, (u[:, ::2] - u[:, 1::2]).T)
        return Sums(
            sums.second + matmul(u, u.T), sums.fourth + (distance**2).sum(), sums.moved + moved
        ), None

    dtype = float_dtype(*leaves)
    zeros = [xp.zeros(shape, dtype) for shape in ((m, m), (), (halves, m))]
    blocks = jax.tree.map(in_blocks, units), np.arange(num_blocks)
    return lax.scan(add, Sums(*zeros), blocks)[0]


def _of_examples(influence: Array, examples: Judgements) -> Array:
    """Return the contributions `(M, n)` of examples, by those of each cell, `(M, K, K)`."""
    true, preds, counted = examples
    m, k, _ = influence.shape
    cells = xp.where(counted, true.astype(xp.int32) * k + preds, 0)
    return xp.where(counted, xp.take_along_axis(influence.reshape((m, -1)), cells, -1), 0)


def _permutation(key: Key, n: int) -> Array:
    if isinstance(key, HostKey):
        return key.generator().permutation(n)
    return jax.random.permutation(key, n)


def _signs(key: Key, number: Array, shape: tuple[int, int], dtype: np.dtype) -> Array:
    """Draw 1 or -1 for each pair of examples of a block."""
    if isinstance(key, HostKey):
        key = HostKey((*key.words, int(number)))
        bits = np.frombuffer(key.generator().bytes(math.prod(shape)), np.int8).reshape(shape)
        return np.where(bits < 0, -1.0, 1.0)
    return jax.random.rademacher(jax.random.fold_in(key, number), shape, dtype)


def _selection_bias(values: Array, moved: Array) -> Array:
    """Return how much better the best of M values looks than it is.

    Half of the examples move the values by `moved` `(S, M)`, the other half by as much the other
    way: so either half chooses, and the other one judges.
    """
    either = xp.concatenate([moved, -moved])
    chosen_by, judged_by = values + either, values - either
    most = chosen_by.max(-1, keepdims=True)
    rounding = 32 * xp.finfo(values.dtype).eps * xp.abs(most)
    best = chosen_by >= most - rounding
    held_out = xp.where(best, judged_by, 0).sum(-1) / best.sum(-1)
    return xp.maximum(values.max() - held_out.mean(), 0)
