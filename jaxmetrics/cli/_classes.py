"""Class names as they appear in files, and the ids that they get."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn

import numpy as np
import polars as pl

from jaxmetrics.cli import _sources
from jaxmetrics.cli._sources import InputError, listed

__all__: list[str] = []

# Called with which rows are bad, a role and what is wrong.
Refuse = Callable[[np.ndarray, str, str], NoReturn]


def learn_classes(
    classes: dict[str, int],
    labels: pl.Series,
    role: str,
    closed: bool,
    ignore: frozenset[str],
    refuse: Refuse,
) -> None:
    """Give an id to each new class name, in order; if `closed` there must be no new one."""
    for label in labels.unique(maintain_order=True):
        if label in ignore or label in classes:
            continue
        message = ""
        if label == "":
            message = "which is no class; --ignore '' leaves such rows out"
        elif re.fullmatch(r"-\d+", label):
            message = (
                f"which is no class id; --ignore={label} leaves such rows out, another name makes"
                " it a class"
            )
        elif closed:
            message = "a class for which there is no column of probabilities"
        elif len(classes) == _sources.MAX_CLASSES:
            message = f"after {_sources.MAX_CLASSES} other values: is it a column of classes?"
        if message:
            refuse((labels == label).to_numpy(), role, message)
        classes[label] = len(classes)


def ids_of(labels: pl.Series, classes: Mapping[str, int], ignore: Collection[str]) -> np.ndarray:
    """Give the ids of labels that are all known; -1 for those to be ignored."""
    names = list(dict.fromkeys([*classes, *ignore]))
    ids = np.array([-1 if name in ignore else classes[name] for name in names], np.int64)
    return ids[labels.cast(pl.Enum(names)).to_physical().to_numpy()]


def sorted_names(classes: Collection[str]) -> list[str]:
    """Sort by number if all names are integers, else by name."""
    return sorted(classes, key=int if all(map(is_integer, classes)) else str)


def check_kinds(true: Sequence[str], pred: Sequence[str]) -> None:
    kinds = {_kind(true), _kind(pred)}
    if kinds == {"integers", "fractions"} or (len(kinds) > 1 and not set(true) & set(pred)):
        raise InputError(
            f"truth and prediction are not of one kind: {listed(true)} against {listed(pred)}"
        )


def _kind(names: Sequence[str]) -> str:
    if all(map(is_integer, names)):
        return "integers"
    return "fractions" if all(map(is_number, names)) else "names"


def is_integer(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text, re.ASCII) is not None


def is_number(text: str) -> bool:
    return re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|-?inf|nan", text, re.ASCII) is not None
