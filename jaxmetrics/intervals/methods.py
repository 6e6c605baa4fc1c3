"""Interval methods, which are passed as `method=`, and `interval`, which calls them."""

from __future__ import annotations

import dataclasses
import functools
import math
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np

from jaxmetrics._arguments.keys import Key, KeyLike, place
from jaxmetrics._arguments.single import ArrayLike, check_option
from jaxmetrics._places.compilation import on_host_if_small
from jaxmetrics._places.jax_imports import is_loaded, jax, trees
from jaxmetrics._places.namespaces import Array, on_device
from jaxmetrics._places.user_warnings import warn
from jaxmetrics.betas.parameters import as_prior
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.estimates import (
    SCALES,
    Estimate,
    Metric,
    check_transform,
    computed_estimate,
    normal_estimate,
    with_level,
)
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.checks import (
    MOST_EXAMPLES,
    check_counts,
    check_finite,
    check_num_samples,
)
from jaxmetrics.intervals.estimation import Confidence, answer, question_of, reach_of
from jaxmetrics.intervals.functionals import Functional
from jaxmetrics.intervals.likelihoods import likelihood_limits
from jaxmetrics.intervals.quantiles import (
    KINDS,
    acceleration_of,
    estimate_of,
    posterior_estimate,
    studentized_estimate,
)

__all__ = ["Bootstrap", "Delta", "IntervalMethod", "Likelihood", "Posterior", "interval"]

_ROUNDING = 1e-12  # a value may exceed its range by this much, through rounding


class IntervalMethod:
    """Base class of interval methods. Derive from this class to write your own method.

    A method is a frozen dataclass with a `name` and a function `estimate`, which computes the
    interval. Pass your method as `method=` to `interval`, `compare`, `leaderboard` or `report`.

    >>> import dataclasses
    >>> import jaxmetrics as jm
    >>> @dataclasses.dataclass(frozen=True)
    ... class Wald(jm.IntervalMethod):
    ...     name = "wald"
    ...
    ...     def estimate(self, metric, confidence):
    ...         value, error = metric.values, metric.errors
    ...         reach = confidence.quantile(metric.sample.number) * error
    ...         return jm.Estimate(value, value - reach, value + reach, error, 0 * error), None
    >>> jm.interval(jm.accuracy, [[45, 5], [3, 47]], method=Wald())
    0.920 [0.867, 0.973]
    """

    name: ClassVar[str]
    draws: ClassVar[bool] = False
    needs_examples: ClassVar[bool] = True
    most: ClassVar[float] = math.inf  # limit of examples
    weighs_clusters: ClassVar[bool] = True  # whether clusters may contain weights
    most_kinds: ClassVar[float] = 2**12  # of larger tables, only the cells that occur are read

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, Array | None]:
        """Return the estimate of V values, and the replicates `(S, V)` or None.

        Args:
            metric: the metric as a function of how often each kind of example or cluster occurs.
                Its attributes `values`, `slopes` (derivatives) and `errors` are evaluated at
                `metric.sample`.
            confidence: an object with the attribute `level` and the function `quantile(n)`, which
                returns the half-width of the interval in standard errors. n is the number of
                independent examples or clusters.
        """
        raise NotImplementedError(f"{type(self).__name__} must define estimate.")

    def check(
        self,
        counts: Array,
        name: str = "counts",
        *,
        table_ndim: int = 2,
        is_clustered: bool = False,
    ) -> Array:
        """Raise an error for counts that the method cannot use."""
        most = None if is_clustered and self.weighs_clusters else self.most
        return check_counts(counts, name, table_ndim=table_ndim, most=most)

    def prepared(self, tables: Array, num_classes: int) -> tuple[IntervalMethod, Array]:
        """Return the method and the tables, after both were moved to the same device."""
        return self, tables

    def checked(self, estimates: Any) -> Any:
        """Return the estimates, or raise an error if they cannot be used."""
        return estimates

    @property
    def numbers(self) -> int:
        """Return the number of replicates that are in memory at the same time."""
        return 1


