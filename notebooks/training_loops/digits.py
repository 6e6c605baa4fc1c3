"""Data that all training loops use: scikit-learn's digits (1797 images of 8 x 8 pixels), divided
into batches of equal size.
"""

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class Digits(NamedTuple):
    """Standardised images `(n, 64)` and labels `(n,)`, in random order."""

    images: np.ndarray
    labels: np.ndarray


class Batch(NamedTuple):
    """Images `(..., 64)`, labels `(...)`, and a mask `where` `(...)` that is False for padding."""

    images: np.ndarray
    labels: np.ndarray
    where: np.ndarray


def load(seed: int) -> tuple[Digits, Digits]:
    """Return two halves of the digits: one for training, the other for testing."""
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.5, random_state=seed
    )
    scaler = StandardScaler().fit(train_x)
    halves = (train_x, train_y), (test_x, test_y)
    train, test = (
        Digits(scaler.transform(x).astype(np.float32), y.astype(np.int32)) for x, y in halves
    )
    return train, test


def shuffled(digits: Digits, rng: np.random.Generator) -> Digits:
    """Return the same examples in a random order."""
    order = rng.permutation(len(digits.labels))
    return Digits(digits.images[order], digits.labels[order])


def in_batches(digits: Digits, size: int) -> Batch:
    """Return all batches as arrays `(num_batches, size, ...)`. The last batch is filled up with
    padding. `map(Batch, *in_batches(...))` iterates over the batches.
    """
    n = len(digits.labels)
    padding = -n % size

    def stack(x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, np.zeros((padding, *x.shape[1:]), x.dtype)]).reshape(
            -1, size, *x.shape[1:]
        )

    return Batch(*map(stack, (*digits, np.ones(n, bool))))
