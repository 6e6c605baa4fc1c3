"""Rows and columns that have names are never taken by position where these say otherwise."""

from collections.abc import Callable, Iterator
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import jaxmetrics as jm
from jaxmetrics import plots
from tests.cases import ROWS, Constant, Row

pytestmark = pytest.mark.quick

OPTIONS: dict[str, Callable[[int], np.ndarray]] = {
    "where": lambda n: np.arange(n) % 5 > 0,
    "sample_weight": lambda n: np.linspace(0.5, 2, n),
    "groups": lambda n: np.arange(n) % 2,
}


def labelled(x: np.ndarray, axis: int, index: np.ndarray) -> Any:
    """Give the axis of the examples an index."""
    if x.ndim == -axis <= 2:
        return (pd.Series if x.ndim == 1 else pd.DataFrame)(x, index=index)
    return [pd.Series(row, index=index) for row in x]  # of several classifiers


def calls_with_another_order() -> Iterator[Any]:
    """Each argument of each function, and each option, in another order than the first argument."""
    for key, row in ROWS.items():
        # Tables hold their columns; of a scorer scikit-learn keeps the order.
        if not row.examples or key.split()[0].endswith("_of") or key == "scorer":
            continue
        for i in range(1, len(row.examples)):
            yield pytest.param(row, i, "", id=f"{key}-{i}")
        for option in row.options:
            yield pytest.param(row, None, option, id=f"{key}-{option}")


@pytest.mark.parametrize(("row", "i", "option"), list(calls_with_another_order()))
def test_every_function_refuses_another_index(row: Row, i: int | None, option: str) -> None:
    n = row.ordinary[0].shape[row.examples[0]]
    index = np.arange(n)
    arrays = [
        labelled(x, axis, index[::-1] if j == i else index)
        for j, (x, axis) in enumerate(zip(row.ordinary, row.examples, strict=True))
    ]
    options = {option: pd.Series(OPTIONS[option](n), index=index[::-1])} if option else {}
    sizes = {"num_groups": 2} if option == "groups" else {}
    with pytest.raises(ValueError, match=r"have different indices\. .*\.to_numpy\(\)"):
        row.call(*arrays, **options, **sizes)


_Y = pd.Series([0, 1, 1, 0, 2, 1])
_P = pd.Series([0, 1, 2, 0, 2, 2])
_R = _P[::-1]
_S = pd.Series([0.9, 0.2, 0.4, 0.8, 0.1, 0.3])
_E = (_Y == 1).astype(int)
_NAMES = pd.Series(list("abbaca"))
_TABLE = pd.DataFrame([[5, 1], [2, 7]], index=["a", "b"], columns=["a", "b"])
_METRIC = jm.accuracy


class DataArray:
    """What we read of an array of xarray."""

    def __init__(self, values: Any, *coords: Any) -> None:
        self.values = np.asarray(values)
        self.ndim, self.dims = self.values.ndim, tuple("abc"[: self.values.ndim])
        self.indexes = dict(zip(self.dims, map(pd.Index, coords), strict=True))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values

    def __getitem__(self, key: slice) -> "DataArray":
        return DataArray(self.values[key], *(index[key] for index in self.indexes.values()))


