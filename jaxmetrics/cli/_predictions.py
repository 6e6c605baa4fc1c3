"""Read files of predictions: check the rows, and count or keep them.

If only labels, weights, groups and clusters are needed, equal rows are counted, so that a file may
be larger than memory. Otherwise all rows are kept in memory, up to a limit.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from jaxmetrics._arguments import labels as _labels
from jaxmetrics._arguments.single import IGNORED
from jaxmetrics._places.user_warnings import warn
from jaxmetrics.cli._classes import (
    check_classes,
    one_against_rest,
    refusal_of,
    rest_of,
    sorted_classes,
)
from jaxmetrics.cli._columns import COUNTED, LABELS, Columns
from jaxmetrics.cli._errors import (
    InputError,
    listed,
    named,
    reading,
    refusals,
    shortened,
    shown,
)
from jaxmetrics.cli._items import REPEATED_IN_SOME, clusters_of, usual_items
from jaxmetrics.cli._options import with_options
from jaxmetrics.cli._reader import MAX_CLASSES, no_rows, opened
from jaxmetrics.cli._text_files import ROW, check_size
from jaxmetrics.clusters import NO_GROUP, check_size_of_tables
from jaxmetrics.counts import confusion_matrix
from jaxmetrics.reports.omissions import note_on_classes
from jaxmetrics.reports.probabilities import confidence_of
from jaxmetrics.reports.singles import whole
from jaxmetrics.reports.values import number

FILE = "file"
MAX_GROUPS = 100
_MOST_CELLS = 2**27  # cells in the tables of all groups
_MOST_BYTES = 2**30  # size of the score histograms of all groups
_BYTES_OF_CLASS = 2**16  # size of the score histograms of one class
_OTHER = "(other)"  # the label of all predictions that are no true class

OnProgress = Callable[[int, int | None], None]


@dataclass
class Predictions:
    """The rows of files, or the number of equal rows.

    Attributes:
        options: the parsed options, which name the columns and the rows to leave out.
        is_held: whether all rows are kept. Otherwise they are counted.
        labels: the classes, in the order of their first appearance, with their numbers from 0.
        positive: the positive class, or None if no class is given as positive.
        prob_classes: the classes of the columns of probabilities.
        classes: the classes of the report.
        axis_names: the classes, and after them the labels of `--invalid`.
        frames: the rows. `true` and `pred` are numbers of `labels`, or -1 for other labels. If rows
            are counted, `number` and, with weights, `weight` are sums over equal rows.
        num_rows: the number of rows of all files.
        cluster: the column of clusters, or None.
        size: the size of the frames in bytes.
    """

    options: Namespace
    is_held: bool = False
    labels: dict[str, int] = field(default_factory=dict)
    positive: str | None = None
    prob_classes: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    frames: list[pl.DataFrame] = field(default_factory=list)
    num_rows: int = 0
    cluster: str | None = None
    size: float = 0.0

    @property
    def axis_names(self) -> list[str]:
        """The classes, and after them the labels of `--invalid`."""
        return [*self.classes, *self.options.invalid]

    @property
    def rows(self) -> pl.DataFrame:
        """The rows of all files."""
        return pl.concat(self.frames)

    def column(self, role: str) -> np.ndarray | None:
        """Return the values of a column, or None if there is no such column."""
        return self.rows[role].to_numpy() if role in self.rows.columns else None

    def read(self, paths: Sequence[Path], on_progress: OnProgress | None = None) -> Predictions:
        """Read files, and add their rows."""
        for path in paths:
            part = shown(path.name) if len(paths) > 1 else None
            with opened(path, self.options) as table:
                self.cluster = cluster = next(iter(clusters_of(table, self.options)), None)
                if self.frames and (cluster is None) == ("cluster" in self.frames[0].columns):
                    raise InputError(REPEATED_IN_SOME)
                ids = self.options.id or None
                if self.options.id is None and self.options.command != "report" and self.is_held:
                    ids = next(iter(usual_items(table, self.options)), None)
                with reading():
                    columns = Columns(table, with_options(self.options, cluster=cluster, id=ids))
                names = [columns.labels[x].name for x in LABELS if x in columns.labels]
                if spaced := table.spaced(names):
                    warn(
                        f"labels such as {listed(spaced[:3])} have spaces around them, which are"
                        " removed."
                    )
                if self.num_rows and columns.prob_classes != self.prob_classes:
                    raise InputError(
                        "the columns of probabilities in this file differ from the columns of"
                        " probabilities in the previous files. Give the columns the same names in"
                        " all files."
                    )
                self.positive, self.prob_classes = columns.positive, columns.prob_classes
                named_labels = *(self.options.classes or ()), *self.options.invalid
                for name in [*self.prob_classes, *named_labels]:
                    self.labels.setdefault(name, len(self.labels))
                before, asked = self.num_rows, columns.labels | columns.numbers | columns.shown
                is_counted = not self.is_held and not columns.numbers
                for rows in table.batches(asked, self._counted if is_counted else None):
                    if cluster and part and self.options.cluster is None:
                        # Items of other files are other items.
                        cluster_of_part = pl.format("{}/{}", pl.lit(part), "cluster")
                        rows = rows.with_columns(cluster=cluster_of_part)
                    self._add(columns, rows, part)
                    if on_progress is not None:
                        on_progress(self.num_rows - before, table.num_rows)
        return self

    def _add(self, columns: Columns, rows: pl.DataFrame, part: str | None) -> None:
        is_number = "number" in rows.columns
        self.num_rows += int(rows["number"].sum()) if is_number else len(rows)
        texts = {x: columns.table.written(y.name, pl.col(x)) for x, y in columns.labels.items()}
        if "group" in texts:
            texts["group"] = texts["group"].replace("", NO_GROUP)
        roles = [role for role in LABELS if role in texts]  # without computed predictions
        ignore, invalid = self.options.ignore, self.options.invalid
        left_out = {"true": ignore, "pred": [x for x in ignore if x not in invalid]}
        is_ignored = pl.any_horizontal(pl.col(role).is_in(left_out[role]) for role in roles)
        rows = rows.with_columns(**texts).with_columns(~is_ignored.alias(COUNTED))
        if self.options.invalid_others and "pred" in roles:
            rows = self._without_others(rows)
        rows = columns.with_numbers(rows) if columns.numbers else rows
        self._check_labels(columns, rows, roles)
        numbers = pl.col(LABELS).replace_strict(self.labels, default=-1, return_dtype=pl.Int32)
        rows = rows.with_columns(numbers)
        if self.is_held:
            rows = rows if part is None else rows.with_columns(pl.lit(part).alias(FILE))
        else:
            rows = (rows if is_number else self._counted(rows.lazy()).collect()).drop(ROW)
        self.frames.append(rows)
        if not self.is_held and sum(map(len, self.frames[1:])) > len(self.frames[0]):
            keys = pl.exclude("number", "weight", "square")
            self.frames = [self.rows.group_by(keys).agg(pl.all().sum()).select(rows.columns)]
            self.size = 0.0
        self.size += self.frames[-1].estimated_size()
        check_size(self.size)

    def _without_others(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace new predictions that are refused without `--invalid-others`, such as ""."""
        known, classes = {*self.labels, *self.options.ignore}, self.options.classes
        new = [x for x in rows["pred"].unique() if x not in known]
        refused = [x for x in new if refusal_of(x, "pred", classes) is not None]
        self.labels.setdefault(_OTHER, len(self.labels))
        return rows.with_columns(pl.col("pred").replace(refused, _OTHER))

    def _counted(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Count equal rows, and return the first row number of equal rows."""
        keys = pl.exclude(ROW, "weight", "square")
        sums = [pl.len().cast(pl.Int64).alias("number"), pl.col(ROW).min()]
        return rows.group_by(keys).agg(*sums, pl.col("^(weight|square)$").sum())

    def _check_labels(self, columns: Columns, rows: pl.DataFrame, roles: Sequence[str]) -> None:
        """Add new classes in the order of their rows; raise an error for an invalid class or
        cluster.
        """

        known = [*self.labels, *self.options.ignore]
        labels = pl.concat(
            rows.select(pl.col(role).alias("label"), ROW, pl.lit(role).alias("role"))
            for role in roles
        )
        new = labels.filter(~pl.col("label").is_in(known))
        new = new.sort(ROW, maintain_order=True).unique("label", keep="first", maintain_order=True)
        for label, row, role in new.iter_rows():
            reason = refusal_of(label, role, self.options.classes)
            if label in (columns.labels[x].name for x in roles):
                reason = (
                    "the name of a column. If files were joined with their headers, leave out"
                    " the other headers, or give the name of a folder with the files"
                )
            if reason is None and columns.prob_classes and label not in columns.prob_classes:
                reason = "a class for which there is no column of probabilities"
            elif reason is None and len(self.labels) == MAX_CLASSES:
                reason = (
                    f"after {MAX_CLASSES} other values: is it a column of classes? For free-form"
                    " answers, write 1 (right) or 0 (wrong) in a column, and use --value COLUMN"
                )
            if reason is not None:
                name = columns.labels[role].name
                raise InputError(f"row {row}: {name!r} is {shortened(label)!r}, {reason}")
            self.labels[label] = len(self.labels)
        true = rows.filter(pl.col(COUNTED) & pl.col("true").is_in(self.options.invalid))
        if len(true):
            row, label = true.sort(ROW).select(ROW, "true").row(0)
            raise InputError(
                f"row {row}: {columns.labels['true'].name!r} is {label!r}, which --invalid names,"
                " but only predictions can be invalid. Are --true and --pred swapped? If not,"
                f" --ignore={label!r} leaves out such rows, whose true class is unknown"
            )
        if "cluster" in columns.labels:
            missing = rows.filter(pl.col(COUNTED) & (pl.col("cluster") == ""))
            if len(missing):
                row, name = cast(int, missing[ROW].min()), columns.labels["cluster"].name
                raise InputError(
                    f"row {row}: {name!r} is '', which is no cluster; --cluster '' uses no clusters"
                )

    def ids(self, role: str) -> np.ndarray:
        """Return class ids, which are negative for ignored rows; labels of no class have the id 0,
        which is the id of the rest if there is a positive class.
        """
        rows, numbers = self.rows, {name: i for i, name in enumerate(self.axis_names)}
        places = np.array([*(numbers.get(label, 0) for label in self.labels), 0])
        ignored = int(IGNORED) if role == "true" else -1
        return np.where(rows[COUNTED].to_numpy(), places[rows[role].to_numpy()], ignored)

    @property
    def confidence(self) -> np.ndarray | None:
        """The probability of the predicted class, `(n,)`, or None without probabilities."""
        prob, pred = self.column("prob"), self.ids("pred")
        return None if prob is None else confidence_of(prob, pred)

    def listed(
        self, places: Sequence[int], confidence: np.ndarray | None, **ids: np.ndarray
    ) -> list[dict[str, Any]]:
        """List rows with the named classes of each row and the probability of the prediction."""
        values = dict[str, Sequence[Any]]()
        for name, x in ids.items():
            values[name] = [self.axis_names[x[i]] for i in places]
        if confidence is not None:
            values["probability"] = [number(float(confidence[i])) for i in places]
        return listed_rows(self.rows, places, self.options, values)

    @property
    def examples(self) -> pl.DataFrame:
        """The rows that are not ignored and whose weight is not 0."""
        rows = self.rows.filter(COUNTED)
        return rows.filter("is weighted") if "weight" in rows.columns else rows

    def names(self, role: str) -> set[str]:
        """Return the labels that occur in examples."""
        names = [*self.labels]
        return {names[i] for i in self.examples[role].unique() if i >= 0}

    def squares(self) -> np.ndarray | None:
        """Return the sums of the squares of weights, `(K, K)`, if rows are examples with weights
        and there are no clusters.
        """
        return self.counts("square") if "square" in self.rows.columns else None

    def num_weighted(self) -> int | None:
        """Return the number of examples, if they have weights."""
        return None if self.options.weight is None else int(self.examples["number"].sum())

    def counts(self, amount: str = "weight") -> np.ndarray:
        """Return counts `(K, K)`, or `(C, K, K)` if there are C clusters, where K is the number of
        `axis_names`. The counts are integers if the weights are integers.
        """
        rows, k = self.rows, len(self.axis_names)
        settings: Any = {"num_classes": k}
        amounts = rows[amount if amount in rows.columns else "number"].to_numpy()
        if "cluster" in rows.columns:
            cluster = rows.select(pl.when(COUNTED).then("cluster").rank("dense")).to_series()
            numbers = cluster.fill_null(1).to_numpy().astype(np.int64) - 1
            settings |= {"groups": numbers, "num_groups": int(numbers.max(initial=-1)) + 1}
            with refusals("--cluster"):
                check_size_of_tables(settings["num_groups"], k * k, "Merge clusters or classes.")
        labels = self.ids("true"), self.ids("pred")
        return whole(confusion_matrix(*labels, sample_weight=amounts, **settings))

    def ignored(self) -> int:
        """Return the number of ignored rows."""
        rows = self.rows.filter(~pl.col(COUNTED))
        return int(rows["number"].sum()) if "number" in rows.columns else len(rows)

    def groups(self) -> list[str]:
        """List the groups, sorted."""
        names, k = self.examples["group"].unique(), len(self.classes)
        if len(names) > MAX_GROUPS:
            raise InputError(
                f"the column {self.options.group!r} has more than {MAX_GROUPS} different values,"
                " which is too many for a column of groups. Check the name that --group gives."
            )
        if len(names) * k**2 > _MOST_CELLS:
            raise InputError(
                f"{len(names)} groups with {k} classes are too many: the confusion matrices of all"
                f" groups may have at most {_MOST_CELLS:,} cells together. Use fewer groups or"
                " fewer classes."
            )
        if self.options.prob is not None and len(names) * k * _BYTES_OF_CLASS > _MOST_BYTES:
            raise InputError(
                f"--prob with {k} classes and {len(names)} groups needs more than 1 GiB of memory."
                " Leave out --group or --prob."
            )
        return sorted_classes({*names} - {NO_GROUP}) + [NO_GROUP] * (NO_GROUP in names)

    def of_group(self, name: str) -> Predictions:
        """Return the rows of one group."""
        return replace(self, frames=[self.rows.filter(pl.col("group") == name)])


def listed_rows(
    rows: pl.DataFrame,
    places: Sequence[int],
    options: Namespace,
    values: Mapping[str, Sequence[Any]],
) -> list[dict[str, Any]]:
    """List rows as dicts: file, row number and group, the values of each row by name, and the
    columns to show.
    """
    shown = {"id": options.id} if options.id else {}
    shown |= {f"show {i}": name for i, name in enumerate(options.show)}
    listed, rows = [], rows.rename({ROW: "row"})
    for j, i in enumerate(places):
        row = rows.row(i, named=True)
        content = {name: row[name] for name in (FILE, "row", "group") if name in row}
        content |= {name: x[j] for name, x in values.items()}
        columns = {name: row[role] for role, name in shown.items()}
        listed.append({**content, "columns": columns})
    return listed


def count_predictions(
    paths: Sequence[Path], options: Namespace, on_progress: OnProgress | None = None
) -> Predictions:
    """Read the predictions in files for a report on one classifier."""
    is_held = options.prob is not None or options.score is not None or options.examples > 0
    rows = Predictions(options, is_held).read(paths, on_progress)
    with named(paths[0] if len(paths) == 1 else paths[0].parent):
        if not rows.num_rows:
            raise InputError(no_rows(options))
        if rows.num_rows == rows.ignored():
            raise InputError("all rows are ignored, so there is nothing to count")
        true, pred = rows.names("true"), rows.names("pred")
        _labels.warn_of_absent(options.invalid, true, pred)
        others = find_others([rows], true)
        left_out = {*rows.options.invalid, *(others if options.invalid_others else ())}
        labels = [x for x in rows.labels if x not in left_out]
        rows.classes = classes_of(labels, rows.positive, options, others)
        if rows.positive is None and not rows.prob_classes and not options.classes:
            check_classes(true, pred.difference(left_out))
    return rows


def find_others(files: Sequence[Predictions], true: Collection[str]) -> list[str]:
    """Return the predicted labels that are no true class. With `--invalid-others`, the files get a
    single invalid label in their place; otherwise, a warning names them.
    """
    options, labels = files[0].options, files[0].labels
    known = {*true, *options.invalid, *files[0].prob_classes, *(options.classes or ())}
    if (positive := files[0].positive) is not None:
        known |= {positive, rest_of(positive)}
    others = {name: i for name, i in labels.items() if name not in known}
    ids = [*others.values()]
    if options.invalid_others:
        number = labels.setdefault(_OTHER, len(labels))
        for file in files:
            merged = pl.col("pred").replace(ids, number)
            file.frames = [rows.with_columns(merged) for rows in file.frames]
            file.options = with_options(file.options, invalid=[*options.invalid, _OTHER])
        return [*others]
    amount = pl.col("^number$").sum()
    rows = pl.concat(x.examples.select("true", "pred", "^number$") for x in files)
    rows = rows if "number" in rows.columns else rows.with_columns(number=1)
    support = rows.group_by("true").agg(amount)["number"].to_numpy()
    found = rows.filter(pl.col("pred").is_in(ids))
    if found.is_empty() or note_on_classes(support // len(files)):
        return []
    count = int(found["number"].sum())
    names = [name for name, i in others.items() if i in found["pred"]]
    more = f" and {len(names) - 3} more labels" if len(names) > 3 else ""
    warn(
        f"{count:,} {'prediction is' if count == 1 else 'predictions are'} no true class:"
        f" {listed(names[:3])}{more}; --invalid-others counts such predictions as wrong, but not"
        " their labels as classes."
    )
    return names


def classes_of(
    labels: Collection[str],
    positive: str | None,
    options: Namespace,
    unmarked: Collection[str] = (),
) -> list[str]:
    """Return the classes in order; with a positive class, the negative and the positive class. A
    single class is such a positive class.
    """
    if options.classes:
        classes = [x for x in options.classes if x not in options.invalid]
    else:
        classes = _labels.sorted_classes(labels, unmarked)  # warns of marks
    if positive is None:
        return classes if len(classes) > 1 else [rest_of(classes[0]), *classes]
    return one_against_rest(classes, positive, options.pos_label is None)
