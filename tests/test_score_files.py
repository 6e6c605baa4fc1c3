"""Reports of scores per item, of groups of items and of two systems."""

import csv
import io
import json
from collections.abc import Sequence
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm
from jaxmetrics.intervals.strata import Strata, mean_of_groups
from jaxmetrics.reports.score_means import ItemScores
from jaxmetrics.reports.values import Compared
from tests.command_line import GRADES, RIGHT, TASKS, USERS, N
from tests.estimates import parts
from tests.oracles import fields_of

OPTIONS: dict[str, Any] = {"bounds": (0, 1), "groups": TASKS, "name": "acc"}
ONE = jm.score_report(RIGHT[0], **OPTIONS)
BOTH = jm.score_report(*RIGHT[:2], **OPTIONS)


def assert_same(found: Any, expected: Any) -> None:
    assert found.numbers == pytest.approx(fields_of(expected)[:3], rel=1e-9)


@pytest.mark.quick
def test_a_report_of_scores() -> None:
    assert_same(ONE["mean"], jm.mean_interval(RIGHT[0], bounds=(0, 1)))
    for task in ("code", "law", "math"):
        scores = RIGHT[:2, task == TASKS]
        assert_same(ONE["group"][task], jm.mean_interval(scores[0], bounds=(0, 1)))
        compared = jm.compare_scores(*scores, bounds=(0, 1))
        assert_same(BOTH["group"][task].difference, compared.difference)
    assert ONE["mean_of_groups"].method == "likelihood"
    compared = jm.compare_scores(*RIGHT[:2], bounds=(0, 1))
    for name in ("a", "b", "difference"):
        assert_same(getattr(BOTH["mean"], name), getattr(compared, name))
    clustered = jm.score_report(GRADES[1], bounds=(0, 1), clusters=USERS)
    assert [*clustered.values()] == ["mean"]
    assert_same(clustered["mean"], jm.mean_interval(GRADES[1], bounds=(0, 1), clusters=USERS))
    turned = jm.score_report(*RIGHT[1::-1], **OPTIONS)["mean_of_groups"].difference
    assert -turned.high == pytest.approx(BOTH["mean_of_groups"].difference.low, rel=1e-9)
    assert BOTH.to_frame("polars")["system"].to_list()[:3] == ["A", "B", "A - B"]
    with_gap = jm.score_report([1, 1, np.nan, 0], groups=[1, 1, 2, 1])
    assert [*with_gap["group"]] == ["1"]  # no item of the other group has a score


@pytest.mark.quick
def test_scores_of_0_and_1_have_mcnemars_test() -> None:
    """As the labels of correct answers; grades and clusters have no such test."""
    of_labels = jm.comparison_report(np.ones(N, int), *RIGHT[:2].astype(int))
    found = BOTH.to_dict()["mcnemar"]
    assert found == of_labels.to_dict()["mcnemar"]
    assert "McNemar's test (mid-p): p" in BOTH.to_text()
    others = jm.score_report(*GRADES), jm.score_report(*RIGHT[:2], clusters=USERS)
    assert not any("mcnemar" in x.to_dict() for x in (*others, ONE))


@pytest.mark.quick
def test_scores_without_bounds() -> None:
    losses = np.random.default_rng(0).exponential(2, (4, 30))
    found = jm.score_report(losses.ravel(), groups=np.repeat([*"wxyz"], 30))
    assert_same(found["mean"], jm.mean_interval(losses.ravel()))
    means = jm.mean_interval(losses)
    mean = means.value.mean()
    reach = np.sqrt(((means.high - means.value) ** 2).sum()) / 4  # squares add, over 4
    mean_of_groups = found["mean_of_groups"]
    assert mean_of_groups.numbers == pytest.approx((mean, mean - reach, mean + reach), rel=1e-12)
    assert mean_of_groups.method == "mover"


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 0]],), r"scores must have shape \(n,\)"),
        (([1, 0], [1]), "with the same n for both systems"),
        (([np.nan, np.nan],), "no item has a score"),
        (([1, 0], [1, np.inf]), r"other\[1\] is inf, expected a finite number"),
    ],
)
def test_scores_that_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jm.score_report(*arguments)
    with pytest.raises(ValueError, match="groups"):
        jm.score_report([1, 0], groups=["a"])


