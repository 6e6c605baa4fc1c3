"""Files that reports can be written to, by suffix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

__all__: list[str] = []


class AnyReport(Protocol):
    """A report of any kind."""

    def to_text(self) -> str:
        """Write it for a terminal."""

    def to_json(self) -> str:
        """Write it for programs."""

    def to_markdown(self) -> str:
        """Write it for a discussion."""

    def to_csv(self) -> str:
        """Write one line per value."""

    def to_html(self, *, title: str) -> str:
        """Write a page."""


Writer: TypeAlias = Callable[[AnyReport, str], str]

# From a report and a title to the text of a file.
FORMATS: dict[str, Writer] = {
    ".html": lambda report, title: report.to_html(title=title),
    ".json": lambda report, title: report.to_json(),
    ".md": lambda report, title: report.to_markdown(),
    ".csv": lambda report, title: report.to_csv(),
}
