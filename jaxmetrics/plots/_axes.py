"""Helpers for axes, names and colours of all plots."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from jaxmetrics._text.wording import labels_of, shown

_LONGEST_NAME, _LONGEST_LINE = 40, 52
_HEIGHT_OF_TICKS, _HEIGHT_OF_LABEL = 0.22, 0.2  # inches from the axes to the legend
# Style of reference lines.
REFERENCE: dict[str, Any] = {"color": "0.5", "linewidth": 1, "linestyle": ":"}
_REFERENCES = ("% band", "chance", "calibrated", "share of examples")


def axes_or_new(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """Return `ax`, or the axes of a new pyplot figure of this size in inches."""
    if ax is not None:
        if not hasattr(ax, "add_artist"):
            raise TypeError(
                "ax must be an Axes object of matplotlib, such as plt.subplots()[1], got"
                f" {shown(ax)}."
            )
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "jaxmetrics.plots needs the package matplotlib. Install it with: pip install"
            " 'jaxmetrics[plot]'."
        ) from None
    return pyplot.subplots(figsize=size, layout="compressed")[1]


def ink() -> Any:
    """Return the text colour, which is visible on any background."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def name_ticks(set_ticks: Any, places: Any, names: Sequence[str], **style: Any) -> None:
    """Write names at an axis; dollar signs are escaped, because matplotlib would read formulas."""
    set_ticks(places, labels_of(names, _LONGEST_NAME), parse_math=False, **style)


def legend_label(name: str, *parts: str) -> str:
    """Join the parts of a legend entry. An underscore at the beginning is hidden from matplotlib,
    which would omit the entry.
    """
    label = ", ".join(filter(None, [*labels_of([name], _LONGEST_NAME), *parts]))
    return f" {label}" if label.startswith("_") else label


def add_legend(axes: Any) -> None:
    """Add a legend below the axes, where it covers no data; reference lines are last.

    A figure without a layout gets the layout "tight", which makes room for the legend.
    """
    from matplotlib.transforms import offset_copy

    entries = list(zip(*axes.get_legend_handles_labels(), strict=True))
    entries.sort(key=lambda entry: entry[1].endswith(_REFERENCES))
    handles, labels = zip(*entries, strict=True)
    figure = axes.figure.canvas.figure
    if figure.get_layout_engine() is None and axes.get_subplotspec() is not None:
        figure.set_layout_engine("tight")
    height = _HEIGHT_OF_TICKS + (_HEIGHT_OF_LABEL if axes.get_xlabel() else 0)
    below = offset_copy(axes.transAxes, axes.figure, y=-height)
    place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "bbox_transform": below}
    lines = [textwrap.fill(label, _LONGEST_LINE) for label in labels]
    legend = axes.legend(handles, lines, frameon=False, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)


def set_unit_square(axes: Any, x: str, y: str, title: str) -> Any:
    """Set the limits of both axes to [0, 1], and add a legend."""
    limits = -0.01, 1.01
    axes.set(xlabel=x, ylabel=y, title=title, xlim=limits, ylim=limits, aspect="equal")
    add_legend(axes)
    return axes