def least_mean_of_groups(groups: Sequence[np.ndarray], bound: float, z: float) -> float:
    """The least mean of the means of groups by a search over how far each one goes."""
    from scipy.optimize import minimize

    moves = [abs(bound - x.mean()) / (len(x) - 1 + 1 / 3) for x in groups]
    added = int(np.argmax(moves))
    values = [np.append(x, bound) if i == added else x for i, x in enumerate(groups)]
    counts = [
        np.append(np.full(len(x), 1 - 1 / len(x)), [1 / 3] * (i == added))
        for i, x in enumerate(groups)
    ]

    def shares(logits: np.ndarray) -> list[np.ndarray]:
        found, start = [], 0
        for x in values:
            part = np.exp(logits[start : start + len(x)])
            found.append(part / part.sum())
            start += len(x)
        return found

    def mean(logits: np.ndarray) -> float:
        return float(np.mean([p @ x for p, x in zip(shares(logits), values, strict=True)]))

    def slack(logits: np.ndarray) -> float:
        lost = sum(c @ np.log(c / c.sum() / p) for c, p in zip(counts, shares(logits), strict=True))
        return z**2 / 2 - lost

    start = np.concatenate([np.log(c / c.sum()) for c in counts])
    constraint = {"type": "ineq", "fun": slack}
    options = {"maxiter": 2000, "ftol": 1e-13}
    return mean(minimize(mean, start, constraints=constraint, method="SLSQP", options=options).x)


def estimate_of_groups(groups: Sequence[np.ndarray], **options: Any) -> jm.Estimate:
    numbers = np.repeat(np.arange(len(groups)), [len(x) for x in groups])
    strata = Strata.of(numbers, options.pop("clusters", None))
    return mean_of_groups(
        np.concatenate(groups), strata, **{"bounds": (0, 1), "z": 1.96, **options}
    )


@pytest.mark.quick
def test_the_mean_of_groups_is_by_one_likelihood() -> None:
    """The ends are those of a constrained search over all distributions in all groups at once."""
    rng = np.random.default_rng(1)
    groups = [rng.random(5), rng.random(3) ** 2, np.ones(4)]
    _, low, high, _ = fields_of(estimate_of_groups(groups))
    assert low == pytest.approx(least_mean_of_groups(groups, 0.0, 1.96), rel=1e-4)
    turned = [1 - x for x in groups]
    assert 1 - high == pytest.approx(least_mean_of_groups(turned, 0.0, 1.96), rel=1e-4)


@pytest.mark.quick
def test_the_mean_of_groups_of_one_item_is_the_mean() -> None:
    scores = np.random.default_rng(0).random(200) < 0.7
    found = jm.score_report(scores, bounds=(0, 1), groups=np.arange(200))
    assert found["mean_of_groups"].numbers == pytest.approx(found["mean"].numbers, rel=1e-9)
    equal = jm.score_report([1, 0, 1] * 5, bounds=(0, 1), groups=[*"abc"] * 5)["mean_of_groups"]
    assert equal.low < 0.64  # of groups at a bound others move
    assert equal.high > 0.69


@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [[1] * 25, [2] * 25, [3] * 12, [1, 1, 1, 2, 2, 4, 9, 20], [15] * 4]
)
def test_the_mean_of_small_groups_covers(sizes: Sequence[int]) -> None:
    rng = np.random.default_rng(5)
    truth = np.linspace(0.5, 0.9, len(sizes))
    hits = 0
    for _ in range(400):
        groups = [(rng.random(n) < p).astype(float) for n, p in zip(sizes, truth, strict=True)]
        _, low, high, _ = fields_of(estimate_of_groups(groups))
        hits += low <= truth.mean() <= high
    assert hits / 400 > 0.92


