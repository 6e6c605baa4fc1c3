"""Reports as Markdown: tables to paste where a change is discussed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from jaxmetrics._wording import Table, capital, fraction, labels_of, percent, title_of
from jaxmetrics.reports._text import (
    heading_of,
    mcnemar_sentence,
    named,
    title_within,
    written_shares,
)
from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ReportedValue, value_cell

__all__: list[str] = []

_LONGEST_NAME = 80
_MARKUP = re.compile(r"([\\`*_\[\]<>|~#&$@!:])")


def report_markdown(report: ReportContents) -> str:
    """Write tables of one classifier: overall values, then those of each class."""
    overall = [
        [title, fraction(x.value), _interval(x), x.method or ""]
        for title, x in zip(_titles(report.overall), report.overall.values(), strict=True)
    ]
    columns = [map(value_cell, column) for column in report.per_class.values()]
    numbers = (f"{support:.10g}" for support in report.support)
    classes = list(zip(_escaped(report.class_names), numbers, *columns, strict=True))
    interval = f"{percent(report.level)} interval"
    parts = [
        f"{heading_of(report)}. In parentheses: {interval}s.",
        Table(["", "value", interval, "method"], overall).markdown(),
        Table(["class", "examples", *_titles(report.per_class)], classes).markdown(),
        "\n".join(f"- {capital(title_of(x))}: {note}" for x, note in report.notes.items()),
    ]
    return "\n\n".join(parts) + "\n"


def comparison_markdown(report: ComparisonContents) -> str:
    """Write a table of two classifiers, each value of both, and McNemar's test."""
    titles = ["", "A", "B", "A - B", "method", "P(A > B)", *title_within(report.rope)]
    rows = []
    for name, x in report.figures.items():
        values = [value_cell(x.a), value_cell(x.b), value_cell(x.difference)]
        method = x.difference.method or ""
        rows.append([title_of(name), *values, method, *written_shares(x, report.rope)])
    heading = f"{heading_of(report)}. In parentheses: {percent(report.level)} intervals."
    names = "\n".join(f"- {x}: {escaped(name)}" for x, name in named(report))
    parts = [
        *filter(None, [heading, names]),
        Table(titles, rows).markdown(),
        mcnemar_sentence(report),
    ]
    return "\n\n".join(parts) + "\n"


def _interval(x: ReportedValue) -> str:
    if x.low is None or x.high is None:
        return ""
    return f"{fraction(x.low)} to {fraction(x.high)}"


def escaped(text: str) -> str:
    """Escape what would be markup."""
    return _MARKUP.sub(r"\\\1", text)


def _escaped(names: Sequence[str]) -> list[str]:
    """Make names printable, and escape what would be markup in them."""
    return [escaped(name) for name in labels_of(names, _LONGEST_NAME)]


def _titles(names: Iterable[str]) -> list[str]:
    return _escaped([title_of(name) for name in names])
