"""What the command line says of groups, clusters, one class, labels, many classifiers and plans,
against the library called from Python.
"""

import csv
import io
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import jaxmetrics as jm
from jaxmetrics.cli import _outputs
from tests.command_line import Run, save, write
from tests.oracles import fields_of

NAMES = np.array(["cat", "dog", "owl"])
N = 240


@pytest.fixture(scope="module")
def data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, N)
    found: dict[str, np.ndarray] = {"true": true}
    for name, right in (("a", 0.9), ("b", 0.75)):
        guess = np.where(rng.random(N) < right, true, rng.integers(0, 3, N))
        found[name] = 0.5 * np.eye(3)[guess] + 0.5 * rng.dirichlet([1, 1, 1], N)
    found["site"] = np.array(["x", "y", "z"])[rng.choice(3, N, p=[0.5, 0.3, 0.2])]
    found["patient"] = rng.integers(0, 40, N)
    return found


def frame_of(data: dict[str, np.ndarray], name: str) -> pl.DataFrame:
    prob = data[name]
    return pl.DataFrame(
        {
            "id": np.arange(N),
            "y_true": NAMES[data["true"]],
            "y_pred": NAMES[prob.argmax(1)],
            "site": data["site"],
            "patient": data["patient"],
            **{f"p_{c}": prob[:, i] for i, c in enumerate(NAMES)},
        }
    )


