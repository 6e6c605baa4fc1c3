"""Isotonic calibration: against scikit-learn, SciPy and the definition of the band."""

from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats
from sklearn import metrics
from sklearn.isotonic import IsotonicRegression

import jaxmetrics as jm
from jaxmetrics.scoring import isotonic

rng = np.random.default_rng(31)
isotonic_curve = partial(jm.calibration_curve, strategy="isotonic")


def _fit(y: np.ndarray, p: np.ndarray, w: np.ndarray | None = None) -> np.ndarray:
    return np.asarray(IsotonicRegression().fit(p, y, w).predict(p))


@pytest.mark.quick
@pytest.mark.parametrize("decimals", [1, 2, 9])
@pytest.mark.parametrize("n", [1, 2, 7, 60, 3000])
def test_frequency_equals_scikit_learns(n: int, decimals: int) -> None:
    p = np.round(rng.random(n), decimals)
    y = (rng.random(n) < p**1.5).astype(int)
    w = rng.integers(0, 4, n) + (n < 7)
    counts = rng.random(n) < 0.8
    counts[0] = True
    order = np.argsort(p)
    curve = isotonic_curve(y, p)
    np.testing.assert_array_equal(curve.mean_prob, p[order])
    assert_allclose(curve.frequency, _fit(y, p)[order], atol=1e-12)
    curve = isotonic_curve(y, p, sample_weight=w, where=counts)
    counted = (counts & (w > 0))[order]
    among: Any = [x[order[counted]] for x in (y, p, w)]
    y, p, w = among
    assert_allclose(curve.frequency[counted], _fit(y, p, w), atol=1e-12)
    assert_allclose(np.unique(curve.mean_prob), np.unique(p))
    short = isotonic_curve(y, p, sample_weight=w)
    assert_allclose(curve.low[counted], short.low, atol=1e-12)


def test_frequency_where_every_example_is_a_block() -> None:
    """Weights by which no two examples are pooled, but for the last with all before it."""
    n = 100_000
    p = np.arange(n // 2).repeat(2) / n
    y = np.tile([0, 1], n // 2)
    share = np.linspace(0.01, 0.99, n // 2)
    w = np.stack([1 - share, share], -1).reshape(-1)
    for last in (1.0, 1e9):
        w[-2:] = last, 1.0
        weights, true = w.reshape(-1, 2).sum(-1), (w * y).reshape(-1, 2).sum(-1)
        expected = optimize.isotonic_regression(true / weights, weights=weights).x
        curve = isotonic_curve(y, p, sample_weight=w)
        assert_allclose(curve.frequency[::2], expected, rtol=1e-9)


def test_impossible_probabilities_in_jax_arrays_make_nan() -> None:
    assert np.isnan(isotonic_curve(jnp.array([0, 1]), jnp.array([0.5, 1.5]))[:4]).all()


def _band_of_all_intervals(y: np.ndarray, level: float) -> tuple[list[float], list[float]]:
    """The band of distinct, rising probabilities, each a group, by the bounds' definition."""
    n = len(y)
    z = stats.norm.isf((1 - level) / (n * (n + 1)))

    @cache
    def upper(s: int, trials: int) -> float:
        q = (s + 1) / trials
        if q >= 1:
            return 1.0
        excess = lambda p: 2 * trials * stats.entropy([q, 1 - q], [p, 1 - p]) - z**2
        return float(optimize.brentq(excess, q, 1 - 1e-15, xtol=1e-14))

    low, high = np.zeros(n), np.ones(n)
    for j in range(n):
        for k in range(j, n):
            s, trials = int(y[j : k + 1].sum()), k + 1 - j
            low[k:] = np.maximum(low[k:], 1 - upper(trials - s, trials))
            high[: j + 1] = np.minimum(high[: j + 1], upper(s, trials))
    fitted = _fit(y, np.arange(n))
    return np.minimum(low, fitted).tolist(), np.maximum(high, fitted).tolist()


def test_band_is_the_tightest_of_all_intervals() -> None:
    n = 40
    p = np.arange(n) / n
    for y in (rng.random(n) < p, p > 0.5, rng.random(n) < 0.9, p < 0.3):
        curve = isotonic_curve(y, p, level=0.9)
        low, high = _band_of_all_intervals(y, 0.9)
        assert_allclose(curve.low, low, atol=2e-6)
        assert_allclose(curve.high, high, atol=2e-6)


def test_bounds_contain_those_of_clopper_and_pearson() -> None:
    tail = 1e-5
    for n in (5, 40, 3000):
        s = np.arange(n + 1.0)
        low, high = isotonic._binomial_bounds(s, np.full(n + 1, float(n)), stats.norm.isf(tail))
        assert (low[1:] <= stats.beta.ppf(tail, s[1:], n - s[1:] + 1)).all()
        assert (high[:-1] >= stats.beta.isf(tail, s[:-1] + 1, n - s[:-1])).all()
        # No wider than those of one more success or failure.
        inner = s[1:-1]
        assert (high[:-2] <= stats.beta.isf(tail, inner + 1, n - inner) + 1e-6).all()
        assert (low[2:] >= stats.beta.ppf(tail, inner, n - inner + 1) - 1e-6).all()


@pytest.mark.quick
def test_decomposition_is_exact() -> None:
    n = 500
    p = np.round(rng.random(n), 2)
    p[:5] = [0, 0, 1, 1, 1]
    y = (rng.random(n) < p**1.5).astype(int)
    w = rng.integers(0, 3, n)
    y, p, w = y[w > 0], p[w > 0], w[w > 0]
    fitted, f = _fit(y, p, w), np.average(y, weights=w)
    brier = jm.score_decomposition(y, p, sample_weight=w)
    recalibrated = np.average((fitted - y) ** 2, weights=w)
    expected = [np.average((p - y) ** 2, weights=w) - recalibrated, f * (1 - f) - recalibrated]
    assert_allclose(brier, [*expected, f * (1 - f)], atol=1e-12)
    log = jm.score_decomposition(y, p, score="log_loss", sample_weight=w)
    total, least = (metrics.log_loss(y, q, sample_weight=w) for q in (p, fitted))
    assert_allclose(log.miscalibration - log.discrimination + log.uncertainty, total, rtol=1e-9)
    assert_allclose(log.uncertainty - log.discrimination, least, rtol=1e-9)
    assert min(*brier, *log) >= 0


@pytest.mark.quick
@pytest.mark.parametrize("score", ["brier", "log_loss"])
def test_decomposition_at_its_limits(score: Any) -> None:
    y = np.array([0, 1, 0, 1, 1, 0])
    decomposition = partial(jm.score_decomposition, score=score)
    assert_allclose(decomposition(y, np.full(6, 0.5))[:2], 0, atol=1e-15)
    perfect = decomposition(y, y.astype(float))
    assert_allclose(perfect.miscalibration, 0, atol=1e-14)
    assert_allclose(perfect.discrimination, perfect.uncertainty)
    impossible: Any = jnp.array([0, 1]), jnp.array([0.5, 1.5])
    for arrays in ((np.zeros(0, int), np.zeros(0)), impossible):
        assert np.isnan(decomposition(*arrays)).all()
    with pytest.raises(ValueError, match="score must be"):
        jm.score_decomposition([0, 1], [0.5, 0.5], score="zero_one")  # type: ignore[arg-type]


def test_no_examples_have_an_empty_curve() -> None:
    for y, p in ((np.zeros(0, int), np.zeros(0)), (jnp.zeros(0, jnp.int32), jnp.zeros(0))):
        curve = isotonic_curve(y, p)
        assert [x.shape for x in curve if x is not None] == [(0,)] * 4
