"""Streaming evaluation: the same numbers from one batch or a million, on one device or many.

An evaluator consists of accumulators and holds no data. Its state is a pytree of arrays, with the
same structure, shapes and dtypes from `init` on: a valid carry of `lax.scan`, which may be donated,
checkpointed, pickled, and mapped by `jax.vmap` over seeds or models. Unweighted counts are exact
below 2^64; sums of weights and values have twice the digits of a float.

A batch is given as fields by keyword. Fields with one number per example have the same shape
`(..., )`, with any number of axes, and fields with one number per class one axis more: `y_true`,
`y_pred` or `logits` or `y_prob`, `y_score`, `loss`, any name that the accumulators read, and

- `where`: bool; False leaves the example out (the padding of a last batch).
- `sample_weight`: 2 counts as two examples, 0 as none.

If one accumulator cannot use an example, because a label is out of range or a score is NaN, all
accumulators leave it out, so that all results are about the same examples; `num_ignored` counts
such examples, `num_examples` the others. Fields that are missing, unknown or of another shape or
dtype, and states of another evaluator, raise TypeError or ValueError, also under jit.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._compilation import compiled, promoting
from jaxmetrics._namespaces import float_dtype, on_device
from jaxmetrics._validation import (
    ArrayLike,
    as_float,
    as_mask,
    as_weights,
    check_cells,
    is_integer,
)
from jaxmetrics.streaming.accumulators import Accumulator
from jaxmetrics.streaming.standard_statistics import ConfusionMatrix, PairedConfusionMatrix
from jaxmetrics.streaming.states import EvaluatorState, merge, state_of
from jaxmetrics.streaming.statistics import (
    MASK,
    WEIGHT,
    Batch,
    Kind,
    SavedStatistic,
    Statistic,
    converted_field,
    kinds_by_name,
)
from jaxmetrics.streaming.totals import (
    Totals,
    add,
    as_floats,
    as_total,
    no_count,
    no_sum,
    sum_over_devices,
)

__all__ = ["Evaluator", "evaluator", "to_python"]

COUNTERS = ("num_examples", "num_ignored")


def evaluator(*accumulators: Accumulator) -> Evaluator:
    """Make an evaluator: pure functions that add up batches and compute metrics.

    Args:
        accumulators: made by `count_metrics`, `mean_of`, `ranking_metrics`, `calibration_metrics`,
            `paired_metrics` or `poisson_bootstrap`, or an `Accumulator` of a `Statistic` of your
            own. A table that several need is added up once.

    Returns:
        `Evaluator`, with `init`, `update`, `merge`, `psum` and `compute`.

    >>> import jaxmetrics as jm
    >>> metrics = jm.count_metrics({"macro_f1": jm.macro(jm.f1)}, num_classes=2)
    >>> evaluator = jm.evaluator(metrics, jm.mean_of("loss"))
    >>> state = evaluator.init()
    >>> for _ in range(3):
    ...     logits, y_true = jnp.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), jnp.array([0, 1, -1])
    ...     loss = jm.cross_entropy(logits, y_true)
    ...     state = evaluator.update(state, y_true=y_true, logits=logits, loss=loss)
    >>> jm.to_python(evaluator.compute(state))
    {'macro_f1': 0.333333, 'loss': 0.720095, 'num_examples': 6.0, 'num_ignored': 3.0}
    """
    for accumulator in accumulators:
        if not isinstance(accumulator, Accumulator):
            raise TypeError(
                "evaluator takes accumulators, such as jaxmetrics.mean_of('loss'), got"
                f" {accumulator!r}."
            )
    if not accumulators:
        raise ValueError("evaluator needs one or more accumulators, got none.")
    result = Evaluator(accumulators)
    names = [*COUNTERS, *result._names]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two results are named {name!r}.")
    return result


@dataclass(frozen=True)
class Evaluator:
    """Pure functions of a state that add up batches and compute metrics; made by `evaluator`.

    It is hashable, so it may be a static argument of `jax.jit`.

    Attributes:
        accumulators: the accumulators that it was made of.
    """

    accumulators: tuple[Accumulator, ...]

    def init(self) -> EvaluatorState:
        """Return the empty state.

        As the carry of a `lax.scan` inside `jax.shard_map` it must vary between devices from the
        start, as the batches do: `jax.lax.pcast(evaluator.init(), axis_name, to="varying")`.
        """
        return _init(self.statistics)

    def update(self, state: EvaluatorState, /, **batch: ArrayLike | None) -> EvaluatorState:
        """Return the state with a batch added.

        Args:
            state: from `init`, `update`, `merge`, `psum` or `load_state`.
            batch: the fields that the accumulators read, and `where` and `sample_weight`; None
                means not given. Each length of a batch is compiled once, so pad the last one. The
                prediction is the first given of `y_pred`, `logits` and `y_prob`.
        """
        self._check(state)
        unknown = sorted(batch.keys() - self._kinds.keys())
        if unknown:
            raise ValueError(
                f"no accumulator reads {', '.join(unknown)}; the fields are"
                f" {', '.join(sorted(self._kinds))}."
            )
        fields = {
            name: converted_field(name, x, self._kinds[name])
            for name, x in batch.items()
            if x is not None
        }
        mask = as_mask(fields.get(MASK))
        for name, x in fields.items():
            # Other shapes raise below, where shapes are compared.
            if self._kinds[name] is Kind.WEIGHTS and (mask is None or mask.shape == x.shape):
                as_weights(x, mask, name=name)
        return _update(state, fields, statistics=self.statistics)

    def merge(self, a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
        """Add two states, for example of two hosts.

        The order of states does not matter: exactly for counts, and to rounding for other sums.
        """
        self._check(a)
        self._check(b)
        return merge(a, b)

    def psum(self, state: EvaluatorState, axis_name: Hashable) -> EvaluatorState:
        """Add the states of up to 4096 devices along an axis of `jax.shard_map` or `jax.vmap`.

        It is not needed for a sharded batch under `jax.jit`, where `update` sees the whole batch.
        """
        self._check(state)
        return jax.tree.map(partial(sum_over_devices, axis_name=axis_name), state)

    def compute(self, state: EvaluatorState) -> dict[str, Any]:
        """Return the results by name, with `num_examples` and `num_ignored`.

        Results stay on the device; `to_python` moves them to the host. Metrics are traced in their
        current state. For a stacked history of states use `jax.vmap(evaluator.compute)`.
        """
        self._check(state)
        results = _compute(self, state if on_device(state) else jax.tree.map(jnp.asarray, state))
        return {
            name: results[name] for name in (*self._names, *COUNTERS)
        }  # jit has sorted the names

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for accumulator in self.accumulators for name, _ in accumulator.results)

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """List the statistics that are added up, each once, in the order of the state."""
        return tuple(sorted({s for x in self.accumulators for s in x.statistics}, key=repr))

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        of_all = {MASK: Kind.NUMBERS, WEIGHT: Kind.WEIGHTS}
        return kinds_by_name([of_all, *(statistic.fields for statistic in self.statistics)])

    def _check(self, state: EvaluatorState) -> None:
        leaves, structure = jax.tree.flatten(state)
        expected = _layout(self, float_dtype())
        if structure != expected[0] or tuple((x.shape, x.dtype) for x in leaves) != expected[1]:
            raise _mismatch(state, jax.eval_shape(self.init))


@partial(jax.jit, static_argnums=0)
def _init(statistics: tuple[Statistic, ...]) -> EvaluatorState:
    """Jitted, so that no constant is transferred from the host."""
    for s in statistics:
        check_cells(s.shape, f"the sizes of {s!r}")
    totals: dict[Statistic | SavedStatistic, Totals] = {
        s: Totals(no_sum(s.shape), no_count(s.shape) if s.is_integer else None) for s in statistics
    }
    return state_of(no_count((2,)), totals)


@lru_cache(maxsize=256)
def _layout(
    evaluator: Evaluator, dtype: np.dtype
) -> tuple[Any, tuple[tuple[tuple[int, ...], np.dtype], ...]]:
    """Return the structure, shapes and dtypes of its states, which depend on the float `dtype`."""
    leaves, structure = jax.tree.flatten(jax.eval_shape(evaluator.init))
    return structure, tuple((x.shape, x.dtype) for x in leaves)


def _mismatch(state: Any, expected: EvaluatorState) -> Exception:
    if not isinstance(state, EvaluatorState):
        return TypeError(f"state must be what init returned, got {type(state).__name__}.")
    ours, theirs = expected.statistics, state.statistics
    foreign = [f"has {x!r}" for x in theirs if x not in ours]
    missing = [f"lacks {x!r}" for x in ours if x not in theirs]
    if foreign or missing:
        hint = f"this one's hold {', '.join(map(repr, ours))}"
        if any(isinstance(x, SavedStatistic) for x in theirs):
            hint = "load_state(path, evaluator) reads statistics of your own"
        return ValueError(f"a state of another evaluator: it {[*foreign, *missing][0]}; {hint}.")
    found, needed = (
        ", ".join(f"{x.dtype}{list(x.shape)}" for x in jax.tree.leaves(tree))
        for tree in (state, expected)
    )
    return ValueError(
        f"a state should hold {needed}, got {found}. (x64 decides on the dtype of sums; a stack of"
        " states goes through jax.vmap.)"
    )


# Statistics whose cells sum to the number of examples.
_COUNTED_ONCE = ConfusionMatrix, PairedConfusionMatrix


@promoting
@partial(jax.jit, static_argnames="statistics")
def _update(
    state: EvaluatorState, fields: dict[str, jax.Array], *, statistics: tuple[Statistic, ...]
) -> EvaluatorState:
    batch = Batch(fields, kinds_by_name(s.fields for s in statistics))
    present = jnp.ones(batch.size, bool) if batch.where is None else batch.where
    if batch.weight is not None:
        present = present & (batch.weight != 0)
    keep = present
    for statistic in statistics:
        usable = statistic.is_usable(batch)
        keep = keep if usable is None else keep & usable
    tables = [_checked(jnp.asarray(s.table(batch, batch.weight, keep)), s) for s in statistics]

    # The sum of a small table is the number of examples, without another pass over them.
    counted = [x for s, x in zip(statistics, tables, strict=True) if isinstance(s, _COUNTED_ONCE)]
    small = [table for table in counted if is_integer(table) and table.size < batch.size]
    kept = (small[0] if small else keep).sum(dtype=jnp.int32)
    examples = jnp.stack([kept, present.sum(dtype=jnp.int32) - kept])
    return EvaluatorState(
        add(state.examples, as_total(examples)),
        tuple(_added(totals, x) for totals, x in zip(state.totals, tables, strict=True)),
        state.statistics,
    )


def _checked(table: jax.Array, statistic: Statistic) -> jax.Array:
    if table.shape != statistic.shape:
        raise ValueError(
            f"{statistic!r} made a table of shape {table.shape}; its shape is {statistic.shape}."
        )
    return table


def _added(totals: Totals, table: jax.Array) -> Totals:
    if totals.counts is not None and is_integer(table):
        return totals._replace(counts=add(totals.counts, as_total(table)))
    return totals._replace(sums=add(totals.sums, as_total(table.astype(float_dtype()))))


@compiled
def _compute(evaluator: Evaluator, state: EvaluatorState) -> dict[str, Any]:
    def table(totals: Totals) -> jax.Array:
        total = as_floats(totals.sums)
        return total if totals.counts is None else as_floats(totals.counts) + total

    tables = dict(zip(state.statistics, map(table, state.totals), strict=True))
    results = {
        name: result(*(tables[statistic] for statistic in accumulator.statistics))
        for accumulator in evaluator.accumulators
        for name, result in accumulator.results
    }
    return results | dict(zip(COUNTERS, as_floats(state.examples), strict=True))


def to_python(results: Any) -> dict[str, Any]:
    """Move results to the host in one transfer, as floats and lists of floats, ready for a log.

    The fields of an `Estimate`, a `Comparison` or another named tuple follow a slash: `"f1"` (its
    value), `"f1/low"`.

    Args:
        results: returned by `compute` of an `Evaluator`, or any pytree of arrays in a dict.

    >>> import jaxmetrics as jm
    >>> estimate = jm.interval(jm.accuracy, [[3, 1], [0, 4]], method=jm.Delta())
    >>> to_python({"accuracy": estimate, "recall": jnp.array([0.75, 1.0])})
    {'accuracy': 0.875, 'accuracy/low': 0.645828, 'accuracy/high': 1.104172,
     'accuracy/standard_error': 0.116927, 'accuracy/num_undefined': 0.0, 'recall': [0.75, 1.0]}
    """
    flat: dict[str, Any] = {}

    def collect(name: str, x: Any) -> None:
        if hasattr(x, "_asdict") or isinstance(x, dict):
            for part, value in (x if isinstance(x, dict) else x._asdict()).items():
                longer = f"{name}/{part}" if name else str(part)
                collect(name if part == "value" and name else longer, value)
        elif isinstance(x, list | tuple):
            for i, value in enumerate(x):
                collect(f"{name}/{i}", value)
        elif name in flat:
            raise ValueError(f"two results are named {name!r}.")
        else:
            flat[name] = x

    try:
        collect("", results)
    except RecursionError:
        raise ValueError("results contains itself.") from None
    return {
        name: np.asarray(as_float(x, f"results[{name!r}]"), float).tolist()
        for name, x in zip(flat, jax.device_get(list(flat.values())), strict=True)
    }