@pytest.fixture
def files(data: dict[str, np.ndarray], tmp_path: Path) -> tuple[Path, Path]:
    """A and B, whose rows are in another order."""
    a = save(frame_of(data, "a"), tmp_path / "a.csv")
    return a, save(frame_of(data, "b").sort("site", "id"), tmp_path / "b.parquet")


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Tell whether two values of reports have the same numbers, method and note."""
    numbers = [[x.get(key, 0.0) for key in ("value", "low", "high")] for x in (found, expected)]
    words = [[x.get(key) for key in ("method", "note")] for x in (found, expected)]
    return numbers[0] == pytest.approx(numbers[1], rel=1e-6) and words[0] == words[1]


def answer(run: Run, *arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_groups_are_reported_on_by_themselves(
    run: Run, files: tuple[Path, Path], data: dict[str, np.ndarray]
) -> None:
    found = answer(run, "report", files[0], "--group", "site", "--prob", "p_")
    assert found["num_examples"] == N
    assert list(found["groups"]) == ["x", "y", "z"]
    for name, group in found["groups"].items():
        kept = data["site"] == name
        labels = NAMES[data["true"]][kept], NAMES[data["a"].argmax(1)][kept]
        expected = jm.report(*labels, y_prob=data["a"][kept], class_names=list(NAMES)).to_dict()
        assert group["confusion_matrix"] == expected["confusion_matrix"]
        for key in ("accuracy", "macro_f1", "log_loss"):
            assert same(group["overall"][key], expected["overall"][key])
    accuracies = [group["overall"]["accuracy"]["value"] for group in found["groups"].values()]
    (disparity,) = (x for x in found["disparities"] if x["name"] == "accuracy")
    assert disparity["value"] == pytest.approx(max(accuracies) - min(accuracies))
    assert disparity["low"] <= disparity["value"] <= disparity["high"]


def test_disparities_in_every_format(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    outputs = [tmp_path / f"out{suffix}" for suffix in (".md", ".csv", ".html")]
    options = [option for file in outputs for option in ("--output", file)]
    code, text, err = run("report", files[0], "--group", "site", *options)
    assert (code, err) == (0, "")
    assert "Disparities" in text
    markdown, lines, page = (file.read_text(encoding="utf-8") for file in outputs)
    assert "### Disparities" in markdown
    assert "<h2>Disparities</h2>" in page
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert {row["group"] for row in rows} == {"", "x", "y", "z", "greatest difference"}
    share = next(
        row
        for row in rows
        if (row["name"], row["class"], row["group"]) == ("selection_rate", "cat", "x")
    )
    frame = pl.read_csv(files[0]).filter(pl.col("site") == "x")
    assert float(share["value"]) == pytest.approx((frame["y_pred"] == "cat").mean())


def test_groups_that_memory_may_not_hold(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.csv", "y_true,y_pred,p_a,p_b,g\na,a,1,0,x\nb,b,0,1,y\nb,b,0,1,z\n")
    monkeypatch.setattr("jaxmetrics.cli._predictions._MOST_CELLS", 11)
    code, _, error = run("report", file, "--group", "g")
    assert (
        code,
        "3 groups with 2 classes are too many: the confusion matrices of all groups" in error,
    ) == (2, True), error
    monkeypatch.undo()
    monkeypatch.setattr("jaxmetrics.cli._predictions._MOST_BYTES", 10_000)
    code, _, error = run("report", file, "--group", "g", "--prob", "p_")
    assert (code, "Leave out --group or --prob" in error) == (2, True), error
    assert run("report", file, "--prob", "p_")[0] == 0


def test_groups_that_are_none(run: Run, files: tuple[Path, Path], tmp_path: Path) -> None:
    code, _, err = run("report", files[0], "--group", "id")
    assert code == 2
    assert (
        "column 'id' has more than 100 different values, which is too many for a column of groups."
        in err
    )
    some = write(tmp_path / "x.csv", "y_true,y_pred,g\na,a,x\nb,b,\na,b,x\n")
    assert list(answer(run, "report", some, "--group", "g")["groups"]) == ["(missing)", "x"]


def test_clusters(run: Run, files: tuple[Path, Path], data: dict[str, np.ndarray]) -> None:
    labels = NAMES[data["true"]], NAMES[data["a"].argmax(1)]
    for prob in (None, data["a"]):
        options = () if prob is None else ("--prob", "p_")
        found = answer(run, "report", files[0], "--cluster", "patient", *options)
        expected = jm.report(*labels, y_prob=prob, clusters=data["patient"]).to_dict()
        assert found["num_clusters"] == 40
        for key, value in expected["overall"].items():
            assert same(found["overall"][key], value), key
        if prob is not None:
            areas = [[x["roc_auc"] for x in y["classes"]] for y in (found, expected)]
            for x, y in zip(*areas, strict=True):
                assert same(x, y)


def test_one_class_against_all_others(
    run: Run, files: tuple[Path, Path], data: dict[str, np.ndarray]
) -> None:
    found = answer(run, "report", files[0], "--pos-label", "dog", "--prob", "p_")
    p = data["a"][:, 1]
    prob = np.stack([1 - p, p], 1)
    is_dog = data["true"] == 1, data["a"].argmax(1) == 1
    expected = jm.report(
        *(x.astype(int) for x in is_dog), y_prob=prob, class_names=["not dog", "dog"]
    ).to_dict()
    assert [x["name"] for x in found["classes"]] == ["not dog", "dog"]
    assert found["confusion_matrix"] == expected["confusion_matrix"]
    for key, value in expected["overall"].items():
        assert same(found["overall"][key], value), key
    code, _, err = run("report", files[0], "--pos-label", "cow")
    assert code == 2
    assert (
        "no row has the class 'cow', which --pos-label names. The classes in the file"
        " are 'cat', 'dog', 'owl'" in err
    )


def test_one_column_of_probabilities_or_scores(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    true = rng.integers(0, 2, 200)
    score = true + rng.normal(size=200)
    prob = 1 / (1 + np.exp(1 - 2 * score))
    names = np.array(["ham", "spam"])[true]
    path = save(pl.DataFrame({"y_true": names, "s": score, "p": prob}), tmp_path / "x.csv")
    options = ("--pos-label", "spam")
    found = answer(run, "report", path, "--prob", "p", *options)
    expected = jm.report(
        true, (prob >= 0.5).astype(int), y_prob=np.stack([1 - prob, prob], 1)
    ).to_dict()
    assert [x["name"] for x in found["classes"]] == ["ham", "spam"]
    assert found["confusion_matrix"] == expected["confusion_matrix"]
    for key, value in expected["overall"].items():
        assert same(found["overall"][key], value), key
    found = answer(run, "report", path, "--score", "s", "--threshold", "0.25", *options)
    assert found["confusion_matrix"] == jm.confusion_matrix(true, score >= 0.25).tolist()
    area = jm.delong_interval(true, score)
    given = found["overall"]["roc_auc"]
    assert [given[x] for x in ("value", "low", "high")] == pytest.approx(list(fields_of(area)[:3]))
    for more, message in (
        (("--prob", "p"), "--pos-label must name the positive class of the scores"),
        (
            ("--score", "s", *options),
            "--score gives scores, but the predicted classes are missing. Add --threshold",
        ),
        (
            ("--threshold", "1"),
            "--threshold is applied to scores or probabilities. Add --score or --prob",
        ),
        (("--prob", "s", *options), "'s' is"),
    ):
        code, _, err = run("report", path, *more)
        assert code == 2
        assert message in err


@pytest.mark.quick
def test_the_full_name_of_a_column_of_probabilities_is_not_a_prefix(
    run: Run, tmp_path: Path
) -> None:
    frame = pl.DataFrame({"y_true": [0, 1, 1], "p": [0.1, 0.9, 0.2], "patient": ["x", "y", "z"]})
    found = answer(run, "report", save(frame, tmp_path / "x.csv"), "--prob", "p")
    assert found["confusion_matrix"] == [[1, 0], [1, 1]]


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_scores_in_float32_reach_their_threshold(dtype: Any, run: Run, tmp_path: Path) -> None:
    true, score = np.array([0, 1, 1, 0]), np.array([0.7, 0.7, 0.2, 0.8], dtype)
    expected = jm.confusion_matrix_at_thresholds(true, score, [0.7])[0].tolist()
    path, frame = tmp_path / "x.npz", pl.DataFrame({"y_true": true, "p": score.astype(float)})
    np.savez(path, y_true=true, p=score)
    files = [path]
    if dtype == np.float32:
        files.append(save(frame.cast({"p": pl.Float32}), tmp_path / "x.parquet"))
    for file, option in itertools.product(files, ("--prob", "--score")):
        found = answer(run, "report", file, option, "p", "--threshold", "0.7")
        assert found["confusion_matrix"] == expected


def test_other_prevalences(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "cat,dog\n90,10\n20,80\n")
    found = answer(run, "report", path, "--counts", "--prevalence", "cat=0.95,dog=0.05")
    overall, (_, dog) = found["overall"], found["classes"]
    assert overall["accuracy"]["value"] == pytest.approx(0.95 * 0.9 + 0.05 * 0.8)
    assert dog["precision"]["value"] == pytest.approx(0.05 * 0.8 / (0.05 * 0.8 + 0.95 * 0.1))
    assert dog["recall"]["value"] == pytest.approx(0.8)
    assert overall["no_information_rate"]["value"] == pytest.approx(0.95)
    # Stratified by class: of accuracy, a weighted sum of two shares, to first order.
    error = np.sqrt(0.95**2 * 0.9 * 0.1 / 100 + 0.05**2 * 0.8 * 0.2 / 100)
    width = overall["accuracy"]["high"] - overall["accuracy"]["low"]
    assert width == pytest.approx(2 * 1.96 * error, rel=0.1)
    for given, message in (
        ("cat=1", "prevalence must contain each of the classes cat, dog exactly once"),
        ("cat=0.95", "each class one share that is not negative, and the shares must sum to 1"),
        ("cat=0.5,cat=0.5,dog=0.5", "each class one share that is not negative"),
        ("cat=-1,dog=2", "each class one share that is not negative"),
        ("cat=0.95,dog=0.1", "sum to 1"),
        (
            "cat,dog",
            "--prevalence must have the form CLASS=SHARE,CLASS=SHARE, such as 'cat=0.1,dog=0.9'",
        ),
    ):
        code, _, err = run("report", path, "--counts", "--prevalence", given)
        assert code == 2
        assert message in err
    text = run("report", path, "--counts", "--prevalence", "cat=0.95,dog=0.05")[1]
    assert "The classes have likelihood intervals" in text
    for option in ("--prob", "--cluster"):
        err = run("report", path, option, "x", "--prevalence", "cat=0.95,dog=0.05")[2]
        assert "--prevalence cannot be used together with --prob or --cluster" in err
    absent = write(tmp_path / "y.csv", "cat,dog\n90,10\n0,0\n")
    err = run("report", absent, "--counts", "--prevalence", "cat=0.95,dog=0.05")[2]
    assert "class 'dog' has no examples" in err


def labels(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Truth and predictions of three labels, which depend on one another."""
    rng = np.random.default_rng(seed)
    mood = rng.random((n, 1))
    true = rng.random((n, 3)) < mood
    return true, np.where(rng.random((n, 1)) < 0.3, rng.random((n, 3)) < 0.5, true)


