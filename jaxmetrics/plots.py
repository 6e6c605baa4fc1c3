"""Draw pictures by matplotlib (the extra `plot`), which is imported when a function is called.

Each function draws on the axes given, or on new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jaxmetrics._validation import ArrayLike, check_level, check_option, check_real
from jaxmetrics.betas import BetaAverage
from jaxmetrics.comparisons import Comparison
from jaxmetrics.comparisons.differences import check_rope
from jaxmetrics.estimates import Estimate
from jaxmetrics.posteriors import balanced_accuracy_posterior
from jaxmetrics.ranking import PrecisionRecallCurve, RocCurve
from jaxmetrics.scoring import CalibrationCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "balanced_accuracy_violin",
    "confusion_matrix",
    "difference",
    "intervals",
    "precision_recall",
    "reliability",
    "roc",
]

MOST_CELLS_WITH_NUMBERS = 400
_MOST_NAMES = 50


def balanced_accuracy_violin(
    counts: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    prior: ArrayLike = 1.0,
    level: float = 0.95,
    samples: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the posteriors of balanced accuracy of several classifiers or checkpoints.

    The outline is the exact density, without kernel smoothing, over the central 99.9 %; all violins
    have one width, so their shapes compare and their areas do not. The bar is the equal-tailed
    interval of `level`, the dot the posterior mean.

    Args:
        counts: `(K, K)` or `(n, K, K)`, row = true class.
        names: n names below the violins; "1" to "n" if not given.
        prior: as for `balanced_accuracy_posterior`.
        level: of the bars.
        samples: `(s, n)` or `(s,)`, drawn as points beside each violin: bootstrap replicates, or
            balanced accuracies of folds.
        ax: matplotlib axes; new ones if not given.

    Returns:
        The axes, with labels of their own.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: counts, names or samples of other shapes, a negative or NaN count, a level
            outside of (0, 1).

    >>> counts = [[[90, 10], [5, 95]], [[80, 20], [9, 91]]]
    >>> axes = balanced_accuracy_violin(counts, ["first", "second"], level=0.9)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['90 % interval', 'posterior mean']
    """
    matrices = _as_matrices(counts)
    n, k = matrices.shape[:2]
    labels = [str(i + 1) for i in range(n)] if names is None else _names(names, n, "names")
    points = None if samples is None else _as_points(samples, n)
    posterior = balanced_accuracy_posterior(matrices, prior=prior)
    if not np.isfinite(posterior.mean).all():
        raise ValueError("counts must not be negative or NaN.")
    low, high = (np.asarray(end) for end in posterior.interval(check_level(level)))
    axes = _axes(ax)
    _outlines(axes, posterior)
    if points is not None:
        _points_beside(axes, points)
    axes.vlines(range(n), low, high, color="C0", linewidth=2.5, label=f"{100 * level:g} % interval")
    dots = {"color": "white", "markeredgecolor": "C0", "label": "posterior mean"}
    axes.plot(range(n), np.asarray(posterior.mean), "o", **dots)
    if axes.get_ylim()[0] <= 1 / k:
        axes.axhline(1 / k, color="0.5", linewidth=1, linestyle=":", label="chance")
    axes.set_xticks(range(n), labels)
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_ylim(top=min(axes.get_ylim()[1], 1))
    axes.set_ylabel("balanced accuracy")
    axes.legend(frameon=False, fontsize="small")
    return axes


def _as_matrices(counts: ArrayLike) -> np.ndarray:
    matrices = np.asarray(counts)
    matrices = matrices[None] if matrices.ndim == 2 else matrices
    if matrices.ndim != 3 or len(matrices) == 0:
        raise ValueError(
            f"counts must have shape (K, K) or (n, K, K) with n > 0, got {matrices.shape}."
        )
    return matrices


def _as_points(samples: ArrayLike, n: int) -> np.ndarray:
    points = np.asarray(samples)
    points = points[:, None] if points.ndim == 1 else points
    if points.shape[1:] != (n,):
        raise ValueError(f"samples must have shape (s, n) = (s, {n}), got {points.shape}.")
    return points


