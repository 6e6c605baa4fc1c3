"""Estimate a metric of a sample by an interval method, for each table of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._applied import Applied, Reads, is_of_equal_classes, read_by
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_counts,
    as_float,
    check_flag,
    check_level,
    check_size,
    refuse_where,
    require,
)
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import Array, is_jax, is_known, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._sums.bin_edges import as_histogram
from jaxmetrics.clusters import as_clusters
from jaxmetrics.estimates import Metric, normal_quantile
from jaxmetrics.intervals.checks import (
    FewExamplesWarning,
    as_floats,
    check_counts,
    few_examples,
    name_of,
    nan_unless,
    placed,
)
from jaxmetrics.intervals.functionals import Functional, Row
from jaxmetrics.intervals.replicates import map_tables
from jaxmetrics.intervals.samples import (
    Design,
    of_combinations,
    of_counts,
    of_pairs,
    used_cells,
)

__all__: list[str] = []


_NARROWEST = 500  # examples


class Confidence(NamedTuple):
    """Confidence level of an interval, and how often the interval is looked at.

    Attributes:
        level: the confidence level of the interval of one value.
        narrowest: None if the interval is computed once; if the interval is anytime-valid, the
            number of units at which it is narrowest.
    """

    level: float
    narrowest: int | None = None

    def quantile(self, n: Array) -> Array | float:
        """Return the half-width of the interval in standard errors, for n independent units.

        If the interval is computed once, the half-width is the normal quantile. If the interval is
        anytime-valid, the half-width is the boundary that a normal mixture martingale crosses with
        probability α, `sqrt(2 (1 + 1 / m) ln(sqrt(m + 1) / α))` with m = n ρ^2. Source:
        Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), Annals of Statistics 52, theorem
        2.2, and appendix B.2 for the choice of ρ.
        """
        if self.narrowest is None:
            return normal_quantile(self.level)
        doubled = -2 * math.log(1 - self.level)
        m = n * ((doubled + math.log(doubled) + 1) / self.narrowest)
        reach = xp.sqrt((1 + divide(1.0, m)) * (xp.log1p(m) + doubled))
        return xp.where(m > 0, reach, xp.inf)


class Question(NamedTuple):
    """A metric and the tables for which the metric is estimated, by any interval method.

    Attributes:
        metric: a function of one table `(K, W)`, whose results have the dtype of the computation.
        tables: `(..., R, W)`, or `(..., C, R, W)` if there are C clusters.
        design: how samples are made from the tables.
        shape: the shape of the tables that the metric reads.
        labels: the labels of combinations of truth and T predictions, `(1 + T, R, W)`; None if
            tables are not made from combinations.
    """

    metric: Metric
    tables: Array
    design: Design
    shape: tuple[int, ...]
    labels: Array | None = None

    @classmethod
    def of(
        cls,
        metric: Metric,
        tables: Array,
        design: Design,
        shape: tuple[int, ...],
        labels: Array | None = None,
    ) -> Question:
        """Convert the tables to JAX arrays if the metric returns JAX arrays for a table of ones."""
        floats, tables = placed(as_floats(metric), tables, shape)
        return cls(floats, tables, design, shape, labels)


def question_of(
    metric: Metric,
    counts: ArrayLike,
    check: Callable[..., Array],
    *,
    squares: ArrayLike | None = None,
    cluster_axis: int | None = None,
    stratified: bool = False,
) -> Question:
    """Interpret counts as the metric requires: as matrices, pairs, groups, labels or histograms.

    `squares` are the sums of the squares of weights, see `interval`.
    """
    is_clustered = cluster_axis is not None
    if squares is not None and is_clustered:
        raise ValueError(
            "squares and cluster_axis cannot be used together. Leave out squares: with"
            ' method=jaxmetrics.Delta("logit"), tables of clusters may contain sums of weights.'
        )
    if check_flag(stratified, "stratified") and is_clustered:
        raise ValueError(
            "stratified=True keeps the number of examples of each class fixed, but with"
            " cluster_axis, whole clusters are drawn, so that the number of examples of each class"
            " varies. Leave out stratified."
        )
    reads = read_by(metric)
    if reads is not None and reads.labels and not is_clustered:
        raise ValueError(
            f"metric {name_of(metric)} reads one table for each label. Such tables do not show how"
            " the labels of the same example are correlated, so an interval needs one table for"
            " each example and label. Pass multilabel_confusion_matrix(y_true[:, None, :],"
            " y_pred[:, None, :]) and cluster_axis=-4."
        )
    metric, tables, design, shape = _read(metric, counts, reads)
    ndim = 2 if reads is None else 3
    if stratified:
        design = design._replace(options=(*design.options, ("is_stratified", True)))
    if squares is None:
        tables = check(tables, table_ndim=ndim, is_clustered=is_clustered)
    else:
        tables = _with_squares(check_counts(tables, table_ndim=ndim), squares, ndim)
        design = design._replace(is_weighted=True)
    if cluster_axis is not None:
        tables = as_clusters(tables, cluster_axis, table_ndim=ndim)
        design = design._replace(is_clustered=True)
    is_counted = reads is squares is cluster_axis is None and isinstance(tables, np.ndarray)
    if is_counted and is_of_equal_classes(metric) and (text := few_examples(tables.sum(-1))):
        warn(text, FewExamplesWarning)
    width = math.prod(tables.shape[-ndim:]) // shape[0]
    tables = tables.reshape((*tables.shape[: tables.ndim - ndim], shape[0], width))
    try:
        return Question.of(metric, tables, design, shape)
    except Exception as error:
        if reads is None and np.ndim(counts) - is_clustered > 2:
            error.add_note(
                f"The metric was called with one table of shape {shape}. If a metric of your own"
                " needs tables with three axes, such as the (L, 2, 2) of L labels or the (G, K, K)"
                " of G groups, give your function the attribute table_ndim = 3 (f.table_ndim = 3)."
            )
        raise


def _with_squares(counts: Array, squares: ArrayLike, ndim: int) -> Array:
    """Return sums of weights and of their squares, `(..., *table)`, as `(..., 2, *table)`."""
    array = as_float(squares, "squares")
    expected = f"have the shape {counts.shape} of counts"
    require(array.shape == counts.shape, "squares", expected, array.shape)
    array = check_counts(array, "squares", table_ndim=ndim)
    message = (
        "but an example with a weight adds to both counts and squares. Compute squares from the"
        " same examples as counts, with sample_weight=w**2."
    )
    refuse_where((array > 0) != (counts > 0), array, "squares", message)
    return xp.stack([counts, array], -ndim - 1)


def _read(
    metric: Metric, counts: ArrayLike, reads: Reads | None
) -> tuple[Metric, Array, Design, tuple[int, int]]:
    """Return the function of one table, the tables, their design and the shape of one table."""
    if reads is not None and reads.pairs and isinstance(metric, Applied):
        tables = as_counts(counts, "paired", ndim=3)
        return metric.function, tables, Design(of_pairs, contrasts=((1, -1),)), tables.shape[-2:]
    tables = as_float(counts, "counts")
    if reads is None:
        is_histogram = tables.ndim > 1 and tables.shape[-2] == 2 and tables.shape[-1] > 2
        tables = as_histogram(tables) if is_histogram else as_counts(tables)
        return metric, tables, Design(of_counts), tables.shape[-2:]
    if tables.ndim < 3 or tables.shape[-1] != tables.shape[-2]:
        raise ValueError(
            "metric needs tables with three axes, such as (G, K, K) for G groups, but counts has"
            f" the shape {tables.shape}."
        )
    number, k, _ = tables.shape[-3:]
    stacked = Applied(_stacked, as_floats(metric), (("number", number),))
    return stacked, tables, Design(of_counts, (("num_tables", number),)), (number * k, k)


def _stacked(metric: Metric, table: Array, number: int) -> Any:
    """Compute a metric of groups `(..., G, K, K)` from stacked tables `(..., G K, K)`."""
    *batch, _, k = table.shape
    return metric(table.reshape((*batch, number, -1, k)))


def reach_of(
    method: Any,
    question: Question,
    level: float,
    simultaneous: bool = False,
    anytime: bool | int = False,
) -> Confidence:
    """Return the confidence of the interval of each value; for the arguments see `interval`."""
    if method.draws and anytime is not False:
        raise ValueError(
            f"{method.name} cannot compute intervals with the option anytime. Use Likelihood() or"
            " Delta()."
        )
    level = check_level(level)
    if check_flag(simultaneous, "simultaneous"):
        example = xp.ones_like(question.tables, shape=question.shape)
        shapes_on_device = partial(jax.eval_shape, question.metric)
        values = (shapes_on_device if is_jax(example) else question.metric)(example)
        number = sum(math.prod(np.shape(x)) for x in trees.leaves(values))
        level = level ** (1 / max(number, 1))
    if isinstance(anytime, bool | np.bool_):
        return Confidence(level, _NARROWEST if anytime else None)
    return Confidence(level, check_size(anytime, "anytime"))


def answer(
    question: Question, method: Any, reach: Confidence, *extra: Any, summary: Any = None
) -> Any:
    """Estimate a metric by an interval method, and check the result.

    Args:
        summary: None to return estimates, or a function that returns another pytree of arrays
            `(V,)`. Its arguments are the method's estimates and replicates, the metric as a
            `Functional`, the `Confidence`, and `extra`.
    """
    method, tables = method.prepared(question.tables, question.shape[-1])
    question = question._replace(tables=tables)
    function = partial(_estimates, reach=reach, summary=summary)
    listed = _listed(method, question)
    if listed is None:
        return method.checked(
            of_samples(function, question, method, *extra, numbers=method.numbers)
        )

    def alone(table: Array) -> Any:
        cells, labels = listed(table) or (table, None)
        of_table = question._replace(tables=cells, labels=labels)
        if labels is not None:
            options = (*question.design.options, ("num_classes", len(table)))
            design = question.design._replace(sample_of=of_combinations, options=options)
            of_table = of_table._replace(design=design)
        return of_samples(function, of_table, method, *extra, numbers=method.numbers)

    # Tables are evaluated one by one, so that each gets the same draws as it would alone.
    each = [alone(table) for table in tables.reshape((-1, *tables.shape[-2:]))]
    batch = tables.shape[:-2]
    return method.checked(
        trees.map(lambda *x: xp.stack(x).reshape((*batch, *np.shape(x[0]))), *each)
    )


def _listed(method: Any, question: Question) -> Callable[[Array], Any] | None:
    """Return the function that lists nonempty cells, or None if listing them saves no time."""
    tables, design = question.tables, question.design
    if question.labels is not None or design.ndim > 2 or not is_known(tables):
        return None
    if not tables.size or math.prod(tables.shape[-2:]) <= method.most_kinds:
        return None
    if design.sample_of is of_pairs:
        return partial(used_cells, by_row=("is_stratified", True) in design.options)
    is_square = tables.shape[-1] == tables.shape[-2]
    is_listed = method.draws and is_jax(tables) and is_square
    return partial(used_cells, by_row=True) if is_listed else None


def _estimates(
    metric: Functional, method: Any, *extra: Any, reach: Confidence, summary: Any
) -> Any:
    estimate, samples = method.estimate(metric, reach)
    sample, result = metric.sample, estimate
    if sample.clusters is not None:
        several = (sample.units.counts.sum(-1) > 1).all()  # one cluster does not show the variance
        known = {"value": estimate.value, "effective_number": estimate.effective_number}
        result = replace(nan_unless(several, estimate), **known)
    number = xp.broadcast_to(sample.counts.sum(), estimate.value.shape)
    name = "effective_number" if sample.is_weighted else "num_examples"
    result = replace(result, **{name: number})
    if summary is not None:
        result = summary(result, samples, metric, reach, *extra)
    return nan_unless(sample.is_valid | (not method.needs_examples), result)


def of_samples(
    function: Callable[..., Any], question: Question, *arrays: Any, numbers: int = 1
) -> Any:
    """Compute `function(functional, *arrays)`, a pytree of arrays `(V,)`, for each of the samples.

    `numbers` is the memory that the function needs, divided by the memory of one table.
    """
    metric, tables, design, _, labels = question
    return _of_samples(
        tables, labels, *arrays, function=function, metric=metric, design=design, numbers=numbers
    )


@compiled
def _of_samples(
    tables: Array,
    labels: Array | None,
    *arrays: Any,
    function: Callable[..., Any],
    metric: Metric,
    design: Design,
    numbers: int,
) -> Any:
    ndim = design.ndim
    shape = tables.shape[tables.ndim - ndim :]
    one = tables.reshape((-1, *shape))[0] if tables.size else np.ones(shape)
    sample = design.sample(one, labels)
    row = Row(metric, sample.tables(sample.counts)[0])

    def of_table(table: Array) -> Any:
        return function(Functional(design.sample(table, labels), row, design.contrasts), *arrays)

    rows = map_tables(of_table, tables, numbers * math.prod(shape), table_ndim=ndim)
    return row.unflatten(rows, tables.ndim - ndim)
