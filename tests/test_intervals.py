"""Intervals against published figures, scipy, large simulations, and their own coverage."""

import contextlib
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, special, stats

import jaxmetrics as jm
from jaxmetrics.intervals import replicates
from jaxmetrics.intervals.quantiles import KINDS, acceleration_of
from jaxmetrics.intervals.samples import used_cells
from tests.cases import METHODS
from tests.estimates import assert_close, ends, parts

BOOTSTRAPS: tuple[Any, ...] = (*KINDS, "studentized")
KEY = 0  # on the host, for what is computed there
COUNTS = np.array([[40, 5, 2], [6, 30, 4], [1, 3, 9]])
macro_f1 = jm.macro(jm.f1)


PROPORTIONS: tuple[Any, ...] = (
    "wilson",
    "likelihood",
    "jeffreys",
    "clopper_pearson",
    "agresti_coull",
)


@pytest.mark.parametrize(
    ("successes", "trials", "method", "low", "high"),
    [  # R's binom, as in statsmodels' tests
        (18, 20, "wilson", 0.698966, 0.972134),
        (18, 20, "agresti_coull", 0.686756, 0.984344),
        (18, 20, "clopper_pearson", 0.683017, 0.987651),
        (30, 30, "wilson", 0.886487, 1.0),
    ],
)
def test_published_intervals(
    successes: int, trials: int, method: Any, low: float, high: float
) -> None:
    estimate = jm.proportion_interval(successes, trials, method=method)
    assert_allclose(ends(estimate), [low, high], atol=6e-7)
    assert_allclose(estimate.value, successes / trials, rtol=1e-15)


@pytest.mark.parametrize("method", PROPORTIONS)
def test_proportions_on_the_device(method: Any, x64: bool, programs: list[str]) -> None:
    """As on the host; the second call, with other numbers, compiles nothing."""
    numbers = np.array([[18, 4, 0, 30, 7, 0], [20, 20, 30, 30, 11, 0]])
    jm.proportion_interval(*jnp.asarray(numbers[:, ::-1]), method=method)
    on_device = [jnp.asarray(x) for x in numbers]
    programs.clear()
    estimate = jm.proportion_interval(*on_device, method=method)
    assert programs == []
    assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(estimate))
    assert_close(estimate, jm.proportion_interval(*numbers, method=method), 1e-11 if x64 else 2e-6)


