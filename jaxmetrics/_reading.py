"""Files of predictions or counts, read in batches: CSV and Parquet by polars, NPZ by NumPy.

Whatever the file, a batch is a polars frame with the columns `y_true` and `y_pred` (class names as strings), `weight` and one
column per probability, the optional ones only where asked for. Only counts are kept, so a file may be larger than memory.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from jaxmetrics.counts import confusion_matrix, soft_confusion_matrix

__all__: list[str] = []

BATCH_SIZE = 2**18
MAX_CLASSES = 4096
EXTENSIONS = (".csv", ".parquet", ".npz")

OnProgress = Callable[[int, int | None], None]


class InputError(Exception):
    """Something is wrong with what the user gave; the message is one line that says what."""


@dataclass(frozen=True)
class Columns:
    """Where to look: names of columns or arrays, and the prefix (NPZ: the array) of the probabilities."""

    true: str = "y_true"
    pred: str = "y_pred"
    weight: str | None = None
    prob: str | None = None


@dataclass
class Counted:
    """What is kept of a file: counts over the classes seen so far, in the order of their first appearance."""

    classes: dict[str, int] = field(default_factory=dict)
    counts: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    soft_counts: np.ndarray | None = None
    num_rows: int = 0
    num_ignored: int = 0

    def in_order(self) -> tuple[list[str], np.ndarray, np.ndarray | None]:
        """Class names, counts and soft counts, sorted by number if all names are integers, else by name."""
        numeric = all(map(_is_integer, self.classes))
        names = sorted(self.classes, key=int if numeric else str)
        order = np.ix_(*[[self.classes[name] for name in names]] * 2)
        return names, self.counts[order], None if self.soft_counts is None else self.soft_counts[order]


def check_file(path: Path) -> None:
    """Raise InputError unless `path` is a file of a known kind."""
    if path.suffix.lower() not in EXTENSIONS:
        raise InputError(f"{path}: unknown extension {path.suffix!r}; known are {', '.join(EXTENSIONS)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")


def count_predictions(
    path: Path, columns: Columns, *, ignore: Sequence[str] = (), on_progress: OnProgress | None = None
) -> Counted:
    """Read a file of predictions once and count it."""
    check_file(path)
    try:
        source = _NpzSource(path, columns) if path.suffix.lower() == ".npz" else _TableSource(path, columns)
        counted = Counted({name: i for i, name in enumerate(source.prob_classes)})
        for frame in source.batches():
            for batch in frame.iter_slices(BATCH_SIZE):
                _add(counted, batch, columns, source.prob_classes, frozenset(ignore))
                if on_progress is not None:
                    on_progress(counted.num_rows, source.num_rows)
    except (pl.exceptions.PolarsError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read: {_first_line(error)}") from error
    _check_counted(counted, columns)
    return counted


def read_counts(path: Path) -> tuple[np.ndarray, list[str] | None]:
    """A confusion matrix, and the names of its classes where the file has them."""
    check_file(path)
    try:
        if path.suffix.lower() == ".npz":
            return _counts_from_npz(path), None
        if path.suffix.lower() == ".csv":
            frame = pl.read_csv(path, has_header=False, infer_schema=False)
            return _counts_from_cells([[cell or "" for cell in row] for row in frame.rows()])
        frame = pl.read_parquet(path)
        return _counts_from_cells([frame.columns, *([str(cell) for cell in row] for row in frame.rows())])
    except (pl.exceptions.PolarsError, OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read: {_first_line(error)}") from error


# Sources: both have prob_classes, num_rows (None if unknown) and batches()


class _TableSource:
    """CSV or Parquet."""

    def __init__(self, path: Path, columns: Columns) -> None:
        is_csv = path.suffix.lower() == ".csv"
        table = pl.scan_csv(path, infer_schema=False) if is_csv else pl.scan_parquet(path)
        schema = table.collect_schema()
        found = schema.names()
        prefix = columns.prob
        prob_columns = [name for name in found if prefix is not None and name.startswith(prefix)]
        self.prob_classes = [name.removeprefix(prefix or "") for name in prob_columns]
        if prefix is not None and not prob_columns:
            raise InputError(f"no column begins with {prefix!r}; the file has {_listed(found)}")
        labels = {columns.true: "y_true"} | ({columns.pred: "y_pred"} if columns.pred in found or not prefix else {})
        for name in [*labels, *([columns.weight] if columns.weight else [])]:
            if name not in found:
                raise InputError(f"no column {name!r}; the file has {_listed(found)}")
        for name in labels:
            if schema[name].is_float():
                raise InputError(f"column {name!r} holds {schema[name]}: classes must be strings or integers")
        self.num_rows = None if is_csv else table.select(pl.len()).collect().item()
        weight = [pl.col(columns.weight).cast(pl.Float64, strict=False).alias("weight")] if columns.weight else []
        self._table = table.select(
            *(pl.col(name).cast(pl.String).alias(alias) for name, alias in labels.items()),
            *weight,
            *(pl.col(name).cast(pl.Float64, strict=False).alias(f"p{i}") for i, name in enumerate(prob_columns)),
        )

    def batches(self) -> Iterator[pl.DataFrame]:
        return self._table.collect_batches(chunk_size=BATCH_SIZE, maintain_order=True)


class _NpzSource:
    """NPZ: the arrays are read from the archive piece by piece."""

    def __init__(self, path: Path, columns: Columns) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            found = [name.removesuffix(".npy") for name in archive.namelist()]
            shapes = {name: _npy_header(archive, name)[0] for name in found}
        names = {columns.true: "y_true"}
        if columns.pred in found or columns.prob is None:
            names[columns.pred] = "y_pred"
        names |= {columns.weight: "weight"} if columns.weight else {}
        names |= {columns.prob: "p"} if columns.prob else {}
        for name, alias in names.items():
            if name not in found:
                raise InputError(f"no array {name!r}; the file has {_listed(found)}")
            if len(shapes[name]) != (2 if alias == "p" else 1):
                raise InputError(f"array {name!r} has shape {shapes[name]}, expected {'(n, K)' if alias == 'p' else '(n,)'}")
        lengths = {name: shapes[name][0] for name in names}
        if len(set(lengths.values())) > 1:
            raise InputError("unequal lengths: " + ", ".join(f"{name!r} has {n}" for name, n in lengths.items()))
        self.num_rows: int | None = lengths[columns.true]
        self.prob_classes = [str(i) for i in range(shapes[columns.prob][1])] if columns.prob else []
        self._names = names

    def batches(self) -> Iterator[pl.DataFrame]:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            readers = {alias: _npy_rows(archive, name, stack) for name, alias in self._names.items()}
            for pieces in zip(*readers.values(), strict=True):
                data: dict[str, pl.Series] = {}
                for alias, piece in zip(readers, pieces, strict=True):
                    if alias == "p":
                        data |= {f"p{i}": pl.Series(piece[:, i].astype(float)) for i in range(piece.shape[1])}
                    elif alias == "weight":
                        data["weight"] = pl.Series(piece.astype(float))
                    else:
                        data[alias] = _as_names(piece, alias)
                yield pl.DataFrame(data)


def _npy_header(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    with archive.open(f"{name}.npy") as file:
        return _read_header(file, name)


def _read_header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(file)
    if dtype.hasobject:
        raise InputError(f"array {name!r} holds Python objects; save it as integers or fixed-width strings")
    return shape, fortran_order, dtype


def _npy_rows(archive: zipfile.ZipFile, name: str, stack: ExitStack) -> Iterator[np.ndarray]:
    file = stack.enter_context(archive.open(f"{name}.npy"))
    shape, fortran_order, dtype = _read_header(file, name)
    if fortran_order and len(shape) > 1:
        raise InputError(f"array {name!r} is stored column by column; save numpy.ascontiguousarray of it")
    row = dtype.itemsize * int(np.prod(shape[1:]))
    for start in range(0, shape[0], BATCH_SIZE):
        size = min(BATCH_SIZE, shape[0] - start)
        yield np.frombuffer(file.read(size * row), dtype).reshape(size, *shape[1:])


def _as_names(labels: np.ndarray, name: str) -> pl.Series:
    if labels.dtype.kind not in "iubUS":
        raise InputError(f"array {name!r} holds {labels.dtype}: classes must be strings or integers")
    return pl.Series(labels.astype(str) if labels.dtype.kind in "bS" else labels).cast(pl.String)


# Counting a batch


def _add(counted: Counted, batch: pl.DataFrame, columns: Columns, prob_classes: Sequence[str], ignore: frozenset[str]) -> None:
    """Add one batch to the counts. Batches are padded with -1, which is dropped, so that few shapes are compiled."""
    first_row = counted.num_rows + 1
    labels = {"y_true": columns.true} | ({"y_pred": columns.pred} if "y_pred" in batch.columns else {})
    for alias, name in labels.items():
        _learn_classes(counted.classes, batch[alias], name, first_row, frozenset(prob_classes), ignore)
    weights = None
    if "weight" in batch.columns:
        weights = batch["weight"].to_numpy()
        _check_rows(np.isfinite(weights) & (weights >= 0), batch["weight"], columns.weight, first_row, "a number >= 0")
    probs = None
    if prob_classes:
        probs = batch.select(f"p{i}" for i in range(len(prob_classes))).to_numpy()
        valid = (probs >= 0).all(1) & (abs(probs.sum(1) - 1) < 1e-3)  # NaN is not >= 0
        _check_rows(valid, probs, f"{columns.prob}...", first_row, "probabilities that sum to 1")

    true = _ids(batch["y_true"], counted.classes)
    pred = _ids(batch["y_pred"], counted.classes) if probs is None or "y_pred" in batch.columns else probs.argmax(1)
    capacity = 1 << max(4, (len(counted.classes) - 1).bit_length())
    size = 1 << (len(batch) - 1).bit_length()
    pad = size - len(batch)
    true, pred = (np.pad(ids, (0, pad), constant_values=-1) for ids in (true, pred))
    padded_weights = None if weights is None else np.pad(weights, (0, pad))
    counts = np.asarray(confusion_matrix(true, pred, num_classes=capacity, sample_weight=padded_weights))
    counted.counts = _sum(counted.counts, counts if weights is not None else counts.astype(np.int64), counted.classes)
    counted.num_rows += len(batch)
    counted.num_ignored += int(((true < 0) | (pred < 0)).sum()) - pad
    if probs is not None:
        padded_probs = np.pad(probs, ((0, pad), (0, 0)))
        soft = np.asarray(soft_confusion_matrix(true, padded_probs, sample_weight=padded_weights))
        counted.soft_counts = _sum(counted.soft_counts, soft, counted.classes)


def _learn_classes(
    classes: dict[str, int],
    labels: pl.Series,
    name: str,
    first_row: int,
    prob_classes: frozenset[str],
    ignore: frozenset[str],
) -> None:
    """Give an id to each new class name, in the order of appearance."""

    def refuse(bad: pl.Series, message: str) -> None:
        raise InputError(f"row {first_row + (bad.arg_max() or 0)}: {message}")

    if labels.null_count():
        refuse(labels.is_null(), f"{name!r} is empty")
    for label in labels.unique(maintain_order=True):
        if label in ignore or label in classes:
            continue
        if prob_classes:
            refuse(labels == label, f"{name!r} is {label!r}, for which there is no column of probabilities")
        if _is_integer(label) and label.startswith("-"):
            refuse(labels == label, f"{name!r} is {label}, not a class id; --ignore={label} leaves such rows out")
        if len(classes) == MAX_CLASSES:
            refuse(labels == label, f"{name!r} holds more than {MAX_CLASSES} different values: is it a column of classes?")
        classes[label] = len(classes)


def _check_rows(valid: np.ndarray, values: pl.Series | np.ndarray, name: str | None, first_row: int, what: str) -> None:
    if not valid.all():
        i = int(valid.argmin())
        raise InputError(f"row {first_row + i}: {name!r} is {values[i]}, expected {what}")


def _ids(labels: pl.Series, classes: dict[str, int]) -> np.ndarray:
    return labels.replace_strict(list(classes), list(classes.values()), default=-1, return_dtype=pl.Int32).to_numpy()


def _sum(total: np.ndarray | None, counts: np.ndarray, classes: dict[str, int]) -> np.ndarray:
    """`total`, which may know fewer classes, plus the part of `counts` that belongs to `classes`."""
    counts = counts[: len(classes), : len(classes)].copy()
    if total is not None:
        counts[: len(total), : len(total)] += total.astype(counts.dtype)
    return counts


def _check_counted(counted: Counted, columns: Columns) -> None:
    if counted.num_rows == 0:
        raise InputError("the file has no rows")
    if counted.num_rows == counted.num_ignored:
        raise InputError("all rows are ignored")
    fractional = [name for name in counted.classes if _is_number(name) and not _is_integer(name)]
    if fractional:
        raise InputError(f"{fractional[0]!r} is no class: classes must be strings or integers")
    if len(counted.classes) < 2:
        raise InputError(f"a report needs at least two classes, the file has {_listed(list(counted.classes))}")
    in_truth, in_prediction = (
        [name for name, i in counted.classes.items() if counted.counts.sum(axis)[i] > 0] for axis in (1, 0)
    )
    if in_truth and in_prediction and not set(in_truth) & set(in_prediction):
        raise InputError(
            f"{columns.true!r} and {columns.pred!r} have no class in common:"
            f" {_listed(in_truth)} against {_listed(in_prediction)}"
        )


# Counts


def _counts_from_npz(path: Path) -> np.ndarray:
    with np.load(path, allow_pickle=False) as arrays:
        if "counts" not in arrays and len(arrays.files) != 1:
            raise InputError(f"no array 'counts'; the file has {_listed(arrays.files)}")
        return _check_counts(arrays["counts" if "counts" in arrays else arrays.files[0]])


def _counts_from_cells(cells: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[str] | None]:
    """A table of text: a first row that is not all numbers names the classes, and so may the first column."""
    names = None
    rows = [list(row) for row in cells]
    if not all(map(_is_number, rows[0])):
        names, rows = rows[0], rows[1:]
        if rows and len(names) == len(rows) + 1:
            row_names, rows = [row[0] for row in rows], [row[1:] for row in rows]
            names = names[1:]
            if row_names != names:
                raise InputError(f"rows and columns name different classes: {_listed(row_names)} and {_listed(names)}")
    for i, row in enumerate(rows):
        for cell in row:
            if not _is_number(cell):
                raise InputError(f"row {i + 1}: {cell!r} is not a number")
    numbers = [[int(cell) if _is_integer(cell) else float(cell) for cell in row] for row in rows]
    return _check_counts(np.asarray(numbers)), names


def _check_counts(counts: np.ndarray) -> np.ndarray:
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise InputError(f"a confusion matrix must be square, this one has shape {counts.shape}")
    if counts.dtype.kind not in "iuf":
        raise InputError(f"a confusion matrix must hold numbers, this one holds {counts.dtype}")
    bad = np.argwhere(~(np.isfinite(counts) & (counts >= 0)))
    if len(bad):
        i, j = bad[0].tolist()
        raise InputError(f"the cell in row {i + 1}, column {j + 1} is {counts[i, j]}, expected a number >= 0")
    return counts


# Words


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"-?\d+", text) is not None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:12]))
    return (shown or "nothing") + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
