"""Plots of ROC curves, precision-recall curves and reliability diagrams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmetrics import (
    average_precision_interval,
    calibration_curve,
    calibration_interval,
    delong_interval,
    precision_recall_curve,
    roc_curve,
)
from jaxmetrics._arguments.single import ArrayLike, check_flag, check_level
from jaxmetrics._places.namespaces import is_jax
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.plots._axes import REFERENCE, axes_or_new, ink, legend_label, set_unit_square
from jaxmetrics.ranking import PrecisionRecallCurve, RocCurve
from jaxmetrics.scoring import CalibrationCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["precision_recall", "reliability", "roc"]

_GRID = np.linspace(0, 1, 301)  # points at which the band is computed
_NUM_THRESHOLDS = 1001  # number of thresholds that are tested for the band
_EPS = np.finfo(float).eps
_NUM_BINS = 10


def roc(
    y_true: RocCurve | ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    band: bool = False,
    replicates: RocCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot a ROC curve with its area in the legend, and optionally a confidence band.

    With `band=True`, the legend contains the interval of the area by `delong_interval`, and a band
    contains the recalls that a score test accepts at each false positive rate. The test accepts
    recall r at the false positive rate t if
    `n (f - t)^2 / (t (1 - t)) + m (h - r)^2 / (r (1 - r)) <= z^2` for any threshold, where f and h
    are its observed false positive rate and recall among n negatives and m positives, and z is the
    normal quantile of `level`. The band is pointwise, not simultaneous. In simulations with 15 to
    1000 examples of each class, a 95 % band contained the true recall in 95 to 100 % of the data
    sets. Claeskens, Jing, Peng and Zhou (2003), Canadian Journal of Statistics 31, use the
    likelihood ratio instead.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(n,)`; or a curve of one
            classifier from `roc_curve` as the only argument.
        band: whether to draw the band, for independent examples. The band needs labels and scores.
        replicates: for another band, such as a band for clusters: S bootstrap replicates of the
            curve (curves of random resamples of the examples), from
            `roc_curve(y_true, y_score, sample_weight=w)`. Here w, of shape `(S, n)`, is how often
            each example was drawn. For example, w is
            `numpy.random.default_rng(0).multinomial(n, np.ones(n) / n, S)`. At each false positive
            rate, the band contains the fraction `level` of the replicates.
        name: name in the legend.
        level: confidence level of the band.
        ax: matplotlib axes, such as those of an earlier call.

    Raises:
        ValueError: if the curve has batch axes or is undefined (NaN), or if `band` is True without
            labels and scores or with replicates.

    >>> import jaxmetrics as jm
    >>> axes = roc([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], name="first")
    >>> axes = roc(jm.roc_curve([0, 1, 0, 1], [0.1, 0.4, 0.3, 0.9]), name="second", ax=axes)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['first, AUC 0.750', 'second, AUC 1.000', 'chance']
    >>> y_true, y_score = [0, 0, 1, 0, 1, 1] * 9, [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 9
    >>> [text.get_text() for text in roc(y_true, y_score, band=True).get_legend().get_texts()]
    ['AUC 0.889 [0.766, 0.951]', '95 % band', 'chance']
    """
    (fpr, tpr, _), curves = _read(RocCurve, roc_curve, y_true, y_score, replicates, level, band)
    axes = axes_or_new(ax)
    is_first = not axes.has_data()
    area: Any = (np.diff(fpr) * (tpr[1:] + tpr[:-1])).sum() / 2
    limits = _quantiles([np.interp(_GRID, x, y) for x, y, _ in curves], level)
    if band:
        examples: Any = y_true, y_score
        area = delong_interval(*examples, level=level)
        negatives, positives = _class_sizes(y_true)
        limits = score_limits(fpr, negatives, tpr, positives, level)
    (line,) = axes.plot(fpr, tpr, label=legend_label(name, f"AUC {area:.3f}"))
    _shade(axes, _GRID, limits, level, line)
    if is_first:
        _diagonal(axes, "chance")
    return set_unit_square(axes, "false positive rate", "true positive rate", "ROC curve")