def test_wilson_solves_the_score_equation() -> None:
    """At its ends p, |s - n p| = z sqrt(n p (1 - p)); also near 0 and 1 and for a billion trials,
    where the errors of few successes and of few failures are equal.
    """
    z = 1.959963984540054
    for put, seen, rtol in ((np.asarray, 5, 1e-7), (jnp.asarray, 4, 1e-4)):  # without 1 - 2e-9
        s = np.array([1, 5, 999, 3, 10**9 - 2])[:seen]
        n = np.array([1000, 9, 1000, 10**9, 10**9])[:seen]
        estimate = jm.proportion_interval(put(s), put(n))
        for p in ends(estimate).astype(float):
            assert_allclose(np.abs(s - n * p) / np.sqrt(n * p * (1 - p)) / z, 1, rtol=rtol)
        many = put(np.array([11_184_809, 1])), put(np.array(11_184_810))
        near_one, near_zero = jm.proportion_interval(*many).standard_error
        assert_allclose(near_one, near_zero, rtol=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_likelihood_intervals_of_proportions_solve_their_equation(level: float) -> None:
    """After a third of a failure is added for the lower end, and of a success for the upper."""
    s, n = np.array([0, 1, 2.4, 17, 299, 300]), np.array([1, 9, 7.9, 20, 300, 300])
    reach = stats.norm.ppf((1 + level) / 2) ** 2 / 2

    def least(right: float, wrong: float) -> float:
        def excess(p: float) -> float:
            observed, expected = np.array([right, wrong]), np.array([p, 1 - p])
            return float(special.rel_entr(observed, (right + wrong) * expected).sum() - reach)

        share = right / (right + wrong)
        return optimize.brentq(excess, 1e-9, share, xtol=1e-15) if right else 0.0

    found = jm.proportion_interval(s, n, level=level, method="likelihood")
    assert_allclose(found.low, [*map(least, s, n - s + 1 / 3)], rtol=1e-9)
    assert_allclose(1 - found.high, [*map(least, n - s, s + 1 / 3)], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("is_clustered", [False, True])
def test_one_sample_has_one_interval(is_clustered: bool) -> None:
    """`proportion_interval` and `interval` agree on accuracy, and without clusters on the rates of
    classes; some tables have no mistakes, or no examples of a class.
    """
    rng = np.random.default_rng(3)
    for _ in range(20):
        k, level = int(rng.integers(2, 5)), float(rng.choice([0.8, 0.95, 0.999]))
        p = rng.dirichlet(np.full(k * k, 0.4)) + rng.choice([0, 2, 1e5]) * np.eye(k).ravel()
        sizes = rng.integers(1, 30, 25)
        shares = rng.dirichlet(4 * p / p.sum() + 1e-3, 25) if is_clustered else p / p.sum()
        clusters = rng.multinomial(sizes, shares).reshape((-1, k, k))
        axis = 0 if is_clustered else None
        tables = clusters if is_clustered else clusters.sum(0)
        options: Any = {"level": level, "cluster_axis": axis}
        right, total = tables.trace(axis1=-2, axis2=-1), tables.sum((-2, -1))
        expected = jm.interval(jm.accuracy, tables, **options)
        found = jm.proportion_interval(right, total, method="likelihood", **options)
        assert_allclose(parts(found), parts(expected), atol=1e-9)
        if is_clustered:
            continue
        tp, true, pred = tables.diagonal(), tables.sum(1), tables.sum(0)
        rates = (jm.recall, true), (jm.precision, pred), (jm.jaccard, true + pred - tp)
        for rate, trials in rates:
            expected = jm.interval(rate, tables, level=level)
            found = jm.proportion_interval(tp, trials, level=level, method="likelihood")
            some = trials > 0
            a, b = (ends(x)[:, some] for x in (found, expected))
            assert_allclose(a, b, atol=1e-5)  # the search of `interval` ends before


@pytest.mark.filterwarnings("ignore:with 6 clusters")
def test_the_order_of_clusters_without_mistakes_does_not_matter() -> None:
    """No cluster moves the accuracy; the smallest is added."""
    sizes = np.array([1, 2, 5, 9, 14, 30])
    lows = []
    for x in (sizes, sizes[::-1]):
        tables = x[:, None, None] * np.diag([2, 1])
        lows.append(jm.interval(jm.accuracy, tables, cluster_axis=0).low)
        by_sums = jm.proportion_interval(3 * x, 3 * x, cluster_axis=0, method="likelihood")
        assert_allclose(by_sums.low, lows[-1], rtol=1e-9)  # another search
    assert_allclose(lows[1], lows[0], rtol=1e-12)


def test_proportions_at_the_edges() -> None:
    none, all_ = jm.proportion_interval(0, 30), jm.proportion_interval(30, 30)
    for dtype, eps in (("float32", 1.2e-7), ("float64", 2.3e-16)):  # sums of weights
        sums = np.array([-30 * eps, 30 + 30 * eps], dtype)
        rounded = jm.proportion_interval(sums, np.array(30, dtype))
        assert_array_equal(rounded.low, [none.low, all_.low])
    assert none.low == 0
    assert all_.high == 1
    assert none.standard_error == all_.standard_error == 0
    assert_allclose(1 - all_.low, none.high, rtol=1e-6)
    nothing = jm.proportion_interval(0, 0)
    assert np.isnan(nothing.value)
    assert nothing.low == 0
    assert nothing.high == 1
    for successes, trials in ((np.nan, 2), (1, np.nan)):
        assert np.isnan(parts(jm.proportion_interval(successes, trials))).all()
    for successes, trials in ((3, 2), (-1, 2), (3.0, 2.9)):
        hidden = jm.proportion_interval(jnp.array(successes), jnp.array(trials))
        assert np.isnan(parts(hidden)).all()
        with pytest.raises(ValueError, match=f"successes is {successes:g}, but successes lie"):
            jm.proportion_interval(successes, trials)


@pytest.mark.parametrize("level", [1e-12, 1e-6, 0.5, 1 - 1e-12])
@pytest.mark.parametrize("method", PROPORTIONS)
def test_intervals_contain_their_value(method: Any, level: float) -> None:
    n = np.array([1, 2, 3, 7, 1000, 10**6, 10**12])[:, None]
    s = np.floor(n * np.array([0, 0.1, 0.5, 0.9, 1]))
    estimate = jm.proportion_interval(s, n, level=level, method=method)
    low, high = ends(estimate)
    if method in ("wilson", "likelihood") or (method == "clopper_pearson" and level >= 0.5):
        assert ((low <= estimate.value) & (estimate.value <= high)).all()
    assert ((low >= 0) & (low <= high) & (high <= 1)).all()


def test_exact_proportions_equal_the_beta_quantiles() -> None:
    """The ends are 0 without and 1 with only successes, also of Jeffreys' interval: Brown, Cai and
    DasGupta (2001), section 3.1.
    """
    n = np.array([1, 7, 300, 10**6])[:, None]
    s = np.floor(n * np.array([0, 0.3, 0.95, 1]))
    for method, a, b, c, d in (
        ("jeffreys", s + 0.5, n - s + 0.5, s + 0.5, n - s + 0.5),
        ("clopper_pearson", s, n - s + 1, s + 1, n - s),
    ):
        estimate = jm.proportion_interval(s, n, method=method)  # type: ignore[arg-type]
        low = np.where(s > 0, stats.beta.ppf(0.025, np.maximum(a, 0.5), b), 0)
        high = np.where(s < n, stats.beta.ppf(0.975, c, np.maximum(d, 0.5)), 1)
        assert_allclose(ends(estimate), [low, high], atol=1e-10)


def as_predictions(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    cells = np.repeat(np.arange(counts.size), counts.ravel())
    return cells // len(counts), cells % len(counts)


GAINS = np.array([[1.0, 0.13, -0.41], [0.29, 0.83, 0.07], [-0.53, 0.37, 1.21]])


def gain(counts: Any) -> Any:
    # Skewed, so that the methods differ.
    return ((counts * GAINS).sum((-2, -1)) / counts.sum((-2, -1))) ** 3


@pytest.mark.parametrize("kind", ["percentile", "basic", "BCa"])
def test_bootstrap_equals_scipys(kind: Any) -> None:
    """Within five Monte Carlo errors of quantiles of 20,000 and 100,000 replicates; none tie, where
    SciPys differ.
    """
    ours = jm.interval(gain, COUNTS, method=jm.Bootstrap(KEY, kind.lower(), 100_000))
    theirs = stats.bootstrap(
        as_predictions(COUNTS),
        lambda y_true, y_pred, axis: GAINS[y_true, y_pred].mean(axis) ** 3,
        paired=True,
        vectorized=True,
        n_resamples=20_000,
        batch=2000,
        method=kind,
        rng=np.random.default_rng(0),
    )
    tolerance = 5 * np.sqrt(0.025 * 0.975 * (1 / 20_000 + 1 / 100_000)) / 0.058
    assert_allclose(ends(ours), theirs.confidence_interval, atol=tolerance * ours.standard_error)
    assert_allclose(ours.standard_error, theirs.standard_error, rtol=0.03)


def test_acceleration_is_that_of_the_infinitesimal_jackknife(float64: None) -> None:
    """BCa from its definition, with derivatives by JAX and NumPy's quantiles of the same
    replicates; the acceleration is near that of one evaluation per example.
    """
    value, replicates = macro_f1(COUNTS), macro_f1(jm.bootstrap_counts(KEY, COUNTS, 4000))
    y_true, y_pred = as_predictions(COUNTS)
    without = COUNTS - np.eye(9).reshape(9, 3, 3)
    left_out = macro_f1(without)[3 * y_true + y_pred]
    slopes = np.asarray(jax.grad(macro_f1)(jnp.asarray(COUNTS, float)))[y_true, y_pred]
    acceleration, of_jackknife = (
        ((x - x.mean()) ** 3).sum() / (6 * ((x - x.mean()) ** 2).sum() ** 1.5)
        for x in (slopes, -left_out)
    )
    assert_allclose(acceleration, of_jackknife, rtol=0.1)
    below = (replicates < value - 1e-12).mean() + (replicates <= value + 1e-12).mean()
    z = stats.norm.ppf(below / 2) + stats.norm.ppf([0.025, 0.975])
    levels = stats.norm.cdf(stats.norm.ppf(below / 2) + z / (1 - acceleration * z))
    estimate = jm.interval(macro_f1, COUNTS, method=jm.Bootstrap(KEY, num_samples=4000))
    assert_allclose(ends(estimate), np.quantile(replicates, levels), rtol=1e-9)
    assert_allclose(estimate.standard_error, replicates.std(ddof=1), rtol=1e-9)


def test_rounding_is_no_influence() -> None:
    """As of the median of tied scores: all values without one example are 0.3, but for their last
    bits.
    """
    last_bits = np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 0.0]]])
    for put, bit in ((np.asarray, 6e-17), (jnp.asarray, 3e-8)):
        left_out, counts = put(-(0.3 + bit * last_bits)), put(np.full((2, 2, 2), 20.0))
        assert_array_equal(acceleration_of(left_out, counts), 0)


