"""The command line as a process: what it imports, holds and writes, on terminals and into files;
many rows, help, and states of evaluators.
"""

import gzip
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import jaxmetrics as jm
from jaxmetrics.cli import _outputs, _text_files
from jaxmetrics.cli._options import COMMANDS
from jaxmetrics.reports.formats import FORMATS
from tests.command_line import Run, answer, save, write

DATA = Path(__file__).parent.parent / "notebooks" / "data" / "digits_predictions.csv"
LABELS = [*"babab"], [*"baaab"]
FRAME = pl.DataFrame({"y_true": LABELS[0], "y_pred": LABELS[1]})


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


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
def test_counts_are_those_of_a_loop(suffix: str, run: Run, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(0), tmp_path / f"x{suffix}"
    for i in range(20):
        number = int(rng.integers(2, 12))
        labels = [str(j) if i % 2 else f"c{j:x}" for j in range(number)] + ["-1"]
        pairs = rng.choice(labels, (int(rng.integers(9, 70)), 2))
        if suffix == ".csv":
            rows = [f'{" " * (i % 3)}{true},"{pred}"' for true, pred in pairs]
            for place in rng.integers(0, len(rows), i % 3):
                rows.insert(place, "")
            write(path, "\n".join(["y_true,y_pred", *rows]) + "\n")
        else:
            save({"y_true": pairs[:, 0], "y_pred": pairs[:, 1], "i": pairs[:, 0]}, path)
        cells = Counter((true, pred) for true, pred in pairs if "-1" not in (true, pred))
        found = json.loads(run("report", path, "--ignore=-1", "--json")[1])
        names = [x["name"] for x in found["classes"]]
        assert {x for pair in cells for x in pair} <= {*names} <= {*pairs.ravel()}
        assert names == sorted(names, key=lambda x: int(x, 36))
        assert found["confusion_matrix"] == [
            [cells[true, pred] for pred in names] for true in names
        ]
        assert (found["num_examples"], found["num_ignored"]) == (n := cells.total(), len(pairs) - n)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_two_million_rows(weight: str | None, suffix: str, run: Run, tmp_path: Path) -> None:
    rng, n, k = np.random.default_rng(0), 2_000_000, 30
    true, weights = rng.integers(0, k, n), rng.integers(0, 5, n) / 4
    pred = np.where(rng.random(n) < 0.7, true, rng.integers(0, k, n))
    true[-1] = pred[-1] = k  # only in the last row
    path = save({"y_true": true, "y_pred": pred, "w": weights}, tmp_path / f"x{suffix}")
    found = answer(run, "report", path, *(["--weight", "w"] if weight else []))
    expected = np.zeros((k + 1, k + 1))
    np.add.at(expected, (true, pred), weights if weight else 1)
    assert [x["name"] for x in found["classes"]] == [str(i) for i in range(k + 1)]
    assert_array_equal(found["confusion_matrix"], expected)


def test_what_is_held_is_bounded(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed text, arrays, and rows with scores; labels of other files are counted."""
    frame = pl.DataFrame({"y_true": [0, 1] * 500, "y_pred": [0, 1] * 500, "s": np.arange(1000.0)})
    text = save(frame, folder / "x.csv").read_bytes()
    save(frame, folder / "x.npz")
    write(folder / "x.csv.gz", gzip.compress(text))
    monkeypatch.setattr(_text_files, "MOST_HELD", 5000)
    assert run("report", "x.csv")[0] == 0
    for command in (
        "report x.csv.gz",
        "report x.npz",
        "report x.csv --score s",
        "report x.csv --value s",
        "compare x.csv x.csv",
    ):
        code, out, err = run(*command.split())
        assert (code, out, "the file is too large" in err) == (2, "", True)


def test_a_terminal_is_told_what_takes_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for is_terminal in (False, True):
        if is_terminal:  # by which rich takes standard error for a terminal
            monkeypatch.setenv("FORCE_COLOR", "1")
        with _outputs.progress("ranking") as on_progress:
            on_progress(3, 12)
        out, err = capsys.readouterr()
        assert (out, "ranking" in err, "/12" in err) == ("", is_terminal, is_terminal)


def test_json_into_links_and_pipes(run: Run, folder: Path) -> None:
    path = save(FRAME, folder / "x.csv")
    target, link = write(folder / "target.json", "old"), folder / "link.json"
    link.symlink_to(target)
    code, out, _ = run("report", path, "--json", link)
    assert (code, out[:10], link.is_symlink()) == (0, "5 examples", True)
    assert json.loads(target.read_text())["num_examples"] == 5
    assert run("report", path, "--json", "/dev/null")[0] == 0
    assert not Path("/dev/null").is_file()
    assert sorted(p.name for p in folder.iterdir()) == ["link.json", "target.json", "x.csv"]


def test_help(run: Run) -> None:
    code, out, err = run()
    assert (code, err, "Usage" in out) == (0, "", True)
    assert all(f"\n  {name} " in out for name in COMMANDS)
    for command in COMMANDS:
        text = run(command, "--help")[1]
        assert all(option in text for option in ("--level", "--output", "--json"))
        missing = [suffix for suffix in FORMATS if suffix not in text]
        assert not missing, f"the help texts of --output in cli/_options.py lack {missing}"


def test_version(run: Run) -> None:
    expected = 0, f"jaxmetrics {jm.__version__}\n", ""
    assert run("--version") == expected
    command = [sys.executable, "-m", "jaxmetrics", "--version"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == expected


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
    hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run, folder: Path
) -> None:
    evaluator, paths = hosts
    merged = evaluator.merge(*map(jm.load_state, paths))
    results = jm.to_python(evaluator.compute(merged))
    report = answer(run, "merge", *paths, "--classes", "cat,dog,fish", "--output", "all.npz")
    for name in ("num_examples", "num_ignored"):
        assert report[name] == results[name]
    assert [c["name"] for c in report["classes"]] == ["cat", "dog", "fish"]
    for name in ("accuracy", "loss", "calibration_error"):
        assert report["overall"][name]["value"] == pytest.approx(results[name], rel=1e-6)
    assert report["overall"]["loss"]["method"] == "normal"
    jax.tree.map(assert_array_equal, jm.load_state("all.npz"), merged)
    assert " ignored, 3 classes" in run("merge", "all.npz")[1]


def test_a_state_that_is_given_twice_gives_a_warning(
    hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run
) -> None:
    first, second = hosts[1]
    code, _, err = run("merge", first, second, first)
    assert (code, err.count("\n")) == (0, 1)
    assert "host0.npz is given twice, so that its examples count twice." in err


def test_states_without_counts_are_merged(run: Run, folder: Path) -> None:
    evaluator = jm.evaluator(jm.mean_of("loss"))
    jm.save_state("a.npz", evaluator.update(evaluator.init(), loss=[1.0, 2.0]))
    code, out, err = run("merge", "a.npz", "a.npz", "--output", "b.npz")
    assert (code, out) == (0, "")
    assert "2 states merged; they hold no counts" in err
    jax.config.update("jax_enable_x64", False)  # as where the states were made
    assert evaluator.compute(jm.load_state("b.npz"))["num_examples"] == 4


def test_one_run_writes_every_format(
    hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run, folder: Path
) -> None:
    a, b = (
        save(FRAME, folder / "a.csv"),
        save(FRAME.with_columns(y_pred=pl.lit("b")), folder / "b.csv"),
    )
    report = jm.report(*LABELS)
    comparison = jm.comparison_report(*LABELS, ["b"] * 5, names=(a.name, b.name))
    merged = jm.Report.from_state(hosts[0].merge(*map(jm.load_state, hosts[1])))
    for arguments, title, expected in (
        (("report", a), "a.csv", report),
        (("compare", a, b), "a.csv and b.csv", comparison),
        (("merge", *hosts[1], "--output", "all.npz"), "Merged states", merged),
    ):
        files = [Path(f"report{suffix.upper()}") for suffix in FORMATS]
        options = [option for file in files for option in ("--output", file)]
        assert run(*arguments, *options, "--html", "page") == (0, expected.to_text(), "")
        texts = [file.read_text(encoding="utf-8") for file in (*files, Path("page"))]
        page = expected.to_html(title=title)
        written = {**{suffix: write(expected) for suffix, write in FORMATS.items()}, ".html": page}
        assert texts == [*written.values(), page]
        jax.config.update("jax_enable_x64", False)
    assert jm.load_state("all.npz").statistics == hosts[0].init().statistics


SUFFIXES = ".html, .json, .md, .tex, .csv, .txt, .eee, .npz (the state)"
NOT_MERGED = {
    "a.npz means.npz": "means.npz: states of different evaluators",
    "means.npz": "one confusion matrix without groups, but this state has 0. If there is one",
    "a.npz none.npz": "none.npz: No such file",
    "x.npz": "x.npz: this file does not contain the state of an evaluator",
    "a.npz --output a.npz": "--output would overwrite the input",
    "a.npz --output x.zip": SUFFIXES,
    "a.npz --output o.npz --html o.npz": "--html would overwrite --output",
    "means.npz --html p.html": "needs the state of an evaluator that has exactly one confusion",
    "a.npz --classes a,b": "must have 3 names, got 2",
    "a.npz --output no/where.npz": "where.npz: cannot be written",
}


@pytest.mark.parametrize("arguments", NOT_MERGED)
def test_states_that_cannot_be_merged(
    arguments: str, hosts: tuple[jm.streaming.Evaluator, list[Path]], run: Run, folder: Path
) -> None:
    write(folder / "a.npz", hosts[1][0].read_bytes())
    write(folder / "x.npz", "hello")
    jm.save_state("means.npz", jm.evaluator(jm.mean_of("loss")).init())
    code, out, err = run("merge", *arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert NOT_MERGED[arguments] in err
