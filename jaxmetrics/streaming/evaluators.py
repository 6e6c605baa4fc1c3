"""Evaluation by a state that adds: the same numbers from one batch or a million, in any order, on
one device or many.

An evaluator is made of accumulators and holds no data. Its state is a dict of arrays, with the same
keys, shapes and dtypes from `init` to the end: a legal carry of `lax.scan`, which may be donated,
checkpointed, pickled, and mapped by `jax.vmap` over seeds or models. Unweighted counts are exact
below 2^64, sums of weights and values have twice the digits of a float.

A batch is given as fields by keyword; those that hold one number per example have one shape
`(..., )`, any number of axes, and those with one per class an axis more: `y_true`, `y_pred` or
`logits` or `y_prob`, `y_score`, `loss`, whatever the accumulators name, and

- `where`: bool; False is as if the example were not there (the padding of a last batch).
- `sample_weight`: 2 counts as two examples, 0 as none.

An example that one of the accumulators cannot use, because a label is out of range or a score NaN,
is left out by all, so that all results speak of the same examples; `num_ignored` says how many
those were, `num_examples` how many were counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._compilation import promoting
from jaxmetrics._namespaces import float_dtype
from jaxmetrics._validation import ArrayLike, is_integer
from jaxmetrics.streaming._batches import Batch, as_field
from jaxmetrics.streaming._statistics import Statistic
from jaxmetrics.streaming.accumulators import Accumulator
from jaxmetrics.streaming.totals import add, as_floats, as_total, no_count, no_sum, sum_over_devices

__all__ = ["Evaluator", "evaluator", "to_python"]

State = dict[str, dict[str, jax.Array]]

# Of every state: the number of examples counted, and of those ignored. The key has the version of
# the layout, so that another is found without a look at values.
EXAMPLES = "examples, version 1"
COUNTERS = ("num_examples", "num_ignored")


def evaluator(*accumulators: Accumulator) -> Evaluator:
    """An evaluator that adds up what its accumulators ask for, each table once.

    Args:
        accumulators: by `count_metrics`, `mean_of`, `ranking_metrics`, `calibration_metrics`,
            `paired_metrics`, `poisson_bootstrap`.

    Raises:
        TypeError: something else. ValueError: none, or two results of one name.

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
        raise ValueError("evaluator needs at least one accumulator.")
    result = Evaluator(accumulators)
    names = [*COUNTERS, *result._names]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two results are named {name!r}.")
    return result


