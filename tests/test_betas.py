"""Sums and averages of betas: on the host against reference cases, quadrature, mirrors and
differences; then the device.

Values are computed on the host, which takes no compiler. What only the device can get wrong
(float32, tracing, gradients) is compared with the host, in few programs that serve many parameters.
"""

import json
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special, stats

import jaxmetrics as jm
from jaxmetrics.betas import (
    BetaAverage,
    beta_avg_cdf,
    beta_avg_inv_cdf,
    beta_avg_pdf,
    beta_cdf,
    beta_ppf,
    beta_sum_cdf,
    beta_sum_pdf,
    convolve_betas,
    get_beta_parameters,
)

CASES = json.loads(
    (Path(__file__).parent / "data" / "beta_average.json").read_text(encoding="utf-8")
)


def errors_of(case: dict[str, Any], parameters: np.ndarray, mirror: Any) -> tuple[float, ...]:
    """The error of the cdf beyond the rounding of x, of quantiles and of the mean in standard
    deviations beyond one ulp.
    """
    average, x, q = BetaAverage(parameters), mirror(case["x"]), mirror(case["q"])
    quantile, mean, sd = average.ppf(q), average.mean, np.sqrt(case["variance"])
    assert_allclose(average.variance, case["variance"], rtol=1e-12)
    return (
        (abs(mirror(average.cdf(x)) - case["cdf"]) - average.pdf(x) * np.spacing(x)).max(),
        ((abs(mirror(quantile) - case["quantile"]) - np.spacing(quantile)) / sd).max(),
        (abs(mirror(mean) - case["mean"]) - np.spacing(mean)) / sd,
    )


def test_reference_cases() -> None:
    """As they stand, and with alpha and beta swapped."""
    found: dict[bool, list[tuple[float, ...]]] = {True: [], False: []}
    for case in CASES:
        if case["reference_error"] < 1e-9:
            parameters = np.stack([case["alpha"], case["beta"]], -1).astype(float)
            errors = found[bool(parameters.min() >= 21)]  # 20 right and 20 wrong
            errors.append(errors_of(case, parameters, np.asarray))
            errors.append(errors_of(case, parameters[:, ::-1], lambda v: 1 - np.asarray(v)))
    for soft, fewest, of_cdf in ((True, 20, 1e-10), (False, 40, 1e-7)):
        assert len(found[soft]) >= fewest
        assert (np.max(found[soft], 0) < [of_cdf, 2e-6, 1e-9]).all()


