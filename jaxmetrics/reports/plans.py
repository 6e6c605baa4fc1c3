"""Reports on the required size of a test set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxmetrics._validation import as_number
from jaxmetrics._wording import percent, printable, title_of
from jaxmetrics.estimates import Metric, normal_quantile
from jaxmetrics.planning import detectable_difference, power_quantile, required_examples
from jaxmetrics.reports.contents import Outline, SampleSize
from jaxmetrics.reports.formats import TabularReport
from jaxmetrics.reports.score_means import ItemScores, score_values

__all__: list[str] = []

_MOST_EXAMPLES = 1e15


def width_plan(
    metric: Metric, name: str, counts: np.ndarray, half_width: float, level: float
) -> TabularReport:
    """Report the number of examples for an interval of this half-width; for tables of clusters `(C,
    K, K)`, the number of clusters.
    """
    units, axis = ("examples", None) if counts.ndim == 2 else ("clusters", -3)
    options: dict[str, Any] = {"level": level, "cluster_axis": axis}
    number = float(required_examples(metric, counts, half_width=half_width, **options))
    size = SampleSize(float(counts.sum()), num_clusters=len(counts) if axis else None)
    content = {"metric": name, "half_width": half_width, "level": level}
    return _plan(
        number, units, _width(title_of(name), half_width), f"{size} were counted.", content
    )


def difference_plan(
    metric: Metric, name: str, paired: np.ndarray, difference: float, power: float, level: float
) -> TabularReport:
    """Report the number of examples that detect a difference between two classifiers with this
    power; for pairs per cluster `(C, K, K, K)`, the number of clusters.
    """
    _check_difference(difference)
    units, axis, n = "examples", None, int(paired.sum())
    size = SampleSize(n)
    if paired.ndim == 4:
        units, axis, n = "clusters", -4, len(paired)
        size = size._replace(num_clusters=n)
    options: dict[str, Any] = {"power": power, "level": level, "cluster_axis": axis}
    shown = float(detectable_difference(metric, paired, n, **options))
    # Differences whose square underflows need more examples than the limit below.
    number = required_examples(metric, paired, difference=max(difference, 1e-100), **options)
    content = {"metric": name, "difference": difference, "power": power, "level": level}
    counted = f"The pilot study has {size}, enough to show a difference of {shown:.3g}."
    content |= {"detectable_difference": shown}
    return _plan(float(number), units, _shown(title_of(name), difference, power), counted, content)


def scores_plan(
    scores: ItemScores, *, half_width: float | None, difference: float, power: float, level: float
) -> TabularReport:
    """Report how many items give a mean score an interval of this half-width, or show a difference
    between the means of two systems with this power; with clusters, how many clusters.
    """
    size, z, title = scores.sample, normal_quantile(level), printable(scores.name)
    units = "items" if size.num_clusters is None else "clusters"
    content: dict[str, Any]
    if half_width is not None:
        as_number(half_width, "half_width", above=0)
        purpose, counted = _width(title, half_width), f"The pilot study has {size}."
        error = score_values(scores, level)["mean"].standard_error
        ratio, content = z * error / half_width, {"half_width": half_width}
    else:
        _check_difference(difference)
        error = score_values(scores, level)["mean"].difference.standard_error
        shown = (z + power_quantile(power, level)) * error
        purpose, ratio = _shown(title, difference, power), shown / difference
        counted = f"The pilot study has {size}, enough to show a difference of {shown:.3g}."
        content = {"difference": difference, "power": power, "detectable_difference": shown}
    number = (size.num_clusters or size.number) * ratio * ratio if ratio > 0 else math.nan
    content = {"score": scores.name, **content, "level": level}
    return _plan(number, units, purpose, counted, content)


def _check_difference(difference: float) -> None:
    if not difference > 0:
        raise ValueError(f"the difference must be above 0, got {difference:g}")


def _width(title: str, half_width: float) -> str:
    return f"give {title} an interval of ± {half_width:g}"


def _shown(title: str, difference: float, power: float) -> str:
    return f"show a difference of {difference:g} in {title} with a probability of {power:g}"


def _plan(
    number: float, units: str, purpose: str, counted: str, content: dict[str, Any]
) -> TabularReport:
    if math.isnan(number):
        raise ValueError(
            f"these {units} contain no mistake or difference, so they do not show how much the"
            " metric varies"
        )
    if number > _MOST_EXAMPLES:
        raise ValueError(f"more than {_MOST_EXAMPLES:g} {units} would be needed to {purpose}")
    number, level = math.ceil(number), content["level"]
    content = {f"num_{units}": number, **content}
    like_these = f"{units[:-1]} like these is enough to" if number == 1 else f"{units} like these"
    notes = [
        counted,
        f"Intervals: {percent(level)}; by the delta method, with a variance proportional to 1 / "
        "n. The number is a guide, not a guarantee.",
    ]
    outline = Outline(f"{number:,} {like_these} {purpose}.", notes=notes, level=level)
    return TabularReport(outline, content, [content], content)
