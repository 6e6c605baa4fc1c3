"""Resolve a path: a file, a glob or folder of parts, or standard input."""

from __future__ import annotations

import errno
import glob
from pathlib import Path

from jaxmetrics.cli._errors import InputError, named
from jaxmetrics.cli._sources import BINARY, STANDARD_INPUT, TEXT, extension
from jaxmetrics.cli._text import COMPRESSED

__all__: list[str] = []


def parts_of(path: Path) -> list[Path]:
    """List the files of a path, sorted by name."""
    with named(path):
        if path == STANDARD_INPUT:
            return [path]
        try:
            path.stat()
        except OSError as error:
            found = sorted(map(Path, glob.glob(str(path))))
            if error.errno == errno.ENOENT and found:
                return [part for file in found for part in parts_of(file)]
            reason = "no such file" if error.errno == errno.ENOENT else error.strerror
            raise InputError(str(reason)) from None
        if path.is_dir():
            return _parts_in(path)
        if path.is_file() and extension(path) not in (*TEXT, *BINARY):
            known = ", ".join((*TEXT, *BINARY))
            raise InputError(
                f"unknown extension {path.suffix!r}; supported are {known}, text also with"
                f" {' or '.join(COMPRESSED)}"
            )
    return [path]


def mentioned(path: Path) -> list[Path]:
    """List all files that a path may refer to, of any type."""
    inside = list(path.iterdir()) if path.is_dir() else []
    return [path, *map(Path, glob.glob(str(path))), *inside]


def _parts_in(folder: Path) -> list[Path]:
    """List the files of known types in a folder, without hidden and temporary files."""
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(str(error.strerror)) from None
    parts = [
        file
        for file in files
        if file.name[0] not in "._" and extension(file) in (*TEXT, *BINARY) and file.is_file()
    ]
    if not parts:
        raise InputError(f"it is a folder without any file of type {', '.join((*TEXT, *BINARY))}")
    return parts
