"""Write files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__: list[str] = []


@contextmanager
def replaced_file(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `target` when the block ends well, and else vanishes.

    Until then it lies in the same folder, under a name that nobody can guess and no other thread,
    process or container has. It is on the disk before it is renamed. Links are followed, and an
    existing file keeps its mode. What is no regular file, such as a pipe or a device, is written to
    as it stands.

    A signal that ends the process at once leaves the file; the command line turns those that can
    be caught into an exit, a program that imports this package decides for itself.
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
    file = temporary.open("xb")  # follows no link, and has the mode of any new file
    try:
        with file:
            if mode is not None:
                with suppress(PermissionError):  # some file systems know no modes
                    temporary.chmod(stat.S_IMODE(mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
