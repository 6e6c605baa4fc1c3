"""What a comparison says of probabilities and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxmetrics.comparisons.classifiers import Comparison, by_halves
from jaxmetrics.comparisons.two_areas import delong
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.intervals.means import mean_interval
from jaxmetrics.reports.contents import reported_comparison
from jaxmetrics.reports.probabilities import losses_of, worst_brier_score

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
) -> dict[str, Comparison]:
    """Compare two arrays of probabilities `(n, K)` for the same examples, class ids `(n,)`.

    Losses are compared by their mean difference, with Student's interval; areas, of the last of two
    classes or of each of up to ten, by DeLong's variance.
    """
    z, k = normal_quantile(level), len(class_names)
    options: dict[str, Any] = {"level": level, "clusters": clusters}
    scales: dict[str, tuple[str, dict[str, Any]]] = {
        "log_loss": ("student", {"transform": "log"}),
        "brier_score": ("likelihood", {"bounds": (0, worst_brier_score(probs[0]))}),
    }
    losses = [losses_of(y_true, prob)[1:] for prob in probs]
    found = {}
    for (name, (method, scale)), a, b in zip(scales.items(), *losses, strict=True):
        of_a, of_b = (mean_interval(x, **scale, **options) for x in (a, b))
        comparison = by_halves(of_a, of_b, mean_interval(a - b, **options), z, rope)
        found[name] = reported_comparison(comparison, method, "student")
    events = {"roc_auc": 1} if k == 2 else {f"roc_auc_{x}": i for i, x in enumerate(class_names)}
    for name, i in events.items() if k <= _MOST_CLASSES else ():
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
) -> Comparison:
    """Compare the areas under the ROC curves of two scores of the same event."""
    areas = delong(y_true, *scores, level=level, clusters=clusters)
    comparison = by_halves(*areas[:3], normal_quantile(level), rope)
    return reported_comparison(comparison, "score", "mover")