@dataclass(frozen=True)
class Evaluator:
    """Pure functions of a state; made by `evaluator`. Hashable, so it may be a static argument of
    `jax.jit`.
    """

    accumulators: tuple[Accumulator, ...]

    def init(self) -> State:
        """The state of no examples.

        As the carry of a `lax.scan` inside `jax.shard_map` it must differ between devices from the
        start, as the batches do: `jax.lax.pcast(evaluator.init(), axis_name, to="varying")`.
        """
        return _init(self._statistics)

    def update(self, state: State, /, **batch: ArrayLike | None) -> State:
        """The state with a batch more.

        Args:
            state: by `init`, `update`, `merge` or `psum`.
            batch: the fields that the accumulators read, and `where` and `sample_weight`; None is
                as if it were not given. Each length of a batch is compiled once: better pad the
                last one. Of `y_pred`, `logits` and `y_prob` the first given is the prediction.

        Raises:
            TypeError, ValueError: at trace time, naming the field: one that is missing, unknown, of
                another shape or dtype; a state of another evaluator.
        """
        self._check(state)
        fields = {name: as_field(name, x) for name, x in batch.items() if x is not None}
        known = {"where", "sample_weight"}.union(*(s.fields for s in self._statistics))
        unknown = sorted(batch.keys() - known)
        if unknown:
            raise ValueError(
                f"no accumulator reads {', '.join(unknown)}; the fields are"
                f" {', '.join(sorted(known))}."
            )
        return _update(state, fields, statistics=self._statistics)

    def merge(self, a: State, b: State) -> State:
        """The state of the examples of both: of two hosts, say. Associative and commutative,
        exactly so for counts.
        """
        self._check(a)
        self._check(b)
        return _merge(a, b)

    def psum(self, state: State, axis_name: Hashable) -> State:
        """The sum of the states of all devices along an axis of `jax.shard_map` or `jax.vmap` (up
        to 4096).

        Under `jax.jit` with a sharded batch there is no need for it: `update` then sees the whole
        batch.
        """
        self._check(state)
        return jax.tree.map(partial(sum_over_devices, axis_name=axis_name), state)

    def compute(self, state: State) -> dict[str, Any]:
        """Results by name, and `num_examples` and `num_ignored`. Nothing is moved to the host;
        `to_python` does that.

        Metrics are traced by `jax.jit`. A history of states, stacked, is computed by
        `jax.vmap(evaluator.compute)`.
        """
        self._check(state)
        results = _compute(self, state)
        return {name: results[name] for name in (*self._names, *COUNTERS)}  # jit has sorted them

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(name for accumulator in self.accumulators for name, _ in accumulator.results)

    @property
    def _statistics(self) -> tuple[Statistic, ...]:
        return tuple(
            dict.fromkeys(s for accumulator in self.accumulators for s in accumulator.statistics)
        )

    def _check(self, state: State) -> None:
        leaves, structure = jax.tree.flatten(state)
        expected = _layout(self, float_dtype())
        if structure != expected[0] or tuple((x.shape, x.dtype) for x in leaves) != expected[1]:
            raise _mismatch(state, jax.tree.unflatten(*expected))


@partial(jax.jit, static_argnums=0)
def _init(statistics: tuple[Statistic, ...]) -> State:
    """Jitted, so that no constant comes from the host."""
    state = {EXAMPLES: {"count": no_count((2,))}}
    for s in statistics:
        state[str(s)] = {"sum": no_sum(s.shape)} | (
            {"count": no_count(s.shape)} if s.counts else {}
        )
    return state


@lru_cache(maxsize=256)
def _layout(
    evaluator: Evaluator, dtype: np.dtype
) -> tuple[Any, tuple[tuple[tuple[int, ...], np.dtype], ...]]:
    """Structure, shapes and dtypes of its states; `dtype` is that of floats, on which they
    depend.
    """
    leaves, structure = jax.tree.flatten(jax.eval_shape(evaluator.init))
    return structure, tuple((x.shape, x.dtype) for x in leaves)


def _mismatch(state: Any, expected: State) -> Exception:
    if not isinstance(state, dict):
        return TypeError(f"state must be what init returned, got {type(state).__name__}.")
    if EXAMPLES not in state:
        return ValueError(wrong_version(state))
    for name in sorted(expected.keys() ^ state.keys()):
        ours = ", ".join(repr(name) for name in sorted(expected) if name != EXAMPLES)
        return ValueError(
            f"a state of another evaluator: it {'has' if name in state else 'lacks'} {name!r};"
            f" this one's hold {ours}."
        )
    for name, layout in expected.items():
        found = jax.tree.map(lambda x: (jnp.shape(x), x.dtype), state[name])
        if found != layout:
            return ValueError(
                f"state[{name!r}] should hold {layout}, got {found}. (x64 decides on the dtype of"
                " sums; a stack of states goes through jax.vmap.)"
            )
    return ValueError(f"state should have the structure of init, {jax.tree.structure(expected)}.")


def wrong_version(names: Iterable[str]) -> str:
    """Of a state with these keys."""
    found = next((name for name in names if str(name).startswith("examples, version ")), None)
    what = (
        "no state of an evaluator"
        if found is None
        else f"a state of {found.removeprefix('examples, ')}"
    )
    return f"{what}; this jaxmetrics reads and writes {EXAMPLES.removeprefix('examples, ')}."