def test_examples_with_many_labels(run: Run, tmp_path: Path) -> None:
    from sklearn import metrics as sk

    true, pred = labels(150, 0)
    columns = {f"t_{c}": true[:, i].astype(int) for i, c in enumerate("abc")}
    columns |= {f"p_{c}": pred[:, i].astype(int) for i, c in reversed(list(enumerate("abc")))}
    path = save(pl.DataFrame(columns), tmp_path / "x.csv")
    found = answer(run, "report", path, "--labels-prefix", "t_", "p_")
    overall = {name: x["value"] for name, x in found["overall"].items()}
    assert overall == pytest.approx(
        {
            "exact_match": sk.accuracy_score(true, pred),
            "hamming_loss": sk.hamming_loss(true, pred),
            "micro_f1": sk.f1_score(true, pred, average="micro"),
            "macro_f1": sk.f1_score(true, pred, average="macro"),
        }
    )
    assert [x["name"] for x in found["labels"]] == ["a", "b", "c"]
    assert [x["f1"]["value"] for x in found["labels"]] == pytest.approx(
        sk.f1_score(true, pred, average=None)
    )
    np.savez(tmp_path / "x.npz", t=true.astype(int), p=pred)
    arrays = answer(run, "report", tmp_path / "x.npz", "--labels-prefix", "t", "p")
    assert arrays["overall"] == found["overall"]
    in_python = jm.multilabel_report(true, pred, label_names=[*"abc"])
    assert json.loads(in_python.to_json()) == found
    one = save(pl.DataFrame(columns).select("t_a", "p_a"), tmp_path / "one.csv")
    assert "150 examples, 1 label\n" in run("report", one, "--labels-prefix", "t_", "p_")[1]
    assert "150 examples, 3 labels" in run("report", path, "--labels-prefix", "t_", "p_")[1]
    for frame, message in (
        (
            pl.DataFrame({"t_a": [0, 1], "p_b": [0, 1]}),
            "must name the same labels, but they name 'a' and 'b'",
        ),
        (
            pl.DataFrame({"t_a": [0, 1], "p_a": [0, 2]}),
            "row 2, the column 'p_a' contains '2', but 0 or 1 was expected",
        ),
        (pl.DataFrame({"t_a": [], "p_a": []}), "the file has no rows"),
    ):
        bad = save(frame, tmp_path / "bad.csv")
        code, _, err = run("report", bad, "--labels-prefix", "t_", "p_")
        assert code == 2
        assert message in err


