"""Counting: against a loop, at the edges of dtypes and ranges, and what is refused.

Most of it on the host; `everywhere` runs the device, too. What both promise alike is tested in
test_transforms.py.
"""

import warnings
from collections.abc import Callable
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
from jaxmetrics._sums import counting, scatter
from tests import oracles

K = 5
everywhere = pytest.mark.parametrize("convert", [np.asarray, jnp.asarray], ids=["host", "device"])


def by_rows(truth: Any, preds: Any, weights: Any, where: Any, k: int) -> Any:
    """The rule, one row after the other: the table, and the first prediction that is no class. A
    row is left out by its truth or by the mask.
    """
    table, bad = np.zeros((k,) * (1 + len(preds))), None
    for i, true in enumerate(truth):
        if not where[i] or weights[i] == 0 or not 0 <= true < k:
            continue
        row = [pred[i] for pred in preds]
        if all(0 <= label < k for label in row):
            table[(true, *row)] += weights[i]
        elif bad is None:
            bad = next((j, i, label) for j, label in enumerate(row) if not 0 <= label < k)
    return table, bad


@pytest.mark.quick
@given(st.data())
def test_rows_are_left_out_by_truth_or_mask_and_no_prediction_is_ignored(
    data: st.DataObject,
) -> None:
    """On the host such a prediction raises; in JAX arrays, the table has no column for it."""
    n, num_preds = 12, data.draw(st.integers(1, 2))
    often = st.integers(0, K - 1)
    truth = data.draw(hnp.arrays(np.int32, n, elements=often | st.integers(-3, K - 1)))
    preds = [
        data.draw(hnp.arrays(np.int32, n, elements=often | st.sampled_from([0, -1, -100, K])))
        for _ in range(num_preds)
    ]
    weights = data.draw(hnp.arrays(np.float32, n, elements=st.floats(0, 8, width=16)))
    where = data.draw(hnp.arrays(bool, n))
    for w in (None, weights):
        expected, bad = by_rows(truth, preds, np.ones(n) if w is None else w, where, K)
        count = jm.confusion_matrix if num_preds == 1 else jm.paired_confusion_matrix
        options: Any = {"num_classes": K, "where": where, "sample_weight": w}
        arrays = map(jnp.asarray, (truth, *preds))
        np.testing.assert_allclose(count(*arrays, **options), expected, rtol=1e-5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of labels in truth and prediction
            if bad is None:
                found = count(truth, *preds, **options)
                assert found.dtype == (np.int64 if w is None else np.float64)
                np.testing.assert_allclose(found, expected, rtol=1e-12)
                continue
            with pytest.raises(
                ValueError, match=r"y_pred.* but class ids must lie in \[0, 5\)\. Lea"
            ):
                count(truth, *preds, **options)


@pytest.mark.quick
@pytest.mark.parametrize(
    "call",
    [
        lambda y, p: jm.confusion_matrix(y, p),
        lambda y, p: jm.confusion_matrix(y.tolist(), p.tolist(), sample_weight=[1.0, 2.0, 1.0]),
        lambda y, p: jm.confusion_matrix(y, p, groups=[0, 1, 0]),
        lambda y, p: jm.confusion_matrix(y, [y, p])[0],
        lambda y, p: jm.paired_confusion_matrix(y, y, p),
        lambda y, p: jm.compare_predictions(jm.accuracy, y, y, p),
        lambda y, p: jm.compare_predictions(jm.accuracy, y, p, y, clusters=[0, 1, 2]),
        lambda y, p: jm.compare_predictions(jm.accuracy, y, p, y, method=jm.Delta()),
        lambda y, p: jm.leaderboard(jm.accuracy, y, [y, p]),
        lambda y, p: jm.bootstrap_examples(
            0, lambda y, p: jm.accuracy(jm.confusion_matrix(y, p, num_classes=2)), y, p
        ),
        lambda y, p: jm.multilabel_confusion_matrix(y[:, None], p[:, None]),
        lambda y, p: jm.hamming_loss(y[:, None], p[:, None]),
        lambda y, p: jm.exact_match(y[:, None], p[:, None]),
    ],
)
def test_a_prediction_of_minus_one_is_not_ignored(call: Callable[..., Any]) -> None:
    """A model that does not answer is not the best of the board."""
    with pytest.raises(
        ValueError, match=r"y_pred.*1(, 0)?\] is -1, but class ids must lie in \[0, 2"
    ):
        call(np.array([0, 1, 1]), np.array([0, -1, 1]))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("y_true", "y_pred", "accuracy"),
    [
        ([1, 1, 1, -1, -1, 1], [1, -1, 1, -1, 1, -1], 3 / 6),  # alarms of an isolation forest
        ([-1, 0, 1, 1, 0, -1, 0], [-1, 0, 0, 1, -1, -1, 1], 4 / 7),
        ([-2, -1, 0, 1, 2, 2], [-2, -1, -1, 1, 2, 0], 4 / 6),
    ],
    ids=["-1 and 1", "-1 to 1", "-2 to 2"],
)
def test_negative_classes_are_named(y_true: Any, y_pred: Any, accuracy: float) -> None:
    """With `labels` they are classes; without, the first that is predicted raises."""
    counts = jm.confusion_matrix(y_true, y_pred, labels=sorted(set(y_true)))
    assert jm.accuracy(counts) == pytest.approx(accuracy)
    with pytest.raises(
        ValueError, match=r"y_pred\[\d\] is -1, .*pass labels=\[-1, \.\.\.\] to make"
    ):
        jm.confusion_matrix(y_true, y_pred)


