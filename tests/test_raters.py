"""Agreement of several raters beside loops over pairs and published numbers; its intervals beside
an optimizer and the jackknife.
"""

import itertools
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.optimize import minimize

import jaxmetrics as jm

_ = np.nan
# Krippendorff (2011), Computing Krippendorff's alpha-reliability, section C: a column per observer.
PUBLISHED = np.array(
    [
        [1, 1, _, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
        [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [_, 5, 5, 5], [_, _, 1, 1], [_, _, 3, _],
    ]
)  # fmt: skip
# Fleiss (1971): how often 6 psychiatrists chose each of 5 diagnoses for 10 of 30 patients, from the
# table of Wikipedia: 14 raters, 10 subjects, kappa 0.210.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip
SCALES: Any = ("nominal", "ordinal", "interval")
OPTIONS: Any = {"rtol": 1e-9, "atol": 1e-12}


def ratings_of(seed: int, n: int = 25, raters: int = 4, noise: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    true = rng.choice([0, 1, 3, 7], (n, 1), p=[0.4, 0.3, 0.2, 0.1])
    x = np.where(rng.random((n, raters)) < noise, rng.choice([0, 1, 3, 7], (n, raters)), true)
    return np.where(rng.random(x.shape) < 0.2, -1, x)


def by_pairs(ratings: Any, scale: str, kind: Any, weights: Any = None) -> float:
    """Alpha, kappa, or the coefficient of the rater number `kind`: sums over pairs of ratings."""
    rows = [
        [(r, x) for r, x in enumerate(row) if x not in (-1, None) and x == x] for row in ratings
    ]
    rows = [
        row for row in rows if len(row) > 1 and (kind in ("alpha", "kappa") or kind in dict(row))
    ]
    pairs, num_ratings = [], sum(map(len, rows))
    for row, weight in zip(rows, weights or [1.0] * len(rows), strict=True):
        each = weight / (len(row) - 1) / (len(row) if kind == "kappa" else 1)
        for (r, x), (_other, y) in itertools.permutations(row, 2):
            if kind in ("alpha", "kappa", r):
                pairs.append((x, y, each))
    total = sum(each for *_, each in pairs)
    p: dict[float, float] = dict.fromkeys(sorted({x for pair in pairs for x in pair[:2]}), 0)
    for x, y, each in pairs:
        p[x] += each / 2 / total
        p[y] += each / 2 / total
    rank = {x: sum(p[z] for z in p if z < x) + p[x] / 2 for x in p}

    def distance(a: float, b: float) -> float:
        if scale == "nominal":
            return float(a != b)
        return (rank[a] - rank[b]) ** 2 if scale == "ordinal" else (a - b) ** 2

    observed = sum(each * distance(x, y) for x, y, each in pairs) / total
    expected = sum(p[a] * p[b] * distance(a, b) for a in p for b in p)
    return 1 - (1 if kind == "kappa" else 1 - 1 / num_ratings) * observed / expected


def all_by_pairs(ratings: np.ndarray, scale: str) -> list[float]:
    return [by_pairs(ratings, scale, kind) for kind in ("alpha", "kappa", *range(len(ratings[0])))]


def values_of(found: Any) -> np.ndarray:
    return np.array([found.alpha.value, found.kappa.value, *found.raters.value])


@pytest.mark.quick
@pytest.mark.parametrize(
    ("scale", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_is_the_published_number(scale: Any, published: float) -> None:
    assert round(float(jm.rater_agreement(PUBLISHED, scale=scale).alpha), 3) == published


def test_kappa_is_the_published_number_of_fleiss() -> None:
    ratings = [np.repeat(np.arange(5), row) for row in FLEISS]
    assert round(float(jm.rater_agreement(ratings).kappa), 3) == 0.210


@pytest.mark.parametrize("scale", SCALES)
def test_coefficients_are_sums_over_pairs(scale: Any) -> None:
    for ratings in (PUBLISHED, ratings_of(1), ratings_of(2, 12, 7)):
        found = values_of(jm.rater_agreement(ratings, scale=scale))
        assert_allclose(found, all_by_pairs(ratings, scale), **OPTIONS)


@pytest.mark.parametrize("weights", [None, "quadratic"])
def test_two_raters_agree_as_in_functions_of_counts(weights: Any) -> None:
    counts = np.array([[8, 2, 1], [1, 9, 3], [0, 2, 7]])
    ratings = np.argwhere(counts >= 0).repeat(counts.ravel(), 0)
    found = jm.rater_agreement(ratings, scale="interval" if weights else "nominal")
    alpha = jm.krippendorff_alpha(counts, weights=weights)
    kappa = jm.cohen_kappa(counts, weights=weights, chance="pooled")
    assert_allclose(values_of(found), [alpha, kappa, alpha, alpha], **OPTIONS)


@pytest.mark.parametrize("scale", SCALES)
def test_order_and_names_do_not_matter(scale: Any) -> None:
    ratings = ratings_of(3)
    found = jm.rater_agreement(ratings, scale=scale)
    order = np.random.default_rng(0).permutation(25)
    others = [
        jm.rater_agreement(ratings[order], scale=scale),
        jm.rater_agreement(np.where(ratings < 0, np.nan, ratings * 2.5 - 100), scale=scale),
        jm.rater_agreement(np.vstack([ratings, [[-1, 3, -1, -1]], [[-1] * 4]]), scale=scale),
    ]
    if scale == "nominal":
        others.append(jm.rater_agreement(np.where(ratings < 0, -1, 9 - ratings)))
        others.append(jm.rater_agreement([[_ if x < 0 else f"{x}!" for x in y] for y in ratings]))
    for other in others:
        for a, b in zip(found, other, strict=True):
            for name in ("value", "low", "high", "standard_error", "num_examples"):
                assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-9)
    reverse = jm.rater_agreement(ratings[:, ::-1], scale=scale).raters
    assert_allclose(reverse.low, found.raters.low[::-1], rtol=1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_standard_error_is_near_the_jackknife(scale: Any) -> None:
    ratings = ratings_of(4, 80)
    found = jm.rater_agreement(ratings, scale=scale)
    without = [all_by_pairs(np.delete(ratings, i, 0), scale) for i in range(80)]
    errors = [found.alpha.standard_error, found.kappa.standard_error, *found.raters.standard_error]
    assert_allclose(errors, np.std(without, axis=0) * np.sqrt(79), rtol=0.06)


@pytest.mark.parametrize("scale", SCALES)
def test_upper_end_is_the_largest_kappa_of_plausible_weights(scale: Any) -> None:
    ratings = ratings_of(5, 24, 3)
    items = ratings[(ratings >= 0).sum(1) > 1]
    n, size = len(items), (items >= 0).sum() / len(items)
    # A third of a pair of ratings 7, which is the rarest and the most distant rating.
    counts, items = np.append(np.ones(n), 1 / 3), np.vstack([items, [7, 7, -1]])

    def weights(x: np.ndarray) -> np.ndarray:
        return np.exp(x) / np.exp(x).sum() * counts.sum()

    best = minimize(
        lambda x: -by_pairs(items, scale, "kappa", [*weights(x)[:-1], weights(x)[-1] * 2 / size]),
        np.log(counts),
        constraints={
            "type": "ineq",
            "fun": lambda x: (
                stats.t.ppf(0.975, n - 1) ** 2 / 2 - counts @ np.log(counts / weights(x))
            ),
        },
        method="SLSQP",
    )
    assert_allclose(jm.rater_agreement(ratings, scale=scale).kappa.high, -best.fun, atol=2e-3)


def test_perfect_agreement_has_a_width_that_shrinks() -> None:
    few, many = (jm.rater_agreement(np.arange(n)[:, None] % 3 * [1, 1, 1]) for n in (10, 100))
    for found in (few, many):
        assert found.alpha.value == found.kappa.value == found.alpha.high == 1
    assert few.alpha.low < 0.8 < 0.95 < many.alpha.low < 1
    assert few.raters.low[0] <= few.alpha.low


UNDEFINED: dict[str, Any] = {
    "one category": ([[1, 1], [1, 1], [1, 1]], _, 3),
    "no item with two ratings": ([[1, -1], [-1, 2], [-1, -1]], _, 0),
    "one rater": ([[1], [2]], _, 0),
    "no items": (np.zeros((0, 3), int), _, 0),
    "nothing rated": (np.full((4, 2), _), _, 0),
    # 2/3 of the pairs disagree, and 4/9 by chance; there are 3 ratings.
    "one item": ([[1, 2, 2]], 1 - (2 / 3) * (2 / 3) / (4 / 9), 1),
}


@pytest.mark.parametrize("case", UNDEFINED)
def test_undefined_agreement_is_nan(case: str) -> None:
    ratings, value, number = UNDEFINED[case]
    found = jm.rater_agreement(ratings)
    for estimate in (found.alpha, found.kappa)[: 2 if np.isnan(value) else 1]:
        assert_allclose(estimate.value, value, rtol=1e-12)
        assert_array_equal(estimate.num_examples, number)
        assert np.isnan([estimate.low, estimate.high, estimate.standard_error]).all()


def test_frames_and_their_ordered_categories() -> None:
    ratings = ratings_of(6)
    expected = values_of(jm.rater_agreement(ratings, scale="ordinal"))
    names = {0: "poor", 1: "fair", 3: "good", 7: "best"}
    columns = {f"r{i}": [names.get(x) for x in column] for i, column in enumerate(ratings.T)}
    ordered = pd.CategoricalDtype([*names.values()], ordered=True)
    frames = [
        pd.DataFrame(columns, dtype=ordered),
        pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Enum([*names.values()]))),
        pd.DataFrame(ratings).where(ratings >= 0).astype("Int64"),
        [[None if x < 0 else str(x) for x in row] for row in ratings],
    ]
    for frame in frames:
        assert_allclose(values_of(jm.rater_agreement(frame, scale="ordinal")), expected)
    with pytest.raises(
        TypeError, match="hold numbers or ordered categories for the ordinal scale, got"
    ):
        jm.rater_agreement(pd.DataFrame(columns), scale="ordinal")
    for frame in frames[:2]:
        with pytest.raises(TypeError, match="ratings must hold numbers, got"):
            jm.rater_agreement(frame, scale="interval")


def test_many_categories_and_extreme_numbers() -> None:
    rng = np.random.default_rng(0)
    labels = rng.permutation(1000)[:, None] * [1, 1, 1]
    assert jm.rater_agreement(labels).alpha.value == 1
    x = rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 4))
    found = jm.rater_agreement(x, scale="interval")
    assert_allclose(values_of(found), all_by_pairs(x, "interval"), rtol=1e-9)
    for y in (x * 1e300, x * 1e-300, x + 1e6):
        assert_allclose(jm.rater_agreement(y, scale="interval").alpha.low, found.alpha.low, 1e-6)


BAD: dict[str, Any] = {
    "one axis": ([1, 2], ValueError, "shape \\(items, raters\\)"),
    "no raters": (np.zeros((3, 0), int), ValueError, "at least one rater"),
    "infinite": ([[1.0, np.inf]], ValueError, "ratings\\[0, 1\\] is inf"),
    "mixed": ([["a", 1], ["b", "a"]], TypeError, "all strings or all integers"),
    "objects": ([[object(), 1]], TypeError, "real numbers"),
    "complex": ([[1j, 1]], TypeError, "real numbers"),
    "too many raters": (np.zeros((2**10, 2**9), int), ValueError, "first columns"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_ratings_are_refused(case: str) -> None:
    ratings, error, message = BAD[case]
    with pytest.raises(error, match=message):
        jm.rater_agreement(ratings)
    with pytest.raises(ValueError, match="scale must be 'nominal', 'ordinal' or 'interval'"):
        jm.rater_agreement([[1, 2]], scale="ratio")  # type: ignore[arg-type]


@pytest.mark.slow
def test_covers_the_agreement_of_the_population() -> None:
    """The coverage is 0.96 in `bench`: of 100 samples 96, with a standard deviation of 2."""
    rng = np.random.default_rng(1)

    def sample(n: int) -> np.ndarray:
        true = rng.choice(3, (n, 1), p=[0.6, 0.3, 0.1])
        x = np.where(rng.random((n, 3)) < 0.2, rng.choice(3, (n, 3)), true)
        return np.where(rng.random((n, 3)) < 0.2, -1, x)

    true = jm.rater_agreement(sample(4000)).alpha.value
    found = [jm.rater_agreement(sample(30)).alpha for _ in range(100)]
    assert 88 <= sum(x.low <= true <= x.high for x in found) <= 100
