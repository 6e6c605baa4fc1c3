"""Read files of predictions once, and count them.

A file may be larger than memory, because only counts and sums are kept of each batch of rows: how
often each combination of labels occurs, the first row of the combination for error messages, and
sums of probabilities. Scores are kept row by row, up to a limit. If there are clusters,
probabilities are also kept row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from jaxmetrics.cli._classes import (
    check_kinds,
    class_ids,
    one_against_rest,
    rest_of,
    sorted_classes,
)
from jaxmetrics.cli._errors import InputError, listed, named, refusals, shown
from jaxmetrics.cli._mistakes import CONFIDENCE, FILE, Mistakes
from jaxmetrics.cli._rows import COUNTED, LABELS, Predictions, Selection, cells_of
from jaxmetrics.cli._sources import opened, parts_of
from jaxmetrics.cli._tables import ROW, check_held
from jaxmetrics.clusters import check_size_of_tables
from jaxmetrics.reports.probabilities import ProbabilitySums, probability_sums

__all__: list[str] = []

MAX_GROUPS = 100
_MOST_BYTES = 2**30  # size of the sums of probabilities of all groups
_MOST_CELLS = 2**27  # cells in the tables of all groups

OnProgress = Callable[[int, int | None], None]


def _ignore(done: int, total: int | None) -> None:
    """Show no progress."""


@dataclass
class Counted:
    """The counts, sums and rows that are kept from files.

    Attributes:
        question: the selection of columns and rows.
        is_held: whether all rows are kept, to be joined with other files.
        mistakes: the misclassified rows to list, or None.
        positive: the positive class, or None if no class is given as positive.
        prob_classes: the classes of the columns of probabilities.
        labels: the classes, in the order of their first appearance.
        cells: frames with one row per combination of labels, group and cluster: the `number` of
            rows, the `mass` (sum of weights, if there are weights), and whether the rows are
            `counted` or ignored.
        sums: sums of probabilities, by group.
        rows: the rows that are kept one by one, with the class id `true id`.
        num_rows: the number of rows of all files.
    """

    question: Selection
    is_held: bool = False
    mistakes: Mistakes | None = None
    positive: str | None = None
    prob_classes: list[str] = field(default_factory=list)
    labels: dict[str, None] = field(default_factory=dict)
    cells: list[pl.DataFrame] = field(default_factory=list)
    sums: dict[str | None, ProbabilitySums] = field(default_factory=dict)
    rows: list[pl.DataFrame] = field(default_factory=list)
    num_rows: int = 0

    @property
    def keys(self) -> list[str]:
        """List the columns that distinguish cells."""
        more = (role for role in ("group", "cluster") if getattr(self.question, role) is not None)
        return [*LABELS, *more]

    @property
    def classes(self) -> list[str]:
        """The classes of the report."""
        if self.positive is None:
            return sorted_classes(self.labels)
        return one_against_rest(self.labels, self.positive)

    def groups(self) -> list[str]:
        """List the groups, sorted."""
        names = self.selected()["group"].unique()
        k = len(self.classes)
        if len(names) * k**2 > _MOST_CELLS:
            raise InputError(
                f"{len(names)} groups with {k} classes are too many: the confusion matrices of all"
                f" groups may have at most {_MOST_CELLS:,} cells together. Use fewer groups or"
                " fewer classes."
            )
        return sorted_classes(names)

    def of_group(self, name: str) -> Counted:
        """Return the cells, sums and rows of one group."""
        cells, rows = (
            [frame.filter(pl.col("group") == name) for frame in frames]
            for frames in (self.cells, self.rows)
        )
        found = replace(self, cells=cells, rows=rows, sums={})
        if name in self.sums:
            found.sums[name] = self.sums[name]
        return found

    def table(self) -> np.ndarray:
        """Return counts `(K, K)`, or `(C, K, K)` if there are C clusters. The counts are integers
        if the weights are integers.
        """
        cells, classes = self.selected(), self.classes
        k = len(classes)
        index = [class_ids(cells[role], classes) for role in LABELS]
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

    def selected(self, *, is_counted: bool = True) -> pl.DataFrame:
        """Return the cells of the rows that are not ignored, or of the ignored rows."""
        return pl.concat(self.cells).filter(pl.col(COUNTED) == is_counted)

    def sums_of_all(self) -> ProbabilitySums | None:
        """Return the sums of probabilities of all groups."""
        found = list(self.sums.values())
        if not found:
            return None
        return ProbabilitySums(*(np.sum(x, axis=0) for x in zip(*found, strict=True)))

    def ignored(self) -> int:
        """Return the number of ignored rows."""
        return int(self.selected(is_counted=False)["number"].sum())

    def read(self, paths: Sequence[Path], on_progress: OnProgress = _ignore) -> Counted:
        """Read files, and add their counts, sums and rows."""
        for path in paths:
            with opened(path, self.question.separator) as table:
                file = Predictions(table, self.question, self.labels)
                if self.num_rows and file.prob_classes != self.prob_classes:
                    raise InputError(
                        "the columns of probabilities in this file differ from the columns of"
                        " probabilities in the previous files. Give the columns the same names in"
                        " all files."
                    )
                self.positive, self.prob_classes = file.positive, file.prob_classes
                before, part = self.num_rows, shown(path.name) if len(paths) > 1 else None
                on_progress(0, table.num_rows)
                by_rows = file.numbers or self.is_held or self.mistakes is not None
                for found in file.batches() if by_rows else file.cells():
                    if by_rows:
                        self._add_rows(file, found, part)
                    else:
                        self._add_cells(file, found)
                    on_progress(self.num_rows - before, table.num_rows)
        return self

    def _add_cells(self, file: Predictions, cells: pl.DataFrame) -> None:
        """Add the cells of a batch of rows."""
        self.num_rows += int(cells["number"].sum())
        if "group" in self.keys and cells.filter(COUNTED)["group"].n_unique() > MAX_GROUPS:
            name = file.labels["group"].name
            raise InputError(
                f"the column {name!r} has more than {MAX_GROUPS} different values, which is too"
                " many for a column of groups. Check the name that --group gives."
            )
        self.cells.append(cells.select(*self.keys, COUNTED, "^(number|mass)$"))
        if sum(map(len, self.cells[1:])) > len(self.cells[0]):
            self.cells = [pl.concat(self.cells).group_by(*self.keys, COUNTED).agg(pl.all().sum())]

    def _add_rows(self, file: Predictions, rows: pl.DataFrame, part: str | None) -> None:
        """Add a batch of rows with their probabilities and scores."""
        if self.is_held:
            self.num_rows += len(rows)
            self._hold(rows)
            return
        self._add_cells(file, cells_of(rows.lazy(), [*self.keys, COUNTED]).collect())
        question, kept = self.question, rows.filter(COUNTED)
        if self.mistakes is not None:
            self.mistakes.add(_with_confidence(file, kept, part), question.names_of_rows)
        if not question.has_scores:
            return
        kept = kept.with_columns(pl.Series("true id", class_ids(kept["true"], file.judged_classes)))
        if question.prob is not None:
            self._add_sums(kept)
        if question.score is not None or question.cluster is not None:
            self._hold(kept.drop(ROW, COUNTED, *LABELS, *question.names_of_rows))

    def _hold(self, rows: pl.DataFrame) -> None:
        self.rows.append(rows)
        check_held(self.rows)

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
                f"--prob with {len(self.prob_classes)} classes and at least {len(self.sums)}"
                " groups needs more than 1 GiB of memory. Leave out --group or --prob."
            )


def _with_confidence(file: Predictions, rows: pl.DataFrame, part: str | None) -> pl.DataFrame:
    """Add the probability of the predicted class and the name of the file; if there is a positive
    class, replace all other classes by the name of the rest.
    """
    if "prob" in rows.columns:
        ids = class_ids(rows["pred"], file.judged_classes)
        prob = rows["prob"].to_numpy()[np.arange(len(rows)), ids]
        rows = rows.with_columns(pl.Series(CONFIDENCE, prob))
    if file.positive is not None:
        kept = {file.positive: file.positive}
        labels = pl.col(LABELS).replace_strict(kept, default=rest_of(file.positive))
        rows = rows.with_columns(labels)
    return rows if part is None else rows.with_columns(pl.lit(part).alias(FILE))


def count_predictions(
    paths: Sequence[Path], question: Selection, on_progress: OnProgress = _ignore
) -> Counted:
    """Count the predictions in the files."""
    mistakes = Mistakes(question.examples) if question.examples else None
    counted = Counted(question, mistakes=mistakes).read(paths, on_progress)
    with named(paths[0] if len(paths) == 1 else paths[0].parent):
        _check_counted(counted)
    return counted


def hold_predictions(path: Path, question: Selection) -> Counted:
    """Keep all rows of a file, or of the files in a folder."""
    held = Counted(question, is_held=True).read(parts_of(path))
    if not held.num_rows:
        raise InputError(f"{shown(path)}: the file has no rows")
    return held


def _check_counted(counted: Counted) -> None:
    if counted.num_rows == 0:
        raise InputError("the file has no rows")
    if counted.num_rows == counted.ignored():
        raise InputError("all rows are ignored, so there is nothing to count")
    if not counted.classes or len(counted.labels) < 2:
        raise InputError(
            "a report needs at least two classes, but the file contains"
            f" {listed([*counted.labels])}."
        )
    cells = counted.selected()
    if "mass" in cells.columns:
        cells = cells.filter(pl.col("mass") > 0)
    if len(cells) and counted.positive is None:
        check_kinds(*(cells[role].unique() for role in LABELS))
