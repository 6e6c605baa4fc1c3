"""Intervals of any metric, by methods that are values."""

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

_ROUNDING = 1e-12  # by which a value may miss the end of its range


class IntervalMethod:
    """Estimate a metric of any sample: derive from it to write a method of your own.

    A method is a frozen dataclass with a `name`, by which reports call it, and the function
    `estimate`; `interval`, comparisons, leaderboards, streams and reports then take it.

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
    most: ClassVar[float | None] = None  # examples, where counts must be whole numbers
    most_kinds: ClassVar[float] = 2**12  # beyond, only the kinds of units that occur are read

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, Array | None]:
        """Return the estimate of values `(V,)` and the replicates it is made of, `(S, V)`, or None.

        Args:
            metric: a function of how often each kind of unit occurs in `metric.sample`; its
                `values`, `slopes` and `errors` are those at the sample itself.
            confidence: its `level`, and how many standard errors an interval reaches.
        """
        raise NotImplementedError(f"{type(self).__name__} has no estimate.")

    def check(
        self,
        counts: Array,
        name: str = "counts",
        *,
        table_ndim: int = 2,
        is_clustered: bool = False,
    ) -> Array:
        """Refuse counts that the method cannot read; whole clusters may hold any weights."""
        most = None if self.draws and is_clustered else self.most
        return check_counts(counts, name, table_ndim=table_ndim, most=most)

    def prepared(self, tables: Array, num_classes: int) -> tuple[IntervalMethod, Array]:
        """Return the method, and the tables, where it draws from them."""
        return self, tables

    def checked(self, estimates: Any) -> Any:
        """Return what was found, or refuse it."""
        return estimates

    @property
    def numbers(self) -> int:
        """How many replicates are held at once."""
        return 1


@dataclasses.dataclass(frozen=True)
class Likelihood(IntervalMethod):
    """The interval of the values of a metric under which the counts are likely enough.

    The ends are the least and the greatest value over all tables of expected counts E with

        sum C log(C / E) <= z^2 / 2,    sum E = sum C,

    z the normal quantile of the level. For each end C holds a third of an example more, in the cell
    that moves the metric most towards it: so the interval knows of errors that were not seen, and
    of n examples without one the limit is 3.0 / n, that of the mid-p value. Cells
    that at first do not move it, as a minimum hides all classes but the worst, count by how far
    they do once they have grown as far as is likely (in tables of up to 1024 cells). Where a
    class without examples would make the metric jump, as it changes an average over the classes
    that occur, its cells stay empty: the interval is about the classes that occur.

    Nothing is drawn, no scale and no prior is chosen, and the ends are values that the metric
    takes. Owen (2001), Empirical Likelihood; DiCiccio, Hall and Romano (1991), Annals of Statistics
    19. What it covers: `bench/coverage.py`. Examples of clusters count as the number of independent
    ones for which the metric would vary as much, and three quarters of the cluster that moves the
    metric most are added, too: Rao and Scott (1981), Journal of the American Statistical
    Association 76.

    This holds for smooth functions of the shares of cells. The worst of several classes that are
    equally good is less than each of them, and its interval lies too low.

    The standard error is that of `Delta`. An end is infinite where the metric grows without bound,
    as a likelihood ratio does if no false positive was seen. The ends are NaN where no likely table
    moves it, as the precision of a class that is never predicted, which is a convention.

    >>> import jaxmetrics as jm
    >>> jm.interval(jm.balanced_accuracy, [[490, 5], [0, 5]], method=Likelihood())
    0.995 [0.775, 0.998]
    """

    name: ClassVar[str] = "likelihood"
    most: ClassVar[float | None] = math.inf
    most_kinds: ClassVar[float] = 2**18  # for which errors that were not seen matter

    def estimate(self, metric: Functional, confidence: Confidence) -> tuple[Estimate, None]:
        """Search for the ends of each value."""
        values, slopes, sample = metric.values, metric.slopes, metric.sample
        z = confidence.quantile(sample.number)
        low, high = likelihood_limits(metric, sample.shares(values, slopes, z), z)
        return computed_estimate(values, low, high, sample.errors(values, slopes)), None


@dataclasses.dataclass(frozen=True)
class Delta(IntervalMethod):
    """The normal interval from derivatives, `θ ± z s`.

    With g the gradient of the metric by the counts C of n examples,
    `s^2 = sum C g^2 - (sum C g)^2 / n`, the variance under multinomial counts to first order.
    Stratified, it is the sum of the same over the rows, whose totals are then fixed. With clusters
    it is that of the jackknife to first order, `C / (C - 1) sum_c (sum C_c g)^2` for C clusters of
    one size, and z is the quantile of Student's t with C - 1 degrees of freedom, C being Kish's
    number `(sum m)^2 / sum m^2` of clusters of m examples. MacKinnon, Nielsen and Webb (2023),
    Journal of Applied Econometrics 38.

    The ends are NaN where the value is an end of the range, which its scale takes to infinity, as
    that of a classifier without a mistake; and where it is outside of the range, on the host with a
    warning. Without a scale the width is 0 where all derivatives are equal. Nothing is drawn, and
    weights are read as frequencies.

    Attributes:
        scale: `"logit"` for metrics in [0, 1], `"atanh"` for metrics in [-1, 1] (kappa, Matthews),
            `"log"` for ratios in [0, inf): the interval is computed on that scale and transformed
            back, so that it stays within the range. Differences have none.

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
            raise ValueError(f"differences have no scale: take Delta(), not {self}.")
        number = metric.sample.number
        z = confidence.quantile(number)
        if metric.sample.clusters is not None:
            z = student_quantile(z, number - 1)
        return normal_estimate(metric.values, metric.errors, z, self.scale), None

    def checked(self, estimates: Any) -> Any:
        """Warn of values outside of the range of the scale."""
        if self.scale is None or on_device(estimates):
            return estimates
        lowest, highest, *_ = SCALES[self.scale]
        for estimate in trees.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate)):
            value = np.asarray(estimate.value)
            outside = (value < lowest - _ROUNDING) | (value > highest + _ROUNDING)
            if outside.any():
                warn(
                    f"scale={self.scale!r} is for metrics from {lowest} to {highest}, got a value"
                    f" of {value[outside][0]:.4g}: it has no interval (NaN). For metrics from -1 to"
                    ' 1, as kappa and Matthews\' coefficient, take "atanh"; None transforms'
                    " nothing."
                )
        return estimates


