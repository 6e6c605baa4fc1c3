"""What people see of results: text, HTML, dicts and data frames."""

import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmetrics as jm
from jaxmetrics._text.wording import (
    Table,
    bars_of,
    enumeration,
    fraction,
    interval,
    labels_of,
    listed,
    printable,
    probability,
    title_of,
    width_of,
)
from jaxmetrics.reports.values import Compared, ReportValue, exactly

pytestmark = pytest.mark.quick

COUNTS_A, COUNTS_B = np.array([[90, 10], [5, 95]]), np.array([[80, 20], [9, 91]])
WINNER_FIRST = [[0, 0, 1, 1, 1, 1] * 20, [0, 1, 1, 1, 0, 1] * 20, [0, 0, 1, 1, 0, 0] * 20]


def of_numbers(*numbers: float) -> jm.Estimate:
    value, low, high, error = map(np.float64, numbers)
    return jm.Estimate(value, low, high, error, np.int32(0))


def board_of(place: Any = np.asarray) -> jm.Leaderboard:
    y_true = place([0, 0, 1, 1, 1, 0] * 20)
    return jm.leaderboard(jm.accuracy, y_true, WINNER_FIRST, num_classes=2, method=jm.Delta())


@pytest.mark.parametrize("place", [np.asarray, jnp.asarray], ids=["host", "device"])
def test_an_estimate_is_one_line(place: Any) -> None:
    estimate = jm.proportion_interval(place(80), place(94))
    assert repr(estimate) == str(estimate) == f"{estimate}" == "0.851 [0.765, 0.909]"
    assert f"{estimate:.2f}" == "0.85 [0.77, 0.91]"
    assert repr({"a": {"b": estimate}}) == "{'a': {'b': 0.851 [0.765, 0.909]}}"
    assert float(estimate) == pytest.approx(80 / 94)
    assert estimate._repr_html_() == repr(estimate)
    assert estimate.to_dict() == {
        "value": pytest.approx(80 / 94),
        "low": float(estimate.low),
        "high": float(estimate.high),
        "standard_error": pytest.approx((80 * 14 / 94**3) ** 0.5),
        "num_undefined": 0,
        "num_examples": 94,
        "level": 0.95,
        "method": "wilson",
    }


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.5, math.nan, math.nan), "0.500 (no interval)"),
        ((math.nan, math.nan, math.nan), "nan (no interval)"),
        ((math.nan, 0, 1), "nan [0.000, 1.000]"),
        ((0.5, 0.1, math.inf), "0.500 [0.100, inf]"),
        ((0.85123, 0.8511, 0.8514), "0.85123 [0.85110, 0.85140]"),  # the ends differ
        ((0.99996, 0.8, 0.99999), "0.99996 [0.80000, 0.99999]"),  # the value is not 1
        ((0.00004, 0, 0.3), "0.00004 [0.00000, 0.30000]"),
        ((0.9, 0.8, 0.99996), "0.900 [0.800, 1.000]"),  # an end may be rounded to 1
        ((0, -0.0001, 0.3), "0.000 [0.000, 0.300]"),
        ((12345.678, 12000.1, 13000.2), "12346 [12000, 13000]"),
        ((1e20, 5e19, 2e20), "1e+20 [5e+19, 2e+20]"),
        ((-0.0, -0.0, 0.0), "0.000 [0.000, 0.000]"),
    ],
)
def test_as_many_decimals_as_the_interval_deserves(
    numbers: tuple[float, ...], expected: str
) -> None:
    assert repr(of_numbers(*numbers, 0)) == expected


def test_undefined_replicates_are_told() -> None:
    estimate = replace(jm.proportion_interval(80, 94), num_undefined=np.int32(7))
    assert repr(estimate) == "0.851 [0.765, 0.909] (7 replicates undefined)"


