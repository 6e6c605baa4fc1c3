"""Helpers for axes, names and colours of all plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmetrics._text.wording import labels_of, shown

_LONGEST_NAME = 40
# Style of reference lines.
REFERENCE: dict[str, Any] = {"color": "0.5", "linewidth": 1, "linestyle": ":"}
_REFERENCES = ("chance", "calibrated", "share of examples")


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
    return pyplot.subplots(figsize=size, layout="constrained")[1]


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
    """Add a legend, in which reference lines are last."""
    entries = list(zip(*axes.get_legend_handles_labels(), strict=True))
    entries.sort(key=lambda entry: entry[1] in _REFERENCES)
    handles, labels = zip(*entries, strict=True)
    for text in axes.legend(handles, labels, frameon=False, fontsize="small").get_texts():
        text.set_parse_math(False)


def set_unit_square(axes: Any, x: str, y: str, title: str) -> Any:
    """Set the limits of both axes to [0, 1], and add a legend."""
    axes.set(
        xlabel=x, ylabel=y, title=title, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal"
    )
    add_legend(axes)
    return axes
