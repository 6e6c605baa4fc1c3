"""From predictions to a report: the numbers that describe a classifier, with intervals, as text, dict or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arrays import ArrayLike, as_counts, as_square, check_real
from jaxmetrics._cell_sums import cells
from jaxmetrics.counts import confusion_matrix, soft_confusion_matrix
from jaxmetrics.intervals import Estimate, proportion_interval
from jaxmetrics.metrics import (
    accuracy,
    balanced_accuracy,
    cohen_kappa,
    f1,
    macro,
    matthews_corrcoef,
    no_information_rate,
    weighted,
)
from jaxmetrics.posteriors import balanced_accuracy_posterior

__all__ = ["Figure", "Report", "report"]


class Figure(NamedTuple):
    """One number of a report; `low`, `high` and `interval`, the name of its method, are None where it has no interval."""

    value: float
    low: float | None = None
    high: float | None = None
    interval: str | None = None


@dataclass(frozen=True, eq=False)
class Report:
    """What `report` found out about a classifier.

    Attributes:
        counts: the confusion matrix `(K, K)` on the host.
        class_names: K names, in the order of the rows of `counts`.
        level: of the intervals.
        num_ignored: examples left out because a label was out of range.
        overall: figures by name.
        per_class: for each name K figures, in the order of `class_names`.
    """

    counts: np.ndarray
    class_names: tuple[str, ...]
    level: float
    num_ignored: int
    overall: Mapping[str, Figure]
    per_class: Mapping[str, Sequence[Figure]]

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        soft_counts: ArrayLike | None = None,
        num_ignored: int = 0,
        level: float = 0.95,
    ) -> Report:
        """The report of one confusion matrix `(K, K)`, and of a soft one if there are probabilities.

        Args:
            counts: `(K, K)`, integers or floats.
            class_names: K names; "0" to "K - 1" if not given.
            soft_counts: `(K, K)`, from `soft_confusion_matrix`; adds the expected accuracy.
            num_ignored: examples that were left out of `counts`, for the record.
            level: of the intervals.

        Raises:
            TypeError: `counts` does not hold real numbers.
            ValueError: `counts` is not a square matrix of at least two classes, holds a negative or non-finite number or
                no example; `class_names` has another length or names a class twice; `level` is not in (0, 1).

        >>> Report.from_counts([[9, 1], [3, 7]]).overall["accuracy"].value
        0.8
        """
        matrix = np.asarray(counts)
        if matrix.dtype.kind not in "iu":
            check_real(matrix, "counts")
            matrix = matrix.astype(float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"counts must be one square matrix (K, K), got shape {matrix.shape}.")
        k = len(matrix)
        if k < 2:
            raise ValueError(f"a report needs at least two classes, got {k}.")
        _check_each((matrix >= 0) & (matrix <= 1e30), matrix, "counts", "a number from 0 to 1e30")  # float32 ends at 3e38
        if not matrix.any():
            raise ValueError("there are no examples to report on: all counts are 0.")
        names = tuple(map(str, range(k))) if class_names is None else tuple(map(str, class_names))
        if len(names) != k:
            raise ValueError(f"class_names must have one name per class: expected {k}, got {len(names)}.")
        if len(set(names)) != k:
            raise ValueError(f"class_names must differ, got {', '.join(names)}.")

        estimates, columns = jax.device_get(_evaluate(as_counts(matrix), level))
        overall = {}
        for name, x in estimates._asdict().items():
            overall[name] = _figure(x)
            if name == "balanced_accuracy":
                overall["balanced_accuracy_posterior"] = _posterior(matrix, level)
        if soft_counts is not None:
            overall["expected_accuracy"] = Figure(float(accuracy(as_square(soft_counts, k, "soft_counts"))))
        per_class = {
            name: [_figure(jax.tree.map(lambda a: a[i], column)) for i in range(k)]  # noqa: B023
            for name, column in columns._asdict().items()
        }
        return cls(matrix, names, level, num_ignored, overall, per_class)

    @property
    def num_examples(self) -> float:
        """The sum of the counts: the number of examples, or their total weight."""
        return self.counts.sum().item()

    @property
    def support(self) -> np.ndarray:
        """Examples of each class in truth."""
        return self.counts.sum(-1)

    def to_text(self) -> str:
        """Two tables for a terminal: one line per class, then one per overall figure."""
        classes = [["class", "support", *map(_title, self.per_class)]]
        for i, name in enumerate(self.class_names):
            figures = [_cell(column[i]) for column in self.per_class.values()]
            classes.append([_printable(name), f"{self.support[i]:.10g}", *figures])
        overall = [[_title(name), _cell(figure)] for name, figure in self.overall.items()]
        ignored = f", {self.num_ignored} ignored" if self.num_ignored else ""
        heading = f"{self.num_examples:.10g} examples{ignored}, {len(self.class_names)} classes"
        note = f"Intervals: {100 * self.level:g} %, Wilson; of the posterior (flat prior), equal-tailed."
        return "\n\n".join([heading, _table(classes), _table(overall), note]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            "num_examples": self.num_examples,
            "num_ignored": self.num_ignored,
            "level": self.level,
            "overall": {name: _figure_dict(figure) for name, figure in self.overall.items()},
            "classes": [
                {"name": name, "support": self.support[i].item()}
                | {key: _figure_dict(column[i]) for key, column in self.per_class.items()}
                for i, name in enumerate(self.class_names)
            ],
            "confusion_matrix": self.counts.tolist(),
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def report(
    y_true: ArrayLike | Sequence[str],
    y_pred: ArrayLike | Sequence[str],
    *,
    y_prob: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    class_names: Sequence[str] | None = None,
    level: float = 0.95,
) -> Report:
    """Everything worth knowing about predictions, with intervals, from labels on the host.

    Args:
        y_true, y_pred: `(n,)`, strings or integers. Without `class_names` the classes are those that occur, sorted.
            Negative integers, and ids beyond `class_names` or the columns of `y_prob`, are ignored and counted as such.
        y_prob: `(n, K)` probabilities; adds the expected accuracy, the mean probability given to the truth.
        sample_weight: `(n,)`; intervals read weights as frequencies (weight 2 = the row written twice).
        class_names: names of the ids 0 to K - 1, or, for strings, the classes in the order wanted.
        level: of the intervals.

    Raises:
        TypeError: labels that are neither strings nor integers, other arguments that are no numbers.
        ValueError: unequal lengths, fewer than two classes, an unknown class name, a negative weight, probabilities that
            do not sum to 1, no example left, `level` not in (0, 1).

    >>> print(report(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"]).to_text())  # doctest: +ELLIPSIS
    4 examples, 2 classes
    <BLANKLINE>
    class  support  precision         recall            specificity       F1
    cat    2        0.667 .208-.939   1.000 .342-1.000  0.500 .095-.905   0.800
    ...
    """
    true, pred = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != pred.shape:
        raise ValueError(
            f"y_true and y_pred must have shape (n,), the same number of examples: got {true.shape}, {pred.shape}."
        )
    if true.size == 0:
        raise ValueError("there are no examples to report on.")
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is not None:
        check_real(weights, "sample_weight")
        _check_each(weights >= 0, weights, "sample_weight", "a number >= 0")
    num_columns = None
    if y_prob is not None:
        prob = np.asarray(y_prob)
        check_real(prob, "y_prob")
        if prob.ndim != 2 or len(prob) != len(true):
            raise ValueError(f"y_prob must have shape (n, K) = ({len(true)}, K), got {prob.shape}.")
        _check_each(are_probabilities(prob), prob, "y_prob", "probabilities that sum to 1")
        num_columns = prob.shape[1]
    true, pred, names = _as_ids(true, pred, class_names, num_columns)
    k = len(names)
    if num_columns not in (None, k):
        raise ValueError(f"y_prob has {num_columns} columns, but there are {k} classes: {', '.join(map(str, names))}.")
    counted = (true >= 0) & (true < k) & (pred >= 0) & (pred < k)
    counts = confusion_matrix(true, pred, num_classes=max(k, 1), sample_weight=weights, where=counted)
    soft_counts = None
    if y_prob is not None:
        soft_counts = soft_confusion_matrix(true, y_prob, sample_weight=weights, where=counted)
    return Report.from_counts(
        counts, class_names=names, soft_counts=soft_counts, num_ignored=int((~counted).sum()), level=level
    )


def are_probabilities(rows: np.ndarray) -> np.ndarray:
    """Which rows of `(n, K)` are not negative and sum to 1, up to the rounding of three decimals."""
    return (rows >= 0).all(1) & (abs(rows.sum(1) - 1) < 1e-3)  # NaN is not >= 0


def _check_each(valid: np.ndarray, values: np.ndarray, name: str, expected: str) -> None:
    if not valid.all():
        index = tuple(np.argwhere(~valid)[0].tolist())
        raise ValueError(f"{name}{list(index)} is {values[index]}, expected {expected}.")


def _as_ids(
    true: np.ndarray, pred: np.ndarray, class_names: Sequence[str] | None, num_columns: int | None
) -> tuple[np.ndarray, np.ndarray, Sequence[str]]:
    """Class ids of both (-1: to be ignored) and the names of the classes."""
    kinds = {true.dtype.kind, pred.dtype.kind}
    integers = kinds <= {"i", "u", "b"}
    true_labels, pred_labels = true.tolist(), pred.tolist()  # Python ints: int64 and uint64 meet without floats
    if not integers and not all(isinstance(label, str) for label in (*true_labels, *pred_labels)):
        raise TypeError(f"labels must be strings or integers, both of one kind, got {true.dtype} and {pred.dtype}.")
    if isinstance(class_names, str):
        raise TypeError(f"class_names must be a sequence of names, got the string {class_names!r}.")
    if integers and class_names is not None:
        return true, pred, class_names
    if integers and num_columns is not None:
        return true, pred, list(map(str, range(num_columns)))
    found = {*true_labels, *pred_labels}
    classes = sorted(label for label in found if not integers or label >= 0) if class_names is None else list(class_names)
    index = {label: i for i, label in enumerate(classes)}
    for name, labels in (("y_true", true_labels), ("y_pred", pred_labels)):
        if not integers and not index.keys() >= set(labels):
            i = next(i for i, label in enumerate(labels) if label not in index)
            raise ValueError(f"{name}[{i}] is {labels[i]!r}, which is not one of class_names: {', '.join(classes)}.")
    true_ids, pred_ids = (np.array([index.get(label, -1) for label in labels]) for labels in (true_labels, pred_labels))
    return true_ids, pred_ids, list(map(str, classes))


class _PerClass(NamedTuple):
    precision: Estimate
    recall: Estimate
    specificity: Estimate
    f1: jax.Array


class _Overall(NamedTuple):
    accuracy: Estimate
    balanced_accuracy: jax.Array
    macro_f1: jax.Array
    micro_f1: Estimate
    weighted_f1: jax.Array
    matthews_corrcoef: jax.Array
    cohen_kappa: jax.Array
    no_information_rate: jax.Array


@partial(jax.jit, static_argnames="level")
def _evaluate(counts: jax.Array, level: float) -> tuple[_Overall, _PerClass]:
    tp, fp, fn, tn = cells(counts)
    proportion = partial(proportion_interval, level=level)
    right = proportion(tp.sum(), counts.sum())
    overall = _Overall(
        accuracy=right,
        balanced_accuracy=balanced_accuracy(counts),
        macro_f1=macro(f1)(counts),
        micro_f1=right,  # with one label per example it is the accuracy
        weighted_f1=weighted(f1)(counts),
        matthews_corrcoef=matthews_corrcoef(counts),
        cohen_kappa=cohen_kappa(counts),
        no_information_rate=no_information_rate(counts),
    )
    per_class = _PerClass(
        precision=proportion(tp, tp + fp),
        recall=proportion(tp, tp + fn),
        specificity=proportion(tn, tn + fp),
        f1=f1(counts, zero_division=jnp.nan),
    )
    return overall, per_class


def _posterior(matrix: np.ndarray, level: float) -> Figure:
    """Mean and equal-tailed interval of balanced accuracy under a flat prior; a class without examples keeps its prior."""
    posterior = balanced_accuracy_posterior(matrix)
    low, high = posterior.interval(level)
    return Figure(float(posterior.mean), float(low), float(high), "posterior")


def _figure(x: Estimate | np.ndarray) -> Figure:
    if isinstance(x, Estimate):
        return Figure(float(x.value), float(x.low), float(x.high), "wilson")
    return Figure(float(x))


def _figure_dict(figure: Figure) -> dict[str, float | str | None]:
    known = {key: x for key, x in figure._asdict().items() if key == "value" or x is not None}
    return {key: None if isinstance(x, float) and math.isnan(x) else x for key, x in known.items()}


def _title(name: str) -> str:
    return name.replace("_", " ").replace("f1", "F1").replace("matthews", "Matthews").replace("cohen", "Cohen")


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _fraction(x: float) -> str:
    """Three decimals, or up to six where fewer would show 0 or 1 for what is neither."""
    decimals = next((d for d in range(3, 7) if 0 < abs(round(x, d)) < 1), 3)
    return "-" if math.isnan(x) else f"{x:.{decimals}f}"


def _cell(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return _fraction(figure.value)
    low, high = (end.removeprefix("0") if "." in end else end for end in map(_fraction, (figure.low, figure.high)))
    return f"{_fraction(figure.value)} {low}-{high}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
