"""What is computed otherwise on accelerators: their branches run here, and agree with the host."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._numerics import samplers
from jaxmetrics._places import chunks
from jaxmetrics._places.compilation import promoting
from jaxmetrics._sums import cell_sums, weighted_sums
from jaxmetrics.betas import _convolutions
from jaxmetrics.comparisons import _rankings, leaderboards
from jaxmetrics.intervals import quantiles
from jaxmetrics.losses import _vocabulary_blocks
from tests import oracles, test_samplers

RNG = np.random.default_rng(0)

# Of what has one branch for all accelerators.
ANY_ACCELERATOR = pytest.mark.parametrize("platform", ["cuda"], indirect=True)


@pytest.fixture(params=["cuda", "tpu"], scope="module")
def platform(request: pytest.FixtureRequest) -> Iterator[str]:
    """Take the branch of an accelerator, wherever programs have one of each; all other tests take
    that of the platform on which they run.
    """

    def branch(*operands: Any, default: Any, **by_platform: Any) -> Any:
        return by_platform.get(request.param, default)(*operands)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax.lax, "platform_dependent", branch)
        jax.clear_caches()
        yield request.param
        jax.clear_caches()


@pytest.mark.parametrize(("num_classes", "batch"), [(1, ()), (3, (2,)), (40, ()), (40, (2,))])
def test_counts(platform: str, num_classes: int, batch: tuple[int, ...]) -> None:
    shape = (*batch, 1000)
    y_true = RNG.integers(-2, num_classes + 2, shape).astype(np.int8)
    y_pred = RNG.integers(-2, num_classes + 2, 1000)
    where, weights = RNG.random(1000) < 0.8, RNG.random(shape).astype(np.float32)
    weights[..., ::7] = np.nan
    good = where & np.isfinite(weights)
    given = jnp.asarray(y_true), jnp.asarray(y_pred)
    plain = jm.confusion_matrix(*given, num_classes=num_classes, where=where)
    weighted = jm.confusion_matrix(
        *given, num_classes=num_classes, where=good, sample_weight=jnp.asarray(weights)
    )
    assert plain.dtype == jnp.int32
    for index in np.ndindex(batch):
        args = y_true[index], y_pred, num_classes
        assert_array_equal(plain[index], oracles.confusion_matrix(*args, where=where))
        assert_allclose(
            weighted[index],
            oracles.confusion_matrix(*args, weights[index], where=good[index]),
            rtol=1e-6,
        )


def test_other_tables(platform: str) -> None:
    """Three axes, one axis, and rows of numbers in the place of weights."""
    y, (a, b) = RNG.integers(-1, 3, 500), RNG.integers(0, 3, (2, 500))
    scores, groups = RNG.random(500).astype(np.float32), RNG.integers(0, 4, 500)
    calls: dict[str, Callable[[Any], Any]] = {
        "pairs": lambda x: jm.paired_confusion_matrix(x(y), x(a), x(b), num_classes=3),
        "groups": lambda x: jm.confusion_matrix(
            x(y), x(a), num_classes=3, groups=groups, num_groups=4
        ),
        "scores": lambda x: jm.score_histogram(
            x(np.minimum(y, 1)), x(scores), scale="probability", num_bins=64
        ),
        "calibration": lambda x: jm.calibration_error(x(np.maximum(y, 0) // 2), x(scores)),
        "thresholds": lambda x: jm.confusion_matrix_at_thresholds(
            x(np.minimum(y, 1)), x(scores), [0.2, 0.7]
        ),
    }
    for name, call in calls.items():
        assert_allclose(call(jnp.asarray), call(np.asarray), rtol=1e-5, err_msg=name)


def test_metrics(platform: str) -> None:
    counts = RNG.integers(0, 30, (4, 3, 3))
    for metric in (jm.recall, jm.accuracy, jm.macro(jm.f1), jm.balanced_accuracy_expected):
        on_device, on_host = metric(jnp.asarray(counts)), metric(counts)
        assert_allclose(on_device, on_host, rtol=1e-6)
    values = jnp.asarray([[1.0, jnp.nan], [jnp.inf, 4.0]])
    assert_array_equal(cell_sums.diagonal(values), [1, 4])
    gradient = jax.grad(lambda values: (cell_sums.diagonal(values) ** 2).sum())(values)
    assert_array_equal(gradient, [[2, 0], [0, 8]])


def test_sums_do_not_drift(platform: str) -> None:
    n = 2**21 + 1000
    zeros = jnp.zeros(n, jnp.int8)
    tenths = jm.confusion_matrix(zeros, zeros, num_classes=2, sample_weight=jnp.full(n, 0.1))
    assert_allclose(tenths[0, 0], np.float32(0.1) * np.float64(n), rtol=2e-6)


def test_infinite_values_stay_in_their_cells(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weighted_sums, "_PRODUCT_SIZE", 1024)
    cell, values = RNG.integers(0, 8, 3000), RNG.normal(size=3000)
    values[RNG.integers(0, 3000, 4)] = np.inf, -np.inf, np.nan, np.inf
    expected = np.bincount(cell, values, 8)[:7]
    sums = promoting(weighted_sums.sum_by_cell)
    found = sums(jnp.asarray(cell), jnp.asarray(values), 7, most=3000)
    assert_allclose(found, expected, atol=1e-4)


def test_sums_of_integers_are_exact(platform: str) -> None:
    cell, values = RNG.integers(0, 8, 3000), RNG.integers(0, 2**20, 3000)
    expected = [values[cell == i].sum() for i in range(7)]
    assert max(expected) > 2**24
    sums = promoting(weighted_sums.sum_by_cell)
    assert_array_equal(sums(jnp.asarray(cell), jnp.asarray(values), 7, 3000), expected)


def test_gradients_of_weights(platform: str) -> None:
    y, weights = jnp.asarray([0, 1, 1, -1] * 100), jnp.linspace(0.1, 1, 400)

    def squares(weights: jax.Array) -> jax.Array:
        return (jm.confusion_matrix(y, y, num_classes=2, sample_weight=weights) ** 2).sum()

    sums = np.bincount(np.asarray(y) % 3, weights, 3)
    expected = np.where(y < 0, 0, 2 * sums[np.maximum(y, 0)])
    assert_allclose(jax.grad(squares)(weights), expected, rtol=1e-6)
    assert_allclose(
        jax.jvp(squares, (weights,), (weights,))[1], (expected * weights).sum(), rtol=1e-5
    )


@ANY_ACCELERATOR
def test_blocks_of_words(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 32 words, instead of 8 as on a CPU."""
    monkeypatch.setattr(_vocabulary_blocks, "NARROWEST", 8)
    monkeypatch.setattr(_vocabulary_blocks, "BLOCKS", {"cpu": 8, "default": 7 * 32})
    hidden, kernel = (RNG.normal(size=shape).astype(np.float32) for shape in ((7, 5), (5, 101)))
    labels = jnp.asarray([0, 100, 7, 50, -1, 8, 99])

    def loss(function: Callable[..., Any]) -> Any:
        return jax.value_and_grad(lambda h, k: function(h, k).sum(), (0, 1))(hidden, kernel)

    with jax.default_matmul_precision("float32"):  # by default, GPUs round to TF32
        ours = loss(lambda h, k: jm.linear_cross_entropy(h, k, labels))
        plain = loss(lambda h, k: jm.cross_entropy(h @ k, labels))
    for x, expected in zip(*map(jax.tree.leaves, (ours, plain)), strict=True):
        assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


