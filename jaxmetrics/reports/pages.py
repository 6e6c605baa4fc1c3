"""Reports as HTML pages with pictures, and the order of classes and mistakes on the pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics import (
    calibration_curve,
    plots,
    precision_recall_curve,
    proportion_interval,
    roc_auc,
    roc_curve,
)
from jaxmetrics._text.wording import capital, labels_of, percent, printable, probability, title_of
from jaxmetrics.plots.forests import MOST_ROWS, size_of
from jaxmetrics.plots.matrices import MOST_CELLS_WITH_NUMBERS
from jaxmetrics.plots.vector_graphics import svg
from jaxmetrics.reports.formats import AnyReport
from jaxmetrics.reports.grouped import GroupedReport, values_with_selection
from jaxmetrics.reports.omissions import note_on_classes, shown_values
from jaxmetrics.reports.overall_values import (
    PRIOR,
    matrix_of_true_classes,
    mistakes_in,
)
from jaxmetrics.reports.pairs import ComparisonReport
from jaxmetrics.reports.rankings import RankingReport
from jaxmetrics.reports.score_means import ScoreReport
from jaxmetrics.reports.singles import Report
from jaxmetrics.reports.values import ReportValue, values_of

__all__: list[str] = []

_MOST_ROWS = 100  # the largest number of rows in a table of classes
_LONGEST_NAME, _LONGEST_IN_PICTURES = 100, 16
_MOST_CONFUSIONS, _MOST_CURVES, _MOST_FORESTS = 10, 5, 4

_MOST_IN_BAND = 1_000_000  # the largest number of examples from which a band is computed
_OUTSIDE = 0.05  # the share of intervals that may extend beyond either end of an axis
_CURVE, _WIDTH_OF_FOREST = (4.0, 4.0), 4.8  # inches


def as_page(report: AnyReport, title: str) -> str:
    """Write an HTML page with jinja2, from the template of the report if it has pictures."""
    from jaxmetrics import __version__

    outline = report.outline()
    used = {record.get("method") for record in report.records()}
    environment = _environment()
    terms = _Terms(environment.get_template("terms.html").module.terms)
    sections: dict[str, str] = {}
    environment.globals |= {"term": terms.explained, "section": partial(_heading, sections)}
    return environment.get_template(report.template).render(
        title=title,
        report=report,
        outline=outline,
        percent=percent(outline.level),
        date=date.today().isoformat(),
        sections=sections,
        terms=terms.used,
        methods={name: x for name, x in explanations().items() if name in used},
        most_rows=_MOST_ROWS,
        version=__version__,
        **pictures_of(report),
    )


def _heading(sections: dict[str, str], title: str) -> Any:
    """Return the heading of a section, and add the section to the contents of the page."""
    from markupsafe import Markup

    key = f"section{len(sections) + 1}"
    sections[key] = title
    return Markup('<h2 id="{}">{}</h2>').format(key, title)


def explanations() -> dict[str, str]:
    """Return explanations of the interval methods by the name of the method."""
    return _environment().get_template("methods.html").module.explanations


class _Terms:
    """Explains terms on a page by tooltips, and collects the terms for a glossary at the end of the
    page, because paper and phones do not show tooltips.
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = known
        self.used: dict[str, str] = {}

    def explained(self, title: str) -> str:
        """Return a title with its explanation; "recall, cat" gets the explanation of "recall"."""
        from markupsafe import Markup

        plain = title[:1].lower() + title[1:]
        terms = [x for x in self.known if title.startswith(x) or plain.startswith(x)]
        term = max(terms, key=len, default="")
        start, rest = title[: len(term)], title[len(term) :]
        if not term or rest[:1].isalnum():
            return title
        self.used[term] = self.known[term]
        return Markup('<abbr title="{}">{}</abbr>{}').format(self.known[term], start, rest)


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
        "probability": probability,
        "number": lambda x: f"{x:,.10g}",
        "capital": capital,
        "printable": printable,
    }
    return environment


