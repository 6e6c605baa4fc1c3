"""The report of one classifier."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxmetrics._validation import ArrayLike, as_counts, as_square, check_real
from jaxmetrics.counts import confusion_matrix
from jaxmetrics.estimates import Estimate
from jaxmetrics.ranking import average_precision_bounds, roc_auc_bounds
from jaxmetrics.reports._figures import (
    Figure,
    balanced_accuracy_figure,
    evaluate,
    figure_dict,
    figure_of,
    overall_figures,
)
from jaxmetrics.reports._pages import page_of
from jaxmetrics.reports._text import cell, printable, table_of, title_of
from jaxmetrics.reports.labels import are_probabilities, as_ids, check_each
from jaxmetrics.reports.probabilities import (
    ProbabilitySums,
    area_figures,
    expected_accuracy,
    probability_figures,
    probability_sums,
)
from jaxmetrics.scoring import binned_calibration_error
from jaxmetrics.streaming.accumulators import mean_estimate
from jaxmetrics.streaming.evaluators import EXAMPLES, State
from jaxmetrics.streaming.totals import in_float64

__all__ = ["Report", "report"]

_COLUMNS = 4  # that fit into 80 characters
_PREDICTED = "predicted class"


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
        score_histogram: `(K, 2, B)`, each class against the others, by its log-odds (of a state: as
            it has them).
        calibration_bins: `(bins, 3)`, of the last of two classes, or else of the predicted class,
            if there were probabilities.
        calibrated_event: what those bins are of, in a word.
    """

    counts: np.ndarray
    class_names: tuple[str, ...]
    level: float
    num_ignored: int
    overall: Mapping[str, Figure]
    per_class: Mapping[str, Sequence[Figure]]
    score_histogram: np.ndarray | None = None
    calibration_bins: np.ndarray | None = None
    calibrated_event: str | None = None

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
        """The report of one confusion matrix `(K, K)`, and of a soft one if there are
        probabilities.

        Args:
            counts: `(K, K)`, integers or floats.
            class_names: K names; "0" to "K - 1" if not given.
            soft_counts: `(K, K)`, from `soft_confusion_matrix`; adds the expected accuracy.
            num_ignored: examples that were left out of `counts`, for the record.
            level: of the intervals.

        Raises:
            TypeError: `counts` does not hold real numbers.
            ValueError: `counts` is not a square matrix of at least two classes, holds a negative or
                non-finite number or no example; `class_names` has another length or names a class
                twice; `level` is not in (0, 1).

        >>> Report.from_counts([[9, 1], [3, 7]]).overall["accuracy"].value
        0.8
        """
        matrix = np.asarray(counts)
        if matrix.dtype.kind not in "iu":
            check_real(matrix, "counts")
        whole = matrix.dtype.kind in "iu" and (matrix.size == 0 or matrix.max() < 2**63)
        # Unsigned differences would wrap around.
        matrix = matrix.astype(np.int64 if whole else float)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"counts must be one square matrix (K, K), got shape {matrix.shape}.")
        k = len(matrix)
        if k < 2:
            raise ValueError(f"a report needs at least two classes, got {k}.")
        # Float32 ends at 3e38.
        check_each((matrix >= 0) & (matrix <= 1e30), matrix, "counts", "a number from 0 to 1e30")
        if not matrix.any():
            raise ValueError("there are no examples to report on: all counts are 0.")
        names = tuple(map(str, range(k))) if class_names is None else tuple(map(str, class_names))
        if len(names) != k:
            raise ValueError(
                f"class_names must have one name per class: expected {k}, got {len(names)}."
            )
        if len(set(names)) != k:
            raise ValueError(f"class_names must differ, got {', '.join(names)}.")

        estimates, columns = evaluate(as_counts(matrix), level)
        overall = {}
        for name, figure in overall_figures(matrix, level, estimates).items():
            overall[name] = figure
            if name == "balanced_accuracy":
                overall["balanced_accuracy_posterior"] = balanced_accuracy_figure(matrix, level)
        if soft_counts is not None:
            overall["expected_accuracy"] = expected_accuracy(
                np.asarray(as_square(soft_counts, k, "soft_counts")), level
            )
        per_class = {
            name: [figure_of(Estimate(*parts), "wilson") for parts in zip(*column, strict=True)]
            for name, column in columns._asdict().items()
        }
        return cls(matrix, names, level, num_ignored, overall, per_class)

    @classmethod
    def from_state(
        cls, state: State, *, class_names: Sequence[str] | None = None, level: float = 0.95
    ) -> Report:
        """The report of the counts in a state of an evaluator, with its means, areas and
        calibration error.

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
        tables = {name: in_float64(totals) for name, totals in state.items()}
        _, ignored = tables.pop(EXAMPLES)
        matrices = [
            name
            for name in tables
            if name.startswith("confusion_matrix(") and tables[name].ndim == 2
        ]
        if len(matrices) != 1:
            held = ", ".join(tables)
            raise ValueError(
                f"a report needs a state with one confusion matrix, got {len(matrices)}; it holds"
                f" {held}."
            )
        counts = tables.pop(matrices[0])
        counts = (
            counts.astype(np.int64)
            if (counts == np.round(counts)).all() and counts.max() < 2**53
            else counts
        )
        report = cls.from_counts(
            counts, class_names=class_names, num_ignored=int(ignored), level=level
        )
        for key, table in tables.items():
            report = report._with_table(key, table)
        return report

    def _with_table(self, key: str, table: np.ndarray) -> Report:
        """With what another table of a state says."""
        kind, _, options = key.partition("(")
        if kind == "moments":
            figure = figure_of(mean_estimate(table, self.level), "normal")
            name = options.removesuffix(")")
            return self._with({f"mean_{name}" if name in self.overall else name: figure})
        if kind == "score_histogram" and table.ndim == 2:
            areas = {
                "roc_auc": roc_auc_bounds(table),
                "average_precision": average_precision_bounds(table),
            }
            return self._with(
                {
                    name: Figure(float(x.value), float(x.low), float(x.high), "bounds")
                    for name, x in areas.items()
                }
            )
        if kind == "score_histogram" and len(table) == len(self.class_names):
            return self._with(
                {}, per_class={"roc_auc": area_figures(table, self.level)}, score_histogram=table
            )
        if kind == "calibration_bins":
            error = {"calibration_error": Figure(float(binned_calibration_error(table)))}
            event = _PREDICTED if "num_classes" in options else self.class_names[-1]
            return self._with(error, calibration_bins=table, calibrated_event=event)
        return self

    def with_probabilities(self, sums: ProbabilitySums) -> Report:
        """With what the sums say of the probabilities of these examples."""
        return self._with(
            probability_figures(sums, self.level),
            per_class={"roc_auc": area_figures(sums.score_histogram, self.level)},
            score_histogram=sums.score_histogram,
            calibration_bins=sums.judged_bins,
            calibrated_event=self.class_names[1] if len(self.class_names) == 2 else _PREDICTED,
        )

    def _with(
        self,
        overall: Mapping[str, Figure],
        *,
        per_class: Mapping[str, Sequence[Figure]] | None = None,
        **tables: Any,
    ) -> Report:
        per_class = {**self.per_class, **(per_class or {})}
        return replace(self, overall={**self.overall, **overall}, per_class=per_class, **tables)

    @property
    def num_examples(self) -> float:
        """The sum of the counts: the number of examples, or their total weight."""
        return self.counts.sum().item()

    @property
    def support(self) -> np.ndarray:
        """Examples of each class in truth."""
        return self.counts.sum(-1)

    def to_text(self) -> str:
        """Tables for a terminal: one line per class, then one per overall figure."""
        ignored = f", {self.num_ignored} ignored" if self.num_ignored else ""
        heading = f"{self.num_examples:.10g} examples{ignored}, {len(self.class_names)} classes"
        columns = list(self.per_class)
        classes = [
            self._table_of_classes(columns[i : i + _COLUMNS])
            for i in range(0, len(columns), _COLUMNS)
        ]
        overall = [
            [title_of(name), cell(figure), figure.interval or ""]
            for name, figure in self.overall.items()
        ]
        areas = ", of areas Newcombe's" if "roc_auc" in self.per_class else ""
        note = (
            f"Intervals: {100 * self.level:.10g} %; of each class Wilson's{areas}.\n"
            "Posterior: with a flat prior, equal-tailed."
        )
        return "\n\n".join([heading, *classes, table_of(overall), note]) + "\n"

    def _table_of_classes(self, columns: Sequence[str]) -> str:
        rows = [["class", "n", *map(title_of, columns)]]
        for i, name in enumerate(self.class_names):
            rows.append(
                [
                    printable(name),
                    f"{self.support[i]:.10g}",
                    *(cell(self.per_class[key][i]) for key in columns),
                ]
            )
        return table_of(rows)

    def to_dict(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers; undefined numbers are None."""
        return {
            "num_examples": self.num_examples,
            "num_ignored": self.num_ignored,
            "level": self.level,
            "overall": {name: figure_dict(figure) for name, figure in self.overall.items()},
            "classes": [
                {"name": name, "support": self.support[i].item()}
                | {key: figure_dict(column[i]) for key, column in self.per_class.items()}
                for i, name in enumerate(self.class_names)
            ],
            "confusion_matrix": self.counts.tolist(),
        }

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"

    def to_html(self, *, title: str = "Classifier report") -> str:
        """One page of HTML that loads nothing, for a screen, a phone or paper.

        Headline numbers, what goes wrong most, pictures, all numbers, and how their intervals were
        made.

        Args:
            title: the heading.

        Raises:
            ImportError: jinja2 or matplotlib is not installed; the extra `html` has both.
        """
        return page_of(self, title)


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
        y_true, y_pred: `(n,)`, strings or integers. Without `class_names` the classes are those
            that occur, sorted. Negative integers, and ids beyond `class_names` or the columns of
            `y_prob`, are ignored and counted as such.
        y_prob: `(n, K)` probabilities; adds the expected accuracy (the mean probability given to
            the truth), log loss and Brier score, the calibration error, and each class's area under
            the ROC curve against the others.
        sample_weight: `(n,)`; intervals read weights as frequencies (weight 2 = the row written
            twice).
        class_names: names of the ids 0 to K - 1, or, for strings, the classes in the order wanted.
        level: of the intervals.

    Raises:
        TypeError: labels that are neither strings nor integers, other arguments that are no
            numbers.
        ValueError: unequal lengths, fewer than two classes, an unknown class name, a negative
            weight, probabilities that do not sum to 1, no example left, `level` not in (0, 1).

    # Doctest: +ELLIPSIS.
    >>> print(report(["cat", "dog", "dog", "cat"], ["cat", "dog", "cat", "cat"]).to_text())
    4 examples, 2 classes
    <BLANKLINE>
    class  n  precision         recall            specificity       F1
    cat    2  0.667 .208-.939   1.000 .342-1.000  0.500 .095-.905   0.800 .344-.968
    ...
    """
    true, pred = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != pred.shape:
        raise ValueError(
            "y_true and y_pred must have shape (n,), the same number of examples: got"
            f" {true.shape}, {pred.shape}."
        )
    if true.size == 0:
        raise ValueError("there are no examples to report on.")
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is not None:
        check_real(weights, "sample_weight")
        check_each(weights >= 0, weights, "sample_weight", "a number >= 0")
    num_columns = None
    if y_prob is not None:
        prob = np.asarray(y_prob)
        check_real(prob, "y_prob")
        if prob.ndim != 2 or len(prob) != len(true):
            raise ValueError(f"y_prob must have shape (n, K) = ({len(true)}, K), got {prob.shape}.")
        num_columns = prob.shape[1]
    (true, pred), names = as_ids({"y_true": true, "y_pred": pred}, class_names, num_columns)
    k = len(names)
    if num_columns not in (None, k):
        raise ValueError(
            f"y_prob has {num_columns} columns, but there are {k} classes:"
            f" {', '.join(map(str, names))}."
        )
    counted = (true >= 0) & (true < k) & (pred >= 0) & (pred < k)
    if y_prob is not None:
        check_each(
            are_probabilities(prob) | ~counted, prob, "y_prob", "probabilities that sum to 1"
        )
    counts = confusion_matrix(
        true, pred, num_classes=max(k, 1), sample_weight=weights, where=counted
    )
    result = Report.from_counts(
        counts, class_names=names, num_ignored=int((~counted).sum()), level=level
    )
    if y_prob is None:
        return result
    return result.with_probabilities(probability_sums(np.where(counted, true, -1), prob, weights))
