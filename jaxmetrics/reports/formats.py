"""The base class of reports, and a function for each output format."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from jaxmetrics._text.printing import Backend, frame_of
from jaxmetrics._text.wording import Table, as_latex, escaped, filled, percent, printable
from jaxmetrics.reports.contents import Outline
from jaxmetrics.reports.gates import JudgedGate, Verdict, contents_of, exit_code

__all__: list[str] = []

_MOST_ROWS = 20  # the largest number of rows in a table that `print` shows
_BOLD = 1
_COLOURS = {Verdict.PASSED: 32, Verdict.FAILED: 31, Verdict.UNKNOWN: 33}  # green, red, yellow
_FORMULA = tuple("=+-@\t\r\n'\uff1d\uff0b\uff0d\uff20")  # also full-width characters


def as_text(outline: Outline, most_rows: int | None = None, *, has_colour: bool = False) -> str:
    """Write text for a terminal, with its codes for colours if it has any. The summary comes last,
    just above the prompt.
    """
    names = [f"{short}: {name}" for short, name in outline.names.items()]
    tables = [
        "\n".join(filter(None, [title, table.text()]))
        for title, table in _tables(outline, most_rows)
    ]
    above, verdict, notes = (
        "\n".join(map(filled, lines))
        for lines in ([outline.heading, *names], [outline.verdict], _sentences(outline))
    )

    def painted(text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if has_colour and text else text

    gates = (painted(filled(x.sentence()), _COLOURS[x.verdict]) + "\n" for x in outline.gates)
    parts = above, painted(verdict, _BOLD), *tables, notes
    return "\n\n".join(filter(None, parts)) + "\n" + "".join(gates)


def as_fragment(outline: Outline, most_rows: int) -> str:
    """Write the contents of `as_text` as an HTML fragment for notebooks."""
    names = [f"{short}: {name}" for short, name in outline.names.items()]
    above, below = (
        "<br>".join(map(html.escape, lines))
        for lines in (filter(None, [outline.heading, *names, outline.verdict]), _sentences(outline))
    )
    tables = "".join(
        (f"<p>{html.escape(title)}</p>" if title else "") + table.html()
        for title, table in _tables(outline, most_rows)
    )
    return f"<p>{above}</p>{tables}<p>{below}</p>"


def as_markdown(outline: Outline) -> str:
    """Write Markdown tables, for example for a pull request. The summary comes first. If there are
    gates, their verdicts come first, and readers unfold the rest.
    """
    interval = f"{percent(outline.level)} interval"
    reading = f". In brackets: {interval}s." if outline.intervals else ""
    parts = [
        escaped(outline.heading) + reading,
        "\n".join(f"- {short}: {escaped(name)}" for short, name in outline.names.items()),
        escaped(outline.verdict),
    ]
    for title, table in _wide_tables(outline):
        parts += [f"### {title}"] * bool(title) + [table.markdown()]
    parts.append(escaped(outline.result))
    parts.append("\n".join(f"- {escaped(note)}" for note in outline.notes))
    if gates := outline.gates:
        overall = {0: "Passed", 1: "Failed"}.get(exit_code(gates), "Undecided")
        titles = ["gate", "verdict", f"{gates[0].what or 'value'}, {interval}"]
        rows = [[printable(x.gate.text), x.verdict_in_words, f"{x.value}"] for x in gates]
        folded = ["<details><summary>Report</summary>", *parts, "</details>"]
        parts = [f"### {overall}", Table(titles, rows).markdown(), *folded]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_tex(outline: Outline) -> str:
    """Write LaTeX paragraphs and tables, in the order of `as_markdown`."""
    names = [f"{short}: {name}." for short, name in outline.names.items()]
    parts = [as_latex(" ".join([f"{outline.heading}.", *names, outline.verdict]))]
    for title, table in _wide_tables(outline):
        parts += [rf"\noindent\textbf{{{as_latex(title)}}}"] * bool(title) + [table.latex()]
    return "\n\n".join([*parts, *map(as_latex, _sentences(outline))]) + "\n"


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Write CSV with one line per record, in full precision."""
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in ([*record] for record in (*records[:1], *(map(_guarded, records)))):
        # The csv writer quotes a carriage return only if lines end with a carriage return.
        (quoted if any("\r" in str(cell) for cell in row) else plain).writerow(row)
    return text.getvalue()


