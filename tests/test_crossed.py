"""Intervals of means over seeds and items."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

import jaxmetrics as jm
from tests.estimates import parts

# Diameters minus 18 mm of six samples of penicillin on each of 24 plates (Davies and Goldsmith,
# 1972, Statistical Methods in Research and Production, table 6.9).
PENICILLIN = """
    958553 958553 737662 857552 748452 647541 625341 848663 636442 636541 858663 748662
    868674 858552 857664 747552 736552 746551 635331 858663 736440 747442 636461 636430
"""


@pytest.mark.quick
def test_variances_of_penicillin() -> None:
    """In balanced data, they equal restricted maximum likelihood if none is 0; standard deviations
    of lme4.
    """
    plates = 18 + np.array([list(map(int, x)) for x in PENICILLIN.split()])
    found = jm.crossed_interval(plates.T)
    errors = np.sqrt([found.seeds, found.items, found.interaction])
    assert_allclose(errors, [1.9316, 0.8467, 0.5499], atol=6e-5)
    assert_allclose([found.mean.value, found.mean.standard_error], [22.9722, 0.8086], atol=6e-5)


def slow(
    systems: list[np.ndarray], bounds: tuple[float, float] | None
) -> tuple[list[float], list[float]]:
    """The mean with its ends and its error, and the variances, from sums over all cells."""
    n, is_difference = systems[0].shape[-1], len(systems) == 2
    squares, variances = 0.0, []
    for x in systems:
        s, mean = len(x), x.mean()
        of_seeds = sum(n * (row.mean() - mean) ** 2 for row in x) / (s - 1)
        rest = sum(
            (x[i, j] - x[i].mean() - x[:, j].mean() + mean) ** 2 for i in range(s) for j in range(n)
        ) / ((s - 1) * (n - 1))
        t, u = stats.t.ppf(0.975, [s - 1, (s - 1) * (n - 1)])
        squares += max(t**2 * of_seeds - u**2 * rest, 0) / (s * n)
        variances.append((s, max(of_seeds - rest, 0) / n, rest))
    if is_difference:
        limits = bounds and (bounds[0] - bounds[1], bounds[1] - bounds[0])
        a, b = (x.mean(0) for x in systems)
        alone = jm.compare_scores(a, b, bounds=bounds).difference
    else:
        limits, a, b = bounds, systems[0].mean(0), 0
        alone = jm.mean_interval(a, bounds=bounds)
    seeds, interaction = (sum(x[i] for x in variances) for i in (1, 2))
    of_items = np.var(a - b, ddof=1)
    items = max(of_items - sum(rest / s for s, _, rest in variances), 0)
    error = np.sqrt(of_items / n + sum(x / s for s, x, _ in variances))
    ends = []
    for sign, end in ((-1, alone.low), (1, alone.high)):
        distance = np.sqrt(squares)
        if limits:
            width = limits[1] - limits[0]
            p = (alone.value - limits[0]) / width
            moved = special.expit(special.logit(p) + sign * distance / width / (p * (1 - p)))
            distance = width * (moved - p)
        ends.append(alone.value + sign * np.hypot(end - alone.value, distance))
    low, high = np.clip(ends, *(limits or (-np.inf, np.inf)))
    return [alone.value, low, high, error], [seeds, items, interaction]


@pytest.mark.parametrize("bounds", [None, (0, 1), (-1, 3)])
@pytest.mark.parametrize("of_seeds", [0.0, 0.1, 0.5])
def test_intervals_from_the_definition(bounds: Any, of_seeds: float) -> None:
    rng = np.random.default_rng(0)
    chance = 0.8 + of_seeds * rng.normal(size=(2, 4, 1)) + 0.3 * rng.normal(size=(2, 1, 30))
    a, b = (rng.random((2, 4, 30)) < chance).astype(float)
    for systems in ([a], [a, b[[2, 0, 3]]]):
        found = jm.crossed_interval(*systems, bounds=bounds)
        expected, variances = slow(systems, bounds)
        assert_allclose(parts(found.mean)[:4], expected, rtol=1e-10)
        assert_allclose([found.seeds, found.items, found.interaction], variances, atol=1e-12)
        # Neither the order of the seeds nor the order of the items matters.
        order = rng.permutation(30)
        other = jm.crossed_interval(*(x[::-1, order] for x in systems), bounds=bounds)
        assert_allclose(parts(other.mean), parts(found.mean), rtol=1e-10)


@pytest.mark.quick
@pytest.mark.filterwarnings("ignore:scores has 3 rows and only 1 columns")
def test_few_seeds_and_items_and_equal_scores() -> None:
    for scores in (np.array([[0.0, 1, 1]]), np.array([[0.0], [1], [1]])):
        found = jm.crossed_interval(scores)
        assert found.mean.value == pytest.approx(2 / 3)
        assert np.isnan([found.mean.low, found.mean.high, found.interaction]).all()
        for x in (scores, 0 * scores + 1):
            bounded = jm.crossed_interval(x, bounds=(0, 1)).mean
            assert np.isnan([bounded.low, bounded.high]).all()
    equal = jm.crossed_interval(np.full((3, 7), 2.5))
    assert (equal.mean.low, equal.mean.high, *equal[1:]) == (2.5, 2.5, 0, 0, 0)
    right = jm.crossed_interval(np.ones((3, 7)), bounds=(0, 1)).mean
    alone = jm.mean_interval(np.ones(7), bounds=(0, 1))
    assert (right.low, right.high) == (alone.low, 1)


@pytest.mark.quick
@pytest.mark.parametrize("scale", [1e-170, 1e170])
def test_squares_neither_overflow_nor_underflow(scale: float) -> None:
    x = np.sqrt(np.arange(12.0)).reshape(3, 4)
    for interval in (
        lambda x: jm.crossed_interval(x).mean,
        lambda x: jm.crossed_interval(x, 0.9 * x[1:, ::-1]).mean,
        lambda x: jm.mean_interval(x[0]),
        lambda x: jm.mean_interval(x[0], sample_weight=[1, 2, 1, 3]),
    ):
        found = parts(interval(scale * x))[:4]
        assert_allclose(np.divide(found, scale), parts(interval(x))[:4], rtol=1e-12)


def test_rows_of_items_give_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"scores has 4 rows and only 3 columns.*pass scores\.T"):
        transposed = jm.crossed_interval(SCORES.T)
    assert transposed.seeds == pytest.approx(jm.crossed_interval(SCORES).items)


SCORES = np.arange(12.0).reshape(3, 4) / 11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": SCORES[0]}, r"shape \(\.\.\., S, N\) for S seeds .* got \(4,\)"),
        ({"scores": SCORES[:0]}, r"got \(0, 4\)"),
        ({"others": SCORES.T}, r"the same N items, got \(3, 4\) and \(4, 3\)"),
        ({"scores": np.where(SCORES == 1, np.nan, SCORES)}, r"scores\[2, 3\] is nan, but"),
        ({"others": np.where(SCORES == 0, -np.inf, SCORES)}, r"others\[0, 0\] is -inf, but"),
        ({"others": 1 + SCORES, "bounds": (0, 1)}, r"others\[0, 1\] is 1\.09.*beyond bounds"),
        ({"bounds": (1, 0)}, "bounds must be the least"),
        ({"others": [[1, 0, 2, 0]]}, r"others\[0, 2\] is 2, but .* y_pred == y_true"),
        ({"level": 95}, "level"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jm.crossed_interval(**{"scores": SCORES, **arguments})
