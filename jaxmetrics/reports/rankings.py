"""The report of many classifiers on the same examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxmetrics.comparisons import Leaderboard
from jaxmetrics.estimates import Estimate
from jaxmetrics.reports._text import percent, title_of
from jaxmetrics.reports.tabular import Table, TabularReport, value_cell, value_record
from jaxmetrics.reports.values import as_json, value_of

__all__: list[str] = []

_METHOD = "likelihood"


def ranking_report(
    board: Leaderboard,
    names: Sequence[str],
    metric: str,
    *,
    num_examples: int,
    num_ignored: int = 0,
    num_clusters: int | None = None,
    level: float = 0.95,
) -> TabularReport:
    """Report on a leaderboard, the best classifier first."""
    order = np.argsort(-np.nan_to_num(board.estimates.value, nan=-np.inf), kind="stable")
    values = [value_of(Estimate(*x), _METHOD) for x in zip(*board.estimates, strict=True)]
    winner = value_of(board.winner_estimate, _METHOD)
    ranked = [
        {
            "name": names[i],
            "value": values[i],
            "rank_low": int(board.rank_low[i]),
            "rank_high": int(board.rank_high[i]),
            "tier": int(board.tiers[i]),
            "probability_best": float(board.probability_best[i]),
        }
        for i in order.tolist()
    ]
    best = names[int(board.winner)]
    rows = [
        [
            str(place),
            x["name"],
            value_cell(x["value"]),
            _ranks(x["rank_low"], x["rank_high"]),
            str(x["tier"]),
            f"{x['probability_best']:.3f}",
        ]
        for place, x in enumerate(ranked, 1)
    ]
    clusters = "" if num_clusters is None else f" in {num_clusters} clusters"
    ignored = f", {num_ignored} ignored" if num_ignored else ""
    title = title_of(metric)
    return TabularReport(
        heading=f"{num_examples} examples{clusters}{ignored}, {len(names)} classifiers by {title}",
        tables=[Table("", ["", "classifier", title, "ranks", "tier", "P(best)"], rows)],
        notes=[
            *_tier_notes(ranked),
            f"The winner, {best}, corrected for having been chosen on these examples:"
            f" {value_cell(winner)}.",
            f"Intervals: {percent(level)}; ranks and tiers hold all at once. P(best): how probably"
            " it comes first on all examples to come.",
        ],
        content={
            "num_examples": num_examples,
            "num_ignored": num_ignored,
            **({} if num_clusters is None else {"num_clusters": num_clusters}),
            "level": level,
            "metric": metric,
            "classifiers": [{**x, "value": as_json(x["value"])} for x in ranked],
            "winner": {"name": best, **as_json(winner)},
        },
        records=[
            *(
                {
                    "name": x["name"],
                    **value_record(x["value"], level),
                    **{key: x[key] for key in ("rank_low", "rank_high", "tier")},
                    "probability_best": x["probability_best"],
                }
                for x in ranked
            )
        ],
    )


def _ranks(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _tier_notes(ranked: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say in words which classifiers are tied."""
    notes = []
    for tier in sorted({x["tier"] for x in ranked}):
        names = [x["name"] for x in ranked if x["tier"] == tier]
        if len(names) > 1:
            listed = f"{', '.join(names[:-1])} and {names[-1]}"
            notes.append(f"Tier {tier}: {listed} cannot be told apart.")
    return notes
