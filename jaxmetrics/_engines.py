"""Ask the engine of a data frame or relation for its cells, by narwhals.

What is asked is what every engine answers alike, to the last bit: comparisons, sums of integers,
and the operations on float64 that IEEE 754 defines.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from narwhals.stable.v2 import Expr, LazyFrame
    from narwhals.stable.v2.dtypes import DType

__all__: list[str] = []

_MOST_CELLS = 2**23  # that are fetched
# Of integers. Some engines divide them in float64, which may round up: what is then multiplied by
# the divisor stays below 2^63.
_GREATEST_WEIGHT = 2**62


class Scores(NamedTuple):
    """A column of scores, its bins, and the least score for which class 1 is predicted."""

    column: str
    scale: str
    num_bins: int
    threshold: float | None


class Cells(NamedTuple):
    """What an engine found, one entry for each cell.

    Attributes:
        values: labels by role, None where there is none.
        digits: integers `(cells, D)`; a cell has the weight `sum_d digits[:, d] 2^shifts[d]`.
        shifts: D integers, negative for fractions.
        has_integers: whether the weights are integers.
        num_invalid: rows whose weight is none.
        scores: the least and the greatest, NaN where there is none, `(2, cells)`.
    """

    values: dict[str, list[Any]]
    digits: np.ndarray
    shifts: list[int]
    has_integers: bool
    num_invalid: np.ndarray
    scores: np.ndarray


def fetch(
    table: Any, columns: dict[str, str], sample_weight: str | None, scores: Scores | None
) -> Cells:
    """Let the engine group the rows by the column of each role, and fetch one row per group."""
    nw = _narwhals()
    frame = _as_lazy_frame(table)
    score_column = None if scores is None else scores.column
    _check_columns(frame, {**columns, "sample_weight": sample_weight, "y_score": score_column})
    schema = frame.collect_schema()
    selected = {role: _label(column, schema[column]) for role, column in columns.items()}
    keys, sums = list(columns), {"rows": nw.len()}
    digits, shifts, has_integers = ["rows"], [0], True
    if sample_weight is not None:
        dtype = schema[sample_weight]
        has_integers = dtype.is_integer() or dtype == nw.Boolean
        split = _split_integers if has_integers else _split_floats
        is_weight, parts, shifts = split(frame, sample_weight, dtype)
        digits = [f"digit{d}" for d in range(len(parts))]
        selected |= dict(zip(digits, parts, strict=True))
        selected["invalid"] = nw.when(is_weight).then(0).otherwise(1)
        sums |= {name: nw.col(name).sum() for name in (*digits, "invalid")}
    if scores is not None:
        selected["score"] = _score(scores.column, schema[scores.column])
        sums |= {"least": nw.col("score").min(), "greatest": nw.col("score").max()}
    frame = frame.select(**selected)
    if scores is not None:
        frame, parts_of_bins = _with_parts_of_bins(frame, scores)
        keys += parts_of_bins

    found = _collected(frame.group_by(*keys).agg(**sums).head(_MOST_CELLS + 1))
    if len(found) > _MOST_CELLS:
        raise ValueError(
            f"the columns {', '.join(map(repr, columns.values()))} have more than {_MOST_CELLS}"
            " combinations of values: do they hold classes?"
        )

    def integers(name: str) -> np.ndarray:
        return np.array([int(x) for x in found[name].to_list()], np.int64)

    values = {role: _python_values(found[role], role, column) for role, column in columns.items()}
    if "predicted" in keys:
        values["predicted"] = found["predicted"].to_list()
    bounds = [found[name].to_list() for name in ("least", "greatest") if name in sums]
    return Cells(
        values,
        np.stack([integers(name) for name in digits], 1),
        shifts,
        has_integers,
        integers("invalid") if "invalid" in sums else np.zeros(len(found), np.int64),
        np.array(bounds, np.float64),
    )


def _narwhals() -> Any:
    try:
        import narwhals.stable.v2 as narwhals
    except ImportError:
        raise ImportError(
            "counting tables needs narwhals: pip install 'jaxmetrics[tables]'."
        ) from None
    return narwhals


def _as_lazy_frame(table: Any) -> LazyFrame[Any]:
    nw = _narwhals()
    try:
        return nw.from_native(nw.to_native(table, pass_through=True)).lazy()
    except TypeError:
        raise TypeError(
            "table must be a data frame or relation, of pandas, Polars, PyArrow, DuckDB, Ibis,"
            f" PySpark, Dask or what else narwhals knows, got {type(table).__name__}."
        ) from None


def _check_columns(frame: LazyFrame[Any], columns: dict[str, str | None]) -> None:
    # DuckDB alone has several columns of one name, which a schema does not show.
    is_duckdb = frame.implementation.is_duckdb()
    names = frame.columns if is_duckdb else frame.collect_schema().names()
    for role, column in columns.items():
        if column is not None and names.count(column) != 1:
            raise ValueError(
                f"{role} names the column {column!r}, which the table should have once; it has"
                f" {', '.join(map(repr, names))}."
            )


def _collected(frame: LazyFrame[Any]) -> Any:
    # Other engines of Polars hold all rows at once.
    options: dict[str, Any] = {"engine": "streaming"} if frame.implementation.is_polars() else {}
    return frame.collect(**options)


def _label(column: str, dtype: DType) -> Expr:
    nw = _narwhals()
    label = nw.col(column)
    if not (dtype.is_float() or dtype.is_decimal()):
        return label
    number = label.cast(nw.Float64)
    # One fraction stands for all, which are refused: scores would make a group of each row.
    integer = nw.when(number == number.floor()).then(number).otherwise(0.5)
    return nw.when(~number.is_nan()).then(integer)


def _python_values(series: Any, role: str, column: str) -> list[Any]:
    """Make Python's strings, integers and bools of labels, None where there is none."""

    def label(value: Any) -> str | int:
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if not isinstance(value, str | int):
            hint = " score_histogram_of counts scores." if isinstance(value, float) else ""
            raise TypeError(
                f"{role} names the column {column!r} of {series.dtype}; labels and ids are strings,"
                f" integers or bool.{hint}"
            )
        return value

    is_null = series.is_null().to_list()
    return [None if null else label(x) for x, null in zip(series.to_list(), is_null, strict=True)]


