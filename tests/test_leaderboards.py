"""Leaderboards against loops from their definitions, and what they say against what is true."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn import covariance

import jaxmetrics as jm
from jaxmetrics.comparisons._rankings import layers
from tests.test_comparisons import KEY, predictions


def board_of(
    truth: np.ndarray, preds: Any, num_samples: int = 500, *, seed: int = KEY
) -> jm.Leaderboard:
    return jm.leaderboard(seed, jm.accuracy, truth, preds, num_classes=2, num_samples=num_samples)


def test_leaderboard_from_its_definition() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    right = rng.random((4, 200)) < np.array([0.8, 0.82, 0.7, 0.78])[:, None]
    preds = np.where(right, truth, 1 - truth)
    board = board_of(truth, preds, num_samples=4000)
    tables = [jm.confusion_matrix(truth, pred, num_classes=2) for pred in preds]
    expected = jm.likelihood_interval(jm.accuracy, np.stack(tables))
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-12), board.estimates, expected
    )
    np.testing.assert_allclose(board.estimates.value, right.mean(-1), rtol=1e-12)
    assert board.winner == right.mean(-1).argmax()
    held_out = []
    for _ in range(4000):
        half = rng.permutation(200) < 100
        chosen_by, judged_by = right[:, half].mean(-1), right[:, ~half].mean(-1)
        held_out.append(judged_by[chosen_by > chosen_by.max() - 1e-9].mean())  # ties share
    # A tenth of the standard error, 0.0027, is left to chance: of 16, four times 0.0007.
    found = [board_of(truth, preds, seed=seed).winner_estimate.value for seed in range(16)]
    np.testing.assert_allclose(np.mean(found), np.mean(held_out), atol=0.003)
    corrected, own = board.winner_estimate, [x[board.winner] for x in board.estimates]
    np.testing.assert_allclose(corrected.low - own[1], corrected.value - own[0], rtol=1e-9)
    assert corrected.high == own[2]
    np.testing.assert_allclose(board.rank_probabilities.sum(0), 1, rtol=1e-5)
    np.testing.assert_allclose(board.rank_probabilities.sum(1), 1, rtol=1e-5)
    np.testing.assert_array_equal(board.probability_best, board.rank_probabilities[:, 0])


def test_ranks_are_as_probable_as_weighted_draws_say() -> None:
    """True values are drawn from the prior and weighted by their likelihood, with scikit-learn's
    covariance of the differences of the examples.
    """
    rng = np.random.default_rng(1)
    right = (rng.random((150, 1)) + rng.random((150, 3)) < [1.5, 1.45, 1.3]).astype(float)
    right[:75, 1] = right[:75, 0]
    board = board_of(np.ones(150, int), right.T.astype(int), num_samples=20_000)
    contrasts = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    noise = covariance.ledoit_wolf(right @ contrasts.T)[0] / 150
    alike = np.eye(2) * np.trace(noise) / 2
    roots = [np.linalg.cholesky(w * alike + (1 - w) * noise) for w in (0, 0.5, 1)]
    scale = np.sqrt(0.5) * np.abs(rng.standard_cauchy((3, 200_000, 1)))
    normal = rng.normal(size=(3, 200_000, 2))
    true = np.concatenate([scale[i] * normal[i] @ root.T for i, root in enumerate(roots)])
    misses = contrasts @ right.mean(0) - true
    weights = np.exp(-np.einsum("si,ij,sj->s", misses, np.linalg.inv(noise), misses) / 2)
    ranks = np.argsort(np.argsort(-true @ contrasts, -1), -1)
    expected = [[weights @ (ranks[:, i] == r) / weights.sum() for r in range(3)] for i in range(3)]
    np.testing.assert_allclose(board.rank_probabilities, expected, atol=0.02)


def test_what_is_shown_of_ranks() -> None:
    """Against loops over pairs and draws, for accuracies that are clearly apart or clearly not."""
    rng = np.random.default_rng(0)
    right = (rng.random((400, 6)) < [0.6, 0.9, 0.62, 0.78, 0.91, 0.76]).astype(float)
    board = board_of(np.ones(400, int), right.T.astype(int), num_samples=2000)
    draws = rng.multivariate_normal(np.zeros(6), np.cov(right.T, bias=True) / 400, 2000)
    above = np.zeros((6, 6), bool)
    while True:
        greatest = np.zeros(2000)
        for i, j in zip(*np.nonzero(~above & ~np.eye(6, dtype=bool)), strict=True):
            error = (right[:, i] - right[:, j]).std() / 20
            greatest = np.maximum(greatest, (draws[:, i] - draws[:, j]) / error)
        before, limit = above.copy(), np.quantile(greatest, 0.95)
        for i, j in np.argwhere(~above):
            d = right[:, i] - right[:, j]
            above[i, j] |= d.sum() > limit * np.sqrt((d**2).sum() + 2)
        if (above == before).all():
            break
    np.testing.assert_array_equal(board.rank_low, 1 + above.sum(0))
    np.testing.assert_array_equal(board.rank_high, 6 - above.sum(1))
    np.testing.assert_array_equal(board.tiers, [3, 1, 3, 2, 1, 2])


def test_few_examples_that_differ_show_what_a_sign_test_shows() -> None:
    """Of two classifiers, k examples are right by one alone: Conover (1999), section 3.4.

    The limit, from 4000 draws, has a standard error of 0.04, as p of 0.004.
    """
    for k in range(1, 21):
        for better in range(k // 2 + 1, k + 1):
            first = np.arange(30) < better
            second = (np.arange(30) >= better) & (np.arange(30) < k)
            board = board_of(np.ones(30, int), np.stack([first, second]).astype(int), 4000)
            p = stats.binomtest(better, k).pvalue
            assert p < 0.067 if board.tiers.max() > 1 else p > 0.03, (k, better, p)


@given(st.integers(0, 2**32 - 1))
def test_tiers_are_the_longest_chains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    above = np.triu(rng.random((9, 9)) < rng.random(), 1)
    order = rng.permutation(9)
    above = above[np.ix_(order, order)]

    def tier(i: int) -> int:
        return 1 + max((tier(j) for j in range(9) if above[j, i]), default=0)

    expected = [tier(i) for i in range(9)]
    np.testing.assert_array_equal(layers(above), expected)
    np.testing.assert_array_equal(layers(jnp.asarray(above)), expected)


def boards(
    accuracies: Callable[[np.random.Generator], np.ndarray], n: int, number: int
) -> Iterator[tuple[np.ndarray, jm.Leaderboard]]:
    """Draw so many test sets; return the true accuracies of each, and its leaderboard."""
    rng = np.random.default_rng(0)
    for _ in range(number):
        true = accuracies(rng)
        right = rng.random((len(true), n)) < true[:, None]
        yield true, board_of(np.ones(n, int), right.astype(int), num_samples=300)


@pytest.mark.parametrize(("accuracy", "n"), [(0.5, 30), (0.9, 60), (0.97, 200)])
def test_ties_are_not_told_apart(accuracy: float, n: int) -> None:
    """200 leaderboards of eight alike: wrong in at most 5 %, and three standard errors."""
    wrong = [board.tiers.max() > 1 for _, board in boards(lambda rng: np.full(8, accuracy), n, 200)]
    assert np.mean(wrong) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_balanced_accuracies_with_small_classes_are_not_told_apart() -> None:
    """100 leaderboards of six that are as good, on 60 examples, 3 of the smallest class: in a class
    that one got right by chance, its derivatives alone would show no error.
    """
    rng, wrong = np.random.default_rng(0), []
    for seed in range(100):
        y_true = rng.choice(5, 60, p=[0.4, 0.3, 0.15, 0.1, 0.05])
        y_preds = np.where(rng.random((6, 60)) < 0.75, y_true, rng.integers(0, 5, (6, 60)))
        board = jm.leaderboard(
            seed, jm.balanced_accuracy, y_true, y_preds, num_classes=5, num_samples=300
        )
        wrong.append(board.tiers.max() > 1)
    assert np.mean(wrong) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_examples_that_do_not_count_are_as_if_absent() -> None:
    truth, a, b = predictions(200, 3)
    preds = np.stack([a, b, truth])
    expected = jm.leaderboard(KEY, jm.cohen_kappa, truth, preds, num_classes=3)
    more = np.concatenate([preds, [[0, 1, -1], [2, 1, 0], [0, 0, 0]]], 1)
    counted = np.arange(203) != 201
    result = jm.leaderboard(
        KEY, jm.cohen_kappa, np.append(truth, [-1, 0, 1]), more, num_classes=3, where=counted
    )
    jax.tree.map(np.testing.assert_array_equal, result, expected)
    more[1, 201] = 7
    with pytest.raises(ValueError, match=r"y_preds\[1, 201\] is 7"):
        jm.leaderboard(KEY, jm.cohen_kappa, np.append(truth, [-1, 0, 1]), more, num_classes=3)


def test_the_best_is_as_probable_as_is_said() -> None:
    """300 leaderboards of five whose accuracies hardly differ: the share of replicates in which the
    winner wins would be 0.2 more than the share in which it is the best.
    """
    said, true = [], []
    for accuracies, board in boards(lambda rng: 0.8 + 0.01 * rng.normal(size=5), 200, 300):
        said.append(board.probability_best[board.winner])
        true.append(accuracies[board.winner] == accuracies.max())
    assert abs(np.mean(said) - np.mean(true)) < 0.07  # 2.5 standard errors


@pytest.mark.parametrize("accuracy", [0.97, 0.99])
def test_what_is_expected_of_a_winner_that_hardly_errs(accuracy: float) -> None:
    """100 leaderboards of ten, on 60 examples."""
    covered = [
        board.winner_estimate.low <= accuracy <= board.winner_estimate.high
        for _, board in boards(lambda rng: np.full(10, accuracy), 60, 100)
    ]
    assert np.mean(covered) > 0.93


def test_the_winner_is_not_flattered() -> None:
    """Twenty classifiers that are right in 70 %: the best of them shows 75 % on 200 examples, and
    must not promise it.
    """
    rng = np.random.default_rng(0)
    naive, honest, covered = [], [], []
    for _ in range(60):
        truth = rng.integers(0, 2, 256)
        preds = np.where(rng.random((20, 256)) < 0.7, truth, 1 - truth)
        board = board_of(truth, preds, num_samples=200)
        naive.append(float(board.estimates.value[board.winner]))
        honest.append(float(board.winner_estimate.value))
        covered.append(bool(board.winner_estimate.low <= 0.7 <= board.winner_estimate.high))
    assert np.mean(naive) > 0.74
    np.testing.assert_allclose(np.mean(honest), 0.7, atol=4 * np.std(honest) / np.sqrt(60))
    assert np.mean(covered) > 0.9


def test_leaderboard_of_alike_and_undefined_classifiers() -> None:
    truth, a, b = predictions(300, 2)
    board = board_of(truth, np.stack([a, a, b]))
    np.testing.assert_array_equal(board.probability_best[0], board.probability_best[1])

    def undefined_if_rare(counts: Any) -> Any:
        return np.nan if counts[0, 1] + counts[1, 0] > 20 else jm.accuracy(counts)

    preds = np.stack([1 - truth, truth])
    with_nan = jm.leaderboard(KEY, undefined_if_rare, truth, preds, num_classes=2, num_samples=50)
    assert with_nan.winner == 1
    assert with_nan.probability_best[1] == 1
    assert np.isnan(with_nan.estimates.low[0])
    np.testing.assert_array_equal([with_nan.rank_low, with_nan.rank_high], [[2, 1]] * 2)
    np.testing.assert_array_equal(with_nan.tiers, [2, 1])
    with pytest.raises(ValueError, match="NaN or infinite for all classifiers"):
        jm.leaderboard(KEY, lambda counts: np.nan, truth, preds, num_classes=2)
    # None was chosen.
    single = jm.leaderboard(KEY, jm.accuracy, [0, 1, 1], [[0, 1, 0]], num_classes=2, num_samples=50)
    np.testing.assert_array_equal(single.winner_estimate[:4], [x[0] for x in single.estimates[:4]])


@pytest.mark.slow
def test_leaderboard_on_the_device_and_hidden_by_jit() -> None:
    truth, a, b = predictions(300, 2)
    preds = np.stack([a, a, b])
    host = board_of(truth, preds, num_samples=2000)
    device = board_of(truth, jnp.asarray(preds), num_samples=2000)
    hidden = jax.jit(lambda preds: board_of(truth, preds, num_samples=2000))(preds)
    for board in (device, hidden):
        assert board.winner == host.winner
        np.testing.assert_allclose(
            board.rank_probabilities, host.rank_probabilities, atol=5 * np.sqrt(0.5 / 2000)
        )
        np.testing.assert_allclose(board.estimates.value, host.estimates.value, rtol=1e-6)
        np.testing.assert_allclose(
            board.estimates.standard_error, host.estimates.standard_error, rtol=5 / np.sqrt(2000)
        )
        np.testing.assert_allclose(
            board.winner_estimate.value, host.winner_estimate.value, atol=0.005
        )


def clustered_predictions(
    rng: np.random.Generator, accuracies: np.ndarray, num_clusters: int, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw clusters of 2 to 20 examples, and which of them each classifier has right."""
    ids = np.repeat(np.arange(num_clusters), rng.integers(2, 21, num_clusters))
    effects = rng.normal(size=(len(accuracies), num_clusters))[:, ids]
    noise = rng.normal(size=effects.shape)
    latent = np.sqrt(correlation) * effects + np.sqrt(1 - correlation) * noise
    return ids, (latent < stats.norm.ppf(accuracies)[:, None]).astype(int)


