"""Plots of ROC curves, precision-recall curves and reliability diagrams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmetrics import calibration_curve, precision_recall_curve, roc_curve
from jaxmetrics._arguments.single import ArrayLike, check_level
from jaxmetrics._places.namespaces import is_jax
from jaxmetrics.plots._axes import REFERENCE, axes_or_new, ink, legend_label, set_unit_square
from jaxmetrics.ranking import PrecisionRecallCurve, RocCurve
from jaxmetrics.scoring import CalibrationCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["precision_recall", "reliability", "roc"]

_GRID = np.linspace(0, 1, 301)  # number of points at which the band is computed


def roc(
    y_true: RocCurve | ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    replicates: RocCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot a ROC curve with its area in the legend, and optionally a confidence band.

    At each false positive rate, the band contains the fraction `level` of bootstrap replicates
    (curves of random resamples of the examples). The band is pointwise, not simultaneous.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(n,)`; or a curve of one
            classifier from `roc_curve` as the only argument.
        replicates: S bootstrap replicates of the curve, from
            `roc_curve(y_true, y_score, sample_weight=w)`. Here w, of shape `(S, n)`, is how often
            each example was drawn. For example, w is
            `numpy.random.default_rng(0).multinomial(n, np.ones(n) / n, S)`.
        name: name in the legend.
        level: confidence level of the band.
        ax: matplotlib axes, such as those of an earlier call.

    Raises:
        ValueError: if the curve has batch axes or is undefined (NaN).

    >>> import jaxmetrics as jm
    >>> axes = roc([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], name="first")
    >>> axes = roc(jm.roc_curve([0, 1, 0, 1], [0.1, 0.4, 0.3, 0.9]), name="second", ax=axes)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['first, AUC 0.750', 'second, AUC 1.000', 'chance']
    """
    (fpr, tpr, _), curves = _read(RocCurve, roc_curve, y_true, y_score, replicates, level)
    axes = axes_or_new(ax)
    is_first = not axes.has_data()
    area = float((np.diff(fpr) * (tpr[1:] + tpr[:-1])).sum() / 2)
    (line,) = axes.plot(fpr, tpr, label=legend_label(name, f"AUC {area:.3f}"))
    _band(axes, _GRID, [np.interp(_GRID, x, y) for x, y, _ in curves], level, line)
    if is_first:
        _diagonal(axes, "chance")
    return set_unit_square(axes, "false positive rate", "true positive rate", "ROC curve")


