"""Random keys: a JAX key, an int seed or, for NumPy arrays, a NumPy Generator.

The data, not the key, decide whether NumPy or JAX is used: for NumPy arrays, a JAX key only seeds a
NumPy Generator. The same key and the same kind of data give the same draws. A Generator advances
with each call, as usual in NumPy.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

from jaxmetrics._places.jax_imports import jax
from jaxmetrics._places.namespaces import Array, is_jax, is_known, on_device
from jaxmetrics._text.wording import shown

__all__: list[str] = []

KeyLike: TypeAlias = "jax.Array | int | np.random.Generator"

P = ParamSpec("P")
R = TypeVar("R")


def key_first(function: Callable[P, R]) -> Callable[P, R]:
    """Say in which order the arguments come if one is missing, which often is the key."""
    signature = inspect.signature(function)
    names = (x.name for x in signature.parameters.values() if x.default is x.empty)
    usage = f"{function.__name__}({', '.join(names)})"

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(
                f"{function.__name__}: {error}. Call {usage}, where key is a seed, such as 0, or a"
                " JAX key."
            ) from None
        return function(*args, **kwargs)

    return call


@dataclass(frozen=True)
class HostKey:
    """A seed for NumPy; all Generators made from the same seed give the same draws."""

    words: tuple[int, ...]

    def generator(self) -> np.random.Generator:
        return np.random.default_rng(self.words)


Key: TypeAlias = "jax.Array | HostKey"


def place(key: KeyLike, *arrays: Array | None) -> tuple[Any, ...]:
    """Return the key, as `HostKey` or JAX key, and the arrays.

    If the key is traced, NumPy arrays become JAX arrays. Otherwise they are made contiguous,
    because sums in another order may differ by rounding, which can change draws.
    """
    if not is_known(key):
        arrays = tuple(None if x is None else jax.numpy.asarray(x) for x in arrays)
    rows = (np.asarray(x, order="C") if isinstance(x, np.ndarray) else x for x in arrays)
    return as_key(key, *arrays), *rows


def as_key(key: Any, *arrays: Array | None) -> Key:
    """Convert a key to a JAX key if any array is a JAX array, and otherwise to a `HostKey`."""
    if isinstance(key, HostKey):
        return key
    is_on_device = on_device(arrays)
    if isinstance(key, np.random.Generator):
        if is_on_device:
            raise TypeError(
                "key is a NumPy Generator, but the data are JAX arrays, or the metric returns JAX"
                " arrays: pass jax.random.key(0) or an int seed as key."
            )
        return HostKey(tuple(key.integers(2**32, size=4).tolist()))
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        return _key_of_seed(int(key)) if is_on_device else HostKey((_word(int(key)),))
    if not _is_jax_key(key):
        raise TypeError(
            "key must be a JAX key, an int seed or, for NumPy arrays, a NumPy Generator, got"
            f" {_described(key)}. Pass jax.random.key(0), 0 or numpy.random.default_rng(0)."
        )
    is_raw = key.dtype == np.uint32
    if is_on_device:
        return jax.random.wrap_key_data(jax.numpy.asarray(key)) if is_raw else key
    words = key if is_raw else jax.random.key_data(key)
    return HostKey(tuple(np.asarray(words).ravel().tolist()))


def _key_of_seed(seed: int) -> jax.Array:
    high, low = divmod(_word(seed), 2**32)
    of_low = jax.random.key(np.uint32(low))
    return jax.random.fold_in(of_low, np.uint32(high)) if high else of_low


def _word(seed: int) -> int:
    """Return an int seed as one word of 64 bits."""
    if not -(2**63) <= seed < 2**64:
        raise ValueError(
            "If key is an int seed, it must be at least -2^63 and less than 2^64, got"
            f" {shown(seed)}."
        )
    return seed % 2**64


# This word separates the words of a key from the number of a part of the key. Words of JAX keys and
# Generators are below 2^32, and a seed is one word, so parts of a key differ from all other keys.
_SPLIT = 2**64 - 59


def split(key: Key, num: int = 2) -> list[Key]:
    """Derive independent keys from a key."""
    if isinstance(key, HostKey):
        return [HostKey((*key.words, _SPLIT, i)) for i in range(num)]
    return list(jax.random.split(key, num))


def _is_jax_key(key: Any) -> bool:
    if not is_jax(key):
        return isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (2,)
    if jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key.shape == ()
    return key.dtype == np.uint32 and key.ndim == 1


def _described(key: object) -> str:
    if hasattr(key, "shape") and hasattr(key, "dtype"):
        return f"{type(key).__name__} of shape {key.shape} and dtype {key.dtype}"
    return type(key).__name__
