"""The command line, as a user meets it: files of every kind, and one clear line for what is
wrong.
"""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest

import jaxmetrics as jm
from jaxmetrics.cli import _outputs, _predictions, _reader
from jaxmetrics.reports.formats import FORMATS
from tests.command_line import Run, save, write

DATA = Path(__file__).parent.parent / "notebooks" / "data" / "digits_predictions.csv"

FRAME = pl.DataFrame(
    {
        "y_true": ["b", "a", "b", "a", "b"],
        "y_pred": ["b", "a", "a", "a", "b"],
        "w": [1.0, 2.0, 0.5, 0.0, 1.0],
    }
)
COUNTS = [[2, 0], [1, 2]]


def test_report_of_the_shipped_file(run: Run) -> None:
    code, out, err = run("report", DATA, "--prob", "prob_")
    assert (code, err) == (0, "")
    frame = pl.read_csv(DATA)
    prob = frame.select(pl.col("^prob_.*$")).to_numpy()
    expected = jm.report(frame["y_true"].to_numpy(), frame["y_pred"].to_numpy(), y_prob=prob)
    assert out == expected.to_text()
    assert "899 examples, 10 classes" in out


def test_nothing_is_compiled_for_files(run: Run, programs: list[str]) -> None:
    with_prob = "report", DATA, "--prob", "prob_"
    for arguments in (("report", DATA), with_prob, ("compare", DATA, DATA)):
        assert run(*arguments)[0] == 0
    assert programs == []


