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
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sklearn.metrics as sk
from scipy import stats

import jaxmetrics as jm
from jaxmetrics.reports import pages
from jaxmetrics.reports.contents import ClassValues, Findings, Outline
from jaxmetrics.reports.formats import FORMATS, TabularReport
from jaxmetrics.reports.overall_values import Evidence, accuracy_gain, overall_values
from jaxmetrics.reports.prevalences import report_at_prevalence
from jaxmetrics.reports.probabilities import (
    ProbabilitySums,
    area_values,
    probability_findings,
    probability_sums,
)
from jaxmetrics.reports.statistics_found import findings_of
from jaxmetrics.reports.values import exactly

TRUE = ["ant", "bee", "bee", "cow", "ant", "bee", "cow", "cow"]
PRED = ["ant", "bee", "cow", "cow", "bee", "bee", "cow", "ant"]


def test_report_equals_sklearn(x64: bool) -> None:
    report = jm.report(TRUE, PRED)
    assert report.class_names == ("ant", "bee", "cow")
    np.testing.assert_array_equal(report.counts, sk.confusion_matrix(TRUE, PRED))
    theirs = sk.classification_report(TRUE, PRED, output_dict=True)
    for i, name in enumerate(report.class_names):
        assert report.support[i] == theirs[name]["support"]
        for ours, key in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")):
            assert math.isclose(report.per_class[ours][i].value, theirs[name][key], rel_tol=1e-6)
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
    assert list(report.overall) == list(expected)
    for name, value in expected.items():
        assert math.isclose(report.overall[name].value, value, rel_tol=1e-6), name


def test_nothing_is_compiled_for_data_of_the_host(programs: list[str]) -> None:
    """Intervals by formulas, by draws where nothing went wrong, of probabilities, differences."""
    rng = np.random.default_rng(0)
    y, prob = rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50)
    jm.report(TRUE, PRED)
    jm.report(y, prob.argmax(1), y_prob=prob, sample_weight=rng.random(50))
    jm.Report.from_counts(np.diag([9, 8, 7]), soft_counts=np.diag([9, 8, 7]))
    jm.comparison_report(y, prob.argmax(1), y)
    jm.comparison_report(y, y, y)
    assert programs == []


def test_arrays_of_jax_are_taken_too() -> None:
    """A report is computed on the host, whatever it is given."""
    rng = np.random.default_rng(0)
    y, prob = rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50).astype(np.float32)
    pred, weights = prob.argmax(1), rng.integers(0, 3, 50)
    ours = jm.report(y, pred, y_prob=prob, sample_weight=weights)
    jax_y, jax_pred, jax_prob, jax_weights = map(jnp.asarray, (y, pred, prob, weights))
    theirs = jm.report(jax_y, jax_pred, y_prob=jax_prob, sample_weight=jax_weights)
    assert theirs.to_dict() == ours.to_dict()
    same = jm.Report.from_counts(jnp.asarray(ours.counts)), jm.Report.from_counts(ours.counts)
    assert same[0].to_dict() == same[1].to_dict()


def test_every_figure_but_a_maximum_has_an_interval() -> None:
    report = jm.report(TRUE, PRED, level=0.9)
    overall: dict[str, Any] = {
        name: (figure.low, figure.high, figure.method) for name, figure in report.overall.items()
    }
    low, high = jm.balanced_accuracy_posterior(report.counts, prior=0.5).interval(0.9)
    assert overall["balanced_accuracy_posterior"] == (float(low), float(high), "posterior")
    right = jm.interval(jm.accuracy, report.counts, level=0.9)
    assert overall["accuracy"] == overall["micro_f1"]
    assert overall["accuracy"] == (
        pytest.approx(float(right.low), abs=1e-12),
        pytest.approx(float(right.high), abs=1e-12),
        "likelihood",
    )
    assert overall["no_information_rate"][2] is None  # the largest of several shares
    metrics: dict[str, Any] = {
        "balanced_accuracy": jm.balanced_accuracy,
        "macro_f1": jm.macro(jm.f1),
        "weighted_f1": jm.weighted(jm.f1),
        "matthews_corrcoef": jm.matthews_corrcoef,
        "cohen_kappa": jm.cohen_kappa,
    }
    for name, metric in metrics.items():
        expected = jm.interval(metric, report.counts, level=0.9)
        assert overall[name] == (float(expected.low), float(expected.high), "likelihood")
    assert all(
        figure.method == "likelihood" for column in report.per_class.values() for figure in column
    )
    # Of class bee: TN = 4 of the 5 that are no bees.
    specificity = jm.proportion_interval(4, 5, level=0.9, method="likelihood")
    assert math.isclose(
        report.per_class["specificity"][1].low or 0, float(specificity.low), rel_tol=1e-6
    )
    # Of class bee: TP = 2, FP = 1, FN = 1.
    jaccard = jm.proportion_interval(2, 4, level=0.9, method="likelihood")
    f1 = report.per_class["f1"][1]
    assert math.isclose(f1.low or 0, float(2 * jaccard.low / (1 + jaccard.low)), rel_tol=1e-6)


def test_a_value_without_an_interval_is_written_alone() -> None:
    report = jm.report(TRUE, PRED)
    assert "\nno information rate  0.375\n" in report.to_text()
    assert "\n| no information rate | 0.375 |  |  |\n" in report.to_markdown()
    assert "\nno_information_rate,,0.375,,,,\n" in report.to_csv()
    assert report.to_dict()["overall"]["no_information_rate"] == {"value": 0.375}
    assert (
        "no information rate</abbr></bdi></td><td>0.375 <small>–</small></td>" in report.to_html()
    )


def test_a_value_that_its_prior_pulls_away_says_so() -> None:
    """Ten classes, ten examples of each, all right but one: 0.99 is outside of 0.86 to 0.95."""
    counts = 10 * np.eye(10, dtype=int)
    counts[0, :2] = 9, 1
    report = jm.Report.from_counts(counts)
    posterior = report.overall["balanced_accuracy_posterior"]
    assert posterior.high < report.overall["balanced_accuracy"].value == 0.99
    said = "pulls the interval away from the balanced accuracy of these examples, 0.990."
    for text in (report.to_json(), report.to_html()):
        words = " ".join(html.unescape(text).split())
        assert "a Bayesian posterior, which lies too low if mistakes are few" in words
        assert words.count(said) == 1
    plain = jm.report(TRUE, PRED).notes["balanced_accuracy_posterior"]
    assert plain.endswith("worth half a correct and half a wrong example per class.")


