"""Files of predictions or counts, read once and counted.

Labels of a table are counted by the streaming engine of polars: of each piece of the file, only
the cells leave it. What else is summed (weights, probabilities), arrays, and the rest of a table
from the piece on in which a cell is wrong, are read in batches of rows, which know the number of
the row that an error names. Only counts are kept: a file may be larger than memory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl

from jaxmetrics.cli import _sources
from jaxmetrics.cli._classes import (
    Refuse,
    check_kinds,
    ids_of,
    is_integer,
    is_number,
    learn_classes,
    sorted_names,
)
from jaxmetrics.cli._sources import (
    LABELS,
    Columns,
    InputError,
    Source,
    TableSource,
    input_errors,
    label_roles,
    listed,
    opened_source,
    prob_columns,
    row_number,
)
from jaxmetrics.reports.labels import are_probabilities
from jaxmetrics.reports.probabilities import ProbabilitySums, probability_sums

__all__: list[str] = []

_LARGEST_PIECE = 2**24  # in which there may be as many cells as rows
_MOST_PROBABILITIES = 2**23  # of a batch, which is held several times over
_JOIN_HINT = "--id names a column to join them by"

OnProgress = Callable[[int, int | None], None]


@dataclass
class Counted:
    """Holds what is kept of a file: counts over the classes seen so far, in their order.

    `counts` has room for more classes: rows and columns beyond those that are known are 0.
    """

    classes: dict[str, int] = field(default_factory=dict)
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    probabilities: ProbabilitySums | None = None
    num_rows: int = 0
    num_ignored: int = 0

    def add(
        self,
        true: np.ndarray,
        pred: np.ndarray,
        *,
        times: np.ndarray | None = None,
        weights: np.ndarray | None = None,
    ) -> None:
        """Add rows by class ids, -1 to leave out: so many `times` each, or once with a weight."""
        times = np.ones(len(true), np.int64) if times is None else times.astype(np.int64)
        in_use = (true >= 0) & (pred >= 0)
        self.num_rows += int(times.sum())
        self.num_ignored += int(times[~in_use].sum())

        k = 1 << max(4, (len(self.classes) - 1).bit_length())
        if k > len(self.counts):
            self.counts = np.pad(self.counts, (0, k - len(self.counts)))
        cells = k * true[in_use].astype(np.int64) + pred[in_use]
        if weights is None:
            np.add.at(self.counts.reshape(-1), cells, times[in_use])
        else:  # first within the batch, which rounds less
            self.counts += np.bincount(cells, weights[in_use], k * k).reshape(k, k)

    def add_probabilities(self, sums: ProbabilitySums) -> None:
        """Add the sums over a batch."""
        if self.probabilities is not None:
            sums = ProbabilitySums(*map(np.add, self.probabilities, sums))
        self.probabilities = sums

    def sorted_classes(self) -> tuple[list[str], np.ndarray, ProbabilitySums | None]:
        """Give class names, counts and sums of probabilities, sorted by number if all names are
        integers, else by name.
        """
        names = sorted_names(self.classes)
        order = np.array([self.classes[name] for name in names])
        probabilities = None if self.probabilities is None else self.probabilities.reordered(order)
        return names, self.counts[np.ix_(order, order)], probabilities


@dataclass(frozen=True)
class Pairs:
    """Holds two files' predictions for the same examples, as ids `(n,)` of the sorted classes."""

    class_names: list[str]
    true: np.ndarray
    pred_a: np.ndarray
    pred_b: np.ndarray
    num_ignored: int


