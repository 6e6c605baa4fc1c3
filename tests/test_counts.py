"""Counting: against a loop, at the edges of dtypes and ranges, and what is refused."""

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import jaxmetrics as jm
from jaxmetrics import counts as counts_module
from tests import oracles

K = 5
labels = hnp.arrays(np.int32, 40, elements=st.integers(-3, K + 2))


@given(labels, labels, hnp.arrays(np.float32, 40, elements=st.floats(0, 8, width=16)), hnp.arrays(bool, 40))
def test_equals_a_loop(y_true: np.ndarray, y_pred: np.ndarray, weights: np.ndarray, where: np.ndarray) -> None:
    plain = jm.confusion_matrix(y_true, y_pred, num_classes=K, where=where)
    assert plain.dtype == jnp.int32
    np.testing.assert_array_equal(plain, oracles.confusion_matrix(y_true, y_pred, K, where=where))
    weighted = jm.confusion_matrix(y_true, y_pred, num_classes=K, where=where, sample_weight=weights)
    np.testing.assert_allclose(weighted, oracles.confusion_matrix(y_true, y_pred, K, weights, where), rtol=1e-6)


@pytest.mark.parametrize(
    "dtype",
    [bool, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ml_dtypes.int4, ml_dtypes.uint4],
)
@pytest.mark.parametrize("num_classes", [2, 200, 70_000])
def test_any_integer_dtype(dtype: Any, num_classes: int, x64: bool) -> None:
    if num_classes == 70_000:  # too many for a matrix in a test: a table of one truth by 70,000 groups
        tables = jm.confusion_matrix([0, 0], [0, 0], num_classes=1, groups=np.array([1, 0], dtype), num_groups=num_classes)
        assert tables.sum() == 2
        assert tables[1, 0, 0] == tables[0, 0, 0] == 1
        return
    y_true, y_pred = np.array([0, 1, 1], dtype), np.array([1, 1, 0], dtype)
    for convert in (np.asarray, jnp.asarray):
        counts = jm.confusion_matrix(convert(y_true), convert(y_pred), num_classes=num_classes)
        assert counts.dtype == jnp.int32
        np.testing.assert_array_equal(counts[:2, :2], [[0, 1], [1, 1]])
        assert counts.sum() == 3


@pytest.mark.parametrize(
    "invalid",
    [
        np.array([-1, -100, -(2**31), -(2**63), 3, 2**31, 2**32, 2**32 + 1, 2**63 - 1], np.int64),
        np.array([2**64 - 1, 2**64 - 100, 2**32, 2**63, 3], np.uint64),
        np.array([2**32 - 1, 2**32 - 100, 2**31, 3], np.uint32),
        np.array([-1, -100, -128, 127, 3], np.int8),
        np.array([255, 156, 128, 3], np.uint8),
    ],
    ids=lambda x: str(x.dtype),
)
def test_invalid_labels_are_dropped_never_wrapped_or_clipped(invalid: np.ndarray, x64: bool) -> None:
    valid = np.zeros(len(invalid), np.int32)
    for y_true, y_pred in ((invalid, valid), (valid, invalid)):
        assert jm.confusion_matrix(y_true, y_pred, num_classes=3).sum() == 0
        assert jm.confusion_matrix(y_true, y_pred, num_classes=3, sample_weight=np.ones(len(invalid))).sum() == 0
    if x64 or invalid.itemsize < 8:  # else JAX itself has cut the labels to 32 bits before we see them
        assert jm.confusion_matrix(jnp.asarray(invalid), valid, num_classes=3).sum() == 0


def test_a_thousand_checkpoints_against_one_truth() -> None:
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 3, 50), rng.integers(0, 3, (1000, 50))
    counts = jm.confusion_matrix(y_true, y_pred, num_classes=3)
    assert counts.shape == (1000, 3, 3)
    for i in (0, 1, 999):
        np.testing.assert_array_equal(counts[i], oracles.confusion_matrix(y_true, y_pred[i], 3))