@ANY_ACCELERATOR
def test_chunks_of_rows(platform: str) -> None:
    """Twice as many rows as on a CPU."""
    lengths = []

    def doubled(x: Any) -> Any:
        lengths.append(len(x))
        return 2 * x

    found = chunks.map_chunks(doubled, 3, jnp.arange(10), times=2)
    assert_array_equal(found, 2 * np.arange(10))
    assert max(lengths) == 5


@ANY_ACCELERATOR
@pytest.mark.parametrize("mean", [9.0, 40.0])
def test_draws(platform: str, mean: float) -> None:
    """Counts of small and of large means, of many lanes and of few."""
    n, words = 100, test_samplers.WORDS
    success, failure = (jnp.full(words.shape, x, jnp.float32) for x in (mean, n - mean))
    binomial = promoting(jax.jit(samplers.binomial))
    draws = binomial(words, jnp.full(words.shape, n), success, failure)
    assert test_samplers.p_value(np.asarray(draws), stats.binom(n, mean / n)) > 1e-3
    assert_array_equal(
        binomial(words[:99], jnp.full(99, n), success[:99], failure[:99]), draws[:99]
    )
    poisson = promoting(jax.jit(samplers.poisson))(words, success)
    assert test_samplers.p_value(np.asarray(poisson), stats.poisson(mean)) > 1e-3


