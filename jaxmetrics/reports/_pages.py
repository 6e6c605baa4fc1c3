"""Reports as one page of HTML, which loads nothing: jinja2 fills a template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxmetrics._wording import capital, fraction, percent, printable, title_of
from jaxmetrics.reports.values import value_cell

if TYPE_CHECKING:
    from jaxmetrics.reports.tabular import AnyReport

__all__: list[str] = []

MOST_ROWS = 100  # of a table of classes


def page(report: AnyReport, title: str) -> str:
    """Write the page of a report."""
    from jaxmetrics import __version__

    outline, used = report.outline(), report.methods()
    return (
        _environment()
        .get_template(report.template)
        .render(
            title=title,
            report=report,
            outline=outline,
            percent=percent(outline.level),
            methods={name: x for name, x in explanations().items() if name in used},
            most_rows=MOST_ROWS,
            version=__version__,
            **report.pictures(),
        )
    )


def explanations() -> dict[str, str]:
    """Say how the intervals of each method are made."""
    return _environment().get_template("methods.html").module.explanations


def _environment() -> Any:
    try:
        import jinja2
    except ImportError:
        raise ImportError("to_html needs jinja2: pip install 'jaxmetrics[html]'.") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jaxmetrics.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "title_of": title_of,
        "fraction": fraction,
        "number": lambda x: f"{x:,.10g}",
        "capital": capital,
        "printable": printable,
        "cell": lambda x: x if isinstance(x, str) else value_cell(x),
    }
    return environment