def test_more_examples_than_a_chunk() -> None:
    rng = np.random.default_rng(0)
    for n in (2**16, 2**16 + 1, 3 * 2**16 - 1):
        y_true, y_pred = rng.integers(-1, 4, (2, n))
        expected = np.zeros((3, 3), int)
        valid = (y_true >= 0) & (y_true < 3) & (y_pred >= 0) & (y_pred < 3)
        np.add.at(expected, (y_true[valid], y_pred[valid]), 1)
        np.testing.assert_array_equal(jm.confusion_matrix(y_true, y_pred, num_classes=3), expected)
        batch = jm.confusion_matrix(y_true, np.stack([y_pred, y_true, y_pred]), num_classes=3)
        np.testing.assert_array_equal(batch[2], expected)


@pytest.mark.parametrize("method", ["_count_in_chunks", "_count_at_once"])
def test_both_ways_of_counting_agree(method: str) -> None:
    """CPUs count in chunks, other devices at once; both run here."""
    rng = np.random.default_rng(0)
    ids = tuple(jnp.asarray(rng.integers(-1, 4, (2, 1000)), jnp.int32) for _ in range(2))
    keep = jnp.asarray(rng.random((1, 1000)) < 0.8)
    table = getattr(counts_module, method)(2, (3, 3), ids, keep)
    expected = [oracles.confusion_matrix(ids[0][b], ids[1][b], 3, where=keep[0]) for b in range(2)]
    np.testing.assert_array_equal(table, expected)


def test_more_cells_than_int32_can_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused index y_true * K + y_pred wraps from K = 46,341 on. Such a matrix is too large for a test: as if 15 were."""
    y_true, y_pred = np.array([0, 3, 3, -1, 4, 2, 2]), np.array([3, 1, 1, 0, 0, 4, 0])
    weights = np.array([1, 2, 3, 4, 5, 6, 7], np.float32)
    with monkeypatch.context() as patch:
        patch.setattr(counts_module, "INT32_MAX", 15)
        jax.clear_caches()
        counted = jm.confusion_matrix(y_true, y_pred, num_classes=4)
        weighted = jm.confusion_matrix(y_true, y_pred, num_classes=4, sample_weight=weights)
    jax.clear_caches()
    np.testing.assert_array_equal(counted, oracles.confusion_matrix(y_true, y_pred, 4))
    np.testing.assert_array_equal(weighted, oracles.confusion_matrix(y_true, y_pred, 4, weights))


def test_float_weights_do_not_stop_at_two_to_the_24() -> None:
    n = 2**24 + 1000
    zeros = jnp.zeros(n, jnp.int8)
    assert jm.confusion_matrix(zeros, zeros, num_classes=2)[0, 0] == n
    weighted = jm.confusion_matrix(zeros, zeros, num_classes=2, sample_weight=jnp.ones(n))
    np.testing.assert_allclose(weighted[0, 0], n, rtol=1e-7)
    for num_classes in (2, 30):  # few cells, many cells: a running sum is 9 % off
        tenths = jm.confusion_matrix(zeros, zeros, num_classes=num_classes, sample_weight=jnp.full(n, 0.1))
        np.testing.assert_allclose(tenths[0, 0], np.float32(0.1) * np.float64(n), rtol=1e-5)
    soft = jm.soft_confusion_matrix(zeros, jnp.full((n, 1), 0.1))
    np.testing.assert_allclose(soft[0, 0], np.float32(0.1) * np.float64(n), rtol=1e-5)


@pytest.mark.parametrize("num_classes", [3, 40])
def test_weighted_sums_of_many_examples(num_classes: int) -> None:
    """Few cells and many, one of them crowded, with invalid labels and batch axes: as NumPy's float64 sums."""
    rng = np.random.default_rng(0)
    y_true = np.where(rng.random((2, 5000)) < 0.8, 1, rng.integers(-1, num_classes + 1, (2, 5000)))
    y_pred = np.where(rng.random(5000) < 0.8, 2, rng.integers(-1, num_classes + 1, 5000))
    weights = rng.random((2, 5000)).astype(np.float32)
    ours = jm.confusion_matrix(y_true, y_pred, num_classes=num_classes, sample_weight=weights)
    for b in range(2):
        expected = oracles.confusion_matrix(y_true[b], y_pred, num_classes, weights[b])
        np.testing.assert_allclose(ours[b], expected, rtol=1e-6)