def test_a_posterior_is_not_among_confidence_intervals() -> None:
    """Ten classes of 50, recalls of .99: in simulations, 60 % of the 95 % intervals cover."""
    report = jm.Report.from_counts(np.eye(10, dtype=int) * 49 + np.roll(np.eye(10, dtype=int), 1))
    written = report.overall["balanced_accuracy_posterior"].ends(" to ")
    for text in (report.to_text(), repr(report), report.to_markdown(), report._repr_html_()):
        assert "posterior" not in text
    page = report.to_html()
    assert written not in page
    assert "The violin shows a Bayesian posterior, which lies too low if mistakes are few" in page
    assert report.to_dict()["overall"]["balanced_accuracy_posterior"]["method"] == "posterior"
    assert "balanced_accuracy_posterior,,0.9" in report.to_csv()
    y = np.tile([0, 1], 20)
    groups = jm.report(y, y, groups=np.repeat(["a", "b"], 20))
    assert "posterior" not in groups.to_text()
    assert "balanced_accuracy_posterior" in groups.to_json()


def test_the_verdict_is_a_paired_comparison() -> None:
    """[[237, 72], [0, 91]]: 91 are right in class 1, 72 are wrong in class 0."""
    report = jm.Report.from_counts([[237, 72], [0, 91]])
    expected = jm.paired_difference_interval([[237, 91], [72, 0]])
    gain = report["accuracy_gain"]
    assert numbers_of(gain) == pytest.approx(numbers_of(expected))
    assert gain.method == "tango"
    assert report["accuracy"].low > report["no_information_rate"].value  # so are its ends alone
    said = "is not shown to be above 0.772, the accuracy of always predicting the most frequent"
    for text in (report.to_text(), repr(report), report.to_html(), report._repr_html_()):
        assert f"{said} class: the difference is 0.048 [-0.015, 0.110]." in " ".join(text.split())
    assert said in report.to_markdown()
    assert report.to_dict()["overall"]["accuracy_gain"]["low"] < 0
    assert "\naccuracy_gain,,0.047" in report.to_csv()
    for counts, relation in (([[270, 39], [0, 91]], "is above"), ([[200, 109], [0, 91]], "is not")):
        assert relation in jm.Report.from_counts(counts).outline().verdict
    assert "is below" in jm.Report.from_counts([[150, 159], [10, 81]]).outline().verdict


def test_the_verdict_knows_a_known_prevalence() -> None:
    """The share of the most frequent class is then an argument, not an estimate."""
    report = report_at_prevalence(jm.Report.from_counts([[90, 10], [3, 47]]), {"0": 0.3, "1": 0.7})
    accuracy, gain = report["accuracy"], report["accuracy_gain"]
    assert numbers_of(gain) == pytest.approx(numbers_of(accuracy) - 0.7)
    assert "is above 0.700" in report.outline().verdict


@pytest.mark.parametrize(
    ("shares", "recalls", "cluster_size", "num_clusters"),
    [
        ([0.5, 0.5], [0.5, 0.5], 1, 200),
        ([0.505, 0.495], [0.02, 0.505 * 0.98 / 0.495], 1, 1000),
        ([0.8, 0.1, 0.1], [0.8, 0.8, 0.8], 1, 300),
        ([0.125] * 8, [0.125] * 8, 1, 160),
        ([0.5, 0.5], [0.5, 0.5], 6, 40),
        ([0.8, 0.2], [0.8, 0.8], 6, 40),
    ],
)
def test_verdicts_are_seldom_false(
    shares: list[float], recalls: list[float], cluster_size: int, num_clusters: int
) -> None:
    """1000 test sets whose accuracy truly equals the largest share: at most 2.5 % of verdicts may
    say "above", and 2.5 % "below". 4.4 % are four standard errors more. With the share as known,
    "above" was said in 7 to 12 %, and "below" in 8 to 44 %.
    """
    assert math.isclose(np.dot(shares, recalls), max(shares))
    rng, k = np.random.default_rng(2), len(shares)
    probabilities: Any = shares
    rates = np.broadcast_to(recalls, (1000, num_clusters, k))
    if cluster_size > 1:
        probabilities = rng.dirichlet(4 * np.array(shares), (1000, num_clusters))
        rates = rng.beta(4 * rates, 4 - 4 * rates)
    support = rng.multinomial(cluster_size, probabilities, size=(1000, num_clusters))
    right = rng.binomial(support, rates)
    counts = np.eye(k, dtype=int) * right[..., None]
    counts += np.roll(np.eye(k, dtype=int), 1, axis=1) * (support - right)[..., None]
    clusters = counts if cluster_size > 1 else [None] * 1000
    gains = [
        accuracy_gain(Evidence(one.sum(0), 0.95, clusters=of_clusters))
        for one, of_clusters in zip(counts, clusters, strict=True)
    ]
    _, low, high = np.array([x.numbers for x in gains]).T
    assert (low > 0).mean() < 0.044
    assert (high < 0).mean() < 0.044


def test_the_calibration_error_has_an_interval_and_says_that_it_is_biased() -> None:
    rng = np.random.default_rng(0)
    prob = rng.dirichlet(np.ones(3), 2000)
    y = (np.log(prob) + rng.gumbel(size=prob.shape)).argmax(1)  # calibrated
    report = jm.report(y, prob.argmax(1), y_prob=prob)
    error = report.overall["calibration_error"]
    expected = jm.top_label(jm.calibration_interval)(y, prob)
    assert (error.numbers, error.method) == (tuple(numbers_of(expected)), "inequalities")
    assert error.low == 0 < error.value
    assert (
        "Calibration error: The value is biased upwards, because chance alone" in report.to_text()
    )
    assert "from two inequalities" in report.to_html()


def test_no_error_seen_does_not_mean_none_to_come() -> None:
    perfect = jm.Report.from_counts(np.diag([9, 8, 7, 0]))
    for name in (
        "balanced_accuracy",
        "macro_f1",
        "weighted_f1",
        "matthews_corrcoef",
        "cohen_kappa",
    ):
        figure = perfect.overall[name]
        assert not math.isnan(figure.low)
        assert 0.5 < figure.low < 0.9
        assert figure.method == "likelihood"
        assert figure.value == figure.high == pytest.approx(1)
    one_class = jm.Report.from_counts([[2, 0], [0, 0]])
    assert one_class.overall["cohen_kappa"].method is None  # undefined
    assert one_class.overall["balanced_accuracy"].low < 0.6
    assert one_class.overall["macro_f1"].method is None  # an average over a single class
    assert "Cohen kappa          -\n" in one_class.to_text()


def test_text_is_readable() -> None:
    """It has the digits that its intervals need, and does not round to 1."""
    text = jm.report(TRUE, PRED).to_text()
    assert max(map(len, text.splitlines())) <= 80
    nearly = jm.Report.from_counts([[99_999, 1], [0, 50_000]]).to_text()
    large = jm.Report.from_counts([[4_200_000, 800_000], [800_000, 4_200_000]]).to_text()
    for written, parts in (
        (text, ["8 examples, 3 classes\n", "bee    3  0.667 .138-.980  0.667 .138-.980"]),
        (text, ["balanced accuracy    0.611", "accuracy gain        0.250 -."]),
        (nearly, ["accuracy             0.999993 .999967-1.000000", " 1.000000 .999940-1.000000 "]),
        (large, ["accuracy             0.84000 .83977-.84023  likelihood"]),
        (large, ["no information rate  0.500\n"]),
    ):
        assert all(part in written for part in parts)