def test_a_batch_is_one_line_or_a_table() -> None:
    three = jm.proportion_interval([90, 95, 3], [100, 100, 7])
    lines = ["0.900 [0.826, 0.945]", "0.950 [0.888, 0.978]", "0.429 [0.158, 0.750]"]
    assert repr(three) == f"3 estimates: {'; '.join(lines)}"
    assert str(three).splitlines() == [
        "   value [low, high]",
        *(f"{i}  {line}" for i, line in enumerate(lines)),
    ]
    assert f"{three:.1%}".splitlines()[2] == "1  95.0% [88.8%, 97.8%]"
    html = three._repr_html_()
    assert html.count("<tr>") == 4
    assert all(f"<td>{line}</td>" in html for line in lines)
    with pytest.raises(
        TypeError,
        match=r"Only a single estimate can be converted to float, but this Estimate has the"
        r" shape \(3,\)",
    ):
        float(three)
    many = jm.proportion_interval(np.arange(3000).reshape(2, 1500) % 30, np.full((2, 1500), 30))
    assert repr(many).startswith("2 x 1500 estimates: 0.000 [")
    assert repr(many).count("[") == 3
    rows = str(many).splitlines()
    assert len(rows) == 22
    assert rows[10].startswith("0, 9 ")
    assert rows[11].split() == ["...", "..."]
    assert rows[-1].startswith("1, 1499  0.967 ")
    assert many._repr_html_().count("<tr>") == 22
    none = jm.proportion_interval(np.zeros((0, 3)), np.ones((0, 3)))
    assert repr(none) == str(none) == none._repr_html_() == "0 x 3 estimates"


def test_curves_are_tables() -> None:
    y, score = [0, 1, 0, 1], [0.25, 0.5, 0.5, 0.75]
    for function in (jm.roc_curve, jm.precision_recall_curve, jm.det_curve):
        title, *rows = str(function(y, score)).split("\n")
        assert title.split()[-1] == "thresholds"
        assert [row.split()[-1] for row in rows] == ["inf", "0.750", "0.500", "0.500", "0.250"]
    bins = jm.calibration_curve(y, score, num_bins=2)
    assert str(bins).split("\n")[1].split()[:3] == ["0", "0.417", "0.333"]
    isotonic = jm.calibration_curve(y, score, strategy="isotonic")  # weight is None
    assert str(isotonic).split("\n")[0].split() == ["mean_prob", "frequency", "low", "high"]
    assert list(isotonic.to_frame())[-1] == "high"


def test_what_cannot_be_looked_at_prints_plainly() -> None:
    said = []

    def look(x: Any) -> Any:
        estimate = jm.proportion_interval(x, x)
        compared = jm.Comparison(estimate, estimate, estimate, x, x)
        posterior = jm.recall_posterior(jnp.stack([jnp.stack([x, x]), jnp.stack([x, x])]))
        said.extend([repr(estimate), f"{estimate:.2f}", estimate._repr_html_()])
        said.extend([repr(compared), repr(posterior), str(posterior)])
        return x

    jax.jit(look)(jnp.array(3.0))
    jax.vmap(look)(jnp.arange(3.0))
    assert [text.split("(")[0] for text in said[:6]] == ["Estimate"] * 3 + [
        "Comparison",
        "BetaAverage",
        "BetaAverage",
    ]
    assert all("racer" in text for text in (said[0], said[6]))
    for odd in (None, "a", object(), jax.ShapeDtypeStruct((), float), 1j, np.array("a")):
        assert repr(jm.Estimate(odd, 0, 0, 0, 0)).startswith("Estimate(value=")
        average = jax.tree.map(lambda _, x=odd: x, jm.accuracy_posterior([[3, 1], [0, 4]]))
        assert repr(average).startswith("BetaAverage(parameters=")
    unequal = jm.Estimate(np.zeros(2), np.zeros(3), 0, 0, 0)
    assert repr(unequal).startswith("Estimate(value=array")
    board = jax.eval_shape(lambda: board_of(jnp.asarray))
    assert repr(board).startswith("Leaderboard(estimates=Estimate(value=ShapeDtypeStruct")
    with pytest.raises(ValueError, match=r"needs the values of a single leaderboard. Call"):
        board.to_text()
    with pytest.raises(
        ValueError, match=r"the values of arrays, which do not exist while jax.jit compiles"
    ):
        jm.Estimate(jax.ShapeDtypeStruct((), float), 0, 0, 0, 0).to_frame()