def test_studentized_from_its_definition() -> None:
    alone = jm.interval(macro_f1, COUNTS, method=jm.Delta())
    replicates = jm.interval(macro_f1, jm.bootstrap_counts(KEY, COUNTS, 500), method=jm.Delta())
    t = (replicates.value - alone.value) / replicates.standard_error
    estimate = jm.interval(macro_f1, COUNTS, method=jm.Bootstrap(KEY, "studentized", 500))
    expected = alone.value - alone.standard_error * np.quantile(t, [0.975, 0.025])
    assert_allclose(ends(estimate), expected, rtol=1e-9)


def test_delta_method_equals_published_errors() -> None:
    """SAS as in statsmodels' tests, .4842 (.1380) and .4701 (.1457)."""
    counts = [[0, 4, 1], [0, 8, 0], [0, 1, 5]]
    kappa = jm.interval(jm.cohen_kappa, counts, method=jm.Delta())
    assert_allclose(parts(kappa), [0.48416, 0.21366, 0.75466, 0.13801], atol=1e-5)
    linear = jm.interval(lambda c: jm.cohen_kappa(c, weights="linear"), counts, method=jm.Delta())
    assert_allclose(parts(linear), [0.47012, 0.18446, 0.75578, 0.14575], atol=1e-5)


def test_accuracies_and_areas_of_a_map_equal_published_estimates() -> None:
    """The sample by map class of Olofsson et al. (2014), whose variances are divided by n - 1."""
    sample = [[66, 0, 5, 4], [0, 55, 8, 12], [1, 0, 153, 11], [2, 1, 9, 313]]
    hectares = 0.09 * np.array([200_000, 150_000, 3_200_000, 6_450_000])
    published: dict[Any, tuple[Any, Any]] = {
        jm.accuracy: (0.95, 0.02),
        jm.recall: ([0.88, 0.73, 0.93, 0.96], [0.07, 0.10, 0.04, 0.02]),
        jm.precision: ([0.75, 0.85, 0.93, 0.96], [0.21, 0.25, 0.03, 0.02]),
    }
    for metric, (estimates, margins) in published.items():
        weighted = jm.at_prevalence(metric, hectares / hectares.sum())
        found = jm.interval(weighted, sample, method=jm.Delta(), stratified=True)
        assert_allclose(found.value, estimates, atol=5.1e-3)
        assert_allclose(found.high - found.value, margins, atol=5.1e-3)
    weighted = jm.at_prevalence(jm.selection_rate, hectares / hectares.sum())
    found = jm.interval(weighted, sample, method=jm.Delta(), stratified=True)
    assert_allclose(hectares.sum() * found.value[0], 21_158, atol=0.5)
    assert_allclose(hectares.sum() * (found.high - found.value)[0], 6_158, rtol=3e-3)


def test_ends_of_the_delta_method_have_derivatives_at_empty_cells(float64: None) -> None:
    """How much narrower is the interval with one example more, and with one in a cell that had
    none?

    The differences are those of the host, the derivatives those of the device.
    """
    counts = np.array([[30.0, 0.0, 2.0], [1.0, 20.0, 0.0], [0.0, 4.0, 9.0]])
    empty = np.zeros((3, 3))
    empty[0, 1] = 1

    def metrics(c: Any) -> Any:
        of_all = jm.accuracy(c), macro_f1(c), jm.matthews_corrcoef(c), jm.balanced_accuracy(c)
        return jnp.stack(of_all) if isinstance(c, jax.Array) else np.stack(of_all, -1)

    def end(counts: Any) -> Any:
        # Differences are taken between counts that are no numbers of examples.
        squares = None if isinstance(counts, jax.Array) else counts
        return jm.interval(metrics, counts, squares=squares, method=jm.Delta("logit")).low

    slopes = np.asarray(jax.jacrev(end)(jnp.asarray(counts)))
    step = 1e-5
    for direction in (counts / counts.sum(), empty):
        once, twice = (end(counts + n * step * direction) for n in (1, 2))
        # One-sided: no count below 0.
        difference = (-3 * end(counts) + 4 * once - twice) / (2 * step)
        assert_allclose((slopes * direction).sum((-2, -1)), difference, rtol=1e-4)