def as_every_eval_ever(report: AnyReport) -> str:
    """Write the values of a report; see `to_every_eval_ever`."""
    content, level = report.to_dict(), report.outline().level
    number, results = content.get("num_items", content.get("num_examples")), []
    for record in report.records():
        if record.get("value") is None:
            continue
        parts = [record[key] for key in ("class", "label", "group") if record.get(key)]
        systems = [record[key] for key in ("system", "classifier") if key in record]
        details: dict[str, Any] = {"score": record["value"]}
        if record["low"] is not None:
            interval = {"lower": record["low"], "upper": record["high"], "confidence_level": level}
            method = {"method": record["method"]} if record.get("method") else {}
            size = {} if parts or number is None else {"num_samples": int(number)}
            details["uncertainty"] = {"confidence_interval": {**interval, **method}, **size}
        name = " ".join([str(record["name"]), *(f"[{x}]" for x in (*parts, *systems))])
        results.append({"evaluation_name": name, "score_details": details})
    if not results:
        raise ValueError("this report has no values for --format every-eval-ever")
    return as_json({"evaluation_results": results})


def as_json(content: Mapping[str, Any]) -> str:
    """Write JSON, which has no infinite numbers: an infinite end of an interval is written as null.

    The confusion matrix comes last, with one line per row.
    The cells of the matrix, 16 million for 4096 classes, are written by the compiled encoder, which
    does not support indentation.
    """
    matrix = content.get("confusion_matrix")
    rest = content if matrix is None else {**content, "confusion_matrix": []}
    text = json.dumps(_without_infinity(rest), indent=2, allow_nan=False, ensure_ascii=False)
    if matrix is None:
        return text + "\n"
    rows = ",\n    ".join(map(json.dumps, matrix))
    return text.removesuffix("[]\n}") + f"[\n    {rows}\n  ]\n}}\n"


