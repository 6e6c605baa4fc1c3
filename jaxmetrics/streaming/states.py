"""The state of an evaluator: a pytree of sums, with a description of the statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import jax
import numpy as np

from jaxmetrics._compilation import promoting
from jaxmetrics._namespaces import is_known
from jaxmetrics._validation import is_integer
from jaxmetrics.streaming.statistics import SavedStatistic, Statistic
from jaxmetrics.streaming.totals import Totals, add, as_numpy, in_float64

__all__ = ["EvaluatorState"]


# Not frozen, because each call of a jitted function makes a state, and frozen dataclasses take a
# microsecond longer.
@jax.tree_util.register_dataclass
@dataclass
class EvaluatorState:
    """State of an evaluator: the sums over all examples so far; made by `Evaluator.init`.

    Attributes:
        examples: the numbers of examples counted and ignored, as counts of
            `jaxmetrics.streaming.totals`.
        totals: the total of the table of each statistic.
        statistics: the statistics of the tables; static, so states of one evaluator have one
            structure.
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
    """Make a state with its statistics in a fixed order, independent of the order of the
    accumulators.
    """
    statistics = tuple(sorted(totals, key=repr))
    return EvaluatorState(examples, tuple(totals[s] for s in statistics), statistics)


def merge_checked(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    """Merge two states of the same evaluator."""
    shapes_of_a, shapes_of_b = ([x.shape for x in jax.tree.leaves(state)] for state in (a, b))
    if a.statistics != b.statistics or shapes_of_a != shapes_of_b:
        only_one = sorted(map(repr, {*a.statistics} ^ {*b.statistics}))
        difference = ", ".join(only_one) or "tables of different shapes"
        raise ValueError(f"states of different evaluators: {difference}.")
    return merge(a, b)


def merge(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    """Add two states with the same structure; outside jit, counts that would exceed 2^64 raise."""
    jax.tree.map(_check_sum, a, b)
    return _merge(a, b)


def _check_sum(a: jax.Array, b: jax.Array) -> None:
    known = is_known(a) and is_known(b) and a.is_fully_addressable and b.is_fully_addressable
    if known and is_integer(a) and (as_numpy(a) > ~as_numpy(b)).any():
        raise ValueError(
            "the states together hold counts of 2^64 or more, which would overflow: report on them"
            " separately."
        )


@promoting
@jax.jit
def _merge(a: EvaluatorState, b: EvaluatorState) -> EvaluatorState:
    return jax.tree.map(add, a, b)