@pytest.mark.quick
@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_clusters_that_straddle_groups(bounds: Any) -> None:
    """Each of 30 clusters has one item in each of 4 groups: the mean of groups is that of the
    clusters' means, whose sample variance knows how items of a cluster depend on one another.
    """
    rng = np.random.default_rng(2)
    x = np.clip(rng.normal(0.6, 0.2, (30, 1)) + rng.normal(0, 0.1, (30, 4)), 0, 1)
    groups, clusters = np.tile(np.arange(4), 30), np.repeat(np.arange(30), 4)
    found = mean_of_groups(x.ravel(), Strata.of(groups, clusters), bounds=bounds, z=1.959964)
    expected = jm.mean_interval(x.mean(1))
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-9)
    if bounds is not None:  # as of items that are in no groups, less a degree of freedom for each
        expected = jm.mean_interval(x.ravel(), bounds=bounds, clusters=clusters)
    tolerance = 1e-6 if bounds is None else 0.05 * (expected.high - expected.low)
    assert fields_of(found)[:3] == pytest.approx(fields_of(expected)[:3], abs=tolerance)
    report = jm.score_report(x.ravel(), bounds=bounds, groups=groups, clusters=clusters)
    assert report["mean_of_groups"].numbers == pytest.approx(
        (found.value, found.low, found.high), abs=1e-7
    )


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore:with . cluster")
def test_strata_of_clusters_within_groups() -> None:
    """Clusters that are not shared: the variance is the sum of those of the groups, by jackknife;
    two groups of one cluster each make one stratum, of two clusters.
    """
    rng = np.random.default_rng(3)
    sizes = [6, 5, 2, 1, 1]  # clusters of the groups, of four items
    groups = np.repeat(np.arange(5), np.array(sizes) * 4)
    clusters, x = np.arange(60) // 4, rng.random(60)
    means = [jm.mean_interval(x[groups == g], clusters=clusters[groups == g]) for g in range(5)]
    of_two = jm.mean_interval(x[groups > 2], clusters=clusters[groups > 2]).standard_error
    errors = [*(found.standard_error for found in means[:3]), 2 * of_two]
    found = mean_of_groups(x, Strata.of(groups, clusters), bounds=None, z=1.96)
    assert found.value == pytest.approx(np.mean([found.value for found in means]))
    assert found.standard_error == pytest.approx(np.sqrt(np.square(errors).sum()) / 5, rel=1e-9)
    board = jm.score_leaderboard(np.stack([x, -x]), clusters=clusters, groups=groups)
    assert board.estimates.num_undefined.dtype == np.int32
    alone = mean_of_groups(
        x[:24], Strata.of(np.zeros(24, int), np.zeros(24, int)), bounds=(0, 1), z=2
    )
    assert np.isnan(alone.low)


@pytest.mark.quick
def test_systems_are_ranked_by_means_of_groups() -> None:
    board = jm.score_leaderboard(RIGHT, bounds=(0, 1), groups=TASKS)
    means = np.mean([RIGHT[:, task == TASKS].mean(1) for task in TASKS[:3]], 0)
    assert_allclose(board.estimates.value, means)
    report = jm.score_report(RIGHT[1], bounds=(0, 1), groups=TASKS)["mean_of_groups"]
    assert_allclose(parts(board.estimates)[:, 1], parts(report), rtol=1e-6)
    one = jm.score_leaderboard(RIGHT, bounds=(0, 1), groups=np.zeros(N, int))
    plain = jm.score_leaderboard(RIGHT, bounds=(0, 1))
    assert [*map(list, (one.tiers, one.rank_low))] == [*map(list, (plain.tiers, plain.rank_low))]
    with pytest.raises(TypeError, match="If groups is given, scores must be a NumPy array"):
        jm.score_leaderboard(jnp.asarray(RIGHT), groups=TASKS)


