"""Apply functions to rows in chunks, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import lax, xp

__all__: list[str] = []

LANES = 2**22  # numbers per array and chunk on a CPU: 16 MB in float32
# Factor for accelerators, which are idle between small kernels: chunks of 1 GB.
TIMES_ON_ACCELERATORS = 64


def map_chunks(
    function: Callable[..., Any],
    chunk: int,
    *arrays: Any,
    times: int = TIMES_ON_ACCELERATORS,
    on_accelerators: Callable[..., Any] | None = None,
    are_neighbours: bool = False,
) -> Any:
    """Call a function for up to `chunk` rows of pytrees of arrays at a time, and join the results.

    The results must have one row per input row. A chunk fits into the cache of a CPU. On an
    accelerator, a chunk is `times` as long, and the function `on_accelerators` is called instead if
    it is given.

    A chunk has rows from all parts of the arrays. If the rows are on several devices, each device
    then computes its part of every chunk. With `are_neighbours`, a chunk has neighbouring rows.
    """
    size = len(trees.leaves(arrays)[0])
    if size <= chunk:
        return function(*arrays)
    return lax.platform_dependent(
        *arrays,
        cpu=partial(_in_chunks, function, chunk, are_neighbours),
        default=partial(_in_chunks, on_accelerators or function, times * chunk, are_neighbours),
    )


def _in_chunks(function: Callable[..., Any], chunk: int, are_neighbours: bool, *arrays: Any) -> Any:
    size = len(trees.leaves(arrays)[0])
    least = -(-size // chunk)
    if least == 1:
        return function(*arrays)
    # All chunks have the same size. If need be, the last row is repeated.
    number = next((d for d in range(least, 2 * least) if size % d == 0), least)
    chunk = -(-size // number)
    rows = np.minimum(np.arange(number * chunk), size - 1)

    def split(v: Any) -> Any:
        v = v if len(rows) == size else v[rows]
        if are_neighbours:
            return v.reshape((number, chunk, *v.shape[1:]))
        return xp.swapaxes(v.reshape((chunk, number, *v.shape[1:])), 0, 1)

    def join(v: Any) -> Any:
        v = v if are_neighbours else xp.swapaxes(v, 0, 1)
        return v.reshape((-1, *v.shape[2:]))[:size]

    values = lax.map(lambda chunk: function(*chunk), trees.map(split, arrays))
    return trees.map(join, values)
