"""Gates of reports, and several of them at once."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.reports.gates import Gate, Verdict, exit_code, judged
from jaxmetrics.reports.values import ReportValue
from tests.command_line import Run, write

COUNTS = np.array([[80, 20], [10, 190]])
CELLS = "y_true,y_pred,count\ncat,cat,80\ncat,dog,20\ndog,cat,10\ndog,dog,190\n"


@pytest.mark.quick
def test_gates_of_a_report(run: Run, tmp_path: Path) -> None:
    """0: all of the interval keeps the bound; 1: nothing of it; 3: some of it."""
    report = jm.Report.from_counts(COUNTS, class_names=["cat", "dog"])
    accuracy, recall = report["accuracy"], report["recall"]["cat"]
    path = write(tmp_path / "x.csv", CELLS)
    for gates, code, verdict in (
        ([f"accuracy >= {accuracy.low - 1e-9}"], 0, "passed"),
        ([f"accuracy >= {accuracy.low + 1e-9}"], 3, "unknown"),
        ([f"accuracy >= {accuracy.high + 1e-9}"], 1, "failed"),
        ([f"recall[cat]>={recall.low - 1e-9}"], 0, "passed"),
        ([f"recall[cat] <= {recall.low - 1e-9}"], 1, "failed"),
        ([f"recall[cat] <= {recall.value}", "accuracy >= 0"], 3, "unknown"),
        (["accuracy >= .1", "recall[dog] >= .99"], 1, "passed"),
    ):
        options = [x for gate in gates for x in ("--gate", gate)]
        found, out, err = run("report", path, "--counts", *options, "--json")
        assert (found, err) == (code, "")
        first = json.loads(out)["gates"][0]
        assert (first["gate"], first["verdict"]) == (gates[0], verdict)
    found, out, _ = run("report", path, "--counts", "--gate", "recall[cat] >= 0.75")
    assert found == 3
    last = out.splitlines()[-1]
    assert last.startswith("Gate recall[cat] >= 0.75: undecided (about ")
    assert last.endswith(
        f"; recall, cat is {recall.value:.3f} ({recall.low:.3f} to {recall.high:.3f})."
    )
    page = tmp_path / "x.html"
    assert run("report", path, "--counts", "--gate", "accuracy >= .1", "--html", page)[0] == 0
    assert "Gate accuracy &gt;= .1: passed" in page.read_text()


@pytest.mark.quick
@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("f2 >= 1", "unknown metric 'f2'. The reported metrics are accuracy, balanced_accuracy"),
        (
            "recall >= 1",
            "recall, which has one value for each class. Write one of the classes in"
            " brackets, such as recall[cat]. The classes are 'cat'",
        ),
        (
            "recall[cow] >= 1",
            "recall, which has one value for each class. Write one of the classes in"
            " brackets, such as recall[cat]",
        ),
        (
            "accuracy[cat] >= 1",
            "accuracy, which has a single value for all classes. Leave out the brackets"
            " and the class",
        ),
        ("accuracy = 1", "--gate must have a form such as 'accuracy >= 0.9', 'recall[cat] >= 0.8'"),
    ],
)
def test_what_gates_refuse(gate: str, message: str, run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", CELLS)
    code, out, err = run("report", path, "--counts", "--gate", gate)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize(
    "command",
    [["report", "none.csv"], ["report", "none.csv", "--value", "x"], ["compare", "none", "none"]],
)
def test_a_malformed_gate_is_refused_before_files_are_read(command: list[str], run: Run) -> None:
    code, _, err = run(*command, "--gate", "accuracy > 1")
    assert code == 2
    assert "--gate must have a form such as" in err
    assert "none" not in err


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
    assert found.verdict_in_words == "undecided (more examples would decide it)"


@pytest.mark.quick
def test_a_gate_without_an_interval_is_undecided(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", CELLS)
    gate = "--gate", "no_information_rate >= 0.9"
    code, out, _ = run("report", path, "--counts", *gate)
    assert code == 3
    assert "0.9: undecided (the value has no confidence interval); no information" in out


@pytest.mark.quick
def test_a_gate_on_a_class_whose_name_has_a_line_break(run: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'y_true,y_pred\n"a\nb","a\nb"\nc,c\n')
    assert run("report", path, "--gate", "recall[a\nb] >= 0.05")[0] == 0


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
