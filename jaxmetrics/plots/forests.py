"""Forest plots: values with their confidence intervals, one below the other."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmetrics import Comparison, Estimate, Leaderboard
from jaxmetrics._arguments.labels import names_of
from jaxmetrics._arguments.single import on_host
from jaxmetrics._text.standings import labelled_standings, tiers_in_words
from jaxmetrics._text.wording import CONFIDENCE, labels_of, probability
from jaxmetrics.comparisons.classifiers import check_rope
from jaxmetrics.plots._axes import REFERENCE, add_legend, axes_or_new, ink, name_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["difference", "groups", "intervals", "leaderboard"]

MOST_ROWS = 50
_GAP = 0.6  # gap between tiers in units of rows
_LONGEST_LINE, _LONGEST_NAME = 36, 28


def intervals(
    estimates: Estimate | Mapping[str, Any],
    names: Sequence[str] | None = None,
    *,
    xlabel: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a forest plot of estimates: each is a dot with its error bar, and the first is on top.

    Args:
        estimates: a dict of `Estimate`s by name, or a single `Estimate` of one or n numbers. Dicts
            that were returned by JAX functions are in alphabetical order.
        names: names of the n values of a single `Estimate`; default: "0" to "n - 1".
        xlabel: label of the horizontal axis.
        ax: matplotlib axes.

    >>> import jaxmetrics as jm
    >>> old, new = jm.proportion_interval(18, 20), jm.proportion_interval(180, 200)
    >>> axes = intervals({"old": old, "new": new}, xlabel="accuracy")
    >>> [label.get_text() for label in axes.get_yticklabels()], axes.get_xlabel()
    (['old', 'new'], 'accuracy')
    >>> axes = intervals(jm.proportion_interval([90, 95], [100, 100]), ["cat", "dog"])
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['cat', 'dog']
    """
    estimates = getattr(estimates, "estimate", estimates)  # of a value of a report
    if isinstance(estimates, Estimate):
        ends = estimates.value, estimates.low, estimates.high
        parts = (on_host(x, "estimates").astype(float) for x in ends)
        numbers = np.stack([np.atleast_1d(part) for part in parts], -1)
        one_name = [""] if np.ndim(estimates.value) == 0 else None
        labels = names_of(one_name if names is None else names, len(numbers), "names")
    else:
        _check_named(estimates, "estimates", ("value", "low", "high"), "Estimate")
        rows = [[x.value, x.low, x.high] for x in estimates.values()]
        numbers = np.array([[on_host(x, "estimates") for x in row] for row in rows], float)
        labels = list(estimates)
    if numbers.ndim != 2 or len(numbers) == 0:
        raise ValueError(
            "estimates must contain at least one Estimate, and each Estimate must be a single"
            " number."
        )
    return forest(labels, numbers, xlabel=xlabel, ax=ax)


def size_of(num_rows: int, width: float = 6.4) -> tuple[float, float]:
    """Return the size of a forest plot in inches."""
    return width, max(1.7, 1 + 0.24 * num_rows)


def forest(
    labels: Sequence[str], numbers: np.ndarray, *, xlabel: str, ax: Any, y: np.ndarray | None = None
) -> Any:
    """Draw n intervals (value, low, high) at the heights y, from the top."""
    value, low, high = numbers.T
    y = np.arange(len(value)) if y is None else y
    axes = axes_or_new(ax, size_of(len(value)))
    axes.hlines(y, low, high, color="C0", linewidth=2.5, alpha=0.6)
    axes.plot(value, y, "o", color="C0")
    name_ticks(axes.set_yticks, y, labels_of(labels, _LONGEST_NAME))
    axes.set_ylim(y[-1] + 0.5, y[0] - 0.5)
    axes.set_xlabel(xlabel)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="x", color=ink(), alpha=0.12)
    axes.set_axisbelow(True)
    return axes


def difference(
    comparisons: Comparison | Mapping[str, Any], *, rope: float = 0.0, ax: Axes | None = None
) -> Axes:
    """Draw a forest plot of differences between classifiers A and B, with the confidence that A
    is better.

    Args:
        comparisons: a single `Comparison`, or a dict of `Comparison`s by name.
        rope: the largest difference that does not matter to you, a number >= 0. The plot shades the
            range from -rope to rope, the region of practical equivalence.
        ax: matplotlib axes.

    >>> import jaxmetrics as jm
    >>> y_true, y_pred_a, y_pred_b = [0, 0, 1, 1] * 9, [0, 0, 1, 1] * 9, [0, 1, 1, 1] * 9
    >>> paired = jm.paired_confusion_matrix(y_true, y_pred_a, y_pred_b)
    >>> comparison = jm.compare(jm.accuracy, paired, method=jm.Delta())
    >>> difference({"accuracy": comparison}, rope=0.02).get_legend().get_texts()[0].get_text()
    'does not matter'
    """
    named = comparisons if isinstance(comparisons, Mapping) else {"": comparisons}
    _check_named(named, "comparisons", ("difference", "probability_better"), "Comparison")
    check_rope(rope)
    axes = intervals({name: x.difference for name, x in named.items()}, xlabel="A - B", ax=ax)
    axes.axvline(0, **REFERENCE)
    if rope > 0:
        axes.axvspan(-rope, rope, color="0.5", alpha=0.12, linewidth=0, label="does not matter")
        add_legend(axes)
    axes.text(1.02, 1, CONFIDENCE, transform=axes.transAxes, va="bottom", fontsize="small")
    for i, x in enumerate(named.values()):
        text = probability(float(x.probability_better))
        axes.text(1.02, i, text, transform=axes.get_yaxis_transform(), va="center")
    return axes