@singledispatch
def pictures_of(report: AnyReport) -> dict[str, Any]:
    """Return the pictures of a page, and what else its template takes, by variable of the
    template.
    """
    return {"pictures": []}


@pictures_of.register
def _(report: RankingReport) -> dict[str, Any]:
    """Draw the ranking with its tiers."""
    rows = min(len(report.by_name), MOST_ROWS) + len(set(report.board.tiers))
    draw = partial(
        plots.leaderboard, report.board, report.names, in_words=False, xlabel=report.metric
    )
    text = "Values of the classifiers with their tiers"
    return {"pictures": [svg(size_of(rows, _WIDTH_OF_FOREST), text, draw)]}


@pictures_of.register
def _(report: ScoreReport) -> dict[str, Any]:
    """Draw the mean of each group, or the differences of two systems."""
    groups, name = report.by_name.get("group", {}), report.content["score"]
    return {"pictures": [_forest(groups, report["mean"], name)]}


@pictures_of.register
def _(report: GroupedReport) -> dict[str, Any]:
    """Draw the accuracy of the groups, and the values that are shown to differ most."""
    groups, total, pictures = report.values_of_groups, values_with_selection(report), []
    for key in [*dict.fromkeys([("accuracy", ""), *report.different])][:_MOST_FORESTS]:
        title = ", ".join([title_of(key[0]), *filter(None, key[1:])])
        named = {name: x[key] for name, x in groups.items()}
        pictures.append(_forest(named, total[key], title, report.disparities.get(key)))
    return {"pictures": pictures}


@pictures_of.register
def _(report: Report) -> dict[str, Any]:
    """Draw the pictures for one classifier, and sort its mistakes by frequency."""
    counts, names = report.counts, labels_of(report.axis_names, _LONGEST_NAME)
    wrong, k = mistakes_in(counts), len(report.class_names)
    fn, fp = wrong.sum(1)[:k], wrong.sum(0)[:k]
    order = np.argsort(-(fn + fp), kind="stable")[:_MOST_ROWS]
    # If the cells have no numbers, the pictures of counts and of shares would be the same.
    *short, event = labels_of(
        [*report.class_names, report.calibrated_event or ""], _LONGEST_IN_PICTURES
    )
    histograms = [] if report.score_histogram is None else [report.score_histogram]
    # Sums of weights have neither a posterior nor a band.
    is_counted = report.squares is None and report.num_weighted is None and not (counts % 1).any()
    numbers = ["shares"] if counts.size > MOST_CELLS_WITH_NUMBERS else ["counts", "shares"]
    return {
        "omits_classes": bool(note_on_classes(report.support)),
        "overall": shown_values(report.overall, report.support),
        "names": names,
        "order": order,
        "false_negatives": fn,
        "false_positives": fp,
        "axes": {
            name: _axis_of([column[i] for i in order])
            for name, column in report.per_class.items()
            if name != "specificity" and (name != "roc_auc" or k > 2 or report.invalid)
        },
        "confusions": _worst_confusions(counts, names, report.level),
        "num_confusions": np.count_nonzero(wrong),
        "event": labels_of([report.calibrated_event or ""], _LONGEST_NAME)[0],
        "matrices": [_matrix_picture(counts, report.axis_names, x) for x in numbers],
        "largest_mistake": _largest_mistake(counts),
        "violin": is_counted
        and svg(
            (3.6, 3.6),
            "Posterior density of balanced accuracy",
            partial(
                plots.balanced_accuracy_violin,
                matrix_of_true_classes(counts[:k]),
                [""],
                prior=PRIOR,
                level=report.level,
            ),
        ),
        "recalls": _forest(
            {name: x for name, x in report["recall"].items() if not math.isnan(x.value)},
            report["balanced_accuracy"],
            "recall",
        ),
        # For the second of two classes, otherwise for the classes with the smallest areas.
        "curves": _curves(
            [(short[i], x[i]) for x in histograms for i in _classes_by_area([x])[:_MOST_CURVES]],
            [(event, x) for x in (report.calibration_bins,) if x is not None],
            report.level,
            "",
            f"How often {event} is right where it has probability p",
            has_band=len(short) == 2 and is_counted and report.num_clusters is None,
        ),
    }


