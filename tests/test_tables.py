"""Tables of every engine, against a loop over their rows in plain Python."""

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import dask.dataframe as dd
import duckdb
import ibis
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import jaxmetrics as jm
from jaxmetrics import tables

# What narwhals and PySpark announce.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support:FutureWarning"),
]

Columns = dict[str, Any]  # lists or arrays by name


@cache
def spark_session() -> Any:
    if shutil.which("java") is None:
        pytest.skip("PySpark needs Java, and there is no java on the path")
    sql = pytest.importorskip("pyspark.sql", reason="pip install pyspark: it is too large for CI")
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    return sql.SparkSession.builder.master("local[2]").config(map=options).getOrCreate()


def of_arrow(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def of_nullable(columns: Columns) -> pd.DataFrame:
    with np.errstate(invalid="ignore"):  # of floats that are no integers
        return pd.DataFrame(columns).convert_dtypes()


def of_dask(columns: Columns) -> Any:
    return dd.from_pandas(of_nullable(columns), npartitions=3, sort=False)


def of_spark(columns: Columns) -> Any:
    table = of_arrow(columns)
    types = {"int64": "bigint", "double": "double", "float": "float", "bool": "boolean"}
    schema = [f"{name} {types.get(str(table[name].type), 'string')}" for name in columns]
    rows = list(zip(*table.to_pydict().values(), strict=True))
    return spark_session().createDataFrame(rows, ", ".join(schema)).repartition(2)


ENGINES: dict[str, Callable[[Columns], Any]] = {
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "polars lazy": lambda columns: pl.LazyFrame(columns, strict=False),
    "pandas": pd.DataFrame,
    "pandas nullable": of_nullable,
    "pandas arrow": lambda columns: of_arrow(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "pyarrow": of_arrow,
    "duckdb": lambda columns: duckdb.from_arrow(of_arrow(columns)),
    "ibis": lambda columns: ibis.memtable(of_arrow(columns)),
    "dask": of_dask,
    "pyspark": of_spark,
}
NAN = float("nan")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Callable[[Columns], Any]:
    if request.param == "pyspark":
        spark_session()
    return ENGINES[request.param]


def is_missing(label: Any) -> bool:
    return label is None or label != label or (not isinstance(label, str) and label < 0)


def by_hand(columns: Columns, *roles: str, weight: str = "") -> jm.TableCounts | None:
    """Count rows one by one; None if a row has a true label but no prediction."""
    classes = sorted({x for role in roles for x in columns[role] if not is_missing(x)})
    weights = columns[weight] if weight else [1] * len(columns[roles[0]])
    dtype = np.int64 if all(isinstance(x, int) for x in weights) else np.float64
    cells = Counter[Any]()
    for *row, amount in zip(*(columns[role] for role in roles), weights, strict=True):
        if any(map(is_missing, row)) and not is_missing(row[0]) and amount > 0:
            return None
        cells[None if any(map(is_missing, row)) else tuple(map(classes.index, row))] += amount
    ignored = dtype(cells.pop(None, 0)).item()
    counts = np.zeros((len(classes),) * len(roles), dtype)
    for place, total in cells.items():
        counts[place] = total
    whole = (int(x) if isinstance(x, float) else x for x in classes)
    return jm.TableCounts(counts, tuple(map(str, whole)), (), (), ignored)


def same(result: jm.TableCounts, expected: jm.TableCounts) -> None:
    """Equal integers, and sums of floats up to rounding; of the same dtype."""
    assert result.counts.dtype == np.asarray(expected.counts).dtype
    rtol = 0 if result.counts.dtype == np.int64 else 1e-14
    assert_allclose(result.counts, expected.counts, rtol=rtol)
    assert result[1:4] == expected[1:4]
    assert_allclose(result.num_ignored, expected.num_ignored, rtol=rtol)
    assert type(result.num_ignored) is type(expected.num_ignored)


TABLES: dict[str, Columns] = {
    "strings": {
        "y_true": ["b", "a", None, "b", "a", "c", "b"],
        "y_pred": ["a", "a", None, "b", "c", "c", "a"],
    },
    "integers": {"y_true": [30, 4, -1, 30, 30, -100], "y_pred": [4, 4, 30, 30, 4, -100]},
    "integers and nulls": {"y_true": [3, 1, None, 3, None], "y_pred": [1, 1, 3, 3, None]},
    "bools": {"y_true": [True, False, None, True], "y_pred": [True, True, True, False]},
    "floats": {"y_true": [3.0, 1.0, NAN, 3.0, None], "y_pred": [1.0, -0.0, NAN, 1.0, -1.0]},
    "weights": {
        "y_true": ["x", "y", "x", "x", None, "y"],
        "y_pred": ["x", "x", "x", "x", "x", "y"],
        "weight": [0.1, 0.2, 1e-9, 1e-20, 0.3, 0.0],
    },
    "counts": {
        "y_true": [0, 0, 1, 1, -1, 2],
        "y_pred": [0, 1, 0, 1, 1, 2],
        "weight": [2**61 + 1, 2**53 + 1, 7, 2**62, 9, 0],
    },
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_engine_counts_as_a_loop_does(kind: str, engine: Callable[[Columns], Any]) -> None:
    columns = TABLES[kind]
    weight = "weight" if "weight" in columns else ""
    result = jm.confusion_matrix_of(engine(columns), sample_weight=weight or None)
    expected = by_hand(columns, "y_true", "y_pred", weight=weight)
    assert expected is not None
    same(result, expected)


_LABELS = (
    st.sampled_from(["a", "b", "ä", "", None]),
    st.sampled_from([0, 1, 7, 10, -1, -100]),
    st.sampled_from([0.0, 2.0, -3.0, NAN]),
    st.booleans(),
)
_WEIGHTS = (
    st.just(1),
    st.integers(0, 2**60),
    st.floats(1e-6, 1e6) | st.sampled_from([0.0, 0.1, 1 / 3]),
    st.floats(1e-280, 1e-275),
    st.floats(1e290, 1e300),
)
_ROWS = st.tuples(st.sampled_from(_LABELS), st.sampled_from(_WEIGHTS)).flatmap(
    lambda of: st.lists(st.tuples(of[0], of[0], of[0], of[1]), min_size=1, max_size=7)
)


@pytest.mark.filterwarnings("ignore:'' is counted as a class")
@pytest.mark.parametrize("name", ["polars lazy", "pandas", "pyarrow", "duckdb"])
@given(rows=_ROWS)
def test_any_small_table(name: str, rows: list[Any]) -> None:
    roles = ("y_true", "y_pred_a", "y_pred_b")
    columns = dict(zip((*roles, "n"), map(list, zip(*rows, strict=True)), strict=True))
    assume(not all(is_missing(x) for role in roles for x in columns[role]))
    table = ENGINES[name](columns)
    for weight in ("n", ""):
        expected = by_hand(columns, *roles, weight=weight)
        if expected is None:
            with pytest.raises(
                ValueError, match=r"y_pred_[ab] names .*which counts as a wrong pre"
            ):
                jm.paired_confusion_matrix_of(table, sample_weight=weight or None)
        else:
            same(jm.paired_confusion_matrix_of(table, sample_weight=weight or None), expected)


def test_what_is_fetched_are_cells(
    engine: Callable[[Columns], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One query, and a row for each of the four cells that occur."""
    fetched = list[int]()
    collect = nw.LazyFrame.collect

    def noted(self: Any, *args: Any, **options: Any) -> Any:
        frame = collect(self, *args, **options)
        fetched.append(len(frame))
        return frame

    monkeypatch.setattr(nw.LazyFrame, "collect", noted)
    columns: Columns = {"y_true": [0, 1, 0, 1] * 50, "y_pred": [0, 1, 1, 0] * 50}
    columns["weight"] = [0.5] * 200
    counts = jm.confusion_matrix_of(engine(columns), sample_weight="weight").counts
    assert counts.tolist() == [[25, 25], [25, 25]]
    assert fetched == [4]


_TENS: Columns = {"y_true": [10, 2, None], "y_pred": [10, 2, 10]}
_LETTERS: Columns = {"y_true": ["b", "a"], "y_pred": ["b", "b"]}
_OF_TENS = jm.TableCounts(np.eye(2, dtype=np.int64), ("2", "10"), (), (), 1)
_OF_LETTERS = jm.TableCounts(np.array([[0, 1], [0, 1]]), ("a", "b"), (), (), 0)
_VALUES = "from (values (10.0, 10), (2, 2), (null, 10)) _(y_true, y_pred)"
_ENUMS = "select unnest(['b', 'a'])::enum('c', 'b', 'a') as y_true, 'b' as y_pred"
_OF_ENUMS = jm.TableCounts(np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0]]), ("c", "b", "a"), (), (), 0)
# Integers of other types, and categories: only those that occur, sorted, or all in their order.
TYPES: dict[str, tuple[Callable[[], Any], jm.TableCounts]] = {
    "pandas, categories": (lambda: pd.DataFrame(_TENS).astype("category"), _OF_TENS),
    "pandas, objects": (lambda: pd.DataFrame(_TENS, dtype=object), _OF_TENS),
    "decimals": (lambda: duckdb.sql(_VALUES), _OF_TENS),
    "int8": (lambda: pl.DataFrame(_TENS).cast(pl.Int8), _OF_TENS),
    "float32": (lambda: pl.LazyFrame(_TENS).cast(pl.Float32), _OF_TENS),
    "narwhals": (lambda: nw.from_native(pl.DataFrame(_TENS)), _OF_TENS),
    "pandas, letters": (lambda: pd.DataFrame(_LETTERS, dtype="category"), _OF_LETTERS),
    "Categorical": (lambda: pl.DataFrame(_LETTERS).cast(pl.Categorical), _OF_LETTERS),
    "Enum": (lambda: pl.LazyFrame(_LETTERS).cast(pl.Enum(["c", "b", "a"])), _OF_ENUMS),
    "pyarrow": (
        lambda: pa.table({k: pa.array(v).dictionary_encode() for k, v in _LETTERS.items()}),
        _OF_LETTERS,
    ),
    "duckdb": (lambda: duckdb.sql(_ENUMS), _OF_ENUMS),
}


@pytest.mark.parametrize("kind", TYPES)
def test_other_types_of_columns(kind: str) -> None:
    make, expected = TYPES[kind]
    same(jm.confusion_matrix_of(make()), expected)


@pytest.mark.parametrize("type_of_ids", ["hugeint", "decimal(38, 0)"])
def test_large_ids_are_not_rounded(type_of_ids: str) -> None:
    """Float64 cannot represent 2^60 + 1, nor 10^30 + 1."""
    ids = [2**60, 2**60 + 1, 10**30, 10**30 + 1]
    rows = ", ".join(f"(0, 0, {i}::{type_of_ids})" for i in ids)
    relation = duckdb.sql(f"from (values {rows}) _(y_true, y_pred, patient)")
    result = jm.confusion_matrix_of(relation, clusters="patient")
    assert result.cluster_names == tuple(map(str, ids))
    assert result.counts.tolist() == [[[1]]] * 4


def test_sums_of_counts_that_an_engine_has_made() -> None:
    """DuckDB adds integers up to HUGEINT."""
    rows = "(0, 1, 2), (0, 1, 4611686018427387000), (1, 1, 5)"
    relation = duckdb.sql(
        f"select y_true, y_pred, sum(n) as n from (values {rows}) _(y_true, y_pred, n) group by all"
    )
    counts = jm.confusion_matrix_of(relation, sample_weight="n").counts
    assert counts.tolist() == [[0, 4611686018427387002], [0, 5]]
    assert counts.dtype == np.int64


def test_weights_are_rows() -> None:
    """Weight 2 is the row written twice, weight 0 the row left out, whatever score it has."""
    table = pl.DataFrame({"y_true": [0, 1, 1], "y_score": [0.2, 0.7, NAN], "n": [2, 3, 0]})
    written = pl.DataFrame({"y_true": [0, 0, 1, 1, 1], "y_score": [0.2, 0.2, 0.7, 0.7, 0.7]})
    scale: Any = "probability"
    weighted = jm.score_histogram_of(table, scale=scale, sample_weight="n").counts
    assert_array_equal(weighted, jm.score_histogram_of(written, scale=scale).counts)


EMPTY: Any = np.zeros((0, 1, 1, 1))
NOWHERE: Columns = {"y_true": ["a"], "y_pred": ["a"], "site": ["x"], "number": [-1]}
FOUR: Columns = {"y_true": [1, 0, 1, 1], "y_pred": [1, 0, 1, 0]}
VISITS: Columns = {
    "y_true": [1, 0, 1, 1, 0],
    "y_pred": [1, 0, 1, 0, 0],
    "site": ["x", "y", None, "x", "x"],
    "patient": [7, -5, -5, 40, 7],
}
NONE, ONE_EACH, MISSED, TRUE_NEGATIVE, TRUE_POSITIVE = np.array(
    [
        [[0, 0], [0, 0]],
        [[1, 0], [0, 1]],
        [[0, 0], [1, 0]],
        [[1, 0], [0, 0]],
        [[0, 0], [0, 1]],
    ]
)
AXES: list[tuple[Columns, dict[str, Any], Any, str, str, str, int]] = [
    # Columns, options, counts, names of classes, groups and clusters, and how many are ignored.
    (
        {"y_true": ["b", "a", None], "y_pred": ["a", "a", "b"]},
        {"labels": ["c", "b", "a"]},
        [[0, 0, 0], [0, 0, 1], [0, 0, 1]],
        *("c b a", "", "", 1),
    ),
    (
        {"y_true": [-1, 1, -100], "y_pred": [1, 1, 1]},
        {"labels": [-1, 1]},
        [[0, 1], [0, 1]],
        *("-1 1", "", "", 1),
    ),
    ({"y_true": [], "y_pred": []}, {"labels": ["a", "b"]}, NONE, "a b", "", "", 0),
    (NOWHERE, {"groups": "number", "clusters": "site"}, EMPTY, "a", "", "x", 1),
    (FOUR, {"y_true": "y_pred", "y_pred": "y_true"}, [[1, 1], [0, 2]], "0 1", "", "", 0),
    (
        FOUR,
        {"y_pred": "y_true", "groups": "y_true"},
        [TRUE_NEGATIVE, [[0, 0], [0, 3]]],
        *("0 1", "0 1", "", 0),
    ),
    (
        VISITS,
        {"groups": "site"},
        [ONE_EACH + MISSED, TRUE_NEGATIVE, TRUE_POSITIVE],
        *("0 1", "x y (missing)", "", 0),
    ),
    *(
        (
            FOUR | {"site": sites},
            {"groups": "site"},
            [ONE_EACH, TRUE_POSITIVE + MISSED],
            *("0 1", f"{name} (missing)", "", 0),
        )
        for name, sites in (
            ("x", ["x", "x", "", None]),
            ("3", [3, 3, None, None]),
            ("3", [3.0, 3.0, NAN, NAN]),
        )
    ),
    (VISITS, {"clusters": "patient"}, [ONE_EACH, ONE_EACH, MISSED], "0 1", "", "-5 7 40", 0),
    (
        VISITS,
        {"groups": "site", "clusters": "patient"},
        [
            [NONE, ONE_EACH, MISSED],
            [TRUE_NEGATIVE, NONE, NONE],
            [TRUE_POSITIVE, NONE, NONE],
        ],
        *("0 1", "x y (missing)", "-5 7 40", 0),
    ),
]


def test_labels_groups_and_clusters_are_axes(engine: Callable[[Columns], Any]) -> None:
    for columns, options, counts, classes, groups, clusters, ignored in AXES:
        of_classes, of_groups, of_clusters = map(str.split, (classes, groups, clusters))
        cells = np.asarray(counts, np.int64)
        names = (*of_classes,), (*of_groups,), (*of_clusters,)
        expected = jm.TableCounts(cells, *names, ignored)
        same(jm.confusion_matrix_of(engine(columns), **options), expected)


def edges_and_neighbors(scale: str) -> np.ndarray:
    """Edges of bins, their neighbors in float64 and float32, and the ends of the scale."""
    few = np.arange(1, 200)
    if scale == "probability":
        x = np.concatenate([few / 200, few * 2.0**-12, few * 2.0**-24, 2.0 ** -np.arange(1.0, 60)])
    elif scale == "logit":
        x = np.append(13 * few / 64, [1e300, np.inf])
    else:
        x = few * 2.0 ** (few - 120)
    near = [np.nextafter(y, y.dtype.type(to)) for y in (x, np.float32(x)) for to in (0, 2 * y)]
    # Half-way to the next float32, where rounding to it goes up.
    x = np.concatenate([x, *near, x * (1 - 2.0**-25), x * (1 + 2.0**-24)])
    return np.concatenate([x, 1 - x if scale == "probability" else -x, [0, -0.0]])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("scale", ["probability", "logit", "float"])
def test_bins_are_those_of_arrays(scale: Any, dtype: str, engine: Callable[[Columns], Any]) -> None:
    with np.errstate(all="ignore"):
        scores = edges_and_neighbors(scale).astype(dtype)
    y_true = np.arange(len(scores)) % 3 % 2
    table = engine({"y_true": y_true, "y_score": scores})
    for num_bins in (64, 4096, 65536):
        with np.errstate(over="ignore"):
            expected = jm.score_histogram(y_true, scores, scale=scale, num_bins=num_bins)
        result = jm.score_histogram_of(table, scale=scale, num_bins=num_bins, threshold=0.7)
        assert_array_equal(result.counts.sum(-2), expected)
    thresholded = jm.confusion_matrix_at_thresholds(y_true, scores, [0.7])[0]
    assert_array_equal(result.counts.sum(-1), thresholded)


def test_scores_that_float32_cannot_represent_are_next_to_their_bins() -> None:
    """Infinite numbers are counted with the greatest, and subnormal numbers are not 0."""
    table = pl.DataFrame({"y_true": [1] * 4, "y_score": [-np.inf, -1e-40, 1e-40, np.inf]})
    bins = jm.score_histogram_of(table, scale="float", num_bins=512).counts[1]
    assert np.flatnonzero(bins).tolist() == [1, 255, 256, 510]


# Mistakes.


def frame(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"y_true": [0, 1], "y_pred": [1, 1]} | columns)


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a list": ([[0, 1]], {}, r"table must be a data frame or SQL relation .*, got list\."),
    "no such column": (
        frame(),
        {"y_pred": "pred"},
        r"The table has no column 'pred', .* as y_pred\. The columns .* are 'y_true', 'y_pred'\.",
    ),
    "no such weight": (
        frame(),
        {"sample_weight": "n"},
        r"The table has no column 'n', which was passed as sample_weight",
    ),
    "fractions": (frame(y_pred=[0.5, 1.0]), {}, r"y_pred .* Float64, .* score_histogram_of counts"),
    "infinity": (frame(y_true=[1.0, np.inf]), {}, r"y_true names .* has the type Float64"),
    "lists": (
        frame(y_true=[[0], [1]]),
        {},
        r"'y_true', which has the type List\(Int64\), but labels and ids must be strings",
    ),
    "two kinds": (
        frame(y_true=["a", "b"]),
        {},
        r"y_true \('y_true'\), y_pred .* contain both strings and int",
    ),
    "no class": (
        frame(y_true=[-1, -1], y_pred=[None, -1]),
        {},
        r"The column 'y_true' contains no class\. .* pass lab",
    ),
    "unknown label": (
        frame(),
        {"labels": [1, 2]},
        r"'y_true', which contains 0, but 0 is not one of the classes in labels, \[1, 2\]",
    ),
    "a string": (frame(), {"labels": "01"}, r"labels must be a sequence of names, got '01'"),
    "doubled label": (
        frame(),
        {"labels": [1, 0, 1]},
        r"labels must contain at least one class, and it must contain each class only once",
    ),
    **{
        f"weight {x}": (
            frame(n=[1.0, x]),
            {"sample_weight": "n"},
            r"'n', in which 1 weights are neg",
        )
        for x in (-1.0, NAN, np.inf, None)
    },
    "words": (
        frame(n=["a", "b"]),
        {"sample_weight": "n"},
        r"'n', which contains String, but weights must be numbers",
    ),
    "beyond int64": (
        frame(y_true=[1, 1], n=[2**62] * 2),
        {"sample_weight": "n"},
        r"'n', whose weights sum to 9\.22337e\+18, which is too large for int64",
    ),
    "beyond float64": (
        frame(y_true=[1, 1], n=[1e308] * 2),
        {"sample_weight": "n"},
        r"'n', whose weights sum to inf, which is too large for float64",
    ),
    "null cluster": (
        frame(n=[1, None]),
        {"clusters": "n"},
        r"clusters names the column 'n', which contains nulls",
    ),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_mistakes_say_what_to_do(kind: str) -> None:
    table, options, message = MISTAKES[kind]
    with pytest.raises((TypeError, ValueError), match=message):
        jm.confusion_matrix_of(table, **options)


def test_a_column_must_be_there_once() -> None:
    relation = duckdb.sql("select 1 as y_true, 0 as y_pred, 1 as y_pred")
    with pytest.raises(ValueError, match="The table has more than one column 'y_pred', which was"):
        jm.confusion_matrix_of(relation)
    columns = pd.DataFrame([[1, 0, 1]], columns=["y_true", "y_pred", "y_pred"])
    with pytest.raises(ValueError, match="unique column names"):
        jm.confusion_matrix_of(columns)


MISTAKEN_SCORES: dict[str, tuple[Columns, dict[str, Any], str]] = {
    "NaN": ({"y_score": [0.5, NAN]}, {}, r"'y_score', which contains NaN or null\. Remove"),
    "null": ({"y_score": [0.5, None]}, {}, r"'y_score', which contains NaN or null\. Remove"),
    "logits": (
        {"y_score": [0.5, 1.5]},
        {},
        r"'y_score', which contains numbers below 0 or above 1, but prob",
    ),
    "negative": ({"y_score": [-0.5, 0.5]}, {}, r"which contains numbers below 0 or ab"),
    "words": (
        {"y_score": ["a", "b"]},
        {},
        r"'y_score', which contains String, but scores must be numbers",
    ),
    "strings": (
        {"y_true": ["no", "yes"]},
        {},
        r"contains 'no', 'yes', but the column must contain 0 and 1, or bool\. ",
    ),
    "signs": (
        {"y_true": [-1, 1]},
        {},
        r"contains -1, 1, but the column must contain 0 and 1, or bool\. ",
    ),
    "three classes": (
        {"y_true": [0, 2]},
        {},
        r"contains 0, 2, but the column must contain 0 and 1",
    ),
    "three labels": (
        {},
        {"labels": [0, 1, 2]},
        r"labels must be \[negative, positive\], got \[0, 1, 2",
    ),
    "threshold": ({}, {"threshold": NAN}, r"threshold must be a finite Python number, got nan"),
    "bins": ({}, {"num_bins": 100}, r"num_bins must be a power of two"),
    "scale": (
        {},
        {"scale": "even"},
        r"scale must be 'probability', 'logit' or 'float', got 'even'",
    ),
}


@pytest.mark.parametrize("kind", MISTAKEN_SCORES)
def test_mistakes_with_scores_say_what_to_do(kind: str) -> None:
    columns, options, message = MISTAKEN_SCORES[kind]
    table = frame(**({"y_score": [0.5, 0.5]} | columns))
    with pytest.raises((TypeError, ValueError), match=message):
        jm.score_histogram_of(table, **({"scale": "probability"} | options))


def test_values_of_rows_that_do_not_count_are_not_checked() -> None:
    table = frame(y_true=[0, None], y_score=[0.5, NAN], n=[1.0, NAN], patient=["a", None])
    counts = jm.score_histogram_of(
        table, scale="probability", sample_weight="n", clusters="patient", threshold=0.5
    )
    assert counts.counts.shape == (1, 2, 2, 4096)
    assert counts.counts.sum(-1).tolist() == [[[0, 1], [0, 0]]]


def test_two_classes_may_have_names() -> None:
    table = frame(y_true=["yes", "no"], y_score=[3, -3])
    result = jm.score_histogram_of(table, scale="logit", labels=["no", "yes"], threshold=0)
    assert result.counts.sum(-1).tolist() == [[1, 0], [0, 1]]
    assert result.class_names == ("no", "yes")
    bools = jm.score_histogram_of(frame(y_true=[True, True], y_score=[1, 1]), scale="logit")
    assert bools.class_names == ("False", "True")


def test_more_cells_than_can_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_MOST_CELLS", 3)
    jm.confusion_matrix_of(frame(y_true=[0, 1] * 50, y_pred=[0, 1] * 50))
    with pytest.raises(
        ValueError, match="'y_true', 'y_pred' have more than 3 different combinations"
    ):
        jm.confusion_matrix_of(frame(y_true=range(5), y_pred=range(5)))
    monkeypatch.setattr(tables, "_MOST_COUNTS", 8)
    with pytest.raises(
        ValueError, match=r"counts would have the shape \(3, 3\), which is more than the limit of 8"
    ):
        jm.confusion_matrix_of(frame(), labels=[0, 1, 2])


def test_without_narwhals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxmetrics\[tables\]'"):
        jm.confusion_matrix_of(frame())


def test_import_loads_no_engine() -> None:
    code = "import sys, jaxmetrics; print({'narwhals', 'polars', 'pandas'} & {*sys.modules})"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stdout == "set()\n", process.stderr
