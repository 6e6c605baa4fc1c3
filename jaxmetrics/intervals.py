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
random numbers; `jax.vmap` over keys makes them independent. A `key` is a JAX key, an int seed or, for counts of the host, a
NumPy Generator.

Counts of the host are drawn from by NumPy, and the metric is given NumPy tables, a batch of them `(N, K, K)` where it takes
batches; a metric that answers with JAX arrays moves the work to the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import jax
import numpy as np

from jaxmetrics import _betas, _replicates, _samplers
from jaxmetrics._arrays import (
    ArrayLike,
    as_array,
    as_counts,
    as_float,
    as_histogram,
    as_prior,
    check_level,
    check_option,
    check_real,
    check_size,
    divide,
    is_integer,
    safe_sqrt,
)
from jaxmetrics._backends import Array, compiled, float_dtype, is_jax, is_known, on_device, xp
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
    posterior_estimates,
    value_and_error,
    where_answered,
    wilson_interval,
)
from jaxmetrics._keys import HostKey, Key, KeyLike, place
from jaxmetrics._replicates import each, of_each

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
    key: KeyLike,
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
    >>> estimate = bootstrap(0, jm.accuracy, [[90, 10], [5, 95]])
    >>> estimate.value, estimate.low.round(2), estimate.high.round(2)
    (np.float64(0.925), np.float64(0.88), np.float64(0.96))

    Several metrics at once, yours among them, share the replicates:

    >>> both = bootstrap(0, lambda c: {"accuracy": jm.accuracy(c), "errors": c[0, 1] + c[1, 0]}, [[90, 10], [5, 95]])
    >>> both["errors"].value, both["accuracy"].low == estimate.low
    (np.float64(15.0), np.True_)
    """
    check_option(method, "method", ("bca", "percentile", "basic", "studentized"))
    size, level = check_num_samples(num_samples), check_level(level)
    options: dict[str, Any] = {"level": level, "method": method, "stratified": stratified}
    return _bootstrap_table(key, as_floats(metric), as_counts(counts), "counts", size, **options)


def bootstrap_histogram(
    key: KeyLike,
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
    >>> estimate = bootstrap_histogram(0, jm.roc_auc_bounds, [[50, 40, 10], [5, 20, 75]]).value
    >>> estimate.value.round(3), estimate.low.round(2), estimate.high.round(2)
    (np.float64(0.865), np.float64(0.81), np.float64(0.91))
    """
    check_option(method, "method", ("bca", "percentile", "basic", "studentized"))
    size, level = check_num_samples(num_samples), check_level(level)
    options: dict[str, Any] = {"level": level, "method": method, "stratified": stratified}
    return _bootstrap_table(key, as_floats(metric), as_histogram(histogram), "histogram", size, **options)


def _bootstrap_table(key: KeyLike, metric: Metric, tables: Array, name: str, size: int, **options: Any) -> Any:
    placed_key, tables = place(key, where_answered(metric, numbers_of_examples(tables, name)))
    function = partial(_bootstrap, placed_key, metric=metric, size=size, **options, examples=how_many(tables))
    return check_finite(_replicates.by_used_columns(function, tables), size)


