"""Check that Series and data frames of one call have the same order of rows and columns.

NumPy ignores the index of a Series and the column names of a data frame. Therefore both are checked
when an argument is converted (`as_array`). The other arguments of the user's call are read from the
call stack, so that no function needs a check of its own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

from jaxmetrics._text.wording import listed

__all__: list[str] = []

# Arguments with one element per class or threshold; the index does not name examples.
_NOT_OF_EXAMPLES = {"class_names", "class_weights", "edges", "prevalence", "prior", "thresholds"}
_OF_CLASSES = {"class_weights", "prevalence", "prior"}
_COUNTS = {"counts", "counts_a", "counts_b", "pilot"}


def own_frames() -> list[FrameType]:
    """Return the stack frames of this package and JAX, from here up to the call by the user."""
    frames = [sys._getframe(1)]
    while (caller := frames[-1].f_back) and _is_own(caller):
        frames.append(caller)
    return frames


def _is_own(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").split(".")[0] in ("jaxmetrics", "jax")


def is_labelled(x: object) -> bool:
    """Return whether the rows or columns of `x` have names."""
    return _has_index(x) or _columns(x) is not None


def _has_index(x: object) -> bool:
    return hasattr(getattr(x, "index", None), "equals")  # `index` of a list is a method


def _columns(x: Any) -> list[str] | None:
    """Return the column names of a data frame (pandas, Polars) or table (PyArrow), or None."""
    columns = getattr(x, "column_names", getattr(x, "columns", None))
    return None if columns is None or not hasattr(x, "__array__") else list(map(str, columns))


def check_order() -> None:
    """Raise an error if arguments of one call differ in their index or the order of columns."""
    for frame in reversed(own_frames()):
        by_length: dict[tuple[str, int], tuple[str, Any]] = {}
        by_columns: dict[tuple[str, ...], tuple[str, list[str]]] = {}
        _check_classes({**inspect.getargvalues(frame).locals})  # in Python 3.13, locals are a proxy
        for name, sample, x in _arguments(frame):
            if _has_index(x):
                first, index = by_length.setdefault((sample, len(x)), (name, x.index))
                if x.index is not index and not x.index.equals(index):
                    raise ValueError(
                        f"{first} and {name} have different indices. If rows with the same index"
                        f" belong together, use {name}.loc[{first}.index], .reindex or .align to"
                        " put both in the same order. If rows at the same position belong together,"
                        " pass .to_numpy() of both."
                    )
            if (columns := _columns(x)) is not None:
                first, order = by_columns.setdefault(tuple(sorted(columns)), (name, columns))
                if columns != order:
                    raise ValueError(
                        f"{first} and {name} have their columns in different order:"
                        f" {listed(order)} in the first and {listed(columns)} in the second. If"
                        " columns with the same name belong together, put the columns in the same"
                        " order. If columns at the same position belong together, pass .to_numpy()"
                        " of both."
                    )


def _check_classes(given: Mapping[str, Any]) -> None:
    """Raise an error for a Series or data frame whose classes are not in the expected order.

    Numbers per class may come from `value_counts`, which sorts them by frequency, and counts from
    `crosstab`, whose rows and columns may be different classes.
    """
    for name in _OF_CLASSES & given.keys():
        x = given[name]
        if _has_index(x) and list(x.index) != list(range(len(x))):
            raise ValueError(
                f"The index of {name} must be the class ids in increasing order, got"
                f" {listed(x.index)}. Use {name}.sort_index() to sort the rows. If the values are"
                " already in the order of the classes, pass .to_numpy()."
            )
    for name in _COUNTS & given.keys():
        x, columns = given[name], _columns(given[name])
        if columns is None or not _has_index(x) or hasattr(x.index, "step"):  # rows without names
            continue
        if list(map(str, x.index)) != columns:
            raise ValueError(
                f"The rows and the columns of {name} must be the same classes in the same order,"
                f" got {listed(x.index)} and {listed(columns)}. Use .reindex with fill_value=0 to"
                " put both in the same order. If the rows and columns at the same position are the"
                " same class, pass .to_numpy()."
            )


def _arguments(frame: FrameType) -> Iterator[tuple[str, str, Any]]:
    """Yield the name, the sample and the value of each argument that may contain examples.

    Values in dicts and lists are included. The sample is "_a" or "_b" if A and B have separate
    truths, and otherwise "". Positional arguments `*args` are skipped, because they are passed on
    to a function in which they have names. `labels` are skipped if they may be the classes.
    """
    names, rest, options, values = inspect.getargvalues(frame)
    given = {name: values.get(name) for name in [*names, *filter(None, [rest, options])]}
    passed_on = given.pop("args", None)
    for fields in [x for x in given.values() if isinstance(x, dict)]:
        given |= {str(key): value for key, value in fields.items()}
    for name, x in given.items():
        if name in _NOT_OF_EXAMPLES or (name == "labels" and (passed_on or "y_true" in given)):
            continue
        sample = name[-2:] if "y_true_b" in given else ""
        yield name, sample, x
        if isinstance(x, list | tuple) and any(map(is_labelled, x[:1])):
            yield from ((f"{name}[{i}]", sample, row) for i, row in enumerate(x))


def order_of_classes(
    x: object, name: str, class_names: Sequence[str] | None = None
) -> list[int] | None:
    """Return the index of the column of each class in a data frame; None if columns have no names.

    A column must have the name or the id of its class, with or without the prefix "prob_". Polars
    names unnamed columns "column_0" and so on.
    """
    columns = _columns(x)
    if columns is None:
        return None
    ids = list(map(str, range(len(columns))))
    for classes in (class_names or ids, ids):
        for prefix in ("", "prob_", "column_"):
            wanted = [f"{prefix}{label}" for label in classes]
            if sorted(wanted) == sorted(columns):
                return list(map(columns.index, wanted))
    raise ValueError(
        f"The columns of {name} are {listed(columns)}, but the names of the classes are"
        f" {listed(class_names or ids)}. Rename the columns, or put the columns in the order of the"
        f" classes and pass {name}.to_numpy()."
    )
