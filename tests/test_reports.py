"""Reports from labels and from counts."""

import csv
import html
import io
import json
import math
import re
import time
import tracemalloc
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.reports import pages
from jaxmetrics.reports.contents import ClassValues, Findings, Outline
from jaxmetrics.reports.formats import FORMATS, TabularReport
from jaxmetrics.reports.overall_values import Evidence, accuracy_gain
from jaxmetrics.reports.prevalences import report_at_prevalence
from jaxmetrics.reports.probabilities import area_values, probability_sums
from jaxmetrics.reports.statistics_found import findings_of
from jaxmetrics.reports.values import exactly

approx = pytest.approx
TRUE = ["ant", "bee", "bee", "cow", "ant", "bee", "cow", "cow"]
PRED = ["ant", "bee", "cow", "cow", "bee", "bee", "cow", "ant"]
of_counts = jm.Report.from_counts
METRICS: dict[str, Any] = {
    "balanced_accuracy": jm.balanced_accuracy,
    "macro_f1": jm.macro(jm.f1),
    "weighted_f1": jm.weighted(jm.f1),
    "matthews_corrcoef": jm.matthews_corrcoef,
    "cohen_kappa": jm.cohen_kappa,
}
PER_CLASS: dict[str, Any] = {
    "precision": jm.precision,
    "recall": jm.recall,
    "specificity": jm.specificity,
    "f1": jm.f1,
}


def numbers_of(x: Any) -> np.ndarray:
    """The value and the ends of a reported value or of an estimate."""
    return np.array([x.value, x.low, x.high], float)


