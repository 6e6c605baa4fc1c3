"""Axes, names and colours, as all pictures have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxmetrics._wording import labels_of

__all__: list[str] = []

_LONGEST_NAME = 40
_REFERENCES = ("chance", "calibrated", "share of examples")


def axes_or_new(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """Return the axes given, or those of a new figure of so many inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "jaxmetrics.plots needs matplotlib: pip install 'jaxmetrics[plot]'."
        ) from None
    return Figure(size, layout="constrained").add_subplot()


def ink() -> Any:
    """Return the colour of text, for what should be seen on any background."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def names_of(names: Sequence[str] | None, size: int, argument: str) -> list[str]:
    """Check that there is a name for each, "0", "1", ... if none are given."""
    labels = list(map(str, range(size) if names is None else names))
    if len(labels) != size:
        raise ValueError(f"{argument} must be one name each: expected {size}, got {len(labels)}.")
    return labels


def name_ticks(set_ticks: Any, places: Any, names: Sequence[str], **style: Any) -> None:
    """Write names at an axis, not as formulas, which a dollar sign would make of them."""
    set_ticks(places, labels_of(names, _LONGEST_NAME), parse_math=False, **style)


def legend_label(name: str, *parts: str) -> str:
    """Join parts for a legend, which would leave out what begins with an underscore."""
    label = ", ".join(filter(None, [*labels_of([name], _LONGEST_NAME), *parts]))
    return f" {label}" if label.startswith("_") else label


def add_legend(axes: Any) -> None:
    """Explain what was drawn, lines of reference last."""
    entries = list(zip(*axes.get_legend_handles_labels(), strict=True))
    entries.sort(key=lambda entry: entry[1] in _REFERENCES)
    handles, labels = zip(*entries, strict=True)
    for text in axes.legend(handles, labels, frameon=False, fontsize="small").get_texts():
        text.set_parse_math(False)


def set_unit_square(axes: Any, x: str, y: str, title: str) -> Any:
    """Show fractions at both axes, and a legend."""
    axes.set(
        xlabel=x, ylabel=y, title=title, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal"
    )
    add_legend(axes)
    return axes