@functools.cache
def _register(method: Any) -> None:
    """Make a pytree of a method: its key and prior may be traced."""
    fields = {field.name for field in dataclasses.fields(method)}
    arrays = fields & {"key", "prior"}
    jax.tree_util.register_dataclass(method, sorted(arrays), sorted(fields - arrays))


class _Drawing(IntervalMethod):
    """A method that draws replicates by a key."""

    draws: ClassVar[bool] = True
    key: KeyLike
    num_samples: int

    def __post_init__(self) -> None:
        check_num_samples(self.num_samples)
        if is_loaded():
            _register(type(self))  # type: ignore[arg-type]  # for mypy a class has no hash

    def prepared(self, tables: Array, num_classes: int) -> tuple[IntervalMethod, Array]:
        """Place the key where the tables are."""
        key, tables = place(self.key, tables)
        return dataclasses.replace(self, key=key), tables  # type: ignore[type-var]  # dataclasses derive

    def checked(self, estimates: Any) -> Any:
        """Refuse a metric that is undefined in all replicates."""
        return check_finite(estimates, self.num_samples)

    @property
    def numbers(self) -> int:
        return self.num_samples


@dataclasses.dataclass(frozen=True, eq=False)  # keys of JAX have no hash
class Bootstrap(_Drawing):
    """The interval from test sets drawn with replacement.

    With θ the metric of the counts, θ* those of the replicates, and Q their quantiles:

    - `"percentile"`: `Q(α/2), Q(1 - α/2)`.
    - `"basic"`: `2θ - Q(1 - α/2), 2θ - Q(α/2)`.
    - `"bca"`: percentiles at levels that correct bias and skewness; the skewness comes from the
      derivatives, the infinitesimal jackknife. Where all replicates lie on one side of the value,
      plain percentiles. Efron (1987), JASA 82.
    - `"studentized"`: `θ - s t(1 - α/2), θ - s t(α/2)`, t the quantiles of `(θ* - θ) / s*`, s the
      error by `Delta`. Replicates with s* = 0 and θ* != θ count as undefined.

    To resample n examples is to draw the cells of a table from a multinomial, so that the cost does
    not depend on n; of clusters, whole ones are drawn. A metric that is the same in all replicates,
    as for a classifier without errors, has an interval of width 0: the bootstrap gives no
    probability to errors that did not occur. `Likelihood` and `Posterior` do. The standard error is
    the standard deviation of the replicates.

    Attributes:
        key: a JAX key, an int seed or, for counts of the host, a NumPy Generator. The matrices of a
            batch share their random numbers, so that each draws the same as alone; `jax.vmap` over
            keys makes them independent.
        kind: as above.
        num_samples: S; quantiles near the ends, as for BCa, need 2000 or more, and those of V
            simultaneous intervals, V times further out, as many times more.

    >>> import jaxmetrics as jm
    >>> estimate = jm.interval(jm.accuracy, [[90, 10], [5, 95]], method=Bootstrap(0))
    >>> estimate
    0.925 [0.880, 0.955]

    Several metrics at once, yours among them, share the replicates:

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
        """What reports call it."""
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
    """The posterior mean with equal-tailed quantiles, over draws of cell probabilities.

    The draws are those of `posterior_counts`: all cells, or with `stratified` those of each class,
    have a Dirichlet posterior. Its default prior, 1 for the right cell and 1 / (K - 1) for each
    wrong one, makes each recall Beta(1 + C_ii, 1 + m_i - C_ii); a flat prior of 1 on all cells,
    `prior=(1, K - 1)`, has poor coverage. A class without examples takes part with its prior. In
    averages over many classes the priors add up, and the interval is narrow around them. Of pairs
    the prior is the product of those of A and of B, so that each alone has that posterior; it is
    worth 2 examples per class, however many pairs there are. `at_prevalence(metric, shares)` is the
    metric of a deployment with other shares of the classes. Clusters have no posterior. Weights are
    read as frequencies; the standard error is the posterior's standard deviation.

    Attributes:
        key: as for `Bootstrap`.
        prior: as for `posterior_counts`.
        num_samples: S.

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
        """Evaluate draws of the kinds' probabilities."""
        sample = metric.sample
        if sample.prior is None or sample.clusters is not None:
            raise ValueError(
                "clusters, and tables that are not of classes, have no posterior: take"
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
        """Place the key and the prior where the tables are."""
        key, tables, prior = place(self.key, tables, as_prior(self.prior, num_classes))
        return dataclasses.replace(self, key=key, prior=prior), tables


def check_method(method: object) -> None:
    if not isinstance(method, IntervalMethod):
        raise TypeError(
            "method must be a method of intervals as a value, such as jaxmetrics.Likelihood() or"
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
    """Estimate a metric with an interval that is meant to contain its true value.

    - `Likelihood()` is the method of first choice: all values that the counts do not refute, also
      where classes are rare, or no error was seen.
    - `Delta(scale)` differentiates the metric: for gradients, plans and within jit.
    - `Bootstrap(key)` asks how the metric would vary over test sets like this one.
    - `Posterior(key, prior)` asks which metrics are plausible, given the counts and a prior.

    Args:
        metric: a function of one matrix `(K, K)`, or of a batch of them, that returns an array or a
            pytree of arrays, and does not grow with the number of examples. `difference(metric)`
            reads pairs `(K, K, K)`, `label_macro(rate)` labels `(L, 2, 2)`, and a function with an
            attribute `table_ndim` of 3 groups `(G, K, K)`, such as
            `lambda c: f1(c[0]) - f1(c[1])`. Metrics of scores read histograms `(2, B)`.
        counts: `(..., K, K)` numbers of examples; see the method about sums of weights. Leading
            axes are batch.
        method: how the ends are found.
        level: the probability with which the interval is meant to contain the true value.
        cluster_axis: the axis of `(..., C, K, K)` with tables of clusters, -3, or one before the
            axes that the metric reads, as `groups=` of `confusion_matrix` makes them: examples of a
            cluster may be alike, clusters are independent. A warning for fewer than 20, and where
            unequal sizes make them count as less than half as many.
        stratified: whether the totals of the rows were chosen, and not drawn.
        simultaneous: whether the intervals of all values of the metric, as of classes, groups or
            thresholds, hold together with `level`, whatever their correlations. Šidák (1967),
            Journal of the American Statistical Association 62.
        anytime: whether the interval, by `Likelihood` or `Delta`, may be looked at after every
            example, and holds at all times with `level`; or the number of examples (clusters) at
            which it is to be narrowest, 500 if True. z becomes `sqrt(2 (1 + 1 / m) ln(sqrt(m + 1) /
            α))`, m in proportion to n: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024),
            Annals of Statistics 52, theorem 2.2. It is asymptotic: by `Delta` it holds from some
            500 examples on. At 100,000 it is 1.9 times as wide as the interval for one look.

    Returns:
        `Estimate` or a pytree of them, of shapes `(..., *shape of the array)`. NaN where the metric
        is undefined, without examples, and under jit for a table that the method refuses.

    Raises:
        TypeError: a metric that is no function, a method that is no method.
        ValueError: counts that are not square, negative or (likelihood, bootstrap) not whole, a
            level outside of (0, 1), clusters that are stratified, clusters for a posterior, labels
            without clusters, `anytime` for a method that draws, a metric that is nowhere finite.

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