def test_intervals_of_many_labels_know_that_labels_depend_on_one_another() -> None:
    """The spread of 167 test sets is the standard error, for which the delta method is of first
    order: on the logit scale half of an interval is 1.96 of it.
    """
    reports = [jm.multilabel_report(*labels(200, seed)) for seed in range(0, 1000, 6)]
    for name in ("hamming_loss", "micro_f1", "macro_f1"):
        values = [x[name].value for x in reports]
        widths = [x[name].high - x[name].low for x in reports[:50]]
        assert np.mean(widths) == pytest.approx(2 * 1.96 * np.std(values), rel=0.1)


def test_probabilities_are_compared(
    run: Run, files: tuple[Path, Path], data: dict[str, np.ndarray]
) -> None:
    options = ("--id", "id", "--prob", "p_")
    found = answer(run, "compare", *files, *options)["figures"]
    losses = [jm.log_loss(data["true"], data[x]) for x in "ab"]
    assert found["log_loss"]["a"]["value"] == pytest.approx(losses[0])
    assert found["log_loss"]["difference"]["value"] == pytest.approx(losses[0] - losses[1])
    each = [-np.log(data[x][np.arange(N), data["true"]]) for x in "ab"]
    interval = jm.mean_interval(each[0] - each[1])
    assert found["log_loss"]["difference"]["low"] == pytest.approx(interval.low)
    areas = jm.delong(data["true"] == 2, data["a"][:, 2], data["b"][:, 2])
    assert found["roc_auc_owl"]["difference"]["low"] == pytest.approx(areas.difference.low)
    assert found["roc_auc_owl"]["b"]["high"] == pytest.approx(areas.b.high)
    assert found["log_loss"]["probability_better"] < 0.01  # A has the lower loss
    clustered = answer(run, "compare", *files, *options, "--cluster", "patient")
    expected = jm.delong(
        data["true"] == 2, data["a"][:, 2], data["b"][:, 2], clusters=data["patient"]
    )
    low = clustered["figures"]["roc_auc_owl"]["difference"]["low"]
    assert low == pytest.approx(expected.difference.low)
    assert clustered["num_clusters"] == 40
    _, text, _ = run("compare", *files, *options)
    told = "less is better, so confidence A > B is the confidence that A is worse"
    assert told in " ".join(text.split())
    assert told not in " ".join(run("compare", *files, "--id", "id")[1].split())
    ways = "for losses Student's intervals, for areas intervals by DeLong's variance."
    assert ways in " ".join(text.split())


