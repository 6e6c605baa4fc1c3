"""Items that repeat: the columns that identify items, and the clusters of their rows."""

from __future__ import annotations

import warnings
from argparse import Namespace
from itertools import islice

import polars as pl

from jaxmetrics.cli._errors import InputError
from jaxmetrics.cli._reader import FileTable

_SELDOM = ("task_id", "problem_id", "prompt_id")  # with few values, they are names of tasks
_ITEMS = (*_SELDOM, "doc_id", "sample_id", "question_id", "id")
# Columns that tell apart the rows of one item.
_ATTEMPTS = ("filter", "epoch", "attempt", "model", "system", "seed", "run")
_NUM_BATCHES = 16  # about a million rows show whether items repeat
_MOST_ROWS = 100  # rows for each item; a column with more is perhaps no column of items


REPEATED_IN_SOME = (
    "some of the files have items that repeat. Add --cluster COLUMN, which all files must have, or"
    " --cluster '' if all rows are independent."
)


def usual_items(table: FileTable, options: Namespace) -> list[str]:
    """Return the columns that may identify items: `--id`, in reports, and those of usual names."""
    # Elsewhere, rows must have different ids.
    may_repeat = options.command == "report" and options.value is None
    names = dict.fromkeys([options.id, *_ITEMS] if may_repeat else _ITEMS)
    roles = options.true, options.pred, options.value, options.group
    return [x for x in names if x in table.names and x not in roles and _is_label(table, x)]


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
    different items, unless the groups are attempts at the same items.
    """
    if options.cluster is not None:
        return [options.cluster] if options.cluster else []
    within = [] if options.group is None or options.group in _ATTEMPTS else [options.group]
    for item in usual_items(table, options):
        columns = [item, *within]
        asked = {name: table.label(name) for name in columns}
        batches = list(islice(table.batches(asked), _NUM_BATCHES))
        if not batches:
            return []
        rows = pl.concat(batches).filter(pl.col(item).cast(pl.String) != "").select(columns)
        number, distinct = len(rows), rows.n_unique()
        if distinct == number:
            continue
        way = "--cluster '' treats all rows as independent"
        if distinct < max(2, number / _MOST_ROWS):
            if item in _SELDOM:
                continue
            raise InputError(
                f"the column {item!r} has only {distinct} different values in {number} rows. If"
                f" rows with the same value are correlated, add --cluster {item}; {way}."
            )
        warnings.warn(
            f"the column {item!r} repeats ({distinct} different values in {number} rows): rows with"
            f" the same {item} are treated as one cluster. --where selects rows, such as"
            f" --where filter=VALUE; {way}.",
            stacklevel=2,
        )
        return columns
    return []
