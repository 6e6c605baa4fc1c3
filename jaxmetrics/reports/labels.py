"""What probabilities and other numbers must be."""

from __future__ import annotations

import numpy as np

from jaxmetrics._examples import sums_to_one

__all__: list[str] = []


def are_probabilities(rows: np.ndarray) -> np.ndarray:
    """Tell which rows `(n, K)` are not negative, nor NaN, and sum to 1 but for their rounding."""
    return (rows >= 0).all(1) & sums_to_one(rows)


def check_each(valid: np.ndarray, values: np.ndarray, name: str, expected: str) -> None:
    if not valid.all():
        index = tuple(np.argwhere(~valid)[0].tolist())
        raise ValueError(f"{name}{list(index)} is {values[index]}, expected {expected}.")
