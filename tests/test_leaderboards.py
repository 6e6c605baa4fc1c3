"""Leaderboards against loops from their definitions, and what they say against what is true."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, stats

import jaxmetrics as jm
from jaxmetrics.comparisons._rankings import layers
from tests.estimates import assert_close, parts
from tests.test_comparisons import KEY, predictions


def board_of(
    truth: np.ndarray, preds: Any, num_samples: int = 500, **options: Any
) -> jm.Leaderboard:
    return jm.leaderboard(
        jm.accuracy, truth, preds, num_classes=2, key=KEY, num_samples=num_samples, **options
    )


def posterior_draws(
    values: np.ndarray, covariance: np.ndarray, rng: np.random.Generator, size: int = 50_000
) -> np.ndarray:
    """Draw true values: tau from the half-Cauchy distribution, weighted by its likelihood, then
    normal numbers about the shrunken values.
    """
    contrasts = linalg.helmert(len(values))
    eigenvalues = linalg.eigvalsh(contrasts @ covariance @ contrasts.T)
    freedom = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    squares = freedom * ((contrasts @ values) ** 2).sum() / eigenvalues.sum()
    tau = np.abs(rng.standard_cauchy(size))
    ratio = squares / (1 + tau**2)  # chi-square
    weights = stats.chi2.pdf(ratio, freedom) / (1 + tau**2)
    share = 1 - 1 / (1 + rng.choice(tau, size, p=weights / weights.sum())[:, None] ** 2)
    noise = rng.multivariate_normal(np.zeros(len(values)), covariance, size)
    return values.mean() + share * (values - values.mean()) + np.sqrt(share) * noise


def test_the_best_is_as_probable_as_by_its_definition() -> None:
    """Of four classifiers, of which two err alike."""
    rng = np.random.default_rng(3)
    right = rng.random((1, 150)) + rng.random((4, 150)) < [[1.5], [1.5], [1.45], [1.3]]
    right[1, :90] = right[0, :90]
    covariance = np.cov(right, bias=True) / 150
    true = posterior_draws(right.mean(1), covariance, rng)
    expected = np.bincount(true.argmax(1), minlength=4) / len(true)
    board = board_of(np.ones(150, int), right.astype(int), 40_000)
    assert_allclose(board.probability_best, expected, atol=0.013)  # four errors


def test_few_examples_that_differ_show_what_a_sign_test_shows() -> None:
    """Of two classifiers, k examples are right by one alone: Conover (1999), section 3.4.

    The limit, from 40,000 draws, has a standard error of 0.01, as p of 0.001.
    """
    for k in range(1, 21):
        for better in range(k // 2 + 1, k + 1):
            first = np.arange(30) < better
            second = (np.arange(30) >= better) & (np.arange(30) < k)
            board = board_of(np.ones(30, int), np.stack([first, second]).astype(int), 40_000)
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
    assert_array_equal(layers(above), expected)
    assert_array_equal(layers(jnp.asarray(above)), expected)


@pytest.mark.filterwarnings("ignore:the classes have so few examples")
def test_balanced_accuracies_with_small_classes_are_not_told_apart() -> None:
    """100 leaderboards of six that are as good, on 60 examples, 3 of the smallest class: in a class
    that one got right by chance, its derivatives alone would show no error.
    """
    rng, wrong = np.random.default_rng(0), []
    for seed in range(100):
        y_true = rng.choice(5, 60, p=[0.4, 0.3, 0.15, 0.1, 0.05])
        y_preds = np.where(rng.random((6, 60)) < 0.75, y_true, rng.integers(0, 5, (6, 60)))
        options: Any = {"num_classes": 5, "num_samples": 300, "method": jm.Delta()}
        board = jm.leaderboard(jm.balanced_accuracy, y_true, y_preds, key=seed, **options)
        wrong.append(board.tiers.max() > 1)
    assert np.mean(wrong) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_examples_that_do_not_count_are_as_if_absent() -> None:
    truth, a, b = predictions(200, 3)
    preds = np.stack([a, b, truth])
    expected = jm.leaderboard(jm.cohen_kappa, truth, preds, num_classes=3)
    more = np.concatenate([preds, [[0, -1, 1], [2, 1, 0], [0, 0, 0]]], 1)
    counted = np.arange(203) < 201
    result = jm.leaderboard(
        jm.cohen_kappa, np.append(truth, [-1, 0, 1]), more, num_classes=3, where=counted
    )
    jax.tree.map(assert_array_equal, result, expected)
    more[0, 201] = 0
    for wrong in (7, -1):
        more[1, 201] = wrong
        with pytest.raises(
            ValueError, match=rf"y_preds\[1, 201\] is {wrong}, but class ids .*where="
        ):
            jm.leaderboard(jm.cohen_kappa, np.append(truth, [-1, 0, 1]), more, num_classes=3)
    # A JAX array cannot raise: the example is left out for all classifiers.
    hidden = jnp.asarray(more[:, :202])
    result = jm.leaderboard(jm.cohen_kappa, np.append(truth, [-1, 0]), hidden, num_classes=3)
    assert_allclose(result.estimates.value, expected.estimates.value, rtol=1e-5)


def test_leaderboard_of_alike_and_undefined_classifiers() -> None:
    truth, a, b = predictions(300, 2)
    board = board_of(truth, np.stack([a, a, b]))
    assert_array_equal(board.probability_best[0], board.probability_best[1])

    def undefined_if_rare(counts: Any) -> Any:
        return np.nan if counts[0, 1] + counts[1, 0] > 20 else jm.accuracy(counts)

    preds = np.stack([1 - truth, truth])
    with_nan = jm.leaderboard(undefined_if_rare, truth, preds, num_samples=50)
    assert with_nan.winner == 1
    assert with_nan.probability_best[1] == 1
    assert np.isnan(with_nan.estimates.low[0])
    assert_array_equal([with_nan.rank_low, with_nan.rank_high], [[2, 1]] * 2)
    assert_array_equal(with_nan.tiers, [2, 1])
    with pytest.raises(ValueError, match="NaN or infinite for all classifiers"):
        jm.leaderboard(lambda counts: np.nan, truth, preds)
    # None was chosen.
    single = jm.leaderboard(jm.accuracy, [0, 1, 1], [[0, 1, 0]], num_samples=50)
    assert_array_equal(parts(single.winner_estimate), parts(single.estimates)[:, 0])


def clustered_predictions(
    rng: np.random.Generator, accuracies: np.ndarray, num_clusters: int, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Draw clusters of 2 to 20 examples, and which of them each classifier has right."""
    ids = np.repeat(np.arange(num_clusters), rng.integers(2, 21, num_clusters))
    effects = rng.normal(size=(len(accuracies), num_clusters))[:, ids]
    noise = rng.normal(size=effects.shape)
    latent = np.sqrt(correlation) * effects + np.sqrt(1 - correlation) * noise
    return ids, (latent < stats.norm.ppf(accuracies)[:, None]).astype(int)