def read_pairs(
    path_a: Path, path_b: Path, columns: Columns, *, ignore: Sequence[str] = ()
) -> Pairs:
    """Read two files of predictions, joined by row or `columns.id`; true classes must agree."""
    paths = path_a, path_b
    a, b = (_read_predictions(path, columns, frozenset(ignore)) for path in paths)
    if columns.id is not None:
        a, b = _joined(a, b, paths)
    elif len(a) != len(b):
        raise InputError(f"{path_a} has {len(a)} rows, {path_b} has {len(b)}; {_JOIN_HINT}")
    _check_same_truth(a, b, paths, columns.id)
    labels = [a["true"], a["pred"], b["pred"]]
    kept = ~np.logical_or.reduce([column.is_in(list(ignore)).to_numpy() for column in labels])
    if not kept.any():
        raise InputError("all rows are ignored" if len(kept) else "the files have no rows")
    true, pred_a, pred_b = (column.filter(pl.Series(kept)) for column in labels)
    names = sorted_names({*true.unique(), *pred_a.unique(), *pred_b.unique()})
    if len(names) < 2:
        raise InputError(f"a comparison needs at least two classes, the files have {listed(names)}")
    for path, pred in zip(paths, (pred_a, pred_b), strict=True):
        with input_errors(path):
            check_kinds(true.unique().to_list(), pred.unique().to_list())
    ids = {name: i for i, name in enumerate(names)}
    id_true, id_a, id_b = (ids_of(column, ids, ()) for column in (true, pred_a, pred_b))
    return Pairs(names, id_true, id_a, id_b, num_ignored=int((~kept).sum()))


def _check_same_truth(
    a: pl.DataFrame, b: pl.DataFrame, paths: tuple[Path, Path], id_column: str | None
) -> None:
    differ = (a["true"] != b["true"]).to_numpy()
    if not differ.any():
        return
    i = int(differ.argmax())
    first = f"row {row_number(a, i)}" if id_column is None else f"{id_column} {a['id'][i]!r}"
    hint = f"; {_JOIN_HINT}" if id_column is None else ""
    raise InputError(
        f"{paths[0]} and {paths[1]} differ in the true class of {differ.sum()} of {len(a)} rows,"
        f" the first at {first}: {a['true'][i]!r} and {b['true'][i]!r}{hint}"
    )


def _read_predictions(path: Path, columns: Columns, ignore: frozenset[str]) -> pl.DataFrame:
    """Read the columns true, pred and id of a file, all strings, every class checked."""
    with input_errors(path):
        source = opened_source(path, columns)
        frame = pl.concat(source.batches()).with_columns(pl.all().cast(pl.String).fill_null(""))
        refuse = _refusal(frame, source)
        classes: dict[str, int] = {}
        for role in LABELS:
            learn_classes(classes, frame[role], role, False, ignore, refuse)
    return frame