_COORDS: Any = DataArray(_Y, range(6))


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: jm.confusion_matrix(_Y, _R, labels=[0, 1, 2]), "y_true and y_pred"),
        (lambda: jm.confusion_matrix(_Y.to_numpy(), _P, where=_R > 0), "y_pred and where"),
        (lambda: jm.report(_Y, _P, clusters=_R), "y_true and clusters"),
        (lambda: jm.report(_Y, _P, groups=_R), "y_true and groups"),
        (
            lambda: jm.compare_predictions(_METRIC, _Y, _P, _P, clusters=_R, num_classes=3),
            "y_true and clusters",
        ),
        (
            lambda: jm.leaderboard(_METRIC, _Y, [_P, _R]),
            r"y_true and y_preds\[1\]",
        ),
        (lambda: jm.mean_interval(_S, clusters=_R), "values and clusters"),
        (lambda: jm.bootstrap_examples(0, np.mean, _S, strata=_R), r"arrays\[0\] and strata"),
        (lambda: jm.per_class(jm.roc_auc)(_Y, pd.DataFrame(np.eye(6, 3))[::-1]), "y_true and y_sc"),
        (lambda: jm.delong_unpaired(_E, _S, _E[::-1], _S), "y_true_b and y_score_b"),
        (lambda: plots.confusion_matrix(_Y, _R), "y_true and y_pred"),
        (lambda: plots.roc(_E, _S[::-1]), "y_true and "),
        # The first element of a list, or the first argument, has no index.
        (lambda: jm.leaderboard(_METRIC, _Y, [_P.to_numpy(), _R]), r"y_true and y_preds\[1\]"),
        (
            lambda: jm.leaderboard(
                _METRIC, _NAMES, [_NAMES.to_list(), _NAMES[::-1]], labels=list("abc")
            ),
            r"y_true and y_preds\[1\]",
        ),
        (lambda: jm.leaderboard(_METRIC, _Y, [_P.array, _P], where=_R > 0), "y_true and where"),
        (lambda: jm.score_leaderboard([_S.array, _S, _S[::-1]]), r"scores\[1\] and scores\[2\]"),
        (lambda: jm.score_leaderboard([_S.array, _S], clusters=_R), r"scores\[1\] and clusters"),
        (
            lambda: jm.bootstrap_examples(0, np.mean, _S.array, _S, clusters=_R),
            r"arrays\[1\] and clusters",
        ),
        (lambda: jm.scorer(_METRIC)(Constant(_R), None, _Y), "y and predictions"),
        (lambda: jm.score_report(_S, groups=_R), "scores and groups"),
        # Examples may be columns.
        (
            lambda: jm.leaderboard(_METRIC, _Y, pd.DataFrame([_P.array] * 2, columns=_R.index)),
            "y_true and y_preds",
        ),
        # Costs have the classes of the counts.
        (lambda: jm.expected_cost(_TABLE, _TABLE.loc[["b", "a"], ["b", "a"]]), "counts and cost"),
        # Other libraries.
        (lambda: jm.confusion_matrix(_COORDS, _COORDS[::-1]), "y_true and y_pred"),
        (lambda: jm.confusion_matrix(_Y.array, _COORDS, where=_R > 0), "y_pred and where"),
        (
            lambda: jm.confusion_matrix(_Y, dd.from_pandas(_R, npartitions=1, sort=False)),
            "y_true and y_pred",
        ),
    ],
)
def test_the_arguments_are_named(call: Callable[[], Any], names: str) -> None:
    with pytest.raises(ValueError, match=f"^{names}.* have different indices"):
        call()


def test_what_says_nothing_of_the_order_is_accepted() -> None:
    """Equal indices; arrays without one; other lengths; arguments of classes; two samples."""
    expected = jm.confusion_matrix(_Y.to_numpy(), _P.to_numpy())
    for y_true, y_pred in (
        (_Y, _P),
        (_Y[::-1], _R),
        (_Y, _P.set_axis(list(range(6)))),
        (_Y, _P.to_numpy()),
        (_Y, pl.Series(_P.to_list())),
        (_Y.set_axis(list("abcdef")), _P.to_list()),
    ):
        assert_array_equal(jm.confusion_matrix(y_true, y_pred), expected)
    names = pd.Series(["a", "b", "c"], index=[7, 8, 9])
    assert jm.report(_Y[:3], _Y[:3], class_names=names).class_names == ("a", "b", "c")
    ids = pd.Series([0, 1, 2], index=[7, 8, 9])
    assert jm.confusion_matrix(_Y[:3], _P[:3], labels=ids).sum() == 3
    weights = pd.Series([1.0, 2.0, 0.5])
    assert jm.confusion_matrix(_Y[:3], _P[:3], labels=ids, sample_weight=weights).sum() == 3.5
    unpaired = jm.delong_unpaired(_E, _S, _E[::-1], _S[::-1])
    assert unpaired.a.value == unpaired.b.value


Y_TRUE = np.array([0, 1, 1, 2, 0])
Y_PROB = np.array(
    [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.5, 0.1, 0.4]]
)
NAMES = ["cat", "dog", "cow"]


def frames(names: list[str]) -> Iterator[Any]:
    """Tables of the probabilities with the last class first."""
    columns = {names[i]: Y_PROB[:, i] for i in (2, 0, 1)}
    return (make(columns) for make in (pd.DataFrame, pl.DataFrame, pa.table))


