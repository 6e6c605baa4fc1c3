"""The values of a report that are computed from one confusion matrix, and checks of labels.

Everything is computed with NumPy in float64.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jaxmetrics import (
    Delta,
    Estimate,
    IntervalMethod,
    Likelihood,
    accuracy,
    balanced_accuracy,
    balanced_accuracy_posterior,
    cohen_kappa,
    confusion_matrix,
    difference,
    f1,
    interval,
    macro,
    matthews_corrcoef,
    mean_interval,
    micro,
    no_information_rate,
    paired_difference_interval,
    precision,
    proportion_interval,
    selection_rate,
    weighted,
)
from jaxmetrics._arguments.example_arguments import are_distributions, eps_of
from jaxmetrics._arguments.labels import (
    are_labels,
    as_ids,
    as_names,
    check_columns,
    is_missing,
    ordered_categories,
    warn_of_absent,
)
from jaxmetrics._arguments.single import (
    IGNORED,
    RAVEL,
    ArrayLike,
    as_rows,
    check_real,
    ids_in_range,
    on_host,
    refuse_where,
    warn_of_left_out_class,
)
from jaxmetrics._numerics.arithmetic import divide
from jaxmetrics._places.jax_imports import trees
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._sums.cell_sums import cells
from jaxmetrics._text.wording import enumeration, fraction, listed
from jaxmetrics.clusters import NO_GROUP, numbered_clusters
from jaxmetrics.estimates import Metric, normal_quantile
from jaxmetrics.intervals.checks import FewExamplesWarning, few_examples
from jaxmetrics.reports.contents import POSTERIOR
from jaxmetrics.reports.values import ReportValue, exactly, value_of, values_of

__all__: list[str] = []

COMPARED: dict[str, Metric] = {
    "accuracy": accuracy,
    "balanced_accuracy": balanced_accuracy,
    "macro_f1": macro(f1),
    "weighted_f1": weighted(f1),
    "matthews_corrcoef": matthews_corrcoef,
    "cohen_kappa": cohen_kappa,
}
COEFFICIENTS = ("matthews_corrcoef", "cohen_kappa")  # from -1 to 1
# The largest number of classes in a report, whose counts take 128 MB.
MOST_CLASSES = 4096
# If there are more classes, the search for likelihood intervals in K^2 cells takes minutes.
MOST_WITH_INTERVALS = 1024
# Jeffreys' prior. Coverage of the interval of posterior balanced accuracy in simulations: two
# classes with 250 examples each and recalls of .998: 92 % (72 % for a flat prior); ten classes with
# 50 examples each and recalls of .9: 92 % (82 %), recalls of .99: 60 % (2 %).
PRIOR = 0.5
_NO_INTERVALS = (
    f"if there are more than {MOST_WITH_INTERVALS} classes, averages and coefficients have no "
    "interval, because it would take minutes; pass method=Delta() to get intervals."
)

_OF_SUMS = (
    "counts are sums of weights, which do not say how many examples there are, so there are no "
    "intervals; pass the sums of squared weights, or integers. If an earlier version saved this "
    "state, evaluate the examples again."
)


def metrics_of(num_classes: int | None, num_labels: int) -> dict[str, Metric]:
    """Return the overall metrics of matrices `(num_labels, num_labels)` by name.

    The labels after the `num_classes` classes are invalid predictions: averages are taken over the
    classes, and there are two more metrics: the accuracy of valid predictions, and their share.
    """
    if num_classes is None or num_classes == num_labels:
        return COMPARED
    classes = range(num_classes)
    of_valid = micro(precision, classes=classes)
    return COMPARED | {
        "macro_f1": macro(f1, classes=classes),
        "micro_f1": micro(f1, classes=classes),
        "accuracy_of_valid": lambda counts: of_valid(counts, zero_division=np.nan),
        "valid_rate": lambda counts: selection_rate(counts)[..., :num_classes].sum(-1),
    }


class Evidence(NamedTuple):
    """The counts and options from which intervals are computed.

    Attributes:
        counts: the confusion matrix `(K, K)`.
        level: the confidence level of the intervals.
        method: the interval method for metrics that are not proportions; None for the default.
        clusters: one matrix per cluster, `(C, K, K)`, whose sum is `counts`; None if the examples
            are independent.
        squares: the sums of the squares of weights, `(K, K)`, whose sums are `counts`, or NaN if
            unknown; None if there are no weights.
        num_classes: K, if `counts` also has rows and columns of invalid predictions after those of
            the K classes; None otherwise.
    """

    counts: np.ndarray
    level: float
    method: IntervalMethod | None = None
    clusters: np.ndarray | None = None
    squares: np.ndarray | None = None
    num_classes: int | None = None

    @property
    def metrics(self) -> dict[str, Metric]:
        """The overall metrics by name."""
        return metrics_of(self.num_classes, len(self.counts))

    @property
    def tables(self) -> np.ndarray:
        """The counts, or the counts of each cluster."""
        return self.counts if self.clusters is None else self.clusters

    @property
    def cluster_axis(self) -> int | None:
        """The cluster axis of the tables."""
        return None if self.clusters is None else 0

    @property
    def are_counts(self) -> bool:
        """Whether counts are numbers of independent examples."""
        return self.clusters is self.squares is None and not self.are_sums

    @property
    def are_sums(self) -> bool:
        """Whether counts are sums of weights that do not show the number of examples."""
        if self.squares is not None:
            return bool(np.isnan(self.squares).any())
        return self.clusters is None and bool((self.counts != np.round(self.counts)).any())

    def proportions(self, of: Callable[[np.ndarray], Sequence[np.ndarray]]) -> Estimate:
        """Estimate proportions from the function of matrices that returns successes and failures.

        With weights, cells have effective numbers, as in `interval`. The interval of the proportion
        of effective successes is converted to the interval of the proportion of weights.
        """
        right, wrong = of(self.tables)
        if self.are_sums:
            return _without_interval(divide(right, right + wrong, np.nan))
        options: Any = {"level": self.level, "cluster_axis": self.cluster_axis}
        options["method"] = "likelihood"
        if self.squares is None:
            return proportion_interval(right, right + wrong, **options)
        squares = of(self.squares)
        of_both = divide(squares[0] + squares[1], right + wrong)
        a, b = (divide(x, y, of_both) for x, y in zip(squares, (right, wrong), strict=True))
        right, wrong = divide(right, a), divide(wrong, b)
        x = proportion_interval(right, right + wrong, **options)
        value, low, high = (divide(a * p, a * p + b * (1 - p)) for p in (x.value, x.low, x.high))
        slope = divide(a * b, (a * x.value + b * (1 - x.value)) ** 2)
        error, number = x.standard_error * slope, {"effective_number": x.num_examples}
        ends = {"low": low, "high": high, "standard_error": error, "num_examples": None}
        return replace(x, value=value, **ends, **number)

    def value(self, name: str) -> ReportValue:
        """Report a metric with its interval: a likelihood interval for accuracy, and `method` for
        other metrics. The default is the likelihood method, and the delta method for sums of
        weights.
        """
        if name == "accuracy":
            return value_of(self.proportions(_right_and_wrong))
        metric, method = self.metrics[name], self.method
        if self.are_sums:
            return exactly(metric(self.counts), _OF_SUMS if name == "balanced_accuracy" else None)
        if method is None and len(self.counts) > MOST_WITH_INTERVALS:
            note = _NO_INTERVALS if name == "balanced_accuracy" else None
            return exactly(metric(self.counts), note)
        # Clusters may contain sums of weights.
        is_whole = self.squares is not None or (self.tables == np.round(self.tables)).all()
        scale: Any = "atanh" if name in COEFFICIENTS else "logit"
        method = method or (Likelihood() if is_whole else Delta(scale))
        options: Any = {"method": method, "level": self.level, "cluster_axis": self.cluster_axis}
        options["squares"] = self.squares
        note = few_examples(self.counts.sum(-1)) if self.are_counts else ""
        with warnings.catch_warnings():
            # Not whole: that there is no interval at 0 and 1.
            warnings.simplefilter("ignore", FewExamplesWarning if is_whole else Warning)
            estimate = interval(metric, self.tables, **options)
        return value_of(estimate, note if note and name == "balanced_accuracy" else None)


def _without_interval(value: np.ndarray) -> Estimate:
    unknown = np.full_like(value, np.nan)
    return Estimate(value, unknown, unknown, unknown, np.zeros_like(value, int))


def _right_and_wrong(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    right = tables.trace(axis1=-2, axis2=-1)
    return right, tables.sum((-2, -1)) - right


def per_class_values(evidence: Evidence, chosen: Any = ...) -> dict[str, list[ReportValue]]:
    """Report the rates of all classes, or of chosen classes, with likelihood intervals."""

    def right_and_wrong(tables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tp, fp, fn, tn = (x[chosen] for x in cells(tables))
        return np.stack([tp, tp, tn, tp], -2), np.stack([fp, fn, fp, fp + fn], -2)

    estimates = evidence.proportions(right_and_wrong)
    precision, recall, specificity, jaccard = (
        trees.map(lambda part, i=i: part[i], estimates) for i in range(4)
    )
    # F1 is an increasing function of Jaccard's index.
    value, low, high = (2 * x / (1 + x) for x in (jaccard.value, jaccard.low, jaccard.high))
    error = 2 / (1 + jaccard.value) ** 2 * jaccard.standard_error
    f1 = replace(jaccard, value=value, low=low, high=high, standard_error=error)
    rates = {"precision": precision, "recall": recall, "f1": f1, "specificity": specificity}
    return {name: values_of(x) for name, x in rates.items()}


def overall_values(evidence: Evidence) -> dict[str, ReportValue]:
    """Compute the overall metrics of a report, with intervals."""
    values = {}
    for name in evidence.metrics:
        values[name] = evidence.value(name)
        if name == "balanced_accuracy" and evidence.are_counts:
            # The posterior assumes independent examples without weights.
            values[POSTERIOR] = posterior_balanced_accuracy(evidence)
        if name == "macro_f1":
            # Equal, because each example has one label, unless some are invalid.
            values["micro_f1"] = values["accuracy"]
    # The no-information rate has no interval: the interval of the share of one class is not valid
    # for the largest share of all classes.
    values["no_information_rate"] = exactly(no_information_rate(evidence.counts))
    values["accuracy_gain"] = accuracy_gain(evidence)
    return values


def accuracy_gain(evidence: Evidence) -> ReportValue:
    """Report accuracy minus the no-information rate, which is the least of the differences
    `accuracy - share of class j`.

    Both are computed from the same examples, so each difference is a difference of the accuracies
    of two classifiers, the second of which always predicts class j. It has Tango's interval or, if
    there are clusters, Student's interval with the jackknife standard error. With weights, it has a
    likelihood interval. The low end is the
    least low end of all differences, which needs no correction (Berger, 1982, Technometrics 24).
    The high end is the least high end, corrected by Bonferroni's method for the number of classes.
    Classes that are significantly less common than another class are left out, at a tenth of the
    significance level (Berger and Boos, 1994, JASA 89).
    """
    level, chosen = evidence.level, _may_be_most_frequent(evidence)
    outcomes = _outcomes(evidence.tables, chosen)
    if evidence.are_sums:
        only_a, only_b, _ = outcomes.T
        return exactly(((only_a - only_b) / outcomes.sum(-1)).min())
    squares = None if evidence.squares is None else _outcomes(evidence.squares, chosen)
    gains = _gains(outcomes, squares, level)
    high = gains.high
    if len(chosen) > 1:
        high = _gains(outcomes, squares, 1 - (1 - level) / len(chosen)).high
    least = trees.map(lambda part: part[gains.value.argmin()], gains)
    low, high = max(gains.low.min(), -1), min(high.min(), 1)
    return value_of(replace(least, low=low, high=high))


def _may_be_most_frequent(evidence: Evidence) -> np.ndarray:
    """Return the classes that are not significantly less common than the commonest class."""
    support = evidence.tables.sum(-1)[..., : evidence.num_classes]
    behind = support[..., [evidence.counts.sum(-1).argmax()]] - support
    # The sum over independent units of the square of each unit's part in the difference of shares.
    squares = support.max() + support
    if evidence.squares is not None:
        squares = evidence.squares.sum(-1)[: evidence.num_classes]
        squares = squares[evidence.counts.sum(-1).argmax()] + squares
    if evidence.clusters is not None:
        behind, squares = behind.sum(0), (behind**2).sum(0)
    z = normal_quantile(1 - (1 - evidence.level) / 10)
    return np.flatnonzero(~(behind**2 > z**2 * squares))  # all if squares are unknown


def _outcomes(tables: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Return the numbers `(..., J, 3)` of examples that only A, only B, and either both or neither
    classifies correctly, where B always predicts one of the J chosen classes.
    """
    support, right = tables.sum(-1), tables.diagonal(axis1=-2, axis2=-1)[..., chosen]
    only_a = tables.trace(axis1=-2, axis2=-1)[..., None] - right
    only_b = support[..., chosen] - right
    others = support.sum(-1, keepdims=True) - only_a - only_b
    # Sums of weights may be rounded to less than 0.
    return np.maximum(np.stack([only_a, only_b, others], -1), 0)