@pytest.mark.parametrize("num_classes", [128, 300])
def test_labels_of_few_bits_among_many_classes_on_the_device(num_classes: int) -> None:
    """The number of classes is beyond int8, in which the labels come."""
    rng = np.random.default_rng(0)
    truth = rng.integers(-1, 128, 500).astype(np.int8)
    preds = np.where(rng.random((2, 500)) < [[0.9], [0.6]], truth, np.int8(5))
    host, device = (
        jm.leaderboard(jm.accuracy, *labels, num_classes=num_classes).estimates
        for labels in ((truth, preds), (jnp.asarray(truth), jnp.asarray(preds)))
    )
    assert_close(device, host, 1e-5)


def test_leaderboard_of_clusters_from_its_definition() -> None:
    """The covariance is that of sums over clusters; what is shown is so by loops over them."""
    rng = np.random.default_rng(0)
    ids, right = clustered_predictions(rng, np.array([0.62, 0.88, 0.72, 0.86]), 80, 0.3)
    names, truth = np.array([f"p{i}" for i in ids]), np.ones(len(ids), int)
    kept = ids < 75
    options: Any = {"num_classes": 2, "num_samples": 20_000, "where": kept}
    board = jm.leaderboard(jm.accuracy, truth, right, clusters=names, **options)
    tables = jm.confusion_matrix(truth, right, num_classes=2, where=kept, groups=ids)
    expected = jm.interval(jm.accuracy, tables, cluster_axis=-3)
    assert_close(board.estimates, expected, 1e-7)

    n, values = kept.sum(), right[:, kept].mean(1)
    ids, right = ids[kept], right[:, kept]
    sums = np.array([[(x - x.mean())[ids == c].sum() for c in range(75)] for x in right])
    raw = np.array([[x[ids == c].sum() for c in range(75)] for x in right])
    noise = 75 / 74 * sums @ sums.T / n**2
    draws = rng.multivariate_normal(np.zeros(4), noise, 20_000)
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
    assert_array_equal(board.rank_low, 1 + above.sum(0))
    assert_array_equal(board.rank_high, 4 - above.sum(1))
    assert 0 < above.sum() < 6  # neither nothing nor all is shown
    true = posterior_draws(values, noise, rng)
    shares = np.bincount(true.argmax(1), minlength=4) / len(true)
    assert_allclose(board.probability_best, shares, atol=0.02)
    held_out = []
    for _ in range(4000):
        half = rng.permutation(75) < 37.5
        moved = (np.where(half, 1, -1) * sums).sum(1) / n
        chosen = (values + moved).argmax()
        held_out.append((values - moved)[chosen])
    assert board.winner == values.argmax()
    found, corrected = (parts(x) for x in (board.estimates, board.winner_estimate))
    low, bias = (found[:2, board.winner] - corrected[:2])[::-1]
    assert_allclose(low, bias, rtol=1e-9)
    assert corrected[2] == found[2, board.winner]
    assert_allclose(bias, max(values.max() - np.mean(held_out), 0), atol=0.004)


