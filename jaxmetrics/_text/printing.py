"""Write results as readable text, dicts and data frames."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np

from jaxmetrics._places.jax_imports import jax, trees
from jaxmetrics._places.namespaces import is_jax, is_known
from jaxmetrics._text.wording import (
    Table,
    filled,
    fraction,
    labels_of,
    probability,
    shown,
    spec_of,
)

__all__: list[str] = []

Backend: TypeAlias = Literal["pandas", "polars", "pyarrow"]

_FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}

_MOST_ROWS = 20  # the largest number of rows of a table: ten first and ten last rows
_MOST_MEMBERS = 3  # the largest number of members in one line
_LONGEST_NAME = 40
_TITLES = {"a": "A", "b": "B", "difference": "A - B", "p_value": "p-value"}
_KINDS = (np.floating, np.integer, np.bool_)


class Printed:
    """Base class of pytrees of numbers or arrays that print as readable text, such as named tuples.

    If the fields are arrays, the pytree is a batch with one member per element of the arrays. A
    derived class may define how one member is written. If values are unknown, for example under
    jit, all fields are printed.
    """

    __slots__ = ()
    _plural = "members"

    def _cells(self, spec: str) -> dict[str, str]:
        """Return the cells of one member by the titles of their columns."""
        cells = {}
        for name, x in self._numbers().items():
            is_written = spec or isinstance(x, Printed)
            write = probability if name == "p_value" else fraction
            cells[_TITLES.get(name, name)] = format(x, spec) if is_written else write(x)
        return cells

    def _intervals(self) -> list[tuple[float, ...]]:
        """List the values with the ends of their intervals, which share a format in a table."""
        numbers = self._numbers()
        if "low" in numbers:
            return [tuple(numbers.values())[:3]]
        parts = (x for x in numbers.values() if isinstance(x, Printed))
        return [x for part in parts for x in part._intervals()]

    def _members(self) -> Members | None:
        return members_of(self)

    def _numbers(self) -> dict[str, Any]:
        """Return the numbers by name, in the order of the leaves of the pytree."""
        return self._asdict()  # type: ignore[attr-defined]  # of a NamedTuple

    def _labels(self) -> dict[str, Any]:
        """Return other values by name, which all members have in common."""
        return {}

    def _names(self) -> Sequence[str] | None:
        """Return the names of the members along the last axis, if they have names."""
        return None

    def _known_members(self, method: str) -> Members:
        members = self._members()
        if members is None:
            raise ValueError(
                f"{method} needs the values of arrays, which do not exist while jax.jit compiles a"
                f" function. Call {method} outside of the compiled function."
            )
        return members

    def _plain(self) -> str:
        fields = ", ".join(f"{name}={x!r}" for name, x in self._numbers().items())
        return f"{type(self).__name__}({fields})"

    def __repr__(self) -> str:
        """Return one line: a single member, or the size of the batch and the first members."""
        members = self._members()
        if members is None:
            return self._plain()
        some = range(min(len(members), _MOST_MEMBERS))
        first = [line_of(members[i]._cells("")) for i in some]
        if members.shape == ():
            return first[0]
        if members.labels:
            first = [f"{members.label(i)} {line}" for i, line in zip(some, first, strict=True)]
        number = f"{' x '.join(map(str, members.shape))} {self._plural}"
        rest = ["..."] * (len(members) > len(first))
        return ": ".join([number, *filter(None, ["; ".join(first + rest)])])

    def __format__(self, spec: str) -> str:
        """Return a single member as one line, or a batch as a table, with the format `spec`."""
        members = self._members()
        if members is None or not len(members):
            return repr(self)
        if members.shape == ():
            return line_of(members[0]._cells(spec))
        return members.table(spec).text()

    def __str__(self) -> str:
        text = format(self)
        return text if "\n" in text else filled(text)

    def _repr_html_(self) -> str:
        members = self._members()
        if members is None or members.shape == () or not len(members):
            return html.escape(repr(self))
        return members.table("").html()

    def to_dict(self) -> dict[str, Any]:
        """Return all fields by name; numbers of a batch are lists, and NaN becomes None."""
        numbers = {
            name: x.to_dict() if isinstance(x, Printed) else as_python(x)
            for name, x in self._numbers().items()
        }
        names = self._names()
        return numbers | self._labels() | ({"names": [*names]} if names else {})

    def to_frame(self, backend: Backend | None = None) -> Any:
        """Return a data frame with one row per member of the batch.

        Args:
            backend: `"pandas"`, `"polars"` or `"pyarrow"`. The default is pandas if it is
                installed, otherwise Polars.

        Raises:
            ImportError: the backend is not installed.
            ValueError: the backend is unknown; or numbers are unknown, for example under jit.
        """
        members = self._known_members("to_frame")
        labels = {name: [x] * len(members) for name, x in self._labels().items()}
        columns = members.columns().items()
        # A terminal shows few columns, and num_undefined is usually 0.
        used = {x: y for x, y in columns if not x.endswith("num_undefined") or y.any()}
        return frame_of(used | labels, backend)

    def to_latex(self) -> str:
        """Return a LaTeX table with one row per member, for the packages booktabs and graphicx.

        Raises:
            ValueError: numbers are unknown, for example under jit.
        """
        return self._known_members("to_latex").table("").latex()


@dataclass(frozen=True)
class Members:
    """A batch of pytrees, as NumPy arrays of the same shape."""

    structure: Any
    names: list[str]
    arrays: list[np.ndarray]
    labels: Sequence[str] | None  # names of the members along the last axis

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the batch."""
        return self.arrays[0].shape

    def __len__(self) -> int:
        return math.prod(self.shape)

    def __getitem__(self, i: int) -> Any:
        return trees.unflatten(self.structure, [x.flat[i].item() for x in self.arrays])

    def label(self, i: int) -> str:
        """Return the index of member i, or its name."""
        *first, last = map(int, np.unravel_index(i, self.shape))
        return ", ".join(map(str, [*first, self.labels[last] if self.labels else last]))

    def table(self, spec: str) -> Table:
        """Write a table with one row per member; if there are many, the first and last members."""
        n, half = len(self), _MOST_ROWS // 2
        some = range(n) if n <= _MOST_ROWS else [*range(half), *range(n - half, n)]
        members = [self[i] for i in some]
        intervals = [x for member in members for x in member._intervals()]
        spec = spec or spec_of(*intervals)
        cells = [member._cells(spec) for member in members]
        titles = list(dict.fromkeys(title for row in cells for title in row))
        names = labels_of([self.label(i) for i in some] if self.shape else [""], _LONGEST_NAME)
        rows = [
            [name, *(row.get(title, "") for title in titles)]
            for name, row in zip(names, cells, strict=True)
        ]
        if len(some) < n:
            rows.insert(half, ["..."] * len(rows[0]))
        return Table(["", *titles], rows)

    def columns(self) -> dict[str, np.ndarray]:
        """Return columns with the numbers of each member and, if the batch has axes, its index
        or name.
        """
        places = np.indices(self.shape)
        axes = ["index"] if len(places) == 1 else [f"index_{i}" for i in range(len(places))]
        columns = {x: y.ravel() for x, y in zip(axes, places, strict=True)}
        if self.labels:
            columns["name"] = np.array(self.labels)[columns.pop(axes[-1])]
        return columns | {x: y.ravel() for x, y in zip(self.names, self.arrays, strict=True)}