@pytest.mark.parametrize(
    "command",
    ["report", "report --prob prob_ --json", "report --cluster y_true", "compare", "leaderboard"],
)
def test_from_another_process(command: str) -> None:
    """No command that computes with NumPy imports JAX, and only commands that draw import what
    draws.
    """
    program = """if True:
        import sys
        from jaxmetrics.cli import main
        heavy = {"polars", "rich", "matplotlib", "jinja2", "jax"} & set(sys.modules)
        try:
            main()
        finally:
            print(*heavy, *({"matplotlib", "jinja2", "jax"} & set(sys.modules)), file=sys.stderr)
    """
    name, *options = command.split()
    files = [str(DATA)] * (1 if name == "report" else 2)
    arguments = [sys.executable, "-c", program, name, *files, *options]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "899" in result.stdout
    *warnings, heavy = result.stderr.splitlines()
    assert (heavy, all("warning" in line for line in warnings)) == ("", True)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_every_kind_of_file(suffix: str, run: Run, tmp_path: Path) -> None:
    path = save(FRAME, tmp_path / f"predictions{suffix}")
    code, out, err = run("report", path, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["confusion_matrix"] == COUNTS
    code, out, _ = run("report", path, "--json", "--weight", "w")
    assert json.loads(out)["confusion_matrix"] == [[2.0, 0.0], [0.5, 2.0]]
    integers = save(
        FRAME.with_columns(pl.col("y_true", "y_pred").replace_strict({"a": 9, "b": 10})),
        tmp_path / f"i{suffix}",
    )
    report = json.loads(run("report", integers, "--json")[1])
    assert [c["name"] for c in report["classes"]] == ["9", "10"]  # sorted as numbers
    assert report["confusion_matrix"] == COUNTS


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_probabilities_without_predictions(suffix: str, run: Run, tmp_path: Path) -> None:
    prob = np.array([[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]])
    path = tmp_path / f"x{suffix}"
    if suffix == ".npz":
        np.savez(path, y_true=np.array([0, 1, 1]), y_prob=prob)
    else:
        save(pl.DataFrame({"y_true": [0, 1, 1], "p_0": prob[:, 0], "p_1": prob[:, 1]}), path)
    report = json.loads(
        run("report", path, "--prob", "y_prob" if suffix == ".npz" else "p_", "--json")[1]
    )
    assert report["confusion_matrix"] == [[1, 0], [1, 1]]
    assert report["overall"]["expected_accuracy"]["value"] == pytest.approx((0.7 + 0.6 + 0.1) / 3)


def test_totals_among_counts_give_a_warning(run: Run, tmp_path: Path) -> None:
    totals = write(tmp_path / "t.csv", ",a,b,All\na,5,1,6\nb,2,7,9\nAll,7,8,15\n")
    code, _, err = run("report", totals, "--counts")
    assert (code, err.count("\n")) == (0, 1)
    assert "the last row and the last column of the confusion matrix are the sums" in err
    others = write(tmp_path / "o.csv", ",a,b,c\na,5,1,6\nb,2,7,9\nc,7,8,16\n")
    assert run("report", others, "--counts")[::2] == (0, "")


def test_the_verdict_does_not_take_a_rate_as_known(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "counts.csv", "237,72\n0,91\n")
    code, out, _ = run("report", path, "--counts", "--gate", "accuracy_gain >= 0")
    assert code == 3
    assert "is not shown to be above 0.772, the accuracy of" in " ".join(out.split())
    assert "Gate accuracy_gain >= 0: undecided (about" in out


def test_counts_from_arrays(run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", counts=np.array([[5, 1], [2, 10**12]]))
    assert json.loads(run("report", tmp_path / "x.npz", "--counts", "--json")[1])[
        "confusion_matrix"
    ] == [[5, 1], [2, 10**12]]
    pl.DataFrame({"cat": [5, 2], "dog": [1.5, 8]}).write_parquet(tmp_path / "x.parquet")
    report = json.loads(run("report", tmp_path / "x.parquet", "--counts", "--json")[1])
    assert report["confusion_matrix"] == [[5, 1.5], [2, 8]]
    assert report["classes"][1]["name"] == "dog"


def test_json_to_a_file_appears_whole(run: Run, tmp_path: Path) -> None:
    path = save(FRAME, tmp_path / "x.csv")
    code, out, _ = run("report", path, "--json", tmp_path / "out.json")
    assert code == 0
    assert out.startswith("5 examples")
    assert json.loads((tmp_path / "out.json").read_text())["confusion_matrix"] == COUNTS
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json", "x.csv"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"y_true": np.array([0, 1, 1]), "y_pred": np.array([0, 1])},
            "unequal lengths: 'y_true' has 3, 'y_pred' has 2",
        ),
        (
            {"y_true": np.array([0, 1]), "guess": np.array([0, 1])},
            "no column 'y_pred'; the file has 'y_true', 'guess'",
        ),
        (
            {"y_true": np.array([0, 1]), "y_pred": np.array([0.0, 1.0])},
            "array 'y_pred' holds float64",
        ),
        (
            {"y_true": np.eye(2, dtype=int), "y_pred": np.array([0, 1])},
            r"array 'y_true' has shape \(2, 2\), expected \(n,\)",
        ),
        (
            {"y_true": np.array([0, "a"], object), "y_pred": np.array([0, 1])},
            "the array 'y_true' contains Python objects",
        ),
    ],
)
def test_bad_arrays(arrays: dict[str, np.ndarray], message: str, run: Run, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    code, out, err = run("report", tmp_path / "x.npz")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"jaxmetrics: [^\n]+\n", err), err
    assert re.search(message, err), err


def test_ignored_rows_are_left_out_of_everything(run: Run, tmp_path: Path) -> None:
    """Also of the probabilities, and what else they hold is not looked at."""
    text = "y_true,y_pred,w,p_a,p_b,p_c\na,a,1,.6,.3,.1\nb,a,1,.1,.8,.1\nc,c,-1,,,\n"
    path = write(tmp_path / "x.csv", text)
    report = json.loads(
        run("report", path, "--prob", "p_", "--weight", "w", "--ignore", "c", "--json")[1]
    )
    assert report["confusion_matrix"] == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert report["num_ignored"] == 1
    assert report["overall"]["expected_accuracy"]["value"] == pytest.approx((0.6 + 0.8) / 2)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
