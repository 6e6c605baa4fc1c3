"""Convert labels of any type to class ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxmetrics._places.user_warnings import warn
from jaxmetrics._text.wording import element, enumeration, listed, shown

__all__: list[str] = []


def as_names(names: Iterable[Any], name: str) -> list[Any]:
    """Convert a sequence of names to a list; a string, a set (no order) or a matrix raises."""
    try:
        if isinstance(names, str | bytes | set | frozenset) or getattr(names, "ndim", 1) != 1:
            raise TypeError
        return list(names)
    except TypeError:
        raise TypeError(f"{name} must be a sequence of names, got {shown(names)}.") from None


def names_of(names: Sequence[Any] | None, size: int, argument: str) -> list[str]:
    """Return the names after a check of their number; by default "0", "1", and so on."""
    labels = list(map(str, range(size) if names is None else as_names(names, argument)))
    if len(labels) != size:
        raise ValueError(f"{argument} must have {size} names, got {len(labels)}.")
    return labels


def distinct_names_of(names: Sequence[str] | None, size: int, argument: str) -> list[str]:
    """Return the names after a check of their number, and that no name occurs twice."""
    labels = names_of(names, size, argument)
    if len(set(labels)) != size:
        raise ValueError(f"{argument} must differ, got {listed(labels)}.")
    return labels


def as_ids(
    named_labels: Mapping[str, np.ndarray],
    class_names: Sequence[Any] | None,
    num_columns: int | None,
) -> tuple[list[np.ndarray], Sequence[str]]:
    """Return the class ids of each array (-1 for ignored labels) and the names of the classes."""
    integers = {labels.dtype.kind for labels in named_labels.values()} <= {"i", "u", "b"}
    # Python ints, because int64 and uint64 cannot be combined exactly.
    lists = {name: labels.tolist() for name, labels in named_labels.items()}
    if not integers:
        _check_strings(named_labels, lists)
    if integers and class_names is None and num_columns is not None:
        class_names = list(map(str, range(num_columns)))
    if class_names is not None:
        classes = as_names(class_names, "class_names")
        if integers and not are_labels(classes):
            return list(named_labels.values()), classes
    else:
        present = {label for labels in lists.values() for label in labels}
        classes = sorted_classes(label for label in present if not integers or label >= 0)
    index = {label: i for i, label in enumerate(classes)}
    if class_names is not None:
        _check_known(lists, index, integers)
    ids = [np.array([index.get(label, -1) for label in labels]) for labels in lists.values()]
    return ids, list(map(str, classes))


def are_labels(names: Sequence[Any]) -> bool:
    """Return whether integer labels are members of the names, which are then integers, too, but not
    0 to K - 1. Otherwise, integer labels are positions in the names.
    """
    are_numbers = all(isinstance(x, int | np.integer) for x in names)
    return are_numbers and [*names] != [*range(len(names))]


def check_columns(number: int, names: Sequence[str], name: str) -> None:
    """Raise an error unless there is one column for each class."""
    if number != len(names):
        raise ValueError(
            f"{name} has {number} columns, but there are {len(names)} classes: {listed(names)}."
            " There must be one column for each class."
        )


def ordered_categories(named: Mapping[str, Any]) -> list[str] | None:
    """Return the names of the categories of ordered columns, in their order; None without any.

    Such columns are ordered `Categorical` data of pandas, `Enum` data of Polars, and ordered
    dictionaries of Arrow. If several columns are ordered, they must have the same categories.
    """
    found = {name: categories for name, x in named.items() if (categories := _categories(x))}
    if not found:
        return None
    (first, expected), *others = found.items()
    for name, categories in others:
        if categories != expected:
            raise ValueError(
                f"{first} and {name} have different ordered categories: {listed(expected)} in the"
                f" first and {listed(categories)} in the second. Give both the same categories, or"
                " name the classes in their order."
            )
    return expected


def _categories(x: Any) -> list[str] | None:
    dtype = getattr(x, "dtype", getattr(x, "type", x))
    if getattr(dtype, "ordered", False) and hasattr(dtype, "categories"):  # pandas
        categories = dtype.categories.tolist()
    elif type(dtype).__name__ == "Enum":  # Polars
        categories = list(dtype.categories)
    elif getattr(dtype, "ordered", False) and hasattr(dtype, "value_type"):  # Arrow
        # Chunks may have different dictionaries.
        chunks = x.unify_dictionaries().chunks if hasattr(x, "unify_dictionaries") else [x]
        categories = chunks[0].dictionary.to_pylist() if chunks else []
    else:
        return None
    return categories if all(isinstance(label, str) for label in categories) else None


_INTEGER = re.compile("[+-]?[0-9]{1,100}")


def sorted_classes(labels: Iterable[Any], unmarked: Collection[Any] = ()) -> list[Any]:
    """Sort distinct labels: strings as numbers if all are integers, and otherwise as text.

    A warning names labels that are perhaps the same class, or a mark for a missing label, except
    the `unmarked` labels, of which another warning speaks.
    """
    classes = set(labels)
    result = sorted(classes)
    if are_integers(classes):
        result.sort(key=int)
    if any(isinstance(x, str) for x in result):
        _warn_of_alike(result, unmarked)
    return result


_MARK = re.compile(r"|NA|N/A|NaN|nan|None|null|NULL|<NA>|\W?(?i:invalid|no.?answer)\W?")


def _warn_of_alike(names: Sequence[str], unmarked: Collection[str]) -> None:
    by_form: dict[Hashable, list[str]] = {}
    for name in names:
        by_form.setdefault(plain(name), []).append(name)
    alike = [" and ".join(map(repr, group)) for group in by_form.values() if len(group) > 1]
    if alike:
        warn(
            f"the classes {', '.join(alike[:5])} differ only in case, spaces, zeros or invisible"
            " characters. If they are the same class, write its name in the same way everywhere."
        )
    if marks := [repr(x) for x in names if _MARK.fullmatch(x) and x not in unmarked]:
        are = "is counted as a class" if len(marks) == 1 else "are counted as classes"
        warn(
            f"{enumeration(marks)} {are}. If this marks predictions that are no class, reports"
            f" count them as wrong with invalid={marks[0]} (on the command line, --invalid). If it"
            " marks missing true labels, leave out such rows."
        )


def warn_of_absent(invalid: Sequence[Hashable], true: Collection[Any], pred: set[Any]) -> None:
    """Warn if a label of `invalid` is never predicted, but a label that is no true class is: one of
    them may be misspelled.
    """
    absent = [repr(x) for x in invalid if x not in pred]
    others = sorted(map(repr, pred.difference(true, invalid)))
    if absent and others:
        warn(
            f"no prediction is {listed(absent)}, which is named as invalid; {listed(others)} is"
            " predicted and counts as a class, but is no true class. Check the spelling."
        )


def plain(name: str) -> Hashable:
    """Return a value that is equal for names that differ only in how they are written."""
    visible = "".join(x for x in name if unicodedata.category(x) != "Cf")
    form = unicodedata.normalize("NFKC", visible).casefold().strip()
    return int(form) if _INTEGER.fullmatch(form) else form


def are_integers(labels: Collection[Any]) -> bool:
    """Return whether all labels are strings of integers, which have an order."""
    return all(isinstance(x, str) and _INTEGER.fullmatch(x) for x in labels)


def _check_strings(named: Mapping[str, np.ndarray], lists: Mapping[str, list[Any]]) -> None:
    of_strings = any(labels and isinstance(labels[0], str) for labels in lists.values())
    for name, labels in lists.items():
        if not of_strings and named[name].dtype.kind in "iub":
            continue
        found = first_invalid(
            labels, name, lambda label: of_strings and isinstance(label, str), as_text=of_strings
        )
        if found is not None:
            raise TypeError(
                f"labels must be all strings or all integers, but {found[0]}.{found[1]}"
            )


def first_invalid(
    values: Sequence[object],
    name: str,
    is_valid: Callable[[Any], bool],
    shape: Sequence[int] | None = None,
    *,
    as_text: bool = False,
) -> tuple[str, str] | None:
    """Return text that names the first missing or else the first invalid value, and a hint.

    Args:
        shape: the shape of the array, if the values come from an array.
        as_text: whether valid values are strings instead of class ids.
    """
    for is_bad in (is_missing, lambda value: not is_valid(value)):
        i = next((i for i, value in enumerate(values) if is_bad(value)), None)
        if i is not None:
            index = [i] if shape is None else np.unravel_index(i, shape)
            return f"{element(name, index)} is {values[i]!r}", _way_out(values[i], name, as_text)
    return None


def _way_out(label: object, name: str, as_text: bool) -> str:
    """Return a hint how to convert a label that is not valid, or "" if there is none."""
    if is_missing(label):
        return " Leave out rows without a label. In integer truth, -1 marks examples to ignore."
    if not is_whole(label):
        return ""
    if as_text:
        return f" list(map(str, {name})) converts whole numbers to strings."
    return f" numpy.asarray({name}, int) converts whole numbers to ids."


def is_missing(x: Any) -> bool:
    """Return whether a label is missing: None, NaN, NaT or pandas' NA."""
    try:
        return x is None or bool(x != x)
    except TypeError:  # bool(pandas.NA) raises
        return True
    except ValueError:  # an array
        return False


def is_whole(x: object) -> bool:
    return isinstance(x, int) or (isinstance(x, float) and x.is_integer())


def _check_known(lists: Mapping[str, list[Any]], index: Mapping[Any, int], integers: bool) -> None:
    """Raise an error for the first unknown label that is no negative integer."""
    for name, labels in lists.items():
        unknown = (i for i, x in enumerate(labels) if x not in index and not (integers and x < 0))
        for i in unknown:
            way = " If labels are the ids 0 to K - 1, pass names that are text." * integers
            raise ValueError(
                f"{name}[{i}] is '{listed([labels[i]])}', which is not one of"
                f" class_names: {listed(index)}. Add this class to class_names, or correct the"
                f" label.{way}"
            )
