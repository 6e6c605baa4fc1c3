"""Reports that are tables: one value per line, for whatever has no report of its own kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxmetrics._wording import Table
from jaxmetrics.reports._csv import columns_of, lines_of
from jaxmetrics.reports._markdown import escaped
from jaxmetrics.reports._pages import tables_page
from jaxmetrics.reports._text import joined
from jaxmetrics.reports.contents import json_of

__all__: list[str] = []

_WIDEST = 120  # of a table


@dataclass(frozen=True, eq=False)
class TabularReport:
    """Holds what a report says, for people and for programs.

    Attributes:
        heading: one line on what was looked at.
        tables: for people, by title; users' names in them have been made printable.
        notes: what must be known to read the numbers right.
        content: what the JSON holds.
        records: a line of the CSV each, with the same keys.
    """

    heading: str
    tables: Mapping[str, Table]
    notes: Sequence[str]
    content: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        return dict(self.content)

    def to_json(self) -> str:
        """Write `to_dict()` as JSON."""
        return json_of(self.to_dict())

    def to_text(self) -> str:
        """Write tables for a terminal, side by side in parts where they are too wide."""
        parts = []
        for title, table in self.tables.items():
            texts = [part.text() for part in _parts(table)]
            texts[0] = "\n".join(filter(None, [title, texts[0]]))
            parts += texts
        return joined(self.heading, parts, self.notes)

    def to_markdown(self) -> str:
        """Write tables of Markdown, to paste where a change is discussed."""
        parts = [escaped(self.heading)]
        for title, (columns, rows) in self.tables.items():
            parts += [f"### {title}"] * bool(title)
            cells = [[escaped(cell) for cell in row] for row in rows]
            parts.append(Table([escaped(x) for x in columns], cells).markdown())
        notes = "\n".join(f"- {escaped(note)}" for note in self.notes)
        return "\n\n".join([*parts, notes]) + "\n"

    def to_csv(self) -> str:
        """Write one line per record, in full precision."""
        return lines_of(columns_of(self.records))

    def to_html(self, *, title: str = "Report") -> str:
        """Write one page of HTML that loads nothing."""
        return tables_page(title, self.heading, self.tables, self.notes)


def _parts(table: Table) -> list[Table]:
    """Cut a table that is too wide into several, which repeat the first column."""
    columns = [[title, *cells] for title, *cells in zip(table.titles, *table.rows, strict=True)]
    widths = [max(map(len, column)) + 2 for column in columns]
    parts: list[list[int]] = [[0]]
    for i in range(1, len(widths)):
        if len(parts[-1]) > 1 and sum(widths[j] for j in [*parts[-1], i]) > _WIDEST:
            parts.append([0])
        parts[-1].append(i)
    return [
        Table([table.titles[i] for i in part], [[row[i] for i in part] for row in table.rows])
        for part in parts
    ]