def test_nothing_is_compiled_to_print(programs: list[str]) -> None:
    estimate = jm.proportion_interval(jnp.array([80, 90]), jnp.array([94, 99]))
    posterior = jm.balanced_accuracy_posterior(jnp.asarray(COUNTS_A))
    programs.clear()
    assert "estimates" in repr(estimate)
    assert "[" in str(estimate) + repr(posterior) + posterior._repr_html_()
    assert programs == []


def test_low_precision_prints() -> None:
    assert repr(jm.Estimate(*[jnp.ones((), jnp.bfloat16)] * 4)) == "1.000 [1.000, 1.000]"


def test_a_comparison() -> None:
    one = jm.compare_unpaired(jm.accuracy, COUNTS_A, COUNTS_B, rope=0.02)
    estimates = [f"{x}" for x in one[:3]]
    better, equivalent = (f"{float(x):.3f}" for x in one[3:])
    titles = ["A", "B", "A - B", "confidence A > B", "confidence equivalent"]
    cells = [*estimates, better, equivalent]
    line = ", ".join(f"{title} {cell}" for title, cell in zip(titles, cells, strict=True))
    assert repr(one) == str(one).replace("\n", " ") == line
    exactly = one._replace(probability_equivalent=np.float64(0))
    assert repr(exactly) == line.rsplit(",", 1)[0]
    assert one.to_dict()["a"]["low"] == float(one.a.low)
    two = jax.tree.map(lambda x: np.stack([x, x]), one)
    assert repr(two) == f"2 comparisons: {line}; {line}"
    rows = [re.split(" {2,}", row) for row in str(two).splitlines()]
    assert rows[1] + rows[5][1:] == ["0", *cells]  # two tables, because one would be too wide


def test_an_average_of_betas() -> None:
    average = jm.balanced_accuracy_posterior(COUNTS_A)
    low, high = average.interval()
    assert repr(average) == f"{average.mean:.3f} [{low:.3f}, {high:.3f}]"
    expected = {"mean": average.mean, "low": low, "high": high}
    assert average.to_dict() == {
        **{name: pytest.approx(float(x)) for name, x in expected.items()},
        "standard_deviation": pytest.approx(float(average.variance) ** 0.5),
    }
    batch = jm.balanced_accuracy_posterior(np.stack([COUNTS_A, COUNTS_B]))
    assert repr(batch).startswith(f"2 averages of betas: {average}; 0.8")
    assert str(batch).splitlines()[1] == f"0  {average}"


def test_a_leaderboard_is_a_ranking() -> None:
    board = board_of()
    names = ["a\tb", "tiny", "n" * 1000]
    lines = board.to_text(names).splitlines()
    assert [line.split("  ")[0] for line in lines[:4]] == [
        "classifier",
        r"a\tb",
        "n" * 26 + "…" + "n" * 13,
        "tiny",
    ]
    assert lines[5] == rf"a\tb and {'n' * 26}…{'n' * 13} cannot be told apart."
    assert lines[6] == "tiny is shown to be worse than one above."
    assert lines[7] == rf"Expected for the winner, a\tb, on new examples: {board.winner_estimate}."
    assert repr(board) == board.to_text()
    found = board.to_dict(names)
    assert [x["name"] for x in found["classifiers"]] == [names[0], names[2], names[1]]
    assert [x["tier"] for x in found["classifiers"]] == [1, 1, 2]
    assert found["winner"]["value"] == float(board.winner_estimate.value)
    json.dumps(found)
    assert board._repr_html_().count("<tr>") == 4
    with pytest.raises(
        ValueError, match="one name for each classifier: 3 names were expected, got 2"
    ):
        board.to_text(["a", "b"])


def test_what_is_said_of_classifiers_without_equals() -> None:
    truth = np.arange(400) % 2
    preds = np.stack([truth, 1 - truth])
    best = jm.leaderboard(jm.accuracy, truth, preds, method=jm.Delta())
    sentences = best.to_text(["A", "B"]).split("\n\n")[1].splitlines()[:2]
    assert sentences == ["A is shown to be the best.", "B is shown to be worse than one above."]
    alone = jm.leaderboard(jm.accuracy, truth, preds[:1], method=jm.Delta())
    assert alone.to_text().split("\n\n")[1].startswith("Expected for the winner")


