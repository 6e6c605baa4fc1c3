"""Intervals for any metric: an estimate with its lower and upper end.

A `metric` is any function of one matrix of counts `(K, K)`, yours included, that returns an array or a pytree of arrays; a dict
of metrics is evaluated in one pass over the same replicates. The result is an `Estimate`, or the pytree with an `Estimate` for
each array. Leading axes of counts are batch: `(..., K, K)` gives estimates of shape `(..., *shape of the array)`.

- `bootstrap` asks how the metric would vary over test sets like this one. To resample n examples is to draw the K^2 cells from
  a multinomial, so its cost does not depend on n.
- `posterior` asks which metrics are plausible, given the counts and a prior; it is the one to take for small or perfect counts.
- `delta_method` differentiates the metric; nothing is drawn.
- `proportion_interval` for fractions of independent examples.

`level` is the probability with which an interval is meant to contain the true value, 0.95 unless said otherwise. What draws
random numbers takes a `key` first, and draws the same for a matrix alone as in a batch: the matrices of a batch share their
random numbers; `jax.vmap` over keys makes them independent. A lambda written in the call is compiled in each call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri

from jaxmetrics import _betas, _replicates
from jaxmetrics._arrays import (
    ArrayLike,
    as_counts,
    as_float,
    as_prior,
    check_level,
    check_option,
    check_size,
    divide,
    promoting,
    safe_sqrt,
)

__all__ = ["Estimate", "bootstrap", "bootstrap_counts", "delta_method", "posterior", "proportion_interval"]

Metric: TypeAlias = Callable[[jax.Array], Any]


class Estimate(NamedTuple):
    """A value, the ends of its interval and its standard error: arrays of one shape.

    `num_undefined` counts the replicates in which the metric was NaN or infinite. They are left out of the other figures, so
    that the interval holds for test sets in which the metric is defined; 0 where nothing was drawn.
    """

    value: jax.Array
    low: jax.Array
    high: jax.Array
    standard_error: jax.Array
    num_undefined: jax.Array


def bootstrap(
    key: jax.Array,
    metric: Metric,
    counts: ArrayLike,
    *,
    num_samples: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile", "basic", "studentized"] = "bca",
    stratified: bool = False,
) -> Any:
    """Bootstrap interval of a metric: its quantiles over test sets drawn, with replacement, from this one.

    With θ the metric of the counts, θ* those of the replicates, and Q their quantiles:

    - `"percentile"`: `Q(α/2), Q(1 - α/2)`.
    - `"basic"`: `2θ - Q(1 - α/2), 2θ - Q(α/2)`.
    - `"bca"`: percentiles at levels that correct bias and skewness, the latter from the jackknife, which has only as many
      different values as there are cells (more than 4096 cells: from the derivatives). Efron (1987), JASA 82.
    - `"studentized"`: `θ - s t(1 - α/2), θ - s t(α/2)`, t the quantiles of `(θ* - θ) / s*`, s the error by `delta_method`.
      Replicates with s* = 0 and θ* != θ count as undefined.

    A metric that is the same in all replicates, as of a classifier without a mistake, has an interval of width 0: the bootstrap
    cannot imagine what it has not seen. `posterior` can.

    Args:
        metric: a function of one `(K, K)` matrix; see the docstring of `jaxmetrics.intervals`.
        counts: `(..., K, K)` numbers of examples.
        num_samples: S; quantiles near the ends, as for BCa, need 2000 or more.
        stratified: each class keeps its number of examples, as where the test set was made so.

    Returns:
        `Estimate` or a pytree of them; `standard_error` is the standard deviation of the replicates. NaN for a matrix without
        examples, and under jit for one with negative or fractional counts.

    Raises:
        ValueError: counts that are not square, negative or fractional (sums of weights do not say how many examples
            there are), num_samples < 2, a level outside of (0, 1), an unknown method, a metric that is
            nowhere finite.

    >>> import jaxmetrics as jm
    >>> estimate = bootstrap(jax.random.key(0), jm.accuracy, jnp.array([[90, 10], [5, 95]]))
    >>> estimate.value, estimate.low.round(2), estimate.high.round(2)
    (Array(0.925, dtype=float32), Array(0.88, dtype=float32), Array(0.96, dtype=float32))
    """
    check_option(method, "method", ("bca", "percentile", "basic", "studentized"))
    size, level = _check_num_samples(num_samples), check_level(level)
    whole_counts = _as_whole_counts(counts)
    columns = _replicates.used_columns(whole_counts)
    estimates = _bootstrap(
        key, whole_counts, columns, metric=metric, size=size, level=level, method=method, stratified=stratified
    )
    return _check_finite(estimates, size)


def posterior(
    key: jax.Array,
    metric: Metric,
    counts: ArrayLike,
    *,
    prior: ArrayLike = 1.0,
    prevalence: ArrayLike | Literal["inferred", "fixed"] = "inferred",
    num_samples: int = 2000,
    level: float = 0.95,
) -> Any:
    """Posterior interval of a metric: its equal-tailed quantiles over draws of `posterior_counts`.

    The predictions of each class have a Dirichlet posterior. Its default prior, 1 for the right cell and 1 / (K - 1) for each
    wrong one, makes each recall Beta(1 + C_ii, 1 + m_i - C_ii); a flat prior of 1 on all cells covers badly
    (`prior=(1, K - 1)`). A class without examples takes part with its prior.

    Args:
        metric: a function of one `(K, K)` matrix, which is given cell probabilities.
        counts: `(..., K, K)`; weights are read as frequencies.
        prior: as for `posterior_counts`.
        prevalence: `"inferred"`, uncertain as well; `"fixed"`, that of the counts; or `(K,)`, known from elsewhere: then
            precision and the like are those of a deployment with that prevalence.

    Returns:
        `Estimate` or a pytree of them; `value` is the posterior mean, `standard_error` the posterior's standard deviation.

    Raises:
        ValueError: as `posterior_counts`; num_samples < 2, a level outside of (0, 1), a metric that is nowhere finite.

    >>> import jaxmetrics as jm
    >>> estimate = posterior(jax.random.key(0), jm.accuracy, jnp.array([[95, 0], [0, 95]]))
    >>> bool(estimate.low < 0.99), bool(estimate.high < 1)
    (True, True)
    """
    size, level = _check_num_samples(num_samples), check_level(level)
    matrices = as_counts(counts)
    k = matrices.shape[-1]
    matrices = jnp.where((matrices >= 0).all((-2, -1), keepdims=True), matrices, jnp.nan)
    shares = _replicates.as_prevalence(prevalence, k)
    estimates = _posterior(key, matrices, as_prior(prior, k), shares, metric=metric, size=size, level=level)
    return _check_finite(estimates, size)


def bootstrap_counts(
    key: jax.Array,
    counts: ArrayLike,
    num_samples: int,
    *,
    method: Literal["multinomial", "poisson", "bayesian"] = "multinomial",
    stratified: bool = False,
) -> jax.Array:
    """Bootstrap replicates of confusion matrices.

    - `"multinomial"`: as many examples as there are, drawn with replacement.
    - `"poisson"`: each example counted Poisson(1) times, so that totals vary; batches of a stream can be resampled apart.
    - `"bayesian"`: each example weighted by a share of Dirichlet(1, ..., 1). Rubin (1981), Annals of Statistics 9. Sums of
      weights are allowed and read as frequencies.

    Args:
        counts: `(..., K, K)` numbers of examples, below 2^31 in all.
        num_samples: S.
        stratified: each class keeps its number of examples.

    Returns:
        `(S, ..., K, K)`, float, since under jit a matrix with negative or fractional counts gives NaN.

    Raises:
        ValueError: counts that are not square, negative or fractional, an unknown method, Poisson stratified.

    >>> replicates = bootstrap_counts(jax.random.key(0), jnp.array([[90, 10], [5, 95]]), 1000)
    >>> replicates.shape, set(replicates.sum((-2, -1)).tolist())
    ((1000, 2, 2), {200.0})
    """
    check_option(method, "method", ("multinomial", "poisson", "bayesian"))
    if method == "poisson" and stratified:
        raise ValueError("Poisson counts have no fixed totals: stratified=True needs another method.")
    size = check_size(num_samples, "num_samples")
    whole_counts = _as_frequencies(counts) if method == "bayesian" else _as_whole_counts(counts)
    columns = _replicates.used_columns(whole_counts)
    return _draw_counts(key, whole_counts, columns, method=method, stratified=stratified, size=size)


_DRAWS = {
    ("multinomial", False): _replicates.multinomial,
    ("multinomial", True): _replicates.stratified_multinomial,
    ("poisson", False): _replicates.poisson,
    ("bayesian", False): _replicates.bayesian,
    ("bayesian", True): _replicates.stratified_bayesian,
}


@promoting
@partial(jax.jit, static_argnames=("method", "stratified", "size"))
def _draw_counts(
    key: jax.Array, counts: jax.Array, columns: jax.Array | None, *, method: str, stratified: bool, size: int
) -> jax.Array:
    taken = _replicates.take_columns(counts, columns)
    draws = _replicates.evaluate(_DRAWS[method, stratified], lambda matrix: matrix, key, taken, size=size, columns=columns)
    return jnp.where(_is_possible(counts)[..., None, None], draws, jnp.nan)


@promoting
def delta_method(
    metric: Metric,
    counts: ArrayLike,
    *,
    level: float = 0.95,
    transform: Literal["logit", "atanh"] | None = None,
    stratified: bool = False,
) -> Any:
    """Normal interval of a metric from its derivatives: `θ ± z s`, without resampling.

    With g the gradient of the metric by the counts C, n examples: `s^2 = sum C g^2 - (sum C g)^2 / n`, the variance under
    multinomial counts to first order; stratified, the same in each row, whose total is then fixed.

    Args:
        metric: a function of one `(K, K)` matrix, differentiable.
        counts: `(..., K, K)`; weights are read as frequencies.
        transform: `"logit"` for metrics in [0, 1], `"atanh"` for metrics in [-1, 1]: the interval is laid on that scale and
            carried back, so that it stays within the range; at the ends of the range it has width 0.

    Returns:
        `Estimate` or a pytree of them. Under jit NaN for a matrix with a negative count.

    Raises:
        ValueError: counts that are not square or negative, a level outside of (0, 1), an unknown transform.

    >>> import jaxmetrics as jm
    >>> estimate = delta_method(jm.cohen_kappa, jnp.array([[0, 4, 1], [0, 8, 0], [0, 1, 5]]))
    >>> estimate.value.round(4), estimate.standard_error.round(4)
    (Array(0.4842, dtype=float32), Array(0.138, dtype=float32))
    """
    if transform is not None:
        check_option(transform, "transform", ("logit", "atanh"))
    z = normal_quantile(level)
    values, errors = _of_each(partial(_value_and_error, metric, stratified=stratified), _as_frequencies(counts))

    def estimate(value: jax.Array, error: jax.Array) -> Estimate:
        low, high = _normal_interval(value, z * error, transform)
        return Estimate(value, low, high, error, jnp.zeros(value.shape, jnp.int32))

    return jax.tree.map(estimate, values, errors)


def _value_and_error(metric: Metric, counts: jax.Array, *, stratified: bool) -> tuple[Any, Any]:
    """A metric of one matrix and its standard error, two pytrees alike."""
    slopes = jax.jacrev(metric)(counts)

    def error(slope: jax.Array) -> jax.Array:
        axes = (-1,) if stratified else (-2, -1)
        total = counts.sum(axes, keepdims=True)
        centred = slope - divide((counts * slope).sum(axes, keepdims=True), total)
        return safe_sqrt((counts * centred**2).sum((-2, -1)))

    return metric(counts), jax.tree.map(error, slopes)


def _normal_interval(value: jax.Array, reach: jax.Array, transform: str | None) -> tuple[jax.Array, jax.Array]:
    if transform is None:
        return value - reach, value + reach
    if transform == "logit":
        inside, slope = (value > 0) & (value < 1), value * (1 - value)
        centre = jax.scipy.special.logit(jnp.where(inside, value, 0.5))
    else:
        inside, slope = jnp.abs(value) < 1, 1 - value**2
        centre = jnp.arctanh(jnp.where(inside, value, 0.5))
    reach = reach / jnp.where(inside, slope, 1)
    ends = jnp.stack([centre - reach, centre + reach])
    low, high = jax.nn.sigmoid(ends) if transform == "logit" else jnp.tanh(ends)
    return jnp.where(inside, low, value), jnp.where(inside, high, value)


@promoting
def proportion_interval(
    successes: ArrayLike,
    trials: ArrayLike,
    *,
    level: float = 0.95,
    method: Literal["wilson", "jeffreys", "clopper_pearson", "agresti_coull"] = "wilson",
) -> Estimate:
    """Interval for the probability behind `successes` out of `trials`.

    With p = successes / trials, n = trials and z the normal quantile of `level`:

    - `"wilson"`: all probabilities that a score test does not reject,
      `(p + z^2/2n ± z sqrt(p (1 - p) / n + z^2/4n^2)) / (1 + z^2/n)`. Wilson (1927), JASA 22.
    - `"agresti_coull"`: Wilson's midpoint c ± `z sqrt(c (1 - c) / (n + z^2))`, cut to [0, 1]. It contains Wilson's interval.
      Agresti and Coull (1998), The American Statistician 52.
    - `"jeffreys"`: the equal-tailed interval of Beta(s + 1/2, n - s + 1/2), the posterior under Jeffreys' prior. Brown, Cai and
      DasGupta (2001), Statistical Science 16.
    - `"clopper_pearson"`: all probabilities that neither tail of the exact binomial test rejects, from the quantile of
      Beta(s, n - s + 1) to that of Beta(s + 1, n - s). It covers at least `level`, mostly more. Biometrika 26 (1934).

    Args:
        successes, trials: counts of any shapes that broadcast; sums of weights are read as frequencies. Successes that
            exceed the trials by rounding (8 ulp) count as equal.

    Returns:
        `Estimate`, fractions in [0, 1], `standard_error = sqrt(p (1 - p) / n)`. Without trials the value is NaN and the
        interval [0, 1]; `successes` outside `[0, trials]` give NaN.

    Raises:
        ValueError: `level` outside (0, 1) or an unknown method.

    >>> estimate = proportion_interval(18, 20)
    >>> estimate.low, estimate.high
    (Array(0.698966, dtype=float32), Array(0.972134, dtype=float32))
    """
    check_option(method, "method", ("wilson", "jeffreys", "clopper_pearson", "agresti_coull"))
    z = normal_quantile(level)
    s, n = jnp.broadcast_arrays(as_float(successes, "successes"), as_float(trials, "trials"))
    s = jnp.where((s > n) & (s <= n * (1 + 8 * jnp.finfo(n.dtype).eps)), n, s)  # sums of weights, rounded apart
    possible = (s >= 0) & (s <= n)
    s, n = jnp.where(possible, s, jnp.nan), jnp.where(possible, n, jnp.nan)
    p = divide(s, n, jnp.nan)
    if method == "wilson":
        low, high = _wilson_roots(s, n, z)
        high = jnp.where(2 * s <= n, high, 1 - _wilson_roots(n - s, n, z)[0])  # exactly 1 at s = n
        low, high = jnp.where(low > p, p, low), jnp.where(high < p, p, high)  # at a tiny level rounding may cross
    elif method == "jeffreys":
        low, high = _quantiles_of_beta(level, (s + 0.5, n - s + 0.5), (s + 0.5, n - s + 0.5))
    elif method == "clopper_pearson":
        low, high = _quantiles_of_beta(level, (s, n - s + 1), (s + 1, n - s))
    else:
        centre = (s + z**2 / 2) / (n + z**2)
        half_width = z * jnp.sqrt(centre * ((n - s + z**2 / 2) / (n + z**2)) / (n + z**2))
        low, high = jnp.maximum(centre - half_width, 0), jnp.minimum(centre + half_width, 1)
    if method in ("jeffreys", "clopper_pearson"):
        low, high = jnp.where(n == 0, 0, low), jnp.where(n == 0, 1, high)
    error = safe_sqrt(divide(p * divide(n - s, n, jnp.nan), n, jnp.nan))
    return Estimate(p, low, high, error, jnp.zeros(p.shape, jnp.int32))


def normal_quantile(level: float) -> float:
    """z such that a standard normal lies in [-z, z] with probability `level`."""
    return -NormalDist().inv_cdf((1 - check_level(level)) / 2)


def _wilson_roots(s: jax.Array, n: jax.Array, z: float) -> tuple[jax.Array, jax.Array]:
    """The roots of Wilson's quadratic; the smaller by their product, (s/n)^2 n / (n + z^2), so exactly 0 at s = 0."""
    numerator = 2 * s + z**2 + z * jnp.sqrt(z**2 + 4 * s * divide(n - s, n))
    return 2 * s * divide(s, n) / numerator, numerator / (2 * (n + z**2))


