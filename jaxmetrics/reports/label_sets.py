"""Reports on multilabel problems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from jaxmetrics import binary, error_rate, f1, label_macro, proportion_interval
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.labels import distinct_names_of
from jaxmetrics._arguments.single import ArrayLike, check_real, on_host
from jaxmetrics._text.wording import percent
from jaxmetrics.estimates import Metric, normal_estimate, normal_quantile, with_level
from jaxmetrics.intervals.derivatives import jacobian
from jaxmetrics.intervals.functionals import Row
from jaxmetrics.reports.contents import (
    ClassValues,
    Outline,
    SampleSize,
    quantity,
)
from jaxmetrics.reports.formats import TabularReport
from jaxmetrics.reports.overall_values import Evidence, check_each, per_class_values
from jaxmetrics.reports.values import ReportValue, exactly, value_of

__all__ = ["multilabel_report"]


def _pooled(metric: Metric) -> Metric:
    """Return the micro average of a rate."""
    return lambda tables: metric(tables.sum(-3))


_AVERAGES: dict[str, Metric] = {
    "hamming_loss": _pooled(error_rate),
    "micro_f1": _pooled(binary(f1)),
    "macro_f1": label_macro(partial(f1, zero_division=math.nan)),  # over the labels that occur
}


def multilabel_report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    label_names: Sequence[str] | None = None,
    level: float = 0.95,
) -> TabularReport:
    """Make a multilabel classification report: metrics of each label and of all labels.

    Exact match, and precision, recall, specificity and F1 of each label have likelihood intervals.
    Exact match is the share of examples whose labels are all correct. The Hamming loss, micro F1
    and macro F1 have delta-method intervals, which allow for correlated labels of an example and
    need only sums over examples. `interval` computes likelihood intervals of these metrics, which
    are slightly wider, from one table for each example and label (see `label_macro`).

    Args:
        y_true, y_pred: true and predicted labels, arrays of 0 and 1 of shape `(n, L)`. Negative
            true labels are unknown and not counted: exact match is computed from the examples whose
            labels are all known, and examples without known labels are ignored.
        label_names: names of the L labels; default: "0" to "L - 1".
        level: the confidence level.

    Returns:
        A report with the methods of `Report`, such as `to_text` and `to_html`. `report[name]`
        returns the values of the metric with this name, such as "micro_f1".

    Raises:
        TypeError: if `y_true` or `y_pred` does not contain numbers.
        ValueError: if the shapes are not `(n, L)`, if there are no examples, if a number is neither
            0 nor 1, or if there are not exactly L different names.

    >>> y_true, y_pred = [[1, 0], [1, 1], [0, 1], [1, 0]] * 9, [[1, 0], [1, 0], [0, 1], [1, 1]] * 9
    >>> found = multilabel_report(y_true, y_pred, label_names=["sun", "rain"])
    >>> found["micro_f1"], found["recall"]["rain"]
    (0.800 [0.742, 0.848], 0.500 [0.275, 0.725])
    """
    check_order(y_true=y_true, y_pred=y_pred)
    true, pred = _checked(y_true=y_true, y_pred=y_pred)
    names = distinct_names_of(label_names, true.shape[1], "label_names")
    counted = (true >= 0).any(1)
    true, pred = true[counted], pred[counted]
    known, n = true >= 0, len(true)
    complete = known.all(1)
    # An example is 1 in one of TN, FP, FN and TP of each known label, and 0 in the others.
    cells = np.where(known, 2 * true + pred, -1)[..., None] == np.arange(4)
    rows = cells.reshape((n, -1)).astype(float)
    products = rows.T @ rows  # (4 L, 4 L)
    counts = products.diagonal().reshape((-1, 2, 2)).astype(np.int64)
    evidence = Evidence(counts, level)
    all_right = int((true == pred).all(1).sum())
    exact = proportion_interval(all_right, int(complete.sum()), level=level, method="likelihood")
    overall = {"exact_match": value_of(exact)}
    overall |= {name: _average(metric, products, n, level) for name, metric in _AVERAGES.items()}
    columns = per_class_values(evidence, chosen=(..., 1))
    values = ClassValues(overall, columns, names, counts[:, 1].sum(-1), "label")
    sample = SampleSize(n, int((~counted).sum()))
    unknown = int((~known).sum())
    gaps = (
        f" {unknown:,} of {known.size:,} true labels are unknown and not counted. The exact match"
        f" is that of the {int(complete.sum()):,} examples whose labels are all known."
    )
    return TabularReport(
        Outline(
            heading=f"{sample}, {quantity(len(names), 'labels')}",
            tables={"Labels": values.table()},
            summary=values.summary(),
            summary_title="All labels",
            notes=[
                f"Intervals: {percent(level)}. The metrics of each label have likelihood "
                "intervals. Averages have delta-method intervals, because likelihood intervals "
                "would need the labels of all examples at once. Macro F1 is the mean over the "
                "labels that occur, and micro F1 is computed from all labels together. The "
                "independent units are the examples, because the labels of an example may be "
                f"correlated.{gaps if unknown else ''}"
            ],
            level=level,
        ),
        {
            **sample.content(),
            "level": level,
            **values.content(),
            "confusion_matrices": counts.tolist(),
        },
        values.records(level),
        values.by_name(),
    )


def _checked(**named: ArrayLike) -> list[np.ndarray]:
    """Return true and predicted labels as integers of the same shape `(n, L)`."""
    labels = []
    for name, x in named.items():
        numbers = on_host(x, name)
        check_real(numbers, name)
        possible, expected = (numbers == 0) | (numbers == 1), "0 or 1"
        if name == "y_true":
            possible, expected = possible | (numbers < 0), "0, 1 or negative (unknown)"
        check_each(possible, numbers, name, expected)
        labels.append(np.where(numbers < 0, -1, numbers == 1))
    true, pred = labels
    if true.ndim == 2 and not (true >= 0).any():
        raise ValueError("y_true and y_pred contain no examples to report on.")
    if true.shape != pred.shape or true.ndim != 2 or not true.size:
        raise ValueError(
            "y_true and y_pred must have the same shape (n, L), with one column for each label,"
            f" got {true.shape} and {pred.shape}."
        )
    return labels


def _average(metric: Metric, products: np.ndarray, n: int, level: float) -> ReportValue:
    """Estimate a metric of tables `(L, 2, 2)` by the delta method on the logit scale, with the
    examples as the independent units.

    Args:
        metric: the metric.
        products: the sum over examples of the outer products of their rows, `(4 L, 4 L)`.
        n: the number of examples.
        level: the confidence level.
    """
    total = products.diagonal()
    table = total.reshape((-1, 2))

    def of_rows(rows: np.ndarray) -> np.ndarray:
        """Compute the metric from the rows of the tables, `(..., 2 L, 2)`."""
        return metric(rows.reshape((*rows.shape[:-2], -1, 2, 2)))

    value = np.float64(of_rows(table))
    slopes = jacobian(Row(of_rows, table), table).reshape(-1)
    centred = products - np.outer(total, total) / n
    variance = max(slopes @ centred @ slopes, 0) * n / max(n - 1, 1)
    if n < 2 or variance <= 1e-20:
        return exactly(value)
    error = np.sqrt(variance)
    estimate = normal_estimate(value, error, normal_quantile(level), "logit")
    return value_of(with_level(estimate, level, "delta"))