def test_of_many_classifiers_the_first_are_shown() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    right = rng.random((200, 300)) < np.linspace(0.9, 0.5, 200)[:, None]
    preds = np.where(right, truth, (truth + 1) % 3)
    board = jm.leaderboard(jm.accuracy, truth, preds, method=jm.Delta())
    lines = repr(board).splitlines()
    assert len(lines) < 40
    assert lines[21] == "... 180 more"
    assert "more cannot be told apart" in lines[23]
    assert len(board.to_text().splitlines()) > 200
    shown = [line.split()[0] for line in lines[1:21]]
    values = board.estimates.value[np.array(shown, int)]
    tiers = board.tiers[np.array(shown, int)]
    assert (np.diff(tiers) >= 0).all()
    assert (np.diff(values)[np.diff(tiers) == 0] <= 0).all()
    assert int(shown[0]) == board.winner


def test_a_report_prints_its_text_and_finds_values() -> None:
    names = [f"c{i}" for i in range(25)]
    report = jm.Report.from_counts(9 * np.eye(25, dtype=int), class_names=names)
    assert repr(report).splitlines()[0] == "225 examples, 25 classes"
    assert "c19" in repr(report)
    assert "c20" not in repr(report)
    assert "\n... 5 more\n" in repr(report)
    assert "c24" in report.to_text()
    assert report["accuracy"] is report.overall["accuracy"]
    assert report["recall"]["c24"] == report.per_class["recall"][24]
    assert "f1" in report
    assert [*report][:2] == ["accuracy", "balanced_accuracy"]
    with pytest.raises(KeyError, match="'acuracy' is not in the report, which contains accuracy"):
        report["acuracy"]
    fragment = report._repr_html_()
    assert "<html" not in fragment
    assert fragment.count("<table>") == fragment.count("</table>") == 2


def test_reported_values_print_as_estimates_do() -> None:
    value = ReportValue(jm.Estimate(0.851, 0.8, 0.892, 0.02, 0, method="likelihood"))
    assert repr(value) == str(value) == "0.851 [0.800, 0.892]"
    assert f"{value:.1f}" == "0.9 [0.8, 0.9]"
    assert (float(value), repr(exactly(0.5))) == (0.851, "0.500 (no interval)")
    compared = Compared(value, value, ReportValue(jm.Estimate(0, -0.1, 0.1, 0.05, 0)), 0.5, 0.0)
    assert (
        repr(compared)
        == f"A {value}, B {value}, A - B 0.000 [-0.100, 0.100], confidence A > B 0.500"
    )


def test_a_comparison_report_prints_its_text() -> None:
    report = jm.comparison_report([0, 1] * 9, [0, 1] * 9, [0, 0] * 9, names=("x" * 999, "a\nb"))
    assert repr(report) + "\n" == report.to_text()
    assert r"B: a\nb" in repr(report)
    assert report["accuracy"] is report.figures["accuracy"]
    with pytest.raises(KeyError, match="not in the report"):
        report["recall"]
    assert "<p>18 examples, 2 classes<br>A: xxx" in report._repr_html_()


FRAMES = ["pandas", "polars", "pyarrow"]


def columns_of(frame: Any) -> dict[str, list[Any]]:
    narwhals = pytest.importorskip("narwhals", reason="frames need the extra `tables`")
    columns = narwhals.from_native(frame, eager_only=True).iter_columns()
    return {column.name: column.to_list() for column in columns}


