"""How numbers, names and tables are written for a terminal; pages share the numbers and names."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxmetrics.reports._figures import Figure

__all__: list[str] = []

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


def printable(name: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def fraction(x: float) -> str:
    """Three decimals, or up to six where fewer would show 0 or 1 for what is neither."""
    decimals = next((d for d in range(3, 7) if 0 < abs(round(x, d)) < 1), 3)
    return "-" if math.isnan(x) else f"{round(x, decimals) + 0.0:.{decimals}f}"  # never -0.000


def cell(figure: Figure, signed: bool = False) -> str:
    if figure.low is None or figure.high is None:
        return fraction(figure.value)
    low, high = (fraction(end).replace("0.", ".", 1) for end in (figure.low, figure.high))
    return f"{fraction(figure.value)} {low}{' to ' if signed or figure.low < 0 else '-'}{high}"


def table_of(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
