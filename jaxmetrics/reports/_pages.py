"""Reports as one page of HTML, which loads nothing: jinja2 fills a template."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from jaxmetrics._wording import capital, fraction, percent, printable, title_of
from jaxmetrics.reports.values import ReportedValue, value_cell

if TYPE_CHECKING:
    from jaxmetrics.reports.tabular import AnyReport

__all__: list[str] = []

MOST_ROWS = 100  # of a table of classes

_METHODS = {
    "wilson": (
        "Wilson's score interval for proportions (1927); that of F1 is converted from that of"
        " Jaccard's index, a proportion."
    ),
    "likelihood": (
        "Likelihood interval: the least and the greatest value over the cell probabilities that the"
        " counts, with a third of an example more where it moves the value most, do not refute"
        " (Owen 2001). It knows of errors that were not seen. The probability that A is better is"
        " that of two halves of normals that have their quantiles at the ends."
    ),
    "delta": (
        "Delta method: the variance of multinomial counts carried through the derivatives of the"
        " metric, on the logit scale (atanh where values can be negative), so that it stays within"
        " the range. Used for sums of weights, which have no likelihood."
    ),
    "bca": "Bootstrap of the examples, bias-corrected and accelerated (Efron 1987).",
    "percentile": "Bootstrap of the examples: percentiles of the replicates.",
    "basic": "Bootstrap of the examples: percentiles of the replicates, reflected at the value.",
    "studentized": "Bootstrap of the examples: percentiles of the replicates by their own errors.",
    "posterior": "Equal-tailed, of the posterior under Jeffreys' prior; also of the violin.",
    "normal": (
        "Mean plus and minus z standard errors (z = 1.96 for 95 %), cut at 0 for what cannot be"
        " negative. Too narrow where a few examples carry most of a loss."
    ),
    "mover": (
        "MOVER (Zou and Donner 2008): an interval of a difference from those of both values, of"
        " areas with their correlation by DeLong's variance."
    ),
    "student": (
        "Student's interval of a mean on the scale of logarithms, of clusters with the standard"
        " error of the jackknife that leaves out one at a time (MacKinnon, Nielsen and Webb, 2023)."
        " Too narrow where a few examples carry most of a loss; losses that were not seen, because"
        " mistakes are rarer than examples, it does not know."
    ),
    "score": (
        "Wilson's interval with the number of examples whose share would vary as the area under the"
        " ROC curve does, by DeLong's variance; of scores in bins."
    ),
    "inequalities": (
        "Two inequalities between the error of these examples and the true one in the same bins, by"
        " the noise of the bins and Wilson's limits: at least as wide as it must be, down to 0"
        " where chance alone explains the error."
    ),
    "bounds": (
        "Not an interval of confidence: the exact value for these examples lies between the two."
    ),
}


def page(report: AnyReport, title: str) -> str:
    """Write the page of a report."""
    from jaxmetrics import __version__

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
    environment.tests["unit"] = _is_within_unit
    outline = report.outline()
    return environment.get_template(report.template).render(
        title=title,
        report=report,
        outline=outline,
        percent=percent(outline.level),
        methods=_explained(report.methods()),
        most_rows=MOST_ROWS,
        version=__version__,
        **report.pictures(),
    )


def _is_within_unit(x: ReportedValue) -> bool:
    """Tell whether a bar from 0 to 1 can show a value."""
    return x.low is not None and x.high is not None and x.low >= 0 and x.high <= 1


def _explained(methods: Set[str | None]) -> dict[str, str]:
    """Say how the intervals that occur were made."""
    return {name: text for name, text in _METHODS.items() if name in methods}