@pytest.mark.parametrize("backend", FRAMES)
def test_frames(backend: Any) -> None:
    pytest.importorskip(backend, reason="the frame's library is not installed")
    one = jm.proportion_interval(80, 94)
    two = jm.proportion_interval([[80], [90]], [[94], [99]])
    compared = jm.compare_unpaired(jm.accuracy, COUNTS_A, COUNTS_B)
    report = jm.Report.from_counts(COUNTS_A, class_names=["x", "y"])
    pairs = jm.comparison_report([0, 1] * 9, [0, 1] * 9, [0, 0] * 9)
    board: Any = board_of()
    rows = {"name": [*"acb"], "tier": [1, 1, 2]}
    for frame, expected in (
        (one.to_frame(backend), {x: [y] for x, y in one.to_dict().items() if y != 0}),
        (two.to_frame(backend), {"index_0": [0, 1], "index_1": [0, 0], "low": [*two.low.ravel()]}),
        (compared.to_frame(backend), {"difference_low": [float(compared.difference.low)]}),
        (board.to_frame([*"abc"], backend=backend), rows),
        (pairs.to_frame(backend), {"classifier": ["A", "B", "A - B"] * len(pairs.figures)}),
    ):
        columns = columns_of(frame)
        assert {name: columns[name] for name in expected} == expected
    columns = columns_of(report.to_frame(backend))
    at = [*zip(columns["name"], columns["class"], strict=True)].index(("recall", "y"))
    assert columns["value"][at] == report["recall"]["y"].value
    assert len(columns["name"]) == len(report.to_csv().splitlines()) - 1


def test_frames_are_of_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    estimate = jm.proportion_interval(80, 94)
    with pytest.raises(ValueError, match="backend must be"):
        estimate.to_frame("excel")  # type: ignore[arg-type]
    for name in FRAMES[:2]:
        pytest.importorskip(name, reason="the frame's library is not installed")
        assert type(estimate.to_frame()).__module__.startswith(name)
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError, match=f"to_frame needs {name}: pip install {name}"):
            estimate.to_frame(name)  # type: ignore[arg-type]
    with pytest.raises(ImportError, match="needs pandas or polars: pip install pandas"):
        estimate.to_frame()


def test_nan_is_none_in_dicts() -> None:
    estimate = of_numbers(0.5, math.nan, math.nan, math.nan)
    assert estimate.to_dict()["low"] is None
    batch = jax.tree.map(lambda x: np.stack([x, x]), estimate)
    assert batch.to_dict()["low"] == [None, None]
    assert json.loads(json.dumps(batch.to_dict()))["value"] == [0.5, 0.5]


def test_names_are_shown_not_sent() -> None:
    everything = "".join(map(chr, range(0x110000)))
    written = printable(everything)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in written)
    assert not {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))} & {*written}
    written.encode()  # no lone surrogate
    assert printable("a\x00\x1b[31m\n\x7f\x9b") == r"a\x00\x1b[31m\n\x7f\x9b"
    for name in ("naïve", "狗", "شناخته‌شده", "👨‍👩‍👧", "a b", "$x$"):
        assert printable(name) == name


def test_long_names_are_cut_and_differ() -> None:
    labels = labels_of(["ant", "b" * 1_000_000, "b" * 999_999, "\x00" * 16], 16)
    assert labels == ["ant", *(f"{'b' * 8}…{'b' * 4} #{i}" for i in (2, 3)), r"\x00\x00\x…0\x00"]
    assert max(map(len, labels_of(["\x9b" * 16], 16))) <= 16
    # What differs at the end needs no number; a wide character takes two columns.
    assert labels_of([f"{'a' * 40} {i}" for i in range(2)], 9) == ["aaaaaa… 0", "aaaaaa… 1"]
    assert labels_of(["狗" * 9, "a" * 5000 + "狗", "e\u0301" * 9], 8) == [
        "狗狗…狗",
        "aaaaa…狗",
        "e\u0301" * 5 + "…" + "e\u0301" * 2,
    ]
    assert labels_of(["aaaaa…aaaa"], 8) == ["aaaaa…aa"]
    assert listed(["x\n", *range(1000)]).startswith(r"x\n, 0, 1, ")
    assert len(listed(range(10**9))) < 100
    assert title_of("mean_\x1b[31m" + "x" * 1000).startswith(r"mean \x1b[31mxx")
    assert len(title_of("x" * 10**6)) <= 60


def test_words() -> None:
    assert [enumeration([*"ABC"][:n]) for n in range(4)] == ["", "A", "A and B", "A, B and C"]
    assert [fraction(x) for x in (0.99999, 1.0, -1e-9, math.nan)] == [
        "0.99999",
        "1.000",
        "0.000",
        "-",
    ]
    assert interval(0.5, 0.25, 0.75, "+.2f") == "+0.50 [+0.25, +0.75]"


