"""Time against size on logarithmic axes, a panel per sweep: a slope of one is a job that grows with
its data, a level line one that does not.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

OURS = ("#0b57d0", "#5b9bf0", "#00a3c4", "#7a5fd0")
PEERS = ("#d55e00", "#009e73", "#c2478f", "#b8860b", "#7a4a2b", "#6b7280", "#7aa800", "#e0508a")
WIDTH = 7.2  # inches: as wide as a column of text on a screen, so that letters keep their size


def draw(sweeps: Mapping[str, Mapping[int, Mapping[str, Mapping[str, float]]]]) -> Figure:
    """Of {what grows: {size: {contender: its figures}}}; a band lies between the quartiles, the
    limit is dashed.
    """
    found = dict.fromkeys(
        name for sweep in sweeps.values() for results in sweep.values() for name in results
    )
    names = sorted(found, key=lambda name: name == "limit")  # the limit comes last
    styles = _styles(names)
    rows = len(sweeps) // 2 + (len(sweeps) % 2)
    figure = Figure(figsize=(WIDTH, 3.1 * rows), layout="constrained", facecolor="white")
    cells = [figure.add_subplot(rows, 2, i + 1) for i in range(2 * rows)]
    for axes, (what, sweep) in zip(cells, sweeps.items(), strict=False):
        for name in names:
            sizes = [size for size in sweep if name in sweep[size]]
            _line(axes, sizes, [sweep[size][name] for size in sizes], styles[name])
        axes.set(xscale="log", yscale="log", xlabel=what, facecolor="white")
        axes.yaxis.set_major_locator(LogLocator(numticks=8))
        axes.yaxis.set_major_formatter(FuncFormatter(_time))
        axes.minorticks_off()
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    lines = {line.get_label(): line for axes in cells for line in axes.lines}
    keys: dict[str, Any] = {
        "handles": [lines[name] for name in names],
        "frameon": False,
        "fontsize": 9,
    }
    if len(sweeps) % 2:
        cells[-1].axis("off")
        cells[-1].legend(**keys, loc="center left")
    else:
        figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(names) // 3))
        figure.legend(**keys, loc="outside lower center", ncols=3)
    return figure


def save(figure: Figure, path: Path) -> None:
    """The same bytes from the same figures; letters as outlines, which need no font of the
    reader's.
    """
    with matplotlib.rc_context({"svg.hashsalt": path.name, "svg.fonttype": "path"}):
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """jaxmetrics in blue, heaviest and undermost, so that whoever is as fast is seen upon it; the
    limit black and dashed.
    """
    blues, colours, marks = iter(cycle(OURS)), iter(cycle(PEERS)), iter(cycle("sD^vPX<>"))
    styles = {}
    for name in names:
        if name == "limit":
            styles[name] = {"color": "black", "linestyle": "--", "linewidth": 1.2}
        elif "jaxmetrics" in name:
            heavy = not any("jaxmetrics" in other for other in styles)
            styles[name] = {
                "color": next(blues),
                "linewidth": 3 if heavy else 1.8,
                "marker": "o",
                "markersize": 5,
                "zorder": 1.9,
            }
        else:
            styles[name] = {
                "color": next(colours),
                "linewidth": 1.2,
                "marker": next(marks),
                "markersize": 4,
            }
        styles[name]["label"] = name
    return styles


def _line(
    axes: Any,
    sizes: Sequence[int],
    figures: Sequence[Mapping[str, float]],
    style: Mapping[str, Any],
) -> None:
    axes.plot(sizes, [x["median"] for x in figures], **style)
    if all("lower_quartile" in x for x in figures):
        quartiles = ([x[key] for x in figures] for key in ("lower_quartile", "upper_quartile"))
        axes.fill_between(sizes, *quartiles, color=style["color"], alpha=0.2, linewidth=0)


def _time(seconds: float, _: int) -> str:
    unit, factor = next(
        (u, f)
        for u, f in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
        if seconds > 0.99 * f or f < 1e-8
    )
    return f"{seconds / factor:,.6g} {unit}"
