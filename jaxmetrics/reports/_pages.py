"""Reports as one page of HTML, which loads nothing: jinja2 fills the templates, matplotlib draws in
the colours of the page.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxmetrics import plots
from jaxmetrics.estimates import Estimate
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.ranking import PrecisionRecallCurve, RocCurve
from jaxmetrics.reports._figures import Figure, of_true_classes
from jaxmetrics.reports._text import fraction, title_of
from jaxmetrics.scoring import binned_calibration_curve

if TYPE_CHECKING:
    from jaxmetrics.reports.pairs import ComparisonReport
    from jaxmetrics.reports.singles import Report

__all__: list[str] = []

_INK = "#010203"  # drawn where the page's own colour of text is to be
_MOST_CONFUSIONS, _MOST_ROWS, _MOST_CURVES, _MOST_BARS = 10, 100, 5, 30

_METHODS = {
    "wilson": (
        "Wilson's score interval for proportions (1927); that of F1 is converted from that of"
        " Jaccard's index, a proportion."
    ),
    "delta": (
        "Delta method: the variance of multinomial counts carried through the derivatives of the"
        " metric, on the logit scale (atanh where values can be negative), so that it stays within"
        " the range."
    ),
    "posterior": (
        "Equal-tailed interval of the posterior under a flat prior: what may be plausible though it"
        " was not seen. Used for the posterior balanced accuracy, the violin, and where the delta"
        " method sees no doubt, since there was no error or a class was never right."
    ),
    "bca": (
        "Bootstrap of the examples, both classifiers judged on the same ones, bias-corrected and"
        " accelerated (Efron 1987). The probability that A is better is the share of its"
        " replicates, ties counting half."
    ),
    "normal": (
        "Mean plus and minus z standard errors (z = 1.96 for 95 %), cut at 0 for what cannot be"
        " negative. Too narrow where a few examples carry most of a loss."
    ),
    "newcombe": (
        "Score interval for the area under a ROC curve (Newcombe 2006, method 5), of scores in"
        " bins."
    ),
    "bounds": (
        "Not an interval of confidence: the exact value for these examples lies between the two."
    ),
}


class _Confusion(NamedTuple):
    true: str
    pred: str
    times: float
    support: float
    share: Figure


class _Class(NamedTuple):
    name: str
    support: float
    missed: float  # examples of the class that got another
    claimed: float  # examples of others that got it
    figures: Mapping[str, Figure]


def page_of(report: Report, title: str) -> str:
    """The page of one classifier."""
    figures = [
        *report.overall.values(),
        *(figure for column in report.per_class.values() for figure in column),
    ]
    headline = ("accuracy", "balanced_accuracy", "macro_f1", "matthews_corrcoef")
    return _render(
        "report.html",
        title=title,
        level=report.level,
        report=report,
        headline={name: report.overall[name] for name in headline},
        classes=_worst_classes(report),
        confusions=_worst_confusions(report.counts, report.class_names, report.level),
        num_confusions=np.count_nonzero(report.counts) - np.count_nonzero(report.counts.diagonal()),
        columns=[name for name in report.per_class if name != "specificity"],
        matrices=_matrix_pictures(report.counts, report.class_names),
        beliefs=_belief_pictures(report),
        curves=_curve_pictures(report),
        methods=_methods(figures),
    )


def comparison_page_of(report: ComparisonReport, title: str) -> str:
    """The page of two classifiers."""
    figures = [figure for x in report.figures.values() for figure in (x.a, x.b, x.difference)]
    differences = {title_of(name): _estimate(x.difference) for name, x in report.figures.items()}
    headline = ("accuracy", "balanced_accuracy", "macro_f1", "matthews_corrcoef")
    order = np.argsort(-report.only_right_per_class.sum(1), kind="stable")[:_MOST_ROWS]

    def draw_differences(axes: Any) -> None:
        plots.differences_of(differences, rope=report.rope, ax=axes)

    def draw_violins(axes: Any) -> None:
        matrices = [of_true_classes(matrix) for matrix in report.counts]
        plots.balanced_accuracy_violin(np.stack(matrices), ["A", "B"], level=report.level, ax=axes)

    return _render(
        "comparison.html",
        title=title,
        level=report.level,
        report=report,
        headline={name: report.figures[name] for name in headline},
        differences=_svg(
            draw_differences, (5.2, 3), "Differences A - B of each figure with their intervals"
        ),
        violins=_svg(
            draw_violins, (3.8, 3), "Posterior densities of the balanced accuracy of A and B"
        ),
        rows=[
            (
                report.class_names[i],
                int(report.counts[0, i].sum()),
                *map(int, report.only_right_per_class[i]),
            )
            for i in order
        ],
        matrices=[
            _matrix_picture(
                matrix,
                report.class_names,
                "shares",
                f"Confusion matrix of {name}, percent of each true class",
                name,
            )
            for name, matrix in zip("AB", report.counts, strict=True)
        ],
        methods=_methods([*figures, Figure(0, interval="posterior")]),  # of the violins
    )


def _render(template: str, *, level: float, **content: Any) -> str:
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
        "number": _number,
        "capital": _capital,
    }
    environment.tests["unit"] = _is_within_unit
    return environment.get_template(template).render(
        **content, percent=f"{100 * level:.10g} %", version=__version__, most_rows=_MOST_ROWS
    )


def _number(x: float) -> str:
    return f"{x:,.10g}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_within_unit(figure: Figure) -> bool:
    """Whether a bar from 0 to 1 can show it."""
    return (
        figure.low is not None and figure.high is not None and figure.low >= 0 and figure.high <= 1
    )


def _methods(figures: list[Figure]) -> dict[str, str]:
    """How the intervals that occur were made."""
    found = {figure.interval for figure in figures}
    return {name: text for name, text in _METHODS.items() if name in found}


def _worst_classes(report: Report) -> list[_Class]:
    """Those with the most mistakes first, missed examples and false alarms."""
    right = report.counts.diagonal()
    missed, claimed = report.counts.sum(1) - right, report.counts.sum(0) - right
    order = np.argsort(-(missed + claimed), kind="stable")[:_MOST_ROWS]
    return [
        _Class(
            report.class_names[i],
            report.support[i],
            missed[i],
            claimed[i],
            {name: column[i] for name, column in report.per_class.items()},
        )
        for i in order
    ]


def _worst_confusions(counts: np.ndarray, names: tuple[str, ...], level: float) -> list[_Confusion]:
    """The largest cells beside the diagonal, with their share of the true class."""
    mistakes = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    # Of as many mistakes, those of the rarer class first.
    rarity = np.broadcast_to(counts.sum(1, keepdims=True), counts.shape)
    largest = np.lexsort((rarity.ravel(), -mistakes.ravel()))[:_MOST_CONFUSIONS]
    i, j = np.unravel_index(largest[mistakes.ravel()[largest] > 0], counts.shape)
    support = rarity[i, j]
    shares = [
        np.asarray(x, float) for x in proportion_interval(counts[i, j], support, level=level)[:3]
    ]
    return [
        _Confusion(
            names[true], names[pred], counts[true, pred], n, Figure(value, low, high, "wilson")
        )
        for true, pred, n, value, low, high in zip(i, j, support, *shares, strict=True)
    ]


def _matrix_pictures(counts: np.ndarray, names: tuple[str, ...]) -> list[str]:
    kinds = {
        "counts": "Confusion matrix, counts",
        "shares": "Confusion matrix, percent of each true class",
    }
    if counts.size > plots.MOST_CELLS_WITH_NUMBERS:
        kinds.pop("counts")  # the same picture
    return [_matrix_picture(counts, names, numbers, text) for numbers, text in kinds.items()]


def _matrix_picture(
    counts: np.ndarray, names: tuple[str, ...], numbers: Any, text: str, title: str = ""
) -> str:
    size = min(max(1.4 + 0.33 * len(names), 3.4), 8)

    def draw(axes: Any) -> None:
        bar = counts.size > plots.MOST_CELLS_WITH_NUMBERS
        plots.confusion_matrix(counts, _short(names), numbers=numbers, colorbar=bar, ax=axes)
        if title:
            axes.set_title(title)

    return _svg(draw, (size, size), f"{text}; rows are truth")


def _short(names: tuple[str, ...]) -> list[str]:
    """Names that fit into a picture, long ones with their number, so that they still differ."""
    return [name if len(name) <= 16 else f"{name[:12]}… {i + 1}" for i, name in enumerate(names)]


def _belief_pictures(report: Report) -> list[str]:
    """The violin of balanced accuracy, and the recalls of which it is the average."""
    worst = np.argsort(
        [math.inf if math.isnan(x.value) else x.value for x in report.per_class["recall"]],
        kind="stable",
    )
    defined = [i for i in worst if not math.isnan(report.per_class["recall"][i].value)][:_MOST_BARS]
    names = _short(report.class_names)
    recalls = {names[i]: _estimate(report.per_class["recall"][i]) for i in defined}

    def draw_violin(axes: Any) -> None:
        plots.balanced_accuracy_violin(
            of_true_classes(report.counts), [""], level=report.level, ax=axes
        )

    def draw_recalls(axes: Any) -> None:
        plots.intervals(recalls, xlabel="recall", ax=axes)

    return [
        _svg(draw_violin, (3.6, 3.6), "Posterior density of balanced accuracy"),
        _svg(
            draw_recalls,
            (4.8, max(2.4, 0.8 + 0.24 * len(recalls))),
            "Recall of each class with its interval, the least on top",
        ),
    ]


def _curve_pictures(report: Report) -> list[str]:
    """ROC, precision and recall, reliability."""
    pictures = []
    events = _events(report)
    if events:
        for draw, points, text in (
            (plots.roc, _roc_points, "ROC curves"),
            (plots.precision_recall, _precision_recall_points, "Precision against recall"),
        ):

            def draw_all(axes: Any, draw: Any = draw, points: Any = points) -> None:
                for name, histogram in events.items():
                    draw(points(histogram), name=name, ax=axes)

            pictures.append(_svg(draw_all, (4.4, 4.4), text))
    if report.calibration_bins is not None:
        curve = binned_calibration_curve(report.calibration_bins, level=report.level)
        (name,) = _short((report.calibrated_event or "",))
        text = f"How often {report.calibrated_event} is right where it has probability p"
        pictures.append(
            _svg(lambda axes: plots.reliability(curve, name=name, ax=axes), (4.4, 4.4), text)
        )
    return pictures


def _events(report: Report) -> dict[str, np.ndarray]:
    """The histograms of the last of two classes, or of the classes with the smallest areas."""
    if report.score_histogram is None:
        return {}
    areas = [x.value for x in report.per_class["roc_auc"]]
    # NaN comes last.
    order = [1] if len(areas) == 2 else np.argsort(areas, kind="stable")[:_MOST_CURVES].tolist()
    names = _short(report.class_names)
    return {names[i]: report.score_histogram[i] for i in order if not math.isnan(areas[i])}


def _roc_points(histogram: np.ndarray) -> RocCurve:
    fp, tp, bins = _from_the_top(histogram)
    return RocCurve(fp / fp[-1], tp / tp[-1], bins)


def _precision_recall_points(histogram: np.ndarray) -> PrecisionRecallCurve:
    fp, tp, bins = _from_the_top(histogram)
    precision = np.divide(tp, tp + fp, out=np.ones(len(tp)), where=tp + fp > 0)
    return PrecisionRecallCurve(precision, tp / tp[-1], bins)


def _from_the_top(histogram: np.ndarray) -> list[Any]:
    """Negatives and positives at or above each bin, from above the highest down, and the bins;
    without those that are empty.
    """
    (bins,) = histogram.sum(0).nonzero()
    bins = bins[::-1]
    return [
        *np.pad(histogram[:, bins].cumsum(1), ((0, 0), (1, 0))),
        np.append(histogram.shape[1], bins),
    ]


def _estimate(figure: Figure) -> Estimate:
    missing = figure.low is None or figure.high is None
    ends = (math.nan, math.nan) if missing else (figure.low, figure.high)
    return Estimate(*(np.float64(x) for x in (figure.value, *ends, math.nan, 0)))


def _svg(draw: Callable[[Any], object], size: tuple[float, float], text: str) -> Any:
    """A picture of so many inches that scales with the page, whose text and lines have the colour
    of the page's text.
    """
    try:
        import matplotlib
        from markupsafe import Markup, escape
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise ImportError(f"to_html needs {error.name}: pip install 'jaxmetrics[html]'.") from None
    settings: Any = {
        **dict.fromkeys(
            ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK
        ),
        **{
            "svg.fonttype": "none",
            "svg.hashsalt": text,
            "text.parse_math": False,
            "text.usetex": False,
            "font.size": 9,
        },
        **{"figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none"},
        **{"axes.spines.top": False, "axes.spines.right": False},
    }
    file = io.StringIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has its own fonts
        canvas = Canvas(size, layout="constrained")
        draw(canvas.add_subplot())
        canvas.savefig(
            file,
            format="svg",
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )
    picture = file.getvalue().replace(_INK, "currentColor")
    width = f'<svg role="img" aria-label="{escape(text)}" style="width: {72 * size[0]:.0f}pt"'
    picture = re.sub(
        r'<svg\b(.*?) width="[^"]*"',
        lambda match: width + match[1],
        picture[picture.index("<svg") :],
        count=1,
    )
    return Markup(re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", picture, count=1))
