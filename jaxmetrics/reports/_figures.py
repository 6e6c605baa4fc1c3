"""The numbers of a report: what is computed from one confusion matrix, and how a number with its interval is written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from jaxmetrics._cell_sums import cells
from jaxmetrics._estimates import Metric
from jaxmetrics.intervals import Estimate, delta_method, posterior, proportion_interval
from jaxmetrics.metrics import accuracy, balanced_accuracy, cohen_kappa, f1, macro, matthews_corrcoef, weighted
from jaxmetrics.posteriors import balanced_accuracy_posterior

__all__ = ["Figure"]


class Figure(NamedTuple):
    """One number of a report, with its interval.

    `interval` names its method: `"wilson"` for proportions and for F1, `"delta"` for what else is a smooth function of the
    counts (on the logit scale, or atanh where values can be negative), `"posterior"` where no error was seen, so that the delta
    method would give no width, and for the posterior balanced accuracy, `"bca"` in comparisons, `"normal"` for means,
    `"newcombe"` for the area under a ROC curve without a mistake, `"bounds"` where the exact value of an area lies between the
    two. None: no interval.
    """

    value: float
    low: float | None = None
    high: float | None = None
    interval: str | None = None


class PerClass(NamedTuple):
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: Estimate


_PROPORTIONS = ("accuracy", "micro_f1", "no_information_rate")
_FRACTIONS: dict[str, Metric] = {"balanced_accuracy": balanced_accuracy, "macro_f1": macro(f1), "weighted_f1": weighted(f1)}
_COEFFICIENTS: dict[str, Metric] = {"matthews_corrcoef": matthews_corrcoef, "cohen_kappa": cohen_kappa}
_ORDER = (
    *("accuracy", "balanced_accuracy", "macro_f1", "micro_f1", "weighted_f1"),
    *("matthews_corrcoef", "cohen_kappa", "no_information_rate"),
)


COMPARED: dict[str, Metric] = {"accuracy": accuracy} | _FRACTIONS | _COEFFICIENTS


def _all_of(metrics: Mapping[str, Metric]) -> Metric:
    return lambda counts: {name: metric(counts) for name, metric in metrics.items()}


_fractions, _coefficients, compared_metrics = map(_all_of, (_FRACTIONS, _COEFFICIENTS, COMPARED))


@partial(jax.jit, static_argnames="level")
def evaluate(counts: jax.Array, level: float) -> tuple[dict[str, Estimate], PerClass]:
    """The overall estimates and those of each class."""
    tp, fp, fn, tn = cells(counts)
    proportion = partial(proportion_interval, level=level)
    right = proportion(tp.sum(), counts.sum())  # with one label per example the micro F1, too
    overall = {"accuracy": right, "micro_f1": right}
    overall["no_information_rate"] = proportion(counts.sum(-1).max(), counts.sum())
    overall |= delta_method(_fractions, counts, level=level, transform="logit")
    overall |= delta_method(_coefficients, counts, level=level, transform="atanh")
    per_class = PerClass(
        precision=proportion(tp, tp + fp),
        recall=proportion(tp, tp + fn),
        specificity=proportion(tn, tn + fp),
        f1=jax.tree.map(lambda j: 2 * j / (1 + j), proportion(tp, tp + fp + fn)),  # F1 grows with Jaccard's index, a proportion
    )
    return overall, per_class


def overall_figures(matrix: np.ndarray, level: float, estimates: Mapping[str, Estimate]) -> dict[str, Figure]:
    """With the posterior's interval, extended to the value, where the delta method has none since no error was seen."""
    figures = {name: figure_of(estimates[name], "wilson" if name in _PROPORTIONS else "delta") for name in _ORDER}
    certain = [name for name, x in figures.items() if x.interval == "delta" and x.low == x.high]
    if certain:
        occurring = (matrix.sum(0) > 0) | (matrix.sum(1) > 0)
        present = matrix[np.ix_(occurring, occurring)] if occurring.sum() > 1 else matrix
        believed = posterior(jax.random.key(0), compared_metrics, present, num_samples=10_000, level=level)
        for name in certain:
            value, low, high = figures[name].value, float(believed[name].low), float(believed[name].high)
            figures[name] = Figure(value, min(value, low), max(value, high), "posterior")
    return figures


def balanced_accuracy_figure(matrix: np.ndarray, level: float) -> Figure:
    """Mean and equal-tailed interval of balanced accuracy under a flat prior; a class without examples keeps its prior."""
    law = balanced_accuracy_posterior(matrix)
    low, high = law.interval(level)
    return Figure(float(law.mean), float(low), float(high), "posterior")


def figure_of(x: Estimate, interval: str) -> Figure:
    return Figure(float(x.value)) if np.isnan(x.low) else Figure(float(x.value), float(x.low), float(x.high), interval)


def figure_dict(figure: Figure) -> dict[str, float | str | None]:
    known = {key: x for key, x in figure._asdict().items() if key == "value" or x is not None}
    return {key: None if isinstance(x, float) and math.isnan(x) else x for key, x in known.items()}


_WRITTEN = {"f1": "F1", "matthews corrcoef": "MCC (Matthews)", "cohen": "Cohen", "roc auc": "ROC AUC", "brier": "Brier"}


def title_of(name: str) -> str:
    title = name.replace("_", " ")
    for plain, written in _WRITTEN.items():
        title = title.replace(plain, written)
    return title


def printable(name: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def fraction(x: float) -> str:
    """Three decimals, or up to six where fewer would show 0 or 1 for what is neither."""
    decimals = next((d for d in range(3, 7) if 0 < abs(round(x, d)) < 1), 3)
    return "-" if math.isnan(x) else f"{round(x, decimals) + 0.0:.{decimals}f}"  # never -0.000


def cell(figure: Figure, signed: bool = False) -> str:
    if figure.low is None or figure.high is None:
        return fraction(figure.value)
    low, high = (fraction(end).replace("0.", ".", 1) for end in (figure.low, figure.high))
    return f"{fraction(figure.value)} {low}{' to ' if signed or figure.low < 0 else '-'}{high}"


def table_of(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