@pictures_of.register
def _(report: ComparisonReport) -> dict[str, Any]:
    """Draw the pictures for two classifiers, and sort the classes by how much A and B differ."""
    # The log loss is omitted: it has no upper limit and would compress the other intervals.
    figures = shown_values(report.figures, report.support)
    compared = {title_of(name): x for name, x in figures.items() if name != "log_loss"}
    largest = max(map(_largest_mistake, report.counts))
    # For the second of two classes, otherwise for the class with the largest difference in area.
    histograms = [] if report.score_histograms is None else [*report.score_histograms]
    bins = [] if report.calibration_bins is None else [*report.calibration_bins]
    chosen = _classes_by_area(histograms)[:1]
    events = [(name, x[i]) for i in chosen for name, x in zip("AB", histograms, strict=True)]
    return {
        "omits_classes": bool(note_on_classes(report.support)),
        "figures": figures,
        "names": labels_of(report.class_names, _LONGEST_NAME),
        "support": report.support,
        "order": np.argsort(-report.only_right_per_class.sum(1), kind="stable")[:_MOST_ROWS],
        "differences": svg(
            size_of(len(compared), 5.2),
            "Differences A - B of each metric with their intervals",
            partial(plots.difference, compared, rope=report.rope),
        ),
        "matrices": [
            _matrix_picture(matrix, report.axis_names, "shares", name, largest or None)
            for name, matrix in zip("AB", report.counts, strict=True)
        ],
        "largest_mistake": largest,
        "of_class": "".join(labels_of([report.class_names[i] for i in chosen], _LONGEST_NAME)),
        "curves": _curves(
            events,
            [*zip("AB", bins, strict=False)],
            report.level,
            " of A and B",
            "Reliability of A and B",
        ),
    }


class _Axis(NamedTuple):
    """The ends of an axis, and the number of decimals of the ends."""

    low: float
    high: float
    decimals: int

    @property
    def ends(self) -> list[str]:
        """The ends as text."""
        return [f"{x:.{self.decimals}f}" for x in (self.low, self.high)]

    def place(self, x: float) -> float:
        """Return the position of a number from 0 to 1; numbers beyond an end are put at the end."""
        return min(max((x - self.low) / (self.high - self.low), 0.0), 1.0)


def _axis_of(values: Sequence[ReportValue]) -> _Axis:
    """Choose an axis between round numbers that contains all values and most intervals.

    It need not contain the very wide intervals of a few rare classes, because they would compress
    all other intervals.
    """
    low, high = 0.0, 1.0
    if known := [x for x in values if x.has_interval]:
        value, lows, highs = np.array([x.numbers for x in known]).T
        low = float(np.nanmin([*value, np.quantile(lows, _OUTSIDE, method="lower")]))
        high = float(np.nanmax([*value, np.quantile(highs, 1 - _OUTSIDE, method="higher")]))
    digits = max(0, -math.floor(math.log10(high - low))) if high > low else 0
    unit = 10.0**-digits
    first, last = math.floor(low / unit + 1e-9), math.ceil(high / unit - 1e-9)
    return _Axis(first * unit, max(last, first + 1) * unit, digits)


def _worst_confusions(counts: np.ndarray, names: Sequence[str], level: float) -> list[Any]:
    """List the largest off-diagonal cells: the true and the predicted class, the count of the cell,
    the number of examples of the true class, and the share of the cell in this number.
    """
    mistakes = mistakes_in(counts)
    # Among cells with equal counts, rarer true classes come first.
    rarity = np.broadcast_to(counts.sum(1, keepdims=True), counts.shape)
    largest = np.lexsort((rarity.ravel(), -mistakes.ravel()))[:_MOST_CONFUSIONS]
    true, pred = np.unravel_index(largest[mistakes.ravel()[largest] > 0], counts.shape)
    times, support = counts[true, pred], rarity[true, pred]
    shares = proportion_interval(times, support, level=level, method="likelihood")
    named = ([names[i] for i in ids] for ids in (true, pred))
    return [*zip(*named, times, support, values_of(shares), strict=True)]


