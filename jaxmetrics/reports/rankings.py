"""Reports on leaderboards: many classifiers for the same examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmetrics import Leaderboard
from jaxmetrics._text.standings import ranking, standings
from jaxmetrics._text.wording import percent, title_of
from jaxmetrics.reports.contents import Outline, SampleSize, ValueTable
from jaxmetrics.reports.formats import TabularReport
from jaxmetrics.reports.values import value_of

__all__: list[str] = []


def ranking_report(
    board: Leaderboard,
    names: Sequence[str],
    metric: str,
    sample: SampleSize,
    *,
    level: float,
    title: str | None = None,
) -> TabularReport:
    """Make the report on a leaderboard, with the best classifier first."""
    written = ranking(board, names)
    rows: list[list[Any]] = [[*row] for row in written.table.rows]
    for row, x in zip(rows, standings(board, names), strict=True):
        row[1] = value_of(x.estimate)
    content = board.to_dict(names)
    return TabularReport(
        Outline(
            heading=f"{sample}, {len(names)} classifiers by {title or title_of(metric)}",
            verdict=written.sentences[0],
            tables={"": ValueTable(written.table.titles, rows, drawn=1)},
            notes=[
                *written.sentences[1:],
                f"Intervals: {percent(level)}. All ranks and tiers hold simultaneously.",
            ],
            level=level,
        ),
        {
            **sample.content(),
            "level": level,
            "metric": metric,
            **content,
        },
        content["classifiers"],
        {x.pop("name"): x for x in map(dict, content["classifiers"])},
    )
