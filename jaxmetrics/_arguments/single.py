"""Check single arguments: convert them to arrays, and check shapes, dtypes, values and options.

Invalid shapes, dtypes and Python values always raise an error, also under jit. Invalid numbers in
an array (a label out of range, a NaN weight) raise an error for NumPy arrays only, because jit
hides the values of JAX arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from jaxmetrics._arguments.indices import check_classes, is_labelled, order_of_classes
from jaxmetrics._arguments.labels import first_invalid, is_whole
from jaxmetrics._places.compilation import compiled
from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, float_dtype, is_jax, is_known, on_device, xp
from jaxmetrics._places.user_warnings import warn
from jaxmetrics._text.wording import element, shown

__all__: list[str] = []


ArrayLike: TypeAlias = "jax.typing.ArrayLike | npt.ArrayLike"

INT32_MAX = int(np.iinfo(np.int32).max)
MOST_CELLS = 2**30  # most numbers of one table, 8 GiB
_MOST_SAMPLES = 2**24  # most draws, bins or points of one call
_LOOKED_AT = 2**20  # number of values that are searched for the invalid value of a message
# This label marks ignored examples in truth that this package makes. If it were -1, there would be
# a warning that -1 may be a class.
IGNORED = np.int8(-100)
# The end of messages about labels with too many axes.
RAVEL = (
    " If all elements are examples, pass .ravel() of each array. If rows are one-hot, or contain a"
    " score of each class, pass .argmax(-1) of these rows."
)
_MOST_COUNT = 1e300  # so that sums of counts are finite
_ROUNDING = 1e-9  # rounding error of a difference of sums of examples


def as_array(x: ArrayLike, name: str) -> Array:
    """Return JAX arrays and tracers unchanged, and convert everything else to NumPy arrays.

    Lists, Series and tensors in host memory are converted. An empty list becomes an integer array.
    """
    if (type(x) is np.ndarray and x.dtype.kind != "V") or is_jax(x):
        return x
    given: Any = x
    is_list = isinstance(x, list | tuple)
    if hasattr(x, "toarray"):
        raise TypeError(f"{name} is a sparse matrix. Pass {name}.toarray().")
    of_counts = is_list and hasattr(x, "counts")  # `TableCounts`
    if of_counts or callable(x) or isinstance(x, Mapping | Set | Iterator):
        way = "Pass its values as list(x)."
        if of_counts:
            way = "Pass the array in its field .counts."
        elif isinstance(x, Mapping):
            way = "Pass its values as list(x.values())."
        elif callable(x):
            way = "Functions come before arrays."
        raise TypeError(f"{name} must be an array, got {shown(x)}. {way}")
    if is_list and given and hasattr(given[0], "__array__") and not np.isscalar(given[0]):
        given = [as_array(row, name) for row in given]
    # `np.asarray` would drop a mask. `np.ma` is slow to import, and lists have no mask.
    if isinstance(x, np.ndarray) and np.ma.is_masked(x):
        raise TypeError(
            f"{name} is a masked array: pass {name}.data and where=~{name}.mask or, if the"
            " function has no argument where, remove the masked entries."
        )
    if not is_list and is_labelled(x):
        check_classes(x, name)
    if hasattr(given, "detach"):  # a tensor of torch, which may require a gradient
        given = given.detach()
        # NumPy has no such dtype; values are unchanged.
        given = given.float() if str(given.dtype) == "torch.bfloat16" else given
    try:
        array = jax.numpy.asarray(given) if is_list and on_device(given) else np.asarray(given)
    except Exception as error:  # raised by NumPy, or by the library of the object
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(
            f"{name} must be an array, or an object that NumPy can convert to an array, such as a"
            f" list of rows of the same length. The message of the conversion is: {error}"
        ) from None
    if is_list and array.dtype.kind in "US":
        return np.asarray(x, object)  # NumPy string arrays drop trailing NULs
    if array.dtype.kind == "V" and is_integer(array):  # int4 and the like, which NumPy cannot sort
        array = array.astype(np.int8)
    return array.astype(np.int8) if array.size == 0 and is_list else array


def as_rows(x: ArrayLike, name: str, class_names: Sequence[str] | None = None) -> Array:
    """Call `as_array`, and put the columns of a data frame in the order of the classes."""
    array, order = as_array(x, name), order_of_classes(x, name, class_names)
    return array if order is None else array[..., order]


def on_host(x: ArrayLike, name: str) -> np.ndarray:
    """Convert an argument, which may be a JAX array with known values, to a NumPy array."""
    array = as_array(x, name)
    if not is_known(array):
        raise TypeError(
            f"{name} has no known values, because JAX traces it, as under jit, vmap or grad. Call"
            " this function outside of them. Inside, compute counts, or the state of an evaluator."
        )
    return np.asarray(array)


# Whether `as_float` accepts complex128; `intervals.derivatives` needs this.
takes_complex: ContextVar[bool] = ContextVar("takes_complex", default=False)


def as_float(x: ArrayLike, name: str) -> Array:
    """Convert `x` to the float dtype of the computation."""
    if type(x) is float or (type(x) is int and abs(x) < 2**63):
        return np.float64(x)
    array = as_array(x, name)
    dtype = float_dtype(array)
    if array.dtype == dtype or (array.dtype == np.complex128 and takes_complex.get()):
        return array
    check_real(array, name)
    return array.astype(dtype)


def largest_eps(*given: Array) -> float:
    """Return the largest machine epsilon of the dtypes of arrays, 0 for integers."""
    return max(_eps_of(x.dtype) for x in given)


@lru_cache(64)
def _eps_of(dtype: np.dtype) -> float:
    return float(xp.finfo(dtype).eps) if xp.issubdtype(dtype, xp.floating) else 0.0


def is_integer(x: Array) -> bool:
    """Return whether an array contains integers or bools; durations (timedelta64) are neither."""
    kind = getattr(x.dtype, "kind", "")  # keys of JAX have none
    return kind in ("b", "i", "u") or (kind == "V" and xp.issubdtype(x.dtype, np.integer))


def check_real(array: Array, name: str, way: str = "") -> None:
    if not (is_integer(array) or xp.issubdtype(array.dtype, np.floating)):
        found, _ = _first_invalid(array, name, lambda x: isinstance(x, int | float))
        if array.dtype.kind in "OU":
            with suppress(TypeError, ValueError, OverflowError):
                if not np.isnan(array.astype(float)).any():
                    way = f" To convert all of them, pass numpy.asarray({name}, float)."
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}{found}.{way}")


def check_integer(ids: Array, name: str) -> None:
    if is_integer(ids):
        return
    found, way = _first_invalid(ids, name, is_whole)
    if name == "groups":
        hint = "numpy.unique(groups, return_inverse=True)[1] converts any groups to ids."
    elif xp.issubdtype(ids.dtype, np.floating):
        way = "" if _are_one_hot(ids) else way
        hint = (
            "Truth comes first: (y_true, y_pred) or (y_true, y_score); but logits come before"
            " labels. To convert one-hot rows, or rows of probabilities, to class ids, pass"
            f" {name}.argmax(-1). To use such rows as labels of a loss, use soft_cross_entropy."
        )
    else:
        hint = (
            "confusion_matrix(..., labels=[...]) accepts classes of any type, and"
            " jaxmetrics.report accepts strings. For other functions, convert labels to class ids"
            f" by [labels.index(x) for x in {name}], or to 0 and 1 by {name} == label."
        )
    raise TypeError(
        f"{name} must hold class ids of an integer or bool dtype, got {ids.dtype}{found}.{way}"
        f" {hint}"
    )


def _first_invalid(array: Array, name: str, is_valid: Callable[[Any], bool]) -> tuple[str, str]:
    """Return text with the first invalid value of a NumPy array (or first value), and a hint."""
    values = [] if is_jax(array) else array.ravel()[:_LOOKED_AT].tolist()
    for valid in (is_valid, lambda _: False):
        if found := first_invalid(values, name, valid, array.shape):
            return f": {found[0]}", found[1]
    return "", ""


def refuse_where(
    bad: Array | Callable[[Array], Array],
    values: Array,
    name: str,
    message: str,
    *where: Array | None,
) -> None:
    """Raise an error for the first bad value of a NumPy array that counts.

    Args:
        bad: an array of bools that says which values are bad, or a function that returns it. It
            may have one more axis than the values.
        message: the end of the error message, after "... is ...,".
        where: masks, or weights that are 0 for ignored values. They may have more batch axes than
            the values. If they are JAX arrays, no error is raised.
    """
    if on_device(values, where):
        return
    bad = counted(bad(values) if callable(bad) else bad, *where)
    if bad.any():
        index = tuple(np.argwhere(bad)[0].tolist()[: values.ndim])
        text = f"{values[index]}"
        if values.dtype.kind == "f":
            value, short = float(values[index]), f"{values[index]:g}"
            # Six digits are enough unless they hide a difference to an integer: 1.000000001.
            text = short if value % 1 == 0 or float(short) % 1 != 0 else text
        raise ValueError(f"{element(name, index)} is {text}, {message}")


def counted(values: Array, *where: Array | None) -> Array:
    """Return which NumPy bools are true and count in any batch entry; see `refuse_where`."""
    if not values.any():
        return values
    result = values
    for mask in where:
        result = result if mask is None else result & (mask != 0)
    num_batch = result.ndim - values.ndim
    shared = [i for i in range(-values.ndim, 0) if values.shape[i] == 1]
    return result.any((*range(num_batch), *shared), keepdims=True).reshape(values.shape)


def as_counts(counts: ArrayLike, name: str = "counts", *, ndim: int = 2) -> Array:
    """Convert counts to floats, of shape `(..., K, K)` or, of pairs (`ndim=3`), `(..., K, K, K)`.

    Negative and infinite counts in NumPy arrays raise an error, rounding errors below 0 become 0,
    and NaN stays NaN.
    """
    array = as_float(counts, name)
    check_tables(array, name, ndim)
    return non_negative(array, name)


_SHAPES = {
    2: (
        "have shape (..., K, K), with one row for each true class and one column for each"
        " predicted class",
        " If you have labels, call metric(confusion_matrix(y_true, y_pred)).",
    ),
    3: (
        "have shape (..., K, K, K), whose axes are the true class, the class that A predicts and"
        " the class that B predicts",
        " If you have labels, call paired_confusion_matrix(y_true, y_pred_a, y_pred_b).",
    ),
}


def check_tables(array: Array, name: str, ndim: int = 2) -> None:
    expected, hint = _SHAPES[ndim]
    shape = array.shape[-ndim:]
    valid = len(shape) == ndim and len(set(shape)) == 1 and shape[0] > 0
    require(valid, name, expected, array.shape, hint=hint)


def non_negative(array: Array, name: str) -> Array:
    """Check the values of counts or sums of weights, as described in `as_counts`."""
    if is_jax(array) or array.dtype.kind == "c":
        return array
    if array.min(initial=0) >= 0 and array.max(initial=0) <= _MOST_COUNT:
        return array
    message = "expected a count >= 0 of examples, or a sum of weights, that is at most 1e300."
    refuse_where((array < -_ROUNDING) | (array > _MOST_COUNT), array, name, message)
    return np.where(array < 0, 0, array)


def as_wide(counts: np.ndarray) -> np.ndarray:
    """Convert NumPy integers to int64, or to floats if the sum may exceed int64."""
    fits = np.abs(counts.astype(float)).sum() < 2**62
    return counts.astype(np.int64 if fits else float)


def as_square(x: ArrayLike, k: int, name: str) -> Array:
    """Convert a matrix with one row and one column for each of k classes to floats."""
    array = as_float(x, name)
    require(array.shape == (k, k), name, f"have shape (K, K) = ({k}, {k})", array.shape)
    return array


def check_size(value: int, name: str, least: int = 1) -> int:
    """Check a size or another integer that must be known while JAX compiles (static)."""
    if isinstance(value, float | np.floating):
        way = f" Pass int({name})." if value % 1 == 0 else ""
        raise TypeError(f"{name} must be a Python int, got {value}.{way}")
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"{name} must be a Python int that is known when JAX compiles, got"
            f" {type(value).__name__}. If {name} is an argument of a function under jax.jit, add"
            " its name to static_argnames."
        )
    require(value >= least, name, f"be at least {least}", value)
    require(value <= INT32_MAX, name, "be below 2^31", value)
    return int(value)


def check_samples(value: int, name: str, least: int = 1) -> int:
    """Check the number of draws, bins or points."""
    size = check_size(value, name, least)
    check_cells([size], name, _MOST_SAMPLES)
    return size


def check_cells(shape: Sequence[int], sizes: str, most: int = MOST_CELLS) -> None:
    """Raise an error if a table would be too large for memory."""
    cells = math.prod(shape)
    if cells > most:
        raise ValueError(
            f"{sizes} would give a table of {' x '.join(map(str, shape))} numbers, which would take"
            f" {8 * cells / 2**30:.3g} GiB of memory. At most {most} numbers are possible."
        )


def check_axis(axis: int, name: str) -> int:
    return check_size(axis, name, least=-64)  # maximum number of axes in NumPy


def check_level(level: float) -> float:
    """Check a confidence level and convert it to a float; `np.float32(0.95)` becomes 0.95."""
    is_number = isinstance(level, int | float | np.floating)
    valid = is_number and 0 < level < 1 and 0 < (1 - float(level)) / 2 < 0.5
    require(valid, "level", "be a Python number between 0 and 1 (0.95 for 95 %)", level)
    return float(str(level))  # keeps the printed decimals of a float32


def as_number(x: float, name: str, *, above: float = -math.inf) -> float:
    """Convert a finite Python or NumPy number to a float, and check that it exceeds `above`."""
    try:
        number = float(x) if isinstance(x, int | float | np.number) else math.nan
    except (TypeError, OverflowError):  # the number is complex, or too large for a float
        number = math.nan
    limit = f" above {above:g}" if above > -math.inf else ""
    require(above < number < math.inf, name, f"be a finite Python number{limit}", x)
    return number


def check_flag(value: bool, name: str) -> bool:
    require(isinstance(value, bool | np.bool_), name, "be True or False", value, TypeError)
    return bool(value)


def check_function(x: object, name: str, expected: str) -> None:
    hint = " Pass the function itself, not its result." if hasattr(x, "dtype") else ""
    require(callable(x), name, f"be {expected}", x, TypeError, hint)


def check_option(value: str, name: str, options: tuple[str, ...]) -> None:
    expected = f"be {', '.join(map(repr, options[:-1]))} or {options[-1]!r}"
    require(isinstance(value, str) and value in options, name, expected, value)


def require(
    valid: bool,
    name: str,
    expected: str,
    given: object,
    error: type[Exception] = ValueError,
    hint: str = "",
) -> None:
    """Raise an error unless an argument is valid; `given` is its value, or its shape."""
    if not valid:
        raise error(f"{name} must {expected}, got {shown(given)}.{hint}")


def as_class_ids(
    labels: ArrayLike, name: str, size: int, *where: Array | None, is_truth: bool = True
) -> Array:
    """Check the dtype, shape and values of class ids; see `ids_in_range`."""
    ids = as_array(labels, name)
    check_integer(ids, name)
    check_no_column(ids, name)
    return ids_in_range(ids, name, *where, size=size, is_truth=is_truth)


def check_no_column(ids: Array, name: str) -> None:
    """Raise an error for NumPy ids `(n, 1)`, which would be n batch entries of one example."""
    if not is_jax(ids) and ids.ndim == 2 and ids.shape[-1] == 1 < ids.shape[-2]:
        raise ValueError(
            f"{name} has shape {ids.shape}, which is a column. The last axis is the axis of"
            f" examples, so {name} would be read as {ids.shape[-2]} batch entries with one example"
            f" each. Pass {name}.ravel() to put all examples on the last axis."
        )


def check_no_one_hot(ids: Array, name: str, size: int | None) -> None:
    """Raise an error for one-hot NumPy rows `(n, K)`, which would be n batch entries of K examples.

    If the number of classes is given, arrays with another number of columns are read as batches.
    """
    if _are_one_hot(ids) and size in (None, ids.shape[-1]):
        raise ValueError(
            f"{name} has shape {ids.shape} and a single 1 in each row, so its rows look like"
            f" one-hot rows. Convert one-hot rows to class ids with {name}.argmax(-1). If this is a"
            " batch in which each entry has a single example of class 1, add an axis:"
            f" {name}[None]."
        )


def _are_one_hot(ids: Array) -> bool:
    if is_jax(ids) or ids.ndim != 2 or min(ids.shape) < 2:
        return False
    return bool(ids.min() == 0 and ids.max() == 1 and (ids.sum(-1) == 1).all())


def check_binary(y_true: Array, name: str, *where: Array | None) -> None:
    """Warn if NumPy labels are only -1 and 1: as -1 is ignored, only one class is left."""
    if on_device(y_true, where) or y_true.min(initial=0) != -1:
        return
    present = {x for x in (-1, 0, 1) if counted(y_true == x, *where).any()}
    if present == {-1, 1}:
        warn(
            f"{name} contains -1 and 1 but not 0. Examples with a negative label are ignored."
            f" If -1 is the negative class, pass {name} == 1. If -1 marks examples to ignore, pass"
            f" where={name} >= 0 to silence this warning."
        )


def warn_of_left_out_class(true: np.ndarray, pred: np.ndarray, mask: Array | None) -> None:
    """Warn if NumPy truth and prediction have the same negative id in an example that counts.

    Then the id is perhaps a class, such as -1 of labels -1, 0 and 1. The id -100 gives no warning,
    because Hugging Face pads truth and predictions with it.
    """
    if pred.min(initial=0) >= 0:
        return
    same = counted((true == pred) & (true < 0) & (true != int(IGNORED)), mask)
    if same.any():
        label = int(np.broadcast_to(true, same.shape)[same][0])
        warn(
            f"Examples whose truth is {label} are ignored, but {label} is also predicted for some"
            f" of them. If {label} is a class, pass labels=[{label}, ...] to confusion_matrix, or"
            f" class_names=[{label}, ...] to a report. If it marks examples to ignore, leave them"
            " out by where=, or mark them with -100."
        )


def ids_in_range(
    ids: Array, name: str, *where: Array | None, size: int, is_truth: bool = True, hint: str = ""
) -> Array:
    """Check the values of NumPy class ids: an id of `size` or more raises an error if it counts.

    A negative id of truth (or of a group) says that the example is ignored. A negative id of a
    prediction raises an error, too, unless the example is ignored.

    If all ids lie in [0, size), the array is returned unchanged, which tells `count` that no
    example is ignored. Otherwise, ids out of range become -1, and the dtype becomes int64, so that
    a label such as 2**32 does not wrap to 0 when JAX truncates it to 32 bits.
    """
    if is_jax(ids):
        return ids
    # One pass over the labels checks both limits: as unsigned integers, negative ids are larger
    # than all others.
    least = min(size, 2 ** (8 * ids.dtype.itemsize - 1)) if ids.dtype.kind == "i" else size
    unsigned = f"{ids.dtype.byteorder}u{ids.dtype.itemsize}"
    if ids.dtype == bool or ids.view(unsigned).max(initial=0) < least:
        # NumPy would convert the sum of uint64 and int64 to float64.
        return ids.astype(np.int64) if ids.dtype.str[1:] == "u8" else ids
    hint += " Convert binary truth to 0 and 1 by y_true == 1." * (size == 2)
    ways = (
        "Leave out rows without a prediction by where=, or pass labels=[-1, ...] to make -1 a"
        " class, which then counts as a wrong prediction"
    )
    rule = "; negative ids are ignored" if is_truth else f". {ways}"
    message = (
        f"but class ids must lie in [0, {size}){rule}. If labels start from 1, subtract 1.{hint}"
    )
    bad = ids >= size if is_truth else (ids < 0) | (ids >= size)
    refuse_where(bad, ids, name, message, *where)
    return np.where((ids >= 0) & (ids < size), ids, np.asarray(-1, np.int64)).astype(np.int64)


def are_valid(ids: Array, size: int) -> Array:
    """Return which class ids lie in [0, size)."""
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(np.int32)  # 200 does not fit in int8
    return (wide >= 0) & (wide < size)


@compiled
def valid_ids(ids: Array, *, size: int) -> Array:
    """Convert class ids to int32; ids outside of [0, size) become -1."""
    return xp.where(are_valid(ids, size), ids.astype(xp.int32), -1)


def as_mask(where: ArrayLike | None) -> Array | None:
    """Check a mask and convert it to a bool array."""
    if where is None:
        return None
    mask = as_array(where, "where")
    if mask.dtype != bool and mask.size:
        raise TypeError(
            "where must be an array of dtype bool, in which True marks the examples to count, got"
            f" dtype {mask.dtype}. Convert a mask of numbers to bool with mask != 0."
        )
    return mask.astype(bool)


def check_no_nan(values: Array, name: str, *where: Array | None) -> None:
    message = "not a number; use where= to leave examples out."
    refuse_where(np.isnan, values, name, message, *where)


def shapes_of(**arrays: Array | None) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the given arrays, by name."""
    return {name: x.shape for name, x in arrays.items() if x is not None}


def check_examples(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check that last axes have the same number of examples, and that leading axes broadcast."""
    lengths = {shape[-1:] for shape in shapes.values()}
    if {*shapes.values()} == {()}:
        names = " and ".join(shapes)
        raise ValueError(f"{names} must have one value per example, got a single number.")
    try:
        if len(set(shapes.values())) > 1:  # `broadcast_shapes` is slow
            np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
        if len(lengths) <= 1 and () not in lengths:
            return
    except ValueError:  # batch axes do not broadcast
        pass
    described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    hint = RAVEL if any(len(shape) > 1 for shape in shapes.values()) else ""
    raise ValueError(
        "All arguments must have at least one axis, because the last axis is the axis of examples,"
        " and the same number of examples on it. All other axes are batch axes, which must"
        f" broadcast as in NumPy, but the shapes are {described}.{hint}"
    )
