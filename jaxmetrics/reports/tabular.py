"""The one report: what each kind says, and every format that it is written in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxmetrics._printing import Backend, frame_of
from jaxmetrics.reports._pages import page
from jaxmetrics.reports.contents import Outline
from jaxmetrics.reports.formats import (
    as_csv,
    as_fragment,
    as_json,
    as_markdown,
    as_text,
    columns_of,
)

__all__: list[str] = []

_MOST_ROWS = 20  # where a report is shown that was not asked to be written


class AnyReport(ABC):
    """A report of any kind. It prints as its text; its values are found by their names."""

    template: ClassVar[str] = "tables.html"  # of the page
    title: ClassVar[str] = "Report"

    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """Return the values by name; of classes, labels or groups dicts by theirs."""

    @abstractmethod
    def outline(self) -> Outline:
        """Say what people are told."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""

    @abstractmethod
    def records(self) -> Sequence[Mapping[str, Any]]:
        """List the rows of the CSV, which have the same keys."""

    def pictures(self) -> dict[str, Any]:
        """Draw what the template of the page shows."""
        return {}

    def methods(self) -> set[str | None]:
        """Name the methods of the intervals."""
        return {record.get("method") for record in self.records()}

    def __iter__(self) -> Iterator[str]:
        """List the names of the values."""
        return iter(self.values())

    def __getitem__(self, name: str) -> Any:
        """Return a value, or the values of classes by their names."""
        values = self.values()
        if name in values:
            return values[name]
        raise KeyError(f"{name!r} is not reported; there are {', '.join(self)}")

    def __repr__(self) -> str:
        """Write the text, without the most of many rows."""
        return as_text(self.outline(), _MOST_ROWS).rstrip("\n")

    def _repr_html_(self) -> str:
        return as_fragment(self.outline(), _MOST_ROWS)

    def to_text(self) -> str:
        """Write tables for a terminal."""
        return as_text(self.outline())

    def to_json(self) -> str:
        """Write `to_dict()` as JSON."""
        return as_json(self.to_dict())

    def to_markdown(self) -> str:
        """Write tables of Markdown, to paste where a change is discussed.

        >>> import jaxmetrics as jm
        >>> print(jm.Report.from_counts([[9, 1], [3, 7]]).to_markdown())  # doctest: +ELLIPSIS
        20 examples, 2 classes. In parentheses: 95 % intervals.
        <BLANKLINE>
        |  | value | 95 % interval | method |
        | --- | ---: | ---: | ---: |
        | accuracy | 0.800 | 0.584 to 0.919 | wilson |
        ...
        | 0 | 10 | 0.750 (0.468 to 0.911) | 0.900 (0.596 to 0.982) | ...
        """
        return as_markdown(self.outline())

    def to_csv(self) -> str:
        """Write one line per value: its name, whose it is (a class, a classifier, a group), the
        value and its interval in full precision, level and method.

        >>> import jaxmetrics as jm
        >>> print(jm.Report.from_counts([[9, 1], [3, 7]]).to_csv())  # doctest: +ELLIPSIS
        name,class,value,low,high,level,method
        accuracy,,0.8,0.58...,0.91...,0.95,wilson
        ...
        precision,0,0.75,0.46...,0.91...,0.95,wilson
        ...
        """
        return as_csv(self.records())

    def to_frame(self, backend: Backend = "polars") -> Any:
        """Return a data frame with the columns of `to_csv`.

        Args:
            backend: `"polars"`, `"pandas"` or `"pyarrow"`.

        Raises:
            ImportError: narwhals (the extra `tables`), or the backend, is not installed.
            ValueError: another backend.
        """
        return frame_of(columns_of(self.records()), backend)

    def to_html(self, *, title: str | None = None) -> str:
        """Write one page of HTML that loads nothing, for a screen, a phone or paper, with pictures
        where there are any, and how the intervals were made.

        Args:
            title: the heading.

        Raises:
            ImportError: jinja2 or matplotlib is not installed; the extra `html` has both.
        """
        return page(self, self.title if title is None else title)


@dataclass(frozen=True, eq=False, repr=False)
class TabularReport(AnyReport):
    """A report that holds what it says.

    Attributes:
        said: the outline.
        content: what the JSON holds.
        lines: of the CSV.
        found: values by name.
    """

    said: Outline
    content: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    found: Mapping[str, Any] = field(default_factory=dict)

    def values(self) -> Mapping[str, Any]:
        """Return what was found."""
        return self.found

    def outline(self) -> Outline:
        """Return what is said."""
        return self.said

    def to_dict(self) -> dict[str, Any]:
        """Return the content."""
        return dict(self.content)

    def records(self) -> Sequence[Mapping[str, Any]]:
        """Return the lines."""
        return self.lines