def test_counts_are_those_of_a_loop(suffix: str, run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for i in range(20):
        n, k = int(rng.integers(2, 70)), int(rng.integers(2, 12))
        labels = [f"c{j:x}" for j in range(k)] if i % 2 else [*map(str, range(k - 1)), "-1"]
        true, pred = rng.choice(labels, n), rng.choice(labels, n)
        path = tmp_path / f"x{suffix}"
        if suffix == ".csv":
            spaces = rng.choice(["", " "], (n, 2))
            rows = [f'{s}{t},"{e}{p}"' for t, p, (s, e) in zip(true, pred, spaces, strict=True)]
            for place in rng.integers(0, n, 3 * (i % 3)):
                rows.insert(place, "")
            write(path, "\n".join(["y_true,y_pred", *rows]) + "\n")
        else:
            save(pl.DataFrame({"y_true": true, "y_pred": pred, "id": np.arange(n)}), path)
        kept = (true != "-1") & (pred != "-1")
        classes = sorted({*true[kept], *pred[kept]}, key=lambda x: int(x, 36))
        if len(classes) < 2:
            continue
        expected = np.zeros((len(classes), len(classes)), int)
        for t, p in zip(true[kept], pred[kept], strict=True):
            expected[classes.index(t), classes.index(p)] += 1
        code, out, _ = run("report", path, "--ignore=-1", "--json")
        assert code == 0
        found = json.loads(out)
        names = [x["name"] for x in found["classes"]]
        assert {*classes} <= {*names} <= {*true, *pred}
        places = np.ix_(*[[names.index(x) for x in classes]] * 2)
        np.testing.assert_array_equal(np.array(found["confusion_matrix"])[places], expected)
        assert (found["num_examples"], found["num_ignored"]) == (kept.sum(), (~kept).sum())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,", "row {}: 'y_pred' is '', which is no class; --ignore '' leaves such rows out"),
        (",b", "row {}: 'y_true' is '', which is no class; --ignore '' leaves such rows out"),
        (",", "row {}: 'y_true' is '', which is no class; --ignore '' leaves such rows out"),
        ("a, -7", "row {}: 'y_pred' is '-7', which is no class id; --ignore=-7 leaves such"),
        ("a,-1.0", "row {}: 'y_pred' is '-1.0', which is no class id; --ignore=-1.0 leaves"),
        ("z,a", "row {}: 'y_true' is 'z', after 3 other values: is it a column of classes?"),
        ("a,b,3,4,5", "a row has more columns than the header"),
    ],
)
@pytest.mark.parametrize("at", [5, 29, 58])
def test_the_first_bad_row_is_named(
    row: str, message: str, at: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_predictions, "MAX_CLASSES", 3)
    rows = ["a,b,1", "b,a,1", "", "c,c,1"] * 15
    bad = row if row.count(",") > 1 else f"{row},1"
    rows[at], rows[-1] = bad, bad
    path = write(tmp_path / "x.csv", "\n".join(["y_true,y_pred,w", *rows]) + "\n")
    code, _, err = run("report", path)
    assert code == 2
    assert message.format(at + 1) in err


