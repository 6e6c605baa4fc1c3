"""Differences and ratios of groups, and the metrics of several tables that other methods refuse."""

from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm
from jaxmetrics.comparisons.disparities import (
    greatest_difference,
    pairwise_level,
)
from tests.estimates import ends, parts

GROUPS = np.array([[[40, 10], [6, 24]], [[70, 5], [5, 20]], [[25, 15], [9, 31]]])
METHODS = [
    jm.Likelihood(),
    jm.Delta("logit"),
    jm.Bootstrap(0, num_samples=200),
    jm.Bootstrap(0, "percentile", 200),
]


def by_wilson(successes: Any, trials: Any, level: float) -> jm.Estimate:
    return jm.proportion_interval(np.asarray(successes), np.asarray(trials), level=level)


@pytest.mark.quick
def test_the_greatest_difference_of_two_groups_is_that_of_newcombe() -> None:
    """Table II (a) of Newcombe (1998), Statistics in Medicine 17, method 10: 56/70 and 48/80."""
    for order in ([0, 1], [1, 0]):
        share = by_wilson(np.array([56, 48])[order], np.array([70, 80])[order], 0.95)
        found = greatest_difference(share)
        assert_allclose(parts(found)[:3], [0.2, 0.0524, 0.3339], atol=5e-5)
    assert pairwise_level(0.95, 2) == pytest.approx(0.95)
    assert pairwise_level(0.95, 5) == pytest.approx(1 - 0.05 / 10)


def of_pairs(groups: np.ndarray, ratio: bool) -> tuple[float, float]:
    """Compare each group with each other, by the formulas as they were published."""
    estimates = [jm.interval(jm.binary(jm.f1), x, level=1 - 0.05 / 3) for x in groups]
    limits = []
    for a, b in permutations(estimates, 2):
        (x, l_a, u_a), (y, l_b, u_b) = parts(a)[:3], parts(b)[:3]
        if ratio:
            low = x * y - np.sqrt((x * y) ** 2 - l_a * u_b * (2 * x - l_a) * (2 * y - u_b))
            high = x * y + np.sqrt((x * y) ** 2 - u_a * l_b * (2 * x - u_a) * (2 * y - l_b))
            limits.append((low / (u_b * (2 * y - u_b)), high / (l_b * (2 * y - l_b))))
        else:
            low = x - y - np.sqrt((x - l_a) ** 2 + (u_b - y) ** 2)
            limits.append((low, x - y + np.sqrt((u_a - x) ** 2 + (y - l_b) ** 2)))
    lows, highs = zip(*limits, strict=True)
    return (min(lows), min(1, *highs)) if ratio else (max(0, *lows), max(highs))


@pytest.mark.parametrize("ratio", [False, True])
def test_compare_groups(ratio: bool) -> None:
    metric, extreme = jm.binary(jm.f1), jm.group_ratio if ratio else jm.group_difference
    found = jm.compare_groups(metric, GROUPS, ratio=ratio)
    assert_allclose(ends(found), of_pairs(GROUPS, ratio), rtol=1e-12)
    assert found.value == pytest.approx(extreme(metric)(GROUPS))
    assert np.isnan(found.standard_error)

    per_class = jm.compare_groups(lambda c: {"f1": jm.f1(c)}, GROUPS, ratio=ratio)["f1"]
    assert_allclose(parts(per_class)[:3, 1], parts(found)[:3], rtol=1e-9)
    batch = jm.compare_groups(metric, np.stack([GROUPS[::-1], GROUPS + 3]), ratio=ratio)
    assert_allclose(parts(batch)[:3, 0], parts(found)[:3], rtol=1e-9)

    # A group without examples is left out, but its pairs are paid for.
    more = jm.compare_groups(metric, [*GROUPS, np.zeros((2, 2))], ratio=ratio, level=0.9)
    level = 1 - 3 * (1 - pairwise_level(0.9, 4))
    again = jm.compare_groups(metric, GROUPS, ratio=ratio, level=level)
    assert_allclose(parts(more)[:3], parts(again)[:3], rtol=1e-9)
    assert np.isnan(
        parts(jm.compare_groups(metric, [GROUPS[0], np.zeros((2, 2))], ratio=ratio))[:3]
    ).all()
    negative = jm.compare_groups(lambda c: metric(c) - 0.76, GROUPS, ratio=ratio)
    assert np.isnan(parts(negative)[:3]).all() == ratio


