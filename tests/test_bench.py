"""The parts that the bench scripts share: they time, draw and write tables; and the first calls."""

import importlib
import itertools
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

pytest.importorskip("matplotlib", reason="pictures need the extra `plot`")

import jaxmetrics as jm
from bench import (
    __main__ as command,
)
from bench import (
    calls,
    constants,
    coverage,
    crossing,
    first_call,
    harness,
    joint_coverage,
    judged,
    pictures,
    populations,
    proportions,
    simulations,
    studies,
    tables,
)
from bench.studies import labels, statements
from tests.estimates import ends

MARKS = "before\n<!-- bench:sorting -->\nold\n<!-- /bench -->\nafter\n"


@pytest.fixture(autouse=True)
def known_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "bandwidth", lambda: 2e9)
    monkeypatch.setattr(
        harness,
        "arithmetic_rate",
        lambda dtype="float32": {"float32": 1e11, "bfloat16": 4e11}[dtype],
    )


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where results and the guide are written."""
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    return tmp_path


def guide_page(root: Path, text: str) -> Path:
    page = root / "notebooks" / "benchmarks.md"
    page.parent.mkdir()
    page.write_text(text)
    return page


def figures(median: float) -> dict[str, float]:
    return {
        "median": median,
        "lower_quartile": 0.9 * median,
        "upper_quartile": 1.25 * median,
        "first_call": 0.5,
    }


def sweep() -> harness.Sweep:
    return {
        n: {
            "jaxmetrics": figures(1e-6 * n),
            "a peer": figures(1e-5 * n),
            harness.LIMIT: harness.limit(nbytes=4 * n),
        }
        for n in (100, 1000)
    }


def test_contenders_are_timed_checked_and_scaled() -> None:
    calls = {"ours": 0, "theirs": 0}

    def contender(name: str) -> Any:
        def run() -> Any:
            calls[name] += 1
            return jnp.full(3, 2.0)

        return run

    seen: dict[str, Any] = {}
    contenders = {name: contender(name) for name in calls}
    results = harness.measure(contenders, check=seen.update, factors={"theirs": 1e6}, repetitions=4)
    assert set(seen) == set(results) == set(calls)
    assert calls == {"ours": 5, "theirs": 5}  # the first call is apart
    assert all(
        0 < r["lower_quartile"] <= r["median"] <= r["upper_quartile"] for r in results.values()
    )
    assert results["theirs"]["median"] > 1000 * results["ours"]["median"]
    assert results["theirs"]["first_call"] < 10  # is not multiplied


def test_slow_contenders_run_three_times() -> None:
    calls: list[int] = []
    harness.measure({"slow": lambda: calls.append(1)}, seconds=0.0)
    assert len(calls) == 1 + 3


def test_contenders_that_disagree_are_not_timed() -> None:
    def check(values: dict[str, Any]) -> None:
        assert values["a"] == values["b"]

    with pytest.raises(AssertionError):
        harness.measure({"a": lambda: 1, "b": lambda: 2}, check=check)


def test_the_limit_is_whatever_takes_longer() -> None:
    assert harness.limit(nbytes=2e9) == {"median": 1.0}
    assert harness.limit(nbytes=2e9, flops=3e11) == {"median": 3.0}
    assert harness.limit(nbytes=2e9, flops=2e11, dtype="bfloat16") == {"median": 1.0}


def test_tables_and_pictures_are_written(root: Path) -> None:
    page = guide_page(root, MARKS)
    table: dict[str, Any] = {"n = 1000": sweep()[1000], "memory": {"a peer": "7 MB"}}
    harness.publish_times("sorting", "sort", {"numbers": sweep()}, table, "Small numbers.")
    text = page.read_text()
    assert text.startswith("before\n<!-- bench:sorting -->\n")
    assert text.endswith("<!-- /bench -->\nafter\n")
    for line in (
        "| sort | n = 1000 | memory |",
        "| jaxmetrics | 1 (0.9-1.25) |  |",
        "| a peer | 10 (9-12.5) | 7 MB |",
        "| limit | 0.002 |  |",
        "| first call of jaxmetrics, s | 0.50 |  |",
    ):
        assert line in text.splitlines()
    assert "(../bench/results/sorting.svg)" in text
    medians = "1 ms for `jaxmetrics`; 10 ms for `a peer`; 0.002 ms for `limit`."
    assert f'At the size "1,000 numbers", the median time is {medians}' in text
    stored = json.loads((root / "bench/results/sorting.json").read_text())
    assert stored["results"]["numbers"]["100"]["a peer"] == figures(1e-3)
    assert ElementTree.parse(root / "bench/results/sorting.svg").getroot().tag.endswith("svg")


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        platform, device_kind = "gpu", "Example GPU"

    monkeypatch.setattr("jax.devices", lambda: [Device()])


@pytest.mark.usefixtures("on_a_gpu")
def test_other_devices_have_files_of_their_own_unless_a_bench_is_of_them(root: Path) -> None:
    page = guide_page(root, MARKS)
    harness.publish_times("sorting", "sort", {"numbers": sweep()}, {"n = 100": sweep()[100]}, "")
    names = {path.name for path in (root / "bench/results").iterdir()}
    assert names == {"sorting.gpu.json", "sorting.gpu.svg"}
    assert page.read_text() == MARKS
    harness.publish("sorting", {}, ["sort"], [["1 ms"]], "", "", timed_on="gpu")
    assert (root / "bench/results/sorting.json").exists()
    assert "| 1 ms |" in page.read_text()
    assert "on an Example GPU with jax" in page.read_text()


@pytest.mark.parametrize("panels", [1, 2])
def test_pictures_have_every_line_and_name_it_once(panels: int) -> None:
    figure = pictures.draw({f"numbers {i}": sweep() for i in range(panels)})
    axes = [a for a in figure.axes if a.lines]
    assert [a.get_xlabel() for a in axes] == [f"numbers {i}" for i in range(panels)]
    lines: dict[str, Any] = {str(line.get_label()): line for line in axes[-1].lines}
    assert_allclose(lines["limit"].get_ydata(), [2e-7, 2e-6])
    legend: Any = figure.legends[0] if figure.legends else figure.axes[-1].get_legend()
    names = [label.get_text() for label in legend.get_texts()]
    assert names == list(lines) == ["jaxmetrics", "a peer", "limit"]


def test_the_same_figures_make_the_same_picture(tmp_path: Path) -> None:
    paths = [tmp_path / name / "sorting.svg" for name in ("once", "again")]
    for path in paths:
        path.parent.mkdir()
        pictures.save(pictures.draw({"numbers": sweep()}), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("name", calls.CALLS)
def test_first_calls_run_on_the_host(name: str) -> None:
    """And the peers that the tests have return the same, so that the times are of one job."""
    call, data = calls.CALLS[name], calls.data_for(calls.HOST)
    ours = call.ours(jm, data)
    leaves = jax.tree.leaves(ours)
    assert leaves
    assert not any(isinstance(x, jax.Array) for x in leaves)
    for side in {calls.SKLEARN, calls.SCIPY} & set(call.peers if call.same else ()):
        theirs = call.peers[side](importlib.import_module(calls.MODULES[side]), data)
        for a, b in zip(leaves, jax.tree.leaves(theirs), strict=True):
            assert_allclose(a, b, rtol=1e-4)


def test_first_calls_are_timed_in_fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_call, "PROCESSES", 1)
    monkeypatch.setattr(first_call, "OURS", (calls.HOST,))
    monkeypatch.setitem(calls.CALLS, "accuracy", calls.CALLS["accuracy"]._replace(peers={}))
    times, failures = first_call.measure(["accuracy"])
    assert not failures
    (process,) = times["accuracy"][calls.HOST]
    assert process["import"] > process["first"] > 0  # a hundred times as long
    assert process["second"] > 0
    assert process["programs, first"] == process["programs, second"] == 0


def test_bars_and_failures_of_first_calls_are_seen() -> None:
    def sides(*firsts: float) -> first_call.Sides:
        processes = [{"import": 1.0, "first": s, "second": s / 2} for s in firsts]
        return {side: [] for side in calls.MODULES} | {calls.HOST: processes}

    assert first_call.verdict("accuracy", sides(5e-4, 6e-4, 2e-3)) == "1: pass"
    assert first_call.verdict("accuracy", sides(5e-4, 2e-3, 2e-3)) == "1: **fail**"
    assert first_call.verdict("accuracy", sides()) == "1: **fail**"
    assert first_call.verdict("roc_curve", sides(5e-4)) == ""
    imports, row = first_call.rows({"accuracy": sides(5e-4, 6e-4, 2e-3)})
    assert imports[2] == "1000 (1000-1000)"
    assert row == ["accuracy", "1: pass", "0.6 (0.5-2), 0.3", *[""] * 5]
    assert first_call.fresh("no call", calls.HOST) == "KeyError: 'no call'"


def test_coverage_is_that_of_the_binomial_distribution() -> None:
    """Wilson's of 2000 test sets against the exact sum over all numbers of right examples."""
    design = coverage.Design(50, 2, "balanced", 0.8)
    figures = coverage.measure(design, {"Wilson": coverage.SINGLE["Wilson"]})["accuracy"]["Wilson"]
    right = np.arange(51)
    weight = stats.binom.pmf(right, 50, 0.8)
    low, high = ends(jm.proportion_interval(right, 50))
    for measured, exact in (
        (figures.covers, weight @ ((low <= 0.8) & (high >= 0.8))),
        (figures.above, weight @ (low > 0.8)),
        (figures.below, weight @ (high < 0.8)),
    ):
        assert abs(measured - exact) < 4 * np.sqrt(exact * (1 - exact) / 2000)
    assert abs(figures.width - weight @ (high - low)) < 0.002
    assert (figures.undefined, figures.zero_width, figures.data_sets) == (0, 0, 2000)


