"""Reports that are tables: one value per line, for whatever has no report of its own kind."""

from __future__ import annotations

import csv
import html
import io
import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from jaxmetrics.reports._markdown import escaped, markdown_table
from jaxmetrics.reports._text import fraction, printable, text_table
from jaxmetrics.reports.values import ReportedValue, as_json

__all__: list[str] = []

_WIDTH = 80
_WIDEST = 120  # of a table
_STYLE = (
    "body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;"
    " padding: 0 1rem; color-scheme: light dark; }"
    " .wide { overflow-x: auto; } table { border-collapse: collapse; }"
    " th, td { padding: .2rem .8rem .2rem 0; text-align: left; white-space: nowrap; }"
    " th { border-bottom: 1px solid; } td:not(:first-child) { font-variant-numeric: tabular-nums; }"
)


class Table(NamedTuple):
    """Holds a table for people: a title, and rows of text under titles of columns."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class TabularReport:
    """Holds what a report says, for people and for programs.

    Attributes:
        heading: one line on what was looked at.
        tables: for people.
        notes: what must be known to read the numbers right.
        content: what the JSON holds.
        records: a line of the CSV each, with the same keys.
    """

    heading: str
    tables: Sequence[Table]
    notes: Sequence[str]
    content: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        return dict(self.content)

    def to_json(self) -> str:
        """Write `to_dict()` as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"

    def to_text(self) -> str:
        """Write tables for a terminal."""
        parts = [self.heading]
        for table in self.tables:
            rows = [table.columns, *([printable(cell) for cell in row] for row in table.rows)]
            parts += [printable(table.title)] * bool(table.title)
            parts += [text_table(part) for part in _side_by_side(rows)]
        notes = "\n".join(textwrap.fill(printable(note), _WIDTH) for note in self.notes)
        return "\n\n".join(filter(None, [*parts, notes])) + "\n"

    def to_markdown(self) -> str:
        """Write tables of Markdown, to paste where a change is discussed."""
        parts = [self.heading]
        for table in self.tables:
            parts += [f"### {escaped(table.title)}"] * bool(table.title)
            parts.append(markdown_table(table.columns, [list(map(escaped, x)) for x in table.rows]))
        notes = "\n".join(f"- {escaped(note)}" for note in self.notes)
        return "\n\n".join(filter(None, [*parts, notes])) + "\n"

    def to_csv(self) -> str:
        """Write one line per record, in full precision."""
        text = io.StringIO()
        titles = list(self.records[0]) if self.records else []
        writer = csv.DictWriter(text, titles, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
        writer.writeheader()
        writer.writerows(self.records)
        return text.getvalue()

    def to_html(self, *, title: str = "Report") -> str:
        """Write one page of HTML that loads nothing."""
        name = html.escape(printable(title))
        parts = [f"<h1><bdi>{name}</bdi></h1>", f"<p>{html.escape(self.heading)}</p>"]
        for table in self.tables:
            head = "".join(f"<th>{html.escape(x)}</th>" for x in table.columns)
            rows = "".join(
                f"<tr>{''.join(f'<td><bdi>{html.escape(printable(x))}</bdi></td>' for x in row)}"
                "</tr>\n"
                for row in table.rows
            )
            parts += [f"<h2>{html.escape(printable(table.title))}</h2>"] * bool(table.title)
            parts.append(
                f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody>'
                "</table></div>"
            )
        parts += [f"<p>{html.escape(printable(note))}</p>" for note in self.notes]
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{name}</title><style>{_STYLE}</style></head><body>\n"
            + "\n".join(parts)
            + "\n</body></html>\n"
        )


def _side_by_side(rows: Sequence[Sequence[str]]) -> list[list[list[str]]]:
    """Cut a table that is too wide into several, which repeat the first column."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    parts: list[list[int]] = [[]]
    for i, width in enumerate(widths[1:], 1):
        if parts[-1] and widths[0] + sum(widths[j] for j in parts[-1]) + width > _WIDEST:
            parts.append([])
        parts[-1].append(i)
    return [[[row[0], *(row[i] for i in part)] for row in rows] for part in parts]


def value_cell(x: ReportedValue) -> str:
    """Write a value and its interval for people."""
    if x.low is None or x.high is None:
        return fraction(x.value)
    return f"{fraction(x.value)} ({fraction(x.low)} to {fraction(x.high)})"


def value_record(x: ReportedValue, level: float) -> dict[str, Any]:
    """Write a value and its interval for programs, empty where there is none."""
    record = {"value": None, "low": None, "high": None, **as_json(x)}
    record.pop("note", None)
    has_interval = record["low"] is not None
    return {
        **{key: record[key] for key in ("value", "low", "high")},
        "level": level if has_interval else None,
        "method": record.get("method"),
    }
