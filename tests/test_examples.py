"""What is given as examples is what it seems to be: else an error or a warning says so."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import jaxmetrics as jm
from tests.cases import ROWS, Row

pytestmark = pytest.mark.quick


# Truth of two classes.

_EVENTS, _P = [-1, 1, 1, -1], [0.2, 0.7, 0.4, 0.9]
_OF_EVENTS: dict[str, Callable[..., Any]] = {
    "counts": lambda y, p, **o: jm.confusion_matrix_at_thresholds(y, p, [0.5], **o),
    "area": jm.average_precision,
    "calibration": jm.calibration_error,
    "rows": lambda y, p, **o: jm.log_loss(y, jm.two_class(p), **o),
    "loss": lambda y, p, **o: jm.pairwise_auc_loss(p, y, **o),
    "hinge": lambda y, p, **o: jm.hinge_loss(p, y, **o).sum(),
}


@pytest.mark.parametrize("call", _OF_EVENTS.values(), ids=_OF_EVENTS)
def test_truth_of_minus_one_and_one(call: Callable[..., Any]) -> None:
    """It is ignored as any negative label, with a warning unless that is meant."""
    positives = call([1, 1], [0.7, 0.4])
    with pytest.warns(
        UserWarning, match=r" contains -1 and 1 but not 0. Examples .* pass \w+ == 1"
    ):
        assert_array_equal(call(_EVENTS, _P), positives)
    padding = np.array(_EVENTS) > 0
    assert_array_equal(call(_EVENTS, _P, where=padding), positives)
    assert_array_equal(call([-100, 1, 1, -100], _P), positives)
    call([*_EVENTS, 0], [*_P, 0.1])
    with pytest.warns(UserWarning, match="contains -1 and 1 but not 0"):
        call([*_EVENTS, 0], [*_P, 0.1], where=np.arange(5) < 4)


# What is no number.


def in_seconds(x: np.ndarray) -> np.ndarray:
    return np.asarray(x).astype("m8[ms]")


def calls_with_durations() -> Iterator[Any]:
    for key, row in ROWS.items():
        if key == "scorer":  # labels of any kind
            continue
        for i in range(len(row.examples)):
            yield pytest.param(row, i, "", id=f"{key}-{i}")
        for option in sorted(set(row.options) & {"sample_weight", "groups"}):
            yield pytest.param(row, None, option, id=f"{key}-{option}")


@pytest.mark.parametrize(("row", "i", "option"), list(calls_with_durations()))
def test_durations_are_no_integers(row: Row, i: int | None, option: str) -> None:
    arrays = [in_seconds(x) if j == i else x for j, x in enumerate(row.ordinary)]
    n = row.ordinary[0].shape[row.examples[0]]
    options = {option: in_seconds(np.arange(n) % 2)} if option else {}
    with pytest.raises(TypeError, match=r"timedelta64\[ms\]|is datetime.timedelta|Duration"):
        row.call(*arrays, **options)


_NUMBERS = "numpy.asarray(y_true, int) converts"
_MISSING = "In integer truth, -1 marks examples to ignore"


@pytest.mark.parametrize(
    ("y_true", "found", "hint"),
    [
        ([1.0, 0.0, 1.0], "y_true[0] is 1.0", _NUMBERS),
        ([[1.0, 0.0], [np.nan, 1.0]], "y_true[1, 0] is nan", _MISSING),
        ([1, None, 0], "y_true[1] is None", _MISSING),
        (pl.Series([1, 0, None]), "y_true[2] is nan", _MISSING),
        ([1.0, 0.3, 0.0], "y_true[1] is 0.3", "Truth comes first"),
        (["cat", "dog", "cat"], "y_true[0] is 'cat'", "labels=[...]"),
        (pl.Series([b"cat", b"dog"]), "y_true[0] is b'cat'", "labels=[...]"),
        (pl.Series(["cat", "dog"], dtype=pl.Categorical), "y_true[0] is 'cat'", "labels=[...]"),
        (pl.Series([[1], [0, 2]]), "y_true[0] is array([1])", "labels=[...]"),
    ],
)
def test_the_first_that_is_no_class_id_is_named(y_true: Any, found: str, hint: str) -> None:
    with pytest.raises(TypeError) as error:
        jm.confusion_matrix(y_true, np.zeros(np.shape(y_true), int))
    assert f"{found}." in str(error.value)
    assert hint in str(error.value)


@pytest.mark.parametrize(
    ("y_pred", "found"),
    [
        (["cat", None, "dog"], r"y_pred\[1\] is None\. Leave out rows without a label"),
        (["cat", 3, "dog"], r"y_pred\[1\] is 3\. list\(map\(str, y_pred\)\) converts"),
        (["cat", b"cat", "dog"], r"y_pred\[1\] is b'cat'\."),
    ],
)
def test_a_report_names_the_first_that_is_no_string(y_pred: Any, found: str) -> None:
    with pytest.raises(TypeError, match=f"all strings or all integers, but {found}"):
        jm.report(["cat", "dog", "dog"], y_pred)


def test_a_null_at_the_end_of_a_name_is_part_of_it() -> None:
    y_true, y_pred = ["a", "a\0", "a\0", "b"], ["a", "a", "a\0", "b"]
    for found in (jm.report(y_true, y_pred), jm.report(tuple(y_true), y_pred)):
        assert found.class_names == ("a", "a\0", "b")
        assert_array_equal(found.counts, [[1, 0, 0], [1, 1, 0], [0, 0, 1]])


# What is no array.


class Tensor:
    """Stands in for a tensor of torch that requires a gradient."""

    requires_grad = True

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")

    def detach(self) -> np.ndarray:
        return np.asarray(self.values)


class Elsewhere:
    """Stands in for a tensor in the memory of an accelerator."""

    def __array__(self, *args: Any, **options: Any) -> np.ndarray:
        raise RuntimeError("can't convert cuda:0 device type tensor to numpy.")


def test_tensors() -> None:
    value = jm.brier_score([0, 1], Tensor([[0.75, 0.25], [0.5, 0.5]]))
    assert value == (1 / 16 + 1 / 4) / 2
    with pytest.raises(TypeError, match=r"y_prob must be an array, or an object .* cuda:0"):
        jm.brier_score([0, 1], Elsewhere())


_ENDLESS: list[Any] = [0, 1]
_ENDLESS.append(_ENDLESS)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: jm.confusion_matrix([0, 1, 1], _ENDLESS), "y_pred must be an array"),
        (lambda: jm.confusion_matrix([0, 1, 1], _ENDLESS, labels=[0, 1]), "y_pred"),
        (lambda: jm.report([0, 1, 1], _ENDLESS), "y_pred must be an array"),
        (lambda: jm.cross_entropy(_ENDLESS, [0, 1, 1]), "logits must be an array"),
        (lambda: jm.mean_interval([0.1, 0.2, 0.3], clusters=_ENDLESS), "clusters must be an"),
        (lambda: jm.accuracy(_ENDLESS), "counts must be an array"),
    ],
)
def test_a_list_that_holds_itself_is_no_array(call: Callable[[], Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        call()


# One-hot rows, and probabilities in the place of logits.


def test_one_hot_rows_are_no_batch() -> None:
    ids = np.array([0, 2, 1, 2, 0])
    rows = np.eye(3, dtype=int)[ids]
    for labels in (rows, rows.astype(bool), rows.tolist()):
        for size in (None, 3):
            with pytest.raises(ValueError, match=r"y_true has shape \(5, 3\).* one-hot rows"):
                jm.confusion_matrix(labels, labels, num_classes=size)
    with pytest.raises(ValueError, match="one-hot rows"):
        jm.paired_confusion_matrix(rows, rows, rows, groups=[0, 1, 0])
    # Batches: of another number of classes, of several ones in a row, with an axis before.
    assert jm.confusion_matrix(rows, rows, num_classes=2).shape == (5, 2, 2)
    assert jm.confusion_matrix(np.vstack([rows, [1, 1, 0]]), np.zeros(3, int)).shape == (6, 2, 2)
    assert jm.confusion_matrix(rows[None], rows).shape == (1, 5, 2, 2)
    assert jm.multilabel_confusion_matrix(rows, rows).shape == (3, 2, 2)


_LABELS = [0, 2, 1]
_ROWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0.2, 0.5, 0.3]])
_OF_LOGITS: dict[str, Callable[..., Any]] = {
    "log_loss": lambda z, **o: jm.log_loss(_LABELS, logits=z, **o),
    "fit_temperature": lambda z, **o: jm.fit_temperature(_LABELS, z, **o),
    "cross_entropy": lambda z, **o: jm.cross_entropy(z, _LABELS, **o),
    "soft_cross_entropy": lambda z, **o: jm.soft_cross_entropy(z, _ROWS, **o),
    "focal_loss": lambda z, **o: jm.focal_loss(z, _LABELS, **o),
    "metric_loss": lambda z, **o: jm.metric_loss(jm.accuracy)(z, _LABELS, **o),
}


@pytest.mark.parametrize("call", _OF_LOGITS.values(), ids=_OF_LOGITS)
def test_probabilities_are_no_logits(call: Callable[..., Any]) -> None:
    message = r"logits must contain logits, but .* pass np\.log\(logits\)"
    for rows in (_ROWS, _ROWS.astype(np.float32), np.round(_ROWS, 3).tolist()):
        with pytest.raises(ValueError, match=message):
            call(rows)
    call(np.log(_ROWS))
    one_is_none = _ROWS + np.array([[0, 0, 0], [0, 0.4, 0], [0, 0, 0]])
    call(one_is_none)
    with pytest.raises(ValueError, match=message):
        call(one_is_none, where=[True, False, True])


def test_probabilities_on_a_device_are_taken_as_they_are() -> None:
    assert jm.cross_entropy(jnp.asarray(_ROWS), jnp.asarray(_LABELS)).shape == (3,)


# Labels out of range on a device.


def test_labels_out_of_range_on_a_device() -> None:
    """They are dropped, also where the array is no tracer; `check_labels` names the first."""
    labels = jnp.array([[0, 1, 1], [2, 5, -1]])
    counts = jm.confusion_matrix(labels, jnp.zeros_like(labels), num_classes=3)
    assert_array_equal(counts[1], [[0, 0, 0], [0, 0, 0], [1, 0, 0]])
    jm.check_labels(labels[0], num_classes=2)
    for array in (labels, jax.device_put(labels, jax.devices()[0]), labels.astype(jnp.int8)):
        with pytest.raises(ValueError, match=r"y_true\[1, 1\] is 5, but class ids must lie in"):
            jm.check_labels(array, num_classes=3, name="y_true")
