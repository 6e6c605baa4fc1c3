"""Reports on one classifier, from predictions, counts or the state of an evaluator."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np

from jaxmetrics import IntervalMethod, confusion_matrix
from jaxmetrics._arguments.labels import distinct_names_of
from jaxmetrics._arguments.single import (
    ArrayLike,
    as_counts,
    as_square,
    as_wide,
    check_real,
    check_size,
    on_host,
)
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._text.wording import Table, capital, labels_of, listed, percent
from jaxmetrics.clusters import few_clusters, number_of_clusters, warn_of_few_clusters
from jaxmetrics.intervals.methods import check_method
from jaxmetrics.reports.contents import (
    LONGEST_NAME,
    ClassValues,
    Findings,
    Outline,
    SampleSize,
    listing,
    matrix_of,
)
from jaxmetrics.reports.formats import AnyReport
from jaxmetrics.reports.gates import JudgedGate, contents_of
from jaxmetrics.reports.omissions import note_on_absent, note_on_classes, shown_values
from jaxmetrics.reports.overall_values import (
    Evidence,
    as_invalid,
    check_each,
    check_number_of_classes,
    mistakes_in,
    overall_values,
    per_class_values,
)
from jaxmetrics.reports.probabilities import expected_accuracy
from jaxmetrics.reports.values import ReportValue

if TYPE_CHECKING:
    from jaxmetrics.streaming.states import EvaluatorState

__all__ = ["Report"]

# The names of values that every report has, for type checkers.
Overall: TypeAlias = Literal[
    "accuracy",
    "balanced_accuracy",
    "macro_f1",
    "micro_f1",
    "weighted_f1",
    "matthews_corrcoef",
    "cohen_kappa",
    "no_information_rate",
    "accuracy_gain",
]
PerClass: TypeAlias = Literal["precision", "recall", "specificity", "f1"]
_MOST_MISTAKES = 10  # the largest number of wrong free-form answers in the text
EXAMPLES = "Examples of the most frequent mistakes"  # the title of a table


class Mistake(NamedTuple):
    """A kind of mistake: the true class, the wrongly predicted class, and the examples.

    Attributes:
        true, pred: the names of both classes.
        times: the number of examples.
        indices: the positions of the examples in the data.
    """

    true: str
    pred: str
    times: int
    indices: np.ndarray


class LabelledExamples(NamedTuple):
    """The examples of a report: their positions in the data, class ids, and the probability of the
    predicted class, if there are probabilities.
    """

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
        num_ignored: the number of examples with a negative true label, such as -1.
        invalid: the labels of invalid predictions, which are no classes. `counts` has a row of
            zeros and a column for each of them, after the K classes.
        overall: dict from the name of each metric to its value, which has the attributes `value`,
            `low`, `high`, `standard_error`, `estimate` (an `Estimate`), `method` (of the interval)
            and `note` (a sentence that helps to interpret the value). The last two may be None.
        per_class: dict from the name of each metric to its K values, in the order of `class_names`.
        score_histogram: for each class, two histograms of its predicted log-odds, `(K, 2, B)` for B
            bins. The first is of the examples of all other classes, the second of the examples of
            this class. If `from_state` made the report, the bins are those of `ranking_metrics`.
        calibration_bins: `(bins, 3)`, the result of the function `calibration_bins`, or None if
            there were no probabilities.
        calibrated_event: whose probability is in `calibration_bins`.
        num_clusters: the number of clusters, or None if the examples are independent.
        cluster: the column of cluster ids that the command line read, or None.
        squares, num_weighted: if `counts` are sums of weights, the sums of their squares, `(K, K)`,
            and the number of examples; None if unknown.
        groups: dict from the name of each group to a report on this group, if there are groups.
        disparities: dict from `(metric, class)` to the largest difference of this metric between
            two groups. For overall metrics the class is "".
        listed: examples of the most frequent mistakes, for `--examples` of the command line.
        gates: conditions of the option `--gate`, each with its verdict.
        examples: the labels of the examples, for the method `mistakes`. None if the report was made
            from counts.

    `print` writes the report as text (only the first 20 classes, and neither classes nor averages
    over classes if they look like free-form answers). `report[name]` returns a value:

    >>> import jaxmetrics as jm
    >>> found = jm.report(["cat", "dog", "dog", "cat"] * 9, ["cat", "dog", "cat", "cat"] * 9)
    >>> found["accuracy"]
    0.750 [0.588, 0.872]
    >>> found["recall"]
    {'cat': 1.000 [0.848, 1.000], 'dog': 0.500 [0.275, 0.725]}
    """

    template = "report.html"
    title = "Classifier report"

    counts: np.ndarray
    class_names: tuple[str, ...]
    level: float
    num_ignored: int
    overall: Mapping[str, ReportValue]
    per_class: Mapping[str, Sequence[ReportValue]]
    score_histogram: np.ndarray | None = None
    calibration_bins: np.ndarray | None = None
    calibrated_event: str | None = None
    num_clusters: int | None = None
    squares: np.ndarray | None = None
    num_weighted: int | None = None
    groups: Mapping[str, Report] = field(default_factory=dict)
    disparities: Mapping[tuple[str, str], ReportValue] = field(default_factory=dict)
    listed: Sequence[Mapping[str, Any]] = ()
    gates: Sequence[JudgedGate] = ()
    examples: LabelledExamples | None = None
    invalid: tuple[str, ...] = ()
    cluster: str | None = None

    @classmethod
    def from_counts(
        cls,
        counts: ArrayLike,
        *,
        class_names: Sequence[str] | None = None,
        soft_counts: ArrayLike | None = None,
        squares: ArrayLike | None = None,
        num_ignored: int = 0,
        invalid: Hashable | Sequence[Hashable] | None = None,
        level: float = 0.95,
        method: IntervalMethod | None = None,
    ) -> Report:
        """Make the report on a confusion matrix.

        Args:
            counts: `(K, K)`, integers or floats; or `(C, K, K)`, one matrix for each of C clusters
                (groups of correlated examples).
            class_names: K names; by default the columns of a data frame, or "0" to "K - 1".
            soft_counts: `(K, K)`, the result of `soft_confusion_matrix`. It adds the expected
                accuracy.
            squares: `(K, K)`, if examples have weights: the sums of their squares, where `counts`
                are the sums of the weights.
            num_ignored: the number of ignored examples that the report shows.
            invalid: the name or names in `class_names` that are no classes but mark invalid
                predictions, as in `report`. Their rows must be 0.
            level: the confidence level.
            method: the interval method for metrics that are not proportions. The default is
                `Likelihood()`, or `Delta` for sums of weights. For more than 1024 classes, these
                metrics have intervals only if a method is given, which takes minutes.

        Raises:
            TypeError: if `counts` does not contain real numbers.
            ValueError: if `counts` is not a square matrix of 2 to 4096 classes, if it contains a
                negative, infinite or NaN value or no examples, if `class_names` does not have
                length K or contains duplicates, or if `level` is not in (0, 1).

        >>> Report.from_counts([[9, 1], [3, 7]]).overall["accuracy"].value
        0.8
        """
        if method is not None:
            check_method(method)
        tables, labels = _checked_tables(counts), as_invalid(invalid)
        if class_names is None and hasattr(counts, "columns"):
            class_names = list(map(str, counts.columns))
        squares = None if squares is None else on_host(squares, "squares").astype(float)
        tables, squares, names = with_invalid_last(tables, squares, class_names, labels)
        matrix, clusters = (tables, None) if tables.ndim == 2 else (tables.sum(0), tables)
        check_number_of_classes(k := len(names), "report")
        evidence = Evidence(as_counts(matrix), level, method, clusters, squares, k)
        with few_clusters() as few:
            overall = overall_values(evidence)
            rates = per_class_values(evidence, (..., slice(k)))
        warn_of_few_clusters(few)
        if soft_counts is not None:
            soft = np.asarray(as_square(soft_counts, k, "soft_counts"))
            overall["expected_accuracy"] = expected_accuracy(soft, level)
        number = None if clusters is None else int(number_of_clusters(clusters))
        shared: Any = {"num_clusters": number, "squares": squares}
        shared["invalid"] = tuple(map(str, labels))
        return cls(matrix, tuple(names), level, num_ignored, overall, rates, **shared)

    @classmethod
    def from_state(
        cls, state: EvaluatorState, *, class_names: Sequence[str] | None = None, level: float = 0.95
    ) -> Report:
        """Make the report on an evaluator's state: counts, means, areas and calibration error.

        Args:
            state: the result of `update`, `merge`, `psum` or `load_state`.
            class_names: K names; "0" to "K - 1" by default.
            level: the confidence level.

        If examples have weights, ROC AUC and calibration error have no interval. Nor has any value
        whose sums of squared weights are not in the state, because an earlier version saved it, or
        because `mean_of` was called without `level`.

        Raises:
            ValueError: if the state contains no confusion matrix or more than one, or if
                `from_counts` does not accept the counts or another argument.

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
        from jaxmetrics.streaming.standard_statistics import PoissonReplicates, SquaredWeights
        from jaxmetrics.streaming.totals import as_numpy

        tables = state.tables()
        matrices = confusion_matrices(state)
        if len(matrices) != 1:
            raise ValueError(
                "A report needs the state of an evaluator that has exactly one confusion matrix"
                f" without groups, but this state has {len(matrices)}. If there is one matrix for"
                " each group, pass their sum to Report.from_counts, or call interval(metric,"
                " matrices, cluster_axis=-3). The statistics of this state are"
                f" {', '.join(map(repr, state.statistics))}."
            )
        if any(isinstance(x, PoissonReplicates) for x in state.statistics):
            warn(
                "The state has bootstrap replicates, but a report treats all examples as"
                " independent. evaluator.compute(state) returns intervals that allow for units."
            )
        matrix = matrices[0]
        number, ignored, invalid = as_numpy(state.examples).tolist()
        counts, squares = tables.pop(matrix), tables.get(SquaredWeights(matrix))
        differ = counts.sum() != number if squares is None else (squares != counts).any()
        has_weights = matrix.weighted and differ

        def squares_of(statistic: Any, table: np.ndarray) -> np.ndarray | None:
            unknown = np.full_like(table, np.nan)  # in states of earlier versions
            return tables.get(SquaredWeights(statistic), unknown) if has_weights else None

        if invalid:
            warn(
                f"{invalid} examples have a prediction that is no class, such as the argmax of NaN."
                " They are in no count, although the predictions are wrong."
            )
        options: Any = {"class_names": class_names, "num_ignored": ignored, "level": level}
        report = cls.from_counts(whole(counts), squares=squares_of(matrix, counts), **options)
        if has_weights:
            report = replace(report, num_weighted=number, squares=squares)
        for statistic, table in tables.items():
            args = squares_of(statistic, table), report.class_values, level
            report = report.with_findings(findings_of(statistic, table, *args))
        return report

    def with_findings(self, findings: Findings) -> Report:
        """Return the report with additional values for the same examples."""
        overall = {**self.overall, **findings.overall}
        per_class = {**self.per_class, **findings.per_class}
        return replace(self, overall=overall, per_class=per_class, **findings.tables)

    @cached_property
    def num_examples(self) -> float:
        """Return the number of examples, or the sum of the counts if it is unknown."""
        return self.counts.sum().item() if self.num_weighted is None else self.num_weighted

    @cached_property  # computed once
    def support(self) -> np.ndarray:
        """Return the number of examples of each true class."""
        return self.counts.sum(-1)[: len(self.class_names)]

    @property
    def axis_names(self) -> list[str]:
        """The names of the rows and columns of the counts: classes and invalid labels."""
        return [*self.class_names, *self.invalid]

    @property
    def notes(self) -> dict[str, str]:
        """Return the notes on overall values by the name of the value."""
        return {name: x.note for name, x in self.overall.items() if x.note}

    @property
    def sample(self) -> SampleSize:
        """The numbers of examples, of ignored examples, and of clusters."""
        size = SampleSize(
            self.num_examples, self.num_ignored, self.num_clusters, cluster=self.cluster
        )
        if self.num_weighted is not None:
            size = size._replace(weight=self.counts.sum().item())
        if self.invalid:
            invalid = self.counts[:, len(self.class_names) :].sum().item()
            size = size._replace(num_invalid=invalid)
        if self.squares is not None:
            effective = self.counts.sum() ** 2 / self.squares.sum()
            size = size._replace(effective=effective.item())
        return size

    @property
    def class_values(self) -> ClassValues:
        """All values."""
        return ClassValues(self.overall, self.per_class, self.class_names, self.support)

    def mistakes(self, number: int = 5) -> list[Mistake]:
        """Find the examples of the most frequent mistakes (pairs of a true and a predicted class).

        Args:
            number: how many pairs of classes to return, the most frequent first.

        Returns:
            A list of `Mistake(true, pred, times, indices)`: the names of both classes, the number
            of examples, and their positions in the data. If `y_prob` was given, the most confident
            mistakes come first. Otherwise they have the order of the data.

        Raises:
            ValueError: if the report was made from counts or from a state.

        >>> import jaxmetrics as jm
        >>> y_true = ["cat", "dog", "dog", "cow", "dog"]
        >>> jm.report(y_true, ["cat", "cow", "cat", "cow", "cow"]).mistakes(1)
        [Mistake(true='dog', pred='cow', times=2, indices=array([1, 4]))]
        """
        check_size(number, "number")
        if self.examples is None:
            raise ValueError(
                "This report was made from counts, which do not contain single examples. Make the"
                " report with report(y_true, y_pred) to list examples."
            )
        position, true, pred, confidence = self.examples
        order = (
            np.arange(len(true)) if confidence is None else np.argsort(-confidence, kind="stable")
        )
        times = mistakes_in(confusion_matrix(true, pred, num_classes=len(self.counts)))
        most = np.argsort(-times, axis=None, kind="stable")[:number]
        return [
            Mistake(
                self.axis_names[i],
                self.axis_names[j],
                int(times[i, j]),
                position[order[(true[order] == i) & (pred[order] == j)]],
            )
            for i, j in zip(*np.unravel_index(most, times.shape), strict=True)
            if times[i, j]
        ]

    @overload
    def __getitem__(self, name: Overall) -> ReportValue: ...
    @overload
    def __getitem__(self, name: PerClass) -> dict[str, ReportValue]: ...
    @overload
    def __getitem__(self, name: str) -> Any: ...
    def __getitem__(self, name: str) -> Any:
        """Return a value by name, or a dict of values per class."""
        return super().__getitem__(name)

    def values(self) -> dict[str, Any]:
        """Return the overall values by name, and dicts of the values per class by name."""
        return self.class_values.by_name()

    def outline(self) -> Outline:
        """Return the contents as tables with one row per class and per overall value. If classes
        look like free-form answers, or if all true classes are the same, the most frequent wrong
        predictions take the place of the classes.
        """
        values = self.class_values
        overall, columns = dict(shown_values(self.overall, self.support)), dict(values.columns)
        if len(self.class_names) == 2 and not self.invalid and "roc_auc" in columns:
            overall["roc_auc"] = columns.pop("roc_auc")[1]  # equal for both classes
        values = values._replace(overall=overall, columns=columns)
        how = " The classes have likelihood intervals"
        table = {"": values.table()}
        if any(x.has_interval for x in self.per_class.get("roc_auc", ())):
            how += ", and ROC AUC has score intervals"
        if note := note_on_classes(self.support):
            how, names = "", labels_of(self.axis_names, LONGEST_NAME)
            times = mistakes_in(self.counts).sum(0)
            order = np.argsort(-times, kind="stable")[:_MOST_MISTAKES]
            rows = [[names[i] or "''", str(times[i])] for i in order if times[i]]
            title = "Most frequent wrong predictions"
            table = {title: Table(["predicted", "times"], rows)} if rows else {}
        return Outline(
            heading=f"{self.sample}, {len(self.class_names)} classes",
            verdict=self._verdict,
            summary=values.summary(),
            tables={**table, **listing(EXAMPLES, self.listed)},
            intervals=f"Intervals: {percent(self.level)}.{how}{'.' * bool(how)}",
            notes=[
                *(f"{capital(title)}: {x.note}" for title, x in values.summary() if x.note),
                *filter(None, [note or note_on_absent(self.counts, self.class_names)]),
            ],
            level=self.level,
            gates=self.gates,
            matrix=matrix_of(self.counts, self.axis_names),
        )

    @property
    def _verdict(self) -> str:
        shown = shown_values(self.overall, self.support)
        accuracy, gain = self.overall["accuracy"], shown.get("accuracy_gain")
        if gain is None:
            return f"Accuracy is {accuracy}."
        least = self.overall["no_information_rate"]
        relation = "is above" if gain.low > 0 else "is not shown to be above"
        if gain.high < 0:
            relation = "is below"
        return (
            f"Accuracy {accuracy} {relation} {least.written[0]}, the accuracy of always predicting"
            f" the most frequent class: the difference is {gain}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            **self.sample.content(),
            "level": self.level,
            **self.class_values.content(),
            **self._more_content(),
            **({"mistakes": [*self.listed]} if self.listed else {}),
            **contents_of(self.gates),
            **({"invalid_labels": [*self.invalid]} if self.invalid else {}),
            "confusion_matrix": self.counts.tolist(),
        }

    def _more_content(self) -> dict[str, Any]:
        return {}

    def records(self) -> list[dict[str, Any]]:
        """Return a CSV row for each overall value and for each value of a class."""
        return self.class_values.records(self.level)


def whole(counts: np.ndarray) -> np.ndarray:
    """Convert counts to integers if all of them are integers that floats represent exactly."""
    if (counts == np.round(counts)).all() and counts.max(initial=0) < 2**53:
        return counts.astype(np.int64)
    return counts


def with_invalid_last(
    tables: np.ndarray,
    squares: np.ndarray | None,
    class_names: Sequence[str] | None,
    invalid: Sequence[Hashable],
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Move the rows and columns of invalid labels to the end, and return the names of the classes.

    Raises:
        ValueError: if an invalid label is a true class or none of the names.
    """
    names = distinct_names_of(class_names, tables.shape[-1], "class_names")
    if not invalid:
        return tables, squares, names
    labels = list(map(str, invalid))
    if absent := [x for x in labels if x not in names]:
        raise ValueError(
            f"invalid names {listed(map(repr, absent))}, but class_names are {listed(names)}."
        )
    classes = [x for x in names if x not in labels]
    order = list(map(names.index, classes + labels))

    def sorted_labels(x: np.ndarray) -> np.ndarray:
        return x[..., order, :][..., order]

    tables = sorted_labels(tables)
    true = tables[..., len(classes) :, :].sum(-1).reshape((-1, len(labels))).sum(0)
    if true.any():
        i = int(true.argmax())
        raise ValueError(
            f"invalid names the label {labels[i]!r}, which is the true class of {true[i]:g}"
            " examples, but only predictions can be invalid."
        )
    return tables, None if squares is None else sorted_labels(squares), classes


def _checked_tables(counts: ArrayLike) -> np.ndarray:
    """Check the counts, which may have a cluster axis, and convert them to int64 or floats."""
    matrix = on_host(counts, "counts")
    check_real(matrix, "counts")
    matrix = as_wide(matrix) if matrix.dtype.kind in "iu" else matrix.astype(float)
    if matrix.ndim not in (2, 3) or matrix.shape[-2] != matrix.shape[-1]:
        raise ValueError(
            "counts must be a single square confusion matrix of shape (K, K) or, if there is one"
            f" matrix for each cluster, an array of shape (C, K, K), got {matrix.shape}."
        )
    # The largest float32 is 3e38.
    check_each((matrix >= 0) & (matrix <= 1e30), matrix, "counts", "a number from 0 to 1e30")
    if not matrix.any():
        raise ValueError("there are no examples to report on: all counts are 0.")
    return matrix
