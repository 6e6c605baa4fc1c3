"""The examples behind the numbers, against loops over all rows."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import jaxmetrics as jm
from tests.command_line import Run, answer, save, write

NAMES = np.array(["ant", "bee", "cow", "dog"])
N = 400


def frame(seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    true = rng.integers(0, 4, N)
    prob = 0.45 * np.eye(4)[true] + 0.55 * rng.dirichlet(np.full(4, 0.4), N)
    return pl.DataFrame(
        {
            "uid": [f"q{i}" for i in range(N)],
            "y_true": NAMES[true],
            "y_pred": NAMES[prob.argmax(1)],
            **{f"p_{name}": prob[:, i] for i, name in enumerate(NAMES)},
            "site": rng.choice(["x", "y"], N),
        }
    )


def slow_rows(rows: pl.DataFrame, number: int, *, by_confidence: bool) -> list[dict[str, Any]]:
    """List the mistakes of the five most frequent kinds, as many of each."""
    kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for i, row in enumerate(rows.iter_rows(named=True), 1):
        if row["y_true"] != row["y_pred"]:
            kinds.setdefault((row["y_true"], row["y_pred"]), []).append({"row": i, **row})
    most = sorted(kinds, key=lambda kind: (-len(kinds[kind]), kind))[:5]
    found = []
    for kind in most:
        of_kind = kinds[kind]
        if by_confidence:
            of_kind = sorted(of_kind, key=lambda row: -row[f"p_{kind[1]}"])
        found += of_kind[: -(-number // len(most))]
    return found[:number]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("number", "suffix"),
    [(1, ".csv"), (7, ".jsonl"), (50, ".parquet"), (1000, ".npz"), (7, ".arrow"), (7, ".tsv")],
)
def test_rows_of_the_most_frequent_mistakes(
    number: int, suffix: str, run: Run, tmp_path: Path
) -> None:
    path = save(frame(), tmp_path / f"x{suffix}")
    shown = ["--examples", number, "--id", "uid", "--show", "site,y_true"]
    for more in ([], ["--prob", "p_"]):
        if more and suffix == ".npz":
            continue  # probabilities are one array there
        found = answer(run, "report", path, *shown, *more)["mistakes"]
        expected = slow_rows(frame(), number, by_confidence=bool(more))
        for x, y in zip(found, expected, strict=True):
            assert (x["row"], x["true"], x["predicted"]) == (y["row"], y["y_true"], y["y_pred"])
            assert x["columns"] == {name: y[name] for name in ("uid", "site", "y_true")}
            assert x.get("probability") == (y[f"p_{y['y_pred']}"] if more else None)


def test_python_finds_the_same(run: Run, tmp_path: Path) -> None:
    rows = frame()
    prob = rows.select(pl.col("^p_.*$")).to_numpy()
    true, pred = (rows[name].to_list() for name in ("y_true", "y_pred"))
    found = jm.report(true, pred, y_prob=prob).mistakes(5)
    expected = slow_rows(rows, 10**6, by_confidence=True)
    assert [i + 1 for x in found for i in x.indices] == [x["row"] for x in expected]
    assert [x.times for x in found] == [len(x.indices) for x in found]
    assert set(rows[found[0].indices.tolist()]["y_true"]) == {found[0].true}
    in_order = jm.report(true, pred).mistakes(5)
    assert all((np.diff(x.indices) > 0).all() for x in in_order)
    assert [sorted(x.indices) for x in found] == [x.indices.tolist() for x in in_order]

    groups = jm.report(true, pred, groups=rows["site"].to_list()).groups
    for site, report in groups.items():
        (most,) = report.mistakes(1)
        assert set(rows[most.indices.tolist()]["site"]) == {site}
        assert set(rows[most.indices.tolist()]["y_pred"]) == {most.pred}


def test_what_is_ignored_is_no_mistake() -> None:
    y_true, y_pred = np.array([0, 1, -1, 1, -1]), np.array([1, 1, 0, 0, -100])
    report = jm.report(y_true, y_pred, sample_weight=[0.0, 1, 1, 5, 1])
    assert [(x.true, x.pred, x.indices.tolist()) for x in report.mistakes()] == [
        ("0", "1", [0]),
        ("1", "0", [3]),
    ]
    assert jm.report([0, 1], [0, 1]).mistakes() == []
    with pytest.raises(
        ValueError, match="This report was made from counts, which do not contain single examples"
    ):
        jm.Report.from_counts([[1, 1], [0, 1]]).mistakes()
    with pytest.raises(ValueError, match="number must be at least 1"):
        report.mistakes(0)


@pytest.mark.quick
def test_only_right_in_one_of_two(run: Run, tmp_path: Path) -> None:
    a, b = frame(0), frame(1).with_columns(frame(0)["y_true"])
    path_a = save(a, tmp_path / "a.csv")
    path_b = save(b.sample(fraction=1, shuffle=True, seed=3), tmp_path / "b.parquet")
    options = ["--id", "uid", "--examples", 9, "--show", "site", "--prob", "p_"]
    found = answer(run, "compare", path_a, path_b, *options)["examples"]
    expected = []
    for right, wrong, side in ((a, b, "A"), (b, a, "B")):
        rows = [
            (-wrong[f"p_{w}"][i], i, w)
            for i, (t, r, w) in enumerate(
                zip(a["y_true"], right["y_pred"], wrong["y_pred"], strict=True)
            )
            if r == t != w
        ]
        expected += [(side, i + 1, -p, w) for p, i, w in sorted(rows)[:5]]
    assert expected[:9] == [
        (x["right"], x["row"], x["probability"], x["B" if x["right"] == "A" else "A"])
        for x in found
    ]
    assert "Only one is correct\n" in run("compare", path_a, path_b, *options)[1]


def test_parts_groups_and_one_class_against_the_others(run: Run, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    rows = frame()
    save(rows[:150], parts / "0.csv")
    save(rows[150:], parts / "1.csv")
    options = ["--examples", 4, "--group", "site", "--pos-label", "cow", "--id", "uid"]
    for x in answer(run, "report", parts, *options)["mistakes"]:
        part = rows[:150] if x["file"] == "0.csv" else rows[150:]
        row = part.row(x["row"] - 1, named=True)
        assert (x["columns"]["uid"], x["group"]) == (row["uid"], row["site"])
        classes = [c if c == "cow" else "not cow" for c in (row["y_true"], row["y_pred"])]
        assert [x["true"], x["predicted"]] == classes
        assert classes[0] != classes[1]
    assert "Examples of the most frequent mistakes\n" in run("report", parts, *options)[1]


HOSTILE = "<script>alert(1)</script> | \x1b[31mred\u202e\nnew line, " + 200 * "long "


@pytest.mark.quick
def test_hostile_values_are_written_as_text(run: Run, tmp_path: Path) -> None:
    lines = [
        json.dumps({"y_true": "a", "y_pred": "b", "x": HOSTILE, "y": None, "z": ["1", None]}),
        json.dumps({"y_true": "b", "y_pred": "b", "x": "é", "y": 1, "z": []}),
    ]
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    page = tmp_path / "x.html"
    options = ["--examples", 3, "--show", "x,y,z"]
    code, out, err = run("report", path, *options, "--html", page)
    assert (code, err) == (0, "")
    row = next(line for line in out.splitlines() if "alert" in line)
    assert not {"\x1b", "\u202e"} & {*out}
    assert r"\x1b[31mred\u202e\nnew" in row
    assert ("…" in row, len(row) <= 80) == (True, True)
    html = page.read_text()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html
    markdown = run("report", path, *options, "--format", "markdown")[1]
    assert r"\<script\>alert(1)\</script\> \|" in markdown
    (found,) = answer(run, "report", path, *options)["mistakes"]
    assert found["columns"] == {"x": HOSTILE[:1000], "y": None, "z": "1"}
    records = csv.DictReader(io.StringIO(run("report", path, *options, "--format", "csv")[1]))
    assert {*next(records)} >= {"name", "class", "value"}


@pytest.mark.quick
def test_nothing_is_listed_of_nothing(run: Run, tmp_path: Path) -> None:
    perfect = write(tmp_path / "x.csv", "y_true,y_pred\na,a\nb,b\n")
    code, out, err = run("report", perfect, "--examples", 5)
    assert (code, err) == (0, "")
    assert "Examples of the most frequent mistakes" not in out
    assert "mistakes" not in answer(run, "report", perfect, "--examples", 5)
    path = save(frame(), tmp_path / "y.csv")
    assert run("report", path)[1] == run("report", path, "--examples", 0)[1]


def slow_items(a: list[float], b: list[float], number: int) -> list[int]:
    """List items whose scores differ, as many of A's losses as of its gains if there are enough."""
    differ = [(x - y, i) for i, (x, y) in enumerate(zip(a, b, strict=True)) if x < y or x > y]
    lost = sorted(x for x in differ if x[0] < 0)
    gained = sorted((-x, i) for x, i in differ if x > 0)
    most = number
    while most > (number + 1) // 2 and min(most, len(lost)) + len(gained) > number:
        most -= 1
    return [i for _, i in (lost[:most] + gained)[:number]]


