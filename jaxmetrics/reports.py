"""From predictions to a report: the numbers that describe a classifier, with intervals, as text, dict or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxmetrics._arrays import ArrayLike, as_counts, as_square, check_real
from jaxmetrics._cell_sums import cells
from jaxmetrics._estimates import Metric
from jaxmetrics.comparisons import Comparison, compare, compare_predictions, mcnemar
from jaxmetrics.counts import confusion_matrix, paired_confusion_matrix, soft_confusion_matrix
from jaxmetrics.intervals import Estimate, delta_method, posterior, proportion_interval
from jaxmetrics.metrics import accuracy, balanced_accuracy, cohen_kappa, f1, macro, matthews_corrcoef, weighted
from jaxmetrics.posteriors import balanced_accuracy_posterior
from jaxmetrics.ranking import average_precision_bounds, roc_auc_bounds
from jaxmetrics.scoring import binned_calibration_error
from jaxmetrics.streaming._totals import in_float64
from jaxmetrics.streaming.accumulators import mean_estimate
from jaxmetrics.streaming.evaluators import EXAMPLES, State

__all__ = ["ComparedFigure", "ComparisonReport", "Figure", "Report", "comparison_report", "report"]


class Figure(NamedTuple):
    """One number of a report, with its interval.

    `interval` names its method: `"wilson"` for proportions and for F1, `"delta"` for what else is a smooth function of the
    counts (on the logit scale, or atanh where values can be negative), `"posterior"` where no error was seen, so that the delta
    method would give no width, and for the posterior balanced accuracy, `"bca"` in comparisons, `"normal"` for means,
    `"bounds"` where the exact value of an area lies between the two. None: no interval.
    """

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
        for name, figure in _overall_figures(matrix, level, estimates).items():
            overall[name] = figure
            if name == "balanced_accuracy":
                overall["balanced_accuracy_posterior"] = _balanced_accuracy_posterior(matrix, level)
        if soft_counts is not None:
            soft = as_square(soft_counts, k, "soft_counts")
            expected = proportion_interval(soft.trace(), soft.sum(), level=level)  # probabilities vary less than 0 and 1
            overall["expected_accuracy"] = _figure(expected, "wilson")
        per_class = {
            name: [_figure(jax.tree.map(lambda a: a[i], column), "wilson") for i in range(k)]  # noqa: B023
            for name, column in columns._asdict().items()
        }
        return cls(matrix, names, level, num_ignored, overall, per_class)

    @classmethod
    def from_state(cls, state: State, *, class_names: Sequence[str] | None = None, level: float = 0.95) -> Report:
        """The report of the counts in a state of an evaluator, with its means, areas and calibration error (not per class).

        Raises:
            ValueError: a state without a confusion matrix, or with several; as `from_counts`.

        >>> import jax.numpy as jnp, jaxmetrics as jm
        >>> evaluator = jm.evaluator(jm.count_metrics({"accuracy": jm.accuracy}, num_classes=2), jm.mean_of("loss"))
        >>> batch = {"y_true": jnp.array([0, 1, 1]), "y_pred": jnp.array([0, 1, 0]), "loss": jnp.array([0.1, 0.2, 2.1])}
        >>> Report.from_state(evaluator.update(evaluator.init(), **batch)).overall["loss"].value
        0.8
        """
        tables = {name: in_float64(totals) for name, totals in state.items()}
        _, ignored = tables.pop(EXAMPLES)
        matrices = [name for name in tables if name.startswith("confusion_matrix(") and tables[name].ndim == 2]
        if len(matrices) != 1:
            held = ", ".join(tables)
            raise ValueError(f"a report needs a state with one confusion matrix, got {len(matrices)}; it holds {held}.")
        counts = tables.pop(matrices[0])
        counts = counts.astype(np.int64) if (counts == np.round(counts)).all() and counts.max() < 2**53 else counts
        report = cls.from_counts(counts, class_names=class_names, num_ignored=int(ignored), level=level)
        more = {name: figure for key, table in tables.items() for name, figure in _figures_of(key, table, level).items()}
        return replace(report, overall={**report.overall, **more})

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
        classes = [["class", "n", *map(_title, self.per_class)]]
        for i, name in enumerate(self.class_names):
            figures = [_cell(column[i]) for column in self.per_class.values()]
            classes.append([_printable(name), f"{self.support[i]:.10g}", *figures])
        overall = [[_title(name), _cell(figure), figure.interval or ""] for name, figure in self.overall.items()]
        ignored = f", {self.num_ignored} ignored" if self.num_ignored else ""
        heading = f"{self.num_examples:.10g} examples{ignored}, {len(self.class_names)} classes"
        note = f"Intervals: {100 * self.level:.10g} %; of each class Wilson's.\nPosterior: with a flat prior, equal-tailed."
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
    class  n  precision         recall            specificity       F1
    cat    2  0.667 .208-.939   1.000 .342-1.000  0.500 .095-.905   0.800 .344-.968
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
    (true, pred), names = _as_ids({"y_true": true, "y_pred": pred}, class_names, num_columns)
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


class ComparedFigure(NamedTuple):
    """One number of two classifiers; see `Comparison`."""

    a: Figure
    b: Figure
    difference: Figure
    probability_better: float
    probability_equivalent: float
    num_undefined: int  # replicates in which it was not defined, left out


@dataclass(frozen=True, eq=False)
class ComparisonReport:
    """What `comparison_report` found out about classifiers A and B on the same examples.

    Attributes:
        num_examples, num_ignored: how many were compared, and left out because a label was out of range.
        num_classes: K.
        names: of A and B.
        level: of the intervals.
        rope: differences up to this size do not matter.
        figures: by name. A and B have the intervals that `report` gives them, their difference that of `compare`: bootstrap
            (BCa), or posterior where all replicates agree.
        only_right: how many examples only A has right, and only B.
        p_value: of McNemar's test (mid-p) that the two are right equally often.
    """

    num_examples: int
    num_ignored: int
    num_classes: int
    names: tuple[str, str]
    level: float
    rope: float
    figures: Mapping[str, ComparedFigure]
    only_right: tuple[int, int]
    p_value: float

    def to_text(self) -> str:
        """A table for a terminal, one line per figure, and McNemar's test."""
        a, b = map(_printable, self.names)
        ignored = f", {self.num_ignored} ignored" if self.num_ignored else ""
        heading = f"{self.num_examples} examples{ignored}, {self.num_classes} classes\nA  {a}\nB  {b}"
        rows = [["", "A", "B", "A - B", "", "P(A>B)"] + [f"P(within {self.rope:g})"] * (self.rope > 0)]
        for name, x in self.figures.items():
            shares = [f"{x.probability_better:.3f}"] + [f"{x.probability_equivalent:.3f}"] * (self.rope > 0)
            method = x.difference.interval or ""
            rows.append([_title(name), _cell(x.a), _cell(x.b), _cell(x.difference, signed=True), method, *shares])
        of_a, of_b = self.only_right
        test = f"Right only in A: {of_a}, only in B: {of_b}; McNemar's test (mid-p): p = {self.p_value:.3g}."
        note = f"Intervals: {100 * self.level:.10g} %; of A - B by paired bootstrap (bca),\nposterior where that sees no doubt."
        undefined = [f"{_title(name)} in {x.num_undefined}" for name, x in self.figures.items() if x.num_undefined]
        left_out = f"\nUndefined, and left out, of {_NUM_SAMPLES} replicates: {', '.join(undefined)}." if undefined else ""
        return "\n\n".join([heading, _table(rows), f"{test}\n{note}{left_out}"]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            "num_examples": self.num_examples,
            "num_ignored": self.num_ignored,
            "num_classes": self.num_classes,
            "names": list(self.names),
            "level": self.level,
            "rope": self.rope,
            "figures": {name: _compared_dict(x) for name, x in self.figures.items()},
            "mcnemar": {"only_a": self.only_right[0], "only_b": self.only_right[1], "p_value": self.p_value},
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def comparison_report(
    y_true: ArrayLike | Sequence[str],
    y_pred_a: ArrayLike | Sequence[str],
    y_pred_b: ArrayLike | Sequence[str],
    *,
    class_names: Sequence[str] | None = None,
    names: tuple[str, str] = ("A", "B"),
    rope: float = 0.0,
    level: float = 0.95,
) -> ComparisonReport:
    """Two classifiers on the same examples, compared in pairs, from labels on the host.

    Args:
        y_true, y_pred_a, y_pred_b, class_names: as for `report`.
        names: of A and B, for the record.
        rope: differences up to this size do not matter; see `compare`.
        level: of the intervals.

    Raises:
        TypeError: labels that are neither strings nor integers.
        ValueError: unequal lengths, fewer than two classes, an unknown class name, no example left, `rope` below 0, `level`
            not in (0, 1).

    >>> y_true, y_pred_a, y_pred_b = ["cat", "dog"] * 30, ["cat", "dog"] * 25 + ["cat"] * 10, ["cat"] * 30 + ["dog"] * 30
    >>> print(comparison_report(y_true, y_pred_a, y_pred_b).to_text())  # doctest: +ELLIPSIS
    60 examples, 2 classes
    A  A
    B  B
    <BLANKLINE>
                       A                B                A - B ...
    accuracy           0.917 ...
    """
    true, pred_a, pred_b = (np.asarray(labels) for labels in (y_true, y_pred_a, y_pred_b))
    if true.ndim != 1 or not true.shape == pred_a.shape == pred_b.shape:
        raise ValueError(
            "y_true, y_pred_a and y_pred_b must have shape (n,), the same number of examples: got"
            f" {true.shape}, {pred_a.shape}, {pred_b.shape}."
        )
    (true, pred_a, pred_b), classes = _as_ids({"y_true": true, "y_pred_a": pred_a, "y_pred_b": pred_b}, class_names, None)
    k = len(classes)
    if k < 2:
        raise ValueError(f"a comparison needs at least two classes, got {k}.")
    counted = np.logical_and.reduce([(x >= 0) & (x < k) for x in (true, pred_a, pred_b)])
    if not counted.any():
        raise ValueError("there are no examples to compare.")
    true, pred_a, pred_b = true[counted], pred_a[counted], pred_b[counted]
    key = jax.random.key(0)
    compared = compare_predictions(
        key, _all_metrics, true, pred_a, pred_b, num_classes=k, rope=rope, num_samples=_NUM_SAMPLES, level=level
    )
    certain = any(float(x.difference.low) == float(x.difference.high) for x in compared.values())
    if certain and k <= _MOST_CLASSES_OF_A_CUBE:
        paired = paired_confusion_matrix(true, pred_a, pred_b, num_classes=k)
        believed = compare(key, _all_metrics, paired, method="posterior", rope=rope, num_samples=_NUM_SAMPLES, level=level)
    else:
        believed = {}
    matrices = (np.asarray(confusion_matrix(true, pred, num_classes=k)) for pred in (pred_a, pred_b))
    of_a, of_b = (
        _overall_figures(matrix, level, jax.device_get(_evaluate(as_counts(matrix), level)[0])) for matrix in matrices
    )
    only_a, only_b = (int(((x == true) & (y != true)).sum()) for x, y in ((pred_a, pred_b), (pred_b, pred_a)))
    return ComparisonReport(
        num_examples=len(true),
        num_ignored=int((~counted).sum()),
        num_classes=k,
        names=names,
        level=level,
        rope=rope,
        figures={name: _compared(of_a[name], of_b[name], compared[name], believed.get(name)) for name in _COMPARED},
        only_right=(only_a, only_b),
        p_value=float(mcnemar([[0, only_a], [only_b, 0]]).p_value),
    )


_NUM_SAMPLES = 2000  # replicates of a comparison
_MOST_CLASSES_OF_A_CUBE = 64


def _compared(a: Figure, b: Figure, drawn: Comparison, believed: Comparison | None) -> ComparedFigure:
    """The difference by bootstrap; where all replicates agree, the posterior's, extended to the value."""
    difference = _figure(drawn.difference, "bca")
    if believed is not None and difference.low == difference.high:
        value, low, high = difference.value, float(believed.difference.low), float(believed.difference.high)
        difference = Figure(value, min(value, low), max(value, high), "posterior")
        drawn = believed
    shares = float(drawn.probability_better), float(drawn.probability_equivalent)
    return ComparedFigure(a, b, difference, *shares, int(drawn.difference.num_undefined))


def _compared_dict(x: ComparedFigure) -> dict[str, Any]:
    return {key: _figure_dict(v) if isinstance(v, Figure) else None if math.isnan(v) else v for key, v in x._asdict().items()}


def are_probabilities(rows: np.ndarray) -> np.ndarray:
    """Which rows of `(n, K)` are not negative and sum to 1, up to the rounding of three decimals."""
    return (rows >= 0).all(1) & (abs(rows.sum(1) - 1) < 1e-3)  # NaN is not >= 0


def _check_each(valid: np.ndarray, values: np.ndarray, name: str, expected: str) -> None:
    if not valid.all():
        index = tuple(np.argwhere(~valid)[0].tolist())
        raise ValueError(f"{name}{list(index)} is {values[index]}, expected {expected}.")


def _as_ids(
    named_labels: Mapping[str, np.ndarray], class_names: Sequence[str] | None, num_columns: int | None
) -> tuple[list[np.ndarray], Sequence[str]]:
    """Class ids of each (-1: to be ignored) and the names of the classes."""
    integers = {labels.dtype.kind for labels in named_labels.values()} <= {"i", "u", "b"}
    lists = {name: labels.tolist() for name, labels in named_labels.items()}  # Python ints: int64 and uint64 meet exactly
    if not integers and not all(isinstance(label, str) for labels in lists.values() for label in labels):
        dtypes = ", ".join(str(labels.dtype) for labels in named_labels.values())
        raise TypeError(f"labels must be strings or integers, all of one kind, got {dtypes}.")
    if isinstance(class_names, str):
        raise TypeError(f"class_names must be a sequence of names, got the string {class_names!r}.")
    if integers and class_names is not None:
        return list(named_labels.values()), class_names
    if integers and num_columns is not None:
        return list(named_labels.values()), list(map(str, range(num_columns)))
    found = {label for labels in lists.values() for label in labels}
    classes = sorted(label for label in found if not integers or label >= 0) if class_names is None else list(class_names)
    index = {label: i for i, label in enumerate(classes)}
    for name, labels in lists.items():
        if not integers and not index.keys() >= set(labels):
            i = next(i for i, label in enumerate(labels) if label not in index)
            raise ValueError(f"{name}[{i}] is {labels[i]!r}, which is not one of class_names: {', '.join(classes)}.")
    return [np.array([index.get(label, -1) for label in labels]) for labels in lists.values()], list(map(str, classes))


class _PerClass(NamedTuple):
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


_COMPARED: dict[str, Metric] = {"accuracy": accuracy} | _FRACTIONS | _COEFFICIENTS


def _all_of(metrics: Mapping[str, Metric]) -> Metric:
    return lambda counts: {name: metric(counts) for name, metric in metrics.items()}


_fractions, _coefficients, _all_metrics = map(_all_of, (_FRACTIONS, _COEFFICIENTS, _COMPARED))


@partial(jax.jit, static_argnames="level")
def _evaluate(counts: jax.Array, level: float) -> tuple[dict[str, Estimate], _PerClass]:
    """The overall estimates and those of each class."""
    tp, fp, fn, tn = cells(counts)
    proportion = partial(proportion_interval, level=level)
    right = proportion(tp.sum(), counts.sum())  # with one label per example the micro F1, too
    overall = {"accuracy": right, "micro_f1": right}
    overall["no_information_rate"] = proportion(counts.sum(-1).max(), counts.sum())
    overall |= delta_method(_fractions, counts, level=level, transform="logit")
    overall |= delta_method(_coefficients, counts, level=level, transform="atanh")
    per_class = _PerClass(
        precision=proportion(tp, tp + fp),
        recall=proportion(tp, tp + fn),
        specificity=proportion(tn, tn + fp),
        f1=jax.tree.map(lambda j: 2 * j / (1 + j), proportion(tp, tp + fp + fn)),  # F1 grows with Jaccard's index, a proportion
    )
    return overall, per_class


def _overall_figures(matrix: np.ndarray, level: float, estimates: Mapping[str, Estimate]) -> dict[str, Figure]:
    """With the posterior's interval, extended to the value, where the delta method has none since no error was seen."""
    figures = {name: _figure(estimates[name], "wilson" if name in _PROPORTIONS else "delta") for name in _ORDER}
    certain = [name for name, x in figures.items() if x.interval == "delta" and x.low == x.high]
    if certain:
        occurring = (matrix.sum(0) > 0) | (matrix.sum(1) > 0)
        present = matrix[np.ix_(occurring, occurring)] if occurring.sum() > 1 else matrix
        believed = posterior(jax.random.key(0), _all_metrics, present, num_samples=10_000, level=level)
        for name in certain:
            value, low, high = figures[name].value, float(believed[name].low), float(believed[name].high)
            figures[name] = Figure(value, min(value, low), max(value, high), "posterior")
    return figures


def _balanced_accuracy_posterior(matrix: np.ndarray, level: float) -> Figure:
    """Mean and equal-tailed interval of balanced accuracy under a flat prior; a class without examples keeps its prior."""
    law = balanced_accuracy_posterior(matrix)
    low, high = law.interval(level)
    return Figure(float(law.mean), float(low), float(high), "posterior")


def _figure(x: Estimate, interval: str) -> Figure:
    return Figure(float(x.value)) if np.isnan(x.low) else Figure(float(x.value), float(x.low), float(x.high), interval)


def _figure_dict(figure: Figure) -> dict[str, float | str | None]:
    known = {key: x for key, x in figure._asdict().items() if key == "value" or x is not None}
    return {key: None if isinstance(x, float) and math.isnan(x) else x for key, x in known.items()}


def _figures_of(key: str, table: np.ndarray, level: float) -> dict[str, Figure]:
    """What a table of a state says, by name."""
    kind, _, options = key.partition("(")
    if kind == "moments":
        return {options.removesuffix(")"): _figure(mean_estimate(table, level), "normal")}
    if kind == "score_histogram" and table.ndim == 2:
        areas = {"roc_auc": roc_auc_bounds, "average_precision": average_precision_bounds}
        bounds = {name: area(table) for name, area in areas.items()}
        return {name: Figure(float(x.value), float(x.low), float(x.high), "bounds") for name, x in bounds.items()}
    if kind == "calibration_bins":
        return {"calibration_error": Figure(float(binned_calibration_error(table)))}
    return {}


def _title(name: str) -> str:
    return name.replace("_", " ").replace("f1", "F1").replace("matthews", "Matthews").replace("cohen", "Cohen")


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def _fraction(x: float) -> str:
    """Three decimals, or up to six where fewer would show 0 or 1 for what is neither."""
    decimals = next((d for d in range(3, 7) if 0 < abs(round(x, d)) < 1), 3)
    return "-" if math.isnan(x) else f"{round(x, decimals) + 0.0:.{decimals}f}"  # never -0.000


def _cell(figure: Figure, signed: bool = False) -> str:
    if figure.low is None or figure.high is None:
        return _fraction(figure.value)
    low, high = (_fraction(end).replace("0.", ".", 1) for end in (figure.low, figure.high))
    return f"{_fraction(figure.value)} {low}{' to ' if signed or figure.low < 0 else '-'}{high}"


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
