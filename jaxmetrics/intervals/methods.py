"""Methods for the interval of any metric, as values to pass as `method=`."""

from __future__ import annotations

import dataclasses
import functools
import math
from functools import partial
from typing import Any, ClassVar, Literal, cast

import numpy as np

from jaxmetrics._jax import is_loaded, jax, trees
from jaxmetrics._keys import Key, KeyLike, place
from jaxmetrics._namespaces import Array, on_device
from jaxmetrics._validation import ArrayLike, check_option, warn
from jaxmetrics.betas.parameters import as_prior
from jaxmetrics.betas.student import student_quantile
from jaxmetrics.estimates import (
    SCALES,
    Estimate,
    Metric,
    check_transform,
    computed_estimate,
    normal_estimate,
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

_ROUNDING = 1e-12  # rounding by which a value may exceed its range


class IntervalMethod:
    """Base class of interval methods: derive from it to write your own.

    A method is a frozen dataclass with a `name`, used in reports, and a function `estimate`.
    `interval`, comparisons, leaderboards, streaming states and reports accept it as `method=`.

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
    most: ClassVar[float | None] = None  # examples, if counts must be integers
    most_kinds: ClassVar[float] = 2**12  # with more, only the kinds of units that occur are read

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, Array | None]:
        """Return the estimate of values `(V,)`, and the replicates behind it, `(S, V)`, or None.

        Args:
            metric: a function of how often each kind of unit occurs in `metric.sample`; its
                `values`, `slopes` and `errors` are evaluated at the sample itself.
            confidence: holds `level`, and the number of standard errors of the half-width.
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
        """Raise for counts that the method cannot use; tables of clusters may hold any weights."""
        most = None if self.draws and is_clustered else self.most
        return check_counts(counts, name, table_ndim=table_ndim, most=most)

    def prepared(self, tables: Array, num_classes: int) -> tuple[IntervalMethod, Array]:
        """Return the method, with its key on the device of the tables, and the tables."""
        return self, tables

    def checked(self, estimates: Any) -> Any:
        """Return the estimates, or raise if they cannot be used."""
        return estimates

    @property
    def numbers(self) -> int:
        """Return the number of replicates that are held in memory at once."""
        return 1


@dataclasses.dataclass(frozen=True)
class Likelihood(IntervalMethod):
    """Likelihood-ratio confidence interval of any smooth metric of a confusion matrix.

    The ends are the smallest and the largest value of the metric over all tables of expected counts
    E with

        sum C log(C / E) <= z^2 / 2,    sum E = sum C,

    where z is the normal quantile of the level. For each end, C gets a third of an example more, in
    the cell that moves the metric most towards this end. So the interval allows for kinds of error
    that did not occur in this test set: after n examples without an error its limit is 3.0 / n, the
    mid-p limit. A cell that at first does not move the metric (a minimum over classes depends on
    the worst class only) is ranked by its effect after it has grown as far as the likelihood allows
    (in tables of up to 1024 cells). If examples of an absent class would make the metric jump, as
    they change an average over the classes that occur, its cells stay empty: the interval is about
    the classes that occur.

    No random numbers, no scale and no prior are needed, and the ends are values that the metric can
    take. Owen (2001), Empirical Likelihood; DiCiccio, Hall and Romano (1991), Annals of Statistics
    19. Its coverage: `bench/coverage.py`. Clustered examples count as the number of independent
    examples that would give the metric the same variance, and three quarters of the cluster that
    moves the metric most are added, too: Rao and Scott (1981), Journal of the American Statistical
    Association 76.

    The metric must be a smooth function of the shares of cells. The minimum over several equally
    good classes, for example, is biased downwards, and its interval lies too low.

    The standard error is the standard error of `Delta`. An end is infinite if the metric is
    unbounded, such as a likelihood ratio without false positives. The ends are NaN if no plausible
    table changes the value, such as the precision of a class that is never predicted, which is a
    convention.

    >>> import jaxmetrics as jm
    >>> jm.interval(jm.balanced_accuracy, [[490, 5], [0, 5]], method=Likelihood())
    0.995 [0.775, 0.998]
    """

    name: ClassVar[str] = "likelihood"
    most: ClassVar[float | None] = math.inf
    most_kinds: ClassVar[float] = 2**18  # levels, for which unseen errors matter

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, None]:
        """Search for both ends of each value."""
        values, slopes, sample = metric.values, metric.slopes, metric.sample
        z = confidence.quantile(sample.number)
        low, high = likelihood_limits(metric, sample.shares(values, slopes, z), z)
        return computed_estimate(values, low, high, sample.errors(values, slopes)), None


