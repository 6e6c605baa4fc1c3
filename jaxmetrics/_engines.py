"""Count the rows of a data frame or SQL relation by a query to its engine, through narwhals.

Queries use only operations whose results are bitwise equal in all engines: comparisons, sums of
integers, and the float64 operations that IEEE 754 defines.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxmetrics._text.wording import shown

if TYPE_CHECKING:
    from narwhals.stable.v2 import Expr, LazyFrame
    from narwhals.stable.v2.dtypes import DType

__all__: list[str] = []

_MOST_CELLS = 2**23  # most cells that are fetched
_ENDS = "least", "greatest"  # names of the columns of the extreme scores of a cell
# Limit of integer weights. Some engines divide integers in float64, which may round up. For weights
# up to this limit, the rounded quotient times the divisor stays below 2^63.
_GREATEST_WEIGHT = 2**62


class Scores(NamedTuple):
    """A column of scores, its bins, and the threshold from which class 1 is predicted."""

    column: str
    scale: str
    num_bins: int
    threshold: float | None


class Cells(NamedTuple):
    """The result of a query, with one entry per cell.

    Attributes:
        values: the labels of the cells by role, such as "y_true"; None if a label is missing.
        digits: integers `(cells, D)`; a cell has the weight `sum_d digits[:, d] 2^shifts[d]`.
        shifts: D integers, negative for fractions.
        has_integers: True if the weights are integers.
        num_invalid: number of rows with an invalid weight.
        scores: the smallest and the greatest score, `(2, cells)`; NaN if there is none.
    """

    values: dict[str, list[Any]]
    digits: np.ndarray
    shifts: list[int]
    has_integers: bool
    num_invalid: np.ndarray
    scores: np.ndarray

    @property
    def has_weight(self) -> np.ndarray:
        """Which cells have a nonzero weight."""
        return np.asarray(self.digits.any(1))


def fetch(
    table: Any, columns: dict[str, str], sample_weight: str | None, scores: Scores | None
) -> Cells:
    """Let the engine group the rows by all columns, and fetch one row per group (cell)."""
    frame = _as_lazy_frame(table)
    weight_column = {} if sample_weight is None else {"sample_weight": sample_weight}
    score_column = {} if scores is None else {"y_score": scores.column}
    _check_columns(frame, columns | weight_column | score_column)
    schema = frame.collect_schema()
    labels = {role: _label(column, schema[column]) for role, column in columns.items()}
    weights, shifts, has_integers = _weights(frame, sample_weight)
    score: dict[str, Expr] = {}
    if scores is not None:
        score["score"], predicted = _scores(scores, schema[scores.column])
        labels |= predicted
    rows = frame.select(**labels, **weights, **score)
    found = _fetched(_grouped(rows, list(labels), list(weights), scores), columns)
    integers = np.array([found[name].to_list() for name in weights or ["rows"]], np.int64)
    digits, invalid = np.split(integers, [len(shifts)])
    values = {role: _python_values(found[role], role, columns.get(role, role)) for role in labels}
    ends = np.array([found[name].to_list() for name in _ENDS if score], np.float64)
    return Cells(values, digits.T, shifts, has_integers, invalid.sum(0), ends)


def _grouped(
    rows: LazyFrame[Any], labels: list[str], weights: list[str], scores: Scores | None
) -> LazyFrame[Any]:
    """Group rows that have the same labels and, if there are scores, the same part of a bin."""
    nw = _narwhals()
    sums = {name: nw.col(name).sum() for name in weights} or {"rows": nw.len()}
    if scores is None:
        return rows.group_by(*labels).agg(**sums)
    rows, parts = _with_parts_of_bins(rows, scores)
    ends = zip(_ENDS, (nw.col("score").min(), nw.col("score").max()), strict=True)
    return rows.group_by(*labels, *parts).agg(**sums, **dict(ends))


def _fetched(cells: LazyFrame[Any], columns: dict[str, str]) -> Any:
    found = _collected(cells.head(_MOST_CELLS + 1))
    if len(found) > _MOST_CELLS:
        raise ValueError(
            f"The columns {', '.join(map(repr, columns.values()))} have more than {_MOST_CELLS}"
            " different combinations of values, which is too many for columns of classes. Check"
            " that these columns contain classes, not numbers or ids."
        )
    return found


def _narwhals() -> Any:
    try:
        import narwhals.stable.v2 as narwhals
    except ImportError:
        raise ImportError(
            "The package narwhals is needed to count the rows of a table. Install it with: pip"
            " install 'jaxmetrics[tables]'."
        ) from None
    return narwhals


def _as_lazy_frame(table: Any) -> LazyFrame[Any]:
    nw = _narwhals()
    try:
        return nw.from_native(nw.to_native(table, pass_through=True)).lazy()
    except TypeError:
        raise TypeError(
            "table must be a data frame or SQL relation of pandas, Polars, PyArrow, DuckDB, Ibis,"
            " PySpark, Dask or another library that narwhals supports, got"
            f" {type(table).__name__}."
        ) from None


def _check_columns(frame: LazyFrame[Any], columns: dict[str, str]) -> None:
    # In DuckDB, several columns may have the same name, which a schema does not show.
    is_duckdb = frame.implementation.is_duckdb()
    names = frame.columns if is_duckdb else frame.collect_schema().names()
    for role, column in columns.items():
        if not isinstance(column, str | int):
            raise TypeError(f"{role} must be the name of a column, got {shown(column)}.")
        if names.count(column) != 1:
            found = "more than one" if column in names else "no"
            raise ValueError(
                f"The table has {found} column {column!r}, which was passed as {role}. The columns"
                f" of the table are {', '.join(map(repr, names))}."
            )


def _collected(frame: LazyFrame[Any]) -> Any:
    # The other engines of Polars load all rows at once.
    options: dict[str, Any] = {"engine": "streaming"} if frame.implementation.is_polars() else {}
    return frame.collect(**options)


def _label(column: str, dtype: DType) -> Expr:
    nw = _narwhals()
    label = nw.col(column)
    if not dtype.is_float():
        return label
    number = label.cast(nw.Float64)
    # All fractions become 0.5, which raises an error later. Otherwise each score would be a group.
    integer = nw.when(number == number.floor()).then(number).otherwise(0.5)
    return nw.when(~number.is_nan()).then(integer)


def _python_values(series: Any, role: str, column: str) -> list[Any]:
    """Convert labels to Python strings, integers and bools; missing labels become None."""

    def label(value: Any) -> str | int:
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(value, float | Decimal) and math.isfinite(value) and value == int(value):
            return int(value)
        if not isinstance(value, str | int):
            hint = (
                " score_histogram_of counts scores." if isinstance(value, float | Decimal) else ""
            )
            raise TypeError(
                f"{role} names the column {column!r}, which has the type {series.dtype},"
                f" but labels and ids must be strings, integers or bool.{hint}"
            )
        return value

    is_null = series.is_null().to_list()
    return [None if null else label(x) for x, null in zip(series.to_list(), is_null, strict=True)]


def _weights(frame: LazyFrame[Any], column: str | None) -> tuple[dict[str, Expr], list[int], bool]:
    """Represent weights as `sum_d digit_d 2^shift_d` with integer digits, whose sums are exact.

    Returns:
        1. The columns of digits by name, and a column of 1 for invalid weights; no columns if there
           are no weights.
        2. The shifts.
        3. Whether the weights are integers.
    """
    if column is None:
        return {}, [0], True
    nw, dtype = _narwhals(), frame.collect_schema()[column]
    is_integer = dtype.is_integer() or dtype == nw.Boolean
    if not (is_integer or dtype.is_float() or dtype.is_decimal()):
        raise TypeError(
            f"sample_weight names the column {column!r}, which contains {dtype}, but"
            " weights must be numbers."
        )
    given = nw.col(column)
    if not dtype.is_integer():
        given = given.cast(nw.Int64 if is_integer else nw.Float64)
    is_weight = (given >= 0) & (given <= _GREATEST_WEIGHT if is_integer else given.is_finite())
    weight = nw.when(is_weight).then(given).otherwise(0)
    digits, shifts = _split_integers(weight) if is_integer else _split_floats(frame, weight)
    columns = {f"digit{d}": digit for d, digit in enumerate(digits)}
    return columns | {"invalid": nw.when(is_weight).then(0).otherwise(1)}, shifts, is_integer


def _split_integers(weight: Expr) -> tuple[list[Expr], list[int]]:
    """Split weights into two digits of up to 2^32, so that the sum of 2^31 digits fits in int64."""
    weight = weight.cast(_narwhals().Int64)
    high = weight // 2**32
    return [high, weight - high * 2**32], [32, 0]


def _split_floats(frame: LazyFrame[Any], weight: Expr) -> tuple[list[Expr], list[int]]:
    """Split weights into three digits of 31 bits, the first of which holds the largest weight.

    Scaling by powers of two and subtracting the integer part have no rounding error.
    """
    (greatest,) = _collected(frame.select(greatest=weight.max()))["greatest"].to_list()
    shift = min(31 - math.frexp(greatest or 0.0)[1], 1000)
    rest, digits = weight * 2.0**shift, []
    for _ in range(3):
        digits.append(rest.floor().cast(_narwhals().Int64))
        rest = (rest - rest.floor()) * 2.0**31
    return digits, [-shift, -shift - 31, -shift - 62]


def _scores(asked: Scores, dtype: DType) -> tuple[Expr, dict[str, Expr]]:
    """Return scores as float64, with null for NaN, and the prediction `score >= threshold`."""
    nw, column = _narwhals(), asked.column
    if not dtype.is_numeric():
        raise TypeError(
            f"y_score names the column {column!r}, which contains {dtype}, but scores"
            " must be numbers."
        )
    number = nw.col(column).cast(nw.Float64)
    score = nw.when(~number.is_nan()).then(number)
    if asked.threshold is None:
        return score, {}
    threshold = np.float32(asked.threshold) if dtype == nw.Float32 else asked.threshold
    return score, {"predicted": score >= float(threshold)}


def _with_parts_of_bins(frame: LazyFrame[Any], asked: Scores) -> tuple[LazyFrame[Any], list[str]]:
    """Add columns that identify parts of bins, each within one bin, and return the column names.

    Bins are numbered by the leading bits of scores, which engines cannot extract, but arithmetic
    can round a score x to b bits: for `c = (2^(53-b) + 1) x`, the nearest number of b bits is
    `r = c - (c - x)` (Dekker, 1971, Numer. Math. 18, equation 5.6). As bins end at such numbers,
    the bin of x is determined by r and by whether `|x| < |r|`.
    """
    nw = _narwhals()
    if asked.scale == "logit":
        even = (_in_float32(-32.0, 32.0) * (asked.num_bins / 64)).floor()
        return frame.with_columns(r=even), ["r"]
    x, num_bits = _numbered_by_bits(asked)
    frame = frame.with_columns(x=x)
    x, r = nw.col("x"), nw.col("r")
    c = x * (2.0 ** (53 - max(num_bits, 2)) + 1.0)
    frame = frame.with_columns(r=c - (c - x)).with_columns(is_below=x.abs() < r.abs())
    return frame, ["r", "is_below"]


def _numbered_by_bits(asked: Scores) -> tuple[Expr, int]:
    """Return numbers whose leading bits identify the bins of scores, and the number of bits."""
    nw = _narwhals()
    log2_size = asked.num_bins.bit_length() - 1
    if asked.scale == "probability":
        p = _in_float32(2.0**-41, 1.0)
        return nw.when(p < 0.5).then(p).otherwise(p - 1.0), log2_size - 5  # an octave has 2^(b - 1)
    score, greatest = nw.col("score"), float(np.finfo(np.float32).max)
    is_finite = score.abs() < 2.0**128 - 2.0**103  # after rounding to float32
    infinite = (2.0 * score).clip(-(2.0**128), 2.0**128)
    x = nw.when(is_finite).then(_in_float32(-greatest, greatest)).otherwise(infinite)
    return x, log2_size - 8  # 8 bits are the sign and the exponent


def _in_float32(least: float, greatest: float) -> Expr:
    """Clip scores to two limits and round them to float32; subnormal scores become 0."""
    nw = _narwhals()
    score = nw.col("score")
    is_subnormal = score.abs() < float(np.finfo(np.float32).tiny)
    normal = nw.when(is_subnormal).then(0.0).otherwise(score)
    return normal.clip(least, greatest).cast(nw.Float32).cast(nw.Float64)
