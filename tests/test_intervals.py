"""Intervals against published figures, scipy, large simulations, and their own coverage."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm
from jaxmetrics import _estimates, _replicates

KEY = jax.random.key(0)
COUNTS = np.array([[40, 5, 2], [6, 30, 4], [1, 3, 9]])
macro_f1 = jm.macro(jm.f1)


@pytest.mark.parametrize(
    ("successes", "trials", "method", "low", "high"),
    [  # R's binom, as in statsmodels' tests
        (18, 20, "wilson", 0.698966, 0.972134),
        (18, 20, "agresti_coull", 0.686756, 0.984344),
        (4, 20, "wilson", 0.080658, 0.416017),
        (0, 30, "wilson", 0.0, 0.113513),
        (30, 30, "wilson", 0.886487, 1.0),
        (18, 20, "clopper_pearson", 0.683017, 0.987651),
        (0, 30, "clopper_pearson", 0.0, 0.115703),
        (30, 30, "clopper_pearson", 0.884297, 1.0),
    ],
)
def test_published_intervals(successes: int, trials: int, method: str, low: float, high: float, x64: bool) -> None:
    estimate = jm.proportion_interval(successes, trials, method=method)  # type: ignore[arg-type]
    np.testing.assert_allclose([estimate.low, estimate.high], [low, high], atol=6e-7)
    np.testing.assert_allclose(estimate.value, successes / trials, rtol=1e-6)


def test_wilson_solves_the_score_equation(x64: bool) -> None:
    """At its ends p, |s - n p| = z sqrt(n p (1 - p)); also near 0 and 1 and for a billion trials."""
    s, n = np.array([1, 5, 999, 3, 10**9 - 2]), np.array([1000, 9, 1000, 10**9, 10**9])
    z = 1.959963984540054
    estimate = jm.proportion_interval(s, n)
    for end in (estimate.low, estimate.high):
        p = np.asarray(end, float)
        if not x64:  # float32 has no 1 - 2e-9
            p, s, n = p[:4], s[:4], n[:4]
        gap = np.abs(s - n * p) / np.sqrt(n * p * (1 - p)) / z
        np.testing.assert_allclose(gap, 1, rtol=1e-7 if x64 else 1e-4)  # 1 - p itself has seven digits at 1 - 2e-9


def test_proportions_at_the_edges() -> None:
    none, all_ = jm.proportion_interval(0, 30), jm.proportion_interval(30, 30)
    assert none.low == 0
    assert all_.high == 1
    assert none.standard_error == all_.standard_error == 0
    np.testing.assert_allclose(1 - all_.low, none.high, rtol=1e-6)
    nothing = jm.proportion_interval(0, 0)
    assert np.isnan(nothing.value)
    assert nothing.low == 0
    assert nothing.high == 1
    for successes, trials in ((3, 2), (-1, 2), (np.nan, 2), (1, np.nan)):
        assert np.isnan(jm.proportion_interval(successes, trials)[:4]).all()


def test_standard_error_near_one() -> None:
    near_one, near_zero = jm.proportion_interval(11_184_809, 11_184_810), jm.proportion_interval(1, 11_184_810)
    np.testing.assert_allclose(near_one.standard_error, near_zero.standard_error, rtol=1e-6)


@pytest.mark.parametrize("level", [1e-12, 1e-6, 0.5, 1 - 1e-12])
def test_intervals_contain_their_value(level: float) -> None:
    method: Literal["wilson", "agresti_coull", "jeffreys", "clopper_pearson"]
    n = np.array([1, 2, 3, 7, 1000, 10**6, 10**12])[:, None]
    s = np.floor(n * np.array([0, 0.1, 0.5, 0.9, 1]))
    for method in ("wilson", "agresti_coull", "jeffreys", "clopper_pearson"):
        estimate = jm.proportion_interval(s, n, level=level, method=method)
        if method == "wilson" or (method == "clopper_pearson" and level >= 0.5):
            assert ((estimate.low <= estimate.value) & (estimate.value <= estimate.high)).all()
        assert ((estimate.low >= 0) & (estimate.low <= estimate.high) & (estimate.high <= 1)).all()


def test_proportions_broadcast_and_narrow() -> None:
    estimate = jax.jit(jm.proportion_interval)(np.array([[1], [5]]), np.array([10, 100, 1000]))
    assert estimate.low.shape == (2, 3)
    assert (np.diff(estimate.high - estimate.low, axis=-1) < 0).all()
    wide, narrow = (jm.proportion_interval(5, 20, level=level) for level in (0.99, 0.5))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_wilson_covers() -> None:
    """95 % intervals contain the truth in 95 % of samples, averaged over p: within 5 standard errors of 40,000 draws."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 40_000)
    estimate = jm.proportion_interval(rng.binomial(50, p), 50)
    covered = ((estimate.low <= p) & (p <= estimate.high)).mean()
    assert abs(covered - 0.95) < 5 * np.sqrt(0.95 * 0.05 / 40_000) + 0.003  # 0.003: n = 50 is not infinite