@dataclasses.dataclass(frozen=True)
class Likelihood(IntervalMethod):
    """Likelihood-ratio confidence interval of a smooth metric of a confusion matrix.

    The ends of the interval are the smallest and the largest value of the metric over all tables E
    with

        sum C log(C / E) <= z^2 / 2,    sum E = sum C.

    C are the observed counts, and z is the normal quantile of the confidence level. E are the
    counts that are expected for given probabilities of the cells. The inequality holds for all
    probabilities that a likelihood-ratio test does not reject.

    Before an end is computed, a third of an example is added to one cell of C, the cell that moves
    the metric most towards this end; other empty cells stay empty, as do all cells of classes that
    do not occur, unless the metric depends only on these. The interval thus allows for unseen
    errors: without errors among n examples, that of the error rate ends at about 3 / n.

    No random numbers are drawn, and no prior or transformation is needed. The interval lies in the
    range of the metric. The standard error is the same as for `Delta`. Sources: Owen (2001),
    Empirical Likelihood; DiCiccio, Hall and Romano (1991), Annals of Statistics 19.

    If there are clusters (groups of correlated examples), the counts are scaled down to an
    effective number of independent examples (Rao and Scott, 1981, JASA 76). For each end, three
    quarters of the cluster that moves the metric most towards this end are also added.

    The search is local. It begins at each of up to 16 cells; of up to 256, at those whose growth
    moves the metric most; of up to 1024, so only if the metric is flat; otherwise, at the steepest.
    In larger sparse tables, an end may be local, and then depends on the order of the classes.
    The metric must be a smooth function of the counts. The search ends too early at the upper end
    of a minimum over classes, and at the lower end of a maximum. The interval of the minimum of
    equal recalls lies too low. Mutual information and Cramér's V of three or more classes are too
    high near 0. Their intervals then lie too high. The interval of a mean over five or more classes
    is too narrow if four or more have fewer than four examples, which gives a warning.

    An end is infinite if the metric can be arbitrarily large, such as the positive likelihood ratio
    without false positives. The ends are NaN if the metric has the same value in all plausible
    tables, such as the precision of a class that is never predicted.

    >>> import jaxmetrics as jm
    >>> jm.interval(jm.balanced_accuracy, [[490, 5], [0, 5]], method=Likelihood())
    0.995 [0.775, 0.998]
    """

    name: ClassVar[str] = "likelihood"
    weighs_clusters: ClassVar[bool] = False
    most_kinds: ClassVar[float] = 2**18  # cells that did not occur matter for this method

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, None]:
        """Search for both ends of the interval of each value."""
        sample = metric.sample
        low, high, values, slopes, shares = likelihood_limits(
            metric, confidence.quantile(sample.number)
        )
        found = computed_estimate(
            values, low, high, sample.errors(values, slopes, metric.influences)
        )
        if sample.clusters is not None:
            found = dataclasses.replace(found, effective_number=shares * sample.counts.sum())
        return found, None


