"""Sampling designs: independent units in strata, and the tables of counts that they add up to.

A `Sample` contains how often each kind of unit (an example with a truth and a prediction, for
instance) occurred in each stratum. A `Sample` also contains the linear map from these numbers to
the tables of counts that a metric reads, and the adjoint of this map. Each function that makes a
`Sample` stands for a sampling design, such as one test set, pairs of predictions, or two test sets.
A `Design` selects such a function for all tables of a batch. In each design, units may belong to
clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._arguments.keys import Key
from jaxmetrics._arguments.single import (
    RAVEL,
    ArrayLike,
    as_array,
    as_class_ids,
    as_mask,
    check_examples,
    shapes_of,
)
from jaxmetrics._numerics.arithmetic import divide, matmul, safe_sqrt
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, float_dtype, is_jax, is_known, lax, on_device, xp
from jaxmetrics.clusters import clustered_error, effective_share, kish_number, sizes_by_value
from jaxmetrics.intervals import replicates

__all__: list[str] = []


class Sample(NamedTuple):
    """Numbers of U kinds of units in each of R strata, and the tables that they add up to.

    The total of each stratum is fixed; if only the number of all examples is fixed, there is a
    single stratum.

    Attributes:
        counts: how often each kind of unit occurred, `(R, U)`.
        tables: the function from numbers of the kinds, `(..., R, U)`, to T tables of counts, `(...,
            T, K, W)`.
        adjoint: the function from derivatives with respect to the tables, `(T, K, W)`, to
            derivatives with respect to the numbers, `(R, U)`.
        unused: masks of kinds, `(G + 1, R, U)`: kinds with a class where it does not occur, for
            each group of classes of `absences`, and last kinds with a class that does not occur
            at all.
        possible: whether a kind can occur at all, `(R, U)`; None if all kinds can.
        rows: the number of rows in which the kinds are laid out for sampling.
        clusters: the counts of each of C clusters, `(C, R, U)`; None if units are independent.
        is_complete: whether kinds that did not occur are included.
        is_weighted: whether examples have weights, so that `counts` are effective numbers.
        prior: the function from a prior per class, `(K, 2)`, to a prior of the kinds, `(R, U)`;
            None if there are no classes.
    """

    counts: Array
    tables: Callable[[Array], Array]
    adjoint: Callable[[Array], Array]
    unused: Array
    possible: Array | None = None
    rows: int = 1
    clusters: Array | None = None
    is_complete: bool = True
    is_weighted: bool = False
    prior: Callable[[Array], Array] | None = None

    @property
    def is_stratified(self) -> bool:
        return len(self.counts) > 1

    @property
    def can_occur(self) -> Array:
        """Whether a kind can occur at all, `(R, U)`."""
        return xp.ones(self.counts.shape, bool) if self.possible is None else self.possible

    @property
    def number(self) -> Array:
        """The total number of units or, for clusters, the smallest effective number of a stratum.

        The effective number of clusters is Kish's.
        """
        if self.clusters is None:
            return self.counts.sum()
        return kish_number(xp.moveaxis(self.clusters.sum(-1), 0, -1)).min()

    @property
    def numbers_held(self) -> int:
        """The number of entries of a replicate and of its tables."""
        return self.counts.size + self.tables(self.counts).size

    @property
    def is_valid(self) -> Array:
        """Whether all tables contain examples and no count is negative."""
        return (self.counts >= 0).all() & (self.tables(self.counts).sum((-2, -1)) > 0).all()

    def products(self, x: Array, y: Array) -> Array:
        """Return the sums of products x y, `(V, R, U)`, over independent units: `(V, R)`."""
        if self.clusters is None:
            return (self.counts * x * y).sum(-1)
        held = xp.moveaxis(self.clusters, 0, 1)  # (R, C, U)
        sums_of_x, sums_of_y = (matmul(held, a[..., None])[..., 0] for a in (x, y))
        return (sums_of_x * sums_of_y).sum(-1)

    def independent_errors(self, values: Array, slopes: Array) -> Array:
        """Return the standard errors of values `(V,)`, as if units were independent.

        `slopes`, `(V, R, U)`, are the derivatives of the values.
        """
        totals = self.counts.sum(-1, keepdims=True)
        centred = slopes - divide((self.counts * slopes).sum(-1, keepdims=True), totals)
        # Square roots of counts are avoided, because they have no derivative at 0. Slopes are
        # divided by the largest slope, so that no square overflows.
        largest = lax.stop_gradient(xp.abs(centred).max((-2, -1), keepdims=True))
        relative = divide(centred, largest)
        squares = (self.counts * relative * relative).sum((-2, -1))
        error = largest[..., 0, 0] * safe_sqrt(squares)
        return xp.where(xp.isnan(values), xp.nan, error)  # also for a derivative of 0

    def errors(self, values: Array, slopes: Array, influences: Array | None) -> Array:
        """Return the standard errors of values `(V,)` from their derivatives `(V, R, U)`. If there
        are clusters, `influences` says which kinds matter for each value.
        """
        if influences is None:
            return self.independent_errors(values, slopes)
        return xp.where(
            xp.isnan(values), xp.nan, clustered_error(self.clusters, slopes, influences)
        )

    def numbers(self, influences: Array | None) -> Array:
        """Return the numbers of units that can move each value, `(V,)`, as in `number`."""
        if influences is None:
            return self.number
        return kish_number(sizes_by_value(self.clusters, influences)).min(-1)

    def shares(
        self, values: Array, slopes: Array, influences: Array | None, z: Array | float
    ) -> Array:
        """Return for each value how many independent units a unit is worth (`effective_share`)."""
        if influences is None:
            return xp.ones_like(values)
        independent, clustered = (
            self.errors(values, slopes, kinds) for kinds in (None, influences)
        )
        # Where a value is at its bound, its error is 0, but for rounding.
        largest = influences.max((-2, -1)) * safe_sqrt(self.counts.sum())
        rounding = 100 * xp.finfo(independent.dtype).eps * largest
        independent = xp.where(independent <= rounding, 0, independent)
        size = sizes_by_value(self.clusters, influences).sum((-2, -1))
        return effective_share(independent, clustered, size, self.numbers(influences), z)

    @property
    def units(self) -> Sample:
        """The sample whose kinds of units are the clusters; each cluster occurred once."""
        if self.clusters is None:
            return self
        held = self._held
        ones = (held.sum(-1) > 0).astype(held.dtype)
        return Sample(
            ones,
            lambda drawn: self.tables(self.of_units(drawn)),
            lambda slopes: matmul(held, self.adjoint(slopes)[..., None])[..., 0],
            xp.zeros((1, *ones.shape), bool),
            rows=len(ones) if self.is_stratified else ones.size // _width(len(self.clusters)),
        )

    def drawn(
        self,
        function: Callable[[Array], Any],
        key: Key,
        size: int,
        *,
        sampler: replicates.Sampler | None = None,
        expected: Array | None = None,
    ) -> Any:
        """Evaluate a function of replicates, `(N, R, U)`.

        Replicates are drawn from `counts` or, if given, from `expected` counts.
        """
        numbers = self.counts if expected is None else expected
        if sampler is None:
            by_stratum = replicates.stratified_multinomial
            sampler = by_stratum if self.is_stratified else replicates.multinomial
        return replicates.evaluate(
            sampler,
            lambda drawn: function(drawn.reshape((*drawn.shape[:-2], *numbers.shape))),
            key,
            numbers.reshape((self.rows, -1)),
            size=size,
            numbers=self.numbers_held,
        )

    def of_units(self, drawn: Array) -> Array:
        """Return the numbers of the kinds, `(..., R, U)`, if units were drawn as often as given."""
        if self.clusters is None:
            return drawn
        *batch, strata, number = drawn.shape
        by_stratum = xp.moveaxis(drawn.reshape((-1, strata, number)), 1, 0)
        sums = xp.moveaxis(matmul(by_stratum, self._held), 0, 1)
        return sums.reshape((*batch, *self.counts.shape))

    @property
    def _held(self) -> Array:
        """The counts of clusters, `(R, C, U)`.

        A single stratum is padded with empty clusters, so that all clusters fill a rectangle with
        about as many rows as columns. The reason is that JAX draws a multinomial in as many steps
        as there are rows and columns.
        """
        clusters = self.clusters
        assert clusters is not None
        if not self.is_stratified:
            padding = -len(clusters) % _width(len(clusters))
            clusters = xp.pad(clusters, ((0, padding), (0, 0), (0, 0)))
        return xp.moveaxis(clusters, 0, 1)


def _width(number: int) -> int:
    return math.isqrt(max(number - 1, 0)) + 1


def of_counts(
    table: Array, *, num_tables: int = 1, is_stratified: bool = False, are_apart: bool = False
) -> Sample:
    """Return a sample whose kinds are the cells of a table `(K, W)` or of tables of groups.

    Args:
        table: `(K, W)`, or the stacked tables of G groups, `(G K, W)`.
        num_tables: the number of groups G.
        is_stratified: whether row totals are fixed.
        are_apart: whether groups are independent test sets, `(G, K K)`, each with a stratum and a
            table.
    """
    width = math.isqrt(table.shape[-1]) if are_apart else table.shape[-1]
    groups = table.reshape((num_tables, -1, width))
    read = groups.shape if are_apart else (1, *table.shape)
    shape = table.shape if is_stratified or are_apart else (1, table.size)
    is_of_classes = groups.shape[-1] == groups.shape[-2]  # a matrix, not a histogram of scores
    if is_of_classes:
        unused = with_any(*absences(groups.sum(-1), groups.sum(-2)))
    else:
        unused = xp.zeros((1, *groups.shape), bool)

    def prior_of_cells(prior: Array) -> Array:
        return xp.broadcast_to(cell_prior(prior), groups.shape).reshape(shape)

    return Sample(
        table.reshape(shape),
        lambda numbers: numbers.reshape((*numbers.shape[:-2], *read)),
        lambda slopes: slopes.reshape(shape),
        unused.reshape((len(unused), *shape)),
        rows=len(table),
        prior=prior_of_cells if is_of_classes else None,
    )


def of_pairs(table: Array, *, is_stratified: bool = False) -> Sample:
    """Return a sample whose kinds are pairs of predictions, `(K, K K)`: a row for each truth.

    It has two tables, the confusion matrices of A and of B.
    """
    k = len(table)
    shape = table.shape if is_stratified else (1, table.size)

    def tables(numbers: Array) -> Array:
        cube = numbers.reshape((*numbers.shape[:-2], k, k, k))
        return xp.stack([cube.sum(-1), cube.sum(-2)], -3)

    cube = table.reshape((k, k, k))
    unused = with_any(*absences(cube.sum((1, 2)), cube.sum((0, 2)), cube.sum((0, 1))))

    def prior_of_pairs(prior: Array) -> Array:
        alone = cell_prior(prior)  # prior of one classifier
        return (alone[:, :, None] * alone[:, None] / alone.sum(-1)[:, None, None]).reshape(shape)

    return Sample(
        table.reshape(shape),
        tables,
        lambda slopes: (slopes[0][:, :, None] + slopes[1][:, None]).reshape(shape),
        unused.reshape((len(unused), *shape)),
        rows=k,
        prior=prior_of_pairs,
    )


def of_combinations(
    table: Array, labels: Array, *, num_classes: int, is_stratified: bool = False
) -> Sample:
    """Return a sample whose kinds are the combinations of truth and T predictions that occur.

    Combinations that do not occur are left out, so that the work does not grow with K^(1 + T).
    `labels`, `(1 + T, R, W)`, are the truth and predictions of each cell, or K if it is empty.
    """
    shape = table.shape if is_stratified else (1, table.size)
    tabulate = tabulation(labels, num_classes)

    def adjoint(slopes: Array) -> Array:
        padded = xp.pad(slopes, ((0, 0), (0, 1), (0, 1)))  # empty cells have the label K
        parts = [x[labels[0], pred] for x, pred in zip(padded, labels[1:], strict=True)]
        return sum(parts[1:], parts[0]).reshape(shape)

    return Sample(
        table.reshape(shape),
        lambda numbers: tabulate(numbers.reshape((*numbers.shape[:-2], *table.shape))),
        adjoint,
        xp.zeros((1, *shape), bool),
        possible=(table > 0).reshape(shape),
        rows=len(table),
        is_complete=False,
    )


def cell_prior(prior: Array) -> Array:
    """Convert a prior per class, `(K, 2)`, to a prior of cells, `(K, K)`.

    The correct cell has the prior alpha, and the wrong cells of a row share beta equally.
    """
    k = len(prior)
    return xp.where(xp.eye(k, dtype=bool), prior[:, :1], prior[:, 1:] / max(k - 1, 1))


def in_two_strata(a: Array, b: Array, *, is_clustered: bool) -> Array:
    """Lay out the tables of two independent samples as two strata, `(..., 2, U)`.

    The tables are `(..., U)` and `(..., V)` with V <= U. If samples are clustered, tables have an
    axis of clusters, `(..., C, U)`, and each cluster belongs to one of the samples.
    """
    more = a.shape[-1] - b.shape[-1]
    a = xp.pad(a[..., None, :], [(0, 0)] * (a.ndim - 1) + [(0, 1), (0, 0)])
    b = xp.pad(b[..., None, :], [(0, 0)] * (b.ndim - 1) + [(1, 0), (0, more)])
    if not is_clustered:
        return a + b
    batch = np.broadcast_shapes(a.shape[:-3], b.shape[:-3])
    return xp.concatenate([xp.broadcast_to(x, (*batch, *x.shape[-3:])) for x in (a, b)], -3)


def absences(*totals: Array) -> Array:
    """Group classes by the roles in which they do not occur, such as the truth and a prediction.

    From the totals of K classes in each of A roles, `(..., K)`, return masks `(A, G + 1, ..., K)`:
    for each role and group, the classes of the group that do not occur in this role. There is a
    group for each set of roles or, in NumPy, only for those sets that have classes. If only one
    class occurs, every error is for a class that does not; such classes are in a group for each
    role. The last masks are the classes that occur in no role and no table.
    """
    # A set of roles is a number, with a bit for each role.
    absent = sum(xp.where(x == 0, np.int8(1 << i), np.int8(0)) for i, x in enumerate(totals))
    sets = np.arange(1, 1 << len(totals), dtype=np.int8).reshape((-1, *[1] * totals[0].ndim))
    only_one = (absent < sets.max()).sum(-1, keepdims=True) == 1
    is_single = (sets & (sets - 1)) == 0
    in_set = xp.where(only_one, is_single & ((absent & sets) != 0), absent == sets)
    never = ((absent == sets.max()) & ~only_one).all((*range(totals[0].ndim - 1),))
    never = xp.broadcast_to(never, (1, *totals[0].shape))
    if not is_jax(in_set):
        occurs = in_set.any((*range(1, in_set.ndim),))
        sets, in_set = sets[occurs], in_set[occurs]
    masks = [((sets & (1 << i)) != 0) & in_set for i in range(len(totals))]
    return xp.stack([xp.concatenate([mask, never]) for mask in masks])


def with_any(*classes: Array) -> Array:
    """Return the kinds, `(..., K, ..., K)`, that have one of the classes of an axis, `(..., K)`."""
    shapes = np.where(np.eye(len(classes), dtype=bool), classes[0].shape[-1], 1)
    by_axis = [x.reshape((*x.shape[:-1], *shape)) for x, shape in zip(classes, shapes, strict=True)]
    return reduce(or_, by_axis)


class Design(NamedTuple):
    """How samples are made from each table of a batch, `(R, W)`, or `(C, R, W)` for C clusters.

    Attributes:
        sample_of: the function that makes a sample of a table, such as `of_counts`.
        options: the options of this function.
        contrasts: `(P, T)`, P rows of factors: the metric of each of the T tables of a sample is
            multiplied by its factor, and the products are added.
        is_clustered: whether there is one table per cluster.
        is_weighted: whether there are two tables, the sums of weights and of their squares.
    """

    sample_of: Callable[..., Sample]
    options: tuple[tuple[str, Any], ...] = ()
    contrasts: tuple[tuple[int, ...], ...] = ((1,),)
    is_clustered: bool = False
    is_weighted: bool = False

    @property
    def ndim(self) -> int:
        """The number of axes of the array from which a sample is made."""
        return 3 if self.is_clustered or self.is_weighted else 2

    def sample(self, table: Array, labels: Array | None = None) -> Sample:
        sample_of = partial(self.sample_of, **dict(self.options))
        if self.is_weighted:
            return of_weighted(sample_of, *table)
        total = table.sum(0) if self.is_clustered else table
        sample = sample_of(total) if labels is None else sample_of(total, labels)
        if not self.is_clustered:
            return sample
        return sample._replace(clusters=table.reshape((len(table), *sample.counts.shape)))


def of_weighted(sample_of: Callable[[Array], Sample], sums: Array, squares: Array) -> Sample:
    """Return the sample of examples with weights, from the sums of weights and of their squares.

    The W examples of a cell have the effective number `sum(w)^2 / sum(w^2)` (Kish, 1965, Survey
    Sampling), and each of these adds `sum(w^2) / sum(w)` to the table. So the table has the sums of
    weights, and the variance of each cell is `sum(w^2)`. If all weights of a cell are equal, the
    effective number is the number of examples. An example of an empty cell adds as much as the
    average effective example of its true class or, if the class is empty, of the table.
    """
    effective = sums * divide(sums, squares)
    of_all = divide(squares.sum(), sums.sum())
    of_row = divide(squares.sum(-1, keepdims=True), sums.sum(-1, keepdims=True), of_all)
    sample = sample_of(effective)
    each = divide(squares, sums, of_row).reshape(sample.counts.shape)
    return sample._replace(
        tables=lambda numbers: sample.tables(numbers * each),
        adjoint=lambda slopes: sample.adjoint(slopes) * each,
        is_weighted=True,
    )


def distinct(
    named_labels: Mapping[str, ArrayLike], k: int, where: ArrayLike | None
) -> tuple[Array, Array]:
    """Return counts of the combinations of labels that occur, `(R, W)`, and their labels.

    The labels, `(C, R, W)`, come from C arguments. If values are unknown under jit, each example
    counts as a separate combination.
    """
    mask = as_mask(where)
    ids: list[Array] = []
    for name, labels in named_labels.items():
        truth = ids[0] >= 0 if ids else None
        ids.append(as_class_ids(labels, name, k, mask, truth, is_truth=not ids))
    if not all(map(is_known, (*ids, mask))):  # under jit
        hidden = xp.stack([x.astype(xp.int32) for x in ids])
        counted = ((hidden >= 0) & (hidden < k)).all(0) & (True if mask is None else mask)
        return in_rectangle(counted.astype(float_dtype(counted)), hidden, k)
    table = np.stack([np.asarray(x, np.int32) for x in ids])
    kept = ((table >= 0) & (table < k)).all(0) & (True if mask is None else np.asarray(mask))
    table = table[:, kept]
    # Combinations are numbered after each row among those that occur, to keep the numbers small.
    combination = table[0].astype(np.int64)
    for row in table[1:]:
        combination = np.unique(combination * k + row, return_inverse=True)[1].astype(np.int64)
    _, first, counts = np.unique(combination, return_index=True, return_counts=True)
    cells, labels = in_rectangle(counts.astype(float), table[:, first], k)
    if not on_device(ids, mask):
        return cells, labels
    return jax.numpy.asarray(cells, float_dtype()), jax.numpy.asarray(labels, np.int32)


def check_one_axis(named_labels: Mapping[str, ArrayLike], where: ArrayLike | None) -> None:
    """Check that labels and mask have the shape `(n,)`."""
    arrays = {name: as_array(labels, name) for name, labels in named_labels.items()}
    shapes = shapes_of(**arrays, where=as_mask(where))
    check_examples(shapes)
    if any(len(shape) != 1 for shape in shapes.values()):
        described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(
            f"Labels and masks must have shape (n,), got the shapes {described}.{RAVEL}"
        )


def in_rectangle(counts: Array, labels: Array, k: int) -> tuple[Array, Array]:
    """Lay out cells `(U,)` as a rectangle `(R, W)`, and their labels `(C, U)` as `(C, R, W)`."""
    # R and W are powers of two, about equal: a multinomial then takes R + W steps instead of U.
    number = len(counts)
    exponent = math.ceil(math.log2(max(number, 1)))
    shape = 2 ** (exponent // 2), 2 ** (exponent - exponent // 2)
    padding = math.prod(shape) - number
    counts = xp.pad(counts, (0, padding))
    labels = xp.pad(labels, ((0, 0), (0, padding)), constant_values=k)
    return counts.reshape(shape), labels.reshape((-1, *shape))


def used_cells(table: Array, *, by_row: bool = False) -> tuple[Array, Array] | None:
    """Return the nonempty cells of a table `(K, K)` or of pairs `(K, K K)`, like `distinct`.

    If `by_row` is True, each class keeps its own row, `(K, W)`, where W is a power of two; None is
    returned if this array is not smaller than the table.
    """
    k, num_columns = table.shape
    true, column = np.nonzero(np.asarray(table))
    preds = np.divmod(column, k) if num_columns > k else (column,)
    cells, labels = table[true, column], np.stack([true, *preds]).astype(np.int32)
    if not by_row:
        return in_rectangle(cells, labels, k)
    place = np.arange(len(true)) - np.searchsorted(true, true)
    width = 2 ** math.ceil(math.log2(max(place.max(initial=0) + 1, 1)))
    if width >= num_columns:
        return None
    number = np.full((k, width), len(true))
    number[true, place] = np.arange(len(true))
    filled = np.pad(labels, ((0, 0), (0, 1)), constant_values=k)
    return xp.pad(cells, (0, 1))[number], filled[:, number]


def tabulation(labels: Array, k: int) -> Callable[[Array], Array]:
    """Return the function from cells `(..., R, W)` to confusion matrices of M classifiers.

    The matrices are `(..., M, K, K)`. The labels of the cells, `(1 + M, R, W)`, are the truth and
    the M predictions, or K for empty cells.
    """
    true, *preds = labels.reshape((len(labels), -1))
    sums = [sums_by_entry(true * k + pred, k * k) for pred in preds]

    def tabulate(cells: Array) -> Array:
        batch = cells.shape[:-2]
        flat = cells.reshape((*batch, -1))
        return xp.stack([of(flat).reshape((*batch, k, k)) for of in sums], -3)

    return tabulate


def sums_by_entry(entries: Array, size: int) -> Callable[[Array], Array]:
    """Return a function that adds up cells `(..., U)` with the same entry, to `(..., size)`.

    A cell is dropped if its entry is `size` or more.
    """
    if is_jax(entries):
        return lambda cells: (
            jax.numpy.zeros((*cells.shape[:-1], size), cells.dtype)
            .at[..., entries]
            .add(cells, mode="drop")
        )
    order = np.argsort(entries, kind="stable")[: np.count_nonzero(entries < size)]
    occurring, first = np.unique(entries[order], return_index=True)

    def sums(cells: np.ndarray) -> np.ndarray:
        result = np.zeros((*cells.shape[:-1], size))
        if len(first):
            result[..., occurring] = np.add.reduceat(np.take(cells, order, -1), first, axis=-1)
        return result

    return sums
