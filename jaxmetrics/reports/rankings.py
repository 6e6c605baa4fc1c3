"""Reports on leaderboards: many classifiers for the same examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxmetrics import Leaderboard
from jaxmetrics._text.standings import ranking
from jaxmetrics._text.wording import percent, title_of
from jaxmetrics.reports.contents import Outline, SampleSize, ValueTable
from jaxmetrics.reports.formats import TabularReport

__all__: list[str] = []


@dataclass(frozen=True, eq=False, repr=False)
class RankingReport(TabularReport):
    """A report on a leaderboard, whose page has a picture.

    Attributes:
        board: the leaderboard.
        names: the names of the classifiers, in the order of the leaderboard.
    """

    board: Any = None
    names: Sequence[str] | None = None


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
    content = board.to_dict(names)
    return RankingReport(
        Outline(
            heading=f"{sample}, {len(names)} classifiers by {title or title_of(metric)}",
            verdict=written.sentences[0],
            tables={"": ValueTable(*written.table)},
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
        board=board,
        names=names,
    )