def test_rounding_does_not_make_a_design_sparse() -> None:
    least = [np.nextafter(5, 0), 5, 4.99]
    assert [coverage.is_sparse(SimpleNamespace(rarest=x)) for x in least] == [False, False, True]


def test_intervals_that_are_missing_or_have_no_width_are_counted_apart() -> None:
    low, high = np.array([[np.nan, 0.1, 0.3, 0.4, 0.5], [np.nan, 0.2, 0.6, 0.6, 0.5]])
    figures = coverage.figures_of(jm.Estimate(high, low, high, 0, 0), 0.5)
    assert_allclose(figures, [3 / 4, 0, 1 / 4, 0.15, 1 / 5, 1 / 4, 5])


def test_designs_of_coverage_are_what_they_say() -> None:
    for design in coverage.single_designs():
        cells, prior = design.cells, coverage.class_shares(design.shares, design.num_classes)
        assert_allclose(cells.sum(1), prior)
        if design.recall == "chance":
            assert abs(design.truth["cohen_kappa"]) < 1e-12
        else:
            recalls = cells.diagonal() / prior
            assert np.isclose(recalls.mean(), design.recall)
    for paired in coverage.paired_designs():
        assert paired.cells.min() >= 0
        truth = list(paired.truth.values())
        assert np.allclose(truth, 0) if paired.effect == "null" else min(truth) > 0
        alone = coverage.Design(*paired[:4])
        assert_allclose(paired.cells.sum(2), alone.cells)
    assert_allclose(coverage.class_shares("99:1", 2), [0.99, 0.01])
    for designs in (coverage.single_designs(), coverage.paired_designs()):
        assert sum(d.half == "choose" for d in designs) == len(designs) / 2


