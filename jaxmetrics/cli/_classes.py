"""Class names in files."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from shlex import quote

from jaxmetrics._arguments.labels import are_integers, plain
from jaxmetrics.cli._errors import InputError, listed, shortened

_MOST_DIGITS = 100  # a longer number is read as a name
_FEW = 20  # more true classes may be free-form answers, which may all be wrong


def sorted_classes(labels: Collection[str]) -> list[str]:
    """Return the classes, sorted as numbers if all labels are integers, otherwise as strings."""
    return sorted(labels, key=int if are_integers(labels) else str)


def one_against_rest(labels: Collection[str], positive: str, is_default: bool) -> list[str]:
    """Return two classes: the rest and the positive class. If the rest is a single class, it has
    the name of this class, otherwise "not " and the name of the positive class.
    """
    others = [label for label in labels if label not in (positive, rest_of(positive))]
    if is_default and others not in ([], ["0"]):
        names = sorted_classes({*labels} - {rest_of(positive)})
        raise InputError(
            f"the classes in the file are {listed(names)}."
            " Add --pos-label with the class that has the higher scores. Only if the classes are 0"
            " and 1, the positive class is 1 by default."
        )
    if positive not in labels:
        hint = "" if positive != "1" else "; --pos-label must name the positive class of the scores"
        raise InputError(
            f"no row has the class {positive!r}, which --pos-label names. The classes in the file"
            f" are {listed(sorted(labels))}{hint}"
        )
    return [others[0] if len(others) == 1 else rest_of(positive), positive]


def rest_of(positive: str) -> str:
    """Return the name of the rest, which contains all classes but the positive class."""
    return f"not {positive}"


def refusal_of(label: str, role: str, classes: Collection[str] | None) -> str | None:
    """Return why a true or predicted label is not a valid class, or None if it is valid. If classes
    are named, the label is none of them.
    """
    option = f"={quote(shortened(label))}" if label else " ''"
    wrong = f"--invalid{option} counts it as a wrong prediction; " if role == "pred" else ""
    ways = f"{wrong}--ignore{option} leaves such rows out"
    if classes:
        return f"which is none of --classes; {ways}"
    if label == "":
        return f"which is no class; {ways}"
    if re.fullmatch(r"-\d+(\.0*)?", label):
        example = f"--classes={label},1"
        return f"which is no class id; {ways}; to use it as a class, name all, as in {example}"
    if re.fullmatch(r"\[[-+.,\s\deE]*\]", label):
        return "a list of numbers, but a class was expected"
    return None


def check_classes(true: Collection[str], pred: Collection[str]) -> None:
    """Raise an error if the true and the predicted classes are of different kinds, such as integers
    and names, or if no true class is predicted; many classes may be free-form answers.
    """
    true, pred = (sorted_classes(set(labels)) for labels in (true, pred))
    kinds = {_kind(names) for names in (true, pred) if names}  # no prediction may be valid
    if kinds == {"integers", "fractions"} or (len(kinds) > 1 and not set(true) & set(pred)):
        way = ""
        if kinds == {"integers", "fractions"}:
            way = " --prob reads a column of probabilities."
            if all(re.fullmatch(r"-?\d+(\.0*)?", x) for x in (*true, *pred)):
                way = " pandas writes whole numbers beside missing values with a point."
        raise InputError(
            f"the true classes are {listed(true)}, but the predicted classes are {listed(pred)}."
            f" Write the classes in both columns in the same way.{way}"
        )
    if pred and len(true) <= _FEW and not set(true) & set(pred):
        alike = {*map(plain, true)} & {*map(plain, pred)}
        way = " They differ in case or spaces." if alike else ""
        raise InputError(
            f"the true and the predicted classes have no class in common: {listed(true)} and"
            f" {listed(pred)}.{way} Write the classes in the same way in both columns. If all"
            " predictions are wrong, --invalid-others counts them."
        )


def _kind(names: Sequence[str]) -> str:
    if all(map(is_integer, names)):
        return "integers"
    return "fractions" if all(map(is_number, names)) else "names"


def is_integer(text: str) -> bool:
    """Return whether a text is an integer with at most 100 digits."""
    return re.fullmatch(rf"-?\d{{1,{_MOST_DIGITS}}}", text, re.ASCII) is not None


def is_number(text: str) -> bool:
    """Return whether a text is a number."""
    return (
        re.fullmatch(r"-?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|-?inf|nan", text, re.ASCII) is not None
    )
