"""Files of predictions or counts: CSV and Parquet by polars, NPZ by NumPy.

Labels of a table are counted by the streaming engine of polars: of each piece of the file, only
the cells leave it. What else is summed (weights, probabilities), arrays, and the rest of a table
from the piece on in which a cell is wrong, are read in batches of rows, which know the number of
the row that an error names. A batch is a polars frame with the columns `true` and `pred` (class
names as strings), `weight` and, for each class with probabilities, `prob 0`, `prob 1`, ...; all but
`true` only where the file has them and they are asked for. Only counts are kept: a file may be
larger than memory.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn, Protocol

import numpy as np
import polars as pl

from jaxmetrics.cli import PRED, TRUE
from jaxmetrics.reports.labels import are_probabilities
from jaxmetrics.reports.probabilities import ProbabilitySums, probability_sums

__all__: list[str] = []

BATCH_SIZE = 2**18
MAX_CLASSES = 4096
_LARGEST_PIECE = 2**24  # in which there may be as many cells as rows
_MOST_PROBABILITIES = 2**23  # of a batch, which is held several times over
EXTENSIONS = (".csv", ".parquet", ".npz")

_ROW = "number of the row"  # a column of frames from files whose blank lines are left out

_LABELS = ("true", "pred")  # roles whose columns hold classes
_JOIN_HINT = "--id names a column to join them by"

OnProgress = Callable[[int, int | None], None]
# Called with which rows are bad, a role and what is wrong.
Refuse = Callable[[np.ndarray, str, str], NoReturn]


class InputError(Exception):
    """Something is wrong with what the user gave; the message is one line that says what."""


@dataclass(frozen=True)
class Columns:
    """Where to look: names of columns or arrays, and the prefix (NPZ: the array) of the
    probabilities.

    `pred` None means `y_pred`, or the most probable class where the file has only probabilities.
    """

    true: str = TRUE
    pred: str | None = None
    weight: str | None = None
    prob: str | None = None
    id: str | None = None

    def roles(self, found: Sequence[str]) -> dict[str, str]:
        """The column of each role but `prob`, all of them among those `found`."""
        pred = self.pred or (PRED if self.prob is None or PRED in found else None)
        named = ("true", self.true), ("pred", pred), ("weight", self.weight), ("id", self.id)
        roles = {role: name for role, name in named if name}
        for name in roles.values():
            if name not in found:
                raise InputError(f"no column {name!r}; the file has {_listed(found)}")
            if f"{name}_duplicated_0" in found:  # what polars makes of a second one
                raise InputError(f"the file has two columns {name!r}")
        if len(set(roles.values())) < len(roles):
            given = ", ".join(f"{role} = {name!r}" for role, name in roles.items())
            raise InputError(f"one column has two roles: {given}")
        return roles


@dataclass
class Counted:
    """What is kept of a file: counts over the classes seen so far, in the order of their first
    appearance.

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
        """Add rows by their class ids, -1 to leave out: how many `times` each occurs, or once with
        its weight.
        """
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
        names = _sorted(self.classes)
        order = np.array([self.classes[name] for name in names])
        probabilities = None if self.probabilities is None else self.probabilities.reordered(order)
        return names, self.counts[np.ix_(order, order)], probabilities


@dataclass(frozen=True)
class Pairs:
    """Two files' predictions for the same examples: class ids `(n,)`, which name the sorted
    classes.
    """

    class_names: list[str]
    true: np.ndarray
    pred_a: np.ndarray
    pred_b: np.ndarray
    num_ignored: int


def read_pairs(
    path_a: Path, path_b: Path, columns: Columns, *, ignore: Sequence[str] = ()
) -> Pairs:
    """Read two files of predictions, row by row or joined by `columns.id`; their true classes must
    agree.
    """
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
    names = _sorted({*true.unique(), *pred_a.unique(), *pred_b.unique()})
    if len(names) < 2:
        raise InputError(
            f"a comparison needs at least two classes, the files have {_listed(names)}"
        )
    for path, pred in zip(paths, (pred_a, pred_b), strict=True):
        with _input_errors(path):
            _check_kinds(true.unique().to_list(), pred.unique().to_list())
    ids = {name: i for i, name in enumerate(names)}
    id_true, id_a, id_b = (_ids(column, ids, ()) for column in (true, pred_a, pred_b))
    return Pairs(names, id_true, id_a, id_b, num_ignored=int((~kept).sum()))