@dataclasses.dataclass(frozen=True)
class Delta(IntervalMethod):
    """Delta-method (Wald) confidence interval from derivatives, `θ ± z s`.

    θ is the value of the metric, s its standard error, and z the normal quantile of the level. For
    n independent examples with the counts C, `s^2 = sum C g^2 - (sum C g)^2 / n`, where g is the
    gradient of the metric with respect to C. If `stratified` is True, this variance is computed for
    each true class, and the variances of all classes are added.

    If there are clusters (groups of correlated examples), s is the jackknife standard error over
    clusters, computed from g. For k clusters of equal size with the counts C_c,
    `s^2 = k / (k - 1) sum_c (sum C_c g)^2`. z is replaced by the quantile of Student's t
    distribution with k - 1 degrees of freedom. If clusters have unequal sizes m, there are
    `(sum m)^2 / sum m^2 - 1` degrees of freedom. Source: MacKinnon, Nielsen and Webb (2023),
    Journal of Applied Econometrics 38.

    If `scale` is given, the ends are NaN for a value at an end of its range, such as an accuracy of
    1 for `"logit"`, or outside of its range. If `scale` is None, the width may be 0, for example if
    the accuracy is 1.

    Attributes:
        scale: the transformation of the metric before the interval is computed. The ends are
            transformed back, so that they stay in the range of the metric. Use `"logit"` for
            metrics in [0, 1], `"atanh"` for metrics in [-1, 1], and `"log"` for ratios in [0, inf).
            The default is None, no transformation. Use None for differences.

    >>> import jaxmetrics as jm
    >>> estimate = jm.interval(jm.cohen_kappa, [[0, 4, 1], [0, 8, 0], [0, 1, 5]], method=Delta())
    >>> estimate, estimate.standard_error.round(4)
    (0.484 [0.214, 0.755], np.float64(0.138))

    On the log scale, the interval of an odds ratio is Woolf's (1955, Annals of Human Genetics 19):

    >>> odds_ratio = jm.binary(jm.diagnostic_odds_ratio)
    >>> jm.interval(odds_ratio, [[40, 10], [5, 25]], method=Delta("log"))
    20.000 [6.120, 65.356]
    """

    scale: Literal["logit", "atanh", "log"] | None = None
    name: ClassVar[str] = "delta"

    def __post_init__(self) -> None:
        check_transform(self.scale, "scale")

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, None]:
        """Compute the interval of each value from its derivatives."""
        if self.scale is not None and any(-1 in factors for factors in metric.contrasts):
            raise ValueError(f"differences need no scale: use Delta(), not {self}.")
        z = confidence.quantile(metric.sample.number)
        if metric.sample.clusters is not None:
            z = student_quantile(z, metric.sample.numbers(metric.influences) - 1)
        return normal_estimate(metric.values, metric.errors, z, self.scale), None

    def checked(self, estimates: Any) -> Any:
        """Issue a warning if a value lies outside of the range of the scale."""
        if self.scale is None or on_device(estimates):
            return estimates
        lowest, highest, *_ = SCALES[self.scale]
        for estimate in trees.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate)):
            value = np.asarray(estimate.value)
            outside = (value < lowest - _ROUNDING) | (value > highest + _ROUNDING)
            if outside.any():
                warn(
                    f"scale={self.scale!r} needs a metric whose values lie between {lowest} and"
                    f" {highest}, but the metric has the value {value[outside][0]:.4g}, so its"
                    " interval is NaN. If the values lie between -1 and 1, such as Cohen's kappa"
                    " and Matthews' correlation coefficient, pass"
                    ' scale="atanh". If they have other bounds, pass scale=None.'
                )
        return estimates


@functools.cache
def _register(method: Any) -> None:
    """Register a method as a pytree in which the key and the prior may be traced."""
    fields = {field.name for field in dataclasses.fields(method)}
    arrays = fields & {"key", "prior"}
    jax.tree_util.register_dataclass(method, sorted(arrays), sorted(fields - arrays))


class _Drawing(IntervalMethod):
    """Base class of methods that draw replicates with a random key."""

    draws: ClassVar[bool] = True
    key: KeyLike
    num_samples: int

    def __post_init__(self) -> None:
        check_num_samples(self.num_samples)
        if is_loaded():
            _register(type(self))  # type: ignore[arg-type]  # for mypy a class has no hash

    def prepared(self, tables: Array, num_classes: int) -> tuple[IntervalMethod, Array]:
        """Move the key and the tables to the same device, or both to the host."""
        key, tables = place(self.key, tables)
        return dataclasses.replace(self, key=key), tables  # type: ignore[type-var]  # dataclasses derive

    def checked(self, estimates: Any) -> Any:
        """Raise an error if the metric is undefined in all replicates."""
        return check_finite(estimates, self.num_samples)

    @property
    def numbers(self) -> int:
        return self.num_samples