def test_intervals_of_coverage_are_those_of_reports_and_of_papers() -> None:
    counts = coverage.draw(coverage.Design(50, 3, "Zipf", 0.8), 5)
    found = coverage.SINGLE["likelihood"].function(counts, 0.95)
    wilson = coverage.by_wilson(counts, 0.95)["accuracy"]
    for i, matrix in enumerate(counts):
        overall = jm.Report.from_counts(matrix).overall
        for name in coverage.METRICS:
            ends = [overall[name].low, overall[name].high]
            assert_allclose([found[name].low[i], found[name].high[i]], ends, atol=1e-5)
        expected = jm.proportion_interval(np.trace(matrix), matrix.sum())
        assert (wilson.low[i], wilson.high[i]) == pytest.approx((expected.low, expected.high))
    # Limits of 9 of 10 and 5 of 5 right under Jeffreys' prior, squared and added.
    mover = coverage.by_mover(np.array([[[9, 1], [0, 5]]]), 0.95)["balanced_accuracy"]
    down = [0.9 - stats.beta.ppf(0.025, 9.5, 1.5), 1 - stats.beta.ppf(0.025, 5.5, 0.5)]
    up = [stats.beta.ppf(0.975, 9.5, 1.5) - 0.9, 0]
    assert_allclose(mover.low, 0.95 - np.linalg.norm(down) / 2)
    assert_allclose(mover.high, 0.95 + np.linalg.norm(up) / 2)


