"""Write numbers, names and tables as text, Markdown and HTML."""

from __future__ import annotations

import html
import math
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

__all__: list[str] = []

CONFIDENCE = "confidence A > B"  # the title of `probability_better` in tables
_WRITTEN = {
    "f1": "F1",
    "matthews corrcoef": "MCC (Matthews)",
    "cohen": "Cohen",
    "roc auc": "ROC AUC",
    "brier": "Brier",
}
_LONGEST_TITLE, _MOST_LISTED = 60, 20
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~#&$@!]|:(?=\S))")
_LATEX = {ord(c): f"\\{c}" for c in "#$%&_{}"} | {
    ord("\\"): r"\textbackslash{}",
    ord("^"): r"\textasciicircum{}",
    ord("~"): r"\textasciitilde{}",
    ord("<"): r"\textless{}",
    ord(">"): r"\textgreater{}",
    ord("|"): r"\textbar{}",
}
_JOINERS = "\u200c\u200d"  # invisible, but needed in Persian words and composed emoji


def title_of(name: str) -> str:
    """Write the name of a metric as a title: "macro_f1" becomes "macro F1"."""
    (title,) = labels_of([name.replace("_", " ")], _LONGEST_TITLE)
    for plain, written in _WRITTEN.items():
        title = title.replace(plain, written)
    return title


def capital(text: str) -> str:
    """Capitalize the first letter, and leave all other letters unchanged."""
    return text[:1].upper() + text[1:]


def percent(level: float) -> str:
    """Write a confidence level in percent: 0.95 becomes "95 %"."""
    return f"{100 * level:.10g} %"


def fraction(x: float) -> str:
    """Write a number with three decimals, or with up to six if fewer would round to 0 or 1."""
    return written(x)[0]


def written(*numbers: float) -> list[str]:
    """Write a value and the ends of its interval, with enough decimals to distinguish the ends.

    >>> written(0.84123, 0.8, 0.892), written(0.84123, 0.84105, 0.84141)
    (['0.841', '0.800', '0.892'], ['0.84123', '0.84105', '0.84141'])
    """
    spec = _spec(*numbers)
    return ["-" if math.isnan(x) else format(x, spec) for x in numbers]


def interval(value: float, low: float, high: float, spec: str = "") -> str:
    """Write `value [low, high]`, with enough decimals to distinguish the ends low and high.

    >>> interval(0.85123, 0.8, 0.892), interval(0.85123, 0.8511, 0.8514), interval(1, 0.5, 1, ".1%")
    ('0.851 [0.800, 0.892]', '0.85123 [0.85110, 0.85140]', '100.0% [50.0%, 100.0%]')
    """
    spec = spec or _spec(value, low, high)
    if math.isnan(low) and math.isnan(high):
        return f"{value:{spec}} (no interval)"
    return f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def _spec(*numbers: float) -> str:
    """Return the format of a value and the ends of its interval.

    There are at least three decimals, but fewer for numbers from 100 on. More decimals are used to
    write two significant digits of half the distance of the ends; and up to six decimals if fewer
    would round to 0 or 1.
    """
    finite = [x for x in numbers if math.isfinite(x)] or [0.0]
    largest = max(map(abs, finite))
    if largest >= 1e15:
        return ".6g"
    places = max(next((d for d in range(3, 7) if 0 < abs(round(x, d)) < 1), 3) for x in finite)
    if largest >= 100:
        places = max(0, 5 - len(str(int(largest))))
    distance = max(finite) - min(finite)
    if distance > 0:
        places = max(places, min(1 - math.floor(math.log10(distance / 2)), 12))
    return f"z.{places}f"  # z replaces -0.000 by 0.000


def printable(name: str) -> str:
    """Escape control characters, and other invisible characters that affect the surrounding text,
    such as direction marks.

    >>> print(printable("a\\tb\\x1b[31m"), printable("a\\u202eb"))
    a\\tb\\x1b[31m a\\u202eb
    """
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() or c in _JOINERS else repr(c)[1:-1] for c in name)


def escaped(text: str) -> str:
    """Escape Markdown markup."""
    return _MARKDOWN.sub(r"\\\1", text)