def _gains(outcomes: np.ndarray, squares: np.ndarray | None, level: float) -> Estimate:
    """Estimate J differences of accuracies by Tango's method, with clusters by Student's, and with
    weights by the likelihood method.

    Args:
        outcomes: the `_outcomes`, `(J, 3)`, or `(C, J, 3)` for C clusters.
        squares: the same of the squares of weights; None if there are no weights.
        level: the confidence level.
    """

    def cubes(outcomes: np.ndarray) -> np.ndarray:
        """In `(J, 2, 2, 2)`, all examples belong to the first of two true classes."""
        only_a, only_b, others = outcomes.T
        cells = np.stack([others, only_a, only_b, *[0 * others] * 5], -1)
        return cells.reshape((-1, 2, 2, 2))

    if squares is not None:
        options: Any = {"squares": cubes(squares), "level": level}
        return interval(difference(accuracy), cubes(outcomes), **options)
    if outcomes.ndim == 2:
        return paired_difference_interval(cubes(outcomes), level=level)
    number = len(outcomes)
    return mean_interval(
        np.tile([1.0, -1.0, 0.0], number),
        sample_weight=outcomes.swapaxes(0, 1).reshape((-1, 3 * number)),
        clusters=np.repeat(np.arange(number), 3),
        level=level,
    )


