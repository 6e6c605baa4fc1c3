"""Check that labelled arguments have the same order of rows and columns.

NumPy ignores the index of a Series, the coordinates of an xarray array and the column names of a
data frame. Therefore, each function that takes several arguments for the same examples lists them
in a call of `check_order` before it converts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os.path import commonprefix
from typing import Any

from jaxmetrics._text.wording import listed

__all__: list[str] = []

_OF_CLASSES = {"class_weights", "prevalence", "prior"}
_OF_TWO_CLASSES = {"counts", "counts_a", "counts_b", "pilot", "cost", "weights"}


def is_labelled(x: object) -> bool:
    """Return whether `x` is a Series, data frame or xarray array, or an instance of its type."""
    attributes = ("index", "indexes", "columns", "column_names")
    return hasattr(x, "__array__") and any(hasattr(x, name) for name in attributes)


def _axes(x: Any) -> list[Any]:
    """Return the labels of those axes of a Series, data frame or xarray array that have labels."""
    if hasattr(x, "indexes"):
        return [x.indexes[dim] for dim in x.dims if dim in x.indexes]
    axes: Any = (getattr(x, name, None) for name in ("index", "columns"))
    axes = (axis.compute() if hasattr(axis, "compute") else axis for axis in axes)  # of Dask
    return [axis for axis in axes if hasattr(axis, "equals")]


def _columns(x: Any) -> list[str] | None:
    """Return the column names of a data frame, table or xarray array with two axes, or None."""
    if not hasattr(x, "__array__"):
        return None
    if hasattr(x, "indexes"):
        names = x.indexes.get(x.dims[-1]) if x.ndim == 2 else None
    else:
        names = getattr(x, "column_names", getattr(x, "columns", None))
    return None if names is None else list(map(str, names))


def check_order(**examples: Any) -> None:
    """Raise an error if arguments for the same examples have rows or columns in different order.

    Elements of lists and tuples are checked, too. In a data frame with another number of rows, the
    columns may be the examples. Names of columns may have different prefixes and suffixes.
    """
    by_length: dict[int, tuple[str, Any]] = {}
    by_width: dict[int, tuple[str, list[str]]] = {}
    for name, x in _labelled(examples):
        axes = _axes(x)
        # Columns that are only numbered have no names.
        axes = axes[:1] + [axis for axis in axes[1:] if list(axis) != list(range(len(axis)))]
        index: Any = next((a for a in axes if len(a) in by_length), axes[0] if axes else ())
        first, expected = by_length.setdefault(len(index), (name, index))
        if index is not expected and not index.equals(expected):
            raise ValueError(
                f"{first} and {name} have different indices. If rows with the same index"
                f" belong together, use {name}.loc[{first}.index], .reindex or .align to"
                " put both in the same order. If rows at the same position belong together,"
                " pass .to_numpy() of both."
            )
        columns = _columns(x) or []
        if columns in ([f"{prefix}{i}" for i in range(len(columns))] for prefix in ("", "column_")):
            continue
        first, order = by_width.setdefault(len(columns), (name, columns))
        found, wanted = _without_affixes(columns), _without_affixes(order)
        if found != wanted:
            is_same = sorted(found) == sorted(wanted)
            differ = "their columns in different order" if is_same else "columns of different names"
            raise ValueError(
                f"{first} and {name} have {differ}:"
                f" {listed(order)} in the first and {listed(columns)} in the second. If"
                " columns with the same name belong together, put the columns in the same"
                " order. If columns at the same position belong together, pass .to_numpy()"
                " of both."
            )


def _labelled(examples: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, x in examples.items():
        if isinstance(x, list | tuple) and any(map(is_labelled, set(map(type, x)))):
            yield from _labelled({f"{name}[{i}]": row for i, row in enumerate(x)})
        elif is_labelled(x):
            yield name, x


def named_systems(x: Any) -> tuple[Any, list[str] | None]:
    """Return a row for each system and the names of the systems, if `x` is a dict or a data frame.

    Each column of a data frame is a system. If there are not more rows than columns, the columns
    are perhaps examples, and the data frame is returned without names.
    """
    keys = list(
        x if isinstance(x, Mapping) else getattr(x, "column_names", getattr(x, "columns", ()))
    )
    if not isinstance(x, Mapping) and not (keys and hasattr(x, "__array__") and len(keys) < len(x)):
        return x, None
    return [x[key] for key in keys], list(map(str, keys))


def _without_affixes(names: list[str]) -> list[str]:
    """Remove what all names begin or end with: `true_cat, true_dog` becomes `cat, dog`."""
    for _ in range(2):
        names = [name.removeprefix(commonprefix(names))[::-1] for name in names]  # noqa: RUF071  # not of paths
    return names


def check_classes(x: Any, name: str) -> None:
    """Raise an error for a Series or data frame whose classes are not in the expected order.

    Numbers per class may come from `value_counts`, which sorts them by frequency, and counts from
    `crosstab`, whose rows may be predictions, whose rows and columns may be different classes, and
    which may have margins.
    """
    rows, *columns = _axes(x) or [()]
    if name in _OF_CLASSES and list(rows) != list(range(len(rows))):
        raise ValueError(
            f"The index of {name} must be the class ids in increasing order, got"
            f" {listed(rows)}. Use {name}.sort_index() to sort the rows. If the values are"
            " already in the order of the classes, pass .to_numpy()."
        )
    if name not in _OF_TWO_CLASSES or not columns:
        return
    titles = [str(getattr(axis, "name", "")).casefold() for axis in (rows, columns[0])]
    if "pred" in titles[0] and "pred" not in titles[1]:
        raise ValueError(
            f"The rows of {name} are named {rows.name!r}, but rows must be true classes and columns"
            f" predicted classes. Pass {name}.T."
        )
    if hasattr(rows, "step"):  # rows without names
        return
    if len(rows) > 1 and all(_is_margin(axis[-1]) for axis in (rows, columns[0])):
        raise ValueError(
            f"The last row and column of {name} are named {rows[-1]!r}, so they are perhaps totals."
            f" Pass {name}.iloc[:-1, :-1] to leave them out, or .to_numpy() if {rows[-1]!r} is a"
            " class."
        )
    if list(map(str, rows)) != list(map(str, columns[0])):
        raise ValueError(
            f"The rows and the columns of {name} must be the same classes in the same order,"
            f" got {listed(rows)} and {listed(columns[0])}. Use .reindex with fill_value=0 to"
            " put both in the same order. If the rows and columns at the same position are the"
            f" same class, pass {name}.to_numpy() if the rows are the true classes, or"
            f" {name}.T.to_numpy() if the rows are the predictions, such as results of a test."
        )


def _is_margin(label: object) -> bool:
    return str(label).strip("- ").casefold() in ("all", "total", "totals", "sum", "margin")


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
