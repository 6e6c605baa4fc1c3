"""Reports on one classifier, from predictions, counts or the state of an evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxmetrics._labels import names_of
from jaxmetrics._validation import (
    ArrayLike,
    as_counts,
    as_square,
    as_wide,
    check_real,
    check_size,
    on_host,
)
from jaxmetrics._wording import capital, interval, listed, percent, title_of
from jaxmetrics.clusters import check_size_of_tables, number_of_clusters, numbered_clusters
from jaxmetrics.counts import confusion_matrix
from jaxmetrics.intervals.methods import IntervalMethod, check_method
from jaxmetrics.reports import grouped
from jaxmetrics.reports.contents import (
    ClassValues,
    Findings,
    Outline,
    ReportedValue,
    SampleSize,
    ValueTable,
    listing,
    records_of,
)
from jaxmetrics.reports.formats import AnyReport
from jaxmetrics.reports.gates import JudgedGate, contents_of
from jaxmetrics.reports.overall_values import (
    Evidence,
    check_each,
    check_number_of_classes,
    checked_labels,
    checked_probabilities,
    mistakes_in,
    overall_values,
    per_class_values,
)
from jaxmetrics.reports.probabilities import (
    expected_accuracy,
    findings_of_clusters,
    probability_findings,
    probability_sums,
)

if TYPE_CHECKING:
    from jaxmetrics.streaming.states import EvaluatorState

__all__ = ["Report", "report"]


class Mistake(NamedTuple):
    """A kind of mistake: a true class, its wrong prediction, and the examples."""

    true: str
    pred: str
    times: int
    indices: np.ndarray


class _Examples(NamedTuple):
    """Positions in the data, class ids, and the probability of the predicted class."""

    position: np.ndarray
    true: np.ndarray
    pred: np.ndarray
    confidence: np.ndarray | None


@dataclass(frozen=True, eq=False, repr=False)
class Report(AnyReport):
    """Result of `report`: metrics of a classifier, each with a confidence interval.

    Attributes:
        counts: the confusion matrix `(K, K)`, a NumPy array.
        class_names: K names, in the order of the rows of `counts`.
        level: the confidence level.
        num_ignored: number of examples left out because a label was out of range.
        overall: metrics by name: an `Estimate`, with the `method` of its interval and a `note`, or
            None.
        per_class: for each metric K values, in the order of `class_names`.
        score_histogram: `(K, 2, B)`, each class against the others, by log-odds (for a state: as
            stored in it).
        calibration_bins: `(bins, 3)`, for the second of two classes, or otherwise for the predicted
            class, if there were probabilities.
        calibrated_event: the event of these bins, in a word.
        num_clusters: the number of clusters, if examples come in clusters.
        groups: a report by the name of each group, if there are groups.
        disparities: the greatest difference of each metric between groups, by name and class.
        listed: examples of the most frequent mistakes, for the command line's `--examples`.
        gates: bounds on these values and their verdicts, for the command line's `--gate`.
        examples: the labels in the report, for `mistakes`; None for counts.

    It prints as text, with the first 20 classes. Values are found by name:

    >>> import jaxmetrics as jm
    >>> found = jm.report(["cat", "dog", "dog", "cat"] * 9, ["cat", "dog", "cat", "cat"] * 9)
    >>> found["accuracy"]
    0.750 [0.589, 0.862]
    >>> found["recall"]
    {'cat': 1.000 [0.824, 1.000], 'dog': 0.500 [0.290, 0.710]}
    """

    template = "report.html"
    title = "Classifier report"

    counts: np.ndarray
    class_names: tuple[str, ...]
    level: float
    num_ignored: int
    overall: Mapping[str, ReportedValue]
    per_class: Mapping[str, Sequence[ReportedValue]]
    score_histogram: np.ndarray | None = None
    calibration_bins: np.ndarray | None = None
    calibrated_event: str | None = None
    num_clusters: int | None = None
    groups: Mapping[str, Report] = field(default_factory=dict)
    disparities: Mapping[tuple[str, str], ReportedValue] = field(default_factory=dict)
    listed: Sequence[Mapping[str, Any]] = ()
    gates: Sequence[JudgedGate] = ()
    examples: _Examples | None = None

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        soft_counts: ArrayLike | None = None,
        num_ignored: int = 0,
        level: float = 0.95,
        method: IntervalMethod | None = None,
    ) -> Report:
        """Make the report of one confusion matrix, and of a soft one if there are probabilities.

        Args:
            counts: `(K, K)`, integers or floats; or `(C, K, K)`, one matrix per cluster. Integers
                whose sum reaches 2^62 are converted to floats.
            class_names: K names; "0" to "K - 1" by default.
            soft_counts: `(K, K)`, from `soft_confusion_matrix`; adds the expected accuracy.
            num_ignored: number of examples left out of `counts`, for the report.
            level: the confidence level.
            method: interval method for metrics that are not proportions, by default `Likelihood()`,
                or `Delta` for sums of weights, which have no likelihood. Beyond 1024 classes these
                metrics have intervals only if a method is given, because they take minutes.

        Raises:
            TypeError: `counts` does not hold real numbers.
            ValueError: `counts` is not a square matrix of 2 to 4096 classes, holds a negative or
                non-finite number or no example; `class_names` has another length or duplicates;
                `level` is not in (0, 1).

        >>> Report.from_counts([[9, 1], [3, 7]]).overall["accuracy"].value
        0.8
        """
        if method is not None:
            check_method(method)
        tables = _checked_tables(counts)
        matrix, clusters = (tables, None) if tables.ndim == 2 else (tables.sum(0), tables)
        names = _checked_names(class_names, len(matrix))
        evidence = Evidence(as_counts(matrix), level, method, clusters)
        overall = overall_values(evidence)
        if soft_counts is not None:
            soft = np.asarray(as_square(soft_counts, len(matrix), "soft_counts"))
            overall["expected_accuracy"] = expected_accuracy(soft, level)
        number = None if clusters is None else int(number_of_clusters(clusters))
        rates = per_class_values(evidence)
        return cls(matrix, names, level, num_ignored, overall, rates, num_clusters=number)

    @classmethod
    def from_state(
        cls, state: EvaluatorState, *, class_names: Sequence[str] | None = None, level: float = 0.95
    ) -> Report:
        """Make the report of an evaluator's state: its counts, means, areas and calibration error.

        Args:
            state: from `update`, `merge`, `psum` or `load_state`.
            class_names: K names; "0" to "K - 1" by default.
            level: the confidence level.

        Raises:
            ValueError: a state without a confusion matrix, or with several; and the mistakes for
                which `from_counts` raises.

        >>> import jax.numpy as jnp, jaxmetrics as jm
        >>> metrics = jm.count_metrics({"accuracy": jm.accuracy}, num_classes=2)
        >>> evaluator = jm.evaluator(metrics, jm.mean_of("loss"))
        >>> batch = {"y_true": jnp.array([0, 1, 1]), "y_pred": jnp.array([0, 1, 0])}
        >>> batch["loss"] = jnp.array([0.1, 0.2, 2.1])
        >>> Report.from_state(evaluator.update(evaluator.init(), **batch)).overall["loss"].value
        0.8
        """
        # Imported here, because states need JAX and reports of arrays do not.
        from jaxmetrics.reports.statistics_found import confusion_matrices, findings_of
        from jaxmetrics.streaming.totals import as_numpy

        tables = state.tables()
        matrices = confusion_matrices(state)
        if len(matrices) != 1:
            raise ValueError(
                f"a report needs an evaluator's state with exactly one confusion matrix; this state"
                f" has {len(matrices)}, among {', '.join(map(repr, state.statistics))}."
            )
        counts = tables.pop(matrices[0])
        if (counts == np.round(counts)).all() and counts.max() < 2**53:
            counts = counts.astype(np.int64)
        _, ignored = as_numpy(state.examples)
        report = cls.from_counts(
            counts, class_names=class_names, num_ignored=int(ignored), level=level
        )
        for statistic, table in tables.items():
            report = report.with_findings(findings_of(statistic, table, report))
        return report

    def with_findings(self, found: Findings) -> Report:
        """Return the report with additional findings about the same examples."""
        overall = {**self.overall, **found.overall}
        per_class = {**self.per_class, **found.per_class}
        return replace(self, overall=overall, per_class=per_class, **found.tables)

    @cached_property
    def num_examples(self) -> float:
        """Return the sum of the counts: the number of examples, or their total weight."""
        return self.counts.sum().item()

    @cached_property  # computed once
    def support(self) -> np.ndarray:
        """Return the number of examples of each true class."""
        return self.counts.sum(-1)

    @property
    def notes(self) -> dict[str, str]:
        """Return the notes of the overall values that have one."""
        return {name: x.note for name, x in self.overall.items() if x.note}

    @property
    def _sample(self) -> SampleSize:
        return SampleSize(self.num_examples, self.num_ignored, self.num_clusters)

    @property
    def _found(self) -> ClassValues:
        return ClassValues(self.overall, self.per_class, self.class_names, self.support)

    def mistakes(self, number: int = 5) -> list[Mistake]:
        """Find the examples behind the most frequent mistakes (confused pairs of classes).

        Args:
            number: how many kinds of mistake to return, the most frequent first.

        Returns:
            A list of `Mistake(true, pred, times, indices)`: the names of both classes, the number
            of examples, and their positions in the data that `report` received, an array for
            `frame.iloc[indices]` or `images[indices]`. With `y_prob` the most confident mistakes
            come first, otherwise they are in the order of the data.

        Raises:
            ValueError: a report of counts or of a state, which holds no examples.

        >>> import jaxmetrics as jm
        >>> y_true = ["cat", "dog", "dog", "cow", "dog"]
        >>> jm.report(y_true, ["cat", "cow", "cat", "cow", "cow"]).mistakes(1)
        [Mistake(true='dog', pred='cow', times=2, indices=array([1, 4]))]
        """
        check_size(number, "number")
        if self.examples is None:
            raise ValueError(
                "this report was made from counts, without examples: use report(y_true, y_pred)."
            )
        position, true, pred, confidence = self.examples
        order = (
            np.arange(len(true)) if confidence is None else np.argsort(-confidence, kind="stable")
        )
        times = mistakes_in(confusion_matrix(true, pred, num_classes=len(self.counts)))
        most = np.argsort(-times, axis=None, kind="stable")[:number]
        return [
            Mistake(
                self.class_names[i],
                self.class_names[j],
                int(times[i, j]),
                position[order[(true[order] == i) & (pred[order] == j)]],
            )
            for i, j in zip(*np.unravel_index(most, times.shape), strict=True)
            if times[i, j]
        ]

    @property
    def tables_of_examples(self) -> dict[str, ValueTable]:
        """Tables of listed examples, for `--examples`."""
        return listing("Examples of the most frequent mistakes", self.listed)

    def values(self) -> dict[str, Any]:
        """Return the overall values, and dicts of values per class."""
        return self._found.by_name()

    def outline(self) -> Outline:
        """Return the outline: one line per class and per overall value; with groups, a column per
        group, and the disparities.
        """
        if self.groups:
            return grouped.outline_of(self)
        methods = {x.method for column in self.per_class.values() for x in column}
        how = "likelihood, for recalls Wilson's" if "likelihood" in methods else "Wilson's"
        areas = ", for ROC AUC a score interval" if "roc_auc" in self.per_class else ""
        return Outline(
            heading=f"{self._sample}, {len(self.class_names)} classes",
            verdict=self._verdict,
            summary=self._found.summary(),
            tables={"": self._found.table("class"), **self.tables_of_examples},
            intervals=f"Intervals: {percent(self.level)}; per class {how}{areas}.",
            notes=[f"{capital(title_of(name))}: {note}" for name, note in self.notes.items()],
            level=self.level,
            gates=self.gates,
        )

    @property
    def _verdict(self) -> str:
        accuracy, least = self.overall["accuracy"], self.overall["no_information_rate"]
        relation = "is above" if accuracy.low > least.value else "is not shown to be above"
        if accuracy.high < least.value:
            relation = "is below"
        return (
            f"Accuracy {interval(*accuracy[:3])} {relation} {least.written[0]}, the accuracy"
            " of always predicting the most frequent class."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            **self._sample.content(),
            "level": self.level,
            **self._found.content("classes"),
            **(grouped.content_of(self) if self.groups else {}),
            **({"mistakes": [*self.listed]} if self.listed else {}),
            **contents_of(self.gates),
            "confusion_matrix": self.counts.tolist(),
        }

    def records(self) -> list[dict[str, Any]]:
        """Return a row per value: overall values, and the values of each class.

        With groups: the values of each group, and the disparities.
        """
        if self.groups:
            return grouped.records_of_groups(self)
        return records_of(self._found.by_class(), "class", self.level)

    def pictures(self) -> dict[str, Any]:
        """Draw the matrix, the posterior, the recalls, and with probabilities the curves; with
        groups there are no pictures.
        """
        if self.groups:
            return {}
        from jaxmetrics.reports._pictures import pictures_of_one

        return pictures_of_one(self)


def _checked_tables(counts: ArrayLike) -> np.ndarray:
    """Check counts, with or without clusters, and convert them to int64 or floats."""
    matrix = on_host(counts, "counts")
    check_real(matrix, "counts")
    matrix = as_wide(matrix) if matrix.dtype.kind in "iu" else matrix.astype(float)
    if matrix.ndim not in (2, 3) or matrix.shape[-2] != matrix.shape[-1]:
        raise ValueError(
            f"counts must be one square matrix (K, K), got shape {matrix.shape}; one matrix per"
            " cluster is (C, K, K)."
        )
    check_number_of_classes(matrix.shape[-1], "report")
    # The largest float32 is 3e38.
    check_each((matrix >= 0) & (matrix <= 1e30), matrix, "counts", "a number from 0 to 1e30")
    if not matrix.any():
        raise ValueError("there are no examples to report on: all counts are 0.")
    return matrix


def _checked_names(class_names: Sequence[str] | None, k: int) -> tuple[str, ...]:
    names = tuple(names_of(class_names, k, "class_names"))
    if len(set(names)) != k:
        raise ValueError(f"class_names must differ, got {listed(names)}.")
    return names


def report(
    y_true: ArrayLike | Sequence[str],
    y_pred: ArrayLike | Sequence[str],
    *,
    y_prob: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    groups: ArrayLike | Sequence[Any] | None = None,
    class_names: Sequence[str] | None = None,
    level: float = 0.95,
    method: IntervalMethod | None = None,
) -> Report:
    """Classification report: metrics of a classifier with confidence intervals, from labels.

    Args:
        y_true, y_pred: true and predicted labels, `(n,)`, strings or integers. By default the
            classes are those that occur, sorted. Negative integers, and ids beyond `class_names` or
            the columns of `y_prob`, are ignored and counted in `num_ignored`.
        y_prob: probabilities `(n, K)`, a column per class in the order of the report; a data
            frame's columns are found by class name or "0" to "K - 1", alone or after "prob_". Adds
            expected accuracy (mean probability of the true class), log loss, Brier score,
            calibration error and one-vs-rest ROC AUC. Warns if most `y_pred` are not its argmax.
        sample_weight: `(n,)`, frequency weights (weight 2 = the row written twice).
        clusters: `(n,)` ids, of any type, of groups of correlated examples, such as images of one
            patient; fewer than 20 give a warning. With weights, areas have no interval.
        groups: `(n,)` ids of subgroups: adds `groups`, a dict of one `Report` per subgroup, and
            `disparities`, the largest differences between subgroups (see `compare_groups`).
        class_names: names of the ids 0 to K - 1, or, for strings, the classes in the desired order.
        level: the confidence level.
        method: interval method for metrics that are not proportions; `Likelihood()` by default,
            `Delta` with weights.

    Returns:
        `Report`, with NumPy arrays; with groups it prints them side by side.

    Raises:
        TypeError, ValueError: labels that are neither strings nor integers, an unknown class name,
            fewer than 2 or more than 4096 classes, no example left, another invalid argument.

    >>> y_true, y_pred = ["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"]
    >>> print(report(y_true, y_pred).to_text())  # doctest: +ELLIPSIS
    4 examples, 2 classes
    <BLANKLINE>
    Accuracy 0.750 [0.301, 0.954] is not shown to be above 0.500, the accuracy of
    always predicting the most frequent class.
    <BLANKLINE>
    class  n  precision         recall            specificity       F1
    cat    2  0.667 .208-.939   1.000 .342-1.000  0.500 .095-.905   0.800 .344-.968
    ...
    >>> by_site = report(y_true * 9, y_pred * 9, groups=["north", "north", "south"] * 12)
    >>> by_site.groups["north"]["accuracy"], by_site.disparities["accuracy", ""]
    (0.750 [0.551, 0.880], 0.000 [0.000, 0.311])
    """
    labels: Any = {"y_true": y_true, "y_pred": y_pred}
    (true, pred), names = checked_labels("report", class_names, {"y_prob": y_prob}, **labels)
    weights = None if sample_weight is None else _checked_weights(sample_weight)
    prob = None if y_prob is None else checked_probabilities(y_prob, true, pred, names)
    numbers = None if clusters is None else numbered_clusters(clusters, true.shape)[0]

    columns = np.arange(len(true)), true, pred, prob, weights, numbers

    def of_rows(rows: Any, level: float) -> Report:
        parts: Any = (None if x is None else x[rows] for x in columns)
        return _report_of_examples(*parts, class_names=names, level=level, method=method)

    total = of_rows(..., level)
    if groups is None:
        return total
    named = grouped.rows_of_groups(groups, true >= 0)
    return grouped.grouped_report(total, lambda name, level: of_rows(named[name], level), [*named])


def _report_of_examples(
    position: np.ndarray,
    true: np.ndarray,
    pred: np.ndarray,
    prob: np.ndarray | None,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
    *,
    class_names: Sequence[str],
    level: float,
    method: IntervalMethod | None,
) -> Report:
    """Make the report from class ids `(n,)` (-1: ignored) and further arrays of the examples."""
    k, counted, options = len(class_names), true >= 0, dict[str, Any](sample_weight=weights)
    if clusters is not None:
        numbers, number = numbered_clusters(clusters, true.shape)
        check_size_of_tables(number, k * k, "Merge clusters or classes.")
        options |= {"groups": numbers, "num_groups": number}
    found = Report.from_counts(
        confusion_matrix(true, pred, num_classes=k, **options),
        class_names=class_names,
        num_ignored=int((~counted).sum()),
        level=level,
        method=method,
    )
    confidence = None
    if prob is not None:
        confidence = prob[counted, pred[counted]].astype(float)
        sums = probability_sums(true, prob, weights)
        found = found.with_findings(probability_findings(sums, found.class_names, level))
        if clusters is not None:
            found = found.with_findings(findings_of_clusters(true, prob, weights, numbers, level))
    examples = _Examples(position[counted], true[counted], pred[counted], confidence)
    return replace(found, examples=examples)


def _checked_weights(sample_weight: ArrayLike) -> np.ndarray:
    weights = on_host(sample_weight, "sample_weight")
    check_real(weights, "sample_weight")
    possible = (weights >= 0) & (weights < np.inf)
    check_each(possible, weights, "sample_weight", "a finite number >= 0")
    return weights.astype(float)  # float16 sums are limited to 65,504
