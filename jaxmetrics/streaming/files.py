"""States on disk: written by each host, merged and reported offline."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics.streaming._totals import Count, Sum
from jaxmetrics.streaming.evaluators import EXAMPLES, VERSION, State

__all__ = ["load_state", "save_state"]

_KINDS: dict[str, Any] = {"count": Count, "sum": Sum}


def save_state(path: str | Path, state: State) -> None:
    """Write a state of any evaluator as an .npz file, which `load_state` reads and `jaxmetrics merge` adds up.

    The file appears whole or not at all. Hosts that evaluate apart write a state each; where a batch was spread over them by
    `jax.jit`, or `psum` was called, each holds the state of all, and one file is enough.

    Raises:
        OSError: the file cannot be written.
    """
    arrays = {VERSION: state[VERSION]}
    for name, totals in state.items():
        if name != VERSION:
            arrays |= {f"{name}/{kind}/{part}": x for kind, total in totals.items() for part, x in total._asdict().items()}
    arrays = jax.device_get(arrays)
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


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
        for name, kind in sorted({tuple(key.rsplit("/", 2)[:2]) for key in arrays}):
            total = _KINDS[kind]
            state.setdefault(name, {})[kind] = total(*(arrays[f"{name}/{kind}/{part}"] for part in total._fields))
    except (KeyError, ValueError) as error:
        raise ValueError(f"{path}: a damaged state: {error}.") from None
    if EXAMPLES not in state:
        raise ValueError(f"{path}: a damaged state: no number of examples.")
    return state
