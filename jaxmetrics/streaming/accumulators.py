"""Accumulators, from which an evaluator is made. An accumulator says which sums over batches are
stored, and which named functions of these sums are the results.

A batch consists of named arrays, which are called its fields. The docstring of each accumulator
lists the fields that it reads. If two accumulators need the same sums, such as the same confusion
matrix, the sums are computed only once.

The argument `metrics` is a dict from names to functions, such as
`{"accuracy": jm.accuracy, "macro_f1": jm.macro(jm.f1)}`. The results have these names. If `metrics`
is not a dict of functions, TypeError is raised. If a number such as `num_classes` is below 1,
ValueError is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from jaxmetrics._applied import Applied
from jaxmetrics._arguments.single import check_flag, check_level, check_option, check_size
from jaxmetrics._numerics.arithmetic import divide, safe_sqrt
from jaxmetrics._places.namespaces import Array, xp
from jaxmetrics._sums.cell_sums import tables
from jaxmetrics._text.wording import shown
from jaxmetrics.comparisons.classifiers import compare
from jaxmetrics.estimates import Estimate, Metric, normal_estimate, normal_quantile, with_level
from jaxmetrics.intervals.checks import as_floats, check_num_samples
from jaxmetrics.intervals.functionals import Row
from jaxmetrics.intervals.methods import IntervalMethod, check_method, interval
from jaxmetrics.intervals.quantiles import estimate_of
from jaxmetrics.ranking.areas import average_precision, roc_auc
from jaxmetrics.ranking.histograms import check_num_bins
from jaxmetrics.scoring.calibration import calibration_error
from jaxmetrics.streaming.standard_statistics import (
    CalibrationBins,
    ClassCounts,
    ConfusionMatrix,
    Moments,
    PairedConfusionMatrix,
    PoissonReplicates,
    ScoreHistogram,
    SquaredWeights,
)
from jaxmetrics.streaming.statistics import Statistic

__all__ = [
    "Accumulator",
    "PairedValues",
    "calibration_metrics",
    "count_metrics",
    "mean_of",
    "paired_metrics",
    "poisson_bootstrap",
    "ranking_metrics",
]

Metrics = Mapping[str, Metric]


@dataclass(frozen=True)
class Accumulator:
    """Sums over batches, and named functions of these sums.

    Usually you get accumulators from functions such as `count_metrics` and `mean_of`. Use this
    class only for your own `Statistic`.

    Attributes:
        statistics: the statistics. Each of them maps a batch to an array, its table. The tables of
            all batches are summed.
        results: pairs of a name and a function. The function has one argument per statistic: the
            sum of its tables.
    """

    statistics: tuple[Statistic, ...]
    results: tuple[tuple[str, Callable[..., Any]], ...]

    def __repr__(self) -> str:
        return f"Accumulator of {', '.join(name for name, _ in self.results)}"

    def __post_init__(self) -> None:
        """Check that all statistics have the members of `Statistic`."""
        for statistic in self.statistics:
            if isinstance(statistic, type) or not isinstance(statistic, Statistic):
                raise TypeError(
                    "statistics must have the attributes and methods of"
                    " jaxmetrics.streaming.Statistic, got"
                    f" {statistic!r}."
                )


class PairedValues(NamedTuple):
    """A metric of two classifiers, as returned by `paired_metrics`.

    Attributes:
        a, b: the metric of classifier A and of classifier B.
        difference: the metric of A minus the metric of B.
    """

    a: jax.Array
    b: jax.Array
    difference: jax.Array


def count_metrics(
    metrics: Metrics,
    *,
    num_classes: int,
    num_groups: int | None = None,
    method: IntervalMethod | None = None,
    weighted: bool = False,
    one_vs_rest: bool = False,
) -> Accumulator:
    """Accumulate a confusion matrix over batches, and compute metrics from the matrix.

    Pass `y_true` and one of `y_pred`, `logits` and `y_prob` to the method `update` of the
    evaluator. `logits` and `y_prob` have shape `(..., K)`. The prediction is the class with the
    greatest value. Examples are ignored if `y_true` is not between 0 and K - 1. Other examples are
    invalid if the prediction is not between 0 and K - 1, or if a logit is NaN.

    An update of many classes takes time for the batch, not for the matrix, if the state is donated
    to `jax.jit` or is the carry of `lax.scan`.

    The metric `{"counts": lambda counts: counts}` returns the confusion matrix. If JAX needs long
    to compile a metric, compute the metric from this matrix outside of the evaluator.

    Args:
        metrics: dict from the name of each metric to a function of a confusion matrix `(K, K)`.
        num_classes: number of classes K.
        num_groups: number of groups G. If given, each batch must have the field `groups`, a group
            id per example. Metrics are then called with one confusion matrix per group,
            `(G, K, K)`.
        method: interval method, such as `Likelihood()` or `Bootstrap(key)`. If given, results are
            `Estimate`s with an interval. `Delta("logit")` is the delta method on the logit scale,
            whose interval is within [0, 1].
        weighted: whether batches have the field `sample_weight`. Sums of weights are floats, an
            update takes time for the matrix, and the sums of the squares of weights are stored,
            too. In intervals, an example with a weight is one example, as in `interval(squares=)`.
        one_vs_rest: if True, metrics are functions of the 2x2 matrix of each class against all
            others, `(K, 2, 2)`, as computed by `jm.one_vs_rest`. This is for many thousands of
            classes, because 3 K numbers are stored instead of K^2. `jm.macro(jm.f1)` then becomes
            `functools.partial(jm.label_macro(jm.f1), zero_division=math.nan)`. Groups and interval
            methods need the matrix.

    >>> import jax.numpy as jnp, jaxmetrics as jm
    >>> method = jm.Delta("logit")
    >>> metrics = jm.count_metrics({"accuracy": jm.accuracy}, num_classes=3, method=method)
    >>> evaluator = jm.evaluator(metrics)
    >>> y_true, y_pred = jnp.array([0, 1, 2, 2]), jnp.array([0, 1, 2, 0])
    >>> state = evaluator.update(evaluator.init(), y_true=y_true, y_pred=y_pred)
    >>> evaluator.compute(state)["accuracy"].high.round(2)
    Array(0.97, dtype=float32)
    """
    for name, metric in _named(metrics).items():
        if metric in (roc_auc, average_precision, calibration_error):
            way = "calibration_metrics" if metric is calibration_error else "ranking_metrics"
            raise ValueError(f"metrics[{name!r}] is a metric of scores, not of counts. Use {way}.")
    k, groups = check_size(num_classes, "num_classes"), _size_or_none(num_groups, "num_groups")
    check_flag(weighted, "weighted")
    if not check_flag(one_vs_rest, "one_vs_rest"):
        return _accumulator(ConfusionMatrix(k, groups, weighted), metrics, method)
    if groups is not None or method is not None:
        raise ValueError("one_vs_rest=True cannot be combined with num_groups or method.")
    results = ((name, Applied(_one_vs_rest, x)) for name, x in _named(metrics).items())
    return Accumulator((ClassCounts(k, weighted),), tuple(results))


def paired_metrics(
    metrics: Metrics,
    *,
    num_classes: int,
    method: IntervalMethod | None = None,
    weighted: bool = False,
) -> Accumulator:
    """Accumulate metrics of two classifiers on the same examples, and their differences.

    Pass `y_true`, `y_pred_a` and `y_pred_b` to the method `update` of the evaluator. Instead of the
    predictions `y_pred_a` of classifier A, you can pass `logits_a` or `y_prob_a`. The same holds
    for classifier B.

    Args:
        metrics: dict from the name of each metric to a function of a confusion matrix `(K, K)`.
        num_classes: number of classes K. K^3 counts are stored.
        method: interval method. If given, results are `Comparison`s with intervals, the same as
            from `compare`. Otherwise results are `PairedValues`, without intervals.
        weighted: whether batches have the field `sample_weight`.

    >>> import jax.numpy as jnp, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.paired_metrics({"accuracy": jm.accuracy}, num_classes=2))
    >>> batch = {"y_true": jnp.array([0, 1, 1]), "y_pred_a": jnp.array([0, 1, 1])}
    >>> state = evaluator.update(evaluator.init(), **batch, y_pred_b=jnp.array([0, 0, 1]))
    >>> evaluator.compute(state)["accuracy"].difference.round(3)
    Array(0.333, dtype=float32)
    """
    k = check_size(num_classes, "num_classes")
    table = PairedConfusionMatrix(k, check_flag(weighted, "weighted"))
    if method is None:
        metrics = {name: Applied(_of_pairs, x) for name, x in _named(metrics).items()}
    return _accumulator(table, metrics, method, compare)


def mean_of(
    *names: str,
    level: float | None = None,
    groups: str | None = None,
    num_groups: int | None = None,
    weights: str | None = None,
    frequency: bool = False,
) -> Accumulator:
    """Accumulate the weighted mean `sum w x / sum w` of fields that have one number x per example.

    Examples with an invalid prediction are included, and so are the losses 0 of negative labels,
    unless the batch has labels or `where=y_true >= 0`. If x is NaN for an example that counts, so
    is the mean. For the loss per token, let x be the mean loss of a sequence, and w its number of
    tokens. For bits per byte, let x be `nats / (bytes * log(2))`, and w the bytes. For top-5
    accuracy, let x be `jm.top_k_accuracy(y_true[..., None], logits[..., None, :], k=5)`.

    Args:
        names: names of the fields, such as `"loss", "top5"`, and of the results.
        level: confidence level. If given, the result is an `Estimate` with a normal interval.
            With `sample_weight`, each example is one example. In float32 the width has an error of
            1 % if the mean is 300 standard deviations from 0.
        groups: name of a field of group ids, integers from 0 to G - 1, such as "dataset". For the
            name "loss", there are then three results: `"loss"`, the mean over all examples (micro
            average), `"macro_loss"`, the mean of the group means (macro average), and
            `"loss_by_dataset"`, the mean of each group, `(G,)`. Examples whose group id is out of
            range are ignored. If a group has one example, the interval of the macro average is NaN.
        num_groups: number of groups G, required with `groups`.
        weights: name of a field of weights w >= 0 for this mean only; `sample_weight` is used for
            all results. An invalid weight raises an error (NumPy), or the mean is NaN (JAX).
        frequency: True if `sample_weight` is how often each example occurs.

    Returns:
        An `Accumulator`. If there are no examples, the mean is NaN.

    >>> import jax.numpy as jnp, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.mean_of("loss", level=0.95))
    >>> state = evaluator.update(evaluator.init(), loss=jnp.array([1.0, 2.0, 3.0]))
    >>> evaluator.compute(state)["loss"].standard_error.round(3)
    Array(0.577, dtype=float32)
    >>> bits = jm.mean_of("bits_per_byte", groups="dataset", num_groups=3, weights="bytes")
    >>> evaluator = jm.evaluator(bits)
    >>> nats, size = jnp.array([200.0, 30.0, 70.0]), jnp.array([300.0, 50.0, 50.0])
    >>> batch = {"bits_per_byte": nats / (size * jnp.log(2.0)), "bytes": size}
    >>> state = evaluator.update(evaluator.init(), **batch, dataset=jnp.array([0, 2, 2]))
    >>> jm.to_python(evaluator.compute(state))
    {'bits_per_byte': 1.082021, 'macro_bits_per_byte': 1.202246,
     'bits_per_byte_by_dataset': [0.961797, nan, 1.442695], 'num_examples': 3.0,
     'num_ignored': 0.0, 'num_invalid': 0.0}
    """
    if not names:
        raise TypeError("mean_of: names is empty. Pass at least one field, as in mean_of('loss').")
    options = {"groups": groups, "weights": weights}
    given = [("names", name) for name in names] + [x for x in options.items() if x[1] is not None]
    for argument, field in given:
        if not isinstance(field, str):
            raise TypeError(
                f"mean_of: {argument} must be the name of a field, a string, got"
                f" {type(field).__name__}."
            )
        if field in ("where", "sample_weight"):
            raise ValueError(
                f"mean_of: {argument} must not be {field!r}. The fields where and sample_weight are"
                " the mask and the weights of the examples for all accumulators. Use another name."
            )
    if (groups is None) != (num_groups is None):
        raise ValueError(
            "mean_of: groups (the name of a field) and num_groups (the number of groups) must be"
            f" passed together, got groups={groups!r}, num_groups={num_groups!r}."
        )
    size = _size_or_none(num_groups, "num_groups")
    moments = tuple(Moments(name, groups, size, weights) for name in names)
    are_copies = check_flag(frequency, "frequency")
    squares = [] if level is None or are_copies else [*map(SquaredWeights, moments)]
    scheme: Any = _value if level is None else _with_interval
    of_level: Any = () if level is None else (("level", check_level(level)),)
    statistics: tuple[Statistic, ...] = (*moments, *squares)
    results = []
    for i, x in enumerate(moments):
        tables = "tables", tuple(range(i, len(statistics), len(names)))
        for name, mean in means_of(x).items():
            results.append((name, Applied(scheme, mean, (*of_level, tables))))
    return Accumulator(statistics, tuple(results))


def ranking_metrics(
    metrics: Metrics | None = None,
    *,
    scale: Literal["probability", "logit", "float"],
    num_bins: int = 4096,
    num_classes: int | None = None,
    num_groups: int | None = None,
    method: IntervalMethod | None = None,
    weighted: bool = False,
) -> Accumulator:
    """Accumulate a histogram of scores over batches to compute ROC AUC and average precision.

    Pass `y_true` (0 or 1) and `y_score` to the method `update` of the evaluator. Examples with a
    NaN score are invalid. Arrays `(n, L)` are n L examples of one problem. If the columns are L
    labels, each of which has an area of its own, pass the column of each element as `groups`.

    Args:
        metrics: dict from the name of each metric to a function of a histogram `(2, B)`. Default:
            `{"roc_auc": jm.roc_auc, "average_precision": jm.average_precision}`.
        scale: definition of the bins, `"probability"`, `"logit"` or `"float"`, as in
            `jm.score_histogram`.
        num_bins: number of bins B.
        num_classes: number of classes K. If given, metrics are one-vs-rest: they are called with
            one histogram per class, `(K, 2, B)`. Pass class ids `y_true`, and `y_prob` or `logits`
            of shape `(..., K)`. `scale` must be "probability".
        num_groups: number of groups G. If given, each batch must have the field `groups`, a group
            id per example. Metrics are then called with one histogram per group, `(G, 2, B)`, or
            `(K, G, 2, B)` with `num_classes`.
        method: interval method, such as `Bootstrap(key)`.
        weighted: whether batches have the field `sample_weight`.

    >>> import jax.numpy as jnp, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.ranking_metrics(scale="probability"))
    >>> y_true, y_score = jnp.array([0, 1, 0, 1]), jnp.array([0.1, 0.4, 0.6, 0.9])
    >>> state = evaluator.update(evaluator.init(), y_true=y_true, y_score=y_score)
    >>> evaluator.compute(state)["roc_auc"].value
    Array(0.75, dtype=float32)
    """
    check_option(scale, "scale", ("probability", "logit", "float"))
    if num_classes is not None and scale != "probability":
        raise ValueError(
            'num_classes needs scale="probability": if num_classes is given, each score must be the'
            f" probability of a class, got scale={scale!r}."
        )
    k = _size_or_none(num_classes, "num_classes")
    groups = _size_or_none(num_groups, "num_groups")
    check_flag(weighted, "weighted")
    histogram = ScoreHistogram(scale, check_num_bins(num_bins), k, groups, weighted)
    if metrics is None:
        metrics = {"roc_auc": roc_auc, "average_precision": average_precision}
    return _accumulator(histogram, metrics, method)


def calibration_metrics(
    metrics: Metrics | None = None, *, num_bins: int = 15, num_classes: int | None = None
) -> Accumulator:
    """Accumulate `calibration_bins` over batches to compute the expected calibration error (ECE).

    Pass `y_true` (0 or 1) and `y_prob` to the method `update` of the evaluator.

    Args:
        metrics: dict from the name of each metric to a function of the result `(B, 3)` of
            `jm.calibration_bins`. Default: `{"calibration_error": jm.calibration_error}`. Use
            `{"calibration_error": jm.calibration_interval}` for a confidence interval, which
            counts an example of weight 2 as two equal examples, as with `frequency=True`.
        num_bins: number of bins B of equal width.
        num_classes: number of classes K. If given, metrics are computed for the probability of the
            predicted class. Pass class ids `y_true`, and `y_prob` or `logits` of shape `(..., K)`.

    >>> import jax.numpy as jnp, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.calibration_metrics())
    >>> y_true, y_prob = jnp.array([0, 1, 1]), jnp.array([0.25, 0.75, 0.75])
    >>> state = evaluator.update(evaluator.init(), y_true=y_true, y_prob=y_prob)
    >>> evaluator.compute(state)["calibration_error"]
    Array(0.25, dtype=float32)
    """
    errors = {"calibration_error": calibration_error} if metrics is None else metrics
    k = _size_or_none(num_classes, "num_classes")
    bins = CalibrationBins(check_size(num_bins, "num_bins"), k)
    return Accumulator((bins,), tuple(_named(errors).items()))


def poisson_bootstrap(
    accumulator: Accumulator, *, num_samples: int = 200, level: float = 0.95, seed: int = 0
) -> Accumulator:
    """Add Poisson bootstrap intervals to the results of an accumulator.

    In each of S bootstrap replicates (resampled data sets), every example has a random weight from
    a Poisson(1) distribution. Pass a field `unit` of integers to the method `update` of the
    evaluator. Examples with the same `unit` have the same weight. So give the same `unit` to
    correlated examples, such as the sentences of a document. The weights are computed from `unit`
    and `seed`, so the result does not depend on the order of batches. Memory and time grow with S.
    Source: Chamandy et al. (2012), Estimating uncertainty for massive data streams.

    Args:
        accumulator: result of `mean_of`, `ranking_metrics`, `count_metrics` or
            `calibration_metrics`, called without `method` and `level`. Your own `Accumulator` must
            have exactly one `Statistic`.
        num_samples: number of replicates S.
        level: confidence level of the percentile intervals.
        seed: seed of the weights, a Python int. Accumulators with the same seed use the same
            weights for the same `unit`.

    Returns:
        An `Accumulator` whose results are `Estimate`s.

    >>> import jax, jax.numpy as jnp, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.poisson_bootstrap(jm.mean_of("loss")))
    >>> loss = jax.random.normal(jax.random.key(0), (400,))
    >>> state = evaluator.update(evaluator.init(), loss=loss, unit=jnp.arange(400))
    >>> evaluator.compute(state)["loss"].standard_error.round(2)
    Array(0.05, dtype=float32)
    """
    if not isinstance(accumulator, Accumulator):
        raise TypeError(
            "accumulator must be an Accumulator, such as jaxmetrics.mean_of('loss'), got"
            f" {shown(accumulator)}."
        )
    schemes = [getattr(x, "scheme", None) for _, x in accumulator.results]
    if not {_estimated, _with_interval, _bootstrapped}.isdisjoint(schemes):
        raise ValueError(
            "accumulator must not have intervals already. Make it without method= and level=, and"
            " without poisson_bootstrap."
        )
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(
            f"seed must be a Python int that is at least 0 and at most 2^32 - 1, got {seed!r}."
        )
    squares = [x for x in accumulator.statistics if isinstance(x, SquaredWeights)]
    others = [x for x in accumulator.statistics if x not in squares]
    if len(others) != 1:
        raise ValueError(f"accumulator must have exactly one statistic, got {len(others)}.")
    (statistic,) = others
    replicates = PoissonReplicates(statistic, check_num_samples(num_samples), seed)
    options = (("level", check_level(level)),)
    results = ((name, Applied(_bootstrapped, x, options)) for name, x in accumulator.results)
    return Accumulator((statistic, replicates, *squares), tuple(results))


def _of_pairs(metric: Metric, paired: jax.Array) -> Any:
    """Compute a metric of classifier A and of classifier B from paired counts."""
    a, b = metric(paired.sum(-1)), metric(paired.sum(-2))
    return jax.tree.map(lambda x, y: PairedValues(x, y, x - y), a, b)


def _one_vs_rest(metric: Metric, counts: jax.Array) -> Any:
    """Compute a metric of 2x2 matrices `(K, 2, 2)` from true positives, predictions and truth."""
    tp, predicted, true = jnp.moveaxis(counts, -1, 0)
    fp, fn = predicted - tp, true - tp
    tn = jnp.maximum(true.sum() - tp - fp - fn, 0)  # rounding
    return metric(tables(tp, fp, fn, tn))


def _bootstrapped(
    result: Metric, table: jax.Array, replicates: jax.Array, *squares: jax.Array, level: float
) -> Any:
    row = Row(as_floats(result), table)
    found = estimate_of(row(table), row(replicates), level, "percentile")
    return with_level(row.unflatten(found), level, "percentile")


def _named(metrics: Metrics) -> Metrics:
    """Check that `metrics` is a dict of functions."""
    if not isinstance(metrics, Mapping) or not all(isinstance(name, str) for name in metrics):
        raise TypeError(
            "metrics must be a dict whose keys are names and whose values are functions, got"
            f" {shown(metrics)}."
        )
    for name, metric in metrics.items():
        if not callable(metric):
            raise TypeError(f"metrics[{name!r}] must be a function, got {type(metric).__name__}.")
    return metrics


def _accumulator(
    statistic: ConfusionMatrix | PairedConfusionMatrix | ScoreHistogram,
    metrics: Metrics,
    method: IntervalMethod | None,
    function: Callable[..., Any] = interval,
) -> Accumulator:
    """Return the accumulator of metrics, whose intervals are computed by `function`."""
    statistics = (statistic, SquaredWeights(statistic)) if statistic.weighted else (statistic,)
    named = _named(metrics).items()
    if method is not None:
        check_method(method)
        options = ("function", function), ("method", method)
        return Accumulator(
            statistics, tuple((k, Applied(_estimated, x, options)) for k, x in named)
        )
    if statistic.weighted:
        return Accumulator(statistics, tuple((k, Applied(_of_sums, x)) for k, x in named))
    return Accumulator(statistics, tuple(named))


def _of_sums(metric: Metric, sums: jax.Array, squares: jax.Array | None = None) -> Any:
    return metric(sums)


def _estimated(
    metric: Metric,
    sums: jax.Array,
    *squares: jax.Array | None,
    function: Callable[..., Any],
    method: IntervalMethod,
) -> Any:
    if any(x is None for x in squares):
        raise ValueError(
            "The state contains sums of weights without the sums of their squares, because an"
            " earlier version saved it. Intervals need both, so evaluate the examples again. To"
            " compute values only, make the evaluator without method."
        )
    return function(metric, sums, squares=squares[0] if squares else None, method=method)


def _size_or_none(size: int | None, name: str) -> int | None:
    return None if size is None else check_size(size, name)


def means_of(moments: Moments) -> dict[str, Callable[[Array, Array | None, float], Estimate]]:
    """Return named functions that estimate means at a confidence level from tables of moments, with
    weights and with their squares. Without squares, weights are numbers of equal examples.
    """
    name = moments.name
    if moments.num_groups is None:
        return {name: _mean}
    by_group = f"{name}_by_{moments.groups}"
    return {name: _mean_of_all, f"macro_{name}": _macro_mean, by_group: _mean}


def _mean(moments: Array, squares: Array | None, level: float) -> Estimate:
    """Estimate `m = sum s y / sum s w` from moments `(..., 3)` or `(..., 6)`, with y = wx and the
    sample weights s.

    The standard error is `sqrt(n / (n - 1) sum (s y - m s w)^2) / sum s w` for the ratio of two
    sums over n examples (Cochran 1977, Sampling Techniques, equation 6.13). Here n is Kish's
    effective number, `(sum s)^2 / sum s^2`. If w = s = 1, the result is the standard error of a
    mean.
    """
    (n, y, _, w, *_), (nn, _, yy, _, wy, ww) = map(
        _six_sums, (moments, moments if squares is None else squares)
    )
    mean, n = divide(y, w, xp.nan), n * divide(n, nn, xp.nan)
    residuals = xp.maximum(yy - mean * (2 * wy - mean * ww), 0)
    error = divide(safe_sqrt(divide(n * residuals, n - 1, xp.nan)), w, xp.nan)
    number: Any = {"num_examples" if squares is None else "effective_number": n}
    found = normal_estimate(mean, error, normal_quantile(level), **number)
    return with_level(found, level, "normal")


def _six_sums(moments: Array) -> tuple[Array, ...]:
    n, y, yy, *of_weights = xp.moveaxis(moments, -1, 0)
    return n, y, yy, *(of_weights or (n, y, n))


def _mean_of_all(moments: Array, squares: Array | None, level: float) -> Estimate:
    return _mean(moments.sum(-2), None if squares is None else squares.sum(-2), level)


def _macro_mean(moments: Array, squares: Array | None, level: float) -> Estimate:
    """Estimate the unweighted mean of the means of independent groups with values."""
    means, is_seen = _mean(moments, squares, level), moments[..., 0] > 0
    value, squares = (
        xp.where(is_seen, x, 0).sum(-1) for x in (means.value, means.standard_error**2)
    )
    number = is_seen.sum(-1).astype(value.dtype)
    mean, error = (divide(x, number, xp.nan) for x in (value, safe_sqrt(squares)))
    found = normal_estimate(mean, error, normal_quantile(level))
    return with_level(found, level, "normal")


def _value(mean: Callable[..., Estimate], *sums: Array, tables: tuple[int, ...]) -> Array:
    return mean(sums[tables[0]], None, 0.95).value


def _with_interval(
    mean: Callable[..., Estimate], *sums: Array | None, level: float, tables: tuple[int, ...]
) -> Estimate:
    moments, squares = (*(sums[i] for i in tables), None)[:2]
    return mean(moments, squares, level)
