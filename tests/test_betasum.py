"""Sums and averages of betas against reference cases, quadrature, mirrors and finite differences."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import pytest
from scipy import integrate, stats

import jaxmetrics as jm
from tests import oracles

CASES = json.loads((Path(__file__).parent / "data" / "beta_average.json").read_text(encoding="utf-8"))
REFERENCES = [case for case in CASES if case["reference_error"] < 1e-9]


def parameters_of(case: dict[str, Any]) -> np.ndarray:
    return np.stack([case["alpha"], case["beta"]], -1).astype(float)


def errors_of(case: dict[str, Any], x64: bool) -> list[tuple[float, float, float]]:
    """As it stands and with alpha and beta swapped: the error of the cdf beyond the rounding of x, of quantiles and of the
    mean in standard deviations beyond one ulp.

    The points are padded to 16, so that all cases of one size share their programs.
    """
    parameters = parameters_of(case)
    average = jm.BetaAverage(np.stack([parameters, parameters[:, ::-1]]))
    points, levels = (np.pad(np.array(case[key]), (0, 16 - len(case[key])), "edge") for key in ("x", "q"))
    x, q = (np.stack([v, 1 - v], -1) for v in (points, levels))
    cdf, quantile, mean = (np.array(v, float) for v in (average.cdf(x), average.ppf(q), average.mean))
    dtype = np.float64 if x64 else np.float32
    ulp_x, ulp_q, ulp_mean = (np.spacing(np.asarray(v, dtype)).astype(float) for v in (x, quantile, mean))
    rounding = np.asarray(average.pdf(x), float) * ulp_x
    for swapped in (cdf, quantile, mean):
        swapped[..., 1] = 1 - swapped[..., 1]
    sd = np.sqrt(case["variance"])
    np.testing.assert_allclose(average.variance, case["variance"], rtol=1e-12 if x64 else 1e-5)
    n, quantiles = len(case["x"]), slice(0, 7) if x64 else slice(1, 6)  # else not 1e-4, .9999
    assert len(case["q"]) == 7
    errors = (
        (abs(cdf[:n] - np.array(case["cdf"])[:, None]) - rounding[:n]).max(0),
        ((abs(quantile[:7] - np.array(case["quantile"])[:, None]) - ulp_q[:7]) / sd)[quantiles].max(0),
        (abs(mean - case["mean"]) - ulp_mean) / sd,
    )
    return list(zip(*errors, strict=True))


@pytest.mark.slow
def test_reference_cases(x64: bool) -> None:
    soft: list[tuple[Any, ...]] = []
    hard: list[tuple[Any, ...]] = []
    for case in REFERENCES:
        for errors, note in zip(errors_of(case, x64), ("", ", alpha and beta swapped"), strict=True):
            (soft if parameters_of(case).min() >= 21 else hard).append((*errors, case["name"] + note))
    assert len(soft) >= 20
    assert len(hard) >= 40
    for kind, found in (("20 right and wrong", soft), ("the others", hard)):
        for i, what in enumerate(("cdf", "quantile / sd", "mean / sd")):
            print(f"{kind}: worst {what} {max(e[i] for e in found):.1e} ({max(found, key=lambda e: e[i])[-1]})")
    if x64:
        assert max(e[0] for e in soft) < 1e-10
        assert max(e[0] for e in hard) < 1e-7
        assert max(e[1] for e in soft + hard) < 1e-6
        assert max(e[2] for e in soft + hard) < 1e-9
    else:
        assert max(e[0] for e in soft + hard) < 2e-5
        assert max(e[1] for e in soft + hard) < 1e-3
        assert max(e[2] for e in soft + hard) < 1e-3


@pytest.mark.slow
def test_two_classes_at_every_scale(x64: bool) -> None:
    """Perfect, empty, Jeffreys, one class 1e5 times narrower: against quadrature."""
    pairs = np.array(
        [
            ((a1, b1), (a2, b2))
            for b1 in (0.5, 1, 3, 15)
            for b2 in (0.5, 1, 6)
            for a1, a2 in ((10, 10), (20, 3), (20, 1e6), (1e4, 1e4), (0.5, 2))
        ]
    )
    average = jm.BetaAverage(pairs)
    q = np.array([1e-3, 0.025, 0.5, 0.975, 0.9999])[:, None]
    x = np.asarray(average.ppf(q), float)
    exact = np.array([[oracles.beta_average_cdf(xi, pair) for xi, pair in zip(row, pairs, strict=True)] for row in x])
    rounding = 0 if x64 else np.asarray(average.pdf(x), float) * np.spacing(x.astype(np.float32))
    error = abs(np.asarray(average.cdf(x), float) - exact) - rounding
    print(f"worst cdf {error.max():.1e} at {pairs[error.max(0).argmax()].tolist()}")
    assert error.max() < (2e-7 if x64 else 2e-5)


def test_a_class_without_data_beside_many_examples(x64: bool) -> None:
    """One uniform class and nine that are 1e4 times narrower: the average is uniform but for a width of 1e-5."""
    average = jm.BetaAverage(np.array([[1, 1]] + [[9e7, 1e7]] * 9))
    x = (np.array([0.1, 0.5, 0.9]) + 8.1) / 10
    np.testing.assert_allclose(average.cdf(x), [0.1, 0.5, 0.9], atol=1e-9 if x64 else 1e-5)


@pytest.mark.parametrize("shape", [(8.0, 4.0), (0.5, 0.5), (1.0, 1.0), (1e8, 3.0), (0.1, 5.0), (2.37, 1.24)])
def test_one_class_is_the_beta(shape: tuple[float, float], x64: bool) -> None:
    average, beta = jm.BetaAverage(np.array([shape])), stats.beta(*shape)
    q = np.array([1e-3, 0.025, 0.5, 0.975])
    x = np.asarray(average.ppf(q), float)
    tolerance = 1e-8 if x64 else 1e-3
    np.testing.assert_allclose(x, beta.ppf(q), rtol=tolerance if shape[0] > 0.3 else 1e-2, atol=tolerance * beta.std())
    np.testing.assert_allclose(jm.beta_ppf(0.3, *shape), average.ppf(0.3), rtol=1e-12 if x64 else 1e-5)
    if shape[0] < 1e7:
        np.testing.assert_allclose(average.cdf(x), beta.cdf(x), atol=1e-8 if x64 else 2e-6)
        np.testing.assert_allclose(average.pdf(x), beta.pdf(x), rtol=1e-8 if x64 else 1e-4)
    np.testing.assert_allclose(average.variance, beta.var(), rtol=1e-12 if x64 else 1e-6)


BATCH = np.array([[[3.0, 1.0], [12.0, 2.0], [4.0, 4.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]])


@pytest.mark.slow
def test_batches_vmap_jit_and_the_functional_forms() -> None:
    q = np.array([[0.1], [0.5], [0.9]], np.float32)
    average = jm.BetaAverage(BATCH)
    assert average.shape == (2,)
    x = average.ppf(q)
    assert x.shape == (3, 2)
    one_by_one = np.stack([jm.BetaAverage(p).ppf(q[:, 0]) for p in BATCH], 1)
    np.testing.assert_allclose(x, one_by_one, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(lambda p: jm.beta_avg_inv_cdf(q[:, 0], p))(jnp.asarray(BATCH)), one_by_one.T, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(jm.beta_avg_inv_cdf)(q, jnp.asarray(BATCH)), one_by_one, rtol=1e-5)
    np.testing.assert_allclose(jax.jit(lambda average: average.cdf(x))(average), np.broadcast_to(q, x.shape), atol=1e-6)
    np.testing.assert_allclose(jm.beta_avg_pdf(x, BATCH), 3 * jm.beta_sum_pdf(3 * x, BATCH), rtol=1e-4)
    np.testing.assert_allclose(jm.beta_avg_cdf(x, BATCH), jm.beta_sum_cdf(3 * x, BATCH), atol=1e-6)
    assert jm.BetaAverage(np.ones((0, 3, 2))).interval()[0].shape == (0,)
    assert "k=3, shape=(2,)" in repr(average)
    with pytest.raises(AttributeError, match="frozen"):
        average.parameters = x


def test_density_integrates_to_one_and_cdf_rises() -> None:
    x, pdf, cdf = jm.convolve_betas(BATCH, num_points=2001)
    np.testing.assert_allclose(integrate.trapezoid(pdf, x), 1, atol=2e-6)
    np.testing.assert_allclose(integrate.trapezoid(pdf * x, x), 3 * jm.BetaAverage(BATCH).mean, rtol=1e-5)
    assert (np.diff(cdf) >= 0).all()


@pytest.mark.slow
def test_derivatives_equal_finite_differences() -> None:
    jax.config.update("jax_enable_x64", True)
    try:
        for parameters in (BATCH[0], BATCH[0, 1:], BATCH[0, 1:2]):
            for function in (
                lambda p: jm.beta_avg_inv_cdf(np.array([0.05, 0.5]), p),
                lambda p: jm.beta_avg_cdf(np.array([0.6, 0.8]), p),
                lambda p: jm.beta_avg_pdf(np.array([0.6, 0.8]), p),
            ):
                # eps: the nodes differ between whole and other parameters, and with them the value by 1e-8
                jax.test_util.check_grads(function, (parameters,), order=1, rtol=5e-5, atol=1e-7, eps=1e-3)
            average = jm.BetaAverage(parameters)
            jax.test_util.check_grads(average.cdf, (np.array([0.6, 0.8]),), order=1, rtol=1e-6)
            jax.test_util.check_grads(average.ppf, (np.array([0.05, 0.6]),), order=1, rtol=1e-6)
        for function in (lambda p: jm.BetaAverage(p).mode, lambda p: jnp.stack(jm.BetaAverage(p).interval(kind="hdi"))):
            jax.test_util.check_grads(function, (BATCH[0, :2],), order=1, modes=["rev"], rtol=1e-3, atol=1e-6, eps=1e-2)
    finally:
        jax.config.update("jax_enable_x64", False)


@pytest.mark.usefixtures("float64")
@pytest.mark.slow
def test_derivatives_under_jeffreys_prior_and_at_an_end() -> None:
    """Richardson's extrapolation of differences with wide steps; the shortest interval of a perfect class ends at 1."""

    def by_differences(function: Callable[[jax.Array], jax.Array], p: jax.Array) -> np.ndarray:
        def difference(h: float) -> np.ndarray:
            steps = h * np.eye(p.size).reshape(-1, *p.shape)
            return np.stack([(function(p + step) - function(p - step)) / (2 * h) for step in steps]).reshape(p.shape)

        return (4 * difference(0.02) - difference(0.04)) / 3

    for parameters in ([[20.5, 0.5], [7.5, 0.5]], [[20.5, 0.5], [10.5, 3.5], [7.5, 0.5]]):
        p = jnp.array(parameters)
        np.testing.assert_allclose(
            jax.grad(lambda p: jm.beta_avg_cdf(0.8, p))(p),
            by_differences(lambda p: jm.beta_avg_cdf(0.8, p), p),
            rtol=1e-4,
            atol=1e-6,
        )
    p = jnp.array([[20.0, 1.0]])
    for end in (lambda p: jm.BetaAverage(p).interval(0.9, "hdi")[0], lambda p: jm.BetaAverage(p).interval(0.9, "hdi")[1]):
        np.testing.assert_allclose(jax.grad(end)(p)[0, 0], by_differences(end, p)[0, 0], rtol=1e-4, atol=1e-9)


