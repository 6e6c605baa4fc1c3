"""States on disk: written by each host, merged and reported offline."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics.streaming.evaluators import EXAMPLES, State, wrong_version

__all__ = ["load_state", "save_state"]


def save_state(path: str | Path, state: State) -> None:
    """Write a state of any evaluator as an .npz file, which `load_state` reads and
    `jaxmetrics merge` adds up.

    The file appears whole or not at all. Hosts that evaluate apart write a state each; where a
    batch was spread over them by `jax.jit`, or `psum` was called, each holds the state of all, and
    one file is enough.

    Raises:
        ValueError: what is no state. OSError: the file cannot be written.
    """
    if not isinstance(state, dict) or EXAMPLES not in state:
        raise ValueError(wrong_version(state if isinstance(state, dict) else ()))
    totals = jax.device_get(
        {f"{name}/{kind}": total for name, held in state.items() for kind, total in held.items()}
    )
    # A tracer fails here, no file is open yet.
    arrays: dict[str, Any] = {name: np.asarray(x) for name, x in totals.items()}
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def load_state(path: str | Path) -> State:
    """A state as `save_state` wrote it; `evaluator.update` and its kin check that it is theirs (and
    of this setting of x64).

    Raises:
        ValueError: a file that holds no state, or one of another version. OSError: it cannot be
            read.

    >>> import tempfile, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.mean_of("loss"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = evaluator.update(evaluator.init(), loss=jnp.array([1.0, 2.0]))
    ...     save_state(folder + "/host0.npz", state)
    ...     evaluator.compute(load_state(folder + "/host0.npz"))["loss"]
    Array(1.5, dtype=float32)
    """
    # Stays open: what NumPy has begun to read and given up is closed late.
    content = io.BytesIO(Path(path).read_bytes())
    try:
        with np.load(content, allow_pickle=False) as npz:
            arrays = dict(npz)
    except (AttributeError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path}: {wrong_version(())}") from None
    state: State = {}
    for key, total in arrays.items():
        name, _, kind = key.rpartition("/")
        state.setdefault(name, {})[kind] = jnp.asarray(total)
    if EXAMPLES not in state:
        raise ValueError(f"{path}: {wrong_version(state)}")
    return state
