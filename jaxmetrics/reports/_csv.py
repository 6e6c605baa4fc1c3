"""Reports as columns, a row per value, in full precision, and these as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ReportedValue

__all__: list[str] = []

Columns: TypeAlias = dict[str, list[Any]]

_VALUE = ("value", "low", "high", "level", "method")
_SHARES = ("probability_better", "probability_equivalent")


def report_csv(report: ReportContents) -> str:
    """Write one line per value of one classifier; overall values have no class."""
    return _lines(report_columns(report))


def comparison_csv(report: ComparisonContents) -> str:
    """Write lines for the values of A, of B, and of their difference, with its probabilities."""
    return _lines(comparison_columns(report))


def report_columns(report: ReportContents) -> Columns:
    """List all values of one classifier, None where there is none."""
    overall = ((name, None, *_parts(x, report.level)) for name, x in report.overall.items())
    per_class = (
        (name, class_name, *_parts(x, report.level))
        for name, column in report.per_class.items()
        for class_name, x in zip(report.class_names, column, strict=True)
    )
    return _columns(["name", "class", *_VALUE], [*overall, *per_class])


def comparison_columns(report: ComparisonContents) -> Columns:
    """List all values of A, of B, and of their difference, with its probabilities."""
    rows: list[tuple[Any, ...]] = []
    for name, x in report.figures.items():
        shares = x.probability_better, x.probability_equivalent
        rows.append((name, "A", *_parts(x.a, report.level), None, None))
        rows.append((name, "B", *_parts(x.b, report.level), None, None))
        rows.append((name, "A - B", *_parts(x.difference, report.level), *map(_known, shares)))
    return _columns(["name", "classifier", *_VALUE, *_SHARES], rows)


def _columns(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    return dict(zip(titles, map(list, zip(*rows, strict=True)), strict=True))


def _parts(x: ReportedValue, level: float) -> tuple[Any, ...]:
    numbers = map(_known, (x.value, x.low, x.high))
    return *numbers, None if x.method is None else float(level), x.method


def _known(x: float | None) -> float | None:
    return None if x is None or math.isnan(x) else float(x)


def _lines(columns: Columns) -> str:
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in ([*columns], *zip(*columns.values(), strict=True)):
        # By itself the writer quotes a carriage return only where lines end with one.
        (quoted if any("\r" in str(cell) for cell in row) else plain).writerow(row)
    return text.getvalue()
