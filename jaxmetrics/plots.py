"""Pictures. matplotlib (the extra `plot`) is imported inside the functions; each draws on the axes given, or on new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmetrics._arrays import ArrayLike, check_level
from jaxmetrics.posteriors import balanced_accuracy_posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["balanced_accuracy_violin"]


def balanced_accuracy_violin(
    counts: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    prior: ArrayLike = 1.0,
    level: float = 0.95,
    samples: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The posterior of balanced accuracy of several classifiers or checkpoints, side by side.

    The outline is the exact density, without kernel smoothing, over the central 99.9 %; all violins have one width, so their
    shapes compare and their areas do not. The bar is the equal-tailed interval of `level`, the dot the posterior mean.

    Args:
        counts: `(K, K)` or `(n, K, K)`, row = true class.
        names: n names below the violins; "1" to "n" if not given.
        prior: as for `balanced_accuracy_posterior`.
        level: of the bars.
        samples: `(s, n)` or `(s,)`, drawn as points beside each violin: bootstrap replicates, or balanced accuracies of folds.
        ax: matplotlib axes; new ones if not given.

    Returns:
        The axes, with labels of their own.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: counts, names or samples of other shapes, a negative or NaN count, a level outside of (0, 1).
    """
    matrices = np.asarray(counts)
    matrices = matrices[None] if matrices.ndim == 2 else matrices
    if matrices.ndim != 3 or len(matrices) == 0:
        raise ValueError(f"counts must have shape (K, K) or (n, K, K) with n > 0, got {matrices.shape}.")
    n, k = matrices.shape[:2]
    labels = [str(i + 1) for i in range(n)] if names is None else list(names)
    if len(labels) != n:
        raise ValueError(f"names must have one name per matrix: expected {n}, got {len(labels)}.")
    points = None if samples is None else np.asarray(samples)
    points = points[:, None] if points is not None and points.ndim == 1 else points
    if points is not None and points.shape[1:] != (n,):
        raise ValueError(f"samples must have shape (s, n) = (s, {n}), got {points.shape}.")
    posterior = balanced_accuracy_posterior(matrices, prior=prior)
    if not np.isfinite(posterior.mean).all():
        raise ValueError("counts must not be negative or NaN.")
    axes = _axes(ax)
    ends = np.asarray(posterior.ppf(np.array([[0.0005], [0.9995]])), float)
    x = np.linspace(ends[0], ends[1], 301)
    density = np.asarray(posterior.pdf(x), float)
    width = 0.4 * density / density.max(0)
    low, high = (np.asarray(end) for end in posterior.interval(check_level(level)))
    for i in range(n):
        axes.fill_betweenx(x[:, i], i - width[:, i], i + width[:, i], color="C0", alpha=0.35, linewidth=0)
        if points is not None:
            beside = i + 0.18 * np.linspace(-1, 1, len(points))[np.random.default_rng(0).permutation(len(points))]
            axes.plot(beside, points[:, i], ".", color="0.35", markersize=2, alpha=0.6)
    axes.vlines(range(n), low, high, color="C0", linewidth=2.5, label=f"{100 * level:g} % interval")
    axes.plot(range(n), np.asarray(posterior.mean), "o", color="white", markeredgecolor="C0", label="posterior mean")
    if axes.get_ylim()[0] <= 1 / k:
        axes.axhline(1 / k, color="0.5", linewidth=1, linestyle=":", label="chance")
    axes.set_xticks(range(n), labels)
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_ylim(top=min(axes.get_ylim()[1], 1))
    axes.set_ylabel("balanced accuracy")
    axes.legend(frameon=False, fontsize="small")
    return axes


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("jaxmetrics.plots needs matplotlib: pip install 'jaxmetrics[plot]'.") from None
    return Figure(layout="constrained").add_subplot()