def test_the_positive_class_is_compared(
    run: Run, files: tuple[Path, Path], data: dict[str, np.ndarray]
) -> None:
    found = answer(run, "compare", *files, "--id", "id", "--pos-label", "cat", "--prob", "p_")
    a, b = (data[x].argmax(1) == 0 for x in "ab")
    expected = jm.compare_predictions(jm.binary(jm.recall), data["true"] == 0, a, b, num_classes=2)
    given = found["figures"]["recall"]["difference"]
    assert given["value"] == pytest.approx(float(expected.difference.value))
    assert given["high"] == pytest.approx(float(expected.difference.high))
    areas = jm.delong(data["true"] == 0, data["a"][:, 0], data["b"][:, 0])
    assert found["figures"]["roc_auc"]["a"]["low"] == pytest.approx(areas.a.low)


def test_gates(run: Run, files: tuple[Path, Path]) -> None:
    """0: all of the interval keeps the bound; 1: nothing of it; 3: some of it."""
    command = ("compare", *files, "--id", "id", "--prob", "p_")
    difference = answer(run, *command)["figures"]["macro_f1"]["difference"]
    low, high = difference["low"], difference["high"]
    for gates, code, verdict in (
        ([f"macro_f1 >= {low - 1e-6}"], 0, "passed"),
        ([f"macro_f1 >= {high + 1e-6}"], 1, "failed"),
        ([f"macro_f1>={low + 1e-6}"], 3, "unknown"),
        ([f"macro_f1 <= {high + 1e-6}"], 0, "passed"),
        ([f"macro_f1 <= {low - 1e-6}"], 1, "failed"),
        ([f"macro_f1 <= {(low + high) / 2}"], 3, "unknown"),
        (["log_loss <= 0", "accuracy >= -.5"], 0, "passed"),
        (["accuracy >= -.5", f"macro_f1 >= {(low + high) / 2}"], 3, "passed"),
        (["accuracy >= .9", f"macro_f1 >= {(low + high) / 2}"], 1, "failed"),
    ):
        options = [x for gate in gates for x in ("--gate", gate)]
        found, out, err = run(*command, *options, "--json")
        assert (found, err) == (code, "")
        first = json.loads(out)["gates"][0]
        assert (first["gate"], first["verdict"]) == (gates[0], verdict)
        assert (first.get("more_examples", 0) > 0) == (verdict == "unknown")
    found, out, _ = run(*command, "--gate", "accuracy >= .9", "--format", "markdown")
    assert found == 1
    assert out.startswith("- **failed**: accuracy \\>= .9; A - B 0.")
    assert "| accuracy | " in out
    assert "Gate accuracy >= .9: failed" in run(*command, "--gate", "accuracy >= .9")[1]
    for gate, message in (
        ("f2 >= 1", "unknown metric 'f2'. The compared metrics are accuracy, balanced_accuracy"),
        ("accuracy > 1", "--gate must have a form such as 'accuracy >= 0.9'"),
        ("accuracy >= 1e999", "--gate must have a form such as 'accuracy >= 0.9'"),
        (f"accuracy >= {'7' * 40_000}", "--gate must have a form such as 'accuracy >= 0.9'"),
        (f"accuracy >= {'7' * 40_000}x", "--gate must have a form such as 'accuracy >= 0.9'"),
        (f"{'x' * 40_000} >= 1", "unknown metric 'xxxx"),
    ):
        code, _, err = run(*command, "--gate", gate)
        assert code == 2
        assert message in err