def test_weights_of_any_dtype(x64: bool) -> None:
    y = np.array([0, 1, 1])
    expected_dtype = np.float64 if x64 else np.float32
    for weights in (np.array([1, 2, 4]), np.array([1, 2, 4], np.float16), jnp.array([1, 2, 4], jnp.bfloat16), [1.0, 2.0, 4.0]):
        counts = jm.confusion_matrix(y, y, num_classes=2, sample_weight=weights)
        assert counts.dtype == expected_dtype
        np.testing.assert_array_equal(counts, [[1, 0], [0, 6]])
    half = jm.confusion_matrix(y, y, num_classes=2, sample_weight=np.full(3, 0.5))
    np.testing.assert_array_equal(half, [[0.5, 0], [0, 1]])  # not bool(0.5)
    large = jm.confusion_matrix(y, y, num_classes=2, sample_weight=np.array([2**40, 1, 1]))
    assert float(large[0, 0]) == 2.0**40  # not cut to 32 bits


def test_empty_input() -> None:
    empty: Any
    for empty in ([], np.zeros(0, int), jnp.zeros(0, jnp.int32)):
        np.testing.assert_array_equal(jm.confusion_matrix(empty, empty, num_classes=2), np.zeros((2, 2), int))
    weighted = jm.confusion_matrix([], [], num_classes=2, sample_weight=np.zeros(0))
    np.testing.assert_array_equal(weighted, np.zeros((2, 2)))
    assert jm.confusion_matrix(np.zeros((0, 4), int), np.zeros(4, int), num_classes=2).shape == (0, 2, 2)
    assert jm.confusion_matrix_at_thresholds([], np.zeros(0), [0.5]).shape == (1, 2, 2)
    assert jm.soft_confusion_matrix([], np.zeros((0, 3))).shape == (3, 3)


def test_soft_confusion_matrix_by_hand() -> None:
    probs = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
    np.testing.assert_array_equal(jm.soft_confusion_matrix([0, 1, 1], probs, num_classes=2), [[0.75, 0.25], [0.75, 1.25]])
    half = jm.soft_confusion_matrix([0, 1, 1], probs, sample_weight=[1.0, 0.5, 0.0])
    np.testing.assert_array_equal(half, [[0.75, 0.25], [0.25, 0.25]])


@given(
    hnp.arrays(np.int32, 30, elements=st.integers(-1, 2)),
    hnp.arrays(np.float32, 30, elements=st.sampled_from([-np.inf, -1.5, 0.0, 0.125, 0.125, 2.0, np.inf, np.nan])),
    hnp.arrays(np.float32, 6, elements=st.sampled_from([-np.inf, -1.5, 0.0, 0.125, 1.0, np.inf])),
)
def test_thresholds_equal_one_matrix_each(y: np.ndarray, scores: np.ndarray, thresholds: np.ndarray) -> None:
    ours = jm.confusion_matrix_at_thresholds(y, scores, thresholds)
    for table, threshold in zip(ours, thresholds, strict=True):
        expected = oracles.confusion_matrix(y, scores >= threshold, 2, where=~np.isnan(scores))
        np.testing.assert_array_equal(table, expected)


