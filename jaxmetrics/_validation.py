"""Validate input: conversion to arrays, checks of shapes, dtypes and values, and their wording.

What shapes, dtypes and Python values show raises always, also while JAX traces. What depends on the
numbers in an array (a label out of range, a NaN weight) raises for arrays of the host only, since
jit hides those of JAX arrays.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from jaxmetrics._compilation import compiled
from jaxmetrics._namespaces import Array, float_dtype, is_jax, on_device, xp

__all__: list[str] = []


ArrayLike: TypeAlias = jax.typing.ArrayLike | npt.ArrayLike

INT32_MAX = int(np.iinfo(np.int32).max)
MOST_CELLS = 2**31  # of one table of counts


def as_array(x: ArrayLike, name: str) -> Array:
    """Leave JAX arrays and tracers as they are, and make NumPy arrays of all else.

    That is lists, Series and tensors in host memory. An empty list counts as integers.
    """
    if type(x) is np.ndarray or is_jax(x):
        return x
    if isinstance(x, list | tuple):
        if on_device(x):
            return jax.numpy.asarray(x)
        if hasattr(x, "counts"):  # those of a data frame, with the names of its classes
            raise TypeError(f"{name} must be an array, got {type(x).__name__}: take its .counts.")
        if len(x) and hasattr(x[0], "__array__") and not isinstance(x[0], np.generic):
            x = [as_array(row, name) for row in x]
    refuse_masked(x, name)
    if hasattr(x, "detach") and str(getattr(x, "dtype", "")) == "torch.bfloat16":
        x = x.detach().float()  # NumPy has no such dtype; the values stay
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array, got rows of different lengths or what is no array: {error}"
        ) from None
    return array.astype(np.int8) if array.size == 0 and isinstance(x, list | tuple) else array


def on_host(x: ArrayLike, name: str) -> np.ndarray:
    """Make a NumPy array of what `as_array` takes, also of a JAX array."""
    return np.asarray(as_array(x, name))


def refuse_masked(x: object, name: str) -> None:
    """Refuse an array with masked entries, whose mask `numpy.asarray` forgets."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise TypeError(
            f"{name} is a masked array: give {name}.data, and where=~{name}.mask; where there is no"
            " where, leave these entries out."
        )


def is_integer(x: Array) -> bool:
    return jax.numpy.issubdtype(x.dtype, np.integer) or x.dtype == bool


_takes_complex: ContextVar[bool] = ContextVar("takes_complex", default=False)


@contextmanager
def complex_steps() -> Iterator[None]:
    """Let `as_float` pass complex128 in the block: derivatives on the host are its imaginary part,
    see `intervals.derivatives`.
    """
    token = _takes_complex.set(True)
    try:
        yield
    finally:
        _takes_complex.reset(token)


def as_float(x: ArrayLike, name: str) -> Array:
    """Convert `x` to the dtype in which it is computed."""
    if type(x) in (float, int):
        return np.float64(x)  # type: ignore[arg-type]
    array = as_array(x, name)
    dtype = float_dtype(array)
    if array.dtype == dtype or (array.dtype == np.complex128 and _takes_complex.get()):
        return array
    check_real(array, name)
    return array.astype(dtype)


def check_real(array: Array, name: str) -> None:
    if not (is_integer(array) or jax.numpy.issubdtype(array.dtype, np.floating)):
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")


def refuse_where(bad: Array, array: Array, name: str, message: str) -> None:
    """Raise for the first value of a host array that is bad, with its place."""
    if np.any(bad):
        index = np.argwhere(bad)[0].tolist()
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        value = np.asarray(array)[tuple(index)]
        shown = f"{value:g}" if array.dtype.kind == "f" else f"{value}"
        raise ValueError(f"{place} is {shown}, {message}")


def as_counts(counts: ArrayLike) -> Array:
    """Convert `counts` to floats of shape `(..., K, K)`."""
    array = as_float(counts, "counts")
    check_square(array, "counts")
    return array


def as_wide(counts: np.ndarray) -> np.ndarray:
    """Convert integers of the host to int64, or to floats where int64 may not hold their sum."""
    fits = np.abs(counts.astype(float)).sum() < 2**62
    return counts.astype(np.int64 if fits else float)


