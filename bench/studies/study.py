"""What a study is, and how estimates of many data sets are made one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmetrics as jm

BOUNDS = (0, 1)
Outcome = tuple[jm.Estimate, Any] | np.ndarray | float | dict[str, float]
Outcomes = Iterator[tuple[str, str, Outcome]]


class Study(NamedTuple):
    """Designs, and what is simulated of each.

    Attributes:
        data: the simulated data, in the words of the guide.
        designs: arguments of `simulate`.
        simulate: a function of a generator, a number of data sets and a design.
        size: the number of data sets per design.
        is_slow: whether it is left out of `--quick`, unless it is named.
    """

    data: str
    designs: Sequence[tuple[Any, ...]]
    simulate: Callable[..., Outcomes]
    size: int = 2000
    is_slow: bool = False


def stacked(estimates: Sequence[Any]) -> jm.Estimate:
    """Estimates of one data set each, as one of all."""
    ends = ([getattr(x, end) for x in estimates] for end in ("value", "low", "high"))
    return estimate(*(np.asarray(x, float) for x in ends))


def estimate(value: Any, low: Any, high: Any) -> jm.Estimate:
    nothing = np.zeros(np.shape(value))
    return jm.Estimate(value, low, high, nothing, nothing)


def on_device(x: np.ndarray) -> jax.Array:
    """An array for functions that need milliseconds per data set on the host; programs do not."""
    return jnp.asarray(x)


def padded(units: np.ndarray, number: int, axis: int = 1) -> jax.Array:
    """Tables of clusters or groups `(N, C, K, K)`, with empty ones added, so that one program
    serves all C.
    """
    widths = [(0, 0)] * units.ndim
    widths[axis] = 0, max(number - units.shape[axis], 0)
    return on_device(np.pad(units, widths))