@dataclasses.dataclass(frozen=True, eq=False)  # keys of JAX have no hash
class Bootstrap(_Drawing):
    """Bootstrap confidence interval: the metric is computed on test sets drawn with replacement.

    θ is the metric of the counts. θ* are the values of the metric on the drawn test sets
    (replicates). Q(p) is the p-quantile of θ*, and α is 1 - level. The ends are:

    - `"percentile"`: `Q(α/2), Q(1 - α/2)`.
    - `"basic"`: `2θ - Q(1 - α/2), 2θ - Q(α/2)`.
    - `"bca"`: quantiles of θ* at levels that are corrected for bias and skewness (Efron, 1987, JASA
      82). If all replicates lie on one side of θ, the ends are those of `"percentile"`.
    - `"studentized"`: `θ - s t(1 - α/2), θ - s t(α/2)`. Here t(p) is the p-quantile of
      `(θ* - θ) / s*`, s is the standard error of `Delta`, and s* is the same for a replicate.

    The time does not depend on the number of examples. If there are clusters, whole clusters are
    drawn. If the classifier made no errors, the width of the interval is 0. In this case use
    `Likelihood` or `Posterior`. The standard error is the standard deviation of the replicates.

    Attributes:
        key: a JAX key or an int seed. If counts are NumPy arrays, it may be a NumPy Generator.
        kind: `"bca"`, `"percentile"`, `"basic"` or `"studentized"`.
        num_samples: number of replicates S. For `"bca"`, use at least 2000. If you compute V
            intervals with `simultaneous=True`, draw V times as many replicates.

    >>> import jaxmetrics as jm
    >>> estimate = jm.interval(jm.accuracy, [[90, 10], [5, 95]], method=Bootstrap(0))
    >>> estimate
    0.925 [0.880, 0.955]

    If a function returns several metrics, all of them are computed on the same replicates:

    >>> def both(counts):
    ...     return {"accuracy": jm.accuracy(counts), "errors": counts[0, 1] + counts[1, 0]}
    >>> both = jm.interval(both, [[90, 10], [5, 95]], method=Bootstrap(0))
    >>> both["errors"].value, both["accuracy"].low == estimate.low
    (np.float64(15.0), np.True_)
    """

    key: KeyLike
    kind: Literal["bca", "percentile", "basic", "studentized"] = "bca"
    num_samples: int = 2000
    most: ClassVar[float] = MOST_EXAMPLES

    def __post_init__(self) -> None:
        check_option(self.kind, "kind", (*KINDS, "studentized"))
        super().__post_init__()

    @property
    def name(self) -> str:  # type: ignore[override]  # of a class attribute
        """Name of the method in reports."""
        return self.kind

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, Array]:
        """Evaluate the metric on replicates of the sample's independent units."""
        units, level, kind = metric.of_units, confidence.level, self.kind
        draw = partial(units.sample.drawn, key=cast(Key, self.key), size=self.num_samples)
        if kind == "studentized":
            samples, errors = draw(units.values_and_errors)
            found = studentized_estimate(metric.values, units.errors, samples, errors, level)
            return found, samples
        samples, acceleration = draw(units), 0.0
        if kind == "bca":
            acceleration = acceleration_of(units.slopes, units.sample.counts)
        return estimate_of(metric.values, samples, level, kind, acceleration), samples


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior(_Drawing):
    """Bayesian credible interval: posterior mean and equal-tailed quantiles of the metric.

    The cell probabilities are drawn from their Dirichlet posterior by `posterior_counts`. The
    metric is computed for each draw. All cells together have one Dirichlet posterior. If
    `stratified` is True, each true class has its own.

    The default prior adds 1 to the correct cell of each class and 1 / (K - 1) to each of its wrong
    cells. Each recall then has the posterior Beta(1 + C_ii, 1 + m_i - C_ii), where C_ii is the
    number of correct predictions among the m_i examples of class i. A prior that adds 1 to every
    cell, `prior=(1, K - 1)`, gives poor coverage.

    The recall of a class without examples is drawn from its prior. If a metric averages over many
    classes with few examples, the priors dominate. The interval is then narrow and may be far from
    the true value.

    Clusters are not supported. The standard error is the posterior standard deviation.

    Attributes:
        key: a JAX key or an int seed. If counts are NumPy arrays, it may be a NumPy Generator.
        prior: the parameters of the beta prior of each recall: a pair `(alpha, beta)`, or one
            number if alpha = beta. See `posterior_counts`.
        num_samples: number of draws S.

    >>> import jaxmetrics as jm
    >>> jm.interval(jm.accuracy, [[95, 0], [0, 95]], method=Posterior(0))  # no errors
    0.990 [0.974, 0.999]
    """

    key: KeyLike
    prior: ArrayLike = 1.0
    num_samples: int = 2000
    name: ClassVar[str] = "posterior"
    needs_examples: ClassVar[bool] = False
    most_kinds: ClassVar[float] = math.inf

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, Array]:
        """Evaluate the metric on draws of the cell probabilities."""
        sample = metric.sample
        if sample.prior is None or sample.clusters is not None:
            raise ValueError(
                "Posterior needs confusion matrices, with an axis of true and an axis of predicted"
                " classes, and no clusters. Use Likelihood(), Delta() or Bootstrap(key)."
            )
        totals = sample.counts.sum(-1, keepdims=True)
        shares = totals / totals.sum() if sample.is_stratified else 1.0
        sampler = replicates.dirichlet_rows if sample.is_stratified else replicates.dirichlet
        samples = sample.drawn(
            lambda drawn: metric(drawn * shares),
            cast(Key, self.key),
            self.num_samples,
            sampler=sampler,
            expected=sample.counts + sample.prior(self.prior),
        )
        return posterior_estimate(samples, confidence.level), samples

    def prepared(self, tables: Array, num_classes: int) -> tuple[IntervalMethod, Array]:
        """Move the key, the tables and the prior to the same device, or all to the host."""
        key, tables, prior = place(self.key, tables, as_prior(self.prior, num_classes))
        return dataclasses.replace(self, key=key, prior=prior), tables


