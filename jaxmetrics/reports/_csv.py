"""Reports as columns, a row per value, in full precision, and these as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import as_json, value_record

__all__: list[str] = []

Columns: TypeAlias = dict[str, list[Any]]

_FORMULA = (*"=+-@\t\r\n'", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # some are full-width
_SHARES = ("probability_better", "probability_equivalent")


def report_columns(report: ReportContents) -> Columns:
    """List all values of one classifier, None where there is none."""
    overall = [(name, None, x) for name, x in report.overall.items()]
    per_class = [
        (name, class_name, x)
        for name, column in report.per_class.items()
        for class_name, x in zip(report.class_names, column, strict=True)
    ]
    return columns_of(
        [
            {"name": name, "class": class_name, **value_record(x, report.level)}
            for name, class_name, x in overall + per_class
        ]
    )


def comparison_columns(report: ComparisonContents) -> Columns:
    """List all values of A, of B, and of their difference, with its probabilities."""
    records: list[dict[str, Any]] = []
    for name, x in report.figures.items():
        known, unknown = as_json(x), dict.fromkeys(_SHARES)
        for classifier, value, shares in (
            ("A", x.a, unknown),
            ("B", x.b, unknown),
            ("A - B", x.difference, {key: known[key] for key in _SHARES}),
        ):
            numbers = value_record(value, report.level)
            records.append({"name": name, "classifier": classifier, **numbers, **shares})
    return columns_of(records)


def columns_of(records: Sequence[Mapping[str, Any]]) -> Columns:
    """Turn records with the same keys into columns."""
    titles = list(records[0]) if records else []
    return {title: [record[title] for record in records] for title in titles}


def _guarded(column: Sequence[Any]) -> list[Any]:
    """Put an apostrophe before texts that a spreadsheet would take for a formula, and before those
    that begin with one, so that whoever reads takes one away from each text that has it.

    Source: OWASP, CSV Injection.
    """
    return [f"'{x}" if isinstance(x, str) and x.startswith(_FORMULA) else x for x in column]


def lines_of(columns: Columns) -> str:
    """Write columns as CSV."""
    text = io.StringIO()
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in ([*columns], *zip(*map(_guarded, columns.values()), strict=True)):
        # By itself the writer quotes a carriage return only where lines end with one.
        (quoted if any("\r" in str(cell) for cell in row) else plain).writerow(row)
    return text.getvalue()