def labels_of(names: Sequence[str], most: int) -> list[str]:
    """Shorten names to `most` characters; shortened names end with a number, to stay distinct.

    >>> labels_of(["ant", "b" * 1000], most=16)
    ['ant', 'bbbbbbbbbbbb… 2']
    """
    texts = [printable(name[: most + 1]) for name in names]
    return [
        text if len(text) <= most else f"{text[: most - 4]}… {i}" for i, text in enumerate(texts, 1)
    ]


def listed(names: Iterable[object]) -> str:
    """List names for a message; if there are many, list the first names.

    >>> listed(range(30))[-19:]
    '16, 17, 18, 19, ...'
    """
    first = list(map(str, islice(names, _MOST_LISTED + 1)))
    rest = ["..."] * (len(first) > _MOST_LISTED)
    return ", ".join(labels_of(first[:_MOST_LISTED], 40) + rest)


def enumeration(names: Sequence[str]) -> str:
    """Join names as in "A, B and C"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


class Table(NamedTuple):
    """The cells of a table, which is written as text, Markdown, LaTeX or HTML.

    Names that users gave are in the first column, and are already printable.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Write the table with columns padded by spaces; omit the title line if all are ""."""
        lines = [self.titles, *self.rows] if any(self.titles) else self.rows
        widths = [max(map(_width, column)) for column in zip(*lines, strict=True)]
        padded = (
            [cell + " " * (width - _width(cell)) for cell, width in zip(line, widths, strict=True)]
            for line in lines
        )
        return "\n".join("  ".join(cells).rstrip() for cells in padded)

    def markdown(self) -> str:
        """Write a Markdown table with right-aligned numbers; cells are escaped."""
        head, *rows = (f"| {' | '.join(map(escaped, x))} |" for x in [self.titles, *self.rows])
        rule = f"| ---{' | ---:' * (len(self.titles) - 1)} |"
        return "\n".join([head, rule, *rows])

    def latex(self) -> str:
        """Write a LaTeX table with the rules of the package booktabs; cells are escaped."""
        lines = [
            " & ".join(cell.translate(_LATEX) for cell in line)
            for line in [self.titles, *self.rows]
        ]
        # After {}, LaTeX does not read a name such as [invalid] as an option of the line above.
        head, *rows = (rf"{{}}{line} \\" for line in lines)
        begin = rf"\begin{{tabular}}{{l{'r' * (len(self.titles) - 1)}}}"
        end = r"\bottomrule", r"\end{tabular}"
        return "\n".join([begin, r"\toprule", head, r"\midrule", *rows, *end])

    def html(self) -> str:
        """Write an HTML table; cells are escaped, and each name has its own text direction."""
        head = "".join(f"<th>{html.escape(title)}</th>" for title in self.titles)
        body = "".join(
            f"<tr><th><bdi>{html.escape(name)}</bdi></th>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in self.rows
        )
        header = f"<thead><tr>{head}</tr></thead>" if any(self.titles) else ""
        return f"<table>{header}<tbody>{body}</tbody></table>"


def _width(text: str) -> int:
    """Return the number of columns of a text in a terminal; a wide character has two columns."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in ("Mn", "Me", "Cf") for c in text)


def element(name: str, index: Sequence[object]) -> str:
    """Write the name of an element of an array, such as `y_true[1, 0]`."""
    return f"{name}[{', '.join(map(str, index))}]" if len(index) else name


def shown(x: object) -> str:
    """Write a value for an error message; of a long value, write only the type."""
    is_plain = isinstance(x, str | bytes | bool | float | type(None))
    is_shape = isinstance(x, tuple) and all(type(size) is int for size in x)
    is_short = isinstance(x, int) and abs(x) < 10**60  # Python refuses to write 5000 digits
    if is_plain or is_shape or is_short:
        text = repr(x)
        if len(text) <= 60:
            return text
    return f"{'an' if type(x).__name__[0] in 'aeiou' else 'a'} {type(x).__name__}"


def warn(message: str) -> None:
    """Issue a warning that points to the line of the user's code that called this package."""
    frame, level = sys._getframe(1), 2
    own = "jaxmetrics", "jax"
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in own:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