@pytest.mark.slow
def test_systems_of_equal_means_of_groups_are_rarely_told_apart() -> None:
    """300 leaderboards of unequal tasks, half with clusters across tasks: 5 % are allowed."""
    rng, groups = np.random.default_rng(6), np.repeat(np.arange(4), [5, 10, 30, 75])
    false = 0
    for i in range(300):
        clusters = None if i % 2 else rng.permutation(120) // 3
        ease = rng.random(120) if clusters is None else rng.random(40)[clusters]
        scores = rng.random((4, 120)) < 0.6 + 0.4 * ease
        board = jm.score_leaderboard(
            scores, bounds=(0, 1), groups=groups, clusters=clusters, num_samples=400, key=i
        )
        false += board.tiers.max() > 1
    assert false <= 300 * 0.05 + 2.6 * np.sqrt(300 * 0.05 * 0.95)


def benjamini_hochberg(p_values: np.ndarray, rate: float) -> set[int]:
    """As it is told: the k smallest, for the largest k of which the last is at most k rate / m."""
    order = np.argsort(p_values)
    k = max(
        (i + 1 for i, j in enumerate(order) if p_values[j] <= (i + 1) * rate / len(order)),
        default=0,
    )
    return set(order[:k].tolist())


@pytest.mark.quick
def test_groups_that_differ() -> None:
    rng = np.random.default_rng(2)
    groups, shift = np.repeat(np.arange(12), 40), np.repeat([0.3, 0.2, 0.15, *[0] * 9], 40)
    a, b = rng.random(480) < 0.9, rng.random(480) < 0.9 - shift
    found = jm.score_report(a, b, bounds=(0, 1), groups=groups)
    better = np.array([found["group"][str(i)].probability_better for i in range(12)])
    differ = benjamini_hochberg(2 * np.minimum(better, 1 - better), 0.05)
    assert 1 <= len(differ) < 12
    names = ", ".join(sorted(map(str, differ)))
    text = found.to_text().replace("\n", " ")
    assert f"(Benjamini and Hochberg), A and B differ in {names}." in text


@pytest.mark.slow
def test_few_scores_are_no_false_discoveries() -> None:
    """30 groups of five items without bounds and without a difference: 5 % of 300 sets, by
    Student's distribution; a normal one finds differences in a fifth of them.
    """
    rng, groups = np.random.default_rng(8), np.repeat(np.arange(30), 5)
    false = 0
    for _ in range(300):
        found = jm.score_report(*rng.normal(size=(2, 150)), groups=groups)
        false += "in no group" not in found.to_text().replace("\n", " ")
    assert false <= 300 * 0.05 + 2.6 * np.sqrt(300 * 0.05 * 0.95)


@pytest.mark.quick
def test_missing_scores_of_a_comparison_are_bounded() -> None:
    a, b = [1, 1, 0, np.nan, 1, 1], [0, 1, np.nan, np.nan, 1, 0]
    text = jm.score_report(a, b, bounds=(0, 1)).to_text().replace("\n", " ")
    least = jm.mean_interval([1, 0, -1, -1, 0, 1], bounds=(-1, 1))
    greatest = jm.mean_interval([1, 0, 0, 1, 0, 1], bounds=(-1, 1))
    assert "Scores are missing: 1 of 6 in A and 2 of 6 in B. Values are of the other 4" in text
    assert f"A - B of all 6 items is at least {least} and at most {greatest}, whatever" in text
    unbounded = jm.score_report(a, b).to_text().replace("\n", " ")
    assert "the mean of all items is unknown, because scores have no bounds." in unbounded


