"""Proportions against published figures."""

import jax
import numpy as np
import pytest

import jaxmetrics as jm


@pytest.mark.parametrize(
    ("successes", "trials", "method", "low", "high"),
    [  # R's binom, as in statsmodels' tests
        (18, 20, "wilson", 0.698966, 0.972134),
        (18, 20, "agresti_coull", 0.686756, 0.984344),
        (4, 20, "wilson", 0.080658, 0.416017),
        (0, 30, "wilson", 0.0, 0.113513),
        (30, 30, "wilson", 0.886487, 1.0),
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
        assert np.isnan(jm.proportion_interval(successes, trials)).all()


def test_standard_error_near_one() -> None:
    near_one, near_zero = jm.proportion_interval(11_184_809, 11_184_810), jm.proportion_interval(1, 11_184_810)
    np.testing.assert_allclose(near_one.standard_error, near_zero.standard_error, rtol=1e-6)


@pytest.mark.parametrize("level", [1e-12, 1e-6, 0.5, 1 - 1e-12])
def test_intervals_contain_their_value(level: float) -> None:
    n = np.array([1, 2, 3, 7, 1000, 10**6, 10**12])[:, None]
    s = np.floor(n * np.array([0, 0.1, 0.5, 0.9, 1]))
    for method in ("wilson", "agresti_coull"):
        estimate = jm.proportion_interval(s, n, level=level, method=method)
        if method == "wilson":
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
    with pytest.raises(ValueError, match=r'method must be "wilson" or "agresti_coull", got .wald.'):
        jm.proportion_interval(1, 2, method="wald")  # type: ignore[arg-type]