def _quantiles_of_beta(
    level: float, low: tuple[jax.Array, jax.Array], high: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """The lower tail's quantile of Beta(*low) and the upper tail's of Beta(*high); 0 and 1 where a parameter is 0."""

    def quantile(q: float, a: jax.Array, b: jax.Array) -> jax.Array:
        proper = (a > 0) & (b > 0)
        inner = _betas.ppf(jnp.full(a.shape, q, a.dtype), jnp.where(proper, a, 1), jnp.where(proper, b, 1))
        return jnp.where(proper, inner, jnp.where(a == 0, 0, jnp.where(b == 0, 1, jnp.nan)))

    return quantile((1 - level) / 2, *low), quantile((1 + level) / 2, *high)


@promoting
@partial(jax.jit, static_argnames=("metric", "size", "level", "method", "stratified"))
def _bootstrap(
    key: jax.Array,
    counts: jax.Array,
    columns: jax.Array | None,
    *,
    metric: Metric,
    size: int,
    level: float,
    method: str,
    stratified: bool,
) -> Any:
    taken = _replicates.take_columns(counts, columns)
    tails = _tails(level)
    draw = _DRAWS["multinomial", stratified]

    def replicated(function: Metric) -> Any:
        return _replicates.evaluate(draw, function, key, taken, size=size, columns=columns)

    if method == "studentized":
        with_error = partial(_value_and_error, metric, stratified=stratified)
        estimates = jax.tree.map(partial(_studentized, tails=tails), *_of_each(with_error, counts), *replicated(with_error))
    else:
        values, samples = _of_each(metric, counts), replicated(metric)
        if method == "bca":
            jackknifed = _influences(metric, counts, taken, columns, stratified)
            estimates = jax.tree.map(partial(_bca, tails=tails), values, samples, jackknifed)
        else:
            estimates = jax.tree.map(partial(_percentile, tails=tails, basic=method == "basic"), values, samples)
    return _nan_unless(_is_possible(counts) & (counts.sum((-2, -1)) > 0), estimates)


def _percentile(value: jax.Array, samples: jax.Array, *, tails: jax.Array, basic: bool) -> Estimate:
    low, high = _Ordered(samples).quantiles(_levels(tails, value))
    low, high = (2 * value - high, 2 * value - low) if basic else (low, high)
    return _estimate(value, low, high, samples)


def _studentized(
    value: jax.Array, error: jax.Array, samples: jax.Array, sample_errors: jax.Array, *, tails: jax.Array
) -> Estimate:
    known = sample_errors > 0
    t = jnp.where(known, (samples - value) / jnp.where(known, sample_errors, 1), jnp.nan)
    t = jnp.where(_is_same(samples, value), 0, t)
    t_low, t_high = _Ordered(t).quantiles(_levels(tails, value))
    return _estimate(value, value - error * t_high, value - error * t_low, jnp.where(jnp.isnan(t), jnp.nan, samples))


def _bca(value: jax.Array, samples: jax.Array, acceleration: jax.Array, *, tails: jax.Array) -> Estimate:
    ordered = _Ordered(samples)
    same = _is_same(samples, value)
    below = ((samples < value) & ~same & jnp.isfinite(samples)).sum(0) + same.sum(0) / 2
    count = jnp.maximum(ordered.count, 1)
    bias = ndtri(jnp.clip(below / count, 0.5 / count, 1 - 0.5 / count))
    z = bias + ndtri(_levels(tails, value))
    low, high = ordered.quantiles(ndtr(bias + z / (1 - acceleration * z)))
    return _estimate(value, low, high, samples)


def _tails(level: float) -> jax.Array:
    return jnp.array([(1 - level) / 2, (1 + level) / 2])


def _levels(tails: jax.Array, value: jax.Array) -> jax.Array:
    return jnp.broadcast_to(tails.reshape(2, *(1,) * value.ndim), (2, *value.shape))


def _is_same(samples: jax.Array, value: jax.Array) -> jax.Array:
    """Equal up to the rounding of two programs that compute the same."""
    return jnp.abs(samples - value) <= 8 * jnp.finfo(value.dtype).eps * jnp.abs(value)


class _Ordered:
    """Samples `(S, ...)` sorted, those that are not finite left out."""

    def __init__(self, samples: jax.Array) -> None:
        finite = jnp.isfinite(samples)
        self.count = finite.sum(0)
        self.values = jnp.sort(jnp.where(finite, samples, jnp.inf), axis=0)

    def quantiles(self, q: jax.Array) -> jax.Array:
        """At levels `(2, ...)`, linear between the samples; NaN if there are none."""
        place = jnp.clip(q, 0, 1) * jnp.maximum(self.count - 1, 0)
        before = jnp.floor(place).astype(jnp.int32)
        low, high = (
            jnp.take_along_axis(self.values, i, axis=0)
            for i in (before, jnp.minimum(before + 1, jnp.maximum(self.count - 1, 0)))
        )
        between = low + (high - low) * (place - before)
        return jnp.where((self.count > 0) & ~jnp.isnan(q), between, jnp.nan)


def _estimate(value: jax.Array, low: jax.Array, high: jax.Array, samples: jax.Array) -> Estimate:
    finite = jnp.isfinite(samples)
    count = finite.sum(0)
    mean = _mean_of_finite(samples)
    squares = jnp.where(finite, (samples - mean) ** 2, 0).sum(0)
    error = jnp.where(count > 1, jnp.sqrt(squares / jnp.maximum(count - 1, 1)), jnp.nan)
    return Estimate(value, low, high, error, (len(samples) - count).astype(jnp.int32))


def _mean_of_finite(samples: jax.Array) -> jax.Array:
    """NaN where there is none."""
    finite = jnp.isfinite(samples)
    return divide(jnp.where(finite, samples, 0).sum(0), finite.sum(0).astype(samples.dtype), jnp.nan)


def _influences(metric: Metric, counts: jax.Array, taken: jax.Array, columns: jax.Array | None, stratified: bool) -> Any:
    """The acceleration of BCa, `sum U^3 / (6 (sum U^2)^1.5)` over the examples, U their influence on the metric.

    U is the mean of the metric without one example (the jackknife) less the metric without this one. Where the examples are so
    many that one does not show in float32, or the cells so many that this would take longer than the replicates, U is the
    derivative, to which the jackknife tends.
    """
    k, width = taken.shape[-2:]

    def left_out(matrix: jax.Array) -> Any:
        ones = jnp.eye(k * width, dtype=matrix.dtype).reshape(-1, k, width)
        values = jax.vmap(lambda one: metric(_replicates.whole(jnp.maximum(matrix - one, 0), columns)))(ones)
        return jax.tree.map(lambda v: -jnp.moveaxis(v, 0, -1).reshape(*v.shape[1:], k, width), values)

    def derivative(matrix: jax.Array) -> Any:
        return jax.jacrev(lambda matrix: metric(_replicates.whole(matrix, columns)))(matrix)

    slopes = _of_each(derivative, taken)
    if k * width <= 4096:
        jackknifed = _of_each(left_out, taken, size=k**2 * k * width)
        few = taken.sum((-2, -1)) < 10_000
        slopes = jax.tree.map(lambda j, d: jnp.where(_expand(few, j.ndim - few.ndim), j, d), jackknifed, slopes)

    def acceleration(slope: jax.Array) -> jax.Array:
        c = taken.reshape(*taken.shape[:-2], *(1,) * (slope.ndim - taken.ndim), k, width)
        u = jnp.where(jnp.isfinite(slope) & (c > 0), slope, 0)
        axes = (-1,) if stratified else (-2, -1)
        u = jnp.where(c > 0, u - divide((c * u).sum(axes, keepdims=True), c.sum(axes, keepdims=True)), 0)
        u = divide(u, jnp.abs(u).max((-2, -1), keepdims=True))
        return divide((c * u**3).sum((-2, -1)), 6 * safe_sqrt((c * u**2).sum((-2, -1))) ** 3)

    return jax.tree.map(acceleration, slopes)


def _expand(x: jax.Array, axes: int) -> jax.Array:
    return x.reshape(*x.shape, *(1,) * axes)


def _of_each(function: Callable[[jax.Array], Any], matrices: jax.Array, size: int | None = None) -> Any:
    """`function` of each matrix `(K, W)` of a batch, which makes `size` numbers on its way."""
    *batch, k, width = matrices.shape
    values = _replicates.each(function, matrices.reshape(-1, k, width), size or k * k)
    return jax.tree.map(lambda v: v.reshape(*batch, *v.shape[1:]), values)


def _nan_unless(possible: jax.Array, estimates: Any) -> Any:
    """NaN, but for the numbers of undefined replicates, for matrices of a batch that have no interval."""

    def mask(x: jax.Array) -> jax.Array:
        return x if x.dtype == jnp.int32 else jnp.where(_expand(possible, x.ndim - possible.ndim), x, jnp.nan)

    return jax.tree.map(mask, estimates)


def _is_possible(counts: jax.Array) -> jax.Array:
    return (counts >= 0).all((-2, -1))


def _as_frequencies(counts: ArrayLike) -> jax.Array:
    """Counts or sums of weights, none negative: those that jit hides are NaN."""
    matrices = as_counts(counts)
    _refuse(matrices, matrices >= 0, "a count >= 0")
    return jnp.where((matrices >= 0).all((-2, -1), keepdims=True), matrices, jnp.nan)


def _as_whole_counts(counts: ArrayLike) -> jax.Array:
    """Numbers of examples: those that jit hides are NaN if they are none."""
    matrices = as_counts(counts)
    valid = (matrices >= 0) & (matrices == jnp.round(matrices))
    reason = "a number of examples, since sums of weights do not say how many there are"
    _refuse(matrices, valid, reason)
    few = matrices.sum((-2, -1), keepdims=True) < 2.0**31
    if not isinstance(matrices, jax.core.Tracer) and not bool((few | ~jnp.isfinite(matrices)).all()):
        raise ValueError("counts hold 2^31 examples or more in one matrix: use delta_method or posterior.")
    return jnp.where(valid.all((-2, -1), keepdims=True) & few, matrices, jnp.nan)


def _refuse(matrices: jax.Array, valid: jax.Array, expected: str) -> None:
    if not isinstance(valid, jax.core.Tracer) and not bool(valid.all()):
        index = tuple(np.argwhere(~np.asarray(valid))[0].tolist())
        raise ValueError(f"counts{list(index)} is {float(matrices[index]):g}, expected {expected}.")


def _check_num_samples(num_samples: int) -> int:
    if check_size(num_samples, "num_samples") < 2:
        raise ValueError("num_samples must be at least 2.")
    return num_samples


def _check_finite(estimates: Any, size: int) -> Any:
    undefined = [leaf.num_undefined for leaf in jax.tree.leaves(estimates, is_leaf=lambda x: isinstance(x, Estimate))]
    known = not any(isinstance(n, jax.core.Tracer) for n in undefined)
    if known and undefined and all(n.size and bool((n == size).all()) for n in undefined):
        raise ValueError(f"metric is NaN or infinite in all of {size} replicates: it has no interval.")
    return estimates


@promoting
@partial(jax.jit, static_argnames=("metric", "size", "level"))
def _posterior(
    key: jax.Array,
    counts: jax.Array,
    prior: jax.Array,
    prevalence: jax.Array | None,
    *,
    metric: Metric,
    size: int,
    level: float,
) -> Any:
    draw = partial(_replicates.posterior, prior=prior, prevalence=prevalence)
    samples = _replicates.evaluate(draw, metric, key, counts, size=size)

    means = jax.tree.map(_mean_of_finite, samples)
    estimates = jax.tree.map(partial(_percentile, tails=_tails(level), basic=False), means, samples)
    return _nan_unless(_is_possible(counts), estimates)