@pytest.mark.quick
@pytest.mark.parametrize("is_least", [True, False])
def test_the_worst_case_is_the_worst_of_all(is_least: bool) -> None:
    """Against all 2^4 scores that may be missing, for the mean and the mean of groups."""
    nan, worst = np.nan, min if is_least else max
    values = np.array([[1, nan, 0, 1, nan, 1], [0, 1, nan, 1, nan, 0]])
    groups = np.array([0, 0, 0, 1, 1, 1])
    sample = ItemScores("x", values, (0, 1), groups=groups, group_names=["0", "1"])
    for systems in (values, values[:1]):
        every = []
        for ends in product([0, 1], repeat=int(np.isnan(systems).sum())):
            filled = systems.copy()
            filled[np.isnan(systems)] = ends
            x = filled[0] - (filled[1] if len(filled) > 1 else 0)
            every.append([x.mean(), (x[:3].mean() + x[3:].mean()) / 2])
        found = sample._replace(values=systems).filled(is_least)
        for i, method in enumerate((found.mean, found.mean_of_groups)):
            x = method(0.95)
            x = x.difference if isinstance(x, Compared) else x
            assert x.value == pytest.approx(worst(y[i] for y in every))


@pytest.mark.quick
def test_missing_scores_are_bounded() -> None:
    """The ends are those of the least and the greatest scores that the missing ones may be."""
    scores = np.array([0.5, 0.9, np.nan, 0.8, np.nan, 1.0])
    found = jm.mean_interval(scores, bounds=(0, 1), missing="bounds")
    assert found.value == pytest.approx(0.8)
    assert found.low == jm.mean_interval(np.nan_to_num(scores, nan=0), bounds=(0, 1)).low
    assert found.high == jm.mean_interval(np.nan_to_num(scores, nan=1), bounds=(0, 1)).high
    text = jm.score_report(scores, bounds=(0, 1), groups=[*"abcacb"]).to_text().replace("\n", " ")
    assert "The mean of groups leaves out groups in which no item has a score: c." in text
    ends = [jm.mean_interval(np.nan_to_num(scores, nan=x), bounds=(0, 1)) for x in (0, 1)]
    assert "Scores are missing: 2 of 6. Values are of the other 4 items; the mean of" in text
    assert f"all 6 items is at least {ends[0]} and at most {ends[1]}, whatever the" in text
    for options in ({"missing": "bounds"}, {"missing": "drop", "bounds": (0, 1)}):
        with pytest.raises(ValueError, match="missing"):
            jm.mean_interval(scores, **options)


@pytest.mark.quick
def test_groups_without_a_mistake() -> None:
    """The upper end, where nothing can move, is the bound, and no warning comes of it."""
    found = jm.score_report(np.ones(60), bounds=(0, 1), groups=np.arange(60) // 15)
    mean = found["mean_of_groups"]
    assert 0.9 < mean.low < mean.value == mean.high == 1
    assert jm.score_report([1.0], bounds=(0, 1)).to_text().startswith("1 item, score")


@pytest.mark.quick
def test_formats_of_scores() -> None:
    for report, rows in ((ONE, 5), (BOTH, 15)):
        lines = list(csv.DictReader(io.StringIO(report.to_csv())))
        assert (len(lines), {line["group"] for line in lines}) == (rows, {*TASKS, ""})
        assert "mean of groups" in report.to_html()
        assert "| mean of groups |" in report.to_markdown()
    results = json.loads(ONE.to_every_eval_ever())["evaluation_results"]
    details = {x["evaluation_name"]: x["score_details"] for x in results}
    assert [*details] == ["mean [code]", "mean [law]", "mean [math]", "mean", "mean_of_groups"]
    assert details["mean"] == {
        "score": ONE["mean"].value,
        "uncertainty": {
            "confidence_interval": {
                "lower": ONE["mean"].low,
                "upper": ONE["mean"].high,
                "confidence_level": 0.95,
                "method": "likelihood",
            },
            "num_samples": N,
        },
    }