def test_leaderboard_of_clusters_from_its_definition() -> None:
    """The covariance is that of sums over clusters; what is shown is so by loops over them."""
    rng = np.random.default_rng(3)
    ids, right = clustered_predictions(rng, np.array([0.6, 0.9, 0.62, 0.85]), 80, 0.3)
    names, truth = np.array([f"p{i}" for i in ids]), np.ones(len(ids), int)
    kept = ids < 75
    options: Any = {"num_classes": 2, "num_samples": 2000, "where": kept}
    board = jm.leaderboard(KEY, jm.accuracy, truth, right, clusters=names, **options)
    tables = jm.confusion_matrix(truth, right, num_classes=2, where=kept, groups=ids)
    expected = jm.likelihood_interval(jm.accuracy, tables, cluster_axis=-3)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y), board.estimates, expected)

    n, values = kept.sum(), right[:, kept].mean(1)
    ids, right = ids[kept], right[:, kept]
    sums = np.array([[(x - x.mean())[ids == c].sum() for c in range(75)] for x in right])
    raw = np.array([[x[ids == c].sum() for c in range(75)] for x in right])
    noise = 75 / 74 * sums @ sums.T / n**2
    draws = rng.multivariate_normal(np.zeros(4), noise, 2000)
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    above = np.zeros((4, 4), bool)
    while True:
        left = [(i, j) for i, j in pairs if not above[i, j]]
        ratios = [(draws[:, i] - draws[:, j]) / draws_error(noise, i, j) for i, j in left]
        limit, before = np.quantile(np.max(ratios, 0), 0.95), above.copy()
        for i, j in left:
            d = raw[i] - raw[j]
            above[i, j] = d.sum() > limit * np.sqrt((d**2).sum() + 2)
        if (above == before).all():
            break
    np.testing.assert_array_equal(board.rank_low, 1 + above.sum(0))
    np.testing.assert_array_equal(board.rank_high, 4 - above.sum(1))
    assert 1 < board.rank_low.max() < 4  # neither nothing nor all is shown
    held_out = []
    for _ in range(4000):
        half = rng.permutation(75) < 37.5
        moved = (np.where(half, 1, -1) * sums).sum(1) / n
        chosen = (values + moved).argmax()
        held_out.append((values - moved)[chosen])
    bias = board.estimates.value.max() - board.winner_estimate.value
    np.testing.assert_allclose(bias, max(values.max() - np.mean(held_out), 0), atol=0.004)