def precision_recall(
    y_true: PrecisionRecallCurve | ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    band: bool = False,
    replicates: PrecisionRecallCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot a precision-recall curve with its average precision in the legend.

    At each recall r, the curve shows the precision at the highest threshold whose recall is at
    least r. The dotted line is the precision of random scores, the fraction of positives.

    With `band=True`, the legend contains the interval of the average precision by
    `average_precision_interval`, and a band contains the precisions that are compatible with each
    recall r. It is computed and behaves as in `roc`: recall h takes the place of the false positive
    rate f, and the second term tests the share of false positives among false positives and
    positives, `r (1 - p) / (r (1 - p) + p)` at precision p.

    Args:
        y_true, y_score: labels 0 or 1 and real scores, both of shape `(n,)`; or a curve of one
            classifier from `precision_recall_curve` as the only argument.
        band: whether to draw the band, for independent examples. The band needs labels and scores.
        replicates: S bootstrap replicates of the curve for another band, made as in `roc`.
        name: name in the legend.
        level: confidence level of the band.
        ax: matplotlib axes, such as those of an earlier call.

    >>> axes = precision_recall([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['average precision 0.833, chance 0.500']
    """
    kind, curve_of = PrecisionRecallCurve, precision_recall_curve
    (precision, recall, _), curves = _read(kind, curve_of, y_true, y_score, replicates, level, band)
    axes = axes_or_new(ax)
    average: Any = (np.diff(recall) * precision[1:]).sum()
    draws = [y[np.minimum(np.searchsorted(x, _GRID), len(x) - 1)] for y, x, _ in curves]
    limits = _quantiles(draws, level)
    if band:
        examples: Any = y_true, y_score
        average = average_precision_interval(*examples, level=level)
        negatives, positives = _class_sizes(y_true)
        fpr, tpr, _ = map(np.asarray, roc_curve(*examples))
        size = negatives * fpr + positives
        shares = score_limits(tpr, positives, negatives * fpr / size, size, level)
        true = np.maximum(_GRID, _EPS) * (1 - shares[::-1])
        limits = true / (true + shares[::-1])
    chance = precision[-1]
    parts = f"average precision {average:.3f}", f"chance {chance:.3f}"
    (line,) = axes.step(recall, precision, where="pre", label=legend_label(name, *parts))
    _shade(axes, _GRID, limits, level, line)
    axes.axhline(chance, **REFERENCE | {"color": line.get_color()})
    return set_unit_square(axes, "recall", "precision", "Precision and recall")


def reliability(
    y_true: CalibrationCurve | ArrayLike,
    y_prob: ArrayLike | None = None,
    *,
    band: bool = False,
    replicates: CalibrationCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Plot a reliability diagram: the observed frequency of class 1 against its predicted
    probability.

    The curve of a calibrated classifier is near the diagonal. Error bars are Wilson's intervals.
    Grey columns show the fraction of the examples in each bin of the first curve. With `band=True`,
    the error bars become a pointwise band, and the legend contains the calibration error of the
    bins with its interval by `calibration_interval`.

    Args:
        y_true, y_prob: labels 0 or 1 and probabilities of class 1, both of shape `(n,)`, for ten
            bins of equal width; or a curve from `calibration_curve` as the only argument. Such a
            curve may have other bins, or isotonic regression with a simultaneous band.
        band: whether to draw the band, for independent examples. The band needs labels and
            probabilities.
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
    ['observed', 'calibrated', '95 % band']
    """
    is_isotonic = isinstance(y_true, CalibrationCurve) and y_true.weight is None
    if is_isotonic and replicates is not None:
        raise ValueError(
            "replicates cannot be used with an isotonic curve, because an isotonic curve already"
            " has a confidence band. Leave out replicates."
        )
    curve_of = partial(calibration_curve, num_bins=_NUM_BINS, level=level)
    options: Any = {"level": level, "band": band, "may_have_gaps": not is_isotonic}
    curve, curves = _read(CalibrationCurve, curve_of, y_true, y_prob, replicates, **options)
    error = ""
    if band:
        estimate = calibration_interval(y_true, y_prob, num_bins=_NUM_BINS, level=level)
        error = f"calibration error {estimate:.3f}"
    axes, known = axes_or_new(ax), np.isfinite(curve[1])
    label = legend_label(name, error) or "observed"
    columns = np.stack(curve)[:, known]
    if is_first := not axes.has_data():
        _diagonal(axes, "calibrated")
    if is_isotonic:
        x, y, low, high = _corners(columns)
        (line,) = axes.plot(x, y, label=label)
        _shade(axes, x, np.array([low, high]), level, line)
    else:
        x, y, low, high, weight = columns
        if is_first:
            _columns(axes, x, weight, 0.5 / len(known))
        (line,) = axes.plot(x, y, "o-", markersize=4, label=label)
        limits = _quantiles([draw[1][known] for draw in curves], level)
        _shade(axes, x, np.array([low, high]) if band else limits, level, line)
        if not (band or curves):
            axes.vlines(x, low, high, color=line.get_color(), linewidth=1.5)
    return set_unit_square(axes, "predicted probability", "observed frequency", "Reliability")


def _columns(axes: Axes, x: np.ndarray, weight: np.ndarray, width: float) -> None:
    """Draw the fraction of the examples in each bin."""
    style = {"color": ink(), "alpha": 0.15, "zorder": 0}
    axes.bar(x, weight / weight.sum(), width=width, label="share of examples", **style)


def _corners(columns: np.ndarray) -> np.ndarray:
    """Leave out points between equal neighbours from columns of shape `(4, n)`."""
    differs = (np.diff(columns[1:], axis=1) != 0).any(0)
    return columns[:, np.append(differs, True) | np.append(True, differs)]


def _diagonal(axes: Axes, label: str) -> None:
    axes.plot([0, 1], [0, 1], label=label, **REFERENCE)


def _class_sizes(y_true: Any) -> list[Any]:
    return [np.count_nonzero(np.asarray(y_true) == label) for label in (0, 1)]


def score_limits(x: np.ndarray, number: Any, y: np.ndarray, size: Any, level: float) -> np.ndarray:
    """Return the limits `(2, G)` of the proportion y where the proportion x is on the grid.

    For each threshold of the curve, x is observed among `number` examples and y among `size`. The
    limits of a threshold are Wilson's with z^2 minus the term of x, and the limits at a point of
    the grid are the most extreme limits of all thresholds.
    """
    along = x + y
    # At equal distances along the curve and, so that a threshold is accepted, on the grid.
    distances = np.append(np.linspace(0, along[-1], _NUM_THRESHOLDS), np.interp(_GRID, x, along))
    size = np.broadcast_to(size, y.shape)
    x, y, size = (np.interp(distances[:, None], along, part) for part in (x, y, size))
    left = normal_quantile(level) ** 2
    left = left - number * (x - _GRID) ** 2 / np.maximum(_GRID * (1 - _GRID), _EPS)
    is_accepted, left = left >= 0, left.clip(0) / size
    centre, half = y + left / 2, np.sqrt(left * (y * (1 - y) + left / 4))
    low = np.where(is_accepted, (centre - half) / (1 + left), 1).min(0)
    high = np.where(is_accepted, (centre + half) / (1 + left), 0).max(0)
    return np.array([low, high]).clip(0, 1)


def _read(
    kind: type,
    curve_of: Callable[..., Any],
    y_true: Any,
    values: Any,
    replicates: Any,
    level: float,
    band: bool,
    *,
    may_have_gaps: bool = False,
) -> tuple[list[np.ndarray], list[Sequence[np.ndarray]]]:
    """Return the arrays of a curve and of its replicates, if any. The curve is computed from labels
    and scores, unless it is given.
    """
    level = check_level(level)
    if check_flag(band, "band") and (values is None or replicates is not None):
        raise ValueError(
            "band=True computes a band from labels and scores: pass both, and no replicates."
        )
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


def _quantiles(draws: Sequence[Any], level: float) -> np.ndarray | None:
    """Return the limits of the central replicates, or None without replicates."""
    tail = (1 - level) / 2
    return np.nanquantile(np.asarray(draws), [tail, 1 - tail], axis=0) if draws else None


def _shade(axes: Any, x: np.ndarray, limits: np.ndarray | None, level: float, line: Any) -> None:
    """Draw a band between two limits, which is explained once in the legend."""
    if limits is None:
        return
    label = f"{100 * level:g} % band"
    if label in axes.get_legend_handles_labels()[1]:
        label = ""
    axes.fill_between(x, *limits, color=line.get_color(), alpha=0.2, linewidth=0, label=label)