def groups(
    values: Mapping[str, Any],
    total: Any = None,
    *,
    largest_difference: Estimate | None = None,
    xlabel: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a forest plot of groups or tasks, in the given order, and of all examples below.

    Args:
        values: a dict of `Estimate`s or `Comparison`s by group, or of such values of a report:
            `report["group"]` of `score_report`, or, with groups in `report`,
            `{name: x["accuracy"] for name, x in report.groups.items()}`. The 50 least are drawn.
        total: the value of all examples, such as `report["mean"]` or `report["accuracy"]`, which is
            also drawn as a dotted line.
        largest_difference: the result of `compare_groups`, which is written above the plot.
        xlabel: label of the horizontal axis; not used for comparisons.
        ax: matplotlib axes.

    >>> import jaxmetrics as jm
    >>> right, task = [1, 1, 0, 1, 1, 0, 1, 1] * 6, ["law"] * 16 + ["math"] * 16 + ["art"] * 16
    >>> report = jm.score_report(right, groups=task, bounds=(0, 1))
    >>> axes = groups(report["group"], report["mean"], xlabel="accuracy")
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['art', 'law', 'math', '(all)']
    """
    _check_named(values, "values", (), "Estimate")
    estimates = [getattr(x, "difference", x) for x in values.values()]
    order = np.argsort([float(getattr(x, "value", x)) for x in estimates], kind="stable")
    named = [*values.items()]
    rows = dict(named[i] for i in sorted(order[:MOST_ROWS]))
    if total is not None:
        rows["(all)"] = total
    if all(hasattr(x, "difference") for x in rows.values()):
        axes = difference(rows, ax=ax)
    else:
        axes = intervals(rows, xlabel=xlabel, ax=ax)
        if total is not None:
            axes.axvline(float(total.value), **REFERENCE)
    titles = [f"the {MOST_ROWS} least of {len(named)}"] * (len(named) > MOST_ROWS)
    if largest_difference is not None:
        titles.append(f"largest difference {largest_difference}")
    if titles:
        axes.set_title("\n".join(titles), fontsize="medium")
    return axes


def leaderboard(
    board: Leaderboard,
    names: Sequence[str] | None = None,
    *,
    in_words: bool = True,
    xlabel: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a forest plot of a leaderboard, with the best classifier on top.

    Classifiers that cannot be told apart form a tier. The plot says in words what each tier means,
    or has the numbers of the tiers if `in_words` is False, which is narrower. The diamond is the
    expected value of the winner on new examples, corrected for its selection as the best. At most
    50 classifiers are drawn.

    Args:
        board: result of `leaderboard`.
        names: names of the M classifiers; default: `board.names`, or "0" to "M - 1".
        in_words: whether tiers are described in sentences.
        xlabel: label of the horizontal axis.
        ax: matplotlib axes.

    >>> import jaxmetrics as jm
    >>> y_true = [0, 0, 1, 1, 1, 0] * 20
    >>> y_preds = [[0, 0, 1, 1, 1, 1] * 20, [0, 1, 1, 1, 0, 1] * 20, [0, 0, 1, 1, 0, 0] * 20]
    >>> board = jm.leaderboard(jm.accuracy, y_true, y_preds)
    >>> axes = leaderboard(board, ["old", "tiny", "new"], xlabel="accuracy")
    >>> [text.get_text() for text in axes.texts]
    ['old and new cannot be told apart.', 'tiny is shown to be worse than one\\nabove.']
    """
    if not isinstance(board, Leaderboard):
        raise TypeError(f"board must be a Leaderboard, got {type(board).__name__}.")
    rows = labelled_standings(board, names)
    shown = rows[:MOST_ROWS]
    tiers = np.array([x.tier for x in shown])
    y = np.arange(len(shown)) + _GAP * (tiers - 1)
    axes = axes_or_new(ax, (8, 1 + 0.3 * (y[-1] + 1)))
    numbers = np.array([[x.estimate.value, x.estimate.low, x.estimate.high] for x in shown], float)
    forest([x.name for x in shown], numbers, xlabel=xlabel, ax=axes, y=y)
    if len(shown) < len(rows):
        axes.set_title(f"the first {len(shown)} of {len(rows)}")
    sentences = [f"tier {i}" for i in range(1, tiers[-1] + 1)]
    if in_words:
        sentences = tiers_in_words([x for x in rows if x.tier <= tiers[-1]])
    _write_tiers(axes, y, tiers, sentences)
    winner = board.winner_estimate
    below = y[0] + 0.3
    axes.hlines(below, winner.low, winner.high, color="C1", linewidth=1.5, alpha=0.6)
    axes.plot(
        winner.value, below, "d", color="C1", markersize=5, label="the winner, on new examples"
    )
    add_legend(axes)
    return axes


def _write_tiers(axes: Any, y: np.ndarray, tiers: np.ndarray, sentences: list[str]) -> None:
    """Write a sentence on the right of each tier, next to a vertical line."""
    right_of_axes = axes.get_yaxis_transform()
    for tier, sentence in enumerate(sentences, 1):
        of_tier = y[tiers == tier]
        ends = [of_tier[0] - 0.3, of_tier[-1] + 0.3]
        axes.plot([1.02] * 2, ends, transform=right_of_axes, color="0.5", clip_on=False)
        text = textwrap.fill(sentence, _LONGEST_LINE, break_on_hyphens=False)
        style = {"va": "center", "fontsize": "small", "parse_math": False}
        axes.text(1.04, np.mean(ends), text, transform=right_of_axes, **style)


def _check_named(values: Any, argument: str, parts: tuple[str, ...], kind: str) -> None:
    is_named = isinstance(values, Mapping) and all(
        hasattr(x, part) for x in values.values() for part in parts
    )
    if not is_named:
        raise TypeError(f"{argument} must be a dict of {kind}s by name.")
