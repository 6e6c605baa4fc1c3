"""Apply functions to rows in chunks, so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.namespaces import lax

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
) -> Any:
    """Call a function for up to `chunk` rows of pytrees of arrays at a time, and join the results.

    The results must have one row per input row. A chunk fits into the cache of a CPU. On an
    accelerator, a chunk is `times` as long, and the function `on_accelerators` is called instead if
    it is given.
    """
    size = len(trees.leaves(arrays)[0])
    if size <= chunk:
        return function(*arrays)
    return lax.platform_dependent(
        *arrays,
        cpu=partial(_in_chunks, function, chunk),
        default=partial(_in_chunks, on_accelerators or function, times * chunk),
    )


def _in_chunks(function: Callable[..., Any], chunk: int, *arrays: Any) -> Any:
    size = len(trees.leaves(arrays)[0])
    number = -(-size // chunk)
    if number == 1:
        return function(*arrays)
    chunk = -(-size // number)  # all chunks have the same size
    rows = np.minimum(np.arange(number * chunk), size - 1)  # the last chunk repeats the last row
    chunks = trees.map(lambda v: v[rows].reshape((number, chunk, *v.shape[1:])), arrays)
    values = lax.map(lambda chunk: function(*chunk), chunks)
    return trees.map(lambda v: v.reshape((-1, *v.shape[2:]))[:size], values)