def test_one_vs_rest_of_integers_and_floats() -> None:
    counts = np.array([[6, 4, 0], [1, 3, 1], [0, 0, 2]])
    expected = [[[tn, fp], [fn, tp]] for tp, fp, fn, tn in (oracles.cells(counts.astype(float), k) for k in range(3))]
    for dtype in (np.int32, np.float32):
        ours = jm.one_vs_rest(counts.astype(dtype))
        assert ours.dtype == dtype
        np.testing.assert_array_equal(ours, expected)
    large = np.array([[2**30, 2**29, 5], [7, 2**30, 1], [1, 2, 3]], np.int32)  # their sum overflows int32, TN does not
    np.testing.assert_array_equal(jm.one_vs_rest(large)[0], [[2**30 + 6, 8], [2**29 + 5, 2**30]])
    assert jm.one_vs_rest(np.stack([counts] * 4).reshape(2, 2, 3, 3)).shape == (2, 2, 3, 2, 2)
    small = jm.one_vs_rest(np.array([[200, 100, 3], [50, 7, 9], [90, 90, 90]], np.uint8))
    assert small[1, 0, 0] == 200 + 3 + 90 + 90  # not modulo 256
    with pytest.raises(ValueError, match="counts holds 3000000000, beyond JAX's 32-bit integers: give floats"):
        jm.one_vs_rest(np.array([[3_000_000_000, 1], [2, 9]]))
    rare = jm.one_vs_rest(np.array([[1e9, 7.0], [3.0, 13.0]], np.float32))
    assert rare[0, 0, 0] == 13  # 1e9 + 23 - 1e9 - 10 in float32 is 0 or 64