@dataclasses.dataclass(frozen=True)
class Delta(IntervalMethod):
    """Delta-method (normal, Wald) confidence interval from derivatives, `θ ± z s`.

    With g the gradient of the metric with respect to the counts C of n examples,
    `s^2 = sum C g^2 - (sum C g)^2 / n`, the first-order variance under multinomial sampling.
    Stratified, the same expression is summed over the rows, whose totals are fixed. With clusters,
    s is the first-order jackknife error, `s^2 = C / (C - 1) sum_c (sum C_c g)^2` for C clusters of
    equal size, and z is the quantile of Student's t with C - 1 degrees of freedom, where C is
    Kish's number `(sum m)^2 / sum m^2` for clusters of m examples. MacKinnon, Nielsen and Webb
    (2023), Journal of Applied Econometrics 38.

    The ends are NaN if the value is an end of its range, because the scale maps it to infinity (a
    classifier without a mistake, for example), or lies outside of the range (with a warning for
    NumPy counts). Without a scale the width is 0 if all derivatives are equal. No random numbers
    are drawn; weights are read as frequencies.

    Attributes:
        scale: `"logit"` for metrics in [0, 1], `"atanh"` for metrics in [-1, 1] (kappa, Matthews),
            `"log"` for ratios in [0, inf): the interval is computed on this scale and transformed
            back, so that it stays in the range. None, the default, for differences.

    >>> import jaxmetrics as jm
    >>> estimate = jm.interval(jm.cohen_kappa, [[0, 4, 1], [0, 8, 0], [0, 1, 5]], method=Delta())
    >>> estimate, estimate.standard_error.round(4)
    (0.484 [0.214, 0.755], np.float64(0.138))

    The interval of an odds ratio by Woolf (1955), Annals of Human Genetics 19:

    >>> odds_ratio = jm.binary(jm.diagnostic_odds_ratio)
    >>> jm.interval(odds_ratio, [[40, 10], [5, 25]], method=Delta("log"))
    20.000 [6.120, 65.356]
    """

    scale: Literal["logit", "atanh", "log"] | None = None
    name: ClassVar[str] = "delta"

    def __post_init__(self) -> None:
        check_transform(self.scale, "scale")

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, None]:
        """Differentiate all values."""
        if self.scale is not None and any(-1 in factors for factors in metric.contrasts):
            raise ValueError(f"differences need no scale: use Delta(), not {self}.")
        number = metric.sample.number
        z = confidence.quantile(number)
        if metric.sample.clusters is not None:
            z = student_quantile(z, number - 1)
        return normal_estimate(metric.values, metric.errors, z, self.scale), None

    def checked(self, estimates: Any) -> Any:
        """Warn if a value is outside of the range of the scale."""
        if self.scale is None or on_device(estimates):
            return estimates
        lowest, highest, *_ = SCALES[self.scale]
        for estimate in trees.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate)):
            value = np.asarray(estimate.value)
            outside = (value < lowest - _ROUNDING) | (value > highest + _ROUNDING)
            if outside.any():
                warn(
                    f"scale={self.scale!r} is for metrics from {lowest} to {highest}, got a value"
                    f" of {value[outside][0]:.4g}: it has no interval (NaN). For metrics from -1"
                    " to 1, such as kappa and Matthews' coefficient, use"
                    ' "atanh"; None transforms nothing.'
                )
        return estimates


@functools.cache
def _register(method: Any) -> None:
    """Register a method as a pytree, whose key and prior may be traced."""
    fields = {field.name for field in dataclasses.fields(method)}
    arrays = fields & {"key", "prior"}
    jax.tree_util.register_dataclass(method, sorted(arrays), sorted(fields - arrays))


