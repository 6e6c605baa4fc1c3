"""The samplers against the exact laws, by chi-square on a million draws, with keys that do not
change.
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

binomial, heads, poisson, multinomial, dirichlet = (
    promoting(jax.jit(f))
    for f in (
        samplers.binomial,
        samplers.heads,
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


@pytest.mark.parametrize(
    ("n", "success", "failure"),
    [
        *((1, 1, 1), (5, 1, 4), (20, 1, 1), (30, 3, 7), (100, 3, 97), (99, 11, 89), (40, 1, 1)),
        *((1000, 9, 1), (10**5, 3, 7), (10**5, 1, 10**5), (10**9, 1, 10**8), (10**9, 3, 7)),
        (2**31 - 1, 1, 1),
    ],
)
def test_binomial(n: int, success: int, failure: int) -> None:
    draws = np.asarray(
        binomial(WORDS, jnp.full(N, n), jnp.full(N, float(success)), jnp.full(N, float(failure)))
    )
    # As float32 knows it.
    p = np.float64(np.float32(min(success, failure)) / np.float32(success + failure))
    assert p_value(draws if success <= failure else n - draws, stats.binom(n, p)) > 1e-3


@pytest.mark.parametrize(
    ("draw", "parameter", "law"),
    [
        *((heads, n, stats.binom(n, 0.5)) for n in (1, 2, 31, 32, 33, 100, 10**6, 2**31 - 1)),
        *((poisson, m, stats.poisson(m)) for m in (0.01, 1.0, 9.99, 10.0, 12.0, 30.0, 200.0)),
        *((poisson, m, stats.poisson(m)) for m in (1e4, 1e6)),
    ],
)
def test_heads_and_poisson(draw: Any, parameter: float, law: Any) -> None:
    assert p_value(np.asarray(draw(WORDS, jnp.full(N, parameter))), law) > 1e-3


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
        for draws in (binomial(words, sizes, jnp.array(1.0), jnp.array(1.0)), heads(words, sizes)):
            assert ((draws >= 0) & (draws <= n)).all()
    assert (poisson(words, jnp.array(0.0)) == 0).all()
    # Mean 0.001.
    assert binomial(words, jnp.array(10**6), jnp.array(1e-3), jnp.array(1e6)).max() <= 5


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
