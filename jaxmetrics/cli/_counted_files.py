"""Read files of predictions once, and count them.

For each batch of rows, only cells are kept: how often each combination of labels occurs, and its
first row, for error messages; for probabilities, only sums are kept. So a file may be larger than
memory. Scores, and probabilities with clusters, are kept row by row, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import (
    Classes,
    all_classes,
    check_kinds,
    one_against_rest,
    rest_of,
)
from jaxmetrics.cli._errors import InputError, listed, named, refusals, shown
from jaxmetrics.cli._inputs import parts_of
from jaxmetrics.cli._mistakes import CONFIDENCE, FILE, Mistakes
from jaxmetrics.cli._rows import COUNTED, LABELS, Predictions, Selection, cells_of
from jaxmetrics.cli._sources import opened
from jaxmetrics.cli._tables import MOST_HELD, ROW, is_too_much
from jaxmetrics.clusters import check_size_of_tables
from jaxmetrics.reports.probabilities import ProbabilitySums, probability_sums

__all__: list[str] = []

MAX_GROUPS = 100
_MOST_BYTES = 2**30  # of the sums of probabilities of all groups
_MOST_CELLS = 2**27  # of the tables of all groups

OnProgress = Callable[[int, int | None], None]


@dataclass
class Counted:
    """The counts, sums and rows that are kept from files.

    Attributes:
        question: the selection of columns and rows.
        positive: the positive class, if there is one, against the rest.
        prob_classes: the classes of the columns of probabilities.
        labels: the classes, in the order of their first appearance.
        cells: frames with the combinations of labels, group and cluster: the `number` of rows, the
            `mass` (sum of weights, if any), and whether the rows are `counted` or ignored.
        sums: sums of probabilities, by group.
        rows: the rows that are kept, with `true id`.
        num_rows: the number of rows of all files.
        is_held: whether all rows are kept, to be joined with other files.
        part: the name of the current file, if there are several.
        mistakes: the rows to list.
        names_of_rows: the columns that identify a row, by their roles.
    """

    question: Selection
    positive: str | None = None
    prob_classes: list[str] = field(default_factory=list)
    labels: dict[str, None] = field(default_factory=dict)
    cells: list[pl.DataFrame] = field(default_factory=list)
    sums: dict[str | None, ProbabilitySums] = field(default_factory=dict)
    rows: list[pl.DataFrame] = field(default_factory=list)
    num_rows: int = 0
    is_held: bool = False
    part: str | None = None
    mistakes: Mistakes | None = None
    names_of_rows: Mapping[str, str] = field(default_factory=dict)

    @property
    def keys(self) -> list[str]:
        """List the columns that distinguish cells."""
        columns = self.question.columns
        more = {"group": columns.group, "cluster": columns.cluster}
        return [*LABELS, *(key for key, name in more.items() if name is not None)]

    def classes(self) -> Classes:
        """Return the classes of the report."""
        if self.positive is None:
            return all_classes(self.labels)
        return one_against_rest(self.labels, self.positive)

    def groups(self) -> list[str]:
        """List the groups, sorted."""
        names = self.selected()["group"].unique()
        k = len(self.classes().names)
        if len(names) * k**2 > _MOST_CELLS:
            raise InputError(
                f"{len(names)} groups are too many for tables of {k} classes: all have more than"
                f" {_MOST_CELLS:,} cells"
            )
        return all_classes(names).names

    def table(self, classes: Classes, group: str | None = None) -> np.ndarray:
        """Return counts `(K, K)`, or `(C, K, K)` with clusters; integers if the weights are
        integers.
        """
        cells, k = self.selected(group), len(classes.names)
        index = [classes.ids_of(cells[role]) for role in LABELS]
        shape: tuple[int, ...] = (k, k)
        if "cluster" in self.keys:
            numbers = cells["cluster"].rank("dense").to_numpy().astype(np.int64) - 1
            number = int(numbers.max(initial=-1)) + 1
            with refusals("--cluster"):
                check_size_of_tables(number, k * k, "Merge clusters or classes.")
            index, shape = [numbers, *index], (number, *shape)
        amounts = cells["mass" if "mass" in cells.columns else "number"].to_numpy()
        whole = bool((amounts == np.round(amounts)).all()) and float(amounts.sum()) < 2**53
        table = np.zeros(shape, np.int64 if whole else float)
        np.add.at(table, tuple(index), amounts.astype(table.dtype))
        return table

    def rows_of(self, group: str | None = None) -> pl.DataFrame:
        """Return the rows that were kept."""
        return self._of(pl.concat(self.rows), group)

    def sums_of(self, group: str | None = None) -> ProbabilitySums | None:
        """Return the sums of probabilities."""
        found = [x for name, x in self.sums.items() if group in (None, name)]
        if not found:
            return None
        return ProbabilitySums(*(np.sum(x, axis=0) for x in zip(*found, strict=True)))

    def ignored(self, group: str | None = None) -> int:
        """Return the number of ignored rows."""
        return int(self.selected(group, is_counted=False)["number"].sum())

    def selected(self, group: str | None = None, *, is_counted: bool = True) -> pl.DataFrame:
        """Return the cells of rows that count, or of ignored rows."""
        return self._of(pl.concat(self.cells), group).filter(pl.col(COUNTED) == is_counted)

    @staticmethod
    def _of(frame: pl.DataFrame, group: str | None) -> pl.DataFrame:
        return frame if group is None else frame.filter(pl.col("group") == group)

    def add_cells(self, file: Predictions, cells: pl.DataFrame) -> None:
        """Check the cells of a batch of rows, and add them."""
        self.num_rows += int(cells["number"].sum())
        file.learn_labels(self.labels, cells)
        cells = cells.with_columns(~file.is_ignored(cells.columns).alias(COUNTED))
        _check_cells(file, cells.filter(COUNTED))
        self.cells.append(cells.select(*self.keys, COUNTED, "^(number|mass)$"))
        if sum(map(len, self.cells[1:])) > len(self.cells[0]):
            self.cells = [pl.concat(self.cells).group_by(*self.keys, COUNTED).agg(pl.all().sum())]

    def add_rows(self, file: Predictions, rows: pl.DataFrame) -> None:
        """Add a batch of rows with their probabilities and scores."""
        if self.is_held:
            self.num_rows += len(rows)
            file.learn_labels(self.labels, rows)
            file.check_clusters(rows)
            self._hold(rows)
            return
        self.add_cells(file, cells_of(rows.lazy(), self.keys).collect())
        columns, kept = self.question.columns, rows.filter(COUNTED)
        if self.mistakes is not None:
            self._list_mistakes(file, kept, self.mistakes)
        if columns.prob is None and columns.score is None:
            return
        kept = kept.with_columns(pl.Series("true id", file.class_ids(kept["true"])))
        if "weight" in kept.columns:
            kept = kept.with_columns(pl.col("weight").cast(pl.Float64, strict=False))
        if columns.prob is not None:
            self._add_sums(kept)
        if columns.score is not None or (columns.prob is not None and columns.cluster is not None):
            self._hold(kept.drop(ROW, COUNTED, *LABELS, *file.names_of_rows))

    def _list_mistakes(self, file: Predictions, rows: pl.DataFrame, mistakes: Mistakes) -> None:
        if "prob" in rows.columns:
            prob = rows["prob"].to_numpy()[np.arange(len(rows)), file.class_ids(rows["pred"])]
            rows = rows.with_columns(pl.Series(CONFIDENCE, prob))
        if self.positive is not None:
            rest = pl.lit(rest_of(self.positive))
            labels = (pl.col(role) for role in LABELS)
            rows = rows.with_columns(
                pl.when(x == self.positive).then(x).otherwise(rest) for x in labels
            )
        if self.part is not None:
            rows = rows.with_columns(pl.lit(self.part).alias(FILE))
        mistakes.add(rows, self.names_of_rows)

    def _hold(self, rows: pl.DataFrame) -> None:
        self.rows.append(rows)
        if is_too_much(self.rows):
            raise InputError(
                "too many rows: scores, probabilities of clusters, and paired predictions are held"
                f" in memory, at most {MOST_HELD // 2**20} MB"
            )

    def _add_sums(self, rows: pl.DataFrame) -> None:
        parts = (
            rows.partition_by("group", as_dict=True) if "group" in self.keys else {(None,): rows}
        )
        for (group,), part in parts.items():
            weights = part["weight"].to_numpy() if "weight" in part.columns else None
            ids, prob = part["true id"].to_numpy(), part["prob"].to_numpy()
            self.sums[group] = probability_sums(ids, prob, weights, self.sums.get(group))
        held = sum(array.nbytes for sums in self.sums.values() for array in sums)
        if len(self.sums) > 1 and held > _MOST_BYTES:
            raise InputError(
                f"--prob with {len(self.prob_classes)} classes and {len(self.sums)} or more groups"
                " needs more than 1 GiB of memory: leave out --group or --prob"
            )


def count_predictions(
    paths: Sequence[Path], question: Selection, on_progress: OnProgress | None = None
) -> Counted:
    """Count the predictions in one file, or in all of its parts."""
    mistakes = Mistakes(question.num_examples) if question.num_examples else None
    counted = _read(Counted(question, mistakes=mistakes), paths, on_progress)
    with named(paths[0] if len(paths) == 1 else paths[0].parent):
        _check_counted(counted)
    return counted


def hold_predictions(path: Path, question: Selection) -> Counted:
    """Keep all rows of a file, or of its parts."""
    held = _read(Counted(question, is_held=True), parts_of(path))
    if not held.num_rows:
        raise InputError(f"{shown(path)}: the file has no rows")
    return held


def _read(
    counted: Counted, paths: Sequence[Path], on_progress: OnProgress | None = None
) -> Counted:
    for path in paths:
        with named(path), opened(path, counted.question.separator) as table:
            file = Predictions(table, counted.question)
            if counted.num_rows and file.prob_classes != counted.prob_classes:
                raise InputError(
                    "its columns of probabilities differ from the columns in the previous files"
                )
            counted.positive, counted.prob_classes = file.positive, file.prob_classes
            counted.names_of_rows = file.names_of_rows
            counted.labels |= dict.fromkeys(file.prob_classes)
            before = counted.num_rows
            counted.part = shown(path.name) if len(paths) > 1 else None
            for _ in _added(counted, file):
                if on_progress is not None:
                    on_progress(counted.num_rows - before, file.num_rows)
    return counted


def _added(counted: Counted, file: Predictions) -> Iterator[None]:
    """Read a file in pieces, and add them."""
    yield
    if file.numbers or counted.is_held or counted.mistakes is not None:
        for rows in file.batches():
            counted.add_rows(file, rows)
            yield
    else:
        for cells in file.cells():
            counted.add_cells(file, cells)
            yield


def _check_cells(file: Predictions, cells: pl.DataFrame) -> None:
    """Raise for invalid weights, missing cluster ids and too many groups."""
    if "bad row" in cells.columns:
        bad = cells.filter(pl.col("bad row").is_not_null()).sort("bad row")
        if len(bad):
            file.refuse(bad["bad row"][0], "weight", bad["bad weight"][0], "expected a number >= 0")
    file.check_clusters(cells)
    if "group" in cells.columns and cells["group"].n_unique() > MAX_GROUPS:
        name = file.labels["group"].name
        raise InputError(
            f"column {name!r} has more than {MAX_GROUPS} values: is it a column of groups?"
        )


def _check_counted(counted: Counted) -> None:
    if counted.num_rows == 0:
        raise InputError("the file has no rows")
    if counted.num_rows == counted.ignored():
        raise InputError("all rows are ignored")
    counted.classes()  # including the positive class
    if len(counted.labels) < 2:
        raise InputError(
            f"a report needs at least two classes, the file has {listed(list(counted.labels))}"
        )
    cells = counted.selected()
    if "mass" in cells.columns:
        cells = cells.filter(pl.col("mass") > 0)
    if len(cells) and counted.positive is None:
        check_kinds(*(cells[role].unique() for role in LABELS))
