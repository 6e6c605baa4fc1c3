"""The command line on scores per item, --value, beside the functions that it calls."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import jaxmetrics as jm
from jaxmetrics.intervals.means import Strata, mean_of_groups
from tests.command_line import Run, save, write
from tests.oracles import fields_of

N = 240
TASKS = np.array(["math", "law", "code"])[np.arange(N) % 3]
GRADES = np.round(np.random.default_rng(3).random((2, N)), 2)
RIGHT = np.random.default_rng(4).random((3, N)) < np.array([[0.85], [0.7], [0.8]])


def answer(run: Run, *arguments: object, code: int = 0) -> Any:
    """Return the JSON that a command line prints."""
    found, out, err = run(*arguments, "--format", "json")
    assert (found, err) == (code, "")
    return json.loads(out)


def ends(x: Any) -> Any:
    return pytest.approx([x.value, x.low, x.high], rel=1e-12)


def of_json(x: dict[str, float]) -> list[float]:
    return [x["value"], x["low"], x["high"]]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Samples of three systems, as evaluation harnesses write them: a nested document beside the
    metric, which is a number, a boolean and a text.
    """
    kinds = (RIGHT[0].astype(float), RIGHT[1], np.where(RIGHT[2], "True", "false"))
    return [
        save(
            pl.DataFrame(
                {
                    "doc_id": np.arange(N),
                    "doc": [{"question": "?", "choices": ["yes", "no"]}] * N,
                    "resps": [[["yes"]]] * N,
                    "acc": scores,
                    "evaluation": [{"score": score} for score in GRADES[i % 2]],
                    "task": TASKS,
                    "user": np.arange(N) // 4,
                }
            ),
            tmp_path / f"{name}.jsonl",
        )
        for i, (name, scores) in enumerate(zip("abc", kinds, strict=True))
    ]


