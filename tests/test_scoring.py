"""Scores and calibration: against scikit-learn, float64 loops from the definitions, and what peers
get wrong, on the host; the device by comparison with the host.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, special, stats
from sklearn import calibration, metrics

from jaxmetrics._arguments.example_arguments import are_distributions
from jaxmetrics.scoring import (
    brier_score,
    calibration_bins,
    calibration_curve,
    calibration_error,
    calibration_interval,
    d2_brier_score,
    d2_log_loss_score,
    fit_temperature,
    log_loss,
    normalized_entropy,
    ranked_probability_score,
    score_decomposition,
    spherical_score,
    top_label,
    two_class,
)

K, N = 4, 40
close = partial(assert_allclose, rtol=1e-12)
rng = default_rng(12)
P = rng.dirichlet(0.7 * np.ones(K), N).astype(np.float32)
# -1 is dropped.
Y = np.where(rng.random(N) < 0.5, P.argmax(-1), rng.integers(-1, K, N)).astype(np.int32)
Z = (3 * np.log(P) + rng.normal(size=P.shape)).astype(np.float32)
# Rounded: ties with each other and with edges.
EVENT_P = np.round(rng.random(N), 2).astype(np.float32)
EVENT_P[:3] = [0, 1, 1]
EVENT_Y = np.where(rng.random(N) < 0.1, -1, rng.random(N) < EVENT_P**1.5).astype(np.int32)
W = rng.permutation(np.arange(N) % 3).astype(np.float32)
W[np.flatnonzero(W == 0)[: N - int(W.sum())]] = (
    1  # a sum of N, so that rows written out have the same shape
)


COUNTED = Y >= 0
BINARY = EVENT_Y >= 0


@pytest.mark.parametrize("num_classes", [2, 5])
def test_equal_scikit_learn(num_classes: int) -> None:
    draw = default_rng(num_classes)
    y = draw.integers(0, num_classes, 300)
    p = np.round(draw.dirichlet(np.ones(num_classes), 300), 3)  # ties, and zeros
    p[:, -1] = 1 - p[:, :-1].sum(-1)
    p = np.clip(p, 0, 1)
    single = np.zeros(300, int)
    for weights in (np.ones(300, np.float32), draw.exponential(size=300).astype(np.float32)):
        ours: dict[str, Any] = {"sample_weight": weights}
        theirs = ours | {"labels": np.arange(num_classes)}
        for truth in (y, single):
            close(log_loss(truth, p, **ours), metrics.log_loss(truth, p, **theirs))
        close(d2_log_loss_score(y, p, **ours), metrics.d2_log_loss_score(y, p, **theirs))
        if num_classes == 2:
            close(brier_score(y, p, **ours), metrics.brier_score_loss(y, p[:, 1], **ours))
        if hasattr(metrics, "d2_brier_score"):
            for half in ("auto", True, False):
                expected = metrics.brier_score_loss(y, p, scale_by_half=half, **theirs)
                close(brier_score(y, p, scale_by_half=half, **ours), expected)
            close(d2_brier_score(y, p, **ours), metrics.d2_brier_score(y, p, **theirs))
    for score in (normalized_entropy, d2_log_loss_score, d2_brier_score):
        assert np.isnan(score(single, p, sample_weight=weights))


@pytest.mark.skipif(not hasattr(metrics, "d2_brier_score"), reason="of scikit-learn 1.8")
@pytest.mark.parametrize("num_labels", [2, 4])
def test_scores_of_several_hot_truth_equal_scikit_learns(num_labels: int) -> None:
    draw = default_rng(num_labels)
    true = draw.random((200, num_labels)) < [0.5, 0.2, 0.9, 0.4][:num_labels]
    p, shares = draw.random(true.shape), true.astype(float)
    options: dict[str, Any] = {"sample_weight": draw.exponential(size=200)}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The y_prob values do not sum to one")
        close(d2_brier_score(shares, p, **options), metrics.d2_brier_score(true, p, **options))
        for half in ("auto", True, False):
            options["scale_by_half"] = half
            close(brier_score(shares, p, **options), metrics.brier_score_loss(true, p, **options))


PROPER = (log_loss, brier_score, spherical_score, ranked_probability_score)
ALL_PROPER = (*PROPER, normalized_entropy, d2_log_loss_score, d2_brier_score)


@pytest.mark.quick
def test_one_hot_truth_scores_as_its_classes() -> None:
    y, options = np.maximum(Y, 0), {"sample_weight": W, "where": COUNTED}
    for score in ALL_PROPER:
        expected = score(y, P, **options)
        close(score(np.eye(K)[y], P, **options), expected)
        assert_allclose(score(jnp.eye(K)[y], P, **options), expected, rtol=2e-6)


def test_scores_of_soft_truth_equal_loops() -> None:
    """Averages over the classes that t may be, but distances to t itself."""
    t = rng.dirichlet(np.ones(K), N)
    t[0] = np.eye(K)[1]
    z, p, w = (x.astype(float) for x in (Z, P, W))
    f = np.average(t, 0, weights=w)
    constant = np.average(((f - t) ** 2).sum(-1), weights=w)
    score_of: dict[Callable[..., Any], Any] = {
        log_loss: -(t * np.log(p)).sum(-1),
        spherical_score: (t * p).sum(-1) / np.linalg.norm(p, axis=1),
        normalized_entropy: (t * np.log(p)).sum(-1) / (f * np.log(f)).sum(),
        brier_score: ((p - t) ** 2).sum(-1),
        d2_brier_score: 1 - ((p - t) ** 2).sum(-1) / constant,
        ranked_probability_score: (np.cumsum(p - t, -1)[:, :-1] ** 2).mean(-1),
    }
    for score, expected in score_of.items():
        close(score(t, p, sample_weight=w), np.average(expected, weights=w))
    softmax = special.softmax(z, -1)
    close(log_loss(t, logits=z, sample_weight=w), log_loss(t, softmax, sample_weight=w))
    impossible = np.where(t == 0, -np.inf, z)  # which is never true
    assert np.isfinite(log_loss(t, logits=impossible))
    assert np.isnan(d2_brier_score(np.tile(t[1], (N, 1)), p, sample_weight=w))


def test_soft_truth_that_is_none() -> None:
    t = p = np.full((2, 3), 1 / 3)
    message = "the shares of all classes, one-hot or soft, y_true must contain floats"
    for score in ALL_PROPER:
        # Classes of Brier scores need not exclude one another.
        for bad in (t * np.nan, *([] if score in (brier_score, d2_brier_score) else [2 * t])):
            with pytest.raises(ValueError, match=r"y_true\[0"):
                score(bad, p)
        assert np.isnan(score(jnp.asarray(4 * t), jnp.asarray(p)))
        with pytest.raises(ValueError, match=message):
            score(np.eye(3, dtype=int), np.eye(3))


def test_logits_keep_their_digits() -> None:
    """Where float32 probabilities, cut at eps, say 11.168 for 11.253, and bfloat16 losses are wrong
    in the third digit.
    """
    draw = default_rng(0)
    z = (30 * draw.normal(size=(2000, 10))).astype(np.float32)
    y = draw.integers(0, 10, 2000)
    half = jnp.asarray(z, jnp.bfloat16)
    for host, device in ((z, jnp.asarray(z)), (np.asarray(half), half)):
        wide = host.astype(float)
        exact = (special.logsumexp(wide, -1) - wide[np.arange(2000), y]).mean()
        close(log_loss(y, logits=host), exact)
        assert_allclose(log_loss(y, logits=device), exact, rtol=1e-6)
    assert log_loss(y, special.softmax(z, -1)) < 0.8 * exact


@pytest.mark.parametrize(
    ("label", "z", "loss"),
    [
        (0, [1e4, -1e4], 0),
        (1, [1e4, -1e4], 2e4),
        (0, [1000.0, 970.0], np.log1p(np.exp(-30))),  # logsumexp - z_y is 0 in float32
        (0, [0.0, -np.inf], 0),
        (1, [-np.inf, 3.0], 0),
        (1, [0.0, -np.inf], np.inf),
    ],
)
def test_extreme_logits(label: int, z: list[float], loss: float) -> None:
    close(log_loss([label], logits=[z]), loss)


def test_impossible_logits() -> None:
    z = jnp.array([[[jnp.inf, 0.0]], [[-jnp.inf, -jnp.inf]], [[jnp.nan, 0.0]]])
    assert np.isnan(log_loss(jnp.array([0]), logits=z)).all()
    z = jnp.array([[1e4, -1e4, 2.0], [3.0, 3.0, -jnp.inf]])
    slope = jax.grad(lambda z: log_loss([1, 0], logits=z))(z)
    assert_allclose(slope, [[0.5, -0.5, 0], [-0.25, 0.25, 0]], atol=1e-6)


def test_eps_is_that_of_the_given_dtype(x64: bool) -> None:
    wrong, y = np.array([[0.0, 1.0]]), np.array([0])
    for dtype in (np.float32, np.float64, jnp.bfloat16, np.float16, np.int32):
        given = wrong.astype(dtype)
        eps = float(jnp.finfo(np.float64 if dtype == np.int32 else dtype).eps)
        close(log_loss(y, given), -np.log(eps))
        of_device = log_loss(jnp.asarray(y), given)
        eps = max(eps, float(np.finfo(np.float64 if x64 else np.float32).eps))
        assert_allclose(of_device, -np.log(eps), rtol=1e-6)
    assert np.isfinite(jax.grad(lambda p: log_loss([0], p))(jnp.asarray(wrong, jnp.float32))).all()


def test_rare_classes_keep_their_digits() -> None:
    """1 - f and ln f of the common class have four digits in float32 at f = 1 - 1e-4."""
    n, f = 10**5, 1e-4
    y = (np.arange(n) < 10).astype(np.int8)
    p = np.where(y == 1, 0.01, f).astype(np.float32)
    exact = p.astype(float)
    entropy, variance = -f * np.log(f) - (1 - f) * np.log1p(-f), f * (1 - f)
    logits = np.stack([np.zeros(n), special.logit(exact)], -1)
    entropies = -np.where(y == 1, np.log(exact), np.log1p(-exact)).mean() / entropy
    skill = 1 - ((exact - y) ** 2).mean() / variance
    close(normalized_entropy(y, logits=logits), entropies, rtol=1e-10)
    close(d2_brier_score(y, two_class(p)), skill, atol=1e-12)
    alike = jnp.full(n, 0.37)  # of which float32 rounds the sums
    of_device = normalized_entropy(y, logits=jnp.asarray(logits), sample_weight=alike)
    assert_allclose(of_device, entropies, rtol=2e-6)
    of_device = d2_brier_score(y, two_class(jnp.asarray(p)), sample_weight=alike)
    assert_allclose(of_device, skill, atol=2e-7)


def test_sums_do_not_drift() -> None:
    """A million equal values, whose running sum in float32 is off by 1 %; weights too."""
    p = jnp.full(10**6, 0.3)
    zeros = np.zeros(10**6, np.int8)
    assert_allclose(log_loss(zeros, two_class(p)), -np.log1p(-0.3), rtol=1e-6)
    assert_allclose(brier_score(zeros, two_class(p), sample_weight=p), 0.09, rtol=1e-6)
    assert_allclose(calibration_bins(zeros, p, sample_weight=p).sum(-2), [3e5, 9e4, 0], rtol=3e-6)
    close(calibration_bins(zeros, np.full(10**6, 0.3)).sum(-2), [1e6, 3e5, 0], rtol=1e-10)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.nan, "nan, not a number; use where="),
        (-0.1, r"-0.1, but .* \[0, 1\]"),
        (1.1, "1.1, but .* softmax"),
        (np.inf, "inf, but "),
    ],
)
def test_impossible_probabilities_are_named_on_the_host(bad: float, message: str) -> None:
    y, rows, first = [0, 1], np.array([[0.5, 0.25, 0.25], [0.5, 0.5, bad]]), [True, False]
    for score in (*PROPER, d2_brier_score, normalized_entropy, top_label(calibration_error)):
        with pytest.raises(ValueError, match=r"y_prob\[1, 2\] is " + message):
            score(y, rows)
        if score in PROPER:
            assert np.isfinite(score([0, -1], rows))
        score(y, rows, where=first)
        score(y, rows, sample_weight=[1, 0])
    for function in (
        calibration_bins,
        partial(calibration_error, strategy="quantile"),
        partial(score_decomposition, strategy="uniform"),
    ):
        with pytest.raises(ValueError, match=r"y_prob\[1\] is " + message):
            function(y, [0.5, bad])
        function([0, -1], [0.5, bad])


def test_rounding_is_no_mistake() -> None:
    """Of the dtype in which probabilities came, and of float32, in which those of lists may have
    been computed.
    """
    draw = default_rng(0)
    y, exact = draw.integers(0, 50, 200), special.softmax(3 * draw.normal(size=(200, 50)), -1)
    narrow = [exact.astype(dtype) for dtype in (float, np.float32, np.float16, jnp.bfloat16)]
    for rows in (*narrow, narrow[1].astype(float)):
        assert np.isfinite([score(y, rows) for score in PROPER]).all()
    by_rounding = np.nextafter(np.float32(1), np.float32(2))
    for one in (by_rounding, float(by_rounding)):
        assert calibration_error([1], [one]) == 0
        assert np.isfinite(log_loss([1], [[0, one]]))
    message = r"the sum of y_prob\[1\] is 1\.\d+, but probabilities of all classes sum to 1:"
    for dtype, total in ((np.float64, 1.003), (np.float32, 1.003), (np.float16, 1.1)):
        rows = np.array([[0.5, 0.5], [0.5, total - 0.5]], dtype)
        with pytest.raises(ValueError, match=message):
            brier_score([0, 1], rows)
        assert np.isfinite(brier_score([0, -1], rows))


@pytest.mark.quick
@pytest.mark.parametrize("num_classes", [2, 3, 12, 100])
@pytest.mark.parametrize("decimals", [3, 4])
def test_probabilities_rounded_to_a_few_decimals_are_accepted(
    num_classes: int, decimals: int
) -> None:
    """As files hold them; reports and scores agree."""
    draw = default_rng(num_classes)
    logits = draw.normal(size=(2000, num_classes))
    y, rows = draw.integers(0, num_classes, 2000), special.softmax(logits, -1).round(decimals)
    assert are_distributions(rows).all()
    for score in (*PROPER, top_label(calibration_error)):
        assert np.isfinite(score(y, rows))
    for wrong, message in (
        (logits, r"probabilities lie in \[0, 1\]"),
        (100 * rows, r"probabilities lie in \[0, 1\]"),
        (special.expit(logits), "probabilities of all classes sum to 1"),
        (rows[:, 1:] if num_classes > 2 else rows / 2, "probabilities of all classes sum to 1"),
    ):
        assert not are_distributions(wrong).all()
        with pytest.raises(ValueError, match=message):
            brier_score(y % wrong.shape[-1], wrong)


def sums_by_loop(
    y: np.ndarray, p: np.ndarray, edges: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    sums = np.zeros((len(edges) + 1, 3))
    for y_i, p_i, w_i in zip(y, p.astype(float), weights.astype(float), strict=True):
        if y_i in (0, 1):
            sums[sum(p_i > edge for edge in edges)] += w_i, w_i * p_i, w_i * y_i
    return sums


def edges_of(strategy: str, num_bins: int) -> np.ndarray:
    edges = np.linspace(0, 1, num_bins + 1)[1:-1]
    return edges if strategy == "uniform" else np.quantile(EVENT_P[BINARY].astype(float), edges)


def test_bins_equal_a_loop() -> None:
    for num_bins in (1, 10, 15):
        expected = sums_by_loop(
            EVENT_Y, EVENT_P, edges_of("uniform", num_bins).astype(np.float32), W
        )
        close(calibration_bins(EVENT_Y, EVENT_P, num_bins=num_bins, sample_weight=W), expected)
    edges = np.array([0.1, 0.5, 0.5, 0.75], np.float32)
    expected = sums_by_loop(EVENT_Y, EVENT_P, edges, np.ones(N))
    close(calibration_bins(EVENT_Y, EVENT_P, edges=edges), expected)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_curve_equals_scikit_learn(strategy: Any) -> None:
    """With decimals on the edges, ties and empty bins; n - 1 = 192 has no factor 5, so no quantile
    is an example itself.
    """
    draw = default_rng(1)
    y, p = draw.integers(0, 2, 193), np.round(draw.beta(0.4, 0.8, 193), 2)
    for num_bins in (5, 25):
        truth, prob = calibration.calibration_curve(y, p, n_bins=num_bins, strategy=strategy)
        curve = np.stack(calibration_curve(y, p, num_bins=num_bins, strategy=strategy))
        assert np.isnan(curve[:4, curve[4] == 0]).all()
        mean_prob, frequency, low, high, n = curve[:, curve[4] > 0]
        close(frequency, truth)
        close(mean_prob, prob)
        for end in (low, high):  # Wilson's ends solve (f - p)^2 = z^2 p (1 - p) / n
            close(
                (frequency - end) ** 2, stats.norm.ppf(0.975) ** 2 * end * (1 - end) / n, atol=1e-14
            )


def test_quantile_bins_at_exact_quantiles() -> None:
    """11 examples, 5 bins: the edges are examples 2, 4, 6 and 8, which belong below."""
    p = np.linspace(0, 1, 11)
    curve = calibration_curve(np.ones(11, int), p[::-1], num_bins=5, strategy="quantile")
    assert_array_equal(curve.weight, [3, 2, 2, 2, 2])
    close(curve.mean_prob, [0.1, 0.35, 0.55, 0.75, 0.95])


def test_quantile_bins_whose_square_is_beyond_int32() -> None:
    p = default_rng(0).random(99_999).astype(np.float32)
    curve = partial(calibration_curve, strategy="quantile", num_bins=50_000)
    host, device = (curve(as_(p < 0.5), as_(p)).weight for as_ in (np.asarray, jnp.asarray))
    assert host.max() == 3
    assert_array_equal(device, host)


def test_quantile_bins_of_fractional_weights() -> None:
    # Rows from 0, 0.5, 1 and 3.5: row floor(4 / 2) is the third.
    weights = np.array([0.5, 0.5, 2.5, 1.5], np.float32)
    curve = calibration_curve(
        [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], num_bins=2, strategy="quantile", sample_weight=weights
    )
    assert_allclose(curve.weight, [3.5, 1.5])


@pytest.mark.parametrize("score", [calibration_curve, calibration_error, score_decomposition])
def test_quantile_bins_do_not_depend_on_the_scale_of_small_weights(score: Any) -> None:
    """With weights that sum to less than 2, results were NaN; with those that sum to 3, all edges
    were among the smallest two thirds of the probabilities. Larger weights are numbers of rows.
    """

    def found(weights: Any, times: int = 1) -> Any:
        arrays = np.repeat(EVENT_Y, times), np.repeat(EVENT_P, times)
        result = score(*arrays, strategy="quantile", num_bins=7, sample_weight=weights)
        return result[:2] if score is calibration_curve else result

    close = partial(jax.tree.map, partial(assert_allclose, rtol=2e-4, atol=1e-6))
    for weights in (np.ones(N), W, W * default_rng(0).random(N)):
        for total in (3e-6, 1, 3):
            scaled = (weights * (total / weights.sum())).astype(np.float32)
            close(found(scaled), found(weights))
            close(found(jnp.asarray(scaled)), found(weights))
    close(found(np.full(N, 1 / N)), found(None))
    close(found(np.full(N, 2)), found(None, 2))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_errors_equal_a_loop(strategy: Any) -> None:
    edges = edges_of(strategy, 7)
    n, sum_prob, sum_true = sums_by_loop(EVENT_Y, EVENT_P, edges, np.ones(N)).T
    gap, f = abs(sum_prob - sum_true) / n, sum_true / n
    share, noise = n / n.sum(), f * (1 - f) / (n - 1)
    error = partial(calibration_error, EVENT_Y, EVENT_P, strategy=strategy, num_bins=7)
    close(error(), share @ gap)
    close(error(norm="l2"), np.sqrt(share @ gap**2))
    close(error(norm="max"), gap.max())
    debiased = np.sqrt(max(share @ (gap**2 - noise), 0))
    close(error(norm="l2", debiased=True), debiased, atol=1e-12)


def test_the_interval_of_the_calibration_error() -> None:
    """Against its definition: quantiles of half-normals by 400,000 draws, Wilson's limits as roots
    of the score test, and the variance of the shares by a loop over examples.
    """
    bins = np.array([[40, 2.0, 3], [25, 9, 14], [10, 6.5, 5], [125, 117, 110], [0, 0, 0]])
    estimate = calibration_interval(bins, level=0.9)
    z = stats.norm.isf(0.05)
    n, p, f = bins[:4, 0], bins[:4, 1] / bins[:4, 0], bins[:4, 2] / bins[:4, 0]
    w, gap = n / 200, abs(p - f)
    close(estimate.value, w @ gap)
    of_examples = np.repeat(gap, n.astype(int))
    variance_of_shares = of_examples.var() / 200
    noise = w * np.sqrt(np.maximum(p * (1 - p), f * (1 - f)) / n)
    close(estimate.standard_error, np.sqrt((noise**2).sum() + variance_of_shares))
    sums = abs(default_rng(0).normal(size=(400_000, 4)) * noise).sum(1)
    reach = np.sqrt((np.quantile(sums, 0.95) - sums.mean()) ** 2 + z**2 * variance_of_shares)
    assert_allclose(estimate.low, w @ gap - sums.mean() - reach, rtol=0.02)

    def limit(n: float, f: float, outside: float) -> float:
        return optimize.brentq(lambda x: (f - x) ** 2 - z**2 * x * (1 - x) / n, f, outside)

    reach = z**2 * variance_of_shares
    for i in range(4):
        ends = limit(n[i], f[i], 0), limit(n[i], f[i], 1)
        reach += (w[i] * (max(abs(p[i] - end) for end in ends) - gap[i])) ** 2
    close(estimate.high, w @ gap + np.sqrt(reach), rtol=1e-9)


def test_certainty_is_in_the_last_bin() -> None:
    """p = 1 in a bin of its own, as in torchmetrics, gives 0.525: |0.95 - 1| / 2 + |1 - 0| / 2."""
    close(calibration_error([1, 0], [0.95, 1.0], num_bins=10), 0.475)
    assert_array_equal(calibration_bins([1, 0], [0.0, 0.0], num_bins=4)[0], [2, 0, 1])


def test_forty_million_examples_in_one_bin() -> None:
    """Perfect forecasts, p = 1/2 half the time: a float32 counter that stops at 2^24 says 0.5."""
    batch = calibration_bins(np.arange(10**5) % 2, jnp.full(10**5, 0.5))
    bins = jax.lax.fori_loop(0, 400, lambda _, total: total + batch, jnp.zeros_like(batch))
    assert_allclose(bins.sum(-2), [4e7, 2e7, 2e7], rtol=1e-6)
    assert calibration_error(bins) < 1e-6
    weighted = calibration_bins([0, 1], [0.5, 0.5], sample_weight=jnp.array([2e7, 2e7]))
    assert calibration_error(weighted) == 0
    assert calibration_curve(weighted).frequency[7] == 0.5


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_decomposition_by_bins(strategy: Any) -> None:
    """The sum is the Brier score, and each part is that of its definition; the classic resolution
    alone does not add up.
    """
    edges = edges_of(strategy, 4)
    y, p = EVENT_Y[BINARY], EVENT_P[BINARY].astype(float)
    which = np.searchsorted(edges, p)
    reliability = classic = within = 0.0
    for y_b, p_b in ((y[which == b], p[which == b]) for b in range(4)):
        share = len(y_b) / len(y)
        reliability += share * (p_b.mean() - y_b.mean()) ** 2
        classic += share * (y_b.mean() - y.mean()) ** 2
        within += share * (2 * np.cov(p_b, y_b, bias=True)[0, 1] - p_b.var())
    parts = score_decomposition(EVENT_Y, EVENT_P, num_bins=4, strategy=strategy)
    close(parts, [reliability, classic + within, y.var()], atol=1e-14)
    brier = brier_score(EVENT_Y, two_class(EVENT_P))
    close(parts.miscalibration - parts.discrimination + parts.uncertainty, brier, atol=1e-14)
    assert abs(within) > 0.002


def test_top_label() -> None:
    """Of the definition: the greatest probability beside being right; it is equal to another of the
    same function.
    """
    correct = np.where(COUNTED, P.argmax(-1) == Y, -1)
    for function in (calibration_error, calibration_bins):
        expected = function(correct, P.max(-1), sample_weight=W)
        close(top_label(function)(Y, P, sample_weight=W), expected)
    of_top = top_label(calibration_error)
    assert {of_top, top_label(calibration_error)} == {of_top}
    ids = np.full((1, 3), 150, np.uint8)  # more classes than int8 counts
    assert of_top(ids, np.eye(200)[np.array([[150, 150, 0]])]) == 1 / 3
    ignored = np.array([1, -100, 1])  # the others are all right: not a truth of -1 and 1
    assert of_top(ignored, [[0.25, 0.75]] * 3) == 0.25


def temperature_by_search(y: np.ndarray, z: np.ndarray, weights: np.ndarray) -> float:
    z, y, weights = (x[y >= 0] for x in (z.astype(float), y, weights.astype(float)))

    def loss(log_beta: float) -> float:
        scaled = np.exp(log_beta) * z
        losses = special.logsumexp(scaled, -1) - scaled[np.arange(len(y)), y]
        return float(np.average(losses, weights=weights))

    options = {"xatol": 1e-10}
    found = optimize.minimize_scalar(loss, bounds=(-12, 12), method="bounded", options=options)
    return float(np.exp(-found.x))


def test_temperature_is_the_minimum() -> None:
    """Within the width in which the search sees a loss that is flat to 1e-16: 1e-7."""
    draw = default_rng(3)
    for scale in (0.01, 1.0, 3000.0):
        z = (scale * Z).astype(np.float32)
        weights = draw.exponential(size=N).astype(np.float32)
        expected = temperature_by_search(Y, z / scale, weights) * scale
        assert_allclose(fit_temperature(Y, z, sample_weight=weights), expected, rtol=1e-6)


def test_temperature_of_easy_hard_and_hopeless_examples() -> None:
    """Hardly better than chance, one mistake in a million by little, and in a batch with cases that
    have no optimum.
    """
    z, place = np.tile(np.array([[2.0, 0.0]]), (1000, 1)), np.arange(1000)
    # Log(501 / 499) = 0.004 = 2 beta.
    wrong = {499: 2 / np.log(501 / 499), 1: 2 / np.log(999), 700: np.inf, 0: 0}
    y = np.stack([*((place < n).astype(int) for n in wrong), 0 * place, 0 * place - 1])
    logits, expected = np.stack([z, z, z, z, 0 * z, z]), [*wrong.values(), np.nan, np.nan]
    close(fit_temperature(y, logits), expected, rtol=1e-10)
    of_device = fit_temperature(jnp.asarray(y), jnp.asarray(logits))
    # Near chance the slope has four digits.
    assert_allclose(of_device, expected, rtol=1e-4)
    # The mistake is a millionth of the scale.
    nearly = np.array([[1000.0, 0.0], [0.0, 1e-3], [1e-3, 0.0]], np.float32)
    found = fit_temperature([0, 0, 0], nearly, sample_weight=[1, 1, 3])
    assert_allclose(found, 1e-3 / np.log(3), rtol=1e-6)


@pytest.mark.usefixtures("float64")
def test_temperature_is_differentiated_twice() -> None:
    """T is proportional to a factor of the logits, and differences show the other derivatives."""
    z, y = jnp.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [1.5, 0.3]]), jnp.array([0, 0, 1, 0])

    def found(at: Any) -> Any:
        logits = at[0] * z + at[1] * jnp.array([[1.0, 0.0]])
        return fit_temperature(y, logits, sample_weight=jnp.ones(4).at[2].set(at[2]))

    at, step = jnp.array([1.0, 0, 1]), 1e-5 * np.eye(3)
    hessian, gradient = jax.jit(jax.hessian(found))(at), jax.jit(jax.vmap(jax.grad(found)))
    assert abs(hessian[0, 0]) < 1e-10
    differences = (gradient(at[None] + step) - gradient(at[None] - step)) / 2e-5
    assert_allclose(hessian, differences, rtol=1e-6, atol=1e-6)


def test_temperature_of_impossible_classes() -> None:
    """-inf rules out a class as if it were not there; for a true class, no temperature helps."""
    some = COUNTED & (Y < K - 1)
    ruled_out = Z.copy()
    ruled_out[:, K - 1] = -np.inf
    expected = fit_temperature(Y[some], Z[some, : K - 1])
    close(fit_temperature(Y, ruled_out, where=some), expected)
    assert np.isnan(fit_temperature(Y, ruled_out))
    slope = jax.grad(lambda z: fit_temperature(Y, z, where=some))(jnp.asarray(ruled_out))
    assert np.isfinite(slope).all()
    for mask in (-1e9, -1e30, float(np.finfo(np.float32).min)):
        ruled_out[:, K - 1] = mask
        masked = jnp.asarray(ruled_out, jnp.float32)
        close(fit_temperature(Y, masked, where=some), expected, rtol=1e-5)
        slope_of_mask = jax.grad(lambda z: fit_temperature(Y, z, where=some))(masked)
        close(slope_of_mask, slope, rtol=1e-3, atol=1e-6)


EVENT = EVENT_Y, EVENT_P
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: log_loss([0], logits=[[np.inf, 0.0]]),
        r"the greatest of logits\[0\] is inf, but a softmax needs a finite greatest logit",
    ),
    (
        lambda: log_loss([0, 1], logits=[[2.0, 0.0], [-np.inf, -np.inf]]),
        r"the greatest of logits\[1\] is -inf, .* at least one class",
    ),
    (lambda: log_loss(Y), "Exactly one of y_prob and logits must be given, got neither"),
    (
        lambda: log_loss(Y, P, logits=Z),
        "Exactly one of y_prob and logits must be given, got both",
    ),
    (
        lambda: log_loss(*EVENT),
        r"each of the n examples of y_true .* is \(40,\), .* two_class",
    ),
    (lambda: brier_score(EVENT_Y, EVENT_P[:, None]), "K >= 2 classes"),
    (lambda: fit_temperature(*EVENT), r"logits must have shape .* np.stack"),
    (
        lambda: brier_score(Y, P, scale_by_half="no"),  # type: ignore[arg-type]
        "scale_by_half must be True, False or 'auto'",
    ),
    (
        lambda: calibration_error(Y, P),
        r"probability of class 1\)\. .* is \(40, 4\), .* top_label",
    ),
    (
        lambda: calibration_error(*EVENT, norm="l3"),  # type: ignore[arg-type]
        "norm must be 'l1', 'l2' or 'max', got 'l3'",
    ),
    (
        lambda: calibration_error(*EVENT, debiased=True),
        "debiased=True needs norm=\"l2\".*'l1'",
    ),
    (
        lambda: calibration_curve(*EVENT, strategy="equal"),  # type: ignore[arg-type]
        "'uniform', 'quantile' or 'isotonic', got 'equal'",
    ),
    (lambda: calibration_bins(*EVENT, num_bins=0), "num_bins must be at least 1"),
    (
        lambda: calibration_bins(*EVENT, edges=[[0.5]]),
        r"edges must be an array of shape \(B - 1,\)",
    ),
    (
        lambda: calibration_curve(np.ones((3, 2))),
        r"y_true must contain the bins .* have the shape \(..., B, 3\), got shape \(3, 2\)",
    ),
    (lambda: calibration_error([0, 1, 1]), r"contain the bins .*, got shape \(3,\)"),
    (
        lambda: log_loss([0, 4], P[:2]),
        r"y_true\[1\] is 4, but class ids must lie in \[0, 4\).*subtract 1",
    ),
    (lambda: calibration_error([1, 2], [0.5, 0.5]), r"y_true\[1\] is 2, but .* \[0, 2\)"),
    (
        lambda: calibration_error(EVENT_Y, EVENT_P[:, None]),
        r"y_prob must have .* If .* length 1, use y_prob\[..., 0\]",
    ),
    (lambda: log_loss(Y, Z), r"y_prob\[0, \d\] is .*but probabilities lie in \[0, 1\]. Convert"),
    (lambda: brier_score(Y, 2 * P / 3), r"the sum of y_prob\[\d\] is 0.666667, but .* sum to 1"),
    (lambda: fit_temperature(Y, P), r"logits must contain logits, but .* pass np.log\(logits\)"),
    (lambda: jax.jit(lambda p: log_loss(EVENT_Y, p))(EVENT_P), "two_class"),
    (
        lambda: calibration_bins(*map(jnp.asarray, EVENT), edges=jnp.array([1, 0])),
        "edges must be increasing",
    ),
    (lambda: log_loss(P, Y), "y_true must hold class ids .* Truth comes first"),
    (lambda: calibration_bins(*EVENT, num_bins=1.5), "num_bins must be a Python int"),  # type: ignore[arg-type]
    (
        lambda: calibration_error(np.ones((4, 3)), num_bins=4, where=[True]),
        r"num_bins, where may only be passed together with both labels and predictions,"
        r" as in \(y_true, y_prob\)\.",
    ),
    (
        lambda: calibration_interval(np.ones((4, 3)), clusters=[1, 2]),
        "clusters may only be passed together with both labels and predictions",
    ),
    (lambda: top_label("error"), "top_label takes a function of"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("put", [np.asarray, jnp.asarray])
def test_scores_of_rows_that_sum_to_more_than_1_by_rounding(dtype: str, put: Any) -> None:
    """Scores of wrong predictions were beyond their range, which `mean_interval` refuses."""
    above = 1 + float(jnp.finfo(dtype).eps)
    rows, label = put(jnp.array([[above, 0, 0]], dtype)), put(np.array([2]))
    assert brier_score(label, rows) == 2
    assert ranked_probability_score(label, rows) == 1
    assert calibration_error(put(np.array([0])), rows[:, 0]) == 1