def check_square(array: Array, name: str) -> None:
    if array.ndim < 2 or array.shape[-1] != array.shape[-2] or array.shape[-1] == 0:
        raise ValueError(
            f"{name} must have shape (..., K, K) (row = true class, column = predicted class), got"
            f" {array.shape}. jaxmetrics.confusion_matrix makes such an array from labels and"
            " predictions."
        )


def as_square(x: ArrayLike, k: int, name: str) -> Array:
    """Convert `x` to a `(k, k)` array of floats that goes with counts of k classes."""
    array = as_float(x, name)
    if array.shape != (k, k):
        raise ValueError(
            f"{name} must have shape (K, K) = ({k}, {k}) like one matrix of counts, got"
            f" {array.shape}."
        )
    return array


def check_size(value: int, name: str) -> int:
    """Check a static size of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"{name} must be a Python int, because it sets the shape of the result; got"
            f" {type(value).__name__}. Under jax.jit, close over it or name it in static_argnames."
        )
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}.")
    if value > INT32_MAX:
        raise ValueError(f"{name} must be below 2^31, got {value}.")
    return int(value)


def check_cells(shape: Sequence[int], sizes: str) -> None:
    """Refuse a table of counts that no memory may be expected to hold."""
    cells = math.prod(shape)
    if cells > MOST_CELLS:
        raise ValueError(
            f"{sizes} make a table of {' x '.join(map(str, shape))} cells, {8 * cells / 2**30:.3g}"
            f" GiB of counts; a table has at most 2^31 cells (16 GiB)."
        )


def check_level(level: float) -> float:
    """Check the probability with which an interval is meant to contain the true value."""
    if not (isinstance(level, int | float) and 0 < (1 - level) / 2 < 0.5):
        raise ValueError(
            f"level must be a Python number between 0 and 1 (0.95 for 95 %), got {level!r}."
        )
    return level


def check_option(value: str, name: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ValueError(
            f"{name} must be {', '.join(map(repr, options[:-1]))} or {options[-1]!r}, got"
            f" {value!r}."
        )


def as_class_ids(labels: ArrayLike, name: str, size: int, where: Array | None = None) -> Array:
    """Check integer class ids with an axis of examples.

    The values of host arrays are looked at: a label of `size` or more raises, unless `where` leaves
    it out, and where one is negative, all negative ones become -1.
    """
    ids = as_array(labels, name)
    check_integer(ids, name)
    check_no_column(ids, name)
    return ids_in_range(ids, name, size, where)


def check_integer(ids: Array, name: str) -> None:
    if not is_integer(ids):
        if name == "groups":
            hint = " numpy.unique(groups, return_inverse=True)[1] makes ids of any groups."
        elif not jax.numpy.issubdtype(ids.dtype, np.floating):
            hint = (
                " confusion_matrix(..., labels=[...]) takes classes of any kind, and"
                f" jaxmetrics.report strings. Elsewhere [labels.index(x) for x in {name}] makes ids"
                f" of several classes, and {name} == label truth of one."
            )
        elif name == "labels":
            hint = " Logits come first: (logits, labels); distributions go to soft_cross_entropy."
        else:
            hint = (
                " Truth comes first: (y_true, y_pred) or (y_true, y_score); argmax makes class ids"
                " of probabilities."
            )
        raise TypeError(
            f"{name} must hold class ids of an integer or bool dtype, got {ids.dtype}.{hint}"
        )


def check_no_column(ids: Array, name: str) -> None:
    """Refuse class ids `(n, 1)` of the host, as a table with one column gives them.

    They would be n batch entries of one example.
    """
    if not is_jax(ids) and ids.ndim == 2 and ids.shape[-1] == 1 < ids.shape[-2]:
        raise ValueError(
            f"{name} has shape {ids.shape}, a column: {ids.shape[-2]} batch entries of one example"
            f" each. The examples stand on the last axis: {name}.ravel()."
        )


def ids_in_range(ids: Array, name: str, size: int, where: Array | None = None) -> Array:
    """Check the values of class ids as `as_class_ids` does.

    Ids that all lie in [0, size) come back as they are, which tells `count` that none is ignored.
    Others come back as int64, so that a label such as 2**32 does not wrap to 0 where JAX truncates
    it to 32 bits.
    """
    if is_jax(ids) or ids.size == 0:
        return ids
    # One pass over the labels checks both ends: as unsigned integers, negative ids are large.
    if ids.dtype == bool or ids.view(f"u{ids.dtype.itemsize}").max() < size:
        # NumPy makes float64 of uint64 together with int64.
        return ids.astype(np.int64) if ids.dtype == np.uint64 else ids
    if where is None or not is_jax(where):
        _refuse_beyond(size, ids, name, np.asarray(True) if where is None else where)
    return np.where((ids >= 0) & (ids < size), ids, np.asarray(-1, np.int64)).astype(np.int64)


def _refuse_beyond(size: int, ids: np.ndarray, name: str, counted: np.ndarray) -> None:
    bad, shown = np.broadcast_arrays((ids >= size) & counted, ids)
    hint = " Write binary truth as 0 and 1: y_true == 1." if size == 2 else ""
    message = (
        f"but class ids must lie in [0, {size}), and negative ones are ignored. Labels that start"
        f" from 1: subtract 1.{hint}"
    )
    refuse_where(bad, shown, name, message)


def check_binary(y_true: Array, name: str = "y_true") -> None:
    """Refuse truth of -1 and 1 on the host: the former would be ignored, and one class be left."""
    if not is_jax(y_true) and y_true.size and y_true.dtype != bool and y_true.min() == -1:
        present = np.unique(y_true)
        if 1 in present and 0 not in present:
            raise ValueError(
                f"{name} holds -1 and 1 but no 0; truth is 0 or 1, and negative labels are"
                f" ignored: {name} == 1."
            )


@compiled
def valid_ids(ids: Array, *, size: int) -> Array:
    """Convert class ids to int32, -1 for those outside of [0, size)."""
    wide = ids if ids.dtype.itemsize >= 4 else ids.astype(xp.int32)  # a size of 200 is no int8
    return xp.where((wide >= 0) & (wide < size), wide, -1).astype(xp.int32)


def as_mask(where: ArrayLike) -> Array:
    mask = as_array(where, "where")
    if mask.dtype != bool and mask.size:
        raise TypeError(
            f"where must be a bool mask (True = counted), got dtype {mask.dtype}. `mask != 0`"
            " makes one of numbers."
        )
    return mask.astype(bool)


def as_weights(sample_weight: ArrayLike, where: Array | None = None) -> Array:
    """Convert weights of examples to floats; NaN ones that count raise on the host."""
    weights = as_float(sample_weight, "sample_weight")
    check_no_nan(weights, "sample_weight", where)
    return weights


def check_no_nan(values: Array, name: str, where: Array | None = None) -> None:
    """Raise for a NaN of a host array that `where` does not leave out."""
    if is_jax(values) or is_jax(where) or not np.isnan(values).any():
        return
    counted = np.asarray(True) if where is None else where
    bad, shown = np.broadcast_arrays(np.isnan(values) & counted, values)
    message = f"no number. where=~np.isnan({name}) leaves such examples out."
    refuse_where(bad, shown, name, message)


def shapes_of(**arrays: Array | None) -> dict[str, tuple[int, ...]]:
    """Return the shapes of those arrays that were given, by name."""
    return {name: x.shape for name, x in arrays.items() if x is not None}


def check_examples(shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Check for an axis of examples of one length, last, and leading axes that broadcast."""
    described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if any(len(shape) == 0 for shape in shapes.values()):
        raise ValueError(f"each argument needs an axis of examples, got the shapes {described}.")
    if len({shape[-1] for shape in shapes.values()}) > 1:
        raise ValueError(
            "all arguments must have the same number of examples on the last axis, got the shapes"
            f" {described}."
        )
    try:
        np.broadcast_shapes(*(shape[:-1] for shape in shapes.values()))
    except ValueError:
        raise ValueError(
            f"the leading (batch) axes must broadcast, got the shapes {described}."
        ) from None


def warn(message: str) -> None:
    """Warn at the line of the user's code from which the call came."""
    frame, stacklevel = sys._getframe(1), 2
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in ("jaxmetrics", "jax"):
        frame, stacklevel = frame.f_back, stacklevel + 1
    warnings.warn(message, stacklevel=stacklevel)
