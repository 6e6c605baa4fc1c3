"""Read files of multilabel problems, with columns of 0 and 1 for true and predicted labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jaxmetrics.cli._errors import InputError, listed, named, reading
from jaxmetrics.cli._predictions import as_numbers
from jaxmetrics.cli._reader import ROW, check_size, opened

__all__: list[str] = []

_MOST_LABELS = 1000


def read_labels(
    paths: Sequence[Path], prefixes: tuple[str, str], separator: str | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Read the labels in files; the prefixes select the columns of true and predicted labels.

    Returns:
        The true and the predicted labels, booleans `(n, L)`, and the names of the labels.
    """
    parts: list[np.ndarray] = []
    names: list[str] = []
    for path in paths:
        with opened(path, separator) as table:
            with reading():
                true, pred = (table.family(prefix) for prefix in prefixes)
            _check_labels(list(true), list(pred), prefixes)
            if parts and list(true) != names:
                raise InputError("its labels differ from the labels in the previous files")
            names = list(true)
            columns = [*true.values(), *(pred[name] for name in names)]
            for rows in table.batches({str(i): column for i, column in enumerate(columns)}):
                numbers = as_numbers(rows, [str(i) for i in range(len(columns))])
                bad = (numbers != 0) & (numbers != 1)
                if bad.any():
                    i, j = np.argwhere(bad)[0].tolist()
                    value = rows[str(j)][i]
                    raise InputError(
                        f"in row {rows[ROW][i]}, the column {columns[j].name!r} contains"
                        f" {value!r}, but 0 or 1 was expected."
                    )
                parts.append(numbers == 1)
                check_size(sum(part.nbytes for part in parts))
    if not sum(map(len, parts)):
        with named(paths[0]):
            raise InputError("the file has no rows")
    true_labels, pred_labels = np.split(np.concatenate(parts), 2, axis=1)
    return true_labels, pred_labels, names


def _check_labels(true: Sequence[str], pred: Sequence[str], prefixes: tuple[str, str]) -> None:
    if set(true) != set(pred):
        raise InputError(
            f"the columns of true labels ({prefixes[0]!r}) and the columns of predicted labels"
            f" ({prefixes[1]!r}) must name the same labels, but they name {listed(true)} and"
            f" {listed(pred)}."
        )
    if len(true) > _MOST_LABELS:
        raise InputError(
            f"the file has {len(true)} columns of labels, one for each label, but a report may have"
            f" at most {_MOST_LABELS} labels. Leave out some of these columns."
        )