class _Drawing(IntervalMethod):
    """A method that draws replicates with a key."""

    draws: ClassVar[bool] = True
    key: KeyLike
    num_samples: int

    def __post_init__(self) -> None:
        check_num_samples(self.num_samples)
        if is_loaded():
            _register(type(self))  # type: ignore[arg-type]  # for mypy a class has no hash

    def prepared(self, tables: Array, num_classes: int) -> tuple[IntervalMethod, Array]:
        """Move the key to where the tables are."""
        key, tables = place(self.key, tables)
        return dataclasses.replace(self, key=key), tables  # type: ignore[type-var]  # dataclasses derive

    def checked(self, estimates: Any) -> Any:
        """Raise for a metric that is undefined in all replicates."""
        return check_finite(estimates, self.num_samples)

    @property
    def numbers(self) -> int:
        return self.num_samples


@dataclasses.dataclass(frozen=True, eq=False)  # keys of JAX have no hash
class Bootstrap(_Drawing):
    """Bootstrap confidence interval, from test sets drawn with replacement.

    With θ the metric of the counts, θ* its values on the replicates, and Q the quantiles of θ*:

    - `"percentile"`: `Q(α/2), Q(1 - α/2)`.
    - `"basic"`: `2θ - Q(1 - α/2), 2θ - Q(α/2)`.
    - `"bca"`: percentiles at levels corrected for bias and skewness; the skewness comes from the
      derivatives (infinitesimal jackknife). If all replicates lie on one side of the value, plain
      percentiles. Efron (1987), JASA 82.
    - `"studentized"`: `θ - s t(1 - α/2), θ - s t(α/2)`, where t are the quantiles of
      `(θ* - θ) / s*` and s is the error of `Delta`. Replicates with s* = 0 and θ* != θ count as
      undefined.

    Resampling n examples is equivalent to drawing the cells of the table from a multinomial
    distribution, so the cost does not depend on n; clusters are drawn as a whole. If the metric is
    the same in all replicates, for example for a classifier without errors, the width is 0, because
    the bootstrap never draws errors that did not occur; `Likelihood` and `Posterior` allow for
    them. The standard error is the standard deviation of the replicates.

    Attributes:
        key: a JAX key, an int seed or, for NumPy counts, a NumPy Generator. The matrices of a batch
            share their random numbers, so that each gets the same draws as it would alone;
            `jax.vmap` over keys makes them independent.
        kind: `"bca"`, `"percentile"`, `"basic"` or `"studentized"`, see above.
        num_samples: number of replicates S. Extreme quantiles, which BCa needs, require 2000 or
            more; V simultaneous intervals need V times as many.

    >>> import jaxmetrics as jm
    >>> estimate = jm.interval(jm.accuracy, [[90, 10], [5, 95]], method=Bootstrap(0))
    >>> estimate
    0.925 [0.880, 0.955]

    Several metrics, your own included, share the replicates:

    >>> def both(counts):
    ...     return {"accuracy": jm.accuracy(counts), "errors": counts[0, 1] + counts[1, 0]}
    >>> both = jm.interval(both, [[90, 10], [5, 95]], method=Bootstrap(0))
    >>> both["errors"].value, both["accuracy"].low == estimate.low
    (np.float64(15.0), np.True_)
    """

    key: KeyLike
    kind: Literal["bca", "percentile", "basic", "studentized"] = "bca"
    num_samples: int = 2000
    most: ClassVar[float | None] = MOST_EXAMPLES

    def __post_init__(self) -> None:
        check_option(self.kind, "kind", (*KINDS, "studentized"))
        super().__post_init__()

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name of the method in reports."""
        return self.kind

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, Array]:
        """Evaluate replicates of the sample's units."""
        units, level, kind = metric.of_units, confidence.level, self.kind
        draw = partial(units.sample.drawn, key=cast(Key, self.key), size=self.num_samples)
        if kind == "studentized":
            samples, errors = draw(units.values_and_errors)
            found = studentized_estimate(metric.values, units.errors, samples, errors, level)
            return found, samples
        samples, acceleration = draw(units), None
        if kind == "bca":
            acceleration = acceleration_of(units.slopes, units.sample.counts)
        return estimate_of(metric.values, samples, level, kind, acceleration), samples


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior(_Drawing):
    """Bayesian credible interval: posterior mean and equal-tailed quantiles of cell probabilities.

    The draws are made by `posterior_counts`: all cells, or with `stratified` the cells of each
    class, have a Dirichlet posterior. The default prior, 1 for the correct cell and 1 / (K - 1) for
    each wrong one, makes each recall Beta(1 + C_ii, 1 + m_i - C_ii). A flat prior of 1 on all
    cells, `prior=(1, K - 1)`, has poor coverage. A class without examples contributes its prior. In
    averages over many classes the priors add up, and the interval becomes narrow around the prior's
    value. For pairs the prior is the product of the priors of A and B, so that each alone has the
    posterior above; it is worth 2 examples per class, however many pairs there are.
    `at_prevalence(metric, shares)` is the metric of a deployment with other shares of the classes.
    Clusters are not supported. Weights are read as frequencies; the standard error is the posterior
    standard deviation.

    Attributes:
        key: a JAX key, an int seed or, for NumPy counts, a NumPy Generator.
        prior: `alpha`, or `(alpha, beta)`, the beta prior of each recall; see `posterior_counts`.
        num_samples: number of draws S.

    >>> import jaxmetrics as jm
    >>> jm.interval(jm.accuracy, [[95, 0], [0, 95]], method=Posterior(0))  # no error was seen
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
                "Posterior supports neither clusters nor tables without classes: use"
                " Likelihood(), Delta() or Bootstrap(key)."
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
        """Move the key and the prior to where the tables are stored."""
        key, tables, prior = place(self.key, tables, as_prior(self.prior, num_classes))
        return dataclasses.replace(self, key=key, prior=prior), tables


def check_method(method: object) -> None:
    if not isinstance(method, IntervalMethod):
        raise TypeError(
            "method must be an interval method, such as jaxmetrics.Likelihood() or"
            f" jaxmetrics.Bootstrap(key), got {method!r}."
        )


def interval(
    metric: Metric,
    counts: ArrayLike,
    *,
    method: IntervalMethod = Likelihood(),  # it is frozen
    level: float = 0.95,
    cluster_axis: int | None = None,
    stratified: bool = False,
    simultaneous: bool = False,
    anytime: bool | int = False,
) -> Any:
    """Compute a confidence interval (error bars) of any metric of a confusion matrix.

    `method` is `Likelihood()`, the default, which also works for rare classes and without any
    error; `Delta(scale)`, differentiable, for use within jit; `Bootstrap(key)`, the variation over
    resampled test sets; or `Posterior(key, prior)`, Bayesian.

    Args:
        metric: a function of one matrix `(K, K)`, or a batch, that returns an array or pytree of
            arrays, unchanged when all counts are multiplied by the same number.
            `difference(metric)` reads pairs `(K, K, K)`, `label_macro(rate)` labels `(L, 2, 2)`,
            metrics of scores histograms `(2, B)`, a function with the attribute `table_ndim = 3`
            groups `(G, K, K)`.
        counts: `(..., K, K)` numbers of examples; extra leading axes are batch axes.
        method, level: how the ends are computed, and the confidence level.
        cluster_axis: the axis of `(..., C, K, K)` with one table per cluster (-3 for a matrix):
            examples of a cluster may be correlated, clusters are independent. Warns below 20
            clusters, or if unequal sizes halve their effective number.
        stratified: True if the number of examples per class was fixed in advance.
        simultaneous: True if the intervals of all values of the metric (classes, groups,
            thresholds) should hold jointly with `level`: Šidák (1967), JASA 62.
        anytime: True if the interval (`Likelihood` or `Delta`) may be looked at after every
            example; or the number of examples (clusters) at which it is narrowest, 500 if True.

    Returns:
        `Estimate` or a pytree of them, `(..., *shape of the array)`. NaN if the metric is
        undefined, without examples, and under jit for counts for which the method would raise.

    Raises:
        TypeError, ValueError: a metric that is not a function or is nowhere finite; counts, level
            or options that the method does not accept.

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
        metric, counts, method.check, cluster_axis=cluster_axis, stratified=stratified
    )
    return answer(question, method, reach_of(method, question, level, simultaneous, anytime))
