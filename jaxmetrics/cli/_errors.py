"""Invalid input, as one line.

Exceptions of the libraries that read files become an `InputError` here, whose message is one
printable line.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from jaxmetrics.cli._options import given_beside

__all__: list[str] = []


class InputError(Exception):
    """Invalid input of the user; the message is one line."""


@contextmanager
def reading() -> Iterator[None]:
    """Convert any exception of a library that reads files into an InputError.

    Damaged files raise exceptions of any type, from zlib, zipfile, tokenize, NumPy and polars.
    Panics of polars are not an `Exception`, and are written to standard error, which is closed
    meanwhile.
    """
    try:
        with closed_standard_error():
            yield
    except InputError:
        raise
    except MemoryError:
        raise InputError("cannot be read: there is not enough memory") from None
    except (Exception, pl.exceptions.PanicException) as error:
        raise InputError(f"cannot be read: {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """Return the reason of an exception as one line."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if reason.startswith("found more fields than defined"):
        return "a row has more columns than the header; is a value with a comma not quoted?"
    if reason.startswith(("could not parse `", "CSV malformed")):
        return "a quote stands inside of a value, where it must be doubled, or is not closed"
    return f"{reason}; is it UTF-8?" if "utf-8" in reason else reason


@contextmanager
def closed_standard_error() -> Iterator[None]:
    """Discard output to the file descriptor 2, to which Rust writes panics."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed already
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def check_alone(command: str, given: Namespace, option: str, *allowed: str) -> None:
    """Raise for options that have no meaning together with this one."""
    others = given_beside(command, given, option, *allowed)
    if others:
        raise InputError(f"--{option} does not go with {', '.join(others)}")


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """Prefix error messages in the block with the name of the file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None


@contextmanager
def refusals(subject: Path | str) -> Iterator[None]:
    """Convert errors of the library in the block into an InputError about the file or option."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{shown(subject)}: {error}") from None


def shown(path: Path | str) -> str:
    """Return the name of a file, which need not be valid text, as printable text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def listed(names: Sequence[str]) -> str:
    """List names for a message."""
    some = ", ".join(repr(shortened(name)) for name in names[:12])
    return (some or "nothing") + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def shortened(text: str) -> str:
    """Cut a value so that it fits into a message."""
    return text if len(text) <= 80 else f"{text[:80]}…"
