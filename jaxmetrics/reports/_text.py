"""Reports as text for a terminal, and as a part of the page of a notebook."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence

from jaxmetrics._wording import Table, capital, fraction, labels_of, percent, sample_size, title_of
from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ComparedValue, ReportedValue

__all__: list[str] = []

_WIDTH = 80
_COLUMNS = 4  # that fit into it
_MOST_CLASSES = 20  # where a report is shown that was not asked to be written
_LONGEST_NAME = 40
_LONGEST_LINE = 200
_WAYS = {
    "likelihood": "likelihood",
    "student": "Student's distribution (losses)",
    "mover": "DeLong's variance (areas)",
}


def heading_of(report: ReportContents | ComparisonContents) -> str:
    """Write what was looked at."""
    number = sample_size(report.num_examples, report.num_ignored, report.num_clusters)
    return f"{number}, {len(report.class_names)} classes"


def mcnemar_sentence(report: ComparisonContents) -> str:
    only_a, only_b = report.only_right
    kind = "mid-p" if report.num_clusters is None else "of clusters"
    return (
        f"Right only in A: {only_a}, only in B: {only_b}; McNemar's test ({kind}):"
        f" p = {report.p_value:.3g}."
    )


def report_text(report: ReportContents) -> str:
    """Write tables of one classifier: one line per class, then one per overall value."""
    return joined(heading_of(report), map(Table.text, _tables(report)), _notes(report))


def comparison_text(report: ComparisonContents) -> str:
    """Write a table of two classifiers, one line per value, and McNemar's test."""
    names = [f"{x}  {name}" for x, name in named(report)]
    heading = "\n".join([heading_of(report), *names])
    return joined(heading, [_comparison_table(report).text()], _comparison_notes(report))


def named(report: ComparisonContents) -> list[tuple[str, str]]:
    """Return A and B with their names, or nothing where these are their only names."""
    if report.names == ("A", "B"):
        return []
    return list(zip("AB", labels_of(report.names, _LONGEST_LINE), strict=True))


def report_summary(report: ReportContents) -> str:
    """Write the text of a report, of many classes the first."""
    tables = map(Table.text, _tables(report, _MOST_CLASSES))
    return joined(heading_of(report), tables, _notes(report)).rstrip("\n")


def report_fragment(report: ReportContents) -> str:
    """Write the summary as HTML."""
    return _fragment([heading_of(report)], _tables(report, _MOST_CLASSES), _notes(report))


def comparison_fragment(report: ComparisonContents) -> str:
    """Write the text of a comparison as HTML."""
    heading = [heading_of(report), *(f"{x}: {name}" for x, name in named(report))]
    return _fragment(heading, [_comparison_table(report)], _comparison_notes(report))


def joined(heading: str, tables: Iterable[str], notes: Iterable[str]) -> str:
    """Write tables between a heading and notes."""
    footer = "\n".join(textwrap.fill(note, _WIDTH) for note in notes)
    return "\n\n".join([heading, *tables, footer]) + "\n"


def _fragment(heading: Sequence[str], tables: Sequence[Table], notes: Sequence[str]) -> str:
    above, below = ("<br>".join(map(html.escape, lines)) for lines in (heading, notes))
    return f"<p>{above}</p>{''.join(table.html() for table in tables)}<p>{below}</p>"


def _tables(report: ReportContents, most_classes: int | None = None) -> list[Table]:
    """Make tables of all classes or the first, as many columns as fit, and of overall values."""
    columns = list(report.per_class)
    overall = [[title_of(name), _cell(x), x.method or ""] for name, x in report.overall.items()]
    return [
        *(
            _class_table(report, columns[i : i + _COLUMNS], most_classes)
            for i in range(0, len(columns), _COLUMNS)
        ),
        Table(["", "", ""], overall),
    ]


def _class_table(report: ReportContents, columns: Sequence[str], most_classes: int | None) -> Table:
    rows = [
        [name, f"{report.support[i]:.10g}", *(_cell(report.per_class[key][i]) for key in columns)]
        for i, name in enumerate(labels_of(report.class_names[:most_classes], _LONGEST_NAME))
    ]
    if len(rows) < len(report.class_names):
        rows.append([f"... {len(report.class_names) - len(rows)} more", *[""] * (len(columns) + 1)])
    return Table(["class", "n", *map(title_of, columns)], rows)


def _notes(report: ReportContents) -> list[str]:
    areas = ", of areas by a score test" if "roc_auc" in report.per_class else ""
    methods = {x.method for column in report.per_class.values() for x in column}
    of_classes = "by likelihood, of recalls Wilson's" if "likelihood" in methods else "Wilson's"
    return [
        f"Intervals: {percent(report.level)}; of each class {of_classes}{areas}.",
        *(f"{capital(title_of(name))}: {note}" for name, note in report.notes.items()),
    ]


def _comparison_table(report: ComparisonContents) -> Table:
    rows = []
    for name, x in report.figures.items():
        values = [_cell(x.a), _cell(x.b), _cell(x.difference, signed=True)]
        rows.append([title_of(name), *values, *written_shares(x, report.rope)])
    return Table(["", "A", "B", "A - B", "P(A>B)", *title_within(report.rope)], rows)


def title_within(rope: float) -> list[str]:
    """Write the title of the probability that a difference does not matter, if it is asked for."""
    return [f"P(within {rope:g})"] if rope > 0 else []


def written_shares(x: ComparedValue, rope: float) -> list[str]:
    """Write the probability that A is better, and if asked that a difference does not matter."""
    shares = [x.probability_better] + [x.probability_equivalent] * (rope > 0)
    return ["-" if math.isnan(share) else f"{share:.3f}" for share in shares]


def _comparison_notes(report: ComparisonContents) -> list[str]:
    methods = dict.fromkeys(x.difference.method for x in report.figures.values())
    ways = ", ".join(_WAYS[method] for method in methods if method in _WAYS)
    note = f"Intervals: {percent(report.level)}; of A - B by {ways or _WAYS['likelihood']}."
    return [mcnemar_sentence(report), note]


def _cell(x: ReportedValue, signed: bool = False) -> str:
    if x.low is None or x.high is None:
        return fraction(x.value)
    low, high = (fraction(end).replace("0.", ".", 1) for end in (x.low, x.high))
    return f"{fraction(x.value)} {low}{' to ' if signed or x.low < 0 else '-'}{high}"
