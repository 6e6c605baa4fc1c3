"""Collect rows with the most frequent mistakes while files are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from jaxmetrics.cli._tables import ROW

__all__: list[str] = []

FILE = "file"
CONFIDENCE = "probability"  # of the prediction
_PLACE = ("right", FILE, "row", "group")
_KIND = ["true", "pred"]
_MOST_KINDS = 5  # the number of kinds of mistake that are listed
_MOST_KEPT = 2**16  # the number of rows that are kept until the most frequent kinds are known


@dataclass
class Mistakes:
    """Keeps up to `number` rows of each kind of mistake while files are read.

    A kind of mistake is a pair of a true class and a wrong prediction. If there are probabilities,
    the rows with the most confident predictions are kept; otherwise the first rows are kept. If
    there are too many kinds of mistake, the kinds that were rarest so far are dropped.

    Attributes:
        number: the number of rows to list.
    """

    number: int
    _kept: list[pl.DataFrame] = field(default_factory=list)
    _times: list[pl.DataFrame] = field(default_factory=list)

    def add(self, rows: pl.DataFrame, names: Mapping[str, str]) -> None:
        """Add a batch of rows that are not ignored; `names` has the columns to show by role."""
        optional = (x for x in (FILE, "group", CONFIDENCE) if x in rows.columns)
        wrong = rows.filter(pl.col("true") != pl.col("pred"))
        wrong = wrong.select(ROW, *_KIND, *names, *optional)
        if not len(wrong):
            return
        times = pl.concat([*self._times, wrong.group_by(_KIND).agg(pl.len().alias("times"))])
        self._times = [times.group_by(_KIND).agg(pl.col("times").sum())]
        kept = _first_of_each(pl.concat([*self._kept, wrong]), self.number)
        if len(kept) > _MOST_KEPT:
            kept = kept.join(self._kinds(_MOST_KEPT // (2 * self.number) + 1), on=_KIND, how="semi")
        self._kept = [kept]

    def _kinds(self, most: int) -> pl.DataFrame:
        """Return the most frequent kinds of mistake so far, and how often each occurred."""
        by = pl.concat(self._times).sort("times", *_KIND, descending=[True, False, False])
        return by.head(most)

    def records(self, names: Mapping[str, str]) -> list[dict[str, Any]]:
        """List the rows of the most frequent kinds of mistake, kind by kind."""
        if not self._times:
            return []
        kinds = self._kinds(_MOST_KINDS)
        first = _first_of_each(self._kept[0], -(-self.number // len(kinds)))
        rows = kinds.join(first, on=_KIND, maintain_order="left_right").head(self.number)
        return listed_rows(rows.rename({"pred": "predicted"}), ["true", "predicted"], names)


def listed_rows(
    rows: pl.DataFrame, classes: list[str], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return rows as dicts: file and row number, classes, probability, and the columns to show."""
    rows = rows.rename({ROW: "row"})
    shown = [x for x in (*_PLACE, *classes, CONFIDENCE) if x in rows.columns]
    return [
        {name: row[name] for name in shown}
        | {"columns": {name: row[role] for role, name in names.items()}}
        for row in rows.iter_rows(named=True)
    ]


def by_confidence(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by the probability of the predicted class, highest first, if there are
    probabilities.
    """
    if CONFIDENCE not in rows.columns:
        return rows
    return rows.sort(CONFIDENCE, descending=True, maintain_order=True)


def _first_of_each(rows: pl.DataFrame, number: int) -> pl.DataFrame:
    """Return up to `number` rows of each kind of mistake, the most confident predictions first."""
    kinds = by_confidence(rows).group_by(_KIND, maintain_order=True)
    return kinds.head(number).select(rows.columns)