def draws_error(noise: np.ndarray, i: int, j: int) -> float:
    return float(np.sqrt(noise[i, i] + noise[j, j] - 2 * noise[i, j]))


def test_clusters_of_one_example_rank_as_examples() -> None:
    truth, a, b = predictions(400, 3)
    preds = np.stack([a, b, np.roll(truth, 1)])
    f1 = jm.macro(jm.f1)
    options: Any = {"num_classes": 3, "num_samples": 4000}
    alone = jm.leaderboard(KEY, f1, truth, preds, **options)
    singles = jm.leaderboard(KEY, f1, truth, preds, clusters=np.arange(400), **options)
    np.testing.assert_allclose(
        singles.rank_probabilities, alone.rank_probabilities, atol=0.005 + 3 / np.sqrt(4000)
    )
    np.testing.assert_allclose(singles.winner_estimate[:2], alone.winner_estimate[:2], atol=0.003)
    np.testing.assert_array_equal(singles.tiers, alone.tiers)
    on_device = jax.jit(
        lambda p: jm.leaderboard(0, f1, truth, p, clusters=np.arange(400) // 4, **options)
    )(preds)
    on_host = jm.leaderboard(0, f1, truth, preds, clusters=np.arange(400) // 4, **options)
    np.testing.assert_allclose(
        on_device.rank_probabilities, on_host.rank_probabilities, atol=5 * np.sqrt(0.5 / 4000)
    )
    np.testing.assert_allclose(on_device.estimates.low, on_host.estimates.low, rtol=1e-4)
    np.testing.assert_array_equal(on_device.tiers, on_host.tiers)


@pytest.mark.parametrize("correlation", [0.2, 0.7])
def test_ties_of_clusters_are_not_told_apart(correlation: float) -> None:
    """200 leaderboards of six alike, 30 clusters: wrong in at most 5 %, and three standard errors;
    examples taken for independent are told apart in a third of them and more.
    """
    rng, wrong, naive, covered = np.random.default_rng(0), [], [], []
    for seed in range(200):
        ids, right = clustered_predictions(rng, np.full(6, 0.8), 30, correlation)
        truth = np.ones(len(ids), int)
        options: Any = {"num_classes": 2, "num_samples": 200, "method": jm.Delta("logit")}
        board = jm.leaderboard(seed, jm.accuracy, truth, right, clusters=ids, **options)
        wrong.append(board.tiers.max() > 1)
        covered.append(board.winner_estimate.low < 0.8 < board.winner_estimate.high)
        if seed < 50:
            alone = jm.leaderboard(seed, jm.accuracy, truth, right, **options)
            naive.append(alone.tiers.max() > 1)
    assert np.mean(wrong) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(naive) > 0.2
    assert np.mean(covered) > 0.9


def test_leaderboards_of_hardly_any_examples() -> None:
    board = jm.leaderboard(0, jm.accuracy, [0, 1], [[0, 1], [1, 0]], num_classes=2)
    assert board.estimates.value.tolist() == [1, 0]
    assert board.tiers.tolist() == [1, 1]
    for y_true, y_preds in (([], [[], []]), ([0], [[0], [1]]), ([-1, 0], [[0, -1], [0, 1]])):
        with pytest.raises(ValueError, match=r"two examples or more, got [01] that count"):
            jm.leaderboard(
                0, jm.accuracy, np.array(y_true, int), np.array(y_preds, int), num_classes=2
            )


def test_clusters_of_leaderboards_that_are_refused() -> None:
    labels = np.arange(2000) % 300
    with pytest.raises(ValueError, match=r"2000 clusters .* at most 1.34e\+08 .* fewer class"):
        jm.leaderboard(
            0, jm.accuracy, labels, [labels] * 2, num_classes=300, clusters=np.arange(2000)
        )
    with pytest.raises(ValueError, match="at least two"):
        jm.leaderboard(
            0, jm.accuracy, [0, 1, 1], [[0, 1, 0], [0, 1, 1]], num_classes=2, clusters=["a"] * 3
        )