def test_clusters_in_groups() -> None:
    rng = np.random.default_rng(0)
    clusters = rng.multinomial(20, rng.dirichlet(np.full(8, 2), 40)).reshape(40, 2, 2, 2)
    found = jm.compare_groups(jm.accuracy, clusters, method=jm.Delta(), cluster_axis=-4)
    a, b = (
        jm.interval(jm.accuracy, clusters[:, i], method=jm.Delta(), cluster_axis=0) for i in (0, 1)
    )
    gap, reach = a.value - b.value, np.hypot(a.high - a.value, b.high - b.value)
    expected = [abs(gap), max(0, abs(gap) - reach), abs(gap) + reach]
    assert_allclose(parts(found)[:3], expected, rtol=1e-12)
    first = jm.compare_groups(jm.accuracy, clusters, method=jm.Delta(), cluster_axis=0)
    assert_array_equal(parts(first)[:3], parts(found)[:3])
    shape = r"counts must have shape \(\.\.\., G, K, K\)"
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (GROUPS, {"cluster_axis": -4}, shape),
        (GROUPS[:1], {}, shape),
        (GROUPS[0], {}, shape),
        (clusters, {"cluster_axis": -3}, shape),
        (GROUPS, {"ratio": "no"}, "ratio must be True or False"),
        (clusters, {"cluster_axis": "-4"}, "cluster_axis must be a Python int"),
    ]
    for counts, options, message in refused:
        with pytest.raises((TypeError, ValueError), match=message):
            jm.compare_groups(jm.accuracy, counts, **options)


Y = np.random.default_rng(0).integers(0, 2, (2, 60, 3))
LEADERS = Y[0, :, 0], Y[:, :, 1]
REFUSING: list[Callable[[Any], Any]] = [
    *(
        partial(jm.interval, counts=GROUPS, method=method)
        for method in (*METHODS, jm.Posterior(0, num_samples=20))
    ),
    lambda metric: jm.compare(metric, np.ones((2, 2, 2))),
    lambda metric: jm.compare_unpaired(metric, GROUPS[0], GROUPS[1]),
    lambda metric: jm.compare_predictions(metric, *LEADERS[0:1], *LEADERS[1], num_classes=2),
    lambda metric: jm.leaderboard(metric, *LEADERS),
    lambda metric: jm.prediction_powered(metric, np.ones((2, 2, 2)), np.ones((2, 2))),
    lambda metric: jm.required_examples(metric, GROUPS, half_width=0.1),
]


@pytest.mark.quick
@pytest.mark.parametrize("number", range(len(REFUSING)))
def test_metrics_of_several_tables_are_refused(number: int) -> None:
    """Also where another function or `functools.partial` wraps them."""
    refuses = REFUSING[number]
    for metric in (
        jm.group_difference(jm.accuracy),
        jm.group_ratio(jm.f1),
        jm.demographic_parity_ratio,
        jm.equal_opportunity_ratio,
        partial(jm.group_ratio(jm.f1), zero_division=np.nan),
        jm.at_prevalence(jm.group_difference(jm.accuracy), 0.2),
        lambda counts: -jm.group_difference(jm.accuracy)(counts),
        lambda counts: {"ratio": jm.group_ratio(jm.accuracy)(counts)},
    ):
        with pytest.raises(ValueError, match=r"^metric compares .*jaxmetrics\.compare_groups"):
            refuses(metric)
    for own in (lambda c: jm.label_macro(jm.f1)(c), lambda c: jm.f1(c)[..., 1].mean(-1)):
        for tables in (np.ones((30, 5, 2, 2)), jax.numpy.ones((30, 5, 2, 2))):
            with pytest.raises((ValueError, IndexError)) as error:
                jm.interval(own, tables, cluster_axis=-4)
            assert "attribute table_ndim = 3" in error.value.__notes__[-1]
    for metric in (jm.label_macro(jm.f1), jm.label_weighted(jm.recall)):
        no_clusters = (
            r"^metric label_.*cluster_axis=-4|counts must have .* one matrix of two rows and"
            r" two columns for each"
        )
        with pytest.raises(ValueError, match=no_clusters):
            refuses(metric)


def mean_of_labels(tables: Any) -> Any:
    return jm.recall(tables)[..., 1].mean(-1)


mean_of_labels.table_ndim = 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", METHODS[:2], ids=lambda method: method.name)
def test_labels_of_examples_are_clusters(method: jm.IntervalMethod) -> None:
    """One label, written five times, is known no better than once: the interval of examples."""
    y_true, y_pred = (np.repeat(y[:, :1], 5, 1) for y in Y)
    tables = jm.multilabel_confusion_matrix(y_true[:, None, :], y_pred[:, None, :])
    options: dict[str, Any] = {"method": method, "cluster_axis": -4}
    of_copies = jm.interval(jm.label_macro(jm.recall), tables, **options)
    alone = jm.interval(jm.binary(jm.recall), tables[:, 0], method=method, cluster_axis=-3)
    # The likelihood adds a third of a decision, which is less of five.
    assert_allclose(parts(of_copies), parts(alone), rtol=2e-3)
    as_if_apart = jm.interval(mean_of_labels, tables.sum(0), method=method)
    ratio = np.ptp(ends(of_copies)) / np.ptp(ends(as_if_apart))
    assert 0.8 < ratio / np.sqrt(5) < 1.25


def test_groups_without_an_interval_are_skipped() -> None:
    """The third group has no positives: its recall is 0 by convention."""
    groups = np.array([[[40, 10], [5, 45]], [[44, 6], [10, 40]], [[48, 2], [0, 0]]])
    of_all, of_two = (jm.compare_groups(jm.binary(jm.recall), x) for x in (groups, groups[:2]))
    assert of_all.value == of_two.value == pytest.approx(0.1)
    assert of_all.low <= of_two.low < of_two.high < of_all.high  # of three pairs