def test_unknown_options() -> None:
    with pytest.raises(ValueError, match="level must be a Python number between 0 and 1"):
        jm.proportion_interval(1, 2, level=95)
    with pytest.raises(ValueError, match=r"method must be 'wilson', .* or 'agresti_coull', got 'wald'"):
        jm.proportion_interval(1, 2, method="wald")  # type: ignore[arg-type]


@pytest.mark.slow
def test_exact_proportions_equal_the_beta_quantiles(x64: bool) -> None:
    n = np.array([1, 7, 300, 10**6])[:, None]
    s = np.floor(n * np.array([0, 0.3, 0.95, 1]))
    for method, a, b, c, d in (
        ("jeffreys", s + 0.5, n - s + 0.5, s + 0.5, n - s + 0.5),
        ("clopper_pearson", s, n - s + 1, s + 1, n - s),
    ):
        estimate = jm.proportion_interval(s, n, method=method)  # type: ignore[arg-type]
        low = np.where(a > 0, stats.beta.ppf(0.025, np.maximum(a, 0.5), b), 0)
        high = np.where(d > 0, stats.beta.ppf(0.975, c, np.maximum(d, 0.5)), 1)
        np.testing.assert_allclose([estimate.low, estimate.high], [low, high], atol=1e-10 if x64 else 1e-6)


def as_predictions(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    return cells // len(counts), cells % len(counts)


GAINS = np.array([[1.0, 0.13, -0.41], [0.29, 0.83, 0.07], [-0.53, 0.37, 1.21]])


def gain(counts: jax.Array) -> jax.Array:
    return ((counts * GAINS).sum() / counts.sum()) ** 3  # skewed, so that the methods differ


def gain_of_predictions(y_true: np.ndarray, y_pred: np.ndarray, axis: int = -1) -> np.ndarray:
    return GAINS[y_true, y_pred].mean(axis) ** 3


@pytest.mark.parametrize(("method", "scipys"), [("percentile", "percentile"), ("basic", "basic"), ("bca", "BCa")])
def test_bootstrap_equals_scipys(method: Any, scipys: str) -> None:
    """Within five Monte Carlo errors of quantiles of 20,000 and 100,000 replicates; none tie, where SciPys differ."""
    ours = jm.bootstrap(KEY, gain, COUNTS, method=method, num_samples=100_000)
    theirs = stats.bootstrap(
        as_predictions(COUNTS),
        gain_of_predictions,
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        batch=2000,
        method=scipys,
        rng=np.random.default_rng(0),
    )
    tolerance = 5 * np.sqrt(0.025 * 0.975 * (1 / 20_000 + 1 / 100_000)) / 0.058 * float(ours.standard_error)
    np.testing.assert_allclose([ours.low, ours.high], theirs.confidence_interval, atol=tolerance)
    np.testing.assert_allclose(ours.standard_error, theirs.standard_error, rtol=0.03)


@pytest.mark.usefixtures("float64")
def test_acceleration_is_that_of_the_jackknife() -> None:
    """BCa from its definition, with one evaluation per example and NumPy's quantiles of the same replicates."""
    value = float(macro_f1(COUNTS))
    replicates = np.asarray(jax.vmap(macro_f1)(jm.bootstrap_counts(KEY, COUNTS, 4000)))
    y_true, y_pred = as_predictions(COUNTS)
    left_out = np.array(
        [float(macro_f1(jm.confusion_matrix(np.delete(y_true, i), np.delete(y_pred, i), num_classes=3))) for i in range(100)]
    )
    u = left_out.mean() - left_out
    acceleration = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    bias = stats.norm.ppf(((replicates < value - 1e-12).mean() + (replicates <= value + 1e-12).mean()) / 2)
    z = bias + stats.norm.ppf([0.025, 0.975])
    expected = np.quantile(replicates, stats.norm.cdf(bias + z / (1 - acceleration * z)))
    estimate = jm.bootstrap(KEY, macro_f1, COUNTS, num_samples=4000)
    np.testing.assert_allclose([estimate.low, estimate.high], expected, rtol=1e-9)
    np.testing.assert_allclose(estimate.standard_error, replicates.std(ddof=1), rtol=1e-9)


def test_rounding_is_no_influence() -> None:
    """As of the median of tied scores: all values without one example are 0.3, but for their last bits."""
    left_out = -(0.3 + 3e-8 * jnp.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]]]))
    acceleration = _estimates.acceleration_of(left_out, jnp.full((2, 2, 2), 20.0))
    np.testing.assert_array_equal(acceleration, 0)