def check_method(method: object) -> None:
    if not isinstance(method, IntervalMethod):
        raise TypeError(
            "method must be an interval method, such as jaxmetrics.Likelihood() or"
            f" jaxmetrics.Bootstrap(key), got {method!r}."
        )


@on_host_if_small
def interval(
    metric: Metric,
    counts: ArrayLike,
    *,
    method: IntervalMethod = Likelihood(),  # it is frozen
    level: float = 0.95,
    squares: ArrayLike | None = None,
    cluster_axis: int | None = None,
    stratified: bool = False,
    simultaneous: bool = False,
    anytime: bool | int = False,
) -> Estimate:
    """Compute a confidence interval (error bars) of any metric of a confusion matrix.

    Args:
        metric: a function of a `(K, K)` matrix, or of a batch of matrices, that returns an array,
            or arrays in a dict or tuple. Doubling all counts must not change the returned values.
        counts: numbers of examples, of shape `(..., K, K)`; leading axes are batch axes. Some
            metrics need other tables: pairs `(..., K, K, K)` for `difference(metric)`, labels
            `(..., L, 2, 2)` for `label_macro(rate)`, histograms of scores `(..., 2, B)`,
            and groups `(..., G, K, K)` for functions with the attribute `table_ndim = 3`.
        method: `Likelihood()`, also for rare classes and no errors; `Delta(scale)`, which is
            differentiable; `Bootstrap(key)`; or `Posterior(key, prior)`.
        level: the confidence level.
        squares: if counts are sums of weights w, such as those of a survey, the sums of w^2, of
            the same shape: `confusion_matrix(y_true, y_pred, sample_weight=w**2)`.
        cluster_axis: the axis of clusters, which are groups of correlated examples. It is -3 for
            counts of shape `(..., C, K, K)`. Few or very unequal clusters give a warning.
        stratified: True if the number of examples per class was fixed in advance.
        simultaneous: True if `level` is the probability that all intervals contain their values at
            the same time (Šidák, 1967, JASA 62).
        anytime: True if `level` is the probability that the intervals after every example all
            contain the true value. It needs `Likelihood` or `Delta`. If `anytime` is an integer,
            the interval is narrowest at this number of examples or clusters. True stands for 500.

    Returns:
        `Estimate` of shape `(..., *shape of the array)`, or a dict or tuple of estimates. It is NaN
        if the metric is undefined, if there are no examples or, under jit, if counts are invalid.

    Raises:
        TypeError, ValueError: if the metric is not a function or has no finite value, or if the
            method does not accept the counts, level or options.

    >>> import jaxmetrics as jm
    >>> counts = [[45, 5], [3, 47]]
    >>> interval(jm.macro(jm.f1), counts)
    0.920 [0.852, 0.963]
    >>> for method in (jm.Delta("logit"), jm.Bootstrap(0), jm.Posterior(0)):
    ...     print(f"{method.name:10} {interval(jm.macro(jm.f1), counts, method=method):.2f}")
    delta      0.92 [0.85, 0.96]
    bca        0.92 [0.86, 0.97]
    posterior  0.90 [0.84, 0.95]
    """
    check_method(method)
    question = question_of(
        metric,
        counts,
        method.check,
        squares=squares,
        cluster_axis=cluster_axis,
        stratified=stratified,
    )
    found = answer(question, method, reach_of(method, question, level, simultaneous, anytime))
    note = ", ".join(["simultaneous"] * bool(simultaneous) + ["anytime-valid"] * bool(anytime))
    return with_level(found, level, method.name, note or None)
