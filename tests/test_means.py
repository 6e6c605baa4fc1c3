"""Intervals of means: bounded values, and means that few examples carry."""

from typing import Any

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import jaxmetrics as jm
from tests.estimates import parts


def slow_greatest_mean(x: np.ndarray, w: np.ndarray, bound: float) -> float:
    """The greatest mean m with `sum w log(1 + t (x - m)) <= 1.96^2 / 2`, t at which the derivative
    by t is 0, of the values and a third of an example at the bound.
    """
    x, w = np.append(x, bound), np.append(w, 1 / 3)

    def deviance(m: float) -> float:
        low, high = -1 / (x.max() - m) * (1 - 1e-13), 0.0  # t < 0 for means above that of x
        for _ in range(100):
            t = (low + high) / 2
            rises = (w * (x - m) / (1 + t * (x - m))).sum() < 0
            low, high = (low, t) if rises else (t, high)
        return float((w * np.log1p(t * (x - m))).sum())

    low, high = float(np.average(x, weights=w)), float(x.max())
    for _ in range(60 if low < high else 0):
        middle = (low + high) / 2
        fits = deviance(middle) <= 1.959964**2 / 2
        low, high = (middle, high) if fits else (low, middle)
    return low


@pytest.mark.parametrize("bounds", [(0, 1), (-0.5, 3)])
@pytest.mark.parametrize("kind", ["grades", "skewed", "perfect", "one"])
def test_bounded_means_from_the_definition(kind: str, bounds: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    x = {
        "grades": np.array([1, 1, 0.5, 1, 0, 1, 1, 0.5, 1, 1]),
        "skewed": rng.beta(0.2, 2, 200),
        "perfect": np.ones(10),
        "one": np.array([0.75]),
    }[kind]
    w = rng.integers(1, 4, len(x))
    estimate = jm.mean_interval(x, sample_weight=w, frequency=True, bounds=bounds)
    high = slow_greatest_mean(x, w, bounds[1])
    low = -slow_greatest_mean(-x, w, -bounds[0])
    assert_allclose(parts(estimate)[:3], [np.average(x, weights=w), low, high], rtol=1e-6)
    written_out = jm.mean_interval(np.repeat(x, w), bounds=bounds)
    assert_allclose(parts(estimate), parts(written_out), rtol=1e-9)


def test_bounded_means_of_right_and_wrong_are_accuracies() -> None:
    """Also of clusters, whose two jackknives differ by where they are centred, and in a batch."""
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(25), rng.integers(1, 12, 25))
    right = (rng.random((3, len(ids))) < rng.beta(4, 1, 25)[ids]).astype(float)
    alone = jm.mean_interval(right, bounds=(0, 1))
    of_clusters = jm.mean_interval(right, bounds=(0, 1), clusters=ids)
    for i, row in enumerate(right):
        counts = jm.confusion_matrix(0 * ids, 1 - row.astype(int), num_classes=2, groups=ids)
        expected = jm.interval(jm.accuracy, counts.sum(0))
        assert_allclose(parts(alone)[:3, i], parts(expected)[:3], rtol=1e-6)
        expected = jm.interval(jm.accuracy, counts, cluster_axis=-3)
        assert_allclose(parts(of_clusters)[:, i], parts(expected), rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [0.2, 1.5, 0.3]}, r"values\[1\] is 1.5, beyond bounds=\(0, 1\)"),
        ({"values": [0.2, 1 + 1e-9, 0.3]}, r"values\[1\] is 1.000000001, beyond bounds=\(0, 1\)"),
        ({"bounds": (0, np.inf)}, "bounds must be the least and the greatest"),
        ({"bounds": (1, 0)}, "bounds must be the least and the greatest"),
        ({"transform": "log"}, "bounds and transform cannot be used together, got bounds"),
    ],
)
def test_what_bounds_do_not_take(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        jm.mean_interval(**{"values": [0.2, 0.4, 0.3], "bounds": (0, 1), **arguments})


BEYOND = {
    "mean_interval": lambda x: jm.mean_interval(x, bounds=(0, 1)),
    "missing": lambda x: jm.mean_interval(x, bounds=(0, 1), missing="bounds"),
    "compare_scores": lambda x: jm.compare_scores(x, 1 - x, bounds=(0, 1)),
    "score_leaderboard": lambda x: jm.score_leaderboard([x, 1 - x], bounds=(0, 1)).estimates,
    "score_report": lambda x: jm.score_report(x, 1 - x, bounds=(0, 1)).to_dict()["values"],
    "groups": lambda x: jm.score_report(
        x, bounds=(0, 1), groups=[*"aabb"] * (len(x) // 4)
    ).to_dict()["values"],
}


@pytest.mark.parametrize("name", BEYOND)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_beyond_the_bounds_by_rounding_are_clipped(name: str, dtype: str) -> None:
    """Half of them are 1 + 2 eps, and of the other system -2 eps."""
    eps = np.finfo(dtype).eps
    x = np.array([1 + 2 * eps, 1, 0.25, 1 + eps] * 5, dtype)
    found, expected = BEYOND[name](x), BEYOND[name](np.minimum(x, 1))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    with pytest.raises(ValueError, match=r"beyond bounds=\(0, 1\)"):
        BEYOND[name](np.where(x > 1, np.asarray(1 + 10 * eps, dtype), x))


def test_under_jit_values_beyond_the_bounds_by_rounding_are_clipped() -> None:
    interval = jax.jit(lambda x: jm.mean_interval(x, bounds=(0, 1)))
    x = np.array([1.0, 1, 0.25, 1] * 5, np.float32)
    expected = jm.mean_interval(x, bounds=(0, 1))
    for dtype in ("float32", "bfloat16"):
        eps = float(jax.numpy.finfo(dtype).eps)
        beyond = jax.numpy.asarray(np.where(x == 1, 1 + 2 * eps, x), dtype)
        assert_allclose(parts(interval(beyond)), parts(expected), rtol=1e-5)
        beyond = jax.numpy.asarray(np.where(x == 1, 1 + 10 * eps, x), dtype)
        assert np.isnan(interval(beyond).value)
    equal = jm.mean_interval([0.7] * 9, bounds=(0, 0.7))  # their sum is 6.300000000000001
    assert equal.low < equal.value <= equal.high == 0.7