def test_nothing_is_nan_where_there_is_no_mass(x64: bool) -> None:
    for average in (jm.BetaAverage(BATCH[0]), jm.BetaAverage(BATCH[0, :1])):
        for function in (average.cdf, average.pdf, average.sf):
            for x in (-1.0, 0.0, 1e-3, 1.0, 2.0):
                assert np.isfinite(jax.grad(function)(x)), (function, x)
    assert np.isnan(jm.BetaAverage([[np.nan, 1.0]]).cdf(np.array([-1, 0.5, 2]))).all()


def test_mode(x64: bool) -> None:
    never_predicted = jm.balanced_accuracy_posterior([[0, 10], [0, 1000]])
    np.testing.assert_allclose(never_predicted.mode, 0.5, atol=1e-3)
    np.testing.assert_allclose(never_predicted.pdf(never_predicted.mode), 21.78, rtol=1e-3)
    modes = jm.BetaAverage(np.array([[1, 1], [1, 5], [5, 1], [0.5, 0.5], [3, 2]])[:, None]).mode
    np.testing.assert_allclose(modes, [0.5, 0, 1, 0.5, 2 / 3], rtol=1e-6)


def test_queries_of_odd_shapes() -> None:
    average = jm.BetaAverage(np.ones((3, 2, 2)))
    assert average.ppf(np.zeros((0, 1))).shape == (0, 3)
    assert average.sample(jax.random.key(0), (0,)).shape == (0, 3)
    with pytest.raises(ValueError, match=r"x of shape \(2,\) does not broadcast against the batch \(3,\)"):
        average.cdf(np.zeros(2))
    for shape in (3, (-1,)):
        with pytest.raises(ValueError, match="shape must be a tuple of sizes"):
            average.sample(jax.random.key(0), shape)  # type: ignore[arg-type]