def test_leaderboard_of_columns_and_of_files(
    run: Run, data: dict[str, np.ndarray], tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    preds = [
        np.where(rng.random(N) < share, data["true"], rng.integers(0, 3, N))
        for share in (0.6, 0.9, 0.6)
    ]
    columns = {f"y_pred_{i}": NAMES[x] for i, x in enumerate(preds)}
    frame = pl.DataFrame({"y_true": NAMES[data["true"]], **columns, "patient": data["patient"]})
    path = save(frame, tmp_path / "all.csv")
    options = ("--metric", "macro_f1", "--level", "0.9")
    found = answer(run, "leaderboard", path, *options)
    board = jm.leaderboard(jm.macro(jm.f1), data["true"], np.stack(preds), level=0.9)
    first, *others = found["classifiers"]
    assert first["name"] == found["winner"]["name"] == "y_pred_1"
    assert first["low"] == pytest.approx(board.estimates.low[1])
    assert (first["rank_low"], first["rank_high"], first["tier"]) == (1, 1, 1)
    assert first["probability_best"] == pytest.approx(board.probability_best[1])
    assert found["winner"]["value"] == pytest.approx(float(board.winner_estimate.value))
    assert [x["rank_high"] for x in others] == [3, 3]
    text = run("leaderboard", path, *options)[1]
    second, third = (x["name"] for x in others)
    assert f"{second} and {third} cannot be told apart; each is shown to be worse" in text
    assert "classifier  value [low, high]     ranks   tier\n" in text  # no probability of the best
    # Of files, in any order of the rows.
    paths = []
    for i in range(3):
        one = frame.select("y_true", pl.col(f"y_pred_{i}").alias("y_pred"), id=pl.int_range(N))
        paths.append(save(one.sample(fraction=1, shuffle=True, seed=i), tmp_path / f"{i}.jsonl"))
    other = answer(run, "leaderboard", *paths, "--id", "id", *options)
    assert [x["value"] for x in other["classifiers"]] == [x["value"] for x in found["classifiers"]]
    assert other["classifiers"][0]["name"] == paths[1].name
    clustered = answer(run, "leaderboard", path, "--cluster", "patient")
    assert clustered["num_clusters"] == 40
    two = answer(run, "leaderboard", path, "--pred", "y_pred_0", "--pred", "y_pred_1")
    assert len(two["classifiers"]) == 2
    for more, message in (
        (
            ("--pred", "y_pred_0"),
            "a leaderboard of a single file needs at least two columns of predictions",
        ),
        # It is a name here, not the beginning of y_pred_0 and y_pred_1.
        (
            ("--pred", "y_pred"),
            "a leaderboard of a single file needs at least two columns of predictions",
        ),
        (("--metric", "f3"), "--metric is one of accuracy, balanced_accuracy"),
    ):
        code, _, err = run("leaderboard", path, *more)
        assert code == 2
        assert message in err


def test_thresholds_are_not_passed_over(run: Run, tmp_path: Path) -> None:
    both = write(tmp_path / "a.csv", "y_true,y_pred,s,p_0,p_1\n0,1,1,1,0\n1,0,2,0.4,0.6\n")
    found = answer(run, "report", both, "--score", "s", "--threshold", "1.5")
    assert found["overall"]["accuracy"]["value"] == 1  # y_pred is right nowhere
    options = ("--prob", "p_", "--threshold", "0.7", "--pos-label", "1")
    assert answer(run, "report", both, *options)["overall"]["accuracy"]["value"] == 0.5


def test_plans_from_cells(run: Run, tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", "y_true,y_pred,count\na,a,40\na,b,8\nb,b,50\n")
    matrix = write(tmp_path / "m.csv", "40,8\n0,50\n")
    asked = "--counts", "--half-width", "0.02"
    assert answer(run, "plan", table, *asked) == answer(run, "plan", matrix, *asked)
    code, _, err = run("plan", table, matrix, "--counts", "--difference", "0.1")
    assert (code, "--counts reads a single FILE" in err) == (2, True)
    rows = write(tmp_path / "r.csv", "y_true,y_pred\na,a\na,b\n")
    code, _, err = run("report", rows, "--counts")
    assert (code, "a table of predictions, not a confusion matrix. Leave out --counts" in err) == (
        2,
        True,
    )


def test_plans(run: Run, files: tuple[Path, Path], data: dict[str, np.ndarray]) -> None:
    found = answer(run, "plan", files[0], "--half-width", "0.02")
    p = (data["a"].argmax(1) == data["true"]).mean()
    assert found["num_examples"] == np.ceil(1.959964**2 * p * (1 - p) / 0.02**2)
    options = ("--id", "id", "--difference", "0.05", "--power", "0.9")
    found = answer(run, "plan", *files, *options)
    preds = [data[x].argmax(1) for x in "ab"]
    paired = jm.paired_confusion_matrix(data["true"], *preds, num_classes=3)
    n = found["num_examples"]
    detectable = jm.detectable_difference(jm.accuracy, paired, n, power=0.9)
    assert 0.0499 < detectable <= 0.05
    code, out, _ = run("plan", *files, *options)
    assert out.startswith(f"{n:,} examples like these show a difference of 0.05 in accuracy with")
    for arguments in ((files[0],), (*files, "--half-width", "1")):
        code, _, err = run("plan", *arguments)
        assert code == 2
        assert "give FILE --half-width H, or FILE FILE --difference D" in err
    for asked in (
        (files[0], "--half-width", "1e-140"),
        (files[0], "--half-width", "1e-9"),
        (*files, "--id", "id", "--difference", "1e-320"),
    ):
        code, out, err = run("plan", *asked)
        assert (code, out) == (2, "")
        assert "more than 1e+15 examples would be needed to " in err
    scores = save(pl.DataFrame({"v": [0, 1, 1]}), files[0].parent / "v.csv")
    for paths, target in (
        (files[:1], ("--half-width", "2")),
        (files, ("--difference", "1", "--id", "id")),
        ((scores,), ("--half-width", "1", "--value", "v")),
    ):
        code, out, err = run("plan", *paths, *target)
        assert (code, out) == (2, "")
        assert f"the {target[0][2:]} must be above 0 and less than 1, got {target[1]}. Write" in err
    perfect = write(files[0].parent / "p.csv", "5,0\n0,5\n")
    code, _, err = run("plan", perfect, "--counts", "--half-width", "0.1")
    assert code == 2
    assert "contain no mistake or, if two classifiers are compared, no difference" in err


def test_formats_that_are_printed(run: Run, files: tuple[Path, Path]) -> None:
    _, text, _ = run("report", files[0], "--format", "csv")
    assert text.startswith("name,class,value")
    assert run("report", files[0], "--format", "json")[1] == run("report", files[0], "--json")[1]
    code, _, err = run("report", files[0], "--format", "pdf")
    assert code == 2
    assert "--format must be one of text, markdown, json, csv, every-eval-ever, got 'pdf'" in err


def test_a_terminal_is_told_what_takes_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with _outputs.progress("ranking"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FORCE_COLOR", "1")  # what makes rich take standard error for a terminal
    with _outputs.progress("ranking"):
        pass
    assert "ranking" in capsys.readouterr().err