def _joined(
    a: pl.DataFrame, b: pl.DataFrame, paths: tuple[Path, Path]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Put both in the order of A's ids."""
    for frame, path in zip((a, b), paths, strict=True):
        repeated = frame["id"].is_duplicated()
        if repeated.any():
            first = frame["id"].filter(repeated)[0]
            raise InputError(
                f"{path}: {repeated.sum()} rows share their id with others, the first {first!r}"
            )
    for frame, other, path, other_path in ((a, b, *paths), (b, a, *paths[::-1])):
        alone = ~frame["id"].is_in(other["id"].to_list())
        if alone.any():
            first = frame["id"].filter(alone)[0]
            raise InputError(
                f"{alone.sum()} of {len(frame)} rows of {path} are not in {other_path}, the first"
                f" is {first!r}"
            )
    return a, a.select("id").join(b, on="id", how="left", maintain_order="left")


def count_predictions(
    path: Path,
    columns: Columns,
    *,
    ignore: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> Counted:
    """Read a file of predictions once and count it."""
    with input_errors(path):
        source = opened_source(path, columns)
        advance, ignored = on_progress or (lambda done, total: None), frozenset(ignore)
        counted = Counted({name: i for i, name in enumerate(source.prob_classes)})
        if "weight" in source.roles:
            counted.counts = counted.counts.astype(float)
        start: int | None = 0
        has_labels_only = not source.prob_names and "weight" not in source.roles
        if isinstance(source, TableSource) and has_labels_only:
            start = _add_cells(counted, source, ignored, advance)
        if start is not None:
            # Rows of many probabilities are wide: fewer of them are held at once.
            width = max(1, len(source.prob_names))
            batch_size = min(_sources.BATCH_SIZE, max(1, _MOST_PROBABILITIES // width))
            for frame in source.batches(start):
                for batch in frame.iter_slices(batch_size):
                    _add_rows(counted, batch, source, ignored)
                    advance(counted.num_rows, source.num_rows)
        _check_counted(counted)
    return counted


def read_counts(path: Path) -> tuple[np.ndarray, list[str] | None]:
    """Read a confusion matrix, and the names of its classes where the file has them."""
    with input_errors(path):
        if path.suffix.lower() == ".npz":
            return _counts_from_npz(path), None
        if path.suffix.lower() == ".parquet":
            frame = pl.read_parquet(path, glob=False)
            return _counts_from_cells(
                frame.columns, [[str(cell) for cell in row] for row in frame.rows()]
            )
        frame = pl.read_csv(path, has_header=False, infer_schema=False, glob=False)
        rows = [[(cell or "").strip() for cell in row] for row in frame.rows()]
        rows = [row for row in rows if any(row)]  # without blank lines
        has_names = len(rows) == len(rows[0]) + 1 or not all(map(is_number, rows[0]))
        header = rows.pop(0) if has_names else None
        return _counts_from_cells(header, rows)


def _refusal(frame: pl.DataFrame, source: Source, num_before: int = 0) -> Refuse:
    """Make a function that raises an error: it names row, column and value of the first bad row."""

    def refuse(bad: np.ndarray, role: str, message: str) -> NoReturn:
        i = int(bad.argmax())
        if role == "prob":
            names = " + ".join(map(repr, source.prob_names))
            value = list(frame.select(prob_columns(source)).row(i))
        else:
            names, value = repr(source.roles[role]), frame[role][i]
        row = row_number(frame, i, num_before)
        raise InputError(f"row {row}: {names} is {value!r}, {message}")

    return refuse


def _refuse_piece(bad: np.ndarray, role: str, message: str) -> NoReturn:
    """Raise: cells do not know their rows, and whoever catches it reads them again, row by row."""
    raise InputError(message)


def _add_cells(
    counted: Counted, source: TableSource, ignore: frozenset[str], on_progress: OnProgress
) -> int | None:
    """Count pieces of a table, the first ones small, where most mistakes show.

    Returns the first row of the piece in which something is wrong, or None.
    """
    start, length = 0, _sources.BATCH_SIZE
    while True:
        on_progress(counted.num_rows, source.num_rows)
        num_rows, cells = source.cells(start, length)
        cells = cells.with_columns(pl.col(LABELS).fill_null(""))
        classes = _classes_with(counted.classes, cells, ignore, in_order=start == 0)
        if classes is None:
            return start
        counted.classes = classes
        true, pred = (ids_of(cells[role], classes, ignore) for role in LABELS)
        counted.add(true, pred, times=cells["len"].to_numpy())
        start += num_rows
        if num_rows < length:
            on_progress(counted.num_rows, source.num_rows)
            return None
        length = min(4 * length, _LARGEST_PIECE)


def _classes_with(
    known: Mapping[str, int], cells: pl.DataFrame, ignore: frozenset[str], *, in_order: bool
) -> dict[str, int] | None:
    """Join the known classes and those of the cells; None if a label among these is no class.

    Cells in the order of the rows give their classes ids in that order.
    """
    # Columns of free text are found out before their values are looked at one by one.
    if max(cells[role].n_unique() for role in LABELS) > _sources.MAX_CLASSES + len(ignore):
        return None
    classes = dict(known)
    try:
        for role in LABELS:
            labels = cells[role] if in_order else cells[role].unique().sort()
            learn_classes(classes, labels, role, False, ignore, _refuse_piece)
    except InputError:
        return None
    return classes


def _add_rows(
    counted: Counted, batch: pl.DataFrame, source: Source, ignore: frozenset[str]
) -> None:
    """Check one batch of rows, and add it."""
    batch = batch.with_columns(pl.col(role).fill_null("") for role in label_roles(batch))
    refuse = _refusal(batch, source, counted.num_rows)
    ids = _checked_ids(counted.classes, batch, source, ignore, refuse)
    in_use = np.logical_and.reduce([x >= 0 for x in ids.values()])
    weights = _checked_weights(batch, in_use, refuse)
    probs = _checked_probabilities(batch, source, in_use, refuse)
    if probs is not None and "pred" not in ids:
        ids["pred"] = np.nan_to_num(probs).argmax(1)
    true, pred = (np.where(in_use, ids[role], -1) for role in LABELS)
    counted.add(true, pred, weights=weights)
    if probs is not None:
        counted.add_probabilities(probability_sums(true, probs, weights))


def _checked_ids(
    classes: dict[str, int],
    batch: pl.DataFrame,
    source: Source,
    ignore: frozenset[str],
    refuse: Refuse,
) -> dict[str, np.ndarray]:
    """Give class ids by role, -1 for what is to be ignored; new classes are added to `classes`."""
    is_closed = bool(source.prob_names)  # the columns of probabilities say which classes there are
    ids = {}
    for role in label_roles(batch):
        learn_classes(classes, batch[role], role, is_closed, ignore, refuse)
        ids[role] = ids_of(batch[role], classes, ignore)
    return ids


def _checked_weights(batch: pl.DataFrame, in_use: np.ndarray, refuse: Refuse) -> np.ndarray | None:
    """Read weights `(n,)`, 0 for rows out of use, whose weights may be anything."""
    if "weight" not in batch.columns:
        return None
    weights = _numbers(batch, ["weight"])[:, 0]
    bad = in_use & ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        refuse(bad, "weight", "expected a number >= 0")
    return np.where(in_use, weights, 0)


def _checked_probabilities(
    batch: pl.DataFrame, source: Source, in_use: np.ndarray, refuse: Refuse
) -> np.ndarray | None:
    """Read probabilities `(n, K)`; those of rows out of use may be anything."""
    if not source.prob_names:
        return None
    probs = _numbers(batch, prob_columns(source))
    bad = in_use & ~are_probabilities(probs)
    if bad.any():
        refuse(bad, "prob", "expected probabilities that sum to 1")
    return probs


def _numbers(batch: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Convert the columns to floats `(n, len(columns))`, NaN for what is no number."""
    return batch.select(pl.col(columns).cast(pl.Float64, strict=False)).fill_null(np.nan).to_numpy()


def _check_counted(counted: Counted) -> None:
    if counted.num_rows == 0:
        raise InputError("the file has no rows")
    if counted.num_rows == counted.num_ignored:
        raise InputError("all rows are ignored")
    if len(counted.classes) < 2:
        raise InputError(
            f"a report needs at least two classes, the file has {listed(list(counted.classes))}"
        )
    true, pred = (
        [name for name, i in counted.classes.items() if times[i] > 0]
        for times in (counted.counts.sum(1), counted.counts.sum(0))
    )
    check_kinds(true, pred)


def _counts_from_npz(path: Path) -> np.ndarray:
    with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as arrays:
        if "counts" not in arrays and len(arrays.files) != 1:
            raise InputError(f"no array 'counts'; the file has {listed(arrays.files)}")
        return arrays["counts" if "counts" in arrays else arrays.files[0]]


def _counts_from_cells(
    header: Sequence[str] | None, rows: Sequence[Sequence[str]]
) -> tuple[np.ndarray, list[str] | None]:
    """Convert text to numbers; under a header with one column more than there are rows, the first
    column repeats the names.
    """
    names = None if header is None else list(header)
    if names is not None and len(names) == len(rows) + 1:
        row_names, rows, names = [row[0] for row in rows], [row[1:] for row in rows], names[1:]
        if row_names != names:
            raise InputError(
                f"rows and columns name different classes: {listed(row_names)} and {listed(names)}"
            )
    for i, row in enumerate(rows):
        for cell in row:
            if not is_number(cell):
                raise InputError(f"row {i + 1}: {cell!r} is not a number")
    integers = all(is_integer(cell) and abs(int(cell)) < 2**63 for row in rows for cell in row)
    number = int if integers else float
    return np.array([[number(cell) for cell in row] for row in rows]), names
