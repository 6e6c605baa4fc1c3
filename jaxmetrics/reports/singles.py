"""The report of one classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxmetrics._labels import names_of
from jaxmetrics._validation import (
    ArrayLike,
    as_counts,
    as_square,
    as_wide,
    check_real,
    on_host,
)
from jaxmetrics._wording import capital, listed, percent, sample_size, title_of
from jaxmetrics.clusters import (
    number_of_clusters,
)
from jaxmetrics.intervals import IntervalMethod
from jaxmetrics.intervals.methods import check_method
from jaxmetrics.reports._pictures import pictures_of_one
from jaxmetrics.reports.contents import ClassValues, Findings, Outline, sample_content
from jaxmetrics.reports.labels import check_each
from jaxmetrics.reports.overall_values import (
    Evidence,
    check_number_of_classes,
    overall_values,
    per_class_estimates,
)
from jaxmetrics.reports.probabilities import (
    expected_accuracy,
)
from jaxmetrics.reports.tabular import AnyReport
from jaxmetrics.reports.values import ReportedValue, record_of, values_of

if TYPE_CHECKING:
    from jaxmetrics.streaming.states import EvaluatorState

__all__ = ["Report"]


@dataclass(frozen=True, eq=False, repr=False)
class Report(AnyReport):
    """Hold what `report` found out about a classifier.

    Attributes:
        counts: the confusion matrix `(K, K)` on the host.
        class_names: K names, in the order of the rows of `counts`.
        level: of the intervals.
        num_ignored: examples left out because a label was out of range.
        overall: a `ReportedValue` by name.
        per_class: for each name K values, in the order of `class_names`.
        score_histogram: `(K, 2, B)`, each class against the others, by its log-odds (of a state: as
            it has them).
        calibration_bins: `(bins, 3)`, of the last of two classes, or else of the predicted class,
            if there were probabilities.
        calibrated_event: what those bins are of, in a word.
        num_clusters: of examples, if they come in clusters.
        groups: a report by the name of each group, if there are groups.
        disparities: the greatest difference of each value between groups, by name and class.

    It prints as its text, with the first 20 classes. Values are found by their names:

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
    disparities: Mapping[tuple[str, str | None], ReportedValue] = field(default_factory=dict)

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
        """Report on one confusion matrix `(K, K)`, and on a soft one if there are probabilities.

        Args:
            counts: `(K, K)`, integers or floats; or `(C, K, K)`, those of clusters. Integers whose
                sum reaches 2^62 are taken as floats.
            class_names: K names; "0" to "K - 1" if not given.
            soft_counts: `(K, K)`, from `soft_confusion_matrix`; adds the expected accuracy.
            num_ignored: examples that were left out of `counts`, for the record.
            level: of the intervals.
            method: of the intervals of metrics that are no proportions, `Likelihood()` if not
                given; for sums of weights, which have no likelihood, `Delta`. Beyond 1024 classes
                these metrics have intervals only if a method is given, since they take minutes.

        Raises:
            TypeError: `counts` does not hold real numbers.
            ValueError: `counts` is not a square matrix of 2 to 4096 classes, holds a negative or
                non-finite number or no example; `class_names` has another length or names a class
                twice; `level` is not in (0, 1).

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
        per_class = {
            name: values_of(x, "wilson") for name, x in per_class_estimates(evidence).items()
        }
        number = None if clusters is None else int(number_of_clusters(clusters))
        return cls(matrix, names, level, num_ignored, overall, per_class, num_clusters=number)

    @classmethod
    def from_state(
        cls, state: EvaluatorState, *, class_names: Sequence[str] | None = None, level: float = 0.95
    ) -> Report:
        """Report on the counts in a state of an evaluator, its means, areas and calibration error.

        Args:
            state: by `update`, `merge`, `psum` or `load_state`.
            class_names, level: as for `from_counts`.

        Raises:
            ValueError: a state without a confusion matrix, or with several; as `from_counts`.

        >>> import jax.numpy as jnp, jaxmetrics as jm
        >>> metrics = jm.count_metrics({"accuracy": jm.accuracy}, num_classes=2)
        >>> evaluator = jm.evaluator(metrics, jm.mean_of("loss"))
        >>> batch = {"y_true": jnp.array([0, 1, 1]), "y_pred": jnp.array([0, 1, 0])}
        >>> batch["loss"] = jnp.array([0.1, 0.2, 2.1])
        >>> Report.from_state(evaluator.update(evaluator.init(), **batch)).overall["loss"].value
        0.8
        """
        # States are JAX's, which reports of arrays do not wait for.
        from jaxmetrics.reports.statistics_found import confusion_matrices, findings_of
        from jaxmetrics.streaming.totals import as_numpy

        tables = state.tables()
        matrices = confusion_matrices(state)
        if len(matrices) != 1:
            raise ValueError(
                f"a report needs a state with one confusion matrix, got {len(matrices)}; it holds"
                f" {', '.join(map(repr, state.statistics))}."
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
        """Add what else was found out about these examples."""
        overall = {**self.overall, **found.overall}
        per_class = {**self.per_class, **found.per_class}
        return replace(self, overall=overall, per_class=per_class, **found.tables)

    @cached_property
    def num_examples(self) -> float:
        """Sums the counts: the number of examples, or their total weight."""
        return self.counts.sum().item()

    @cached_property  # for each class it is asked for
    def support(self) -> np.ndarray:
        """Counts the examples of each class in truth."""
        return self.counts.sum(-1)

    @property
    def notes(self) -> dict[str, str]:
        """Gives the notes of the overall values that have one."""
        return {name: x.note for name, x in self.overall.items() if x.note}

    @property
    def _found(self) -> ClassValues:
        return ClassValues(self.overall, self.per_class, self.class_names, self.support)

    def values(self) -> dict[str, Any]:
        """Return the overall values, and values of the classes by their names."""
        return self._found.by_name()

    def outline(self) -> Outline:
        """Say what people are told: one line per class, then one per overall value."""
        methods = {x.method for column in self.per_class.values() for x in column}
        how = "by likelihood, of recalls Wilson's" if "likelihood" in methods else "Wilson's"
        areas = ", of areas by a score test" if "roc_auc" in self.per_class else ""
        sample = sample_size(self.num_examples, self.num_ignored, self.num_clusters)
        return Outline(
            heading=f"{sample}, {len(self.class_names)} classes",
            summary=self._found.summary(),
            tables={"": self._found.table("class")},
            intervals=f"Intervals: {percent(self.level)}; of each class {how}{areas}.",
            notes=[f"{capital(title_of(name))}: {note}" for name, note in self.notes.items()],
            level=self.level,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            **sample_content(self.num_examples, self.num_ignored, self.num_clusters),
            "level": self.level,
            **self._found.content("classes"),
            "confusion_matrix": self.counts.tolist(),
        }

    def records(self) -> list[dict[str, Any]]:
        """List overall values, which have no class, and those of each class."""
        return [
            {"name": name, "class": of_class, **record_of(x, self.level)}
            for (name, of_class), x in self._found.by_class(None).items()
        ]

    def pictures(self) -> dict[str, Any]:
        """Draw the matrix, the posterior, recalls, and curves where there were probabilities."""
        return pictures_of_one(self)


def _checked_tables(counts: ArrayLike) -> np.ndarray:
    """Convert counts, of clusters or not, to int64 or floats."""
    matrix = on_host(counts, "counts")
    check_real(matrix, "counts")
    matrix = as_wide(matrix) if matrix.dtype.kind in "iu" else matrix.astype(float)
    if matrix.ndim not in (2, 3) or matrix.shape[-2] != matrix.shape[-1]:
        raise ValueError(
            f"counts must be one square matrix (K, K), got shape {matrix.shape}; those of clusters"
            " are (C, K, K)."
        )
    check_number_of_classes(matrix.shape[-1], "report")
    # Float32 ends at 3e38.
    check_each((matrix >= 0) & (matrix <= 1e30), matrix, "counts", "a number from 0 to 1e30")
    if not matrix.any():
        raise ValueError("there are no examples to report on: all counts are 0.")
    return matrix


def _checked_names(class_names: Sequence[str] | None, k: int) -> tuple[str, ...]:
    names = tuple(names_of(class_names, k, "class_names"))
    if len(set(names)) != k:
        raise ValueError(f"class_names must differ, got {listed(names)}.")
    return names
