"""Write numbers, names and tables as text, Markdown and HTML."""

from __future__ import annotations

import html
import math
import re
import textwrap
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice
from statistics import median_high
from typing import Any, NamedTuple

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
_NARROWEST = 40  # columns of a terminal; in fewer, a name and an interval do not fit side by side
_MOST_READ = 500  # characters of a name from either end
_LEAST_NAME, _ENOUGH_OF_NAME = 12, 18  # columns to which names in wide tables are shortened
_LONGEST_BAR = 48  # columns of an interval that is drawn
_LONGEST_LINE, _MOST_LINES = 80, 40  # of a LaTeX table that is readable on one page
_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~#&$@!]|:(?=\S))")
_MINUS = re.compile(r"(?<![^\s\[])-(?=[\d\s\]]|$)")
_LATEX = {ord(c): f"\\{c}" for c in "#$%&_{}"} | {
    ord("\\"): r"\textbackslash{}",
    ord("^"): r"\textasciicircum{}",
    ord("~"): r"\textasciitilde{}",
    ord("<"): r"\textless{}",
    ord(">"): r"\textgreater{}",
    ord("|"): r"\textbar{}",
}
_SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%" + "\n"
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


def probability(x: float) -> str:
    """Write a probability, such as a p-value, with three decimals.

    >>> probability(0.0000012), probability(0.25), probability(0.9996)
    ('< 0.001', '0.250', '> 0.999')
    """
    if not 0.001 <= x <= 0.999:
        return "-" if math.isnan(x) else "< 0.001" if x < 0.5 else "> 0.999"
    return f"{x:.3f}"


def written(*numbers: float) -> list[str]:
    """Write a value and the ends of its interval, with enough decimals to distinguish the ends.

    >>> written(0.84123, 0.8, 0.892), written(0.84123, 0.84105, 0.84141)
    (['0.841', '0.800', '0.892'], ['0.84123', '0.84105', '0.84141'])
    """
    spec = spec_of(numbers)
    return ["-" if math.isnan(x) else format(x, spec) for x in numbers]


def interval(value: float, low: float, high: float, spec: str = "") -> str:
    """Write `value [low, high]`, with enough decimals to distinguish the ends low and high; only
    the value if the ends are NaN.

    >>> interval(0.85123, 0.8, 0.892), interval(0.85123, 0.8511, 0.8514), interval(1, 0.5, 1, ".1%")
    ('0.851 [0.800, 0.892]', '0.85123 [0.85110, 0.85140]', '100.0% [50.0%, 100.0%]')
    """
    spec = spec or spec_of((value, low, high))
    has_interval = not (math.isnan(low) and math.isnan(high))
    return f"{value:{spec}}" + f" [{low:{spec}}, {high:{spec}}]" * has_interval


def spec_of(*values: Sequence[float]) -> str:
    """Return the format of the values in a column, each with the ends of its interval.

    There are at least three decimals, but fewer for numbers from 100 on. More decimals are used to
    write two significant digits of half the distance of the ends, for at least half of the values;
    and up to six decimals if a value, the first number, would be rounded to 0 or 1.

    >>> spec_of((0.9, 0.85, 0.93), (0.9975, 0.9971, 0.9978), (0.8, 0.7, 0.85))
    'z.3f'
    """
    if not values:
        return ""
    finite = [[x for x in numbers if math.isfinite(x)] or [0.0] for numbers in values]
    largest = [max(map(abs, numbers)) for numbers in finite]
    if max(largest) >= 1e15:
        return ".6g"
    needed = (next((d for d in range(3, 7) if 0 < abs(round(x[0], d)) < 1), 3) for x in values)
    places = max(
        d if x < 100 else 5 - len(str(int(x))) for d, x in zip(needed, largest, strict=True)
    )
    distances = (max(numbers) - min(numbers) for numbers in finite)
    widths = (1 - math.floor(math.log10(x / 2)) if x > 1e-10 else 0 for x in distances)
    return f"z.{max(0, places, median_high(widths))}f"  # z replaces -0.000 by 0.000


