"""SVG images of plots for HTML pages, in the colours of the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

__all__: list[str] = []

INK = "#010203"  # placeholder for the page's text colour

_BLUE = "#1f77b4"  # the first colour of matplotlib, which is dark on a dark page
_LINE_OF_LEGEND, _PADDING = 0.22, 0.1  # inches

_SETTINGS = {
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    ),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.usetex": False,
}


def svg(size: tuple[float, float], text: str, *draws: Callable[..., object]) -> Any:
    """Return an SVG image of this size in inches. Each of the functions draws on the axes of the
    image when it is called as `draw(ax=axes)`. The image scales with the page and has its text
    colour. The legend is below the axes, and makes the image higher.
    """
    try:
        import matplotlib
        from markupsafe import Markup, escape
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError(
            f"to_html needs the package {error.name}. Install it with: pip install"
            " 'jaxmetrics[html]'."
        ) from None
    settings: Any = _SETTINGS | {"svg.hashsalt": text}
    file = io.StringIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # So that fonts of the browser are used.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        # The padding is for fonts of browsers that are wider.
        canvas = Figure(size, layout=ConstrainedLayoutEngine(compress=True, w_pad=_PADDING))
        axes = canvas.add_subplot()
        for draw in draws:
            draw(ax=axes)
        if legend := axes.get_legend():
            lines = "\n".join(x.get_text() for x in legend.get_texts()).count("\n") + 1
            canvas.set_figheight(size[1] + _LINE_OF_LEGEND * (lines + 1))
        # Omits metadata that differs between runs.
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.savefig(file, format="svg", metadata=metadata)
    # Colours are replaced only within tags, because a class name may contain the placeholder.
    picture = re.sub("<[^!>]*>", _in_colours_of_page, file.getvalue())
    picture = picture[picture.index("<svg") :]
    # The size becomes a CSS width, so that the page can scale it.
    start = f'<svg role="img" aria-label="{escape(text)}" style="--width: {72 * size[0]:.0f}pt"'
    picture = re.sub(r'<svg\b(.*?) width="[^"]*"', lambda m: start + m[1], picture, count=1)
    return Markup(re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", picture, count=1))


def _in_colours_of_page(tag: re.Match[str]) -> str:
    return tag[0].replace(INK, "currentColor").replace(_BLUE, "var(--mark)")