def posterior_balanced_accuracy(evidence: Evidence) -> ReportValue:
    """Report the posterior mean of balanced accuracy with its equal-tailed interval. Only classes
    that occur among the true labels count.
    """
    level, of_classes = evidence.level, evidence.counts[: evidence.num_classes]
    average = balanced_accuracy_posterior(matrix_of_true_classes(of_classes), prior=PRIOR)
    low, high = average.interval(level)
    note = (
        "a Bayesian posterior, which lies too low if mistakes are few, because Jeffreys' prior is"
        " worth half a correct and half a wrong example per class"
    )
    estimate = float(balanced_accuracy(evidence.counts))
    if not low <= estimate <= high:
        note += "; it pulls the interval away from the balanced accuracy of these examples, "
        note += fraction(estimate)
    mean = Estimate(average.mean, low, high, average.variance**0.5, method="posterior")
    return value_of(replace(mean, level=level), f"{note}.")


def mistakes_in(counts: np.ndarray) -> np.ndarray:
    """Return the counts `(K, K)` with the diagonal set to 0."""
    return np.where(np.eye(len(counts), dtype=bool), 0, counts)


def matrix_of_true_classes(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix without the classes that do not occur among the true labels, if at least two
    classes remain. The matrix `(K, M)` may have columns of invalid predictions.

    Each class has the same numbers of correct and of wrong examples as in the given matrix.
    """
    right = matrix.diagonal()
    wrong = matrix.sum(1) - right
    occurs = right + wrong > 0
    if occurs.sum() > 1:
        right, wrong = right[occurs], wrong[occurs]
    # Recalls do not depend on the predicted class of mistakes.
    return np.diag(right) + np.roll(np.diag(wrong), 1, axis=1)


def checked_labels(
    what: str,
    class_names: Sequence[Any] | None,
    probs: Mapping[str, ArrayLike | None] = {},
    invalid: Sequence[Hashable] = (),
    **named: ArrayLike | Sequence[str],
) -> tuple[list[np.ndarray], Sequence[str]]:
    """Check labels of the same examples, and return their class ids and the class names.

    Args:
        what: the kind of report, for error messages.
        class_names: the class names, or None.
        probs: probabilities by argument name; there must be one column per class.
        invalid: labels of predictions that are no class. With ids and `class_names`, they may also
            be the last names.
        named: labels `(n,)` by argument name.

    Returns:
        Class ids `(n,)` for each of the labels, which are negative if the true label of the example
        is negative; and the names of the K classes. The ids of invalid labels are K, K + 1, etc.
    """
    labels = {name: on_host(x, name) for name, x in named.items()}
    shapes = [x.shape for x in labels.values()]
    if len(shapes[0]) != 1 or len(set(shapes)) > 1:
        raise ValueError(
            f"{enumeration([*named])} must have shape (n,) with the same number of examples n, got"
            f" {', '.join(map(str, shapes))}.{RAVEL if max(map(len, shapes)) > 1 else ''}"
        )
    (n,) = shapes[0]
    if n == 0:
        raise ValueError(f"{enumeration([*named])} contain no examples to report on.")
    columns = {name: _number_of_columns(x, n, name) for name, x in probs.items() if x is not None}
    if class_names is None:
        class_names = ordered_categories(named)
    labels, places, class_names = _without_invalid(labels, class_names, invalid)
    ids, names = as_ids(labels, class_names, next(iter(columns.values()), None))
    k = len(names)
    for name, number in columns.items():
        check_columns(number, names, name)
    counted = ids[0] >= 0
    message = (
        "which is no class. Leave out rows without a prediction, or pass invalid= with this label,"
        " which then counts as a wrong prediction. If it is a class, pass the labels of all"
        " classes, such as class_names=[-1, 1]."
    )
    for (name, given), x in [*zip(labels.items(), ids, strict=True)][1:]:
        refuse_where(x < 0, given, name, message, counted)
        if given.dtype.kind == "i" and given.dtype == labels["y_true"].dtype:
            warn_of_left_out_class(labels["y_true"], given, ~counted)
    check_number_of_classes(k, what)
    hint = "".join(f" {name} must have one column for each class." for name in columns)
    ids = [
        ids_in_range(x, name, counted, size=k, hint=hint)
        for name, x in zip(labels, ids, strict=True)
    ]
    ids = [np.where(place < 0, x, k + place) for place, x in zip(places, ids, strict=True)]
    if invalid:
        labels_of_ids = np.array([*names, *invalid], object)
        true, *preds = (labels_of_ids[np.unique(x[counted])].tolist() for x in ids)
        warn_of_absent(invalid, true, set().union(*preds))
    return [np.where(counted, x, IGNORED) for x in ids], names


def _without_invalid(
    labels: dict[str, np.ndarray], class_names: Sequence[Any] | None, invalid: Sequence[Hashable]
) -> tuple[dict[str, np.ndarray], Sequence[Any], Sequence[str] | None]:
    """Replace invalid predictions by the true label, and leave them out of the class names.

    The second value is the place of each label in `invalid`, or -1.
    """
    if not invalid:
        return labels, [np.int64(-1)] * len(labels), class_names
    place_of: dict[Hashable, int] = {label: i for i, label in enumerate(invalid)}
    if class_names is not None:
        names = as_names(class_names, "class_names")
        class_names = [name for name in names if name not in place_of]
        are_ids = labels["y_true"].dtype.kind in "iub" and not are_labels(names)
        if are_ids:
            place_of |= {i: place_of[x] for i, x in enumerate(names) if x in place_of}
        if are_ids and class_names != names[: len(class_names)]:
            raise ValueError(
                f"class_names must end with the invalid labels {listed(invalid)}, got"
                f" {listed(names)}."
            )
    # Data frames have None or NaN where there is no answer.
    places = [
        np.array([place_of.get("" if is_missing(x) else x, -1) for x in y.tolist()])
        for y in labels.values()
    ]
    true = labels["y_true"]
    refuse_where(
        (places[0] >= 0) & (true >= 0 if true.dtype.kind == "i" else True),
        true,
        "y_true",
        "which invalid= names, but only predictions can be invalid. Are y_true and y_pred swapped?"
        " If not, leave out such examples.",
    )
    valid = zip(labels.items(), places, strict=True)
    return {name: np.where(x < 0, y, true) for (name, y), x in valid}, places, class_names


def as_invalid(invalid: Any) -> tuple[Hashable, ...]:
    """Return a label, or several labels, of invalid predictions as a tuple."""
    if invalid is None or isinstance(invalid, str | int | np.integer):
        return () if invalid is None else (invalid,)
    return tuple(dict.fromkeys(as_names(invalid, "invalid")))


def _number_of_columns(y_prob: ArrayLike, n: int, name: str) -> int:
    prob = on_host(y_prob, name)
    check_real(prob, name)
    if prob.ndim != 2 or len(prob) != n or prob.shape[1] < 2:
        hint = "If there are two classes, and p is the probability of the second, pass"
        hint += " numpy.c_[1 - p, p]."
        if ((prob < 0) | (prob > 1)).any():
            hint = "For scores that are no probabilities, call roc_auc, delong_interval or"
            hint += " best_threshold; on the command line, use --score."
        raise ValueError(
            f"{name} must have shape (n, K) = ({n}, K), with one column for each class, got"
            f" {prob.shape}. {hint}"
        )
    return prob.shape[1]


def checked_probabilities(
    y_prob: ArrayLike,
    true: np.ndarray,
    pred: np.ndarray,
    names: Sequence[str],
    name: str = "y_prob",
    name_of_pred: str = "y_pred",
) -> np.ndarray:
    given, counted = np.asarray(as_rows(y_prob, name, names)), true >= 0
    check_real(given, name)
    # The dtype determines how losses are clipped; dtypes that NumPy does not know become float64.
    prob = given if np.issubdtype(given.dtype, np.floating) else given.astype(float)
    valid = are_distributions(prob, eps_of(given)) | ~counted
    check_each(valid, prob, name, "probabilities that sum to 1")
    best, rows = prob.argmax(1), ""
    differ = (best != pred)[counted]
    if 2 * differ.sum() > len(differ):
        rows = "most rows"
    elif differ.any() and (exchanged := _exchanged(pred[counted], best[counted], len(names))).size:
        rows = f"most rows with {name_of_pred} {listed(names[i] for i in exchanged)}"
    if rows:
        warn(
            f"{name_of_pred} is not the most probable class of {name} in {rows}. Check the order of"
            f" the columns: column j of {name} is read as the probability of class j of"
            f" {listed(names)}."
        )
    return prob


def _exchanged(pred: np.ndarray, best: np.ndarray, k: int) -> np.ndarray:
    """Return the predicted classes whose columns of probabilities are perhaps exchanged.

    In most rows with such a prediction, the most probable class is another such class. If
    predictions are made by thresholds, the most probable class mostly keeps its own rows.
    """
    is_valid = pred < k
    table = confusion_matrix(pred[is_valid], best[is_valid], num_classes=k)
    usual = np.where(2 * table.max(1) > table.sum(1), table.argmax(1), np.arange(k))
    differs = usual != np.arange(k)
    return np.flatnonzero(differs & differs[usual])


def check_number_of_classes(k: int, what: str) -> None:
    if k < 2:
        raise ValueError(
            f"A {what} needs at least two classes, got {k}. Pass the names of all classes as"
            " class_names, or their labels, such as class_names=[-1, 1]."
        )
    if k > MOST_CLASSES:
        raise ValueError(f"a {what} takes at most {MOST_CLASSES} classes, got {k}.")


def check_each(valid: np.ndarray, values: np.ndarray, name: str, expected: str) -> None:
    if not valid.all():
        index = tuple(np.argwhere(~valid)[0].tolist())
        raise ValueError(f"{name}{list(index)} is {values[index]}, expected {expected}.")


def rows_of_groups(groups: ArrayLike | Sequence[Any], counted: np.ndarray) -> dict[str, np.ndarray]:
    """Return a boolean array `(n,)` by group name: which examples belong to the group."""
    # Integers of a column with null would become floats in a NumPy array.
    to_list = getattr(groups, "to_list", None) or getattr(groups, "to_pylist", None)
    values: Any = to_list() if to_list else groups
    if not isinstance(values, list | tuple):
        values = np.atleast_1d(on_host(values, "groups"))
    ids = [NO_GROUP if is_missing(x) or (isinstance(x, str) and not x) else x for x in values]
    numbers, _ = numbered_clusters(ids, counted.shape, "groups")
    present, first = np.unique(np.where(counted, numbers, -1), return_index=True)
    named = {str(ids[i]): numbers == g for g, i in zip(present, first, strict=True) if g >= 0}
    if len(named) < (present >= 0).sum():
        different = [repr(ids[i]) for g, i in zip(present, first, strict=True) if g >= 0]
        raise ValueError(
            "groups contains different ids that are printed alike. Convert all ids to strings. The"
            f" ids are {listed(different)}."
        )
    return named
