"""Items that repeat: the columns that identify items, and the clusters of their rows."""

from __future__ import annotations

import warnings
from argparse import Namespace
from itertools import islice

import polars as pl

from jaxmetrics.cli._errors import InputError
from jaxmetrics.cli._reader import FileTable

_ITEMS = ("doc_id", "sample_id", "question_id", "id")
_ATTEMPTS = ("filter", "epoch", "attempt")  # columns that tell apart the rows of one item
_NUM_BATCHES = 16  # about a million rows show whether items repeat
_MOST_ROWS = 100  # rows for each item; a column with more is perhaps no column of items


REPEATED_IN_SOME = (
    "some of the files have items that repeat. Add --cluster COLUMN, which all files must have, or"
    " --cluster '' if all rows are independent."
)


def clusters_of(table: FileTable, options: Namespace) -> list[str]:
    """Return the columns of clusters: `--cluster`, or else the columns that identify items, which
    are `--id` (in reports) and those of usual names, if items repeat.

    A warning says that the rows of an item are treated as one cluster. Rows of different groups are
    different items, unless the groups are attempts at the same items.
    """
    if options.cluster is not None:
        return [options.cluster] if options.cluster else []
    within = [] if options.group is None or options.group in _ATTEMPTS else [options.group]
    roles = [options.true, options.pred, options.value, *within]
    # Elsewhere, rows must have different ids.
    may_repeat = options.command == "report" and options.value is None
    for item in dict.fromkeys([options.id, *_ITEMS] if may_repeat else _ITEMS):
        if item not in table.names or item in roles:
            continue
        columns = [item, *within]
        try:
            asked = {name: table.label(name) for name in columns}
        except InputError:  # no column of labels
            continue
        batches = list(islice(table.batches(asked), _NUM_BATCHES))
        if not batches:
            return []
        rows = pl.concat(batches).filter(pl.col(item).cast(pl.String) != "").select(columns)
        number, distinct = len(rows), rows.n_unique()
        if distinct == number:
            continue
        way = "--cluster '' treats all rows as independent"
        if distinct < max(2, number / _MOST_ROWS):
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