@pytest.mark.usefixtures("float64")
def test_studentized_from_its_definition() -> None:
    value, _, _, error, _ = jm.delta_method(macro_f1, COUNTS)
    replicates = jm.delta_method(macro_f1, jm.bootstrap_counts(KEY, COUNTS, 2000))
    t = (replicates.value - value) / replicates.standard_error
    estimate = jm.bootstrap(KEY, macro_f1, COUNTS, method="studentized")
    np.testing.assert_allclose([estimate.low, estimate.high], value - error * np.quantile(t, [0.975, 0.025]), rtol=1e-9)


def test_delta_method_equals_published_errors(x64: bool) -> None:
    """SAS as in statsmodels' tests, .4842 (.1380) and .4701 (.1457)."""
    counts = [[0, 4, 1], [0, 8, 0], [0, 1, 5]]
    kappa = jm.delta_method(jm.cohen_kappa, counts)
    np.testing.assert_allclose(kappa[:4], [0.48416, 0.21366, 0.75466, 0.13801], atol=1e-5)
    linear = jm.delta_method(lambda c: jm.cohen_kappa(c, weights="linear"), counts)
    np.testing.assert_allclose(linear[:4], [0.47012, 0.18446, 0.75578, 0.14575], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("stratified", [False, True])
def test_delta_method_agrees_with_a_large_bootstrap(stratified: bool) -> None:
    metrics: dict[str, Callable[[jax.Array], jax.Array]] = {
        "macro_f1": macro_f1,
        "matthews": jm.matthews_corrcoef,
        "balanced_accuracy": jm.balanced_accuracy,
        "kappa": jm.cohen_kappa,
        "weighted_f1": jm.weighted(jm.f1),
    }

    def all_of_them(counts: jax.Array) -> dict[str, jax.Array]:
        return {name: metric(counts) for name, metric in metrics.items()}

    by_delta = jm.delta_method(all_of_them, 20 * COUNTS, stratified=stratified)
    by_bootstrap = jm.bootstrap(KEY, all_of_them, 20 * COUNTS, num_samples=200_000, method="percentile", stratified=stratified)
    for name in metrics:
        width, expected = (e[name].high - e[name].low for e in (by_delta, by_bootstrap))
        np.testing.assert_allclose(width, expected, rtol=0.02, err_msg=name)


@pytest.mark.parametrize("metric", [jm.accuracy, jm.macro(jm.f1), jm.matthews_corrcoef, jm.balanced_accuracy])
def test_ends_of_the_delta_method_have_derivatives_at_empty_cells(metric: Any, float64: None) -> None:
    """How much narrower is the interval with one example more, and with one in a cell that had none?"""
    counts = jnp.array([[30.0, 0.0, 2.0], [1.0, 20.0, 0.0], [0.0, 4.0, 9.0]])
    empty = jnp.zeros((3, 3)).at[0, 1].set(1.0)
    for direction in (counts / counts.sum(), empty):

        def end(amount: Any, direction: jax.Array = direction) -> Any:
            return jm.delta_method(metric, counts + amount * direction, transform="logit").low

        step = 1e-5
        difference = (-3 * end(0.0) + 4 * end(step) - end(2 * step)) / (2 * step)  # one-sided: no count below 0
        np.testing.assert_allclose(jax.grad(end)(0.0), difference, rtol=1e-4)


def test_what_a_metric_must_be() -> None:
    with pytest.raises(TypeError, match="metric must be a function of counts, got dict; for several at once"):
        jm.bootstrap(jax.random.key(0), {"accuracy": jm.accuracy}, jnp.eye(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"counts\[0, 1\] is -1, expected a count >= 0"):
        jax.grad(lambda c: jm.delta_method(jm.accuracy, c).low)(jnp.array([[2.0, -1.0], [1.0, 3.0]]))


def test_transforms_of_the_delta_method() -> None:
    near_one = np.array([[98, 1], [0, 101]])
    assert jm.delta_method(jm.matthews_corrcoef, near_one).high > 1
    for transform in ("logit", "atanh"):
        estimate = jm.delta_method(jm.matthews_corrcoef, near_one, transform=transform)
        assert 0.9 < estimate.low < estimate.value < estimate.high < 1
        at_end = jm.delta_method(jm.accuracy, np.diag([5, 6]), transform=transform)
        np.testing.assert_array_equal(at_end[:4], [1, 1, 1, 0])


@pytest.mark.slow
def test_a_batch_draws_what_each_matrix_draws_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in chunks of replicates, in blocks of matrices, and without the empty columns of many classes."""
    batch = np.stack([COUNTS, 30 * COUNTS, COUNTS.T])
    functions = {
        "bootstrap": lambda c: jm.bootstrap(KEY, jm.f1, c, num_samples=50),
        "posterior": lambda c: jm.posterior(KEY, jm.f1, c, num_samples=50),
        "fixed": lambda c: jm.posterior(KEY, jm.f1, c, num_samples=50, prevalence="fixed"),
    }
    alone = {name: [function(c) for c in batch] for name, function in functions.items()}
    for lanes in (_replicates._LANES, 40):
        monkeypatch.setattr(_replicates, "_LANES", lanes)
        jax.clear_caches()
        for name, function in functions.items():
            together = function(batch)
            for i, each in enumerate(alone[name]):
                jax.tree.map(lambda a, b, i=i: np.testing.assert_allclose(a[i], b, rtol=2e-6), together, each)
    monkeypatch.undo()
    jax.clear_caches()


def test_many_classes_are_drawn_without_their_empty_cells() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 1000, 50_000)
    y_pred = np.where(rng.random(50_000) < 0.7, y_true, rng.integers(0, 1000, 50_000))
    counts = jm.confusion_matrix(y_true, y_pred, num_classes=1000)
    assert np.asarray(_replicates.used_columns(counts)).shape[-1] < 60
    estimate = jm.bootstrap(KEY, jm.accuracy, counts, num_samples=200)
    expected = np.sqrt(estimate.value * (1 - estimate.value) / 50_000)
    np.testing.assert_allclose(estimate.standard_error, expected, rtol=0.2)  # 4 errors of 200 replicates


def test_replicates_of_counts() -> None:
    multinomial = np.asarray(jm.bootstrap_counts(KEY, COUNTS, 20_000))
    assert (multinomial.sum((-2, -1)) == 100).all()
    np.testing.assert_allclose(multinomial.mean(0), COUNTS, atol=5 * np.sqrt(40 / 20_000))
    stratified = np.asarray(jm.bootstrap_counts(KEY, COUNTS, 500, stratified=True))
    assert (stratified.sum(-1) == COUNTS.sum(-1)).all()
    poisson = jm.bootstrap_counts(KEY, COUNTS, 20_000, method="poisson")
    np.testing.assert_allclose(poisson.var(0), COUNTS, rtol=0.06)
    for weights in (COUNTS, 0.25 * COUNTS):
        bayesian = jm.bootstrap_counts(KEY, weights, 20_000, method="bayesian")
        np.testing.assert_allclose(bayesian.sum((-2, -1)), weights.sum(), rtol=1e-5)
        np.testing.assert_allclose(bayesian.mean(0), weights, atol=0.25)
    rows = jm.bootstrap_counts(KEY, COUNTS, 500, method="bayesian", stratified=True).sum(-1)
    np.testing.assert_allclose(rows, np.broadcast_to(COUNTS.sum(-1), (500, 3)), rtol=1e-5)


def test_posterior_of_accuracy_is_beta_and_prevalence_is_heard() -> None:
    fixed = jm.posterior(KEY, jm.recall, COUNTS, num_samples=20_000, prevalence="fixed")
    exact = jm.recall_posterior(COUNTS)
    np.testing.assert_allclose(fixed.value, exact.mean, atol=3e-3)
    np.testing.assert_allclose([fixed.low, fixed.high], exact.interval(), atol=0.01)
    rare = np.array([0.98, 0.01, 0.01])
    deployed = jm.posterior(KEY, jm.precision, COUNTS, prevalence=rare)
    expected = jm.precision(rare[:, None] * jm.normalize(COUNTS))
    np.testing.assert_allclose(deployed.value, expected, atol=0.05)
    draws = jm.posterior_counts(KEY, COUNTS, 50, prevalence=rare)
    np.testing.assert_allclose(draws.sum(-1), np.broadcast_to(rare, (50, 3)), rtol=1e-5)


@pytest.mark.slow
def test_a_classifier_without_a_mistake() -> None:
    perfect = np.diag([5, 6, 7])
    for method in ("bca", "percentile", "basic", "studentized"):
        estimate = jm.bootstrap(KEY, macro_f1, perfect, method=method)
        np.testing.assert_allclose(estimate[:4], [1, 1, 1, 0], atol=1e-6)
    estimate = jm.posterior(KEY, macro_f1, perfect)
    assert 0.6 < estimate.low < estimate.value < estimate.high < 1


def test_undefined_replicates_are_counted() -> None:
    """The precision of a class that is predicted once is undefined in 1/e of the replicates."""
    counts = np.array([[99, 0], [0, 1]])

    def precision(c: jax.Array) -> jax.Array:
        return jm.precision(c, zero_division=jnp.nan)

    estimate = jm.bootstrap(KEY, precision, counts, num_samples=10_000)
    assert estimate.num_undefined[0] == 0
    assert abs(int(estimate.num_undefined[1]) - 10_000 * 0.99**100) < 5 * np.sqrt(10_000 * 0.37 * 0.63)
    assert np.isfinite(estimate.low).all()
    with pytest.raises(ValueError, match="metric is NaN or infinite in all of 50 replicates"):
        jm.bootstrap(KEY, lambda c: jnp.nan * c.sum(), counts, num_samples=50)


@pytest.mark.slow
def test_intervals_under_transformations() -> None:
    batch = jnp.stack([jnp.asarray(COUNTS), jnp.asarray(COUNTS.T)])
    direct = jm.bootstrap(KEY, macro_f1, batch, num_samples=100)
    for result in (
        jax.jit(lambda c: jm.bootstrap(KEY, macro_f1, c, num_samples=100))(batch),
        jax.vmap(lambda c: jm.bootstrap(KEY, macro_f1, c, num_samples=100))(batch),
    ):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-6), result, direct)
    hidden = jax.jit(lambda c: jm.bootstrap(KEY, macro_f1, c, num_samples=20))
    for bad in ([[-1.0, 2], [3, 4]], [[0.5, 2], [3, 4]], [[np.nan, 2], [3, 4]], [[0.0, 0], [0, 0]]):
        assert np.isnan(hidden(jnp.array(bad))[1:4]).all()
    lows = jax.vmap(lambda key: jm.posterior(key, macro_f1, COUNTS, num_samples=100).low)(jax.random.split(KEY, 3))
    assert len(set(lows.tolist())) == 3
    slope = jax.grad(lambda c: jm.delta_method(macro_f1, c).high)(jnp.asarray(COUNTS, jnp.float32))
    assert np.isfinite(slope).all()


def weighted_mean(x: jax.Array, sample_weight: jax.Array) -> jax.Array:
    return (x * sample_weight).sum() / sample_weight.sum()


@pytest.mark.parametrize("method", ["bca", "percentile", "basic"])
def test_bootstrap_of_examples_equals_scipys(method: Any) -> None:
    """Of the mean of skewed examples, by indices and by weights.

    20,000 replicates place a quantile within 0.02 to 0.03 standard errors, scipy's and ours.
    """
    x = np.random.default_rng(0).exponential(size=60).astype(np.float32)
    name = {"bca": "BCa"}.get(method, method)
    expected = stats.bootstrap((x,), np.mean, n_resamples=20_000, method=name, rng=np.random.default_rng(1)).confidence_interval
    for result in (
        jm.bootstrap_examples(KEY, jnp.mean, x, num_samples=20_000, method=method),
        jm.bootstrap_examples(KEY, weighted_mean, x, num_samples=20_000, method=method, resample="weights"),
    ):
        np.testing.assert_allclose(result.value, x.mean(), rtol=1e-5)
        np.testing.assert_allclose([result.low, result.high], expected, atol=0.12 * result.standard_error)


def test_bootstrap_of_examples_leaves_out_groups_of_many() -> None:
    x = np.random.default_rng(0).exponential(size=3500)
    result = jm.bootstrap_examples(KEY, jnp.mean, x, num_samples=4000)
    by_groups = np.delete(np.array(result), 4)
    alone = np.delete(np.array(jm.bootstrap_examples(KEY, weighted_mean, x, num_samples=4000, resample="weights")), 4)
    error = x.std() / np.sqrt(3500)
    np.testing.assert_allclose(by_groups[3], error, rtol=0.05)
    np.testing.assert_allclose(by_groups, alone, atol=0.1 * error)
    expected = stats.bootstrap((x,), np.mean, n_resamples=4000, rng=np.random.default_rng(1)).confidence_interval
    np.testing.assert_allclose(by_groups[1:3], expected, atol=0.15 * error)


def test_clusters_are_drawn_whole() -> None:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(80) * 7 - 100, rng.integers(1, 9, 80))
    x = rng.normal(size=80)[np.unique(ids, return_inverse=True)[1]]  # alike within a cluster
    result = jm.bootstrap_examples(KEY, weighted_mean, x, resample="weights", clusters=ids, num_samples=4000)
    totals, sizes = (np.array([(v * (ids == i)).sum() for i in np.unique(ids)]) for v in (x, np.ones_like(x)))
    error = np.sqrt(((totals - x.mean() * sizes) ** 2).sum()) / len(x)  # of a ratio of totals
    np.testing.assert_allclose(result.standard_error, error, rtol=0.08)
    assert error > 1.5 * x.std() / np.sqrt(len(x))


def test_examples_of_any_shape_statistics_of_any_kind_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 30, 2))

    def statistic(x: jax.Array, y: jax.Array) -> dict[str, jax.Array]:
        return {"product": jnp.vecdot(x, y).mean(), "mean": x.mean(0), "undefined": jnp.log(x.sum())}

    result = jm.bootstrap_examples(KEY, statistic, x, y, num_samples=50)
    assert result["mean"].low.shape == (2,)
    assert 0 < result["undefined"].num_undefined < 50
    monkeypatch.setattr(_replicates, "_LANES", 1000)
    jax.clear_caches()
    chunked = jm.bootstrap_examples(KEY, statistic, x, y, num_samples=50)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), chunked, result)
    monkeypatch.undo()
    jax.clear_caches()


@pytest.mark.slow
def test_coverage_of_balanced_accuracy() -> None:
    """Of nominal 95 % at n = 30, prevalences .70, .20, .10: five errors of 1500 test sets are 0.03."""
    truth = np.diag([0.7, 0.2, 0.1]) @ np.array([[0.85, 0.1, 0.05], [0.1, 0.8, 0.1], [0.15, 0.15, 0.7]])
    counts = np.random.default_rng(0).multinomial(30, truth.ravel(), size=1500).reshape(-1, 3, 3)
    counts = counts[(counts.sum(-1) > 0).all(-1)]
    value = float(jm.balanced_accuracy(truth))

    def coverage(low: jax.Array, high: jax.Array) -> float:
        return float(((low <= value) & (value <= high)).mean())

    found = {
        "posterior balanced accuracy": coverage(*jm.balanced_accuracy_posterior(counts).interval()),
        "posterior": coverage(*jm.posterior(KEY, jm.balanced_accuracy, counts)[1:3]),
        "flat on all cells": coverage(*jm.posterior(KEY, jm.balanced_accuracy, counts, num_samples=500, prior=(1, 2))[1:3]),
        "bca": coverage(*jm.bootstrap(KEY, jm.balanced_accuracy, counts, num_samples=500)[1:3]),
        "percentile": coverage(*jm.bootstrap(KEY, jm.balanced_accuracy, counts, num_samples=500, method="percentile")[1:3]),
        "delta": coverage(*jm.delta_method(jm.balanced_accuracy, counts)[1:3]),
    }
    print(found)
    assert 0.92 < found["posterior balanced accuracy"] < 0.98
    assert abs(found["posterior"] - found["posterior balanced accuracy"]) < 0.015
    assert 0.8 < found["bca"] < 0.92
    assert 0.8 < found["percentile"] < 0.92
    assert 0.65 < found["delta"] < found["percentile"]
    assert found["flat on all cells"] < 0.7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jm.bootstrap(KEY, macro_f1, -COUNTS), r"counts\[0, 0\] is -40, expected a number of examples"),
        (lambda: jm.bootstrap(KEY, macro_f1, COUNTS / 2), r"counts\[0, 1\] is 2.5, expected a number of examples"),
        (lambda: jm.bootstrap(KEY, macro_f1, np.full((2, 2), 2.0**30)), "2.31 examples or more"),
        (lambda: jm.bootstrap(KEY, macro_f1, COUNTS, num_samples=1), "num_samples must be at least 2"),
        (lambda: jm.bootstrap(KEY, macro_f1, COUNTS, level=95), "level must be a Python number"),
        (lambda: jm.bootstrap(KEY, macro_f1, COUNTS, method="wald"), "method must be 'bca', .* got 'wald'"),  # type: ignore[arg-type]
        (lambda: jm.bootstrap(KEY, macro_f1, COUNTS[0]), "counts must have shape"),
        (lambda: jm.bootstrap_counts(KEY, COUNTS, 2, method="poisson", stratified=True), "no fixed totals"),
        (lambda: jm.posterior(KEY, macro_f1, COUNTS, prevalence=[1, 2, 3]), "shares >= 0 that sum to 1"),
        (lambda: jm.posterior(KEY, macro_f1, COUNTS, prevalence=[0.5, 0.5]), r"array \(K,\) = \(3,\)"),
        (lambda: jm.posterior(KEY, macro_f1, COUNTS, prevalence="given"), "'inferred' or 'fixed'"),
        (lambda: jm.delta_method(macro_f1, COUNTS, transform="log"), "'logit' or 'atanh'"),  # type: ignore[arg-type]
        (lambda: jm.delta_method(macro_f1, -COUNTS), "expected a count >= 0"),
        (lambda: jm.bootstrap_examples(KEY, jnp.mean), "on their first axis, got None"),
        (lambda: jm.bootstrap_examples(KEY, jnp.mean, np.ones(0)), r"on their first axis, got \(0,\)"),
        (lambda: jm.bootstrap_examples(KEY, jnp.mean, np.ones(3), np.ones((2, 3))), r"got \(3,\), \(2, 3\)"),
        (lambda: jm.bootstrap_examples(KEY, jnp.mean, np.ones(3), clusters=[0, 1, 1]), 'resample="weights"'),
        (lambda: jm.bootstrap_examples(KEY, jnp.mean, np.ones(3), clusters=[0, 1]), r"shape \(n,\) = \(3,\)"),
        (lambda: jm.bootstrap_examples(KEY, lambda x: jnp.log(-x).mean(), np.ones(3)), "NaN or infinite in all"),
        (lambda: jm.bootstrap_examples(KEY, jnp.mean, np.ones(3), method="studentized"), "'percentile' or 'basic'"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_raise(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