def alike(found: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    assert_allclose(numbers_of(found), numbers_of(expected), rtol=rtol, atol=atol)


def words_of(text: str) -> str:
    return " ".join(html.unescape(text).split())


def probabilities(n: int, k: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True classes, and probabilities that know them a little."""
    rng = np.random.default_rng(seed)
    y, prob = rng.integers(0, k, n), rng.dirichlet(np.ones(k), n)
    prob[np.arange(n), y] += 0.3
    return y, prob / prob.sum(1, keepdims=True)


def test_report_equals_sklearn() -> None:
    report = jm.report(TRUE, PRED)
    assert report.class_names == ("ant", "bee", "cow")
    assert_array_equal(report.counts, sk.confusion_matrix(TRUE, PRED))
    theirs = sk.classification_report(TRUE, PRED, output_dict=True)
    for i, name in enumerate(report.class_names):
        found = {key: report[key][name].value for key in ("precision", "recall", "f1")}
        found |= {"f1-score": found.pop("f1"), "support": report.support[i]}
        assert found == approx(theirs[name])
    expected = {
        "accuracy": sk.accuracy_score(TRUE, PRED),
        "balanced_accuracy": sk.balanced_accuracy_score(TRUE, PRED),
        "balanced_accuracy_posterior": (1.5 / 3 + 2.5 / 4 + 2.5 / 4) / 3,
        "macro_f1": theirs["macro avg"]["f1-score"],
        "micro_f1": sk.f1_score(TRUE, PRED, average="micro"),
        "weighted_f1": theirs["weighted avg"]["f1-score"],
        "matthews_corrcoef": sk.matthews_corrcoef(TRUE, PRED),
        "cohen_kappa": sk.cohen_kappa_score(TRUE, PRED),
        "no_information_rate": 3 / 8,
        "accuracy_gain": 5 / 8 - 3 / 8,
    }
    assert [*report.overall] == [*expected]
    assert {name: x.value for name, x in report.overall.items()} == approx(expected)


Y_MANY = np.random.default_rng(3).integers(0, 3, 300)
IDS = np.where(np.arange(300) % 4 == 0, (Y_MANY + 1) % 3, Y_MANY)
IDS[5::9], IDS[7::31] = 3, 4  # invalid
NAMES_MANY = np.array(["ant", "bee", "cow", "?", ""])
OF_IDS: dict[str, Any] = {"class_names": NAMES_MANY, "invalid": ["?", ""]}
INVALID: list[tuple[Any, ...]] = [
    (NAMES_MANY[Y_MANY], NAMES_MANY[IDS], {"invalid": ["?", ""]}),
    (NAMES_MANY[Y_MANY], NAMES_MANY[np.minimum(IDS, 3)], {"invalid": "?"}),
    (Y_MANY, np.where(IDS < 3, IDS, -1), {"invalid": -1}),
    (Y_MANY, IDS, {"invalid": (3, 4, 9)}),  # the last one never occurs
    (Y_MANY, IDS, OF_IDS),
]


@pytest.mark.parametrize(("true", "pred", "options"), INVALID)
def test_invalid_predictions_are_wrong_and_no_class(true: Any, pred: Any, options: Any) -> None:
    """As scikit-learn with `labels=` the true classes."""
    report, classes = jm.report(true, pred, **options), np.unique(true)
    expected = {
        "accuracy": sk.accuracy_score(true, pred),
        "balanced_accuracy": sk.recall_score(true, pred, labels=classes, average="macro"),
        "matthews_corrcoef": sk.matthews_corrcoef(true, pred),
        "cohen_kappa": sk.cohen_kappa_score(true, pred),
        "accuracy_of_valid": (true == pred)[IDS < 3].mean(),
        "valid_rate": (IDS < 3).mean(),
    }
    for average in ("macro", "micro", "weighted"):
        expected[f"{average}_f1"] = sk.f1_score(true, pred, labels=classes, average=average)
    assert {name: report[name].value for name in expected} == approx(expected)
    rates = sk.precision_recall_fscore_support(true, pred, labels=classes)
    for name, theirs in zip(("precision", "recall", "f1"), rates, strict=False):
        assert [x.value for x in report[name].values()] == approx(theirs)
    assert_array_equal(report.support, rates[3])
    assert not report.counts[3:].any()
    content = report.to_dict()
    assert (content["num_invalid"], len(content["classes"])) == ((IDS > 2).sum(), 3)
    assert f"{(IDS > 2).sum()} invalid predictions (14 %), 3 classes" in report.to_text()
    assert "invalid predictions (14 %), 3 classes." in report.to_html()
    macro_f1 = jm.macro(jm.f1, classes=[0, 1, 2])
    alike(report["macro_f1"], jm.interval(macro_f1, report.counts))
    valid = jm.proportion_interval((IDS < 3).sum(), 300, method="likelihood")
    alike(report["valid_rate"], valid)
    perfect = jm.comparison_report(true, pred, true, **options)["macro_f1"]
    gap = jm.compare_predictions(macro_f1, Y_MANY, IDS, Y_MANY, num_classes=5)
    alike(perfect.difference, gap.difference)
    alike(perfect.a, report["macro_f1"])


def test_invalid_predictions_of_reports_of_all_kinds() -> None:
    """Values of groups and of populations; intervals of clusters and weights; probabilities."""
    patients, weights = np.arange(300) // 3, 1.0 + np.arange(300) % 2
    table: dict[str, Any] = {"num_classes": 5}
    counts, macro_f1 = jm.confusion_matrix(Y_MANY, IDS, **table), jm.macro(jm.f1, classes=range(3))
    clustered = jm.report(Y_MANY, IDS, clusters=patients, **OF_IDS)
    tables = jm.confusion_matrix(Y_MANY, IDS, groups=patients, **table)
    alike(clustered["macro_f1"], jm.interval(macro_f1, tables, cluster_axis=-3))
    weighted = jm.report(Y_MANY, IDS, sample_weight=weights, **OF_IDS)
    sums, squares = (
        jm.confusion_matrix(Y_MANY, IDS, sample_weight=w, **table) for w in (weights, weights**2)
    )
    alike(weighted["macro_f1"], jm.interval(macro_f1, sums, squares=squares))
    assert weighted.to_dict()["num_invalid"] == weights[IDS > 2].sum()
    groups = jm.report(Y_MANY, IDS, groups=patients % 2, **OF_IDS).groups
    for name, group in groups.items():
        rows = patients % 2 == int(name)
        assert group.to_dict() == jm.report(Y_MANY[rows], IDS[rows], **OF_IDS).to_dict()
    shares = [0.2, 0.3, 0.5]
    moved = report_at_prevalence(
        jm.report(Y_MANY, IDS, **OF_IDS), dict(zip(NAMES_MANY, shares, strict=False))
    )
    metric = jm.at_prevalence(macro_f1, [*shares, 0, 0])
    alike(moved["macro_f1"], jm.interval(metric, counts, stratified=True))
    order = [3, 0, 4, 2, 1]
    sorted_elsewhere = of_counts(
        counts[order][:, order], class_names=[*NAMES_MANY[order]], invalid=["?", ""]
    )
    alike(sorted_elsewhere["macro_f1"], jm.report(Y_MANY, IDS, **OF_IDS)["macro_f1"])
    prob = np.eye(3)[Y_MANY] / 2 + 1 / 6
    likely = jm.report(Y_MANY, IDS, y_prob=prob, **OF_IDS)
    alike(likely["log_loss"], jm.report(Y_MANY, Y_MANY, y_prob=prob)["log_loss"])
    kinds = likely.mistakes(20)
    assert {x.pred for x in kinds} == {*NAMES_MANY}
    assert sum(x.times for x in kinds) == (IDS != Y_MANY).sum()
    none = jm.report([0, 1, 1], [-1, -1, -1], invalid=-1)
    assert (none["accuracy"].value, none["valid_rate"].value) == (0, 0)
    assert math.isnan(none["accuracy_of_valid"].value)


def test_missing_answers_are_invalid() -> None:
    true: list[Any] = ["cat", "dog", "dog", "cat"] * 9
    pred: list[Any] = ["cat", None, math.nan, ""] * 9
    report = jm.report(true, pred, invalid="")
    assert (report["accuracy"].value, report["valid_rate"].value) == (0.25, 0.25)
    with pytest.raises(ValueError, match=r"y_true\[1\] is None.* Are y_true and y_pred swapped\?"):
        jm.report(pred, true, invalid="")


def test_misspelled_invalid_labels_are_named() -> None:
    true, pred = ["cat", "dog", "dog", "cat"] * 9, ["cat", "??", "dog", "?"] * 9
    with pytest.warns(UserWarning, match=r"no prediction is '\? ', .* invalid; '\?', '\?\?' is"):
        jm.report(true, pred, invalid="? ")
    with pytest.warns(UserWarning, match=r"no prediction is '!', 2, 3, which is .*; '4' is"):
        jm.comparison_report([0, 1] * 9, [0, 4] * 9, [0, 1] * 9, invalid=["!", 2, 3])


def test_nothing_is_compiled_for_data_of_the_host(programs: list[str]) -> None:
    """Intervals by formulas, by draws where nothing went wrong, of probabilities, differences."""
    y, prob = probabilities(50)
    jm.report(y, prob.argmax(1), y_prob=prob, sample_weight=prob[:, 0])
    of_counts(np.diag([9, 8, 7]), soft_counts=np.diag([9, 8, 7]))
    jm.comparison_report(y, prob.argmax(1), y)
    jm.comparison_report(y, y, y)
    assert programs == []


def test_arrays_of_jax_are_taken_too() -> None:
    """A report is computed on the host, whatever it is given."""
    y, prob = probabilities(50)
    prob, weights = prob.astype(np.float32), np.arange(50) % 3
    ours, theirs = (
        jm.report(a, b, y_prob=c, sample_weight=d)
        for a, b, c, d in (
            [y, prob.argmax(1), prob, weights],
            map(jnp.asarray, (y, prob.argmax(1), prob, weights)),
        )
    )
    assert theirs.to_dict() == ours.to_dict()
    counts = ours.counts
    assert of_counts(jnp.asarray(counts)).to_dict() == of_counts(counts).to_dict()


def test_every_figure_but_a_maximum_has_an_interval() -> None:
    report = jm.report(TRUE, PRED, level=0.9)
    low, high = jm.balanced_accuracy_posterior(report.counts, prior=0.5).interval(0.9)
    posterior = report["balanced_accuracy_posterior"]
    assert (posterior.low, posterior.high, posterior.method) == (low, high, "posterior")
    assert report["no_information_rate"].method is None  # the largest of several shares
    for name, metric in {"accuracy": jm.accuracy, "micro_f1": jm.accuracy, **METRICS}.items():
        alike(report[name], jm.interval(metric, report.counts, level=0.9))
        assert report[name].method == "likelihood"
    assert {x.method for column in report.per_class.values() for x in column} == {"likelihood"}


def test_a_value_without_an_interval_is_written_alone() -> None:
    report = jm.report(TRUE, PRED)
    assert report.to_dict()["overall"]["no_information_rate"] == {"value": 0.375}
    for text, expected in (
        (report.to_text(), "\nno information rate  0.375\n"),
        (report.to_markdown(), "\n| no information rate | 0.375 |  |\n"),
        (report.to_csv(), "\nno_information_rate,,0.375,,,,\n"),
        (report.to_html(), "rate</abbr></bdi></td><td>0.375 <small>–</small></td>"),
    ):
        assert expected in text


def test_a_value_that_its_prior_pulls_away_says_so() -> None:
    """Ten classes, ten examples of each, all right but one: 0.99 is outside of 0.86 to 0.95."""
    counts = 10 * np.eye(10, dtype=int)
    counts[0, :2] = 9, 1
    report = of_counts(counts)
    assert report["balanced_accuracy_posterior"].high < report["balanced_accuracy"].value == 0.99
    said = "pulls the interval away from the balanced accuracy of these examples, 0.990."
    for text in map(words_of, (report.to_json(), report.to_html())):
        assert "a Bayesian posterior, which lies too low if mistakes are few" in text
        assert text.count(said) == 1
    plain = jm.report(TRUE, PRED).notes["balanced_accuracy_posterior"]
    assert plain.endswith("worth half a correct and half a wrong example per class.")


def test_a_posterior_is_not_among_confidence_intervals() -> None:
    """Ten classes of 50, recalls of .99: in simulations, 60 % of the 95 % intervals cover."""
    report = of_counts(np.eye(10, dtype=int) * 49 + np.roll(np.eye(10, dtype=int), 1))
    posterior = report["balanced_accuracy_posterior"]
    y = np.tile([0, 1], 20)
    groups = jm.report(y, y, groups=np.repeat(["a", "b"], 20))
    texts = report.to_text(), repr(report), report.to_markdown(), report._repr_html_()
    for text in (*texts, groups.to_text()):
        assert "posterior" not in text
    page = report.to_html()
    assert f"{posterior.low:.3f}, {posterior.high:.3f}" not in page
    assert "The violin shows a Bayesian posterior, which lies too low if mistakes are few" in page
    assert posterior.method == "posterior"
    for text in (report.to_csv(), report.to_json(), groups.to_json()):
        assert "balanced_accuracy_posterior" in text


def test_the_verdict_is_a_paired_comparison() -> None:
    """[[237, 72], [0, 91]]: 91 are right in class 1, 72 are wrong in class 0."""
    report = of_counts([[237, 72], [0, 91]])
    gain = report["accuracy_gain"]
    alike(gain, jm.paired_difference_interval([[237, 91], [72, 0]]))
    assert gain.method == "tango"
    assert report["accuracy"].low > report["no_information_rate"].value  # so are its ends alone
    said = "is not shown to be above 0.772, the accuracy of always predicting the most frequent"
    difference = " class: the difference is 0.048 [-0.015, 0.110]."
    for text in (report.to_text(), repr(report), report.to_html(), report._repr_html_()):
        assert said + difference in " ".join(text.split())
    assert said in report.to_markdown()
    assert report.to_dict()["overall"]["accuracy_gain"]["low"] < 0
    assert "\naccuracy_gain,,0.047" in report.to_csv()
    for counts, relation in (
        ([[270, 39], [0, 91]], "is above"),
        ([[200, 109], [0, 91]], "is not"),
        ([[150, 159], [10, 81]], "is below"),
    ):
        assert relation in of_counts(counts).outline().verdict


def test_a_known_prevalence() -> None:
    """The share of the most frequent class is then an argument: it is not compared with accuracy.
    Stratified by class: of accuracy, a weighted sum of two shares, to first order.
    """
    counts, shares = [[90, 10], [20, 80]], [0.95, 0.05]
    report = report_at_prevalence(of_counts(counts), dict(zip("01", shares, strict=True)))
    accuracy = report["accuracy"]
    alike(accuracy, jm.interval(jm.at_prevalence(jm.accuracy, shares), counts, stratified=True))
    assert "accuracy_gain" not in report
    assert report.outline().verdict == f"Accuracy is {accuracy}."
    assert accuracy.value == approx(0.95 * 0.9 + 0.05 * 0.8)
    precision, recall = (report[name]["1"].value for name in ("precision", "recall"))
    assert (precision, recall) == approx((0.05 * 0.8 / (0.05 * 0.8 + 0.95 * 0.1), 0.8))
    error = math.sqrt(0.95**2 * 0.9 * 0.1 / 100 + 0.05**2 * 0.8 * 0.2 / 100)
    assert accuracy.high - accuracy.low == approx(2 * 1.96 * error, rel=0.1)


@pytest.mark.parametrize(
    ("shares", "recalls", "cluster_size", "num_clusters"),
    [
        ([0.505, 0.495], [0.02, 0.505 * 0.98 / 0.495], 1, 1000),
        ([0.8, 0.1, 0.1], [0.8, 0.8, 0.8], 1, 300),
        ([0.125] * 8, [0.125] * 8, 1, 160),
        ([0.5, 0.5], [0.5, 0.5], 6, 40),
        ([0.8, 0.2], [0.8, 0.8], 6, 40),
    ],
)
def test_verdicts_are_seldom_false(
    shares: Any, recalls: Any, cluster_size: int, num_clusters: int
) -> None:
    """1000 test sets whose accuracy truly equals the largest share: at most 2.5 % of verdicts may
    say "above", and 2.5 % "below". 4.4 % are four standard errors more. With the share as known,
    "above" was said in 7 to 12 %, and "below" in 8 to 44 %.
    """
    rng, k, size = np.random.default_rng(2), len(shares), (1000, num_clusters)
    rates = np.broadcast_to(recalls, (*size, k))
    if cluster_size > 1:
        shares, rates = (
            rng.dirichlet(4 * np.array(shares), size),
            rng.beta(4 * rates, 4 - 4 * rates),
        )
    support = rng.multinomial(cluster_size, shares, size=size)
    right, eye = rng.binomial(support, rates), np.eye(k, dtype=int)
    counts = eye * right[..., None] + np.roll(eye, 1, axis=1) * (support - right)[..., None]
    gains = [
        accuracy_gain(Evidence(x.sum(0), 0.95, clusters=x if cluster_size > 1 else None))
        for x in counts
    ]
    _, low, high = np.array([x.numbers for x in gains]).T
    assert (low > 0).mean() < 0.044
    assert (high < 0).mean() < 0.044


def test_the_calibration_error_has_an_interval_and_says_that_it_is_biased() -> None:
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(3), 2000)
    y = (np.log(prob) + rng.gumbel(size=prob.shape)).argmax(1)  # calibrated
    report = jm.report(y, prob.argmax(1), y_prob=prob)
    error = report["calibration_error"]
    alike(error, jm.top_label(jm.calibration_interval)(y, prob))
    assert error.method == "inequalities"
    assert error.low == 0 < error.value
    biased = "Calibration error: The value is biased upwards, because chance alone"
    assert biased in report.to_text()
    assert "from two inequalities" in report.to_html()


def test_no_error_seen_does_not_mean_none_to_come() -> None:
    perfect = of_counts(np.diag([9, 8, 7, 0]))
    for name in METRICS:
        figure = perfect[name]
        assert 0.5 < figure.low < 0.9
        assert figure.method == "likelihood"
        assert figure.value == figure.high == approx(1)
    one_class = of_counts([[2, 0], [0, 0]])
    assert one_class["cohen_kappa"].method is None  # undefined
    assert one_class["balanced_accuracy"].low < 0.6
    assert one_class["macro_f1"].method is None  # an average over a single class
    never_right = of_counts([[1900, 0], [100, 0]])
    assert never_right["macro_f1"].high > 0.5  # F1 of class 1 may be up to 0.05
    assert never_right["cohen_kappa"].high > 0.03


def test_text_is_readable() -> None:
    """It has the digits that its intervals need, and does not round to 1."""
    text = jm.report(TRUE, PRED).to_text()
    assert max(map(len, text.splitlines())) <= 80
    nearly = of_counts([[99_999, 1], [0, 50_000]]).to_text()
    large = of_counts([[4_200_000, 800_000], [800_000, 4_200_000]]).to_text()
    for written, parts in (
        (text, ["8 examples, 3 classes\n", "bee    3  0.667 [0.138, 0.980]  0.667 [0.138, 0.980]"]),
        (text, ["balanced accuracy    0.611", "accuracy gain        0.250 [-0."]),
        (
            nearly,
            [
                "accuracy             0.999993 [0.999967, 1.000000]",
                " 1.000000 [0.999940, 1.000000]",
            ],
        ),
        (large, ["accuracy             0.84000 [0.83977, 0.84023]  likelihood"]),
        (large, ["no information rate  0.50000\n"]),
    ):
        assert all(part in written for part in parts)


def test_a_note_names_classes_that_averages_leave_out() -> None:
    """An invalid label may be absent, and so may a class of one of two classifiers."""
    note = "Averages over classes leave out 1, 3, which no example has as its true or predicted"
    counts = np.pad([[5, 0, 1], [0, 0, 0], [2, 0, 4]], (0, 2))
    report = of_counts(counts, invalid="4")
    assert note in " ".join(report.to_text().split())
    assert note in report.to_markdown()
    assert note in report.to_html()
    assert "leave out" not in of_counts([[5, 1], [0, 0]]).to_text()
    y, names = np.array([0, 2, 0]), [*"abcd"]
    for b, absent in ([0, 2, 1], "d"), ([0, 2, 2], "b, d"):
        found = jm.comparison_report(y, y, b, class_names=names).to_text()
        assert f"leave out {absent}, which" in found


def test_integer_class_names_of_comparisons_and_invalid_labels() -> None:
    y, a, b = [-1, 1, 1], [-1, 1, -1], [1, 1, 0]
    found = jm.comparison_report(y, a, b, class_names=[1, -1, 0], invalid=0)
    assert found.class_names == ("1", "-1")
    assert_array_equal(
        found.counts, [[[1, 1, 0], [0, 1, 0], [0] * 3], [[1, 0, 1], [1, 0, 0], [0] * 3]]
    )


def test_undefined_figures() -> None:
    report = of_counts([[5, 0, 1], [0, 4, 0], [0, 0, 0]])
    ends = {"value": None, "low": 0.0, "high": 1.0, "method": "likelihood"}
    assert report.to_dict()["classes"][2]["recall"] == ends
    assert math.isnan(report["recall"]["2"].value)
    assert " - [0.000, 1.000] " in report.to_text()


@pytest.mark.parametrize(
    ("y_true", "y_pred", "names", "classes", "counts"),
    [
        # Classes that occur; negative ids are ignored.
        ([3, 7, 7, -1, -100], [3, 7, 3, 3, -100], None, "3 7", [[1, 0], [1, 1]]),
        ([0, 2, 1], [0, 2, 2], [*"abc"], "a b c", [[1, 0, 0], [0, 0, 1], [0, 0, 1]]),
        ([True, False], [True, True], None, "False True", [[0, 1], [0, 1]]),
        ([*"ny"], [*"yy"], [*"yn"], "y n", [[1, 0], [1, 0]]),
        # Integers other than 0 to K - 1 are labels; other negative labels are ignored.
        ([-1, 1, -1], [1, 1, -1], [-1, 1], "-1 1", [[1, 1], [0, 1]]),
        ([0, 1, 1], [0, 0, 1], np.array([1, 0]), "1 0", [[1, 1], [0, 1]]),
        ([3, 1, -100], [2, 1, -100], [1, 2, 3], "1 2 3", [[1, 0, 0], [0, 0, 0], [0, 1, 0]]),
    ],
)
def test_labels(y_true: Any, y_pred: Any, names: Any, classes: str, counts: Any) -> None:
    report = jm.report(np.array(y_true), np.array(y_pred), class_names=names)
    assert " ".join(report.class_names) == classes
    assert_array_equal(report.counts, counts)
    loaded = json.loads(report.to_json())
    assert loaded == report.to_dict()
    assert loaded["confusion_matrix"] == counts
    assert [x["name"] for x in loaded["classes"]] == classes.split()
    assert loaded["num_examples"] == np.sum(counts)
    ignored = len(y_true) - np.sum(counts)
    assert report.num_ignored == ignored
    assert (f" examples, {ignored} ignored" in report.to_text()) == (ignored > 0)


def test_probabilities_and_weights() -> None:
    prob = np.array([[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    options: Any = {"sample_weight": [1, 1, 2], "frequency": True}
    report = jm.report([0, 1, 1], prob.argmax(1), y_prob=prob, **options)
    surprise = -np.log([0.8, 0.6, 0.3, 0.3])  # weight 2 is the row twice
    alike(report["log_loss"], jm.mean_interval(surprise, transform="log"), 1e-5)
    gaps = abs(0.2 - 0), abs(0.6 - 1), 2 * abs(0.3 - 1)  # of class 1, each in a bin of its own
    assert {name: x.value for name, x in report.overall.items()}.items() >= {
        "accuracy": 0.5,
        "expected_accuracy": approx((0.8 + 0.6 + 2 * 0.3) / 4),
        "brier_score": approx((0.2**2 + 0.4**2 + 2 * 0.7**2) / 4),
        "calibration_error": approx(sum(gaps) / 4),
        "log_loss": approx(surprise.mean()),
    }.items()
    assert report.num_examples == 4


def test_areas_have_intervals() -> None:
    y, prob = probabilities(300)
    report = jm.report(y, prob.argmax(1), y_prob=prob)
    areas = report.per_class["roc_auc"]
    alike(report["macro_roc_auc"], jm.delong_interval(y, prob, average="macro"))
    for i, area in enumerate(areas):
        expected = jm.delong_interval(y == i, prob[:, i])
        assert area.method == "score"
        alike(area, expected)
    tied = np.round(prob[:, :2], 1) / 2
    tied = np.stack([*tied.T, 1 - tied.sum(1)], 1)
    areas = jm.report(y, tied.argmax(1), y_prob=tied).per_class["roc_auc"]
    for i in (0, 1):
        alike(areas[i], jm.delong_interval(y == i, tied[:, i]))


def test_an_area_without_a_mistake_may_have_some_to_come() -> None:
    prob = np.concatenate([np.linspace(0.01, 0.4, 12), np.linspace(0.6, 0.99, 7)])
    y_prob = np.stack([1 - prob, prob], 1)
    report = jm.report([0] * 12 + [1] * 7, 1 * (prob > 0.5), y_prob=y_prob)
    area = report["roc_auc"]["1"]
    assert report.to_text().count("ROC AUC  ") == 1  # equal for both classes
    # Wilson's lower end of N successes in N examples, 2 / N = 1/7 + 1/12.
    number = 2 / (1 / 7 + 1 / 12)
    assert area.numbers == approx((1, number / (number + 1.959964**2), 1), rel=1e-6)


def test_a_data_frame_of_counts_names_the_classes() -> None:
    frame = pd.DataFrame([[9, 1], [3, 7]], ["well", "ill"], ["well", "ill"])
    assert of_counts(frame).class_names == ("well", "ill")
    assert of_counts(frame, class_names=["no", "yes"]).class_names == ("no", "yes")
    with pytest.raises(
        ValueError, match=r"counts\.T\.to_numpy\(\) if the rows are the predictions"
    ):
        of_counts(frame.set_axis(["T-", "T+"]))


@pytest.mark.slow
def test_intervals_of_areas_cover() -> None:
    """3000 test sets of each kind: at least 93 %, of which the standard error is half a point."""
    rng = np.random.default_rng(0)
    for m, n, shift in ((2, 30, 0.742), (5, 50, 1.812), (10, 30, 2.66), (30, 30, 4.37)):
        truth, covered = stats.norm.cdf(shift / np.sqrt(2)), 0
        for _ in range(3000):
            scores = np.concatenate([rng.normal(size=n), shift + rng.normal(size=m)])
            histogram = np.stack(
                [
                    np.histogram(part, np.linspace(-6, 11, 4097))[0]
                    for part in (scores[:n], scores[n:])
                ]
            )
            (area,) = area_values(histogram[None], 0.95)
            covered += area.low <= truth <= area.high
        assert covered / 3000 > 0.93, (m, n, shift)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_probabilities(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    y, prob = rng.integers(-1, 7, 900), rng.dirichlet(np.full(7, 0.3), 900)
    prob[y < 0] = np.nan
    options: Any = {"sample_weight": rng.integers(0, 3, 900) if weighted else None}
    found: Any = jm.report(y, np.nan_to_num(prob).argmax(1), y_prob=prob, **options)
    kept = np.where(y[:, None] < 0, 1 / 7, prob)
    soft = jm.soft_confusion_matrix(y, kept, **options)
    assert found["expected_accuracy"].value == approx(soft.trace() / soft.sum(), rel=1e-9)
    assert_allclose(found.calibration_bins, jm.top_label(jm.calibration_bins)(y, kept, **options))
    for c in range(7):
        log_odds = np.log(kept[:, c]) - np.log(np.delete(kept, c, 1).sum(1))
        is_class = np.where(y < 0, -1, y == c)
        expected = jm.score_histogram(is_class, log_odds, scale="logit", **options)
        # A score at an edge may fall to its other side by rounding.
        assert np.abs(found.score_histogram[c] - expected).sum() <= 4
    assert found["log_loss"].value == approx(jm.log_loss(y, kept, **options), rel=1e-9)


def test_many_probabilities_are_summed_in_little_memory() -> None:
    prob = np.full((40_000, 200), 1 / 200, np.float32)
    tracemalloc.start()
    try:
        probability_sums(np.arange(40_000) % 200, prob, None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3e8  # all at once took 7e8


def test_saturated_probabilities_keep_their_order() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    # Of class 0; that of class 1 is 1 but for 1e-9.
    p = 1 / (1 + np.exp(20 + 3 * y + 2 * rng.normal(size=400)))
    exact = sk.roc_auc_score(y, -p)
    y_prob = np.stack([p, 1 - p], 1)
    for area in jm.report(y, y_prob.argmax(1), y_prob=y_prob)["roc_auc"].values():
        assert area.value == approx(exact, abs=2e-3)
        assert area.low < exact < area.high


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_loss_is_that_of_the_precision_given(dtype: Any) -> None:
    prob = np.array([[1e-12, 1 - 1e-12], [0.3, 0.7], [1.0, 0.0]], dtype)
    loss = jm.report([0, 1, 1], [1, 1, 0], y_prob=prob)["log_loss"].value
    assert loss == approx(sk.log_loss([0, 1, 1], prob), rel=1e-6)


def test_probabilities_of_few_digits_are_taken() -> None:
    """As `log_loss` takes them: rows of bfloat16 sum to 1 but for its rounding."""
    y, prob = probabilities(200)
    y_prob = jnp.asarray(prob, jnp.bfloat16)
    written_out = np.log(np.asarray(y_prob, float)[np.arange(200), y])
    report = jm.report(y, prob.argmax(1), y_prob=y_prob)
    assert report["log_loss"].value == approx(-written_out.mean())
    rounded = np.random.default_rng(0).dirichlet(np.ones(10), 200).round(3)
    assert jm.report(rounded.argmax(1), rounded.argmax(1), y_prob=rounded).num_examples == 200


def test_weights_of_float16_add_up_beyond_its_range() -> None:
    y, prob = probabilities(2000, 2)
    ours, theirs = (
        jm.report(
            y,
            prob.argmax(1),
            y_prob=prob,
            sample_weight=np.full(2000, 100, dtype),
            clusters=np.arange(2000) // 20,
        ).to_dict()
        for dtype in (np.float16, np.float64)
    )
    assert ours == theirs


def test_sums_of_weights_have_intervals_if_their_squares_are_known() -> None:
    counts, squares = np.array([[9.5, 1], [3, 7]]), np.array([[12.0, 1], [5, 9]])
    report = of_counts(counts)
    assert not any(x.has_interval for x in report.overall.values())
    assert not any(x.has_interval for x in report.per_class["recall"])
    assert report["accuracy"].value == jm.accuracy(counts)
    assert report["accuracy_gain"].value == approx((16.5 - 10.5) / 20.5)
    assert "pass the sums of squared weights" in str(report["balanced_accuracy"].note)
    report = of_counts(counts, squares=squares)
    alike(report["macro_f1"], jm.interval(jm.macro(jm.f1), counts, squares=squares))
    recalls = jm.interval(jm.recall, counts, squares=squares)
    shown = np.array([x.numbers for x in report["recall"].values()]).T
    assert_allclose(shown, numbers_of(recalls), atol=1e-5)
    weights, clusters = [1.5, 2.5, 1.5, 2.5] * 20, np.arange(80) // 2  # of whole sums
    report = jm.report([0, 1] * 40, [0, 1, 1, 1] * 20, clusters=clusters, sample_weight=weights)
    assert_array_equal(report.counts, [[30, 30], [0, 100]])
    assert report["macro_f1"].method == "delta"


def test_one_sample_has_one_interval() -> None:
    """Accuracy of one classifier and of a pair; of groups and `compare_groups`."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 150)
    preds = [np.where(rng.random(150) < 0.95, truth, 0) for _ in range(2)]
    found = jm.report(truth, preds[0])
    compared = jm.compare_predictions(jm.accuracy, truth, *preds)
    for x in (compared, jm.comparison_report(truth, *preds)["accuracy"]):
        alike(found["accuracy"], x.a)
    counts = jm.confusion_matrix(truth, preds[0])
    for name, metric in PER_CLASS.items():
        shown = np.array([x.numbers for x in found[name].values()]).T
        assert_allclose(shown, numbers_of(jm.interval(metric, counts)), atol=1e-5)
    # One large group, and nine small groups, of which one has three mistakes: at the corrected
    # level, Wilson's intervals "show" that they differ.
    sizes, wrong = [5000] + 9 * [15], [100] + 8 * [0] + [3]
    groups, place = np.repeat(np.arange(10), sizes), np.concatenate([np.arange(n) for n in sizes])
    pred = np.where(place < np.repeat(wrong, sizes), 1 - place % 2, place % 2)
    difference = jm.report(place % 2, pred, groups=groups).disparities["accuracy", ""]
    tables = jm.confusion_matrix(place % 2, pred, groups=groups)
    alike(difference, jm.compare_groups(jm.accuracy, tables), atol=1e-9)
    assert difference.low == 0


def test_a_report_of_clusters() -> None:
    rng = np.random.default_rng(0)
    truth, ids = rng.integers(0, 3, 600), np.repeat(np.arange(30), 20)
    good = np.repeat(rng.random(30) < 0.8, 20)
    pred = np.where(good, truth, rng.integers(0, 3, 600))
    report = jm.report(truth, pred, clusters=[f"p{i}" for i in ids])
    alone = jm.report(truth, pred)
    assert_array_equal(report.counts, alone.counts)
    assert report.to_text().startswith("600 examples in 30 clusters, 3 classes\n")
    assert report.to_dict()["num_clusters"] == 30
    assert "600 examples in 30 clusters" in report.to_html()
    tables = jm.confusion_matrix(truth, pred, groups=ids)
    alike(report["macro_f1"], jm.interval(jm.macro(jm.f1), tables, cluster_axis=0))
    right = np.diagonal(tables, axis1=1, axis2=2)
    options: Any = {"cluster_axis": 0, "method": "likelihood"}
    recall = jm.proportion_interval(right, tables.sum(2), **options)
    assert [x.low for x in report.per_class["recall"]] == recall.low.tolist()
    for name, x in report.overall.items():
        y = alone[name]
        assert math.isnan(x.low) or x.high - x.low > 2 * (y.high - y.low)


@pytest.mark.parametrize("k", [2, 3])
def test_a_report_of_probabilities_of_clusters(k: int) -> None:
    """Values as without clusters, where bins allow; intervals as of the functions for examples."""
    rng = np.random.default_rng(0)
    truth, patients = rng.integers(0, k, 600), np.repeat([f"p{i}" for i in range(30)], 20)
    good = np.repeat(rng.random(30) < 0.7, 20)
    favourite = np.where(good, truth, rng.integers(0, k, 600))
    prob = 0.6 * rng.dirichlet(np.ones(k), 600) + 0.4 * np.eye(k)[favourite]
    truth[:5] = -1
    options: Any = {"y_prob": prob, "class_names": [f"c{i}" for i in range(k)]}
    report = jm.report(truth, favourite, **options, clusters=patients)
    alone = jm.report(truth, favourite, **options)
    kept = np.arange(600) >= 5
    y, p, ids = truth[kept], prob[kept], patients[kept]
    worst, losses = k - 1, -np.log(p[np.arange(595), y])
    squares = ((p - np.eye(k)[y]) ** 2).sum(1) / 2 * worst
    of_event = (y, p[:, 1]) if k == 2 else (p.argmax(1) == y, p.max(1))
    expected: dict[str, Any] = {
        "log_loss": jm.mean_interval(losses, clusters=ids, transform="log"),
        "brier_score": jm.mean_interval(squares, clusters=ids, bounds=(0, worst)),
        "calibration_error": jm.calibration_interval(*of_event, clusters=ids),
    }
    for name, estimate in expected.items():
        alike(report[name], estimate)
    for i, area in enumerate(report.per_class["roc_auc"]):
        log_odds = np.log(p[:, i]) - np.log1p(-p[:, i])
        alike(area, jm.delong_interval(y == i, log_odds, clusters=ids))
    if k > 2:
        alike(report["macro_roc_auc"], jm.delong_interval(y, p, average="macro", clusters=ids))
    for name in (*expected, "expected_accuracy"):
        assert report[name].value == approx(alone[name].value, rel=1e-9)
        assert report[name].high > alone[name].high
    assert "jackknife" in report.to_html()
    options |= {"clusters": patients, "sample_weight": np.full(600, 2.0)}
    weighted = jm.report(truth, favourite, **options)
    assert math.isnan(weighted.per_class["roc_auc"][0].low)
    alike(weighted["log_loss"], report["log_loss"])


def sure_but_wrong(wrong: np.ndarray, k: int, **options: Any) -> jm.Report:
    """300 examples with probabilities of .95 for the answer, the others alike."""
    y = np.arange(300) % k
    answer = (y + wrong) % k
    prob = np.where(np.eye(k)[answer] == 1, 0.95, 0.05 / (k - 1))
    return jm.report(y, answer, y_prob=prob, **options)


@pytest.mark.parametrize("k", [2, 3])
def test_brier_scores_of_a_report_know_of_mistakes_that_were_not_seen(k: int) -> None:
    """They have the likelihood interval of means within bounds, but for the width of the bins."""
    y, prob = probabilities(300, k)
    worst = k - 1
    scores = ((prob - np.eye(k)[y]) ** 2).sum(1) * worst / 2
    score = jm.report(y, prob.argmax(1), y_prob=prob)["brier_score"]
    alike(score, jm.mean_interval(scores, bounds=(0, worst)), 1e-3)
    assert score.method == "likelihood"
    sure = sure_but_wrong(np.zeros(300, int), k)["brier_score"]
    assert sure.high > sure.value + 1 / 300


def test_a_log_loss_that_few_examples_carry_is_noted() -> None:
    """2 of 300 answers are wrong: `(sum x)^2 / sum x^2` of the losses is 24."""
    few, many = np.arange(300) < 2, np.arange(300) % 3 == 0
    note = "a few examples make up most of the loss (effective number of examples: 24 of 300)"
    for options in ({}, {"clusters": np.arange(300) // 4}):
        assert sure_but_wrong(few, 2, **options)["log_loss"].note.startswith(note)
        assert sure_but_wrong(many, 2, **options)["log_loss"].note is None


def test_a_class_without_examples_does_not_count() -> None:
    two, three = (of_counts(np.pad([[9, 1], [3, 7]], (0, extra))) for extra in (0, 1))
    alike(three["balanced_accuracy_posterior"], two["balanced_accuracy_posterior"], 1e-6)


def test_unsigned_counts_are_subtracted_as_numbers() -> None:
    counts = 50 * np.eye(12, dtype=np.uint8)
    counts[1, 2], counts[3, 4] = 7, 30
    report = of_counts(counts)
    assert report.counts.dtype == np.int64
    confusions = pages._worst_confusions(report.counts, report.class_names, 0.95)
    assert [x[:3] for x in confusions] == [("3", "4", 30), ("1", "2", 7)]


def test_ignored_rows_count_nowhere() -> None:
    with_gap = [[0.6, 0.4], [np.nan, np.nan], [0.1, 0.9]]
    report = jm.report([0, -1, 1], [0, 0, 1], y_prob=with_gap)
    assert (report.num_examples, report.num_ignored, report["accuracy"].value) == (2, 1, 1)


def test_means_and_areas_of_a_state() -> None:
    """A mean that is named as a figure stands beside it; means of groups have a macro mean."""
    evaluator = jm.evaluator(
        jm.count_metrics({"counts": lambda counts: counts}, num_classes=2),
        jm.mean_of("accuracy"),
        jm.mean_of("loss", groups="dataset", num_groups=2),
        jm.ranking_metrics(scale="probability", num_bins=64),
    )
    batch = {
        "y_true": [0, 1, 0, 1],
        "y_pred": [0, 1, 1, 1],
        "y_score": [0.1, 0.9, 0.6, 0.4],
        "accuracy": [0.1, 0.2, 0.3, 0.6],
        "loss": [1.0, 2.0, 3.0, 10.0],
        "dataset": [0, 0, 0, 1],
    }
    state = evaluator.update(evaluator.init(), **{k: np.array(x) for k, x in batch.items()})
    report = jm.Report.from_state(state)
    names = "accuracy", "mean_accuracy", "loss", "macro_loss", "roc_auc"
    assert [report[name].value for name in names] == approx([0.75, 0.3, 4, 6, 0.75])
    assert report["roc_auc"].method == "bounds"
    assert "macro loss" in report.to_text().lower()


Y, PROB = [0, 1], np.eye(2)
MANY: Any = np.arange(5000)
FOURS, ZEROS, THIRDS = np.array([0, 1, 3, 3]), np.zeros(4, int), np.full((4, 3), 1 / 3)
BEYOND = r"is 3, but class ids must lie in \[0, 3\)"
REFUSALS: list[tuple[Any, str]] = [
    (lambda: jm.report(["a", "a"], ["a", "a"]), "A report needs at least two classes, got 1"),
    (lambda: jm.report([0.1, 0.9], Y), "labels must be all strings or all integers, but y_true"),
    (lambda: jm.report([1, 2], ["1", "2"]), r"strings or all integers, but y_true\[0\] is 1"),
    (
        lambda: jm.report([0, 1], [-1, 1]),
        r"y_pred\[0\] is -1, which is no class.*, such as class_names=\[-1, 1\]",
    ),
    (lambda: jm.report([-1, 1], [1, 1]), r"got 1.* their labels, such as class_names=\[-1, 1\]"),
    (
        lambda: jm.report([0, 1], [0, 1], class_names=[1, 2]),
        r"y_true\[0\] is '0', which is not one of class_names: 1, 2.*pass names that are text",
    ),
    (
        lambda: jm.report([1, 2], [1, -5], class_names=[1, 2, 9], invalid=9),
        r"y_pred\[1\] is -5, which is no class",
    ),
    (
        lambda: jm.report(["ant", "bee"], ["ant", "cow"], class_names=["ant", "bee"]),
        r"y_pred\[1\] is 'cow', which is not one of class_names: ant, bee",
    ),
    (
        lambda: of_counts(PROB, class_names=[*"abc"]),
        "class_names must have 2 names, got 3",
    ),
    (
        lambda: of_counts(np.ones((2, 3))),
        r"a single square confusion matrix of shape \(K, K\) or.*, got \(2, 3\)",
    ),
    *(
        (
            lambda x=bad: of_counts(np.array([[1, x], [0, 1]])),
            r"counts\[0, 1\] is .*, expected a number from 0 to 1e30",
        )
        for bad in (-1, np.nan, np.inf)
    ),
    (lambda: of_counts(PROB * 1j), "counts must hold real numbers, got dtype complex"),
    (
        lambda: of_counts(PROB, soft_counts=np.eye(5)),
        r"soft_counts must have shape \(K, K\) = \(2, 2\)",
    ),
    *(
        (lambda p=p: jm.report(Y, Y, y_prob=p), rf"\(n, K\) = \(2, K\).*, got .* {advice}")
        for p, advice in (
            ([0.1, 0.9], r"pass numpy\.c_\[1 - p, p\]\.$"),
            ([[0.1], [0.9]], r"pass numpy\.c_\[1 - p, p\]\.$"),
            (0.3, r"pass numpy\.c_\[1 - p, p\]\.$"),
            (
                [-1.2, 3],
                "call roc_auc, delong_interval or best_threshold; on the command line, use",
            ),
        )
    ),
    (lambda: jm.report(np.eye(2), Y), r"\(2, 2\), \(2,\).* pass \.argmax\(-1\)"),
    (lambda: jax.jit(jm.report)(Y, Y), "y_true has no known values, because JAX traces it"),
    (lambda: jm.report([-1, -1], Y), "no examples to report on"),
    *(
        (call, r"is .*, which invalid= names, but only predictions can be invalid")
        for call in (
            lambda: jm.report(Y, Y, invalid=1),
            lambda: jm.report([*"ab?"], [*"ab?"], invalid="?"),
            lambda: jm.comparison_report([0, 1, 2], [0, 1, 2], [0, 1, 2], invalid=[2]),
        )
    ),
    (
        lambda: of_counts(np.eye(3), class_names=[*"ab?"], invalid=["?", "!"]),
        r"invalid names '!', but class_names are a, b, \?",
    ),
    (
        lambda: of_counts(np.eye(3), class_names=[*"ab?"], invalid="?"),
        r"invalid names the label '\?', which is the true class of 1 examples",
    ),
    (lambda: jm.report([*"aa"], [*"a?"], invalid="?"), "at least two classes, got 1"),
    (
        lambda: jm.report(Y, Y, class_names=[*"?ab"], invalid="?"),
        r"class_names must end with the invalid labels \?, got \?, a, b",
    ),
    (lambda: jm.report(Y, Y, invalid=1.5), "invalid must be a sequence of names"),
    (lambda: jm.report([0, 1, 1], [0, 1, -1]), r"pass invalid= with this label"),
    (lambda: jm.report([], []), "no examples to report on"),
    *(
        (call, r"\(2, 3\).* If all elements are examples, pass \.ravel\(\) of each array")
        for call in (
            lambda: jm.report(np.zeros((2, 3), int), np.zeros((2, 3), int)),
            lambda: jm.report(np.zeros((2, 3), int), np.zeros(6, int)),
            lambda: jm.report([*"aba"], np.full((2, 3), "a")),
            lambda: jm.comparison_report(*np.zeros((3, 2, 3), int)),
            lambda: jm.compare_predictions(jm.accuracy, *np.zeros((3, 2, 3), int), num_classes=2),
            lambda: jm.plots.confusion_matrix(*np.zeros((2, 2, 3), int)),
        )
    ),
    (lambda: jm.report([0, 1, 1], Y), r"with the same number of examples n, got \(3,\), \(2,\)"),
    (
        lambda: jm.report(Y, Y, sample_weight=[-1.0, 1.0]),
        r"sample_weight\[0\] is -1.0, expected a finite number",
    ),
    *(
        (
            lambda more=more: jm.report(Y, Y, sample_weight=[1.0, 2, 3], **more),
            r"sample_weight must have shape \(n,\) = \(2,\), got \(3,\)",
        )
        for more in ({}, {"groups": ["x", "y"]}, {"frequency": True})
    ),
    (
        lambda: jm.report(Y, Y, sample_weight=["a", "b"]),
        "sample_weight must hold real numbers, got dtype object",
    ),
    (
        lambda: jm.report(Y, Y, y_prob=[[5.0, -3.0], [0.0, 1.0]]),
        r"y_prob\[0\] is \[ 5. -3.\], expected probabilities that sum to 1",
    ),
    (
        lambda: jm.report([*"ab"], [*"ab"], y_prob=np.full((2, 3), 1 / 3)),
        "y_prob has 3 columns, but there are 2 classes: a, b",
    ),
    (lambda: jm.report(Y, Y, y_prob=[[*"ab"], [*"cd"]]), "y_prob must hold real numbers"),
    (
        lambda: jm.report(np.array(["a", None]), ["a", "b"]),
        "labels must be all strings or all integers",
    ),
    (lambda: jm.report(Y, Y, class_names=["a", "a"]), "class_names must differ, got a, a"),
    *(
        (call, "at most 4096 classes, got 5000")
        for call in (
            lambda: jm.report(MANY, MANY),
            lambda: jm.report(MANY.astype(str), MANY.astype(str)),
            lambda: jm.comparison_report(MANY, MANY, MANY),
            lambda: jm.report([2**40], [0], class_names=range(5000)),
        )
    ),
    (
        lambda: jm.comparison_report(Y, Y, [0]),
        r"with the same number of examples n, got \(2,\), \(2,\), \(1,\)",
    ),
    (lambda: jm.comparison_report([0, 0], [0, 0], [0, 0]), "at least two classes, got 1"),
    (lambda: jm.comparison_report([-1, -1], [0, 1], Y), "no examples to compare"),
    (
        lambda: jm.comparison_report(["a"], ["b"], ["c"], class_names=["a", "b"]),
        r"y_pred_b\[0\] is 'c'",
    ),
    (
        lambda: jm.comparison_report(Y, Y, Y, y_prob_a=PROB),
        "both y_prob_a and y_prob_b are needed",
    ),
    (
        lambda: jm.comparison_report(Y, Y, Y, y_prob_a=PROB, y_prob_b=np.eye(3)[:2]),
        "y_prob_b has 3 columns, but there are 2 classes",
    ),
    (
        lambda: jm.comparison_report(Y, Y, Y, y_prob_a=PROB, y_prob_b=np.ones((2, 2))),
        r"y_prob_b\[0\] is .* expected probabilities that sum to 1",
    ),
    (
        lambda: jm.comparison_report(*[np.arange(600) % 100] * 3, clusters=np.arange(600)),
        "600 clusters, each with a table of 1000000 cells",
    ),
    (
        lambda: jm.report(Y * 9, Y * 9, groups=[0, "0"] * 9),
        "printed alike. Convert all ids to strings. The ids are 0, '0'",
    ),
    (lambda: jm.multilabel_report([[1, 0]], [[1, 2]]), r"y_pred\[0, 1\] is 2, expected 0 or 1"),
    (lambda: jm.multilabel_report([[1, 0]], [[1, -1]]), r"y_pred\[0, 1\] is -1, expected 0 or 1"),
    (lambda: jm.multilabel_report([[-1, -1]], [[1, 0]]), "contain no examples"),
    (
        lambda: jm.multilabel_report([1, 0], [1, 0]),
        r"same shape \(n, L\), with one column for each label, got \(2,\)",
    ),
    (
        lambda: jm.multilabel_report([[1, 0]], [[1, 0]], label_names=["a", "a"]),
        "label_names must differ, got a, a",
    ),
    (
        lambda: jm.multilabel_report([[1, 0]], [[1, 0]], label_names=["a"]),
        "label_names must have 2 names, got 1",
    ),
    (
        lambda: jm.multilabel_report(np.zeros((0, 2), int), np.zeros((0, 2), int)),
        "y_true and y_pred contain no examples to report on",
    ),
    (lambda: jm.report(FOURS, ZEROS, y_prob=THIRDS), rf"y_true\[2\] {BEYOND}"),
    (lambda: jm.report(ZEROS, FOURS, class_names=[*"abc"]), rf"y_pred\[2\] {BEYOND}"),
    (
        lambda: jm.comparison_report(ZEROS, ZEROS, FOURS, y_prob_a=THIRDS, y_prob_b=THIRDS),
        rf"y_pred_b\[2\] {BEYOND}",
    ),
    (
        lambda: TabularReport(Outline(""), {}, []).to_every_eval_ever(),
        "this report has no values",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_thousands_of_classes() -> None:
    """They take seconds, not the cube of their number; intervals that would take minutes are left
    out, and the report says so.
    """
    k = 2048
    rng = np.random.default_rng(0)
    true = np.concatenate([np.arange(k), rng.integers(0, k, 2 * k)])
    pred, other = (np.where(rng.random(3 * k) < p, true, true[::-1]) for p in (0.8, 0.7))
    begin = time.process_time()
    report = jm.report(true.astype(str), pred.astype(str))
    written = [report.to_text(), report.to_markdown(), report.to_csv(), report.to_json()]
    comparison = jm.comparison_report(true, pred, other)
    written += [comparison.to_text(), comparison.to_markdown(), comparison.to_json()]
    assert time.process_time() - begin < 20

    assert all(written)
    assert json.loads(report.to_json()) == report.to_dict()
    right = true == pred
    recalls = [right[true == i].mean() for i in range(k)]
    balanced = report["balanced_accuracy"]
    assert math.isclose(balanced.value, np.mean(recalls), rel_tol=1e-12)
    assert math.isnan(balanced.low)
    assert "if there are more than 1024 classes" in " ".join(report.to_text().split())
    difference = comparison["accuracy"].difference
    assert math.isclose(difference.value, right.mean() - (true == other).mean(), abs_tol=1e-12)
    paired = np.zeros((2, 2, 2), int)
    np.add.at(paired[1], (1 * right, 1 * (true == other)), 1)
    alike(difference, jm.compare(jm.accuracy, paired).difference)
    assert math.isnan(comparison["macro_f1"].difference.low)
    assert "nan" not in comparison.to_text() + comparison.to_markdown()


def answers(number: int) -> list[Any]:
    """Truth, and the answers of two systems, some of which are invalid."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, number, 50)
    wrong = np.where(rng.random((2, 50)) < 0.3, -1, (true + rng.integers(1, 4, (2, 50))) % number)
    return [true, *np.where(rng.random((2, 50)) < [[0.8], [0.6]], true, wrong)]


def test_free_form_answers_have_no_averages_in_text() -> None:
    true, a, b = answers(40)
    true[-3:], a[-3:] = 99, 98
    report = jm.report(true, a, invalid=-1)
    comparison = jm.comparison_report(true, a, b, invalid=-1)
    grouped = jm.report(true, a, invalid=-1, groups=np.arange(50) % 2)
    for x in (report, comparison, grouped):
        assert {"macro_f1", "balanced_accuracy"} <= {*x}
        for text in (x.to_text(), str(x), x.to_markdown(), page := x.to_html()):
            assert not re.search("macro F1|balanced accuracy|kappa", text, re.IGNORECASE)
            assert "valid rate" in text
        if x is not grouped:
            assert x.to_text().count("\n") < 40
            assert "classes look like free-form answers" in words_of(x.to_text())
            assert "classes look like free-form answers" in words_of(page)
    assert "macro_f1" in report.to_csv() + report.to_json()
    assert re.search(r"\npredicted  times\n(-1 .*\n)?98         3\n", report.to_text())
    for few in (jm.report(true % 9, a % 9), jm.report(*[np.repeat(np.arange(21), 3)] * 2)):
        assert "free-form" not in few.to_text()
        assert "macro F1" in few.to_text()
    # Sums of weights do not say how many examples there are.
    weighted = jm.report(true, a, invalid=-1, sample_weight=np.full(50, 0.1))
    assert "free-form" not in weighted.to_text()


@pytest.mark.parametrize(("options", "what"), [({}, "macro F1"), ({"invalid": -1}, "accuracy")])
def test_a_comparison_with_invalid_predictions_begins_with_accuracy(
    options: Any, what: str
) -> None:
    true, a, b = answers(4)
    pred = a if options else true
    verdict = jm.comparison_report(true, pred, np.where(b < 0, 0, b), **options).outline().verdict
    assert f" {what} " in verdict


@pytest.mark.quick
def test_totals_beyond_int64() -> None:
    report = of_counts([[5 * 10**18, 10], [20, 5 * 10**18]])
    assert report.num_examples == approx(1e19, rel=1e-15)
    assert report.to_text().startswith("1e+19 examples")
    full = of_counts(np.full((2, 2), 2**63 - 1))
    assert (full.num_examples, full.support.tolist()) == (2.0**65, [2.0**64] * 2)
    assert full["accuracy"].value == approx(0.5)
    assert of_counts(np.full((40, 2, 2), 2**60)).num_examples == 160 * 2.0**60
    assert of_counts([[2**53 + 1, 0], [0, 1]]).num_examples == 2**53 + 2
    ids = np.array([[2**60, 2**60 + 1, 5], [2**60 + 1, 2**60, 5]], np.uint64)
    assert jm.report(*ids)["accuracy"].value == approx(1 / 3)


@pytest.mark.filterwarnings("error")
def test_infinite_ends_are_null_in_json() -> None:
    report = jm.report([0, 1], [0, 0], y_prob=[[0.9, 0.1], [0.8, 0.2]], level=0.9999)
    assert report["log_loss"].high == np.inf
    written = json.loads(report.to_json())["overall"]["log_loss"]
    assert (written["high"], written["value"]) == (None, report["log_loss"].value)
    assert report.to_csv().count(",inf,") == 1


def test_a_prediction_that_is_no_class_is_no_ignored_example() -> None:
    """Of a classifier that does not answer; as strings, it is a class that is never right."""
    y_true, y_pred = np.array([0, 1, 1, -1]), np.array([-1, 1, -2, -1])
    for names in (None, ["a", "b"]):
        options: Any = {"class_names": names}
        with pytest.raises(
            ValueError, match=r"y_pred\[0\] is -1, which is no class.*counts as a wr"
        ):
            jm.report(y_true, y_pred, **options)
        with pytest.raises(ValueError, match=r"y_pred_b\[1\] is -2, which is no class"):
            jm.comparison_report(y_true[:2], y_true[:2], y_pred[[1, 2]], **options)
    evaluator = jm.evaluator(jm.count_metrics({}, num_classes=2))
    state = evaluator.update(evaluator.init(), y_true=y_true, y_pred=y_pred)
    with pytest.warns(UserWarning, match="2 examples have a prediction that is no class"):
        assert jm.Report.from_state(state).num_ignored == 1
    drawn = jm.evaluator(jm.poisson_bootstrap(jm.count_metrics({}, num_classes=2), num_samples=2))
    state = drawn.update(drawn.init(), y_true=y_true[:3], y_pred=y_true[:3], unit=y_true[:3])
    with pytest.warns(UserWarning, match="a report treats all examples as independent"):
        assert jm.Report.from_state(state).num_examples == 3
    strings = jm.report(list(map(str, y_true[:3])), list(map(str, y_pred[:3])))
    assert strings["accuracy"].value == pytest.approx(1 / 3)
    with pytest.warns(UserWarning, match="but -1 is also predicted for some of them"):
        jm.report([-1, -1, 0, 1], [-1, 1, 0, 1])


def test_a_perfect_weighted_classifier_has_accuracy_one() -> None:
    # Whose trace and total round apart.
    weights = (np.random.default_rng(3).random(17) * 10).astype(np.float32)
    report = jm.report(np.arange(17), np.arange(17), sample_weight=weights)
    assert report["accuracy"].value == report["accuracy"].high == 1


AWKWARD = ["a|b*", 'say "hi", x', "two\nlines"]


def test_csv_has_a_line_for_each_value() -> None:
    report = of_counts(np.diag([3, 2, 0]), class_names=AWKWARD, level=0.9)
    expected = {(name, ""): x for name, x in report.overall.items()} | {
        (name, AWKWARD[i]): x for name, xs in report.per_class.items() for i, x in enumerate(xs)
    }
    lines = csv.DictReader(io.StringIO(report.to_csv(), newline=""))
    for line, (key, x) in zip(lines, expected.items(), strict=True):
        assert (line["name"], line["class"]) == key
        numbers = [float(line[key] or "nan") for key in ("value", "low", "high")]
        assert_array_equal(numbers, x.numbers)  # NaN for None
        assert (line["level"], line["method"]) == (("0.9", x.method) if x.method else ("", ""))


def test_csv_of_odd_names_can_be_read() -> None:
    """No cell is a formula, and one apostrophe less gives the name."""
    names = ["a\rb", "c,d", 'e"f', "g\nh", "=1+1", "+1", "-1", "@x", "\tx", "\rx", "\uff1d1", "'=1"]
    records = [{"value": -1.5, "class": name} for name in ["", *names]]
    of_names = jm.report(names * 9, names * 9, class_names=names)
    for report in (of_names, TabularReport(Outline(""), {}, records)):
        rows = list(csv.reader(io.StringIO(report.to_csv(), newline="")))
        assert len({len(row) for row in rows}) == 1
        assert not any(row[1].startswith(tuple("=+-@\t\r\uff1d")) for row in rows)
        assert {row[1].removeprefix("'") for row in rows[1:]} == {"", *names}
    assert rows[1] == ["-1.5", ""]


def test_csv_of_a_comparison() -> None:
    report = jm.comparison_report(TRUE, PRED, TRUE)
    lines = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [line["classifier"] for line in lines] == ["A", "B", "A - B"] * len(report.figures)
    accuracy = report["accuracy"]
    for line, x in zip(lines, accuracy.systems.values(), strict=False):
        assert {
            "name": "accuracy",
            "value": str(x.value),
            "method": x.method,
        }.items() <= line.items()
    better = [line["probability_better"] for line in lines[:3]]
    assert better == ["", "", str(accuracy.probability_better)]


def cells_of(table: str) -> list[list[str]]:
    """The cells of a table of Markdown, whose escaped bars separate nothing."""
    return [re.split(r" (?<!\\)\| ", line[2:-2]) for line in table.splitlines()]


def test_markdown_is_made_of_tables() -> None:
    report = of_counts([[9, 1, 0], [3, 7, 0], [0, 0, 5]], class_names=AWKWARD)
    heading, verdict, overall, classes, title, matrix = report.to_markdown().strip().split("\n\n")
    assert heading == "25 examples, 3 classes. In brackets: 95 % intervals."
    assert verdict.startswith(r"Accuracy 0.840 \[0.654, 0.948\] is above 0.400, the accuracy")
    assert ["accuracy", r"0.840 \[0.654, 0.948\]", "likelihood"] in cells_of(overall)
    rows = cells_of(classes)
    assert {len(row) for row in rows} == {6}
    assert [row[0] for row in rows[2:]] == [r"a\|b\*", 'say "hi", x', r"two\\nlines"]
    assert [row[1] for row in rows[2:]] == ["10", "10", "5"]
    assert title == "### Confusion matrix: rows are true classes, columns are predicted classes"
    assert [row[1:] for row in cells_of(matrix)[2:]] == [[*"910"], [*"370"], [*"005"]]

    comparison = jm.comparison_report(TRUE, PRED, TRUE, names=("new_model", "old"), rope=0.01)
    parts = comparison.to_markdown().split("\n\n")
    assert parts[1] == "- A: new\\_model\n- B: old"
    assert parts[2].startswith(
        "A and B cannot be told apart: macro F1 of A minus macro F1 of B is "
    )
    assert {len(row) for row in cells_of(parts[3])} == {7}
    assert parts[4].startswith(
        "Only A is correct 0 times, only B 3 times; McNemar's test (mid-p): p = "
    )


@pytest.mark.quick
def test_classifiers_without_names_are_not_named_after_themselves() -> None:
    comparison = jm.comparison_report(TRUE, PRED, TRUE)
    text, markdown = comparison.to_text(), comparison.to_markdown()
    assert text.startswith("8 examples, 3 classes\n\nA and B cannot be told apart")
    assert markdown.split("\n\n")[2].startswith("|  | A | B |")
    assert "<p>8 examples, 3 classes<br>A and B cannot" in comparison._repr_html_()


def test_a_comparison_begins_with_its_verdict() -> None:
    """By the interval of the macro F1; else it says what so many pairs show."""
    y = np.arange(400) % 2
    wrong = lambda n, start=0: np.where((np.arange(400) - start) % 400 < n, 1 - y, y)
    good, worse, alike_one = wrong(10), wrong(60), wrong(10, 390)
    good_too = np.where((np.arange(400) - 200) % 400 < 6, 1 - y, good)
    d = jm.comparison_report(y, good, worse)["macro_f1"].difference
    paired = jm.paired_confusion_matrix(y, good_too, alike_one, num_classes=2)
    shown = jm.detectable_difference(jm.macro(jm.f1), paired, 400)
    for pair, rope, sentence in (
        ((good, worse), 0, f"A is better: its macro F1 is higher by {d:.3f}."),
        ((worse, good), 0, f"B is better: its macro F1 is higher by {d:.3f}."),
        (
            (good_too, alike_one),
            0,
            f"400 examples like these show a difference of {shown:.2g}, and 1,600",
        ),
        (
            (good_too, alike_one),
            0.1,
            "A and B are equivalent: macro F1 of A minus macro F1 of B is",
        ),
    ):
        assert sentence in words_of(jm.comparison_report(y, *pair, rope=rope).to_text())
    assert "With 80 %" not in jm.comparison_report(y, good, good).to_text()


@pytest.mark.parametrize("is_frequency", [False, True])
def test_groups_of_weight_zero_are_left_out(is_frequency: bool) -> None:
    y, pred, groups = [*"abbaab"], [*"aabbbb"], [*"xxyyzz"]
    options: Any = {"frequency": is_frequency, "class_names": ["a", "b"]}
    report = jm.report(y, pred, sample_weight=[1, 2, 0, 0, 2, 1], groups=groups, **options)
    found = {name: group.counts.tolist() for name, group in report.groups.items()}
    assert found == {"x": [[1, 0], [2, 0]], "z": [[0, 2], [0, 1]]}


def test_the_verdict_on_groups_counts_the_rows_of_the_table() -> None:
    """Of two classes, no value is counted twice; what differs is corrected for their number."""
    rng = np.random.default_rng(2)
    y, sites = rng.integers(0, 2, 400), rng.choice(["north", "south", "west"], 400)
    pred = y ^ (rng.random(400) < np.where(sites == "west", 0.22 + 0.12 * y, 0.1))
    options: Any = {"groups": sites, "class_names": ["well", "ill"]}
    report = jm.report(y, pred, **options)
    outline = report.outline()
    shown = dict(outline.summary)
    assert not [a for a, b in combinations(shown.values(), 2) if a.numbers == approx(b.numbers)]
    words, numbers = outline.verdict.split(" The largest differences: ")
    words = words.split(f"the difference is {report['accuracy_gain']}. ")[1]
    for text in numbers.rstrip(".").split("; "):
        title, value, ends = re.split(r" by | \(", text.rstrip(")"))
        assert f"{shown[title]}" == value
        least, greatest = (float(x.split(": ")[1]) for x in ends.split(", "))
        assert greatest - least == approx(shown[title].value, abs=1e-3)
    # The oracle: intervals at the level that Benjamini and Hochberg's procedure gives to each rank.
    keys = {key for key in report.disparities if key[0] != "specificity"}
    keys -= {("selection_rate", "well")}
    assert len(keys) == len(shown)
    found = 0
    for rank in range(1, len(keys) + 1):
        level = 1 - 0.05 * rank / len(keys)
        disparities = jm.report(y, pred, level=level, **options).disparities
        if sum(disparities[key].low > 0 for key in keys) >= rank:
            found = rank
    assert 0 < found < sum(report.disparities[key].low > 0 for key in keys)
    assert words.startswith(f"{found} of {len(shown)} values are shown to differ between groups, ")


def test_a_report_of_groups() -> None:
    """Groups are reported on by themselves; their greatest difference is compared."""
    rng = np.random.default_rng(0)
    y, prob = rng.integers(0, 3, 300), rng.dirichlet(np.ones(3), 300)
    pred, sites = prob.argmax(1), rng.choice(["north", "south", "west"], 300)
    y[:9] = -100
    options: Any = {"class_names": [*"abc"]}
    report = jm.report(y, pred, y_prob=prob, groups=sites.tolist(), **options)
    assert report["accuracy"] == jm.report(y, pred, **options)["accuracy"]
    assert set(report.groups) == {"north", "south", "west"}
    for name, group in report.groups.items():
        rows = sites == name
        alone = jm.report(y[rows], pred[rows], y_prob=prob[rows], **options)
        assert group.to_dict() == alone.to_dict()
    tables = jm.confusion_matrix(y, pred, groups=np.unique(sites, return_inverse=True)[1])
    alike(report.disparities["accuracy", ""], jm.compare_groups(jm.accuracy, tables))
    assert "### Disparities" in report.to_markdown()
    assert ">Disparities</h2>" in report.to_html()
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert {row["group"] for row in rows} == {"", *report.groups, "greatest difference"}
    rates = {(x["name"], x["class"], x["group"]): x["value"] for x in rows}
    of_north = pred[(sites == "north") & (y >= 0)]
    assert float(rates["selection_rate", "a", "north"]) == approx((of_north == 0).mean())
    assert (
        f"None of {len(report.disparities)} values is shown to differ" in report.outline().verdict
    )
    worse = np.where((sites == "west") & (y >= 0), (y + 1) % 3, y)
    differing = jm.report(y, worse, groups=sites.tolist(), **options)
    shown = sum(x.low > 0 for x in differing.disparities.values())
    assert (
        f"{shown} of {len(differing.disparities)} values are shown to"
        in differing.outline().verdict
    )
    alone = jm.report(y, pred, groups=["x"] * 300, **options)
    assert alone.outline().verdict == jm.report(y, pred, **options).outline().verdict
    clustered = jm.report(y, pred, groups=np.arange(300) % 2, clusters=np.arange(300) // 5)
    assert clustered.groups["1"].num_clusters == 59  # all of one is ignored
    rate = next(
        x for x in clustered.records() if (x["name"], x["group"]) == ("selection_rate", "1")
    )
    assert (rate["value"], rate["low"]) == (approx((pred[9:] == 0)[::2].mean()), None)
    with pytest.raises(KeyError, match=r"no 'west' among a, b, c.*in report.groups\['west'\]"):
        report["recall"]["west"]


@pytest.mark.parametrize("number", [3, 5, 61])
def test_many_groups_are_rows(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the values that differ most; in pictures the groups have the same order. All examples
    are the last column or the first row.
    """
    monkeypatch.setenv("COLUMNS", "80")
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 6000), rng.permuted(np.arange(6000) % number)
    wrong = rng.random(6000) < np.where((group == 0) & (y == 1), 0.6, 0.1)
    report = jm.report(y, y ^ wrong, groups=[f"site {i}" for i in group])
    verdict, table = report.outline().verdict, report.outline().tables["Groups"]
    assert "The largest differences: " in verdict
    if number == 3:
        assert table.titles == ["", *report.groups, "(all)"]
        assert table.rows[1][-1] == report["accuracy"]
        return
    assert [*table.titles[:3]] == ["group", "n", "accuracy"]
    assert all(f"{title} by " in verdict for title in table.titles[3:6] if title != "accuracy")
    first, *rows = table.rows
    assert first[:3] == ("(all)", "6,000", report["accuracy"])
    values = [row[2].value for row in rows]
    assert values == sorted(x["accuracy"].value for x in report.groups.values())
    assert rows[0][0] == "site 0"
    assert [row[1] for row in rows] == [f"{report.groups[x[0]].num_examples:,}" for x in rows]
    lines = report.to_text().splitlines()
    assert len(lines) < number + 45
    assert max(map(len, lines)) <= 80
    assert report.to_markdown().count("\n| site ") == number
    page = report.to_html()
    (labels, *_) = [
        re.findall(r">(site \d+)<", x) for x in re.findall("<svg.*?</svg>", page, re.DOTALL)
    ]
    assert labels == [row[0] for row in rows][: len(labels)]
    assert len(labels) == min(number, 50)
    # Numbered groups keep their order; without a difference the text says nothing of the largest.
    folds = jm.report(y, y ^ (place := np.arange(6000) % 7 == 0), groups=group + 8)
    assert [row[0] for row in folds.outline().tables["Groups"].rows[1:]] == [*folds.groups]
    text = " ".join(folds.to_text().split())
    assert "The table has accuracy and then values that are shown to differ between" in text
    assert "sorted by accuracy" not in text
    assert place.any()


def test_reports_of_a_single_true_class_have_accuracy_only() -> None:
    """Macro F1 depends on how many other labels are predicted, and MCC is 0 or undefined."""
    right = np.arange(150) % 3 > 0
    true, pred = np.full(150, "refuse"), np.where(right, "refuse", "comply")
    report = jm.report(true, pred)
    for x in (report, jm.report(true, pred, invalid="comply", class_names=["answer", "refuse"])):
        text = " ".join(x.to_text().split())
        assert f"classes Accuracy is {x['accuracy']}. Most frequent wrong predictions" in text
        assert "comply 50" in text
        assert "All examples have the same true class" in text
        assert not re.search("F1|MCC|most frequent class|gain", text)
    assert "macro_f1" in report.to_json()
    perfect = jm.report(true, true, class_names=["comply", "refuse"])
    assert "wrong predictions" not in perfect.to_text()
    b = np.where(np.arange(150) % 5 > 0, "refuse", "comply")
    text = " ".join(jm.comparison_report(true, pred, b).to_text().split())
    assert "B is better: its accuracy is higher by 0.133" in text
    assert "F1" not in text
    grouped = jm.report(true, pred, groups=np.arange(150) % 2).outline()
    assert [row[0] for row in grouped.tables["Groups"].rows] == ["examples", "accuracy"]
    for page in (report.to_html(), jm.comparison_report(true, pred, b).to_html()):
        assert "same true class" in page


def test_text_has_the_confusion_matrix_of_two_classes() -> None:
    report = of_counts([[9, 1], [3, 7]])
    assert "predicted classes\n   0  1\n0  9  1\n1  3  7\n" in report.to_text()
    assert report.to_markdown().count("Confusion matrix") == 1
    assert "Confusion matrix" not in of_counts(np.diag([9, 8, 7])).to_text()


def test_an_area_below_one_half_is_explained() -> None:
    y, p = np.repeat([0, 1], 40), np.linspace(0.1, 0.9, 80)
    for prob, number in ((p, 0), (1 - p, 1), (np.resize(p[::2], 80), 0)):
        text = " ".join(jm.report(y, prob > 0.5, y_prob=np.c_[1 - prob, prob]).to_text().split())
        assert text.count("ROC AUC: it is below 0.5, because the other class has the") == number


@pytest.mark.parametrize(
    "groups",
    [
        ["x", None, "x", ""],
        ["x", np.nan, "x", None],
        np.array(["x", "", "x", None], object),
        np.array([1.0, np.nan, 1.0, np.nan]),
        np.array(["2024", "NaT", "2024", "NaT"], "M8[Y]"),
        pd.Series([1, None, 1, None], dtype="Int64"),
    ],
)
def test_examples_without_a_group_are_a_group(groups: Any) -> None:
    repeated = pd.concat([groups] * 9, ignore_index=True) if hasattr(groups, "iloc") else groups
    repeated = repeated if len(repeated) > 4 else np.tile(np.asarray(groups, object), 9).tolist()
    y_true, y_pred = [0, 1, 1, 1] * 9, [0, 1, 0, 1] * 9
    found = {**jm.report(y_true, y_pred, groups=repeated).groups}
    assert len(found) == 2
    assert (found.pop("(missing)")["accuracy"].value, found.popitem()[1].num_examples) == (1, 18)
    scores = jm.score_report(y_pred, groups=repeated)["group"]
    assert scores["(missing)"].value == 1


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_a_multilabel_report_of_any_number_of_labels(number: int) -> None:
    """The error of the Hamming loss is the error of the mean share of wrong labels."""
    rng = np.random.default_rng(number)
    true = rng.integers(0, 2, (150, number))
    pred = np.where(rng.random((150, number)) < 0.8, true, 1 - true)
    report = jm.multilabel_report(true == 1, pred == 1)
    shares, each = (
        (true != pred).mean(1),
        [sk.f1_score(*x) for x in zip(true.T, pred.T, strict=True)],
    )
    assert {name: report[name].value for name in report.content["overall"]} == approx(
        {
            "exact_match": (shares == 0).mean(),
            "hamming_loss": shares.mean(),
            "micro_f1": sk.f1_score(true.ravel(), pred.ravel()),
            "macro_f1": np.mean(each),
        }
    )
    precisions = [sk.precision_score(*x) for x in zip(true.T, pred.T, strict=True)]
    assert [x["precision"]["value"] for x in report.content["labels"]] == approx(precisions)
    error = shares.std(ddof=1) / math.sqrt(150)
    assert report["hamming_loss"].standard_error == approx(error, rel=1e-6)
    names = [x["evaluation_name"] for x in json.loads(report.to_every_eval_ever()).popitem()[1]]
    assert len(set(names)) == len(names) == 4 + 4 * number
    assert f"recall [{number - 1}]" in names


def test_unknown_labels_are_not_counted_in_a_multilabel_report() -> None:
    """Each label has its own examples, and Hamming loss is a ratio: errors / known labels."""
    rng = np.random.default_rng(5)
    true = rng.integers(-1, 2, (150, 3))
    true[:7] = -100
    pred = np.where(rng.random((150, 3)) < 0.8, true > 0, true == 0).astype(int)
    report, known = jm.multilabel_report(true, pred), true >= 0
    complete, some = known.all(1), known.any(1)
    assert report.content["num_examples"] == some.sum()
    assert report.content["num_ignored"] == 150 - some.sum() > 7
    assert report["exact_match"].value == approx((true == pred)[complete].all(1).mean())
    assert report["micro_f1"].value == approx(sk.f1_score(true[known], pred[known]))
    for i in range(3):
        rows = known[:, i]
        found = report["recall"][str(i)]
        assert found.value == approx(sk.recall_score(true[rows, i], pred[rows, i]))
    wrong, number = ((known & (true != pred)).sum(1)[some], known.sum(1)[some])
    loss = wrong.sum() / number.sum()
    error = math.sqrt(((wrong - loss * number) ** 2).sum() / number.sum() ** 2)
    assert report["hamming_loss"].value == approx(loss)
    assert report["hamming_loss"].standard_error == approx(error, rel=0.01)
    text = " ".join(report.to_text().split())
    assert f"{(~known[some]).sum()} of {known[some].size} true labels are unknown" in text
    assert f"that of the {complete.sum()} examples whose labels are all known" in text


def test_intervals_of_many_labels_know_that_labels_depend_on_one_another() -> None:
    """The spread of 160 test sets is the standard error, for which the delta method is of first
    order: on the logit scale half of an interval is 1.96 of it.
    """
    rng = np.random.default_rng(0)
    reports = []
    for _ in range(160):
        true = rng.random((200, 3)) < rng.random((200, 1))
        pred = np.where(rng.random((200, 1)) < 0.3, rng.random((200, 3)) < 0.5, true)
        reports.append(jm.multilabel_report(true, pred))
    for name in ("hamming_loss", "micro_f1", "macro_f1"):
        values, lows, highs = np.array([numbers_of(x[name]) for x in reports]).T
        assert (highs - lows).mean() == approx(2 * 1.96 * values.std(), rel=0.15)


def test_a_report_says_what_is_registered_for_a_statistic() -> None:
    @dataclass(frozen=True)
    class Total:
        shape, is_integer, fields = (), False, {"cost": jm.streaming.Kind.NUMBERS}

        def is_usable(self, batch: jm.streaming.Batch) -> None:
            return None

        def table(
            self, batch: jm.streaming.Batch, weight: jax.Array | None, keep: jax.Array
        ) -> jax.Array:
            return jnp.where(keep, batch.numbers("cost"), 0).sum()

    evaluator = jm.evaluator(
        jm.count_metrics({}, num_classes=2),
        jm.streaming.Accumulator((Total(),), (("cost", float),)),
    )
    batch = {"y_true": [0, 1], "y_pred": [0, 0], "cost": [1.5, 2.0]}
    state = evaluator.update(evaluator.init(), **batch)  # type: ignore[arg-type]
    assert "total_cost" not in jm.Report.from_state(state).overall

    @findings_of.register
    def _(
        statistic: Total,
        table: np.ndarray,
        squares: np.ndarray | None,
        values: ClassValues,
        level: float,
    ) -> Findings:
        return Findings({"total_cost": exactly(table)})

    assert jm.Report.from_state(state)["total_cost"].value == 3.5


def test_comparison_report() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    a = np.where(rng.random(300) < 0.9, truth, 0)
    b = np.where(rng.random(300) < 0.8, a, 1)
    report = jm.comparison_report(
        [*truth, -1], [*a, 0], [*b, 0], names=("first", "second"), rope=0.02
    )
    paired = jm.paired_confusion_matrix(truth, a, b, num_classes=3)
    expected = jm.compare(jm.accuracy, paired, rope=0.02)
    accuracy = report["accuracy"]
    alike(accuracy.difference, expected.difference)
    assert accuracy.probability_equivalent == approx(expected.probability_equivalent)
    assert accuracy.difference.method == "likelihood"
    assert accuracy.a == jm.report(truth, a)["accuracy"]
    assert (report.num_examples, report.num_ignored, report.num_classes) == (300, 1, 3)
    assert report.only_right == (
        ((a == truth) & (b != truth)).sum(),
        ((a != truth) & (b == truth)).sum(),
    )
    assert report.p_value == approx(jm.mcnemar(paired).p_value)
    loaded = json.loads(report.to_json())
    assert loaded == report.to_dict()
    difference = loaded["figures"]["macro_f1"]["difference"]
    assert difference["value"] == report["macro_f1"].difference.value
    text = report.to_text()
    assert text.startswith("300 examples, 1 ignored, 3 classes\nA: first\nB: second\n")
    assert "confidence A > B  ±0.02\n" in text
    assert "±0.02: confidence that A - B is between these limits." in text
    assert max(map(len, text.splitlines())) <= 80
    results = json.loads(report.to_every_eval_ever())["evaluation_results"]
    names = [x["evaluation_name"] for x in results]
    assert names[:3] == ["accuracy [A]", "accuracy [B]", "accuracy [A - B]"]
    assert len({*names}) == len(names)
    same = jm.comparison_report(truth, a, a)["matthews_corrcoef"]
    assert same.difference.value == 0
    assert -0.05 < same.difference.low < -0.001  # the next examples may part them
    assert same.difference.method == "likelihood"


def test_a_comparison_report_of_probabilities() -> None:
    """A and B have the values of their own reports; examples that are ignored do not count."""
    rng = np.random.default_rng(0)
    y = np.append(rng.integers(0, 3, 300), [-1, -100])
    probs = [rng.dirichlet(np.ones(3), 302) for _ in range(2)]
    for prob, more in zip(probs, (2.0, 1.0), strict=True):
        prob[np.arange(300), y[:300]] += more
        prob /= prob.sum(1, keepdims=True)
    preds = [prob.argmax(1) for prob in probs]
    options: Any = {"y_prob_a": probs[0], "y_prob_b": probs[1]}
    report: Any = jm.comparison_report(y, *preds, **options)
    assert report.num_ignored == 2
    for i, system in enumerate("ab"):
        alone: Any = jm.report(y, preds[i], y_prob=probs[i])
        for name in ("accuracy", "log_loss", "brier_score"):
            assert getattr(report[name], system).value == approx(alone[name].value, rel=1e-3)
        area = getattr(report["roc_auc_1"], system)
        assert area.value == approx(alone["roc_auc"]["1"].value, abs=2e-3)
        assert_array_equal(report.score_histograms[i], alone.score_histogram)
        assert_array_equal(report.calibration_bins[i], alone.calibration_bins)
    losses = [-np.log(prob[np.arange(300), y[:300]]) for prob in probs]
    alike(report["log_loss"].difference, jm.mean_interval(losses[0] - losses[1]))
    assert report["log_loss"].probability_better < 0.01  # A has the lower loss
    text, plain = (words_of(x.to_text()) for x in (report, jm.comparison_report(y, *preds)))
    told = "less is better, so confidence A > B is the confidence that A is worse"
    assert (told in text, told in plain) == (True, False)
    assert "for losses Student's intervals, for areas intervals by DeLong's variance." in text
    sites = np.arange(302) // 4
    clustered = jm.comparison_report(y, *preds, clusters=sites, **options)
    expected = jm.mean_interval(losses[0], clusters=sites[:300], transform="log")
    alike(clustered["log_loss"].a, expected)
    of_two = y[:300] == 2, *(prob[:300, 2] for prob in probs)
    for found, ids in ((report, None), (clustered, sites[:300])):
        areas = jm.delong(*of_two, clusters=ids)
        for system in ("a", "b", "difference"):
            alike(getattr(found["roc_auc_2"], system), getattr(areas, system))
    with pytest.warns(UserWarning, match="y_pred_b is not the most probable class of y_prob_b"):
        jm.comparison_report(y, preds[0], (preds[1] + 1) % 3, **options)


def test_a_comparison_report_of_clusters() -> None:
    rng = np.random.default_rng(0)
    truth, sites = rng.integers(0, 3, 600), np.repeat([f"s{i}" for i in range(30)], 20)
    bad = np.repeat(rng.random(30) < 0.3, 20)
    a = np.where(rng.random(600) < 0.9, truth, 0)
    b = np.where(bad, rng.integers(0, 3, 600), a)
    truth[:3] = -1
    result = jm.comparison_report(truth, a, b, class_names=[*"xyz"], clusters=sites)
    alone = jm.comparison_report(truth, a, b, class_names=[*"xyz"])
    assert "597 examples in 30 clusters, 3 ignored, 3 classes" in result.to_text()
    assert "McNemar's test (of clusters)" in result.to_text()
    assert "in 30 clusters" in result.to_html()
    assert result.to_dict()["num_clusters"] == 30
    assert_array_equal(result.counts, alone.counts)
    assert result.only_right == alone.only_right
    numbers = np.repeat(np.arange(30), 20)
    cubes = jm.paired_confusion_matrix(truth, a, b, num_classes=3, groups=numbers)
    assert result.p_value == jm.mcnemar(cubes, cluster_axis=0).p_value > 1000 * alone.p_value
    for name, metric in (("accuracy", jm.accuracy), ("cohen_kappa", jm.cohen_kappa)):
        alike(result[name].difference, jm.compare(metric, cubes, cluster_axis=0).difference)
        of_a = jm.report(truth, a, class_names=[*"xyz"], clusters=sites)
        alike(result[name].a, of_a[name])


def test_every_format_has_a_method_and_a_suffix() -> None:
    report = jm.report(TRUE, PRED)
    written = {suffix: write(report) for suffix, write in FORMATS.items()}
    methods = [x for x in dir(report) if x.startswith("to_") and x not in ("to_dict", "to_frame")]
    assert len(methods) == len({*written.values()}) == len(FORMATS)
    assert {getattr(report, x)() for x in methods} == {*written.values()}
    results = json.loads(written[".eee"])["evaluation_results"]
    accuracy = {"lower": report["accuracy"].low, "upper": report["accuracy"].high}
    assert results[0]["evaluation_name"] == "accuracy"
    assert (
        accuracy.items()
        <= results[0]["score_details"]["uncertainty"]["confidence_interval"].items()
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_integers_name_groups_also_if_one_is_missing(kind: str) -> None:
    ids = [2**53, 2**53 + 1, None]
    groups: Any = {
        "pandas": lambda x: pd.Series(x, dtype="Int64"),
        "polars": pl.Series,
        "pyarrow": pa.array,
    }[kind](ids * 20)
    report = jm.report(["a", "b"] * 30, ["a", "b", "b"] * 20, groups=groups)
    assert list(report.groups) == ["9007199254740992", "9007199254740993", "(missing)"]
