"""Agreement of several raters beside loops over pairs and published numbers; its intervals beside
an optimizer and central differences.
"""

import collections
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
from tests.estimates import parts

_ = np.nan
# Krippendorff (2011), Computing Krippendorff's alpha-reliability, section C: a column per observer.
PUBLISHED = np.array(
    [
        [1, 1, _, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
        [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [_, 5, 5, 5], [_, _, 1, 1], [_, _, 3, _],
    ]
)  # fmt: skip
# Worked example of the article on Fleiss' kappa in Wikipedia: how many of 14 raters chose each of 5
# categories for 10 subjects; kappa is 0.210.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip
SCALES: Any = ("nominal", "ordinal", "interval")


def ratings_of(seed: int, n: int = 25, raters: int = 4, noise: float = 0.4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    true = rng.choice([0, 1, 3, 7], (n, 1), p=[0.4, 0.3, 0.2, 0.1])
    x = np.where(rng.random((n, raters)) < noise, rng.choice([0, 1, 3, 7], (n, raters)), true)
    return np.where(rng.random(x.shape) < 0.2, _, x)


def by_pairs(ratings: Any, scale: str, kind: Any, weights: Any = None) -> float:
    """Alpha, kappa, or the coefficient of the rater number `kind`: sums over pairs of ratings."""
    every = [{r: x for r, x in enumerate(row) if x >= 0} for row in ratings]
    rows = [
        (row, weight)
        for row, weight in zip(every, weights or [1.0] * len(every), strict=True)
        if len(row) > 1 and (isinstance(kind, str) or kind in row)
    ]
    pairs = [
        (row[r], row[s], weight / (len(row) - 1) / (len(row) if kind == "kappa" else 1))
        for row, weight in rows
        for r, s in itertools.permutations(row, 2)
        if isinstance(kind, str) or kind == r
    ]
    total = sum(each for *_, each in pairs)
    p: Any = collections.Counter()
    for x, y, each in pairs:
        p[x] += each / 2 / total
        p[y] += each / 2 / total
    value = {x: sum(p[z] for z in p if z < x) + p[x] / 2 if scale == "ordinal" else x for x in p}

    def distance(a: float, b: float) -> float:
        return float(a != b) if scale == "nominal" else (value[a] - value[b]) ** 2

    observed = sum(each * distance(x, y) for x, y, each in pairs) / total
    expected = sum(p[a] * p[b] * distance(a, b) for a in p for b in p)
    return (
        1
        - (1 if kind == "kappa" else 1 - 1 / sum(len(row) for row, _weight in rows))
        * observed
        / expected
    )


def all_by_pairs(ratings: np.ndarray, scale: str, weights: Any = None) -> np.ndarray:
    kinds = "alpha", "kappa", *range(len(ratings[0]))
    return np.array([by_pairs(ratings, scale, kind, weights) for kind in kinds])


def parts_of(found: Any) -> np.ndarray:
    """Value, ends and standard error of alpha, kappa and each rater: `(4, 2 + R)`."""
    return np.concatenate([np.reshape(parts(x), (4, -1)) for x in found[:3]], -1)


def values_of(found: Any) -> np.ndarray:
    return parts_of(found)[0]


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
    for ratings in (PUBLISHED, ratings_of(2, 12, 7)):
        found = values_of(jm.rater_agreement(ratings, scale=scale))
        assert_allclose(found, all_by_pairs(ratings, scale), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_order_and_names_do_not_matter(scale: Any) -> None:
    ratings = ratings_of(3)
    expected = parts_of(jm.rater_agreement(ratings, scale=scale))
    others: list[Any] = [
        ratings * 2.5 - 100,
        np.vstack([ratings, [[_, 3, _, _]], [[_] * 4]])[::-1],
    ]
    if scale == "nominal":
        others.append(9 - ratings)
        others.append([[f"{x}!" if x >= 0 else _ for x in row] for row in ratings])
    for other in others:
        assert_allclose(parts_of(jm.rater_agreement(other, scale=scale)), expected, 1e-6, 1e-9)
    reverse = parts_of(jm.rater_agreement(ratings[:, ::-1], scale=scale))
    assert_allclose(reverse, expected[:, [0, 1, 5, 4, 3, 2]], 1e-6, 1e-9)


@pytest.mark.parametrize("scale", SCALES)
def test_standard_error_is_that_of_derivatives(scale: Any) -> None:
    """The derivatives with respect to the weight of each item are central differences."""
    ratings, step = ratings_of(4), 1e-4
    above, below = (
        np.array([all_by_pairs(ratings, scale, [*w]) for w in 1 + s * np.eye(len(ratings))])
        for s in (step, -step)
    )
    squares = ((above - below) ** 2).sum(0) / (2 * step) ** 2
    found = jm.rater_agreement(ratings, scale=scale)
    n = np.concatenate([np.ravel(x.num_examples) for x in found[:3]])  # type: ignore[arg-type]
    assert_allclose(parts_of(found)[3], np.sqrt(n / (n - 1) * squares), rtol=1e-6)


@pytest.mark.parametrize("scale", SCALES)
def test_upper_end_is_the_largest_kappa_of_plausible_weights(scale: Any) -> None:
    ratings = ratings_of(5, 24, 3)
    items = ratings[(ratings >= 0).sum(1) > 1]
    n, size = len(items), (items >= 0).sum() / len(items)
    # A third of a pair of ratings 7, which is the rarest and the most distant rating.
    counts, items = np.append(np.ones(n), 1 / 3), np.vstack([items, [7, 7, _]])
    radius = stats.t.ppf(0.975, n - 1) ** 2 / 2

    def weights(x: np.ndarray) -> np.ndarray:
        return np.exp(x) / np.exp(x).sum() * counts.sum()

    best = minimize(
        lambda x: -by_pairs(items, scale, "kappa", [*weights(x)[:-1], weights(x)[-1] * 2 / size]),
        np.log(counts),
        constraints={
            "type": "ineq",
            "fun": lambda x: radius - counts @ np.log(counts / weights(x)),
        },
        method="SLSQP",
    )
    assert_allclose(jm.rater_agreement(ratings, scale=scale).kappa.high, -best.fun, atol=2e-3)


def test_perfect_agreement_has_a_width_that_shrinks() -> None:
    few, many = (parts_of(jm.rater_agreement(np.arange(n)[:, None] % 3 * [1, 1])) for n in (9, 99))
    assert_allclose([few[[0, 2]], many[[0, 2]]], 1, rtol=1e-12)
    assert (few[1] < 0.8).all()
    assert ((many[1] > 0.95) & (many[1] < 1)).all()


UNDEFINED: dict[str, Any] = {
    "one category": ([[1, 1], [1, 1], [1, 1]], _, 3),
    "no item with two ratings": ([[1, _], [_, 2], [_, _]], _, 0),
    "one rater": ([[1], [2]], _, 0),
    "no items": (np.zeros((0, 3), int), _, 0),
    "nothing rated": (np.full((4, 2), _), _, 0),
    # 2/3 of the pairs disagree, and 4/9 by chance; there are 3 ratings. The scale of two categories
    # does not matter.
    "one item": ([[1, 2, 2]], 1 - (2 / 3) * (2 / 3) / (4 / 9), 1),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("case", UNDEFINED)
def test_undefined_agreement_is_nan(case: str, scale: Any) -> None:
    ratings, value, number = UNDEFINED[case]
    alpha, _kappa, of_raters, num_left_out = jm.rater_agreement(ratings, scale=scale)
    assert_allclose(parts(alpha), [value, _, _, _], atol=1e-12)
    assert np.isnan(parts(of_raters)[1:]).all()
    assert_array_equal(alpha.num_examples, number)
    assert num_left_out == len(ratings) - number


def test_a_rater_who_shares_no_item_has_no_coefficient() -> None:
    """The others are computed as without this rater."""
    ratings = np.vstack([np.insert(ratings_of(7), 4, _, 1), [[_, _, _, _, 2]]])
    for scale in SCALES:
        found = parts_of(jm.rater_agreement(ratings, scale=scale))
        assert_array_equal(found[:, 6], np.full(4, _))
        assert_allclose(found[:, :6], parts_of(jm.rater_agreement(ratings_of(7), scale=scale)))


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
        [[f"{x:g}" if x >= 0 else None for x in row] for row in ratings],
    ]
    for frame in frames:
        found = jm.rater_agreement(frame, scale="ordinal")
        assert_allclose(values_of(found), expected)
        assert found.raters.names == (tuple(map(str, getattr(frame, "columns", ()))) or None)
    refused: Any = ("ordinal", pd.DataFrame(columns)), ("interval", frames[0])
    for scale, frame in refused:
        with pytest.raises(TypeError, match="hold numbers, or ordered categories for the ordinal"):
            jm.rater_agreement(frame, scale=scale)


def test_many_categories_and_extreme_numbers() -> None:
    rng = np.random.default_rng(0)
    x = 5 + rng.normal(size=(60, 1)) + 0.3 * rng.normal(size=(60, 4))  # all ratings differ
    expected = parts_of(jm.rater_agreement(x, scale="interval"))
    assert_allclose(expected[0], all_by_pairs(x, "interval"), rtol=1e-9)
    for y in (x * 1e300, x * 1e-300, x + 1e6):
        assert_allclose(parts_of(jm.rater_agreement(y, scale="interval")), expected, 1e-6)

    few = np.array([[0, 1], [1, 0], [2, 2], [2, 2]] * 10)
    for scale in SCALES:
        expected = parts_of(jm.rater_agreement(few, scale=scale))
        for codes in (few + 2**60, few.astype(np.uint64) + np.uint64(2**64 - 5)):
            assert_array_equal(parts_of(jm.rater_agreement(codes, scale=scale)), expected)


@pytest.mark.parametrize(
    ("ratings", "most"),  # largest alpha of plausible weights of the items, by SLSQP
    [
        ([[2, 1, 2], [np.nan, 4, 2], [3, 2, 4], [1, 0, 1]], 0.955),
        ([[2, 0, 0], [3, 4, 4], [3, 2, 4]], 0.993),
        ([[2, np.nan, 0], [3, 4, 4], [0, 3, np.nan], [4, 0, 4], [0, 0, 2]], 0.814),
    ],
)
def test_ends_of_few_items(ratings: Any, most: float) -> None:
    wide, narrow = (
        jm.rater_agreement(ratings, scale="ordinal", level=level).alpha for level in (0.95, 0.5)
    )
    assert wide.high == pytest.approx(most, abs=0.015)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


BAD: dict[str, Any] = {
    "one axis": ([1, 2], {}, ValueError, "shape \\(items, raters\\)"),
    "no raters": (np.zeros((3, 0), int), {}, ValueError, "at least one rater"),
    "infinite": ([[1.0, np.inf]], {}, ValueError, "ratings\\[0, 1\\] is inf"),
    "mixed": ([["a", 1], ["b", "a"]], {}, TypeError, "all strings or all numbers.* column 0"),
    "ids": (
        pl.DataFrame({"x": [1, 2, None], "item": ["a", "b", None], "y": [1, 2, 2]}),
        {"scale": "interval"},
        TypeError,
        "first in column 'item'.* without ids",
    ),
    "objects": ([[object(), 1]], {}, TypeError, "real numbers"),
    "complex": ([[1j, 1]], {}, TypeError, "real numbers"),
    "too many raters": (np.zeros((2**10, 2**9), int), {}, ValueError, "first columns"),
    "scale": ([[1, 2]], {"scale": "ratio"}, ValueError, "must be 'nominal', 'ordinal' or"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_ratings_are_refused(case: str) -> None:
    ratings, options, error, message = BAD[case]
    with pytest.raises(error, match=message):
        jm.rater_agreement(ratings, **options)


def test_ids_and_counts_in_the_place_of_ratings_give_a_warning() -> None:
    long = pd.DataFrame({"item": ["p", "p", "q", "q"], "rating": ["a", "a", "b", "a"]})
    with pytest.warns(UserWarning, match="column 'item' of ratings shares no category"):
        jm.rater_agreement(long)
    wide = long.assign(k=long.groupby("item").cumcount())
    wide = wide.pivot(index="item", columns="k", values="rating")
    assert "each rater" in str(jm.rater_agreement(wide))
    with pytest.warns(UserWarning, match="sum 14, like counts"):
        jm.rater_agreement(FLEISS)


def test_negative_integers_are_missing_only_if_nothing_else_marks_gaps() -> None:
    ratings = ratings_of(8)
    expected = parts_of(jm.rater_agreement(ratings, scale="interval"))
    for x in (ratings, np.where(ratings != ratings, _, ratings - 3)):
        found = jm.rater_agreement(pd.DataFrame(x).astype("Int64"), scale="interval")
        assert_allclose(parts_of(found), expected)
        lists = [[int(y) if y == y else None for y in row] for row in x]
        assert_allclose(parts_of(jm.rater_agreement(lists, scale="interval")), expected)
    number = np.isnan(ratings).sum()
    with pytest.warns(UserWarning, match=f"{number} of 100 ratings are negative.*, pass floats"):
        found = jm.rater_agreement(np.nan_to_num(ratings, nan=-1).astype(int), scale="interval")
    assert_allclose(parts_of(found), expected)


def test_the_number_of_items_is_printed() -> None:
    ratings = [[1, 2, 2], [1, 1, 1], [2, _, 2], [1, _, _]]
    start = "3 items with at least two ratings, 1 left out\nalpha: "
    assert str(jm.rater_agreement(ratings)).startswith(start)
    assert str(jm.rater_agreement(ratings[:3])).startswith("3 items with at least two ratings\na")


@pytest.mark.slow
def test_covers_the_agreement_of_the_population() -> None:
    """The coverage is 0.96 in `bench`: of 100 samples 96, with a standard deviation of 2."""
    rng = np.random.default_rng(1)

    def sample(n: int) -> np.ndarray:
        true = rng.choice(3, (n, 1), p=[0.6, 0.3, 0.1])
        x = np.where(rng.random((n, 3)) < 0.2, rng.choice(3, (n, 3)), true)
        return np.where(rng.random((n, 3)) < 0.2, _, x)

    true = jm.rater_agreement(sample(4000)).alpha.value
    found = [jm.rater_agreement(sample(30)).alpha for _ in range(100)]
    assert 88 <= sum(x.low <= true <= x.high for x in found) <= 100
