"""Systems compared by scores per item, against labels, SciPy and loops."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats

import jaxmetrics as jm
from tests.estimates import assert_close, ends, parts

RNG = np.random.default_rng(5)
TEXT = np.repeat(np.arange(30), RNG.integers(1, 9, 30))  # questions about 30 texts
N = len(TEXT)
TRUE = RNG.integers(0, 3, N)
_EASE = RNG.beta(4, 1, 30)[TEXT]
PREDS = np.stack(
    [np.where(RNG.random(N) < skill * _EASE, TRUE, (TRUE + 1) % 3) for skill in (0.95, 0.7, 0.9)]
)
RIGHT = PREDS == TRUE


def assert_alike(found: Any, expected: Any, clusters: Any) -> None:
    """But for standard errors of independent items, of n - 1 degrees of freedom and of n."""
    factor = np.sqrt(N / (N - 1)) if clusters is None else 1

    def check(x: Any, y: Any) -> None:
        if isinstance(y, jm.Estimate):
            x, y = parts(x), parts(y)
            y[3] *= factor
        assert_close(x, y, 1e-4, 1e-9)

    jax.tree.map(check, found, expected, is_leaf=lambda x: isinstance(x, jm.Estimate))


@pytest.mark.parametrize("clusters", [None, TEXT])
def test_right_and_wrong_are_compared_as_accuracies(clusters: Any) -> None:
    found = jm.compare_scores(*RIGHT[:2], bounds=(0, 1), clusters=clusters, rope=0.1)
    expected = jm.compare_predictions(jm.accuracy, TRUE, *PREDS[:2], clusters=clusters, rope=0.1)
    if clusters is None:
        assert_alike(found, expected, clusters)
        return
    assert_alike([found.a, found.b], [expected.a, expected.b], clusters)
    assert_allclose(parts(found.difference)[::3], parts(expected.difference)[::3], rtol=1e-4)
    width = found.difference.high - found.difference.low
    wider = expected.difference.high - expected.difference.low  # by a part of a cluster
    assert 0.85 * wider < width < wider


def slow_greatest_difference(x: np.ndarray, ids: np.ndarray | None) -> float:
    """The greatest mean difference by a search over the Lagrange multiplier."""
    units = np.abs(x) if ids is None else np.bincount(ids, np.abs(x))
    m = units.sum() ** 2 / (units**2).sum()
    w = min(1.0, (3 / m) ** 3)
    added, counts = np.abs(x).max() ** (1 - w), np.ones(len(x))
    if ids is not None:  # all clusters have the same size
        sums, number = np.bincount(ids, x - x.mean()), ids[-1] + 1
        clustered = number / (number - 1) * (sums**2).sum()
        ratio = stats.norm.ppf(0.975) / stats.t.ppf(0.975, number - 1)
        counts *= min(((x - x.mean()) ** 2).sum() / clustered, 1) * ratio**2
    x, counts = np.append(x, added), np.append(counts, 1 / 3)

    def weights(log_gap: float) -> np.ndarray:
        found = counts / (x.max() + np.exp(log_gap) - x)
        return found / found.sum() * counts.sum()

    def excess(log_gap: float) -> float:
        return (counts * np.log(counts / weights(log_gap))).sum() - stats.norm.ppf(0.975) ** 2 / 2

    return float(weights(optimize.brentq(excess, -30, 10, xtol=1e-12)) @ x / counts.sum())


@pytest.mark.parametrize("kind", ["small", "few", "clusters"])
def test_mean_differences_from_the_definition(kind: str) -> None:
    rng = np.random.default_rng(7)
    a = np.clip(rng.normal(0.6, 0.1, 40), 0, 1)
    b = np.clip(a + rng.normal(0.02, 0.05, 40), 0, 1)
    b = np.where(np.arange(40) < 5, b, a) if kind == "few" else b
    ids = np.arange(40) // 2 if kind == "clusters" else None
    found = jm.compare_scores(a, b, bounds=(0, 1), clusters=ids).difference
    high, low = slow_greatest_difference(a - b, ids), -slow_greatest_difference(b - a, ids)
    assert_allclose(parts(found)[:3], [(a - b).mean(), low, high], rtol=1e-6)
    grown = jm.compare_scores(10 * a, 10 * b, bounds=(0, 10), clusters=ids).difference
    assert_allclose(parts(grown), 10 * parts(found), rtol=1e-9)


def test_mean_differences_of_unequal_clusters_are_about_as_wide_as_students() -> None:
    """If the largest possible difference is added, they are 1.6 to 5.9 times as wide."""
    rng = np.random.default_rng(8)
    a = np.clip(rng.normal(0.5, 0.1, (50, N)), 0, 1)
    b = np.clip(a + rng.normal(0, 0.1, (50, N)) + rng.normal(0, 0.1, (50, 30))[:, TEXT], 0, 1)
    found, student = (
        np.diff(ends(jm.compare_scores(a, b, bounds=bounds, clusters=TEXT).difference), axis=0)
        for bounds in ((0, 1), None)
    )
    assert 0.98 < found.mean() / student.mean() < 1.2


@pytest.mark.parametrize("clusters", [None, TEXT])
def test_right_and_wrong_are_ranked_as_accuracies(clusters: Any) -> None:
    found = jm.score_leaderboard(RIGHT, bounds=(0, 1), clusters=clusters)
    expected = jm.leaderboard(jm.accuracy, TRUE, PREDS, clusters=clusters)
    assert_alike(found, expected, clusters)


def test_scores_without_bounds_are_compared_by_a_paired_t_test() -> None:
    a, b = RNG.normal(0.3, 2, (2, 25))
    found = jm.compare_scores(a, b, level=0.9)
    test = stats.ttest_rel(a, b)
    assert_allclose(found.difference.value, a.mean() - b.mean())
    assert_allclose(ends(found.difference), test.confidence_interval(0.9))
    assert found.probability_better == pytest.approx(1 - test.pvalue / 2, rel=1e-9)
    clusters = np.repeat(np.arange(25), 2)
    twice = jm.compare_scores(*np.repeat([a, b], 2, -1), clusters=clusters, rope=0.1)
    alike = jm.compare_scores(a, b, rope=0.1)
    assert_close(twice[3:], alike[3:], 1e-9)


@pytest.mark.parametrize("asarray", [np.asarray, jnp.asarray])
def test_independent_scores_are_compared_by_welchs_interval(asarray: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.8, 0.02, (4, 20)), rng.normal(0.77, 0.05, (4, 9))
    a[0, 3] = b[1, 0] = np.nan
    with jax.enable_x64(True):
        found = jm.compare_scores(asarray(a), asarray(b), paired=False, level=0.9)
    known = stats.ttest_ind(a, b, axis=1, equal_var=False, nan_policy="omit")
    interval = known.confidence_interval(0.9)
    assert_allclose(found.difference.low, interval.low, rtol=1e-9)
    assert_allclose(found.difference.high, interval.high, rtol=1e-9)
    better = np.asarray(found.probability_better)
    assert_allclose(2 * np.minimum(better, 1 - better), known.pvalue, rtol=1e-9)


def test_independent_bounded_scores_are_compared_by_mover() -> None:
    """The lower end from the lower end of A and the upper end of B, and vice versa."""
    a, b = [1.0] * 12, [1.0, 0.5, 0.0, 1.0, 1.0]
    found = jm.compare_scores(a, b, bounds=(0, 1), paired=False)
    of_a, of_b = (jm.mean_interval(x, bounds=(0, 1)) for x in (a, b))
    gap = of_a.value - of_b.value
    low = gap - np.hypot(of_a.value - of_a.low, of_b.high - of_b.value)
    high = gap + np.hypot(of_a.high - of_a.value, of_b.value - of_b.low)
    assert_allclose([found.difference.low, found.difference.high], [low, high])
    assert found.difference.method == "mover"
    assert found.a == of_a
    rounded = np.full(5, np.nextafter(np.float32(1), np.float32(2)))  # beyond 1 by rounding
    assert jm.compare_scores(rounded, b, bounds=(0, 1), paired=False).a.value == 1


def test_items_that_one_has_not_are_left_out() -> None:
    a, b = RNG.random((2, 40))
    a[3], b[[5, 6]], missing = np.nan, np.nan, [3, 5, 6]
    mask = np.arange(40) != 9
    found = jm.compare_scores(a, b, bounds=(0, 1), where=mask)
    without = [np.delete(x, [*missing, 9]) for x in (a, b)]
    expected = jm.compare_scores(*without, bounds=(0, 1))
    assert_close(found, expected, 1e-9)
    board = jm.score_leaderboard(np.stack([a, b]), where=mask)
    others = jm.score_leaderboard(np.stack(without))
    assert_close(board, others, 1e-9)


def test_the_same_items_in_two_places_are_no_news() -> None:
    """Copies of each item, as a cluster, tell as much as the items."""
    scores = np.array([[0.2], [0.1], [0.0]]) + RNG.beta(2, 1, (3, 40))
    once = jm.score_leaderboard(scores, num_samples=500, clusters=np.arange(40))
    twice = jm.score_leaderboard(
        np.repeat(scores, 3, -1), num_samples=500, clusters=np.repeat(np.arange(40), 3)
    )
    assert_allclose(parts(once.estimates), parts(twice.estimates), 1e-9, 1e-9)
    for name in ("tiers", "rank_low", "rank_high"):
        assert_close(getattr(once, name), getattr(twice, name), 1e-9)


def test_false_separations_are_rare() -> None:
    """Systems with equal means, few items, three grades: 5 % allowed, 300 sets."""
    rng = np.random.default_rng(2)
    false = 0
    for _ in range(300):
        scores = rng.choice([0, 0.5, 1], p=[0.1, 0.1, 0.8], size=(4, 20))
        false += jm.score_leaderboard(scores, bounds=(0, 1), num_samples=400).tiers.max() > 1
    assert false <= 300 * 0.05 + 2.6 * np.sqrt(300 * 0.05 * 0.95)


def test_the_winner_stays_within_the_bounds() -> None:
    board = jm.score_leaderboard(np.eye(6)[:, :5], bounds=(0, 1))
    assert 0 <= board.winner_estimate.low <= board.winner_estimate.high <= 1


def test_under_jit_what_is_impossible_is_nan() -> None:
    good = jnp.asarray(RIGHT, jnp.float32)
    rank = jax.jit(lambda x: jm.score_leaderboard(x, bounds=(0, 1), num_samples=200))
    assert jnp.isfinite(rank(good).probability_best).all()
    assert jnp.isnan(rank(good.at[0, 0].set(2)).estimates.value[0])
    assert jnp.isnan(rank(good[:, :1]).probability_best).all()
    compare = jax.jit(lambda a, b: jm.compare_scores(a, b, bounds=(0, 1)).difference)
    assert jnp.isnan(compare(good[0].at[1].set(-1), good[1]).value)
    assert jnp.isnan(compare(good[0] * jnp.nan, good[1]).value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jm.compare_scores([1, 2], [1]), "got 2 and 1 scores.* pass paired=False"),
        (lambda: jm.compare_scores([1, 2], 1), "at least one axis"),
        (lambda: jm.compare_scores([1, 2], [[1]], paired=False), "the same batch axes"),
        (
            lambda: jm.compare_scores([1, 2], [1, 0], paired=False, where=[True, False]),
            "paired=False cannot be used with where",
        ),
        (lambda: jm.compare_scores([1, 3.0], [1, 0], bounds=(0, 2)), r"a\[1\] is 3, beyond"),
        (lambda: jm.compare_scores([1, 0], [1, 7], bounds=(0, 2)), r"b\[1\] is 7, beyond"),
        (lambda: jm.compare_scores([1, 0], [1, 0], bounds=(1, 0)), "bounds must be the least"),
        (lambda: jm.compare_scores([1, 0], [1, 0], rope=-1), "rope must not be negative, because"),
        (lambda: jm.score_leaderboard([1, 0]), r"scores must have shape \(M, n\)"),
        (
            lambda: jm.score_leaderboard(pl.DataFrame({"old": [1, 0], "new": [1, 1]})),
            r"got a data frame\. Pass scores\.to_numpy\(\)\.T",
        ),
        (lambda: jm.score_leaderboard([[1, 4]], bounds=(0, 1)), r"scores\[0, 1\] is 4, beyond"),
        (lambda: jm.score_leaderboard([[1], [0]]), "at least two items, .* got 1"),
        (
            lambda: jm.score_leaderboard(RIGHT, clusters=[0] * N),
            "at least two items, or two clusters .* got 1",
        ),
        (lambda: jm.score_leaderboard([[1, np.nan], [np.nan, 1]]), "at least two items, .* got 0"),
        (lambda: jm.score_leaderboard([[1, 0]], where=[True]), r"where must have shape \(n,\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:with 1 cluster")
def test_what_is_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
