"""The report of how many examples a test set needs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxmetrics._wording import percent, title_of
from jaxmetrics.estimates import Metric
from jaxmetrics.planning import detectable_difference, required_examples
from jaxmetrics.reports.contents import Outline
from jaxmetrics.reports.formats import TabularReport

__all__: list[str] = []

_MOST_EXAMPLES = 1e15


def width_plan(
    metric: Metric, name: str, counts: np.ndarray, half_width: float, level: float
) -> TabularReport:
    """Report how many examples give a metric an interval of this half-width."""
    return _plan(
        float(required_examples(metric, counts, half_width=half_width, level=level)),
        f"give {title_of(name)} an interval of ± {half_width:g}",
        f"{float(counts.sum()):.10g} examples were counted.",
        {"metric": name, "half_width": half_width, "level": level},
    )


def difference_plan(
    metric: Metric, name: str, paired: np.ndarray, difference: float, power: float, level: float
) -> TabularReport:
    """Report how many examples show a difference between two classifiers with this power."""
    if not difference > 0:
        raise ValueError(f"the difference must be above 0, got {difference:g}")
    n = int(paired.sum())
    shown = float(detectable_difference(metric, paired, n, power=power, level=level))
    content = {"metric": name, "difference": difference, "power": power, "level": level}
    # Errors fall as the square root of the number of examples.
    ratio = shown / difference
    return _plan(
        n * ratio * ratio,
        f"show a difference of {difference:g} in {title_of(name)} with a probability of {power:g}",
        f"{n} examples were judged by both; so many show one of {shown:.3g}.",
        {**content, "detectable_difference": shown},
    )


def _plan(number: float, purpose: str, counted: str, content: dict[str, Any]) -> TabularReport:
    if math.isnan(number):
        raise ValueError("these examples do not say how much it varies: nothing went wrong")
    if number > _MOST_EXAMPLES:
        raise ValueError(f"more than {_MOST_EXAMPLES:g} examples would be needed to {purpose}")
    number, level = math.ceil(number), content["level"]
    content = {"num_examples": number, **content}
    like_these = "example like these is enough to" if number == 1 else "examples like these"
    notes = [
        counted,
        f"Intervals: {percent(level)}; by the delta method, whose variance falls as 1 / n: a guide,"
        " not a guarantee.",
    ]
    outline = Outline(f"{number:,} {like_these} {purpose}.", notes=notes, level=level)
    return TabularReport(outline, content, [content], content)
