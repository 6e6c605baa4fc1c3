"""Reports as CSV: one line per value, in full precision; empty where there is none."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence

from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ReportedValue

__all__: list[str] = []

_VALUE = ("value", "low", "high", "level", "method")
_SHARES = ("probability_better", "probability_equivalent")


def report_csv(report: ReportContents) -> str:
    """Write one line per value of one classifier; overall values have no class."""
    overall = ([name, "", *_value_cells(x, report.level)] for name, x in report.overall.items())
    per_class = (
        [name, class_name, *_value_cells(x, report.level)]
        for name, column in report.per_class.items()
        for class_name, x in zip(report.class_names, column, strict=True)
    )
    return _lines(["name", "class", *_VALUE], [*overall, *per_class])


def comparison_csv(report: ComparisonContents) -> str:
    """Write lines for the values of A, of B, and of their difference, with its probabilities."""
    rows: list[list[str]] = []
    for name, x in report.figures.items():
        shares = [_number(x.probability_better), _number(x.probability_equivalent)]
        rows.append([name, "A", *_value_cells(x.a, report.level), "", ""])
        rows.append([name, "B", *_value_cells(x.b, report.level), "", ""])
        rows.append([name, "A - B", *_value_cells(x.difference, report.level), *shares])
    return _lines(["name", "classifier", *_VALUE, *_SHARES], rows)


def _value_cells(x: ReportedValue, level: float) -> list[str]:
    cells = [_number(x.value), _number(x.low), _number(x.high)]
    return [*cells, "" if x.method is None else _number(level), x.method or ""]


def _number(x: float | None) -> str:
    return "" if x is None or math.isnan(x) else repr(float(x))


def _lines(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in (titles, *rows):
        # By itself the writer quotes a carriage return only where lines end with one.
        (quoted if any("\r" in cell for cell in row) else plain).writerow(row)
    return text.getvalue()
