"""What reports leave out if the classes look like free-form answers, or if classes are absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmetrics._text.wording import listed
from jaxmetrics.reports.overall_values import COMPARED

__all__: list[str] = []

AVERAGES = {*COMPARED, "micro_f1"} - {"accuracy"}


def note_on_free_form(support: np.ndarray) -> str:
    """Return a note if the classes look like free-form answers, otherwise "". They do if more than
    20 classes have true examples, and most of these have at most 2 of them.
    """
    support = support[support > 0]  # predictions that are no answer have many labels, too
    if not (len(support) > 20 and support.dtype.kind in "iu" and np.median(support) <= 2):
        return ""
    return (
        f"The {len(support)} classes look like free-form answers: most of them have at most 2 true"
        " examples. Values per class and averages over classes are therefore only in JSON and CSV."
        " For such answers, write 1 (right) or 0 (wrong) in a column, and use --value COLUMN, or"
        " score_report in Python."
    )


def shown_values(values: Mapping[str, Any], support: np.ndarray) -> dict[str, Any]:
    """Return the overall values of text and pages: without averages over free-form answers."""
    left_out = AVERAGES if note_on_free_form(support) else ()
    return {name: x for name, x in values.items() if name not in left_out}


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
