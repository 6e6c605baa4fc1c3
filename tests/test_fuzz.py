"""Hostile arguments of every function that computes on the host.

The answer is a result, or a ValueError or TypeError that this package raises itself, whose message
thus names the argument; never another exception, nor a warning of NumPy's. What only looks
different (a list, a Series, another byte order) gives the same result. `FUZZ_CASES=2000` runs more.
"""

import functools
import linecache
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jaxmetrics as jm
from jaxmetrics import tables
from tests.cases import ROWS, Row
from tests.test_arguments import VALUES

# Those that take arrays of the host, which nothing is compiled for, and answer at once.
# Functions of data frames are given frames, which polars makes: arrays are not theirs to refuse.
FUZZED = {
    name: row
    for name, row in ROWS.items()
    if row.host and not row.draws and name not in tables.__all__
}
for compute_themselves in ("betas.beta_avg_pdf", "cohen_kappa costs", "expected_cost"):
    del FUZZED[compute_themselves]
PACKAGE = str(Path(jm.__file__).parent)
CASES = int(os.environ.get("FUZZ_CASES", "300"))


class ArrayLike:
    """What only `__array__` makes an array of."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.x.astype(dtype) if dtype else self.x


class Pandas(ArrayLike):
    """As a Series has it: an index by labels, `to_numpy`, `values`."""

    def __len__(self) -> int:
        return len(self.x)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.x)

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def to_numpy(self) -> np.ndarray:
        return self.x


def unwritable(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


# Other forms of the same array, which give the same result.
FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "list of arrays": lambda x: list(x) if x.ndim > 1 else x,
    "byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    "negative strides": lambda x: np.flip(np.flip(x).copy()),
    "read-only": unwritable,
    "column-major": lambda x: np.asfortranarray(x),
    "array-like": ArrayLike,
    "Series": lambda x: Pandas(x) if x.ndim == 1 else x,
    "masked array without a mask": np.ma.array,
}
DTYPES = ["?", "i1", "u1", "i4", "u8", "f2", "f4", "f8", "c16", "O", "U8", "S8", "M8[s]"]
ENTRIES: list[Any] = [
    *(np.nan, np.inf, -np.inf, -1, -100, 0, 1, 3, 255, 2**31, 2**40, -(2**63), 2**63 - 1, 2**64),
    *(1e-320, 1e300, 0.5, None, "a", "\x1b[31m", b"b", 1j, (1, 2)),
]


def put(x: np.ndarray, place: int, value: Any) -> Any:
    objects = x.astype(object)
    objects.reshape(-1)[place % x.size : place % x.size + 1] = [value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        with np.errstate(all="ignore"):
            return np.array(objects.tolist())
    return objects.tolist()


def cast(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return x.astype(dtype)


# Other arrays, by a drawn number: those of wrong arguments, and changes of single entries.
CHANGES: dict[str, Callable[[np.ndarray, int], Any]] = {
    name: lambda x, n, change=change: change(x) for name, change in VALUES.items()
} | {
    "entry": lambda x, n: put(x, n // len(ENTRIES), ENTRIES[n % len(ENTRIES)]),
    "dtype": lambda x, n: cast(x, DTYPES[n % len(DTYPES)]) if x.dtype.kind in "biuf" else x,
    "number": lambda x, n: x.reshape(-1)[n % x.size],
    "0-d": lambda x, n: np.asarray(x.reshape(-1)[n % x.size]),
    "empty": lambda x, n: x[..., :0],
    "no rows": lambda x, n: x[:0],
    "constant": lambda x, n: np.full_like(x, x.reshape(-1)[n % x.size]),
    "one class": lambda x, n: np.zeros_like(x),
    "a ragged row more": lambda x, n: [*x.tolist(), [1, [2]]],
    "one masked": lambda x, n: np.ma.array(
        x, mask=np.arange(x.size).reshape(x.shape) == n % x.size
    ),
}


def options_of(row: Row, n: int) -> dict[int | str, Any]:
    if not row.options:
        return {}
    rng, length = np.random.default_rng(n), row.ordinary[0].shape[row.examples[0]]
    arrays = {"where": rng.random(length) < 0.8, "sample_weight": rng.integers(0, 3, length) / 2}
    return {name: arrays[name] for name in row.options if name in arrays and rng.random() < 0.5}


def expected_error(error: Exception) -> bool:
    """Tell whether this package has raised the exception in a statement of its own."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    assert trace is not None
    file = trace.tb_frame.f_code.co_filename
    line = linecache.getline(file, trace.tb_lineno)
    if isinstance(error, UserWarning):
        return file.startswith(PACKAGE) and "warn" in line
    is_ours = file.startswith(PACKAGE) and line.lstrip().startswith("raise ")
    return is_ours and isinstance(error, ValueError | TypeError) and bool(str(error))


@settings(max_examples=CASES, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_hostile_arguments(data: st.DataObject) -> None:
    """Of a function, some of whose arguments are changed."""
    choose = lambda size: data.draw(st.integers(0, size - 1))
    row = FUZZED[sorted(FUZZED)[choose(len(FUZZED))]]
    arguments: dict[int | str, Any] = dict(enumerate(row.ordinary))
    arguments.update(options_of(row, choose(16)))
    for _ in range(1 + choose(3)):
        place = list(arguments)[choose(len(arguments))]
        change = CHANGES[sorted(CHANGES)[choose(len(CHANGES))]]
        number, x = choose(10_000), arguments[place]
        if isinstance(x, np.ndarray) and x.ndim and x.size:
            arguments[place] = change(x, number)
    options = {name: x for name, x in arguments.items() if isinstance(name, str)}
    try:
        row.call(*(arguments[i] for i in range(len(row.ordinary))), **options)
    except Exception as error:
        if not expected_error(error):
            raise


@functools.cache
def ordinary(name: str) -> Any:
    return FUZZED[name].call(*FUZZED[name].ordinary)


@pytest.mark.quick
@pytest.mark.parametrize("form", FORMS)
def test_other_forms_of_the_same_arrays(form: str) -> None:
    for name, row in FUZZED.items():
        found = row.call(*(FORMS[form](x) for x in row.ordinary))
        for x, y in zip(jax.tree.leaves(ordinary(name)), jax.tree.leaves(found), strict=True):
            if isinstance(x, str | None):
                assert x == y
            else:
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12, err_msg=name)
