"""Clusters of examples: their numbers, and intervals that take them as the independent units."""

import datetime
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxmetrics.intervals.clusters import (
    numbered_clusters,
    student_quantile,
    sums_by_cluster,
    warn_if_few,
)


@pytest.mark.parametrize(
    "ids",
    [
        [7, -3, 7, 10**12, -3],
        ["b", "nan", "b", "", "nan"],
        [(1, "x"), (2, "x"), (1, "x"), (1, "y"), (2, "x")],
        ["a", 1, "a", (1,), 1],
        [2.5, -np.inf, 2.5, 0.0, -np.inf],
        np.array(["2024-01-02", "2024-01-01", "2024-01-02", "2025-01-01", "2024-01-01"], "M8[D]"),
        [datetime.date(2024, 1, day) for day in (2, 1, 2, 3, 1)],
        jnp.array([5, 4, 5, 3, 4]),
    ],
    ids=repr,
)
def test_clusters_have_ids_of_any_kind(ids: Any) -> None:
    numbers, size = numbered_clusters(ids, (5,))
    assert numbers.dtype == np.int32
    assert size == 3
    assert sorted(set(numbers.tolist())) == [0, 1, 2]
    assert numbers[0] == numbers[2] != numbers[1] == numbers[4] != numbers[3] != numbers[0]


def test_clusters_are_numbered_in_each_batch_entry() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 9, (2, 3, 12)) * [[[10], [1], [-1]]]
    numbers, size = numbered_clusters(ids, (4, 2, 3, 12))
    most = 0
    for row, found in zip(ids.reshape(-1, 12), numbers.reshape(-1, 12), strict=True):
        expected = np.unique(row, return_inverse=True)[1]
        np.testing.assert_array_equal(found, expected)
        most = max(most, expected.max() + 1)
    assert size == most
    values = rng.normal(size=(4, 2, 3, 12))
    expected = (values[..., None] * (numbers[..., None] == np.arange(size))).sum(-2)
    np.testing.assert_allclose(sums_by_cluster(values, numbers, size), expected, atol=1e-12)
    on_device = jax.jit(lambda x: sums_by_cluster(x, numbers, size))(jnp.asarray(values))
    np.testing.assert_allclose(on_device, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        (["a", None, "b"], ValueError, r"clusters\[1\] is missing \(None\)"),
        (["a", "b", np.nan], ValueError, r"clusters\[2\] is missing \(nan\)"),
        ([1.0, np.nan, 2.0], ValueError, r"clusters\[1\] is missing \(nan\)"),
        (np.array(["2024", "NaT", "2025"], "M8[D]"), ValueError, r"clusters\[1\] is missing"),
        ([1, 2], ValueError, r"shape \(n,\) = \(3,\), one id per example, got \(2,\)"),
        (np.ones((3, 1), int), ValueError, r"got \(3, 1\)"),
        ([{1}, {2}, {1}], TypeError, "hashable"),
    ],
)
def test_what_is_no_id_is_refused(ids: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        numbered_clusters(ids, (3,))


def test_ids_that_jit_hides_are_refused() -> None:
    with pytest.raises(TypeError, match="Close over them"):
        jax.jit(lambda ids: numbered_clusters(ids, (3,))[0])(jnp.arange(3))


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95, 0.99])
def test_student_quantiles(level: float) -> None:
    freedom = np.array([3, 4, 5, 7.5, 10, 19, 50, 1e3, 1e6])
    z = stats.norm.ppf((1 + level) / 2)
    expected = stats.t.ppf((1 + level) / 2, freedom)
    np.testing.assert_allclose(student_quantile(z, freedom), expected, rtol=0.01)
    np.testing.assert_allclose(student_quantile(z, freedom)[4:], expected[4:], rtol=5e-5)
    on_device = student_quantile(z, jnp.asarray(freedom))
    np.testing.assert_allclose(on_device, expected, rtol=0.01)
    assert np.isnan(student_quantile(z, 0))


def test_few_clusters_give_a_warning() -> None:
    warn_if_few(20)
    with pytest.warns(UserWarning, match="19 clusters are few"):
        warn_if_few(19)
