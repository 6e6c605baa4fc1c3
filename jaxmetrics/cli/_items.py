"""Items that repeat: the columns that identify items, and the clusters of their rows."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Sequence
from itertools import islice

import polars as pl

from jaxmetrics.cli._errors import InputError
from jaxmetrics.cli._reader import FileTable

_SURE = ("doc_id", "sample_id", "question_id", "id")
_ITEMS = (
    *("task_id", "problem_id", "prompt_id", *_SURE, "instance_id", "qid", "idx", "testidx"),
    *("problem", "question", "item", "example", "test", "prompt"),
)
_FEW = 10  # columns of other names that have fewer values are names of tasks, templates or splits
# Columns that tell apart the rows of one item.
_TRIES = (
    "attempt",
    "epoch",
    "sample",
    "repeat",
    "repetition",
    "seed",
    "run",
    "trial",
    "generation",
)
_ATTEMPTS = ("filter", "model", "system", *_TRIES)
_NUM_BATCHES = 16  # about a million rows show whether items repeat
_MOST_ROWS = 100  # rows for each item; a column with more is perhaps no column of items
# The least share of all combinations of items and attempts, models or languages that occurs. Tasks
# have different numbers of items: of the combinations of the 14 categories of MMLU-Pro and the
# numbers of their questions, 0.64 occur, so that 0.5 is too little. At 1, a missing row of an
# attempt would make attempts independent.
_CROSSED = 0.8


REPEATED_IN_SOME = (
    "some of the files have items that repeat. Add --cluster COLUMN, which all files must have, or"
    " --cluster '' if all rows are independent."
)


def usual_items(table: FileTable, options: Namespace) -> list[str]:
    """Return the columns that may identify items: `--id`, in reports, and those of usual names in
    any case.
    """
    # Elsewhere, rows must have different ids.
    may_repeat = options.command == "report" and options.value is None
    names = sorted(table.names, key=lambda name: name.count("."))
    usual = [x for item in _ITEMS for x in names if item in _usual_names(x)]
    found = dict.fromkeys([options.id, *usual] if may_repeat else usual)
    roles = options.true, options.pred, options.value, options.group
    return [x for x in found if x in table.names and x not in roles and _is_label(table, x)]


def _usual_names(name: str) -> tuple[str, ...]:
    """Return the usual names of a column, such as "epoch" for `sample.epoch`, and "sample_id" and
    "sample" for `sample.id`.
    """
    *_, above, last = ["", *name.lower().split(".")]
    return (f"{above}_id", above) if above and last == "id" else (last,)


def _is_attempt(name: str) -> bool:
    return _usual_names(name)[0] in _ATTEMPTS


def _is_label(table: FileTable, name: str) -> bool:
    try:
        table.label(name)
    except InputError:
        return False
    return True


def clusters_of(table: FileTable, options: Namespace) -> list[str]:
    """Return the columns of clusters: `--cluster`, or else the columns that identify items, which
    are `--id` (in reports) and those of usual names, if items repeat.

    A warning says that the rows of an item are treated as one cluster. Rows of different groups are
    different items, unless the groups are attempts at the same items. If several columns of `--id`
    identify a row, such as task and doc_id, rows of different tasks are different items, too.
    """
    if options.cluster is not None:
        return [options.cluster] if options.cluster else []
    within = [] if options.group is None or _is_attempt(options.group) else [options.group]
    items = usual_items(table, options)
    ids = [x for x in (options.id or "").split(",") if x in table.names]
    for item in items:
        columns = [item, *within]
        asked = {name: table.label(name) for name in dict.fromkeys([*columns, *ids])}
        batches = list(islice(table.batches(asked), _NUM_BATCHES))
        if not batches:
            return []
        rows = pl.concat(batches).filter(pl.col(item).cast(pl.String) != "")
        number, distinct = len(rows), rows.n_unique(columns)
        if distinct == number or (item in ids and _starts_anew(rows, item, ids)):
            continue
        way = "--cluster '' treats all rows as independent"
        is_sure = not {*_usual_names(item)}.isdisjoint(_SURE) or item == options.id
        if distinct < max(2 if is_sure else _FEW, number / _MOST_ROWS):
            if not is_sure:
                continue
            raise InputError(
                f"the column {item!r} has only {distinct} different values in {number} rows. If"
                f" rows with the same value are correlated, add --cluster {item}; {way}."
            )
        warnings.warn(
            f"the column {item!r} repeats ({distinct} different values in {number} rows): rows with"
            f" the same {item} are treated as one cluster. --where selects rows, such as"
            f" --where filter=VALUE; {way}, for example if {item} starts anew in each task.",
            stacklevel=2,
        )
        return columns
    if not items:
        _warn_of_attempts(table, options)
    return []


def _starts_anew(rows: pl.DataFrame, item: str, ids: Sequence[str]) -> bool:
    """Return whether the numbers of items start anew within the other columns of `--id`, such as
    tasks: no column has the name of attempts, and many combinations do not occur.
    """
    others = [x for x in ids if x != item]
    if not others or any(word in x.lower() for x in others for word in _ATTEMPTS):
        return False
    return len(rows) < _CROSSED * rows[item].n_unique() * rows.n_unique(others)


def _warn_of_attempts(table: FileTable, options: Namespace) -> None:
    """Warn if a column has the name and the values of attempts, but no column identifies items."""
    roles = options.true, options.pred, options.value, options.group, options.system
    for name in table.names:
        if _usual_names(name)[0] in _TRIES and name not in roles and _is_label(table, name):
            batches = [*islice(table.batches({name: table.label(name)}), _NUM_BATCHES)]
            values = [x for batch in batches for x in batch[name]]
            if 1 < len({*values}) <= len(values) / 2:
                warnings.warn(
                    f"the column {name!r} perhaps tells apart attempts at the same items. If so,"
                    " name the column of the items with --cluster, because such rows are not"
                    " independent; --cluster '' treats all rows as independent.",
                    stacklevel=2,
                )