def test_figures_of_contenders_that_are_not_asked_for_stay(
    monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    page = guide_page(root, "<!-- bench:coverage -->\n<!-- /bench -->\n")
    some = [coverage.Design(n, 2, "balanced", r) for n in (50, 100) for r in (0.8, 0.95)]
    monkeypatch.setitem(coverage.GRIDS, "single", (lambda: some, coverage.SINGLE))
    for method in ("Wilson", "MOVER"):
        coverage.main(["--grids", "single", "--methods", method])
    path = root / "bench" / "results" / "coverage.json"
    cell = json.loads(path.read_text())["results"]["single"]["50 2 balanced 0.8"]
    assert list(cell["accuracy"]) == ["Wilson"]
    assert list(cell["balanced_accuracy"]) == ["MOVER"]
    assert "| accuracy | Wilson |  | 9" in page.read_text()
    assert "| balanced_accuracy | MOVER |" in page.read_text()


# Four data sets of two values, which are 0.2 and 0.5; of one data set a value has no interval.
LOW = np.array([[0.1, 0.4], [0.3, 0.6], [0.1, np.nan], [0.3, 0.1]])


def test_what_holds_at_once_is_missed_where_any_part_is() -> None:
    high = np.array([[0.3, 0.6], [0.4, 0.7], [0.3, np.nan], [0.4, 0.2]])
    figures = joint_coverage.figures_of(LOW, high, np.array([0.2, 0.5]))
    assert_allclose(figures, [2 / 4, 2 / 4, 1 / 4, 1 / 7, 1 / 8, 0, 4])
    (row,) = joint_coverage.rows_of({"part": {"a": {"x": figures}, "b": {"x": (1, *figures[1:])}}})
    assert row == ["part", "x", "2", "50.0-100.0", "50.0", "25.0", "0.143"]


def test_populations_of_joint_coverage_have_the_truth_that_they_are_held_to() -> None:
    """The frequencies rise, which is what the band asks of them."""
    name, of_groups = next(joint_coverage.groups(50, gaps=[0.3]))
    assert name == "2 groups of 100, accuracy differs by 0.3"
    assert min(x.covers for x in of_groups.values()) > 0.8
    for curve in joint_coverage.CURVES:
        draw, frequency = joint_coverage.CURVES[curve]
        prob = np.sort(draw(np.random.default_rng(0), 2000))
        true = frequency(prob)
        assert (np.diff(true) >= -1e-12).all(), curve
        assert true.min() >= 0
        assert true.max() <= 1


def test_judges_agree_with_the_truth_as_they_say() -> None:
    for k, kappa in itertools.product(judged.CLASSES, judged.KAPPAS):
        cells = judged.Design(k, 0.85, kappa, 50, 10).cells
        assert cells.sum() == pytest.approx(1)
        assert jm.cohen_kappa(cells.sum((2, 3))) == pytest.approx(kappa, abs=1e-12)
        pairs = coverage.PairedDesign(50, k, judged.CLASSES[k], 0.85, 0.5, "worse").cells
        assert_allclose(cells.sum(1), pairs, atol=1e-12)
    labelled, others = judged.samples(judged.Design(2, 0.85, 0.8, 50, 10), 3)
    assert (labelled.sum((1, 2, 3, 4)) == 50).all()
    assert (others.sum((1, 2, 3)) == 500).all()
    assert labelled.shape == (3, 2, 2, 2, 2)


def test_sizes_that_are_not_asked_for_stay(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = guide_page(root, "<!-- bench:judged -->\n<!-- /bench -->\n")
    asked = []

    def measure(design: judged.Design, size: int) -> dict[str, list[float]]:
        asked.append((design.n, size))
        return {"accuracy": [design.n / 2000, 0, 0, 1, 0, 1]}

    monkeypatch.setattr(judged, "measure", measure)
    for n in ("50", "20"):
        judged.main(["--sizes", n])
    assert set(asked) == {(50, 2000), (20, 500)}
    stored = json.loads((root / "bench/results/judged.json").read_text("utf-8"))["results"]
    assert len(stored) == len(asked) == 96
    text = page.read_text(encoding="utf-8")
    assert "| 20 | 0 | 1.0-1.0 |" in text
    assert "| 50 | 0 | 2.5-2.5 |" in text
    judged.main(["--quick", "--sizes", "200"])
    assert asked[-1] == (200, 100)
    assert page.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("engine", tables.ENGINES)
@pytest.mark.parametrize("job", tables.JOBS)
def test_engines_count_the_same_by_hand(tmp_path: Path, engine: str, job: str) -> None:
    path = tmp_path / "table.parquet"
    tables.write(path, 1000)
    relation, by_hand = tables.ENGINES[engine]
    found = relation(by_hand(job))(str(path))
    cells = found.rows() if engine == "Polars" else found
    total = sum(cell[-1] for cell in cells)
    counted = relation(tables.ours(job))(str(path)).counts
    assert_allclose(counted.sum(), total)
    if "scores" not in job:
        by_cell = {cell[:2]: cell[2] for cell in cells}
        for cell, value in by_cell.items():
            assert_allclose(counted[cell], value)


def test_tables_are_counted_in_fresh_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "PROCESSES", 1)
    monkeypatch.setattr(tables, "ENGINES", {"DuckDB": tables.ENGINES["DuckDB"]})
    monkeypatch.setattr(tables, "JOBS", ("confusion matrix",))
    ((name, sides),) = tables.measure(1000).items()
    row = tables.row(name, sides)
    assert row[0] == "confusion matrix, DuckDB"
    assert all(float(number) > 0 for number in row[1:])


@pytest.mark.parametrize(
    ("device", "shown"),
    [([1, 1, 1], "any"), ([30, 30, 30], "300"), ([1000, 1000, 1000], "more than 1,000")],
)
def test_the_device_is_faster_from_where_it_crosses_the_host(
    device: list[float], shown: str
) -> None:
    found = {
        n: {crossing.HOST: {"median": n / 10}, crossing.DEVICE: {"median": ours}}
        for n, ours in zip((11, 100, 1000), device, strict=True)
    }
    assert crossing.crossing(found, crossing.DEVICE) == shown


COMPILED = {"leaderboards", "leaderboards of clusters", "random leaderboards", "streams", "drift"}
SLOW = {"gates", "reports", "reports of groups", *COMPILED}


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in studies.STUDIES]
)
def test_every_study_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four data sets of the first design, on the host, which compiles nothing."""
    study = studies.STUDIES[name]
    for module in (labels, studies.study):
        monkeypatch.setattr(module, "on_device", np.asarray)
    designs: Any = [(100, 10, 2, 0.9)] if name == "reports of groups" else study.designs[:1]
    monkeypatch.setitem(studies.STUDIES, name, study._replace(designs=designs))
    found = simulations.simulate(name, 4)
    assert found
    for designs in found.values():
        for figures in designs.values():
            if isinstance(figures, list) and len(figures) == len(simulations.Intervals._fields):
                covers, above, below, *_, undefined, data_sets = figures
                assert undefined == 1 or 0 <= 1 - covers <= above + below + 1e-3 <= 2
                assert data_sets == 4
    stored = json.loads(json.dumps({name: found}))
    assert sum(len(rows(stored)) for _, rows in simulations.TABLES.values()) >= len(found)


def test_ranks_and_tiers_are_wrong_where_they_contradict_the_truth() -> None:
    class Board(NamedTuple):
        rank_low: np.ndarray
        rank_high: np.ndarray
        tiers: np.ndarray

    true = np.array([[0.9, 0.8, 0.8]] * 5)
    low = [[1, 1, 1], [1, 2, 2], [2, 1, 1], [1, 2, 3], [1, 1, 1]]
    high = [[3, 3, 3], [1, 3, 3], [3, 2, 3], [1, 2, 3], [3, 3, 3]]
    tiers = [[1, 1, 1], [1, 2, 2], [2, 1, 1], [1, 2, 3], [1, 1, 2]]
    found = statements.is_wrong(Board(*map(np.array, (low, high, tiers))), true)
    # Of the last, the third is rightly below the first.
    assert found.tolist() == [False, False, True, True, False]


def guide_text() -> str:
    return (harness.ROOT / "notebooks" / "intervals.md").read_text(encoding="utf-8")


def test_every_function_with_a_coverage_in_the_guide_is_simulated() -> None:
    section = guide_text().split("| Data | Function | Coverage")[1].split("\n\n")[0]
    functions = [row.split("|")[2] for row in section.split("\n")[2:]]
    named = set(re.findall(r"`(\w+)", " ".join(functions)))
    named = {name for name in named if callable(getattr(jm, name, None))}
    assert len(named) >= 15
    simulated = "\n".join(
        (harness.ROOT / "bench" / "results" / f"{name}.json").read_text(encoding="utf-8")
        for name in ("simulations", "proportions")
    )
    missing = {
        name for name in named if f"`{name}" not in simulated and f"{name}(" not in simulated
    }
    assert missing == {"difference"}  # in the grid of `bench.coverage`


def test_simulated_tables_of_the_guide_are_those_of_the_stored_figures() -> None:
    stored = json.loads((harness.ROOT / "bench/results/simulations.json").read_text("utf-8"))
    assert set(stored["results"]) == set(studies.STUDIES)
    for mark, (headings, rows) in simulations.TABLES.items():
        table = harness.table(headings.split("; "), rows(stored["results"]))
        assert (
            f"<!-- bench:{mark} -->\n\n{table}\n\nThe command `python -m bench sim" in guide_text()
        )
    for name, script in {"proportions": proportions, "constants": constants}.items():
        stored = json.loads((harness.ROOT / f"bench/results/{name}.json").read_text("utf-8"))
        table = harness.table(script.HEADINGS, script.rows_of(stored["results"]))
        assert f"<!-- bench:{name} -->\n\n{table}\n" in guide_text()


def test_figures_of_simulations_are_seen_at_once_where_an_interval_is_too_wide() -> None:
    value = np.array([-1.0, 0.0, 1.0, 0.0])
    found = jm.Estimate(value, value - 3, value + 3, 0 * value, 0 * value)
    figures: Any = simulations.figures_of((found, 0.0))
    ratio = 6 / (2 * simulations.Z * np.std(value))
    assert_allclose(figures, [1, 0, 0, ratio, 0, 4])
    pairs = jm.Estimate(LOW + 0.1, LOW, LOW + 0.2, 0 * LOW, 0 * LOW)
    figures = simulations.figures_of((pairs, np.array([0.2, 0.5])))
    assert_allclose(np.delete(figures, 3), [1 / 3, 2 / 3, 1 / 3, 1 / 4, 4])
    assert simulations.figures_of(np.array([True, False, False, False])) == (0.25, 4)
    assert simulations.figures_of(0.09) == (0.09, 0)


def test_rows_that_are_not_asked_for_stay(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = [f"<!-- bench:{mark} -->\n<!-- /bench -->\n" for mark in simulations.TABLES]
    page = guide_page(root, "".join(marks))
    monkeypatch.setattr(
        simulations, "run", lambda names, of, quick: {x: simulations.simulate(x, 20) for x in names}
    )
    for name in ("attempts", "calibration errors"):
        simulations.main(["--rows", name])
    stored = json.loads((root / "bench/results/simulations.json").read_text("utf-8"))
    assert list(stored["results"]) == ["attempts", "calibration errors"]
    text = page.read_text(encoding="utf-8")
    assert "| `mean_interval(bounds=)` of `pass_at_k` | 30 to 300 items" in text
    assert "; mean with `debiased=True` 0." in text
    simulations.main(["--quick", "--rows", "means"])
    assert page.read_text(encoding="utf-8") == text


def test_exact_coverage_is_that_of_sums_over_all_numbers_of_mistakes() -> None:
    n = 20
    k = np.arange(n + 1)
    low, high = ends(jm.proportion_interval(k, n))
    p = np.linspace(1e-4, 1 - 1e-4, 20_001)[:, None]
    pmf = stats.binom.pmf(k, n, p)
    covers = (pmf * ((low <= p) & (p <= high))).sum(-1)
    found = proportions.exact(low, high)
    assert found["covers"] <= covers.min() < found["covers"] + 2e-3
    assert min(found["p"], 1 - found["p"]) * n == pytest.approx(0.178, abs=0.002)
    one_side = np.maximum((pmf * (low > p)).sum(-1), (pmf * (high < p)).sum(-1)).max()
    assert found["side"] == pytest.approx(one_side, abs=2e-3)
    some = (p >= 1 / n) & (p <= 1 - 1 / n)
    least = covers[some[:, 0]].min()
    assert proportions.exact(low, high, fewest=1.0)["covers"] == pytest.approx(least, abs=2e-3)


def test_populations_have_the_correlations_and_the_truth_that_they_say() -> None:
    rng, clusters = np.random.default_rng(0), populations.clusters_of(400, 6, 5)
    sizes = np.bincount(clusters)
    assert sizes[-1] == 5 * sizes[0]
    a, b = populations.systems(rng, 2, (200, len(clusters)), 0.6, clusters, 0.3).swapaxes(0, 1)
    first = np.append(0, sizes.cumsum()[:-1])
    for x, y, expected in (
        (a, b, 0.6),
        (a[:, first], a[:, first + 1], 0.3),
        (a[:, first], b[:, first + 1], 0.6 * 0.3),
        (a[:, first[1:]], a[:, first[:-1]], 0.0),
    ):
        assert np.corrcoef(x.ravel(), y.ravel())[0, 1] == pytest.approx(expected, abs=0.02)
    assert a.std() == pytest.approx(1, abs=0.02)
    for kind in ("0/1", "grades", "beta"):
        assert populations.values(kind, 0.85).mean() == pytest.approx(0.85, abs=1e-3)
    assert populations.scores(0.2, 0.9).area == pytest.approx(0.9, abs=1e-4)
    assert populations.scores(0.2, 0.9, "exponential").area == pytest.approx(0.9, abs=1e-3)
    prior, predictions = coverage.class_shares("Zipf", 3), np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    y, pred = populations.labels(prior, predictions, *rng.standard_normal((2, 200_000)))
    cells = jm.confusion_matrix(y, pred, num_classes=3) / y.size
    assert_allclose(cells, prior[:, None] * predictions, atol=0.005)


def test_constants_are_found_in_every_module_that_uses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from jaxmetrics.intervals import means, tilting

    for module in list(sys.modules.values()):
        if module.__name__.startswith("jaxmetrics") and "ADDED" in vars(module):
            monkeypatch.setattr(module, "ADDED", tilting.ADDED)  # is undone after the test
    assert constants.patch(constants.CONSTANTS[0], 2.0) == pytest.approx(1 / 3)
    assert tilting.ADDED == vars(means)["ADDED"] == pytest.approx(2 / 3)
    for constant in constants.CONSTANTS:
        module = importlib.import_module(constant.module)
        assert isinstance(getattr(module, constant.name), int | float)
        assert set(constant.lines) <= set(studies.STUDIES)


def test_options_are_handed_to_a_single_script(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(proportions, "main", seen.append)
    command.main(["proportions", "--quick"])
    assert seen == [["--quick"]]
    with pytest.raises(SystemExit, match="single script"):
        command.main(["proportions", "judged", "--quick"])
    assert not {"studies", "populations"} & set(command.SCRIPTS)
