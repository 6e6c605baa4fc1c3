"""Files that reports can be written to, by suffix."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from jaxmetrics.reports.pairs import ComparisonReport
from jaxmetrics.reports.singles import Report

__all__: list[str] = []

Writer: TypeAlias = Callable[[Report | ComparisonReport, str], str]

# From a report and a title to the text of a file.
FORMATS: dict[str, Writer] = {
    ".html": lambda report, title: report.to_html(title=title),
    ".json": lambda report, title: report.to_json(),
    ".md": lambda report, title: report.to_markdown(),
    ".csv": lambda report, title: report.to_csv(),
}
