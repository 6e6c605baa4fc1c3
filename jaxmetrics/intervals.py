"""Intervals for any metric: an estimate with its lower and upper end.

A `metric` is any function of one matrix of counts `(K, K)`, yours included, that returns an array or a pytree of arrays; a dict
of metrics is evaluated in one pass over the same replicates. The result is an `Estimate`, or the pytree with an `Estimate` for
each array. Leading axes of counts are batch: `(..., K, K)` gives estimates of shape `(..., *shape of the array)`.

- `bootstrap` asks how the metric would vary over test sets like this one. To resample n examples is to draw the K^2 cells from
  a multinomial, so its cost does not depend on n.
- `posterior` asks which metrics are plausible, given the counts and a prior: also where no error was seen. With many classes of
  few examples the prior speaks louder than the counts.
- `delta_method` differentiates the metric; nothing is drawn.
- `proportion_interval` for fractions of independent examples.
- `bootstrap_examples` for statistics that no counts determine, such as the area under the ROC curve, and for clusters.

`level` is the probability with which an interval is meant to contain the true value, 0.95 unless said otherwise. What draws
random numbers takes a `key` first, and draws the same for a matrix alone as in a batch: the matrices of a batch share their
random numbers; `jax.vmap` over keys makes them independent. A lambda written in the call is compiled in each call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics import _betas, _replicates, _samplers
from jaxmetrics._arrays import (
    ArrayLike,
    as_counts,
    as_float,
    as_histogram,
    as_host_or_jax,
    as_prior,
    check_level,
    check_option,
    check_real,
    check_size,
    divide,
    float_dtype,
    is_integer,
    promoting,
    safe_sqrt,
)
from jaxmetrics._estimates import (
    Estimate,
    Metric,
    acceleration_of,
    as_floats,
    bootstrap_of,
    check_finite,
    check_num_samples,
    estimates_of,
    frequencies,
    how_many,
    is_possible,
    nan_unless,
    normal_estimate,
    normal_quantile,
    numbers_of_examples,
    of_each,
    posterior_estimates,
    value_and_error,
    wilson_interval,
)

__all__ = [
    "Estimate",
    "bootstrap",
    "bootstrap_counts",
    "bootstrap_examples",
    "bootstrap_histogram",
    "delta_method",
    "posterior",
    "proportion_interval",
]

_GROUPS = 1000  # of examples, at most, that the jackknife of `bootstrap_examples` leaves out


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
      different values as there are cells (10,000 examples and more, or more than 90 classes: from the derivatives); plain
      percentiles where all replicates lie on one side of the value. Efron (1987), JASA 82.
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
    size, level = check_num_samples(num_samples), check_level(level)
    options: dict[str, Any] = {"metric": as_floats(metric), "level": level, "method": method, "stratified": stratified}
    return _bootstrap_table(key, numbers_of_examples(as_counts(counts)), size, **options)


def bootstrap_histogram(
    key: jax.Array,
    metric: Metric,
    histogram: ArrayLike,
    *,
    num_samples: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile", "basic", "studentized"] = "bca",
    stratified: bool = False,
) -> Any:
    """Bootstrap interval of a metric of score histograms, such as `roc_auc_bounds`, at a cost that does not depend on n.

    To resample examples is to draw the cells of the histogram; else as `bootstrap`.

    Args:
        metric: a function of one histogram `(2, B)` that returns an array or a pytree of arrays.
        histogram: `(..., 2, B)` numbers of examples, by `score_histogram`.
        num_samples, level, method, stratified: as for `bootstrap`; stratified keeps the number of examples of each class.

    Returns:
        `Estimate` or a pytree of them, as `bootstrap`; of `roc_auc_bounds` an `AreaBounds` of Estimates.

    Raises:
        ValueError: another shape; as `bootstrap`.

    >>> import jaxmetrics as jm
    >>> estimate = bootstrap_histogram(jax.random.key(0), jm.roc_auc_bounds, jnp.array([[50, 40, 10], [5, 20, 75]])).value
    >>> estimate.value.round(3), estimate.low.round(2), estimate.high.round(2)
    (Array(0.865, dtype=float32), Array(0.81, dtype=float32), Array(0.91, dtype=float32))
    """
    check_option(method, "method", ("bca", "percentile", "basic", "studentized"))
    size, level = check_num_samples(num_samples), check_level(level)
    options: dict[str, Any] = {"metric": as_floats(metric), "level": level, "method": method, "stratified": stratified}
    return _bootstrap_table(key, numbers_of_examples(as_histogram(histogram), "histogram"), size, **options)


def _bootstrap_table(key: jax.Array, tables: jax.Array, size: int, **options: Any) -> Any:
    function = partial(_bootstrap, key, size=size, **options, examples=how_many(tables))
    return check_finite(_replicates.by_used_columns(function, tables), size)


@promoting
@partial(jax.jit, static_argnames=("metric", "size", "level", "method", "stratified", "examples"))
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
    examples: str,
) -> Any:
    taken, (k, width) = _replicates.take_columns(counts, columns), counts.shape[-2:]
    numbers = k * width

    def metric_of_taken(taken: jax.Array) -> Any:
        return metric(_replicates.whole(taken, columns, width))

    estimates, _ = bootstrap_of(
        key,
        metric_of_taken,
        taken,
        numbers=numbers,
        size=size,
        level=level,
        method=method,
        stratified=stratified,
        examples=examples,
    )
    return nan_unless(is_possible(counts) & (counts.sum((-2, -1)) > 0), estimates)


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
    (`prior=(1, K - 1)`). A class without examples takes part with its prior. Averages over many classes are sure of what the
    prior says of each: a recall of 0.97 in 10 classes of 10 examples has the interval 0.84 to 0.94. Take `delta_method` there.

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
    size, level = check_num_samples(num_samples), check_level(level)
    matrices = as_counts(counts)
    k = matrices.shape[-1]
    matrices = jnp.where((matrices >= 0).all((-2, -1), keepdims=True), matrices, jnp.nan)
    shares = _replicates.as_prevalence(prevalence, k)
    estimates = _posterior(key, matrices, as_prior(prior, k), shares, metric=as_floats(metric), size=size, level=level)
    return check_finite(estimates, size)


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
    samples = _replicates.evaluate(draw, metric, key, counts, size=size, numbers=counts.shape[-1] ** 2)
    return nan_unless(is_possible(counts), posterior_estimates(samples, level))


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
    examples = frequencies(as_counts(counts)) if method == "bayesian" else numbers_of_examples(as_counts(counts))
    function = partial(_draw_counts, key, method=method, stratified=stratified, size=size)
    return _replicates.by_used_columns(function, examples, axis=1)


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
    k = counts.shape[-1]
    draws = _replicates.evaluate(
        _DRAWS[method, stratified], lambda taken: _replicates.whole(taken, columns, k), key, taken, size=size, numbers=k * k
    )
    return jnp.where(is_possible(counts)[..., None, None], draws, jnp.nan)


def bootstrap_examples(
    key: jax.Array,
    statistic: Callable[..., Any],
    *arrays: ArrayLike,
    num_samples: int = 2000,
    level: float = 0.95,
    method: Literal["bca", "percentile", "basic"] = "bca",
    resample: Literal["indices", "weights"] = "indices",
    clusters: ArrayLike | None = None,
) -> Any:
    """Bootstrap interval of any statistic of examples, by resampling them; for metrics of counts `bootstrap` is far cheaper.

    The acceleration of BCa is that of the jackknife, which leaves out one example, or with more than 1000 of them one of 1000
    random groups.

    Args:
        statistic: a function of the arrays, of which JAX can trace the work, that returns an array or a pytree of arrays.
        arrays: `(n, ...)`, the examples on the first axis.
        method: as for `bootstrap`.
        resample: `"indices"` calls `statistic(*resampled_arrays)`; `"weights"` calls
            `statistic(*arrays, sample_weight=w)`, w `(n,)` how often each example was drawn: faster where the
            statistic sorts, since the order stays.
        clusters: `(n,)` ids of groups of examples that belong together (of one patient, say); whole groups are drawn, with
            `resample="weights"`.

    Returns:
        `Estimate` or a pytree of them, as `bootstrap`. Memory stays bounded: replicates are evaluated in chunks.

    Raises:
        TypeError: clusters that are no integers, or hidden by jit.
        ValueError: unequal lengths, no examples, clusters with indices, num_samples < 2, a level outside of (0, 1), an unknown
            method, a statistic that is nowhere finite.

    >>> error = jnp.linspace(0, 1, 101) ** 2
    >>> estimate = bootstrap_examples(jax.random.key(0), jnp.median, error)
    >>> estimate.value, bool(estimate.low < estimate.value < estimate.high)
    (Array(0.25, dtype=float32), True)
    """
    check_option(method, "method", ("bca", "percentile", "basic"))
    check_option(resample, "resample", ("indices", "weights"))
    size, level = check_num_samples(num_samples), check_level(level)
    for i, array in enumerate(arrays):
        check_real(as_host_or_jax(array), f"arrays[{i}]")
    examples = tuple(jnp.asarray(as_host_or_jax(array)) for array in arrays)
    lengths = {x.shape[:1] for x in examples}
    if len(lengths) != 1 or lengths <= {(), (0,)}:
        shapes = ", ".join(str(x.shape) for x in examples)
        raise ValueError(
            f"arrays must have the same number of examples, at least one, on their first axis, got {shapes or None}."
        )
    members = None if clusters is None else _members(clusters, *lengths.pop())
    if members is not None and resample == "indices":
        raise ValueError('clusters differ in size, so that their indices do too: take resample="weights".')
    units = len(examples[0]) if members is None else int(members.max()) + 1
    estimates = _bootstrap_examples(
        key, examples, members, statistic=statistic, units=units, size=size, level=level, method=method, resample=resample
    )
    return check_finite(estimates, size)


def _members(clusters: ArrayLike, n: int) -> np.ndarray:
    """The clusters of the examples, numbered from 0."""
    ids = as_host_or_jax(clusters)
    if isinstance(ids, jax.core.Tracer) or not is_integer(ids):
        raise TypeError(f"clusters must hold integers that jit does not hide, got {ids.dtype}.")
    if ids.shape != (n,):
        raise ValueError(f"clusters must have shape (n,) = ({n},), got {ids.shape}.")
    return np.unique(np.asarray(ids), return_inverse=True)[1].astype(np.int32)


@promoting
@partial(jax.jit, static_argnames=("statistic", "units", "size", "level", "method", "resample"))
def _bootstrap_examples(
    key: jax.Array,
    examples: tuple[jax.Array, ...],
    members: jax.Array | None,
    *,
    statistic: Callable[..., Any],
    units: int,
    size: int,
    level: float,
    method: str,
    resample: str,
) -> Any:
    order = jnp.arange(units) if units <= _GROUPS else jax.random.permutation(jax.random.fold_in(key, size), units)
    group = units // min(units, _GROUPS)
    keys, numbers = jax.random.split(key, size), units + sum(x.size for x in examples)

    def of_indices(indices: jax.Array) -> Any:
        return statistic(*(x[indices] for x in examples))

    def of_weights(weights: jax.Array) -> Any:
        return statistic(*examples, sample_weight=weights if members is None else weights[members])

    def of_replicate(key: jax.Array) -> Any:
        drawn = _samplers.indices(_samplers.random_words(key, units), units)
        return of_indices(drawn) if resample == "indices" else of_weights(jnp.zeros(units, float_dtype()).at[drawn].add(1))

    def without(first: jax.Array) -> Any:
        """Without a group, which starts at `first` in the order."""
        if resample == "weights":
            return of_weights(jnp.ones(units, float_dtype()).at[order[first + jnp.arange(group)]].set(0))
        rest = jnp.arange(units - group)
        return of_indices(order[rest + jnp.where(rest >= first, group, 0)])

    everything = of_indices(jnp.arange(units)) if resample == "indices" else of_weights(jnp.ones(units, float_dtype()))
    values = jax.tree.map(jnp.asarray, everything)
    samples = _replicates.each(of_replicate, keys, numbers)
    if method != "bca":
        return estimates_of(values, samples, level=level, method=method)

    def acceleration(left_out: jax.Array) -> jax.Array:
        influence = -jnp.moveaxis(left_out, 0, -1)[..., None, :]
        share = group * left_out.shape[0] / units  # that is left out by one of the groups
        return share**0.5 * acceleration_of(influence, jnp.ones_like(influence))

    left_out = _replicates.each(without, group * jnp.arange(min(units, _GROUPS)), numbers)
    return estimates_of(values, samples, jax.tree.map(acceleration, left_out), level=level, method=method)


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
    return _delta_method(
        frequencies(as_counts(counts)), metric=as_floats(metric), z=z, transform=transform, stratified=stratified
    )


@promoting
@partial(jax.jit, static_argnames=("metric", "z", "transform", "stratified"))
def _delta_method(matrices: jax.Array, *, metric: Metric, z: float, transform: str | None, stratified: bool) -> Any:
    function = partial(value_and_error, metric, stratified=stratified)
    values, errors = of_each(function, matrices, matrices.shape[-1] ** 2)
    return jax.tree.map(partial(normal_estimate, z=z, transform=transform), values, errors)


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
        low, high = wilson_interval(s, n, z)
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


def _quantiles_of_beta(
    level: float, low: tuple[jax.Array, jax.Array], high: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    """The lower tail's quantile of Beta(*low) and the upper tail's of Beta(*high); 0 and 1 where a parameter is 0."""

    def quantile(q: float, a: jax.Array, b: jax.Array) -> jax.Array:
        proper = (a > 0) & (b > 0)
        inner = _betas.ppf(jnp.full(a.shape, q, a.dtype), jnp.where(proper, a, 1), jnp.where(proper, b, 1))
        return jnp.where(proper, inner, jnp.where(a == 0, 0, jnp.where(b == 0, 1, jnp.nan)))

    return quantile((1 - level) / 2, *low), quantile((1 + level) / 2, *high)