def test_density_at_a_kink() -> None:
    """There the density is read a hair beside, where a float32 is 1e-3 off."""
    np.testing.assert_allclose(jm.beta_avg_pdf(np.array([0.25, 0.5, 0.75]), np.ones((2, 2))), [1, 2, 1], rtol=2e-3)


def test_highest_density_interval_and_mode() -> None:
    average = jm.BetaAverage(np.array([[[91.0, 11.0], [96.0, 6.0]], [[30.0, 1.0], [30.0, 1.0]]]))
    low, high = average.interval(0.9, kind="hdi")
    tails = average.interval(0.9)
    np.testing.assert_allclose(average.cdf(high) - average.cdf(low), 0.9, atol=1e-5)
    np.testing.assert_allclose(average.pdf(high) / average.pdf(low), 1, rtol=1e-2)
    assert (high - low < tails[1] - tails[0]).all()
    around = np.asarray(average.mode) + np.array([[-1e-2], [0], [1e-2]]) * np.array([1, 0.5])
    assert (np.asarray(average.pdf(around)).argmax(0) == 1).all()
    increasing = jm.BetaAverage(np.array([[20.0, 1.0]]))
    np.testing.assert_allclose(increasing.interval(0.9, kind="hdi"), (0.1 ** (1 / 20), 1), atol=1e-5)
    np.testing.assert_allclose(increasing.mode, 1, atol=1e-5)