@pytest.mark.quick
@pytest.mark.parametrize("number", [1, 7, 9, 30, 100])
@pytest.mark.parametrize("kind", ["graded", "right or wrong", "rarely lost"])
def test_items_whose_scores_differ(number: int, kind: str, run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, 5, (2, 60)) / 4
    if kind != "graded":
        a, b = np.round(a), np.round(b)
    if kind == "rarely lost":
        a[4:] = np.maximum(a, b)[4:]
    a[7] = b[9] = np.nan
    items = pl.DataFrame(
        {"unit": range(60), "part": [*"xy"] * 30, "note": "n", "site": [*"uvw"] * 20}
    )
    path = save(items.with_columns(score=pl.Series(a).fill_nan(None)), tmp_path / "a.jsonl")
    shuffled = items.with_columns(score=pl.Series(b).fill_nan(None)).sample(
        60, shuffle=True, seed=1
    )
    save(shuffled, tmp_path / "b.jsonl")
    options = ["--value", "score", "--id", "part,unit", "--examples", number, "--show", "note"]
    files = path, tmp_path / "b.jsonl"
    found = answer(run, "compare", *files, *options, "--group", "site")["examples"]
    assert found == [
        {
            **{"row": i + 1, "group": "uvw"[i % 3], "A": a[i], "B": b[i]},
            "columns": {"part,unit": f"{'xy'[i % 2]},{i}", "note": "n"},
        }
        for i in slow_items(a.tolist(), b.tolist(), number)
    ]
    for form in ("text", "markdown"):
        out = run("compare", *files, *options, "--format", form)[1]
        assert "Items whose scores differ" in out
    if kind != "graded":
        assert "0.000" not in out.split("###")[-1]  # 0 and 1 are written without decimals


@pytest.mark.quick
def test_items_with_the_lowest_scores(run: Run, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    write(parts / "0.csv", "grade\n1\n.5\n\n1\n")
    write(parts / "1.csv", "grade\n0\n\n.25\n0\n")
    options = ["--value", "grade", "--examples", "9"]
    found = answer(run, "report", parts, *options)["examples"]
    assert [(x["score"], x["file"], x["row"]) for x in found] == [
        (0, "1.csv", 1),
        (0, "1.csv", 4),
        (0.25, "1.csv", 3),
        (0.5, "0.csv", 2),
    ]
    of_two = answer(run, "report", parts, *options, "--bounds", "0,2")["examples"]
    assert [x["score"] for x in of_two] == [0, 0, 0.25, 0.5, 1, 1]
    page = tmp_path / "x.html"
    assert "Items with the lowest scores" in run("report", parts, *options, "--html", page)[1]
    assert "Items with the lowest scores" in page.read_text()
    perfect = write(tmp_path / "x.csv", "grade\n1\n1\n")
    assert "examples" not in answer(run, "report", perfect, *options)