@promoting
@partial(jax.jit, static_argnames="statistics")
def _update(
    state: State, fields: dict[str, jax.Array], *, statistics: tuple[Statistic, ...]
) -> State:
    batch = Batch(fields)
    present = jnp.ones(batch.size, bool) if batch.where is None else batch.where
    if batch.weight is not None:
        present = present & (batch.weight != 0)
    keep = present
    for statistic in statistics:
        usable = statistic.is_usable(batch)
        keep = keep if usable is None else keep & usable
    tables = {statistic: statistic.table(batch, batch.weight, keep) for statistic in statistics}
    small = [t for s, t in tables.items() if s.one_each and is_integer(t) and t.size < batch.size]
    kept = (small[0] if small else keep).sum(dtype=jnp.int32)
    examples = jnp.stack([kept, present.sum(dtype=jnp.int32) - kept])
    added = {EXAMPLES: examples} | {str(statistic): table for statistic, table in tables.items()}
    return state | {name: _added(state[name], table) for name, table in added.items()}


def _added(held: dict[str, jax.Array], table: jax.Array) -> dict[str, jax.Array]:
    kind = "count" if is_integer(table) else "sum"
    return held | {kind: add(held[kind], as_total(table))}


def merge_checked(a: State, b: State) -> State:
    """Two states of one evaluator, whichever it is."""
    if jax.tree.map(jnp.shape, a) != jax.tree.map(jnp.shape, b):
        names = sorted(str(name) for name in a.keys() ^ b.keys())
        raise ValueError(
            f"states of different evaluators: {', '.join(names) or 'tables of different shapes'}."
        )
    return _merge(a, b)


@promoting
@jax.jit
def _merge(a: State, b: State) -> State:
    return jax.tree.map(add, a, b)


@promoting
@partial(jax.jit, static_argnames="evaluator")
def _compute(evaluator: Evaluator, state: State) -> dict[str, Any]:
    def table(statistic: Statistic) -> jax.Array:
        parts = [as_floats(total) for total in state[str(statistic)].values()]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    results = {
        name: result(*map(table, accumulator.statistics))
        for accumulator in evaluator.accumulators
        for name, result in accumulator.results
    }
    return results | dict(zip(COUNTERS, as_floats(state[EXAMPLES]["count"]), strict=True))


def to_python(results: Any) -> dict[str, Any]:
    """Results on the host, as floats and lists of floats by name, ready for a log: one transfer for
    all.

    The parts of an `Estimate`, a `Comparison` or another named tuple follow a slash: `"f1"` (its
    value), `"f1/low"`.

    >>> import jaxmetrics as jm
    >>> estimate = jm.delta_method(jm.accuracy, [[3, 1], [0, 4]])
    >>> to_python({"accuracy": estimate, "recall": jnp.array([0.75, 1.0])})
    {'accuracy': 0.875, 'accuracy/low': 0.645828, 'accuracy/high': 1.104172,
     'accuracy/standard_error': 0.116927, 'accuracy/num_undefined': 0.0, 'recall': [0.75, 1.0]}
    """
    flat: dict[str, Any] = {}

    def collect(name: str, x: Any) -> None:
        if hasattr(x, "_asdict") or isinstance(x, dict):
            for part, value in (x if isinstance(x, dict) else x._asdict()).items():
                collect(
                    name if part == "value" and name else f"{name}/{part}" if name else str(part),
                    value,
                )
        elif isinstance(x, list | tuple):
            for i, value in enumerate(x):
                collect(f"{name}/{i}", value)
        elif name in flat:
            raise ValueError(f"two results are named {name!r}.")
        else:
            flat[name] = x

    collect("", results)
    return {
        name: np.asarray(x, float).tolist()
        for name, x in zip(flat, jax.device_get(list(flat.values())), strict=True)
    }
