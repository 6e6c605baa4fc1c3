"""Work on rows a part at a time, to bound the memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxmetrics._jax import trees
from jaxmetrics._namespaces import is_jax, lax

__all__: list[str] = []

LANES = 2**22  # numbers per array that a chunk may hold on a CPU: 16 MB in float32
TIMES_ON_ACCELERATORS = 64  # as many on others, which are idle between small kernels: 1 GB


def map_chunks(
    function: Callable[..., Any],
    chunk: int,
    *arrays: Any,
    times: int = TIMES_ON_ACCELERATORS,
    on_accelerators: Callable[..., Any] | None = None,
) -> Any:
    """Call `function` with up to `chunk` rows of pytrees of arrays at a time, and join its results.

    The results have a row for each of theirs. A chunk is what the cache of a CPU holds; on an
    accelerator it is so many times as long, and `on_accelerators`, if given, takes the place of the
    function there.
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
    chunk = -(-size // number)  # of about the same size
    rows = np.minimum(np.arange(number * chunk), size - 1)  # the last chunk repeats the last row
    chunks = trees.map(lambda v: v[rows].reshape((number, chunk, *v.shape[1:])), arrays)
    values = lax.map(lambda chunk: function(*chunk), chunks)
    return trees.map(lambda v: v.reshape((-1, *v.shape[2:]))[:size], values)
