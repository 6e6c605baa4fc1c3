"""Atomic file writes: files appear completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__: list[str] = []

UNFINISHED: set[Path] = set()  # temporary files, for who ends the program without unwinding


@contextmanager
def replaced_file(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `target` if the block succeeds, and is deleted otherwise.

    The temporary file is in the same folder, with an unpredictable name that no other thread,
    process or container uses. The file is flushed to the disk before it is renamed. Links are
    followed, and an existing file keeps its mode. Targets that are not regular files, such as pipes
    and devices, are written directly.

    If a signal kills the process, the temporary file remains. The command line waits for signals,
    and deletes the files in `UNFINISHED`.
    """
    mode = None
    with suppress(FileNotFoundError):
        mode = os.stat(target).st_mode
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(target))
    temporary = path.with_name(f".{secrets.token_hex(16)}.tmp")
    UNFINISHED.add(temporary)
    try:
        with temporary.open("xb") as file:  # "x" does not follow links; the mode is the default
            if mode is not None:
                with suppress(PermissionError):  # some file systems have no modes
                    temporary.chmod(stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        UNFINISHED.discard(temporary)
