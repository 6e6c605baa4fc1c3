"""Reports as Markdown: tables to paste where a change is discussed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxmetrics.reports._text import (
    capital,
    comparison_heading,
    fraction,
    mcnemar_sentence,
    percent,
    printable,
    report_heading,
    title_of,
)
from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ReportedValue

__all__: list[str] = []


def report_markdown(report: ReportContents) -> str:
    """Write tables of one classifier: overall values, then those of each class."""
    overall = [
        [title_of(name), fraction(x.value), _interval(x), x.method or ""]
        for name, x in report.overall.items()
    ]
    columns = [map(_cell, column) for column in report.per_class.values()]
    numbers = (f"{support:.10g}" for support in report.support)
    classes = list(zip(map(escaped, report.class_names), numbers, *columns, strict=True))
    interval = f"{percent(report.level)} interval"
    parts = [
        f"{report_heading(report)}. In parentheses: {interval}s.",
        markdown_table(["", "value", interval, "method"], overall),
        markdown_table(["class", "examples", *map(title_of, report.per_class)], classes),
        "\n".join(f"- {capital(title_of(x))}: {note}" for x, note in report.notes.items()),
    ]
    return "\n\n".join(parts) + "\n"


def comparison_markdown(report: ComparisonContents) -> str:
    """Write a table of two classifiers, each value of both, and McNemar's test."""
    a, b = map(escaped, report.names)
    has_rope = report.rope > 0
    titles = ["", "A", "B", "A - B", "method", "P(A > B)"]
    titles += [f"P(within {report.rope:g})"] * has_rope
    rows = []
    for name, x in report.figures.items():
        shares = [x.probability_better] + [x.probability_equivalent] * has_rope
        values = [_cell(x.a), _cell(x.b), _cell(x.difference)]
        method = x.difference.method or ""
        rows.append([title_of(name), *values, method, *(f"{share:.3f}" for share in shares)])
    heading = f"{comparison_heading(report)}. In parentheses: {percent(report.level)} intervals."
    parts = [
        f"{heading}\n\n- A: {a}\n- B: {b}",
        markdown_table(titles, rows),
        mcnemar_sentence(report),
    ]
    return "\n\n".join(parts) + "\n"


def _cell(x: ReportedValue) -> str:
    interval = _interval(x)
    return f"{fraction(x.value)} ({interval})" if interval else fraction(x.value)


def _interval(x: ReportedValue) -> str:
    if x.low is None or x.high is None:
        return ""
    return f"{fraction(x.low)} to {fraction(x.high)}"


def escaped(name: str) -> str:
    """Escape what would be markup in a name."""
    return re.sub(r"([\\`*_\[\]<>|~#&$@!:])", r"\\\1", printable(name))


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
