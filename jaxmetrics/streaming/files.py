"""Save and load the state of an evaluator (its running sums), for example to merge several hosts.

A file contains its version, the numbers of counted, ignored and invalid examples, a JSON
description of each statistic, and the arrays of sums. Files of version 2 were written by jaxmetrics
0.3.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmetrics._arguments.single import on_host, require
from jaxmetrics._files import replaced_file
from jaxmetrics._places.namespaces import float_dtype
from jaxmetrics._text.wording import shown
from jaxmetrics.streaming.evaluators import COUNTERS, Evaluator
from jaxmetrics.streaming.standard_statistics import (
    CalibrationBins,
    ClassCounts,
    ConfusionMatrix,
    Moments,
    PairedConfusionMatrix,
    PoissonReplicates,
    ScoreHistogram,
    SquaredWeights,
    innermost,
)
from jaxmetrics.streaming.states import EvaluatorState, state_of
from jaxmetrics.streaming.statistics import SavedStatistic, Statistic
from jaxmetrics.streaming.totals import Totals, add

__all__ = ["load_state", "save_state"]

VERSION = 3

# Names of our statistics in files; statistics written by users are named by module and class.
_KINDS: dict[str, type] = {
    "calibration_bins": CalibrationBins,
    "class_counts": ClassCounts,
    "confusion_matrix": ConfusionMatrix,
    "moments": Moments,
    "paired_confusion_matrix": PairedConfusionMatrix,
    "poisson_bootstrap": PoissonReplicates,
    "score_histogram": ScoreHistogram,
    "squared_weights": SquaredWeights,
}
# Options of statistics that are not integers.
_TYPES_OF_OPTIONS: dict[str, Any] = {
    "groups": str,
    "name": str,
    "scale": str,
    "statistic": Statistic | SavedStatistic,
    "weighted": bool,
    "weights": str,
}
_NAMES_OF_KINDS = {kind: name for name, kind in _KINDS.items()}


def save_state(path: str | Path, state: EvaluatorState) -> None:
    """Save the running sums of an evaluator (its state) to an .npz file.

    Read the file with `load_state`, or with `jaxmetrics merge` on the command line. Writing is
    atomic: the file is never incomplete.

    If each host evaluates its own batches, each host must save its own state. After `psum`, or if
    `jax.jit` evaluated batches that were distributed over all hosts, every state contains the sums
    of all hosts. Then save the state of one host only. NaN or infinite sums can be saved, but
    `load_state` raises an error.

    Args:
        path: path of the file, which is replaced if it exists.
        state: result of `update`, `merge` or `psum` of an `Evaluator`.

    Raises:
        TypeError: if your own `Statistic` in the state is not a dataclass, or has a field that is
            not a number, a string or another `Statistic`.
        ValueError: if `state` is a stack of states, for example of `jax.vmap`.

    >>> import tempfile, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.mean_of("loss"))
    >>> state = evaluator.update(evaluator.init(), loss=jnp.array([1.0, 2.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(folder + "/host0.npz", state)
    ...     load_state(folder + "/host0.npz").statistics == state.statistics
    True
    """
    if not isinstance(state, EvaluatorState):
        raise TypeError(f"state must be an EvaluatorState, got {shown(state)}.")
    descriptions = json.dumps([_description(statistic) for statistic in state.statistics])
    examples, totals = jax.device_get((state.examples, state.totals))
    if np.ndim(examples) > 2:
        raise ValueError(
            "state is a stack of states. Save each of them: jax.tree.map(lambda x: x[i], state)."
        )
    # Raises under jit, before a file is opened.
    arrays: dict[str, Any] = {
        "version": np.asarray(VERSION),
        "examples": on_host(examples, "state"),
        "statistics": np.asarray(descriptions),
    }
    arrays |= {f"{i}/total": np.asarray(total) for i, total in enumerate(totals)}
    is_path = isinstance(path, str | os.PathLike)
    require(is_path, "path", "be a string or a pathlib.Path", path, TypeError)
    with replaced_file(path) as file:
        np.savez(file, **arrays)


def load_state(source: Any, evaluator: Evaluator | None = None) -> EvaluatorState:
    """Load the running sums of an evaluator (its state) from a file written by `save_state`.

    Files written by jaxmetrics 0.3 are converted. If a file of 0.3 has an integer statistic and
    weights, the evaluator must have `weighted=True`. Such files lack the sums of squared weights,
    without which metrics have values, but no intervals.

    You can pass the loaded state to any evaluator that computes the same sums with the same
    settings, such as `num_classes`. `jax_enable_x64` must be the same as when the state was saved.
    Otherwise methods such as `update` and `compute` raise ValueError.

    Args:
        source: path of the file. Or a state of jaxmetrics 0.3 that was pickled, or that Orbax
            restored as a dict, which is then converted.
        evaluator: an evaluator that computes the same sums. Needed only if the state contains your
            own `Statistic`, or if `source` is not a path.

    Returns:
        `EvaluatorState` with arrays on the default device.

    Raises:
        ValueError: if the file is damaged, contains no state or was written by a later version.
            Also if a sum is NaN or infinite, if a count is negative, or if there are sums but no
            examples. Also if sums are float64 but `jax_enable_x64` is off, or if the path is a pipe
            or a device.

    >>> import tempfile, jaxmetrics as jm
    >>> evaluator = jm.evaluator(jm.mean_of("loss"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = evaluator.update(evaluator.init(), loss=jnp.array([1.0, 2.0]))
    ...     save_state(folder + "/host0.npz", state)
    ...     evaluator.compute(load_state(folder + "/host0.npz"))["loss"]
    Array(1.5, dtype=float32)
    """
    if evaluator is not None and not isinstance(evaluator, Evaluator):
        raise TypeError(f"evaluator must be an Evaluator, got {shown(evaluator)}.")
    if not isinstance(source, str | os.PathLike):
        return _from_tree(source, evaluator)
    path = Path(source)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{source}: a state is read from a file, not from a pipe or a device.")
    # We open the file ourselves, because NumPy closes it late after an error.
    content = io.BytesIO(path.read_bytes())
    try:
        return _state(_arrays(content), () if evaluator is None else evaluator.statistics)
    except _Unusable as error:
        raise ValueError(f"{source}: {error}") from None
    except Exception:  # zipfile, zlib, ast, json and NumPy raise many types for damaged files
        message = "this file does not contain the state of an evaluator."
        raise ValueError(f"{source}: {message}") from None


class _Unusable(Exception):
    """Error with the reason why a state cannot be used."""


def _arrays(content: io.BytesIO) -> dict[str, np.ndarray]:
    """Read the arrays. Compressed and overlapping arrays raise, so that memory is limited by the
    size of the file.
    """
    with zipfile.ZipFile(content) as archive:
        members = archive.infolist()
        is_compressed = any(member.compress_type for member in members)
        if is_compressed or sum(x.file_size for x in members) > len(content.getbuffer()):
            raise ValueError("larger than the file")
    with np.load(content, allow_pickle=False) as npz:
        return dict(npz)


def _state(arrays: Mapping[str, np.ndarray], known: Sequence[Statistic]) -> EvaluatorState:
    version = int(arrays["version"])
    if version not in (2, VERSION):
        newer = "Install a newer version of jaxmetrics."
        raise _Unusable(
            f"the file contains a state of version {version}, but this version of jaxmetrics reads"
            f" versions 2 and {VERSION}. {newer if version > VERSION else 'Evaluate again.'}"
        )
    by_description = _by_description(known)
    descriptions = json.loads(str(arrays["statistics"]))
    statistics = [_statistic(description, by_description) for description in descriptions]
    if version == 2:
        parts = [
            Totals(arrays[f"{i}/sums"], arrays.get(f"{i}/counts")) for i in range(len(statistics))
        ]
        return _from_version_2(arrays["examples"], dict(zip(statistics, parts, strict=True)), known)
    totals = {s: _checked_total(s, arrays[f"{i}/total"]) for i, s in enumerate(statistics)}
    examples = _total(arrays["examples"], np.uint32, (len(COUNTERS),))
    if not arrays["examples"][:, ::2].any() and any(x.any() for x in totals.values()):
        raise _Unusable("the state contains sums, but it has counted no examples.")
    return state_of(examples, totals)


def _from_tree(state: Any, evaluator: Evaluator | None) -> EvaluatorState:
    """Convert a state of version 0.3, or its arrays in dicts and lists."""
    try:
        members = state if isinstance(state, Mapping) else vars(state)
        totals = [Totals(**x) if isinstance(x, Mapping) else Totals(*x) for x in members["totals"]]
        parts = jax.tree.map(np.asarray, totals)
        statistics = () if evaluator is None else evaluator.statistics
        known = [x for x in statistics if not isinstance(x, SquaredWeights)]
        old = (_with_weights(statistic, False) for statistic in known)
        named = dict(zip(old, parts, strict=True))
        return _from_version_2(np.asarray(members["examples"]), named, known)
    except _Unusable as error:
        raise ValueError(f"source: {error}") from None
    except Exception:
        raise TypeError(
            "source must be a path, or with the argument evaluator a state of jaxmetrics 0.3 of an"
            f" evaluator that computes the same sums, got {shown(state)}."
        ) from None


def _from_version_2(
    examples: np.ndarray,
    totals: Mapping[Statistic | SavedStatistic, Totals],
    known: Sequence[Statistic],
) -> EvaluatorState:
    """Convert a state in which counted examples and weights had separate totals, and in which
    counts had the value `counts[0] + 2^32 counts[1]`.
    """
    has_weights = any(x.counts is not None and x.sums.any() for x in totals.values())
    converted = {}
    for old, (sums, counts) in totals.items():
        same = [x for x in known if _with_weights(x, False) == old]
        statistic = same[0] if same else _with_weights(old, has_weights)
        if counts is None:
            converted[statistic] = _checked_total(statistic, sums)
            continue
        number = _as_uint64(counts)
        if not getattr(statistic, "is_integer", not sums.any()):
            near = number.astype(sums.dtype)
            rest = (number.astype(np.int64) - near.astype(np.int64)).astype(sums.dtype)
            total = add(_checked_total(statistic, sums), jnp.stack([near, rest]))
            converted[statistic] = total
        elif sums.any():
            raise _Unusable(
                f"the state contains sums of weights, but {statistic!r} counts examples. Make the"
                " evaluator with weighted=True, as in count_metrics(..., weighted=True)."
            )
        else:
            converted[statistic] = _checked_total(statistic, _in_31_bits(number))
    if examples.shape != (2, 2):
        raise ValueError(f"numbers of examples of shape {examples.shape}")
    numbers = np.append(_as_uint64(examples), np.uint64(0))  # none was called invalid
    return state_of(jnp.asarray(_in_31_bits(numbers)), converted)


def _as_uint64(count: np.ndarray) -> np.ndarray:
    if count.dtype != np.uint32:
        raise ValueError(f"a count of {count.dtype}")
    low, high = count.astype(np.uint64)
    return low + (high << np.uint64(32))


def _in_31_bits(number: np.ndarray) -> np.ndarray:
    if (number >> np.uint64(63)).any():
        raise _Unusable("the state contains counts of 2^63 or more.")
    return np.stack([number & np.uint64(2**31 - 1), number >> np.uint64(31)]).astype(np.uint32)


def _with_weights(statistic: Any, weighted: bool) -> Any:
    """Return a statistic of this package with another value of its option `weighted`."""
    if type(statistic) not in _NAMES_OF_KINDS:
        return statistic
    options = {field.name: getattr(statistic, field.name) for field in fields(statistic)}
    if "weighted" in options:
        return replace(statistic, weighted=weighted)
    if "statistic" in options:
        return replace(statistic, statistic=_with_weights(statistic.statistic, weighted))
    return statistic


def _checked_total(statistic: Statistic | SavedStatistic, array: np.ndarray) -> jax.Array:
    """Check the total of a statistic; a statistic written by a user may have any shape."""
    shape = tuple(getattr(statistic, "shape", array.shape[1:]))
    if array.dtype == np.float64 != float_dtype():
        raise _Unusable(
            "the file contains a state with sums in double precision (64 bits), which would be"
            ' cut to 32 bits. Call jax.config.update("jax_enable_x64", True) before you load the'
            " state."
        )
    if getattr(statistic, "is_integer", array.dtype == np.uint32):
        return _total(array, np.uint32, shape)
    total = _total(array, np.float64 if array.dtype == np.float64 else np.float32, shape)
    _check_sums(statistic, array.sum(0, dtype=float))
    return total


def _check_sums(statistic: Statistic | SavedStatistic, sums: np.ndarray) -> None:
    """Raise if sums are impossible, whatever the examples."""
    of = innermost(statistic)
    may_be_negative = np.full(sums.shape, not isinstance(of, tuple(_NAMES_OF_KINDS)))
    if isinstance(of, Moments):
        may_be_negative[..., 1::3] = True  # only sums of values may be negative
    possible = np.isfinite(sums) & ((sums >= 0) | may_be_negative)
    if not possible.all():
        raise _Unusable(
            f"the file contains a state in which the sum {sums[~possible][0]:g} of {statistic!r}"
            " is not valid, because a value or a weight of an example was NaN, infinite or"
            " negative."
        )


def _total(array: np.ndarray, dtype: type, shape: tuple[int, ...]) -> jax.Array:
    if array.dtype != dtype or array.shape != (2, *shape):
        raise ValueError(f"a total of {array.dtype} and shape {array.shape}")
    return jnp.asarray(array)


def _description(statistic: Any) -> Any:
    """Describe a statistic by its type and options, for JSON."""
    if isinstance(statistic, SavedStatistic):
        return json.loads(statistic.description)
    kind = type(statistic)
    if not is_dataclass(kind):
        raise TypeError(
            "A state can only be saved if each of its statistics is a dataclass, got"
            f" {statistic!r}."
        )
    options = {field.name: getattr(statistic, field.name) for field in fields(kind)}
    for name, value in options.items():
        if isinstance(value, Statistic | SavedStatistic):
            options[name] = _description(value)
        elif not isinstance(value, bool | int | float | str | None):
            raise TypeError(
                f"The state cannot be saved, because the field {name} of {statistic!r} has the type"
                f" {type(value).__name__}. A field must be a real number, a string, None or a"
                " Statistic."
            )
    name = _NAMES_OF_KINDS.get(kind, f"{kind.__module__}.{kind.__qualname__}")
    return {"kind": name, "options": options}


def _canonical(description: Any) -> str:
    return json.dumps(description, sort_keys=True)


def _by_description(statistics: Iterable[Statistic]) -> dict[str, Statistic]:
    """Return a function from descriptions in a file to statistics."""
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
    return _checked(_KINDS[kind](**options))


def _checked(statistic: Any) -> Any:
    """Check the options of a statistic that was read from a file."""
    for field in fields(statistic):
        value = getattr(statistic, field.name)
        expected = _TYPES_OF_OPTIONS.get(field.name, int)
        is_size = expected is int and field.name != "seed"
        may_be_none = field.default is None and value is None
        is_flag = type(value) is bool
        if not may_be_none and (is_flag != (expected is bool) or not isinstance(value, expected)):
            raise TypeError(f"{field.name} is {value!r}")
        if is_size and value is not None and value < 1:
            raise ValueError(f"{field.name} is {value!r}")
    return statistic
