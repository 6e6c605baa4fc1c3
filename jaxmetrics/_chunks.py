"""Work on rows a part at a time, to bound the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxmetrics._jax import trees
from jaxmetrics._namespaces import lax

__all__: list[str] = []

LANES = 2**22  # numbers per array that a chunk may hold: 16 MB in float32


def map_chunks(function: Callable[..., Any], chunk: int, *arrays: Any) -> Any:
    """Call `function` with up to `chunk` rows of pytrees of arrays at a time, and join its results.

    The results have a row for each of theirs.
    """
    size = len(trees.leaves(arrays)[0])
    if size <= chunk:
        return function(*arrays)
    number = -(-size // chunk)
    chunk = -(-size // number)  # of about the same size
    rows = np.minimum(np.arange(number * chunk), size - 1)  # the last chunk repeats the last row
    chunks = trees.map(lambda v: v[rows].reshape((number, chunk, *v.shape[1:])), arrays)
    values = lax.map(lambda chunk: function(*chunk), chunks)
    return trees.map(lambda v: v.reshape((-1, *v.shape[2:]))[:size], values)