NAMES = {
    "short": [*"abc"],
    "long": [f"a class that nobody would name so, with a hyphen-{'x' * 50} {i}" for i in range(3)],
    "wide": ["狗" * 60, "狗" * 60 + "猫", "e\u0301" * 50],
    "one": ["x" * 500, "0, " * 99, "-"],
}


def results_with_names(names: list[str]) -> list[Any]:
    """Results of each kind, most of which show these names."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 120)
    pred, other = (np.where(rng.random(120) < p, true, rng.integers(0, 3, 120)) for p in (0.8, 0.5))
    prob = 0.6 * np.eye(3)[pred] + 0.4 / 3
    groups = np.array(names)[rng.integers(0, 3, 120)]
    options: Any = {"y_prob": prob, "class_names": names}
    counts = jm.confusion_matrix(true, [pred, other], num_classes=3)
    board = jm.leaderboard(jm.accuracy, true, dict(zip(names, [pred, other, true], strict=True)))
    both: Any = {"class_names": names, "names": (names[0], names[1]), "rope": 0.01}
    scores: Any = {"groups": groups, "bounds": (0, 1), "name": names[0]}
    return [
        jm.report(true, pred, **options),
        jm.report(true, pred, groups=groups, class_names=names),
        jm.report(true % 2, pred % 2, groups=groups, class_names=names[:2]),
        jm.comparison_report(true, pred, other, y_prob_a=prob, y_prob_b=prob, **both),
        jm.score_report(true == pred, **scores),
        jm.score_report(true == pred, true == other, **scores),
        jm.multilabel_report(np.eye(3)[true], np.eye(3)[pred], label_names=names),
        board,
        jm.compare_predictions(jm.accuracy, true, pred, other),
        jm.mcnemar([[90, 1], [20, 30]]),
        jm.delong(true == 1, prob[:, 1], rng.random(120)),
        jm.balanced_accuracy_posterior(counts),
        jm.interval(jm.recall, counts),
        jm.interval(jm.accuracy, counts[0]),
    ]


@pytest.mark.parametrize("names", NAMES)
def test_no_line_is_longer_than_the_terminal(names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = results_with_names(NAMES[names])
    for width in (40, 60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        texts = [str(x) for x in results]
        texts += [x.to_text() for x in results if hasattr(x, "to_text")]
        for text in texts:
            assert max(map(width_of, text.splitlines())) <= width, text
            # No interval is broken or shortened, and there is only one way to write it.
            assert all(line.count("[") == line.count("]") for line in text.splitlines()), text
            assert not re.search(r"\d-\.\d|\d to \d|\d\.\d*…", text), text
    monkeypatch.setenv("COLUMNS", "7")
    assert max(map(width_of, str(results[-2]).splitlines())) <= 40


def test_a_wide_terminal_has_one_table_with_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    report = results_with_names([*"abc"])[0]
    assert "\n\nclass  ROC AUC\n" in str(report)
    pair = jm.Report.from_counts(COUNTS_A)
    assert "specificity" not in str(report) + str(pair)
    assert "specificity" in pair.to_markdown()
    monkeypatch.setenv("COLUMNS", "200")
    title, *rows = str(report).split("\n\n")[2].splitlines()
    assert title.split()[:7] == ["class", "n", "precision", "recall", "F1", "specificity", "ROC"]
    low, high = (float(x) for x in title.rsplit("F1:", 1)[1].split())
    values = [x.numbers for x in report.per_class["f1"]]
    assert (low, high) == pytest.approx((np.min(values), np.max(values)), abs=5e-4)
    start = title.index("F1:")
    for row, numbers in zip(rows, values, strict=True):
        ends = [
            start + len(x)
            for x in (row[start:].rstrip("─●"), row[start:].split("●")[0], row[start:-1])
        ]
        expected = [start + 47 * (x - low) / (high - low) for x in sorted(numbers)]
        assert ends == pytest.approx(expected, abs=1)


def test_values_below_each_other_have_equal_decimals() -> None:
    few_and_many = jm.proportion_interval([90, 1995], [100, 2000])
    rows = [line.split()[1:] for line in str(few_and_many).splitlines()[1:]]
    assert rows == [["0.9000", "[0.8256,", "0.9448]"], ["0.9975", "[0.9942,", "0.9989]"]]
    counts = np.array([[50_000, 400, 9], [300, 70_000, 1], [1, 1, 5]])
    for line in jm.Report.from_counts(counts).to_text().split("\n\n")[2].splitlines()[1:]:
        assert {len(x.strip("[],").partition(".")[2]) for x in line.split()[2:5]} == {5}


def test_small_probabilities() -> None:
    shown = [probability(x) for x in (0, 1e-6, 0.000999, 0.001, 0.5, 0.999, 0.99901, 1, math.nan)]
    assert shown == ["< 0.001"] * 3 + ["0.001", "0.500", "0.999"] + ["> 0.999"] * 2 + ["-"]
    assert "p-value < 0.001" in str(jm.mcnemar([[0, 40], [2, 0]]))


def test_tables_count_columns_of_a_terminal() -> None:
    table = Table(["name", "n"], [["狗", "1"], ["e\u0301", "2"], ["ant", "3"]])
    assert table.text().splitlines() == ["name  n", "狗    1", "e\u0301     2", "ant   3"]
    assert table.markdown().splitlines()[:2] == ["| name | n |", "| --- | ---: |"]
    table = Table(["a_b", "[n]"], [["[x] & 50%", "~^\\"], ["{<|>}", "#$"], ["t-1", "-1 [-2, -]"]])
    assert table.latex().split("\n") == [
        r"\begin{center}",
        r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a\_b & [n] \\",
        r"\midrule",
        r"{}[x] \& 50\% & \textasciitilde{}\textasciicircum{}\textbackslash{} \\",
        r"\{\textless{}\textbar{}\textgreater{}\} & \#\$ \\",
        r"t-1 & $-$1 [$-$2, $-$] \\",
        r"\bottomrule",
        r"\end{tabular}}",
        r"\end{center}",
    ]
    assert Table(["<", ""], [["</b>", "&"]]).html() == (
        "<table><thead><tr><th>&lt;</th><th></th></tr></thead>"
        "<tbody><tr><th><bdi>&lt;/b&gt;</bdi></th><td>&amp;</td></tr></tbody></table>"
    )


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_latex_compiles_within_the_margins(tmp_path: Path) -> None:
    """Reports, leaderboards and estimates with names that are markup, in a document of defaults."""
    rng = np.random.default_rng(0)
    names = ["a_b & c", "<unk>", "[other]", "50 % ^ ~ {#}", "\\x$"]
    y, preds = rng.integers(0, 5, 300), rng.integers(0, 5, (2, 300))
    by_name: Any = np.array(names)[[y, *preds]]
    results: list[Any] = [
        jm.report(y, preds[0], y_prob=np.eye(5)[preds[0]] * 0.9 + 0.02, class_names=names),
        jm.report(y > 2, preds[0] > 2, groups=["north", "south"] * 150),
        jm.comparison_report(*by_name, names=("new_model-1", "old & tried"), rope=0.01),
        jm.score_report(y == preds[0], y == preds[1], groups=by_name[0], bounds=(0, 1)),
        jm.leaderboard(jm.accuracy, y, {"A_1": preds[0], "-b": preds[1]}),
        replace(jm.interval(jm.recall, jm.confusion_matrix(y, preds[0])), names=names),
        jm.compare_unpaired(jm.accuracy, COUNTS_A, COUNTS_B),
    ]
    start = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}"
    long = Table(["group", "n"], [["x", "1"]] * 90).latex()
    parts = [start, *(x.to_latex() for x in results), long, r"\end{document}"]
    (tmp_path / "x.tex").write_text("\n\n".join(parts), encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "x.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert "Missing character" not in (tmp_path / "x.log").read_text(errors="replace")


def test_a_title_that_is_longer_than_the_bars_is_left_out() -> None:
    for title, first in (("F1", "F1: 0.000   1.000"), ("evaluation.score", "0.000       1.000")):
        assert bars_of([(0.5, 0, 1)], 17, title) == [first, "────────●────────"]