def bars_of(values: Sequence[Sequence[float]], size: int, title: str) -> list[str]:
    """Draw intervals as bars of at most `size` characters below a title with the ends of the axis;
    below the ends only if the title is too long.

    >>> print("\\n".join(bars_of([(0.5, 0, 1), (0.25, 0, 0.75)], 17, "F1")))
    F1: 0.000   1.000
    ────────●────────
    ────●────────
    """
    ends = [x for numbers in values for x in numbers if math.isfinite(x)] or [0.0]
    least, most = min(ends), max(ends)
    scale, bars = (size - 1) / ((most - least) or 1), []
    for numbers in values:
        known = all(map(math.isfinite, numbers))
        value, low, high = (round((x - least) * scale) * known if known else 0 for x in numbers)
        bars.append((" " * low + "─" * (value - low) + "●" + "─" * (high - value)) * known)
    first, last = written(least, most)
    start = f"{title}: {first} "
    if len(start + last) > size:
        start = f"{first} "
    return [f"{start}{last:>{size - len(start)}}", *bars]


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


def as_latex(text: str) -> str:
    """Escape LaTeX markup, and write minus signs.

    >>> print(as_latex("A - B: -5 % [-0.1, 0.2] of t-shirts"))
    A $-$ B: $-$5 \\% [$-$0.1, 0.2] of t-shirts
    """
    return _MINUS.sub("$-$", text.translate(_LATEX))


def labels_of(names: Sequence[str], most: int) -> list[str]:
    """Shorten names to `most` columns; names that would be equal end with their number.

    >>> labels_of(["ant", "a long name, part 1", "c" * 99, "c" * 98], most=12)
    ['ant', 'a long n…t 1', 'cccccc…cc #3', 'cccccc…cc #4']
    """
    texts = [printable(x[:_MOST_READ] + x[_MOST_READ:][-_MOST_READ:]) for x in names]
    short = [shortened(x, most) for x in texts]
    times = Counter(short)
    return [
        shortened(x, most, f" #{i}") if times[y] > 1 else y
        for i, (x, y) in enumerate(zip(texts, short, strict=True), 1)
    ]