@compiled
def _bootstrap(
    key: Key,
    counts: Array,
    columns: Array | None,
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

    def metric_of_taken(taken: Array) -> Any:
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
    key: KeyLike,
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
    >>> estimate = posterior(0, jm.accuracy, [[95, 0], [0, 95]])
    >>> estimate.low < 0.99, estimate.high < 1
    (np.True_, np.True_)
    """
    size, level = check_num_samples(num_samples), check_level(level)
    floats = as_floats(metric)
    matrices = where_answered(floats, as_counts(counts))
    k = matrices.shape[-1]
    given = as_prior(prior, k), _replicates.as_prevalence(prevalence, k)
    estimates = _posterior(*place(key, matrices, *given), metric=floats, size=size, level=level)
    return check_finite(estimates, size)


@compiled
def _posterior(
    key: Key,
    counts: Array,
    prior: Array,
    prevalence: Array | None,
    *,
    metric: Metric,
    size: int,
    level: float,
) -> Any:
    counts = xp.where((counts >= 0).all((-2, -1), keepdims=True), counts, xp.nan)
    sampler = _replicates.posterior(prior, prevalence)
    samples = _replicates.evaluate(sampler, metric, key, counts, size=size, numbers=counts.shape[-1] ** 2)
    return nan_unless(is_possible(counts), posterior_estimates(samples, level))


def bootstrap_counts(
    key: KeyLike,
    counts: ArrayLike,
    num_samples: int,
    *,
    method: Literal["multinomial", "poisson", "bayesian"] = "multinomial",
    stratified: bool = False,
) -> Array:
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

    >>> replicates = bootstrap_counts(0, [[90, 10], [5, 95]], 1000)
    >>> replicates.shape, set(replicates.sum((-2, -1)).tolist())
    ((1000, 2, 2), {200.0})
    """
    check_option(method, "method", ("multinomial", "poisson", "bayesian"))
    if method == "poisson" and stratified:
        raise ValueError("Poisson counts have no fixed totals: stratified=True needs another method.")
    size = check_size(num_samples, "num_samples")
    examples = frequencies(as_counts(counts)) if method == "bayesian" else numbers_of_examples(as_counts(counts))
    placed_key, examples = place(key, examples)
    function = partial(_draw_counts, placed_key, method=method, stratified=stratified, size=size)
    return _replicates.by_used_columns(function, examples, axis=1)


_SAMPLERS = {
    ("multinomial", False): _replicates.multinomial,
    ("multinomial", True): _replicates.stratified_multinomial,
    ("poisson", False): _replicates.poisson,
    ("bayesian", False): _replicates.bayesian,
    ("bayesian", True): _replicates.stratified_bayesian,
}


@compiled
def _draw_counts(key: Key, counts: Array, columns: Array | None, *, method: str, stratified: bool, size: int) -> Array:
    taken = _replicates.take_columns(counts, columns)
    k = counts.shape[-1]
    draws = _replicates.evaluate(
        _SAMPLERS[method, stratified], lambda taken: _replicates.whole(taken, columns, k), key, taken, size=size, numbers=k * k
    )
    return xp.where(is_possible(counts)[..., None, None], draws, xp.nan)


def bootstrap_examples(
    key: KeyLike,
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
        statistic: a function of the arrays that returns an array or a pytree of arrays. Arrays of the host it is given as
            NumPy's, many resamples `(N, n, ...)` at once where it takes them so, else one by one; those of JAX it must be
            able to trace.
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

    >>> error = np.linspace(0, 1, 101) ** 2
    >>> estimate = bootstrap_examples(0, np.median, error)
    >>> estimate.value, estimate.low < 0.25 < estimate.high
    (np.float64(0.25), np.True_)
    """
    check_option(method, "method", ("bca", "percentile", "basic"))
    check_option(resample, "resample", ("indices", "weights"))
    size, level = check_num_samples(num_samples), check_level(level)
    examples = tuple(as_array(array, f"arrays[{i}]") for i, array in enumerate(arrays))
    for i, array in enumerate(examples):
        check_real(array, f"arrays[{i}]")
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
    if not on_device(examples) and _answers_on_device(statistic, examples, resample):
        examples = tuple(map(jax.numpy.asarray, examples))
    placed_key, *placed = place(key, *examples)
    estimates = _bootstrap_examples(
        placed_key,
        tuple(placed),
        members,
        statistic=statistic,
        units=units,
        size=size,
        level=level,
        method=method,
        resample=resample,
    )
    return check_finite(estimates, size)


def _answers_on_device(statistic: Callable[..., Any], examples: tuple[np.ndarray, ...], resample: str) -> bool:
    weights = {"sample_weight": np.ones(len(examples[0]))} if resample == "weights" else {}
    try:
        return on_device(statistic(*examples, **weights))
    except AttributeError:  # such as .at, which arrays of JAX have alone
        return True


def _members(clusters: ArrayLike, n: int) -> np.ndarray:
    """The clusters of the examples, numbered from 0."""
    ids = as_array(clusters, "clusters")
    if not is_known(ids) or not is_integer(ids):
        raise TypeError(f"clusters must hold integers that jit does not hide, got {ids.dtype}.")
    if ids.shape != (n,):
        raise ValueError(f"clusters must have shape (n,) = ({n},), got {ids.shape}.")
    return np.unique(np.asarray(ids), return_inverse=True)[1].astype(np.int32)


@compiled
def _bootstrap_examples(
    key: Key,
    examples: tuple[Array, ...],
    members: Array | None,
    *,
    statistic: Callable[..., Any],
    units: int,
    size: int,
    level: float,
    method: str,
    resample: str,
) -> Any:
    num_groups = min(units, _GROUPS)
    group = units // num_groups
    numbers = units + sum(x.size for x in examples)

    def of_units(drawn: Array) -> Any:
        """The statistic of the units that were drawn, `(..., m)`."""
        if resample == "indices":
            return statistic(*(x[drawn] for x in examples))
        return of_weights(_how_often(drawn, units, float_dtype(*examples)))

    def of_weights(weights: Array) -> Any:
        return statistic(*examples, sample_weight=weights if members is None else weights[..., members])

    def without(first: Array) -> Any:
        """Without a group, which starts at `first` in the order."""
        rest = np.arange(units - group)
        return of_units(order[rest + xp.where(rest >= first[..., None], group, 0)])

    arange = np.arange if isinstance(key, HostKey) else jax.numpy.arange
    values = jax.tree.map(xp.asarray, of_units(arange(units)))
    if isinstance(key, HostKey):
        rng = key.generator()
        order: Array = np.arange(units) if units <= _GROUPS else rng.permutation(units)
        at_once = max(1, _replicates.LANES // units)
        sizes = [min(at_once, size - begin) for begin in range(0, size, at_once)]
        blocks = [each(of_units, rng.integers(units, size=(number, units)), numbers) for number in sizes]
        samples = jax.tree.map(lambda *x: np.concatenate(x), *blocks)
    else:
        order = arange(units)
        if units > _GROUPS:
            order = jax.random.permutation(jax.random.fold_in(key, size), units)
        keys = jax.random.split(key, size)
        samples = each(lambda key: of_units(_samplers.indices(_samplers.random_words(key, units), units)), keys, numbers)
    if method != "bca":
        return estimates_of(values, samples, level=level, method=method)

    def acceleration(left_out: Array) -> Array:
        influence = -xp.moveaxis(left_out, 0, -1)[..., None, :]
        share = group * num_groups / units  # that is left out by one of the groups
        return share**0.5 * acceleration_of(influence, xp.ones_like(influence))

    left_out = each(without, group * arange(num_groups), numbers)
    return estimates_of(values, samples, jax.tree.map(acceleration, left_out), level=level, method=method)


def _how_often(drawn: Array, units: int, dtype: np.dtype) -> Array:
    """From units `(..., m)` to how often each was drawn `(..., units)`."""
    if is_jax(drawn):
        return jax.numpy.zeros(units, dtype).at[drawn].add(1)
    rows = drawn.reshape((-1, drawn.shape[-1])) + units * np.arange(drawn.size // drawn.shape[-1])[:, None]
    return np.bincount(rows.ravel(), minlength=rows.shape[0] * units).reshape((*drawn.shape[:-1], units)).astype(dtype)


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
        metric: a function of one `(K, K)` matrix, differentiable; on the host computed by NumPy in whatever way.
        counts: `(..., K, K)`; weights are read as frequencies.
        transform: `"logit"` for metrics in [0, 1], `"atanh"` for metrics in [-1, 1]: the interval is laid on that scale and
            carried back, so that it stays within the range; at the ends of the range it has width 0.

    Returns:
        `Estimate` or a pytree of them. Under jit NaN for a matrix with a negative count.

    Raises:
        ValueError: counts that are not square or negative, a level outside of (0, 1), an unknown transform.

    >>> import jaxmetrics as jm
    >>> estimate = delta_method(jm.cohen_kappa, [[0, 4, 1], [0, 8, 0], [0, 1, 5]])
    >>> estimate.value.round(4), estimate.standard_error.round(4)
    (np.float64(0.4842), np.float64(0.138))
    """
    if transform is not None:
        check_option(transform, "transform", ("logit", "atanh"))
    z = normal_quantile(level)
    floats = as_floats(metric)
    matrices = where_answered(floats, frequencies(as_counts(counts)))
    return _delta_method(matrices, metric=floats, z=z, transform=transform, stratified=stratified)


@compiled
def _delta_method(matrices: Array, *, metric: Metric, z: float, transform: str | None, stratified: bool) -> Any:
    function = partial(value_and_error, metric, stratified=stratified)
    values, errors = of_each(function, matrices, matrices.shape[-1] ** 2)
    return jax.tree.map(partial(normal_estimate, z=z, transform=transform), values, errors)


@compiled
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
    (np.float64(0.698966), np.float64(0.972134))
    """
    check_option(method, "method", ("wilson", "jeffreys", "clopper_pearson", "agresti_coull"))
    z = normal_quantile(level)
    s, n = xp.broadcast_arrays(as_float(successes, "successes"), as_float(trials, "trials"))
    s = xp.where((s > n) & (s <= n * (1 + 8 * xp.finfo(n.dtype).eps)), n, s)  # sums of weights, rounded apart
    possible = (s >= 0) & (s <= n)
    s, n = xp.where(possible, s, xp.nan), xp.where(possible, n, xp.nan)
    p = divide(s, n, xp.nan)
    if method == "wilson":
        low, high = wilson_interval(s, n, z)
    elif method == "jeffreys":
        low, high = _quantiles_of_beta(level, (s + 0.5, n - s + 0.5), (s + 0.5, n - s + 0.5))
    elif method == "clopper_pearson":
        low, high = _quantiles_of_beta(level, (s, n - s + 1), (s + 1, n - s))
    else:
        centre = (s + z**2 / 2) / (n + z**2)
        half_width = z * xp.sqrt(centre * ((n - s + z**2 / 2) / (n + z**2)) / (n + z**2))
        low, high = xp.maximum(centre - half_width, 0), xp.minimum(centre + half_width, 1)
    if method in ("jeffreys", "clopper_pearson"):
        low, high = xp.where(n == 0, 0, low), xp.where(n == 0, 1, high)
    error = safe_sqrt(divide(p * divide(n - s, n, xp.nan), n, xp.nan))
    return Estimate(p, low, high, error, xp.zeros(np.shape(p), xp.int32))


def _quantiles_of_beta(level: float, low: tuple[Array, Array], high: tuple[Array, Array]) -> tuple[Array, Array]:
    """The lower tail's quantile of Beta(*low) and the upper tail's of Beta(*high); 0 and 1 where a parameter is 0.

    Each from its own tail, (1 - level) / 2, since 1 less that has few digits in float32.
    """

    def quantile(of_tail: Callable[[Array, Array, Array], Array], a: Array, b: Array) -> Array:
        proper = (a > 0) & (b > 0)
        inner = of_tail(xp.full(a.shape, (1 - level) / 2, a.dtype), xp.where(proper, a, 1), xp.where(proper, b, 1))
        return xp.where(proper, inner, xp.where(a == 0, 0, xp.where(b == 0, 1, xp.nan)))

    return quantile(_betas.ppf, *low), quantile(_betas.isf, *high)