def test_normalize() -> None:
    counts = np.array([[6, 2, 0], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(jm.normalize(counts, over="true"), np.array([[0.75, 0.25, 0], [0.5, 0.5, 0], [0, 0, 0]]))
    np.testing.assert_allclose(jm.normalize(counts, over="pred"), np.array([[6 / 7, 2 / 3, 0], [1 / 7, 1 / 3, 0], [0, 0, 0]]))
    np.testing.assert_allclose(jm.normalize(counts, over="all"), counts / 10)
    with pytest.raises(ValueError, match=r'over must be "true", "pred" or "all", got .rows.'):
        jm.normalize(counts, over="rows")  # type: ignore[arg-type]


def test_paired_margins() -> None:
    rng = np.random.default_rng(0)
    y, a, b = rng.integers(0, 4, (3, 60))
    paired = jm.paired_confusion_matrix(y, a, b, num_classes=4)
    np.testing.assert_array_equal(paired.sum(-1), oracles.confusion_matrix(y, a, 4))
    np.testing.assert_array_equal(paired.sum(-2), oracles.confusion_matrix(y, b, 4))
    assert paired[y[0], a[0], b[0]] == sum((y == y[0]) & (a == a[0]) & (b == b[0]))


def test_check_labels() -> None:
    jm.check_labels([0, 1, 2], num_classes=3)
    jm.check_labels([], num_classes=3)
    with pytest.raises(ValueError, match=r"y_pred\[1, 2\] is -1, but class ids must lie in \[0, 3\)"):
        jm.check_labels(np.array([[0, 1, 2], [2, 2, -1]]), num_classes=3, name="y_pred")
    with pytest.raises(ValueError, match=r"labels\[0\] is 4294967296"):
        jm.check_labels([2**32], num_classes=3)
    with pytest.raises(TypeError, match="labels must hold class ids of an integer or bool dtype, got float64"):
        jm.check_labels([0.5], num_classes=3)
    with pytest.raises(TypeError, match="call it outside"):
        jax.jit(lambda y: jm.check_labels(y, num_classes=3))(jnp.zeros(3, jnp.int32))


def test_floats_are_no_labels() -> None:
    with pytest.raises(TypeError, match=r"y_true must hold class ids.*float64.*Truth comes first"):
        jm.confusion_matrix([0.2, 0.9], [0, 1], num_classes=2)
    with pytest.raises(TypeError, match=r"y_pred must hold class ids.*float32.*argmax"):
        jm.confusion_matrix([0, 1], jnp.zeros((2, 2)), num_classes=2)
    with pytest.raises(TypeError, match=r"y_true must hold class ids.*<U3.*jaxmetrics.report takes strings"):
        jm.confusion_matrix(["cat", "dog"], ["cat", "cat"], num_classes=2)
    with pytest.raises(TypeError, match="y_true must hold class ids"):
        jm.soft_confusion_matrix([[0.5, 0.5]], [[0.5, 0.5]])
    with pytest.raises(TypeError, match="y_true must hold class ids"):
        jm.confusion_matrix_at_thresholds([0.5, 0.1], [0, 1], [0.5])


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"same number of examples.*y_true \(3,\), y_pred \(2,\)"):
        jm.confusion_matrix([0, 1, 1], [0, 1], num_classes=2)
    with pytest.raises(ValueError, match=r"same number of examples.*sample_weight \(1,\)"):  # no silent broadcast
        jm.confusion_matrix([0, 1], [0, 1], num_classes=2, sample_weight=[1.0])
    with pytest.raises(ValueError, match=r"needs an axis of examples.*y_true \(\)"):
        jm.confusion_matrix(0, 1, num_classes=2)
    with pytest.raises(ValueError, match=r"leading \(batch\) axes must broadcast.*\(2, 3\).*\(4, 3\)"):
        jm.confusion_matrix(np.zeros((2, 3), int), np.zeros((4, 3), int), num_classes=2)
    with pytest.raises(ValueError, match=r"y_prob has 3 classes on its last axis, but num_classes is 2"):
        jm.soft_confusion_matrix([0], [[0.1, 0.2, 0.7]], num_classes=2)
    with pytest.raises(ValueError, match=r"y_prob must have shape \(..., n, K\)"):
        jm.soft_confusion_matrix([0], [0.1])
    with pytest.raises(ValueError, match=r"must have shape \(..., n, L\).*got \(2,\) and \(2,\)"):
        jm.multilabel_confusion_matrix([0, 1], [0, 1])
    with pytest.raises(ValueError, match=r"the same n and L.*got \(2, 1\) and \(2, 3\)"):
        jm.multilabel_confusion_matrix([[1], [0]], [[1, 0, 1], [1, 1, 0]])
    with pytest.raises(ValueError, match=r"needs an axis of examples.*sample_weight \(\)"):
        jm.multilabel_confusion_matrix([[1], [0]], [[1], [1]], sample_weight=1.0)
    with pytest.raises(ValueError, match=r"thresholds must have shape \(T,\)"):
        jm.confusion_matrix_at_thresholds([0], [0.5], 0.5)
    with pytest.raises(ValueError, match="groups and num_groups go together"):
        jm.confusion_matrix([0], [0], num_classes=2, groups=[0])
    with pytest.raises(ValueError, match=r"counts must have shape \(..., K, K\)"):
        jm.one_vs_rest([[1, 2, 3]])


def test_masks_and_sizes_that_are_none() -> None:
    with pytest.raises(TypeError, match=r"where must be a bool mask.*int64.*mask != 0"):
        jm.confusion_matrix([0, 1], [0, 1], num_classes=2, where=np.array([0, 1]))
    with pytest.raises(TypeError, match=r"num_classes must be a Python int.*static_argnames"):
        jax.jit(lambda k: jm.confusion_matrix([0], [0], num_classes=k))(2)
    with pytest.raises(TypeError, match=r"num_classes must be a Python int.*got float"):
        jm.confusion_matrix([0], [0], num_classes=2.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"num_classes must be a Python int.*got bool"):
        jm.confusion_matrix([0], [0], num_classes=True)
    with pytest.raises(ValueError, match="num_classes must be at least 1, got 0"):
        jm.confusion_matrix([0], [0], num_classes=0)
    with pytest.raises(TypeError, match="sample_weight must hold real numbers, got dtype <U1"):
        jm.confusion_matrix([0], [0], num_classes=2, sample_weight=["a"])