def test_undefined_figures() -> None:
    report = jm.Report.from_counts([[5, 0, 1], [0, 4, 0], [0, 0, 0]])
    recall = report.per_class["recall"][2]
    assert math.isnan(recall.value)
    assert (recall.low, recall.high) == (0, 1)
    assert report.to_dict()["classes"][2]["recall"] == {
        "value": None,
        "low": 0.0,
        "high": 1.0,
        "method": "likelihood",
    }
    assert " - .000-1.000 " in report.to_text()


def test_json_is_valid_and_complete() -> None:
    report = jm.report(TRUE, PRED)
    loaded = json.loads(report.to_json())
    assert loaded == report.to_dict()
    assert loaded["num_examples"] == 8
    assert loaded["confusion_matrix"] == [[1, 1, 0], [0, 2, 1], [1, 0, 2]]
    assert loaded["classes"][1]["name"] == "bee"
    assert loaded["overall"]["accuracy"]["value"] == 0.625


def test_integer_labels() -> None:
    # Classes that occur; negative ids of truth are ignored.
    report = jm.report([3, 7, 7, -1, -100], [3, 7, 3, 3, -100])
    assert report.class_names == ("3", "7")
    np.testing.assert_array_equal(report.counts, [[1, 0], [1, 1]])
    assert report.num_ignored == 2
    assert "3 examples, 2 ignored" in report.to_text()
    named = jm.report(np.array([0, 2, 1]), np.array([0, 2, 2]), class_names=["a", "b", "c"])
    assert named.class_names == ("a", "b", "c")
    np.testing.assert_array_equal(named.counts, [[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    booleans = jm.report(np.array([True, False]), np.array([True, True]))
    np.testing.assert_array_equal(booleans.counts, [[0, 1], [0, 1]])


def test_class_names_set_the_order_of_strings() -> None:
    report = jm.report(["no", "yes"], ["yes", "yes"], class_names=["yes", "no"])
    np.testing.assert_array_equal(report.counts, [[1, 0], [1, 0]])


def test_probabilities_and_weights() -> None:
    prob = np.array([[0.8, 0.2], [0.4, 0.6], [0.7, 0.3]])
    report = jm.report([0, 1, 1], prob.argmax(1), y_prob=prob, sample_weight=[1, 1, 2])
    assert math.isclose(
        report.overall["expected_accuracy"].value, (0.8 + 0.6 + 2 * 0.3) / 4, rel_tol=1e-6
    )
    assert report.overall["accuracy"].value == 0.5
    assert report.num_examples == 4
    surprise = -np.log([0.8, 0.6, 0.3, 0.3])  # weight 2 is the row twice
    loss = report.overall["log_loss"]
    assert math.isclose(loss.value, surprise.mean(), rel_tol=1e-6)
    expected = jm.mean_interval(surprise, transform="log")
    np.testing.assert_allclose(numbers_of(loss), numbers_of(expected), rtol=1e-5)
    assert math.isclose(
        report.overall["brier_score"].value, (0.2**2 + 0.4**2 + 2 * 0.7**2) / 4, rel_tol=1e-6
    )
    gaps = abs(0.2 - 0), abs(0.6 - 1), 2 * abs(0.3 - 1)  # of class 1, each in a bin of its own
    assert math.isclose(report.overall["calibration_error"].value, sum(gaps) / 4, rel_tol=1e-6)


def test_areas_have_intervals() -> None:
    rng = np.random.default_rng(0)
    y, prob = rng.integers(0, 3, 300), rng.dirichlet(np.ones(3), 300)
    prob[np.arange(300), y] += 0.3
    prob /= prob.sum(1, keepdims=True)
    areas = jm.report(y, prob.argmax(1), y_prob=prob).per_class["roc_auc"]
    for i, area in enumerate(areas):
        expected = jm.delong_interval(y == i, prob[:, i])
        assert area.method == "score"
        np.testing.assert_allclose(area.value, expected.value, atol=1e-3)  # 4096 bins
        # Wider, by what the bins do not tell.
        assert area.low <= expected.low <= area.low + 3e-3
        assert area.high - 3e-3 <= expected.high <= area.high


def test_an_area_without_a_mistake_may_have_some_to_come() -> None:
    prob = np.concatenate([np.linspace(0.01, 0.4, 12), np.linspace(0.6, 0.99, 7)])
    area = jm.report(
        [0] * 12 + [1] * 7, (prob > 0.5).astype(int), y_prob=np.stack([1 - prob, prob], 1)
    ).per_class["roc_auc"][1]
    assert (area.value, area.high) == (1, 1)
    # Wilson's lower end of N successes in N examples, 2 / N = 1/7 + 1/12.
    number = 2 / (1 / 7 + 1 / 12)
    assert math.isclose(area.low or 0, number / (number + 1.959964**2), rel_tol=1e-6)


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
def test_sums_of_probabilities_of_batches_are_those_of_all(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    y, prob = rng.integers(-1, 7, 900), rng.dirichlet(np.full(7, 0.3), 900)
    prob[y < 0] = np.nan
    weights = rng.integers(0, 3, 900).astype(float) if weighted else None
    options: dict[str, Any] = {"sample_weight": weights}
    sums = None
    for part in (slice(0, 100), slice(100, 100), slice(100, 900)):
        of_part = None if weights is None else weights[part]
        sums = probability_sums(y[part], prob[part], of_part, sums)
    assert sums is not None
    kept = np.where(y[:, None] < 0, 1 / 7, prob)
    np.testing.assert_allclose(sums.soft_counts, jm.soft_confusion_matrix(y, kept, **options))
    np.testing.assert_allclose(
        sums.judged_bins, jm.top_label(jm.calibration_bins)(y, kept, **options)
    )
    for c in range(7):
        expected = jm.score_histogram(
            np.where(y < 0, -1, y == c),
            np.log(kept[:, c]) - np.log(np.delete(kept, c, 1).sum(1)),
            scale="logit",
            **options,
        )
        # A score at an edge may fall to its other side by rounding.
        assert np.abs(sums.score_histogram[c] - expected).sum() <= 4
    loss = jm.log_loss(y, kept, **options)
    np.testing.assert_allclose(sums.log_loss[1] / sums.log_loss[0], loss, rtol=1e-9)


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
    areas = jm.report(
        y, np.ones(400, int), y_prob=np.stack([p, 1 - p], 1), class_names=["a", "b"]
    ).per_class["roc_auc"]
    exact = sk.roc_auc_score(y, -p)
    for area in areas:
        assert area.value == pytest.approx(exact, abs=2e-3)
        assert area.low < exact < area.high


def test_log_loss_is_that_of_the_precision_given() -> None:
    prob = np.array([[1e-12, 1 - 1e-12], [0.3, 0.7], [1.0, 0.0]])
    for dtype in (np.float64, np.float32):
        given = prob.astype(dtype)
        expected = sk.log_loss([0, 1, 1], given)
        assert jm.report([0, 1, 1], [1, 1, 0], y_prob=given).overall[
            "log_loss"
        ].value == pytest.approx(expected, rel=1e-6)


def test_a_class_that_was_never_right_may_be() -> None:
    report = jm.Report.from_counts([[1900, 0], [100, 0]])
    assert report.overall["macro_f1"].high > 0.5  # F1 of class 1 may be up to 0.05
    assert report.overall["cohen_kappa"].high > 0.03


def test_weights_of_float16_add_up_beyond_its_range() -> None:
    rng = np.random.default_rng(0)
    true, prob = rng.integers(0, 2, 2000), rng.dirichlet([1, 1], 2000)
    reports = [
        jm.report(
            true,
            prob.argmax(1),
            y_prob=prob,
            sample_weight=np.full(2000, 100, dtype),
            clusters=np.arange(2000) // 20,
        )
        for dtype in (np.float16, np.float64)
    ]
    assert reports[0].to_dict() == reports[1].to_dict()


def test_sums_of_weights_have_intervals_by_the_delta_method() -> None:
    counts = np.array([[9.5, 1], [3, 7]])
    report = jm.Report.from_counts(counts)
    expected = jm.interval(jm.macro(jm.f1), counts, method=jm.Delta("logit"))
    figure = report.overall["macro_f1"]
    assert (figure.numbers, figure.method) == (tuple(numbers_of(expected)), "delta")
    assert jm.Report.from_counts(np.diag([9.5, 7])).overall["macro_f1"].method is None


def numbers_of(x: Any) -> np.ndarray:
    """The value and the ends of a reported value or of an estimate."""
    return np.array([x.value, x.low, x.high], float)


def test_weights_of_clusters_may_have_whole_sums() -> None:
    y_true, y_pred, weights = [0, 1, 0, 1] * 20, [0, 1, 1, 1] * 20, [1.5, 2.5, 1.5, 2.5] * 20
    report = jm.report(y_true, y_pred, clusters=np.arange(80) // 2, sample_weight=weights)
    np.testing.assert_array_equal(report.counts, [[30, 30], [0, 100]])
    assert report.overall["macro_f1"].method == "delta"


def test_the_method_of_a_report_is_a_value() -> None:
    for method in (jm.Delta("logit"), jm.Bootstrap(3, "percentile", 200), jm.Posterior(1)):
        report = jm.report(TRUE, PRED, method=method)
        expected = jm.interval(jm.weighted(jm.f1), report.counts, method=method)
        figure = report.overall["weighted_f1"]
        assert (figure.numbers, figure.method) == (tuple(numbers_of(expected)), method.name)


def test_one_sample_has_one_interval() -> None:
    """Accuracy of one classifier, of a pair, and of `interval`; of groups and `compare_groups`."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 150)
    pred, other = (np.where(rng.random(150) < 0.95, truth, 0) for _ in range(2))
    counts = jm.confusion_matrix(truth, pred)
    found = jm.report(truth, pred)
    compared = jm.compare_predictions(jm.accuracy, truth, pred, other)
    paired = jm.comparison_report(truth, pred, other)["accuracy"].a
    for x in (compared.a, paired, jm.interval(jm.accuracy, counts)):
        np.testing.assert_allclose(numbers_of(found["accuracy"]), numbers_of(x), atol=1e-9)
    for name, metric in (("recall", jm.recall), ("precision", jm.precision), ("f1", jm.f1)):
        expected = jm.interval(metric, counts)
        shown = np.array([x.numbers for x in found[name].values()]).T
        np.testing.assert_allclose(shown, numbers_of(expected), atol=1e-5)
    # One large group, and nine small groups, of which one has three mistakes: at the corrected
    # level, Wilson's intervals "show" that they differ.
    sizes, wrong = [5000] + 9 * [15], [100] + 8 * [0] + [3]
    groups, place = np.repeat(np.arange(10), sizes), np.concatenate([np.arange(n) for n in sizes])
    pred = np.where(place < np.repeat(wrong, sizes), 1 - place % 2, place % 2)
    of_groups = jm.report(place % 2, pred, groups=groups)
    difference = of_groups.disparities["accuracy", ""]
    tables = jm.confusion_matrix(place % 2, pred, groups=groups)
    expected = jm.compare_groups(jm.accuracy, tables)
    np.testing.assert_allclose(numbers_of(difference), numbers_of(expected), atol=1e-9)
    assert difference.low == 0


def test_a_report_of_clusters() -> None:
    rng = np.random.default_rng(0)
    truth, patients = rng.integers(0, 3, 600), np.repeat([f"p{i}" for i in range(30)], 20)
    good = np.repeat(rng.random(30) < 0.8, 20)
    pred = np.where(good, truth, rng.integers(0, 3, 600))
    report, alone = jm.report(truth, pred, clusters=patients), jm.report(truth, pred)
    np.testing.assert_array_equal(report.counts, alone.counts)
    assert report.to_text().startswith("600 examples in 30 clusters, 3 classes\n")
    assert report.to_dict()["num_clusters"] == 30
    assert "600 examples in 30 clusters" in report.to_html()
    tables = jm.confusion_matrix(truth, pred, groups=np.repeat(np.arange(30), 20))
    expected = jm.interval(jm.macro(jm.f1), tables, cluster_axis=0)
    figure = report.overall["macro_f1"]
    assert (figure.low, figure.high) == (float(expected.low), float(expected.high))
    by_likelihood: Any = {"cluster_axis": 0, "method": "likelihood"}
    right = np.diagonal(tables, axis1=1, axis2=2)
    recall = jm.proportion_interval(right, tables.sum(2), **by_likelihood)
    assert [x.low for x in report.per_class["recall"]] == recall.low.tolist()
    for name, x in report.overall.items():
        if not math.isnan(x.low):
            widths = [np.subtract(y.high, y.low) for y in (x, alone.overall[name])]
            assert widths[0] > 2 * widths[1]


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
    losses = -np.log(p[np.arange(595), y])
    expected: dict[str, Any] = {"log_loss": jm.mean_interval(losses, clusters=ids, transform="log")}
    squares = ((p - np.eye(k)[y]) ** 2).sum(1) / (2 if k == 2 else 1)
    expected["brier_score"] = jm.mean_interval(
        squares, clusters=ids, bounds=(0, 1 if k == 2 else 2)
    )
    of_event = (y, p[:, 1]) if k == 2 else (p.argmax(1) == y, p.max(1))
    expected["calibration_error"] = jm.calibration_interval(*of_event, clusters=ids)
    for name, estimate in expected.items():
        np.testing.assert_allclose(
            numbers_of(report.overall[name]), numbers_of(estimate), rtol=1e-9
        )
    for i, area in enumerate(report.per_class["roc_auc"]):
        log_odds = np.log(p[:, i]) - np.log1p(-p[:, i])
        exactly = jm.delong_interval(y == i, log_odds, clusters=ids)
        np.testing.assert_allclose(numbers_of(area), numbers_of(exactly), rtol=1e-9)
    for name in (*expected, "expected_accuracy"):
        of_clusters, of_examples = report.overall[name], alone.overall[name]
        np.testing.assert_allclose(of_clusters.value, of_examples.value, rtol=1e-9)
        assert of_clusters.high > of_examples.high
    assert "jackknife" in report.to_html()
    weighted = jm.report(
        truth, favourite, **options, clusters=patients, sample_weight=np.full(600, 2.0)
    )
    assert math.isnan(weighted.per_class["roc_auc"][0].low)
    np.testing.assert_allclose(
        numbers_of(weighted.overall["log_loss"]), numbers_of(report.overall["log_loss"]), rtol=1e-9
    )


def confident_sums(y: np.ndarray, wrong: np.ndarray, k: int) -> ProbabilitySums:
    """Sums of probabilities of .95 for the answer, the others alike."""
    answered = (y + wrong) % k
    prob = np.full((len(y), k), 0.05 / (k - 1))
    prob[np.arange(len(y)), answered] = 0.95
    return probability_sums(y, prob, None)


@pytest.mark.parametrize("k", [2, 3])
def test_brier_scores_of_a_report_know_of_mistakes_that_were_not_seen(k: int) -> None:
    """They have the likelihood interval of means within bounds, but for the width of the bins."""
    rng, names = np.random.default_rng(0), tuple("abc"[:k])
    y, worst = rng.integers(0, k, 300), 1 if k == 2 else 2
    prob = rng.dirichlet(np.full(k, 0.3), 300)
    found = probability_findings(probability_sums(y, prob, None), names, 0.95)
    scores = ((prob - np.eye(k)[y]) ** 2).sum(1) * worst / 2
    expected = jm.mean_interval(scores, bounds=(0, worst))
    score = found.overall["brier_score"]
    assert numbers_of(score) == pytest.approx(numbers_of(expected), rel=1e-3)
    assert score.method == "likelihood"
    sure = probability_findings(confident_sums(y, y < 0, k), names, 0.95).overall["brier_score"]
    assert sure.high > sure.value + 1 / 300


def test_a_log_loss_that_few_examples_carry_is_noted() -> None:
    """2 of 300 answers are wrong: `(sum x)^2 / sum x^2` of the losses is 24."""
    y, wrong = np.arange(300) % 2, np.arange(300) < 2
    loss = probability_findings(confident_sums(y, wrong, 2), ("a", "b"), 0.95).overall["log_loss"]
    note = "a few examples make up most of the loss (effective number of examples: 24 of 300)"
    assert (loss.note or "").startswith(note)
    many = confident_sums(y, np.arange(300) % 3 == 0, 2)
    assert probability_findings(many, ("a", "b"), 0.95).overall["log_loss"].note is None
    prob = np.where(np.eye(2)[y ^ wrong] == 1, 0.95, 0.05)
    report = jm.report(y, y ^ wrong, y_prob=prob, clusters=np.arange(300) // 4)
    assert report.overall["log_loss"].note == loss.note


@pytest.mark.slow
def test_an_interval_of_a_report_covers_at_chance() -> None:
    """Ten classes, 100 examples: 300 intervals; fewer than 91 % cover with probability 0.1 %."""
    drawn = np.random.default_rng(5).multinomial(100, np.full(100, 0.01), 300).reshape(-1, 10, 10)
    first = overall_values(Evidence(drawn[0], 0.95))
    for name, truth in {"cohen_kappa": 0.0, "balanced_accuracy": 0.1}.items():
        values = [Evidence(counts, 0.95).value(name) for counts in drawn]
        assert values[0] == first[name]
        low, high = np.array([[x.low, x.high] for x in values], float).T
        assert ((low <= truth) & (truth <= high)).mean() >= 0.91


def test_a_class_without_examples_does_not_count() -> None:
    two, three = (jm.Report.from_counts(np.pad([[9, 1], [3, 7]], (0, extra))) for extra in (0, 1))
    numbers = [x.overall["balanced_accuracy_posterior"].numbers for x in (two, three)]
    assert numbers[0] == pytest.approx(numbers[1])


def test_unsigned_counts_are_subtracted_as_numbers() -> None:
    counts = np.full((12, 12), 0, np.uint8) + 50 * np.eye(12, dtype=np.uint8)
    counts[1, 2], counts[3, 4] = 7, 30
    report = jm.Report.from_counts(counts)
    assert report.counts.dtype == np.int64
    confusions = pages._worst_confusions(report.counts, report.class_names, 0.95)
    assert [x[:3] for x in confusions] == [("3", "4", 30), ("1", "2", 7)]


def test_rounded_probabilities_and_those_of_ignored_rows_are_taken() -> None:
    prob = np.random.default_rng(0).dirichlet(np.ones(10), 200).round(3)
    assert jm.report(prob.argmax(1), prob.argmax(1), y_prob=prob).num_examples == 200
    with_gap = np.array([[0.6, 0.4], [np.nan, np.nan], [0.1, 0.9]])
    assert jm.report([0, -1, 1], [0, 0, 1], y_prob=with_gap).num_examples == 2


def test_a_mean_named_as_a_figure_stands_beside_it() -> None:
    evaluator = jm.evaluator(
        jm.count_metrics({"counts": lambda counts: counts}, num_classes=2), jm.mean_of("accuracy")
    )
    batch = {
        "y_true": np.array([0, 1, 1]),
        "y_pred": np.array([0, 1, 1]),
        "accuracy": np.array([0.1, 0.2, 0.3]),
    }
    report = jm.Report.from_state(evaluator.update(evaluator.init(), **batch))
    assert report.overall["accuracy"].value == 1
    assert report.overall["mean_accuracy"].value == pytest.approx(0.2)


def test_means_of_groups_of_a_state() -> None:
    evaluator = jm.evaluator(
        jm.count_metrics({"counts": lambda counts: counts}, num_classes=2),
        jm.mean_of("loss", groups="dataset", num_groups=2),
    )
    batch = {"y_true": np.array([0, 1, 1, 1]), "y_pred": np.array([0, 1, 1, 0])}
    batch |= {"loss": np.array([1.0, 2.0, 3.0, 10.0]), "dataset": np.array([0, 0, 0, 1])}
    report = jm.Report.from_state(evaluator.update(evaluator.init(), **batch))
    assert report.overall["loss"].value == 4
    assert report.overall["macro_loss"].value == 6
    assert "macro loss" in report.to_text().lower()


Y, PROB = [0, 1], np.eye(2)
MANY: Any = np.arange(5000)
REFUSALS: list[tuple[Any, str]] = [
    (lambda: jm.report(["a", "a"], ["a", "a"]), "A report needs at least two classes, got 1"),
    (lambda: jm.report([0.1, 0.9], Y), "labels must be all strings or all integers, but y_true"),
    (lambda: jm.report([1, 2], ["1", "2"]), r"strings or all integers, but y_true\[0\] is 1"),
    (
        lambda: jm.report(["ant", "bee"], ["ant", "cow"], class_names=["ant", "bee"]),
        r"y_pred\[1\] is 'cow', which is not one of class_names: ant, bee",
    ),
    (
        lambda: jm.Report.from_counts(PROB, class_names=[*"abc"]),
        "class_names must have 2 names, got 3",
    ),
    (
        lambda: jm.Report.from_counts(np.ones((2, 3))),
        r"a single square confusion matrix of shape \(K, K\) or.*, got \(2, 3\)",
    ),
    *(
        (
            lambda x=bad: jm.Report.from_counts(np.array([[1, x], [0, 1]])),
            r"counts\[0, 1\] is .*, expected a number from 0 to 1e30",
        )
        for bad in (-1, np.nan, np.inf)
    ),
    (lambda: jm.Report.from_counts(PROB * 1j), "counts must hold real numbers, got dtype complex"),
    (
        lambda: jm.Report.from_counts(PROB, soft_counts=np.eye(5)),
        r"soft_counts must have shape \(K, K\) = \(2, 2\)",
    ),
    (lambda: jm.report([-1, -1], Y), "no examples to report on"),
    (lambda: jm.report([], []), "no examples to report on"),
    (lambda: jm.report([0, 1, 1], Y), r"with the same number of examples n, got \(3,\), \(2,\)"),
    (
        lambda: jm.report(Y, Y, sample_weight=[-1.0, 1.0]),
        r"sample_weight\[0\] is -1.0, expected a finite number",
    ),
    (
        lambda: jm.report(Y, Y, sample_weight=["a", "b"]),
        "sample_weight must hold real numbers, got dtype object",
    ),
    (
        lambda: jm.report(Y, Y, y_prob=[[5.0, -3.0], [0.0, 1.0]]),
        r"y_prob\[0\] is \[ 5. -3.\], expected probabilities that sum to 1",
    ),
    (lambda: jm.report(Y, Y, y_prob=0.3), r"y_prob must have shape \(n, K\) = \(2, K\), got \(\)"),
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
            lambda: jm.report([2**40], [0], class_names=range(5000)),  # type: ignore[arg-type]
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
        lambda: jm.report(Y * 9, Y * 9, groups=["a", None] * 9),
        r"groups\[1\] is missing .* Leave out examples without an id",
    ),
    (
        lambda: jm.report(Y * 9, Y * 9, groups=[0, "0"] * 9),
        "printed alike. Convert all ids to strings. The ids are 0, '0'",
    ),
    (lambda: jm.multilabel_report([[1, 0]], [[1, 2]]), r"y_pred\[0, 1\] is 2, expected 0 or 1"),
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
        "there are no examples to report on",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_probabilities_of_few_digits_are_taken() -> None:
    """As `log_loss` takes them: rows of bfloat16 sum to 1 but for its rounding."""
    rng = np.random.default_rng(0)
    y_prob = jnp.asarray(rng.dirichlet(np.ones(3), 200), jnp.bfloat16)
    y_true = rng.integers(0, 3, 200)
    report = jm.report(y_true, np.asarray(y_prob).argmax(1), y_prob=y_prob)
    written_out = np.log(np.asarray(y_prob, float)[np.arange(200), y_true])
    assert math.isclose(report.overall["log_loss"].value, -written_out.mean(), rel_tol=1e-6)


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
    balanced = report.overall["balanced_accuracy"]
    assert math.isclose(balanced.value, np.mean(recalls), rel_tol=1e-12)
    assert math.isnan(balanced.low)
    assert "if there are more than 1024 classes" in " ".join(report.to_text().split())
    difference = comparison.figures["accuracy"].difference
    assert math.isclose(difference.value, right.mean() - (true == other).mean(), abs_tol=1e-12)
    assert math.isnan(difference.low)
    assert "nan" not in comparison.to_text() + comparison.to_markdown()


@pytest.mark.quick
def test_totals_beyond_int64() -> None:
    report = jm.Report.from_counts([[5 * 10**18, 10], [20, 5 * 10**18]])
    assert math.isclose(report.num_examples, 1e19, rel_tol=1e-15)
    assert report.to_text().startswith("1e+19 examples")
    full = jm.Report.from_counts(np.full((2, 2), 2**63 - 1))
    assert (full.num_examples, full.support.tolist()) == (2.0**65, [2.0**64] * 2)
    assert math.isclose(full.overall["accuracy"].value, 0.5)
    clusters = np.full((40, 2, 2), 2**60)
    assert jm.Report.from_counts(clusters).num_examples == 160 * 2.0**60
    assert jm.Report.from_counts([[2**53 + 1, 0], [0, 1]]).num_examples == 2**53 + 2


@pytest.mark.filterwarnings("error")
def test_infinite_ends_are_null_in_json() -> None:
    report = jm.report([0, 1], [0, 0], y_prob=[[0.9, 0.1], [0.8, 0.2]], level=0.9999)
    assert report["log_loss"].high == np.inf
    written = json.loads(report.to_json())["overall"]["log_loss"]
    assert (written["high"], written["value"]) == (None, report["log_loss"].value)
    assert report.to_csv().count(",inf,") == 1


def test_labels_without_a_class_name_or_a_column_of_probabilities_raise() -> None:
    labels, prob = np.array([0, 1, 3, 3]), np.full((4, 3), 1 / 3)
    zeros = np.zeros(4, int)
    message = r"is 3, but class ids must lie in \[0, 3\)"
    with pytest.raises(ValueError, match=rf"y_true\[2\] {message}"):
        jm.report(labels, zeros, y_prob=prob)
    with pytest.raises(ValueError, match=rf"y_pred\[2\] {message}"):
        jm.report(zeros, labels, class_names=["a", "b", "c"])
    with pytest.raises(ValueError, match=rf"y_pred_b\[2\] {message}"):
        jm.comparison_report(zeros, zeros, labels, y_prob_a=prob, y_prob_b=prob)


def test_ids_beyond_int64() -> None:
    report = jm.report(np.array([2**60, 2**60 + 1, 5], np.uint64), np.array([2**60 + 1, 2**60, 5]))
    assert report.overall["accuracy"].value == pytest.approx(1 / 3)


def test_ignored_examples_count_nowhere() -> None:
    report = jm.report([0, 1, -1], [0, 1, -100], y_prob=[[1, 0], [0, 1], [1, 0]])
    assert report.num_ignored == 1
    assert report.overall["accuracy"].value == report.overall["expected_accuracy"].value == 1


def test_a_prediction_that_is_no_class_is_no_ignored_example() -> None:
    """Of a classifier that does not answer; as strings, it is a class that is never right."""
    y_true, y_pred = np.array([0, 1, 1, -1]), np.array([-1, 1, -2, -1])
    for names in (None, ["a", "b"]):
        options: Any = {"class_names": names}
        with pytest.raises(
            ValueError, match=r"y_pred\[0\] is -1, but class ids must .*counts as a wr"
        ):
            jm.report(y_true, y_pred, **options)
        with pytest.raises(ValueError, match=r"y_pred_b\[1\] is -2, but class ids must lie in"):
            jm.comparison_report(y_true[:2], y_true[:2], y_pred[[1, 2]], **options)
    evaluator = jm.evaluator(jm.count_metrics({}, num_classes=2))
    state = evaluator.update(evaluator.init(), y_true=y_true, y_pred=y_pred)
    with pytest.warns(UserWarning, match="2 examples have a prediction that is no class"):
        assert jm.Report.from_state(state).num_ignored == 1
    strings = jm.report(list(map(str, y_true[:3])), list(map(str, y_pred[:3])))
    assert strings["accuracy"].value == pytest.approx(1 / 3)
    with pytest.warns(UserWarning, match="but -1 is also predicted for some of them"):
        jm.report([-1, -1, 0, 1], [-1, 1, 0, 1])


def test_a_perfect_weighted_classifier_has_accuracy_one() -> None:
    # Whose trace and total round apart.
    weights = (np.random.default_rng(3).random(17) * 10).astype(np.float32)
    report = jm.report(np.arange(17), np.arange(17), sample_weight=weights)
    assert report.overall["accuracy"].value == report.overall["accuracy"].high == 1


AWKWARD = ["a|b*", 'say "hi", x', "two\nlines"]


def test_csv_has_a_line_for_each_value() -> None:
    report = jm.Report.from_counts(np.diag([3, 2, 0]), class_names=AWKWARD, level=0.9)
    lines = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
    expected = {(name, ""): x for name, x in report.overall.items()} | {
        (name, AWKWARD[i]): x for name, xs in report.per_class.items() for i, x in enumerate(xs)
    }
    assert [(line["name"], line["class"]) for line in lines] == list(expected)
    for line, x in zip(lines, expected.values(), strict=True):
        numbers = [float(line[key] or "nan") for key in ("value", "low", "high")]
        np.testing.assert_array_equal(numbers, x.numbers)  # NaN for None
        level_and_method = ("0.9", x.method) if x.method else ("", "")
        assert (line["level"], line["method"]) == level_and_method


def test_csv_of_odd_names_can_be_read() -> None:
    """No cell is a formula, and one apostrophe less gives the name."""
    names = ["a\rb", "c,d", 'e"f', "g\nh", "=1+1", "+1", "-1", "@x", "\tx", "\rx", "\uff1d1", "'=1"]
    records = [{"value": -1.5, "class": name} for name in ["", *names]]
    for report in (jm.report(names * 9, names * 9), TabularReport(Outline(""), {}, records)):
        rows = list(csv.reader(io.StringIO(report.to_csv(), newline="")))
        assert len({len(row) for row in rows}) == 1
        assert not any(row[1].startswith(tuple("=+-@\t\r\uff1d")) for row in rows)
        assert {row[1].removeprefix("'") for row in rows[1:]} == {"", *names}
    assert rows[1] == ["-1.5", ""]


def test_csv_of_a_comparison() -> None:
    report = jm.comparison_report(TRUE, PRED, TRUE)
    lines = list(csv.DictReader(io.StringIO(report.to_csv())))
    assert [line["classifier"] for line in lines] == ["A", "B", "A - B"] * len(report.figures)
    accuracy = report.figures["accuracy"]
    for line, x in zip(lines, accuracy.systems.values(), strict=False):
        assert (line["name"], float(line["value"]), line["method"]) == (
            "accuracy",
            x.value,
            x.method,
        )
    assert float(lines[2]["probability_better"]) == accuracy.probability_better
    assert lines[0]["probability_better"] == ""


def cells_of(table: str) -> list[list[str]]:
    """The cells of a table of Markdown, whose escaped bars separate nothing."""
    return [re.split(r" (?<!\\)\| ", line[2:-2]) for line in table.splitlines()]


def test_markdown_is_made_of_tables() -> None:
    report = jm.Report.from_counts([[9, 1, 0], [3, 7, 0], [0, 0, 5]], class_names=AWKWARD)
    heading, verdict, overall, classes = report.to_markdown().rstrip("\n").split("\n\n")
    assert heading == "25 examples, 3 classes. In parentheses: 95 % intervals."
    assert verdict.startswith(r"Accuracy 0.840 \[0.654, 0.948\] is above 0.400, the accuracy")
    assert ["accuracy", "0.840", "0.654 to 0.948", "likelihood"] in cells_of(overall)
    rows = cells_of(classes)
    assert {len(row) for row in rows} == {6}
    assert [row[0] for row in rows[2:]] == [r"a\|b\*", 'say "hi", x', r"two\\nlines"]
    assert [row[1] for row in rows[2:]] == ["10", "10", "5"]

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
    good, worse = y.copy(), y.copy()
    good[:10], worse[:60] = 1 - good[:10], 1 - worse[:60]
    better = jm.comparison_report(y, good, worse)
    d = better["macro_f1"].difference
    assert f"A is better: its macro F1 is higher by {d:.3f}." in better.to_text()
    other = jm.comparison_report(y, worse, good).to_text()
    assert f"B is better: its macro F1 is higher by {d:.3f}." in other

    good[200:206] = 1 - good[200:206]
    alike = y.copy()
    alike[390:] = 1 - alike[390:]
    told = jm.comparison_report(y, good, alike)
    paired = jm.paired_confusion_matrix(y, good, alike, num_classes=2)
    shown = jm.detectable_difference(jm.macro(jm.f1), paired, 400)
    assert f"400 examples like these show a difference of {shown:.2g}, and 1600" in " ".join(
        told.to_text().split()
    )
    assert "A and B are equivalent: macro F1 of A minus macro F1 of B is" in " ".join(
        jm.comparison_report(y, good, alike, rope=0.1).to_text().split()
    )
    no_difference = jm.comparison_report(y, good, good).to_text()
    assert "With 80 %" not in no_difference


def test_a_report_of_groups() -> None:
    """Groups are reported on by themselves; their greatest difference by MOVER, of all pairs."""
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
    values = []
    for name in report.groups:
        rows = sites == name
        values.append(jm.report(y[rows], pred[rows], **options, level=1 - 0.05 / 3)["accuracy"])
    lows = [
        a.value - b.value - math.hypot(a.value - a.low, b.high - b.value)
        for a in values
        for b in values
        if a is not b
    ]
    disparity = report.disparities["accuracy", ""]
    assert disparity.value == pytest.approx(max(map(float, values)) - min(map(float, values)))
    assert (disparity.low, disparity.high) == pytest.approx((max(0, *lows), -min(lows)))
    assert "Disparities" in report.to_text()
    assert "<h2>Disparities</h2>" in report.to_html()
    assert f"None of {len(report.disparities)} values is shown to differ" in report.to_text()
    worse = np.where((sites == "west") & (y >= 0), (y + 1) % 3, y)
    differing = jm.report(y, worse, groups=sites.tolist(), **options)
    shown = sum(x.low > 0 for x in differing.disparities.values())
    assert f"{shown} of {len(differing.disparities)} values are shown to" in differing.to_text()
    alone = jm.report(y, pred, groups=["x"] * 300, **options)
    assert alone.outline().verdict == ""
    clustered = jm.report(y, pred, groups=np.arange(300) % 2, clusters=np.arange(300) // 5)
    assert clustered.groups["1"].num_clusters == 59  # all of one is ignored


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_a_multilabel_report_of_any_number_of_labels(number: int) -> None:
    """The error of the Hamming loss is the error of the mean share of wrong labels."""
    rng = np.random.default_rng(number)
    true = rng.integers(0, 2, (150, number))
    pred = np.where(rng.random((150, number)) < 0.8, true, 1 - true)
    report = jm.multilabel_report(true, pred)
    shares = (true != pred).mean(1)
    loss = report["hamming_loss"]
    assert loss.value == pytest.approx(shares.mean())
    assert loss.standard_error == pytest.approx(shares.std(ddof=1) / math.sqrt(150), rel=1e-6)
    names = [x["evaluation_name"] for x in json.loads(report.to_every_eval_ever()).popitem()[1]]
    assert len(set(names)) == len(names) == 4 + 4 * number
    assert f"recall [{number - 1}]" in names


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
    def _(statistic: Total, table: np.ndarray, found: ClassValues, level: float) -> Findings:
        return Findings({"total_cost": exactly(table)})

    assert jm.Report.from_state(state).overall["total_cost"].value == 3.5


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
    accuracy = report.figures["accuracy"]
    np.testing.assert_allclose(numbers_of(accuracy.difference), numbers_of(expected.difference))
    np.testing.assert_allclose(accuracy.probability_equivalent, expected.probability_equivalent)
    assert accuracy.difference.method == "likelihood"
    assert accuracy.a == jm.report(truth, a).overall["accuracy"]
    assert (report.num_examples, report.num_ignored, report.num_classes) == (300, 1, 3)
    assert report.only_right == (
        ((a == truth) & (b != truth)).sum(),
        ((a != truth) & (b == truth)).sum(),
    )
    np.testing.assert_allclose(report.p_value, jm.mcnemar(paired).p_value, rtol=1e-5)
    loaded = json.loads(report.to_json())
    assert loaded == report.to_dict()
    assert (
        loaded["figures"]["macro_f1"]["difference"]["value"]
        == report.figures["macro_f1"].difference.value
    )
    text = report.to_text()
    assert text.startswith("300 examples, 1 ignored, 3 classes\nA  first\nB  second\n")
    assert "confidence A > B  ±0.02\n" in text
    assert "±0.02: confidence that A - B is between these limits." in text
    assert max(map(len, text.splitlines())) <= 100
    same = jm.comparison_report(truth, a, a).figures["matthews_corrcoef"]
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
    report = jm.comparison_report(y, *preds, **options)
    assert report.num_ignored == 2
    reports = [jm.report(y, pred, y_prob=prob) for pred, prob in zip(preds, probs, strict=True)]
    for i, (alone, system) in enumerate(zip(reports, "ab", strict=True)):
        for name in ("accuracy", "log_loss", "brier_score"):
            value = getattr(report[name], system).value
            np.testing.assert_allclose(value, alone.overall[name].value, rtol=1e-3)
        area = getattr(report["roc_auc_1"], system)
        np.testing.assert_allclose(area.value, alone.per_class["roc_auc"][1].value, atol=2e-3)
        assert report.score_histograms is not None
        assert report.calibration_bins is not None
        assert alone.score_histogram is not None
        assert alone.calibration_bins is not None
        np.testing.assert_array_equal(report.score_histograms[i], alone.score_histogram)
        np.testing.assert_array_equal(report.calibration_bins[i], alone.calibration_bins)
    sites = np.arange(302) // 4
    clustered = jm.comparison_report(y, *preds, clusters=sites, **options)["log_loss"]
    expected = jm.mean_interval(
        *(-np.log(prob[np.arange(300), y[:300]]) for prob in probs[:1]),
        clusters=sites[:300],
        transform="log",
    )
    np.testing.assert_allclose(numbers_of(clustered.a), numbers_of(expected))
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
    np.testing.assert_array_equal(result.counts, alone.counts)
    assert result.only_right == alone.only_right
    numbers = np.repeat(np.arange(30), 20)
    cubes = jm.paired_confusion_matrix(truth, a, b, num_classes=3, groups=numbers)
    assert result.p_value == jm.mcnemar(cubes, cluster_axis=0).p_value > 1000 * alone.p_value
    for name, metric in (("accuracy", jm.accuracy), ("cohen_kappa", jm.cohen_kappa)):
        expected = jm.compare(metric, cubes, cluster_axis=0).difference
        figure = result.figures[name]
        np.testing.assert_allclose(numbers_of(figure.difference), numbers_of(expected), rtol=1e-9)
        of_a = jm.report(truth, a, class_names=[*"xyz"], clusters=sites).overall[name]
        np.testing.assert_allclose(numbers_of(figure.a), numbers_of(of_a), rtol=1e-9)


def test_every_format_has_a_method_and_a_suffix() -> None:
    report = jm.report(TRUE, PRED)
    written = {suffix: write(report, "title") for suffix, write in FORMATS.items()}
    methods = [x for x in dir(report) if x.startswith("to_") and x not in ("to_dict", "to_frame")]
    assert len(methods) == len({*written.values()}) == len(FORMATS)
    page = report.to_html(title="title")
    assert {getattr(report, x)() for x in methods} - {*written.values()} == {report.to_html()}
    assert written[".html"] == page
    results = json.loads(written[".eee"])["evaluation_results"]
    accuracy = {"lower": report["accuracy"].low, "upper": report["accuracy"].high}
    assert results[0]["evaluation_name"] == "accuracy"
    assert (
        accuracy.items()
        <= results[0]["score_details"]["uncertainty"]["confidence_interval"].items()
    )
    with pytest.raises(ValueError, match="this report has no values"):
        TabularReport(Outline(""), {}, []).to_every_eval_ever()