_LOGITS = np.log(Y_PROB)
_OF_ROWS: list[Callable[[Any], Any]] = [
    lambda p: jm.log_loss(Y_TRUE, p),
    lambda p: jm.brier_score(Y_TRUE, p),
    lambda p: jm.soft_confusion_matrix(Y_TRUE, p),
    lambda p: jm.per_class(jm.roc_auc)(Y_TRUE, p),
    lambda p: jm.top_k_accuracy(Y_TRUE, p, k=1),
    lambda p: jm.top_label(jm.calibration_error)(Y_TRUE, p),
    lambda p: jm.nll(p, Y_TRUE),
    lambda p: jm.soft_cross_entropy(_LOGITS, p),
    lambda p: jm.report(Y_TRUE, Y_TRUE, y_prob=p).overall["log_loss"].value,
]


@pytest.mark.parametrize("call", _OF_ROWS)
def test_columns_are_found_by_the_ids_of_the_classes(call: Callable[[Any], Any]) -> None:
    expected = call(Y_PROB)
    for names in (["0", "1", "2"], ["prob_0", "prob_1", "prob_2"]):
        for frame in frames(names):
            assert_array_equal(call(frame), expected)
    for frame in (pd.DataFrame(Y_PROB), pd.DataFrame(Y_PROB)[[1, 2, 0]], pl.DataFrame(Y_PROB)):
        assert_array_equal(call(frame), expected)
    for frame in frames(NAMES):
        with pytest.raises(
            ValueError, match=r" are cow, cat, dog, but .* the classes are 0, 1, 2\. "
        ):
            call(frame)


def test_columns_are_found_by_the_names_of_the_classes() -> None:
    y_true = np.array(NAMES)[Y_TRUE]
    expected = jm.report(y_true, y_true, class_names=NAMES, y_prob=Y_PROB)
    for names in (NAMES, [f"prob_{name}" for name in NAMES], ["0", "1", "2"]):
        for frame in frames(names):
            found = jm.report(y_true, y_true, class_names=NAMES, y_prob=frame)
            assert found.to_dict() == expected.to_dict()
    for frame in frames(NAMES):  # the classes are sorted, the columns follow
        found = jm.report(y_true, y_true, y_prob=frame)
        assert found.class_names == ("cat", "cow", "dog")
        assert found.overall["log_loss"] == expected.overall["log_loss"]
    for frame in frames(["cat", "dog", "bird"]):
        with pytest.raises(
            ValueError, match=r"y_prob are bird, cat, dog, but the .*\. Rename the col"
        ):
            jm.report(y_true, y_true, y_prob=frame)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_in_two_orders_are_refused(make: Callable[[Any], Any]) -> None:
    """Names of columns may have prefixes and suffixes."""
    cat, ant = [1, 0, 1], [0, 0, 1]
    labels = make({"cat": cat, "ant": ant})
    for names in (("cat", "ant"), ("pred_cat", "pred_ant"), ("cat is here", "ant is here")):
        counts = jm.multilabel_confusion_matrix(
            labels, make(dict(zip(names, (cat, ant), strict=True)))
        )
        assert counts.tolist() == [[[1, 0], [0, 2]], [[2, 0], [0, 1]]]
        swapped = make(dict(zip(names[::-1], (ant, cat), strict=True)))
        for call in (jm.multilabel_confusion_matrix, jm.multilabel_report):
            with pytest.raises(
                ValueError, match="y_true and y_pred have their columns in different order: cat, "
            ):
                call(labels, swapped)
    with pytest.raises(ValueError, match="have columns of different names: cat, ant in"):
        jm.multilabel_confusion_matrix(labels, make({"dog": cat, "owl": ant}))


def test_coordinates_of_classes_are_columns() -> None:
    rows: Any = DataArray([[0.9, 0.1], [0.2, 0.8]], [7, 8], [1, 0])
    assert jm.log_loss([0, 1], rows) == jm.log_loss([0, 1], [[0.1, 0.9], [0.8, 0.2]])


