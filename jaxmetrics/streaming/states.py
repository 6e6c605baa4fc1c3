"""The state of an evaluator: a pytree of running sums with a description of its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import numpy as np

from jaxmetrics._arguments.single import is_integer
from jaxmetrics._places.compilation import promoting
from jaxmetrics._places.namespaces import is_jax, on_one_cpu
from jaxmetrics.streaming.standard_statistics import SquaredWeights
from jaxmetrics.streaming.statistics import SavedStatistic, Statistic
from jaxmetrics.streaming.totals import add, as_numpy

__all__ = ["EvaluatorState"]


# Not frozen, because every call of a jitted function makes a state, which takes a microsecond
# longer for frozen dataclasses.
@jax.tree_util.register_dataclass
@dataclass
class EvaluatorState:
    """State of an evaluator: sums over all examples so far. `Evaluator.init` returns the first
    state.

    Attributes:
        examples: the numbers of examples that were counted, that were ignored and that had an
            invalid prediction, in the format of `jaxmetrics.streaming.totals`.
        totals: the sum of each statistic, in the same format.
        statistics: the statistics, which are metadata of the pytree and not arrays.
    """

    examples: jax.Array
    totals: tuple[jax.Array, ...]
    statistics: tuple[Statistic | SavedStatistic, ...] = field(metadata={"static": True})

    def tables(self) -> dict[Statistic | SavedStatistic, np.ndarray]:
        """Return the sum of each statistic as a float64 NumPy array."""
        tables = (as_numpy(x).astype(float) for x in jax.device_get(self.totals))
        return dict(zip(self.statistics, tables, strict=True))


def state_of(
    examples: jax.Array, totals: Mapping[Statistic | SavedStatistic, jax.Array]
) -> EvaluatorState:
    """Make a state whose statistics are in an order that does not depend on the order of
    accumulators.
    """
    statistics = tuple(sorted(totals, key=repr))
    return EvaluatorState(examples, tuple(totals[s] for s in statistics), statistics)


def merge_checked(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    """Check that two states have the same statistics, and add them. Squares of weights are left out
    unless both states contain them.
    """
    if a.statistics != b.statistics:
        a, b = map(_without_squares, (a, b))
    shapes_of_a, shapes_of_b = ([x.shape for x in jax.tree.leaves(state)] for state in (a, b))
    if a.statistics != b.statistics or shapes_of_a != shapes_of_b:
        only_one = sorted(map(repr, {*a.statistics} ^ {*b.statistics}))
        difference = ", ".join(only_one) or "tables of different shapes"
        raise ValueError(f"states of different evaluators: {difference}.")
    return merge(a, b)


def _without_squares(state: EvaluatorState) -> EvaluatorState:
    totals = zip(state.statistics, state.totals, strict=True)
    return state_of(state.examples, {s: x for s, x in totals if not isinstance(s, SquaredWeights)})


def merge(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    """Add two states with the same structure. Outside of jit, and if both are in the memory of one
    CPU, a count of 2^63 or more raises an error.
    """
    jax.tree.map(_check_sum, a, b)
    return _merge(a, b)


def _check_sum(a: jax.Array, b: jax.Array) -> None:
    known = all(not is_jax(x) or on_one_cpu(x) for x in (a, b))
    if known and is_integer(a) and (as_numpy(a) + as_numpy(b) >= 2**63).any():
        raise ValueError(
            "The sum of the states would contain counts of 2^63 or more, which cannot be"
            " represented. Do not merge these states."
        )


@promoting
@jax.jit
def _merge(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    return jax.tree.map(add, a, b)
