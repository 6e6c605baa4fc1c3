"""States on disk: written by each host, merged and reported offline."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxmetrics.streaming._totals import Count, Sum
from jaxmetrics.streaming.evaluators import COUNTERS, VERSION, State

__all__ = ["load_state", "save_state"]

_KINDS: dict[str, Any] = {"count": Count, "sum": Sum}


def save_state(path: str | Path, state: State) -> None:
    """Write a state of any evaluator as an .npz file, which `load_state` reads and `jaxmetrics merge` adds up.

    Raises:
        OSError: the file cannot be written.
    """
    arrays = {f"{name}/{part}": x for name in COUNTERS for part, x in state[name]._asdict().items()}
    for name, totals in state.items():
        if name not in (*COUNTERS, VERSION):
            arrays |= {f"{name}/{kind}/{part}": x for kind, t in totals.items() for part, x in t._asdict().items()}
    with Path(path).open("wb") as file:
        np.savez(file, **{VERSION: np.asarray(state[VERSION])}, **{name: np.asarray(x) for name, x in arrays.items()})


def load_state(path: str | Path) -> State:
    """A state as `save_state` wrote it; `evaluator.update` and its kin check that it is theirs.

    Raises:
        ValueError: a file that holds no state, or one of another version. OSError: it cannot be read.

    >>> import tempfile, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.mean_of("loss"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(folder + "/host0.npz", evaluator.update(evaluator.init(), loss=jnp.array([1.0, 2.0])))
    ...     evaluator.compute(load_state(folder + "/host0.npz"))["loss"]
    Array(1.5, dtype=float32)
    """
    try:
        with Path(path).open("rb") as file:
            arrays = {name: jnp.asarray(x) for name, x in dict(np.load(file, allow_pickle=False)).items()}
        version = next(name for name in arrays if name.startswith("version_"))
    except (TypeError, ValueError, EOFError, StopIteration, zipfile.BadZipFile):
        raise ValueError(f"{path}: not a state that jaxmetrics wrote.") from None
    if version != VERSION:
        raise ValueError(f"{path}: a state of {version}; this jaxmetrics reads and writes {VERSION}.")
    state: State = {VERSION: arrays.pop(VERSION)}
    try:
        state |= {name: Count(*(arrays.pop(f"{name}/{part}") for part in Count._fields)) for name in COUNTERS}
        for name, kind in sorted({tuple(key.rsplit("/", 2)[:2]) for key in arrays}):
            total = _KINDS[kind]
            state.setdefault(name, {})[kind] = total(*(arrays[f"{name}/{kind}/{part}"] for part in total._fields))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path}: a damaged state: {error}.") from None
    return state
