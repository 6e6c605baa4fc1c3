"""What a comparison says of probabilities and scores."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from jaxmetrics.comparisons import delong
from jaxmetrics.estimates import Estimate, normal_quantile
from jaxmetrics.intervals import mean_interval
from jaxmetrics.reports.probabilities import losses_of, worst_brier_score
from jaxmetrics.reports.values import ComparedValue, value_of

__all__: list[str] = []

_MOST_CLASSES = 10  # of which every area is compared


def compared_probabilities(
    y_true: np.ndarray,
    probs: Sequence[np.ndarray],
    class_names: Sequence[str],
    *,
    rope: float,
    level: float,
    clusters: Sequence[Any] | None = None,
) -> dict[str, ComparedValue]:
    """Compare two arrays of probabilities `(n, K)` for the same examples, class ids `(n,)`.

    Losses are compared by their mean difference, with Student's interval; areas, of the last of two
    classes or of each of up to ten, by DeLong's variance.
    """
    options: dict[str, Any] = {"level": level, "clusters": clusters}
    losses = [losses_of(y_true, prob)[1:] for prob in probs]
    scales: dict[str, tuple[str, dict[str, Any]]] = {
        "log_loss": ("student", {"transform": "log"}),
        "brier_score": ("likelihood", {"bounds": (0, worst_brier_score(probs[0]))}),
    }
    found = {}
    for (name, (method, scale)), a, b in zip(scales.items(), *losses, strict=True):
        of_a, of_b = (mean_interval(x, **scale, **options) for x in (a, b))
        difference = mean_interval(a - b, **options)
        found[name] = _compared(of_a, of_b, difference, "student", rope, level, method)
    events = [1] if len(class_names) == 2 else range(min(len(class_names), _MOST_CLASSES + 1))
    if len(events) > _MOST_CLASSES:
        return found
    for i in events:
        name = "roc_auc" if len(class_names) == 2 else f"roc_auc_{class_names[i]}"
        scores = [prob[:, i] for prob in probs]
        found[name] = compared_areas(y_true == i, scores, rope=rope, **options)
    return found


def compared_areas(
    y_true: np.ndarray,
    scores: Sequence[np.ndarray],
    *,
    rope: float,
    level: float,
    clusters: Sequence[Any] | None = None,
) -> ComparedValue:
    """Compare the areas under the ROC curves of two scores of the same event."""
    areas = delong(y_true, *scores, level=level, clusters=clusters)
    return _compared(areas.a, areas.b, areas.difference, "mover", rope, level, "score")


def _compared(
    a: Estimate,
    b: Estimate,
    difference: Estimate,
    method: str,
    rope: float,
    level: float,
    method_of_one: str | None = None,
) -> ComparedValue:
    """Add probabilities: of two normal halves with their quantiles at the ends of the interval."""
    d, low, high = map(float, difference[:3])
    z = normal_quantile(level)

    def below(limit: float) -> float:
        error = (d - low if limit < d else high - d) / z
        if np.isnan(error):
            return float("nan")
        return NormalDist(d, error).cdf(limit) if error > 0 else (limit > d) + (limit == d) / 2

    return ComparedValue(
        value_of(a, method_of_one or method),
        value_of(b, method_of_one or method),
        value_of(difference, method),
        1 - below(0.0),
        below(rope) - below(-rope) if rope > 0 else float(d == 0),
    )