@pytest.mark.quick
def test_a_report_of_scores(run: Run, files: Sequence[Path]) -> None:
    found = answer(run, "report", files[0], "--value", "acc", "--group", "task")
    assert (found["num_items"], found["num_ignored"], found["score"]) == (N, 0, "acc")
    assert of_json(found["values"]["mean"]) == ends(jm.mean_interval(RIGHT[0], bounds=(0, 1)))
    for task in ("code", "law", "math"):
        expected = jm.mean_interval(RIGHT[0][task == TASKS], bounds=(0, 1))
        assert of_json(found["values"]["group"][task]) == ends(expected)
    assert found["values"]["mean_of_groups"]["method"] == "likelihood"
    found = answer(run, "report", files[1], "--value", "evaluation.score", "--cluster", "user")
    expected = jm.mean_interval(GRADES[1], bounds=(0, 1), clusters=np.arange(N) // 4)
    assert of_json(found["values"]["mean"]) == ends(expected)
    assert (found["num_clusters"], [*found["values"]]) == (N // 4, ["mean"])
    found = answer(run, "report", files[0], "--value", "acc", "--bounds=-1,3", "--level", ".9")
    expected = jm.mean_interval(RIGHT[0], bounds=(-1.0, 3.0), level=0.9)
    assert of_json(found["values"]["mean"]) == ends(expected)


@pytest.mark.quick
def test_scores_without_bounds(run: Run, tmp_path: Path) -> None:
    losses = np.random.default_rng(0).exponential(2, (4, 30)).ravel()
    groups = np.repeat([*"wxyz"], 30)
    frame = pl.DataFrame({"loss": losses, "group": groups})
    path = save(frame, tmp_path / "x.parquet")
    values = answer(run, "report", path, "--value", "loss", "--group", "group")["values"]
    assert of_json(values["mean"]) == ends(jm.mean_interval(losses))
    means = [jm.mean_interval(x) for x in losses.reshape(4, 30)]
    mean = np.mean([x.value for x in means])
    reach = np.sqrt(sum((x.high - x.value) ** 2 for x in means)) / 4  # squares add, over 4
    found = values["mean_of_groups"]
    assert of_json(found) == pytest.approx([mean, mean - reach, mean + reach], rel=1e-12)
    assert found["method"] == "mover"


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


def test_the_mean_of_groups_is_by_one_likelihood() -> None:
    """The ends are those of a constrained search over all distributions in all groups at once."""
    rng = np.random.default_rng(1)
    groups = [rng.random(5), rng.random(3) ** 2, np.ones(4)]
    _, low, high, _ = fields_of(estimate_of_groups(groups))
    assert low == pytest.approx(least_mean_of_groups(groups, 0.0, 1.96), rel=1e-4)
    turned = [1 - x for x in groups]
    assert 1 - high == pytest.approx(least_mean_of_groups(turned, 0.0, 1.96), rel=1e-4)


def test_the_mean_of_groups_of_one_item_is_the_mean() -> None:
    scores = np.random.default_rng(0).random(200) < 0.7
    found = jm.score_report(scores, bounds=(0, 1), groups=np.arange(200))
    both = (fields_of(found[name])[1:3] for name in ("mean_of_groups", "mean"))
    assert next(both) == pytest.approx(next(both), rel=1e-9)
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
    assert fields_of(report["mean_of_groups"])[:3] == pytest.approx(fields_of(found)[:3], abs=1e-7)


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
def test_systems_are_ranked_by_means_of_groups(run: Run, files: Sequence[Path]) -> None:
    options = "--value", "acc", "--group", "task"
    found = answer(run, "leaderboard", *files, *options)
    board = jm.score_leaderboard(RIGHT, bounds=(0, 1), groups=TASKS)
    expected = board.to_dict([x.name for x in files])["classifiers"]
    assert len(found["classifiers"]) == 3
    for row, other in zip(found["classifiers"], expected, strict=True):
        assert row == pytest.approx(other)
    for scores, value in zip(RIGHT, board.estimates.value, strict=True):
        assert value == pytest.approx(np.mean([scores[task == TASKS].mean() for task in TASKS[:3]]))
    report = jm.score_report(RIGHT[1], bounds=(0, 1), groups=TASKS)["mean_of_groups"]
    assert [x[1] for x in fields_of(board.estimates)] == pytest.approx(fields_of(report))
    assert "3 classifiers by acc, mean of groups" in run("leaderboard", *files, *options)[1]
    assert run("leaderboard", *files, "--group", "task")[0] == 2
    one = jm.score_leaderboard(RIGHT, bounds=(0, 1), groups=np.zeros(N, int))
    plain = jm.score_leaderboard(RIGHT, bounds=(0, 1))
    assert [one.tiers.tolist(), one.rank_low.tolist()] == [
        plain.tiers.tolist(),
        plain.rank_low.tolist(),
    ]
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


@pytest.mark.quick
def test_systems_are_compared_by_id(run: Run, files: Sequence[Path], tmp_path: Path) -> None:
    """Rows in another order; an item that one system lacks has no part."""
    frame = pl.read_ndjson(files[1]).sample(fraction=1, shuffle=True, seed=0)
    other = save(frame.filter(pl.col("doc_id") != 7), tmp_path / "b.parquet")
    options = "--value", "acc", "--id", "doc_id", "--group", "task"
    found = answer(run, "compare", files[0], other, *options)
    kept = np.arange(N) != 7
    expected = jm.compare_scores(RIGHT[0][kept], RIGHT[1][kept], bounds=(0, 1))
    mean = found["values"]["mean"]
    assert (found["num_items"], found["num_ignored"]) == (N - 1, 1)
    for name, value in zip(("a", "b", "difference"), expected[:3], strict=True):
        assert of_json(mean[name]) == ends(value)
    of_law = kept & (TASKS == "law")
    expected = jm.compare_scores(RIGHT[0][of_law], RIGHT[1][of_law], bounds=(0, 1))
    assert of_json(found["values"]["group"]["law"]["difference"]) == ends(expected.difference)
    turned = answer(run, "compare", other, files[0], *options)["values"]["mean_of_groups"]
    forth = found["values"]["mean_of_groups"]["difference"]
    back = turned["difference"]
    assert back["low"] == pytest.approx(-forth["high"], rel=1e-9)
    assert run("compare", *files[:2], *options)[1].split("\n")[4] == (
        "A is better: its mean is higher by 0.138 [0.056, 0.218]."
    )


@pytest.mark.quick
def test_python_reports_what_the_command_line_does(run: Run, files: Sequence[Path]) -> None:
    options: dict[str, Any] = {"bounds": (0, 1), "groups": TASKS, "name": "acc"}
    found = jm.score_report(RIGHT[0], **options)
    assert found.to_dict() == answer(run, "report", files[0], "--value", "acc", "--group", "task")
    both = jm.score_report(RIGHT[0], RIGHT[1], **options, names=(str(files[0]), str(files[1])))
    code, text, _ = run("compare", *files[:2], "--value", "acc", "--group", "task")
    assert (code, text) == (0, both.to_text())
    assert both["group"]["law"].difference == both.values()["group"]["law"].difference
    assert both.to_frame()["system"].to_list()[:3] == ["A", "B", "A - B"]
    with_gap = jm.score_report([1, 1, np.nan, 0], groups=[1, 1, 2, 1])
    assert [*with_gap["group"]] == ["1"]  # no item of the other group has a score
    for arguments, message in (
        (([[1, 0]],), r"scores must have shape \(n,\)"),
        (([1, 0], [1]), "with the same n for both systems"),
        (([np.nan, np.nan],), "no item has a score"),
        (([1, 0], [1, np.inf]), r"other\[1\] is inf, expected a finite number"),
        (([1, 0], None), "groups"),
    ):
        groups = ["a"] if len(arguments) == 2 and arguments[1] is None else None
        with pytest.raises(ValueError, match=message):
            jm.score_report(*arguments, groups=groups)


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
    low = jm.mean_interval([1, 0, -1, -1, 0, 1], bounds=(-1, 1)).low
    high = jm.mean_interval([1, 0, 0, 1, 0, 1], bounds=(-1, 1)).high
    bounds = f"the mean of A - B is between {low:.3f} and {high:.3f}."
    assert f"For any values of the missing scores (2), {bounds}" in text


@pytest.mark.quick
def test_missing_scores_are_bounded(run: Run, tmp_path: Path) -> None:
    """The ends are those of the least and the greatest scores that the missing ones may be."""
    scores = np.array([0.5, 0.9, np.nan, 0.8, np.nan, 1.0])
    found = jm.mean_interval(scores, bounds=(0, 1), missing="bounds")
    assert found.value == pytest.approx(0.8)
    assert found.low == jm.mean_interval(np.nan_to_num(scores, nan=0), bounds=(0, 1)).low
    assert found.high == jm.mean_interval(np.nan_to_num(scores, nan=1), bounds=(0, 1)).high
    path = write(tmp_path / "x.csv", "i,x\n" + "".join(f"{i},{x}\n" for i, x in enumerate(scores)))
    text = run("report", path, "--value", "x")[1]
    assert "For any values of the missing scores (2), the mean of all items is" in text
    assert f"between {found.low:.3f} and {found.high:.3f}" in text.replace("\n", " ")
    report = jm.score_report(scores, bounds=(0, 1), groups=["a", "b", "c", "a", "c", "b"])
    left_out = "The mean of groups leaves out groups in which no item has a score: c."
    assert left_out in report.to_text()
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
def test_systems_are_ranked(run: Run, files: Sequence[Path], tmp_path: Path) -> None:
    found = answer(run, "leaderboard", *files, "--value", "acc", "--cluster", "user")
    expected = jm.score_leaderboard(RIGHT, bounds=(0, 1), clusters=np.arange(N) // 4)
    names = [x.name for x in files]
    assert found["classifiers"] == expected.to_dict(names)["classifiers"]
    wide = save(pl.DataFrame(RIGHT.T.astype(int), schema=["x", "y", "z"]), tmp_path / "w.csv")
    found = answer(run, "leaderboard", wide, "--value", "x,y,z")
    expected = jm.score_leaderboard(RIGHT, bounds=(0, 1))
    assert found["classifiers"] == expected.to_dict([*"xyz"])["classifiers"]


@pytest.mark.quick
def test_plans_of_scores(run: Run, files: Sequence[Path]) -> None:
    found = answer(run, "plan", files[0], "--value", "acc", "--half-width", "0.01")
    variance = RIGHT[0].var(ddof=1)
    assert found["num_items"] == np.ceil(1.959964**2 * variance / 0.01**2)
    options = "--value", "acc", "--difference", "0.05", "--power", "0.9"
    found = answer(run, "plan", *files[:2], *options)
    error = jm.compare_scores(RIGHT[0], RIGHT[1], bounds=(0, 1)).difference.standard_error
    assert found["num_items"] == np.ceil(N * ((1.959964 + 1.281552) * error / 0.05) ** 2)
    truth, scores = np.ones(N, int), RIGHT[:2].astype(int)  # accuracy is the mean of a score, too
    paired = jm.paired_confusion_matrix(truth, *scores, num_classes=2)
    n = jm.required_examples(jm.accuracy, paired, difference=0.05, power=0.9)
    assert n * N / (N - 1) == pytest.approx(found["num_items"], abs=1)  # unbiased variance
    assert run("plan", *files[:2], *options)[1].startswith(
        f"{found['num_items']:,} items like these show a difference of 0.05 in acc with"
    )


@pytest.mark.quick
def test_ids_of_several_columns(run: Run, tmp_path: Path) -> None:
    """Attempts at questions, in another order in each file."""
    rng = np.random.default_rng(9)
    right = rng.random((2, 80)) < 0.7
    paths = []
    for name, scores in zip("ab", right, strict=True):
        attempt = np.tile([1, 2], 40)
        frame = pl.DataFrame({"id": np.arange(80) // 2, "epoch": attempt, "ok_ay": scores})
        paths.append(save(frame.sample(fraction=1, shuffle=True, seed=3), tmp_path / f"{name}.csv"))
    options = "--value", "ok_ay", "--cluster", "id"
    found = answer(run, "compare", *paths, *options, "--id", "id,epoch")["values"]["mean"]
    expected = jm.compare_scores(*right, bounds=(0, 1), clusters=np.arange(80) // 2)
    value, low, high = of_json(found["difference"])
    assert [value, low, high] == pytest.approx([*fields_of(expected.difference)[:3]], rel=1e-9)
    for command, files in (("report", paths[:1]), ("compare", paths)):
        code, _, err = run(command, *files, *options, "--id", "id")
        assert code == 2
        assert "several rows have the same id" in err
        assert "--id item,attempt" in err
    assert run("report", paths[0], *options, "--id", "epoch,id")[0] == 0
    frame = pl.read_csv(paths[1])
    other = save(frame.sample(fraction=1, shuffle=True, seed=4), tmp_path / "c.csv")
    assert "; give --id" in run("compare", paths[0], other, *options)[2]
    plan = answer(run, "plan", paths[0], *options, "--half-width", "0.05")
    assert plan["num_clusters"] * 2 == pytest.approx(
        80
        * (1.959964 * jm.mean_interval(right[0], clusters=np.arange(80) // 2).standard_error / 0.05)
        ** 2,
        abs=2,
    )
    for command, files, more in (
        ("leaderboard", paths, ("--id", "id,epoch")),
        ("plan", paths[:1], ("--half-width", ".1")),
    ):
        assert "ok_ay" in run(command, *files, *options, *more)[1]


@pytest.mark.quick
def test_plans_of_clusters(run: Run, tmp_path: Path) -> None:
    users = np.arange(N) // 4
    a, b = (np.where(right, "x", "y") for right in RIGHT[:2])
    paths = [
        save(pl.DataFrame({"y_true": ["x"] * N, "y_pred": pred, "user": users}), tmp_path / name)
        for pred, name in ((a, "a.csv"), (b, "b.csv"))
    ]
    found = answer(run, "plan", paths[0], "--half-width", "0.05", "--cluster", "user")
    table: dict[str, Any] = {"groups": users, "num_groups": N // 4, "num_classes": 2}
    truth, preds = np.zeros(N, int), 1 - RIGHT[:2].astype(int)
    counts = jm.confusion_matrix(truth, preds[0], **table)
    n = jm.required_examples(jm.accuracy, counts, half_width=0.05, cluster_axis=-3)
    assert found["num_clusters"] == np.ceil(n)
    found = answer(run, "plan", *paths, "--difference", "0.05", "--cluster", "user")
    paired = jm.paired_confusion_matrix(truth, *preds, **table)
    n = jm.required_examples(jm.accuracy, paired, difference=0.05, cluster_axis=-4)
    assert found["num_clusters"] == np.ceil(n)
    text = run("plan", *paths, "--difference", "0.05", "--cluster", "user")[1]
    assert f"{N} examples in {N // 4} clusters, enough to show" in text


@pytest.mark.quick
def test_missing_scores_and_booleans(run: Run, tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.csv", "id,ok\n1,true\n2,False\n3,\n4,NaN\n5,1\n6,0.0\n7,null\n8, TRUE \n"
    )
    found = answer(run, "report", path, "--value", "ok")
    assert (found["num_items"], found["num_ignored"]) == (5, 3)
    expected = jm.mean_interval([1, 0, 1, 0, 1], bounds=(0, 1))
    assert of_json(found["values"]["mean"]) == ends(expected)


@pytest.mark.quick
def test_gates_on_scores(run: Run, files: Sequence[Path], tmp_path: Path) -> None:
    gates = "--gate", "acc >= .5", "--gate", "group[law] >= .5", "--gate", "mean_of_groups >= .9"
    options = "--value", "acc", "--group", "task", *gates
    found = answer(run, "report", files[0], *options, code=1)
    assert [x["verdict"] for x in found["gates"]] == ["passed", "passed", "failed"]
    found = answer(run, "compare", *files[:2], "--value", "acc", "--gate", "acc >= -0.01")
    assert [x["verdict"] for x in found["gates"]] == ["passed"]
    code, _, err = run("report", files[0], "--value", "acc", "--gate", "accuracy >= 1")
    assert (code, "The reported metrics are acc, mean" in err) == (2, True)


@pytest.mark.quick
def test_formats_of_scores(run: Run, files: Sequence[Path], tmp_path: Path) -> None:
    options = "--value", "acc", "--group", "task"
    for arguments, rows in (
        (("report", files[0]), 5),
        (("compare", *files[:2]), 15),
    ):
        code, text, _ = run(*arguments, *options, "--format", "csv")
        lines = list(csv.DictReader(io.StringIO(text)))
        assert (code, len(lines)) == (0, rows)
        assert {line["group"] for line in lines} == {"code", "law", "math", ""}
        page = tmp_path / "page.html"
        assert run(*arguments, *options, "--html", page)[0] == 0
        assert "mean of groups" in page.read_text()
        markdown = run(*arguments, *options, "--format", "markdown")[1]
        assert "| mean of groups |" in markdown


@pytest.mark.quick
def test_names_of_every_eval_ever(run: Run, files: Sequence[Path]) -> None:
    command = "report", files[0], "--value", "acc", "--group", "task", "--format", "every-eval-ever"
    code, text, _ = run(*command)
    results = {
        x["evaluation_name"]: x["score_details"] for x in json.loads(text)["evaluation_results"]
    }
    mean = jm.mean_interval(RIGHT[0], bounds=(0, 1))
    assert code == 0
    assert [*results] == ["mean [code]", "mean [law]", "mean [math]", "mean", "mean_of_groups"]
    assert results["mean"] == {
        "score": mean.value,
        "uncertainty": {
            "confidence_interval": {
                "lower": mean.low,
                "upper": mean.high,
                "confidence_level": 0.95,
                "method": "likelihood",
            },
            "num_samples": N,
        },
    }
    command = "plan", files[0], "--value", "acc", "--half-width", ".1", "--format", command[-1]
    code, _, err = run(*command)
    assert (code, "this report has no values" in err) == (2, True)


@pytest.mark.quick
def test_letters_of_inspect(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "id,score\n1,C\n2,I\n3,P\n4,N\n")
    assert answer(run, "report", path, "--value", "score")["values"]["mean"]["value"] == 0.375
    path = write(tmp_path / "x.csv", "id,score\n1,C\n2,A\n")
    code, _, err = run("report", path, "--value", "score")
    assert (code, "row 2, the column 'score' contains 'A'" in err) == (2, True)


REFUSED = {
    ("report", "--value", "acc", "--prob", "p_"): "--value cannot be used together with --prob",
    (
        "report",
        "--value",
        "acc",
        "--examples",
        "3",
    ): "--value cannot be used together with --examples",
    (
        "report",
        "--value",
        "task",
    ): "row 1, the column 'task' contains 'math', but a number, true or false was expected",
    ("report", "--value", "doc"): "no column 'doc'",
    ("report", "--value", "nope"): "no column 'nope'",
    (
        "report",
        "--value",
        "acc",
        "--bounds",
        "0",
    ): "--bounds must have the form LOW,HIGH, such as '0,1', got '0'",
    ("report", "--value", "acc", "--bounds", "0,.5"): "--bounds must be two numbers LOW,HIGH",
    ("report", "--value", "acc", "--bounds", "nan,1"): "--bounds must be two numbers LOW,HIGH",
    (
        "compare",
        "--group",
        "task",
    ): "the command compare accepts --group only together with --value",
    ("compare", "--value", "acc", "--rope", ".1"): "--value cannot be used together with --rope",
    (
        "compare",
        "--value",
        "acc",
        "--id",
        "task",
    ): "rows have the same id. The first such id is 'math'",
    ("compare", "--value", "acc", "--id", "user.x"): "no column 'user.x'",
    (
        "leaderboard",
        "--value",
        "acc",
        "--metric",
        "f1",
    ): "--value cannot be used together with --metric",
    ("plan", "--value", "acc"): "give FILE --half-width H, or FILE FILE --difference D",
}


@pytest.mark.quick
@pytest.mark.parametrize("arguments", REFUSED, ids=" ".join)
def test_what_scores_refuse(run: Run, files: Sequence[Path], arguments: tuple[str, ...]) -> None:
    command, *options = arguments
    number = {"report": 1, "plan": 1}.get(command, 2)
    code, out, err = run(command, *files[:number], *options)
    assert (code, out) == (2, "")
    assert REFUSED[arguments] in err


@pytest.mark.quick
def test_files_of_scores_that_do_not_go_together(
    run: Run, files: Sequence[Path], tmp_path: Path
) -> None:
    short = write(tmp_path / "s.csv", "acc,doc_id\n1,700\n0,701\n")
    options = "--value", "acc"
    for asked, message in (
        (options, "has 2 rows; give --id with a column of ids to match the rows by"),
        ((*options, "--id", "doc_id"), "no item has a score in all files"),
    ):
        code, out, err = run("compare", files[0], short, *asked)
        assert (code, out) == (2, "")
        assert message in err
    empty = write(tmp_path / "e.csv", "acc\n")
    code, _, err = run("report", empty, *options)
    assert (code, "the file has no rows" in err) == (2, True)
    code, _, err = run("leaderboard", files[0], *options)
    assert (code, "must name two columns or more, one column for each system" in err) == (2, True)
    gap = write(tmp_path / "g.csv", "acc,task\n1,x\n0,\n")
    code, _, err = run("report", gap, *options, "--group", "task")
    assert (code, "row 2: the group is missing" in err) == (2, True)


@pytest.mark.quick
def test_items_are_not_matched_across_empty_rows(run: Run, tmp_path: Path) -> None:
    """An empty row of a file without ids may be an item without a score."""
    for a, b in (
        ("acc\n1\n\n0\n1\n", "acc\n1\n0\n\n1\n"),
        ("acc,time\n1,1\n,\n0,1\n0,1\n", "acc,time\n1,1\n0,1\n,\n0,1\n"),
    ):
        first, second = (write(tmp_path / f"{x}.csv", y) for x, y in (("a", a), ("b", b)))
        code, _, err = run("compare", first, second, "--value", "acc")
        assert (code, "empty rows in different places" in err) == (2, True)
        write(second, a + "\n\n")
        assert answer(run, "compare", first, second, "--value", "acc")["num_items"] == 3


def test_bounds_may_be_negative_and_need_scores(run: Run, files: Sequence[Path]) -> None:
    joined = answer(run, "report", files[0], "--value", "acc", "--bounds=-1,3")
    assert answer(run, "report", files[0], "--value", "acc", "--bounds", "-1,3") == joined
    for command in ("report", "compare", "leaderboard", "plan"):
        paths = files[: 1 if command == "report" else 2]
        code, _, err = run(command, *paths, "--bounds", "0,1")
        assert (code, "--bounds needs --value" in err) == (2, True)


def test_every_eval_ever_tells_two_classifiers_apart(run: Run, tmp_path: Path) -> None:
    frame = pl.DataFrame({"y_true": [0, 1] * 10, "y_pred": [0, 1, 1, 1] * 5})
    path = save(frame, tmp_path / "x.csv")
    _, text, _ = run("compare", path, path, "--format", "every-eval-ever")
    names = [x["evaluation_name"] for x in json.loads(text)["evaluation_results"]]
    assert names[:3] == ["accuracy [A]", "accuracy [B]", "accuracy [A - B]"]
    assert len({*names}) == len(names)


def test_a_gate_on_the_difference_in_a_group_names_it(run: Run, files: Sequence[Path]) -> None:
    options = "--value", "acc", "--group", "task", "--gate", "group[law] >= -1"
    _, text, _ = run("compare", *files[:2], *options)
    assert "group, law A - B" in text


@pytest.mark.parametrize("more", [(), ("--id", "id")])
@pytest.mark.parametrize("role", ["--group", "--cluster"])
def test_files_that_group_items_differently(
    run: Run, tmp_path: Path, role: str, more: Sequence[str]
) -> None:
    frame = pl.DataFrame({"id": [1, 2, 3], "v": [1, 0, 1], "g": ["x", "y", "x"]})
    paths = [save(frame, tmp_path / "a.csv"), tmp_path / "b.csv"]
    save(frame.with_columns(g=pl.lit("y")), paths[1])
    code, _, err = run("compare", *paths, "--value", "v", role, "g", *more)
    assert (
        code,
        f"must have the same {role[2:]} in all files, but the files differ for the item" in err,
    ) == (2, True)
    parts = tmp_path / "parts"
    parts.mkdir()
    for i in range(3):
        save(frame[i : i + 1], parts / f"{i}.csv")
    assert run("compare", parts, paths[0], "--value", "v", role, "g", *more)[0] == 0