@pytest.mark.parametrize("size", [1, 2, 501])
def test_quantiles_of_replicates(platform: str, size: int) -> None:
    """Of negative and equal replicates, and of some or all undefined."""
    samples = np.round(RNG.normal(size=(size, 4)), 1).astype(np.float32)
    samples[RNG.random(size) < 0.3, 1] = np.nan
    samples[-1, 2], samples[:, 3] = -np.inf, np.nan
    ends_of = jax.jit(lambda x: quantiles.estimate_of(jnp.zeros(4), x, 0.9, "percentile"))
    found = promoting(ends_of)(jnp.asarray(samples))
    for i, of_value in enumerate(samples.T.astype(float)):
        finite = of_value[np.isfinite(of_value)]
        ends = np.quantile(finite, [0.05, 0.95]) if finite.size else [np.nan, np.nan]
        assert_allclose([found.low[i], found.high[i]], ends, rtol=1e-6, atol=1e-6)


def test_sums_of_betas(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of nine are rough; they are refined one by one on a CPU, in pairs elsewhere."""
    monkeypatch.setattr(_convolutions, "_NUMBERS_AT_ONCE", 4 * 136 * 2)
    monkeypatch.setattr(_convolutions, "_TIMES_ON_ACCELERATORS", 2)
    parameters = np.random.default_rng(1).uniform(20, 90, (9, 2, 2))
    parameters[[2, 3, 7], :, 1] = 0.5
    ends = jax.jit(lambda parameters: jm.betas.BetaAverage(parameters).interval())
    expected = jm.betas.BetaAverage(parameters).interval()
    assert_allclose(ends(jnp.asarray(parameters)), expected, atol=1e-5)


@ANY_ACCELERATOR
def test_likelihood_intervals(platform: str) -> None:
    """Of values that are smooth, at a kink, at the end of their range and without bound."""
    counts = np.array([[[30, 4, 0], [2, 25, 3], [6, 1, 9]], [[9, 0, 0], [0, 8, 1], [0, 3, 7]]])

    def metric(counts: Any) -> dict[str, Any]:
        return {
            "recall": jm.recall(counts),
            "least": jm.recall(counts).min(-1),
            "ratio": jm.metrics.positive_likelihood_ratio(counts),
        }

    found = promoting(jax.jit(lambda counts: jm.interval(metric, counts)))(jnp.asarray(counts))
    expected: Any = jm.interval(metric, counts)
    for name, estimate in expected.items():
        ends = found[name].low, found[name].high
        assert_allclose(ends, (estimate.low, estimate.high), rtol=2e-4, err_msg=name)


def test_rankings(platform: str) -> None:
    """Products of contributions by example, and shares and optimism of the same draws."""
    slopes, cells = RNG.normal(size=(2, 4, 9)), RNG.integers(0, 10, (4, 50))
    values = np.array([0.5, -np.inf, 0.8, 0.7])
    noise = RNG.normal(size=(200, 4)) / 5
    calls: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
        "products": lambda put: leaderboards._products(put(slopes), put(cells)),
        "optimism": lambda put: _rankings.optimism(put(values), put(noise), put(2)),
        "shares": lambda put: _rankings.shares_of_firsts(
            put(values), put(np.cov(noise.T)), put(noise)
        ),
    }
    for name, call in calls.items():
        on_device = promoting(jax.jit(lambda call=call: call(jnp.asarray)))()
        assert_allclose(on_device, call(np.asarray), rtol=1e-4, err_msg=name)


def test_counts_spread_over_devices(platform: str) -> None:
    mesh = Mesh(np.array(jax.devices("cpu")), ("data",))
    y_true, y_pred = RNG.integers(-1, 3, (2, 80))
    weights = RNG.random(80).astype(np.float32)

    def total(y_true: Any, y_pred: Any, weights: Any) -> tuple[Any, Any]:
        plain = jm.confusion_matrix(y_true, y_pred, num_classes=3)
        weighted = jm.confusion_matrix(y_true, y_pred, num_classes=3, sample_weight=weights)
        return jax.lax.psum((plain, weighted), "data")

    spread = PartitionSpec("data")
    spread_out = jax.shard_map(total, mesh=mesh, in_specs=spread, out_specs=PartitionSpec())
    plain, weighted = jax.jit(spread_out)(*map(jnp.asarray, (y_true, y_pred, weights)))
    assert_array_equal(plain, oracles.confusion_matrix(y_true, y_pred, 3))
    assert_allclose(weighted, oracles.confusion_matrix(y_true, y_pred, 3, weights), rtol=1e-6)
