"""The command line: `jaxmetrics report`, `compare`, `leaderboard`, `plan` and `merge`.

The options are defined in `_options.py`. The modules of a command and the libraries that read files
are imported only when the command runs, so that `--help` is fast.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from typing import NoReturn

from jaxmetrics import __version__
from jaxmetrics.cli._options import COMMANDS, Parser, parser_of, refuse

__all__ = ["main"]


def app(arguments: Sequence[str]) -> int:
    """Run the command named by the first argument, or print help, and return the exit code."""
    summaries = (
        f"  {name:11} {x.summary.partition(':')[0].rstrip('.')}" for name, x in COMMANDS.items()
    )
    parser = Parser(
        "jaxmetrics",
        "Classification metrics with confidence intervals, from files of predictions.",
        "COMMAND [--help] ...",
        epilog="commands:\n" + "\n".join(summaries),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"jaxmetrics {__version__}")
    name = parser.parse_args(arguments[:1] or ["--help"]).command
    options = parser_of(name).parse_intermixed_args(_with_bounds(arguments[1:]))
    if options.bounds is not None and options.value is None:
        refuse("--bounds needs --value, the name of the column of scores")
    try:
        from jaxmetrics.cli._outputs import deliver

        module = importlib.import_module(f"jaxmetrics.cli.{COMMANDS[name].module}")
        return deliver(getattr(module, name), options)
    except ModuleNotFoundError as error:
        needed = f"the command line needs {error.name}: run pip install 'jaxmetrics[cli]'"
        print(f"jaxmetrics: {needed}", file=sys.stderr)
        return 2


def _with_bounds(arguments: Sequence[str]) -> list[str]:
    """Write `--bounds -1,1` as `--bounds=-1,1`, because argparse would read -1,1 as an option."""
    text = "\0".join(arguments)
    return re.sub(r"(^|\0)--bounds\0(?=-[\d.])", r"\1--bounds=", text).split("\0") if text else []


def main() -> None:
    """Run the command line.

    The exit code is 0 for success, 1 if a gate failed, 3 if a gate is undecided, 2 if the input is
    invalid or the output cannot be written, and `128 + number` if a signal ended the program.
    """
    _open_standard_streams()
    _exit_by_signals()
    text = io.StringIO()
    try:
        # All output is printed at the end, so that writing can fail in one place only.
        with redirect_stdout(text):
            sys.exit(app(sys.argv[1:]))
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # 128 + SIGINT
    except MemoryError:
        print("jaxmetrics: there is not enough memory", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:  # for example, if standard error cannot be written
        with suppress(OSError):
            print(f"jaxmetrics: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    finally:
        _write(text.getvalue())


def _open_standard_streams() -> None:
    """Open the null device in place of closed standard streams, so that no file replaces them."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # until the end


def _write(text: str) -> None:
    """Write to standard output. If this fails, discard the text that Python would write at exit."""
    try:
        if text and sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed")
        if text:
            if isinstance(sys.stdout, io.TextIOWrapper):  # false if a program captures the output
                sys.stdout.reconfigure(errors="backslashreplace")
            sys.stdout.write(text)
            sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        if isinstance(error, BrokenPipeError):  # the reader closed the pipe
            raise SystemExit(141) from None  # 128 + SIGPIPE
        with suppress(OSError):
            print(f"jaxmetrics: standard output: {error.strerror}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None


def _exit_by_signals() -> None:
    """Raise SystemExit if a signal ends the program, so that no half-written file remains.

    Signals that are ignored, for example after `nohup`, remain ignored.
    """

    def leave(number: int, frame: object) -> NoReturn:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, leave)