def _outlines(axes: Any, posterior: BetaAverage) -> None:
    """Draw the density of each posterior as the width of a violin."""
    ends = np.asarray(posterior.ppf(np.array([[0.0005], [0.9995]])), float)
    x = np.linspace(ends[0], ends[1], 301)
    density = np.asarray(posterior.pdf(x), float)
    width = 0.4 * density / density.max(0)
    for i, (y, w) in enumerate(zip(x.T, width.T, strict=True)):
        axes.fill_betweenx(y, i - w, i + w, color="C0", alpha=0.35, linewidth=0)


def _points_beside(axes: Any, points: np.ndarray) -> None:
    """Draw points spread evenly, in a fixed random order, over the width of each violin."""
    order = np.random.default_rng(0).permutation(len(points))
    offsets = 0.18 * np.linspace(-1, 1, len(points))[order]
    for i, y in enumerate(points.T):
        axes.plot(i + offsets, y, ".", color=_ink(), markersize=2, alpha=0.4)


def confusion_matrix(
    counts: ArrayLike,
    class_names: Sequence[str] | None = None,
    *,
    numbers: Literal["counts", "shares"] = "counts",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw counts, row = true class: the colour is the share of the row.

    Numbers are left out beyond 20 classes, and most names beyond 50.

    Args:
        counts: `(K, K)`.
        class_names: K names; "0" to "K - 1" if not given.
        numbers: in the cells: the counts, or the shares of the row in percent.
        colorbar: beside the matrix, what the colours mean.
        ax: matplotlib axes; if not given, those of a new figure.

    Returns:
        The axes, with labels of their own.

    Raises:
        ImportError: matplotlib is not installed.
        TypeError: counts that are no real numbers.
        ValueError: counts or names of another shape, a count that is negative or not finite,
            another word for `numbers`.

    >>> axes = confusion_matrix([[9, 3], [1, 7]], ["cat", "dog"], numbers="shares")
    >>> [text.get_text() for text in axes.texts]
    ['75.0', '25.0', '12.5', '87.5']
    """
    check_option(numbers, "numbers", ("counts", "shares"))
    matrix = np.asarray(counts)
    check_real(matrix, "counts")
    matrix = matrix.astype(float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(f"counts must be one matrix (K, K), got {matrix.shape}.")
    if not (np.isfinite(matrix) & (matrix >= 0)).all():
        raise ValueError("counts must be finite and not negative.")
    names = _names(class_names, len(matrix), "class_names")
    rows = matrix.sum(1, keepdims=True)
    shares = np.divide(matrix, rows, out=np.zeros(matrix.shape), where=rows > 0)
    axes = _axes(ax)
    image = axes.imshow(shares, cmap=_opaque_by_share(), vmin=0, vmax=1, interpolation="none")
    if matrix.size <= MOST_CELLS_WITH_NUMBERS:
        _write_cells(axes, matrix, shares, numbers)
    _name_classes(axes, names)
    title = "Percent of each true class" if numbers == "shares" else "Counts"
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    if colorbar:
        axes.figure.colorbar(image, ax=axes, label="share of the true class", shrink=0.8)
    return axes


def _write_cells(axes: Any, matrix: np.ndarray, shares: np.ndarray, numbers: str) -> None:
    for (i, j), count in np.ndenumerate(matrix):
        colour = "white" if shares[i, j] > 0.5 else "0.55" if count == 0 else _ink()
        if numbers == "shares":
            text = f"{100 * shares[i, j]:.1f}" if count else "0"
        else:
            text = f"{count:.4g}" if count % 1 and count < 1000 else f"{count:.0f}"
        cell = axes.text(j, i, text, ha="center", va="center", color=colour, fontsize="small")
        cell.set_in_layout(False)  # it lies within the axes, and to measure it takes time


def _name_classes(axes: Any, names: list[str]) -> None:
    shown = range(0, len(names), -(-len(names) // _MOST_NAMES))
    some = [names[i] for i in shown]
    if max(map(len, names)) > 3:
        axes.set_xticks(shown, some, rotation=45, ha="right")
    else:
        axes.set_xticks(shown, some, rotation=0, ha="center")
    axes.set_yticks(shown, some)


def _opaque_by_share() -> Any:
    """Make a map from nothing to blue, so that the background may be of any colour."""
    from matplotlib.colors import LinearSegmentedColormap

    blue = (0.12, 0.47, 0.71)
    return LinearSegmentedColormap.from_list("share", [(*blue, 0.0), (*blue, 1.0)])


def intervals(
    estimates: Mapping[str, Estimate], *, xlabel: str = "", ax: Axes | None = None
) -> Axes:
    """Draw estimates below each other, each a dot on its interval: a forest plot, first on top.

    Args:
        estimates: one number each, by name: of several metrics, classifiers, groups or checkpoints.
            (A dict that has been through JAX, as those of `bootstrap`, is in alphabetical order.)
        xlabel: what the numbers are.
        ax: matplotlib axes; if not given, those of a new figure.

    Returns:
        The axes.

    Raises:
        ImportError: matplotlib is not installed.
        TypeError: something else than estimates by name.
        ValueError: none, or estimates of arrays.

    >>> import jaxmetrics as jm
    >>> old, new = jm.proportion_interval(18, 20), jm.proportion_interval(180, 200)
    >>> axes = intervals({"old": old, "new": new}, xlabel="accuracy")
    >>> [label.get_text() for label in axes.get_yticklabels()], axes.get_xlabel()
    (['old', 'new'], 'accuracy')
    """
    _check_named(estimates, "estimates", Estimate)
    rows = [[x.value, x.low, x.high] for x in estimates.values()]
    numbers = np.array([[np.asarray(x) for x in row] for row in rows], float)
    if numbers.ndim != 2:
        raise ValueError("estimates must be at least one, of one number each.")
    value, low, high = numbers.T
    axes = _axes(ax)
    y = np.arange(len(value))
    axes.hlines(y, low, high, color="C0", linewidth=2.5, alpha=0.6)
    axes.plot(value, y, "o", color="C0")
    axes.set_yticks(y, list(estimates))
    axes.set_ylim(len(value) - 0.5, -0.5)
    axes.set_xlabel(xlabel)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="x", color=_ink(), alpha=0.12)
    axes.set_axisbelow(True)
    return axes


def difference(
    comparisons: Mapping[str, Comparison], *, rope: float = 0.0, ax: Axes | None = None
) -> Axes:
    """Draw differences A - B below each other, with the probability that A is better.

    Args:
        comparisons: of one number each, by name, as `compare` returns them for a metric that
            returns a dict.
        rope: shades the differences that do not matter.
        ax: matplotlib axes; if not given, those of a new figure.

    Returns:
        The axes.

    Raises:
        ImportError: matplotlib is not installed.
        TypeError: something else than comparisons by name.
        ValueError: none, or comparisons of arrays; a negative `rope`.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a, y_pred_b = [0, 0, 1, 1] * 9, [0, 0, 1, 1] * 9, [0, 1, 1, 1] * 9
    >>> paired = jm.paired_confusion_matrix(y_true, y_pred_a, y_pred_b)
    >>> comparison = jm.compare(0, jm.accuracy, paired, method="delta")
    >>> difference({"accuracy": comparison}, rope=0.02).get_legend().get_texts()[0].get_text()
    'does not matter'
    """
    _check_named(comparisons, "comparisons", Comparison)
    check_rope(rope)
    axes = differences_of({name: x.difference for name, x in comparisons.items()}, rope=rope, ax=ax)
    right_of_axes = axes.get_yaxis_transform()
    for i, x in enumerate(comparisons.values()):
        text = f"P(A > B) = {float(x.probability_better):.3f}"
        axes.text(1.01, i, text, transform=right_of_axes, va="center")
    return axes


def differences_of(differences: Mapping[str, Estimate], *, rope: float, ax: Axes | None) -> Axes:
    """Draw intervals of differences beside zero, and shade those that do not matter."""
    axes = intervals(differences, xlabel="A - B", ax=ax)
    axes.axvline(0, color="0.5", linewidth=1, linestyle=":")
    if rope > 0:
        axes.axvspan(-rope, rope, color="0.5", alpha=0.12, linewidth=0, label="does not matter")
        axes.legend(frameon=False, fontsize="small")
    return axes


def roc(
    curve: RocCurve,
    *,
    replicates: RocCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw a ROC curve, with its area in the legend; with replicates, a band around it.

    The band contains, at each false positive rate, the share `level` of the replicates: it is
    pointwise.

    Args:
        curve: of one classifier, by `roc_curve`.
        replicates: the curve of resampled examples, `(S, ...)`:
            `roc_curve(y_true, y_score, sample_weight=w)` with w `(S, n)` how often each example was
            drawn, such as `numpy.random.default_rng(0).multinomial(n, np.ones(n) / n, S)`.
        name: for the legend.
        level: of the band.
        ax: matplotlib axes, of an earlier call, say; if not given, those of a new figure, which
            pyplot does not know: `roc(curve).figure.savefig("roc.png")`.

    Returns:
        The axes, with labels of their own.

    Raises:
        ImportError: matplotlib is not installed.
        TypeError: another kind of curve.
        ValueError: curves with batch axes, or undefined (NaN); a level outside of (0, 1).

    >>> import jaxmetrics as jm
    >>> axes = roc(jm.roc_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]), name="first")
    >>> axes.get_legend().get_texts()[0].get_text()
    'first, AUC 0.750'
    """
    check_level(level)
    _check_curve(RocCurve, curve, replicates)
    fpr, tpr = _one_curve(curve.fpr, curve.tpr)
    axes = _axes(ax)
    is_first = not axes.has_data()
    area = float((np.diff(fpr) * (tpr[1:] + tpr[:-1])).sum() / 2)
    (line,) = axes.plot(fpr, tpr, label=_label(name, f"AUC {area:.3f}"))
    if replicates is not None:
        grid = np.linspace(0, 1, 301)
        draws = [
            np.interp(grid, x, y)
            for x, y in zip(*_replicates(replicates.fpr, replicates.tpr), strict=True)
        ]
        _band(axes, grid, draws, level, line)
    if is_first:
        axes.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":", label="chance")
    return _unit_square(axes, "false positive rate", "true positive rate", "ROC curve")


