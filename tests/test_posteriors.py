"""Posteriors against published figures, scipy's betas and simulated coverage."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import jaxmetrics as jm
from jaxmetrics._places.compilation import compiled
from jaxmetrics.betas.distributions import betainccinv, betaincinv


@pytest.mark.parametrize(
    ("counts", "mean", "interval"),
    [  # mclearn's notebooks and Brodersen's toolbox; intervals computed
        (
            [[97611, 1844, 545], [2795, 93269, 3936], [1730, 8826, 89444]],
            0.9344,
            (0.933524, 0.935280),
        ),
        ([[417, 3, 2], [8, 63, 15], [8, 11, 63]], 0.8250, (0.780006, 0.866479)),
        ([[90, 10], [5, 95]], 0.9166667, (0.875493, 0.950317)),
        ([[100000, 3], [2, 100000]], 0.999965, None),  # a fixed grid of 0.001 says 0.999
    ],
)
def test_published_figures(
    counts: list[list[int]], mean: float, interval: tuple[float, float] | None
) -> None:
    posterior = jm.balanced_accuracy_posterior(np.array(counts))
    assert_allclose(posterior.mean, mean, atol=5e-5 if mean < 0.99 else 1e-7)
    assert_allclose(jm.balanced_accuracy_expected(np.array(counts)), posterior.mean, rtol=1e-12)
    if interval is not None:
        assert_allclose(posterior.interval(0.95), interval, atol=1e-6)


def test_brodersen_toolbox_median_and_mode() -> None:
    posterior = jm.balanced_accuracy_posterior(np.array([[90, 10], [5, 95]]))
    assert_allclose((posterior.ppf(0.5), posterior.mode), (0.917994, 0.92069), atol=5e-6)
    assert_allclose(posterior.sf(0.9), 1 - posterior.cdf(0.9), rtol=1e-6)


def test_rates_of_each_class() -> None:
    counts = np.array([[[9, 1, 2], [3, 8, 0], [0, 0, 0]], [[4, 0, 0], [0, 5, 1], [1, 1, 7]]])
    hits = counts.diagonal(0, 1, 2)
    for posterior_of, right, total in (
        (jm.recall_posterior, hits, counts.sum(-1)),
        (jm.precision_posterior, hits, counts.sum(-2)),
        (jm.accuracy_posterior, hits.sum(-1), counts.sum((1, 2))),
    ):
        posterior = posterior_of(counts, prior=0.5)
        expected = stats.beta(0.5 + right, 0.5 + total - right)
        assert posterior.shape == right.shape
        assert_allclose(posterior.mean, expected.mean(), rtol=1e-12)
        assert_allclose(posterior.interval(0.9), expected.interval(0.9), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("place", [np.asarray, jnp.asarray], ids=["host", "device"])
def test_drawn_cells_have_the_posterior_of_the_recall(place: Any) -> None:
    counts = np.array([[9, 1, 2], [3, 8, 0], [0, 0, 5]])
    draws = jm.posterior_counts(jax.random.key(3), place(counts), 4000)
    assert isinstance(draws, np.ndarray) == (place is np.asarray)
    draws = np.asarray(draws)
    assert draws.shape == (4000, 3, 3)
    assert_allclose(draws.sum((-2, -1)), 1, rtol=1e-5)
    recall, parameters = jm.recall(draws), jm.betas.get_beta_parameters(counts)
    for i in range(3):  # Kolmogorov's statistic is above 2.2 / sqrt(n) once in 10,000 times
        assert stats.kstest(recall[:, i], stats.beta(*parameters[i]).cdf).statistic < 2.2 / np.sqrt(
            4000
        )


def test_batches_and_mistakes_of_drawn_cells() -> None:
    counts, prior = np.array([[9, 1, 2], [3, 8, 0], [0, 0, 5]]), np.full((3, 2), 0.1)
    alone, batch = (
        jm.posterior_counts(5, x, 5, prior=prior) for x in (counts, np.stack([counts, counts]))
    )
    assert_array_equal(batch, np.stack([alone] * 2, 1))
    shares = jm.posterior_counts(0, counts, 3, prevalence=[0.5, 0.3, 0.2]).sum(-1)
    assert_allclose(shares, [[0.5, 0.3, 0.2]] * 3)
    assert np.isnan(jm.posterior_counts(0, jnp.asarray(-counts), 2)).all()
    for bad in (0.0, np.ones(3)):
        with pytest.raises(ValueError, match="prior must be"):
            jm.posterior_counts(0, counts, 2, prior=bad)


@pytest.mark.parametrize(("bad", "place"), [(-1.0, jnp.array), (np.nan, np.array)])
def test_a_bad_count_makes_everything_nan(bad: float, place: Any) -> None:
    counts = place([[[5.0, 1], [2, 3]], [[5.0, bad], [2, 3]]])
    for make in (jm.balanced_accuracy_posterior, jm.accuracy_posterior):
        low, high = make(counts).interval()
        assert_array_equal(np.isnan(low), [False, True])
        assert_array_equal(np.isnan(high), [False, True])


def beta_values(x: Any, q: Any, a: Any, b: Any) -> Any:
    return jnp.stack(
        [jm.betas.beta_cdf(x, a, b), jm.betas.beta_pdf(x, a, b), jm.betas.beta_ppf(q, a, b)]
    )


def test_beta_functions_and_their_gradients(float64: None) -> None:
    """On the device, whose functions have no derivatives by JAX; the host's are SciPy's."""
    a, b, levels = np.array([0.5, 3.0, 40.0]), np.array([2.0, 1.0, 6.5]), np.array([0.2, 0.5, 0.9])
    x = np.array([0.3, 0.5, 0.9])  # in the middle, where finite differences are as good
    arguments = [jnp.asarray(v) for v in (x, levels, a, b)]
    program, beta = jax.jit(beta_values), stats.beta(a, b)
    assert_allclose(program(*arguments), [beta.cdf(x), beta.pdf(x), beta.ppf(levels)], rtol=1e-10)
    jax.test_util.check_grads(program, arguments, order=1, rtol=1e-5)
    assert_array_equal(jm.betas.beta_pdf([0.0, 1, -1, 2], 1, 3), [3, 0, 0, 0])
    impossible = jm.betas.beta_cdf(0.5, 0, 1), jm.betas.beta_ppf(1.5, 1, 1)
    assert np.isnan([*impossible, jm.betas.beta_pdf(0.5, 1, -1)]).all()


def test_beta_cdf_of_hostile_parameters(x64: bool) -> None:
    """No half-integers, poles, and masses that lie within a few digits of 1."""
    rng = np.random.default_rng(0)
    a, b = (10 ** rng.uniform(np.log10(0.1), 3, 500) for _ in range(2))
    x = stats.beta.ppf(rng.uniform(1e-3, 1 - 1e-3, 500), a, b)
    near_one = 1 - np.array([1.0, 2, 4]) * 2.0**-24
    a, b, x = np.append(a, [29274998.0] * 3), np.append(b, [1.5] * 3), np.append(x, near_one)
    if not x64:
        a, b, x = (np.asarray(v, np.float32).astype(float) for v in (a, b, x))
        x = np.where(x > 1e-7, x, 0.5)  # nearer to a pole float32 does not go
    exact = stats.beta.cdf(x, a, b)
    assert_allclose(jm.betas.beta_cdf(x, a, b)[:500], exact[:500], atol=1e-12)
    assert_allclose(jm.betas.beta_cdf(x, a, b)[500:], exact[500:], atol=1e-8)
    assert_allclose(
        jm.betas.beta_cdf(*(jnp.asarray(v) for v in (x, a, b))), exact, atol=1e-8 if x64 else 1e-5
    )


def test_quantiles_far_in_either_tail(x64: bool) -> None:
    """Of the upper tail in its own digits: 1 - 5e-8 is 1 in float32."""
    q, a, b = (
        np.array([1e-12, 5e-8, 1e-3, 0.4]),
        np.array([3.0, 0.5, 91.0, 2.0]),
        np.array([15.0, 0.5, 11.0, 0.5]),
    )
    assert_allclose(betainccinv(a, b, q), stats.beta.isf(q, a, b), rtol=1e-9)
    assert_allclose(betaincinv(a, b, q), stats.beta.ppf(q, a, b), rtol=1e-9)
    q, a, b = q[1:], a[1:], b[1:]  # 1e-12 is beyond the window of float32
    arguments = tuple(jnp.asarray(v) for v in (a, b, q))
    assert_allclose(
        compiled(betainccinv)(*arguments), stats.beta.isf(q, a, b), rtol=1e-9 if x64 else 1e-4
    )


def test_accuracy_has_one_prior() -> None:
    assert_allclose(jm.accuracy_posterior([[1, 2], [3, 4]], prior=(2, 1)).mean, 7 / 13, rtol=1e-6)
    with pytest.raises(ValueError, match=r"\(K, 2\) = \(1, 2\)"):
        jm.accuracy_posterior([[1, 2], [3, 4]], prior=np.ones((2, 2)))