def _without_infinity(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {key: _without_infinity(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_without_infinity(value) for value in x]
    return None if isinstance(x, float) and math.isinf(x) else x


def _guarded(record: Mapping[str, Any]) -> list[Any]:
    """Prepend an apostrophe to texts that a spreadsheet would interpret as a formula. Texts that
    begin with an apostrophe get another one, so that a reader can remove one apostrophe from each.

    Source: OWASP, CSV Injection.
    """
    return [
        f"'{x}" if isinstance(x, str) and x.startswith(_FORMULA) else x for x in record.values()
    ]


def _sentences(outline: Outline) -> list[str]:
    return [*filter(None, [outline.result, outline.intervals]), *outline.notes]


def _tables(outline: Outline, most_rows: int | None) -> Iterator[tuple[str, Table]]:
    """Return the first rows of the tables with their titles, the summary last. Of the confusion
    matrices, only those of two classes are in text.
    """
    small = {title: table for title, table in outline.matrix.items() if len(table.rows) == 2}
    tables = {**outline.tables, **small}
    yield from ((title, table.first(most_rows)) for title, table in tables.items())
    if outline.summary:
        yield outline.summary_title, _overall(outline)


def _overall(outline: Outline, value: str = "", method: str = "") -> Table:
    rows = [[title, x, x.method or ""] for title, x in outline.summary]
    return Table(["", value, method], rows, details=(2,))


def _wide_tables(outline: Outline) -> Iterator[tuple[str, Table]]:
    """Return the tables with their titles, the summary first."""
    if outline.summary:
        value = f"value, {percent(outline.level)} interval"
        yield outline.summary_title, _overall(outline, value, "method")
    yield from outline.tables.items()
    yield from outline.matrix.items()


class AnyReport(ABC):
    """Base class of reports. `print` writes a report as text; `report[name]` returns a value."""

    template: ClassVar[str] = "tables.html"  # the template of a page with pictures
    title: str = "Report"
    gates: Sequence[JudgedGate] = ()

    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """Return the values by name; values per class, label or group are dicts."""

    @abstractmethod
    def outline(self) -> Outline:
        """Return the contents as tables and sentences."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""

    @abstractmethod
    def records(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the CSV file as dicts that have the same keys."""

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the values."""
        return iter(self.values())

    def __getitem__(self, name: str) -> Any:
        """Return a value by name, or a dict of values per class."""
        values = self.values()
        if name in values:
            return values[name]
        raise KeyError(f"{name!r} is not in the report, which contains {', '.join(self)}.")

    def __repr__(self) -> str:
        """Return the text; tables with many rows are shortened."""
        return as_text(self.outline(), _MOST_ROWS).rstrip("\n")

    def _repr_html_(self) -> str:
        return as_fragment(self.outline(), _MOST_ROWS)

    def to_text(self) -> str:
        """Return the report as text, with all rows. It is as wide as the terminal: 80 columns if
        there is none, at least 40.
        """
        return as_text(self.outline())

    def to_json(self) -> str:
        """Return `to_dict()` as JSON."""
        return as_json(self.to_dict())

    def to_markdown(self) -> str:
        """Return the report as Markdown tables, for example for a pull request.

        If there are gates, their verdicts come first, and the rest is folded.

        >>> import jaxmetrics as jm
        >>> print(jm.Report.from_counts([[9, 1], [3, 7]]).to_markdown())  # doctest: +ELLIPSIS
        20 examples, 2 classes. In brackets: 95 % intervals.
        <BLANKLINE>
        Accuracy 0.800 \\[0.581, 0.934\\] is not shown to be above 0.500, the accuracy of ...
        <BLANKLINE>
        |  | value, 95 % interval | method |
        | --- | ---: | ---: |
        | accuracy | 0.800 \\[0.581, 0.934\\] | likelihood |
        ...
        | 0 | 10 | 0.750 \\[0.454, 0.933\\] | 0.900 \\[0.594, 0.994\\] | ...
        """
        return as_markdown(self.outline())

    def to_latex(self) -> str:
        """Return the sentences and tables of the report for LaTeX, with the packages booktabs and
        graphicx. Tables that are wider than the line are shrunk.

        >>> import jaxmetrics as jm
        >>> print(jm.Report.from_counts([[9, 1], [3, 7]]).to_latex())  # doctest: +ELLIPSIS
        20 examples, 2 classes. Accuracy 0.800 [0.581, 0.934] is not shown to be above ...
        <BLANKLINE>
        \\begin{center}
        ...
         & value, 95 \\% interval & method \\\\
        \\midrule
        accuracy & 0.800 [0.581, 0.934] & likelihood \\\\
        ...
        """
        return as_tex(self.outline())

    def to_csv(self) -> str:
        """Return the report as CSV with one line per value.

        Each line contains the name of the value and the class, classifier or group that it
        describes. Then follow the value and the ends of its interval in full precision, and the
        level and the method of the interval.

        >>> import jaxmetrics as jm
        >>> print(jm.Report.from_counts([[9, 1], [3, 7]]).to_csv())  # doctest: +ELLIPSIS
        name,class,value,low,high,level,method
        accuracy,,0.8,0.58...,0.93...,0.95,likelihood
        ...
        precision,0,0.75,0.45...,0.93...,0.95,likelihood
        ...
        """
        return as_csv(self.records())

    def to_every_eval_ever(self) -> str:
        """Return values and intervals as JSON in the schema of Every Eval Ever, version 0.2.

        The JSON contains `evaluation_results`; users have to add the model, the source and the
        metric.

        Raises:
            ValueError: if the report has no values, as is the case for plans.
        """
        return as_every_eval_ever(self)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return a data frame with the columns of `to_csv`.

        Args:
            backend: `"pandas"`, `"polars"` or `"pyarrow"`. The default is pandas if it is
                installed, otherwise Polars.

        Raises:
            ImportError: if the backend is not installed.
            ValueError: if the backend is none of these three strings.
        """
        records = self.records()
        return frame_of({key: [x[key] for x in records] for key in records[0]}, backend)

    def to_html(self, *, title: str | None = None) -> str:
        """Return the report as one HTML page without external files, for screens, phones and paper.

        The page contains explanations of the intervals and, for many reports, pictures.

        Args:
            title: the heading of the page; by default it depends on the kind of report.

        Raises:
            ImportError: if jinja2 or matplotlib is not installed; the extra `html` installs both.
        """
        from jaxmetrics.reports.pages import as_page

        return as_page(self, self.title if title is None else title)


@dataclass(frozen=True, eq=False, repr=False)
class TabularReport(AnyReport):
    """A report that stores all of its contents.

    Attributes:
        said: the contents as tables and sentences.
        content: the contents for JSON.
        lines: the rows of the CSV file.
        by_name: the values by name.
        gates: bounds that values must satisfy, set by the option `--gate` of the command line.
    """

    said: Outline
    content: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]
    by_name: Mapping[str, Any] = field(default_factory=dict)
    gates: Sequence[JudgedGate] = ()

    def values(self) -> Mapping[str, Any]:
        """Return the values by name."""
        return self.by_name

    def outline(self) -> Outline:
        """Return the contents as tables and sentences."""
        return self.said._replace(gates=self.gates)

    def to_dict(self) -> dict[str, Any]:
        """Return the contents for JSON."""
        return {**self.content, **contents_of(self.gates)}

    def records(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the CSV file."""
        return self.lines


# The methods that write a report, by the suffix of files.
FORMATS: dict[str, Callable[[AnyReport], str]] = {
    ".html": AnyReport.to_html,
    ".json": AnyReport.to_json,
    ".md": AnyReport.to_markdown,
    ".tex": AnyReport.to_latex,
    ".csv": AnyReport.to_csv,
    ".txt": AnyReport.to_text,
    ".eee": AnyReport.to_every_eval_ever,
}
