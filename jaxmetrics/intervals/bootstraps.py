"""Bootstrap replicates of tables of counts."""

from __future__ import annotations

from typing import Literal

from jaxmetrics._compilation import compiled
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array
from jaxmetrics._validation import (
    ArrayLike,
    as_counts,
    check_cells,
    check_flag,
    check_option,
    check_samples,
)
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.checks import MOST_EXAMPLES, check_counts

__all__ = ["bootstrap_counts"]


def bootstrap_counts(
    key: KeyLike,
    counts: ArrayLike,
    num_samples: int,
    *,
    kind: Literal["multinomial", "poisson", "bayesian"] = "multinomial",
    stratified: bool = False,
) -> Array:
    """Draw bootstrap replicates of confusion matrices.

    - `"multinomial"`: as many examples as there are, drawn with replacement.
    - `"poisson"`: each example counted Poisson(1) times, so that totals vary; batches of a stream
      can be resampled apart.
    - `"bayesian"`: each example weighted by a share of Dirichlet(1, ..., 1). Rubin (1981), Annals
      of Statistics 9. Sums of weights are allowed and read as frequencies.

    Args:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator.
        counts: `(..., K, K)` numbers of examples, below 2^31 in all.
        num_samples: S.
        stratified: each class keeps its number of examples.

    Returns:
        `(S, ..., K, K)`, float, since under jit a matrix with negative or fractional counts gives
        NaN.

    Raises:
        ValueError: counts that are not square, negative or fractional, an unknown kind, Poisson
            stratified.

    >>> replicates = bootstrap_counts(0, [[90, 10], [5, 95]], 1000)
    >>> replicates.shape, set(replicates.sum((-2, -1)).tolist())
    ((1000, 2, 2), {200.0})
    """
    check_option(kind, "kind", ("multinomial", "poisson", "bayesian"))
    if check_flag(stratified, "stratified") and kind == "poisson":
        raise ValueError("Poisson counts have no fixed totals: stratified=True needs another kind.")
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