def members_of(batch: Printed) -> Members | None:
    """Convert a batch to NumPy; return None if a value is unknown or not a number."""
    numbers = dict(_numbers_of(batch))
    if not all(map(is_known_number, numbers.values())):
        return None
    try:
        arrays = np.broadcast_arrays(*map(_on_host, numbers.values()))
    # An array is deleted or on another host, or shapes do not match.
    except (RuntimeError, ValueError):
        return None
    return Members(trees.flatten(batch)[1], [*numbers], [*arrays], batch._names())


def _numbers_of(batch: Printed) -> Iterator[tuple[str, Any]]:
    """Return the numbers of nested pytrees, with names that are made from their fields: "a_low"."""
    for name, value in batch._numbers().items():
        if isinstance(value, Printed):
            yield from ((f"{name}_{inner}", x) for inner, x in _numbers_of(value))
        else:
            yield name, value


def is_known_number(x: Any) -> bool:
    """Return whether x is a real number or an array of real numbers whose values are known."""
    if is_jax(x):
        return is_known(x) and any(jax.numpy.issubdtype(x.dtype, kind) for kind in _KINDS)
    return isinstance(x, float | int) or (
        isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "biuf"
    )


def _on_host(x: Any) -> np.ndarray:
    """Convert an array to NumPy; a dtype that NumPy does not have becomes float64."""
    array = np.asarray(x)
    return array if array.dtype.kind in "biuf" else array.astype(float)


def line_of(cells: Mapping[str, str]) -> str:
    """Write cells with their titles in one line; a single cell is written without its title."""
    if len(cells) == 1:
        return "".join(cells.values())
    return ", ".join(f"{title} {cell}" for title, cell in cells.items())


def as_python(x: Any) -> Any:
    """Convert an array to a number or to nested lists of numbers; NaN becomes None."""
    array = _on_host(x)
    nothing = np.full(array.shape, None, object)
    return np.where(np.isnan(array), nothing, array.astype(object)).tolist()


def frame_of(columns: Mapping[str, Any], backend: Backend | None) -> Any:
    """Make a data frame of the library `backend`, or of an installed one, from columns by name."""
    if backend not in (None, *_FRAMES):
        names = "'pandas', 'polars' or 'pyarrow'"
        raise ValueError(f"backend must be {names}, got {shown(backend)}.")
    for name in [backend] if backend else ["pandas", "polars"]:
        with suppress(ImportError):
            return getattr(import_module(name), _FRAMES[name])(columns)
    raise ImportError(
        f"to_frame needs {backend or 'pandas or polars'}: pip install {backend or 'pandas'}."
    )
