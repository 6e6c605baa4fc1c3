"""Reports as one page of HTML, which loads nothing: jinja2 fills the templates, matplotlib draws in
the colours of the page.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics import plots
from jaxmetrics._wording import Table, capital, fraction, labels_of, percent, printable, title_of
from jaxmetrics.intervals import proportion_interval
from jaxmetrics.plots.forests import differences_of, forest
from jaxmetrics.plots.matrices import MOST_CELLS_WITH_NUMBERS
from jaxmetrics.ranking import PrecisionRecallCurve, RocCurve
from jaxmetrics.reports._overall import PRIOR, matrix_of_true_classes
from jaxmetrics.reports.contents import ComparisonContents, ReportContents
from jaxmetrics.reports.values import ReportedValue
from jaxmetrics.scoring import calibration_curve

__all__: list[str] = []

_INK = "#010203"  # drawn where the page's own colour of text is to be
_LONGEST_NAME, _LONGEST_IN_PICTURES = 100, 16
_MOST_CONFUSIONS, _MOST_ROWS, _MOST_CURVES, _MOST_BARS = 10, 100, 5, 30

_CURVE = (4.0, 4.0)  # inches

_SETTINGS = {
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), _INK
    ),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.usetex": False,
}

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


class _Confusion(NamedTuple):
    true: str
    pred: str
    times: float
    support: float
    share: ReportedValue


class _Class(NamedTuple):
    name: str
    support: float
    false_negatives: float
    false_positives: float
    values: Mapping[str, ReportedValue]


_SHARES_OF = "Confusion matrix of {}, percent of each true class"
_HEADLINE = ("accuracy", "balanced_accuracy", "macro_f1", "matthews_corrcoef")


def report_page(report: ReportContents, title: str) -> str:
    """Write the page of one classifier."""
    values = [
        *report.overall.values(),
        *(x for column in report.per_class.values() for x in column),
    ]
    names = labels_of(report.class_names, _LONGEST_NAME)
    mistakes = np.count_nonzero(report.counts) - np.count_nonzero(report.counts.diagonal())
    return _render(
        "report.html",
        title=title,
        level=report.level,
        report=report,
        headline={name: report.overall[name] for name in _HEADLINE},
        classes=_worst_classes(report, names),
        confusions=_worst_confusions(report.counts, names, report.level),
        event=labels_of([report.calibrated_event or ""], _LONGEST_NAME)[0],
        num_confusions=mistakes,
        columns=[name for name in report.per_class if name != "specificity"],
        matrices=_matrix_pictures(report.counts, report.class_names),
        posteriors=_posterior_pictures(report),
        curves=_curve_pictures(report),
        methods=_methods(values),
    )


def comparison_page(report: ComparisonContents, title: str) -> str:
    """Write the page of two classifiers."""
    values = [value for x in report.figures.values() for value in (x.a, x.b, x.difference)]
    differences, violins = _comparison_pictures(report)
    return _render(
        "comparison.html",
        title=title,
        level=report.level,
        report=report,
        headline={name: report.figures[name] for name in _HEADLINE},
        differences=differences,
        violins=violins,
        names=labels_of(report.names, _LONGEST_NAME),
        rows=_most_different_classes(report),
        matrices=[
            _matrix_picture(matrix, report.class_names, "shares", _SHARES_OF.format(name), name)
            for name, matrix in zip("AB", report.counts, strict=True)
        ],
        methods=_methods([*values, ReportedValue(0, method="posterior")]),  # of the violins
    )


def tables_page(title: str, heading: str, tables: Mapping[str, Table], notes: Sequence[str]) -> str:
    """Write a page of tables by title."""
    return _render(
        "tables.html",
        title=printable(title),
        level=0,
        heading=heading,
        tables=tables,
        notes=notes,
        methods={},
    )


def _comparison_pictures(report: ComparisonContents) -> tuple[str, str]:
    """Draw the differences, and the violins of balanced accuracy."""
    differences = {title_of(name): x.difference for name, x in report.figures.items()}
    matrices = np.stack([matrix_of_true_classes(matrix) for matrix in report.counts])

    def draw_differences(axes: Any) -> None:
        differences_of(differences, rope=report.rope, ax=axes)

    def draw_violins(axes: Any) -> None:
        plots.balanced_accuracy_violin(
            matrices, ["A", "B"], prior=PRIOR, level=report.level, ax=axes
        )

    return (
        _svg(draw_differences, (5.2, 3), "Differences A - B of each metric with their intervals"),
        _svg(draw_violins, (3.8, 3), "Posterior densities of the balanced accuracy of A and B"),
    )


def _most_different_classes(report: ComparisonContents) -> list[tuple[str, int, int, int]]:
    """List name, support, and how often only A or only B is right, the most different first."""
    support = report.counts[0].sum(1)
    only_a, only_b = report.only_right_per_class.T
    order = np.argsort(-(only_a + only_b), kind="stable")[:_MOST_ROWS]
    names = labels_of(report.class_names, _LONGEST_NAME)
    return [(names[i], int(support[i]), int(only_a[i]), int(only_b[i])) for i in order]


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
        "capital": capital,
        "printable": printable,
    }
    environment.tests["unit"] = _is_within_unit
    return environment.get_template(template).render(
        **content, percent=percent(level), version=__version__, most_rows=_MOST_ROWS
    )


def _number(x: float) -> str:
    return f"{x:,.10g}"


def _is_within_unit(x: ReportedValue) -> bool:
    """Tell whether a bar from 0 to 1 can show a value."""
    return x.low is not None and x.high is not None and x.low >= 0 and x.high <= 1


def _methods(values: list[ReportedValue]) -> dict[str, str]:
    """Say how the intervals that occur were made."""
    found = {x.method for x in values}
    return {name: text for name, text in _METHODS.items() if name in found}


def _worst_classes(report: ReportContents, names: Sequence[str]) -> list[_Class]:
    """List the classes with the most false negatives and false positives, the worst first."""
    right = report.counts.diagonal()
    fn, fp = report.counts.sum(1) - right, report.counts.sum(0) - right
    order = np.argsort(-(fn + fp), kind="stable")[:_MOST_ROWS]
    support = report.support
    values = [{name: x[i] for name, x in report.per_class.items()} for i in order]
    return [
        _Class(names[i], support[i], fn[i], fp[i], x) for i, x in zip(order, values, strict=True)
    ]


def _worst_confusions(counts: np.ndarray, names: Sequence[str], level: float) -> list[_Confusion]:
    """List the largest cells beside the diagonal, with their share of the true class."""
    mistakes = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    # Of as many mistakes, those of the rarer class first.
    rarity = np.broadcast_to(counts.sum(1, keepdims=True), counts.shape)
    largest = np.lexsort((rarity.ravel(), -mistakes.ravel()))[:_MOST_CONFUSIONS]
    i, j = np.unravel_index(largest[mistakes.ravel()[largest] > 0], counts.shape)
    support = rarity[i, j]
    estimates = proportion_interval(counts[i, j], support, level=level)
    parts = (np.asarray(x, float).tolist() for x in estimates[:3])
    shares = [ReportedValue(x, low, high, "wilson") for x, low, high in zip(*parts, strict=True)]
    return [
        _Confusion(names[true], names[pred], counts[true, pred], n, share)
        for true, pred, n, share in zip(i, j, support, shares, strict=True)
    ]


def _matrix_pictures(counts: np.ndarray, names: tuple[str, ...]) -> list[str]:
    kinds = {
        "counts": "Confusion matrix, counts",
        "shares": "Confusion matrix, percent of each true class",
    }
    if counts.size > MOST_CELLS_WITH_NUMBERS:
        kinds.pop("counts")  # the same picture
    return [_matrix_picture(counts, names, numbers, text) for numbers, text in kinds.items()]


def _matrix_picture(
    counts: np.ndarray, names: tuple[str, ...], numbers: Any, text: str, title: str = ""
) -> str:
    size = min(max(1.4 + 0.33 * len(names), 3.4), 8)

    def draw(axes: Any) -> None:
        bar = counts.size > MOST_CELLS_WITH_NUMBERS
        labels = _shortened(names)
        plots.confusion_matrix(counts, class_names=labels, numbers=numbers, colorbar=bar, ax=axes)
        if title:
            axes.set_title(title)

    return _svg(draw, (size, size), f"{text}; rows are truth")


def _shortened(names: Sequence[str]) -> list[str]:
    return labels_of(names, _LONGEST_IN_PICTURES)


def _posterior_pictures(report: ReportContents) -> list[str]:
    """Draw the violin of balanced accuracy, and the recalls of which it is the average."""
    values = report.per_class["recall"]
    defined = [i for i, x in enumerate(values) if not math.isnan(x.value)]
    worst = sorted(defined, key=lambda i: values[i].value)[:_MOST_BARS]
    names = _shortened(report.class_names)
    recalls = np.array([values[i][:3] for i in worst], float)
    matrix = matrix_of_true_classes(report.counts)
    height = max(2.4, 0.8 + 0.24 * len(recalls))

    def draw_violin(axes: Any) -> None:
        plots.balanced_accuracy_violin(matrix, [""], prior=PRIOR, level=report.level, ax=axes)

    def draw_recalls(axes: Any) -> None:
        forest([names[i] for i in worst], recalls, xlabel="recall", ax=axes)

    recalls_text = "Recall of each class with its interval, the least on top"
    return [
        _svg(draw_violin, (3.6, 3.6), "Posterior density of balanced accuracy"),
        _svg(draw_recalls, (4.8, height), recalls_text),
    ]


def _curve_pictures(report: ReportContents) -> list[str]:
    """Draw the curves of ROC, precision and recall, reliability."""
    pictures = []
    events = _events(report)
    if events:
        for draw, points, text in (
            (plots.roc, _roc_points, "ROC curves"),
            (plots.precision_recall, _precision_recall_points, "Precision against recall"),
        ):

            def draw_all(axes: Any, draw: Any = draw, points: Any = points) -> None:
                for name, histogram in events:
                    draw(points(histogram), name=name, ax=axes)

            pictures.append(_svg(draw_all, _CURVE, text))
    if report.calibration_bins is not None:
        curve = calibration_curve(report.calibration_bins, level=report.level)
        (name,) = _shortened((report.calibrated_event or "",))
        text = f"How often {name} is right where it has probability p"
        pictures.append(
            _svg(lambda axes: plots.reliability(curve, name=name, ax=axes), _CURVE, text)
        )
    return pictures


def _events(report: ReportContents) -> list[tuple[str, np.ndarray]]:
    """Choose the histograms of the last of two classes, or of those with the smallest areas."""
    if report.score_histogram is None:
        return []
    areas = [x.value for x in report.per_class["roc_auc"]]
    # NaN comes last.
    order = [1] if len(areas) == 2 else np.argsort(areas, kind="stable")[:_MOST_CURVES].tolist()
    names = _shortened(report.class_names)
    return [(names[i], report.score_histogram[i]) for i in order if not math.isnan(areas[i])]


def _roc_points(histogram: np.ndarray) -> RocCurve:
    fp, tp, bins = _cumulative_counts(histogram)
    return RocCurve(fp / fp[-1], tp / tp[-1], bins)


def _precision_recall_points(histogram: np.ndarray) -> PrecisionRecallCurve:
    fp, tp, bins = _cumulative_counts(histogram)
    precision = np.divide(tp, tp + fp, out=np.ones(len(tp)), where=tp + fp > 0)
    return PrecisionRecallCurve(precision, tp / tp[-1], bins)


def _cumulative_counts(histogram: np.ndarray) -> list[Any]:
    """Count negatives and positives at or above each bin, from above the highest down;
    without those that are empty.
    """
    (bins,) = histogram.sum(0).nonzero()
    bins = bins[::-1]
    counts = np.pad(histogram[:, bins].cumsum(1), ((0, 0), (1, 0)))
    return [*counts, np.append(histogram.shape[1], bins)]


def _svg(draw: Callable[[Any], object], size: tuple[float, float], text: str) -> Any:
    """Draw a picture of so many inches that scales with the page, with text and lines in the colour
    of the page's text.
    """
    try:
        import matplotlib
        from markupsafe import Markup, escape
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"to_html needs {error.name}: pip install 'jaxmetrics[html]'.") from None
    settings: Any = _SETTINGS | {"svg.hashsalt": text}
    file = io.StringIO()
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has its own fonts
        canvas = Figure(size, layout="constrained")
        draw(canvas.add_subplot())
        # Nothing that differs from one run to the next.
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.savefig(file, format="svg", metadata=metadata)
    # In tags alone: a class may be named as the colour is.
    picture = re.sub("<[^!>]*>", lambda tag: tag[0].replace(_INK, "currentColor"), file.getvalue())
    picture = picture[picture.index("<svg") :]
    # The size becomes a width for the page, which may scale it.
    start = f'<svg role="img" aria-label="{escape(text)}" style="--width: {72 * size[0]:.0f}pt"'
    picture = re.sub(r'<svg\b(.*?) width="[^"]*"', lambda m: start + m[1], picture, count=1)
    return Markup(re.sub(r'(<svg\b[^>]*?) height="[^"]*"', r"\1", picture, count=1))
