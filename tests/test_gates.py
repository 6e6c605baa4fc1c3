"""Gates of reports, and several of them at once."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.reports.gates import Gate, Verdict, exit_code, judged
from jaxmetrics.reports.values import ReportValue
from tests.command_line import NAMES, PREDS, TRUE, Run, answer, with_files

COUNTS = np.array([[80, 20], [10, 190]])
CELLS = "y_true,y_pred,count\ncat,cat,80\ncat,dog,20\ndog,cat,10\ndog,dog,190\n"


REPORT = jm.Report.from_counts(COUNTS, class_names=["cat", "dog"])
ACCURACY, RECALL = REPORT["accuracy"], REPORT["recall"]["cat"]
MACRO_F1 = jm.comparison_report(*(NAMES[x] for x in (TRUE, *PREDS)))["macro_f1"].difference
PAIRS = "compare a.csv b.parquet --id id --prob p_"
LINES = 'y_true,y_pred\n"a\nb","a\nb"\nc,c\n'
E = 1e-6
CELLED = "report x.csv --counts"
GATES: list[tuple[Any, ...]] = [
    # All of the interval keeps the bound: 0; nothing of it: 1; some of it: 3.
    (CELLED, 0, {f"accuracy >= {ACCURACY.low - E}": "passed"}, CELLS),
    (CELLED, 3, {f"accuracy >= {ACCURACY.low + E}": "unknown"}, CELLS),
    (CELLED, 1, {f"accuracy >= {ACCURACY.high + E}": "failed"}, CELLS),
    (CELLED, 0, {f"recall[cat]>={RECALL.low - E}": "passed"}, CELLS),
    (CELLED, 1, {f"recall[cat] <= {RECALL.low - E}": "failed"}, CELLS),
    (
        CELLED,
        3,
        {f"recall[cat] <= {RECALL.value + E}": "unknown", "accuracy >= 0": "passed"},
        CELLS,
    ),
    (CELLED, 1, {"accuracy >= .1": "passed", "recall[dog] >= .99": "failed"}, CELLS),
    ("report x.csv", 0, {"recall[a\nb] >= 0.05": "passed"}, LINES),
    (PAIRS, 0, {f"macro_f1 >= {MACRO_F1.low - E}": "passed"}),
    (PAIRS, 1, {f"macro_f1 >= {MACRO_F1.high + E}": "failed"}),
    (PAIRS, 3, {f"macro_f1>={MACRO_F1.low + E}": "unknown"}),
    (PAIRS, 0, {f"macro_f1 <= {MACRO_F1.high + E}": "passed"}),
    (PAIRS, 1, {f"macro_f1 <= {MACRO_F1.low - E}": "failed"}),
    (PAIRS, 0, {"log_loss <= 0": "passed", "accuracy >= -.5": "passed"}),
    (PAIRS, 3, {"accuracy >= -.5": "passed", f"macro_f1 >= {MACRO_F1.value + E}": "unknown"}),
    (PAIRS, 1, {"accuracy >= .9": "failed", f"macro_f1 >= {MACRO_F1.value + E}": "unknown"}),
    (
        "report a.jsonl --value acc --group task",
        1,
        {"acc >= .5": "passed", "group[law] >= .5": "passed", "mean_of_groups >= .9": "failed"},
    ),
    ("compare a.jsonl b.jsonl --value acc", 0, {"acc >= -0.01": "passed"}),
    # More examples are needed whether or not scores are missing.
    ("report x.csv --value ok", 3, {"ok >= 0.5": "unknown"}, "ok\n1\n0\n1\n0\n1\n \n"),
]


@pytest.mark.quick
@pytest.mark.parametrize("row", GATES, ids=lambda row: f"{row[0]} {[*row[2]]}")
@pytest.mark.usefixtures("folder")
def test_gates(row: Any, run: Run) -> None:
    command, code, verdicts, *contents = row
    arguments = with_files(command, *contents)
    options = [x for gate in verdicts for x in ("--gate", gate)]
    found = answer(run, *arguments, *options, code=code)["gates"]
    assert {x["gate"]: x["verdict"] for x in found} == verdicts
    assert all((x.get("more_examples", 0) > 0) == (x["verdict"] == "unknown") for x in found)


@pytest.mark.quick
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        (
            "report x.csv --counts --gate 'recall[cat] >= 0.75'",
            3,
            f"; recall, cat is {RECALL}.",
        ),
        (
            "report x.csv --counts --gate 'recall[cat] >= 0.75'",
            3,
            "Gate recall[cat] >= 0.75: undecided (about ",
        ),
        (
            "report x.csv --counts --gate 'no_information_rate >= 0.9'",
            3,
            "0.9: undecided (the value has no confidence interval); no information",
        ),
        (
            "report x.csv --counts --gate 'accuracy >= .1' --format markdown",
            0,
            r"### Passed | gate | verdict | value, 95 % interval | | --- | ---: | ---: | |"
            r" accuracy \>= .1 | passed | 0.900 \[",
        ),
        (f"{PAIRS} --gate 'macro_f1 >= 0.05' --cluster patient", 3, "more clusters would decide"),
        (f"{PAIRS} --gate 'accuracy >= .9'", 1, "Gate accuracy >= .9: failed"),
        (f"{PAIRS} --gate 'accuracy >= .9' --format markdown", 1, "| A - B, 95 % interval |"),
        (f"{PAIRS} --gate 'macro_f1 >= {MACRO_F1.value}' --format markdown", 3, "### Undecided"),
    ],
)
def test_gates_in_words(command: str, code: int, sentence: str, run: Run) -> None:
    found, out, _ = run(*with_files(command, *[CELLS] * command.startswith("report")))
    assert (found, sentence in " ".join(out.split())) == (code, True)


ITEMS = pl.DataFrame({"id": range(60), "ok": [1, 1, 0] * 20})
SOLVED = ITEMS.with_columns(ok=1)
TIMED_OUT = ITEMS.filter(pl.col("ok") == 1)  # lacks 20 items
LACKS_ONE = ITEMS.filter(pl.col("id") != 2)
LACKING: list[tuple[Any, ...]] = [
    (">= -0.1", 3, TIMED_OUT, SOLVED, "20 of 60 in x.jsonl; in the worst case, A - B is -0.333 ["),
    (">= -0.1", 3, ITEMS, TIMED_OUT, "20 of 60 in y.jsonl; in the worst case, A - B is -0.333 ["),
    ("<= 0.1", 3, TIMED_OUT, ITEMS, "20 of 60 in x.jsonl; in the worst case, A - B is 0.333 ["),
    (">= -0.1", 0, TIMED_OUT, ITEMS, "20 of 60 in x.jsonl; in the worst case, A - B is 0.000 ["),
    ("<= 0.2", 0, LACKS_ONE, ITEMS, "1 of 60 in x.jsonl; in the worst case, A - B is 0.017 ["),
    (">= 0.5", 1, TIMED_OUT, ITEMS, "20 of 60 in x.jsonl"),
    (
        ">= -99",
        3,
        LACKS_ONE.with_columns(ok=9),
        ITEMS,
        "1 of 60 in x.jsonl; in the worst case, A - B is unknown without bounds",
    ),
]


@pytest.mark.quick
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("bound", "code", "a", "b", "reason"), LACKING)
def test_gates_on_missing_scores(
    bound: str, code: int, a: Any, b: Any, reason: str, run: Run
) -> None:
    command = f"compare x.jsonl y.jsonl --value ok --id id --gate 'ok {bound}' --html x.html"
    arguments = with_files(command, a, b)
    (gate,) = answer(run, *arguments, code=code)["gates"]
    assert gate["reason"].startswith(f"scores are missing: {reason}")
    assert "more_examples" not in gate
    word = {0: "passed", 1: "failed", 3: "undecided"}[code]
    found, out, _ = run(*arguments)
    assert (found, f"ok {bound}: {word} (scores are missing: {reason}" in joined(out)) == (
        code,
        True,
    )
    page = Path("x.html").read_text()
    assert f"{word} (scores are missing: {reason}" in page
    _, out, _ = run(*arguments, "--format", "markdown")
    assert f"{word} (scores are missing: {reason}" in joined(out.replace("\\", ""))


@pytest.mark.quick
@pytest.mark.usefixtures("folder")
def test_a_report_with_missing_scores_passes_in_the_worst_case(run: Run) -> None:
    for least, code in ((0.5, 3), (0.2, 0)):
        options = ["--gate", f"mean >= {least}"]
        text = "ok\n" + "1\n" * 40 + "N/A\n" * 40
        (gate,) = answer(run, *with_files("report x.csv --value ok", text), *options, code=code)[
            "gates"
        ]
        half = jm.mean_interval([1, 0] * 40, bounds=(0, 1))
        worst = f"in the worst case, the value is {half}"
        assert gate["reason"] == f"scores are missing: 40 of 80; {worst}"


@pytest.mark.quick
@pytest.mark.usefixtures("folder")
def test_rankings_of_missing_scores(run: Run) -> None:
    ranking = "leaderboard x.jsonl y.jsonl --value ok --id id"
    first, second = answer(run, *with_files(ranking, ITEMS, TIMED_OUT))["classifiers"]
    assert [first[x] for x in ("name", "missing", "worst_case")] == [
        "x.jsonl",
        0,
        pytest.approx(2 / 3),
    ]
    assert [second[x] for x in ("name", "missing", "worst_case")] == [
        "y.jsonl",
        20,
        pytest.approx(2 / 3),
    ]
    _, out, _ = run(*ranking.split())
    assert "Values and ranks are of the 40 of 60 items for which no score is missing." in joined(
        out
    )
    assert "worst case" in out
    # The order of the files does not matter, although values are equal.
    assert run(*["leaderboard", "y.jsonl", "x.jsonl", "--value", "ok", "--id", "id"])[1] == out
    complete = answer(run, *with_files(ranking, ITEMS, ITEMS))
    assert "missing" not in complete["classifiers"][0]


def joined(text: str) -> str:
    return " ".join(text.split())


def normal_interval(x: float, error: float, level: float) -> ReportValue:
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    return ReportValue(jm.Estimate(x, x - reach, x + reach, error, 0))


def of_normal(values: dict[Gate, float]) -> Callable[[Gate, float], ReportValue]:
    return lambda gate, level: normal_interval(values[gate], 1, level)


def test_an_unknown_gate_says_how_many_examples_would_settle_it() -> None:
    """With as many more, and the same value, the end of the interval is at the bound."""
    for text in ("a >= 0.8", "a >= 0.86", "a <= 0.8", "a <= 0.86"):
        gate = Gate.parsed(text)
        (found,) = judged(
            [gate], lambda _, level: normal_interval(0.83, 0.05, level), level=0.95, number=400
        )
        assert found.verdict is Verdict.UNKNOWN
        error = 0.05 * math.sqrt(400 / (400 + found.more))
        x = normal_interval(0.83, error, 0.95)
        assert min(abs(x.low - gate.bound), abs(x.high - gate.bound)) < 1e-9
    at_bound = Gate.parsed("a >= 0.83")
    (found,) = judged(
        [at_bound], lambda _, level: normal_interval(0.83, 0.05, level), level=0.95, number=400
    )
    assert found.verdict_in_words == "undecided (the value is at the bound)"


def test_examples_without_any_mistake_or_difference() -> None:
    """The interval's width is proportional to 1 / n, not to 1 / sqrt(n)."""

    def accuracy(n: int) -> ReportValue:
        return jm.Report.from_counts([[n // 2, 0], [0, n // 2]])["accuracy"]

    def difference(n: int) -> ReportValue:
        scores = [1, 0] * (n // 2)
        return jm.score_report(scores, scores, bounds=(0, 1))["mean"].difference

    for value, bound in ((accuracy, 0.99), (difference, -0.01)):
        gate, x = Gate.parsed(f"a >= {bound}"), value(120)
        (found,) = judged([gate], lambda *_, x=x: x, level=0.95, number=120)
        assert found.verdict is Verdict.UNKNOWN
        number = 2 * round((120 + found.more) / 2)
        assert gate.judge(value(number + 6)) is Verdict.PASSED
        assert gate.judge(value(number - 6)) is Verdict.UNKNOWN


@pytest.mark.parametrize("sign", [">=", "<="])
def test_the_margin_of_equal_systems_passes_in_80_percent(sign: str) -> None:
    error, side, n = 0.02, -1 if sign == ">=" else 1, 10_000

    def judged_at(bound: float, x: float) -> Any:
        gate = Gate.parsed(f"a {sign} {bound}")
        value = normal_interval(x, error, 0.95)
        (found,) = judged([gate], lambda *_: value, level=0.95, number=400, what="A - B")
        return found

    found = judged_at(0.0, -side * 0.01)
    hint = re.fullmatch(
        rf"undecided \(about .* would decide it; if A and B are equal, 400 examples like these pass"
        rf" {sign} (\S+) with 80 % power\)",
        found.verdict_in_words,
    )
    assert hint is not None
    margin = float(hint[1])
    draws = np.random.default_rng(4).normal(0, error, n)
    share = np.mean([judged_at(margin, x).verdict is Verdict.PASSED for x in draws])
    assert abs(share - 0.8) < 4 * 0.4 / math.sqrt(n) + 0.005  # the margin is rounded up
    # The present number is enough for this margin, and a gate that asks for a gain has none.
    for bound, x in ((1.1 * margin, 1.1 * margin), (-side * 0.01, -side * 0.02)):
        assert "if A and B" not in judged_at(bound, x).verdict_in_words
    at_zero = judged_at(0.0, 0.0)
    assert at_zero.verdict_in_words.startswith("undecided (the value is at the bound; if A and B")


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_several_gates_fail_together_no_more_often_than_one(correlation: float) -> None:
    """Six gates whose values are at their bounds: Holm's procedure keeps wrong failures at 2.5 %;
    without it they are up to six times as frequent. A wrong pass needs all gates to pass.
    """
    rng = np.random.default_rng(0)
    gates = [Gate.parsed(f"m{i} >= 0") for i in range(6)]
    failed = passed = alone = 0
    size = 3000
    for _ in range(size):
        z = rng.standard_normal(6) * math.sqrt(1 - correlation)
        z += math.sqrt(correlation) * rng.standard_normal()
        values = dict(zip(gates, z, strict=True))
        found = judged(gates, of_normal(values), level=0.95, number=9)
        code = exit_code(found)
        failed, passed = failed + (code == 1), passed + (code == 0)
        alone += bool((z < -1.96).any())
    error = math.sqrt(0.025 * 0.975 / size)
    assert failed / size < 0.025 + 3 * error
    assert passed / size < 0.025 + 3 * error
    assert alone / size > 0.025 + 3 * error


def test_failures_are_those_of_holms_procedure() -> None:
    """Against the p-values: the i-th smallest of G is compared with the level over G - i + 1."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        z = rng.normal(-1.5, 1.5, 5)
        gates = [Gate.parsed(f"m{i} >= 0") for i in range(5)]
        values: dict[Any, float] = dict(zip(gates, z, strict=True))
        found = judged(gates, of_normal(values), level=0.9, number=9)
        p = np.array([NormalDist().cdf(x) for x in z])
        expected = set()
        for i, place in enumerate(np.argsort(p)):
            if p[place] >= 0.05 / (5 - i):
                break
            expected.add(int(place))
        assert {i for i, x in enumerate(found) if x.verdict is Verdict.FAILED} == expected


def recalls(right: Any, n: int, level: float) -> dict[str, ReportValue]:
    """Return the recalls that a report of classes with n examples each shows at a level."""
    right = np.asarray(right)
    counts = np.diag(right) + np.roll(np.diag(n - right), 1, axis=1)
    return jm.Report.from_counts(counts, level=level, method=jm.Delta())["recall"]


@pytest.mark.parametrize(
    ("number", "n", "bound"), [(10, 50, 0.9), (12, 120, 0.98), (5, 30, 0.95), (2, 15, 0.8)]
)
def test_true_gates_on_rates_rarely_fail(number: int, n: int, bound: float) -> None:
    """The exact probability that a gate fails although all are true and at their bounds; 2.5 % is
    meant. A gate fails if it does at the first level of Holm's procedure.
    """
    every = [*recalls(range(n + 1), n, 1 - 0.05 / number).values()]
    gate = Gate.parsed(f"recall[0] >= {bound}")
    fails = np.array([gate.judge(x) is Verdict.FAILED for x in every])
    one = stats.binom.pmf(np.arange(n + 1), n, bound)[fails].sum()
    assert 0.005 < 1 - (1 - one) ** number < 0.036


def test_a_gate_fails_only_at_the_corrected_level() -> None:
    """39 of 50 have P = .0094 at a recall of .9, and Holm's limit of ten gates is .0025."""
    assert 0.0025 < stats.binom.cdf(39, 50, 0.9) < 0.025
    gates = [Gate.parsed(f"recall[{i}] >= 0.9") for i in range(10)]
    for right, verdict in ((39, Verdict.UNKNOWN), (36, Verdict.FAILED)):

        def value(gate: Gate, level: float, right: int = right) -> ReportValue:
            return recalls([right] + 9 * [45], 50, level)[str(gate.of_class)]

        assert judged(gates, value, level=0.95, number=500)[0].verdict is verdict
        (alone,) = judged(gates[:1], value, level=0.95, number=500)
        assert alone.verdict is Verdict.FAILED