def _check_same_truth(
    a: pl.DataFrame, b: pl.DataFrame, paths: tuple[Path, Path], id_column: str | None
) -> None:
    differ = (a["true"] != b["true"]).to_numpy()
    if not differ.any():
        return
    i = int(differ.argmax())
    first = f"row {_row_number(a, i)}" if id_column is None else f"{id_column} {a['id'][i]!r}"
    hint = f"; {_JOIN_HINT}" if id_column is None else ""
    raise InputError(
        f"{paths[0]} and {paths[1]} differ in the true class of {differ.sum()} of {len(a)} rows,"
        f" the first at {first}: {a['true'][i]!r} and {b['true'][i]!r}{hint}"
    )


def _read_predictions(path: Path, columns: Columns, ignore: frozenset[str]) -> pl.DataFrame:
    """The columns true, pred and id of a file, all strings, every class checked."""
    with _input_errors(path):
        source = _source(path, columns)
        frame = pl.concat(source.batches()).with_columns(pl.all().cast(pl.String).fill_null(""))
        refuse = _refusal(frame, source)
        classes: dict[str, int] = {}
        for role in _LABELS:
            _learn_classes(classes, frame[role], role, False, ignore, refuse)
    return frame


def _joined(
    a: pl.DataFrame, b: pl.DataFrame, paths: tuple[Path, Path]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Both in the order of A's ids."""
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


def _sorted(classes: Collection[str]) -> list[str]:
    """By number if all names are integers, else by name."""
    return sorted(classes, key=int if all(map(_is_integer, classes)) else str)


def count_predictions(
    path: Path,
    columns: Columns,
    *,
    ignore: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> Counted:
    """Read a file of predictions once and count it."""
    with _input_errors(path):
        source = _source(path, columns)
        advance, ignored = on_progress or (lambda done, total: None), frozenset(ignore)
        counted = Counted({name: i for i, name in enumerate(source.prob_classes)})
        if "weight" in source.roles:
            counted.counts = counted.counts.astype(float)
        start: int | None = 0
        has_labels_only = not source.prob_names and "weight" not in source.roles
        if isinstance(source, _TableSource) and has_labels_only:
            start = _add_cells(counted, source, ignored, advance)
        if start is not None:
            # Rows of many probabilities are wide: fewer of them are held at once.
            width = max(1, len(source.prob_names))
            batch_size = min(BATCH_SIZE, max(1, _MOST_PROBABILITIES // width))
            for frame in source.batches(start):
                for batch in frame.iter_slices(batch_size):
                    _add_rows(counted, batch, source, ignored)
                    advance(counted.num_rows, source.num_rows)
        _check_counted(counted)
    return counted


def read_counts(path: Path) -> tuple[np.ndarray, list[str] | None]:
    """A confusion matrix, and the names of its classes where the file has them."""
    with _input_errors(path):
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
        has_names = len(rows) == len(rows[0]) + 1 or not all(map(_is_number, rows[0]))
        header = rows.pop(0) if has_names else None
        return _counts_from_cells(header, rows)


@contextmanager
def _input_errors(path: Path) -> Iterator[None]:
    """Turn errors of the block into an InputError that names the file."""
    try:
        if path.suffix.lower() not in EXTENSIONS:
            known = ", ".join(EXTENSIONS)
            raise InputError(f"unknown extension {path.suffix!r}; known are {known}")
        if not path.is_file():
            raise InputError("it is a directory" if path.is_dir() else "no such file")
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (pl.exceptions.PolarsError, OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        hint = "; is it UTF-8?" if "utf-8" in reason else ""
        raise InputError(f"{path}: cannot be read: {reason}{hint}") from error


class _Source(Protocol):
    num_rows: int | None  # None if unknown before the end
    roles: dict[str, str]  # the column of each role
    prob_names: list[str]  # the columns of probabilities
    prob_classes: list[str]  # and the classes they belong to

    def batches(self, start: int = 0) -> Iterator[pl.DataFrame]: ...


def _source(path: Path, columns: Columns) -> _Source:
    is_npz = path.suffix.lower() == ".npz"
    return _NpzSource(path, columns) if is_npz else _TableSource(path, columns)


class _TableSource:
    """CSV or Parquet."""

    def __init__(self, path: Path, columns: Columns) -> None:
        is_csv = path.suffix.lower() == ".csv"
        if is_csv:
            table = pl.scan_csv(path, infer_schema=False, glob=False)
        else:
            table = pl.scan_parquet(path, glob=False)
        schema = table.collect_schema()
        found = schema.names()
        if len(found) == 1 and re.search(r"[;\t|]", found[0]):
            raise InputError(f"columns must be separated by commas; the first line is {found[0]!r}")
        self.roles = columns.roles(found)
        prefix = columns.prob or ""
        free = [name for name in found if name not in self.roles.values()]
        self.prob_names = [name for name in free if prefix and name.startswith(prefix)]
        self.prob_classes = [name.removeprefix(prefix) for name in self.prob_names]
        if prefix and not self.prob_names:
            raise InputError(f"no column begins with {prefix!r}; the file has {_listed(found)}")
        for role in _LABELS:
            if role in self.roles and schema[self.roles[role]].is_float():
                name = self.roles[role]
                raise InputError(
                    f"column {name!r} holds {schema[name]}: classes must be strings or integers"
                )
        self.num_rows = None if is_csv else table.select(pl.len()).collect().item()
        self._path, self._is_csv, self._table = path, is_csv, table
        self._labels: dict[str, None] = {}  # found in the pieces of CSV so far, as they are written

    def batches(self, start: int = 0) -> Iterator[pl.DataFrame]:
        """The rows from `start` on, in order."""
        columns = [pl.col(name).alias(role) for role, name in self.roles.items()]
        columns += [
            pl.col(name).alias(column)
            for name, column in zip(self.prob_names, _prob_columns(self), strict=True)
        ]
        table = self._table.slice(start)
        if self._is_csv:  # leave out blank lines, strip spaces
            blank = pl.all_horizontal(pl.all().exclude(_ROW).is_null())
            table = table.with_row_index(_ROW, start + 1).filter(~blank)
            columns = [pl.col(_ROW), *(column.str.strip_chars() for column in columns)]
        rows = table.select(columns).with_columns(
            pl.col(role).cast(pl.String) for role in _LABELS if role in self.roles
        )
        return rows.collect_batches(chunk_size=BATCH_SIZE, maintain_order=True)

    def cells(self, start: int, length: int) -> tuple[int, pl.DataFrame]:
        """How many rows a piece of the table has, and how often (`len`) each pair of labels occurs.

        Pairs of the first piece are in the order of their first appearance.
        """
        piece, cells = self._table.slice(start, length), self._cells_of_known(start, length)
        if cells is None:
            cells = self._count_pairs(piece, maintain_order=start == 0)
            if self._is_csv:
                for role in _LABELS:
                    self._labels |= dict.fromkeys(cells[role].unique().drop_nulls())
        num_rows = int(cells["len"].sum())
        nothing = pl.col("true").is_null() & pl.col("pred").is_null()
        if self._is_csv and not cells.filter(nothing).is_empty():
            # These are blank lines where the other columns are empty, too.
            blank = pl.all_horizontal(pl.all().is_null()).sum()
            num_blank = piece.select(blank).collect(engine="streaming").item()
            rest = pl.col("len") - pl.when(nothing).then(num_blank).otherwise(0)
            cells = cells.with_columns(rest).filter(pl.col("len") > 0)
        labels = pl.col(_LABELS).cast(pl.String)
        return num_rows, cells.with_columns(labels.str.strip_chars() if self._is_csv else labels)

    def _cells_of_known(self, start: int, length: int) -> pl.DataFrame | None:
        """Of a piece of CSV in which no label is new: to look them up is faster than to hold
        them.
        """
        if not 0 < len(self._labels) <= MAX_CLASSES:
            return None
        kinds = {self.roles[role]: pl.Enum(list(self._labels)) for role in _LABELS}
        table = pl.scan_csv(self._path, infer_schema=False, glob=False, schema_overrides=kinds)
        try:
            return self._count_pairs(table.slice(start, length))
        except pl.exceptions.PolarsError:
            return None

    def _count_pairs(self, piece: pl.LazyFrame, maintain_order: bool = False) -> pl.DataFrame:
        pair = [pl.col(self.roles[role]).alias(role) for role in _LABELS]
        grouped = piece.group_by(pair, maintain_order=maintain_order)
        return grouped.agg(pl.len()).collect(engine="streaming")


class _NpzSource:
    """NPZ: the arrays are read from the archive piece by piece."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            files = [name for name in archive.namelist() if name.endswith(".npy")]
            found = [name.removesuffix(".npy") for name in files]
            if columns.prob is not None and columns.prob not in found:
                raise InputError(f"no array {columns.prob!r}; the file has {_listed(found)}")
            self.roles = columns.roles(found)
            self._arrays = self.roles | ({"prob": columns.prob} if columns.prob else {})
            shapes = {role: self._check(archive, role, name) for role, name in self._arrays.items()}
        lengths = {self._arrays[role]: shape[0] for role, shape in shapes.items()}
        if len(set(lengths.values())) > 1:
            found_lengths = ", ".join(f"{name!r} has {n}" for name, n in lengths.items())
            raise InputError(f"unequal lengths: {found_lengths}")
        self.num_rows: int | None = shapes["true"][0]
        num_classes = shapes["prob"][1] if columns.prob else 0
        self.prob_names = [f"{columns.prob}[:, {i}]" for i in range(num_classes)]
        self.prob_classes = [str(i) for i in range(num_classes)]

    @staticmethod
    def _check(archive: zipfile.ZipFile, role: str, name: str) -> tuple[int, ...]:
        with archive.open(f"{name}.npy") as file:
            shape, _, dtype = _read_header(file, name)
        if len(shape) != (2 if role == "prob" else 1):
            expected = "(n, K)" if role == "prob" else "(n,)"
            raise InputError(f"array {name!r} has shape {shape}, expected {expected}")
        if role in (*_LABELS, "id"):
            kinds, expected = "iubUS", "strings or integers"
        else:
            kinds, expected = "iubf", "real numbers"
        if dtype.kind not in kinds:
            raise InputError(f"array {name!r} holds {dtype}: expected {expected}")
        return shape

    def batches(self, start: int = 0) -> Iterator[pl.DataFrame]:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            readers = {role: _npy_rows(archive, name, stack) for role, name in self._arrays.items()}
            for pieces in zip(*readers.values(), strict=True):
                piece = dict(zip(readers, pieces, strict=True))
                prob = piece.pop("prob", np.empty((0, 0)))
                data = {
                    role: pl.Series(x.astype(str) if x.dtype.kind in "bS" else x)
                    for role, x in piece.items()
                }
                data |= {
                    column: pl.Series(prob[:, i].astype(float))
                    for i, column in enumerate(_prob_columns(self))
                }
                yield _with_text_labels(pl.DataFrame(data))


def _with_text_labels(batch: pl.DataFrame) -> pl.DataFrame:
    return batch.with_columns(pl.col(role).cast(pl.String) for role in _labels_of(batch))


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(file)
    if dtype.hasobject:
        raise InputError(
            f"array {name!r} holds Python objects; save it as integers or fixed-width strings"
        )
    return shape, fortran_order, dtype


def _npy_rows(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> Iterator[np.ndarray]:
    file = stack.enter_context(archive.open(f"{name}.npy"))
    shape, fortran_order, dtype = _read_header(file, name)
    if fortran_order and len(shape) > 1:
        raise InputError(
            f"array {name!r} is stored column by column; save numpy.ascontiguousarray of it"
        )
    row = dtype.itemsize * int(np.prod(shape[1:]))
    for start in range(0, shape[0], BATCH_SIZE):
        size = min(BATCH_SIZE, shape[0] - start)
        yield np.frombuffer(file.read(size * row), dtype).reshape(size, *shape[1:])


def _refusal(frame: pl.DataFrame, source: _Source, num_before: int = 0) -> Refuse:
    """What raises an error that names the row, the column and the value of the first bad row."""

    def refuse(bad: np.ndarray, role: str, message: str) -> NoReturn:
        i = int(bad.argmax())
        if role == "prob":
            names = " + ".join(map(repr, source.prob_names))
            value = list(frame.select(_prob_columns(source)).row(i))
        else:
            names, value = repr(source.roles[role]), frame[role][i]
        row = _row_number(frame, i, num_before)
        raise InputError(f"row {row}: {names} is {value!r}, {message}")

    return refuse


def _refuse_piece(bad: np.ndarray, role: str, message: str) -> NoReturn:
    """Cells do not know their rows: whoever catches this reads the piece again, row by row."""
    raise InputError(message)


def _add_cells(
    counted: Counted, source: _TableSource, ignore: frozenset[str], on_progress: OnProgress
) -> int | None:
    """Count pieces of a table, the first ones small, where most mistakes show.

    Returns the first row of the piece in which something is wrong, or None.
    """
    start, length = 0, BATCH_SIZE
    while True:
        on_progress(counted.num_rows, source.num_rows)
        num_rows, cells = source.cells(start, length)
        cells = cells.with_columns(pl.col(_LABELS).fill_null(""))
        classes = _classes_with(counted.classes, cells, ignore, in_order=start == 0)
        if classes is None:
            return start
        counted.classes = classes
        true, pred = (_ids(cells[role], classes, ignore) for role in _LABELS)
        counted.add(true, pred, times=cells["len"].to_numpy())
        start += num_rows
        if num_rows < length:
            on_progress(counted.num_rows, source.num_rows)
            return None
        length = min(4 * length, _LARGEST_PIECE)


def _classes_with(
    known: Mapping[str, int], cells: pl.DataFrame, ignore: frozenset[str], *, in_order: bool
) -> dict[str, int] | None:
    """The known classes and those of the cells; None if a label among these is no class.

    Cells in the order of the rows give their classes ids in that order.
    """
    # Columns of free text are found out before their values are looked at one by one.
    if max(cells[role].n_unique() for role in _LABELS) > MAX_CLASSES + len(ignore):
        return None
    classes = dict(known)
    try:
        for role in _LABELS:
            labels = cells[role] if in_order else cells[role].unique().sort()
            _learn_classes(classes, labels, role, False, ignore, _refuse_piece)
    except InputError:
        return None
    return classes


def _add_rows(
    counted: Counted, batch: pl.DataFrame, source: _Source, ignore: frozenset[str]
) -> None:
    """Check one batch of rows, and add it."""
    batch = batch.with_columns(pl.col(role).fill_null("") for role in _labels_of(batch))
    refuse = _refusal(batch, source, counted.num_rows)
    ids = _checked_ids(counted.classes, batch, source, ignore, refuse)
    in_use = np.logical_and.reduce([x >= 0 for x in ids.values()])
    weights = _checked_weights(batch, in_use, refuse)
    probs = _checked_probabilities(batch, source, in_use, refuse)
    if probs is not None and "pred" not in ids:
        ids["pred"] = np.nan_to_num(probs).argmax(1)
    true, pred = (np.where(in_use, ids[role], -1) for role in _LABELS)
    counted.add(true, pred, weights=weights)
    if probs is not None:
        counted.add_probabilities(probability_sums(true, probs, weights))


def _labels_of(batch: pl.DataFrame) -> list[str]:
    """The roles of labels that a batch has: without predictions, probabilities decide."""
    return [role for role in _LABELS if role in batch.columns]


def _checked_ids(
    classes: dict[str, int],
    batch: pl.DataFrame,
    source: _Source,
    ignore: frozenset[str],
    refuse: Refuse,
) -> dict[str, np.ndarray]:
    """Class ids of each role, -1 for what is to be ignored; new classes are added to `classes`."""
    is_closed = bool(source.prob_names)  # the columns of probabilities say which classes there are
    ids = {}
    for role in _labels_of(batch):
        _learn_classes(classes, batch[role], role, is_closed, ignore, refuse)
        ids[role] = _ids(batch[role], classes, ignore)
    return ids


def _checked_weights(batch: pl.DataFrame, in_use: np.ndarray, refuse: Refuse) -> np.ndarray | None:
    """Weights `(n,)`, 0 for rows out of use, whose weights may be anything."""
    if "weight" not in batch.columns:
        return None
    weights = _numbers(batch, ["weight"])[:, 0]
    bad = in_use & ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        refuse(bad, "weight", "expected a number >= 0")
    return np.where(in_use, weights, 0)


def _checked_probabilities(
    batch: pl.DataFrame, source: _Source, in_use: np.ndarray, refuse: Refuse
) -> np.ndarray | None:
    """Probabilities `(n, K)`; those of rows out of use may be anything."""
    if not source.prob_names:
        return None
    probs = _numbers(batch, _prob_columns(source))
    bad = in_use & ~are_probabilities(probs)
    if bad.any():
        refuse(bad, "prob", "expected probabilities that sum to 1")
    return probs


def _prob_columns(source: _Source) -> list[str]:
    """The columns of a batch that hold probabilities, in the order of the classes."""
    return [f"prob {i}" for i in range(len(source.prob_names))]


def _ids(labels: pl.Series, classes: Mapping[str, int], ignore: Collection[str]) -> np.ndarray:
    """Of labels that are all known; -1 for those to be ignored."""
    names = list(dict.fromkeys([*classes, *ignore]))
    ids = np.array([-1 if name in ignore else classes[name] for name in names], np.int64)
    return ids[labels.cast(pl.Enum(names)).to_physical().to_numpy()]


def _row_number(frame: pl.DataFrame, i: int, before: int = 0) -> int:
    """Of row i, counted from 1, with the blank lines of the file."""
    return int(frame[_ROW][i]) if _ROW in frame.columns else before + 1 + i


def _learn_classes(
    classes: dict[str, int],
    labels: pl.Series,
    role: str,
    closed: bool,
    ignore: frozenset[str],
    refuse: Refuse,
) -> None:
    """Give an id to each new class name, in the order of appearance; if `closed` there must be no
    new one.
    """
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
        elif len(classes) == MAX_CLASSES:
            message = f"after {MAX_CLASSES} other values: is it a column of classes?"
        if message:
            refuse((labels == label).to_numpy(), role, message)
        classes[label] = len(classes)


def _numbers(batch: pl.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """The columns as floats `(n, len(columns))`, NaN for what is no number."""
    return batch.select(pl.col(columns).cast(pl.Float64, strict=False)).fill_null(np.nan).to_numpy()


def _check_counted(counted: Counted) -> None:
    if counted.num_rows == 0:
        raise InputError("the file has no rows")
    if counted.num_rows == counted.num_ignored:
        raise InputError("all rows are ignored")
    if len(counted.classes) < 2:
        raise InputError(
            f"a report needs at least two classes, the file has {_listed(list(counted.classes))}"
        )
    true, pred = (
        [name for name, i in counted.classes.items() if times[i] > 0]
        for times in (counted.counts.sum(1), counted.counts.sum(0))
    )
    _check_kinds(true, pred)


def _check_kinds(true: Sequence[str], pred: Sequence[str]) -> None:
    kinds = {_kind(true), _kind(pred)}
    if kinds == {"integers", "fractions"} or (len(kinds) > 1 and not set(true) & set(pred)):
        raise InputError(
            f"truth and prediction are not of one kind: {_listed(true)} against {_listed(pred)}"
        )


def _kind(names: Sequence[str]) -> str:
    if all(map(_is_integer, names)):
        return "integers"
    return "fractions" if all(map(_is_number, names)) else "names"


def _counts_from_npz(path: Path) -> np.ndarray:
    with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as arrays:
        if "counts" not in arrays and len(arrays.files) != 1:
            raise InputError(f"no array 'counts'; the file has {_listed(arrays.files)}")
        return arrays["counts" if "counts" in arrays else arrays.files[0]]


def _counts_from_cells(
    header: Sequence[str] | None, rows: Sequence[Sequence[str]]
) -> tuple[np.ndarray, list[str] | None]:
    """Text to numbers; under a header with one column more than there are rows, the first column
    repeats the names.
    """
    names = None if header is None else list(header)
    if names is not None and len(names) == len(rows) + 1:
        row_names, rows, names = [row[0] for row in rows], [row[1:] for row in rows], names[1:]
        if row_names != names:
            raise InputError(
                f"rows and columns name different classes: {_listed(row_names)} and"
                f" {_listed(names)}"
            )
    for i, row in enumerate(rows):
        for cell in row:
            if not _is_number(cell):
                raise InputError(f"row {i + 1}: {cell!r} is not a number")
    integers = all(_is_integer(cell) and abs(int(cell)) < 2**63 for row in rows for cell in row)
    number = int if integers else float
    return np.array([[number(cell) for cell in row] for row in rows]), names


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text, re.ASCII) is not None


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|-?inf|nan", text, re.ASCII) is not None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:12]))
    return (shown or "nothing") + (f" and {len(names) - 12} more" if len(names) > 12 else "")
