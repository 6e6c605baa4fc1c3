"""Apply functions to rows in chunks, to bound the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._jax import trees
from jaxmetrics._namespaces import is_jax, lax

__all__: list[str] = []

LANES = 2**22  # numbers per array and chunk on a CPU: 16 MB in float32
TIMES_ON_ACCELERATORS = 64  # factor on accelerators, which are idle between small kernels: 1 GB


def map_chunks(
    function: Callable[..., Any],
    chunk: int,
    *arrays: Any,
    times: int = TIMES_ON_ACCELERATORS,
    on_accelerators: Callable[..., Any] | None = None,
) -> Any:
    """Call `function` with up to `chunk` rows of pytrees of arrays at a time, and join its results.

    The results have one row per input row. A chunk fits into the cache of a CPU; on an accelerator
    it is `times` as long, and `on_accelerators` replaces the function, if given.
    """
    size = len(trees.leaves(arrays)[0])
    if size <= chunk:
        return function(*arrays)
    if not is_jax(trees.leaves(arrays)[0]):
        return _in_chunks(function, chunk, *arrays)
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
    chunk = -(-size // number)  # chunks of similar size
    rows = np.minimum(np.arange(number * chunk), size - 1)  # the last chunk repeats the last row
    chunks = trees.map(lambda v: v[rows].reshape((number, chunk, *v.shape[1:])), arrays)
    values = lax.map(lambda chunk: function(*chunk), chunks)
    return trees.map(lambda v: v.reshape((-1, *v.shape[2:]))[:size], values)
