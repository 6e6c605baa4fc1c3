"""List rows of files in reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from jaxmetrics.cli._predictions import FILE
from jaxmetrics.cli._reader import ROW

__all__: list[str] = []

_CONFIDENCE = "probability"  # of the predicted class
_PLACE = ("right", FILE, "row", "group")


def with_confidence(rows: pl.DataFrame, prob: np.ndarray) -> pl.DataFrame:
    """Add the probabilities of the predicted classes."""
    return rows.with_columns(pl.Series(_CONFIDENCE, prob))


def by_confidence(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by the probability of the predicted class, highest first, if there are
    probabilities.
    """
    if _CONFIDENCE not in rows.columns:
        return rows
    return rows.sort(_CONFIDENCE, descending=True, maintain_order=True)


def listed_rows(
    rows: pl.DataFrame, classes: Sequence[str], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return rows as dicts: file and row number, classes, probability, and the columns to show."""
    rows = rows.rename({ROW: "row"})
    shown = [x for x in (*_PLACE, *classes, _CONFIDENCE) if x in rows.columns]
    return [
        {name: row[name] for name in shown}
        | {"columns": {name: row[role] for role, name in names.items()}}
        for row in rows.iter_rows(named=True)
    ]
