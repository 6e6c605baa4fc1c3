"""Reports as text for a terminal; how numbers and names are written is shared by other formats."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ReportedValue

__all__: list[str] = []

_WAYS = {
    "likelihood": "likelihood",
    "student": "Student's distribution (losses)",
    "mover": "DeLong's variance (areas)",
}
_WIDTH = 80
_COLUMNS = 4  # that fit into it

_WRITTEN = {
    "f1": "F1",
    "matthews corrcoef": "MCC (Matthews)",
    "cohen": "Cohen",
    "roc auc": "ROC AUC",
    "brier": "Brier",
}


def title_of(name: str) -> str:
    title = name.replace("_", " ")
    for plain, written in _WRITTEN.items():
        title = title.replace(plain, written)
    return title


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def printable(name: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def fraction(x: float) -> str:
    """Write three decimals, or up to six where fewer would show 0 or 1 for what is neither."""
    decimals = next((d for d in range(3, 7) if 0 < abs(round(x, d)) < 1), 3)
    return "-" if math.isnan(x) else f"{round(x, decimals) + 0.0:.{decimals}f}"  # never -0.000


def percent(level: float) -> str:
    return f"{100 * level:.10g} %"


def report_heading(report: ReportContents) -> str:
    clusters = "" if report.num_clusters is None else f" in {report.num_clusters} clusters"
    ignored = f", {report.num_ignored} ignored" if report.num_ignored else ""
    number = f"{report.num_examples:.10g} examples{clusters}"
    return f"{number}{ignored}, {len(report.class_names)} classes"


def comparison_heading(report: ComparisonContents) -> str:
    clusters = "" if report.num_clusters is None else f" in {report.num_clusters} clusters"
    ignored = f", {report.num_ignored} ignored" if report.num_ignored else ""
    return f"{report.num_examples} examples{clusters}{ignored}, {report.num_classes} classes"


def mcnemar_sentence(report: ComparisonContents) -> str:
    only_a, only_b = report.only_right
    kind = "mid-p" if report.num_clusters is None else "of clusters"
    return (
        f"Right only in A: {only_a}, only in B: {only_b}; McNemar's test ({kind}):"
        f" p = {report.p_value:.3g}."
    )


def report_text(report: ReportContents) -> str:
    """Write tables of one classifier: one line per class, then one per overall value."""
    columns = list(report.per_class)
    classes = [
        _class_table(report, columns[i : i + _COLUMNS]) for i in range(0, len(columns), _COLUMNS)
    ]
    overall = [[title_of(name), _cell(x), x.method or ""] for name, x in report.overall.items()]
    areas = ", of areas by a score test" if "roc_auc" in report.per_class else ""
    notes = [
        f"Intervals: {percent(report.level)}; of each class Wilson's{areas}.",
        *(f"{capital(title_of(name))}: {note}" for name, note in report.notes.items()),
    ]
    footer = "\n".join(textwrap.fill(note, _WIDTH) for note in notes)
    return "\n\n".join([report_heading(report), *classes, text_table(overall), footer]) + "\n"


def comparison_text(report: ComparisonContents) -> str:
    """Write a table of two classifiers, one line per value, and McNemar's test."""
    a, b = map(printable, report.names)
    heading = f"{comparison_heading(report)}\nA  {a}\nB  {b}"
    has_rope = report.rope > 0
    titles = ["", "A", "B", "A - B", "P(A>B)"]
    rows = [titles + [f"P(within {report.rope:g})"] * has_rope]
    for name, x in report.figures.items():
        values = [_cell(x.a), _cell(x.b), _cell(x.difference, signed=True)]
        shares = [x.probability_better] + [x.probability_equivalent] * has_rope
        written = [f"{share:.3f}" for share in shares]
        rows.append([title_of(name), *values, *written])
    methods = dict.fromkeys(x.difference.method for x in report.figures.values())
    ways = ", ".join(_WAYS[method] for method in methods if method in _WAYS)
    note = f"Intervals: {percent(report.level)}; of A - B by {ways or 'likelihood'}."
    return "\n\n".join([heading, text_table(rows), f"{mcnemar_sentence(report)}\n{note}"]) + "\n"


def _class_table(report: ReportContents, columns: Sequence[str]) -> str:
    rows = [["class", "n", *map(title_of, columns)]]
    for i, name in enumerate(report.class_names):
        cells = [_cell(report.per_class[key][i]) for key in columns]
        rows.append([printable(name), f"{report.support[i]:.10g}", *cells])
    return text_table(rows)


def _cell(x: ReportedValue, signed: bool = False) -> str:
    if x.low is None or x.high is None:
        return fraction(x.value)
    low, high = (fraction(end).replace("0.", ".", 1) for end in (x.low, x.high))
    return f"{fraction(x.value)} {low}{' to ' if signed or x.low < 0 else '-'}{high}"


def text_table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
