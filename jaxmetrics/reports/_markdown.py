"""Reports as Markdown: tables to paste where a change is discussed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from jaxmetrics._wording import Table, capital, fraction, labels_of, percent, title_of
from jaxmetrics.reports._text import comparison_heading, mcnemar_sentence, named, report_heading
from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ReportedValue

__all__: list[str] = []

_LONGEST_NAME = 80
_MARKUP = re.compile(r"([\\`*_\[\]<>|~#&$@!:])")


def report_markdown(report: ReportContents) -> str:
    """Write tables of one classifier: overall values, then those of each class."""
    overall = [
        [title, fraction(x.value), _interval(x), x.method or ""]
        for title, x in zip(_titles(report.overall), report.overall.values(), strict=True)
    ]
    columns = [map(_cell, column) for column in report.per_class.values()]
    numbers = (f"{support:.10g}" for support in report.support)
    classes = list(zip(_escaped(report.class_names), numbers, *columns, strict=True))
    interval = f"{percent(report.level)} interval"
    parts = [
        f"{report_heading(report)}. In parentheses: {interval}s.",
        Table(["", "value", interval, "method"], overall).markdown(),
        Table(["class", "examples", *_titles(report.per_class)], classes).markdown(),
        "\n".join(f"- {capital(title_of(x))}: {note}" for x, note in report.notes.items()),
    ]
    return "\n\n".join(parts) + "\n"


def comparison_markdown(report: ComparisonContents) -> str:
    """Write a table of two classifiers, each value of both, and McNemar's test."""
    has_rope = report.rope > 0
    titles = ["", "A", "B", "A - B", "method", "P(A > B)"]
    titles += [f"P(within {report.rope:g})"] * has_rope
    rows = []
    for name, x in report.figures.items():
        shares = [x.probability_better] + [x.probability_equivalent] * has_rope
        values = [_cell(x.a), _cell(x.b), _cell(x.difference)]
        method = x.difference.method or ""
        written = ["-" if math.isnan(share) else f"{share:.3f}" for share in shares]
        rows.append([title_of(name), *values, method, *written])
    heading = f"{comparison_heading(report)}. In parentheses: {percent(report.level)} intervals."
    names = "\n".join(f"- {x}: {escaped(name)}" for x, name in named(report))
    parts = [
        *filter(None, [heading, names]),
        Table(titles, rows).markdown(),
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


def escaped(text: str) -> str:
    """Escape what would be markup."""
    return _MARKUP.sub(r"\\\1", text)


def _escaped(names: Sequence[str]) -> list[str]:
    """Make names printable, and escape what would be markup in them."""
    return [escaped(name) for name in labels_of(names, _LONGEST_NAME)]


def _titles(names: Iterable[str]) -> list[str]:
    return _escaped([title_of(name) for name in names])