def precision_recall(
    y_true: PrecisionRecallCurve | ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    replicates: PrecisionRecallCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot a precision-recall curve with its average precision in the legend.

    At each recall r, the curve shows the precision at the highest threshold whose recall is at
    least r. The dotted line is the precision of random scores, the fraction of positives.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(n,)`; or a curve of one
            classifier from `precision_recall_curve` as the only argument.
        replicates: S bootstrap replicates of the curve for a pointwise band, made as in `roc`.
        name: name in the legend.
        level: confidence level of the band.
        ax: matplotlib axes, such as those of an earlier call.

    >>> axes = precision_recall([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['average precision 0.833, chance 0.500']
    """
    kind, curve_of = PrecisionRecallCurve, precision_recall_curve
    (precision, recall, _), curves = _read(kind, curve_of, y_true, y_score, replicates, level)
    axes = axes_or_new(ax)
    average, chance = float((np.diff(recall) * precision[1:]).sum()), precision[-1]
    parts = f"average precision {average:.3f}", f"chance {chance:.3f}"
    (line,) = axes.step(recall, precision, where="pre", label=legend_label(name, *parts))
    draws = [y[np.minimum(np.searchsorted(x, _GRID), len(x) - 1)] for y, x, _ in curves]
    _band(axes, _GRID, draws, level, line)
    axes.axhline(chance, **REFERENCE | {"color": line.get_color()})
    return set_unit_square(axes, "recall", "precision", "Precision and recall")


def reliability(
    y_true: CalibrationCurve | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    replicates: CalibrationCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot a reliability diagram: the observed frequency of class 1 against its predicted
    probability.

    The curve of a calibrated classifier is near the diagonal. Error bars are Wilson's intervals.
    Grey columns show the fraction of the examples in each bin of the first curve.

    Args:
        y_true, y_prob: labels 0 or 1 and probabilities of class 1, both of shape `(n,)`, for ten
            bins of equal width; or a curve from `calibration_curve` as the only argument. Such a
            curve may have other bins, or isotonic regression with a simultaneous band.
        replicates: S bootstrap replicates of the curve, made as in `roc`. The error bars are then
            replaced by a band, which contains the fraction `level` of the replicates in each bin.
        name: name in the legend.
        level: confidence level of the error bars or of the band.
        ax: matplotlib axes, such as those of an earlier call.

    >>> axes = reliability([0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0], name="first")
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['first', 'calibrated', 'share of examples']
    >>> import jaxmetrics as jm
    >>> curve = jm.calibration_curve([0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0], strategy="isotonic")
    >>> [text.get_text() for text in reliability(curve).get_legend().get_texts()]
    ['observed', 'band', 'calibrated']
    """
    is_isotonic = isinstance(y_true, CalibrationCurve) and y_true.weight is None
    if is_isotonic and replicates is not None:
        raise ValueError(
            "replicates cannot be used with an isotonic curve, because an isotonic curve already"
            " has a confidence band. Leave out replicates."
        )
    curve_of = partial(calibration_curve, level=level)
    options: Any = {"level": level, "may_have_gaps": not is_isotonic}
    curve, curves = _read(CalibrationCurve, curve_of, y_true, y_prob, replicates, **options)
    axes, label, known = axes_or_new(ax), legend_label(name) or "observed", np.isfinite(curve[1])
    columns = np.stack(curve)[:, known]
    if is_first := not axes.has_data():
        _diagonal(axes, "calibrated")
    if is_isotonic:
        x, y, low, high = _corners(columns)
        (line,) = axes.plot(x, y, label=label)
        axes.fill_between(x, low, high, label="band", **_shade(line))
    else:
        x, y, low, high, weight = columns
        if is_first:
            _columns(axes, x, weight, 0.5 / len(known))
        (line,) = axes.plot(x, y, "o-", markersize=4, label=label)
        if replicates is None:
            axes.vlines(x, low, high, color=line.get_color(), linewidth=1.5)
    _band(axes, x, [replicate[1][known] for replicate in curves], level, line)
    return set_unit_square(axes, "predicted probability", "observed frequency", "Reliability")


def _columns(axes: Axes, x: np.ndarray, weight: np.ndarray, width: float) -> None:
    """Draw the fraction of the examples in each bin."""
    style = {"color": ink(), "alpha": 0.15, "zorder": 0}
    axes.bar(x, weight / weight.sum(), width=width, label="share of examples", **style)


def _corners(columns: np.ndarray) -> np.ndarray:
    """Leave out points between equal neighbours from columns of shape `(4, n)`."""
    differs = (np.diff(columns[1:], axis=1) != 0).any(0)
    return columns[:, np.append(differs, True) | np.append(True, differs)]


def _shade(line: Any) -> dict[str, Any]:
    return {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}


def _diagonal(axes: Axes, label: str) -> None:
    axes.plot([0, 1], [0, 1], label=label, **REFERENCE)


def _read(
    kind: type,
    curve_of: Callable[..., Any],
    y_true: Any,
    values: Any,
    replicates: Any,
    level: float,
    *,
    may_have_gaps: bool = False,
) -> tuple[list[np.ndarray], list[Sequence[np.ndarray]]]:
    """Return the arrays of a curve and of its replicates, if any. The curve is computed from labels
    and scores, unless it is given.
    """
    level = check_level(level)
    on_host = (np.asarray(x) if is_jax(x) else x for x in (y_true, values))
    curve = y_true if values is None else curve_of(*on_host)
    given = {"curve": curve} if replicates is None else {"curve": curve, "replicates": replicates}
    for name, x in given.items():
        if not isinstance(x, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, got {type(x).__name__}.")
    of_replicates = [np.asarray(x, float) for x in replicates or ()]
    if any(x.ndim != 2 for x in of_replicates):
        shapes = [x.shape for x in of_replicates]
        raise ValueError(
            "replicates must have exactly one batch axis, so that their shapes begin with (S,"
            f" ...), got the shapes {shapes}."
        )
    arrays = [np.asarray(x, float) for x in curve if x is not None]
    if any(x.ndim != 1 for x in arrays):
        raise ValueError(
            "curve must be the curve of a single classifier, without batch axes, got the shapes"
            f" {[x.shape for x in arrays]}. Call the function once for each classifier."
        )
    are_finite = np.isfinite(arrays[:2])
    if not (are_finite[1].any() if may_have_gaps else are_finite.all()):
        raise ValueError(
            "curve contains NaN, because a class has no examples or a score is NaN. Correct the"
            " scores, or use examples of all classes."
        )
    return arrays, list(zip(*of_replicates, strict=True))


def _band(axes: Any, x: np.ndarray, draws: Sequence[Any], level: float, line: Any) -> None:
    if not draws:
        return
    tail = (1 - level) / 2
    low, high = np.nanquantile(np.asarray(draws), [tail, 1 - tail], axis=0)
    axes.fill_between(x, low, high, label=f"{100 * level:g} % band", **_shade(line))