def precision_recall(
    curve: PrecisionRecallCurve,
    *,
    replicates: PrecisionRecallCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw precision against recall in steps, with the average precision in the legend.

    With replicates there is a band around it. At each recall the curve shows the precision of the
    highest threshold that reaches it. Arguments and errors as `roc`, with curves by
    `precision_recall_curve`.

    >>> import jaxmetrics as jm
    >>> axes = precision_recall(jm.precision_recall_curve([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]))
    >>> axes.get_legend().get_texts()[0].get_text()
    'average precision 0.833'
    """
    check_level(level)
    _check_curve(PrecisionRecallCurve, curve, replicates)
    recall, precision = _one_curve(curve.recall, curve.precision)
    axes = _axes(ax)
    is_first = not axes.has_data()
    average = float((np.diff(recall) * precision[1:]).sum())
    (line,) = axes.step(
        recall, precision, where="pre", label=_label(name, f"average precision {average:.3f}")
    )
    if replicates is not None:
        grid = np.linspace(0, 1, 301)
        draws = [
            y[np.minimum(np.searchsorted(x, grid), len(x) - 1)]
            for x, y in zip(*_replicates(replicates.recall, replicates.precision), strict=True)
        ]
        _band(axes, grid, draws, level, line)
    chance = {"label": "chance"} if is_first else {}
    axes.axhline(precision[-1], color=line.get_color(), linewidth=1, linestyle=":", **chance)
    return _unit_square(axes, "recall", "precision", "Precision and recall")


def reliability(
    curve: CalibrationCurve,
    *,
    replicates: CalibrationCurve | None = None,
    name: str = "",
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw a reliability diagram: how often class 1 occurs where its probability is p.

    On the diagonal it is calibrated. Bars are Wilson's intervals, those of `curve`; with replicates
    there is a band instead, which contains the share `level` of them in each bin. The grey columns
    are the share of the examples in each bin, of the first curve on the axes.

    Args:
        curve: by `calibration_curve`.
        replicates: the curve of resampled examples, `(S, ...)`, as for `roc`.

    Other arguments and errors as `roc`.

    >>> import jaxmetrics as jm
    >>> curve = jm.calibration_curve([0, 0, 1, 1], [0.125, 0.25, 0.5, 1.0], num_bins=2)
    >>> axes = reliability(curve, name="first")
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['calibrated', 'first', 'share of examples']
    """
    check_level(level)
    _check_curve(CalibrationCurve, curve, replicates)
    x, y, low, high, weight = _one_curve(*curve, may_have_gaps=True)
    axes = _axes(ax)
    found = np.isfinite(y)
    if not axes.has_data():
        axes.plot([0, 1], [0, 1], color="0.5", linewidth=1, linestyle=":", label="calibrated")
        share = (weight / weight.sum())[found]
        columns = {"width": 0.5 / len(x), "color": _ink(), "alpha": 0.15, "zorder": 0}
        axes.bar(x[found], share, label="share of examples", **columns)
    (line,) = axes.plot(x[found], y[found], "o-", markersize=4, label=_label(name) or "observed")
    if replicates is None:
        axes.vlines(x[found], low[found], high[found], color=line.get_color(), linewidth=1.5)
    else:
        (draws,) = _replicates(replicates.frequency)
        _band(axes, x[found], draws[:, found], level, line)
    return _unit_square(axes, "predicted probability", "observed frequency", "Reliability")


def _names(names: Sequence[str] | None, size: int, argument: str) -> list[str]:
    labels = list(map(str, range(size) if names is None else names))
    if len(labels) != size:
        raise ValueError(f"{argument} must be one name each: expected {size}, got {len(labels)}.")
    return labels


def _check_named(values: Any, argument: str, kind: type) -> None:
    if not isinstance(values, Mapping) or not all(isinstance(x, kind) for x in values.values()):
        raise TypeError(f"{argument} must be a dict of {kind.__name__}s by name.")


def _check_curve(kind: type, curve: Any, replicates: Any) -> None:
    for name, x in (("curve", curve), ("replicates", replicates)):
        if not (isinstance(x, kind) or (name == "replicates" and x is None)):
            raise TypeError(f"{name} must be a {kind.__name__}, got {type(x).__name__}.")


def _one_curve(*coordinates: Any, may_have_gaps: bool = False) -> list[np.ndarray]:
    arrays = [np.asarray(x, float) for x in coordinates]
    if any(x.ndim != 1 for x in arrays):
        raise ValueError(
            f"curve must be of one classifier, without batch axes, got {[x.shape for x in arrays]}:"
            " call once for each."
        )
    if may_have_gaps:
        is_defined = np.isfinite(arrays[1]).any()
    else:
        is_defined = all(np.isfinite(x).all() for x in arrays)
    if not is_defined:
        raise ValueError("curve is undefined: a class is missing, or a score is NaN.")
    return arrays


def _replicates(*coordinates: Any) -> list[np.ndarray]:
    arrays = [np.asarray(x, float) for x in coordinates]
    if any(x.ndim != 2 for x in arrays):
        raise ValueError(
            "replicates must have one batch axis, (S, ...), got shapes"
            f" {[x.shape for x in arrays]}."
        )
    return arrays


def _band(axes: Any, x: np.ndarray, draws: Any, level: float, line: Any) -> None:
    tail = (1 - level) / 2
    low, high = np.nanquantile(np.asarray(draws), [tail, 1 - tail], axis=0)
    band = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}
    axes.fill_between(x, low, high, label=f"{100 * level:g} % band", **band)


def _label(*parts: str) -> str:
    """Join parts for a legend, which would leave out what begins with an underscore."""
    label = ", ".join(part for part in parts if part)
    return f" {label}" if label.startswith("_") else label


def _unit_square(axes: Any, x: str, y: str, title: str) -> Any:
    axes.set(
        xlabel=x, ylabel=y, title=title, xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal"
    )
    axes.legend(frameon=False, fontsize="small")
    return axes


def _ink() -> Any:
    """Return the colour of text, for what should be seen on any background."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(
            "jaxmetrics.plots needs matplotlib: pip install 'jaxmetrics[plot]'."
        ) from None
    return Figure(layout="constrained").add_subplot()
