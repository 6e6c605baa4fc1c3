"""What is added up: a type for statistics of your own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax

from jaxmetrics.streaming.batches import Batch, Field

__all__ = ["Statistic"]


@runtime_checkable
class Statistic(Protocol):
    """Map a batch to a table of fixed shape, which is added up over batches.

    A statistic of your own is a frozen dataclass with these members. An `Accumulator` of it, with
    named functions of its table, goes into an `evaluator`; equal statistics are added up once. Its
    options are numbers, strings and statistics, by which a saved state describes it.

    >>> import jax.numpy as jnp, jaxmetrics as jm
    >>> @dataclass(frozen=True)
    ... class LossSums:
    ...     num_classes: int
    ...     is_integer = False
    ...     fields = jm.streaming.Field.labels("y_true"), jm.streaming.Field.numbers("loss")
    ...
    ...     @property
    ...     def shape(self):
    ...         return 2, self.num_classes
    ...
    ...     def is_usable(self, batch):
    ...         return batch.labels("y_true", self.num_classes) >= 0
    ...
    ...     def table(self, batch, weight, keep):
    ...         loss = jnp.where(keep, batch.numbers("loss"), 0)
    ...         weight = jnp.where(keep, jnp.ones_like(loss) if weight is None else weight, 0)
    ...         y_true = batch.labels("y_true", self.num_classes)
    ...         return jnp.stack([weight, weight * loss]) @ jax.nn.one_hot(y_true, self.num_classes)
    >>> class_losses = jm.streaming.Accumulator(
    ...     (LossSums(num_classes=2),), (("class_loss", lambda sums: sums[1] / sums[0]),)
    ... )
    >>> evaluator = jm.evaluator(class_losses, jm.mean_of("loss"))
    >>> batch = {"y_true": jnp.array([0, 1, 1]), "loss": jnp.array([1.0, 2.0, 3.0])}
    >>> state = evaluator.update(evaluator.init(), **batch)
    >>> evaluator.compute(state)["class_loss"]
    Array([1. , 2.5], dtype=float32)
    """

    @property
    def fields(self) -> tuple[Field, ...]:
        """Tells which fields of a batch it may read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Gives the shape of its table."""

    @property
    def is_integer(self) -> bool:
        """Tells whether tables without weights hold integers >= 0, which are counted exactly."""

    def is_usable(self, batch: Batch) -> jax.Array | None:
        """Tell which examples it can count, `(n,)`; None for all. What one statistic cannot use is
        left out by all of an evaluator.
        """

    def table(self, batch: Batch, weight: jax.Array | None, keep: jax.Array) -> jax.Array:
        """Tabulate the examples to `keep` `(n,)`, each with its weight `(n,)`, or 1.

        For `poisson_bootstrap`, weights `(S, n)` make tables `(S, *shape)`.
        """


@dataclass(frozen=True)
class SavedStatistic:
    """A statistic in a saved state that only its evaluator knows: `load_state(path, evaluator)`.

    Without the evaluator, states with equal descriptions can be merged and saved again.
    """

    description: str
