"""Reports on the number of examples that a test set needs."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from jaxmetrics import detectable_difference, required_examples
from jaxmetrics._text.wording import percent, printable, title_of
from jaxmetrics.estimates import Metric, normal_quantile
from jaxmetrics.planning import power_quantile
from jaxmetrics.reports.contents import Outline, SampleSize
from jaxmetrics.reports.formats import TabularReport
from jaxmetrics.reports.score_means import ItemScores

__all__: list[str] = []

_MOST_EXAMPLES = 1e15


def width_plan(
    metric: Metric, name: str, counts: np.ndarray, half_width: float, level: float
) -> TabularReport:
    """Report how many examples are needed for an interval of this half-width. If the tables are one
    matrix per cluster, `(C, K, K)`, report how many clusters are needed.
    """
    _check_target(half_width, "half-width")
    axis = None if counts.ndim == 2 else -3
    number = required_examples(
        metric, counts, half_width=half_width, level=level, cluster_axis=axis
    )
    size = SampleSize(float(counts.sum()), num_clusters=len(counts) if axis else None)
    return _plan(
        float(number), size, {"metric": name}, title_of(name), half_width=half_width, level=level
    )


def difference_plan(
    metric: Metric, name: str, paired: np.ndarray, difference: float, power: float, level: float
) -> TabularReport:
    """Report how many examples are needed to detect a difference between two classifiers with this
    power. If the tables are one paired matrix per cluster, `(C, K, K, K)`, report how many clusters
    are needed.
    """
    _check_target(difference, "difference")
    axis = None if paired.ndim == 3 else -4
    size = SampleSize(int(paired.sum()), num_clusters=len(paired) if axis else None)
    options: Any = {"power": power, "level": level, "cluster_axis": axis}
    shown = detectable_difference(metric, paired, int(size.units_drawn[0]), **options)
    # A difference whose square would underflow needs more examples than _MOST_EXAMPLES anyway.
    number = required_examples(metric, paired, difference=max(difference, 1e-100), **options)
    sought = {"difference": difference, "power": power, "detectable_difference": float(shown)}
    return _plan(float(number), size, {"metric": name}, title_of(name), **sought, level=level)


def scores_plan(
    scores: ItemScores, *, half_width: float | None, difference: float, power: float, level: float
) -> TabularReport:
    """Report how many items are needed for an interval of the mean score with this half-width, or
    how many items are needed to detect a difference between the means of two systems with this
    power. If there are clusters, report how many clusters are needed.
    """
    size, z, mean = scores.sample, normal_quantile(level), cast(Any, scores.mean(level))
    low, high = scores.bounds or (0, math.inf)
    if half_width is not None:
        _check_target(half_width, "half-width", high - low)
        ratio, sought = z * mean.standard_error / half_width, {"half_width": half_width}
    else:
        _check_target(difference, "difference", high - low)
        shown = (z + power_quantile(power, level)) * mean.difference.standard_error
        ratio = shown / difference
        sought = {"difference": difference, "power": power, "detectable_difference": shown}
    number = size.units_drawn[0] * ratio * ratio if ratio > 0 else math.nan
    return _plan(
        number, size, {"score": scores.name}, printable(scores.name), **sought, level=level
    )


def _check_target(target: float, name: str, extent: float = 1) -> None:
    """Raise an error unless a half-width or a difference is smaller than the range of the metric,
    which has this extent.
    """
    if not 0 < target < extent:
        hint = " Write 2 percentage points as 0.02." if extent == 1 else ""
        raise ValueError(
            f"the {name} must be above 0 and less than {extent:g}, got {target:g}.{hint}"
        )


def _plan(
    number: float, size: SampleSize, named: dict[str, str], title: str, **sought: float
) -> TabularReport:
    """Make the report.

    Args:
        number: the number of units (examples, items or clusters) that are needed.
        size: the size of the pilot study.
        named: the name of the metric or score, for JSON.
        title: the name of the metric or score, for text.
        sought: the half-width, or the difference and the power.
    """
    units, counted = size.units_drawn[1], f"The pilot study has {size}"
    if "half_width" in sought:
        purpose = f"give {title} an interval of ± {sought['half_width']:g}"
    else:
        difference, power = sought["difference"], sought["power"]
        purpose = f"show a difference of {difference:g} in {title} with a probability of {power:g}"
        counted += f", enough to show a difference of {sought['detectable_difference']:.3g}"
    if math.isnan(number):
        raise ValueError(
            f"the {units} in the input contain no mistake or, if two classifiers are compared, no"
            f" difference between the classifiers. Such {units} do not show how much the metric"
            " varies. Use more examples."
        )
    if number > _MOST_EXAMPLES:
        raise ValueError(
            f"more than {_MOST_EXAMPLES:g} {units} would be needed to {purpose}. Choose a larger"
            " half-width or a larger difference."
        )
    number = math.ceil(number)
    content = {f"num_{units}": number, **named, **sought}
    like_these = f"{units[:-1]} like these is enough to" if number == 1 else f"{units} like these"
    notes = [
        f"{counted}.",
        f"Intervals: {percent(sought['level'])}. They are computed by the delta method, with a"
        " variance proportional to 1 / n. The number is a guide, not a guarantee.",
    ]
    outline = Outline(f"{number:,} {like_these} {purpose}.", notes=notes, level=sought["level"])
    return TabularReport(outline, content, [content], content)
