"""Bootstrap of examples for any statistic, and bootstrap replicates of confusion matrices.

The acceleration of BCa is computed by the jackknife, which leaves out one example (or cluster) at a
time. If there are more than 1000 examples (or clusters), the jackknife leaves out one of at most
1000 random groups at a time. Replicates are evaluated in chunks, so that memory stays bounded. If a
stratum of m examples is resampled, the variance of its mean is only `(m - 1) / m` of the true
variance. Intervals are therefore too narrow if there are fewer than 10 examples per stratum.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxmetrics._applied import of_weights
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.keys import HostKey, Key, KeyLike, key_first, place
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_array,
    as_counts,
    check_cells,
    check_flag,
    check_function,
    check_level,
    check_option,
    check_real,
    check_samples,
)
from jaxmetrics._numerics.arithmetic import matmul
from jaxmetrics._places.chunks import LANES, map_chunks
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, float_dtype, is_jax, on_device, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics.clusters import numbered_clusters, warn_of_clusters
from jaxmetrics.estimates import Estimate, with_level
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.checks import (
    MOST_EXAMPLES,
    answers_on_device,
    as_values,
    check_counts,
    check_finite,
    check_num_samples,
    nan_unless,
    read_only,
)
from jaxmetrics.intervals.functionals import Row
from jaxmetrics.intervals.quantiles import KINDS, acceleration_of, estimate_of

__all__ = ["bootstrap_counts", "bootstrap_examples"]


_FEWEST = 10  # units of a stratum, which show 90 % of the variance
_GROUPS = 1000  # the jackknife of `bootstrap_examples` leaves out one of at most as many groups


def bootstrap_examples(
    key: KeyLike,
    statistic: Callable[..., Any],
    *arrays: ArrayLike,
    num_samples: int = 2000,
    level: float = 0.95,
    kind: Literal["bca", "percentile", "basic"] = "bca",
    resample: Literal["indices", "weights"] = "indices",
    clusters: ArrayLike | Sequence[Any] | None = None,
    strata: ArrayLike | Sequence[Any] | None = None,
) -> Estimate:
    """Compute a bootstrap confidence interval of any statistic, by resampling the examples.

    For a metric of a confusion matrix, `interval` with `Bootstrap` is much faster.

    Args:
        key: a JAX key or an int seed. If `arrays` are NumPy arrays, it may be a NumPy Generator.
        statistic: a function of `arrays` that returns an array, or arrays in a dict or tuple. For
            JAX arrays it must work under `jax.jit`. For NumPy arrays it is called with N resamples
            at once if it accepts the shape `(N, n, ...)`.
        arrays: arrays of shape `(n, ...)`, with the examples on the first axis.
        num_samples: number of resamples.
        level: the confidence level.
        kind: `"bca"`, `"percentile"` or `"basic"`; see `Bootstrap`.
        resample: `"indices"` calls `statistic(*resampled_arrays)`. `"weights"` calls
            `statistic(*arrays, sample_weight=w)`, where w of shape `(n,)` counts how often each
            example was drawn. `"weights"` is faster if the statistic sorts the examples.
        clusters: cluster id of each example, of shape `(n,)` and any hashable type. A cluster is a
            group of correlated examples, such as the images of one patient. Whole clusters are
            drawn. Fewer than 20 clusters give a warning.
        strata: stratum id of each example, of shape `(n,)` and any hashable type. A stratum is a
            group whose number of examples was fixed in advance, such as a class. Each resample has
            as many examples (or clusters) of each stratum as the data. Fewer than 10 in a stratum
            give a warning.

    Returns:
        `Estimate`, or a dict or tuple of them, like the result of `statistic`. The ends are NaN if
        there is only one cluster.

    Raises:
        TypeError, ValueError: if arrays differ in length or are empty, if ids or options are
            invalid, if a cluster lies in two strata, or if the statistic is never finite. With
            `resample="indices"`, clusters of JAX arrays must have equal sizes.

    >>> error = np.linspace(0, 1, 101) ** 2
    >>> bootstrap_examples(0, np.median, error)
    0.250 [0.168, 0.352]
    >>> site = np.arange(101) // 26  # errors differ more between sites than within a site
    >>> within_sites = bootstrap_examples(0, np.mean, error, strata=site)
    >>> within_sites.standard_error / bootstrap_examples(0, np.mean, error).standard_error < 0.4
    np.True_
    """
    check_order(arrays=arrays, clusters=clusters, strata=strata)
    check_option(kind, "kind", tuple(KINDS))
    check_option(resample, "resample", ("indices", "weights"))
    size, level = check_num_samples(num_samples), check_level(level)
    examples = _as_examples(arrays)
    check_function(statistic, "statistic", "a function of the arrays, after the key")
    if resample == "weights":
        _check_takes_weights(statistic)
    shape, members = examples[0].shape[:1], None
    if clusters is not None:
        numbers, _ = numbered_clusters(clusters, shape)
        members = _Members(numbers, np.argsort(numbers, kind="stable"), np.bincount(numbers))
        warn_of_clusters(members.sizes)
    if _sorted_once(statistic, examples) is not None:
        resample = "weights"  # faster, and the values are the same
    if not on_device(examples) and _answers_on_device(statistic, examples, resample):
        examples = tuple(map(jax.numpy.asarray, examples))
    if members is not None and resample == "indices" and on_device(examples):
        _check_of_one_size(members.sizes)
    of_units = _strata_of_units(strata, members, shape)
    if strata is not None and (fewest := np.bincount(of_units).min()) < _FEWEST:
        units = "examples" if members is None else "clusters"
        warn(
            f"a stratum has only {fewest} of the {units}. With fewer than {_FEWEST} per stratum,"
            " resampling shows too little of the variance, so intervals are too narrow. Merge"
            " similar strata, or for a survey use a package such as samplics."
        )
    placed_key, *placed = place(key, *examples)
    estimates = _bootstrap_examples(
        placed_key,
        tuple(placed),
        members,
        _Strata.of(of_units),
        _groups_left_out(of_units) if kind == "bca" and len(of_units) > 1 else None,
        statistic=statistic,
        by_weights=resample == "weights",
        size=size,
        level=level,
        kind=kind,
    )
    check_finite(estimates, size, "statistic(*arrays)", "resamples of arrays")
    return with_level(estimates, level, kind)


def _as_examples(arrays: Sequence[ArrayLike]) -> tuple[Array, ...]:
    examples = tuple(as_array(array, f"arrays[{i}]") for i, array in enumerate(arrays))
    # Arrays of labels must have the same ids, so that they cannot be converted one by one.
    way = (
        " numpy.searchsorted(classes, labels) converts labels to class ids, where classes are the"
        " sorted labels of all classes."
    )
    for i, array in enumerate(examples):
        check_real(array, f"arrays[{i}]", way)
    lengths = {x.shape[:1] for x in examples}
    if len(lengths) != 1 or lengths <= {(), (0,)}:
        shapes = ", ".join(str(x.shape) for x in examples)
        raise ValueError(
            "All arrays must have the same number of examples on their first axis, and at least"
            f" one example, got {shapes or None}."
        )
    return examples


def _answers_on_device(
    statistic: Callable[..., Any], examples: tuple[np.ndarray, ...], resample: str
) -> bool:
    weights = {"sample_weight": np.ones(len(examples[0]))} if resample == "weights" else {}
    if resample == "indices":  # a statistic may sort its resample in place
        examples = tuple(x.copy() for x in examples)
    return answers_on_device(statistic, *examples, **weights)


class _Members(NamedTuple):
    """The examples of each cluster."""

    numbers: Array  # for each example, the number of its cluster
    examples: Array  # the indices of the examples, sorted by cluster
    sizes: Array  # the number of examples in each cluster

    def of(self, drawn: Array) -> Array:
        """Return the examples of the drawn clusters, `(..., m)`.

        If clusters differ in size, batches are not supported: `drawn` must have shape `(m,)`.
        """
        if on_device(drawn) or (self.sizes == self.sizes[0]).all():
            rows = self.examples.reshape((len(self.sizes), -1))
            return rows[drawn].reshape((*drawn.shape[:-1], -1))
        if drawn.ndim > 1:
            raise ValueError(
                "If clusters have different numbers of examples, resamples have different numbers"
                " of examples, so several resamples do not fit into one array."
            )
        sizes, first = self.sizes[drawn], np.cumsum(self.sizes) - self.sizes
        # The start of each drawn cluster minus the number of examples before it in the result.
        offsets = first[drawn] - (np.cumsum(sizes) - sizes)
        return self.examples[np.repeat(offsets, sizes) + np.arange(sizes.sum())]


class _Strata(NamedTuple):
    """Units (examples or clusters), sorted by stratum.

    Attributes:
        size: for each unit, the number of units in its stratum.
        first: for each unit, the position of the first unit of its stratum; None if there is a
            single stratum.
        units: the numbers of the units; None if there is a single stratum.
    """

    size: Array
    first: Array | None = None
    units: Array | None = None

    @classmethod
    def of(cls, numbers: np.ndarray) -> _Strata:
        sizes = np.bincount(numbers)
        if len(sizes) == 1:
            return cls(sizes[numbers])
        order = np.argsort(numbers, kind="stable")
        first = np.cumsum(sizes) - sizes
        return cls(sizes[numbers[order]], first[numbers[order]], order)

    def units_at(self, places: Array) -> Array:
        """Return the units at positions within their strata, `(..., m)`."""
        return places if self.units is None else self.units[self.first + places]


def _strata_of_units(strata: Any, members: _Members | None, shape: tuple[int, ...]) -> np.ndarray:
    """Return the number of the stratum of each example, or of each cluster; 0 without strata."""
    if strata is None:
        return np.zeros(shape if members is None else len(members.sizes), int)
    numbers, _ = numbered_clusters(strata, shape, "strata")
    if members is None:
        return numbers
    first = members.examples[np.cumsum(members.sizes) - members.sizes]
    crosses = numbers != numbers[first][members.numbers]
    if crosses.any():
        i = np.argmax(crosses)
        raise ValueError(
            f"Each cluster must lie in a single stratum, but the examples {i} and"
            f" {first[members.numbers[i]]} are in the same cluster and in different strata. If a"
            " cluster may contain several strata, leave out strata."
        )
    return numbers[first]


class _Groups(NamedTuple):
    """Groups of equally many units; the jackknife leaves out one group at a time.

    Attributes:
        units: the units sorted by group, followed by the units that are in no group.
        composition: `(groups, rank)`, an orthonormal basis of the columns of the matrix that
            contains the number of units of each stratum (column) in each group (row).
    """

    units: Array
    composition: Array


def _groups_left_out(strata: np.ndarray) -> _Groups:
    """Group the units at random, such that strata are spread evenly over the groups."""
    order = np.random.default_rng(0).permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    sizes = np.bincount(strata)
    rank = np.concatenate([(np.arange(size) + 0.5) / size for size in sizes])
    order = order[np.argsort(rank, kind="stable")]
    number = len(order) // math.ceil(len(order) / _GROUPS)
    in_groups = strata[order][: len(order) // number * number].reshape((number, -1))
    numbers = np.stack([np.bincount(x, minlength=strata.max() + 1) for x in in_groups])
    u, s, _ = np.linalg.svd(numbers, full_matrices=False)
    return _Groups(order, u[:, s > 1e-9 * s[0]])


def _check_takes_weights(statistic: Callable[..., Any]) -> None:
    try:
        parameters = inspect.signature(statistic).parameters
    except (TypeError, ValueError):  # unknown for some functions in C
        return
    kinds = {x.kind for x in parameters.values()}
    if "sample_weight" not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
        name = getattr(statistic, "__name__", statistic)
        raise TypeError(
            'resample="weights" calls statistic(*arrays, sample_weight=w), where w contains how'
            f" often each example was drawn, but {name} has no argument sample_weight. Pass a"
            " function that has this argument, such as lambda x, sample_weight: (sample_weight *"
            ' x).sum() / sample_weight.sum(), or use resample="indices".'
        )


def _check_of_one_size(sizes: np.ndarray) -> None:
    if sizes.min() < sizes.max():
        raise ValueError(
            f"The clusters have between {sizes.min()} and {sizes.max()} examples, so the number of"
            " examples differs between resamples, which is impossible for JAX arrays. Use"
            ' resample="weights" with a statistic that has the argument sample_weight, or pass'
            " NumPy arrays and a statistic that uses NumPy."
        )


@compiled
def _bootstrap_examples(
    key: Key,
    examples: tuple[Array, ...],
    members: _Members | None,
    strata: _Strata,
    groups: _Groups | None,
    *,
    statistic: Callable[..., Any],
    by_weights: bool,
    size: int,
    level: float,
    kind: str,
) -> Any:
    number = len(strata.size)
    numbers = number + sum(x.size for x in examples)

    of_weighted = _function_of_weights(statistic, examples) if by_weights else None

    def of_units(drawn: Array) -> Any:
        """Compute the statistic of resampled units `(..., m)`."""
        if of_weighted is not None:
            weights = _how_often(drawn, number, float_dtype(*examples))
            values = of_weighted(weights if members is None else weights[..., members.numbers])
        else:
            listed = drawn if members is None else members.of(drawn)
            values = statistic(*(x[listed] for x in examples))
        return as_values(values, "statistic")

    everything = (np if isinstance(key, HostKey) else jax.numpy).arange(number)
    tried = np.random.default_rng(0).integers(number, size=(3, number))
    row = Row(of_units, everything, tried=tried, numbers=numbers)
    samples = replicates.evaluate(
        replicates.places,
        lambda places: row(strata.units_at(places)),
        key,
        strata.size,
        size=size,
        numbers=numbers,
    )
    acceleration = 0.0 if groups is None else _acceleration(row, groups, everything, numbers)
    found = estimate_of(row(everything), samples, level, kind, acceleration)
    found = replace(found, num_examples=xp.full_like(found.value, len(examples[0])))
    if members is not None and number == 1:  # one cluster does not show the variance
        found = replace(nan_unless(xp.zeros((), bool), found), value=found.value)
    return row.unflatten(found)


def _sorted_once(
    statistic: Callable[..., Any], examples: tuple[Array, ...]
) -> Callable[..., Callable[[Array], Any]] | None:
    """Return the statistic as a function of weights that sorts the scores only once, or None.

    `roc_auc` and `average_precision` have such a function.
    """
    return of_weights(statistic) if [x.ndim for x in examples] == [1, 1] else None


def _function_of_weights(
    statistic: Callable[..., Any], examples: tuple[Array, ...]
) -> Callable[[Array], Any]:
    """Return the statistic of the examples as a function of their weights."""
    known, prepare = tuple(map(read_only, examples)), _sorted_once(statistic, examples)
    if prepare is not None:
        return prepare(*known)
    return lambda weights: statistic(*known, sample_weight=weights)


def _acceleration(row: Row, groups: _Groups, everything: Array, numbers: int) -> Array:
    """Return the acceleration of each value by the jackknife."""
    number, num_groups = len(everything), len(groups.composition)
    group = number // num_groups

    def without(group_number: Array) -> Array:
        others = everything[: number - group]
        first = group * group_number[..., None]
        return row(groups.units[others + xp.where(others >= first, group, 0)])

    left_out = map_chunks(without, max(1, LANES // numbers), everything[:num_groups])
    influence = -xp.where(xp.isfinite(left_out), left_out, 0).T
    # The number of units in each stratum is fixed.
    explained = matmul(matmul(influence, groups.composition), groups.composition.T)
    influence = xp.where(xp.isfinite(left_out.T), influence - explained, xp.nan)[:, None]
    share = group * num_groups / number  # the share of units that are in a group
    return share**0.5 * acceleration_of(influence, xp.ones_like(influence))


def _how_often(drawn: Array, number: int, dtype: np.dtype) -> Array:
    """Count how often each unit occurs among the drawn units `(..., m)`: `(..., number)`."""
    if is_jax(drawn):
        return jax.numpy.zeros(number, dtype).at[drawn].add(1)
    rows = drawn.reshape((-1, drawn.shape[-1]))
    # Unit u of row i is counted at i * number + u.
    cells = rows + number * np.arange(len(rows))[:, None]
    times = np.bincount(cells.ravel(), minlength=len(rows) * number)
    return times.reshape((*drawn.shape[:-1], number)).astype(dtype)


@key_first
def bootstrap_counts(
    key: KeyLike,
    counts: ArrayLike,
    num_samples: int,
    *,
    kind: Literal["multinomial", "poisson", "bayesian"] = "multinomial",
    stratified: bool = False,
) -> Array:
    """Draw bootstrap replicates of confusion matrices, which are matrices of resampled test sets.

    - `"multinomial"`: each replicate has as many examples as `counts`, drawn with replacement.
    - `"poisson"`: each example occurs Poisson(1) times, so that the total number of examples
      varies. Batches of examples can then be resampled separately.
    - `"bayesian"`: the weights of the examples are drawn from Dirichlet(1, ..., 1). Source: Rubin
      (1981), Annals of Statistics 9. Only this kind accepts sums of sample weights as `counts`.

    Matrices of a batch may use the same random numbers, so their replicates are not independent.
    For differences or means of several test sets, pass one key per matrix, such as one part of
    `jax.random.split(key, len(counts))`.

    Args:
        key: a JAX key or an int seed. If counts are NumPy arrays, it may be a NumPy Generator.
        counts: numbers of examples, of shape `(..., K, K)`. The total of a matrix must be below
            2^31.
        num_samples: number of replicates S.
        kind: `"multinomial"`, `"poisson"` or `"bayesian"`.
        stratified: True if each replicate should have as many examples of each true class as
            `counts`. It cannot be used with `"poisson"`.

    Returns:
        Replicates of shape `(S, ..., K, K)`, floats. Under jit, the replicates of a matrix with
        invalid counts are NaN.

    Raises:
        ValueError: if the matrices are not square, if counts are negative, if counts are fractional
            and the kind is not `"bayesian"`, or if the options are invalid.

    >>> drawn = bootstrap_counts(0, [[90, 10], [5, 95]], 1000)
    >>> drawn.shape, set(drawn.sum((-2, -1)).tolist())
    ((1000, 2, 2), {200.0})
    """
    check_option(kind, "kind", ("multinomial", "poisson", "bayesian"))
    if check_flag(stratified, "stratified") and kind == "poisson":
        raise ValueError(
            "stratified=True keeps the number of examples of each class fixed, but"
            ' kind="poisson" varies this number. Use kind="multinomial" or kind="bayesian",'
            " or leave out stratified."
        )
    size = check_samples(num_samples, "num_samples")
    most = None if kind == "bayesian" else MOST_EXAMPLES
    placed_key, examples = place(key, check_counts(as_counts(counts), most=most))
    check_cells((size, *examples.shape), "num_samples and counts")
    return _draw_counts(placed_key, examples, kind=kind, stratified=stratified, size=size)


_SAMPLERS = {
    ("multinomial", False): replicates.multinomial,
    ("multinomial", True): replicates.stratified_multinomial,
    ("poisson", False): replicates.poisson,
    ("bayesian", False): replicates.dirichlet,
    ("bayesian", True): replicates.dirichlet_rows,
}


@compiled
def _draw_counts(key: Key, counts: Array, *, kind: str, stratified: bool, size: int) -> Array:
    def totals(table: Array) -> Array:
        return table.sum(-1, keepdims=True) if stratified else table.sum()

    scale = totals if kind == "bayesian" else None
    return replicates.of_tables(_SAMPLERS[kind, stratified], key, counts, size, scale=scale)
