"""Estimates as arrays of their numbers."""

from typing import Any

import jax
import numpy as np


def ends(estimate: Any) -> np.ndarray:
    """The lower and the upper end, along a leading axis."""
    return np.stack([estimate.low, estimate.high])


def parts(estimate: Any) -> np.ndarray:
    """Value, ends and standard error, along a leading axis."""
    return np.stack([estimate.value, *ends(estimate), estimate.standard_error])


def assert_close(
    result: Any, expected: Any, rtol: float = 1e-12, atol: float | None = None
) -> None:
    """Compare all arrays of two results, absolutely as closely as relatively unless `atol` says."""
    atol = rtol if atol is None else atol
    for a, b in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
