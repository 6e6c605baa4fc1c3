"""The samplers against the exact laws: counts of all words of equal spacing, and chi-square on a
million draws, with keys that do not change.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from jaxmetrics._numerics import samplers
from jaxmetrics._places.compilation import promoting

N = 1_000_000
WORDS = jax.random.bits(jax.random.key(3), (N,), jnp.uint32)

binomial, poisson, multinomial, dirichlet = (
    promoting(jax.jit(f))
    for f in (
        samplers.binomial,
        samplers.poisson,
        samplers.multinomial,
        samplers.dirichlet,
    )
)


def p_value(draws: np.ndarray, law: Any) -> float:
    """Of Pearson's chi-square over some sixty ranges, those too rare to expect five draws
    joined.
    """
    low, high = int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4))
    edges = np.arange(low, high + 1, max(1, (high - low) // 60))
    expected = N * np.diff(law.cdf(edges), prepend=0, append=1)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    rare = expected < 5
    expected, observed = (np.append(v[~rare], v[rare].sum()) for v in (expected, observed))
    if expected[-1] < 5:
        expected, observed = (np.append(v[:-2], v[-2:].sum()) for v in (expected, observed))
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def check(draw: Any, law: Any, relative: float = 0.0) -> None:
    """Compare the quantiles of a million equally spaced words with the law, whose mean may be wrong
    by a relative error, and draws of random words by chi-square.
    """
    draws = np.asarray(draw(jnp.arange(2**20, dtype=jnp.uint32) << 12 | 2**11), np.float64)
    assert (np.diff(draws) >= 0).all() or (np.diff(draws) <= 0).all()
    sd, error = law.std(), law.mean() * relative / law.std()
    assert abs(draws.mean() - law.mean()) < (1e-5 + error) * sd
    assert abs(((draws - law.mean()) / sd).var() - 1) < 2e-4 + error
    values, times = np.unique(draws, return_counts=True)
    assert np.abs(np.cumsum(times) / 2**20 - law.cdf(values)).max() < 1e-5 + error
    assert p_value(np.asarray(draw(WORDS)), law) > 1e-3


@pytest.mark.parametrize(
    ("n", "success", "failure"),
    [
        *((1, 1, 1), (5, 1, 4), (20, 1, 1), (30, 3, 7), (100, 3, 97), (99, 11, 89), (40, 1, 1)),
        *((27, 1, 1), (28, 1, 1), (139, 1, 9), (141, 1, 9), (31, 16, 15), (32, 1, 1), (33, 1, 1)),
        *((1000, 9, 1), (10**5, 3, 7), (10**5, 1, 10**5), (10**9, 1, 10**8), (10**9, 3, 7)),
        *((2**31 - 1, 1, 1), (2**31 - 1, 1, 10**8)),
    ],
)
def test_binomial(n: int, success: int, failure: int) -> None:
    odds = jnp.array(float(success)), jnp.array(float(failure))
    # As float32 knows it.
    p = np.float64(np.float32(min(success, failure)) / np.float32(success + failure))
    law = stats.binom(n, p if success <= failure else 1 - p)
    check(lambda words: binomial(words, jnp.array(n), *odds), law, 2.0**-24)


@pytest.mark.parametrize("mean", [0.01, 1.0, 9.99, 13.99, 14.0, 20.0, 30.0, 200.0, 1e4, 1e6])
def test_poisson(mean: float) -> None:
    check(
        lambda words: poisson(words, jnp.array(mean)), stats.poisson(np.float64(np.float32(mean)))
    )


@pytest.mark.parametrize("n", [1, 7, 1000, 65536, 10**9, 2**31 - 1])
def test_indices(n: int) -> None:
    words = np.append(np.asarray(WORDS[:10_000]), np.array([0, 1, 2**16, 2**32 - 1], np.uint32))
    expected = words.astype(np.uint64) * np.uint64(n) >> np.uint64(32)
    assert_array_equal(promoting(samplers.indices)(jnp.asarray(words), n), expected)


def test_certain_and_impossible_outcomes(x64: bool) -> None:
    """Every word that could break it, too: all bits 0 and all bits 1."""
    words = jnp.concatenate(
        [jnp.array([0, 1, 255, 256, 2**32 - 256, 2**32 - 1], jnp.uint32), WORDS[:1000]]
    )
    for n in (0, 1, 100, 10**9):
        sizes = jnp.full(words.shape, n, jnp.int32)
        assert (binomial(words, sizes, jnp.array(0.0), jnp.array(1.0)) == 0).all()
        assert (binomial(words, sizes, jnp.array(1.0), jnp.array(0.0)) == n).all()
        assert (binomial(words, sizes, jnp.array(0.0), jnp.array(0.0)) == 0).all()
        draws = binomial(words, sizes, jnp.array(1.0), jnp.array(1.0))
        assert ((draws >= 0) & (draws <= n)).all()
    assert (poisson(words, jnp.array(0.0)) == 0).all()
    # Mean 0.001.
    assert binomial(words, jnp.array(10**6), jnp.array(1e-3), jnp.array(1e6)).max() <= 5


def test_poisson_counts_end_at_the_largest_integer() -> None:
    words = jnp.asarray(np.arange(0, 2**32, 2**20, dtype=np.uint32))
    draws = np.asarray(samplers.poisson(words, jnp.full(words.shape, 2.0**31 - 256)))
    assert draws.max() == 2**31 - 1
    assert draws.min() > 2**31 - 10 * 2**15.5


def test_multinomial() -> None:
    """Every cell is binomial, pairs of cells have the covariance -n p q, and nothing is lost."""
    weights = jnp.array([0.0, 3, 50, 7, 0, 900, 40])
    words = samplers.random_words(jax.random.split(jax.random.key(1), 200_000), (6,))
    draws = np.asarray(multinomial(words, jnp.array(1000), weights), float)
    p = np.asarray(weights, float) / 1000
    assert (draws.sum(-1) == 1000).all()
    assert (draws[:, p == 0] == 0).all()
    covariance = 1000 * (np.diag(p) - np.outer(p, p))
    error = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / 200_000)
    assert (np.abs(draws.mean(0) - 1000 * p) <= 5 * np.sqrt(np.diag(covariance) / 200_000)).all()
    assert (np.abs(np.cov(draws.T) - covariance) <= 6 * error).all()


@pytest.mark.parametrize("concentration", [0.05, 0.3, 1, 1.5, 50, 1e4])
def test_dirichlet(concentration: float, x64: bool) -> None:
    words = jax.random.bits(jax.random.key(9), (100_000, 2), jnp.uint32)
    shares = np.asarray(dirichlet(words, jnp.array([concentration, 2.0])), float)
    np.testing.assert_allclose(shares.sum(-1), 1, rtol=1e-6)
    law = stats.beta(concentration, 2)
    shares = np.maximum(shares[:, 0], law.ppf(0.05))  # a share of 1e-40 is 0 in float32
    at_end = (shares == shares.min()).mean()
    assert abs(at_end - 0.05) < 5 * np.sqrt(0.05 / 100_000)
    assert (
        stats.kstest(law.cdf(shares[shares > shares.min()]), stats.uniform(0.05, 0.95).cdf).pvalue
        > 1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("a", [1.0, 3.0, 50.0])
def test_moments_of_many_gamma_variables(a: float, optimized: None) -> None:
    """Within four standard errors, which is .0007 standard deviations for the mean."""
    draw = promoting(jax.jit(lambda words: samplers.gamma(words, jnp.full(words.shape, a))))
    number, mean, square = 32 * 2**20, 0.0, 0.0
    for key in jax.random.split(jax.random.key(5), 32):
        centred = np.asarray(draw(jax.random.bits(key, (2**20,), jnp.uint32)), float) - a
        mean, square = mean + centred.mean() / 32, square + (centred**2).mean() / 32
    assert abs(mean) < 4 * np.sqrt(a / number)
    assert abs(square - a) < 4 * np.sqrt((2 * a**2 + 6 * a) / number)


def test_impossible_concentrations_give_nan_and_an_end() -> None:
    for bad in (-1.0, np.nan, np.inf):
        shares = dirichlet(WORDS[:6].reshape(3, 2), jnp.array([[1.0, 2], [bad, 1], [0, 1]]))
        assert_array_equal(np.isnan(shares).all(-1), [False, True, False])


def test_draws_do_not_depend_on_their_company() -> None:
    n, weights = jnp.array([10, 1000, 10**6]), jnp.array([[1.0, 2, 3], [5, 500, 1], [1, 1, 1]])
    words = samplers.random_words(jax.random.split(jax.random.key(0), 5000), (2,))
    together = multinomial(words[:, None], n, weights)
    for i in range(3):
        assert_array_equal(together[:, i], multinomial(words, n[i], weights[i]))
    assert_array_equal(together[7:9, 1], multinomial(words[7:9], n[1], weights[1]))


def test_words_are_the_same_in_the_shape_that_accelerators_draw() -> None:
    keys = jax.random.split(jax.random.key(2), 4)
    shaped = jax.vmap(lambda key: jax.random.bits(key, (3, 5), jnp.uint32))(keys)
    assert_array_equal(samplers.random_words(keys, (3, 5)), shaped)
