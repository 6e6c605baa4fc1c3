"""Collect rows of the most frequent mistakes while files are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from jaxmetrics.cli._tables import ROW

__all__: list[str] = []

FILE = "name of the file"  # column with the file of a row
CONFIDENCE = "probability of the prediction"
_KIND = ["true", "pred"]
_MOST_KINDS = 5  # kinds of mistake with listed rows
_MOST_KEPT = 2**16  # rows kept before the most frequent kinds are known


@dataclass
class Mistakes:
    """Keeps up to `number` rows of each kind of mistake while files are read.

    The most confident rows are kept, or without probabilities the first rows. If there are too many
    kinds, the rarest so far are dropped.

    Attributes:
        number: the number of rows to list.
    """

    number: int
    _kept: list[pl.DataFrame] = field(default_factory=list)
    _times: list[pl.DataFrame] = field(default_factory=list)

    def add(self, rows: pl.DataFrame, names: Mapping[str, str]) -> None:
        """Add a batch of rows that count, with columns by their roles."""
        wrong = rows.filter(pl.col("true") != pl.col("pred")).select(
            ROW, *_KIND, *names, *(x for x in (FILE, "group", CONFIDENCE) if x in rows.columns)
        )
        if not len(wrong):
            return
        times = pl.concat([*self._times, wrong.group_by(_KIND).agg(pl.len().alias("times"))])
        self._times = [times.group_by(_KIND).agg(pl.col("times").sum())]
        kept = _first_of_each(pl.concat([*self._kept, wrong]), self.number)
        if len(kept) > _MOST_KEPT:
            kept = kept.join(self._kinds(_MOST_KEPT // (2 * self.number) + 1), on=_KIND, how="semi")
        self._kept = [kept]

    def _kinds(self, most: int) -> pl.DataFrame:
        """Return the most frequent kinds of mistake so far, with their numbers."""
        by = pl.concat(self._times).sort("times", *_KIND, descending=[True, False, False])
        return by.head(most)

    def records(self, names: Mapping[str, str]) -> list[dict[str, Any]]:
        """List the rows of the most frequent kinds of mistake, kind by kind."""
        if not self._times:
            return []
        kinds = self._kinds(_MOST_KINDS)
        first = _first_of_each(self._kept[0], -(-self.number // len(kinds)))
        rows = kinds.join(first, on=_KIND, maintain_order="left_right").head(self.number)
        return [
            {
                **place_of(row),
                "true": row["true"],
                "predicted": row["pred"],
                **({"probability": row[CONFIDENCE]} if CONFIDENCE in row else {}),
                "columns": {name: row[role] for role, name in names.items()},
            }
            for row in rows.iter_rows(named=True)
        ]


def place_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the position of a row, with its file and group if there are several."""
    names = {FILE: "file", ROW: "row", "group": "group"}
    return {name: row[column] for column, name in names.items() if column in row}


def _first_of_each(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Return up to `number` rows of each kind, the most confident first."""
    if CONFIDENCE in rows.columns:
        rows = rows.sort(CONFIDENCE, descending=True, maintain_order=True)
    return rows.group_by(_KIND, maintain_order=True).head(number).select(rows.columns)
