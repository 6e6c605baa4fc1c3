"""Evaluators, which compute metrics of data in batches from running sums.

An evaluator is a set of pure functions that is made from accumulators. The running sums are in a
separate object, the state. The state is a pytree of arrays that you pass from one function to the
next. All states of an evaluator have the same structure, shapes and dtypes. Therefore a state can
be the carry of `lax.scan`. States can also be donated, checkpointed and pickled, and `jax.vmap`
works over states. Unweighted counts are exact below 2^63. Other sums have twice the precision of a
single float.

A batch is given as keyword arguments, which are arrays and are called fields. Their names depend on
the accumulators, such as `y_true`, `y_pred`, `logits`, `y_prob`, `y_score` and `loss`. All fields
with one number per example must have the same shape, with any number of axes. Fields with one
number per example and class have one more axis. Two fields can be used with every accumulator:

- `where`: boolean mask that is False for examples to ignore, such as padding of the last batch.
- `sample_weight`: weight of each example. In values, an example of weight 2 counts like two equal
  examples; in intervals, it is one example. `count_metrics`, `paired_metrics` and `ranking_metrics`
  need `weighted=True`, because they count in integers otherwise.

If the true label or the group of an example is out of range, all accumulators ignore the example.
If a prediction is out of range or unknown (a logit or score is NaN), no accumulator of classes
counts the example, but the means of `mean_of` include it. Such a prediction is a mistake, so do not
report metrics without these examples. The result `num_ignored` is the number of examples that are
ignored because of their label or group, `num_invalid` is the number of other examples with an
invalid prediction, and `num_examples` is the number of all other examples. None of them includes
examples whose `where` is False or whose weight is 0.

TypeError or ValueError is raised, also under jit, if a field is missing or unknown, or if its shape
or dtype is wrong. The same holds for a state from an evaluator with other sums.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arguments.example_arguments import as_weights
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_float,
    as_mask,
    check_cells,
    is_integer,
    on_host,
)
from jaxmetrics._places.compilation import compiled, promoting
from jaxmetrics._places.namespaces import float_dtype, on_device
from jaxmetrics._text.printing import Printed
from jaxmetrics.ranking.histograms import AreaBounds
from jaxmetrics.streaming.accumulators import Accumulator
from jaxmetrics.streaming.standard_statistics import (
    ConfusionMatrix,
    PairedConfusionMatrix,
    SquaredWeights,
    counts_cells,
    valid_predictions,
)
from jaxmetrics.streaming.states import EvaluatorState, merge_checked, state_of
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
    carried_if,
    no_total,
    sum_over_devices,
)

__all__ = ["Evaluator", "evaluator", "to_python"]

COUNTERS = ("num_examples", "num_ignored", "num_invalid")


def evaluator(*accumulators: Accumulator) -> Evaluator:
    """Make an evaluator, which computes metrics of data in batches.

    Args:
        accumulators: what the evaluator computes: results of `count_metrics`, `mean_of`,
            `ranking_metrics`, `calibration_metrics`, `paired_metrics` or `poisson_bootstrap`, or
            your own `Accumulator`. Sums that several accumulators need are computed only once.

    Returns:
        `Evaluator` with the methods `init`, `update`, `merge`, `psum` and `compute`.

    >>> import jaxmetrics as jm
    >>> metrics = jm.count_metrics({"macro_f1": jm.macro(jm.f1)}, num_classes=2)
    >>> evaluator = jm.evaluator(metrics, jm.mean_of("loss"))
    >>> state = evaluator.init()
    >>> for _ in range(3):
    ...     logits, y_true = jnp.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), jnp.array([0, 1, -1])
    ...     loss = jm.cross_entropy(logits, y_true)
    ...     state = evaluator.update(state, y_true=y_true, logits=logits, loss=loss)
    >>> jm.to_python(evaluator.compute(state))
    {'macro_f1': 0.333333, 'loss': 0.720095, 'num_examples': 6.0, 'num_ignored': 3.0,
     'num_invalid': 0.0}
    """
    for accumulator in accumulators:
        if not isinstance(accumulator, Accumulator):
            raise TypeError(
                "accumulators must be of type Accumulator, such as jaxmetrics.mean_of('loss'),"
                f" got {accumulator!r}."
            )
    if not accumulators:
        raise ValueError(
            "An evaluator needs at least one accumulator, such as mean_of('loss'), got none."
        )
    result = Evaluator(accumulators)
    names = [*COUNTERS, *result._names]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two results are named {name!r}.")
    return result


@dataclass(frozen=True)
class Evaluator:
    """Pure functions that update running sums (the state) and compute metrics, made by `evaluator`.

    An evaluator is hashable, so that it can be a static argument of `jax.jit`.

    Attributes:
        accumulators: the accumulators from which the evaluator was made.
    """

    accumulators: tuple[Accumulator, ...]

    def __repr__(self) -> str:
        names = (name for accumulator in self.accumulators for name, _ in accumulator.results)
        return f"Evaluator of {', '.join(names)}"

    def init(self) -> EvaluatorState:
        """Return the initial state, in which all sums are 0.

        If the state is the carry of `lax.scan` inside `jax.shard_map`, use
        `jax.lax.pcast(evaluator.init(), axis_name, to="varying")`.
        """
        return _init(self.statistics)

    def update(self, state: EvaluatorState, /, **batch: ArrayLike | None) -> EvaluatorState:
        """Return the state after adding a batch.

        Args:
            state: result of `init`, `update`, `merge`, `psum` or `load_state`.
            batch: the fields that the accumulators need, and optionally `where` and
                `sample_weight`. If several of `y_pred`, `logits` and `y_prob` are given, the first
                of them in this order is used. Pad the last batch to the length of the others,
                because every new length is compiled again.
        """
        self._check(state)
        unknown = sorted(batch.keys() - self._kinds.keys())
        if unknown:
            are_rows = not {"logits", "y_prob"}.isdisjoint(unknown)
            way = " Scores of several classes need an accumulator with num_classes." * are_rows
            raise ValueError(
                f"No accumulator uses {', '.join(map(repr, unknown))}. The possible fields are"
                f" {', '.join(sorted(self._kinds))}.{way}"
            )
        counted = [s for s in self.statistics if s.is_integer]
        if batch.get(WEIGHT) is not None and counted:
            raise ValueError(
                f"sample_weight needs sums of weights, but {counted[0]!r} counts examples. Make the"
                " evaluator with weighted=True, as in count_metrics(..., weighted=True)."
            )
        check_order(**batch)
        mask = as_mask(batch.get(MASK))
        fields = {
            name: converted_field(name, x, self._kinds[name])
            for name, x in batch.items()
            if x is not None
        }
        for name, x in fields.items():
            # Wrong shapes raise below, where shapes are compared.
            is_read = not on_device(x, mask) and (mask is None or mask.shape == x.shape)
            if self._kinds[name] is Kind.WEIGHTS and is_read:
                as_weights(x, name, mask)
        return _update(state, fields)

    def merge(self, a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
        """Add two states of the same evaluator, for example from two hosts."""
        self._check(a)
        self._check(b)
        return merge_checked(a, b)

    def psum(self, state: EvaluatorState, axis_name: Hashable) -> EvaluatorState:
        """Add the states of up to 4096 devices along an axis of `jax.shard_map` or `jax.vmap`.

        `psum` is not needed if a batch is sharded over devices under `jax.jit`.
        """
        self._check(state)
        return jax.tree.map(partial(sum_over_devices, axis_name=axis_name), state)

    def compute(self, state: EvaluatorState) -> dict[str, Any]:
        """Return a dict of all results by name, including `num_examples`, `num_ignored` and
        `num_invalid`.

        Results are JAX arrays. Use `to_python` to convert them to Python numbers. For stacked
        states, such as the states after each epoch, use `jax.vmap(evaluator.compute)`.
        """
        self._check(state)
        results = _compute(self, state if on_device(state) else jax.tree.map(jnp.asarray, state))
        return {
            name: results[name] for name in (*self._names, *COUNTERS)
        }  # because jit sorts the names of a dict

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for accumulator in self.accumulators for name, _ in accumulator.results)

    @cached_property
    def statistics(self) -> tuple[Statistic, ...]:
        """List the distinct statistics of all accumulators, in the order of the state."""
        return tuple(sorted({s for x in self.accumulators for s in x.statistics}, key=repr))

    @cached_property
    def _without_squares(self) -> tuple[Statistic, ...]:
        """List the statistics in states of earlier versions."""
        return tuple(x for x in self.statistics if not isinstance(x, SquaredWeights))

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        of_all = {MASK: Kind.NUMBERS, WEIGHT: Kind.WEIGHTS}
        return kinds_by_name([of_all, *(statistic.fields for statistic in self.statistics)])

    def _check(self, state: EvaluatorState) -> None:
        leaves, structure = jax.tree.flatten(state)
        for statistics in self.statistics, self._without_squares:
            expected, arrays = _layout(statistics, float_dtype())
            if structure == expected and tuple((x.shape, x.dtype) for x in leaves) == arrays:
                return
        raise _mismatch(state, jax.eval_shape(self.init))


@partial(jax.jit, static_argnums=0)
def _init(statistics: tuple[Statistic, ...]) -> EvaluatorState:
    """Initialise the state under jit, so that no constants are copied to the device."""
    for s in statistics:
        check_cells(s.shape, f"the sizes of {s!r}")
    totals: dict[Statistic | SavedStatistic, jax.Array] = {
        s: no_total(s.shape, is_integer=s.is_integer) for s in statistics
    }
    return state_of(no_total((len(COUNTERS),), is_integer=True), totals)


@lru_cache(maxsize=256)
def _layout(
    statistics: tuple[Statistic, ...], dtype: np.dtype
) -> tuple[Any, tuple[tuple[tuple[int, ...], np.dtype], ...]]:
    """Return the structure, shapes and dtypes of states for a float `dtype`."""
    leaves, structure = jax.tree.flatten(jax.eval_shape(partial(_init, statistics)))
    return structure, tuple((x.shape, x.dtype) for x in leaves)


def _mismatch(state: Any, expected: EvaluatorState) -> Exception:
    if not isinstance(state, EvaluatorState):
        return TypeError(
            f"state must be an EvaluatorState, as returned by init, got {type(state).__name__}."
        )
    if any(isinstance(x, Totals) for x in state.totals):
        return ValueError(
            "The state was made by jaxmetrics 0.3. Convert it by load_state(state, evaluator)."
        )
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
        f"a state should hold {needed}, got {found}. (x64 decides on the dtype of sums; for a"
        " stack of states, call jax.vmap(evaluator.compute)(states).)"
    )


# Statistics whose tables sum to the number of examples.
_COUNTED_ONCE = ConfusionMatrix, PairedConfusionMatrix


@promoting
@jax.jit
def _update(state: EvaluatorState, fields: dict[str, jax.Array]) -> EvaluatorState:
    statistics: tuple[Any, ...] = state.statistics
    batch = Batch(fields, kinds_by_name(s.fields for s in statistics))
    present = jnp.ones(batch.size, bool) if batch.where is None else batch.where
    if batch.weight is not None:
        present = present & (batch.weight != 0)
    keep = present
    for statistic in statistics:
        usable = statistic.is_usable(batch)
        keep = keep if usable is None else keep & usable
    of_classes = [valid_predictions(statistic, batch) for statistic in statistics]
    valid = reduce(jnp.logical_and, (x for x in of_classes if x is not None), keep)
    masks = [keep if x is None else valid for x in of_classes]

    tables = {
        s: _checked(jnp.asarray(s.table(batch, batch.weight, mask)), s)
        for s, mask in zip(statistics, masks, strict=True)
        if not counts_cells(s, batch.size)
    }
    # The sum of a small table is the number of examples, so the examples need not be counted.
    counted = [x for s, x in tables.items() if s.is_integer and isinstance(s, _COUNTED_ONCE)]
    small = [table for table in counted if table.size < batch.size]
    all_present, kept = (x.sum(dtype=jnp.int32) for x in (present, keep))
    number = (small[0] if small else valid).sum(dtype=jnp.int32)
    numbers = jnp.stack([number, all_present - kept, kept - number])
    before, examples = state.examples, add(state.examples, as_total(numbers))
    # An example adds at most 1 to a cell. The lower words of cells have 31 bits when they are
    # carried, so after 2^30 more examples they still have less than 32.
    passed = ((examples[1] << 1 | examples[0] >> 30) != (before[1] << 1 | before[0] >> 30))[0]

    def added(statistic: Statistic, total: jax.Array, mask: jax.Array) -> jax.Array:
        if not counts_cells(statistic, batch.size):
            return add(total, as_total(tables[statistic]))
        flat = carried_if(passed, total).reshape((2, -1))
        cells = statistic.cells(batch, mask)
        return flat.at[0, cells].add(np.uint32(1), mode="drop").reshape(total.shape)

    totals = tuple(map(added, statistics, state.totals, masks))
    return EvaluatorState(examples, totals, state.statistics)


def _checked(table: jax.Array, statistic: Statistic) -> jax.Array:
    if table.shape != statistic.shape or (statistic.is_integer and not is_integer(table)):
        kind = "integers" if statistic.is_integer else "numbers"
        raise ValueError(
            f"{statistic!r} must return a table of {kind} of the shape {statistic.shape}, which is"
            " the attribute shape of this statistic, got a table of"
            f" {table.dtype} of shape {table.shape}."
        )
    return table if statistic.is_integer else table.astype(float_dtype())


@compiled
def _compute(evaluator: Evaluator, state: EvaluatorState) -> dict[str, Any]:
    tables = dict(zip(state.statistics, map(as_floats, state.totals), strict=True))
    results = {
        name: result(*(tables.get(statistic) for statistic in accumulator.statistics))
        for accumulator in evaluator.accumulators
        for name, result in accumulator.results
    }
    return results | dict(zip(COUNTERS, as_floats(state.examples), strict=True))


def to_python(results: Any) -> dict[str, Any]:
    """Convert results to Python floats and lists of floats, for example to write them to a log.

    All arrays are copied from the device in one step. Strings and None stay. A result with several
    fields becomes several entries. For example, `"f1"` is the value of an `Estimate`, and
    `"f1/low"` is its field `low`. The bounds of an area, as opposed to confidence limits, are
    `"roc_auc/bin_low"` and `"roc_auc/bin_high"`.

    Args:
        results: result of `compute` of an `Evaluator`, or any other dict of arrays, which may be
            nested in dicts, lists or tuples.

    >>> import jaxmetrics as jm
    >>> estimate = jm.interval(jm.accuracy, [[3, 1], [0, 4]], method=jm.Delta())
    >>> to_python({"accuracy": estimate, "recall": jnp.array([0.75, 1.0])})
    {'accuracy': 0.875, 'accuracy/low': 0.645828, 'accuracy/high': 1.104172,
     'accuracy/standard_error': 0.116927, 'accuracy/num_undefined': 0.0,
     'accuracy/num_examples': 8.0, 'recall': [0.75, 1.0]}
    """
    flat: dict[str, Any] = {}

    def collect(name: str, x: Any) -> None:
        if isinstance(x, AreaBounds):
            x = {"value": x.value, "bin_low": x.low, "bin_high": x.high}
        elif isinstance(x, Printed):
            x = x._numbers()
        elif hasattr(x, "_asdict"):
            x = x._asdict()
        if isinstance(x, dict):
            for part, value in x.items():
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
        name: x
        if isinstance(x, str | None)
        else on_host(as_float(x, f"results[{name!r}]"), name).astype(float).tolist()
        for name, x in zip(flat, jax.device_get(list(flat.values())), strict=True)
    }