@pytest.mark.parametrize("late", [0, 5000])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_free_text_are_refused(suffix: str, late: int, run: Run, tmp_path: Path) -> None:
    answers = ["a"] * late + [f"answer {i}" for i in range(100_000)]
    frame = pl.DataFrame({"y_true": ["a", "b"] * (len(answers) // 2), "y_pred": answers})
    path = save(frame, tmp_path / f"x{suffix}")
    expected = "'y_pred' is 'answer 4094', after 4096 other values: is it a column of classes?"
    assert run("report", path) == (2, "", f"jaxmetrics: {path}: row {late + 4095}: {expected}\n")


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_two_million_rows(weight: str | None, suffix: str, run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n, k = 2_000_000, 30
    true = rng.integers(0, k, n)
    pred = np.where(rng.random(n) < 0.7, true, rng.integers(0, k, n))
    pred[1_999_999], weights = k, rng.integers(0, 5, n) / 4
    path = save(
        pl.DataFrame({"y_true": true, "y_pred": pred, "w": weights}), tmp_path / f"x{suffix}"
    )
    mass = np.ones(n) if weight is None else weights
    expected = np.bincount(true * (k + 1) + pred, mass, (k + 1) ** 2).reshape(k + 1, k + 1)
    found = json.loads(run("report", path, *(["--weight", "w"] if weight else []), "--json")[1])
    assert [x["name"] for x in found["classes"]] == [str(i) for i in range(k + 1)]
    np.testing.assert_array_equal(found["confusion_matrix"], expected)


def test_what_is_held_is_bounded(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed text, arrays, and rows with scores; labels of other files are counted."""
    frame = pl.DataFrame({"y_true": [0, 1] * 500, "y_pred": [0, 1] * 500, "s": np.arange(1000.0)})
    text, arrays = save(frame, tmp_path / "x.csv"), save(frame, tmp_path / "x.npz")
    packed = tmp_path / "x.csv.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    monkeypatch.setattr(_reader, "MOST_HELD", 5000)
    assert run("report", text)[0] == 0
    for path, options in ((packed, []), (arrays, []), (text, ["--score", "s"])):
        code, out, err = run("report", path, *options)
        assert (code, out) == (2, "")
        assert "the file is too large" in err
    assert "the file is too large" in run("compare", text, text)[2]
    assert "the file is too large" in run("report", text, "--value", "s")[2]


def test_progress_bar_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # what makes rich take standard error for a terminal
    with _outputs.progress("rows") as on_progress:
        on_progress(3, 12)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "rows" in captured.err
    assert "/12" in captured.err


def test_json_into_links_and_pipes(run: Run, tmp_path: Path) -> None:
    path = save(FRAME, tmp_path / "x.csv")
    (tmp_path / "target.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "target.json")
    assert run("report", path, "--json", tmp_path / "link.json")[0] == 0
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "target.json").read_text())["num_examples"] == 5
    assert run("report", path, "--json", "/dev/null")[0] == 0
    assert not Path("/dev/null").is_file()


def test_no_arguments_show_help(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    assert "Usage" in out


def test_float_columns_are_no_classes(run: Run, tmp_path: Path) -> None:
    pl.DataFrame({"y_true": [0, 1], "y_pred": [0.2, 0.7]}).write_parquet(tmp_path / "x.parquet")
    code, _, err = run("report", tmp_path / "x.parquet")
    assert code == 2
    assert (
        "column 'y_pred' holds Float64, but classes, groups and ids must be strings or integers"
        in err
    )


def test_help_names_every_option(run: Run) -> None:
    code, out, _ = run("report", "--help")
    assert code == 0
    for option in (
        "--true",
        "--pred",
        "--weight",
        "--prob",
        "--ignore",
        "--counts",
        "--level",
        "--output",
        "--html",
        "--json",
    ):
        assert option in out


@pytest.mark.parametrize("command", ["report", "compare", "merge"])
def test_help_names_every_format(command: str, run: Run) -> None:
    out = run(command, "--help")[1]
    missing = [suffix for suffix in FORMATS if suffix not in out]
    assert not missing, f"the help texts of --output in cli/_options.py lack {missing}"


OTHER = FRAME.with_columns(
    pl.Series("y_pred", ["b", "a", "b", "b", "a"]), pl.Series("id", [4, 8, 15, 16, 23])
)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_two_files_are_compared(suffix: str, run: Run, tmp_path: Path) -> None:
    """Row by row, or in any order by an id; text and JSON say what `comparison_report` says."""
    ids = FRAME.with_columns(OTHER["id"])
    a, b = save(ids, tmp_path / f"a{suffix}"), save(OTHER.reverse(), tmp_path / f"b{suffix}")
    code, out, err = run("compare", a, b, "--id", "id", "--rope", "0.1", "--level", "0.9")
    assert (code, err) == (0, "")
    labels = [list(column) for column in (FRAME["y_true"], FRAME["y_pred"], OTHER["y_pred"])]
    expected = jm.comparison_report(*labels, names=(str(a), str(b)), rope=0.1, level=0.9)
    assert out == expected.to_text()
    assert (
        json.loads(run("compare", a, save(OTHER, tmp_path / f"c{suffix}"), "--json")[1])[
            "num_examples"
        ]
        == 5
    )


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> tuple[jm.streaming.Evaluator, list[Path]]:
    """Two saved states of 500 examples each."""
    tmp_path = tmp_path_factory.mktemp("hosts")
    evaluator = jm.evaluator(
        jm.count_metrics({"accuracy": jm.accuracy}, num_classes=3),
        jm.mean_of("loss"),
        jm.calibration_metrics(num_classes=3),
        jm.ranking_metrics(scale="probability", num_bins=64, num_classes=3),
    )
    rng = np.random.default_rng(0)
    paths = [tmp_path / "host0.npz", tmp_path / "host1.npz"]
    for path in paths:
        y = rng.integers(-1, 3, 500)
        z = (rng.normal(size=(500, 3)) + 2 * np.eye(3)[y]).astype(np.float32)
        jm.save_state(
            path,
            evaluator.update(evaluator.init(), y_true=y, logits=z, loss=jm.cross_entropy(z, y)),
        )
    return evaluator, paths


def test_states_of_hosts_are_merged(
    hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run, tmp_path: Path
) -> None:
    evaluator, paths = hosts
    merged = evaluator.merge(*map(jm.load_state, paths))
    results = jm.to_python(evaluator.compute(merged))
    code, out, _ = run(
        "merge", *paths, "--classes", "cat,dog,fish", "--output", tmp_path / "all.npz", "--json"
    )
    assert code == 0
    report = json.loads(out)
    assert (report["num_examples"], report["num_ignored"]) == (
        results["num_examples"],
        results["num_ignored"],
    )
    assert [c["name"] for c in report["classes"]] == ["cat", "dog", "fish"]
    for name in ("accuracy", "loss", "calibration_error"):
        assert report["overall"][name]["value"] == pytest.approx(results[name], rel=1e-6)
    assert report["overall"]["loss"]["method"] == "normal"
    jax.tree.map(np.testing.assert_array_equal, jm.load_state(tmp_path / "all.npz"), merged)
    code, out, _ = run("merge", tmp_path / "all.npz")
    assert code == 0
    assert (
        f"{results['num_examples']:.0f} examples, {results['num_ignored']:.0f} ignored, 3 classes"
        in out
    )


def test_a_state_that_is_given_twice_gives_a_warning(
    hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run
) -> None:
    first, second = hosts[1]
    code, _, err = run("merge", first, second, first)
    assert (code, err.count("\n")) == (0, 1)
    assert "host0.npz is given twice, so that its examples count twice." in err


def test_states_of_one_event_have_areas(run: Run, tmp_path: Path) -> None:
    evaluator = jm.evaluator(
        jm.count_metrics({}, num_classes=2), jm.ranking_metrics(scale="probability", num_bins=64)
    )
    batch: dict[str, list[float]] = {
        "y_true": [0, 1, 0, 1],
        "y_pred": [0, 1, 1, 1],
        "y_score": [0.1, 0.9, 0.6, 0.4],
    }
    jm.save_state(tmp_path / "a.npz", evaluator.update(evaluator.init(), **batch))
    overall = json.loads(run("merge", tmp_path / "a.npz", "--json")[1])["overall"]
    assert overall["roc_auc"]["value"] == pytest.approx(0.75)
    assert overall["roc_auc"]["method"] == "bounds"


def test_states_without_counts_are_merged(run: Run, tmp_path: Path) -> None:
    evaluator = jm.evaluator(jm.mean_of("loss"))
    jm.save_state(tmp_path / "a.npz", evaluator.update(evaluator.init(), loss=[1.0, 2.0]))
    code, out, err = run(
        "merge", tmp_path / "a.npz", tmp_path / "a.npz", "--output", tmp_path / "b.npz"
    )
    assert (code, out) == (0, "")
    assert "2 states merged; they hold no counts" in err
    jax.config.update("jax_enable_x64", False)  # as where the states were made
    assert evaluator.compute(jm.load_state(tmp_path / "b.npz"))["num_examples"] == 4


def test_pages(hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run, tmp_path: Path) -> None:
    a = save(FRAME, tmp_path / "a <1>.csv")
    b = save(FRAME.with_columns(pl.lit("b").alias("y_pred")), tmp_path / "b.csv")
    for arguments, title in (
        (("report", a), "a &lt;1&gt;.csv"),
        (("compare", a, b), "a &lt;1&gt;.csv and b.csv"),
        (("merge", *hosts[1]), "Merged states"),
    ):
        page = tmp_path / "page.html"
        code, out, err = run(*arguments, "--html", page)
        assert (code, err) == (0, "")
        assert "Intervals: 95 %" in out
        assert f"<h1>{title}</h1>" in page.read_text(encoding="utf-8")


def test_one_run_writes_every_format(
    hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run, tmp_path: Path
) -> None:
    a = save(FRAME, tmp_path / "a.csv")
    b = save(FRAME.with_columns(pl.lit("b").alias("y_pred")), tmp_path / "b.csv")
    state = tmp_path / "all.npz"
    labels = FRAME["y_true"].to_list(), FRAME["y_pred"].to_list()
    report = jm.report(*labels)
    comparison = jm.comparison_report(*labels, ["b"] * 5, names=(str(a), str(b)))
    merged = jm.Report.from_state(hosts[0].merge(*map(jm.load_state, hosts[1])))
    for arguments, title, expected in (
        (("report", a), "a.csv", report),
        (("compare", a, b), "a.csv and b.csv", comparison),
        (("merge", *hosts[1], "--output", state), "Merged states", merged),
    ):
        files = [tmp_path / f"report{suffix}" for suffix in (".html", ".json", ".MD", ".csv")]
        options = [option for file in files for option in ("--output", file)]
        assert run(*arguments, *options) == (0, expected.to_text(), "")
        assert [file.read_text(encoding="utf-8") for file in files] == [
            expected.to_html(title=title),
            expected.to_json(),
            expected.to_markdown(),
            expected.to_csv(),
        ]
        jax.config.update("jax_enable_x64", False)
    assert jm.load_state(state).statistics == hosts[0].init().statistics


def test_files_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    path = save(FRAME, tmp_path / "a.csv")
    for options, message in [
        (
            ("x.pdf",),
            "x.pdf: the suffix '.pdf' is unknown. --output writes files with the suffixes"
            " .html, .json, .md, .csv",
        ),
        (("x",), "x: the suffix '' is unknown. --output writes"),
        (
            ("x.npz",),
            "the suffix '.npz' is unknown. --output writes files with the suffixes .html,"
            " .json, .md, .csv",
        ),
        (("x.md", "x.md"), "x.md: --output would overwrite --output"),
        ((path,), "--output would overwrite the input"),
        (("no/x.md",), "no/x.md: cannot be written"),
    ]:
        arguments = [part for file in options for part in ("--output", file)]
        code, out, err = run("report", path, *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_states_that_cannot_be_merged(
    hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run, tmp_path: Path
) -> None:
    _, (path, _) = hosts
    other = jm.evaluator(jm.mean_of("loss"))
    jm.save_state(tmp_path / "means.npz", other.init())
    for arguments, message in [
        ((path, tmp_path / "means.npz"), "means.npz: states of different evaluators"),
        (
            (tmp_path / "means.npz",),
            "has exactly one confusion matrix, but this state has 0 confusion matrices."
            " The statistics of this state are Moments(name='loss',",
        ),
        ((path, tmp_path / "none.npz"), "none.npz: No such file"),
        (
            (write(tmp_path / "x.npz", "hello"),),
            "x.npz: this file does not contain the state of an evaluator",
        ),
        ((path, "--output", path), "--output would overwrite the input"),
        (
            (path, "--output", tmp_path / "x.zip"),
            ".html, .json, .md, .csv, .txt, .eee, .npz (the state)",
        ),
        (
            (path, "--output", tmp_path / "o.npz", "--html", tmp_path / "o.npz"),
            "--html would overwrite --output",
        ),
        (
            (tmp_path / "means.npz", "--html", tmp_path / "p.html"),
            "A report needs the state of an evaluator that has exactly one confusion matrix",
        ),
        ((path, "--classes", "a,b"), "must have 3 names, got 2"),
        ((path, "--output", tmp_path / "no" / "where.npz"), "where.npz: cannot be written"),
    ]:
        code, out, err = run("merge", *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
