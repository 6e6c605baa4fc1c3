"""Labels of any kind as class ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxmetrics._wording import listed

__all__: list[str] = []


def as_ids(
    named_labels: Mapping[str, np.ndarray],
    class_names: Sequence[str] | None,
    num_columns: int | None,
) -> tuple[list[np.ndarray], Sequence[str]]:
    """Give the class ids of each (-1: to be ignored) and the names of the classes."""
    integers = {labels.dtype.kind for labels in named_labels.values()} <= {"i", "u", "b"}
    # Python ints: int64 and uint64 meet exactly.
    lists = {name: labels.tolist() for name, labels in named_labels.items()}
    everything = [label for labels in lists.values() for label in labels]
    if not integers and not all(isinstance(label, str) for label in everything):
        dtypes = ", ".join(str(labels.dtype) for labels in named_labels.values())
        raise TypeError(f"labels must be strings or integers, all of one kind, got {dtypes}.")
    if isinstance(class_names, str):
        raise TypeError("class_names must be a sequence of names, got one string.")
    if integers and class_names is not None:
        return list(named_labels.values()), class_names
    if integers and num_columns is not None:
        return list(named_labels.values()), list(map(str, range(num_columns)))
    if class_names is None:
        classes = sorted(label for label in set(everything) if not integers or label >= 0)
    else:
        classes = list(class_names)
    index = {label: i for i, label in enumerate(classes)}
    if not integers:
        _check_known(lists, index)
    ids = [np.array([index.get(label, -1) for label in labels]) for labels in lists.values()]
    return ids, list(map(str, classes))


def _check_known(lists: Mapping[str, list[str]], index: Mapping[str, int]) -> None:
    for name, labels in lists.items():
        unknown = next((i for i, label in enumerate(labels) if label not in index), None)
        if unknown is not None:
            raise ValueError(
                f"{name}[{unknown}] is '{listed([labels[unknown]])}', which is not one of"
                f" class_names: {listed(index)}."
            )
