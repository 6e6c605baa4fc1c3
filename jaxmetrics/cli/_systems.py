"""Find the systems that a command compares: files, or columns or rows of a single file."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from jaxmetrics.cli._classes import is_number
from jaxmetrics.cli._errors import InputError, listed, shown
from jaxmetrics.cli._items import usual_items
from jaxmetrics.cli._options import OF_SYSTEMS, with_options
from jaxmetrics.cli._reader import Value, is_pipe, no_rows, opened, parts_of
from jaxmetrics.cli._text_files import ROW


def files_of(options: Namespace) -> list[Namespace]:
    """Return the options for each file: `files` is the file, and `name` is its name."""
    return [with_options(options, files=[file], name=shown(file)) for file in options.files]


def systems_of(options: Namespace) -> list[Namespace]:
    """Return the options for each system, which select its file, columns or rows; `name` is its
    name. The command `compare` takes two systems, other commands take two or more.

    The systems are several files, or all files of a single folder or glob pattern. A single file
    has several systems in columns or, with `--system`, in rows. Files have the names of their
    paths, without the folders that all files share.
    """
    systems = _systems_of(options)
    if len(systems) < 2 or (len(systems) > 2 and options.command == "compare"):
        way = f"; --where {options.system}=NAME selects systems" if options.system else ""
        raise InputError(
            "compare takes two systems, and leaderboard takes two or more, but there are"
            f" {len(systems)}: {listed([x.name for x in systems])}{way}"
        )
    if options.command == "leaderboard":  # where equal values and draws depend on the order
        systems.sort(key=lambda system: system.name)
    return systems


def _systems_of(options: Namespace) -> list[Namespace]:
    paths, column = options.files, options.system
    given = {role: x for role in OF_SYSTEMS if (x := getattr(options, role))}

    def system(name: str, columns: dict[str, str], **more: Any) -> Namespace:
        return with_options(options, name=name, **dict.fromkeys(OF_SYSTEMS) | columns, **more)

    if column is None and len(paths) == 1:
        paths = parts_of(paths[0])
    elif column is not None and len(paths) > 1:
        raise InputError(
            "--system names the systems in the rows of one FILE, which may be a folder or a glob"
            f" pattern, but there are {len(paths)} files."
        )
    if len(paths) == 1 and is_pipe(paths[0]):
        raise InputError(
            f"{shown(paths[0])} is a pipe, which can be read only once, but this command reads a"
            " single file several times. Save the data to a file and give the name of that file."
        )
    if len(paths) == 1 and column is None:
        columns = _columns_of_systems(paths[0], options, given)
        parts = zip(*columns.values(), strict=True)
        return [system(x[0], dict(zip(columns, x, strict=True)), files=paths) for x in parts]
    for role, x in given.items():
        if len(x) > 1 and role != "value":
            raise InputError(
                f"--{role} may be repeated only for the columns of a single file. Otherwise, it"
                " must name one column that all systems have."
            )
    shared = {role: ",".join(x) for role, x in given.items()}
    if column is None:
        full = [path.absolute() for path in paths]
        folder = os.path.commonpath([path.parent for path in full])
        names = [shown(path.relative_to(folder)) for path in full]
        return [system(x, shared, files=[y]) for x, y in zip(names, paths, strict=True)]
    names, ids = _names_and_ids(system("", shared))
    others = [x for x in options.where if x[0] != column]
    return [
        system(
            f"{column} {x}" if is_number(x) else x,
            shared,
            id=ids,
            where=[*others, (column, x)],
        )
        for x in names
    ]


def _columns_of_systems(
    path: Path, options: Namespace, given: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """Return the columns of the systems in a single file by role: the columns that the options
    name, or else the columns of predictions that begin with y_pred.
    """
    columns = dict(given)
    if "value" in columns:
        columns["value"] = ",".join(columns["value"]).split(",")
    with opened(path, options) as table:
        if not columns:
            columns["pred"] = [x for x in table.names if x.startswith("y_pred")]
        numbers = {len(x) for x in columns.values()}
        if len(numbers) > 1 or max(numbers) < 2:
            some = "two" if options.command == "compare" else "several"
            raise InputError(
                f"{options.command} needs {some} systems. Give {some} files; or, if this file has"
                " columns for each system, repeat --pred or --value for each of them; or, if it has"
                " rows for each system, add --system with the column that names the system, and"
                f" --id. The file has {listed(table.names)}"
            )
    return columns


def _names_and_ids(options: Namespace) -> tuple[list[str], str]:
    """Return the names of the systems in the column `--system`, and the column of ids: `--id`, or
    else a column of a usual name that has no id twice for the same system.
    """
    (path,), column = options.files, options.system
    frames = list[pl.DataFrame]()
    for part in parts_of(path):
        with opened(part, options) as table:
            usual = usual_items(table, options) if options.id is None else []
            labels = {x: table.label(x).expr for x in dict.fromkeys([column, *usual])}
            asked = {x: Value(x, table.written(x, y)) for x, y in labels.items()}
            frames += table.batches(asked)
    if not sum(map(len, frames)):
        raise InputError(f"{shown(path)}: {no_rows(options)}")
    rows = pl.concat(frames, how="diagonal")
    if (empty := rows.filter(pl.col(column) == "")).height:
        raise InputError(f"{shown(path)}: row {empty[ROW][0]}: the system is missing in {column!r}")
    usual = [x for x in rows.columns if x not in (ROW, column)]
    found = (x for x in usual if rows.select(column, x).n_unique() == len(rows))
    ids = options.id or next(found, None)
    if ids is None:
        raise InputError(
            f"{shown(path)}: --system needs --id, the column of ids that matches the rows of the"
            " systems. The rows of one system must have different ids."
        )
    return rows[column].unique(maintain_order=True).to_list(), ids
