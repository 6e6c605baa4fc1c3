"""Errors about invalid input, whose message is one line.

The exceptions of libraries that read files are converted to `InputError` here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl


class InputError(Exception):
    """The input of the user is invalid; the message is one line."""


@contextmanager
def reading() -> Iterator[None]:
    """Convert any exception of a library that reads files into an InputError.

    For damaged files, zlib, zipfile, tokenize, NumPy and polars raise exceptions of many types. A
    panic of polars is not an `Exception`, and polars writes the panic to standard error, so
    standard error is closed while the library reads.
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
    """Return the reason for an exception as one line."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if reason.startswith("found more fields than defined"):
        return "a row has more columns than the header; is there a comma in an unquoted value?"
    if reason.startswith(("could not parse `", "CSV malformed")):
        return "a quote is not closed, or it is inside a value, where it must be doubled"
    return f"{reason}; is the file UTF-8 text?" if "utf-8" in reason else reason


@contextmanager
def closed_standard_error() -> Iterator[None]:
    """Discard the output to file descriptor 2, because Rust writes panics there."""
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


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """Prepend the name of the file to the error messages of the block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None


@contextmanager
def refusals(subject: Path | str) -> Iterator[None]:
    """Convert errors that the library raises in the block into an InputError that begins with the
    name of the file or option.
    """
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{shown(subject)}: {error}") from None


def shown(path: Path | str) -> str:
    """Return the name of a file as printable text, even if the name is not valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def listed(names: Sequence[str]) -> str:
    """List up to 12 names for an error message."""
    some = ", ".join(repr(shortened(name)) for name in names[:12])
    return (some or "nothing") + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def decimal_hint(value: str) -> str:
    """Return a hint if a value is a number with a decimal comma, otherwise ""."""
    return "; --decimal , reads decimal commas" if re.fullmatch(r"-?\d*,\d+", value) else ""


def shortened(text: str) -> str:
    """Truncate a value so that it fits into an error message."""
    return text if len(text) <= 80 else f"{text[:80]}…"