@pytest.mark.quick
def test_a_negative_class_that_is_predicted_only_for_itself_is_warned_of() -> None:
    """No prediction of -1 is wrong, so nothing can be refused; -100 is the mark of padding."""
    y_true, y_pred = [-1, 1, -1, 1, -1], [-1, 1, 1, 1, -1]
    with pytest.warns(UserWarning, match=r"truth is -1 are ignored, but -1 is also pred.*labels="):
        assert jm.confusion_matrix(y_true, y_pred).sum() == 2
    jm.confusion_matrix(y_true, y_pred, where=np.array(y_true) > 0)
    assert jm.confusion_matrix([-100, 1, -100], [-100, 1, 0]).sum() == 1


@pytest.mark.quick
def test_number_of_classes_is_the_largest_and_one() -> None:
    """On the host; that of truth and prediction together, and that of groups apart."""
    np.testing.assert_array_equal(
        jm.confusion_matrix([0, 1, 1], [0, 2, 1]), [[1, 0, 0], [0, 1, 1], [0, 0, 0]]
    )
    assert jm.confusion_matrix([0, 1], [0, 1], groups=[0, 4]).shape == (5, 2, 2)
    assert jm.confusion_matrix([0, 1], [0, 1], groups=[0, 4], num_groups=7).shape == (7, 2, 2)
    assert jm.paired_confusion_matrix([0, 1], [0, 1], [2, 1]).shape == (3, 3, 3)
    assert (
        jm.confusion_matrix([], []).shape == jm.confusion_matrix([-1, -1], [0, -7]).shape == (1, 1)
    )
    assert jm.confusion_matrix([0, 5], [0, 1], where=[True, False], num_classes=2).shape == (2, 2)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("classes", "given"),
    [
        (["cat", "dog"], list),
        (["dog", "cat"], list),
        (["cat", "dog"], np.array),
        ([np.str_("cat"), np.str_("dog")], list),
        ([1, 2], list),
        ([2, 1], np.array),
        ([10**20, -5], list),
        ([(0, 1), (1, 0)], list),
        ([None, "cat"], list),
        ([False, True], list),
        ([1.5, -2.0], np.array),
        (["yes", 1], list),
    ],
    ids=str,
)
def test_labels_of_any_kind_in_their_order(classes: list[Any], given: Any) -> None:
    first, second = classes
    y_true, y_pred = given([first, second, second]), given([first, first, second])
    np.testing.assert_array_equal(
        jm.confusion_matrix(y_true, y_pred, labels=classes), [[1, 0], [1, 1]]
    )
    np.testing.assert_array_equal(
        jm.confusion_matrix(y_true, y_pred, labels=classes[::-1]), [[1, 1], [0, 1]]
    )
    paired = jm.paired_confusion_matrix(y_true, y_pred, y_true, labels=classes)
    np.testing.assert_array_equal(paired, [[[1, 0], [0, 0]], [[0, 1], [0, 1]]])


def series_of(module: str) -> Any:
    """A column of a library that may be missing."""
    library: Any = pytest.importorskip(module, reason=f"{module} is not installed")
    return library.tensor if module == "torch" else library.Series