@pytest.mark.parametrize("k", [4, 6, 13])
def test_classes_without_examples_have_the_law_of_irwin_and_hall(k: int) -> None:
    """The sum of k uniforms: `sum_j (-1)^j C(k, j) (x - j)^k / k!`."""
    x = np.linspace(0.5, k - 0.5, 7)
    j = np.arange(k + 1)
    terms = (
        (-1.0) ** j * special.comb(k, j) * np.maximum(x[:, None] - j, 0) ** k / special.factorial(k)
    )
    assert_allclose(beta_sum_cdf(x, np.ones((k, 2))), terms.sum(-1), atol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_classes_without_examples_under_jeffreys_prior(k: int) -> None:
    """Poles meet at 0, 1, ..., k: against the Fourier series of k arcsine distributions, whose
    characteristic function is `exp(iw / 2) J_0(w / 2)`.
    """
    n, period = np.arange(1, 2**19), k + 1
    y = np.linspace(0.03, k / 2 - 0.04, 9)
    terms = special.j0(np.pi * n / period) ** k / (np.pi * n)
    ripple = [np.sin(2 * np.pi * n * z / period) @ terms for z in y]
    found = beta_sum_cdf(k / 2 + y, np.full((k, 2), 0.5))
    assert_allclose(found, 0.5 + y / period + ripple, atol=1e-7)


def narrower(k: int, factor: float, b: float) -> np.ndarray:
    """Perfect classes, each narrower than the last: no frequency is high enough for all."""
    return np.stack([b + 10 * factor ** np.arange(k), np.full(k, b)], -1)


def hard_ends_on_both_sides(b: float) -> np.ndarray:
    """Perfect classes beside classes that are never predicted: a kink within the sum."""
    return np.array([[10 + b, b], [b, 5 + b], [20 + b, b], [b, 8 + b], [30 + b, b]])


@pytest.mark.parametrize(
    ("parameters", "atol"),
    [
        (narrower(6, 3.0, 1.0), 2e-5),
        (narrower(8, 2.0, 1.0), 2e-5),
        (narrower(5, 3.0, 0.5), 1e-4),
        (hard_ends_on_both_sides(0.5), 2e-7),
        (hard_ends_on_both_sides(1.0), 2e-7),
    ],
    ids=lambda x: "",
)
def test_hard_ends_against_a_convolution_of_masses(parameters: np.ndarray, atol: float) -> None:
    """On a fine grid; each mass lies in the middle of its cell."""
    k, cells = len(parameters), 2**17
    edges = np.linspace(0, 1, cells + 1)
    masses = [np.fft.rfft(np.diff(stats.beta(*p).cdf(edges)), k * cells) for p in parameters]
    reached = np.cumsum(np.fft.irfft(np.prod(masses, 0)))
    at = np.flatnonzero((reached > 1e-6) & (reached < 1 - 1e-3))[:: cells // 200]
    assert len(at) > 20
    found = beta_sum_cdf((at + 1 + (k - 1) / 2) / cells, parameters)
    assert_allclose(found, reached[at], atol=atol)


@pytest.mark.parametrize("k", [1, 5, 100])
def test_a_class_without_data_beside_many_examples(k: int) -> None:
    """One uniform class and k that are 1e4 times narrower: the sum is uniform but for that."""
    average = BetaAverage(np.array([[1, 1]] + [[9e7, 1e7]] * k))
    u = np.linspace(0.02, 0.98, 25)
    x = (u + 0.9 * k) / (k + 1)
    assert_allclose(average.cdf(x), u, atol=1e-11)
    assert_allclose(average.pdf(x), k + 1, rtol=1e-8)


@pytest.mark.parametrize(
    "shape", [(8.0, 4.0), (0.5, 0.5), (1.0, 1.0), (1e8, 3.0), (0.1, 5.0), (2.37, 1.24)]
)
def test_one_class_is_the_beta(shape: tuple[float, float]) -> None:
    average, beta = BetaAverage(np.array([shape])), stats.beta(*shape)
    q = np.array([1e-3, 0.025, 0.5, 0.975])
    x = average.ppf(q)
    assert_allclose(x, beta.ppf(q), rtol=1e-8, atol=1e-8 * beta.std())
    assert_allclose(average.interval(1 - 1e-9), (beta.ppf(5e-10), beta.isf(5e-10)), rtol=1e-6)
    assert_allclose(beta_ppf(0.3, *shape), average.ppf(0.3), rtol=1e-12)
    if shape[0] < 1e7:
        assert_allclose(average.cdf(x), beta.cdf(x), atol=1e-12)
        assert_allclose(average.pdf(x), beta.pdf(x), rtol=1e-11)
    assert_allclose(average.variance, beta.var(), rtol=1e-12)


BATCH = np.array([[[3.0, 1.0], [12.0, 2.0], [4.0, 4.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]])


def on_device(average: BetaAverage) -> BetaAverage:
    return jax.tree.map(jnp.asarray, average)


def answers(parameters: Any, x: Any, q: Any) -> dict[str, Any]:
    average = BetaAverage(parameters)
    return {
        "mean": average.mean,
        "variance": average.variance,
        "cdf": average.cdf(x),
        "sf": average.sf(x),
        "pdf": average.pdf(x),
        "ppf": average.ppf(q),
        "interval": average.interval(0.9),
        "hdi": average.interval(0.9, "hdi"),
        "mode": average.mode,
    }


# Ordinary classes, a perfect one, three, Jeffreys' prior without and with data, no data, one class
# far narrower, many examples.
THREE = np.array(
    [
        [[91.0, 11.0], [46.0, 6.0], [30.0, 9.0]],
        [[11.0, 1.0], [12.0, 2.0], [4.0, 4.0]],
        [[11.0, 1.0], [101.0, 1.0], [6.0, 1.0]],
        [[0.5, 0.5], [0.5, 0.5], [0.5, 10.5]],
        [[20.5, 0.5], [10.5, 3.5], [7.5, 0.5]],
        [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]],
        [[3.0, 1.0], [2.0, 2.0], [1e5, 3.0]],
        [[9e6, 1e6], [8e6, 2e6], [7e6, 1e6]],
    ]
)
LEVELS = np.array([1e-3, 0.05, 0.3, 0.5, 0.9, 0.999])[:, None]


def test_the_device_answers_as_the_host() -> None:
    """One program for all matrices: the quadrature runs only for those that need it. x are floats
    of 32 bits.
    """
    x = np.float32(BetaAverage(THREE).ppf(LEVELS)).astype(float)
    host = answers(THREE, x, LEVELS)
    program = jax.jit(answers)(*map(jnp.asarray, (THREE, x, LEVELS)))
    device = {name: np.asarray(v, float) for name, v in program.items()}
    sd = np.sqrt(host["variance"])
    for name in ("mean", "variance"):
        assert_allclose(device[name], host[name], rtol=1e-5)
    for name in ("cdf", "sf"):
        assert_allclose(device[name], host[name], atol=2e-5)
    ordinary, smooth = [0, 1, 2, 4, 7], [0, 1, 4]
    assert_allclose(device["pdf"][:, ordinary], host["pdf"][:, ordinary], rtol=1e-2)
    for name in ("ppf", "interval"):
        error = abs(device[name] - host[name]) - np.spacing(np.float32(host[name]))
        assert (error < 2e-4 * sd).all(), (name, error / sd)
    for name in ("hdi", "mode"):
        error = abs(device[name] - host[name])[..., smooth] / sd[smooth]
        assert (error < 2e-2).all(), (name, error)


@pytest.mark.parametrize("k", [14, 1000])
def test_many_classes_on_the_device(k: int) -> None:
    """Fourteen, of which some are hard; a thousand are resolved by the frequencies."""
    rng = np.random.default_rng(0)
    a = 10 ** rng.uniform(0.5, 3, (2, k))
    parameters = np.stack([a, np.where(np.arange(k) < 5, 1.0, 1 + rng.poisson(3, (2, k)))], -1)
    parameters[0, 5:] *= 30
    host = BetaAverage(parameters)
    x = np.float32(host.ppf(LEVELS)).astype(float)
    rounding = host.pdf(x) * np.spacing(np.float32(x))
    device = np.asarray(beta_avg_cdf(jnp.asarray(x), jnp.asarray(parameters)), float)
    assert (abs(device - host.cdf(x)) - rounding).max() < 5e-5


def test_batches_and_the_functional_forms() -> None:
    q, average = np.array([[0.1], [0.5], [0.9]]), BetaAverage(BATCH)
    x = average.ppf(q)
    assert average.shape == (2,)
    assert x.shape == (3, 2)
    assert_allclose(beta_avg_inv_cdf(q, BATCH), x, rtol=1e-12)
    assert_allclose(average.cdf(x), np.broadcast_to(q, x.shape), atol=1e-12)
    assert_allclose(beta_avg_pdf(x, BATCH), 3 * beta_sum_pdf(3 * x, BATCH), rtol=1e-10)
    assert_allclose(beta_avg_cdf(x, BATCH), beta_sum_cdf(3 * x, BATCH), atol=1e-12)
    on_device = average.cdf(jnp.asarray(x))
    assert isinstance(on_device, jax.Array)
    assert_allclose(on_device, average.cdf(x), atol=1e-6)
    assert BetaAverage(np.ones((0, 3, 2))).interval()[0].shape == (0,)
    assert repr(average).startswith("2 averages of betas: ")
    with pytest.raises(AttributeError):
        average.parameters = x  # type: ignore[misc]


def test_density_integrates_to_one_and_cdf_rises() -> None:
    x, pdf, cdf = convolve_betas(BATCH, num_points=2001)
    assert_allclose(integrate.trapezoid(pdf, x), 1, atol=2e-6)
    assert_allclose(integrate.trapezoid(pdf * x, x), 3 * BetaAverage(BATCH).mean, rtol=1e-5)
    assert (np.diff(cdf) >= 0).all()


def values_at(parameters: Any, points: Any, levels: Any, *, shortest: bool = True) -> Any:
    """The cdf and the density at two points, two quantiles, the mode and the ends of the shortest
    interval.
    """
    average = BetaAverage(parameters)
    values = average.cdf(points), average.pdf(points), average.ppf(levels)
    values += ([average.mode, *average.interval(0.9, "hdi")],) if shortest else ()
    return (
        np.concatenate(values)
        if isinstance(values[0], np.ndarray)
        else jnp.concatenate(jax.tree.map(jnp.atleast_1d, [*values[:3], *values[-1]]))
    )


def by_differences(
    function: Callable[[np.ndarray], np.ndarray], p: np.ndarray, step: float = 0.02
) -> np.ndarray:
    """Richardson's extrapolation of differences on the host, of which the function takes all at
    once and puts them last.
    """

    def difference(h: float) -> np.ndarray:
        steps = h * np.eye(p.size).reshape((-1, *p.shape))
        slopes = (function(p + steps) - function(p - steps)) / (2 * h)
        return slopes.reshape((-1, *p.shape))

    return (4 * difference(step) - difference(2 * step)) / 3


def jacobians_and_values(parameters: Any, points: Any, levels: Any) -> tuple[Any, Any]:
    def twice(*arguments: Any) -> tuple[Any, Any]:
        value = values_at(*arguments)
        return value, value

    return jax.jacrev(twice, argnums=(0, 1, 2), has_aux=True)(parameters, points, levels)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("matrices", "smooth"),
    [
        # Differences at 0.5 would reach below what averages of three classes take.
        (np.maximum(THREE[[0, 1, 4, 5]], 0.55), [True, False, False, False]),
        (np.array([[[12.0, 2.0]], [[20.0, 1.0]]]), [True, True]),
    ],
    ids=["three classes", "one class"],
)
def test_values_and_derivatives_by_parameters_x_and_q(
    matrices: np.ndarray, smooth: list[bool]
) -> None:
    """Under vmap and jit, against the host and its differences: soft, perfect, Jeffreys, no data;
    an interval ending at 1.
    """
    points, levels = np.array([0.6, 0.8]), np.array([0.1, 0.5])
    program = jax.jit(jax.vmap(jacobians_and_values, (0, None, None)))
    jacobians, values = program(*(jnp.asarray(v) for v in (matrices, points, levels)))
    columns = points[:, None], levels[:, None]
    for i, p in enumerate(matrices):
        size = 9 if smooth[i] else 6
        by_parameters, by_x, by_q = (np.asarray(jacobian[i]) for jacobian in jacobians)
        assert_allclose(values[i][:6], values_at(p, points, levels)[:6], rtol=1e-10, atol=1e-12)
        expected = by_differences(
            partial(values_at, points=columns[0], levels=columns[1], shortest=smooth[i]), p
        )
        assert_allclose(by_parameters[:6], expected[:6], rtol=1e-4, atol=2e-6)
        # A mode at 1 has no derivative by beta = 1.
        free = slice(0, 1 if p[0, 1] == 1 and len(p) == 1 else 2)
        assert_allclose(by_parameters[6:size, :, free], expected[6:, :, free], rtol=1e-3, atol=1e-6)
        first = partial(values_at, np.stack([p, p]), shortest=False)
        by_differences_x = by_differences(lambda x: first(x.T, columns[1]), points, 1e-3)  # noqa: B023  # called at once
        by_differences_q = by_differences(lambda q: first(columns[0], q.T), levels, 1e-3)  # noqa: B023  # called at once
        assert_allclose(by_x[:6], by_differences_x, rtol=1e-4, atol=1e-4)
        assert_allclose(by_q[:6], by_differences_q, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("function", "x", "a", "b"),
    [
        (beta_cdf, 0.3, 2.0, 3.0),
        (beta_cdf, 0.62, 0.3, 0.9),
        (beta_ppf, 0.975, 15.5, 5.5),
    ],
)
def test_second_derivatives_of_one_beta(
    function: Callable[..., Any], x: float, a: float, b: float
) -> None:
    """Against differences of the first derivatives, also across arguments."""
    at, step = np.array([x, a, b]), 1e-5 * np.eye(3)
    gradient = jax.jit(jax.vmap(jax.grad(lambda v: function(*v))))
    expected = (gradient(at + step) - gradient(at - step)) / 2e-5
    got = jax.jit(jax.hessian(lambda v: function(*v)))(jnp.asarray(at))
    assert_allclose(got, expected, rtol=1e-5, atol=1e-7)


def test_nothing_is_nan_where_there_is_no_mass() -> None:
    for parameters in (BATCH[0], BATCH[0, :1]):
        average = on_device(BetaAverage(parameters))
        for function in (average.cdf, average.pdf, average.sf):
            x = jnp.array([-1.0, 0.0, 1e-3, 1.0, 2.0])
            assert np.isfinite(jax.jvp(function, (x,), (jnp.ones(5),))[1]).all(), function
    assert np.isnan(BetaAverage([[np.nan, 1.0]]).cdf(np.array([-1, 0.5, 2]))).all()


def test_mode() -> None:
    never_predicted = jm.balanced_accuracy_posterior([[0, 10], [0, 1000]])
    assert_allclose(never_predicted.mode, 0.5, atol=1e-3)
    assert_allclose(never_predicted.pdf(never_predicted.mode), 21.78, rtol=1e-3)
    modes = BetaAverage(np.array([[1, 1], [1, 5], [5, 1], [0.5, 0.5], [3, 2]])[:, None]).mode
    assert_allclose(modes, [0.5, 0, 1, 0.5, 2 / 3], rtol=1e-6)


def test_queries_of_odd_shapes() -> None:
    average = BetaAverage(np.ones((3, 2, 2)))
    assert average.ppf(np.zeros((0, 1))).shape == (0, 3)
    assert average.sample(jax.random.key(0), (0,)).shape == (0, 3)


def test_density_at_a_kink() -> None:
    """There the density is read a hair beside."""
    assert_allclose(beta_avg_pdf([0.25, 0.5, 0.75], np.ones((2, 2))), [1, 2, 1], rtol=1e-6)


def test_highest_density_interval_and_mode() -> None:
    average = BetaAverage(np.array([[[91.0, 11.0], [96.0, 6.0]], [[30.0, 1.0], [30.0, 1.0]]]))
    low, high = average.interval(0.9, kind="hdi")
    tails = average.interval(0.9)
    assert_allclose(average.cdf(high) - average.cdf(low), 0.9, atol=1e-5)
    assert_allclose(average.pdf(high) / average.pdf(low), 1, rtol=1e-2)
    assert (high - low < tails[1] - tails[0]).all()
    around = np.asarray(average.mode) + np.array([[-1e-2], [0], [1e-2]]) * np.array([1, 0.5])
    assert (np.asarray(average.pdf(around)).argmax(0) == 1).all()
    increasing = BetaAverage(np.array([[20.0, 1.0]]))
    assert_allclose(increasing.interval(0.9, kind="hdi"), (0.1 ** (1 / 20), 1), atol=1e-5)
    assert_allclose(increasing.mode, 1, atol=1e-5)


@pytest.mark.parametrize("method", ["ppf", "betas"])
@pytest.mark.parametrize("place", [lambda average: average, on_device], ids=["host", "device"])
def test_samples_have_the_distribution(method: Any, place: Any) -> None:
    average = place(BetaAverage(THREE))
    draws = average.sample(jax.random.key(1), (4000,), method=method)
    assert draws.shape == (4000, 8)
    reached = BetaAverage(THREE).cdf(np.asarray(draws, float))
    # The 1e-4 quantile of Kolmogorov's statistic is 2.2 / sqrt(n); float32 does not resolve the
    # last.
    for i in range(7):
        assert stats.kstest(reached[:, i], "uniform").statistic < 2.2 / np.sqrt(4000)


def test_keys_of_samples() -> None:
    average, rng = BetaAverage(BATCH), np.random.default_rng(0)
    assert_array_equal(average.sample(3, (5,)), average.sample(3, (5,)))
    assert (average.sample(rng, (5,)) != average.sample(rng, (5,))).all()


def test_outside_and_undefined() -> None:
    average = BetaAverage(BATCH[0])
    x = np.array([-1.0, 0, 1, 2, np.nan])
    assert_array_equal(average.cdf(x), [0, 0, 1, 1, np.nan])
    assert_array_equal(average.pdf(x[[0, 3, 4]]), [0, 0, np.nan])
    assert_array_equal(average.ppf(x), [np.nan, 0, 1, np.nan, np.nan])
    for bad in (np.nan, np.inf):
        for parameters in ([[bad, 1.0]], [[2.0, 3.0], [bad, 1.0]]):
            undefined = BetaAverage(np.array(parameters))
            values = undefined.mean, undefined.variance, undefined.cdf(0.5), undefined.ppf(0.5)
            assert np.isnan([*values, *undefined.interval()]).all()


LEAST = "parameters of the beta distributions must be at least"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: BetaAverage(np.ones(2)), r"parameters must have shape \(\.\.\., k, 2\)"),
        (lambda: BetaAverage(np.ones((3, 3))), r"got \(3, 3\)"),
        (lambda: BetaAverage(np.array([[2.0, 3.0], [0.0, 1.0]])), LEAST),
        (lambda: BetaAverage(np.array([[2.0, 3.0], [-1.0, 1.0]])), LEAST),
        (lambda: BetaAverage(BATCH).interval(1.5), "level must be"),
        (lambda: BetaAverage(BATCH).interval(kind=cast(Any, "shortest")), "equal_tailed"),
        (
            lambda: BetaAverage(np.ones((3, 2, 2))).cdf(np.zeros(2)),
            r"x has shape \(2,\), which does not broadcast against the batch axes \(3,\)",
        ),
        (lambda: BetaAverage(BATCH).sample(0, method=cast(Any, "x")), "method must be"),
        (lambda: BetaAverage(BATCH).sample(0, cast(Any, 3)), "shape must be a tuple of ints"),
        (lambda: BetaAverage(BATCH).sample(0, (-1,)), "shape must be a tuple of ints"),
        (lambda: BetaAverage(BATCH).sample(cast(Any, "seed")), "key must be"),
        (
            lambda: get_beta_parameters(np.ones((2, 2)), prior=0.0),
            "prior must be finite and at least 0.05",
        ),
        (
            lambda: get_beta_parameters(np.ones((2, 2)), prior=np.ones((3, 2))),
            r"\(K, 2\) = \(2, 2\)",
        ),
        (lambda: get_beta_parameters(np.ones((2, 3))), "counts must have shape"),
        (lambda: convolve_betas(BATCH, num_points=0), "num_points"),
    ],
)
def test_mistakes_raise(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize(
    ("prior", "parameters"),
    [
        (0.5, [[9.5, 1.5], [8.5, 2.5]]),
        ([2.0, 1.0], [[11, 2], [10, 3]]),
        ([[1.0, 2.0], [3.0, 4.0]], [[10, 3], [11, 6]]),
    ],
)
def test_priors(prior: Any, parameters: Any) -> None:
    counts = np.array([[9, 1], [2, 8]])
    assert_array_equal(get_beta_parameters(counts, prior=prior), parameters)


def test_impossible_values_in_jax_arrays_make_nan() -> None:
    counts = jnp.array([[9, 1], [2, 8]])
    assert np.isnan(jax.jit(lambda p: get_beta_parameters(counts, prior=p))(-1.0)).all()
    assert np.isnan(get_beta_parameters(-counts)).all()


def test_tails_of_ordinary_counts_are_numbers() -> None:
    counts = jnp.array([[900, 100], [100, 900]])
    assert jm.no_information_test(counts).p_value < 1e-7
    assert jm.accuracy_posterior(counts).sf(0.5) == 1


@pytest.mark.parametrize("prior", [0.2, 0.25, 0.35, 0.5])
@pytest.mark.parametrize("counts", [[[20, 0], [0, 0]], [[0, 0], [3, 500]], [[4, 1], [0, 0]]])
def test_poles_of_two_classes_meet(prior: float, counts: list[list[int]]) -> None:
    """Against SciPy's integral of `P(R <= z - a)` over the quantiles of A."""
    (a, b), (c, d) = get_beta_parameters(counts, prior=prior)

    def cdf(z: float) -> float:
        def below(u: float) -> float:
            return float(special.betainc(c, d, np.clip(z - special.betaincinv(a, b, u), 0, 1)))

        cuts = [0.0, *special.betainc(a, b, np.clip([z - 1, z], 0, 1)), 1.0]
        parts = (integrate.quad(below, *ends, epsabs=1e-9) for ends in pairwise(cuts))
        return sum(part[0] for part in parts)

    z = np.array([0.3, 0.9, 1.2, 1.7])
    found = jm.balanced_accuracy_posterior(counts, prior=prior).cdf(z / 2)
    assert_allclose(found, [cdf(x) for x in z], atol=1e-6)


@pytest.mark.parametrize(("k", "least"), [(2, 0.2), (3, 0.5)])
def test_priors_that_were_not_verified_are_refused(k: int, least: float) -> None:
    below = least - 0.05
    with pytest.raises(ValueError, match=f"prior must be finite and at least {least}"):
        jm.balanced_accuracy_posterior(np.eye(k), prior=below)
    with pytest.raises(ValueError, match=f"{LEAST} {least}"):
        BetaAverage(np.full((k, 2), below))
    hidden = jax.jit(lambda p: jm.balanced_accuracy_posterior(np.eye(k), prior=p).mean)
    assert np.isnan(hidden(jnp.full((k, 2), below)))
    assert np.isfinite(hidden(jnp.full((k, 2), least)))
    assert np.isfinite(jm.recall_posterior(np.eye(k), prior=0.1).mean).all()


@pytest.mark.parametrize(("a", "b"), [(1, 1e9), (0.5, 9e8), (2, 1e9), (1e9, 1)])
def test_windows_below_the_last_digit_of_float32(a: float, b: float) -> None:
    x = np.array([1e-9, 3e-9, 1e-6, 0.5], np.float32)
    found = beta_cdf(jnp.asarray(x), jnp.float32(a), jnp.float32(b))
    assert_allclose(found, special.betainc(a, b, x.astype(float)), atol=1e-5)
