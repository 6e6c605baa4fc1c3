"""Reports on two classifiers for the same examples."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxmetrics import compare_predictions, confusion_matrix, delong, mcnemar, mean_interval
from jaxmetrics._arguments.indices import check_order
from jaxmetrics._arguments.labels import names_of
from jaxmetrics._arguments.single import ArrayLike
from jaxmetrics._text.wording import CONFIDENCE, Table, labels_of, percent, probability, title_of
from jaxmetrics.clusters import number_of_clusters, numbered_clusters
from jaxmetrics.comparisons.classifiers import by_halves, cubes_of_clusters
from jaxmetrics.estimates import normal_quantile
from jaxmetrics.reports.contents import (
    LONGEST_NAME,
    Outline,
    SampleSize,
    listing,
    mcnemar_in_words,
    names_of_both,
    verdict_of,
)
from jaxmetrics.reports.formats import AnyReport
from jaxmetrics.reports.gates import JudgedGate, contents_of
from jaxmetrics.reports.omissions import note_on_absent, note_on_classes, shown_values
from jaxmetrics.reports.overall_values import (
    MOST_WITH_INTERVALS,
    Evidence,
    as_invalid,
    checked_labels,
    checked_probabilities,
)
from jaxmetrics.reports.probabilities import losses_of, probability_sums, worst_brier_score
from jaxmetrics.reports.values import Compared, compared, exactly, number, records_of

__all__ = ["ComparisonReport", "comparison_report"]

_MOST_AREAS = 10  # the largest number of classes whose ROC AUCs are compared
_MOST_HISTOGRAMS = 100  # the largest number of classes whose histograms are kept
_WAYS = {
    "likelihood": "likelihood intervals",
    "student": "for losses Student's intervals",
    "mover": "for areas intervals by DeLong's variance",
}
_LOSSES = (
    f"Log loss and Brier score: less is better, so {CONFIDENCE} is the confidence that A is worse."
)


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonReport(AnyReport):
    """Result of `comparison_report`: classifiers A and B on the same examples.

    Attributes:
        counts: the confusion matrices of A and B, `(2, K, K)`.
        class_names: K names.
        num_ignored: the number of examples with a negative true label, such as -1.
        invalid: the labels of invalid predictions, which are no classes. `counts` has a row of
            zeros and a column for each of them, after the K classes.
        names: the names of A and B.
        level: the confidence level.
        rope: the largest difference that does not matter to you, a number >= 0. The range from
            -rope to rope is the region of practical equivalence.
        figures: dict from the name of each metric to its values `a`, `b` and `difference`, with
            `probability_better` and `probability_equivalent`, which are explained in `Comparison`.
            The intervals of A and B are those of `report`, and the interval of the difference is
            the likelihood interval of `compare`.
        only_right_per_class: the numbers of examples of each class that only A and only B
            classifies correctly, `(K, 2)`.
        p_value: p-value of McNemar's test of equal accuracy. It is the mid-p value of `mcnemar`, or
            its p-value for clusters if there are clusters.
        num_clusters: the number of clusters, or None if the examples are independent.
        cluster: the column of cluster ids that the command line read, or None.
        score_histograms: the array `score_histogram` of a `Report` on A and of a `Report` on B,
            `(2, K, 2, bins)`. None without probabilities, or if there are more than 100 classes.
        calibration_bins: the array `calibration_bins` of a `Report` on A and of a `Report` on B,
            `(2, bins, 3)`.
        listed: examples that only A or only B classifies correctly, for the option `--examples` of
            the command line.
        gates: bounds that differences must satisfy, set by the option `--gate` of the command line,
            each with its verdict: passed, failed or unknown.

    `print` writes the report as text. `report[name]` returns the values of a metric:

    >>> found = comparison_report([0, 1, 1, 0] * 9, [0, 1, 1, 1] * 9, [0, 1, 0, 1] * 9)
    >>> found["accuracy"]
    A 0.750 [0.588, 0.872], B 0.500 [0.337, 0.663], A - B 0.250 [0.101, 0.412],
    confidence A > B > 0.999
    """

    template = "comparison.html"
    title = "Comparison of two classifiers"

    counts: np.ndarray
    class_names: tuple[str, ...]
    num_ignored: int
    names: tuple[str, str]
    level: float
    rope: float
    figures: Mapping[str, Compared]
    only_right_per_class: np.ndarray
    p_value: float
    num_clusters: int | None = None
    score_histograms: np.ndarray | None = None
    calibration_bins: np.ndarray | None = None
    listed: Sequence[Mapping[str, Any]] = ()
    gates: Sequence[JudgedGate] = ()
    invalid: tuple[str, ...] = ()
    cluster: str | None = None

    @property
    def num_examples(self) -> int:
        """Return the number of examples that were compared."""
        return int(self.counts[0].sum())

    @property
    def num_classes(self) -> int:
        """Return the number of classes K."""
        return len(self.class_names)

    @property
    def axis_names(self) -> list[str]:
        """The names of the rows and columns of the counts: classes and invalid labels."""
        return [*self.class_names, *self.invalid]

    @property
    def support(self) -> np.ndarray:
        """Return the number of examples of each true class."""
        return self.counts[0].sum(1)[: self.num_classes]

    @property
    def only_right(self) -> tuple[int, int]:
        """Return how many examples only A classifies correctly, and how many only B does."""
        of_a, of_b = self.only_right_per_class.sum(0).tolist()
        return of_a, of_b

    @property
    def sample(self) -> SampleSize:
        """The numbers of examples, of ignored examples, and of clusters."""
        return SampleSize(
            self.num_examples, self.num_ignored, self.num_clusters, cluster=self.cluster
        )

    def __getitem__(self, name: str) -> Compared:
        """Return the values of a metric."""
        return super().__getitem__(name)

    def values(self) -> Mapping[str, Any]:
        """Return the values of each metric, by name."""
        return self.figures

    def outline(self) -> Outline:
        """Return the contents as a table with one row per metric, and McNemar's test."""
        columns = ["", "A", "B", "A - B", "method", CONFIDENCE, f"±{self.rope:g}"]
        titles = columns if self.rope > 0 else columns[:-1]
        rows = []
        for name, x in shown_values(self.figures, self.support).items():
            cells: list[Any] = [title_of(name), *x.systems.values(), x.difference.method or ""]
            rows.append([*cells, *map(probability, x.shares.values())][: len(titles)])
        methods = dict.fromkeys(x.difference.method for x in self.figures.values())
        ways = ", ".join(_WAYS[x] for x in methods if x in _WAYS) or _WAYS["likelihood"]
        only_a, only_b = self.only_right
        kind = "mid-p" if self.num_clusters is None else "of clusters"
        equivalent = f"±{self.rope:g}: confidence that A - B is between these limits."
        of_classes = note_on_classes(self.support)
        note = of_classes or note_on_absent(self.counts, self.class_names)
        main = "accuracy" if self.invalid or of_classes else "macro_f1"
        what = title_of(main)
        if "f1" in self.figures and not of_classes:  # of the positive class
            main, what = "f1", f"F1 ({labels_of(self.class_names, LONGEST_NAME)[1]})"
        return Outline(
            heading=f"{self.sample}, {self.num_classes} classes",
            verdict=verdict_of(
                self.figures[main].difference, what, self.sample, self.level, self.rope
            ),
            names=names_of_both(self.names),
            tables={
                "": Table(titles, rows, details=(titles.index("method"),), drawn=3),
                **listing("Only one is correct", self.listed),
            },
            result=mcnemar_in_words(only_a, only_b, self.p_value, kind),
            intervals=f"Intervals: {percent(self.level)}. A - B has {ways}.",
            notes=[equivalent] * (self.rope > 0)
            + [_LOSSES] * ("log_loss" in self.figures)
            + [note] * bool(note),
            level=self.level,
            gates=self.gates,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, lists, strings and numbers; undefined numbers are None."""
        only_a, only_b = self.only_right
        support = self.support.tolist()
        parts = zip(self.class_names, support, self.only_right_per_class.tolist(), strict=True)
        return {
            **self.sample.content(),
            "num_classes": self.num_classes,
            "names": list(self.names),
            "level": self.level,
            "rope": self.rope,
            "figures": {name: x.to_dict() for name, x in self.figures.items()},
            "mcnemar": {
                "only_a": only_a,
                "only_b": only_b,
                "p_value": self.p_value,
                "method": "mid-p" if self.num_clusters is None else "asymptotic",
            },
            "classes": [
                {"name": name, "support": n, "only_a": a, "only_b": b} for name, n, (a, b) in parts
            ],
            **({"examples": [*self.listed]} if self.listed else {}),
            **({"invalid_labels": [*self.invalid]} if self.invalid else {}),
            **contents_of(self.gates),
        }

    def records(self) -> list[dict[str, Any]]:
        """Return three CSV rows for each metric: A, B, and the difference A - B.

        The row of the difference also has `probability_better`, the confidence that the metric of A
        is greater than the metric of B, and `probability_equivalent`.
        """
        rows = []
        for name, x in self.figures.items():
            a, b, difference = records_of({(name, ""): x}, self.level, system="classifier")
            nothing = dict.fromkeys(x.shares)
            shares = {share: number(p) for share, p in x.shares.items()}
            rows += [a | nothing, b | nothing, difference | shares]
        return rows


def comparison_report(
    y_true: ArrayLike | Sequence[str],
    y_pred_a: ArrayLike | Sequence[str],
    y_pred_b: ArrayLike | Sequence[str],
    *,
    y_prob_a: ArrayLike | None = None,
    y_prob_b: ArrayLike | None = None,
    clusters: ArrayLike | Sequence[Any] | None = None,
    class_names: Sequence[str] | Sequence[int] | None = None,
    invalid: Hashable | Sequence[Hashable] | None = None,
    names: tuple[str, str] = ("A", "B"),
    rope: float = 0.0,
    level: float = 0.95,
) -> ComparisonReport:
    """Compare two classifiers on the same examples: paired differences of metrics, with intervals.

    For more than 1024 classes, only the difference of accuracies has an interval, because others
    would take minutes. To compute them, use `compare_predictions`.

    Args:
        y_true, y_pred_a, y_pred_b: true labels and the labels predicted by A and B, `(n,)`, strings
            or integers. Examples whose true label is negative are ignored. A negative prediction
            for another example raises an error.
        y_prob_a, y_prob_b: the probabilities of A and B, `(n, K)`, one column per class. They add
            log loss, Brier score, ROC AUC (for up to 10 classes) and, on the HTML page, ROC curves.
        clusters: `(n,)`, ids of clusters, such as patients. Examples with the same id may be
            correlated.
        class_names: names of the ids 0 to K - 1; for labels that are strings or other integers,
            such as [-1, 1], all labels in order. The default is all labels that occur, sorted.
        invalid: the label or labels of predictions that are no class, as in `report`.
        names: the names of A and B in the report.
        rope: the largest difference that does not matter to you, a number >= 0. The range from
            -rope to rope is the region of practical equivalence.
        level: the confidence level.

    Returns:
        A `ComparisonReport`, whose arrays are NumPy arrays.

    Raises:
        TypeError: if labels are neither strings nor integers, or if probabilities are not numbers.
        ValueError: if the arguments differ in length, if there are fewer than 2 or more than 4096
            classes, if a class name is unknown, if all examples are ignored, if only one classifier
            has probabilities, if probabilities do not sum to 1, if `rope` is below 0, if `level` is
            not in (0, 1), or if C clusters have `C K^3 > 2^27`.

    >>> y_true = ["cat", "dog"] * 30
    >>> y_pred_a, y_pred_b = ["cat", "dog"] * 25 + ["cat"] * 10, ["cat"] * 30 + ["dog"] * 30
    >>> print(comparison_report(y_true, y_pred_a, y_pred_b).to_text())  # doctest: +ELLIPSIS
    60 examples, 2 classes
    <BLANKLINE>
    A is better: its macro F1 is higher by 0.416 [0.236, 0.572].
    ...
    accuracy           0.917 [0.823, 0.969]  0.500 [0.373, 0.627]
    ...
    """
    labels: Any = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    probs = {"y_prob_a": y_prob_a, "y_prob_b": y_prob_b}
    check_order(**labels, **probs, clusters=clusters)
    first, second = names_of(names, 2, "names")
    if (y_prob_a is None) != (y_prob_b is None):
        raise ValueError(
            "If probabilities are given, both y_prob_a and y_prob_b are needed for the"
            " comparison. Pass both of them or neither."
        )
    not_valid = as_invalid(invalid)
    ids, classes = checked_labels("comparison", class_names, probs, not_valid, **labels)
    counted, k, size = ids[0] >= 0, len(classes), len(classes) + len(not_valid)
    if not counted.any():
        raise ValueError("y_true, y_pred_a and y_pred_b hold no examples to compare.")
    if clusters is not None:
        clusters = numbered_clusters(clusters, counted.shape)[0][counted]
    checked = [
        checked_probabilities(x, ids[0], pred, classes, name, name.replace("prob", "pred"))[counted]
        for (name, x), pred in zip(probs.items(), ids[1:], strict=True)
        if x is not None
    ]
    true, *preds = (x[counted] for x in ids)
    a, b = (pred == true for pred in preds)
    only_right = np.stack([np.bincount(true[x], minlength=k) for x in (a & ~b, b & ~a)], 1)
    only_a, only_b = only_right.sum(0).tolist()
    if clusters is None:
        number, test = None, mcnemar([[0, only_a], [only_b, 0]])
        tables = [confusion_matrix(true, x, num_classes=size) for x in preds]
        evidence = [Evidence(x, level, num_classes=k) for x in tables]
    else:
        cubes = cubes_of_clusters(true, preds[0], preds[1], clusters, size)
        number, test = int(number_of_clusters(cubes, table_ndim=3)), mcnemar(cubes, cluster_axis=0)
        tables = [cubes.sum(3), cubes.sum(2)]
        evidence = [Evidence(x.sum(0), level, clusters=x, num_classes=k) for x in tables]
    options: Any = {"clusters": clusters, "rope": rope}
    result = ComparisonReport(
        counts=np.stack([x.counts for x in evidence]),
        class_names=tuple(map(str, classes)),
        num_ignored=int((~counted).sum()),
        names=(first, second),
        level=level,
        rope=rope,
        figures=_compared_metrics(evidence, true, preds, **options),
        only_right_per_class=only_right,
        p_value=float(test.p_value),
        num_clusters=number,
        invalid=tuple(map(str, not_valid)),
    )
    return _with_probabilities(result, true, checked, clusters) if checked else result


def _compared_metrics(
    evidence: Sequence[Evidence], true: np.ndarray, preds: Sequence[np.ndarray], **options: Any
) -> dict[str, Compared]:
    """Compare each metric of A and B."""
    k, level, figures = len(evidence[0].counts), evidence[0].level, {}
    for name, metric in evidence[0].metrics.items():
        # The intervals of A and B are those of `report`.
        of_a, of_b = (x.value(name) for x in evidence)
        labels, size = [true, *preds], k
        if k > MOST_WITH_INTERVALS and name == "accuracy":  # it depends on what is right only
            labels, size = [1 * (x == true) for x in labels], 2
        elif k > MOST_WITH_INTERVALS:
            gap = exactly(of_a.value - of_b.value)
            figures[name] = Compared(of_a, of_b, gap, math.nan, math.nan)
            continue
        x = compare_predictions(metric, *labels, num_classes=size, level=level, **options)
        figures[name] = replace(compared(x), a=of_a, b=of_b)
    return figures


def _with_probabilities(
    report: ComparisonReport, y_true: np.ndarray, probs: Sequence[np.ndarray], clusters: Any
) -> ComparisonReport:
    """Add the metrics of the probabilities of A and B, `(n, K)` each, given the true ids `(n,)`.

    Losses are compared by Student's interval of their mean difference. ROC AUCs are compared by
    DeLong's variance, for each class, or only for the second class if there are two; for more than
    ten classes they are not compared.
    """
    names, figures = report.class_names, {**report.figures}
    options: Any = {"rope": report.rope, "level": report.level, "clusters": clusters}
    figures |= _compared_losses(y_true, probs, **options)
    areas = {"roc_auc": 1} if len(names) == 2 else {f"roc_auc_{x}": i for i, x in enumerate(names)}
    for name, i in areas.items() if len(names) <= _MOST_AREAS else ():
        scores = [prob[:, i] for prob in probs]
        figures[name] = compared_areas(y_true == i, scores, **options)
    sums, histograms = [probability_sums(y_true, prob, None) for prob in probs], None
    if len(names) <= _MOST_HISTOGRAMS:
        histograms = np.stack([x.score_histogram for x in sums])
    bins = np.stack([x.calibration_bins for x in sums])
    return replace(report, figures=figures, score_histograms=histograms, calibration_bins=bins)


def _compared_losses(
    y_true: np.ndarray, probs: Sequence[np.ndarray], *, rope: float, **options: Any
) -> dict[str, Compared]:
    scales: dict[str, dict[str, Any]] = {
        "log_loss": {"transform": "log"},
        "brier_score": {"bounds": (0, worst_brier_score(probs[0]))},
    }
    losses = [losses_of(y_true, prob)[1:] for prob in probs]
    figures, z = {}, normal_quantile(options["level"])
    for (name, scale), a, b in zip(scales.items(), *losses, strict=True):
        of_a, of_b = (mean_interval(x, **scale, **options) for x in (a, b))
        figures[name] = compared(by_halves(of_a, of_b, mean_interval(a - b, **options), z, rope))
    return figures


def compared_areas(
    y_true: np.ndarray,
    scores: Sequence[np.ndarray],
    *,
    rope: float,
    level: float,
    clusters: Sequence[Any] | None = None,
) -> Compared:
    """Compare the areas under the ROC curves of two scores that predict the same event."""
    areas = delong(y_true, *scores, level=level, clusters=clusters)
    z = normal_quantile(level)
    return compared(by_halves(areas.a, areas.b, areas.difference, z, rope))