_Split = tuple["Expr", list["Expr"], list[int]]


def _split_integers(frame: LazyFrame[Any], column: str, dtype: DType) -> _Split:
    """Tell which weights are valid, and write them as `sum_d digit_d 2^shift_d`.

    Digits are integers up to 2^32: int64 holds the sum of 2^31 of them.
    """
    nw = _narwhals()
    given = nw.col(column).cast(nw.Int64) if dtype == nw.Boolean else nw.col(column)
    is_weight = (given >= 0) & (given <= _GREATEST_WEIGHT)
    weight = nw.when(is_weight).then(given).otherwise(0).cast(nw.Int64)
    high = weight // 2**32
    return is_weight, [high, weight - high * 2**32], [32, 0]


def _split_floats(frame: LazyFrame[Any], column: str, dtype: DType) -> _Split:
    """Do as `_split_integers`, with three digits of 31 bits from the greatest weight on.

    To scale by powers of two and to subtract the integer part rounds nothing.
    """
    nw = _narwhals()
    if not (dtype.is_float() or dtype.is_decimal()):
        raise TypeError(
            f"sample_weight names the column {column!r} of {dtype}; weights are numbers."
        )
    given = nw.col(column).cast(nw.Float64)
    is_weight = (given >= 0) & given.is_finite()
    rest = nw.when(is_weight).then(given).otherwise(0.0)
    (greatest,) = _collected(frame.select(greatest=rest.max()))["greatest"].to_list()
    shift = min(31 - math.frexp(greatest or 0.0)[1], 1000)
    rest = rest * 2.0**shift
    digits = []
    for _ in range(3):
        digits.append(rest.floor().cast(nw.Int64))
        rest = (rest - rest.floor()) * 2.0**31
    return is_weight, digits, [-shift, -shift - 31, -shift - 62]


def _score(column: str, dtype: DType) -> Expr:
    """Convert scores to float64, NaN to null."""
    nw = _narwhals()
    if not dtype.is_numeric():
        raise TypeError(f"y_score names the column {column!r} of {dtype}; scores are real numbers.")
    score = nw.col(column).cast(nw.Float64)
    return nw.when(~score.is_nan()).then(score)


def _with_parts_of_bins(frame: LazyFrame[Any], asked: Scores) -> tuple[LazyFrame[Any], list[str]]:
    """Divide scores into parts, none of which reaches into two bins, and name what tells parts.

    Bins are numbered by leading bits, which engines do not show. But arithmetic rounds x to b bits:
    with `c = (2^(53-b) + 1) x` the nearest number of b bits is `r = c - (c - x)` (Dekker 1971,
    Numer. Math. 18, equation 5.6). Bins end at such numbers, so that r, and whether `|x| < |r|`,
    determine the bin of x.
    """
    nw = _narwhals()
    score, x, r = nw.col("score"), nw.col("x"), nw.col("r")
    predicted = []
    if asked.threshold is not None:
        predicted = ["predicted"]
        frame = frame.with_columns(predicted=score >= asked.threshold)
    log2_size = asked.num_bins.bit_length() - 1
    if asked.scale == "logit":
        even = ((score.clip(-32.0, 32.0) + 32.0) * (asked.num_bins / 64)).floor()
        return frame.with_columns(r=even), ["r", *predicted]
    if asked.scale == "probability":
        num_bits = log2_size - 5  # an octave has 2^(b - 1) bins
        p = score.clip(2.0**-41, 1.0).cast(nw.Float32).cast(nw.Float64)
        frame = frame.with_columns(x=nw.when(p < 0.5).then(p).otherwise(p - 1.0))
    else:
        num_bits = log2_size - 8  # besides sign and exponent
        greatest = float(np.finfo(np.float32).max)
        rounded = score.clip(-greatest, greatest).cast(nw.Float32).cast(nw.Float64)
        # Others are rounded to 0, but keep their sign, or to infinity.
        is_rounded = (score.abs() > 2.0**-150) & (score.abs() < 2.0**128 - 2.0**103)
        other = (2.0 * score).clip(-(2.0**128), 2.0**128)
        frame = frame.with_columns(x=nw.when(is_rounded).then(rounded).otherwise(other))
    c = x * (2.0 ** (53 - max(num_bits, 2)) + 1.0)
    frame = frame.with_columns(r=c - (c - x)).with_columns(is_below=x.abs() < r.abs())
    return frame, ["r", "is_below", *predicted]
