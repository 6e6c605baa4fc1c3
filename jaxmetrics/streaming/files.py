"""States on disk: written by each host, merged and reported offline.

A file holds its version, how many examples were counted and ignored, the description of each
statistic as JSON, its kind and options, and the arrays of its totals.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics.streaming.evaluators import Evaluator
from jaxmetrics.streaming.standard_statistics import (
    CalibrationBins,
    ConfusionMatrix,
    Moments,
    PairedConfusionMatrix,
    Replicates,
    ScoreHistogram,
)
from jaxmetrics.streaming.states import EvaluatorState, state_of
from jaxmetrics.streaming.statistics import SavedStatistic, Statistic
from jaxmetrics.streaming.totals import Totals

__all__ = ["load_state", "save_state"]

VERSION = 2

# What a file calls the statistics of this package; those of a user go by module and name.
_KINDS: dict[str, type] = {
    "calibration_bins": CalibrationBins,
    "confusion_matrix": ConfusionMatrix,
    "moments": Moments,
    "paired_confusion_matrix": PairedConfusionMatrix,
    "poisson_bootstrap": Replicates,
    "score_histogram": ScoreHistogram,
}
_NAMES_OF_KINDS = {kind: name for name, kind in _KINDS.items()}


def save_state(path: str | Path, state: EvaluatorState) -> None:
    """Write a state of any evaluator as an .npz file, which `load_state` reads and
    `jaxmetrics merge` adds up.

    The file appears whole or not at all. Hosts that evaluate apart write a state each; where a
    batch was spread over them by `jax.jit`, or `psum` was called, each holds the state of all, and
    one file is enough.

    Raises:
        TypeError: what is no state, or has a statistic that is no dataclass of numbers, strings and
            statistics.
        OSError: the file cannot be written.
    """
    if not isinstance(state, EvaluatorState):
        raise TypeError(f"save_state takes a state of an evaluator, got {type(state).__name__}.")
    descriptions = json.dumps([_description(statistic) for statistic in state.statistics])
    examples, totals = jax.device_get((state.examples, state.totals))
    # A tracer fails here, no file is open yet.
    arrays: dict[str, Any] = {
        "version": np.asarray(VERSION),
        "examples": np.asarray(examples),
        "statistics": np.asarray(descriptions),
    }
    for i, parts in enumerate(totals):
        arrays |= {f"{i}/{k}": np.asarray(x) for k, x in parts._asdict().items() if x is not None}
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def load_state(path: str | Path, evaluator: Evaluator | None = None) -> EvaluatorState:
    """Read a state as `save_state` wrote it; `evaluator.update` and its kin check that it is theirs
    (and of this setting of x64).

    Args:
        path: of the file.
        evaluator: by which the state was made, if it has a `Statistic` of your own.

    Raises:
        TypeError: the evaluator has a statistic that cannot be saved.
        ValueError: a file that holds no state, or one of a later version.
        OSError: it cannot be read.

    >>> import tempfile, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.mean_of("loss"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = evaluator.update(evaluator.init(), loss=jnp.array([1.0, 2.0]))
    ...     save_state(folder + "/host0.npz", state)
    ...     evaluator.compute(load_state(folder + "/host0.npz"))["loss"]
    Array(1.5, dtype=float32)
    """
    known = {} if evaluator is None else _by_description(evaluator.statistics)
    # Stays open: what NumPy has begun to read and given up is closed late.
    content = io.BytesIO(Path(path).read_bytes())
    try:
        with np.load(content, allow_pickle=False) as npz:
            arrays = dict(npz)
        return _state(arrays, known)
    except _LaterVersion as error:
        raise ValueError(f"{path}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile):
        raise ValueError(f"{path}: no state of an evaluator.") from None


class _LaterVersion(Exception):
    """Raised for a file that only another version of this package can read."""


def _state(arrays: Mapping[str, np.ndarray], known: Mapping[str, Statistic]) -> EvaluatorState:
    if "version" not in arrays:
        return _state_of_version_1(arrays)
    version = int(arrays["version"])
    if version != VERSION:
        raise _LaterVersion(
            f"a state of version {version}; this jaxmetrics reads versions 1 to {VERSION}."
        )
    totals = {}
    for i, description in enumerate(json.loads(str(arrays["statistics"]))):
        parts = {k: jnp.asarray(arrays[f"{i}/{k}"]) for k in Totals._fields if f"{i}/{k}" in arrays}
        totals[_statistic(description, known)] = Totals(**parts)
    return state_of(jnp.asarray(arrays["examples"]), totals)


def _description(statistic: Any) -> Any:
    """Describe a statistic by its kind and options, as JSON has them."""
    if isinstance(statistic, SavedStatistic):
        return json.loads(statistic.description)
    kind = type(statistic)
    if not is_dataclass(kind):
        raise TypeError(f"only a statistic that is a dataclass can be saved, got {statistic!r}.")
    options = {field.name: getattr(statistic, field.name) for field in fields(kind)}
    for name, value in options.items():
        if isinstance(value, Statistic | SavedStatistic):
            options[name] = _description(value)
        elif not isinstance(value, bool | int | float | str | None):
            raise TypeError(
                f"{name} of {statistic!r} must be a number, a string or a statistic, to be saved."
            )
    name = _NAMES_OF_KINDS.get(kind, f"{kind.__module__}.{kind.__qualname__}")
    return {"kind": name, "options": options}


def _canonical(description: Any) -> str:
    return json.dumps(description, sort_keys=True)


def _by_description(statistics: Iterable[Statistic]) -> dict[str, Statistic]:
    """Map what a file says of them to statistics."""
    return {_canonical(_description(statistic)): statistic for statistic in statistics}


def _statistic(description: Any, known: Mapping[str, Statistic]) -> Statistic | SavedStatistic:
    text, kind = _canonical(description), description["kind"]
    if text in known:
        return known[text]
    if kind not in _KINDS:
        return SavedStatistic(text)
    options = {
        name: _statistic(value, known) if isinstance(value, dict) else value
        for name, value in description["options"].items()
    }
    return _KINDS[kind](**options)


_PARTS_OF_VERSION_1 = {"count": "counts", "sum": "sums"}


def _state_of_version_1(arrays: Mapping[str, np.ndarray]) -> EvaluatorState:
    """Read a file of jaxmetrics 0.1, whose arrays are named `kind(options)/count` and `/sum`."""
    parts: dict[str, dict[str, jax.Array]] = {}
    for key, total in arrays.items():
        name, _, part = key.rpartition("/")
        parts.setdefault(name, {})[_PARTS_OF_VERSION_1[part]] = jnp.asarray(total)
    examples = parts.pop("examples, version 1")["counts"]
    totals: dict[Statistic | SavedStatistic, Totals] = {
        _statistic_of_version_1(name): Totals(**total) for name, total in parts.items()
    }
    return state_of(examples, totals)


def _statistic_of_version_1(name: str) -> Statistic:
    kind, _, inner = name.removesuffix(")").partition("(")
    if kind == "moments":
        return Moments(inner)
    if kind == "poisson_bootstrap":
        of, num_samples, seed = inner.rsplit(", ", 2)
        numbers = (int(option.partition("=")[2]) for option in (num_samples, seed))
        return Replicates(_statistic_of_version_1(of), *numbers)
    pairs = (option.split("=") for option in inner.split(", "))
    options = {key: int(value) if value.isdecimal() else value for key, value in pairs}
    return _KINDS[kind](**options)
