"""Plots of confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jaxmetrics import confusion_matrix as counts_of
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.labels import as_ids, names_of, ordered_categories
from jaxmetrics._arguments.single import RAVEL, ArrayLike, check_option, check_real, on_host
from jaxmetrics.plots._axes import axes_or_new, ink, name_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["confusion_matrix"]

MOST_CELLS_WITH_NUMBERS = 400
_MOST_NAMES = 50
_MOST_LARGE = 20  # greatest length of a name in the usual font size
_RIGHT, _WRONG = (0.12, 0.47, 0.71), (0.77, 0.25, 0.15)  # blue on the diagonal, red for mistakes


def confusion_matrix(
    y_true: ArrayLike | Sequence[str],
    y_pred: ArrayLike | Sequence[str] | None = None,
    *,
    class_names: Sequence[str] | Sequence[int] | None = None,
    numbers: Literal["counts", "shares"] = "counts",
    colorbar: bool = True,
    scale: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot a confusion matrix; colours show each cell's share of its row (true class).

    Cells on the diagonal are blue. Mistakes are red and have a separate colour scale. Cells have no
    numbers if there are more than 20 classes. Most class names are omitted if there are more than
    50 classes.

    Args:
        y_true, y_pred: true and predicted labels of shape `(n,)`, strings or integers; or a
            confusion matrix `(K, K)` as the only argument.
        class_names: names of classes 0 to K - 1; default: "0" to "K - 1". For labels that are
            strings or other integers, such as [-1, 1], the labels in the order of the rows.
        numbers: whether counts (`"counts"`) or percentages of the true class (`"shares"`) are
            written in the cells.
        colorbar: whether to draw a bar with the colour scale of mistakes.
        scale: the share of a row that gets the strongest red. The default is the greatest share off
            the diagonal. To compare several matrices, use the same scale for all of them.
        ax: matplotlib axes.

    >>> counts = [[9, 3], [1, 7]]
    >>> axes = confusion_matrix(counts, class_names=["cat", "dog"], numbers="shares")
    >>> [text.get_text() for text in axes.texts]
    ['75.0', '25.0', '12.5', '87.5']
    >>> axes = confusion_matrix(["cat", "dog", "dog"], ["cat", "dog", "cat"])
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['cat', 'dog']
    """
    check_option(numbers, "numbers", ("counts", "shares"))
    if scale is not None and not scale > 0:
        raise ValueError(f"scale must be a fraction above 0, got {scale}.")
    check_order(y_true=y_true, y_pred=y_pred)
    if class_names is None:
        class_names = ordered_categories({"y_true": y_true, "y_pred": y_pred})
    if y_pred is None:
        matrix = _as_counts(y_true)
        names = names_of(class_names, len(matrix), "class_names")
    else:
        matrix, names = _counted(on_host(y_true, "y_true"), on_host(y_pred, "y_pred"), class_names)
    rows = matrix.sum(1, keepdims=True)
    shares = np.divide(matrix, rows, out=np.zeros(matrix.shape), where=rows > 0)
    axes = axes_or_new(ax)
    diagonal = np.eye(len(matrix), dtype=bool)
    most = scale or shares[~diagonal].max(initial=0) or 1
    wrong = _draw_shares(axes, np.ma.array(shares, mask=diagonal), _WRONG, most)
    _draw_shares(axes, np.ma.array(shares, mask=~diagonal), _RIGHT, 1)
    if matrix.size <= MOST_CELLS_WITH_NUMBERS:
        _write_cells(axes, matrix, shares, np.where(diagonal, shares, shares / most), numbers)
    _name_classes(axes, names)
    title = "Percent of each true class" if numbers == "shares" else "Counts"
    axes.set(xlabel="predicted class", ylabel="true class", title=title)
    if colorbar:
        label = "share of the true class that is wrong"
        axes.figure.colorbar(wrong, ax=axes, label=label, shrink=0.8)
    return axes


def _as_counts(counts: ArrayLike | Sequence[str]) -> np.ndarray:
    matrix = on_host(counts, "counts")
    check_real(matrix, "counts")
    matrix = matrix.astype(float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(
            f"counts must be a single confusion matrix of shape (K, K), got shape {matrix.shape}."
        )
    if not (np.isfinite(matrix) & (matrix >= 0)).all():
        raise ValueError("counts must be finite and not negative.")
    return matrix


def _counted(
    true: np.ndarray, pred: np.ndarray, class_names: Sequence[Any] | None
) -> tuple[np.ndarray, list[str]]:
    """Count labels of any type, and name the classes."""
    if true.ndim != 1 or true.shape != pred.shape:
        raise ValueError(
            f"y_true and y_pred must be labels of shape (n,), got {true.shape} and {pred.shape}."
            f"{RAVEL} If you have counts of shape (K, K), pass counts as the only positional"
            " argument, and pass the names of the classes as class_names=."
        )
    (true, pred), names = as_ids({"y_true": true, "y_pred": pred}, class_names, None)
    if not names:
        raise ValueError("y_true and y_pred must contain at least one example, but they are empty.")
    return counts_of(true, pred, num_classes=len(names)).astype(float), list(names)


def _write_cells(
    axes: Any, matrix: np.ndarray, shares: np.ndarray, strength: np.ndarray, numbers: str
) -> None:
    for (i, j), count in np.ndenumerate(matrix):
        # Pale cells show the background of the page, so their numbers have the usual text colour.
        colour = "white" if strength[i, j] > 0.7 else "0.55" if count == 0 else ink()
        if numbers == "shares":
            text = f"{100 * shares[i, j]:.1f}" if count else "0"
        else:
            text = f"{count:.4g}" if count % 1 and count < 1000 else f"{count:.0f}"
        cell = axes.text(j, i, text, ha="center", va="center", color=colour, fontsize="small")
        cell.set_in_layout(False)  # the text is within the axes, and measuring it is slow


def _name_classes(axes: Any, names: list[str]) -> None:
    shown = range(0, len(names), -(-len(names) // _MOST_NAMES))
    some = [names[i] for i in shown]
    rotation, ha = (45, "right") if max(map(len, names)) > 3 else (0, "center")
    style: Any = {}
    if len(some) > _MOST_LARGE:
        rotation, ha, style = 90, "center", {"fontsize": "x-small"}
    name_ticks(axes.set_xticks, shown, some, rotation=rotation, ha=ha, **style)
    name_ticks(axes.set_yticks, shown, some, **style)


def _draw_shares(
    axes: Any, shares: np.ndarray, colour: tuple[float, float, float], most: float
) -> Any:
    """Draw fractions in colours from transparent (0) to full (`most`), for any background."""
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("share", [(*colour, 0.0), (*colour, 1.0)])
    return axes.imshow(shares, cmap=scale, vmin=0, vmax=most, interpolation="none")
