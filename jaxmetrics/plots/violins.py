"""Violin plots of posterior distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmetrics import balanced_accuracy_posterior
from jaxmetrics._arguments.labels import names_of
from jaxmetrics._arguments.single import ArrayLike, check_level, on_host
from jaxmetrics.betas import BetaAverage
from jaxmetrics.plots._axes import REFERENCE, add_legend, axes_or_new, ink, name_ticks

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
    """Draw violin plots of the posterior balanced accuracy of several classifiers or checkpoints.

    The outline of a violin is the exact posterior density on its central 99.9 %, without kernel
    smoothing. All violins have the same width, so their areas cannot be compared. The bar is the
    equal-tailed credible interval, and the dot is the posterior mean.

    Args:
        counts: one or n confusion matrices of shape `(K, K)` or `(n, K, K)`; rows are true classes.
        names: n names below the violins; default: "1" to "n".
        prior: prior of each recall, a number or `(alpha, beta)`, as in
            `balanced_accuracy_posterior`.
        level: probability of the credible intervals.
        samples: values of shape `(s,)` or `(s, n)` to draw as points beside each violin, such as
            bootstrap replicates or the balanced accuracies of folds.
        ax: matplotlib axes.

    >>> counts = [[[90, 10], [5, 95]], [[80, 20], [9, 91]]]
    >>> axes = balanced_accuracy_violin(counts, ["first", "second"], level=0.9)
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['90 % interval', 'posterior mean']
    """
    matrices = _as_matrices(counts)
    n, k = matrices.shape[:2]
    labels = [str(i + 1) for i in range(n)] if names is None else names_of(names, n, "names")
    points = None if samples is None else _as_points(samples, n)
    posterior = balanced_accuracy_posterior(matrices, prior=prior)
    if not np.isfinite(posterior.mean).all():
        raise ValueError("counts must not be negative or NaN.")
    low, high = (np.asarray(end) for end in posterior.interval(check_level(level)))
    axes = axes_or_new(ax)
    _outlines(axes, posterior)
    if points is not None:
        _points_beside(axes, points)
    axes.vlines(range(n), low, high, color="C0", linewidth=2.5, label=f"{100 * level:g} % interval")
    dots = {"color": "white", "markeredgecolor": "C0", "label": "posterior mean"}
    axes.plot(range(n), np.asarray(posterior.mean), "o", **dots)
    if axes.get_ylim()[0] <= 1 / k:
        axes.axhline(1 / k, label="chance", **REFERENCE)
    name_ticks(axes.set_xticks, range(n), labels)
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_ylim(top=min(axes.get_ylim()[1], 1))
    axes.set_ylabel("balanced accuracy")
    add_legend(axes)
    return axes


def _as_matrices(counts: ArrayLike) -> np.ndarray:
    matrices = on_host(counts, "counts")
    matrices = matrices[None] if matrices.ndim == 2 else matrices
    if matrices.ndim != 3 or len(matrices) == 0:
        raise ValueError(
            f"counts must have shape (K, K), or shape (n, K, K) with n > 0, got {matrices.shape}."
        )
    return matrices


def _as_points(samples: ArrayLike, n: int) -> np.ndarray:
    points = on_host(samples, "samples")
    points = points[:, None] if points.ndim == 1 else points
    if points.shape[1:] != (n,):
        raise ValueError(
            f"samples must have shape (s, {n}), with s draws for each of the {n} posteriors, got"
            f" {points.shape}."
        )
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
    """Draw points beside each violin; their horizontal offsets are evenly spaced, in random
    order.
    """
    order = np.random.default_rng(0).permutation(len(points))
    offsets = 0.18 * np.linspace(-1, 1, len(points))[order]
    for i, y in enumerate(points.T):
        axes.plot(i + offsets, y, ".", color=ink(), markersize=2, alpha=0.4)