def draws_error(noise: np.ndarray, i: int, j: int) -> float:
    return float(np.sqrt(noise[i, i] + noise[j, j] - 2 * noise[i, j]))


def test_clusters_of_one_example_rank_as_examples() -> None:
    truth, a, b = predictions(400, 3)
    preds = np.stack([a, b, np.roll(truth, 1)])

    def board(preds: Any, clusters: Any = None) -> jm.Leaderboard:
        options: Any = {"num_classes": 3, "num_samples": 4000, "clusters": clusters}
        return jm.leaderboard(jm.macro(jm.f1), truth, preds, **options)

    alone, singles = board(preds), board(preds, np.arange(400))
    tens = [board(put(preds), np.arange(400) // 4) for put in (np.asarray, jnp.asarray)]
    for found, expected, atol in zip(
        (singles, tens[0]), (alone, tens[1]), (0.003, 1e-4), strict=True
    ):
        error = 0.005 + 5 * np.sqrt(0.5 / 4000)
        assert_allclose(found.probability_best, expected.probability_best, atol=error)
        a, b = (parts(x.winner_estimate)[:2] for x in (found, expected))
        assert_allclose(a, b, atol=0.005)
        assert_allclose(found.estimates.low, expected.estimates.low, atol=atol)
        assert_array_equal(found.tiers, expected.tiers)


def test_leaderboards_of_hardly_any_examples() -> None:
    board = jm.leaderboard(jm.accuracy, [0, 1], [[0, 1], [1, 0]])
    assert board.estimates.value.tolist() == [1, 0]
    assert board.tiers.tolist() == [1, 1]
    for y_true, y_preds in (([], [[], []]), ([0], [[0], [1]]), ([-1, 0], [[0, 0], [0, 1]])):
        with pytest.raises(
            ValueError, match=r"at least two examples, got [01]\. Examples with where=False"
        ):
            jm.leaderboard(jm.accuracy, np.array(y_true, int), np.array(y_preds, int))


def test_clusters_of_leaderboards_that_are_refused() -> None:
    labels = np.arange(2000) % 300
    with pytest.raises(
        ValueError, match=r"2000 clusters, each .* at most 1.34e\+08 .* fewer class"
    ):
        jm.leaderboard(jm.accuracy, labels, [labels] * 2, clusters=np.arange(2000))
    with pytest.raises(ValueError, match="at least two"):
        jm.leaderboard(jm.accuracy, [0, 1, 1], [[0, 1, 0], [0, 1, 1]], clusters=["a"] * 3)


def test_a_metric_with_a_jax_array_ranks_numpy_labels() -> None:
    truth, *preds = predictions(60)
    diagonal = jnp.eye(3)
    boards = [
        jm.leaderboard(metric, truth, preds, num_classes=3, key=KEY, num_samples=500)
        for metric in (
            jm.accuracy,
            lambda counts: (counts * diagonal).sum((-2, -1)) / counts.sum((-2, -1)),
        )
    ]
    assert_close(boards[1].estimates, boards[0].estimates, 1e-5)


def test_labels_of_leaderboards() -> None:
    """Class ids, with the number of classes or without it, and names of classes rank the same."""
    truth, a, b = predictions(60, 3)
    names = np.array(["cat", "dog", "newt"])
    lists = [list(names[x]) for x in (a, b)]
    labels: dict[str, Any] = {"labels": list(names)}

    def board(y_true: Any, y_preds: Any, **options: Any) -> jm.Leaderboard:
        return jm.leaderboard(jm.macro(jm.f1), y_true, y_preds, num_samples=50, **options)

    expected = board(truth, [a, b], num_classes=3)
    for found in (
        board(truth, [a, b]),
        board(names[truth], lists),  # in their order
        *(board(names[truth], x, **labels) for x in (lists, names[[a, b]], [names[a], names[b]])),
    ):
        jax.tree.map(assert_array_equal, found, expected)
    lists[1][4] = "bat"
    with pytest.raises(
        ValueError, match=r"y_preds\[1, 4\] is 'bat', which is not one of the classes in labels"
    ):
        board(names[truth], lists, **labels)
    with pytest.raises(ValueError, match="num_classes is required if y_true is a JAX array"):
        board(jnp.asarray(truth), [a, b])


@pytest.mark.quick
@pytest.mark.parametrize(
    "table", [dict, pl.DataFrame, pd.DataFrame, pa.table], ids=["dict", "polars", "pandas", "arrow"]
)
def test_names_of_systems_are_kept(table: Any) -> None:
    truth, a, b = predictions(60)
    named = table({"new": b, "old": a})
    right = table({"new": (b == truth).astype(float), "old": (a == truth).astype(float)})
    options: dict[str, Any] = {"num_samples": 50}
    grouped: dict[str, Any] = {"groups": np.arange(60) // 20}
    for found, expected in (
        (
            jm.leaderboard(jm.accuracy, truth, named, **options),
            jm.leaderboard(jm.accuracy, truth, [b, a], **options),
        ),
        *(
            (
                jm.score_leaderboard(right, **options, **more),
                jm.score_leaderboard([b == truth, a == truth], **options, **more),
            )
            for more in ({}, grouped)
        ),
    ):
        jax.tree.map(assert_array_equal, found, expected)
        assert repr(found) == found.to_text() == expected.to_text(["new", "old"])
        assert "old" in found._repr_html_()
        assert found.to_frame().equals(expected.to_frame(["new", "old"]))
        assert found.to_dict(["x", "y"]) == expected.to_dict(["x", "y"])
        markdown, page = found.to_markdown().replace("\\", ""), found.to_html(title="<Ranks>")
        for line in found.to_text().splitlines():
            assert " | ".join(re.split("  +", line)) in markdown
        number = "" if found.estimates.num_examples is None else "60 examples, "
        shown = f">{number}2 classifiers<", ">new<", ">old<", "<title>&lt;Ranks&gt;"
        assert all(part in page for part in shown)
    jm.plots.leaderboard(found)


@pytest.mark.quick
def test_rows_of_frames_of_systems() -> None:
    truth, a, b = predictions(60)
    wide = pd.DataFrame([a, b])  # examples are columns
    found = jm.leaderboard(jm.accuracy, truth, wide, num_samples=50)
    assert (found.names, found.winner) == (None, int(np.mean(b == truth) > np.mean(a == truth)))
    with pytest.raises(ValueError, match=r"got a data frame\. Pass scores\.to_numpy\(\)\.T"):
        jm.score_leaderboard(wide)
    truths = pd.Series(truth)
    shuffled = pd.DataFrame({"a": a, "b": b}).sample(frac=1, random_state=0)
    for systems in (shuffled, {"a": shuffled["a"], "b": b}, [b, shuffled["a"]]):
        with pytest.raises(ValueError, match="different indices"):
            jm.leaderboard(jm.accuracy, truths, systems)
    infinite = jnp.array([[1, jnp.inf, 0, 1], [0, 1, 1, 1]])  # an item that is ignored
    board = jm.score_leaderboard(infinite, num_samples=50)
    assert_allclose(board.estimates.value, [2 / 3, 2 / 3], rtol=1e-6)
