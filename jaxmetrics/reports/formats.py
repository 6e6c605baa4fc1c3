"""Reports as text, HTML of a notebook, Markdown, CSV and JSON: each format is one function."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from jaxmetrics._wording import Table, fraction, percent
from jaxmetrics.reports.contents import Difference, Outline, ValueTable
from jaxmetrics.reports.values import ReportedValue, value_cell

if TYPE_CHECKING:
    from jaxmetrics.reports.tabular import AnyReport

__all__: list[str] = []

Writer: TypeAlias = "Callable[[AnyReport, str], str]"

_WIDTH = 80  # of a terminal
_MOST_VALUES = 4  # side by side that fit into it
_MARKUP = re.compile(r"([\\`*_\[\]<>|~#&$@!]|:(?=\S))")
_LEADING_ZERO = re.compile(r"\b0\.")
_FORMULA = (*"=+-@\t\r\n'", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # some are full-width


def as_text(outline: Outline, most_rows: int | None = None) -> str:
    """Write tables for a terminal, the summary last, where its prompt will be."""
    names = [f"{short}  {name}" for short, name in outline.names.items()]
    tables = [
        "\n".join(filter(None, [title, table.text()]))
        for title, table in _narrow_tables(outline, most_rows)
    ]
    notes = "\n".join(textwrap.fill(note, _WIDTH) for note in _sentences(outline))
    return "\n\n".join(["\n".join([outline.heading, *names]), *tables, notes]) + "\n"


def as_fragment(outline: Outline, most_rows: int) -> str:
    """Write the same as HTML, a part of the page of a notebook."""
    names = [f"{short}: {name}" for short, name in outline.names.items()]
    above, below = (
        "<br>".join(map(html.escape, lines))
        for lines in ([outline.heading, *names], _sentences(outline))
    )
    tables = "".join(
        (f"<p>{html.escape(title)}</p>" if title else "") + table.html()
        for title, table in _narrow_tables(outline, most_rows)
    )
    return f"<p>{above}</p>{tables}<p>{below}</p>"


def as_markdown(outline: Outline) -> str:
    """Write tables to paste where a change is discussed, the summary first."""
    interval = f"{percent(outline.level)} interval"
    reading = f". In parentheses: {interval}s." if outline.intervals else ""
    parts = [
        escaped(outline.heading) + reading,
        "\n".join(f"- {short}: {escaped(name)}" for short, name in outline.names.items()),
    ]
    if outline.summary:
        rows = [
            [title, fraction(x.value), _ends(x, " to "), x.method or ""]
            for title, x in outline.summary
        ]
        summary = ValueTable(["", "value", interval, "method"], rows)
        parts += _titled(outline.summary_title, summary)
    for title, table in outline.tables.items():
        parts += _titled(title, table)
    parts.append(escaped(outline.result))
    parts.append("\n".join(f"- {escaped(note)}" for note in outline.notes))
    return "\n\n".join(filter(None, parts)) + "\n"


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Write one line per record, in full precision."""
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in ([*record] for record in (*records[:1], *(map(_guarded, records)))):
        # By itself the writer quotes a carriage return only where lines end with one.
        (quoted if any("\r" in str(cell) for cell in row) else plain).writerow(row)
    return text.getvalue()


def as_json(content: Mapping[str, Any]) -> str:
    """Write JSON, with a line for each row of a confusion matrix, which stands last.

    Its cells, 16 million for 4096 classes, are thus written by the compiled encoder, which knows no
    indent.
    """
    matrix = content.get("confusion_matrix")
    rest = content if matrix is None else {**content, "confusion_matrix": []}
    text = json.dumps(rest, indent=2, allow_nan=False, ensure_ascii=False)
    if matrix is None:
        return text + "\n"
    rows = ",\n    ".join(map(json.dumps, matrix))
    return text.removesuffix("[]\n}") + f"[\n    {rows}\n  ]\n}}\n"


# What writes a file from a report and a title, by suffix.
FORMATS: dict[str, Writer] = {
    ".html": lambda report, title: report.to_html(title=title),
    ".json": lambda report, title: report.to_json(),
    ".md": lambda report, title: report.to_markdown(),
    ".csv": lambda report, title: report.to_csv(),
}


def escaped(text: str) -> str:
    """Escape what would be markup in Markdown."""
    return _MARKUP.sub(r"\\\1", text)


def columns_of(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Turn records with the same keys into columns."""
    titles = list(records[0]) if records else []
    return {title: [record[title] for record in records] for title in titles}


def _guarded(record: Mapping[str, Any]) -> list[Any]:
    """Put an apostrophe before texts that a spreadsheet would take for a formula, and before those
    that begin with one, so that whoever reads takes one away from each text that has it.

    Source: OWASP, CSV Injection.
    """
    return [
        f"'{x}" if isinstance(x, str) and x.startswith(_FORMULA) else x for x in record.values()
    ]


def _sentences(outline: Outline) -> list[str]:
    return [*filter(None, [outline.result, outline.intervals]), *outline.notes]


def _narrow_tables(outline: Outline, most_rows: int | None) -> Iterator[tuple[str, Table]]:
    """Cut tables with too many columns of values into several, which repeat the names of the rows,
    and name how many rows are left out.
    """
    for title, (titles, rows, details) in outline.tables.items():
        shown = [[_narrow_cell(x) for x in row] for row in rows[:most_rows]]
        if len(shown) < len(rows):
            shown.append([f"... {len(rows) - len(shown)} more", *[""] * (len(titles) - 1)])
        columns = [i for i in range(len(titles)) if i not in details]
        values = [i for i in columns if any(isinstance(row[i], ReportedValue) for row in rows)]
        parts = [columns]
        if len(values) > _MOST_VALUES:
            starts = range(0, len(values), _MOST_VALUES)
            parts = [[*range(values[0]), *values[i : i + _MOST_VALUES]] for i in starts]
        for part in parts:
            cells = [[row[i] for i in part] for row in shown]
            yield title * (part is parts[0]), Table([titles[i] for i in part], cells)
    if outline.summary:
        overall = [[title, _narrow_cell(x), x.method or ""] for title, x in outline.summary]
        yield outline.summary_title, Table(["", "", ""], overall)


def _narrow_cell(x: str | ReportedValue) -> str:
    if isinstance(x, str):
        return x
    between = " to " if isinstance(x, Difference) or (x.low or 0) < 0 else "-"
    ends = _LEADING_ZERO.sub(".", _ends(x, between))
    return " ".join(filter(None, [fraction(x.value), ends]))


def _ends(x: ReportedValue, between: str) -> str:
    if x.low is None or x.high is None:
        return ""
    return f"{fraction(x.low)}{between}{fraction(x.high)}"


def _titled(title: str, table: ValueTable) -> list[str]:
    cells = [
        [escaped(x) if isinstance(x, str) else value_cell(x) for x in row] for row in table.rows
    ]
    written = Table([escaped(x) for x in table.titles], cells).markdown()
    return [f"### {title}"] * bool(title) + [written]