@pytest.mark.parametrize("method", ["ppf", "betas"])
def test_samples_have_the_distribution(method: Any) -> None:
    average = jm.BetaAverage(BATCH)
    draws = average.sample(jax.random.key(1), (4000,), method=method)
    assert draws.shape == (4000, 2)
    for i in range(2):  # the 1e-4 quantile of Kolmogorov's statistic is 2.2 / sqrt(n)
        assert stats.kstest(np.asarray(average.cdf(draws))[:, i], "uniform").statistic < 2.2 / np.sqrt(4000)


def test_outside_and_undefined() -> None:
    average = jm.BetaAverage(BATCH[0])
    np.testing.assert_array_equal(average.cdf(np.array([-1.0, 0, 1, 2, np.nan])), [0, 0, 1, 1, np.nan])
    np.testing.assert_array_equal(average.pdf(np.array([-1.0, 2, np.nan])), [0, 0, np.nan])
    np.testing.assert_array_equal(average.ppf(np.array([-0.1, 0, 1, 1.1, np.nan])), [np.nan, 0, 1, np.nan, np.nan])
    for bad in (0.0, -1.0, np.nan, np.inf):
        for k in (1, 2):
            undefined = jm.BetaAverage(np.array([[2.0, 3.0], [bad, 1.0]])[-k:])
            for value in (undefined.mean, undefined.variance, undefined.cdf(0.5), undefined.ppf(0.5), *undefined.interval()):
                assert np.isnan(value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jm.BetaAverage(np.ones(2)), r"parameters must have shape \(\.\.\., k, 2\)"),
        (lambda: jm.BetaAverage(np.ones((3, 3))), r"got \(3, 3\)"),
        (lambda: jm.BetaAverage(BATCH).interval(1.5), "level must be"),
        (lambda: jm.BetaAverage(BATCH).interval(kind=cast(Any, "shortest")), "equal_tailed"),
        (lambda: jm.BetaAverage(BATCH).sample(jax.random.key(0), method=cast(Any, "x")), "method must be"),
        (lambda: jm.get_beta_parameters(np.ones((2, 2)), prior=0.0), "prior must be finite and at least 0.05"),
        (lambda: jm.get_beta_parameters(np.ones((2, 2)), prior=np.ones((3, 2))), r"\(K, 2\) = \(2, 2\)"),
        (lambda: jm.get_beta_parameters(np.ones((2, 3))), "counts must have shape"),
        (lambda: jm.convolve_betas(BATCH, num_points=0), "num_points"),
    ],
)
def test_mistakes_raise(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_priors() -> None:
    counts = np.array([[9, 1], [2, 8]])
    np.testing.assert_array_equal(jm.get_beta_parameters(counts, prior=0.5), [[9.5, 1.5], [8.5, 2.5]])
    np.testing.assert_array_equal(jm.get_beta_parameters(counts, prior=[2.0, 1.0]), [[11, 2], [10, 3]])
    np.testing.assert_array_equal(jm.get_beta_parameters(counts, prior=[[1.0, 2.0], [3.0, 4.0]]), [[10, 3], [11, 6]])
    assert np.isnan(jax.jit(lambda p: jm.get_beta_parameters(counts, prior=p))(-1.0)).all()
    np.testing.assert_array_equal(jm.get_beta_parameters(-counts), np.full((2, 2), np.nan))
