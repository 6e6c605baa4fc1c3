"""The risk-coverage curve beside a loop over thresholds, and the accuracy at a coverage."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import jaxmetrics as jm
from tests.estimates import ends, parts

risk_coverage: Any = jm.risk_coverage  # whose accuracy may be None
rng = np.random.default_rng(3)
TRUE = rng.integers(-1, 4, 60)
PRED = np.where(rng.random(60) < 0.7, abs(TRUE), rng.integers(0, 4, 60))
CONFIDENCE = np.round(rng.random(60), 1)
WEIGHTS = rng.integers(0, 4, 60) / 2


def by_thresholds(y_true: Any, y_pred: Any, confidence: Any, weights: Any) -> tuple[Any, ...]:
    """Coverage and risk of each distinct threshold, and the area: the mean of the examples' risks
    (Geifman, Uziel and El-Yaniv, 2019).
    """
    rows = [x for x in zip(y_true, y_pred, confidence, weights, strict=True) if x[0] >= 0 < x[3]]
    total = sum(w for *_, w in rows)

    def at(t: float) -> tuple[float, float]:
        answered = sum(w for *_, c, w in rows if c >= t)
        return answered / total, sum(w for y, p, c, w in rows if c >= t and y != p) / answered

    coverage, risk = zip(*(at(t) for t in sorted({c for *_, c, _ in rows})), strict=True)
    return coverage, risk, sum(w * at(c)[1] for *_, c, w in rows) / total


@pytest.mark.quick
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
def test_curve_and_area_are_those_of_thresholds(weights: Any) -> None:
    found = risk_coverage(TRUE, PRED, CONFIDENCE, sample_weight=weights)
    every = np.ones(60) if weights is None else weights
    coverage, risk, area = by_thresholds(TRUE, PRED, CONFIDENCE, every)
    points = np.unique(np.stack([found.coverage, found.risk]), axis=1)
    assert_allclose(points, [[0, *coverage[::-1]], [0, *risk[::-1]]], rtol=1e-12)
    assert_allclose(found.area, area, rtol=1e-12)
    assert (np.diff(found.thresholds) <= 0).all()
    assert found.thresholds[0] == np.inf
    assert found.accuracy is found.threshold is None


@pytest.mark.parametrize("coverage", [0.01, 0.3, 0.5, 0.8, 1.0])
def test_accuracy_is_that_of_the_most_confident(coverage: float) -> None:
    confidence = rng.permutation(100) / 100
    is_right = rng.random(100) < 0.2 + 0.7 * confidence
    found = risk_coverage(np.ones(100, int), is_right, confidence, coverage=coverage)
    right = is_right[np.argsort(-confidence)].cumsum()
    reach = stats.norm.ppf(0.975) * np.sqrt(coverage * (1 - coverage) / 100)
    goals = coverage + reach * np.array([-1, 0, 1])
    n = np.clip(np.ceil(100 * goals - 1e-9), 1, 100).astype(int)
    lower, value, upper = right[n - 1] / n
    assert found.threshold == np.sort(confidence)[-n[1]]
    assert (found.accuracy.value, found.accuracy.num_examples) == (value, n[1])
    plain = jm.proportion_interval(right[n[1] - 1], n[1], method="likelihood")
    low = value - np.hypot(value - plain.low, max(value - lower, value - upper, 0))
    high = value + np.hypot(plain.high - value, max(lower - value, upper - value, 0))
    assert_allclose(ends(found.accuracy), np.clip([low, high], 0, 1), rtol=1e-9)


def test_scale_of_weights_and_weight_0_do_not_matter() -> None:
    options = {"coverage": 0.6}
    found = risk_coverage(TRUE, PRED, CONFIDENCE, sample_weight=WEIGHTS, **options)
    spoiled = np.where(WEIGHTS > 0, PRED, -9), np.where(WEIGHTS > 0, CONFIDENCE, np.nan)
    for other in (
        risk_coverage(TRUE, PRED, CONFIDENCE, sample_weight=7 * WEIGHTS, **options),
        risk_coverage(TRUE, *spoiled, sample_weight=WEIGHTS, **options),
        risk_coverage(TRUE, *spoiled, where=WEIGHTS > 0, sample_weight=WEIGHTS + 0, **options),
    ):
        assert_allclose(parts(other.accuracy), parts(found.accuracy), 1e-9)
        assert_allclose(other.accuracy.num_examples, found.accuracy.num_examples)
    once = risk_coverage(TRUE, PRED, CONFIDENCE, sample_weight=np.ones(60), **options)
    assert once.accuracy == risk_coverage(TRUE, PRED, CONFIDENCE, **options).accuracy


def test_edge_cases() -> None:
    for nobody in (
        risk_coverage([-1, -1], [0, 1], [0.5, 0.6], coverage=0.8),
        risk_coverage([], [], [], coverage=0.8),
    ):
        assert np.isnan([nobody.area, nobody.accuracy.value, *nobody.coverage]).all()
    heavy = risk_coverage([0, 1], [0, 0], [2, 1], sample_weight=[1e250, 1e250], coverage=1)
    assert heavy.accuracy == risk_coverage([0, 1], [0, 0], [2, 1], coverage=1).accuracy
    assert heavy.accuracy.num_examples == 2
    perfect = risk_coverage([1] * 10, [1] * 10, np.arange(10), coverage=0.5)
    assert perfect.area == 0
    assert perfect.accuracy.value == perfect.accuracy.high == 1 > 0.8 > perfect.accuracy.low
    tied = risk_coverage([1, 1, 0, 0], [1, 1, 1, 0], [0.5] * 4, coverage=0.3)
    assert_array_equal(tied.coverage, [0, 1, 1, 1, 1])
    assert (tied.accuracy.value, tied.accuracy.num_examples, tied.area) == (0.75, 4, 0.25)
    infinite = risk_coverage([1, 1], [1, 0], [np.inf, -np.inf])
    assert_array_equal(infinite.risk, [0, 0, 0.5])


GOOD: dict[str, Any] = {"y_true": [0, 1], "y_pred": [0, 1], "confidence": [0.1, 0.2]}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"y_pred": [0, -1]}, ValueError, r"y_pred\[1\] is -1"),
        ({"y_pred": [0, 1, 1]}, ValueError, "the shapes are"),
        ({"y_true": [0.1, 0.2]}, TypeError, "y_true must hold class ids"),
        ({"y_pred": ["a", "b"]}, TypeError, "y_pred must hold class ids"),
        ({"confidence": [0.1, np.nan]}, ValueError, r"confidence\[1\] is nan"),
        ({"confidence": ["high", "low"]}, TypeError, "confidence must hold real numbers"),
        ({"confidence": np.eye(3)[:2]}, ValueError, "confidence must have shape"),
        ({"coverage": 80}, ValueError, r"coverage must be in \(0, 1\]"),
        ({"coverage": 0}, ValueError, r"be in \(0, 1\], got 0"),
        ({"level": 95}, ValueError, "level must be"),
        (
            {"y_true": pd.Series([0, 1]), "y_pred": pd.Series([0, 1], [1, 0])},
            ValueError,
            "order",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        risk_coverage(**(GOOD | arguments))


@pytest.mark.parametrize("n", [50, 400])
def test_covers_the_accuracy_at_the_coverage_in_the_population(n: int) -> None:
    """Mistakes are concentrated at low confidence, so that the threshold matters: the interval of
    a proportion covers in less than 90 % of the samples. Of 1,000, 950 have a deviation of 7.
    """
    draws = np.random.default_rng(n)

    def sample(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        confidence = draws.random(shape)
        return (draws.random(shape) < 1 / (1 + np.exp(-20 * (confidence - 0.5)))), confidence

    is_right, confidence = sample(10**6)
    true = is_right[confidence >= 0.5].mean()
    is_right, confidence = sample(1000, n)
    found = risk_coverage(np.ones((1000, n), int), is_right, confidence, coverage=0.5).accuracy
    plain = jm.proportion_interval(found.value * n / 2, n / 2, method="likelihood")
    covered, without = (((x.low <= true) & (true <= x.high)).sum() for x in (found, plain))
    assert 925 <= covered <= 990
    assert without < 900
