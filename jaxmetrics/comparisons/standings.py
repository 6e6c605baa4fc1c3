"""A leaderboard as a ranking: a row for each classifier, and the tiers in words."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._printing import members_of
from jaxmetrics._wording import Table, enumeration, fraction, labels_of
from jaxmetrics.estimates import Estimate

__all__: list[str] = []

MOST_ROWS = 20  # where a leaderboard is shown that was not asked to be written
_MOST_NAMES = 5  # in a sentence
LONGEST_NAME = 40


class Standing(NamedTuple):
    """What a leaderboard says of one classifier."""

    name: str
    estimate: Estimate
    probability_best: float
    rank_low: int
    rank_high: int
    tier: int


def estimates_of(board: Any) -> list[Estimate] | None:
    """List the estimates of a single leaderboard; None where they cannot be looked at."""
    members = members_of(board.estimates)
    if members is None or len(members.shape) != 1:
        return None
    return [members[i] for i in range(len(members))]


def standings(board: Any, names: Sequence[str] | None = None) -> list[Standing]:
    """List the classifiers by tier, the best first of each; the winner comes first of all."""
    estimates = estimates_of(board)
    if estimates is None:
        raise ValueError("a ranking needs one leaderboard, whose numbers are known: not under jit.")
    size = len(estimates)
    labels = list(map(str, range(size) if names is None else names))
    if len(labels) != size:
        raise ValueError(f"names must be one for each classifier: {size}, got {len(labels)}.")
    columns = board.probability_best, board.rank_low, board.rank_high, board.tiers
    numbers = (np.asarray(x).tolist() for x in columns)
    rows = [Standing(*x) for x in zip(labels, estimates, *numbers, strict=True)]
    return sorted(rows, key=lambda x: (x.tier, -np.nan_to_num(x.estimate.value, nan=-np.inf)))


def tiers_in_words(rows: Sequence[Standing]) -> list[str]:
    """Write a sentence for each tier of sorted standings; a single classifier has no equals."""
    if len(rows) == 1:
        return []
    tiers = [[x.name for x in tier] for _, tier in groupby(rows, key=lambda x: x.tier)]
    return [_sentence(names, is_first=i == 0) for i, names in enumerate(tiers)]


def _sentence(names: Sequence[str], is_first: bool) -> str:
    if len(names) > _MOST_NAMES:
        more = f"{len(names) - _MOST_NAMES + 1} more"
        subject = enumeration([*names[: _MOST_NAMES - 1], more])
    else:
        subject = enumeration(names)
    if len(names) == 1:
        return f"{subject} is shown to be {'the best' if is_first else 'worse than one above'}."
    tied = f"{subject} cannot be told apart"
    return f"{tied}." if is_first else f"{tied}; each is shown to be worse than one above."


class Ranking(NamedTuple):
    """Holds what is written of a leaderboard."""

    table: Table
    sentences: list[str]

    def text(self) -> str:
        """Write the table and the sentences for a terminal."""
        return "\n\n".join([self.table.text(), "\n".join(self.sentences)])

    def html(self) -> str:
        """Write the table and the sentences for the page of a notebook."""
        lines = "<br>".join(map(html.escape, self.sentences))
        return f"{self.table.html()}<p>{lines}</p>"


def ranking(
    board: Any, names: Sequence[str] | None = None, most_rows: int | None = None
) -> Ranking:
    """Write all classifiers, or the first of them, and what to expect of the winner."""
    found = standings(board, names)
    labels = labels_of([x.name for x in found], LONGEST_NAME)
    rows = [x._replace(name=label) for x, label in zip(found, labels, strict=True)]
    titles = ["classifier", "value [low, high]", "ranks", "tier", "P(best)"]
    cells = []
    for x in rows[:most_rows]:
        ranks = " to ".join(map(str, dict.fromkeys([x.rank_low, x.rank_high])))
        cells.append([x.name, f"{x.estimate}", ranks, str(x.tier), fraction(x.probability_best)])
    last_tier = rows[len(cells) - 1].tier
    sentences = tiers_in_words([x for x in rows if x.tier <= last_tier])
    if len(cells) < len(rows):
        cells.append([f"... {len(rows) - len(cells)} more", *[""] * (len(titles) - 1)])
    expected = f"On new examples expect of the winner, {rows[0].name}: {board.winner_estimate}."
    return Ranking(Table(titles, cells), [*sentences, expected])


def as_dict(board: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the standings as lists, dicts and numbers."""
    flat = []
    for x in standings(board, names):
        parts = x._asdict()
        flat.append({"name": parts.pop("name"), **parts.pop("estimate").to_dict(), **parts})
    winner = {"name": flat[0]["name"], **board.winner_estimate.to_dict()}
    return {"winner": winner, "classifiers": flat}