def test_what_a_metric_must_be() -> None:
    with pytest.raises(
        TypeError, match=r"metric must be a function of counts, .* several at once, .* got a dict"
    ):
        jm.interval({"accuracy": jm.accuracy}, np.eye(2), method=jm.Bootstrap(KEY))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"counts\[0, 1\] is -1, expected a number of ex"):
        jax.grad(lambda c: jm.interval(jm.accuracy, c, method=jm.Delta()).low)(
            jnp.array([[2.0, -1.0], [1.0, 3.0]])
        )


@pytest.mark.parametrize("as_array", [np.asarray, jnp.asarray])
def test_a_value_that_its_scale_does_not_hold_has_no_interval(as_array: Any) -> None:
    """At an end of the range it has none, since an interval without width would claim certainty."""
    perfect = as_array(np.diag([5, 6]))
    for transform in ("logit", "atanh"):
        at_end = jm.interval(jm.accuracy, perfect, method=jm.Delta(transform))
        assert_array_equal(parts(at_end), [1, np.nan, np.nan, 0])
    for counts in ([81, 67, 1], [57, 41, 99, 20, 94, 9, 62]):  # one is missed by rounding
        at_end = jm.interval(
            jm.matthews_corrcoef, as_array(np.diag(counts)), method=jm.Delta("atanh")
        )
        assert np.isnan(at_end.low)
    never = jm.interval(jm.accuracy, as_array([[0, 5], [6, 0]]), method=jm.Delta("log"))
    assert_array_equal(parts(never), [0, np.nan, np.nan, 0])
    worse_than_chance = as_array([[[2, 8], [7, 3]], [[8, 2], [3, 7]]])
    message = r'between 0 and 1, but the metric has the value -0\.5, .* scale="atanh"'
    looked_at = as_array is np.asarray  # values on the device are not
    with pytest.warns(UserWarning, match=message) if looked_at else contextlib.nullcontext():
        kappa = jm.interval(jm.cohen_kappa, worse_than_chance, method=jm.Delta("logit"))
    assert np.isnan(kappa.low).tolist() == np.isnan(kappa.high).tolist() == [True, False]
    assert kappa.standard_error[0] > 0
    assert jm.interval(jm.cohen_kappa, worse_than_chance, method=jm.Delta("atanh")).high[0] < 0


def test_ratios_are_estimated_on_the_scale_of_logarithms() -> None:
    """The odds ratio of hay fever with and without eczema, 4.89, 95 % interval 4.00 to 5.99, log
    odds ratio 1.588, standard error .103: Bland and Altman (2000), BMJ 320.
    """
    children = np.array([[13525, 928], [420, 141]])
    odds_ratio = jm.interval(jm.binary(jm.diagnostic_odds_ratio), children, method=jm.Delta("log"))
    assert_allclose(parts(odds_ratio)[:3], [4.89, 4.00, 5.99], atol=0.005)
    assert_allclose(odds_ratio.standard_error / odds_ratio.value, 0.103, atol=0.0005)


