"""What an evaluator has added up so far: a tree of arrays that knows what they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import numpy as np

from jaxmetrics._compilation import promoting
from jaxmetrics.streaming.statistics import SavedStatistic, Statistic
from jaxmetrics.streaming.totals import Totals, add, in_float64

__all__ = ["EvaluatorState"]


# Not frozen, since a state is made at each call of a jitted function, and a frozen one takes a
# microsecond longer.
@jax.tree_util.register_dataclass
@dataclass
class EvaluatorState:
    """Hold the sums over all examples so far; made by `Evaluator.init`.

    Attributes:
        examples: how many were counted, and how many ignored, as
            `jaxmetrics.streaming.totals` has counts.
        totals: of the table of each statistic.
        statistics: what the tables are; static, so states of one evaluator have one structure.
    """

    examples: jax.Array
    totals: tuple[Totals, ...]
    statistics: tuple[Statistic | SavedStatistic, ...] = field(metadata={"static": True})

    def tables(self) -> dict[Statistic | SavedStatistic, np.ndarray]:
        """Copy the table of each statistic to the host, in double precision."""
        tables = map(in_float64, jax.device_get(self.totals))
        return dict(zip(self.statistics, tables, strict=True))


def state_of(
    examples: jax.Array, totals: Mapping[Statistic | SavedStatistic, Totals]
) -> EvaluatorState:
    """Make a state whose statistics are in an order of their own, not that of the accumulators."""
    statistics = tuple(sorted(totals, key=repr))
    return EvaluatorState(examples, tuple(totals[s] for s in statistics), statistics)


def merge_checked(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    """Merge two states of one evaluator, whichever it is."""
    shapes_of_a, shapes_of_b = ([x.shape for x in jax.tree.leaves(state)] for state in (a, b))
    if a.statistics != b.statistics or shapes_of_a != shapes_of_b:
        only_one = sorted(map(repr, {*a.statistics} ^ {*b.statistics}))
        difference = ", ".join(only_one) or "tables of different shapes"
        raise ValueError(f"states of different evaluators: {difference}.")
    for state in (a, b):
        counts = [state.examples, *(x.counts for x in state.totals if x.counts is not None)]
        if any((np.asarray(count[1]) >= 2**31).any() for count in counts):
            raise ValueError("a state with counts of 2^63 or more: sums of them wrap at 2^64.")
    return merge(a, b)


@promoting
@jax.jit
def merge(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    """Add two states of one structure."""
    return jax.tree.map(add, a, b)