def _largest_mistake(counts: np.ndarray) -> float:
    """Return the largest share of a true class that is classified as another class."""
    support = counts.sum(1)
    return float(np.max(mistakes_in(counts).max(1) / np.where(support > 0, support, 1)))


def _matrix_picture(
    counts: np.ndarray,
    names: Sequence[str],
    numbers: Any,
    title: str = "",
    scale: float | None = None,
) -> str:
    what = "percent of each true class" if numbers == "shares" else "counts"
    of_whom = f" of {title}" if title else ""
    options: Any = {"numbers": numbers, "scale": scale, "colorbar": False}
    options["class_names"] = labels_of(names, _LONGEST_IN_PICTURES)
    size = min(max(1.4 + 0.33 * len(names), 3.4), 8)
    return svg(
        (size, size),
        f"Confusion matrix{of_whom}, {what}; rows are truth",
        partial(plots.confusion_matrix, counts, **options),
        lambda ax: ax.set_title(title or ax.get_title()),
    )


def _forest(
    values: Mapping[str, Any], total: Any, xlabel: str, largest: ReportValue | None = None
) -> str:
    difference: Any = largest and largest.estimate
    draw = partial(plots.groups, values, total, largest_difference=difference, xlabel=xlabel)
    size = size_of(min(len(values), MOST_ROWS) + 1, _WIDTH_OF_FOREST)
    return svg(size, f"Forest plot of {xlabel}", draw)


def _curves(
    events: Sequence[tuple[str, np.ndarray]],
    bins: Sequence[tuple[str, np.ndarray]],
    level: float,
    systems: str,
    reliability: str,
    has_band: bool = False,
) -> list[str]:
    """Draw ROC and precision-recall curves of named histograms `(2, B)`, and the reliability
    diagrams of named calibration bins.
    """
    has_band = has_band and sum(x.sum() for _, x in events) <= _MOST_IN_BAND
    options: Any = {"has_band": has_band, "level": level}
    calibrations = [(name, calibration_curve(x, level=level)) for name, x in bins]
    drawn = {
        f"ROC curves{systems}": [
            _curve(plots.roc, roc_curve, x, name=name, **options) for name, x in events
        ],
        f"Precision against recall{systems}": [
            _curve(plots.precision_recall, precision_recall_curve, x, name=name, **options)
            for name, x in events
        ],
        reliability: [partial(plots.reliability, x, name=name) for name, x in calibrations],
    }
    return [svg(_CURVE, text, *draws) for text, draws in drawn.items() if draws]


def _classes_by_area(histograms: Sequence[np.ndarray]) -> list[int]:
    """List the classes whose curves are drawn, the most important class first.

    For one classifier, the class with the smallest area comes first; for two classifiers, the class
    with the largest difference in area. If there are two classes, only the second class is listed.
    Classes without an area are left out.
    """
    if not histograms:
        return []
    areas = np.array([roc_auc(x).value for x in histograms])
    rank = areas[0] if len(areas) == 1 else -np.abs(areas[0] - areas[1])
    order = [1] if len(rank) == 2 else np.argsort(rank, kind="stable").tolist()
    return [i for i in order if not math.isnan(rank[i])]


def _curve(
    draw: Callable[..., Any],
    curve_of: Callable[..., Any],
    histogram: np.ndarray,
    *,
    has_band: bool,
    **options: Any,
) -> partial[Any]:
    """Return a function that draws the curve of a histogram `(2, B)`, with the indices of the bins
    as scores.
    """
    y_true, bins = histogram.nonzero()
    weight = histogram[y_true, bins]
    if has_band:
        times = weight.astype(int)
        return partial(draw, y_true.repeat(times), bins.repeat(times), band=True, **options)
    return partial(draw, curve_of(y_true, bins, sample_weight=weight), **options)