def test_a_report_says_where_probabilities_disagree_with_predictions() -> None:
    shifted = Y_PROB[:, [1, 2, 0]]
    with pytest.warns(UserWarning, match="not the most probable class of y_prob in most rows"):
        jm.report(Y_TRUE, Y_TRUE, y_prob=shifted)
    jm.report(Y_TRUE, [0, 1, 1, 0, 1], y_prob=Y_PROB)  # two of five differ
    y = np.arange(60) % 6
    prob = np.where(np.eye(6)[y] == 1, 0.6, 0.08)
    for order, rows in (([0, 2, 1, 3, 4, 5], "1, 2"), ([0, 1, 4, 3, 5, 2], "2, 4, 5")):
        with pytest.warns(UserWarning, match=f"y_prob in most rows with y_pred {rows}. Check"):
            jm.report(y, y, y_prob=prob[:, order])
    # A threshold prefers classes 1 and 2 to the most probable class 0, which keeps its rows.
    jm.report(y, y, y_prob=np.where(np.isin(y, (1, 2))[:, None], np.eye(6)[0], prob))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_areas_of_classes_with_names(make: Callable[..., Any]) -> None:
    rng, names = np.random.default_rng(0), ["owl", "ant", "cat"]
    y = rng.integers(0, 3, 90)
    prob = rng.dirichlet(np.ones(3), 90) / 2 + np.eye(3)[y] / 2
    labels = [names[i] for i in y]
    expected = jm.delong_interval(y, prob, average="macro")
    areas = jm.per_class(jm.roc_auc)(y, prob)
    for prefix in ("", "prob_"):
        scores = make({f"{prefix}{name}": prob[:, i] for i, name in enumerate(names)})
        for truth in (labels, np.array(labels), make({"y": labels})["y"]):
            assert jm.delong_interval(truth, scores, average="macro") == expected
        # One area for each class in the order of the sorted names.
        assert_array_equal(jm.per_class(jm.roc_auc)(labels, scores), areas[[1, 2, 0]])
    assert jm.delong_interval(labels, prob[:, [1, 2, 0]], average="macro") == expected
    with pytest.raises(ValueError, match="y_score has 2 columns, but there are 3 classes: ant, c"):
        jm.delong_interval(labels, prob[:, :2], average="macro")
    with pytest.raises(TypeError, match="labels must be all strings or all integers"):
        jm.delong_interval([*labels[1:], None], prob, average="macro")


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda x: jm.at_prevalence(jm.binary(jm.precision), x), "prevalence"),
        (lambda x: jm.cross_entropy(np.zeros((5, 2)), np.array([1, 1, 1, 1, 0]), class_weights=x),
         "class_weights"),
        (lambda x: jm.posterior_counts(0, [[9, 1], [2, 8]], 2, prevalence=x), "prevalence"),
    ],
)  # fmt: skip
def test_numbers_of_classes_are_in_their_order(call: Callable[[Any], Any], named: str) -> None:
    """`value_counts` sorts by frequency."""
    shares = pd.Series([1] * 7 + [0] * 3).value_counts(normalize=True)
    with pytest.raises(ValueError, match=rf"The index of {named} must be .* got 1, 0"):
        call(shares)
    call(shares.sort_index())


def test_rows_and_columns_of_counts_are_the_same_classes() -> None:
    y_true, y_pred = pd.Series(list("abccb")), pd.Series(list("bcdcb"))
    with pytest.raises(ValueError, match=r"rows and the columns of counts .* a, b, c and b, c, d"):
        jm.accuracy(pd.crosstab(y_true, y_pred))
    swapped = pd.DataFrame([[5, 1], [2, 7]], index=["a", "b"], columns=["b", "a"])
    with pytest.raises(ValueError, match="in the same order, got a, b and b, a"):
        jm.interval(jm.macro(jm.f1), swapped)
    assert jm.accuracy(swapped[["a", "b"]]) == 3 / 15
    assert jm.accuracy(pd.DataFrame([[5, 1], [2, 7]], columns=["a", "b"])) == 12 / 15


@pytest.mark.parametrize("call", [jm.recall, jm.balanced_accuracy_posterior, jm.specificity])
def test_a_transposed_table_is_refused(call: Callable[[Any], Any]) -> None:
    true = pd.Series([0, 0, 1, 1, 1], name="actual")
    pred = pd.Series([0, 1, 1, 1, 0], name="Prediction")
    call(pd.crosstab(true, pred))
    with pytest.raises(ValueError, match=r"rows of .* are named 'Prediction', .* Pass \w+\.T\."):
        call(pd.crosstab(pred, true))


@pytest.mark.parametrize("title", ["All", "Total", "SUM", "-SUM-", "margin"])
def test_margins_are_no_class(title: str) -> None:
    true, pred = pd.Series(list("aabbb")), pd.Series(list("abbba"))
    counts = pd.crosstab(true, pred, margins=True, margins_name=title)
    with pytest.raises(ValueError, match=r"perhaps totals\. Pass counts\.iloc"):
        jm.accuracy(counts)
    np.testing.assert_allclose(jm.accuracy(counts.iloc[:-1, :-1]), 0.6)