def shortened(text: str, most: int, end: str = "") -> str:
    """Write "…" for the middle of a text that is longer than `most` columns, and `end` after it."""
    if width_of(text) <= most:
        return text
    room = most - 1 - len(end)
    last = [*accumulate(map(width_of, text))]  # the last column of each character
    rest = bisect_left(last, last[-1] - room // 3)
    start = text[: bisect_right(last, room - room // 3)].rstrip("…")
    # A mark without width belongs to the character before it.
    return f"{start}…{text[bisect_right(last, last[rest]) :].lstrip('…')}{end}"


def filled(text: str) -> str:
    """Break a text into lines that fit the terminal, but not inside `value [low, high]`."""
    kept = re.sub(r" (?=\[[-\d]|[^\[]*\])", "\xa0", text)
    wide = "".join(c + "\0" * (width_of(c) - 1) for c in kept)  # as many characters as columns
    lines = textwrap.fill(wide, terminal_width() - 1, break_on_hyphens=False)
    return lines.replace("\0", "").replace("\xa0", " ")


def terminal_width() -> int:
    """Return the number of columns of the terminal; 80 if there is none."""
    import shutil  # not needed to compute

    return max(shutil.get_terminal_size().columns, _NARROWEST)


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
    """A table that is written as text, Markdown, LaTeX or HTML.

    Attributes:
        titles: the titles of the columns.
        rows: the cells: texts, or values with the attributes `value`, `low` and `high`; values in
            a column have the same number of decimals. The first cell of a row is its name. Names
            that users gave are already printable.
        details: the indices of columns, of which text and LaTeX omit the last ones where the table
            would be too wide.
        drawn: the index of the column whose intervals text draws where there is room.
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[Any]]
    details: Sequence[int] = ()
    drawn: int | None = None

    def first(self, most: int | None) -> Table:
        """Return the first rows; if rows are omitted, the last row contains their number."""
        rows = [*self.rows[:most]]
        if omitted := len(self.rows) - len(rows):
            rows.append([f"... {omitted} more", *[""] * (len(self.titles) - 1)])
        return self._replace(rows=rows)

    def _columns(self) -> list[list[str]]:
        """Write the cells; each column begins with its title."""
        columns = []
        for title, *cells in zip(self.titles, *self.rows, strict=True):
            spec = spec_of(*(_numbers(x) for x in cells if not isinstance(x, str)))
            columns.append([title, *(x if isinstance(x, str) else f"{x:{spec}}" for x in cells)])
        return columns

    def _fitting(self, most: int) -> list[list[str]]:
        columns = self._columns()
        for i in sorted(self.details, reverse=True):
            if _span(columns) > most:
                del columns[i]
        return columns

    def text(self) -> str:
        """Write the table with columns padded by spaces; omit the title line if all are "".

        If the table is wider than the terminal, its last columns follow in further tables with the
        same names, and what is still too long is shortened.
        """
        most = terminal_width()
        columns = self._fitting(most)
        room = most - _span(columns)
        if room < 0:
            names, *others = columns
            longest = most - 2 - min(_widest(names), _LEAST_NAME)
            others = [[shortened(cell, longest) for cell in column] for column in others]
            room = min(most - 2 - max(map(_widest, others)), max(most // 3, _ENOUGH_OF_NAME))
            columns = [[names[0], *labels_of(names[1:], room)], *others]
        elif self.drawn is not None and room >= 2 + _LONGEST_BAR // 2:
            values = [_numbers(row[self.drawn]) for row in self.rows]
            title = self.titles[self.drawn].partition(" [")[0]
            columns.append(bars_of(values, min(room - 2, _LONGEST_BAR), title))
        names, *others = map(_padded, columns)
        parts = [[names]]
        for column in others:
            if _span([*parts[-1], column]) > most:
                parts.append([names])
            parts[-1].append(column)
        lines = (["  ".join(line).rstrip() for line in zip(*x, strict=True)] for x in parts)
        return "\n\n".join("\n".join(x[not any(self.titles) :]) for x in lines)

    def markdown(self) -> str:
        """Write a Markdown table with right-aligned numbers; cells are escaped."""
        lines = zip(*self._columns(), strict=True)
        head, *rows = (f"| {' | '.join(map(escaped, line))} |" for line in lines)
        rule = f"| ---{' | ---:' * (len(self.titles) - 1)} |"
        return "\n".join([head, rule, *rows])

    def latex(self) -> str:
        """Write a centred LaTeX table with the rules of the package booktabs; the package graphicx
        shrinks a table that is wider than the line. Many rows are written as several tables. Cells
        are escaped.
        """
        columns = [[*map(as_latex, column)] for column in self._fitting(_LONGEST_LINE)]
        lines = (" & ".join(line) + r" \\" for line in zip(*columns, strict=True))
        # After {}, LaTeX does not read a name such as [invalid] as an option of the line above.
        head, *rows = (f"{{}}{line}" if line[0] in "[*" else line for line in lines)
        begin = rf"{_SHRUNK}\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}"
        above = [r"\begin{center}", begin, r"\toprule", head, r"\midrule"]
        below = [r"\bottomrule", r"\end{tabular}}", r"\end{center}"]
        pages = (rows[i : i + _MOST_LINES] for i in range(0, len(rows) or 1, _MOST_LINES))
        return "\n\n".join("\n".join([*above, *page, *below]) for page in pages)

    def html(self) -> str:
        """Write an HTML table; cells are escaped, and each name has its own text direction."""
        columns = (map(html.escape, column) for column in self._columns())
        titles, *rows = zip(*columns, strict=True)
        head = "".join(f"<th>{title}</th>" for title in titles)
        body = "".join(
            f"<tr><th><bdi>{name}</bdi></th>{''.join(f'<td>{x}</td>' for x in cells)}</tr>"
            for name, *cells in rows
        )
        header = f"<thead><tr>{head}</tr></thead>" if any(self.titles) else ""
        return f"<table>{header}<tbody>{body}</tbody></table>"


def _numbers(x: Any) -> tuple[float, ...]:
    return (math.nan,) * 3 if isinstance(x, str) else (x.value, x.low, x.high)


def _span(columns: Iterable[Sequence[str]]) -> int:
    """Return the number of columns of a terminal that the columns of a table take."""
    return sum(_widest(column) + 2 for column in columns) - 2


def _widest(column: Iterable[str]) -> int:
    return max(map(width_of, column))


def _padded(column: Sequence[str]) -> list[str]:
    width = _widest(column)
    return [cell + " " * (width - width_of(cell)) for cell in column]


def width_of(text: str) -> int:
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
