"""What reports leave out if classes look like free-form answers, if only one occurs, or if some are
absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmetrics._text.wording import listed
from jaxmetrics.reports.overall_values import COMPARED

__all__: list[str] = []

_AVERAGES = {*COMPARED, "micro_f1"} - {"accuracy"}


def note_on_classes(support: np.ndarray) -> str:
    """Return a note if a single class has true examples, or if the classes look like free-form
    answers, otherwise "". They do if more than 20 classes have true examples, and most of these
    have at most 2 of them.
    """
    support = support[support > 0]  # predictions that are no answer have many labels, too
    if len(support) == 1:
        return (
            "All examples have the same true class, so accuracy is the recall of this class. Values"
            " per class and averages over classes say no more, and are only in JSON and CSV."
        )
    if not (len(support) > 20 and support.dtype.kind in "iu" and np.median(support) <= 2):
        return ""
    return (
        f"The {len(support)} classes look like free-form answers: most of them have at most 2 true"
        " examples. Values per class and averages over classes are therefore only in JSON and CSV."
        " For such answers, write 1 (right) or 0 (wrong) in a column, and use --value COLUMN, or"
        " score_report in Python."
    )


def left_out(support: np.ndarray) -> set[str]:
    """Return the names of overall values that are not in text and pages."""
    if not note_on_classes(support):
        return set()
    # If one class occurs, its share is 1.
    is_single = np.count_nonzero(support) == 1
    return _AVERAGES | ({"no_information_rate", "accuracy_gain"} if is_single else set())


def shown_values(values: Mapping[str, Any], support: np.ndarray) -> dict[str, Any]:
    """Return the overall values of text and pages."""
    names = left_out(support)
    return {name: x for name, x in values.items() if name not in names}


def note_on_absent(counts: np.ndarray, names: Sequence[str]) -> str:
    """Return a note if classes are neither true nor predicted in `counts` `(..., K, K)`, or ""."""
    counts = counts.reshape(-1, *counts.shape[-2:]).sum(0)
    absent = [x for x, n in zip(names, counts.sum(0) + counts.sum(1), strict=False) if n == 0]
    if not absent:
        return ""
    return (
        f"Averages over classes leave out {listed(absent)}, which no example has as its true or"
        " predicted class."
    )
