"""Reports on leaderboards: many classifiers for the same examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxmetrics import Leaderboard
from jaxmetrics._text.standings import ranking, standings
from jaxmetrics._text.wording import percent, title_of
from jaxmetrics.reports.contents import Outline, SampleSize, quantity
from jaxmetrics.reports.formats import TabularReport
from jaxmetrics.reports.values import ReportValue, value_of

__all__: list[str] = []


@dataclass(frozen=True, eq=False, repr=False)
class RankingReport(TabularReport):
    """A report on a leaderboard, whose page has a picture.

    Attributes:
        board: the leaderboard.
        names: the names of the classifiers, in the order of the leaderboard.
        metric: the name of the metric in words, or "" if it is unknown.
        title: the title of the page.
    """

    board: Any = None
    names: Sequence[str] | None = None
    metric: str = ""
    title: str = "Leaderboard"


def ranking_report(
    board: Leaderboard,
    names: Sequence[str] | None = None,
    metric: str = "",
    sample: SampleSize | None = None,
    *,
    title: str | None = None,
    columns: Mapping[str, Sequence[Any]] = {},
    remark: str = "",
) -> TabularReport:
    """Make the report on a leaderboard, with the best classifier first.

    Args:
        board: the leaderboard.
        names: the names of the classifiers.
        metric: the name of the metric, or "" if it is unknown.
        sample: the sample; the default is the number of examples of the leaderboard, if known.
        title: the name of the metric in words.
        columns: further columns, with a number or a reported value for each classifier.
        remark: a sentence about all values and ranks, or "".
    """
    written, content = ranking(board, names), board.to_dict(names)
    classifiers, winner = content["classifiers"], content["winner"]
    level = winner["level"]
    if sample is None and "num_examples" in winner:
        sample = SampleSize(winner["num_examples"])
    known = [str(sample)] if sample else []
    title = title or title_of(metric)
    by = f" by {title}" if title else ""
    rows = [[name, value_of(x), *cells] for name, x, *cells in written.table.rows]
    first, _, *others = written.table.titles
    titles = [first, f"{title or 'value'} [low, high]", *others]
    order = [int(x.name) for x in standings(board, [*map(str, range(len(rows)))])]
    for name, column in columns.items():
        titles.append(name)
        for row, record, i in zip(rows, classifiers, order, strict=True):
            x = column[i]
            row.append(x if isinstance(x, ReportValue) else str(x))
            record[name.replace(" ", "_")] = x.value if isinstance(x, ReportValue) else x
    return RankingReport(
        Outline(
            heading=", ".join([*known, quantity(len(classifiers), "classifiers") + by]),
            verdict=f"{written.sentences[0]} {remark}".rstrip(),
            tables={"": written.table._replace(titles=titles, rows=rows, drawn=1)},
            notes=[
                *written.sentences[1:],
                f"Intervals: {percent(level)}. All ranks and tiers hold simultaneously.",
            ],
            level=level,
        ),
        {
            **(sample.content() if sample else {}),
            "level": level,
            "metric": metric,
            **content,
        },
        classifiers,
        {x.pop("name"): x for x in map(dict, classifiers)},
        board=board,
        names=names,
        metric=title,
        title=f"Leaderboard{by}",
    )
