"""Classes are found in labels: their order, and labels that are perhaps the same class."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jaxmetrics as jm
from jaxmetrics import plots
from tests.cases import Constant

NAMES = np.array(["low", "medium", "high"])
rng = np.random.default_rng(0)
TRUE = rng.integers(0, 3, 60)
PRED = np.clip(TRUE + rng.integers(-1, 2, 60), 0, 2)
quadratic = partial(jm.cohen_kappa, weights="quadratic")
KAPPA = quadratic(jm.confusion_matrix(TRUE, PRED))


def of_pandas(ids: np.ndarray) -> Any:
    return pd.Series(pd.Categorical(NAMES[ids], NAMES, ordered=True))


def of_polars(ids: np.ndarray) -> Any:
    return pl.Series(NAMES[ids], dtype=pl.Enum(NAMES.tolist()))


def of_arrow(ids: np.ndarray) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(ids), pa.array(NAMES), ordered=True)


def of_digits(ids: np.ndarray) -> Any:
    return [str(i + 9) for i in ids]


ORDERED = {"pandas": of_pandas, "polars": of_polars, "arrow": of_arrow, "digits": of_digits}
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "digits": pl.DataFrame}


@pytest.mark.parametrize("kind", ORDERED)
def test_classes_keep_the_order_of_their_type(kind: str) -> None:
    true, pred = map(ORDERED[kind], (TRUE, PRED))
    names = ("9", "10", "11") if kind == "digits" else tuple(NAMES)
    columns = {"y_true": true, "y_pred": pred}
    table: Any = TABLES[kind](columns)
    counted = jm.confusion_matrix_of(table)
    axes = plots.confusion_matrix(true, pred)
    found = {
        "compare_predictions": jm.compare_predictions(quadratic, true, pred, pred).a.value,
        "leaderboard": jm.leaderboard(quadratic, true, [pred, pred]).estimates.value[0],
        "confusion_matrix_of": quadratic(counted.counts),
        "scorer": jm.scorer(quadratic)(Constant(pred), None, true),
        "report": quadratic(jm.report(true, pred).counts),
    }
    assert found == {name: pytest.approx(KAPPA, rel=1e-12) for name in found}
    assert jm.report(true, pred).class_names == counted.class_names == names
    assert tuple(label.get_text() for label in axes.get_yticklabels()) == names


def test_the_type_of_one_column_is_enough_and_absent_categories_count() -> None:
    low_and_high = of_pandas(np.array([0, 2, 0, 2]))
    pred = ["low", "high", "high", "high"]
    assert jm.report(low_and_high, pred).class_names == ("low", "medium", "high")
    compared = jm.compare_predictions(quadratic, low_and_high, pred, pred)
    by_ids = jm.confusion_matrix([0, 2, 0, 2], [0, 2, 2, 2], num_classes=3)
    assert compared.a.value == pytest.approx(quadratic(by_ids))


def test_chunks_of_arrow_may_have_different_dictionaries() -> None:
    """The dictionary of the first chunk lacks a class that the second has."""
    ordered = pa.dictionary(pa.int64(), pa.string(), ordered=True)
    parts = (NAMES[:1], np.array([0])), (NAMES, np.array([2, 1]))
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(ids), pa.array(names), ordered=True)
        for names, ids in parts
    ]
    column = pa.chunked_array(chunks, ordered)
    assert jm.report(column, column).class_names == tuple(NAMES)


def test_columns_of_different_order_are_refused() -> None:
    other = pd.Series(pd.Categorical(NAMES[PRED], NAMES[::-1], ordered=True))
    with pytest.raises(ValueError, match="y_true and y_pred have different ordered categories"):
        jm.report(of_pandas(TRUE), other)


@pytest.mark.parametrize(
    "call",
    [
        lambda metric, true, pred: jm.compare_predictions(metric, true, pred, pred),
        lambda metric, true, pred: jm.leaderboard(metric, true, [pred, pred]),
        lambda metric, true, pred: jm.scorer(metric)(Constant(pred), None, true),
    ],
)
def test_metrics_of_ordered_classes_ask_for_the_order_of_text(call: Any) -> None:
    true, pred = NAMES[TRUE], NAMES[PRED]
    for metric in (quadratic, partial(jm.krippendorff_alpha, weights="linear")):
        with pytest.raises(ValueError, match=r"depends on the order .* Pass labels=\["):
            call(metric, true, pred)
    call(jm.cohen_kappa, true, pred)
    call(quadratic, np.where(TRUE > 0, "yes", "no"), np.where(PRED > 0, "yes", "no"))


def test_the_order_of_text_can_be_given() -> None:
    true, pred = NAMES[TRUE], NAMES[PRED]
    compared = jm.compare_predictions(quadratic, true, pred, pred, labels=[*NAMES])
    assert compared.a.value == pytest.approx(KAPPA)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["Cat", "cat", "dog"], "'Cat' and 'cat' differ only in case"),
        (["cat", "cat ", "dog"], "'cat' and 'cat ' differ only in case, spaces"),
        (["cat", "c\u200bat"], r"'cat' and 'c\\u200bat' differ only"),
        (["\ufb01re", "fire"], "differ only in case, spaces, zeros or invisible characters"),
        (["01", "1", "2"], "'01' and '1' differ only"),
        (["cat", "NA"], "'NA' is counted as a class"),
        (["None", "null", "cat"], "'None' and 'null' are counted as classes"),
    ],
)
def test_labels_that_are_perhaps_the_same_class(labels: list[str], message: str) -> None:
    for call in (jm.report, lambda y, p: jm.compare_predictions(jm.accuracy, y, p, p)):
        with pytest.warns(UserWarning, match=message) as caught:
            call(labels * 9, labels * 9)
        assert caught[0].filename == __file__


def test_distinct_names_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.report(["cat", "dog", "10", "-1"] * 9, ["cat", "dog", "10", "-1"] * 9)
