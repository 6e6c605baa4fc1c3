"""Write rankings of classifiers as tables and sentences."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics._text.printing import members_of
from jaxmetrics._text.wording import Table, as_latex, enumeration, escaped, filled, labels_of

__all__: list[str] = []

_MOST_ROWS = 20  # classifiers that are printed
_MOST_NAMES = 5  # names in a sentence
_LONGEST_NAME = 40


class Standing(NamedTuple):
    """The entry of one classifier in a leaderboard."""

    name: str
    estimate: Any
    probability_best: float
    rank_low: int
    rank_high: int
    tier: int


def standings(board: Any, names: Sequence[str] | None) -> list[Standing]:
    """Return the classifiers, sorted by tier and by value within each tier; the winner is first."""
    members = members_of(board.estimates)
    if members is None or len(members.shape) != 1:
        raise ValueError(
            "This method needs the values of a single leaderboard. Call the method outside of"
            " jax.jit, because the values do not exist while jax.jit compiles a function. If the"
            " ranking has batch axes, call the method for one leaderboard at a time."
        )
    size = len(members)
    names = board.names if names is None else names
    labels = list(map(str, range(size) if names is None else names))
    if len(labels) != size:
        raise ValueError(
            f"names must contain one name for each classifier: {size} names were expected, got"
            f" {len(labels)}."
        )
    columns = board.probability_best, board.rank_low, board.rank_high, board.tiers
    numbers = (np.asarray(x).tolist() for x in columns)
    estimates = [members[i] for i in range(size)]
    rows = [Standing(*x) for x in zip(labels, estimates, *numbers, strict=True)]
    return sorted(rows, key=lambda x: (x.tier, -np.nan_to_num(x.estimate.value, nan=-np.inf)))


def labelled_standings(board: Any, names: Sequence[str] | None) -> list[Standing]:
    """Return the `standings` with names that are short and printable."""
    rows = standings(board, names)
    labels = labels_of([x.name for x in rows], _LONGEST_NAME)
    return [x._replace(name=label) for x, label in zip(rows, labels, strict=True)]


def tiers_in_words(rows: Sequence[Standing]) -> list[str]:
    """Return a sentence for each tier of sorted standings; none for a single classifier."""
    if len(rows) == 1:
        return []
    tiers = [[x.name for x in tier] for _, tier in groupby(rows, key=lambda x: x.tier)]
    return [_sentence(names, is_first=i == 0) for i, names in enumerate(tiers)]


def _sentence(names: Sequence[str], is_first: bool) -> str:
    shown = names
    if len(names) > _MOST_NAMES:
        shown = [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} more"]
    subject = enumeration(shown)
    if len(names) == 1:
        return f"{subject} is shown to be {'the best' if is_first else 'worse than one above'}."
    tied = f"{subject} cannot be told apart"
    return f"{tied}." if is_first else f"{tied}; each is shown to be worse than one above."


class Ranking(NamedTuple):
    """The text of a leaderboard: a table and sentences."""

    table: Table
    sentences: list[str]

    def text(self) -> str:
        """Return the table and the sentences as text."""
        return "\n\n".join([self.table.text(), "\n".join(map(filled, self.sentences))])

    def markdown(self) -> str:
        """Return the table and the sentences, a paragraph each, as Markdown."""
        return "\n\n".join([self.table.markdown(), *map(escaped, self.sentences)]) + "\n"

    def latex(self) -> str:
        """Return the table and the sentences, a paragraph each, for LaTeX."""
        return "\n\n".join([self.table.latex(), *map(as_latex, self.sentences)]) + "\n"

    def html(self) -> str:
        """Return the table and the sentences as HTML, for notebooks."""
        lines = "<br>".join(map(html.escape, self.sentences))
        return f"{self.table.html()}<p>{lines}</p>"


def ranking(
    board: Any, names: Sequence[str] | None = None, most_rows: int | None = None
) -> Ranking:
    """Return the text of a ranking of all classifiers, or of the first `most_rows` classifiers."""
    rows = labelled_standings(board, names)
    titles = ["classifier", "value [low, high]", "ranks", "tier"]
    cells = []
    for x in rows:
        ranks = " to ".join(map(str, dict.fromkeys([x.rank_low, x.rank_high])))
        cells.append([x.name, x.estimate, ranks, str(x.tier)])
    last_tier = rows[:most_rows][-1].tier
    sentences = tiers_in_words([x for x in rows if x.tier <= last_tier])
    expected = f"Expected for the winner, {rows[0].name}, on new examples: {board.winner_estimate}."
    return Ranking(Table(titles, cells).first(most_rows), [*sentences, expected])


def shown_ranking(board: Any) -> Ranking | None:
    """Return the text for the first classifiers of a leaderboard; None if values are unknown."""
    members = members_of(board.estimates)
    is_single = members is not None and len(members.shape) == 1
    return ranking(board, most_rows=_MOST_ROWS) if is_single else None


def as_dict(board: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Return the winner and the sorted classifiers as lists, dicts and numbers."""
    classifiers = []
    for x in standings(board, names):
        numbers = {name: part for name, part in x._asdict().items() if name != "estimate"}
        classifiers.append({"name": x.name, **x.estimate.to_dict(), **numbers})
    winner = {"name": classifiers[0]["name"], **board.winner_estimate.to_dict()}
    return {"winner": winner, "classifiers": classifiers}
