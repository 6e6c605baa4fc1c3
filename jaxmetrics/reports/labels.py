"""What labels, probabilities and other numbers must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxmetrics._labels import as_ids
from jaxmetrics._validation import ArrayLike, on_host
from jaxmetrics._wording import enumeration, listed
from jaxmetrics.reports.overall_values import check_number_of_classes

__all__: list[str] = []


def checked_labels(**named: ArrayLike | Sequence[str]) -> dict[str, np.ndarray]:
    """Check that labels are of the same examples, `(n,)` each."""
    labels = {name: on_host(x, name) for name, x in named.items()}
    shapes = [x.shape for x in labels.values()]
    if len(shapes[0]) != 1 or len(set(shapes)) > 1:
        raise ValueError(
            f"{enumeration([*named])} must have shape (n,), the same number of examples: got"
            f" {', '.join(map(str, shapes))}."
        )
    return labels


def numbered_classes(
    labels: Mapping[str, np.ndarray],
    class_names: Sequence[str] | None,
    what: str,
    num_columns: int | None = None,
) -> tuple[list[np.ndarray], Sequence[str], np.ndarray]:
    """Return the class ids of each, the names of the classes, and which examples count, `(n,)`."""
    ids, names = as_ids(labels, class_names, num_columns)
    k = len(names)
    if num_columns not in (None, k):
        raise ValueError(
            f"y_prob has {num_columns} columns, but there are {k} classes: {listed(names)}."
        )
    check_number_of_classes(k, what)
    return ids, names, np.all([(x >= 0) & (x < k) for x in ids], axis=0)


def check_each(valid: np.ndarray, values: np.ndarray, name: str, expected: str) -> None:
    if not valid.all():
        index = tuple(np.argwhere(~valid)[0].tolist())
        raise ValueError(f"{name}{list(index)} is {values[index]}, expected {expected}.")