@pytest.mark.parametrize(
    ("scale", "forward", "back", "slope"),
    [
        ("logit", special.logit, special.expit, lambda p: 1 / (p * (1 - p))),
        ("atanh", np.arctanh, np.tanh, lambda r: 1 / (1 - r**2)),
    ],
)
def test_scales_of_the_delta_method(scale: Any, forward: Any, back: Any, slope: Any) -> None:
    near_one = np.array([[98, 1], [0, 101]])
    plain = jm.interval(jm.matthews_corrcoef, near_one, method=jm.Delta())
    assert plain.high > 1
    found = jm.interval(jm.matthews_corrcoef, near_one, method=jm.Delta(scale))
    reach = (plain.high - plain.value) * slope(plain.value)
    expected = back(forward(plain.value) + np.array([-reach, reach]))
    assert_allclose(ends(found), expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "stratified"),
    [
        (jm.Bootstrap(KEY, "percentile", 50), False),
        (jm.Posterior(KEY, num_samples=50), False),
        (jm.Posterior(KEY, num_samples=50), True),
    ],
)
def test_a_batch_on_the_device_draws_what_each_matrix_draws_alone(
    method: Any, stratified: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also under jit in chunks of replicates and under vmap; NaN for what cannot be refused."""
    batch = jnp.stack([COUNTS, 30 * COUNTS, COUNTS.T, -COUNTS])

    def interval(c: Any) -> Any:
        return jm.interval(jm.f1, c, method=method, stratified=stratified)

    in_batch = jax.jit(lambda c: (interval(c), jax.vmap(interval)(c)))(batch)
    monkeypatch.setattr(replicates, "LANES", 40)
    in_chunks = jax.jit(lambda c: interval(c))(batch)  # a program of its own
    monkeypatch.undo()
    for together in (*in_batch, in_chunks):
        assert np.isnan(parts(together)[1:, 3]).all()
        for i, each in enumerate(map(interval, batch[:3])):
            assert_close(jax.tree.map(lambda x, i=i: x[i], together), each, 2e-6)


@pytest.mark.parametrize("put", [np.asarray, jnp.asarray], ids=["host", "device"])
def test_many_classes_are_drawn_without_their_empty_cells(put: Any) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 300, 15_000)
    y_pred = np.where(rng.random(15_000) < 0.7, y_true, rng.integers(0, 300, 15_000))
    counts = put(jm.confusion_matrix(y_true, y_pred, num_classes=300))
    listed = used_cells(counts, by_row=True)
    assert listed is not None
    assert listed[0].shape[-1] < 60
    estimate = jm.interval(jm.accuracy, counts, method=jm.Bootstrap(KEY, num_samples=200))
    expected = np.sqrt(estimate.value * (1 - estimate.value) / 15_000)
    # 4 errors of 200 replicates.
    assert_allclose(estimate.standard_error, expected, rtol=0.2)


def test_strata_of_many_pairs_are_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(20, size=400)
    a, b = (np.where(rng.random(400) < 0.7, y_true, rng.integers(20, size=400)) for _ in range(2))
    paired = jm.paired_confusion_matrix(y_true, a, b, num_classes=20)
    assert paired.size > jm.Delta.most_kinds
    metric = jm.difference(jm.macro(jm.f1))
    listed = jm.interval(metric, paired, method=jm.Delta(), stratified=True)
    monkeypatch.setattr(jm.Delta, "most_kinds", paired.size)
    expected = jm.interval(metric, paired, method=jm.Delta(), stratified=True)
    assert_close(listed, expected, 1e-12)


def test_replicates_of_counts() -> None:
    multinomial = jm.bootstrap_counts(KEY, COUNTS, 20_000)
    assert (multinomial.sum((-2, -1)) == 100).all()
    assert_allclose(multinomial.mean(0), COUNTS, atol=5 * np.sqrt(40 / 20_000))
    stratified = jm.bootstrap_counts(KEY, COUNTS, 500, stratified=True)
    assert (stratified.sum(-1) == COUNTS.sum(-1)).all()
    poisson = jm.bootstrap_counts(KEY, COUNTS, 20_000, kind="poisson")
    assert_allclose(poisson.var(0), COUNTS, rtol=0.06)
    for weights in (COUNTS, 0.25 * COUNTS):
        bayesian = jm.bootstrap_counts(KEY, weights, 20_000, kind="bayesian")
        assert_allclose(bayesian.sum((-2, -1)), weights.sum(), rtol=1e-5)
        assert_allclose(bayesian.mean(0), weights, atol=0.25)
    rows = jm.bootstrap_counts(KEY, COUNTS, 500, kind="bayesian", stratified=True).sum(-1)
    assert_allclose(rows, np.broadcast_to(COUNTS.sum(-1), (500, 3)), rtol=1e-5)


def test_posterior_of_accuracy_is_beta_and_prevalence_is_heard() -> None:
    fixed = jm.interval(
        jm.recall, COUNTS, method=jm.Posterior(KEY, num_samples=20_000), stratified=True
    )
    exact = jm.recall_posterior(COUNTS)
    assert_allclose(fixed.value, exact.mean, atol=3e-3)
    assert_allclose(ends(fixed), exact.interval(), atol=0.01)
    rare = np.array([0.98, 0.01, 0.01])
    deployed = jm.interval(
        jm.at_prevalence(jm.precision, rare), COUNTS, method=jm.Posterior(KEY), stratified=True
    )
    expected = jm.precision(rare[:, None] * jm.normalize(COUNTS))
    assert_allclose(deployed.value, expected, atol=0.05)


def test_kinds_of_the_bootstrap_are_named_wherever_they_are_taken() -> None:
    named: dict[Callable[..., Any], Any] = {
        jm.Bootstrap: BOOTSTRAPS,
        jm.bootstrap_examples: KINDS,
    }
    for function, names in named.items():
        declared = str(inspect.signature(function).parameters["kind"].annotation)
        assert set(re.findall(r"['\"](\w+)['\"]", declared)) == set(names), function


def test_a_classifier_without_a_mistake() -> None:
    perfect = np.diag([5, 6, 7])
    for method in BOOTSTRAPS:
        estimate = jm.interval(macro_f1, perfect, method=jm.Bootstrap(KEY, method))
        assert_allclose(parts(estimate), [1, 1, 1, 0], atol=1e-15)
    estimate = jm.interval(macro_f1, perfect, method=jm.Posterior(KEY))
    assert 0.6 < estimate.low < estimate.value < estimate.high < 1


def test_undefined_replicates_are_counted() -> None:
    """The precision of a class that is predicted once is undefined in 1/e of the replicates."""
    counts = np.array([[99, 0], [0, 1]])

    def precision(c: Any) -> Any:
        return jm.precision(c, zero_division=np.nan)

    estimate = jm.interval(precision, counts, method=jm.Bootstrap(KEY, num_samples=10_000))
    assert estimate.num_undefined[0] == 0
    assert abs(int(estimate.num_undefined[1]) - 10_000 * 0.99**100) < 5 * np.sqrt(
        10_000 * 0.37 * 0.63
    )
    assert np.isfinite(estimate.low).all()
    with pytest.raises(ValueError, match="metric is NaN or infinite for all 50 random tables"):
        jm.interval(lambda c: np.nan * c.sum(), counts, method=jm.Bootstrap(KEY, num_samples=50))


@pytest.mark.parametrize("bad", [-1.0, 0.5, np.nan, np.inf])
def test_what_jit_hides_is_nan(bad: float) -> None:
    counts = jnp.array([[3.0, 2], [bad, 4]])
    for result, possible in zip(_hidden(counts), (False, bad == 0.5, False), strict=True):
        assert np.isnan(result).all() if not possible else np.isfinite(result).all()


@jax.jit
def _hidden(counts: jax.Array) -> tuple[jax.Array, ...]:
    bayesian = jm.bootstrap_counts(KEY, counts, 3, kind="bayesian")
    delta = jm.interval(jm.accuracy, counts, method=jm.Delta())
    return jm.bootstrap_counts(KEY, counts, 3), bayesian, jnp.stack([delta.low, delta.high])


def one_matrix_only(c: Any) -> Any:
    return np.trace(c) / c.sum()


def for_batches(c: Any) -> Any:
    return np.trace(c, axis1=-2, axis2=-1) / c.sum((-2, -1))


def recalls(c: Any) -> Any:
    """Of one matrix; of K matrices the shape is right and the numbers are wrong."""
    return np.diagonal(c) / c.sum(1)


def over_the_batch(c: Any) -> Any:
    return np.trace(c, axis1=-2, axis2=-1) / c.sum()


def drops_absent_classes(c: Any) -> Any:
    """Of batches in which all classes occur right, else of a single matrix only."""
    support, right = c.sum(-1), np.diagonal(c, axis1=-2, axis2=-1)
    occurs = support > 0
    return (right / support).mean(-1) if occurs.all() else (right[occurs] / support[occurs]).mean()


def by_place(c: Any) -> Any:
    return c[..., 0, 0] / c.sum((-2, -1)) + (
        c[0, 1] if c.ndim == 2 else c[:, 0, 1] * (np.arange(len(c)) == 0)
    )


def of_two_kinds(c: Any) -> Any:
    return {
        "accuracy": np.trace(c) / c.sum(),
        "recalls": [np.diagonal(c) / c.sum(1), float(c[0, 1] / c.sum())],
    }


def two_kinds(c: Any) -> Any:
    return {"accuracy": jm.accuracy(c), "recalls": [jm.recall(c), c[..., 0, 1] / c.sum((-2, -1))]}


@pytest.mark.parametrize(
    ("metric", "batched"),
    [
        (one_matrix_only, for_batches),
        (recalls, jm.recall),
        (over_the_batch, for_batches),
        (drops_absent_classes, jm.balanced_accuracy),
        (by_place, lambda c: c[..., 0, 0] / c.sum((-2, -1)) + c[..., 0, 1]),
        (of_two_kinds, two_kinds),
    ],
    ids=lambda f: f.__name__,
)
def test_metrics_of_one_matrix_are_called_for_each(metric: Any, batched: Any) -> None:
    """A wrong answer to a batch is noticed, also where its shape is right, as of K recalls of K
    replicates; in pairs and clusters, too.
    """
    pairs = np.random.default_rng(0).integers(0, 9, (3, 3, 3)) * (np.arange(3) < 2)
    clusters = np.random.default_rng(1).integers(1, 4, (20, 3, 3))
    diagonal = np.diag([30, 20, 10])  # K cells, so that the derivatives are K, too
    numbers = (3, 100)
    asymptotic: list[jm.IntervalMethod] = [jm.Delta(), jm.Likelihood()]
    bootstraps = [jm.Bootstrap(KEY, num_samples=num_samples) for num_samples in numbers]
    posteriors = [jm.Posterior(KEY, num_samples=num_samples) for num_samples in numbers]
    for counts in (COUNTS, diagonal, np.stack([COUNTS, diagonal, COUNTS.T])):
        for method in (*asymptotic, *bootstraps, *posteriors):
            found, expected = (
                jm.interval(f, counts, method=method, stratified=method in bootstraps)
                for f in (metric, batched)
            )
            assert_close(found, expected, 1e-9)
    percentiles = [jm.Bootstrap(KEY, "percentile", num_samples) for num_samples in numbers]
    for method in (*asymptotic, *percentiles):
        compared = [jm.compare(f, pairs, method=method) for f in (metric, batched)]
        of_clusters = [
            jm.interval(f, clusters, method=method, cluster_axis=0) for f in (metric, batched)
        ]
        assert_close(compared[0], compared[1], 1e-9)
        assert_close(of_clusters[0], of_clusters[1], 1e-9)


def test_metrics_that_take_batches_where_all_classes_occur() -> None:
    """Of tables, pairs and clusters without a class, and of replicates that lose one."""
    counts = np.array([[20, 3, 0], [2, 9, 0], [0, 0, 0]])
    batch = np.stack([counts, COUNTS, COUNTS * [[1], [1], [0]]])
    pairs = np.zeros((3, 3, 3), int)
    pairs[:2, :2, :2] = [[[9, 3], [4, 5]], [[2, 1], [6, 20]]]
    pairs[2, 1, 2] = 1
    clusters = np.stack([counts] * 10 + [COUNTS // 4] * 10)
    for name in ("likelihood", "delta", "percentile"):
        method = METHODS[name]()
        found, expected = (
            [
                jm.interval(f, batch, method=method),
                jm.compare(f, pairs, method=method),
                jm.interval(f, clusters, method=method, cluster_axis=0),
            ]
            for f in (drops_absent_classes, jm.balanced_accuracy)
        )
        assert_close(found, expected, 1e-9)


@pytest.mark.parametrize(
    "metric",
    [
        lambda c: jnp.trace(c) / c.sum(),
        lambda c: c.at[0, 1].set(0.0).sum() / c.sum(),  # .at of JAX's arrays alone
    ],
    ids=["jnp", "at"],
)
def test_metrics_that_answer_with_jax_arrays_move_to_the_device(metric: Any) -> None:
    for estimate in (
        jm.interval(metric, COUNTS, method=jm.Delta()),
        jm.interval(metric, COUNTS, method=jm.Posterior(KEY, num_samples=20)),
    ):
        assert all(isinstance(x, jax.Array) for x in jax.tree.leaves(estimate))
        assert np.isfinite(parts(estimate)).all()


EDGES: dict[str, Any] = {
    "empty": np.zeros((3, 3)),
    "one class": np.diag([0, 9, 0]),
    "absent class": np.array([[5, 0, 2], [0, 0, 0], [1, 0, 4]]),
    "one example": np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]),
    "a single class": np.array([[7]]),
    "no matrices": np.zeros((0, 3, 3)),
}


@pytest.mark.parametrize("kind", EDGES)
def test_the_edges_raise_nothing(kind: str) -> None:
    """Nor do their warnings, whatever NumPy is told to do about them; also of pairs in which both
    always agree.
    """
    counts = EDGES[kind]
    pairs = counts[..., None] * np.eye(counts.shape[-1])
    with np.errstate(all="raise"):
        for name, make in METHODS.items():
            method = make()
            estimate = jm.interval(macro_f1, counts, method=method)
            assert np.shape(estimate.low) == counts.shape[:-2]
            if name == "posterior":
                assert np.isfinite(parts(estimate)).all()
            elif counts.sum() == 0:
                assert np.isnan(parts(estimate)[1:]).all()
            elif method.draws and name != "studentized":
                assert np.isfinite(parts(estimate)[1:]).all()
            if name != "delta logit" and pairs.size:  # pairs of no matrices are refused
                compared = jm.compare(macro_f1, pairs, method=method)
                assert np.shape(compared.difference.low) == counts.shape[:-2]
                assert_allclose(ends(compared.a), ends(compared.b), atol=0.1)
        assert np.isnan(jm.interval(macro_f1, 0 * counts, method=jm.Delta("atanh")).low).all()
        assert jm.bootstrap_counts(KEY, counts, 3).shape == (3, *counts.shape)
        assert jm.bootstrap_counts(KEY, counts, 3, kind="poisson").shape == (3, *counts.shape)


def weighted_mean(x: Any, sample_weight: Any) -> Any:
    return (x * sample_weight).sum(-1) / sample_weight.sum(-1)


def mean(x: Any) -> Any:
    return x.mean(-1)


def pooled(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
    return sum(x.sum(axis) for x in samples) / sum(x.shape[axis] for x in samples)


STATISTICS: dict[Any, Any] = {"indices": mean, "weights": weighted_mean}
_rng = np.random.default_rng(0)
# Examples of each stratum, and how many replicates are drawn.
STRATA: dict[str, tuple[list[np.ndarray], int]] = {
    "few": ([_rng.exponential(size=60)], 20_000),
    "many": ([_rng.exponential(size=3500)], 4000),
    "strata": ([_rng.exponential(size=23), 5 + 2 * _rng.exponential(size=41)], 20_000),
    "strata of many": ([30 * _rng.exponential(size=50), 500 + _rng.normal(size=3450)], 4000),
}


@pytest.mark.parametrize("resample", STATISTICS)
@pytest.mark.parametrize("name", STRATA)
def test_bootstrap_of_examples_equals_scipys(name: str, resample: Any) -> None:
    """Of skewed examples; strata are samples of their own, and of many examples groups are left
    out. The quantiles of 20,000 replicates err by 0.02 to 0.03 standard errors, on both sides.
    """
    samples, number = STRATA[name]
    order = np.random.default_rng(0).permutation(sum(map(len, samples)))
    x = np.concatenate(samples)[order]
    stratum = np.repeat(np.arange(len(samples)), [*map(len, samples)])[order]
    error = np.sqrt(sum(len(y) * y.var() for y in samples)) / len(
        x
    )  # W_h^2 s_h^2 (n_h - 1) / n_h^2
    expected = stats.bootstrap(
        samples, pooled, n_resamples=number, batch=500, rng=np.random.default_rng(1)
    ).confidence_interval
    for put in (np.asarray, jnp.asarray) if name == "strata" else (np.asarray,):
        result = jm.bootstrap_examples(
            KEY, STATISTICS[resample], put(x), num_samples=number, resample=resample, strata=stratum
        )
        assert isinstance(result.low, jax.Array) == (put is jnp.asarray)
        assert_allclose(result.standard_error, error, rtol=5 / np.sqrt(2 * number))
        assert_allclose(ends(result), expected, atol=0.15 * error)


def test_clusters_are_drawn_within_strata() -> None:
    """By indices and weights; the error is that of the clusters' sums about their stratum's."""
    rng = np.random.default_rng(0)
    stratum = np.arange(60) % 3  # of clusters of 2 examples
    sums = 4 * stratum + rng.exponential(size=60)
    order = rng.permutation(120)
    ids, x = np.repeat(np.arange(60), 2)[order], np.repeat(sums, 2)[order]
    error = np.sqrt(sum(20 * sums[stratum == i].var() for i in range(3))) / 60
    for put in (np.asarray, jnp.asarray):
        for resample, statistic in STATISTICS.items():
            result = jm.bootstrap_examples(
                KEY, statistic, put(x), resample=resample, clusters=ids, strata=stratum[ids]
            )
            assert_allclose(result.standard_error, error, rtol=5 / np.sqrt(4000))
    with pytest.raises(
        ValueError, match="the examples 14 and 7 are in the same cluster and in different strata"
    ):
        jm.bootstrap_examples(KEY, mean, x, clusters=ids, strata=np.arange(120) == 7)
    with pytest.raises(ValueError, match=r"strata must have shape \(n,\) = \(120,\)"):
        jm.bootstrap_examples(KEY, mean, x, strata=stratum)
    with pytest.warns(UserWarning, match="a stratum has only 5 of the clusters"):
        jm.bootstrap_examples(0, np.mean, x, clusters=ids, strata=(ids < 5).astype(int))


def test_examples_of_any_shape_statistics_of_any_kind_and_chunks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 30, 2))

    def statistic(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
        with np.errstate(invalid="ignore"):
            return {
                "product": (x * y).sum(-1).mean(),
                "mean": x.mean(0),
                "undefined": np.log(x.sum()),
            }

    result = jm.bootstrap_examples(KEY, statistic, x, y, num_samples=50)
    assert result["mean"].low.shape == (2,)
    assert 0 < result["undefined"].num_undefined < 50
    monkeypatch.setattr(replicates, "LANES", 1000)
    assert_close(jm.bootstrap_examples(KEY, statistic, x, y, num_samples=50), result, 1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: jm.proportion_interval(1, 2, method="wald"),  # type: ignore[arg-type]
            r"method must be 'likelihood', 'wilson', .* got 'wald'",
        ),
        (lambda: jm.bootstrap_counts(KEY, -COUNTS, 3), r"\[0, 0\] is -40, expected a count >= 0"),
        (
            lambda: jm.interval(macro_f1, COUNTS / 2, method=jm.Bootstrap(KEY)),
            r"counts\[0, 1\] is 2.5, expected a number of examples",
        ),
        (
            lambda: jm.interval(macro_f1, np.full((2, 2), 2.0**30), method=jm.Bootstrap(KEY)),
            "fewer than 2.31 examples",
        ),
        (lambda: jm.Bootstrap(KEY, num_samples=1), "num_samples must be at least 2"),
        (lambda: jm.Bootstrap(KEY, "wald"), "kind must be 'bca', .* got 'wald'"),  # type: ignore[arg-type]
        (
            lambda: jm.bootstrap_counts(KEY, COUNTS, 2, kind="poisson", stratified=True),
            "keeps the number of examples of each class fixed",
        ),
        (
            lambda: jm.posterior_counts(KEY, COUNTS, 3, prevalence=[1, 2, 3]),
            "shares of the classes, which must not be negative and must sum to 1",
        ),
        (
            lambda: jm.posterior_counts(KEY, COUNTS, 3, prevalence=[0.5, 0.5]),
            r"array of shape \(K,\) = \(3,\)",
        ),
        (
            lambda: jm.posterior_counts(KEY, COUNTS, 3, prevalence="given"),
            "'inferred' or 'fixed'",
        ),
        (lambda: jm.Delta("cube"), "scale must be"),  # type: ignore[arg-type]
        (
            lambda: jm.bootstrap_examples(KEY, np.mean),
            "on their first axis, and at least one example, got None",
        ),
        (
            lambda: jm.bootstrap_examples(KEY, np.mean, np.ones(3), np.ones((2, 3))),
            r"got \(3,\), \(2, 3\)",
        ),
        (
            lambda: jm.bootstrap_examples(KEY, jnp.mean, np.ones(41), clusters=np.arange(41) // 2),
            'between 1 and 2 examples.*resample="weights"',
        ),
        (
            lambda: jm.bootstrap_examples(KEY, np.mean, np.ones(3), clusters=[0, 1]),
            r"shape \(n,\) = \(3,\)",
        ),
        (
            lambda: jm.bootstrap_examples(KEY, lambda x: np.nan * x.mean(), np.ones(3)),
            "NaN or infinite for all",
        ),
        (
            lambda: jm.bootstrap_examples(KEY, np.mean, np.ones(3), kind="studentized"),  # type: ignore[arg-type]
            "kind must be 'bca', 'percentile'",
        ),
    ],
)
def test_mistakes_raise(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_metric_cannot_write_into_the_counts() -> None:
    """Nor into what it is given again and again: it would change under it."""
    counts = np.array([[90.0, 10], [5, 95]])

    def metric(c: Any) -> Any:
        c /= c.sum()
        return c[0, 0] + c[1, 1]

    for call in (
        lambda: jm.interval(metric, counts, method=jm.Delta()),
        lambda: jm.interval(metric, counts, method=jm.Bootstrap(0)),
        lambda: jm.interval(metric, counts, method=jm.Posterior(0)),
    ):
        with pytest.raises(ValueError, match="read-only"):
            call()
    assert_array_equal(counts, [[90, 10], [5, 95]])


def test_medians_of_examples() -> None:
    """NumPy's of one sample at a time, of a batch, and one that sorts what was drawn for it."""
    x = np.random.default_rng(0).normal(size=101)
    before = x.copy()

    def median(v: np.ndarray) -> Any:
        v.sort()
        return v[len(v) // 2]

    one, sorting, of_batch = (
        jm.bootstrap_examples(0, f, x) for f in (np.median, median, lambda v: np.median(v, -1))
    )
    assert_array_equal(x, before)
    assert one.value == np.median(x)
    assert_close([sorting, of_batch], [one, one], 1e-12)


@pytest.mark.parametrize("place", [np.asarray, jnp.asarray])
def test_an_undefined_metric_has_no_standard_error(place: Any) -> None:
    estimate = jm.interval(
        lambda c: 0 * c.sum() + np.nan, place([[9.0, 1], [2, 8]]), method=jm.Delta()
    )
    assert np.isnan(estimate.value)
    assert np.isnan(estimate.standard_error)


def test_few_examples_per_class_give_a_warning_and_a_note() -> None:
    """Two examples of a class show half of the variance of its recall, four show three quarters."""
    counts = np.eye(6, dtype=int) + np.roll(np.eye(6, dtype=int), 1, 1)
    for metric in (
        jm.balanced_accuracy,
        jm.macro(jm.f1),
        partial(jm.balanced_accuracy, adjusted=True),
    ):
        for tables in (counts, np.stack([2 * counts, counts])):
            with pytest.warns(
                UserWarning, match="allow for only 50% of the variance: they are too"
            ):
                jm.interval(metric, tables)
        jm.interval(metric, 2 * counts)
    jm.interval(jm.accuracy, counts)
    jm.interval(jm.balanced_accuracy, [[1, 0], [1, 1]])
    note = jm.Report.from_counts(counts)["balanced_accuracy"].note
    assert note is not None
    assert "allow for only 50% of the variance" in note
    assert jm.Report.from_counts(2 * counts)["balanced_accuracy"].note is None