@pytest.mark.quick
@pytest.mark.parametrize("module", ["pandas", "polars", "torch"])
def test_columns_of_other_libraries(module: str) -> None:
    series = series_of(module)
    y_true, y_pred, expected = [0, 1, 1, 2], [0, 1, 2, 2], [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    for counts in (
        jm.confusion_matrix(series(y_true), series(y_pred)),
        jm.confusion_matrix([series(y_true), series(y_true)], series(y_pred))[1],
        jm.confusion_matrix(series(y_true), series(y_pred), labels=[0, 1, 2]),
    ):
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, expected)
    weighted = jm.confusion_matrix(
        series(y_true), series(y_pred), sample_weight=series([0.5, 1.0, 1.0, 2.0])
    )
    np.testing.assert_array_equal(weighted, [[0.5, 0, 0], [0, 1, 1], [0, 0, 2]])
    masked = jm.confusion_matrix(
        series(y_true), series(y_pred), where=series([True, True, False, True])
    )
    np.testing.assert_array_equal(masked, [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    if module != "torch":
        pets = jm.confusion_matrix(
            series(["cat", "dog"]), series(["dog", "dog"]), labels=["cat", "dog"]
        )
        np.testing.assert_array_equal(pets, [[0, 1], [0, 1]])


@pytest.mark.quick
def test_no_floating_point_error_is_raised() -> None:
    """Where a program has asked for errors: also of nothing, one class, an absent class."""
    with np.errstate(all="raise"):
        for counts in (
            np.zeros((3, 3)),
            np.array([[4]]),
            np.array([[3, 1, 0], [2, 2, 0], [0, 0, 0]]),
        ):
            assert not np.isnan(jm.normalize(counts)).any()
            assert jm.one_vs_rest(counts).shape == (len(counts), 2, 2)
        jm.soft_confusion_matrix([0, 1], [[1e-300, 1.0], [1.0, 0.0]], sample_weight=[1e-300, 1.0])
        jm.confusion_matrix_at_thresholds([0, 1], [-np.inf, np.inf], [0.0])


@pytest.mark.parametrize(
    "dtype",
    [
        bool,
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
        np.int32,
        np.uint32,
        np.int64,
        np.uint64,
        ml_dtypes.int4,
        ml_dtypes.uint4,
    ],
)
@pytest.mark.parametrize("num_classes", [2, 200, 70_000])
def test_any_integer_dtype(dtype: Any, num_classes: int, x64: bool) -> None:
    for convert in (np.asarray, jnp.asarray):
        # Too many for a matrix in a test: a table of one truth by 70,000 groups.
        if num_classes == 70_000:
            groups = convert(np.array([1, 0], dtype))
            tables = jm.confusion_matrix(
                [0, 0], [0, 0], num_classes=1, groups=groups, num_groups=num_classes
            )
            assert tables.sum() == 2
            assert tables[1, 0, 0] == tables[0, 0, 0] == 1
            continue
        y_true, y_pred = np.array([0, 1, 1], dtype), np.array([1, 1, 0], dtype)
        counts = jm.confusion_matrix(convert(y_true), convert(y_pred), num_classes=num_classes)
        assert counts.dtype == (np.int64 if convert is np.asarray else np.int32)
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
def test_invalid_labels_raise_or_are_dropped_never_wrapped_or_clipped(
    invalid: np.ndarray, x64: bool
) -> None:
    valid = np.zeros(len(invalid), np.int32)
    places = int(np.argmax(invalid > 2)), 0
    for y_true, y_pred, name, place in (
        (invalid, valid, "y_true", places[0]),
        (valid, invalid, "y_pred", places[1]),
    ):
        with pytest.raises(
            ValueError,
            match=rf"{name}\[{place}\] is {invalid[place]}, but class ids must lie in \[0, 3\)",
        ):
            jm.confusion_matrix(y_true, y_pred, num_classes=3)
    negative = invalid[invalid < 0]
    for weights in (None, np.ones(len(negative))):
        ignored = jm.confusion_matrix(
            negative, valid[: len(negative)], num_classes=3, sample_weight=weights
        )
        assert ignored.sum() == 0
    # Else JAX itself has cut the labels to 32 bits before we see them.
    if x64 or invalid.itemsize < 8:
        assert jm.confusion_matrix(jnp.asarray(invalid), valid, num_classes=3).sum() == 0
        assert (
            jm.confusion_matrix(
                valid, jnp.asarray(invalid), num_classes=3, sample_weight=np.ones(len(valid))
            ).sum()
            == 0
        )


@everywhere
def test_more_examples_than_a_chunk(convert: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the host: two batch entries at a time.
    monkeypatch.setattr(counting, "_EXAMPLES_AT_ONCE", 2**17)
    rng = np.random.default_rng(0)
    for n in (2**16, 2**16 + 1, 3 * 2**16 - 1):
        y_true, y_pred = rng.integers(-1, 3, n), rng.integers(0, 3, n)
        expected = np.zeros((3, 3), int)
        valid = y_true >= 0
        np.add.at(expected, (y_true[valid], y_pred[valid]), 1)
        np.testing.assert_array_equal(
            jm.confusion_matrix(convert(y_true), y_pred, num_classes=3), expected
        )
        batch = jm.confusion_matrix(
            y_true, convert(np.stack([y_pred, y_pred % 2, y_pred])), num_classes=3
        )
        np.testing.assert_array_equal(batch[2], expected)
        where = np.arange(n) != np.flatnonzero(valid)[0]
        weights = np.broadcast_to(np.array([[1.0], [2.0], [0.5]]), (3, n))
        weighted = jm.confusion_matrix(
            y_true, convert(y_pred), num_classes=3, sample_weight=weights, where=where
        )
        expected[y_true[~where], y_pred[~where]] -= 1
        np.testing.assert_allclose(
            weighted, expected * np.array([1, 2, 0.5])[:, None, None], rtol=1e-6
        )


def test_many_classes_and_large_batches_on_the_host() -> None:
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(0, 1000, (2, 20_000))
    expected = np.zeros((1000, 1000), int)
    np.add.at(expected, (y_true, y_pred), 1)
    np.testing.assert_array_equal(jm.confusion_matrix(y_true, y_pred), expected)
    large = np.array([2**40 + 1, 2**53 - 1, 7])
    y = np.array([0, 1, 1])
    sums = jm.confusion_matrix(y, y, sample_weight=large)
    np.testing.assert_array_equal(sums, [[2**40 + 1, 0], [0, 2**53 + 6]])
    assert jm.confusion_matrix(*np.zeros((2, 2**24 + 1), np.int8), num_classes=1).tolist() == [
        [2**24 + 1]
    ]


@pytest.mark.parametrize("length", [300, 1000])
def test_both_ways_of_counting_agree(length: int) -> None:
    """CPUs count in chunks, other devices at once; both run here."""
    rng = np.random.default_rng(0)
    ids = tuple(jnp.asarray(rng.integers(-1, 4, (2, 1000)), jnp.int32) for _ in range(2))
    keep = jnp.asarray(rng.random((1, 1000)) < 0.8)
    table = scatter._count_in_chunks(2, (3, 3), length, ids, keep)
    expected = [oracles.confusion_matrix(ids[0][b], ids[1][b], 3, where=keep[0]) for b in range(2)]
    np.testing.assert_array_equal(table, expected)


def test_more_cells_than_int32_can_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fused index y_true * K + y_pred wraps from K = 46,341 on. Such a matrix is too large for
    a test: as if 15 were.
    """
    y_true, y_pred = jnp.array([0, 3, 3, -1, 4, 2, 2]), jnp.array([3, 1, 1, 0, 0, 4, 0])
    weights = np.array([1, 2, 3, 4, 5, 6, 7], np.float32)
    with monkeypatch.context() as patch:
        for module in (counting, scatter):
            patch.setattr(module, "INT32_MAX", 15)
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
        tenths = jm.confusion_matrix(
            zeros, zeros, num_classes=num_classes, sample_weight=jnp.full(n, 0.1)
        )
        np.testing.assert_allclose(tenths[0, 0], np.float32(0.1) * np.float64(n), rtol=1e-5)
    soft = jm.soft_confusion_matrix(zeros, jnp.full((n, 1), 0.1))
    np.testing.assert_allclose(soft[0, 0], np.float32(0.1) * np.float64(n), rtol=1e-5)


@everywhere
@pytest.mark.parametrize("num_classes", [3, 40])
def test_weighted_sums_of_many_examples(convert: Any, num_classes: int) -> None:
    """Few cells and many, one of them crowded, with ignored labels and batch axes: as NumPy's
    float64 sums.
    """
    rng = np.random.default_rng(0)
    y_true = np.where(rng.random((2, 5000)) < 0.8, 1, rng.integers(-1, num_classes, (2, 5000)))
    y_pred = np.where(rng.random(5000) < 0.8, 2, rng.integers(0, num_classes, 5000))
    weights = rng.random((2, 5000)).astype(np.float32)
    ours = jm.confusion_matrix(
        convert(y_true), y_pred, num_classes=num_classes, sample_weight=weights
    )
    for b in range(2):
        expected = oracles.confusion_matrix(y_true[b], y_pred, num_classes, weights[b])
        np.testing.assert_allclose(ours[b], expected, rtol=1e-12 if convert is np.asarray else 1e-6)


def test_weights_of_any_dtype(x64: bool) -> None:
    y = np.array([0, 1, 1])
    all_weights: list[Any] = [
        np.array([1, 2, 4], dtype) for dtype in (int, np.float16, ml_dtypes.bfloat16)
    ]
    for weights in (*all_weights, [1.0, 2.0, 4.0]):
        for labels, expected_dtype in (
            (y, np.float64),
            (jnp.asarray(y), np.float64 if x64 else np.float32),
        ):
            counts = jm.confusion_matrix(labels, y, num_classes=2, sample_weight=weights)
            assert counts.dtype == expected_dtype
            np.testing.assert_array_equal(counts, [[1, 0], [0, 6]])
    low = jm.confusion_matrix(y, y, num_classes=2, sample_weight=jnp.array([1, 2, 4], jnp.bfloat16))
    np.testing.assert_array_equal(low, [[1, 0], [0, 6]])
    half = jm.confusion_matrix(y, y, num_classes=2, sample_weight=np.full(3, 0.5))
    np.testing.assert_array_equal(half, [[0.5, 0], [0, 1]])  # not bool(0.5)
    for labels in (y, jnp.asarray(y)):
        large = jm.confusion_matrix(labels, y, num_classes=2, sample_weight=np.array([2**40, 1, 1]))
        assert float(large[0, 0]) == 2.0**40  # not cut to 32 bits


def test_empty_input() -> None:
    empty: Any
    for empty in ([], np.zeros(0, int), jnp.zeros(0, jnp.int32)):
        np.testing.assert_array_equal(
            jm.confusion_matrix(empty, empty, num_classes=2), np.zeros((2, 2), int)
        )
        weighted = jm.confusion_matrix(empty, empty, num_classes=2, sample_weight=np.zeros(0))
        np.testing.assert_array_equal(weighted, np.zeros((2, 2)))
        assert jm.confusion_matrix_at_thresholds(empty, np.zeros(0), [0.5]).shape == (1, 2, 2)
        assert jm.soft_confusion_matrix(empty, np.zeros((0, 3))).shape == (3, 3)
    assert jm.confusion_matrix(np.zeros((0, 4), int), np.zeros(4, int), num_classes=2).shape == (
        0,
        2,
        2,
    )


@pytest.mark.quick
def test_soft_confusion_matrix_by_hand() -> None:
    probs = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]
    np.testing.assert_array_equal(
        jm.soft_confusion_matrix([0, 1, 1], probs, num_classes=2), [[0.75, 0.25], [0.75, 1.25]]
    )
    half = jm.soft_confusion_matrix([0, 1, 1], probs, sample_weight=[1.0, 0.5, 0.0])
    np.testing.assert_array_equal(half, [[0.75, 0.25], [0.25, 0.25]])


@given(
    hnp.arrays(np.int32, 30, elements=st.integers(-1, 1)),
    hnp.arrays(
        np.float32,
        30,
        elements=st.sampled_from([-np.inf, -1.5, 0.0, 0.125, 0.125, 2.0, np.inf, np.nan]),
    ),
    hnp.arrays(np.float32, 6, elements=st.sampled_from([-np.inf, -1.5, 0.0, 0.125, 1.0, np.inf])),
)
def test_thresholds_equal_one_matrix_each(
    y: np.ndarray, scores: np.ndarray, thresholds: np.ndarray
) -> None:
    known = ~np.isnan(scores)
    # Drops NaN.
    on_device = jm.confusion_matrix_at_thresholds(jnp.asarray(y), jnp.asarray(scores), thresholds)
    if (y == 0).any() or not ((y == 1).any() and (y == -1).any()):
        ours = jm.confusion_matrix_at_thresholds(y, scores, thresholds, where=known)
        np.testing.assert_array_equal(on_device, ours)
    for table, threshold in zip(on_device, thresholds, strict=True):
        expected = oracles.confusion_matrix(y, scores >= threshold, 2, where=known)
        np.testing.assert_array_equal(table, expected)


def test_one_vs_rest_of_integers_and_floats() -> None:
    counts = np.array([[6, 4, 0], [1, 3, 1], [0, 0, 2]])
    expected = [
        [[tn, fp], [fn, tp]]
        for tp, fp, fn, tn in (oracles.cells(counts.astype(float), k) for k in range(3))
    ]
    for dtype, wide in ((np.int32, np.int64), (np.float32, np.float64)):
        for matrix, kept in ((counts.astype(dtype), wide), (jnp.asarray(counts, dtype), dtype)):
            ours = jm.one_vs_rest(matrix)
            assert ours.dtype == kept
            np.testing.assert_array_equal(ours, expected)
    # Their sum overflows int32, TN does not.
    large = np.array([[2**30, 2**29, 5], [7, 2**30, 1], [1, 2, 3]], np.int32)
    for matrix in (large, jnp.asarray(large)):
        np.testing.assert_array_equal(
            jm.one_vs_rest(matrix)[0], [[2**30 + 6, 8], [2**29 + 5, 2**30]]
        )
    huge = np.array([[2**53 + 1, 1], [2, 2**40 + 1]])  # beyond float64
    np.testing.assert_array_equal(jm.one_vs_rest(huge)[1], [[2**53 + 1, 1], [2, 2**40 + 1]])
    assert jm.one_vs_rest(np.stack([counts] * 4).reshape(2, 2, 3, 3)).shape == (2, 2, 3, 2, 2)
    small = [[200, 100, 3], [50, 7, 9], [90, 90, 90]]
    for narrow in (np.array(small, np.uint8), jnp.array(small, jnp.uint8)):
        assert jm.one_vs_rest(narrow)[1, 0, 0] == 200 + 3 + 90 + 90  # not modulo 256
    rare = jm.one_vs_rest(jnp.array([[1e9, 7.0], [3.0, 13.0]], np.float32))
    assert rare[0, 0, 0] == 13  # 1e9 + 23 - 1e9 - 10 in float32 is 0 or 64


def test_normalize() -> None:
    counts = np.array([[6, 2, 0], [1, 1, 0], [0, 0, 0]])
    np.testing.assert_allclose(
        jm.normalize(counts, over="true"), np.array([[0.75, 0.25, 0], [0.5, 0.5, 0], [0, 0, 0]])
    )
    np.testing.assert_allclose(
        jm.normalize(counts, over="pred"),
        np.array([[6 / 7, 2 / 3, 0], [1 / 7, 1 / 3, 0], [0, 0, 0]]),
    )
    np.testing.assert_allclose(jm.normalize(counts, over="all"), counts / 10)
    with pytest.raises(ValueError, match=r"over must be 'true', 'pred' or 'all', got .rows."):
        jm.normalize(counts, over="rows")  # type: ignore[arg-type]


def test_paired_margins() -> None:
    rng = np.random.default_rng(0)
    y, a, b = rng.integers(0, 4, (3, 60))
    paired = jm.paired_confusion_matrix(y, a, b, num_classes=4)
    np.testing.assert_array_equal(paired.sum(-1), oracles.confusion_matrix(y, a, 4))
    np.testing.assert_array_equal(paired.sum(-2), oracles.confusion_matrix(y, b, 4))
    assert paired[y[0], a[0], b[0]] == sum((y == y[0]) & (a == a[0]) & (b == b[0]))


def test_soft_counts_of_numbers_that_are_no_probabilities_raise() -> None:
    no_number, outside = "not a number; use where= to", r"but probabilities lie in \[0, 1\]"
    for invalid, message in ((3.0, outside), (-1.0, outside), (np.nan, no_number)):
        probs = [[0.5, invalid], [0.25, 0.75]]
        with pytest.raises(ValueError, match=rf"y_prob\[0, 1\] is {invalid:g}, {message}"):
            jm.soft_confusion_matrix([0, 1], probs)
        for options in (
            {"where": [False, True]},
            {"sample_weight": [0.0, 1.0]},
            {"groups": [-1, 0]},
        ):
            counts = jm.soft_confusion_matrix([0, 1], probs, **options)
            np.testing.assert_array_equal(counts.reshape(2, 2), [[0, 0], [0.25, 0.75]])
        np.testing.assert_array_equal(
            jm.soft_confusion_matrix([-100, 1], probs), [[0, 0], [0.25, 0.75]]
        )


def test_values_of_examples_that_do_not_count_are_not_checked() -> None:
    expected = [[0, 0], [0, 2]]
    np.testing.assert_array_equal(
        jm.confusion_matrix([-1, 1, 1], [7, 1, 1], num_classes=2, groups=[0, 0, 0])[0], expected
    )
    np.testing.assert_array_equal(
        jm.confusion_matrix([-2, 1, -1], [-1, 1, 0], num_classes=2, sample_weight=[-1, 2, np.nan]),
        expected,
    )
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1, expected a finite weight"):
        jm.confusion_matrix([0, 1], [0, 1], sample_weight=[-1, 2])


def test_missing_strings_of_numpy_are_named() -> None:
    y_true = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    with pytest.raises(ValueError, match=r"y_true\[1\] is None, which is not one of the classes"):
        jm.confusion_matrix(y_true, ["a", "a"], labels=["a"])
    np.testing.assert_array_equal(
        jm.confusion_matrix(y_true, ["a", "a"], labels=["a"], where=[True, False]), [[1]]
    )


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_sums_beyond_int64(dtype: type) -> None:
    """They are floats, not what int64 or uint64 wrap to."""
    counts: np.ndarray = np.array([[5 * 10**18, 10], [20, 5 * 10**18]], dtype)
    assert jm.one_vs_rest(counts).dtype == float
    np.testing.assert_allclose(jm.one_vs_rest(counts)[0], [[5e18, 20], [10, 5e18]], rtol=1e-15)
    three: np.ndarray = np.full((3, 3), 2**63 - 1, dtype)
    np.testing.assert_allclose(jm.one_vs_rest(three)[1], [[2.0**65, 2.0**64], [2.0**64, 2.0**63]])
    assert jm.normalize(three)[0, 0] == 1 / 3
    assert jm.one_vs_rest(np.full((3, 3), 2**58, dtype)).dtype == np.int64


@pytest.mark.parametrize("ignored", [-1, -100])
def test_negative_labels_of_few_bits_are_no_classes(ignored: int) -> None:
    """As unsigned numbers they are below the number of classes."""
    given, other = np.array([3, ignored, 2], np.int8), np.array([3, 1, 2], np.int8)
    counts = jm.confusion_matrix(given, other, num_classes=300)
    assert counts.sum() == 2 == counts[3, 3] + counts[2, 2]
    with pytest.raises(ValueError, match=rf"y_pred\[1\] is {ignored}, but class ids must lie in"):
        jm.confusion_matrix(other, given, num_classes=300)


@pytest.mark.parametrize("dtype", [">i2", ">i4", ">i8", ">u2", ">u4", ">u8"])
def test_labels_in_the_byte_order_of_other_machines(dtype: str) -> None:
    """Read in this machine's, the second label is 1."""
    large = 1 << 8 * (np.dtype(dtype).itemsize - 1)
    truth, pred = np.array([0, large], dtype), np.array([0, 1], dtype)
    with pytest.raises(ValueError, match=rf"y_true\[1\] is {large}, but class ids must lie"):
        jm.confusion_matrix(truth, pred, num_classes=2)
    assert jm.confusion_matrix(pred, pred, num_classes=2).tolist() == [[1, 0], [0, 1]]
    if dtype[1] == "i":
        assert jm.confusion_matrix(-truth, pred, num_classes=300).sum() == 1


def test_negative_weights_in_jax_arrays_are_nan() -> None:
    weights = jnp.array([2.0, -1.0])
    counts = jm.confusion_matrix([0, 1], [0, 1], num_classes=2, sample_weight=weights)
    np.testing.assert_array_equal(counts, [[2, 0], [0, np.nan]])


PETS = ["cat", "dog"]
KEPT: Any = {"where": [True, False]}


@pytest.mark.quick
def test_what_does_not_count_is_not_looked_at() -> None:
    """Labels that are unknown, no numbers, and weights: where a mask, -1 or jit hides them."""
    expected = [[1, 0], [0, 0]]
    for counts in (
        jm.confusion_matrix(PETS, ["cat", "cow"], labels=PETS, **KEPT),
        jm.confusion_matrix([0, 1], [0, 5], num_classes=2, **KEPT),
        jm.confusion_matrix([0, 5], [0, 1], num_classes=2, where=jnp.array([True, False])),
        jm.multilabel_confusion_matrix([[0], [7]], [[0], [1]], **KEPT)[0],
        jm.soft_confusion_matrix([0, 1], [[1.0, 0.0], [np.nan, 1.0]], **KEPT),
    ):
        np.testing.assert_array_equal(counts, expected)
    thresholds = [0.5]
    for counts in (
        jm.confusion_matrix_at_thresholds([0, 1], [0.5, np.nan], thresholds, **KEPT),
        jm.confusion_matrix_at_thresholds(
            jnp.array([0, 1]), jnp.array([0.5, jnp.nan]), jnp.array(thresholds)
        ),
        jm.confusion_matrix_at_thresholds([0, -1], [0.5, 0.6], thresholds),
    ):
        np.testing.assert_array_equal(counts, [[[0, 1], [0, 0]]])
    keys: Any = {"b": 1, "a": 2}.keys()
    ordered = jm.confusion_matrix(["a", "b"], ["a", "a"], labels=keys)
    np.testing.assert_array_equal(ordered, [[0, 1], [0, 1]])
    assert jm.multilabel_confusion_matrix([[1, 0, 1]], [[1, 1, 0]]).shape == (3, 2, 2)
    np.testing.assert_array_equal(jm.confusion_matrix(np.ma.array([0, 1]), [0, 1]), np.eye(2))
    assert jm.accuracy(jm.confusion_matrix([0, 1], [0, 0], sample_weight=[1e280, 1e280])) == 0.5
    for labels in ([0, 1, 2], []):
        jm.check_labels(labels, num_classes=3)


matrix, at_thresholds, soft, multilabel = (
    jm.confusion_matrix,
    jm.confusion_matrix_at_thresholds,
    jm.soft_confusion_matrix,
    jm.multilabel_confusion_matrix,
)
Y = np.array([0, 1, 1])
COLUMN = r"y_true has shape \(3, 1\), which is a column.*Pass y_true\.ravel\(\) to put all examples"
MASKED = np.ma.array([0, 1, 2], mask=[False, False, True])
MASKED_NAMES = np.ma.array(["a", "b", "c"], mask=MASKED.mask)
MASKED_COUNTS = np.ma.array([[5, 1], [2, 9]], mask=[[False, True], [False, False]])
LARGE = [1e308, 1e308]
MISTAKES: list[tuple[Callable[[], Any], str]] = [
    # Sizes.
    (lambda: matrix(jnp.array([0]), [0]), "num_classes is required if y_true is a JAX array"),
    (lambda: matrix([0], jnp.array([0])), "num_classes is required if y_pred is a JAX array"),
    (lambda: matrix([0], [0], groups=jnp.array([0])), "num_groups is required if groups is a JAX"),
    (lambda: matrix(Y, Y, num_groups=2), "num_groups is given without groups, the group ids"),
    (lambda: matrix([2**40], [0]), "largest class id in y_true, y_pred is 1099511627776, .* label"),
    (lambda: matrix([0], [0], num_classes=2**31), r"num_classes must be below 2\^31"),
    (lambda: matrix(jnp.array([0]), [0], num_classes=2**31), r"num_classes must be below 2\^31"),
    (lambda: jm.check_labels([0], num_classes=10**30), r"num_classes must be below 2\^31"),
    (lambda: matrix(jnp.array([0]), [0], num_classes=2**20), "GiB of memory. At most 1073741824 "),
    (lambda: jm.paired_confusion_matrix([0], [0], [0], num_classes=2**14), "GiB of memory"),
    (
        lambda: jm.evaluator(jm.count_metrics({"a": jm.accuracy}, num_classes=2**20)).init(),
        "GiB of memory",
    ),
    (lambda: matrix([0], [0], num_classes=0), "num_classes must be at least 1, got 0"),
    (lambda: matrix([0], [0], num_classes=2.0), "must be a Python int, got 2.0. Pass int"),  # type: ignore[call-overload]
    (lambda: matrix([0], [0], num_classes=True), "num_classes must be a Python int.*got bool"),
    (
        lambda: jax.jit(lambda k: matrix([0], [0], num_classes=k))(2),
        "num_classes must be a Python int.*static_argnames",
    ),
    # Class names.
    (
        lambda: matrix(PETS, ["cat", "cow"], labels=PETS),
        r"y_pred\[1\] is 'cow', which is not one of the classes in labels, \['cat', 'dog'\]",
    ),
    (
        lambda: matrix(np.array([PETS, ["cow", "dog"]]), PETS, labels=PETS),
        r"y_true\[1, 0\] is 'cow', which is not one of the classes in labels",
    ),
    (lambda: matrix([0, 1], [0, 1], labels=PETS), r"y_true\[0\] is 0, which is not one of the"),
    (
        lambda: matrix(PETS, PETS, labels=["cat", "cat"]),
        r"only once, got \['cat', 'cat'\]",
    ),
    (lambda: matrix(PETS, PETS, labels=[]), r"at least one class, and it must .* got \[\]"),
    (lambda: matrix(PETS, PETS, labels=PETS, num_classes=3), "2 classes, but num_classes is 3"),
    (
        lambda: matrix(jnp.array([0]), [0], labels=[0, 1]),
        r"y_true is a JAX array\. Leave out labels and pass class ids",
    ),
    (
        lambda: matrix([PETS, PETS], PETS, labels=PETS),
        "list or a NumPy array .* but unhashable",
    ),
    (lambda: matrix(PETS, PETS, labels={*PETS}), "labels must be a sequence of names, got"),  # type: ignore[call-overload]
    (lambda: matrix(PETS, PETS, num_classes=2), r"y_true\[0\] is 'cat'.*\(..., labels=\[...\]\)"),
    (
        lambda: jm.roc_auc(np.array(["cat", "dog", "dog"]), [0.1, 0.2, 0.3]),
        r"\[labels.index\(x\) for x in y_true\]",
    ),
    (
        lambda: matrix(Y, Y, groups=np.array(["cat", "dog", "dog"])),
        r"numpy.unique\(groups, return_inverse=True\)\[1\] converts",
    ),
    # Class ids.
    (
        lambda: matrix([0, 1, 5], Y, num_classes=3),
        r"y_true\[2\] is 5, but class ids must lie in \[0, 3\).*start from 1, subtract 1",
    ),
    (lambda: matrix([0, 1], [[0, 1], [3, 1]], num_classes=3), r"y_pred\[1, 0\] is 3, but class"),
    (
        lambda: jm.paired_confusion_matrix([0], [1], [2], num_classes=2),
        r"y_pred_b\[0\] is 2, .*Convert binary truth to 0 and 1",
    ),
    (lambda: matrix([0, 1], [0, 1], groups=[0, 3], num_groups=2), r"groups\[1\] is 3"),
    (lambda: soft([0, 2], [[0.5, 0.5], [0.5, 0.5]]), r"y_true\[1\] is 2"),
    (lambda: multilabel([[1, 0], [1, 2]], [[1, 0], [0, 1]]), r"y_true\[1, 1\] is 2"),
    (lambda: at_thresholds([0, 2], [0.5, 0.6], [0.5]), r"y_true\[1\] is 2, but .* lie in \[0, 2\)"),
    (
        lambda: at_thresholds([0, 1], [0.5, np.nan], [0.5]),
        r"y_score\[1\] is nan, not a number",
    ),
    (
        lambda: jm.check_labels(np.array([[0, 1], [2, -1]]), num_classes=3, name="y_pred"),
        r"y_pred\[1, 1\] is -1, but class ids must lie in \[0, 3\)",
    ),
    (lambda: jm.check_labels([2**32], num_classes=3), r"labels\[0\] is 4294967296"),
    (lambda: jm.check_labels([0.5], num_classes=3), "labels must hold class ids of .* got float64"),
    (
        lambda: jax.jit(lambda y: jm.check_labels(y, num_classes=3))(jnp.zeros(3, jnp.int32)),
        "labels has no known values.* Call this function outside",
    ),
    (lambda: matrix([0.2, 0.9], [0, 1]), "y_true must hold class ids.*float64.*Truth comes first"),
    (
        lambda: matrix(Y, jnp.zeros((2, 3)), num_classes=2),
        "y_pred must hold .*float32.*argmax",
    ),
    (lambda: soft([[0.5, 0.5]], [[0.5, 0.5]]), "y_true must hold class ids"),
    (lambda: at_thresholds([0.5, 0.1], [0, 1], [0.5]), "y_true must hold class ids"),
    # Shapes.
    (lambda: matrix(Y[:, None], Y[:, None], num_classes=2), COLUMN),
    (lambda: at_thresholds(Y[:, None], Y[:, None] / 2, [0.5]), COLUMN),
    (lambda: matrix(*[np.array([["a"], ["b"]])] * 2, labels=["a", "b"]), "which is a column"),
    (
        lambda: matrix([[0, 1], [1]], [0, 1]),
        "y_true must be an array, or .* of the same length",
    ),
    (
        lambda: soft([0, 1], [[0.5, 0.5], [1.0]]),
        "y_prob must be an array, or .* same length",
    ),
    (lambda: matrix(np.eye(3), Y), r"float64: y_true\[0, 0\] is 1.0\. Truth.*y_true\.argmax\(-1\)"),
    (lambda: matrix(Y, np.eye(3, 4, dtype=int)), r"one-hot.* pass \.argmax\(-1\)"),
    (lambda: matrix(Y, [0, 1]), r"same number of examples.*y_true \(3,\), y_pred \(2,\)"),
    (lambda: matrix([0, 1], [0, 1], sample_weight=[1.0]), r"same number .*sample_weight \(1,\)"),
    (lambda: matrix(0, 1, num_classes=2), "y_true and y_pred must have one value per example"),
    (
        lambda: matrix(np.zeros((2, 3), int), np.zeros((4, 3), int)),
        r"batch axes, which must broadcast as in NumPy.*\(2, 3\).*\(4, 3\)",
    ),
    *(
        (call, r"If all elements are examples, pass \.ravel\(\) of each array")
        for call in (
            lambda: matrix(np.zeros((2, 3), int), np.zeros(6, int)),
            lambda: matrix(np.zeros((2, 3), int), np.zeros((2, 4), int)),
            lambda: matrix([PETS, PETS], [PETS, PETS], labels=PETS),
        )
    ),
    (
        lambda: soft([0], [[0.1, 0.2, 0.7]], num_classes=2),
        "The last axis of y_prob has one entry for each of 3 classes, but num_classes is 2",
    ),
    (lambda: soft([0], [0.1]), r"y_prob must have shape \(..., n, K\)"),
    (lambda: multilabel([0, 1], [0, 1]), r"must have shape \(..., n, L\).*got \(2,\) and \(2,\)"),
    (
        lambda: multilabel([[1], [0]], np.ones((2, 3), int)),
        r"same n and L.*\(2, 1\) and \(2, 3\)",
    ),
    (
        lambda: multilabel([[1], [0]], [[1], [1]], sample_weight=1.0),
        r"at least one axis, because the last axis is the axis of examples.*sample_weight \(\)",
    ),
    (lambda: multilabel(*np.zeros((2, 2, 0), int)), r"\(..., n, L\).*\(2, 0\) and \(2, 0\)"),
    (lambda: at_thresholds([0], [0.5], 0.5), r"thresholds must have shape \(T,\)"),
    (lambda: jm.one_vs_rest([[1, 2, 3]]), r"counts must have shape \(..., K, K\)"),
    (lambda: matrix(Y, Y, where=Y), "where must be an array of dtype bool.*int64.*mask != 0"),
    (
        lambda: matrix([0], [0], sample_weight=["a"]),
        r"real numbers, .* sample_weight\[0\] is 'a'",
    ),
    *(
        (call, r"sample_weight\[0\] is 1e\+308, expected a finite")
        for call in (
            lambda: matrix([0, 1], [0, 0], sample_weight=LARGE),
            lambda: jm.roc_auc([0, 1], [0.1, 0.2], sample_weight=LARGE),
            lambda: jm.log_loss([0, 1], [[0.5, 0.5]] * 2, sample_weight=LARGE),
        )
    ),
    # Counts.
    (lambda: jm.one_vs_rest([[5, -1], [2, 9]]), r"counts\[0, 1\] is -1, expected a count >= 0"),
    (
        lambda: jm.difference(jm.accuracy)([[[5, -1], [1, 2]], [[1, 1], [1, 5]]]),
        r"paired\[0, 0, 1\] is -1, expected a count >= 0",
    ),
    (lambda: jm.roc_auc([[5, 1, -2], [0, 3, 4]]), r"histogram\[0, 2\] is -2, expected a count"),
    (lambda: jm.average_precision([[5, 1, -2], [0, 3, 4]]), r"histogram\[0, 2\] is -2, expected"),
    (
        lambda: jm.calibration_error([[3.0, 1.5, 2.0], [-1.0, 0.5, 1.0]]),
        r"y_true\[1, 0\] is -1",
    ),
    (
        lambda: jm.macro(jm.f1)(jm.TableCounts(np.eye(3, dtype=int), ("a", "b", "c"), (), (), 0)),
        r"got a TableCounts. Pass the array in its field \.counts",
    ),
    # Masked arrays.
    (lambda: matrix(MASKED, Y), r"y_true is a masked array: pass y_true\.data and where="),
    *(
        (call, "is a masked array: pass")
        for call in (
            lambda: matrix(Y, Y, sample_weight=MASKED / 2),
            lambda: matrix(MASKED_NAMES, ["a", "b", "c"], labels=["a", "b", "c"]),
            lambda: matrix(jnp.array([0, 1, 2]), MASKED, num_classes=3),
            lambda: jm.accuracy(MASKED_COUNTS),
            lambda: jm.proportion_interval(MASKED, jnp.array([3, 3, 3])),
            lambda: jm.roc_auc(Y, MASKED / 2),
            lambda: jm.cross_entropy(jnp.eye(3), MASKED),
            lambda: jm.mean_interval(MASKED / 2),
            lambda: jm.report(MASKED_NAMES, ["a", "b", "c"]),
            lambda: jm.Report.from_counts(MASKED_COUNTS),
            lambda: jm.comparison_report(Y, MASKED, Y),
        )
    ),
]


@pytest.mark.quick
@pytest.mark.parametrize(("call", "message"), MISTAKES)
def test_mistakes_are_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()
